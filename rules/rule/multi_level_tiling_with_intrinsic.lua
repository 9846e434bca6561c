-- Multi-level tiling around a tensor intrinsic: the innermost iterations are as many as its description has, and become
-- a block of their own, which rewrite_tensorize has done by the intrinsic. Opens what each of the intrinsics makes that
-- fits, and the block as it was. Parameters: those of tiling.lua, and intrinsics, a list of names.
local common, tiling = msched.load "rules.common", msched.load "rules.tiling"

-- The schedules that one intrinsic makes of the block: none where it does not fit.
local function with_intrinsic(sch, block, name, p)
  local s = sch:copy()
  local outer = tiling.blockize_for(s, s:handle(block), name)
  if not outer or not tiling.accepts(s, outer, name) then return {} end
  s:annotate(outer, "meta_schedule.auto_tensorize", name)
  return tiling.apply(s, outer, p)
end

return msched.rule {
  name = "multi_level_tiling_with_intrinsic",
  at = "blocks",
  apply = function(sch, block, _, self)
    if not common.can_tile(sch, block) then return {sch} end
    local results = {}
    for _, name in ipairs(self.parameters.intrinsics) do
      local made = with_intrinsic(sch, block, name, self.parameters)
      table.move(made, 1, #made, #results + 1, results)
    end
    results[#results + 1] = sch
    return results
  end,
}
