-- A queue of jobs on Redis: of one device, one version of the program. What tuners and workers do with it; all of it
-- may be done twice. Keys, {Q} being what names the queue:
--   msched:queues             hash: Q, and what it is of
--   msched:{Q}:jobs           stream, its group "workers": n the job's name, j the job
--   msched:{Q}:to:WORKER      stream of the same form: jobs for one worker
--   msched:{Q}:open           hash: the job's name, its place in the stream
--   msched:{Q}:result:NAME    what came of a job, kept for a day, or a minute after it was taken
--   msched:{Q}:reply:TUNER    stream: results, for the tuner that sent the job
--   msched:{Q}:text:DIGEST    a workload, or tensor intrinsics
--   msched:{Q}:name:WORKER    the process that has this name, while it lives
--   msched:{Q}:workers        hash: what each says of itself; msched:{Q}:alive:WORKER while it lives; the same of
--   tuners
--   msched:{Q}:poison         hash: the job's name, and why it is none any more; for a week after the last
--   msched:holder:HOST:DEVICE the worker that a device is leased to
local codec = msched.load "search.fleet.codec"

-- PROTOCOL: of the keys and of who says what when; raised when that changes, so that who speaks the old one is in
-- another queue.
local Queue = {GROUP = "workers", PROTOCOL = 4, DELIVERIES = 3}
Queue.__index = Queue

local KEPT, TAKEN, REPLIES, DAY = 86400, 60, 10000, 86400 -- seconds; results in a reply stream
local LONGEST_TEXT = 8 << 20 -- bytes of a workload
local MOST_AT_ONCE = 1000 -- keys of a command, jobs of a call: a large fleet has more

-- Seconds after which a worker that says nothing is dead: MSCHED_FLEET_LEASE, for tests.
Queue.lease = math.max(tonumber(os.getenv "MSCHED_FLEET_LEASE") or 5, 0.2)

-- FNV-1a of 64 bits, as digits.
function Queue.digest(text)
  local key = 0xcbf29ce484222325
  for i = 1, #text do key = (key ~ text:byte(i)) * 0x100000001b3 end
  return string.format("%016x", key)
end

function Queue.id_of(device, versions)
  return Queue.digest(string.format("%d\n%s\n%s", Queue.PROTOCOL, versions, device))
end

-- device: the text that names it; versions: of the program.
function Queue.open(link, device, versions)
  local self =
    setmetatable({link = link, device = device, versions = versions, id = Queue.id_of(device, versions)}, Queue)
  self:make()
  return self
end

-- One that others have made.
function Queue.known(link, id, about)
  return setmetatable({link = link, id = id, device = about.device, versions = about.versions}, Queue)
end

