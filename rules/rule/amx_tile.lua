-- Tiles a sum of products of short types for AMX: a block of sixteen rows, sixteen columns and 64 bytes of the reduction
-- is one instruction, which multiplies two tiles and adds to a third.
--
-- What differs from column to column is packed in the order in which the instruction takes it, (column // 16, k // 4,
-- column % 16, k % 4) of bytes, k // 2 of bfloat16; a constant ahead of all runs. What lies neighbour by neighbour
-- already, (k // 4, column, k % 4), is read where it is, and so is what all columns share, or it is copied with the
-- reduction last. Two by two tiles of accumulators, or one by four, lie in one loop over the reduction, which holds them
-- in registers (tir/lower/vector/tiles.c). Rows, columns and reduction are whole tiles; what is not is for dot_tile.
-- Source: Intel, "Optimization Reference Manual", chapter "Intel AMX".
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"
local tiling = msched.load "rules.tiling"

local SIDE = 16 -- rows, and columns, of a tile

local ACCUMULATORS = {{2, 2}, {1, 4}, {4, 1}} -- tiles of rows by tiles of columns that six of eight registers hold
local FEWER = {{1, 3}, {3, 1}, {1, 2}, {2, 1}, {1, 1}} -- where those do not divide

local INTRINSICS = { -- by the operands' types: of what columns share, and of their own
  int8 = {int8 = "amx_16x16x64_i8", uint8 = "amx_16x16x64_i8u8"},
  uint8 = {uint8 = "amx_16x16x64_u8", int8 = "amx_16x16x64_u8i8"},
  bfloat16 = {bfloat16 = "amx_16x16x32_bf16"},
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

-- What becomes what of the tile, by the numbers of iterations; nil: the block has no such tiles.
local function analyze(sch, block, width)
  local spatial, reduce, loops = nest.by_kind(sch, block)
  local inner = spatial and nest.contiguous(sch, block, spatial)
  local shared, each = nil, nil
  if inner then shared, each = nest.operands(sch, block, inner) end
  if not shared or sch:extent(inner) % SIDE ~= 0 then return nil end
  local a = {shared = shared, each = each, width = width, loops = #loops}
  local depth, neighbours = find_groups(sch, block, reduce, shared, each, inner, width)
  depth = depth or nest.longest(sch, block, reduce, shared, 1, SIDE * width) or nest.longest(sch, block, reduce, shared, nil, SIDE * width)
  for i, l in ipairs(loops) do
    local rows = sch:read_stride(block, each, l) == 0 and (sch:read_stride(block, shared, l) or 0) > 0
    if l == inner then a.columns = i
    elseif l == depth then a.depth = i
    elseif l == neighbours then a.neighbours = i
    elseif rows and sch:loop_iter_kind(l) == "spatial" and sch:extent(l) % SIDE == 0 then a.rows = i end -- the innermost one
  end
  if not a.rows or not a.depth then return nil end
  a.copied = not neighbours and sch:read_stride(block, shared, depth) ~= 1
  a.tiles = {sch:extent(loops[a.rows]) // SIDE, sch:extent(inner) // SIDE}
  return a
end

-- The operand of the columns, tile by tile; nil: its dimensions are not at hand.
local function pack_columns(sch, block, a, loops)
  local shape = sch:reads(block)[a.each + 1].shape
  local column = nest.dimension_of(shape, sch:read_stride(block, a.each, loops[a.columns]))
  local depth = nest.dimension_of(shape, sch:read_stride(block, a.each, loops[a.depth]))
  if not column or not depth or column == depth then return nil end
  return nest.laid_out(sch, block, a.each, #shape, function(names)
    local order = nest.others(names, column, depth)
    local tile = {names[column] .. " // " .. SIDE, names[depth] .. " // " .. a.width, names[column] .. " % " .. SIDE, names[depth] .. " % " .. a.width}
    return table.move(tile, 1, #tile, #order + 1, order)
  end)
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
  sch:transform_block_layout(block, string.format("lambda %s: (%s)", table.concat(names, ", "), table.concat(order, ", ")))
  local function after(i) return i > a.depth and i + 1 or i end
  return {rows = after(a.rows), columns = after(a.columns), depth = a.depth, neighbours = a.depth + 1}
end

-- The loops of a block by their parts in the tile.
local function loops_by_part(sch, block, a)
  local loops = {outer = {}, reduce = {}}
  for i, l in ipairs {sch:get_loops(block)} do
    if i == a.rows then loops.rows = l
    elseif i == a.columns then loops.columns = l
    elseif i == a.depth then loops.groups = l
    elseif i == a.neighbours then loops.neighbours = l
    else table.insert(sch:loop_iter_kind(l) == "reduce" and loops.reduce or loops.outer, l) end
  end
  return loops
end

-- From outside: chunks of the other spatial loops and of rows, run in parallel; columns; blocks of the reduction;
-- what is left of the other spatial loops, and of a chunk; the reductions; the accumulators; the instruction.
-- Gives its outermost loop, and those that the packed operand is copied under, and that the result is written under.
local function tile(sch, block, loops, by)
  if #loops.outer > 1 then sch:reorder(loops.outer) end
  local outer, outer_rest = nest.split_outer(sch, loops.outer)
  local all_rows, rows, row = sch:split(loops.rows, {msched.rest, by[1], SIDE})
  local chunk, rows_outer = sch:split(all_rows, {sch:sample_perfect_tile(all_rows, 2, 64)})
  local columns_outer, columns, column = sch:split(loops.columns, {msched.rest, by[2], SIDE})
  local groups, group = sch:split(loops.groups, {msched.rest, SIDE})
  local blocks, rest = sch:split(groups, {sch:sample_perfect_tile(groups, 2, 1024)})
  local order = {}
  local function add(l) if l then order[#order + 1] = l end end
  add(outer) add(chunk) add(columns_outer) add(blocks) add(outer_rest) add(rows_outer)
  for _, l in ipairs(loops.reduce) do add(l) end
  add(rest) add(rows) add(columns) add(row) add(column) add(group) add(loops.neighbours)
  sch:reorder(order)
  sch:unroll(rows)
  sch:unroll(columns)
  return row, blocks, columns_outer
end

local function is_accepted(sch, row, intrinsic)
  local trial = sch:copy()
  return tiling.accepts(trial, trial:blockize(trial:handle(row)), intrinsic)
end

-- The block in tiles of so many accumulators; nil: it has no such tiles.
local function tiled(sch, block, a, by)
  if a.tiles[1] % by[1] ~= 0 or a.tiles[2] % by[2] ~= 0 then return nil end
  local s = sch:copy()
  local b = s:handle(block)
  local loops, reads = {s:get_loops(b)}, s:reads(b)
  local intrinsic = (INTRINSICS[reads[a.shared + 1].type] or {})[reads[a.each + 1].type]
  local constant = common.constants(s)[reads[a.each + 1].buffer]
  local packed = intrinsic and not a.neighbours and pack_columns(s, b, a, loops)
  if not intrinsic or not a.neighbours and not packed then return nil end
  if a.copied and not nest.with_last(s, b, a.shared, loops[a.depth]) then return nil end
  if not a.neighbours then a = part_neighbours(s, b, a) end
  local row, packed_under, written_under = tile(s, b, loops_by_part(s, b, a), by)
  if not is_accepted(s, row, intrinsic) then return nil end
  s:annotate(b, "meta_schedule.auto_tensorize", intrinsic)
  if packed and not constant then -- else it stays where it depends on nothing: it is packed ahead
    if not s:can_compute_at(packed, packed_under) then return nil end
    s:compute_at(packed, packed_under, {preserve_unit_loops = true})
  end
  common.write_under(s, b, written_under)
  return s
end

return msched.rule {
  name = "amx_tile",
  apply = function(sch, block, context)
    local width, results = common.can_tile(sch, block) and sch:has_init(block) and nest.product_width(sch, block, context.target.tiles) or 0, {sch}
    if width == 0 then return {sch} end
    local seen = sch:copy()
    local a = analyze(seen, seen:handle(block), width)
    if not a then return {sch} end
    for _, shapes in ipairs {ACCUMULATORS, FEWER} do
      for _, by in ipairs(shapes) do results[#results + 1] = tiled(sch, block, a, by) end
      if #results > 1 then return results end
    end
    return results
  end,
}
