/* TMA bulk tensor copies, barriers in shared memory, and what specialized warp groups need, on a CPU. */

#define __grid_constant__
struct ms_tensor_map;

[[maybe_unused]] static void ms_mbarrier_init(const void *at, uint32_t count) { fibers_mbarrier_init(at, count); }
[[maybe_unused]] static void ms_mbarrier_fence() { fibers_mbarrier_fence(); }
[[maybe_unused]] static void ms_mbarrier_expect(const void *at, uint32_t bytes) { fibers_mbarrier_expect(at, bytes); }
[[maybe_unused]] static void ms_mbarrier_arrive(const void *at) { fibers_mbarrier_expect(at, 0); }
[[maybe_unused]] static void ms_mbarrier_wait(const void *at, uint32_t parity) { fibers_mbarrier_wait(at, parity); }

[[maybe_unused]] static void ms_named_barrier(uint32_t number, uint32_t threads) {
  fibers_named_barrier(number, threads);
}
template <int count> [[maybe_unused]] static void ms_more_registers() { fibers_set_registers(count, 1); }
template <int count> [[maybe_unused]] static void ms_fewer_registers() { fibers_set_registers(count, 0); }

#define SHIM_TENSOR_COPY(rank)                                                                                         \
  template <class... At>                                                                                               \
  [[maybe_unused]] static void ms_tensor_copy_##rank##d(void *to, const ms_tensor_map *map, const void *arrived,       \
                                                        At... at) {                                                    \
    const int32_t coordinates[] = {(int32_t)at...};                                                                    \
    static_assert(sizeof...(at) == rank, "one coordinate a dimension");                                                \
    fibers_tensor_copy(to, map, arrived, coordinates, rank);                                                           \
  }
SHIM_TENSOR_COPY(2)
SHIM_TENSOR_COPY(3)
SHIM_TENSOR_COPY(4)
SHIM_TENSOR_COPY(5)
