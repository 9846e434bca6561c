-- Reductions, softmax and norms. Sums of 16-bit floats are of float32.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}
local compute, reduce, count, wide, is_float = common.compute, common.reduce, common.count, common.wide, common.is_float

local function all_axes(rank)
  local list = {}
  for d = 1, rank do list[d] = d - 1 end
  return list
end

-- Begins with infinity, as ONNX has it of nothing; NaN is left out.
local function limit(t, infinity, of)
  if t == "bool" or t == "uint64" then
    error("te: the largest or smallest of elements of " .. t .. " is not computed", 0)
  end
  return is_float(t) and te.const(infinity, t) or of(t)
end
local function lowest(t) return limit(t, -math.huge, te.min_value) end
local function highest(t) return limit(t, math.huge, te.max_value) end
local maximum, minimum = te.reducer(te.maximum, lowest, "max"), te.reducer(te.minimum, highest, "min")
common.maximum, common.minimum, common.lowest = maximum, minimum, lowest

-- The elements of X over axes: before(x) of each, by the reducer; then after(y, elements). keep: reduced extents stay,
-- as 1.
local function over(X, set, keep, reducer, before, after)
  local shape, extents, full, outer = {}, {}, {}, {}
  for d, extent in ipairs(X.shape) do
    if set[d] then extents[#extents + 1] = extent else outer[#outer + 1] = extent end
    if not set[d] or keep then shape[#shape + 1] = set[d] and 1 or extent end
    full[d] = set[d] and 1 or extent
  end
  local sum = reduce(full, extents, reducer, function(i, r)
    local at, k = {}, 0
    for d in ipairs(X.shape) do
      if set[d] then k = k + 1 end
      at[d] = set[d] and r[k] or i[d]
    end
    local x = wide(X[at])
    if x.type == "bool" then x = te.cast(x, "int32") end
    return before and before(x, at) or x
  end)
  local elements = count(extents)
  return compute(shape, after and X.type or common.wide_type(X.type) ~= X.type and X.type or sum.type, function(i)
    local at, k = {}, 0
    for d in ipairs(full) do
      if not set[d] or keep then k = k + 1 end
      at[d] = set[d] and 0 or i[k]
    end
    return after and after(sum[at], elements) or sum[at]
  end), sum
end
common.over = over

-- Which axes a node reduces over: an input since version 13 of sums and 18 of the rest, an attribute before. nil: none.
local function axes_of(n)
  local rank = n:rank(1)
  local list = n:has(2) and n:list(2) or n:ints("axes", {})
  if #list == 0 then
    if n:int("noop_with_empty_axes", 0) == 1 then return nil end
    list = all_axes(rank)
  end
  return n:axes(list, rank)
end

local function reduction(name, reducer, before, after)
  operators[name] = function(n)
    local set, X = axes_of(n), n:x(1)
    if not set then
      return compute(X.shape, X.type, function(i)
        local x = before and before(wide(X[i])) or wide(X[i])
        return after and after(x, 1) or x
      end)
    end
    local y = over(X, set, n:flag("keepdims", 1), reducer, before, after)
    if y.type == X.type then return y end
    if X.type == "bool" then return compute(y.shape, "bool", function(i) return te.gt(y[i], 0) end) end
    return compute(y.shape, X.type, function(i) return common.cast(y[i], X.type) end)
  end
end
local function square(x) return x * x end
reduction("ReduceSum", te.sum)
reduction("ReduceProd", te.prod)
reduction("ReduceMax", maximum)
reduction("ReduceMin", minimum)
reduction("ReduceMean", te.sum, nil, function(x, k)
  return is_float(x.type) and x / te.const(k + 0.0, x.type)
    or te.call("truncdiv", x.type, x, te.const(math.max(k, 1), x.type))
end)
reduction("ReduceSumSquare", te.sum, square)
reduction("ReduceL1", te.sum, function(x) return common.is_unsigned(x.type) and x or te.abs(x) end)
reduction("ReduceL2", te.sum, square,
          function(x) return is_float(x.type) and te.sqrt(x) or te.cast(te.sqrt(te.cast(x, "float64")), x.type) end)
reduction("ReduceLogSum", te.sum, nil,
          function(x) return is_float(x.type) and te.log(x) or te.cast(te.log(te.cast(x, "float64")), x.type) end)

operators.ReduceLogSumExp = function(n)
  local X, set = n:x(1), axes_of(n)
  if not is_float(X.type) then n:fail("its input is of %s; floats are expected", X.type) end
  if not set then return common.copy(X) end
  local _, largest = over(X, set, true, maximum)
  local function shift(at)
    local i = {}
    for d in ipairs(X.shape) do i[d] = set[d] and 0 or at[d] end
    local m = largest[i]
    return te.select(te.lt(te.abs(m), te.const(math.huge, m.type)), m, te.const(0.0, m.type))
  end
  local _, sum = over(X, set, true, te.sum, function(x, at) return te.exp(x - shift(at)) end)
  local shape, keep = {}, n:flag("keepdims", 1)
  for d, extent in ipairs(X.shape) do
    if not set[d] or keep then shape[#shape + 1] = set[d] and 1 or extent end
  end
  return compute(shape, X.type, function(i)
    local at, k = {}, 0
    for d in ipairs(X.shape) do
      if not set[d] or keep then k = k + 1 end
      at[d] = set[d] and 0 or i[k]
    end
    return te.log(sum[at]) + shift(at)
  end)
end

-- The index of the largest or smallest along an axis, the first or the last of equal ones.
local function arg(better)
  return function(n)
    local X, rank = n:x(1), n:rank(1)
    local axis, keep, last = n:axis(n:int("axis", 0), rank), n:flag("keepdims", 1), n:flag("select_last_index", 0)
    local extent, full, shape = X.shape[axis], {}, {}
    if extent == 0 then n:fail "nothing is there to be chosen from" end
    for d, e in ipairs(X.shape) do
      full[d] = d == axis and 1 or e
      if d ~= axis or keep then shape[#shape + 1] = full[d] end
    end
    local pick = te.reducer(function(x, y)
      local tie = (last and te.gt or te.lt)(x[1], y[1])
      local keeps = te.any(better(x[2], y[2]), te.all(te.eq(x[2], y[2]), tie))
      return {te.select(keeps, x[1], y[1]), te.select(keeps, x[2], y[2])}
    end,
      function(_, t) return {te.const(last and -1 or extent, "int32"), (better == te.gt and lowest or highest)(t)} end,
      "arg")
    local index = reduce(full, {extent}, pick, function(i, r)
      local at = table.move(i, 1, #i, 1, {})
      at[axis] = r[1]
      return {r[1] + 0, wide(X[at])}
    end)
    return compute(shape, "int64", function(i)
      local at, k = {}, 0
      for d in ipairs(full) do
        if d ~= axis or keep then k = k + 1 end
        at[d] = d == axis and 0 or i[k]
      end
      return te.maximum(te.minimum(index[at], extent - 1), 0)
    end)
  end
end
operators.ArgMax, operators.ArgMin = arg(te.gt), arg(te.lt)

-- ---- Softmax -----------------------------------------------------------------------------------------------------

-- Before version 13 it is over all axes from the one that is named.
local function softmax_axes(n)
  local rank = n:rank(1)
  if n.opset >= 13 then return {[n:axis(n:int("axis", -1), rank)] = true} end
  local set = {}
  for d = n:axis(n:int("axis", 1), rank), rank do set[d] = true end
  return set
end
local function inner(set, at)
  local i = {}
  for d, x in ipairs(at) do i[d] = set[d] and 0 or x end
  return i
end

-- exp(d), 0 where it is so small that it, or its share of a sum of LONGEST, could be subnormal: of numbers below 1 next
-- to a sum that is 1 or more, at most LEAST is left out; CPUs take many times as long for subnormal numbers.
local LONGEST, LEAST = 4096, {float32 = -78.0, float64 = -690.0}
local function exp_or_zero(d, t)
  local least = te.const(LEAST[t], t)
  local is_less = te.lt(d, least)
  return te.select(is_less, te.const(0.0, t), te.exp(te.select(is_less, least, d)))
end

-- exp(x - m) and what it sums to, over axes. Longer rows keep the form that becomes one pass of both reductions.
local function exponentials(X, set)
  local _, largest = over(X, set, true, maximum)
  local t, length = common.wide_type(X.type), 1
  for d in pairs(set) do length = length * X.shape[d] end
  local exp = length <= LONGEST and LEAST[t] and exp_or_zero or te.exp
  local e = compute(X.shape, t, function(i) return exp(wide(X[i]) - largest[inner(set, i)], t) end)
  local _, sum = over(e, set, true, te.sum)
  return e, sum, largest
end
common.exponentials, common.inner = exponentials, inner
operators.Softmax = function(n)
  local X, set = n:x(1), softmax_axes(n)
  local e, sum = exponentials(X, set)
  return compute(X.shape, X.type, function(i) return e[i] / sum[inner(set, i)] end)
end
operators.LogSoftmax = function(n)
  local X, set = n:x(1), softmax_axes(n)
  local _, sum, largest = exponentials(X, set)
  return compute(X.shape, X.type,
                 function(i) return wide(X[i]) - largest[inner(set, i)] - te.log(sum[inner(set, i)]) end)
end
operators.Hardmax = function(n)
  local X, set = n:x(1), softmax_axes(n)
  local extents = {}
  for d, e in ipairs(X.shape) do extents[d] = set[d] and e or 1 end
  local _, largest = over(X, set, true, maximum)
  local function position(i)
    local own = {}
    for d in ipairs(i) do own[d] = set[d] and i[d] or 0 end
    return te.cast(common.fold(own, extents) + 0, "int32")
  end
  local _, first = over(X, set, true, te.reducer(te.minimum, function(t) return te.max_value(t) end, "first"),
    function(x, at)
    return te.select(te.eq(x, largest[inner(set, at)]), position(at), te.max_value "int32")
  end)
  return compute(X.shape, X.type, function(i)
    return te.select(te.eq(position(i), first[inner(set, i)]), te.const(1.0, X.type), te.const(0.0, X.type))
  end)
end

-- ---- Norms -------------------------------------------------------------------------------------------------------

-- The mean and the mean of squares about it, over axes.
local function moments(X, set)
  local elements = 1
  for d, e in ipairs(X.shape) do if set[d] then elements = elements * e end end
  local _, sum = over(X, set, true, te.sum)
  local function mean(i) return sum[inner(set, i)] / te.const(elements + 0.0, sum.type) end
  local _, squares = over(X, set, true, te.sum, function(x, at) return square(x - mean(at)) end)
  local function variance(i) return squares[inner(set, i)] / te.const(elements + 0.0, squares.type) end
  return mean, variance, sum.shape, sum.type
end
common.moments = moments

local function channel(V, i) return wide(V[i[2]]) end
operators.BatchNormalization = function(n)
  if n:int("training_mode", 0) == 1 or n:wants(2) then n:fail "training is not run" end
  local X, scale, bias, mean, var, epsilon = n:x(1), n:x(2), n:x(3), n:x(4), n:x(5), n:float("epsilon", 1e-5)
  local rank = #X.shape
  if rank < 2 then n:fail("its input has %d dimensions", rank) end
  for k = 2, 5 do
    if #n:shape(k) ~= 1 or n:shape(k)[1] ~= X.shape[2] then
      n:fail("input %d has extents %s, not of %d channels", k, common.text(n:shape(k)), X.shape[2])
    end
  end
  return compute(X.shape, X.type, function(i)
    return (wide(X[i]) - channel(mean, i)) / te.sqrt(channel(var, i) + epsilon) * channel(scale, i) + channel(bias, i)
  end)
end
local function expect_channels(n, X)
  if #X.shape < 2 then n:fail("its input has %d dimensions: images and channels come first", #X.shape) end
end
operators.InstanceNormalization = function(n)
  local X, scale, bias, epsilon, set = n:x(1), n:x(2), n:x(3), n:float("epsilon", 1e-5), {}
  expect_channels(n, X)
  for d = 3, #X.shape do set[d] = true end
  local mean, variance = moments(X, set)
  return compute(X.shape, X.type, function(i)
    return (wide(X[i]) - mean(i)) / te.sqrt(variance(i) + epsilon) * channel(scale, i) + channel(bias, i)
  end)
end
operators.GroupNormalization = function(n)
  local X, scale, bias, epsilon, groups = n:x(1), n:x(2), n:x(3), n:float("epsilon", 1e-5), n:int "num_groups"
  local s = X.shape
  expect_channels(n, X)
  if groups < 1 or s[2] % groups ~= 0 then n:fail("%d channels have no %d groups", s[2], groups) end
  local each, folded = s[2] // groups, {s[1], groups, s[2] // groups, table.unpack(s, 3)}
  local G, set = common.reshaped(X, folded), {}
  for d = 3, #folded do set[d] = true end
  local mean, variance = moments(G, set)
  local by_group = n.opset < 21 and n:shape(2)[1] == groups and groups ~= s[2]
  return compute(s, X.type, function(i)
    local group = te.floordiv(i[2], each)
    local g = {i[1], group, te.floormod(i[2], each), table.unpack(i, 3)}
    local c = by_group and group or i[2]
    return (wide(X[i]) - mean(g)) / te.sqrt(variance(g) + epsilon) * wide(scale[c]) + wide(bias[c])
  end)
end

local function from_axis(n, rank)
  local set = {}
  for d = n:axis(n:int("axis", -1), rank), rank do set[d] = true end
  return set
end
operators.LayerNormalization = function(n)
  local X, scale, epsilon = n:x(1), n:x(2), n:float("epsilon", 1e-5)
  local bias, set = n:has(3) and n:x(3) or nil, from_axis(n, #X.shape)
  local mean, variance, shape, t = moments(X, set)
  local y = compute(X.shape, X.type, function(i)
    local z = (wide(X[i]) - mean(i)) / te.sqrt(variance(i) + epsilon) * wide(common.at(scale, i))
    return bias and z + wide(common.at(bias, i)) or z
  end)
  return y, n:wants(2) and compute(shape, t, function(i) return mean(i) end) or nil,
         n:wants(3) and compute(shape, t, function(i) return 1.0 / te.sqrt(variance(i) + epsilon) end) or nil
end
operators.RMSNormalization = function(n)
  local X, scale, epsilon = n:x(1), n:x(2), n:float("epsilon", 1e-5)
  local set, elements = from_axis(n, #X.shape), 1
  for d, e in ipairs(X.shape) do if set[d] then elements = elements * e end end
  local _, squares = over(X, set, true, te.sum, square)
  return compute(X.shape, X.type, function(i)
    return wide(X[i]) / te.sqrt(squares[inner(set, i)] / te.const(elements + 0.0, squares.type) + epsilon)
      * wide(common.at(scale, i))
  end)
end
operators.MeanVarianceNormalization = function(n)
  local X = n:x(1)
  local set = n:axes(n:ints("axes", {0, 2, 3}), #X.shape)
  local mean, variance = moments(X, set)
  return compute(X.shape, X.type, function(i) return (wide(X[i]) - mean(i)) / (te.sqrt(variance(i)) + 1e-9) end)
end
operators.LpNormalization = function(n)
  local X, p = n:x(1), n:int("p", 2)
  if p ~= 1 and p ~= 2 then n:fail("p is %d, neither 1 nor 2", p) end
  local set = {[n:axis(n:int("axis", -1), #X.shape)] = true}
  local _, sum = over(X, set, true, te.sum, p == 1 and te.abs or square)
  return compute(X.shape, X.type, function(i)
    local s = sum[inner(set, i)]
    if p == 2 then s = te.sqrt(s) end
    return te.select(te.eq(s, 0.0), te.const(0.0, s.type), wide(X[i]) / s)
  end)
end
operators.LRN = function(n)
  local X, size = n:x(1), n:int "size"
  local alpha, beta, bias, extent = n:float("alpha", 1e-4), n:float("beta", 0.75), n:float("bias", 1.0), X.shape[2]
  local before = (size - 1) // 2
  local function power(x) -- of at least the bias, by what most networks have with roots, which are much faster
    if beta == 0.75 then return te.sqrt(x) * te.sqrt(te.sqrt(x)) end
    return beta == 0.5 and te.sqrt(x) or te.pow(x, te.const(beta, x.type))
  end
  local squares = reduce(X.shape, {size}, te.sum, function(i, r)
    local at = table.move(i, 1, #i, 1, {})
    local c = i[2] + r[1] - before
    at[2] = c
    return te.if_then_else(te.all(te.ge(c, 0), te.lt(c, extent)), square(wide(X[at])),
                           te.const(0.0, common.wide_type(X.type)))
  end)
  return compute(X.shape, X.type, function(i)
    return wide(X[i]) / power(squares[i] * (alpha / size) + bias)
  end)
end

-- ---- Along an axis -----------------------------------------------------------------------------------------------

local function cumulative(reducer, neutral)
  return function(n)
    local X = n:x(1)
    local axis, exclusive, reverse = n:axis(n:scalar(2), #X.shape), n:flag("exclusive", 0), n:flag("reverse", 0)
    local extent, t = X.shape[axis], common.wide_type(X.type)
    if extent == 0 then return common.copy(X) end
    local y = reduce(X.shape, {extent}, reducer, function(i, r)
      local at = table.move(i, 1, #i, 1, {})
      at[axis] = r[1]
      local before = reverse and (exclusive and te.gt or te.ge)(r[1], i[axis])
        or not reverse and (exclusive and te.lt or te.le)(r[1], i[axis])
      return te.select(before, wide(X[at]), te.const(is_float(t) and neutral + 0.0 or neutral, t))
    end)
    return compute(X.shape, X.type, function(i) return y[i] end)
  end
end
operators.CumSum, operators.CumProd = cumulative(te.sum, 0), cumulative(te.prod, 1)

-- How many come before each, by value and where equal by place; the k-th is the one that has k before it.
operators.TopK = function(n)
  local X = n:x(1)
  local k = n:has(2) and n:scalar(2) or n:int "k"
  local axis, largest = n:axis(n:int("axis", -1), #X.shape), n:flag("largest", 1)
  local extent = X.shape[axis]
  if k < 0 or k > extent then n:fail("k is %d, of %d elements", k, extent) end
  local function at(i, x)
    local list = table.move(i, 1, #i, 1, {})
    list[axis] = x
    return list
  end
  local rank = reduce(X.shape, {extent}, te.sum, function(i, r)
    local x, y = wide(X[i]), wide(X[at(i, r[1])])
    local before = te.any((largest and te.gt or te.lt)(y, x), te.all(te.eq(y, x), te.lt(r[1], i[axis])))
    return te.select(before, te.const(1, "int32"), te.const(0, "int32"))
  end)
  local shape = table.move(X.shape, 1, #X.shape, 1, {})
  shape[axis] = k
  local index = reduce(shape, {extent}, te.sum, function(i, r)
    return te.select(te.eq(rank[at(i, r[1])], i[axis]), r[1] + 0, te.const(0, "int32"))
  end)
  local function within(i) return te.maximum(te.minimum(index[i], extent - 1), 0) end
  return compute(shape, X.type, function(i) return X[at(i, within(i))] end), compute(shape, "int64", within)
end

return operators
