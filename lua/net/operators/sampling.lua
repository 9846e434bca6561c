-- Images read at places that are data: GridSample, RoiAlign, DeformConv; AffineGrid makes such places.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}
local compute, reduce, wide = common.compute, common.reduce, common.wide

local function int(x) return te.cast(x, "int32") end
local function within(x, extent) return te.maximum(te.minimum(x, extent - 1), 0) end
-- A coordinate that may be cast: what is no number, or far outside of the image, lies just outside.
local function bounded(x, extent)
  local low, high = te.const(-8.0, x.type), te.const(extent + 8.0, x.type)
  return te.select(te.gt(x, low), te.minimum(x, high), low)
end

-- ---- GridSample --------------------------------------------------------------------------------------------------

-- Reflected at both borders of an axis, as often as it takes; of coordinates, and of whole places.
local function reflected(x, extent, corners)
  local low, span = corners and 0.0 or -0.5, corners and extent - 1.0 or extent + 0.0
  if span <= 0 then return te.const(0.0, x.type) end
  local y = te.call("fmod", x.type, te.abs(x - low), te.const(2 * span, x.type))
  return te.select(te.gt(y, span), 2 * span - y, y) + low
end
local function reflected_place(x, extent, corners)
  if extent == 1 then return te.const(0, "int32") end
  local period = corners and 2 * (extent - 1) or 2 * extent
  local y = te.floormod(x, period)
  return within(te.minimum(y, (corners and period or period - 1) - y), extent)
end

local MODES = {linear = "linear", bilinear = "linear", nearest = "nearest", cubic = "cubic", bicubic = "cubic"}
-- The coordinate of an output in an axis of the image, by padding where it lies outside.
local function coordinate(x, extent, mode, padding, corners)
  x = corners and (x + 1.0) / 2.0 * (extent - 1.0) or ((x + 1.0) * (extent + 0.0) - 1.0) / 2.0
  if mode == "nearest" then x = te.nearbyint(x) end
  local low, high = corners and 0.0 or -0.5, corners and extent - 1.0 or extent - 0.5
  if padding == "border" then
    x = te.select(te.lt(x, low), te.const(0.0, x.type), te.select(te.gt(x, high), te.const(extent - 1.0, x.type), x))
  elseif padding == "reflection" then
    x = te.select(te.any(te.lt(x, low), te.gt(x, high)), reflected(x, extent, corners), x)
  end
  return bounded(x, extent)
end

-- The weight of tap k of 2 or 4, of a coordinate that lies `f` behind the last place before it.
local function weight(mode, k, f)
  if mode == "linear" then return te.select(te.eq(k, 0), 1.0 - f, f) end
  local a = -0.75
  local x = te.abs(te.cast(k, f.type) - 1.0 - f)
  local near = ((a + 2) * x - (a + 3)) * x * x + 1.0
  local far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
  return te.select(te.le(x, 1.0), near, far)
end

