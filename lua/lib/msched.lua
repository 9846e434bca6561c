-- What the module `msched` has that is written in Lua. Loaded once a state, after what C gives.
local ms = msched

-- Keys in an order that is the same in every run: numbers ascending, then strings.
function ms.sorted_keys(t)
  local keys = {}
  for k in pairs(t) do keys[#keys + 1] = k end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then return type(a) == "number" end
    return a < b
  end)
  return keys
end

ms.te = ms.load "lua.lib.te"
ms.ops = ms.load "lua.lib.ops"
ms.heuristics = ms.load "rules.heuristics"

-- ---- What a user's file may define: each call registers, and returns what it was given, checked ----------------

ms.registered =
  {rule = {}, postproc = {}, mutator = {}, space = {}, without = {}, policy = {}, model = {}, pass = {}}

-- A function alone is what is applied, named after where it is given.
local function named(t) return type(t) == "function" and {name = (ms.where():gsub(": $", "")), apply = t} or t end

local NEEDS = {features = true, model = true, nearest = true, transfer = true}

-- What a policy declares: {features =, model =, nearest =, transfer =}; nothing is needed where it says nothing.
local function needs_of(policy, level)
  local needs = policy.needs or {}
  if type(needs) ~= "table" then
    error(string.format("ms.policy %s: `needs` is a table, {features =, model =, nearest =, transfer =}", policy.name),
          level)
  end
  for _, name in ipairs(ms.sorted_keys(needs)) do
    if not NEEDS[name] then
      error(string.format("ms.policy %s: what it needs is `features`, `model`, `nearest` and `transfer`, not `%s`",
                          policy.name, name), level)
    end
  end
  return needs
end

local MOST_WEIGHT = 1e9 -- of a mutator: sums of them stay finite, and a small one beside a large one is drawn at times

local LONGEST_NAME, MOST_PARTS = 200, 1000 -- bytes; of a kind

-- Where a rule may change anything, as rules/space.lua asks it.
local function check_rule(t)
  if t.at ~= nil and t.at ~= "root" and t.at ~= "blocks" then
    error(string.format("ms.rule %s: `at` is \"root\" or \"blocks\", all but the root", t.name), 3)
  end
  if t.wanted ~= nil and type(t.wanted) ~= "function" then
    error(string.format("ms.rule %s: `wanted` is a function", t.name), 3)
  end
end

