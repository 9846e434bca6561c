/* Short floats as float32. Internal to jit. */
#ifndef MSCHED_JIT_SHORT_FLOATS_H
#define MSCHED_JIT_SHORT_FLOATS_H

#include "api.h"
#include "jit/jit.h"

#include <assert.h>

/* In an optimized module, compares and rounds to whole numbers as float32 what LLVM narrowed to 16 bits though the
 * target has no instruction for that. Where the target computes with float16, and `fast_math`, products of it may be
 * fused with sums. */
void jit_widen_short_floats(LLVMModuleRef module, const struct jit_target *target, bool fast_math);

#endif
