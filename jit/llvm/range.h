/* Range instructions. Internal to jit. */
#ifndef MSCHED_JIT_RANGE_H
#define MSCHED_JIT_RANGE_H

#include "api.h"
#include "jit/jit.h"

#include <assert.h>

/* Replaces calls of llvm.minnum and llvm.maxnum in an optimized module by the target's range instructions, where it has
 * them. */
void jit_use_range(LLVMModuleRef module, const struct jit_target *target);

#endif
