-- Operators on integers that stand for real numbers: real = scale * (integer - zero point). A scale is a number, one
-- for the whole tensor, or a tensor of float32, one for each channel; a zero point an integer, or a tensor of the
-- integers' type. Products add in int32; what zero points add to them is taken away once for each channel or row, so
-- that the products themselves are those of the bytes; but weights of depthwise convolutions that have zero points are
-- of 16 bits then. Results are rounded to the nearest and clamped to their type.
-- Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
-- CVPR 2018, section 2.
local ms = msched
local te, common, window = ms.te, ms.load "lua.lib.ops.common", ms.load "lua.lib.ops.window"
local fail = common.fail
local ops = {}

local RANGES = {int8 = {-128, 127}, uint8 = {0, 255}}

-- ---- What is checked -------------------------------------------------------------------------------------------

local function check_bytes(what, name, type)
  if not RANGES[type] then fail(what, "%s is of %s; int8 or uint8 is expected", name, tostring(type)) end
end

-- A vector with an element for each of so many channels.
local function check_channels(what, name, x, count, type)
  if #x.shape ~= 1 or x.shape[1] ~= count then
    fail(what, "%s has shape %s; one number, or one for each of the %d channels is expected", name,
         table.concat(x.shape, "x"), count)
  end
  if x.type ~= type then fail(what, "%s is of %s; %s is expected", name, x.type, type) end
end

local function check_scale(what, name, scale, count)
  if te.is_tensor(scale) then return check_channels(what, name, scale, count, "float32") end
  if type(scale) ~= "number" or not (scale > 0 and scale < math.huge) then
    fail(what, "%s is %s; a number above 0, or a tensor of float32 is expected", name, tostring(scale))
  end
end

-- An integer that the type holds; where `count` is given, or a tensor.
local function check_zero(what, name, zero, type, count)
  if count and te.is_tensor(zero) then return check_channels(what, name, zero, count, type) end
  local least, most = table.unpack(RANGES[type])
  if math.type(zero) ~= "integer" or zero < least or zero > most then
    local given = te.is_tensor(zero) and "a tensor" or tostring(zero)
    fail(what, "%s is %s; %s holds %d to %d", name, given, type, least, most)
  end
end

-- ---- Numbers ---------------------------------------------------------------------------------------------------

-- Of a scale or zero point, what holds for a channel, in a type.
local function of_channel(x, channel, type)
  if not te.is_tensor(x) then return te.const(x, type) end
  return x.type == type and x[{channel}] or te.cast(x[{channel}], type)
end

local function is_zero(x) return not te.is_tensor(x) and x == 0 end

-- A real number over its scale as an integer of the type.
local function rounded(real, zero, channel, type)
  local value = te.round(real)
  if not is_zero(zero) then value = value + of_channel(zero, channel, "float32") end
  local least, most = table.unpack(RANGES[type])
  return te.cast(te.minimum(te.maximum(value, least * 1.0), most * 1.0), type)
end

-- ---- Element by element ----------------------------------------------------------------------------------------

