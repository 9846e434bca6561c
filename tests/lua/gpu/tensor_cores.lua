-- Matrix products on tensor cores without a GPU: random draws of the space of tensor cores, those with fragments on
-- three oracles: the interpreter runs the lowered function, the source compiled for the CPU computes the same
-- (RUN_KERNELS), and NVRTC, where it is installed, compiles it to the estimated shared memory, without serializing
-- wgmma. Hardly any kernel spills registers (accumulators beside tiles that are copied by way of registers may). Of
-- large products nearly all draws are accepted.
-- MetaSchedule's own products of 16 x 8 x 8 are checked the same way, with their own pipelines.
-- usage: msched tensor_cores.lua RUN_KERNELS DRAWS SEED
local ms = require "msched"
local te = ms.te
local tune, jobs_of = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../jobs.lua")
local registers = dofile(arg[0]:match "^.*/" .. "../../support/lua/estimated.lua").new()
local files = dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local judged = dofile(arg[0]:match "^.*/" .. "../../support/lua/draws.lua")

local run_kernels, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local AMPERE, ADA, HOPPER = "cuda -arch=sm_80", "cuda -arch=sm_89", "cuda -arch=sm_90a"
local PRODUCTS = judged.of({
  {"float16", "float32", 64, 32, 48, AMPERE}, {"bfloat16", "float32", 32, 48, 64, AMPERE},
  {"float32", "float32", 48, 64, 40, AMPERE},
  {"float16", "float32", 128, 256, 192, HOPPER}, {"bfloat16", "float32", 256, 128, 128, HOPPER, true},
  {"float32", "float32", 128, 128, 96, HOPPER, true},
  {"uint8", "int32", 128, 128, 96, HOPPER, true, nil, "int8"},
  {"float8_e4m3fn", "float32", 128, 256, 256, HOPPER, true}, {"float8_e5m2", "float32", 48, 32, 64, ADA},
  {"float16", "float32", 192, 128, 128, HOPPER, false, true}, {"float16", "float16", 32, 64, 64, AMPERE},
  {"int8", "int32", 48, 32, 64, AMPERE}, {"int8", "int32", 128, 256, 384, HOPPER, true},
}, {
  {"uint8", "int32", 128, 128, 192, HOPPER},
  {"int8", "int32", 64, 128, 128, HOPPER, true, nil, "uint8"},
  {"bfloat16", "float32", 128, 128, 96, HOPPER, true, true},
})
-- Products whose sides no tile divides, one of them of three columns, and convolutions whose pixels or channels none
-- does: with half of the draws.
local PADDED = judged.of({
  {"float16", "float16", 33, 40, 77, AMPERE}, {"bfloat16", "float32", 40, 37, 60, AMPERE, true},
  {"bfloat16", "float32", 250, 120, 88, HOPPER, true}, {"float16", "float32", 64, 3, 200, HOPPER},
  {"float16", "float32", 70, 61, 99, HOPPER},
}, {
  {"float16", "float32", 50, 60, 72, AMPERE}, {"float32", "float32", 20, 50, 27, AMPERE},
  {"int8", "int32", 50, 36, 80, AMPERE}, {"float16", "float32", 100, 200, 136, HOPPER},
  {"float16", "float32", 200, 120, 104, HOPPER, false, true},
})
local CONVOLUTIONS = {
  {"float16", "float32", {1, 7, 7, 64, 64, 3, 1, 1}, HOPPER},
  {"bfloat16", "float32", {3, 5, 5, 32, 60, 3, 2, 1}, HOPPER},
  {"float16", "float32", {2, 6, 6, 20, 24, 3, 1, 1}, AMPERE}, {"int8", "int32", {1, 9, 9, 3, 20, 3, 2, 1}, AMPERE},
}
local CALLS = { -- and what they are called here
  [AMPERE] = {{"tvm_mma_sync", "wmma"}, {"T.mma_sync", "mma.sync"}, {"T.wgmma_mma", "wgmma"}},
  [ADA] = {{"T.mma_sync", "mma.sync"}}, [HOPPER] = {{"T.wgmma_mma", "wgmma"}},
}
local METASCHEDULE = {{"T.ptx_mma", "16 x 8 x 8"}}

