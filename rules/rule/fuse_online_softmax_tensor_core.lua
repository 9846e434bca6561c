-- Fuses a softmax with the sum of products that reads it, and with what makes its scores (attention), on tensor cores:
-- one kernel, of which nothing has the size of rows times columns. Opens fused schedules in place of the one it was, a
-- sketch for each form of products and tile; where none is to be had, that one.
--
-- A warp has a tile of rows, a block of threads some warps side by side. Tiles of columns, of both inputs, come to
-- shared memory by asynchronous copies, an iteration ahead. Scores are accumulators; what is done with them element by
-- element, the maximum and the sum of a row among it, is each lane's work in registers (tir/lower/gpu/rows.c). The
-- exponentials are rounded to the type of the values (the trace is therefore marked unsafe), and are then operand a of
-- the second product as they lie in registers. Sixteen columns of it at a time are added to the scaled accumulators.
--
-- Warp groups (wgmma) multiply all columns of a tile at once. The first product reads both inputs from shared memory,
-- the second the exponentials from registers. Tiles of columns come by TMA, which a producer warp group issues, or all
-- threads copy; how far they run ahead is drawn, and held against the block's shared memory. Of floats of 8 bits they
-- read values by columns alone, and sixteen keys in the order in which registers hold their exponentials: a kernel
-- ahead writes values so.
-- Source: Dao, "FlashAttention-2", 2023; Shah et al., "FlashAttention-3", NeurIPS 2024, section 3.1.
--
-- Parameters: forms, each {tiles, groups, warps, registers, stages}: tiles, each {rows, columns} of a warp, or of a
-- warp group; groups, each {inputs, a, c, ...}: the type of the factors, scopes of fragments, and tensor intrinsics:
-- load_a, load_b, load_b_by_columns, sync, sync_by_columns, fill of fragments, and scope b; or, where `warps` says how
-- many multiply at once, depth and bytes, of a product and of a factor, and width(columns), which gives fill,
-- sync_by_columns and sync_registers of so many columns, or nil; order: of groups that read values by columns, where
-- key x stands in one, a text; warps: most of a block, or warp groups; least: fewest rows; least_width: of values;
-- growth: a share by which rows and columns grow more than they must; split: {least, blocks, most_blocks, choices,
-- registers, threads, lanes}: so many columns, where blocks of threads are no more than that, are divided into parts,
-- up to so many blocks, of so many choices; where fragments take more registers than that, rows are not kept in them;
-- threads of a block that joins the parts, elements of each; stages: one, or those that are drawn; registers: most of a
-- thread for fragments, streamed: where rows are not kept in them; shared_bytes: of a block; tensor_copies, producer:
-- choices of whether TMA copies, and a producer warp group issues that; overlap, alternate: choices of whether the
-- second product of a tile goes on beside the next tile's softmax, and whether two warp groups take turns;
-- shared_registers: most for fragments where three groups have them.
local common, tiling = msched.load "rules.common", msched.load "rules.tiling"
local chain = msched.load "rules.softmax_chain"

local SIDE = 16 -- of a fragment

local function group_for(p, type)
  for _, group in ipairs(p.groups) do if group.inputs == type then return group end end
end

