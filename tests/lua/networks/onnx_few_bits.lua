-- Products by weights of 4 and 8 bits that DequantizeLinear makes real: they become MatMulNBits where blocks, columns
-- or the whole have a scale, and give what the numbers say. Integers of 4 bits are read from all places where a file
-- may have them.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local onnx = dofile(here .. "/support/lua/onnx.lua")
local read, aside = onnx.read, os.tmpname()
local LEAST, MOST = {int4 = -8, uint4 = 0, int8 = -128, uint8 = 0}, {int4 = 7, uint4 = 15, int8 = 127, uint8 = 255}

local drawn = 7
local function draw(least, most)
  drawn = (drawn * 1103515245 + 12345) % 2147483648
  return least + (drawn >> 16) % (most - least + 1)
end
local function draws(count, least, most, by)
  local list = {}
  for i = 1, count do list[i] = draw(least, most) * (by or 1) end
  return list
end

-- A product of x by weights of (k, n), or (n, k) where they lie across, by blocks along an axis, by columns, or by one
-- scale.
local function network(c)
  local shape = c.across and {c.n, c.k} or {c.k, c.n}
  local axis = c.axis or (c.block and (c.across and 1 or 0) or (c.across and 0 or 1))
  local scales = {}
  if c.block then scales = {shape[1], shape[2]}; scales[axis + 1] = (shape[axis + 1] + c.block - 1) // c.block
  elseif c.columns then scales = {shape[axis + 1]} end
  local count = 1
  for _, extent in ipairs(scales) do count = count * extent end
  local t = c.type
  local constants =
    {w = {t, shape, draws(c.k * c.n, LEAST[t], MOST[t])}, s = {"float32", scales, draws(count, 1, 15, 0.125)}}
  if c.zero then
    constants.z = {t, scales, draws(count, c.zero == true and LEAST[t] or c.zero, c.zero == true and MOST[t] or c.zero)}
  end
  if c.bias then constants.b = {"float32", {c.n}, draws(c.n, -9, 9)} end
  local nodes =
    {{"DequantizeLinear", c.zero and {"w", "s", "z"} or {"w", "s"}, {"d"}, {axis = axis, block_size = c.block}}}
  if c.transpose then nodes[2] = {"Transpose", {"d"}, {"t"}} end
  nodes[#nodes + 1] = {c.op or "MatMul", {"x", c.transpose and "t" or "d", c.bias and "b" or nil}, {"y"},
                       c.attributes or c.op and c.across and {transB = 1} or nil}
  return read {opset = 21, inputs = {{"x", "float32", {c.rows, c.k}}}, outputs = {{"y"}}, constants = constants,
               nodes = nodes}, constants, scales, axis
end

