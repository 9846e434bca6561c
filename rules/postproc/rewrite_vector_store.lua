-- Writes out what multi-level tiling gathered in a thread's registers by whole vectors: the innermost loop, along which
-- results lie side by side, is split by as many as one access has, at most, and divide it and the result's rows.
local TILED, TENSORIZED = "meta_schedule.tiling_structure", "meta_schedule.auto_tensorize"

-- Along the loop what the block touches goes on element by element, or stays.
local function is_contiguous(sch, block, loop)
  if sch:write_stride(block, 0, loop) ~= 1 then return false end
  for _, stride in ipairs(sch:strides(block, loop)) do
    if stride ~= 0 and stride ~= 1 then return false end
  end
  return true
end

local store_vectors = msched.memoized(function(sch, block, bytes)
  local loops, result = {sch:get_loops(block)}, sch:writes(block)[1]
  local inner, row = loops[#loops], result.shape[#result.shape]
  local extent = inner and row and sch:loop_kind(inner) == "serial" and sch:extent(inner)
  if not extent or extent <= 1 or not is_contiguous(sch, block, inner) then return end
  local lanes = bytes // result.bytes
  while lanes > 1 and (extent % lanes ~= 0 or row % lanes ~= 0) do lanes = lanes // 2 end
  if lanes <= 1 then return end
  local vector = inner
  if extent > lanes then vector = select(2, sch:split(inner, {msched.rest, lanes})) end
  sch:try("vectorize", vector)
end)

-- Whether the block writes to memory what the tiled one has left in registers.
local function writes_out(sch, tiled, block)
  local writes = sch:writes(block)
  return sch:writes(tiled)[1].scope == "local" and #writes == 1 and writes[1].scope ~= "local"
    and not sch:annotation(block, TENSORIZED) and sch:shared_loops(tiled, block) > 0
end

return msched.postproc {
  name = "rewrite_vector_store",
  apply = function(sch, context)
    for _, name in ipairs(sch:blocks_with(TILED)) do
      local tiled = sch:get_sblock(name)
      local readers = {sch:get_consumers(tiled)}
      if #readers == 1 and writes_out(sch, tiled, readers[1]) then
        store_vectors(sch, readers[1], context.target.vector_bytes)
      end
    end
  end,
}
