-- Operators of com.microsoft that join others: convolutions and products with activations, norms of sums, embeddings,
-- attention.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local products, windows = ms.load "lua.net.operators.products", ms.load "lua.net.operators.windows"
local elementwise, reductions = ms.load "lua.net.operators.elementwise", ms.load "lua.net.operators.reductions"
local attention = (ms.load "lua.net.operators.attention" and common).attention
local ops = ms.load "lua.lib.ops.nbits"
local operators = {}
local compute, wide = common.compute, common.wide
local function microsoft(name, f) operators["com.microsoft." .. name] = f end

-- ---- Activations -------------------------------------------------------------------------------------------------

local ACTIVATIONS = {
  [""] = function(x) return x end, Relu = function(x) return te.select(te.lt(x, 0.0), te.const(0.0, x.type), x) end,
  Sigmoid = te.sigmoid, Tanh = te.tanh,
  LeakyRelu = function(x, a) return te.select(te.lt(x, 0.0), x * (a or 0.01), x) end, Gelu = common.gelu,
  HardSigmoid = function(x, a, b) return te.maximum(te.minimum(x * (a or 0.2) + (b or 0.5), 1.0), 0.0) end,
  Clip = function(x, a, b) return te.minimum(te.maximum(x, a or -math.huge), b or math.huge) end,
}
-- f of an expression, by the name of an activation and its numbers.
local function activation(n, numbers)
  local name = n:text("activation", "")
  local f = ACTIVATIONS[name] or n:fail("activation `%s` is not known", name)
  return function(x) return f(x, table.unpack(numbers)) end
end
local function each(n, Y, f)
  return compute(Y.shape, n:type(1), function(i) return f(wide(Y[i]), i) end)
end

