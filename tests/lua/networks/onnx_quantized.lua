-- Networks of QuantizeLinear and DequantizeLinear: products and convolutions between them become those of integers,
-- where their scales and zero points let them, and give what the network gives as it is written.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local onnx = dofile(here .. "/support/lua/onnx.lua")

local drawn = 0
local function numbers(count, least, most, whole)
  local list = {}
  for i = 1, count do
    drawn = (drawn * 1103515245 + 12345) % 2147483648
    local x = least + (most - least) * (drawn >> 16) / 32768
    list[i] = whole and math.floor(x) or x
  end
  return list
end
local function of(type, shape, least, most)
  local count = 1
  for _, extent in ipairs(shape) do count = count * extent end
  return {type, shape, numbers(count, least, most, type ~= "float32")}
end

-- A network: x is quantized, multiplied with constant weights, and quantized again.
local function network(case)
  local x, w, zero = case.x or "uint8", case.w or "int8", case.zero or 0
  local many = case.channels and {case.channels} or {}
  local c = {xs = {"float32", {}, {0.02}}, xz = {x, {}, {zero}}, w = of(w, case.weights, w == "int8" and -128 or 0,
             w == "int8" and 128 or 256), ws = of("float32", many, 0.005, 0.02), wz = case.weight_zero and {w, {},
             {case.weight_zero}} or case.weight_zeros and {w, many, case.weight_zeros} or nil,
             ys = {"float32", {}, {0.1}}, yz = {"uint8", {}, {100}}}
  if case.bias then c.b = of("float32", {case.bias}, -1, 1) end
  local m = {opset = 17, inputs = {{"x", "float32", case.shape}}, outputs = {{"y"}, {"q"}}, constants = c, nodes = {
    {"QuantizeLinear", {"x", "xs", "xz"}, {"xq"}}, {"DequantizeLinear", {"xq", "xs", "xz"}, {"xd"}},
    {"DequantizeLinear", c.wz and {"w", "ws", "wz"} or {"w", "ws"}, {"wd"}, {axis = case.axis or 0}},
    {case.op, c.b and {"xd", "wd", "b"} or {"xd", "wd"}, {"y"}, case.attributes},
    {"QuantizeLinear", {"y", "ys", "yz"}, {"q"}}}}
  return onnx.read(m)
end

local function operators(net)
  local seen = {}
  ms.load "lua.net.passes".run(net, {after = function(name, work)
    if name == "quantized" then seen = work:operators() end
  end})
  return seen
end

-- op: what it becomes; nil: it stays.
local function check(case, op)
  local net = network(case)
  local found = operators(net)
  assert((found[case.op] == nil) == (op ~= nil) and (not op or found[op] == 1),
         case.op .. ": " .. table.concat(ms.sorted_keys(found), " "))
  local x = ms.array(case.shape, "float32"):random(1, true)
  local want, got = net:run({x = x}, {interpret = true}), net:plan({written = true}):run {x = x}
  assert(want.y:difference(got.y) <= 1e-5, string.format("%s differs by %g", case.op, want.y:difference(got.y)))
  assert(want.q:difference(got.q) <= 1) -- of numbers that lie between two steps
end

local pads = {pads = {1, 1, 1, 1}}
check({op = "MatMul", shape = {3, 8}, weights = {8, 5}}, "MatMulInteger")
check({op = "MatMul", shape = {2, 3, 8}, weights = {8, 5}, zero = 255, channels = 5, axis = 1}, "MatMulInteger")
check({op = "Gemm", shape = {3, 8}, weights = {5, 8}, zero = 7, channels = 5, axis = 0, bias = 5,
       attributes = {transB = 1}}, "MatMulInteger")
check({op = "Gemm", shape = {3, 8}, weights = {8, 5}, channels = 5, axis = -1, bias = 5}, "MatMulInteger")
check({op = "Conv", shape = {2, 4, 5, 6}, weights = {3, 4, 3, 3}, zero = 255, channels = 3, bias = 3}, "ConvInteger")
check({op = "Conv", shape = {1, 4, 5, 6}, weights = {6, 2, 1, 1}, zero = 7, channels = 6, bias = 6,
       attributes = {group = 2, strides = {2, 2}}}, "ConvInteger")
