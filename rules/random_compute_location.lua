-- Draws where a block that was left alone shall be computed: inside a loop of its consumers, inlined, or where it is.
local common = msched.load "rules.common"

local function applies(sch, block)
  if common.is_root(sch, block) or #sch:consumers(block) == 0 then return false end
  local kinds, loops = common.loop_kinds(sch, block)
  if #loops == 0 then return false end
  if common.is_tiled(sch, block) or #sch:writes(block) ~= 1 then return false end
  if sch:annotation(block, "meta_schedule.random_compute_producer") then return false end
  for _, kind in ipairs(kinds) do if kind ~= "spatial" and kind ~= "reduce" then return false end end
  return not common.needs_tiling(sch, block)
end

local function compute_somewhere(sch, block)
  local location = sch:sample_compute_location(block)
  sch:compute_at(block, location, {preserve_unit_loops = true})
end

return msched.rule {
  name = "random_compute_location",
  apply = function(sch, block)
    if not common.is_root(sch, block) and sch:annotation(block, "meta_schedule.random_compute_producer") then
      sch:unannotate(block, "meta_schedule.random_compute_producer")
      local producers = {sch:get_producers(block)}
      if #producers > 0 then compute_somewhere(sch, producers[1]) end
      return {sch}
    end
    if applies(sch, block) then compute_somewhere(sch, block) end
    return {sch}
  end,
}
