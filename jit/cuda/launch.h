/* What launches a function's kernels, in order: what the source says to nvcc, as data. Internal to jit. */
#ifndef MSCHED_JIT_CUDA_LAUNCH_H
#define MSCHED_JIT_CUDA_LAUNCH_H

#include "jit/jit.h"
#include "tensor_map.h"

/* A scalar's value lies in eight bytes, as jit_arguments writes it: a kernel reads as many of them as it takes. A map
 * takes the place of a buffer's address, which it is made of. */
struct cuda_operand {
  enum { CUDA_BUFFER, CUDA_WORKSPACE, CUDA_SCALAR } kind;
  uint32_t parameter; /* of the function, where it is one of its */
  uint64_t offset;    /* in the workspace, on the device */
  uint64_t map;       /* of cuda_plan.maps, from 1; 0: the address itself */
};
struct cuda_launch {
  char name[JIT_KERNEL_NAME];
  uint32_t grid[3], block[3], shared_bytes;
  uint32_t first, count; /* its operands */
};
struct cuda_plan {
  struct cuda_launch *launches;
  struct cuda_operand *operands;
  struct tensor_map *maps;
  uint32_t launch_count, operand_count;
  uint64_t map_count;
  uint64_t workspace;
  uint64_t cold;     /* 1: the device's cache is flushed before each run that is timed */
  char refusal[200]; /* why it cannot be launched by us; "": it can */
};
struct c_kernels;
/* Of a function lowered for a GPU, whose kernels were written. cuda_plan_free. */
void cuda_plan_make(const struct tir *lowered, tir_func f, const struct c_kernels *kernels, struct cuda_plan *out);
void cuda_plan_free(struct cuda_plan *plan);

/* A plan and the code of its kernels as bytes, free(); and back: lists and code lie in the bytes, which begin at a
 * multiple of eight. false: they are no plan. */
void *cuda_plan_write(const struct cuda_plan *plan, const void *code, size_t code_bytes, size_t *bytes);
bool cuda_plan_read(const void *bytes, size_t count, struct cuda_plan *out, const void **code);

#endif
