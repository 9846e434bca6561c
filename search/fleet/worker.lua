-- A worker: takes jobs of its device's queue, builds and times them by the program's measurer, answers. While it works
-- it says that it lives; what it holds is others' when it no longer does. A job is data: its workload and traces are
-- read as files are, and run in the measurer's processes.
local check = msched.load "search.fleet.check"
local codec, link, Queue, simulated = msched.load "search.fleet.codec", msched.load "search.fleet.link",
  msched.load "search.fleet.queue", msched.load "search.fleet.simulated"

local Worker = {}
Worker.__index = Worker

local PATIENCE = 3600 -- seconds that a server may be gone
local MOST_HELD = 8 -- jobs: while one is timed, the others are built
local TASKS = 32 -- workloads that are kept open
local MOST_TIMEOUT = 3600 -- seconds that a job may ask for
local MOST_REFUSED = 20 -- refused jobs that are said
local RATE = 10 -- seconds that a rate is of
local BUSY_WAIT, IDLE_WAIT = 0.02, 0.5 -- seconds: for a result while there is work; for work

-- ---- Starting ----------------------------------------------------------------------------------------------------

local function first_line(path)
  local file = io.open(path, "r")
  local line = file and file:read "l"
  if file then file:close() end
  return line
end

-- The machine, as leases know it: its name, and which start of it this is.
local function host_name() return first_line "/proc/sys/kernel/hostname" or "localhost" end
local function host_id() return host_name() .. "-" .. (first_line "/proc/sys/kernel/random/boot_id" or "") end

-- A GPU by its number, as CUDA_VISIBLE_DEVICES names it, which may list those that this process has.
local function gpu_of(number)
  local seen, count = os.getenv "CUDA_VISIBLE_DEVICES", 0
  if not seen then return tostring(number) end
  for name in seen:gmatch "[^,%s]+" do
    if count == number then return name end
    count = count + 1
  end
  return "-1" -- none
end

-- What names the device on this machine. Of a CPU the cores that this process may use: workers that share none are two
-- devices.
local function device_id(gpu)
  if gpu then return gpu end
  for line in io.lines "/proc/self/status" do
    local cores = line:match "^Cpus_allowed_list:%s*(%S+)"
    if cores then return "cores " .. cores end
  end
  return "cpu"
end

-- What this worker serves: {target =, device =, gpu =}. Of a GPU's machine it has that GPU alone.
local function devices_of(number)
  if not number then
    local target = msched.target "native"
    return {target = target, device = target.text}
  end
  local gpu = gpu_of(number)
  msched.see_device(gpu)
  local found = msched.devices()
  if #found ~= 1 then
    error(string.format("--device %d: there is no such GPU; `msched doctor` shows those that are", number), 0)
  end
  local target = msched.target "cuda"
  return {target = target, device = string.format("%s on %s, driver %s", target.text, found[1].name, found.driver),
          gpu = gpu}
end

-- options: url; name; number, of a GPU; builders, as many as cores unless given; simulate, seconds that each job takes;
-- factor, of its times; say(text).
function Worker.open(options)
  local serves = options.simulate and {target = msched.target "native", device = msched.target("native").text}
    or devices_of(options.number)
  local self = setmetatable({
    say = options.say, target = serves.target, device = serves.device, simulate = options.simulate,
    factor = options.factor, gpu = serves.gpu, builders = options.builders,
    held = {}, line = {}, by_id = {}, finished = {}, tasks = {}, used = 0, ids = 0, done = 0, failed = 0, refused = 0,
    recent = {}, slow = "", started = os.time(),
    said = -math.huge, claimed = -math.huge, pending = 0, checked = -math.huge,
    measure = not options.simulate and check.measurer(serves.target) or nil,
  }, Worker)
  self.link = options.link or link.open(options.url, PATIENCE)
  self.name = options.name or string.format("%s-%s", host_name(), Queue.digest(string.format("%s %.9f %s",
                                            tostring(self), msched.clock(), os.time())):sub(1, 6))
  if self.name == "" or #self.name > 100 or self.name:find "[^%w_.-]" then
    error(string.format("--name %s: a name has up to 100 letters, digits, `_`, `.` and `-`", self.name), 0)
  end
  self.link.tell = function(text) self.say(text) end
  self.capacity = options.builders and options.builders + 1 or options.simulate and 4
    or math.min(msched.target("native").cores + 1, MOST_HELD)
  self.queue = Queue.open(self.link, self.device, msched.versions())
  self:claim_name()
  self.queue:tidy()
  self.queue:make_group(self.queue:key("to", self.name))
  self:warn_of_versions()
  return self
