-- The rule of AMX's tiles: what it makes of a small function, or refuses; what is made computes what the function
-- computes, as it stands, tensorized and lowered.
local ms = require "msched"
local space, te = ms.load "rules.space", ms.te
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/parts.lua")
local parts_of, product, short_product = support.parts_of, support.product, support.short_product
local sketches, check, names, has = support.sketches, support.check, support.names, support.has
local extents = support.extents

local TILES, DOTS = ms.target "llvm -mcpu=sapphirerapids -num-cores=2", ms.target "llvm -mcpu=cooperlake -num-cores=2"
local tests = {}

local function of(x, y, sum) return function(shapes, at) return short_product(x, y, sum, shapes, at) end end
local bytes, bfloats = of("int8", "int8", "int32"), of("bfloat16", "bfloat16", "float32")
local SIGNS =
  {bytes, of("int8", "uint8", "int32"), of("uint8", "int8", "int32"), of("uint8", "uint8", "int32"), bfloats}
local function plain(m, n, k) return {{m, k}, {k, n}, {m, n}, {k}} end
local function rows_by_columns(i, k) return {i[1], k[1]}, {k[1], i[2]} end

-- Where this machine, or what runs in its place (tests/amx), multiplies such tiles, they are run.
local HERE = ms.target "native"
local NEEDED = {i = 1, b = 2, f = 16} -- of its tiles, by what is behind the sizes in an intrinsic's name
local function run_here(func, sch)
  local bits = NEEDED[tostring(sch.trace):match "amx_1[46]x16x%d+_u?([ibf])"] or 1
  if HERE.tiles & bits > 0 then ms.build(sch:func(), {reference = func, target = HERE.text}):check() end
end

-- Sketches of the rule, tensorized: each multiplies tiles, which begin as zeros, and computes what the function does,
-- lowered too.
local function made_of(func, rules, target)
  local made = sketches(func, target or TILES, {rules = rules or {"amx_tile"}})
  for i = 2, #made do
    check(func, made[i])
    local postprocs = {"rewrite_layout", "rewrite_parallel_vectorize_unroll", "rewrite_reduction_block",
                       "rewrite_tensorize"}
    assert(space.postprocess(made[i], parts_of(target or TILES, {postprocs = postprocs})))
    assert(made[i]:script():find("T%.tdp[bf]") and made[i]:script():find("T.tilezero", 1, true),
           i .. ": no instruction")
    ms.check_lowered(func, made[i]:func(), (target or TILES).text, 1)
    run_here(func, made[i])
  end
  return made
end

