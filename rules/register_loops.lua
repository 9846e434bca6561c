-- Loops of register tiles: what the rules share that make such, register_tile, and dot_tile and amx_tile for short
-- types.
local common = msched.load "rules.common"
local register_loops = {
  LONG = 64, -- iterations of a loop of which tiles of rows leave few over
  BUSY = 8, -- accumulators that hide the latency of multiply-adds
}

-- The dimension of a compact buffer whose elements lie so far apart; nil: none.
function register_loops.dimension_of(shape, stride)
  local step = 1
  for d = #shape, 1, -1 do
    if step == stride and shape[d] > 1 then return d end
    step = step * shape[d]
  end
end

-- The spatial loops, those that reduce, and all; nil where there are others, or none of a kind.
function register_loops.by_kind(sch, block)
  local kinds, loops = common.loop_kinds(sch, block)
  local spatial, reduce = {}, {}
  for i, l in ipairs(loops) do
    if not sch:extent(l) or (kinds[i] ~= "spatial" and kinds[i] ~= "reduce") then return nil end
    table.insert(kinds[i] == "spatial" and spatial or reduce, l)
  end
  if #spatial > 0 and #reduce > 0 then return spatial, reduce, loops end
end

-- The iteration along which the written buffer is contiguous: of those the longest.
function register_loops.contiguous(sch, block, spatial)
  local inner
  for _, l in ipairs(spatial) do
    if sch:write_stride(block, 0, l) == 1 and (not inner or sch:extent(l) > sch:extent(inner)) then inner = l end
  end
  return inner
end

-- How many tiles of rows share what is packed. Of lines, several loops of rows, no chunk is one tile, nor far more than
-- there are: quotients that distinguish lines would hide how the loops go.
local function chunks(rows, count)
  local list = {}
  for _, n in ipairs {1, 2, 4, 8, 16, 32, 64, 128} do
    if #rows < 2 or (n > 1 and 2 * n <= count) then list[#list + 1] = n end
  end
  return #list > 0 and list or {1}
end

local function fused(sch, loops) return #loops > 1 and sch:fuse(loops) or loops[1] end

