-- Vectors of elements a few apart, which are read as whole vectors: as the interpreter has them, for each type, stride
-- and width, where the last element is the buffer's last, where a mask leaves some out; without an instruction an
-- element.
-- usage: msched strided_loads.lua
local ms = require "msched"
local te = ms.te

-- Y[i] = X[i * stride + from], its loop of so many vectors of so many lanes; the buffer ends with the last element.
local function scheduled(type, stride, lanes, from)
  local n = 3 * lanes
  local X = te.placeholder({(n - 1) * stride + 1 + from}, type, "X")
  local func = te.func("f", {X, te.compute({n}, function(i) return X[{i * stride + from}] end, "Y")})
  local sch = ms.schedule(func)
  local _, inner = sch:split(sch:get_loops(sch:get_sblock "Y"), {ms.rest, lanes})
  sch:vectorize(inner)
  return sch, func
end

local function build(sch, func, target) return ms.build(sch:func(), {target = target, reference = func}) end

local checked = 0
for _,
    type in ipairs {"bool", "int8", "uint8", "int16", "float16", "bfloat16", "int32", "float32", "int64", "float64"} do
  for stride = 2, 5 do
    for _, lanes in ipairs {2, 6, 16, 64} do
      local sch, func = scheduled(type, stride, lanes, stride % 3)
      build(sch, func, "native"):check()
      checked = checked + 1
    end
  end
end
-- Lanes that a condition leaves out are not read: the last vector is cut.
for stride = 2, 4 do
  local X = te.placeholder({18 * stride + 1}, "float32", "X")
  local func = te.func("cut", {X, te.compute({19}, function(i) return X[{i * stride}] end, "Y")})
  local sch = ms.schedule(func)
  local _, inner = sch:split(sch:get_loops(sch:get_sblock "Y"), {ms.rest, 8})
  sch:vectorize(inner)
  build(sch, func, "native"):check()
end

if ms.target "native".text:find "znver" or ms.host().features:find("avx2", 1, true) then
  for _, target in ipairs {"llvm -mcpu=x86-64-v3 -num-cores=1", "llvm -mcpu=x86-64-v4 -num-cores=1"} do
    for stride = 2, 4 do
      local sch, func = scheduled("float32", stride, 16, 0)
      local text = assert(ms.load "lua.cli.store.record_code".text(build(sch, func, target)))
      assert(not text:find "vinsertps", target .. ", stride " .. stride .. ": an instruction an element")
    end
  end
end

-- Stores of one loop to places that come back: each element has what the last iteration stores. LLVM's vectorizer would
-- put all of the first store before all of the second.
local back = ms.from_script [[
@T.prim_func
def back(A: T.Buffer((8,), "int32"), P: T.Buffer((12,), "int32")):
    for f in range(12):
        A[f // 6] = f // 6
        for k in range(4):
            y: T.let[T.int32] = f % 6
            if y < 3:
                A[f // 6] = P[3]
]]
local P, A = ms.array({12}, "int32", {1, 2, 3, -7, 5, 6, 7, 8, 9, 10, 11, 12}), ms.array({8}, "int32", 0)
ms.build(back, {target = "native"})(A, P)
assert(table.concat(A:tolist(), " ") == "0 1 0 0 0 0 0 0", table.concat(A:tolist(), " "))
print(string.format("%d vectors of elements that are apart, as the interpreter has them", checked))
