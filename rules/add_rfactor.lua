-- Factors a long reduction that has little else to do in parallel: partial results first, their sum after. Opens three
-- schedules: as it was, and factored by the outer or by the inner part of the fused reduction.
local common = msched.load "rules.common"

local MAX_INNERMOST = 64

-- Brings spatial loops in front, reduction loops behind, and fuses the latter.
local function fuse_reduction(sch, block)
  local kinds, loops = common.loop_kinds(sch, block)
  local spatial, reduce = {}, {}
  for i, l in ipairs(loops) do table.insert(kinds[i] == "spatial" and spatial or reduce, l) end
  local order = {}
  for _, l in ipairs(spatial) do order[#order + 1] = l end
  for _, l in ipairs(reduce) do order[#order + 1] = l end
  sch:reorder(order)
  local fused = #reduce == 1 and reduce[1] or sch:fuse(reduce)
  return fused, #spatial
end

return msched.rule {
  name = "add_rfactor",
  apply = function(sch, block, context)
    local parallel = context.target.cores * context.jobs_per_core
    if common.is_root(sch, block) or not common.is_nest(sch, block) or not common.needs_rfactor(sch, block, parallel) then return {sch} end
    local results = {sch}
    local base = sch:copy()
    local fused, spatial = fuse_reduction(base, base:handle(block))
    local split = {base:split(fused, {base:sample_perfect_tile(fused, 2, MAX_INNERMOST)})}
    for i = 1, 2 do
      local s = i == 1 and base:copy() or base
      if s:can_rfactor(s:handle(split[i]), spatial) then -- a reducer that is known, for one
        local factored = s:rfactor(s:handle(split[i]), spatial)
        s:annotate(factored, "meta_schedule.random_compute_producer", 1)
        s:annotate(s:handle(block), "meta_schedule.random_compute_producer", 1)
        results[#results + 1] = s
      end
    end
    return results
  end,
}
