-- A search policy of one's own: climbs from the fastest by the space's mutators, and draws where that gives nothing
-- new.
--   msched tune lua/examples/gemm.lua --policy lua/examples/policy.lua
local ms = require "msched"

-- Mutations of the fastest few, each drawn from a stream that is named by the seed and the iteration.
local function mutations(env, count)
  local best, stream, jobs = env:best(4), ms.stream(env.seed, env.iteration, 1), {}
  for _ = 1, #best > 0 and count or 0 do
    local parent = best[stream:below(#best) + 1].sketch
    local mutator = env.mutators[stream:below(#env.mutators) + 1][1]
    jobs[#jobs + 1] = {trace = mutator.apply(parent, stream) or parent}
  end
  return jobs
end

return ms.policy {
  name = "climbing",
  run = function(env)
    while env:remaining() > 0 do
      local chosen = env:unmeasured(env:replay(mutations(env, 32)), 8)
      for _, c in ipairs(env:unmeasured(env:replay(env:draw_jobs(16)), 16 - #chosen)) do chosen[#chosen + 1] = c end
      env:measure(chosen)
    end
  end,
}
