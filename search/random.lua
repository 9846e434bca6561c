-- Sketches and decisions drawn by the seed: what every other policy must beat.
return msched.policy {
  name = "random",
  run = function(env)
    while env:remaining() > 0 do
      local jobs, stream = {}, msched.stream(env.seed, env.iteration, 2)
      for i = 1, env.batch do jobs[i] = {trace = env.sketches[stream:below(#env.sketches) + 1], anew = true} end
      env:measure(env:unmeasured(env:replay(jobs), env:remaining()))
    end
  end,
}
