-- Deterministic runs ask for the same candidates in the same order whatever comes of them: times by chance, failures,
-- results in any order, 1 and 2 jobs, a store that has some of them, a run that was stopped; each policy, a CPU and a
-- GPU, several functions,
-- a function that is cut; what would make them depend on time is refused.  usage: msched determinism.lua
local ms = require "msched"
local te = ms.te
local tune = ms.load "search.tune"

local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")
local same = support.same

local function product(name, m, n, k)
  local A, B, r = te.placeholder({m, k}, "float32", "A"), te.placeholder({k, n}, "float32", "B"), te.reduce_axis(k, "k")
  return te.func(name, {A, B, te.compute({m, n}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")})
end
local small, wide = product("small", 64, 64, 64), product("wide", 32, 128, 64)
local function softmax()
  local X = te.placeholder({32, 64}, "float32", "X")
  return te.func("softmax", {X, ms.ops.softmax(X)})
end

-- A measurer without sense: times by chance, of a seed of its own; every fifth fails, every seventh is censored, and
-- results come in any order. most: it breaks after so many.
local function mad_measurer(seed, most)
  local stream, given = ms.stream(seed, 1, 1), 0
  local m = support.measurer {time = function() return 1e-6 * (1 + stream:unit()) end}
  function m:next()
    if most and given >= most then error("the measurer is gone", 0) end
    given = given + 1
    local r = table.remove(self.queue, stream:below(#self.queue) + 1)
    local luck = stream:below(35)
    if luck % 5 == 0 then return {task = r.task, id = r.id, outcome = "crashed", reason = "by chance", seconds = 0} end
    if luck % 7 == 0 then r.measured, r.censored, r.outcome = false, true, "censored" end
    return r
  end
  return m
end

local runs = 0
-- Hashes in the order in which they were asked for, by task; the tasks.
local function asked(functions, options, most)
  runs = runs + 1
  local all, lists =
    {measurer = mad_measurer(runs, most), batch = 16, trials = 40, db = support.new_path(), deterministic = true}, {}
  for name, value in pairs(options) do all[name] = value end
  function all.listen(e)
    lists[e.task] = lists[e.task] or {}
    if e.event == "asked" then for _, hash in ipairs(e.hashes) do table.insert(lists[e.task], hash) end end
  end
  local ok, tasks = pcall(tune.all, functions, all)
  collectgarbage() -- closes the store
  assert(ok or most and tasks == "the measurer is gone", tostring(tasks))
  return lists, ok and tasks
end

local POLICIES =
  {"analytical", "evolutionary", "coordinate", "annealing", "random", "grid", "replay_trace", "replay_function"}
for _, policy in ipairs(POLICIES) do
  local first, tasks = asked({small}, {policy = policy, jobs = 1})
  assert(#first.small == 40 and tasks[1].done == 40, policy .. ": " .. #first.small)
  local distinct = {}
  for _, hash in ipairs(first.small) do
    assert(not distinct[hash], "a module twice")
    distinct[hash] = true
  end
  same(asked({small}, {policy = policy, jobs = 2}).small, first.small, policy .. ", 2 jobs")
  -- A store that has what another seed, a run that was not deterministic, and one that was stopped measured.
  local db = support.new_path()
  pcall(tune.all, {small}, {measurer = mad_measurer(100), batch = 16, trials = 12, db = db, policy = policy})
  collectgarbage()
  asked({small}, {policy = policy, db = db}, 21)
  same(asked({small}, {policy = policy, db = db, jobs = 2}).small, first.small, policy .. ", gone on")
  same(asked({small}, {policy = policy, db = db}).small, first.small, policy .. ", all known")
  -- What is enumerated needs no seed: all of the grid, and the model's proposals for so small a space.
  if policy ~= "grid" and policy ~= "analytical" then
    assert(table.concat(asked({small}, {policy = policy, seed = 2}).small) ~= table.concat(first.small),
           policy .. ": the seed does not show")
  end
end

-- What is best is what was measured so, and what the store has first.
do
  local db = support.new_path()
  local _, tasks = asked({small}, {db = db})
  local store = ms.store(db)
  assert(tasks[1].fastest.full_id == store:records({workload = tasks[1].workload})[1].id
         and tasks[1]:fastest_few(1)[1].id == tasks[1].fastest.id)
  store:close()
end

-- A GPU, whose candidates no device measures here, and functions whose candidates have no estimate.
for _, each in ipairs {{{small}, "cuda -arch=sm_80"}, {{softmax()}, "llvm -mcpu=x86-64-v3 -num-cores=4"},
                       {{softmax()}, "cuda -arch=sm_70"}} do
  for _, policy in ipairs {"analytical", "evolutionary", "annealing"} do
    local name, options = each[1][1]:name(),
      {policy = policy, target = each[2], trials = 12, jobs = 1, simulate = each[2]:find "^cuda" ~= nil}
    local first = asked(each[1], options)[name]
    options.jobs = 2
    assert(#first > 2, policy .. " for " .. each[2])
    same(asked(each[1], options)[name], first, policy .. " for " .. each[2])
  end
end

-- Several functions with trials together; a function that is cut, with its groups.
for _, policy in ipairs {"analytical", "evolutionary"} do
  local first, again = asked({small, wide, softmax()}, {policy = policy, total = 50}),
    asked({small, wide, softmax()}, {policy = policy, total = 50, jobs = 2})
  assert(#first.small + #first.wide + #first.softmax == 50)
  for _, name in ipairs {"small", "wide", "softmax"} do same(again[name], first[name], policy .. ": " .. name) end
end
local chain = loadfile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../reported/blocks/chain.lua")("6")
do
  local func = chain[1]
  local first, again = asked({func}, {trials = 24}), asked({func}, {trials = 24, jobs = 2})
  local count = 0
  for name, list in pairs(first) do
    count = count + #list
    same(again[name] or {}, list, name)
  end
  assert(count == 24 and #first[func:name()] > 0, count)
end

-- Refused: what depends on time.
for name, value in pairs {seconds = 3, policy_timeout = 3, skip_failing = true, failures = 8, scheduler = "gain"} do
  local ok, message = pcall(tune.all, {small},
                            {measurer = mad_measurer(1), db = support.new_path(), deterministic = true, [name] = value})
  assert(not ok and message:find("deterministic does not go with " .. name .. ": ", 1, true), message)
end

-- Without it, the same seed and the same results give the same candidates, and other times others.
local function plain(seed)
  return support.run({small}, {policy = "evolutionary", trials = 40, measuring = seed and {time = function(sch)
    return 1e-6 * (1 + ms.stream(seed, 1, tonumber(sch:hash():sub(1, 6), 16)):unit())
  end}}).asked[1]
end
same(plain(1), plain(1), "the same results")
assert(table.concat(plain(1)) ~= table.concat(plain(2)), "the results do not show")

support.remove_stores()
print "determinism: ok"
