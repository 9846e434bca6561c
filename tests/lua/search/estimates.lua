-- How well the analytical model ranks candidates that a device has measured: Kendall's tau, and how far its top-ranked
-- candidate is from the fastest.  usage: estimates.lua STORE
local ms = require "msched"
local estimate = ms.load "lua.bench.estimate"

-- ---- Kendall's tau, by hand ----------------------------------------------------------------------------------------

local function results(list)
  local all = {}
  for i, r in ipairs(list) do all[i] = {cost = r[1], seconds = r[2], at_least = r[3]} end
  return all
end
local function near(x, y) assert(math.abs(x - y) < 1e-12, x .. ", not " .. y) end
near(estimate.tau(results {{1, 1}, {2, 2}, {3, 3}}), 1)
near(estimate.tau(results {{3, 1}, {2, 2}, {1, 3}}), -1)
near(estimate.tau(results {{1, 1}, {3, 2}, {2, 3}}), 1 / 3)
near(estimate.tau(results {{1, 1}, {1, 2}, {2, 3}}), 2 / math.sqrt(2 * 3)) -- costs that are equal say nothing
near(estimate.tau(results {{1, 1}, {2, 1}, {3, 3}}), 1) -- nor do times
near(estimate.tau(results {{1, 1}, {2, 5, true}, {3, 6}}), 1) -- 6 may be before what was stopped at 5
near(estimate.tau(results {{1, 1}, {9, 5, true}, {3, 6}}), 1)
near(estimate.tau(results {{5, 1}, {2, 5, true}, {3, 6, true}}), -1)
near(estimate.tau(results {{1, 1}, {1, 2}}), 0)
near(estimate.first(results {{2, 1}, {1, 3}, {3, 0.5, true}}), 3)

-- ---- What an H100 took ----------------------------------------------------------------------------------------------

-- The least tau of each, and the most that the first may be behind. Fitted by a few numbers (rules/targets.lua): a
-- change that ranks worse than this is a step back.
local BOUNDS = {
  C1D_3_b1 = {0.85, 1.15}, C2D_1_b1 = {0.87, 1.1}, C2D_2_b1 = {0.80, 1.15}, C2D_3_b1 = {0.85, 1.1},
  C2D_4_b1 = {0.77, 1.1},
  DEP_1_b1 = {0.85, 1.1}, DEP_2_b1 = {0.80, 1.1}, DEP_3_b1 = {0.72, 1.2}, GMM_4_b1 = {0.80, 1.15},
  F32_2_b1 = {0.72, 1.2},
  F16_2_b1 = {0.69, 1.1}, NRM_4_b1 = {0.78, 1.2}, SFM_4_b1 = {0.80, 1.2}, softmax_16384x4096 = {0.70, 1.1},
  layer_norm_8192x4096_float16 = {0.9, 1.1}, conv2d_16x14x14x256x256x3_pad1_float16 = {0.74, 1.15},
}
-- These kernels were built when loops of virtual threads kept how far to unroll from the loops in them.
local function without_unrolling(trace)
  for _, index in ipairs(trace:changeable("SampleCategorical", "unroll")) do
    trace = trace:with_decision(index, {0})
  end
  return trace
end
local store, target, mean, count, said = ms.store(arg[1], true), ms.target "cuda -arch=sm_90a", 0, 0, {}
for _, w in ipairs(store:workloads()) do
  local list = estimate.results(store, store:get_workload(w.id), w.id, target, without_unrolling)
  local tau, first, bounds = estimate.tau(list), estimate.first(list), assert(BOUNDS[w.name], w.name)
  mean, count = mean + tau, count + 1
  if tau < bounds[1] or first > bounds[2] then
    said[#said + 1] = string.format("%s: Kendall's tau %.3f, at least %.2f; its first %.2f times the fastest, at most \z
                                     %.2f", w.name, tau, bounds[1], first, bounds[2])
  end
end
assert(#said == 0, table.concat(said, "\n"))
assert(count == 16, count .. " operators in the store, of 16")
assert(mean / count > 0.82, mean / count)
store:close()
print(string.format("estimates: ok: Kendall's tau %.3f, of %d operators", mean / count, count))
