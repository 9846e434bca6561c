-- An operator's kernel beside the routines of vendors' libraries, on as many threads or the same GPU, timed in turn
-- with what reaches the machine's limits; every element of their results is compared, and where they differ float64
-- says who is right.
local ms = msched
local cli, apart = ms.load "lua.cli.cli", ms.load "lua.vendor.apart"
local named, work, rates = ms.load "lua.lib.ops.named", ms.load "lua.bench.work", ms.load "lua.cli.rates"
local peak = ms.load "lua.bench.peak"
local rows = {}

local FIRST = 0.001 -- seconds of a first timing
local LONG, HOPELESS = 0.1, 20 -- seconds, and times our kernel's: what takes longer is timed once
rows.TOLERANCE = 1e-4 -- of the largest element; and what a routine's result is rounded by
local SPACING = {float16 = 2 ^ -11, bfloat16 = 2 ^ -8} -- of results of this type, below 1

-- ---- Vendors -----------------------------------------------------------------------------------------------------

-- Those of a device are opened in a process of their own, where there can be one; their list then has `apart`, and
-- {name, text} each.
local function open(target, onednn)
  if not target.arch then return ms.vendors(target.cores, onednn), {} end
  if not apart.is_there() then return ms.device_vendors(target.text) end
  local function lost(name, why) error(string.format("%s: %s", name, why), 0) end
  local answer = apart.ask({ask = "vendors", target = target.text}, lost)
  answer.vendors.apart = true
  return answer.vendors, answer.notes
end

-- The vendors' libraries for a target, each printed unless lines are to be JSON; those that are left out are said.
-- onednn: the path of oneDNN's, or nil. Raises what a library that was named lacks.
function rows.vendors(target, onednn, json)
  local opened, vendors, notes = pcall(open, target, onednn)
  if not opened then cli.refuse("%s", tostring(vendors)) end
  for _, note in ipairs(notes) do io.stderr:write("msched bench: ", note, "\n") end
  if not json then
    for _, v in ipairs(vendors) do
      print(string.format("%-13s %s", vendors.apart and v.name or v:name(), vendors.apart and v.text or tostring(v)))
    end
  end
  return vendors
end

-- ---- Calls -----------------------------------------------------------------------------------------------------

-- What was taken of the fastest vendor's library, in words, its version before; nil: nothing is to be said of it.
function rows.routine_text(row)
  local best = row.best
  return best and best.routine and best.routine ~= "" and string.format("%s: %s", best.library, best.routine) or nil
end

-- How far a result is from ours, as a share of the largest element of ours.
local function distance(ours, theirs)
  local most = ours:difference(ms.array(ours:shape(), ours:type()))
  return ours:difference(theirs) / math.max(most, 1e-30)
end

-- An array's elements in another type.
local function in_type(array, type)
  local te, shape = ms.te, array:shape()
  local X = te.placeholder(shape, array:type(), "X")
  local made = ms.array(shape, type)
  ms.build(te.func("convert",
                   {X, te.compute(shape, function(...) return te.cast(X[{...}], type) end, "Y")})):run(array, made)
  return made
end

