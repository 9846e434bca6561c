/* Clamps that LLVM must not merge. Internal to jit. */
#ifndef MSCHED_JIT_CLAMPS_H
#define MSCHED_JIT_CLAMPS_H

#include "api.h"

#include <stdbool.h>

/* Hides from LLVM's instcombine, which would merge them wrongly, the values of clamps that keep NaN, where the module
 * has others that do not; call it right before. Whether any is hidden. */
bool jit_hide_clamps(LLVMModuleRef module);

/* Takes away what jit_hide_clamps put in. */
void jit_show_clamps(LLVMModuleRef module);

#endif
