-- Keeps rows in shared memory that the threads of a block read several times, as softmax does for its maximum, its sum
-- and its results: copied there once, by vectors. Without, a row is read from memory again where registers do not hold
-- it from one pass to the next. Where the blocks of a cluster share out a row, each keeps its part. Opens two
-- schedules: as it was, and so. Needs reductions that cross_thread_reduction has computed where their results are read.
local common = msched.load "rules.common"

-- The number of the block's loop that is bound to such an axis, and the loop; nil: there is none.
local function bound_loop(sch, block, axis)
  for i, l in ipairs {sch:get_loops(block)} do
    if (sch:thread(l) or ""):find(axis, 1, true) then return i, l end
  end
end

local function thread_loop(sch, block) return bound_loop(sch, block, "threadIdx") end
local function cluster_loop(sch, block) return select(2, bound_loop(sch, block, "clusterCtaIdx")) end

-- Elements of a row, by the reduction over it; nil: their number is not known.
local function length_of(sch, reduction)
  local extents, length = sch:iter_extents(reduction), 1
  for v, kind in ipairs(sch:iter_kinds(reduction)) do
    if kind == "reduce" then length = length and extents[v] and length * extents[v] end
  end
  return length
end

-- The blocks that read a buffer, how many of the block's loops are around all of them, and their names.
local function readers_of(sch, block, buffer)
  local readers, names, around, own = {}, {}, #{sch:get_loops(block)}, sch:writes(block)[1].buffer
  for _, name in ipairs(sch:block_names()) do
    local reader = sch:get_sblock(name)
    for _, r in ipairs(sch:is_root(reader) and {} or sch:reads(reader)) do
      if r.buffer == buffer then
        readers[#readers + 1], names[#names + 1] = reader, name
        if sch:writes(reader)[1].buffer ~= own then around = math.min(around, sch:shared_loops(block, reader)) end
        break
      end
    end
  end
  return readers, around, names
end

-- Into how many parts blocks of a cluster may cut the row; 1: none do. nil: some of its readers do, others do not.
local function parts_of(sch, readers, most)
  local cut = 0
  for _, reader in ipairs(readers) do if cluster_loop(sch, reader) then cut = cut + 1 end end
  return cut == 0 and 1 or cut == #readers and most or nil
end

-- A row of the read region that can be kept in so many bytes: {index, names, around, bytes, lanes}; nil: it cannot.
local function row_of(sch, block, index, read, limits, left)
  local readers, around, names = readers_of(sch, block, read.buffer)
  local at, loops = thread_loop(sch, block), {sch:get_loops(block)}
  local is_along = sch:strides(block, loops[#loops])[index + 1] == 1
  local parts = parts_of(sch, readers, limits.parts)
  if not is_along or #readers < 2 or around == 0 or around >= at or not parts then return nil end
  local elements
  for _, reader in ipairs(readers) do
    if sch:has_init(reader) then elements = length_of(sch, reader) end
  end
  if not elements then return nil end
  local bytes, lanes = (elements + parts - 1) // parts * read.bytes, math.max(1, limits.vector_bytes // read.bytes)
  if bytes > left then return nil end
  while lanes > 1 and elements % (lanes * parts) ~= 0 do lanes = lanes // 2 end
  return {index = index, names = names, around = around, bytes = bytes, lanes = lanes}
end

-- Copies the row for its readers.
local function keep(s, b, row, limits)
  local readers = {}
  for i, name in ipairs(row.names) do readers[i] = s:get_sblock(name) end
  local loops, rank = {s:get_loops(b)}, cluster_loop(s, b)
  local _, threads = thread_loop(s, b)
  local extent = s:split_factor(threads) or s:extent(threads)
  local blocks = rank and (s:split_factor(rank) or s:extent(rank))
  local is_large = row.bytes > limits.static_bytes or rank ~= nil
  local copy = s:cache_read(b, row.index, is_large and "shared.dyn" or "shared", readers)
  s:compute_at(copy, loops[row.around], {preserve_unit_loops = true})
  local fused = s:fuse(select(row.around + 1, s:get_loops(copy)))
  if rank then
    local mine, part = s:split(fused, {blocks, msched.rest})
    s:bind(mine, "clusterCtaIdx.x")
    fused = part
  end
  local _, inner, vector = s:split(fused, {msched.rest, extent, row.lanes > 1 and row.lanes or nil})
  s:bind(inner, "threadIdx.x")
  if vector then s:vectorize(vector) end
end

return msched.rule {
  name = "keep_rows",
  at = "blocks",
  apply = function(sch, block, context, self)
    if sch:is_root(block) or not sch:is_spatial(block) or not thread_loop(sch, block) then return {sch} end
    local limits = self.parameters
    local left, s, b = limits.shared_bytes, nil, nil
    for index, read in ipairs(sch:reads(block)) do
      local row = row_of(s or sch, b or block, index - 1, read, limits, left)
      if row then
        if not s then
          s = sch:copy()
          b = s:handle(block)
        end
        keep(s, b, row, limits)
        left = left - row.bytes
      end
    end
    return {sch, s}
  end,
}
