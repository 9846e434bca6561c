-- Operators that normalize along dimensions by what they reduce there: softmax, norms, attention; and what turns
-- attention's queries and keys, rotary embeddings. For short floats what is between is held in float32; the result has
-- the type of what was given.
local ms = msched
local te, common = ms.te, ms.load "lua.lib.ops.common"
local matmul = ms.load "lua.lib.ops.matmul"
local ops = {}

-- Along dimension `a`. The largest element, less `headroom`, is taken away before, so that nothing overflows:
-- exponentials are up to exp(headroom), which cancels.
local function softmax(X, a, name, headroom)
  local type = common.sums(X.type)
  local shape = {table.unpack(X.shape)}
  table.remove(shape, a)
  local k, q = te.reduce_axis(X.shape[a], "k"), te.reduce_axis(X.shape[a], "q")
  local function with(indices, index)
    local at = {table.unpack(indices)}
    table.insert(at, a, index)
    return at
  end
  local function without(indices)
    table.remove(indices, a)
    return indices
  end
  local most = te.compute(shape, function(...) return te.max(X[with({...}, k)], k) end, "maximum")
  local powers = te.compute(X.shape, function(...)
    local largest = te.cast(most[without {...}], type)
    return te.exp(te.cast(X(...), type) - (headroom and largest - headroom or largest))
  end, "exponent")
  local total = te.compute(shape, function(...) return te.sum(powers[with({...}, q)], q) end, "total")
  return te.compute(X.shape, function(...) return te.cast(powers(...) / total[without {...}], X.type) end,
                    name or "softmax")
end

