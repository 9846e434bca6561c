/* Loops of an unscheduled function in an order in which it runs fast. Internal to jit. */
#ifndef MSCHED_JIT_ARRANGE_H
#define MSCHED_JIT_ARRANGE_H

#include "jit/jit.h"

/* Reorders the loops of function f, and shares them among threads, as far as its results keep their bits. */
void jit_arrange(struct tir *ir, tir_func f);

#endif
