-- Keeps a row in shared memory that the threads of a block read several times, as softmax does for its maximum, its sum
-- and its results: copied there once, by vectors. Without, a row is read from memory again where registers do not hold
-- it from one pass to the next. Opens two schedules: as it was, and so. Needs reductions that cross_thread_reduction
-- has computed where their results are read.
local common = msched.load "rules.common"

-- The number of the block's loop that is bound to threads, and the loop; nil: there is none.
local function thread_loop(sch, block)
  for i, l in ipairs {sch:get_loops(block)} do
    if (sch:thread(l) or ""):find("threadIdx", 1, true) then return i, l end
  end
end

-- Elements of a row, by the reduction over it; nil: their number is not known.
local function length_of(sch, reduction)
  local extents, length = sch:iter_extents(reduction), 1
  for v, kind in ipairs(sch:iter_kinds(reduction)) do
    if kind == "reduce" then length = length and extents[v] and length * extents[v] end
  end
  return length
end

-- The blocks that read a buffer, and how many of the block's loops are around all of them.
local function readers_of(sch, block, buffer)
  local readers, around, own = {}, #{sch:get_loops(block)}, sch:writes(block)[1].buffer
  for _, name in ipairs(sch:block_names()) do
    local reader = sch:get_sblock(name)
    for _, r in ipairs(sch:is_root(reader) and {} or sch:reads(reader)) do
      if r.buffer == buffer then
        readers[#readers + 1] = reader
        if sch:writes(reader)[1].buffer ~= own then around = math.min(around, sch:shared_loops(block, reader)) end
        break
      end
    end
  end
  return readers, around
end

-- A row of the read region that can be kept: {index, readers, around, elements, lanes}; nil: it cannot.
local function row_of(sch, block, index, read, limits)
  local readers, around = readers_of(sch, block, read.buffer)
  local at, loops = thread_loop(sch, block), {sch:get_loops(block)}
  local is_along = sch:strides(block, loops[#loops])[index + 1] == 1
  if not is_along or #readers < 2 or around == 0 or around >= at then return nil end
  local elements
  for _, reader in ipairs(readers) do
    if sch:has_init(reader) then elements = length_of(sch, reader) end
  end
  if not elements or elements * read.bytes > limits.shared_bytes then return nil end
  local lanes = math.max(1, limits.vector_bytes // read.bytes)
  while lanes > 1 and elements % lanes ~= 0 do lanes = lanes // 2 end
  return {index = index, readers = readers, around = around, bytes = elements * read.bytes, lanes = lanes}
end

local function keep(sch, block, row, limits)
  local s = sch:copy()
  local b, readers = s:handle(block), {}
  for i, reader in ipairs(row.readers) do readers[i] = s:handle(reader) end
  local loops = {s:get_loops(b)}
  local _, threads = thread_loop(s, b)
  local extent = s:split_factor(threads) or s:extent(threads)
  local copy = s:cache_read(b, row.index, row.bytes > limits.static_bytes and "shared.dyn" or "shared", readers)
  s:compute_at(copy, loops[row.around], {preserve_unit_loops = true})
  local fused = s:fuse(select(row.around + 1, s:get_loops(copy)))
  local _, inner, vector = s:split(fused, {msched.rest, extent, row.lanes > 1 and row.lanes or nil})
  s:bind(inner, "threadIdx.x")
  if vector then s:vectorize(vector) end
  return s
end

return msched.rule {
  name = "keep_rows",
  apply = function(sch, block, context, self)
    if sch:is_root(block) or not sch:is_spatial(block) or not thread_loop(sch, block) then return {sch} end
    for index, read in ipairs(sch:reads(block)) do
      local row = row_of(sch, block, index - 1, read, self.parameters)
      if row then return {sch, keep(sch, block, row, self.parameters)} end
    end
    return {sch}
  end,
}
