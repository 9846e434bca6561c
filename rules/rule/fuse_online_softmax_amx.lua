-- Attention of bfloat16 on CPUs that multiply tiles (AMX): a softmax fused with the product that reads it and with its
-- scores, both products by tiles. Opens the schedule as it was, and fused ones: a sketch for each number of vectors of
-- rows and each number of columns.
--
-- Rows lie innermost, as in fuse_online_softmax.lua: maximum, sum, scales and exponentials of different rows are
-- elements of vectors. The scores of a tile are keys, as they lie, by queries, which are packed in pairs of the
-- depth once a tile of rows. The exponentials are rounded to bfloat16 (the instruction that has them so is marked
-- unsafe), and packed in pairs of columns. They are the right operand of the second product, whose left operand is the
-- values, transposed tile by tile ahead of it: first in pairs of columns, then pair by pair.
-- Source: Dao et al., "FlashAttention", 2022; Intel, "Optimization Reference Manual", chapter "Intel AMX".
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"
local chain = msched.load "rules.softmax_chain"

local SIDE, PAIR = 16, chain.PAIR
local DEPTH = SIDE * PAIR -- of a product of two tiles
local PRODUCT, ZERO = "amx_16x16x32_bf16_columns_first", "amx_zero_f32"
local BFLOATS, HELD = 2, 4 -- in what the target says of its tiles; accumulators that registers must hold

-- The dimensions of a read that two loops run over, and how many it has.
local function dimensions(sch, block, index, one, other)
  local shape = sch:reads(block)[index + 1].shape
  return nest.dimension_of(shape, sch:read_stride(block, index, one)),
         nest.dimension_of(shape, sch:read_stride(block, index, other)), #shape
end

-- A copy of a right operand for one block, tile by tile, pairs of its depth side by side.
local function pack(sch, block, index, column, depth, rank)
  local copy, names = sch:cache_read(block, index, "global", {block}), {}
  for d = 1, rank do names[d] = "i" .. d end
  local c, k = names[column], names[depth]
  local order = chain.names_and(nest.others(names, column, depth), c .. " // " .. SIDE, k .. " // " .. PAIR,
                                c .. " % " .. SIDE, k .. " % " .. PAIR)
  sch:transform_layout(copy, string.format("lambda %s: (%s)", table.concat(names, ", "), table.concat(order, ", ")), 0,
                       1)
  return copy
end

-- Copies of the values: in pairs of columns, then transposed, tile by tile, pairs together.
local function transpose_values(sch, product, index, value, along)
  local column, own, rank = dimensions(sch, product, index, along, value)
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

