-- Makes one pass over each row of a softmax whose rows come from memory: a block of columns subtracts its own maximum,
-- so that its exponentials are computed while it is in the first cache; what differs from the row's maximum is made up
-- for by a factor, when results are stored, beside the next row's pass. Opens two schedules: as it was, and so, with
-- all loops. Of functions that fit the caches nothing is opened: there a second pass over a row costs little.
-- No target's list has it: whether it pays depends on the machine's memory.
-- Parameters:
--   least_caches   what the function's parameters fill at least, in sizes of the second caches of all cores
--   columns        of a block, about; those are drawn that divide the row into whole vectors
--   vectors        that maxima, and sums, of a block are first reduced to
-- Source: Milakov & Gimelshein, "Online normalizer calculation for softmax", 2018, section 3.1.
local common = msched.load "rules.common"

-- What there is of a softmax's chain around the sum: names of its blocks; nil: it is none. readers: of exponentials.
local function find_chain(sch, sum)
  local function reduces(b) return sch:has_init(b) end
  local chain = {sum = sch:block_name(sum), readers = {}}
  local reader = sum
  if not sch:has_call(sum, "exp") then
    chain.powers = common.names_where(sch, sch:producers(sum), function(b)
      return sch:is_spatial(b) and sch:has_call(b, "exp")
    end)[1]
    if not chain.powers then return nil end
    reader = sch:get_sblock(chain.powers)
    for _, name in ipairs(sch:consumers(reader)) do
      if name ~= chain.sum then chain.readers[#chain.readers + 1] = name end
    end
  end
  chain.maximum = common.names_where(sch, sch:producers(reader), reduces)[1]
  return chain.maximum and chain
end

-- Lengths of blocks, of whole vectors, that divide the row: the nearest to each that is asked for.
local function block_lengths(length, lanes, wanted)
  local list, known = {}, {}
  for _, columns in ipairs(wanted) do
    local best
    for n = math.max(lanes, columns // 2 // lanes * lanes), math.min(length // 2, 2 * columns), lanes do
      if length % n == 0 and (not best or math.abs(n - columns) < math.abs(best - columns)) then best = n end
    end
    if best and not known[best] then
      known[best] = true
      list[#list + 1] = best
    end
  end
  return list
end

local function loops_of(s, block) return {s:get_loops(block)} end

local function place(s, block, loop) s:reverse_compute_at(block, loop, {preserve_unit_loops = true}) end

-- Divides the last loop around a block by each of these in turn; the innermost part becomes vectors.
local function vectorize_columns(s, block, ...)
  local loops = loops_of(s, block)
  local inner = loops[#loops]
  for _, extent in ipairs {...} do inner = select(2, s:split(inner, {msched.rest, extent})) end
  s:vectorize(inner)
end

-- Has lanes of vectors reduce a block of columns each for itself: the block that does.
local function reduce_by_lanes(s, block, lanes)
  local loops = loops_of(s, block)
  local _, lane = s:split(loops[#loops], {msched.rest, lanes})
  return s:rfactor(lane, -1)
end

-- Lanes of partial results become vectors, inside of what is reduced.
local function vectorize_lanes(s, block)
  local loops, kinds = loops_of(s, block), s:loop_iter_kinds(block)
  if kinds[#kinds] == "reduce" then
    s:reorder {loops[#loops], loops[#loops - 1]}
    loops = loops_of(s, block)
  end
  s:vectorize(loops[#loops])
end

-- A block of rows that are the sum's, and lie one element after another.
local function reads_rows(s, block, length)
  local loops = loops_of(s, block)
  local last = loops[#loops]
  return #loops > 1 and s:is_spatial(block) and s:extent(last) == length and s:write_stride(block, 0, last) == 1
end

-- Puts readers of exponentials under the rows' loop, in blocks as the exponentials are; false: one does not go there.
local function place_readers(s, chain, row, length, columns, lanes)
  for _, name in ipairs(chain.readers) do
    local block = s:get_sblock(name)
    if not reads_rows(s, block, length) or not s:can_reverse_compute_at(block, row) then return false end
    place(s, block, row)
    vectorize_columns(s, block, columns, lanes)
    common.draw_nontemporal(s, block, {2, 1, 0})
  end
  return true
end

-- Puts all passes of a row into one loop, and those of a block of columns into one inside it.
local function schedule(s, chain, made, length, columns, lanes)
  local maxima, sums, factor = table.unpack(made)
  local partial_maxima, partial_sums = reduce_by_lanes(s, maxima, lanes), reduce_by_lanes(s, sums, lanes)
  local loops = loops_of(s, partial_maxima)
  local row, block = loops[#loops - 3], loops[#loops - 2]
  vectorize_lanes(s, partial_maxima)
  place(s, maxima, block)
  if chain.powers then
    local powers = s:get_sblock(chain.powers)
    place(s, powers, block)
    vectorize_columns(s, powers, lanes)
  end
  place(s, partial_sums, block)
  vectorize_lanes(s, partial_sums)
  place(s, sums, block)
  place(s, s:get_sblock(chain.maximum), row)
  place(s, factor, row)
  place(s, s:get_sblock(chain.sum), row)
  if chain.scale then place(s, s:get_sblock(chain.scale), row) end
  return place_readers(s, chain, row, length, columns, lanes), partial_maxima, partial_sums
end

-- No other rule schedules these blocks.
local function settle(s, blocks, names)
  for _, name in ipairs(names) do blocks[#blocks + 1] = s:get_sblock(name) end
  for _, b in ipairs(blocks) do s:annotate(b, "schedule_rule", "None") end
  s:annotate(blocks[1], common.SPATIAL, 0)
end

local function rebase(sch, block, chain, length, lanes, lengths)
  local s = sch:copy()
  local sum = s:handle(block)
  if chain.powers and #chain.readers == 0 then
    s:compute_inline(s:get_sblock(chain.powers))
    chain.powers = nil
  end
  local columns = #lengths > 1 and common.sample_equal(s, lengths) or lengths[1]
  local done, maxima, sums, factor = s:try("rebase_exponential", s:get_sblock(chain.maximum), sum, columns, 1)
  if not done then return nil end
  local scale = chain.sum .. "_scale"
  chain.scale = s:has_block(scale) and scale or nil
  local placed, partial_maxima, partial_sums = schedule(s, chain, {maxima, sums, factor}, length, columns, lanes)
  if not placed then return nil end
  local names = {chain.maximum, chain.sum}
  for _, name in ipairs {chain.powers or false, chain.scale or false, table.unpack(chain.readers)} do
    if name then names[#names + 1] = name end
  end
  settle(s, {partial_maxima, partial_sums, maxima, sums, factor}, names)
  return s
end

return msched.rule {
  name = "rebase_exponential",
  at = "blocks",
  apply = function(sch, block, context, self)
    local p, target = self.parameters, context.target
    if sch:is_root(block) or not sch:has_init(block) or not common.is_nest(sch, block) then return {sch} end
    if not common.fills_caches(sch, target, p.least_caches) then return {sch} end
    local rows, length = common.lengths(sch, block)
    local chain = rows and rows > 1 and find_chain(sch, block)
    if not chain then return {sch} end
    local lanes = target.vector_bits // 32 * p.vectors
    local lengths = block_lengths(length, lanes, p.columns)
    local s = #lengths > 0 and rebase(sch, block, chain, length, lanes, lengths)
    return s and {sch, s} or {sch}
  end,
}
