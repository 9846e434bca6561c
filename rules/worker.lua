-- What a replay worker's state holds: the target's postprocessors, and those that the user's files register. Gives the
-- function that the worker calls on each schedule.
local targets, space = msched.load "rules.targets", msched.load "rules.space"
local context = targets.context(msched.target(MSCHED_TARGET))
local own = space.load(context.postprocs)
local builtin = #msched.registered.postproc

return function(sch)
  local ok, why = space.postprocess(sch, own)
  if not ok then return false, why end
  for i = builtin + 1, #msched.registered.postproc do
    local p = msched.registered.postproc[i]
    if p.apply(sch) == false then return false, p.name end
  end
  return true
end
