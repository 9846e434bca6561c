-- Vendors' routines on a GPU compute what the named operators do, each element, on the device's own memory, and are
-- timed with kernels by its clock; on a driver, a cuBLAS and a cuDNN of the tests' own.
-- usage: msched bench_device.lua TARGET
local ms = msched
local named = ms.load "lua.lib.ops.named"
local support = dofile(arg[0]:match "^.*/" .. "../../support/lua/vendors.lua")
local target = arg[1]

local vendors, notes = ms.device_vendors(target)
assert(#vendors == 3 and #notes == 0)
local cublas, cublaslt, cudnn = vendors[1], vendors[2], vendors[3]
assert(cublas:name() == "cuBLAS" and tostring(cublas) == "cuBLAS 12.4.5" and cudnn:name() == "cuDNN"
       and tostring(cudnn) == "cuDNN 9.4.5")
local none, nothing = ms.device_vendors "native"
assert(#none == 0 and #nothing == 0)

assert(cublaslt:name() == "cuBLASLt" and tostring(cublaslt) == "cuBLASLt 12.4.5")
for _, case in ipairs(support.products) do
  assert(support.compare(cublas, case[1], case[2]) and support.compare(cublaslt, case[1], case[2]), case[1])
  assert(not support.call_of(cudnn, case[1], case[2]), "cuDNN multiplies matrices")
end
for _, case in ipairs(support.short_products) do
  for _, result in ipairs {"float32", case[2]:match "dtype=(%w+)"} do
    assert(support.compare(cublas, case[1], case[2], result) and support.compare(cublaslt, case[1], case[2], result),
           case[1])
  end
  assert(not support.call_of(cudnn, case[1], case[2]), "cuDNN multiplies matrices")
end
for _, list in ipairs {support.others, support.short_others} do
  for _, case in ipairs(list) do
    assert(support.compare(cudnn, case[1], case[2]), case[1])
    assert(not support.call_of(cublas, case[1], case[2]) and not support.call_of(cublaslt, case[1], case[2]),
           "cuBLAS has more than products")
  end
end
-- Sums of short floats are given as such: who asks is told how far they may be off. Of float32 nothing is rounded.
for dtype, rounding in pairs {float32 = 0, float16 = 2 ^ -11, bfloat16 = 2 ^ -8} do
  assert(support.call_of(cudnn, "conv2d", "1 6 6 4 4 dtype=" .. dtype):rounding() == rounding, dtype)
end

-- A kernel beside them: all by the device's clock, with nothing of the copies to the device and back. Of a convolution
-- the fastest algorithm is taken.
local func = named.func("matmul", {16, 16, 16})
local sch = ms.schedule(func)
sch:bind((sch:get_loops(sch:get_sblock(sch:block_names()[#sch:block_names()]))), "threadIdx.x")
local arrays = ms.arrays_for(func, 1)
local calls, filled = {ms.build(sch:func(), {target = target}):prepare(table.unpack(arrays))}, {{func, arrays}}
for _, case in ipairs {{"matmul", "16 16 16"}, {"conv2d", "1 12 10 8 12 3 1 2 2"},
                       {"conv2d_transpose", "2 4 5 6 8 4 2 1"}, {"softmax", "7x33"}, {"norm", "3x8x9"}} do
  local call, _, _, given, of = support.call_of(case[1] == "matmul" and cublas or cudnn, case[1], case[2])
  calls[#calls + 1], filled[#filled + 1] = call, {of, given}
end
local function expect_times(ease)
  for _, call in ipairs(calls) do call:run() end
  local times = ms.time_in_turn(calls, 0.01)
  for i, seconds in ipairs {0.005, 0.01, 0.01, 0.01, 0.01, 0.01} do
    assert(math.abs(times[i].seconds - ease * seconds) < 1e-5, i .. ": " .. times[i].seconds)
  end
end
-- They go on with what the arrays hold when they are run. This device is faster on small whole numbers; those that are
-- timed are none.
expect_times(0.5)
for _, f in ipairs(filled) do
  assert(ms.fill_for_timing(f[1], f[2], target) and not ms.fill_for_timing(f[1], f[2], "native"))
end
expect_times(1)
local steps = ms.te.placeholder({8}, "float32", "X")
local floored = ms.te.func("floored", {steps, ms.te.compute({8}, function(i) return ms.te.floor(steps[i]) end, "Y")})
assert(not ms.fill_for_timing(floored, ms.arrays_for(floored, 1), target), "what steps depend on is changed")

-- What tuning is shown beside: the fastest routine of the device's libraries.
local beside = ms.load "lua.vendor.baseline".vendors()
for _, case in ipairs {{"matmul", {16, 16, 16}, "cuBLAS"}, {"softmax", {"7x33"}, "cuDNN"}} do
  local best = beside(named.func(case[1], case[2]), ms.target(target))
  assert(best.name == case[3] and math.abs(best.seconds - 0.01) < 1e-5, case[1] .. " takes " .. best.seconds)
end
assert(not beside(floored, ms.target(target)), "no library has it")
print "bench_device: ok"
