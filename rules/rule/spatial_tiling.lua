-- Tiles blocks that reduce nothing: elementwise functions, stencils, transpositions, broadcasts, paddings. Each gets
-- the schedule that it had, and tiled ones. Where all that the block touches goes on without a gap, its loops are
-- one, of whole vectors of which several are unrolled. Else there are tiles of rows and columns: rows that are
-- unrolled share what they read of a stencil in registers, tiles what they share in a cache, and a transposition has
-- whole squares. Stages that keep_stages left are computed under a tile with the rows around it, or row by row in a
-- buffer that rolls on, or for themselves. Results beside one another whose tiles are alike are computed tile by tile
-- in turn, in one nest: what they read, and what one reads of another, comes from memory once. On a GPU the tiles are
-- blocks of threads in one or two dimensions, of whose elements each thread has several, side by side as vectors and in
-- rows; what is used again, or read across, is copied to shared memory or read directly.
-- Parameters:
--   unroll    rows, or vectors of a loop that is one, that are unrolled
--   vectors   of a CPU: how many registers a vector fills
--   rows      of a CPU: unrolled rows that a tile has
--   results   beside one another that are computed in one nest, at most
--   threads   of a GPU: threads of a block that is one loop; columns, rows: of one that is a tile, max_threads together
--   lengths   of a GPU: elements that a thread loads at once: of the narrowest type vector_bytes at most, of the widest
--             two such accesses
--   blocks    of a GPU: thread blocks that go over long loops together, each on by all of theirs
-- Sources: Ragan-Kelley et al., "Halide", PLDI 2013, section 3 (sliding windows and tiles with overlap); Ruetsch &
-- Micikevicius, "Optimizing Matrix Transpose in CUDA", 2009.
local common, tiling = msched.load "rules.common", msched.load "rules.tiling"

local BANKS = 32 -- of shared memory

-- ---- What there is to tile ---------------------------------------------------------------------------------------

-- Whether the block is one for these tiles: alone in loops over space of known extents.
local function applies(sch, block)
  if sch:is_root(block) or not sch:is_spatial_function() or common.is_tiled(sch, block) then return false end
  if not common.is_nest(sch, block) or #sch:writes(block) == 0 or not sch:is_trivial(block) then return false end
  for _, l in ipairs {sch:get_loops(block)} do
    if not sch:extent(l) or sch:extent(l) < 1 or sch:loop_kind(l) ~= "serial" then return false end
    if sch:loop_iter_kind(l) ~= "spatial" then return false end
  end
  return true
end

-- Bytes of the narrowest and of the widest type of element that the block touches.
local function narrowest_and_widest(sch, block)
  local least, most = math.huge, 1
  for _, regions in ipairs {sch:writes(block), sch:reads(block)} do
    for _, r in ipairs(regions) do least, most = math.min(least, r.bytes), math.max(most, r.bytes) end
  end
  return least, most
end

-- Bytes of the widest type of element that the block writes.
local function widest_result(sch, block)
  local most = 1
  for _, w in ipairs(sch:writes(block)) do most = math.max(most, w.bytes) end
  return most
end

