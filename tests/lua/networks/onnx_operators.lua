-- Operators of networks: small models against values written beside them, on the interpreter and compiled; constants
-- that are folded; shapes that depend on an input's elements; what is refused, by node.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local onnx = dofile(here .. "/support/lua/onnx.lua")
local read = onnx.read

local function model(op, inputs, outputs, attributes, opset)
  local m = {opset = opset or 21, inputs = {}, outputs = {}, constants = {}}
  local reads, gives = {}, {}
  for i, t in ipairs(inputs) do
    reads[i] = t and "x" .. i or ""
    if t and t.constant then m.constants["x" .. i] = t
    elseif t then m.inputs[#m.inputs + 1] = {"x" .. i, t[1], t[2]} end
  end
  for i = 1, outputs do gives[i], m.outputs[i] = "y" .. i, {"y" .. i} end
  local domain, name = op:match "^(.*)%.([^.]*)$"
  m.nodes = {{name or op, reads, gives, attributes, domain = domain}}
  return m
end
local function same(what, got, want)
  assert(got:type() == want[1], what .. " is of " .. got:type())
  assert(table.concat(got:shape(), "x") == table.concat(want[2], "x"),
         what .. " has extents " .. table.concat(got:shape(), "x"))
  for i, x in ipairs(got:tolist()) do
    local y = want[3][i]
    assert(x == y or x ~= x and y ~= y or math.abs(x - y) <= 1e-5 * math.max(1, math.abs(y)),
           string.format("%s: element %d is %s, not %s", what, i, x, y))
  end
end

-- check(op, inputs, outputs, attributes, opset): tensors are {type, shape, values}; constant = true: known before it
-- runs.
local function check(op, inputs, outputs, attributes, opset)
  local net, arrays = read(model(op, inputs, #outputs, attributes, opset)), {}
  for i, t in ipairs(inputs) do
    if t and not t.constant then arrays["x" .. i] = ms.array(t[2], t[1], t[3]) end
  end
  for _, interpret in ipairs {true, false} do
    local made = net:run(arrays, {interpret = interpret})
    for i, want in ipairs(outputs) do
      same(op .. (interpret and ", interpreted" or ", compiled"), made["y" .. i], want)
    end
  end
end
local function refuses(expected, op, inputs, attributes, opset)
  local ok, message = pcall(function()
    local arrays = {}
    for i, t in ipairs(inputs) do
      if t and not t.constant and t.given ~= false then arrays["x" .. i] = ms.array(t[2], t[1], t[3]) end
    end
    return read(model(op, inputs, 1, attributes, opset)):run(arrays, {interpret = true})
  end)
  assert(not ok and tostring(message):find(expected, 1, true),
         op .. ": expected: " .. expected .. "\ngot: " .. tostring(message))
end
local function f32(shape, values) return {"float32", shape, values} end
local function i64(shape, values) return {"int64", shape, values} end
local function known(t) t.constant = true return t end
local inf, nan = math.huge, 0 / 0

-- Roots in the place of the powers that most networks have.
for _, beta in ipairs {0.75, 0.5, 0.6} do
  check("LRN", {f32({1, 3, 1, 1}, {1, 2, 3})}, {f32({1, 3, 1, 1}, {1 / 6 ^ beta, 2 / 15 ^ beta, 3 / 14 ^ beta})},
        {size = 3, alpha = 3.0, beta = beta, bias = 1.0})
end

-- ---- Elementwise ----

check("Add", {f32({2, 2}, {1, 2, 3, 4}), f32({2}, {10, 20})}, {f32({2, 2}, {11, 22, 13, 24})})
check("Sub", {f32({2, 1}, {1, 2}), f32({1, 2}, {10, 20})}, {f32({2, 2}, {-9, -19, -8, -18})})
check("Div", {i64({4}, {7, -7, math.mininteger, 5}), i64({4}, {2, 2, -1, 0})}, {i64({4}, {3, -3, math.mininteger, 5})})
check("Mod", {i64({4}, {7, -7, 7, -7}), i64({4}, {3, 3, -3, -3})}, {i64({4}, {1, 2, -2, -1})})
check("Mod", {i64({2}, {-7, 7}), i64({2}, {3, -3})}, {i64({2}, {-1, 1})}, {fmod = 1})
check("Mod", {f32({2}, {-7.5, 7.5}), f32({2}, {2, -2})}, {f32({2}, {-1.5, 1.5})}, {fmod = 1})
check("Max", {f32({3}, {1, nan, 3}), f32({3}, {2, 2, nan}), f32({1}, {0})}, {f32({3}, {2, nan, nan})})
do
  local list = {}
  for k = 1, 12 do list[k] = f32({2}, {k * 5 % 13, k == 7 and nan or k}) end
  check("Max", list, {f32({2}, {12, nan})})
  check("Min", list, {f32({2}, {1, nan})})
  check("Sum", list, {f32({2}, {78, nan})})
end
for _, e in ipairs {0.5, 1, 2, 3, -1, 1.5} do
  check("Pow", {f32({3}, {0.25, 1, 4}), known(f32({1}, {e}))}, {f32({3}, {0.25 ^ e, 1, 4 ^ e})})
end
check("Relu", {f32({4}, {-1, 0, 2, nan})}, {f32({4}, {0, 0, 2, nan})})
check("Clip", {f32({4}, {-5, 0, 5, inf}), f32({}, {-1}), f32({}, {2})}, {f32({4}, {-1, 0, 2, 2})})
check("Clip", {f32({3}, {-5, 0, 5})}, {f32({3}, {-1, 0, 5})}, {min = -1.0}, 7)
check("Clip", {f32({3}, {-5, 0, 5}), false, f32({}, {2})}, {f32({3}, {-5, 0, 2})})
check("Sigmoid", {f32({3}, {-100, 0, 100})}, {f32({3}, {0, 0.5, 1})})
check("Softplus", {f32({3}, {-200, 0, 200})}, {f32({3}, {0, math.log(2), 200})})
check("Gelu", {f32({2}, {0, 1})}, {f32({2}, {0, 0.8413447})}, {}, 20)
check("HardSwish", {f32({3}, {-4, 1, 4})}, {f32({3}, {0, 4 / 6, 4})})
check("Round", {f32({4}, {0.5, 1.5, -0.5, 2.5})}, {f32({4}, {0, 2, 0, 2})})
check("Cast", {f32({3}, {0, -1.7, 2.9})}, {{"bool", {3}, {0, 1, 1}}}, {to = 9})
check("Cast", {f32({2}, {-1.7, 2.9})}, {{"int32", {2}, {-1, 2}}}, {to = 6})
-- Floats of 8 bits saturate, or are NaN or infinite where that is asked for.
do
  local E4M3, E5M2 = "float8_e4m3fn", "float8_e5m2"
  local wide = f32({8}, {1.3, -0.001, 464, 465, -1e9, inf, -inf, nan})
  check("Cast", {wide}, {{E4M3, {8}, {1.25, -0.001953125, 448, 448, -448, 448, -448, nan}}}, {to = 17}, 19)
  check("Cast", {wide}, {{E4M3, {8}, {1.25, -0.001953125, 448, nan, nan, nan, nan, nan}}}, {to = 17, saturate = 0}, 19)
  local large = f32({8}, {1.3, -1e-3, 61439, 61440, -1e9, inf, -inf, nan})
  check("Cast", {large}, {{E5M2, {8}, {1.25, -0.0009765625, 57344, 57344, -57344, 57344, -57344, nan}}}, {to = 19}, 19)
  check("Cast", {large}, {{E5M2, {8}, {1.25, -0.0009765625, 57344, inf, -inf, inf, -inf, nan}}},
        {to = 19, saturate = 0}, 19)
  local bytes = {E5M2, {5}, {1.25, inf, -inf, nan, -3}}
  check("Cast", {bytes}, {f32({5}, {1.25, inf, -inf, nan, -3})}, {to = 1}, 19)
  check("Cast", {bytes}, {{"float16", {5}, {1.25, inf, -inf, nan, -3}}}, {to = 10}, 19)
  check("Cast", {bytes}, {{E4M3, {5}, {1.25, 448, -448, nan, -3}}}, {to = 17}, 19)
  check("Cast", {{E4M3, {3}, {448, 2.75, 0}}}, {{"bool", {3}, {1, 1, 0}}}, {to = 9}, 19)
  check("CastLike", {f32({2}, {0.3, 500}), {E4M3, {1}, {0}}}, {{E4M3, {2}, {0.3125, 448}}}, {}, 19)
  check("Transpose", {{E5M2, {2, 2}, {1, inf, -3, 4}}}, {{E5M2, {2, 2}, {1, -3, inf, 4}}}, {perm = {1, 0}}, 21)
  check("QuantizeLinear", {f32({4}, {-1000, 1, 3, 5000}), f32({}, {2}), {E4M3, {}, {0}}},
        {{E4M3, {4}, {-448, 0.5, 1.5, 448}}}, {}, 19)
  check("QuantizeLinear", {f32({3}, {1, 3, 5000}), f32({}, {2}), {E4M3, {}, {0}}}, {{E4M3, {3}, {0.5, 1.5, nan}}},
        {saturate = 0}, 19)
  check("QuantizeLinear", {f32({2, 2}, {1, 3, 7, 1e6}), f32({2}, {2, 10})},
        {{E5M2, {2, 2}, {0.5, 0.3125, 3.5, 57344}}}, {axis = 1, output_dtype = 19}, 21)
  check("DequantizeLinear", {{E4M3, {2, 2}, {1, 0.5, -448, 4}}, f32({2}, {1, 10}), {E4M3, {2}, {0, 0}}},
        {f32({2, 2}, {1, 5, -448, 40})}, {axis = 1}, 19)
  check("DequantizeLinear", {known {E5M2, {2}, {0x3d, 0xc0}}, f32({}, {4})}, {f32({2}, {5, -8})}, {}, 19)
end
check("Equal", {i64({2}, {1, (1 << 53) + 1}), i64({2}, {1, 1 << 53})}, {{"bool", {2}, {1, 0}}})
check("Where", {{"bool", {2, 1}, {1, 0}}, f32({2}, {1, 2}), f32({2}, {3, 4})}, {f32({2, 2}, {1, 2, 3, 4})})
check("IsInf", {f32({3}, {inf, -inf, nan})}, {{"bool", {3}, {1, 0, 0}}}, {detect_negative = 0})
check("BitShift", {{"uint8", {2}, {255, 1}}, {"uint8", {2}, {1, 9}}}, {{"uint8", {2}, {254, 0}}}, {direction = "LEFT"})
check("Pow", {f32({3}, {2, 3, 4}), i64({1}, {2})}, {f32({3}, {4, 9, 16})})
check("Sqrt", {{"float16", {2}, {4, 2.25}}}, {{"float16", {2}, {2, 1.5}}})
check("Sum", {f32({2}, {1, 2}), f32({1}, {3}), f32({2}, {5, 6})}, {f32({2}, {9, 11})})

-- ---- Shapes ----

local x23 = f32({2, 3}, {0, 1, 2, 3, 4, 5})
check("Reshape", {x23, known(i64({2}, {-1, 2}))}, {f32({3, 2}, {0, 1, 2, 3, 4, 5})})
check("Reshape", {x23, i64({3}, {0, 1, 3})}, {f32({2, 1, 3}, {0, 1, 2, 3, 4, 5})}) -- its shape is an input
check("Transpose", {x23}, {f32({3, 2}, {0, 3, 1, 4, 2, 5})})
check("Flatten", {x23}, {f32({1, 6}, {0, 1, 2, 3, 4, 5})}, {axis = 0})
check("Concat", {x23, f32({2, 0}, {}), f32({2, 1}, {7, 8})}, {f32({2, 4}, {0, 1, 2, 7, 3, 4, 5, 8})}, {axis = -1})
check("Split", {x23, known(i64({2}, {1, 2}))}, {f32({2, 1}, {0, 3}), f32({2, 2}, {1, 2, 4, 5})}, {axis = 1})
check("Slice", {x23, known(i64({2}, {-1, 2})), known(i64({2}, {math.mininteger, -4})), known(i64({2}, {0, 1})),
                known(i64({2}, {-1, -1}))}, {f32({2, 3}, {5, 4, 3, 2, 1, 0})})
check("Slice", {x23, known(i64({1}, {1})), known(i64({1}, {math.maxinteger})), known(i64({1}, {1}))},
      {f32({2, 2}, {1, 2, 4, 5})})
check("Squeeze", {f32({1, 2, 1}, {1, 2}), known(i64({1}, {-1}))}, {f32({1, 2}, {1, 2})})
check("Unsqueeze", {f32({2}, {1, 2}), known(i64({2}, {0, -1}))}, {f32({1, 2, 1}, {1, 2})})
check("Expand", {f32({2, 1}, {1, 2}), known(i64({3}, {2, 1, 2}))}, {f32({2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2})})
check("Tile", {f32({2}, {1, 2}), known(i64({1}, {2}))}, {f32({4}, {1, 2, 1, 2})})
check("Gather", {x23, i64({2}, {-1, 0})}, {f32({2, 2}, {2, 0, 5, 3})}, {axis = 1})
check("GatherElements", {x23, i64({1, 3}, {1, 0, -1})}, {f32({1, 3}, {3, 1, 5})})
check("GatherND", {x23, i64({2, 2}, {0, 1, 1, -1})}, {f32({2}, {1, 5})})
check("ScatterElements", {f32({3}, {1, 2, 3}), i64({3}, {0, 2, 0}), f32({3}, {7, 8, 9})}, {f32({3}, {9, 2, 8})})
check("ScatterND", {f32({3}, {1, 2, 3}), i64({2, 1}, {1, 1}), f32({2}, {7, 8})}, {f32({3}, {1, 17, 3})},
      {reduction = "add"})
check("Pad", {f32({3}, {1, 2, 3}), known(i64({2}, {1, 2})), f32({}, {9})}, {f32({6}, {9, 1, 2, 3, 9, 9})})
check("Pad", {f32({3}, {1, 2, 3}), known(i64({2}, {2, 3}))}, {f32({8}, {3, 2, 1, 2, 3, 2, 1, 2})}, {mode = "reflect"})
check("Pad", {f32({3}, {1, 2, 3}), known(i64({2}, {-1, 1}))}, {f32({3}, {2, 3, 3})}, {mode = "edge"})
check("Pad", {f32({4}, {1, 2, 3, 4}), known(i64({2}, {-1, 2}))}, {f32({5}, {2, 3, 4, 2, 3})}, {mode = "wrap"}, 19)
check("Pad", {f32({4}, {1, 2, 3, 4}), known(i64({2}, {3, -2}))}, {f32({5}, {2, 1, 2, 1, 2})}, {mode = "wrap"}, 19)
check("OneHot", {i64({2}, {-1, 0}), known(i64({}, {3})), f32({2}, {0, 5})}, {f32({2, 3}, {0, 0, 5, 5, 0, 0})})
check("Trilu", {f32({2, 2}, {1, 2, 3, 4})}, {f32({2, 2}, {1, 0, 3, 4})}, {upper = 0})
check("Shape", {x23}, {i64({1}, {3})}, {start = 1})
check("Range", {known(i64({}, {5})), known(i64({}, {0})), known(i64({}, {-2}))}, {i64({3}, {5, 3, 1})})
check("NonZero", {known(f32({2, 2}, {1, 0, 0, 2}))}, {i64({2, 2}, {0, 1, 0, 1})})
check("DepthToSpace", {f32({1, 4, 1, 1}, {1, 2, 3, 4})}, {f32({1, 1, 2, 2}, {1, 2, 3, 4})}, {blocksize = 2})

-- ---- Reductions, products, windows ----

check("ReduceSum", {x23, known(i64({1}, {-1}))}, {f32({2, 1}, {3, 12})})
check("ReduceMean", {x23}, {f32({3}, {1.5, 2.5, 3.5})}, {axes = {0}, keepdims = 0}, 13)
check("ReduceMax", {f32({2, 0}, {}), known(i64({1}, {1}))}, {f32({2, 1}, {-inf, -inf})})
check("ArgMax", {f32({2, 3}, {-inf, -inf, -inf, 1, 3, 3})}, {i64({2, 1}, {0, 1})}, {axis = 1})
check("Softmax", {f32({1, 2}, {1000, 1000 + math.log(3)})}, {f32({1, 2}, {0.25, 0.75})})
check("Softmax", {f32({1, 2, 1}, {1, 1})}, {f32({1, 2, 1}, {0.5, 0.5})}, {}, 11)
check("Softmax", {f32({2, 3}, {0, 0/0, 0, inf, 0, 0})}, {f32({2, 3}, {0/0, 0/0, 0/0, 0/0, 0/0, 0/0})})
check("LogSoftmax", {f32({1, 3}, {0, -300, -inf})}, {f32({1, 3}, {0, -300, -inf})})
do -- shares that could be subnormal are 0, others are what they were; as are all of a row that is long
  local x = {0, -77, -79, -90, -100, -inf}
  for _, length in ipairs {6, 4097} do
    local short = length == 6
    for i = 7, length do x[i] = -inf end
    local net = read(model("Softmax", {f32({1, length}, x)}, 1))
    for _, interpret in ipairs {true, false} do
      local y = net:run({x1 = ms.array({1, length}, "float32", x)}, {interpret = interpret}).y1:tolist()
      assert(y[1] == 1 and math.abs(y[2] / math.exp(-77) - 1) < 1e-5 and y[6] == 0)
      for i = 3, 5 do assert(y[i] == 0 == short) end
    end
  end
end
check("LayerNormalization", {f32({1, 2}, {1, 3}), f32({2}, {2, 2}), f32({2}, {5, 5})}, {f32({1, 2}, {3, 7})},
      {epsilon = 0.0})
check("CumSum", {f32({3}, {1, 2, 3}), known(i64({}, {0}))}, {f32({3}, {5, 3, 0})}, {exclusive = 1, reverse = 1})
check("TopK", {f32({4}, {3, 1, 3, 2}), known(i64({1}, {3}))}, {f32({3}, {3, 3, 2}), i64({3}, {0, 2, 3})})
check("MatMul", {f32({2, 1, 2}, {1, 2, 3, 4}), f32({2, 1}, {1, 10})}, {f32({2, 1, 1}, {21, 43})})
check("MatMul", {f32({2}, {1, 2}), f32({2, 2}, {1, 2, 3, 4})}, {f32({2}, {7, 10})})
check("Gemm", {f32({1, 2}, {1, 2}), f32({2, 2}, {1, 2, 3, 4}), f32({1}, {1})}, {f32({1, 2}, {13, 25})},
      {alpha = 2.0, beta = 3.0, transB = 1})
check("Einsum", {x23, f32({3}, {1, 10, 100})}, {f32({2}, {210, 543})}, {equation = "ij, j -> i"})
check("Conv", {f32({1, 1, 1, 3}, {1, 2, 3}), f32({1, 1, 1, 2}, {1, 10}), f32({1}, {5})}, {f32({1, 1, 1, 2}, {15, 37})},
      {pads = {0, 1, 0, 0}, strides = {1, 2}})
check("Conv", {f32({1, 2, 2}, {1, 2, 3, 4}), f32({2, 1, 1}, {2, 3})}, {f32({1, 2, 2}, {2, 4, 9, 12})}, {group = 2})
check("ConvTranspose", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 2}, {1, 10})}, {f32({1, 1, 4}, {1, 10, 2, 20})},
      {strides = {2}})
