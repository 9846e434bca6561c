-- Constants of functions for GPUs are packed ahead, on the tests' own driver: as matrices in the order of the tiles for
-- tensor cores, what is summed over first for CUDA cores; what a kernel makes of them is what the function makes,
-- copies to shared memory are whole vectors, and the packing is exported beside.
local ms = msched
if not os.execute "g++ --version >/dev/null 2>&1" then
  print "constants: skipped: there is no g++"
  os.exit(77)
end
local own = dofile(arg[0]:match "^.*/" .. "../../support/lua/folder.lua")
local folder = own.path
local files = dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local tune, jobs_of = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../jobs.lua")

local DRAWS = 4 -- of each sketch

-- Scheduled functions of the sketches that pack, or, where `any`, of all that are for tensor cores.
local function schedules(func, target, any)
  local opened, list = tune.open(func, ms.target(target), {}), {}
  local pool = ms.pool(func, {jobs = 1, target = target})
  local made, _, script_error = pool:replay(jobs_of(opened, DRAWS * #opened.sketches, 1), false)
  pool:close()
  assert(not script_error, script_error)
  for _, c in ipairs(made) do
    local text = c and c.trace:text()
    if c and text:find(any and "mma_sync" or "layout_rewrite_preproc", 1, true) then
      list[#list + 1] = ms.apply(func, c.trace):func()
    end
  end
  return list
end

-- How many of some kernels copy the second operand by vectors to shared memory.
local function vectors_in(list, target)
  local count = 0
  for _, scheduled in ipairs(list) do
    local cut = scheduled:packing()
    ms.build(cut and cut.kernel or scheduled, {target = target, load = false}):export(folder .. "/copies.cu", "copies")
    local text = files.read(folder .. "/copies.cu")
    local loads = text:find "%*%(const %w+[248] %*%)%([WB][_ ]" or text:find "ms_copy_16%([^\n]*[^%w_][WB][_ ]"
    count = count + (loads and 1 or 0)
  end
  return count
end

local function run(func, kernel)
  local own, want = ms.arrays_for(func, 3), ms.arrays_for(func, 3)
  kernel:run(table.unpack(own))
  ms.interpret(func, table.unpack(want))
  local difference = own[#own]:difference(want[#want])
  assert(difference <= 1e-3, difference)
end

local function check(operator, arguments)
  local func, target = ms.ops.func(operator, arguments), "cuda -arch=sm_90"
  local list = schedules(func, target)
  assert(#list > 0, operator .. ": no sketch packs its constant")
  assert(vectors_in(list, target) > 0, operator .. ": constants are copied element by element")
  for i = 1, #list, DRAWS - 1 do
    local scheduled = list[i]
    ms.check_lowered(func, scheduled, target, 1)
    local cut = assert(scheduled:packing(), "nothing is packed")
    assert(#cut.pack:params() == 2 and #cut.kernel:params() == 3)
    local kernel = ms.build(scheduled, {target = target, reference = func})
    local asked = kernel:resources()
    assert(#asked == 1 and asked[1].name:find "_kernel_0$", "what packs is no kernel of a run")
    run(func, kernel)
    local given = ms.arrays_for(func, 1)
    local taken, why = pcall(ms.sequence, {{kernel, table.unpack(given)}})
    why = type(why) == "table" and why.message or tostring(why)
    assert(not taken and why:find("a kernel of a sequence packs constants ahead", 1, true), why)
    if i == 1 then
      kernel:export(folder .. "/packs.h", "packs")
      kernel:export(folder .. "/packs.c", "packs")
      local header, source = files.read(folder .. "/packs.h"), files.read(folder .. "/packs.c")
      assert(header:find("packs_pack_launch does it, once", 1, true) and header:find("int packs_pack_launch(", 1, true))
      assert(source:find('"packs_pack_kernel_0"', 1, true) and source:find('"packs_kernel_0"', 1, true))
    end
  end
end

local HALF = {dtype = "float16", accumulate = "float32", constant = true}
local function with(base, more)
  local all = {}
  for key, value in pairs(base) do all[key] = value end
  for key, value in pairs(more) do all[key] = value end
  return all
end
check("dense", with(HALF, {m = 32, ci = 32, co = 64}))
check("matmul", {m = 32, n = 32, k = 64, dtype = "int8", accumulate = "int32", constant = true})
check("conv2d", with(HALF, {n = 1, h = 8, w = 8, ci = 16, co = 32, kernel = 3, pad = 1}))
check("dense", {m = 32, ci = 32, co = 64, constant = true})

-- What is no constant is transposed on the way to shared memory, element by element.
do
  local target = "cuda -arch=sm_90"
  local func = ms.ops.func("dense", with(HALF, {m = 32, ci = 32, co = 64, constant = false}))
  local list = schedules(func, target, true)
  assert(#list > 0 and vectors_in(list, target) == 0)
end

-- As tiles of it lie, nothing is packed; nor is it for TMA.
for _, each in ipairs {with(HALF, {m = 64, n = 64, k = 64}), {m = 64, n = 64, k = 64, constant = true}} do
  local list = schedules(ms.ops.func("matmul", each), "cuda -arch=sm_80")
  assert(#list == 0, "a matrix is packed that lies as it is read")
end
local wide = ms.ops.func("dense", with(HALF, {m = 64, ci = 64, co = 64}))
for _, scheduled in ipairs(schedules(wide, "cuda -arch=sm_90a")) do
  assert(not scheduled:script():find("wgmma", 1, true), "TMA copies matrices as they lie")
end

-- Bytes that wgmma reads by columns alone are packed so, and TMA brings them.
do
  local target, packed, brought = "cuda -arch=sm_90a", 0, 0
  local bytes = {m = 128, n = 128, k = 256, dtype = "int8", accumulate = "int32", constant = true}
  local func = ms.ops.func("matmul", bytes)
  for i, scheduled in ipairs(schedules(func, target)) do
    if scheduled:script():find("wgmma", 1, true) then
      packed = packed + 1
      if packed <= 2 then ms.check_lowered(func, scheduled, target, 1) end
      ms.build(scheduled:packing().kernel, {target = target, load = false}):export(folder .. "/bytes.cu", "bytes")
      local text = files.read(folder .. "/bytes.cu")
      local by_tma = text:find "ms_tensor_copy_2d%(ms_at_B" or text:find "ms_multicast_copy_2d%(ms_at_B"
      brought = brought + (by_tma and 1 or 0)
    end
  end
  assert(packed > 2 and brought > 0, string.format("%d are packed, TMA brings %d", packed, brought))
  bytes.constant = false
  for _, s in ipairs(tune.open(ms.ops.func("matmul", bytes), ms.target(target), {}).sketches) do
    local text = s.trace:text()
    assert(not (text:find("wgmma", 1, true) and text:find("tensor_copies", 1, true)), "TMA is to transpose bytes")
  end
end

-- Candidates are measured with their constants packed before.
local func = ms.ops.func("dense", with(HALF, {m = 32, ci = 32, co = 64}))
local result = ms.tune(func, {target = "cuda -arch=sm_90", trials = 4, db = folder .. "/packs.db"})
assert(result.seconds > 0 and result.trace:text():find("layout_rewrite_preproc", 1, true))
own.run("rm -rf %s", folder)
print "constants of GPUs: ok"
