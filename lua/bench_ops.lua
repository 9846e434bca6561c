-- msched bench ops: the tuned kernels of a suite's operators beside the routines of vendors' libraries, on as many
-- threads or the same GPU, timed in turn with what reaches the machine's limits; every element of their results is compared,
-- and where they differ float64 says who is right.
local ms = msched
local cli, tools = ms.load "lua.cli", ms.load "lua.bench_tools"
local named, suites, work = ms.load "lua.ops.named", ms.load "lua.ops.suites", ms.load "lua.bench_work"
local peak, tensor_peak = ms.load "lua.peak", ms.load "lua.tensor_peak"

local SECONDS = 1 -- of timing, each
local LONG, HOPELESS = 0.1, 20 -- seconds, and times our kernel's: what takes longer is timed once
local TOLERANCE = 1e-4 -- of the largest element; and what a routine's result is rounded by

-- ---- One operator ----------------------------------------------------------------------------------------------

-- How far a result is from ours, as a share of the largest element of ours.
local function distance(ours, theirs)
  local most = ours:difference(ms.array(ours:shape()))
  return ours:difference(theirs) / math.max(most, 1e-30)
end

-- An array's elements in another type.
local function in_type(array, type)
  local te, shape = ms.te, array:shape()
  local X = te.placeholder(shape, array:type(), "X")
  local made = ms.array(shape, type)
  ms.build(te.func("convert", {X, te.compute(shape, function(...) return te.cast(X[{...}], type) end, "Y")})):run(array, made)
  return made
end

