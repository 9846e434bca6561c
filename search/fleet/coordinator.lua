-- A tuner's side of a fleet: a measurer (msched.measurer has the same methods) whose candidates are built and timed by
-- the workers of a queue. It sends no more than they do in some seconds, takes each result once, and asks for what came
-- to nothing again. Its user keeps the results: that of a job stays on the server until the next is asked for.
local check, codec, link, Queue = msched.load "search.fleet.check", msched.load "search.fleet.codec",
  msched.load "search.fleet.link", msched.load "search.fleet.queue"
local standard = msched.load "search.options".standard

local Coordinator = {LOOK = 2} -- seconds between looks at workers and results
Coordinator.__index = Coordinator

local AHEAD = 3 -- seconds of the workers' work that are sent ahead
local SAY, AGAIN = 1, 3 -- seconds between its own signs of life; looks until a job is sent again
local TRIES = 8 -- of a job whose results do not count, as those of a worker that is too slow and takes jobs
local RETIMING = 60 -- seconds that a worker has for finalists, besides what they take
local UNANSWERED = 3 -- workers that may fail to time finalists again
local MOST_CAPACITY, MOST_RATE = 65, 1000 -- jobs that a worker is believed to take, and to do in a second

-- ---- The queue ---------------------------------------------------------------------------------------------------

local function list_text(list) return #list > 0 and table.concat(list, "; ") or "none" end

