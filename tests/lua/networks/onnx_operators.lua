-- Operators of networks: small models against values written beside them, on the interpreter and compiled; constants
-- that are folded; shapes that depend on an input's elements; what is refused, by node.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local read = dofile(here .. "/support/lua/onnx.lua").read
local support = dofile(here .. "/support/lua/onnx_operator.lua")
local model, check, refuses = support.model, support.check, support.refuses
local f32, i64, known = support.f32, support.i64, support.known
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
check("Not", {{"bool", {2}, {1, 0}}}, {{"bool", {2}, {0, 1}}}) -- a function of that name has none of TVMScript's
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
-- as float32: 10 * 0.7 is 7, 6 / 1.2 is 5, and lengths are whole where sizes say so
check("Resize", {f32({10}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), false, known(f32({1}, {0.7}))},
      {f32({7}, {0, 1, 2, 4, 5, 7, 8})}, {coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"})
check("Upsample", {f32({6}, {0, 1, 2, 3, 4, 5}), known(f32({1}, {1.2}))}, {f32({7}, {0, 0, 1, 2, 3, 4, 5})}, {}, 9)
local line = {}
for i = 1, 25 do line[i] = i - 1 end
check("Resize", {f32({25}, line), false, false, known(i64({1}, {7}))}, {f32({7}, {0, 4, 8, 12, 16, 20, 24})},
      {coordinate_transformation_mode = "align_corners", nearest_mode = "floor"})
-- the next above where it shrinks, before version 11
check("Resize", {f32({5}, {0, 1, 2, 3, 4}), known(f32({1}, {0.6}))}, {f32({3}, {0, 2, 4})}, {}, 10)
check("Dropout", {f32({2}, {3, 4})}, {f32({2}, {3, 4}), f32({2}, {1, 1})}, {ratio = 0.5}, 7)
check("Dropout", {f32({2}, {3, 4})}, {f32({2}, {3, 4}), {"bool", {2}, {1, 1}}}, {ratio = 0.5}, 10)
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
check("com.microsoft.DynamicQuantizeLSTM", {two_steps, units, units, false, false, false, false,
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
for _, op in ipairs {"Split", "ArgMax", "Softmax", "GatherElements", "Gather"} do
  refuses("its input is a scalar", op, {f32({}, {1}), op:find "Gather" and i64({}, {0}) or nil}, {axis = 0})
end
refuses("its input has 1 dimensions: images and channels", "InstanceNormalization",
        {f32({1}, {1}), f32({1}, {1}), f32({1}, {1})})
refuses("MatMulInteger that gives y1: input 2 is missing", "MatMulInteger", {{"uint8", {1, 2}, {1, 2}}})
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
refuses("no operator NonMaxSuppression: how much it gives depends on data; cut", "NonMaxSuppression", {f32({1}, {1})})
refuses("float16 has more or fewer bits than float32", "BitCast", {f32({1}, {1})}, {to = 10}, 26)
refuses("index 4 of x2 is not in [0, 3]", "MaxUnpool", {f32({1, 1, 2}, {5, 7}), i64({1, 1, 2}, {1, 4})},
        {kernel_shape = {2}, strides = {2}})
refuses("are put into [1, 1, 3]", "MaxUnpool",
        {f32({1, 1, 2}, {5, 7}), i64({1, 1, 2}, {1, 2}), known(i64({3}, {1, 1, 3}))},
        {kernel_shape = {2}, strides = {2}})
refuses("W has extents [1, 1, 3], not [1, 1, 4]", "com.microsoft.DynamicQuantizeLSTM",
        {two_steps, {"int8", {1, 1, 3}, {1, 1, 1}}, units, false, false, false, false, false, per_one, {"int8", {1},
         {0}},
         per_one, {"int8", {1}, {0}}})
refuses("input 9 has extents [2], not [1, 4]", "com.microsoft.DynamicQuantizeLSTM",
        {two_steps, units, units, false, false, false, false, false, f32({2}, {1, 1}), {"int8", {1}, {0}}, per_one,
         {"int8", {1}, {0}}})
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
