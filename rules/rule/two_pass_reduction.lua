-- Reduces in two kernels what has too few results to keep a GPU's multiprocessors busy: the blocks of the first have a
-- run of the reduction each, whose threads reduce it together; what they leave is reduced by the second, as the rules
-- after this one see fit. Opens two schedules: so, and as it was. MetaSchedule has no such rule: one block reduces all
-- of a norm there.
-- Source: Harris, "Optimizing parallel reduction in CUDA", 2007.
local common = msched.load "rules.common"

-- Numbers of runs that are as long as one another.
local function runs_of(length, p)
  local list = {}
  for n = p.least_blocks, math.min(p.most_blocks, length) do if length % n == 0 then list[#list + 1] = n end end
  return list
end

return msched.rule {
  name = "two_pass_reduction",
  at = "blocks",
  apply = function(sch, block, context, self)
    local p = self.parameters
    if sch:is_root(block) or not common.is_nest(sch, block)
        or not common.needs_rfactor(sch, block, p.most_results, 1) then
      return {sch}
    end
    local spatial, length = common.lengths(sch, block)
    local runs = runs_of(length, p)
    if spatial > p.most_results or length < p.least or #runs == 0 then return {sch} end
    local s = sch:copy()
    local fused, axis = common.fuse_reduction(s, s:handle(block))
    local run = s:split(fused, {common.sample_equal(s, runs), msched.rest})
    if not s:can_rfactor(run, axis) then return {sch} end
    local partial = s:rfactor(run, axis)
    local loops = {s:get_loops(partial)}
    local _, threads = s:split(table.remove(loops), {msched.rest, common.sample_equal(s, p.thread_extents)})
    s:bind(#loops > 1 and s:fuse(loops) or loops[1], "blockIdx.x")
    s:bind(threads, "threadIdx.x")
    return {s, sch}
  end,
}
