-- What msched bench model says of a store's results: a feature that decides is missed, one that does not is not; the
-- same twice; the file that it saves is a model.
-- usage: bench_model.lua
local ms = require "msched"
local te, tune, models = ms.te, ms.load "search.tune", ms.load "search.models"
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")

local A, B = te.placeholder({64, 64}, "float32", "A"), te.placeholder({64, 64}, "float32", "B")
local k = te.reduce_axis(64, "k")
local gemm =
  te.func("gemm", {A, B, te.compute({64, 64}, function(i, j) return te.sum(A[{i, k}] * B[{k, j}], k) end, "C")})

-- ---- A store whose times are made up: of the step of unrolling alone, which nothing else tells ----------------------

local path = os.tmpname()
local store = ms.store(path .. ".db")
-- the space is the same on each machine
local workload, target = store:put_workload(gemm), ms.target "x86-64-v4 -num-cores=2"
local opened = tune.open(gemm, target, {seed = 1})
local pool = ms.pool(gemm, {jobs = 2, files = {}, target = target.text})
local seen = {}
for i, c in ipairs(pool:replay(jobs_of(opened, 600), true)) do
  if c and not seen[c.hash] then
    seen[c.hash] = true
    local seconds = 1
    for row = 1, #c.features do seconds = seconds + c.features(row, "unroll_step") end
    store:put {workload = workload, target = target.text, trace = c.trace, hash = c.hash, status = "measured",
               seconds = seconds * 1e-4, low = seconds * 1e-4, high = seconds * 1e-4, runs = 1, reason = "", seed = 1,
               candidate = i}
  end
end
store:close()

-- ---- The report, as objects --------------------------------------------------------------------------------------

local function report()
  local lines, cli = {}, ms.load "lua.cli.cli"
  local put = cli.put_json
  cli.put_json = function(line) lines[#lines + 1] = line end
  ms.load "lua.bench.model" {db = path .. ".db", target = target.text, json = true, save = path}
  cli.put_json = put
  return lines
end
local lines, again = report(), report()
local whole, groups, features = lines[1], {}, 0
local estimated = table.remove(lines)
assert(estimated.estimate and estimated.results >= whole.results and math.abs(estimated.estimate.tau) <= 1
       and estimated.estimate.first >= 1)
assert(whole.without == nil and whole.correlation > 0.9 and whole.recall > 0.5 and whole.recall <= 1, whole.correlation)
for i = 2, #lines do
  groups[lines[i].without] = lines[i]
  features = features + lines[i].features
end
assert(features == #ms.feature_names() and whole.features == features, "each feature is of one group")
assert(groups.unrolled.correlation < whole.correlation - 0.5, groups.unrolled.correlation)
assert(groups.vectorized.correlation > whole.correlation - 0.05, groups.vectorized.correlation)
assert(math.abs(groups.threads.correlation - whole.correlation) < 1e-9, "no loop is bound to a thread here")
for i, line in ipairs(lines) do
  assert(line.correlation == again[i].correlation and line.recall == again[i].recall, line.without)
end

local _, refused = models.open(path, 1)
assert(refused == nil, refused)
for _, file in ipairs {path, path .. ".db", path .. ".db-lock"} do os.remove(file) end
print "bench_model: ok"
