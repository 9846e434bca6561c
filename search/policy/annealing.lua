-- Simulated annealing: each candidate is a random step from one that was measured, which is drawn with a chance that
-- falls with its time, the more steeply the later it is; in the end only the fastest are left to start from.
-- Source: Kirkpatrick, Gelatt, Vecchi, "Optimization by simulated annealing", Science 1983.
local steps = msched.load "search.policy.steps"

local STEPS = 16 -- at a time
local HOT, COOLING, COLD = 0.5, 0.8, 0.01 -- the temperature, in logarithms of the time: the first, what is left of it
                                          -- each time, the last

-- Draws one of those measured, fastest first.
local function start_from(measured, heat, stream)
  local chances, total = {}, 0
  for i, m in ipairs(measured) do
    chances[i] = math.exp(math.log(measured[1].seconds / m.seconds) / heat)
    total = total + chances[i]
  end
  local at = stream:unit() * total
  for i, m in ipairs(measured) do
    at = at - chances[i]
    if at < 0 then return m.sketch end
  end
  return measured[1].sketch
end

local function step(env, measured, stream)
  local heat = math.max(COLD, HOT * COOLING ^ (env.iteration - 1))
  local around = steps.neighbours(env, start_from(measured, heat, stream))
  return around[stream:below(math.max(#around, 1)) + 1]
end

return msched.policy {
  name = "annealing",
  run = function(env)
    while env:remaining() > 0 do
      local measured, jobs, stream = env:best(math.huge), env:draw_jobs(STEPS),
        msched.stream(env.seed, env.iteration, 3)
      for _, job in ipairs(#measured > 0 and jobs or {}) do
        local trace = step(env, measured, stream)
        if trace then job.trace, job.resample = trace, false end
      end
      env:measure(env:unmeasured(env:replay(jobs), STEPS))
    end
  end,
}