-- What the operator is in float64, rounded to float32: who is right where results differ.
local function exact(member, arrays)
  local words, wide = {"dtype=float64"}, {}
  for _, word in ipairs(member.words) do if not word:find "^dtype=" then words[#words + 1] = word end end
  for i, a in ipairs(arrays) do wide[i] = in_type(a, "float64") end
  ms.build(named.func(member.operator, words)):run(table.unpack(wide))
  return in_type(wide[#wide], "float32")
end

-- The calls of all vendors that have a routine for what is in these arrays: {name, call, result} each; and `again` of their work.
local function vendor_calls(member, vendors, arrays)
  local w, theirs = work.of(member.operator, named.values(member.operator, member.words), arrays), {}
  for _, v in ipairs(w and vendors or {}) do
    local result = ms.array(arrays[#arrays]:shape())
    local call = v:prepare(work.into(w, result))
    if call then theirs[#theirs + 1] = {name = v:name(), call = call, result = result} end
  end
  theirs.again = w and w.again
  return theirs
end

-- Notes how far a vendor's result is from ours, where it is farther than what was noted before.
local function note_difference(member, v, arrays)
  local ours = arrays[#arrays]
  local difference = distance(ours, v.result)
  if v.difference and difference <= v.difference then return end
  v.difference = difference
  if difference <= TOLERANCE + v.call:rounding() then return end
  local right = exact(member, arrays)
  v.ours_off, v.theirs_off = math.max(v.ours_off or 0, distance(right, ours)), distance(right, v.result)
end

-- Runs our kernel and theirs on what is in the arrays now, and compares. Those that fail are said, and left out of theirs: gives
-- how many.
local function compare(member, ours, theirs, arrays)
  ours:run()
  if theirs.again then theirs.again() end
  local failed = 0
  for i = #theirs, 1, -1 do
    local v = theirs[i]
    local ran, why = pcall(v.call.run, v.call)
    if ran then
      note_difference(member, v, arrays)
    else
      failed = failed + 1
      io.stderr:write("msched bench: ", member.name, ": ", v.name, " fails: ", tostring(why):match "[^\n]*", "\n")
      table.remove(theirs, i)
    end
  end
  return failed
end

-- Our kernel's call and the vendors', which are compared on whole numbers, whose sums are exact, and hold for timing what tuning is
-- timed on: of a GPU numbers with all their digits, by which vendors choose their ways too, and on which all are compared once more.
local function calls_of(member, func, kernel, vendors)
  local arrays = ms.arrays_for(func, 1)
  local function fill() return ms.fill_for_timing(func, arrays, kernel:target()) end
  local digits = fill()
  local ours, theirs = kernel:prepare(table.unpack(arrays)), vendor_calls(member, vendors, arrays)
  if digits then ms.arrays_for(func, 1, arrays) end
  local failed = compare(member, ours, theirs, arrays)
  if digits then
    fill()
    failed = failed + compare(member, ours, theirs, arrays)
  end
  return ours, theirs, failed
end

-- What is timed to see how near a limit is: multiply-adds in registers; on a GPU, whose cache is small beside what kernels
-- move, copies in its memory too.
local function limits_of(target)
  if not target.arch then return {most = peak.call(target.cores)} end
  return {most = peak.device_call(target), copies = peak.device_copy_call(target), tensor = {}}
end

-- The limit of a schedule's arithmetic: of tensor cores, where they multiply in it.
local function limit_of(limits, trace, target)
  local type = target.arch and tensor_peak.type_of {trace}
  if not type then return limits.most end
  limits.tensor[type] = limits.tensor[type] or tensor_peak.call(peak.device_of(target.arch), target, type)
  return limits.tensor[type], tensor_peak.name(type)
end

local function is_of_float32(func)
  for _, p in ipairs(func:params()) do if p.type ~= "float32" then return false end end
  return true
end

-- What a function reads and writes at the least: each of its tensors once.
local function bytes_of(func)
  local bytes = 0
  for _, p in ipairs(func:params()) do
    local size = math.max(1, (tonumber(p.type:match "%d+") or 8) // 8)
    for _, extent in ipairs(p.shape) do size = size * extent end
    bytes = bytes + size
  end
  return bytes
end

-- The times of our kernel and of the vendors' in turn with what reaches the limits: a row.
local function measure(member, func, trace, target, vendors, limits)
  local kernel = ms.build(ms.apply(func, trace):func(), {target = target.text, reference = func})
  local ours, theirs, failed = calls_of(member, func, kernel, vendors)
  local copies = limits.copies
  local most, of = limit_of(limits, trace, target)
  local calls, hopeless = {ours, most.call, copies and copies.call}, math.max(LONG, HOPELESS * work.seconds_of_a_run(ours))
  for _, v in ipairs(theirs) do
    v.seconds = work.seconds_of_a_run(v.call)
    if v.seconds < hopeless then calls[#calls + 1], v.turn = v.call, #calls + 1 end
  end
  local times = ms.time_in_turn(calls, SECONDS)
  local row = {task = member.name, seconds = times[1].seconds, low = times[1].low, high = times[1].high, operations = cli.work_of(func)[1], vendors = theirs, failed = failed}
  row.peak = (of or is_of_float32(func)) and most.operations / times[2].low or nil -- the peak is float32's, or tensor cores'
  row.tensor_cores = of
  if copies then row.bytes, row.bandwidth = bytes_of(func), copies.bytes / times[3].low end
  for _, v in ipairs(theirs) do
    v.seconds = v.turn and times[v.turn].seconds or v.seconds
    v.ratio = v.seconds / row.seconds
    if not row.best or v.seconds < row.best.seconds then row.best = v end
  end
  return row
end

-- ---- Reports ---------------------------------------------------------------------------------------------------

local function share_of_peak(row) return row.peak and string.format(" %3.0f %%", 100 * row.operations / row.seconds / row.peak) .. (row.tensor_cores and " of " .. row.tensor_cores or "") or "" end

local function put_row(row, options)
  if options.json then
    local object = {bench = "ops", task = row.task, trials = row.trials, seconds = row.seconds, low = row.low, high = row.high,
                    operations = row.operations, peak = row.peak, tensor_cores = row.tensor_cores, bytes = row.bytes, bandwidth = row.bandwidth, ratio = row.best and row.best.ratio, vendors = {}}
    for _, v in ipairs(row.vendors) do object.vendors[v.name] = {seconds = v.seconds, ratio = v.ratio, difference = v.difference, ours_off = v.ours_off or nil, theirs_off = v.theirs_off or nil} end
    return cli.put_json(object)
  end
  local parts = {string.format("%-11s %11s %6.1f GFLOP/s%s", row.task, cli.time_text(row.seconds), row.operations / row.seconds / 1e9,
                               share_of_peak(row))}
  if row.bandwidth then
    local rate = row.bytes / row.seconds
    parts[#parts + 1] = string.format("%6.1f GB/s %3.0f %%", rate / 1e9, 100 * rate / row.bandwidth)
  end
  for _, v in ipairs(row.vendors) do
    parts[#parts + 1] = string.format("%s %s %.2f%s", v.name, cli.time_text(v.seconds), v.ratio,
                                      v.ours_off and string.format(" (differs by %g; from float64 it is %g off, msched %g)", v.difference, v.theirs_off, v.ours_off) or "")
  end
  print(table.concat(parts, "   "))
end

-- The geometric mean of the rows' ratios to the best vendor, and the least.
local function put_total(rows, options)
  local sum, count, least, below = 0, 0, nil, 0
  for _, row in ipairs(rows) do
    if row.best then
      sum, count = sum + math.log(row.best.ratio), count + 1
      if not least or row.best.ratio < least.best.ratio then least = row end
      if row.best.ratio < 0.8 then below = below + 1 end
    end
  end
  if count == 0 then return end
  local mean = math.exp(sum / count)
  if options.json then return cli.put_json {bench = "ops total", rows = count, mean = mean, least = least.best.ratio, least_task = least.task, below = below} end
  print(string.format("%d operators are %.2f times as fast as the best vendor, by geometric mean; least %s, %.2f; below 0.8: %d", count, mean,
                      least.task, least.best.ratio, below))
end

-- ---- The command -----------------------------------------------------------------------------------------------

local function bench(members, store, options, target, vendors)
  local rows, differ, failed, limits = {}, {}, 0, nil
  for _, member in ipairs(members) do
    local func = member.func()
    local trace, trials
    if options.trials then trace, trials = tools.tuned(store, func, target, options) else trace = tools.recorded(store, func, target) end
    if trace then
      limits = limits or limits_of(target)
      local row = measure(member, func, trace, target, vendors, limits)
      row.trials, failed = trials or 0, failed + row.failed
      for _, v in ipairs(row.vendors) do if v.ours_off and v.ours_off > TOLERANCE then differ[#differ + 1] = member.name .. " of " .. v.name end end
      put_row(row, options)
      rows[#rows + 1] = row
    else
      io.stderr:write("msched bench: ", member.name, ": no record for ", target.text:match "^%S+", " in ", store:path(), "; --trials N tunes it\n")
    end
  end
  put_total(rows, options)
  if #differ > 0 then cli.refuse("results differ, and msched's are not those of float64: %s", table.concat(differ, ", ")) end
  return #rows == #members and failed == 0 and cli.DONE or cli.FAILED
end

return function(options, words)
  local ok, members = pcall(suites.choose, options.suite or "ops", words)
  if not ok then cli.misuse("%s", tostring(members)) end
  if options.trials == 0 then cli.misuse("--trials: a number of at least 1 is expected") end
  local target = ms.target(options.target or "native", {runs = true})
  if target.arch and options.onednn then cli.misuse("--onednn: oneDNN has no routine for %s", target.text) end
  local opened, vendors, notes = pcall(target.arch and ms.device_vendors or ms.vendors, target.arch and target.text or target.cores, options.onednn)
  if not opened then cli.refuse("%s", tostring(vendors)) end
  for _, note in ipairs(notes or {}) do io.stderr:write("msched bench: ", note, "\n") end
  if not options.json then for _, v in ipairs(vendors) do print(string.format("%-13s %s", v:name(), tostring(v))) end end
  local function run(store) return bench(members, store, options, target, vendors) end
  if options.trials and not options.db then return tools.with_store(run) end
  return run(cli.open_store(options.db, not options.trials))
end
