-- A network tuned: each function of its plan is a task, which counts as often as it stands in the network.
local ms = msched
local plan, inside = ms.load "lua.net.plan", ms.load "lua.net.inside"
local search, run_options = ms.load "search.tune", ms.load "search.options"
local tune = {}

-- The tasks of a run, by the hashes of their functions.
local function by_hash(tasks)
  local found = {}
  for _, task in ipairs(tasks) do found[task.func:hash()] = task end
  return found
end

-- What plan.open takes for a function, as a trace schedules it; nil: as it is written.
local function build(entry, trace, target)
  local func = trace and ms.apply(entry.func, trace):func() or entry.func
  return plan.build(func, {target = target, reference = entry.func})
end

-- What plan.open takes to make kernels: of a function as its task's best schedule says, or as it is written where there
-- is none.
function tune.builder(tasks, target)
  local found = by_hash(tasks)
  return function(entry)
    local task = found[entry.hash]
    return build(entry, task and task.fastest and task.fastest.trace, target)
  end
end

-- tune.inside(prepared, tasks, store, target): as inside.choose. On a device nothing is chosen: its kernels are timed
-- with warm caches alone, as they are in the network's graph.
function tune.inside(prepared, tasks, store, target)
  if ms.target(target or "native").arch then return {compared = 0, changed = 0} end
  return inside.choose(prepared, tasks, store, function(entry, trace) return build(entry, trace, target) end)
end

-- Finalists are timed inside the network where this machine measured them.
local function choose_inside(prepared, tasks, options)
  if options.no_tune or options.simulate or options.deterministic or ms.interrupted() then return end
  local store = options.store or ms.store(options.db)
  local ok, message = pcall(tune.inside, prepared, tasks, store, options.target)
  if not options.store then store:close() end
  if not ok then error(message, 0) end
end

-- tune.plan(net [, options]): the plan of a network, each function with the schedule that is best: the store's, where
-- it was tuned, and with `no_tune` what the analytical model proposes. options: those of ms.tune, and given, arrays of
-- inputs where shapes depend on them; passes, files of users'; written: functions as they are written.
function tune.plan(net, options)
  options = ms.options(options, run_options.known .. " given:table passes:table written:boolean") or {}
  local prepared = plan.prepare(net, {given = options.given, passes = options.passes, target = options.target,
                                      fixed_order = options.fixed_order})
  if options.written then return plan.open(prepared, tune.builder({}, options.target), options.target) end
  local items, tasks = {}, {}
  for _, entry in ipairs(prepared.functions) do
    -- others have nothing to do
    if not entry.func:has_empty() then items[#items + 1] = {entry.func, weight = entry.weight} end
  end
  if #items > 0 then tasks = search.all(items, options) end
  for _, task in ipairs(tasks) do if task.error then error(task.error, 0) end end
  choose_inside(prepared, tasks, options)
  local opened = plan.open(prepared, tune.builder(tasks, options.target), options.target)
  opened.tasks = tasks
  return opened
end

return tune
