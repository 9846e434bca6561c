-- Operators against loops of plain Lua: what the interpreter makes of each function, and what is compiled, on small
-- shapes with strides, padding, dilation, groups, batches, extents that do not divide; and what they refuse.
local ms = require "msched"

-- The families are loaded when the first operator, or the list of all, is asked for.
assert(getmetatable(ms.ops), "all operators are loaded in every state")
local listed = {}
for name in pairs(ms.ops) do listed[name] = true end
assert(listed.conv2d and listed.softmax and listed.func and not getmetatable(ms.ops) and ms.ops.nonsense == nil)

local te, ops = ms.te, ms.ops
local refuses = dofile(arg[0]:match "^.*/" .. "../refuses.lua")

local function tensor(name, shape, type) return te.placeholder(shape, type or "float32", name) end

-- Calls f with each list of indices of a shape.
local function each(shape, f, at, d)
  at, d = at or {}, d or 1
  if d > #shape then return f(at) end
  for i = 0, shape[d] - 1 do
    at[d] = i
    each(shape, f, at, d + 1)
  end
end

-- The sum of f over a box of indices.
local function sum(shape, f)
  local total = 0
  each(shape, function(at) total = total + f(table.unpack(at)) end)
  return total
end

-- The function of these tensors, interpreted, has at each index of its last tensor what `expected` gives of the index
-- and the arrays before; and compiled it does the same. close: the difference that rounding may make.
local function holds(name, tensors, expected, close)
  local func = te.func(name, tensors)
  close = close or 1e-5
  local arrays = ms.arrays_for(func, 3)
  ms.interpret(func, table.unpack(arrays))
  local result, compared = arrays[#arrays], 0
  each(tensors[#tensors].shape, function(at)
    local want, got = expected(at, table.unpack(arrays)), result[at]
    assert(math.abs(got - want) <= close * math.max(1, math.abs(want)),
           string.format("%s: element %s is %s, not %s", name, table.concat(at, ","), got, want))
    compared = compared + 1
  end)
  assert(compared == #result, name)
  assert(ms.compare(ms.build(func), function(...) ms.interpret(func, ...) end, 4) <= close * 100, name)
end

-- An element of an image of which there is none outside.
local function at(X, shape, n, spatial, c, first)
  for d, i in ipairs(spatial) do if i < 0 or i >= shape[d] then return 0 end end
  return first and X[{n, c, table.unpack(spatial)}]
    or X[{n, spatial[1], spatial[2] or c, spatial[3] or spatial[2] and c, spatial[3] and c}]
end

-- ---- Convolutions ----------------------------------------------------------------------------------------------

-- Each element is a sum over taps and channels of its group.
local function convolution(X, W, Y, spatial, kernel, o)
  local first, groups = o.first, o.groups or 1
  local per, ci = Y.shape[first and 2 or #Y.shape] // groups, X.shape[first and 2 or #X.shape] // groups
  local stride, pad, dilation = o.stride or 1, o.pad or 0, o.dilation or 1
  return function(index, x, w)
    local out = index[first and 2 or #index]
    local place = {table.unpack(index, first and 3 or 2, (first and 2 or 1) + #spatial)}
    local box = {table.unpack(kernel)}
    box[#box + 1] = ci
    return sum(box, function(...)
      local taps, where = {...}, {}
      local c = table.remove(taps)
      for d = 1, #spatial do where[d] = place[d] * stride - pad + taps[d] * dilation end
      local filter = first and {out, c, table.unpack(taps)} or {table.unpack(taps)}
      if not first then filter[#filter + 1], filter[#filter + 2] = c, out end
      return at(x, spatial, index[1], where, out // per * ci + c, first) * w[filter]
    end)
  end
end

local function check_convolution(name, rank, n, spatial, ci, co, kernel, o)
  local first, groups = o.first, o.groups or 1
  local image, filter = {n, table.unpack(spatial)}, {table.unpack(kernel)}
  table.insert(image, first and 2 or #image + 1, ci)
  if first then table.move({co, ci // groups, table.unpack(kernel)}, 1, rank + 2, 1, filter)
  else filter[rank + 1], filter[rank + 2] = ci // groups, co end
  local X, W = tensor("X", image, o.type), tensor("W", filter, o.type)
  local layout = first and ({"NCL", "NCHW", "NCDHW"})[rank] or nil
  local Y = ops["conv" .. rank .. "d"](X, W, {stride = o.stride, pad = o.pad, dilation = o.dilation, groups = o.groups,
                                              layout = layout, accumulate = o.accumulate})
  if o.type then assert(Y.type == (o.accumulate or o.type == "int8" and "int32" or "float32"), name) end
  holds(name, {X, W, Y}, convolution(X, W, Y, spatial, kernel, o), o.close)
end
check_convolution("conv1d", 1, 2, {11}, 3, 5, {3}, {stride = 2, pad = 1})
check_convolution("conv1d_ncl", 1, 1, {7}, 4, 6, {4}, {first = true, groups = 2, dilation = 2})
check_convolution("conv2d", 2, 1, {7, 5}, 3, 4, {3, 3}, {pad = 1})
check_convolution("conv2d_batch", 2, 3, {8, 7}, 2, 3, {2, 3}, {stride = 3, pad = 2})
check_convolution("conv2d_dilated", 2, 1, {9, 8}, 2, 3, {3, 2}, {dilation = 3, pad = 2})
check_convolution("conv2d_groups", 2, 2, {5, 5}, 6, 9, {3, 3}, {groups = 3, pad = 1, stride = 2})
check_convolution("conv2d_nchw", 2, 2, {6, 5}, 4, 6, {3, 3}, {first = true, groups = 2, pad = 1, stride = 2})
check_convolution("conv2d_point", 2, 1, {4, 4}, 5, 7, {1, 1}, {stride = 2})
check_convolution("conv2d_int8", 2, 1, {5, 6}, 4, 3, {3, 3}, {pad = 1, type = "int8"})
check_convolution("conv2d_float16", 2, 1, {5, 6}, 4, 3, {3, 3}, {pad = 1, type = "float16"})
check_convolution("conv2d_half", 2, 1, {5, 6}, 4, 3, {3, 3},
                  {pad = 1, type = "float16", accumulate = "float16", close = 1e-2})
check_convolution("conv2d_bfloat16", 2, 1, {5, 6}, 4, 3, {3, 3}, {type = "bfloat16"})
check_convolution("conv3d", 3, 1, {4, 5, 6}, 2, 3, {3, 2, 3}, {pad = 1, stride = 2})
check_convolution("conv3d_ncdhw", 3, 2, {4, 3, 5}, 4, 2, {2, 2, 2}, {first = true, groups = 2, pad = 1})

-- Padding that differs before and after, and by dimension, is that of an image padded by hand.
do
  local X, W = tensor("X", {1, 5, 6, 2}), tensor("W", {3, 3, 2, 4})
  local Y = ops.conv2d(X, W, {pad = {1, {0, 2}}, stride = {2, 1}})
  assert(table.concat(Y.shape, "x") == "1x3x6x4")
  holds("uneven", {X, W, Y}, function(i, x, w)
    return sum({3, 3, 2},
               function(a, b, c) return at(x, {5, 6}, i[1], {i[2] * 2 - 1 + a, i[3] + b}, c) * w[{a, b, c, i[4]}] end)
  end)
end

local function check_depthwise(name, first, n, h, w, c, k, o)
  local X = tensor("X", first and {n, c, h, w} or {n, h, w, c})
  local W = tensor("W", first and {c, k, k} or {k, k, c})
  local Y = ops.depthwise_conv2d(X, W, {stride = o.stride, pad = o.pad, dilation = o.dilation,
                                        layout = first and "NCHW" or nil})
  holds(name, {X, W, Y}, function(i, x, f)
    local channel, y, z = i[first and 2 or 4], i[first and 3 or 2], i[first and 4 or 3]
    return sum({k, k}, function(a, b)
      local where = {y * o.stride - o.pad + a * o.dilation, z * o.stride - o.pad + b * o.dilation}
      return at(x, {h, w}, i[1], where, channel, first) * f[first and {channel, a, b} or {a, b, channel}]
    end)
  end)
end
check_depthwise("depthwise", false, 1, 7, 6, 5, 3, {stride = 1, pad = 1, dilation = 1})
check_depthwise("depthwise_stride", false, 2, 8, 9, 3, 3, {stride = 2, pad = 2, dilation = 2})
check_depthwise("depthwise_nchw", true, 2, 6, 7, 4, 2, {stride = 2, pad = 0, dilation = 1})

-- Another formulation: each element of X is added, times the filter, where it belongs.
local function check_transposed(name, first, n, h, w, ci, co, k, o)
  local X = tensor("X", first and {n, ci, h, w} or {n, h, w, ci})
  local W = tensor("W", first and {co, ci, k, k} or {k, k, ci, co})
  local Y = ops.conv2d_transpose(X, W, {stride = o.stride, pad = o.pad, output_pad = o.output_pad,
                                        layout = first and "NCHW" or nil})
  local scattered
  holds(name, {X, W, Y}, function(i, x, f)
    if not scattered then
      scattered = {}
      each({n, h, w, ci, k, k, co}, function(t)
        local b, y, z, c, p, q, out = table.unpack(t)
        local key = string.format("%d %d %d %d", b, y * o.stride - o.pad + p, z * o.stride - o.pad + q, out)
        local value = x[first and {b, c, y, z} or {b, y, z, c}] * f[first and {out, c, p, q} or {p, q, c, out}]
        scattered[key] = (scattered[key] or 0) + value
      end)
    end
    local b, y, z, out = table.unpack(first and {i[1], i[3], i[4], i[2]} or i)
    return scattered[string.format("%d %d %d %d", b, y, z, out)] or 0
  end)
  return Y.shape
end
assert(table.concat(check_transposed("transposed", false, 1, 4, 3, 3, 2, 4, {stride = 2, pad = 1}), "x") == "1x8x6x2")
assert(table.concat(check_transposed("transposed_odd", false, 2, 3, 4, 2, 3, 3, {stride = 2, pad = 1, output_pad = 1}),
                    "x") == "2x6x8x3")
check_transposed("transposed_gaps", false, 1, 3, 3, 2, 2, 2, {stride = 3, pad = 0, output_pad = 2})
check_transposed("transposed_wide", true, 1, 4, 4, 2, 3, 5, {stride = 1, pad = 3})
check_transposed("transposed_nchw", true, 2, 3, 2, 4, 3, 4, {stride = 2, pad = 1})

local function check_capsule(name, n, size, ci, co, k, stride, pad)
  local X, W = tensor("X", {n, size, size, 2, 3, ci}), tensor("W", {k, k, 3, 4, ci, co})
  local Y = ops.conv2d_capsule(X, W, {stride = stride, pad = pad})
  holds(name, {X, W, Y}, function(i, x, w)
    return sum({k, k, 3, ci}, function(a, b, m, c)
      local y, z = i[2] * stride - pad + a, i[3] * stride - pad + b
      if y < 0 or z < 0 or y >= size or z >= size then return 0 end
      return x[{i[1], y, z, i[4], m, c}] * w[{a, b, m, i[5], c, i[6]}]
    end)
  end)
end
check_capsule("capsule", 1, 4, 2, 3, 3, 2, 1)
check_capsule("capsule_batch", 2, 3, 1, 2, 2, 1, 0)

-- ---- Products --------------------------------------------------------------------------------------------------

for _, case in ipairs {{false, false}, {true, false}, {false, true}, {true, true}} do
  local ta, tb = table.unpack(case)
  for _, type in ipairs {"float32", "int8", "float16"} do
    local A, B = tensor("A", ta and {5, 3} or {3, 5}, type), tensor("B", tb and {7, 5} or {5, 7}, type)
    local C = ops.matmul(A, B, {transpose_a = ta, transpose_b = tb})
    assert(C.type == (type == "int8" and "int32" or "float32"))
    holds("matmul", {A, B, C}, function(i, a, b)
      return sum({5}, function(k) return a[ta and {k, i[1]} or {i[1], k}] * b[tb and {i[2], k} or {k, i[2]}] end)
    end)
    A, B = tensor("A", ta and {2, 3, 5, 3} or {2, 3, 3, 5}, type),
      tensor("B", tb and {2, 3, 7, 5} or {2, 3, 5, 7}, type)
    holds("batch_matmul", {A, B, (ops.batch_matmul(A, B, {transpose_a = ta, transpose_b = tb}))}, function(i, a, b)
      local p, q, r, s = table.unpack(i)
      return sum({5},
                 function(k) return a[ta and {p, q, k, r} or {p, q, r, k}] * b[tb and {p, q, s, k} or {p, q, k, s}] end)
    end)
  end
end
do
  local X, W, bias = tensor("X", {3, 5}), tensor("W", {4, 5}), tensor("bias", {4})
  holds("dense", {X, W, bias, (ops.dense(X, W, {bias = bias}))}, function(i, x, w, b)
    return b[{i[2]}] + sum({5}, function(k) return x[{i[1], k}] * w[{i[2], k}] end)
  end)
end

-- ---- Pools -----------------------------------------------------------------------------------------------------

-- The elements of a window that lie in the image: their number, sum and largest.
local function pooled(x, shape, i, spatial, c, o, first)
  local count, total, most = 0, 0, -math.huge
  each(o.kernel, function(taps)
    local where, inside = {}, true
    for d = 1, #shape do
      where[d] = spatial[d] * o.stride - o.pad + taps[d]
      inside = inside and where[d] >= 0 and where[d] < shape[d]
    end
    if inside then
      local value = at(x, shape, i, where, c, first)
      count, total, most = count + 1, total + value, math.max(most, value)
    end
  end)
  return count, total, most
end
local function check_pools(n, shape, channels, kernel, o)
  local first, rank = o.first, #shape
  local image = {n, table.unpack(shape)}
  table.insert(image, first and 2 or rank + 2, channels)
  local X = tensor("X", image)
  local layout = first and ({"NCL", "NCHW", "NCDHW"})[rank] or nil
  local given = {kernel = kernel, stride = o.stride, pad = o.pad, layout = layout}
  local function window(i, x)
    local spatial = {table.unpack(i, first and 3 or 2, (first and 2 or 1) + rank)}
    return pooled(x, shape, i[1], spatial, i[first and 2 or #i], {kernel = kernel, stride = o.stride, pad = o.pad},
                  first)
  end
  holds("max_pool", {X, (ops.max_pool(X, given))}, function(i, x) return (select(3, window(i, x))) end)
  holds("avg_pool", {X, (ops.avg_pool(X, given))}, function(i, x)
    local count, total = window(i, x)
    return total / count
  end)
  local whole = {include_pad = true, kernel = kernel, stride = o.stride, pad = o.pad, layout = layout}
  holds("avg_pool_whole", {X, (ops.avg_pool(X, whole))}, function(i, x)
    local size = 1
    for _, k in ipairs(kernel) do size = size * k end
    return (select(2, window(i, x))) / size
  end)
end
check_pools(1, {6, 7}, 3, {2, 2}, {stride = 2, pad = 0})
check_pools(2, {7, 5}, 2, {3, 3}, {stride = 2, pad = 1})
check_pools(2, {5, 6}, 2, {3, 2}, {stride = 1, pad = 1, first = true})
check_pools(1, {9}, 2, {4}, {stride = 3, pad = 2})
check_pools(1, {3, 4, 5}, 2, {2, 2, 2}, {stride = 2, pad = 1})

-- ---- Reductions ------------------------------------------------------------------------------------------------

local SHAPE = {3, 4, 5}
local function check_reduction(name, axes, keepdims, type, start, step, finish)
  local X = tensor("X", SHAPE, type)
  local Y = ops[name](X, axes, {keepdims = keepdims})
  local among = {}
  for d = 1, 3 do among[d] = axes == nil end
  for _, a in ipairs(math.type(axes) and {axes} or axes or {}) do among[a < 0 and 4 + a or a] = true end
  holds(name, {X, Y}, function(i, x)
    local value, count = start, 0
    each(SHAPE, function(t)
      local left, mine = 0, true
      for d = 1, 3 do
        if not among[d] or keepdims then left = left + 1 end
        if not among[d] then mine = mine and i[left] == t[d] end
      end
      if mine then value, count = step(value, x[t]), count + 1 end
    end)
    return finish and finish(value, count) or value
  end)
end
for _, axes in ipairs {1, 3, -2, {1, 3}, {-1, -2}, {1, 2, 3}} do
  for _, keepdims in ipairs {false, true} do
    check_reduction("sum", axes, keepdims, "float32", 0, function(a, b) return a + b end)
    check_reduction("sum", axes, keepdims, "int8", 0, function(a, b) return a + b end)
    check_reduction("max", axes, keepdims, "float32", -math.huge, math.max)
    check_reduction("min", axes, keepdims, "int32", math.huge, math.min)
    check_reduction("mean", axes, keepdims, "float32", 0, function(a, b) return a + b end,
                    function(a, n) return a / n end)
    check_reduction("norm", axes, keepdims, "float32", 0, function(a, b) return a + b * b end, math.sqrt)
  end
end
check_reduction("sum", nil, false, "float32", 0, function(a, b) return a + b end)
check_reduction("prod", 1, false, "float32", 1, function(a, b) return a * b end)

for name, better in pairs {argmax = function(a, b) return a > b end, argmin = function(a, b) return a < b end} do
  for axis = 1, 3 do
    local X = tensor("X", SHAPE)
    local I, V = ops[name](X, axis)
    local function extreme(i, x)
      local most, index
      for k = 0, SHAPE[axis] - 1 do
        local t = {table.unpack(i)}
        table.insert(t, axis, k)
        if not most or better(x[t], most) then most, index = x[t], k end
      end
      return index, most
    end
    holds(name, {X, V, I}, function(i, x) return (extreme(i, x)) end)
    holds(name, {X, I, V}, function(i, x) return (select(2, extreme(i, x))) end)
  end
end

-- ---- Normalization ---------------------------------------------------------------------------------------------

-- What stands in the row of an index along a dimension.
local function row(x, shape, i, axis)
  local values = {}
  for k = 0, shape[axis] - 1 do
    local t = {table.unpack(i)}
    t[axis] = k
    values[k + 1] = x[t]
  end
  return values
end
for axis = 1, 3 do
  for _, type in ipairs {"float32", "float16"} do
    local X = tensor("X", SHAPE, type)
    holds("softmax", {X, (ops.softmax(X, axis))}, function(i, x)
      local total = 0
      for _, value in ipairs(row(x, SHAPE, i, axis)) do total = total + math.exp(value) end
      return math.exp(x[i]) / total
    end, type == "float16" and 1e-3)
  end
end
do
  local X, gamma, beta = tensor("X", SHAPE), tensor("gamma", {4, 5}), tensor("beta", {4, 5})
  holds("layer_norm", {X, gamma, beta, (ops.layer_norm(X, gamma, beta))}, function(i, x, g, b)
    local mean = sum({4, 5}, function(p, q) return x[{i[1], p, q}] end) / 20
    local variance = sum({4, 5}, function(p, q) return (x[{i[1], p, q}] - mean) ^ 2 end) / 20
    return (x[i] - mean) / math.sqrt(variance + 1e-5) * g[{i[2], i[3]}] + b[{i[2], i[3]}]
  end)
  holds("rms_norm", {X, gamma, (ops.rms_norm(X, gamma, {epsilon = 0.5}))}, function(i, x, g)
    local squares = sum({4, 5}, function(p, q) return x[{i[1], p, q}] ^ 2 end)
    return x[i] / math.sqrt(squares / 20 + 0.5) * g[{i[2], i[3]}]
  end)
  local names, tensors = {"gamma", "beta", "mean", "variance"}, {X}
  for d, name in ipairs(names) do tensors[d + 1] = tensor(name, {4}) end
  local Y = ops.batch_norm(X, tensors[2], tensors[3], tensors[4], ops.abs(tensors[5]), {axis = 2, epsilon = 0.5})
  tensors[6] = Y
  holds("batch_norm", tensors, function(i, x, g, b, m, v)
    local c = {i[2]}
    return (x[i] - m[c]) / math.sqrt(math.abs(v[c]) + 0.5) * g[c] + b[c]
  end)
end
for _, case in ipairs {{false, 6}, {true, 6}, {false, 4}, {true, 4}, {false, false, "float16"}} do
  local interleaved, turned, type = table.unpack(case)
  local half = (turned or 6) // 2
  local X, C, S = tensor("X", {2, 3, 6}, type), tensor("C", {3, half}, type), tensor("S", {3, half}, type)
  local Y = ops.rotary(X, C, S, {turned = turned, interleaved = interleaved})
  holds("rotary", {X, C, S, Y}, function(i, x, c, s)
    local e = i[3]
    if e >= 2 * half then return x[i] end
    local first, pair = interleaved and e % 2 == 0 or not interleaved and e < half, interleaved and e // 2 or e % half
    local apart = (interleaved and 1 or half) * (first and 1 or -1)
    local y = x[{i[1], i[2], e + apart}] * s[{i[2], pair}]
    return x[i] * c[{i[2], pair}] + (first and -y or y)
  end, type and 1e-2)
end
for _, causal in ipairs {false, true} do
  local Q, K, V = tensor("Q", {2, 2, 3, 4}), tensor("K", {2, 2, 5, 4}), tensor("V", {2, 2, 5, 6})
  holds("attention", {Q, K, V, (ops.attention(Q, K, V, {causal = causal}))}, function(i, q, k, v)
    local b, h, r, c = table.unpack(i)
    local total, value = 0, 0
    for column = 0, causal and r or 4 do
      local weight = math.exp(sum({4}, function(d) return q[{b, h, r, d}] * k[{b, h, column, d}] end) / 2)
      total, value = total + weight, value + weight * v[{b, h, column, c}]
    end
    return value / total
  end, 1e-4)
end

do -- heads that share keys, lengths, and a mask that is added
  local Q, K, V = tensor("Q", {2, 4, 3, 4}), tensor("K", {2, 2, 5, 4}), tensor("V", {2, 2, 5, 6})
  local lengths, mask = tensor("lengths", {2}, "int32"), tensor("mask", {4, 1, 5})
  local some = te.compute({2}, function(b) return lengths[{b}] % 3 + 1 end, "some")
  holds("attention", {Q, K, V, lengths, mask, (ops.attention(Q, K, V, {lengths = some, mask = mask, causal = true}))},
        function(i, q, k, v, l, m)
    local b, h, r, c = table.unpack(i)
    local total, value = 0, 0
    for column = 0, math.min(r, l[{b}] % 3) do
      local score = sum({4}, function(d) return q[{b, h, r, d}] * k[{b, h // 2, column, d}] end) / 2
      local weight = math.exp(score + m[{h, 0, column}])
      total, value = total + weight, value + weight * v[{b, h // 2, column, c}]
    end
    return value / total
  end, 1e-4)
end

do -- scales of one tensor and of each head, results of another type; of floats of 8 bits sums of float32
  for _, type in ipairs {"float8_e4m3fn", "float8_e5m2", "float64"} do
    local Q, K = tensor("Q", {2, 4, 3, 4}, type), tensor("K", {2, 2, 5, 4}, type)
    local V, one = tensor("V", {2, 2, 5, 6}, type), tensor("q_scale", {1})
    local of_k, of_v = tensor("k_scale", {2, 2}), tensor("v_scale", {2, 2})
    local Y = ops.attention(Q, K, V, {q_scale = one, k_scale = of_k, v_scale = of_v, dtype = "float32"})
    assert(Y.type == "float32" and ops.attention(Q, K, V).type == (type == "float64" and type or "float16"))
    holds("attention", {Q, K, V, one, of_k, of_v, Y}, function(i, q, k, v, sq, sk, sv)
      local b, h, r, c = table.unpack(i)
      local scores, most, total, value = {}, -math.huge, 0, 0
      for column = 0, 4 do
        local product = sum({4}, function(d) return q[{b, h, r, d}] * k[{b, h // 2, column, d}] end)
        scores[column] = product / 2 * sq[{0}] * sk[{b, h // 2}]
        most = math.max(most, scores[column])
      end
      for column = 0, 4 do
        local weight = math.exp(scores[column] - most)
        total, value = total + weight, value + weight * v[{b, h // 2, column, c}]
      end
      return value / total * sv[{b, h // 2}]
    end, 1e-4)
  end
end

-- ---- Elements --------------------------------------------------------------------------------------------------

local function erf(x) -- Abramowitz and Stegun 7.1.5, the series
  local total, term = 0, x
  for n = 0, 200 do
    total = total + term / (2 * n + 1)
    term = -term * x * x / (n + 1)
  end
  return total * 2 / math.sqrt(math.pi)
end
local UNARY = {
  relu = function(x) return math.max(x, 0) end, abs = math.abs, negative = function(x) return -x end, exp = math.exp,
  tanh = function(x) return 1 - 2 / (math.exp(2 * x) + 1) end, sigmoid = function(x) return 1 / (1 + math.exp(-x)) end,
  silu = function(x) return x / (1 + math.exp(-x)) end,
  gelu = function(x) return x / 2 * (1 + erf(x / math.sqrt(2))) end, erf = erf,
  floor = math.floor, ceil = math.ceil, round = function(x) return x end,
  leaky_relu = function(x) return x > 0 and x or x * 0.01 end,
}
for _, name in ipairs(ms.sorted_keys(UNARY)) do
  local X = tensor("X", {3, 7})
  holds(name, {X, (ops[name](X))}, function(i, x) return UNARY[name](x[i]) end)
end
-- of what is above 0
for name, f in pairs {log = math.log, sqrt = math.sqrt, rsqrt = function(x) return x ^ -0.5 end} do
  local X = tensor("X", {3, 7})
  holds(name, {X, (ops[name](ops.add(ops.abs(X), 1)))}, function(i, x) return f(math.abs(x[i]) + 1) end)
end
local BINARY = {
  add = function(a, b) return a + b end, subtract = function(a, b) return a - b end,
  multiply = function(a, b) return a * b end,
  divide = function(a, b) return a / b end, maximum = math.max, minimum = math.min,
}
for _, name in ipairs(ms.sorted_keys(BINARY)) do
  local A, B = tensor("A", {4, 1, 3}), tensor("B", {5, 1})
  local divisor = name == "divide" and ops.add(ops.abs(B), 1) or B
  holds(name, {A, B, (ops[name](A, divisor))}, function(i, a, b)
    local y = b[{i[2], 0}]
    return BINARY[name](a[{i[1], 0, i[3]}], name == "divide" and math.abs(y) + 1 or y)
  end)
  holds(name, {A, (ops[name](A, 3))}, function(i, a) return BINARY[name](a[i], 3) end)
end
do
  local A = tensor("A", {2, 3})
  holds("power", {A, (ops.power(A, 2))}, function(i, a) return a[i] ^ 2 end)
  holds("broadcast_to", {A, (ops.broadcast_to(A, {4, 2, 3}))}, function(i, a) return a[{i[2], i[3]}] end)
  holds("cast", {A, (ops.cast(A, "int8"))}, function(i, a) return a[i] end)
  local X, scale, shift = tensor("X", {2, 3, 2}), tensor("scale", {3}), tensor("shift", {3})
  holds("scale_shift", {X, scale, shift, (ops.scale_shift(X, scale, shift, nil, 2))},
        function(i, x, s, t) return x[i] * s[{i[2]}] + t[{i[2]}] end)
  holds("bias_add", {A, shift, (ops.bias_add(A, shift))}, function(i, a, t) return a[i] + t[{i[2]}] end)
end

-- ---- Shapes ----------------------------------------------------------------------------------------------------

do
  local X = tensor("X", SHAPE)
  holds("transpose", {X, (ops.transpose(X, {2, -1, 1}))}, function(i, x) return x[{i[3], i[1], i[2]}] end)
  holds("transpose", {X, (ops.transpose(X))}, function(i, x) return x[{i[3], i[2], i[1]}] end)
  for _, shape in ipairs {{60}, {-1}, {5, 4, 3}, {3, 20}, {3, 2, 2, 5}, {1, 3, 4, 1, 5, 1}, {6, 10}, {2, 1, -1},
                          {12, 5}} do
    local Y = ops.reshape(X, shape)
    holds("reshape", {X, Y}, function(i, x)
      local flat = 0
      for d, extent in ipairs(Y.shape) do flat = flat * extent + i[d] end
      return x[{flat // 20, flat // 5 % 4, flat % 5}]
    end)
  end
  local one = tensor("X", {1, 6, 1})
  holds("reshape", {one, (ops.reshape(one, {2, 3}))}, function(i, x) return x[{0, i[1] * 3 + i[2], 0}] end)
  local A, B, C = tensor("A", {2, 3}), tensor("B", {2, 1}), tensor("C", {2, 4})
  holds("concat", {A, B, C, (ops.concat({A, B, C}))}, function(i, a, b, c)
    local j = i[2]
    return j < 3 and a[i] or j < 4 and b[{i[1], 0}] or c[{i[1], j - 4}]
  end)
  holds("concat", {A, (ops.concat({A, A}, 1))}, function(i, a) return a[{i[1] % 2, i[2]}] end)
  holds("pad", {A, (ops.pad(A, {1, 0}, {0, 2}, {value = 7}))},
        function(i, a) return i[1] >= 1 and i[2] < 3 and a[{i[1] - 1, i[2]}] or 7 end)
  assert(ops.pad(A, 0, 0) == A)
  local I = tensor("I", {2, 2}, "int32")
  local function near(i, extent) return math.min(math.max(i, 0), extent - 1) end
  holds("gather", {X, I, (ops.gather(X, I))}, function(i, x, t) return x[{near(t[{i[1], i[2]}], 3), i[3], i[4]}] end)
  holds("gather", {X, I, (ops.gather(X, I, 2))}, function(i, x, t) return x[{i[1], near(t[{i[2], i[3]}], 4), i[4]}] end)
end

-- ---- Together --------------------------------------------------------------------------------------------------

-- Operators that are used twice have their tensors and blocks named apart, in the order of their use.
do
  local X, W, V = tensor("X", {1, 6, 6, 2}), tensor("W", {3, 3, 2, 3}), tensor("V", {3, 3, 3, 2})
  local function network()
    return te.func("network",
                   {X, W, V, (ops.softmax(ops.relu(ops.conv2d(ops.relu(ops.conv2d(X, W, {pad = 1})), V, {pad = 1}))))})
  end
  local names = table.concat(ms.schedule(network()):block_names(), " ")
  assert(names:find "pad conv2d relu pad_1 conv2d_1 relu_1 maximum exponent total softmax", names)
  assert(network():hash() == network():hash())
end

-- ---- What is refused, with the line of the call ----------------------------------------------------------------

local X, W = tensor("X", {1, 8, 8, 4}), tensor("W", {3, 3, 4, 6})
refuses(string.format("ops.lua:%d: ops.conv2d: W takes", debug.getinfo(1, "l").currentline + 1), function()
  ops.conv2d(X, tensor("W", {3, 3, 5, 6}))
end)
for _, case in ipairs {
  {"conv2d: W takes 5 channels, but X has 4", ops.conv2d, X, tensor("W", {3, 3, 5, 6})},
  {"conv2d: W takes 4 channels in each of 2 groups, but X has 4", ops.conv2d, X, W, {groups = 2}},
  {"conv2d: groups is 3, which does not divide the 4 channels of X", ops.conv2d, X, W, {groups = 3}},
  {"conv2d: groups is 4, which does not divide the 6 channels of the result", ops.conv2d, X, W, {groups = 4}},
  {"conv2d: kernel 3 reaches over 9 elements, with dilation 4, but h is 8, padded 8", ops.conv2d, X, W, {dilation = 4}},
  {"conv2d: stride is 0; an integer of at least 1 is expected", ops.conv2d, X, W, {stride = 0}},
  {"conv2d: stride is 1.5", ops.conv2d, X, W, {stride = 1.5}},
  {"conv2d: stride has 3 numbers for 2 dimensions", ops.conv2d, X, W, {stride = {1, 1, 1}}},
  {"conv2d: pad is -1", ops.conv2d, X, W, {pad = -1}},
  {"conv2d: there is no option `padding`; there are accumulate, dilation, groups, layout, name, pad, stride",
   ops.conv2d, X, W, {padding = 1}},
  {"conv2d: layout `HWNC`: there are NHWC and NCHW", ops.conv2d, X, W, {layout = "HWNC"}},
  {"conv2d: X has 2 dimensions, not 4", ops.conv2d, tensor("X", {1, 8}), W},
  {"conv2d: W is no tensor but a number", ops.conv2d, X, 3},
  {"conv1d: the options are a table, not a number", ops.conv1d, tensor("X", {1, 8, 4}), tensor("W", {3, 4, 4}), 3},
  {"depthwise_conv2d: extent 3 of W is 5, not 4", ops.depthwise_conv2d, X, tensor("W", {3, 3, 5})},
  {"conv2d_transpose: output_pad is 2; it is less than the stride, 2", ops.conv2d_transpose, X, W,
   {stride = 2, output_pad = 2}},
  {"conv2d_transpose: pad 9 leaves nothing of h", ops.conv2d_transpose, X, W, {pad = 9}},
  {"conv2d_capsule: W has 4 dimensions, not 6", ops.conv2d_capsule, tensor("X", {1, 4, 4, 2, 2, 3}), W},
  {"matmul: A has 5 elements to sum over, B 4", ops.matmul, tensor("A", {3, 5}), tensor("B", {4, 3})},
  {"matmul: A has 3 dimensions, not 2", ops.matmul, tensor("A", {2, 3, 5}), tensor("B", {5, 3})},
  {"batch_matmul: dimension 1 of A is 2, that of B 3", ops.batch_matmul, tensor("A", {2, 3, 5}),
   tensor("B", {3, 5, 3})},
  {"dense: extent 2 of W is 4, not 5", ops.dense, tensor("X", {3, 5}), tensor("W", {6, 4})},
  {"max_pool: kernel 9 reaches over 9 elements", ops.max_pool, X, {kernel = 9}},
  {"max_pool: pad is 2; it is less than the kernel, 2", ops.max_pool, X, {pad = 2}},
  {"avg_pool: X is of int8; floats are expected", ops.avg_pool, tensor("X", {1, 8, 8, 4}, "int8")},
  {"sum: axis 5: there are dimensions 1 to 4, or -1 to -4", ops.sum, X, 5},
  {"sum: axis 0: there are", ops.sum, X, {0}},
  {"sum: axis -1 is there twice", ops.sum, X, {4, -1}},
  {"sum: there is no axis to reduce over", ops.sum, X, {}},
  {"softmax: X is of int32", ops.softmax, tensor("X", {3, 3}, "int32")},
  {"rms_norm: extent 1 of gamma is 5, not 4", ops.rms_norm, X, tensor("gamma", {5})},
  {"rms_norm: gamma has 5 dimensions, X 4", ops.rms_norm, X, tensor("gamma", {2, 1, 8, 8, 4})},
  {"rms_norm: there is no option `turned`", ops.rms_norm, X, tensor("gamma", {4}), {turned = 2}},
  {"rotary: turned is 3; an even number of at most 4", ops.rotary, X, X, X, {turned = 3}},
  {"rotary: turned is 6; an even number of at most 4", ops.rotary, X, X, X, {turned = 6}},
  {"rotary: interleaved is 1; true or false", ops.rotary, X, X, X, {interleaved = 1}},
  {"rotary: extent 2 of cos is 4, not 2", ops.rotary, X, tensor("C", {8, 4}), X},
  {"rotary: X has 1 dimensions", ops.rotary, tensor("X", {4}), X, X},
  {"layer_norm: extent 1 of gamma is 5, not 4", ops.layer_norm, X, tensor("gamma", {5}), tensor("beta", {4})},
  {"attention: 4 heads of queries do not share 3 of keys evenly", ops.attention, tensor("Q", {4, 3, 4}),
   tensor("K", {3, 5, 4}), tensor("V", {3, 5, 4})},
  {"attention: lengths is of float32; integers are expected", ops.attention, tensor("Q", {2, 3, 4}),
   tensor("K", {2, 5, 4}), tensor("V", {2, 5, 4}), {lengths = tensor("l", {2})}},
  {"attention: extent 1 of lengths is 3, not 2", ops.attention, tensor("Q", {2, 3, 4}), tensor("K", {2, 5, 4}),
   tensor("V", {2, 5, 4}), {lengths = tensor("l", {3}, "int32")}},
  {"attention: extent 2 of mask is 4; 1 or 5 is expected", ops.attention, tensor("Q", {2, 3, 4}),
   tensor("K", {2, 5, 4}), tensor("V", {2, 5, 4}), {mask = tensor("m", {3, 4})}},
  {"attention: q_scale is of float16; float32 is expected", ops.attention, tensor("Q", {2, 3, 4}),
   tensor("K", {2, 5, 4}), tensor("V", {2, 5, 4}), {q_scale = tensor("s", {1}, "float16")}},
  {"attention: extent 1 of k_scale is 4, not 2", ops.attention, tensor("Q", {4, 3, 4}), tensor("K", {2, 5, 4}),
   tensor("V", {2, 5, 4}), {k_scale = tensor("s", {4})}},
  {"attention: dtype is int8; a type of floats is expected", ops.attention, tensor("Q", {2, 3, 4}),
   tensor("K", {2, 5, 4}), tensor("V", {2, 5, 4}), {dtype = "int8"}},
  {"attention: dtype is true; a type of floats is expected", ops.attention, tensor("Q", {2, 3, 4}),
   tensor("K", {2, 5, 4}), tensor("V", {2, 5, 4}), {dtype = true}},
  {"batch_matmul: dimension 1 of A is 4, that of B 3, each for 2 of A", ops.batch_matmul, tensor("A", {4, 3, 4}),
   tensor("B", {3, 4, 5}), {group = 2}},
  {"attention: extent 3 of K is 5, not 4", ops.attention, tensor("Q", {1, 3, 4}), tensor("K", {1, 3, 5}),
   tensor("V", {1, 3, 5})},
  {"add: shapes 2x3 and 2x4 differ in extents 3 and 4, and neither is 1", ops.add, tensor("A", {2, 3}),
   tensor("B", {2, 4})},
  {"transpose: the order is a list of the 4 dimensions", ops.transpose, X, {1, 2}},
  {"transpose: axis 2 is there twice", ops.transpose, X, {1, 2, 2, 3}},
  {"reshape: 1x8x8x4 has 256 elements, which 3x-1 cannot hold", ops.reshape, X, {3, -1}},
  {"reshape: extent 2 is -1", ops.reshape, X, {-1, -1}},
  {"concat: extent 2 of tensor 2 is 9, not 8", ops.concat, {X, tensor("Y", {1, 9, 8, 4})}},
  {"concat: tensor 2 is of int8, not float32", ops.concat, {X, tensor("Y", {1, 8, 8, 4}, "int8")}},
  {"gather: I is of float32; integers are expected", ops.gather, X, X},
  {"bias_add: extent 1 of bias is 3, not 4", ops.bias_add, X, tensor("b", {3})},
  {"broadcast_to: 1x8x8x4 cannot become 8x4", ops.broadcast_to, X, {8, 4}},
} do refuses("ops." .. case[1], table.unpack(case, 2)) end
-- ---- Quantized -------------------------------------------------------------------------------------------------

do
  local BYTE = {int8 = {-128, 127}, uint8 = {0, 255}}
  local function nearest(x) -- halves to even
    local low = math.floor(x)
    local over = x - low
    return (over > 0.5 or over == 0.5 and low % 2 == 1) and low + 1 or low
  end
  local function byte(real, zero, type)
    return math.max(BYTE[type][1], math.min(BYTE[type][2], nearest(real) + zero))
  end

  -- Element by element: one scale and zero point, or one for each channel of any axis.
  local X, Q, D, V = tensor("X", {3, 5, 4}), tensor("Q", {3, 5, 4}, "uint8"), tensor("D", {3, 5, 4}, "int32"),
    tensor("V", {5})
  local above = te.compute({5}, function(i) return te.abs(V[i]) + 0.5 end, "above")
  local Z = tensor("Z", {5}, "uint8")
  holds("quantize", {X, ops.quantize(X, 0.25, {zero_point = -3})},
        function(i, x) return byte(x[i] / 0.25, -3, "int8") end)
  holds("quantize_channels", {X, V, Z, ops.quantize(X, above, {zero_point = Z, type = "uint8", axis = 2})},
    function(i, x, v, z)
    return byte(x[i] / (math.abs(v[{i[2]}]) + 0.5), z[{i[2]}], "uint8")
  end)
  holds("dequantize", {Q, V, Z, ops.dequantize(Q, V, {zero_point = Z, axis = 2})},
        function(i, q, v, z) return (q[i] - z[{i[2]}]) * v[{i[2]}] end)
  holds("requantize", {D, ops.requantize(D, 0.375, {zero_point = 120, type = "uint8"})},
        function(i, d) return byte(d[i] * 0.375, 120, "uint8") end)
  local A, B = tensor("A", {7, 3}, "int8"), tensor("B", {7, 3}, "int8")
  holds("quantized_add", {A, B, ops.quantized_add(A, B, {a_scale = 0.5, b_scale = 2, scale = 0.25, a_zero_point = 1,
                                                         b_zero_point = -2, zero_point = 5})}, function(i, a, b)
    return byte((a[i] - 1) * 2 + (b[i] + 2) * 8, 5, "int8")
  end)

  -- Products: zero points of both sides, bias, scales of channels, both signs.
  local S, bias = tensor("S", {6}), tensor("bias", {6}, "int32")
  for _, zeros in ipairs {{0, 0}, {3, 0}, {0, 2}, {3, 2}} do
    local L, W, zx, zw = tensor("L", {4, 9}, "uint8"), tensor("W", {6, 9}, "int8"), zeros[1], zeros[2]
    holds("quantized_dense", {L, W, S, bias, ops.quantized_dense(L, W, S, {bias = bias, x_zero_point = zx,
                              w_zero_point = zw, zero_point = -1})}, function(i, x, w, s, b)
      return byte((sum({9}, function(k) return (x[{i[1], k}] - zx) * (w[{i[2], k}] - zw) end) + b[{i[2]}]) * s[{i[2]}],
                  -1, "int8")
    end)
    local C = tensor("C", {6}, "int8")
    holds("quantized_dense_channels", {L, W, C, ops.quantized_dense(L, W, 0.5, {x_zero_point = zx, w_zero_point = C})},
      function(i, x, w, c)
      return byte(sum({9}, function(k) return (x[{i[1], k}] - zx) * (w[{i[2], k}] - c[{i[2]}]) end) * 0.5, 0, "int8")
    end)
    for _, turned in ipairs {false, true} do
      local M, N = tensor("M", {2, 3, 5}, "int8"), tensor("N", turned and {2, 6, 5} or {2, 5, 6}, "uint8")
      holds("quantized_batch_matmul", {M, N, ops.quantized_batch_matmul(M, N, 0.5,
        {x_zero_point = zx, w_zero_point = zw, type = "uint8", zero_point = 100, transpose_b = turned})},
        function(i, x, w)
        return byte(sum({5}, function(k)
          return (x[{i[1], i[2], k}] - zx) * (w[turned and {i[1], i[3], k} or {i[1], k, i[3]}] - zw)
        end) * 0.5, 100, "uint8")
      end)
    end
  end

  -- Windows: around the image is what stands for 0.
  local function pixel(image, zero, n, y, x, c, first)
    if y < 0 or y > 5 or x < 0 or x > 4 then return 0 end
    return image[first and {n, c, y, x} or {n, y, x, c}] - zero
  end
  for _, layout in ipairs {"NHWC", "NCHW"} do
    local first = layout == "NCHW"
    local image = first and {2, 4, 6, 5} or {2, 6, 5, 4}
    local I, F = tensor("I", image, "uint8"), tensor("F", first and {6, 2, 3, 2} or {3, 2, 2, 6}, "int8")
    local G, zeros = tensor("G", first and {4, 3, 2} or {3, 2, 4}, "int8"), tensor("zeros", {6}, "int8")
    local each = tensor("each", {4}, "int8")
    -- a zero point of the weights: none, a number, one for each channel; of the image as well, or none
    for _, case in ipairs {{2, 0}, {0, 3}, {2, 3}, {0, zeros, each}, {2, zeros, each}} do
      local zx, zw, zg = case[1], case[2], case[3] or case[2]
      local function less(z, c) return type(zw) == "table" and z[{c}] or zw end
      holds("quantized_conv2d", {I, F, S, zeros, ops.quantized_conv2d(I, F, S, {x_zero_point = zx, w_zero_point = zw,
                                 zero_point = 4, stride = {2, 1}, pad = 1, groups = 2, layout = layout})},
        function(i, x, f, s, z)
        local y0, x0, o = i[first and 3 or 2], i[first and 4 or 3], i[first and 2 or 4]
        return byte(sum({3, 2, 2}, function(ky, kx, c)
          return pixel(x, zx, i[1], y0 * 2 + ky - 1, x0 + kx - 1, o // 3 * 2 + c, first)
            * (f[first and {o, c, ky, kx} or {ky, kx, c, o}] - less(z, o))
        end) * s[{o}], 4, "int8")
      end)
      local P = tensor("P", first and {6, 4, 1, 1} or {1, 1, 4, 6}, "int8")
      holds("quantized_pointwise", {I, P, zeros, ops.quantized_conv2d(I, P, 0.5, {x_zero_point = zx, w_zero_point = zw,
                                    stride = 2, layout = layout})}, function(i, x, f, z)
        local y0, x0, o = i[first and 3 or 2], i[first and 4 or 3], i[first and 2 or 4]
        return byte(sum({4}, function(c)
          return pixel(x, zx, i[1], y0 * 2, x0 * 2, c, first) * (f[first and {o, c, 0, 0} or {0, 0, c, o}] - less(z, o))
        end) * 0.5, 0, "int8")
      end)
      holds("quantized_depthwise_conv2d", {I, G, each, ops.quantized_depthwise_conv2d(I, G, 0.5,
        {x_zero_point = zx, w_zero_point = zg, pad = {1, 0}, dilation = 2, layout = layout})}, function(i, x, g, z)
        local y0, x0, c = i[first and 3 or 2], i[first and 4 or 3], i[first and 2 or 4]
        return byte(sum({3, 2}, function(ky, kx)
          return pixel(x, zx, i[1], y0 + 2 * ky - 1, x0 + 2 * kx, c, first)
            * (g[first and {c, ky, kx} or {ky, kx, c}] - less(z, c))
        end) * 0.5, 0, "int8")
      end)
    end
    holds("quantized_avg_pool", {I, ops.quantized_avg_pool(I, {kernel = {3, 2}, stride = 2, pad = 1, zero_point = 7,
                                                           layout = layout})}, function(i, x)
      local y0, x0, c = i[first and 3 or 2], i[first and 4 or 3], i[first and 2 or 4]
      return byte(sum({3, 2},
                      function(ky, kx) return pixel(x, 7, i[1], y0 * 2 + ky - 1, x0 * 2 + kx - 1, c, first) + 7 end)
                  / 6, 0, "uint8")
    end)
  end

  -- What cannot be.
  local W, L, three = tensor("W", {6, 9}, "int8"), tensor("L", {4, 9}, "uint8"), tensor("three", {3})
  refuses("ops.quantize: zero_point is 128; int8 holds -128 to 127", ops.quantize, X, 1, {zero_point = 128})
  refuses("ops.quantize: zero_point is -1; uint8 holds 0 to 255", ops.quantize, X, 1, {zero_point = -1, type = "uint8"})
  refuses("ops.quantize: zero_point is 0.5; int8 holds -128 to 127", ops.quantize, X, 1, {zero_point = 0.5})
  refuses("ops.quantize: zero_point is of uint8; int8 is expected", ops.quantize, X, 1, {zero_point = Z, axis = 2})
  refuses("ops.quantize: scale is 0; a number above 0, or a tensor of float32 is expected", ops.quantize, X, 0)
  refuses("ops.quantize: scale is inf", ops.quantize, X, math.huge)
  refuses("ops.quantize: scale has shape 3; one number, or one for each of the 4 channels is expected", ops.quantize, X,
          three)
  refuses("ops.quantize: scale is of int32; float32 is expected", ops.quantize, X, tensor("ints", {4}, "int32"))
  refuses("ops.quantize: X is of uint8; floats are expected", ops.quantize, Q, 1)
  refuses("ops.quantize: type is of int16; int8 or uint8 is expected", ops.quantize, X, 1, {type = "int16"})
  refuses("ops.quantize: axis 4: there are dimensions 1 to 3", ops.quantize, X, 1, {axis = 4})
  refuses("ops.dequantize: X is of float32; int8 or uint8 is expected", ops.dequantize, X, 1)
  refuses("ops.requantize: X is of uint8; sums of int32 are expected", ops.requantize, Q, 1)
  refuses("ops.quantized_add: B is of int8, A of uint8", ops.quantized_add, L, tensor("other", {4, 9}, "int8"))
  refuses("ops.quantized_add: b_scale is -1; a number above 0", ops.quantized_add, L, L, {b_scale = -1})
  refuses("ops.quantized_add: scale is a tensor; a number is expected", ops.quantized_add, L, L, {scale = three})
  refuses("ops.quantized_dense: scale has shape 3; one number, or one for each of the 6 channels is expected",
          ops.quantized_dense, L, W, three)
  refuses("ops.quantized_dense: bias is of float32; int32 is expected", ops.quantized_dense, L, W, 1, {bias = S})
  refuses("ops.quantized_dense: x_zero_point is -1; uint8 holds 0 to 255", ops.quantized_dense, L, W, 1,
          {x_zero_point = -1})
  refuses("ops.quantized_dense: w_zero_point is 128; int8 holds -128 to 127", ops.quantized_dense, L, W, 1,
          {w_zero_point = 128})
  refuses("ops.quantized_dense: x_zero_point is a tensor; uint8 holds 0 to 255", ops.quantized_dense, L, W, 1,
          {x_zero_point = Z})
  refuses("ops.quantized_dense: W is of float32; int8 or uint8 is expected", ops.quantized_dense, L,
          tensor("floats", {6, 9}), 1)
  local I, F, G = tensor("I", {1, 6, 5, 4}, "uint8"), tensor("F", {3, 2, 4, 6}, "int8"), tensor("G", {3, 2, 4}, "int8")
  refuses("ops.quantized_conv2d: w_zero_point is -129; int8 holds -128 to 127", ops.quantized_conv2d, I, F, 1,
          {w_zero_point = -129})
  refuses("ops.quantized_conv2d: w_zero_point has shape 4; one number, or one for each of the 6 channels is expected",
          ops.quantized_conv2d, I, F, 1, {w_zero_point = tensor("z", {4}, "int8")})
  refuses("ops.quantized_depthwise_conv2d: w_zero_point is of uint8; int8 is expected", ops.quantized_depthwise_conv2d,
          I, G, 1, {w_zero_point = tensor("z", {4}, "uint8")})
  refuses("ops.quantized_batch_matmul: extent 3 of W is 4, not 5", ops.quantized_batch_matmul,
          tensor("M", {2, 3, 5}, "int8"), tensor("N", {2, 6, 4}, "int8"), 1, {transpose_b = true})
  refuses("ops.quantized_batch_matmul: transpose_b is 1; true or false is expected", ops.quantized_batch_matmul,
          tensor("M", {2, 3, 5}, "int8"), tensor("N", {2, 6, 5}, "int8"), 1, {transpose_b = 1})
  refuses("ops.quantized_avg_pool: zero_point is 256; uint8 holds 0 to 255", ops.quantized_avg_pool,
          tensor("I", {1, 6, 5, 4}, "uint8"), {zero_point = 256})
end

print "ops: ok"
