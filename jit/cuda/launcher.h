/* C that launches exported kernels through the driver's API, and its header. Internal to jit. */
#ifndef MSCHED_JIT_LAUNCHER_H
#define MSCHED_JIT_LAUNCHER_H

#include "launch.h"

/* NAME_load, NAME_launch and NAME_unload of a function whose kernels the plan launches: their declarations, and their
 * source, which includes the file `header`. target: in the header, its text. cut: NULL, or how constants are packed for
 * it. The caller's to free(). */
char *launcher_header(const struct tir *ir, tir_func f, const char *name, const char *target,
                      const struct cuda_plan *plan, const struct tir_packing *cut);
char *launcher_source(const struct tir *ir, tir_func f, const char *name, const struct jit_target *target,
                      const struct cuda_plan *plan, const char *header);

#endif
