-- Tiles a reduction for the registers, and packs what it reads again and again into panels.
--
-- The innermost tile is rows x vectors: the rows are unrolled, the vectors as wide as the machine's, and together they
-- stay in registers while the innermost reduction runs (lower/promote.c). An input that is read along the vectorized
-- iteration is copied into a panel, contiguous in the order of use (cache_read under the loop that picks the panel; the
-- buffer shrinks to it in lower/compact.c); one that is read across it, as the weights of a dense layer are, always,
-- and its panel lies along it. Tiles need not divide the extents: the rest runs under a condition, which lowering moves
-- out of the way (lower/partition.c). Packing is a choice of the space: it does not pay when small. Where the rows of
-- the other operand lie whole ways of the first cache apart, both may be packed, that one for all panels of columns,
-- which then follow one another within a block of the reduction. Where the reduction is in one piece, results begin
-- tile by tile, in registers, or all that it reduces together before: that is drawn too, and rewrite_reduction_block
-- does it. Where results are contiguous along fewer elements than a vector has, as those of three channels are, vectors
-- lie along another iteration, and results are copied to where they belong. Of floats shorter than their sums the other
-- operand is copied, too, for all columns, and copies hold float32 (tir/lower/memory/widen.c).
-- Source: Goto & van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 2008.
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"
local window_tile = msched.load "rules.window_tile"

