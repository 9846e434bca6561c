-- Attention of bfloat16 on CPUs that multiply tiles (AMX): a softmax fused with the product that reads it and with its
-- scores, both products by tiles. Opens the schedule as it was, and fused ones: a sketch for each number of vectors of
-- rows and each number of columns.
--
-- Rows lie innermost, as in fuse_online_softmax.lua: maximum, sum, scales and exponentials of different rows are
-- elements of vectors. The scores of a tile are keys, as they lie, by queries, which are packed in pairs of the
-- depth once a tile of rows. The exponentials are rounded to bfloat16 (the instruction that has them so is marked
-- unsafe), and packed in pairs of columns. They are the right operand of the second product, whose left operand is the
-- values, transposed tile by tile ahead of it: first in pairs of columns, then pair by pair.
--
-- Rows, columns and widths that tiles do not divide grow: queries and values are padded by zeros tile by tile before
-- they are packed, keys in a copy ahead; columns that are none have no weight, and what is more of rows and widths is
-- not written. Source: Dao et al., "FlashAttention", 2022; Intel, "Optimization Reference Manual", chapter "Intel AMX".
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"
local chain = msched.load "rules.softmax_chain"

local SIDE, PAIR = 16, chain.PAIR
local DEPTH = SIDE * PAIR -- of a product of two tiles
local PRODUCT, ZERO = "amx_16x16x32_bf16_columns_first", "amx_zero_f32"
local SHAPES = {{2, 2}, {1, 4}, {4, 1}, {3, 1}, {1, 3}, {2, 1}, {1, 2}, {1, 1}}
local BFLOATS, HELD = 2, 4 -- in what the target says of its tiles; accumulators that registers must hold

-- The layout of a right operand: tile by tile, pairs of its depth side by side.
local function packed_map(column, depth, rank)
  local names = {}
  for d = 1, rank do names[d] = "i" .. d end
  local c, k = names[column], names[depth]
  local order = chain.names_and(nest.others(names, column, depth), c .. " // " .. SIDE, k .. " // " .. PAIR,
                                c .. " % " .. SIDE, k .. " % " .. PAIR)
  return string.format("lambda %s: (%s)", table.concat(names, ", "), table.concat(order, ", "))
end

-- A copy of a right operand for one block, laid out so.
local function pack(sch, block, index, column, depth, rank)
  local copy = sch:cache_read(block, index, "global", {block})
  sch:transform_layout(copy, packed_map(column, depth, rank), 0, 1)
  return copy
end

-- Copies of the values: in pairs of columns, then transposed, tile by tile, pairs together.
local function transpose_values(sch, product, index, value, along)
  local column, own, rank = chain.dimensions(sch, product, index, along, value)
  local paired =
    nest.laid_out(sch, product, index, rank, function(names) return chain.in_pairs(names, column, own) end)
  local read = chain.number_of_read(sch, product, sch:writes(paired)[1].buffer)
  local turned = nest.laid_out(sch, product, read, rank + 1, function(names)
    local j, d, p = names[rank - 1], names[rank], names[rank + 1]
    return chain.names_and(nest.others(names, rank - 1, rank, rank + 1), d .. " // " .. SIDE, j .. " // " .. SIDE,
                           d .. " % " .. SIDE, string.format("%s %% %d * %d + %s", j, SIDE, PAIR, p))
  end)
  return paired, turned
end

