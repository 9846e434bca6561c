-- Draft and verify: candidates that are cheap by estimate (draft.c) are replayed; the model, which learns from what was
-- measured, has the more say the more it has seen; each iteration measures the best few, of distinct register tiles, and the
-- best of what is one step away from the fastest three. Two iterations in a row without gain end it.
-- Sources: oneDNN, jit_brgemm_conv_utils.cpp, est_eff; Zhang et al., "Droplet search", TACO 2023.
local steps, draft = msched.load "search.steps", msched.load "search.draft"

local ESTIMATED, REPLAYED, OF_A_TILE = 50000, 1000, 4 -- candidates of a sketch that are estimated; the cheapest of all; of a tile
local ROUND, NEAR, TILES = 16, 8, 2 -- measured at a time; of them one step away; and of one tile
local FASTEST, GAIN, IDLE = 3, 0.98, 2
local LEARNED = 32 -- results after which model and draft have the same say

-- The drafts, replayed: each knows its tile, and how cheap it is beside the cheapest.
local function replay(env, drafts)
  local traces, made = {}, {}
  for i, d in ipairs(drafts) do traces[i] = d.trace end
  for i, c in ipairs(env:replay(steps.jobs(traces))) do
    if c then
      c.tile, c.worth = drafts[i].sketch .. " " .. drafts[i].tile, drafts[1].cost / drafts[i].cost
      made[#made + 1] = c
    end
  end
  return made
end

-- Those that are new, the most promising first.
local function ranked(env, candidates, known)
  local fresh = {}
  for _, c in ipairs(candidates) do if c and not env:is_known(c.hash) then fresh[#fresh + 1] = c end end
  local trust, scores = known / (known + LEARNED), env.model:predict(fresh)
  for i, c in ipairs(fresh) do c.score = c.worth and trust * scores[i] + (1 - trust) * c.worth or scores[i] end
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

return msched.policy {
  name = "draft_verify",
  needs = {features = true, model = true},
  run = function(env)
    local drafts = draft.best(env.func, env.target, env.sketches, {seed = env.seed, budget = ESTIMATED, most = REPLAYED, each = OF_A_TILE})
    local idle, last = 0, math.huge
    while env:remaining() > 0 and idle < IDLE do
      local known, chosen = #env:best(math.huge), {}
      take(ranked(env, env:replay(steps.around_best(env, FASTEST)), known), NEAR, chosen)
      take(ranked(env, replay(env, drafts), known), ROUND, chosen)
      if #chosen == 0 then chosen = env:replay(env:draw_jobs(ROUND)) end -- all is known, or no estimates are to be had
      env:measure(env:unmeasured(chosen, ROUND))
      local best = env:best(1)[1]
      idle = best and best.seconds > GAIN * last and idle + 1 or 0
      last = math.min(last, best and best.seconds or math.huge)
    end
  end,
}
