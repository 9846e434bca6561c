-- Tuning: the entry point. Opens the spaces of functions, makes tasks of them, and runs these on shared services.
local targets, space, refusals = msched.load "rules.targets", msched.load "rules.space", msched.load "rules.refusals"
local Task, Run = msched.load "search.task", msched.load "search.run"
local groups, whole = msched.load "search.groups.groups", msched.load "search.groups.whole"
local fixed, run_options = msched.load "search.fixed", msched.load "search.options"
local sources = msched.load "search.sources"
local log, policies, schedulers, services = msched.load "search.log", msched.load "search.policy",
  msched.load "search.scheduler", msched.load "search.services"

local tune = {reasons_text = Task.reasons_text, kept_text = Task.kept_text}

-- ---- Spaces ------------------------------------------------------------------------------------------------------

-- What the script registered with ms.rule and its like, then what the options hold.
local function own(kind, given)
  local list = table.move(msched.registered[kind], 1, #msched.registered[kind], 1, {})
  return table.move(given or {}, 1, #(given or {}), #list + 1, list)
end

-- Candidates are made for constant extents, and run with arguments of our own.
local function check_extents(func)
  local list, text = func:symbolic()
  if #list > 0 then error(string.format("`%s`: tuning needs shapes that are numbers, but %s", func:name(), text), 0) end
  local params = func:params()
  if #params == 0 then
    error(string.format("`%s` has no parameters: tuning compares what it writes, so give it a buffer of its result",
                        func:name()), 0)
  end
  for _, p in ipairs(params) do
    if not p.shape then
      local way = p.type:find "int"
        and string.format(", or give it: --dim %s=N, or ms.specialize(func, {%s = N})", p.name, p.name) or ""
      error(string.format("`%s` has a parameter that is a scalar, %s: tuning needs extents, so write its value as a \z
                           constant%s", func:name(), p.name, way), 0)
    end
    for d, extent in ipairs(p.shape) do
      if extent < 0 then
        error(string.format("`%s`: extent %d of `%s` is an expression of no parameter: tuning needs numbers",
                            func:name(), d, p.name), 0)
      end
    end
  end
end

local BLOCK_WEIGHT = 0.2 -- of the mutator that changes one block's choice, where a space is factored

-- The mutators of a sandbox and those given, with their weights; what is refused in one is counted, and changes
-- nothing.
local function open_mutators(sandbox, given, refused)
  local mutators = {}
  local function add(name, weight, mutate)
    mutators[#mutators + 1] = {{name = name, apply = function(trace, stream, other)
      local made, code, message = mutate(trace, stream, other)
      if code then refusals.add(refused, name, code, message) end
      return made
    end}, weight}
  end
  for i, m in ipairs(sandbox:mutators()) do add(m[1], m[2], function(...) return sandbox:mutate(i, ...) end) end
  for _, m in ipairs(given) do add(m.name, m.weight, function(...) return space.mutate(m, ...) end) end
  return mutators
end

-- A state as a walk gives it, of which the trace alone is known.
local function as_trace(state) return {sch = {trace = state.trace}, own = state.own, marks = state.marks} end

local function as_schedule(func, state)
  return {sch = msched.apply(func, state.trace), own = state.own, marks = state.marks}
end

-- One walk over the rules: those of the target and of files in their sandbox, then those of this state, for which alone
-- the states are replayed here.
local function walk(func, box, parts, seed, groups)
  if #parts.spaces > 0 then return space.walk(func, parts, seed, groups) end
  local given, states, users = box:sketches(func, seed, groups), {}, #parts.users > 0
  for i, s in ipairs(given.states) do states[i] = users and as_schedule(func, s) or as_trace(s) end
  local report = {refused = {}, sites = given.sites, idle = {}}
  if users then
    states, report = space.extend(func, parts.context, parts.users, states, seed, groups, given.sites)
    report.idle = space.idle(parts.users, report)
    for _, rule in ipairs(parts.users) do -- blocks that ask for these get them now
      for i = #given.refused, 1, -1 do if given.refused[i].by == rule.name then table.remove(given.refused, i) end end
    end
  end
  refusals.merge(report.refused, given.refused)
  report.thinned = report.thinned or given.thinned
  report.left_out = report.left_out or given.left_out
  table.move(given.idle, 1, #given.idle, #report.idle + 1, report.idle)
  return states, report
end

-- The traces of the sketches, a report, and the space where it is factored.
local function generate(func, box, parts, seed)
  local states, report, product = space.open(function(groups) return walk(func, box, parts, seed, groups) end)
  local traces = {}
  for i, s in ipairs(states) do traces[i] = s.sch.trace end
  return traces, report, product
end

local function simplified(traces)
  local list = {}
  for i, trace in ipairs(traces) do list[i] = trace:simplified(false) end
  return list
end

-- The sketches that a seed draws, as traces; of a space that is factored by block one combination.
local function reopen(func, box, parts, seed)
  local traces, _, product = generate(func, box, parts, seed)
  return product and {(product:sketch(product:combination(seed, seed)))} or simplified(traces)
end

-- The sandbox of a target's rules and the user's files. Where there are no files, functions that are opened with the
-- same options.boxes share it: what is shipped keeps nothing from one function to the next.
local function box_of(target, options, timeout)
  local files, boxes = sources(options), options.boxes
  local box = boxes and #files == 0 and boxes[target.text]
  if box then return box end
  box = msched.sandbox {files = files, target = target.text, timeout = timeout, skip_failing = options.skip_failing}
  if boxes and #files == 0 then boxes[target.text] = box end
  return box
end

-- Why there is nothing to tune in a function with an extent of 0, all of whose blocks have one.
function tune.empty_text(func)
  return string.format("%s: nothing to tune: an extent of it is 0, so that it computes no elements there; `msched \z
                        run` runs it as it is", func:name())
end

-- Opens the space of a function on a target. Gives sketches, as schedules, which are made when they are first asked
-- for; traces, theirs, simplified; mutators; postprocs, those that run in this state; refused, what was
-- (rules/refusals.lua); thinned, whether there are more sketches; unscheduled, whether the function has no block that
-- could be scheduled; product, the space factored by block (rules/factored.lua) where it is large: sketches is then
-- every choice of every block once; idle, the names of rules of the user's that changed nothing; reopen, which gives
-- the sketches that another seed makes, as traces. The target's rules and those of options.files run in a sandbox;
-- closures (registered, or options.rules, options.postprocs, options.mutators) run here, and so does a space that the
-- script describes in place of the target's. Each call has options.rule_timeout seconds; with options.skip_failing, one
-- that fails counts as refused.
function tune.open(func, target, options)
  check_extents(func)
  local timeout = options.rule_timeout or run_options.standard.rule_timeout
  if func:has_empty() then error(tune.empty_text(func), 0) end
  msched.rule_timeout(timeout)
  msched.skip_failing(options.skip_failing)
  local box = box_of(target, options, timeout)
  local parts = space.parts(targets.context(target))
  space.add(parts,
            {space = own("space", options.spaces), rule = own("rule", options.rules), postproc = {}, mutator = {}})
  local traces, report, product = generate(func, box, parts, options.seed or run_options.standard.seed)
  local refused = report.refused
  if #traces == 0 then
    error(string.format("`%s`: no sketch is left of its space; refused:\n%s", func:name(), refusals.text(refused)), 0)
  end
  local mutators = open_mutators(box, own("mutator", options.mutators), refused)
  if product then
    table.insert(mutators, {{name = "block", apply = function(...) return product:mutate(...) end}, BLOCK_WEIGHT})
  end
  local opened = {traces = simplified(traces), mutators = mutators, postprocs = own("postproc", options.postprocs),
                  refused = refused, thinned = report.thinned, unscheduled = #msched.schedule(func):block_names() == 0,
                  product = product, idle = report.idle or space.idle(parts.users, report),
                  reopen = function(seed) return reopen(func, box, parts, seed) end}
  return setmetatable(opened, {__index = function(_, name)
    if name ~= "sketches" then return nil end
    opened.sketches = {}
    for i, trace in ipairs(traces) do opened.sketches[i] = msched.apply(func, trace) end
    return opened.sketches
  end})
end

-- ---- A fixed order of reductions ---------------------------------------------------------------------------------

local DRAWS = 32 -- of a sketch, after which it counts as one that changes the order whatever it draws

-- The sketches that keep the order of reductions of floats in some draw, and how many do not.
local function in_order(func, sketches, seed)
  local list, why = {}, nil
  for _, sketch in ipairs(sketches) do
    local ok
    for candidate = 1, DRAWS do
      ok, why = pcall(function()
        msched.apply(func, sketch, {resample = true, seed = seed, candidate = candidate}):check_reduction_order()
      end)
      if ok or #sketch:draws() == 0 then break end
    end
    if ok then list[#list + 1] = sketch end
    if msched.interrupted() then break end
  end
  if #list == 0 and not msched.interrupted() then
    error(string.format("`%s`: no sketch keeps the order of its reductions; the last: %s", func:name(), tostring(why)),
          0)
  end
  return list
end

-- ---- Tasks -------------------------------------------------------------------------------------------------------

local MOST_WEIGHT = 1e9 -- of a task

-- A function, or {function, weight = w, untuned = bool}; the weight is 1 where it is not said.
local function weighed(item)
  if type(item) ~= "table" then return item, 1, false end
  local weight = item.weight or 1
  if type(weight) ~= "number" or not (weight > 0 and weight <= MOST_WEIGHT) then
    error(string.format("a task's `weight` is a number above 0, of at most %g", MOST_WEIGHT), 0)
  end
  return item[1], weight, item.untuned or false
end

-- Functions that are equal, whatever the names in them, are one task: the first of them, whose weight is the sum of
-- theirs.
local function distinct(items)
  local list, by_hash, taken = {}, {}, {}
  for _, item in ipairs(items) do
    local func, weight, untuned = weighed(item)
    func = msched.without_empty(func) or func
    check_extents(func)
    local hash = func:hash()
    local known = by_hash[hash]
    if known then
      known.weight = known.weight + weight
      known.untuned = known.untuned or untuned
      known.equal[#known.equal + 1] = func:name()
    else
      local name, n = func:name(), 1
      while taken[name] do
        n = n + 1
        name = func:name() .. "#" .. n
      end
      taken[name] = true
      by_hash[hash] = {func = func, name = name, weight = weight, equal = {}, untuned = untuned}
      list[#list + 1] = by_hash[hash]
    end
  end
  return list
end

-- What a task has of the options of a run.
local function fields_of(each, run, target, options)
  return {
    name = each.name, weight = each.weight, equal = each.equal, target = target, trials = options.trials
      or run_options.standard.trials, asked = (options.trials or options.total or options.deterministic) ~= nil,
    seed = options.seed or run_options.standard.seed, batch = options.batch or run_options.standard.batch,
    most_failures = options.failures or run_options.standard.failures, simulate = options.simulate,
    -- 0: none
    policy_timeout = options.deterministic and 0 or options.policy_timeout or run_options.standard.policy_timeout,
    proposed = options.deterministic and {} or nil, fixed_order = options.fixed_order, run = run, log = run.log,
    bound = schedulers.bound(each.func, target), of_whole = each.of_whole, budget = each.budget,
    begins_untuned = each.untuned and not each.cut and not options.deterministic and not options.simulate,
  }
end

-- Tells policies and spaces apart: FNV-1a of the policy's name and of the sketches.
local function space_key(policy, sketches, fixed_order)
  local key = 0x811c9dc5
  local function add(text)
    for i = 1, #text do key = (key ~ text:byte(i)) * 0x01000193 & 0xffffffff end
  end
  add(policy.name .. (fixed_order and " in order" or ""))
  for _, sketch in ipairs(sketches) do add(sketch:text()) end
  return key
end

local function target_of(options)
  return msched.target(options.target or "native", {runs = not (options.simulate or options.no_tune or options.fleet)})
end

local OPENING = 1e6 -- seconds, where the run has no limit

local function too_late(run, each)
  return string.format("the %g seconds that the run has were over before the space of `%s` was open; give it more",
                       run.seconds, each.name)
end

-- The task; nil: its space was not open in so many seconds.
local function open_task(each, run, shared, policy, options, seconds)
  local start, target = msched.clock(), target_of(options)
  if seconds <= 0 then return nil end
  local ok, opened = msched.within(math.min(seconds, OPENING), tune.open, each.func, target, options)
  if ok == nil then return nil end
  if not ok then error(opened, 0) end
  if options.fixed_order and opened.unscheduled and each.func:flops() > 0 then
    error(string.format("`%s` has no blocks, so nothing can note that its code is to keep the order of its \z
                         operations: put its statements in T.sblock", each.func:name()), 0)
  end
  local fields = fields_of(each, run, target, options)
  fields.policy, fields.sketches, fields.mutators, fields.postprocs = policy, opened.traces,
    opened.mutators, opened.postprocs
  fields.refused, fields.thinned, fields.idle_rules, fields.product, fields.reopen = opened.refused, opened.thinned,
    opened.idle, opened.product, opened.reopen
  fields.unscheduled, fields.space_key = opened.unscheduled, space_key(policy, fields.sketches, options.fixed_order)
  if options.fixed_order and not fields.product then
    fields.sketches = in_order(each.func, fields.sketches, options.seed or 1)
  end
  local task = Task.new(each.func, fields)
  if policy.needs.model and options.deterministic and not options.model then task.model = fixed.model(task)
  elseif policy.needs.model then task:take_model(shared:model()) end
  task.spent.open = msched.clock() - start
  return task
end

-- ---- Functions that are cut --------------------------------------------------------------------------------------

-- The task of a function that is composed of its groups. It has no space of its own.
local function open_whole(each, run, options)
  local fields = fields_of(each, run, target_of(options), options)
  fields.policy, fields.sketches, fields.mutators, fields.postprocs, fields.refused, fields.idle_rules = whole.policy,
    {}, {}, {}, {}, {}
  fields.parts, fields.cut, fields.part_of_group, fields.space_key = {}, each.cut, {},
    space_key(whole.policy, {}, options.fixed_order)
  local task = Task.new(each.func, fields)
  each.budget.whole = task
  return task
end

-- The work of a group's instances, by which those that have most come first.
local function work_of(group) return group.weight * math.max(group.func:flops(), group.func:integer_ops()) end

-- The groups of a function as entries of the list, those that are in it already with more weight, and then the
-- function.
local function add_parts(list, each, options)
  local budget, by_hash = whole.budget(options.trials), {}
  for _, other in ipairs(list) do by_hash[other.func:hash()] = not other.cut and other or nil end
  local sorted = table.move(each.cut, 1, #each.cut, 1, {})
  table.sort(sorted, function(a, b)
    local x, y = work_of(a), work_of(b)
    return x ~= y and x > y or x == y and a.name < b.name
  end)
  each.entries = {}
  for _, group in ipairs(sorted) do
    local known, weight = by_hash[group.func:hash()], each.weight * group.weight
    if known then known.weight = known.weight + weight
    else
      known = {func = group.func, name = group.name, weight = weight, equal = {}, of_whole = each.name, budget = budget}
      list[#list + 1] = known
    end
    each.entries[group] = known
  end
  each.budget = budget
  list[#list + 1] = each
end

-- The entries of a run: functions, and of those that are cut the groups before them. A space that the script describes
-- is one of the function as it is.
local function with_parts(items, run, options)
  local as_it_is = options.whole or #msched.registered.space > 0 or #(options.spaces or {}) > 0
  local list = {}
  for _, each in ipairs(items) do
    local why
    if not as_it_is then each.cut, why = groups.needed(each.func) end
    if why then run.log("uncut", each.name, {reason = why}) end
    if each.cut then
      local instances = 0
      for _, g in ipairs(each.cut) do instances = instances + g.weight end
      run.log("cut", each.name,
              {size = each.cut.blocks, anchors = each.cut.anchors, groups = #each.cut, instances = instances})
      add_parts(list, each, options)
    else
      list[#list + 1] = each
    end
  end
  return list
end

tune.OPENING_SECONDS = 1 -- between two events of how many spaces are open
tune.OPENING_SHARE = 1 / 2 -- of a run's seconds: after these no other space is opened, so that some are searched

-- Seconds in which a space is to be open: of the first, all that the run has.
local function opening_seconds(run, each, is_first)
  local left = run:seconds_left(each)
  if is_first or not run.seconds then return left end
  return math.min(left, tune.OPENING_SHARE * run.seconds - (msched.clock() - run.started))
end

-- Whether all groups of a function that was cut have tasks.
local function has_parts(each, task_of)
  for _, group in ipairs(each.cut) do if not task_of[each.entries[group]] then return false end end
  return true
end

-- Leaves functions out that have no task: of one that was cut its groups, too, and what shares these with it. Gives
-- their entries.
local function leave_out(list, task_of)
  local unopened = {}
  for _, each in ipairs(list) do
    if each.cut and not has_parts(each, task_of) then task_of[each] = nil end
    if each.cut and not task_of[each] then
      for _, part in ipairs(list) do if part.of_whole == each.name then task_of[part] = nil end end
    end
    if not task_of[each] and not each.of_whole then unopened[#unopened + 1] = each end
  end
  return unopened
end

-- Makes the tasks of a run. Where its seconds for that are over before all spaces are open, it has those that are; the
-- others are reported, and run.unopened has their names.
local function open_all(items, run, shared, policy, options)
  local list, task_of, logged, late = with_parts(distinct(items), run, options), {}, msched.clock(), false
  for i, each in ipairs(list) do
    if msched.clock() - logged >= tune.OPENING_SECONDS then
      run.log("opening", each.name, {opened = i - 1, tasks = #list})
      logged = msched.clock()
    end
    if each.cut then task_of[each] = open_whole(each, run, options)
    elseif not late then
      task_of[each] = open_task(each, run, shared, policy, options, opening_seconds(run, each, i == 1))
      late = not task_of[each]
    end
  end
  local unopened = late and leave_out(list, task_of) or {}
  run.unopened = {}
  for i, each in ipairs(unopened) do run.unopened[i] = each.name end
  for _, each in ipairs(list) do
    local task = task_of[each]
    if task then
      table.insert(run.tasks, task)
      if each.of_whole then table.insert(each.budget.parts, task) end
      for j, group in ipairs(each.cut or {}) do
        task.parts[j] = task_of[each.entries[group]]
        task.part_of_group[group] = task.parts[j]
      end
    end
  end
  if #run.tasks == 0 then error(too_late(run, list[1]), 0) end
  if late then run.log("unopened", unopened[1].name, {functions = run.unopened, tasks = #list}) end
end

-- ---- Runs --------------------------------------------------------------------------------------------------------

-- A rule may be for one task of many: the first tells of those that changed nothing in any.
local function tell_of_idle(tasks)
  local counts, idle = {}, {}
  local opened = 0
  for _, task in ipairs(tasks) do opened = opened + (task.parts and 0 or 1) end
  for _, task in ipairs(tasks) do
    for _, name in ipairs(task.idle_rules) do
      counts[name] = (counts[name] or 0) + 1
      if counts[name] == opened then idle[#idle + 1] = name end
    end
    task.idle_rules = {}
  end
  if tasks[1] then tasks[1].idle_rules = idle end
end

-- What f measures of the machine before the search: nothing where the run's seconds are over. An interrupt ends it.
local function measured(run, task, f, ...)
  if run:is_late(0) then return nil end
  local ok, found = msched.within(math.min(run:seconds_left(task), OPENING), f, ...)
  if ok == false then error(found, 0) end
  return ok and found or nil
end

-- tune.all(functions, options): tunes functions, each or {function, weight = w, untuned = bool}, as the tasks of one
-- run. untuned: the first trial is the candidate that would be used without tuning, the task's `untuned`. Gives a list
-- of the tasks: func, name, fastest {id, seconds, trace}, counts, error, why it failed; ended_as {why, text}; the
-- store's path; and the names of functions that have no task, as the seconds that the run has for opening were over
-- before their spaces were open. Options: those of options.lua, trials those of each function, total and seconds those
-- of all together; and measurer; limit (a function of a function, its target, a limit that is to be measured again or
-- nil, and the sketches, gives {seconds, name, of}, what the machine is measured to take at least, or nil: it is shown,
-- and a policy may end near it), unused (a function of a task that is over, says what its kernel does not use, or nil),
-- beside (one that gives what others' routines for it take, {name =, seconds =}, or nil: it is shown).
function tune.all(items, options)
  -- once, for all states of the run
  if options.files or options.without then
    options = setmetatable({files = sources(options), without = {}}, {__index = options})
  end
  if options.fixed_order then
    local postprocs = table.move(options.postprocs or {}, 1, #(options.postprocs or {}), 1, {})
    postprocs[#postprocs + 1] = msched.load "search.fixed_order"
    options = setmetatable({postprocs = postprocs}, {__index = options})
  end
  options = setmetatable({boxes = {}}, {__index = options})
  local policy = policies.find(options.policy)
  local name, why
  if options.deterministic then name, why = fixed.refused(options) end
  if name then error(string.format("deterministic does not go with %s: %s", name, why), 0) end
  if options.transfer and not policy.needs.transfer then
    error(string.format("transfer does not go with the policy `%s`, which takes nothing from other functions; \z
                         `evolutionary` does", policy.name), 0)
  end
  local run = Run.new {seconds = options.seconds, total = options.total,
                       scheduler = options.scheduler or options.deterministic and "round-robin" or nil,
                       simulate = options.simulate, log = log.new(options.listen or function() end)}
  local shared = services.open(options)
  local path, opened = shared.store:path(), false
  local ok, message = pcall(function()
    open_all(items, run, shared, policy, options)
    opened = true -- nothing is written before all are
    tell_of_idle(run.tasks)
    for _, task in ipairs(run.tasks) do
      task.measure_limit = options.limit
        and function(again) return options.limit(task.func, task.target, again, task.sketches) end
      local function limit() return options.limit and measured(run, task, task.measure_limit) end
      if #run.tasks > 1 then task.limit_later = limit else task.limit = limit() end
      task.beside = options.beside and measured(run, task, options.beside, task.func, task.target)
    end
    if options.no_tune then run:propose(shared) else run:go(shared) end
  end)
  shared:close()
  if not ok and not (opened and run:stopped()) then error(message, 0) end
  for _, task in ipairs(run.tasks) do run:tell_end(task, options.unused) end
  return run.tasks, path, run.unopened
end

-- One function: gives its task, and the store's path; raises what went wrong. Where it was cut, its groups' tasks are
-- before it.
function tune.run(func, options)
  local tasks, path = tune.all({func}, options)
  local task = tasks[#tasks]
  if task.error then error(task.error, 0) end
  return task, path
end

-- Why nothing could be measured.
function tune.why(task)
  local text = task.ended_as.text
  local parts = {"no candidate could be measured" .. (text and ": " .. text or "")}
  if task.censored > 0 then
    parts[#parts + 1] = string.format("ended before it was done, as it took far longer than the function as it is \z
                                       written: %d (--trials asks for more)", task.censored)
  end
  if next(task.failures) then parts[#parts + 1] = "failed: " .. tune.reasons_text(task.failures) end
  if next(task.refused) then parts[#parts + 1] = "refused:\n" .. refusals.text(task.refused) end
  return table.concat(parts, "\n")
end

-- What ms.tune gives: the best kernel found.
local Best = {__name = "msched.best"}
Best.__index = Best
function Best:schedule() return msched.apply(self.func, self.trace) end
function Best:build(options)
  options = msched.options(options, "target:string fast_math:boolean")
  return msched.build(self:schedule():func(),
                      {target = options.target or self.target, reference = self.func, fast_math = options.fast_math})
end
function Best:export(path)
  local kernel = self:build()
  kernel:check_timing()
  kernel:export(path)
end

function msched.tune(func, options)
  if type(func) == "table" and msched.load "lua.net.network".is(func) then return func:plan(options) end
  if msched.type(func) ~= "function" then
    error(msched.where() .. "ms.tune takes a function, as te.func makes it, or a network, and options", 0)
  end
  options = msched.options(options, run_options.known)
  local out, value = run_options.out_of_range(options)
  if out then
    local rule = out.above and "above " .. out.least or out.most and string.format("from %d to %d", out.least, out.most)
      or "at least " .. out.least
    local shown = math.type(value) == "integer" and "%d" or "%g"
    error(string.format("%sms.tune: %s is " .. shown .. "; it is %s", msched.where(), out.field, value, rule), 0)
  end
  func = msched.without_empty(func) or func
  if options.roofline and not options.simulate then
    local limits = msched.load "lua.bench.limits".for_tuning()
    options.limit, options.unused = limits.limit, limits.unused
  end
  local watched = msched.watched -- of the session: shows what goes on, and an interrupt ends the run alone
  local task, path
  if watched then task, path = watched(tune.run, func, options) else task, path = tune.run(func, options) end
  local stopped = task.ended_as.why == "interrupted" or task:stopped()
  if stopped and not (watched and task.fastest) then
    error(tune.kept_text(task.kept, path) .. ", and the next run goes on from there", 2)
  end
  if not task.fastest then error(tune.why(task), 2) end
  return setmetatable({func = func, target = task.target.text, trace = task.fastest.trace,
                       seconds = task.fastest.seconds, id = task.fastest.id, interrupted = stopped or nil}, Best)
end

return tune
