-- The baseline: replays the sketches with resampled decisions, batch by batch, without model or memory.
return msched.policy {
  name = "replay_trace",
  run = function(env)
    while env:remaining() > 0 do
      env:measure(env:unmeasured(env:replay(env:draw_jobs(env.batch)), env:remaining()))
    end
  end,
}
