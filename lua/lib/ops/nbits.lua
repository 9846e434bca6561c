-- Dense layers whose weights have few bits: q, integers of 4 or 8 bits, in groups along k that have a scale each, and a
-- zero point. Products add within a group first; the group's scale then multiplies the sum, less what the zero point
-- adds:
--   Y[i, n] = sum over g of scale[n, g] * (sum over k in g of X[i, k] * q[n, k] - zero[n, g] * sum over k in g of X[i,
--   k])
-- so that no product costs more than those of whole numbers. The layout is that of MatMulNBits: weights of uint8, {n,
-- groups, bytes}, of two in a byte the first in the lower bits; zero points of uint8, packed so along the groups. Or,
-- of a group, the first half in the lower bits and the second half in the upper ones, as q4_0 of llama.cpp has them.
-- Source: ONNX Runtime, "Contrib operators", com.microsoft.MatMulNBits; llama.cpp, ggml-quants.c, block_q4_0.
local ms = msched
local te, common, layout = ms.te, ms.load "lua.lib.ops.common", ms.load "lua.lib.ops.nbits_layout"
local fail = common.fail
local ops = {}

local WHAT = "dense_nbits"
local SCALES = {float32 = true, float16 = true, bfloat16 = true}
local DIGITS = {float32 = 0, bfloat16 = 0, int24 = 3, int8 = 1} -- bytes of the integers that X is rounded to
local BASE = 256
local ORDERS = {pairs = true, halves = true} -- of the weights of a group
local LEAST = 2.0 ^ -119 -- of what 1 stands for
local EXPONENT <const> = 0x7F800000 -- bits of a float32
local SUM = 2 ^ 31 -- beyond what sums may be

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
    common.options(WHAT, given, {bits = 4, zero_points = false, bias = false, products = "float32", order = "pairs",
                                 name = WHAT})
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
  if not DIGITS[o.products] then
    fail(WHAT, "products is %s; float32, bfloat16, int24 or int8 is expected", tostring(o.products))
  end
  if not ORDERS[o.order] then fail(WHAT, "order is %s; pairs or halves is expected", tostring(o.order)) end
  if o.products == "bfloat16" and X.type ~= "bfloat16" then
    fail(WHAT, "X is of %s; products of bfloat16 are of rows of bfloat16", X.type)
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

