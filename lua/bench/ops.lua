-- msched bench ops: the tuned kernels of a suite's operators beside the routines of vendors' libraries (row.lua).
local ms = msched
local rates = ms.load "lua.cli.rates"
local cli, tools, bench_row = ms.load "lua.cli.cli", ms.load "lua.bench.tools", ms.load "lua.bench.row"
local apart, named = ms.load "lua.vendor.apart", ms.load "lua.lib.ops.named"

local SECONDS = tools.at_most(1) -- of timing, each

-- ---- Reports ---------------------------------------------------------------------------------------------------

local function put_row(row, options)
  if options.json then
    local object = {bench = "ops", task = row.task, operator = row.operator, values = row.values, trials = row.trials,
                    seconds = row.seconds, low = row.low, high = row.high, operations = row.operations,
                    unit = row.unit, peak = row.peak, limit = row.limit,
                    share = rates.share(row.limit, row.seconds), unused = row.unused, bytes = row.bytes,
                    bandwidth = row.bandwidth, ratio = row.best and row.best.ratio, vendors = {}}
    for _, v in ipairs(row.vendors) do
      object.vendors[v.name] = {seconds = v.seconds, ratio = v.ratio, library = v.library,
                                routine = v.routine ~= "" and v.routine or nil, difference = v.difference,
                                ours_off = v.ours_off or nil, theirs_off = v.theirs_off or nil}
    end
    return cli.put_json(object)
  end
  local parts = {string.format("%-11s %11s %s", row.task, cli.time_text(row.seconds), cli.rate_text(row, row.seconds))}
  parts[#parts + 1] = rates.share_text(row.limit, row.seconds)
  parts[#parts + 1] = rates.bandwidth_text(row.limit, row.bandwidth, row.bytes, row.seconds)
  for _, v in ipairs(row.vendors) do
    parts[#parts + 1] = string.format("%s %s %.2f%s", v.name, cli.time_text(v.seconds), v.ratio,
                                      v.ours_off and string.format(" (differs by %g; from float64 it is %g off, \z
                                        msched %g)", v.difference, v.theirs_off, v.ours_off) or "")
  end
  print(table.concat(parts, "   "))
  if row.unused then print(string.format("%-11s %s", "", row.unused)) end
  local routine = bench_row.routine_text(row)
  if routine then print(string.format("%-11s %s", "", routine)) end
end

-- The geometric mean of the rows' ratios to the best vendor, and the least.
local function put_total(rows, options)
  local ratios, least, below = {}, nil, 0
  for _, row in ipairs(rows) do
    if row.best then
      ratios[#ratios + 1] = row.best.ratio
      if not least or row.best.ratio < least.best.ratio then least = row end
      if row.best.ratio < 0.8 then below = below + 1 end
    end
  end
  local count, mean = #ratios, tools.geometric_mean(ratios)
  if count == 0 then return end
  if options.json then
    return cli.put_json {bench = "ops total", rows = count, mean = mean, least = least.best.ratio,
                         least_task = least.task, below = below}
  end
  print(string.format("%d operators are %.2f times as fast as the best vendor, by geometric mean; least %s, %.2f; \z
                       below 0.8: %d", count, mean, least.task, least.best.ratio, below))
end

-- ---- The command -----------------------------------------------------------------------------------------------

-- A member's row; nil: there is no record of it.
local function row_of(member, store, options, target, vendors)
  local func = member.func()
  local trace, trials, record = tools.trace_of(member, func, store, target, options)
  if not trace then return nil end
  local row = bench_row.measure(member, func, trace, target, vendors, SECONDS,
                                record and {store = store:path(), record = record}, options.cold)
  row.trials, row.operator = trials, member.operator
  row.values = member.operator and named.values(member.operator, member.words) or nil
  return row
end

local function bench(members, store, options, target, vendors)
  local rows, wrong, failed = {}, {}, 0
  for _, member in ipairs(members) do
    -- One of several that cannot be tuned or measured is said, and leaves the others.
    local ok, row = pcall(row_of, member, store, options, target, vendors)
    if not ok then
      if ms.interrupted() or #members == 1 then error(row, 0) end
      io.stderr:write("msched bench: ", member.name, ": ",
                      type(row) == "table" and row.message or apart.reason(row), "\n")
    elseif row then
      failed = failed + row.failed
      for _, what in ipairs(bench_row.wrong(row)) do wrong[#wrong + 1] = what end
      put_row(row, options)
      rows[#rows + 1] = row
    end
  end
  put_total(rows, options)
  bench_row.refuse_wrong(wrong)
  return #rows == #members and failed == 0 and cli.DONE or cli.FAILED
end

return function(options, words)
  return tools.of_suite(options, words, function(members, target)
    if target.arch and options.onednn then cli.misuse("--onednn: oneDNN has no routine for %s", target.text) end
    if target.arch and options.cold then cli.misuse "--cold: of a GPU, say -timing=cold in --target" end
    local vendors = bench_row.vendors(target, options.onednn, options.json)
    return function(store) return bench(members, store, options, target, vendors) end
  end)
end
