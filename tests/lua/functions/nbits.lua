-- Dense layers of weights of few bits against loops of plain Lua: both widths, groups, both orders, zero points, types
-- of rows and scales, rows that are rounded to int8 and to int24; and what is refused.
local ms = require "msched"
local refuses = dofile(arg[0]:match "^.*/" .. "../refuses.lua")
local te, ops = ms.te, ms.ops

local M, N, K = 3, 6, 64

local function tensors_of(o)
  local each = 8 // o.bits
  local t = {X = te.placeholder({M, K}, o.x or "float32", "X"), W = te.placeholder({N, K // o.group, o.group // each},
             "uint8", "W"), scale = te.placeholder({N, K // o.group}, o.scale or "float32", "scale"),
             bias = o.bias and te.placeholder({N}, "float32", "bias") or false,
             zero = o.zero and te.placeholder({N, (K // o.group + each - 1) // each}, "uint8", "zero") or false}
  t.Y = ops.dense_nbits(t.X, t.W, t.scale, {bits = o.bits, zero_points = t.zero, bias = t.bias, products = o.products,
                                          order = o.order})
  t.list = {t.X, t.W, t.scale}
  if t.zero then table.insert(t.list, t.zero) end
  if t.bias then table.insert(t.list, t.bias) end
  table.insert(t.list, t.Y)
  return t
end

-- The integer of so many bits that has a number in a row of bytes.
local function integer(bytes, at, number, bits)
  local each = 8 // bits
  at[#at + 1] = number // each
  return bytes[at] >> number % each * bits & (1 << bits) - 1
end

local function nearest(x) -- halves to even
  local low = math.floor(x)
  local over = x - low
  return (over > 0.5 or over == 0.5 and low % 2 == 1) and low + 1 or low
end

-- The rows of X, as they are or rounded to int8 group by group: f(i, k).
local function rows(X, o)
  return function(i, k)
    if o.products ~= "int8" then return X[{i, k}] end
    local most, first = 0, k // o.group * o.group
    for j = first, first + o.group - 1 do most = math.max(most, math.abs(X[{i, j}])) end
    local factor = math.max(most / 127, 1e-30)
    return nearest(X[{i, k}] / factor) * factor
  end
end

for _, o in ipairs {
  {bits = 4, group = 16}, {bits = 4, group = 64, bias = true}, {bits = 4, group = 32, zero = true, bias = true},
  {bits = 8, group = 16, zero = true}, {bits = 8, group = 32},
  {bits = 4, group = 64, zero = true, scale = "float16"},
  {bits = 4, group = 16, x = "bfloat16", scale = "bfloat16", zero = true},
  {bits = 4, group = 32, zero = true, products = "int8"}, {bits = 8, group = 16, products = "int8"},
  {bits = 4, group = 16, x = "bfloat16", products = "int8"},
  {bits = 4, group = 32, zero = true, products = "int24"}, {bits = 8, group = 16, bias = true, products = "int24"},
  {bits = 4, group = 64, x = "float16", products = "int24"},
  {bits = 4, group = 32, order = "halves"}, {bits = 4, group = 32, order = "halves", zero = true, products = "int8"},
  {bits = 4, group = 32, order = "halves", products = "int24"}, {bits = 8, group = 32, order = "halves"},
} do
  local t = tensors_of(o)
  local func = te.func("nbits", t.list)
  local arrays = ms.arrays_for(func, 3)
  ms.interpret(func, table.unpack(arrays))
  local X, W, scale, zero, bias = arrays[1], arrays[2], arrays[3], t.zero and arrays[4], t.bias and arrays[#arrays - 1]
  local x = rows(X, o)
  for i = 0, M - 1 do
    for j = 0, N - 1 do
      local want = bias and bias[{j}] or 0
      for k = 0, K - 1 do
        local g, within = k // o.group, k % o.group
        local z = zero and integer(zero, {j}, g, o.bits) or 1 << o.bits - 1
        if o.order == "halves" and o.bits == 4 then within = within % (o.group // 2) * 2 + within // (o.group // 2) end
        want = want + scale[{j, g}] * x(i, k) * (integer(W, {j, g}, within, o.bits) - z)
      end
      local got = arrays[#arrays][{i, j}]
      assert(math.abs(got - want) <= 1e-4 * math.max(1, math.abs(want)),
             string.format("%d bits, group %d, %s: %d,%d is %s, not %s", o.bits, o.group, o.products, i, j, got, want))
    end
  end
  assert(ms.compare(ms.build(func), function(...) ms.interpret(func, ...) end, 4) <= 1e-3)
end

-- A scale for a whole row, of a length that is no power of 2.
for _, products in ipairs {"float32", "int24", "int8"} do
  for _, bits in ipairs {4, 8} do
    local X, W, S = te.placeholder({2, 48}, "float32", "X"), te.placeholder({40, 1, 6 * bits}, "uint8", "W"),
      te.placeholder({40, 1}, "float32", "S")
    local func = te.func("nbits", {X, W, S, ops.dense_nbits(X, W, S, {bits = bits, products = products})})
    local arrays = {ms.array({2, 48}, "float32", 1), ms.array({40, 1, 6 * bits}, "uint8", bits == 4 and 0x2F or 255),
                    ms.array({40, 1}, "float32", 0.5), ms.array({2, 40}, "float32", 0)}
    ms.interpret(func, table.unpack(arrays))
    local want = bits == 4 and 24 * 0.5 or 48 * 127 * 0.5 -- 15 - 8 + 2 - 8 of each two
    assert(math.abs(arrays[4][{1, 39}] - want) <= 1e-3 * math.abs(want), arrays[4][{1, 39}])
    local kernel = ms.build(ms.auto_schedule(func):func())
    assert(ms.compare(kernel, function(...) ms.interpret(func, ...) end, 4) <= 1e-3)
  end
end

-- Rows of bfloat16 by weights that are scaled first: AMX's tiles read them as they unpack, without a copy of all.
for n, zero in ipairs {false, true, false} do
  local halves = n == 3
  local t = tensors_of {bits = 4, group = 16, x = "bfloat16", zero = zero, bias = true, products = "bfloat16",
                        order = halves and "halves" or "pairs"}
  local func = te.func("nbits", t.list)
  local arrays = ms.arrays_for(func, 3)
  arrays[3] = ms.array({N, K // 16}, "float32", 0.5)
  ms.interpret(func, table.unpack(arrays))
  for i = 0, M - 1 do
    for j = 0, N - 1 do
      local want = arrays[#arrays - 1][{j}]
      for k = 0, K - 1 do
        local z = zero and integer(arrays[4], {j}, k // 16, 4) or 8
        local number = halves and k % 8 * 2 + k % 16 // 8 or k % 16
        want = want + 0.5 * arrays[1][{i, k}] * (integer(arrays[2], {j, k // 16}, number, 4) - z)
      end
      assert(math.abs(arrays[#arrays][{i, j}] - want) <= 1e-3, arrays[#arrays][{i, j}])
    end
  end
  assert(ms.compare(ms.build(ms.auto_schedule(func):func()), function(...) ms.interpret(func, ...) end, 4) <= 1e-3)
end
do
  local func = ops.func("dense_nbits", {32, 32, 64, dtype = "bfloat16", products = "bfloat16"})
  local made = ms.auto_schedule(func, {target = "llvm -mcpu=sapphirerapids -num-cores=2"}):func()
  local text = made:script()
  assert(text:find("tdpbf16ps", 1, true) and not text:find("dense_nbits_weights = T.", 1, true), text)
  local own, want = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
  ms.interpret(made, table.unpack(own))
  ms.interpret(func, table.unpack(want))
  assert(own[#own]:difference(want[#want]) <= 1e-3)
end

-- The largest sums: of elements that are as large as their group's largest, by the largest weights.
for _, group in ipairs {256, 512} do
  local X, W, S = te.placeholder({1, 512}, "float32", "X"), te.placeholder({2, 512 // group, group}, "uint8", "W"),
    te.placeholder({2, 512 // group}, "float32", "S")
  local func = te.func("nbits", {X, W, S, ops.dense_nbits(X, W, S, {bits = 8, products = "int24"})})
  for _, x in ipairs {1, -1} do
    local arrays = {ms.array({1, 512}, "float32", x), ms.array({2, 512 // group, group}, "uint8", 255),
                    ms.array({2, 512 // group}, "float32", 1), ms.array({1, 2}, "float32", 0)}
    ms.interpret(func, table.unpack(arrays))
    assert(math.abs(arrays[4][{0, 1}] - x * 512 * 127) <= 0.1, arrays[4][{0, 1}])
  end
end

-- Of 24 bits the smallest elements of a group keep what float32's sums would.
do
  local X, W, S = te.placeholder({1, 16}, "float32", "X"), te.placeholder({1, 1, 8}, "uint8", "W"),
    te.placeholder({1, 1}, "float32", "S")
  local func = te.func("nbits", {X, W, S, ops.dense_nbits(X, W, S, {products = "int24"})})
  local x = ms.array({1, 16}, "float32", 0)
  x[{0, 0}], x[{0, 1}] = 1, 2.0 ^ -22
  local y = ms.array({1, 1}, "float32", 0)
  ms.interpret(func, x, ms.array({1, 1, 8}, "uint8", 0xF8), ms.array({1, 1}, "float32", 1), y)
  assert(math.abs(y[{0, 0}] - 7 * 2.0 ^ -22) <= 2.0 ^ -20, y[{0, 0}])
end

-- Rows of nothing but zeros are rounded to zeros.
for _, products in ipairs {"int8", "int24"} do
  local t = tensors_of {bits = 4, group = 32, products = products}
  local func = te.func("nbits", t.list)
  local arrays = ms.arrays_for(func, 3)
  arrays[1] = ms.array({M, K}, "float32", 0)
  ms.interpret(func, table.unpack(arrays))
  for i = 0, M - 1 do for j = 0, N - 1 do assert(arrays[4][{i, j}] == 0) end end
end

-- By name: arguments, constants, the bytes that are read.
local func = ops.func("dense_nbits", {1, 32, 128, group = 64})
assert(func:name() == "dense_nbits_1x32x128x4x64" or func:name():find "^dense_nbits_1x32x128", func:name())
assert(func:script():find('"layout_free_buffers": [1, 2]', 1, true))
assert(not ops.func("dense_nbits", {1, 32, 128, constant = false}):script():find "layout_free_buffers")
assert(func:work().read_bytes == 128 * 4 + 32 * 64 + 32 * 2 * 4, func:work().read_bytes)
assert(#ops.func("dense_nbits", {1, 32, 128, zero_points = true}):params() == 5)

-- Zero points are constants as weights are; what is made of them is made ahead of all runs.
do
  local f = ops.func("dense_nbits", {1, 32, 128, group = 64, zero_points = true})
  assert(f:script():find('"layout_free_buffers": [1, 2, 3]', 1, true))
  local packing = f:packing()
  assert(packing and packing.kernel:params()[4].type == "uint8"
         and table.concat(packing.kernel:params()[4].shape, "x") == "2x32", packing.kernel:script())
end

-- What cannot be.
local function named(message, arguments) refuses(message, ops.func, "dense_nbits", arguments) end
named("dense_nbits: bits is 3; 4 or 8 is expected", {1, 8, 64, bits = 3})
named("dense_nbits: bits is 0; expected: an integer of at least 1", {1, 8, 64, bits = 0})
named("dense_nbits: group is 128, which does not divide the 192 elements of a row", {1, 8, 192, group = 128})
named("dense_nbits: group is 32, which does not divide the 63 elements of a row", {1, 8, 63})
named("dense_nbits: group is 24; a power of 2 of at least 16 is expected, or all 48 elements of a row, an even number",
      {1, 8, 48, group = 24})
named("dense_nbits: group is 8; a power of 2 of at least 16 is expected", {1, 8, 64, group = 8})
named("dense_nbits: X is of int8; floats are expected", {1, 8, 64, dtype = "int8"})
named("dense_nbits: scale is of int32; float32, float16 or bfloat16 is expected", {1, 8, 64, scale_dtype = "int32"})
named("dense_nbits: X is of float32; products of bfloat16 are of rows of bfloat16",
      {1, 8, 64, products = "bfloat16"})
named("dense_nbits: products is float16; float32, bfloat16, int24 or int8 is expected",
      {1, 8, 64, products = "float16"})
local X, W, S = te.placeholder({2, 64}, "float32", "X"), te.placeholder({8, 2, 16}, "uint8", "W"),
  te.placeholder({8, 2}, "float32", "S")
local function given(message, ...) refuses("ops.dense_nbits: " .. message, ops.dense_nbits, ...) end
given("extent 2 of scale is 3, not 2", X, W, te.placeholder({8, 3}, "float32", "S"))
given("W is of int8; uint8 is expected", X, te.placeholder({8, 2, 16}, "int8", "W"), S)
given("extent 2 of W is 3, not 2", X, te.placeholder({8, 3, 16}, "uint8", "W"), S)
given("extent 2 of zero_points is 2, not 1", X, W, S, {zero_points = te.placeholder({8, 2}, "uint8", "Z")})
given("zero_points is of int8; uint8 is expected", X, W, S, {zero_points = te.placeholder({8, 1}, "int8", "Z")})
given("extent 1 of bias is 9, not 8", X, W, S, {bias = te.placeholder({9}, "float32", "b")})
given("bias is of int32; float32 is expected", X, W, S, {bias = te.placeholder({8}, "int32", "b")})
given("order is thirds; pairs or halves is expected", X, W, S, {order = "thirds"})
named("dense_nbits: order is thirds; expected: pairs or halves", {1, 8, 64, order = "thirds"})
given("there is no option `group`; there are bias, bits, name, order, products, zero_points", X, W, S, {group = 32})
given("W has 2 dimensions, not 3", X, te.placeholder({8, 32}, "uint8", "W"), S)

print "nbits: ok"
