-- Inlines blocks that compute one constant: a scalar without inputs costs a buffer and a pass for nothing.
local common = msched.load "rules.common"

return msched.rule {
  name = "inline_constant_scalars",
  at = "blocks",
  apply = function(sch, block)
    if sch:is_root(block) or #sch:reads(block) > 0 then return {sch} end
    for _, region in ipairs(sch:writes(block)) do if #region.shape > 0 then return {sch} end end
    if #sch:consumers(block) == 0 or not sch:can_inline(block) then return {sch} end
    sch:compute_inline(block)
    return {sch}
  end,
}
