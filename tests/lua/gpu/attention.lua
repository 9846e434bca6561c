-- Attention on tensor cores without a GPU: the fused sketches of random shapes and of chosen ones, on three oracles.
-- The interpreter runs the lowered function, the source compiled for the CPU computes the same (RUN_KERNELS), and
-- NVRTC, where it is installed, compiles it without spilling. What the rule does not fuse stays as it was.
-- usage: msched attention.lua RUN_KERNELS SHAPES SEED
local ms = require "msched"
local files = dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local te, normalize, named = ms.te, ms.load "lua.lib.ops.normalize", ms.load "lua.lib.ops.named"
local tune, jobs_of = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../jobs.lua")
local draws = dofile(arg[0]:match "^.*/" .. "../../support/lua/draws.lua")

local run_kernels, shapes, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local AMPERE, HOPPER = "cuda -arch=sm_80", "cuda -arch=sm_90a"
local RULE = "fuse_online_softmax_tensor_core"

local MOST_JUDGED = shapes > 3 and math.huge or 3 -- sketches of a function; all in long runs
local SLACK = 2048 -- bytes of shared memory that alignment may take

local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)

local function attention(heads, rows, columns, width, values, type, options)
  local Q, K, V = te.placeholder({heads, rows, width}, type, "Q"), te.placeholder({heads, columns, width}, type, "K"),
    te.placeholder({heads, columns, values}, type, "V")
  return te.func("attention", {Q, K, V, normalize.attention(Q, K, V, options)})
end

local function wide(e) return te.cast(e, "float32") end