-- The options, the dimension of the channels, and how many there are.
local function of_elements(what, X, scale, given, defaults)
  common.check_tensor(what, "X", X)
  defaults.zero_point, defaults.axis, defaults.name = 0, -1, what
  local o = common.options(what, given, defaults)
  local axis = common.axis(what, o.axis, #X.shape)
  check_scale(what, "scale", scale, X.shape[axis])
  return o, axis, X.shape[axis]
end

-- f of each element, and of the index of its channel.
local function map_channels(X, axis, f, name)
  return te.compute(X.shape, function(...) return f(X(...), (select(axis, ...))) end, name)
end

-- Real numbers as bytes.
function ops.quantize(X, scale, options)
  local o, axis, count = of_elements("quantize", X, scale, options, {type = "int8"})
  common.check_float("quantize", "X", X)
  check_bytes("quantize", "type", o.type)
  check_zero("quantize", "zero_point", o.zero_point, o.type, count)
  return map_channels(X, axis, function(x, c)
    return rounded(te.cast(x, "float32") / of_channel(scale, c, "float32"), o.zero_point, c, o.type)
  end, o.name)
end

-- Bytes as the real numbers that they stand for, in float32.
function ops.dequantize(X, scale, options)
  local o, axis, count = of_elements("dequantize", X, scale, options, {})
  check_bytes("dequantize", "X", X.type)
  check_zero("dequantize", "zero_point", o.zero_point, X.type, count)
  return map_channels(X, axis, function(x, c)
    local value = te.cast(x, "int32")
    if not is_zero(o.zero_point) then value = value - of_channel(o.zero_point, c, "int32") end
    return te.cast(value, "float32") * of_channel(scale, c, "float32")
  end, o.name)
end

-- Sums of int32 as bytes; scale: that of the sums over that of the bytes.
function ops.requantize(X, scale, options)
  local o, axis, count = of_elements("requantize", X, scale, options, {type = "int8"})
  if X.type ~= "int32" then fail("requantize", "X is of %s; sums of int32 are expected", X.type) end
  check_bytes("requantize", "type", o.type)
  check_zero("requantize", "zero_point", o.zero_point, o.type, count)
  return map_channels(X, axis, function(x, c)
    return rounded(te.cast(x, "float32") * of_channel(scale, c, "float32"), o.zero_point, c, o.type)
  end, o.name)
end

-- The sum of two tensors of one type and shape, whose scales are numbers.
function ops.quantized_add(A, B, options)
  local what = "quantized_add"
  common.check_tensor(what, "A", A)
  check_bytes(what, "A", A.type)
  common.check_shape(what, "B", B, A.shape)
  if B.type ~= A.type then fail(what, "B is of %s, A of %s", B.type, A.type) end
  local o = common.options(what, options, {a_scale = 1, b_scale = 1, scale = 1, a_zero_point = 0, b_zero_point = 0,
                                           zero_point = 0, name = what})
  for _, name in ipairs {"a_scale", "b_scale", "scale"} do
    if te.is_tensor(o[name]) then fail(what, "%s is a tensor; a number is expected", name) end
    check_scale(what, name, o[name])
  end
  for _, name in ipairs {"a_zero_point", "b_zero_point", "zero_point"} do check_zero(what, name, o[name], A.type) end
  local function real(x, scale, zero) return te.cast(te.cast(x, "int32") - zero, "float32") * (scale / o.scale) end
  return te.compute(A.shape, function(...)
    return rounded(real(A(...), o.a_scale, o.a_zero_point) + real(B(...), o.b_scale, o.b_zero_point), o.zero_point, nil,
                   A.type)
  end, o.name)
end

-- ---- Products --------------------------------------------------------------------------------------------------

local PRODUCT = {bias = false, x_zero_point = 0, w_zero_point = 0, zero_point = 0, type = "int8"}

-- Options of a product of X by W with so many channels of results, over those of its own; checked.
local function of_product(what, X, W, scale, channels, given, own)
  local defaults = {name = what}
  for _, list in ipairs {PRODUCT, own or {}} do for name, value in pairs(list) do defaults[name] = value end end
  local o = common.options(what, given, defaults)
  check_bytes(what, "X", X.type)
  check_bytes(what, "W", W.type)
  check_bytes(what, "type", o.type)
  check_scale(what, "scale", scale, channels)
  check_zero(what, "x_zero_point", o.x_zero_point, X.type)
  check_zero(what, "zero_point", o.zero_point, o.type)
  check_zero(what, "w_zero_point", o.w_zero_point, W.type, channels)
  if o.bias then
    common.check_tensor(what, "bias", o.bias)
    check_channels(what, "bias", o.bias, channels, "int32")
  end
  return o
end

-- Sums of a product as bytes: less what the zero points add, plus the bias, times the scale. added(indices, channel):
-- what they add, or nil.
local function finished(sums, scale, o, axis, added)
  return te.compute(sums.shape, function(...)
    local indices = {...}
    local c = indices[axis]
    local more, bias, sum = added(indices, c), o.bias and o.bias[{c}], nil
    -- what is added is computed before the sums, tile by tile of which results can be made then
    if more then sum = (bias or 0) - more + sums[indices]
    else sum = bias and sums[indices] + bias or sums[indices] end
    return rounded(te.cast(sum, "float32") * of_channel(scale, c, "float32"), o.zero_point, c, o.type)
  end, o.name)
end

-- The sums of a tensor of bytes over some of its dimensions; at(rest, over): where the elements are.
local function sums_over(T, shape, extents, name, at)
  local over = {}
  for d, extent in ipairs(extents) do over[d] = te.reduce_axis(extent, "s" .. d) end
  return te.compute(shape, function(...) return te.sum(te.cast(T[at({...}, over)], "int32"), over) end, name)
end

-- What zero points add to sums of `count` products each, of which columns and rows are sums: of the weights that a
-- channel multiplies by, where X has a zero point, and of what is multiplied by them, where they have. The functions
-- give where a result finds its own.
local function added_to_sums(columns, rows, o, count, column_of, row_of)
  return function(indices, channel)
    local sum = columns and columns[column_of(indices)] * o.x_zero_point
    if rows then
      local zero = te.is_tensor(o.w_zero_point) and of_channel(o.w_zero_point, channel, "int32") or o.w_zero_point
      local row = rows[row_of(indices)]
      if sum and te.is_tensor(zero) then return sum + (row - count * o.x_zero_point) * zero end
      sum = sum and sum + row * zero - count * o.x_zero_point * zero or row * zero
    end
    return sum
  end
end

-- X of (m, ci) and weights of (co, ci) -> (m, co) in bytes.
function ops.quantized_dense(X, W, scale, options)
  local what = "quantized_dense"
  common.check_tensor(what, "X", X, 2)
  common.check_shape(what, "W", W, {false, X.shape[2]})
  local k = X.shape[2]
  local o = of_product(what, X, W, scale, W.shape[1], options)
  local sums = ms.load "lua.lib.ops.matmul".dense(X, W, {accumulate = "int32", name = o.name .. "_sums"})
  local function at(i, over) return {i[1], over[1]} end
  local rows = not is_zero(o.w_zero_point) and sums_over(X, {X.shape[1]}, {k}, o.name .. "_rows", at)
  local columns = o.x_zero_point ~= 0 and sums_over(W, {W.shape[1]}, {k}, o.name .. "_columns", at)
  return finished(sums, scale, o, 2, added_to_sums(columns, rows, o, k, function(i) return {i[2]} end,
                                                   function(i) return {i[1]} end))
end

-- Matrices (b, m, k) by (b, k, n) -> (b, m, n) in bytes; transpose_b: by (b, n, k). The scale is a number, or one for
-- each column.
function ops.quantized_batch_matmul(X, W, scale, options)
  local what = "quantized_batch_matmul"
  common.check_tensor(what, "X", X, 3)
  local turned = type(options) == "table" and options.transpose_b or false
  common.check_flags(what, {transpose_b = turned}, "transpose_b")
  common.check_shape(what, "W", W, turned and {X.shape[1], false, X.shape[3]} or {X.shape[1], X.shape[3], false})
  local b, k, n = W.shape[1], X.shape[3], W.shape[turned and 2 or 3]
  local o = of_product(what, X, W, scale, n, options, {transpose_b = false})
  local sums = ms.load "lua.lib.ops.matmul".batch_matmul(X, W, {transpose_b = turned, accumulate = "int32",
                                                                name = o.name .. "_sums"})
  local rows = not is_zero(o.w_zero_point)
    and sums_over(X, {b, X.shape[2]}, {k}, o.name .. "_rows", function(i, over) return {i[1], i[2], over[1]} end)
  local columns = o.x_zero_point ~= 0 and sums_over(W, {b, n}, {k}, o.name .. "_columns", function(i, over)
    return turned and {i[1], i[2], over[1]} or {i[1], over[1], i[2]}
  end)
  return finished(sums, scale, o, 3, added_to_sums(columns, rows, o, k, function(i) return {i[1], i[3]} end,
                                                   function(i) return {i[1], i[2]} end))
end

local WINDOW = {stride = 1, pad = 0, dilation = 1, layout = "NHWC"}

-- X with the zero point around it, which stands for 0, as the convolution's padding has it; the layout, and the windows
-- of what is padded.
local function padded(what, X, o, kernel)
  local order = window.layout(what, o.layout, 2)
  local slide = {kernel = kernel, stride = o.stride, pad = o.pad, dilation = o.dilation}
  local w = window.slide(what, order.parts(X.shape), slide)
  local P = window.pad(X, order.first, w.pads, te.const(o.x_zero_point, X.type))
  slide.pad = 0
  return P, order, window.slide(what, order.parts(P.shape), slide)
end

-- The sums of what windows of P hold of each group's channels: those of pixels first, which windows share; where a
-- window is a pixel, those of windows alone.
local function sums_of_windows(P, order, w, groups, name)
  local n, spatial, channels = P.shape[1], order.parts(P.shape)
  local rc, each = te.reduce_axis(channels // groups, "rc"), channels // groups
  local function sums(extents, place, axes, what)
    return te.compute(order.image(n, extents, groups), function(...)
      local i = {...}
      local at, group = order.parts(i)
      return te.sum(te.cast(P[order.image(i[1], place(at), groups == 1 and rc or group * each + rc)], "int32"), axes)
    end, name .. what, window.axes(order, 2, "g"))
  end
  if w.kernel[1] * w.kernel[2] == 1 then return sums(w.extents, w.at, {w.taps[1], w.taps[2], rc}, "_windows") end
  local pixels = sums(spatial, function(at) return at end, {rc}, "_pixels")
  return te.compute(order.image(n, w.extents, groups), function(...)
    local i = {...}
    local at, group = order.parts(i)
    return te.sum(pixels[order.image(i[1], w.at(at), group)], w.taps)
  end, name .. "_windows", window.axes(order, 2, "g"))
end

function ops.quantized_conv2d(X, W, scale, options)
  local what = "quantized_conv2d"
  common.check_tensor(what, "X", X, 4)
  common.check_tensor(what, "W", W, 4)
  local layout = type(options) == "table" and options.layout or "NHWC"
  local kernel, ci, co = window.layout(what, layout, 2).filter_parts(W.shape)
  local o = of_product(what, X, W, scale, co, options, {stride = 1, pad = 0, dilation = 1, layout = "NHWC", groups = 1})
  local P, order, w = padded(what, X, o, kernel)
  local sums =
    ms.load "lua.lib.ops.conv".conv2d(P, W, {stride = o.stride, dilation = o.dilation, groups = o.groups,
                                             layout = o.layout, accumulate = "int32", name = o.name .. "_sums"})
  local filters = o.x_zero_point ~= 0 and sums_over(W, {co}, {kernel[1], kernel[2], ci}, o.name .. "_filters",
    function(i, over)
    return order.filter({over[1], over[2]}, over[3], i[1])
  end)
  local windows = not is_zero(o.w_zero_point) and sums_of_windows(P, order, w, o.groups, o.name)
  local axis = order.channels_first and 2 or 4
  return finished(sums, scale, o, axis, added_to_sums(filters, windows, o, kernel[1] * kernel[2] * ci, function(i)
    return {i[axis]}
  end, function(i)
    local at, c = order.parts(i)
    return order.image(i[1], at, o.groups == 1 and 0 or c // (co // o.groups))
  end))
end

-- Each channel by itself. Windows of one channel have sums of their own, as many as results: here the zero points of
-- weights are taken from the weights themselves, which are 16 bits then.
function ops.quantized_depthwise_conv2d(X, W, scale, options)
  local what = "quantized_depthwise_conv2d"
  common.check_tensor(what, "X", X, 4)
  common.check_tensor(what, "W", W, 3)
  local layout = type(options) == "table" and options.layout or "NHWC"
  local first = window.layout(what, layout, 2).channels_first
  local _, c = window.layout(what, layout, 2).parts(X.shape)
  local o = of_product(what, X, W, scale, c, options, WINDOW)
  local P, order, w = padded(what, X, o, {table.unpack(W.shape, first and 2 or 1, first and 3 or 2)})
  local weights = is_zero(o.w_zero_point) and W or map_channels(W, first and 1 or 3, function(x, channel)
    return te.cast(x, "int16") - of_channel(o.w_zero_point, channel, "int16")
  end, o.name .. "_weights")
  local sums =
    ms.load "lua.lib.ops.conv".depthwise_conv2d(P, weights, {stride = o.stride, dilation = o.dilation,
                                                             layout = o.layout, accumulate = "int32",
                                                             name = o.name .. "_sums"})
  local filters = o.x_zero_point ~= 0 and sums_over(weights, {c}, w.kernel, o.name .. "_filters", function(i, over)
    return first and {i[1], over[1], over[2]} or {over[1], over[2], i[1]}
  end)
  local axis = first and 2 or 4
  return finished(sums, scale, o, axis, added_to_sums(filters, nil, o, 0, function(i) return {i[axis]} end))
end

-- The mean of each window, of the same scale and zero point; around the image are zero points, which count.
function ops.quantized_avg_pool(X, options)
  local what = "quantized_avg_pool"
  common.check_tensor(what, "X", X, 4)
  check_bytes(what, "X", X.type)
  local o =
    common.options(what, options, {kernel = 2, stride = false, pad = 0, layout = "NHWC", zero_point = 0, name = what})
  check_zero(what, "zero_point", o.zero_point, X.type)
  local order = window.layout(what, o.layout, 2)
  local spatial, channels = order.parts(X.shape)
  o.stride = o.stride or o.kernel
  local w = window.slide(what, spatial, o)
  local P = window.pad(X, order.first, w.pads, te.const(o.zero_point, X.type))
  local sums = te.compute(order.image(X.shape[1], w.extents, channels), function(...)
    local indices = {...}
    local at, c = order.parts(indices)
    return te.sum(te.cast(P[order.image(indices[1], w.at(at), c)], "int32"), w.taps)
  end, o.name .. "_sums", window.axes(order, 2, "c"))
  return ms.load "lua.lib.ops.elementwise".map(sums, function(sum)
    return rounded(te.cast(sum, "float32") * (1.0 / (w.kernel[1] * w.kernel[2])), 0, nil, X.type)
  end, o.name)
end

return ops
