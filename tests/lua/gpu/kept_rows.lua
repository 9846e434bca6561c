-- Rows that a thread block reads several times and keeps in shared memory (rules/rule/keep_rows.lua), without a GPU:
-- draws of softmax, layer norm and sums beside what they scale, of lengths that no vector divides, of two types, on
-- three oracles: the interpreter runs what is lowered, the source compiled for the CPU computes the same (RUN_KERNELS),
-- and NVRTC, where it is installed, makes of it kernels that load each element of a row once. A bug put in on purpose,
-- no barrier between the copy and its readers, is found by the source's run. What is longer than shared memory is not
-- kept, nor what is read once.
-- usage: msched kept_rows.lua RUN_KERNELS DRAWS SEED
local ms = require "msched"
local te = ms.te
local tune, files = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local named = dofile(arg[0]:match "^.*/" .. "../../support/lua/workloads.lua").named
local thread_loads = dofile(arg[0]:match "^.*/" .. "../../support/lua/thread_loads.lua")
local run_kernels, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)
local TARGET = "cuda -arch=sm_80 -thread_warp_size=4"

local function scaled(rows, columns)
  local X, r = te.placeholder({rows, columns}, "float32", "X"), te.reduce_axis(columns, "k")
  local S = te.compute({rows}, function(i) return te.sum(X[{i, r}], r) end, "S")
  return te.func("scaled", {X, te.compute({rows, columns}, function(i, j) return X[{i, j}] * S[{i}] end, "Y")})
end

-- How many elements a row has.
local FUNCTIONS = {
  {named("softmax", "6x256"), 256}, {named("softmax", "5x513"), 513}, {named("softmax", "3x1000 dtype=float16"), 1000},
  {named("softmax", "2x3x132 axis=-1"), 132}, {named("layer_norm", "5x384"), 384}, {scaled(4, 260), 260},
  {named("softmax", "2x12000"), 12000},
}

local function keeps(sketch) return sketch.trace:text():find("cache_read", 1, true) ~= nil end

local function sketches_of(func, target)
  local kept, others = {}, {}
  for _, s in ipairs(tune.open(func, ms.target(target), {}).sketches) do
    table.insert(keeps(s) and kept or others, s)
  end
  return kept, others
end

local function drawn(func)
  local kept, others = sketches_of(func, TARGET)
  assert(#kept > 0 and #others > 0, "rows are always kept, or never")
  local traces = {}
  for i, s in ipairs(kept) do traces[i] = s.trace end
  return (thread_loads.drawn(func, TARGET, traces, draws, seed))
end

local missing, compared = nil, 0 -- why there is no NVRTC
local function check_loads(kernel, path, length, threads)
  local ptx, why = thread_loads.ptx(kernel, path)
  if not ptx then
    missing = why
    return
  end
  local name = kernel:resources()[1].name
  assert(not ptx:find("st.local", 1, true), "a row lies in a thread's memory")
  -- Loops that are not unrolled have fewer; a tail may be a vector more, and a layer norm has scales and shifts.
  local share = (length + threads - 1) // threads
  local most = share + 4 + (name:find "layer_norm" and 2 * share or 0)
  local loaded = thread_loads.loaded(ptx)
  assert(loaded <= most,
         string.format("%s: a thread loads %d elements, and its share is %d", name, loaded, share))
  compared = compared + 1
end

-- The first barrier of the source is that between the copy and its readers.
local function without_barrier(path)
  local text = files.read(path)
  local at, last = text:find("(void)__syncthreads();", 1, true)
  assert(at, "there is no barrier")
  files.write(path, text:sub(1, at - 1) .. text:sub(last + 1))
end

for _, each in ipairs(FUNCTIONS) do
  local func, length = table.unpack(each)
  sources:begin(func)
  local list = drawn(func)
  sources:check(func, TARGET, list, function(i, kernel, path, scheduled)
    local threads = math.tointeger(scheduled:script():match 'thread_binding%((%d+), thread="threadIdx.x"')
    if i % 4 == 1 and not missing then check_loads(kernel, path, length, threads) end
  end)
  -- Of a softmax it would only change the maximum, which does not matter.
  if func:name() == "scaled" then sources:fail(#list, without_barrier, "kernels without a barrier") end
  sources:finish()
end

-- 226 KiB are 57,856 elements of float32; of shorter types there are twice as many. Longer rows only blocks of a
-- cluster keep. (Of few rows, two passes are made.)
local HOPPER = "cuda -arch=sm_90a"
local function by_one(sketch) return not sketch.trace:text():find("clusterCtaIdx", 1, true) end
for words, by_a_block in pairs {["256x57000"] = true, ["256x58200"] = false, ["256x100000 dtype=float16"] = true} do
  local kept = sketches_of(named("softmax", words), HOPPER)
  assert(#kept > 0, words)
  for _, s in ipairs(kept) do assert(by_one(s) == by_a_block, words) end
end
assert(#sketches_of(named("softmax", "256x999999"), HOPPER) == 0, "a row of no whole parts is kept")
assert(#sketches_of(named("norm", "1x512x512"), TARGET) == 0 and #sketches_of(named("gelu", "64x64"), TARGET) == 0,
       "what is read once is kept")
if missing then print("kept_rows: NVRTC skipped: " .. missing) else assert(compared > #FUNCTIONS // 2) end
print "kept_rows: ok"
