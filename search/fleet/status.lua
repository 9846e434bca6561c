-- What `msched fleet` says: queues, their workers and tuners, what waits and what is poison.
local check, link, Queue = msched.load "search.fleet.check", msched.load "search.fleet.link",
  msched.load "search.fleet.queue"
local status = {}

local SHOWN, LONGEST = 20, 400 -- poisoned jobs of a queue; bytes of a stranger's text
local PATIENCE = 5 -- seconds that a server may be gone: somebody waits

local function poison_of(queue)
  local reply, list = queue.link:call("HGETALL", queue:key "poison"), {}
  for i = 1, math.min(#reply, 2 * SHOWN) - 1, 2 do
    list[#list + 1] = {job = reply[i]:sub(1, LONGEST), why = reply[i + 1]:sub(1, LONGEST)}
  end
  table.sort(list, function(a, b) return a.job < b.job end)
  return list, #reply // 2
end

-- {id, device, versions, protocol, is_own, jobs, held, workers, tuners, poison, poisoned} of each queue. Workers have
-- `slow`, why they take no jobs, or "", and `liar`, why a tuner does not trust their results, or nil.
function status.read(server)
  local list = {}
  for i, about in ipairs(Queue.list(server)) do
    local queue = Queue.known(server, about.id, about)
    local length, held = server:call("XLEN", queue:key "jobs"), queue:held()
    local poison, poisoned = poison_of(queue)
    list[i] = {id = about.id, device = about.device, versions = about.versions, protocol = about.protocol,
               is_own = about.versions == msched.versions() and about.protocol == Queue.PROTOCOL,
               jobs = math.max(length - held, 0), held = held, workers = queue:who "workers",
               tuners = queue:who "tuners", poison = poison, poisoned = poisoned}
    local liars = check.liars(queue)
    for _, w in ipairs(list[i].workers) do w.liar = liars[w.name] end
  end
  return list
end

-- How long ago it said that it lives, by the clocks of both machines.
local function age_of(w)
  local seconds = math.max(math.floor(os.time() - w.seen), 0)
  return seconds < 120 and string.format("%d s", seconds)
    or seconds < 7200 and string.format("%d min", seconds // 60) or string.format("%d h", seconds // 3600)
end

local function state_of(w)
  return not w.alive and "dead" or w.slow ~= "" and "takes no jobs: " .. w.slow
    or w.liar and "put aside: " .. w.liar or "works"
end

local function add_queue(lines, q)
  local function add(...) lines[#lines + 1] = string.format(...) end
  local rate, live = 0, 0
  for _, w in ipairs(q.workers) do if w.alive then rate, live = rate + w.rate, live + 1 end end
  add("%s", q.device)
  add("  queue %s, of %s%s", q.id, q.versions, q.is_own and "" or " (another than this program)")
  add("  %d waiting, %d held, %.1f jobs/s by %d of %d workers, %d poisoned", q.jobs, q.held, rate, live, #q.workers,
      q.poisoned)
  if #q.workers > 0 then add("  %-24s %9s %9s %9s %9s  %s", "worker", "jobs", "failed", "jobs/s", "seen", "state") end
  for _, w in ipairs(q.workers) do
    add("  %-24s %9d %9d %9.1f %9s  %s", w.name, w.done, w.failed, w.alive and w.rate or 0, age_of(w), state_of(w))
  end
  for _, t in ipairs(q.tuners) do
    if t.alive then add("  %-24s %9d results, %.1f a second, %d jobs sent", t.name, t.done, t.rate, t.capacity) end
  end
  for _, p in ipairs(q.poison) do add("  poison %s: %s", p.job, p.why) end
end

-- The same as lines.
function status.lines(list)
  local lines = {}
  for _, q in ipairs(list) do add_queue(lines, q) end
  if #list == 0 then lines[1] = "no queue: no worker and no tuner has been there" end
  return lines
end

-- Forgets, in each queue, what nobody needs. Gives {id, device, versions, and what Queue:forget gives} of each.
function status.forget(url)
  local server, list = link.open(url, PATIENCE), {}
  for i, about in ipairs(Queue.list(server)) do
    list[i] = Queue.known(server, about.id, about):forget()
    list[i].id, list[i].device, list[i].versions = about.id, about.device, about.versions
  end
  server:close()
  return list
end

function status.of(url)
  local server = link.open(url, PATIENCE)
  local list = status.read(server)
  server:close()
  return list
end

return status
