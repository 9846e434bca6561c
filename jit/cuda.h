/* Targets of kind "cuda": a GPU's architecture and the limits of a block; CUDA's part of its row in the table (backend.h).
 * Internal to jit. */
#ifndef MSCHED_JIT_CUDA_H
#define MSCHED_JIT_CUDA_H

#include "backend.h"

bool cuda_parse(char *words, struct jit_target *out, ms_error *err);
void cuda_text(const struct jit_target *target, char *out, size_t size);
uint32_t cuda_numbers(const struct jit_target *target, struct jit_number out[JIT_MOST_NUMBERS]);
struct tir_lower_options cuda_lower(const struct jit_target *target);

#endif
