-- What a device's tensor cores reach, measured by kernels of our own: products of fragments that wait for no other, of
-- each type that they multiply; by wgmma on sm_90a, where that has the type, else by mma.sync, or by wmma before sm_80.
local ms = msched
local tensor_peak = {}

-- Of a type, by the name that intrinsics have for it: what an input and a sum is, in how many products a sum of 16 x 16
-- x k has.
local TYPES = {
  f16 = {name = "float16", input = "float16", sum = "float32", k = 16},
  bf16 = {name = "bfloat16", input = "bfloat16", sum = "float32", k = 16},
  tf32 = {name = "TF32", input = "float32", sum = "float32", k = 8},
  s8 = {name = "int8", input = "int8", sum = "int32", k = 32},
  u8 = {name = "uint8", input = "uint8", sum = "int32", k = 32}, -- as fast as int8
}
local LEAST = {f16 = 70, s8 = 75, u8 = 75, bf16 = 80, tf32 = 80} -- architectures
local ORDER = {"f16", "bf16", "tf32", "s8"}

local WARPS, SUMS, STEPS = 8, 8, 1 << 11 -- of a block; of a warp, that do not wait for one another; of a sum

local HEAD = [[
@T.prim_func(s_tir=True)
def peak_of_tensor_cores(A: T.Buffer((16, DEPTH), "INPUT"), B: T.Buffer((16, DEPTH), "INPUT"), C: T.Buffer((BLOCKS, WARPS, SUMS, 256), "RESULT")):
    for b in T.thread_binding(BLOCKS, thread="blockIdx.x"):
        S = T.alloc_buffer((16, ROW), "INPUT", scope="shared")
        U = T.alloc_buffer((16, ROW), "INPUT", scope="shared")
        X = T.alloc_buffer((16, DEPTH), "INPUT", scope="SCOPE.matrix_a")
        Y = T.alloc_buffer((16, DEPTH), "INPUT", scope="SCOPE.matrix_b")
        Z = T.alloc_buffer((SUMS, 256), "RESULT", scope="SCOPE.accumulator")
        for w in T.thread_binding(WARPS, thread="threadIdx.y"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
                for i in range(2):
                    if i * 256 + w * 32 + t < 16 * DEPTH:
                        S[(i * 256 + w * 32 + t) // DEPTH, (i * 256 + w * 32 + t) % DEPTH] = A[(i * 256 + w * 32 + t) // DEPTH, (i * 256 + w * 32 + t) % DEPTH]
                        U[(i * 256 + w * 32 + t) // DEPTH, (i * 256 + w * 32 + t) % DEPTH] = B[(i * 256 + w * 32 + t) // DEPTH, (i * 256 + w * 32 + t) % DEPTH]
        for w in T.thread_binding(WARPS, thread="threadIdx.y"):
            for t in T.thread_binding(32, thread="threadIdx.x"):
]]
local BY_MMA = HEAD .. [[
                T.mma_load(X.data, 0, S.access_ptr("r"), ROW, "row_major", "a")
                T.mma_load(Y.data, 0, U.access_ptr("r"), ROW, "LAYOUT", "b")
                for f in T.unroll(SUMS):
                    T.mma_fill(Z.data, f, T.RESULT(0))
                for k in range(STEPS):
                    for f in T.unroll(SUMS):
                        T.mma_sync(Z.data, f, X.data, 0, Y.data, 0, "LAYOUT")
                for f in T.unroll(SUMS):
                    T.mma_store(Z.data, f, C.access_ptr("w", offset=((b * WARPS + w) * SUMS + f) * 256), 16)
]]
local BY_WMMA = HEAD .. [[
                T.tvm_load_matrix_sync(X.data, 16, 16, 16, 0, S.access_ptr("r"), ROW, "row_major")
                T.tvm_load_matrix_sync(Y.data, 16, 16, 16, 0, U.access_ptr("r"), ROW, "row_major")
                for f in T.unroll(SUMS):
                    T.tvm_fill_fragment(Z.data, 16, 16, 16, f, T.RESULT(0))
                for k in range(STEPS):
                    for f in T.unroll(SUMS):
                        T.tvm_mma_sync(Z.data, f, X.data, 0, Y.data, 0, Z.data, f)
                for f in T.unroll(SUMS):
                    T.tvm_store_matrix_sync(Z.data, 16, 16, 16, f, C.access_ptr("w", offset=((b * WARPS + w) * SUMS + f) * 256), 16, "row_major")
]]
-- A warp group a block; others of the processor multiply while one waits. Products begin and are waited for by sixteen,
-- which what stands between them asks for: in one group they would wait for one another (C7510). The second operand
-- lies by rows, or, where elements have not 16 bits, by columns.
local BY_WGMMA = [[
@T.prim_func(s_tir=True)
def peak_of_tensor_cores(A: T.Buffer((64, DEEP), "INPUT"), B: T.Buffer((LINES, LINE), "INPUT"), C: T.Buffer((BLOCKS, 64, 256), "RESULT")):
    for b in T.thread_binding(BLOCKS, thread="blockIdx.x"):
        S = T.alloc_buffer((64, DEEP), "INPUT", scope="shared.panels")
        U = T.alloc_buffer((LINES, LINE), "INPUT", scope="shared.panels")
        Z = T.alloc_buffer((64, 256), "RESULT", scope="wgmma.accumulator")
        L = T.alloc_buffer((1,), "int32", scope="local")
        for t in T.thread_binding(128, thread="threadIdx.x"):
            for i in range(DEEP // 2):
                S[(i * 128 + t) // DEEP, (i * 128 + t) % DEEP] = A[(i * 128 + t) // DEEP, (i * 128 + t) % DEEP]
            for i in range(DEEP * 2):
                U[(i * 128 + t) // LINE, (i * 128 + t) % LINE] = B[(i * 128 + t) // LINE, (i * 128 + t) % LINE]
        for t in T.thread_binding(128, thread="threadIdx.x"):
            T.wgmma_fill(Z.data, 0, 256, T.RESULT(0))
            for k in range(STEPS):
                L[0] = k
                for i, j in T.grid(4, 4):
                    T.wgmma_mma(Z.data, 0, 256, S.access_ptr("r", offset=j * DEPTH), DEEP, U.access_ptr("r", offset=j * STEP), LINE, "LAYOUT")
            T.wgmma_store(Z.data, 0, 256, C.access_ptr("w", offset=b * 16384), 256)
]]

-- What they multiply: full-mantissa data.
local function arrays_of(func)
  local arrays = {}
  for i, p in ipairs(func:params()) do arrays[i] = ms.array(p.shape, p.type):random(i, true) end
  return arrays
end

-- The operations of a kernel on a device, and the kernel.
function tensor_peak.product_of(device, target, type)
  local by_group = target.wgmma == 1
  local t, by_mma = TYPES[type], target.arch >= 80
  local depth = not by_mma and 16 or t.k -- wmma's
  local row = depth + 16 // math.max((tonumber(t.input:match "%d+")) // 8, 1)
  local words =
    {INPUT = t.input, RESULT = t.sum, BLOCKS = 8 * device.processors, DEPTH = depth, WARPS = WARPS, SUMS = SUMS,
     STEPS = STEPS, ROW = row, SCOPE = by_mma and "mma" or "wmma", LAYOUT = t.k == 16 and "row_major" or "col_major",
     DEEP = 4 * t.k, LINES = t.k == 16 and 4 * t.k or 256, LINE = t.k == 16 and 256 or 4 * t.k,
     STEP = t.k == 16 and 256 * t.k or t.k}
  local script = (by_group and BY_WGMMA or by_mma and BY_MMA or BY_WMMA):gsub("%f[%w]%u%u%u+%f[%W]", words)
  local products = by_group and 4 * 64 * 256 * 4 * t.k or WARPS * SUMS * 256 * depth
  return 2 * words.BLOCKS * products * STEPS, ms.from_script(script, "peak_of_tensor_cores")
end

-- The target that has all that a device has, as text: sm_90's wgmma is sm_90a's.
local function whole(device) return "cuda -arch=sm_" .. device.arch .. (device.arch == 90 and "a" or "") end

-- What the tensor cores multiply in the schedules of these traces, as intrinsics name it (f16, bf16, tf32, s8); nil:
-- nothing.
function tensor_peak.type_of(traces)
  for _, trace in ipairs(traces) do
    local type = trace:text():match '"[_%l]*mma[_%l]*_%d+x%d+x%d+_(%l+%d+)%l+%d+%l+%d+[%w_]*"' -- an intrinsic's name
    if TYPES[type] then return type end
  end
end

function tensor_peak.name(type) return TYPES[type].name end
function tensor_peak.least(type) return LEAST[type] end

-- As peak.device_call: a call that does so many operations on the tensor cores of the device that runs the target's
-- code.
function tensor_peak.call(device, target, type)
  local operations, func = tensor_peak.product_of(device, target, type)
  local call = ms.build(func, {target = target.text}):prepare(table.unpack(arrays_of(func)))
  call:run() -- its arrays are on the device then
  return {call = call, work = operations}
end

-- Operations a second, by a few samples.
function tensor_peak.glance(device, target, type)
  local operations, func = tensor_peak.product_of(device, target, type)
  local seconds, low = ms.build(func, {target = target.text}):time(table.unpack(arrays_of(func)))
  return operations / (low > 0 and low or seconds) -- with too few samples, nothing is known of how low it may be
end

-- Of each type that a device's tensor cores multiply, {name, operations a second}.
function tensor_peak.all(device)
  local target, rates = ms.target(whole(device)), {}
  for _, type in ipairs(ORDER) do
    if device.arch >= LEAST[type] then
      rates[#rates + 1] = {TYPES[type].name, tensor_peak.glance(device, target, type)}
    end
  end
  return rates
end

return tensor_peak
