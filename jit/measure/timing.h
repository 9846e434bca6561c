/* Timing of calls. Internal to jit. */
#ifndef MSCHED_JIT_TIMING_H
#define MSCHED_JIT_TIMING_H

#include "jit/jit.h"

/* What is timed: gives seconds of one of so many calls in a row; below 0: one failed. */
struct timing_subject {
  double (*sample)(void *data, uint32_t calls);
  jit_turn *turn; /* NULL: nothing is known of where it runs */
  void *data;
};
/* What timing reads besides; a test gives its own. */
struct timing_clock {
  double (*now)(void);             /* seconds */
  uint64_t (*interruptions)(void); /* how often this process's threads lost a processor that they still wanted */
  void (*rest)(void);              /* long enough that threads that wait for work sleep */
};
struct timing_plan {
  double tolerance; /* relative half width of the 95 % interval of the median */
  uint32_t least;   /* samples, however well they agree; 0: three */
  double limit;     /* seconds; the interval may then be wider */
  double once;      /* what a call took that warmed the caches */
  double hopeless;  /* 0, or: stop, censored, when the fastest of the samples is slower */
  double best;      /* 0, or the seconds of another: what is slower, and was not interrupted, need not be known well */
  uint32_t again;   /* how often all is sampled again where the machine was busy */
  const struct timing_clock *clock; /* NULL: the machine's */
  double
      hertz; /* 0, or: what was timed at another clock of the device, by more than HERTZ_NOISE, is scaled to this one */
};
extern const struct timing_clock timing_apart; /* of calls whose time is a device's: this process may be interrupted */
/* Calls the subject until the plan is met. One slow call is no verdict: what is hopeless is so by the fastest of three,
 * the call that warmed the caches among them, of that call and another that nothing was seen to interrupt, or of fewer
 * that exceed the limit by more than any interruption takes; where other programs run, by one after a rest, too. false:
 * no memory, or a call failed. */
bool timing_measure(const struct timing_subject *subject, const struct timing_plan *plan, struct jit_timing *out);
/* The same, of calls that say by *why how one failed; false: err has that, or that there is no memory. A plan whose
 * `once` is below 0 is of one that has failed. */
bool timing_or_why(const struct timing_subject *subject, const struct timing_plan *plan, const ms_error *why,
                   struct jit_timing *out, ms_error *err);
struct timing_turns {
  double seconds;       /* of slices, for each */
  bool to_find_fastest; /* what has lost gets no more */
  const struct timing_clock *clock;
};
/* As jit_time_in_turn and jit_find_fastest. */
bool timing_in_turn(const struct jit_finalist *finalists, uint32_t count, const struct timing_turns *turns,
                    struct jit_timing *out);

#endif
