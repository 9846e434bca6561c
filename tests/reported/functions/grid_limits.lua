-- Loops of one more iteration than an axis has blocks or threads, bound to it; draws of a function with very many rows.
local ms = require "msched"
local te, tune = ms.te, ms.load "search.tune"
local TARGET = "cuda -arch=sm_80"

for _, case in ipairs {{"blockIdx.y", 65536}, {"blockIdx.z", 65536}, {"threadIdx.z", 65}} do
  local axis, extent = table.unpack(case)
  local X = te.placeholder({extent}, "float32", "X")
  local s = ms.schedule(te.func("c", {X, te.compute({extent}, function(i) return X[{i}] + 1 end, "Y")}))
  local ok, message = pcall(s.bind, s, s:get_loops(s:get_sblock "Y"), axis)
  local rule = string.format("the loop has %d iterations, and %s at most %d", extent, axis, extent - 1)
  assert(not ok and message:find(rule, 1, true), tostring(message))
end

local f = ms.ops.func("matmul", {16777216, 64, 64, dtype = "float16", accumulate = "float32"})
local sketches, jobs = tune.open(f, ms.target(TARGET), {}).sketches, {}
for i = 1, 100 do
  jobs[i] = {trace = sketches[(i - 1) % #sketches + 1].trace:simplified(false), seed = 1, candidate = i,
             resample = true}
end
local pool = ms.pool(f, {jobs = 1, target = TARGET})
local over, accepted = 0, 0
for _, c in ipairs((pool:replay(jobs, false))) do
  if c then
    local rows = tonumber(ms.apply(f, c.trace):script():match 'thread_binding%((%d+), thread="blockIdx.y"')
    accepted, over = accepted + 1, over + (rows and rows > 65535 and 1 or 0)
  end
end
assert(accepted > 30, accepted .. " accepted")
print("accepted draws with more than 65,535 blocks on blockIdx.y:", over .. " of " .. accepted)
