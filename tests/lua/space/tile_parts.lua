-- Rules of register tiles, by vectors and dot products of short types (amx_tiles.lua: AMX): what they make of a small
-- function, or refuse; what is made computes what the function computes.
local ms = require "msched"
local space, te = ms.load "rules.space", ms.te
local here = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")
local support = dofile(here .. "../../support/lua/parts.lua")
local named = dofile(here .. "../../support/lua/workloads.lua").named
local CPU, parts_of, product, short_product = support.CPU, support.parts_of, support.product, support.short_product
local sketches, check, has, names, extents = support.sketches, support.check, support.has, support.names,
  support.extents

local tests = {}

function tests.register_tile()
  local func = product(64, 64, 64)
  local made = sketches(func, CPU, {rules = {"register_tile"}})
  assert(#made > 1 and has(made[2], "msched.register_tile"))
  check(func, made[2])
end

-- Whether copies of short floats hold float32 is drawn: both compute the same, and wide ones are cheaper here.
function tests.widening_is_drawn()
  local func = ms.ops.func("matmul", {48, 32, 16, dtype = "bfloat16"})
  local machine, drawn = ms.load("search.cost.analytical").machine(CPU), 0
  for _, sch in ipairs(sketches(func, CPU, {rules = {"register_tile"}})) do
    local list, costs = sch.trace:changeable("SampleCategorical", "msched.widen"), {}
    for choice = 0, #list > 0 and 1 or -1 do
      local trace = sch.trace:with_decision(list[1], {choice})
      costs[choice] = ms.estimate(func, trace, machine)
      if drawn == 0 then check(func, ms.apply(func, trace)) end
    end
    drawn = drawn + #list
    assert(#list == 0 or #list == 1 and costs[0] < costs[1], tostring(sch))
  end
  assert(drawn > 0)
end

-- Columns that are no whole vectors: vectors, and one that is not full, of a tile that stays in registers.
function tests.columns_of_no_whole_vectors()
  for _, columns in ipairs {12, 20, 24, 49, 100} do
    local func = product(6, columns, 8)
    local sch = ms.schedule(func)
    local i, j, k = sch:get_loops(sch:get_sblock "C")
    sch:reorder {k, i, j}
    sch:vectorize(j)
    check(func, sch)
  end
end

-- Constants are packed ahead, whatever order they are read in: a tile has no packed copy of its own, and what is in
-- front is in the order in which it is read, with zeros where tiles run past the end.
function tests.register_tile_of_constants()
  local X, W = te.placeholder({20, 24}, "float32", "X"), te.placeholder({40, 24}, "float32", "W")
  local A, B, r = te.placeholder({20, 12}, "float32", "A"), te.placeholder({12, 40}, "float32", "B"),
    te.reduce_axis(12, "k")
  local function plain(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end
  for _, func in ipairs {te.func("dense", {X, W, (ms.ops.dense(X, W))}, {weights = {"W"}}),
                         te.func("product", {A, B, te.compute({20, 40}, plain, "C")}, {weights = {"B"}})} do
    local made = sketches(func, CPU, {rules = {"register_tile"}})
    assert(#made == 1 + 2, #made)
    for i = 2, #made do
      assert(not names(made[i]):find "_global", tostring(made[i]))
      assert(space.postprocess(made[i],
                               parts_of(CPU, {postprocs = {"rewrite_layout", "rewrite_parallel_vectorize_unroll",
                                                           "rewrite_reduction_block"}})))
      local packing = made[i]:func():packing()
      assert(packing and packing.count == 1 and table.concat(packing.of_kernel, " ") == "1 -1 3", tostring(made[i]))
      local shape = packing.kernel:params()[2].shape
      assert(shape[#shape] % 16 == 0, "whole vectors: " .. table.concat(shape, "x"))
      check(func, made[i])
    end
  end
end

-- An image's lines and columns are rows of one tile, which go on from a line to the next; the edge is masked or cut
-- off.
function tests.register_tile_of_an_image()
  local X, W = te.placeholder({1, 6, 7, 8}, "float32", "X"), te.placeholder({3, 3, 8, 32}, "float32", "W")
  local func = te.func("image", {X, W, ms.ops.conv2d(X, W)})
  local made = sketches(func, CPU, {rules = {"register_tile"}})
  assert(#made == 5)
  for i = 2, #made do
    assert(has(made[i], "n_h_w_fused"), tostring(made[i]))
    check(func, made[i])
  end
end

-- Padding stays as it is, or is inlined: then a tile's rows are of one line.
function tests.register_tile_skips_padding()
  local X, W = te.placeholder({1, 6, 7, 8}, "float32", "X"), te.placeholder({3, 3, 8, 32}, "float32", "W")
  local func = te.func("image", {X, W, ms.ops.conv2d(X, W, {pad = 1})})
  local made, skips = sketches(func, CPU, {rules = {"register_tile"}}), 0
  assert(#made == 7)
  for i = 2, #made do
    local inlined = not names(made[i]):find " pad "
    skips = skips + (inlined and 1 or 0)
    assert(has(made[i], "n_h_w_fused") == not inlined, tostring(made[i]))
    assert(space.postprocess(made[i], parts_of(CPU, {postprocs = {"rewrite_reduction_block"}})))
    check(func, made[i])
  end
  assert(skips == 2)
end

local DOTS = ms.target "llvm -mcpu=cooperlake -num-cores=2"
local NO_DOTS = ms.target "llvm -mtriple=aarch64-linux-gnu -num-cores=2" -- ARMv8.0
local TILES = ms.target "llvm -mcpu=sapphirerapids -num-cores=2"

-- Windows of bytes that slide along rows by one element, of targets that have words of them slide: lines and rows of
-- one tile, with all terms unrolled, where padding is as it was and where it is inlined.
function tests.register_tile_of_windows()
  local slides = ms.target "llvm -mcpu=znver5 -num-cores=2"
  assert(slides.slides == 1 and DOTS.slides == 0)
  local function count(stride, pad, width)
    local X, W = te.placeholder({1, width, width, 20}, "uint8", "X"), te.placeholder({3, 3, 20}, "int8", "W")
    local func = te.func("windows", {X, W, (ms.ops.depthwise_conv2d(X, W, {stride = stride, pad = pad}))})
    local made, windows = sketches(func, slides, {rules = {"register_tile"}}), 0
    assert(#sketches(func, DOTS, {rules = {"register_tile"}}) <= #made)
    for _, sch in ipairs(made) do
      local unrolled = has(sch, "T.unroll(3)")
      windows = windows + (unrolled and 1 or 0)
      if unrolled then
        assert(space.postprocess(sch, parts_of(slides, {postprocs = {"rewrite_reduction_block"}})))
        check(func, sch)
      end
    end
    return windows
  end
  assert(count(1, 1, 9) == 4 and count(1, 0, 9) == 2)
  assert(count(1, 0, 8) == 1, "six rows: four lines of six alone")
  assert(count(2, 1, 19) == 0, "windows that go on by two elements share half of their words")
  for _, shape in ipairs {"1 112 112 32 3 1 1", "1 14 14 512 3 1 1"} do -- and they rank first
    local func = named("depthwise_conv2d", shape .. " dtype=uint8 weight_dtype=int8 accumulate=int32")
    assert(has(ms.auto_schedule(func, {target = slides.text}), "T.unroll(3)"), func:name())
  end
end

-- Products of bytes and of bfloat16 by dot products: what differs by columns lies neighbour by neighbour, what does so
-- already is read where it is, a shared operand that is not contiguous is copied.
function tests.dot_tile()
  local function of(x, y, sum) return function(shapes, at) return short_product(x, y, sum, shapes, at) end end
  local bytes, signed, bfloats = of("uint8", "int8", "int32"), of("int8", "int8", "int32"),
    of("bfloat16", "bfloat16", "float32")
  local plain = {{12, 16}, {16, 40}, {12, 40}, {16}}
  local function rows_by_columns(i, k) return {i[1], k[1]}, {k[1], i[2]} end
  local weights = {{12, 16}, {40, 16}, {12, 40}, {16}}
  local packed = {{12, 16}, {4, 40, 4}, {12, 40}, {4, 4}}
  local across = {{16, 12}, {16, 40}, {12, 40}, {16}}
  local image = {{2, 5, 6, 8}, {3, 3, 8, 32}, {2, 3, 4, 32}, {3, 3, 8}}
  local batch = {{2, 3, 16}, {2, 16, 32}, {2, 3, 32}, {16}}
  local list = {
    {bytes(plain, rows_by_columns), "B_global"}, {signed(plain, rows_by_columns), "B_global"},
    {bfloats(plain, rows_by_columns), "B_global"},
    {bytes(weights, function(i, k) return {i[1], k[1]}, {i[2], k[1]} end), "B_global"},
    {bytes(packed, function(i, k) return {i[1], k[1] * 4 + k[2]}, {k[1], i[2], k[2]} end), nil},
    {bytes(across, function(i, k) return {k[1], i[1]}, {k[1], i[2]} end), "A_global"},
    {bytes(image, function(i, k) return {i[1], i[2] + k[1], i[3] + k[2], k[3]}, {k[1], k[2], k[3], i[4]} end),
     "B_global"},
    {bytes(batch, function(i, k) return {i[1], i[2], k[1]}, {i[1], k[1], i[3]} end), "B_global"},
  }
  for _, depth in ipairs {17, 18, 19, 35} do -- the last are left over
    local shapes = {{12, depth}, {depth, 40}, {12, 40}, {depth}}
    for _, make in ipairs {bytes, signed, bfloats} do list[#list + 1] = {make(shapes, rows_by_columns), "B_global"} end
    list[#list + 1] = {signed({{depth, 12}, shapes[2], shapes[3], shapes[4]},
                              function(i, k) return {k[1], i[1]}, {k[1], i[2]} end), "A_global"}
  end
  for _, window in ipairs {1, 3} do -- each group is a product by itself
    local X, W = te.placeholder({1, 3, 4, 16}, "int8", "X"), te.placeholder({window, window, 8, 64}, "int8", "W")
    local Y = ms.ops.conv2d(X, W, {pad = window // 2, groups = 2, accumulate = "int32"})
    list[#list + 1] = {te.func("groups", {X, W, Y}), "W_global"}
  end
  local function transposed(constant) -- and each phase, with taps of its own
    local X, W = te.placeholder({1, 3, 4, 16}, "bfloat16", "X"), te.placeholder({4, 4, 16, 32}, "bfloat16", "W")
    return te.func("transposed", {X, W, (ms.ops.conv2d_transpose(X, W, {stride = 2, pad = 1, accumulate = "float32"}))},
                   constant and {weights = {"W"}} or nil)
  end
  list[#list + 1] = {transposed(false), "W_global"}
  for n, case in ipairs(list) do
    local made = sketches(case[1], DOTS, {rules = {"dot_tile"}})
    assert(#made == 3, n .. ": " .. #made) -- one vector a row, or two
    for i = 2, #made do
      assert((not case[2] and not names(made[i]):find "_global") or names(made[i]):find(case[2], 1, true),
             n .. ": " .. tostring(made[i]))
      assert(has(made[i], "T.vectorized(")
             and space.postprocess(made[i], parts_of(DOTS, {postprocs = {"rewrite_reduction_block"}})))
      check(case[1], made[i])
    end
    assert(#sketches(case[1], NO_DOTS, {rules = {"dot_tile"}}) == 1, "a target without dot products has no such tiles")
  end
  local made = sketches(transposed(true), DOTS, {rules = {"dot_tile"}})
  assert(#made == 3)
  for i = 2, #made do -- what no order of loops says how to pack is packed ahead all the same
    check(transposed(true), made[i])
    assert(space.postprocess(made[i], parts_of(DOTS, {postprocs = {"rewrite_layout", "rewrite_reduction_block"}})))
    local packing = made[i]:func():packing()
    assert(packing and table.concat(packing.kernel:params()[2].shape, "x") == "4x4x8x32x2", tostring(made[i]))
  end
  for _, make in ipairs {bytes, signed} do -- without VNNI, pairs of int16 (pmaddwd), of copies of both operands
    local func = make(plain, rows_by_columns)
    made = sketches(func, CPU, {rules = {"dot_tile"}})
    assert(#made == 3)
    for i = 2, #made do
      local text = tostring(made[i]:func())
      assert(text:find("A_global = ", 1, true) and text:find("B_global[v0 // 2, v1, v0 % 2]", 1, true), text)
      assert(#made[i].trace:changeable("SampleCategorical", "msched.widen") == 1, text)
      check(func, made[i])
    end
  end
  assert(#sketches(bfloats(plain, rows_by_columns), CPU, {rules = {"dot_tile"}}) == 1)
  for _, other in ipairs {of("int16", "int16", "int32")(plain, rows_by_columns),
                          of("int8", "int8", "int64")(plain, rows_by_columns), product(8, 32, 16),
                          bytes({{12, 14}, {14, 40}, {12, 40}, {14}}, rows_by_columns)} do
    assert(#sketches(other, DOTS, {rules = {"dot_tile"}}) == 1)
  end
end

-- Results of fewer channels than a vector has elements: vectors lie along columns of the image, or rows of the other
-- operand, and are copied to where results belong.
function tests.few_columns()
  local POSTPROCS = {"rewrite_layout", "rewrite_parallel_vectorize_unroll", "rewrite_reduction_block"}
  local image = {1, 3, 17, 8, 3, 3, pad = 1}
  local transposed = {1, 2, 17, 8, 3, 4, stride = 2, pad = 1}
  for _, case in ipairs {{"conv2d", image}, {"conv2d_transpose", transposed}, {"dense", {20, 16, 5}},
                         {"conv2d", {1, 3, 17, 16, 4, 3, pad = 1, groups = 2}}} do
    for _, type in ipairs {"int8", "bfloat16", "float32"} do
      local given = {dtype = type}
      for key, value in pairs(case[2]) do given[key] = value end
      local func, short = ms.ops.func(case[1], given), type ~= "float32"
      local target, rule = short and DOTS or CPU, short and "dot_tile" or "register_tile"
      local made = sketches(func, target, {rules = {rule}})
      assert(#made > 1, func:name())
      for i = 2, #made do
        assert(made[i].trace:text():find("cache_write", 1, true) and names(made[i]):find "_global", tostring(made[i]))
        assert(space.postprocess(made[i], parts_of(target, {postprocs = POSTPROCS})))
        check(func, made[i])
      end
    end
  end
  for _, columns in ipairs {16, 17} do -- enough
    for _, sch in ipairs(sketches(ms.ops.func("dense", {20, 16, columns}), CPU, {rules = {"register_tile"}})) do
      assert(not sch.trace:text():find("cache_write", 1, true))
    end
  end
  assert(#sketches(ms.ops.func("dense", {3, 16, 5}), CPU, {rules = {"register_tile"}}) == 1) -- nor others
end

-- Weights that sums are taken of too, as zero points need them, are packed for the product alone.
function tests.weights_of_two_readers()
  local POSTPROCS = {"rewrite_layout", "rewrite_parallel_vectorize_unroll", "rewrite_reduction_block"}
  local shape = {12, 40, 16, x_zero_point = 3}
  for _, constant in ipairs {false, true} do
    shape.constant = constant
    local func = ms.ops.func("quantized_dense", shape)
    for rule, most in pairs {dot_tile = 3, register_tile = 5} do
      local target = rule == "dot_tile" and DOTS or CPU
      local made = sketches(func, target, {rules = {rule}})
      assert(#made > 1 and #made <= most, rule .. ": " .. #made)
      for i = 2, #made do
        assert(space.postprocess(made[i], parts_of(target, {postprocs = POSTPROCS})))
        local text, packing = tostring(made[i]:func()), constant and made[i]:func():packing()
        assert(text:find("W_global[", 1, true) or rule == "register_tile" and not constant, text)
        assert(text:find("W[v_i0, v_s1]", 1, true), text) -- the sums read the weights as they are
        assert(not constant or packing.count == 2, text) -- what is packed, and the sums
        check(func, made[i])
      end
    end
  end
end

-- What the analytical model ranks first of such a product has dot products; or tiles of AMX, where the target has
-- these.
function tests.dot_tiles_rank_first()
  local analytical = ms.load "search.cost.analytical"
  for _, types in ipairs {{"uint8", "int8", "int32"}, {"bfloat16", "bfloat16", "float32"}} do
    local func = short_product(types[1], types[2], types[3], {{256, 256}, {256, 256}, {256, 256}, {256}},
                               function(i, k) return {i[1], k[1]}, {k[1], i[2]} end)
    local list = {}
    for i, sch in ipairs(sketches(func, DOTS, {rules = {"register_tile", "dot_tile", "multi_level_tiling",
                                                        "parallel_vectorize_unroll"}})) do
      list[i] = sch.trace
    end
    local best = analytical.best(func, DOTS, list, {budget = 2000, most = 8})[1]
    assert(tostring(ms.apply(func, best.trace):func()):find("// " .. (types[1] == "uint8" and 4 or 2), 1, true),
           tostring(best.trace))
    list = {}
    for i, sch in ipairs(sketches(func, TILES, {rules = {"register_tile", "dot_tile", "amx_tile", "multi_level_tiling",
                                                         "parallel_vectorize_unroll"}})) do
      list[i] = sch.trace
    end
    best = analytical.best(func, TILES, list, {budget = 2000, most = 8})[1]
    assert(tostring(best.trace):find("amx_16x16x", 1, true), tostring(best.trace))
  end
end

-- Where rows of the other operand have the same place in the first cache, sketches of several vectors a row pack both:
-- it once a block of the reduction, for all columns. Elsewhere, and of constants, there are none.
function tests.register_tile_packs_crowded_rows()
  local function packing_both(func)
    local list = {}
    for _, sch in ipairs(sketches(func, CPU, {rules = {"register_tile"}})) do
      if names(sch):find "A_global" then list[#list + 1] = sch end
    end
    return list
  end
  local func = product(9, 64, 1024)
  local made = packing_both(func)
  assert(#made == 3, #made)
  for _, sch in ipairs(made) do
    local a, b, c = extents(sch, "A_global"), extents(sch, "B_global"), extents(sch, "C")
    assert(a[#a] * c[2] == 1024 and b[#b - 1] == a[#a], "a block of the reduction")
    assert(#a == 4 and a[2] == c[2] and #b == 5 and b[3] == c[3], "outside of the tiles of columns")
    check(func, sch)
  end
  assert(#packing_both(product(9, 64, 1000)) == 0, "rows that have places of their own")
  local A, B, k = te.placeholder({9, 1024}, "float32", "A"), te.placeholder({1024, 64}, "float32", "B"),
    te.reduce_axis(1024, "k")
  local C = te.compute({9, 64}, function(i, j) return te.sum(A[{i, k}] * B[{k, j}], k) end, "C")
  assert(#packing_both(te.func("constant", {A, B, C}, {weights = {"A"}})) == 0, "constants are packed ahead")
  local D = te.compute({9, 64}, function(i, j) return te.max(C[{i, j}], 0) end, "D")
  local followed = te.func("followed", {A, B, D})
  for _, sch in ipairs(packing_both(followed)) do check(followed, sch) end
  assert(#packing_both(followed) == 3)
end

-- What is read across the vectors is packed along them: weights of a dense layer by columns.
function tests.register_tile_across()
  local X, W = te.placeholder({20, 24}, "float32", "X"), te.placeholder({40, 24}, "float32", "W")
  local func = te.func("dense", {X, W, (ms.ops.dense(X, W))})
  local made = sketches(func, CPU, {rules = {"register_tile"}})
  assert(#made == 1 + 2, #made) -- one vector a row, or two; not without packed panels
  for i = 2, #made do
    local sch = made[i]
    local copy = sch:get_sblock "W_global"
    assert(table.concat(sch:writes(copy)[1].shape, "x") == "24x40", tostring(sch))
    assert(not names(sch):find "X_global", tostring(sch))
    check(func, sch)
  end
end

-- What remainders choose is taken apart: in a tile of rows of a transposed convolution every element takes the same
-- taps. Where its padding is inlined, a tile is of one line, and phases are loops of their own.
function tests.register_tile_of_phases()
  local X, W = te.placeholder({1, 5, 4, 8}, "float32", "X"), te.placeholder({4, 4, 8, 32}, "float32", "W")
  local func = te.func("phases", {X, W, ms.ops.conv2d_transpose(X, W, {stride = 2, pad = 1})})
  local whole = ms.schedule(func)
  local block = whole:get_sblock "conv2d_transpose"
  local _, h, w, o = whole:get_loops(block)
  assert(whole:period(block, h) == 2 and whole:period(block, w) == 2 and whole:period(block, o) == 1)
  local made, skips = sketches(func, CPU, {rules = {"register_tile"}}), 0
  assert(#made == 7)
  for i = 2, #made do
    local inlined = not names(made[i]):find " pad "
    skips = skips + (inlined and 1 or 0)
    assert(has(made[i], "h_1_w_1_fused") == not inlined and has(made[i], "n_h_0_w_0_fused") == not inlined,
           tostring(made[i]))
    assert(has(made[i], "h_1, w_1, n_w_0_fused_1") == inlined, tostring(made[i]))
    assert(space.postprocess(made[i], parts_of(CPU, {postprocs = {"rewrite_reduction_block"}})))
    check(func, made[i])
  end
  assert(skips == 2)
end

-- What tiles of several lines read is left where it is: no place inside has a window of constant size.
function tests.what_tiles_of_lines_read_stays()
  local X, W = te.placeholder({1, 6, 7, 8}, "float32", "X"), te.placeholder({3, 3, 8, 32}, "float32", "W")
  local func = te.func("image", {X, W, ms.ops.conv2d(X, W, {pad = 1})})
  for i, sch in ipairs(sketches(func, CPU, {rules = {"register_tile", "random_compute_location"}})) do
    local drawn = tostring(sch.trace):find("sample_compute_location", 1, true)
    assert((drawn ~= nil) == (i == 1), i .. tostring(sch.trace))
  end
end

-- Where the loop over blocks of the reduction runs once, each tile begins at its own init, or all of them before: as
-- drawn.
function tests.a_register_tile_begins_at_its_init()
  local func, seen = product(128, 64, 64), {}
  for seed = 1, 12 do
    local sch = space.generate(func, parts_of(CPU, {rules = {"register_tile"}}), seed)[2]
    local blocks, before = extents(sch, "C")[3], sch:annotation(sch:get_sblock "C", "msched.init_before_tiles")
    space.postprocess(sch, parts_of(CPU, {postprocs = {"rewrite_reduction_block"}}))
    if names(sch):find "C_init" then -- not where tiles overrun: an init under that condition can be nowhere else
      assert(sch:shared_loops(sch:get_sblock "C_init", sch:get_sblock "C_update")
             == (blocks == 1 and before == 0 and 4 or 2), tostring(sch))
      seen[(blocks == 1 and "one" or "many") .. before] = true
    end
    assert(not has(sch, "init_before_tiles"), "a note that was done is still there")
    check(func, sch)
  end
  assert(seen.one0 and seen.one1 and seen.many0 and seen.many1, "not all were drawn")
end

-- Sums of groups, added up with a factor each: the groups' sums are made where they are used, for so many vectors of
-- columns and so many rows; constants are packed ahead. Rows that tiles do not divide, one row, and rows in chunks.
local function grouped(m, n, words)
  words = words or {}
  words[#words + 1] = "group=16"
  return ms.ops.func("dense_nbits", {tostring(m), tostring(n), "48", table.unpack(words)})
end

function tests.group_sums()
  for _, m in ipairs {1, 5, 130} do
    for _, words in ipairs {{}, {"bits=8"}, {"products=int8"}, {"products=int24"}, {"zero_points=true"}} do
      local func = grouped(m, 48, words)
      local made = sketches(func, CPU, {rules = {"group_sums"}})
      assert(#made == 2, #made) -- of 16 and of 32 columns
      for _, sch in ipairs(made) do
        local groups, sum = sch:get_sblock "dense_nbits_groups_update", sch:get_sblock "dense_nbits"
        assert(sch:shared_loops(groups, sum) == (m > 64 and 4 or 3), tostring(sch))
        assert(has(sch, "T.parallel") and has(sch, "T.vectorized"), tostring(sch))
        assert(space.postprocess(sch, parts_of(CPU, {postprocs = {"rewrite_layout", "rewrite_parallel_vectorize_unroll",
                                                     "rewrite_reduction_block"}})))
        assert(sch:func():packing().count == (words[1] == "zero_points=true" and 3 or 2),
               "weights, scales and zero points are packed")
        local own, want = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
        ms.interpret(sch:func(), table.unpack(own))
        ms.interpret(func, table.unpack(want))
        assert(own[#own]:difference(want[#want]) <= 1e-3, sch.trace:text())
      end
    end
  end
end

-- Parts of four bits are floats by a permutation of the sixteen that there are, of words that are loaded once, where
-- the target has one; in one row a part has sums of its own, which stay apart. Bytes of a group that are no whole
-- words, whole bytes, and several rows have no words.
function tests.group_sums_of_words()
  local target = ms.target "llvm -mcpu=znver4 -num-cores=1"
  local parts = parts_of(target, {postprocs = {"rewrite_layout", "rewrite_parallel_vectorize_unroll",
                                               "rewrite_reduction_block"}})
  local runs = pcall(ms.target, target.text, {runs = true})
  for n, case in ipairs {{grouped(1, 48), true, true, false}, {grouped(3, 48), false, false, true},
                         {grouped(1, 48, {"bits=8"}), false, false, true},
                         {ms.ops.func("dense_nbits", {"1", "32", "54", "group=54"}), false, false, true}} do
    local func, made = case[1], sketches(case[1], target, {rules = {"group_sums"}})
    assert(#made == 2, #made)
    for _, sch in ipairs(made) do
      assert(space.postprocess(sch, parts))
      local halves = pcall(sch.get_sblock, sch, "dense_nbits_groups_rf_update")
      assert(halves == case[2], n .. ": " .. tostring(sch))
      ms.check_lowered(func, sch:func(), target.text, 1)
      ms.with_folder(function(folder)
        ms.build(sch:func(), {target = target.text, load = false}):export(folder .. "/f.s")
        local text = assert(io.open(folder .. "/f.s")):read "a"
        local _, permutations = text:gsub("%svpermp?[ds]%s", "")
        assert((permutations >= 16) == case[3], n .. ": " .. permutations .. " permutations")
        assert((text:find("%sv?pmovzxbd%s") ~= nil) == case[4], n .. ": bytes are widened, or are not")
      end)
      local own, want = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
      if runs then
        ms.build(sch:func(), {target = target.text}):run(table.unpack(own))
        ms.interpret(func, table.unpack(want))
        assert(own[#own]:difference(want[#want]) <= 1e-3, n .. ": " .. sch.trace:text())
      end
    end
  end
end

-- Rows of bfloat16 by weights of 4 bits that are scaled first: each copy unpacks them by vectors of columns, from
-- constants in that order, and no other tile is made; where vectors divide nothing, element by element.
function tests.unpacked_copies()
  local target = ms.target "llvm -mcpu=znver4 -num-cores=1"
  local parts = parts_of(target, {postprocs = {"rewrite_layout", "rewrite_parallel_vectorize_unroll",
                                               "rewrite_reduction_block"}})
  local runs = pcall(ms.target, target.text, {runs = true})
  local function words(...) return {"dtype=bfloat16", "products=bfloat16", ...} end
  local function few_bits(n, k, list)
    return ms.ops.func("dense_nbits", {"5", tostring(n), tostring(k), table.unpack(list)})
  end
  for n, case in ipairs {{few_bits(64, 64, words "group=16"), 3, true}, {few_bits(64, 64, words "bits=8"), 3, true},
                         {few_bits(64, 64, words("order=halves", "zero_points=true")), 3, true},
                         {few_bits(40, 64, words()), 2, false}} do
    local func = case[1]
    for _, rule in ipairs {"register_tile", "multi_level_tiling"} do
      assert(#sketches(func, target, {rules = {rule}}) == 1, rule)
    end
    local made = sketches(func, target, {rules = {"dot_tile"}})
    assert(#made == case[2] + 1, n .. ": " .. #made)
    for i, sch in ipairs(made) do
      if i > 1 then
        assert(pcall(sch.get_sblock, sch, "dense_nbits_weights") ~= case[3], n .. ": " .. tostring(sch))
        assert(space.postprocess(sch, parts))
        ms.check_lowered(func, sch:func(), target.text, 1)
        local own, want = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
        ms.interpret(func, table.unpack(want))
        ms.interpret(sch:func(), table.unpack(own))
        assert(own[#own]:difference(want[#want]) <= 1e-3, n .. ": " .. sch.trace:text())
        ms.with_folder(function(folder)
          ms.build(sch:func(), {target = target.text, load = false}):export(folder .. "/f.s")
          local text = assert(io.open(folder .. "/f.s")):read "a"
          assert(text:find "vdpbf16ps" and (not text:find "vpextrw" or not case[3]), n .. ": " .. tostring(sch))
        end)
        if runs then
          own = ms.arrays_for(func, 1)
          ms.build(sch:func(), {target = target.text}):run(table.unpack(own))
          assert(own[#own]:difference(want[#want]) <= 1e-3, n .. ": " .. sch.trace:text())
        end
      end
    end
  end
end

-- Nothing is fused where columns of weights are no constants and would be gathered, where there are fewer columns than
-- a vector has, where the groups' sums are read elsewhere too, or where there are no groups.
function tests.group_sums_refuses()
  local function stays(func)
    assert(#sketches(func, CPU, {rules = {"group_sums"}}) == 1
           and not has(sketches(func, CPU, {rules = {"group_sums"}})[1], "register_tile"))
  end
  stays(grouped(2, 48, {"constant=false"}))
  stays(grouped(2, 12))
  stays(product(64, 64, 64))
  local A, B, S = te.placeholder({4, 4, 8}, "float32", "A"), te.placeholder({4, 8, 32}, "float32", "B"),
    te.placeholder({4, 32}, "float32", "S")
  local k, g = te.reduce_axis(8, "k"), te.reduce_axis(4, "g")
  local P = te.compute({4, 4, 32}, function(i, h, j) return te.sum(A[{i, h, k}] * B[{h, k, j}], k) end, "P")
  local Y = te.compute({4, 32}, function(i, j) return te.sum(P[{i, g, j}] * S[{g, j}], g) end, "Y")
  local fused = te.func("fused", {A, B, S, Y})
  local made = sketches(fused, CPU, {rules = {"group_sums"}})
  assert(#made == 2 and has(made[1], "register_tile"))
  for _, sch in ipairs(made) do check(fused, sch) end
  stays(te.func("read_twice", {A, B, S, Y, te.compute({4, 4, 32}, function(i, h, j) return P[{i, h, j}] * 2 end, "Z")}))
end

support.run(tests, "parts of register tiles")
