-- Notes on the root how far the function shall be run in parallel, vectorized and unrolled; postprocessors do it once
-- all blocks have their places.
local common = msched.load "rules.common"

return msched.rule {
  name = "parallel_vectorize_unroll",
  apply = function(sch, block, context)
    if not common.is_root(sch, block) then return {sch} end
    local p = context.parallel
    if #p.jobs_per_core > 0 then
      local jobs, chances = {}, {}
      for i, n in ipairs(p.jobs_per_core) do jobs[i], chances[i] = n * context.target.cores, 1 / #p.jobs_per_core end
      sch:annotate(block, "meta_schedule.parallel", sch:sample_categorical(jobs, chances))
    end
    if p.max_vector_extent then sch:annotate(block, "meta_schedule.vectorize", p.max_vector_extent) end
    if #p.unroll_steps > 0 then
      local equal = {}
      for i = 1, #p.unroll_steps do equal[i] = 1 / #p.unroll_steps end
      local step = sch:sample_categorical(p.unroll_steps, equal)
      sch:annotate(block, p.unroll_explicit and "meta_schedule.unroll_explicit" or "meta_schedule.unroll_implicit", step)
    end
    return {sch}
  end,
}
