-- Operators on integers that stand for real numbers: real = scale * (integer - zero point). A scale is a number, one
-- for the whole tensor, or a tensor of float32, one for each channel; a zero point an integer, or a tensor of the
-- integers' type. Products add in int32; what zero points add to them is taken away once for each channel or row, so
-- that the products themselves are those of the bytes. Results are rounded to the nearest and clamped to their type.
-- Source: Jacob et al., "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
-- CVPR 2018, section 2.
local ms = msched
local te, common, window = ms.te, ms.load "lua.lib.ops.common", ms.load "lua.lib.ops.window"
local fail = common.fail
local ops = {}

local RANGES = {int8 = {-128, 127}, uint8 = {0, 255}}

-- ---- What is checked -------------------------------------------------------------------------------------------

local function is_tensor(x) return type(x) == "table" and type(rawget(x, "shape")) == "table" end

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
  if is_tensor(scale) then return check_channels(what, name, scale, count, "float32") end
  if type(scale) ~= "number" or not (scale > 0 and scale < math.huge) then
    fail(what, "%s is %s; a number above 0, or a tensor of float32 is expected", name, tostring(scale))
  end
end

-- An integer that the type holds; where `count` is given, or a tensor.
local function check_zero(what, name, zero, type, count)
  if count and is_tensor(zero) then return check_channels(what, name, zero, count, type) end
  local least, most = table.unpack(RANGES[type])
  if math.type(zero) ~= "integer" or zero < least or zero > most then
    fail(what, "%s is %s; %s holds %d to %d", name, is_tensor(zero) and "a tensor" or tostring(zero), type, least, most)
  end
end

-- ---- Numbers ---------------------------------------------------------------------------------------------------

-- Of a scale or zero point, what holds for a channel, in a type.
local function of_channel(x, channel, type)
  if not is_tensor(x) then return te.const(x, type) end
  return x.type == type and x[{channel}] or te.cast(x[{channel}], type)
end

local function is_zero(x) return not is_tensor(x) and x == 0 end

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
    if is_tensor(o[name]) then fail(what, "%s is a tensor; a number is expected", name) end
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

local PRODUCT = {bias = false, x_zero_point = 0, zero_point = 0, type = "int8"}

-- Options of a product of X by W with so many channels of results, over those of its own; checked.
local function of_product(what, X, W, scale, channels, given, own)
  local defaults = {name = what}
  for _, list in ipairs {PRODUCT, own} do for name, value in pairs(list) do defaults[name] = value end end
  local o = common.options(what, given, defaults)
  check_bytes(what, "X", X.type)
  check_bytes(what, "W", W.type)
  check_bytes(what, "type", o.type)
  check_scale(what, "scale", scale, channels)
  check_zero(what, "x_zero_point", o.x_zero_point, X.type)
  check_zero(what, "zero_point", o.zero_point, o.type)
  if o.w_zero_point then check_zero(what, "w_zero_point", o.w_zero_point, W.type) end
  if o.bias then
    common.check_tensor(what, "bias", o.bias)
    check_channels(what, "bias", o.bias, channels, "int32")
  end
  return o
end

-- Sums of a product as bytes: less what the zero points add, plus the bias, times the scale. added(indices): what they
-- add, or nil.
local function finished(sums, scale, o, axis, added)
  return te.compute(sums.shape, function(...)
    local indices = {...}
    local c, more = indices[axis], added(indices)
    local sum = sums[indices]
    if more then sum = sum - more end
    if o.bias then sum = sum + o.bias[{c}] end
    return rounded(te.cast(sum, "float32") * of_channel(scale, c, "float32"), o.zero_point, c, o.type)
  end, o.name)
end

-- The sums of a tensor of bytes over some of its dimensions; at(rest, over): where the elements are.
local function sums_over(T, shape, extents, name, at)
  local over = {}
  for d, extent in ipairs(extents) do over[d] = te.reduce_axis(extent, "s" .. d) end
  return te.compute(shape, function(...) return te.sum(te.cast(T[at({...}, over)], "int32"), over) end, name)
end

-- What zero points add to the products of rows of X by columns of W, each summed over the last dimension of `k`
-- elements.
local function added_to_matrices(X, W, o, k, row_of, column_of)
  local columns = o.x_zero_point ~= 0 and W or nil
  local rows = o.w_zero_point ~= 0 and X or nil
  return function(indices)
    local sum
    if columns then sum = columns[column_of(indices)] * o.x_zero_point end
    if rows then
      local of_row = rows[row_of(indices)] * o.w_zero_point
      sum = sum and sum + of_row - k * o.x_zero_point * o.w_zero_point or of_row
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
  local o = of_product(what, X, W, scale, W.shape[1], options, {w_zero_point = 0})
  local sums = ms.load "lua.lib.ops.matmul".dense(X, W, {accumulate = "int32", name = o.name .. "_sums"})
  local function at(i, over) return {i[1], over[1]} end
  local rows = o.w_zero_point ~= 0 and sums_over(X, {X.shape[1]}, {k}, o.name .. "_rows", at)
  local columns = o.x_zero_point ~= 0 and sums_over(W, {W.shape[1]}, {k}, o.name .. "_columns", at)
  return finished(sums, scale, o, 2,
                  added_to_matrices(rows, columns, o, k, function(i) return {i[1]} end, function(i) return {i[2]} end))