-- Rows of a tile that fit beside so many vectors a row: what is left of the registers are an operand's vectors and what
-- a row multiplies them by, or `beside` registers. Those with so many accumulators at least, or with `fewer` where
-- there are none; and all.
function register_loops.rows_for(context, vectors, extent, accumulators, fewer, beside)
  local enough, fitting = {}, {}
  for _, rows in ipairs {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 28} do
    if (rows + 1) * vectors + (beside or 1) <= context.target.vector_registers and rows <= extent then
      fitting[#fitting + 1] = rows
      if rows * vectors >= accumulators then enough[#enough + 1] = rows end
    end
  end
  if #enough == 0 and fewer then return register_loops.rows_for(context, vectors, extent, fewer, nil, beside) end
  return enough, fitting
end

-- The spatial loops beside rows and columns, as one: what runs in parallel, and what is left of it. Nothing where there
-- are none.
function register_loops.split_outer(sch, loops)
  if #loops == 0 then return end
  local all = fused(sch, loops)
  return sch:split(all, {sch:sample_perfect_tile(all, 2, 64)})
end

-- Loops of `count` rows in all, as one: chunks, which run in parallel, the tiles of a chunk, and the rows of a tile,
-- one of the numbers of `rows`. Nothing where there are none.
function register_loops.split_rows(sch, loops, count, rows)
  if #loops == 0 then return end
  local all, tiles = fused(sch, loops), common.sample_equal(sch, chunks(loops, count))
  return sch:split(all, {msched.rest, tiles, common.sample_equal(sch, rows)})
end

-- Tells postprocessors and lowering of a register tile with such loops of rows.
function register_loops.note_tile(sch, block, rows)
  sch:annotate(block, "msched.register_tile", 1)
  sch:annotate(block, "msched.init_before_tiles", common.sample_equal(sch, {0, 1}))
  if #rows > 1 then sch:annotate(block, "msched.rows_of_lines", 1) end
end

local SHORT <const> = {float16 = true, bfloat16 = true, int8 = true, uint8 = true}

-- Copies a read for the block alone, whatever else reads it; gives the copy.
function register_loops.copied(sch, block, index)
  return sch:cache_read(block, index, "global", #sch:readers(block, index) > 1 and {block} or nil)
end

-- The same where no block of the function makes what is read, nor packs it ahead; nil: one does. Lowering has the copy
-- hold what is computed with (tir/lower/memory/widen.c), so that each element is widened once.
function register_loops.copied_once(sch, block, index)
  local buffer = sch:reads(block)[index + 1].buffer
  if common.constants(sch)[buffer] then return nil end
  for _, name in ipairs(sch:producers(block)) do
    if sch:writes(sch:get_sblock(name))[1].buffer == buffer then return nil end
  end
  return register_loops.copied(sch, block, index)
end

-- Draws whether copies of short elements hold what is computed with, where lowering can have them do so: that is twice
-- as long, and widened once an element, not at each read.
function register_loops.draw_widening(sch, copies)
  local short = {}
  for _, copy in ipairs(copies) do
    local type = sch:reads(copy)[1].type
    if SHORT[type] then short[#short + 1] = copy end
  end
  if #short == 0 then return end
  local drawn = common.sample_equal(sch, {1, 0})
  for _, copy in ipairs(short) do sch:annotate(copy, "msched.widen", drawn) end
end

-- Moves a copy under a loop, where there is one; false: it cannot be there.
function register_loops.put_under(sch, copy, loop)
  if not loop then return true end
  if not sch:can_compute_at(copy, loop) then return false end
  sch:compute_at(copy, loop, {preserve_unit_loops = true})
  return true
end

-- Copies a read of that many dimensions into a buffer with its dimensions as `order` puts their names; gives the copy.
-- padded: the copy has elements that the read has not, which nothing reads. readers: the blocks that read the copy, the
-- block unless said.
function register_loops.laid_out(sch, block, index, rank, order, padded, readers)
  local copy = readers and sch:cache_read(block, index, "global", readers) or register_loops.copied(sch, block, index)
  local names = {}
  for d = 1, rank do names[d] = "i" .. d end
  local map = string.format("lambda %s: (%s)", table.concat(names, ", "), table.concat(order(names), ", "))
  if padded then sch:transform_layout(copy, map, 0, 1, nil, true) else sch:transform_layout(copy, map, 0, 1) end
  return copy
end

-- The names but those of some dimensions.
function register_loops.others(names, ...)
  local list, taken = {}, {}
  for _, d in ipairs {...} do taken[d] = true end
  for d, name in ipairs(names) do if not taken[d] then list[#list + 1] = name end end
  return list
end

-- Moves the loop of a copy's dimension inside its other loops: it, and these.
function register_loops.innermost(sch, copy, dimension)
  local loops = {sch:get_loops(copy)}
  local last = table.remove(loops, dimension)
  sch:reorder(table.move({last}, 1, 1, #loops + 1, {table.unpack(loops)}))
  return last, loops
end

-- Unrolls what a thread has of a copy below the loops of blocks and threads.
function register_loops.unroll_own(sch, copy)
  local loops = {sch:get_loops(copy)}
  for i = 3, #loops do sch:unroll(loops[i]) end
end

-- Copies an operand so that the dimension of the loop comes last; gives the copy. nil: the dimension is not at hand.
function register_loops.with_last(sch, block, index, loop)
  local shape = sch:reads(block)[index + 1].shape
  local last = register_loops.dimension_of(shape, sch:read_stride(block, index, loop))
  return last and register_loops.laid_out(sch, block, index, #shape, function(names)
    local order = register_loops.others(names, last)
    order[#order + 1] = names[last]
    return order
  end)
end

-- The operands' numbers: of the one that is the same for all columns, and of the one that is each column's own. nil:
-- there are no such two.
function register_loops.operands(sch, block, inner)
  local shared, each
  local written = sch:writes(block)[1].buffer
  for i, r in ipairs(sch:reads(block)) do
    if r.buffer ~= written then
      local stride = sch:read_stride(block, i - 1, inner)
      if stride == 0 and not shared then shared = i - 1
      elseif stride and stride > 0 and not each then each = i - 1
      else return nil end
    end
  end
  if shared and each then return shared, each end
end

-- The longest of the reductions along which an operand moves by so much, of those that dot products of `width` divide;
-- tail: or leave few steps of.
local TAIL = 4 -- dot products before such steps, at least
function register_loops.longest(sch, block, reduce, index, stride, width, tail)
  local best
  for _, l in ipairs(reduce) do
    local divided = sch:extent(l) % width == 0 or tail and sch:extent(l) >= TAIL * width
    local fits = divided and (not stride or sch:read_stride(block, index, l) == stride)
    if fits and (not best or sch:extent(l) > sch:extent(best)) then best = l end
  end
  return best
end

-- Brings the loops of each list next to one another, one list behind the other, at the places that they have in all; or
-- before all others, where there others lie between those of a list.
function register_loops.gather(sch, all, lists)
  local order, listed, places, others, apart = {}, {}, {}, {}, false
  for _, list in ipairs(lists) do
    for _, l in ipairs(list) do order[#order + 1], listed[l] = l, true end
  end
  for i, l in ipairs(all) do table.insert(listed[l] and places or others, listed[l] and i or l) end
  local at = 0
  for _, list in ipairs(lists) do
    for i = at + 2, at + #list do apart = apart or places[i] ~= places[i - 1] + 1 end
    at = at + #list
  end
  if apart then table.move(others, 1, #others, #order + 1, order) end
  if #order > 1 then sch:reorder(order) end
end

-- By how much an iteration is divided so that what is read depends on one of the parts alone: into groups, as columns
-- of a grouped convolution are, or into phases, which choose the taps of a transposed one. 1: it is not.
local function divisor_of(sch, block, loop)
  if sch:loop_iter_kind(loop) ~= "spatial" then return 1 end
  local group = sch:group(block, loop)
  local divisor, extent = group > 1 and group or sch:period(block, loop), sch:extent(loop)
  return divisor < extent and extent % divisor == 0 and divisor or 1
end

-- The schedule and block to make products of: where it is several, one for each group or phase, a copy in which these
-- are iterations of their own.
function register_loops.by_products(sch, block)
  if not sch:is_trivial(block) then return sch, block end
  local seen, names, order, divided = sch:copy(), {}, {}, false
  local b = seen:handle(block)
  for i, l in ipairs {seen:get_loops(b)} do
    local name, divisor = "i" .. i, divisor_of(seen, b, l)
    names[i] = name
    if divisor > 1 then
      order[#order + 1], divided = string.format("%s // %d", name, divisor), true
      name = string.format("%s %% %d", name, divisor)
    end
    if seen:extent(l) > 1 then order[#order + 1] = name end
  end
  if not divided then return sch, block end
  local s = sch:copy()
  b = s:handle(block)
  s:transform_block_layout(b, string.format("lambda %s: (%s)", table.concat(names, ", "), table.concat(order, ", ")))
  return s, b
end

-- The spatial loop to take for columns where results are not contiguous along a vector's worth of them, as those of
-- three channels are not: of the loops that one operand alone moves by, the longest. nil: none has a vector's worth.
local function other_columns(sch, block, lanes)
  local written, best = sch:writes(block)[1].buffer, nil
  for _, l in ipairs(register_loops.by_kind(sch, block)) do
    local still, moves = 0, 0
    for i, r in ipairs(sch:reads(block)) do
      local stride = r.buffer ~= written and sch:read_stride(block, i - 1, l) or nil
      if stride == 0 then still = still + 1 elseif stride and stride > 0 then moves = moves + 1 end
    end
    if still == 1 and moves == 1 and sch:extent(l) >= lanes and (not best or sch:extent(l) > sch:extent(best)) then
      best = l
    end
  end
  return best
end

-- A schedule whose results lie along those columns, and are copied to where they belong behind it, and its block; nil:
-- there are columns enough, or no others.
function register_loops.turned(sch, block, lanes)
  local spatial = register_loops.by_kind(sch, block)
  local inner = spatial and register_loops.contiguous(sch, block, spatial)
  if not inner or sch:extent(inner) >= lanes then return nil end
  local columns, shape = other_columns(sch, block, lanes), sch:writes(block)[1].shape
  local stride, step, names = columns and sch:write_stride(block, 0, columns), 1, {}
  if not stride or stride < 1 then return nil end
  for d = 1, #shape do names[d] = "i" .. d end
  for d = #shape, 1, -1 do
    local apart = stride // step -- phases of a transposed convolution are so many
    if stride % step == 0 and apart > 0 and apart < shape[d] and shape[d] % apart == 0 then
      local order, s = register_loops.others(names, d), sch:copy()
      if apart > 1 then order[#order + 1] = string.format("%s %% %d", names[d], apart) end
      order[#order + 1] = apart > 1 and string.format("%s // %d", names[d], apart) or names[d]
      local b = s:handle(block)
      s:cache_write(b, 0, "global")
      local map = string.format("lambda %s: (%s)", table.concat(names, ", "), table.concat(order, ", "))
      s:transform_layout(b, map, 0, 1)
      return s, b
    end
    step = step * shape[d]
  end
end

-- How many products the target adds to a sum of the block at once; 0: it has no such instruction. has: what it has, 1
-- for uint8 by int8, 2 for bfloat16, 4 for int8, 8 for uint8, 16 for bytes by pairs of int16; of tiles, which are
-- tried, 16 for float16.
local BYTES <const>, BFLOATS <const>, HALVES <const>, PAIRS <const> = 1 | 4 | 8, 2, 16, 16
local function adds_halves(sch, block)
  local writes, halves = sch:writes(block), 0
  for _, r in ipairs(sch:reads(block)) do halves = halves + (r.type == "float16" and 1 or 0) end
  return #writes == 1 and writes[1].type == "float32" and halves == 2
end
function register_loops.product_width(sch, block, has, tiles)
  local width = has and has > 0 and sch:dot_width(block) or 0
  if width == 0 and tiles and has and has & HALVES > 0 and adds_halves(sch, block) then return 2 end
  return (width == 4 and has & BYTES > 0 or width == 2 and has & BFLOATS > 0) and width or 0
end

-- Whether dot products of bytes are products of pairs of int16: two of a copy of int16 go to all lanes by one load,
-- where four bytes would be widened for each row. Those of parts of a byte are not.
function register_loops.by_pairs(sch, block, width, has)
  return width == 4 and has & PAIRS > 0 and not sch:has_call(block, "bitwise_and")
end

-- ---- Copies of weights of few bits ----------------------------------------------------------------------------------

-- The block that makes of constant bytes what a block reads there, and nothing else does; nil: there is none.
local function unpacks(sch, reader, index)
  local constants, buffer = common.constants(sch), sch:reads(reader)[index + 1].buffer
  for _, name in ipairs(sch:producers(reader)) do
    local block = sch:get_sblock(name)
    if sch:writes(block)[1].buffer == buffer and sch:is_spatial(block) and sch:can_inline(block) then
      for _, r in ipairs(sch:reads(block)) do if r.type == "uint8" and constants[r.buffer] then return block end end
    end
  end
end

-- Whether dot products of bfloat16 have tiles of vectors whose copies unpack weights of few bits (dot_tile.lua): others
-- would do so element by element.
function register_loops.is_unpacked_by_dots(sch, block, target)
  local shape = sch:writes(block)[1].shape
  local lanes = (target.vector_bits or 0) // 32
  if not target.dots or register_loops.product_width(sch, block, target.dots) ~= 2 or shape[#shape] < lanes then
    return false
  end
  for i in ipairs(sch:reads(block)) do if unpacks(sch, block, i - 1) then return true end end
  return false
end

-- The loops of a copy of columns, and of its depth, where copies divide the matrix and vectors divide them; nil:
-- they do not.
local function loops_of_copy(sch, copy, width, lanes)
  local loops, shape = {sch:get_loops(copy)}, sch:reads(copy)[1].shape
  local columns, depth = loops[#loops - 1], loops[#loops]
  if #shape ~= 2 or not columns or sch:read_stride(copy, 0, depth) ~= 1 then return nil end
  local divides = sch:read_stride(copy, 0, columns) == shape[2] and shape[1] % sch:extent(columns) == 0
    and shape[2] % sch:extent(depth) == 0 and sch:extent(columns) % lanes == 0 and sch:extent(depth) % width == 0
  if divides then return columns, depth end
end

local function reads_evenly(sch, block)
  for i = 1, #sch:reads(block) do
    for _, l in ipairs {sch:get_loops(block)} do
      if not sch:read_stride(block, i - 1, l) then return false end
    end
  end
  return true
end

-- What splits a depth so that its quotients come apart: neighbours last, in front of them what a group has of them, or
-- what half of a group has.
local MOST_GROUP <const> = 1024
local function partings(depth, width)
  local list = {}
  for _, halves in ipairs {false, true} do
    local group = 8 * width
    while group <= math.min(depth, MOST_GROUP) do
      if depth % group == 0 then
        local parts = halves and {msched.rest, 2, group // (2 * width), width} or {msched.rest, group // width, width}
        list[#list + 1] = parts
      end
      group = 2 * group
    end
  end
  return list
end

-- A copy of columns with what it copies computed in it, by vectors of columns, the depth split by these factors: the
-- vector and the neighbours.
local function unpacked(sch, copy, block, lanes, factors)
  sch:compute_inline(block)
  local loops = {sch:get_loops(copy)}
  local blocks, vector = sch:split(loops[#loops - 1], {msched.rest, lanes})
  local parts = {sch:split(loops[#loops], factors)}
  local neighbours = table.remove(parts)
  table.move({blocks, neighbours, vector}, 1, 3, #parts + 1, parts)
  sch:reorder(parts)
  return vector, neighbours
end

-- Has a copy of columns for products of bfloat16 unpack what it copies, by vectors of columns: constants are then laid
-- out in that order (rewrite_layout.lua), and neighbours of the depth are stored together. false: tiles do not divide,
-- or indices do not come apart: what is copied would be unpacked element by element. nil: there is nothing to unpack.
function register_loops.unpack(sch, copy, width, lanes)
  local block = width == 2 and unpacks(sch, copy, 0)
  if not block then return nil end
  local columns, depth = loops_of_copy(sch, copy, width, lanes)
  for _, factors in ipairs(columns and partings(sch:extent(depth), width) or {}) do
    local trial = sch:copy()
    local own = trial:handle(copy)
    unpacked(trial, own, trial:handle(block), lanes, factors)
    if reads_evenly(trial, own) then
      local vector, neighbours = unpacked(sch, copy, block, lanes, factors)
      sch:unroll(neighbours)
      sch:vectorize(vector)
      return true
    end
  end
  return false
end

return register_loops
