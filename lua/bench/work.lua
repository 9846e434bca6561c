-- What a named operator computes, in the words of vendors' libraries (vendor.h): the memory of its tensors as they see
-- it.
local ms = msched
local work, SUMS = {}, ms.load "lua.lib.ops.common".SUMS

local function row_major(shape)
  local strides, stride = {}, 1
  for d = #shape, 1, -1 do strides[d], stride = stride, stride * shape[d] end
  return strides
end

-- The array as a tensor of the dimensions of `order`: each the number of one of its own, or {extent, stride}.
local function view(array, order)
  local shape = array:shape()
  local own, extents, strides = row_major(shape), {}, {}
  for d, from in ipairs(order) do
    local pair = type(from) == "table" and from or {shape[from], own[from]}
    extents[d], strides[d] = pair[1], pair[2]
  end
  return {extents = extents, strides = strides, array = array}
end

local function whole(array)
  local order = {}
  for d = 1, #array:shape() do order[d] = d end
  return view(array, order)
end

local function each(value, rank) -- one number, or one for each spatial dimension
  if type(value) == "table" then return value end
  local list = {}
  for d = 1, rank do list[d] = value end
  return list
end

-- Images with channels last, seen with the channels second.
local function image(array, rank)
  local order = {1, rank + 2}
  for d = 1, rank do order[d + 2] = d + 1 end
  return view(array, order)
end

