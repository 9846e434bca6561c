-- Notes on the root how far the function shall be run in parallel, vectorized and unrolled; postprocessors do it once
-- all blocks have their places.
local common = msched.load "rules.common"

return msched.rule {
  name = "parallel_vectorize_unroll",
  apply = function(sch, block, context, self)
    if not sch:is_root(block) then return {sch} end
    local p = self.parameters
    if p.jobs_per_core then
      local jobs = {}
      for i, n in ipairs(p.jobs_per_core) do jobs[i] = n * context.target.cores end
      sch:annotate(block, "meta_schedule.parallel", #jobs > 1 and common.sample_equal(sch, jobs) or jobs[1])
    end
    if p.max_vector_extent then sch:annotate(block, "meta_schedule.vectorize", p.max_vector_extent) end
    if p.unroll_steps and not sch:is_spatial_function() then
      local key = p.unroll_explicit and "meta_schedule.unroll_explicit" or "meta_schedule.unroll_implicit"
      sch:annotate(block, key, common.sample_equal(sch, p.unroll_steps))
    end
    return {sch}
  end,
}