local PERSISTENT = 2 -- thread blocks, or one: fewer than these small products have tiles
local SLACK = 2048 -- bytes of shared memory that alignment may take

local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(run_kernels, seed)

local function product(inputs, output, m, n, k, by_columns, a_by_columns, second)
  local A, B, r = te.placeholder(a_by_columns and {k, m} or {m, k}, inputs, "A"),
    te.placeholder(by_columns and {n, k} or {k, n}, second or inputs, "B"), te.reduce_axis(k, "k")
  return te.func("product", {A, B, te.compute({m, n}, function(i, j)
    local a, b = A[a_by_columns and {r, i} or {i, r}], B[by_columns and {j, r} or {r, j}]
    return te.sum(te.cast(a, output) * te.cast(b, output), r)
  end, "C")})
end

local three_channels = false -- of the convolution that is drawn
local all_produce, all_cluster -- whether the kernels that are drawn have all a producer warp group; blocks in clusters
local FEW, count = 6, draws -- candidates that are drawn of a function

local function drawn(func, space, target)
  local rules = sources:path "rules.lua"
  files.write(rules, string.format([[
local ms, targets = require "msched", (require "msched").load "rules.targets"
local own = targets.%s
ms.space(targets.changed(own, {
  multi_level_tiling_tensor_core = function(target)
    local p = own.multi_level_tiling_tensor_core(target)
    for _, g in ipairs(p.groups) do
      g.blocks = g.blocks and {%d, 1, 0}
      if g.producer and %s then g.boxes, g.producer = {1}, {1} end
      if g.producer and %s then g.clusters = {2} end
    end
    return p
  end,
}))]], space, PERSISTENT, all_produce, all_cluster))
  local opened = tune.open(func, ms.target(target), {files = {rules}})
  local pool = ms.pool(func, {jobs = 1, target = target, files = {rules}})
  local made, _, script_error = pool:replay(jobs_of(opened, count, seed), false)
  pool:close()
  assert(not script_error, script_error)
  return made
end

local compiled, spilling = 0, 0

-- others: kernels whose registers are not compared with the estimate, and which may spill. at: the product's number.
local function compile(kernel, others, at)
  local asked = kernel:resources()[at]
  local all = sources:compile(kernel)
  if not all then return end
  local got = all[at]
  assert(got.shared_bytes == asked.shared_bytes, "a product has other shared memory than it asks for")
  if others then return end
  registers:note(asked, got)
  compiled, spilling = compiled + 1, spilling + (got.spill_stores + got.spill_loads > 0 and 1 or 0)
  assert(not got.serialized, "the groups of a wgmma are serialized")
end

-- What was drawn, each once, and applied; with its text.
local function each(func, space, target)
  local list, seen = {}, {}
  for _, c in ipairs(drawn(func, space, target)) do
    if c and not seen[c.hash] then
      local sch = ms.apply(func, c.trace)
      local scheduled = sch:func()
      local kernels = sch:kernels()
      local divided = c.trace:text():find("rfactor", 1, true) ~= nil
      local at = #kernels - (divided and 1 or 0) -- of the product
      list[#list + 1], seen[c.hash] = {func = scheduled, script = scheduled:script(), at = at, count = #kernels,
                                       estimated = kernels[at].shared_bytes, threads = kernels[at].threads,
                                       trace = c.trace, hash = sch:hash()}, true
    end
  end
  return list
end

local function source_has(path, what) return files.read(path):find(what, 1, true) ~= nil end

-- Kernels that leave wgmma in flight, with TMA copies, with a producer warp group for them, with persistent blocks,
-- that store accumulators from registers to the result, and whose clusters multicast copies: of tiles of a row, of a
-- column, and of persistent blocks.
local in_flight, boxes, producers, persistent, straight = 0, 0, 0, 0, 0
local pixels = 0 -- kernels with TMA copies in im2col mode
local multicast = {row = 0, column = 0, persistent = 0}

