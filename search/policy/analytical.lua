-- The analytical policy: it replays the candidates that the analytical model (search/cost/analytical.lua) ranks first,
-- and estimates them again as they are. The cost model learns from measurements; its weight grows with their number.
-- Each iteration measures a few candidates, of distinct register tiles and distinct estimates: the best neighbours of
-- the fastest, the best proposals, and the best of some random candidates. Where the model knows nothing of the
-- target's sketches, the policy is evolutionary.
-- Sources: oneDNN, jit_brgemm_conv_utils.cpp, est_eff; Zhang et al., "Droplet search", TACO 2023.
local steps, analytical, evolutionary = msched.load "search.policy.steps", msched.load "search.cost.analytical",
  msched.load "search.policy.evolutionary"

local PROPOSALS, DRAWN = {budget = 20000, most = 600, each = 4}, 200 -- as analytical.best takes them; drawn beside them
local FIRST, ROUND, NEAR, TILES, MORE = 16, 8, 4, 2, 32 -- measured at first, and then at a time; of them one step away;
                                                        -- of one tile; drawn for each
local FASTEST, GAIN, IDLE, ENOUGH = 3, 0.98, 2, 0.95
local APART = 0.05 -- of the logarithm of what they cost
local LEARNED = 32 -- results after which model and estimate have the same say

-- Those that are new, the most promising first: by the logarithm of what model and estimate say of their speed.
local function promising(env, candidates, known, least)
  local fresh, trust = {}, known / (known + LEARNED)
  for _, c in ipairs(candidates) do if not env:is_known(c.hash) then fresh[#fresh + 1] = c end end
  local learned = env.model:predict(fresh)
  for i, c in ipairs(fresh) do
    local estimated = c.cost and math.log(least / c.cost) or 0
    c.score = trust * math.log(math.max(learned[i], 1e-3)) + (1 - trust) * estimated
  end
  table.sort(fresh, function(a, b)
    return a.score ~= b.score and a.score > b.score or a.score == b.score and a.hash < b.hash
  end)
  return fresh
end

-- Adds the first of the list that are not among the chosen and that pass, until there are `most`.
local function take(list, most, chosen, passes)
  local taken = {}
  for _, c in ipairs(chosen) do taken[c.hash] = true end
  for _, c in ipairs(list) do
    if #chosen == most then return end
    if not taken[c.hash] and passes(c) then chosen[#chosen + 1] = c end
  end
end

-- The same for candidates of one register tile that the estimate does not distinguish.
local function class_of(c) return c.cost and c.tile .. " " .. math.floor(math.log(c.cost) / APART) or c.hash end

-- Passes of a tile at most TILES, and one of a class. tried: classes that were tried.
local function spread(tried)
  local tiles, classes = {}, setmetatable({}, {__index = tried})
  return function(c)
    local tile, class = c.tile or c.hash, class_of(c)
    if classes[class] or tiles[tile] == TILES then return false end
    tiles[tile], classes[class] = (tiles[tile] or 0) + 1, true
    return true
  end
end
local function any() return true end

-- How many of the last iterations brought no gain. Known from what was measured, so that a run that goes on again knows
-- it.
local function idle_of(env)
  local bests, least, idle = {}, math.huge, 0
  for _, m in ipairs(env:best(math.huge)) do
    local iteration = m.candidate >> env.NUMBERS
    bests[iteration] = math.min(bests[iteration] or math.huge, m.seconds)
  end
  for iteration = 0, env.iteration - 1 do
    local best = math.min(bests[iteration] or math.huge, least)
    idle = best > GAIN * least and idle + 1 or 0
    least = best
  end
  return idle
end

-- What is one step away from the fastest, by what it costs. What that is depends on the one it is around alone, numbers
-- of candidates too, so it stays while that is among them: `around`, by hash.
local function look_around(env, around)
  local list, before = {}, {}
  for hash, near in pairs(around) do before[hash], around[hash] = near, nil end
  for _, m in ipairs(env:best(FASTEST * (1 + idle_of(env)))) do
    local near = before[m.hash]
    if not near then
      local jobs = steps.jobs(steps.neighbours(env, m.sketch))
      for i, job in ipairs(jobs) do job.candidate = i end
      near = env:replay(jobs)
    end
    around[m.hash] = near
    table.move(near, 1, #near, #list + 1, list)
  end
  return analytical.ranked(env.func, env.target, list, nil, env.jobs)
end

-- What is measured now; what registers will not hold only where the space has nothing else. Without gain it looks
-- around more of the fastest.
local function choose(env, proposals, around)
  local known, chosen, most = #env:best(math.huge), {}, env.iteration == 1 and FIRST or ROUND
  local least, tried = proposals[1].cost or 1, {}
  local function fitting(passes)
    return function(c) return passes(c) and analytical.fits(env.func, env.target, c) end
  end
  for _, c in ipairs(proposals) do if env:is_known(c.hash) then tried[class_of(c)] = true end end
  local near = look_around(env, around)
  local others = analytical.ranked(env.func, env.target, env:replay(env:draw_jobs(MORE)), nil, env.jobs)
  take(promising(env, near, known, least), NEAR, chosen, fitting(spread {}))
  others = promising(env, table.move(proposals, 1, #proposals, #others + 1, others), known, least)
  take(others, most, chosen, fitting(spread(tried)))
  take(others, most, chosen, any) -- where the space has few more
  local traces = {}
  for i, c in ipairs(chosen) do traces[i] = c.sketch_trace end
  return env:unmeasured(env:replay(steps.jobs(traces)), most)
end

return msched.policy {
  name = "analytical",
  needs = {features = true, model = true, nearest = true},
  run = function(env)
    local proposals, estimated = analytical.candidates(env, PROPOSALS, DRAWN)
    if estimated == 0 or #proposals == 0 then return evolutionary.run(env) end
    local candidates, around = nil, {}
    while env:remaining() > 0 and (env.asked or idle_of(env) < IDLE) do
      candidates = choose(env, proposals, around)
      env:measure(candidates)
      if env:is_near_roofline(ENOUGH) then
        return string.format("its best reaches %.0f %% of the roofline: no schedule is much faster", 100 * ENOUGH)
      end
    end
    if env:remaining() > 0 and candidates and #candidates > 0 then
      return string.format("%d rounds in a row gave nothing faster by %.0f %%; a number of trials that is asked for \z
                            is had in full", IDLE, 100 * (1 - GAIN))
    end
  end,
}
