-- Sketches and decisions drawn by the seed: what every other policy must beat.
local MOST = 1 << 30 -- sketches that are numbered

return msched.policy {
  name = "random",
  run = function(env)
    while env:remaining() > 0 do
      local jobs, stream = {}, msched.stream(env.seed, env.iteration, 2)
      for i = 1, env.batch do
        local sketch = env:sketch(stream:below(MOST))
        if sketch then jobs[#jobs + 1] = {trace = sketch, resample = true} end
      end
      env:measure(env:unmeasured(env:replay(jobs), env:remaining()))
    end
  end,
}
