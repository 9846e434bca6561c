/* Choices by comparison that compilers must not merge. Internal to jit. */
#ifndef MSCHED_JIT_CHOICES_H
#define MSCHED_JIT_CHOICES_H

#include "tir/tir.h"

/* How many choices by comparison in a function may give a constant for NaN: of the smaller, of the larger. */
struct jit_choices {
  uint32_t giving[2];
};
struct jit_choices jit_choices_of(const struct tir *ir, tir_func f);
/* Whether the expression is a choice that may give NaN, and that a compiler may merge with one of `all`. */
bool jit_is_merged(const struct tir *ir, const struct jit_choices *all, tir_expr x);

#endif
