-- Depthwise convolutions whose windows a thread has in registers (rules/rule/depthwise_tile.lua), without a GPU: draws
-- of both layouts, of steps, dilation, padding, dimensions that do not divide, with a bias and a limit behind them, of
-- three types, on three oracles: the interpreter runs what is lowered, the source compiled for the CPU computes the
-- same (RUN_KERNELS), and NVRTC, where it is installed, makes of it kernels that load each element of a thread's window
-- once. What sums channels has no such schedule.
-- usage: msched depthwise.lua RUN_KERNELS DRAWS SEED
local ms = require "msched"
local te = ms.te
local tune, files = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local named = dofile(arg[0]:match "^.*/" .. "../../support/lua/workloads.lua").named
local thread_loads = dofile(arg[0]:match "^.*/" .. "../../support/lua/thread_loads.lua")
local run_kernels, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)
local TARGET = "cuda -arch=sm_80 -thread_warp_size=4" -- blocks of few threads, as small shapes have them

local function depthwise(words) return named("depthwise_conv2d", words) end

local function with_epilogue()
  local X, W = te.placeholder({2, 9, 8, 12}, "float32", "X"), te.placeholder({3, 3, 12}, "float32", "W")
  local B = te.placeholder({12}, "float32", "B")
  local Y = ms.ops.depthwise_conv2d(X, W, {pad = 1})
  return te.func("relu6", {X, W, B, te.compute({2, 9, 8, 12}, function(n, h, w, c)
    return te.min(te.max(Y[{n, h, w, c}] + B[{c}], 0.0), 6.0)
  end, "Z")})
end

local FUNCTIONS = {
  depthwise "2 12 8 8 3 1 1", depthwise "1 17 13 6 3 2 1", depthwise "1 16 16 4 5 1 2", depthwise "1 14 14 8 3 1 0",
  depthwise "1 16 12 4 3 1 2 dilation=2", depthwise "1 12 16 6 3 1 1 layout=NCHW",
  depthwise "2 16 16 3 5 2 2 layout=NCHW", depthwise "1 12 8 16 3 1 1 dtype=float16",
  depthwise "1 8 8 16 3 2 1 dtype=int8", with_epilogue(),
}

local function drawn(func)
  local sketch = tune.open(func, ms.target(TARGET), {}).sketches[1].trace
  assert(sketch:text():find("msched.spatial_tile", 1, true), "the first sketch has no windows in registers")
  local list, accepted = thread_loads.drawn(func, TARGET, {sketch}, draws, seed)
  assert(accepted == draws, string.format("%d of %d draws are accepted", accepted, draws))
  return list
end

-- Elements that a thread's copies hold, of what it reads.
local function held(source)
  local count = 0
  for name, n in source:gmatch "(%w+_local)%[(%d+)%];" do
    if not name:find "^depthwise" then count = count + math.tointeger(n) end
  end
  return count
end

local missing -- why there is no NVRTC

local function check_loads(kernel, path)
  local ptx, why = thread_loads.ptx(kernel, path)
  if not ptx then
    missing = why
    return
  end
  local source, loaded = files.read(path .. ".cu"), thread_loads.loaded(ptx)
  assert(held(source) > 0 and loaded <= held(source),
         string.format("a thread loads %d elements, and has %d", loaded, held(source)))
  assert(not ptx:find("st.local", 1, true), "a window lies in memory")
end

for k, func in ipairs(FUNCTIONS) do
  sources:begin(func)
  sources:check(func, TARGET, drawn(func), function(i, kernel, path)
    if i % 4 == 1 and k ~= #FUNCTIONS and not missing then check_loads(kernel, path) end
  end)
  sources:finish()
end

for _, sketch in ipairs(tune.open(ms.ops.func("conv2d", {"1", "8", "8", "4", "8", "3", "1", "1"}), ms.target(TARGET),
                                  {}).sketches) do
  assert(not sketch.trace:text():find("msched.spatial_tile", 1, true), "a convolution that sums channels is no such")
end
if missing then print("depthwise: NVRTC skipped: " .. missing) end
print "depthwise: ok"
