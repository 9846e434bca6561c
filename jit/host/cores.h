/* How many cores and how much memory may be used, as far as files say so. Internal to jit. */
#ifndef MSCHED_JIT_CORES_H
#define MSCHED_JIT_CORES_H

/* Processors that control groups let this process use at once, the least of its group's and of all around it; 0: no
 * limit. system: "", or a folder that holds proc/self/cgroup, proc/self/mountinfo and the groups in their place. */
double cores_quota(const char *system);
/* Bytes of memory that they let it have, in the same way. */
double cores_memory(const char *system);
/* Of so many allowed, with that quota (0: none): at least 1; a fraction of a core is left, since who is throttled in
 * the middle of a run is timed wrong. */
int cores_usable(int allowed, double quota);

#endif
