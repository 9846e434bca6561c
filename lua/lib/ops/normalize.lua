-- Operators that normalize along dimensions by what they reduce there: softmax, layer norm, attention. For short floats
-- what is between is held in float32; the result has the type of what was given.
local ms = msched
local te, common = ms.te, ms.load "lua.lib.ops.common"
local matmul = ms.load "lua.lib.ops.matmul"
local ops = {}

-- Along one dimension, the last unless it is given. The largest element is taken away before, so that nothing
-- overflows.
function ops.softmax(X, axis, name)
  common.check_tensor("softmax", "X", X)
  common.check_float("softmax", "X", X)
  local a, type = common.axis("softmax", axis or -1, #X.shape), common.sums(X.type)
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
  local powers =
    te.compute(X.shape, function(...) return te.exp(te.cast(X(...), type) - te.cast(most[without {...}], type)) end,
               "exponent")
  local total = te.compute(shape, function(...) return te.sum(powers[with({...}, q)], q) end, "total")
  return te.compute(X.shape, function(...) return te.cast(powers(...) / total[without {...}], X.type) end,
                    name or "softmax")
end

-- Ba, Kiros and Hinton, "Layer Normalization": over the last dimensions, those that gamma and beta have.
function ops.layer_norm(X, gamma, beta, options)
  local what = "layer_norm"
  local o = common.options(what, options, {epsilon = 1e-5, name = what})
  common.check_tensor(what, "X", X)
  common.check_float(what, "X", X)
  common.check_tensor(what, "gamma", gamma)
  local outer = #X.shape - #gamma.shape
  if outer < 0 or #gamma.shape == 0 then common.fail(what, "gamma has %d dimensions, X %d", #gamma.shape, #X.shape) end
  local inner, type, count = {table.unpack(X.shape, outer + 1)}, common.sums(X.type), 1
  common.check_shape(what, "gamma", gamma, inner)
  common.check_shape(what, "beta", beta, inner)
  for _, extent in ipairs(inner) do count = count * extent end
  local function total(name, f)
    local axes = {}
    for d, extent in ipairs(inner) do axes[d] = te.reduce_axis(extent, "k" .. d - 1) end
    return te.compute({table.unpack(X.shape, 1, outer)}, function(...)
      local at = {...}
      table.move(axes, 1, #axes, outer + 1, at)
      return te.sum(f(te.cast(X[at], type), {...}), axes)
    end, name)
  end
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

-- Vaswani et al., "Attention Is All You Need", section 3.2.1: softmax(Q K^T x scale) V, of queries (batch…, rows, d),
-- keys (batch…, columns, d) and values (batch…, columns, dv); scale: 1 / sqrt(d). causal: row i sees columns up to i
-- alone.
function ops.attention(Q, K, V, options)
  local what = "attention"
  common.check_tensor(what, "Q", Q)
  local rank = #Q.shape
  if rank < 3 then common.fail(what, "Q has %d dimensions; a batch of matrices has 3 or more", rank) end
  local o = common.options(what, options, {scale = Q.shape[rank] ^ -0.5, causal = false, name = what})
  local expected = {table.unpack(Q.shape)}
  expected[rank - 1] = false
  common.check_shape(what, "K", K, expected)
  expected[rank - 1], expected[rank] = K.shape[rank - 1], false
  common.check_shape(what, "V", V, expected)
  common.check_float(what, "Q", Q)
  local products = matmul.batch_matmul(Q, K, {transpose_b = true, name = "scores"})
  local scores = te.compute(products.shape, function(...)
    local at = {...}
    local value = products(...) * o.scale
    return o.causal and te.select(te.le(at[rank], at[rank - 1]), value, te.min_value(products.type)) or value
  end, "scaled")
  local Y = matmul.batch_matmul(ops.softmax(scores), V, {accumulate = scores.type, name = o.name})
  return Y.type == Q.type and Y or ms.load "lua.lib.ops.elementwise".cast(Y, Q.type)
end

return ops
