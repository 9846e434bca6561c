-- Operators of com.microsoft on quantized integers: what they stand for is computed as floats, and rounded once.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local products = ms.load "lua.net.operators.products"
ms.load "lua.net.operators.windows" -- for common.average_pool
ms.load "lua.net.operators.fused" -- for common.transposed
local operators = {}
local compute, wide = common.compute, common.wide
local function microsoft(name, f) operators["com.microsoft." .. name] = f end

-- The only element of an input, as float32; a zero point may be left out.
local function one(n, k, optional)
  if optional and not n:has(k) then return te.const(0.0, "float32") end
  local P = n:x(k)
  if common.count(P.shape) ~= 1 then n:fail("input %d has %d elements, not 1", k, common.count(P.shape)) end
  return te.cast(wide(P[common.unfold(0, P.shape)]), "float32")
end
-- What an element stands for, and back. Checked before anything is computed.
local function real(n, x, scale, zero) return (te.cast(x, "float32") - one(n, zero, true)) * one(n, scale) end
local function quantized(n, y, scale, zero, t)
  return common.saturated(n, te.nearbyint(y / one(n, scale)) + one(n, zero, true), t)
end

local function binary(f)
  return function(n)
    local A, B, t = n:x(1), n:x(4), n:type(1)
    if B.type ~= t then n:fail("its inputs are of %s and %s", t, B.type) end
    return compute(common.broadcast(n, {A.shape, B.shape}), t, function(i)
      return quantized(n, f(real(n, common.at(A, i), 2, 3), real(n, common.at(B, i), 5, 6)), 7, 8, t)
    end)
  end
end
microsoft("QLinearAdd", binary(function(x, y) return x + y end))
microsoft("QLinearMul", binary(function(x, y) return x * y end))

local function unary(f)
  return function(n)
    local X = n:x(1)
    return compute(X.shape, X.type, function(i) return quantized(n, f(real(n, X[i], 2, 3), n), 4, 5, X.type) end)
  end
end
microsoft("QLinearLeakyRelu", unary(function(x, n) return te.select(te.lt(x, 0.0), x * n:float("alpha", 0.01), x) end))
microsoft("QLinearSigmoid", unary(te.sigmoid))
microsoft("QLinearWhere", function(n)
  local C, A, B, t = n:x(1), n:x(2), n:x(5), n:type(2)
  if B.type ~= t then n:fail("its inputs are of %s and %s", t, B.type) end
  return compute(common.broadcast(n, {C.shape, A.shape, B.shape}), t, function(i)
    local x, y = real(n, common.at(A, i), 3, 4), real(n, common.at(B, i), 6, 7)
    return quantized(n, te.select(common.cast(common.at(C, i), "bool"), x, y), 8, 9, t)
  end)
end)

-- The input as floats.
local function dequantized(n)
  local X = n:x(1)
  return compute(X.shape, "float32", function(i) return real(n, X[i], 2, 3) end)
end
local function requantized(n, Y)
  return compute(Y.shape, n:type(1), function(i) return quantized(n, Y[i], 4, 5, n:type(1)) end)
