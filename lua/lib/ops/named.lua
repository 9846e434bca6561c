-- Operators by name: functions of shapes, layouts and types. `msched tune ops:conv2d -- 1 56 56 64 64 3 stride=2` and
-- ms.ops.func("conv2d", {1, 56, 56, 64, 64, 3, stride = 2}) name the same function. An operator's line says its
-- arguments in their order, each with what holds without it; arguments.lua says what they mean.
local ms = msched
local te, ops = ms.te, ms.ops
local arguments, common, window = ms.load "lua.lib.ops.arguments", ms.load "lua.lib.ops.common",
  ms.load "lua.lib.ops.window"
local named = {list = {}} -- of operators, in the order of the help, and by name

-- An operator: its name, its arguments, what it is, the tensors of its function by the arguments' values; of those
-- `weights` names the constants, where they are not the second.
local function operator(name, line, doc, make, meanings)
  local op = {name = name, doc = doc, make = make, arguments = arguments.declare(line, meanings)}
  assert(not named.list[name], name)
  named.list[#named.list + 1], named.list[name] = op, op
end

function named.find(name)
  if named.list[name] then return named.list[name] end
  local names = {}
  for i, op in ipairs(named.list) do names[i] = op.name end
  error(string.format("%sthere is no operator `%s`; `msched help ops` lists them%s", ms.where(), tostring(name),
                      ms.load "lua.lib.nearest".meant(tostring(name), names)), 0)
end

-- The values of an operator's arguments, by their names; place: as arguments.read has it.
function named.values(name, given, place)
  local op = named.find(name)
  if given ~= nil and type(given) ~= "table" then
    error(ms.where() .. "ops:" .. name .. ": the arguments are a list", 0)
  end
  return arguments.read(op, given or {}, place)
end

-- The function of an operator; it is called `as`, or by the operator and its arguments.
local origins = {} -- by the hash of the function

function named.func(name, given, as, place)
  local op, values = named.find(name), named.values(name, given, place)
  local ok, tensors = pcall(op.make, values)
  if not ok then
    error(type(tensors) == "string" and tensors .. arguments.apart(op, given or {}, place) or tensors, 0)
  end
  local func = te.func(as or arguments.name(op, values), tensors,
                       values.constant and {weights = tensors.weights or {tensors[2].name}} or nil)
  origins[func:hash()] = {operator = name, values = values}
  return func
end

-- The operator that made a function, {operator =, values =}; nil: none did, in this session.
function named.origin(func) return origins[func:hash()] end

-- ---- Convolutions, pools ---------------------------------------------------------------------------------------

local function input(name, shape, a) return te.placeholder(shape, a.dtype, name) end

-- The second operand of what multiplies.
local function weights(name, shape, a)
  return te.placeholder(shape, a.weight_dtype ~= "auto" and a.weight_dtype or a.dtype, name)
end

-- The arguments of these names, as options of an operator, and how sums are held unless it is `auto`.
local function options(a, names)
  local o = {accumulate = a.accumulate ~= "auto" and a.accumulate or nil}
  for name in names:gmatch "%S+" do o[name] = a[name] end
  return o
end

-- An image and a filter in the layout of the arguments.
local function image_and_filter(name, a, rank, per_group)
  local order, spatial = window.layout(name, a.layout, rank), {}
  for d, dimension in ipairs(window.SPATIAL[rank]) do spatial[d] = a[dimension] end
  local filter = order.filter(common.each(name, "kernel", a.kernel, rank, 1), per_group, a.co)
  return input("X", order.image(a.n, spatial, a.ci), a), weights("W", filter, a)
end

local function convolved(name, rank, a)
  local X, W = image_and_filter(name, a, rank, math.max(1, a.ci // a.groups))
  return X, W, ops[name](X, W, options(a, "stride pad dilation groups layout"))
end

local WINDOW, TYPE = "kernel=3 stride=1 pad=0 dilation=1",
  " dtype=float32 accumulate=auto weight_dtype=auto constant=false"
local CONV2D = "n=1 h=56 w=56 ci=64 co=64 " .. WINDOW .. " groups=1 layout=NHWC" .. TYPE
for rank, arguments in ipairs {
  "n=1 l=256 ci=64 co=128 " .. WINDOW .. " groups=1 layout=NLC" .. TYPE, CONV2D,
  "n=1 d=16 h=14 w=14 ci=256 co=256 " .. WINDOW .. " groups=1 layout=NDHWC" .. TYPE,
} do
  local name = "conv" .. rank .. "d"
  local doc = string.format("a convolution over %d dimension%s", rank, rank > 1 and "s" or "")
  operator(name, arguments, doc, function(a) return {convolved(name, rank, a)} end)
end

-- An image, and a filter of each of its channels.
local function image_and_channels(name, a)
  local order, kernel = window.layout(name, a.layout, 2), common.each(name, "kernel", a.kernel, 2, 1)
  local X = input("X", order.image(a.n, {a.h, a.w}, a.c), a)
  return X, weights("W", order.channels_first and {a.c, kernel[1], kernel[2]} or {kernel[1], kernel[2], a.c}, a)
end

operator("depthwise_conv2d", "n=1 h=112 w=112 c=32 " .. WINDOW .. " layout=NHWC" .. TYPE,
         "a convolution of each channel by itself", function(a)
  local X, W = image_and_channels("depthwise_conv2d", a)
  return {X, W, ops.depthwise_conv2d(X, W, options(a, "stride pad dilation layout"))}
end)

operator("conv2d_transpose", "n=1 h=4 w=4 ci=512 co=256 kernel=4 stride=2 pad=1 output_pad=0 layout=NHWC" .. TYPE,
         "a transposed convolution", function(a)
  local X, W = image_and_filter("conv2d_transpose", a, 2, a.ci)
  return {X, W, ops.conv2d_transpose(X, W, options(a, "stride pad output_pad layout"))}
end)

operator("conv2d_capsule", "n=1 h=16 w=16 ci=32 co=32 kernel=3 stride=1 pad=0 capsule=4" .. TYPE,
         "a convolution whose channels are matrices", function(a)
  local kernel = common.each("conv2d_capsule", "kernel", a.kernel, 2, 1)
  local X = input("X", {a.n, a.h, a.w, a.capsule, a.capsule, a.ci}, a)
  local W = weights("W", {kernel[1], kernel[2], a.capsule, a.capsule, a.ci, a.co}, a)
  return {X, W, ops.conv2d_capsule(X, W, options(a, "stride pad"))}
end)

for _, line in ipairs {{"max_pool", "", "the largest element of each window"},
                       {"avg_pool", " include_pad=false", "the mean of each window"}} do
  local name, more, doc = table.unpack(line)
  operator(name, "n=1 h=112 w=112 c=64 kernel=2 stride=2 pad=0 layout=NHWC" .. more .. " dtype=float32", doc,
    function(a)
    local X = input("X", window.layout(name, a.layout, 2).image(a.n, {a.h, a.w}, a.c), a)
    return {X, ops[name](X, options(a, "kernel stride pad layout include_pad"))}
  end)
end

-- ---- Products --------------------------------------------------------------------------------------------------

local MATRIX = {n = {"extent", "columns of the result"}}
for _, line in ipairs {{"matmul", "", "a product of matrices"},
                       {"batch_matmul", "b=1 ", "products of a batch of matrices"}} do
  local name, batch, doc = table.unpack(line)
  operator(name, batch .. "m=1024 n=1024 k=1024 transpose_a=false transpose_b=false" .. TYPE, doc, function(a)
    local first, second = a.transpose_a and {a.k, a.m} or {a.m, a.k}, a.transpose_b and {a.n, a.k} or {a.k, a.n}
    if a.b then
      table.insert(first, 1, a.b)
      table.insert(second, 1, a.b)
    end
    local A, B = input("A", first, a), weights("B", second, a)
    return {A, B, ops[name](A, B, options(a, "transpose_a transpose_b"))}
  end, MATRIX)
end

local ROWS = {m = {"extent", "rows"}}
operator("dense", "m=16 ci=512 co=512" .. TYPE, "rows of channels times weights of (co, ci)", function(a)
  local X, W = input("X", {a.m, a.ci}, a), weights("W", {a.co, a.ci}, a)
  return {X, W, ops.dense(X, W, options(a, ""))}
end, ROWS)

operator("attention",
  "b=1 heads=12 rows=128 columns=128 width=64 causal=false dtype=float32 kv_heads=auto result=auto scales=none",
  "softmax(Q K^T / sqrt(width)) V", function(a)
  local heads = a.kv_heads == "auto" and a.heads or a.kv_heads
  local Q, K = input("Q", {a.b, a.heads, a.rows, a.width}, a), input("K", {a.b, heads, a.columns, a.width}, a)
  local V = input("V", {a.b, heads, a.columns, a.width}, a)
  local tensors, o = {Q, K, V}, {causal = a.causal, dtype = a.result ~= "auto" and a.result}
  for i, name in ipairs(a.scales ~= "none" and {"q_scale", "k_scale", "v_scale"} or {}) do
    local shape = a.scales == "head" and {a.b, i == 1 and a.heads or heads} or {1}
    o[name] = te.placeholder(shape, "float32", name)
    tensors[#tensors + 1] = o[name]
  end
  tensors[#tensors + 1] = ops.attention(Q, K, V, o)
  return tensors
end, {b = {"extent", "sequences of a batch"},
      result = {"accumulate", "type of the result; auto: dtype, and float16 where that has 8 bits"}})

-- ---- Reductions, normalization ---------------------------------------------------------------------------------

for _, pair in ipairs {{"sum", "the sum"}, {"prod", "the product"}, {"max", "the largest"}, {"min", "the smallest"},
                       {"mean", "the mean"}, {"norm", "the square root of the sum of squares"}} do
  local name, what = table.unpack(pair)
  local line =
    (name == "norm" and "shape=1x256x256 axes=2,3" or "shape=1024x1024 axes=-1") .. " keepdims=false dtype=float32"
  operator(name, line, what .. " over dimensions", function(a)
    local X = input("X", a.shape, a)
    return {X, ops[name](X, a.axes ~= "all" and a.axes or nil, options(a, "keepdims"))}
  end)
end
for _, name in ipairs {"argmax", "argmin"} do
  operator(name, "shape=256x1024 axis=-1 keepdims=false dtype=float32", string.format("the index of the %s along a \z
    dimension, and that element", name == "argmax" and "largest" or "smallest"), function(a)
    local X = input("X", a.shape, a)
    return {X, ops[name](X, a.axis, options(a, "keepdims"))}
  end)
end

-- A vector along the dimension that is named.
local function along(what, name, a) return input(name, {a.shape[common.axis(what, a.axis, #a.shape)]}, a) end

operator("softmax", "shape=512x512 axis=-1 dtype=float32", "exponentials of a dimension over their sum", function(a)
  local X = input("X", a.shape, a)
  return {X, ops.softmax(X, a.axis)}
end)
-- Rows, and what has their last dimensions.
local function rows_and(what, a, names)
  if a.last > #a.shape then common.fail(what, "last is %d, but shape has %d dimensions", a.last, #a.shape) end
  local inner, tensors = {table.unpack(a.shape, #a.shape - a.last + 1)}, {input("X", a.shape, a)}
  for name in names:gmatch "%S+" do tensors[#tensors + 1] = input(name, inner, a) end
  return table.unpack(tensors)
end
operator("layer_norm", "shape=512x768 last=1 dtype=float32", "normalized over the last dimensions", function(a)
  local X, gamma, beta = rows_and("layer_norm", a, "gamma beta")
  return {X, gamma, beta, ops.layer_norm(X, gamma, beta)}
end)
operator("rms_norm", "shape=512x768 last=1 dtype=float32", "over the root of the mean square of the last dimensions",
  function(a)
  local X, gamma = rows_and("rms_norm", a, "gamma")
  return {X, gamma, ops.rms_norm(X, gamma)}
end)
operator("rotary", "shape=32x512x128 turned=auto interleaved=false dtype=float32",
  "pairs of elements turned by an angle of their row", function(a)
  if #a.shape < 2 then common.fail("rotary", "shape has %d dimensions; rows of elements have 2 or more", #a.shape) end
  local turned = a.turned ~= "auto" and a.turned or a.shape[#a.shape]
  local X, angles = input("X", a.shape, a), {a.shape[#a.shape - 1], math.max(1, turned // 2)}
  local cos, sin = input("cos", angles, a), input("sin", angles, a)
  return {X, cos, sin, ops.rotary(X, cos, sin, {turned = turned, interleaved = a.interleaved})}
end, {turned = {"open_count", "elements of a row, the first, that are turned; auto: all"},
      interleaved = {"flag", "whether pairs are neighbours, and not halves of what is turned"}})
operator("batch_norm", "shape=1x56x56x64 axis=-1 dtype=float32", "normalized by a given mean and variance", function(a)
  local X, vectors = input("X", a.shape, a), {}
  for i, name in ipairs {"gamma", "beta", "mean", "variance"} do vectors[i] = along("batch_norm", name, a) end
  local gamma, beta, mean, variance = table.unpack(vectors)
  return {X, gamma, beta, mean, variance, ops.batch_norm(X, gamma, beta, mean, variance, {axis = a.axis})}
end)

-- ---- Quantized -------------------------------------------------------------------------------------------------

for _, line in ipairs {
  {"dequantize", "dtype=int8", "bytes as the real numbers that they stand for"},
  {"requantize", "result=int8 dtype=int32", "sums of products as bytes, by the scale of their channel"},
} do
  local name, more, doc = table.unpack(line)
  operator(name, "shape=1024x1024 axis=-1 zero_point=0 " .. more, doc, function(a)
    local X = input("X", a.shape, a)
    local scale = te.placeholder({a.shape[common.axis(name, a.axis, #a.shape)]}, "float32", "scale")
    return {X, scale, ops[name](X, scale, {axis = a.axis, zero_point = a.zero_point, type = a.result})}
  end)
end
operator("quantize", "shape=1024x1024 zero_point=0 result=int8 dtype=float32",
  "real numbers as bytes, of a scale of 0.25", function(a)
  local X = input("X", a.shape, a)
  return {X, ops.quantize(X, 0.25, {zero_point = a.zero_point, type = a.result})}
end)
operator("quantized_add", "shape=1024x1024 zero_point=0 dtype=int8",
  "the sum of two tensors of bytes, of scales 0.5 and 0.25, in that of 0.75", function(a)
  local A, B = input("A", a.shape, a), input("B", a.shape, a)
  return {A, B, ops.quantized_add(A, B, {a_scale = 0.5, b_scale = 0.25, scale = 0.75, zero_point = a.zero_point})}
end)

-- A product with a scale and a bias for each of so many channels, and where it is so with a zero point of the weights.
local function scaled(name, X, W, channels, a, names)
  local scale, bias = te.placeholder({channels}, "float32", "scale"), te.placeholder({channels}, "int32", "bias")
  local o, tensors = {bias = bias, type = a.result}, {X, W, scale, bias}
  for option in ("x_zero_point w_zero_point zero_point " .. names):gmatch "%S+" do o[option] = a[option] end
  if o.w_zero_point == "channels" then
    o.w_zero_point = te.placeholder({channels}, W.type, "w_zero_point")
    tensors[5] = o.w_zero_point
  end
  tensors[#tensors + 1] = ops[name](X, W, scale, o)
  tensors.weights = a.constant and {W.name, tensors[5] == o.w_zero_point and tensors[5].name or nil}
  return tensors
end
local BYTES = " x_zero_point=0 zero_point=0 result=int8 dtype=uint8 weight_dtype=int8 constant=false w_zero_point=0"
operator("quantized_dense", "m=16 ci=512 co=512" .. BYTES, "dense of bytes, scaled back to bytes", function(a)
  return scaled("quantized_dense", input("X", {a.m, a.ci}, a), weights("W", {a.co, a.ci}, a), a.co, a, "")
end, ROWS)
operator("quantized_batch_matmul", "b=1 m=128 n=128 k=128" .. BYTES .. " transpose_b=false",
  "products of a batch of matrices of bytes, scaled back to bytes", function(a)
  local W = weights("W", a.transpose_b and {a.b, a.n, a.k} or {a.b, a.k, a.n}, a)
  return scaled("quantized_batch_matmul", input("X", {a.b, a.m, a.k}, a), W, a.n, a, "transpose_b")
end, MATRIX)
operator("quantized_conv2d", "n=1 h=56 w=56 ci=64 co=64 " .. WINDOW .. " groups=1 layout=NHWC" .. BYTES,
  "a convolution of bytes, scaled back to bytes", function(a)
  local X, W = image_and_filter("quantized_conv2d", a, 2, math.max(1, a.ci // a.groups))
  return scaled("quantized_conv2d", X, W, a.co, a, "stride pad dilation groups layout")
end)
operator("quantized_depthwise_conv2d", "n=1 h=112 w=112 c=32 " .. WINDOW .. " layout=NHWC" .. BYTES,
  "the same of each channel by itself", function(a)
  local X, W = image_and_channels("quantized_depthwise_conv2d", a)
  return scaled("quantized_depthwise_conv2d", X, W, a.c, a, "stride pad dilation layout")
end)
operator("quantized_avg_pool", "n=1 h=112 w=112 c=64 kernel=2 stride=2 pad=0 layout=NHWC zero_point=0 dtype=int8",
  "the mean of each window of bytes", function(a)
  local X = input("X", window.layout("quantized_avg_pool", a.layout, 2).image(a.n, {a.h, a.w}, a.c), a)
  return {X, ops.quantized_avg_pool(X, {kernel = a.kernel, stride = a.stride, pad = a.pad, layout = a.layout,
                                        zero_point = a.zero_point})}
end)

operator("dense_nbits",
  "m=1 n=4096 k=4096 bits=4 group=32 zero_points=false scale_dtype=float32 products=float32 dtype=float32 \z
   constant=true order=pairs", "rows times weights of few bits, in groups with a scale each, as MatMulNBits",
  function(a)
  local weights, scales, zeros = ms.load "lua.lib.ops.nbits_layout".shapes(a.n, a.k, a.bits, a.group)
  local X, W = input("X", {a.m, a.k}, a), te.placeholder(weights, "uint8", "W")
  local scale, zero = te.placeholder(scales, a.scale_dtype, "scale"),
    a.zero_points and te.placeholder(zeros, "uint8", "zero") or nil
  local Y = ops.dense_nbits(X, W, scale, {bits = a.bits, zero_points = zero or false, products = a.products,
                                          order = a.order})
  local tensors = zero and {X, W, scale, zero, Y} or {X, W, scale, Y}
  tensors.weights = {W.name, scale.name, zero and zero.name}
  return tensors
end, {m = {"extent", "rows"}, n = {"extent", "columns of the result"},
      group = {"count", "weights that have a scale in common, of one column, one after the other"},
        zero_points = {"flag", "whether groups have a zero point of their own"},
        order = {"nibbles", "of two weights of 4 bits in a byte, neighbours, or those of the halves of a group, as \z
                             llama.cpp's q4_0 has them"}})

-- ---- Elements, shapes ------------------------------------------------------------------------------------------

for name in
    ("relu leaky_relu gelu silu sigmoid tanh exp log sqrt rsqrt erf abs negative floor ceil round"):gmatch "%S+" do
  operator(name, "shape=1024x1024 dtype=float32", "of each element", function(a)
    local X = input("X", a.shape, a)
    return {X, ops[name](X)}
  end)
end
for name in ("add subtract multiply divide maximum minimum power"):gmatch "%S+" do
  operator(name, "first=1024x1024 second=1024 dtype=float32", "of elements of two tensors, broadcast", function(a)
    local A, B = input("A", a.first, a), input("B", a.second, a)
    return {A, B, ops[name](A, B)}
  end)
end

-- Those of one tensor and little else: the arguments after it.
for _, line in ipairs {
  {"cast", "shape=1024x1024 result=float16 dtype=float32", "elements as another type", "result"},
  {"transpose", "shape=128x12x64 order=2,1,3 dtype=float32", "dimensions in another order", "order"},
  {"reshape", "shape=128x768 to=128x12x64 dtype=float32", "the same elements in another shape", "to"},
  {"broadcast_to", "shape=1024 to=1024x1024 dtype=float32", "repeated to a larger shape", "to"},
} do
  local name, arguments, doc, argument = table.unpack(line)
  operator(name, arguments, doc, function(a)
    local X = input("X", a.shape, a)
    return {X, ops[name](X, a[argument])}
  end)
end
operator("pad", "shape=56x56 before=1 after=1 dtype=float32", "zeros around", function(a)
  local X = input("X", a.shape, a)
  return {X, ops.pad(X, a.before, a.after)}
end)
operator("concat", "first=64x128 second=64x256 axis=-1 dtype=float32", "two tensors, one after the other", function(a)
  local A, B = input("A", a.first, a), input("B", a.second, a)
  return {A, B, ops.concat({A, B}, a.axis)}
end, {second = {"shape", "extents of the second"}})
operator("gather", "shape=1024x64 indices=256 axis=1 dtype=float32", "slices that integers name", function(a)
  local X, I = input("X", a.shape, a), te.placeholder(a.indices, "int32", "I")
  return {X, I, ops.gather(X, I, a.axis)}
end)
operator("bias_add", "shape=1x56x56x64 axis=-1 dtype=float32", "a vector added along a dimension", function(a)
  local X, bias = input("X", a.shape, a), along("bias_add", "bias", a)
  return {X, bias, ops.bias_add(X, bias, nil, a.axis)}
end)
operator("scale_shift", "shape=1x56x56x64 axis=-1 dtype=float32", "times a vector along a dimension, and another added",
  function(a)
  local X, scale, shift = input("X", a.shape, a), along("scale_shift", "scale", a), along("scale_shift", "shift", a)
  return {X, scale, shift, ops.scale_shift(X, scale, shift, nil, a.axis)}
end)

-- ---- Subgraphs -------------------------------------------------------------------------------------------------

operator("conv2d_bn_relu", CONV2D, "a convolution, bias, scale and shift of batch normalization, ReLU", function(a)
  local X, W, Y = convolved("conv2d", 2, a)
  local vectors = {}
  for i, name in ipairs {"bias", "scale", "shift"} do vectors[i] = te.placeholder({a.co}, Y.type, name) end
  local axis = a.layout == "NHWC" and -1 or 2
  local normal = ops.scale_shift(ops.bias_add(Y, vectors[1], nil, axis), vectors[2], vectors[3], "batch_norm", axis)
  return {X, W, vectors[1], vectors[2], vectors[3], ops.relu(normal)}
end)
operator("dense_bias_relu", "m=128 ci=768 co=3072" .. TYPE, "rows of channels times weights, bias, ReLU", function(a)
  local X, W = input("X", {a.m, a.ci}, a), weights("W", {a.co, a.ci}, a)
  local Y = ops.dense(X, W, options(a, ""))
  local bias = te.placeholder({a.co}, Y.type, "bias")
  return {X, W, bias, ops.relu(ops.bias_add(Y, bias))}
end, ROWS)
operator("transpose_batch_matmul", "b=1 rows=128 heads=12 width=64" .. TYPE,
  "Q K^T of (b, rows, heads, width), both transposed before", function(a)
  local Q, K = input("Q", {a.b, a.rows, a.heads, a.width}, a), weights("K", {a.b, a.rows, a.heads, a.width}, a)
  local query, key = ops.transpose(Q, {1, 3, 2, 4}, "query_T"), ops.transpose(K, {1, 3, 4, 2}, "key_T")
  return {Q, K, ops.batch_matmul(query, key, options(a, ""))}
end, {b = {"extent", "sequences of a batch"}, rows = {"extent", "queries, and as many keys"}})

return named