-- The number, in a group, of the weight that is part h of byte b.
local function place_of(b, h, o)
  if o.bits == 8 then return b end
  return o.order == "halves" and h * (o.group // 2) + b or b * 2 + h
end

-- The other way: the byte and the part that the weight of this number is.
local function byte_of(within, o)
  if o.bits == 8 then return within, 0 end
  local count = o.order == "halves" and o.group // 2 or 2
  local first, second = te.floordiv(within, count), te.floormod(within, count)
  if o.order == "halves" then return second, first end
  return first, second
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

-- ---- The ways of products --------------------------------------------------------------------------------------

-- X and what its integers are to be multiplied by; at(i, g, d, b, h): the element, or its digit d, that the part h of
-- byte b of group g is multiplied with.
local function plain(X, o)
  local function at(i, g, _, b, h) return te.cast(X[{i, g * o.group + place_of(b, h, o)}], "float32") end
  return {type = "float32", part = "int32", digits = 1, at = at}
end

-- Digit d of an integer, the lowest first, each from -128 to 127.
local function digit(v, d)
  local half, base = te.const(BASE // 2, "int32"), te.const(BASE, "int32")
  for _ = 1, d do v = te.floordiv(v + half, base) end
  return te.floormod(v + half, base) - half
end

-- What 1 stands for where integers of `most` at most stand for floats up to the largest: a power of 2, so that what is
-- exact in fewer bits stays so.
local function unit_of(largest, most, bits)
  local near = te.call("reinterpret", "int32", largest * (2.0 ^ bits / most))
  local power = te.call("reinterpret", "float32", te.call("bitwise_and", "int32", near, te.const(EXPONENT, "int32")))
  return te.maximum(power * 2.0 ^ (1 - bits), LEAST)
end

-- X rounded to integers of so many bytes, each group by its largest element: {rows, groups, digits, parts of a byte,
-- bytes}, so that elements for neighbouring bytes are neighbours.
local function rounded(X, o)
  local m, groups, each, digits = X.shape[1], X.shape[2] // o.group, 8 // o.bits, DIGITS[o.products]
  local k, most = te.reduce_axis(o.group, "k"), 127 * (BASE ^ digits - 1) // (BASE - 1)
  local largest = te.compute({m, groups}, function(i, g)
    return te.max(te.abs(te.cast(X[{i, g * o.group + k}], "float32")), k)
  end, o.name .. "_largest")
  local function factor(i, g)
    if digits > 1 then return unit_of(largest[{i, g}], most, 8 * digits - 1) end
    return largest[{i, g}] * (1.0 / most)
  end
  local function integer(i, g, h, b)
    local x = te.cast(X[{i, g * o.group + place_of(b, h, o)}], "float32")
    return te.round(digits > 1 and x * (1.0 / factor(i, g)) or x / te.maximum(factor(i, g), 1e-30))
  end
  local Q = te.compute(digits == 1 and {m, groups, each, o.group // each} or {m, groups, digits, each, o.group // each},
                       digits == 1 and function(i, g, h, b) return te.cast(integer(i, g, h, b), "int8") end
                         or function(i, g, d, h, b)
                           local v = te.cast(integer(i, g, h, b), "int32")
                           local all = digit(v, digits - 1)
                           for low = digits - 2, 0, -1 do all = te.select(te.eq(d, low), digit(v, low), all) end
                           return te.cast(all, "int8")
                         end, o.name .. "_rounded")
  local function at(i, g, d, b, h) return te.cast(Q[digits == 1 and {i, g, h, b} or {i, g, d, h, b}], "int32") end
  return {type = "int32", part = "uint8", digits = digits, factor = factor, at = at}
end

-- The sum that those by digits make, as float32; sum(d): that of a digit.
local function joined(sum, digits, o)
  local most = o.group * ((1 << o.bits) - 1) * BASE // 2
  local all, wide = sum(digits - 1), false
  for d = digits - 2, 0, -1 do
    most = most * (BASE + 1)
    if not wide and most >= SUM then all, wide = te.cast(all, "float32"), true end
    all = wide and all * (1.0 * BASE) + te.cast(sum(d), "float32") or all * te.const(BASE, "int32") + sum(d)
  end
  return wide and all or te.cast(all, "float32")
end

-- Sums over a group: of X, and of its products with weights by digits where there are several.
local function sums_of(X, W, o, way)
  local m, n, groups, bytes, each = X.shape[1], W.shape[1], W.shape[2], W.shape[3], 8 // o.bits
  local function over(b, h) return h and {b, h} or b end
  local function axes() return te.reduce_axis(bytes, "b"), each > 1 and te.reduce_axis(each, "h") or nil end
  local b, h = axes()
  local function product(i, g, d, j)
    return te.sum(way.at(i, g, d, b, h or 0) * te.cast(part(W[{j, g, b}], o.bits, h or 0, way.part), way.type),
                  over(b, h))
  end
  local several = way.digits > 1
  local sums = te.compute(several and {m, groups, way.digits, n} or {m, groups, n},
                          several and product or function(i, g, j) return product(i, g, 0, j) end, o.name .. "_groups",
                          several and {"i", "g", "d", "j"} or {"i", "g", "j"})
  local xb, xh = axes()
  local of = several and plain(X, o) or way
  local xs = te.compute({m, groups}, function(i, g) return te.sum(of.at(i, g, 0, xb, xh or 0), over(xb, xh)) end,
                        o.name .. "_x")
  return sums, xs
end

-- What a group adds: f(i, r, j), without its scale.
local function group_of(sums, xs, way, zero, o)
  if way.digits > 1 then
    return function(i, r, j)
      local sum = joined(function(d) return sums[{i, r, d, j}] end, way.digits, o)
      return sum * way.factor(i, r) - zero(j, r, "float32") * xs[{i, r}]
    end
  end
  return function(i, r, j) return te.cast(sums[{i, r, j}] - zero(j, r, way.type) * xs[{i, r}], "float32") end
end

-- Products of bfloat16 by weights that are scaled, and rounded to bfloat16, first: tiles unpack them once for all rows.
local function by_bfloats(X, W, scale, o)
  local m, n, k, groups = X.shape[1], W.shape[1], X.shape[2], W.shape[2]
  local zero, r = zeros_of(o, n, groups), te.reduce_axis(k, "k")
  local D = te.compute({n, k}, function(j, l)
    local g, within = te.floordiv(l, o.group), te.floormod(l, o.group)
    local byte, number = byte_of(within, o)
    local q = te.cast(part(W[{j, g, byte}], o.bits, number, "int32"), "int32")
    local real = te.cast(q - zero(j, g, "int32"), "float32") * te.cast(scale[{j, g}], "float32")
    return te.cast(real, "bfloat16")
  end, o.name .. "_weights", {"j", "k"})
  return te.compute({m, n}, function(i, j)
    return te.sum(te.cast(X[{i, r}], "float32") * te.cast(D[{j, r}], "float32"), r)
  end, o.name, {"i", "j"})
end

-- Sums of groups, each with its scale.
local function by_groups(X, W, scale, o)
  local m, n, groups = X.shape[1], W.shape[1], W.shape[2]
  local way = (DIGITS[o.products] > 0 and rounded or plain)(X, o)
  local sums, xs = sums_of(X, W, o, way)
  local r, zero = te.reduce_axis(groups, "r"), zeros_of(o, n, groups)
  local group = group_of(sums, xs, way, zero, o)
  return te.compute({m, n}, function(i, j)
    local sum = group(i, r, j) * te.cast(scale[{j, r}], "float32")
    if way.factor and way.digits == 1 then sum = sum * way.factor(i, r) end
    return te.sum(sum, r)
  end, o.name, {"i", "j"})
end

-- Rows of X of (m, k) times weights of (n, groups, bytes) -> (m, n) of float32. products: float32, or int24 or int8,
-- for which each group of X is rounded to integers of 24 or of 8 bits: of 24, three products of bytes stand for one,
-- with an error as small as that of float32's sums; or bfloat16, as which scaled weights are multiplied.
function ops.dense_nbits(X, W, scale, options)
  local o = checked(X, W, scale, options)
  local Y = (o.products == "bfloat16" and by_bfloats or by_groups)(X, W, scale, o)
  return o.bias and ms.load "lua.lib.ops.elementwise".bias_add(Y, o.bias) or Y
end

return ops
