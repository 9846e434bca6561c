/* Parallel loops on threads of ours, whose timing is perturbed. Internal to jit. */
#ifndef MSCHED_JIT_PERTURB_H
#define MSCHED_JIT_PERTURB_H

#include "jit/jit.h"

/* A kernel that was loaded for perturbed runs calls this in libgomp's place. */
void perturb_parallel(void (*body)(void *closure), void *closure, unsigned threads, unsigned flags);
int perturb_thread_number(void);
int perturb_thread_count(void);

/* Runs of one kernel: each loop's waits are as long as its parts took in the run before. */
struct perturbation {
  double parts[64];
  uint32_t loops; /* run by the last run */
};
/* Runs an entry of a kernel that was loaded for perturbed runs, on so many threads. Gives what the entry returns; a
 * fault ends the process. */
int32_t perturb_run(struct perturbation *perturbation, jit_entry entry, void **args, void *workspace, uint32_t threads,
                    uint64_t seed);
/* The same where a fault, or a stop, ends the call: after trap_install, as trap_call has it. */
bool perturb_call(struct perturbation *perturbation, jit_entry entry, void **args, void *workspace, uint32_t threads,
                  uint64_t seed, const volatile int *stop, int32_t *status, ms_error *err);

/* How often a kernel is run before it is trusted, and on at most how many threads. */
enum { PERTURB_MOST_THREADS = 9, PERTURB_RUNS = 6 };
/* Threads, `most` at most, of run 0 to PERTURB_RUNS - 1, and of those after them in turn, of a kernel for so many
 * cores: but in the last of them the threads are not as many as cores, so that each has a run of iterations of its own,
 * as emit_parallel.c has it (with memory for two threads on two cores, that cannot be). */
uint32_t perturb_threads(uint32_t run, uint32_t cores, uint32_t most);
/* Bytes of a workspace for so many threads. */
size_t perturb_workspace(const struct tir_workspace *workspace, uint32_t threads);

#endif
