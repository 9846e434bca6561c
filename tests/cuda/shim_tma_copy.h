/* TMA bulk tensor copies, barriers in shared memory, and what specialized warp groups need, on a CPU. */

#define __grid_constant__
struct ms_tensor_map;

[[maybe_unused]] static void ms_mbarrier_init(uint32_t at, uint32_t count) {
  fibers_mbarrier_init(fibers_shared_at(at), count);
}
[[maybe_unused]] static void ms_mbarrier_fence() { fibers_mbarrier_fence(); }
[[maybe_unused]] static void ms_mbarrier_expect(uint32_t at, uint32_t bytes) {
  fibers_mbarrier_expect(fibers_shared_at(at), bytes);
}
[[maybe_unused]] static void ms_mbarrier_arrive(uint32_t at) { fibers_mbarrier_expect(fibers_shared_at(at), 0); }
[[maybe_unused]] static void ms_mbarrier_arrive_at(uint32_t at, uint32_t block) {
  fibers_mbarrier_arrive_at(fibers_shared_at(at), block);
}
#define SHIM_CLUSTER_LOAD(type, suffix)                                                                                \
  [[maybe_unused]] static type ms_cluster_load_##suffix(uint32_t at, uint32_t block) {                                 \
    type x;                                                                                                            \
    fibers_cluster_load(fibers_shared_at(at), block, &x, sizeof x);                                                    \
    return x;                                                                                                          \
  }
SHIM_CLUSTER_LOAD(float, f32)
SHIM_CLUSTER_LOAD(int32_t, s32)
SHIM_CLUSTER_LOAD(uint32_t, u32)
SHIM_CLUSTER_LOAD(double, f64)
SHIM_CLUSTER_LOAD(int64_t, s64)
SHIM_CLUSTER_LOAD(uint64_t, u64)
[[maybe_unused]] static void ms_cluster_barrier() { fibers_cluster_barrier(); }
[[maybe_unused]] static void ms_mbarrier_wait(uint32_t at, uint32_t parity) {
  fibers_mbarrier_wait(fibers_shared_at(at), parity);
}

/* Not the first: who counts on that is wrong. */
[[maybe_unused]] static uint32_t ms_elect_one() {
  fibers_shuffle(~0u, 0, 0, 32, -13);
  return fibers_thread() % 32 == 19;
}
[[maybe_unused]] static void ms_named_barrier(uint32_t number, uint32_t threads) {
  fibers_named_barrier(number, threads);
}
[[maybe_unused]] static void ms_named_arrive(uint32_t number, uint32_t threads) {
  fibers_named_arrive(number, threads);
}
template <int count> [[maybe_unused]] static void ms_more_registers() { fibers_set_registers(count, 1); }
template <int count> [[maybe_unused]] static void ms_fewer_registers() { fibers_set_registers(count, 0); }

#define SHIM_TENSOR_COPY(rank)                                                                                         \
  template <class... At>                                                                                               \
  [[maybe_unused]] static void ms_tensor_copy_##rank##d(uint32_t to, const ms_tensor_map *map, uint32_t arrived,       \
                                                        At... at) {                                                    \
    const int32_t coordinates[] = {(int32_t)at...};                                                                    \
    static_assert(sizeof...(at) == rank, "one coordinate a dimension");                                                \
    fibers_tensor_copy((void *)fibers_shared_at(to), map, fibers_shared_at(arrived), coordinates, nullptr, rank, 0);   \
  }
SHIM_TENSOR_COPY(2)
SHIM_TENSOR_COPY(3)
SHIM_TENSOR_COPY(4)
SHIM_TENSOR_COPY(5)

#define SHIM_MULTICAST_COPY(rank)                                                                                      \
  template <class... At>                                                                                               \
  [[maybe_unused]] static void ms_multicast_copy_##rank##d(uint32_t to, const ms_tensor_map *map, uint32_t arrived,    \
                                                           At... at) {                                                 \
    const int32_t given[] = {(int32_t)at...}; /* the blocks last */                                                    \
    static_assert(sizeof...(at) == rank + 1, "one coordinate a dimension, and the blocks");                            \
    fibers_tensor_copy((void *)fibers_shared_at(to), map, fibers_shared_at(arrived), given, nullptr, rank,             \
                       (uint32_t)given[rank]);                                                                         \
  }
SHIM_MULTICAST_COPY(2)
SHIM_MULTICAST_COPY(3)
SHIM_MULTICAST_COPY(4)
SHIM_MULTICAST_COPY(5)

#define SHIM_IM2COL_COPY(rank)                                                                                         \
  template <class... At>                                                                                               \
  [[maybe_unused]] static void ms_im2col_copy_##rank##d(uint32_t to, const ms_tensor_map *map, uint32_t arrived,       \
                                                        At... at) {                                                    \
    const int32_t given[] = {(int32_t)at...};                                                                          \
    uint16_t offsets[rank - 2];                                                                                        \
    static_assert(sizeof...(at) == 2 * rank - 2, "one coordinate a dimension, and an offset of each between");         \
    for (int d = 0; d < rank - 2; d++) offsets[d] = (uint16_t)given[rank + d];                                         \
    fibers_tensor_copy((void *)fibers_shared_at(to), map, fibers_shared_at(arrived), given, offsets, rank, 0);         \
  }
SHIM_IM2COL_COPY(3)
SHIM_IM2COL_COPY(4)
SHIM_IM2COL_COPY(5)
