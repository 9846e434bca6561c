-- Tensor expressions: what they become, what they refuse.
local ms = require "msched"
local te = ms.te

local refuses = dofile(arg[0]:match "^.*/" .. "../refuses.lua")

-- Every operator: compiled and interpreted alike.
local function agree(func, tolerance)
  return ms.build(func, {reference = func}):check {tolerance = tolerance or 0}
end

local A = te.placeholder({6, 10}, "float32", "A")
local k = te.reduce_axis(10, "k")
agree(te.func("sum", {A, (te.compute({6}, function(i) return te.sum(A[{i, k}], k) end, "S"))}))
agree(te.func("max", {A, (te.compute({6}, function(i) return te.max(A[{i, k}], k) end, "S"))}))
agree(te.func("min", {A, (te.compute({6}, function(i) return te.min(A[{i, k}], k) end, "S"))}))
agree(te.func("prod", {A, (te.compute({6}, function(i) return te.prod(A[{i, k}], k) end, "S"))}))
agree(te.func("elementwise", {A, (te.compute({6, 10}, function(i, j)
  return te.select(te.all(te.lt(i, 3), te.ge(j, 2)), A[{i, j}] * 2 - 1, te.maximum(A[{i, j}], 0) / 4)
end, "E"))}))
agree(te.func("math",
              {A, (te.compute({6, 10},
                              function(i, j) return te.exp(A[{i, j}]) + te.tanh(A[{i, j}]) + te.erf(A[{i, j}]) end,
                              "M"))}), 1e-3)

-- Of values in place of axes, te.max and te.min are te.maximum and te.minimum.
do
  local function clamped(f)
    return te.func("clamped", {A, (te.compute({6, 10}, function(i, j) return f(A[{i, j}]) end, "B"))}):script()
  end
  assert(clamped(function(x) return te.max(te.min(x, 0.5, 0.25), 0) end) ==
         clamped(function(x) return te.maximum(te.minimum(te.minimum(x, 0.5), 0.25), 0) end))
end

-- Two outputs at once, and the index of the largest.
local index = te.compute({6, 10}, function(_, j) return te.cast(j, "int32") end, "index")
local where, value = te.compute({6}, function(i) return te.argmax({index[{i, k}], A[{i, k}]}, k) end, "best")
agree(te.func("argmax", {A, where, value}))

-- The same function twice is the same module.
local function gemm() return te.func("f", {A, (te.compute({6, 10}, function(i, j) return A[{i, j}] + 1 end, "B"))}) end
assert(gemm():hash() == gemm():hash())

-- Names: those of the text itself are nobody's, and an operator that is used twice has its names made unique, as TVM
-- does.
for _, name in ipairs {"T", "I", "range", "lambda", "v_i", "root"} do
  local P = te.placeholder({6}, "float32", name)
  local Q = te.compute({6}, function(i) return P[{i}] + 1 end, name)
  local f = te.func("names", {P, (te.compute({6}, function(T) return Q[{T}] * 2 end, "T"))})
  agree(f)
  assert(ms.from_script(tostring(f:script())):hash() == f:hash(), name)
end
do
  local image = te.placeholder({1, 6, 6, 4}, "float32", "X")
  local W, V = te.placeholder({3, 3, 4, 4}, "float32", "W"), te.placeholder({3, 3, 4, 4}, "float32", "V")
  local first = ms.ops.conv2d(image, W, {pad = 1})
  local twice = te.func("twice", {image, W, V, (ms.ops.conv2d(first, V, {pad = 1}))})
  agree(twice)
  local sch = ms.schedule(twice)
  for _, name in ipairs {"pad", "conv2d", "pad_1", "conv2d_1"} do sch:get_sblock(name) end
  local both = te.func("both", {A, ms.ops.relu(A), (ms.ops.relu(ms.ops.relu(A)))})
  agree(both)
  assert(both:params()[3].name == "relu_1")
end
local A2 = te.placeholder({6, 10}, "float32", "A")
refuses("two parameters are named A", te.func, "f",
        {A, A2, (te.compute({6, 10}, function(i, j) return A[{i, j}] + A2[{i, j}] end, "B"))})

-- Expressions without end, deep or shared, are refused where they grow.
local function grown(n, step)
  return te.compute({6, 10}, function(i, j)
    local x = A[{i, j}]
    for _ = 1, n do x = step(x) end
    return x
  end, "G")
end
agree(te.func("deep", {A, (grown(180, function(x) return x + 1 end))}), 1e-2)
refuses("more than 250 operations one in another", grown, 200000, function(x) return x + 1 end)
refuses("more than a million parts", grown, 64, function(x) return x + x end)

