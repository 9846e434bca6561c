-- What follows products on tensor cores: casts, a bias, an activation, a residual, computed where accumulators are and
-- stored from there, on three oracles: the interpreter runs the lowered function, the source compiled for the CPU
-- computes the same (RUN_KERNELS), and NVRTC, where it is installed, compiles it, without serializing wgmma and to
-- accesses of 16 bytes.
-- usage: msched epilogues.lua RUN_KERNELS DRAWS SEED
local ms = require "msched"
local te = ms.te
local tune, jobs_of = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../jobs.lua")
local files = dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")

local run_kernels, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local HOPPER = "cuda -arch=sm_90a"
local PERSISTENT = 2 -- thread blocks, or one: fewer than these small products have tiles

local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)

-- {inputs, result, m, n, k, what follows}
local PRODUCTS = {
  {"int8", "int8", 128, 256, 128, "relu"}, {"uint8", "int32", 128, 128, 192, "nothing"},
  {"float8_e4m3fn", "float8_e4m3fn", 128, 128, 128, "bias scale"},
  {"float32", "float32", 128, 128, 96, "bias gelu residual"}, {"float8_e5m2", "float16", 128, 192, 128, "nothing"},
  {"float16", "float16", 128, 256, 192, "nothing"}, {"bfloat16", "bfloat16", 256, 128, 128, "bias relu"},
  {"float16", "float16", 128, 192, 128, "bias gelu residual"}, {"float16", "float32", 192, 128, 128, "bias scale"},
  {"bfloat16", "float32", 128, 128, 192, "residual"}, {"float16", "int32", 64, 128, 128, "scale"},
}

