-- Vendors' routines on a GPU compute what the named operators do, each element, on the device's own memory, and are timed
-- with kernels by its clock; on a driver, a cuBLAS and a cuDNN of the tests' own.
-- usage: msched bench_device.lua TARGET
local ms = msched
local named = ms.load "lua.ops.named"
local support = dofile(arg[0]:match "^.*/" .. "../support/vendors.lua")
local target = arg[1]

local vendors, notes = ms.device_vendors(target)
assert(#vendors == 2 and #notes == 0)
local cublas, cudnn = vendors[1], vendors[2]
assert(cublas:name() == "cuBLAS" and tostring(cublas) == "cuBLAS 12.4.5" and cudnn:name() == "cuDNN" and tostring(cudnn) == "cuDNN 9.4.5")
local none, nothing = ms.device_vendors "native"
assert(#none == 0 and #nothing == 0)

for _, case in ipairs(support.products) do
  assert(support.compare(cublas, case[1], case[2]), case[1])
  assert(not support.call_of(cudnn, case[1], case[2]), "cuDNN multiplies matrices")
end
for _, case in ipairs(support.short_products) do
  assert(support.compare(cublas, case[1], case[2]), case[1])
  assert(not support.call_of(cudnn, case[1], case[2]), "cuDNN multiplies matrices")
end
for _, case in ipairs(support.others) do
  assert(support.compare(cudnn, case[1], case[2]), case[1])
  assert(not support.call_of(cublas, case[1], case[2]), "cuBLAS has more than products")
end

-- A kernel beside them: all by the device's clock, with nothing of the copies to the device and back. Of a convolution the
-- fastest algorithm is taken.
local func = named.func("matmul", {16, 16, 16})
local sch = ms.schedule(func)
sch:bind((sch:get_loops(sch:get_sblock(sch:block_names()[#sch:block_names()]))), "threadIdx.x")
local kernel = ms.build(sch:func(), {target = target}):prepare(table.unpack(ms.arrays_for(func, 1)))
local calls = {kernel, (support.call_of(cublas, "matmul", "16 16 16"))}
for _, case in ipairs {{"conv2d", "1 12 10 8 12 3 1 2 2"}, {"conv2d_transpose", "2 4 5 6 8 4 2 1"}, {"softmax", "7x33"}, {"norm", "3x8x9"}} do
  calls[#calls + 1] = support.call_of(cudnn, case[1], case[2])
  calls[#calls]:run()
end
local times = ms.time_in_turn(calls, 0.01)
for i, seconds in ipairs {0.005, 0.01, 0.01, 0.01, 0.01, 0.01} do
  assert(math.abs(times[i].seconds - seconds) < 1e-5, i .. ": " .. times[i].seconds)
end
print "bench_device: ok"