-- The last dimension unless it is given.
function ops.softmax(X, axis, name)
  common.check_tensor("softmax", "X", X)
  common.check_float("softmax", "X", X)
  return softmax(X, common.axis("softmax", axis or -1, #X.shape), name)
end

-- Norms over the last dimensions, those that gamma has: how many come before, the extents and the number of elements of
-- one, the type of sums, and what sums over it, f of an element and its row.
local function over_last(what, X, gamma)
  common.check_tensor(what, "X", X)
  common.check_float(what, "X", X)
  common.check_tensor(what, "gamma", gamma)
  local outer, count = #X.shape - #gamma.shape, 1
  if outer < 0 or #gamma.shape == 0 then common.fail(what, "gamma has %d dimensions, X %d", #gamma.shape, #X.shape) end
  local inner, type = {table.unpack(X.shape, outer + 1)}, common.sums(X.type)
  common.check_shape(what, "gamma", gamma, inner)
  for _, extent in ipairs(inner) do count = count * extent end
  return outer, inner, count, type, function(name, f)
    local axes = {}
    for d, extent in ipairs(inner) do axes[d] = te.reduce_axis(extent, "k" .. d - 1) end
    return te.compute({table.unpack(X.shape, 1, outer)}, function(...)
      local at = {...}
      table.move(axes, 1, #axes, outer + 1, at)
      return te.sum(f(te.cast(X[at], type), {...}), axes)
    end, name)
  end
end

-- Ba, Kiros and Hinton, "Layer Normalization".
function ops.layer_norm(X, gamma, beta, options)
  local what = "layer_norm"
  local o = common.options(what, options, {epsilon = 1e-5, name = what})
  local outer, inner, count, type, total = over_last(what, X, gamma)
  common.check_shape(what, "beta", beta, inner)
  local function mean(sum, at) return sum[at] * (1.0 / count) end
  local sum = total(o.name .. "_sum", function(x) return x end)
  local squares = total(o.name .. "_squares", function(x, at) return (x - mean(sum, at)) * (x - mean(sum, at)) end)
  return te.compute(X.shape, function(...)
    local at = {...}
    local row, column = {table.unpack(at, 1, outer)}, {table.unpack(at, outer + 1)}
    local normal = (te.cast(X(...), type) - mean(sum, row)) * te.rsqrt(mean(squares, row) + o.epsilon)
    return te.cast(normal * te.cast(gamma[column], type) + te.cast(beta[column], type), X.type)
  end, o.name)
end

-- Zhang and Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.
function ops.rms_norm(X, gamma, options)
  local what = "rms_norm"
  local o = common.options(what, options, {epsilon = 1e-5, name = what})
  local outer, _, count, type, total = over_last(what, X, gamma)
  local squares = total(o.name .. "_squares", function(x) return x * x end)
  return te.compute(X.shape, function(...)
    local at = {...}
    local row, column = {table.unpack(at, 1, outer)}, {table.unpack(at, outer + 1)}
    local normal = te.cast(X(...), type) * te.rsqrt(squares[row] * (1.0 / count) + o.epsilon)
    return te.cast(normal * te.cast(gamma[column], type), X.type)
  end, o.name)
end

-- Su et al., "RoFormer", 2021: pairs of elements of (batch…, rows, d) turned by an angle of their row, whose cosine and
-- sine are given, each (rows, turned / 2). Of each row the first `turned` elements are turned, all unless it is given.
function ops.rotary(X, cos, sin, options)
  local what = "rotary"
  local o = common.options(what, options, {turned = false, interleaved = false, name = what})
  common.check_flags(what, o, "interleaved")
  common.check_tensor(what, "X", X)
  common.check_float(what, "X", X)
  if #X.shape < 2 then common.fail(what, "X has %d dimensions; rows of elements have 2 or more", #X.shape) end
  local rows, size = X.shape[#X.shape - 1], X.shape[#X.shape]
  local turned = o.turned and common.check_integer(what, "turned", o.turned, 2) or size
  if turned % 2 ~= 0 or turned > size or turned == 0 then
    common.fail(what, "turned is %d; an even number of at most %d, which X has in a row, is expected", turned, size)
  end
  common.check_shape(what, "cos", cos, {rows, turned // 2})
  common.check_shape(what, "sin", sin, {rows, turned // 2})
  local type = common.sums(X.type)
  return te.compute(X.shape, function(...)
    local at = {...}
    local e, row = at[#at], at[#at - 1]
    local pair, first, other = common.pair_of(e, size, turned, o.interleaved)
    local x = te.cast(X(...), type)
    at[#at] = other
    local z = common.turn(x, te.cast(X[at], type), first, te.cast(cos[{row, pair}], type),
                          te.cast(sin[{row, pair}], type))
    return te.cast(turned < size and te.select(te.lt(e, turned), z, x) or z, X.type)
  end, o.name)
end

-- What is added to the scores, or says which of them count: a function of a score's value and place.
local function masked(scale_at, o, type, rank)
  return function(value, at)
    local conditions = {}
    value = value * scale_at(at)
    if o.mask then value = value + te.cast(common.broadcast_element(o.mask, at), type) end
    if o.causal then conditions[1] = te.le(at[rank], at[rank - 1]) end
    if o.lengths then conditions[#conditions + 1] = te.lt(at[rank], te.cast(o.lengths[{at[1]}], "int32")) end
    if #conditions == 0 then return value end
    return te.select(#conditions == 1 and conditions[1] or te.all(table.unpack(conditions)), value, te.min_value(type))
  end
end

-- The mask's extents are those of the scores, the last ones, or 1.
local function check_mask(what, mask, scores)
  common.check_tensor(what, "mask", mask)
  common.check_float(what, "mask", mask)
  local offset = #scores - #mask.shape
  if offset < 0 then common.fail(what, "mask has %d dimensions, the scores %d", #mask.shape, #scores) end
  for d, extent in ipairs(mask.shape) do
    if extent ~= 1 and extent ~= scores[offset + d] then
      common.fail(what, "extent %d of mask is %d; 1 or %d is expected", d, extent, scores[offset + d])
    end
  end
end

-- The scale of a tensor's matrices at indices of the result, of which each is for `group` heads in a row; nil: it has
-- none. It is one for all, of shape {1}, or one for each matrix; what it is multiplied with has a type of its own.
local function scale_of(what, name, scale, X, at, group, type)
  if not scale then return nil end
  local batch = #X.shape - 2
  common.check_tensor(what, name, scale)
  if scale.type ~= "float32" then common.fail(what, "%s is of %s; float32 is expected", name, scale.type) end
  if #scale.shape == 1 and scale.shape[1] == 1 then return te.cast(scale[{0}], type) end
  common.check_shape(what, name, scale, {table.unpack(X.shape, 1, batch)})
  local indices = {table.unpack(at, 1, batch)}
  if group > 1 then indices[batch] = indices[batch] // group end
  return te.cast(scale[indices], type)
end

-- Exponentials of floats of 8 bits, as a kernel rounds them, are at most 2^8, so that small ones keep their digits
-- (Shah et al., "FlashAttention-3", NeurIPS 2024).
local HEADROOM = {float8_e4m3fn = 8 * math.log(2), float8_e5m2 = 8 * math.log(2)}

-- Vaswani et al., "Attention Is All You Need", section 3.2.1: softmax(Q K^T x scale + mask) V, of queries (batch…,
-- rows, d), keys (batch…, columns, d) and values (batch…, columns, dv); scale: 1 / sqrt(d). causal: row i sees columns
-- up to i alone; lengths: of the first dimension, how many columns there are. Keys and values may have fewer matrices
-- in their last dimension of the batch: each is for as many heads in a row (Ainslie et al., "GQA", 2023). q_scale,
-- k_scale, v_scale: what the elements of a tensor are multiplied with. dtype: of the result; that of Q, of floats of 8
-- bits float16.
function ops.attention(Q, K, V, options)
  local what = "attention"
  common.check_tensor(what, "Q", Q)
  local rank = #Q.shape
  if rank < 3 then common.fail(what, "Q has %d dimensions; a batch of matrices has 3 or more", rank) end
  local o = common.options(what, options,
                           {scale = Q.shape[rank] ^ -0.5, causal = false, mask = false, lengths = false, name = what,
                            q_scale = false, k_scale = false, v_scale = false, dtype = false})
  common.check_flags(what, o, "causal")
  local expected = {table.unpack(Q.shape)}
  common.check_tensor(what, "K", K, rank)
  local heads, own = Q.shape[rank - 2], K.shape[rank - 2]
  if own == 0 or heads % own ~= 0 then
    common.fail(what, "%d heads of queries do not share %d of keys evenly", heads, own)
  end
  expected[rank - 1], expected[rank - 2] = false, own
  common.check_shape(what, "K", K, expected)
  expected[rank - 1], expected[rank] = K.shape[rank - 1], false
  common.check_shape(what, "V", V, expected)
  common.check_float(what, "Q", Q)
  if o.lengths then
    common.check_shape(what, "lengths", o.lengths, {Q.shape[1]})
    local type = o.lengths.type
    if not type:find "^u?int" then common.fail(what, "lengths is of %s; integers are expected", type) end
  end
  local out, group = o.dtype or HEADROOM[Q.type] and "float16" or Q.type, heads // own
  if not common.is_type(out) or not common.is_float(out) then
    common.fail(what, "dtype is %s; a type of floats is expected", tostring(out))
  end
  local products = matmul.batch_matmul(Q, K, {transpose_b = true, group = group, name = "scores"})
  if o.mask then check_mask(what, o.mask, products.shape) end
  local value_of = masked(function(at)
    local of_q = scale_of(what, "q_scale", o.q_scale, Q, at, 1, products.type)
    local of_k = scale_of(what, "k_scale", o.k_scale, K, at, group, products.type)
    local scale = of_q and of_q * o.scale or o.scale
    return of_k and of_k * scale or scale
  end, o, products.type, rank)
  local scores = te.compute(products.shape, function(...) return value_of(products(...), {...}) end, "scaled")
  local Y = matmul.batch_matmul(softmax(scores, rank, nil, HEADROOM[V.type]), V,
                                {accumulate = scores.type, group = group, name = o.name})
  if o.v_scale then
    local values = Y
    Y = te.compute(values.shape, function(...)
      return te.cast(values(...) * scale_of(what, "v_scale", o.v_scale, V, {...}, group, values.type), out)
    end, o.name .. "_scaled")
  end
  return Y.type == out and Y or ms.load "lua.lib.ops.elementwise".cast(Y, out)
end

return ops
