-- Dense layers whose weights have few bits: q, integers of 4 or 8 bits, in groups along k that have a scale each, and a
-- zero point. Products add within a group first; the group's scale then multiplies the sum, less what the zero point
-- adds:
--   Y[i, n] = sum over g of scale[n, g] * (sum over k in g of X[i, k] * q[n, k] - zero[n, g] * sum over k in g of X[i,
--   k])
-- so that no product costs more than those of whole numbers. The layout is that of MatMulNBits: weights of uint8, {n,
-- groups, bytes}, of two in a byte the first in the lower bits; zero points of uint8, packed so along the groups.
-- Source: ONNX Runtime, "Contrib operators", com.microsoft.MatMulNBits.
local ms = msched
local te, common, layout = ms.te, ms.load "lua.lib.ops.common", ms.load "lua.lib.ops.nbits_layout"
local fail = common.fail
local ops = {}

local WHAT = "dense_nbits"
local SCALES = {float32 = true, float16 = true, bfloat16 = true}
local MOST = 127 -- of the integers that X is rounded to

-- ---- What is checked -------------------------------------------------------------------------------------------

local function check_bytes(name, x, shape)
  common.check_shape(WHAT, name, x, shape)
  if x.type ~= "uint8" then fail(WHAT, "%s is of %s; uint8 is expected", name, x.type) end
end

local function checked(X, W, scale, given)
  common.check_tensor(WHAT, "X", X, 2)
  common.check_float(WHAT, "X", X)
  common.check_tensor(WHAT, "W", W, 3)
  local o =
    common.options(WHAT, given, {bits = 4, zero_points = false, bias = false, products = "float32", name = WHAT})
  layout.check_bits(o.bits)
  o.group = W.shape[3] * 8 // o.bits
  local weights, scales, zeros = layout.shapes(W.shape[1], X.shape[2], o.bits, o.group)
  check_bytes("W", W, weights)
  common.check_shape(WHAT, "scale", scale, scales)
  if not SCALES[scale.type] then fail(WHAT, "scale is of %s; float32, float16 or bfloat16 is expected", scale.type) end
  if o.zero_points then check_bytes("zero_points", o.zero_points, zeros) end
  if o.bias then
    common.check_shape(WHAT, "bias", o.bias, {W.shape[1]})
    if o.bias.type ~= "float32" then fail(WHAT, "bias is of %s; float32 is expected", o.bias.type) end
  end
  if o.products ~= "float32" and o.products ~= "int8" then
    fail(WHAT, "products is %s; float32 or int8 is expected", tostring(o.products))
  end
  return o
end

-- ---- Integers of few bits --------------------------------------------------------------------------------------

-- The part of a byte that has this number, in a type of integers: bytes where their products are added at once, else as
-- wide as what they become.
local function part(byte, bits, number, type)
  if bits == 8 then return byte end
  local shifted = te.call("shift_right", type, te.cast(byte, type), te.cast(number * bits, type))
  return te.call("bitwise_and", type, shifted, te.const((1 << bits) - 1, type))
end

-- The zero point of a group in a type, by its column and number: halfway where there are none. Those that there are,
-- are made bytes with columns last: of constants, ahead of all runs.
local function zeros_of(o, n, groups)
  if not o.zero_points then
    return function(_, _, type) return te.const(type == "int32" and 1 << (o.bits - 1) or 2.0 ^ (o.bits - 1), type) end
  end
  local each = 8 // o.bits
  local zeros = te.compute({groups, n}, function(g, j)
    if each == 1 then return o.zero_points[{j, g}] end
    return te.cast(part(o.zero_points[{j, te.floordiv(g, each)}], o.bits, te.floormod(g, each), "int32"), "uint8")
  end, o.name .. "_zeros", {"g", "j"})
  return function(j, g, type) return te.cast(zeros[{g, j}], type) end
end

-- ---- The two ways of products ----------------------------------------------------------------------------------

-- X and what its integers are to be multiplied by; at(i, g, b, h): the element that the part h of byte b of group g is
-- multiplied with.
local function plain(X, o)
  local each = 8 // o.bits
  local function at(i, g, b, h) return te.cast(X[{i, g * o.group + (each == 1 and b or b * each + h)}], "float32") end
  return {type = "float32", part = "int32", at = at}
end

-- X rounded to int8, each group by its largest element: {rows, groups, parts of a byte, bytes}, so that elements for
-- neighbouring bytes are neighbours.
local function rounded(X, o)
  local m, groups, each = X.shape[1], X.shape[2] // o.group, 8 // o.bits
  local k = te.reduce_axis(o.group, "k")
  local largest = te.compute({m, groups}, function(i, g)
    return te.max(te.abs(te.cast(X[{i, g * o.group + k}], "float32")), k)
  end, o.name .. "_largest")
  local function factor(i, g) return largest[{i, g}] * (1.0 / MOST) end
  local Q = te.compute({m, groups, each, o.group // each}, function(i, g, h, b)
    local x = te.cast(X[{i, g * o.group + b * each + h}], "float32")
    return te.cast(te.round(x / te.maximum(factor(i, g), 1e-30)), "int8")
  end, o.name .. "_rounded")
  return {type = "int32", part = "uint8", factor = factor,
          at = function(i, g, b, h) return te.cast(Q[{i, g, h, b}], "int32") end}
end

-- Rows of X of (m, k) times weights of (n, groups, bytes) -> (m, n) of float32. products: float32, or int8, for which
-- each group of X is rounded to int8.
function ops.dense_nbits(X, W, scale, options)
  local o = checked(X, W, scale, options)
  local m, n, groups, bytes, each = X.shape[1], W.shape[1], W.shape[2], W.shape[3], 8 // o.bits
  local way = (o.products == "int8" and rounded or plain)(X, o)
  local function axes() return te.reduce_axis(bytes, "b"), each > 1 and te.reduce_axis(each, "h") or nil end
  local function over(b, h) return h and {b, h} or b end
  local b, h = axes()
  local sums = te.compute({m, groups, n}, function(i, g, j)
    return te.sum(way.at(i, g, b, h or 0) * te.cast(part(W[{j, g, b}], o.bits, h or 0, way.part), way.type), over(b, h))
  end, o.name .. "_groups", {"i", "g", "j"})
  local xb, xh = axes()
  local xs =
    te.compute({m, groups}, function(i, g) return te.sum(way.at(i, g, xb, xh or 0), over(xb, xh)) end, o.name .. "_x")
  local r, zero = te.reduce_axis(groups, "r"), zeros_of(o, n, groups)
  local Y = te.compute({m, n}, function(i, j)
    local sum =
      te.cast(sums[{i, r, j}] - zero(j, r, way.type) * xs[{i, r}], "float32") * te.cast(scale[{j, r}], "float32")
    if way.factor then sum = sum * way.factor(i, r) end
    return te.sum(sum, r)
  end, o.name, {"i", "j"})
  return o.bias and ms.load "lua.lib.ops.elementwise".bias_add(Y, o.bias) or Y
end

return ops