-- a window that the stride does not divide, cut before; one element a channel, of all of the window and of more
local window = f32({1, 1, 3}, {1, 10, 100})
check("ConvTranspose", {f32({1, 1, 2}, {1, 2}), window}, {f32({1, 1, 4}, {10, 102, 20, 200})},
      {strides = {2}, pads = {1, 0}})
check("ConvTranspose", {f32({1, 1, 1}, {3}), window}, {f32({1, 1, 2}, {30, 300})}, {strides = {2}, pads = {1, 0}})
check("ConvTranspose", {f32({1, 1, 1}, {3}), window}, {f32({1, 1, 4}, {3, 30, 300, 0})},
      {strides = {2}, output_padding = {1}})
-- of three elements one, and of four: what is odd of what is cut is cut before, or behind where SAME_UPPER asks for it
check("ConvTranspose", {f32({1, 1, 1}, {3}), window}, {f32({1, 1, 1}, {30})}, {output_shape = {1}})
check("ConvTranspose", {f32({1, 1, 2}, {1, 2}), window}, {f32({1, 1, 3}, {12, 120, 200})}, {output_shape = {3}})
check("ConvTranspose", {f32({1, 1, 2}, {1, 2}), window}, {f32({1, 1, 3}, {1, 12, 120})},
      {output_shape = {3}, auto_pad = "SAME_UPPER"})
check("ConvTranspose", {f32({1, 2, 1}, {1, 2}), f32({2, 1, 2}, {1, 2, 3, 4})}, {f32({1, 2, 2}, {1, 2, 6, 8})},
      {group = 2})
check("MaxPool", {f32({1, 1, 3}, {-1, -2, -3})}, {f32({1, 1, 2}, {-1, -3})},
      {kernel_shape = {2}, strides = {2}, ceil_mode = 1})
check("AveragePool", {f32({1, 1, 3}, {3, 6, 9})}, {f32({1, 1, 4}, {3, 4.5, 7.5, 9})},
      {kernel_shape = {2}, pads = {1, 1}})
check("AveragePool", {f32({1, 1, 2}, {3, 6})}, {f32({1, 1, 3}, {1.5, 4.5, 3})},
      {kernel_shape = {2}, pads = {1, 1}, count_include_pad = 1})
check("GlobalAveragePool", {f32({1, 1, 2, 2}, {1, 2, 3, 6})}, {f32({1, 1, 1, 1}, {3})})
check("QuantizeLinear", {f32({4}, {-1000, 1, 3, 1000}), f32({}, {2}), {"uint8", {}, {128}}},
      {{"uint8", {4}, {0, 128, 130, 255}}})
check("DequantizeLinear", {{"int8", {2, 2}, {1, 2, 3, 4}}, f32({2}, {1, 10})}, {f32({2, 2}, {1, 20, 3, 40})},
      {axis = 1})
check("MatMulInteger", {{"uint8", {1, 2}, {200, 255}}, {"int8", {2, 1}, {-128, 1}}, {"uint8", {}, {200}}},
      {{"int32", {1, 1}, {55}}})

-- ---- Attention, losses ----

local q1, k2, v2 = f32({1, 1, 1, 1}, {1}), f32({1, 1, 2, 1}, {0, math.log(3)}), f32({1, 1, 2, 1}, {4, 8})
check("Attention", {q1, k2, v2}, {f32({1, 1, 1, 1}, {7})}, {scale = 1.0}, 24)
check("Attention", {q1, k2, v2, {"bool", {1, 2}, {1, 0}}}, {f32({1, 1, 1, 1}, {4})}, {scale = 1.0}, 24)
-- nothing is seen
check("Attention", {q1, k2, v2, {"bool", {1, 2}, {0, 0}}}, {f32({1, 1, 1, 1}, {0})}, {scale = 1.0}, 24)
-- a mask that ends early
check("Attention", {q1, k2, v2, f32({1, 1}, {5})}, {f32({1, 1, 1, 1}, {4})}, {scale = 1.0}, 24)
check("Attention", {q1, k2, v2, false, false, false, i64({1}, {1})}, {f32({1, 1, 1, 1}, {4})}, {scale = 1.0}, 24)
-- Two heads of queries share one of keys, a past comes first, and later places are not seen.
check("Attention", {f32({1, 2, 2}, {1, 0, 1, 0}), f32({1, 2, 1}, {math.log(3), 5}), f32({1, 2, 1}, {8, 100}), false,
                    f32({1, 1, 1, 1}, {0}), f32({1, 1, 1, 1}, {4})},
      {f32({1, 2, 2}, {7, 6, 14869.3159 / 152.413159, 112 / 3}), f32({1, 1, 3, 1}, {0, math.log(3), 5}),
       f32({1, 1, 3, 1}, {4, 8, 100})}, {scale = 1.0, is_causal = 1, q_num_heads = 2, kv_num_heads = 1}, 24)
check("RotaryEmbedding", {f32({1, 1, 1, 4}, {1, 2, 3, 4}), f32({2, 1}, {5, 0}), f32({2, 1}, {5, 1}), i64({1, 1}, {1})},
      {f32({1, 1, 1, 4}, {-2, 1, 3, 4})}, {rotary_embedding_dim = 2}, 23)
check("RotaryEmbedding", {f32({1, 1, 4}, {1, 2, 3, 4}), f32({1, 1, 2}, {0, 1}), f32({1, 1, 2}, {1, 0})},
      {f32({1, 1, 4}, {-2, 1, 3, 4})}, {interleaved = 1, num_heads = 1}, 23)