microsoft("Gelu", elementwise.Gelu)
microsoft("QuickGelu", function(n)
  local X, alpha = n:x(1), n:float("alpha", 1.702)
  return each(n, X, function(x) return x * te.sigmoid(x * alpha) end)
end)
local function with_bias(f)
  return function(n)
    local X, B = n:x(1), n:has(2) and n:x(2) or nil
    if B and (#B.shape ~= 1 or B.shape[1] ~= X.shape[#X.shape]) then
      n:fail("a bias of %s for %s", common.text(B.shape), common.text(X.shape))
    end
    return each(n, X, function(x, i) return f(B and x + wide(B[{i[#i]}]) or x) end)
  end
end
microsoft("BiasGelu", with_bias(common.gelu))
microsoft("FastGelu", with_bias(common.fast_gelu))

microsoft("FusedConv", function(n)
  local Z, f = n:has(4) and n:x(4) or nil, activation(n, n:floats("activation_params", {}))
  local Y = windows.Conv(n)
  if Z and common.text(Z.shape) ~= common.text(Y.shape) then
    n:fail("%s is added to %s", common.text(Z.shape), common.text(Y.shape))
  end
  return each(n, Y, function(y, i) return f(Z and y + wide(Z[i]) or y) end)
end)
local function named_activation(n)
  local numbers = {}
  for k, name in ipairs {"activation_alpha", "activation_beta", "activation_gamma"} do
    numbers[k] = n:has_attribute(name) and n:float(name) or nil
  end
  return activation(n, numbers)
end
microsoft("FusedGemm", function(n)
  local f = named_activation(n)
  return each(n, products.Gemm(n), function(y) return f(y) end)
end)

local function transposed(X)
  local shape, rank = table.move(X.shape, 1, #X.shape, 1, {}), #X.shape
  if rank < 2 then return X end
  shape[rank - 1], shape[rank] = shape[rank], shape[rank - 1]
  return compute(shape, X.type, function(i)
    local at = table.move(i, 1, rank, 1, {})
    at[rank - 1], at[rank] = i[rank], i[rank - 1]
    return X[at]
  end)
end
common.transposed = transposed
-- The first dimension behind those of batches, which come first then.
local function rows_behind(X)
  local s, rank = X.shape, #X.shape
  if rank < 3 then return X end
  local shape = table.move(s, 2, rank - 1, 1, {[rank - 1] = s[1], [rank] = s[rank]})
  return compute(shape, X.type, function(i)
    return X[table.move(i, 1, rank - 2, 2, {i[rank - 1], [rank] = i[rank]})]
  end)
end
local function fused_matmul(f)
  return function(n)
    local A, B, alpha, act = n:x(1), n:x(2), n:float("alpha", 1.0), f and f(n)
    if A.type ~= B.type then n:fail("its inputs are of %s and %s", A.type, B.type) end
    if n:flag("transBatchA", 0) then A = rows_behind(A) end
    if n:flag("transBatchB", 0) then B = rows_behind(B) end
    if n:flag("transA", 0) then A = transposed(A) end
    if n:flag("transB", 0) then B = transposed(B) end
    return each(n, common.matmul(n, A, B, wide, wide), function(y)
      local z = alpha == 1 and y or y * alpha
      return act and act(z) or z
    end)
  end
end
microsoft("FusedMatMul", fused_matmul())
microsoft("TransposeMatMul", fused_matmul())
microsoft("FusedMatMulActivation", fused_matmul(named_activation))

-- {rows, K} by weights of whole blocks, {N, blocks, bytes}, with scales {N, blocks}, zero points {N, bytes}, and a
-- bias: products add within a block, whose scale then multiplies the sum.
operators["msched.ProductByBlocks"] = function(n)
  local Y = ops.dense_nbits(n:x(1), n:x(2), n:x(3), {bits = n:int "bits", zero_points = n:has(4) and n:x(4) or false,
                                                     products = n:text "products"})
  local bias = n:has(5) and n:x(5) or nil
  if not bias and Y.type == n:type(1) then return Y end
  return each(n, Y, function(y, i) return bias and y + wide(bias[{i[2]}]) or y end)
end

local ROUNDED = 4 -- an accuracy_level that lets rows be rounded to int8, a block at a time
-- The nodes of MatMulNBits for such weights; shapes: of A, B, scales, zero points and bias, and of what it gives.
local function add_by_blocks(n, bits, shapes, out)
  local inputs = {}
  for at, k in ipairs {1, 2, 3, 4, 6} do
    local name, shape = n:has(k) and n.node.inputs[k] or "", shapes[at]
    local is_so = name == "" or common.text(n:x(k).shape) == common.text(shape)
    inputs[at] = is_so and name or n:add("Reshape", {name, n:constant(ms.array({#shape}, "int64", shape))})
  end
  local products = n:int("accuracy_level", 0) == ROUNDED and "int8" or n:text("products", "float32")
  local Y = n:add("ProductByBlocks", inputs, {bits = bits, products = products}, 1, "msched")
  return n:gives {#out == 2 and Y or n:add("Reshape", {Y, n:constant(ms.array({#out}, "int64", out))})}
end

-- Weights of 2, 4 or 8 bits, in blocks along K that have a scale and a zero point each: {N, blocks, bytes}.
microsoft("MatMulNBits", function(n)
  local A, B, S, zero = n:x(1), n:x(2), n:x(3), n:has(4) and n:x(4) or nil
  local bits, block, K, N = n:int("bits", 4), n:int "block_size", n:int "K", n:int "N"
  if bits ~= 2 and bits ~= 4 and bits ~= 8 then n:fail("bits is %d, not 2, 4 or 8", bits) end
  if block < 16 or block & (block - 1) ~= 0 or K < 1 or N < 1 then
    n:fail("block_size is %d, of weights of %d x %d", block, N, K)
  end
  if n:has(5) then n:fail "it has g_idx: weights whose order is another are not computed" end
  local blocks, each_byte = (K + block - 1) // block, 8 // bits
  local bytes = block // each_byte
  if A.shape[#A.shape] ~= K or common.count(B.shape) ~= N * blocks * bytes or common.count(S.shape) ~= N * blocks
      or B.type ~= "uint8" then
    n:fail("%s by %s of %s with scales of %s, for %d x %d in blocks of %d", common.text(A.shape), common.text(B.shape),
           B.type, common.text(S.shape), N, K, block)
  end
  local row = (blocks + each_byte - 1) // each_byte
  local packed = zero and zero.type == "uint8"
  if zero and common.count(zero.shape) ~= N * (packed and row or blocks) then
    n:fail("zero points of %s for %d x %d blocks", common.text(zero.shape), N, blocks)
  end
  local shape, rank = table.move(A.shape, 1, #A.shape - 1, 1, {}), #A.shape
  shape[rank] = N
  local bias = n:has(6) and n:x(6) or nil
  if bias and common.text(bias.shape) ~= common.text {N} then
    n:fail("a bias of %s for %d columns", common.text(bias.shape), N)
  end
  if bits ~= 2 and K % block == 0 and common.wide_type(A.type) == "float32" and common.wide_type(S.type) == "float32"
      and (packed or not zero) then
    return add_by_blocks(n, bits, {{common.count(A.shape) // K, K}, {N, blocks, bytes}, {N, blocks}, {N, row}, {N}},
                         shape)
  end
  local function flat(X, at) return X[common.unfold(at, X.shape)] end
  local function part(byte, k)
    if bits == 8 then return te.cast(byte, "int32") end
    local by = te.floormod(k, each_byte) * bits
    return te.call("bitwise_and", "int32", te.call("shift_right", "int32", te.cast(byte, "int32"), by),
                   te.const((1 << bits) - 1, "int32"))
  end
  local t = common.wide_type(A.type)
  local W = compute({N, K}, t, function(i)
    local own, inner = te.floordiv(i[2], block), te.floormod(i[2], block)
    local w = te.cast(part(flat(B, (i[1] * blocks + own) * bytes + te.floordiv(inner, each_byte)), inner), t)
    local z = te.const(2.0 ^ (bits - 1), t)
    if packed then z = te.cast(part(flat(zero, i[1] * row + te.floordiv(own, each_byte)), own), t)
    elseif zero then z = te.cast(wide(flat(zero, i[1] * blocks + own)), t) end
    return (w - z) * te.cast(wide(flat(S, i[1] * blocks + own)), t)
  end)
  local Y = common.reduce(shape, {K}, te.sum, function(i, r)
    return wide(A[table.move(i, 1, rank - 1, 1, {[rank] = r[1]})]) * W[{i[rank], r[1]}]
  end)
  if not bias and Y.type == A.type then return Y end
  return compute(shape, A.type, function(i) return bias and Y[i] + wide(bias[{i[rank]}]) or Y[i] end)
end)

-- ---- Norms -------------------------------------------------------------------------------------------------------

-- Y, the mean and its inverse deviation, of X over the last axis; simple: by the mean of squares alone.
local function normed(n, X, gamma, beta, epsilon, simple, t)
  local rank = #X.shape
  local set, size = {[rank] = true}, X.shape[rank]
  for _, V in ipairs {gamma, beta} do
    if #V.shape ~= 1 or V.shape[1] ~= size then n:fail("a scale of %s for %d elements", common.text(V.shape), size) end
  end
  local mean, variance, shape, wide_t
  if simple then
    local _, squares = common.over(X, set, true, te.sum, function(x) return x * x end)
    mean, shape, wide_t = nil, squares.shape, squares.type
    variance = function(i) return squares[common.inner(set, i)] / te.const(size + 0.0, squares.type) end
  else mean, variance, shape, wide_t = common.moments(X, set) end
  local function inverse(i) return 1.0 / te.sqrt(variance(i) + epsilon) end
  local Y = compute(X.shape, t, function(i)
    local x = mean and wide(X[i]) - mean(i) or wide(X[i])
    local y = x * inverse(i) * wide(gamma[{i[rank]}])
    return beta and y + wide(beta[{i[rank]}]) or y
  end)
  return Y, mean and function() return compute(shape, wide_t, mean) end,
    function() return compute(shape, wide_t, inverse) end
end

local function skip_norm(simple)
  return function(n)
    local X, skip, gamma = n:x(1), n:x(2), n:x(3)
    local beta, bias = not simple and n:has(4) and n:x(4) or nil, nil
    local at = simple and 4 or 5
    if n:has(at) then bias = n:x(at) end
    local rank = #X.shape
    common.broadcast(n, {X.shape, skip.shape})
    if #skip.shape > rank or skip.shape[#skip.shape] ~= X.shape[rank] then
      n:fail("%s is added to %s", common.text(skip.shape), common.text(X.shape))
    end
    local sum = compute(X.shape, common.wide_type(X.type), function(i)
      local x = wide(X[i]) + wide(common.at(skip, i))
      return bias and x + wide(bias[{i[rank]}]) or x
    end)
    local Y, mean, inverse = normed(n, sum, gamma, beta, n:float("epsilon", 1e-5), simple, X.type)
    if n:wants(2) and not mean then n:fail "it has no mean to give" end
    return Y, n:wants(2) and mean() or nil, n:wants(3) and inverse() or nil,
           n:wants(4) and compute(X.shape, X.type, function(i) return sum[i] end) or nil
  end
end
microsoft("SkipLayerNormalization", skip_norm(false))
microsoft("SkipSimplifiedLayerNormalization", skip_norm(true))
operators.SimplifiedLayerNormalization = function(n)
  local X = n:x(1)
  local axis = n:axis(n:int("axis", -1), #X.shape)
  if axis ~= #X.shape then n:fail "it is over the last axis alone" end
  local Y, _, inverse = normed(n, X, n:x(2), nil, n:float("epsilon", 1e-5), true, n:type(2))
  return Y, n:wants(2) and inverse() or nil
end

-- Embeddings of words, of their places and segments, added and normed. table_of(k): input k as floats; t: of what it
-- gives.
local function embedded(n, table_of, t)
  local I, S, words, places = n:x(1), n:has(2) and n:x(2) or nil, table_of(3), table_of(4)
  local segments, P, s = n:has(5) and table_of(5) or nil, n:has(9) and n:x(9) or nil, n:shape(1)
  if #s ~= 2 or #words.shape ~= 2 or #places.shape ~= 2 or words.shape[2] ~= places.shape[2] then
    n:fail("words of %s, embedded by %s and %s", common.text(s), common.text(words.shape), common.text(places.shape))
  end
  if (S == nil) ~= (segments == nil) then n:fail "segments are without their embedding, or the other way round" end
  if not P and s[2] > places.shape[1] then n:fail("%d words, and %d places", s[2], places.shape[1]) end
  n:check_range(1, 0, words.shape[1] - 1)
  if S then n:check_range(2, 0, segments.shape[1] - 1) end
  if P then n:check_range(9, 0, places.shape[1] - 1) end
  local sum = compute({s[1], s[2], words.shape[2]}, common.wide_type(words.type), function(i)
    local x = wide(words[{common.index(I[{i[1], i[2]}], words.shape[1]), i[3]}])
    local at = P and common.index(P[{P.shape[1] == 1 and 0 or i[1], i[2]}], places.shape[1]) or i[2]
    x = x + wide(places[{at, i[3]}])
    return segments and x + wide(segments[{common.index(S[{i[1], i[2]}], segments.shape[1]), i[3]}]) or x
  end)
  local Y = normed(n, sum, table_of(6), table_of(7), n:float("epsilon", 1e-12), false, t)
  local mask = n:has(8) and n:x(8) or nil
  local counts
  if n:wants(2) and mask then
    counts = common.reduce({s[1]}, {s[2]}, te.sum, function(i, r)
      return te.select(te.eq(mask[{i[1], r[1]}], 1), te.const(1, "int32"), te.const(0, "int32"))
    end)
  elseif n:wants(2) then counts = compute({s[1]}, "int32", function() return te.const(0, "int32") end) end
  return Y, counts, n:wants(3) and compute(sum.shape, t, function(i) return sum[i] end) or nil
end
microsoft("EmbedLayerNormalization", function(n)
  return embedded(n, function(k) return n:x(k) end, n:type(3))
end)
-- Inputs 3 to 7 are integers, whose scales are the inputs from 9 on, and zero points those from 14 on.
microsoft("QEmbedLayerNormalization", function(n)
  local function table_of(k)
    local X, scale, zero = n:x(k), common.by_column(n, k + 6, 1), common.by_column(n, k + 11, 1)
    return compute(X.shape, "float32", function(i)
      return te.cast(te.cast(X[i], "int32") - te.cast(zero(i), "int32"), "float32") * scale(i)
    end)
  end
  local own = setmetatable({has = function(_, k) return k ~= 9 and n:has(k) end}, {__index = n})
  return embedded(own, table_of, "float32")
end)

-- ---- Attention ---------------------------------------------------------------------------------------------------

local MASKED = -10000.0
-- What a mask of 0 and 1 adds to scores of {batch, heads, queries, keys}: of {batch} valid keys, or of {batch, keys},
-- or of {batch, queries, keys}.
local function padding(n, k, shape)
  if not n:has(k) then return nil end
  local M, value = n:x(k), n:float("mask_filter_value", MASKED)
  local s = M.shape
  local at
  if #s == 1 and s[1] == shape[1] then at = function(i) return te.lt(i[4], te.cast(M[{i[1]}], "int32")) end
  elseif #s == 2 and s[1] == shape[1] and s[2] == shape[4] then at = function(i) return te.gt(M[{i[1], i[4]}], 0) end
  elseif #s == 3 and s[1] == shape[1] and s[2] == shape[3] and s[3] == shape[4] then
    at = function(i) return te.gt(M[{i[1], i[3], i[4]}], 0) end
  else n:fail("a mask of %s for scores of %s", common.text(s), common.text(shape)) end
  return function(i) return te.select(at(i), te.const(0.0, "float32"), te.const(value, "float32")) end
end
local function added(n, k, shape)
  if not n:has(k) then return nil end
  local B = n:x(k)
  if common.text(common.broadcast(n, {shape, B.shape})) ~= common.text(shape) then
    n:fail("a bias of %s for scores of %s", common.text(B.shape), common.text(shape))
  end
  return function(i) return wide(common.at(B, i)) end
end
local function sum_of(f, g)
  if not f or not g then return f or g end
  return function(i) return f(i) + g(i) end
end
local function causal(n, past)
  if not n:flag("unidirectional", 0) then return nil end
  return function(i) return te.le(i[4], i[3] + past) end
end
local function scale_of(n, size)
  local scale = n:float("scale", 0.0)
  return scale ~= 0 and scale or 1 / math.sqrt(size)
end

-- Heads with a bias of which `first` elements are of others.
local function biased(H, B, first)
  if not B then return H end
  local with = {}
  for key, x in pairs(H) do with[key] = x end
  with.at = function(b, h, p, e) return wide(H.at(b, h, p, e)) + wide(B[{h * H.size + e + first}]) end
  return with
end
-- As a tensor, once, so that what is computed for an element is not computed for each product.
local function held(H) return attention.heads(nil, attention.tensor(H)) end

-- One of several tensors that are packed in one of {batch, places, heads, many, size}.
local function unpacked(n, k, heads, many, which)
  local X, s = n:x(k), n:shape(k)
  if #s ~= 5 or s[3] ~= heads or s[4] ~= many then
    n:fail("%s is not of %d heads with %d tensors", common.text(s), heads, many)
  end
  local part = te.const(which, "int32")
  return {batch = s[1], heads = heads, places = s[2], size = s[5], type = X.type,
          at = function(b, h, p, e) return X[{b, p, h, part, e}] end}
end
-- Queries, keys and values, by themselves or packed.
local function three(n, heads)
  if not n:has(2) then
    if n:has(3) then n:fail "values are given without keys" end
    return unpacked(n, 1, heads, 3, 0), unpacked(n, 1, heads, 3, 1), unpacked(n, 1, heads, 3, 2)
  end
  local q = attention.heads(n, n:x(1), heads)
  if n:has(3) then return q, attention.heads(n, n:x(2), heads), attention.heads(n, n:x(3), heads) end
  return q, unpacked(n, 2, heads, 2, 0), unpacked(n, 2, heads, 2, 1)
end

microsoft("MultiHeadAttention", function(n)
  local heads = n:int "num_heads"
  for _, k in ipairs {9, 10} do
    if n:has(k) then n:fail("input %d, of a cache that is shared, is not computed", k) end
  end
  local q, k, v = three(n, heads)
  if q.heads ~= heads or k.heads ~= heads or v.heads ~= heads then n:fail("its inputs do not have %d heads", heads) end
  if n:has(4) then
    local B, of_keys = n:x(4), not n:has(2) or n:rank(2) ~= 4
    if common.text(B.shape) ~= common.text {heads * (q.size + k.size + v.size)} then
      n:fail("a bias of %s for %d heads", common.text(B.shape), heads)
    end
    q = held(biased(q, B, 0))
    if of_keys then k, v = held(biased(k, B, heads * q.size)), held(biased(v, B, heads * (q.size + k.size))) end
  end
  local past, keys, values = 0, nil, nil
  if n:has(7) ~= n:has(8) then n:fail "a past of keys is without one of values, or the other way round" end
  if n:has(7) then
    past, k, keys = n:shape(7)[3] or 0, attention.joined(n, n:x(7), k)
    v, values = attention.joined(n, n:x(8), v)
  end
  local shape = {q.batch, heads, q.places, k.places}
  local made = attention.attend(n, {q = q, k = k, v = v, scale = scale_of(n, q.size),
                                    bias = sum_of(padding(n, 5, shape), added(n, 6, shape)), allowed = causal(n, past)})
  return attention.beside(made.y, n:type(1)), n:wants(2) and (keys or attention.tensor(k)) or nil,
    n:wants(3) and (values or attention.tensor(v)) or nil,
         n:wants(4) and common.copy(common.narrow(made.raw, n:type(1))) or nil
end)

-- What stands in all nodes whose queries, keys and values are one product of the input X: how many elements each has.
local function check_joined(n, X, W, B)
  local heads = n:int "num_heads"
  if n:flag("past_present_share_buffer", 0) then n:fail "a cache that is shared is not computed" end
  if n:flag("do_rotary", 0) then n:fail "rotary embeddings are not computed in it" end
  if #X.shape ~= 3 or #W.shape ~= 2 or W.shape[1] ~= X.shape[3] then
    n:fail("%s by weights of %s", common.text(X.shape), common.text(W.shape))
  end
  local third = W.shape[2] // 3
  local sizes = n:ints("qkv_hidden_sizes", {third, third, third})
  if #sizes ~= 3 or heads < 1 then n:fail("qkv_hidden_sizes has %d numbers, for %d heads", #sizes, heads) end
  local total = sizes[1] + sizes[2] + sizes[3]
  for _, size in ipairs(sizes) do
    if size < 1 or size % heads ~= 0 then n:fail("%d elements have no %d heads", size, heads) end
  end
  if total ~= W.shape[2] or B and common.text(B.shape) ~= common.text {total} then
    n:fail("%d elements, weights of %s", total, common.text(W.shape))
  end
  return heads, sizes
end

-- Attention of such a product P; mask, past, bias: the numbers of those inputs. The past holds keys and values.
local function attend_joined(n, P, heads, sizes, at)
  local q = attention.heads(n, P, heads, 0, sizes[1] // heads)
  local k, v = attention.heads(n, P, heads, sizes[1], sizes[2] // heads),
    attention.heads(n, P, heads, sizes[1] + sizes[2], sizes[3] // heads)
  local past = 0
  if n:has(at.past) then
    local old = n:x(at.past)
    local s = old.shape
    if #s ~= 5 or s[1] ~= 2 or k.size ~= v.size or s[2] ~= k.batch or s[3] ~= heads or s[5] ~= k.size then
      n:fail("a past of %s", common.text(s))
    end
    local function part(which)
      return compute({s[2], s[3], s[4], s[5]}, old.type,
                     function(i) return old[{te.const(which, "int32"), i[1], i[2], i[3], i[4]}] end)
    end
    past, k, v = s[4], attention.joined(n, part(0), k), (attention.joined(n, part(1), v))
  end
  local shape = {q.batch, heads, q.places, k.places}
  local made = attention.attend(n, {q = q, k = k, v = v, scale = scale_of(n, q.size), bias = sum_of(padding(n, at.mask,
                                    shape), at.bias and added(n, at.bias, shape)), allowed = causal(n, past)})
  local present
  if n:wants(2) then
    if k.size ~= v.size then n:fail "keys and values of different sizes are not kept" end
    present = compute({2, k.batch, heads, k.places, k.size}, P.type, function(i)
      return te.if_then_else(te.eq(i[1], 0), k.at(i[2], i[3], i[4], i[5]), v.at(i[2], i[3], i[4], i[5]))
    end)
  end
  return attention.beside(made.y, P.type), present
end

microsoft("Attention", function(n)
  local X, W, B = n:x(1), n:x(2), n:has(3) and n:x(3) or nil
  if n:has(7) then n:fail "a cache that is shared is not computed" end
  local heads, sizes = check_joined(n, X, W, B)
  local sum = common.matmul(n, X, W, wide, wide)
  local P = compute(sum.shape, X.type, function(i) return B and sum[i] + wide(B[{i[3]}]) or sum[i] end)
  return attend_joined(n, P, heads, sizes, {mask = 4, past = 5, bias = 6})
end)

-- Input and weights are integers with scales and zero points; their sums are exact.
microsoft("QAttention", function(n)
  local X, W, B = n:x(1), n:x(2), n:x(3)
  local heads, sizes = check_joined(n, X, W, B)
  local sum, scale = common.matmul(n, X, W, common.less(n, 7, true), common.less(n, 8, false)),
    common.by_column(n, 5, W.shape[2])
  local input_scale = common.by_column(n, 4, 1)
  local P = compute(sum.shape, B.type, function(i)
    return te.cast(sum[i], "float32") * (te.cast(wide(input_scale(i)), "float32") * te.cast(wide(scale(i)), "float32"))
      + te.cast(wide(B[{i[3]}]), "float32")
  end)
  return attend_joined(n, P, heads, sizes, {mask = 6, past = 9})
end)

-- A place of each word in the tables of angles: {batch, places}, or one number before all.
microsoft("RotaryEmbedding", function(n)
  local X, P, C, S = n:x(1), n:x(2), n:x(3), n:x(4)
  if n:flag("is_packed_batching", 0) then n:fail "packed batches are not computed" end
  if n:float("scale", 1.0) ~= 1 then n:fail("scale is %g, not 1", n:float "scale") end
  local heads, turned = n:int("num_heads", 0), n:int("rotary_embedding_dim", 0)
  if #X.shape == 3 and heads == 0 then
    if turned ~= 0 then n:fail "a part of each head is turned, and num_heads does not say how many there are" end
    heads = X.shape[3] // math.max(1, 2 * (C.shape[2] or 0))
  end
  local H = attention.heads(n, X, heads)
  if turned == 0 then turned = H.size end
  if turned < 2 or turned % 2 ~= 0 or turned > H.size or common.text {C.shape[1], turned // 2} ~= common.text(C.shape)
      or common.text(S.shape) ~= common.text(C.shape) then
    n:fail("%d elements of a head of %d are turned by %s", turned, H.size, common.text(C.shape))
  end
  local one = common.text(P.shape) == common.text {1}
  if not one and common.text(P.shape) ~= common.text {H.batch, H.places} then
    n:fail("places of %s, not of %s", common.text(P.shape), common.text {H.batch, H.places})
  end
  n:check_range(2, 0, C.shape[1] - (one and H.places or 1))
  local function of(T)
    return function(b, p, e)
      return T[{common.index(one and P[{te.const(0, "int32")}] + te.cast(p, P.type) or P[{b, p}], C.shape[1]), e}]
    end
  end
  return attention.turned(X, H, turned, n:flag("interleaved", 0), of(C), of(S), X.shape)
end)

-- The same by three places of each word: which of them turns a pair is by sections, one after the other or by turns.
microsoft("MRotaryEmbedding", function(n)
  local X, P, C, S = n:x(1), n:x(2), n:x(3), n:x(4)
  if n:flag("is_packed_batching", 0) then n:fail "packed batches are not computed" end
  if n:float("scale", 1.0) ~= 1 then n:fail("scale is %g, not 1", n:float "scale") end
  local heads, turned, sections = n:int("num_heads", 0), n:int("rotary_embedding_dim", 0), n:ints "mrope_section"
  local by_turns = n:int("mrope_layout", 0)
  if #X.shape == 3 and heads == 0 then heads = X.shape[3] // math.max(1, 2 * (C.shape[2] or 0)) end
  local H = attention.heads(n, X, heads)
  if turned == 0 then turned = H.size end
  local half = turned // 2
  if turned < 2 or turned % 2 ~= 0 or turned > H.size or common.text {C.shape[1], half} ~= common.text(C.shape)
      or common.text(S.shape) ~= common.text(C.shape) then
    n:fail("%d elements of a head of %d are turned by %s", turned, H.size, common.text(C.shape))
  end
  if #sections ~= 3 or math.min(table.unpack(sections)) < 0 or sections[1] + sections[2] + sections[3] ~= half then
    n:fail("sections of %s for %d pairs", common.text(sections), half)
  end
  if by_turns ~= 0 and by_turns ~= 1 then n:fail("mrope_layout is %d, neither 0 nor 1", by_turns) end
  if common.text(P.shape) ~= common.text {3, H.batch, H.places} then
    n:fail("places of %s, not of %s", common.text(P.shape), common.text {3, H.batch, H.places})
  end
  n:check_range(2, 0, C.shape[1] - 1)
  local function section(e)
    local second, third = te.const(1, "int32"), te.const(2, "int32")
    if by_turns == 0 then
      return te.select(te.lt(e, sections[1]), te.const(0, "int32"),
                       te.select(te.lt(e, sections[1] + sections[2]), second, third))
    end
    local k = te.floormod(e, 3)
    return te.select(te.all(te.eq(k, 1), te.lt(e, 3 * sections[2])), second,
                     te.select(te.all(te.eq(k, 2), te.lt(e, 3 * sections[3])), third, te.const(0, "int32")))
  end
  local function of(T)
    return function(b, p, e)
      local which = te.maximum(te.minimum(section(e), 2), 0)
      return T[{common.index(P[{which, b, p}], C.shape[1]), e}]
    end
  end
  return attention.turned(X, H, turned, n:flag("interleaved", 0), of(C), of(S), X.shape)
end)

-- Heads of queries that share those of keys; the cache holds so many keys as a sequence has, less one.
microsoft("GroupQueryAttention", function(n)
  local heads, groups = n:int "num_heads", n:int "kv_num_heads"
  local X, L, whole = n:x(1), n:x(6), n:scalar(7)
  for _, name in ipairs {"k_quant_type", "v_quant_type"} do
    if n:text(name, "NONE") ~= "NONE" then n:fail("%s: a cache that is quantized is not computed", name) end
  end
  if n:int("smooth_softmax", 0) == 1 then n:fail "smooth_softmax is not computed" end
  if n:int("qk_output", 0) ~= 0 or n:wants(4) then n:fail "its products are not given" end
  if heads < 1 or groups < 1 or heads % groups ~= 0 then
    n:fail("%d heads of queries do not share %d of keys", heads, groups)
  end
  local q, k, v
  if n:has(2) then
    q, k, v = attention.heads(n, X, heads), attention.heads(n, n:x(2), groups), attention.heads(n, n:x(3), groups)
  else
    local size = X.shape[3] // (heads + 2 * groups)
    q = attention.heads(n, X, heads, 0, size)
    k, v = attention.heads(n, X, groups, heads * size, size),
      attention.heads(n, X, groups, (heads + groups) * size, size)
  end
  local S, old_k, old_v = q.places, n:has(4) and n:x(4) or nil, n:has(5) and n:x(5) or nil
  if (old_k == nil) ~= (old_v == nil) then n:fail "a past of keys is without one of values, or the other way round" end
  if common.count(L.shape) ~= q.batch then n:fail("lengths of %s for a batch of %d", common.text(L.shape), q.batch) end
  local before = old_k and old_k.shape[3] or 0
  local places = math.max(before, whole)
  n:check_range(6, 0, places - 1)
  local function past(b) return te.maximum(te.cast(L[common.unfold(b, L.shape)], "int32") + (1 - S), 0) end
  if n:flag("do_rotary", 0) then
    local C, T, P = n:x(8), n:x(9), n:has(10) and n:x(10) or nil
    local turned = 2 * (C.shape[2] or 0)
    if #C.shape ~= 2 or turned < 2 or turned > q.size or common.text(C.shape) ~= common.text(T.shape) then
      n:fail("heads of %d are turned by %s", q.size, common.text(C.shape))
    end
    if P then n:check_range(10, 0, C.shape[1] - 1) end
    local function of(table_of)
      return function(b, p, e) return table_of[{common.index(P and P[{b, p}] or past(b) + p, C.shape[1]), e}] end
    end
    local function turn(H)
      local Y =
        attention.turned(X, H, turned, n:flag("rotary_interleaved", 0), of(C), of(T), {H.batch, H.heads, S, H.size})
      return attention.heads(n, Y)
    end
    q, k = turn(q), turn(k)
  end
  -- Keys of the past, then those of now, then nothing.
  local function present(old, H)
    if old and common.text(old.shape) ~= common.text {H.batch, groups, before, H.size} then
      n:fail("a past of %s", common.text(old.shape))
    end
    return compute({H.batch, groups, places, H.size}, X.type, function(i)
      local at = i[3] - past(i[1])
      local new =
        te.select(te.lt(at, S), H.at(i[1], i[2], te.maximum(te.minimum(at, S - 1), 0), i[4]), te.const(0.0, X.type))
      if not old or before == 0 then return new end
      return te.select(te.lt(at, 0), old[{i[1], i[2], te.minimum(i[3], before - 1), i[4]}], new)
    end)
  end
  local keys, values = present(old_k, k), present(old_v, v)
  local window = n:int("local_window_size", -1)
  local function allowed(i)
    local p = past(i[1]) + i[3]
    local seen = te.le(i[4], p)
    return window > 0 and te.all(seen, te.gt(i[4], p - window)) or seen
  end
  local sink = n:has(12) and n:x(12) or nil
  local bias
  if n:has(11) then
    local B = n:x(11)
    if #B.shape ~= 4 or B.shape[4] < places then n:fail("a bias of %s for %d keys", common.text(B.shape), places) end
    bias = function(i) return wide(B[{B.shape[1] == 1 and 0 or i[1], B.shape[2] == 1 and 0 or i[2], i[3], i[4]}]) end
  end
  local made = attention.attend(n, {q = q, k = attention.heads(n, keys), v = attention.heads(n, values),
                                    scale = scale_of(n, q.size), softcap = n:float("softcap", 0.0), allowed = allowed,
                                    bias = bias, sink = sink and function(h) return wide(sink[{h}]) end or nil})
  return attention.beside(made.y, X.type), n:wants(2) and keys or nil, n:wants(3) and values or nil
end)

return operators
