-- Targets as data: which rules, postprocessors and mutators open and walk the space, and the parameters of each by its
-- name. What a machine has (cores, registers, threads a block) comes with the target itself, as context.target.
local targets = {}

-- CPUs: MetaSchedule's rules, with register tiles and packing, which are ours.
targets.llvm = {
  rules = {"unroll_window", "inline_constant_scalars", "keep_stages", "auto_inline", "fuse_online_softmax",
           "fuse_online_softmax_amx", "online_softmax", "group_sums", "add_rfactor", "register_tile", "dot_tile",
           "amx_tile", "multi_level_tiling", "spatial_tiling", "nontemporal_stores", "parallel_vectorize_unroll",
           "random_compute_location"},
  postprocs = {"disallow_dynamic_loop", "rewrite_layout", "rewrite_parallel_vectorize_unroll",
               "rewrite_reduction_block", "rewrite_tensorize"},
  mutators = {{"tile_size", 0.9}, {"compute_location", 0.05}, {"unroll", 0.03}, {"parallel", 0.02},
              {"crossover", 0.05}},
  -- weights of the analytical model, in cycles of one core; search.h explains them
  analytical = {multiply_adds = 2, loads = 1.6, latency = 4, reload = 5, unrolled = 16, iteration = 0.5, copy = 0.15,
                parallel = 5000, guarded = 3, overrun = 0.1,
                call = 12, division = 12, branch = 0.7, bfloats = 1, exposed = 0.3, doubt = 1.25,
                apart = 0.1, pages = 1536, walk = 60, near_pages = 48, near_walk = 12,
                way_bytes = {4096, 131072, 64}, bytes_a_cycle = {64, 20, 6}},
  auto_inline = {into_consumer = true, constant_tensors = true, no_branches = true, in_order = true,
                 disallowed = {"exp"}},
  unroll_window = {terms = 32, reach = 128},
  fuse_online_softmax = {vectors = {2, 4, 1}, columns = {64, 128, 256}, grown = 2, growth = 0.1},
  fuse_online_softmax_amx = {vectors = {4, 2, 1}, columns = {128, 64, 32}, sketches = 3, growth = 0.15},
  rebase_exponential = {least_caches = 1, columns = {1024, 512}, vectors = 4}, -- asked for by name
  online_softmax = {rows_in_cache = 4},
  add_rfactor = {jobs_per_core = 16, least_per_core = 16, max_innermost = 64, lanes_last = true},
  multi_level_tiling = {structure = "SSRSRS", max_innermost = 64,
                        write = {need = "may", levels = {1, 2}, scope = "global"}},
  random_compute_location = {of_outputs = true},
  spatial_tiling = {unroll = {1, 2, 4, 8, 16}, vectors = {1, 2, 4}, rows = {1, 2, 4, 8, 16, 32}, results = 8},
  nontemporal_stores = {least_caches = 1},
  parallel_vectorize_unroll = {jobs_per_core = {16, 4, 1}, serial_iterations = 1 << 17, max_vector_extent = 64,
                               unroll_steps = {0, 16, 64, 512}, unroll_explicit = true},
  rewrite_parallel_vectorize_unroll = {vector_calls = {"exp", "tanh", "erf"}, vector_divisions = true},
}

-- Registers of a thread that multiplies on tensor cores, beside its accumulators: the analytical model counts them, and
-- the rule leaves them free (old traces state their own). Of 96 random products by wgmma for sm_90a, NVRTC 13 gives no
-- more to 84 %, the median is 34: 26 to 36 with TMA bulk tensor copies, most often 40 with a producer warp group; the
-- rest are mostly those whose threads all copy, which have up to 191.
local TENSOR_REGISTERS = 40

-- The same of one that multiplies fragments of a warp, beside those of a step too.
local FRAGMENT_REGISTERS = 24

