-- Every postprocessor and mutator: what it makes of a small function, or refuses; what is made computes what the
-- function computes. And which draws of a trace may be decided otherwise.
local ms = require "msched"
local space = ms.load "rules.space"
local te = ms.te
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/parts.lua")
local CPU, GPU = support.CPU, ms.target "cuda -arch=sm_80"
local parts_of, product, sketches, check = support.parts_of, support.product, support.sketches, support.check
local has, names, extents, relu_of = support.has, support.names, support.extents, support.relu_of

local tests = {}

-- ---- Postprocessors --------------------------------------------------------------------------------------------

local function postprocessed(sch, target, changes) return space.postprocess(sch, parts_of(target, changes)) end

function tests.disallow_dynamic_loop()
  local func = ms.from_script([[
from tvm.script import tir as T
@T.prim_func
def main(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "float32")
    for i in range(n):
        with T.block("A"):
            v = T.axis.spatial(n, i)
            A[v] = T.float32(0)
]], "dynamic.py")
  assert(not postprocessed(ms.schedule(func), CPU, {postprocs = {"disallow_dynamic_loop"}}))
  assert(postprocessed(ms.schedule(product(2, 2, 2)), CPU, {postprocs = {"disallow_dynamic_loop"}}))
end

-- A copy of a matrix, one row of 8 at a time or one column, by a pipeline that copies on its own.
local function pipelined(by_column)
  local func = relu_of(function(A, i, j) return A[{i, j}] + 1 end)
  local sch = ms.schedule(func)
  local b = sch:get_sblock "B"
  local c = sch:get_sblock "C"
  local i, j = sch:get_loops(c)
  if by_column then sch:reorder(j, i) end
  local outer = sch:get_loops(c)
  sch:compute_at(b, outer, {preserve_unit_loops = true})
  sch:annotate(outer, "software_pipeline_stage", {0, 1})
  sch:annotate(outer, "software_pipeline_order", {0, 1})
  sch:annotate(outer, "software_pipeline_async_stages", {0})
  return sch
end

function tests.disallow_async_strided_copy()
  local p = {postprocs = {"disallow_async_strided_copy"}}
  assert(postprocessed(pipelined(false), CPU, p))
  assert(not postprocessed(pipelined(true), CPU, p))
end

