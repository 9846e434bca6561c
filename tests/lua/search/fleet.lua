-- A fleet in one process: tuner and workers take steps in turn, on a server in memory. Nothing is lost, nothing is
-- taken twice, whatever dies; what is no job or no result is refused.
-- usage: msched fleet.lua SOURCE
local ms = require "msched"
local root = ...
local fails = assert(loadfile(root .. "/tests/support/lua/fails.lua"))()
local memory = assert(loadfile(root .. "/tests/support/lua/memory_redis.lua"))()
local codec, link, Queue = ms.load "search.fleet.codec", ms.load "search.fleet.link", ms.load "search.fleet.queue"
local Coordinator, Worker, status = ms.load "search.fleet.coordinator", ms.load "search.fleet.worker",
  ms.load "search.fleet.status"
link.FIRST, link.PAUSE = 0.2, 0.001

-- The clock counts how often somebody looks at it, and what is slept. No lease runs out because the machine is busy.
local time = 0
function ms.clock()
  time = time + 2e-5
  return time
end
function ms.sleep(seconds) time = time + seconds end

-- ---- A queue
ms.redis = memory.connect
Queue.lease, Coordinator.LOOK = 0.3, 0.1
local func = loadfile(root .. "/lua/examples/gemm.lua")(16, 16, 16)[1]
local traces, hashes, seen = {}, {}, {}
local sketch = ms.schedule(func)
local i = sketch:get_loops(sketch:get_sblock "C")
sketch:split(i, {sketch:sample_perfect_tile(i, 4, 16)})
local j = select(2, sketch:get_loops(sketch:get_sblock "C"))
sketch:split(j, {sketch:sample_perfect_tile(j, 2, 16)})
for seed = 1, 400 do
  local sch = ms.apply(func, sketch.trace, {resample = true, seed = seed, candidate = seed})
  if not seen[sch:hash()] and #traces < 30 then
    seen[sch:hash()] = true
    traces[#traces + 1], hashes[#hashes + 1] = sch.trace, sch:hash()
  end
end
assert(#traces == 30)

local said = {}
local function worker(name, options)
  options = options or {}
  return Worker.open {link = link.open "redis://memory", name = name, simulate = 0.001, factor = options.factor,
                      say = function(text) said[#said + 1] = text end}
end
local function tuner(options)
  options = options or {}
  return Coordinator.open {link = link.open "redis://memory", target = ms.target "native",
                           run_timeout = options.run_timeout}
end

-- Sends all candidates; steps until all results are there. act(n), n of them, is called after each step.
local function serve(c, workers, act)
  local got, count, started = {}, 0, ms.clock()
  local task = c:add(func)
  for n, trace in ipairs(traces) do c:submit(task, n, trace, hashes[n]) end
  while count < #traces do
    assert(ms.clock() - started < 20, "results are missing")
    for _, w in pairs(workers) do w:step() end
    local r = c:next(0.001)
    if r then
      assert(not got[r.id], "a result came twice")
      got[r.id], count = r, count + 1
    end
    if act then act(count) end
  end
  assert(c:next(0.001) == nil and c.in_flight == 0 and next(c.sent) == nil)
  return got
end
local function times_of(got)
  local list = {}
  for n, r in ipairs(got) do list[n] = string.format("%s %.17g", r.hash, r.seconds) end
  return table.concat(list, "\n")
end
local function sum(workers)
  local done = 0
  for _, w in pairs(workers) do done = done + w.done end
  return done
end

-- Two that a tuner sees, so that it sends enough for both.
local function two()
  local list = {a = worker "a", b = worker "b"}
  for _, each in pairs(list) do each:step() end
  return list
end

-- two workers, nothing goes wrong
local workers = two()
local first = tuner()
local got = serve(first, workers)
local expected = times_of(got)
assert(sum(workers) == 30 and workers.a.done > 0 and workers.b.done > 0 and got[1].measured and got[1].worker)
local q = status.of("redis://memory")[1]
assert(q.jobs == 0 and q.held == 0 and #q.workers == 2 and q.workers[1].alive and q.is_own and q.poisoned == 0)
assert(#status.lines {q} >= 6)

-- a tuner that asks for the same has the results that are there: nothing is done twice
first:close()
local again = tuner()
assert(times_of(serve(again, workers)) == expected and sum(workers) == 30)
again:close()

-- a worker dies with jobs in its hands; another finishes them
memory.flush()
workers = two()
local c = tuner()
local dying, held = workers.b, 0
assert(times_of(serve(c, workers, function(n)
  if n < 3 or held > 0 then return end
  held = dying:holds()
  if held > 0 then workers.b = nil end
end)) == expected)
assert(held > 0 and workers.a.done + dying.done == 30)

-- each third call is done and not answered; the connection is another then
memory.flush()
workers, memory.lose_every = two(), 3
c = tuner()
assert(times_of(serve(c, workers)) == expected)
memory.lose_every = 0

-- the server loses all that it had
memory.flush()
workers = two()
c = tuner()
local lost = false
assert(times_of(serve(c, workers, function(n)
  if n < 7 or lost then return end
  lost = true
  memory.flush()
end)) == expected)
-- texts, too, which a worker that comes then has not read; or another's are in their place
for _, spoil in ipairs {memory.flush, function() c.link:call("SET", c.queue:key("text", c.tasks[1].workload), "x") end,
                        function() c.link:call("DEL", c.queue:key("text", c.tasks[1].workload)) end} do
  memory.flush()
  workers, lost = {a = worker "a"}, false
  workers.a:step()
  c = tuner()
  assert(times_of(serve(c, workers, function(n)
    if n < 7 or lost then return end
    lost = true
    workers.a:close() -- what it holds is the next one's at once
    spoil()
    workers.a, workers.late = nil, worker "late"
  end)) == expected)
  local put_again
  for text in function() return c:waiting() end do put_again = put_again or text:find "it is put there again" end
  assert(lost and (put_again or spoil == memory.flush))
end

-- the server is another, whose clock is behind: what comes in a reply stream is before what was read of it. Results are
-- not found only as all that is waited for is asked for again.
memory.flush()
workers = two()
c = tuner()
c.look_after = function() end
lost = false
assert(times_of(serve(c, workers, function(n)
  if n < 7 or lost then return end
  lost, c.after = true, "99999-0"
  c.link:close()
end)) == expected and c.after ~= "99999-0")

-- a tuner dies in the middle; another takes what came and asks for the rest
memory.flush()
workers = {a = worker "a"}
c = tuner()
local task = c:add(func)
for n = 1, 20 do c:submit(task, n, traces[n], hashes[n]) end
for _ = 1, 20 do
  c:next(0.001)
  workers.a:step()
end
local before = workers.a.done
assert(before > 0)
assert(times_of(serve(tuner(), workers)) == expected and workers.a.done == 30)

-- three workers die of a job: it is poison, and its tuner is told
memory.flush()
c = tuner()
task = c:add(func)
c:submit(task, 1, traces[1], hashes[1])
c:next(0.001)
for n = 1, 3 do
  local w = worker("dying" .. n)
  local deadline = ms.clock() + 5
  while not next(w.held) do
    assert(ms.clock() < deadline)
    w:tend()
    w:accept(w.queue:take(w.name, 1, 0))
  end
end
local last, r = worker "last", nil
repeat
  last:step()
  r = c:next(0.001)
until r
assert(r.outcome == "poison" and r.reason:find "delivered 3 times" and last.done == 0)
assert(status.of("redis://memory")[1].poisoned == 1 and c:reference(task) == true)

-- ---- What is no job
memory.flush()
local w = worker "w"
c = tuner()
task = c:add(func)
local function job(values)
  local name = values.name or "x.y"
  return {name = name, bytes = codec.write_job(setmetatable(values, {__index = {name = name, kind = "measure",
                                                            workload = c.tasks[1].workload, hash = hashes[1],
                                                            reply = "me", run_timeout = 1, reference_timeout = 1,
                                                            traces = {traces[1]:binary()}}}))}
end
local count = 0
local function bad(pattern, sent)
  count = count + 1
  sent.name = sent.name or "n" .. count
  c.queue:submit {sent}
  said = {}
  local deadline = ms.clock() + 5
  while #said == 0 and ms.clock() < deadline do w:step() end
  w:step()
  assert(#said == 1 and said[1]:find(pattern), tostring(said[1]))
  assert(c.queue:results({sent.name})[1], "its tuner is not told")
end
bad("does not begin", {name = "g", bytes = "garbage"})
bad("its name is another's", {name = "other", bytes = job({name = "a"}).bytes})
bad("are the most", job {name = "long", traces = {("x"):rep((4 << 20) + 1)}})
bad("neither a candidate nor finalists", job {name = "k", kind = "shell"})
bad("neither a candidate nor finalists", job {name = "two", traces = {"", ""}})
bad("time limits", job {name = "limits", run_timeout = 1e6})
for n, best in ipairs {math.huge, 5e-324} do bad("its best time is none", job {name = "best" .. n, best = best}) end
bad("its workload is not there", job {name = "none", workload = "0000000000000000"})
bad("its text of intrinsics is not there", job {name = "bare", intrinsics = "0000000000000000"})
do
  local measurer = ms.measurer {target = "native"}
  fails("no function", measurer.add, measurer, func, "### half.desc\n")
  assert(measurer:add(func, "") == 0)
  measurer:close()
end
-- a trace of another schema: an instruction that is none here
local other = traces[1]:json():gsub("SamplePerfectTile", "SampleAnotherTile")
bad("SampleAnotherTile", job {name = "schema", traces = {other}})
c.queue:put_text("1111111111111111", "text of another name")
bad("another than its name says", job {name = "text", workload = "1111111111111111"})
local wrong = "not TVMScript"
c.queue:put_text(Queue.digest(wrong), wrong)
bad("workload", job {name = "script", workload = Queue.digest(wrong)})

-- One that is out of bounds is not read; what came with it is done.
local huge = {name = "huge", bytes = ("x"):rep(17 << 20)}
c.queue:submit {huge, {name = "small", bytes = "garbage"}}
local deadline_ = ms.clock() + 5
said = {}
repeat w:step() until #said > 0 or ms.clock() > deadline_
w:step()
assert(#said == 1 and said[1]:find "job small is refused: it does not begin", said[1])
q = status.of("redis://memory")[1]
assert(q.jobs == 0 and q.held == 0 and q.poisoned == 1 and q.poison[1].why:find "out of bounds, and was not read")

-- A server that refuses: what is to be done, where that is known; what passes is waited for.
local answer
function ms.redis()
  local redis = memory.connect()
  local ask = redis.ask
  function redis.ask(self, seconds, commands)
    if not answer or commands[1][1] == "SELECT" then return ask(self, seconds, commands) end
    return {{error = answer}}
  end
  return redis
end
local server = link.open "redis://memory"
for text, pattern in pairs {
  ["MOVED 3 1.2.3.4:5"] = "MOVED 3 1.2.3.4:5; it is a node of a cluster", ["CLUSTERDOWN no"] = "a server of its own$",
  ["READONLY You"] = "; it is a copy of another", ["OOM command"] = "more memory", ["NOAUTH x\27[2J"] = "auth=FILE",
  ["ERR a\r\nb"] = "0: ERR a$", ["WRONGTYPE Operation"] = "0: k: WRONGTYPE Operation; another program has a key",
} do
  answer = text
  fails(pattern, server.call, server, "GET", "k")
  fails(pattern, server.all, server, {{"GET", "k"}})
end
for key, command in pairs {k3 = {"EVAL", "return 1", 1, "k3", "a"}, ["k1 or k2"] = {"EVAL", "return 1", 2, "k1", "k2"},
                           k4 = {"XGROUP", "CREATE", "k4", "g", "0"},
                           ["k5 or k6"] = {"XREADGROUP", "GROUP", "g", "w", "STREAMS", "k5", "k6", ">", ">"}} do
  answer = "WRONGTYPE Operation"
  fails("0: " .. key .. ": WRONGTYPE", server.all, server, {command})
end
answer, server.patience = "LOADING Redis is loading", 0.01
fails("no Redis answers there: LOADING", server.call, server, "GET", "k")
answer = "NOREPLICAS Not enough"
fails("no Redis answers there: NOREPLICAS", server.call, server, "GET", "k")
answer = "LOADING Redis is loading"
-- one that greets and answers nothing is given up as soon as one that is not there
local began = ms.clock()
fails("no Redis answers there: LOADING", link.open, "redis://memory")
assert(ms.clock() - began < 60)
answer = nil
-- A server that accepts no more connections is waited for, as one that is not there.
function ms.redis()
  local redis = memory.connect()
  function redis.ask() return {{error = "ERR max number of clients reached"}} end
  return redis
end
fails("no Redis answers there: ERR max number of clients reached; raise its maxclients", link.open, "redis://memory")
function ms.redis()
  local redis = memory.connect()
  local ask = redis.ask
  function redis.ask(self, seconds, commands, ...)
    if commands[1][1] == answer then return {{error = "NOPERM no " .. answer}} end
    return ask(self, seconds, commands, ...)
  end
  return redis
end
-- Who may not keep its leases, or ask for what others hold, ends, and says so: others would take what it works on.
for command, act in pairs {
  XCLAIM = function(each) each.queue:keep("w", {["1-0"] = {stream = each.queue:key "jobs"}}) end,
  XAUTOCLAIM = function(each) each.queue:claim("w", 1) end,
  XPENDING = function(each) each.queue:recover("w", {}) end,
} do
  local each = worker(command)
  answer = command
  fails("0: NOPERM no " .. command .. "$", act, each)
  if command == "XPENDING" then
    fails("0: NOPERM no XPENDING$", status.of, "redis://memory")
    fails("0: NOPERM no XPENDING$", each.queue.release, each.queue, "w")
  end
  answer = nil
  each:close()
end
-- What the server has lost is no refusal.
do
  local lost_all = Queue.known(link.open "redis://memory", "0000000000000000", c.queue)
  lost_all:keep("w", {["1-0"] = {stream = lost_all:key "jobs"}})
  assert(#lost_all:claim("w", 1) == 0 and #lost_all:recover("w", {}) == 0 and lost_all:release "w" == 0
         and lost_all:held() == 0)
end
ms.redis = memory.connect
-- It is said that a server is gone, once, and that it is back.
do
  local texts, gone, said_after = {}, false, link.SAID
  function ms.redis()
    if gone then return nil, "the network is cut" end
    return memory.connect()
  end
  local each = link.open "redis://memory"
  each.tell = function(text)
    texts[#texts + 1] = text
    gone = false
  end
  each.redis.is_open, gone, link.SAID = function() return false end, true, 0.02
  assert(each:call "PING" == "PONG" and #texts == 2 and texts[2] == "redis://memory:6379/0: it answers again"
         and texts[1]:find "0: no Redis answers there for 0 s: the network is cut; it is waited for, 120 s at most$",
         texts[1])
  ms.redis, link.SAID = memory.connect, said_after
end
-- what fails as a worker reads a job's workload is the server's fault: the worker ends, and the job is others'
local reading = worker "reading"
c.queue:submit {job {name = "left", workload = "2222222222222222"}}
local ask = reading.link.redis.ask
function reading.link.redis.ask(self, seconds, commands, ...)
  if commands[1][1] == "STRLEN" then return {{}} end
  return ask(self, seconds, commands, ...)
end
fails("STRLEN is not answered as Redis does", function() for _ = 1, 20 do reading:step() end end)
assert(not c.queue:results({"left"})[1] and reading.refused == 0)
reading:close()
ms.redis = memory.connect
repeat w:step() until c.queue:results({"left"})[1] or ms.clock() > began + 20
assert(codec.read_result(c.queue:results({"left"})[1]).outcome == "lacking")

-- Of many that are refused the first are said. A worker that may not say that it lives ends.
said, count = {}, 0
local flooded = worker "flooded"
for n = 1, 30 do c.queue:submit {{name = "flood" .. n, bytes = "garbage"}} end
deadline_ = ms.clock() + 10
while flooded.refused < 30 and ms.clock() < deadline_ do flooded:step() end
assert(flooded.refused == 30 and #said == 20 and said[20]:find "those that follow are counted only", #said)
local say = flooded.queue.say
function flooded.queue.say(...)
  local commands = say(...)
  commands[1][1] = "AUTH" -- what the server refuses
  return commands
end
flooded.said = -math.huge
fails("WRONGPASS", flooded.step, flooded)

-- Who has said nothing for a week is forgotten as a worker starts; who was killed today is listed.
for name, age in pairs {old = 8 * 86400, killed = 3600} do
  local about = flooded:about()
  about.name, about.seen = name, os.time() - age
  c.link:call("HSET", c.queue:key "workers", name, codec.write_worker(about))
end
worker "tidy"
local listed = {}
for _, each in ipairs(c.queue:who "workers") do listed[each.name] = true end
assert(listed.killed and not listed.old)
assert(memory.expires(c.queue:key "poison"))

-- ---- What is no result
memory.flush()
workers = {w = worker "w"}
c = tuner()
local complete, spoilt = workers.w.queue.complete, 0
workers.w.queue.complete = function(self, list)
  for _, each in ipairs(list) do
    if spoilt < 3 then
      spoilt = spoilt + 1
      local values = codec.read_result(each.bytes)
      if spoilt == 1 then
        values.seconds = math.huge
      elseif spoilt == 2 then
        values.hash = "0"
      else
        values.outcome = "best of all"
      end
      each.bytes = codec.write_result(values)
    end
  end
  return complete(self, list)
end
assert(times_of(serve(c, workers)) == expected and spoilt == 3)
local faults = 0
for text in function() return c:waiting() end do if text:find "^worker w: " then faults = faults + 1 end end
assert(faults == 3)

-- What is kept under a job's name and is no result of it: another's, or nothing that can be read. The job is sent by
-- another name, to a worker by its name. Before it is sent, and while it is waited for.
for _, early in ipairs {true, false} do
  memory.flush()
  workers = two()
  c = tuner()
  local digest = c:task_of(c:add(func)).digest
  local function spoil()
    for n, text in ipairs {"garbage", codec.write_result {name = "x", outcome = "measured"}, "", ("x"):rep(5000)} do
      c.link:call("SET", c.queue:key("result", string.format("%s.%s", digest, hashes[n])), text)
    end
  end
  if early then spoil() end
  assert(times_of(serve(c, workers, function(n)
    if n == 0 and not early then spoil() end
  end)) == expected)
end

-- One whose results are put aside is the first to take what is sent to all: candidates go to others by name. Where
-- there is no other, they fail, with the reason.
for _, others in ipairs {true, false} do
  memory.flush()
  workers = two()
  local liar = workers.a
  liar.simulate = 0
  if not others then workers.b = nil end
  c = tuner()
  c.liars.a = "said so"
  local got_ = serve(c, {liar, liar, liar, workers.b})
  for _, r in ipairs(got_) do
    assert(others and r.measured and r.worker == "b" or not others and r.outcome == "crashed", r.reason)
    assert(others or r.reason:find "the times of worker a are not confirmed by others")
  end
  assert(not others or times_of(got_) == expected)
end
-- one that was asked by name and dies: another is asked
memory.flush()
workers = two()
c = tuner()
task = c:add(func)
c:look()
c:submit(task, 1, traces[1], hashes[1])
c:again(table.remove(c.unsent), "", "b")
assert(c.unsent[1].to == "a")
workers.a = nil
repeat
  workers.b:step()
  r = c:next(0.001)
until r
assert(r.measured and r.worker == "b")

-- What workers say of themselves is bounded: how much is sent ahead, too. There may be more than a command has words.
memory.flush()
c = tuner()
local about = worker("boast"):about()
about.capacity, about.rate = math.maxinteger, math.huge
c.link:all(c.queue:say("workers", about))
c:look()
assert(c:window() == 3000 and c.capacity == 65)
for n = 1, 4500 do
  about.name = "w" .. n
  c.link:call("HSET", c.queue:key "workers", about.name, codec.write_worker(about))
end
assert(#c.queue:who "workers" == 4501 and #status.of("redis://memory")[1].workers == 4501)
local many, sent_ = {}, {}
for n = 1, 4500 do many[n], sent_[n] = "h" .. n, {name = "h" .. n, bytes = "garbage"} end
assert(#c.queue:submit(sent_) == 4500 and #c.queue:results(many) == 4500)
c.queue:taken(many)

-- ---- Finalists
memory.flush()
workers = two()
c = tuner()
for _, each in pairs(workers) do each:step() end
task = c:add(func)
c:look()
local times
local function retime(asked)
  local deadline = ms.clock() + 10
  repeat
    for _, each in pairs(workers) do each:step() end
    times = c:remeasured(0.001, asked)
  until times ~= nil or ms.clock() > deadline
end
retime(c:remeasure(task, {traces[1], traces[2]}, 0.01))
assert(times and #times == 2 and times[1].seconds == got[1].seconds and times[2].seconds == got[2].seconds
       and times[1].runs == 1)
-- Of two at once, each by another worker, whichever is looked at first.
assert(c:most_retimed() == 2)
local early, late = c:remeasure(task, {traces[1]}, 0.01), c:remeasure(task, {traces[2]}, 0.01)
assert(early.to ~= late.to)
retime(late)
assert(times[1].seconds == got[2].seconds and times.by == late.to)
retime(early)
assert(times[1].seconds == got[1].seconds and times.by == early.to)
-- A limit that a store would not keep: another worker is asked.
local complete_ = workers.a.queue.complete
local function spoil(self, list_)
  for _, each in ipairs(list_) do
    local values = codec.read_result(each.bytes)
    values.limit, values.limit_seconds = "memory", 1e300
    each.bytes = codec.write_result(values)
  end
  return complete_(self, list_)
end
local first = c:remeasure(task, {traces[1]}, 0.01)
local spoilt_by = first.to
workers[spoilt_by].queue.complete = spoil
retime(first)
assert(times.by ~= spoilt_by and times[1].seconds == got[1].seconds and times[1].roofline == nil)
for _, each in pairs(workers) do each.queue.complete = nil end
-- A worker measures the limit of a function before it times finalists, not beside them.
local done = {}
Worker.start(setmetatable({
  task_of = function() return {number = 0} end, know_limit = function() done[#done + 1] = "limit" end,
  measurer = {remeasure = function() done[#done + 1] = "times" end},
}, {__index = Worker}), {read = {kind = "retime", seconds = 1}, traces = {}})
assert(table.concat(done, " ") == "limit times")
-- It lives while it measures its device, which may take longer than a lease, and no longer: by simulated time, in
-- which each of the things that it measures takes eight seconds. It keeps its jobs and its device meanwhile.
local limits, real_clock, later = ms.load "lua.bench.limits", ms.clock, 0
local measuring, for_tuning = workers.b, limits.for_tuning
local function is_alive(name)
  for _, each in ipairs(c.queue:who "workers") do if each.name == name then return each.alive end end
end
local function takes(seconds) later = later + seconds end
function ms.clock() return real_clock() + later end
measuring.simulate, measuring.holder, measuring.held = nil, "msched:holder:test", {["1-0"] = {stream = "s"}}
function limits.for_tuning(before_each)
  local list = {}
  function list.limit()
    for _ = 1, 3 do
      before_each()
      takes(8)
      assert(is_alive "b" and c.link:call("GET", measuring.holder) == measuring.identity)
    end
    return {name = "L1", of = "bytes", seconds = 1}
  end
  return list
end
local kept, keep = 0, measuring.queue.keep
function measuring.queue.keep(...)
  kept = kept + 1
  return keep(...)
end
local limited = {func = func}
measuring:know_limit(limited, {})
assert(limited.limit.name == "L1" and kept == 3)
takes(4) -- dead since it began to measure the last
assert(not is_alive "b" and not c.link:call("GET", measuring.holder))
c.link:call("SET", measuring.holder, "another")
measuring:be_silent() -- who has the device meanwhile keeps it
assert(is_alive "b" and c.link:call("GET", measuring.holder) == "another")
fails("worker another times on this device now", measuring.hold_own, measuring)
ms.clock, limits.for_tuning, measuring.queue.keep = real_clock, for_tuning, nil
measuring.simulate, measuring.roofline, measuring.held = 0.001, nil, {}
-- each thing is measured after one such sign of life
do
  local peak, order = ms.load "lua.bench.peak", {}
  local vectors, bandwidth = peak.vectors, peak.bandwidth
  local function notes(text, rate_) return function() order[#order + 1] = text return rate_ end end
  peak.vectors, peak.bandwidth = notes("vectors", 1e9), notes("bandwidth", 1e9)
  local known = limits.for_tuning(notes "before").limit(func, ms.target "native")
  peak.vectors, peak.bandwidth = vectors, bandwidth
  assert(known and table.concat(order, " ") == "before vectors before bandwidth", table.concat(order, " "))
end
for _, each in pairs(workers) do
  each.said = -math.huge
  each:step()
end
workers.a = nil -- the one that was asked first
local again = c:remeasure(task, {traces[1], traces[2]}, 0.01)
assert(again.to == "a")
retime(again)
assert(times and times[2].seconds == got[2].seconds and times.by == "b")
workers.b = nil
retime(c:remeasure(task, {traces[1]}, 0.01))
assert(times == false)

-- ---- Workers that lie ------------------------------------------------------------------------------------------

-- What three workers and a tuner make of finalists: who timed which, the times that count, whom they put aside.
local function finals(factors, claimed)
  memory.flush()
  workers = {}
  for name, factor in pairs(factors) do workers[name] = worker(name, {factor = factor}) end
  for _, each in pairs(workers) do each:step() end
  c = tuner()
  task = c:add(func)
  local claims, list = {}, {}
  for n, by in ipairs(claimed) do
    claims[n], list[n] = by and {worker = by, seconds = factors[by] * got[n].seconds}, traces[n]
  end
  retime(c:remeasure(task, list, 0.01, claims))
  return times, c:distrusted(), c
end
local function is_true(list) for n, t in ipairs(list) do assert(t.seconds == got[n].seconds, n) end end

local list, liars = finals({a = 1, b = 1, c = 1}, {"a", "a", "b"})
is_true(list)
assert(next(liars) == nil and list[1].worker == "c") -- it had measured none of them
-- one that says half of what it takes; and one that says thrice as much of what others measured
list, liars = finals({a = 1, b = 0.5, c = 1}, {"b", "b", "a"})
is_true(list)
assert(liars.b and liars.b:find "c and a took 2 times as long as it said" and not liars.a and not liars.c)
assert(status.of("redis://memory")[1].workers[2].liar == liars.b)
list, liars = finals({a = 1, b = 1, c = 3}, {"a", "a", "b"})
is_true(list)
assert(liars.c and not liars.a and not liars.b)
-- two cannot tell: it is said, and the new times count
list, liars, c = finals({a = 1, b = 0.5}, {"b", "b"})
is_true(list)
local text
repeat text = c:waiting() until not text or text:find "not confirmed by a, and no third"
assert(text and next(liars) == nil)

-- A task whose best are a liar's: its results count as failed, and the best is another's.
local path = os.tmpname()
os.remove(path)
local store = ms.store(path)
local Task, remeasure = ms.load "search.task", ms.load "search.remeasure"
local function run_end(factors, by)
  local measured, workload, target = {}, store:put_workload(func), ms.target "native"
  for n, trace in ipairs(traces) do
    local seconds = factors[by(n)] * got[n].seconds
    local id, short = store:put {workload = workload, target = target.text, trace = trace, hash = hashes[n],
                                 status = "measured", seconds = seconds, low = seconds, high = seconds, runs = 1,
                                 search = {asked = 0, came = 1, build_seconds = 0, run_seconds = 0, worker = by(n)}}
    measured[n] = {hash = hashes[n], seconds = seconds, id = short, full_id = id, worker = by(n)}
  end
  memory.flush()
  workers = {}
  for name, factor in pairs(factors) do workers[name] = worker(name, {factor = factor}) end
  for _, each in pairs(workers) do each:step() end
  c = tuner()
  local next_result = c.remeasured
  function c.remeasured(self, wait, asked) -- workers take steps while the tuner waits
    for _, each in pairs(workers) do each:step() end
    return next_result(self, wait, asked)
  end
  local env = setmetatable({done = 1, counted = 0, measured = measured, workload = workload, target = target,
                            shared = {}, log = function() end, number = c:add(func),
                            run = {cut = false, is_late = function() return false end},
                            stopped = function() return false end}, {__index = Task})
  env.services = {store = store, measurer = c}
  remeasure.run(env)
  return env
end
local fastest = 1
for n, r in ipairs(got) do if r.seconds < got[fastest].seconds then fastest = n end end
local function lies(n) return n % 3 == 0 and n ~= fastest end
local env = run_end({a = 1, b = 1, liar = 0.01}, function(n) return lies(n) and "liar" or n % 2 == 0 and "a" or "b" end)
assert(env.fastest.hash == hashes[fastest] and env.fastest.seconds == got[fastest].seconds)
local failed = 0
for _, r in ipairs(store:records {workload = env.workload}) do
  if r.status == "failed" then
    failed = failed + 1
    assert(r.reason:find "put aside, as are all results of worker liar: " and r.search.worker == "liar")
  else
    assert(r.search.worker ~= "liar")
  end
end
assert(failed > 0 and store:check() == 0)
store:close()
os.remove(path)

-- A run that goes on asks again for the last iteration, and over a fleet for those from the last before it on that has
-- fewer records than it asked for: its late results were lost. What another has fewer of was pruned.
for _, case in ipairs {{batch = 2, first = 5}, {first = 5, lost = {[6] = true}},
                       {batch = 2, first = 3, lost = {[6] = true}},
                       {batch = 2, first = 4, lost = {[1] = true, [7] = true}}, {batch = 3, first = 4}} do
  os.remove(path)
  local cut, lost, left = ms.store(path), case.lost or {}, 0
  local workload = cut:put_workload(func)
  local on = {workload = workload, target = ms.target "native", seed = 1, NUMBERS = Task.NUMBERS, batch = 2,
              policy = {needs = {}}, unfinished = {}, shared = {}, stored_left = 0, run = {tasks = {}}}
  for n = 1, 10 do
    local iteration = (n + 1) // 2
    if not lost[n] then
      left = left + (iteration >= case.first and 1 or 0)
      cut:put {workload = workload, target = on.target.text, trace = traces[n], hash = hashes[n],
               status = "measured", seconds = 1, low = 1, high = 1, runs = 1, seed = 1,
               candidate = iteration << Task.NUMBERS | n,
               search = {asked = 0, came = 1, build_seconds = 0, run_seconds = 0, run = 1,
                         worker = case.batch and "a" or nil, batch = case.batch}}
    end
  end
  on.note_best, on.know = function() end, function() end
  ms.load "search.resume".read(on, cut)
  assert(on.iteration == case.first and on.stored_left == left, on.iteration)
  assert(on.stored_of[4] == (lost[7] and 1 or 2))
  cut:close()
  os.remove(path)
end

-- What is asked for again counts with what its iteration has: a result says how many these are together.
do
  local put = {}
  local function c(n) return {hash = hashes[n], trace = traces[n], candidate = 3 << Task.NUMBERS | n} end
  local services = {store = {put = function(_, r) put[#put + 1] = r return {"id", "id"} end},
                    measurer = {submit = function() end, set_best = function() end}}
  local on = Task.new(func, {name = "f", policy = {name = "random", needs = {}, run = function() end}, seed = 1,
                             batch = 4, trials = 9, most_failures = 9, run = {started = 0}, services = services,
                             target = ms.target "native", log = function() end})
  on.iteration, on.stored_of = 3, {[3] = 2}
  local old = {hash = hashes[9], trace = traces[9], candidate = 2 << Task.NUMBERS | 1}
  on.answers = {}
  on:submit {{candidate = c(1), at = 1, answers = on.answers}, {candidate = old, at = 2, answers = on.answers},
             {candidate = c(2), at = 3, answers = on.answers}}
  for id = 1, 3 do
    on:take(id, {outcome = "crashed", seconds = 0, reason = "", worker = id ~= 3 and "a" or nil})
  end
  assert(put[1].search.batch == 4 and put[2].search.batch == nil and put[3].search.batch == nil)
end

-- ---- A device that is slower than it was
memory.flush()
local check = ms.load "search.fleet.check"
check.EVERY, check.AGAIN = 0.05, 0.02
workers = {a = worker "a", b = worker "b"}
local rate = 100
function workers.a.measure() return rate end
c = tuner()
said = {}
local slow_at
assert(times_of(serve(c, workers, function(n)
  if n >= 10 and rate == 100 then rate = 60 end
  if workers.a.slow ~= "" then slow_at = slow_at or workers.a.done end
  if n >= 10 then ms.sleep(0.002) end
end)) == expected)
assert(slow_at and workers.a.done == slow_at and workers.a:holds() == 0
       and said[1]:find "takes no jobs: its measured peak is 60 %% of the best seen", said[1])
workers.a:step()
assert(status.of("redis://memory")[1].workers[1].slow:find "60 %%")
rate = 90
local deadline = ms.clock() + 5
repeat workers.a:step() until workers.a.slow == "" or ms.clock() > deadline
assert(said[2] == "takes jobs again")
-- one that starts when it is hot knows of it
local late = worker "late"
function late.measure() return 50 end
late:step()
assert(late.slow:find "50 %%")
check.EVERY, check.AGAIN = 300, 30
-- what measures it
local measure = check.measurer(ms.target "native")
assert(measure() > 1e8 and measure() > 1e8)

-- ---- Other versions, other names
memory.flush()
local function is_there(name)
  for _, each in ipairs(w.queue:who "workers") do if each.name == name then return each.alive end end
  return false
end
w = worker "w"
assert(w.link:call("GET", w.own_name) == w.identity and memory.expires(w.own_name))
w.link:call("SET", w.own_name, "w 0123456789abcdef")
fails("a worker named w is there", worker, "w")
w.link:call("SET", w.own_name, w.identity, "PX", 50)
w:step()
ms.sleep(0.1)
w.said = -math.huge
w:step() -- which takes it again, as nobody has
-- One that was stopped for longer than a lease, while another took its name: it ends, and leaves alone what is the
-- other's by now. So does one that finds its device taken by a process of the same name.
ms.sleep(Queue.lease + 0.05)
local heir = worker "w"
heir:step()
w.said = -math.huge
fails("another worker is named w now, since this one said nothing for longer than 0.3 s", w.step, w)
assert(w:close() == 0 and is_there "w" and heir.link:call("GET", heir.own_name) == heir.identity)
heir.said = -math.huge
heir:step()
heir.holder = "msched:holder:test"
heir.link:call("SET", heir.holder, "w 0123456789abcdef")
fails("worker w times on this device now, since", heir.hold_own, heir)
assert(heir:close() == 0 and not is_there "w" and not heir.link:call("GET", heir.own_name))
w = worker "w"
fails("a name has up to 100", worker, "a b")
w.queue.versions, w.queue.id = "msched 9.9, LLVM 99", Queue.id_of(w.device, "msched 9.9, LLVM 99")
w.queue:make()
w.queue:make_group(w.queue:key("to", "w"))
w:step()
fails("of another version than this program, msched .*: w on .*, of msched 9.9, LLVM 99", tuner)
local live = Queue.open(link.open "redis://memory", w.device, "msched 9.9, LLVM 99")
live.link:all(live:say("tuners", {name = "t9", device = w.device, versions = "msched 9.9, LLVM 99"}))
said = {}
worker "x"
assert(#said == 1 and said[1]:find "t9 is of msched 9.9, LLVM 99, which this worker, of msched .*, does not serve",
       said[1])

-- What nobody needs is forgotten: who is dead, what was poison, whom tuners did not trust; and, where nobody lives, the
-- queue and what waits in it.
memory.flush()
workers, c = two(), tuner()
task = c:add(func)
workers.a.queue:poison({name = "p.q", at = "9-0", stream = c.queue:key "jobs"}, "a", "three deaths")
ms.load "search.fleet.check".tell_liar(c.queue, "a", "a liar")
live = Queue.open(link.open "redis://memory", w.device, "msched 9.9, LLVM 99")
live:make_group(live:key("to", "gone"))
local dead = workers.a:about()
dead.name = "gone"
for _, each in ipairs {c.queue, live} do
  each.link:call("HSET", each:key "workers", "gone", codec.write_worker(dead))
  each.link:call("HSET", each:key "tuners", "gone", codec.write_worker(dead))
end
live:submit {{name = "waits", bytes = "garbage"}, {name = "too", bytes = "garbage"}}
assert(c.queue:results({"p.q"})[1] and #status.of("redis://memory") == 2)
local forgotten = {}
for _, each in ipairs(status.forget "redis://memory") do forgotten[each.id] = each end
local own_, other_ = forgotten[c.queue.id], forgotten[live.id]
assert(not own_.is_whole and own_.workers == 1 and own_.tuners == 1 and own_.poisoned == 1 and own_.jobs == 0)
assert(other_.is_whole and other_.workers == 1 and other_.tuners == 1 and other_.poisoned == 0 and other_.jobs == 2)
list = status.of "redis://memory"
assert(#list == 1 and #list[1].workers == 2 and list[1].poisoned == 0 and not list[1].workers[1].liar
       and not c.queue:results({"p.q"})[1] and memory.holds(c.queue:key "jobs"))
for _, key in ipairs {"jobs", "open", "workers", "tuners"} do assert(not memory.holds(live:key(key)), key) end
assert(not memory.holds(live:key("to", "gone")))
assert(times_of(serve(c, workers)) == expected) -- those that live go on

-- nobody there: it is said, once
memory.flush()
c = tuner()
deadline = ms.clock() + 5
repeat
  c:next(0.001)
  text = c:waiting()
until text or ms.clock() > deadline
assert(text and text:find "^no worker serves llvm .* at redis://memory:6379/0: `msched worker redis://memory:6379/0` \z
                           there does; others: none", text)

-- ---- Results that come together ------------------------------------------------------------------------------------
-- One commit keeps them before any is taken; of one alone, none is begun.
local steps, rest = {}, {}
local function step(text) return function(_, r) steps[#steps + 1] = text .. (r and r.id or "") end end
local each_task = {keep_early = step "keep ", take_result = step "take "}
local function next_of_rest() return table.remove(rest, 1) end
local together = ms.load "search.services".open {store = {batch = function(_, f)
  steps[#steps + 1] = "begin"
  f()
  steps[#steps + 1] = "commit"
end}}
together.by_number, together.tell_waiting = {[7] = each_task}, function() end
together.measurer = {next = next_of_rest, came_with = next_of_rest}
rest = {{task = 7, id = 1}, {task = 7, id = 2}, {task = 7, id = 3}}
assert(together:wait() and table.concat(steps, ", ") == "begin, keep 1, keep 2, keep 3, commit, take 1, take 2, take 3")
steps, rest = {}, {{task = 7, id = 4}}
assert(together:wait() and table.concat(steps, ", ") == "take 4" and not together:wait())

-- ---- Several functions at a time -----------------------------------------------------------------------------------
local tune = ms.load "search.tune"
local functions = {}
for n, shape in ipairs {{16, 16, 16}, {16, 16, 32}, {16, 32, 16}} do
  functions[n] = loadfile(root .. "/lua/examples/gemm.lua")(table.unpack(shape))[1]
end
-- A run by three workers, of which one takes a step only now and then: the order in which tasks asked, what each asked
-- for, and how many waited at a time, at most. alone: one task at a time, as on this machine.
local function run_of(slow, alone, options)
  memory.flush()
  local list = {worker "a", worker "b", worker "c"}
  for _, each in ipairs(list) do
    -- others have work while one has none
    function each.queue.take(queue, name, room) return Queue.take(queue, name, room, 0) end
    each:step()
  end
  local measurer, steps, order, asked, waiting, most, late = tuner(), 0, {}, {}, {}, 0, 0
  if alone then function measurer.lacks_candidates() return false end end
  local next_result, finalists = measurer.next, measurer.remeasured
  local function work()
    steps = steps + 1
    for n, each in ipairs(list) do if n ~= slow or steps % 20 == 0 then each:step() end end
  end
  function measurer.next(self, wait)
    work()
    return next_result(self, math.min(wait, 0.001))
  end
  function measurer.remeasured(self, wait, of)
    work()
    return finalists(self, math.min(wait, 0.001), of)
  end
  local own = os.tmpname()
  os.remove(own)
  local all = {measurer = measurer, db = own, trials = 12, batch = 4, jobs = 1, policy = "random", listen = function(e)
    if e.event == "asked" then
      order[#order + 1], asked[e.task] = e.task, (asked[e.task] or "") .. table.concat(e.hashes, " ") .. "\n"
      late = late + (waiting[e.task] or 0)
      waiting[e.task] = (waiting[e.task] or 0) + e.measured
    elseif e.event == "trial" then waiting[e.task] = waiting[e.task] - 1 end
    local count_ = 0
    for _, left in pairs(waiting) do count_ = count_ + (left > 0 and 1 or 0) end
    most = math.max(most, count_)
  end}
  for key, value in pairs(options or {}) do all[key] = value end
  local tasks = tune.all(functions, all)
  os.remove(own)
  local ended = 0
  for _, each in ipairs(tasks) do ended = ended + (each.retimed > 0 and each.done or 0) end
  return table.concat(order, " "), asked, most, ended, late
end
local function same_asked(x, y) for name, list_ in pairs(x) do assert(y[name] == list_, name) end end
local _, one, most_of_one, done = run_of(nil, true)
assert(most_of_one < 3 and done == 36) -- the next goes on while the first waits for its reference
local order_, three, most, all_done = run_of(nil, false)
assert(most == 3 and all_done == 36, most)
same_asked(one, three)
-- in turn, and where nothing depends on time, whatever comes first
local fixed_order, fixed_asked, fixed_most = run_of(1, false, {deterministic = true})
assert(fixed_most > 1)
for _, slow in ipairs {2, 3} do
  local other_order, other_asked = run_of(slow, false, {deterministic = true})
  assert(other_order == fixed_order, other_order)
  same_asked(fixed_asked, other_asked)
end
-- A policy goes on while a slow worker holds some of its batch, which count when they come: nothing is lost, and what
-- does not depend on results is the same. In turn, and where nothing depends on time, a batch is whole.
local ms_task = ms.load "search.task"
local stalled = ms_task.STALLED
ms_task.STALLED = 0
local large = {batch = 16, trials = 64}
local _, whole_asked, _, whole_done, none_late = run_of(nil, true, large)
local _, late_asked, _, late_done, late_ones = run_of(1, false, large)
assert(none_late == 0 and late_ones > 0 and whole_done == 192 and late_done == 192, late_done)
same_asked(whole_asked, late_asked)
for _, options in ipairs {{deterministic = true}, {scheduler = "round-robin"}} do
  options.batch, options.trials = 16, 32
  local _, _, _, _, own_late = run_of(1, false, options)
  assert(own_late == 0, own_late)
end
ms_task.STALLED = stalled
-- trials of all together are never more than were asked for
local _, _, _, of_total = run_of(1, false, {total = 20})
assert(of_total <= 20 and order_ ~= "")