-- Gives whether it does.
local function count_multicast(path, persists)
  local text = files.read(path)
  local first = text:find("ms_multicast_copy_2d(ms_at_A", 1, true)
  local second = text:find("ms_multicast_copy_2d(ms_at_B", 1, true)
  assert(not (first and second), "blocks of a cluster share both inputs")
  local shares = first ~= nil or second ~= nil
  assert(shares == (text:find(" __cluster_dims__(2, 1, 1) ", 1, true) ~= nil), "a cluster shares nothing")
  multicast.row = multicast.row + (first and 1 or 0)
  multicast.column = multicast.column + (second and 1 or 0)
  multicast.persistent = multicast.persistent + (shares and persists and 1 or 0)
  return shares
end

-- Each matrix of a wgmma and each TMA copy names a buffer's address, which is computed once, and adds to it.
local function check_addresses(text)
  local matrices, copies = 0, 0
  for call in text:gmatch "%(void%)(ms_%w+_[^\n]*)" do
    local copy = call:match "^ms_%w+_copy_%dd%(([^,]*)"
    for at in call:gmatch "ms_wgmma_matrix%(([^,]*,[^,]*)" do
      assert(at:find "^ms_at_" and not at:find("ms_panels_", 1, true), "the address of a matrix is " .. at)
      matrices = matrices + 1
    end
    if copy then
      assert(copy:find "^ms_at_" and not copy:find("ms_panels_", 1, true), "the address of a copy is " .. copy)
      copies = copies + 1
    end
  end
  assert(matrices > 0 and copies > 1, "a producer's kernel has no products or copies")
end

