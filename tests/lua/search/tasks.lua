-- Tasks, policies and the scheduler, with a measurer of the test's own whose times depend on the candidate alone: the
-- same seed and results give the same candidates, with 1 and 2 jobs, twice, beside other tasks, and across stop and
-- resume, with
-- a model that has learned; what policies do wrong is named.  usage: msched tasks.lua
local ms = require "msched"
local te = ms.te
local tune = ms.load "search.tune"

local function product(name, m, n, k)
  local A, B, r = te.placeholder({m, k}, "float32", "A"), te.placeholder({k, n}, "float32", "B"), te.reduce_axis(k, "k")
  return te.func(name, {A, B, te.compute({m, n}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")})
end
local small, wide = product("small", 64, 64, 64), product("wide", 32, 128, 64)

local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")
local measurer, new_path, remove_stores, run = support.measurer, support.new_path, support.remove_stores, support.run
local same, joined, mean = support.same, support.joined, support.mean

-- ---- The same seed and results: the same candidates --------------------------------------------------------------

local TRIALS = 40

-- Of a run that is stopped after so many results, again and again, all candidates in turn.
local function stopped_after(counts, policy)
  local path, all = new_path(), {}
  for _, count in ipairs(counts) do
    local m = measurer {most = count}
    local ok, message =
      pcall(tune.all, {small}, {measurer = m, batch = 16, trials = TRIALS, db = path, jobs = 2, policy = policy})
    assert(not ok and message == "the measurer is gone", tostring(message))
    all = joined(all, table.move(m.asked[1], 1, count, 1, {}))
    collectgarbage() -- closes the store
  end
  local known
  local m = run({small}, {trials = TRIALS, db = path, policy = policy,
                          listen = function(e) if e.event == "start" then known = e.known end end})
  assert(known == #all)
  return joined(all, m.asked[1])
end

assert(ms.load("search.policy").find().name == "analytical", "the default")
assert(ms.load("search.policy").find "draft_verify" == ms.load("search.policy").find(), "its old name")
for _, policy in ipairs {"analytical", "evolutionary"} do
  local learned = 0
  local whole, tasks =
    run({small}, {policy = policy, trials = TRIALS, jobs = 1,
                  listen = function(e) if e.event == "learned" then learned = learned + e.lessons end end})
  assert(#whole.asked[1] == TRIALS and tasks[1].done == TRIALS and learned == TRIALS)
  same(run({small}, {policy = policy, trials = TRIALS, jobs = 2}).asked[1], whole.asked[1],
       policy .. " again, with 2 jobs")
  -- Of so small a space the analytical policy estimates all, and what it draws is not among the best.
  local other = run({small}, {policy = policy, trials = TRIALS, seed = 2}).asked[1]
  assert(policy == "analytical" or table.concat(other) ~= table.concat(whole.asked[1]), "the seed does not show")

  -- Stopped between iterations, in the middle of the second, and of the first and of a later one: the candidates are
  -- those of a run that was not stopped.
  for _, counts in ipairs {{16}, {21}, {3, 24}} do
    same(stopped_after(counts, policy), whole.asked[1], policy .. ", stopped after " .. table.concat(counts, " and "))
  end

  -- Beside another task, in turn, each has the candidates that it has alone.
  local both = run({small, wide}, {policy = policy, trials = TRIALS, scheduler = "round-robin"})
  same(both.asked[1], whole.asked[1], policy .. " beside another")
  same(both.asked[2], run({wide}, {policy = policy, trials = TRIALS}).asked[1], policy .. " beside another")
end

-- What is around one of the fastest is replayed once while it is among them.
do
  local steps, round, last = ms.load "search.policy.steps", 0, {}
  local neighbours, calls, again = steps.neighbours, 0, 0
  function steps.neighbours(env, trace)
    local text = trace:json()
    if round > 1 and last[text] == round - 1 then again = again + 1 end
    last[text], calls = round, calls + 1
    return neighbours(env, trace)
  end
  run({small}, {policy = "analytical", trials = TRIALS,
                listen = function(e) if e.event == "asked" then round = round + 1 end end})
  steps.neighbours = neighbours
  assert(round >= 4 and calls > 3, "nothing is around the fastest")
  assert(again == 0, again .. " replayed again in the next round")
end

-- What the model chose is better than what was drawn before it knew anything, and better than what is drawn; it is
-- worse where its scores are reversed.
local whole, drawn = run({small}, {policy = "evolutionary"}), run({small}, {policy = "replay_trace"})
assert(mean(whole.times[1], 17, 32) < 0.7 * mean(whole.times[1], 1, 16), "the model learned nothing")
assert(mean(whole.times[1], 17, 32) < 0.7 * mean(drawn.times[1], 1, 32), "the model is no better than drawing")
local reversed = run({small}, {policy = "evolutionary", model = ms.model {
  name = "reversed",
  update = function(self, candidates)
    self.model = self.model or ms.model("xgboost", self.seed)
    self.model:update(candidates)
  end,
  predict = function(self, candidates)
    local scores = self.model and self.model:predict(candidates) or {}
    for i = 1, #candidates do scores[i] = -(scores[i] or 0) end
    return scores
  end,
}})
assert(mean(reversed.times[1], 17, 32) > 2 * mean(whole.times[1], 17, 32), "reversed, it is as good")

-- ---- The scheduler -----------------------------------------------------------------------------------------------

-- Functions that are equal are one task, of the sum of their weights.
local m, one = run({{small, weight = 2}, product("small", 64, 64, 64), wide}, {trials = 4, policy = "replay_trace"})
assert(#m.funcs == 2 and #one == 2 and one[1].weight == 3 and one[2].weight == 1 and #one[1].equal == 1)

-- Trials of all together go to the task that gains most: the slower, and of two alike that which weighs more.
local function shares(first, second, options)
  local all =
    {policy = "replay_trace", trials = 1000, total = 96,
     measuring = {time = function(sch, task) return (task == 1 and first or second) + support.time_of(sch) * 1e-3 end}}
  for name, value in pairs(options) do all[name] = value end
  local m = run({{small, weight = options.weight}, wide}, all)
  assert(#m.asked[1] + #m.asked[2] == 96)
  return #m.asked[1], #m.asked[2]
end
local a, b = shares(1e-3, 1, {})
assert(a == 16 and b == 80, a .. " and " .. b)
a, b = shares(1e-3, 1e-3, {weight = 20})
assert(a == 80 and b == 16, a .. " and " .. b)
a, b = shares(1e-3, 1, {scheduler = "round-robin"})
assert(a == 48 and b == 48, a .. " and " .. b)

-- A task that has nothing left to do is closed while the others go on, each once, and nothing is asked of it
-- afterwards.
do
  local m, steps = measurer(), {}
  local submit = m.submit
  function m:submit(task, ...) steps[#steps + 1] = "submit " .. task return submit(self, task, ...) end
  function m:close_task(task) steps[#steps + 1] = "close " .. task end
  tune.all({{small, weight = 1e6}, wide},
           {measurer = m, batch = 8, trials = 24, db = new_path(), policy = "replay_trace"})
  local last, closed = {}, {}
  for i, step in ipairs(steps) do
    local what, task = step:match "(%a+) (%d)"
    if what == "submit" then last[task] = i else assert(not closed[task]) closed[task] = i end
  end
  assert(closed["0"] > last["0"] and closed["0"] < last["1"] and closed["1"] > last["1"], table.concat(steps, ", "))
end

-- ---- Policies ----------------------------------------------------------------------------------------------------

-- A policy's run, as the lines of a file; the message that it ends with. timeout: of its own, in seconds; what never
-- ends has less.
local BRIEF = 0.1
local function failing(body, needs, timeout)
  local base = os.tmpname()
  local path = base .. ".lua"
  support.paths[#support.paths + 1] = base
  local file = assert(io.open(path, "w"))
  file:write('local ms = require "msched"\nreturn ms.policy {name = "mine", ', needs or "", " run = function(env)\n",
             body, "\nend}\n")
  file:close()
  local _, failed = run({small, wide}, {policy = path, policy_timeout = timeout or 0.5, trials = 4})
  for _, task in ipairs(failed) do
    assert(task.error, body .. " does not fail")
    assert(task.ended_as.why == "error" and task.error:find("policy `mine` (" .. path .. ":", 1, true) == 1, task.error)
  end
  os.remove(path)
  return failed[1].error:sub(#("policy `mine` (" .. path) + 1), failed[1]
end
local function fails(body, line, words, needs, timeout)
  local message = failing(body, needs, timeout)
  assert(message:find(":" .. line .. "): ", 1, true) == 1 and message:find(words, 1, true), message)
end
fails('env:remaining()\nerror "oh"', 4, "oh")
fails("error {}", 3, "raised a table")
fails("local x = nil\nreturn x.y", 4, "attempt to index a nil value")
fails("while true do end", 3, "ran longer than 0.1 seconds without asking for measurements", nil, BRIEF)
fails("while true do pcall(error) end", 3, "ran longer than 0.1 seconds", nil, BRIEF)
fails("return 7", 2, "returned a number")
-- The run's seconds end a policy that would run on, in Lua and in C; that is no failure.
for _, body in ipairs {
  function() while true do end end,
  function() while true do pcall(error) end end,
  function(env)
    local analytical = ms.load "search.cost.analytical"
    local big = product("big", 4096, 4096, 4096)
    for _, sketch in ipairs(tune.open(big, env.target, {seed = 1}).sketches) do
      ms.estimator(big, sketch.trace:simplified(false), analytical.machine(env.target)):best {budget = 1 << 50,
        most = 10}
    end
    error "it went on"
  end,
} do
  local _, over =
    run({wide}, {seconds = 0.7, trials = 4, policy = {kind = "policy", name = "endless", needs = {}, run = body}})
  assert(over[1].ended_as.why == "seconds" and not over[1].error, over[1].error)
end
-- So do they what is measured of the machine before the search, which then is not known.
for _, name in ipairs {"limit", "beside"} do
  local begun = 0
  local _, over = run({wide}, {seconds = 0.7, trials = 4, [name] = function() begun = begun + 1; while true do end end})
  assert(begun == 1 and over[1].ended_as.why == "seconds" and not over[1].error and over[1][name] == nil, over[1].error)
end
do -- a text is why it ends
  local _, said = run({small}, {policy = {kind = "policy", name = "brief", needs = {},
                                          run = function() return "enough is known" end}})
  assert(said[1].ended_as.why == "policy" and said[1].ended_as.text == "enough is known")
end
fails("env:measure(7)", 3, "takes a list of candidates, as env:replay gives them, not a number")
fails("env:measure {{}}", 3, "item 1 is no candidate")
fails("coroutine.yield(env:replay(env:draw_jobs(2)))", 3, "yielded a table")
-- asked for in a coroutine of its own, and not yielded on
fails("coroutine.wrap(function() env:measure(env:replay(env:draw_jobs(2))) end)()", 2,
      "in a coroutine of its own and did not yield on")
fails("env.model:predict {}", 3, "the policy uses a model: declare it, needs = {model = true}")
fails("env:replay {7}", 3, "item 1 is no job, {trace = …}, but a number")
fails("env:replay {{}}", 3, "item 1 is no job, {trace = …}, but a table without a trace")
fails("env:replay(7)", 3, "takes a list of jobs, as env:draw_jobs gives them, not a number")
local _, kept = failing('env:measure(env:replay(env:draw_jobs(2)))\nerror "late"')
assert(kept.fastest and kept.done == 2, "what was measured before is lost")

-- What it asks for comes back, in its order; nothing is measured twice, and no more than there are trials.
local answers
ms.policy {name = "asking", run = function(env)
  local made = env:replay(env:draw_jobs(6))
  made[3] = made[1]
  answers = env:measure(made)
end}
m, tasks = run({small}, {policy = "asking", trials = 4})
assert(#m.asked[1] == 4 and tasks[1].ended_as.why == "trials")
m, tasks = run({small}, {policy = "asking", trials = 6})
assert(#m.asked[1] == 5 and #answers == 6 and tasks[1].ended_as.why == "policy")
local texts = {}
for i, answer in ipairs(answers) do texts[i] = answer.status end
assert(table.concat(texts, " ") == "measured measured repeated measured measured measured", table.concat(texts, " "))
assert(answers[2].seconds == m.times[1][2])
-- One that asks for nothing new again and again is ended, whatever it does.
ms.policy {name = "idle", run = function(env)
  local made = env:replay(env:draw_jobs(1))
  while true do env:measure(made) end
end}
_, tasks = run({small}, {policy = "idle", trials = 4})
assert(tasks[1].ended_as.why == "exhausted" and tasks[1].done == 1)
-- It is known by its name; another is not, and the message lists those that are.
local ok, message = pcall(run, {small}, {policy = "none_such"})
assert(not ok and message:find("there is no policy `none_such`; known are analytical, annealing, asking, coordinate, \z
                                evolutionary, grid, idle, mine, random, replay_function, replay_trace, and files", 1,
                               true), message)
ok, message = pcall(run, {small}, {scheduler = "none_such"})
assert(not ok and message:find("there is no scheduler `none_such`; known are gain, round-robin", 1, true), message)
for needs, words in pairs({["7"] = "`needs` is a table", ["{speed = true}"] = "what it needs is `features`, `model`, \z
                           `nearest` and `transfer`, not `speed`"}) do
  ok, message = pcall(load("local p = require('msched').policy {name = 'p', run = print, needs = " .. needs
                           .. "} return p", "=needs"))
  assert(not ok and message:find("needs:1: ms.policy p: " .. words, 1, true), message)
end

-- ---- Equal functions of other names --------------------------------------------------------------------------------

-- What was measured under one name is known under another, in a later run, which asks for what it would ask for had all
-- been measured under its own: nothing is measured twice, and the best is there; the store alone answers for it too.
local shared_path, first_named = new_path(), nil
local before = run({small}, {trials = 16, db = shared_path, policy = "replay_trace"})
collectgarbage()
local another = product("another", 64, 64, 64)
local under_another = run({another}, {trials = 16, db = shared_path, policy = "replay_trace",
                                      listen = function(e) first_named = e.event == "start" and e or first_named end})
assert(first_named.known == 16 and first_named.task == "another")
same(joined({}, under_another.asked[1]), table.move(run({another}, {policy = "replay_trace"}).asked[1], 17, 32, 1, {}),
     "under another name")
collectgarbage()
local third =
  run({product("third", 64, 64, 64)},
      {trials = 1, db = shared_path, listen = function(e) first_named = e.event == "start" and e or first_named end})
assert(first_named.known == 32 and #third.asked[1] == 1)
collectgarbage()
local simulated = tune.all({product("fourth", 64, 64, 64)},
                           {trials = 16, batch = 16, db = shared_path, policy = "replay_trace", simulate = true})
assert(simulated[1].fastest.seconds == math.min(table.unpack(before.times[1])), "the store alone")
collectgarbage()
assert(#run({wide}, {trials = 1, db = shared_path,
                     listen = function(e) first_named = e.event == "start" and e or first_named end}).asked[1] == 1
       and first_named.known == 0)

-- ---- How trials are counted --------------------------------------------------------------------------------------

-- A number of trials is the total of a run, over all commands that go on with it; where it had as many, so many more
-- are another's. Trials of other policies and seeds are not counted.
do
  local store, all = new_path(), run({small}, {policy = "random", trials = 60, batch = 8}).asked[1]
  local at, start, ended = 0, nil, nil
  local function goes_on(expected, options)
    collectgarbage() -- closes the store
    options.db, options.batch, options.policy = store, 8, options.policy or "random"
    options.listen = function(e) start, ended = e.event == "start" and e or start, e.event == "end" and e or ended end
    local asked = run({small}, options).asked[1]
    if options.policy == "random" and not options.seed then
      same(asked, table.move(all, at + 1, at + expected, 1, {}), "after " .. at)
    end
    assert(#asked == expected, string.format("%d trials, not %d", #asked, expected))
    if not options.seed then at = at + expected end
    return start.counted, ended.trials
  end
  local function check(counted, trials, a, b)
    assert(counted == a and trials == b, string.format("%d counted of %d", counted, trials))
  end
  local m = measurer {most = 11}
  assert(not pcall(tune.all, {small}, {measurer = m, batch = 8, trials = 20, db = store, policy = "random"}))
  at = 11
  local counted, trials = goes_on(9, {trials = 20})
  check(counted, trials, 11, 20)
  counted, trials = goes_on(7, {trials = 7}) -- it had 20: these are of a second
  check(counted, trials, 0, 7)
  counted, trials = goes_on(5, {trials = 12})
  check(counted, trials, 7, 12)
  counted, trials = goes_on(13, {total = 25}) -- of all tasks: there is one
  check(counted, trials, 12, 25)
  counted, trials = goes_on(6, {trials = 6, seed = 2})
  check(counted, trials, 0, 6)
  counted, trials = goes_on(30, {trials = 30, policy = "replay_trace"})
  check(counted, trials, 0, 30)
end

-- Of several tasks, the one that was stopped goes on alone.
do
  local store, both = new_path(), {policy = "random", trials = 12, batch = 8}
  both.db = store
  run({small}, both)
  collectgarbage()
  local m, tasks = run({small, wide}, both)
  assert(#m.asked[1] == 0 and #m.asked[2] == 12 and tasks[1].ended_as.text:find "other tasks of the run lack some",
         tasks[1].ended_as.text)
  collectgarbage()
  m = run({small, wide}, both)
  assert(#m.asked[1] == 12 and #m.asked[2] == 12)
end

-- ---- Records that do not read ------------------------------------------------------------------------------------

-- A store one of whose records has a trace that a later version wrote: it is left out and named, once; the rest is
-- used.
local path = new_path()
run({small}, {trials = 20, db = path})
collectgarbage()
local store = ms.store(path)
local damaged, readable = store:records()[2].id, 0 -- readable: of the first iteration
for _, r in ipairs(store:records()) do
  if r.candidate >> 20 == 1 and r.id ~= damaged then readable = readable + 1 end
end
local worse = setmetatable({records = function(_, filter)
  local list = store:records(filter)
  list[2].trace = "of a later version"
  return list
end}, {__index = function(_, name) return function(_, ...) return store[name](store, ...) end end})
local left_out, lessons, known = {}, 0, 0
m = run({small}, {trials = 4, store = worse, listen = function(e)
  if e.event == "left_out" then left_out[#left_out + 1] = e end
  if e.event == "learned" and e.known then lessons = lessons + e.lessons end
  if e.event == "start" then known = e.known end
end})
assert(#left_out == 1 and left_out[1].record == damaged
       and left_out[1].reason == "it begins as none of a trace's forms does", left_out[1].reason)
assert(known == 20 and #m.asked[1] == 4 and lessons == readable and store:check() == 0)
store:close()

-- ---- The log -----------------------------------------------------------------------------------------------------

-- From the events alone: what was asked for, measured, learned; elapsed never goes back.
local kinds, elapsed, asked_for, measured, taught = {}, 0, 0, 0, 0
run({small, wide}, {listen = function(e)
  kinds[e.event] = (kinds[e.event] or 0) + 1
  assert(e.task == "small" or e.task == "wide")
  assert(e.elapsed >= elapsed)
  elapsed = e.elapsed
  if e.event == "asked" then asked_for, measured = asked_for + e.candidates, measured + e.measured end
  if e.event == "learned" then taught = taught + e.lessons end
  if e.event == "end" then
    assert(e.trials == 32 and e.ended == "trials" and e.best and e.best_seconds > 0)
    assert(e.open_seconds > 0 and e.replay_seconds > 0 and e.policy_seconds > 0 and e.learn_seconds > 0
           and e.wait_seconds >= 0)
  end
end})
assert(kinds.start == 2 and kinds["end"] == 2 and kinds.trial == 64 and kinds.candidates > 4 and kinds.asked >= 4
       and kinds.learned == kinds.asked)
assert(measured == 64 and taught == 64 and asked_for >= 64)
remove_stores()
print "tasks: ok"
