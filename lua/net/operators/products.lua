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
    local y = te.nearbyint(x / te.cast(wide(scale(i)), x.type))
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
  return compute(X.shape, t, function(i)
    local x = te.cast(X[i], "int32")
    if zero then x = x - te.cast(zero(i), "int32") end
    return te.cast(x, "float32") * te.cast(wide(scale(i)), "float32")
  end)
end
operators.DynamicQuantizeLinear = function(n)
  local X, set = n:x(1), {}
  for d = 1, #X.shape do set[d] = true end
  local _, low = common.over(X, set, true, common.minimum)
  local _, high = common.over(X, set, true, common.maximum)
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

local function whole(x) return te.cast(x, "int32") end
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
  return (matmul(n, n:x(1), n:x(2), less(n, 3, true), less(n, 4, false)))
end
operators.QLinearMatMul = function(n)
  for _, k in ipairs {2, 5, 7} do
    if common.count(n:shape(k)) ~= 1 then
      n:fail("input %d is a scale for each row or column, which is not known", k)
    end
  end
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
  if common.count(P.shape) == 1 then return function() return P[common.unfold(0, P.shape)] end end
  if common.text(P.shape) ~= common.text {N} then
    n:fail("input %d has extents %s, not of %d columns", k, common.text(P.shape), N)
  end
  return function(i) return P[{i[#i]}] end
end
common.saturated, common.less, common.matmul, common.by_column = saturated, less, matmul, by_column

return operators