local function definer(kind, required)
  return function(t)
    local is_named = type(t) == "table" -- a function alone has a place for a name
    if required[1] == "apply" then t = named(t) end
    if type(t) ~= "table" then error("ms." .. kind .. " takes a table", 2) end
    if type(t.name) ~= "string" then error("ms." .. kind .. ": `name` is a string", 2) end
    if is_named and #t.name > LONGEST_NAME then
      error(string.format("ms.%s: `name` has %d bytes; %d are the most", kind, #t.name, LONGEST_NAME), 2)
    end
    if #ms.registered[kind] == MOST_PARTS then
      error(string.format("ms.%s %s: %d have been registered, the most that there may be", kind, t.name, MOST_PARTS), 2)
    end
    for _, field in ipairs(required) do
      if type(t[field]) ~= "function" then
        error(string.format("ms.%s %s: `%s` is a function", kind, t.name, field), 2)
      end
    end
    if kind == "mutator" then
      if t.weight == nil then t.weight = 0.1 end
      if type(t.weight) ~= "number" or not (t.weight >= 0 and t.weight <= MOST_WEIGHT) then
        error(string.format("ms.mutator %s: `weight` is a number from 0 to %g", t.name, MOST_WEIGHT), 2)
      end
    end
    if kind == "rule" then check_rule(t) end
    if kind == "policy" then t.needs = needs_of(t, 3) end
    if kind == "pass" and t.after ~= nil and type(t.after) ~= "string" then
      error(string.format("ms.pass %s: `after` is a string, a pass's name", t.name), 2)
    end
    t.kind = kind
    table.insert(ms.registered[kind], t)
    return t
  end
end
ms.rule = definer("rule", {"apply"})
ms.postproc = definer("postproc", {"apply"})
ms.mutator = definer("mutator", {"apply"})
ms.policy = definer("policy", {"run"})
ms.pass = definer("pass", {"apply"})

-- A design space in place of the target's; several are united.
function ms.space(t)
  t = named(t)
  if type(t) ~= "table" then error("ms.space takes a table, or a function that schedules", 2) end
  for _, list in ipairs {"rules", "postprocs", "mutators"} do
    if t[list] ~= nil and type(t[list]) ~= "table" then error(string.format("ms.space: `%s` is a list", list), 2) end
    if t[list] and list ~= "rules" and ms.build then
      error("ms.space: " .. list .. " in place of the target's belong in a file of --rules, which every worker reads",
            2)
    end
  end
  table.insert(ms.registered.space, t)
  return t
end

-- Leaves rules, postprocessors or mutators of the target's out of the space, by their names.
function ms.without(...)
  if ms.build then
    error("ms.without belongs in a file of --rules, which every worker reads; ms.tune takes names as `without`", 2)
  end
  for i = 1, select("#", ...) do
    local name = select(i, ...)
    if type(name) ~= "string" then error("ms.without takes names, not a " .. type(name), 2) end
    table.insert(ms.registered.without, name)
  end
end

local define_model, new_model = definer("model", {"update", "predict"}), ms.model
function ms.model(what, seed, by_rank)
  if type(what) == "table" then return define_model(what) end
  return new_model(what, seed, by_rank)
end

-- ---- Schedules -------------------------------------------------------------------------------------------------

ms.load "lua.lib.condition"

if not ms.build then return true end -- a sandbox has no kernels, and does not tune

local schedule, kernel = ms.schedule_methods, ms.kernel_methods

-- Functions here that stand for one of a file that is loaded when they are first called; ms.defined(f) gives that one,
-- any other as it is.
local real = setmetatable({}, {__mode = "k"})
local function made_in(f, file, name) real[f] = function() return ms.load(file)[name] end end
local function later(owner, name, file)
  local function stub(...)
    if owner[name] == stub then
      owner[name] = nil
      ms.load(file)
    end
    return owner[name](...)
  end
  owner[name], real[stub] = stub, function()
    if owner[name] == stub then ms.load(file) end
    return owner[name]
  end
end
function ms.defined(f) return real[f] and real[f]() or f end

function schedule.build(sch, options)
  options = ms.options(options, "target:string fast_math:boolean")
  return ms.build(sch:func(), {target = options.target, fast_math = options.fast_math, reference = sch:workload()})
end

local function arrays_for(func, seed, again)
  local arrays = again or {}
  if ms.type(func) ~= "function" then
    error(string.format("%sarrays are for a function, not for a %s", ms.where(), ms.type(func) or type(func)), 0)
  end
  for i, p in ipairs(func:params()) do
    if not p.shape then
      error(ms.where() .. "a function with scalar parameters is called with values of your own", 0)
    end
    arrays[i] = (arrays[i] or ms.array(p.elements and {p.elements} or p.shape, p.type)):random(seed + i)
  end
  return arrays
end
ms.arrays_for = arrays_for

local DIGITS = 101 -- the seed of full-mantissa data

function ms.fill_for_timing(func, arrays, target)
  local any = false
  for i, digits in ipairs(ms.timed_with_digits(func, target or "native")) do
    if digits then arrays[i]:random(DIGITS + i, true) end
    any = any or digits
  end
  return any
end

-- Arrays of NumPy's files: what reads and writes them is loaded when it is first called.
function ms.load_array(path) return ms.load "lua.lib.numpy".load(path) end
function ms.array_methods.save(array, path) return ms.load "lua.lib.numpy".save(array, path) end
made_in(ms.load_array, "lua.lib.numpy", "load")
made_in(ms.array_methods.save, "lua.lib.numpy", "save")
ms.array_methods = nil

-- A command's file, which sees copies of libraries and modules, and prints to standard error.
function ms.load_aside(path) return ms.load "lua.lib.environment".load(path) end

-- Networks, from ONNX's files.
function ms.onnx(path, options) return ms.load "lua.net.network".read(path, options) end
made_in(ms.onnx, "lua.net.network", "read")

local TIMED, LEAST = 0.5, 3 -- seconds, and calls, of ms.time

-- The median, the least and the most of the seconds that calls of f take.
function ms.time(f, ...)
  if type(f) ~= "function" and ms.type(f) ~= "kernel" then
    error(ms.where() .. "ms.time takes a function or a kernel, and its arguments", 0)
  end
  local list, start = {}, ms.clock()
  repeat
    local before = ms.clock()
    f(...)
    list[#list + 1] = ms.clock() - before
  until #list >= LEAST and ms.clock() - start >= TIMED
  table.sort(list)
  return list[(#list + 1) // 2], list[1], list[#list]
end

-- Runs a kernel, and `reference` (called with the arguments), on equal arrays of small integers: the largest difference
-- among the elements that the reference wrote, and their number.
function ms.compare(k, reference, seed)
  if ms.type(k) ~= "kernel" then
    error(string.format("%sms.compare takes a kernel, not a %s", ms.where(), ms.type(k) or type(k)), 0)
  end
  local func = k:func()
  local got, want, before = arrays_for(func, seed), arrays_for(func, seed), arrays_for(func, seed)
  reference(table.unpack(want)) -- first: where an access is out of bounds, it says which
  k:run(table.unpack(got))
  local most, compared = 0.0, 0
  for i = 1, #got do
    local difference, count = got[i]:difference(want[i], before[i])
    most, compared = math.max(most, difference), compared + count
  end
  return most, compared
end

local INTERPRETED = 1 << 24 -- operations: more than that are checked by samples
local SAMPLES = 16

-- Compares with the unscheduled function on the interpreter, everywhere or, where that would take long, at as many
-- elements of each output as options.samples says, and on real numbers unless options.tolerance is given; then with
-- itself, under perturbed thread timing. Gives the largest difference and the number of elements compared; raises when
-- it is past options.tolerance, or where the result depends on thread timing.
function kernel.check(k, options)
  options = ms.options(options, "seed:integer tolerance:number samples:integer")
  local reference = k:reference() or k:func()
  local seed, tolerance, samples = options.seed or 1, options.tolerance or 1e-3, options.samples
  if not samples and reference:flops() > INTERPRETED then samples = SAMPLES end
  local most, compared = ms.compare(k, function(...)
    if samples then ms.interpret_samples(reference, seed, samples, ...) else ms.interpret(reference, ...) end
  end, seed)
  if not (most <= tolerance) then
    error(string.format("%sthe kernel differs from the unscheduled function by %g", ms.where(), most), 0)
  end
  if not options.tolerance then k:check_real(reference, seed) end
  k:check_timing(seed)
  return most, compared
end

-- ---- Traces in files ----

local FORMS = {json = "json", lua = "text", trace = "binary"} -- by a file's suffix

local function no_file(message) error(ms.where() .. message, 0) end

-- Writes the schedule's trace; the file's suffix says in which form.
function schedule.save(sch, path)
  local form = type(path) == "string" and FORMS[path:match "%.(%w+)$"]
  if not form then
    no_file("a file's name is expected, whose suffix is the form: .json, .lua or .trace, which is the store's")
  end
  local trace = sch.trace
  local ok, message = pcall(ms.load "lua.lib.files".write, path, trace[form](trace))
  if not ok then no_file(message) end
end

-- A trace from a file of any of these forms, whatever its name.
function ms.load_trace(path)
  if type(path) ~= "string" then no_file("a file's name is expected") end
  local text, message = ms.read_file(path)
  if not text then no_file(message) end
  local ok, trace = pcall(ms.read_trace, text)
  if not ok then no_file(path .. ": " .. tostring(trace)) end
  return trace
end

-- trace:mutate([seed [, options]]) gives another trace, as the search makes them.
function ms.trace_methods.mutate(...) return ms.load "lua.lib.mutate".trace(...) end
made_in(ms.trace_methods.mutate, "lua.lib.mutate", "trace")
ms.trace_methods = nil

-- store:find(words) and store:schedule(words), by an ID, a task's name or "best".
local find_id = ms.store_methods.find
function ms.store_methods.find(store, words) return ms.load "lua.lib.records".find(store, words, find_id) end
function ms.store_methods.schedule(...) return ms.load "lua.lib.records".schedule(...) end
function ms.store_methods.words(...) return ms.load "lua.lib.records".words(...) end
made_in(ms.store_methods.find, "lua.lib.records", "find")
made_in(ms.store_methods.schedule, "lua.lib.records", "schedule")
made_in(ms.store_methods.words, "lua.lib.records", "words")
ms.store_methods = nil

-- ---- What is loaded when it is first called --------------------------------------------------------------------

later(schedule, "explain", "lua.lib.explain")       -- ([n]) prints what an instruction did and what builds on it
later(schedule, "draw", "lua.lib.draw")             -- () gives its loop nest as a picture in text
later(ms, "tune", "search.tune")                -- (function, options) gives the best kernel
later(ms, "groups", "search.groups.groups")             -- (function) gives the groups that it is cut into
later(ms, "auto_schedule", "search.auto_schedule") -- (function, options) gives a schedule without measuring

return true
