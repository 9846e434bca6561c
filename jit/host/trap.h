/* Ends of kernels that are called in this process, before their end. Internal to jit.
 *
 * A fault: a kernel that touches memory that is not there, divides by zero or runs what the CPU lacks, on any of its
 * threads, ends the call, not the process. A stop: who called it wants it no more (jit_stop_calls).
 *
 * Each thread that runs a part of the kernel has a place to land: where a signal of the kernel's comes, or that of a
 * stop, its handler jumps there. A part of a parallel loop that faults ends, the others run to their end, the
 * threads come together as always, and then the call ends. A stop ends the parts on all threads alike, and has no
 * effect inside team.c, which must not be left. Signals that come from elsewhere go where they went before. */
#ifndef MSCHED_JIT_TRAP_H
#define MSCHED_JIT_TRAP_H

#include "jit/jit.h"

/* Installs the handlers, where others stand now. */
void trap_install(void);
/* Runs body(data), which calls kernels, after trap_install. false: one faulted, and err says how; or it was stopped.
 *   stop  NULL: it is not stopped */
bool trap_run(void (*body)(void *data), void *data, const volatile int *stop, ms_error *err);
/* Calls the entry so; *status is what it returned. */
bool trap_call(jit_entry entry, void **args, void *workspace, const volatile int *stop, int32_t *status, ms_error *err);

/* What code that is loaded into this process calls in the place of GOMP_parallel: its loops run on team.h's threads. */
void trap_parallel(void (*start)(void *), void *closure, unsigned threads, unsigned flags);

/* The same in steps, for who has threads of its own: it begins the loop, runs a part on each thread, and when all have
 * come together ends it, which does not come back where one faulted or was stopped. */
struct trap_loop {
  void (*start)(void *closure);
  void *closure;
  const volatile int *stop;
  bool trapped; /* the kernel that it is of is run by trap_run */
  int signal;   /* that ended the part of a thread, or 0 */
};
void trap_begin(struct trap_loop *loop, void (*start)(void *), void *closure);
void trap_part(void *loop);
void trap_end(struct trap_loop *loop);

#endif
