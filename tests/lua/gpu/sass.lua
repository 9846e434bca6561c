-- What the main kernels are as machine code, without a GPU: the candidate that the analytical model ranks first, made a
-- cubin by NVRTC, disassembled, and held against bounds (support/data/sass.lua). No kernel spills, has its wgmma
-- serialized, or fences the whole device in its main loop. Before all: what is counted of a text of the test's own, and
-- that a bound which is passed is said. Without nvdisasm that is all.
-- usage: msched sass.lua [NVDISASM] [KERNEL…]      KERNEL: a name of the data; without a name all
local ms = require "msched"
local tune, named = ms.load "search.tune", ms.load "lua.lib.ops.named"
local tests = arg[0]:match "^.*/" .. "../../"
local files, sass = dofile(tests .. "support/lua/files.lua"), dofile(tests .. "support/lua/sass.lua")
local KERNELS = dofile(tests .. "support/data/sass.lua")

-- ---- What is held against bounds ----------------------------------------------------------------------------------

local function share(part, whole) return whole > 0 and part / whole or nil end

-- Numbers of a kernel, by the names that bounds have; resources: as ptxas reports them.
local function quantities(kernel, resources)
  local all, loop = kernel.all, kernel.loop
  local q = {registers = resources.registers, spilled_bytes = resources.spill_stores + resources.spill_loads,
             device_fences = 0, spills = all.spill, serialized = resources.serialized and 1 or 0,
             instructions = all.instructions,
             global_loads = all.global_loads, global_stores = all.global_stores,
             wide_loads = share(all.wide_global_loads, all.global_loads),
             wide_stores = share(all.wide_global_stores, all.global_stores),
             wide_copies = share(all.wide_copies, all.copies), tensor_copies = all.tensor_copies}
  if not loop then return q end
  q.loop, q.device_fences = loop.instructions, loop.device_fences
  q.loop_loads, q.loop_stores = loop.global_loads, loop.global_stores
  q.wide_shared = share(loop.wide_shared_loads, loop.shared_loads)
  if loop.products == 0 then return q end
  q.products, q.share = loop.products, loop.products / loop.instructions
  for _, class in ipairs {"address", "barrier", "shared", "move", "float"} do q[class] = loop[class] / loop.products end
  q.waits, q.drains = loop.waits / loop.products, loop.drains
  return q
end

local ALWAYS = {most = {spills = 0, spilled_bytes = 0, serialized = 0, device_fences = 0}}