-- Tiles of columns in parallel, each through its pairs.
local function schedule_values(sch, paired, turned)
  local loops = {sch:get_loops(turned)}
  local tile = sch:split(loops[#loops - 2], {msched.rest, SIDE})
  local outer = table.move(loops, 1, #loops - 3, 1, {})
  outer[#outer + 1] = tile
  sch:compute_at(paired, tile, {preserve_unit_loops = true})
  loops = {sch:get_loops(turned)}
  local own, row = sch:split(loops[#loops - 1], {msched.rest, SIDE})
  sch:reorder(own, row, loops[#loops - 2], loops[#loops])
  sch:parallel(#outer > 1 and sch:fuse(outer) or outer[1])
  for _, b in ipairs {paired, turned} do sch:annotate(b, "schedule_rule", "None") end
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

-- Tiles of accumulators along a loop.
local function two_or_one(tiles) return tiles % 2 == 0 and 2 or 1 end

-- The chain that ends in the product, its softmax inlined; nil: its products are none of whole tiles.
local function find_chain(sch, product)
  local c = chain.find_products(sch, product)
  if not c then return nil end
  local scores, row, column, depth = c.scores, c.row, c.column, c.depth
  local to, value, along = c.to, c.value, c.along
  local queries, keys = chain.read_along(sch, scores, row, column), chain.read_along(sch, scores, column, row)
  local values = chain.read_along(sch, product, value, to)
  if not queries or not keys or not values or queries > keys then return nil end
  for _, read in ipairs {{scores, queries}, {scores, keys}, {product, values}} do
    if sch:reads(read[1])[read[2] + 1].type ~= "bfloat16" then return nil end
  end
  if sch:read_stride(scores, keys, depth) ~= 1 or sch:extent(depth) % DEPTH ~= 0
      or sch:extent(value) % SIDE ~= 0 then
    return nil
  end
  local q, k, rank = dimensions(sch, scores, queries, row, depth)
  if not q or not k or q == k or not dimensions(sch, product, values, along, value) then return nil end
  return {maximum = c.maximum, sum = c.sum, scores = scores, queries = queries, values = values, value = value,
          along = along, row = q, depth = k, rank = rank}
end

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
      multiply(sch, parts[i], column, row, depth,
               {two_or_one(sch:extent(column) // SIDE), two_or_one(sch:extent(row) // SIDE)})
    else
      chain.vectorize_rows(sch, parts[i], lanes)
    end
  end
  local i, d, j = sch:get_loops(product)
  multiply(sch, product, d, i, j, {two_or_one(sch:extent(d) // SIDE), two_or_one(sch:extent(i) // SIDE)})
  for _, b in ipairs {carry, weights, sum_carry, product_carry, sch:get_sblock(name .. "_start")} do
    chain.vectorize_rows(sch, b, lanes)
  end
  chain.reduce_rows(sch, maximum)
  chain.reduce_rows(sch, sum)
  return true
end

-- A schedule with so many vectors of rows, and columns a tile; nil: it is not to be had.
local function fused(sch, product, vectors, columns)
  local s = sch:copy()
  local b = s:handle(product)
  local name, c = s:block_name(b), find_chain(s, b)
  if not c then return nil end
  local queries = pack(s, c.scores, c.queries, c.row, c.depth, c.rank)
  local paired, turned = transpose_values(s, b, c.values, c.value, c.along)
  local done, outer =
    s:try("fuse_online_softmax", s:get_sblock(c.maximum), s:get_sblock(c.sum), b, vectors * SIDE, columns, true)
  if not done or not s:has_block(name .. "_normalize") then return nil end
  local parts, loops = {s:get_child_blocks(outer)}, {s:get_loops(outer)}
  local around = loops[#loops - 1]
  if not s:can_compute_at(queries, around) then return nil end
  s:compute_at(queries, around, {preserve_unit_loops = true})
  table.remove(loops)
  local sums = s:reads(s:get_sblock(name .. "_normalize"))
  local rows = #loops > 1 and s:fuse(loops) or loops[1]
  s:parallel(rows)
  if not schedule_parts(s, name, parts, SIDE) then return nil end
  if not chain.schedule_normalizer(s, name, sums[1].buffer, rows, SIDE) then return nil end
  schedule_values(s, paired, turned)
  for _, block in ipairs {outer, queries} do s:annotate(block, "schedule_rule", "None") end
  return s
end

return msched.rule {
  name = "fuse_online_softmax_amx",
  apply = function(sch, block, context, self)
    local p, results = self.parameters, {sch}
    local target = context.target
    if (target.tiles or 0) & BFLOATS == 0 or target.tile_accumulators < HELD or sch:is_root(block)
        or not sch:has_init(block) or #sch:writes(block) ~= 1 or #sch:producers(block) == 0
        or not common.is_nest(sch, block) or not chain.ends_in(sch, block) then
      return results
    end
    local rows, columns = chain.extents(sch, block)
    for _, vectors in ipairs(p.vectors) do
      for _, tile in ipairs(p.columns) do
        if columns and rows % (vectors * SIDE) == 0 and columns % tile == 0 and #results < p.sketches + 1 then
          results[#results + 1] = fused(sch, block, vectors, tile)
        end
      end
    end
    return results
  end,
}
