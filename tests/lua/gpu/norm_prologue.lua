-- Norms before products (rules/rule/norm_prologue.lua), without a GPU: draws of an RMS norm before products of float16
-- on tensor cores and of a layer norm before one of float32, on three oracles: the interpreter runs what is lowered,
-- the source compiled for the CPU computes the same (RUN_KERNELS), and NVRTC, where it is installed, compiles it. What
-- is normalized is copied to shared memory alone, or made by a kernel of its own; statistics that are left out are
-- found. The analytical model ranks a function of both no behind two functions, and counts the kernel of statistics.
-- usage: msched norm_prologue.lua RUN_KERNELS DRAWS SEED
local ms = require "msched"
local te = ms.te
local tune, files = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local analytical = ms.load "search.cost.analytical"
local thread_loads = dofile(arg[0]:match "^.*/" .. "../../support/lua/thread_loads.lua")
local run_kernels, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)
local HOPPER, AMPERE = "cuda -arch=sm_90a", "cuda -arch=sm_80"

local function wide(x, type) return type == "float32" and x or te.cast(x, "float32") end
local function narrow(x, type) return type == "float32" and x or te.cast(x, type) end

local function rms_norm(X, gamma, rows, columns, type)
  local r = te.reduce_axis(columns, "r")
  local squares = te.compute({rows}, function(i)
    local x = wide(X[{i, r}], type)
    return te.sum(x * x, r)
  end, "S")
  return te.compute({rows, columns}, function(i, j)
    local scale = te.rsqrt(squares[{i}] * (1 / columns) + 1e-5)
    return narrow(wide(X[{i, j}], type) * scale * wide(gamma[{j}], type), type)
  end, "Y")
end

-- What a product computes of what is given, or of its norm.
local function layer(rows, columns, n, type, norm)
  local X, W = te.placeholder({rows, columns}, type, "X"), te.placeholder({columns, n}, type, "W")
  local gamma, beta = te.placeholder({columns}, type, "gamma"), te.placeholder({columns}, type, "beta")
  local k, list, Y = te.reduce_axis(columns, "k"), {X}, X
  if norm == "rms" then
    list[2], Y = gamma, rms_norm(X, gamma, rows, columns, type)
  elseif norm == "layer" then
    list[2], list[3], Y = gamma, beta, ms.ops.layer_norm(X, gamma, beta)
  end
  list[#list + 1] = W
  list[#list + 1] = te.compute({rows, n}, function(i, j)
    return te.sum(wide(Y[{i, k}], type) * wide(W[{k, j}], type), k)
  end, "C")
  return te.func("normed", list)
end

-- Traces of the sketches that compute the norm as they copy, and of those that have a kernel for it.
local function sketches_of(func, target)
  local copied, kept = {}, {}
  for _, s in ipairs(tune.open(func, ms.target(target), {}).sketches) do
    local own = s.trace:text():find('inline_rule", "disable"', 1, true)
    table.insert(own and kept or copied, s.trace)
  end
  return copied, kept
end

-- Some of a list, evenly.
local function some(list, count)
  local few = {}
  for i = 1, math.min(count, #list) do few[i] = list[1 + (i - 1) * #list // count] end
  return few
end

local function without_norm(path)
  local text = files.read(path)
  local made, count = text:gsub("ms_rsqrt_f32%(", "ms_keep_norm(")
  if count == 0 then made, count = text:gsub("rsqrtf%(", "ms_keep_norm(") end
  assert(count > 0, "nothing is normalized")
  files.write(path, "#define ms_keep_norm(x) (2.5f)\n" .. made)
end

for _, each in ipairs {
  {layer(64, 64, 64, "float16", "rms"), HOPPER}, {layer(128, 128, 64, "bfloat16", "rms"), HOPPER},
  {layer(32, 64, 64, "float16", "rms"), AMPERE}, {layer(48, 96, 64, "float32", "layer"), AMPERE},
} do
  local func, target = table.unpack(each)
  local copied, kept = sketches_of(func, target)
  assert(#copied > 0 and #kept > 0, "there are no two ways")
  sources:begin(func)
  local traces = some(copied, draws)
  table.move(some(kept, draws // 2), 1, draws // 2, #traces + 1, traces)
  local list = thread_loads.drawn(func, target, traces, 2 * #traces, seed)
  sources:check(func, target, list, function(i, kernel) if i == 1 then sources:compile(kernel) end end)
  sources:fail(#list, without_norm, "kernels that do not normalize")
  sources:finish()
end

-- By the model: a function of both, and two, one after the other. The kernel of statistics is not free.
local machine = analytical.machine(ms.target(HOPPER))
local function least(func)
  local cost = math.huge
  for _, s in ipairs(tune.open(func, ms.target(HOPPER), {}).sketches) do
    local best = ms.estimator(func, s.trace, machine):best({seed = 1, budget = 200, most = 1, each = 1})[1]
    if best then cost = math.min(cost, best.cost) end
  end
  return cost
end
local X, gamma = te.placeholder({256, 1024}, "float16", "X"), te.placeholder({1024}, "float16", "gamma")
local both, product = least(layer(256, 1024, 1024, "float16", "rms")), least(layer(256, 1024, 1024, "float16"))
local apart = product + least(te.func("norm", {X, gamma, rms_norm(X, gamma, 256, 1024, "float16")}))
assert(both > product + machine.launch and both <= apart, string.format("%.0f, %.0f, %.0f", both, product, apart))
-- In a network the norm comes into the product that alone reads it, on a GPU; not where others read it too.
local onnx = dofile(arg[0]:match "^.*/" .. "../../support/lua/onnx.lua")
local plan = ms.load "lua.net.plan"
local function calls(target, outputs)
  local net = onnx.read {
    opset = 23, inputs = {{"x", "float32", {8, 32}}}, outputs = outputs,
    constants = {g = onnx.weights({32}, 1), w = onnx.weights({32, 16}, 2)},
    nodes = {{"RMSNormalization", {"x", "g"}, {"n"}}, {"MatMul", {"n", "w"}, {"m"}}, {"Relu", {"m"}, {"y"}}}}
  return #plan.prepare(net, {target = target}).groups
end
assert(calls(HOPPER, {{"y"}}) == 1 and calls(HOPPER, {{"y"}, {"n"}}) == 2)
assert(calls("llvm -mcpu=x86-64-v3", {{"y"}}) == 2)
if sources.missing then print("norm_prologue: NVRTC skipped: " .. sources.missing) end
print "norm_prologue: ok"
