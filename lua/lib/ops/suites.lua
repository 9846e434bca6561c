-- Suites of named operators, for benchmarks and for tuning by one word: `msched tune suite:ops`. `ops` has the shapes
-- of the single-operator benchmark of Ansor (Zheng et al., OSDI 2020, section 7.1) as MetaSchedule keeps them, four of
-- each operator; `subgraphs` its convolution layers and transposed products, and the dense layers of BERT with their
-- followers; `products` square matrices of float32 and, for tensor cores, of short floats, whose sums are float32;
-- `ops_int8` and `ops_bf16` layers of networks in short types, uint8 by int8 and bfloat16, whose weights are constant;
-- `bert` the layers of BERT base at 128 tokens; `attention` five shapes of it; `llm_decode` the dense layers of a
-- language model of 4,096 channels, of weights of 4 and of 8 bits, for one row, by products of float32 (I4, I8), of
-- int24 (T4, T8) and of int8 (Q4, Q8).
-- Each is there with batch 1 and with batch 16, which multiplies the first extent.
local ms = msched
local named = ms.load "lua.lib.ops.named"
local function fail(format, ...) error(ms.where() .. string.format(format, ...), 0) end

local suites = {names = {"ops", "subgraphs", "products", "ops_int8", "ops_bf16", "bert", "attention", "llm_decode"}}

local BATCHES = {1, 16}

-- A code, the operator, and its arguments.
local LINES = {
  ops = {
    {"C1D", "conv1d", "1 256 64 128 3 2 1", "1 128 128 256 1 2 0", "1 64 256 256 5 1 2", "1 32 512 512 3 1 1"},
    {"C2D", "conv2d", "1 224 224 3 64 7 2 3", "1 56 56 64 64 1 1 0", "1 14 14 256 256 3 1 1", "1 7 7 512 512 3 1 1"},
    {"C3D", "conv3d", "1 16 224 224 3 64 7 2 3", "1 16 56 56 64 64 1 1 0", "1 16 14 14 256 256 3 1 1",
     "1 16 7 7 512 512 3 1 1"},
    {"GMM", "batch_matmul", "1 128 128 128", "1 512 32 512", "1 512 512 512", "1 1024 1024 1024"},
    {"GRP", "conv2d", "1 56 56 64 128 3 2 1 1 4", "1 56 56 64 64 1 1 0 1 4", "1 14 14 256 256 3 1 1 1 4",
     "1 7 7 512 512 3 1 1 1 4"},
    {"DIL", "conv2d", "1 224 224 3 64 7 2 3 2", "1 56 56 64 64 1 1 0 2", "1 14 14 256 256 3 1 1 2",
     "1 7 7 512 512 3 1 1 2"},
    {"DEP", "depthwise_conv2d", "1 112 112 32 3 1 1", "1 112 112 64 3 2 1", "1 14 14 512 3 2 1", "1 7 7 1024 3 1 1"},
    {"T2D", "conv2d_transpose", "1 4 4 512 256 4 2 1", "1 8 8 256 128 4 2 1", "1 16 16 128 64 4 2 1",
     "1 32 32 64 3 4 2 1"},
    {"CAP", "conv2d_capsule", "1 16 16 32 32 3 2 1", "1 8 8 32 32 3 1 1", "1 16 16 8 16 3 2 1", "1 8 8 16 16 3 1 1"},
    {"NRM", "norm", "1x256x256", "1x512x512", "1x1024x1024", "1x4096x1024"},
    {"SFM", "softmax", "256x256", "512x512", "1024x1024", "2048x2048"},
  },
  products = {
    {"F32", "batch_matmul", "1 256 256 256", "1 2048 2048 2048", "1 4096 4096 4096", "1 8192 8192 8192"},
    {"F16", "batch_matmul", "1 128 128 128 dtype=float16", "1 2048 2048 2048 dtype=float16",
     "1 4096 4096 4096 dtype=float16", "1 8192 8192 8192 dtype=float16"},
    {"B16", "batch_matmul", "1 128 128 128 dtype=bfloat16", "1 2048 2048 2048 dtype=bfloat16",
     "1 4096 4096 4096 dtype=bfloat16", "1 8192 8192 8192 dtype=bfloat16"},
  },
  subgraphs = {
    {"CBR", "conv2d_bn_relu", "1 224 224 3 64 7 2 3", "1 56 56 64 128 3 2 1", "1 28 28 128 256 1 2 0",
     "1 7 7 512 512 3 1 1"},
    {"TBG", "transpose_batch_matmul", "1 128 12 64", "1 128 16 64", "1 64 12 128", "1 128 12 128"},
    {"DBR", "dense_bias_relu", "128 768 768", "128 768 2304", "128 768 3072", "128 3072 768"},
  },
  bert = {
    {"DNS", "dense", "128 768 768 constant=true", "128 768 2304 constant=true", "128 768 3072 constant=true",
     "128 3072 768 constant=true"},
    {"ATT", "attention", "1 12 128 128 64"},
    {"SFM", "softmax", "1536x128"},
    {"NRM", "layer_norm", "128x768"},
    {"GEL", "gelu", "128x3072"},
  },
  attention = {
    {"ATT", "attention", "1 8 1024 1024 64", "1 16 128 128 64", "1 8 512 512 128 causal=true", "4 8 256 256 32",
     "1 4 2048 2048 64"},
  },
  llm_decode = {
    {"I4", "dense_nbits", "1 4096 4096", "1 11008 4096", "1 4096 11008"},
    {"I8", "dense_nbits", "1 4096 4096 bits=8", "1 11008 4096 bits=8", "1 4096 11008 bits=8"},
    {"T4", "dense_nbits", "1 4096 4096 products=int24", "1 11008 4096 products=int24", "1 4096 11008 products=int24"},
    {"T8", "dense_nbits", "1 4096 4096 bits=8 products=int24", "1 11008 4096 bits=8 products=int24",
     "1 4096 11008 bits=8 products=int24"},
    {"Q4", "dense_nbits", "1 4096 4096 products=int8", "1 11008 4096 products=int8", "1 4096 11008 products=int8"},
    {"Q8", "dense_nbits", "1 4096 4096 bits=8 products=int8", "1 11008 4096 bits=8 products=int8",
     "1 4096 11008 bits=8 products=int8"},
  },
}

