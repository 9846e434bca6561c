/* Timing of calls. Internal to jit. */
#ifndef MSCHED_JIT_TIMING_H
#define MSCHED_JIT_TIMING_H

#include "jit.h"

struct timing_plan {
  double tolerance; /* relative half width of the 95 % interval of the median */
  double limit;     /* seconds; the interval may then be wider */
  double once;      /* what a call took that warmed the caches */
  double hopeless;  /* 0, or: stop, censored, when the fastest of the samples is slower */
};
/* Calls the entry until the plan is met. false: no memory. */
bool timing_measure(jit_entry entry, void **args, void *workspace, const struct timing_plan *plan,
                    struct jit_timing *out);
/* Fills everything but `censored`; sorts the samples. */
void timing_summarize(double *samples, uint32_t count, struct jit_timing *out);

#endif
