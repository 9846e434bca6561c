-- Fuses a softmax with the sum of products that reads it, and with what makes its scores, as attention has them: tiles
-- of rows go over tiles of columns, and what was summed before is scaled where a row's maximum grows. Nothing has the
-- size of rows times columns. Opens the schedule as it was, and fused ones: a sketch for each number of vectors of
-- rows.
--
-- Rows lie innermost, in vectors: maximum, sum, scales and exponentials of different rows are elements of vectors,
-- which nothing is reduced across. Both products are register tiles of these rows and some columns, of which one
-- element at a time is broadcast; what the scores read along rows is copied so that rows come last, once a tile of
-- rows. Rows in all run in parallel. Fewer rows than a vector holds, as a decoder's step has, stay as they are.
--
-- Where tiles do not divide rows or columns, a sketch more has these grow: what both products read is padded by zeros.
--
-- Where factors are bfloat16 and a lane adds pairs of products at once, both products read pairs: rows and values are
-- copied in pairs of what is summed, and exponentials are rounded to bfloat16 (the instruction that has them so is
-- marked unsafe). Source: Dao et al., "FlashAttention", 2022.
local common, nest = msched.load "rules.common", msched.load "rules.register_loops"
local chain = msched.load "rules.softmax_chain"

local SIDE = 4 -- columns that register tiles are made of
local PAIR = chain.PAIR

-- ---- Rows last -----------------------------------------------------------------------------------------------------

-- Names of dimensions with that of rows last, or, of pairs, in pairs of the depth.
local function rows_last(names, row, depth)
  if depth then return chain.in_pairs(names, depth, row) end
  return chain.names_and(nest.others(names, row), names[row])
end