-- Live workers of queues that are not `id`, as texts.
local function others(server, id, target)
  local same, else_ = {}, {}
  for _, about in ipairs(Queue.list(server)) do
    local names = {}
    for _, w in ipairs(about.id ~= id and about.protocol == Queue.PROTOCOL
                       and Queue.known(server, about.id, about):who "workers" or {}) do
      if w.alive then names[#names + 1] = w.name end
    end
    if #names > 0 then
      local list = (about.device == target or about.device:sub(1, #target + 4) == target .. " on ") and same or else_
      list[#list + 1] = string.format("%s on %s, of %s", table.concat(names, " "), about.device, about.versions)
    end
  end
  return same, else_
end

-- The device that the target's code is timed on: of a CPU the target; of a GPU what its workers say that they are.
local function device_of(server, target)
  if target.kind ~= "cuda" and not server.address.device then return target.text end
  local found, names, served = {}, {}, {}
  for _, about in ipairs(Queue.list(server)) do
    served[#served + 1] = about.device
    local is_target = about.device == target.text or about.device:sub(1, #target.text + 4) == target.text .. " on "
    local is_named = not server.address.device or about.device:find(server.address.device, 1, true)
    if is_target and is_named and about.versions == msched.versions() then
      found[#found + 1], names[#names + 1] = about, about.device
    end
  end
  if #found == 1 then return found[1].device end
  error(string.format("%s: %s; ?device=NAME behind the address says which", server.address.name,
                      #found == 0 and string.format("no worker has served %s; served were: %s", target.text,
                                                    #served > 0 and table.concat(served, "; ") or "none")
                        or "workers of several devices have: " .. table.concat(names, "; ")), 0)
end

-- Workers of this device that are of another version are named, where there are none of this.
local function check_versions(self)
  local same = others(self.link, self.queue.id, self.target.text)
  for _, w in ipairs(self.workers) do if w.alive then return end end
  if #same > 0 then
    error(string.format("%s: its workers are of another version than this program, %s: %s; tune with the same version \z
                         as they have", self.link.address.name, msched.versions(), list_text(same)), 0)
  end
end

-- options: fleet, the address; target; run_timeout, reference_timeout; tell(text), gets at once that the server is
-- gone, which `waiting` would give too late.
function Coordinator.open(options)
  local self = setmetatable({
    target = options.target, run_timeout = options.run_timeout or standard.run_timeout,
    reference_timeout = options.reference_timeout or standard.reference_timeout, tasks = {}, unsent = {}, sent = {},
    in_flight = 0, ready = {}, stored = {}, after = "0-0", rate = 0, came = 0, workers = {}, texts = {}, faults = 0,
    asked = 0, liars = {}, looked = -math.huge, said = -math.huge, started = msched.clock(),
  }, Coordinator)
  self.link = options.link or link.open(options.fleet)
  self.link.tell = options.tell
  self.queue = Queue.open(self.link, device_of(self.link, self.target), msched.versions())
  self.name = string.format("tuner-%s", Queue.digest(string.format("%s %.9f %s", tostring(self), msched.clock(),
                                                     os.time()))):sub(1, 20)
  self:look()
  check_versions(self)
  return self
end

-- Who is there; how fast they are.
function Coordinator:look()
  local now = msched.clock()
  self.workers, self.looked, self.capacity, self.rate = self.queue:who "workers", now, 0, 0
  for _, w in ipairs(self.workers) do
    if w.alive and w.slow == "" then
      self.capacity = self.capacity + math.min(w.capacity, MOST_CAPACITY)
      self.rate = self.rate + math.min(w.rate, MOST_RATE)
    end
  end
  if self.capacity == 0 and now - self.started > self.LOOK then self:say_nobody() end
end

function Coordinator:say_nobody()
  if self.said_nobody then return end
  self.said_nobody = true
  local same, else_ = others(self.link, self.queue.id, self.target.text)
  self:tell("no worker serves %s at %s: `msched worker %s` there does; others: %s", self.queue.device,
            self.link.address.name, self.link.address.name, list_text(table.move(else_, 1, #else_, #same + 1, same)))
end

function Coordinator:tell(format, ...) self.texts[#self.texts + 1] = msched.visible(string.format(format, ...)) end

-- How many jobs may be sent and not answered: of each worker what it takes and as much again, or what all do in some
-- seconds.
function Coordinator:window() return math.max(2 * self.capacity, math.floor(AHEAD * self.rate), 4) end

-- Whether more may be sent than there are candidates.
function Coordinator:lacks_candidates() return self.capacity > 0 and #self.unsent + self.in_flight < self:window() end

-- ---- Candidates --------------------------------------------------------------------------------------------------

function Coordinator:add(func)
  local text, intrinsics = func:script(), msched.intrinsics_text()
  local task = {func = func, workload = Queue.digest(text), intrinsics = "", best = 0, number = #self.tasks}
  task.digest, task.texts = task.workload, {[task.workload] = text}
  self.tasks[#self.tasks + 1] = task
  if intrinsics ~= "" then -- a module that calls one of a name is another where that is defined otherwise
    task.intrinsics, task.digest = Queue.digest(intrinsics), Queue.digest(text .. intrinsics)
    task.texts[task.intrinsics] = intrinsics
  end
  self:put_texts(task)
  return task.number
end

-- Puts a task's texts on the server, which may have lost them since.
function Coordinator:put_texts(task)
  for digest, text in pairs(task.texts) do self.queue:put_text(digest, text) end
end

function Coordinator:task_of(number) return assert(self.tasks[number + 1], "no task of the measurer's") end

-- hash: of the scheduled module, where it is known.
function Coordinator:submit(number, id, trace, hash)
  local task = self:task_of(number)
  local job = {task = task, id = id, trace = trace, hash = hash or msched.apply(task.func, trace):hash(), tries = 0}
  job.name = string.format("%s.%s", task.digest, job.hash)
  self.unsent[#self.unsent + 1] = job
end

function Coordinator:set_best(number, seconds) self:task_of(number).best = seconds end

-- true and a remark: known; nil: not yet; false and why.
function Coordinator:reference(number)
  local task = self:task_of(number)
  if task.failure then return false, task.failure end
  if task.known then return true, task.remark or "" end
end

local function bytes_of(self, job)
  return codec.write_job {name = job.name, kind = job.traces and "retime" or "measure", workload = job.task.workload,
                          intrinsics = job.task.intrinsics,
                          hash = job.hash, reply = self.name, best = job.task.best, run_timeout = self.run_timeout,
                          reference_timeout = self.reference_timeout, seconds = job.seconds,
                          traces = job.traces or {job.trace:binary()}}
end

-- Sends jobs, which may have been sent before; takes results that were there.
function Coordinator:send(jobs)
  local list, now = {}, msched.clock()
  for i, job in ipairs(jobs) do
    list[i] = {name = job.name, bytes = bytes_of(self, job), to = job.to}
    if not self.sent[job.name] then self.in_flight = self.in_flight + 1 end
    self.sent[job.name], job.sent = job, now
  end
  for i, bytes in ipairs(self.queue:submit(list)) do if bytes then self:take(bytes, list[i].name) end end
end

function Coordinator:flush()
  local jobs, room = {}, self:window() - self.in_flight
  while #jobs < room and self.unsent[1] do
    local job = table.remove(self.unsent, 1)
    local same = self.sent[job.name]
    if same then
      same.others = table.move({job}, 1, 1, #(same.others or {}) + 1, same.others or {})
    else
      jobs[#jobs + 1] = job
    end
  end
  if #jobs > 0 then self:send(jobs) end
end

-- ---- Results -----------------------------------------------------------------------------------------------------

-- A result as the program's measurer gives it.
local function result_of(r, job)
  return {task = job.task.number, id = job.id, hash = r.hash, outcome = r.outcome, measured = r.outcome == "measured",
          censored = r.outcome == "censored", unmeasurable = r.outcome == "no reference", seconds = r.seconds,
          low = r.low, high = r.high, runs = r.runs, busy = r.busy, repeated = r.repeated,
          build_seconds = r.build_seconds, check_seconds = r.check_seconds, time_seconds = r.time_seconds,
          reason = r.reason, device = codec.device_of(r.device), worker = r.worker, limit = codec.limit_of(r)}
end

-- What a worker was asked for by name and has not answered.
local function asked_of(self, name)
  local count = 0
  for _, job in pairs(self.sent) do if job.to == name then count = count + 1 end end
  return count
end

-- The live worker, taking jobs and trusted, that costs least by cost(worker): {number, number that decides between
-- equals}, or nil where it is none; nil: there is none.
local function cheapest(self, cost)
  local found, least
  for _, w in ipairs(self.workers) do
    local own = w.alive and w.slow == "" and not self.liars[w.name] and cost(w)
    if own and (not found or own[1] < least[1] or own[1] == least[1] and own[2] < least[2]) then
      found, least = w.name, own
    end
  end
  return found
end

-- The worker other than one that has been asked for fewest by name.
local function choose_for(self, other)
  return cheapest(self, function(w) return w.name ~= other and {asked_of(self, w.name), 0} end)
end

-- A job once more, under another name: its result is not taken. by: the worker that gave it; another gets it, for that
-- one may be the first to take whatever is sent to all.
function Coordinator:again(job, why, by)
  job.tries = job.tries + 1
  if job.tries < TRIES then
    job.to = choose_for(self, by)
    job.name = string.format("%s.%s.%d", job.task.digest, job.hash, job.tries)
    table.insert(self.unsent, 1, job)
    return
  end
  self.ready[#self.ready + 1] = {task = job.task.number, id = job.id, hash = job.hash, outcome = "crashed", seconds = 0,
                                 low = 0, high = 0, runs = 0, reason = why, build_seconds = 0, check_seconds = 0,
                                 time_seconds = 0}
end

function Coordinator:note_reference(task, r)
  if r.outcome == "no reference" then task.failure = r.reason end
  task.known = true
  if r.remark ~= "" then task.remark = r.remark end
end

-- Takes the result of a job that was sent, once. name: of the job that it was kept for, where that is known: what is no
-- result of it stays in its place, so that the job is sent by another name.
function Coordinator:take(bytes, name)
  local r, why = codec.read_result(bytes)
  if r and name and r.name ~= name then r, why = nil, "it is of another job" end
  local job = self.sent[r and r.name or name]
  if not r then self:tell_fault("a result that is none came: %s", why) end
  if not job then return end -- a second time, or of a run before
  assert(job.name == (name or r.name) and self.in_flight > 0)
  self.sent[job.name], self.in_flight, self.came = nil, self.in_flight - 1, self.came + 1
  if not r then
    if not job.traces then return self:again(job, "its result was none: " .. why) end
    job.answer = {outcome = "none"}
    return
  end
  self.stored[#self.stored + 1] = job.name
  if r.outcome == "lacking" then
    self:tell_fault("worker %s: %s on the server: it is put there again", r.worker, r.reason)
    self:put_texts(job.task)
  end
  if job.traces then
    job.answer = r
    return
  end
  local fault = codec.fault_of(r, job.hash)
  if fault then
    self:tell_fault("worker %s: %s", r.worker, fault)
    return self:again(job, string.format("worker %s sent a result that is none: %s", r.worker, fault), r.worker)
  end
  if r.outcome == "lacking" then
    return self:again(job, string.format("worker %s found no text of it: %s", r.worker, r.reason), r.worker)
  end
  if r.slow ~= "" then
    self:tell_fault("worker %s is too slow to take jobs: %s", r.worker, r.slow)
    return self:again(job, string.format("worker %s was too slow to take it: %s", r.worker, r.slow), r.worker)
  end
  if self.liars[r.worker] then
    return self:again(job, string.format("the times of worker %s are not confirmed by others", r.worker), r.worker)
  end
  self:note_reference(job.task, r)
  for _, each in ipairs {job, table.unpack(job.others or {})} do self.ready[#self.ready + 1] = result_of(r, each) end
end

-- The first few are said.
function Coordinator:tell_fault(...)
  self.faults = self.faults + 1
  if self.faults <= 5 then self:tell(...) end
end

function Coordinator:lives(name)
  for _, w in ipairs(self.workers) do if w.name == name then return w.alive end end
  return false
end

-- What came to nothing, or whose result was taken by another run's reply: all that is waited for is asked for again.
function Coordinator:look_after()
  local names, old, now = {}, {}, msched.clock()
  for _, name in ipairs(msched.sorted_keys(self.sent)) do
    if now - self.sent[name].sent > self.LOOK then names[#names + 1] = name end
  end
  for i, bytes in ipairs(self.queue:results(names)) do
    local job = self.sent[names[i]]
    if bytes then self:take(bytes, names[i])
    elseif job and now - job.sent > AGAIN * self.LOOK then old[#old + 1] = job end
  end
  local tasks = {}
  for _, job in ipairs(old) do
    tasks[job.task] = true
    if job.to and not job.traces and not self:lives(job.to) then job.to = choose_for(self, job.to) end
  end
  for task in pairs(tasks) do self:put_texts(task) end -- what lost the jobs may have lost these
  if #old > 0 then self:send(old) end
end

-- Signs of life, looks at the others, what is kept by now.
function Coordinator:tend()
  local now = msched.clock()
  if #self.stored > 0 then
    self.queue:taken(self.stored)
    self.stored = {}
  end
  if now - self.said >= SAY then
    self.said = now
    self.link:all(self.queue:say("tuners", {name = self.name, host = "", device = self.queue.device,
                                            versions = msched.versions(), capacity = self.in_flight, done = self.came,
                                            rate = self.came / math.max(now - self.started, 1e-3), seen = os.time()}))
  end
  if now - self.looked >= self.LOOK or self.capacity == 0 and now - self.looked >= SAY / 4 then
    self:look()
    self:look_after()
  end
end

-- Takes what comes in its reply stream for so many seconds. Behind another connection there may be another server,
-- whose clock is late: then what comes is before what was read.
function Coordinator:take_replies(wait)
  if self.connections ~= self.link.connections then self.connections, self.after = self.link.connections, "0-0" end
  local list
  list, self.after = self.queue:replies(self.name, self.after, math.max(wait or 0.2, 0.001))
  for _, bytes in ipairs(list) do self:take(bytes) end
end

-- A result; nil where none comes for so many seconds.
function Coordinator:next(wait)
  if #self.ready == 0 then
    self:tend()
    self:flush()
    if #self.ready == 0 then
      self:take_replies(wait)
      self:flush()
    end
  end
  return table.remove(self.ready, 1)
end

-- Another result that is there already; nil: there is none. Nothing is asked of the server, which keeps those that were
-- given as long as `next` is not asked.
function Coordinator:came_with() return table.remove(self.ready, 1) end

function Coordinator:waiting()
  return table.remove(self.texts, 1)
end

-- ---- Finalists ---------------------------------------------------------------------------------------------------

-- A worker that has not been asked yet: one that measured none of these, where there is any; else who has fewest of
-- others to time, and then of these measured fewest.
local function choose(self, job)
  return cheapest(self, function(w)
    local own, asked = job.own[w.name] or 0, asked_of(self, w.name)
    return not job.had[w.name] and (own == 0 and {0, asked} or {1 + asked, own})
  end)
end

-- How many functions' finalists may be asked for at once: a worker times those of one.
function Coordinator:most_retimed()
  local count = 0
  for _, w in ipairs(self.workers) do if w.alive and w.slow == "" then count = count + 1 end end
  return math.max(count, 1)
end

-- Asks another worker; false: there is none.
local function send_finalists(self, job)
  job.to, job.answer, self.asked = choose(self, job), nil, self.asked + 1
  if not job.to then return false end
  job.had[job.to] = true
  job.name = string.format("%s.%s.%s.%d", job.task.digest, job.hash, self.name, self.asked) -- never the same again
  self:send {job}
  return true
end

-- claims: of each, who measured it and what it said, {worker =, seconds =}, or false. Gives what `remeasured` is asked
-- for.
function Coordinator:remeasure(number, traces, seconds, claims)
  local task, job = self:task_of(number),
    {traces = {}, seconds = seconds, hash = "finalists", claims = {}, own = {}, had = {}, answers = {}, failed = 0}
  job.task = task
  for i, trace in ipairs(traces) do
    local claim = claims and claims[i]
    job.traces[i], job.claims[i] = trace:binary(), claim or false
    if claim then job.own[claim.worker] = (job.own[claim.worker] or 0) + 1 end
  end
  self:look()
  send_finalists(self, job)
  return job
end

-- Times in the order of the finalists; nil: these are none.
local function timings_of(r, count)
  if r.outcome ~= "retimed" or #r.times ~= 5 * count then return nil end
  local limit = codec.limit_of(r)
  local list, roofline = {limit = limit}, limit and {limit = limit.name, limit_seconds = limit.seconds}
  for i = 0, count - 1 do
    local seconds, low, high, runs, busy = table.unpack(r.times, 5 * i + 1, 5 * i + 5)
    if msched.record_fault {seconds = seconds, low = low, high = high, runs = runs, roofline = roofline} then
      return nil
    end
    list[i + 1] = {seconds = seconds, low = low, high = high, runs = math.tointeger(runs), busy = busy ~= 0,
                   worker = r.worker, roofline = roofline}
  end
  return list
end

-- The places of finalists whose claims these times do not confirm, in whichever direction.
local function unconfirmed(job, times)
  local list = {}
  for i, claim in ipairs(job.claims) do
    if claim and claim.worker ~= times.by and not check.is_confirmed(claim.seconds, times[i].seconds) then
      list[#list + 1] = i
    end
  end
  return list
end

function Coordinator:note_liar(name, why)
  if self.liars[name] then return end
  self.liars[name] = why
  check.tell_liar(self.queue, name, why)
  self:tell("worker %s: its results are put aside: %s", name, why)
end

-- Two workers have timed them again: whom they do not confirm. Gives the times that count.
local function judge(self, job, places)
  local first, second = job.answers[1], job.answers[2]
  for _, i in ipairs(places) do
    local claim = job.claims[i]
    if claim.worker == second.by then -- of his own he says what he said
    elseif check.is_confirmed(first[i].seconds, second[i].seconds) then
      self:note_liar(claim.worker, string.format("%s and %s took %.3g times as long as it said", first.by, second.by,
                                                 first[i].seconds / claim.seconds))
    elseif check.is_confirmed(claim.seconds, second[i].seconds) then
      self:note_liar(first.by, string.format("%s and %s took %.3g times as long as it said", claim.worker, second.by,
                                             second[i].seconds / first[i].seconds))
    else
      self:tell("%s, %s and %s do not agree on a time: the machines are busy, or differ", claim.worker, first.by,
                second.by)
    end
  end
  return self.liars[first.by] and second or first
end

-- Whether the worker that was asked may still answer.
local function may_answer(self, job)
  return self:lives(job.to) and msched.clock() - job.sent < RETIMING + 4 * job.seconds * #job.traces
end

-- What came of the finalists by now; nil: it is not there yet; false: nobody could time them.
local function conclude(self, job)
  if not job.answer and job.to and may_answer(self, job) then return nil end
  local times = job.answer and timings_of(job.answer, #job.traces)
  if times then
    times.by = job.to
    job.answers[#job.answers + 1] = times
    local places = unconfirmed(job, job.answers[1])
    if #places == 0 then return times end
    if #job.answers == 2 then return judge(self, job, places) end
    job.own = {}
    for _, i in ipairs(places) do
      local name = job.claims[i].worker
      job.own[name] = (job.own[name] or 0) + 1
      if job.own[name] == #places then job.had[name] = true end -- nobody judges his own alone
    end
    if send_finalists(self, job) then return nil end
    self:tell("the times of %s are not confirmed by %s, and no third worker is there to say who is right",
              job.claims[places[1]].worker, times.by)
    return times
  end
  if self.sent[job.name] then self.sent[job.name], self.in_flight = nil, self.in_flight - 1 end
  job.failed = job.failed + 1
  if job.failed < UNANSWERED and send_finalists(self, job) then return nil end
  return job.answers[1] or false
end

-- job: what `remeasure` gave. What comes meanwhile for others' is theirs when they are asked for.
function Coordinator:remeasured(wait, job)
  self:tend()
  local result = conclude(self, job)
  if result ~= nil then return result end
  self:take_replies(wait)
  return conclude(self, job)
end

-- The workers whose results do not count, {name = why}.
function Coordinator:distrusted() return self.liars end

-- ---- The end -----------------------------------------------------------------------------------------------------

function Coordinator:close_task() end

function Coordinator:close()
  if not self.link then return end
  self.link:say_goodbye()
  pcall(function()
    self.queue:taken(self.stored)
    self.queue:leave("tuners", self.name)
  end)
  self.link:close()
  self.link = nil
end

return Coordinator
