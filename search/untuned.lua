-- Without tuning: the fastest that the store knows of a task, or the first of its drafts that can be built, which is stored
-- as not measured. No kernel runs.
local draft = msched.load "search.draft"

local untuned = {}

local DRAFTS = {budget = 10000, most = 200, each = 3} -- of a sketch; of all; of a register tile
local DRAWN = 200

-- The fastest that was measured here, by these versions, of the function or of an equal one.
local function known(task, store)
  local fastest
  for _, list in ipairs {store:records {workload = task.workload, target = task.target.text}, task.shared} do
    for _, r in ipairs(list) do
      local here = r.status == "measured" and r.target == task.target.text and r.versions == msched.versions()
      if here and (not fastest or r.seconds < fastest.seconds) then fastest = r end
    end
  end
  return fastest
end

-- The first that can be built; and else why the last cannot.
local function first_built(task, list)
  local why
  for _, c in ipairs(list) do
    local ok, message = pcall(msched.build, msched.apply(task.func, c.trace):func(), {target = task.target.text, reference = task.func})
    if ok then return c end
    why = tostring(message)
  end
  return nil, why
end

-- Gives the task its `fastest`, or says why there is none.
function untuned.find(task)
  local store = task.services.store
  local r = known(task, store)
  if r then
    store:take_intrinsics(r.id)
    task:note_best(r.seconds, store:short_id(r.key), r.id, r.hash, msched.read_trace(r.trace))
    return task:finish("untuned", "the store has it")
  end
  local c, why = first_built(task, (draft.candidates(task, DRAFTS, DRAWN)))
  if not c then return task:fail(why and "no draft can be built: " .. why or "every draft was refused") end
  local id, short = store:put {workload = task.workload, target = task.target.text, trace = c.trace, hash = c.hash, status = "unmeasured", seed = task.seed, candidate = c.candidate}
  task.fastest = {id = short, full_id = id, hash = c.hash, trace = c.trace}
  task:finish("untuned", "nothing was measured")
end

return untuned
