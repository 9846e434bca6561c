-- Kernels of AMX's tiles of every kind: each is built, runs, and computes what the unscheduled function does. Where the
-- machine has AMX, it is judged there; elsewhere msched-amx is the program, with AMX_COUNTS=FILE: each kernel has done
-- what the case gives.
-- usage: msched-amx kernels.lua
local ms = require "msched"
local judge = dofile(arg[0]:gsub("[^/]*$", "") .. "judge.lua")
local te, ops = ms.te, ms.ops
judge.needs_tiles()

-- ---- Functions -----------------------------------------------------------------------------------------------------

local function named(name, given) return ops.func(name, given) end

local function grouped_queries()
  local Q, K, V = te.placeholder({4, 32, 64}, "bfloat16", "Q"), te.placeholder({2, 32, 64}, "bfloat16", "K"),
    te.placeholder({2, 32, 32}, "bfloat16", "V")
  return te.func("grouped_queries", {Q, K, V, ops.attention(Q, K, V)})
end

-- Lengths and widths that tiles do not divide, of heads that share keys, with a mask of the keys.
local function odd_lengths()
  local function input(name, shape) return te.placeholder(shape, "bfloat16", name) end
  local Q, K, V = input("Q", {2, 4, 21, 40}), input("K", {2, 2, 50, 40}), input("V", {2, 2, 50, 24})
  local lengths = te.placeholder({2}, "int32", "lengths")
  return te.func("odd_lengths", {Q, K, V, lengths, ops.attention(Q, K, V, {lengths = lengths})})
end

-- Two products, of tiles of 14 rows and of 16, whose result is one loop over lines: both in one function.
local function two_shapes()
  local X, W, V = te.placeholder({1, 4, 14, 64}, "int8", "X"), te.placeholder({1, 1, 64, 32}, "int8", "W"),
    te.placeholder({64, 32}, "int8", "V")
  local A, B = ops.conv2d(X, W, {accumulate = "int32"}), te.placeholder({32, 64}, "int8", "B")
  return te.func("two_shapes", {X, W, V, B, A, (ops.dense(B, te.compute({32, 64}, function(j, k)
    return V[{k, j}]
  end, "turned"), {accumulate = "int32"}))})
end

-- The product, a bias, a scale and a rectifier, rounded to bfloat16.
local function epilogue(rows, columns, depth)
  local X, W, bias = te.placeholder({rows, depth}, "bfloat16", "X"), te.placeholder({columns, depth}, "bfloat16", "W"),
    te.placeholder({columns}, "float32", "bias")
  local Y = ops.dense(X, W, {accumulate = "float32"})
  return te.func("epilogue", {X, W, bias, te.compute({rows, columns}, function(i, j)
    return te.cast(te.max(Y[{i, j}] * 0.5 + bias[j], 0), "bfloat16")
  end, "Y")})
end

