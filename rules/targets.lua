-- Targets as data: which rules, postprocessors and mutators open and walk the space, and the parameters of each by its
-- name. What a machine has (cores, registers, threads a block) comes with the target itself, as context.target.
local targets = {}


-- CPUs: MetaSchedule's rules, with register tiles and packing, which are ours.
targets.llvm = {
  rules = {"inline_constant_scalars", "auto_inline", "add_rfactor", "register_tile", "multi_level_tiling", "parallel_vectorize_unroll",
           "random_compute_location"},
  postprocs = {"disallow_dynamic_loop", "rewrite_parallel_vectorize_unroll", "rewrite_reduction_block", "rewrite_tensorize", "rewrite_layout"},
  mutators = {{"tile_size", 0.9}, {"compute_location", 0.05}, {"unroll", 0.03}, {"parallel", 0.02}, {"crossover", 0.05}},
  -- what drafts weigh with, in cycles of one core; search.h has the words
  draft = {multiply_adds = 2, loads = 2, latency = 4, reload = 5, unrolled = 16, iteration = 1.5, copy = 0.15, parallel = 5000, guarded = 30,
           bytes_a_cycle = {48, 20, 6}},
  auto_inline = {into_consumer = true, constant_tensors = true, no_branches = true, in_order = true, disallowed = {"exp"}},
  add_rfactor = {jobs_per_core = 16, least_per_core = 16, max_innermost = 64},
  multi_level_tiling = {structure = "SSRSRS", max_innermost = 64, write = {need = "may", levels = {1, 2}, scope = "global"}},
  random_compute_location = {of_outputs = true},
  parallel_vectorize_unroll = {jobs_per_core = {16, 4, 1}, max_vector_extent = 64, unroll_steps = {0, 16, 64, 512}, unroll_explicit = true},
}

-- GPUs: MetaSchedule's rules.
targets.cuda = {
  rules = {"multi_level_tiling", "inline_constant_scalars", "auto_inline", "cross_thread_reduction", "parallel_vectorize_unroll", "auto_bind"},
  postprocs = {"disallow_dynamic_loop", "rewrite_cooperative_fetch", "rewrite_unbound_block", "rewrite_parallel_vectorize_unroll",
               "rewrite_reduction_block", "verify_gpu_code"},
  mutators = {{"tile_size", 0.9}, {"unroll", 0.08}, {"thread_binding", 0.02}},
  multi_level_tiling = function(target)
    return {structure = "SSSRRSRS", max_innermost = 64, binds = {"blockIdx.x", "vthread.x", "threadIdx.x"},
            threads = {least = target.warp, most = target.max_threads}, vector_load_lengths = {1, 2, 3, 4, 8, 16}, vector_bytes = target.vector_bytes,
            write = {need = "must", levels = {3}, scope = "local"}, read = {levels = {4}, scope = "shared"},
            stages = target.arch >= 80 and {4, 5} or {}} -- copies that a thread does not wait for
  end,
  auto_inline = {into_consumer = true, into_producer = true, constant_tensors = true, disallowed = {}},
  cross_thread_reduction = {thread_extents = {4, 8, 16, 32, 64, 128, 256, 512}},
  parallel_vectorize_unroll = {unroll_steps = {0, 16, 32, 64, 128, 256, 512, 1024}, unroll_explicit = true},
  rewrite_unbound_block = {max_blocks = 256},
  verify_gpu_code = {local_bytes = 4096}, -- a few times what a thread's registers hold: much of it would lie in memory
  auto_bind = {max_blocks = 256, thread_extents = {32, 64, 128, 256, 512, 1024}},
}

-- A table with some fields in place of its own.
function targets.changed(base, changes)
  local t = {}
  for k, v in pairs(base) do t[k] = v end
  for k, v in pairs(changes) do t[k] = v end
  return t
end

-- MetaSchedule's own, without what is ours.
targets.metaschedule = {
  cuda = targets.cuda,
  llvm = targets.changed(targets.llvm, {
    rules = {"inline_constant_scalars", "auto_inline", "add_rfactor", "multi_level_tiling", "parallel_vectorize_unroll", "random_compute_location"},
    add_rfactor = {jobs_per_core = 16, max_innermost = 64},
    random_compute_location = {},
    mutators = {{"tile_size", 0.9}, {"compute_location", 0.05}, {"unroll", 0.03}, {"parallel", 0.02}},
    rewrite_parallel_vectorize_unroll = {strided_vectors = true},
    parallel_vectorize_unroll = {jobs_per_core = {16}, max_vector_extent = 64, unroll_steps = {0, 16, 64, 512}, unroll_explicit = true},
  }),
}

-- What rules get beside schedule and block: the target, and what is known of its kind.
function targets.context(target, known)
  known = known or targets[target.kind]
  if not known then error("no rules are known for targets of kind " .. tostring(target.kind), 2) end
  local context = {target = target}
  for _, k in ipairs(msched.sorted_keys(known)) do
    local v = known[k]
    if type(v) == "function" then v = v(target) end
    context[k] = v
  end
  return context
end

return targets
