-- Convolutions. Images are (n, spatial…, ci), filters (kernel…, ci / groups, co); with channels first (n, ci, spatial…)
-- and (co, ci / groups, kernel…). Sums are held, and given, in `accumulate`.
local ms = msched
local te, common, window = ms.te, ms.load "lua.lib.ops.common", ms.load "lua.lib.ops.window"
local ops = {}

-- The channels of a filter in groups, checked against those of the image.
local function check_channels(what, channels, ci, co, groups)
  if channels % groups ~= 0 then
    common.fail(what, "groups is %d, which does not divide the %d channels of X", groups, channels)
  end
  if co % groups ~= 0 then
    common.fail(what, "groups is %d, which does not divide the %d channels of the result", groups, co)
  end
  if ci * groups ~= channels then
    common.fail(what, "W takes %d channels%s, but X has %d", ci,
                groups > 1 and " in each of " .. groups .. " groups" or "", channels)
  end
end

local function product(x, y, type) return te.cast(x, type) * te.cast(y, type) end

local function convolution(what, rank, X, W, given)
  common.check_tensor(what, "X", X, rank + 2)
  common.check_tensor(what, "W", W, rank + 2)
  local o = common.options(what, given, {stride = 1, pad = 0, dilation = 1, groups = 1, layout = (window.layouts(rank)),
                                         accumulate = common.sums(X.type), name = what})
  local order = window.layout(what, o.layout, rank)
  local spatial, channels = order.parts(X.shape)
  local kernel, ci, co = order.filter_parts(W.shape)
  local groups = common.check_integer(what, "groups", o.groups, 1)
  check_channels(what, channels, ci, co, groups)
  o.kernel = kernel
  local w = window.slide(what, spatial, o)
  local P, rc = window.pad(X, order.first, w.pads), te.reduce_axis(ci, "rc")
  local axes = {table.unpack(w.taps)}
  axes[#axes + 1] = rc
  return te.compute(order.image(X.shape[1], w.extents, co), function(...)
    local indices = {...}
    local at, out = order.parts(indices)
    local channel = groups == 1 and rc or te.floordiv(out, co // groups) * ci + rc
    return te.sum(product(P[order.image(indices[1], w.at(at), channel)], W[order.filter(w.taps, rc, out)],
                          o.accumulate), axes)
  end, o.name, window.axes(order, rank, "o"))
end

function ops.conv1d(X, W, options) return convolution("conv1d", 1, X, W, options) end
function ops.conv2d(X, W, options) return convolution("conv2d", 2, X, W, options) end
function ops.conv3d(X, W, options) return convolution("conv3d", 3, X, W, options) end

-- Each channel by itself: the filter is (kernel, kernel, c), with channels first (c, kernel, kernel).
function ops.depthwise_conv2d(X, W, options)
  local what = "depthwise_conv2d"
  common.check_tensor(what, "X", X, 4)
  local o = common.options(what, options, {stride = 1, pad = 0, dilation = 1, layout = "NHWC",
                                           accumulate = common.sums(X.type), name = what})
  local order = window.layout(what, o.layout, 2)
  local spatial, channels = order.parts(X.shape)
  common.check_shape(what, "W", W, order.channels_first and {channels, false, false} or {false, false, channels})
  o.kernel = {table.unpack(W.shape, order.channels_first and 2 or 1, order.channels_first and 3 or 2)}
  local w = window.slide(what, spatial, o)
  local P = window.pad(X, order.first, w.pads)
  return te.compute(order.image(X.shape[1], w.extents, channels), function(...)
    local indices = {...}
    local at, c = order.parts(indices)
    local tap = order.channels_first and {c, table.unpack(w.taps)} or {w.taps[1], w.taps[2], c}
    return te.sum(product(P[order.image(indices[1], w.at(at), c)], W[tap], o.accumulate), w.taps)
  end, o.name, window.axes(order, 2, "c"))
end

-- For each spatial dimension of a transposed convolution: the extent of the result, how X is padded, and the taps; `at`
-- gives where in the padded image and in the filter an element of the result finds them, and what must hold for that.
local function transposed_window(what, spatial, kernel, o)
  local stride, pad = common.each(what, "stride", o.stride, 2, 1), common.each(what, "pad", o.pad, 2, 0)
  local more, t = common.each(what, "output_pad", o.output_pad, 2, 0), {extents = {}, pads = {}, taps = {}}
  for d, extent in ipairs(spatial) do
    local name, s, k = window.SPATIAL[2][d], stride[d], kernel[d]
    local result = (extent - 1) * s - 2 * pad[d] + k + more[d]
    if result < 1 then
      common.fail(what, "pad %d leaves nothing of %s: (%d - 1) x stride %d + kernel %d - 2 x %d is %d", pad[d], name,
                  extent, s, k, pad[d], result - more[d])
    end
    if more[d] >= s then common.fail(what, "output_pad is %d; it is less than the stride, %d", more[d], s) end
    local met = (k + s - 1) // s -- taps of one element of the result
    t.extents[d], t.taps[d] = result, te.reduce_axis(met, "r" .. name)
    t.pads[d] = {math.max(0, met - 1 - pad[d] // s), math.max(0, (result - 1 + pad[d]) // s - (extent - 1))}
  end
  function t.at(places)
    local image, filter, within = {}, {}, {}
    for d, place in ipairs(places) do
      local shifted = pad[d] == 0 and place or place + pad[d]
      image[d] = te.floordiv(shifted, stride[d]) + t.pads[d][1] - t.taps[d]
      filter[d] = te.floormod(shifted, stride[d]) + t.taps[d] * stride[d]
      if kernel[d] % stride[d] ~= 0 then within[#within + 1] = te.lt(filter[d], kernel[d]) end
    end
    return image, filter, within
  end
  return t
end

-- The transposed convolution, which a convolution of the same kernel, stride and padding takes back to X's extents:
-- each is (extent - 1) x stride - 2 x pad + kernel, and output_pad. Dumoulin and Visin, "A guide to convolution
-- arithmetic", section 4, put zeros between the elements of X; here each element of the result takes the taps that meet
-- an element of X and no others, those that are congruent to its place modulo the stride.
function ops.conv2d_transpose(X, W, options)
  local what = "conv2d_transpose"
  common.check_tensor(what, "X", X, 4)
  common.check_tensor(what, "W", W, 4)
  local o = common.options(what, options, {stride = 1, pad = 0, output_pad = 0, layout = "NHWC",
                                           accumulate = common.sums(X.type), name = what})
  local order = window.layout(what, o.layout, 2)
  local spatial, channels = order.parts(X.shape)
  local kernel, ci, co = order.filter_parts(W.shape)
  check_channels(what, channels, ci, co, 1)
  local t, rc = transposed_window(what, spatial, kernel, o), te.reduce_axis(ci, "rc")
  local P = window.pad(X, order.first, t.pads)
  return te.compute(order.image(X.shape[1], t.extents, co), function(...)
    local indices = {...}
    local places, out = order.parts(indices)
    local image, filter, within = t.at(places)
    local x, y = P[order.image(indices[1], image, rc)], W[order.filter(filter, rc, out)]
    if #within > 0 then y = te.if_then_else(te.all(table.unpack(within)), y, common.zero(W.type)) end
    return te.sum(product(x, y, o.accumulate), {t.taps[1], t.taps[2], rc})
  end, o.name, window.axes(order, 2, "o"))
end

-- Hinton, Sabour and Frosst, "Matrix capsules with EM routing": a channel is a matrix, and a product of matrices takes
-- the place of one of numbers. X is (n, h, w, i, k, ci), the filter (kernel, kernel, k, j, ci, co), the result
-- (n, h, w, i, j, co).
function ops.conv2d_capsule(X, W, options)
  local what = "conv2d_capsule"
  common.check_tensor(what, "X", X, 6)
  common.check_shape(what, "W", W, {false, false, X.shape[5], false, X.shape[6], false})
  local o = common.options(what, options, {stride = 1, pad = 0, accumulate = common.sums(X.type), name = what})
  o.kernel = {W.shape[1], W.shape[2]}
  local w = window.slide(what, {X.shape[2], X.shape[3]}, o)
  local P = window.pad(X, 2, w.pads)
  local rk, rc = te.reduce_axis(X.shape[5], "rk"), te.reduce_axis(X.shape[6], "rc")
  local shape = {X.shape[1], w.extents[1], w.extents[2], X.shape[4], W.shape[4], W.shape[6]}
  return te.compute(shape, function(n, y, x, i, j, out)
    local at = w.at {y, x}
    local x, y = P[{n, at[1], at[2], i, rk, rc}], W[{w.taps[1], w.taps[2], rk, j, rc, out}]
    return te.sum(product(x, y, o.accumulate), {w.taps[1], w.taps[2], rk, rc})
  end, o.name, {"n", "h", "w", "i", "j", "o"})
end

return ops
