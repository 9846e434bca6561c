-- Without tuning: no kernel runs, the first proposal that can be built is stored as not measured, tuning takes no
-- notice of
-- it, and measured records come before it.  usage: untuned.lua
local ms = require "msched"
local te, ops, tune = ms.te, ms.ops, ms.load "search.tune"
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")

local A, B = te.placeholder({64, 64}, "float32", "A"), te.placeholder({64, 64}, "float32", "B")
local func = te.func("product", {A, B, ops.matmul(A, B)})
local none = setmetatable({}, {__index = function(_, name) error("the measurer is asked to " .. name) end})

local path = support.new_path()
local function untuned(options)
  local all = {no_tune = true, db = path, measurer = none}
  for name, value in pairs(options or {}) do all[name] = value end
  local tasks = tune.all({func}, all)
  collectgarbage() -- closes the store
  return tasks[1]
end
local function records()
  local store = ms.store(path)
  local list = store:records {workload = store:put_workload(func)}
  store:close()
  return list
end

-- ---- What is stored ----------------------------------------------------------------------------------------------

local first = untuned()
assert(first.ended_as.why == "untuned" and first.done == 0 and first.fastest.id and not first.fastest.seconds)
local list = records()
assert(#list == 1 and list[1].status == "unmeasured" and list[1].id == first.fastest.full_id)
assert(untuned({jobs = 1}).fastest.full_id == first.fastest.full_id and #records() == 1, "the same again, with one job")

-- It is cheaper by estimate than what is drawn, and computes the same.
local target = ms.target "native"
local machine = ms.load("search.cost.analytical").machine(target)
local cost = ms.estimate(func, first.fastest.trace:simplified(false), machine)
for i, s in ipairs(tune.open(func, target, {seed = 7}).sketches) do
  assert(ms.estimate(func, s.trace:simplified(false), machine) >= cost, "a drawn one is cheaper: sketch " .. i)
end
local best = ms.tune(func, {no_tune = true, db = path})
assert(best.seconds == nil and best.id == first.fastest.id)
best:build():check()
collectgarbage()

-- ---- Copies for dot products go by vectors, by estimate: products of few rows have such ----------------------------

do
  local P, Q = te.placeholder({16, 512}, "bfloat16", "P"), te.placeholder({512, 256}, "bfloat16", "Q")
  local k = te.reduce_axis(512, "k")
  local thin = te.func("thin", {P, Q, te.compute({16, 256}, function(i, j)
    return te.sum(te.cast(P[{i, k}], "float32") * te.cast(Q[{k, j}], "float32"), k)
  end, "R")})
  local task = tune.all({thin}, {no_tune = true, db = support.new_path(), measurer = none,
                                 target = "llvm -mcpu=znver4 -num-cores=1"})[1]
  assert(task.fastest.trace:text():find("i1 // 2", 1, true), "no dot products")
end
collectgarbage()

-- ---- It goes with the store -----------------------------------------------------------------------------------------

local text, other = os.tmpname(), support.new_path()
local store = ms.store(path)
store:export(text)
store:close()
store = ms.store(other)
store:import(text)
os.remove(text)
local copied = store:records {workload = store:put_workload(func)}
assert(#copied == 1 and copied[1].status == "unmeasured")
store:close()

-- ---- Tuning: as if it were not there, and then it is not the best ---------------------------------------------------

local m, tasks = support.run({func}, {policy = "random", trials = 12, db = path})
support.same(m.asked[1], support.run({func}, {policy = "random", trials = 12}).asked[1],
             "beside a record that is not measured")
assert(tasks[1].recorded == 0)
local fastest = tasks[1].fastest.full_id
collectgarbage()
local known = untuned()
assert(known.fastest.full_id == fastest and known.fastest.seconds, "what was measured comes first")

-- A proposal is measured as any other candidate: its record says so then.
local again = support.new_path()
path = again
local proposed = untuned()
ms.policy {name = "the proposal",
           run = function(env) env:measure(env:replay {{trace = proposed.fastest.trace:simplified(false)}}) end}
support.run({func}, {policy = "the proposal", trials = 1, db = again})
collectgarbage()
local both = records()
assert(#both == 1 and both[1].id == proposed.fastest.full_id and both[1].status == "measured")

-- ---- Where nothing is estimated, something is drawn -----------------------------------------------------------------

local targets = ms.load "rules.targets"
local estimates = targets.llvm.analytical
targets.llvm.analytical, path = nil, support.new_path()
assert(untuned().fastest.id)
targets.llvm.analytical = estimates

-- ---- What is over before threads have begun runs on one: products too, alone and in a row ---------------------------

local function chain(n, count)
  local X, W = te.placeholder({n, n}, "float32", "X"), te.placeholder({n, n}, "float32", "W")
  local last = X
  for i = 1, count do
    local before, k = last, te.reduce_axis(n, "k" .. i)
    last = te.compute({n, n}, function(a, b) return te.sum(before[{a, k}] * W[{k, b}], k) end, "T" .. i)
  end
  return te.func("chain", {X, W, last})
end
for _, case in ipairs {{16, 1, false}, {32, 3, false}, {16, 12, false}, {512, 1, true}} do
  local one = tune.all({chain(case[1], case[2])},
                       {no_tune = true, db = support.new_path(), measurer = none, target = "x86-64-v3 -num-cores=4"})
  local whole = one[#one]
  local text = ms.apply(whole.func, whole.fastest.trace):func():script()
  assert((text:find("T.parallel(", 1, true) ~= nil) == case[3],
         string.format("%d products of %d: %s", case[2], case[1], text))
end

-- ---- Dot products of bfloat16 are slow beside AMX: four rows are multiplied by its tiles ----------------------------

for cpu, by_tiles in pairs {sapphirerapids = true, znver5 = false} do
  local rows = ops.func("matmul", {4, 1024, 1024, dtype = "bfloat16", constant = true})
  local found = ms.auto_schedule(rows, {target = "llvm -mcpu=" .. cpu .. " -num-cores=1"})
  assert((found.trace:text():find("amx_16x16x32_bf16", 1, true) ~= nil) == by_tiles, cpu)
end

support.remove_stores()
print "untuned: ok"