local classes, wanted = f32({2, 2}, {-1, -2, -3, -4}), i64({2}, {1, 9})
check("NegativeLogLikelihoodLoss", {classes, wanted, f32({2}, {1, 10})}, {f32({}, {2})}, {ignore_index = 9})
check("NegativeLogLikelihoodLoss", {classes, i64({2}, {1, 0})}, {f32({2}, {2, 3})}, {reduction = "none"})
check("SoftmaxCrossEntropyLoss", {f32({1, 2}, {0, math.log(3)}), i64({1}, {0})},
      {f32({}, {math.log(4)}), f32({1, 2}, {-math.log(4), math.log(0.75)})})

-- ---- Images: resized, and read at places that are data ----

local row = f32({1, 1, 1, 2}, {1, 3})
check("Resize", {row, false, known(f32({4}, {1, 1, 2, 2}))}, {f32({1, 1, 2, 4}, {1, 1, 3, 3, 1, 1, 3, 3})}) -- nearest
check("Resize", {row, false, known(f32({1}, {2}))}, {f32({1, 1, 1, 4}, {1, 1.5, 2.5, 3})},
      {mode = "linear", axes = {3}})
check("Resize", {row, false, false, known(i64({4}, {1, 1, 1, 3}))}, {f32({1, 1, 1, 3}, {1, 2, 3})},
      {mode = "linear", coordinate_transformation_mode = "align_corners"})
check("Resize", {f32({4}, {1, 2, 3, 4}), false, known(f32({1}, {0.5}))}, {f32({2}, {1.625, 3.375})},
      {mode = "linear", antialias = 1})
check("Resize", {f32({4}, {1, 2, 3, 4}), false, known(f32({1}, {0.5}))}, {f32({2}, {1.40625, 3.59375})},
      {mode = "cubic"})
check("Resize", {f32({2}, {1, 3}), known(f32({2}, {0, 2})), false, known(i64({1}, {3}))}, {f32({3}, {1, 3, 9})},
      {coordinate_transformation_mode = "tf_crop_and_resize", extrapolation_value = 9.0})
check("Resize", {{"uint8", {2}, {1, 4}}, false, known(f32({1}, {2}))}, {{"uint8", {4}, {1, 2, 3, 4}}},
      {mode = "linear"})
check("Resize", {f32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), false, false, known(i64({2}, {1, 1}))}, {f32({1, 2}, {1, 3})},
      {keep_aspect_ratio_policy = "not_smaller", coordinate_transformation_mode = "asymmetric"})
-- indices by a table
check("Resize", {f32({5}, {1, 2, 3, 4, 5}), false, false, known(i64({1}, {3}))}, {f32({3}, {1, 3, 5})})
check("Upsample", {row, known(f32({4}, {1, 1, 1, 2}))}, {f32({1, 1, 1, 4}, {1, 1, 3, 3})}, {}, 9)
check("GridSample", {row, f32({1, 1, 3, 2}, {0, 0, 3, 0, nan, 0})}, {f32({1, 1, 1, 3}, {2, 0, 0})}, {align_corners = 1},
      20)
check("GridSample", {row, f32({1, 1, 2, 2}, {3, 0, -9, 5})}, {f32({1, 1, 1, 2}, {1, 1})},
      {mode = "nearest", padding_mode = "reflection", align_corners = 1}, 20)
check("GridSample", {row, f32({1, 1, 1, 2}, {9, 0})}, {f32({1, 1, 1, 1}, {3})},
      {mode = "bicubic", padding_mode = "border"}, 16)
check("AffineGrid", {f32({1, 2, 3}, {2, 0, 1, 0, 1, 0}), known(i64({4}, {1, 1, 1, 2}))},
      {f32({1, 1, 2, 2}, {0, 0, 2, 0})}, {}, 20)
check("RoiAlign", {f32({1, 1, 1, 4}, {1, 2, 3, 4}), f32({1, 4}, {0, 0, 3, 1}), i64({1}, {0})},
      {f32({1, 1, 1, 1}, {2.5})}, {sampling_ratio = 2, coordinate_transformation_mode = "output_half_pixel"})
-- As many places as fit: three of the first region, one of the second; of regions that are data no more than in one as
-- large as the image.
local regions, halves = f32({2, 4}, {0, 0, 3, 1, 1, 0, 2, 1}), {coordinate_transformation_mode = "output_half_pixel"}
for _, given in ipairs {regions, known(regions)} do
  check("RoiAlign", {f32({1, 1, 1, 4}, {1, 2, 3, 4}), given, i64({2}, {0, 0})}, {f32({2, 1, 1, 1}, {2.5, 2.5})}, halves)
  check("RoiAlign", {f32({1, 1, 1, 4}, {1, 2, 3, 4}), given, i64({2}, {0, 0})}, {f32({2, 1, 1, 1}, {2, 1.5})},
        {mode = "max", coordinate_transformation_mode = "output_half_pixel"})
end
check("RoiAlign", {f32({1, 1, 1, 4}, {1, 2, 3, 4}), f32({1, 4}, {0, 0, 8, 1}), i64({1}, {0})},
      {f32({1, 1, 1, 1}, {1.5})}, halves)
check("RoiAlign", {f32({1, 1, 1, 4}, {1, 2, 3, 4}), known(f32({1, 4}, {2, 1, 1, 0})), i64({1}, {0})},
      {f32({1, 1, 1, 1}, {0})})
check("DeformConv", {row, f32({1, 1, 1, 1}, {10}), f32({1, 2, 1, 2}, {0, 0, 0.5, 9})}, {f32({1, 1, 1, 2}, {20, 0})}, {},
      19)
check("Col2Im", {f32({1, 2, 2}, {1, 2, 3, 4}), known(i64({1}, {3})), known(i64({1}, {2}))}, {f32({1, 1, 3}, {1, 5, 4})},
      {}, 18)

-- Linear attention: what is remembered decays, and is corrected by what is read of it.
local function line3(...) return f32({1, select("#", ...), 1}, {...}) end
check("LinearAttention", {line3(1, 1), line3(1, 2), line3(3, 4)}, {line3(3, 11), f32({1, 1, 1, 1}, {11})},
      {q_num_heads = 1, kv_num_heads = 1, update_rule = "linear"}, 27)
check("LinearAttention",
      {line3(1, 1), line3(1, 2), line3(3, 4), f32({1, 1, 1, 1}, {0}), line3(0, math.log(0.5)), line3(1, 0.5)},
      {line3(6, 5), f32({1, 1, 1, 1}, {2.5})}, {q_num_heads = 1, kv_num_heads = 1, scale = 2.0}, 27)
check("CausalConvWithState", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 2}, {10, 1}), false, f32({1, 1, 1}, {5})},
      {f32({1, 1, 2}, {51, 12}), f32({1, 1, 1}, {2})}, {}, 27)

-- ---- Signals, and what is chosen by values that are known ----

check("HannWindow", {known(i64({}, {4}))}, {f32({4}, {0, 0.5, 1, 0.5})})
check("HammingWindow", {known(i64({}, {3}))}, {{"float64", {3}, {4 / 46, 1, 4 / 46}}},
      {periodic = 0, output_datatype = 11})
check("BlackmanWindow", {known(i64({}, {2}))}, {f32({2}, {0, 1})})
check("MelWeightMatrix", {known(i64({}, {2})), known(i64({}, {8})), known(i64({}, {8})), known(f32({}, {0})),
                          known(f32({}, {4}))}, {f32({5, 2}, {0, 0, 1, 0, 0, 1, 0, 0, 0, 0})})
check("DFT", {f32({1, 3, 1}, {1, 2, 3})}, {f32({1, 2, 2}, {6, 0, -1.5, math.sqrt(3) / 2})}, {onesided = 1})
check("DFT", {f32({1, 2, 2}, {6, 0, -1.5, math.sqrt(3) / 2}), known(i64({}, {3}))}, {f32({1, 3, 1}, {1, 2, 3})},
      {onesided = 1, inverse = 1})
check("DFT", {f32({1, 2, 2}, {1, 2, 3, 4}), known(i64({}, {4}))}, {f32({1, 4, 2}, {4, 6, 5, -1, -2, -2, -3, 5})},
      {axis = 1}, 17)
for _, signal in ipairs {f32({1, 3, 1}, {1, 2, 3}), f32({1, 3}, {1, 2, 3})} do
  check("STFT", {signal, known(i64({}, {1})), f32({2}, {1, 10})}, {f32({1, 2, 2, 2}, {21, 0, -19, 0, 32, 0, -28, 0})})
