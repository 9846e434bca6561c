-- Tiles a sum of products of short types for AMX, or Arm's SME: a block of sixteen rows, sixteen columns and 64 bytes
-- of the reduction is one instruction, which multiplies two tiles and adds to a third.
--
-- What differs from column to column is packed in the order in which the instruction takes it, (column // 16, k // 4,
-- column % 16, k % 4) of bytes, k // 2 of halves; a constant ahead of all runs. What lies neighbour by neighbour
-- already, (k // 4, column, k % 4), is read where it is, and so is what all columns share, or it is copied with the
-- reduction last. Two by two tiles of accumulators, or one by four, lie in one loop over the reduction, which holds
-- them in registers (tir/lower/vector/tiles.c), and begin there as zeros. Where the packed operand of a tile's columns
-- fits in the cache, the reduction is one piece, and what is computed from the result is computed accumulators by
-- accumulators, by way of a local buffer of so many tiles; and so does a result larger than the second cache reach its
-- rows.
-- Tiles have 14 rows where that divides lines and 16 does not: so an image is read where it lies, and of lines of 14
-- the accumulators lie in two.
-- Where rows, columns or the reduction are no whole tiles, and where too few lie in one loop, as an image's lines are,
-- the block becomes a product of two matrices (products.lua), padded by zeros: both operands are copied tile by tile,
-- and of the result no more is written than there is. Each group of a grouped convolution, and each phase of a
-- transposed one, is a product by itself.
-- Source: Intel, "Optimization Reference Manual", chapter "Intel AMX".
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"
local tiling, products = msched.load "rules.tiling", msched.load "rules.products"

local SIDE = 16 -- rows, and columns, of a tile
local ROWS = {SIDE, 14} -- rows that a tile may have: lines of an image are multiples of seven

local ACCUMULATORS = {{2, 2}, {1, 4}, {4, 1}} -- tiles of rows by tiles of columns that six of eight registers hold
local FEWER = {{1, 3}, {3, 1}, {1, 2}, {2, 1}, {1, 1}} -- where those do not divide, or registers hold three
local AHEAD = "meta_schedule.layout_rewrite_preproc" -- noted on what packs a constant, ahead of all runs
local NONTEMPORAL = "msched.nontemporal"
local PRODUCT, LATENCY, LOAD = 16, 52, 8 -- cycles: of a product, until the next may be added to its result; of a load

local INTRINSICS = { -- by the operands' types: of what columns share, and of their own
  int8 = {int8 = "amx_16x16x64_i8", uint8 = "amx_16x16x64_i8u8"},
  uint8 = {uint8 = "amx_16x16x64_u8", int8 = "amx_16x16x64_u8i8"},
  bfloat16 = {bfloat16 = "amx_16x16x32_bf16"},
  float16 = {float16 = "amx_16x16x32_f16"},
}

-- The reductions over groups of neighbours and over those of a group, of operands that lie so; nil: they do not.
local function find_groups(sch, block, reduce, shared, each, inner, width)
  local groups, neighbours
  for _, l in ipairs(reduce) do
    local moves, own = sch:read_stride(block, shared, l), sch:read_stride(block, each, l)
    if sch:extent(l) == width and moves == 1 and own == 1 then neighbours = l
    elseif moves == width and sch:extent(l) % SIDE == 0 then groups = groups or l end
  end
  if groups and neighbours and sch:read_stride(block, each, inner) == width then return groups, neighbours end
end

-- What becomes what of the tile of so many rows, by the numbers of iterations; nil: the block has no such tiles. lines:
-- the iteration around that of rows, of which each has one tile, so that accumulators lie in several of it. Rows are
-- of the innermost iteration that has any: those of one around it do not lie next to one another.
local function analyze(sch, block, width, side)
  local spatial, reduce, loops = nest.by_kind(sch, block)
  local inner = spatial and nest.contiguous(sch, block, spatial)
  local shared, each = nil, nil
  if inner then shared, each = nest.operands(sch, block, inner) end
  if not shared or sch:extent(inner) % SIDE ~= 0 then return nil end
  local a = {shared = shared, each = each, width = width, loops = #loops, side = side}
  local depth, neighbours = find_groups(sch, block, reduce, shared, each, inner, width)
  depth = depth or nest.longest(sch, block, reduce, shared, 1, SIDE * width)
    or nest.longest(sch, block, reduce, shared, nil, SIDE * width)
  local around
  for i, l in ipairs(loops) do
    if l == inner then a.columns = i
    elseif l == depth then a.depth = i
    elseif l == neighbours then a.neighbours = i
    elseif sch:extent(l) > 1 and sch:loop_iter_kind(l) == "spatial" and sch:read_stride(block, each, l) == 0
        and (sch:read_stride(block, shared, l) or 0) > 0 then
      a.rows, a.lines, around = i, around, i
    end
  end
  if a.rows and sch:extent(loops[a.rows]) % side ~= 0 then return nil end
  if not a.rows or not a.depth then return nil end
  if side == SIDE or sch:extent(loops[a.rows]) > side then a.lines = nil end
  a.copied = not neighbours and sch:read_stride(block, shared, depth) ~= 1
  a.tiles = {sch:extent(loops[a.lines or a.rows]) // (a.lines and 1 or side), sch:extent(inner) // SIDE}
  return a
end

-- The dimensions of the operand of the columns tile by tile.
local function order_of_tiles(names, column, depth, width)
  local order = nest.others(names, column, depth)
  local tile = {names[column] .. " // " .. SIDE, names[depth] .. " // " .. width, names[column] .. " % " .. SIDE,
                names[depth] .. " % " .. width}
  return table.move(tile, 1, #tile, #order + 1, order)
end

-- A copy of the operand of the columns, tile by tile; nil: its dimensions are not at hand, or no whole tiles.
local function pack_columns(sch, block, a, loops)
  local shape = sch:reads(block)[a.each + 1].shape
  local column = nest.dimension_of(shape, sch:read_stride(block, a.each, loops[a.columns]))
  local depth = nest.dimension_of(shape, sch:read_stride(block, a.each, loops[a.depth]))
  if not column or not depth or column == depth or shape[column] % SIDE ~= 0 or shape[depth] % a.width ~= 0 then
    return nil
  end
  return nest.laid_out(sch, block, a.each, #shape,
                       function(names) return order_of_tiles(names, column, depth, a.width) end)
end

-- The iteration of the reduction becomes two: its groups of neighbours, and one of a group.
local function part_neighbours(sch, block, a)
  local names, order = {}, {}
  for i = 1, a.loops do names[i] = "i" .. i end
  for i, name in ipairs(names) do
    if i == a.depth then
      order[#order + 1] = name .. " // " .. a.width
      name = name .. " % " .. a.width
    end
    order[#order + 1] = name
  end
  sch:transform_block_layout(block,
                             string.format("lambda %s: (%s)", table.concat(names, ", "), table.concat(order, ", ")))
  local function after(i) return i > a.depth and i + 1 or i end
  return {rows = after(a.rows), lines = a.lines and after(a.lines), columns = after(a.columns), depth = a.depth,
          neighbours = a.depth + 1}
end

-- The loops of a block by their parts in the tile. batch: those by which both operands differ.
local function loops_by_part(sch, block, a)
  local loops = {batch = {}, outer = {}, reduce = {}, all = {sch:get_loops(block)}}
  for i, l in ipairs(loops.all) do
    if i == a.rows then loops.rows = l
    elseif i == a.lines then loops.lines = l
    elseif i == a.columns then loops.columns = l
    elseif i == a.depth then loops.groups = l
    elseif i == a.neighbours then loops.neighbours = l
    elseif sch:loop_iter_kind(l) == "reduce" then table.insert(loops.reduce, l)
    else table.insert(sch:read_stride(block, a.each, l) == 0 and loops.outer or loops.batch, l) end
  end
  return loops
end

-- What is packed of columns takes no more.
local function panel_bytes(target) return target.l2_bytes // 2 end

-- Bytes of what is packed of the columns of so many tiles, for a group of the reduction.
local function bytes_of_group(sch, loops, columns)
  local bytes = columns * SIDE * 4
  for _, l in ipairs(loops.reduce) do bytes = bytes * sch:extent(l) end
  return bytes
end

-- Whether the reduction is one piece.
local function is_in_one_piece(sch, loops, columns, target)
  return bytes_of_group(sch, loops, columns) * sch:extent(loops.groups) <= panel_bytes(target)
end

-- Whether the second cache does not hold the operand that all columns share.
local function is_far(sch, block, index, target)
  local operand, size = sch:reads(block)[index + 1], 1
  for _, n in ipairs(operand.shape) do size = size * n end
  return size * operand.bytes > target.l2_bytes
end

-- The other spatial loops as one, and what is left of it within a chunk: of several, the innermost alone, as a chunk
-- that ends within a line of another is not known to be apart from the tile; those around it join what both operands
-- differ by. Nothing where there are none.
local function split_outer(sch, loops)
  local joined, long = {}, 0
  for _, l in ipairs(loops.outer) do
    if sch:extent(l) > 1 then
      long = long + 1
      if long > 1 then
        table.move(joined, 1, #joined, #loops.batch + 1, loops.batch)
        joined = {}
      end
    end
    joined[#joined + 1] = l
  end
  nest.gather(sch, loops.all, {loops.batch, joined})
  return nest.split_outer(sch, joined)
end

-- From outside: what both operands differ by; chunks of the other spatial loops and of rows, run in parallel; columns,
-- by packed panels; blocks of the reduction, or all of it; what is left of the other spatial loops, of a chunk, and,
-- where columns are drawn, of these; the reductions; the accumulators; the instruction. Gives the loop of the
-- instruction's rows, and those that are copied under: the operand of a chunk's rows, of an accumulator's, that of the
-- columns; and that the result is written under.
local function tile(sch, block, loops, by, target, side, in_panels)
  local one_piece = is_in_one_piece(sch, loops, by[2], target)
  local bytes = {bytes_of_group(sch, loops, by[2]) * (one_piece and sch:extent(loops.groups) or SIDE)}
  local outer, outer_rest = split_outer(sch, loops)
  local all_rows, rows, row
  if loops.lines then
    all_rows, rows = sch:split(loops.lines, {msched.rest, by[1]})
    row = loops.rows
  else
    all_rows, rows, row = sch:split(loops.rows, {msched.rest, by[1], side})
  end
  local chunk, rows_outer = sch:split(all_rows, {sch:sample_perfect_tile(all_rows, 2, 64)})
  local columns_outer, columns, column = sch:split(loops.columns, {msched.rest, by[2], SIDE})
  local groups, group = sch:split(loops.groups, {msched.rest, SIDE})
  local blocks, rest, panels, panel = nil, groups, columns_outer, nil
  if in_panels then
    local factors = {sch:sample_perfect_tile(columns_outer, 2, 64)}
    panels, panel = sch:split(columns_outer, factors)
    bytes[2] = factors[2]:name()
  end
  if not one_piece then
    local factors = {sch:sample_perfect_tile(groups, 2, 1024)}
    blocks, rest = sch:split(groups, factors)
    bytes[3] = factors[2]:name()
  end
  if in_panels then sch:assert(string.format("%s <= %d", table.concat(bytes, " * "), panel_bytes(target))) end
  local order = {}
  local function add(l) if l then order[#order + 1] = l end end
  for _, l in ipairs(loops.batch) do add(l) end
  add(outer) add(chunk) add(panels) add(blocks) add(outer_rest) add(rows_outer) add(panel)
  for _, l in ipairs(loops.reduce) do add(l) end
  add(rest) add(rows) add(columns) add(row) add(column) add(group) add(loops.neighbours)
  sch:reorder(order)
  sch:unroll(rows)
  sch:unroll(columns)
  return {row = row, rows = chunk, accumulated = one_piece and rows_outer or panels, columns = blocks or panels,
          written = one_piece and (panel or rows_outer) or panels}
end

local function is_accepted(sch, row, intrinsic)
  local trial = sch:copy()
  return tiling.accepts(trial, trial:blockize(trial:handle(row)), intrinsic)
end

-- Splits the innermost loop of a copy, the outermost factor first.
local function split_last(sch, copy, factors)
  local loops = {sch:get_loops(copy)}
  sch:split(loops[#loops], factors)
end

-- Where the result is more than the second cache holds, and nothing is computed from it, it goes by way of a local
-- buffer of tiles: accumulators stored straight to rows that lie apart would push out of the caches what is read again.
-- Whole vectors go on from there, and around the caches, as a draw.
local function write_by_vectors(sch, block, under, target)
  local shape = sch:writes(block)[1].shape
  local bytes = 4
  for _, n in ipairs(shape) do bytes = bytes * n end
  if bytes <= target.l2_bytes or #sch:consumers(block) > 0 then return end
  local copy = sch:cache_write(block, 0, "global")
  sch:reverse_compute_at(copy, under, {preserve_unit_loops = true})
  sch:annotate(copy, NONTEMPORAL, common.sample_equal(sch, {0, 1}))
end

-- Tiles a block whose operands lie as they must, and moves into the tile what is at hand: a.copy and a.packed, which
-- copy the operands of rows and of columns; a.result, which writes the result out. false: it is refused.
local function finish(sch, block, context, a, by, intrinsic)
  local loops = loops_by_part(sch, block, a)
  local side = a.side or SIDE
  local under = tile(sch, block, loops, by, context.target, side, is_far(sch, block, a.shared, context.target))
  if not is_accepted(sch, under.row, intrinsic) then return false end
  sch:annotate(block, "meta_schedule.auto_tensorize", intrinsic)
  sch:annotate(block, "meta_schedule.auto_tensorize_init",
               (side == SIDE and "amx_zero_" or string.format("amx_zero_%d_", side))
                 .. (sch:writes(block)[1].type == "int32" and "i32" or "f32"))
  for _, copy in ipairs {{a.copy, a.at_rows and under.accumulated or under.rows}, {a.packed, under.columns}} do
    if copy[1] then
      if not sch:can_compute_at(copy[1], copy[2]) then return false end
      sch:compute_at(copy[1], copy[2], {preserve_unit_loops = true})
      if copy[1] == a.copy and a.runs then split_last(sch, a.copy, a.runs) end
      if copy[1] == a.packed and a.width then nest.unpack(sch, a.packed, a.width, SIDE) end
    end
  end
  if a.result then
    if not sch:can_reverse_compute_at(a.result, under.written) then return false end
    sch:reverse_compute_at(a.result, under.written, {preserve_unit_loops = true})
  else
    common.write_under(sch, block, under.written)
    write_by_vectors(sch, block, under.written, context.target)
  end
  return true
end

local function intrinsic_of(sch, block, a)
  local reads = sch:reads(block)
  local name = (INTRINSICS[reads[a.shared + 1].type] or {})[reads[a.each + 1].type]
  return name and name:gsub("^amx_16", "amx_" .. (a.side or SIDE)) or nil
end

-- The block in tiles of so many accumulators; nil: it has no such tiles.
local function tiled(sch, block, context, a, by)
  if a.tiles[1] % by[1] ~= 0 or a.tiles[2] % by[2] ~= 0 then return nil end
  local s = sch:copy()
  local b = s:handle(block)
  local loops, intrinsic = {s:get_loops(b)}, intrinsic_of(s, b, a)
  local constant = common.constants(s)[s:reads(b)[a.each + 1].buffer] -- then it stays where it depends on nothing: it
                                                                      -- is packed ahead
  if not intrinsic then return nil end
  local packed = not a.neighbours and pack_columns(s, b, a, loops)
  if not a.neighbours and not packed then return nil end
  if constant and packed then s:annotate(packed, AHEAD, true) end
  if a.copied and not nest.with_last(s, b, a.shared, loops[a.depth]) then return nil end
  local own = a.neighbours and a or part_neighbours(s, b, a)
  own = {rows = own.rows, lines = own.lines, side = a.side, columns = own.columns, depth = own.depth,
         neighbours = own.neighbours, shared = a.shared, each = a.each, width = a.width,
         packed = not constant and packed or nil}
  return finish(s, b, context, own, by, intrinsic) and s or nil
end

-- ---- Padded products of matrices -----------------------------------------------------------------------------------

-- What is what of a product of two matrices, columns being what the result is contiguous along; nil: it is none.
local function classify(sch, block)
  local spatial = nest.by_kind(sch, block)
  local inner, classes = spatial and nest.contiguous(sch, block, spatial), products.classify(sch, block)
  if not inner or not classes then return nil end
  local loops = {sch:get_loops(block)}
  for _, v in ipairs(classes.m) do
    if loops[v] == inner then
      classes.m, classes.n, classes.inputs = classes.n, classes.m, {classes.inputs[2], classes.inputs[1]}
      break
    end
  end
  local extents = sch:iter_extents(block)
  for _, name in ipairs {"batch", "m", "n", "k"} do
    local product = 1
    for _, v in ipairs(classes[name]) do product = product * extents[v] end
    classes.extents = classes.extents or {}
    classes.extents[name] = product
  end
  return classes
end

-- Lists of shapes of accumulators that the target's registers hold, those to try first.
local function shapes_of(target)
  local lists = {}
  for _, shapes in ipairs {ACCUMULATORS, FEWER} do
    local held = {}
    for _, by in ipairs(shapes) do
      if by[1] * by[2] <= target.tile_accumulators then held[#held + 1] = by end
    end
    lists[#lists + 1] = held
  end
  return lists
end

local WORTH = 0.9 -- of the cycles of whole tiles
local MOST_PADDED, SLOWER = 2, 1.1 -- shapes of accumulators, and how much more cycles they may take than the best

local function ceil(n, by) return (n + by - 1) // by end

-- Cycles of a step of the reduction, by so many accumulators of so many rows.
local function step_of(by, side)
  return math.max(PRODUCT * side / SIDE * by[1] * by[2], LATENCY, LOAD * (by[1] + by[2]))
end

-- The shapes of accumulators that take the fewest cycles for so many tiles, or hardly more; and these cycles.
local function shapes_for(rows, columns, target)
  local cycles, best, list = {}, math.huge, {}
  for _, shapes in ipairs(shapes_of(target)) do
    for _, by in ipairs(shapes) do
      cycles[by] = ceil(rows, by[1]) * ceil(columns, by[2]) * step_of(by, SIDE)
      best = math.min(best, cycles[by])
    end
  end
  for _, shapes in ipairs(shapes_of(target)) do
    for _, by in ipairs(shapes) do
      if #list < MOST_PADDED and cycles[by] <= SLOWER * best then list[#list + 1] = by end
    end
  end
  return list, best
end

-- The block that writes out what the block computes: its copy back, or what computes from that, row by row.
local function writer_of(sch, block, classes, copies, cut, consumer)
  local writer = copies.c or cut and sch:get_consumers(block)
  if copies.c and cut then sch:compute_inline(sch:get_consumers(block)) end
  if not writer or not consumer then return writer end
  local names, extents = {"batch", "m", "n"}, classes.all
  local spatial, own = products.members(classes, names), sch:iter_extents(consumer)
  if #own ~= #spatial then return writer end
  for i, v in ipairs(spatial) do if own[i] ~= extents[v] then return writer end end
  sch:compute_inline(writer)
  if copies.c then sch:transform_block_layout(consumer, products.map_of(spatial, classes, names, extents)) end
  return consumer
end

local function gcd(a, b)
  while b > 0 do a, b = b, a % b end
  return a
end

local SHORTEST = 8 -- elements of a run that is copied as a vector

-- Factors of the reduction of a copy of rows, whose innermost is a run of neighbours, at most a row of a tile: what
-- such a run is copied from, and whether that is inside of an image, is then asked once. nil: there are no runs.
local function runs_of(sch, block, classes, a, loops, grows)
  local k, extents = classes.k, sch:iter_extents(block)
  local last = k[#k]
  local run = gcd(extents[last], SIDE * a.width)
  if run < SHORTEST or sch:read_stride(block, a.shared, loops[last]) ~= 1 then return nil end
  if grows then return {msched.rest, run} end
  local factors = {}
  for i, v in ipairs(k) do
    local extent = i == #k and extents[v] // run or extents[v]
    if extent > 1 then factors[#factors + 1] = extent end
  end
  factors[#factors + 1] = run
  return #factors > 1 and factors or nil
end

-- Whether the operand of rows is an array of the function's that is a matrix: its copy is one in the same order, which
-- is not made after all (tir/lower/memory/forward.c).
local function is_matrix(sch, block, classes, a, loops)
  if products.producer_of(sch, block, a.shared) then return false end
  local extents, apart = sch:iter_extents(block), 1
  for _, name in ipairs {"k", "m"} do
    local class = classes[name]
    for i = #class, 1, -1 do
      local extent = extents[class[i]]
      if extent > 1 and sch:read_stride(block, a.shared, loops[class[i]]) ~= apart then return false end
      apart = apart * extent
    end
  end
  return #classes.batch == 0
end

-- Whether an operand of rows has their dimension and that of the reduction last, behind those of batches alone.
local function is_in_order(sch, block, index, classes)
  local order, dimensions = table.move(classes.batch, 1, #classes.batch, 1, {}), sch:read_iters(block)[index + 1]
  for _, name in ipairs {"m", "k"} do table.move(classes[name], 1, #classes[name], #order + 1, order) end
  for i, v in ipairs(order) do if dimensions[i] ~= v then return false end end
  return #dimensions == #order and #order == #classes.batch + 2
end

-- The block as a product of matrices, padded to tiles of so many accumulators; nil: it has no such tiles.
local function padded(sch, block, context, classes, by, width)
  local s = sch:copy()
  local b = s:handle(block)
  local loops, reads = {s:get_loops(b)}, s:reads(b)
  local a = {shared = classes.inputs[1] - 1, each = classes.inputs[2] - 1, width = width}
  local intrinsic = intrinsic_of(s, b, a)
  if not intrinsic then return nil end
  local constant = common.constants(s)[reads[a.each + 1].buffer]
  local consumer, batch = common.only_consumer(s, b), #classes.batch
  classes.all = s:iter_extents(b)
  local padding = {SIDE * by[1], SIDE * by[2], SIDE * width}
  local grows =
    {classes.extents.m % padding[1] ~= 0, classes.extents.n % padding[2] ~= 0, classes.extents.k % padding[3] ~= 0}
  local in_place = not grows[1] and not grows[3] and is_matrix(s, b, classes, a, loops)
  a.runs = runs_of(s, b, classes, a, loops, grows[3])
  local lies = is_in_order(s, b, a.shared, classes)
  local copies = products.to_product(s, b, classes, {keep = {a = lies, c = #classes.m == 1 and #classes.n == 1}})
  if grows[1] or grows[2] or grows[3] then
    for _ = 1, batch do table.insert(padding, 1, 1) end
    if not s:try("pad_einsum", b, padding) then return nil end
  end
  if grows[1] or grows[3] then
    a.copy = products.producer_of(s, b, a.shared)
    if copies.a then s:compute_inline(copies.a) end
  else
    a.copy = copies.a
  end
  local packed = products.producer_of(s, b, a.each)
  if grows[2] or grows[3] then s:compute_inline(copies.b) end
  local names = {}
  for d = 1, batch + 2 do names[d] = "i" .. d end
  local list = table.concat(names, ", ")
  s:transform_layout(packed, string.format("lambda %s: (%s)", list, table.concat(order_of_tiles(names, batch + 2,
                                           batch + 1, width), ", ")), 0, 1)
  if a.copy and in_place then
    a.at_rows = true
  elseif a.copy then
    local m, k, wide = names[batch + 1], names[batch + 2], SIDE * width
    local order = table.move(names, 1, batch, 1, {})
    for _, part in ipairs {m .. " // " .. SIDE, k .. " // " .. wide, m .. " % " .. SIDE, k .. " % " .. wide} do
      order[#order + 1] = part
    end
    s:transform_layout(a.copy, string.format("lambda %s: (%s)", list, table.concat(order, ", ")), 0, 1)
  end
  a.result = writer_of(s, b, classes, copies, grows[1] or grows[2], consumer)
  local own =
    part_neighbours(s, b, {rows = batch + 1, columns = batch + 2, depth = batch + 3, width = width, loops = batch + 3})
  for name, value in pairs(own) do a[name] = value end
  if constant then s:annotate(packed, AHEAD, true) end
  a.packed = not constant and packed or nil
  return finish(s, b, context, a, by, intrinsic) and s or nil
end

-- ---- Together ------------------------------------------------------------------------------------------------------

-- What becomes what of the block's whole tiles, of as many rows as divide its own; nil: it has none.
local function analyze_whole(sch, block, width)
  for _, side in ipairs(ROWS) do
    local seen = sch:copy()
    local a = analyze(seen, seen:handle(block), width, side)
    if a then return a end
  end
end

-- Appends what whole tiles make of the block; gives the cycles of the best.
local function add_whole(results, sch, block, context, width)
  local a, best = analyze_whole(sch, block, width), math.huge
  if not a then return best end
  local products_in_all = 1 / (a.side * SIDE * SIDE * width)
  for _, l in ipairs {sch:get_loops(block)} do products_in_all = products_in_all * sch:extent(l) end
  for _, shapes in ipairs(shapes_of(context.target)) do
    for _, by in ipairs(shapes) do
      local made = tiling.attempt(tiled, sch, block, context, a, by)
      if made then
        best, results[#results + 1] = math.min(best, products_in_all * step_of(by, a.side) / (by[1] * by[2])), made
      end
    end
    if #results > 1 then break end
  end
  return a.side == SIDE and best or best / WORTH
end

-- Appends what padded products of matrices make of it, where that takes fewer cycles.
local function add_padded(results, sch, block, context, width, cycles)
  local seen = sch:copy()
  local classes = classify(seen, seen:handle(block))
  if not classes then return end
  local e = classes.extents
  local shapes, own = shapes_for(ceil(e.m, SIDE), ceil(e.n, SIDE), context.target)
  if own * e.batch * ceil(e.k, SIDE * width) > WORTH * cycles then return end
  for _, by in ipairs(shapes) do
    results[#results + 1] = tiling.attempt(padded, sch, block, context, classes, by, width)
  end
end

return msched.rule {
  name = "amx_tile",
  at = "blocks",
  wanted = function(_, context) return (context.target.tiles or 0) > 0 end,
  apply = function(sch, block, context)
    local width, results = common.can_tile(sch, block) and sch:has_init(block)
      and nest.product_width(sch, block, context.target.tiles, true) or 0, {sch}
    if width == 0 then return {sch} end
    local s, b = nest.by_products(sch, block)
    add_padded(results, s, b, context, width, add_whole(results, s, b, context, width))
    return results
  end,
}
