-- msched bench auto: what ms.auto_schedule gives at once, or with --no-tune the analytical model's top-ranked
-- candidate, beside what tuning finds, operator by operator, timed in turn.
-- msched bench lenet: a network scheduled in one call beside the same with its outer loops made parallel.
local ms = msched
local cli, tools = ms.load "lua.cli.cli", ms.load "lua.bench.tools"
local common, tune = ms.load "rules.common", ms.load "search.tune"

local SECONDS = tools.at_most(0.5) -- of timing, each
local TOLERANCE = 1e-4 -- of probabilities
local NEAR = 1.7 -- times as long as tuned: what counts as near

-- A schedule at once: how long that took, and whether its template was known; and the schedule.
local function schedule_at_once(func, target, options)
  local start = ms.clock()
  local sch, about = ms.auto_schedule(func, {target = target.text, seed = options.seed})
  return sch, {seconds = ms.clock() - start, known = about.known}
end

-- The top-ranked candidate, as tuning without a measurement gives it: how long that took, and the schedule.
local function first_proposal(func, target, options)
  return tools.with_store(function(store)
    local start = ms.clock()
    local task = tune.run(func, {target = target.text, seed = options.seed, store = store, no_tune = true})
    local seconds = ms.clock() - start
    if not task.fastest then cli.refuse("%s: %s", func:name(), tune.why(task)) end
    return ms.apply(func, task.fastest.trace), {seconds = seconds}
  end)
end

-- ---- Operators ---------------------------------------------------------------------------------------------------

local function measure(member, func, trace, target, options)
  local sch, took = (options["no-tune"] and first_proposal or schedule_at_once)(func, target, options)
  local auto = tools.kernel_of(func, sch:func(), target)
  local times = tools.time_kernels(func, {auto, tools.kernel_of(func, ms.apply(func, trace):func(), target)},
                                   SECONDS)
  return {task = member.name, code = member.code, seconds = times[1].seconds, tuned = times[2].seconds,
          ratio = times[1].seconds / times[2].seconds, scheduling = took.seconds, known = took.known}
end

local function put_row(row, options)
  if options.json then
    return cli.put_json {bench = "auto", task = row.task, seconds = row.seconds, tuned = row.tuned, ratio = row.ratio,
                         scheduling = row.scheduling, known = row.known, trials = row.trials}
  end
  print(string.format("%-10s %11s  tuned %11s  %5.2f times as long  scheduled in %.3f s%s", row.task,
                      cli.time_text(row.seconds), cli.time_text(row.tuned), row.ratio, row.scheduling,
                      row.known and " by a template that was known" or ""))
end

local function ratios_of(rows)
  local list = {}
  for i, row in ipairs(rows) do list[i] = row.ratio end
  return list
end

local function mean_of(rows) return tools.geometric_mean(ratios_of(rows)) end

local function median_of(rows)
  local list = ratios_of(rows)
  table.sort(list)
  return (list[(#list + 1) // 2] + list[#list // 2 + 1]) / 2
end

-- By operator, then of all.
local function put_total(rows, options)
  local by_code, codes, near = {}, {}, 0
  for _, row in ipairs(rows) do
    if not by_code[row.code] then by_code[row.code], codes[#codes + 1] = {}, row.code end
    table.insert(by_code[row.code], row)
    if row.ratio <= NEAR then near = near + 1 end
  end
  for _, code in ipairs(options.json and {} or codes) do
    local list, most = by_code[code], 0
    for _, row in ipairs(list) do most = math.max(most, row.ratio) end
    print(string.format("%-10s %5.2f times as long by geometric mean of %d, at most %.2f", code, mean_of(list), #list,
                        most))
  end
  if options.json then
    return cli.put_json {bench = "auto total", rows = #rows, near = near, mean = mean_of(rows), limit = NEAR,
                         median = median_of(rows)}
  end
  print(string.format("%d of %d operators (%.0f %%) take at most %.1f times as long as tuned; %.2f by geometric mean, \z
                       %.2f by median: %.0f %% of the speed", near, #rows, 100 * near / #rows, NEAR, mean_of(rows),
                      median_of(rows), 100 / median_of(rows)))
end

local function bench_members(members, store, options, target)
  local rows = {}
  for _, member in ipairs(members) do
    local func = member.func()
    local trace, trials = tools.trace_of(member, func, store, target, options)
    if trace then
      local row = measure(member, func, trace, target, options)
      row.trials = trials
      put_row(row, options)
      rows[#rows + 1] = row
    end
  end
  if #rows > 0 then put_total(rows, options) end
  return #rows == #members and cli.DONE or cli.FAILED
end

local bench = {}

function bench.auto(options, words)
  return tools.of_suite(options, words, function(members, target)
    return function(store) return bench_members(members, store, options, target) end
  end)
end

-- ---- A network ---------------------------------------------------------------------------------------------------

-- Every block where it is, its outermost spatial loop parallel: what one writes without a scheduler.
local function outer_loops_parallel(func)
  local sch = ms.schedule(func)
  for _, name in ipairs(sch:block_names()) do
    local block = sch:get_sblock(name)
    local kinds, loops = common.loop_kinds(sch, block)
    local outer = {}
    for i, l in ipairs(sch:is_root(block) and {} or loops) do
      if kinds[i] ~= "spatial" then break end
      outer[#outer + 1] = l
    end
    if #outer > 0 then sch:parallel(#outer > 1 and sch:fuse(outer) or outer[1]) end
  end
  return sch
end

-- What is left of the blocks once some were computed inside others.
local function passes_of(sch)
  local seen, count, root = {}, 0, sch:root_block()
  for _, name in ipairs(sch:block_names()) do
    local loops = name ~= root and {sch:get_loops(sch:get_sblock(name))} or {}
    local outer = loops[1] and tostring(loops[1])
    if outer and not seen[outer] then seen[outer], count = true, count + 1 end
  end
  return count
end

function bench.lenet(options, words)
  local batch = math.tointeger(tonumber(words[1] or "32") or 0) or 0
  if batch < 1 or #words > 1 then cli.misuse("bench lenet takes a batch, a number of at least 1") end
  local target = ms.target(options.target or "native", {runs = true})
  local func = cli.functions_of(ms.bench_data .. "/../../lua/examples/lenet.lua", {tostring(batch)})[1]
  local sch, took = (options["no-tune"] and first_proposal or schedule_at_once)(func, target, options)
  local plain = outer_loops_parallel(func)
  local auto = tools.kernel_of(func, sch:func(), target)
  local other = tools.kernel_of(func, plain:func(), target)
  local difference = ms.compare(auto, function(...) other:run(...) end, 1)
  if not (difference <= TOLERANCE) then cli.refuse("lenet: the schedules' results differ by %g", difference) end
  local times = tools.time_kernels(func, {auto, other}, SECONDS)
  local row =
    {bench = "lenet", batch = batch, seconds = times[1].seconds, parallel = times[2].seconds, ratio = times[2].seconds
     / times[1].seconds, scheduling = took.seconds, passes = passes_of(sch), blocks = passes_of(plain)}
  if options.json then cli.put_json(row)
  else
    print(string.format("lenet, batch %d: %s in %d passes, scheduled in %.2f s; outer loops parallel, in %d passes: \z
                         %s, %.1f times as long", batch, cli.time_text(row.seconds), row.passes, row.scheduling,
                        row.blocks, cli.time_text(row.parallel), row.ratio))
  end
  return cli.DONE
end

return bench
