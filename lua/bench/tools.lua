-- What the benchmarks that are written in Lua share: stores of their own, progress, TVM.
local ms = msched
local cli, tune = ms.load "lua.cli.cli", ms.load "search.tune"

local tools = {}

-- Seconds that each of what is compared is timed: fewer where MSCHED_BENCH_SECONDS says so.
local ASKED = tonumber(os.getenv "MSCHED_BENCH_SECONDS" or "")
function tools.at_most(seconds) return ASKED and ASKED > 0 and math.min(ASKED, seconds) or seconds end

-- Of no values it is 1.
function tools.geometric_mean(values)
  local sum = 0
  for _, v in ipairs(values) do sum = sum + math.log(v) end
  return math.exp(sum / math.max(#values, 1))
end

-- Calls body(store) with an empty store, which is removed afterwards.
function tools.with_store(body)
  return ms.with_folder(function(folder)
    local results = table.pack(pcall(function() return body(ms.store(folder .. "/store.db")) end))
    collectgarbage() -- closes it
    if not results[1] then error(results[2], 0) end
    return table.unpack(results, 2, results.n)
  end)
end

-- A listener of tuning that shows its progress on a terminal.
function tools.progress_line(name)
  if not ms.is_terminal() then return function() end end
  return function(e)
    if e.event == "end" then io.stderr:write("\r\27[K")
    elseif e.best_seconds then
      io.stderr:write(string.format("\r\27[K%s: trial %d, best %s", name, e.done, cli.time_text(e.best_seconds)))
    end
  end
end

-- Tunes as `msched tune` does, in a store of its own, shown under this name; events go to listen (log.lua), if there is
-- one. Gives the task, which has a fastest.
function tools.tune_alone(name, func, options, listen)
  return tools.with_store(function(store)
    local progress, own = tools.progress_line(name), {store = store}
    for key, value in pairs(options) do own[key] = value end
    function own.listen(e)
      if listen then listen(e) end
      progress(e)
    end
    local task = tune.run(func, own)
    if ms.interrupted() then cli.refuse("interrupted") end
    if not task.fastest then cli.refuse("%s: %s", name, tune.why(task)) end
    return task
  end)
end

-- The trace of the fastest record of a function on a target, and its ID; nil: the store has none.
function tools.recorded(store, func, target)
  for _, w in ipairs(store:workloads()) do
    if store:get_workload(w.id):hash() == func:hash() then
      local r = store:records({workload = w.id, target = target.text, most = 1})[1]
      if r and r.status == "measured" then
        store:take_intrinsics(r.id)
        return ms.read_trace(r.trace), r.id
      end
    end
  end
end

-- Adds the tensor intrinsics that a store keeps for a record to this state's.
function tools.take_intrinsics(path, record) cli.open_store(path, "read"):take_intrinsics(record) end

-- The trace of the fastest that tuning finds, options.trials and options.seed; and how many trials were done.
function tools.tuned(store, func, target, options)
  local task = tune.run(func, {trials = options.trials, seed = options.seed, target = target.text, store = store,
                               listen = tools.progress_line(func:name())})
  if ms.interrupted() then cli.refuse("interrupted") end
  return task.fastest and task.fastest.trace or cli.refuse("%s: %s", func:name(), tune.why(task)), task.done
end

function tools.kernel_of(func, scheduled, target)
  return ms.build(scheduled, {target = target.text, reference = func})
end

-- Kernels of a function on equal arguments, timed in turn, so many seconds each.
function tools.time_kernels(func, kernels, seconds)
  local calls = {}
  for i, k in ipairs(kernels) do
    local arrays = ms.arrays_for(func, 1)
    ms.fill_for_timing(func, arrays, k:target())
    calls[i] = k:prepare(table.unpack(arrays))
    calls[i]:run()
  end
  return ms.time_in_turn(calls, seconds)
end

-- ---- Suites: of `msched bench ops` and `msched bench auto` ----

-- The trace that a member of a suite is measured with, by its record, or tuned with options.trials; then how many
-- trials that took, and the record's ID. nil, and it is said: there is none.
function tools.trace_of(member, func, store, target, options)
  if options.trials then return tools.tuned(store, func, target, options) end
  local trace, record = tools.recorded(store, func, target)
  if trace then return trace, 0, record end
  io.stderr:write("msched bench: ", member.name, ": no record for ", target.text:match "^%S+", " in ", store:path(),
                  "; --trials N tunes it\n")
end

local function is_operand(word) return cli.named(word) or cli.is_file(word) end

-- Arguments that an operator has of its own, as the words that would follow `--`.
local function words_of(item)
  local list = {}
  for i, x in ipairs(item and item.given or {}) do
    list[i] = (x.name and x.name .. "=" or "") .. (type(x.value) == "table" and table.concat(x.value, ",") or x.value)
  end
  return list
end

-- The functions of a file, of ops:NAME or of suite:NAME as members; those of an operator and of a suite name it, by
-- which vendors' routines are found.
local function members_of(word)
  local item, list = cli.named(word), {}
  if item and item.kind == "suite" then
    local ok, members =
      pcall(ms.load "lua.lib.ops.suites".choose, item.name, ms.load "lua.lib.ops.words".texts(item) or {})
    return ok and members or cli.refuse("%s", tostring(members))
  end
  for i, func in ipairs((cli.functions_of(word, {}))) do
    list[i] = {name = func:name(), code = item and item.name or func:name(), operator = item and item.name,
               words = words_of(item), own = func}
  end
  return list
end

-- Refuses words of a suite, as batch=1, that name none of its members, beside operands alone: of which suite they are
-- is not clear.
local function check_codes(options, codes, operand)
  if options.suite or not operand or #codes == 0 then return end
  for _, word in ipairs(codes) do if not word:find "=" then return end end
  cli.misuse("%s: to which suite it applies is not clear: beside %s, it goes in parentheses, as suite:ops(%s), or \z
              with --suite", codes[1], operand, codes[1])
end

-- The members that words stand for: those of options.suite that they choose, of which there are all without words, and
-- those of files, operators and suites, with numbers for the variables of files' functions.
local function chosen(options, words)
  local codes, list, own, of, operand = {}, {}, {}, {}, nil
  for _, word in ipairs(words) do
    if is_operand(word) then operand = operand or word else codes[#codes + 1] = word end
  end
  check_codes(options, codes, operand)
  if #codes == #words or #codes > 0 or options.suite then
    local ok, members = pcall(ms.load "lua.lib.ops.suites".choose, options.suite or "ops", codes)
    if not ok then cli.misuse("%s", tostring(members)) end
    list = members
  end
  for _, word in ipairs(words) do
    local members = is_operand(word) and members_of(word) or {}
    table.move(members, 1, #members, #list + 1, list)
  end
  for _, m in ipairs(list) do if m.own then own[#own + 1], of[#own + 1] = m.own, m end end
  for i, func in ipairs(cli.specialized(own, options.dim)) do
    of[i].func = function() return ms.without_empty(func) or func end
  end
  return list
end

-- The members that words stand for, and the target, for body(members, target), which gives what is done with a store.
function tools.of_suite(options, words, body)
  local members = chosen(options, words)
  if options.trials == 0 then cli.misuse("--trials: a number of at least 1 is expected") end
  local run = body(members, ms.target(options.target or "native", {runs = true}))
  if options.trials and not options.db then return tools.with_store(run) end
  return run(cli.open_store(options.db, not options.trials and "read" or nil))
end

-- ---- Workloads: of `msched bench search` and `msched bench policies` ----

-- The functions that words name, {name, func, is_given} each: workloads of the folder of data, or given as files,
-- operators and suites.
function tools.workloads(options, words)
  local list, functions = {}, {}
  for _, word in ipairs(words) do
    local is_given = is_operand(word) and true
    for _, func in ipairs((cli.functions_of(is_given and word
                                            or string.format("%s/workloads/%s.py", options.data, word), {}))) do
      list[#list + 1], functions[#list + 1] = {name = is_given and func:name() or word, is_given = is_given}, func
    end
  end
  for i, func in ipairs(cli.specialized(functions, options.dim)) do list[i].func = func end
  return list
end

-- ---- TVM ----

local function read_all(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- Runs a script of lua/bench/data with TVM's Python; the last line that is an object is its answer: its numbers by
-- name.
function tools.ask_tvm(options, script, ...)
  local words = {options.tvm, options.data .. "/" .. script, ...}
  for i, w in ipairs(words) do words[i] = "'" .. tostring(w):gsub("'", "'\\''") .. "'" end
  local answer, ok, log
  ms.with_folder(function(folder)
    local pipe = io.popen(table.concat(words, " ") .. " 2>'" .. folder .. "/said'", "r")
    for line in pipe:lines() do
      if line:sub(1, 1) == "{" then answer = line end
    end
    ok, log = pipe:close(), read_all(folder .. "/said")
  end)
  if not ok or not answer then
    cli.refuse("TVM does not answer: %s %s; it says:\n%s", options.tvm, script, log:sub(-2000))
  end
  local numbers = {}
  for name, number in answer:gmatch '"([%w_]+)": ([%d.e+-]+)' do numbers[name] = tonumber(number) end
  return numbers
end

return tools
