-- What a sandboxed state holds, a replay worker's or the one that opens the space: the target's rules, postprocessors
-- and mutators, then those that the user's files register. Gives the functions that C calls.
local targets, space, refusals = msched.load "rules.targets", msched.load "rules.space", msched.load "rules.refusals"
local limited, registered = msched.limited, msched.registered
local parts = space.parts(targets.context(msched.target(MSCHED_TARGET)))

local worker = {environment = msched.load "lua.lib.environment".new}
local KINDS = {"rule", "postproc", "mutator", "space", "without", "intrinsic"}
local define_intrinsic = msched.intrinsic

-- One that the state knows already counts as registered too: pools are given what sandboxes have read.
function msched.intrinsic(t)
  local made = define_intrinsic(t)
  table.insert(registered.intrinsic, made)
  return made
end

local function forget_registered()
  local count = 0
  for _, kind in ipairs(KINDS) do count, registered[kind] = count + #(registered[kind] or {}), {} end
  return count
end
forget_registered()

-- Runs a user's file; what it registers comes after the target's.
function worker.load(chunk, path)
  local ok, _, message = limited("file", {name = path, apply = chunk})
  if not ok then error(message, 0) end
  for _, name in ipairs(registered.without) do space.leave_out(parts, name) end
  space.add(parts, registered)
  if forget_registered() == 0 then
    error(path .. ": it registers nothing: a file of rules calls ms.rule, ms.postproc, ms.mutator, ms.space, \z
                   ms.without or ms.intrinsic", 0)
  end
end

function worker.postprocs() return parts.postprocs end

-- Runs the postprocessor of that number: as space.check.
function worker.postprocess(sch, number) return space.check_by(parts.postprocs[number], sch, parts.context) end

-- One walk over the rules (space.walk): {states = {{trace, own, marks}…}, refused, thinned, left_out, sites,
-- idle}.
function worker.sketches(func, seed, groups)
  local states, report = space.walk(func, parts, seed, groups)
  return {states = space.traces(states), refused = refusals.list(report.refused), thinned = report.thinned,
          left_out = report.left_out,
          sites = report.sites, idle = space.idle(parts.users, report)}
end

function worker.mutators()
  local list = {}
  for i, m in ipairs(parts.mutators) do list[i] = {m[1].name, m[2]} end
  return list
end

function worker.mutate(i, trace, stream, other)
  if not parts.mutators[i] then
    error(string.format("there is no mutator %d: the sandbox has %d, numbered from 1, as sandbox:mutators lists them",
                        i, #parts.mutators), 0)
  end
  return space.mutate(parts.mutators[i][1], trace, stream, other)
end

return worker
