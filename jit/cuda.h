/* Targets of kind "cuda": a GPU's architecture and the limits of a block. Internal to jit. */
#ifndef MSCHED_JIT_CUDA_H
#define MSCHED_JIT_CUDA_H

#include "jit.h"

/* Whether a target's text begins with the word `cuda`. */
bool cuda_is_text(const char *text);
/* The words after it, which are cut up. */
bool cuda_parse(char *words, struct jit_target *out, ms_error *err);
void cuda_text(const struct jit_target *target, char *out, size_t size);

#endif
