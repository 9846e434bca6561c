-- Attention: products of queries and keys, their softmax, and the product with values; rotary embeddings.
local ms = msched
local te, common, element_types = ms.te, ms.load "lua.net.common", ms.load "lua.lib.element_types"
local operators, attention = {}, {}
local compute, reduce, wide = common.compute, common.reduce, common.wide
local pair_of, turn = ms.load "lua.lib.ops.common".pair_of, ms.load "lua.lib.ops.common".turn

-- ---- Heads -------------------------------------------------------------------------------------------------------

-- A tensor as {batch, heads, places, elements}, whether heads have a dimension of their own or stand side by side in
-- the last: {batch, heads, places, size, at(b, h, s, e)}. first: of the element in the last dimension where it begins.
function attention.heads(n, X, heads, first, size)
  local s = X.shape
  if #s == 4 then
    return {batch = s[1], heads = s[2], places = s[3], size = s[4], type = X.type,
            at = function(b, h, p, e) return X[{b, h, p, e}] end}
  end
  if #s ~= 3 then n:fail("a tensor of %s has no heads: it is of 3 or 4 dimensions", common.text(s)) end
  if heads < 1 or not size and s[3] % heads ~= 0 then n:fail("%s has no %d heads", common.text(s), heads) end
  size = size or s[3] // heads
  return {batch = s[1], heads = heads, places = s[2], size = size, type = X.type, at = function(b, h, p, e)
    local at = heads == 1 and e or h * size + e
    return X[{b, p, first and at + first or at}]
  end}
end
local function of_tensor(X) return attention.heads(nil, X) end

-- Heads as a tensor of {batch, heads, places, size}.
function attention.tensor(H)
  return compute({H.batch, H.heads, H.places, H.size}, H.type, function(i) return H.at(i[1], i[2], i[3], i[4]) end)
end

-- Those of the past before those of now.
function attention.joined(n, past, H)
  local shape = {H.batch, H.heads, past.shape[3], H.size}
  if common.text(past.shape) ~= common.text(shape) then
    n:fail("a past of %s, not of %s", common.text(past.shape), common.text(shape))
  end
  if past.type ~= H.type then n:fail("a past of %s beside %s", past.type, H.type) end
  local before = past.shape[3]
  local whole = compute({H.batch, H.heads, before + H.places, H.size}, H.type, function(i)
    if before == 0 then return H.at(i[1], i[2], i[3], i[4]) end
    if H.places == 0 then return past[i] end
    return te.if_then_else(te.lt(i[3], before), past[i], H.at(i[1], i[2], i[3] - before, i[4]))
  end)
  return of_tensor(whole), whole
end

-- ---- The products, and the softmax between them ------------------------------------------------------------------

-- {batch, query heads, query places, key places} of q · k. Several heads of queries may share one of keys. Sums of
-- 16-bit floats are scaled behind them: what tensor cores multiply is the factors as they are.
local function scores(q, k, scale)
  local each = q.heads // k.heads
  local after = common.is_half(q.type)
  local sums = reduce({q.batch, q.heads, q.places, k.places}, {q.size}, te.sum, function(i, r)
    local head = each == 1 and i[2] or k.heads == 1 and te.const(0, "int32") or te.floordiv(i[2], each)
    local a, b = wide(q.at(i[1], i[2], i[3], r[1])), wide(k.at(i[1], head, i[4], r[1]))
    return after and a * b or a * scale * b
  end)
  if not after or scale == 1 then return sums end
  return compute(sums.shape, sums.type, function(i) return sums[i] * scale end)
end

