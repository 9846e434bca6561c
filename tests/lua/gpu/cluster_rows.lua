-- Rows that the blocks of a cluster share out (rules/rule/cross_thread_reduction.lua, keep_rows.lua), without a GPU:
-- draws of softmax, layer norm, sums and a loss on three oracles: the interpreter runs what is lowered, the source
-- compiled for the CPU computes the same (RUN_KERNELS), and NVRTC, where it is installed, compiles it. A bug put in on
-- purpose, blocks that do not wait for one another, is found by the source's run. Which functions have such sketches,
-- and that the analytical model ranks them first where there are few rows, or rows that one block cannot hold.
-- usage: msched cluster_rows.lua RUN_KERNELS DRAWS SEED
local ms = require "msched"
local te = ms.te
local tune, files = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local analytical = ms.load "search.cost.analytical"
local named = dofile(arg[0]:match "^.*/" .. "../../support/lua/workloads.lua").named
local thread_loads = dofile(arg[0]:match "^.*/" .. "../../support/lua/thread_loads.lua")
local run_kernels, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)
local HOPPER = "cuda -arch=sm_90a"

-- The sum of each row, of which nothing else is read.
local function sums(rows, columns)
  local X, r = te.placeholder({rows, columns}, "float32", "X"), te.reduce_axis(columns, "k")
  return te.func("sums", {X, te.compute({rows}, function(i) return te.sum(X[{i, r}], r) end, "S")})
end

-- The loss of each row: the logarithm of the sum of exponentials, less the row's number of the label.
local function loss(rows, columns)
  local X, labels = te.placeholder({rows, columns}, "float32", "X"), te.placeholder({rows}, "float32", "label")
  local k, q = te.reduce_axis(columns, "k"), te.reduce_axis(columns, "q")
  local most = te.compute({rows}, function(i) return te.max(X[{i, k}], k) end, "most")
  local total = te.compute({rows}, function(i) return te.sum(te.exp(X[{i, q}] - most[{i}]), q) end, "total")
  return te.func("loss", {X, labels, te.compute({rows}, function(i)
    return te.log(total[{i}]) + most[{i}] - labels[{i}]
  end, "L")})
end

local function has(sketch, what) return sketch.trace:text():find(what, 1, true) ~= nil end

-- Traces of the sketches with clusters, of those that keep rows besides, and of the others.
local function sketches_of(func, target)
  local shared, kept, others = {}, {}, {}
  for _, s in ipairs(tune.open(func, ms.target(target), {}).sketches) do
    local clusters = has(s, "clusterCtaIdx.x")
    table.insert(not clusters and others or has(s, "cache_read") and kept or shared, s.trace)
  end
  return shared, kept, others
end

-- Blocks wait for their own threads alone: they read what the others have not left yet.
local function without_clusters(path)
  local text = files.read(path)
  local made, count = text:gsub("ms_cluster_barrier%(%);", "__syncthreads();")
  assert(count >= 2, "there is no barrier of a cluster")
  files.write(path, made)
end

for _, each in ipairs {
  {named("softmax", "2x8192"), true}, {named("softmax", "1x8200"), true},
  {named("softmax", "2x16384 dtype=float16"), true}, {named("layer_norm", "2x8192"), true},
  {sums(3, 8192), false}, {loss(2, 8192), false},
} do
  local func, keeps = table.unpack(each)
  local shared, kept = sketches_of(func, HOPPER)
  assert(#shared > 0 and #kept > 0 == keeps, func:name() .. " has no clusters, or keeps no rows")
  sources:begin(func)
  local traces = {}
  for i = 1, math.max(#kept, 1) do traces[2 * i - 1], traces[2 * i] = shared[(i - 1) % #shared + 1], kept[i] end
  local list = thread_loads.drawn(func, HOPPER, traces, draws, seed)
  sources:check(func, HOPPER, list, function(i, kernel) if i == 1 then sources:compile(kernel) end end)
  sources:fail(#list, without_clusters, "kernels whose blocks do not wait")
  sources:finish()
end

-- Short rows, many rows that a block holds, and older architectures have none.
for _, each in ipairs {{"64x4096", HOPPER}, {"4096x8192", HOPPER}, {"16x65536", "cuda -arch=sm_80"}} do
  local shared, kept = sketches_of(named("softmax", each[1]), each[2])
  assert(#shared + #kept == 0, each[1] .. " " .. each[2])
end

-- A block of the cluster has no more memory than its part takes.
do
  local func = named("softmax", "2x65536")
  local _, kept = sketches_of(func, HOPPER)
  local _, accepted = thread_loads.drawn(func, HOPPER, kept, 8, seed)
  assert(#kept > 0 and accepted > 0, "rows that a cluster keeps are refused")
end

-- The least cost of the candidates of these sketches.
local function least(func, traces)
  local cost, machine = math.huge, analytical.machine(ms.target(HOPPER))
  for _, trace in ipairs(traces) do
    local best = ms.estimator(func, trace, machine):best({seed = 1, budget = 200, most = 1, each = 1})[1]
    if best then cost = math.min(cost, best.cost) end
  end
  return cost
end
for _, words in ipairs {"16x65536", "64x131072", "1024x131072"} do
  local func = named("softmax", words)
  local shared, kept, others = sketches_of(func, HOPPER)
  assert(math.min(least(func, shared), least(func, kept)) < 0.9 * least(func, others), words)
end
if sources.missing then print("cluster_rows: NVRTC skipped: " .. sources.missing) end
print "cluster_rows: ok"
