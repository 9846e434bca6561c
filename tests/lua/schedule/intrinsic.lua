-- Tensor intrinsics defined in Lua: of tensor expressions, of a schedule, of TVMScript; used by a schedule; refused.
local ms = require "msched"
local te = ms.te

local function product(name, m, n, k, type)
  local A, B = te.placeholder({m, k}, type, "A"), te.placeholder({k, n}, type, "B")
  local r = te.reduce_axis(k, "k")
  local C = te.compute({m, n}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")
  return te.func(name, {A, B, C})
end

-- The implementation is the expression, scheduled.
local impl = ms.schedule(product("impl", 4, 8, 4, "float32"))
local i, j, k = impl:get_loops(impl:get_sblock "C")
impl:reorder(k, i, j)
impl:vectorize(j)
impl:unroll(i)
ms.intrinsic {name = "tile_4x8x4", desc = product("desc", 4, 8, 4, "float32"), impl = impl}

local function tiled(func)
  local sch = ms.schedule(func)
  local block = sch:get_sblock "C"
  local loops, outer, inner = {sch:get_loops(block)}, {}, {}
  for n, size in ipairs {4, 8, 4} do outer[n], inner[n] = sch:split(loops[n], {ms.rest, size}) end
  sch:reorder(outer[1], outer[2], outer[3], inner[1], inner[2], inner[3])
  sch:decompose_reduction(block, outer[3])
  return sch, inner[1]
end

local gemm = product("gemm", 16, 16, 16, "float32")
local sch, inner = tiled(gemm)
sch:tensorize(inner, "tile_4x8x4")
assert(tostring(sch):find("T.match_buffer", 1, true) and tostring(sch):find("T.vectorized(8)", 1, true), tostring(sch))
assert(sch:build():check() == 0)

-- A trace that names it runs where it is defined.
local again = ms.apply(gemm, sch.trace)
assert(tostring(again) == tostring(sch))
assert(tostring(sch:copy()) == tostring(sch))
sch:undo()

-- TVMScript.
local text = [[
@T.prim_func(s_tir=True)
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    with T.sblock("root"):
        T.reads(A[0:4])
        T.writes(B[0:4])
        for i in range(4):
            with T.sblock("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)
]]
ms.intrinsic {name = "twice", desc = text, impl = text:gsub("A%[vi%] %* T.float32%(2%)", "A[vi] + A[vi]")}
local A = te.placeholder({8}, "float32", "A")
local double = ms.schedule(te.func("double", {A, te.compute({8}, function(x) return A[x] * 2.0 end, "B")}))
local x = double:get_loops(double:get_sblock "B")
local _, x1 = double:split(x, {ms.rest, 4})
double:tensorize(x1, "twice")
assert(double:build():check() == 0)

-- What is refused.
local function refused(what, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(what, 1, true), what .. " is not in: " .. tostring(message))
end
local desc = product("desc", 4, 8, 4, "float32")
refused("there is an intrinsic `twice` already", ms.intrinsic, {name = "twice", desc = text, impl = text})
refused("`name` is a string", ms.intrinsic, {desc = text, impl = text})
refused("`desc` is a function", ms.intrinsic, {name = "a", impl = text})
refused("`impl` is a function", ms.intrinsic, {name = "a", desc = text, impl = 1})
refused("is expected", ms.intrinsic, {name = "a", desc = text, impl = text:gsub("T.float32%(2%)", "T.float32(3)")})
refused("parameter A has another shape", ms.intrinsic,
        {name = "a", desc = desc, impl = product("impl", 4, 8, 8, "float32")})
refused("there is no tensor intrinsic `nothing`", function()
  local s, at = tiled(gemm)
  s:tensorize(at, "nothing")
end)
refused("description", function()
  local s, at = tiled(product("gemm", 16, 16, 16, "float64"))
  s:tensorize(at, "tile_4x8x4")
end)
-- An implementation that sets its result to zero first is no update.
local zeroed = ms.schedule(desc)
zeroed:decompose_reduction(zeroed:get_sblock "C", (zeroed:get_loops(zeroed:get_sblock "C")))
refused("is expected", ms.intrinsic, {name = "a", desc = desc, impl = zeroed})
print "intrinsics in Lua: ok"