end
-- Over one axis; before version 13, over all from it on.
microsoft("QLinearSoftmax", function(n)
  local set, rank = {}, n:rank(1)
  local axis = n:axis(n:int("axis", -1), rank)
  for d = axis, n:int "opset" < 13 and rank or axis do set[d] = true end
  local e, sum = common.exponentials(dequantized(n), set)
  return requantized(n, compute(e.shape, "float32", function(i) return e[i] / sum[common.inner(set, i)] end))
end)
microsoft("QLinearReduceMean", function(n)
  local rank = n:rank(1)
  local all = {}
  for d = 1, rank do all[d] = d - 1 end
  local axes = n:ints("axes", all)
  return requantized(n, (common.over(dequantized(n), n:axes(#axes == 0 and all or axes, rank), n:flag("keepdims", 1),
                                     te.sum, nil, function(x, k) return x / te.const(k + 0.0, x.type) end)))
end)

microsoft("QLinearConcat", function(n)
  local many = (n:count() - 2) // 3
  if many < 1 or n:count() ~= 2 + 3 * many then n:fail("it has %d inputs", n:count()) end
  local t, list = n:type(3), {}
  for k = 1, many do
    local at = 3 * k
    if n:type(at) ~= t then n:fail("its inputs are of %s and %s", t, n:type(at)) end
    list[k] = {tensor = n:x(at), scale = at + 1, zero = at + 2}
  end
  local axis = n:axis(n:int "axis", n:rank(3))
  local shape = table.move(n:shape(3), 1, n:rank(3), 1, {})
  for k = 2, many do
    local s = list[k].tensor.shape
    if #s ~= #shape then n:fail("%s beside %s", common.text(s), common.text(shape)) end
    for d, extent in ipairs(s) do
      if d ~= axis and extent ~= shape[d] then n:fail("%s beside %s", common.text(s), common.text(shape)) end
    end
    shape[axis] = shape[axis] + s[axis]
  end
  return compute(shape, t, function(i)
    local function choose(k, from)
      local own, at = list[k], table.move(i, 1, #i, 1, {})
      at[axis] = i[axis] - from
      local edge = from + own.tensor.shape[axis]
      local function element() return quantized(n, real(n, own.tensor[at], own.scale, own.zero), 1, 2, t) end
      if k == many then return element() end
      if own.tensor.shape[axis] == 0 then return choose(k + 1, edge) end
      return te.if_then_else(te.lt(i[axis], edge), element(), choose(k + 1, edge))
    end
    return choose(1, 0)
  end)
end)

-- Channels stand second, or last.
local function first_channels(n, X)
  return n:int("channels_last", 0) == 0 and X or common.channels_second(n, X)
end
local function back(n, Y) return n:int("channels_last", 0) == 0 and Y or common.channels_last(Y) end
local function pool(n, f)
  if n:rank(1) < 3 then n:fail("its input has %d dimensions", n:rank(1)) end
  return back(n, requantized(n, f(first_channels(n, dequantized(n)))))
end
microsoft("QLinearAveragePool", function(n) return pool(n, function(X) return common.average_pool(n, X) end) end)
microsoft("QLinearGlobalAveragePool", function(n)
  return pool(n, function(X)
    local set = {}
    for d = 3, #X.shape do set[d] = true end
    return (common.over(X, set, true, te.sum, nil, function(x, k) return x / te.const(k + 0.0, x.type) end))
  end)
end)

microsoft("QLinearConv", function(n) return back(n, common.quantized_convolution(n, first_channels(n, n:x(1)))) end)

microsoft("QuantizeLinear", products.QuantizeLinear)
microsoft("DequantizeLinear", products.DequantizeLinear)

-- ---- Products that become floats ---------------------------------------------------------------------------------

local function to_float(n, Y, scale, bias, t)
  local B = n:has(bias) and n:x(bias) or nil
  if B and common.text(B.shape) ~= common.text {Y.shape[#Y.shape]} then
    n:fail("a bias of %s for %s", common.text(B.shape), common.text(Y.shape))
  end
  return compute(Y.shape, t, function(i)
    local y = te.cast(Y[i], "float32") * scale(i)
    return B and y + te.cast(wide(B[{i[#i]}]), "float32") or y
  end)
end
microsoft("MatMulIntegerToFloat", function(n)
  local of = {x = 1, weights = 2, scale = 3, weights_scale = 4, zero = 5, weights_zero = 6, bias = 7}
  local sums = n:type(3) == "float32" and common.given_sums(n, "MatMulInteger", of)
  if sums then return sums end
  local Y = common.matmul(n, n:x(1), n:x(2), common.less(n, 5, true), common.less(n, 6, false))
  local scale = common.by_column(n, 4, Y.shape[#Y.shape])
  return to_float(n, Y, function(i) return one(n, 3) * te.cast(wide(scale(i)), "float32") end, 7, n:type(3))
end)
-- Sums of 32 bits, with a bias of them, as floats, or quantized again.
microsoft("QGemm", function(n)
  local A = n:flag("transA", 0) and common.transposed(n:x(1)) or n:x(1)
  local B = n:flag("transB", 0) and common.transposed(n:x(4)) or n:x(4)
  if #A.shape ~= 2 or #B.shape ~= 2 then
    n:fail("%s by %s: matrices are expected", common.text(A.shape), common.text(B.shape))
  end
  local C, alpha, requantized = n:has(7) and n:x(7) or nil, n:float("alpha", 1.0), n:has(8)
  if C and (C.type ~= "int32"
            or common.text(common.broadcast(n, {C.shape, {A.shape[1], B.shape[2]}}))
              ~= common.text {A.shape[1], B.shape[2]}) then
    n:fail("a bias of %s, of %s, for %s", common.text(C.shape), C.type, common.text {A.shape[1], B.shape[2]})
  end
  local Y, scale = common.matmul(n, A, B, common.less(n, 3, true), common.less(n, 6, false)),
    common.by_column(n, 5, B.shape[2])
  return compute(Y.shape, requantized and A.type or "float32", function(i)
    local sum = C and Y[i] + common.at(C, i) or Y[i]
    local y = te.cast(sum, "float32") * (alpha * one(n, 2) * te.cast(wide(scale(i)), "float32"))
    return requantized and quantized(n, y, 8, 9, A.type) or y
  end)
end)
-- A is quantized to uint8 by its least and largest element.
microsoft("DynamicQuantizeMatMul", function(n)
  if n:value(2).constant and n:rank(2) == 2 then
    local X, scale, zero = n:add("DynamicQuantizeLinear", {n.node.inputs[1]}, {}, 3)
    local inputs = n.node.inputs
    return n:gives {n:add("MatMulIntegerToFloat", {X, inputs[2], scale, inputs[3], zero, inputs[4] or "",
                                                   inputs[5] or ""}, {}, 1, "com.microsoft")}
  end
  local Q, S, Z = products.DynamicQuantizeLinear(n)
  local B = n:x(2)
  local Y = common.matmul(n, Q, B, function(x) return te.cast(x, "int32") - te.cast(Z[{}], "int32") end,
                          common.less(n, 4, false))
  local scale = common.by_column(n, 3, Y.shape[#Y.shape])
  return to_float(n, Y, function(i) return S[{}] * te.cast(wide(scale(i)), "float32") end, 5, "float32")
end)

return operators
