-- Resize and Upsample: an axis after the other, each a sum of few elements by weights. Where they lie and what they
-- weigh is known before anything runs: tables, which the function takes as constants.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}
local compute, is_float = common.compute, common.is_float

-- ---- Where an element of the result lies -------------------------------------------------------------------------

-- As float32, as all that follows: onnxruntime and PyTorch round each step so, and what is rounded down may be a whole
-- number that digits behind it miss (0.7 of 10 elements are 7).
local function float32(x) return (string.unpack("<f", string.pack("<f", x))) end
local function centre(x, a) return float32((x + 0.5) / a.scale) end

-- Each: where place x of `a` (axis: {size, out, length, scale, first, last}) lies in what is resized; `length` is `out`
-- as it would be unrounded.
local COORDINATES = {
  half_pixel = function(x, a) return float32(centre(x, a) - 0.5) end,
  pytorch_half_pixel = function(x, a) return a.length == 1 and -0.5 or float32(centre(x, a) - 0.5) end,
  half_pixel_symmetric = function(x, a)
    return float32(float32(a.size / 2 * (1 - a.out / a.length) + centre(x, a)) - 0.5)
  end,
  tf_half_pixel_for_nn = centre,
  asymmetric = function(x, a) return float32(x / a.scale) end,
  align_corners = function(x, a) return a.length == 1 and 0.0 or float32(x * (a.size - 1) / (a.length - 1)) end,
  tf_crop_and_resize = function(x, a)
    local span = (a.last - a.first) * (a.size - 1)
    return float32(a.first * (a.size - 1) + (a.length == 1 and span / 2 or x * span / (a.length - 1)))
  end,
}

-- ---- What weighs how much ----------------------------------------------------------------------------------------

local function cubic(x, a)
  x = math.abs(x)
  if x <= 1 then return ((a + 2) * x - (a + 3)) * x * x + 1 end
  return x < 2 and ((a * x - 5 * a) * x + 8 * a) * x - 4 * a or 0.0
end
local function linear(x) return math.max(0.0, 1 - math.abs(x)) end

-- Taps of an axis: {first[o], weights[o][t], count, outside[o]}. Where it shrinks and that is asked for, a tap covers
-- as much more.
local function taps_of(options, a)
  local weight, reach = linear, 1
  if options.mode == "cubic" then weight, reach = function(x) return cubic(x, options.a) end, 2 end
  local squeeze = options.antialias and math.min(a.scale, 1.0) or 1.0
  local before = math.floor(-reach / squeeze) + 1
  local taps = {first = {}, weights = {}, count = 2 - 2 * before, outside = {}}
  for o = 1, a.out do
    local x = COORDINATES[options.coordinates](o - 1, a)
    local base = math.ceil(x) - 1
    local weights, sum, from = {}, 0.0, base + before
    for t = 1, taps.count do
      local at = from + t - 1
      local w = weight((at - x) * squeeze)
      if options.exclude and (at < 0 or at >= a.size) then w = 0.0 end
      weights[t], sum = w, sum + w
    end
    if (options.exclude or options.antialias) and sum ~= 0 then
      for t, w in ipairs(weights) do weights[t] = w / sum end
    end
    taps.first[o], taps.weights[o] = from, weights
    taps.outside[o] = options.coordinates == "tf_crop_and_resize" and (x < 0 or x > a.size - 1)
  end
  return taps
end

local NEAREST = {
  round_prefer_floor = function(x) return math.ceil(x - 0.5) end,
  round_prefer_ceil = function(x) return math.floor(x + 0.5) end,
  floor = math.floor, ceil = math.ceil,
  -- As ONNX's test of version 10 has it (test_resize_downsample_nearest).
  before_11 = function(x, a) return a.scale < 1 and math.ceil(x) or math.floor(x) end,
}
local function nearest_of(options, a)
  local list, outside = {}, {}
  for o = 1, a.out do
    local x = COORDINATES[options.coordinates](o - 1, a)
    list[o] = math.max(0, math.min(NEAREST[options.nearest](x, a), a.size - 1))
    outside[o] = options.coordinates == "tf_crop_and_resize" and (x < 0 or x > a.size - 1)
  end
  return list, outside
end

-- ---- An axis resized ---------------------------------------------------------------------------------------------

