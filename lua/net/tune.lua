-- A network tuned: each function of its plan is a task, which counts as often as it stands in the network.
local ms = msched
local plan, inside = ms.load "lua.net.plan", ms.load "lua.net.inside"
local search, run_options, stored = ms.load "search.tune", ms.load "search.options", ms.load "search.untuned".stored
local tune = {}

-- The tasks of a run, by the hashes of their functions.
local function by_hash(tasks)
  local found = {}
  for _, task in ipairs(tasks) do found[task.func:hash()] = task end
  return found
end

-- What plan.open takes for a function, as a trace schedules it; nil: as it is scheduled at once, or as it is written.
-- seconds: where it was measured.
local function build(entry, trace, target, seconds)
  trace = trace or entry.at_once
  local func = trace and ms.apply(entry.func, trace):func() or entry.func
  local built = plan.build(func, {target = target, reference = entry.func}, entry.in_place)
  built.trace, built.seconds = trace, seconds
  return built
end

-- What plan.open takes to make kernels: of a function as its task's best schedule says, or without tuning where nothing
-- was measured of it, or as it is written where there is none. untuned: without tuning, of all that have it.
-- built: kernels that are there already.
function tune.builder(tasks, target, untuned, built)
  local found = by_hash(tasks)
  return function(entry)
    local task = found[entry.hash]
    local first, second = task and task.fastest, task and task.untuned
    if untuned then first, second = second, first end
    local chosen = first or second
    local known = built and chosen and built[entry.hash .. chosen.trace:json()]
    return known or build(entry, chosen and chosen.trace, target, chosen and chosen.seconds)
  end
end

-- Whether tasks have another best schedule than without tuning.
local function differs(tasks)
  for _, task in ipairs(tasks) do
    if task.untuned and task.fastest and task.fastest.hash ~= task.untuned.hash then return true end
  end
  return false
end

-- The plan with the best of each task, and that without tuning, timed in turn: of the first two the faster one is what
-- the store has as the fastest from now on.
local function take_faster(result, prepared, tasks, store, target)
  local function open(untuned)
    local opened = plan.open(prepared, tune.builder(tasks, target, untuned), target)
    opened:fill(1)
    return opened
  end
  local tuned, base = open(), open(true)
  local seconds, untuned, ratio = inside.compare(tuned, base)
  if not seconds then return end
  result.seconds, result.untuned_seconds, result.plan = seconds, untuned, tuned
  -- both of its rounds and of its median, so that what is printed is what was chosen
  local changed = math.max(ratio, seconds / untuned) > 1 and inside.take_untuned(tasks, store, math.max(ratio, 1)) or 0
  if changed > 0 then result.kept_untuned, result.plan, result.seconds = changed, base, untuned end
end

-- tune.settle(prepared, tasks, store, target): what is used of tasks that were tuned, as inside.choose, and where the
-- network with it is slower than without tuning, that. Gives what inside.choose does, and where there are two plans to
-- compare plan, the faster one; seconds, untuned_seconds; kept_untuned: of how many tasks the untuned candidate is used
-- since it is faster as a whole. On a device no finalists are chosen: its kernels are timed with warm caches alone, as
-- they are in the network's graph.
function tune.settle(prepared, tasks, store, target)
  local result = {compared = 0, changed = 0}
  if not ms.target(target or "native").arch then
    result = inside.choose(prepared, tasks, store, function(entry, trace) return build(entry, trace, target) end)
  end
  if differs(tasks) and not ms.interrupted() then take_faster(result, prepared, tasks, store, target) end
  return result
end

-- Finalists are timed inside the network where this machine measured them. Gives the plan, where there is one.
local function settle(prepared, tasks, options)
  if options.no_tune or options.simulate or options.deterministic or ms.interrupted() then return end
  return tune.settle(prepared, tasks, options.store, options.target).plan
end