-- Of the read's last two dimensions, the first is the loop `rows`, and the second the loop `across`.
local function is_matrix(sch, block, index, rows, across)
  local shape = sch:reads(block)[index + 1].shape
  return #shape >= 2 and sch:read_stride(block, index, across) == 1
    and sch:read_stride(block, index, rows) == shape[#shape]
end

-- The last three loops of a block are these, in this order.
local function ends_in_loops(sch, block, ...)
  local loops, want = {sch:get_loops(block)}, {...}
  for i = 1, #want do
    if sch:extent(loops[#loops - #want + i]) ~= sch:extent(want[i])
        or sch:loop_iter_kinds(block)[#loops - #want + i] ~= sch:loop_iter_kind(want[i]) then
      return false
    end
  end
  return true
end

local function last(list, n) return list[#list - (n or 0)] end

-- Tiles of a fragment's side, of a loop.
local function by_sides(sch, loop) return sch:split(loop, {msched.rest, SIDE}) end

local function unroll(sch, ...) for _, l in ipairs {...} do sch:unroll(l) end end

-- The block's copy of an operand, a fragment at a time, under a loop.
local function load_fragment(sch, block, index, scope, under, intrinsic)
  local copy = sch:cache_read(block, index, scope, {block})
  sch:compute_at(copy, under, {preserve_unit_loops = true})
  sch:tensorize(last({sch:get_loops(copy)}, 1), intrinsic)
end

-- Scores of the tile: each fragment of the second input meets all rows of the warp. first: of the first input, where
-- that is no fragment yet, but comes from shared memory as it is multiplied.
local function multiply_scores(sch, scores, group, second, first)
  local loops = {sch:get_loops(scores)}
  local i0, i1 = by_sides(sch, last(loops, 2))
  local j0, j1 = by_sides(sch, last(loops, 1))
  local k0, k1 = by_sides(sch, last(loops))
  sch:reorder {j0, k0, i0, i1, j1, k1}
  unroll(sch, j0, k0, i0)
  if first then load_fragment(sch, scores, first, group.a, k0, group.load_a) end
  load_fragment(sch, scores, second, group.b, k0, group.load_b_by_columns)
  local init = {sch:get_loops(sch:decompose_reduction(scores, j0))}
  unroll(sch, last(init, 3), last(init, 2))
  sch:tensorize(last(init, 1), group.fill)
  sch:tensorize(i1, group.sync_by_columns)
end

-- The second product: of sixteen columns at a time, which the accumulators take at once.
local function multiply_values(sch, product, carry, group)
  local loops, own = {sch:get_loops(product)}, {sch:get_loops(carry)}
  local i0, i1 = by_sides(sch, last(loops, 2))
  local j0, j1 = by_sides(sch, last(loops, 1))
  local k0, k1 = by_sides(sch, last(loops))
  sch:reorder {j0, k0, i0, i1, j1, k1}
  local to, within = by_sides(sch, last(own))
  sch:reorder {to, last(own, 1), within}
  sch:unroll(sch:merge {j0, to})
  unroll(sch, k0, i0)
  local values = chain.read_along(sch, product, j1, i1)
  load_fragment(sch, product, values, group.b, k0, group.load_b)
  local init = {sch:get_loops(sch:decompose_reduction(product, k0))}
  sch:unroll(last(init, 2))
  sch:tensorize(last(init, 1), group.fill)
  sch:tensorize(i1, group.sync)
end

-- The loops of a tile's product by a warp group; all rows and columns are multiplied at once, by so many of the depth.
local function products_at_once(sch, block, depth)
  local loops = {sch:get_loops(block)}
  local i, j = last(loops, 2), last(loops, 1)
  local k0, k1 = sch:split(last(loops), {msched.rest, depth})
  sch:reorder {k0, i, j, k1}
  return k0, i
end

local function multiply_by_group(sch, block, depth, fill, sync)
  local k0, i = products_at_once(sch, block, depth)
  local init = {sch:get_loops(sch:decompose_reduction(block, k0))}
  sch:tensorize(last(init, 1), fill)
  sch:tensorize(i, sync)
end

local function fetch(sch, copy, lanes, warps)
  if warps then sch:annotate(copy, "msched.fetching_warps", warps) end
  local loops = {sch:get_loops(copy)}
  sch:fuse(last(loops, 1), last(loops))
  sch:annotate(copy, "meta_schedule.cooperative_fetch", lanes)
end

-- Rows of all matrices of scores.
local function others_of(sch, scores)
  local shape, rows = sch:writes(scores)[1].shape, 1
  for d = 1, #shape - 1 do rows = rows * shape[d] end
  return rows
end

-- The chain that ends in the product, its softmax inlined, and few rows of heads that share keys made rows of one
-- matrix, if it folds; nil: it is none that this rule fuses.
local function find_chain(sch, product, p, folds)
  local c = chain.find_products(sch, product, true)
  local copy = c and folds and sch:extent(c.row) < SIDE and chain.fold_heads(sch, product, c)
  if folds then c = copy and chain.find_products(sch, product, true) end
  if not c then return nil end
  local scores, row, column, depth = c.scores, c.row, c.column, c.depth
  local to, value, along = c.to, c.value, c.along
  if not ends_in_loops(sch, scores, row, column, depth) or not ends_in_loops(sch, product, to, value, along) then
    return nil
  end
  local first, second = chain.read_along(sch, scores, row, column), chain.read_along(sch, scores, column, row)
  local values = chain.read_along(sch, product, value, to)
  if not first or not second or not values then return nil end
  local group = group_for(p, sch:reads(scores)[first + 1].type)
  if not group or sch:reads(scores)[second + 1].type ~= group.inputs
      or sch:reads(product)[values + 1].type ~= group.inputs then
    return nil
  end
  if not is_matrix(sch, scores, first, row, depth) or not is_matrix(sch, scores, second, column, depth)
      or not is_matrix(sch, product, values, along, value) then
    return nil
  end
  local width, depth_extent = sch:extent(value), sch:extent(depth)
  if width % SIDE ~= 0 or depth_extent % (group.depth or SIDE) ~= 0 then return nil end
  return {maximum = c.maximum, sum = c.sum, scores = scores, group = group, first = first, second = second,
          values = values, rows = sch:extent(row), columns = sch:extent(column), width = width, depth = depth_extent,
          copy = copy or nil, others = others_of(sch, scores) // sch:extent(row)}
end

-- Registers of a lane for fragments: of both products' accumulators, of the first operand, if it keeps that, of the
-- exponentials. Warp groups have no first operand there, and take the accumulators of scores for those of the second
-- product's tile, too.
local function fragment_registers(c, tile, keeps)
  local warps = c.group.warps
  if not warps then
    return tile.rows * (c.width + tile.columns + ((keeps and c.depth or SIDE) + tile.columns) // 2) // 32
  end
  return tile.rows * (c.width + math.max(c.width, tile.columns) + tile.columns * c.group.bytes // 4) // (32 * warps)
end

-- Whether a block is the one of that name, or a part of it.
local function is_part_of(own, name) return own == name or own:find(name .. "_", 1, true) == 1 end

-- What the parts of the fused block write: exponentials are operand a, matrices accumulators, the rest is one a row.
local function keep_in_registers(sch, parts, c, name)
  for _, part in ipairs(parts) do
    local own = sch:block_name(part)
    local scope = c.group.c
    if is_part_of(own, c.maximum) or is_part_of(own, c.sum) then scope = c.group.rows end
    if own == name .. "_weights" then
      scope = c.group.a
      sch:unsafe_set_dtype(part, 0, c.group.inputs)
    end
    for w, written in ipairs(sch:writes(part)) do
      if written.scope ~= scope then sch:set_scope(part, w - 1, scope) end
    end
  end
end

-- The first operand's fragments, once for all columns.
local function load_rows(sch, operand, group)
  local loops = {sch:get_loops(operand)}
  local i0, i1 = by_sides(sch, last(loops, 1))
  local k0, k1 = by_sides(sch, last(loops))
  sch:reorder {i0, k0, i1, k1}
  unroll(sch, i0, k0)
  sch:tensorize(i1, group.load_a)
end

-- Both products by mma.sync; what the scores read along rows is in registers, if it fits.
local function multiply_by_warps(s, c, name, scores, operand)
  multiply_scores(s, s:get_sblock(scores), c.group, c.second, not operand and c.first or nil)
  if operand then load_rows(s, operand, c.group) end
  multiply_values(s, s:get_sblock(name), s:get_sblock(name .. "_carry"), c.group)
end

local function multiply_by_groups(s, c, tile, name, scores)
  local across, along = c.group.width(tile.columns), c.group.width(c.width)
  multiply_by_group(s, s:get_sblock(scores), c.group.depth, across.fill, across.sync_by_columns)
  multiply_by_group(s, s:get_sblock(name), c.group.depth, along.fill, along.sync_registers)
end

local MBARRIER_BYTES = 128 -- more than those of a pipeline take

-- Registers of a lane for fragments where the second product goes on beside the next softmax: it adds to the sums, and
-- exponentials are there twice.
local function overlapped_registers(c, tile)
  return tile.rows * (c.width + tile.columns + tile.columns * c.group.bytes // 2) // (32 * c.group.warps)
end

-- Sums that a tile's product is not added to in place do not fit the registers.
local function overlaps_always(p) return p.overlap and #p.overlap == 1 and p.overlap[1] == 1 end

-- Whether the second product of a tile goes on beside the next softmax, and groups take turns, as drawn. skips: of
-- tiles that rows do not see, groups of one block that see unlike numbers each leave out their own, in a condition.
local function overlap_by_draws(s, columns, c, tile, p, groups, ahead, producer, skips)
  if not p.overlap or skips and tile.columns < 2 * tile.rows and not overlaps_always(p) then return end
  local overlap, alternate = common.sample_equal(s, p.overlap), common.sample_equal(s, p.alternate)
  local most = overlapped_registers(c, tile) <= p.shared_registers and p.warps or 2 -- groups that have as many
  if skips then most = math.min(most, tile.columns // tile.rows) end
  s:assert(string.format("%s <= %s", overlap:name(), producer:name()))
  s:assert(string.format("%s <= %s", overlap:name(), ahead:name()))
  s:assert(string.format("%s * %s <= %d", overlap:name(), groups:name(), most))
  s:assert(string.format("%s <= %s", alternate:name(), producer:name()))
  s:assert(string.format("%s * 2 <= %s", alternate:name(), groups:name()))
  s:assert(string.format("%s * %s <= %d", alternate:name(), groups:name(), math.min(most, 2)))
  s:annotate(columns, "software_pipeline_overlap", overlap)
  s:annotate(columns, "software_pipeline_alternate", alternate)
end

-- Copies of the tiles of both inputs run ahead, as far as is drawn; what a block has of shared memory holds the draws.
local function run_ahead_by_draws(s, columns, c, tile, p, groups, skips)
  local ahead = common.sample_equal(s, p.stages)
  local queries = string.format("%s * %d", groups:name(), c.group.bytes * tile.rows * c.depth)
  local tiles = c.group.bytes * tile.columns * (c.depth + c.width)
  s:assert(string.format("%s + (%s + 1) * %d <= %d", queries, ahead:name(), tiles, p.shared_bytes - MBARRIER_BYTES))
  local copies, producer = common.sample_equal(s, p.tensor_copies), common.sample_equal(s, p.producer)
  s:assert(string.format("%s <= %s", producer:name(), copies:name()))
  tiling.run_ahead(s, columns, ahead, false, copies, producer)
  overlap_by_draws(s, columns, c, tile, p, groups, ahead, producer, skips)
end

-- Rows of one fragment may come from shared memory again for each tile of columns.
local function keeps_rows(c, tile, p, in_parts)
  return tile.rows > SIDE or fragment_registers(c, tile, true) <= (in_parts and p.split.registers or p.registers)
end

local function fits(c, tile, p)
  local width, keeps = c.group.width, keeps_rows(c, tile, p)
  if c.width < (p.least_width or 0) or width and not (width(tile.columns) and width(c.width)) then return false end
  if overlaps_always(p) then return c.columns > tile.columns and overlapped_registers(c, tile) <= p.registers end
  return fragment_registers(c, tile, keeps) <= (keeps and p.registers or p.streamed)
end

-- Into how many parts the columns may be divided, so that a GPU has enough blocks of threads.
local function parts_of(c, tile, p)
  local blocks, tiles, list = c.others * -(-c.rows // tile.rows), -(-c.columns // tile.columns), {}
  if blocks > p.split.blocks or c.columns < p.split.least then return list end
  for n = 2, tiles do
    local whole = c.columns % tile.columns > 0 and n & (n - 1) == 0 or c.columns % (tile.columns * n) == 0
    if whole and blocks * n <= p.split.most_blocks and #list < p.split.choices then list[#list + 1] = n end
  end
  return list
end

-- Has the matrices that a block writes lie by columns, in each the elements of their rows in the order of a text.
local function put_by_columns(s, copy, order)
  local names = {}
  for d = 1, #s:writes(copy)[1].shape do names[d] = "x" .. d end
  local rows, columns = names[#names - 1], names[#names]
  local map = string.format("lambda %s: (%s)", table.concat(names, ", "),
    table.concat(chain.names_and({table.unpack(names, 1, #names - 2)}, columns, (order:gsub("x", rows))), ", "))
  s:transform_layout(copy, map, 0, 1)
end

-- Has a kernel ahead write the values that `copy` brings to tiles by columns: gives the copy from there, and the blocks
-- of that kernel, which bring tiles to shared memory, take pieces from them, and store these.
local function turn_values(s, copy, order)
  local take = s:cache_write(copy, 0, "shared")
  put_by_columns(s, take, order)
  local store = s:cache_write(take, 0, "local")
  return s:cache_write(store, 0, "global"), {bring = copy, take = take, store = store}
end

local KEYS, ACROSS, PIECE = 64, 64, 16 -- rows and columns of a tile that is turned; elements that a thread stores

local function schedule_turning(s, turns)
  local loops = {s:get_loops(turns.store)}
  local keys, across = table.remove(loops), table.remove(loops)
  local k0, piece, vector = s:split(keys, {msched.rest, KEYS // PIECE, PIECE})
  local a0, a1 = s:split(across, {msched.rest, ACROSS})
  s:reorder {k0, a0, a1, piece}
  for _, l in ipairs {k0, a0} do loops[#loops + 1] = l end
  local blocks, threads = s:fuse(loops), s:fuse(a1, piece)
  s:bind(blocks, "blockIdx.x")
  s:bind(threads, "threadIdx.x")
  s:vectorize(vector)
  s:compute_at(turns.take, threads)
  unroll(s, last {s:get_loops(turns.take)})
  s:compute_at(turns.bring, blocks, {preserve_unit_loops = true})
  local own = {s:get_loops(turns.bring)}
  local thread, lanes = select(2, s:split(s:fuse(last(own, 1), last(own)), {msched.rest, s:extent(threads), PIECE}))
  s:bind(thread, "threadIdx.x")
  s:vectorize(lanes)
end

-- Copies of what the products read, as tiles: of rows, as fragments too, which is what products of warps read. What
-- grows has padded copies already, once it is fused.
local function copy_before(s, c, product)
  local group, copies = c.group, {}
  if not c.columns_grow then
    copies.keys = s:cache_read(c.scores, c.second, group.tiles, {c.scores})
    copies.values = s:cache_read(product, c.values, group.tiles, {product})
    if group.order then copies.values, copies.turns = turn_values(s, copies.values, group.order) end
  end
  if not c.rows_grow then
    copies.queries = s:cache_read(c.scores, c.first, group.tiles, {c.scores})
    copies.operand = c.keeps and s:cache_read(c.scores, c.first, group.a, {c.scores}) or nil
  end
  return copies
end

local function take_padded(s, c, copies, outer, scores, product)
  local group, padded = c.group, chain.padded_copies(s, c, outer, scores, product, c.group.tiles)
  copies.keys, copies.values = copies.keys or padded.keys, copies.values or padded.values
  if padded.values and group.order then copies.values, copies.turns = turn_values(s, padded.values, group.order) end
  if copies.queries then return end
  copies.queries = padded.queries
  if c.keeps then
    copies.operand = s:cache_write(copies.queries, 0, group.tiles)
    s:set_scope(copies.operand, 0, group.a)
  end
end

-- A schedule with this tile for each warp, or warp group, in_parts: with the columns divided among blocks; nil: it is
-- not to be had.
local function fused(sch, product, tile, p, context, folds, in_parts)
  local s = sch:copy()
  local b = s:handle(product)
  local name, c = s:block_name(b), find_chain(s, b, p, folds)
  local group, warps = c.group, c.group.warps
  local multiple, parts = chain.multiple_of(c, tile, p.warps, p.growth), 1
  if in_parts and multiple == 0 then multiple = tile.rows end
  c.keeps = not warps and keeps_rows(c, tile, p, in_parts)
  c.rows_grow, c.columns_grow = multiple > 0 and c.rows % multiple > 0, c.columns % tile.columns > 0
  if in_parts then parts = common.sample_equal(s, parts_of(c, tile, p)) end
  local copies, scores = copy_before(s, c, b), s:block_name(c.scores)
  local done, outer = s:try("fuse_online_softmax", s:get_sblock(c.maximum), s:get_sblock(c.sum), b, tile.rows,
                            tile.columns, true, multiple, parts)
  if not done or not s:has_block(name .. "_normalize") then return nil end
  take_padded(s, c, copies, outer, s:get_sblock(scores), s:get_sblock(name))
  if c.copy then s:compute_inline(s:get_sblock(c.copy)) end
  local own, names = {s:get_child_blocks(outer)}, {c.maximum, c.sum, name}
  local skips = s:annotation(outer, "msched.idle_above_zero") ~= nil
  local warp, columns, side = chain.bind_tiles(s, outer, "threadIdx.y", p.warps, in_parts)
  for _, copy in ipairs {copies.keys, copies.values} do s:compute_at(copy, columns, {preserve_unit_loops = true}) end
  if s:child_count(columns) ~= 3 then return nil end
  if copies.operand then s:compute_at(copies.operand, warp, {preserve_unit_loops = true}) end
  s:compute_at(copies.queries, warp, {preserve_unit_loops = true})
  if not in_parts then chain.divide_under(s, name .. "_normalize", warp) end
  for _, n in ipairs(in_parts and names or {}) do
    s:reverse_compute_at(s:get_sblock(n .. "_parts"), warp, {preserve_unit_loops = true})
  end
  keep_in_registers(s, own, c, name)
  if warps then multiply_by_groups(s, c, tile, name, scores)
  else multiply_by_warps(s, c, name, scores, copies.operand) end
  for _, reduced in ipairs {c.maximum, c.sum} do
    local part = s:get_sblock(reduced)
    s:decompose_reduction(part, last {s:get_loops(part)})
  end
  local lanes = context.target.vector_bytes // s:writes(copies.keys)[1].bytes
  for _, copy in ipairs {copies.keys, copies.values, copies.queries} do fetch(s, copy, lanes, warps) end
  if copies.turns then schedule_turning(s, copies.turns) end
  if warps then run_ahead_by_draws(s, columns, c, tile, p, side, skips)
  else tiling.run_ahead(s, columns, p.stages) end
  if in_parts then chain.join_parts(s, names, p.split.threads, p.split.lanes) end
  chain.leave_alone(s)
  return s
end

return msched.rule {
  name = "fuse_online_softmax_tensor_core",
  at = "blocks",
  wanted = function(self) return #self.parameters.forms > 0 end,
  apply = function(sch, block, context, self)
    local results = {}
    if sch:is_root(block) or not sch:has_init(block) or #sch:writes(block) ~= 1 or #sch:producers(block) == 0
        or not common.is_nest(sch, block) or not chain.ends_in(sch, block) then
      return {sch}
    end
    for _, p in ipairs(self.parameters.forms) do
      local function probe(folds)
        local s = sch:copy()
        return find_chain(s, s:handle(block), p, folds)
      end
      local c = probe(true) or probe(false)
      local function may_be(tile) return c.rows >= p.least and fits(c, tile, p) end
      for _, tile in ipairs(c and chain.few_tiles(c, p, may_be) or {}) do
        results[#results + 1] = fused(sch, block, tile, p, context, c.copy ~= nil, false)
        if #parts_of(c, tile, p) > 0 then
          results[#results + 1] = fused(sch, block, tile, p, context, c.copy ~= nil, true)
        end
      end
    end
    if #results == 0 then return {sch} end
    return results
  end,
}
