-- Factors a long reduction that has little else to do in parallel: partial results first, their sum after. Opens three
-- schedules: as it was, and factored by the outer or by the inner part of the fused reduction.
local common = msched.load "rules.common"

local function reduces_once(sch, block)
  local count = 0
  for _, kind in ipairs(sch:iter_kinds(block)) do count = count + (kind == "reduce" and 1 or 0) end
  return count == 1
end

-- The partial results' own iteration goes last, so that wherever they are computed they are a vector, to which each
-- step of the reduction adds. Of several reductions that were fused, how many iterations there are is up to the draw.
local function put_lanes_last(sch, partial)
  local order = {}
  for i = 1, #sch:iter_kinds(partial) - 1 do order[i] = i end
  order[#order + 1] = 0
  sch:reorder_block_iter_var(partial, order)
end

return msched.rule {
  name = "add_rfactor",
  at = "blocks",
  apply = function(sch, block, context, self)
    local p = self.parameters
    local jobs = context.target.cores * p.jobs_per_core
    local least = (p.least_per_core or 0) * context.target.cores
    if sch:is_root(block) or not common.is_nest(sch, block) or not common.needs_rfactor(sch, block, jobs, least) then
      return {sch}
    end
    local results, lanes_last = {sch}, p.lanes_last and reduces_once(sch, block)
    local base = sch:copy()
    local fused, spatial = common.fuse_reduction(base, base:handle(block))
    local split = {base:split(fused, {base:sample_perfect_tile(fused, 2, p.max_innermost)})}
    for i = 1, 2 do
      local s = i == 1 and base:copy() or base
      if s:can_rfactor(s:handle(split[i]), spatial) then -- a reducer that is known, for one
        local partial = s:rfactor(s:handle(split[i]), spatial)
        if i == 2 and lanes_last then put_lanes_last(s, partial) end
        s:annotate(s:handle(block), "meta_schedule.random_compute_producer", 1)
        results[#results + 1] = s
      end
    end
    return results
  end,
}