refuses("a reduction is all that its tensor is", te.compute, {6}, function(i) return 1 + te.sum(A[{i, k}], k) end)
refuses("an expression has no value yet: te.lt", te.compute, {6}, function(i) if A[{i, 0}] > 0 then return 1 end end)
refuses("an expression has no value yet: te.lt", te.compute, {6}, function(i) if 1 <= A[{i, 0}] then return 1 end end)
refuses("extent 1 is -1", te.placeholder, {-1, 3}, "float32", "Z")
refuses("extent 2 is -4", te.placeholder, {3, -4}, "float32", "Z")
refuses("no name", te.placeholder, {3}, "float32", "not a name")
refuses("has 2 dimensions, not 1", function() return te.compute({6}, function(i) return A[{i}] end) end)
refuses("te.max_value: `nil` is no type of numbers", te.max_value)
refuses("te.min_value: `bool` is no type of numbers", te.min_value, "bool")
refuses("te.cast takes a value and the name of a type, not a number", te.cast, 1, 2)
refuses("te.prod reduces one value, not a list", te.prod, {}, k)
refuses("te.reduce reduces a value, or a list of some", te.reducer(te.maximum, te.min_value), {}, k)
for _, reduce in ipairs {te.sum, te.prod, te.max} do
  refuses("tensor V is used without indices", reduce, te.placeholder({4}, "float32", "V"), k)
  refuses("tensor V is used without indices", reduce, te.placeholder({4}, "float32", "V"))
end
refuses("te.argmin reduces a list of two: {index, value}", te.argmin, te.placeholder({4}, "float32", "V"), k)
refuses("te.argmax reduces a list of two: {index, value}", te.argmax, 5, k)
refuses("a loop's body is a function, not a number", function()
  ms.schedule(te.func("f", {A, te.compute({6}, function(i) return A[{i, 0}] end, "B")})):for_(2, 5)
end)
refuses("arrays are for a function, not for a nil", ms.arrays_for)
refuses("arrays are for a function, not for a schedule", ms.arrays_for,
        ms.schedule(te.func("f", {A, te.compute({6}, function(i) return A[{i, 0}] end, "B")})))
refuses("ms.compare takes a kernel, not a string", ms.compare, "x", print)
refuses("ops.map: a function of an element is expected, not a nil", ms.ops.map, A)
refuses("ops.bias_add: bias is no tensor but a nil", ms.ops.bias_add, A)
refuses("ops.batch_norm: mean is no tensor but a nil", ms.ops.batch_norm, A,
        te.placeholder({A.shape[2]}, "float32", "G"), te.placeholder({A.shape[2]}, "float32", "H"))
refuses("ops.broadcast_to: a list of extents is expected, not a nil", ms.ops.broadcast_to, A)
-- Paths that are longer than messages and than what a system takes.
for _, f in ipairs {ms.onnx, ms.read_onnx, ms.load_array, ms.load_trace, ms.load_model,
                    function(path) ms.with_folder(function(folder) ms.store(folder .. "/s.db"):import(path) end) end} do
  assert(not pcall(f, ("x"):rep(100000)))
end
refuses("is no parameter", te.func, "f", {(te.compute({6, 10}, function(i, j) return A[{i, j}] end, "B"))})
refuses("two parameters are named", te.func, "f", {A, A})
refuses("cast one of them", function()
  local H = te.placeholder({6, 10}, "float16", "H")
  return te.compute({6, 10}, function(i, j) return A[{i, j}] + H[{i, j}] end)
end)

-- An index that can leave its buffer is refused where the function is defined; the line is that of the access.
local function line() return debug.getinfo(2, "l").currentline end
local function escapes(pattern, at, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "expected a refusal: " .. pattern)
  assert(message:find(pattern, 1, true), "another message: " .. message)
  assert(message:find("te.lua:" .. at .. ": te: ", 1, true), "another place than line " .. at .. ": " .. message)
end
local X = te.placeholder({56}, "float32", "X")
local J = te.placeholder({8}, "int32", "J")
local function one(n, value) return te.func("f", {X, J, (te.compute({n}, value, "Y"))}) end

escapes("Y: index 1 of X can be from -1 to 54, but its extent is 56", line() + 1, function()
  one(56, function(i) return X[{i - 1}] end)
end)
escapes("index 1 of X can be from 0 to 56", line(), one, 57, function(i) return X[{i}] end)
escapes("index 1 of X can be from 8 to 63", line() + 2, one, 56, function(i)
  return X[{i}] +
    X[{i + 8}] -- the second access is the one that leaves
end)
escapes("index 1 of X can be from -1 to 55", line() + 1, one, 58,
        function(i) return te.if_then_else(te.lt(i, 57), X[{i - 1}], 0) end)
