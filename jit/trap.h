/* Faults of kernels that are called in this process: a kernel that touches memory that is not there, divides by zero or
 * runs what the CPU lacks, on any of its threads, ends the call, not the process. Internal to jit.
 *
 * Each thread that runs a part of the kernel has a place to land: where a signal of the kernel's comes, its handler jumps
 * there. A part of a parallel loop that faults ends, the others run to their end, libgomp's team comes together as
 * always, and then the call ends. Signals that come from elsewhere go where they went before. */
#ifndef MSCHED_JIT_TRAP_H
#define MSCHED_JIT_TRAP_H

#include "jit.h"

/* Installs the handlers, where others stand now. */
void trap_install(void);
/* Calls the entry, after trap_install; *status is what it returned. false: it faulted, and err says how. */
bool trap_call(jit_entry entry, void **args, void *workspace, int32_t *status, ms_error *err);
/* What code that is loaded into this process calls in the place of GOMP_parallel. */
void trap_parallel(void (*start)(void *), void *closure, unsigned threads, unsigned flags);

#endif
