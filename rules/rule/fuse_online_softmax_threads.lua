-- Fuses a softmax with the sum of products that reads it, and with what makes its scores (attention), on a GPU's
-- threads: what tensor cores do not compute, as products of float32. Opens fused schedules in place of the one it was,
-- a sketch for each tile; where none is to be had, that one.
--
-- A thread has some rows of its own, so that maxima, sums and exponentials pass between no threads: scores of a tile of
-- columns, and all sums of its rows, are in its registers. The rows of a block come to shared memory once, each a few
-- elements further than the last, so that threads read theirs without conflicts; tiles of columns, of both inputs, are
-- there for all threads, which read the same elements at the same time. The second product adds some columns of the
-- values at a time to the scaled sums. What is unrolled is what registers hold.
-- Source: Dao et al., "FlashAttention", 2022, algorithm 1.
--
-- Lengths that no tile divides grow to whole tiles: copies are padded, and rows that are none are not stored.
--
-- Few rows (decoding) keep few threads busy: then a thread has all rows of a sequence, and a part of the columns, of
-- which neighbours have one each in turn, so that a block copies whole vectors of neighbouring columns. A second kernel
-- joins the parts.
--
-- Parameters: tiles, each {rows, columns}: of a thread; registers: most of a thread for sums and scores; threads: most
-- of a block; least: fewest rows of a sequence; few: rows of all sequences, of which a GPU has more threads than these
-- need: the schedule as it was is opened too; growth: a share by which rows and columns grow more than they must;
-- split: {least, rows, each, threads, parts, columns, joining, lanes}: so many columns, and rows at most, are divided
-- into parts of so many at least, of so many choices, of such tiles; threads of a block, and of one that joins the
-- parts, elements of each;
-- chunk: columns of values that are added at a time; bytes: those that threads load at once; ahead: by how many
-- iterations copies run ahead, or nil.
local common, tiling = msched.load "rules.common", msched.load "rules.tiling"
local chain = msched.load "rules.softmax_chain"

