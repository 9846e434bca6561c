-- The end of a tuning run: of the best few, timed again in turn, the fastest is the best, and the records have the new
-- times. The times are the test's own.
local ms = require "msched"
local root = ...
local remeasure, Task = ms.load "search.remeasure", ms.load "search.task"

-- Names that scripts may still have.
assert(ms.load "search.contest" == remeasure)
for old, new in pairs {box = "sandbox", heeding = "interruptible", draft = "estimator", drafts = "proposals",
                       recalled = "memoized"} do
  assert(ms[new] and ms[old] == ms[new] and rawget(ms, old) == nil, old)
end
local path = os.tmpname()
os.remove(path)

local func = loadfile(root .. "/lua/examples/gemm.lua")(16, 16, 16)[1]
local store = ms.store(path)
local workload, target = store:put_workload(func), ms.target("native")

-- A record of the function, its loop i split by n.
local function put(n, seconds)
  local sch = ms.schedule(func)
  local i = sch:get_loops(sch:get_sblock "C")
  sch:split(i, {ms.rest, n})
  local id, short = store:put {workload = workload, target = target.text, trace = sch.trace, hash = sch:hash(),
                               status = "measured", seconds = seconds, low = seconds, high = seconds, runs = 3}
  return {id = id, measured = {hash = sch:hash(), seconds = seconds, id = short, full_id = id}}
end

local asked
local function env_of(records, times)
  local measured = {}
  for i, r in ipairs(records) do measured[i] = r.measured end
  local env = {done = 1, measured = measured, workload = workload, target = target, log = function() end,
               run = {cut = false, is_late = function() return false end}, stopped = function() return false end,
               best = Task.best, fastest_few = Task.fastest_few, choose_best = Task.choose_best,
               record_of = Task.record_of, shared = {}, counted = 0}
  env.services = {store = store}
  env.services.measurer = {remeasure = function(_, _, traces) asked = #traces end,
                           remeasured = function() return times end}
  return env
end
local function time(seconds) return {seconds = seconds, low = seconds, high = seconds, runs = 9, busy = true} end

-- three are close; the third of them wins, and the fourth, which is not, is left as it was
local records = {put(2, 1.0), put(4, 1.05), put(8, 1.1), put(16, 1.3)}
local env = env_of(records, {time(1.2), time(1.15), time(1.01)})
assert(remeasure.run(env) == 3 and asked == 3)
assert(env.fastest.full_id == records[3].id and env.fastest.seconds == 1.01)
assert(env.fastest.id == records[3].measured.id and env.fastest.hash == records[3].measured.hash)
assert(#env.fastest.trace > 0)
local kept = store:find(records[1].id)
assert(kept.seconds == 1.2 and kept.runs == 9 and kept.busy and kept.status == "measured")
kept = store:find(records[4].id)
assert(kept.seconds == 1.3 and kept.runs == 3 and not kept.busy)
assert(store:records({workload = workload})[1].id == records[3].id)
assert(store:check() == 0)

-- one that none is close to is not timed again; nor is anything where a finalist could not be run, or nothing was done
local alone = {put(2, 1.0), put(4, 2.0)}
env = env_of(alone, {})
assert(remeasure.run(env) == 0 and not env.fastest)
env = env_of({put(2, 1.0), put(4, 1.0)}, false)
env.fastest = "as before"
assert(remeasure.run(env) == 0 and env.fastest == "as before")
-- nor where other programs ran all the time; one that they left alone tells the others' order
records = {put(2, 1.0), put(4, 1.05)}
env = env_of(records, {time(8.1), time(8.0)})
env.fastest = "as before"
assert(remeasure.run(env) == 0 and env.fastest == "as before" and env.measured[1].seconds == 1.0)
kept = store:find(records[2].id)
assert(kept.seconds == 1.05 and kept.runs == 3 and not kept.busy)
env = env_of(records, {time(8.1), time(1.04)})
assert(remeasure.run(env) == 2 and env.fastest.full_id == records[2].id)

-- Those that were not timed again and would be first then are, beside the best of those that were, until that is first:
-- however the times fall, the best is the store's first.
do
  local list = {put(2, 1.0), put(4, 1.001), put(8, 1.002), put(16, 1.2)}
  local few, rounds = remeasure.MOST, 0
  remeasure.MOST = 2
  env = env_of(list, nil)
  local of_round = {{1.05, 1.04}, {1.03, 1.041}, {1.2, 1.2}}
  env.services.measurer.remeasured = function()
    rounds = rounds + 1
    local times = {}
    for i, seconds in ipairs(of_round[rounds]) do times[i] = time(seconds) end
    return times
  end
  local told = {}
  env.log = function(kind, _, fields) if kind == "retimed" then told[#told + 1] = fields end end
  assert(remeasure.run(env) == 3 and rounds == 2, rounds)
  assert(env.fastest.full_id == list[3].id and env.fastest.seconds == 1.03)
  assert(store:records({workload = workload})[1].id == list[3].id)
  assert(#told == 4 and told[4].best == list[3].measured.id and told[4].best_seconds == 1.03
         and told[4].id == list[2].id and told[4].seconds == 1.041)
  remeasure.MOST = few
end

-- Equal times: the best is the first of the store, by the records' ids, whichever came first.
for order = 1, 2 do
  local list = {put(2, 1.0), put(4, 1.1)}
  if order == 2 then list[1], list[2] = list[2], list[1] end
  env = env_of(list, {time(1.1), time(1.1)})
  assert(remeasure.run(env) == 2)
  local first
  for _, r in ipairs(store:records {workload = workload}) do if not first and r.seconds == 1.1 then first = r.id end end
  assert(first == (list[1].id < list[2].id and list[1] or list[2]).id and env.fastest.full_id == first
         and env:best(1)[1].full_id == first)
end

env.done = 0
asked = nil
assert(remeasure.run(env) == 0 and not asked)
-- An interrupt in the middle of it leaves it, and its task open: it would be closed while it is timed.
do
  local Run = ms.load "search.run"
  local run, asked_for, closed = Run.new {log = function() end}, 0, 0
  local task = env_of({put(2, 1.0), put(4, 1.0)}, nil)
  task.waiting, task.late, task.number, task.name, task.know_unfinished = 0, 0, 0, "gemm", function() end
  run.services = task.services
  task.services.measurer.remeasured = function() asked_for = asked_for + 1 end
  task.services.measurer.close_task = function() closed = closed + 1 end
  task.stopped = function() return asked_for > 2 end
  run.stopped = task.stopped
  run:finish(task)
  assert(asked_for == 3 and closed == 0 and task.retimed == 0)
  task.is_closed, asked_for = nil, 0
  task.services.measurer.remeasured = function() return {time(1.0), time(1.1)} end
  run:finish(task)
  assert(closed == 1 and task.retimed == 2)
end

store:close()
os.remove(path)
os.remove(path .. "-lock")
print "final re-measurement: ok"