-- The loop along which elements of the result follow one another: of those the longest; else the innermost.
local function contiguous(sch, block, loops)
  local inner
  for _, l in ipairs(loops) do
    if sch:write_stride(block, 0, l) == 1 and (not inner or sch:extent(l) >= sch:extent(inner)) then inner = l end
  end
  return inner or loops[#loops]
end

-- The loop along which elements that are read follow one another, where that is another: a transposition. nil: none.
local function crossing(sch, block, loops, inner)
  for _, l in ipairs(loops) do
    local strides = l ~= inner and sch:extent(l) > 1 and sch:strides(block, l) or {}
    for i = 1, #sch:reads(block) do if strides[i] == 1 then return l end end
  end
end

-- Which regions of the block move along some of the loops.
local function moving(sch, block, loops)
  local moves = {}
  for _, l in ipairs(loops) do
    for i, stride in ipairs(sch:strides(block, l)) do moves[i] = moves[i] or (stride ~= 0 and sch:extent(l) > 1) end
  end
  return moves
end

-- How many inner loops are one for the block: along them every region that moves at all goes on without a gap.
local function going_on(sch, block, loops)
  local moves, reached, count = moving(sch, block, loops), {}, 0
  for i = #loops, 1, -1 do
    local extent = sch:extent(loops[i])
    for k, stride in ipairs(extent > 1 and sch:strides(block, loops[i]) or {}) do
      if moves[k] and stride ~= (reached[k] or 1) then return count end
      reached[k] = moves[k] and stride * extent
    end
    if extent > 1 then count = #loops - i + 1 end
  end
  return count
end

-- Whether one loop can have the iterations of these, which follow one another: one of int32 has fewer than 2^31.
local function fits_one(sch, loops)
  local iterations, look, own = 1.0, nil, {}
  for _, l in ipairs(loops) do iterations = iterations * sch:extent(l) end
  if #loops < 2 or iterations < 1 << 31 then return true end
  look = sch:copy()
  for i, l in ipairs(loops) do own[i] = look:handle(l) end
  return (look:try("fuse", own))
end

-- Of the loops, all of them: columns, along which elements lie; a row, which shares what it reads or crosses it;
-- others, around both. Columns are several loops where these are one for the block, unless one is wanted. No row:
-- there is nothing else.
local function analyze(sch, block, one)
  local loops, is_column = {sch:get_loops(block)}, {}
  local a = {loops = loops, others = {}, columns = {}}
  local along = one and 0 or going_on(sch, block, loops)
  while not fits_one(sch, {table.unpack(loops, #loops - along + 1)}) do along = along - 1 end
  if along > 0 then
    table.move(loops, #loops - along + 1, #loops, 1, a.columns)
  else
    a.columns[1] = contiguous(sch, block, loops)
  end
  for _, l in ipairs(a.columns) do is_column[l] = true end
  a.row = along == 0 and crossing(sch, block, loops, a.columns[1]) or nil
  for i = #loops, 1, -1 do
    local l = loops[i]
    if not is_column[l] and not a.row and sch:extent(l) > 1 then a.row = l end
    if not is_column[l] and l ~= a.row then table.insert(a.others, 1, l) end
  end
  return a
end

local function fused(sch, loops) return #loops > 1 and sch:fuse(loops) or loops[1] end

-- Puts the loops in the order of the analysis, and fuses columns and, unless they shall stay apart, the others.
local function gather(sch, a, apart)
  local order = {table.unpack(a.others)}
  if a.row then order[#order + 1] = a.row end
  table.move(a.columns, 1, #a.columns, #order + 1, order)
  if #order > 1 then sch:reorder(order) end
  return fused(sch, a.columns), a.row,
    not apart and #a.others > 0 and fits_one(sch, a.others) and {fused(sch, a.others)} or a.others
end

-- Those of a list that are at most so many: the first at least.
local function up_to(list, most)
  local few = {}
  for i, n in ipairs(list) do if i == 1 or n <= most then few[#few + 1] = n end end
  return few
end

local function drawn(sch, list) return #list > 1 and common.sample_equal(sch, list) or list[1] end

-- Holds a product of numbers, drawn or not, against a limit.
local function hold(sch, numbers, relation, limit)
  local list = {}
  for i, n in ipairs(numbers) do list[i] = type(n) == "number" and tostring(n) or n:name() end
  sch:assert(string.format("%s %s %d", table.concat(list, " * "), relation, limit))
end

-- The blocks that were kept for these, all of whose readers are among them and the block, readers first.
local function stages_of(sch, block)
  local list, inside, noted = {}, {[sch:block_name(block)] = true}, common.names_with(sch, common.INLINE)
  local function add(of)
    for _, name in ipairs(noted and sch:producers(of) or {}) do
      local all = noted[name] and not inside[name] and common.is_kept(sch, sch:get_sblock(name))
      for _, reader in ipairs(all and sch:consumers(sch:get_sblock(name)) or {}) do all = all and inside[reader] end
      if all then list[#list + 1], inside[name] = name, true end
    end
  end
  add(block)
  local i = 1
  while list[i] do
    add(sch:get_sblock(list[i]))
    i = i + 1
  end
  return list
end

-- Computes stages under a loop; gives them. nil: one cannot be.
local function place(sch, stages, under)
  local placed = {}
  for i, name in ipairs(stages) do
    local stage = sch:get_sblock(name)
    if not sch:can_compute_at(stage, under) then return nil end
    sch:compute_at(stage, under, {preserve_unit_loops = true})
    sch:annotate(stage, common.SPATIAL, 1)
    placed[i] = stage
  end
  return placed
end

-- ---- Results beside one another ------------------------------------------------------------------------------------

-- Loops by their places among those around the block: two blocks of equal shape have the same tiles.
local function shape_of(sch, block)
  local a, place, list = analyze(sch, block, false), {}, {}
  for i, l in ipairs(a.loops) do
    place[l] = i
    list[#list + 1] = tostring(sch:extent(l))
  end
  for _, loops in ipairs {a.others, {a.row}, a.columns} do
    list[#list + 1] = "of"
    for _, l in ipairs(loops) do list[#list + 1] = tostring(place[l]) end
  end
  return table.concat(list, " ")
end

-- The block, and those right before it in the function whose tiles are alike, in order; no more than so many.
local function alike(sch, block, most)
  local names, at, group = sch:block_names(), nil, {block}
  for i, name in ipairs(names) do if name == sch:block_name(block) then at = i end end
  local shape = at and shape_of(sch, block)
  for i = at and at - 1 or 0, 1, -1 do
    local other = #group < most and sch:get_sblock(names[i])
    if not other or not applies(sch, other) or common.is_kept(sch, other) or shape_of(sch, other) ~= shape then
      break
    end
    table.insert(group, 1, other)
  end
  return group
end

-- Whether a block of the group reads what another writes.
local function reads_among(sch, group)
  local written = {}
  for _, block in ipairs(group) do
    for _, region in ipairs(sch:reads(block)) do if written[region.buffer] then return true end end
    for _, region in ipairs(sch:writes(block)) do written[region.buffer] = true end
  end
  return false
end

-- The block alone, and with those that are alike, if any: lists of names; reads_among: of the group. Asked of a copy,
-- so that traces do not have what is looked at.
local function groups_of(sch, block, p)
  local look = sch:copy()
  local group, names = alike(look, look:handle(block), p.results), {}
  for i, b in ipairs(group) do names[i] = look:block_name(b) end
  names.reads_among = reads_among(look, group)
  local alone = {names[#names], reads_among = false}
  return #group > 1 and {alone, names} or {alone}
end

-- Makes one of the nests down to these loops. False: an element would be read before it is written.
local function join(sch, loops) return #loops == 1 or sch:try("merge", loops) end

-- What is left to do of a tile. sure: the estimate of it is as good as that of loops that nothing tiles.
local function finish(sch, block, unrolled, lanes, sure)
  sch:annotate(block, common.SPATIAL, sure and 0 or 1)
  if unrolled then sch:try("unroll", unrolled) end
  sch:try("vectorize", lanes)
  return sch
end

-- ---- CPUs --------------------------------------------------------------------------------------------------------

-- All in one loop: of several vectors, each of several registers. Of all blocks of a group the same.
local function cpu_flat(sch, group, p, lanes)
  local columns, tiles, vectors = {}, {}, {}
  for i, block in ipairs(group) do columns[i] = gather(sch, analyze(sch, block, false)) end
  local most = sch:extent(columns[1]) // lanes
  for i, n in ipairs(up_to(p.vectors, most)) do vectors[i] = n * lanes end
  local tile = {drawn(sch, vectors), drawn(sch, up_to(p.unroll, most))}
  hold(sch, tile, "<=", sch:extent(columns[1]))
  for i, block in ipairs(group) do
    local outer, unrolled, inner = sch:split(columns[i], {msched.rest, tile[2], tile[1]})
    tiles[i] = outer
    finish(sch, block, unrolled, inner)
  end
  return join(sch, tiles) and sch or nil
end

-- Tiles of columns in vectors of so many elements, and of rows: from outside others, tiles of rows, of columns, what
-- is left of the others, rows, vectors, unrolled rows, a vector. Stages are computed under a tile.
local function cpu_tiles(sch, group, p, lanes, stages)
  local draws, joined = {}, {}
  local function once(name, draw) -- the same for all blocks of a group
    draws[name] = draws[name] or table.pack(draw())
    return table.unpack(draws[name])
  end
  for i, block in ipairs(group) do
    local columns, row, others = gather(sch, analyze(sch, block, #stages > 0))
    local outer, rest, tile, rows, unrolled
    if others[1] then
      outer, rest = sch:split(others[1],
                              {once("others", function() return sch:sample_perfect_tile(others[1], 2, 64) end)})
    end
    if row then
      local most = sch:extent(row)
      local many, few =
        once("row", function() return drawn(sch, up_to(p.rows, most)), drawn(sch, up_to(p.unroll, most)) end)
      tile, rows, unrolled = sch:split(row, {msched.rest, many, few})
    end
    local across, inner = sch:split(columns, {msched.rest, lanes})
    local strips, vectors =
      sch:split(across, {once("across", function() return sch:sample_perfect_tile(across, 2, -1) end)})
    local order = {}
    local function add(l) if l then order[#order + 1] = l end end
    add(outer) add(tile) add(strips) add(rest) add(rows) add(vectors) add(unrolled) add(inner)
    sch:reorder(order)
    if not place(sch, stages, strips) then return nil end
    joined[i] = strips
    finish(sch, block, unrolled, inner)
  end
  return join(sch, joined) and sch or nil
end

-- Whether what is read of the stages overlaps from one row to the next alone (1), or along columns too (2); nil: in
-- other ways.
local function overlap_of(sch, block, stages, a)
  local loops, staged, most = a.loops, {}, 1
  for _, name in ipairs(stages) do staged[sch:writes(sch:get_sblock(name))[1].buffer] = true end
  local readers = {sch:block_name(block), table.unpack(stages)}
  for _, name in ipairs(readers) do
    for _, region in ipairs(sch:reads(sch:get_sblock(name))) do
      if staged[region.buffer] and #region.shape ~= #loops then return nil end
      for d, n in ipairs(staged[region.buffer] and region.extents or {}) do
        if n ~= 1 and loops[d] ~= a.row and loops[d] ~= a.columns[1] then return nil end
        if n ~= 1 and loops[d] == a.columns[1] then most = 2 end
      end
    end
  end
  return most
end

-- Rows follow one another, and of each stage only those live that the next ones need: in strips of columns, which
-- run in parallel, or where columns of a stage are used again too, in one.
local function cpu_rolling(sch, group, p, lanes, stages)
  local block = group[1]
  local a = analyze(sch, block, true)
  local overlap = a.row and sch:extent(a.row) > 1 and overlap_of(sch, block, stages, a)
  if not overlap then return nil end
  local columns, row, order = gather(sch, a, true)
  -- two steps at least
  local rows, unrolled = sch:split(row, {msched.rest, drawn(sch, up_to(p.unroll, sch:extent(row) // 2))})
  local across, inner = sch:split(columns, {msched.rest, lanes})
  if overlap == 1 then order[#order + 1], across = sch:split(across, {sch:sample_perfect_tile(across, 2, -1)}) end
  local outer = order[1]
  table.move({rows, across, unrolled, inner}, 1, 4, #order + 1, order)
  sch:reorder(order)
  local placed = place(sch, stages, rows)
  if not placed then return nil end
  finish(sch, block, unrolled, inner)
  if outer then sch:try("parallel", outer) end
  for _, stage in ipairs(placed) do if not sch:try("rolling_buffer", stage, 0) then return nil end end
  return sch
end

-- Elements along the columns of an analysis.
local function length_of(sch, a)
  local along = 1
  for _, l in ipairs(a.columns) do along = along * sch:extent(l) end
  return along
end

-- Elements of vectors: whole registers, and where there are fewer columns than fill one, those.
local function widths_of(p, lanes, along)
  local list = {math.min(lanes, along)}
  for _, n in ipairs(p.vectors) do if n > 1 and n * lanes <= along then list[#list + 1] = n * lanes end end
  return list
end

local function cpu_schedules(sch, block, context, p, add)
  local a, stages, alone = analyze(sch, block, false), stages_of(sch, block), {sch:block_name(block)}
  local lanes = math.max(1, context.target.vector_bits // (8 * widest_result(sch, block)))
  local along = length_of(sch, a)
  for _, group in ipairs(groups_of(sch, block, p)) do
    if not a.row and along > lanes then add(group, cpu_flat, lanes) end
    for _, width in ipairs(a.row and widths_of(p, lanes, along) or {}) do add(group, cpu_tiles, width, {}) end
  end
  for _, width in ipairs(#stages > 0 and widths_of(p, lanes, length_of(sch, analyze(sch, block, true))) or {}) do
    add(alone, cpu_tiles, width, stages)
    add(alone, cpu_rolling, width, stages)
  end
end

-- ---- GPUs --------------------------------------------------------------------------------------------------------

-- How many elements of the loop a thread may load and store at once: whole parts of it, as wide as an access of the
-- narrowest type may be, and two of the widest; or one, which may be a vector that is wider.
local function lengths_of(sch, group, p, columns)
  local least, most, list = math.huge, 0, {}
  for _, block in ipairs(group) do
    local narrow, wide = narrowest_and_widest(sch, block)
    least, most = math.min(least, narrow), math.max(most, wide)
  end
  for _, n in ipairs(p.lengths) do
    local fits = n * least <= p.vector_bytes and n * most <= 2 * p.vector_bytes
    if fits and sch:extent(columns) % n == 0 then list[#list + 1] = n end
  end
  return #list > 0 and list or {1}
end

-- Binds the outermost loops around a block.
local function bind_outermost(sch, block, ...)
  local loops = {sch:get_loops(block)}
  for i, axis in ipairs {...} do sch:bind(loops[i], axis) end
  return sch
end

-- All in one loop: a block's threads lie side by side, and go on to what follows all of theirs; strided: all of all
-- blocks'.
local function gpu_flat(sch, group, p, strided)
  local columns, around, joined = {}, {}, {}
  for i, block in ipairs(group) do
    local one, _, others = gather(sch, analyze(sch, block, false)) -- loops around, if any, have one iteration
    columns[i], around[i] = one, others[1]
  end
  local lengths, most = lengths_of(sch, group, p, columns[1]), sch:extent(columns[1])
  local tile = {drawn(sch, up_to(p.threads, most)), drawn(sch, lengths),
                drawn(sch, strided and p.blocks or up_to(p.unroll, most))}
  if p.threads[1] <= most then hold(sch, tile, "<=", most) end
  for i, block in ipairs(group) do
    local blocks, items, threads, inner
    if strided then
      items, blocks, threads, inner = sch:split(columns[i], {msched.rest, tile[3], tile[1], tile[2]})
    else
      blocks, items, threads, inner = sch:split(columns[i], {msched.rest, tile[3], tile[1], tile[2]})
    end
    sch:reorder({blocks, threads, items})
    if around[i] then sch:fuse(around[i], blocks) end
    joined[i] = threads
    finish(sch, block, not strided and items or nil, inner, strided)
  end
  return join(sch, joined) and bind_outermost(sch, group[1], "blockIdx.x", "threadIdx.x") or nil
end

-- What the block's iterations use again, in a window, or read across its columns: {index, crosses}.
local function shareable(sch, block)
  local loops, list = {sch:get_loops(block)}, {}
  local inner = contiguous(sch, block, loops)
  for i, region in ipairs(sch:reads(block)) do
    local elements, crosses = 1, false
    for _, n in ipairs(region.extents) do elements = elements * n end
    for _, l in ipairs(loops) do
      crosses = crosses or l ~= inner and sch:extent(l) > 1 and sch:read_stride(block, i - 1, l) == 1
    end
    local is_copied = sch:has_block(region.buffer .. "_shared") -- for another block: a name stands for one
    if #region.shape > 1 and (elements > 1 or crosses) and not is_copied then
      list[#list + 1] = {index = i - 1, crosses = crosses}
    end
  end
  return list
end

-- The threads of a block fill what stands in shared memory together.
local function fill_together(sch, filler, rank)
  local loops = {sch:get_loops(filler)}
  fused(sch, table.move(loops, #loops - rank + 1, #loops, 1, {}))
end

-- Copies to shared memory, under the threads' loop. Of what is read across, rows lie apart so that no two share
-- their banks.
local function copy_reads(sch, block, p, under)
  for _, read in ipairs(shareable(sch, block)) do
    local cache = sch:cache_read(block, read.index, "shared", {block})
    local rank = #sch:writes(cache)[1].shape
    if read.crosses then sch:storage_align(cache, 0, rank - 2, BANKS, 1) end
    sch:compute_at(cache, under, {preserve_unit_loops = true})
    fill_together(sch, cache, rank)
    tiling.note_fetch(sch, cache,
                      {vector_load_lengths = read.crosses and {1} or p.lengths, vector_bytes = p.vector_bytes})
  end
end

local function share_stages(sch, stages, under)
  for _, name in ipairs(stages) do sch:set_scope(sch:get_sblock(name), 0, "shared") end
  local placed = place(sch, stages, under)
  for _, stage in ipairs(placed or {}) do
    fill_together(sch, stage, #sch:writes(stage)[1].shape)
    sch:annotate(stage, "meta_schedule.cooperative_fetch", 1)
  end
  return placed
end

-- Threads along a loop: those of a list that it has iterations for, or of a shorter one as many.
local function filling(list, extent)
  local few = {}
  for _, n in ipairs(list) do if n <= extent then few[#few + 1] = n end end
  local most = 1
  while 2 * most <= extent do most = 2 * most end
  return #few > 0 and few or {most}
end

-- A tile of threads, each with several rows and so many columns at once. copies: what is used again is in shared
-- memory.
local function gpu_tiles(sch, group, p, stages, copies)
  local block = group[1]
  local columns, row, others = gather(sch, analyze(sch, block, #stages > 0))
  local lengths, extent, count = lengths_of(sch, group, p, columns), sch:extent(columns), sch:extent(row)
  local x, y = drawn(sch, filling(p.columns, extent)), drawn(sch, filling(p.rows, count))
  local strips, across, inner = sch:split(columns, {msched.rest, x, drawn(sch, lengths)})
  local tile, down, unrolled = sch:split(row, {msched.rest, y, drawn(sch, up_to(p.unroll, count))})
  local blocks = {table.unpack(others)}
  table.move({tile, strips}, 1, 2, #blocks + 1, blocks)
  sch:reorder(table.move({down, across, unrolled, inner}, 1, 4, #blocks + 1, {table.unpack(blocks)}))
  sch:bind(sch:fuse(blocks), "blockIdx.x")
  sch:bind(down, "threadIdx.y")
  sch:bind(across, "threadIdx.x")
  if copies then copy_reads(sch, block, p, across) end
  if #stages > 0 and not share_stages(sch, stages, across) then return nil end
  return finish(sch, block, unrolled, inner)
end

-- Elements at once, at most.
local function most_length(p) return p.lengths[#p.lengths] end

local function gpu_schedules(sch, block, _, p, add)
  local a, stages, alone = analyze(sch, block, false), stages_of(sch, block), {sch:block_name(block)}
  for _, group in ipairs(a.row and {} or groups_of(sch, block, p)) do
    if not group.reads_among then -- blocks of threads must not wait for one another
      add(group, gpu_flat, false)
      if length_of(sch, a) >= 2 * p.blocks[1] * p.threads[1] * most_length(p) then add(group, gpu_flat, true) end
    end
  end
  if a.row then add(alone, gpu_tiles, {}, false) end
  if a.row and #shareable(sch, block) > 0 then add(alone, gpu_tiles, {}, true) end
  if #stages > 0 and analyze(sch, block, true).row then add(alone, gpu_tiles, stages, false) end
end

return msched.rule {
  name = "spatial_tiling",
  at = "blocks",
  apply = function(sch, block, context, self)
    if not applies(sch, block) then return {sch} end
    local p, results = self.parameters, {sch}
    local schedules = p.threads and gpu_schedules or cpu_schedules
    schedules(sch, block, context, p, function(group, build, ...)
      local s, own = sch:copy(), {}
      for i, name in ipairs(group) do
        own[i] = name == sch:block_name(block) and s:handle(block) or s:get_sblock(name)
      end
      results[#results + 1] = build(s, own, p, ...)
    end)
    return results
  end,
}
