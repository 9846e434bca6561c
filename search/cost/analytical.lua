-- The analytical model's proposals for a function: its candidates' cost is estimated before anything is measured
-- (cpu.c). First from decisions alone, of very many; then of the cheapest as they are once replayed, where blocks ended
-- up included.
local targets, steps = msched.load "rules.targets", msched.load "search.policy.steps"

local analytical = {}

local PLACINGS = 5 -- of a sketch: where its blocks are computed is given, not enumerated
local SHARED = 8 -- sketches that have the whole budget each; more share what these have
local DOWNHILL, AROUND = 4, 6 -- how often, and around how many, what is one step away is estimated too
local MOST_DOWNHILL = 8 -- and how often at most, as long as that finds a cheaper one than all before

-- CPUs with AMX for bfloat16 start a vdpbf16ps every other cycle, but two multiply-adds of float32 each cycle: an
-- Emerald Rapids 1.37 and 5.46 of them a nanosecond.
local TILES_OF_BFLOATS, BFLOATS = 2, 4

-- The machine of a target, as the model sees it: what the target knows, and the numbers of rules/targets.lua, or what a
-- function there makes of the target. nil: there are none for its kind.
function analytical.machine(target)
  local numbers = targets[target.kind].analytical
  if type(numbers) == "function" then return numbers(target) end
  if not numbers then return nil end
  local machine = {cores = target.cores, vector_bits = target.vector_bits, registers = target.vector_registers,
                   dots = target.dots, slides = target.slides,
                   cache_bytes = {target.l1_bytes, target.l2_bytes, target.l3_share * target.cores}}
  for name, number in pairs(numbers) do machine[name] = number end
  if (target.tiles or 0) & TILES_OF_BFLOATS ~= 0 then machine.bfloats = BFLOATS end
  return machine
end

-- The sketch as it is, with its blocks at the root, all in the outermost loop of what reads them, and where drawing
-- puts them, as jobs of msched.proposals.
local function placings(sketch, seed)
  local rooted, inside, list, places = sketch, sketch, {{trace = sketch}}, 0
  for _, d in ipairs(sketch:draws()) do
    if d.kind == "SampleComputeLocation" then
      rooted, inside, places = rooted:with_decision(d.index, {-1}), inside:with_decision(d.index, {0}), places + 1
    end
  end
  if places == 0 then return list end
  list[2], list[3] = {trace = rooted}, {trace = inside}
  for candidate = 4, PLACINGS do
    list[candidate] = {trace = sketch, resample = true, seed = seed, candidate = candidate}
  end
  return list
end

local function by_cost(a, b)
  if a.cost ~= b.cost then return a.cost < b.cost end
  if a.sketch ~= b.sketch then return a.sketch < b.sketch end
  return a.place < b.place
end

