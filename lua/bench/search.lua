-- msched bench search: what a candidate of the search costs, stage by stage, in the search's own pool and workers; what
-- a model's update and predictions cost; what each pass of a build takes; and what a run waits for.
local ms = msched
local cli, tools = ms.load "lua.cli.cli", ms.load "lua.bench.tools"
local tune = ms.load "search.tune"

local USUAL = {"GMM1024", "C2D", "SFM"}
local ALL = {"C1D", "C2D", "C3D", "CAP", "CBR", "DEP", "DIL", "ELT", "GMM", "GMM1024", "GMM2", "GRP", "GMM_RELU",
             "GMM_ROW", "NRM", "POOL", "SFM", "T2D", "TBG"}
local STAGES = {"propose", "replay", "postprocess", "hash", "features", "trace", "around", "predict"}
local POPULATION = 512 -- jobs at a time, as in evolution
local MUTATION = 2 -- its number among streams
local MOST_BUILDS = 16
local SHOWN = 0.02 -- passes with a larger share of a build than this are shown by name

-- ---- Candidates ------------------------------------------------------------------------------------------------

local function draw_jobs(b, first)
  local jobs = {}
  for i = 1, math.min(POPULATION, b.count - first) do
    local candidate = first + i
    jobs[i] = {trace = b.sketches[candidate % #b.sketches + 1], seed = b.seed, candidate = candidate, resample = true}
  end
  return jobs
end

local function draw_mutator(b, stream)
  local at = stream:unit() * b.weights
  for _, m in ipairs(b.mutators) do
    at = at - m[2]
    if at < 0 then return m[1] end
  end
  return b.mutators[#b.mutators][1]
end

local function mutate_jobs(b, first)
  local stream, jobs = ms.stream(b.seed, first, MUTATION), {}
  for i = 1, math.min(POPULATION, b.count - first) do
    local parent = b.parents[stream:below(#b.parents) + 1].sketch_trace
    jobs[i] = {trace = draw_mutator(b, stream).apply(parent, stream) or parent, seed = b.seed,
               candidate = b.count + first + i}
  end
  return jobs
end

-- What a run of the search does with jobs: candidates.
local function replay(b, jobs)
  local list, made, _, script_error = {}, b.pool:replay(jobs, true)
  if script_error then cli.refuse("%s", script_error) end
  for _, c in ipairs(made) do
    if c then list[#list + 1] = c end
  end
  return list
end

-- Makes b.count candidates; gives them, and the microseconds of the processor that each of those accepted cost by
-- stage: what was refused is part of it. propose: making the job; around: what becomes of jobs and results as values of
-- Lua.
local function measure_candidates(b, make_jobs)
  local candidates, propose, all, predict = {}, 0, 0, 0
  local before = b.pool:costs()
  for first = 0, b.count - 1, POPULATION do
    local start = os.clock() -- of all threads
    local jobs = make_jobs(b, first)
    local made = os.clock()
    local list = replay(b, jobs)
    local replayed = os.clock()
    if b.model then b.model:predict(list) end
    propose, all, predict = propose + made - start, all + replayed - made, predict + os.clock() - replayed
    table.move(list, 1, #list, #candidates + 1, candidates)
  end
  local costs, cost = b.pool:costs(), {around = all, propose = propose, predict = predict}
  for _, stage in ipairs {"replay", "postprocess", "hash", "features", "trace"} do
    cost[stage] = costs[stage] - before[stage]
    cost.around = cost.around - cost[stage]
  end
  local accepted = costs.accepted - before.accepted
  if accepted == 0 then cli.refuse("%s: every candidate was refused", b.name) end
  for stage, seconds in pairs(cost) do cost[stage] = seconds / accepted * 1e6 end
  cost.candidate = cost.replay + cost.postprocess + cost.hash + cost.features
  cost.refused = b.count - accepted
  return candidates, cost
end

-- A model that has learned of all candidates, as if each had run in another time; and how long that took.
local function learn(b, candidates)
  local model, stream, samples = ms.model("xgboost", b.seed), ms.stream(b.seed), {}
  for i, c in ipairs(candidates) do samples[i] = {features = c.features, seconds = 1 + stream:unit()} end
  local start = ms.clock()
  model:update(samples)
  model:predict {candidates[1]} -- waits for what is learned
  return model, ms.clock() - start
end

-- ---- Builds ----------------------------------------------------------------------------------------------------

-- Builds some of the candidates, spread over all: their number, and seconds of each pass in a build on average, by
-- name.
local function measure_builds(func, candidates, options)
  local built, seconds = math.min(MOST_BUILDS, options.trials, #candidates), {}
  for i = 1, built do
    local candidate = candidates[(i * #candidates + built - 1) // built]
    local kernel = ms.build(ms.apply(func, candidate.trace):func(), {target = options.target})
    for _, p in ipairs(kernel:passes()) do seconds[p.pass] = (seconds[p.pass] or 0) + p.seconds / built end
  end
  return built, seconds
end

-- ---- A run of the search ---------------------------------------------------------------------------------------

-- Seconds to the first result, of a trial, and of a build, on average; and the share of the time in which kernels ran.
local function measure_run(name, func, options)
  local first, build, running, results = nil, 0, 0, 0
  local progress = tools.progress_line(name)
  local task = tools.with_store(function(store)
    return tune.run(func, {trials = options.trials, seed = options.seed, target = options.target, store = store,
      listen = function(e)
      if e.event == "trial" then
        first = first or e.elapsed
        build, running, results = build + e.build_seconds, running + e.run_seconds, results + 1
      end
      progress(e)
    end})
  end)
  if task.done == 0 then cli.refuse("%s", tune.why(task)) end
  return {first_trial_seconds = first, seconds_per_trial = task.seconds / task.done, build_seconds = build / results,
          running_share = running / task.seconds}
end

-- ---- A workload ------------------------------------------------------------------------------------------------

local function cost_line(name, kind, cost)
  local parts = {}
  for _, stage in ipairs(STAGES) do
    if cost[stage] > 0 then parts[#parts + 1] = string.format("%s %.1f", stage, cost[stage]) end
  end
  print(string.format("%-9s %-8s %6.1f us a candidate; %s; %d refused", name, kind, cost.candidate,
                      table.concat(parts, ", "), cost.refused))
end

local function passes_line(line)
  local names, all, shown = ms.sorted_keys(line.passes), 0, {}
  for _, name in ipairs(names) do all = all + line.passes[name] end
  table.sort(names, function(a, b)
    local x, y = line.passes[a], line.passes[b]
    return x > y or x == y and a < b
  end)
  local rest = all
  for _, name in ipairs(names) do
    if line.passes[name] > SHOWN * all then
      shown[#shown + 1] = string.format("%s %.1f", name, line.passes[name] * 1e3)
      rest = rest - line.passes[name]
    end
  end
  print(string.format("%-9s builds   %6.1f ms a build of %d; %s, %d others %.1f", line.workload, all * 1e3, line.built,
                      table.concat(shown, ", "), #names - #shown, rest * 1e3))
end

local function report(line)
  local name = line.workload
  for _, kind in ipairs {"drawn", "mutated"} do
    cost_line(name, kind, line[kind])
    local tvm = line.tvm and line.tvm[kind]
    if tvm then
      print(string.format("%-9s %-8s %6.0f us by TVM, %.0f times as many", name, kind, tvm,
                          tvm / line[kind].candidate))
    end
  end
  print(string.format("%-9s model    update %.3f s for %d candidates", name, line.update_seconds, line.lessons))
  if not line.first_trial_seconds then return end
  passes_line(line)
  print(string.format("%-9s run      first trial after %.2f s, %.3f s a trial, %.3f s a build, kernels ran in %.0f %% \z
                       of the time", name, line.first_trial_seconds, line.seconds_per_trial, line.build_seconds,
                      100 * line.running_share))
end

local function bench_workload(name, func, options)
  local target = ms.target(options.target or "native")
  local space = tune.open(func, target, {seed = options.seed})
  local b = {name = name, count = options.count, seed = options.seed, sketches = {}, mutators = space.mutators,
             weights = 0, pool = ms.pool(func, {jobs = 1, target = options.target or "native"})}
  for i, s in ipairs(space.sketches) do b.sketches[i] = s.trace:simplified(false) end
  for _, m in ipairs(space.mutators) do b.weights = b.weights + m[2] end
  replay(b, draw_jobs(b, 0)) -- what memory it takes is there from then on
  local line = {bench = "search", workload = name, seed = options.seed}
  b.parents, line.drawn = measure_candidates(b, draw_jobs)
  b.model, line.update_seconds = learn(b, b.parents)
  line.lessons = #b.parents
  line.mutated = select(2, measure_candidates(b, mutate_jobs))
  b.pool:close()
  if options.trials > 0 then
    line.built, line.passes = measure_builds(func, b.parents, options)
    for key, value in pairs(measure_run(name, func, options)) do line[key] = value end
  end
  line.tvm = options.tvm and tools.ask_tvm(options, "tvm_search.py", options.data, name,
                                             target.cores or target.text:match "%-arch=(%S+)", options.count // 16)
  if options.json then cli.put_json(line) else report(line) end
end

return function(options, names)
  options.seed, options.count, options.trials = options.seed or 1, math.max(options.count or 2048, 1),
    options.trials or 64
  if #names == 0 then names = USUAL elseif names[1] == "all" then names = ALL end
  local workloads = tools.workloads(options, names)
  for _, w in ipairs(workloads) do
    if options.tvm and w.is_given then
      cli.misuse("--tvm: TVM has the workloads of the folder of data, and not %s", w.name)
    end
  end
  for _, w in ipairs(workloads) do bench_workload(w.name, w.func, options) end
  return cli.DONE
end
