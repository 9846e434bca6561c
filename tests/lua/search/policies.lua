-- The policies of the field and ours, with a measurer of the test's own: each finds what it is there to find, asks for
-- the same again with 1 and 2 jobs, and across stop and resume.  usage: msched policies.lua
local ms = require "msched"
local tune, ops, te = ms.load "search.tune", ms.ops, ms.te
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")
local measurer, new_path, run, same, mean = support.measurer, support.new_path, support.run, support.same, support.mean

local function product(m, n, k)
  local A, B = te.placeholder({m, k}, "float32", "A"), te.placeholder({k, n}, "float32", "B")
  return te.func("product", {A, B, ops.matmul(A, B)})
end
local small = product(64, 64, 64)

local drawn = run({small}, {policy = "random", trials = 96})
local usual = mean(drawn.times[1], 1, 96)
local function least(list) return math.min(table.unpack(list)) end

-- ---- The same candidates -----------------------------------------------------------------------------------------

for _, policy in ipairs {"random", "grid", "annealing", "coordinate", "analytical", "replay_function"} do
  local whole = run({small}, {policy = policy, jobs = 1})
  assert(#whole.asked[1] > 16, policy)
  same(run({small}, {policy = policy, jobs = 2}).asked[1], whole.asked[1], policy .. " again, with 2 jobs")
  local seen = {}
  for _, hash in ipairs(whole.asked[1]) do
    assert(not seen[hash], policy .. " asks twice")
    seen[hash] = true
  end
  -- stopped in the middle of the second iteration
  local path, m = new_path(), measurer {most = 21}
  assert(not pcall(tune.all, {small}, {measurer = m, batch = 16, trials = 48, db = path, policy = policy, jobs = 2}))
  collectgarbage() -- closes the store
  local rest = run({small}, {policy = policy, trials = #whole.asked[1], db = path})
  same(support.joined(table.move(m.asked[1], 1, 21, 1, {}), rest.asked[1]), whole.asked[1],
       policy .. ", stopped and resumed")
end
assert(table.concat(run({small}, {policy = "random", seed = 2}).asked[1])
       ~= table.concat(run({small}, {policy = "random"}).asked[1]), "the seed does not show")

-- ---- What each is there for --------------------------------------------------------------------------------------

-- A grid has every candidate, once: all that are drawn are among them.
local tiny = product(4, 4, 4)
local grid = run({tiny}, {policy = "grid", trials = 100000, batch = 64})
local of_grid = {}
for _, hash in ipairs(grid.asked[1]) do of_grid[hash] = true end
for _, hash in ipairs(run({tiny}, {policy = "random", trials = 40}).asked[1]) do
  assert(of_grid[hash], "the grid lacks a candidate")
end

-- Annealing comes to prefer what is fast; at first it does not.
local annealed = run({small}, {policy = "annealing", trials = 192})
assert(mean(annealed.times[1], 145, 192) < 0.6 * usual, "it does not cool")
assert(mean(annealed.times[1], 145, 192) < mean(annealed.times[1], 17, 64), "it is as cold at first")

-- Coordinate descent ends where nothing one step away is faster.
local descent, tasks = run({small}, {policy = "coordinate", trials = 700})
local steps, around = ms.load "search.policy.steps", 0
local best = tasks[1]:best(1)[1]
local pool = ms.pool(small, {jobs = 2, files = {}, target = "native"})
local jobs = steps.jobs(steps.neighbours(tasks[1], best.sketch))
for _, job in ipairs(jobs) do job.seed, job.candidate = 1, 1 end
for _, c in ipairs((pool:replay(jobs))) do
  if c then
    around = around + 1
    assert(support.time_of(ms.apply(small, c.trace)) >= best.seconds, "a step away is faster")
  end
end
assert(around > 5 and least(descent.times[1]) <= least(drawn.times[1]))

-- The first proposals are better than random candidates, before anything was measured; without gain it ends.
local function lines_time(sch) -- as long as many lines of the cache are touched
  local features, lines = ms.features(sch), 0
  for row = 1, #features do lines = lines + 2 ^ features(row, "buffer0_lines") end
  return lines * 1e-9
end
local proposed = run({small}, {policy = "analytical", trials = 16, measuring = {time = lines_time}})
usual = mean(run({small}, {policy = "random", trials = 48, measuring = {time = lines_time}}).times[1], 1, 48)
assert(mean(proposed.times[1], 1, 16) < 0.5 * usual, "proposals are no better than random candidates")

-- What comes first is a least of the estimate: no step away, places of blocks among them, is cheaper. The search around
-- the cheapest ends after some steps, which are enough on a machine with these caches, whatever this one has.
do
  local model = ms.load "search.cost.analytical"
  local machine_of = model.machine
  function model.machine(target)
    local machine = machine_of(target)
    machine.cache_bytes = {48 << 10, 1 << 20, 32 << 20}
    return machine
  end
  local X, v4 = te.placeholder({64, 48}, "float32", "X")
  local v4 = ms.target(support.that_runs("llvm -mcpu=x86-64-v4 -num-cores=2", "native -num-cores=2"))
  local softmax = te.func("softmax", {X, ops.softmax(X)})
  local _, tasks = run({softmax}, {policy = "analytical", trials = 1, target = v4.text})
  local machine, first, moved = model.machine(v4), tasks[1]:best(1)[1].sketch, 0
  local cost = ms.estimate(softmax, first, machine)
  for _, trace in ipairs(ms.load("search.policy.steps").neighbours(tasks[1], first)) do
    local ok, sch = pcall(ms.apply, softmax, trace, {repair = true})
    assert(not ok or ms.estimate(softmax, sch.trace, machine) >= cost, "a step away is cheaper")
    for i, d in ipairs(first:draws()) do
      if d.kind == "SampleComputeLocation" and trace:draws()[i].decision[1] ~= d.decision[1] then moved = moved + 1 end
    end
  end
  assert(moved >= 4, "blocks stay where they are")
  model.machine = machine_of
end

local function flat_time() return 1e-3 end
-- without a number
local flat, ended = run({small}, {policy = "analytical", trials = false, measuring = {time = flat_time}})
assert(ended[1].ended_as.why == "policy" and #flat.asked[1] == 16 + 8 + 8, #flat.asked[1])
assert(ended[1].ended_as.text:find "^2 rounds in a row gave nothing faster by 2 %%; a number of trials",
       ended[1].ended_as.text)
do -- a space of one schedule
  local A = te.placeholder({7}, "float32", "A")
  local _, only = run({te.func("only", {A, ops.relu(A)})}, {policy = "analytical", trials = false})
  assert(only[1].done == 1 and only[1].ended_as.text
         == "policy `analytical` asked for no more, and the space gave nothing new: 1 schedule of it is known; rules \z
             of your own would add others", only[1].ended_as.text)
  _, only = run({te.func("only", {A, ops.relu(A)})}, {policy = "analytical", trials = 20})
  assert(only[1].ended_as.text == "the space gave nothing new three times in a row: 1 schedule of it is known; rules \z
                                   of your own would add others", only[1].ended_as.text)
end
flat, ended = run({small}, {policy = "analytical", trials = 40, measuring = {time = flat_time}})
assert(ended[1].ended_as.why == "trials" and #flat.asked[1] == 40, "those that were asked for are had")
do -- what it looks around grows without gain: of a run that goes on again too
  local path, m = new_path(), measurer {most = 29, time = flat_time}
  assert(not pcall(tune.all, {small}, {measurer = m, trials = 40, db = path, policy = "analytical"}))
  collectgarbage() -- closes the store
  local rest = run({small}, {policy = "analytical", trials = 40, db = path, measuring = {time = flat_time}})
  same(support.joined(table.move(m.asked[1], 1, 29, 1, {}), rest.asked[1]), flat.asked[1],
       "without gain, stopped and resumed")
end
_, ended = run({small}, {policy = "analytical", measuring = {time = function(sch)
  return 0.99 * ms.load "search.scheduler".bound(small, ms.target "native") + support.time_of(sch) * 1e-9
end}})
assert(ended[1].ended_as.why == "policy" and ended[1].done == 16, "at the bound it ends")
assert(ended[1].ended_as.text == "its best reaches 95 % of the roofline: no schedule is much faster",
       ended[1].ended_as.text)
do -- and where the machine was measured to reach a tenth of it, there
  local bound = ms.load "search.scheduler".bound(small, ms.target "native")
  local function slow_time(sch) return 10.1 * bound + support.time_of(sch) * 1e-9 end
  local limit = {name = "float32 vectors", of = "operations", seconds = 10 * bound}
  _, ended = run({small}, {policy = "analytical", limit = function() return limit end, measuring = {time = slow_time}})
  assert(ended[1].ended_as.why == "policy" and ended[1].done == 16, "at the machine's measured peak it ends")
  local glances = 0 -- a glance at a busy machine is not believed: the next shows that there is more
  _, ended = run({small}, {policy = "analytical", trials = 24, measuring = {time = slow_time},
    limit = function(_, _, again)
    glances = glances + 1
    assert(again == nil or again == limit)
    return again and {name = limit.name, of = limit.of, seconds = 5 * bound} or limit
  end})
  assert(ended[1].ended_as.why == "trials" and glances == 2, glances)
  _, ended = run({small}, {policy = "analytical", trials = 24, measuring = {time = slow_time}})
  assert(ended[1].ended_as.why == "trials", "which is not known here")
end
local tiles = {} -- and they are spread: over the innermost parts of their tiles
for _, sch in ipairs(proposed.made[1]) do
  local innermost = {}
  for _, d in ipairs(sch.trace:draws()) do
    if #d.decision > 1 then innermost[#innermost + 1] = d.decision[#d.decision] end
  end
  tiles[table.concat(innermost, " ")] = true
end
assert(#ms.sorted_keys(tiles) >= 6, #ms.sorted_keys(tiles))

-- What one step away from the fastest is asked for next, and the model has its say: reversed, it is worse.
local learning = run({small}, {policy = "analytical", trials = 64})
assert(mean(learning.times[1], 33, 64) < 0.7 * mean(learning.times[1], 1, 16), "it does not learn")
local climbing = run({small}, {policy = "analytical", trials = 64, model = "random"})
assert(least(learning.times[1]) <= least(climbing.times[1]), "the model shows in nothing")

-- On a target that nothing is estimated for it is evolution.
local estimates = ms.load("rules.targets").llvm.analytical
ms.load("rules.targets").llvm.analytical = nil
same(run({small}, {policy = "analytical"}).asked[1], run({small}, {policy = "evolutionary"}).asked[1],
     "without estimates")
ms.load("rules.targets").llvm.analytical = estimates

-- The fastest of the nearest shapes are measured first; of other functions, nothing is.
local path, near = new_path(), product(64, 64, 32)
run({product(16, 64, 64)}, {policy = "random", trials = 8, db = path})
local known = run({near}, {policy = "random", trials = 24, db = path})
local fastest, trace = math.huge, nil
for i, sch in ipairs(known.made[1]) do
  if known.times[1][i] < fastest then fastest, trace = known.times[1][i], sch.trace:simplified(false) end
end
collectgarbage() -- closes the store
local seeded = run({small}, {policy = "analytical", trials = 12, db = path})
local asked = table.concat(seeded.asked[1], " ", 1, 4)
local wanted =
  ms.pool(small, {jobs = 1, files = {}, target = "native"}):replay {{trace = trace, seed = 1, candidate = 0}}
assert(asked:find(wanted[1].hash, 1, true), "the nearest shape's fastest is not among the first")
local other = new_path()
run({near}, {policy = "random", trials = 8, db = other})
collectgarbage()
same(run({small}, {policy = "random", trials = 12, db = other}).asked[1],
     run({small}, {policy = "random", trials = 12}).asked[1], "a policy that does not ask for it")

-- Opening the space again reaches what a rule decides by a number that it drew; replaying its traces does not.
local function decided_by_draw(sch)
  local i = sch:get_loops(sch:get_sblock "C")
  local outer = sch:split(i, {sch:sample_perfect_tile(i, 2, 64)})
  local draws = sch.trace:draws()
  if draws[#draws].decision[1] % 8 == 0 then sch:parallel(outer) end
end
local function kinds_of(policy)
  local parallel, serial = false, false
  for _, sch in ipairs(run({small}, {policy = policy, trials = 6}).made[1]) do
    if sch:script():find("T.parallel", 1, true) then parallel = true else serial = true end
  end
  return (parallel and 1 or 0) + (serial and 1 or 0)
end
ms.space {name = "decided by a draw", apply = decided_by_draw}
assert(kinds_of "replay_function" == 2 and kinds_of "replay_trace" == 1)
ms.registered.space = {}

-- The example's climbs.
local climbed = run({small}, {policy = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")
                              .. "../../../lua/examples/policy.lua", trials = 128})
assert(mean(climbed.times[1], 65, 128) < 0.8 * mean(climbed.times[1], 1, 16), "it does not climb")

-- Where each candidate is ended early, none is the best, and it is said why.
local _, ended = run({small}, {policy = "random", trials = 4, measuring = {hopeless = true}})
assert(not ended[1].fastest and tune.why(ended[1]):find("took far longer than the function as it is written: 4 ", 1,
                                                        true), tune.why(ended[1]))

support.remove_stores()
print "policies: ok"

-- What is raised by what a policy called is text to whoever catches it.
local raised, foreign = pcall(msched.load "search.policy".raise_foreign, "postprocessor `bad`: it fails")
assert(not raised and tostring(foreign) == "postprocessor `bad`: it fails")