local function last(list, n) return list[#list - (n or 0)] end

-- The compiler unrolls loops: as text their iterations would take it several times as long.
local function unroll(sch, ...)
  for _, l in ipairs {...} do if sch:extent(l) > 1 then sch:annotate(l, "unroll_count", sch:extent(l)) end end
end

-- The longest length up to `most` that divides an extent.
local function part_of(extent, most)
  for n = most, 2, -1 do if extent % n == 0 then return n end end
  return 1
end

-- Scores of the tile, for each part of the depth; elements of it that a thread loads at once are unrolled.
local function multiply_scores(sch, scores, depth, lanes)
  local loops = {sch:get_loops(scores)}
  local i, j = last(loops, 2), last(loops, 1)
  local k0, k1 = sch:split(last(loops), {msched.rest, part_of(depth, lanes)})
  sch:reorder {k0, i, j, k1}
  unroll(sch, i, j, k1)
  local init = {sch:get_loops(sch:decompose_reduction(scores, k0))}
  unroll(sch, last(init, 1), last(init))
end

-- The second product, some columns of the values at a time, which the sums take at once.
local function multiply_values(sch, product, carry, width, p)
  local loops, own, chunk = {sch:get_loops(product)}, {sch:get_loops(carry)}, part_of(width, p.chunk)
  local i, k = last(loops, 2), last(loops)
  local j0, j1 = sch:split(last(loops, 1), {msched.rest, chunk})
  sch:reorder {j0, k, i, j1}
  local to, within = sch:split(last(own), {msched.rest, chunk})
  sch:reorder {to, last(own, 1), within}
  unroll(sch, last(own, 1), within, k, i, j1)
  local init = {sch:get_loops(sch:decompose_reduction(product, k))}
  unroll(sch, last(init, 1), last(init))
  unroll(sch, sch:merge {j0, to})
end

-- Elements that a thread takes at once of all that a block reads and writes.
local function lanes_of(sch, block, p)
  local bytes = sch:writes(block)[1].bytes
  for _, r in ipairs(sch:reads(block)) do bytes = math.max(bytes, r.bytes) end
  return math.max(1, p.bytes // bytes)
end

local function fetch(sch, copy, p)
  local loops = {sch:get_loops(copy)}
  sch:fuse(last(loops, 1), last(loops))
  sch:annotate(copy, "meta_schedule.cooperative_fetch", lanes_of(sch, copy, p))
end

-- The chain that ends in the product, its softmax inlined; nil: it is none that this rule fuses.
local function find_chain(sch, product)
  local c = chain.find_products(sch, product, true)
  if not c then return nil end
  c.first, c.second = chain.read_along(sch, c.scores, c.row, c.column), chain.read_along(sch, c.scores, c.column, c.row)
  c.values = chain.read_along(sch, product, c.value, c.to)
  if not c.first or not c.second or not c.values then return nil end
  c.rows, c.columns = sch:extent(c.row), sch:extent(c.column)
  c.width, c.depth = sch:extent(c.value), sch:extent(c.depth)
  return c
end

local function fits(c, tile, p)
  return c.rows >= p.least and tile.rows * (c.width + tile.columns) <= p.registers
end

-- The parts of the fused block in the thread's registers, and their loops unrolled but for those of the products.
local function keep_in_registers(sch, parts, products)
  for _, part in ipairs(parts) do
    for w, written in ipairs(sch:writes(part)) do
      if written.scope ~= "local" then sch:set_scope(part, w - 1, "local") end
    end
    if not products[sch:block_name(part)] then unroll(sch, sch:get_loops(part)) end
  end
end

-- The division at the end, a few neighbours at once.
local function add_normalizer(sch, name, thread, p)
  local normalize = chain.divide_under(sch, name, thread)
  local loops = {sch:get_loops(normalize)}
  local lanes = part_of(sch:extent(last(loops)), lanes_of(sch, normalize, p))
  local some, vector = sch:split(last(loops), {msched.rest, lanes})
  unroll(sch, last(loops, 1), some)
  sch:vectorize(vector)
end

-- What a thread does in an iteration of the loop over tiles of columns: its sums and products are in registers, and
-- copies of what they read run ahead. names: of the scores, of the product, and of what carries it on.
local function schedule_inside(s, c, names, parts, lanes, copies, tiles, p)
  local scores, product, carry = table.unpack(names)
  keep_in_registers(s, parts, {[scores] = true, [product] = true, [carry] = true})
  multiply_scores(s, s:get_sblock(scores), c.depth, lanes)
  multiply_values(s, s:get_sblock(product), s:get_sblock(carry), c.width, p)
  for _, reduced in ipairs {c.maximum, c.sum} do
    local part = s:get_sblock(reduced)
    s:decompose_reduction(part, last {s:get_loops(part)})
  end
  for _, copy in ipairs(copies) do fetch(s, copy, p) end
  if p.ahead then tiling.run_ahead(s, tiles, p.ahead) end
end

-- A schedule with this tile for each thread; nil: it is not to be had.
local function fused(sch, product, tile, p)
  local s = sch:copy()
  local b = s:handle(product)
  local name, c = s:block_name(b), find_chain(s, b)
  if not c then return nil end
  local scores, multiple = s:block_name(c.scores), chain.multiple_of(c, tile, p.threads // 4, p.growth)
  c.rows_grow, c.columns_grow = multiple > 0 and c.rows % multiple > 0, c.columns % tile.columns > 0
  local keys = not c.columns_grow and s:cache_read(c.scores, c.second, "shared", {c.scores})
  local values = not c.columns_grow and s:cache_read(b, c.values, "shared", {b})
  local queries = not c.rows_grow and s:cache_read(c.scores, c.first, "shared", {c.scores})
  local done, outer = s:try("fuse_online_softmax", s:get_sblock(c.maximum), s:get_sblock(c.sum), b, tile.rows,
                            tile.columns, true, multiple)
  if not done or not s:has_block(name .. "_normalize") then return nil end
  local padded = chain.padded_copies(s, c, outer, s:get_sblock(scores), s:get_sblock(name), "shared")
  keys, values, queries = keys or padded.keys, values or padded.values, queries or padded.queries
  local parts, carry = {s:get_child_blocks(outer)}, name .. "_carry"
  local thread, columns = chain.bind_tiles(s, outer, "threadIdx.x", p.threads)
  for _, copy in ipairs {keys, values} do s:compute_at(copy, columns, {preserve_unit_loops = true}) end
  if s:child_count(columns) ~= 3 then return nil end
  s:compute_at(queries, thread, {preserve_unit_loops = true})
  local lanes = lanes_of(s, queries, p)
  s:storage_align(queries, 0, -2, 32, lanes)
  add_normalizer(s, name .. "_normalize", thread, p)
  schedule_inside(s, c, {scores, name, carry}, parts, lanes, {keys, values, queries}, columns, p)
  chain.leave_alone(s)
  return s
end

-- Into how many parts the columns may be divided, and whether they grow, by all of these or by none.
local function parts_of(c, columns, p)
  local list, grows = {}, c.columns % (columns * p.split.parts[1]) > 0
  for _, n in ipairs(p.split.parts) do
    local enough = n * math.max(columns, p.split.each) <= c.columns
    if enough and (c.columns % (columns * n) > 0) == grows then list[#list + 1] = n end
  end
  return list, grows
end

-- A schedule of parts, so many columns of a thread at a time; nil: it is not to be had.
local function fused_in_parts(sch, product, columns, p)
  local s = sch:copy()
  local b = s:handle(product)
  local name, c = s:block_name(b), find_chain(s, b)
  if not c or c.rows > p.split.rows or c.columns < p.split.least
      or c.rows * (c.width + columns) > p.registers or #parts_of(c, columns, p) == 0 then
    return nil
  end
  local scores, names = s:block_name(c.scores), {c.maximum, c.sum, name}
  local choices, grows = parts_of(c, columns, p)
  c.columns_grow, c.rows_grow = grows, false
  local number = common.sample_equal(s, choices)
  local keys = not grows and s:cache_read(c.scores, c.second, "shared", {c.scores})
  local values = not grows and s:cache_read(b, c.values, "shared", {b})
  local queries = s:cache_read(c.scores, c.first, "shared", {c.scores})
  local done, outer = s:try("fuse_online_softmax", s:get_sblock(c.maximum), s:get_sblock(c.sum), b, c.rows, columns,
                            true, c.rows, number)
  if not done or not s:has_block(name .. "_normalize") then return nil end
  local padded = chain.padded_copies(s, c, outer, s:get_sblock(scores), s:get_sblock(name), "shared")
  keys, values = keys or padded.keys, values or padded.values
  local parts, carry, loops = {s:get_child_blocks(outer)}, name .. "_carry", {s:get_loops(outer)}
  local tiles, part = table.remove(loops), table.remove(loops)
  local blocks, thread = s:split(part, {msched.rest, p.split.threads})
  loops[#loops + 1] = blocks
  s:bind(s:fuse(loops), "blockIdx.x")
  s:bind(thread, "threadIdx.x")
  for _, copy in ipairs {keys, values} do s:compute_at(copy, tiles, {preserve_unit_loops = true}) end
  if s:child_count(tiles) ~= 3 then return nil end
  s:compute_at(queries, thread, {preserve_unit_loops = true})
  local lanes = lanes_of(s, keys, p)
  for _, copy in ipairs {keys, values} do s:storage_align(copy, 0, -2, 32, lanes) end
  for _, n in ipairs(names) do
    s:reverse_compute_at(s:get_sblock(n .. "_parts"), thread, {preserve_unit_loops = true})
  end
  schedule_inside(s, c, {scores, name, carry}, parts, lanes, {keys, values, queries}, tiles, p)
  chain.join_parts(s, names, p.split.joining, p.split.lanes)
  chain.leave_alone(s)
  return s
end

-- Rows of all sequences.
local function rows_of(sch, product)
  local rows, shape = 1, sch:writes(product)[1].shape
  for d = 1, #shape - 1 do rows = rows * shape[d] end
  return rows
end

return msched.rule {
  name = "fuse_online_softmax_threads",
  at = "blocks",
  apply = function(sch, block, context, self)
    local results, p = {}, self.parameters
    if sch:is_root(block) or not sch:has_init(block) or #sch:writes(block) ~= 1 or #sch:producers(block) == 0
        or not common.is_nest(sch, block) or not chain.ends_in(sch, block) then
      return {sch}
    end
    local probe = sch:copy()
    local c = find_chain(probe, probe:handle(block))
    for _, tile in ipairs(c and chain.few_tiles(c, p, function(tile) return fits(c, tile, p) end) or {}) do
      results[#results + 1] = fused(sch, block, tile, p)
    end
    local whole = #results
    for _, columns in ipairs(p.split.columns) do results[#results + 1] = fused_in_parts(sch, block, columns, p) end
    if #results == whole and (whole == 0 or rows_of(sch, block) < p.few) then table.insert(results, 1, sch) end
    return results
  end,
}