-- What the operator is in float64, in the type of its result: who is right where results differ.
local TYPES = {dtype = true, weight_dtype = true, accumulate = true} -- arguments that name one
local function exact(member, arrays)
  local words, wide = {"dtype=float64"}, {}
  for _, word in ipairs(member.words) do if not TYPES[word:match "^([%w_]+)="] then words[#words + 1] = word end end
  for i, a in ipairs(arrays) do wide[i] = in_type(a, "float64") end
  ms.build(named.func(member.operator, words)):run(table.unpack(wide))
  return in_type(wide[#wide], arrays[#arrays]:type())
end

local function say_failure(member, name, why)
  io.stderr:write("msched bench: ", member.name, ": ", name, " fails: ", why, "\n")
end

-- Runs a vendor's call; what it was refused, or nil. Raises where the device's context is spoiled by it: ours does not
-- run any more.
local function run_theirs(v, ours)
  apart.running(v.name)
  local ran, why = pcall(v.call.run, v.call)
  apart.running ""
  if ran then return nil end
  why = apart.reason(why)
  if not pcall(ours.run, ours) then error(apart.spoiled(v.name, why), 0) end
  return why
end

-- The calls of all vendors that have a routine for what is in these arrays: {name, vendor, library, call, routine,
-- result} each; and `again` of their work.
local function vendor_calls(member, vendors, arrays, ours)
  local w, theirs = member.operator and work.of(member.operator, named.values(member.operator, member.words), arrays),
    {}
  for _, v in ipairs(w and vendors or {}) do
    local result = ms.array(arrays[#arrays]:shape(), arrays[#arrays]:type())
    apart.running(v:name())
    local call = v:prepare(work.into(w, result))
    if call then
      theirs[#theirs + 1] = {name = v:name(), vendor = v, library = tostring(v), call = call,
                             routine = call:routine(), result = result}
      -- it failed, perhaps with the context
      if call:on_device() and call:routine() == "" then run_theirs(theirs[#theirs], ours) end
    end
  end
  apart.running ""
  theirs.again = w and w.again
  return theirs
end

-- Notes how far a vendor's result is from ours, where it is farther than what was noted before.
local function note_difference(member, v, arrays)
  local ours = arrays[#arrays]
  local difference = distance(ours, v.result)
  if v.difference and difference <= v.difference then return end
  v.difference = difference
  if difference <= rows.TOLERANCE + v.call:rounding() then return end
  local right = exact(member, arrays)
  v.ours_off, v.theirs_off = math.max(v.ours_off or 0, distance(right, ours)), distance(right, v.result)
  v.allowed = rows.TOLERANCE + (SPACING[ours:type()] or 0)
end

-- Runs our kernel and theirs on what is in the arrays now, and compares. Those that fail are said, and left out of
-- theirs: gives how many.
local function compare(member, ours, theirs, arrays)
  ours:run()
  if theirs.again then theirs.again() end
  local failed = 0
  for i = #theirs, 1, -1 do
    local v = theirs[i]
    local why = run_theirs(v, ours)
    if why then
      failed = failed + 1
      say_failure(member, v.name, why)
      table.remove(theirs, i)
    else
      note_difference(member, v, arrays)
    end
  end
  return failed
end

-- Our kernel's call and the vendors', which are compared on whole numbers, whose sums are exact, and hold for timing
-- what tuning is timed on: of a GPU full-mantissa data, by which vendors choose their algorithms too, and on which all
-- are compared once more.
local function calls_of(member, func, kernel, vendors)
  local arrays = ms.arrays_for(func, 1)
  local function fill() return ms.fill_for_timing(func, arrays, kernel:target()) end
  local digits = fill()
  local ours = kernel:prepare(table.unpack(arrays))
  local theirs = vendor_calls(member, vendors, arrays, ours)
  if digits then ms.arrays_for(func, 1, arrays) end
  local failed = compare(member, ours, theirs, arrays)
  if digits then
    fill()
    failed = failed + compare(member, ours, theirs, arrays)
  end
  return ours, theirs, failed
end

-- ---- Cold data -------------------------------------------------------------------------------------------------

local FAR = 3 -- times the last cache: data that is not touched before so much other data was, lies in none
local LEAST_COPY = 1 << 16 -- bytes that a copy counts for at least: of smaller ones, which stay in the last cache,
-- there would be too many

-- How many copies of a function's data are as large as that.
local function copies_of(func, target)
  return 1 + math.ceil(FAR * target.l3_bytes / math.max(cli.work_of(func).bytes, LEAST_COPY))
end

-- The calls of our kernel and of theirs become calls on so many copies of the arrays in turn, the first of which are
-- theirs now.
local function make_cold(member, func, kernel, ours, theirs, copies)
  local calls, values = {ours}, member.operator and named.values(member.operator, member.words)
  for _, v in ipairs(theirs) do v.calls = {v.call} end
  for i = 2, copies do
    local arrays = ms.arrays_for(func, 1)
    ms.fill_for_timing(func, arrays, kernel:target())
    calls[i] = kernel:prepare(table.unpack(arrays))
    for _, v in ipairs(theirs) do v.calls[i] = v.vendor:prepare(work.of(member.operator, values, arrays)) end
  end
  for _, v in ipairs(theirs) do v.call, v.calls = ms.alternating(v.calls), nil end
  return ms.alternating(calls)
end

-- What is measured of a machine, in turn with kernels where that can be (lua/bench/limits.lua).
function rows.limits() return ms.load "lua.bench.limits".open(true) end

-- The calls that reach the limits of a function on a target, to be timed in turn with a kernel: {source, call, work}
-- each; the limit as it was measured before them is the second result, nil: it is not known.
local function calls_of_limits(limits, func, trace, target, copies)
  local limit, list = limits:of(func, target, nil, {trace}, copies), {}
  for _, part in ipairs {limit and limit.arithmetic or false, limit and limit.memory or false} do
    if part and part.source.call then
      local made = limits:call(target, part.source)
      list[#list + 1] = {source = part.source, call = made.call, work = made.work}
    end
  end
  return list, limit
end

-- Times each of the vendors' calls alone, shortly: what it does at its first timing, it does where its name was said.
local function time_first(theirs)
  for _, v in ipairs(theirs) do
    apart.running(v.name)
    v.seconds = work.seconds_of_a_run(v.call)
    if v.call:on_device() then ms.time_in_turn({v.call}, FIRST) end
  end
  apart.running ""
end

-- The times of our kernel and of the vendors' in turn with what reaches the limits (rows.limits), so many seconds each:
-- a row. member: {name, operator, words}, as suites have them; without an operator no vendor has a routine.
-- cold: on copies of the data in turn, so many that each comes from memory; not on a GPU.
function rows.measure_here(member, func, trace, target, vendors, limits, seconds, cold)
  local kernel = ms.build(ms.apply(func, trace):func(), {target = target.text, reference = func})
  local ours, theirs, failed = calls_of(member, func, kernel, vendors)
  local copies = cold and copies_of(func, target) or nil
  if cold then ours = make_cold(member, func, kernel, ours, theirs, copies) end
  local reaches, limit = calls_of_limits(limits, func, trace, target, copies)
  local calls, hopeless = {ours}, math.max(LONG, HOPELESS * work.seconds_of_a_run(ours))
  for i, r in ipairs(reaches) do calls[1 + i] = r.call end
  time_first(theirs)
  for _, v in ipairs(theirs) do
    if v.seconds < hopeless then calls[#calls + 1], v.turn = v.call, #calls + 1 end
  end
  local times = ms.time_in_turn(calls, seconds)
  for i, r in ipairs(reaches) do
    limits:take(target, r.source, r.work / peak.least(times[1 + i].seconds, times[1 + i].low))
  end
  if limit then limit = limits:of(func, target, nil, {trace}, copies) end
  local own = cli.work_of(func)
  local row = {task = member.name, seconds = times[1].seconds, low = times[1].low, high = times[1].high,
               operations = own.operations, unit = own.unit, bytes = own.bytes, vendors = theirs, failed = failed}
  if limit then
    row.limit = {name = limit.name, seconds = limit.seconds, of = limit.of}
    row.peak, row.bandwidth = limit.arithmetic and own.operations / limit.arithmetic.seconds,
      own.bytes / limit.memory.seconds
    row.unused = rates.unused_text(own, limit, row.seconds,
                                   function() return rates.uses(limit.unit, func, trace, target) end)
  end
  for _, v in ipairs(theirs) do
    v.seconds = v.turn and times[v.turn].seconds or v.seconds
    v.ratio = v.seconds / row.seconds
    if not row.best or v.seconds < row.best.seconds then row.best = v end
  end
  return row
end

-- The same in the vendors' process, where they have one. A library that ends it, or spoils the device for it, is said,
-- and left out. from: {store =, record =}, the tensor intrinsics' that the trace may use; nil: they are the program's
-- own. cold: as measure_here has it.
function rows.measure(member, func, trace, target, vendors, seconds, from, cold)
  if not vendors.apart then
    vendors.limits = vendors.limits or rows.limits()
    return apart.here(rows.measure_here, member, func, trace, target, vendors, vendors.limits, seconds, cold)
  end
  local failed = 0
  local row = apart.ask({ask = "row", target = target.text, trace = trace:text(), seconds = seconds,
                         store = from and from.store, record = from and from.record,
                         member = {name = member.name, operator = member.operator, words = member.words,
                                   script = not member.operator and func:script() or nil}}, function(name, why)
    failed = failed + 1
    say_failure(member, name, why)
  end)
  row.failed = row.failed + failed
  if row.best then for _, v in ipairs(row.vendors) do if v.name == row.best.name then row.best = v end end end
  return row
end

-- The vendors from whose results ours differ, and are farther from those of float64 than rounding is: "TASK of VENDOR"
-- each.
function rows.wrong(row)
  local list = {}
  for _, v in ipairs(row.vendors) do
    if v.ours_off and v.ours_off > v.allowed then list[#list + 1] = row.task .. " of " .. v.name end
  end
  return list
end

-- Ends the command where there are such.
function rows.refuse_wrong(wrong)
  if #wrong > 0 then
    cli.refuse("results differ, and msched's are not those of float64: %s", table.concat(wrong, ", "))
  end
end

return rows