-- Without tuning: tasks of functions whose best the store knows, as search.all would give them, though none is
-- searched; and items of the others, for it.
local function stored_tasks(prepared, options)
  local tasks, items = {}, {}
  local store = options.no_tune and options.store
  local target = ms.target(options.target or "native")
  for _, entry in ipairs(prepared.functions) do
    local fastest = store and not entry.func:has_empty() and stored(entry.func, target, store, options)
    if fastest then
      tasks[#tasks + 1] = {func = entry.func, name = entry.name, weight = entry.weight, target = target,
                           fastest = fastest}
    elseif not entry.func:has_empty() then -- others have nothing to do
      items[#items + 1] = {entry.func, weight = entry.weight, untuned = true}
    end
  end
  return tasks, items
end

-- What builds a proposal when it is made, and keeps it for the plan: a kernel is built once.
local function keeping(prepared, options, built)
  if not options.no_tune or ms.target(options.target or "native").arch then return nil end -- of GPUs many are looked at
  local entries = {}
  for _, entry in ipairs(prepared.functions) do entries[entry.hash] = entry end
  return function(func, trace)
    local entry = entries[func:hash()] -- a group of a function that is cut is none
    if not entry then
      return ms.build(ms.apply(func, trace):func(), {target = options.target, reference = func, load = false})
    end
    local made = build(entry, trace, options.target)
    built[entry.hash .. trace:json()] = made
    return made.kernel
  end
end

-- Functions whose spaces were not open in time are scheduled at once, where that can be.
local function schedule_at_once(prepared, tasks, unopened, options)
  if #unopened > 0 and (options.fixed_order or ms.target(options.target or "native").arch) then
    error(string.format("the seconds were over before the spaces of %d of its functions were open, `%s` the first, \z
                         and %s has no schedule at once: give it more", #unopened, unopened[1],
                        options.fixed_order and "a fixed order" or "a GPU"), 0)
  end
  local found = by_hash(tasks)
  for _, entry in ipairs(#unopened > 0 and prepared.functions or {}) do
    if not found[entry.hash] and not entry.func:has_empty() then
      entry.at_once = ms.auto_schedule(entry.func, {target = options.target}).trace
    end
  end
end

local LONG = 60 -- seconds of a run that has time

-- What layouts are chosen by (lua/net/layout_costs.lua): the store; with time, where a run asks for layouts by cost,
-- the analytical model's estimates of all that may pay, which are rough; nil: nothing but options decides in such runs.
function tune.costs(options, store)
  if options.deterministic or options.simulate or options.fleet then return nil end
  local further = options.layout == "auto" and not options.no_tune and (options.seconds or LONG) >= LONG
  return setmetatable({store = store, further = further}, {__index = options})
end

-- The seconds of a run that are left to its search, of which it spent those since a time on layouts; a tenth at least.
-- nil: it has no limit.
function tune.seconds_left(options, began)
  return options.seconds and math.max(options.seconds - (ms.clock() - began), options.seconds / 10)
end

-- The plan as tune.plan gives it, with the store open.
function tune.opened(net, options)
  local began = ms.clock()
  local prepared = plan.prepare(net, {given = options.given, passes = options.passes, layout = options.layout,
                                      costs = tune.costs(options, options.store), target = options.target,
                                      fixed_order = options.fixed_order})
  local built, tasks, items = {}, stored_tasks(prepared, options) -- built: kernels, by functions and schedules
  local unopened = {}
  if #items > 0 then
    local more, _, late = search.all(items, setmetatable({build = keeping(prepared, options, built),
                                                          seconds = tune.seconds_left(options, began)},
                                                         {__index = options}))
    for _, task in ipairs(more) do
      if task.error then error(task.error, 0) end
      tasks[#tasks + 1] = task
    end
    unopened = late
  end
  schedule_at_once(prepared, tasks, unopened, options)
  local opened = settle(prepared, tasks, options)
    or plan.open(prepared, tune.builder(tasks, options.target, false, built), options.target)
  opened.tasks, opened.unopened = tasks, unopened
  return opened
end

-- tune.plan(net [, options]): the plan of a network, each function with the schedule that is best: the store's, where
-- it was tuned, and with `no_tune` what the analytical model proposes. options: those of ms.tune, and given, arrays of
-- inputs where shapes depend on them; passes, files of users'; layout, one of layout.NAMES; written: functions as they
-- are written.
function tune.plan(net, options)
  options = ms.options(options, run_options.known .. " given:table passes:table layout:string written:boolean") or {}
  if options.written then
    return plan.open(plan.prepare(net, options), tune.builder({}, options.target), options.target)
  end
  local store = options.store or ms.store(options.db)
  local ok, opened = pcall(tune.opened, net, setmetatable({store = store}, {__index = options}))
  if not options.store then store:close() end
  if not ok then error(opened, 0) end
  return opened
end

return tune
