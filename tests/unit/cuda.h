/* For tests of CUDA without a GPU (tests/cuda/fake): a workload, traces with so many threads a block, and what the fake
 * driver is given. Include in one file a program. */
#ifndef MSCHED_TEST_CUDA_H
#define MSCHED_TEST_CUDA_H

#include "measurer.h"

#define CUDA_TARGET "cuda -arch=sm_90"

/* A row of numbers, each of which is doubled. */
static inline struct tir *doubling(void) {
  return read_function("A: T.Buffer((1024,), \"float32\"), C: T.Buffer((1024,), \"float32\")",
                       "for i in range(1024):", "    with T.sblock(\"C\"):", "        vi = T.axis.spatial(1024, i)",
                       "        C[vi] = A[vi] * T.float32(2)");
}

/* Its schedule with so many threads a block. */
static inline void bound(int threads, char out[600]) {
  snprintf(out, 600,
           "[[[\"GetSBlock\", [], [\"C\", \"main\"], [\"b\"]], [\"GetLoops\", [\"b\"], [], [\"i\"]], "
           "[\"Split\", [\"i\", null, %d], [1, 0], [\"o\", \"t\"]], [\"Bind\", [\"o\"], [\"blockIdx.x\"], []], "
           "[\"Bind\", [\"t\"], [\"threadIdx.x\"], []]], []]",
           threads);
}

static inline void submit_bound(struct jit_measurer *m, uint64_t id, int threads) {
  char trace[600];
  bound(threads, trace);
  submit(m, id, trace);
}

static char cuda_folder[] = "/tmp/msched-cuda.XXXXXX"; /* of libraries that the fake NVRTC makes, and of marks */

static inline int open_folder(void **state) {
  (void)state;
  return mkdtemp(cuda_folder) && !setenv("FAKE_NVRTC_FOLDER", cuda_folder, 1) ? 0 : -1;
}
static inline int close_folder(void **state) {
  char command[100];
  (void)state;
  snprintf(command, sizeof command, "rm -rf %s", cuda_folder);
  return system(command);
}
/* Exits with 77 where the fakes cannot work. */
static inline void need_fakes(void) {
  if (!getenv("MSCHED_LIBCUDA") || !getenv("MSCHED_NVRTC") || system("g++ --version >/dev/null 2>&1")) {
    puts("skipped: MSCHED_LIBCUDA and MSCHED_NVRTC name tests/cuda/fake's libraries, which need g++");
    exit(77);
  }
}

#endif
