-- Targets as data: which rules, postprocessors and mutators open and walk the space, with their numbers.
-- The numbers are MetaSchedule's; register tiles and packing are ours.
local targets = {}

targets.llvm = {
  rules = {"inline_constant_scalars", "auto_inline", "add_rfactor", "register_tile", "multi_level_tiling", "parallel_vectorize_unroll",
           "random_compute_location"},
  postprocs = {"disallow_dynamic_loop", "rewrite_parallel_vectorize_unroll", "rewrite_reduction_block"},
  mutators = {{"tile_size", 0.9}, {"compute_location", 0.05}, {"unroll", 0.03}, {"parallel", 0.02}},
  jobs_per_core = 16,
  tiling = {structure = "SSRSRS", max_innermost = 64, write_levels = {2, 1}},
  parallel = {jobs_per_core = {16, 4, 1}, max_vector_extent = 64, unroll_steps = {0, 16, 64, 512}, unroll_explicit = true},
}

-- What rules get beside schedule and block.
function targets.context(target)
  local t = targets[target.kind]
  if not t then error("no rules are known for targets of kind " .. tostring(target.kind), 2) end
  local context = {target = target}
  for _, k in ipairs(msched.sorted_keys(t)) do context[k] = t[k] end
  return context
end

return targets
