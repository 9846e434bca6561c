-- Operators of networks that are not of ONNX's own domain, and those that other operators nearly are, as
-- onnx_operators.lua has ONNX's own: against values written beside them; what is refused.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local read = dofile(here .. "/support/lua/onnx.lua").read
local support = dofile(here .. "/support/lua/onnx_operator.lua")
local model, check, refuses = support.model, support.check, support.refuses
local f32, i64, known = support.f32, support.i64, support.known
local nan = 0 / 0

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

-- ---- What is refused ----

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
refuses("a bias of [2], of int32, for [1, 1]", "com.microsoft.QGemm",
        {u8({1, 1}, {1}), scale(1), zero(1), u8({1, 1}, {1}), scale(1), zero(1), i32({2}, {1, 2})})
refuses("matrices are expected", "com.microsoft.QGemm",
        {u8({1, 1, 1}, {1}), scale(1), zero(1), u8({1, 1}, {1}), scale(1), zero(1)})
refuses("1 elements have no 2 heads", "com.microsoft.QAttention",
        {u8({1, 1, 1}, {3}), u8({1, 3}, {9, 9, 5}), f32({3}, {0, 0, 10}), scale(0.5), scale(2)}, {num_heads = 2})
refuses("there is no operator AttnLSTM of domain com.microsoft", "com.microsoft.AttnLSTM", {f32({1, 1, 1}, {1})})
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
refuses("input 7 is missing", "com.microsoft.QLinearAdd",
        {u8({1}, {1}), scale(1), zero(1), u8({1}, {1}), scale(1), zero(1)})
refuses("[1] beside [1, 1]", "com.microsoft.QLinearConcat",
        {scale(1), zero(1), u8({1, 1}, {1}), scale(1), zero(1), u8({1}, {1}), scale(1), zero(1)}, {axis = 1})
