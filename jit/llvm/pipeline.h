/* LLVM's passes over a kernel, and what each pass of a compilation takes. Internal to jit. */
#ifndef MSCHED_JIT_PIPELINE_H
#define MSCHED_JIT_PIPELINE_H

#include "api.h"
#include "jit/jit.h"

/* What the passes of one compilation have taken so far. */
struct jit_clock {
  struct jit_pass passes[JIT_MOST_PASSES];
  uint32_t count;
  double last; /* when the last of them ended */
};
void jit_clock_start(struct jit_clock *clock);
/* The pass `name` ends now. The name is kept, not copied; clock may be NULL. */
void jit_clock_pass(struct jit_clock *clock, const char *name);

/* Optimizes the module of a kernel, which was made of so many loops. */
bool jit_optimize(LLVMModuleRef module, LLVMTargetMachineRef machine, uint32_t loops, struct jit_clock *clock,
                  ms_error *err);

#endif