-- attend(n, {q, k, v, scale, softcap, bias, allowed, t}): {y, raw, capped, biased, softmax}, tensors.
--   bias(i)      what is added to a score, of {batch, head, query, key}, or nil
--   allowed(i)   whether a query sees a key, or nil; of a query that sees none the result is 0
--   masked       the score of a key that is not seen, where it is not negative infinity
--   bias_last    whether the bias is added to that score too
--   sink(h)      a score more of each head, whose share is lost
--   plain        a query that sees no key has shares 0 / 0, as a softmax gives them
function attention.attend(n, a)
  local q, k, v = a.q, a.k, a.v
  if q.batch ~= k.batch or k.batch ~= v.batch then n:fail("batches of %d, %d and %d", q.batch, k.batch, v.batch) end
  if q.size ~= k.size then n:fail("heads of queries have %d elements, those of keys %d", q.size, k.size) end
  if k.places ~= v.places or k.heads ~= v.heads then
    n:fail("%d keys of %d heads, and %d values of %d", k.places, k.heads, v.places, v.heads)
  end
  if k.heads < 1 or q.heads % k.heads ~= 0 then
    n:fail("%d heads of queries do not share %d of keys", q.heads, k.heads)
  end
  if q.type ~= k.type or k.type ~= v.type then
    n:fail("queries, keys and values of %s, %s and %s", q.type, k.type, v.type)
  end
  if not common.is_float(q.type) then n:fail("its inputs are of %s; floats are expected", q.type) end
  local raw = scores(q, k, a.scale)
  local t, made = raw.type, {raw = raw, capped = raw}
  if a.softcap and a.softcap > 0 then
    made.capped = compute(raw.shape, t, function(i) return te.tanh(raw[i] * (1 / a.softcap)) * a.softcap end)
  end
  made.biased = made.capped
  if a.bias or a.allowed then
    made.biased = compute(raw.shape, t, function(i)
      local x, bias = made.capped[i], a.bias and te.cast(a.bias(i), t)
      if bias and not a.bias_last then x = x + bias end
      if a.allowed then x = te.select(a.allowed(i), x, te.const(a.masked or -math.huge, t)) end
      return bias and a.bias_last and x + bias or x
    end)
  end
  local shape, least = {q.batch, q.heads, q.places}, te.const(-math.huge, t)
  local largest = reduce(shape, {k.places}, common.maximum, function(i, r)
    return made.biased[{i[1], i[2], i[3], r[1]}]
  end)
  local function shift(i)
    local m = largest[{i[1], i[2], i[3]}]
    if a.sink then m = te.maximum(m, a.sink(i[2])) end
    return te.select(te.eq(m, least), te.const(0.0, t), m)
  end
  local e = compute(raw.shape, t, function(i) return te.exp(made.biased[i] - shift(i)) end)
  local sum = reduce(shape, {k.places}, te.sum, function(i, r) return e[{i[1], i[2], i[3], r[1]}] end)
  made.softmax = compute(raw.shape, t, function(i)
    local s = sum[{i[1], i[2], i[3]}]
    if a.sink then s = s + te.exp(a.sink(i[2]) - shift(i)) end
    return e[i] / (a.plain and s or te.select(te.eq(s, 0.0), te.const(1.0, t), s))
  end)
  local each = q.heads // k.heads
  made.y = reduce({q.batch, q.heads, q.places, v.size}, {v.places}, te.sum, function(i, r)
    local head = each == 1 and i[2] or v.heads == 1 and te.const(0, "int32") or te.floordiv(i[2], each)
    return made.softmax[{i[1], i[2], i[3], r[1]}] * wide(v.at(i[1], head, r[1], i[4]))
  end)
  return made
end

-- {batch, heads, places, size} with heads side by side.
function attention.beside(Y, t)
  local s = Y.shape
  return compute({s[1], s[3], s[2] * s[4]}, t, function(i)
    return Y[{i[1], s[2] == 1 and 0 or te.floordiv(i[3], s[4]), i[2], s[2] == 1 and i[3] or te.floormod(i[3], s[4])}]
  end)
end

