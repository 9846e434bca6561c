-- Products of a matrix by few vectors (rules/rule/matvec.lua), without a GPU: draws of matrices that lie along what is
-- summed and along results, of batches, without a second operand's iteration, of lengths that do not divide, of short
-- and of unlike types, with an epilogue, on three oracles: the interpreter runs what is lowered, the source compiled
-- for the CPU computes the same (RUN_KERNELS), and NVRTC, where it is installed, makes of it kernels that load the
-- matrix by whole vectors, keep nothing in memory and wait for nothing but where they write out an epilogue. Sums that
-- are not shared out right are caught. What has many vectors has no such schedule.
-- usage: msched matvec.lua RUN_KERNELS DRAWS SEED
local ms = require "msched"
local te = ms.te
local tune, files = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local named = dofile(arg[0]:match "^.*/" .. "../../support/lua/workloads.lua").named
local thread_loads = dofile(arg[0]:match "^.*/" .. "../../support/lua/thread_loads.lua")
local run_kernels, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)
local TARGET = "cuda -arch=sm_80"

local function with_epilogue()
  local X, W = te.placeholder({3, 96}, "float32", "X"), te.placeholder({20, 96}, "float32", "W")
  local B = te.placeholder({20}, "float32", "B")
  local Y = ms.ops.dense(X, W)
  return te.func("bias_relu", {X, W, B, te.compute({3, 20}, function(i, j)
    return te.max(Y[{i, j}] + B[{j}], 0.0)
  end, "Z")})
end

-- Of a vector alone: nothing says which of them it is.
local function by_a_vector()
  local W, X, k = te.placeholder({12, 160}, "float32", "W"), te.placeholder({160}, "float32", "X"),
    te.reduce_axis(160, "k")
  return te.func("by_a_vector", {W, X, te.compute({12}, function(j) return te.sum(W[{j, k}] * X[{k}], k) end, "Y")})
end

-- Two iterations are summed over, and the operands have other types.
local function of_unlike_types()
  local W, X = te.placeholder({9, 7, 32}, "bfloat16", "W"), te.placeholder({2, 7, 32}, "float32", "X")
  local a, b = te.reduce_axis(7, "a"), te.reduce_axis(32, "b")
  return te.func("unlike", {X, W, te.compute({2, 9}, function(i, j)
    return te.sum(X[{i, a, b}] * te.cast(W[{j, a, b}], "float32"), {a, b})
  end, "Y")})
end

local FUNCTIONS = {
  {named("dense", "1 200 12"), 4}, {named("dense", "8 33 18"), 1}, {with_epilogue(), 4}, {by_a_vector(), 4},
  {of_unlike_types(), 4}, {named("dense", "2 144 10 dtype=bfloat16"), 4}, {named("dense", "1 96 8 dtype=int8"), 4},
  {named("batch_matmul", "2 2 20 36"), 4}, {named("matmul", "24 1 50"), 1},
  {named("batch_matmul", "1 1 40 64 dtype=float16"), 4},
}

local function sketch_of(func)
  for _, s in ipairs(tune.open(func, ms.target(TARGET), {}).sketches) do
    if s.trace:text():find("msched.spatial_tile", 1, true) then return s.trace end
  end
end

local function drawn(func)
  local sketch = assert(sketch_of(func), func:name() .. " has no such schedule")
  local tried = 8 * draws -- of few, many are equal
  local list, accepted = thread_loads.drawn(func, TARGET, {sketch}, tried, seed)
  assert(accepted > tried / 2, string.format("%d of %d draws are accepted", accepted, tried))
  return table.move(list, 1, draws, 1, {})
end

local missing -- why there is no NVRTC

local function check_code(kernel, path, words)
  local ptx, why = thread_loads.ptx(kernel, path)
  missing = why
  if not ptx then return end
  assert(not ptx:find("st.local", 1, true), "sums lie in memory")
  assert(words == 1 or ptx:find "ld%.global[%w%.]*%.v4", "no vector is loaded")
end

for _, case in ipairs(FUNCTIONS) do
  local func, words = case[1], case[2]
  sources:begin(func)
  local list = drawn(func)
  sources:check(func, TARGET, list, function(i, kernel, path)
    if i == 1 and not missing then check_code(kernel, path, words) end
  end)
  if func:name() == "by_a_vector" then -- a lane's part is added twice, or not at all
    sources:fail(#list, function(path)
      files.write(path, (files.read(path):gsub("(__shfl_xor_sync%(0xffffffffu, [%w_%[%]]+), 2%)", "%1, 4)")))
    end, "sums that miss a part")
  end
  sources:finish()
end

for _, words in ipairs {"16 64 64", "9 64 20"} do
  assert(not sketch_of(named("dense", words)), "a product of many vectors is no such")
end
if missing then print("matvec: NVRTC skipped: " .. missing) end
print "matvec: ok"