-- The loops with those of each of the lists, which will be fused, next to one another in front; nil: they follow one
-- another as they are.
local function together(loops, lists)
  local listed, order, apart = {}, {}, false
  for _, list in ipairs(lists) do
    for _, l in ipairs(list) do listed[l], order[#order + 1] = list, l end
  end
  for i, l in ipairs(loops) do
    if not listed[l] then order[#order + 1] = l
    elseif l ~= listed[l][1] and listed[loops[i - 1]] ~= listed[l] then apart = true end
  end
  return apart and order or nil
end

-- Reads of the block that move by one along the vectorized iteration, as constants do once they are packed: those are
-- worth a panel. The second result: those of them that are no constants.
local function panels(sch, block, inner)
  local list, own, constants = {}, {}, common.constants(sch)
  local written = sch:writes(block)[1].buffer
  for i, r in ipairs(sch:reads(block)) do
    local stride = r.buffer ~= written and sch:read_stride(block, i - 1, inner) or 0
    if stride == 1 or stride > 1 and constants[r.buffer] then list[#list + 1] = i - 1 end
    if stride == 1 and not constants[r.buffer] then own[#own + 1] = i - 1 end
  end
  return list, own
end

-- Reads that move along the vectorized iteration in another dimension than the last, {index, dimension, rank}: vectors
-- of them would be gathered.
local function crossings(sch, block, inner)
  local list, constants = {}, common.constants(sch)
  local written = sch:writes(block)[1].buffer
  for i, r in ipairs(sch:reads(block)) do
    local stride = r.buffer ~= written and not constants[r.buffer] and sch:read_stride(block, i - 1, inner) or 0
    local d = stride > 1 and nest.dimension_of(r.shape, stride)
    if d and d < #r.shape then list[#list + 1] = {index = i - 1, dimension = d, rank = #r.shape} end
  end
  return list
end

-- The operand that all columns share, where its rows lie so far apart that they have the same place in the first cache:
-- a copy of them, close together, leaves the panel there. nil: it lies better, or in several rows of loops.
local WAY = 4096 -- bytes: addresses that are so far apart have the same place
local function crowded(sch, block, a)
  local shared = nest.operands(sch, block, a.inner)
  if not shared or #a.rows ~= 1 or common.constants(sch)[sch:reads(block)[shared + 1].buffer] then return nil end
  local apart, along = sch:read_stride(block, shared, a.rows[1]), sch:read_stride(block, shared, a.longest)
  if along == 1 and apart and apart > 0 and apart * sch:reads(block)[shared + 1].bytes % WAY == 0 then return shared end
end

-- Copies a read into a buffer in which the dimension comes last; gives the copy.
local function transposed(sch, block, crossing)
  return nest.laid_out(sch, block, crossing.index, crossing.rank, function(names)
    local order = nest.others(names, crossing.dimension)
    order[#order + 1] = names[crossing.dimension]
    return order
  end)
end

-- The operand that all columns share, where its elements are shorter floats than the sums. nil: they are not.
local function short_operand(sch, block, inner)
  local shared = nest.operands(sch, block, inner)
  local type = shared and sch:reads(block)[shared + 1].type
  return (type == "float16" or type == "bfloat16") and sch:writes(block)[1].type == "float32" and shared or nil
end

-- The reads that vectors lie along; few: those that are copied for it, too.
local function along_vectors(sch, block, inner, few)
  local list = panels(sch, block, inner)
  for _, crossing in ipairs(few and crossings(sch, block, inner) or {}) do list[#list + 1] = crossing.index end
  return list
end

-- The spatial loop whose iterations share most of what is read along the vectors: of those the innermost that is long
-- enough, or the longest.
local function choose_rows(sch, block, spatial, inner, few)
  local reads, best, most = along_vectors(sch, block, inner, few), nil, -1
  for _, l in ipairs(spatial) do
    local shared, extent = 0, sch:extent(l)
    for _, index in ipairs(reads) do if sch:read_stride(block, index, l) == 0 then shared = shared + 1 end end
    if l ~= inner and extent > 1
        and (shared > most or shared == most and (extent >= nest.BUSY or extent >= sch:extent(best))) then
      best, most = l, shared
    end
  end
  return best
end

local FEW = 4 -- rows in all, too few to be in chunks

-- The loops of rows: a long one alone; of several that share all that is read along the vectors, where the best is
-- short, all, as one: tiles go on from one line of an image to the next. What writes the result out needs whole
-- windows, and so no such tiles.
local function loops_of_rows(sch, block, spatial, inner, one, few)
  local rows, reads = choose_rows(sch, block, spatial, inner, few), along_vectors(sch, block, inner, few)
  if not rows then return {} end
  if one then return {rows} end
  local function shares_all(l)
    for _, index in ipairs(reads) do if sch:read_stride(block, index, l) ~= 0 then return false end end
    return #reads > 0
  end
  if sch:extent(rows) >= nest.LONG or not shares_all(rows) or common.only_consumer(sch, block) then return {rows} end
  local list, count = {}, 1
  for _, l in ipairs(spatial) do
    if l ~= inner and shares_all(l) then list[#list + 1], count = l, count * sch:extent(l) end
  end
  return count >= FEW and list or {rows}
end

-- Whether it is a reduction that a register tile serves.
local function applies(sch, block)
  if sch:is_root(block) or not common.is_nest(sch, block) or not common.needs_tiling(sch, block)
      or not sch:has_init(block) then
    return false
  end
  local spatial = nest.by_kind(sch, block)
  return spatial and nest.contiguous(sch, block, spatial) ~= nil
end

-- Where remainders of a loop choose what is read (the taps of a transposed convolution that meet an element), its
-- iterations of one remainder follow one another: the remainder, its phase, is a loop of its own, outside. Gives how
-- many there are.
local function split_phases(sch, block)
  local phases, rest = {}, {}
  for _, l in ipairs {sch:get_loops(block)} do
    local period = sch:loop_iter_kind(l) == "spatial" and sch:period(block, l) or 1
    if period > 1 and period < sch:extent(l) and sch:extent(l) % period == 0 then
      rest[#rest + 1], phases[#phases + 1] = sch:split(l, {msched.rest, period})
    else
      rest[#rest + 1] = l
    end
  end
  local count = #phases
  if count > 0 then sch:reorder(table.move(rest, 1, #rest, #phases + 1, phases)) end
  return count
end

-- What of the block's loops becomes what of the tile. skip: rows stay in one line, and the phases, the first loops, by
-- themselves, so that lowering knows of each tile which of its steps add zeros. nil: nothing is left to vectorize.
local function analyze(sch, block, phase_count, skip, few)
  local spatial, reduce, loops = nest.by_kind(sch, block)
  local phases = table.move(spatial, 1, skip and phase_count or 0, 1, {})
  if skip then spatial = table.move(spatial, phase_count + 1, #spatial, 1, {}) end
  local inner = nest.contiguous(sch, block, spatial)
  if not inner then return nil end -- results are contiguous along a phase alone
  local a = {outer = {}, phases = phases, rows = loops_of_rows(sch, block, spatial, inner, skip, few), most_rows = 1,
             reduce = reduce, inner = inner}
  local is_row = {}
  for _, l in ipairs(a.rows) do is_row[l], a.most_rows = true, a.most_rows * sch:extent(l) end
  for _, l in ipairs(spatial) do if l ~= inner and not is_row[l] then table.insert(a.outer, l) end end
  a.apart = together(loops, {a.outer, a.rows})
  for _, l in ipairs(reduce) do if not a.longest or sch:extent(l) > sch:extent(a.longest) then a.longest = l end end
  return a
end

-- So many columns; where there are fewer, but several, they are one vector that is not full, if the parameters say so.
local function columns_of(full, vectors, extent, p)
  return p.few_columns and vectors == 1 and extent < full and extent > FEW and extent or full
end

-- The blocks that pad what the block reads: inlined, their zeros are steps of the reduction that lowering leaves out
-- (lower/zeros.c), where tiles stay in one line.
local function paddings(sch, block)
  local list = {}
  if #sch:producers(block) == 0 then return list end
  for _, p in ipairs {sch:get_producers(block)} do
    if sch:is_spatial(p) and sch:has_call(p, "if_then_else") and #sch:consumers(p) == 1 and sch:can_inline(p) then
      list[#list + 1] = p
    end
  end
  return list
end


-- From outside: chunks of the other spatial loops and of rows, run in parallel; panels of columns; blocks of the
-- longest reduction; phases, what is left of the other spatial loops, tiles of rows, the reductions, and the register
-- tile. both: the blocks are around the panels of columns. Gives the loops that the panels are packed under, that the
-- result is written under, and the blocks.
local function tile(sch, block, a, columns, rows, both)
  if a.apart then sch:reorder(a.apart) end
  local columns_outer, columns_inner = sch:split(a.inner, {msched.rest, columns})
  local outer, outer_rest = nest.split_outer(sch, a.outer)
  local chunk, rows_outer, rows_inner = nest.split_rows(sch, a.rows, a.most_rows, rows)
  local blocks, rest = sch:split(a.longest, {sch:sample_perfect_tile(a.longest, 2, 1024)})
  local order = {}
  local function add(l) if l then order[#order + 1] = l end end
  add(outer) add(chunk)
  if both then add(blocks) add(columns_outer) else add(columns_outer) add(blocks) end
  for _, l in ipairs(a.phases) do add(l) end
  add(outer_rest) add(rows_outer)
  for _, l in ipairs(a.reduce) do add(l == a.longest and rest or l) end
  add(rows_inner) add(columns_inner)
  sch:reorder(order)
  nest.note_tile(sch, block, a.rows)
  if both then return columns_outer, chunk, blocks, chunk or outer end
  return blocks, columns_outer, blocks, chunk or outer
end

-- False: one of them cannot be packed there.
local function pack_panels(sch, caches, under)
  for _, cache in ipairs(caches) do
    if not sch:can_compute_at(cache, under) then return false end
    sch:compute_at(cache, under, {preserve_unit_loops = true})
  end
  return true
end

-- The block in tiles of so many vectors a row, with panels or without, with the other operand packed too or not, with
-- its padding skipped or as it is; few: columns are those of nest.turned, and rows as many as there are. nil: it has no
-- such tiles.
local function tiled(sch, block, context, parameters, vectors, pack, skip, both, few)
  local s = sch:copy()
  local b = s:handle(block)
  if skip then for _, p in ipairs(paddings(s, b)) do s:compute_inline(p) end end
  local a = analyze(s, b, split_phases(s, b), skip, few)
  if not a then return nil end
  local columns = columns_of(vectors * context.target.vector_bits // (8 * s:writes(b)[1].bytes), vectors,
                             s:extent(a.inner), parameters)
  -- their accumulators fill a third of the registers; where there are none, those that keep the units busy
  local rows, fitting = nest.rows_for(context, vectors, a.most_rows, context.target.vector_registers / 3, nest.BUSY)
  if few and #rows == 0 then rows = {fitting[#fitting]} end
  local _, reads = panels(s, b, a.inner)
  local across = crossings(s, b, a.inner)
  if columns > s:extent(a.inner) or (#rows == 0 and #a.rows > 0) or (pack and #reads == 0) then return nil end
  local caches, shared = {}, both and crowded(s, b, a)
  if both and (not shared or #across > 0) then return nil end
  if pack then for _, index in ipairs(reads) do caches[#caches + 1] = nest.copied(s, b, index) end end
  for _, crossing in ipairs(across) do caches[#caches + 1] = transposed(s, b, crossing) end
  local others = both and {nest.copied(s, b, shared)} or {}
  local short = not both and (pack or #reads == 0) and short_operand(s, b, a.inner)
  local widened = short and nest.copied_once(s, b, short)
  local packed_under, written_under, blocks, rows_under = tile(s, b, a, columns, rows, both)
  if not pack_panels(s, caches, packed_under) or not pack_panels(s, others, blocks) then return nil end
  if widened and not nest.put_under(s, widened, rows_under) then return nil end
  if widened then nest.draw_widening(s, table.move(caches, 1, #caches, 2, {widened})) end
  common.write_under(s, b, written_under)
  return s
end

-- The block in tiles of lines and rows of windows, with its padding skipped or as it is; nil: it has no such tiles.
local function window_tiled(sch, block, context, shape, skip)
  local s = sch:copy()
  local b = s:handle(block)
  if skip then for _, p in ipairs(paddings(s, b)) do s:compute_inline(p) end end
  local a = analyze(s, b, split_phases(s, b), skip)
  return a and window_tile.tiled(s, b, context, a, shape)
end

return msched.rule {
  name = "register_tile",
  at = "blocks",
  apply = function(sch, block, context, self)
    if not applies(sch, block) or nest.is_unpacked_by_dots(sch, block, context.target) then return {sch} end
    local results = {sch}
    for _, skip in ipairs(#paddings(sch, block) > 0 and {false, true} or {false}) do
      for _, vectors in ipairs {1, 2, 3, 4} do
        for _, pack in ipairs {true, false} do
          results[#results + 1] = tiled(sch, block, context, self.parameters or {}, vectors, pack, skip)
        end
        if vectors > 1 then
          results[#results + 1] = tiled(sch, block, context, self.parameters or {}, vectors, true, skip, true)
        end
      end
    end
    local slides = (context.target.slides or 0) > 0 and nest.product_width(sch, block, context.target.dots) == 4
    for _, shape in ipairs(slides and window_tile.SHAPES or {}) do
      for _, skip in ipairs(#paddings(sch, block) > 0 and {false, true} or {false}) do
        results[#results + 1] = window_tiled(sch, block, context, shape, skip)
      end
    end
    if #results > 1 then return results end
    local s, b = nest.by_products(sch, block)
    s, b = nest.turned(s, b, context.target.vector_bits // (8 * sch:writes(block)[1].bytes))
    for _, vectors in ipairs(s and {1, 2, 3, 4} or {}) do
      results[#results + 1] = tiled(s, b, context, self.parameters or {}, vectors, false, false, false, true)
    end
    return results
  end,
}
