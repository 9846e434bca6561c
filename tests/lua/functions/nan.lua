-- NaN: max and min leave it out, whatever computes them and in whatever order; floats are not folded as if there were
-- none.
local ms = require "msched"
local te = ms.te
local nan, inf = 0 / 0, 1 / 0

local function is(x, y) return x == y or (x ~= x and y ~= y) end

local function expect(what, array, wanted)
  for i, x in ipairs(array:tolist()) do
    assert(is(x, wanted[i]), ("%s: element %d is %s, not %s"):format(what, i, x, wanted[i]))
  end
end

-- Interpreted, and compiled for this machine and for what older ones have.
local targets = {"llvm", "x86-64-v2", "x86-64-v3", "x86-64-v4"}
local built = 0
local function everywhere(what, f, wanted, ...)
  local arrays = {...}
  ms.interpret(f, table.unpack(arrays))
  expect(what .. ", interpreted", arrays[#arrays], wanted)
  for _, target in ipairs(targets) do
    local good, kernel = pcall(ms.build, f, {target = target})
    if good then
      local done, message = pcall(kernel, table.unpack(arrays))
      if done then
        built = built + 1
        expect(what .. ", " .. target, arrays[#arrays], wanted)
      else
        assert(tostring(message):find "machine" or tostring(message):find "CPU" or tostring(message):find "has no",
               message)
      end
    end
  end
end

-- ---- Elements, at vectors of all widths ----

local special = {5, nan, -inf, inf, 1, -2, nan, 0}
local function at(p) return special[p % 8 + 1] end
local function other(p) return special[p // 8 % 8 + 1] end
for _, type in ipairs {"float32", "float64", "float16", "bfloat16"} do
  local X, Y = te.placeholder({192}, type, "X"), te.placeholder({192}, type, "Y")
  for _, most in ipairs {true, false} do
    local name = (most and "max" or "min") .. " of " .. type
    local f = te.func("m", {X, Y, te.compute({192}, function(i)
      return (most and te.maximum or te.minimum)(X[{i}], Y[{i}])
    end, "Z")})
    local wanted, x, y = {}, ms.array({192}, type, at), ms.array({192}, type, other)
    for p = 0, 191 do
      local a, b = at(p), other(p)
      wanted[p + 1] = a ~= a and b or b ~= b and a or (most and math.max or math.min)(a, b)
    end
    for _, lanes in ipairs {1, 2, 3, 4, 8, 16, 32, 64, 192} do
      local s = ms.schedule(f)
      if lanes > 1 then s:vectorize((select(2, s:split((s:get_loops(s:get_sblock "Z")), {ms.rest, lanes})))) end
      everywhere(("%s, %d lanes"):format(name, lanes), s:func(), wanted, x, y, ms.array({192}, type))
    end
    for first = 0, 1 do -- of elements that are held in between, which may be NaN, too
      local T = te.compute({192}, function(i) return X[{i}] * 1.0 end, "T")
      local g = te.func("h", {X, Y, te.compute({192}, function(i)
        local m = most and te.maximum or te.minimum
        return first == 1 and m(T[{i}], Y[{i}]) or m(Y[{i}], T[{i}])
      end, "Z")})
      everywhere(name .. " held in between", g, wanted, x, y, ms.array({192}, type))
    end
    for _, constant in ipairs {0, nan} do -- as ReLU has it, on either side
      for left = 0, 1 do
        local g = te.func("c", {X, te.compute({192}, function(i)
          local c = te.const(constant, type)
          local m = most and te.maximum or te.minimum
          return left == 1 and m(c, X[{i}]) or m(X[{i}], c)
        end, "Z")})
        for p = 0, 191 do
          local a, b = at(p), constant
          wanted[p + 1] = a ~= a and b or b ~= b and a or (most and math.max or math.min)(a, b)
        end
        everywhere(("%s and %s"):format(name, constant), g, wanted, x, ms.array({192}, type))
      end
    end
  end
end

-- ---- Reductions, in every order ----

local rows = {}
for r = 0, 7 do
  for k = 0, 31 do rows[#rows + 1] = ((k * 7 + r * 5) % 11 < r) and nan or ((k * 13 + r * 3) % 17 - 8) end
end
for _, type in ipairs {"float32", "float64", "float16"} do
  local X, k = te.placeholder({8, 32}, type, "X"), te.reduce_axis(32, "k")
  local f = te.func("r", {X, te.compute({8}, function(i) return te.max(X[{i, k}], k) end, "Y")})
  local wanted = {}
  for r = 0, 7 do
    local most = -inf
    for c = 1, 32 do
      local v = rows[r * 32 + c]
      if v > most then most = v end
    end
    wanted[r + 1] = most
  end
  local steps = {
    plain = function() end,
    rfactor = function(s, i, l) s:rfactor((select(2, s:split(l, {8, 4}))), 0) end,
    outer = function(s, i, l) s:rfactor((s:split(l, {8, 4})), 1) end,
    reorder = function(s, i, l) local a, b = s:split(l, {8, 4}) s:reorder(b, a) end,
    rows = function(s, i, l) s:reorder(l, i) s:decompose_reduction(s:get_sblock "Y", l) end,
    lanes = function(s, i, l)
      local b = s:rfactor((select(2, s:split(l, {4, 8}))), 0)
      local loops = {s:get_loops(b)}
      s:vectorize(loops[3])
    end,
    unrolled = function(s, i, l) s:unroll(l) end,
  }
  for name, step in pairs(steps) do
    local s = ms.schedule(f)
    step(s, s:get_loops(s:get_sblock "Y"))
    everywhere(type .. ", " .. name, s:func(), wanted, ms.array({8, 32}, type, rows), ms.array({8}, type))
  end
  -- Threads that reduce together, interpreted.
  local s = ms.schedule(f)
  local i, l = s:get_loops(s:get_sblock "Y")
  s:bind(i, "blockIdx.x")
  s:bind((select(2, s:split(l, {4, 8}))), "threadIdx.x")
  local y = ms.array({8}, type)
  ms.interpret(s:func(), ms.array({8, 32}, type, rows), y)
  expect(type .. ", threads", y, wanted)
end

-- ---- Arg reductions: NaN is never the best, in every order ----

for _, type in ipairs {"float32", "float64", "float16"} do
  for _, most in ipairs {true, false} do
    local X, k = te.placeholder({9, 32}, type, "X"), te.reduce_axis(32, "k")
    local I, V = te.compute({9}, function(i) return (most and te.argmax or te.argmin)({k, X[{i, k}]}, k) end, "Y")
    local f = te.func("a", {X, I, V})
    local data, places, values = {}, {}, {}
    local worst = ms.array({1}, type, type == "float32" and 340282346638528859811704183484516925440.0
                           or type == "float16" and 65504 or 1.7976931348623157e308):tolist()[1]
    for r = 0, 8 do
      local place, best = -1, most and -worst or worst
      for c = 0, 31 do
        local v = r == 8 and nan or rows[r % 8 * 32 + c + 1]
        data[#data + 1] = v
        if most and v > best or not most and v < best then place, best = c, v end
      end
      places[r + 1], values[r + 1] = place, best
    end
    for name, step in pairs {
      plain = function() end,
      rfactor = function(s, _, l) s:rfactor((select(2, s:split(l, {8, 4}))), 0) end,
      outer = function(s, _, l) s:rfactor((s:split(l, {8, 4})), 1) end,
      reorder = function(s, _, l) local a, b = s:split(l, {8, 4}) s:reorder(b, a) end,
      rows = function(s, i, l) s:reorder(l, i) s:decompose_reduction(s:get_sblock "Y", l) end,
      unrolled = function(s, _, l) s:unroll(l) end,
    } do
      local s = ms.schedule(f)
      step(s, s:get_loops(s:get_sblock "Y"))
      local x, at, v = ms.array({9, 32}, type, data), ms.array({9}, "int32"), ms.array({9}, type)
      local what = ("%s of %s, %s"):format(most and "argmax" or "argmin", type, name)
      everywhere(what, s:func(), values, x, at, v)
      expect(what, at, places)
      ms.interpret(s:func(), x, at, v)
      expect(what .. ", interpreted", at, places)
    end
    local s = ms.schedule(f)
    local i, l = s:get_loops(s:get_sblock "Y")
    s:bind(i, "blockIdx.x")
    s:bind((select(2, s:split(l, {4, 8}))), "threadIdx.x")
    local at, v = ms.array({9}, "int32"), ms.array({9}, type)
    ms.interpret(s:func(), ms.array({9, 32}, type, data), at, v)
    expect("arg reduction of threads", at, places)
    expect("arg reduction of threads", v, values)
  end
end

-- ---- What is not folded, and what is ----

local text = [[
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("Y"):
            v = T.axis.spatial(4, i)
            Y[v] = %s
]]
for form, wanted in pairs {
  ["X[v] * T.float32(0)"] = {nan, nan, nan, 0}, ["X[v] - X[v]"] = {nan, nan, nan, 0},
  ["X[v] / X[v]"] = {nan, nan, nan, 1},
  ["T.float32(0) / X[v]"] = {nan, 0, 0, 0}, ["T.float32(0) * X[v] + T.float32(1)"] = {nan, nan, nan, 1},
  ["X[v] + T.float32(0)"] = {nan, inf, -inf, 2}, ["T.max(X[v], X[v])"] = {nan, inf, -inf, 2},
  ['T.max(T.float32("nan"), T.float32(3)) + X[v] * T.float32(0)'] = {nan, nan, nan, 3},
  ['T.min(T.float32(3), T.float32("nan"))'] = {3, 3, 3, 3},
  ["T.Select(X[v] == X[v], T.float32(1), T.float32(0))"] = {0, 1, 1, 1},
  ["T.Select(not (X[v] < T.float32(3)), T.float32(1), T.float32(0))"] = {1, 1, 0, 0},
} do
  local f = ms.from_script(text:format(form))
  local lines = ms.schedule(f)
  lines:vectorize((lines:get_loops(lines:get_sblock "Y")))
  for _, g in ipairs {f, lines:func()} do
    everywhere(form, g, wanted, ms.array({4}, "float32", {nan, inf, -inf, 2}), ms.array {4})
  end
end
-- What is held may be stored by another name, a view of it.
for _, data in ipairs {"A.data", "T.address_of(A[0])"} do
  local f = ms.from_script(([[
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32"), Z: T.Buffer((4,), "float32")):
    A = T.alloc_buffer((4,), "float32")
    V = T.decl_buffer((4,), "float32", data=%s)
    for i in range(4):
        A[i] = T.float32(0)
    for i in range(4):
        V[i] = X[i]
    for i in range(4):
        Z[i] = T.max(Y[i], A[i])
]]):format(data))
  everywhere(data, f, {2, 1, 7, inf}, ms.array({4}, "float32", {nan, 1, 7, nan}),
             ms.array({4}, "float32", {2, nan, 3, inf}), ms.array {4})
end
assert(built > 100, built .. " kernels")
print(built .. " kernels: ok")