local function any(list)
  for _, x in ipairs(list) do if x then return true end end
  return false
end
-- f, or what stands for places that lie outside.
local function unless_outside(n, outside, axis, otherwise, t, f)
  if not any(outside) then return f end
  local flags = {}
  for o, x in ipairs(outside) do flags[o] = x and 1 or 0 end
  local table_of = n:table(ms.array({#flags}, "int32", flags))
  return function(i)
    local extra = is_float(t) and otherwise + 0.0 or math.tointeger(otherwise)
      or n:fail("extrapolation_value %g does not fit %s", otherwise, t)
    return te.select(te.eq(table_of[{i[axis]}], 1), te.const(extra, t), f(i))
  end
end

-- The index of the nearest as an expression where whole numbers say it, else by a table.
local function nearest_index(n, list, size)
  local by, into = math.max(1, #list // math.max(size, 1)), math.max(1, size // math.max(#list, 1))
  local repeats, skips = true, true
  for o, at in ipairs(list) do
    repeats = repeats and at == (o - 1) // by
    skips = skips and at == (o - 1) * into + list[1]
  end
  if repeats then return function(i) return by == 1 and i or te.floordiv(i, by) end end
  if skips then return function(i) return i * into + list[1] end end
  local table_of = n:table(ms.array({#list}, "int32", list))
  return function(i) return te.maximum(te.minimum(table_of[{i}], size - 1), 0) end
end

local function moved(i, axis, x)
  local at = table.move(i, 1, #i, 1, {})
  at[axis] = x
  return at
end
local function resized(n, X, axis, a, options)
  local shape = moved(X.shape, axis, a.out)
  if options.mode == "nearest" then
    local list, outside = nearest_of(options, a)
    local index = nearest_index(n, list, a.size)
    return compute(shape, X.type, unless_outside(n, outside, axis, options.otherwise, X.type,
                                                 function(i) return X[moved(i, axis, index(i[axis]))] end))
  end
  local t, taps, flat = X.type == "float64" and "float64" or "float32", taps_of(options, a), {}
  for o = 1, a.out do table.move(taps.weights[o], 1, taps.count, #flat + 1, flat) end
  local weights = n:table(ms.array({a.out, taps.count}, t, flat))
  local first = n:table(ms.array({a.out}, "int32", taps.first))
  local function tap(i, k)
    local at = te.maximum(te.minimum(first[{i[axis]}] + k, a.size - 1), 0)
    return te.cast(X[moved(i, axis, at)], t) * weights[{i[axis], k}]
  end
  if taps.count > 4 then
    local sums = common.reduce(shape, {taps.count}, te.sum, function(i, r) return tap(i, r[1]) end)
    if not any(taps.outside) then return sums end
    return compute(shape, t,
                   unless_outside(n, taps.outside, axis, options.otherwise, t, function(i) return sums[i] end))
  end
  return compute(shape, t, unless_outside(n, taps.outside, axis, options.otherwise, t, function(i)
    local sum = tap(i, te.const(0, "int32"))
    for k = 1, taps.count - 1 do sum = sum + tap(i, te.const(k, "int32")) end
    return sum
  end))
end

-- Whole numbers are rounded, and held within their type.
local function finished(n, Y, t)
  if Y.type == t then return Y end
  if is_float(t) then return compute(Y.shape, t, function(i) return Y[i] end) end
  local limit = common.LIMITS[t] or n:fail("%s is not interpolated: floats and integers of 8 and 16 bits are", t)
  return compute(Y.shape, t, function(i)
    return te.maximum(te.minimum(te.nearbyint(Y[i]), limit[2] + 0.0), limit[1] + 0.0)
  end)
end

-- All axes in turn: a list of {axis, size, out, length, scale, first, last}; axes that stay are left out.
local function resize(n, list, options)
  local X = n:x(1)
  local Y, t = X, X.type
  if t == "bool" then n:fail "its input is of bool" end
  for _, a in ipairs(list) do
    local crops = options.coordinates == "tf_crop_and_resize" and (a.first ~= 0 or a.last ~= 1)
    if a.size == 0 and a.out > 0 then n:fail("axis %d has no elements to be resized", a.axis - 1) end
    if (a.size ~= a.out or math.abs(a.scale - 1) > 1e-9 or crops) and a.out > 0 then
      Y = resized(n, Y, a.axis, a, options)
    elseif a.out == 0 then Y = compute(moved(Y.shape, a.axis, 0), Y.type, function() end) end
  end
  if Y == X then return common.copy(X) end
  return finished(n, Y, t)
end

-- ---- What a node asks for ----------------------------------------------------------------------------------------

local function given(n, i) return n:has(i) and common.count(n:shape(i)) > 0 and n:list(i) or nil end

-- Sizes that keep the image's proportions: one scale for all axes.
local function keep_ratio(n, list, policy)
  local scale
  for _, a in ipairs(list) do
    local own = a.out / a.size
    if not scale or policy == "not_larger" and own < scale or policy == "not_smaller" and own > scale then
      scale = own
    end
  end
  for _, a in ipairs(list) do
    a.scale, a.length = scale, float32(scale * a.size)
    a.out = math.floor(scale * a.size + 0.5)
  end
end

local function axes_of(n, scales, sizes, roi)
  local rank, all, list = n:rank(1), {}, {}
  for d = 1, rank do all[d] = d - 1 end
  local axes = n:ints("axes", all)
  n:axes(axes, rank)
  if scales and sizes then n:fail "it has both scales and sizes" end
  local values = scales or sizes or n:fail "it has neither scales nor sizes"
  if #values ~= #axes then n:fail("%d %s for %d axes", #values, scales and "scales" or "sizes", #axes) end
  for k, axis in ipairs(axes) do
    local d = n:axis(axis, rank)
    local size = n:shape(1)[d]
    if not (values[k] > 0 and values[k] < 1 << 31) then
      n:fail("%s %s of axis %d", scales and "a scale of" or "a size of", values[k], axis)
    end
    local length = scales and float32(values[k] * size) or values[k]
    list[k] = {axis = d, size = size, out = math.floor(length), length = length,
               scale = float32(scales and values[k] or values[k] / size), first = roi and roi[k] or 0,
               last = roi and roi[k + #axes] or 1}
  end
  if sizes then
    local policy = n:choice("keep_aspect_ratio_policy", "stretch", "stretch", "not_larger", "not_smaller")
    if policy ~= "stretch" then keep_ratio(n, list, policy) end
  end
  local elements = 1.0
  for _, a in ipairs(list) do elements = elements * math.max(a.out, 1) end
  if elements > 1 << 31 then n:fail "its result is larger than is made" end
  return list, axes
end

operators.Resize = function(n)
  local mode = n:choice("mode", "nearest", "nearest", "linear", "cubic")
  if n.opset < 11 then
    return resize(n, axes_of(n, n:list(2)), {mode = mode, coordinates = "asymmetric", nearest = "before_11",
                                          otherwise = 0})
  end
  local options =
    {mode = mode, coordinates = n:text("coordinate_transformation_mode", "half_pixel"), a = n:float("cubic_coeff_a",
     -0.75), nearest = n:choice("nearest_mode", "round_prefer_floor", "round_prefer_floor", "round_prefer_ceil",
                                "floor", "ceil"), exclude = n:flag("exclude_outside", 0),
     antialias = n:flag("antialias", 0), otherwise = n:float("extrapolation_value", 0.0)}
  if not COORDINATES[options.coordinates] then
    n:fail("coordinate_transformation_mode `%s` is not known", options.coordinates)
  end
  if options.antialias and mode == "nearest" then n:fail "antialias is of linear and cubic, not of nearest" end
  local roi = options.coordinates == "tf_crop_and_resize"
    and (given(n, 2) or n:fail "tf_crop_and_resize is without a roi") or nil
  local list, axes = axes_of(n, given(n, 3), given(n, 4), roi)
  if roi and #roi ~= 2 * #axes then n:fail("a roi of %d numbers for %d axes", #roi, #axes) end
  return resize(n, list, options)
end

-- As Resize was before version 11; scales stand in an attribute before version 9.
operators.Upsample = function(n)
  local mode = n:choice("mode", "nearest", "nearest", "linear")
  local scales = n:has(2) and n:list(2) or n:floats "scales"
  return resize(n, axes_of(n, scales), {mode = mode, coordinates = "asymmetric", nearest = "floor", otherwise = 0})
end

return operators
