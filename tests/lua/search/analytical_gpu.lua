-- Proposals for GPUs: of two candidates that differ in one decision, the model prefers the right one; the first
-- proposal for a matrix product is built, deterministic, and spills nothing (where NVRTC is installed); `tune
-- --no-tune` gives it.
-- usage: analytical_gpu.lua
local ms = require "msched"
local te, tune, analytical = ms.te, ms.load "search.tune", ms.load "search.cost.analytical"

local TARGET = "cuda -arch=sm_80"
local target = ms.target(TARGET)
local machine = analytical.machine(target)

local function cost(func, sch) return (ms.estimate(func, sch.trace, machine)) end

local function less(what, good, bad)
  assert(good < 0.8 * bad, string.format("%s: %.0f against %.0f cycles", what, good, bad))
end

-- ---- Threads side by side ----

local X = te.placeholder({2048, 2048}, "float32", "X")
local copy = te.func("copy", {X, te.compute({2048, 2048}, function(i, j) return X[{i, j}] + 1 end, "Y")})

local function bound(rows, threads, wide)
  local sch = ms.schedule(copy)
  local i, j = sch:get_loops(sch:get_sblock "Y")
  local along, other = rows and i or j, rows and j or i
  local blocks, tx, v = sch:split(along, {ms.rest, threads, wide or 1})
  sch:reorder(other, blocks, tx, v)
  sch:bind(sch:fuse(other, blocks), "blockIdx.x")
  sch:bind(tx, "threadIdx.x")
  return cost(copy, sch)
end

less("neighbours along a row are one access", bound(false, 128), bound(true, 128))
less("threads fill warps", bound(false, 128), bound(false, 4))

-- ---- A product, by its decisions ----

local function sketches_of(func)
  local list = {}
  for i, s in ipairs(tune.open(func, target, {}).sketches) do list[i] = s.trace end
  return list
end

local gemm = ms.ops.func("matmul", {"1024", "1024", "1024"})
local plain, pipelined
for _, s in ipairs(sketches_of(gemm)) do
  if not s:text():find "software_pipeline" then plain = s elseif not pipelined then pipelined = s end
end
assert(plain and pipelined)

local function decided(sketch, i, j, k)
  local tiles = 0
  for _, d in ipairs(sketch:draws()) do
    if d.kind == "SamplePerfectTile" then
      tiles = tiles + 1
      sketch = sketch:with_decision(d.index, ({i, j, k})[tiles])
    elseif #d.decision == 1 then
      sketch = sketch:with_decision(d.index, {0})
    end
  end
  return sketch
end

local reading = ms.estimator(gemm, plain, machine)
local function product(i, j, k) return reading:cost(decided(plain, i, j, k)) end

local good = product({16, 1, 16, 1, 4}, {16, 1, 16, 1, 4}, {64, 4, 4})
less("waves fill the multiprocessors", good, product({2, 8, 16, 1, 4}, {16, 1, 16, 1, 4}, {64, 4, 4}))
less("accumulators in registers", good, product({64, 1, 16, 1, 1}, {64, 1, 16, 1, 1}, {64, 4, 4}))
less("no more accumulators than registers", good, product({2, 1, 16, 1, 32}, {2, 1, 16, 1, 32}, {64, 4, 4}))
less("shared memory is asked in turn by no bank", product({16, 1, 1, 8, 8}, {32, 1, 32, 1, 1}, {32, 8, 4}),
     product({32, 1, 32, 1, 1}, {16, 1, 1, 8, 8}, {32, 8, 4}))
less("tiles large enough to be used again", good, product({256, 1, 4, 1, 1}, {32, 1, 32, 1, 1}, {64, 4, 4}))
assert(product({1, 1, 32, 8, 4}, {1, 1, 64, 4, 4}, {64, 4, 4}) == math.huge) -- 2048 threads
assert(product({8, 1, 16, 2, 4}, {8, 1, 16, 2, 4}, {1, 32, 32}) == math.huge) -- a mebibyte of shared memory
local large = ms.ops.func("matmul", {"4096", "4096", "4096"})
local reading_large = ms.estimator(large, plain, machine)
less("no more sums than registers, however many steps they are of",
     10 * reading_large:cost(decided(plain, {32, 1, 16, 1, 8}, {16, 4, 16, 1, 4}, {128, 2, 16})),
     reading_large:cost(decided(plain, {16, 1, 8, 4, 8}, {8, 4, 32, 1, 4}, {256, 8, 2})))