-- What f gives of the parts of a list, joined.
local function by_parts(list, f)
  local all = {}
  for first = 1, #list, MOST_AT_ONCE do
    local part = table.move(list, first, math.min(first + MOST_AT_ONCE - 1, #list), 1, {})
    local given = f(part)
    assert(given == nil or #given == #part, "a reply for each of a part")
    table.move(given or {}, 1, given and #given or 0, #all + 1, all)
  end
  return all
end

-- The values of keys, by place; false where there is none.
local function values_of(self, keys)
  return by_parts(keys, function(part)
    local reply = self.link:call("MGET", table.unpack(part))
    assert(#reply == #part) -- replies.lua sees to it
    return reply
  end)
end

function Queue:key(...) return string.format("msched:{%s}:%s", self.id, table.concat({...}, ":")) end

-- Makes the stream and its group, where they are not there.
function Queue:make()
  self.link:all {{"HSET", "msched:queues", self.id,
                  codec.write_queue {device = self.device, versions = self.versions, protocol = Queue.PROTOCOL}}}
  self:make_group(self:key "jobs")
end

function Queue:make_group(stream)
  local command = {"XGROUP", "CREATE", stream, Queue.GROUP, "0", "MKSTREAM"}
  local reply = self.link:run({command})[1]
  if type(reply) == "table" and reply.error and not reply.error:find "^BUSYGROUP" then
    self.link:raise(reply.error, command)
  end
end

-- All queues that the server has: {id, device, versions, protocol}, in order.
function Queue.list(link)
  local reply, list = link:call("HGETALL", "msched:queues"), {}
  for i = 1, #reply - 1, 2 do
    local about = codec.read_queue(reply[i + 1])
    if about and reply[i]:find "^%x+$" and #reply[i] == 16 then
      about.id = reply[i]
      list[#list + 1] = about
    end
  end
  table.sort(list, function(a, b)
    return a.device ~= b.device and a.device < b.device or a.device == b.device and a.id < b.id
  end)
  return list
end

-- ---- Workloads ---------------------------------------------------------------------------------------------------

function Queue:put_text(digest, text)
  self.link:all {{"SET", self:key("text", digest), text, "EX", 7 * DAY}}
end

-- The text; or nil, why there is none, and whether the server lacks it: a tuner can put it there again.
function Queue:text(digest)
  local key = self:key("text", digest)
  local length = self.link:run({{"STRLEN", key}})[1]
  if type(length) == "table" then
    if not length.error:find "^WRONGTYPE" then self.link:raise(length.error, {"STRLEN", key}) end
    return nil, "is no text", true
  end
  if length == 0 then return nil, "is not there", true end
  if length > LONGEST_TEXT then
    return nil, string.format("has %d bytes; %d are the most", length, LONGEST_TEXT), false
  end
  local text = self.link:call("GET", key)
  if not text or Queue.digest(text) ~= digest then return nil, "is another than its name says", true end
  return text
end

-- ---- Tuners ------------------------------------------------------------------------------------------------------

-- Sends a job once, whoever asks and how often: what is in the stream is there once; what has a result is not sent.
local SUBMIT = [[
local result = redis.call('GET', KEYS[3])
if result then return result end
local at = redis.call('HGET', KEYS[2], ARGV[1])
if at and #redis.call('XRANGE', KEYS[1], at, at) > 0 then return false end
at = redis.call('XADD', KEYS[1], '*', 'n', ARGV[1], 'j', ARGV[2])
redis.call('HSET', KEYS[2], ARGV[1], at)
return false]]

-- jobs: {name =, bytes =, to =}; gives the results that were there already, by place, or false.
function Queue:submit(jobs)
  local commands = {}
  for i, j in ipairs(jobs) do
    commands[i] = {"EVAL", SUBMIT, 3, j.to and self:key("to", j.to) or self:key "jobs", self:key "open",
                   self:key("result", j.name), j.name, j.bytes}
  end
  return by_parts(commands, function(part) return self.link:all(part) end)
end

-- Results that came in a reply stream after a place: a list of texts, and the place behind them. Waits so many seconds.
function Queue:replies(tuner, after, wait)
  local command = {"XREAD", "COUNT", 512}
  if wait > 0 then table.move({"BLOCK", math.max(1, math.floor(wait * 1000))}, 1, 2, 4, command) end
  table.move({"STREAMS", self:key("reply", tuner), after}, 1, 3, #command + 1, command)
  local reply, list = self.link:all({command}, wait)[1], {}
  for _, entry in ipairs(reply and reply[1] and reply[1][2] or {}) do
    after = entry[1]
    list[#list + 1] = type(entry[2]) == "table" and entry[2][2] or ""
  end
  return list, after
end

-- Results by names of jobs: false where there is none.
function Queue:results(names)
  local keys = {}
  for i, name in ipairs(names) do keys[i] = self:key("result", name) end
  return values_of(self, keys)
end

-- The results were put into a store: they stay a little for other tuners that wait for them.
function Queue:taken(names)
  local commands = {}
  for i, name in ipairs(names) do commands[i] = {"EXPIRE", self:key("result", name), TAKEN} end
  by_parts(commands, function(part) return self.link:all(part) end)
end

-- ---- Workers -----------------------------------------------------------------------------------------------------

-- The reply to a command at a stream's group; nil where the server has lost that, and take makes it again; false where
-- it is out of bounds, which counts where `large`.
local function ask_group(self, command, large)
  local replies = self.link:run({command}, 0, large)
  local reply = replies and replies[1]
  if type(reply) ~= "table" or not reply.error then return reply end
  if not reply.error:find "^NOGROUP" then self.link:raise(reply.error, command) end
  return nil
end

-- Entries of a stream as jobs {at, stream, name, bytes}.
local function jobs_of(stream, entries)
  local list = {}
  for _, e in ipairs(type(entries) == "table" and entries or {}) do
    local job = type(e) == "table" and type(e[1]) == "string" and {at = e[1], stream = stream}
    local fields = job and type(e[2]) == "table" and e[2] or {}
    for i = 1, #fields - 1, 2 do
      if fields[i] == "n" then job.name = fields[i + 1] elseif fields[i] == "j" then job.bytes = fields[i + 1] end
    end
    if job then list[#list + 1] = job end
  end
  return list
end

-- New jobs for a worker, at most so many; waits so many seconds for them.
function Queue:take(worker, most, wait)
  local command = {"XREADGROUP", "GROUP", Queue.GROUP, worker, "COUNT", most}
  if wait > 0 then table.move({"BLOCK", math.max(1, math.floor(wait * 1000))}, 1, 2, #command + 1, command) end
  table.move({"STREAMS", self:key("to", worker), self:key "jobs", ">", ">"}, 1, 5, #command + 1, command)
  local replies = self.link:run({command}, wait, true)
  local reply = replies and replies[1] -- what is out of bounds is this worker's now: recover sees to it
  if type(reply) == "table" and reply.error then
    if not reply.error:find "^NOGROUP" then self.link:raise(reply.error, command) end
    self:make() -- the server lost them
    self:make_group(self:key("to", worker))
    return {}
  end
  local list = {}
  for _, s in ipairs(reply or {}) do
    for _, job in ipairs(jobs_of(s[1], s[2])) do list[#list + 1] = job end
  end
  return list
end

-- How often each of these jobs was delivered, by place in the stream.
local function deliveries(self, stream, list)
  local commands, counts = {}, {}
  for i, job in ipairs(list) do commands[i] = {"XPENDING", stream, Queue.GROUP, job.at, job.at, 1} end
  for i, reply in ipairs(#commands > 0 and self.link:all(commands) or {}) do
    counts[list[i].at] = reply[1] and reply[1][4] or 1
  end
  return counts
end

-- Jobs without those that were delivered too often: these are poison, and get that as their result.
local function without_poison(self, stream, worker, list)
  local counts, kept = deliveries(self, stream, list), {}
  for _, job in ipairs(list) do
    if (counts[job.at] or 1) <= Queue.DELIVERIES then kept[#kept + 1] = job
    else
      self:poison(job, worker, string.format("delivered %d times, and no worker lived to answer", Queue.DELIVERIES))
    end
  end
  return kept
end

-- What dead workers held, at most so many.
function Queue:claim(worker, most)
  local stream = self:key "jobs"
  local reply = ask_group(self, {"XAUTOCLAIM", stream, Queue.GROUP, worker, math.floor(self.lease * 1000), "0-0",
                                 "COUNT", most}, true)
  return reply and without_poison(self, stream, worker, jobs_of(stream, reply[2])) or {}
end

-- One job that is a worker's. What is out of bounds is not read: it is poison. Gives nil where there is none.
local function fetch(self, stream, worker, at, deliveries_)
  local reply = ask_group(self, {"XCLAIM", stream, Queue.GROUP, worker, 0, at, "RETRYCOUNT", deliveries_}, true)
  if reply == false then
    self:poison({at = at, stream = stream}, worker, "it is out of bounds, and was not read")
  end
  return reply and jobs_of(stream, reply)[1] or nil
end

-- What is this worker's and it does not hold: it was lost with a connection, is out of bounds, or was of the process of
-- that name before, which counts as a delivery (is_new). held: by place in the stream.
function Queue:recover(worker, held, is_new)
  local list = {}
  for _, stream in ipairs {self:key("to", worker), self:key "jobs"} do
    local pending, jobs = ask_group(self, {"XPENDING", stream, Queue.GROUP, "-", "+", 256, worker}), {}
    for _, p in ipairs(pending or {}) do
      if not held[p[1]] then jobs[#jobs + 1] = fetch(self, stream, worker, p[1], p[4] + (is_new and 1 or 0)) end
    end
    for _, job in ipairs(without_poison(self, stream, worker, jobs)) do list[#list + 1] = job end
  end
  return list
end

-- Keeps the leases on jobs that a worker holds.
function Queue:keep(worker, held)
  local by_stream = {}
  for at, job in pairs(held) do
    by_stream[job.stream] = by_stream[job.stream] or {"XCLAIM", job.stream, Queue.GROUP, worker, 0}
    table.insert(by_stream[job.stream], at)
  end
  for _, stream in ipairs(msched.sorted_keys(by_stream)) do
    table.insert(by_stream[stream], "JUSTID")
    ask_group(self, by_stream[stream])
  end
end

-- Writes results and acknowledges their jobs, each in one transaction: the first result of a job is its result.
-- list: {job =, bytes =, reply =}.
function Queue:complete(list)
  local commands = {}
  local function add(...) commands[#commands + 1] = {...} end
  for _, done in ipairs(list) do
    local job = done.job
    add "MULTI"
    if job.name then
      add("SET", self:key("result", job.name), done.bytes, "EX", KEPT, "NX")
      add("HDEL", self:key "open", job.name)
      if done.reply then
        add("XADD", self:key("reply", done.reply), "MAXLEN", "~", REPLIES, "*", "r", done.bytes)
        add("EXPIRE", self:key("reply", done.reply), KEPT)
      end
    end
    add("XACK", job.stream, Queue.GROUP, job.at)
    add("XDEL", job.stream, job.at)
    add "EXEC"
  end
  if #commands > 0 then self.link:all(commands) end
end

-- How many jobs workers hold.
function Queue:held()
  local reply = ask_group(self, {"XPENDING", self:key "jobs", Queue.GROUP})
  return reply and reply[1] or 0
end

-- A job that is done by nobody any more; its tuner gets the reason.
function Queue:poison(job, worker, why)
  local read = job.bytes and codec.read_job(job.bytes) or {}
  local result =
    codec.write_result {name = job.name or "", worker = worker, hash = read.hash, outcome = "poison", reason = why}
  self.link:all {{"HSET", self:key "poison", job.name or job.at, why}, {"EXPIRE", self:key "poison", 7 * DAY}}
  self:complete {{job = job, bytes = result, reply = read.reply}}
end

-- ---- Who is there ------------------------------------------------------------------------------------------------

-- The commands by which one says that it lives, for so many seconds (a lease unless given): kind is "workers" or
-- "tuners".
function Queue:say(kind, about, seconds)
  local bytes = codec.write_worker(about)
  return {{"SET", self:key("alive", kind, about.name), bytes, "PX", math.floor((seconds or self.lease) * 1000)},
          {"HSET", self:key(kind), about.name, bytes}}
end

-- One that ends is there no more. A worker that holds nothing leaves its group, too: with it would go what it holds.
function Queue:leave(kind, name, holds)
  local commands = {{"DEL", self:key("alive", kind, name), self:key("to", name), self:key("reply", name)},
                    {"HDEL", self:key(kind), name}}
  if kind == "workers" and not holds then
    commands[3] = {"XGROUP", "DELCONSUMER", self:key "jobs", Queue.GROUP, name}
  end
  self.link:run(commands)
end

-- What is a worker's that ends, known to it or not: others may claim it at once. Gives how many jobs.
function Queue:release(worker)
  local stream = self:key "jobs"
  local pending = ask_group(self, {"XPENDING", stream, Queue.GROUP, "-", "+", 256, worker})
  local command = {"XCLAIM", stream, Queue.GROUP, worker, 0}
  for _, p in ipairs(pending or {}) do command[#command + 1] = p[1] end
  local count = #command - 5
  table.move({"IDLE", 1000000000, "JUSTID"}, 1, 3, #command + 1, command)
  if count > 0 then ask_group(self, command) end
  return count
end

-- Forgets workers and tuners that said nothing for a week: those that were killed are listed until then.
function Queue:tidy()
  for _, kind in ipairs {"workers", "tuners"} do
    local commands = {}
    for _, about in ipairs(self:who(kind)) do
      if not about.alive and os.time() - about.seen > 7 * DAY and #commands < 1024 then
        commands[#commands + 1] = {"HDEL", self:key(kind), about.name}
      end
    end
    if #commands > 0 then self.link:all(commands) end
  end
end

-- Forgets what nobody needs: workers and tuners that are dead, what was poison, whose jobs may be sent again then, and
-- whom tuners do not trust. Where none lives it forgets the queue: what waits in it, too. Gives {is_whole =, workers =,
-- tuners =, poisoned =, jobs =}, how many of each.
function Queue:forget()
  local poison = self.link:call("HGETALL", self:key "poison")
  local count, alive, commands = {poisoned = #poison // 2, jobs = self.link:call("XLEN", self:key "jobs")}, 0, {}
  local function add(...) commands[#commands + 1] = {...} end
  for i = 1, #poison - 1, 2 do add("DEL", self:key("result", poison[i])) end
  add("DEL", self:key "poison", self:key "liars")
  for _, kind in ipairs {"workers", "tuners"} do
    count[kind] = 0
    for _, about in ipairs(self:who(kind)) do
      if about.alive then alive = alive + 1
      else
        count[kind] = count[kind] + 1
        add("HDEL", self:key(kind), about.name)
        add("DEL", self:key("to", about.name), self:key("reply", about.name))
      end
    end
  end
  count.is_whole = alive == 0
  if count.is_whole then
    add("DEL", self:key "jobs", self:key "open", self:key "workers", self:key "tuners", self:key "rates")
    add("HDEL", "msched:queues", self.id)
  else
    count.jobs = 0
  end
  by_parts(commands, function(part) return self.link:all(part) end)
  return count
end

-- Workers or tuners, in the order of names, with alive = whether they live.
function Queue:who(kind)
  local reply, list, keys = self.link:call("HGETALL", self:key(kind)), {}, {}
  for i = 1, #reply - 1, 2 do
    local about = codec.read_worker(reply[i + 1])
    if about and about.name == reply[i] then
      list[#list + 1] = about
      keys[#keys + 1] = self:key("alive", kind, about.name)
    end
  end
  local alive = values_of(self, keys)
  for i, about in ipairs(list) do about.alive = alive[i] and true or false end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

return Queue