-- Whole tiles of all four signs of bytes, and of bfloat16, by two and two accumulators or as many as divide; no other
-- product has such.
function tests.whole_tiles()
  local across = {{128, 64}, {128, 64}, {64, 64}, {128}}
  local image = {{1, 3, 18, 64}, {3, 3, 64, 32}, {1, 1, 16, 32}, {3, 3, 64}}
  for n, case in ipairs {
    {bytes(plain(64, 64, 128), rows_by_columns), 3, "amx_16x16x64_i8"},
    {of("uint8", "int8", "int32")(plain(32, 32, 64), rows_by_columns), 1, "amx_16x16x64_u8i8"},
    {of("int8", "uint8", "int32")(plain(32, 32, 64), rows_by_columns), 1, "amx_16x16x64_i8u8"},
    {of("uint8", "uint8", "int32")(plain(16, 48, 64), rows_by_columns), 2, "amx_16x16x64_u8"},
    {bfloats(plain(64, 32, 64), rows_by_columns), 2, "amx_16x16x32_bf16"},
    {bytes({{32, 64}, {32, 64}, {32, 32}, {64}}, function(i, k) return {i[1], k[1]}, {i[2], k[1]} end), 1, "B_global"},
    {bytes(across, function(i, k) return {k[1], i[1]}, {k[1], i[2]} end), 3, "A_global"},
    {bytes(image, function(i, k) return {i[1], i[2] + k[1], i[3] + k[2], k[3]}, {k[1], k[2], k[3], i[4]} end), 2,
     "amx_16x16x64_i8"},
    {bytes({{32, 128}, {32, 32, 4}, {32, 32}, {32, 4}},
           function(i, k) return {i[1], k[1] * 4 + k[2]}, {k[1], i[2], k[2]} end), 1, "amx_16x16x64_i8"},
    {bfloats({{32, 64}, {32, 16, 2}, {32, 16}, {32, 2}},
             function(i, k) return {i[1], k[1] * 2 + k[2]}, {k[1], i[2], k[2]} end), 2, "amx_16x16x32_bf16"},
  } do
    local made = made_of(case[1])
    assert(#made == 1 + case[2], n .. ": " .. #made)
    for i = 2, #made do
      assert(tostring(made[i]):find(case[3], 1, true) or tostring(made[i].trace):find(case[3], 1, true),
             n .. ": " .. tostring(made[i]))
      assert(not has(made[i], "_pad"), n .. ": whole tiles are padded")
    end
    assert(#sketches(case[1], DOTS, {rules = {"amx_tile"}}) == 1, "a target without tiles has none")
  end
  for n, other in ipairs {of("int16", "int16", "int32")(plain(32, 32, 64), rows_by_columns), product(32, 32, 64)} do
    assert(#sketches(other, TILES, {rules = {"amx_tile"}}) == 1, n)
  end
end

-- Rows, columns, or what is summed are no whole tiles: what is padded is copied, and nothing else but the columns'
-- operand.
function tests.tails()
  for n,
      case in ipairs {{{20, 24, 70}, "A_pad", "_reindex_pad", "C_pad"}, {{32, 24, 64}, nil, "B_reindex_pad", "C_pad"},
                      {{20, 32, 64}, "A_pad", "B_reindex", "C_pad"}, {{32, 32, 70}, "A_pad", "B_reindex_pad", nil},
                      {{3, 16, 64}, "A_pad", "B_reindex", "C_pad"}, {{17, 1, 27}, "A_pad", "B_reindex_pad", "C_pad"}} do
    local m, n_columns, k = table.unpack(case[1])
    for _, make in ipairs(n == 1 and SIGNS or {SIGNS[n % 5 + 1]}) do
      local func = make(plain(m, n_columns, k), rows_by_columns)
      local made = made_of(func)
      assert(#made >= 2, n)
      for i = 2, #made do
        for _, name in ipairs {"A_pad", "B_reindex", "C_pad"} do
          local wanted = (name == "A_pad" and case[2] or name == "C_pad" and case[4] or name == "B_reindex" and case[3])
            and true or false
          assert(has(made[i], name) == wanted, n .. ": " .. name .. "\n" .. tostring(made[i]))
        end
      end
    end
  end
end

-- Products of float16 have tiles where the CPU names these, and are estimated as such; those that add to float16 have
-- none.
function tests.halves()
  local granite, analytical = ms.target "llvm -mcpu=graniterapids -num-cores=2", ms.load "search.cost.analytical"
  local halves = of("float16", "float16", "float32")
  for n, case in ipairs {{32, 32, 64}, {20, 24, 70}} do
    local func = halves(plain(table.unpack(case)), rows_by_columns)
    local made = made_of(func, nil, granite)
    assert(#made >= 2 and #sketches(func, TILES, {rules = {"amx_tile"}}) == 1, n)
    for i = 2, #made do
      ms.with_folder(function(folder)
        ms.build(made[i]:func(), {target = granite.text, load = false}):export(folder .. "/f.s")
        assert(ms.read_file(folder .. "/f.s"):find("tdpfp16ps", 1, true), n)
      end)
    end
  end
  for n, other in ipairs {of("float16", "bfloat16", "float32"), of("float16", "float16", "float16")} do
    local func = other(plain(32, 32, 64), rows_by_columns)
    assert(#sketches(func, granite, {rules = {"amx_tile"}}) == 1, n)
  end
  local function best_of(make)
    local func, list = make(plain(512, 512, 512), rows_by_columns), {}
    local rules = {"register_tile", "amx_tile", "parallel_vectorize_unroll"}
    for i, sch in ipairs(sketches(func, granite, {rules = rules})) do list[i] = sch.trace end
    return analytical.best(func, granite, list, {budget = 2000, most = 8})[1]
  end
  local best = best_of(halves)
  assert(tostring(best.trace):find("amx_16x16x32_f16", 1, true), tostring(best.trace))
  assert(math.abs(best.cost / best_of(bfloats).cost - 1) < 0.1, best.cost)
end

-- An image's lines are rows of one matrix, also where strides and few channels leave no whole tiles: a convolution with
-- lines of 7, and what is summed over 3 x 3 x 3. The copy of the image goes by runs of channels, at most a tile's row.
function tests.images()
  for n, case in ipairs {{"int8", 7, 16, 16, 3, 1, 16}, {"uint8", 9, 3, 20, 3, 2}, {"bfloat16", 5, 32, 16, 1, 1, 32},
                         {"uint8", 5, 128, 16, 3, 1, 64}, {"int8", 7, 24, 16, 1, 2, 8}} do
    local type, side, channels, outputs, window, stride, run = table.unpack(case)
    local X, W = te.placeholder({1, side, side, channels}, type, "X"),
      te.placeholder({window, window, channels, outputs}, type, "W")
    local Y = ms.ops.conv2d(X, W, {pad = window // 2, stride = stride,
                                   accumulate = type == "bfloat16" and "float32" or "int32"})
    local made = made_of(te.func("image", {X, W, Y}))
    assert(#made >= 2, n)
    for i = 2, #made do
      assert(has(made[i], "_reindex_pad"), tostring(made[i]))
      local copy = names(made[i]):match " (pad_reindex%S*) " or names(made[i]):match " (X_reindex%S*) "
      local e = extents(made[i], copy)
      assert(not run or e[#e] == run, copy .. "\n" .. tostring(made[i]))
    end
  end
end

-- Lines of multiples of 14 are tiles of 14 rows, read where they lie, with accumulators of a line or, of lines of 14,
-- of two. All loops of the reduction are one, over which accumulators stay in registers: they are stored as often as
-- they begin as zeros, and no conditions leave out zeros around the image.
function tests.lines()
  local function count(text, word)
    local _, n = text:gsub("\t" .. word .. "%s", "")
    return n
  end
  for n, case in ipairs {{"uint8", 14, 64, 32}, {"bfloat16", 28, 32, 16}} do
    local type, side, channels, outputs = table.unpack(case)
    local X, W = te.placeholder({1, 4, side, channels}, type, "X"),
      te.placeholder({3, 3, channels, outputs}, type, "W")
    local Y = ms.ops.conv2d(X, W, {pad = 1, accumulate = type == "bfloat16" and "float32" or "int32"})
    local func, whole = te.func("image", {X, W, Y}), 0
    local made = made_of(func)
    for i = 2, #made do
      if tostring(made[i].trace):find("amx_14x16x", 1, true) then
        whole = whole + 1
        assert(not has(made[i], "_reindex_pad") and tostring(made[i].trace):find("amx_zero_14_", 1, true), n)
        ms.with_folder(function(folder)
          ms.build(made[i]:func(), {target = TILES.text, load = false}):export(folder .. "/f.s")
          local text = ms.read_file(folder .. "/f.s")
          assert(count(text, "tilezero") > 0 and count(text, "tilestored") == count(text, "tilezero"),
                 n .. ": accumulators lie in memory\n" .. tostring(made[i]))
        end)
      end
    end
    assert(whole >= 1, n .. ": no tiles of 14 rows")
    assert((tostring(made[2].trace):find(", 14%}") == nil) == (side == 14), n .. ": lines of 14 are a tile each")
  end
  local odd = bytes({{1, 3, 13, 64}, {2, 2, 64, 16}, {1, 2, 12, 16}, {2, 2, 64}}, function(i, k)
    return {i[1], i[2] + k[1], i[3] + k[2], k[3]}, {k[1], k[2], k[3], i[4]}
  end)
  for _, sch in ipairs(sketches(odd, TILES, {rules = {"amx_tile"}})) do
    assert(not tostring(sch.trace):find("amx_14x16x", 1, true), "lines of 12")
  end
end

-- The innermost iteration of rows is the tile's: images whose height, depth or number tiles divide, and whose lines
-- they do not, are padded matrices; of several images, or planes, the lines of one are the tile's, and no chunk crosses
-- them.
function tests.images_of_all_sides()
  local function convolution(name, shape, channels, window)
    local spatial, filter = {table.unpack(shape)}, {}
    for d = 1, #shape - 1 do filter[d] = window end
    spatial[#spatial + 1] = 32
    table.move({32, channels}, 1, 2, #filter + 1, filter)
    local X, W = te.placeholder(spatial, "bfloat16", "X"), te.placeholder(filter, "bfloat16", "W")
    return te.func("image", {X, W, ms.ops[name](X, W, {pad = window // 2, accumulate = "float32"})})
  end
  for n, case in ipairs {{"conv2d", {1, 16, 10}, false}, {"conv2d", {16, 3, 2}, false}, {"conv2d", {1, 16, 14}, true},
                         {"conv2d", {3, 2, 28}, true}, {"conv3d", {2, 3, 2, 16}, true},
                         {"conv3d", {1, 16, 3, 5}, false}} do
    local func = convolution(case[1], case[2], n % 2 == 0 and 16 or 32, n == 2 and 1 or 3)
    local whole, padded = 0, 0
    for i, sch in ipairs(made_of(func)) do
      local copied = has(sch, "_reindex")
      whole, padded = whole + (i > 1 and not copied and 1 or 0), padded + (copied and 1 or 0)
    end
    assert(case[3] and whole > 0 or whole == 0 and padded > 0,
           string.format("%d: %d whole, %d padded", n, whole, padded))
  end
end

-- Each group of a convolution is a product by itself: whole tiles, padded ones, and what is computed from the result.
function tests.groups()
  for n, case in ipairs {{"int8", 16, 1, 128, 64, 2, 3}, {"bfloat16", 5, 1, 32, 64, 2, 3}, {"int8", 4, 2, 64, 64, 4, 1},
                         {"bfloat16", 6, 1, 64, 64, 2, 1}} do
    local type, side, images, channels, outputs, groups, window = table.unpack(case)
    local X, W = te.placeholder({images, 2, side, channels}, type, "X"),
      te.placeholder({window, window, channels // groups, outputs}, type, "W")
    local bias, whole = te.placeholder({outputs}, type == "int8" and "int32" or "float32", "bias"), 0
    local Y = ms.ops.conv2d(X, W, {pad = window // 2, groups = groups,
                                   accumulate = type == "bfloat16" and "float32" or "int32"})
    local sum = ms.schedule(te.func("image", {X, W, Y}))
    local block = sum:get_sblock "conv2d"
    local loops = {sum:get_loops(block)}
    assert(sum:group(block, loops[4]) == outputs // groups and sum:group(block, loops[3]) == 1)
    local made = made_of(te.func("image", {X, W, bias, (ms.ops.relu(ms.ops.bias_add(Y, bias)))}),
                         {"auto_inline", "amx_tile"})
    for i = 2, #made do whole = whole + (has(made[i], "_reindex") and 0 or 1) end
    assert(#made >= 2 and (whole > 0) == (n == 1), n .. ": " .. #made .. ", " .. whole)
  end
end

-- So is each phase of a transposed convolution, whose taps are its own.
function tests.phases()
  for n, case in ipairs {{"bfloat16", 4, 16, 2, 4}, {"int8", 3, 64, 2, 2}, {"int8", 14, 64, 1, 3}} do
    local type, side, channels, stride, window = table.unpack(case)
    local X, W = te.placeholder({1, 2, side, channels}, type, "X"),
      te.placeholder({window, window, channels, 16}, type, "W")
    local Y = ms.ops.conv2d_transpose(X, W, {stride = stride, pad = window > 2 and 1 or 0,
                                             accumulate = type == "bfloat16" and "float32" or "int32"})
    local made, whole = made_of(te.func("image", {X, W, Y})), 0
    for i = 2, #made do whole = whole + (has(made[i], "_reindex") and 0 or 1) end
    assert(#made >= 2 and (whole > 0) == (stride == 1), n .. ": " .. #made .. ", " .. whole)
  end
end

-- What is computed from the result is computed in the loops around the accumulators (case/lower/tiles/epilogue.case:
-- from a local buffer of so many tiles): bias, scale and clamp to int8, and a residual; of whole tiles, of padded ones
-- and of an image.
local function requantized(C, shape, b, residual, at)
  return te.compute(shape, function(...)
    local i = {...}
    local v = te.min(te.max((C[i] + b[i[#i]]) // 16 + 3, -128), 127)
    return te.cast(residual and te.max(v + te.cast(residual[i], "int32"), 0) or v, "int8")
  end, "Y")
end

function tests.epilogues()
  local list = {}
  for _, s in ipairs {{32, 32, 64}, {20, 24, 70}} do
    local A, B, k = te.placeholder({s[1], s[3]}, "int8", "A"), te.placeholder({s[3], s[2]}, "int8", "B"),
      te.reduce_axis(s[3], "k")
    local b, R = te.placeholder({s[2]}, "int32", "b"), te.placeholder({s[1], s[2]}, "int8", "R")
    local C =
      te.compute({s[1], s[2]},
                 function(i, j) return te.sum(te.cast(A[{i, k}], "int32") * te.cast(B[{k, j}], "int32"), k) end, "C")
    list[#list + 1] = te.func("dense", {A, B, b, R, requantized(C, {s[1], s[2]}, b, R)})
  end
  local X, W, b = te.placeholder({1, 7, 7, 16}, "int8", "X"), te.placeholder({3, 3, 16, 16}, "int8", "W"),
    te.placeholder({16}, "int32", "b")
  list[3] = te.func("image",
                    {X, W, b, requantized(ms.ops.conv2d(X, W, {pad = 1, accumulate = "int32"}), {1, 7, 7, 16}, b)})
  for n, func in ipairs(list) do
    local made = made_of(func, {"auto_inline", "amx_tile"})
    assert(#made >= 2, n)
    for i = 2, #made do
      local sch = made[i]
      local update, out = sch:get_sblock(n == 3 and "conv2d_update_o" or "C_update_o"), sch:get_sblock "Y"
      assert(sch:shared_loops(update, out) >= 3, tostring(sch))
    end
  end
end

-- Constants are packed ahead of all runs, padded as they are.
function tests.constants_are_packed_ahead()
  for _, s in ipairs {{32, 32, 64}, {20, 24, 70}} do
    local A, B, k = te.placeholder({s[1], s[3]}, "int8", "A"), te.placeholder({s[3], s[2]}, "int8", "B"),
      te.reduce_axis(s[3], "k")
    local C =
      te.compute({s[1], s[2]},
                 function(i, j) return te.sum(te.cast(A[{i, k}], "int32") * te.cast(B[{k, j}], "int32"), k) end, "C")
    local func = te.func("dense", {A, B, C}, {weights = {"B"}})
    local made = made_of(func)
    assert(#made >= 2)
    for i = 2, #made do
      local packing = made[i]:func():packing()
      assert(packing and packing.count == 1, tostring(made[i]))
      assert(table.concat(packing.kernel:params()[2].shape, "x"):find "x16x4$", tostring(made[i]))
    end
  end
end

-- A result of more than the second cache holds goes by way of a local buffer of tiles, and around the caches as a draw;
-- one that something else is computed from, or that the cache holds, does not.
function tests.large_results_go_around_the_caches()
  local small = {}
  for name, value in pairs(TILES) do small[name] = value end
  small.l2_bytes = 1024
  for _, case in ipairs {{64, 64, 128}, {20, 24, 70}} do
    local func = bytes(plain(table.unpack(case)), rows_by_columns)
    for i, sch in ipairs(made_of(func, nil, small)) do
      local whole = case[1] % 16 == 0
      local noted = tostring(sch.trace):find("msched.nontemporal", 1, true) ~= nil
      assert(noted == (i > 1 and whole), i .. ": " .. tostring(sch.trace))
    end
    for _, sch in ipairs(made_of(func)) do assert(not tostring(sch.trace):find("msched.nontemporal", 1, true)) end
  end
end

-- Code loads past the first cache the operand that moves with the loop around the reduction, where the other stays: in
-- order, over tiles of rows or of columns; of a parallel loop nothing is known.
function tests.what_is_not_read_again_streams()
  local func = bytes({{1024, 2048}, {512, 1024, 4}, {1024, 1024}, {512, 4}},
                     function(i, k) return {i[1], k[1] * 4 + k[2]}, {k[1], i[2], k[2]} end)
  for _, moved in ipairs {"left", "right", "none"} do
    local sch = ms.schedule(func)
    local block = sch:get_sblock "C"
    local rows, columns, groups, neighbours = sch:get_loops(block)
    local i, row = sch:split(rows, {ms.rest, 16})
    local j, column = sch:split(columns, {ms.rest, 16})
    local k, group = sch:split(groups, {ms.rest, 16})
    local first, second = i, j
    if moved == "left" then first, second = j, i end
    sch:reorder {first, second, k, row, column, group, neighbours}
    if moved == "none" then sch:parallel(second) end
    sch:decompose_reduction(block, k)
    sch:tensorize(row, "amx_16x16x64_i8")
    local kernel = ms.build(sch:func(), {target = TILES.text, load = false})
    ms.with_folder(function(folder)
      kernel:export(folder .. "/f.s")
      local text = ms.read_file(folder .. "/f.s")
      local right, left = text:match "tdpbssd%s+(%%tmm%d), (%%tmm%d), %%tmm%d"
      local streamed = text:match "tileloaddt1%s+%S+, (%%tmm%d)"
      assert(streamed == ({left = left, right = right})[moved], moved .. ": " .. tostring(streamed))
      assert(text:find "tileloadd%s", moved .. ": all stream")
    end)
  end
end

-- Products of several matrices at once, as attention has them: both layouts of the second.
function tests.batches()
  for n, make in ipairs {bytes, bfloats} do
    for _, k in ipairs {64, 40} do
      local shapes = {{2, 3, 20, k}, {2, 3, k, 32}, {2, 3, 20, 32}, {k}}
      local func = make(shapes, function(i, r) return {i[1], i[2], i[3], r[1]}, {i[1], i[2], r[1], i[4]} end)
      assert(#made_of(func) >= 2, n)
      shapes[2] = {2, 3, 32, k}
      func = make(shapes, function(i, r) return {i[1], i[2], i[3], r[1]}, {i[1], i[2], i[4], r[1]} end)
      assert(#made_of(func) >= 2, n)
      func = make({{3, k, 1}, {3, k, 32}, {3, 1, 32}, {k}}, -- one row, along which the operand is contiguous
                  function(i, r) return {i[1], r[1], i[2]}, {i[1], r[1], i[3]} end)
      assert(#made_of(func) >= 2, n)
    end
  end
end

-- No draw moves a product below the loops of what copies its result: it would be no whole tiles there.
function tests.products_stay_where_they_are()
  local func = bfloats({{3, 20, 40}, {3, 32, 40}, {3, 20, 32}, {40}},
                 function(i, k) return {i[1], i[2], k[1]}, {i[1], i[3], k[1]} end)
  local made = sketches(func, TILES, {rules = {"amx_tile", "random_compute_location"}})
  assert(#made >= 2)
  for i = 2, #made do
    local text = made[i].trace:text()
    assert(text:find "reverse_compute_at" and not text:find "sample_compute_location", text)
  end
end

-- The analytical model ranks padded tiles first where there is enough to multiply, and counts what the padding costs.
function tests.padded_tiles_rank_first()
  local analytical = ms.load "search.cost.analytical"
  local function best_of(func)
    local list = {}
    for i, sch in ipairs(sketches(func, TILES,
                                  {rules = {"register_tile", "dot_tile", "amx_tile", "parallel_vectorize_unroll"}})) do
      list[i] = sch.trace
    end
    return analytical.best(func, TILES, list, {budget = 2000, most = 8})[1]
  end
  local best = best_of(bytes(plain(500, 500, 500), rows_by_columns))
  assert(tostring(best.trace):find("pad_einsum", 1, true) and tostring(best.trace):find("amx_16x16x64_i8", 1, true),
         tostring(best.trace))
  assert(best.cost > best_of(bytes(plain(512, 512, 512), rows_by_columns)).cost, "a padding costs nothing")
end

-- As proposed, and as it is replayed, a candidate costs about as much: what packs constants ahead is no part of a run,
-- and lines of an image are copied by whole vectors.
function tests.images_cost_what_they_do()
  local analytical = ms.load "search.cost.analytical"
  local X, W = te.placeholder({1, 14, 14, 64}, "int8", "X"), te.placeholder({3, 3, 64, 64}, "int8", "W")
  local func = te.func("image", {X, W, (ms.ops.conv2d(X, W, {pad = 1, accumulate = "int32"}))}, {weights = {"W"}})
  local made = sketches(func, TILES, {rules = {"auto_inline", "amx_tile", "parallel_vectorize_unroll"}})
  assert(#made >= 2)
  for i = 2, #made do
    local best = analytical.best(func, TILES, {made[i].trace}, {budget = 500, most = 1})[1]
    local own = analytical.cost_of(func, best.trace, analytical.machine(TILES))
    assert(own < 2 * best.cost and best.cost < 2 * own, string.format("%g proposed, %g replayed", best.cost, own))
  end
end

-- Where the second cache does not hold the operand of the rows, several accumulators' columns are a packed panel,
-- which that cache holds; the operand is read once for each.
function tests.panels_of_columns()
  local function made_of(rows, constant)
    local func = ms.ops.func("dense", {rows, 512, 1024, dtype = "bfloat16", constant = constant})
    local made = sketches(func, TILES, {rules = {"amx_tile"}})
    return {table.unpack(made, 2)}
  end
  local rows, half = TILES.l2_bytes // 1024, TILES.l2_bytes // 2
  for _, sch in ipairs(made_of(rows)) do assert(not sch.trace:text():find ":assert", sch.trace:text()) end
  for _, sch in ipairs(made_of(rows + 32, true)) do
    assert(sch.trace:text():find(" <= " .. half, 1, true), sch.trace:text())
  end
  for _, sch in ipairs(made_of(rows + 32, false)) do
    local func = ms.ops.func("dense", {rows + 32, 512, 1024, dtype = "bfloat16", constant = false})
    local function columns_of(panel)
      local draw = sch.trace:draws()[2]
      local all = draw.decision[1] * draw.decision[2]
      local made = ms.apply(func, sch.trace:with_decision(draw.index, {all // panel, panel}))
      local loops = {made:get_loops(made:get_sblock "W_global")}
      return made:extent(loops[#loops - 1])
    end
    assert(columns_of(4) == 4 * columns_of(1) and columns_of(1) >= 16, sch.trace:text())
    assert(not pcall(columns_of, 1024), "a packed panel is more than the cache holds")
  end
end

-- Attention, its masks, and queries that share keys: both products by tiles, exponentials rounded to bfloat16. What has
-- no whole tiles grows to such; other types stay.
local function grouped(depth, width)
  local Q, K, V = te.placeholder({4, 16, depth}, "bfloat16", "Q"), te.placeholder({2, 32, depth}, "bfloat16", "K"),
    te.placeholder({2, 32, width}, "bfloat16", "V")
  local k, j = te.reduce_axis(depth, "k"), te.reduce_axis(32, "j")
  local function wide(e) return te.cast(e, "float32") end
  local S = te.compute({4, 16, 32}, function(h, i, c)
    return te.sum(wide(Q[{h, i, k}]) * wide(K[{h // 2, c, k}]), k)
  end, "scores")
  local P = ms.ops.softmax(te.compute({4, 16, 32}, function(h, i, c)
    return te.select(te.lt(c, 20), S[{h, i, c}] * 0.25, te.min_value "float32")
  end, "masked"))
  local Y = te.compute({4, 16, width}, function(h, i, d) return te.sum(P[{h, i, j}] * wide(V[{h // 2, j, d}]), j) end,
                       "attention")
  return te.func("grouped", {Q, K, V, te.compute({4, 16, width}, function(h, i, d)
    return te.cast(Y[{h, i, d}], "bfloat16")
  end, "Y")})
end

local function attention(rows, columns, width, type, causal)
  return ms.ops.func("attention", {1, 2, rows, columns, width, dtype = type or "bfloat16", causal = causal})
end

local function agree(func, run, text)
  local own, want = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
  ms.interpret(run, table.unpack(own))
  ms.interpret(func, table.unpack(want))
  assert(own[#own]:difference(want[#want]) < 0.02, text)
end

function tests.attention()
  local by_notes = {postprocs = {"rewrite_reduction_block", "rewrite_tensorize"}}
  local rules = {rules = {"auto_inline", "fuse_online_softmax_amx"}}
  for n, case in ipairs {{attention(32, 64, 32), 4}, {attention(64, 32, 64, nil, true), 4},
                         {attention(32, 64, 32, nil, true), 4}, {grouped(32, 16), 2},
                         -- rows, columns, and widths that grow, the last two of heads that share keys
                         {attention(17, 20, 32), 3}, {attention(32, 32, 24), 3}, {attention(1, 70, 40), 2},
                         {attention(33, 31, 20, nil, true), 2}, {grouped(20, 16), 2}, {grouped(32, 12), 2}} do
    local func = case[1]
    local made = sketches(func, TILES, rules)
    assert(#made == case[2], n .. ": " .. #made)
    for i = 2, #made do
      assert(names(made[i]):find " attention_o " and not names(made[i]):find " exponent ", names(made[i]))
      agree(func, made[i]:func(), made[i].trace:text())
      assert(space.postprocess(made[i], parts_of(TILES, by_notes)))
      local _, tiles = made[i]:script():gsub("T%.tdpbf16ps", "")
      assert(tiles == 2, n .. ": " .. tiles .. " products of tiles")
      agree(func, made[i]:func(), made[i].trace:text())
      if ms.target("native").tiles & 2 > 0 then
        ms.build(made[i]:func(), {reference = func, target = "native"}):check {tolerance = 0.02}
      end
    end
    assert(#sketches(func, DOTS, rules) == 1, "a target without tiles has none")
  end
  for n, other in ipairs {attention(32, 32, 32, "float32"), attention(32, 32, 32, "float16"), attention(32, 1, 32)} do
    assert(#sketches(other, TILES, rules) == 1, n)
  end
end

-- The same on CPUs that add pairs of bfloat16 to each lane at once. What has no pairs is computed in
-- float32; what tiles do not divide grows to such.
function tests.attention_by_pairs()
  local rules = {rules = {"auto_inline", "fuse_online_softmax"},
                 fuse_online_softmax = {vectors = {1, 2}, columns = {16, 32}, grown = 1, growth = 0.5}}
  for n, case in ipairs {{attention(32, 64, 32), 4, 4}, {attention(32, 32, 6, nil, true), 4, 4},
                         {grouped(32, 16), 2, 2}, {attention(32, 32, 7), 4, 0}, {attention(32, 33, 8), 4, 2},
                         {attention(21, 32, 8, nil, true), 4, 4}, {attention(32, 32, 8, "float16"), 4, 0}} do
    local func, count, by_pairs = table.unpack(case)
    local made, paired = sketches(func, DOTS, rules), 0
    assert(#made == count + 1, n .. ": " .. #made)
    for i = 2, #made do
      agree(func, made[i]:func(), made[i].trace:text())
      ms.with_folder(function(folder)
        ms.build(made[i]:func(), {target = DOTS.text}):export(folder .. "/pairs.s")
        local file <close> = assert(io.open(folder .. "/pairs.s"))
        if file:read("a"):find "vdpbf16ps" then paired = paired + 1 end
      end)
      if ms.target("native").dots & 2 > 0 and by_pairs > 0 then
        ms.build(made[i]:func(), {reference = func, target = "native"}):check {tolerance = 0.02}
      end
    end
    assert(paired == by_pairs, n .. ": " .. paired .. " by pairs")
  end
end

support.run(tests, "tests of AMX's tiles")
