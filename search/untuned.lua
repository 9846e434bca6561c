-- Without tuning: the fastest that the store knows of a task, or the first proposal that can be built, which is stored
-- as not measured. No kernel runs.
local analytical, fixed_order = msched.load "search.cost.analytical", msched.load "search.fixed_order"
local resume, run_options = msched.load "search.resume", msched.load "search.options"

local untuned = {}

-- As analytical.candidates takes them: of a sketch, of all, of a register tile; and how many are drawn beside them.
untuned.PROPOSALS, untuned.DRAWN = {budget = 10000, most = 200, each = 3}, 200

-- What a proposal depends on besides function and target, as its record has it; nil: it is made again each time, since
-- it depends on what the user gives.
local PARTS = {"files", "without", "rules", "spaces", "mutators", "postprocs"}
local function proposer_of(options)
  local registered = msched.registered
  local own = #registered.rule + #registered.postproc + #registered.mutator + #registered.space > 0
    or options.whole or options.skip_failing or options.simulate or options.deterministic
  for _, name in ipairs(PARTS) do
    for _, part in ipairs(options[name] or {}) do own = own or part ~= fixed_order end -- which is ours
  end
  local stamp = not own and msched.stamp()
  if not stamp then return nil end
  return string.format("%s %d%s", stamp, options.seed or run_options.standard.seed,
                       options.fixed_order and " in order" or "")
end

-- The fastest that was measured here, by these versions, of the function or of an equal one.
local function known(task, store)
  local fastest
  for _, list in ipairs {store:records {workload = task.workload, target = task.target.text}, task.shared} do
    for _, r in ipairs(list) do
      local in_order = not task.fixed_order or fixed_order.has_note(r)
      local here = in_order and r.status == "measured" and r.target == task.target.text
        and r.versions == msched.versions()
      if here and (not fastest or r.seconds < fastest.seconds) then fastest = r end
    end
  end
  return fastest
end

local LOOKED = 8 -- so many that can be built are looked at before one that is not clean is taken

-- Whether nothing that the assembler says of a kernel makes it slow: registers that spill, arrays of a thread in
-- memory, products that wait for one another. Where the estimate has that many spills, ptxas is not asked. What no
-- assembler has seen is else taken as it is; nil and why: a block takes more than the target has.
local function is_clean(kernel, target)
  if not target.arch then return true end
  for _, k in ipairs(kernel:resources()) do if k.estimated_spills then return false end end
  local assembled, list = pcall(kernel.resources, kernel, true)
  if not assembled and tostring(list):find "NVRTC is missing" or tostring(list):find "NVRTC has no code" then
    return true
  end
  if not assembled then return nil, list end
  for _, k in ipairs(list) do
    if k.spill_stores + k.spill_loads + k.stack_bytes > 0 or k.serialized then return false end
  end
  return true
end

-- The first that can be built and is clean, or else the first that can be built; and else why the last cannot. Where
-- the run's options have `build`, that builds it: build(func, trace) gives a kernel, and may keep it for its own use.
local function first_built(task, list)
  local first, seen, why = nil, 0, nil
  local build = task.services.options.build or function(func, trace)
    return msched.build(msched.apply(func, trace):func(),
                        {target = task.target.text, reference = func, load = false})
  end
  for _, c in ipairs(list) do
    local ok, kernel = pcall(build, task.func, c.trace)
    local clean, message
    if ok then clean, message = is_clean(kernel, task.target) end
    if clean then return c end
    if clean == false then first, seen = first or c, seen + 1 else why = tostring(message or kernel) end
    if seen == LOOKED then break end
  end
  return first, why
end

-- The top-ranked candidate that can be built; nil and why: there is none.
function untuned.choice(task)
  local c, why = first_built(task, (analytical.candidates(task, untuned.PROPOSALS, untuned.DRAWN)))
  return c, why and "no proposal can be built: " .. why or "every proposal was refused"
end

-- Gives the task the store's fastest, where it has one.
function untuned.take_stored(task)
  local store = task.services.store
  local r = known(task, store)
  if not r then return false end
  store:take_intrinsics(r.id)
  task:note_best(r.seconds, store:short_id(r.key), r.id, r.hash, msched.read_trace(r.trace))
  task:finish("untuned", "the store has it")
  return true
end

-- Stores a candidate as not measured: the task's `fastest`.
function untuned.keep(task, c)
  local id, short =
    task.services.store:put {workload = task.workload, target = task.target.text, trace = c.trace, hash = c.hash,
                             status = "unmeasured", seed = task.seed, candidate = c.candidate,
                             search = {proposer = proposer_of(task.services.options)}}
  task.fastest = {id = short, full_id = id, hash = c.hash, trace = c.trace}
  task:finish("untuned", "nothing was measured")
end

-- A function as the store's records are looked up for a task; `known` asks for what it shares with others, too.
local function looked_up(func, target, store, options)
  return {func = func, target = target, fixed_order = options.fixed_order, workload = store:workload_id(func)}
end

-- The proposal that this program made of a task before, as a record that was not measured.
local function proposed(task, store, options)
  local proposer, found = proposer_of(options), nil
  for _, each in ipairs(proposer and store:records {workload = task.workload, target = task.target.text} or {}) do
    local here = each.status == "unmeasured" and each.versions == msched.versions()
    if here and each.search and each.search.proposer == proposer then found = each end
  end
  return found
end

-- untuned.stored(func, target, store, options): what untuned.find would find of a function that the store knows,
-- without opening its space: {id, full_id, hash, trace [, seconds]}, the fastest that was measured, or the proposal
-- that this program made of it before. nil: there is none.
function untuned.stored(func, target, store, options)
  local task = looked_up(func, target, store, options)
  task.shared = resume.shared(task, store)
  local r = known(task, store) or proposed(task, store, options)
  if not r then return nil end
  store:take_intrinsics(r.id)
  return {id = store:short_id(r.key), full_id = r.id, hash = r.hash, trace = msched.read_trace(r.trace),
          seconds = r.status == "measured" and r.seconds or nil}
end

-- The same arguments: the seconds of the fastest that was measured, or nil.
function untuned.measured(func, target, store, options)
  local task = looked_up(func, target, store, options)
  task.shared = resume.shared(task, store)
  local r = known(task, store)
  return r and r.seconds
end

-- And the trace of the proposal that this program made of it, not measured, or as the first trial of a search; nil:
-- the store has none.
function untuned.proposed(func, target, store, options)
  local task = looked_up(func, target, store, options)
  local r = proposed(task, store, options)
  for _, each in ipairs(r and {} or store:records {workload = task.workload, target = target.text}) do
    if each.status == "measured" and each.versions == msched.versions() and each.candidate == 0 then r = each end
  end
  if not r then return nil end
  store:take_intrinsics(r.id)
  return msched.read_trace(r.trace)
end
untuned.proposer = proposer_of

-- Gives the task its `fastest`, or says why there is none.
function untuned.find(task)
  if untuned.take_stored(task) then return end
  local c, why = untuned.choice(task)
  if not c then return task:fail(why) end
  untuned.keep(task, c)
end

return untuned