end

-- Matrices (b, m, k) by (b, k, n) -> (b, m, n) in bytes; the scale is a number, or one for each column.
function ops.quantized_batch_matmul(X, W, scale, options)
  local what = "quantized_batch_matmul"
  common.check_tensor(what, "X", X, 3)
  common.check_shape(what, "W", W, {X.shape[1], X.shape[3], false})
  local b, k, n = table.unpack(W.shape)
  local o = of_product(what, X, W, scale, n, options, {w_zero_point = 0})
  local sums = ms.load "lua.lib.ops.matmul".batch_matmul(X, W, {accumulate = "int32", name = o.name .. "_sums"})
  local rows = o.w_zero_point ~= 0
    and sums_over(X, {b, X.shape[2]}, {k}, o.name .. "_rows", function(i, over) return {i[1], i[2], over[1]} end)
  local columns = o.x_zero_point ~= 0
    and sums_over(W, {b, n}, {k}, o.name .. "_columns", function(i, over) return {i[1], over[1], i[2]} end)
  return finished(sums, scale, o, 3, added_to_matrices(rows, columns, o, k, function(i) return {i[1], i[2]} end,
                                                       function(i) return {i[1], i[3]} end))
end

-- X with the zero point around it, which stands for 0, as the convolution's padding has it; the layout, and the kernel.
local function padded(what, X, W, o, kernel_of)
  local order = window.layout(what, o.layout, 2)
  local spatial = order.parts(X.shape)
  local slide = {kernel = kernel_of(order, W.shape), stride = o.stride, pad = o.pad, dilation = o.dilation}
  local w = window.slide(what, spatial, slide)
  return window.pad(X, order.first, w.pads, te.const(o.x_zero_point, X.type)), order, slide.kernel
end

local WINDOW = {stride = 1, pad = 0, dilation = 1, layout = "NHWC"}

-- Weights have a zero point of 0.
function ops.quantized_conv2d(X, W, scale, options)
  local what = "quantized_conv2d"
  common.check_tensor(what, "X", X, 4)
  common.check_tensor(what, "W", W, 4)
  local layout = type(options) == "table" and options.layout or "NHWC"
  local kernel, ci, co = window.layout(what, layout, 2).filter_parts(W.shape)
  local o = of_product(what, X, W, scale, co, options, {stride = 1, pad = 0, dilation = 1, layout = "NHWC", groups = 1})
  local P, order = padded(what, X, W, o, function() return kernel end)
  local sums =
    ms.load "lua.lib.ops.conv".conv2d(P, W, {stride = o.stride, dilation = o.dilation, groups = o.groups,
                                             layout = o.layout, accumulate = "int32", name = o.name .. "_sums"})
  local filters = o.x_zero_point ~= 0 and sums_over(W, {co}, {kernel[1], kernel[2], ci}, o.name .. "_filters",
    function(i, over)
    return order.filter({over[1], over[2]}, over[3], i[1])
  end)
  local axis = order.channels_first and 2 or 4
  return finished(sums, scale, o, axis, function(i) return filters and filters[{i[axis]}] * o.x_zero_point end)
end

-- Each channel by itself; weights have a zero point of 0.
function ops.quantized_depthwise_conv2d(X, W, scale, options)
  local what = "quantized_depthwise_conv2d"
  common.check_tensor(what, "X", X, 4)
  common.check_tensor(what, "W", W, 3)
  local layout = type(options) == "table" and options.layout or "NHWC"
  local _, c = window.layout(what, layout, 2).parts(X.shape)
  local o = of_product(what, X, W, scale, c, options, WINDOW)
  local P, order, kernel = padded(what, X, W, o, function(order, shape)
    return {table.unpack(shape, order.channels_first and 2 or 1, order.channels_first and 3 or 2)}
  end)
  local sums =
    ms.load "lua.lib.ops.conv".depthwise_conv2d(P, W, {stride = o.stride, dilation = o.dilation, layout = o.layout,
                                                       accumulate = "int32", name = o.name .. "_sums"})
  local filters = o.x_zero_point ~= 0 and sums_over(W, {c}, kernel, o.name .. "_filters", function(i, over)
    return order.channels_first and {i[1], over[1], over[2]} or {over[1], over[2], i[1]}
  end)
  local axis = order.channels_first and 2 or 4
  return finished(sums, scale, o, axis, function(i) return filters and filters[{i[axis]}] * o.x_zero_point end)
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