local KERNELS = {
  {"tdpbssd", named("dense", {64, 64, 128, dtype = "int8", constant = false})},
  {"tdpbuud", named("dense", {32, 64, 64, dtype = "uint8", constant = false})},
  {"tdpbusd", named("dense", {20, 70, 36, dtype = "uint8", weight_dtype = "int8", constant = true})},
  {"tdpbsud", named("dense", {16, 128, 48, dtype = "int8", weight_dtype = "uint8", constant = false})},
  {"tdpbf16ps", named("dense", {33, 100, 50, dtype = "bfloat16", constant = false})},
  {"tdpbf16ps", named("dense", {64, 64, 64, dtype = "bfloat16", constant = true})},
  {"tdpfp16ps", named("dense", {20, 64, 40, dtype = "float16", accumulate = "float32", constant = false})},
  {"tdpbf16ps", named("batch_matmul", {3, 20, 32, 40, dtype = "bfloat16", transpose_b = true})},
  {"tdpbssd", named("conv2d", {1, 14, 14, 64, 32, 3, 1, 1, dtype = "int8", constant = true})},
  {"tdpbusd", named("conv2d", {2, 9, 7, 24, 20, 3, 2, 1, dtype = "uint8", weight_dtype = "int8", constant = false})},
  {"tdpbf16ps", named("conv2d", {1, 8, 16, 64, 64, 3, 1, 1, 1, 2, dtype = "bfloat16", constant = false})},
  {"tdpbf16ps", named("conv3d", {1, 4, 7, 14, 32, 16, 3, 1, 1, dtype = "bfloat16", constant = true})},
  {"tdpbf16ps", named("conv2d_transpose", {1, 8, 8, 32, 16, 4, 2, 1, dtype = "bfloat16", constant = false})},
  {"tdpbusd", named("quantized_conv2d", {1, 10, 16, 64, 32, 3, 1, 1, constant = true})},
  {"tdpbusd", named("quantized_dense", {17, 100, 64, constant = true})},
  -- rows that the second cache does not hold: several accumulators' columns are a packed panel
  {"tdpbf16ps", named("dense", {judge.target.l2_bytes // 1024 + 32, 512, 192, dtype = "bfloat16", constant = false})},
  {"tdpbf16ps", epilogue(32, 48, 64)},
  {"tdpbf16ps", epilogue(19, 33, 70)},
  {"tdpbf16ps", named("attention", {1, 2, 32, 64, 32, dtype = "bfloat16", causal = true}), "columns_first"},
  {"tdpbf16ps", grouped_queries(), "columns_first"},
  {"tdpbf16ps", named("attention", {1, 2, 33, 70, 48, dtype = "bfloat16", causal = true}), "columns_first"},
  {"tdpbf16ps", odd_lengths(), "columns_first"},
  {"tdpbf16ps", named("dense_nbits", {32, 64, 128, dtype = "bfloat16", products = "bfloat16", constant = false})},
  {"tdpbssd", two_shapes(), "amx_14x16", "amx_16x16"},
}

local CANDIDATES = 2
local kinds, kernels, skipped = 0, 0, 0
for n, case in ipairs(KERNELS) do
  local product, func = case[1], case[2]
  if product == "tdpfp16ps" and judge.target.tiles & 16 == 0 then
    skipped = skipped + 1
  else
    local list = judge.candidates(func, CANDIDATES, n, {table.unpack(case, 3)})
    if #case == 2 then list = judge.candidates(func, CANDIDATES, n) end
    assert(list and #list > 0, func:name() .. ": no candidate of tiles")
    local counts = {}
    for _, trace in ipairs(list) do
      local done = judge.count(function() judge.check(func, trace, {tolerance = 0.02}) end) or {}
      for name, times in pairs(done) do counts[name] = (counts[name] or 0) + times end
      kernels = kernels + 1
    end
    assert(not judge.counts or next(counts) == nil or counts[product] > 0, func:name() .. ": no " .. product)
    kinds = kinds + 1
  end
end
-- What a candidate whose sketch names all of the words does on so many threads; and its schedule.
local function count_threads(func, threads, words)
  local trace = judge.candidates(func, 1, 1, words)[1]
  local target = judge.target.text:gsub("%-num%-cores=%d+", "-num-cores=" .. threads)
  local kernel, arrays = ms.build(ms.apply(func, trace):func(), {target = target}), ms.arrays_for(func, 1)
  return judge.count(function() kernel:run(table.unpack(arrays)) end), ms.apply(func, trace):script()
end

-- A step of two by two accumulators loads four tiles for four products, and each thread configures the unit once in a
-- parallel loop, however many pieces of it it claims.
local function count_steps()
  local threads = 3
  local counts, text = count_threads(named("dense", {256, 128, 192, dtype = "bfloat16", constant = false}), threads)
  local products = 256 // 16 * (192 // 16) * (128 // 32)
  assert(counts.tdpbf16ps == products and counts.tileloadd + counts.tileloaddt1 == products, text)
  assert(counts.tilezero == counts.tilestored and counts.tilestored == 256 // 16 * (192 // 16), text)
  assert(counts.ldtilecfg == threads and counts.tilerelease == threads, counts.ldtilecfg .. " configurations\n" .. text)
end

-- Rows of attention are tiles of several threads, too.
local function count_attention()
  local threads, func = 3, named("attention", {1, 3, 64, 64, 32, dtype = "bfloat16"})
  local counts, text = count_threads(func, threads, {"columns_first"})
  assert(counts.tdpbf16ps == 3 * (64 // 16 * (64 // 16) + 64 // 16 * (32 // 16) * (64 // 32)), text)
  assert(counts.ldtilecfg == threads, counts.ldtilecfg .. " configurations\n" .. text)
end
if judge.counts and judge.performed().ldtilecfg > 0 then
  count_steps()
  count_attention()
end

print(string.format("%d kinds, %d kernels of AMX's tiles%s: ok", kinds, kernels,
                    skipped > 0 and ", but float16, of which this machine has none" or ""))
