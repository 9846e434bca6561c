-- ops: operators in tensor expressions, as parts of larger functions. Each takes tensors and gives a tensor.
local te = msched.te or msched.load "lua.te"
local ops = {}

-- (M, K) x (K, N) -> (M, N); transpose_a: (K, M), transpose_b: (N, K).
function ops.matmul(A, B, options)
  options = options or {}
  local m, k = A.shape[1], A.shape[2]
  if options.transpose_a then m, k = k, m end
  local n = options.transpose_b and B.shape[1] or B.shape[2]
  local r = te.reduce_axis(k, "k")
  local type = options.accumulate or A.type
  return te.compute({m, n}, function(i, j)
    local a = options.transpose_a and A[{r, i}] or A[{i, r}]
    local b = options.transpose_b and B[{j, r}] or B[{r, j}]
    return te.sum(te.cast(a, type) * te.cast(b, type), r)
  end, options.name or "C")
end

-- Zeros around height and width of (N, H, W, C).
function ops.pad2d(X, pad, name)
  if pad == 0 then return X end
  local n, h, w, c = table.unpack(X.shape)
  return te.compute({n, h + 2 * pad, w + 2 * pad, c}, function(b, y, x, q)
    local inside = te.all(te.ge(y, pad), te.lt(y, h + pad), te.ge(x, pad), te.lt(x, w + pad))
    return te.if_then_else(inside, X[{b, y - pad, x - pad, q}], te.const(0.0, X.type))
  end, name or "pad")
end

-- (N, H, W, C) with (KH, KW, C / groups, O) -> (N, H', W', O).
function ops.conv2d(X, W, options)
  options = options or {}
  local pad, stride, dilation, groups = options.pad or 0, options.stride or 1, options.dilation or 1, options.groups or 1
  local P = ops.pad2d(X, pad)
  local kh, kw, ci, co = table.unpack(W.shape)
  local function size(input, kernel) return (input - (kernel - 1) * dilation - 1) // stride + 1 end
  local rh, rw, rc = te.reduce_axis(kh, "rh"), te.reduce_axis(kw, "rw"), te.reduce_axis(ci, "rc")
  local shape = {P.shape[1], size(P.shape[2], kh), size(P.shape[3], kw), co}
  return te.compute(shape, function(n, h, w, o)
    local channel = groups == 1 and rc or te.floordiv(o, co // groups) * ci + rc
    return te.sum(P[{n, h * stride + rh * dilation, w * stride + rw * dilation, channel}] * W[{rh, rw, rc, o}], {rh, rw, rc})
  end, options.name or "conv2d")
end

-- f of each element.
function ops.map(X, f, name)
  return te.compute(X.shape, function(...) return f(X(...), ...) end, name or "map")
end

function ops.relu(X, name) return ops.map(X, function(x) return te.maximum(x, 0) end, name or "relu") end

-- The last dimension's bias, or scale and shift.
function ops.bias_add(X, bias, name)
  return ops.map(X, function(x, ...) return x + bias[{(select(select("#", ...), ...))}] end, name or "bias_add")
end
function ops.scale_shift(X, scale, shift, name)
  return ops.map(X, function(x, ...)
    local c = select(select("#", ...), ...)
    return x * scale[{c}] + shift[{c}]
  end, name or "scale_shift")
end

-- Along the last dimension of (M, N).
function ops.softmax(X)
  local m, n = X.shape[1], X.shape[2]
  local k, q = te.reduce_axis(n, "k"), te.reduce_axis(n, "q")
  local most = te.compute({m}, function(i) return te.max(X[{i, k}], k) end, "maximum")
  local powers = te.compute({m, n}, function(i, j) return te.exp(X[{i, j}] - most[i]) end, "exponent")
  local sum = te.compute({m}, function(i) return te.sum(powers[{i, q}], q) end, "total")
  return te.compute({m, n}, function(i, j) return powers[{i, j}] / sum[i] end, "softmax")
end

return ops
