-- Replays the sketches with decisions drawn anew, a batch after the other: no model, no memory. The baseline.
return msched.policy {
  name = "replay_trace",
  run = function(env)
    local candidate = 0
    while env:remaining() > 0 do
      local jobs = {}
      for i = 1, env.batch do
        candidate = candidate + 1
        jobs[i] = {trace = env.sketches[(candidate - 1) % #env.sketches + 1], seed = env.seed, candidate = candidate, anew = true}
      end
      local made = env:replay(jobs)
      local fresh = env:unmeasured(made, env:remaining())
      if not env:progressed(#fresh) then return end
      env:measure(fresh)
    end
  end,
}
