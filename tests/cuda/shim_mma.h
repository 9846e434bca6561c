/* What a warp does with mma.sync and ldmatrix: products.c. */

[[maybe_unused]] static void ms_ldmatrix_x4(uint32_t *d, uint32_t at) { products_load_matrices(d, at, false); }
[[maybe_unused]] static void ms_ldmatrix_x4_trans(uint32_t *d, uint32_t at) { products_load_matrices(d, at, true); }
[[maybe_unused]] static float ms_short_exp2(float x) { return exp2f(x); }
[[maybe_unused]] static uint32_t ms_to_tf32(uint32_t bits) { return fibers_to_tf32(bits); }

#define SHIM_MMA(name, depth, element, S, sum)                                                                         \
  [[maybe_unused]] static void ms_mma_m16n8k##depth##_##name(S *d, const uint32_t *a, const uint32_t *b) {             \
    products_mma(PRODUCTS_##element, depth, PRODUCTS_##sum, d, a, b);                                                  \
  }
SHIM_MMA(f16_f32, 8, f16, float, FLOAT)
SHIM_MMA(f16_f16, 8, f16, uint32_t, HALVES)
SHIM_MMA(f16, 16, f16, float, FLOAT)
SHIM_MMA(bf16, 16, bf16, float, FLOAT)
SHIM_MMA(tf32, 8, tf32, float, FLOAT)
SHIM_MMA(s8, 32, s8, int32_t, INT)
SHIM_MMA(u8, 32, u8, int32_t, INT)
SHIM_MMA(e4m3, 32, e4m3, float, FLOAT)
SHIM_MMA(e5m2, 32, e5m2, float, FLOAT)