-- Gives how many sources were written, in all and by what they call.
local function check(func, target, space, calls)
  local written, by_call = 0, {}
  for i, c in ipairs(each(func, space or "tensor_core", target)) do
    for _, call in ipairs(calls or CALLS[target]) do
      if c.script:find(call[1], 1, true) then
        ms.check_lowered(func, c.func, target, 1)
        local kernel = ms.build(c.func, {target = target})
        -- images of three channels, and their filters, get a fourth by kernels ahead
        assert(c.at == 1 or c.at == 3 and three_channels, "a product has a kernel more, as for what is padded")
        assert(#kernel:resources() == c.count, "kernels are not as estimated")
        local asked = kernel:resources()[c.at].shared_bytes
        assert(math.abs(asked - c.estimated) <= SLACK,
               string.format("the kernel uses %d bytes of shared memory, the estimate was %d", asked, c.estimated))
        written, by_call[call[2]] = written + 1, (by_call[call[2]] or 0) + 1
        local path = sources:path(written .. ".cu")
        kernel:export(path)
        if source_has(path, "ms_wgmma_wait_1(), ") then in_flight = in_flight + 1 end
        local grouped = c.script:find("wgmma_mma", 1, true)
        local by_memory = c.script:find("_shared_dyn = T.sblock_alloc_buffer", 1, true)
        if grouped and not by_memory then straight = straight + 1 end
        local notes = table.concat(kernel:notes(), "\n")
        local blocks = c.script:match '"software_pipeline_blocks": ([12])'
        local persists = blocks and not notes:find("that do one tile after the other", 1, true)
        local shares, produced = count_multicast(path, persists), source_has(path, "ms_elect_one() != 0")
        assert(not produced or shares == (c.script:find('"software_pipeline_multicast": 2', 1, true) ~= nil), notes)
        if persists then
          persistent = persistent + 1
          assert(source_has(path, "dim3(" .. blocks .. ", 1, 1)"), "there are not so many persistent blocks")
        end
        if source_has(path, "ms_im2col_copy_4d(") then pixels = pixels + 1 end
        if source_has(path, "ms_tensor_copy_2d(") then
          boxes = boxes + 1
          if c.script:find('"software_pipeline_producer": 1', 1, true) then
            producers = producers + 1
            assert(source_has(path, "ms_elect_one() != 0"), "there is no producer warp group")
            check_addresses(files.read(path))
            assert(source_has(path, "ms_uniform(threadIdx.y)"), "the warp group's number is in no uniform register")
            assert(kernel:resources()[c.at].threads == c.threads, "the threads are not as estimated")
            assert(ms.apply(func, ms.read_trace(c.trace:json())):hash() == c.hash,
                   "a record of it makes another function")
          end
          assert(not source_has(path, "ms_copy_"), "an input is copied by all threads, and another is not")
        end
        compile(kernel, calls, c.at)
      end
    end
  end
  return written, by_call
end

-- Tiles are drawn so that a block has the threads, registers and shared memory for them.
local function check_room()
  for _, target in ipairs {AMPERE, HOPPER} do
    local func, jobs, accepted = product("float16", "float32", 1024, 1024, 1024), {}, 0
    for _, s in ipairs(tune.open(func, ms.target(target), {}).sketches) do
      local by_fragments = s.trace:text():find("meta_schedule.auto_tensorize", 1, true)
      for i = 1, by_fragments and 32 or 0 do
        jobs[#jobs + 1] = {trace = s.trace:simplified(false), seed = seed, candidate = i, resample = true}
      end
    end
    local pool = ms.pool(func, {jobs = 1, target = target})
    for _, c in ipairs((pool:replay(jobs, false))) do if c then accepted = accepted + 1 end end
    pool:close()
    assert(#jobs >= 64 and accepted >= 0.95 * #jobs, string.format("%d of %d draws are accepted", accepted, #jobs))
  end
end

-- Threads whose number does not divide a tile touch no more than the tile, and the estimate is no larger.
local function check_guarded_fetch()
  local A = te.placeholder({96, 40}, "float32", "A")
  local func = te.func("plus_one", {A, te.compute({96, 40}, function(i, j) return A[{i, j}] + 1 end, "B")})
  local sch = ms.schedule(func)
  local b = sch:get_sblock "B"
  local i, j = sch:get_loops(b)
  local rows, row = sch:split(i, {2, 48})
  local columns, column = sch:split(j, {2, 20})
  sch:reorder(rows, columns, row, column)
  local tile = sch:fuse(rows, columns)
  sch:bind(tile, "blockIdx.x")
  local fetch = sch:cache_read(b, 0, "shared")
  sch:compute_at(fetch, tile, true)
  local _, thread = sch:split(sch:fuse(row, column), {4, 256})
  sch:bind(thread, "threadIdx.x")
  _, row, column = sch:get_loops(fetch)
  _, thread = sch:split(sch:fuse(row, column), {4, 256})
  sch:bind(thread, "threadIdx.x")
  assert(sch:func():script():find("T.where", 1, true))
  assert(sch:kernels()[1].shared_bytes == 48 * 20 * 4)
  assert(ms.build(sch:func(), {target = AMPERE}):resources()[1].shared_bytes == 48 * 20 * 4)
end

-- MetaSchedule's products of 16 x 8 x 8, to accumulators of either type; older tensor cores have none. Gives their
-- number.
local function check_metaschedule()
  local count = 0
  for _, output in ipairs {"float32", "float16"} do
    local func = product("float16", output, 64, 96, 32)
    sources:begin(func)
    local written = check(func, AMPERE, "metaschedule.tensor_core", METASCHEDULE)
    local agree, said = sources:agree()
    assert(written > 0 and agree == written, said)
    for _, c in ipairs(each(func, "metaschedule.tensor_core", AMPERE)) do
      if c.script:find(METASCHEDULE[1][1], 1, true) then
        local kernel = ms.build(c.func, {target = "cuda -arch=sm_75"})
        compile(kernel, true, 1)
        local ok, message = pcall(ms.build, c.func, {target = "cuda -arch=sm_70"})
        assert(not ok and tostring(message):find("of 16 x 8 x 8 are for sm_75 and later, and the target is sm_70", 1,
                                                 true), message)
        break
      end
    end
    count = count + written
    sources:finish()
  end
  -- What a lane does not hold it cannot touch.
  local ok, message = pcall(ms.build, ms.from_script [[
@T.prim_func(s_tir=True)
def main(A: T.Buffer((32,), "float32")):
    C = T.alloc_buffer((16, 8), scope="m16n8k8.matrixC")
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        C[tx // 4, tx % 4] = T.float32(1)
    for tx in T.thread_binding(32, thread="threadIdx.x"):
        A[tx] = C[tx // 4, tx % 4 * 2]
]], {target = AMPERE})
  assert(not ok and tostring(message):find("m16n8k8.matrixC", 1, true), message)
  return count
end

-- Dot products of four bytes, of any signs: one instruction, where they lie from multiples of four on; elsewhere their
-- sum is spelled as arithmetic.
local function bytes(a, b, output)
  local A, B, r = te.placeholder({32, 32}, a .. "int8", "A"), te.placeholder({32, 32}, b .. "int8", "B"),
    te.reduce_axis(32, "k")
  local func = te.func("product", {A, B, te.compute({32, 32}, function(i, j)
    return te.sum(te.cast(A[{i, r}], output .. "int32") * te.cast(B[{j, r}], output .. "int32"), r)
  end, "C")})
  local sch = ms.schedule(func)
  local c = sch:get_sblock "C"
  local i, j, k = sch:get_loops(c)
  local k0, k1 = sch:split(k, {8, 4})
  local fetch_a, fetch_b, sums = sch:cache_read(c, 0, "shared"), sch:cache_read(c, 1, "shared"),
    sch:cache_write(c, 0, "local")
  sch:reverse_compute_at(sums, j)
  sch:bind(i, "blockIdx.x")
  sch:bind(j, "threadIdx.x")
  for _, fetch in ipairs {fetch_a, fetch_b} do sch:compute_at(fetch, i) end
  sch:decompose_reduction(c, k0)
  local function sign(prefix) return prefix == "u" and "u" or "s" end
  sch:tensorize(k1, string.format("dp4a_%s8%s8%s32", sign(a), sign(b), sign(output)))
  return func, sch:func()
end

local function sum_from(step)
  local terms = {}
  for i = 0, 3 do
    terms[#terms + 1] = string.format('T.Cast("int32", B[%d]) * T.Cast("int32", A[v * %d + %d])', i, step, i)
  end
  local func = ms.from_script(string.format([[
@T.prim_func(s_tir=True)
def main(A: T.Buffer((128,), "int8"), B: T.Buffer((4,), "int8"), C: T.Buffer((16,), "int32")):
    for i in T.thread_binding(16, thread="threadIdx.x"):
        with T.sblock("C"):
            v = T.axis.spatial(16, i)
            C[v] = %s + C[v]
]], table.concat(terms, " + ")))
  return func, func
end

local function check_dot(signs, func, scheduled)
  ms.check_lowered(func, scheduled, "cuda -arch=sm_75", 1)
  sources:begin(func)
  local kernel = ms.build(scheduled, {target = "cuda -arch=sm_75"})
  kernel:export(sources:path "1.cu")
  local agree, said = sources:agree()
  assert(agree == 1, said)
  local text = files.read(sources:path "1.cu")
  assert((text:find("dp4a." .. (signs or ""), 1, true) ~= nil) == (signs ~= nil), text)
  compile(kernel, nil, 1)
  if signs and not sources.missing then
    kernel:export(sources:path "1.ptx")
    assert(source_has(sources:path "1.ptx", "dp4a." .. signs), "no dp4a in PTX")
  end
  sources:finish()
end

local function check_dots()
  check_dot("s32.s32", bytes("", "", ""))
  check_dot("u32.s32", bytes("u", "", ""))
  check_dot("s32.u32", bytes("", "u", ""))
  check_dot("u32.u32", bytes("u", "u", "u"))
  check_dot("s32.s32", sum_from(4))
  check_dot(nil, sum_from(3))
end

-- Parts of the sums of a window are of one number, which the product's indices hold: no other draw is refused.
local function check_divided_windows()
  local shape = {1, 7, 7, 512, 512, 3, 1, 1, dtype = "float16", accumulate = "float32"}
  local func, divided = ms.ops.func("conv2d", shape), 0
  for _, s in ipairs(tune.open(func, ms.target(HOPPER), {}).sketches) do
    local text = s.trace:text()
    if text:find("rfactor", 1, true) and text:find("mma", 1, true) then
      divided = divided + 1
      for _, d in ipairs(s.trace:draws()) do
        local some = d.kind == "SampleCategorical" and d.attrs[1] or {1} -- parts are two or more
        assert(d.annotates or #some == 1 or math.min(table.unpack(some)) == 1, "parts are drawn")
      end
    end
  end
  assert(divided > 0, "sums of few results are not divided")
end

check_divided_windows()
check_guarded_fetch()
check_room()
check_dots()
local function check_all(func, inputs, output, target)
  sources:begin(func)
  local written, by_call = check(func, target)
  local agree, said = sources:agree()
  assert(written > 0 and agree == written, said)
  -- Sums of 16 bits have fragments of wmma alone; types that wmma has not, those of mma.sync alone.
  local old = target ~= HOPPER
  assert((by_call["mma.sync"] ~= nil) == (old and output ~= "float16"), inputs)
  assert((by_call.wmma ~= nil) == (old and (inputs == "float16" or inputs == "int8")), inputs)
  assert((by_call.wgmma ~= nil) == (not old), target)
  print(string.format("%s to %s: %d by wmma, %d by mma.sync, %d by wgmma: %d agree on the CPU, %s", inputs, output,
                      by_call.wmma or 0, by_call["mma.sync"] or 0, by_call.wgmma or 0, agree,
                      sources.missing and "NVRTC skipped" or "compiled by NVRTC"))
  sources:finish()
end

local function check_products(list)
  for _, p in ipairs(list) do
    local inputs, output, m, n, k, target, by_columns, a_by_columns, second = table.unpack(p, 1, 9)
    all_produce = inputs == "bfloat16"
    all_cluster = all_produce
    check_all(product(inputs, output, m, n, k, by_columns, a_by_columns, second), inputs, output, target)
  end
end

check_products(PRODUCTS)
count = math.max(draws // 2, math.min(draws, FEW))
check_products(PADDED)
-- Of extents by chance, a few more where there are more draws.
local TYPES = {
  {"float16", "float32", AMPERE}, {"float16", "float32", HOPPER}, {"int8", "int32", AMPERE},
  {"bfloat16", "float32", HOPPER}, {"int8", "int32", HOPPER},
}
local stream = ms.stream(seed)
for i = 1, math.max(1, draws // 10) do
  local inputs, output, target = table.unpack(TYPES[(i - 1) % #TYPES + 1])
  local least, most = table.unpack(target == AMPERE and {12, 60} or {40, 160})
  local function extent() return least + stream:below(most - least) end
  local m, n, k, by_columns, a_by_columns = extent(), extent(), extent(), stream:below(2) == 1, stream:below(3) == 1
  all_produce, all_cluster = false, false
  print(string.format("%d x %d x %d%s%s", m, n, k, a_by_columns and ", A by columns" or "",
                      by_columns and ", B by columns" or ""))
  check_all(product(inputs, output, m, n, k, by_columns, a_by_columns), inputs, output, target)
end
for _, c in ipairs(CONVOLUTIONS) do
  local inputs, output, shape, target = table.unpack(c)
  local arguments = table.move(shape, 1, #shape, 1, {dtype = inputs, accumulate = output})
  all_produce, all_cluster, three_channels = inputs == "float16", false, shape[4] == 3
  check_all(ms.ops.func("conv2d", arguments), inputs, output, target)
end
count, three_channels = draws, false
print(string.format("%d of MetaSchedule's 16 x 8 x 8 agree on the CPU", check_metaschedule()))
print(string.format("%d of %d spill", spilling, compiled))
if compiled > 0 then print(registers:check()) end
assert(spilling <= math.max(1, compiled // 50), "products spill")
assert(in_flight > 0, "no kernel leaves products of a warp group in flight")
assert(boxes > 0, "no kernel has TMA copies")
assert(producers > 0 and producers < boxes, "all kernels with TMA copies have a producer warp group, or none has")
assert(persistent > 0 and persistent < producers, "all kernels with a producer have persistent blocks, or none has")
assert(straight > 0, "no kernel stores from registers")
assert(pixels > 0, "no kernel of a convolution has TMA copies of pixels")
for of, count in pairs(multicast) do assert(count > 0, "no cluster of a " .. of .. " multicasts copies") end
print(string.format("%d leave wgmma in flight, %d have TMA copies, %d persistent blocks; %d store from registers; "
                    .. "clusters: %d of a row of tiles, %d of a column, %d persistent", in_flight, boxes, persistent,
                    straight, multicast.row, multicast.column, multicast.persistent))
print(sources.missing and "tensor_cores: NVRTC skipped: " .. sources.missing or "tensor_cores: ok")
