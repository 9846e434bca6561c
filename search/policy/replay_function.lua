-- Opens the space again for each candidate, with a seed of its own, and takes one of the sketches as sampled there.
-- Rules then decide again by the numbers that they sample, which the replay of a trace cannot do.
-- Source: Shao et al., NeurIPS 2022, section 4 ("replay-func" of MetaSchedule).
local MOST = 8 -- spaces that are opened at a time

return msched.policy {
  name = "replay_function",
  run = function(env)
    while env:remaining() > 0 do
      local jobs = {}
      for i = 1, math.min(MOST, env:remaining()) do
        local stream = msched.stream(env.seed, env.iteration, i)
        local sketches = env:open_space(stream:below(1 << 31))
        if #sketches > 0 then jobs[#jobs + 1] = {trace = sketches[stream:below(#sketches) + 1]} end
      end
      env:measure(env:unmeasured(env:replay(jobs), env:remaining()))
    end
  end,
}
