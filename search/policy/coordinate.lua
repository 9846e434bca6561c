-- Coordinate descent: all that is one step in one draw away from the fastest three, again and again; where all of that
-- is known, fresh draws.
-- Source: Zhang et al., "Droplet search", TACO 2023.
local steps = msched.load "search.policy.steps"

local STEPS, FASTEST = 16, 3 -- candidates at a time

-- In an order drawn by the seed, so that no draw comes before the others.
local function shuffled(jobs, stream)
  for i = #jobs, 2, -1 do
    local k = stream:below(i) + 1
    jobs[i], jobs[k] = jobs[k], jobs[i]
  end
  return jobs
end

return msched.policy {
  name = "coordinate",
  run = function(env)
    while env:remaining() > 0 do
      local stream = msched.stream(env.seed, env.iteration, 4)
      local around = env:unmeasured(env:replay(shuffled(steps.around_best(env, FASTEST), stream)), STEPS)
      if #around == 0 then around = env:unmeasured(env:replay(env:draw_jobs(STEPS)), STEPS) end
      env:measure(around)
    end
  end,
}
