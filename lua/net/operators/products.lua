-- Products: Gemm, MatMul with all broadcasts, Einsum, and those of quantized integers.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}
local compute, reduce, wide = common.compute, common.reduce, common.wide

-- Rows and columns of matrices with others before them, broadcast. before(x, indices) is of each element.
local function matmul(n, A, B, before_a, before_b, t)
  local a, b = table.move(A.shape, 1, #A.shape, 1, {}), table.move(B.shape, 1, #B.shape, 1, {})
  if #a == 0 or #b == 0 then n:fail "an input is a scalar" end
  local row, column = #a == 1, #b == 1
  if row then table.insert(a, 1, 1) end
  if column then b[2] = 1 end
  local M, K, N = a[#a - 1], a[#a], b[#b]
  if b[#b - 1] ~= K then
    n:fail("%s and %s have %d columns and %d rows", common.text(A.shape), common.text(B.shape), K, b[#b - 1])
  end
  local shape = common.broadcast(n, {table.move(a, 1, #a - 2, 1, {}), table.move(b, 1, #b - 2, 1, {})})
  local batch = #shape
  if not row then shape[#shape + 1] = M end
  if not column then shape[#shape + 1] = N end
  local function element(X, own, i, r, c, alone)
    if alone then return X[{r or c}] end
    local at, from = {}, batch - (#own - 2)
    for d = 1, #own - 2 do at[d] = own[d] == 1 and 0 or i[from + d] end
    at[#own - 1], at[#own] = r, c
    return X[at]
  end
  return reduce(shape, {K}, te.sum, function(i, r)
    local m, c = not row and i[batch + 1] or nil, not column and i[#i] or nil
    local x, y
    if row then x = A[{r[1]}] else x = element(A, a, i, m, r[1]) end
    if column then y = B[{r[1]}] else y = element(B, b, i, r[1], c) end
    return before_a(x, i, m) * before_b(y, i, c)
  end), t
end
operators.MatMul = function(n)
  local A, B = n:x(1), n:x(2)
  if A.type ~= B.type then n:fail("its inputs are of %s and %s", A.type, B.type) end
  local Y = matmul(n, A, B, wide, wide)
  if Y.type == A.type then return Y end
  return compute(Y.shape, A.type, function(i) return Y[i] end)
end

operators.Gemm = function(n)
  local A, B, alpha, beta = n:x(1), n:x(2), n:float("alpha", 1.0), n:float("beta", 1.0)
  local ta, tb = n:flag("transA", 0), n:flag("transB", 0)
  if #A.shape ~= 2 or #B.shape ~= 2 then n:fail("its inputs have %d and %d dimensions, not 2", #A.shape, #B.shape) end
  if A.type ~= B.type then n:fail("its inputs are of %s and %s", A.type, B.type) end
  local M, K = A.shape[ta and 2 or 1], A.shape[ta and 1 or 2]
  local N = B.shape[tb and 1 or 2]
  if B.shape[tb and 2 or 1] ~= K then n:fail("%s and %s do not fit", common.text(A.shape), common.text(B.shape)) end
  local whole = not common.is_float(A.type)
  if whole then
    alpha, beta = math.tointeger(alpha) or n:fail("alpha is %g, of %s", alpha, A.type),
      math.tointeger(beta) or n:fail("beta is %g, of %s", beta, A.type)
  end
  local Y = reduce({M, N}, {K}, te.sum, function(i, r)
    return wide(ta and A[{r[1], i[1]}] or A[{i[1], r[1]}]) * wide(tb and B[{i[2], r[1]}] or B[{r[1], i[2]}])
  end)
  local C = n:has(3) and n:x(3) or nil
  if C then
    local shape = common.broadcast(n, {{M, N}, C.shape})
    if common.text(shape) ~= common.text {M, N} then
      n:fail("its third input has extents %s, which do not fit %d x %d", common.text(C.shape), M, N)
    end
  end
  if not C and alpha == 1 and Y.type == A.type then return Y end
  return compute({M, N}, A.type, function(i)
    local y = alpha == 1 and Y[i] or Y[i] * alpha
    if not C then return y end
    local c = wide(common.at(C, i))
    return y + (beta == 1 and c or c * beta)
  end)
end

-- ---- Einsum ------------------------------------------------------------------------------------------------------

-- The letters of an input's dimensions; those that … stands for are "1", "2", … from the end.
local function letters_of(n, text, rank)
  local list, before, after = {}, text:match "^(.-)%.%.%.(.*)$"
  if not before then before, after = text, nil end
  for letter in before:gmatch "%a" do list[#list + 1] = letter end
  if after then
    local many = rank and rank - #list - #after or 0
    if many < 0 then n:fail("`%s` has more letters than dimensions", text) end
    for k = many, 1, -1 do list[#list + 1] = tostring(k) end
    for letter in after:gmatch "%a" do list[#list + 1] = letter end
  end
  if rank and #list ~= rank then n:fail("`%s` is of %d dimensions, its input has %d", text, #list, rank) end
  return list
end

-- What an equation says of its inputs: {letters, of each input; extents, uses, of each letter; dots, how many
-- dimensions … stands for at most}.
local function read_inputs(n, equation, left)
  local read = {letters = {}, extents = {}, uses = {}, dots = 0}
  local extents = read.extents
  for text in (left .. ","):gmatch "(.-)," do
    local k = #read.letters + 1
    local shape = n:shape(k)
    read.letters[k] = letters_of(n, text, #shape)
    for d, letter in ipairs(read.letters[k]) do
      if tonumber(letter) then read.dots = math.max(read.dots, tonumber(letter)) end
      if extents[letter] and extents[letter] ~= shape[d] and extents[letter] ~= 1 and shape[d] ~= 1 then
        n:fail("%s is %d and %d", letter, extents[letter], shape[d])
      end
      extents[letter] = math.max(extents[letter] or 0, shape[d] == 1 and extents[letter] or shape[d])
      read.uses[letter] = (read.uses[letter] or 0) + 1
    end
  end
  if #read.letters ~= n:count() then
    n:fail("equation `%s` is of %d inputs, not %d", equation, #read.letters, n:count())
  end
  return read
end

-- The letters of the result: those behind the arrow, or, without one, what inputs have once, in order.
local function result_letters(read, right)
  local out = {}
  local function put_dots() for k = read.dots, 1, -1 do out[#out + 1] = tostring(k) end end
  if right then
    local before, after = right:match "^(.-)%.%.%.(.*)$"
    for letter in (before or right):gmatch "%a" do out[#out + 1] = letter end
    if before then put_dots() end
    for letter in (after or ""):gmatch "%a" do out[#out + 1] = letter end
    return out
  end
  put_dots()
  for _, letter in ipairs(ms.sorted_keys(read.uses)) do
    if letter:find "%a" and read.uses[letter] == 1 then out[#out + 1] = letter end
  end
  return out
end

-- Shapes of the result and of what is summed over; and where each letter is: the dimension of the former, or that of
-- the latter below 0.
local function place_letters(n, equation, extents, out)
  local shape, over, place = {}, {}, {}
  for d, letter in ipairs(out) do
    if not extents[letter] or place[letter] then n:fail("equation `%s`: %s of the result", equation, letter) end
    shape[d], place[letter] = extents[letter], d
  end
  for _, letter in ipairs(ms.sorted_keys(extents)) do
    if not place[letter] then
      over[#over + 1] = extents[letter]
      place[letter] = -#over
    end
  end
  return shape, over, place
end

operators.Einsum = function(n)
  local equation = n:text "equation":gsub("%s", "")
  local left, right = equation:match "^(.-)%->(.*)$"
  left = left or equation
  if not left:find "^[%a%.,]*$" or right and not right:find "^[%a%.]*$" then
    n:fail("equation `%s` is not understood", equation)
  end
  local read = read_inputs(n, equation, left)
  local shape, over, place = place_letters(n, equation, read.extents, result_letters(read, right))
  local Y = reduce(shape, over, te.sum, function(i, r)
    local product
    for k, letters in ipairs(read.letters) do
      local X, at = n:x(k), {}
      for d, letter in ipairs(letters) do
        local p = place[letter]
        at[d] = X.shape[d] == 1 and 0 or p > 0 and i[p] or r[-p]
      end
      local x = wide(X[at])
      product = product and product * x or x
    end
    return product
  end)
  return common.narrow(Y, n:type(1))
end

-- ---- Quantized ---------------------------------------------------------------------------------------------------

local function saturated(n, x, t, limit)
  limit = limit or common.LIMITS[t] or n:fail("it gives %s, which is not quantized to", t)
  return te.cast(te.minimum(te.maximum(x, te.const(limit[1] + 0.0, x.type)), te.const(limit[2] + 0.0, x.type)), t)
end

-- A scale or zero point at indices: one for all, one along an axis, or one a block.
local function parameter(n, k, shape)
  local P = n:x(k)
  if common.count(P.shape) == 1 then return function() return P[common.unfold(0, P.shape)] end end
  local block = n:int("block_size", 0)
  local axis = n:axis(n:int("axis", 1), #shape)
  if block > 0 then
    local wanted = table.move(shape, 1, #shape, 1, {})
    wanted[axis] = (shape[axis] + block - 1) // block
    if common.text(P.shape) ~= common.text(wanted) then
      n:fail("input %d has extents %s, not %s: %s in blocks of %d", k, common.text(P.shape), common.text(wanted),
             common.text(shape), block)
    end
    return function(i)
      local at = table.move(i, 1, #i, 1, {})
      at[axis] = te.floordiv(i[axis], block)
      return P[at]
    end
  end
  if #P.shape ~= 1 or P.shape[1] ~= shape[axis] then
    n:fail("input %d has extents %s, not of %d", k, common.text(P.shape), shape[axis])
  end
  return function(i) return P[{i[axis]}] end
end
-- limit: of what is given, where its type has other numbers too.
local function quantize(n, t, limit)
  local X, scale = n:x(1), parameter(n, 2, n:shape(1))
  local zero = n:has(3) and parameter(n, 3, n:shape(1)) or nil
  return compute(X.shape, t, function(i)
    local x = common.is_float(X.type) and wide(X[i]) or te.cast(X[i], "float32")
    local y = x / te.cast(wide(scale(i)), x.type)
    if common.is_byte(t) then return common.to_byte(n, y, t) end -- there is no zero point
    y = te.nearbyint(y)
    return saturated(n, zero and y + te.cast(zero(i), y.type) or y, t, limit)
  end)
end
operators.QuantizeLinear = function(n)
  return quantize(n, n:has(3) and n:type(3)
                    or n:int("output_dtype", 0) ~= 0 and n:type_of(n:int "output_dtype") or "uint8")
end
operators["msched.QuantizeNarrow"] = function(n)
  local bits = n:choice("bits", nil, "uint4", "int4")
  return quantize(n, bits == "uint4" and "uint8" or "int8", common.NARROW_LIMITS[bits])
end
operators.DequantizeLinear = function(n)
  local X, scale = n:x(1), parameter(n, 2, n:shape(1))
  local zero = n:has(3) and parameter(n, 3, n:shape(1)) or nil
  local t = n:int("output_dtype", 0) ~= 0 and n:type_of(n:int "output_dtype") or n:type(2)
  local bytes = common.is_byte(X.type) -- floats, without a zero point
  return compute(X.shape, t, function(i)
    local x = te.cast(X[i], bytes and "float32" or "int32")
    if zero and not bytes then x = x - te.cast(zero(i), "int32") end
    return te.cast(x, "float32") * te.cast(wide(scale(i)), "float32")
  end)
end
operators.DynamicQuantizeLinear = function(n)
  local X, set = n:x(1), {}
  for d = 1, #X.shape do set[d] = true end
  local _, low = common.over(X, set, true, te.min)
  local _, high = common.over(X, set, true, te.max)
  local first = {}
  for d = 1, #X.shape do first[d] = 0 end
  local scale =
    compute({}, "float32", function() return (te.maximum(high[first], 0.0) - te.minimum(low[first], 0.0)) / 255.0 end)
  local zero = compute({}, "uint8", function()
    return saturated(n, te.nearbyint(te.select(te.eq(scale[{}], 0.0), te.const(0.0, "float32"),
                                               (0.0 - te.minimum(low[first], 0.0)) / scale[{}])), "uint8")
  end)
  return compute(X.shape, "uint8", function(i)
    local y = te.select(te.eq(scale[{}], 0.0), te.const(0.0, "float32"), te.nearbyint(X[i] / scale[{}]))
    return saturated(n, y + te.cast(zero[{}], "float32"), "uint8")
  end), scale, zero
end

-- ---- Products of integers without zero points --------------------------------------------------------------------

local function whole(x) return te.cast(x, "int32") end
-- A parameter at indices: one for all, or one along a dimension, the last one where none is given.
local function along(P, axis)
  if common.count(P.shape) == 1 then return function() return P[common.unfold(0, P.shape)] end end
  return function(i) return P[{i[axis or #i]}] end
end

-- What sums of products stand for, once zero points are taken from both operands, or of it floats.
--   inputs: sums, the zero point of what comes before, the sums of the weights of each channel, those of the rows,
--   the zero points of the weights; where it gives floats the scales of both, and a bias.
--   axis: of the channels, from 0. groups: of channels, each of which has rows of its own.
operators["msched.OfSums"] = function(n)
  local S, axis = n:x(1), n:int "axis" + 1
  local group = S.shape[axis] // n:int("groups", 1)
  local function of(k) return n:has(k) and along(n:x(k), axis) or nil end
  local before, each, zero, scale, by, bias = of(2), of(3), of(5), of(6), of(7), of(8)
  local R = n:has(4) and n:x(4) or nil
  local function of_group(i)
    local at = table.move(i, 1, #i, 1, {})
    at[axis] = i[axis] // group
    return at
  end
  return compute(S.shape, scale and "float32" or "int32", function(i)
    local y = S[i]
    if each then y = y - whole(before(i)) * each(i) end
    if R then y = y - common.at(R, group < S.shape[axis] and of_group(i) or i) * zero(i) end
    if scale then y = te.cast(y, "float32") * (te.cast(wide(scale(i)), "float32") * te.cast(wide(by(i)), "float32")) end
    return bias and y + te.cast(wide(bias(i)), "float32") or y
  end)
end

-- Sums, with a bias, times the scales of both operands, over that of what is given, of which there is a zero point.
--   inputs: sums, three scales, a zero point, a bias. axis: of the channels, from 0
operators["msched.Requantized"] = function(n)
  local S, axis, t = n:x(1), n:int "axis" + 1, n:type(5)
  local function of(k) return along(n:x(k), axis) end
  local function real(k)
    local f = of(k)
    return function(i) return te.cast(wide(f(i)), "float32") end
  end
  local scale, by, over, zero, bias = real(2), real(3), real(4), of(5), n:has(6) and of(6) or nil
  return compute(S.shape, t, function(i)
    local y = te.cast(bias and S[i] + bias(i) or S[i], "float32") * (scale(i) * by(i) / over(i))
    return common.saturated(n, te.nearbyint(y) + te.cast(zero(i), "float32"), t)
  end)
end

local LONGEST = (1 << 31) // (4 * 255 * 128) -- products whose sums, with what zero points take from them, are 32 bits
local BYTES = common.set "int8 uint8"

local function no_padding(attributes)
  for _, p in ipairs(attributes.pads or {}) do if p ~= 0 then return false end end
  return common.set "NOTSET VALID"[attributes.auto_pad or "NOTSET"]
end

-- The image with its zero point around it; nil: how much depends on its extents.
local function padded(n, x, zero, attributes)
  local pads = attributes.pads or {}
  if no_padding(attributes) then return x end
  if (attributes.auto_pad or "NOTSET") ~= "NOTSET" then return nil end
  local list, rank = {0, 0}, #pads // 2
  for d = 1, rank do list[d + 2], list[rank + d + 4] = pads[d], pads[rank + d] end
  list[rank + 3], list[rank + 4] = 0, 0
  for _, p in ipairs(list) do if p < 0 then return nil end end
  return n:add("Pad", {x, n:constant(ms.array({#list}, "int64", list)),
                       n:add("Reshape", {zero, n:constant(ms.array({0}, "int64", {}))})})
end

-- What windows of an image add up to, over all channels of a group.
local function sums_of_windows(n, image, shape, attributes)
  local own, groups, x = {kernel_shape = {table.unpack(shape, 3)}}, attributes.group or 1, n.values[image]
  for _, key in ipairs {"strides", "dilations", "pads", "auto_pad"} do own[key] = attributes[key] end
  local list = {x.shape[1], groups, shape[2], table.unpack(x.shape, 3)}
  local parts = n:add("Reshape", {image, n:constant(ms.array({#list}, "int64", list))})
  local sums = n:add("ReduceSum", {n:add("Cast", {parts}, {to = 6}), n:constant(ms.array({1}, "int64", {2}))},
                     {keepdims = 0, axes = {2}})
  return n:add("SumsOfWindows", {sums}, own, 1, "msched")
end

-- Sums of products of bytes by constant weights: those of bytes alone, which CPUs add four at once, less what zero
-- points add to them. names: x, zero, weights, weights_zero, and of floats scale, weights_scale, bias; those that are
-- missing are "". op: MatMulInteger, ConvInteger. The name of what is given; nil: it is not of this form, or, but with
-- names.always, there are no zero points.
function common.sums_of_bytes(n, op, names, attributes)
  local x, w = n.values[names.x], n.values[names.weights]
  if not x or not w then return nil end
  local rank, is_product = #w.shape, op == "MatMulInteger"
  local axis, floats = is_product and rank or 1, names.scale
  if not w.constant or not BYTES[w.type] or not BYTES[x.type] or #x.shape < 2 or is_product and rank ~= 2
      or rank < 2 then
    return nil
  end
  local channels, zeros = w.shape[axis], {0}
  if common.count(w.shape) == 0 or common.count(w.shape) // channels >= LONGEST then return nil end
  local zero = names.zero ~= "" and n.values[names.zero]
  if zero and zero.constant and zero.array and common.count(zero.shape) == 1 and zero.array:tolist()[1] == 0 then
    zero = nil
  end
  if names.weights_zero ~= "" then
    local array = n:known_of(names.weights_zero)
    if not array or not n.values[names.weights_zero].constant then return nil end
    zeros = array:tolist()
  end
  if zero and common.count(zero.shape) ~= 1 or #zeros ~= 1 and #zeros ~= channels then return nil end
  for _, name in ipairs {names.weights_scale or "", names.bias or ""} do
    local shape = name ~= "" and n.values[name].shape or {}
    if common.count(shape) ~= 1 and common.text(shape) ~= common.text {channels} then return nil end
  end
  local weights, has_zeros = names.weights, false
  for c, z in ipairs(zeros) do
    zeros[c] = w.type == "uint8" and z - 128 or z
    has_zeros = has_zeros or zeros[c] ~= 0
  end
  if not zero and not has_zeros and w.type == "int8" and not floats and not names.always then
    return nil
  end
  -- of a channel by itself sums of windows are as many as sums of products
  if has_zeros and not is_product and w.shape[2] == 1 then return nil end
  if w.type == "uint8" then -- the same less 128, and so their zero points
    local half = n:constant(ms.array({}, "int32", {128}))
    weights = n:add("Cast", {n:add("Sub", {n:add("Cast", {weights}, {to = 6}), half})}, {to = 3})
  end
  local image, summed, own = names.x, {}, {}
  for key, value in pairs(attributes or {}) do own[key] = value end
  if not is_product and zero then
    image = padded(n, image, names.zero, own)
    if not image then return nil end
    own.pads = nil
  end
  for d = 1, rank do if d ~= axis then summed[#summed + 1] = d - 1 end end
  local function total(name, axes, keepdims)
    return n:add("ReduceSum", {n:add("Cast", {name}, {to = 6}), n:constant(ms.array({#axes}, "int64", axes))},
                 {keepdims = keepdims, axes = axes})
  end
  local inputs = {n:add(op, {image, weights}, own), zero and names.zero or ""}
  if not zero and not has_zeros and not floats then return inputs[1] end
  local function numbers(list, times)
    local scaled = {}
    for c = 1, channels do scaled[c] = (list[c] or list[1]) * times end
    return n:constant(ms.array({channels}, "int32", scaled))
  end
  inputs[3] = zero and total(weights, summed, 0) or ""
  if has_zeros then
    if zero then inputs[3] = n:add("Sub", {inputs[3], numbers(zeros, common.count(w.shape) // channels)}) end
    inputs[4] = is_product and total(names.x, {#x.shape - 1}, 1) or sums_of_windows(n, image, w.shape, own)
    inputs[5] = numbers(zeros, 1)
  end
  for k = 2, 5 do inputs[k] = inputs[k] or "" end
  table.move({names.scale or "", names.weights_scale or "", names.bias or ""}, 1, 3, 6, inputs)
  return n:add("OfSums", inputs, {axis = is_product and #x.shape - 1 or 1, groups = own.group or 1}, 1, "msched")
end
-- The same of a node's inputs, by their numbers: a list, as n:gives takes it.
function common.given_sums(n, op, numbers, attributes)
  local names = {}
  for what, k in pairs(numbers) do names[what] = n:has(k) and n.node.inputs[k] or "" end
  local name = common.sums_of_bytes(n, op, names, attributes)
  return name and n:gives {name}
end

-- Less a zero point: one for all, or one a row of A, a column of B.
local function less(n, k, along_row)
  if not n:has(k) then return whole end
  local Z = n:x(k)
  if common.count(Z.shape) == 1 then return function(x) return whole(x) - whole(Z[common.unfold(0, Z.shape)]) end end
  if #Z.shape ~= 1 then
    n:fail("input %d has %d dimensions: a zero point is one, or one a %s", k, #Z.shape, along_row and "row" or "column")
  end
  return function(x, _, at) return whole(x) - whole(Z[{at}]) end
end
operators.MatMulInteger = function(n)
  local sums = common.given_sums(n, "MatMulInteger", {x = 1, weights = 2, zero = 3, weights_zero = 4})
  if sums then return sums end
  return (matmul(n, n:x(1), n:x(2), less(n, 3, true), less(n, 4, false)))
end
-- What QLinearMatMul or QLinearConv gives, as sums of bytes that are quantized again; nil: it is not of this form.
function common.requantized_sums(n, op, axis, attributes)
  local inputs = n.node.inputs
  for _, k in ipairs {2, 3, 5, 7, 8} do
    if not n:has(k) or k ~= 5 and common.count(n:shape(k)) ~= 1 then return nil end
  end
  local channels = op == "ConvInteger" and n:shape(4)[1] or 1
  if n:has(9) and (common.text(n:shape(9)) ~= common.text {channels} or n:type(9) ~= "int32") then return nil end
  if common.count(n:shape(5)) ~= 1 and common.text(n:shape(5)) ~= common.text {channels} then return nil end
  local sums = common.sums_of_bytes(n, op, {x = inputs[1], zero = inputs[3], weights = inputs[4],
                                            weights_zero = inputs[6] or "", always = true}, attributes)
  return sums and n:gives {n:add("Requantized", {sums, inputs[2], inputs[5], inputs[7], inputs[8], inputs[9] or ""},
                                 {axis = axis}, 1, "msched")}
end
operators.QLinearMatMul = function(n)
  for _, k in ipairs {2, 5, 7} do
    if common.count(n:shape(k)) ~= 1 then
      n:fail("input %d is a scale for each row or column, which is not known", k)
    end
  end
  local sums = common.requantized_sums(n, "MatMulInteger", n:rank(1) - 1, {})
  if sums then return sums end
  local function one(k) local P = n:x(k) return P[common.unfold(0, P.shape)] end
  local Y, t = matmul(n, n:x(1), n:x(4), less(n, 3, true), less(n, 6, false)), n:type(8)
  return compute(Y.shape, t, function(i)
    local scale = te.cast(wide(one(2)), "float32") * te.cast(wide(one(5)), "float32") / te.cast(wide(one(7)), "float32")
    return saturated(n, te.nearbyint(te.cast(Y[i], "float32") * scale) + te.cast(one(8), "float32"), t)
  end)
end
-- A scale of the columns of B: one, or one each.
local function by_column(n, k, N)
  local P = n:x(k)
  if common.count(P.shape) ~= 1 and common.text(P.shape) ~= common.text {N} then
    n:fail("input %d has extents %s, not of %d columns", k, common.text(P.shape), N)
  end
  return along(P)
end
common.saturated, common.less, common.matmul, common.by_column = saturated, less, matmul, by_column

return operators