local function product(inputs, result, m, n, k, follows)
  local sums, by_columns = inputs:find "int" and "int32" or "float32", not inputs:find "16"
  local A, r = te.placeholder({m, k}, inputs, "A"), te.reduce_axis(k, "k")
  local B = te.placeholder(by_columns and {n, k} or {k, n}, inputs, "B")
  local bias, R = te.placeholder({n}, "float32", "bias"), te.placeholder({m, n}, inputs, "R")
  local list, x = {A, B}, te.compute({m, n}, function(i, j)
    return te.sum(te.cast(A[{i, r}], sums) * te.cast(B[by_columns and {j, r} or {r, j}], sums), r)
  end, "C")
  local function then_compute(name, value) x = te.compute({m, n}, value(x), name) end
  if follows:find "bias" then
    list[#list + 1] = bias
    then_compute("D", function(c) return function(i, j) return c[{i, j}] + bias[{j}] end end)
  end
  if follows:find "scale" then then_compute("E", function(c) return function(i, j) return c[{i, j}] * 0.25 end end) end
  if follows:find "relu" then x = ms.ops.relu(x, "F") end
  if follows:find "gelu" then x = ms.ops.gelu(x, "F") end
  if follows:find "residual" then
    list[#list + 1] = R
    then_compute("G", function(c) return function(i, j) return c[{i, j}] + te.cast(R[{i, j}], "float32") end end)
  end
  if result ~= sums then
    then_compute("H", function(c) return function(i, j) return te.cast(c[{i, j}], result) end end)
  end
  list[#list + 1] = x
  return te.func("product", list)
end

-- Jobs of sketches with wgmma alone, kernels being persistent in two of three draws.
local function drawn(func)
  local rules = sources:path "rules.lua"
  files.write(rules, string.format([[
local ms, targets = require "msched", (require "msched").load "rules.targets"
local own = targets.tensor_core
ms.space(targets.changed(own, {
  multi_level_tiling_tensor_core = function(target)
    local p, groups = own.multi_level_tiling_tensor_core(target), {}
    for _, g in ipairs(p.groups) do
      if g.warps then
        g.blocks, g.boxes, g.producer, groups[#groups + 1] = {%d, 1, 0}, {1}, {1}, g
      end
    end
    p.groups = groups
    return p
  end,
}))]], PERSISTENT))
  local opened = tune.open(func, ms.target(HOPPER), {files = {rules}})
  local pool = ms.pool(func, {jobs = 1, target = HOPPER, files = {rules}})
  local made, _, script_error = pool:replay(jobs_of(opened, draws, seed), false)
  pool:close()
  assert(not script_error, script_error)
  return made
end

local function count_of(text, what)
  local count = 0
  for _ in text:gmatch(what) do count = count + 1 end
  return count
end

local straight, persistent, compiled, spilling = 0, 0, 0, 0
local stored_by_tma = 0
local held = 0 -- the most accumulators of a thread, of kernels without memory for all of a block
local tiles = {} -- kernels whose results leave by tiles of so many columns

-- By NVRTC: whole accesses alone store results that a thread has side by side.
local function compile(kernel, whole)
  local got = sources:compile(kernel)
  if not got then return end
  compiled, spilling = compiled + 1, spilling + (got[1].spill_stores + got[1].spill_loads > 0 and 1 or 0)
  assert(not got[1].serialized, "the groups of a wgmma are serialized")
  if not whole then return end
  kernel:export(sources:path "k.ptx")
  local ptx = files.read(sources:path "k.ptx")
  assert(count_of(ptx, "st%.global%.v4") > 0, "no access of 16 bytes stores results")
  assert(count_of(ptx, "st%.global%.[ubf]16") == 0, "results are stored one by one")
  os.remove(sources:path "k.ptx")
end

-- How lanes store what they hold of rows to a tile of shared memory, by bits of the result.
local TO_TILES = {["8"] = "%*%(uint16_t %*%)%([%w_]+_shared_dyn", ["16"] = "ms_stmatrix_x4%(",
                  ["32"] = "%*%(%a+2 %*%)%([%w_]+_shared_dyn"}

local function check(func, result)
  local written, seen, bits = 0, {}, result:match "float(8)" or result:match "%d+$"
  for i, c in ipairs(drawn(func)) do
    local sch = c and not seen[c.hash] and ms.apply(func, c.trace)
    local scheduled = sch and sch:func()
    local script = scheduled and scheduled:script() or ""
    if script:find("T.wgmma_mma", 1, true) then
      seen[c.hash], written = true, written + 1
      ms.check_lowered(func, scheduled, HOPPER, 1)
      local kernel = ms.build(scheduled, {target = HOPPER})
      assert(#kernel:resources() == 1, "a kernel more computes what follows")
      local path = sources:path(written .. ".cu")
      kernel:export(path)
      local text = files.read(path)
      local from_registers, by_tiles = script:find("msched.lane_stores", 1, true), script:match 'epilogue_tile": (%d+)'
      if from_registers then
        straight = straight + 1
        assert(text:find("ms_store_pairs_of_" .. bits, 1, true), "lanes store one by one")
      end
      if from_registers or by_tiles then
        held = math.max(held, math.tointeger(text:match "_accumulator%[(%d+)%];"))
      end
      if by_tiles then
        tiles[by_tiles] = (tiles[by_tiles] or 0) + 1
        assert(text:find(TO_TILES[bits]), "lanes store to the tile one by one")
      end
      local notes = table.concat(kernel:notes(), "\n")
      local by_tma = script:find('"tensor_store": 1', 1, true)
      assert((text:find("ms_tensor_store_2d(&", 1, true) ~= nil) == (by_tma ~= nil), notes)
      stored_by_tma = stored_by_tma + (by_tma and 1 or 0)
      local blocks = script:match '"software_pipeline_blocks": ([12])'
      if blocks and not notes:find("that do one tile after the other", 1, true) then
        persistent = persistent + 1
      end
      compile(kernel, from_registers or by_tiles and not by_tma)
    end
  end
  return written
end

-- Pixels are rows, which lie in three dimensions of the result.
local function convolution()
  local X, W = te.placeholder({2, 8, 8, 64}, "float16", "X"), te.placeholder({3, 3, 64, 128}, "float16", "W")
  local C = ms.ops.relu(ms.ops.conv2d(X, W, {pad = 1, accumulate = "float32"}), "F")
  local D = te.compute({2, 8, 8, 128}, function(n, h, w, c) return te.cast(C[{n, h, w, c}], "float16") end, "D")
  return te.func("convolution", {X, W, D})
end

-- A product for each of a batch, of which a warp group has several at once in some draws.
local function batched()
  local A, B = te.placeholder({4, 64, 64}, "float16", "A"), te.placeholder({4, 64, 64}, "float16", "B")
  local bias = te.placeholder({4, 64}, "float32", "bias")
  local C = ms.ops.batch_matmul(A, B, {accumulate = "float32"})
  local D = te.compute({4, 64, 64}, function(b, i, j) return te.cast(C[{b, i, j}] + bias[{b, j}], "bfloat16") end, "D")
  return te.func("batched", {A, B, bias, D})
end

local function check_all(func, result, what)
  sources:begin(func)
  local written = check(func, result)
  local agree, said = sources:agree()
  assert(written > 0 and agree == written, said)
  sources:finish()
  print(string.format("%s: %d agree on the CPU, %s", what, agree,
                      sources.missing and "NVRTC skipped" or "compiled by NVRTC"))
end

for _, p in ipairs(PRODUCTS) do
  check_all(product(table.unpack(p)), p[2], string.format("%s to %s, %d x %d x %d, %s", table.unpack(p)))
end
local of_products, by_tma = (tiles["32"] or 0) + (tiles["64"] or 0) + (tiles["128"] or 0), stored_by_tma
draws = draws + 1 -- of which one stores by tiles
check_all(convolution(), "float16", "float16 convolution to float16, relu")
assert((tiles["32"] or 0) + (tiles["64"] or 0) + (tiles["128"] or 0) > of_products and stored_by_tma > by_tma,
       "results of convolutions leave by no tiles")
held = 0
check_all(batched(), "bfloat16", "float16 products of a batch to bfloat16, bias")
assert(held > 64 * 64 // 128, "a warp group has no two products of a batch")
print(string.format("%d of %d spill; %d store from registers, %d by tiles of 32 columns, %d of 64, %d of 128, "
                    .. "%d by TMA; %d are persistent", spilling, compiled, straight, tiles["32"] or 0,
                    tiles["64"] or 0, tiles["128"] or 0, stored_by_tma, persistent))
assert(spilling <= math.max(1, compiled // 20), "products spill")
assert(straight > 0 and persistent > 0 and next(tiles) and stored_by_tma > 0)
print "epilogues: ok"