-- Tiles of columns in parallel, each through its pairs, and a padded copy where there is one.
local function schedule_values(sch, paired, turned, padded)
  local loops = {sch:get_loops(turned)}
  local tile = sch:split(loops[#loops - 2], {msched.rest, SIDE})
  local outer = table.move(loops, 1, #loops - 3, 1, {})
  outer[#outer + 1] = tile
  sch:compute_at(paired, tile, {preserve_unit_loops = true})
  if padded then sch:compute_at(padded, tile, {preserve_unit_loops = true}) end
  loops = {sch:get_loops(turned)}
  local own, row = sch:split(loops[#loops - 1], {msched.rest, SIDE})
  sch:reorder(own, row, loops[#loops - 2], loops[#loops])
  sch:parallel(#outer > 1 and sch:fuse(outer) or outer[1])
  for _, b in ipairs {paired, turned, padded} do sch:annotate(b, "schedule_rule", "None") end
end

-- The block of a product in tiles: its loops of rows of the result, of columns, which the block iterates over first,
-- and the one that reduces; accumulators, of rows and of columns.
local function multiply(sch, block, rows, columns, reduce, by)
  local row_tiles, tiles_down, row = sch:split(rows, {msched.rest, by[1], SIDE})
  local column_tiles, tiles_across, column = sch:split(columns, {msched.rest, by[2], SIDE})
  local groups, group = sch:split(reduce, {msched.rest, DEPTH})
  sch:reorder(column_tiles, row_tiles, groups, tiles_down, tiles_across, column, row, group)
  sch:unroll(tiles_down)
  sch:unroll(tiles_across)
  local tile = sch:blockize(column)
  sch:transform_block_layout(sch:get_child_blocks(tile),
                             string.format("lambda j, i, k: (i, j, k // %d, k %% %d)", PAIR, PAIR))
  local init = sch:decompose_reduction(tile, groups)
  sch:transform_block_layout(sch:get_child_blocks(init), "lambda j, i: (i, j)")
  local own = {sch:get_loops(init)}
  sch:unroll(own[#own - 1])
  sch:unroll(own[#own])
  sch:tensorize(init, ZERO)
  sch:annotate(tile, "meta_schedule.auto_tensorize", PRODUCT)
end

-- Tiles of accumulators, of rows and of columns, of which there are so many: four hide what an addition to one takes.
local function accumulators(rows, columns)
  for _, by in ipairs(SHAPES) do if rows % by[1] == 0 and columns % by[2] == 0 then return by end end
end

-- The chain that ends in the product, its softmax inlined; nil: its products are none of bfloat16. rows, columns: how
-- many there are; depth_grows, value_grows: tiles do not divide these. innermost: as of matrix_loops.
local function find_chain(sch, product, innermost)
  local c = chain.find_products(sch, product, innermost)
  if not c then return nil end
  local scores, row, column, depth = c.scores, c.row, c.column, c.depth
  local to, value, along = c.to, c.value, c.along
  local queries, keys = chain.read_along(sch, scores, row, column), chain.read_along(sch, scores, column, row)
  local values = chain.read_along(sch, product, value, to)
  if not queries or not keys or not values or queries > keys then return nil end
  for _, read in ipairs {{scores, queries}, {scores, keys}, {product, values}} do
    if sch:reads(read[1])[read[2] + 1].type ~= "bfloat16" then return nil end
  end
  if sch:read_stride(scores, keys, depth) ~= 1 then return nil end
  local q, k = chain.dimensions(sch, scores, queries, row, depth)
  if not q or not k or q == k or not chain.dimensions(sch, product, values, along, value) then return nil end
  return {maximum = c.maximum, sum = c.sum, scores = scores, queries = queries, keys = keys, values = values,
          rows = sch:extent(row), columns = sch:extent(column),
          depth_grows = sch:extent(depth) % DEPTH ~= 0, value_grows = sch:extent(value) % SIDE ~= 0}
end

-- ---- What tiles do not divide --------------------------------------------------------------------------------------

-- The number of the block's iteration that reduces, or of the one that its result is contiguous along.
local function iteration_of(sch, block, reduces)
  for i, l in ipairs {sch:get_loops(block)} do
    local kind = sch:loop_iter_kind(l)
    if reduces and kind == "reduce" or not reduces and kind == "spatial" and sch:write_stride(block, 0, l) == 1
        and sch:extent(l) > 1 then
      return i
    end
  end
end

-- Has an iteration grow to a whole number of `multiple`: what is read along it is padded by zeros. What is read at no
-- iterations alone, as by heads that share keys, is copied first. false: it does not grow.
local function grow(sch, block, number, multiple, reads)
  local multiples = {}
  for i = 1, #sch:iter_extents(block) do multiples[i] = i == number and multiple or 1 end
  if sch:try("pad_einsum", block, multiples) then return true end
  for _, index in ipairs(reads) do if not sch:try("reindex", block, index, 0) then return false end end
  return (sch:try("pad_einsum", block, multiples))
end

-- The depth of the scores, and the width of the values, as tiles need them; false: they do not grow.
local function grow_widths(sch, product, c)
  if c.depth_grows and not grow(sch, c.scores, iteration_of(sch, c.scores, true), DEPTH, {c.queries, c.keys}) then
    return false
  end
  if not c.value_grows then return true end
  if not grow(sch, product, iteration_of(sch, product, false), SIDE, {c.values}) then return false end
  local cut = sch:get_consumers(product)
  if sch:can_inline(cut) then sch:compute_inline(cut) end
  return true
end

-- A copy of the padded copy of a right operand, laid out as `pack` does.
local function pack_copy(sch, block, index, padded, one, depth)
  local column, k, rank = chain.dimensions(sch, block, index, one, depth)
  local copy = sch:cache_write(padded, 0, "global")
  sch:transform_layout(copy, packed_map(column, k, rank), 0, 1)
  return copy
end

-- Copies of the padded copy of the values as `transpose_values` has them: in pairs of columns, and transposed.
local function transpose_copy(sch, block, index, padded, value, along)
  local j, d, rank = chain.dimensions(sch, block, index, along, value)
  local paired = sch:cache_write(padded, 0, "global")
  local turned, names = sch:cache_write(paired, 0, "global"), {}
  for n = 1, rank do names[n] = "i" .. n end
  local list = table.concat(names, ", ")
  local function map(order) return string.format("lambda %s: (%s)", list, table.concat(order, ", ")) end
  sch:transform_layout(turned, map(chain.names_and(nest.others(names, j, d), names[d] .. " // " .. SIDE,
    names[j] .. " // " .. DEPTH, names[d] .. " % " .. SIDE, names[j] .. " % " .. DEPTH)), 0, 1)
  sch:transform_layout(paired, map(chain.in_pairs(names, j, d)), 0, 1)
  sch:transform_block_layout(turned, map(chain.in_pairs(names, j, d)))
  return paired, turned
end

-- ---- Together ------------------------------------------------------------------------------------------------------

-- Puts the parts of the fused block in order; false: they are not as they are expected.
local function schedule_parts(sch, name, parts, lanes)
  local maximum, carry, weights, sum, sum_carry, product, product_carry = table.unpack(parts, #parts - 6)
  for i = 1, #parts - 7 do if not chain.matrix_loops(sch, parts[i]) then return false end end
  if not chain.matrix_loops(sch, product) or #{sch:get_loops(product)} ~= 3 then return false end
  for i = 1, #parts - 7 do chain.put_last(sch, parts[i], (chain.matrix_loops(sch, parts[i]))) end
  sch:unsafe_set_dtype(weights, 0, "bfloat16")
  for _, b in ipairs {weights, product, product_carry} do chain.put_last(sch, b, (sch:get_loops(b))) end
  local read = chain.number_of_read(sch, product, sch:writes(weights)[1].buffer)
  local rank = read and #sch:reads(product)[read + 1].shape
  if read ~= 0 then return false end
  pack(sch, product, read, rank, rank - 1, rank)
  for i = 1, #parts - 7 do
    if sch:has_init(parts[i]) then
      local row, column, depth = sch:get_loops(parts[i])
      local by = accumulators(sch:extent(column) // SIDE, sch:extent(row) // SIDE)
      multiply(sch, parts[i], column, row, depth, by)
    else
      chain.vectorize_rows(sch, parts[i], lanes)
    end
  end
  local i, d, j = sch:get_loops(product)
  multiply(sch, product, d, i, j, accumulators(sch:extent(d) // SIDE, sch:extent(i) // SIDE))
  for _, b in ipairs {carry, weights, sum_carry, product_carry, sch:get_sblock(name .. "_start")} do
    chain.vectorize_rows(sch, b, lanes)
  end
  chain.reduce_rows(sch, maximum)
  chain.reduce_rows(sch, sum)
  return true
end

-- Copies of what does not grow, before the block is fused.
local function copies_before(sch, product, c, innermost)
  local copies = {}
  if not c.rows_grow and not c.depth_grows then
    local row, _, depth = chain.matrix_loops(sch, c.scores, innermost)
    copies.queries = pack(sch, c.scores, c.queries, chain.dimensions(sch, c.scores, c.queries, row, depth))
  end
  if not c.columns_grow and not c.value_grows then
    local _, value, along = chain.matrix_loops(sch, product, innermost)
    copies.paired, copies.turned = transpose_values(sch, product, c.values, value, along)
  end
  return copies
end

-- And of the padded copies of what grows, once it is; false: the products' loops are not as they are expected.
local function copies_behind(sch, scores, product, outer, c, copies)
  local row, column, depth = chain.matrix_loops(sch, scores)
  local to, value, along = chain.matrix_loops(sch, product)
  if not row or not to then return false end
  if c.columns_grow or c.depth_grows then
    copies.keys = chain.take_copy(sch, scores, chain.read_along(sch, scores, column, row), outer)
  end
  if not copies.queries then
    local read = chain.read_along(sch, scores, row, column)
    copies.padded_queries = chain.take_copy(sch, scores, read, outer)
    copies.queries = pack_copy(sch, scores, read, copies.padded_queries, row, depth)
  end
  if not copies.turned then
    local read = chain.read_along(sch, product, value, to)
    copies.padded_values = chain.take_copy(sch, product, read, outer)
    copies.paired, copies.turned = transpose_copy(sch, product, read, copies.padded_values, value, along)
  end
  return true
end

-- A schedule with so many vectors of rows, and columns a tile; nil: it is not to be had. innermost: as of find_chain.
local function fused(sch, product, vectors, columns, innermost)
  local s = sch:copy()
  local b = s:handle(product)
  local name, c = s:block_name(b), find_chain(s, b, innermost)
  local scores = s:block_name(c.scores)
  c.rows_grow, c.columns_grow = c.rows % (vectors * SIDE) ~= 0, c.columns % columns ~= 0
  if not grow_widths(s, b, c) then return nil end
  local copies = copies_before(s, b, c, innermost)
  local done, outer = s:try("fuse_online_softmax", s:get_sblock(c.maximum), s:get_sblock(c.sum), b, vectors * SIDE,
                            columns, true, (c.rows_grow or c.columns_grow) and vectors * SIDE or nil)
  if not done or not s:has_block(name .. "_normalize") then return nil end
  local parts, loops = {s:get_child_blocks(outer)}, {s:get_loops(outer)}
  if not copies_behind(s, s:get_sblock(scores), s:get_sblock(name), outer, c, copies) then return nil end
  local around = loops[#loops - 1]
  if not s:can_compute_at(copies.queries, around) then return nil end
  for _, copy in ipairs {copies.queries, copies.padded_queries} do
    s:compute_at(copy, around, {preserve_unit_loops = true})
  end
  table.remove(loops)
  local sums = s:reads(s:get_sblock(name .. "_normalize"))
  local rows = #loops > 1 and s:fuse(loops) or loops[1]
  s:parallel(rows)
  if not schedule_parts(s, name, parts, SIDE) then return nil end
  if not chain.schedule_normalizer(s, name, sums[1].buffer, rows, SIDE) then return nil end
  schedule_values(s, copies.paired, copies.turned, copies.padded_values)
  if copies.keys then chain.schedule_copy(s, copies.keys, columns) end
  for _, copy in ipairs {outer, copies.queries, copies.padded_queries} do s:annotate(copy, "schedule_rule", "None") end
  return s
end

-- Tiles {vectors of rows, columns} that make little more of rows and columns than the best of them, those of the most
-- rows first, and of these what nothing grows for.
local function tiles_of(rows, columns, p)
  local list, least = {}, math.huge
  for _, vectors in ipairs(p.vectors) do
    for whole = 1, 0, -1 do
      for _, tile in ipairs(p.columns) do
        local made = chain.up_to(rows, vectors * SIDE) * chain.up_to(columns, tile)
        least = math.min(least, made)
        if (made == rows * columns) == (whole == 1) then list[#list + 1] = {vectors, tile, made} end
      end
    end
  end
  local few = {}
  for _, tile in ipairs(list) do if tile[3] <= (1 + p.growth) * least then few[#few + 1] = tile end end
  return few
end

local function has_tiles(target)
  return (target.tiles or 0) & BFLOATS ~= 0 and target.tile_accumulators >= HELD
end

return msched.rule {
  name = "fuse_online_softmax_amx",
  at = "blocks",
  wanted = function(_, context) return has_tiles(context.target) end,
  apply = function(sch, block, context, self)
    local p, results = self.parameters, {sch}
    if not has_tiles(context.target) or sch:is_root(block) or not sch:has_init(block) or #sch:writes(block) ~= 1
        or #sch:producers(block) == 0 or not common.is_nest(sch, block) or not chain.ends_in(sch, block) then
      return results
    end
    local probe, innermost = sch:copy(), false
    local c = find_chain(probe, probe:handle(block), false)
    if not c or c.rows == 1 then c, innermost = find_chain(probe, probe:handle(block), true), true end
    for _, tile in ipairs(c and tiles_of(c.rows, c.columns, p) or {}) do
      if #results > p.sketches then break end
      results[#results + 1] = fused(sch, block, tile[1], tile[2], innermost)
    end
    return results
  end,
}
