/* What a warp group does with tensor units: products.c. */

static inline products_sum shim_sum_at(const float *) { return PRODUCTS_FLOAT; }
static inline products_sum shim_sum_at(const int32_t *) { return PRODUCTS_INT; }

template <class S>
static void shim_begin_product(S *d, uint64_t a, uint64_t b, int n, bool by_rows, bool a_by_columns,
                               products_element element, products_element by, const uint32_t *registers) {
  const product begun = {d, a, b, n, by_rows, a_by_columns, shim_sum_at(d), element, by};
  products_begin(&begun, registers);
}

[[maybe_unused]] static void ms_wgmma_fence() { products_fence(); }
[[maybe_unused]] static void ms_wgmma_commit() { products_commit(); }
[[maybe_unused]] static void ms_wgmma_wait_0() { products_wait(0); }
[[maybe_unused]] static void ms_wgmma_wait_1() { products_wait(1); }
[[maybe_unused]] static void ms_wgmma_wait_2() { products_wait(2); }
[[maybe_unused]] static void ms_wgmma_hold_one(float *) {}
[[maybe_unused]] static void ms_wgmma_hold_s32_one(int32_t *) {}
[[maybe_unused]] static void ms_wgmma_hold_a_one(uint32_t *) {}
[[maybe_unused]] static void ms_proxy_fence() { fibers_proxy_fence(); }
[[maybe_unused]] static int32_t ms_group_thread() { return (int32_t)(fibers_thread() % 128); }
/* Its shuffles are the checks: lanes that have other values end the process. */
[[maybe_unused]] static uint32_t ms_uniform(uint32_t x) {
  for (int distance = 1; distance < 32; distance *= 2)
    if (fibers_shuffle(~0u, x, distance, 32, -12) != x) fibers_fail("lanes have several values of what is one a warp");
  return x;
}
[[maybe_unused]] static uint32_t ms_shared_address(const void *at) { return fibers_shared_address(at); }

#define SHIM_WGMMA_OF(n, depth, element, S, layout, by_rows)                                                           \
  [[maybe_unused]] static void ms_wgmma_m64n##n##k##depth##_##element##_##layout(S *d, uint64_t a, uint64_t b) {       \
    shim_begin_product(d, a, b, n, by_rows, false, PRODUCTS_##element, PRODUCTS_##element, NULL);                      \
  }
#define SHIM_WGMMA_REGISTERS(n, depth, element, layout, by_rows)                                                       \
  [[maybe_unused]] static void ms_wgmma_m64n##n##k##depth##_##element##_##layout##_registers(float *d, uint32_t *a,    \
                                                                                             uint64_t b) {             \
    shim_begin_product(d, 0, b, n, by_rows, false, PRODUCTS_##element, PRODUCTS_##element, a);                         \
  }
#define SHIM_WGMMA_BYTES(n, element, by)                                                                               \
  [[maybe_unused]] static void ms_wgmma_m64n##n##k32_##element##by##_col(int32_t *d, uint64_t a, uint64_t b) {         \
    shim_begin_product(d, a, b, n, false, false, PRODUCTS_##element, PRODUCTS_##by, NULL);                             \
  }
#define SHIM_WGMMA_SHORT(n, element, layout, by_rows)                                                                  \
  SHIM_WGMMA_OF(n, 16, element, float, layout, by_rows)                                                                \
  [[maybe_unused]] static void ms_wgmma_m64n##n##k16_##element##_##layout##_columns(float *d, uint64_t a,              \
                                                                                    uint64_t b) {                      \
    shim_begin_product(d, a, b, n, by_rows, true, PRODUCTS_##element, PRODUCTS_##element, NULL);                       \
  }                                                                                                                    \
  SHIM_WGMMA_REGISTERS(n, 16, element, layout, by_rows)
#define SHIM_WGMMA(n)                                                                                                  \
  SHIM_WGMMA_SHORT(n, f16, row, true)                                                                                  \
  SHIM_WGMMA_SHORT(n, f16, col, false)                                                                                 \
  SHIM_WGMMA_SHORT(n, bf16, row, true)                                                                                 \
  SHIM_WGMMA_SHORT(n, bf16, col, false)                                                                                \
  SHIM_WGMMA_OF(n, 8, tf32, float, col, false)                                                                         \
  SHIM_WGMMA_OF(n, 32, s8, int32_t, col, false)                                                                        \
  SHIM_WGMMA_OF(n, 32, u8, int32_t, col, false)                                                                        \
  SHIM_WGMMA_BYTES(n, u8, s8)                                                                                          \
  SHIM_WGMMA_BYTES(n, s8, u8)                                                                                          \
  SHIM_WGMMA_OF(n, 32, e4m3, float, col, false)                                                                        \
  SHIM_WGMMA_OF(n, 32, e5m2, float, col, false)                                                                        \
  SHIM_WGMMA_REGISTERS(n, 32, e4m3, col, false)                                                                        \
  SHIM_WGMMA_REGISTERS(n, 32, e5m2, col, false)
SHIM_WGMMA(8)
SHIM_WGMMA(16)
SHIM_WGMMA(24)
SHIM_WGMMA(32)
SHIM_WGMMA(40)
SHIM_WGMMA(48)
SHIM_WGMMA(64)
SHIM_WGMMA(96)
SHIM_WGMMA(128)
SHIM_WGMMA(192)
SHIM_WGMMA(256)
