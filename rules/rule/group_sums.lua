-- Fuses a reduction with that of the groups that it adds up: Y[i, j] = sum over g of f(P[i, g, j], …), where P itself
-- is a sum within a group, as products with weights of few bits are, whose groups have a scale each. Tiles of rows x
-- vectors of columns go over the groups; the sums of a group are in registers, and never in memory: P[i, g, j] of all
-- groups would be as large as weights of 4 bits are.
--
-- Constants are laid out in the order in which the tile reads them (rewrite_layout.lua); other operands must be
-- contiguous along columns, or the same for all. Sums of products of short types that the CPU adds several of to a lane
-- keep the neighbours innermost, as dot_tile does.
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"

-- Whether all that a block reads moves by one element along a loop, or by none, or is laid out as it is wanted.
local function reads_columns(sch, block, loop, constants)
  local written = sch:writes(block)[1].buffer
  for i, r in ipairs(sch:reads(block)) do
    local stride = r.buffer ~= written and not constants[r.buffer] and sch:read_stride(block, i - 1, loop) or 0
    if stride ~= 0 and stride ~= 1 then return false end
  end
  return true
end

-- The one block whose sums the block adds up; nil: there is none, or its results are read elsewhere, too.
local function groups_of(sch, block)
  local found
  for _, name in ipairs(sch:producers(block)) do
    local p = sch:get_sblock(name)
    if sch:has_init(p) and common.is_nest(sch, p) and sch:is_trivial(p) and not common.is_tiled(sch, p)
        and #sch:writes(p) == 1 then
      local uses
      for i, r in ipairs(sch:reads(block)) do
        if r.buffer == sch:writes(p)[1].buffer then uses = #sch:read_uses(block)[i] end
      end
      if uses == #sch:iter_kinds(block) and #sch:consumers(p) == 1 then
        if found then return nil end
        found = p
      end
    end
  end
  return found
end

