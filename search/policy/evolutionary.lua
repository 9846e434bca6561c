-- Evolution of traces: a population from the best measured and from fresh draws, mutated over a few generations, ranked
-- by the cost model; the best that were not measured yet are, with a few others by chance.
-- Source: Zheng et al., "Ansor", OSDI 2020, section 5.1; Shao et al., NeurIPS 2022, section 4.
local transfer = msched.load "search.transfer"
local POPULATION, MEASURED_SHARE, GENERATIONS, MUTATION, EPSILON = 512, 0.2, 4, 0.85, 0.05
local LEAST_FRESH = 50

-- Draws an index by weights that add up to `total`.
local function weighted(stream, weights, total)
  local at = stream:unit() * total
  for i, w in ipairs(weights) do
    at = at - w
    if at < 0 then return i end
  end
  return #weights
end

local function fresh(env, count)
  local list, attempts = {}, 0
  while #list < count and attempts < 8 do
    attempts = attempts + 1
    for _, c in ipairs(env:replay(env:draw_jobs(count))) do if c and #list < count then list[#list + 1] = c end end
    if env:is_over() then break end
  end
  return list
end

local function best_measured(env, count)
  local jobs = {}
  for i, m in ipairs(env:best(count)) do jobs[i] = {trace = m.sketch, candidate = m.candidate} end
  local list = {}
  for _, c in ipairs(env:replay(jobs)) do if c then list[#list + 1] = c end end
  return list
end

-- A heap would do; the list is short: keeps the `most` best distinct by module.
local function keep_best(kept, candidates, scores, most)
  for i, c in ipairs(candidates) do
    if not kept.seen[c.hash] then
      kept.seen[c.hash] = true
      kept[#kept + 1] = {candidate = c, score = scores[i]}
    end
  end
  table.sort(kept, function(a, b)
    return a.score ~= b.score and a.score > b.score or a.score == b.score and a.candidate.hash < b.candidate.hash
  end)
  for i = #kept, most + 1, -1 do kept[i] = nil end
end

local function normalized(scores)
  local least, total, weights = math.huge, 0, {}
  for _, s in ipairs(scores) do least = math.min(least, s) end
  for i, s in ipairs(scores) do
    weights[i] = s - math.min(least, 0) + 1e-6
    total = total + weights[i]
  end
  return weights, total
end

local function mutate(env, stream, population, scores)
  local weights, total = normalized(scores)
  local mutators, chances, total_chance = {}, {}, 0
  for i, m in ipairs(env.mutators) do
    mutators[i], chances[i] = m[1], m[2]
    total_chance = total_chance + m[2]
  end
  local jobs = {}
  for i = 1, #population do
    local parent = population[weighted(stream, weights, total)]
    local trace = parent.sketch_trace
    if stream:unit() < MUTATION then
      local other = population[weighted(stream, weights, total)]
      trace = mutators[weighted(stream, chances, total_chance)].apply(trace, stream, other.sketch_trace) or trace
    end
    jobs[i] = {trace = trace}
  end
  local list = {}
  for i, c in ipairs(env:replay(jobs)) do list[#list + 1] = c or population[i] end
  return list
end

local function evolve(env)
  local stream = msched.stream(env.seed, env.iteration, 1)
  local measured = best_measured(env, math.floor(POPULATION * MEASURED_SHARE))
  local population = fresh(env, math.max(POPULATION - #measured, LEAST_FRESH))
  for _, c in ipairs(measured) do population[#population + 1] = c end
  local kept = {seen = {}}
  for generation = 0, GENERATIONS do
    if #population == 0 or env:is_over() then break end
    local scores = env.model:predict(population)
    local unmeasured, their_scores = {}, {}
    for i, c in ipairs(population) do
      if not env:is_known(c.hash) then
        unmeasured[#unmeasured + 1] = c
        their_scores[#their_scores + 1] = scores[i]
      end
    end
    keep_best(kept, unmeasured, their_scores, env.batch * 2)
    if generation < GENERATIONS then population = mutate(env, stream, population, scores) end
  end
  return kept, population, stream
end

-- By a model of other functions, which orders no more than fresh draws.
local function draw_by_others(env)
  local stream, population = msched.stream(env.seed, env.iteration, 1), fresh(env, POPULATION)
  local scores, kept = env.model:predict(population), {seen = {}}
  keep_best(kept, population, scores, transfer.most(#population, env.batch))
  transfer.draw(kept, env.batch, stream)
  return kept, population, stream
end

return msched.policy {
  name = "evolutionary",
  needs = {features = true, model = true, transfer = true},
  run = function(env)
    while env:remaining() > 0 do
      local choose = env:is_ranked_by_others() and draw_by_others or evolve
      local kept, population, stream = choose(env)
      local list, want = {}, math.min(env.batch, env:remaining())
      for i = 1, math.min(#kept, want) do list[i] = kept[i].candidate end
      for i = 1, #list do -- a few by chance, for what the model does not know
        if stream:unit() < EPSILON and #population > 0 then list[i] = population[stream:below(#population) + 1] end
      end
      env:measure(env:unmeasured(list, want))
    end
  end,
}