escapes("index 1 of X can be from 0 to 56", line() + 1, one, 58,
        function(i) return te.if_then_else(te.ge(i, 1), X[{i - 1}], 0) end)
escapes("index 1 of X can be from -1 to 56", line() + 1, one, 58,
        function(i) return te.select(te.all(te.ge(i, 1), te.lt(i, 57)), X[{i - 1}], 0) end)
escapes("index 1 of X can be from", line(), one, 8, function(i) return X[{J[{i}]}] end)
escapes("index 1 of X can be from 0 to 165", line() + 3, function()
  local r = te.reduce_axis(56, "r")
  one(56, function(i)
    return te.sum(X[{i * 2 + r}], r)
  end)
end)
escapes("axis r is used, but not reduced over", line() + 1,
        function() te.compute({56}, function(i) return X[{i}] + te.reduce_axis(3, "r") end, "Y") end)
escapes("index 2 of A can be from 0 to 14", line() + 2, function()
  local r = te.reduce_axis(10, "r")
  te.func("f", {A, (te.compute({6}, function(i) return te.sum(A[{i, r + i}], r) end, "Y"))})
end)

-- What stays within is taken: guards, their opposites, alternatives, quotients, clamps.
one(58, function(i) return te.if_then_else(te.all(te.ge(i, 1), te.lt(i, 57)), X[{i - 1}], 0) end)
one(58, function(i) return te.if_then_else(te.any(te.lt(i, 1), te.ge(i, 57)), 0, X[{i - 1}]) end)
one(58, function(i) return te.if_then_else(te.any(te.lt(i, 10), te.lt(i, 56)), X[{i}], 0) end)
one(112, function(i) return X[{i // 2}] + X[{i % 56}] end)
one(56, function(i) return X[{55 - i}] + X[{te.minimum(te.maximum(i - 3, 0), 55)}] end)
one(8, function(i) return te.if_then_else(te.all(te.ge(J[{i}], 0), te.lt(J[{i}], 56)), X[{J[{i}]}], 0) end)
agree(te.func("guarded", {X, J, (te.compute({58}, function(i)
  return te.if_then_else(te.any(te.lt(i, 1), te.ge(i, 57)), -1.0, X[{i - 1}])
end, "Y"))}))

-- Extents and sizes.
local huge = math.maxinteger
escapes("extent 1 is -1", line() + 1, function()
  te.placeholder({-1}, "float32", "Z")
end)
escapes("extent 2 is -4", line(), function() te.compute({3, -4}, function(i, j) return i + j end, "Z") end)
escapes("extent 1 is 1.5", line(), function() te.placeholder({1.5}, "float32", "Z") end)
escapes("extent 1 is missing", line(), function() te.placeholder({nil, 2}, "float32", "Z") end)
escapes("extent 2 is missing", line(), function() te.placeholder({4, n = 2}, "float32", "Z") end)
escapes("more than memory holds", line(), function() te.placeholder({huge}, "float32", "Z") end)
escapes("more than memory holds", line(), function() te.placeholder({1000000, 1000000}, "float32", "Z") end)
escapes("more than memory holds", line() + 1,
        function() te.placeholder({2147483647, 2147483647, 2147483647, 2147483647, 2147483647}, "float32", "Z") end)
escapes("more than memory holds", line() + 1,
        function() te.compute({1 << 20, 1 << 20}, function(i, j) return te.cast(i + j, "float32") end, "Z") end)
escapes("are more than can be counted", line() + 1, function()
  te.compute({1 << 16, 1 << 16},
             function() return te.sum(te.const(1.0), {te.reduce_axis(1 << 30, "p"), te.reduce_axis(1 << 10, "q")}) end,
             "Z")
end)
escapes("not from 0 to -1", line(), function() te.reduce_axis(-1, "k") end)
escapes("not from 3 to 2", line(), function() te.reduce_axis({3, 2}, "k") end)
escapes("is too long", line(), function() te.reduce_axis(huge, "k") end)
escapes("`float33` is no type", line(), function() te.placeholder({3}, "float33", "Z") end)
escapes("tensor A is used without indices", line(), function() return te.placeholder({3}, "float32", "A") + 1 end)
escapes("tensor A is used without indices", line(), function() return 2 / te.placeholder({3}, "float32", "A") end)
escapes("tensor A is used without indices", line(), function() return -te.placeholder({3}, "float32", "A") end)
escapes("te.sum reduces one value, not a list", line(), function() te.sum({te.const(1.0)}, te.reduce_axis(3)) end)
escapes("te.call: `float32x4` is no type", line(), function() te.call("fmod", "float32x4", 1.0, 2.0) end)
escapes("a function of the indices is expected", line(), function() te.compute({3}, 7, "Z") end)
escapes("the function gives nothing", line(), function() te.compute({3}, function() return {} end, "Z") end)
local function same(i) return i end
escapes("the axes are a list of names, not a number", line(), function() te.compute({3}, same, "Z", 5) end)
escapes("`a b` is no name", line(), function() te.compute({3}, same, "Z", {"a b"}) end)
escapes("te.reducer takes two functions", line(), function() te.reducer(5, 6) end)
escapes("reinterpret takes one value, not 0", line(), function() te.call("reinterpret", "int32") end)
escapes("pow is of floats, not int32", line(), function() te.pow(2, 3) end)
escapes("te.pow(a, b) is a to the power of b", line(), function() return te.reduce_axis(3) ^ 2 end)
escapes("an expression has no value yet", line(), function() return te.placeholder({3}, "float32", "A") < 1 end)
escapes("`T` is a word of TVMScript", line(), function() te.func("T", {te.placeholder({3}, "float32", "A")}) end)
local function nothing() end
local function zero() return 0 end
for _, case in ipairs {{"combine", nothing, zero}, {"identity", te.maximum, nothing}} do
  local A, k = te.placeholder({3}, "float32", "A"), te.reduce_axis(3, "k")
  local Z = te.compute({}, function() return te.reducer(case[2], case[3], "odd")(A[{k}], k) end, "Z")
  escapes("te.odd: its " .. case[1] .. " gives 0 values for 1", line(), function() te.func("f", {A, Z}) end)
end

-- A constant that is no integer is cut before integers are added to it or multiplied with it.
do
  local A = te.placeholder({3}, "int32", "A")
  local Z = te.compute({3}, function(i) return A[{i}] * te.cast(2.7, "int32") + te.cast(-1.5, "int32") end, "Z")
  local z = ms.array({3}, "int32")
  ms.interpret(te.func("cut", {A, Z}), ms.array({3}, "int32", {-5, 0, 5}), z)
  for i, x in ipairs(z:tolist()) do assert(x == ({-11, -1, 9})[i], x) end
end

-- Types of elements: arrays have as many bytes, and what one type holds of another comes back from it.
do
  local types = ms.load "lua.lib.element_types"
  local by_onnx, count = types.by "onnx", 0
  local function kept(name, other, values)
    local whole = ms.array({#values}, other, values):tolist()
    for i, x in ipairs(ms.array({#whole}, name, whole):tolist()) do if x ~= whole[i] then return false end end
    return true
  end
  for name, t in pairs(types.of) do
    count = count + 1
    assert(#ms.array({1}, name):bytes() * 8 == t.bits and by_onnx[t.onnx] == name)
    for other, o in pairs(t.kind == "float" and types.of or {}) do
      if o.kind == "float" then
        local same = kept(name, other, {-tonumber(o.low), tonumber(o.high), 2.0 ^ o.digits - 1})
        -- A conversion of an infinity to such is its largest number.
        same = same and (not o.saturates or name == other)
        assert(types.holds(name, other) == same, name .. " and " .. other)
      elseif types.holds(name, other) then
        assert(kept(name, other, {math.tointeger(tonumber(o.low)), math.tointeger(tonumber(o.high))}))
      end
    end
  end
  assert(count == 15)
  assert(types.holds("int16", "uint8") and types.holds("uint16", "uint8") and types.holds("float16", "uint8"))
  assert(not types.holds("uint16", "int8") and not types.holds("int8", "uint8") and not types.holds("float32", "int32"))
  assert(not types.holds("int8", "bool") and not types.holds("bool", "bool") and not types.holds("int8", "float16"))
end
-- Indices of 64 bits that are data stay where least, greatest and quotients put them, though sums of them may wrap.
do
  local T, D = te.placeholder({6}, "float32", "T"), te.placeholder({4}, "int64", "D")
  local function taken(index)
    return pcall(te.func, "taken", {T, D, te.compute({4}, function(i) return T[{index(D[{i}])}] end, "Y")})
  end
  local function clamped(x) return te.maximum(te.minimum(x, 5), 0) end
  assert(taken(function(x) return clamped(te.select(te.lt(x, 0), x + 6, x)) end))
  assert(taken(function(x) return te.minimum(te.floordiv(te.maximum(x, 0), 2), 5) end))
  assert(not taken(function(x) return te.minimum(te.maximum(x, 0) + 1, 5) end), "the sum may be below 0")
  assert(not taken(function(x) return te.minimum(x, 5) end))
end

print "te: ok"