-- GPUs as the analytical model sees them, by architecture, what they share first: search.h explains the numbers. Cycles
-- are of one multiprocessor, bytes a cycle of memory at its clock. tensor_alone: of mma.sync beside wgmma (Luo et al.,
-- 2024; see search/cost/tensor_cores.c); overlap_hides, turns_hide: what attention gains by each (Shah et al.,
-- "FlashAttention-3", NeurIPS 2024, table 2 and section 3.1); cluster_join: two barriers and a load, some 200 cycles
-- each there; tensor_step, tensor_begin and tensor_store: fitted to 256 products that an H100 timed. Source: CUDA C++
-- Programming Guide, "Compute Capabilities"; the vendor's data sheets.
local GPU = {warp = 32, own_registers = 255, used_registers = 24, tensor_products = 0, tensor_alone = 1,
             tensor_registers = TENSOR_REGISTERS, tensor_step = 30, tensor_begin = 1500, tensor_store = 0.1,
             overlap_hides = 0.35, turns_hide = 0.35,
             sm_registers = 65536, multiply_adds = 4, latency = 4, shared_latency = 25, memory_latency = 600,
             barrier = 40, cluster_join = 600, copy_wait = 40, plain_wait = 5, guarded_plain = 100, divided_wait = 150,
             divided_plain = 225, divided_copy = 6, call = 8, division = 8, spill = 4, sm_bytes_a_cycle = 64,
             launch = 4000, exposed = 0.2, doubt = 1.05}
local GPUS = {
  sm_70 = {sms = 80, tensor_products = 512, sm_threads = 2048, sm_blocks = 32, sm_shared = 98304, l2_bytes = 6 << 20,
           l2_bytes_a_cycle = 2048, dram_bytes_a_cycle = 640, multiply_adds = 2},
  sm_72 = {sms = 8, tensor_products = 512, sm_threads = 2048, sm_blocks = 32, sm_shared = 98304, l2_bytes = 512 << 10,
           l2_bytes_a_cycle = 256, dram_bytes_a_cycle = 100, multiply_adds = 2},
  sm_75 = {sms = 40, tensor_products = 512, sm_threads = 1024, sm_blocks = 16, sm_shared = 65536, l2_bytes = 4 << 20,
           l2_bytes_a_cycle = 1280, dram_bytes_a_cycle = 200, multiply_adds = 2},
  sm_80 = {sms = 108, tensor_products = 1024, sm_threads = 2048, sm_blocks = 32, sm_shared = 167936,
           l2_bytes = 40 << 20, l2_bytes_a_cycle = 5120, dram_bytes_a_cycle = 1100, multiply_adds = 2},
  sm_86 = {sms = 82, tensor_products = 512, sm_threads = 1536, sm_blocks = 16, sm_shared = 102400, l2_bytes = 6 << 20,
           l2_bytes_a_cycle = 2048, dram_bytes_a_cycle = 550},
  sm_87 = {sms = 16, tensor_products = 512, sm_threads = 1536, sm_blocks = 16, sm_shared = 167936, l2_bytes = 4 << 20,
           l2_bytes_a_cycle = 512, dram_bytes_a_cycle = 150},
  sm_89 = {sms = 128, tensor_products = 512, sm_threads = 1536, sm_blocks = 24, sm_shared = 102400, l2_bytes = 72 << 20,
           l2_bytes_a_cycle = 4096, dram_bytes_a_cycle = 400},
  sm_90 = {sms = 132, tensor_products = 2048, tensor_alone = 0.62, sm_threads = 2048, sm_blocks = 32,
           sm_shared = 233472, l2_bytes = 50 << 20, l2_bytes_a_cycle = 5632, dram_bytes_a_cycle = 1900},
}
GPUS.sm_90a = GPUS.sm_90

local function analytical_gpu(target)
  local machine = {block_threads = target.max_threads, block_shared = target.shared_bytes}
  for _, numbers in ipairs {GPU, GPUS[target.text:match "%-arch=(%S+)"]} do
    for name, number in pairs(numbers) do machine[name] = number end
  end
  machine.warp = target.warp
  return machine
end

-- Multiprocessors, where the architecture is known.
local function sms_of(target) return GPUS[target.text:match "%-arch=(%S+)"].sms end

-- Results of a thread block whose tiles are large enough: 64 x 64; of tensor cores, 128 x 128.
local TILE_RESULTS, TENSOR_RESULTS = 4096, 16384

-- Sums are divided where a GPU has more multiprocessors than tiles, into parts of so many terms at least.
local function split_of(target, results, least)
  return {most_results = results * sms_of(target), least = least, parts = {2, 4, 8, 16}}
end