-- Copies what the scores read along rows alone, with rows last, or, in pairs, with so much of the depth behind; gives
-- the copies. nil: the scores are no matrix.
local function copy_rows(sch, scores, pairs)
  local row, column, reduce = chain.matrix_loops(sch, scores)
  if not row or not reduce then return nil end
  local copies, list = {}, {}
  for i, r in ipairs(sch:reads(scores)) do
    local stride = sch:read_stride(scores, i - 1, row)
    local dimension = stride and stride > 1 and sch:read_stride(scores, i - 1, column) == 0
      and nest.dimension_of(r.shape, stride)
    local depth = pairs and dimension and nest.dimension_of(r.shape, sch:read_stride(scores, i - 1, reduce))
    if dimension and (dimension < #r.shape or depth) then list[#list + 1] = {i - 1, dimension, #r.shape, depth} end
  end
  for _, read in ipairs(list) do
    local index, dimension, rank, depth = table.unpack(read)
    copies[#copies + 1] = nest.laid_out(sch, scores, index, rank, function(names)
      return rows_last(names, dimension, depth)
    end)
  end
  return copies
end

-- ---- The fused block -----------------------------------------------------------------------------------------------

-- A product as register tiles: all rows of the tile in vectors, and so many of its other dimension; of what it sums,
-- pairs innermost, or not.
local function tile_product(sch, block, row, other, reduce, count, pairs)
  local outer, inner = sch:split(other, {msched.rest, count})
  local order, pair = {outer, reduce, inner, row}, nil
  if pairs then order[2], pair = sch:split(reduce, {msched.rest, PAIR}) end
  order[5] = pair
  sch:reorder(order)
  sch:unroll(inner)
  sch:vectorize(row)
  sch:annotate(block, "msched.register_tile", 1)
  sch:annotate(sch:decompose_reduction(block, order[2]), "msched.register_tile", 1)
end

local function divisors(n, list)
  local some = {}
  for _, d in ipairs(list) do if n % d == 0 then some[#some + 1] = d end end
  return #some > 0 and some or {1}
end

-- Columns of a tile: lengths that divide them, of which register tiles are parts; else all, and, where register tiles
-- divide these badly, half of them with a rest; some with a rest where all are too many.
local function column_tiles(columns, p)
  local list, most = {}, p.columns[#p.columns]
  for _, n in ipairs(p.columns) do if columns % n == 0 then list[#list + 1] = n end end
  if #list > 0 then return list end
  if columns <= most then
    local half = ((columns + 1) // 2 + 2 * SIDE - 1) // (2 * SIDE) * (2 * SIDE)
    return {columns, columns % SIDE > 0 and half < columns and half or nil}
  end
  for n = most, p.columns[1] // 2, -SIDE do
    if columns % n == 0 and #list < 2 then list[#list + 1] = n end
  end
  return #list > 0 and list or {p.columns[1]}
end

-- So many elements beside the vectors of rows: those that leave registers for operands, most of them busy.
local function counts(vectors, registers)
  local list = {}
  for _, n in ipairs {16, 12, 8, 6, 4, 2} do
    if n * vectors + vectors + 1 <= registers and n * vectors * 2 >= math.min(registers, 16) then
      list[#list + 1] = n
    end
  end
  return list
end

-- Puts the parts of the fused block in order; false: they are not as they are expected.
local function schedule_parts(sch, fused, name, counted, lanes, column_tile, pairs)
  local parts = {sch:get_child_blocks(fused)}
  local maximum, carry, weights, sum, sum_carry, product, product_carry = table.unpack(parts, #parts - 6)
  for i = 1, #parts - 7 do if not chain.matrix_loops(sch, parts[i]) then return false end end
  local row, value = chain.matrix_loops(sch, product)
  if not row or #{sch:get_loops(product)} ~= 3 then return false end
  for i = 1, #parts - 7 do chain.put_last(sch, parts[i], (chain.matrix_loops(sch, parts[i]))) end
  if pairs then sch:unsafe_set_dtype(weights, 0, "bfloat16") end
  for _, b in ipairs {weights, product, product_carry} do chain.put_last(sch, b, (sch:get_loops(b))) end
  if pairs then
    local read = chain.number_of_read(sch, product, sch:writes(weights)[1].buffer)
    local rank = #sch:reads(product)[read + 1].shape
    local function order(names) return chain.in_pairs(names, rank - 1, rank) end
    nest.laid_out(sch, product, read, rank, order, false, {product})
  end
  for i = 1, #parts - 7 do
    local loops, kinds = {sch:get_loops(parts[i])}, sch:loop_iter_kinds(parts[i])
    if sch:has_init(parts[i]) then
      local own, other, reduce
      for k, l in ipairs(loops) do
        if kinds[k] == "reduce" then
          reduce = l
        elseif sch:write_stride(parts[i], 0, l) == 1 then
          own = l
        else
          other = l
        end
      end
      tile_product(sch, parts[i], own, other, reduce, common.sample_equal(sch, divisors(column_tile, counted)), pairs)
    else
      chain.vectorize_rows(sch, parts[i], lanes)
    end
  end
  for _, b in ipairs {carry, weights, sum_carry, product_carry, sch:get_sblock(name .. "_start")} do
    chain.vectorize_rows(sch, b, lanes)
  end
  chain.reduce_rows(sch, maximum)
  chain.reduce_rows(sch, sum)
  local i, d, j = sch:get_loops(product)
  tile_product(sch, product, i, d, j, common.sample_equal(sch, divisors(sch:extent(value), counted)), pairs)
  return true
end

-- Whether both products are of bfloat16, and the CPU adds pairs of such to each lane at once: keys lie in such pairs.
local function has_pairs(sch, product, context)
  local s = sch:copy()
  local b = s:handle(product)
  local c = chain.find_products(s, b)
  if not c or nest.product_width(s, c.scores, context.target.dots) ~= PAIR then return false end
  local keys, values = chain.read_along(s, c.scores, c.column, c.row), chain.read_along(s, b, c.value, c.to)
  return keys and values and s:reads(b)[values + 1].type == "bfloat16" and s:extent(c.depth) % PAIR == 0
    and s:read_stride(c.scores, keys, c.depth) == 1
end

-- Copies the values in pairs of columns; gives the copy. nil: the dimensions are not at hand.
local function pair_values(sch, product)
  local c = chain.find_products(sch, product)
  local index = chain.read_along(sch, product, c.value, c.to)
  local along, own, rank = chain.dimensions(sch, product, index, c.along, c.value)
  return along and own and along ~= own
    and nest.laid_out(sch, product, index, rank, function(names) return chain.in_pairs(names, along, own) end)
end

-- Some rows of the copies in parallel, before all else.
local function schedule_values(sch, copy, padded, columns)
  local loops = {sch:get_loops(copy)}
  local outer = table.move(loops, 1, #loops - 2, 1, {})
  outer[#outer + 1] = sch:split(loops[#loops - 1], {msched.rest, columns})
  if padded then sch:compute_at(padded, outer[#outer], {preserve_unit_loops = true}) end
  sch:parallel(#outer > 1 and sch:fuse(outer) or outer[1])
  for _, b in ipairs {copy, padded} do sch:annotate(b, "schedule_rule", "None") end
end

-- Copies of what the scores read along rows, before the block is fused.
local function copy_scores(sch, maximum, pairs)
  local copies = {}
  for _, p in ipairs(sch:producers(sch:get_sblock(maximum))) do
    local scores = sch:get_sblock(p)
    for _, before in ipairs(not sch:has_init(scores) and sch:producers(scores) or {}) do
      if sch:has_init(sch:get_sblock(before)) then scores = sch:get_sblock(before) end
    end
    local made = sch:has_init(scores) and copy_rows(sch, scores, pairs)
    for _, copy in ipairs(made or {}) do copies[#copies + 1] = copy end
  end
  return copies
end

-- The rest of a fused schedule, whose copies stand where they are made; nil: it is not as it is expected.
local function finish(s, name, outer, context, vectors, lanes, column_tile, copies, pairs)
  local loops, sums = {s:get_loops(outer)}, s:reads(s:get_sblock(name .. "_normalize"))[1].buffer
  local counted = counts(vectors, context.target.vector_registers)
  if not schedule_parts(s, outer, name, counted, lanes, column_tile, pairs) then return nil end
  local around = loops[#loops - 1]
  for _, copy in ipairs(copies) do
    if not s:can_compute_at(copy, around) then return nil end
    s:compute_at(copy, around, {preserve_unit_loops = true})
  end
  table.remove(loops)
  local rows = #loops > 1 and s:fuse(loops) or loops[1]
  s:parallel(rows)
  if not chain.schedule_normalizer(s, name, sums, rows, lanes) then return nil end
  return s
end

-- A schedule with so many vectors of rows, and columns a tile; nil: it is not to be had.
local function fused(sch, product, context, vectors, column_tile, pairs)
  local s = sch:copy()
  local b = s:handle(product)
  local lanes = context.target.vector_bits // (8 * s:writes(b)[1].bytes)
  if not chain.inline_softmax(s, b) then return nil end
  local values = pairs and pair_values(s, b)
  if pairs and not values then return nil end
  local maximum, sum = chain.find_parts(s, b)
  if not maximum then return nil end
  local name, copies = s:block_name(b), copy_scores(s, maximum, pairs)
  local done, outer = s:try("fuse_online_softmax", s:get_sblock(maximum), s:get_sblock(sum), s:handle(b),
                            vectors * lanes, column_tile, true)
  if not done or not s:has_block(name .. "_normalize") then return nil end
  if not finish(s, name, outer, context, vectors, lanes, column_tile, copies, pairs) then return nil end
  if values then schedule_values(s, values, nil, column_tile) end
  s:annotate(outer, "schedule_rule", "None")
  return s
end

-- ---- What grows ----------------------------------------------------------------------------------------------------

-- A copy of a padded one, of which the dimensions of two loops are put in another order.
local function copy_padded(sch, block, index, padded, one, other, order)
  local a, b, rank = chain.dimensions(sch, block, index, one, other)
  local copy, names = sch:cache_write(padded, 0, "global"), {}
  for d = 1, rank do names[d] = "i" .. d end
  local list = table.concat(names, ", ")
  sch:transform_layout(copy, string.format("lambda %s: (%s)", list, table.concat(order(names, a, b), ", ")), 0, 1)
  return copy
end

-- The copies that the fused block reads: made of padded ones where rows or columns grow. nil: they are not at hand.
local function take_padded(s, scores, product, outer, c, pairs)
  local row, column, depth = chain.matrix_loops(s, scores)
  local to, value, along = chain.matrix_loops(s, product)
  if not row or not to then return nil end
  local copies = {}
  if c.columns_grow then
    local read = chain.read_along(s, product, value, to)
    copies.keys = chain.take_copy(s, scores, chain.read_along(s, scores, column, row), outer)
    copies.values = chain.take_copy(s, product, read, outer)
    if pairs then
      copies.paired = copy_padded(s, product, read, copies.values, along, value, chain.in_pairs)
    end
  end
  if c.rows_grow then
    local read = chain.read_along(s, scores, row, column)
    local padded = chain.take_copy(s, scores, read, outer)
    copies.rows = {copy_padded(s, scores, read, padded, row, depth, function(names, i, k)
      return rows_last(names, i, pairs and k)
    end), padded}
  end
  return copies
end

-- A schedule in which rows and columns grow to whole tiles; nil: it is not to be had.
local function grown(sch, product, context, vectors, column_tile, pairs)
  local s = sch:copy()
  local b = s:handle(product)
  local lanes, c = context.target.vector_bits // (8 * s:writes(b)[1].bytes), chain.find_products(s, b)
  if not c or not chain.read_along(s, c.scores, c.row, c.column) then return nil end
  local name, scores, maximum, sum = s:block_name(b), s:block_name(c.scores), c.maximum, c.sum
  c.rows_grow, c.columns_grow = s:extent(c.row) % (vectors * lanes) ~= 0, s:extent(c.column) % column_tile ~= 0
  local values = pairs and not c.columns_grow and pair_values(s, b)
  local before = c.rows_grow and {} or copy_scores(s, maximum, pairs)
  local done, outer = s:try("fuse_online_softmax", s:get_sblock(maximum), s:get_sblock(sum), b, vectors * lanes,
                            column_tile, true, vectors * lanes)
  if not done or not s:has_block(name .. "_normalize") then return nil end
  local copies = take_padded(s, s:get_sblock(scores), s:get_sblock(name), outer, c, pairs)
  if not copies then return nil end
  for _, copy in ipairs(copies.rows or before) do s:annotate(copy, "schedule_rule", "None") end
  if not finish(s, name, outer, context, vectors, lanes, column_tile, copies.rows or before, pairs) then return nil end
  if values then schedule_values(s, values, nil, column_tile) end
  if copies.keys then chain.schedule_copy(s, copies.keys, column_tile) end
  if copies.paired then schedule_values(s, copies.paired, copies.values, column_tile)
  elseif copies.values then chain.schedule_copy(s, copies.values, column_tile) end
  s:annotate(outer, "schedule_rule", "None")
  return s
end

-- Columns of a tile where rows or columns grow: those that divide them, or about equal parts of them, so many at most.
local function grown_tiles(columns, p)
  local list, most, least = {}, p.columns[#p.columns], p.columns[1] // 2
  for _, n in ipairs(p.grown and column_tiles(columns, p) or {}) do
    if columns % n == 0 and n % (2 * SIDE) == 0 then list[#list + 1] = n end
  end
  for parts = (columns + most - 1) // most, p.grown and columns // least or 0 do
    local tile = chain.up_to((columns + parts - 1) // parts, 2 * SIDE)
    if #list >= p.grown then break end
    if tile * parts <= (1 + p.growth) * columns then list[#list + 1] = tile end
  end
  if p.grown and #list == 0 and columns <= most then list[1] = chain.up_to(columns, SIDE) end
  return list
end

return msched.rule {
  name = "fuse_online_softmax",
  at = "blocks",
  apply = function(sch, block, context, self)
    local p, results = self.parameters, {sch}
    if sch:is_root(block) or not sch:has_init(block) or #sch:writes(block) ~= 1 or #sch:producers(block) == 0 then
      return results
    end
    if not common.is_nest(sch, block) then return results end
    if not chain.ends_in(sch, block) then return results end
    local rows, columns = chain.extents(sch, block)
    local lanes = context.target.vector_bits // (8 * sch:writes(block)[1].bytes)
    if not columns or rows < lanes then return results end
    local pairs = has_pairs(sch, block, context)
    for _, vectors in ipairs(p.vectors) do
      if vectors == 1 or vectors * lanes <= rows and #counts(vectors, context.target.vector_registers) > 0 then
        for _, column_tile in ipairs(column_tiles(columns, p)) do
          local even = column_tile % PAIR == 0 and columns % column_tile == 0
          results[#results + 1] = pairs and even and fused(sch, block, context, vectors, column_tile, true)
            or fused(sch, block, context, vectors, column_tile)
        end
        for _, column_tile in ipairs(grown_tiles(columns, p)) do
          if rows % (vectors * lanes) > 0 or columns % column_tile > 0 then
            results[#results + 1] = grown(sch, block, context, vectors, column_tile, pairs)
          end
        end
      end
    end
    return results
  end,
}
