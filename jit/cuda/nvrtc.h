/* NVIDIA's run-time compiler of CUDA C++, where it is installed: opened when it is first asked for. Internal to jit. */
#ifndef MSCHED_JIT_NVRTC_H
#define MSCHED_JIT_NVRTC_H

#include "jit/jit.h"

struct nvrtc_code {
  char *bytes; /* PTX (text), or a cubin for the very architecture */
  size_t size;
  char *log; /* of the compiler and of ptxas: each kernel's registers, spills, stack, shared memory */
};
/* Compiles source of kernels. Thread-safe. The library is MSCHED_NVRTC, or found by the names of versions 13 and 12;
 * false: it is not there, or refuses the source: err says which. nvrtc_code_free in either case. */
bool nvrtc_compile(const char *source, const struct jit_target *target, bool no_fast_math, bool ptx,
                   struct nvrtc_code *out, ms_error *err);
bool nvrtc_version(int *major, int *minor, ms_error *err); /* false: there is none */
/* Whether it makes code for the target's architecture. */
bool nvrtc_knows(const struct jit_target *target, ms_error *err);
void nvrtc_code_free(struct nvrtc_code *code);

#endif