end

-- Seconds that a worker may say nothing while it measures something of its device: the longest, the bandwidth of 1 GiB,
-- took 2.6 s on a machine of 2 cores at a load of 5; the first on a GPU starts its driver.
local MEASURING = 10

-- Sets a key that another may hold, which is waited for as long as that one may be dead. Gives who has it.
local function lease(self, key)
  local last = msched.clock() + self.queue.lease + 0.5
  while self.link:call("SET", key, self.identity, "NX", "PX", math.floor(1000 * self.queue.lease)) == false do
    local holder = self.link:call("GET", key)
    if holder == self.identity then return end
    if msched.clock() > last then return holder or "" end
    msched.sleep(0.1)
    if msched.interrupted() then error("interrupted", 0) end
  end
end

-- The name of a worker that holds a key: what stands there is its name, and what no other process has.
local function named(holder) return msched.visible(holder:match "^%S*") end

-- One worker of a name, and one of a device.
function Worker:claim_name()
  self.identity = string.format("%s %s", self.name, Queue.digest(string.format("%s %.9f %d", tostring(self),
                                                                               msched.clock(), os.time())))
  self.own_name = self.queue:key("name", self.name)
  if lease(self, self.own_name) then
    error(string.format("%s: a worker named %s is there", self.link.address.name, self.name), 0)
  end
  if self.simulate then return end
  self.holder = string.format("msched:holder:%s:%s", host_id(), device_id(self.gpu))
  local other = lease(self, self.holder)
  if other then
    error(string.format("%s: worker %s times on this device; one does", self.link.address.name, named(other)), 0)
  end
end

function Worker:warn_of_versions()
  for _, about in ipairs(Queue.list(self.link)) do
    if about.device == self.device and about.id ~= self.queue.id then
      for _, t in ipairs(Queue.known(self.link, about.id, about):who "tuners") do
        if t.alive then
          self.say(string.format("%s is of %s, which this worker, of %s, does not serve", t.name, about.versions,
                                 msched.versions()))
        end
      end
    end
  end
end

-- ---- Checking itself ----------------------------------------------------------------------------------------------

function Worker:is_check_due()
  local every = self.slow == "" and check.EVERY or check.AGAIN
  return self.measure ~= nil and msched.clock() - self.checked >= every
end

-- Where the device is slower than it was, nothing is timed on it, and others take what it holds.
function Worker:check()
  self:be_silent()
  local rate = self.measure()
  local what = string.format("%s:%s", host_id(), device_id(self.gpu))
  local before = self.slow
  self.checked = msched.clock()
  self.slow = check.slow(rate, check.best(self.queue, what, rate))
  if self.slow == before then return end
  self.said = -math.huge -- at once
  self.say(self.slow ~= "" and "takes no jobs: " .. self.slow or "takes jobs again")
  if self.slow ~= "" then
    self.queue:release(self.name)
    self.held, self.line = {}, {}
  end
end

-- ---- Signs of life -----------------------------------------------------------------------------------------------

