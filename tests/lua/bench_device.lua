-- Vendors' routines on a GPU compute what the named operators do, each element, on the device's own memory, and are timed
-- with kernels by its clock; on a driver and a cuBLAS of the tests' own.
-- usage: msched bench_device.lua TARGET
local ms = msched
local named, work = ms.load "lua.ops.named", ms.load "lua.bench_work"
local target = arg[1]

local vendors = ms.device_vendors(target)
assert(#vendors == 1 and vendors[1]:name() == "cuBLAS" and tostring(vendors[1]) == "cuBLAS 12.4.5")
assert(#ms.device_vendors "native" == 0)

local function call_of(operator, words)
  local func = named.func(operator, words)
  local arrays = ms.arrays_for(func, 1)
  ms.build(func):run(table.unpack(arrays))
  local result = arrays[#arrays]
  local other = ms.array(result:shape(), "float32", -77)
  local w = work.of(operator, named.values(operator, words), arrays)
  return vendors[1]:prepare(work.into(w, other)), result, other
end

local call
for _, case in ipairs {{"matmul", 17, 33, 29}, {"batch_matmul", 3, 17, 33, 29}, {"batch_matmul", 1, 17, 33, 29}, {"dense", 5, 12, 20}, {"matmul", 1, 8, 1}} do
  local made, result, other = call_of(case[1], {table.unpack(case, 2)})
  made:run()
  assert(result:difference(other) <= 1e-5, table.concat(case, " "))
  call = made
end
assert(not call_of("softmax", {"7x33"}), "a routine for what it has none")

-- A kernel beside it: both by the device's clock, with nothing of the copies to the device and back.
local func = named.func("matmul", {16, 16, 16})
local sch = ms.schedule(func)
sch:bind((sch:get_loops(sch:get_sblock(sch:block_names()[#sch:block_names()]))), "threadIdx.x")
local kernel = ms.build(sch:func(), {target = target}):prepare(table.unpack(ms.arrays_for(func, 1)))
local times = ms.time_in_turn({kernel, call}, 0.01)
assert(math.abs(times[1].seconds - 4e-3) < 1e-5 and math.abs(times[2].seconds - 8e-3) < 1e-5, times[1].seconds .. " " .. times[2].seconds)
print "bench_device: ok"
