-- Multi-level tiling for machines of wide vectors: the loop over the last dimension of the result always has one whole
-- vector innermost. Parameters: those of tiling.lua, and vector_bits (the target's where it is left out).
local common, tiling = msched.load "rules.common", msched.load "rules.tiling"

local function split_by_vector(vector_bits)
  return function(sch, block, loop, count, p)
    if sch:write_stride(block, 0, loop) ~= 1 then return tiling.split(sch, block, loop, count, p) end
    local lanes, extent = vector_bits // (8 * sch:writes(block)[1].bytes), sch:extent(loop)
    if extent and extent <= lanes then
      local factors = {msched.rest}
      for i = 2, count - 1 do factors[i] = 1 end
      factors[count] = extent
      return {sch:split(loop, factors)}
    end
    local outer, vector = sch:split(loop, {msched.rest, lanes})
    local parts = count > 2 and tiling.split(sch, block, outer, count - 1, p) or {outer}
    parts[count] = vector
    return parts
  end
end

return msched.rule {
  name = "multi_level_tiling_wide_vector",
  at = "blocks",
  apply = function(sch, block, context, self)
    if not common.can_tile(sch, block) then return {sch} end
    local p = self.parameters
    return tiling.apply(sch, block, p, split_by_vector(p.vector_bits or context.target.vector_bits))
  end,
}
