-- Tiles a sum of products of short types for the registers, by dot products of neighbours: CPUs add four products of
-- bytes, or two of bfloat16, to each lane of a vector at once (tir/lower/vector/dots.c).
--
-- The reduction along which the operand that all columns share is contiguous is split by as many products; what differs
-- from column to column is copied into panels in which those lie next to one another, lane by lane: (k // 4, column,
-- k % 4); a constant is packed so ahead of all runs. Around that stands the tile of register_tile: rows x vectors of
-- accumulators, in registers while the reduction runs. An operand that lies so already is read where it is; a shared
-- one that is not contiguous is copied, too. Each group of a grouped convolution, and each phase of a transposed one,
-- is a product by itself. Where results have fewer channels than a vector has lanes, vectors lie along another
-- iteration, as columns of the image are, and results are copied to where they belong.
-- Source: Intel, "Optimization Reference Manual", chapter "Intel AVX-512 - VNNI" of its guide to deep learning.
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"

local PAIR = 2 -- products of a pair of int16
local PAIR_REGISTERS = 2 -- beside accumulators and columns: of a row, and of a product before it is added

-- ---- What there is to tile ---------------------------------------------------------------------------------------

-- What of the block becomes what of the tile; nil: it has no such tiles.
local function analyze(sch, block, width)
  local spatial, reduce, loops = nest.by_kind(sch, block)
  local inner = spatial and nest.contiguous(sch, block, spatial)
  local shared, each = nil, nil
  if inner then shared, each = nest.operands(sch, block, inner) end
  if not shared then return nil end
  local a = {inner = inner, shared = shared, each = each, reduce = reduce, loops = loops, rows = {}, outer = {},
             count = 1}
  for _, tail in ipairs {false, true} do
    a.k = a.k or nest.longest(sch, block, reduce, shared, 1, width, tail)
      or nest.longest(sch, block, reduce, shared, nil, width, tail)
  end
  if not a.k then return nil end
  a.copied = sch:read_stride(block, shared, a.k) ~= 1
  a.lies = sch:extent(a.k) == width and sch:read_stride(block, each, a.k) == 1
           and sch:read_stride(block, each, inner) == width
  a.longest = not a.lies and a.k or nest.longest(sch, block, reduce, each, nil, 1)
  for _, l in ipairs(spatial) do
    if l ~= inner then table.insert(sch:read_stride(block, each, l) == 0 and a.rows or a.outer, l) end
  end
  return a
end

