/* Loops of an unscheduled function shared among the threads of a device. Internal to jit. */
#ifndef MSCHED_JIT_ARRANGE_THREADS_H
#define MSCHED_JIT_ARRANGE_THREADS_H

#include "jit/jit.h"

/* Makes a kernel of each block of function f: a thread computes one element; where there are few elements of long sums,
 * the threads of a block of threads compute one together. attempt: from 0 on, each simpler than the one before, for
 * functions that cannot be lowered so. false: a block is no nest of loops, or there is no simpler way: err says
 * which. */
enum { JIT_ARRANGE_ATTEMPTS = 3 };
bool jit_arrange_threads(struct tir *ir, tir_func f, const struct jit_target *target, uint32_t attempt, ms_error *err);

#endif