check({op = "Conv", shape = {1, 4, 5, 6}, weights = {3, 4, 3, 3}, attributes = pads}, "ConvInteger")
-- Where padding stands for a zero point, or channels are no multiple of 4, the image is padded before.
check({op = "Conv", shape = {1, 4, 5, 6}, weights = {3, 4, 3, 3}, zero = 7, attributes = pads}, "ConvInteger")
check({op = "Conv", shape = {2, 3, 5, 6}, weights = {5, 3, 3, 3}, x = "int8", zero = -7, channels = 5, bias = 5,
       attributes = {pads = {1, 0, 2, 1}, strides = {2, 1}, kernel_shape = {3, 3}}}, "ConvInteger")
check({op = "Conv", shape = {1, 3, 5, 6}, weights = {2, 3, 2, 2},
       attributes = {auto_pad = "VALID", dilations = {2, 1}}}, "ConvInteger")
check({op = "Conv", shape = {1, 6, 5, 6}, weights = {4, 3, 3, 3}, zero = 9,
       attributes = {group = 2, pads = {1, 1, 1, 1}}}, "ConvInteger")
check({op = "Conv", shape = {1, 3, 5, 6}, weights = {2, 3, 3, 3}, attributes = {auto_pad = "SAME_UPPER"}},
      "ConvInteger")
check({op = "Conv", shape = {1, 3, 5, 6}, weights = {2, 3, 3, 3}, zero = 7, attributes = {auto_pad = "SAME_LOWER"}})
check({op = "Conv", shape = {1, 4, 7}, weights = {3, 4, 3}, x = "int8", zero = -128, channels = 3}, "ConvInteger")
check({op = "MatMul", shape = {3, 8}, weights = {8, 5}, w = "uint8", x = "int8", zero = -3}, "MatMulInteger")
-- Weights that have a zero point: the product takes it, and that of the activations.
check({op = "MatMul", shape = {3, 8}, weights = {8, 5}, weight_zero = 2}, "MatMulInteger")
check({op = "MatMul", shape = {2, 3, 8}, weights = {8, 5}, w = "uint8", weight_zero = 131, zero = 9}, "MatMulInteger")
check({op = "Gemm", shape = {3, 8}, weights = {5, 8}, zero = 7, weight_zero = -2, channels = 5, axis = 0, bias = 5,
       attributes = {transB = 1}}, "MatMulInteger")
