/* What lanes store together, on a CPU: pairs of 16 bits in a word, and matrices that a warp stores to shared memory. */

[[maybe_unused]] static uint32_t ms_pack_f16(float low, float high) {
  return SHIM_PAIR(shim_to_half(low), shim_to_half(high));
}
[[maybe_unused]] static uint32_t ms_pack_bf16(float low, float high) {
  return SHIM_PAIR(shim_to_bfloat(low), shim_to_bfloat(high));
}

#define SHIM_TENSOR_STORE(rank)                                                                                        \
  template <class... At>                                                                                               \
  [[maybe_unused]] static void ms_tensor_store_##rank##d(const ms_tensor_map *map, uint32_t from, At... at) {          \
    const int32_t coordinates[] = {(int32_t)at...};                                                                    \
    static_assert(sizeof...(at) == rank, "one coordinate a dimension");                                                \
    fibers_tensor_store((void *)fibers_shared_at(from), map, coordinates, rank);                                       \
  }
SHIM_TENSOR_STORE(2)
SHIM_TENSOR_STORE(3)
SHIM_TENSOR_STORE(4)
SHIM_TENSOR_STORE(5)
[[maybe_unused]] static void ms_store_commit() { fibers_store_commit(); }
template <int left> [[maybe_unused]] static void ms_store_wait() { fibers_store_wait(left); }

struct shim_stored {
  void *row;
  uint32_t words[4];
};
static struct shim_stored shim_stored_by[FIBERS_MOST_THREADS];

/* Lane l names row l % 8 of matrix l / 8, and has of each matrix two elements of row l / 4. Rows that meet in a bank
 * are taken for a mistake. */
[[maybe_unused]] static void ms_stmatrix_x4(void *row, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  unsigned thread = fibers_thread(), lane = thread % 32, first = thread - lane;
  const void *rows[32];
  if ((uintptr_t)row % 16) fibers_fail("stmatrix: lane %u names a row that begins between multiples of 16 bytes", lane);
  shim_stored_by[thread] = {row, {a, b, c, d}};
  fibers_shuffle(~0u, 0, 0, 32, -14); /* as one */
  for (unsigned l = 0; l < 32; l++) rows[l] = shim_stored_by[first + l].row;
  fibers_check_banks(rows, 32, 16);
  for (unsigned i = 0; i < 4; i++)
    memcpy((uint32_t *)shim_stored_by[first + 8 * i + lane / 4].row + lane % 4, &shim_stored_by[thread].words[i], 4);
  fibers_shuffle(~0u, 0, 0, 32, -15);
}