operators.GridSample = function(n)
  local X, G, corners = n:x(1), n:x(2), n:flag("align_corners", 0)
  local mode = MODES[n:text("mode", "linear")] or n:fail("mode `%s` is not known", n:text("mode", "linear"))
  local padding, rank = n:choice("padding_mode", "zeros", "zeros", "border", "reflection"), #X.shape - 2
  if rank < 1 or #G.shape ~= rank + 2 or G.shape[rank + 2] ~= rank or G.shape[1] ~= X.shape[1] then
    n:fail("an image of %s and a grid of %s", common.text(X.shape), common.text(G.shape))
  end
  local t = X.type == "float64" and "float64" or "float32"
  local size = table.move(X.shape, 3, #X.shape, 1, {})
  for d, extent in ipairs(size) do if extent == 0 then n:fail("extent %d of the image is 0", d + 2) end end
  -- The grid has its last axis first.
  local places = compute(G.shape, t, function(i)
    local x
    for d, extent in ipairs(size) do
      local own = table.move(i, 1, rank + 1, 1, {})
      own[rank + 2] = te.const(rank - d, "int32")
      local y = coordinate(te.cast(wide(G[own]), t), extent, mode, padding, corners)
      x = x and te.select(te.eq(i[rank + 2], d - 1), y, x) or y
    end
    return x
  end)
  local taps = mode == "nearest" and 1 or mode == "linear" and 2 or 4
  local extents = {}
  for d = 1, rank do extents[d] = taps end
  local shape = table.move(G.shape, 2, rank + 1, 3, {X.shape[1], X.shape[2]})
  local Y = reduce(shape, extents, te.sum, function(i, r)
    local at, factor, inside = {i[1], i[2]}, nil, {}
    for d, extent in ipairs(size) do
      local x = places[table.move(i, 3, rank + 2, 2, {i[1], [rank + 2] = te.const(d - 1, "int32")})]
      local first = mode == "nearest" and x or te.floor(x)
      local place = int(first)
      if mode ~= "nearest" then
        local w = weight(mode, r[d] + 0, x - first)
        factor, place = factor and factor * w or w, place + r[d] - (taps // 2 - 1)
      end
      if padding == "zeros" then inside[#inside + 1], inside[#inside + 2] = te.ge(place, 0), te.lt(place, extent) end
      at[d + 2] = padding == "reflection" and reflected_place(place, extent, corners) or within(place, extent)
    end
    local pixel = te.cast(wide(X[at]), t)
    if #inside > 0 then pixel = te.select(te.all(table.unpack(inside)), pixel, te.const(0.0, t)) end
    return factor and pixel * factor or pixel
  end)
  if Y.type == X.type then return Y end
  return compute(shape, X.type, function(i) return common.cast(Y[i], X.type) end)
end

operators.AffineGrid = function(n)
  local A, size, corners = n:x(1), n:list(2), n:flag("align_corners", 0)
  local rank = #size - 2
  if rank ~= 2 and rank ~= 3 or common.text(A.shape) ~= common.text {size[1], rank, rank + 1} then
    n:fail("%s transforms no image of %s", common.text(A.shape), common.text(size))
  end
  local shape = table.move(size, 3, #size, 2, {size[1]})
  for d, extent in ipairs(shape) do if extent < 0 or extent > 1 << 30 then n:fail("extent %d is %d", d, extent) end end
  shape[#shape + 1] = rank
  return compute(shape, A.type, function(i)
    local sum = wide(A[{i[1], i[rank + 2], te.const(rank, "int32")}])
    for d = 1, rank do -- the last axis first
      local extent, x = shape[rank + 2 - d], te.cast(i[rank + 2 - d], sum.type)
      local at = not corners and (x * 2.0 + 1.0) / (extent + 0.0) - 1.0 or extent == 1 and te.const(-1.0, sum.type)
        or x * (2.0 / (extent - 1)) - 1.0
      sum = sum + wide(A[{i[1], i[rank + 2], te.const(d - 1, "int32")}]) * at
    end
    return sum
  end)
end

-- ---- Between four pixels -----------------------------------------------------------------------------------------

-- The corners of the square around (y, x): places, and what each weighs. sides: whether a place outside counts as
-- nothing.
local function corners_of(y, x, height, width)
  local top, left = te.floor(y), te.floor(x)
  local list = {}
  for k = 0, 3 do
    local down, right = k // 2, k % 2
    local wy, wx = y - top, x - left
    list[#list + 1] = {y = int(top) + down, x = int(left) + right,
                       weight = (down == 1 and wy or 1.0 - wy) * (right == 1 and wx or 1.0 - wx)}
  end
  for _, c in ipairs(list) do
    c.inside = te.all(te.ge(c.y, 0), te.lt(c.y, height), te.ge(c.x, 0), te.lt(c.x, width))
    c.y, c.x = within(c.y, height), within(c.x, width)
  end
  return list
end

local MOST_PLACES = 1024 -- that are read along an axis in each part of a region

-- The most places along an axis of a part, where each region has as many as fit it: those of constant regions, or of
-- one that is as large as the image.
local function most_places(n, parts, size, extent_of)
  local whole, many, spare = size, {}, 1
  if n:value(2).constant then
    whole, spare = {}, 1 + 1e-6 -- floats of 32 bits round
    local list = n:list(2)
    for k = 1, #list, 4 do
      for axis = 1, 2 do
        local first = axis == 1 and k + 1 or k
        whole[axis] = math.max(whole[axis] or 0, extent_of(list[first], list[first + 2]))
      end
    end
  end
  for axis = 1, 2 do
    local most = (whole[axis] or 0) / parts[axis] * spare
    if not (most <= MOST_PLACES) then
      n:fail("a part of a region is read at more than %d places a side", MOST_PLACES)
    end
    many[axis] = math.max(math.ceil(most), 1)
  end
  return many
end

operators.RoiAlign = function(n)
  local X, R, B = n:x(1), n:x(2), n:x(3)
  local parts, ratio = {n:int("output_height", 1), n:int("output_width", 1)}, n:int("sampling_ratio", 0)
  local mode, scale = n:choice("mode", "avg", "avg", "max"), n:float("spatial_scale", 1.0)
  local half = n:choice("coordinate_transformation_mode", n.opset >= 16 and "half_pixel" or "output_half_pixel",
                        "half_pixel", "output_half_pixel") == "half_pixel"
  if #X.shape ~= 4 or #R.shape ~= 2 or R.shape[2] ~= 4 or #B.shape ~= 1 or B.shape[1] ~= R.shape[1] then
    n:fail("an image of %s, regions of %s in images of %s", common.text(X.shape), common.text(R.shape),
           common.text(B.shape))
  end
  if parts[1] < 1 or parts[2] < 1 or ratio < 0 or ratio > MOST_PLACES then
    n:fail("regions of %d x %d, read at %d places a side", parts[1], parts[2], ratio)
  end
  local size, shift = {X.shape[3], X.shape[4]}, half and 0.5 or 0.0
  if common.count(X.shape) == 0 then n:fail "the image has no elements" end
  n:check_range(3, 0, X.shape[1] - 1)
  n:check_finite(2)
  local t = common.wide_type(X.type)
  -- Where a region begins along an axis, and how far it goes.
  local function region(k, axis)
    local first, last = axis == 1 and 1 or 0, axis == 1 and 3 or 2
    local from = wide(R[{k, te.const(first, "int32")}]) * scale - shift
    local extent = wide(R[{k, te.const(last, "int32")}]) * scale - shift - from
    return from, half and extent or te.maximum(extent, 1.0)
  end
  local many = ratio > 0 and {ratio, ratio} or most_places(n, parts, size, function(first, last)
    return math.max((last - first) * scale, half and 0 or 1)
  end)
  -- Places along both axes of a part, by region; nil: all have as many.
  local G = ratio == 0 and compute({R.shape[1], 2}, "int32", function(i)
    local function fitting(axis)
      local _, extent = region(i[1], axis)
      local places = te.ceil(extent / (parts[axis] + 0.0))
      return te.maximum(te.minimum(places, many[axis] + 0.0), 0.0) -- which is cast, whatever the region is
    end
    return te.select(te.eq(i[2], 0), fitting(1), fitting(2))
  end) or nil
  local function places(k, axis) return G[{k, te.const(axis - 1, "int32")}] end
  -- Where a region is read along an axis: {region, place}.
  local function along(axis)
    local count = many[axis]
    return compute({R.shape[1], parts[axis] * count}, t, function(i)
      local from, extent = region(i[1], axis)
      local at, own = te.cast(i[2], t), count + 0.0
      if G then
        own = te.maximum(te.cast(places(i[1], axis), t), 1.0)
        at = te.cast(te.floordiv(i[2], count), t) * own + te.cast(te.floormod(i[2], count), t)
      end
      return bounded(from + (at + 0.5) * (extent / (own * parts[axis])), size[axis])
    end)
  end
  local ys, xs = along(1), along(2)
  local Y = reduce({R.shape[1], X.shape[2], parts[1], parts[2]}, many, mode == "avg" and te.sum or common.maximum,
    function(i, r)
    local y, x = ys[{i[1], i[3] * many[1] + r[1]}], xs[{i[1], i[4] * many[2] + r[2]}]
    local outside = te.any(te.lt(y, -1.0), te.gt(y, size[1] + 0.0), te.lt(x, -1.0), te.gt(x, size[2] + 0.0))
    local function held(v, extent) return te.maximum(te.minimum(v, extent - 1.0), 0.0) end
    local batch, value = int(within(B[{i[1]}], X.shape[1])), nil
    for _, c in ipairs(corners_of(held(y, size[1]), held(x, size[2]), size[1], size[2])) do
      local one = wide(X[{batch, i[2], c.y, c.x}]) * c.weight
      if not value then
        value = one
      elseif mode == "avg" then
        value = value + one
      else
        value = te.maximum(value, one)
      end
    end
    value = te.select(outside, te.const(0.0, t), value)
    if not G then return value end
    local is_read = te.all(te.lt(r[1], places(i[1], 1)), te.lt(r[2], places(i[1], 2)))
    return te.select(is_read, value, te.const(mode == "avg" and 0.0 or -math.huge, t))
  end)
  return compute(Y.shape, X.type, function(i)
    local count = G and places(i[1], 1) * places(i[1], 2)
    if mode == "max" then return G and te.select(te.eq(count, 0), te.const(0.0, t), Y[i]) or Y[i] end
    return Y[i] / (G and te.maximum(te.cast(count, t), 1.0) or many[1] * many[2] + 0.0)
  end)
end

-- The largest element of each part of a region, whose places are whole.
operators.MaxRoiPool = function(n)
  local X, R, size, scale = n:x(1), n:x(2), n:ints "pooled_shape", n:float("spatial_scale", 1.0)
  if #X.shape ~= 4 or #R.shape ~= 2 or R.shape[2] ~= 5 or #size ~= 2 or size[1] < 1 or size[2] < 1 then
    n:fail("an image of %s, regions of %s", common.text(X.shape), common.text(R.shape))
  end
  if common.count(X.shape) == 0 then n:fail "the image has no elements" end
  n:check_range(2, 0, X.shape[1] - 1, nil, 0, 5)
  local t = common.wide_type(X.type)
  -- The first place of a part along an axis, and the one behind its last: {region, part, 2}.
  local function along(axis)
    local extent, count = X.shape[axis + 2], size[axis]
    return compute({R.shape[1], count, 2}, "int32", function(i)
      local function edge(k)
        local x = wide(R[{i[1], te.const(k - axis + 2, "int32")}]) * scale
        local sign = te.select(te.lt(x, 0.0), te.const(-1.0, t), te.const(1.0, t))
        return bounded(te.floor(te.abs(x) + 0.5) * sign, extent)
      end
      local from, last = edge(1), edge(3)
      local each = te.maximum(last - from + 1.0, 1.0) / (count + 0.0)
      local low, high = te.floor(te.cast(i[2], t) * each), te.ceil((te.cast(i[2], t) + 1.0) * each)
      return te.maximum(te.minimum(int(te.select(te.eq(i[3], 0), low, high) + from), extent), 0)
    end)
  end
  local ys, xs = along(1), along(2)
  local first, last = te.const(0, "int32"), te.const(1, "int32")
  local Y = reduce({R.shape[1], X.shape[2], size[1], size[2]}, {X.shape[3], X.shape[4]}, common.maximum, function(i, r)
    local batch = within(int(wide(R[{i[1], first}])), X.shape[1])
    local inside = te.all(te.ge(r[1], ys[{i[1], i[3], first}]), te.lt(r[1], ys[{i[1], i[3], last}]),
                          te.ge(r[2], xs[{i[1], i[4], first}]), te.lt(r[2], xs[{i[1], i[4], last}]))
    return te.select(inside, wide(X[{batch, i[2], r[1], r[2]}]), te.const(-math.huge, t))
  end)
  return compute(Y.shape, X.type, function(i)
    local empty = te.any(te.ge(ys[{i[1], i[3], first}], ys[{i[1], i[3], last}]),
                         te.ge(xs[{i[1], i[4], first}], xs[{i[1], i[4], last}]))
    return te.select(empty, te.const(0.0, t), Y[i])
  end)
end

-- Regions of images, whose corners are given as parts of the image's extents, read at the places of a grid.
operators["com.microsoft.CropAndResize"] = function(n)
  local X, R, B, size = n:x(1), n:x(2), n:x(3), n:list(4)
  local mode, outside = n:choice("mode", "bilinear", "bilinear", "nearest"), n:float("extrapolation_value", 0.0)
  if #X.shape ~= 4 or #R.shape ~= 2 or R.shape[2] ~= 4 or #B.shape ~= 1 or B.shape[1] ~= R.shape[1] or #size ~= 2
      or size[1] < 1 or size[2] < 1 or size[1] > 1 << 24 or size[2] > 1 << 24 then
    n:fail("an image of %s, regions of %s in images of %s", common.text(X.shape), common.text(R.shape),
           common.text(B.shape))
  end
  if common.count(X.shape) == 0 then n:fail "the image has no elements" end
  n:check_range(3, 0, X.shape[1] - 1)
  local t = common.wide_type(X.type)
  local function along(axis)
    local whole = X.shape[axis + 2] - 1.0
    return compute({R.shape[1], size[axis]}, t, function(i)
      local from = wide(R[{i[1], te.const(axis - 1, "int32")}])
      local last = wide(R[{i[1], te.const(axis + 1, "int32")}])
      if size[axis] == 1 then return bounded((from + last) * 0.5 * whole, X.shape[axis + 2]) end
      local step = (last - from) * whole / (size[axis] - 1.0)
      return bounded(from * whole + te.cast(i[2], t) * step, X.shape[axis + 2])
    end)
  end
  local ys, xs = along(1), along(2)
  return compute({R.shape[1], X.shape[2], size[1], size[2]}, X.type, function(i)
    local y, x, batch = ys[{i[1], i[3]}], xs[{i[1], i[4]}], int(within(B[{i[1]}], X.shape[1]))
    local height, width = X.shape[3], X.shape[4]
    local out = te.any(te.lt(y, 0.0), te.gt(y, height - 1.0), te.lt(x, 0.0), te.gt(x, width - 1.0))
    local sum
    if mode == "nearest" then
      local function nearest(v, extent) return within(int(te.floor(v + 0.5)), extent) end
      sum = wide(X[{batch, i[2], nearest(y, height), nearest(x, width)}])
    else
      for _, c in ipairs(corners_of(y, x, height, width)) do
        local one = wide(X[{batch, i[2], c.y, c.x}]) * c.weight
        sum = sum and sum + one or one
      end
    end
    return te.select(out, te.const(outside, t), sum)
  end)
end

operators.DeformConv = function(n)
  local X, W, O = n:x(1), n:x(2), n:x(3)
  local bias, mask = n:has(4) and n:x(4) or nil, n:has(5) and n:x(5) or nil
  local groups, parts = n:int("group", 1), n:int("offset_group", 1)
  if #X.shape ~= 4 or #W.shape ~= 4 or #O.shape ~= 4 then
    n:fail("an image of %s: it is computed of two dimensions", common.text(X.shape))
  end
  local kernel = {W.shape[3], W.shape[4]}
  if n:has_attribute "kernel_shape" and common.text(n:ints "kernel_shape") ~= common.text(kernel) then
    n:fail "kernel_shape is not that of its weights"
  end
  local strides, dilations, pads = n:ints("strides", {1, 1}), n:ints("dilations", {1, 1}), n:ints("pads", {0, 0, 0, 0})
  if #strides ~= 2 or #dilations ~= 2 or #pads ~= 4 or strides[1] < 1 or strides[2] < 1 then
    n:fail "its attributes are not of two dimensions"
  end
  if groups < 1 or parts < 1 or X.shape[2] ~= W.shape[2] * groups or W.shape[1] % groups ~= 0
      or X.shape[2] % parts ~= 0 then
    n:fail("%d channels, weights of %s, %d groups and %d groups of offsets do not fit", X.shape[2],
           common.text(W.shape), groups, parts)
  end
  local out, taps = {}, kernel[1] * kernel[2]
  for d = 1, 2 do
    out[d] = (X.shape[d + 2] + pads[d] + pads[d + 2] - (kernel[d] - 1) * dilations[d] - 1) // strides[d] + 1
  end
  local shape = {X.shape[1], W.shape[1], out[1], out[2]}
  if common.text(O.shape) ~= common.text {X.shape[1], parts * taps * 2, out[1], out[2]} then
    n:fail("offsets of %s, for %s", common.text(O.shape), common.text(shape))
  end
  if mask and common.text(mask.shape) ~= common.text {X.shape[1], parts * taps, out[1], out[2]} then
    n:fail("a mask of %s, for %s", common.text(mask.shape), common.text(shape))
  end
  if common.count(X.shape) == 0 then n:fail "the image has no elements" end
  local each, many = X.shape[2] // parts, W.shape[1] // groups
  -- What is read at each place by each tap: {batch, channel, tap, y, x}.
  local read = compute({X.shape[1], X.shape[2], taps, out[1], out[2]}, common.wide_type(X.type), function(i)
    local part = parts == 1 and te.const(0, "int32") or te.floordiv(i[2], each)
    local places = {}
    for d = 1, 2 do
      local k = d == 1 and te.floordiv(i[3], kernel[2]) or te.floormod(i[3], kernel[2])
      local offset = wide(O[{i[1], (part * taps + i[3]) * 2 + (d - 1), i[4], i[5]}])
      places[d] = bounded(te.cast(i[d + 3] * strides[d] - pads[d] + k * dilations[d], offset.type) + offset,
                          X.shape[d + 2])
    end
    local sum
    for _, c in ipairs(corners_of(places[1], places[2], X.shape[3], X.shape[4])) do
      local one = te.select(c.inside, wide(X[{i[1], i[2], c.y, c.x}]), te.const(0.0, places[1].type)) * c.weight
      sum = sum and sum + one or one
    end
    return mask and sum * wide(mask[{i[1], part * taps + i[3], i[4], i[5]}]) or sum
  end)
  local Y = reduce(shape, {W.shape[2], taps}, te.sum, function(i, r)
    local c = groups == 1 and r[1] + 0 or te.floordiv(i[2], many) * W.shape[2] + r[1]
    return read[{i[1], c, r[2], i[3], i[4]}]
      * wide(W[{i[2], r[1], te.floordiv(r[2], kernel[2]), te.floormod(r[2], kernel[2])}])
  end)
  if not bias and Y.type == X.type then return Y end
  return compute(shape, X.type, function(i) return bias and Y[i] + wide(bias[{i[2]}]) or Y[i] end)
end

return operators
