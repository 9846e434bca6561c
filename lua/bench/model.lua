-- msched bench model: how well the cost model ranks results of a store that it has not seen, and what each group of
-- features is worth: the same with that group left out; and how well the estimate does, which learns nothing.
local ms = msched
local cli, estimate = ms.load "lua.cli.cli", ms.load "lua.bench.estimate"

-- A feature is of the first group that has a pattern of its name.
local GROUPS = {
  {"arithmetic", "^float_", "^int_", "^truth_", "^selections$", "^casts$", "^loads$"},
  {"vectorized", "^vectorized_"},
  {"unrolled", "^unrolled_", "unroll_step$"},
  {"parallel", "^parallel_"},
  {"threads", "^blockIdx", "^threadIdx", "^vthread", "^clusterCtaIdx"},
  {"access", "^buffer%d_read$", "^buffer%d_write$", "^buffer%d_read_write$", "^buffer%d_stride$"},
  {"reuse", "^buffer%d_reuse_", "_by_reuse$"},
  {"bytes", "^buffer%d_"},
  {"intensity", "^intensity_"},
  {"outer", "^written_", "^serial_product$", "^iterations$", "^loops$", "^conditions$"},
}
local PARTS, LEAST = 4, 32 -- results are parted so often, and each part predicted from the others; fewer say nothing

local function columns_of_groups()
  local columns = {}
  for _, g in ipairs(GROUPS) do columns[g[1]] = {} end
  local function group_of(name)
    for _, g in ipairs(GROUPS) do
      for i = 2, #g do if name:find(g[i]) then return g[1] end end
    end
    error("no group has the feature " .. name)
  end
  for i, name in ipairs(ms.feature_names()) do table.insert(columns[group_of(name)], i) end
  return columns
end

-- ---- Results of the store ----------------------------------------------------------------------------------------

-- Those of a function that were measured here, fastest first.
local function results_of(store, func, workload, target)
  local list = {}
  for _, r in ipairs(store:records {workload = workload, target = target}) do
    if r.status ~= "failed" and r.versions == ms.versions() then
      local ok, sch = pcall(ms.apply, func, ms.read_trace(r.trace)) -- one that is refused now says nothing
      if ok then list[#list + 1] = {features = ms.features(sch), seconds = r.seconds} end
    end
  end
  return list
end

-- ---- How good a ranking is -----------------------------------------------------------------------------------------

-- Places in rising order; equals share theirs.
local function ranks(values)
  local order, places = {}, {}
  for i = 1, #values do order[i] = i end
  table.sort(order, function(a, b)
    return values[a] ~= values[b] and values[a] < values[b] or values[a] == values[b] and a < b
  end)
  local i = 1
  while i <= #order do
    local last = i
    while last < #order and values[order[last + 1]] == values[order[i]] do last = last + 1 end
    for k = i, last do places[order[k]] = (i + last) / 2 end
    i = last + 1
  end
  return places
end

-- Spearman's correlation of the scores with the speeds.
local function correlation(scores, speeds)
  local x, y, mean = ranks(scores), ranks(speeds), (#scores + 1) / 2
  local xy, xx, yy = 0, 0, 0
  for i = 1, #x do
    xy, xx, yy = xy + (x[i] - mean) * (y[i] - mean), xx + (x[i] - mean) ^ 2, yy + (y[i] - mean) ^ 2
  end
  return xx * yy > 0 and xy / math.sqrt(xx * yy) or 0
end

-- Of the fastest eighth, the share that is among the best quarter by score.
local function recall(scores, speeds)
  local x, y, fast, found = ranks(scores), ranks(speeds), 0, 0
  local few = #x // 8
  for i = 1, #x do
    if y[i] > #x - few then -- equals share their place: these may be more than few, or less
      fast = fast + 1
      if x[i] > #x - 2 * few then found = found + 1 end
    end
  end
  return fast > 0 and found / fast or 0
end

-- Each part of the results is ranked by a model that learned from the others: the means of both measures.
local function judge(results, left_out, seed)
  local candidates, r, k = {}, 0, 0
  for i, c in ipairs(results) do candidates[i] = {features = c.features:without(left_out), seconds = c.seconds} end
  for part = 1, PARTS do
    local known, unknown, speeds = {}, {}, {}
    for i, c in ipairs(candidates) do table.insert(i % PARTS == part % PARTS and unknown or known, c) end
    for i, c in ipairs(unknown) do speeds[i] = 1 / c.seconds end
    local model = ms.model("xgboost", seed)
    model:update(known)
    local scores = model:predict(unknown)
    r, k = r + correlation(scores, speeds) / PARTS, k + recall(scores, speeds) / PARTS
  end
  return r, k
end

local function report_estimate(name, list, options)
  local tau, first = estimate.tau(list), estimate.first(list)
  if options.json then
    cli.put_json {bench = "model", task = name, results = #list, estimate = {tau = tau, first = first}}
  else
    print(string.format("%s: %d results  the estimate's Kendall tau %.3f  its first takes %.2f times the fastest's \z
                         time", name, #list, tau, first))
  end
end

-- ---- The report ----------------------------------------------------------------------------------------------------

local function report(name, results, options)
  local columns = columns_of_groups()
  local full_correlation, full_recall = judge(results, {}, options.seed or 1)
  local function line(group, count, r, k)
    if options.json then
      cli.put_json {bench = "model", task = name, results = #results, without = group, features = count,
                    correlation = r, recall = k}
    elseif group then
      print(string.format("  without %-11s %3d features  correlation %6.3f (%+.3f)  recall %5.3f (%+.3f)", group, count,
                          r, r - full_correlation, k, k - full_recall))
    else
      print(string.format("%s: %d results  correlation %.3f  recall %.3f", name, #results, r, k))
    end
  end
  line(nil, #ms.feature_names(), full_correlation, full_recall)
  for _, g in ipairs(GROUPS) do line(g[1], #columns[g[1]], judge(results, columns[g[1]], options.seed or 1)) end
end

return function(options)
  local store = cli.open_store(options.db, "read")
  local machine = ms.target(options.target or "native")
  local target = machine.text
  local model, judged = ms.model("xgboost", options.seed or 1), 0
  for task, w in ipairs(store:workloads()) do
    local results = results_of(store, store:get_workload(w.id), w.id, target)
    for _, r in ipairs(results) do r.task = task end
    model:update(results)
    if #results >= LEAST then
      judged = judged + 1
      report(w.name, results, options)
    elseif not options.json then
      print(string.format("%s: %d results of %s; at least %d can be judged", w.name, #results, target, LEAST))
    end
    local estimates = estimate.results(store, store:get_workload(w.id), w.id, machine)
    if #estimates >= estimate.LEAST then
      judged = judged + 1
      report_estimate(w.name, estimates, options)
    end
    if ms.interrupted() then cli.refuse("interrupted") end
  end
  local path = store:path()
  store:close()
  if options.save then model:save(options.save) end
  if judged == 0 then
    cli.refuse("%s has no function with %d results of %s: tune one first", path, estimate.LEAST, target)
  end
end
