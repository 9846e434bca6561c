-- Factors a long reduction that has little else to do in parallel: partial results first, their sum after. Opens three
-- schedules: as it was, and factored by the outer or by the inner part of the fused reduction.
local common = msched.load "rules.common"

return msched.rule {
  name = "add_rfactor",
  apply = function(sch, block, context, self)
    local p = self.parameters
    local jobs = context.target.cores * p.jobs_per_core
    local least = (p.least_per_core or 0) * context.target.cores
    if common.is_root(sch, block) or not common.is_nest(sch, block) or not common.needs_rfactor(sch, block, jobs, least) then return {sch} end
    local results = {sch}
    local base = sch:copy()
    local fused, spatial = common.fuse_reduction(base, base:handle(block))
    local split = {base:split(fused, {base:sample_perfect_tile(fused, 2, p.max_innermost)})}
    for i = 1, 2 do
      local s = i == 1 and base:copy() or base
      if s:can_rfactor(s:handle(split[i]), spatial) then -- a reducer that is known, for one
        s:rfactor(s:handle(split[i]), spatial)
        s:annotate(s:handle(block), "meta_schedule.random_compute_producer", 1)
        results[#results + 1] = s
      end
    end
    return results
  end,
}