local LOCAL_BYTES = 4096 -- of a thread: a few times what its registers hold; much of it would lie in memory

-- Products of fragments of 16 x 16 x 16.
local function wmma(inputs, output, short_inputs, short_output)
  local shape = "_16x16x16_"
  return {inputs = inputs, output = output, multiples = {m = 16, n = 16, k = 16}, padding = 16 // (inputs == "int8"
          and 1 or 2), scopes = {a = "wmma.matrix_a", b = "wmma.matrix_b", c = "wmma.accumulator"},
          registers = output == "float16" and 4 or 8, operands = inputs == "int8" and 2 or 4,
          beside = FRAGMENT_REGISTERS,
          fill = "wmma_fill" .. shape .. short_output,
          sync = "wmma_sync" .. shape .. short_inputs:rep(2) .. short_output,
          load_a = "wmma_load" .. shape .. short_inputs .. "_a_shared_dyn",
          load_b = "wmma_load" .. shape .. short_inputs .. "_b_shared_dyn",
          store = "wmma_store" .. shape .. short_output .. "_shared_dyn"}
end

-- By mma.sync and ldmatrix, of as many products a sum as fill 32 bytes. B by columns where ldmatrix cannot transpose
-- it.
local function mma_sync(inputs, output, short_inputs, short_output, k)
  local shape = string.format("_16x16x%d_", k)
  local by_columns = k ~= 16
  local transposed = by_columns and "_trans" or ""
  local sync = "warp_mma_sync" .. shape .. short_inputs:rep(2) .. short_output
  local function load_b(columns) return "warp_mma_load" .. shape .. short_inputs .. "_b" .. columns .. "_swizzled" end
  return {inputs = inputs, output = output, multiples = {m = 16, n = 16, k = k}, read_scope = "shared.dyn.swizzle",
          by_columns = by_columns, sync_by_columns = sync .. "_trans", load_b_by_columns = load_b "_trans",
          scopes = {a = "mma.matrix_a", b = "mma.matrix_b", c = "mma.accumulator"},
          registers = 8, operands = 4, beside = FRAGMENT_REGISTERS, ahead = {2, 3, 1},
          fill = "warp_mma_fill_16x16_" .. short_output,
          sync = sync .. transposed,
          load_a = "warp_mma_load" .. shape .. short_inputs .. "_a_swizzled",
          load_b = load_b(transposed),
          store = "warp_mma_store_16x16_" .. short_output .. "_shared_dyn"}
end

-- TVM's, of 16 x 8 x 8, of which a warp loads two and four at once.
local function mma(output, short_output)
  return {inputs = "float16", output = output, multiples = {m = 32, n = 32, k = 8}, inner = {m = 2, n = 4},
          pipeline = true, padding = 8,
          scopes = {a = "m16n8k8.matrixA", b = "m16n8k8.matrixB", c = "m16n8k8.matrixC"},
          fill = "mma_init_m16n8k8_" .. short_output, sync = "mma_sync_m16n8k8_f16f16" .. short_output,
          load_a = "mma_load_m16n8k8_f16_A_shared_dyn", load_b = "mma_load_m16n8k8_f16_B_shared_dyn",
          store = "mma_store_m16n8k8_" .. short_output .. "_global"}
end

-- What wgmma multiplies: the type of sums, how intrinsics name both, and the bytes of an element, of which 32 are a
-- product's depth.
local WGMMA = {float16 = {"float32", "f16", "f32", 2}, bfloat16 = {"float32", "bf16", "f32", 2},
               int8 = {"int32", "s8", "s32", 1}, uint8 = {"int32", "u8", "s32", 1},
               float32 = {"float32", "tf32", "f32", 4}, float8_e4m3fn = {"float32", "e4m3", "f32", 1},
               float8_e5m2 = {"float32", "e5m2", "f32", 1}}
-- And of unlike bytes, as both are named: the second one's type.
local MIXED = {u8s8 = {"uint8", "int8"}, s8u8 = {"int8", "uint8"}}