-- What there is to tile: the loops of rows, of columns, of groups, and the groups' block; nil: it is no such sum.
local function analyze(sch, block)
  local spatial, reduce = nest.by_kind(sch, block)
  local inner = spatial and #reduce == 1 and nest.contiguous(sch, block, spatial)
  local groups = inner and groups_of(sch, block)
  if not groups then return nil end
  local own = nest.by_kind(sch, groups)
  local columns, constants = own and nest.contiguous(sch, groups, own), common.constants(sch)
  if not columns or sch:extent(columns) ~= sch:extent(inner) then return nil end
  if not reads_columns(sch, block, inner, constants) or not reads_columns(sch, groups, columns, constants) then
    return nil
  end
  local a = {inner = inner, groups = groups, over = reduce[1], rows = {}, count = 1, sums = 1}
  for _, l in ipairs(own) do a.sums = a.sums * sch:extent(l) end
  for _, l in ipairs(spatial) do
    if l ~= inner and sch:extent(l) > 1 then a.rows[#a.rows + 1], a.count = l, a.count * sch:extent(l) end
  end
  a.sums = a.sums // (a.count * sch:extent(a.over) * sch:extent(inner)) -- of each result, in a group
  return a
end

-- Later rules leave the block alone.
local function note(sch, block)
  sch:annotate(block, "msched.register_tile", 1)
  sch:annotate(block, "schedule_rule", "None")
end

-- The loops of the groups' block below those that it has in common with the block: what it reduces in front of its rows
-- and columns, neighbours that are added at once last.
local UNROLLED = 8 -- iterations of a loop over parts of an element, at most
local function order_groups(sch, groups, shared, width, unrolled)
  local kinds, loops, reduce, spatial, columns = sch:loop_iter_kinds(groups), {sch:get_loops(groups)}, {}, {}, nil
  for i = shared + 1, #loops do
    if kinds[i] == "reduce" then reduce[#reduce + 1] = loops[i]
    elseif sch:write_stride(groups, 0, loops[i]) == 1 and sch:extent(loops[i]) > 1 then columns = loops[i]
    else spatial[#spatial + 1] = loops[i] end
  end
  if not columns or #reduce == 0 then return nil end
  local order, neighbours = {}, nil
  if width > 0 then
    if sch:extent(reduce[1]) % width ~= 0 then return nil end
    reduce[1], neighbours = sch:split(reduce[1], {msched.rest, width})
  end
  for _, list in ipairs {reduce, spatial, {columns, neighbours}} do table.move(list, 1, #list, #order + 1, order) end
  sch:reorder(order)
  for i = 2, #reduce do if sch:extent(reduce[i]) <= UNROLLED then sch:unroll(reduce[i]) end end
  for _, l in ipairs(spatial) do sch:unroll(l) end
  if neighbours and unrolled then sch:unroll(neighbours) end
  sch:vectorize(columns)
  return reduce[1]
end

-- Vectorizes what the groups' sums read that is computed for them, as what X is rounded to: it is read with gaps, which
-- keeps others from doing so.
local MOST_LANES = 64
local function vectorize_producers(sch, groups)
  for _, name in ipairs(sch:producers(groups)) do
    local p = sch:get_sblock(name)
    if sch:is_spatial(p) and common.is_nest(sch, p) and not common.is_tiled(sch, p) then
      local loops = {sch:get_loops(p)}
      local last = loops[#loops]
      local extent = last and sch:extent(last) or 1
      if extent > MOST_LANES then last, extent = select(2, sch:split(last, {msched.rest, MOST_LANES})), MOST_LANES end
      if extent > 1 and sch:write_stride(p, 0, last) == 1 then sch:vectorize(last) end
    end
  end
end

-- The loops of rows as one: chunks, which run in parallel, where there are many; tiles, and the rows of a tile. Nothing
-- where there is one row.
local function split_rows(sch, a, rows)
  if a.count >= nest.LONG then return nest.split_rows(sch, a.rows, a.count, rows) end
  if #a.rows == 0 then return end
  local all = #a.rows > 1 and sch:fuse(a.rows) or a.rows[1]
  return nil, sch:split(all, {msched.rest, common.sample_equal(sch, rows)})
end

-- Neighbours of constant bytes that lie in a lane, whose parts the target's instructions make floats one after another;
-- 0: it has none for them. Of several rows the multiply-adds take more time than that.
local WORD, PART_BITS = 4, 4
local function word_width(s, groups, target)
  local bits, constants, _, reduce = s:part_bits(groups), common.constants(s), nest.by_kind(s, groups)
  if s:extent(reduce[1]) % WORD ~= 0 then return 0 end
  for _, r in ipairs(s:reads(groups)) do
    if r.type == "uint8" and not constants[r.buffer] then return 0 end
  end
  return bits > 0 and bits <= PART_BITS and (target.table or 0) >= 2 ^ PART_BITS and WORD or 0
end

-- Sums of floats, where fewer than hide the latency of a multiply-add, in two each, one for each part of a byte: the
-- block of these; nil: they are enough.
local function halved(s, groups, sums)
  local spatial, reduce = nest.by_kind(s, groups)
  local last = reduce[#reduce]
  local few = sums < nest.BUSY and #reduce == 2 and s:extent(last) == 2 and s:writes(groups)[1].type == "float32"
  return few and s:can_rfactor(last, #spatial - 1) and s:rfactor(last, #spatial - 1) or nil
end

-- The block in tiles of so many vectors a row, shared out among threads by tiles of columns or by chunks of rows,
-- whichever are more: as one loop, its quotients would hide in which order constants are read. nil: there are no such.
local function tiled(sch, block, context, vectors)
  local s = sch:copy()
  local b = s:handle(block)
  local a = analyze(s, b)
  local columns = vectors * context.target.vector_bits // (8 * s:writes(b)[1].bytes)
  local _, rows = nest.rows_for(context, vectors * a.sums, a.count, 1)
  if columns > s:extent(a.inner) or #rows == 0 then return nil end
  local width, words = nest.product_width(s, a.groups, context.target.dots), 0
  if width == 0 and a.count == 1 then words = word_width(s, a.groups, context.target) end
  local halves = words > 0 and halved(s, a.groups, vectors * a.sums)
  local columns_outer, columns_inner = s:split(a.inner, {msched.rest, columns})
  local chunk, rows_outer, rows_inner = split_rows(s, a, rows)
  local shared, first = columns_outer, chunk or false
  if chunk and s:extent(chunk) > s:extent(columns_outer) then shared, first = chunk, columns_outer end
  local order = {}
  for _, l in ipairs {shared, first, rows_outer or false, a.over, rows_inner or false, columns_inner} do
    if l then order[#order + 1] = l end
  end
  s:reorder(order)
  if not s:can_compute_at(a.groups, a.over) then return nil end
  vectorize_producers(s, halves or a.groups)
  local blocks, firsts = {a.groups, halves or nil}, {}
  for i, each in ipairs(blocks) do
    s:compute_at(each, a.over, {preserve_unit_loops = true})
    local last = i == #blocks
    firsts[i] = order_groups(s, each, s:shared_loops(each, b), last and math.max(width, words) or 0, words > 0)
    if not firsts[i] then return nil end
  end
  if rows_inner then s:unroll(rows_inner) end
  s:vectorize(columns_inner)
  s:parallel(shared)
  s:annotate(b, "msched.init_before_tiles", 1)
  for i = 1, #blocks do blocks[#blocks + 1] = s:decompose_reduction(blocks[i], firsts[i]) end
  for _, each in ipairs {b, table.unpack(blocks)} do note(s, each) end
  return s
end

return msched.rule {
  name = "group_sums",
  at = "blocks",
  apply = function(sch, block, context)
    local tileable = not sch:is_root(block) and sch:has_init(block) and #sch:writes(block) == 1
      and common.is_nest(sch, block)
                     and not common.is_tiled(sch, block) and sch:is_trivial(block) and #sch:producers(block) > 0
    if not tileable or not analyze(sch, block) then return {sch} end
    local results = {}
    for _, vectors in ipairs {1, 2, 4} do results[#results + 1] = tiled(sch, block, context, vectors) end
    return #results > 0 and results or {sch}
  end,
}
