-- More operators of com.microsoft: those that other operators are, by another name or in another order of dimensions,
-- and norms, gates and quantized weights that exporters and onnxruntime's optimizer write.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local shapes, selection = ms.load "lua.net.operators.shapes", ms.load "lua.net.operators.selection"
local sampling, recurrent = ms.load "lua.net.operators.sampling", ms.load "lua.net.operators.recurrent"
local windows, elementwise = ms.load "lua.net.operators.windows", ms.load "lua.net.operators.elementwise"
ms.load "lua.net.operators.reductions" -- for common.over, common.moments and common.exponentials
local operators = {}
local compute, reduce, wide = common.compute, common.reduce, common.wide
local function microsoft(name, f) operators["com.microsoft." .. name] = f end
local function float32(x) return te.cast(wide(x), "float32") end

-- ---- By another name ---------------------------------------------------------------------------------------------

for _, name in ipairs {"GatherND", "Pad", "Range", "Trilu"} do microsoft(name, shapes[name]) end
microsoft("GridSample", sampling.GridSample)
microsoft("LinearAttention", function(n)
  if n:int("state_window", 0) ~= 0 then n:fail "states of several steps are not kept" end
  return recurrent.LinearAttention(n)
end)
microsoft("CausalConvWithState", function(n)
  for _, name in ipairs {"state_update_capacity", "state_window", "state_length", "channels_last", "input_channels",
                         "input_channel_offset"} do
    if n:int(name, 0) ~= 0 then n:fail("%s is %d, not 0", name, n:int(name)) end
  end
  if n:int("ndim", 1) ~= 1 or n:int("dilation", 1) ~= 1 then n:fail "it is of one dimension, without dilation" end
  return windows.CausalConvWithState(n)
end)
microsoft("Unique", function(n)
  local Y, _, inverse, counts = selection.Unique(n)
  return Y, inverse, counts
end)
microsoft("ExpandDims", function(n)
  local shape = table.move(n:shape(1), 1, n:rank(1), 1, {})
  table.insert(shape, n:axis(n:scalar(2), #shape + 1), 1)
  return common.reshaped(n:x(1), shape)
end)
microsoft("NhwcMaxPool", function(n)
  return common.channels_last((common.max_pool(n, common.channels_second(n, n:x(1)))))
end)
-- Weights have what they are multiplied by last, too.
microsoft("NhwcConv", function(n)
  local W = common.channels_second(n, n:x(2))
  return common.channels_last(common.convolution(n, common.channels_second(n, n:x(1)), W))
end)
microsoft("ConvTransposeWithDynamicPads", function(n)
  local attributes = {}
  for name, value in pairs(n.node.attributes) do attributes[name] = value end
  if n:has(3) then attributes.pads = n:list(3) end
  local inputs = {n.node.inputs[1], n.node.inputs[2], n:has(4) and n.node.inputs[4] or ""}
  return n:gives {n:add("ConvTranspose", inputs, attributes)}
end)

-- Windows of `size` elements along an axis, `step` apart, in a dimension of their own.
microsoft("UnfoldTensor", function(n)
  local X, rank, size, step = n:x(1), n:rank(1), n:int "size", n:int("step", 1)
  local axis = n:axis(n:int("dim", -1), rank)
  local shape = table.move(X.shape, 1, rank, 1, {})
  if size < 1 or size > shape[axis] or step < 1 then
    n:fail("windows of %d, %d apart, of %d elements", size, step, shape[axis])
  end
  shape[axis], shape[rank + 1] = (shape[axis] - size) // step + 1, size
  return compute(shape, X.type, function(i)
    local at = table.move(i, 1, rank, 1, {})
    at[axis] = i[axis] * step + i[rank + 1]
    return X[at]
  end)
end)

-- ---- Of each element, with a bias or a gate -----------------------------------------------------------------------

local function is_row(n, V, size, what)
  if #V.shape ~= 1 or V.shape[1] ~= size then n:fail("%s of %s for %d elements", what, common.text(V.shape), size) end
  return V
end
local function alike(n, X, Y, what)
  if common.text(X.shape) ~= common.text(Y.shape) then
    n:fail("%s of %s for %s", what, common.text(Y.shape), common.text(X.shape))
  end
  return Y
end

microsoft("BiasAdd", function(n)
  local X, S = n:x(1), alike(n, n:x(1), n:x(3), "a residual")
  local B = is_row(n, n:x(2), X.shape[#X.shape], "a bias")
  return compute(X.shape, X.type, function(i) return wide(X[i]) + wide(B[{i[#i]}]) + wide(S[i]) end)
end)
-- As it is when nothing is dropped.
microsoft("BiasDropout", function(n)
  if n:has(5) and n:scalar(5) ~= 0 and n:scalar(5) ~= false then n:fail "it drops at random: training is not run" end
  local X, B, R = n:x(1), n:x(2), n:has(3) and alike(n, n:x(1), n:x(3), "a residual") or nil
  if common.text(common.broadcast(n, {X.shape, B.shape})) ~= common.text(X.shape) then
    n:fail("a bias of %s for %s", common.text(B.shape), common.text(X.shape))
  end
  return compute(X.shape, X.type, function(i)
    local y = wide(X[i]) + wide(common.at(B, i))
    return R and y + wide(R[i]) or y
  end), n:wants(2) and compute(X.shape, "bool", function() return te.const(true, "bool") end) or nil
end)
-- The first half of each row by GELU of the second.
microsoft("BiasSplitGelu", function(n)
  local X, s, rank = n:x(1), n:shape(1), n:rank(1)
  local B, half = is_row(n, n:x(2), s[rank], "a bias"), s[rank] // 2
  if s[rank] % 2 ~= 0 then n:fail("%d elements have no halves", s[rank]) end
  return compute(table.move(s, 1, rank - 1, 1, {[rank] = half}), X.type, function(i)
    local function part(e) return wide(X[table.move(i, 1, rank - 1, 1, {[rank] = e})]) + wide(B[{e}]) end
    return part(i[rank]) * common.gelu(part(i[rank] + half))
  end)
end)
microsoft("BiasSoftmax", function(n)
  local X, B, set, rank = n:x(1), n:x(2), {}, n:rank(1)
  if common.text(common.broadcast(n, {X.shape, B.shape})) ~= common.text(X.shape) then
    n:fail("a bias of %s for %s", common.text(B.shape), common.text(X.shape))
  end
  for d = n:axis(n:int("axis", 1), rank), rank do set[d] = true end
  local with = compute(X.shape, common.wide_type(X.type), function(i) return wide(X[i]) + wide(common.at(B, i)) end)
  local e, sum = common.exponentials(with, set)
  return compute(X.shape, X.type, function(i) return e[i] / sum[common.inner(set, i)] end)
end)

-- SiLU of a scaled input, rounded to its type after each step.
microsoft("ScaledSiLU", function(n)
  local X, S, alpha = n:x(1), n:has(2) and n:x(2) or nil, n:float("alpha", 1.0)
  if S and common.count(S.shape) ~= 1 then n:fail("a scale of %s, not of one element", common.text(S.shape)) end
  local function rounded(x) return wide(te.cast(x, X.type)) end
  return compute(X.shape, X.type, function(i)
    local scale = S and te.cast(wide(S[common.unfold(0, S.shape)]), common.wide_type(X.type)) or alpha
    local z = rounded(wide(X[i]) * scale)
    return z * rounded(te.sigmoid(z))
  end)
end)
microsoft("SwiGLU", function(n)
  local X, U, s, rank = n:x(1), n:has(2) and alike(n, n:x(1), n:x(2), "a linear part") or nil, n:shape(1), n:rank(1)
  local alpha, beta, limit = n:float("activation_alpha", 1.0), n:float("activation_beta", 0.0), n:float("limit", 0.0)
  if not U and (rank < 1 or s[rank] % 2 ~= 0) then n:fail("%s has no halves", common.text(s)) end
  local half, round = not U and s[rank] // 2 or 0, n:flag("round_activation", 0)
  local shape = table.move(s, 1, rank, 1, {})
  if not U then shape[rank] = half end
  return compute(shape, X.type, function(i)
    local at = table.move(i, 1, rank, 1, {})
    if not U then at[rank] = i[rank] + half end
    local gate, line = wide(X[i]), wide((U or X)[at])
    if limit > 0 then
      gate, line = te.minimum(gate, limit), te.maximum(te.minimum(line, limit), -limit)
    end
    local active = gate * te.sigmoid(gate * alpha)
    if round then active = wide(te.cast(active, X.type)) end
    return active * (beta == 0 and line or line + beta)
  end)
end)
microsoft("GatedAdd", function(n)
  local X, Y, G, rank = n:x(1), alike(n, n:x(1), n:x(2), "a second input"), n:x(3), n:rank(1)
  if n:has(4) then n:fail "a gate that is a product is not computed" end
  if common.text(G.shape) ~= common.text(table.move(X.shape, 1, rank - 1, 1, {[rank] = 1})) then
    n:fail("a gate of %s for %s", common.text(G.shape), common.text(X.shape))
  end
  return compute(X.shape, X.type, function(i)
    local product = wide(Y[i]) * wide(common.at(G, i))
    return wide(X[i]) + wide(te.cast(product, X.type))
  end)
end)
microsoft("LinearAttentionGate", function(n)
  local A, rank = n:x(1), n:rank(1)
  local B, S = is_row(n, n:x(2), A.shape[rank], "a bias"), is_row(n, n:x(3), A.shape[rank], "a scale")
  local b = n:wants(2) and alike(n, A, n:x(4), "an update rate") or nil
  return compute(A.shape, A.type, function(i)
    return common.softplus(float32(A[i]) + B[{i[rank]}]) * S[{i[rank]}]
  end), b and compute(b.shape, b.type, function(i) return te.sigmoid(float32(b[i])) end) or nil
end)

-- Pairs of real and imaginary parts.
local function complex_product(sign)
  return function(n)
    local A, B, rank = n:x(1), n:x(2), n:rank(1)
    local shape = common.broadcast(n, {A.shape, B.shape})
    if A.shape[rank] ~= 2 or B.shape[#B.shape] ~= 2 then n:fail "its last extents are not 2, of complex numbers" end
    return compute(shape, A.type, function(i)
      local function part(X, k)
        return wide(common.at(X, table.move(i, 1, #shape - 1, 1, {[#shape] = te.const(k, "int32")})))
      end
      local a, b, c, d = part(A, 0), part(A, 1), part(B, 0), part(B, 1) * sign
      return te.select(te.eq(i[#shape], 0), a * c - b * d, a * d + b * c)
    end)
  end
end
microsoft("ComplexMul", complex_product(1.0))
microsoft("ComplexMulConj", complex_product(-1.0))

local function check_fourier(n)
  if n:int("onesided", 1) ~= 1 or n:int("normalized", 0) ~= 0 or n:int("signal_ndim", 1) ~= 1 then
    n:fail "it is onesided, not normalized, of one dimension"
  end
end
local function fourier(n, X, axis, attributes)
  attributes.axis = axis
  return n:add("DFT", {X, "", n:constant(ms.array({}, "int64", {axis}))}, attributes)
end
microsoft("Rfft", function(n)
  check_fourier(n)
  local shape = table.move(n:shape(1), 1, n:rank(1), 1, {})
  if #shape < 1 or shape[#shape] % 2 ~= 0 then
    n:fail("a signal of %s, whose last extent is not even", common.text(shape))
  end
  shape[#shape + 1] = 1
  local X = n:add("Reshape", {n.node.inputs[1], n:constant(ms.array({#shape}, "int64", shape))})
  if #shape == 2 then n:fail "it has no batch" end
  return n:gives {fourier(n, X, #shape - 2, {onesided = 1})}
end)
microsoft("Irfft", function(n)
  check_fourier(n)
  local rank = n:rank(1)
  if rank < 3 or n:shape(1)[rank] ~= 2 then n:fail("a spectrum of %s", common.text(n:shape(1))) end
  local Y = fourier(n, n.node.inputs[1], rank - 2, {onesided = 1, inverse = 1})
  return n:gives {n:add("Squeeze", {Y, n:constant(ms.array({1}, "int64", {rank - 1}))}, {axes = {rank - 1}})}
end)

-- Whether all elements of all inputs are finite.
microsoft("IsAllFinite", function(n)
  local nan, infinite = n:flag("isnan_only", 0), n:flag("isinf_only", 0)
  if nan and infinite then n:fail "isnan_only and isinf_only do not go together" end
  local bad
  for k = 1, n:count() do
    local X, set = n:x(k), {}
    for d = 1, #X.shape do set[d] = true end
    local any = common.over(X, set, false, te.sum, function(x)
      local is_nan, is_infinite = te.ne(x, x), te.eq(te.abs(x), te.const(math.huge, x.type))
      local is = nan and is_nan or infinite and is_infinite or te.any(is_nan, is_infinite)
      return te.select(is, te.const(1.0, x.type), te.const(0.0, x.type))
    end)
    local before = bad
    bad = compute({}, "bool", function()
      local own = te.gt(any[{}], 0.0)
      return before and te.any(before[{}], own) or own
    end)
  end
  if not bad then n:fail "it has no inputs" end
  return compute({}, "bool", function() return te.not_(bad[{}]) end)
end)

microsoft("CDist", function(n)
  local A, B = n:x(1), n:x(2)
  local metric = n:choice("metric", "sqeuclidean", "euclidean", "sqeuclidean")
  if #A.shape ~= 2 or #B.shape ~= 2 or A.shape[2] ~= B.shape[2] then
    n:fail("rows of %s and of %s", common.text(A.shape), common.text(B.shape))
  end
  local Y = reduce({A.shape[1], B.shape[1]}, {A.shape[2]}, te.sum, function(i, r)
    local d = wide(A[{i[1], r[1]}]) - wide(B[{i[2], r[1]}])
    return d * d
  end)
  return compute(Y.shape, A.type, function(i) return metric == "euclidean" and te.sqrt(Y[i]) or Y[i] end)
end)

-- ---- Norms -------------------------------------------------------------------------------------------------------

local function silu(x) return x * te.sigmoid(x) end

-- X by groups of its channels, which stand last or second.
local function group_norm(n, X, t)
  local gamma, beta, groups, epsilon = n:x(2), n:x(3), n:int "groups", n:float("epsilon", 1e-5)
  local last, active, s, rank = n:flag("channels_last", 1), n:int "activation", X.shape, #X.shape
  if rank < 3 then n:fail("its input has %d dimensions", rank) end
  local at = last and rank or 2
  local channels = s[at]
  if groups < 1 or channels % groups ~= 0 then n:fail("%d channels have no %d groups", channels, groups) end
  if active ~= 0 and active ~= 1 then n:fail("activation is %d, neither 0 nor 1", active) end
  is_row(n, gamma, channels, "a scale")
  is_row(n, beta, channels, "a bias")
  local each = channels // groups
  local folded, set = table.move(s, 1, at - 1, 1, {}), {}
  folded[at], folded[at + 1] = groups, each
  table.move(s, at + 1, rank, at + 2, folded)
  for d = 2, rank + 1 do set[d] = d ~= at or nil end
  local mean, variance = common.moments(common.reshaped(X, folded), set)
  return compute(s, t, function(i)
    local own = table.move(i, 1, at - 1, 1, {})
    own[at], own[at + 1] = te.floordiv(i[at], each), te.floormod(i[at], each)
    table.move(i, at + 1, rank, at + 2, own)
    local y = (wide(X[i]) - mean(own)) / te.sqrt(variance(own) + epsilon) * wide(gamma[{i[at]}]) + wide(beta[{i[at]}])
    return active == 1 and silu(y) or y
  end)
end
microsoft("GroupNorm", function(n) return group_norm(n, n:x(1), n:type(1)) end)
microsoft("SkipGroupNorm", function(n)
  local X, S, B, rank = n:x(1), n:x(4), n:has(5) and n:x(5) or nil, n:rank(1)
  local at = n:flag("channels_last", 1) and rank or 2
  if B then is_row(n, B, X.shape[at], "a bias") end
  local of_rows = #S.shape == 2 and common.text(S.shape) == common.text {X.shape[1], X.shape[at]}
  if not of_rows
      and (#S.shape ~= rank or common.text(common.broadcast(n, {X.shape, S.shape})) ~= common.text(X.shape)) then
    n:fail("%s is added to %s", common.text(S.shape), common.text(X.shape))
  end
  local sum = compute(X.shape, common.wide_type(X.type), function(i)
    local x = wide(X[i]) + wide(of_rows and S[{i[1], i[at]}] or common.at(S, i))
    return B and x + wide(B[{i[at]}]) or x
  end)
  return group_norm(n, sum, X.type), n:wants(2) and compute(X.shape, X.type, function(i) return sum[i] end) or nil
end)

-- Rows of several parts, each by the mean of its squares; part(i): {first, size} of the last dimension.
local function by_parts(n, X, size, epsilon)
  local s, rank = X.shape, #X.shape
  if rank < 1 or size < 1 or s[rank] % size ~= 0 then n:fail("%s has no parts of %d", common.text(s), size) end
  local sums = table.move(s, 1, rank, 1, {})
  sums[rank] = s[rank] // size
  local squares = reduce(sums, {size}, te.sum, function(i, r)
    local x = float32(X[table.move(i, 1, rank - 1, 1, {[rank] = i[rank] * size + r[1]})])
    return x * x
  end)
  return function(i)
    local at = table.move(i, 1, rank - 1, 1, {[rank] = te.floordiv(i[rank], size)})
    return float32(X[i]) / te.sqrt(squares[at] / (size + 0.0) + epsilon)
  end
end
microsoft("GatedRMSNorm", function(n)
  local X, S, G = n:x(1), n:x(2), alike(n, n:x(1), n:x(3), "a gate")
  local active = n:choice("activation", "silu", "silu", "swish", "sigmoid")
  is_row(n, S, common.count(S.shape), "a scale")
  local normed = by_parts(n, X, S.shape[1], n:float("epsilon", 1e-5))
  return compute(X.shape, X.type, function(i)
    local g = float32(G[i])
    return normed(i) * float32(S[{te.floormod(i[#i], S.shape[1])}]) * (active == "sigmoid" and te.sigmoid(g) or silu(g))
  end)
end)
microsoft("BranchwiseRMSNorm", function(n)
  local X, S, s, rank, parts = n:x(1), n:has(2) and n:x(2) or nil, n:shape(1), n:rank(1), n:int("num_branches", 0)
  if parts < 0 or parts > 0 and s[rank] % parts ~= 0 or parts == 0 and rank < 2 then
    n:fail("%s has no %d branches", common.text(s), parts)
  end
  local size = parts > 0 and s[rank] // parts or s[rank]
  local many = parts > 0 and parts or s[rank - 1]
  local whole = S and common.count(S.shape) == many * size
  if S and not whole and common.text(S.shape) ~= common.text {size} then
    n:fail("a scale of %s for %d branches of %d", common.text(S.shape), many, size)
  end
  local normed = by_parts(n, X, size, n:float("epsilon", 1e-5))
  return compute(s, X.type, function(i)
    if not S then return normed(i) end
    local flat = parts > 0 and i[rank] or i[rank - 1] * size + i[rank]
    return normed(i) * float32(whole and S[common.unfold(flat, S.shape)] or S[{te.floormod(flat, size)}])
  end)
end)

-- ---- Quantized weights -------------------------------------------------------------------------------------------

microsoft("MatMulInteger16", function(n)
  local function whole(x) return te.cast(x, "int32") end
  return (common.matmul(n, n:x(1), n:x(2), whole, whole))
end)

-- What 4 bits stand for: of FP4, which has a sign and a number of little precision, and of NF4, quantiles of a normal
-- distribution. Source: Dettmers et al., QLoRA, NeurIPS 2023, appendix E.
local FP4 = {0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25}
for k = 1, 8 do FP4[k + 8] = -FP4[k] end
local NF4 = {-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
             -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
             0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0}

local function bits_of(byte, at, bits, high_first)
  local each = 8 // bits
  if each == 1 then return te.cast(byte, "int32") end
  local k = te.floormod(at, each)
  local by = (high_first and (each - 1) - k or k) * bits
  return te.call("bitwise_and", "int32", te.call("shift_right", "int32", te.cast(byte, "int32"), by),
                 te.const((1 << bits) - 1, "int32"))
end

-- Weights {N, K}, one after the other, the first of a byte in its upper half; each block of them has a scale.
microsoft("MatMulBnb4", function(n)
  local A, B, S, K, N = n:x(1), n:x(2), n:x(3), n:int "K", n:int "N"
  local block, kind, rank = n:int "block_size", n:int "quant_type", n:rank(1)
  local across = n:int("transB", 1) == 1
  if kind ~= 0 and kind ~= 1 then n:fail("quant_type is %d, neither 0 nor 1", kind) end
  if K < 1 or N < 1 or K > 1 << 24 or N > 1 << 24 or block < 16 or block & (block - 1) ~= 0 then
    n:fail("block_size is %d, of weights of %d x %d", block, N, K)
  end
  if A.shape[rank] ~= (across and K or N) or common.count(B.shape) ~= (N * K + 1) // 2 or B.type ~= "uint8"
      or common.count(S.shape) ~= (N * K + block - 1) // block then
    n:fail("%s by %s of %s with scales of %s, for %d x %d in blocks of %d", common.text(A.shape), common.text(B.shape),
           B.type, common.text(S.shape), N, K, block)
  end
  local T = n:table(ms.array({16}, "float32", kind == 0 and FP4 or NF4))
  local function flat(X, at) return X[common.unfold(at, X.shape)] end
  local W = compute({N, K}, "float32", function(i)
    local at = i[1] * K + i[2]
    local four = te.minimum(te.maximum(bits_of(flat(B, te.floordiv(at, 2)), at, 4, true), 0), 15)
    return T[{four}] * float32(flat(S, te.floordiv(at, block)))
  end)
  local shape = table.move(A.shape, 1, rank - 1, 1, {[rank] = across and N or K})
  local Y = reduce(shape, {A.shape[rank]}, te.sum, function(i, r)
    return float32(A[table.move(i, 1, rank - 1, 1, {[rank] = r[1]})])
      * W[across and {i[rank], r[1]} or {r[1], i[rank]}]
  end)
  return compute(shape, A.type, function(i) return Y[i] end)
end)

-- Rows gathered of weights that have a scale, and a zero point, for each block along an axis. Bytes hold 2, 4 or 8 bits
-- each along the last axis; integers of 4 bits are by themselves.
microsoft("GatherBlockQuantized", function(n)
  local X, I, S, Z, rank = n:x(1), n:x(2), n:x(3), n:has(4) and n:x(4) or nil, n:rank(1)
  local axis, along = n:axis(n:int("gather_axis", 0), rank), n:axis(n:int("quantize_axis", 1), rank)
  local block, packed, bits = n:int("block_size", 128), X.type == "uint8", n:int("bits", 4)
  if not packed and X.type ~= "int8" then n:fail("its data are of %s", X.type) end
  if bits ~= 2 and bits ~= 4 and bits ~= 8 then n:fail("bits is %d, not 2, 4 or 8", bits) end
  if block < 16 or block & (block - 1) ~= 0 then n:fail("block_size is %d", block) end
  local each = packed and 8 // bits or 1
  local s = table.move(X.shape, 1, rank, 1, {})
  s[rank] = s[rank] * each
  if packed and (axis ~= 1 or axis == along) then
    n:fail "bytes are gathered along their first axis, of blocks of another"
  end
  local blocks = table.move(s, 1, rank, 1, {})
  blocks[along] = (s[along] + block - 1) // block
  local zeros = table.move(blocks, 1, rank, 1, {})
  zeros[rank] = (zeros[rank] + each - 1) // each
  for d, extent in ipairs(S.shape) do
    if extent ~= blocks[d] and (extent ~= 1 or d == along) then
      n:fail("scales of %s for blocks of %s", common.text(S.shape), common.text(blocks))
    end
  end
  if #S.shape ~= rank or Z and common.text(Z.shape) ~= common.text(zeros) then
    n:fail("scales of %s and zero points of %s for blocks of %s", common.text(S.shape),
           common.text(Z and Z.shape or {}), common.text(blocks))
  end
  n:check_range(2, -s[axis], s[axis] - 1)
  local shape, own = table.move(s, 1, axis - 1, 1, {}), #I.shape
  table.move(I.shape, 1, own, axis, shape)
  table.move(s, axis + 1, rank, axis + own, shape)
  local function element(W, at)
    if each == 1 then return te.cast(W[at], "int32") end
    local byte = table.move(at, 1, rank - 1, 1, {[rank] = te.floordiv(at[rank], each)})
    return bits_of(W[byte], at[rank], bits)
  end
  return compute(shape, S.type, function(i)
    local at = table.move(i, 1, axis - 1, 1, {})
    at[axis] = common.index(I[table.move(i, axis, axis + own - 1, 1, {})], s[axis])
    table.move(i, axis + own, #i, axis + 1, at)
    local part = table.move(at, 1, rank, 1, {})
    part[along] = te.floordiv(at[along], block)
    local x = element(X, at)
    if Z then x = x - element(Z, part) elseif packed then x = x - (1 << (bits - 1)) end
    return te.cast(x, common.wide_type(S.type)) * wide(common.at(S, part))
  end)
end)

return operators
