/* What each kernel of a function takes of a GPU. Internal to tir and vm. */
#ifndef MSCHED_TIR_KERNEL_H
#define MSCHED_TIR_KERNEL_H

#include "analysis.h"

/* A statement below a function's root block. Numbers that no constant bounds are -1. */
struct tir_kernel {
  bool uniform;                        /* every loop bound to an axis has the same extent */
  int64_t threads, vthreads;           /* of a block, of a thread */
  int64_t least_threads, most_threads; /* that annotations of its blocks allow; 0: any */
  int64_t shared_bytes;                /* a block's, once buffers hold only what lives at a time */
  int64_t local_bytes;                 /* a thread's, likewise, for all of its virtual threads */
  int64_t vector_bytes;                /* the widest access */
};

/* Returns their number, stores at most `most`. Interns expressions. */
uint32_t tir_kernels(struct tir *ir, tir_func f, struct tir_kernel *out, uint32_t most);
/* Bytes of the buffers of exactly this scope that the root block allocates, as kernels count them; -1: not known. */
int64_t tir_scope_bytes(struct tir *ir, tir_func f, const char *scope);

#endif