end
-- Constant weights are multiplied without their zero points, which are taken from the sums; what is wanted is as the
-- definition says.
do
  local M, K, N = 2, 5, 3
  local function bytes(count, t, first)
    local list = {}
    for k = 1, count do list[k] = (first + k * 37) % 256 - (t == "int8" and 128 or 0) end
    return list
  end
  for _, case in ipairs {{"uint8", "int8", {0, 0, 0}}, {"int8", "int8", {3, -128, 127}},
                         {"uint8", "uint8", {128, 0, 255}}, {"uint8", "uint8", {7}}} do
    local ta, tb, zeros = table.unpack(case)
    local a, b, sums, floats = bytes(M * K, ta, 5), bytes(K * N, tb, 11), {}, {}
    for m = 0, M - 1 do
      for c = 1, N do
        local sum = 0
        for k = 1, K do sum = sum + (a[m * K + k] - 9) * (b[(k - 1) * N + c] - (zeros[c] or zeros[1])) end
        sums[#sums + 1], floats[#floats + 1] = sum, sum * 0.5 * 0.25 * c + c
      end
    end
    local A, Z = {ta, {1, M, K}, a}, {ta, {}, {9}}
    local B, zero = known {tb, {K, N}, b}, known {tb, {#zeros}, zeros}
    check("MatMulInteger", {A, B, Z, zero}, {{"int32", {1, M, N}, sums}})
    check("com.microsoft.MatMulIntegerToFloat",
          {A, B, f32({}, {0.5}), known(f32({N}, {0.25, 0.5, 0.75})), Z, zero, known(f32({N}, {1, 2, 3}))},
          {f32({1, M, N}, floats)})
    local y = {}
    for k, sum in ipairs(sums) do
      local x = sum * 0.001953125 -- halves are rounded to even
      local whole = math.floor(x + 0.5)
      if whole - x == 0.5 and whole % 2 == 1 then whole = whole - 1 end
      y[k] = math.max(-128, math.min(127, whole + 4))
    end
    check("QLinearMatMul", {A, f32({}, {0.5}), Z, B, f32({}, {0.0078125}), zero, f32({}, {2}), {"int8", {}, {4}}},
          {{"int8", {1, M, N}, y}})
  end
  -- A padded image has its zero point around it.
  local image, weights, sums = {1, 2, 3, 4}, {-1, 2, 3, -4}, {}
  for row = 0, 2 do
    for column = 0, 2 do
      local sum = 0
      for k = 0, 3 do
        local r, c = row + k // 2 - 1, column + k % 2 - 1
        if r >= 0 and r < 2 and c >= 0 and c < 2 then sum = sum + (image[2 * r + c + 1] - 3) * weights[k + 1] end
      end
      sums[#sums + 1] = sum
    end
  end
  local X, W, Z = {"uint8", {1, 1, 2, 2}, image}, known {"int8", {1, 1, 2, 2}, weights}, {"uint8", {}, {3}}
  check("ConvInteger", {X, W, Z}, {{"int32", {1, 1, 3, 3}, sums}}, {pads = {1, 1, 1, 1}})
  local y = {}
  for k, sum in ipairs(sums) do y[k] = math.max(0, sum + 5 + 10) end
  check("QLinearConv", {X, f32({}, {0.5}), Z, W, known(f32({1}, {4})), known {"int8", {1}, {0}}, f32({}, {2}),
                        {"uint8", {}, {10}}, known {"int32", {1}, {5}}}, {{"uint8", {1, 1, 3, 3}, y}},
        {pads = {1, 1, 1, 1}})
  -- Weights that have zero points, one or one a channel: images of several channels, of groups, of one channel each.
  for _, c in ipairs {{2, 3, 1, 1, 2, "int8"}, {4, 4, 2, 1, 1, "uint8"}, {3, 6, 3, 2, 0, "int8"}} do
    local ci, co, groups, stride, padding, t = table.unpack(c)
    local per = ci // groups
    local side = (4 + 2 * padding - 2) // stride + 1
    for _, many in ipairs {false, true} do
      for _, xz in ipairs {0, 5} do
        local pixels, filters, points, sums = {}, {}, {}, {}
        for k = 1, ci * 16 do pixels[k] = k * 37 % 256 end
        for k = 1, co * per * 4 do filters[k] = k * 53 % 200 - (t == "int8" and 100 or 0) end
        for k = 1, many and co or 1 do points[k] = k * 3 + 1 end
        for o = 0, co - 1 do
          for row = 0, side - 1 do
            for column = 0, side - 1 do
              local sum = 0
              for k = 0, per * 4 - 1 do
                local r, s = row * stride + k % 4 // 2 - padding, column * stride + k % 2 - padding
                if r >= 0 and r < 4 and s >= 0 and s < 4 then
                  sum = sum + (pixels[(o // (co // groups) * per + k // 4) * 16 + r * 4 + s + 1] - xz)
                    * (filters[o * per * 4 + k + 1] - points[many and o + 1 or 1])
                end
              end
              sums[#sums + 1] = sum
            end
          end
        end
        local given = {{"uint8", {1, ci, 4, 4}, pixels}, known {t, {co, per, 2, 2}, filters}, {"uint8", {}, {xz}},
                       known {t, many and {co} or {}, points}}
        check("ConvInteger", given, {{"int32", {1, co, side, side}, sums}},
              {pads = {padding, padding, padding, padding}, strides = {stride, stride}, group = groups})
      end
    end
  end
end
-- Longer ones are products with tables, or two products, by the length; a long prime is one sum.
local function turned(list, length, bins, sign, scale)
  local values = {}
  for k = 0, bins - 1 do
    local re, im = 0, 0
    for x, z in ipairs(list) do
      local angle = sign * 2 * math.pi * ((x - 1) * k % length) / length
      re = re + z[1] * math.cos(angle) - z[2] * math.sin(angle)
      im = im + z[1] * math.sin(angle) + z[2] * math.cos(angle)
    end
    values[#values + 1], values[#values + 2] = re * scale, im * scale
  end
  return values
end
local function signal_of(count, is_complex)
  local flat, pairs_of = {}, {}
  for k = 1, count do
    local z = {k * k % 7 / 64, is_complex and k * 5 % 11 / 64 or 0}
    pairs_of[k] = z
    table.move(z, 1, is_complex and 2 or 1, #flat + 1, flat)
  end
  return flat, pairs_of
end
for _, length in ipairs {7, 60, 96} do
  local real, real_pairs = signal_of(length, false)
  local complex, complex_pairs = signal_of(length, true)
  check("DFT", {f32({1, length, 1}, real)},
        {f32({1, length // 2 + 1, 2}, turned(real_pairs, length, length // 2 + 1, -1, 1))}, {onesided = 1})
  check("DFT", {f32({length, 1, 2}, complex), false, known(i64({}, {0}))},
        {f32({length, 1, 2}, turned(complex_pairs, length, length, 1, 1 / length))}, {inverse = 1})
  local padded = length + length // 2
  for _, own in ipairs {padded, length // 2} do
    check("DFT", {{"float64", {1, length, 2}, complex}, known(i64({}, {own}))},
          {{"float64", {1, own, 2},
            turned(table.move(complex_pairs, 1, math.min(own, length), 1, {}), own, own, -1, 1)}})
  end
  check("STFT", {f32({1, length}, real), known(i64({}, {length})), false, known(i64({}, {length}))},
        {f32({1, 1, length // 2 + 1, 2}, turned(real_pairs, length, length // 2 + 1, -1, 1))})
end
do
  local length, list = 1523, {}
  for k = 1, 2 * length do list[k] = k == 5 and 1 or 0 end
  local values = {}
  for k = 0, length - 1 do
    local angle = 2 * math.pi * 2 * k / length
    values[#values + 1], values[#values + 2] = math.cos(angle), -math.sin(angle)
  end
  check("DFT", {f32({1, length, 2}, list)}, {f32({1, length, 2}, values)})
end
check("Compress", {x23, known {"bool", {2}, {0, 1}}}, {f32({2, 1}, {1, 4})}, {axis = 1})
check("Compress", {x23, known {"bool", {5}, {1, 0, 0, 0, 1}}}, {f32({2}, {0, 4})})
check("Unique", {known(f32({4}, {3, 1, 3, -0.0}))},
      {f32({3}, {0, 1, 3}), i64({3}, {3, 1, 0}), i64({4}, {2, 1, 2, 0}), i64({3}, {1, 1, 2})})
check("Unique", {known(i64({2, 3}, {5, 1, 5, 6, 2, 6}))},
      {i64({2, 2}, {5, 1, 6, 2}), i64({2}, {0, 1}), i64({3}, {0, 1, 0}), i64({2}, {2, 1})}, {axis = 1, sorted = 0})
check("TensorScatter", {f32({1, 3, 1}, {1, 2, 3}), f32({1, 2, 1}, {8, 9}), i64({1}, {2})}, {f32({1, 3, 1}, {9, 2, 8})},
      {mode = "circular"}, 24)
check("SwiGLU", {f32({1}, {0.5}), f32({1}, {4})}, {f32({1}, {2 / (1 + math.exp(-1))})}, {alpha = 2.0}, 27)

-- ---- Those of com.microsoft: products of random data by onnxruntime are in tests/long/networks/onnx_runtime.py ----

local function u8(shape, values) return {"uint8", shape, values} end
local function microsoft(op, ...) check("com.microsoft." .. op, ...) end
local function i32(shape, values) return {"int32", shape, values} end
local function scale(x) return f32({}, {x}) end
local function zero(x) return u8({}, {x}) end
microsoft("QLinearAdd", {u8({2}, {10, 255}), scale(0.5), zero(8), u8({1}, {4}), scale(1), zero(2), scale(0.25),
                         zero(3)}, {u8({2}, {15, 255})})
microsoft("QLinearMul", {u8({1}, {10}), scale(0.5), zero(8), u8({1}, {5}), scale(1), zero(2), scale(0.25), zero(3)},
          {u8({1}, {15})})
microsoft("QLinearLeakyRelu", {u8({2}, {0, 12}), scale(1), zero(10), scale(0.5), zero(20)}, {u8({2}, {10, 24})},
          {alpha = 0.5})
microsoft("QLinearSigmoid", {u8({1}, {10}), scale(1), zero(10), scale(0.25), zero(1)}, {u8({1}, {3})})
-- by a scale of 0
microsoft("QLinearMul", {u8({1}, {10}), scale(0.5), zero(8), u8({1}, {5}), scale(1), zero(2), known(scale(0)), zero(3)},
          {u8({1}, {255})})
check("ReduceMean", {f32({2, 0}, {}), known(i64({1}, {1}))}, {f32({2, 1}, {nan, nan})})
microsoft("QLinearConcat", {scale(0.5), zero(0), u8({1}, {3}), scale(1), zero(1), u8({2}, {8, 9}), scale(0.5), zero(8)},
          {u8({3}, {4, 0, 1})}, {axis = 0})
microsoft("QLinearAveragePool", {u8({1, 2, 1}, {5, 9}), scale(1), zero(1), scale(2), zero(0)}, {u8({1, 1, 1}, {3})},
          {kernel_shape = {2}, channels_last = 1})
microsoft("QLinearGlobalAveragePool", {u8({1, 1, 2}, {5, 9}), scale(1), zero(1), scale(2), zero(0)},
          {u8({1, 1, 1}, {3})})
microsoft("MatMulIntegerToFloat", {u8({1, 2}, {3, 4}), u8({2, 1}, {5, 6}), scale(0.5), scale(2), zero(1), zero(4),
                                   f32({1}, {10})}, {f32({1, 1}, {18})})
microsoft("DynamicQuantizeMatMul", {f32({1, 2}, {0, 255}), u8({2, 1}, {5, 6}), scale(2), zero(4), f32({1}, {10})},
          {f32({1, 1}, {1030})})
microsoft("QGemm", {u8({2, 1}, {3, 4}), scale(0.5), zero(1), u8({1, 2}, {5, 6}), scale(2), zero(4), i32({1}, {10})},
          {f32({1, 1}, {9})}, {alpha = 0.5, transA = 1, transB = 1})
microsoft("QGemm", {u8({1, 2}, {3, 4}), scale(0.5), zero(1), u8({2, 2}, {5, 5, 6, 7}), f32({2}, {2, 4}),
                    u8({2}, {4, 5}), false, scale(2), zero(3)}, {u8({1, 2}, {7, 9})})
-- Of one key the value is the result.
microsoft("QAttention", {u8({1, 1, 1}, {3}), u8({1, 3}, {9, 9, 5}), f32({3}, {0, 0, 10}), scale(0.5), scale(2), false,
                         zero(1), zero(4)}, {f32({1, 1, 1}, {12})}, {num_heads = 1})
-- One row of 16 weights in a block: 1 and 2 and then the zero point, 8.
microsoft("MatMulNBits", {f32({1, 16}, {1, 1, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}),
                          u8({1, 1, 8}, {0x21, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88}), f32({1}, {0.5})},
          {f32({1, 1}, {-6.5})}, {K = 16, N = 1, bits = 4, block_size = 16})
microsoft("FusedConv", {f32({1, 1, 2}, {1, -9}), f32({1, 1, 1}, {2}), f32({1}, {3}), f32({1, 1, 2}, {4, 5})},
          {f32({1, 1, 2}, {9, 0})}, {activation = "Relu"})
microsoft("FusedGemm", {f32({1, 1}, {2}), f32({1, 1}, {-3}), f32({1}, {1})}, {f32({1, 1}, {-0.5})},
          {activation = "LeakyRelu", activation_alpha = 0.1})
microsoft("FusedMatMul", {f32({2, 1}, {1, 2}), f32({1, 2}, {3, 4})}, {f32({1, 1}, {22})},
          {transA = 1, transB = 1, alpha = 2.0})
microsoft("FastGelu", {f32({1}, {0.5}), f32({1}, {0.5})}, {f32({1}, {0.841192})})
microsoft("QuickGelu", {f32({1}, {1})}, {f32({1}, {1 / (1 + math.exp(-2))})}, {alpha = 2.0})
microsoft("SkipLayerNormalization", {f32({1, 2}, {0, 1}), f32({1, 2}, {1, 2}), f32({2}, {2, 2}), f32({2}, {5, 5})},
          {f32({1, 2}, {3, 7})}, {epsilon = 0.0})
microsoft("SkipSimplifiedLayerNormalization", {f32({1, 2}, {3, 0}), f32({1, 2}, {0, 4}), f32({2}, {1, 1})},
          {f32({1, 2}, {0.848528, 1.131371})}, {epsilon = 0.0})
check("SimplifiedLayerNormalization", {f32({1, 2}, {3, 4}), f32({2}, {1, 1})}, {f32({1, 2}, {0.848528, 1.131371})},
      {epsilon = 0.0})
microsoft("EmbedLayerNormalization",
          {i32({1, 1}, {1}), false, f32({2, 2}, {9, 9, 0, 1}), f32({1, 2}, {1, 2}), false, f32({2}, {2, 2}),
           f32({2}, {5, 5}), i32({1, 1}, {1})}, {f32({1, 1, 2}, {3, 7}), i32({1}, {1})}, {epsilon = 0.0})
microsoft("MultiHeadAttention", {f32({1, 1, 1}, {0}), f32({1, 2, 1}, {0, 1}), f32({1, 2, 1}, {4, 8}),
                                 f32({3}, {math.log(3), 0, 10})}, {f32({1, 1, 1}, {17})}, {num_heads = 1, scale = 1.0})
microsoft("Attention", {f32({1, 2, 1}, {1, 2}), f32({1, 3}, {0, 0, 3})}, {f32({1, 2, 1}, {3, 4.5})},
          {num_heads = 1, unidirectional = 1})
microsoft("GroupQueryAttention", {f32({1, 1, 2}, {0, 0}), f32({1, 1, 1}, {0}), f32({1, 1, 1}, {8}),
                                  f32({1, 1, 1, 1}, {0}), f32({1, 1, 1, 1}, {4}), i32({1}, {1}), known(i32({1}, {2}))},
          {f32({1, 1, 2}, {6, 6}), f32({1, 1, 2, 1}, {0, 0}), f32({1, 1, 2, 1}, {4, 8})},
          {num_heads = 2, kv_num_heads = 1})
microsoft("RotaryEmbedding", {f32({1, 1, 2}, {1, 2}), i64({1}, {1}), f32({2, 1}, {1, 0}), f32({2, 1}, {0, 1})},
          {f32({1, 1, 2}, {-2, 1})})

microsoft("MultiHeadAttention", {f32({1, 1, 1, 3, 1}, {1, 2, 3})}, {f32({1, 1, 1}, {3})}, {num_heads = 1})
microsoft("MultiHeadAttention", {f32({1, 1, 1}, {1}), f32({1, 1, 1, 2, 1}, {2, 3})}, {f32({1, 1, 1}, {3})},
          {num_heads = 1})
microsoft("MRotaryEmbedding",
          {f32({1, 1, 2}, {1, 2}), i64({3, 1, 1}, {0, 1, 0}), f32({2, 1}, {1, 0}), f32({2, 1}, {0, 1})},
          {f32({1, 1, 2}, {-2, 1})}, {mrope_section = {0, 1, 0}})

-- ---- Those that other operators are nearly, norms and gates, weights of few bits ----

microsoft("QLinearWhere", {{"bool", {2}, {1, 0}}, u8({1}, {5}), scale(1), zero(1), u8({1}, {9}), scale(0.5), zero(1),
                           scale(2), zero(3)}, {u8({2}, {5, 5})})
microsoft("QLinearSoftmax", {u8({1, 2}, {7, 7}), scale(1), zero(0), scale(0.25), zero(1)}, {u8({1, 2}, {3, 3})},
          {axis = 1, opset = 13})
microsoft("QLinearReduceMean", {u8({1, 2}, {5, 9}), scale(1), zero(1), scale(2), zero(0)}, {u8({1}, {3})},
          {axes = {1}, keepdims = 0})
microsoft("QLinearConv", {u8({1, 2, 1}, {3, 4}), scale(1), zero(1), u8({1, 1, 1}, {7}), scale(0.5), zero(3), scale(2),
                          zero(1)}, {u8({1, 2, 1}, {3, 4})}, {channels_last = 1})
microsoft("NhwcMaxPool", {u8({1, 2, 2}, {3, 9, 4, 8})}, {u8({1, 1, 2}, {4, 9})}, {kernel_shape = {2}})
microsoft("NhwcConv", {f32({1, 2, 1}, {3, 4}), f32({1, 2, 1}, {1, 10})}, {f32({1, 1, 1}, {43})})
microsoft("TransposeMatMul", {f32({2, 1}, {1, 2}), f32({2, 1}, {3, 4})}, {f32({1, 1}, {11})}, {transA = 1})
microsoft("FusedMatMul", {f32({2, 1, 1}, {1, 2}), f32({1, 1, 1}, {3})}, {f32({1, 2, 1}, {3, 6})}, {transBatchA = 1})
microsoft("FusedMatMulActivation", {f32({1, 1}, {2}), f32({1, 1}, {-3})}, {f32({1, 1}, {0})}, {activation = "Relu"})
microsoft("BiasAdd", {f32({1, 1, 2}, {1, 2}), f32({2}, {3, 4}), f32({1, 1, 2}, {10, 20})}, {f32({1, 1, 2}, {14, 26})})
microsoft("BiasDropout", {f32({2}, {1, 2}), f32({2}, {3, 4})}, {f32({2}, {4, 6}), {"bool", {2}, {1, 1}}})
microsoft("BiasSplitGelu", {f32({1, 1, 2}, {4, 0}), f32({2}, {1, 1})}, {f32({1, 1, 1}, {5 * 0.8413447})})
microsoft("BiasSoftmax", {f32({1, 2}, {0, 1}), f32({1, 2}, {1, 0})}, {f32({1, 2}, {0.5, 0.5})}, {axis = 1})
microsoft("ScaledSiLU", {f32({1}, {1}), f32({}, {2})}, {f32({1}, {2 / (1 + math.exp(-2))})})
microsoft("SwiGLU", {f32({1, 2}, {9, 9})}, {f32({1, 1}, {2 / (1 + math.exp(-2)) * 3})},
          {limit = 2.0, activation_beta = 1.0})
microsoft("GatedAdd", {f32({1, 2}, {1, 2}), f32({1, 2}, {3, 4}), f32({1, 1}, {10})}, {f32({1, 2}, {31, 42})})
microsoft("GatedRMSNorm", {f32({1, 2}, {3, 4}), f32({1}, {2}), f32({1, 2}, {0, 0})}, {f32({1, 2}, {1, 1})},
          {epsilon = 0.0, activation = "sigmoid"})
microsoft("BranchwiseRMSNorm", {f32({1, 2}, {3, 4}), f32({2}, {2, 5})}, {f32({1, 2}, {2, 5})},
          {epsilon = 0.0, num_branches = 2})
microsoft("GroupNorm", {f32({1, 1, 2}, {0, 2}), f32({2}, {1, 2}), f32({2}, {5, 5})}, {f32({1, 1, 2}, {4, 7})},
          {groups = 1, epsilon = 0.0, activation = 0})
microsoft("SkipGroupNorm", {f32({1, 2, 1}, {0, 1}), f32({2}, {1, 2}), f32({2}, {5, 5}), f32({1, 2}, {0, 1})},
          {f32({1, 2, 1}, {4, 7}), f32({1, 2, 1}, {0, 2})},
          {groups = 1, epsilon = 0.0, activation = 0, channels_last = 0})
microsoft("LinearAttentionGate", {f32({1, 1}, {0}), f32({1}, {0}), f32({1}, {-1}), f32({1, 1}, {0})},
          {f32({1, 1}, {-math.log(2)}), f32({1, 1}, {0.5})})
microsoft("ComplexMul", {f32({1, 2}, {1, 2}), f32({1, 2}, {3, 4})}, {f32({1, 2}, {-5, 10})})
microsoft("Rfft", {f32({1, 2}, {1, 3})}, {f32({1, 2, 2}, {4, 0, -2, 0})}, {signal_ndim = 1})
microsoft("Irfft", {f32({1, 2, 2}, {4, 0, -2, 0})}, {f32({1, 2}, {1, 3})}, {signal_ndim = 1})
microsoft("IsAllFinite", {f32({2}, {1, nan}), f32({1}, {2})}, {{"bool", {}, {0}}})
microsoft("CDist", {f32({1, 2}, {0, 0}), f32({1, 2}, {3, 4})}, {f32({1, 1}, {5})}, {metric = "euclidean"})
microsoft("UnfoldTensor", {f32({3}, {1, 2, 3})}, {f32({2, 2}, {1, 2, 2, 3})}, {size = 2})
microsoft("ExpandDims", {f32({2}, {1, 2}), known(i32({}, {-1}))}, {f32({2, 1}, {1, 2})})
microsoft("Unique", {known(f32({3}, {2, 1, 2}))}, {f32({2}, {2, 1}), i64({3}, {0, 1, 0}), i64({2}, {2, 1})})
microsoft("Inverse", {f32({2, 2}, {0, 2, 4, 0})}, {f32({2, 2}, {0, 0.25, 0.5, 0})})
microsoft("CropAndResize", {f32({1, 1, 2, 2}, {0, 1, 2, 3}), f32({1, 4}, {0, 0, 1, 2}), i32({1}, {0}),
                            known(i32({2}, {1, 3}))}, {f32({1, 1, 1, 3}, {1, 2, 9})}, {extrapolation_value = 9.0})
microsoft("ConvTransposeWithDynamicPads", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 1}, {3}), known(i64({2}, {1, 0}))},
          {f32({1, 1, 1}, {6})})
microsoft("MatMulInteger16", {{"int16", {1, 1}, {300}}, {"int16", {1, 1}, {-300}}}, {i32({1, 1}, {-90000})})
microsoft("MatMulBnb4", {f32({1, 2}, {1, 10}), u8({1}, {0xF0}), f32({1}, {2})}, {f32({1, 1}, {-18})},
          {K = 2, N = 1, block_size = 16, quant_type = 1})
microsoft("GatherBlockQuantized", {u8({2, 1}, {0x21, 0x9A}), i64({1}, {-1}), f32({2, 1}, {1, 0.5})},
          {f32({1, 2}, {1, 0.5})}, {block_size = 16})
microsoft("QEmbedLayerNormalization",
          {i32({1, 1}, {1}), false, u8({2, 2}, {9, 9, 1, 2}), u8({1, 2}, {2, 4}), false, u8({2}, {3, 3}),
           u8({2}, {6, 6}), false, scale(1), scale(0.5), false, scale(1), scale(1),
           zero(1), zero(0), false, zero(1), zero(1)},
          {f32({1, 1, 2}, {3, 7}), i32({1}, {0})}, {epsilon = 0.0})
check("Det", {f32({2, 2, 2}, {0, 2, 4, 0, 1, 2, 2, 4})}, {f32({2}, {-8, 0})})
check("BitCast", {f32({1}, {1})}, {i32({1}, {0x3F800000})}, {to = 6}, 26)
check("MaxPool", {f32({1, 1, 2, 2}, {1, 7, 7, 2})}, {f32({1, 1, 1, 1}, {7}), i64({1, 1, 1, 1}, {2})},
      {kernel_shape = {2, 2}, storage_order = 1})
check("MaxUnpool", {f32({1, 1, 2}, {5, 7}), i64({1, 1, 2}, {1, 2})}, {f32({1, 1, 4}, {0, 5, 7, 0})},
      {kernel_shape = {2}, strides = {2}})
check("GlobalLpPool", {f32({1, 1, 2}, {3, 4})}, {f32({1, 1, 1}, {5})})
check("MaxRoiPool", {f32({1, 1, 1, 3}, {1, 5, 2}), f32({1, 5}, {0, 1, 0, 2, 0})}, {f32({1, 1, 1, 1}, {5})},
      {pooled_shape = {1, 1}})
check("ScaledTanh", {f32({1}, {0.5})}, {f32({1}, {2 * 0.7615942})}, {alpha = 2.0, beta = 2.0}, 9)
check("ImageScaler", {f32({1, 1, 1, 1}, {3})}, {f32({1, 1, 1, 1}, {7})}, {scale = 2.0, bias = {1.0}}, 9)

-- ---- Those of ai.onnx.ml ----

local function ml(op, ...) check("ai.onnx.ml." .. op, ...) end
ml("ArrayFeatureExtractor", {f32({2, 2}, {1, 2, 3, 4}), i64({1}, {1})}, {f32({2, 1}, {2, 4})})
ml("Binarizer", {f32({2}, {0.5, 0.6})}, {f32({2}, {0, 1})}, {threshold = 0.5})
ml("Scaler", {i64({1, 2}, {3, 4})}, {f32({1, 2}, {4, 15})}, {offset = {1.0, -1.0}, scale = {2.0, 3.0}})
ml("Imputer", {f32({1, 2}, {nan, 4})}, {f32({1, 2}, {7, 4})},
   {imputed_value_floats = {7.0}, replaced_value_float = nan})
ml("Normalizer", {f32({1, 2}, {3, 4})}, {f32({1, 2}, {0.6, 0.8})}, {norm = "L2"})
ml("OneHotEncoder", {i64({2}, {7, 1})}, {f32({2, 2}, {0, 1, 0, 0})}, {cats_int64s = {3, 7}})
ml("FeatureVectorizer", {f32({1, 2}, {1, 2}), f32({1, 1}, {3})}, {f32({1, 3}, {1, 2, 3})}, {inputdimensions = {2, 1}})
ml("LabelEncoder", {i64({2}, {5, 6})}, {f32({2}, {1.5, -2})},
   {keys_int64s = {3, 5}, values_floats = {0.5, 1.5}, default_float = -2.0})
ml("LinearRegressor", {f32({1, 2}, {1, 2})}, {f32({1, 1}, {12})}, {coefficients = {1.0, 5.0}, intercepts = {1.0}})
ml("LinearClassifier", {f32({1, 1}, {2})}, {i64({1}, {9}), f32({1, 2}, {-3, 4})},
   {coefficients = {2.0}, classlabels_ints = {4, 9}})
ml("LinearClassifier", {f32({1, 1}, {0})}, {i64({1}, {5}), f32({1, 3}, {0.25, 0.5, 0.25})},
   {coefficients = {1.0, 2.0, 3.0}, intercepts = {0.0, math.log(2), 0.0}, classlabels_ints = {4, 5, 6},
    post_transform = "SOFTMAX"})
-- Two trees: whether the first feature is at most 1; and a leaf.
local function trees_with(prefix, ids, more)
  local a = {nodes_treeids = {0, 0, 0, 1}, nodes_nodeids = {0, 1, 2, 0}, nodes_featureids = {0, 0, 0, 0},
             nodes_values = {1.0, 0.0, 0.0, 0.0}, nodes_modes = {"BRANCH_LEQ", "LEAF", "LEAF", "LEAF"},
             nodes_truenodeids = {1, 0, 0, 0}, nodes_falsenodeids = {2, 0, 0, 0},
             nodes_missing_value_tracks_true = {1, 0, 0, 0}}
  a[prefix .. "_treeids"], a[prefix .. "_nodeids"], a[prefix .. "_ids"] = {0, 0, 1}, {1, 2, 0}, ids
  a[prefix .. "_weights"] = {10.0, 20.0, 0.5}
  for key, value in pairs(more) do a[key] = value end
  return a
end
ml("TreeEnsembleRegressor", {f32({3, 1}, {1, 2, nan})}, {f32({3, 1}, {11.5, 21.5, 11.5})},
   trees_with("target", {0, 0, 0}, {n_targets = 1, base_values = {1.0}}))
ml("TreeEnsembleClassifier", {f32({2, 1}, {1, 2})}, {i64({2}, {7, 8}), f32({2, 3}, {10.5, 0, 0, 0.5, 20, 0})},
   trees_with("class", {0, 1, 0}, {classlabels_int64s = {7, 8, 9}}))
ml("TreeEnsembleClassifier", {f32({1, 1}, {1})}, {i64({1}, {8}), f32({1, 2}, {-9.5, 10.5})},
   trees_with("class", {1, 1, 1}, {classlabels_int64s = {7, 8}}))
ml("TreeEnsembleRegressor", {f32({2, 1}, {1, 2})}, {f32({2, 2}, {0.5, 0, 0.5, 20})},
   trees_with("target", {0, 1, 0}, {n_targets = 2, aggregate_function = "MIN"}))
-- A list of 300 nodes, each of which asks for one number: one loop, however deep; without any node that asks, none.
local function list_of(many)
  local a = {n_targets = 1}
  for _, name in ipairs {"nodeids", "treeids", "featureids", "values", "modes", "truenodeids", "falsenodeids"} do
    a["nodes_" .. name] = {}
  end
  for _, name in ipairs {"nodeids", "treeids", "ids", "weights"} do a["target_" .. name] = {} end
  for k = 0, 2 * many do
    local asks = k % 2 == 0 and k < 2 * many
    local function add(name, x) table.insert(a[name], x) end
    add("nodes_nodeids", k) add("nodes_treeids", 0) add("nodes_featureids", 0) add("nodes_values", k / 2)
    add("nodes_modes", asks and "BRANCH_EQ" or "LEAF")
    add("nodes_truenodeids", asks and k + 1 or 0) add("nodes_falsenodeids", asks and k + 2 or 0)
    if not asks then
      add("target_nodeids", k) add("target_treeids", 0) add("target_ids", 0) add("target_weights", k + 0.5)
    end
  end
  return a
end
ml("TreeEnsembleRegressor", {f32({4, 1}, {299, 0, 7.5, 150})}, {f32({4, 1}, {599.5, 1.5, 600.5, 301.5})}, list_of(300))
ml("TreeEnsembleRegressor", {f32({2, 1}, {1, 2})}, {f32({2, 1}, {0.5, 0.5})}, list_of(0))
-- A leaf that is reached stays: nothing is read for it on the levels below.
do
  local net = read(model("ai.onnx.ml.TreeEnsembleRegressor", {f32({1, 1}, {0})}, 1, list_of(3)))
  local text = net:plan({written = true}).prepared.functions[1].func:script()
  assert(text:find "T.if_then_else%(T.Select%([^?]-< 3, T.Select%(", text)
end
-- A tree of each result, or none.
ml("TreeEnsembleRegressor", {f32({2, 1}, {1, nan})}, {f32({2, 3}, {10, 0.5, 0, 10, 0.5, 0})},
   trees_with("target", {0, 0, 1}, {n_targets = 3}))
ml("TreeEnsembleRegressor", {f32({2, 1}, {2, 1})}, {f32({2, 2}, {10, 0.25, 5, 0.25})},
   trees_with("target", {0, 0, 1}, {n_targets = 2, aggregate_function = "AVERAGE"}))
ml("TreeEnsembleClassifier", {f32({1, 1}, {2})}, {i64({1}, {9}), f32({1, 3}, {0, -20, -0.5})},
   trees_with("class", {1, 1, 2}, {classlabels_int64s = {7, 8, 9}, class_weights = {-10.0, -20.0, -0.5}}))

-- Leaves in a list of their own: at most 1; else whether it is 2 or 3. The second tree begins with the latter.
local function leaves_with(more)
  local a = {nodes_featureids = {0, 0}, nodes_splits = f32({2}, {1, 0}), nodes_modes = {"uint8", {2}, {0, 6}},
             nodes_truenodeids = {0, 1}, nodes_falsenodeids = {1, 2}, nodes_trueleafs = {1, 1},
             nodes_falseleafs = {0, 1}, membership_values = f32({3}, {2, 3, nan}),
             leaf_weights = f32({3}, {10, 20, -5}), leaf_targetids = {0, 1, 1}, tree_roots = {0, 1}, n_targets = 2}
  for key, value in pairs(more) do a[key] = value end
  return a
end
local three = f32({3, 1}, {1, 3, 5})
ml("TreeEnsemble", {three}, {f32({3, 2}, {10, -5, 0, 40, 0, -10})}, leaves_with {})
ml("TreeEnsemble", {three}, {f32({3, 2}, {5, -2.5, 0, 20, 0, -5})}, leaves_with {aggregate_function = 0})
ml("TreeEnsemble", {three}, {f32({3, 2}, {10, -5, 0, 20, 0, -5})}, leaves_with {aggregate_function = 3})
ml("TreeEnsemble", {f32({1, 1}, {nan})}, {f32({1, 2}, {0, 40})},
   leaves_with {nodes_missing_value_tracks_true = {0, 1}})
ml("TreeEnsemble", {f32({1, 1}, {3})}, {f32({1, 2}, {0.5, 1})}, leaves_with {post_transform = 2})

-- Support vectors: 1 2 and 0 1.
local function vectors_with(more)
  local a = {n_supports = 2, support_vectors = {1.0, 2.0, 0.0, 1.0}, coefficients = {2.0, -1.0}, rho = {0.5}}
  for key, value in pairs(more) do a[key] = value end
  return a
end
for kernel, of in pairs {LINEAR = {{}, 5.5}, POLY = {{1.0, 1.0, 2.0}, 28.5}, RBF = {{math.log(2), 0.0, 0.0}, 1},
                         SIGMOID = {{0.0, math.log(3) / 2, 0.0}, 1}} do
  ml("SVMRegressor", {f32({1, 2}, {1, 1})}, {f32({1, 1}, {of[2]})},
     vectors_with {kernel_type = kernel, kernel_params = of[1]})
end
ml("SVMRegressor", {f32({2, 2}, {1, 1, -1, -1})}, {f32({2, 1}, {1, -1})}, vectors_with {one_class = 1})
ml("SVMRegressor", {f32({1, 2}, {1, 1})}, {f32({1, 1}, {1.5})}, {coefficients = {2.0, -1.0}, rho = {0.5}})
ml("SVMClassifier", {f32({1, 1}, {1})}, {i64({1}, {5}), f32({1, 3}, {-1, 1, 1})},
   {support_vectors = {1.0, 2.0, 3.0}, vectors_per_class = {1, 1, 1}, coefficients = {1.0, -1.0, 1.0, -2.0, 1.0, -1.0},
    rho = {0.0, 0.0, 2.0}, classlabels_ints = {7, 5, 3}})
ml("SVMClassifier", {f32({1, 1}, {1})}, {i64({1}, {5}), f32({1, 2}, {0.75, 0.25})},
   {support_vectors = {1.0, 1.0}, vectors_per_class = {1, 1}, coefficients = {1.0, 1.0}, rho = {-2.0}, prob_a = {-1.0},
    prob_b = {-math.log(3)}, classlabels_ints = {7, 5}})
ml("SVMClassifier", {f32({1, 1}, {1})}, {i64({1}, {9}), f32({1, 2}, {1.5, 2.5})},
   {coefficients = {1.0, 2.0}, rho = {0.5}, classlabels_ints = {4, 9}})
check("ai.onnx.preview.FlexAttention",
      {f32({1, 2, 1, 1}, {1, 1}), f32({1, 1, 2, 1}, {1, 2}), f32({1, 1, 2, 1}, {3, 5})},
      {f32({1, 2, 1, 1}, {8, 8})},
      {score_mod = {nodes = {{"Sub", {"s", "s"}, {"t"}}}, inputs = {{"s"}}, outputs = {{"t"}}, constants = {}},
       prob_mod = {nodes = {{"Add", {"p", "p"}, {"q"}}}, inputs = {{"p"}}, outputs = {{"q"}}, constants = {}}}, 26)

-- ---- Control flow and recurrence: made of other nodes ----

local function graph_of(nodes, inputs, outputs, constants)
  local g = {nodes = nodes, inputs = {}, outputs = {}, constants = constants}
  for i, name in ipairs(inputs) do g.inputs[i] = {name} end
  for i, name in ipairs(outputs) do g.outputs[i] = {name} end
  return g
end
-- What a graph does not give itself it reads from around it; its names may stand for other values there.
local function captures(inner)
  return {nodes = {{"If", {"c"}, {"y"}, inner}, {"Neg", {"x"}, {"t"}}},
          inputs = {{"c", "bool", {}}, {"x", "float32", {1}}}, outputs = {{"y"}}}
end
local branches =
  read(captures {then_branch = graph_of({{"Add", {"t", "two"}, {"z"}}}, {}, {"z"}, {two = {"float32", {1}, {2}}}),
                 else_branch = graph_of({}, {}, {"t"})})
for c, want in pairs {[0] = -5, -3} do
  local made, report =
    branches:run({c = ms.array({}, "bool", {c}), x = ms.array({1}, "float32", {5})}, {interpret = true})
  assert(made.y[0] == want and report.fixed[1] == "c")
end
local ok, message = pcall(branches.static, branches)
assert(not ok and message:find("If that gives y: input 1, c, depends on data", 1, true), message)
assert(branches:readers "t"[1].op == "If" and branches.nodes[1].op == "Neg",
       "what a graph in a node reads is read by the node")
ok, message = pcall(read, captures {then_branch = graph_of({{"Neg", {"lost"}, {"z"}}}, {}, {"z"}),
                                    else_branch = graph_of({}, {}, {"t"})})
assert(not ok and message:find("If that gives y reads lost, which nothing gives", 1, true), message)
ok, message = pcall(function()
  read(captures {then_branch = graph_of({{"Neither", {"x"}, {"z"}}}, {}, {"z"}),
                 else_branch = graph_of({{"Nor", {"x"}, {"z"}}}, {}, {"z"})}):static()
end)
assert(not ok and message:find("2 nodes are of operators", 1, true) and message:find("Neither", 1, true)
       and message:find("Nor ", 1, true), message)

-- A branch that is not taken may have an operator that is not known; where it is taken it is refused.
branches = read(captures {then_branch = graph_of({{"Neg", {"x"}, {"z"}}}, {}, {"z"}),
                          else_branch = graph_of({{"Neither", {"x"}, {"z"}, name = "never"}}, {}, {"z"})})
local function taken(c) return {c = ms.array({}, "bool", {c}), x = ms.array({1}, "float32", {5})} end
assert(branches:run(taken(1), {interpret = true}).y[0] == -5)
ok, message = pcall(branches.run, branches, taken(0), {interpret = true})
assert(not ok and message:find("Neither never: there is no operator Neither", 1, true), message)

local loop = graph_of({{"Add", {"v", "v"}, {"w"}}, {"Cast", {"i"}, {"f"}, {to = 1}}, {"Less", {"i", "three"}, {"go"}}},
                      {"i", "c", "v"}, {"go", "w", "f"}, {three = {"int64", {}, {3}}})
check("Loop", {known(i64({}, {2})), false, f32({1}, {5})}, {f32({1}, {20}), f32({2}, {0, 1})}, {body = loop})
check("Loop", {false, known {"bool", {}, {1}}, f32({1}, {5})}, {f32({1}, {80}), f32({4}, {0, 1, 2, 3})}, {body = loop})
local sums = graph_of({{"Add", {"s", "x"}, {"t"}}, {"Identity", {"t"}, {"u"}}}, {"s", "x"}, {"t", "u"})
check("Scan", {f32({}, {100}), f32({3}, {1, 2, 3})}, {f32({}, {106}), f32({3}, {106, 105, 103})}, {num_scan_inputs = 1,
      body = sums, scan_input_axes = {-1}, scan_input_directions = {1}, scan_output_directions = {1}})

-- Linear cells: h = x + 2 h; half of each gate.
local two_steps, w1, r1 = f32({2, 1, 1}, {1, 10}), f32({1, 1, 1}, {1}), f32({1, 1, 1}, {2})
local line = {activations = {"Affine"}, activation_alpha = {1.0}, activation_beta = {0.0}}
local function with(t, more)
  local all = {}
  for key, x in pairs(t) do all[key] = x end
  for key, x in pairs(more) do all[key] = x end
  return all
end
check("RNN", {two_steps, w1, r1}, {f32({2, 1, 1, 1}, {1, 12}), f32({1, 1, 1}, {12})}, line)
check("RNN", {two_steps, w1, r1}, {f32({2, 1, 1, 1}, {21, 10}), f32({1, 1, 1}, {21})},
      with(line, {direction = "reverse"}))
check("RNN", {two_steps, w1, r1, f32({1, 2}, {1, 2}), {"int32", {1}, {1}}, f32({1, 1, 1}, {3})},
      {f32({2, 1, 1, 1}, {10, 0}), f32({1, 1, 1}, {10})}, line)
check("RNN", {f32({1, 2, 1}, {1, 10}), f32({2, 1, 1}, {1, 1}), f32({2, 1, 1}, {2, 2})},
      {f32({1, 2, 2, 1}, {1, 21, 12, 10}), f32({1, 2, 1}, {12, 21})},
      {direction = "bidirectional", layout = 1, activations = {"Affine", "affine"}, activation_alpha = {1.0, 1.0},
       activation_beta = {0.0, 0.0}})
-- Constants of two directions; of the second step, past the end, nothing is multiplied.
check("RNN", {two_steps, known(f32({2, 1, 1}, {1, 3})), known(f32({2, 1, 1}, {2, 5})), known(f32({2, 2}, {0, 0, 1, 0})),
              {"int32", {1}, {1}}, f32({2, 1, 1}, {7, 2})},
      {f32({2, 2, 1, 1}, {15, 14, 0, 0}), f32({2, 1, 1}, {15, 14})},
      {direction = "bidirectional", activations = {"Affine", "affine"}, activation_alpha = {1.0, 1.0},
       activation_beta = {0.0, 0.0}})
local half = {activations = {"Affine", "Affine"}, activation_alpha = {0.0, 1.0}, activation_beta = {0.5, 0.0}}
local w3, r3 = f32({1, 3, 1}, {0, 0, 1}), f32({1, 3, 1}, {0, 0, 2})
check("GRU", {two_steps, w3, r3}, {f32({2, 1, 1, 1}, {0.5, 5.5}), f32({1, 1, 1}, {5.5})}, half)
check("GRU", {two_steps, w3, r3, f32({1, 6}, {0, 0, 1, 0, 0, 4})}, {f32({2, 1, 1, 1}, {2, 8.5})},
      with(half, {linear_before_reset = 1}))
local w4, r4 = f32({1, 4, 1}, {0, 0, 0, 1}), f32({1, 4, 1}, {0, 0, 0, 2})
check("LSTM", {two_steps, w4, r4}, {f32({2, 1, 1, 1}, {0.25, 2.75}), f32({1, 1, 1}, {2.75}), f32({1, 1, 1}, {5.5})},
      {activations = {"Affine", "Affine", "Affine"}, activation_alpha = {0.0, 1.0, 1.0},
       activation_beta = {0.5, 0.0, 0.0}})

-- More than a function takes.
local many, places = {}, {}
for k = 1, 100 do many[k], places[k] = known(f32({1}, {k})), k end
check("Concat", many, {f32({100}, places)}, {axis = 0})
local ones, sums = {}, {}
for k = 1, 50 do ones[k], sums[k] = 1, 2 ^ k - 1 end
check("RNN", {f32({50, 1, 1}, ones), f32({1, 1, 1}, {1}), r1}, {f32({50, 1, 1, 1}, sums)},
      {hidden_size = 1, activations = {"Affine"}, activation_alpha = {1.0}, activation_beta = {0.0}})

-- What is multiplied is quantized as it comes: 1 beside 10 as 26 of 255.
local function sigmoid(x) return 1 / (1 + math.exp(-x)) end
local function tanh(x) return 2 * sigmoid(2 * x) - 1 end
local hidden, remembered, given = 0, 0, {}
for step, x in ipairs {10 * 26 / 255, 10} do
  local gate = sigmoid(x + hidden)
  remembered = gate * (remembered + tanh(x + hidden))
  hidden = gate * tanh(remembered)
  given[step] = hidden
end
local units, per_one = known {"int8", {1, 1, 4}, {127, 127, 127, 127}}, known(f32({1}, {1 / 127}))
microsoft("DynamicQuantizeLSTM", {two_steps, units, units, false, false, false, false,
                                  false, per_one, known {"int8", {1},
                                  {0}}, per_one, known {"int8", {1}, {0}}},
          {f32({2, 1, 1, 1}, given), f32({1, 1, 1}, {hidden}), f32({1, 1, 1}, {remembered})})

-- ---- Networks: folding, and what is refused ----

-- x is flattened by a shape that is computed of its own: all but the Reshape is folded.
local net = read {nodes = {{"Shape", {"x"}, {"s"}}, {"Gather", {"s", "zero"}, {"rows"}},
                           {"Concat", {"rows", "rest"}, {"to"}, {axis = 0}}, {"Reshape", {"x", "to"}, {"y"}}},
                  inputs = {{"x", "float32", {"n", 2, 3}}}, outputs = {{"y"}},
                  constants = {zero = {"int64", {1}, {0}}, rest = {"int64", {1}, {-1}}}}
local plan = net:static {x = ms.array({4, 2, 3}, "float32")}
assert(#plan.steps == 1 and plan.values.y.shape[1] == 4 and plan.values.y.shape[2] == 6 and not next(plan.fixed))
ok, message = pcall(net.static, net)
assert(not ok and message:find("input x has extents [n, 2, 3], of which n is not known: give it by --dim n=N", 1, true),
       message)
net = read(model("Reshape", {f32({2, 3}), i64({1})}, 1))
assert(net:static({x2 = ms.array({1}, "int64", {6})}).fixed.x2,
       "a network that holds for an input's elements alone says so")

-- What depends on data, where a shape does: the second node's result is of the first's elements, which are not given.
ok, message = pcall(net.static, net)
assert(not ok and message:find("Reshape that gives y1: input 2, x2, depends on data", 1, true), message)

refuses("Nothing that gives y1: there is no operator Nothing", "Nothing", {f32({1}, {1})})
ok, message = pcall(function()
  read({nodes = {{"This", {"x"}, {"a"}, name = "first"}, {"That", {"a"}, {"b"}, domain = "other", name = "second"},
                 {"Neg", {"b"}, {"y"}}}, inputs = {{"x", "float32", {1}}}, outputs = {{"y"}}}):static()
end)
for _, part in ipairs {"2 nodes are of operators that are not known", "This first: there is no operator This",
                       "other.That second: there is no operator That of domain other"} do
  assert(not ok and message:find(part, 1, true), message)
end
refuses("shapes [2] and [3] do not broadcast", "Add", {f32({2}, {1, 2}), f32({3}, {1, 2, 3})})
refuses("its inputs are of float32 and int64", "Add", {f32({1}, {1}), i64({1}, {1})})
refuses("[2] does not fit [3]", "Reshape", {f32({2}, {1, 2}), known(i64({1}, {3}))})
refuses("axis 2 is not one of 1", "Softmax", {f32({2}, {1, 2})}, {axis = 2})
refuses("axis -inf is not one of 1", "ReduceSum", {f32({2}, {1, 2}), known(f32({1}, {-1 / 0}))}, nil, 13)
refuses("axis 0.5 is not one of 1", "ReduceSum", {f32({2}, {1, 2}), known(f32({1}, {0.5}))}, nil, 13)
refuses("index 2 of x2 is not in [-2, 1]", "Gather", {f32({2}, {1, 2}), i64({1}, {2})})
refuses("index 2 of x2 is not in [-2, 1]", "GatherElements", {f32({2}, {1, 2}), i64({1}, {2})})
refuses("index 3 of x2 is not in [-3, 2]", "GatherND", {x23, i64({1, 2}, {1, 3})})
refuses("index -3 of x2 is not in [-2, 1]", "GatherND", {x23, i64({1, 2}, {-3, 2})})
refuses("index 3 of x2 is not in [-3, 2]", "GatherND", {f32({1, 2, 3}, {0, 1, 2, 3, 4, 5}), i64({1, 1, 2}, {1, 3})},
        {batch_dims = 1})
refuses("index 3 of x2 is not in [-3, 2]", "ScatterND", {x23, known(i64({1, 2}, {1, 3})), f32({1}, {9})})
refuses("index 9223372036854775807 of x2 is not in [-2, 1]", "ScatterElements",
        {f32({2}, {1, 2}), i64({1}, {math.maxinteger}), f32({1}, {9})})
refuses("index -9223372036854775808 of x2 is not in [-2, 1]", "Gather", {f32({2}, {1, 2}), i64({1}, {math.mininteger})})
refuses("input x2 is not given", "Add", {f32({1}, {1}), {"float32", {1}, given = false}})
refuses("index -3 of x2 is not in [-2, 1]", "Gather", {f32({2}, {1, 2}), known(i64({1}, {-3}))})
refuses("index 9 of x2 is not in [0, 1]", "NegativeLogLikelihoodLoss", {classes, wanted})
refuses("3 heads of queries do not share 2 of keys", "Attention", {f32({1, 1, 3}, {1, 2, 3}), f32({1, 1, 2}, {1, 2}),
        f32({1, 1, 2}, {1, 2})}, {q_num_heads = 3, kv_num_heads = 2}, 24)
refuses("it has neither scales nor sizes", "Resize", {row})
refuses("mode is `area`, none of nearest, linear, cubic", "Resize", {row, false, known(f32({4}, {1, 1, 2, 2}))},
        {mode = "area"})
refuses("2 sizes for 4 axes", "Resize", {row, false, false, known(i64({2}, {1, 1}))})
refuses("input 3, x3, depends on data", "Resize", {row, false, {"float32", {4}, {1, 1, 2, 2}, given = false}})
refuses("read at more than 1024 places a side", "RoiAlign", {row, known(f32({1, 4}, {0, 0, 1e4, 1})), i64({1}, {0})})
for _, x in ipairs {nan, math.huge, -math.huge} do -- in an array that is given, too
  refuses(" of x2 is no finite number", "RoiAlign", {row, f32({1, 4}, {0, x, 1, 1}), i64({1}, {0})},
          {sampling_ratio = 1})
  refuses(" of x2 is no finite number", "RoiAlign", {row, known(f32({1, 4}, {0, 0, x, 1})), i64({1}, {0})})
end
refuses("elements of int4, which no array has", "Cast", {row}, {to = 22}, 21)
refuses("elements of float8e4m3fnuz, which no array has", "Cast", {row}, {to = 18}, 19)
refuses("elements of type 99, which no array has", "Cast", {row}, {to = 99}, 19)
refuses("nothing is there to be repeated along axis 0", "Pad", {f32({2}, {1, 2}), known(i64({2}, {-2, 3}))},
        {mode = "wrap"}, 19)
refuses("index 1 of x3 is not in [0, 0]", "RoiAlign", {row, f32({1, 4}, {0, 0, 1, 1}), i64({1}, {1})},
        {sampling_ratio = 1})
for _, many in ipairs {0, 2, -1, 1 << 31, math.maxinteger, math.mininteger} do
  refuses("num_outputs is " .. many .. ", and it has 1", "Split", {f32({4}, {1, 2, 3, 4})}, {num_outputs = many}, 18)
end
refuses("do not make 1 outputs of an extent of 4", "Split",
        {f32({4}, {1, 2, 3, 4}), known(i64({4}, {1 << 62, 1 << 62, 1 << 62, (1 << 62) + 4}))}, {}, 18)
refuses("it never ends", "Loop", {false, false, f32({1}, {5})}, {body = loop})
refuses("made of more than", "Loop", {known(i64({}, {1 << 40})), known {"bool", {}, {1}}, f32({1}, {5})},
        {body = graph_of({}, {"i", "c", "v"}, {"c", "v"})})
refuses("its body takes 3 values, and is given 2", "Loop", {known(i64({}, {1})), false}, {body = loop})
refuses("whether it goes on after step 1 depends on data", "Loop",
        {false, known {"bool", {}, {1}}, {"float32", {}, {5}, given = false}},
        {body = graph_of({{"Less", {"v", "v"}, {"go"}}}, {"i", "c", "v"}, {"go", "v"})})
refuses("W has extents [1, 1, 1], not [1, 2, 1]", "RNN", {two_steps, w1, r1}, {hidden_size = 2})
refuses("activation `Sine` is not known", "RNN", {two_steps, w1, r1}, {activations = {"Sine"}})
refuses("index 3 of x5 is not in [0, 2]", "RNN", {two_steps, w1, r1, false, {"int32", {1}, {3}}})
refuses("com.microsoft.MatMulNBits that gives y1: bits is 3, not 2, 4 or 8", "com.microsoft.MatMulNBits",
        {f32({1, 16}), u8({1, 1, 8}), f32({1}, {1})}, {K = 16, N = 1, bits = 3, block_size = 16})
refuses("[1, 1, 1, 2, 1] is not of 1 heads with 3 tensors", "com.microsoft.MultiHeadAttention",
        {f32({1, 1, 1, 2, 1}, {1, 2})}, {num_heads = 1})
refuses("sections of [1, 1, 1] for 1 pairs", "com.microsoft.MRotaryEmbedding",
        {f32({1, 1, 2}, {1, 2}), i64({3, 1, 1}, {0, 0, 0}), f32({1, 1}, {1}), f32({1, 1}, {0})},
        {mrope_section = {1, 1, 1}})
refuses("index 2 of x6 is not in [0, 1]", "com.microsoft.GroupQueryAttention",
        {f32({1, 1, 1}, {0}), f32({1, 1, 1}, {0}), f32({1, 1, 1}, {8}), false, false, i32({1}, {2}),
         known(i32({1}, {2}))}, {num_heads = 1, kv_num_heads = 1})
refuses("index 2 of x3 is not in [0, 1]", "TensorScatter",
        {f32({1, 3, 1}, {1, 2, 3}), f32({1, 2, 1}, {8, 9}), i64({1}, {2})}, {}, 24)
refuses("must be known before the network runs, as by --constant x1=NUMBER", "HannWindow",
        {{"int64", {}, {4}, given = false}})
refuses("input 1 is -1, not in [0, 16777216]", "HannWindow", {known(i64({}, {-1}))})
refuses("3 conditions for 2 elements", "Compress", {x23, known {"bool", {3}, {1, 1, 1}}}, {axis = 0})
refuses("input 1, x1, depends on data", "Unique", {{"float32", {2}, {1, 2}, given = false}})
refuses("frames of 4 in a signal of 3", "STFT",
        {f32({1, 3, 1}, {1, 2, 3}), known(i64({}, {1})), false, known(i64({}, {4}))})
refuses("update_rule is gated_delta, and input 5 is missing", "LinearAttention",
        {line3(1), line3(1), line3(1), false, false, line3(1)}, {q_num_heads = 1, kv_num_heads = 1}, 27)
refuses("its input is of int64; floats are expected before version 11", "Clip", {i64({1}, {1})}, {min = 0 / 0}, 7)
refuses("its input is of int32; floats are expected", "IsInf", {{"int32", {1}, {1}}})
refuses("has no blocks of", "DepthToSpace", {f32({1, 4, 1, 1}, {1, 2, 3, 4})}, {blocksize = 1 << 40})
refuses("the largest or smallest of elements of bool is not computed", "ArgMax", {{"bool", {1}, {1}}})
refuses("a bias of [2], of int32, for [1, 1]", "com.microsoft.QGemm",
        {u8({1, 1}, {1}), scale(1), zero(1), u8({1, 1}, {1}), scale(1), zero(1), i32({2}, {1, 2})})
refuses("matrices are expected", "com.microsoft.QGemm",
        {u8({1, 1, 1}, {1}), scale(1), zero(1), u8({1, 1}, {1}), scale(1), zero(1)})
refuses("1 elements have no 2 heads", "com.microsoft.QAttention",
        {u8({1, 1, 1}, {3}), u8({1, 3}, {9, 9, 5}), f32({3}, {0, 0, 10}), scale(0.5), scale(2)}, {num_heads = 2})
refuses("there is no operator AttnLSTM of domain com.microsoft", "com.microsoft.AttnLSTM", {f32({1, 1, 1}, {1})})
refuses("no operator NonMaxSuppression: how much it gives depends on data; cut", "NonMaxSuppression", {f32({1}, {1})})
refuses("Conv of domain com.microsoft.nchwc: it is of a layout of onnxruntime's own", "com.microsoft.nchwc.Conv",
        {f32({1}, {1})})
refuses("node 0 of tree 0 has a branch to no node", "ai.onnx.ml.TreeEnsembleRegressor", {f32({1, 1}, {1})},
        trees_with("target", {0, 0, 0}, {n_targets = 1, nodes_truenodeids = {9, 0, 0, 0}}))
refuses("its nodes are no trees", "ai.onnx.ml.TreeEnsembleRegressor", {f32({1, 1}, {1})},
        trees_with("target", {0, 0, 0}, {n_targets = 1, nodes_truenodeids = {0, 0, 0, 0}}))
refuses("feature 1 of rows of 1", "ai.onnx.ml.TreeEnsembleRegressor", {f32({1, 1}, {1})},
        trees_with("target", {0, 0, 0}, {n_targets = 1, nodes_featureids = {1, 0, 0, 0}}))
refuses("a weight of result 2, of node 2 of tree 0", "ai.onnx.ml.TreeEnsembleRegressor", {f32({1, 1}, {1})},
        trees_with("target", {0, 2, 0}, {n_targets = 2}))
refuses("its classes are texts: classlabels_int64s has none", "ai.onnx.ml.TreeEnsembleClassifier",
        {f32({1, 1}, {1})}, trees_with("class", {0, 1, 0}, {classlabels_strings = {"a", "b"}}))
refuses("node 0 has a branch to no node", "ai.onnx.ml.TreeEnsemble", {f32({1, 1}, {1})},
        leaves_with {nodes_falsenodeids = {2, 2}})
refuses("its nodes are no trees", "ai.onnx.ml.TreeEnsemble", {f32({1, 1}, {1})},
        leaves_with {nodes_falsenodeids = {0, 2}})
refuses("node 1 has no members", "ai.onnx.ml.TreeEnsemble", {f32({1, 1}, {1})},
        leaves_with {membership_values = f32({1}, {2})})
refuses("3 numbers for 2 vectors of 2 features", "ai.onnx.ml.SVMRegressor", {f32({1, 2}, {1, 1})},
        vectors_with {support_vectors = {1.0, 2.0, 3.0}})
refuses("class 0 has 4611686018427387904 vectors", "ai.onnx.ml.SVMClassifier", {f32({1, 1}, {1})},
        {vectors_per_class = {1 << 62, 1 << 62, 1 << 62}, classlabels_ints = {4, 5, 6}, coefficients = {1.0, 1.0},
         rho = {0.0, 0.0, 0.0}, support_vectors = {1.0}, kernel_type = "LINEAR"})
refuses("4 nodes with 4611686018427387904 weights each", "ai.onnx.ml.TreeEnsembleRegressor", {f32({1, 1}, {1})},
        trees_with("target", {0, 0, 0}, {n_targets = 1 << 62}))
refuses("2 numbers of vectors for 3 classes", "ai.onnx.ml.SVMClassifier", {f32({1, 1}, {1})},
        {support_vectors = {1.0, 2.0}, vectors_per_class = {1, 1}, coefficients = {1.0, 1.0}, rho = {0.0},
         classlabels_ints = {7, 5, 3}})
refuses("3 coefficients for 2 features and 1 results", "ai.onnx.ml.LinearRegressor", {f32({1, 2}, {1, 2})},
        {coefficients = {1.0, 5.0, 1.0}})
refuses("its keys are of int64, and its input is of float32", "ai.onnx.ml.LabelEncoder", {f32({1}, {5})},
        {keys_int64s = {3}, values_floats = {0.5}})
refuses("export the model without it, as with zipmap = False", "ai.onnx.ml.ZipMap", {f32({1}, {5})})
refuses("index 2 of x2 is not in [0, 1]", "ai.onnx.ml.ArrayFeatureExtractor", {f32({1, 2}, {1, 2}), i64({1}, {2})})
refuses("[2, 1] is not of square matrices of 1 to 1024 rows", "com.microsoft.Inverse", {f32({2, 1}, {1, 2})})
refuses("float16 has more or fewer bits than float32", "BitCast", {f32({1}, {1})}, {to = 10}, 26)
refuses("index 4 of x2 is not in [0, 3]", "MaxUnpool", {f32({1, 1, 2}, {5, 7}), i64({1, 1, 2}, {1, 4})},
        {kernel_shape = {2}, strides = {2}})
refuses("are put into [1, 1, 3]", "MaxUnpool",
        {f32({1, 1, 2}, {5, 7}), i64({1, 1, 2}, {1, 2}), known(i64({3}, {1, 1, 3}))},
        {kernel_shape = {2}, strides = {2}})
refuses("3 channels have no 2 groups", "com.microsoft.GroupNorm",
        {f32({1, 1, 3}, {1, 2, 3}), f32({3}, {1, 1, 1}), f32({3}, {1, 1, 1})}, {groups = 2, activation = 0})
refuses("activation is 2, neither 0 nor 1", "com.microsoft.GroupNorm",
        {f32({1, 1, 1}, {1}), f32({1}, {1}), f32({1}, {1})}, {groups = 1, activation = 2})
refuses("[2, 1] is added to [1, 1, 1]", "com.microsoft.SkipGroupNorm",
        {f32({1, 1, 1}, {1}), f32({1}, {1}), f32({1}, {1}), f32({2, 1}, {1, 2})}, {groups = 1, activation = 0})
refuses("quant_type is 2, neither 0 nor 1", "com.microsoft.MatMulBnb4",
        {f32({1, 2}, {1, 10}), u8({1}, {0}), f32({1}, {2})}, {K = 2, N = 1, block_size = 16, quant_type = 2})
refuses("bits is 3, not 2, 4 or 8", "com.microsoft.GatherBlockQuantized",
        {u8({2, 1}, {1, 2}), i64({1}, {0}), f32({2, 1}, {1, 1})}, {block_size = 16, bits = 3})
refuses("index 2 of x2 is not in [-2, 1]", "com.microsoft.GatherBlockQuantized",
        {u8({2, 1}, {1, 2}), i64({1}, {2}), f32({2, 1}, {1, 1})}, {block_size = 16})
refuses("a bias of [2] for 1 elements", "com.microsoft.BiasAdd",
        {f32({1, 1, 1}, {1}), f32({2}, {1, 2}), f32({1, 1, 1}, {1})})
refuses("windows of 4, 1 apart, of 3 elements", "com.microsoft.UnfoldTensor", {f32({3}, {1, 2, 3})}, {size = 4})
refuses("it is onesided, not normalized, of one dimension", "com.microsoft.Rfft", {f32({1, 2}, {1, 3})},
        {normalized = 1})
refuses("W has extents [1, 1, 3], not [1, 1, 4]", "com.microsoft.DynamicQuantizeLSTM",
        {two_steps, {"int8", {1, 1, 3}, {1, 1, 1}}, units, false, false, false, false, false, per_one, {"int8", {1},
         {0}},
         per_one, {"int8", {1}, {0}}})
refuses("input 9 has extents [2], not [1, 4]", "com.microsoft.DynamicQuantizeLSTM",
        {two_steps, units, units, false, false, false, false, false, f32({2}, {1, 1}), {"int8", {1}, {0}}, per_one,
         {"int8", {1}, {0}}})
refuses("input 7 is missing", "com.microsoft.QLinearAdd",
        {u8({1}, {1}), scale(1), zero(1), u8({1}, {1}), scale(1), zero(1)})
refuses("[1] beside [1, 1]", "com.microsoft.QLinearConcat",
        {scale(1), zero(1), u8({1, 1}, {1}), scale(1), zero(1), u8({1}, {1}), scale(1), zero(1)}, {axis = 1})
refuses("attribute kernel_shape is missing", "MaxPool", {f32({1, 1, 2}, {1, 2})})
refuses("attribute axis is no integer", "Softmax", {f32({2}, {1, 2})}, {axis = 0.5})
for attributes, why in pairs {
  [{output_shape = {1, 2, 3, 4}}] = "its attributes are not of 1 dimensions",
  [{output_padding = {-1}, strides = {2}}] = "stride 2, dilation 1, output_padding -1",
  [{auto_pad = "BLA"}] = "auto_pad is `BLA`, none of NOTSET, VALID, SAME_UPPER, SAME_LOWER",
} do
  refuses(why, "ConvTranspose", {f32({1, 1, 2}, {1, 2}), f32({1, 1, 3}, {1, 10, 100})}, attributes)
end
refuses("3 channels, weights of [1, 2, 1] and 1 groups do not fit", "Conv",
        {f32({1, 3, 1}, {1, 2, 3}), f32({1, 2, 1}, {1, 2})})
refuses("its input is of int64; floats are expected", "Exp", {i64({1}, {1})})
refuses("a step is 0", "Slice",
        {f32({2}, {1, 2}), known(i64({1}, {0})), known(i64({1}, {1})), known(i64({1}, {0})), known(i64({1}, {0}))})
refuses("is larger than is made", "ConstantOfShape", {known(i64({2}, {1 << 30, 1 << 30}))})
refuses("training is not run", "Dropout", {f32({1}, {1}), false, known {"bool", {}, {1}}})
