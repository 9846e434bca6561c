-- A norm before a product, as of a transformer's layers: what it scales may be computed where the product's tiles are
-- copied to shared memory, from statistics that a small kernel has left, so that it is in memory at no time; or by a
-- kernel of its own, of whose results tiles are copied as of any others, by TMA. Opens two schedules: as it was, which
-- auto_inline after it makes the first of, and the second. Needs products that are tiled.
local common = msched.load "rules.common"

-- Whether the block scales what it reads by what another has reduced of the same, and computes nothing dear.
local function is_scaling(sch, block)
  if sch:has_call(block, "exp") then return false end
  local read = {}
  for _, r in ipairs(sch:reads(block)) do read[r.buffer] = true end
  for _, producer in ipairs {sch:get_producers(block)} do
    for _, r in ipairs(sch:has_init(producer) and sch:reads(producer) or {}) do
      if read[r.buffer] and r.buffer ~= sch:writes(producer)[1].buffer then return true end
    end
  end
  return false
end

return msched.rule {
  name = "norm_prologue",
  at = "blocks",
  apply = function(sch, block)
    local tiled = #sch:blocks_with "meta_schedule.tiling_structure" > 0
    if sch:is_root(block) or not tiled or not sch:is_spatial(block) or #sch:consumers(block) == 0
        or common.is_kept(sch, block) or not sch:can_inline(block) or not is_scaling(sch, block) then
      return {sch}
    end
    local s = sch:copy()
    s:annotate(s:handle(block), common.INLINE, "disable")
    return {sch, s}
  end,
}