-- A filter (taps…, in, out), seen as (out, in, taps…), and before these the groups, which are parts of `out`.
local function filter(array, rank, groups)
  local shape = array:shape()
  local out, order = shape[rank + 2], {}
  if groups > 1 then
    order = {{groups, out // groups}, {out // groups, 1}, rank + 1}
  else
    order = {rank + 2, rank + 1}
  end
  for d = 1, rank do order[#order + 1] = d end
  return view(array, order)
end

local function convolution(rank, a, arrays)
  local before = each(a.pad, rank)
  return {op = "convolution", source = image(arrays[1], rank), weights = filter(arrays[2], rank, a.groups),
          result = image(arrays[3], rank), stride = each(a.stride, rank), dilation = each(a.dilation, rank),
          before = before, after = before}
end

local makers = {}
for rank = 1, 3 do makers["conv" .. rank .. "d"] = function(a, arrays) return convolution(rank, a, arrays) end end

-- Each channel is a group of its own.
function makers.depthwise_conv2d(a, arrays)
  local X, W, Y = table.unpack(arrays)
  local c, pad = a.c, each(a.pad, 2)
  return {op = "convolution", source = image(X, 2), weights = view(W, {3, {1, c}, {1, c}, 1, 2}), result = image(Y, 2),
          stride = each(a.stride, 2), dilation = each(a.dilation, 2), before = pad, after = pad}
end

function makers.conv2d_transpose(a, arrays)
  local before, more, after = each(a.pad, 2), each(a.output_pad, 2), {}
  for d = 1, 2 do after[d] = before[d] - more[d] end
  return {op = "transposed", source = image(arrays[1], 2), weights = filter(arrays[2], 2, 1),
          result = image(arrays[3], 2), stride = each(a.stride, 2), dilation = {1, 1}, before = before, after = after}
end

-- The rows of the matrices are a third spatial dimension, on which nothing slides; their columns are channels. The
-- filter (taps, k, j, in, out) is copied with the input channels side by side.
function makers.conv2d_capsule(a, arrays)
  local X, W, Y = table.unpack(arrays)
  local te, shape = ms.te, W:shape()
  local order = te.placeholder(shape, W:type(), "W")
  local copy = ms.build(te.func("reorder", {order, ms.ops.transpose(order, {1, 2, 3, 5, 4, 6})}))
  local filters = ms.array({shape[1], shape[2], shape[3], shape[5], shape[4], shape[6]}, W:type())
  local function again() copy(W, filters) end
  again()
  local function matrices(array)
    local s = array:shape()
    local own = row_major(s)
    return view(array, {1, {s[5] * s[6], 1}, 2, 3, {s[4], own[4]}})
  end
  local ins, outs = shape[3] * shape[5], shape[4] * shape[6]
  local pad = each(a.pad, 2)
  return {op = "convolution", source = matrices(X), result = matrices(Y), again = again, weights = view(filters,
          {{outs, 1}, {ins, outs}, 1, 2, {1, 1}}), stride = {each(a.stride, 2)[1], each(a.stride, 2)[2], 1},
          dilation = {1, 1, 1}, before = {pad[1], pad[2], 0}, after = {pad[1], pad[2], 0}}
end

-- A batch of one is a product of matrices.
local function product(a, arrays)
  if a.transpose_a or a.transpose_b then return nil end
  local one = a.b == 1
  local function matrices(array) return one and view(array, {2, 3}) or whole(array) end
  return {op = "product", source = matrices(arrays[1]), weights = matrices(arrays[2]), result = matrices(arrays[3])}
end
makers.matmul, makers.batch_matmul = product, product

function makers.dense(_, arrays)
  return {op = "product", source = whole(arrays[1]), weights = view(arrays[2], {2, 1}), result = whole(arrays[3])}
end

function makers.softmax(a, arrays)
  if a.axis ~= -1 and a.axis ~= #a.shape then return nil end
  return {op = "softmax", source = whole(arrays[1]), result = whole(arrays[2])}
end

function makers.attention(a, arrays)
  if a.kv_heads ~= "auto" and a.kv_heads ~= a.heads then return nil end
  if a.scales ~= "none" or a.result ~= "auto" then return nil end
  local Q, K, V, Y = table.unpack(arrays)
  return {op = "attention", source = whole(Q), weights = whole(K), values = whole(V), result = whole(Y),
          scale = a.width ^ -0.5, causal = a.causal}
end

-- Over all dimensions but the first.
function makers.norm(a, arrays)
  local rank = #a.shape
  if rank < 2 or type(a.axes) ~= "table" or #a.axes ~= rank - 1 then return nil end
  local order = {1}
  for d = 2, rank do
    if a.axes[d - 1] ~= d then return nil end
    order[d] = {1, 1}
  end
  return {op = "norm", source = whole(arrays[1]), result = view(arrays[2], order)}
end

-- Whether vendors know the types: float32, and in what adds products floats of 16 bits with sums of float32, and bytes
-- with sums of int32.
local function sums_of(dtype) return not dtype:find "int16" and not dtype:find "^float8" and SUMS[dtype] end
local function has_types(values)
  local second = values.weight_dtype ~= "auto" and values.weight_dtype or values.dtype
  if values.dtype == "float32" then return second == "float32" end
  local sums = sums_of(values.dtype)
  return sums and (second == values.dtype or sums == "int32" and sums_of(second) == sums)
    and (values.accumulate == "auto" or values.accumulate == sums)
end

-- The work of an operator with these values of its arguments (arguments.lua) on the arrays of its function; where it
-- has `again`, that is to be called once the arrays hold something else. nil: no vendor's operator is known for it.
function work.of(operator, values, arrays)
  local maker = makers[operator]
  local half = values.dtype == "bfloat16" or values.dtype == "float16"
  local typed = operator == "attention" and half or has_types(values)
  if not maker or not typed or (values.layout and values.layout:sub(-1) ~= "C") then return nil end
  return maker(values, arrays)
end

-- Seconds of one run of a call, by the clock.
function work.seconds_of_a_run(call)
  local start = ms.clock()
  call:run()
  return ms.clock() - start
end

-- The same with another array as the result.
function work.into(w, array)
  local copy = {}
  for k, v in pairs(w) do copy[k] = v end
  copy.result = {extents = w.result.extents, strides = w.result.strides, array = array}
  return copy
end

return work
