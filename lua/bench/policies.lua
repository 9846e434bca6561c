-- msched bench policies: what each policy of the search finds with as many trials, from several seeds. The best kernels
-- of all runs of a workload are timed again, in turn, so that what disturbs the machine disturbs all alike.
local ms = msched
local cli, tools = ms.load "lua.cli.cli", ms.load "lua.bench.tools"
local policies = ms.load "search.policy"

local USUAL = {"C1D", "C2D", "DEP", "GRP", "T2D", "CAP", "SFM", "NRM", "GMM1024"}
local COMPARED = {"analytical", "evolutionary", "annealing", "random"} -- with the first of them
local SECONDS = tools.at_most(0.3) -- of timing, each

-- The kernels that a policy finds from each seed, ready to be called with these arrays.
local function find_kernels(name, func, policy, arrays, options)
  local calls = {}
  for i = 1, options.seeds do
    local task =
      tools.tune_alone(string.format("%s, %s, seed %d", name, policy, options.seed + i - 1), func,
                       {trials = options.trials, seed = options.seed + i - 1, target = options.target, policy = policy})
    local kernel = ms.build(ms.apply(func, task.fastest.trace):func(), {target = task.target.text, reference = func})
    calls[i] = kernel:prepare(table.unpack(arrays))
    calls[i]:run()
  end
  return calls
end

-- A row: of each policy, the median seconds of what each seed gave; mean: geometric, of these; spread: the slowest
-- seed's over the fastest's; ratio: the mean over that of the first policy.
local function compare(name, func, options)
  local arrays, calls, row = ms.arrays_for(func, options.seed), {}, {workload = name, policies = {}}
  ms.fill_for_timing(func, arrays, options.target)
  for _, policy in ipairs(options.policies) do
    table.move(find_kernels(name, func, policy, arrays, options), 1, options.seeds, #calls + 1, calls)
  end
  local times = ms.time_in_turn(calls, SECONDS)
  for p, policy in ipairs(options.policies) do
    local seconds = {}
    for i = 1, options.seeds do seconds[i] = times[(p - 1) * options.seeds + i].seconds end
    local entry = {policy = policy, seconds = seconds, mean = tools.geometric_mean(seconds),
                   spread = math.max(table.unpack(seconds)) / math.min(table.unpack(seconds))}
    row.policies[p] = entry
    entry.ratio = entry.mean / row.policies[1].mean
  end
  return row
end

local function put_row(row, options)
  if options.json then
    return cli.put_json {bench = "policies", workload = row.workload, trials = options.trials, seed = options.seed,
                         policies = row.policies}
  end
  for p, entry in ipairs(row.policies) do
    print(string.format("%-9s %-14s %11s%s%s", row.workload, entry.policy, cli.time_text(entry.mean),
                        options.seeds > 1 and string.format(", worst seed over best %.3f", entry.spread) or "",
                        p > 1 and string.format(", %.2f times as long as %s", entry.ratio, row.policies[1].policy)
                          or ""))
  end
end

-- Over all workloads: the geometric mean of each policy's ratio to the first.
local function put_total(rows, options)
  local total = {}
  for p, policy in ipairs(options.policies) do
    local ratios, worst = {}, 0
    for i, row in ipairs(rows) do ratios[i], worst = row.policies[p].ratio, math.max(worst, row.policies[p].spread) end
    total[p] = {policy = policy, ratio = tools.geometric_mean(ratios), spread = worst}
  end
  if options.json then
    return cli.put_json {bench = "policies total", rows = #rows, trials = options.trials, seeds = options.seeds,
                         policies = total}
  end
  for p, t in ipairs(total) do
    print(string.format("all of %-2d %-14s %s%s", #rows, t.policy,
                        p == 1 and "1.00" or string.format("%.2f times as long", t.ratio),
                        options.seeds > 1 and string.format(", largest spread of seeds %.3f", t.spread) or ""))
  end
end

return function(options, names)
  options.seed, options.trials, options.seeds = options.seed or 1, options.trials or 32, options.seeds or 2
  options.policies = options.policy or COMPARED
  if options.trials < 1 then cli.misuse "--trials: a number of at least 1 is expected" end
  if options.seeds < 1 then cli.misuse "--seeds: a number of at least 1 is expected" end
  for _, policy in ipairs(options.policies) do
    local ok, message = pcall(policies.find, policy)
    if not ok then cli.misuse("%s", tostring(message)) end
  end
  local rows = {}
  for i, w in ipairs(tools.workloads(options, #names > 0 and names or USUAL)) do
    rows[i] = compare(w.name, w.func, options)
    put_row(rows[i], options)
  end
  put_total(rows, options)
  return cli.DONE
end
