-- Notes on the root how far the function shall be run in parallel, vectorized and unrolled; postprocessors do it once
-- all blocks have their places.
local common = msched.load "rules.common"

-- Whether the function has so little to do that it may be over before threads have begun: by the iterations of its
-- blocks.
local function is_short(sch, most)
  local iterations = 0
  for _, name in ipairs(most and sch:block_names() or {}) do
    local count = 1
    for _, extent in ipairs(sch:iter_extents(sch:get_sblock(name))) do count = count * (extent or math.huge) end
    iterations = iterations + count
  end
  return iterations > 0 and iterations <= most
end

-- Whether nothing of the function is to be unrolled: it reduces nothing, or what there is has its tiles.
local function is_settled(sch) return sch:is_spatial_function() or #sch:blocks_with(common.SPATIAL) > 0 end

return msched.rule {
  name = "parallel_vectorize_unroll",
  at = "root",
  apply = function(sch, block, context, self)
    if not sch:is_root(block) then return {sch} end
    local p = self.parameters
    if p.jobs_per_core then
      local jobs = {}
      for i, n in ipairs(p.jobs_per_core) do jobs[i] = n * context.target.cores end
      if is_short(sch, p.serial_iterations) then jobs[#jobs + 1] = 0 end
      sch:annotate(block, "meta_schedule.parallel", #jobs > 1 and common.sample_equal(sch, jobs) or jobs[1])
    end
    if p.max_vector_extent then sch:annotate(block, "meta_schedule.vectorize", p.max_vector_extent) end
    if p.unroll_steps and not is_settled(sch) then
      local key = p.unroll_explicit and "meta_schedule.unroll_explicit" or "meta_schedule.unroll_implicit"
      sch:annotate(block, key, common.sample_equal(sch, p.unroll_steps))
    end
    return {sch}
  end,
}