-- The bias and the keys that are seen by a mask that is added, or of bool; keys past its end are not seen.
function attention.mask(n, M, shape)
  local last = M.shape[#M.shape]
  if #M.shape < 1 or #M.shape > 4 then n:fail("a mask of %d dimensions", #M.shape) end
  local short = last < shape[4]
  for d, extent in ipairs(M.shape) do
    local whole = shape[d + 4 - #M.shape]
    if d < #M.shape and extent ~= 1 and extent ~= whole or d == #M.shape and extent > whole then
      n:fail("a mask of %s for scores of %s", common.text(M.shape), common.text(shape))
    end
  end
  local function at(i)
    local own = {}
    for d, extent in ipairs(M.shape) do
      local x = i[d + 4 - #M.shape]
      own[d] = d == #M.shape and (short and te.minimum(x, math.max(last, 1) - 1) or x) or extent == 1 and 0 or x
    end
    return M[own]
  end
  local function within(i) return te.lt(i[4], last) end
  if last == 0 then return nil, function() return te.const(false, "bool") end end
  if M.type == "bool" then return nil, function(i) return short and te.all(within(i), at(i)) or at(i) end end
  if not common.is_float(M.type) then n:fail("a mask of %s, neither of bool nor added", M.type) end
  return function(i) return wide(at(i)) end, short and within or nil
end

local function both(f, g)
  if not f or not g then return f or g end
  return function(i) return te.all(f(i), g(i)) end
end
attention.both = both

-- ---- ONNX's own --------------------------------------------------------------------------------------------------

-- How many places come before the first query: as many as the past has, or what is valid less the queries.
local function seen(n, q, past, valid)
  local left, right, causal = n:int("left_window_size", -1), n:int("right_window_size", -1), n:flag("is_causal", 0)
  if left < -1 or right < -1 then n:fail("windows of %d and %d places", left, right) end
  local allowed
  if causal or left >= 0 or right >= 0 then
    allowed = function(i)
      local p = valid and i[3] + (te.cast(valid[{i[1]}], "int32") - q.places) or i[3] + past
      local conditions = {}
      if causal then conditions[1] = te.le(i[4], p) end
      if left >= 0 then conditions[#conditions + 1] = te.le(p - i[4], left) end
      if right >= 0 then conditions[#conditions + 1] = te.le(i[4] - p, right) end
      return te.all(table.unpack(conditions))
    end
  end
  return both(allowed, valid and function(i) return te.lt(i[4], te.cast(valid[{i[1]}], "int32")) end)
end

local PRECISIONS = {[1] = true, [10] = true, [11] = true, [16] = true}
operators.Attention = function(n)
  local Q, K, V = n:x(1), n:x(2), n:x(3)
  local q = attention.heads(n, Q, n:int("q_num_heads", 0))
  local k, v = attention.heads(n, K, n:int("kv_num_heads", 0)), attention.heads(n, V, n:int("kv_num_heads", 0))
  if #Q.shape ~= #K.shape or #K.shape ~= #V.shape then
    n:fail("its inputs have %d, %d and %d dimensions", #Q.shape, #K.shape, #V.shape)
  end
  if not PRECISIONS[n:int("softmax_precision", 1)] then
    n:fail("softmax_precision is %d, the number of no float", n:int "softmax_precision")
  end
  if n:has(5) ~= n:has(6) then n:fail "a past of keys is without one of values, or the other way round" end
  local past, keys, values = 0, nil, nil
  if n:has(5) then
    past, k, keys = n:shape(5)[3] or 0, attention.joined(n, n:x(5), k)
    v, values = attention.joined(n, n:x(6), v)
  end
  local valid = n:has(7) and n:x(7) or nil
  if valid and (n:has(5) or #valid.shape ~= 1 or valid.shape[1] ~= q.batch) then
    n:fail("valid keys are counted for a batch of %s; there are %d, %s a past", common.text(valid.shape), q.batch,
           n:has(5) and "and" or "without")
  end
  if valid then n:check_range(7, 0, k.places) end
  local bias, shown
  if n:has(4) then bias, shown = attention.mask(n, n:x(4), {q.batch, q.heads, q.places, k.places}) end
  local made = attention.attend(n, {q = q, k = k, v = v, scale = n:float("scale", 1 / math.sqrt(math.max(q.size, 1))),
                                    softcap = n:float("softcap", 0.0), bias = bias,
                                    allowed = both(shown, seen(n, q, past, valid))})
  local outputs = {[0] = made.raw, made.capped, made.biased, made.softmax}
  local mode = n:int("qk_matmul_output_mode", 0)
  if not outputs[mode] then n:fail("qk_matmul_output_mode is %d, not one of 0 to 3", mode) end
  return #Q.shape == 3 and attention.beside(made.y, Q.type) or common.narrow(made.y, Q.type),
         n:wants(2) and (keys or attention.tensor(k)) or nil, n:wants(3) and (values or attention.tensor(v)) or nil,
         n:wants(4) and common.copy(common.narrow(outputs[mode], Q.type)) or nil
end

-- What is spelled as products, scale, masks and softmax (pass/attention.lua), whose results it has also where a row of
-- scores is negative infinity, or NaN: queries, keys and values of {batch, heads, places, size}, a bias, and whether a
-- query sees a key, both of up to four dimensions that broadcast. A query i sees the keys i - left to i + right, where
-- these are given; the score of another is `masked`.
operators["msched.Attention"] = function(n)
  local q, k, v = of_tensor(n:x(1)), of_tensor(n:x(2)), of_tensor(n:x(3))
  local left, right = n:has_attribute "left" and n:int "left", n:has_attribute "right" and n:int "right"
  local bias, seen, within
  local function broadcast(at)
    local X = n:x(at)
    return function(i) return common.at(X, i) end
  end
  if n:has(4) then
    local at = broadcast(4)
    bias = function(i) return wide(at(i)) end
  end
  if n:has(5) then seen = broadcast(5) end
  if left or right then
    within = function(i)
      local conditions = {right and te.le(i[4], i[3] + right) or te.le(i[3], i[4] + left)}
      if right and left then conditions[2] = te.le(i[3], i[4] + left) end
      return te.all(table.unpack(conditions))
    end
  end
  local made = attention.attend(n, {q = q, k = k, v = v, scale = n:float "scale", bias = bias,
                                    allowed = both(seen, within), masked = n:float("masked", -math.huge),
                                    bias_last = n:flag("bias_last", 0), plain = true})
  return common.narrow(made.y, q.type)
end

-- Graphs change the scores, and what the softmax of them gives.
operators["ai.onnx.preview.FlexAttention"] = function(n)
  local q, k, v, t = n:shape(1), n:shape(2), n:shape(3), n:type(1)
  if #q ~= 4 or #k ~= 4 or #v ~= 4 then n:fail("its inputs have %d, %d and %d dimensions, not 4", #q, #k, #v) end
  if k[2] < 1 or q[2] % k[2] ~= 0 then n:fail("%d heads of queries do not share %d of keys", q[2], k[2]) end
  if not common.is_float(t) then n:fail("its input is of %s; floats are expected", t) end
  local function ints(list) return n:constant(ms.array({#list}, "int64", list)) end
  local function shared(name, s)
    if q[2] == k[2] then return name end
    local apart = n:add("Unsqueeze", {name, ints {2}}, {axes = {2}})
    local all = n:add("Expand", {apart, ints {s[1], s[2], q[2] // s[2], s[3], s[4]}})
    return n:add("Reshape", {all, ints {s[1], q[2], s[3], s[4]}})
  end
  local K, V = shared(n.node.inputs[2], k), shared(n.node.inputs[3], v)
  local root = math.sqrt(n:float("scale", 1 / math.sqrt(math.max(q[4], 1))))
  if root ~= root then n:fail("scale is %g", n:float "scale") end
  local scale = n:constant(ms.array({}, t, {root}))
  local across = n:add("Transpose", {n:add("Mul", {K, scale})}, {perm = {0, 1, 3, 2}})
  local scores = n:add("MatMul", {n:add("Mul", {n.node.inputs[1], scale}), across})
  local number = n:int("softmax_precision", element_types.of[common.wide_type(t)].onnx)
  scores = n:add("Cast", {scores}, {to = number})
  local function changed(name, by)
    if not n:has_attribute(by) then return name end
    local given = n:inline(n:graph(by), {name})
    if #given ~= 1 then n:fail("%s gives %d values", by, #given) end
    return given[1]
  end
  local shares = changed(n:add("Softmax", {changed(scores, "score_mod")}, {axis = 3}), "prob_mod")
  local Y = n:add("MatMul", {shares, n:add("Cast", {V}, {to = number})})
  return n:gives {n:add("Cast", {Y}, {to = element_types.of[t].onnx})}
end

-- Pairs of elements turned by an angle of each place: halves of a head beside each other, or neighbours.
--   cos, sin(b, p, e)   of pair e
function attention.turned(X, H, turned, interleaved, cos, sin, gives)
  return compute(gives, X.type, function(i)
    local b, h, p, e
    if #gives == 4 then b, h, p, e = i[1], i[2], i[3], i[4]
    else
      b, h, p, e = i[1], H.heads == 1 and te.const(0, "int32") or te.floordiv(i[3], H.size), i[2],
        H.heads == 1 and i[3] or te.floormod(i[3], H.size)
    end
    local pair, first, other = pair_of(e, H.size, turned, interleaved)
    local x, y = wide(H.at(b, h, p, e)), wide(H.at(b, h, p, other))
    local z = turn(x, y, first, wide(cos(b, p, pair)), wide(sin(b, p, pair)))
    return turned < H.size and te.select(te.lt(e, turned), z, x) or z
  end)
end

operators.RotaryEmbedding = function(n)
  local X, C, S = n:x(1), n:x(2), n:x(3)
  local H = attention.heads(n, X, n:int("num_heads", 0))
  local turned = n:int("rotary_embedding_dim", 0)
  if turned == 0 then turned = H.size end
  if turned < 2 or turned % 2 ~= 0 or turned > H.size then
    n:fail("%d elements of a head of %d cannot be turned", turned, H.size)
  end
  local P = n:has(4) and n:x(4) or nil
  local shape = P and {C.shape[1], turned // 2} or {H.batch, H.places, turned // 2}
  for k = 2, 3 do
    if common.text(n:shape(k)) ~= common.text(shape) then
      n:fail("input %d has extents %s, not %s", k, common.text(n:shape(k)), common.text(shape))
    end
  end
  if P and common.text(P.shape) ~= common.text {H.batch, H.places} then
    n:fail("places of %s, not of %s", common.text(P.shape), common.text {H.batch, H.places})
  end
  if P then n:check_range(4, -C.shape[1], C.shape[1] - 1) end
  local function of(T)
    return function(b, p, e)
      if not P then return T[{b, p, e}] end
      return T[{common.index(P[{b, p}], C.shape[1]), e}]
    end
  end
  return attention.turned(X, H, turned, n:flag("interleaved", 0), of(C), of(S), X.shape)
end

common.attention = attention
return operators
