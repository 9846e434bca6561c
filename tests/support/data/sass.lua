-- The main kernels as the analytical model ranks them first, and bounds of their machine code (lua/gpu/sass.lua, by
-- `tests/run sass`). Figures are NVRTC 13.0's with some slack, a quarter where no more is said, as other versions of
-- ptxas differ. Of the whole kernel: registers, instructions, global_loads and global_stores a thread, and the shares
-- of them, and of asynchronous copies, that have 16 bytes (wide_loads, wide_stores, wide_copies). Of its main loop: the
-- share of products among its instructions, and for each product so many of address arithmetic, of barriers, of
-- accesses to shared memory, of waits for products (drains: how many wait for all); wide_shared: the share of loads
-- of shared memory of 16 bytes.
-- Spills, serialized wgmma and, in the loop, fences of the device have no place here: no kernel may have any.
local HALF = " dtype=float16"

-- wgmma 64 x 256 x 16, tiles by TMA, four stages: a wait for each four products.
local function warp_groups(name, operator, words, most_address)
  return {name = name, operator = operator, words = words, arch = "sm_90a",
          most = {registers = 168, address = most_address, barrier = 1.25, waits = 0.25, shared = 0,
                  loop_loads = 0, global_loads = 0}, least = {share = 0.09, tensor_copies = 1}}
end

local function floats(name, operator, words, arch, share, wide_shared, shared)
  return {name = name, operator = operator, words = words, arch = arch,
          most = {address = 0.1, shared = shared or 0.29, barrier = 0.02, loop_loads = 0},
          least = {share = share, wide_shared = wide_shared}}
end

-- The second product goes on beside the next softmax: the operand that it reads is then replaced by moves. Of 8 bits
-- half as many products do the same work.
local function fused_attention(name, words, most_address, share, type)
  local each = type and 2 or 1
  return {name = name, operator = "attention", words = words .. (type and " dtype=" .. type or HALF), arch = "sm_90a",
          most = {registers = 168, address = most_address, barrier = 0.75 * each, waits = 0.17 * each, drains = 1,
                  shared = 0, move = 7 * each, loop_loads = 0, loop_stores = 0},
          least = {share = share, tensor_copies = 1, wide_loads = 1}}
end

-- Tiles by cp.async, products by mma.sync: stage buffers' places are added to addresses, not computed for each
-- fragment.
local function warps(name, operator, words, most, share)
  most.barrier, most.loop_loads, most.loop_stores = 0.03, 0, 0
  return {name = name, operator = operator, words = words .. HALF, arch = "sm_80", most = most,
          least = {share = share, wide_copies = 1}}
end

return {
  warp_groups("product_f16", "matmul", "4096 4096 4096 accumulate=float32" .. HALF, 6.8),
  warp_groups("product_bf16", "matmul", "4096 4096 4096 dtype=bfloat16 accumulate=float32", 6.8),
  warp_groups("product_f16_rounded", "matmul", "4096 4096 4096" .. HALF, 6.8),
  warps("product_f16_ampere", "matmul", "4096 4096 4096 accumulate=float32", {address = 0.1, shared = 0.38}, 0.65),
  warps("convolution_f16_ampere", "conv2d", "16 14 14 256 256 3 1 1", {address = 1.7, shared = 0.65}, 0.3),
  floats("product_f32", "matmul", "4096 4096 4096", "sm_90a", 0.94, 0.95, 0.06),
  floats("product_f32_small", "matmul", "1024 1024 1024", "sm_90a", 0.92, 0.95, 0.08),
  floats("product_f32_ampere", "matmul", "4096 4096 4096", "sm_80", 0.94, 0.95, 0.06),
  warp_groups("convolution_f16", "conv2d", "16 14 14 256 256 3 1 1" .. HALF, 5.3),
  floats("convolution_f32", "conv2d", "16 14 14 256 256 3 1 1", "sm_90a", 0.8, 0.9, 0.13),
  fused_attention("attention", "1 16 2048 2048 64", 6, 0.016),
  fused_attention("attention_wide", "1 16 2048 2048 128", 5, 0.02),
  fused_attention("attention_e4m3", "1 16 2048 2048 64", 9.6, 0.008, "float8_e4m3fn"),
  fused_attention("attention_wide_e4m3", "1 16 2048 2048 128", 7.8, 0.01, "float8_e4m3fn"),
  fused_attention("attention_causal", "1 16 2048 2048 64 causal=true", 9.2, 0.014),
  warps("attention_ampere", "attention", "1 16 2048 2048 64", {address = 0.48, shared = 0.7, float = 3.6, move = 0.65},
        0.15),
  warps("attention_wide_ampere", "attention", "1 16 2048 2048 128",
        {registers = 200, address = 0.68, shared = 0.7, float = 2.4, move = 0.4}, 0.19),
  {name = "attention_decoding", operator = "attention", words = "1 32 1 4096 128" .. HALF, arch = "sm_90a",
   most = {registers = 200, address = 1, shared = 1.4, loop_loads = 0, loop_stores = 0},
   least = {share = 0.15, wide_copies = 1}},
  floats("attention_f32", "attention", "1 16 2048 2048 64", "sm_90a", 0.6, 0.9),
  {name = "softmax", operator = "softmax", words = "2048x2048", arch = "sm_90a",
   most = {instructions = 960, registers = 40, global_loads = 4, global_stores = 4},
   least = {wide_loads = 1, wide_stores = 1}},
  {name = "softmax_kept", operator = "softmax", words = "16384x4096", arch = "sm_90a",
   most = {registers = 40, global_loads = 8, global_stores = 8}, least = {wide_loads = 1, wide_stores = 1}},
  {name = "softmax_long", operator = "softmax", words = "4096x65536", arch = "sm_90a",
   most = {instructions = 1470, global_loads = 80, global_stores = 8}, least = {wide_stores = 1}},
  {name = "layer_norm", operator = "layer_norm", words = "8192x4096", arch = "sm_90a", most = {global_loads = 128}},
  {name = "gelu", operator = "gelu", words = "8192x8192", arch = "sm_90a",
   most = {instructions = 1090, registers = 40, loop_loads = 8, loop_stores = 8},
   least = {wide_loads = 1, wide_stores = 1}},
  {name = "depthwise", operator = "depthwise_conv2d", words = "1 112 112 64 3 2 1", arch = "sm_90a",
   most = {instructions = 320, registers = 60, global_loads = 0, global_stores = 4}, least = {wide_copies = 0.75}},
}
