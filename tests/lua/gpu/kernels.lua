-- Kernels without a GPU: random draws of the CUDA space of the 19 operators, on small shapes that do not divide, on
-- three oracles:
--   the interpreter  runs what is lowered with threads, barriers and a shadow of shared memory: no race, the same
--                    results
--   the shim         is RUN_KERNELS: the source compiled for the CPU computes the same; "-": it is not asked
--   NVRTC            compiles the source, where it is installed; asked with the shim
-- Prints a table: draws, how many of them are distinct, with how many of these each oracle agrees, and what was
-- refused, by reason.
-- usage: msched kernels.lua ROOT RUN_KERNELS DRAWS SEED [WORKLOAD…]
local ms = require "msched"
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")
local tune, refusals = ms.load "search.tune", ms.load "rules.refusals"

local root, run_kernels, draws, seed = arg[1], arg[2], math.tointeger(arg[3]), math.tointeger(arg[4])
local TARGET = "cuda -arch=sm_80 -thread_warp_size=4" -- blocks of few threads, as small shapes have them

local function op(name, words)
  return function()
    local list = {}
    for word in words:gmatch "%S+" do list[#list + 1] = word end
    return ms.ops.func(name, list)
  end
end

-- A workload of the benchmarks with other extents.
local function cut(name, extents)
  return function()
    local path = root .. "/lua/bench/data/workloads/" .. name .. ".py"
    local file <close> = assert(io.open(path, "rb"))
    return ms.from_script((file:read "a":gsub("%f[%w]%d+%f[%W]", function(n) return extents[n] end)), path)
  end
end

local CONV = "2 7 6 5 8 3 2 1"
local WORKLOADS = {
  C1D = op("conv1d", "2 17 6 8 3 2 1"), C2D = op("conv2d", CONV), C3D = op("conv3d", "1 5 6 5 4 6 3 2 1"),
  CAP = op("conv2d_capsule", "1 5 5 3 4 3 2 1"),
  CBR = op("conv2d_bn_relu", CONV), DEP = op("depthwise_conv2d", "2 9 7 6 3 2 1"),
  DIL = op("conv2d", "2 9 7 4 6 3 1 1 dilation=2"),
  ELT = cut("ELT", {["512"] = "45"}), GMM = op("batch_matmul", "2 12 20 18"), GMM1024 = op("matmul", "33 26 30"),
  GMM2 = cut("GMM2", {["64"] = "22"}),
  GMM_RELU = cut("GMM_RELU", {["128"] = "22"}), GMM_ROW = cut("GMM_ROW", {["512"] = "70"}),
  GRP = op("conv2d", "2 7 6 8 8 3 2 1 groups=2"),
  NRM = op("norm", "3x12x20"), POOL = op("max_pool", "2 9 9 6 3 2 1"), SFM = op("softmax", "9x70"),
  T2D = op("conv2d_transpose", "2 5 4 4 6 4 2 1"),
  TBG = op("transpose_batch_matmul", "2 10 3 12"),
  VECTORS = function() -- in memory, as wide as an access and wider; slices that begin anywhere
    return ms.from_script [[
from tvm.script import tirx as T

@T.prim_func
def main(A: T.Buffer((9, 6), "float32x4"), W: T.Buffer((6,), "int32x8"), H: T.Buffer((50,), "float16"), B: T.Buffer((9, 6), "float32x4"), V: T.Buffer((6,), "int32x8"), S: T.Buffer((11,), "float16x4"), R: T.Buffer((46,), "float16")):
    for i, j in T.grid(9, 6):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.max(A[vi, 5 - vj], A[vi, vj]) + A[8 - vi, vj]
    for i in range(6):
        with T.sblock("V"):
            vi = T.axis.spatial(6, i)
            V[vi] = W[vi] * W[5 - vi]
    for i in range(11):
        with T.sblock("S"):
            vi = T.axis.spatial(11, i)
            S[vi] = H[vi * 4 + 1:vi * 4 + 5] * H[vi * 4:vi * 4 + 4]
    for i in range(11):
        with T.sblock("R"):
            vi = T.axis.spatial(11, i)
            R[vi * 4 + 2:vi * 4 + 6] = H[vi * 4 + 2:vi * 4 + 6]
]]
  end,
}

local function draw(func)
  local opened = tune.open(func, ms.target(TARGET), {})
  local pool = ms.pool(func, {jobs = 1, target = TARGET})
  local made, dropped, script_error = pool:replay(jobs_of(opened, draws, seed), false)
  pool:close()
  assert(not script_error, script_error)
  local accepted, seen = 0, {}
  for _, c in ipairs(made) do
    if c then accepted = accepted + 1 end
    if c and not seen[c.hash] then
      seen[c.hash] = true
      seen[#seen + 1] = c
    end
  end
  return accepted, seen
end

-- ---- The source, compiled ----

local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)

-- How many sources of the folder compute what the function does; messages about the others go to `wrong`.
local function run_on_cpu(name, wrong)
  local agree, said, status = sources:agree()
  for line in said:gmatch "[^\n]+" do
    if line:find ": " then
      local file <close> = io.open(line:match "^(.-): ", "rb")
      wrong[#wrong + 1] = string.format("%s: %s\n%s", name, line, file and file:read "a" or "")
    end
  end
  assert(status == 0 or status == 1, "kernels: run_kernels cannot run: is there no g++?")
  return agree
end

local missing -- why there is no NVRTC

local function compiles(kernel, path)
  local ok, message = pcall(kernel.export, kernel, path)
  if not ok and message:find("NVRTC is missing", 1, true) then missing = message end
  return ok, message
end

-- Gives for how many candidates the source computes the same on the CPU, and how many NVRTC compiles.
local function check_source(name, func, scheduled, wrong)
  sources:begin(func)
  local compiled = 0
  for i, f in ipairs(scheduled) do
    local kernel = ms.build(f, {target = TARGET})
    kernel:export(sources:path(i .. ".cu"))
    local ok, message = true, nil
    if not missing then ok, message = compiles(kernel, sources:path "kernel.cubin") end
    if ok and not missing then compiled = compiled + 1 end
    if not ok and not missing then wrong[#wrong + 1] = string.format("%s: %s\n%s", name, message, f:script()) end
  end
  local agree = run_on_cpu(name, wrong)
  sources:finish()
  return agree, compiled
end

-- ---- A workload ----

local function check(name)
  local func = WORKLOADS[name]()
  local accepted, distinct = draw(func)
  local same, refused, wrong = {}, {}, {}
  for i, c in ipairs(distinct) do
    local scheduled = ms.apply(func, c.trace):func()
    local ok, message = pcall(ms.check_lowered, func, scheduled, TARGET, 1)
    local code = not ok and ms.code_of(message)
    if ok then same[#same + 1] = scheduled
    elseif code and code:find "^lower_" then refusals.add(refused, "lower", code, message)
    else wrong[#wrong + 1] = string.format("%s: %s\n%s", name, message, c.trace:text()) end
  end
  local line =
    string.format("%-8s %4d draws, %4d accepted, %4d distinct, %4d the same", name, draws, accepted, #distinct, #same)
  if run_kernels ~= "-" then
    local agree, compiled = check_source(name, func, same, wrong)
    line = string.format("%s, %4d on the CPU, %4d compiled by NVRTC", line, agree, compiled)
  end
  print(string.format("%s, %3d wrong", line, #wrong))
  local text = refusals.text(refused)
  if text ~= "" then print(text) end
  io.stdout:flush()
  for _, text in ipairs(wrong) do io.stderr:write(text, "\n") end
  return #wrong == 0, #same
end

local names = {table.unpack(arg, 5)}
if #names == 0 then names = ms.sorted_keys(WORKLOADS) end
local ok, total = true, 0
for _, name in ipairs(names) do
  local right, same = check(name)
  ok, total = ok and right, total + same
end
assert(ok, "kernels: some are wrong")
assert(total > 0, "kernels: none was judged")
if missing then print("kernels: NVRTC skipped: " .. missing) end
print "kernels: ok"
