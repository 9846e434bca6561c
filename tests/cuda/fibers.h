/* A GPU's threads on a CPU: each is a fiber, which runs until it waits for others. Blocks, or clusters of them, run one
 * after the other, their threads and themselves in an order that a seed decides. What a kernel does wrong with barriers
 * and shuffles ends the process, with a message. */
#ifndef TEST_FIBERS_H
#define TEST_FIBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fibers_index {
  unsigned x, y, z;
};
extern struct fibers_index threadIdx, blockIdx, blockDim; /* of the thread that runs */

/* Forwards, backwards, then shuffled again after each barrier: seeds 0, 1, and those from 2 on, with which the last
 * warp group, or else a warp, goes on only where no other thread can. */
void fibers_set_order(uint64_t seed);

struct fibers_launch {
  struct fibers_index grid, block;
  unsigned cluster;     /* blocks of a cluster, neighbours along x */
  size_t dynamic_bytes; /* of shared memory, at ms_shared */
  const void *shared;   /* a variable of the library's thread-local memory, which holds what it shares statically */
  void (*thread)(void *data); /* what each thread does */
  void *data;
};
int fibers_launch(const struct fibers_launch *launch); /* as CUDA's driver: 0, or why it is none */

/* What a thread calls; line: of the source, or one number a kind of call. */
enum { FIBERS_MOST_THREADS = 4096 }; /* of a cluster */
unsigned fibers_thread(void); /* its number in the cluster, where a block's first is a multiple of a warp group */
void fibers_barrier(int line);
void fibers_cluster_barrier(void);
/* The value of the lane whose number differs in the bits of `distance`, as __shfl_xor_sync gives it. */
uint64_t fibers_shuffle(uint32_t mask, uint64_t value, int distance, int width, int line);
/* Asynchronous copies (cp.async) arrive when their thread waits for their group, and no sooner; until then their
 * destination has no value. From byte `bytes` on they write zeros. */
void fibers_copy(void *to, const void *from, uint32_t bytes, uint32_t width);
void fibers_commit(void);
void fibers_wait(int left);
void fibers_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Conversions that a GPU has instructions for. */
float fibers_of_half(uint16_t bits);
uint16_t fibers_to_half(float x);
float fibers_of_byte(uint8_t bits, bool e4m3); /* else E5M2 */
uint8_t fibers_to_byte(float x, bool e4m3);
uint32_t fibers_to_tf32(uint32_t bits); /* of a float */

/* Where lanes load from shared memory no bank may have two words for one pass. */
void fibers_check_banks(const void *const *from, int lanes, int width);
/* Where the lanes of a warp load 16 bytes each, half of them do so at once. */
void fibers_check_pairs(const void *const *from);

/* Of operand 0 (a), 1 (b) or 2 (the sums): tir_mma_place. */
struct fibers_place {
  int row, column;
};
struct fibers_place fibers_mma_place(int operand, int bits, int lane, int element);
struct fibers_place fibers_wgmma_place(int thread, int element); /* tir_wgmma_place */

/* Barriers in shared memory, each known by its address. A phase ends when as many threads have arrived as it counts,
 * and all bytes that they announced. TMA copies arrive when no thread can go on, or, with threads backwards, where they
 * begin; until then their destination has no value. The thread that makes barriers fences them before all
 * synchronize. */
void fibers_mbarrier_init(const void *at, uint32_t count);
void fibers_mbarrier_fence(void);
void fibers_mbarrier_expect(const void *at, uint32_t bytes);
void fibers_mbarrier_arrive_at(const void *at, uint32_t rank); /* there in another block of the cluster */
void fibers_cluster_load(const void *at, uint32_t rank, void *to, size_t bytes); /* from there in another block */
void fibers_mbarrier_wait(const void *at, uint32_t parity);
/* Where so many threads, of whole warps, meet; the block's other threads have no part in it. */
void fibers_named_barrier(uint32_t number, uint32_t threads);
void fibers_named_arrive(uint32_t number, uint32_t threads); /* is counted there, and goes on */
/* Of all of a block's threads there are as many registers as they begin with. */
void fibers_set_registers(int count, int more);
/* Of a map that cuTensorMapEncodeTiled made; groups of such stores, and what waits until they have read. */
void fibers_tensor_store(void *from, const void *map, const int32_t *at, uint32_t rank);
void fibers_store_commit(void);
void fibers_store_wait(unsigned left);
/* Of a map that cuTensorMapEncodeTiled made, or with offsets, cuTensorMapEncodeIm2col; coordinates innermost first.
 * blocks: bits of ranks in the cluster; 0: the thread's own. */
void fibers_tensor_copy(void *to, const void *map, const void *arrived, const int32_t *at, const uint16_t *offsets,
                        uint32_t rank, uint32_t blocks);

/* Addresses of shared memory, of 18 bits, as descriptors have them, and back; the last ten are those of the pointer. */
uint32_t fibers_shared_address(const void *at);
const void *fibers_shared_at(uint32_t address);
/* What is written to shared memory is seen by products where each thread fences, and all meet after that. */
void fibers_proxy_fence(void);
void fibers_check_proxies(void);

#ifdef __cplusplus
}
#endif
#endif