-- What passes a bound, in words.
local function passed(q, bounds)
  local list = {}
  for _, each in ipairs {{"most", 1}, {"least", -1}} do
    local which, sign = table.unpack(each)
    for _, name in ipairs(ms.sorted_keys(bounds[which] or {})) do
      local bound, got = bounds[which][name], q[name]
      if not got then list[#list + 1] = string.format("there is no %s, which is bounded", name)
      elseif sign * got > sign * bound then
        list[#list + 1] = string.format("%s is %.4g, and at %s %.4g", name, got, which, bound)
      end
    end
  end
  return list
end

-- ---- The counts themselves ----------------------------------------------------------------------------------------

local TEXT = [[
.text.two_loops:
        /*0000*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0010*/                   LDG.E R8, desc[UR4][R2.64] ;
.L_x_3:
        /*0020*/                   MOV R1, R2 ;
.L_x_1:
        /*0030*/              @!P1 SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R2 ;
        /*0040*/              @!P0 BRA `(.L_x_4) ;
.L_x_2:
        /*0050*/                   HGMMA.64x256x16.F32 R24, gdesc[UR12].tnspB, R24 ;
        /*0060*/                   UIADD3 UR4, UR4, 0x2, URZ ;
        /*0070*/                   HGMMA.64x256x16.F32 R24, gdesc[UR12].tnspB, R24, gsb0 ;
        /*0080*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0090*/                   MEMBAR.ALL.GPU ;
        /*00a0*/               @P1 BRA `(.L_x_1) ;
        /*00b0*/                   FFMA R1, R1, R1, R1 ;
        /*00c0*/                   STL [R1], R2 ;
        /*00d0*/               @P2 BRA `(.L_x_3) ;
        /*00e0*/                   STG.E.U16 desc[UR4][R2.64], R7 ;
        /*00f0*/                   EXIT ;
.L_x_4:
        /*0100*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR9], R2 ;
        /*0110*/              @!P0 BRA `(.L_x_4) ;
        /*0120*/                   BRA `(.L_x_2) ;
.L_x_5:
        /*0130*/                   BRA `(.L_x_5);
.text.floats:
.L_x_6:
        /*0000*/                   LDS.128 R4, [R2] ;
        /*0010*/                   LDS R8, [R2] ;
        /*0020*/                   FFMA R1, R4, R8, R1 ;
        /*0030*/                   FFMA R2, R4, R8, R2 ;
        /*0040*/               @P0 BRA `(.L_x_6) ;
        /*0050*/                   EXIT ;
]]

local function same(got, want)
  for name, x in pairs(want) do
    assert(got[name] == x, string.format("%s is %s, and not %s", name, tostring(got[name]), tostring(x)))
  end
end

local function check_counts()
  local list = sass.kernels(TEXT)
  assert(#list == 2 and list[1].name == "two_loops" and list[2].name == "floats")
  same(list[1].all, {instructions = 20, tensor = 2, spill = 1, other = 0})
  same(list[1].loop, {instructions = 8, products = 2, address = 1, barrier = 3, control = 2})
  local resources = {registers = 168, spill_stores = 0, spill_loads = 0, serialized = false}
  local q = quantities(list[1], resources)
  same(q, {spills = 1, share = 0.25, address = 0.5, waits = 0.5, drains = 1})
  same(q, {device_fences = 1, wide_loads = 0.5, wide_stores = 0})
  same(quantities(list[2], resources), {share = 0.4, wide_shared = 0.5, shared = 1, spills = 0})
  same(passed(q, ALWAYS), {"device_fences is 1, and at most 0", "spills is 1, and at most 0"})
  same(passed(q, {most = {registers = 168, address = 0.4}, least = {share = 0.3, wide_shared = 1}}),
       {"address is 0.5, and at most 0.4", "share is 0.25, and at least 0.3",
        "there is no wide_shared, which is bounded", nil})
  assert(#passed(q, {most = {registers = 168, device_fences = 1}, least = {share = 0.25}}) == 0)
end

check_counts()
local nvdisasm = arg[1]
if not nvdisasm then
  print "sass: ok, without nvdisasm: tests/run sass"
  os.exit(0)
end

-- ---- The kernels --------------------------------------------------------------------------------------------------

local wanted = {}
for i = 2, #arg do wanted[arg[i]] = true end

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function disassembled(kernel)
  kernel:export(folder .. "/kernel.cubin")
  local text = files.capture(string.format("'%s' -c %s/kernel.cubin", nvdisasm, folder))
  local list = sass.kernels(text)
  assert(#list > 0, "nvdisasm says nothing of a cubin")
  return list
end

local function text_of(names, q)
  local list = {}
  for _, name in ipairs(names) do
    if q[name] then list[#list + 1] = string.format("%s %.4g", name:gsub("_", " "), q[name]) end
  end
  return table.concat(list, ", ")
end

local WHOLE = {"registers", "instructions", "spills", "serialized", "global_loads", "wide_loads", "global_stores",
               "wide_stores", "wide_copies", "tensor_copies"}
local LOOP = {"loop", "products", "share", "address", "barrier", "waits", "drains", "shared", "wide_shared", "move",
              "float", "device_fences", "loop_loads", "loop_stores"}

-- The kernel that has most instructions is the main one; of all none spills.
local function check(each, store)
  local words = {}
  for word in each.words:gmatch "%S+" do words[#words + 1] = word end
  local func, target = named.func(each.operator, words), "cuda -arch=" .. each.arch
  local task = tune.run(func, {target = target, store = store, no_tune = true})
  assert(task.fastest, tune.why(task))
  local kernel = ms.build(ms.apply(func, task.fastest.trace):func(), {target = target})
  local resources, main, said = {}, nil, {}
  for _, r in ipairs(kernel:resources(true)) do resources[r.name] = r end
  for _, k in ipairs(disassembled(kernel)) do
    local q = quantities(k, assert(resources[k.name], k.name))
    for _, what in ipairs(passed(q, ALWAYS)) do said[#said + 1] = k.name .. ": " .. what end
    if not main or q.instructions > main.instructions then main = q end
  end
  print(string.format("%s (%s %s, %s)\n  %s", each.name, each.operator, each.words, each.arch, text_of(WHOLE, main)))
  if main.loop then print("  its main loop: " .. text_of(LOOP, main)) end
  for _, what in ipairs(passed(main, each)) do said[#said + 1] = each.name .. ": " .. what end
  return said
end

local failed, count = {}, 0
local store = ms.store(folder .. "/store.db")
for _, each in ipairs(KERNELS) do
  if not next(wanted) or wanted[each.name] then
    table.move(check(each, store), 1, 100, #failed + 1, failed)
    count = count + 1
  end
end
store = nil
collectgarbage() -- closes it
os.execute("rm -r " .. folder)
assert(count > 0, "no kernel has such a name")
assert(#failed == 0, "sass: bounds of tests/support/data/sass.lua are passed:\n" .. table.concat(failed, "\n"))
print(string.format("sass: %d kernels are within their bounds", count))
