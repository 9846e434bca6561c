-- Candidates of a function: dofile gives a function.
local ms = require "msched"
local tune = ms.load "search.tune"
local here = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")
local jobs_of = dofile(here .. "../../lua/jobs.lua")

-- So many draws of the sketches in turn, each {trace, hash, …}, or false where it was refused. space: of rules.targets,
-- in place of the target's own; nil: that. only: nil, or a text that a sketch's trace has.
return function(func, target, space, draws, seed, only)
  local files, rules = {}, nil
  if space then
    rules = os.tmpname()
    os.rename(rules, rules .. ".lua")
    local file <close> = assert(io.open(rules .. ".lua", "wb"))
    file:write('local ms = require "msched" ms.space(ms.load "rules.targets".' .. space .. ')')
    file:close()
    files[1] = rules .. ".lua"
  end
  local opened = tune.open(func, ms.target(target), {files = files})
  local sketches = {}
  for _, sketch in ipairs(opened.sketches) do
    if not only or tostring(sketch.trace):find(only, 1, true) then sketches[#sketches + 1] = sketch end
  end
  if #sketches == 0 then return {} end
  opened.sketches = sketches
  local pool = ms.pool(func, {jobs = 1, target = target, files = files})
  local made, _, script_error = pool:replay(jobs_of(opened, draws, seed), false)
  pool:close()
  if rules then os.remove(rules .. ".lua") end
  assert(not script_error, script_error)
  return made
end
