-- Chains of a softmax and the product that reads it, as attention has them: what the rules share that fuse such.
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"
local chain = {}

local UNROLLED = 8 -- parts that are joined side by side
local MOST_INLINED = 8 -- blocks between the sum of products and what it is fused with

local function has_exponentials(sch)
  for _, name in ipairs(sch:block_names()) do if sch:has_call(sch:get_sblock(name), "exp") then return true end end
  return false
end

local function reduces(sch) return function(b) return sch:has_init(b) end end

-- What stands between the product and the exponentials, these too, is inlined; false: there are none.
function chain.inline_softmax(sch, product)
  for _ = 1, MOST_INLINED do
    if sch:has_call(product, "exp") then return true end
    local between = common.names_where(sch, sch:producers(product), function(b)
      return sch:is_spatial(b) and sch:can_inline(b)
        and (sch:has_call(b, "exp") or #common.names_where(sch, sch:producers(b), reduces(sch)) > 0)
    end)
    if #between == 0 then return false end
    sch:compute_inline(sch:get_sblock(between[1]))
  end
  return false
end

local function shape_of(sch, name) return table.concat(sch:writes(sch:get_sblock(name))[1].shape, " ") end

-- The names of maximum and sum among what the product reads; nil: there are none.
function chain.find_parts(sch, product)
  local sums =
    common.names_where(sch, sch:producers(product), function(b) return sch:has_init(b) and sch:has_call(b, "exp") end)
  for _, sum in ipairs(sums) do
    for _, name in ipairs(sch:producers(product)) do
      local b = sch:get_sblock(name)
      if name ~= sum and sch:has_init(b) and not sch:has_call(b, "exp") then
        for _, of_sum in ipairs(sch:producers(sch:get_sblock(sum))) do
          if of_sum == name and shape_of(sch, name) == shape_of(sch, sum) then return name, sum end
        end
      end
    end
  end
end

-- The loop of rows and the one of columns of a block that writes a matrix, and its loop that reduces; nil: it is
-- another. innermost: of dimensions before the columns that may be rows, as those of one element, the last is.
function chain.matrix_loops(sch, block, innermost)
  local kinds, row, column, reduce = sch:loop_iter_kinds(block), nil, nil, nil
  local shape = sch:writes(block)[1].shape
  for i, l in ipairs {sch:get_loops(block)} do
    local stride = kinds[i] == "spatial" and sch:write_stride(block, 0, l)
    if kinds[i] == "reduce" and not reduce then reduce = l
    elseif stride == 1 and not column then column = l
    elseif stride == shape[#shape] and (not row or innermost) then row = l
    elseif not stride or sch:extent(l) > 1 and stride <= shape[#shape] then return nil end
  end
  if row and column then return row, column, reduce end
end

-- Rows and columns of the product's last reduction, where it may be one: the extents of its largest read's row.
function chain.extents(sch, block)
  local kinds, rows, columns = sch:iter_kinds(block), 1, nil
  for v, extent in ipairs(sch:iter_extents(block)) do
    if not extent then return nil end
    if kinds[v] == "reduce" then
      if columns then return nil end
      columns = extent
    end
  end
  local shape = sch:writes(block)[1].shape
  for d = 1, #shape - 1 do if shape[d] > 1 then rows = shape[d] end end
  return rows, columns
end

-- Whether the block is the product at the end of such a chain.
function chain.ends_in(sch, block)
  local probe = sch:copy()
  return has_exponentials(probe) and chain.inline_softmax(probe, probe:handle(block))
    and chain.find_parts(probe, probe:handle(block)) ~= nil
end

-- ---- Scheduling ----------------------------------------------------------------------------------------------------

-- Has the buffer that a block writes hold the dimension of a loop last.
function chain.put_last(sch, block, loop)
  local shape, names = sch:writes(block)[1].shape, {}
  local dimension = nest.dimension_of(shape, sch:write_stride(block, 0, loop))
  for d = 1, #shape do names[d] = "i" .. d end
  local order = nest.others(names, dimension)
  order[#order + 1] = names[dimension]
  sch:transform_layout(block, string.format("lambda %s: (%s)", table.concat(names, ", "), table.concat(order, ", ")), 0,
                       1)
end

-- Rows innermost and in vectors; other spatial loops around what reduces.
function chain.vectorize_rows(sch, block, lanes)
  local loops = {sch:get_loops(block)}
  local row = table.remove(loops, 1)
  local outer, vector = sch:split(row, {msched.rest, lanes})
  table.insert(loops, 1, outer)
  loops[#loops + 1] = vector
  sch:reorder(loops)
  sch:vectorize(vector)
end

-- A reduction over columns of each row: begins before them, stays in registers.
function chain.reduce_rows(sch, block)
  local row, column = sch:get_loops(block)
  sch:reorder(column, row)
  sch:vectorize(row)
  sch:annotate(block, "msched.register_tile", 1)
  sch:decompose_reduction(block, column)
end

-- The number, from 0, of the read whose strides along two loops are these; `other` moves it not.
function chain.read_along(sch, block, one, other)
  for i, r in ipairs(sch:reads(block)) do
    local index = i - 1
    if sch:read_stride(block, index, one) and sch:read_stride(block, index, one) > 0
        and sch:read_stride(block, index, other) == 0 then
      return index, r
    end
  end
end

-- The dimensions of a read that two loops run over, and how many it has.
function chain.dimensions(sch, block, index, one, other)
  local shape = sch:reads(block)[index + 1].shape
  return nest.dimension_of(shape, sch:read_stride(block, index, one)),
         nest.dimension_of(shape, sch:read_stride(block, index, other)), #shape
end

-- The block that sums the scores: what the maximum is of, or is made of.
function chain.find_scores(sch, maximum)
  for _, name in ipairs(sch:producers(sch:get_sblock(maximum))) do
    local block = sch:get_sblock(name)
    for _ = 1, 8 do
      if sch:has_init(block) then return block end
      local next_one
      for _, before in ipairs(sch:producers(block)) do
        local b = sch:get_sblock(before)
        if sch:has_init(b) or not next_one then next_one = b end
      end
      if not next_one then break end
      block = next_one
    end
  end
end

-- The number, from 0, of the block's read of a buffer; nil: it reads none of it.
function chain.number_of_read(sch, block, buffer)
  for i, r in ipairs(sch:reads(block)) do if r.buffer == buffer then return i - 1 end end
end

-- The products of the chain that ends in one of float32, its softmax inlined: the names of maximum and sum, the block
-- of scores, and of both products the loops of rows, of columns, and the one that reduces; nil: there are none.
-- innermost: as of matrix_loops.
function chain.find_products(sch, product, innermost)
  if not chain.inline_softmax(sch, product) then return nil end
  local maximum, sum = chain.find_parts(sch, product)
  local scores = maximum and chain.find_scores(sch, maximum)
  if not scores or sch:writes(scores)[1].type ~= "float32" or sch:writes(product)[1].type ~= "float32" then
    return nil
  end
  local row, column, depth = chain.matrix_loops(sch, scores, innermost)
  local to, value, along = chain.matrix_loops(sch, product, innermost)
  if not depth or not along or #sch:reads(scores) ~= 2 then return nil end
  return {maximum = maximum, sum = sum, scores = scores, row = row, column = column, depth = depth, to = to,
          value = value, along = along}
end

-- The other names, and these expressions.
function chain.names_and(others, ...)
  for _, e in ipairs {...} do others[#others + 1] = e end
  return others
end

chain.PAIR = 2 -- factors of bfloat16 that are multiplied at once

-- Dimensions as products of bfloat16 read them: pairs along one, of each element of the other.
function chain.in_pairs(names, along, own)
  local j = names[along]
  return chain.names_and(nest.others(names, along, own), j .. " // " .. chain.PAIR, names[own],
                         j .. " % " .. chain.PAIR)
end

-- The division at the end, with what follows it element by element, of sums that are transposed first; false: it cannot
-- stand below the loop.
function chain.schedule_normalizer(sch, name, sums, around, lanes)
  local normalize = sch:get_sblock(name .. "_normalize")
  local consumer = common.only_consumer(sch, normalize)
  if consumer and sch:can_reverse_inline(consumer) then sch:reverse_compute_inline(consumer) end
  local read = chain.number_of_read(sch, normalize, sums)
  if not read or not sch:can_reverse_compute_at(normalize, around) then return false end
  sch:reverse_compute_at(normalize, around, {preserve_unit_loops = true})
  local rank = #sch:reads(normalize)[read + 1].shape
  local copy = nest.laid_out(sch, normalize, read, rank, function(names)
    return chain.names_and(nest.others(names, rank - 1, rank), names[rank], names[rank - 1])
  end)
  local loops = {sch:get_loops(normalize)}
  local some = sch:split(loops[#loops - 1], {msched.rest, lanes})
  sch:compute_at(copy, some, {preserve_unit_loops = true})
  local _, vector = sch:split(loops[#loops], {msched.rest, lanes})
  sch:vectorize(vector)
  for _, b in ipairs {normalize, copy} do sch:annotate(b, "schedule_rule", "None") end
  return true
end

-- ---- What grows ----------------------------------------------------------------------------------------------------

function chain.up_to(extent, multiple) return (extent + multiple - 1) // multiple * multiple end

-- The block that writes what another reads at this number, a producer of the block around that.
function chain.maker_of(sch, block, index, around)
  local buffer = sch:reads(block)[index + 1].buffer
  for _, name in ipairs(sch:producers(around)) do
    local maker = sch:get_sblock(name)
    if sch:writes(maker)[1].buffer == buffer then return maker end
  end
end

-- The copy that a block reads at this number, padded at once in all that grows.
function chain.take_copy(sch, block, index, outer)
  local copy = chain.maker_of(sch, block, index, outer)
  while #sch:producers(copy) > 0 do
    local before = sch:get_producers(copy)
    if not sch:is_spatial(before) or not sch:can_inline(before) then break end
    sch:compute_inline(before)
  end
  return copy
end

-- A padded copy ahead of the fused block: so many rows of each matrix in parallel.
function chain.schedule_copy(sch, copy, rows)
  local loops = {sch:get_loops(copy)}
  local outer = table.move(loops, 1, #loops - 2, 1, {})
  outer[#outer + 1] = sch:split(loops[#loops - 1], {msched.rest, rows})
  sch:parallel(#outer > 1 and sch:fuse(outer) or outer[1])
  sch:annotate(copy, "schedule_rule", "None")
end

-- ---- On a GPU ------------------------------------------------------------------------------------------------------

-- Loops of the fused block: blocks of threads, also those of parts of the columns where there are several, so many at
-- most along a thread axis, tiles of columns. Gives the last two, and the number along the axis. Where rows see unlike
-- numbers of columns, all blocks of the same rows are neighbours: those that take longest begin first, whatever their
-- head (tir/lower/loop/ends.c).
function chain.bind_tiles(sch, outer, axis, most, in_parts)
  local loops = {sch:get_loops(outer)}
  local columns, part = table.remove(loops), in_parts and table.remove(loops) or nil
  local tiles = table.remove(loops)
  local factors = {sch:sample_perfect_tile(tiles, 2, most)}
  local blocks, inner = sch:split(tiles, factors)
  if part then
    sch:reorder {part, inner}
    loops[#loops + 1] = part
  end
  if sch:annotation(outer, "msched.idle_above_zero") and #loops > 0 then
    sch:reorder {blocks, table.unpack(loops)}
    table.insert(loops, 1, blocks)
  else
    table.insert(loops, part and #loops or #loops + 1, blocks)
  end
  sch:bind(#loops > 1 and sch:fuse(loops) or loops[1], "blockIdx.x")
  sch:bind(inner, axis)
  return inner, columns, factors[2]
end

-- The division at the end, of that name, with what follows it element by element, in whatever order that is in memory.
local function end_of(sch, name)
  local normalize = sch:get_sblock(name)
  while #sch:consumers(normalize) == 1 do
    local consumer = sch:get_consumers(normalize)
    if not sch:is_spatial(consumer) or not sch:can_reverse_inline(consumer) then break end
    sch:reverse_compute_inline(consumer)
  end
  return normalize
end

-- The same under a loop; gives it.
function chain.divide_under(sch, name, loop)
  local normalize = end_of(sch, name)
  sch:reverse_compute_at(normalize, loop, {preserve_unit_loops = true})
  return normalize
end

-- The blocks from the scores to the maximum, both included.
local function way_of(sch, scores, maximum)
  local way, name = {sch:get_sblock(maximum)}, sch:block_name(scores)
  for _ = 1, 8 do
    local before
    for _, n in ipairs(sch:producers(way[#way])) do
      local b = sch:get_sblock(n)
      if n == name or not before and sch:is_spatial(b) and #sch:producers(b) > 0 then before = b end
    end
    way[#way + 1] = before
    if not before or sch:block_name(before) == name then break end
  end
  return way
end

-- How many heads of queries share one of keys, where `c` is of find_products; 1: each has its own.
local function sharing(sch, c)
  local shape, at = sch:writes(c.scores)[1].shape, chain.read_along(sch, c.scores, c.column, c.row)
  local keys = at and sch:reads(c.scores)[at + 1].shape
  if not keys or #shape < 3 or #keys < 2 then return 1 end
  local heads, own = shape[#shape - 2], #keys == #shape and keys[#keys - 2] or 1
  return heads % own == 0 and heads // own or 1
end

-- Makes the heads of queries that share keys rows of one matrix, with a copy of the queries that lies so, whose name it
-- gives; nil: none share them, or it is not to be had, and the schedule may be changed.
function chain.fold_heads(sch, product, c)
  local each, shape = sharing(sch, c), sch:writes(c.scores)[1].shape
  if each == 1 then return nil end
  local rows, first = shape[#shape - 1], chain.read_along(sch, c.scores, c.row, c.column)
  local way = way_of(sch, c.scores, c.maximum)
  if not first or #way < 2 then return nil end
  way[#way + 1], way[#way + 2] = sch:get_sblock(c.sum), product
  local function map(count)
    local before, after = {}, {}
    for d = 1, count do before[d] = "x" .. d end
    for d = 1, #shape - 3 do after[d] = before[d] end
    local head, row = before[#shape - 2], before[#shape - 1]
    after[#after + 1] = string.format("%s // %d", head, each)
    after[#after + 1] = string.format("%s %% %d * %d + %s", head, each, rows, row)
    for d = #shape, count do after[#after + 1] = before[d] end
    return string.format("lambda %s: (%s)", table.concat(before, ", "), table.concat(after, ", "))
  end
  for _, b in ipairs(way) do
    local own, extents = sch:writes(b)[1].shape, sch:iter_extents(b)
    for d = 1, #shape - 1 do if own[d] ~= shape[d] or extents[d] ~= shape[d] then return nil end end
    if not sch:try("transform_layout", b, map(#own), 0, 1) then return nil end
    if not sch:try("transform_block_layout", b, map(#extents)) then return nil end
  end
  local done, copy = sch:try("reindex", c.scores, first, 0)
  return done and sch:block_name(copy) or nil
end

-- Of p.tiles, those that may be, and waste little: rows and columns grow to whole tiles, but no more of them than by a
-- share of what the best of these tiles makes of them.
function chain.few_tiles(c, p, may_be)
  local list, few, least = {}, {}, math.huge
  for _, tile in ipairs(p.tiles) do
    local made = chain.up_to(c.rows, tile.rows) * chain.up_to(c.columns, tile.columns)
    if may_be(tile) then list[#list + 1], least = {tile, made}, math.min(least, made) end
  end
  for _, entry in ipairs(list) do if entry[2] <= (1 + p.growth) * least then few[#few + 1] = entry[1] end end
  return few
end

-- Rows grow to a multiple of this: of so many tiles, up to `most`, that several warps or threads share them, if that
-- makes few more; 0: nothing grows.
function chain.multiple_of(c, tile, most, growth)
  if c.rows % tile.rows == 0 and c.columns % tile.columns == 0 then return 0 end
  local least, tiles = chain.up_to(c.rows, tile.rows), 1
  while 2 * tiles <= most and chain.up_to(c.rows, 2 * tiles * tile.rows) <= (1 + growth) * least do
    tiles = 2 * tiles
  end
  return tiles * tile.rows
end

-- The padded copies of what grows, which the fused block reads, in this scope: {keys, values, queries}.
function chain.padded_copies(sch, c, outer, scores, product, scope)
  local function take(block, one, other)
    local copy = chain.maker_of(sch, block, (chain.read_along(sch, block, one, other)), outer)
    sch:set_scope(copy, 0, scope)
    return copy
  end
  local loops, own, copies = {sch:get_loops(scores)}, {sch:get_loops(product)}, {}
  local row, column = loops[#loops - 2], loops[#loops - 1]
  if c.columns_grow then
    copies.keys, copies.values = take(scores, column, row), take(product, own[#own], own[#own - 2])
  end
  if c.rows_grow then copies.queries = take(scores, row, column) end
  return copies
end

-- The kernel that joins the parts, of so many threads a block at most: a thread has some neighbours of a row of the
-- result, and finds the row's maximum and sum by itself.
function chain.join_parts(sch, names, threads, lanes)
  local normalize, joins = end_of(sch, names[3] .. "_normalize"), {}
  local loops = {sch:get_loops(normalize)}
  local value = table.remove(loops)
  while sch:extent(value) % lanes > 0 do lanes = lanes // 2 end
  local groups, vector = sch:split(value, {msched.rest, lanes})
  local rows, several = #loops > 1 and sch:fuse(loops) or loops[1], math.max(1, threads // sch:extent(groups))
  while sch:extent(rows) % several > 0 do several = several - 1 end
  local blocks, row = sch:split(rows, {msched.rest, several})
  local thread = sch:fuse(row, groups)
  sch:bind(blocks, "blockIdx.x")
  sch:bind(thread, "threadIdx.x")
  for k = 3, 1, -1 do
    joins[k] = sch:get_sblock(names[k] .. "_join")
    sch:compute_at(joins[k], thread, {preserve_unit_loops = true})
    sch:set_scope(joins[k], 0, "local")
    local own = {sch:get_loops(joins[k])}
    sch:annotate(own[#own], "unroll_count", UNROLLED)
  end
  local own = {sch:get_loops(joins[3])}
  local part, values = own[#own], own[#own - 1]
  sch:reorder {part, values}
  sch:vectorize(vector)
  sch:vectorize(values)
  sch:decompose_reduction(joins[3], part)
end

-- No other rule schedules a block.
function chain.leave_alone(sch)
  for _, name in ipairs(sch:block_names()) do
    local block = sch:get_sblock(name)
    if not sch:is_root(block) and not sch:annotation(block, "schedule_rule") then
      sch:annotate(block, "schedule_rule", "None")
    end
  end
end

return chain