-- What the numbers say, of x.
local function expected(c, constants, scales, axis, x)
  local function parameter(list, i, j)
    if #list == 1 then return list[1] end
    if not c.block then return list[(axis == 0 and i or j) + 1] end
    local at = {i, j}
    at[axis + 1] = at[axis + 1] // c.block
    return list[at[1] * scales[2] + at[2] + 1]
  end
  local y = {}
  for r = 0, c.rows - 1 do
    for n = 0, c.n - 1 do
      local sum = c.bias and constants.b[3][n + 1] or 0
      for k = 0, c.k - 1 do
        local i, j = c.across and n or k, c.across and k or n
        local q =
          constants.w[3][i * (c.across and c.k or c.n) + j + 1] - (c.zero and parameter(constants.z[3], i, j) or 0)
        sum = sum + x[r * c.k + k + 1] * q * parameter(constants.s[3], i, j)
      end
      y[#y + 1] = sum
    end
  end
  return y
end

local function operators(net)
  local seen
  ms.load "lua.net.passes".run(net, {after = function(name, work)
    if name == "few_bits" then seen = work:operators() end
  end})
  return seen
end

-- bits: what they are packed to; nil: the product stays.
local function check(c, bits)
  local net, constants, scales, axis = network(c)
  local what = string.format("%s of %dx%d by %d rows", c.type, c.k, c.n, c.rows)
  local found = operators(net)
  assert((found["com.microsoft.MatMulNBits"] == 1) == (bits ~= nil), what)
  local x = draws(c.rows * c.k, -4, 4)
  if c.attributes and not bits then return end
  local want = ms.array({c.rows, c.n}, "float32", expected(c, constants, scales, axis, x))
  local got = net:plan({written = true}):run {x = ms.array({c.rows, c.k}, "float32", x)}
  assert(want:difference(got.y) <= 1e-5, string.format("%s differs by %g", what, want:difference(got.y)))
end

check({type = "int4", rows = 1, k = 64, n = 5, block = 32}, 4)
-- three blocks: half a byte of zero points is empty
check({type = "uint4", rows = 3, k = 96, n = 6, block = 32, zero = true}, 4)
check({type = "uint4", rows = 2, k = 64, n = 5, block = 16}, 4)
check({type = "uint4", rows = 2, k = 64, n = 5, block = 16, zero = 8}, 4)
check({type = "int4", rows = 17, k = 64, n = 5, block = 64, zero = true}, 4)
check({type = "int4", rows = 3, k = 64, n = 7, block = 32, zero = true, across = true, op = "Gemm", bias = true}, 4)
check({type = "int4", rows = 3, k = 48, n = 7, columns = true, across = true, op = "Gemm"}, 4)
check({type = "int8", rows = 3, k = 64, n = 6, columns = true, bias = true, op = "Gemm"}, 8)
check({type = "uint8", rows = 2, k = 32, n = 6, zero = true}, 8)
check({type = "uint8", rows = 2, k = 32, n = 6, columns = true}, 8)
check({type = "int8", rows = 2, k = 32, n = 6, block = 32, zero = true}, 8)
-- Behind a transposition the weights lie the other way.
check({type = "int4", rows = 2, k = 32, n = 5, block = 16, across = true, transpose = true}, 4)
-- Not where blocks lie along the columns, are no power of 2, or leave a part; scales are of what is summed; a factor
-- stands before the product; or bytes are multiplied by more rows.
check {type = "int4", rows = 2, k = 32, n = 32, block = 16, axis = 1}
check {type = "int4", rows = 2, k = 48, n = 5, block = 24}
check {type = "int4", rows = 2, k = 40, n = 5, block = 16}
check {type = "int4", rows = 2, k = 24, n = 5}
check {type = "int4", rows = 2, k = 32, n = 0, block = 16} -- no columns
check {type = "uint8", rows = 2, k = 32, n = 0, columns = true, zero = true}
check {type = "int4", rows = 2, k = 32, n = 5, columns = true, axis = 0}
check {type = "int8", rows = 9, k = 32, n = 5}
check {type = "int4", rows = 2, k = 32, n = 5, op = "Gemm", attributes = {alpha = 0.5}}

-- Few rows are rounded to integers of 24 bits, where a CPU has VNNI and an order of sums is not asked for.
do
  local function products(rows, target, fixed_order)
    local net = network {type = "int4", rows = rows, k = 64, n = 5, block = 32}
    local text
    ms.load "lua.net.passes".run(net, {target = target, fixed_order = fixed_order, after = function(name, work)
      if name == "int24" then text = work.nodes[#work.nodes].attributes.products end
    end})
    return text
  end
  assert(products(1, "llvm -mcpu=znver5") == "int24" and products(3, "llvm -mcpu=cascadelake") == "int24")
  assert(not products(4, "llvm -mcpu=znver5") and not products(1, "llvm -mcpu=znver5", true))
  assert(not products(1, "llvm -mcpu=haswell") and not products(1, "llvm -mcpu=nehalem"))
  assert(not products(1, "cuda -arch=sm_80"))
end

-- ---- Where integers of 4 bits stand ---------------------------------------------------------------------------------

local function dequantized(w, more)
  local constants = {w = w, s = {"float32", {}, {0.5}}}
  local m = {opset = 21, inputs = {{"x", "float32", {3}}}, outputs = {{"y"}}, constants = constants,
             nodes = {{"DequantizeLinear", {"w", "s"}, {"d"}}, {"Add", {"x", "d"}, {"y"}}}}
  for key, value in pairs(more or {}) do m[key] = value end
  return read(m)
end
local function check_read(w, want)
  local got = dequantized(w):run({x = ms.array({3}, "float32", {0, 0, 0})}, {interpret = true}).y:tolist()
  assert(table.concat(got, " ") == want, table.concat(got, " "))
end
check_read({"int4", {3}, {-8, 7, -1}}, "-4.0 3.5 -0.5")
check_read({"uint4", {3}, {8, 15, 1}}, "4.0 7.5 0.5")
check_read({"int4", {3}, {0x78, 0x0f}, 5}, "-4.0 3.5 -0.5") -- typed data have two in each number, too
-- Inputs and outputs are bytes, an element each.
for t, of in pairs {int4 = {"int8", {-8, 7, 0}, {-8, 7, -2}}, uint4 = {"uint8", {0, 15, 3}, {0, 15, 1}}} do
  local net = read {opset = 21, inputs = {{"x", "float32", {3}}, {"z", t, {}}, {"q", t, {3}}},
                    outputs = {{"y", t, {3}}, {"d"}}, constants = {s = {"float32", {}, {0.5}}},
                    nodes = {{"QuantizeLinear", {"x", "s", "z"}, {"y"}}, {"DequantizeLinear", {"q", "s"}, {"d"}}}}
  for _, interpret in ipairs {true, false} do
    local made = net:run({x = ms.array({3}, "float32", {-90, 90, -1}), z = ms.array({}, of[1], {of[2][3]}),
                          q = ms.array({3}, of[1], of[2])}, {interpret = interpret})
    assert(made.y:type() == of[1] and table.concat(made.y:tolist(), " ") == table.concat(of[3], " "), tostring(made.y))
    for i, x in ipairs(of[2]) do assert(made.d[i - 1] == x / 2) end
  end
end

local file <close> = assert(io.open(aside, "wb"))
file:write "\x00\x78\x0f"
file:close()
local name = aside:match "[^/]*$"
check_read({"int4", {3}, external = {location = name, offset = 1, length = 2}}, "-4.0 3.5 -0.5")

local function refused(expected, f, ...)
  local ok, message = pcall(f, ...)
  message = type(message) == "table" and message.message or tostring(message)
  assert(not ok and message:find(expected, 1, true), message)
end
-- A byte that is none of the type's numbers, in an input and in a constant that is made of one.
for t, of in pairs {int4 = {"int8", {-8, -9, 8}, "[-8, 7]"}, uint4 = {"uint8", {15, 16, 255}, "[0, 15]"}} do
  local m = {opset = 21, inputs = {{"q", t, {1}}}, outputs = {{"d"}}, constants = {s = {"float32", {}, {0.5}}},
             nodes = {{"DequantizeLinear", {"q", "s"}, {"d"}}}}
  local plan = read(m):plan {written = true}
  for i, x in ipairs(of[2]) do
    local given, what = {q = ms.array({1}, of[1], {x})}, "element " .. x .. " of q is not in " .. of[3]
    if i == 1 then assert(read(m):run(given, {interpret = true}).d[0] == x / 2) end
    if i > 1 then
      refused(what, function() read(m):run(given, {interpret = true}) end)
      refused(what, plan.run, plan, given)
      refused(what, function() read(m, {constants = {q = x}}) end)
    end
  end
end
refused("its extents ask for 2 bytes, and its data have 1", dequantized, {"int4", {3}, {1, 2}})
refused("its extents ask for 2 bytes, and its external data have 3", dequantized,
        {"int4", {3}, external = {location = name, length = 3}})
refused("has 3 bytes; 2 from 2 on are asked for", dequantized, {"int4", {3}, external = {location = name, offset = 2}})
refused("its elements are of uint4, which only constants of the outermost graph may be", dequantized,
        {"int4", {3}, {1, 2, 3}},
        {nodes = {{"Constant", {}, {"c"}, {value = {"uint4", {3}, {1, 2, 3}}}}, {"Add", {"x", "x"}, {"y"}}}})
local function blocks_of(scales, block)
  return read({opset = 21, inputs = {{"x", "float32", {1, 4}}}, outputs = {{"y"}}, constants = {w = {"int8", {4, 2},
               {1, 2, 3, 4, 5, 6, 7, 8}}, s = {"float32", scales, draws(scales[1] * scales[2], 1, 2)}},
               nodes = {{"DequantizeLinear", {"w", "s"}, {"d"}, {axis = 0, block_size = block}},
                        {"MatMul", {"x", "d"}, {"y"}}}}):run({x = ms.array({1, 4}, "float32", 1)}, {interpret = true})
end
refused("input 2 has extents [3, 2], not [2, 2]: [4, 2] in blocks of 2", blocks_of, {3, 2}, 2)
refused("input 2 has extents [1, 2], not [2, 2]: [4, 2] in blocks of 3", blocks_of, {1, 2}, 3)
blocks_of({2, 2}, 3)

-- What is quantized to 4 bits stands in bytes, within 4 bits; whether a zero point says so, or an attribute.
for type, want in pairs {int4 = {-9, 0, 6}, uint4 = {-1, 0, 14}} do
  for _, by_attribute in ipairs {false, true} do
    local net = read {opset = 21, inputs = {{"x", "float32", {3}}}, outputs = {{"y"}},
                      constants = {s = {"float32", {}, {1}}, z = not by_attribute and {type, {}, {1}} or nil},
                      nodes = {{"QuantizeLinear", {"x", "s", not by_attribute and "z" or nil}, {"q"},
                                {output_dtype = by_attribute and (type == "int4" and 22 or 21) or nil}},
                               {"DequantizeLinear", {"q", "s", not by_attribute and "z" or nil}, {"y"}}}}
    for _, interpret in ipairs {true, false} do
      local y = net:run({x = ms.array({3}, "float32", {-50, 0, 50})}, {interpret = interpret}).y:tolist()
      for i, x in ipairs(want) do assert(y[i] == (by_attribute and i ~= 2 and x + 1 or x), type .. ": " .. y[i]) end
    end
  end
end
refused("elements of uint4, which no array has", function()
  return read({opset = 21, inputs = {{"x", "float32", {3}}, {"z", "uint4", {}}}, outputs = {{"y", "uint4", {3}}},
               constants = {}, nodes = {{"CastLike", {"x", "z"}, {"y"}}}}):static()
end)
refused("int8 and float32", function()
  return dequantized({"int4", {3}, {1, 2, 3}}, {inputs = {{"x", "int4", {3}}}}):static()
end)

os.remove(aside)
