-- Draft and verify: candidates that are cheap by estimate (draft.lua) are replayed, and estimated again as they are; the
-- model, which learns from what was measured, has the more say the more it has seen. Each iteration measures a few: the best
-- of what is one step away from the fastest, and the best of the drafts and of some that are drawn, of distinct register
-- tiles. Where the target's sketches cannot be estimated, it is evolution.
-- Sources: oneDNN, jit_brgemm_conv_utils.cpp, est_eff; Zhang et al., "Droplet search", TACO 2023.
local steps, draft, evolutionary = msched.load "search.steps", msched.load "search.draft", msched.load "search.evolutionary"

local DRAFTS, DRAWN = {budget = 20000, most = 600, each = 4}, 200 -- of a sketch, of all, of a register tile; drawn beside them
local FIRST, ROUND, NEAR, TILES, MORE = 16, 8, 4, 2, 32 -- measured at first, and then at a time; of them one step away; of one tile; drawn for each
local FASTEST, GAIN, IDLE, ENOUGH = 3, 0.98, 2, 0.95
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
  table.sort(fresh, function(a, b) return a.score ~= b.score and a.score > b.score or a.score == b.score and a.hash < b.hash end)
  return fresh
end

-- Adds the first of the list that are not among the chosen, at most TILES of a tile, until there are `most`.
local function take(list, most, chosen)
  local counts, taken = {}, {}
  for _, c in ipairs(chosen) do taken[c.hash] = true end
  for _, c in ipairs(list) do
    local tile = c.tile or c.hash
    if #chosen < most and not taken[c.hash] and (counts[tile] or 0) < TILES then
      counts[tile], taken[c.hash] = (counts[tile] or 0) + 1, true
      chosen[#chosen + 1] = c
    end
  end
end

-- What is measured now. Without gain it looks around more of the fastest.
local function choose(env, drafts, idle)
  local known, chosen, most = #env:best(math.huge), {}, env.iteration == 1 and FIRST or ROUND
  local least = drafts[1].cost or 1
  local around = draft.ranked(env.func, env.target, env:replay(steps.around_best(env, FASTEST * (1 + idle))))
  local others = draft.ranked(env.func, env.target, env:replay(env:draw_jobs(MORE)))
  take(promising(env, around, known, least), NEAR, chosen)
  take(promising(env, table.move(drafts, 1, #drafts, #others + 1, others), known, least), most, chosen)
  local traces = {}
  for i, c in ipairs(chosen) do traces[i] = c.sketch_trace end
  return env:unmeasured(env:replay(steps.jobs(traces)), most)
end

return msched.policy {
  name = "draft_verify",
  needs = {features = true, model = true, nearest = true},
  run = function(env)
    local drafts, estimated = draft.candidates(env, DRAFTS, DRAWN)
    if estimated == 0 or #drafts == 0 then return evolutionary.run(env) end
    local idle, last = 0, math.huge
    while env:remaining() > 0 and (env.asked or idle < IDLE) do
      env:measure(choose(env, drafts, idle))
      local best = env:best(1)[1]
      idle = best and best.seconds > GAIN * last and idle + 1 or 0
      last = math.min(last, best and best.seconds or math.huge)
      if last * ENOUGH <= env.bound then return end
    end
  end,
}