function tests.rewrite_cooperative_fetch()
  local func = product(64, 64, 64)
  local parts = parts_of(GPU, {rules = {"multi_level_tiling"}, postprocs = {"rewrite_cooperative_fetch"}})
  local sch = space.generate(func, parts)[1]
  local trace = sch.trace
  for _, d in ipairs(trace:draws()) do
    if d.annotates then trace = trace:with_decision(d.index, {3}) end -- four at once
    if d.kind == "SamplePerfectTile" then
      trace = trace:with_decision(d.index, #d.decision == 5 and {2, 1, 8, 4, 1} or {4, 4, 4})
    end
  end
  sch = ms.apply(func, trace)
  assert(space.postprocess(sch, parts) and has(sch, "T.vectorized(4)") and not has(sch, "cooperative_fetch"))
  local threads = select(2, tostring(sch:func()):gsub('T.thread_binding%(64, thread="threadIdx.x"%)', ""))
  assert(threads == 3, threads) -- around all, and in each of the copies
  check(func, sch)
end

-- Rows of a copy are shared out by warps, four rows with eight neighbours of each, where whole warps divide them.
function tests.rewrite_cooperative_fetch_by_rows()
  for columns, by_rows in pairs {[64] = true, [32] = true, [16] = false} do
    local func = product(64, 32, columns)
    local sch = ms.schedule(func)
    local C = sch:get_sblock "C"
    local i, j = sch:get_loops(C)
    local rows, own = sch:split(i, {16, 4})
    sch:reorder {rows, j, own}
    sch:bind(rows, "threadIdx.y")
    sch:bind(j, "threadIdx.x")
    local copy = sch:cache_read(C, 0, "shared", {C})
    sch:compute_at(copy, j, {preserve_unit_loops = true})
    sch:annotate(copy, "meta_schedule.cooperative_fetch", 4)
    sch:annotate(copy, "msched.fetching_rows", 1)
    assert(space.postprocess(sch, parts_of(GPU, {postprocs = {"rewrite_cooperative_fetch"}})))
    assert(has(sch, "T.vectorized(4)") and not has(sch, "fetching_rows"))
    assert(has(sch, "fused % 8 * 4") == by_rows, tostring(sch))
    check(func, sch)
  end
end

-- Long loops: as they were, blocks by blocks, and all blocks together over what follows; of vectors either.
function tests.spatial_tiling_of_long_loops()
  local p = {threads = {32}, lengths = {4}, unroll = {2}, blocks = {4}, columns = {32}, rows = {2}, results = 8,
             vector_bytes = 16}
  for columns, count in pairs {[64] = 3, [36] = 3, [16] = 2} do
    local X = te.placeholder({32, columns}, "float32", "X")
    local func =
      te.func("f", {X, te.compute({32, columns}, function(i, j) return te.cast(X[{i, j}] + 1, "float16") end, "Y")})
    local made = sketches(func, GPU, {rules = {"spatial_tiling"}, spatial_tiling = p})
    assert(#made == count, #made)
    for i, sch in ipairs(made) do
      assert(has(sch, "T.vectorized(4)") == (i > 1))
      assert(has(sch, 'T.thread_binding(4, thread="blockIdx.x")') == (i == 3))
      check(func, sch)
      ms.check_lowered(func, sch:func(), GPU.text, 1)
    end
  end
end

function tests.rewrite_vector_store()
  local parts = parts_of(GPU, {rules = {"multi_level_tiling"}, postprocs = {"rewrite_vector_store"}})
  local function stored(columns, innermost)
    local func = product(64, columns, 64)
    local trace, tiles = space.generate(func, parts)[1].trace, 0
    for _, d in ipairs(trace:draws()) do
      if d.kind == "SamplePerfectTile" and #d.decision == 5 then
        tiles = tiles + 1
        trace = trace:with_decision(d.index, tiles == 1 and {2, 1, 8, 2, 2}
                                             or {columns // 4 // innermost, 1, 4, 1, innermost})
      end
    end
    local sch = ms.apply(func, trace)
    assert(space.postprocess(sch, parts))
    check(func, sch)
    return tostring(sch:func()):match "T.vectorized%((%d+)%)"
  end
  assert(stored(64, 8) == "4" and stored(64, 4) == "4" and stored(64, 2) == "2")
  assert(stored(64, 1) == nil) -- neighbours are other threads'
  assert(stored(36, 3) == nil and stored(40, 2) == "2")
end

-- What a hand bound in part, or shared out as among a CPU's cores, has threads too; notes on what is built say where
-- there are none.
function tests.threads_for_hand_schedules()
  local func = product(24, 40, 20)
  for note, schedule in pairs {
    ["one thread of the device runs it in order; bind makes"] = function(sch, i) sch:parallel(i) end,
    ["no loop in it is bound to threadIdx.x"] = function(sch, i) sch:bind(i, "blockIdx.x") end,
  } do
    local sch = ms.schedule(func)
    schedule(sch, (sch:get_loops(sch:get_sblock "C")))
    local notes = table.concat(ms.build(sch:func(), {target = GPU.text}):notes(), "; ")
    assert(notes:find(note, 1, true), notes)
    assert(postprocessed(sch, GPU, {postprocs = {"rewrite_unbound_block"}}))
    local kernel = ms.build(sch:func(), {target = GPU.text})
    assert(kernel:resources()[1].threads >= 40 and #kernel:notes() == 0 and #sch:unbound_blocks() == 0)
    check(func, sch)
  end
end

function tests.rewrite_unbound_block()
  local func = relu_of(function(A, i, j) return A[{i, j}] + 1 end)
  local sch = ms.schedule(func)
  assert(postprocessed(sch, GPU, {postprocs = {"rewrite_unbound_block"}}))
  assert(#sch:unbound_blocks() == 0)
  check(func, sch)
end

function tests.rewrite_reduction_block()
  local func = product(8, 8, 8)
  local sch = ms.schedule(func)
  assert(postprocessed(sch, CPU, {postprocs = {"rewrite_reduction_block"}}) and names(sch):find " C_init ")
  check(func, sch)
  -- What threads reduce together keeps its init.
  local bound = ms.schedule(func)
  bound:bind(select(3, bound:get_loops(bound:get_sblock "C")), "threadIdx.x")
  assert(postprocessed(bound, GPU, {postprocs = {"rewrite_reduction_block"}}) and not names(bound):find " C_init ")
end

function tests.rewrite_layout()
  local script = tostring(product(16, 32, 8)):gsub('"tir.noalias": True', '%0, "layout_free_buffers": [1]')
  script = script:gsub('"tirx.noalias": True', '%0, "layout_free_buffers": [1]')
  assert(script:find "layout_free_buffers", script)
  local func = ms.from_script(script, "free.py")
  local sch = ms.schedule(func)
  local i, j, k = sch:get_loops(sch:get_sblock "C")
  local j0, j1 = sch:split(j, {ms.rest, 8})
  sch:reorder(j0, i, k, j1)
  local pool = ms.pool(func, {jobs = 1, target = "native"}) -- whose schedules are lent
  local drawn = pool:replay({{trace = sch.trace:simplified(false), seed = 1, candidate = 0}})[1]
  assert(drawn and tostring(drawn.trace):find("layout_rewrite_preproc", 1, true))
  pool:close()
  assert(postprocessed(sch, CPU, {postprocs = {"rewrite_layout"}}))
  assert(has(sch, "meta_schedule.layout_rewrite_preproc") and has(sch, "B_global = T.sblock_alloc_buffer((4, 8, 8))"),
         tostring(sch:func()))
  check(func, sch)
  local fixed = ms.schedule(product(16, 32, 8))
  assert(postprocessed(fixed, CPU, {postprocs = {"rewrite_layout"}}) and #fixed.trace == 1)
  -- Tiles that run past the end: zeros. A copy that lies in order already: none.
  local ragged = ms.with_weights(product(16, 30, 8), {"B"})
  for _, columns in ipairs {8, 30, 32} do
    local own = ms.schedule(ragged)
    local x, y, z = own:get_loops(own:get_sblock "C")
    local y0, y1 = own:split(y, {ms.rest, columns})
    own:reorder(y0, x, z, y1)
    assert(postprocessed(own, CPU, {postprocs = {"rewrite_layout"}}))
    local shape = columns == 8 and "(4, 8, 8)" or columns == 32 and "(8, 1, 32)"
    assert(not shape and not has(own, "B_global")
           or shape and has(own, "B_global = T.sblock_alloc_buffer(" .. shape .. ")"), tostring(own))
    check(ragged, own)
  end
end

-- A kernel of so many threads, whose block keeps so many floats in shared memory, and each thread so many of its own.
local function kernel(threads, shared, own)
  local A = te.placeholder({threads, shared}, "float32", "A")
  local B = te.compute({threads, shared}, function(i, j) return A[{i, j}] + 1 end, "B")
  local sch =
    ms.schedule(te.func("kernel", {A, te.compute({threads, shared}, function(i, j) return B[{i, j}] * 2 end, "C")}))
  local b, c = sch:get_sblock "B", sch:get_sblock "C"
  local i, j = sch:get_loops(c)
  sch:bind(sch:add_unit_loop(i), "blockIdx.x")
  sch:bind(i, "threadIdx.x")
  sch:set_scope(b, 0, own and "local" or "shared")
  sch:compute_at(b, i)
  return sch, j
end

function tests.verify_gpu_code()
  local p = {postprocs = {"verify_gpu_code"}}
  assert(postprocessed(kernel(64, 16), GPU, p))
  for rows, fits in pairs {[65535] = true, [65536] = false} do -- of blocks along y
    local text = [[
@T.prim_func(s_tir=True)
def main(A: T.Buffer((ROWS, 32), "float32"), C: T.Buffer((ROWS, 32), "float32")):
    for i in T.thread_binding(ROWS, thread="blockIdx.y"):
        for j in T.thread_binding(32, thread="threadIdx.x"):
            with T.sblock("C"):
                v, w = T.axis.remap("SS", [i, j])
                C[v, w] = A[v, w]
]]
    assert(not postprocessed(ms.schedule(ms.from_script((text:gsub("ROWS", rows)))), GPU, p) == not fits)
  end
  assert(not postprocessed(kernel(1024, 64), GPU, p)) -- shared memory: 256 KiB
  assert(postprocessed(kernel(64, 64, true), GPU, p))
  assert(not postprocessed(kernel(64, 2048, true), GPU, p)) -- local memory: 8 KiB a thread
  local wide, j = kernel(64, 16)
  wide:vectorize(j)
  assert(not postprocessed(wide, GPU, p)) -- 64 bytes at once
  local few = kernel(16, 16)
  few:annotate(few:get_sblock "C", "meta_schedule.thread_extent_low_inclusive", 32)
  assert(not postprocessed(few, GPU, p))
  local uneven = kernel(64, 16)
  uneven:bind(select(3, uneven:get_loops(uneven:get_sblock "C")), "threadIdx.x") -- the axis is bound to 64 and to 16
  assert(not postprocessed(uneven, GPU, p))
  local virtual, v = kernel(2, 128)
  virtual:bind(v, "vthread.x")
  assert(not postprocessed(virtual, GPU, p))
  local small = ms.target "cuda -arch=sm_80 -max_threads_per_block=32"
  assert(not postprocessed(kernel(64, 16), small, p))
end

function tests.verify_scope_limit()
  local sch = kernel(64, 16)
  assert(postprocessed(sch, GPU, {postprocs = {"verify_scope_limit"}, verify_scope_limit = {shared = 4096}}))
  assert(not postprocessed(kernel(64, 16), GPU,
                           {postprocs = {"verify_scope_limit"}, verify_scope_limit = {shared = 4095}}))
end

-- ---- Mutators --------------------------------------------------------------------------------------------------

-- A trace and others that the mutator makes of it: what differs is one decision, of a draw that `wanted` accepts.
local function mutates(name, trace, wanted)
  local mutator = parts_of(CPU, {mutators = {{name, 1}}}).mutators[1][1]
  local changed = 0
  for n = 1, 40 do
    local made = space.mutate(mutator, trace, ms.stream(n), nil)
    local before, after = trace:draws(), made and made:draws() or {}
    local different = {}
    for i, d in ipairs(after) do
      if table.concat(d.decision, " ") ~= table.concat(before[i].decision, " ") then
        different[#different + 1] = before[i]
      end
    end
    assert(#different <= 1 and (not different[1] or wanted(different[1])), name)
    changed = changed + #different
  end
  return changed
end

function tests.mutators()
  local cpu = sketches(product(64, 64, 64), CPU, {rules = {"multi_level_tiling", "parallel_vectorize_unroll"}})[1].trace
  local gpu = sketches(product(64, 64, 64), GPU, {rules = {"multi_level_tiling", "parallel_vectorize_unroll"}})[1].trace
  local function is_tile(d) return d.kind == "SamplePerfectTile" end
  local function is_load(d) return d.annotates == "meta_schedule.cooperative_fetch" end
  assert(mutates("tile_size", cpu, is_tile) > 0)
  local loads = 0
  assert(mutates("tile_size", gpu,
         function(d) loads = loads + (is_load(d) and 1 or 0) return is_tile(d) or is_load(d) end) > loads and loads > 0)
  assert(mutates("unroll", cpu, function(d) return d.annotates == "meta_schedule.unroll_explicit" end) > 0)
  assert(mutates("parallel", cpu, function(d) return d.annotates == "meta_schedule.parallel" end) > 0)
  local bound = sketches(relu_of(function(A, i, j) return A[{i, j}] + 1 end), GPU, {rules = {"auto_bind"}})[1].trace
  assert(mutates("thread_binding", bound, function(d) return d.binds == "threadIdx.x" end) > 0)
  assert(mutates("thread_binding", cpu, function() return false end) == 0)
  local placed =
    sketches(relu_of(function(A, i, j) return A[{i, j}] + 1 end), CPU, {rules = {"random_compute_location"}})[1].trace
  assert(mutates("compute_location", placed, function(d) return d.kind == "SampleComputeLocation" end) > 0)
end

function tests.crossover()
  local func = product(64, 64, 64)
  local mutator = parts_of(CPU, {mutators = {{"crossover", 1}}}).mutators[1][1]
  local sketch = sketches(func, CPU, {rules = {"multi_level_tiling"}})[1].trace
  local a, b = ms.apply(func, sketch, {seed = 1, resample = true}).trace,
    ms.apply(func, sketch, {seed = 2, resample = true}).trace
  assert(space.mutate(mutator, a, ms.stream(1), nil) == nil)
  local from_b, from_a = 0, 0
  for n = 1, 8 do
    local made = space.mutate(mutator, a, ms.stream(n), b)
    for i, d in ipairs(made and made:draws() or {}) do
      local got, own, other = table.concat(d.decision, " "), table.concat(a:draws()[i].decision, " "),
        table.concat(b:draws()[i].decision, " ")
      assert(got == own or got == other)
      if own ~= other then
        from_a = from_a + (got == own and 1 or 0)
        from_b = from_b + (got == other and 1 or 0)
      end
    end
  end
  assert(from_a > 0 and from_b > 0)
end

-- ---- Draws -----------------------------------------------------------------------------------------------------

function tests.draws_that_can_be_decided_otherwise_are_found()
  local sch = ms.schedule(product(16, 1, 16), {seed = 3})
  local block = sch:get_sblock "C"
  local i, j = sch:get_loops(block)
  sch:split(i, {sch:sample_perfect_tile(i, 2, 16)})
  sch:split(j, {sch:sample_perfect_tile(j, 2, 16)})
  sch:annotate(block, "meta_schedule.unroll_explicit", sch:sample_categorical({0, 16}, {0.5, 0.5}))
  sch:annotate(block, "alone", sch:sample_categorical({7}, {1.0}))
  local trace, draws = sch.trace, sch.trace:draws()
  local tiles, choices = trace:changeable "SamplePerfectTile", trace:changeable "SampleCategorical"
  assert(#draws == 4 and #tiles == 1 and tiles[1] == draws[1].index and #choices == 1 and choices[1] == draws[3].index)
  assert(#trace:changeable("SampleCategorical", "unroll") == 1 and #trace:changeable("SampleCategorical", "alone") == 0)
  assert(#trace:changeable("SampleCategorical", "threadIdx") == 0 and #trace:changeable "SampleComputeLocation" == 0)
  local one = trace:draw(choices[1])
  assert(one.annotates == "meta_schedule.unroll_explicit" and #one.attrs[1] == 2
         and one.decision[1] == draws[3].decision[1])
  assert(trace:draw(0) == nil and not pcall(trace.draw, trace, #trace))
end

support.run(tests, "postprocessors and mutators")