for _, groups in ipairs {1, 2, 4} do
  for _, zero in ipairs {0, 9} do
    check({op = "Conv", shape = {1, 4, 5, 6}, weights = {4, 4 // groups, 3, 3}, w = "uint8", zero = zero,
           weight_zero = 120, bias = 4, attributes = {group = groups, pads = {1, 1, 1, 1}}}, "ConvInteger")
  end
end
check({op = "Conv", shape = {1, 4, 5, 6}, weights = {3, 4, 3, 3}, zero = 7, weight_zero = 3,
       attributes = {auto_pad = "SAME_UPPER"}})
-- Not where scales lie along what is summed, a factor stands before the product, or bytes are wider.
check({op = "MatMul", shape = {3, 8}, weights = {8, 5}, channels = 8, axis = 0})
check({op = "Gemm", shape = {3, 8}, weights = {8, 5}, attributes = {alpha = 0.5}})

-- What is rounded to bytes may be a step off beside the interpreter, and no more; what is not rounded may not.
local run, te = ms.load "lua.net.run", ms.te
local function off(by, rounded)
  local X = te.placeholder({4}, "float32", "X")
  local B = te.placeholder({4}, "uint8", "B")
  local Y = te.compute({4}, function(i)
    return rounded and te.cast(te.nearbyint(X[i]), "uint8") or te.max(B[i], te.const(3, "uint8"))
  end, "Y")
  local func, values = te.func("bytes", {rounded and X or B, Y}), {5, 6, 7, 8}
  local given, got = ms.array({4}, rounded and "float32" or "uint8", values), ms.array({4}, "uint8", {5, 6, 7, 8 + by})
  local report = {compared = 0, elements = 0, most = 0}
  return pcall(run.compare, network {op = "MatMul", shape = {3, 8}, weights = {8, 5}}, func, "bytes", {given}, {got},
               1 << 20, report)
end
assert(off(0, true) and off(1, true) and off(0, false))
for _, bad in ipairs {{2, true}, {1, false}} do
  local ok, message = off(table.unpack(bad))
  message = type(message) == "table" and message.message or tostring(message)
  assert(not ok and message:find("it differs from the interpreter's by " .. bad[1], 1, true), message)
end

-- Sums of a residual: bytes are what groups give one another, whoever dequantizes them; the largest are taken of bytes.
local function residual(two)
  local constants = {s = {"float32", {}, {0.05}}, z = {"uint8", {}, {3}}, z0 = {"uint8", {}, {0}},
                     ws = {"float32", {}, {0.01}}, cs = {"float32", {}, {0.1}}, cz = {"int8", {}, {0}},
                     w1 = of("int8", {4, 4, 1, 1}, -128, 128), w2 = of("int8", {4, 4, 1, 1}, -128, 128)}
  local nodes, outputs = {}, {{"y"}}
  local function add(...) nodes[#nodes + 1] = {...} end
  local function quantize(x, scale, zero)
    add("QuantizeLinear", {x, scale, zero}, {x .. "_q"})
    add("DequantizeLinear", {x .. "_q", scale, zero}, {x .. "_d"})
    return x .. "_d"
  end
  local function convolve(x, w, y)
    add("DequantizeLinear", {w, "ws"}, {y .. "_w"})
    add("Conv", {x, y .. "_w"}, {y})
    return quantize(y, "cs", "cz")
  end
  add("MaxPool", {quantize("x", "s", "z0")}, {"m"}, {kernel_shape = {3, 3}, pads = {1, 1, 1, 1}})
  local m = quantize("m", "s", "z0")
  add("Add", {convolve(m, "w1", "c"), two and m or convolve(m, "w2", "d")}, {"sum"})
  local last = quantize("sum", "s", "z")
  if two then -- what dequantizes m has two readers then
    add("Sub", {convolve(m, "w2", "e"), m}, {"other"})
    quantize("other", "cs", "cz")
    outputs[2] = {"other_d"}
  end
  add("Identity", {last}, {"y"})
  return onnx.read {opset = 17, inputs = {{"x", "float32", {1, 4, 5, 6}}}, outputs = outputs, constants = constants,
                    nodes = nodes}
end
local CONVOLUTION = "ConvInteger Cast Mul QuantizeLinear"
local function check_groups(net, want)
  local x, plan, got = ms.array({1, 4, 5, 6}, "float32"):random(2, true), net:plan {written = true}, {}
  for i, g in ipairs(plan.prepared.groups) do
    local names = {}
    for k, step in ipairs(g.steps) do names[k] = step.node.op end
    got[i] = table.concat(names, " ")
  end
  assert(table.concat(got, "\n") == table.concat(want, "\n"), table.concat(got, "\n"))
  local expected, given = net:run({x = x}, {interpret = true}), plan:run {x = x}
  for name, array in pairs(expected) do
    local apart = array:difference(given[name])
    assert(apart <= 0.101, string.format("%s differs by %g", name, apart)) -- of numbers that lie between two steps
  end
end
local FIRST, REST = "QuantizeLinear Identity", "DequantizeLinear Add QuantizeLinear DequantizeLinear Identity Identity"
check_groups(residual(), {FIRST, "MaxPool", CONVOLUTION, "DequantizeLinear " .. CONVOLUTION .. " " .. REST})
check_groups(residual(true),
             {FIRST, "MaxPool", "DequantizeLinear " .. CONVOLUTION .. " DequantizeLinear Sub QuantizeLinear \z
              DequantizeLinear Identity", "DequantizeLinear " .. CONVOLUTION .. " " .. REST})

-- A zero point for each channel.
check({op = "MatMul", shape = {2, 3, 8}, weights = {8, 5}, zero = 9, channels = 5, axis = 1,
       weight_zeros = {0, -128, 127, 3, -4}}, "MatMulInteger")
check({op = "MatMul", shape = {3, 8}, weights = {8, 3}, w = "uint8", channels = 3, axis = -1,
       weight_zeros = {128, 0, 255}}, "MatMulInteger")
check({op = "Gemm", shape = {3, 8}, weights = {5, 8}, zero = 7, channels = 5, axis = 0, bias = 5,
       weight_zeros = {1, 2, 3, 4, 5}, attributes = {transB = 1}}, "MatMulInteger")
for _, groups in ipairs {1, 2, 4} do
  for _, zero in ipairs {0, 9} do
    check({op = "Conv", shape = {1, 4, 5, 6}, weights = {4, 4 // groups, 3, 3}, w = "uint8", zero = zero, channels = 4,
           bias = 4, weight_zeros = {120, 128, 0, 255}, attributes = {group = groups, pads = {1, 1, 1, 1}}},
          "ConvInteger")
  end
end
check({op = "MatMul", shape = {3, 8}, weights = {8, 8}, channels = 8, axis = 0,
       weight_zeros = {1, 2, 3, 4, 5, 6, 7, 8}})
