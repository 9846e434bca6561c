-- What a sandboxed state holds, a replay worker's or the one that opens the space: the target's rules, postprocessors and
-- mutators, then those that the user's files register. Gives the functions that C calls.
local targets, space, refusals = msched.load "rules.targets", msched.load "rules.space", msched.load "rules.refusals"
local limited, registered = msched.limited, msched.registered
local parts = space.parts(targets.context(msched.target(MSCHED_TARGET)))

local worker = {environment = msched.load "rules.environment"}

-- Runs a user's file; what it registers comes after the target's.
function worker.load(chunk, path)
  local ok, _, message = limited("file", {name = path, apply = chunk})
  if not ok then error(message, 0) end
  space.add(parts, registered)
  for _, kind in ipairs {"rule", "postproc", "mutator", "space"} do registered[kind] = {} end
end

function worker.postprocs() return parts.postprocs end

-- Runs the postprocessor of that number: as space.check.
function worker.postprocess(sch, number) return space.check_by(parts.postprocs[number], sch, parts.context) end

-- One walk over the rules (space.walk): {states = {{trace, own, marks}…}, refused, thinned, sites, idle}.
function worker.sketches(func, seed, groups)
  local states, report = space.walk(func, parts, seed, groups)
  return {states = space.traces(states), refused = refusals.list(report.refused), thinned = report.thinned, sites = report.sites, idle = space.idle(parts.users, report)}
end

function worker.mutators()
  local list = {}
  for i, m in ipairs(parts.mutators) do list[i] = {m[1].name, m[2]} end
  return list
end

function worker.mutate(i, trace, stream, other)
  if not parts.mutators[i] then error(string.format("there is no mutator %d: the box has %d, numbered from 1, as box:mutators lists them", i, #parts.mutators), 0) end
  return space.mutate(parts.mutators[i][1], trace, stream, other)
end

return worker
