-- The lanes of a warp as a tile of a product: `across` of them lie across the lines of results and `along` along them,
-- so that a warp reads few elements of both inputs, each for several lanes. Lanes next to one another read the same of
-- one input, and lanes two apart of the other: loads of 16 bytes are then made for half a warp at once, and not for a
-- quarter. A lane has small squares of results, which virtual threads lay apart; what is drawn is how many squares a
-- thread has, and how many warps a block. Parameters (p.warp_tile of tiling.lua):
--   structure      the levels, as tiling.lua has them: blocks, squares, warps, sums, and what is in a square
--   across, along  lanes, which are a warp together
--   pair           of those across, so many follow one another
--   rows           of a square: the first that divides, with lanes, what there is
--   columns        of a square at most, and as many as a load has; 1 where lanes along a line read along sums: these
--                  lanes read rows side by side
--   stages         depths of software pipelines; where one may be, there is no sketch without
--   bytes          of an element of the inputs at least: tensor cores multiply shorter ones
--   piece          bytes that threads load at once: rows of what is read along a sum begin odd numbers of pieces apart
-- Sources: S. Gray, "SGEMM" (maxas), 2014; CUTLASS, RowMajorInterleaved of warp tiles; which lanes a load is made for
-- together: G. Smith, NVIDIA's forum, "Unexpected shared memory bank conflict", 2019.
local warp_tile = {}

-- The inputs of a block, as numbers of its reads.
local function inputs_of(sch, block)
  local written, inputs = sch:writes(block)[1].buffer, {}
  for i, r in ipairs(sch:reads(block)) do if r.buffer ~= written then inputs[#inputs + 1] = i end end
  return inputs
end

-- The innermost spatial loops that move one input of two, by the input: {at = number among the block's loops, loop};
-- and a set of the reads whose neighbours a sum goes over.
local function moving(sch, block, inputs)
  local kinds, by_input, summed = sch:loop_iter_kinds(block), {}, {}
  for at, l in ipairs {sch:get_loops(block)} do
    local strides = sch:strides(block, l)
    local first, second = strides[inputs[1]], strides[inputs[2]]
    if kinds[at] == "spatial" and first and second and (first == 0) ~= (second == 0) and sch:extent(l) ~= 1 then
      by_input[first ~= 0 and 1 or 2] = {at = at, loop = l}
    end
    for _, i in ipairs(inputs) do if kinds[at] == "reduce" and strides[i] == 1 then summed[i] = true end end
  end
  return by_input, summed
end

-- Where lanes lie: {across, along = numbers of the block's loops; rows, columns, of a square; apart = a set of the
-- reads whose rows are laid apart}. nil: the block is no product of two inputs, or lanes do not divide it.
function warp_tile.find(sch, block, tile)
  local inputs = inputs_of(sch, block)
  if #inputs ~= 2 then return nil end
  local by_input, summed = moving(sch, block, inputs)
  local along = by_input[2] and sch:write_stride(block, 0, by_input[2].loop) == 1 and 2 or 1
  local lines, line = by_input[3 - along], by_input[along]
  if not lines or not line or sch:write_stride(block, 0, line.loop) ~= 1 then return nil end
  local high, wide = sch:extent(lines.loop), sch:extent(line.loop)
  local reads = sch:reads(block)
  for _, i in ipairs(inputs) do if reads[i].bytes < tile.bytes then return nil end end
  local columns = math.max(1, math.min(tile.columns, tile.piece // reads[inputs[along]].bytes))
  local found = {across = lines.at, along = line.at, columns = summed[inputs[along]] and 1 or columns, apart = {}}
  if not high or not wide or wide % (tile.along * found.columns) > 0 then return nil end
  for _, rows in ipairs(tile.rows) do
    if not found.rows and high % (tile.across * rows) == 0 then found.rows = rows end
  end
  for i in pairs(summed) do if #reads[i].shape > 1 then found.apart[i] = true end end
  return found.rows and found
end

-- How many threads along a loop, of so many warps, as tile_limits reads it.
local function threads_of(warps, lanes)
  return {name = function() return string.format("%d * %s", lanes, warps:name()) end}
end

local function constant(n) return {name = function() return tostring(n) end} end

-- As tiling.split: parts of the two loops for blocks, squares, warps and a square; what is left for lanes is kept in
-- lanes.loops.
function warp_tile.split(sch, loop, at, lanes, tile)
  local rest, inner, of, own
  if at == lanes.across then
    rest, lanes.high, lanes.low, inner = sch:split(loop, {msched.rest, tile.across // tile.pair, tile.pair, lanes.rows})
    of, own = tile.across, lanes.rows
  else
    rest, lanes.line, inner = sch:split(loop, {msched.rest, tile.along, lanes.columns})
    of, own = tile.along, lanes.columns
  end
  local blocks, squares, warps = sch:sample_perfect_tile(rest, 3, -1)
  local parts = {sch:split(rest, {blocks, squares, warps})}
  parts[#parts + 1] = inner
  return parts, {blocks, squares, threads_of(warps, of), constant(own)}
end

-- The loops of lanes, in the order in which threads are numbered.
function warp_tile.lanes(lanes) return {lanes.high, lanes.line, lanes.low} end

-- Bytes from a row to the next, of rows of so many elements, as an expression.
function warp_tile.row(row, bytes, tile)
  local piece = math.max(1, tile.piece // bytes)
  return string.format("((%s + %d) // %d * %d + %d)", row, piece - 1, 2 * piece, 2 * piece, piece)
end

function warp_tile.lay_apart(sch, cache, bytes, tile)
  local piece = math.max(1, tile.piece // bytes)
  sch:storage_align(cache, 0, -2, 2 * piece, piece)
end

return warp_tile
