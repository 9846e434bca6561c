-- Cost models in tuning: by name, from a file that one was saved to, of a user's; and what goes wrong with them.
-- usage: models.lua
local ms = require "msched"
local te, tune, models = ms.te, ms.load "search.tune", ms.load "search.models"
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")

local A, B = te.placeholder({32, 32}, "float32", "A"), te.placeholder({32, 32}, "float32", "B")
local k = te.reduce_axis(32, "k")
local gemm = te.func("gemm", {A, B, te.compute({32, 32}, function(i, j) return te.sum(A[{i, k}] * B[{k, j}], k) end, "C")})

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
local env = tune.run(gemm, {trials = 2, db = path .. ".db", model = path, policy = "evolutionary", jobs = 1, listen = function(e)
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
  update = function(self, lessons) self.count = (self.count or 0) + #lessons; seen.lessons, seen.seed = self.count, self.seed end,
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
    local definition = {name = "fails", required = required, update = function() end, predict = function(_, list) return list end}
    definition[broken] = function() error "oh" end
    return ms.model(definition)
  end
  local left
  env = tune.run(gemm, {trials = 4, batch = 2, db = path .. ".db", model = failing(false), policy = "evolutionary", jobs = 1, seed = 4, listen = function(e)
    if e.event == "model_left" then left = (left or "") .. e.reason end
  end})
  assert(env.done == 4 and left:find("^model `fails` .*models.lua:%d+: oh; mend it") and not left:find("oh.*oh"), left)
  local done, err = pcall(tune.run, gemm, {trials = 4, batch = 2, db = path .. ".db", model = failing(true), policy = "evolutionary", jobs = 1, seed = 5})
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
local function model(predict) return 'return require "msched".model {name = "bad", update = function() end,\n predict = ' .. predict .. "}" end
ms.rule_timeout(0.2)
wrong(model 'function(self, list)\n error "oh" end', "model `bad`", lua .. ":3:", "oh")
wrong(model "function(self, list)\n while true do end end", "model `bad`", lua .. ":2", "ran longer", "line 3")
wrong(model "function() return 7 end", "model `bad`", lua .. ":2", "predicted a number")
wrong(model "function() end", "predicted a nil", lua .. ":2")
wrong(model "function(self, list) return {1} end", "predicted 1 scores for")
wrong(model "function(self, list) local t = {} for i = 1, #list do t[i] = i == 3 and 0/0 or 1 end return t end", "NaN", "candidate 3")
wrong(model "function(self, list) local t = {} for i = 1, #list do t[i] = i == 3 and '1' or 1 end return t end", "a string for candidate 3")
wrong("return 7", "returns no model", lua)
wrong("return {", lua .. ":1")
wrong('return require "msched".model {name = "half", predict = function() end}', "`update` is a function")
wrong('return require "msched".model {name = "bad", predict = function() end,\n update = function() error "no" end}', "model `bad`", lua .. ":2:", "no")

for _, file in ipairs {path, lua, path .. ".db", path .. ".db-lock"} do os.remove(file) end
print "models: ok"
