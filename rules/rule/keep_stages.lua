-- Keeps a block of a function that reduces nothing for which each element is used several times: by a window, as the
-- stages of a blur are, or along an iteration that its buffer has not. Opens two schedules: as it was, in which
-- auto_inline computes the element again for each use, and one in which it stays, for spatial_tiling to place.
local common = msched.load "rules.common"

-- Whether the reader's iterations use elements of the buffer again.
local function uses_again(sch, reader, buffer)
  local extents, uses = sch:iter_extents(reader), sch:read_uses(reader)
  for i, region in ipairs(sch:reads(reader)) do
    if region.buffer == buffer then
      for _, n in ipairs(region.extents) do if n ~= 1 then return true end end
      local used = {}
      for _, v in ipairs(uses[i]) do used[v] = true end
      for v, extent in ipairs(extents) do if extent ~= 1 and not used[v] then return true end end
    end
  end
  return false
end

local function is_used_again(sch, block)
  local buffer = sch:writes(block)[1].buffer
  for _, name in ipairs(sch:consumers(block)) do
    if uses_again(sch, sch:get_sblock(name), buffer) then return true end
  end
  return false
end

return msched.rule {
  name = "keep_stages",
  at = "blocks",
  apply = function(sch, block)
    if sch:is_root(block) or not sch:is_spatial_function() or common.is_kept(sch, block) then return {sch} end
    if #sch:writes(block) ~= 1 or #sch:reads(block) == 0 or #sch:consumers(block) == 0 then return {sch} end
    if not sch:can_inline(block) or not is_used_again(sch, block) then return {sch} end
    local kept = sch:copy()
    kept:annotate(kept:handle(block), common.INLINE, "disable")
    return {sch, kept}
  end,
}