local ahead =
  ms.estimator(gemm, pipelined, machine):cost(decided(pipelined, {16, 1, 16, 1, 4}, {16, 1, 16, 1, 4}, {64, 4, 4}))
assert(ahead < good, "copies that run ahead wait less")

-- The last draw is how far loops are unrolled: neighbours along the sum are then one load, and latencies are shared.
local function unrolled(choice)
  local trace = decided(plain, {64, 1, 8, 1, 8}, {8, 4, 32, 1, 4}, {256, 4, 4})
  local draws = trace:draws()
  return trace:with_decision(draws[#draws].index, {choice})
end
local function large_source(choice)
  local pool = ms.pool(large, {jobs = 1, target = TARGET})
  local made = pool:replay({{trace = unrolled(choice), seed = 1, candidate = 1}}, false)[1]
  pool:close()
  local kernel, path = ms.build(ms.apply(large, made.trace):func(), {target = TARGET, load = false}), os.tmpname()
  kernel:export(path .. ".cu")
  local file = io.open(path .. ".cu")
  local text = file:read "a"
  file:close()
  for _, ending in ipairs {"", ".cu", ".h"} do os.remove(path .. ending) end
  return text, kernel:resources()[1]
end
assert(reading_large:cost(unrolled(7)) < reading_large:cost(unrolled(0)))
assert(reading_large:cost(unrolled(2)) == reading_large:cost(unrolled(0)), "32 stores are less than one iteration's")
assert(not large_source(0):find("#pragma unroll", 1, true))
local source, resources = large_source(7)
assert(select(2, source:gsub("#pragma unroll 2\n", "")) == 1, "two of four iterations, of 512 stores each")
assert(select(2, source:gsub("#pragma unroll 4\n", "")) >= 2, "all in them")
assert((resources.spill_stores or 0) == 0)

-- Where a machine has tensor cores, what they multiply is read; elsewhere it is refused.
local A, B = te.placeholder({64, 64}, "float16", "A"), te.placeholder({64, 64}, "float16", "B")
local halves = te.func("halves", {A, B, ms.ops.matmul(A, B)})
local without, tensorized = setmetatable({tensor_products = 0}, {__index = machine}), 0
for _, s in ipairs(sketches_of(halves)) do
  local by_tensor_cores = s:text():find("warp_execution", 1, true) ~= nil
  if by_tensor_cores then tensorized = tensorized + 1 end
  local best = ms.estimator(halves, s, machine):best({seed = 1, budget = 500, most = 1, each = 1})[1]
  assert(best.cost > machine.launch and best.cost < math.huge)
  local ok, message = pcall(ms.estimator, halves, s, without)
  assert(ok ~= by_tensor_cores and (ok or message:find("not estimated", 1, true)), message)
end
assert(tensorized > 0)

-- Few results of long sums: parts of them side by side, whose addition is counted; tensor cores and others.
for _, type in ipairs {"float32", "float16"} do
  local func = ms.ops.func("matmul", {"256", "256", "8192", "dtype=" .. type, "accumulate=float32"})
  local whole, divided = math.huge, math.huge
  for _, s in ipairs(sketches_of(func)) do
    local least = ms.estimator(func, s, machine):best({seed = 1, budget = 2000, most = 1, each = 1})[1].cost
    if s:text():find("rfactor", 1, true) then divided = math.min(divided, least) else whole = math.min(whole, least) end
  end
  less("sums in parts, " .. type, divided, whole)
  assert(divided > 2 * machine.launch)
end

-- ---- A vector by a matrix ----

-- A block of one thread is one: no rule binds its loops to more.
local vector = ms.ops.func("matmul", {"1", "10", "392"})
local of_sums, of_tiles = math.huge, math.huge
for _, s in ipairs(sketches_of(vector)) do
  local draws, best = s:draws(), ms.estimator(vector, s, machine):best({seed = 1, budget = 500, most = 1, each = 1})[1]
  local alone = s
  for _, d in ipairs(draws) do
    if d.kind == "SamplePerfectTile" and #d.decision == 5 then
      local extent = 1
      for _, n in ipairs(d.decision) do extent = extent * n end
      alone = alone:with_decision(d.index, {1, 1, 1, 1, extent})
    end
  end
  if alone ~= s then less("a thread by itself", best.cost, ms.estimate(vector, alone, machine)) end
  local sums = s:text():find("msched.spatial_tile", 1, true)
  if sums then of_sums = math.min(of_sums, best.cost) else of_tiles = math.min(of_tiles, best.cost) end
end
less("sums shared out by lanes", of_sums, of_tiles)

-- What lanes read straight to registers comes from memory once, whatever the loops; a row's vector stays near.
local long = ms.ops.func("dense", {"1", "8192", "8192"})
local read = 4 * 8192 * 8192 / machine.dram_bytes_a_cycle
for _, s in ipairs(sketches_of(long)) do
  if s:text():find("msched.spatial_tile", 1, true) then
    for _, best in ipairs(ms.estimator(long, s, machine):best({seed = 1, budget = 500, most = 4, each = 4})) do
      local times = (best.cost - machine.launch) / machine.doubt / read
      assert(times > 1 and times < 1.35, string.format("a matrix that is read once takes %.2f times that", times))
    end
  end
end

-- ---- The order of tiles ----

-- Tiles of a persistent kernel that are side by side share rows and columns, which the device's memory gives once: the
-- nearer to a square they are, the fewer these are. What the second level holds is read once in any order.
local function order_cost(side, rows, columns)
  local hopper = ms.target "cuda -arch=sm_90a"
  local func = ms.ops.func("matmul", {side, side, side, dtype = "float16", accumulate = "float32"})
  for _, s in ipairs(tune.open(func, hopper, {}).sketches) do
    local trace, tiles = s.trace, {}
    if trace:text():find("wgmma_store_64x256_f32_global", 1, true) then
      for _, d in ipairs(trace:draws()) do if d.kind == "SamplePerfectTile" then tiles[#tiles + 1] = d.index end end
      trace = trace:with_decision(tiles[1], {side // 128 // rows, rows, 2, 1})
      trace = trace:with_decision(tiles[2], {side // 256 // columns, columns, 1, 1})
      trace = trace:with_decision(tiles[3], {side // 64, 4})
      return (ms.estimate(func, trace, analytical.machine(hopper)))
    end
  end
end

local square, by_rows, by_columns = order_cost(8192, 16, 8), order_cost(8192, 1, 32), order_cost(8192, 64, 1)
assert(square < by_rows and square < by_columns, "the order of tiles costs nothing")
assert(order_cost(2048, 16, 8) == order_cost(2048, 1, 8), "what the second level holds is read again")

-- ---- The register-pressure estimate ----

local function replayed(sketch, ...)
  local pool = ms.pool(gemm, {jobs = 1, target = TARGET})
  local made = pool:replay({{trace = decided(sketch, ...), seed = 1, candidate = 1}}, false)
  pool:close()
  return made[1]
end
local function resources_of(i, j, k, sketch)
  local made = {replayed(sketch or plain, i, j, k)}
  local kernel = ms.build(ms.apply(gemm, made[1].trace):func(), {target = TARGET}):resources()[1]
  assert(analytical.fits(gemm, target, made[1]) == not kernel.estimated_spills)
  return kernel
end
local few, many, all = resources_of({64, 1, 16, 1, 1}, {64, 1, 16, 1, 1}, {64, 4, 4}),
  resources_of({16, 4, 16, 1, 1}, {16, 1, 16, 1, 4}, {64, 4, 4}),
                       resources_of({8, 1, 8, 1, 16}, {4, 1, 8, 1, 32}, {64, 4, 4})
assert(not few.estimated_spills and few.estimated_registers < 64 and not many.estimated_spills)
assert(many.estimated_registers >= few.estimated_registers + 12, "accumulators take no registers")
assert(all.estimated_spills and all.estimated_registers == 255, "512 accumulators of a thread have registers")
-- Copies ahead from addresses that virtual threads share: each is kept all along their loop.
local ahead_of_many = resources_of({16, 8, 8, 1, 1}, {64, 4, 4, 1, 1}, {64, 4, 4}, pipelined)
assert(ahead_of_many.estimated_registers > few.estimated_registers + 60 and not ahead_of_many.estimated_spills,
       "addresses of copies take no registers")

-- A low estimate does not help a candidate that spills: of two proposals, the policy measures the one that fits. Tuning
-- without measuring chooses it too where there is no ptxas; where there is one, the other proposal is not assembled.
do
  local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")
  local candidates, build, assembled = analytical.candidates, ms.build, 0
  local function proposals()
    local spilling, fitting = replayed(plain, {8, 1, 8, 1, 16}, {4, 1, 8, 1, 32}, {64, 4, 4}),
      replayed(plain, {64, 1, 16, 1, 1}, {64, 1, 16, 1, 1}, {64, 4, 4})
    spilling.cost, spilling.tile, fitting.cost, fitting.tile = 1, "16 x 32", 1, "1 x 1"
    return spilling, fitting
  end
  local spilling, fitting = proposals()
  for _, first in ipairs {spilling.hash, fitting.hash} do
    analytical.candidates = function()
      local a, b = proposals()
      if first == a.hash then b.cost = 1.2 else a.cost = 1.2 end
      return first == a.hash and {a, b} or {b, a}, 2
    end
    local asked = {}
    tune.all({gemm}, {policy = "analytical", trials = 1, target = TARGET, simulate = true, db = support.new_path(),
      listen = function(e)
      if e.event == "trial" then asked[#asked + 1] = e.hash end
    end})
    assert(asked[1] == fitting.hash and not asked[2], "a proposal that spills is measured first")
    function ms.build(...)
      local kernel = build(...)
      return {resources = function(_, asks)
        if not asks then return kernel:resources() end
        assembled = assembled + 1
        error "NVRTC is missing"
      end}
    end
    local untuned = ms.tune(gemm, {no_tune = true, target = TARGET, db = support.new_path()})
    ms.build = build
    assert(untuned:schedule():hash() == fitting.hash, "without tuning, a proposal that spills is the first")
  end
  assert(assembled == 2, "a kernel that is estimated to spill is assembled")
  analytical.candidates = candidates
  support.remove_stores()
end

-- ---- Tensor cores ----

local HOPPER = ms.target "cuda -arch=sm_90a"
local hopper = analytical.machine(HOPPER)
local half = ms.ops.func("matmul", {"4096", "4096", "4096", dtype = "float16", accumulate = "float32"})
local function sketch_with(name, on, func)
  for _, s in ipairs(tune.open(func or half, on, {}).sketches) do
    if s.trace:text():find('"' .. name .. '"', 1, true) then return s.trace end
  end
  error("no sketch with " .. name)
end
-- Tiles, and decisions about copies: elements that a thread copies at once, TMA copies, a producer warp group for them,
-- blocks of a cluster that share them.
local function decide(sketch, tiles, lanes, boxes, producer, cluster)
  local at, by = 0,
    {["meta_schedule.cooperative_fetch"] = lanes, ["software_pipeline_tensor_copies"] = boxes,
     ["software_pipeline_producer"] = producer, ["software_pipeline_multicast"] = cluster or 1}
  for _, d in ipairs(sketch:draws()) do
    if d.kind == "SamplePerfectTile" then
      at = at + 1
      sketch = sketch:with_decision(d.index, tiles[at])
    elseif by[d.annotates] then
      for n, value in ipairs(d.attrs[1]) do
        if value == by[d.annotates] then sketch = sketch:with_decision(d.index, {n - 1}) end
      end
    end
  end
  return sketch
end
local wide, narrow = sketch_with("wgmma_64x256x16_f16f16f32", HOPPER), sketch_with("wgmma_64x64x16_f16f16f32", HOPPER)
local function groups(...) return ms.estimator(half, wide, hopper):cost(decide(wide, ...)) end
-- 128 x 256, two consumer warp groups, one producer
local best_known = groups({{8, 4, 2, 1}, {1, 16, 1, 1}, {64, 4}}, 8, 1, 1)
assert(best_known > 4096 ^ 3 / hopper.tensor_products / hopper.sms, "no tensor core is faster than it is")
assert(best_known < 1.6 * 4096 ^ 3 / hopper.tensor_products / hopper.sms, "nothing hinders it much")
less("wide products read less for each", best_known,
     ms.estimator(half, narrow, hopper):cost(decide(narrow, {{8, 8, 1, 1}, {8, 8, 1, 1}, {64, 4}}, 8, 1, 1)))
assert(best_known < 0.9 * groups({{8, 4, 2, 1}, {1, 16, 1, 1}, {64, 4}}, 2, 0, 0), "TMA copies cost threads nothing")
assert(best_known < groups({{8, 4, 2, 1}, {1, 16, 1, 1}, {64, 4}}, 8, 1, 0), "a producer warp group runs ahead")
-- Of neighbours along n the first input is shared, of those along m the second, whose tiles are larger.
local along_n, along_m = {{8, 4, 2, 1}, {1, 16, 1, 1}, {64, 4}}, {{8, 4, 2, 1}, {16, 1, 1, 1}, {64, 4}}
local alone, row, column = groups(along_n, 8, 1, 1), groups(along_n, 8, 1, 1, 2), groups(along_m, 8, 1, 1, 2)
assert(column < row and row < alone, "clusters read less from the second-level cache")
assert(alone == groups(along_m, 8, 1, 1), "without clusters both are alike")
local apart = {{32, 1, 2, 1}, {16, 1, 1, 1}, {64, 4}}
assert(groups(apart, 8, 1, 1, 2) == groups(apart, 8, 1, 1), "blocks that share no input gain nothing")
assert(groups({{1, 4, 8, 2}, {1, 16, 1, 1}, {64, 4}}, 8, 1, 1) == math.huge) -- 1152 threads
assert(groups({{8, 4, 2, 1}, {1, 16, 1, 1}, {2, 128}}, 8, 1, 1) == math.huge) -- mebibytes of shared memory
-- The registers that the rule leaves free are those that the model counts beside accumulators; with more, no block
-- launches.
assert(wide:text():find(string.format("<= %d and", 240 - hopper.tensor_registers), 1, true)
       and wide:text():find(string.format(" + %d) <= %d", hopper.tensor_registers, 512 - hopper.tensor_registers), 1,
                            true), "the rule has another number")
local greedy = setmetatable({tensor_registers = hopper.own_registers}, {__index = hopper})
assert(ms.estimator(half, wide, greedy):cost(decide(wide, {{8, 4, 2, 1}, {1, 16, 1, 1}, {64, 4}}, 8, 1, 1))
       == math.huge)
-- The same of bytes, in steps of as many bytes: twice as much a cycle, by wgmma; TF32 half as much.
local function of_type(name, inputs, output)
  local A, B, k = te.placeholder({4096, 4096}, inputs, "A"), te.placeholder({4096, 4096}, inputs, "B"),
    te.reduce_axis(4096, "k")
  local func = te.func("product", {A, B, te.compute({4096, 4096}, function(i, j)
    return te.sum(te.cast(A[{i, k}], output) * te.cast(B[{j, k}], output), k)
  end, "C")})
  return function(sketches, tiles, lanes)
    for _, s in ipairs(sketches(func)) do
      if s.trace:text():find('"' .. name .. '"', 1, true) then
        return ms.estimator(func, s.trace, hopper):cost(decide(s.trace, tiles, lanes, 1, 1))
      end
    end
    error("no sketch with " .. name)
  end
end
local function own(func) return tune.open(func, HOPPER, {}).sketches end
local function rounded(func)
  local space = ms.load "rules.space"
  local parts = space.parts(ms.load "rules.targets".context(HOPPER, ms.load "rules.targets".tensor_core))
  local list = {}
  for i, sch in ipairs(space.generate(func, parts)) do list[i] = {trace = sch.trace} end
  return list
end
local by_groups = {{8, 4, 2, 1}, {1, 16, 1, 1}, {64, 2}}
local bytes = of_type("wgmma_64x256x32_s8s8s32_trans", "int8", "int32")(own, by_groups, 16)
assert(bytes > 0.5 * best_known and bytes < 0.62 * best_known, "bytes take half as long as halves")
less("bytes are multiplied faster by warp groups than by warps", bytes,
     of_type("warp_mma_sync_16x16x32_s8s8s32_trans", "int8", "int32")(own, {{32, 1, 2, 4, 1}, {16, 1, 4, 4, 1},
                                                                            {64, 2, 1}}, 16))
by_groups[3] = {128, 4}
local tf32 = of_type("wgmma_64x256x8_tf32tf32f32_trans", "float32", "float32")(rounded, by_groups, 4)
assert(tf32 > 1.7 * best_known and tf32 < 2 * best_known, "TF32 takes twice as long as halves")
local ampere = sketch_with("warp_mma_sync_16x16x16_f16f16f32", target)
local function warps(...) return ms.estimator(half, ampere, machine):cost(decide(ampere, {...}, 8)) end
assert(warps({32, 1, 2, 4, 1}, {16, 1, 4, 4, 1}, {64, 2, 2})
       < 0.95 * warps({32, 1, 8, 1, 1}, {16, 1, 1, 16, 1}, {64, 2, 2}), "warps whose tiles are square read less")
assert(not analytical.cost_of(half, wide, setmetatable({tensor_products = 0}, {__index = hopper})),
       "there are no tensor cores")

-- What pads a product is computed as the rest is; yet tensor cores multiply 100 rows, and 28 beside, in less than
-- others take for the rows alone.
local function product_of(m, n, k)
  return ms.ops.func("matmul", {m, n, k, dtype = "float16", accumulate = "float32"})
end
local odd = product_of("4096", "4000", "4096")
local padded = sketch_with("wgmma_64x256x16_f16f16f32", HOPPER, odd)
assert(ms.estimator(odd, padded, hopper):cost(decide(padded, {{8, 4, 2, 1}, {1, 16, 1, 1}, {64, 4}}, 8, 1, 1))
       == best_known, "padding is counted")
local few_rows = product_of("100", "4096", "4096")
local by_warps, by_threads = math.huge, math.huge
for _, s in ipairs(tune.open(few_rows, HOPPER, {}).sketches) do
  local least = analytical.best(few_rows, HOPPER, {s.trace}, {seed = 1, budget = 500, most = 1, each = 1})[1].cost
  if s.trace:text():find("pad_einsum", 1, true) then
    by_warps = math.min(by_warps, least)
  else
    by_threads = math.min(by_threads, least)
  end
end
less("tensor cores, though some of it is padding", 2 * by_warps, by_threads)

-- Scores of attention stay in registers: softmax takes no longer than some products do, so that these decide, and are
-- half as dear of 8 bits.
local function attention_of(type)
  local func = ms.ops.func("attention", {"4", "16", "4096", "4096", "128", dtype = type})
  local s = tune.open(func, HOPPER, {}).sketches[1].trace
  local best = analytical.best(func, HOPPER, {s}, {seed = 1, budget = 500, most = 1, each = 1})[1]
  return best.cost, func, best.trace
end
local multiplying = 2 * 64 * 4096 * 4096 * 128 / hopper.tensor_products / hopper.sms
local exponentials = 64 * 4096 * 4096 / 16 / hopper.sms -- a multiprocessor has 16 a cycle
local attention, its_func, its_trace = attention_of "float16"
assert(attention > multiplying + 0.3 * exponentials and attention < 2 * (multiplying + exponentials), attention)
less("attention of 8 bits", attention_of "float8_e4m3fn", attention)
-- On a machine that multiplies and adds slowly, all of its time is that of a score's product, maximum, difference and
-- sum, of an accumulator's product, and of the conversions to 16 bits and back, as much as two of these.
local slow = analytical.machine(HOPPER)
slow.multiply_adds, slow.call = 1e-4, 0
local each = ms.estimate(its_func, its_trace, slow) * slow.multiply_adds * slow.sms * slow.warp / (64 * 4096 * 4096)
assert(each > 7 and each < 8, each)

-- ---- Reductions by threads ----

-- One block reduces as fast as a multiprocessor reads, however few its threads' results are; many blocks as fast as
-- memory gives.
local norm = ms.ops.suite("ops", {"NRM_4_b1"})[1]
local one_pass, two_passes = math.huge, math.huge
for _, s in ipairs(sketches_of(norm)) do
  local least = analytical.best(norm, target, {s}, {seed = 1, budget = 500, most = 1, each = 1})[1].cost
  if s:text():find("rfactor", 1, true) then
    two_passes = math.min(two_passes, least)
  else
    one_pass = math.min(one_pass, least)
  end
end
less("a reduction in two passes", 5 * two_passes, one_pass)
assert(two_passes > 4096 * 1024 * 4 / machine.dram_bytes_a_cycle, "all of it comes from memory")

-- ---- The best ----

local function best(func)
  return analytical.best(func, target, sketches_of(func), {seed = 1, budget = 4000, most = 30, each = 2})
end
local list, again = best(gemm), best(gemm)
assert(#list > 0 and #list == #again)
for i, c in ipairs(list) do
  assert(c.cost == again[i].cost and c.trace:text() == again[i].trace:text(),
         "proposals differ from one time to the next")
  assert(i == 1 or c.cost >= list[i - 1].cost)
end
assert(list[1].cost <= 1.05 * math.min(good, ahead), "the best proposal is worse than a candidate")
-- Arithmetic is what the best is bound by: powers of two leave many of 108 multiprocessors idle in the last wave.
assert(list[1].cost < 1.9 * 1024 ^ 3 / 32 / machine.multiply_adds / machine.sms + machine.launch, list[1].cost)

local first = analytical.ranked(half, HOPPER, {{hash = "a", sketch_trace = wide}, {hash = "b", sketch_trace = narrow}})
assert(first[1].cost < math.huge and first[1].cost <= first[2].cost and first[1].tile)

-- ---- Without tuning ----

local db = os.tmpname()
os.remove(db)
local small = ms.ops.func("matmul", {"256", "256", "256"})
local function untuned()
  local best = ms.tune(small, {no_tune = true, target = TARGET, db = db})
  os.execute("rm -rf " .. db .. "*")
  return best
end
first = untuned()
assert(tostring(first:schedule()):find('thread="threadIdx.x"', 1, true) and not first.seconds)
assert(first:schedule():hash() == untuned():schedule():hash(), "the first proposal differs from one time to the next")

local missing
for _, f in ipairs {small, gemm, large, ms.ops.func("conv2d", {"1", "28", "28", "64", "64", "3", "1", "1"})} do
  local task = {func = f, target = target, sketches = sketches_of(f)}
  local built
  for _, c in ipairs(analytical.best(f, target, task.sketches, {seed = 1, budget = 4000, most = 30, each = 2})) do
    local done, sch = pcall(ms.apply, f, c.trace)
    if done then built = ms.build(sch:func(), {target = TARGET}) break end
  end
  local measured, got = pcall(built.resources, built, true)
  if not measured then
    assert(got:find("NVRTC is missing", 1, true), got)
    missing = got
  else
    for _, kernel in ipairs(got) do
      assert(kernel.spill_stores == 0 and kernel.stack_bytes == 0,
             "the first proposal has no registers for its accumulators")
    end
  end
end
-- A convolution in four groups takes hardly more than one that multiplies as much: blocks of threads are of one group,
-- whose channels its tiles use again.
local function cheapest(words)
  local func = ms.ops.func("conv2d", words)
  local sketches, divided = sketches_of(func), 0
  for _, s in ipairs(sketches) do divided = divided + (s:text():find("{ms.rest, 64}", 1, true) and 1 or 0) end
  assert(divided == (words[10] and #sketches or 0), "groups are no iterations of their own")
  return analytical.best(func, target, sketches, {seed = 1, budget = 2000, most = 8, each = 1})[1].cost
end
local grouped, whole = cheapest {16, 14, 14, 256, 256, 3, 1, 1, 1, 4}, cheapest {16, 14, 14, 64, 256, 3, 1, 1}
assert(grouped < 1.3 * whole, string.format("%.0f cycles in groups, %.0f in none", grouped, whole))

-- Threads that copy elements of two bytes, each to a place of its own, take longer than a kernel that copies the image
-- with channels last, a thread's by way of its registers.
do
  local func = ms.ops.func("conv2d", {16, 28, 28, 128, 128, 3, 1, 1, layout = "NCHW", dtype = "float16"})
  local hopper, sketches = ms.target "cuda -arch=sm_90a", {}
  for i, s in ipairs(tune.open(func, hopper, {}).sketches) do sketches[i] = s.trace end
  local first = analytical.best(func, hopper, sketches, {seed = 1, budget = 1000, most = 20, each = 1})[1]
  assert(first.trace:text():find('"local", {', 1, true), "the first proposal copies element by element")
end

if missing then print("analytical_gpu: NVRTC skipped: " .. missing) end
print "analytical_gpu: ok"
