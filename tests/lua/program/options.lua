-- Options: those of a run of tuning are one table (lua/cli/options.def), which the command, ms.tune, the help and the
-- annotations show and hold to; of what else takes options, the documented ones are those that are taken.
-- usage: msched options.lua PROGRAM
local ms = require "msched"
local docs, run_options = ms.load "lua.cli.help.docs", ms.load "search.options"

local program = ...
local f = ms.ops.func("relu", {"8x8"})

local function refusal(call, ...)
  local ok, message = pcall(call, ...)
  assert(not ok, "not refused")
  return tostring(message)
end
local function has(text, what, why)
  assert(text:find(what, 1, true), string.format("%s: %s, not in: %s", why, what, text))
end

local function said(words)
  local pipe <close> = assert(io.popen(string.format("'%s' %s 2>&1", program, words)))
  return pipe:read "a"
end

-- ---- A run's options -----------------------------------------------------------------------------------------------

-- By type: what is of another.
local WRONG = {boolean = 1, string = {}, integer = "x", number = "x", table = 3, ["function"] = 3}

local help, explained = said "help tune", {}
docs.explain("ms.tune", function(line) explained[#explained + 1] = line end)
explained = table.concat(explained, "\n")
local seen = {}
for _, o in ipairs(run_options.list) do
  assert(not seen[o.field], o.field .. " stands twice")
  seen[o.field] = o
  has(explained, "\n  " .. o.field .. " ", "help of ms.tune")
  has(explained, o.field .. "?: " .. o.type, "annotation of ms.tune")
  if o.word then has(help, "  " .. o.word .. " ", "help of tune") end
  local kind = o.type:find "%[%]$" and "table" or o.type:find "^fun" and "function" or o.type
  local wrong = WRONG[kind]
  if wrong then
    has(refusal(ms.tune, f, {[o.field] = wrong}), string.format("option `%s`: expected %s", o.field, kind), "ms.tune")
  end
  -- Out of its range, by the same rule in the command and in ms.tune.
  local outside = {}
  if o.above then outside[1] = o.least elseif o.least then outside[1] = o.least - 1 end
  if o.most then outside[2] = o.most + 1 end
  for _, x in ipairs(outside) do
    has(refusal(ms.tune, f, {[o.field] = x}), string.format("ms.tune: %s is %d; it is ", o.field, x), "ms.tune")
    if o.word then
      local words = string.format("tune ops:relu %s %d --db /nonexistent/x.db -- 8x8", o.word, x)
      has(said(words), "msched tune: " .. o.word .. ": a number ", "tune")
    end
  end
end

-- What the command has besides is what a run does not see: its words, and what is shown.
local ALONE = {["--task"] = true, ["--dim"] = true, ["--weights"] = true, ["--shape"] = true,
               ["--constant"] = true, ["--passes"] = true, ["--layout"] = true, ["--vendors"] = true,
               ["--intrinsics"] = true, ["--json"] = true}
local by_word = {}
for _, o in ipairs(run_options.list) do if o.word then by_word[o.word] = o end end
for word in ("\n" .. help):gmatch "\n  (%-%-[a-z-]+)" do
  assert(by_word[word] or ALONE[word], word .. " of tune is no option of a run, and not known as the command's alone")
  assert(not (by_word[word] and ALONE[word]), word)
end

-- A command's words are the run's fields.
local given = run_options.of_command {
  trials = 3, ["no-tune"] = true, ["total-trials"] = 5, rules = {"a"}, ["rule-timeout"] = 2.5, json = true, task = "1",
}
assert(given.trials == 3 and given.no_tune and given.total == 5 and given.files[1] == "a" and given.rule_timeout == 2.5)
assert(given.json == nil and given.task == nil and given.rules == nil)
assert(run_options.out_of_range(given) == nil and run_options.out_of_range {seconds = 0 / 0}.field == "seconds")
assert(run_options.standard.trials == 64 and run_options.standard.jobs == nil)
has(said "tune ops:relu --trails 3 -- 8x8", "unknown option --trails; did you mean `--trials`?", "tune")
has(said "tune ops:relu --polcy grid -- 8x8", "did you mean `--policy`?", "tune")

-- ---- Others: those that are documented are those that are taken ----------------------------------------------------

-- The names in the tables of options that a member's line has.
local function documented(owner, mark, name)
  for _, d in ipairs(docs.list) do
    if d.owner == owner and d.mark == mark and d.name == name then
      local names = {}
      for fields in d.args:gmatch "%b{}" do
        for field in fields:gsub("%b()", ""):gmatch "([%a_][%w_]*)%??:" do table.insert(names, field) end
      end
      table.sort(names)
      return table.concat(names, " ")
    end
  end
  error("no line for " .. owner .. mark .. name)
end
local function taken(call, ...)
  local names = {}
  local known = refusal(call, ...):match "there is no option `nonsense`; known are ([%w_, ]+)"
  for name in known:gmatch "[%w_]+" do table.insert(names, name) end
  table.sort(names)
  return table.concat(names, " ")
end
local sch, bad = ms.schedule(f), {nonsense = 1}
local path = os.tmpname()
local kernel, store = ms.build(f), ms.store(path .. ".db")
local best = ms.tune(f, {no_tune = true, store = store})
for _, each in ipairs {
  {"ms", ".", "tune", ms.tune, f}, {"ms", ".", "build", ms.build, f}, {"ms", ".", "auto_schedule", ms.auto_schedule, f},
  {"schedule", ":", "build", sch.build, sch}, {"kernel", ":", "check", kernel.check, kernel},
  {"store", ":", "records", store.records, store}, {"best", ":", "build", best.build, best},
} do
  local owner, mark, name, call, first = table.unpack(each)
  local expected, got = documented(owner, mark, name), taken(call, first, bad)
  assert(expected == got, string.format("%s%s%s: documented %s; taken %s", owner, mark, name, expected, got))
end
-- The roofline, where a script asks for it, is kept with the records as the command keeps it.
for _, roofline in ipairs {false, true} do
  local listed = {}
  ms.tune(f, {trials = 1, store = store, seed = roofline and 2 or 1, roofline = roofline})
  for _, r in ipairs(store:records()) do if r.roofline then listed[#listed + 1] = r.roofline.limit_seconds end end
  assert(roofline == (#listed > 0 and listed[1] > 0), "a limit is kept where one is asked for")
end
store:close()
for _, suffix in ipairs {"", ".db", ".db-lock"} do os.remove(path .. suffix) end
print "options are those of their tables"