-- Convolutions of ResNet-50, layers of MobileNet, products of BERT and of its attention.
local SHORT = {
  {"C2D", "conv2d", "1 56 56 64 64 1 1 0", "1 56 56 64 64 3 1 1", "1 28 28 128 128 3 1 1", "1 14 14 256 256 3 1 1",
   "1 7 7 512 512 3 1 1"},
  {"DEP", "depthwise_conv2d", "1 112 112 32 3 1 1", "1 14 14 512 3 1 1"},
  {"DNS", "dense", "128 768 768", "128 768 3072", "128 3072 768", "1 1024 1000"},
  {"GMM", "batch_matmul", "1 256 256 256", "1 1024 1024 1024", "12 128 128 64"},
}

-- The same with these words for each; products of batches have no constant.
local function with_words(words)
  local lines = {}
  for i, line in ipairs(SHORT) do
    lines[i] = {line[1], line[2]}
    for k = 3, #line do lines[i][k] = line[k] .. words .. (line[2] == "batch_matmul" and "" or " constant=true") end
  end
  return lines
end
LINES.ops_int8 = with_words(" dtype=uint8 weight_dtype=int8")
LINES.ops_bf16 = with_words(" dtype=bfloat16")

function suites.has(suite) return LINES[suite] ~= nil end

-- The members of a suite: {name, code, batch, operator, arguments, words}, the words those of the arguments; func()
-- makes a member's function.
function suites.members(suite)
  local lines = LINES[suite]
  if not lines then fail("there is no suite `%s`; there are %s", tostring(suite), table.concat(suites.names, ", ")) end
  local list = {}
  for _, line in ipairs(lines) do
    local code, operator = line[1], line[2]
    for shape = 3, #line do
      for _, batch in ipairs(BATCHES) do
        local m =
          {code = code, batch = batch, name = string.format("%s_%d_b%d", code, shape - 2, batch), operator = operator}
        m.arguments = line[shape]:gsub("^%d+", function(first) return tostring(math.tointeger(first) * batch) end)
        m.words = {}
        for word in m.arguments:gmatch "%S+" do table.insert(m.words, word) end
        function m.func() return named.func(operator, m.words, m.name) end
        list[#list + 1] = m
      end
    end
  end
  return list
end

-- A member with elements of another type.
local function with_type(suite, m, word)
  local type = word:match "=(.*)"
  if m.arguments:find("dtype=", 1, true) then
    fail("suite:%s: %s has a type of its own, so that %s cannot be chosen", suite, m.name, word)
  end
  local words = {word, table.unpack(m.words)}
  local name = m.name .. "_" .. type
  return {code = m.code, batch = m.batch, name = name, operator = m.operator, arguments = m.arguments .. " " .. word,
          words = words, func = function() return named.func(m.operator, words, name) end}
end

-- Those of a suite that words choose: codes (C2D) or names (C2D_1_b16), and batch=1 or batch=16; all without words.
-- dtype=float16 gives them elements of that type.
function suites.choose(suite, words)
  local members, batch, wanted, element_type = suites.members(suite), nil, {}, nil
  if type(words) ~= "table" then fail("suite:%s: the words are a list, not a %s", suite, type(words)) end
  for _, word in ipairs(words) do
    if type(word) ~= "string" then fail("suite:%s: a %s is no word", suite, type(word)) end
    if word:find "^dtype=" then
      element_type = word
      goto next
    end
    local number = word:match "^batch=(.*)$"
    local known = false
    for _, m in ipairs(members) do known = known or word == m.code or word == m.name or number == tostring(m.batch) end
    if not known then
      fail("suite:%s: `%s` is none of its codes or names, nor batch=1, batch=16 or a dtype=; `msched show suite:%s` \z
            lists them", suite, word, suite)
    end
    if number then batch = number else wanted[#wanted + 1], wanted[word] = word, true end
    ::next::
  end
  local list = {}
  for _, m in ipairs(members) do
    local chosen = #wanted == 0 or wanted[m.code] or wanted[m.name]
    if chosen and (not batch or batch == tostring(m.batch)) then
      list[#list + 1] = element_type and with_type(suite, m, element_type) or m
    end
  end
  return list
end

return suites
