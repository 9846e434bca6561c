-- Operators that vendors have routines for, on shapes in which strides, pads, dilations, groups and extents all differ;
-- and how their routines are held against the functions.
local ms = msched
local named, work = ms.load "lua.lib.ops.named", ms.load "lua.bench.work"

local support = {products = {
  {"matmul", "17 33 29"}, {"matmul", "1 8 1"}, {"batch_matmul", "3 17 33 29"}, {"batch_matmul", "1 17 33 29"},
  {"dense", "5 12 20"},
}, short_products = { -- of short floats
  {"matmul", "17 33 29 dtype=float16"}, {"batch_matmul", "3 17 33 29 dtype=bfloat16"},
  {"dense", "5 12 20 dtype=float16 accumulate=float32"},
}, short_others = {
  {"conv1d", "2 20 6 10 3 2 1 dtype=float16"}, {"conv2d", "2 9 11 5 7 3x2 2x1 1x0 dtype=bfloat16"},
  {"conv2d", "2 8 9 12 8 3 2 1 1 4 dtype=float16"},
  {"conv3d", "1 5 6 7 4 6 3x2x1 1x2x1 1x1x0 dtype=float16"},
  {"depthwise_conv2d", "1 10 12 6 3x2 1 2x1 2x1 dtype=float16 accumulate=float32"},
  {"conv2d_transpose", "1 5 4 3 6 3x4 2x3 1x0 1x2 dtype=bfloat16"}, {"conv2d_capsule", "2 6 7 5 6 3 2 1 dtype=float16"},
}, bytes = { -- with sums of int32; everywhere: each oneDNN has it
  {"matmul", "17 33 29 dtype=uint8 weight_dtype=int8", everywhere = true},
  {"matmul", "17 33 29 dtype=int8 constant=true", everywhere = true},
  {"matmul", "17 33 29 dtype=int8 weight_dtype=uint8"}, {"batch_matmul", "3 17 33 29 dtype=int8", everywhere = true},
  {"dense", "5 12 20 dtype=uint8 weight_dtype=int8 constant=true", everywhere = true},
  {"conv2d", "2 9 11 5 7 3x2 2x1 1x0 dtype=uint8 weight_dtype=int8", everywhere = true},
  {"conv2d", "2 8 9 12 8 3 2 1 1 4 dtype=int8", everywhere = true},
  {"depthwise_conv2d", "1 10 12 6 3x2 1 2x1 2x1 dtype=uint8 weight_dtype=int8"},
}, others = {
  {"conv1d", "2 20 6 10 3 2 1"}, {"conv1d", "1 19 4 8 5 1 2 2"}, {"conv1d", "2 16 8 12 3 1 1 1 4"},
  {"conv2d", "2 9 11 5 7 3x2 2x1 1x0"}, {"conv2d", "1 12 10 8 12 3 1 2 2"}, {"conv2d", "2 8 9 12 8 3 2 1 1 4"},
  {"conv3d", "1 5 6 7 4 6 3x2x1 1x2x1 1x1x0"}, {"depthwise_conv2d", "2 9 8 10 3 2 1"},
  {"depthwise_conv2d", "1 10 12 6 3x2 1 2x1 2x1"},
  {"conv2d_transpose", "2 4 5 6 8 4 2 1"}, {"conv2d_transpose", "1 5 4 3 6 3x4 2x3 1x0 1x2"},
  {"conv2d_capsule", "2 6 7 5 6 3 2 1"},
  {"softmax", "7x33"}, {"softmax", "2x5x16"}, {"norm", "3x8x9"}, {"norm", "4x30 axes=2"},
}}

-- The function on data, and a vendor's call on the same, whose result is of a type (float32): call, its result, the
-- function's, the data, the function; nil: it has no routine.
function support.call_of(vendor, operator, line, type)
  local words = {}
  for word in line:gmatch "%S+" do words[#words + 1] = word end
  local func = named.func(operator, words)
  local arrays = ms.arrays_for(func, 1)
  ms.build(func):run(table.unpack(arrays))
  local result = arrays[#arrays]
  local other = ms.array(result:shape(), type or "float32", -77)
  local w = assert(work.of(operator, named.values(operator, words), arrays), operator)
  return vendor:prepare(work.into(w, other)), other, result, arrays, func
end

-- Whether the vendor has a routine for it, which then computes the same, every element, as near as the result's type
-- has it.
local SPACING = {float16 = 2 ^ -11, bfloat16 = 2 ^ -8}
function support.compare(vendor, operator, line, type)
  local call, other, result = support.call_of(vendor, operator, line, type)
  if not call then return false end
  call:run()
  local difference, most = result:difference(other), result:difference(ms.array(result:shape(), result:type()))
  assert(difference <= 1e-5 + (SPACING[type] or call:rounding()) * most,
         string.format("%s of %s -- %s differs by %g", vendor:name(), operator, line, difference))
  return true
end

return support