function Worker:about()
  local now, first = msched.clock(), 1
  while self.recent[first] and self.recent[first] < now - RATE do first = first + 1 end
  self.recent = table.move(self.recent, first, #self.recent, 1, {})
  return {name = self.name, host = host_name(), device = self.device, versions = self.queue.versions,
          slow = self.slow, capacity = self.capacity, done = self.done, failed = self.failed,
          rate = #self.recent / RATE, started = self.started, seen = os.time()}
end

-- Keeps a lease, unless another has it by now, whom it gives.
local HOLD = [[
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return holder end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false]]

local function hold(self, key, seconds)
  return {"EVAL", HOLD, 1, key, self.identity, math.floor(1000 * (seconds or self.queue.lease))}
end

-- Keeps its name and its device. Who said nothing for longer than a lease, as a process that was stopped, may have lost
-- either. With the name went the jobs, too.
function Worker:hold_own()
  local silent = string.format("since this one said nothing for longer than %g s", self.queue.lease)
  if self.link:all({hold(self, self.own_name)})[1] then
    self.own_name, self.holder, self.held = nil, nil, {}
    error(string.format("%s: another worker is named %s now, %s", self.link.address.name, self.name, silent), 0)
  end
  local other = self.holder and self.link:all({hold(self, self.holder)})[1]
  if other then
    self.holder = nil
    error(string.format("%s: worker %s times on this device now, %s", self.link.address.name, named(other), silent), 0)
  end
end

-- Says that it lives, has the device and holds its jobs, before each thing that it measures of the device without a
-- word. Who has taken the device meanwhile keeps it, which the next sign of life finds.
function Worker:be_silent()
  local commands = self.queue:say("workers", self:about(), MEASURING)
  commands[#commands + 1] = hold(self, self.own_name, MEASURING)
  if self.holder then commands[#commands + 1] = hold(self, self.holder, MEASURING) end
  self.link:all(commands)
  self.queue:keep(self.name, self.held)
end

-- Says that it lives and keeps its leases; looks for what was lost where the connection was another, and for what the
-- dead held.
function Worker:tend()
  local now, lease_seconds = msched.clock(), self.queue.lease
  if now - self.said >= lease_seconds / 5 then
    self.said = now
    self:hold_own()
    local commands = self.queue:say("workers", self:about())
    commands[#commands + 1] = {"EXPIRE", self.queue:key("to", self.name), 86400}
    self.link:all(commands)
    self.queue:keep(self.name, self.held)
  end
  if self.connections ~= self.link.connections then
    local is_new = self.connections == nil
    self.connections = self.link.connections
    if self.slow == "" then self:accept(self.queue:recover(self.name, self.held, is_new)) end
  end
  if now - self.claimed >= lease_seconds / 4 and self:room() > 0 then
    self.claimed = now
    self:accept(self.queue:claim(self.name, self:room()))
  end
end

-- ---- Jobs --------------------------------------------------------------------------------------------------------

function Worker:room() return self.slow == "" and self.capacity - self:holds() or 0 end
function Worker:holds()
  local count = 0
  for _ in pairs(self.held) do count = count + 1 end
  return count
end

function Worker:accept(jobs)
  for _, job in ipairs(jobs) do
    if not self.held[job.at] then
      self.held[job.at] = job
      local ok, why = pcall(self.read, self, job)
      if not ok then
        if msched.interrupted() then error(why, 0) end
        self:refuse(job, tostring(why))
      else
        self.line[#self.line + 1] = job
      end
    end
  end
end

-- What can be said of a job before anything of it is built. Raises what is wrong with it.
function Worker:read(job)
  if not job.name or not job.bytes then error("it has no name, or is empty", 0) end
  local read, why = codec.read_job(job.bytes)
  if not read then error(why, 0) end
  if read.name ~= job.name then error("its name is another's", 0) end
  if #read.traces == 0 or read.kind ~= "retime" and (read.kind ~= "measure" or #read.traces > 1) then
    error("it is neither a candidate nor finalists", 0)
  end
  if not (read.run_timeout > 0 and read.run_timeout <= MOST_TIMEOUT and read.reference_timeout > 0
          and read.reference_timeout <= MOST_TIMEOUT) then
    error(string.format("its time limits are not above 0 and at most %d s", MOST_TIMEOUT), 0)
  end
  if read.best ~= 0 and msched.record_fault {seconds = read.best} then
    error(string.format("its best time is none: %g s", read.best), 0)
  end
  job.read = read
  job.traces = {}
  for i, bytes in ipairs(read.traces) do job.traces[i] = msched.read_trace(bytes) end
end

local function text_of(self, digest, what)
  local text, why, is_lacking = self.queue:text(digest)
  if text then return text end
  why = string.format("its %s %s", what, why)
  error(is_lacking and {lacks = why} or why, 0)
end

-- Measures the limit of a task's function on this device, once, while nothing else is timed.
function Worker:know_limit(task, traces)
  if self.simulate or task.limit then return end
  self.roofline = self.roofline
    or msched.load "lua.bench.limits".for_tuning(function() self:be_silent() end).limit
  task.limit = self.roofline(task.func, self.target, nil, traces)
end

-- The task of a job's workload and intrinsics; those that were not used for longest are closed.
function Worker:task_of(job)
  local workload, intrinsics = job.read.workload, job.read.intrinsics
  local name = workload .. " " .. intrinsics
  local task = self.tasks[name]
  if not task then
    local func = msched.functions_of_script(text_of(self, workload, "workload"), "workload")[1]
    local own = intrinsics ~= "" and text_of(self, intrinsics, "text of intrinsics") or ""
    task = {pending = 0, func = func, number = self.measurer:add(func, own)}
    self:close_tasks()
    self.tasks[name] = task
  end
  self.used = self.used + 1
  task.used = self.used
  if job.read.best > 0 then self.measurer:set_best(task.number, job.read.best) end
  return task
end

function Worker:close_tasks()
  local count, oldest = 0, nil
  for digest, task in pairs(self.tasks) do
    count = count + 1
    if task.pending == 0 and (not oldest or task.used < self.tasks[oldest].used) then oldest = digest end
  end
  if count < TASKS or not oldest then return end
  self.measurer:close_task(self.tasks[oldest].number)
  self.tasks[oldest] = nil
end

-- The measurer for a job's limits: another where they are others, which waits for what is pending. False: not yet.
function Worker:has_measurer(job)
  local limits = string.format("%g %g", job.read.run_timeout, job.read.reference_timeout)
  if self.measurer and self.limits == limits then return true end
  if self.pending > 0 then return false end
  if self.measurer then self.measurer:close() end
  self.tasks, self.limits = {}, limits
  self.measurer = self.simulate and simulated.open(self.simulate, self.factor) or
                  msched.measurer {target = self.target.text, builders = self.builders,
                                   run_timeout = job.read.run_timeout,
                                   reference_timeout = job.read.reference_timeout}
  return true
end

-- Hands on what is in line, in order; finalists have the device to themselves.
function Worker:hand_on()
  while self.line[1] and not self.finalists and not self:is_check_due() do
    local job = self.line[1]
    if not self:has_measurer(job) or job.read.kind == "retime" and self.pending > 0 then return end
    table.remove(self.line, 1)
    local ok, why = pcall(self.start, self, job)
    if not ok then
      if msched.interrupted() or self.link.failed then error(why, 0) end
      self:refuse(job, type(why) == "table" and why.lacks or tostring(why), type(why) == "table" and "lacking" or nil)
    end
  end
end

function Worker:start(job)
  local task = self:task_of(job)
  if job.read.kind == "retime" then
    self:know_limit(task, job.traces)
    self.measurer:remeasure(task.number, job.traces, math.min(job.read.seconds, 10))
    self.finalists, job.task = job, task
    return
  end
  self.ids = self.ids + 1
  self.measurer:submit(task.number, self.ids, job.traces[1], job.read.hash)
  self.by_id[self.ids], self.pending, task.pending, job.task = job, self.pending + 1, task.pending + 1, task
end

-- ---- Results -----------------------------------------------------------------------------------------------------

-- What came of a job: sent with the next of them.
function Worker:answer(job, values)
  local limit = job.task and job.task.limit or {}
  values.name, values.worker, values.slow = job.name, self.name, self.slow
  values.limit, values.limit_of, values.limit_seconds = limit.name, limit.of, limit.seconds
  self.finished[#self.finished + 1] = {job = job, bytes = codec.write_result(values),
                                       reply = job.read and job.read.reply}
  self.done = self.done + 1
  self.recent[#self.recent + 1] = msched.clock()
end

-- One that cannot be done says why, once; of many the first are said. outcome: that it gets, `refused` unless given.
function Worker:refuse(job, why, outcome)
  self.failed, self.refused = self.failed + 1, self.refused + 1
  if self.refused <= MOST_REFUSED then
    self.say(string.format("job %s is refused: %s%s", msched.visible((job.name or job.at):sub(1, 100)),
                           msched.visible(why:match "^[^\n]*" or ""),
                           self.refused == MOST_REFUSED and "; those that follow are counted only" or ""))
  end
  self:answer(job, {hash = job.read and job.read.hash, outcome = outcome or "refused", reason = why:sub(1, 400)})
end

function Worker:take_result(r)
  local job = self.by_id[r.id]
  self.by_id[r.id], self.pending, job.task.pending = nil, self.pending - 1, job.task.pending - 1
  local known, remark = self.measurer:reference(job.task.number)
  if r.outcome ~= "measured" and r.outcome ~= "censored" then self.failed = self.failed + 1 end
  local factor = self.simulate and 1 or self.factor or 1
  self:answer(job,
              {hash = r.hash, outcome = r.outcome, reason = r.outcome == "no reference" and known == false and remark
               or r.reason, remark = known and remark or "", seconds = factor * r.seconds, low = factor * r.low,
               high = factor * r.high, runs = r.runs, busy = r.busy, repeated = r.repeated,
               build_seconds = r.build_seconds, check_seconds = r.check_seconds, time_seconds = r.time_seconds,
               device = codec.facts_of(r.device)})
end

function Worker:take_finalists()
  local times = self.measurer:remeasured(BUSY_WAIT)
  if times == nil then return end
  local numbers = {}
  for _, t in ipairs(times or {}) do
    table.move({t.seconds, t.low, t.high, t.runs, t.busy and 1 or 0}, 1, 5, #numbers + 1, numbers)
  end
  self:answer(self.finalists,
              {hash = self.finalists.read.hash, outcome = times and "retimed" or "not retimed", times = numbers})
  self.finalists = nil
end

-- What is there by now; waits a little where there is work.
function Worker:take_results()
  if self.finalists then return self:take_finalists() end
  local wait = BUSY_WAIT
  while self.pending > 0 do
    local r = self.measurer:next(wait)
    if not r then return end
    self:take_result(r)
    wait = 0
  end
end

-- Answers what is finished.
function Worker:flush()
  if #self.finished == 0 then return end
  local list = self.finished
  self.queue:complete(list)
  for _, each in ipairs(list) do self.held[each.job.at] = nil end
  self.finished = {}
end

-- ---- Working -----------------------------------------------------------------------------------------------------

function Worker:step()
  self:tend()
  self:hand_on()
  self:take_results()
  self:flush()
  if self.pending == 0 and not self.finalists and self:is_check_due() then self:check() end
  if self.slow ~= "" then msched.sleep(BUSY_WAIT) end
  local room = self:room()
  if room > 0 then
    self:accept(self.queue:take(self.name, room, self:holds() == 0 and math.min(IDLE_WAIT, self.queue.lease / 5) or 0))
  end
end

-- Until the user interrupts: what is held is given back.
function Worker:run()
  while not msched.interrupted() do self:step() end
end

-- Ends it: others take what it holds. Gives how many jobs; nil: the server does not answer, and they are taken
-- when the lease is over.
function Worker:close()
  local released
  self.link:say_goodbye()
  if not self.own_name then released = 0 -- all that is by this name is another's
  else
    pcall(function() released = self.queue:release(self.name) end)
    pcall(function()
      if not self.link:is_connected() then return end
      if self.holder then self.link:run {{"DEL", self.holder}} end
      self.queue:leave("workers", self.name, released ~= 0)
      self.link:run {{"DEL", self.own_name}}
    end)
  end
  if self.measurer then self.measurer:close() end
  self.link:close()
  return released
end

return Worker
