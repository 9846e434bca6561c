-- Cost models in tuning: by name, from a file that one was saved to, of a user's; and what goes wrong with them.
-- usage: models.lua
local ms = require "msched"
local te, tune, models = ms.te, ms.load "search.tune", ms.load "search.models"
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")

local A, B = te.placeholder({32, 32}, "float32", "A"), te.placeholder({32, 32}, "float32", "B")
local k = te.reduce_axis(32, "k")
local gemm =
  te.func("gemm", {A, B, te.compute({32, 32}, function(i, j) return te.sum(A[{i, k}] * B[{k, j}], k) end, "C")})

local path = os.tmpname()
local function write(text)
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
end
local function read()
  local file <close> = assert(io.open(path))
  return file:read "a"
end

-- ---- Candidates with times that are made up ----------------------------------------------------------------------

local opened = tune.open(gemm, ms.target "native", {seed = 1})
local pool = ms.pool(gemm, {jobs = 2, files = {}, target = "native"})
local candidates = {}
for _, c in ipairs(pool:replay(jobs_of(opened, 120), true)) do
  if c then
    local cost = 1
    for row = 1, #c.features do cost = cost + c.features(row, "loops") + 2 * c.features(row, "vectorized_length") end
    c.seconds = cost * 1e-4
    candidates[#candidates + 1] = c
  end
end
assert(#candidates > 60, #candidates)

local function same(x, y)
  assert(#x == #y)
  for i = 1, #x do assert(x[i] == y[i], i) end
end

-- ---- Saved and loaded --------------------------------------------------------------------------------------------

local first, second = models.open("xgboost", 1), models.open("xgboost", 1)
first:update(candidates)
for i = 1, #candidates, 10 do second:update(table.move(candidates, i, math.min(i + 9, #candidates), 1, {})) end
same(first:predict(candidates), second:predict(candidates))
first:save(path)
local loaded, why = models.open(path, 1)
assert(why == nil)
same(first:predict(candidates), loaded:predict(candidates))

-- A file that cannot be used here is refused by name, and the model is a new one: tuning goes on.
local text = read()
write((text:gsub('"msched_model":%d+', '"msched_model":77')))
local fresh, refused = models.open(path, 1)
assert(refused:find(path, 1, true) and refused:find "version 77", refused)
same(fresh:predict(candidates), ms.model("xgboost", 1):predict(candidates))
local heard
local env = tune.run(gemm, {trials = 2, db = path .. ".db", model = path, policy = "evolutionary", jobs = 1,
  listen = function(e)
  if e.event == "start" then heard = e.refused_model end
end})
assert(env.done == 2 and heard == refused, heard)
local ok, message = pcall(models.open, path .. ".none", 1)
assert(not ok and message:find "No such file", message)
ok, message = pcall(models.open, "oracle", 1)
assert(not ok and message:find "there is no cost model `oracle`", message)

-- ---- A user's ----------------------------------------------------------------------------------------------------

-- In place of xgboost: it sees every training sample and every candidate.
local seen = {lessons = 0, candidates = 0}
ms.model {
  name = "mine",
  update = function(self, lessons)
    self.count = (self.count or 0) + #lessons
    seen.lessons, seen.seed = self.count, self.seed
  end,
  predict = function(_, list)
    local scores = {}
    for i, c in ipairs(list) do scores[i] = -c.features(1, "loops") end
    seen.candidates = seen.candidates + #list
    return scores
  end,
}
env = tune.run(gemm, {trials = 4, db = path .. ".db", model = "mine", policy = "evolutionary", jobs = 1, seed = 3})
assert(env.done == 4 and seen.lessons >= 4 and seen.candidates > 0 and seen.seed == 3, seen.lessons)

-- One that fails in a run is named, and the search goes on without it; where it is required, its task ends.
for _, broken in ipairs {"update", "predict"} do
  local function failing(required)
    local definition =
      {name = "fails", required = required, update = function() end, predict = function(_, list) return list end}
    definition[broken] = function() error "oh" end
    return ms.model(definition)
  end
  local left
  env = tune.run(gemm, {trials = 4, batch = 2, db = path .. ".db", model = failing(false), policy = "evolutionary",
    jobs = 1, seed = 4, listen = function(e)
    if e.event == "model_left" then left = (left or "") .. e.reason end
  end})
  assert(env.done == 4 and left:find("^model `fails` .*models.lua:%d+: oh; mend it") and not left:find("oh.*oh"), left)
  local done, err = pcall(tune.run, gemm, {trials = 4, batch = 2, db = path .. ".db", model = failing(true),
                                           policy = "evolutionary", jobs = 1, seed = 5})
  assert(not done and tostring(err):find "^model `fails` .*models.lua:%d+: oh", err)
end

-- What goes wrong in a file is named with its place.
local lua = path .. ".lua"
local function wrong(body, ...)
  local file <close> = assert(io.open(lua, "w"))
  file:write(body)
  file:close()
  local done, err = pcall(function()
    local m = models.open(lua, 1)
    m:update(candidates)
    return m:predict(candidates)
  end)
  assert(not done, "no error: " .. body)
  for _, words in ipairs {...} do assert(tostring(err):find(words, 1, true), err) end
end
local function model(predict)
  return 'return require "msched".model {name = "bad", update = function() end,\n predict = ' .. predict .. "}"
end
ms.rule_timeout(0.2)
wrong(model 'function(self, list)\n error "oh" end', "model `bad`", lua .. ":3:", "oh")
wrong(model "function(self, list)\n while true do end end", "model `bad`", lua .. ":2", "ran longer", "line 3")
wrong(model "function() return 7 end", "model `bad`", lua .. ":2", "predicted a number")
wrong(model "function() end", "predicted a nil", lua .. ":2")
wrong(model "function(self, list) return {1} end", "predicted 1 scores for")
wrong(model "function(self, list) local t = {} for i = 1, #list do t[i] = i == 3 and 0/0 or 1 end return t end", "NaN",
      "candidate 3")
wrong(model "function(self, list) local t = {} for i = 1, #list do t[i] = i == 3 and '1' or 1 end return t end",
      "a string for candidate 3")
wrong("return 7", "returns no model", lua)
wrong("return {", lua .. ":1")
wrong('return require "msched".model {name = "half", predict = function() end}', "`update` is a function")
wrong('return require "msched".model {name = "bad", predict = function() end,\n update = function() error "no" end}',
      "model `bad`", lua .. ":2:", "no")

-- What it does to the list that it is given, and to what is in it, is its own.
do
  local file <close> = assert(io.open(lua, "w"))
  file:write(model [[function(self, list)
    local scores = {}
    for i = #list, 1, -1 do scores[i], list[i].hash, list[i] = i, "x", nil end
    return scores
  end]])
  file:close()
  local m, hashes, count = models.open(lua, 1), {}, #candidates
  for i, c in ipairs(candidates) do hashes[i] = c.hash or false end
  local scores = m:predict(candidates)
  assert(count > 0 and #scores == count and #candidates == count)
  for i, c in ipairs(candidates) do assert((c.hash or false) == hashes[i] and scores[i] == i) end
end

-- ---- What other functions teach -------------------------------------------------------------------------------------

-- A successor says what the model says that it starts from, and leaves that as it is; it learns what differs.
local from, taught = first:successor(7), {}
same(first:predict(candidates), from:predict(candidates))
for i, c in ipairs(candidates) do taught[i] = {features = c.features, seconds = 1e-6 / c.seconds} end
local before = first:predict(candidates)
from:update(taught)
local learned, moved = from:predict(candidates), 0
for i, score in ipairs(learned) do moved = math.max(moved, math.abs(score - before[i])) end
assert(moved > 0.1)
same(first:predict(candidates), before)
-- trees are summed in another order
for i, score in ipairs(from:successor(8):predict(candidates)) do assert(math.abs(score - learned[i]) < 1e-5, i) end

-- By rank the order of times counts alone.
local function ranked(f, by_rank)
  local model, samples = ms.model("xgboost", 1, by_rank), {}
  for i, c in ipairs(candidates) do samples[i] = {features = c.features, seconds = f(c.seconds), task = 3} end
  model:update(samples)
  return model
end
local function squared(seconds) return seconds ^ 2 end
local function itself(seconds) return seconds end
local rank_model = ranked(itself, true)
local by_rank = rank_model:predict(candidates)
same(by_rank, ranked(squared, true):predict(candidates))
local differs = 0
for i, score in ipairs(ranked(squared):predict(candidates)) do
  differs = math.max(differs, math.abs(score - by_rank[i]))
end
assert(differs > 0.01)

-- Runs on a device that answers at once; what they say of a start from others' records, and what they ask for first.
local transfer, simulated = ms.load "search.transfer", ms.load "search.fleet.simulated"
local db = path .. ".transfer.db"
local function product(m)
  return assert(loadfile(arg[0]:match "^.*/" .. "../../../lua/examples/gemm.lua"))(m, 16, 16)[1]
end
local function device()
  local made = simulated.open(0)
  function made.next(self, wait)
    local r = simulated.next(self, wait)
    if r then r.measured, r.reason, r.build_seconds = true, "", 0 end
    return r
  end
  return made
end
local function asked_of(m, options)
  local all, reported, asked =
    {db = db, trials = 24, batch = 24, policy = "evolutionary", jobs = 1, transfer = true, measurer = device()}, nil,
    nil
  for key, value in pairs(options or {}) do all[key] = value end
  function all.listen(e)
    if e.event == "transferred" then reported = e.functions .. " " .. e.samples end
    if e.event == "asked" and not asked then asked = table.concat(e.hashes, " ") end
  end
  tune.run(product(m), all)
  return reported, asked
end
assert(asked_of(16) == nil, "an empty store teaches nothing")
local fresh_path = path .. ".fresh.db"
local _, untaught = asked_of(32, {db = fresh_path})
local reported, asked = asked_of(32)
assert(reported == "1 24" and asked ~= untaught, reported)
local store = ms.store(db, {read_only = true})
for _, option in ipairs {{transfer = false}, {model = "random"}} do
  option.trials, option.seed, option.db, option.transfer_from = 1, 9, fresh_path, store
  assert(asked_of(32, option) == nil)
end
for words, option in pairs {["does not go with the policy `random`"] = {policy = "random"},
                            ["deterministic does not go with transfer"] = {deterministic = true}} do
  option.db = fresh_path
  local taken, why_not = pcall(asked_of, 32, option)
  assert(not taken and tostring(why_not):find(words, 1, true), why_not)
end
-- what others' records taught ranks until the task's own results have
local ranks = {}
ms.policy {name = "watch", needs = {features = true, model = true, transfer = true}, run = function(env)
  local candidates = env:replay(env:draw_jobs(24))
  for _, most in ipairs {15, 1, 8} do
    ranks[#ranks + 1] = {others = env:is_ranked_by_others(), scores = env.model:predict(candidates)}
    env:measure(env:unmeasured(candidates, most))
  end
  ranks[#ranks + 1] = {others = env:is_ranked_by_others(), scores = env.model:predict(candidates)}
end}
local seen = asked_of(32, {policy = "watch", trials = 40, db = path .. ".watch.db", transfer_from = store, seed = 3})
assert(seen == "1 24", seen)
assert(#ranks == 4, #ranks)
assert(ranks[1].others and ranks[2].others and not ranks[3].others and not ranks[4].others)
same(ranks[1].scores, ranks[2].scores)
local changed = 0
for i, score in ipairs(ranks[3].scores) do changed = math.max(changed, math.abs(score - ranks[2].scores[i])) end
assert(changed > 0.01)
ranks = {}
local unreported = asked_of(32, {policy = "watch", trials = 40, db = path .. ".watch.db.2", transfer = false})
assert(unreported == nil and not ranks[1].others)
-- the same again, and where the run goes on: what it and others measured since teaches it nothing more
local other = path .. ".other.db"
local again_reported, again = asked_of(32, {db = other, transfer_from = store})
assert(again_reported == "1 24" and again == asked, again_reported)
local tasks = {{func = product(32), workload = store:workload_id(product(32)), target = ms.target "native", seed = 1}}
local function counts_of(tasks_, from_)
  local _, samples, functions = transfer.model(tasks_[1], tasks_, from_ or store, 1)
  return samples and functions .. " " .. samples
end
assert(counts_of(tasks) == "1 24")
-- what does far less with each byte is taught nothing by products
local relu = {func = ms.ops.func("relu", {"64x64"}), target = tasks[1].target, seed = 1}
assert(transfer.model(relu, {relu}, store, 1) == nil)
-- nor does one whose elements are found by remainders
local modular = {func = ms.from_script(product(32):script():gsub("A%[v_i, v_k%]", "A[(v_i * 3) %% 32, v_k]")),
                 target = tasks[1].target, seed = 1}
assert(modular.func:hash() ~= product(32):hash() and transfer.model(modular, {modular}, store, 1) == nil)
tasks[1].first_record = 0 -- it began before all of them
assert(counts_of(tasks) == nil)
tasks[1].first_record = nil
tasks[2] = {func = product(16), target = tasks[1].target, seed = 1} -- a function of the run's is none of the others,
                                                                    -- whatever its name
assert(counts_of(tasks) == nil)
tasks[2] = nil
local function with_targets(text) -- the same store, of another device
  return {tasks = function()
    local list = store:tasks()
    for _, t in ipairs(list) do t.target = t.target:gsub("%-mcpu=%S+", text) end
    return list
  end, get_workload = function(_, id) return store:get_workload(id) end,
  records = function(_, of) return store:records {workload = of.workload, first = of.first, step = of.step} end}
end
assert(counts_of(tasks, with_targets "-mcpu=%0x") == nil
       and counts_of(tasks, with_targets "%0 -num-cores=77") == "1 24")
transfer.LEAST = 25
assert(counts_of(tasks) == nil)
store:close()
for _, file in ipairs {db, fresh_path, other} do
  os.remove(file)
  os.remove(file .. "-lock")
end

for _, file in ipairs {path, lua, path .. ".db", path .. ".db-lock"} do os.remove(file) end
print "models: ok"
