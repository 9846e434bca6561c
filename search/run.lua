-- A run: tasks that share services, resumed as the scheduler says until nothing is left to do.
local remeasure = msched.load "search.remeasure"
local schedulers = msched.load "search.scheduler"
local transfer = msched.load "search.transfer"
local resume, untuned, whole = msched.load "search.resume", msched.load "search.untuned",
  msched.load "search.groups.whole"
local refusals = msched.load "rules.refusals"

local Run = {}
Run.__index = Run

-- fields: seconds and total, where they are limited: of all tasks together; scheduler; simulate; log.
function Run.new(fields)
  local self = setmetatable({tasks = {}, started = msched.clock(), cut = false, sharers = 1}, Run)
  for name, value in pairs(fields) do self[name] = value end
  self.pick = schedulers.find(self.scheduler)
  return self
end

function Run:stopped() return msched.interrupted() end

-- The run ends when its seconds are over.
function Run:look_at_the_clock()
  if self.seconds and msched.clock() - self.started > self.seconds then
    self.ended = self.ended or {why = "seconds", text = string.format("its %s over",
                                self.seconds == 1 and "second is" or string.format("%g seconds are", self.seconds))}
  end
end

-- Trials of all together that no task has had or waits for. While not all were resumed once, those that were not keep
-- their share; for functions that are composed of their parts some are kept.
function Run:left(task)
  if not self.total then return math.huge end
  local left, wholes = self.total, 0
  for _, t in ipairs(self.tasks) do
    left, wholes = left - t.done - t.waiting - t.late, wholes + (t.parts and 1 or 0)
  end
  if task.parts then return math.max(left, 0) end
  for _, t in ipairs(self.tasks) do if t.parts then left = left - t.budget:kept(self.total // wholes) end end
  return math.max(left, 0) // self.sharers
end

local MOMENT = 1e-3 -- seconds: of a call that is to end at once, since 0 would be no limit

-- Seconds until the run's are over, or for a part those of the parts; math.huge where they have no limit.
function Run:seconds_left(task)
  local all = self.seconds and (task.of_whole and whole.PARTS_TIME or 1) * self.seconds
  return all and math.max(self.started + all - msched.clock(), MOMENT) or math.huge
end

-- Whether the run has ended by its seconds, and this long ago: what is left is done without.
function Run:is_late(seconds) return self.seconds ~= nil and msched.clock() - self.started > self.seconds + seconds end

-- Parts leave some of the run's seconds to what is composed of them.
function Run:parts_are_over()
  return self.seconds ~= nil and msched.clock() - self.started > whole.PARTS_TIME * self.seconds
end

function Run:is_over()
  self:look_at_the_clock()
  return self.ended ~= nil or self:stopped()
end

-- ---- Waiting ------------------------------------------------------------------------------------------------------

-- Waits until nothing is waited for, or `enough` says so. What was asked for by a task that has ended since is not.
function Run:wait(enough)
  while not self:is_over() and not enough() do
    local waiting, start = {}, msched.clock()
    for _, t in ipairs(self.tasks) do if t.waiting + t.late > 0 and not t.ended then waiting[#waiting + 1] = t end end
    if #waiting == 0 then return end
    local came = self.services:wait()
    for _, t in ipairs(waiting) do
      t.spent.wait = t.spent.wait + (msched.clock() - start) / #waiting
      if not came then self.log("wait", t.name, {waiting = t.waiting + t.late}) end
    end
  end
end

-- What a task's function computes is computed in the background: until it is known, other tasks have the machine.
local function waits_for_its_reference(services, task)
  return task.waiting > 0 and services.measurer:reference(task.number) == nil
end

-- What events say of a task's limit: as it was measured here, or where its candidates are.
local function limit_of(task)
  local limit = task.limit or task.limit_elsewhere
  return limit and {name = limit.name, seconds = limit.seconds, of = limit.of}
end

-- ---- Going on ------------------------------------------------------------------------------------------------------

-- Whether the workers of a fleet lack candidates: then tasks go on beside those that wait for results.
function Run:lacks_candidates()
  local measurer = self.services.measurer
  return measurer ~= nil and measurer.lacks_candidates ~= nil and measurer:lacks_candidates()
end

-- Whether others may go on while a task waits for its reference: once the run has a result, or this has taken long.
-- Their proposals would delay the first, being made on the cores that it is built and run on.
local FIRST_SECONDS = 2

local function others_may(run, task, asked)
  if not waits_for_its_reference(run.services, task) then return false end
  for _, t in ipairs(run.tasks) do if t.done > 0 then return true end end
  return msched.clock() - asked > FIRST_SECONDS
end

-- What limits the functions of a run is measured before each is first searched: of all of them it would delay the first
-- trial by seconds.
local function step(run, task)
  if task.limit_later then
    task.limit, task.limit_later = task.limit_later(), nil
    if task.limit then run.log("limit", task.name, {limit = limit_of(task)}) end
    if run:is_over() then return end
  end
  task:step()
end

-- Each once, in order, so that something is known of all.
function Run:begin()
  local tasks = {}
  for _, t in ipairs(self.tasks) do if not t.parts then tasks[#tasks + 1] = t end end
  for i, task in ipairs(tasks) do
    if self:is_over() then return end
    self.sharers = #tasks - i + 1
    if task.budget then task.budget:begin() end
    if task:remaining() > 0 then step(self, task) end
    local looked, asked = false, msched.clock()
    self:wait(function()
      local leaves = #tasks > 1 and (looked and others_may(self, task, asked) or self:lacks_candidates())
      looked = true
      return task.waiting == 0 or leaves
    end)
  end
  self:wait(function() return self:lacks_candidates() end)
end

local function has_more(t) return not t.is_done and not t.ended and t:remaining() > 0 end

-- What is composed of parts goes on when these are over.
local function goes_on(t)
  if not has_more(t) then return false end
  for _, part in ipairs(t.parts or {}) do if has_more(part) or part.waiting + part.late > 0 then return false end end
  return true
end

function Run:live()
  local live = {}
  for _, t in ipairs(self.tasks) do if goes_on(t) then live[#live + 1] = t end end
  return live
end

-- Where a task has nothing left to do, its close ones are timed again, and the memory of its arguments is given back.
-- pause: as remeasure.run takes it.
function Run:finish(task, pause)
  if task.is_closed then return end
  task:know_unfinished(math.huge)
  task.is_closed, task.retimed = true, remeasure.run(task, pause)
  -- An interrupt leaves what is timed again where it is: the measurer ends with the run.
  if self.services.measurer and task.waiting + task.late == 0 and not self:stopped() then
    self.services.measurer:close_task(task.number)
  end
end

-- Those of a list: one after another, or as many at once as a fleet has workers.
function Run:finish_all(tasks)
  local measurer, open, next = self.services.measurer, {}, 1
  local most = measurer and measurer.most_retimed and measurer:most_retimed() or 1
  repeat
    while #open < most and tasks[next] do
      local task = tasks[next]
      next = next + 1
      if most == 1 then self:finish(task)
      else open[#open + 1] = coroutine.create(function() self:finish(task, coroutine.yield) end) end
    end
    for i = #open, 1, -1 do
      local ok, message = coroutine.resume(open[i])
      if not ok then error(message, 0) end
      if coroutine.status(open[i]) == "dead" then table.remove(open, i) end
    end
  until #open == 0
end

local function waiting_of(tasks)
  local waiting = 0
  for _, t in ipairs(tasks) do if not t.ended then waiting = waiting + t.waiting + t.late end end
  return waiting
end

-- Those that have ended while others go on. The measurer of this machine times nothing again while it has candidates of
-- any task; a fleet does.
function Run:finish_ended()
  local measurer = self.services.measurer
  if not (measurer and measurer.lacks_candidates) and waiting_of(self.tasks) > 0 then return end
  local ended = {}
  for _, t in ipairs(self.tasks) do if t.waiting + t.late == 0 and not has_more(t) then ended[#ended + 1] = t end end
  self:finish_all(ended)
end

-- Where a fleet's workers lack candidates, batches end of which most has come; in turn none does, so that what tasks
-- ask for is the same whichever results come first.
function Run:close_batches()
  if self.scheduler == "round-robin" or not self:lacks_candidates() then return end
  for _, t in ipairs(self.tasks) do if not t.ended and t:may_go_on() then t:close_batch() end end
end

-- The task that goes on now, beside those that wait: none until there is room for its candidates, and none out of turn.
function Run:next_task()
  self:close_batches()
  local live = self:live()
  if #live == 0 or waiting_of(self.tasks) > 0 and not self:lacks_candidates() then return nil end
  return self.pick(live)
end

function Run:search()
  self:begin()
  while not self:is_over() do
    self:finish_ended()
    local task = self:next_task()
    if task then step(self, task)
    elseif waiting_of(self.tasks) == 0 then return end
    self:wait(function() return self:next_task() ~= nil end)
  end
end

-- Where it takes long to begin.
function Run:check_interrupt()
  if self:stopped() then error("interrupted", 0) end
end

function Run:take_services(services)
  self.services = services
  for _, task in ipairs(self.tasks) do
    self:check_interrupt() -- each waits for the disk
    local store = services.store
    task.services, task.workload = services,
      self.simulate and store:workload_id(task.func) or store:put_workload(task.func)
    task.shared = resume.shared(task, services.store)
  end
end

-- Finds what is best of each task without a measurement.
function Run:propose(services)
  self:take_services(services)
  services:start(self.tasks)
  for _, task in ipairs(self.tasks) do
    self:tell_start(task)
    if not self:is_over() then
      local ok, message = msched.interruptible(task.parts and whole.untuned or untuned.find, task)
      if not ok and not self:stopped() then error(string.format("%s: %s", task.name, message), 0) end
    end
  end
end

-- Starts the services on the tasks, and searches. Errors of the services end it.
function Run:go(services)
  self:take_services(services)
  for _, task in ipairs(self.tasks) do
    self:check_interrupt()
    if not self.simulate then resume.read(task, services.store) end
  end
  self:check_interrupt()
  resume.count_trials(self.tasks, self.total)
  services:start(self.tasks)
  for _, task in ipairs(self.tasks) do self:tell_start(task) end
  if not self:is_over() then transfer.give(self.tasks, services) end
  for _, task in ipairs(self.tasks) do
    if not self:is_over() then resume.teach(task) end
  end
  self:search()
  for _, task in ipairs(self.tasks) do
    self.cut = self.cut or task.waiting + task.late > 0 -- the measurer is busy with what no one waits for
  end
  self:finish_all(self.tasks)
  for _, task in ipairs(self.tasks) do remeasure.distrust(task) end
  self:find_untuned()
end

-- What would be used without tuning, of tasks that begin with it and were given no time.
function Run:find_untuned()
  for _, task in ipairs(self.tasks) do
    if task.begins_untuned and not task.error and not self:stopped() then
      local ok, message = msched.interruptible(task.find_untuned, task)
      if not ok and not self:stopped() then error(message, 0) end
    end
  end
end

-- ---- Telling --------------------------------------------------------------------------------------------------------

local function shape_of(func)
  local params = func:params()
  return table.concat(params[#params].shape, "x")
end

function Run:tell_start(task)
  local work = task.func:work()
  local floats = work.floats > 0 and work.floats >= work.integers
  self.log("start", task.name, {
    target = task.target.text, trials = task.trials, total = self.total,
    operations = floats and work.floats or work.integers,
    unit = floats and "GFLOP/s" or "GOP/s", bytes = work.read_bytes + work.written_bytes, weight = task.weight,
    part_of = task.of_whole, groups = task.parts and #task.parts or nil, shared = task.budget and task.budget.trials,
    shape = shape_of(task.func), equal = task.equal, sketches = task.product and task.product:size() or #task.sketches,
    blocks = task.product and task.product:counts(), thinned = task.thinned or false,
    unscheduled = task.unscheduled or nil,
    best = task.fastest and task.fastest.id, best_seconds = task.fastest and task.fastest.seconds,
    idle = #task.idle_rules > 0 and task.idle_rules or nil, known = task.recorded, counted = task.counted,
    bound = task.bound, limit = limit_of(task), vendor = task.beside and task.beside.name,
    vendor_seconds = task.beside and task.beside.seconds, vendor_library = task.beside and task.beside.library,
    vendor_routine = task.beside and task.beside.routine, seconds = task.spent.open, deadline = self.seconds,
    refused_model = task.refused_model,
  })
end

local function known_reason(task)
  return {why = "trials", text = string.format("the store has them of seed %d, and other tasks of the run lack some; \z
                                                a greater number goes on, another seed draws others", task.seed)}
end

-- Whether all that are asked for of some tasks together were had before the run.
local function are_known(tasks, trials)
  local counted = 0
  for _, t in ipairs(tasks) do counted = counted + t.counted end
  return counted >= trials
end

local function why_ended(run, task)
  if task.ended then return task.ended end
  local family = task.budget and task.budget.trials and {task.budget.whole, table.unpack(task.budget.parts)}
  if family and are_known(family, task.budget.trials) then
    return task.parts and known_reason(task) or {why = "trials"}
  end
  if task.of_whole and run:parts_are_over() then
    return {why = "seconds", text = string.format("the rest of the %g seconds is for `%s`", run.seconds, task.of_whole)}
  end
  local budget = task.budget
  if budget and budget.trials and not run.ended and not run:stopped() and task.done < task.trials
      and budget:left(task) == 0 then
    return {why = "total",
            text = string.format("the %d trials of `%s` and its groups are spent", budget.trials, budget.whole.name)}
  end
  if run.ended then return run.ended end
  if run:stopped() then return {why = "interrupted"} end
  if task.counted >= task.trials then return known_reason(task) end
  if task.done < task.trials then
    return {why = "total", text = run.total == 1 and "the only trial of all tasks together is spent"
            or string.format("the %d trials of all tasks together are spent", run.total)}
  end
  return {why = "trials"}
end

-- unused: as tune.all takes it.
function Run:tell_end(task, unused)
  task.ended_as = why_ended(self, task)
  -- it was measured too low
  if task.limit and task.fastest and task.fastest.seconds < task.limit.seconds and not self:stopped() then
    schedulers.measure_again(task)
  end
  task.seconds = msched.clock() - self.started
  local best, spent = task.fastest or {}, task.spent
  self.log("end", task.name, {
    trials = task.done, seconds = task.seconds, best = best.full_id, short_id = best.id, best_seconds = best.seconds,
    failures = task.failures,
    refused = refusals.counts(task.refused), repeated = task.repeated, busy = task.busy, retimed = task.retimed,
    ended = task.ended_as.why, text = task.ended_as.text,
    open_seconds = spent.open, replay_seconds = spent.replay, policy_seconds = spent.policy,
    learn_seconds = spent.learn, wait_seconds = spent.wait,
    build_seconds = spent.build, run_seconds = spent.run, limit = limit_of(task),
    unused = unused and task.fastest and not self:stopped() and unused(task) or nil,
  })
end

return Run
