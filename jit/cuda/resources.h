/* What kernels take of a GPU, read from the log of ptxas as NVRTC gives it. Internal to jit. */
#ifndef MSCHED_JIT_RESOURCES_H
#define MSCHED_JIT_RESOURCES_H

#include "jit/jit.h"

/* Fills in what the log says of each kernel, by its name; of PTX, which no assembler has seen, it says nothing. false:
 * a block of one takes more than the target's limits. */
bool resources_note(const char *log, const struct jit_target *target, struct jit_resources *kernels, uint32_t count,
                    ms_error *err);
/* The most that any of them takes, where the assembler says it of all. */
struct jit_taken resources_most(const struct jit_resources *kernels, uint32_t count);

#endif
