-- What a user's policy sees of its task: the fields and methods that the guide lists, and copies of what others have
-- too. What it writes is its own. Its candidates are those that `replay` made: a trace and the hash of its module
-- belong together in the store.
local view = {}

local FIELDS = {"func", "target", "seed", "iteration", "batch", "bound", "asked", "jobs", "model"}
local METHODS = {"sketch", "other_choices", "open_space", "remaining", "is_over", "draw_jobs", "unmeasured", "is_known",
                 "is_near_roofline", "is_ranked_by_others"}

local function fields_of(t)
  local copy = {}
  for name, value in pairs(t) do copy[name] = value end
  return copy
end

local function mutators_of(task)
  local list = {}
  for i, m in ipairs(task.mutators) do list[i] = {fields_of(m[1]), m[2]} end
  return list
end

-- The candidates by their traces; a trace that nobody has any more is forgotten.
local function measuring(task, own)
  local made = setmetatable({}, {__mode = "k"})
  function own.replay(_, jobs)
    if type(jobs) ~= "table" then
      error(string.format("env:replay takes a list of jobs, as env:draw_jobs gives them, not a %s", type(jobs)), 2)
    end
    for i, job in ipairs(jobs) do
      if type(job) ~= "table" or msched.type(job.trace) ~= "trace" then
        error(string.format("env:replay: item %d is no job, {trace = …}, but a %s", i,
                            type(job) == "table" and "table without a trace" or type(job)), 2)
      end
    end
    local list = task:replay(jobs)
    for _, c in ipairs(list) do if c then made[c.trace] = fields_of(c) end end
    return list
  end
  function own.measure(_, candidates)
    if type(candidates) ~= "table" then
      error(string.format("env:measure takes a list of candidates, as env:replay gives them, not a %s",
                          type(candidates)), 2)
    end
    local list = {}
    for i, c in ipairs(candidates) do
      local known = type(c) == "table" and c.trace ~= nil and made[c.trace]
      if not known or known.hash ~= c.hash then
        error(string.format("env:measure: item %d is no candidate, as env:replay gives them, but a %s", i,
                            known and "candidate with another hash" or type(c)), 2)
      end
      list[i] = fields_of(known)
    end
    return task:measure(list)
  end
end

function view.of(task)
  local own, live = {sketches = table.move(task.sketches, 1, #task.sketches, 1, {}), mutators = mutators_of(task)}, {}
  for _, name in ipairs(FIELDS) do live[name] = true end
  for _, name in ipairs(METHODS) do own[name] = function(_, ...) return task[name](task, ...) end end
  function own.best(_, most)
    local list = {}
    for i, b in ipairs(task:best(most)) do list[i] = fields_of(b) end
    return list
  end
  measuring(task, own)
  return setmetatable(own,
                      {__index = function(_, name) if live[name] then return task[name] end end, __metatable = "env"})
end

return view
