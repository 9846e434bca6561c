/* The threads that parallel loops run on, in the place of an OpenMP library's. Internal to jit; libraries of networks
 * have a copy of these two files, which need libc alone.
 *
 * A loop has parts, and a thread is told which part it runs and of how many. Parts are claimed one by one, by the
 * thread that calls and by workers, which wait for the next loop: part i first by worker i, so that what it has in its
 * caches is used again. Where a worker has no processor the caller does its part, and waits for no thread but one that
 * runs a part. A thread that calls while another's loop runs does all its parts itself; so does a part that calls, and
 * the child of a fork, which has no workers. */
#ifndef MSCHED_JIT_TEAM_H
#define MSCHED_JIT_TEAM_H

/* Calls start(closure) for each of `count` parts, once; comes back when all are done. */
void team_parallel(void (*start)(void *), void *closure, unsigned count);
/* The part that this thread runs, from 0 on, and of how many; outside of loops 0 of 1. */
int team_part(void);
int team_parts(void);

#endif
