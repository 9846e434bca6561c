-- Gives jobs_of(opened, count [, seed]): jobs for a pool, so many candidates drawn from the sketches of a space in
-- turn.
return function(opened, count, seed)
  local jobs = {}
  for i = 1, count do
    jobs[i] = {trace = opened.sketches[(i - 1) % #opened.sketches + 1].trace:simplified(false), seed = seed or 1,
               candidate = i, resample = true}
  end
  return jobs
end
