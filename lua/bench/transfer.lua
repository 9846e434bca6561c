-- msched bench transfer: how many trials a task needs until it is within some percent of the best that is found, with a
-- model that was trained on the records of the other tasks and without. Each run is one of `msched tune` in a store of
-- its own; times are recorded in --db, so that each candidate is measured once, whichever run asks for it. With
-- --recorded nothing is measured: the candidates of a function are its records.
local ms = msched
local cli, tools, recorded = ms.load "lua.cli.cli", ms.load "lua.bench.tools", ms.load "lua.bench.recorded"
local policies, tune, operators = ms.load "search.policy", ms.load "search.tune", ms.load "lua.lib.ops.named"
local transfer = ms.load "search.transfer"

-- Operators of different kinds, which a core does in 2 to 120 us.
local USUAL = {
  {"conv1d", 1, 128, 64, 128, 3, 1, 1}, {"conv2d", 1, 14, 14, 64, 64, 3, 1, 1}, {"conv2d", 1, 28, 28, 64, 64, 1, 1, 0},
  {"depthwise_conv2d", 1, 28, 28, 64, 3, 1, 1},
  {"conv2d", 1, 14, 14, 64, 64, 3, 1, 1, 1, 4}, {"conv2d_transpose", 1, 8, 8, 64, 32, 4, 2, 1},
  {"matmul", 192, 192, 192}, {"batch_matmul", 12, 64, 64, 64},
  {"softmax", "128x128"}, {"max_pool", 1, 28, 28, 64, 3, 2, 1},
}
local NEAR = 1.05 -- times the best: what is looked for

local function usual()
  local list = {}
  for i, line in ipairs(USUAL) do
    local words = {}
    for k = 2, #line do words[k - 1] = tostring(line[k]) end
    local ok, func = pcall(operators.func, line[1], words)
    if not ok then error(func, 0) end
    list[i] = {name = func:name(), func = func}
  end
  return list
end

-- ---- Runs ------------------------------------------------------------------------------------------------------

-- A run: the best so far after each trial. from: a store of records that a model is trained on, nil: none is.
local function run(task, seed, policy, store, from, options)
  local bests = {}
  local target = ms.target(options.target or "native", {runs = true})
  tools.with_store(function(own)
    local measurer = recorded.open(store, target)
    local progress = tools.progress_line(string.format("%s, %s, seed %d", task.name, policy, seed))
    local function listen(e)
      if e.event == "trial" and e.best_seconds then
        bests[e.done] = math.min(e.best_seconds, bests[e.done] or math.huge)
      end
      progress(e)
    end
    tune.run(task.func, {trials = options.trials, seed = seed, policy = policy, target = target.text, store = own,
                         measurer = measurer, transfer_from = from, transfer = from ~= nil, listen = listen})
    if ms.interrupted() then cli.refuse("interrupted; %s keeps what was measured", store:path()) end
  end)
  return bests
end

-- The least of all runs, after so many trials of each where that is given.
local function best_of(runs, trials)
  local best = math.huge
  for _, bests in ipairs(runs) do
    for i, seconds in pairs(bests) do if i <= (trials or math.huge) then best = math.min(best, seconds) end end
  end
  return best
end

-- Trials until one took no longer than `most`; nil: none did.
local function reached(bests, most, trials)
  for i = 1, trials do if bests[i] and bests[i] <= most then return i end end
end

