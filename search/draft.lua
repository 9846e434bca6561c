-- Drafts of a function's sketches: what its candidates cost, estimated before anything is measured (draft_cost.c). First
-- from decisions alone, of very many; then of the cheapest as they are once replayed, where blocks ended up included.
local targets, steps, draft_tensor = msched.load "rules.targets", msched.load "search.steps", msched.load "search.draft_tensor"

local draft = {}

local PLACINGS = 4 -- of a sketch: where its blocks are computed is given, not enumerated
local SHARED = 8 -- sketches that have the whole budget each; more share what these have
local DOWNHILL, AROUND = 4, 6 -- how often, and around how many, what is one step away is estimated too

-- The machine of a target, as drafts see it: what the target knows, and the numbers of rules/targets.lua, or what a function
-- there makes of the target. nil: there are none for its kind.
function draft.machine(target)
  local numbers = targets[target.kind].draft
  if type(numbers) == "function" then return numbers(target) end
  if not numbers then return nil end
  local machine = {cores = target.cores, vector_bits = target.vector_bits, registers = target.vector_registers,
                   cache_bytes = {target.l1_bytes, target.l2_bytes, target.l3_bytes}}
  for name, number in pairs(numbers) do machine[name] = number end
  return machine
end

-- The sketch as it is, with its blocks at the root, and where drawing puts them.
local function placings(func, sketch, seed)
  local rooted, list, places = sketch, {sketch}, 0
  for _, d in ipairs(sketch:draws()) do
    if d.kind == "SampleComputeLocation" then rooted, places = rooted:with_decision(d.index, {-1}), places + 1 end
  end
  if places == 0 then return list end
  list[2] = rooted
  for candidate = 3, PLACINGS do
    local ok, drawn = pcall(msched.apply, func, sketch, {anew = true, seed = seed, candidate = candidate})
    if ok then list[#list + 1] = drawn.trace end
  end
  return list
end

local function by_cost(a, b)
  if a.cost ~= b.cost then return a.cost < b.cost end
  if a.sketch ~= b.sketch then return a.sketch < b.sketch end
  return a.place < b.place
end

-- The cheapest candidates of each sketch by their decisions, about `most` of all, and `each` of one register tile, of about
-- `budget` of a sketch, in rising order of their cost: {trace, cost, tile, sketch}; none where nothing is known of the
-- target, or no sketch can be read. Of many sketches each has less of a budget. Sketches have equal shares: their costs are
-- not compared before they are replayed. placed: blocks stay where the sketches have them.
function draft.best(func, target, sketches, options)
  local machine, all = options.machine or draft.machine(target), {}
  local seed, share = options.seed or 1, math.ceil(options.most / math.max(#sketches, 1))
  local budget = options.budget * SHARED // math.max(#sketches, SHARED)
  for i, sketch in ipairs(machine and sketches or {}) do
    if msched.interrupted() then break end
    local placed = options.placed and {sketch} or placings(func, sketch, seed)
    for _, trace in ipairs(msched.interrupted() and {} or placed) do
      local ok, reading = pcall(msched.draft, func, trace, machine)
      local best = ok and reading:best {seed = seed, budget = math.max(1, budget // #placed), most = math.ceil(share / #placed), each = options.each}
      for _, c in ipairs(best or {}) do
        c.sketch, c.place = i, #all
        all[#all + 1] = c
      end
    end
  end
  table.sort(all, by_cost)
  return all
end

-- Estimates candidates as they are: their cost, and the register tile; none where it cannot be estimated.
local function estimate(func, machine, candidates)
  for _, c in ipairs(machine and candidates or {}) do
    if msched.interrupted() then break end
    local ok, cost, tile = true, c.cost, c.tile
    if not cost then ok, cost, tile = pcall(msched.estimate, func, c.sketch_trace, machine) end
    if not ok and machine.tensor_products then
      cost, tile = draft_tensor.cost(c.sketch_trace, machine)
      ok = cost ~= nil
    end
    if ok then c.cost, c.tile = cost, tile end
  end
end

-- What a replayed candidate of a task costs as it is; nil: it cannot be estimated.
function draft.cost(task, candidate)
  estimate(task.func, task.machine or draft.machine(task.target), {candidate})
  return candidate.cost
end

-- Replayed candidates, false among them, each once, by what they cost as they are, the cheapest first; those that cannot be
-- estimated last. machine: in place of the target's.
function draft.ranked(func, target, candidates, machine)
  local list, seen = {}, {}
  for _, c in ipairs(candidates) do
    if c and not seen[c.hash] then list[#list + 1], seen[c.hash] = c, true end
  end
  estimate(func, machine or draft.machine(target), list)
  table.sort(list, function(a, b)
    local x, y = a.cost or math.huge, b.cost or math.huge
    return x ~= y and x < y or x == y and a.hash < b.hash
  end)
  return list
end

-- Whether registers hold what a candidate's threads do, as is foreseen of its kernels before any assembler has seen them
-- (jit/registers.c). What cannot be built is refused elsewhere, with its reason.
function draft.fits(func, target, candidate)
  if target.arch and candidate.fits == nil then
    local ok, kernel = pcall(msched.build, msched.apply(func, candidate.trace):func(), {target = target.text, load = false})
    candidate.fits = true
    for _, k in ipairs(ok and kernel:resources() or {}) do candidate.fits = candidate.fits and not k.foreseen_spills end
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

-- Candidates of a task, by what they cost as they are, the cheapest first: drafts, `drawn` of all sketches, and what is one
-- step away from the cheapest of them, again and again: drafts leave blocks where the sketch has them. options: as draft.best
-- takes them; starts: traces to begin with besides; downhill and around: how often and around how many. Their numbers count
-- from 1 whenever it is asked, so that they are the same in a run that goes on again. The second result: how many drafts there
-- were.
function draft.candidates(task, options, drawn)
  local drafts, jobs, count, looked = draft.best(task.func, task.target, task.sketches, options), {}, 0, {}
  local function add(trace, anew)
    count = count + 1
    jobs[#jobs + 1] = {trace = trace, anew = anew, candidate = count}
  end
  for _, trace in ipairs(options.starts or {}) do add(trace) end
  for _, d in ipairs(drafts) do add(d.trace) end
  for i = 1, drawn do
    local sketch = task:sketch(i - 1)
    if sketch then add(sketch, true) end
  end
  local list = draft.ranked(task.func, task.target, task:replay(jobs), task.machine)
  for _ = 1, options.downhill or DOWNHILL do
    jobs = {}
    for _, c in ipairs(cheapest(list, looked, options.around or AROUND)) do
      for _, trace in ipairs(steps.neighbours(task, c.sketch_trace)) do add(trace) end
    end
    list = draft.ranked(task.func, task.target, table.move(task:replay(jobs), 1, #jobs, #list + 1, list), task.machine)
  end
  return list, #drafts
end

return draft