-- Of the loops that share each column's operand: the innermost alone where it is long, or results are stored window
-- by window; else two as one, as quotients of more are not known to be apart where tiles do not divide.
local function choose_rows(sch, a, one)
  local most = (one or #a.rows > 0 and sch:extent(a.rows[#a.rows]) >= nest.LONG) and 1 or 2
  local rows, outer = {}, {}
  for i = #a.rows, 1, -1 do
    local l = a.rows[i]
    if sch:extent(l) == 1 or most > 0 then table.insert(rows, 1, l) else table.insert(outer, 1, l) end
    if sch:extent(l) > 1 then most = most - 1 end
  end
  a.rows, a.outer = rows, table.move(a.outer, 1, #a.outer, #outer + 1, outer)
end

-- ---- Copies ------------------------------------------------------------------------------------------------------

-- The operand that is each column's own, in the order in which vectors take it; nil: its dimensions are not at hand.
local function pack_columns(sch, block, a, width)
  local shape = sch:reads(block)[a.each + 1].shape
  local column = nest.dimension_of(shape, sch:read_stride(block, a.each, a.inner))
  local depth = nest.dimension_of(shape, sch:read_stride(block, a.each, a.k))
  if not column or not depth or column == depth then return nil end
  return nest.laid_out(sch, block, a.each, #shape, function(names)
    local order = nest.others(names, column, depth)
    local packed = {names[depth] .. " // " .. width, names[column], names[depth] .. " % " .. width}
    return table.move(packed, 1, 3, #order + 1, order)
  end, shape[depth] % width ~= 0)
end

-- ---- The tile ----------------------------------------------------------------------------------------------------

-- From outside: chunks of the other spatial loops and of rows, run in parallel; panels of columns; blocks of the
-- reduction; what is left of the other spatial loops, tiles of rows, the reductions, rows, a vector of columns, and
-- neighbours. Gives the loops that panels are packed under, and that the result is written under.
local function tile(sch, block, a, width, columns, rows)
  nest.gather(sch, a.loops, {a.outer, a.rows})
  local columns_outer, columns_inner = sch:split(a.inner, {msched.rest, columns})
  local outer, outer_rest = nest.split_outer(sch, a.outer)
  local chunk, rows_outer, rows_inner = nest.split_rows(sch, a.rows, a.count, rows)
  local long, neighbours = a.longest, a.k
  if long == a.k then long, neighbours = sch:split(a.k, {msched.rest, width}) end
  local blocks, rest
  if long then blocks, rest = sch:split(long, {sch:sample_perfect_tile(long, 2, 1024)}) end
  local order = {}
  local function add(l) if l then order[#order + 1] = l end end
  add(outer) add(chunk) add(columns_outer) add(blocks) add(outer_rest) add(rows_outer)
  for _, l in ipairs(a.reduce) do
    if l == a.longest then add(rest) elseif l ~= a.k then add(l) end
  end
  add(rows_inner) add(columns_inner) add(neighbours)
  sch:reorder(order)
  nest.note_tile(sch, block, a.rows)
  sch:vectorize(columns_inner)
  return blocks or columns_outer, columns_outer, chunk or outer
end

-- Whether the region that is read moves by so many elements with each loop: a constant that does not, as filters of the
-- phases of a transposed convolution, is packed by a copy of its own, and else in the order of the loops.
local function moves_evenly(sch, block, index)
  for _, l in ipairs {sch:get_loops(block)} do
    if not sch:read_stride(block, index, l) then return false end
  end
  return true
end

-- The block in tiles of so many vectors a row; nil: it has no such tiles. The second result: whether panels unpack
-- constants element by element.
local function tiled(sch, block, context, width, vectors, one, by_pairs)
  local s = sch:copy()
  local b = s:handle(block)
  local a = analyze(s, b, width)
  if not a then return nil end
  local lanes = context.target.vector_bits // 32
  local columns = vectors * lanes
  choose_rows(s, a, one)
  for _, l in ipairs(a.rows) do a.count = a.count * s:extent(l) end
  -- rows that keep the units busy, or else the most that fit
  local rows, fitting = nest.rows_for(context, vectors, a.count, nest.BUSY, nil, by_pairs and PAIR_REGISTERS)
  if #rows == 0 then rows = {fitting[#fitting]} end
  if columns > s:extent(a.inner) or (#a.rows > 0 and #rows == 0) then return nil end
  local constant = common.constants(s)[s:reads(b)[a.each + 1].buffer] -- packed ahead
  local in_order = constant and moves_evenly(s, b, a.each)
  local panel = not a.lies and not in_order and pack_columns(s, b, a, width)
  if not a.lies and not in_order and not panel then return nil end
  if panel and constant then common.pack_ahead(s, panel) end
  if a.copied and not nest.with_last(s, b, a.shared, a.k) then return nil end
  local plain = false
  local copy = by_pairs and not a.copied and nest.copied_once(s, b, a.shared)
  local packed_under, written_under, rows_under = tile(s, b, a, width, columns, rows)
  if copy and not nest.put_under(s, copy, rows_under) then return nil end
  if copy then nest.draw_widening(s, {copy}) end
  if panel and not constant then
    if not s:can_compute_at(panel, packed_under) then return nil end
    s:compute_at(panel, packed_under, {preserve_unit_loops = true})
    plain = not by_pairs and nest.unpack(s, panel, width, lanes) == false
  end
  common.write_under(s, b, written_under)
  return s, plain
end

return msched.rule {
  name = "dot_tile",
  at = "blocks",
  apply = function(sch, block, context)
    local tileable = not sch:is_root(block) and sch:has_init(block) and common.is_nest(sch, block)
      and common.needs_tiling(sch, block)
    local width, results = tileable and nest.product_width(sch, block, context.target.dots) or 0, {sch}
    if width == 0 then return {sch} end
    local s, b = nest.by_products(sch, block)
    local other, other_block = nest.turned(s, b, context.target.vector_bits // 32)
    if other then s, b = other, other_block end
    local others = {} -- where no tile of others comes of it
    local by_pairs = nest.by_pairs(s, b, width, context.target.dots)
    if by_pairs then width = PAIR end
    for _, vectors in ipairs {1, 2, 3, 4} do
      local made, plain = tiled(s, b, context, width, vectors, common.only_consumer(s, b) ~= nil, by_pairs)
      table.insert(plain and others or results, made)
    end
    return #results > 1 and results or table.move(others, 1, #others, 2, results)
  end,
}
