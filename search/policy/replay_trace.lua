-- Replays the sketches with decisions drawn anew, a batch after the other: no model, no memory. The baseline.
return msched.policy {
  name = "replay_trace",
  run = function(env)
    while env:remaining() > 0 do
      env:measure(env:unmeasured(env:replay(env:draw_jobs(env.batch)), env:remaining()))
    end
  end,
}