-- Scores of queries' heads, two of which share keys; and what weights make of the values that they share.
local function shared_scores(Q, K)
  local heads, rows, width = table.unpack(Q.shape)
  local k = te.reduce_axis(width, "k")
  return te.compute({heads, rows, K.shape[2]}, function(h, i, c)
    return te.sum(wide(Q[{h, i, k}]) * wide(K[{h // 2, c, k}]), k)
  end, "scores")
end
local function weighted(P, V)
  local heads, rows, columns = table.unpack(P.shape)
  local j = te.reduce_axis(columns, "j")
  return te.compute({heads, rows, V.shape[3]}, function(h, i, d)
    return te.sum(P[{h, i, j}] * wide(V[{h // 2, j, d}]), j)
  end, "attention")
end

-- Two queries' heads share keys and values, and each sequence has a length of its own, of at least one key.
local function grouped(rows, columns, width)
  local Q, K, V = te.placeholder({4, rows, width}, "float16", "Q"), te.placeholder({2, columns, width}, "float16", "K"),
    te.placeholder({2, columns, width}, "float16", "V")
  local lengths = te.placeholder({2}, "int32", "lengths")
  local S = shared_scores(Q, K)
  local masked = te.compute({4, rows, columns}, function(h, i, c)
    return te.select(te.le(c, te.maximum(lengths[{h // 2}], 0)), S[{h, i, c}] * 0.25, te.min_value "float32")
  end, "masked")
  local Y = weighted(normalize.softmax(masked), V)
  return te.func("grouped", {Q, K, V, lengths, te.compute({4, rows, width}, function(h, i, d)
    return te.cast(Y[{h, i, d}], "float16")
  end, "Y")})
end

-- Of floats of 8 bits, and exact, so that what tensor cores round does not matter: a key counts where its score, by
-- scales of each head, is above 1, each that does so as much as any other. Two queries' heads share keys and values;
-- lengths: of keys.
local function chosen(type, rows, columns, width, values, causal, with_lengths)
  local Q, K = te.placeholder({2, rows, width}, type, "Q"), te.placeholder({1, columns, width}, type, "K")
  local V, q, v = te.placeholder({1, columns, values}, type, "V"), te.placeholder({2}, "float32", "q_scale"),
    te.placeholder({1}, "float32", "v_scale")
  local lengths = te.placeholder({2}, "int32", "lengths")
  local S = shared_scores(Q, K)
  local counted = te.compute({2, rows, columns}, function(h, i, c)
    local conditions = {te.gt(S[{h, i, c}] * q[h], 1)}
    if causal then conditions[#conditions + 1] = te.le(c, i) end
    if with_lengths then conditions[#conditions + 1] = te.le(c, te.maximum(lengths[h], 0) * 37) end
    return te.select(#conditions > 1 and te.all(table.unpack(conditions)) or conditions[1], te.const(0.0, "float32"),
                     te.min_value "float32")
  end, "counted")
  local Y = weighted(normalize.softmax(counted), V)
  local tensors = {Q, K, V, q, v}
  if with_lengths then tensors[#tensors + 1] = lengths end
  tensors[#tensors + 1] = te.compute({2, rows, values}, function(h, i, d) return Y[{h, i, d}] * v[0] end, "Y")
  return te.func("chosen", tensors)
end

-- Spaces of attention by warp groups alone, with these choices of TMA copies, a producer and tiles of columns; of
-- whether second products overlap with the next softmax, and two groups take turns: neither unless it is said. most: of
-- groups in a block.
local function by_groups(copies, columns, overlap, alternate, most)
  return string.format([[
local ms, targets = require "msched", (require "msched").load "rules.targets"
ms.space(targets.changed(targets.cuda, {%s = function(target)
  local form = targets.cuda.%s(target).forms[1]
  assert(form.groups[1].warps == 4)
  form.tensor_copies, form.producer, form.stages = {%d}, {%d}, {1}
  form.tiles = {{rows = 64, columns = %d}}
  form.overlap, form.alternate = {%d}, {%d}
  form.warps = %d
  return {forms = {form}}
end}))]], RULE, RULE, copies, copies, columns, overlap or 0, alternate or 0, most or 3)
end

-- The space of float32 without schedules that are not fused, whose sketches are many.
local BY_THREADS = [[
local ms, targets = require "msched", (require "msched").load "rules.targets"
ms.space(targets.changed(targets.cuda, {fuse_online_softmax_threads = function(target)
  return targets.changed(targets.cuda.fuse_online_softmax_threads(target), {few = 0})
end}))]]

-- Candidates that are fused, each sketch once. space: of these rules, a text.
local function fused(func, draws, target, space)
  local with = {}
  if space then
    files.write(sources:path "rules.lua", space)
    with = {sources:path "rules.lua"}
  end
  local opened = tune.open(func, ms.target(target), {files = with})
  local pool = ms.pool(func, {jobs = 1, target = target, files = with})
  local made, _, script_error = pool:replay(jobs_of(opened, draws, seed), false)
  pool:close()
  assert(not script_error, script_error)
  local list, seen = {}, {}
  for _, c in ipairs(made) do
    local tile = c and c.trace:json():match '"FuseOnlineSoftmax",%b[]'
    if tile and not seen[tile] then
      local sch = ms.apply(func, c.trace)
      local text = sch:func():script()
      local turned = text:find "float8" and text:find "wgmma_mma_registers" and 1 or 0 -- kernels before the fused one
      list[#list + 1], seen[tile] = {func = sch:func(), kernel = sch:kernels()[1 + turned], turned = turned}, true
    end
  end
  return list
end

local compiled = 0

local function compile(kernel)
  local got = sources:compile(kernel)
  if not got then return end
  compiled = compiled + 1
  for _, one in ipairs(got) do
    assert(one.spill_stores + one.spill_loads == 0, "a fused attention spills")
    assert(not one.serialized, "the products of a fused attention are serialized")
  end
end

-- So many of a list at most, as far apart as may be.
local function some_of(list, most)
  local some = {}
  for i = 1, math.min(#list, most) do some[i] = list[#list <= most and i or i * #list // most] end
  return some
end

local function has_parts(c) return c.func:script():find("_join", 1, true) ~= nil end

-- Judges a function's fused sketches, where there are many some of them; gives how many there are, and how many of them
-- have parts of the columns in one kernel, which another joins. causal_tiles: rows do not see all tiles. spoil: what
-- changes sources so that they are wrong.
local function check(func, draws, target, space, causal_tiles, spoil)
  target = target or AMPERE
  sources:begin(func)
  local all, in_parts, count = fused(func, draws, target, space), 0, 0
  for _, c in ipairs(all) do count = count + (has_parts(c) and 1 or 0) end
  local list = some_of(all, MOST_JUDGED)
  for i, c in ipairs(list) do
    ms.check_lowered(func, c.func, target, 1)
    local kernel = ms.build(c.func, {target = target})
    local asked = kernel:resources()
    local parts = has_parts(c)
    in_parts = in_parts + (parts and 1 or 0)
    local own = asked[1 + c.turned]
    assert(#asked == (parts and 2 or 1) + c.turned, "it is several kernels")
    assert(c.kernel.shared_bytes + SLACK >= own.shared_bytes,
           string.format("%d bytes of shared memory, the estimate was %d", own.shared_bytes, c.kernel.shared_bytes))
    for _, note in ipairs(kernel:notes()) do -- tiles of keys may be unrolled, by a draw
      assert(note:find("^loop k_0 is not unrolled") or note:find("^loop j_0 is not unrolled"), note)
    end
    kernel:export(sources:path(i .. ".cu"))
    if space and space ~= BY_THREADS then
      local text = files.read(sources:path(i .. ".cu"))
      local overlaps, turns = space:match "form.overlap, form.alternate = {(%d)}, {(%d)}"
      assert((text:find("ms_wgmma_wait_1()", 1, true) ~= nil) == (overlaps == "1"), "an overlap is not as asked for")
      assert((text:find("ms_named_arrive(", 1, true) ~= nil) == (turns == "1"), "turns are not as asked for")
      assert(text:find("_registers(", 1, true), "no warp group multiplies registers")
      local one_tile = c.func:script():find('in T.serial(1, annotations={"software_pipeline', 1, true) ~= nil
      local produces = not one_tile and space:find("producer, form.stages = {1}, {1}", 1, true) ~= nil
      assert((text:find("ms_elect_one() != 0", 1, true) ~= nil) == produces, "a producer is not as asked for")
    end
    if causal_tiles then
      local text = files.read(sources:path(i .. ".cu"))
      assert(text:find "ms_end_%d+ = [^;]*%- bx", "masked tiles run, or long blocks begin late")
    end
    if i == 1 or parts and in_parts == 1 then compile(kernel) end
  end
  local agree, said = sources:agree()
  assert(agree == #list, said)
  if spoil then sources:fail(#list, spoil, "spoilt sources") end
  sources:finish()
  return #all, count
end

assert(check(attention(2, 32, 64, 32, 32, "float16"), 2) == 2)
assert(check(attention(1, 32, 128, 64, 48, "bfloat16", {causal = true}), 1) == 1)
assert(check(grouped(16, 64, 32), 1) == 1)
assert(check(attention(1, 32, 32, 256, 256, "float16"), 1) == 1)
assert(check(attention(1, 64, 192, 64, 64, "float16"), 1, HOPPER, by_groups(1, 64)) == 1)
for _, copies in ipairs(draws.of({1}, {0})) do
  local func = attention(2, 192, 192, 64, 64, "float16", {causal = true})
  assert(check(func, 1, HOPPER, by_groups(copies, 64, 0, 0, 1), true) == 1) -- blocks of unlike ends
end

-- The second product goes on beside the next softmax, two groups take turns, and both.
for _, choice in ipairs(draws.of({3}, {1, 2})) do
  local overlap, alternate = choice & 1, choice >> 1
  local causal, type = choice == 3, choice == 2 and "bfloat16" or "float16"
  local rows, columns = causal and 256 or 128, causal and 256 or 320
  local func = attention(1, rows, columns, 64, choice == 1 and 128 or 64, type, {causal = causal})
  assert(check(func, 1, HOPPER, by_groups(1, choice == 3 and 128 or 64, overlap, alternate)) == 1)
end
if draws.all then assert(check(attention(1, 192, 100, 64, 64, "float16"), 1, HOPPER, by_groups(1, 64, 1, 0)) == 1) end

-- Floats of 8 bits: a kernel ahead writes values by columns, keys in the order in which registers hold their weights.
-- Two keys that change places there show.
assert(check(chosen("float8_e4m3fn", 70, 100, 64, 64, true, true), 1, HOPPER, by_groups(1, 64, 1, 1), false,
  function(path)
  local text, count = files.read(path):gsub("_local%[([24])%] = ", function(place)
    return string.format("_local[%s] = ", place == "2" and "4" or "2")
  end)
  assert(count == 2)
  files.write(path, text)
end) == 1)
do
  local count, in_parts = check(chosen("float8_e5m2", 64, 512, 64, 64), 2, HOPPER, by_groups(1, 64))
  assert(count == 2 and in_parts == 1, "no warp groups have parts of the columns")
end
assert(check(chosen("float8_e4m3fn", 64, 128, 32, 192, true), 1, HOPPER) == 1) -- products add in place

-- Lengths that no tile divides: the last tiles are whole, columns that are none weigh nothing, and rows that are none
-- are not stored. TMA sets to zero what is outside.
assert(check(attention(2, 37, 53, 32, 32, "float16", {causal = true}), 3) == 3)
assert(check(grouped(5, 21, 32), 1) == 1)
for copies = 0, 1 do
  local func = attention(2, 70, 100, 64, 64, "bfloat16", {causal = copies == 1})
  assert(check(func, 1, HOPPER, by_groups(copies, 64)) == 1)
end

-- Few rows with many columns: parts of these are a kernel's blocks each, and a second kernel joins them.
for _, case in ipairs(draws.of({{5, 640, AMPERE, {causal = true}}, {1, 600, HOPPER, {}}}, {{1, 600, AMPERE, {}}})) do
  local rows, columns, target, options = table.unpack(case)
  local count, in_parts = check(attention(2, rows, columns, 32, 32, "float16", options), 8, target)
  assert(count >= 6 and in_parts >= 3, string.format("%d sketches, %d of them in parts", count, in_parts))
end

-- Heads of queries that share keys are rows of one matrix: no more blocks than there are heads of keys.
do
  local func = grouped(1, 600, 32)
  local count, in_parts = check(func, 6)
  assert(count >= 6 and in_parts >= 3, string.format("%d sketches, %d of them in parts", count, in_parts))
  for _, c in ipairs(fused(func, 6, AMPERE)) do
    local text = c.func:script()
    local blocks = tonumber(text:match "thread_binding%((%d+), thread=\"blockIdx.x\"")
    assert(text:find("_join", 1, true) or blocks == 2, "keys are not shared")
  end
end

-- Products of float32, which no tensor cores compute: rows of a thread's own, on devices with and without asynchronous
-- copies.
assert(check(attention(1, 96, 64, 24, 40, "float32", {causal = true}), 1, "cuda -arch=sm_75", BY_THREADS) == 1)
if draws.all then assert(check(attention(2, 64, 96, 32, 48, "float32"), 2, AMPERE, BY_THREADS) == 2) end
assert(check(attention(2, 37, 53, 24, 24, "float32", {causal = true}), 3, AMPERE, BY_THREADS) == 3)

-- Few rows of them: a thread has all rows and a part of the columns, in turn, whether they grow or not.
for _, case in ipairs(draws.of({{2, 512, "cuda -arch=sm_75"}}, {{1, 600, AMPERE}})) do
  local rows, columns, target = table.unpack(case)
  local count, in_parts = check(attention(2, rows, columns, 24, 40, "float32", {causal = rows == 2}), 2, target)
  assert(count == 2 and in_parts == 2, string.format("%d sketches, %d of them in parts", count, in_parts))
end

-- Random shapes.
local state = seed
local function draw(list)
  state = (state * 1103515245 + 12345) % (1 << 31)
  return list[state // 65536 % #list + 1]
end
for _ = 1, shapes do
  local func = attention(draw {1, 2, 3}, draw {16, 48}, draw {16, 32, 96}, draw {16, 32, 48},
                         draw {16, 48, 64}, draw {"float16", "bfloat16"}, {causal = draw {true, false}})
  assert(check(func, 1) == 1, func:script())
end

-- Of the sketches for sm_90a, those by wgmma cost less than those by mma.sync; two consumer warp groups with a producer
-- keep their accumulators in registers that setmaxnreg gives them.
local analytical = ms.load "search.cost.analytical"
for _, width in ipairs {64, 128} do
  local func, target = attention(16, 2048, 2048, width, width, "float16"), ms.target(HOPPER)
  local machine, least = analytical.machine(target), {wgmma = math.huge, mma_sync = math.huge}
  for i, sketch in ipairs(tune.open(func, target, {}).sketches) do
    local trace = sketch.trace
    local form = trace:text():find("wgmma", 1, true) and "wgmma" or "mma_sync"
    local best = ms.estimator(func, trace, machine):best({seed = 1, budget = 100, most = 1, each = 1})[1]
    least[form] = math.min(least[form], best.cost)
    if i == 1 then
      local function chosen(overlap, alternate)
        local t, numbers = trace, {[5] = overlap, [6] = alternate}
        for k, d in ipairs(trace:draws()) do
          t = t:with_decision(d.index, d.kind == "SamplePerfectTile" and {16, 2} or {numbers[k] or 0})
        end
        return t
      end
      local estimator = ms.estimator(func, trace, machine)
      local function cost(overlap, alternate) return estimator:cost(chosen(overlap, alternate)) end
      local both, one, neither = cost(0, 0), cost(0, 1), cost(1, 1)
      assert(both < one and one < neither and both > 0.7 * neither, "what overlaps does not cost less")
      trace = chosen(0, 0)
      local pool = ms.pool(func, {jobs = 1, target = HOPPER})
      local made = pool:replay({{trace = trace, seed = 1, candidate = 1}}, false)[1]
      pool:close()
      local kernel = ms.build(ms.apply(func, made.trace):func(), {target = HOPPER, load = false}):resources()[1]
      assert(kernel.threads == 384 and kernel.estimated_registers <= 168 and not kernel.estimated_spills)
    end
  end
  assert(least.wgmma < least.mma_sync and least.mma_sync < math.huge,
         string.format("width %d: wgmma %.0f, mma.sync %.0f cycles", width, least.wgmma, least.mma_sync))
end

-- Of decoding's sketches, those in parts cost less: a part's blocks keep all multiprocessors busy; also where heads
-- share keys, and of lengths and widths that no tile divides.
local DECODING = draws.of({"1 32 1 4096 128 kv_heads=8", "2 8 1 5000 144"},
                          {"1 32 1 4096 128", "1 32 4 4000 80 kv_heads=16"})
for _, target in ipairs {AMPERE, HOPPER} do
  for _, words in ipairs(DECODING) do
    local list = {"dtype=float16"}
    for word in words:gmatch "%S+" do table.insert(list, #list, word) end
    local func, machine = named.func("attention", list), analytical.machine(ms.target(target))
    local least = {whole = math.huge, parts = math.huge}
    for _, sketch in ipairs(tune.open(func, ms.target(target), {}).sketches) do
      local form = sketch.trace:text():find("_join", 1, true) and "parts" or "whole"
      local best = ms.estimator(func, sketch.trace, machine):best({seed = 1, budget = 100, most = 1, each = 1})[1]
      least[form] = math.min(least[form], best.cost)
    end
    assert(least.parts < least.whole and least.whole < math.huge,
           string.format("decoding %s: in parts %.0f, else %.0f cycles", words, least.parts, least.whole))
  end
end

-- Widths that are no whole fragments, and other types, are not fused.
for _, case in ipairs {{32, 64, 24, 32, "float16"}, {32, 64, 32, 40, "bfloat16"}, {32, 64, 32, 32, "float32"}} do
  local rows, columns, width, values, type = table.unpack(case)
  local sch = ms.schedule(attention(1, rows, columns, width, values, type))
  local rule = ms.load("rules.rule." .. RULE)
  local targets = ms.load "rules.targets"
  local context = targets.context(ms.target(AMPERE))
  local made = rule.apply(sch, sch:get_sblock "attention", context,
                          {parameters = context[RULE]})
  assert(#made == 1 and made[1]:func():hash() == ms.schedule(sch:workload()):func():hash(), type)
end
print(sources.missing and "attention: NVRTC skipped: " .. sources.missing
      or string.format("attention: ok, %d compiled by NVRTC", compiled))
