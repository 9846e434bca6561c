-- What all tasks of a run share: the store, the pool that replays, the measurer; and how a task gets a model.
local models, run_options = msched.load "search.models", msched.load "search.options"
local services = {}

local Services = {}
Services.__index = Services

-- options: target, jobs, files, rule_timeout, skip_failing, policy_timeout, run_timeout, reference_timeout, simulate,
-- no_tune, model, seed; store, or db: the path of one; fleet: the address of one whose workers measure; measurer: what
-- measures in place of both.
function services.open(options)
  return setmetatable({options = options, store = options.store or msched.store(options.db), tasks = {}}, Services)
end

-- Starts what works on these tasks; each gets its number. The store has given its intrinsics by now.
function Services:start(tasks)
  local options, target = self.options, self.options.target or "native"
  local jobs = options.jobs or msched.target("native").cores
  for _, task in ipairs(tasks) do
    task.jobs = jobs
    if task.parts then -- composed, not replayed
    elseif not self.pool then
      self.pool = msched.pool(task.func,
                              {jobs = jobs, files = options.files or {}, target = target, timeout = options.rule_timeout
                               or run_options.standard.rule_timeout, skip_failing = options.skip_failing})
    else
      self.pool:add(task.func)
    end
    if not task.parts then
      task.place = #self.tasks -- among the pool's functions
      self.tasks[#self.tasks + 1] = task
    end
  end
  if not options.simulate and not options.no_tune then
    self.measurer = options.measurer
      or options.fleet and msched.load "search.fleet.coordinator".open {fleet = options.fleet,
        target = msched.target(target), run_timeout = options.run_timeout,
        reference_timeout = options.reference_timeout, tell = function(text) self:tell(text) end} or
                    msched.measurer {target = target, run_timeout = options.run_timeout,
                                     reference_timeout = options.reference_timeout}
    self.by_number = {}
    for _, task in ipairs(tasks) do
      if msched.interrupted() then error("interrupted", 0) end
      task.number = self.measurer:add(task.func)
      self.by_number[task.number] = task
      if task.fastest then self.measurer:set_best(task.number, task.fastest.seconds) end
    end
  end
end

-- A model that has learned nothing of the task, or what its file holds; and why, where a file cannot be used.
function Services:model()
  return models.open(self.options.model or "xgboost", self.options.seed or 1, self.options.policy_timeout)
end

-- What the measurer waits for, as a device on which another run times its candidates.
function Services:tell_waiting()
  local text = self.measurer.waiting and self.measurer:waiting()
  if text then self:tell(text) end
end

function Services:tell(text)
  local task = self.tasks[1]
  if task then task.log("said", task.name, {text = text}) end
end

-- What is to be known of how a result was timed, once a run: the record of each has it too.
function Services:tell_device(task, device)
  self.told = self.told or {}
  local function tell(what, text)
    if self.told[what] then return end
    self.told[what] = true
    task.log("said", task.name, {text = text})
  end
  if device.others then
    local has = device.others_bytes and string.format(", with %.1f GiB of its memory", device.others_bytes / (1 << 30))
    tell("others", string.format("%s on the device%s: times are less sure", device.others == 1 and "another process is"
                                 or device.others .. " other processes are", has or ""))
  elseif device.memory_left then
    tell("memory", string.format("%.1f GiB of the device's memory are left", device.memory_left / (1 << 30)))
  end
  if device.uncaptured then
    tell("uncaptured", "launches are part of its times, as no CUDA graph could be made: " .. device.uncaptured)
  end
end

local MOST_TOGETHER = 64 -- results that one commit keeps

-- This result, and those that came with it, as a fleet's do: all are kept by one commit, which waits for the disk once,
-- before any is reported.
function Services:keep_together(first)
  local list, measurer = {first}, self.measurer
  while measurer.came_with and #list < MOST_TOGETHER do
    local r = measurer:came_with()
    if not r then break end
    list[#list + 1] = r
  end
  if #list > 1 and self.store then
    self.store:batch(function() for _, r in ipairs(list) do self.by_number[r.task]:keep_early(r) end end)
  end
  return list
end

-- Waits a little for results and gives them to their tasks. Gives whether any came.
function Services:wait()
  local first = self.measurer:next(0.2)
  self:tell_waiting()
  if not first then return false end
  for _, r in ipairs(self:keep_together(first)) do
    if r.device then self:tell_device(self.by_number[r.task], r.device) end
    self.by_number[r.task]:take_result(r)
  end
  return true
end

function Services:close()
  if self.pool then self.pool:close() end
  if self.measurer then self.measurer:close() end
  if self.store and not self.options.store then self.store:close() end
end

return services