-- What the best after so many trials gains: its time without over that with, as a geometric mean over all runs.
local function gain_after(trials, rows)
  local list = {}
  for _, row in ipairs(rows) do
    for s, bests in ipairs(row.runs.without) do
      local without, with = best_of({bests}, trials), best_of({row.runs.with[s]}, trials)
      if without < math.huge and with < math.huge then list[#list + 1] = without / with end
    end
  end
  return #list > 0 and tools.geometric_mean(list) or 1
end

-- ---- The report ------------------------------------------------------------------------------------------------

-- Trials of each seed, those that did not reach it as all of them.
local function trials_of(runs, goal, options)
  local list = {}
  for i, bests in ipairs(runs) do list[i] = reached(bests, goal, options.trials) or options.trials end
  return list
end

local function report(task, policy, without, with, options, best)
  best = best or best_of(without)
  local row = {bench = "transfer", task = task.name, policy = policy, trials = options.trials, best_seconds = best,
               without = trials_of(without, NEAR * best, options), with = trials_of(with, NEAR * best, options)}
  if options.json then cli.put_json(row) else
    print(string.format("%-36s %-13s best %11s; within %.0f %% after trials %s; with the others' records %s", task.name,
                        policy, cli.time_text(best), 100 * (NEAR - 1), table.concat(row.without, " "),
                        table.concat(row.with, " ")))
  end
  row.runs = {without = without, with = with}
  return row
end

local function report_total(rows, policy, options)
  local all = {without = {}, with = {}}
  local better, worse = 0, 0
  for _, row in ipairs(rows) do
    for i in ipairs(row.without) do
      all.without[#all.without + 1], all.with[#all.with + 1] = row.without[i], row.with[i]
      better, worse = better + (row.with[i] < row.without[i] and 1 or 0),
        worse + (row.with[i] > row.without[i] and 1 or 0)
    end
  end
  local function sum(list) local s = 0; for _, x in ipairs(list) do s = s + x end return s end
  local without, with = sum(all.without), sum(all.with)
  local total = {bench = "transfer total", policy = policy, runs = #all.with, without = without, with = with,
                 mean_without = tools.geometric_mean(all.without), mean_with = tools.geometric_mean(all.with),
                 better = better, worse = worse, gains = {}}
  local gains = {}
  for trials = 2, 8 do
    if 1 << trials > options.trials then break end
    local gain = gain_after(1 << trials, rows)
    total.gains[#total.gains + 1] = {trials = 1 << trials, gain = gain}
    gains[#gains + 1] = string.format("%.2f after %d", gain, 1 << trials)
  end
  if options.json then return cli.put_json(total) end
  print(string.format("%s, %d runs: %d trials without, %d with; geometric means %.1f and %.1f; fewer in %d runs, more \z
                       in %d", policy, #all.with, without, with, total.mean_without, total.mean_with, better, worse))
  if #gains > 0 then print("the best with is faster, geometric means: " .. table.concat(gains, ", ") .. " trials") end
end

-- ---- Records as candidates -----------------------------------------------------------------------------------------

local LEAST_RECORDS = 64 -- of a function
local BATCH, EPSILON = 32, 0.05 -- as search/policy/evolutionary.lua

-- Records of a task that were measured, in an order that the seed draws: {features, seconds}.
local function drawn(candidates, seed)
  local list, stream = table.move(candidates, 1, #candidates, 1, {}), ms.stream(seed, 0, 1)
  for i = #list, 2, -1 do
    local k = stream:below(i) + 1
    list[i], list[k] = list[k], list[i]
  end
  return list, stream
end

-- Places of candidates, those first that a model likes best; nil model: as they are.
local function places_of(model, candidates)
  local places, scores = {}, model and model:predict(candidates)
  for i = 1, #candidates do places[i] = i end
  if scores then
    table.sort(places, function(a, b)
      return scores[a] ~= scores[b] and scores[a] > scores[b] or scores[a] == scores[b] and a < b
    end)
  end
  return places
end

-- The places of which a model of others chooses first: a batch of the best.
local function drawn_places(places, stream)
  local best = table.move(places, 1, math.min(#places, transfer.most(#places, BATCH)), 1, {})
  transfer.draw(best, BATCH, stream)
  return table.move(best, 1, #best, 1, places)
end

-- The next batch, a few by chance, is taken out of those that are left.
local function take_batch(left, places, stream)
  local taken, batch, at = {}, {}, 1
  for _ = 1, math.min(BATCH, #left) do
    local i = stream:unit() < EPSILON and stream:below(#left) + 1
    if not i or taken[i] then
      while taken[places[at]] do at = at + 1 end
      i = places[at]
    end
    taken[i], batch[#batch + 1] = true, left[i]
  end
  local rest = {}
  for i, c in ipairs(left) do if not taken[i] then rest[#rest + 1] = c end end
  return batch, rest
end

-- The best so far after each trial. others: the model that chooses the first batch; nil: chance does.
local function choose(candidates, others, seed, trials)
  local left, stream = drawn(candidates, seed)
  local model, bests, done, best, batch = ms.model("xgboost", seed), {}, 0, math.huge, nil
  while done < trials and #left > 0 do
    local places = places_of(done > 0 and model or others, left)
    if done == 0 and others then places = drawn_places(places, stream) end
    batch, left = take_batch(left, places, stream)
    for _, c in ipairs(batch) do
      done, best = done + 1, math.min(best, c.seconds)
      bests[done] = best
    end
    model:update(batch)
  end
  return bests
end

-- The functions of the store that have records enough on the target: {name, func, workload, candidates}.
local function recorded_tasks(store, target)
  local list = {}
  for _, w in ipairs(store:workloads()) do
    local task = {name = w.name, workload = w.id, func = store:get_workload(w.id), target = target, candidates = {}}
    for _, r in ipairs(store:records {workload = w.id, target = target.text}) do
      local ok, sch = pcall(function() return ms.apply(task.func, ms.read_trace(r.trace)) end)
      if ok and r.status == "measured" then
        table.insert(task.candidates, {features = ms.features(sch), seconds = r.seconds, hash = r.hash})
      end
    end
    table.sort(task.candidates, function(a, b) return a.hash < b.hash end)
    if #task.candidates >= LEAST_RECORDS then list[#list + 1] = task end
  end
  table.sort(list, function(a, b)
    return a.name ~= b.name and a.name < b.name or a.name == b.name and a.workload < b.workload
  end)
  return list
end

local function bench_recorded(store, options)
  local target, rows, taught = ms.target(options.target or "native"), {}, 0
  local tasks = recorded_tasks(store, target)
  for _, task in ipairs(tasks) do
    local others = transfer.model(task, {task}, store, options.seed)
    if ms.interrupted() then cli.refuse "interrupted" end
    local without, with = {}, {}
    taught = taught + (others and 1 or 0)
    for s = 1, options.seeds do
      local seed = options.seed + s - 1
      without[s] = choose(task.candidates, nil, seed, options.trials)
      with[s] = others and choose(task.candidates, others, seed, options.trials) or without[s]
    end
    local all = {{math.huge}} -- the best of all records, whichever runs find it
    for i, c in ipairs(task.candidates) do all[1][i] = c.seconds end
    rows[#rows + 1] = report(task, "recorded", without, with, options, best_of(all))
  end
  local path = store:path()
  store:close()
  if taught == 0 then
    cli.refuse("%s: two functions at least that are alike, with %d records that were measured on %s, are needed", path,
               LEAST_RECORDS, target.text)
  end
  report_total(rows, "recorded", options)
  return cli.DONE
end

return function(options, words)
  options.seed, options.trials, options.seeds = options.seed or 1, options.trials or 256, options.seeds or 3
  if options.recorded and (options.policy or #words > 0) then
    cli.misuse "--recorded takes the functions of the store, and no policy"
  end
  options.policies = options.policy or {"evolutionary"}
  if options.trials < 1 then cli.misuse "--trials: a number of at least 1 is expected" end
  if options.seeds < 1 then cli.misuse "--seeds: a number of at least 1 is expected" end
  for _, policy in ipairs(options.policies) do
    local ok, found = pcall(policies.find, policy)
    if not ok then cli.misuse("%s", tostring(found)) end
    if not found.needs.transfer then
      cli.misuse("--policy: `%s` takes nothing from other functions; `evolutionary` does", policy)
    end
  end
  if options.recorded then return bench_recorded(cli.open_store(options.db, "read"), options) end
  local tasks = #words > 0 and tools.workloads(options, words) or usual()
  local function bench(store)
    local runs = {}
    for _, policy in ipairs(options.policies) do
      runs[policy] = {}
      for i, task in ipairs(tasks) do
        runs[policy][i] = {}
        for s = 1, options.seeds do
          runs[policy][i][s] = run(task, options.seed + s - 1, policy, store, nil, options)
        end
      end
    end
    return ms.with_folder(function(folder)
      store:backup(folder .. "/before.db") -- what runs with it measure teaches none of them
      local from = ms.store(folder .. "/before.db", {read_only = true})
      for _, policy in ipairs(options.policies) do
        local rows = {}
        for i, task in ipairs(tasks) do
          local with = {}
          for s = 1, options.seeds do with[s] = run(task, options.seed + s - 1, policy, store, from, options) end
          rows[i] = report(task, policy, runs[policy][i], with, options)
        end
        report_total(rows, policy, options)
      end
      from:close()
      return cli.DONE
    end)
  end
  if options.db then return bench(cli.open_store(options.db)) end
  return tools.with_store(bench)
end