-- The cheapest candidates of each sketch by their decisions, about `most` of all, and `each` of one register tile, of
-- about `budget` of a sketch, in rising order of their cost: {trace, cost, tile, sketch}; none where nothing is known
-- of the target, or no sketch can be read. Of many sketches each has less of a budget. Sketches have equal shares:
-- their costs are not compared before they are replayed. placed: blocks stay where the sketches have them. jobs: so
-- many threads.
function analytical.best(func, target, sketches, options)
  local machine, all, jobs, of = options.machine or analytical.machine(target), {}, {}, {}
  local seed, share = options.seed or 1, math.ceil(options.most / math.max(#sketches, 1))
  local budget = options.budget * SHARED // math.max(#sketches, SHARED)
  if not machine then return all end
  for i, sketch in ipairs(sketches) do
    local placed = options.placed and {{trace = sketch}} or placings(sketch, seed)
    for _, job in ipairs(placed) do
      job.seed, job.budget, job.most, job.each = seed, math.max(1, budget // #placed), math.ceil(share / #placed),
        options.each
      jobs[#jobs + 1], of[#jobs + 1] = job, i
    end
  end
  for k, list in ipairs(msched.proposals(func, machine, jobs, options.jobs or 1)) do
    for _, c in ipairs(list) do
      c.sketch, c.place = of[k], #all
      all[#all + 1] = c
    end
  end
  table.sort(all, by_cost)
  return all
end

-- Estimates candidates as they are: their cost, and the register tile; none where it cannot be estimated, which is
-- noted.
local function estimate(func, machine, candidates, jobs)
  local list, traces = {}, {}
  for _, c in ipairs(machine and candidates or {}) do
    if not c.cost and not c.inestimable then list[#list + 1], traces[#list + 1] = c, c.sketch_trace end
  end
  if #list == 0 then return end
  local costs, tiles = msched.estimates(func, machine, traces, jobs or 1)
  for i, c in ipairs(list) do
    if msched.interrupted() then return end
    c.cost, c.tile = costs[i] or nil, costs[i] and tiles[i] or nil
    c.inestimable = not c.cost
  end
end

-- What a trace costs as it is, in cycles; nil: it cannot be estimated.
function analytical.cost_of(func, trace, machine)
  local candidate = {sketch_trace = trace}
  estimate(func, machine, {candidate})
  return candidate.cost
end

-- What a replayed candidate of a task costs as it is; nil: it cannot be estimated.
function analytical.cost(task, candidate)
  estimate(task.func, task.machine or analytical.machine(task.target), {candidate})
  return candidate.cost
end

-- Replayed candidates, false among them, each once, by what they cost as they are, the cheapest first; those that
-- cannot be estimated last. machine: in place of the target's. jobs: so many threads.
function analytical.ranked(func, target, candidates, machine, jobs)
  local list, seen = {}, {}
  for _, c in ipairs(candidates) do
    if c and not seen[c.hash] then list[#list + 1], seen[c.hash] = c, true end
  end
  estimate(func, machine or analytical.machine(target), list, jobs)
  table.sort(list, function(a, b)
    local x, y = a.cost or math.huge, b.cost or math.huge
    return x ~= y and x < y or x == y and a.hash < b.hash
  end)
  return list
end

-- Whether registers hold what a candidate's threads do, by the register-pressure estimate of its kernels, without ptxas
-- (jit/cuda/registers.c). What cannot be built is refused elsewhere, with its reason.
function analytical.fits(func, target, candidate)
  if target.arch and candidate.fits == nil then
    local ok, kernel =
      pcall(msched.build, msched.apply(func, candidate.trace):func(), {target = target.text, load = false})
    candidate.fits = true
    for _, k in ipairs(ok and kernel:resources() or {}) do
      candidate.fits = candidate.fits and not k.estimated_spills
    end
  end
  return not target.arch or candidate.fits
end

-- The cheapest that were not looked around yet, of those that cost the same the first.
local function cheapest(list, looked, most)
  local few, costs = {}, {}
  for _, c in ipairs(list) do
    if c.cost and #few < most and not costs[c.cost] then
      costs[c.cost] = true
      if not looked[c.hash] then few[#few + 1], looked[c.hash] = c, true end
    end
  end
  return few
end

-- Candidates of a task, by their estimated cost, the cheapest first: proposals, `drawn` random ones of all sketches,
-- and repeatedly the neighbours of the cheapest: proposals leave blocks where the sketch has them. options: as
-- analytical.best takes them; starts: traces to begin with besides; downhill and around: how often and around how many.
-- Their numbers count from 1 whenever it is asked, so that they are the same in a run that goes on again. The second
-- result: the number of proposals.
function analytical.candidates(task, options, drawn)
  local threads = options.jobs or task.jobs
  local proposals, jobs, count, looked =
    analytical.best(task.func, task.target, task.sketches, setmetatable({jobs = threads}, {__index = options})), {}, 0,
    {}
  local function add(trace, resample)
    count = count + 1
    jobs[#jobs + 1] = {trace = trace, resample = resample, candidate = count}
  end
  for _, trace in ipairs(options.starts or {}) do add(trace) end
  for _, d in ipairs(proposals) do add(d.trace) end
  for i = 1, drawn do
    local sketch = task:sketch(i - 1)
    if sketch then add(sketch, true) end
  end
  local list = analytical.ranked(task.func, task.target, task:replay(jobs), task.machine, threads)
  local least, most, before = options.downhill or DOWNHILL, options.downhill or MOST_DOWNHILL, nil
  for round = 1, most do
    local best = list[1] and list[1].cost
    if round > least and best == before then break end
    jobs, before = {}, best
    for _, c in ipairs(cheapest(list, looked, options.around or AROUND)) do
      for _, trace in ipairs(steps.neighbours(task, c.sketch_trace)) do add(trace) end
    end
    list = analytical.ranked(task.func, task.target, table.move(task:replay(jobs), 1, #jobs, #list + 1, list),
                             task.machine, threads)
  end
  return list, #proposals
end

return analytical