-- By wgmma: four warps at once, n columns, of tiles that copies ahead, of 4 to 16 bytes a thread, bring to shared
-- memory in wgmma's canonical layout; b by columns where elements have not 16 bits. sms: multiprocessors, as many as a
-- persistent kernel has thread blocks.
local function wgmma(inputs, n, sms)
  local mixed = MIXED[inputs] or {inputs}
  local output, short_inputs, short_output, bytes = table.unpack(WGMMA[mixed[1]])
  local k, by_columns = 32 // bytes, bytes ~= 2 or n < 16 -- rows of a tile have 32 bytes or more
  local both = MIXED[inputs] and inputs or short_inputs:rep(2)
  local sync = string.format("wgmma_64x%dx%d_%s%s", n, k, both, short_output)
  local transposed, shape = sync .. "_trans", string.format("_64x%d_%s", n, short_output)
  return {inputs = mixed[1], second = mixed[2], output = output, multiples = {m = 64, n = n, k = k},
          read_scope = "shared.dyn.panels", scopes = {c = "wgmma.accumulator"}, fill = "wgmma_fill" .. shape,
          sync = by_columns and transposed or sync,
          by_columns = by_columns, sync_by_columns = not by_columns and transposed or nil,
          sync_columns = not by_columns and n >= 64 and sync .. "_columns" or nil,
          store = "wgmma_store" .. shape .. "_shared_dyn", bytes = bytes,
          vector_load_lengths = {4 // bytes, 8 // bytes, 16 // bytes},
          structure = "SSSRRS", warps = 4, ahead = {2, 1, 3, 4}, registers = n // 2, beside = TENSOR_REGISTERS,
          boxes = {1, 0}, producer = {1, 0}, store_result = "wgmma_store" .. shape .. "_global", blocks = {sms, 0},
          clusters = {2, 1}, epilogue = n > 32 and {64, 32, 128} or n == 32 and {32} or nil, tensor_stores = {1, 0}}
end

-- Those of an architecture that has it, the widest first.
local function add_wgmma(target, groups, inputs, widths)
  if target.wgmma ~= 1 then return end
  local sms = sms_of(target)
  for _, n in ipairs(widths or {256, 128, 64}) do
    for _, type in ipairs(inputs) do
      groups[#groups + 1] = wgmma(type, n, sms)
      groups[#groups].most_columns = widths and n
    end
  end
end

-- What the tensor cores of an architecture compute without rounding what they are given.
local function groups_of(target)
  local groups, arch = {}, target.arch
  local function add(least, group) if arch >= least then groups[#groups + 1] = group end end
  add_wgmma(target, groups, {"float16", "bfloat16", "int8", "uint8", "u8s8", "s8u8"})
  add_wgmma(target, groups, {"float16", "bfloat16"}, {32, 16, 8}) -- for products of no more columns
  add(70, wmma("float16", "float32", "f16", "f32"))
  add(70, wmma("float16", "float16", "f16", "f16"))
  add(75, wmma("int8", "int32", "s8", "s32"))
  add(80, mma_sync("float16", "float32", "f16", "f32", 16))
  add(80, mma_sync("bfloat16", "float32", "bf16", "f32", 16))
  add(80, mma_sync("int8", "int32", "s8", "s32", 32))
  return groups
end

-- Parameters of tiling for tensor cores, with these groups.
local function tensor_tiling(target, groups)
  return {structure = "SSSRRSRS", max_innermost = 4, binds = {"blockIdx.y", "blockIdx.x", "threadIdx.y"},
          vector_load_lengths = {1, 2, 3, 4, 8, 16}, vector_bytes = target.vector_bytes,
          warp_limits = {threads = target.max_threads, warp = target.warp, registers = GPU.own_registers,
                         block_registers = GPU.sm_registers},
          shared_bytes = target.shared_bytes, write = {need = "must", levels = {2}, scope = "shared.dyn"},
          read = {levels = {4}, scope = "shared.dyn"}, groups = groups,
          channels_first = true, few_channels = target.arch >= 80, split = split_of(target, TENSOR_RESULTS, 256),
          pads = {least = 0.25, multiples = {8, 4, 2}, share = 0.125}}
end

-- Columns of attention are divided among blocks where these are fewer than a GPU's multiprocessors.
local function columns_split(target)
  return {least = 512, blocks = sms_of(target), most_blocks = 8 * sms_of(target), choices = 6, registers = 128,
          threads = 128, lanes = 4}
end

-- Attention by mma.sync, from sm_80 on: tiles of rows and columns of a warp, those that most registers pay for first.
local function softmax_by_warps(target, factors)
  local groups = {}
  for inputs, short in pairs(factors) do
    local product = mma_sync(inputs, "float32", short, "f32", 16)
    product.a, product.b, product.c = product.scopes.a, product.scopes.b, product.scopes.c
    product.rows, product.tiles = "mma.rows", product.read_scope
    groups[#groups + 1] = product
  end
  return {tiles = {{rows = 16, columns = 64}, {rows = 16, columns = 128}, {rows = 32, columns = 64},
                   {rows = 16, columns = 32}, {rows = 32, columns = 32}, {rows = 16, columns = 16}},
          groups = groups, warps = 8, stages = 1, registers = 160, streamed = 150, least = 1, growth = 0.25,
          split = columns_split(target)}
end

-- The same by wgmma: tiles of a warp group.
local function softmax_by_groups(target, factors)
  local groups = {}
  for _, inputs in ipairs(factors) do
    local function width(n)
      if n ~= 64 and n ~= 128 and n ~= 192 and n ~= 256 then return nil end
      local product = wgmma(inputs, n)
      return {fill = product.fill, sync_by_columns = product.sync_by_columns or product.sync,
              sync_registers = product.sync:gsub("_trans$", "") .. "_registers"}
    end
    local bytes = WGMMA[inputs][4]
    groups[#groups + 1] = {inputs = inputs, warps = 4, width = width, a = "wgmma.matrix_a", c = "wgmma.accumulator",
                           rows = "wgmma.rows", tiles = "shared.dyn.panels", bytes = bytes, depth = 32 // bytes,
                           order = bytes == 1 and "x // 16 * 16 + x % 8 // 2 * 4 + x // 8 % 2 * 2 + x % 2" or nil}
  end
  return {tiles = {{rows = 64, columns = 128}, {rows = 64, columns = 64}}, groups = groups, warps = 3,
          stages = {1, 2, 3}, registers = 168, shared_bytes = target.shared_bytes, tensor_copies = {1, 0},
          producer = {1, 0}, overlap = {1, 0}, alternate = {1, 0}, shared_registers = 112, least = 17,
          growth = 0.25, split = columns_split(target)}
end

local FLOAT_BYTES = {"float8_e4m3fn", "float8_e5m2"}

-- The same of values so wide that sums of two products do not fit: the second product adds to the first one's.
local function softmax_of_wide_values(target)
  local form = softmax_by_groups(target, FLOAT_BYTES)
  form.tiles, form.least_width, form.registers, form.overlap = {{rows = 64, columns = 64}}, 192, 180, {1}
  form.tensor_copies, form.producer, form.split = {1}, {1}, {least = math.huge, blocks = 0}
  return form
end

local function fused_softmax(target)
  local forms, factors = {}, {float16 = "f16", bfloat16 = "bf16"}
  if target.wgmma == 1 then
    forms[#forms + 1] = softmax_by_groups(target, {"float16", "bfloat16", table.unpack(FLOAT_BYTES)})
    forms[#forms + 1] = softmax_of_wide_values(target)
  end
  if target.arch >= 80 then forms[#forms + 1] = softmax_by_warps(target, factors) end
  return {forms = forms}
end

-- Attention whose products tensor cores do not compute: rows and columns of a thread.
local function softmax_by_threads(target)
  return {tiles = {{rows = 1, columns = 32}, {rows = 1, columns = 16}, {rows = 2, columns = 16},
                   {rows = 2, columns = 32}, {rows = 1, columns = 8}, {rows = 4, columns = 8}},
          registers = 176, threads = 256, least = 32, few = 32 * sms_of(target), growth = 0.25, chunk = 16,
          split = {least = 512, rows = 15, each = 16, threads = 32, parts = {32, 64, 128, 256, 512}, columns = {2, 1},
                   joining = 128, lanes = 4},
          bytes = target.vector_bytes, ahead = target.arch >= 80 and 1 or nil}
end

-- Lanes of a warp as a tile of 4 x 8 squares of results.
local function warp_tile(target)
  if target.warp ~= 32 then return nil end
  return {structure = "SSSRRS", across = 4, along = 8, pair = 2, rows = {4, 2, 1}, columns = 4, bytes = 4, piece = 16,
          stages = target.arch >= 80 and {4} or {}}
end

local function up_to(most, list)
  local few = {}
  for _, n in ipairs(list) do if n <= most then few[#few + 1] = n end end
  return few
end

local REDUCING_THREADS = {4, 8, 16, 32, 64, 128, 256, 512} -- of a block, that reduce together

-- GPUs: MetaSchedule's rules, and tensor cores where they compute the same; its draws are held against what a GPU
-- launches.
targets.cuda = {
  rules = {"fuse_online_softmax_tensor_core", "fuse_online_softmax_threads", "multi_level_tiling_tensor_core",
           "depthwise_tile", "matvec", "multi_level_tiling",
           "inline_constant_scalars", "keep_stages", "norm_prologue",
           "auto_inline", "online_softmax", "two_pass_reduction", "cross_thread_reduction", "keep_rows",
           "spatial_tiling", "parallel_vectorize_unroll", "auto_bind"},
  postprocs = {"disallow_dynamic_loop", "rewrite_cooperative_fetch", "rewrite_vector_store", "rewrite_unbound_block",
               "rewrite_parallel_vectorize_unroll", "rewrite_reduction_block", "rewrite_tensorize", "verify_gpu_code"},
  mutators = {{"tile_size", 0.9}, {"unroll", 0.08}, {"thread_binding", 0.02}},
  fuse_online_softmax_tensor_core = fused_softmax,
  fuse_online_softmax_threads = softmax_by_threads,
  multi_level_tiling_tensor_core = function(target) return tensor_tiling(target, groups_of(target)) end,
  analytical = analytical_gpu,
  multi_level_tiling = function(target)
    -- copies that a thread does not wait for
    return {structure = "SSSRRSRS", max_innermost = 64, binds = {"blockIdx.x", "vthread.x", "threadIdx.x"},
            threads = {least = target.warp, most = target.max_threads},
            limits = {vthreads = target.max_vthread, shared_bytes = target.shared_bytes, local_bytes = LOCAL_BYTES},
            vector_load_lengths = {1, 2, 3, 4, 8, 16}, vector_bytes = target.vector_bytes,
            write = {need = "must", levels = {3}, scope = "local"}, read = {levels = {4}, scope = "shared"},
            stages = target.arch >= 80 and {4, 5} or {}, packs = true, groups = true, warp_tile = warp_tile(target),
            split = split_of(target, TILE_RESULTS, 128)}
  end,
  matvec = function(target)
    return {rows = 8, along = {32, 64, 128, 256}, across = {8, 16, 32}, steps = {1, 2, 4, 8}, results = 4, warps = 32,
            threads = target.max_threads}
  end,
  depthwise_tile = function(target)
    return {terms = 49, outer = 8, vector_bytes = target.vector_bytes,
            threads = {least = target.warp, most = target.max_threads}, registers = 200}
  end,
  auto_inline = {into_consumer = true, into_producer = true, constant_tensors = true, disallowed = {}},
  spatial_tiling = function(target)
    local few = target.max_threads < 256
    return {unroll = {1, 2, 4, 8},
            threads = up_to(target.max_threads, few and {32, 16, 8, 1} or {128, 256, 512, 64, 1024}),
            columns = up_to(few and target.max_threads or target.max_threads // 8,
                            few and {16, 8, 4, 2, 1} or {32, 64, 128}), rows = few and {1} or {2, 4, 8},
            lengths = {1, 2, 4, 8, 16}, results = 8, vector_bytes = target.vector_bytes, blocks = {256, 512, 1024}}
  end,
  two_pass_reduction = {most_results = 64, least = 16384, least_blocks = 16, most_blocks = 1024,
                        thread_extents = {64, 128, 256, 512}},
  cross_thread_reduction = function(target)
    return {thread_extents = REDUCING_THREADS, vectors = true,
            clusters = target.arch >= 90 and {blocks = {8, 4, 2}, least = 8192, most_rows = sms_of(target),
                                              shared_bytes = target.shared_bytes - 1024} or nil}
  end,
  keep_rows = function(target)
    return {shared_bytes = target.shared_bytes - 1024, static_bytes = 40 << 10, vector_bytes = target.vector_bytes,
            parts = 8}
  end,
  parallel_vectorize_unroll = {unroll_steps = {0, 16, 32, 64, 128, 256, 512, 1024}, unroll_explicit = true},
  rewrite_unbound_block = {max_blocks = 256},
  verify_gpu_code = {local_bytes = LOCAL_BYTES},
  auto_bind = {max_blocks = 256, thread_extents = {32, 64, 128, 256, 512, 1024}},
}

-- A table with some fields in place of its own.
function targets.changed(base, changes)
  local t = {}
  for k, v in pairs(base) do t[k] = v end
  for k, v in pairs(changes) do t[k] = v end
  return t
end

-- GPUs, with what rounds besides: products of floats of 32 bits as TF32, of 10 bits after the first; of floats of 8
-- bits, whose sums Hopper keeps to fewer bits than float32 has (DeepSeek-AI, "DeepSeek-V3 Technical Report", 2024,
-- section 3.3.2); for ms.space.
targets.tensor_core = targets.changed(targets.cuda, {
  multi_level_tiling_tensor_core = function(target)
    local groups = groups_of(target)
    add_wgmma(target, groups, {"float32", "float8_e4m3fn", "float8_e5m2"})
    if target.arch >= 80 then groups[#groups + 1] = mma_sync("float32", "float32", "tf32", "f32", 8) end
    if target.float_bytes == 1 then
      groups[#groups + 1] = mma_sync("float8_e4m3fn", "float32", "e4m3", "f32", 32)
      groups[#groups + 1] = mma_sync("float8_e5m2", "float32", "e5m2", "f32", 32)
    end
    return tensor_tiling(target, groups)
  end,
})

-- MetaSchedule's own, without what is ours.
local METASCHEDULE = {"multi_level_tiling", "inline_constant_scalars", "auto_inline", "cross_thread_reduction",
               "parallel_vectorize_unroll", "auto_bind"}
local METASCHEDULE_GPU = {"disallow_dynamic_loop", "rewrite_cooperative_fetch", "rewrite_unbound_block",
                          "rewrite_parallel_vectorize_unroll", "rewrite_reduction_block", "rewrite_tensorize",
                          "verify_gpu_code"}
local METASCHEDULE_REDUCTION = {thread_extents = REDUCING_THREADS}
targets.metaschedule = {
  cuda = targets.changed(targets.cuda, {
    rules = METASCHEDULE, postprocs = METASCHEDULE_GPU, cross_thread_reduction = METASCHEDULE_REDUCTION,
    multi_level_tiling = function(target)
      return targets.changed(targets.cuda.multi_level_tiling(target),
                             {limits = false, split = false, warp_tile = false, groups = false})
    end,
  }),
  tensor_core = targets.changed(targets.cuda, {
    rules = {"multi_level_tiling_tensor_core", table.unpack(METASCHEDULE)}, postprocs = METASCHEDULE_GPU,
    cross_thread_reduction = METASCHEDULE_REDUCTION,
    multi_level_tiling_tensor_core = function(target)
      local groups = {wmma("float16", "float32", "f16", "f32"), wmma("float16", "float16", "f16", "f16"),
                      wmma("int8", "int32", "s8", "s32"), mma("float32", "f32"), mma("float16", "f16")}
      return targets.changed(tensor_tiling(target, groups),
                             {warp_limits = false, split = false, pads = false, channels_first = false})
    end,
    multi_level_tiling = function(target)
      return targets.changed(targets.cuda.multi_level_tiling(target), {warp_tile = false, groups = false})
    end,
  }),
  llvm = targets.changed(targets.llvm, {
    rules = {"inline_constant_scalars", "auto_inline", "add_rfactor", "multi_level_tiling", "parallel_vectorize_unroll",
             "random_compute_location"},
    add_rfactor = {jobs_per_core = 16, max_innermost = 64},
    random_compute_location = {},
    mutators = {{"tile_size", 0.9}, {"compute_location", 0.05}, {"unroll", 0.03}, {"parallel", 0.02}},
    rewrite_parallel_vectorize_unroll = {strided_vectors = true},
    parallel_vectorize_unroll = {jobs_per_core = {16}, max_vector_extent = 64, unroll_steps = {0, 16, 64, 512},
                                 unroll_explicit = true},
  }),
}

-- What rules get beside schedule and block: the target, and the facts of its kind.
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
