/* The runner: loads candidates' objects, compares what they compute with the reference and times them. */
#define _GNU_SOURCE
#include "../machine.h"
#include "../shake.h"
#include "../timing.h"
#include "helper.h"

#include <math.h>
#include <omp.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* Of a task, on real numbers: made when it is first needed. */
struct real {
  struct jit_expected expected;
  bool asked, is_there;
};

struct running {
  const struct workload *w; /* of the candidate that it runs */
  struct measure_reference reference;
  struct real *reals; /* by task */
  struct real *real;
  struct note *note;
  struct arena arena; /* of one task at a time: all their data may be too much */
};

/* ---- A bound on time that holds in the middle of a run: the alarm ends the process ---- */

static void set_alarm(double seconds) {
  struct itimerval timer = {0};
  if (seconds > 0) {
    timer.it_value.tv_sec = (time_t)seconds;
    timer.it_value.tv_usec = (suseconds_t)((seconds - floor(seconds)) * 1e6) + 1;
  }
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void enter(struct running *r, enum stage stage, double limit) {
  r->note->started = measure_now();
  r->note->limit = limit;
  r->note->stage = stage;
  set_alarm(limit);
}

static void leave(struct running *r) {
  set_alarm(0);
  r->note->stage = STAGE_IDLE;
}

/* ---- One candidate ---- */

struct candidate {
  const struct jit_code *code;
  const struct jit_kernel *kernel;
  jit_entry entry;
  void *workspace;
  double best, hopeless; /* 0: none */
  double grace;
  struct jit_result *out;
};

static bool finish(struct jit_result *out, enum jit_outcome outcome, const char *reason) {
  out->outcome = outcome;
  if (reason) snprintf(out->reason, sizeof out->reason, "%.390s", reason);
  return false;
}

static bool compare(struct running *r, struct candidate *c) {
  ms_error err = {.instruction = -1};
  return arena_compare(&r->arena, r->reference.tolerance, &err) || finish(c->out, JIT_WRONG, err.message);
}

/* Runs it on fresh arguments; *seconds is what that took. */
static bool run_once(struct running *r, struct candidate *c, double *seconds) {
  double limit = r->w->hello->options.run_timeout;
  if (c->hopeless > 0) limit = fmin(limit, c->hopeless + c->grace);
  arena_reset(&r->arena);
  enter(r, STAGE_FIRST_RUN, limit);
  double before = measure_now();
  int32_t status = c->entry(r->arena.pointers, c->workspace);
  *seconds = measure_now() - before;
  leave(r);
  ms_error err = {.instruction = -1};
  return jit_passed(status, &err) || finish(c->out, JIT_WRONG, err.message);
}

/* What timing may take where the machine is not quiet, at least in seconds and in runs, how exact it is (0: as the user
 * asks), the least samples, and how often it is done again: for those that are close to the best, of which the fastest
 * are timed again at the end of all, and for the others, of which it matters little how far they are exactly. */
static const struct patience {
  double seconds, runs, tolerance;
  uint32_t least, again;
} close_ones = {0.2, 5, 0, 3, 1}, far_ones = {0.08, 2, 0.1, 2, 0};
static const double CLOSE = 1.3, QUICK = 0.25; /* times the best; seconds where there is none */

static bool time_it(struct running *r, struct candidate *c, double once) {
  double most = r->w->hello->options.run_timeout;
  bool is_close = c->best > 0 ? once < CLOSE * c->best : once < QUICK;
  struct patience patience = is_close ? close_ones : far_ones;
  struct timing_plan plan = {.tolerance = fmax(patience.tolerance, r->w->hello->options.tolerance),
                             .least = patience.least,
                             .once = once,
                             .hopeless = c->hopeless,
                             .again = patience.again,
                             .limit = fmin(most, fmax(patience.seconds, patience.runs * once))};
  enter(r, STAGE_TIMING, most);
  bool ok = timing_measure(c->entry, r->arena.pointers, c->workspace, &plan, &c->out->timing);
  leave(r);
  if (!ok) return finish(c->out, JIT_CRASHED, "no memory for timing");
  c->out->outcome = c->out->timing.censored ? JIT_CENSORED : JIT_MEASURED;
  return true;
}

/* On real numbers, which show arithmetic that is coarser than the function's. */
static bool is_fine(struct running *r, struct candidate *c) {
  const struct workload *w = r->w;
  ms_error err = {.instruction = -1};
  struct real *real = r->real;
  if (!real->asked) real->is_there = jit_expect(w->ir, w->f, &w->hello->target, JIT_REAL, 1, &real->expected, &err) > 0;
  real->asked = true;
  if (!real->is_there) return true;
  enter(r, STAGE_FIRST_RUN, w->hello->options.run_timeout);
  bool same = jit_kernel_agrees(&real->expected, w->ir, w->f, c->kernel, NULL, &err);
  leave(r);
  char reason[390];
  snprintf(reason, sizeof reason, "on real numbers, %.360s", err.message);
  return same || finish(c->out, JIT_WRONG, reason);
}

/* Runs it on more threads than it was timed on, in memory for them, as long as there is time; *runs of these runs. */
static uint32_t run_shaken(struct running *r, struct candidate *c, jit_entry entry, uint32_t *runs, ms_error *err) {
  const struct tir_workspace *w = &c->code->workspace;
  double start = measure_now(), limit = r->w->hello->options.run_timeout;
  size_t bytes = shake_workspace(w, SHAKE_MOST_THREADS);
  void *more = bytes > w->bytes ? guarded_new(bytes) : NULL, *workspace = more ? more : c->workspace;
  uint32_t most = more || bytes == w->bytes ? SHAKE_MOST_THREADS : w->threads, differing = 0;
  struct shaking shaking;
  for (size_t i = 0; i < sizeof shaking.parts / sizeof *shaking.parts; i++) shaking.parts[i] = c->out->timing.seconds;
  enter(r, STAGE_FIRST_RUN, limit);
  for (*runs = 0; *runs < SHAKE_RUNS && measure_now() - start < limit / 8; ++*runs) {
    uint32_t threads = shake_threads(*runs) < most ? shake_threads(*runs) : most;
    ms_error why = {.instruction = -1};
    arena_reset(&r->arena);
    int32_t status = shake_run(&shaking, entry, r->arena.pointers, workspace, threads, *runs);
    bool same = jit_passed(status, &why) && arena_compare(&r->arena, r->reference.tolerance, &why);
    if (!same && !differing++) *err = why;
    if (!shaking.loops) break; /* one thread has one timing */
  }
  leave(r);
  if (more) guarded_free(more, bytes);
  return differing;
}

/* What would be the best is run again, its threads' timing shaken, and all that it writes compared each time. */
static bool is_steady(struct running *r, struct candidate *c) {
  ms_error err = {.instruction = -1};
  uint32_t runs, differing;
  char reason[390];
  struct jit_kernel *kernel = jit_load_shaken(c->code, &err);
  if (!kernel) return finish(c->out, JIT_BUILD_FAILED, err.message);
  differing = run_shaken(r, c, jit_kernel_entry(kernel), &runs, &err);
  jit_kernel_free(kernel);
  if (!differing) return true;
  snprintf(reason, sizeof reason, "the result depends on thread timing: %u of %u runs differ; %.250s", differing, runs,
           err.message);
  return finish(c->out, JIT_WRONG, reason);
}

static bool check_and_time(struct running *r, struct candidate *c) {
  double once, start = measure_now();
  bool late = r->w->hello->options.check_best_only;
  if (!run_once(r, c, &once) || (!late && !compare(r, c))) return false;
  double checked = measure_now();
  c->out->check_seconds = checked - start;
  bool timed = time_it(r, c, once);
  c->out->time_seconds = measure_now() - checked;
  bool best = c->out->outcome == JIT_MEASURED && (c->best <= 0 || c->out->timing.seconds <= c->best);
  if (!timed || !best) return timed;
  return (!late || (run_once(r, c, &once) && compare(r, c))) && is_fine(r, c) && is_steady(r, c);
}

static void measure(struct running *r, const struct measure_run *run, const void *object, size_t bytes,
                    struct jit_result *out) {
  ms_error err = {.instruction = -1};
  double factor = r->w->hello->options.censor_factor, unscheduled = r->reference.seconds;
  double fastest = run->best > 0 && (unscheduled <= 0 || run->best < unscheduled) ? run->best : unscheduled;
  struct candidate c = {
      .best = run->best, .grace = run->grace, .hopeless = fastest > 0 && factor > 0 ? factor * fastest : 0, .out = out};
  r->note->stage = STAGE_LOADING;
  struct jit_code *code = jit_code_of_object(object, bytes, &run->workspace, run->name);
  struct jit_kernel *kernel = jit_load(code, &err);
  if (!kernel) {
    jit_code_free(code);
    finish(out, JIT_BUILD_FAILED, err.message);
    return;
  }
  c.code = code;
  c.kernel = kernel;
  c.entry = jit_kernel_entry(kernel);
  c.workspace = run->workspace.bytes ? guarded_new(run->workspace.bytes) : NULL;
  if (run->workspace.bytes && !c.workspace) {
    finish(out, JIT_CRASHED, "its workspace is larger than the memory a candidate may have");
  } else {
    if (c.workspace) memset(c.workspace, 0xff, run->workspace.bytes); /* NaN where nothing was written */
    check_and_time(r, &c);
  }
  guarded_free(c.workspace, run->workspace.bytes);
  jit_kernel_free(kernel);
  jit_code_free(code);
}

/* ---- The process ---- */

/* On as many cores as the target has, the first that are allowed. */
static void pin(int cores) {
  cpu_set_t allowed, chosen;
  CPU_ZERO(&chosen);
  if (sched_getaffinity(0, sizeof allowed, &allowed) || cores >= CPU_COUNT(&allowed)) return;
  for (int cpu = 0, taken = 0; cpu < CPU_SETSIZE && taken < cores; cpu++)
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &chosen), taken++;
  sched_setaffinity(0, sizeof chosen, &chosen);
}

/* Threads start before the first candidate, which would pay for them. */
static void start_threads(int cores) {
  int started = 0;
#pragma omp parallel num_threads(cores) reduction(+ : started)
  started += 1;
  (void)started;
}

void runner_prepare(int cores) {
  pin(cores);
  start_threads(cores);
}

/* The next candidate is of this task. */
static void turn_to(struct running *r, const struct workloads *all, const struct measure_run *run) {
  const struct workload *w = all->at[run->task];
  r->reference = run->reference;
  r->real = &r->reals[run->task];
  if (r->w == w) return;
  if (r->w)
    arena_close(&r->arena);
  else
    runner_prepare(w->hello->target.cores);
  r->w = w;
  arena_open(&r->arena, w);
}

void runner_main(struct channel *channel, const struct workloads *all, struct note *note) {
  struct running r = {.note = note, .reals = calloc(all->count + 1, sizeof *r.reals)};
  struct message message;
  if (!r.reals) abort();
  while (channel_wait(channel, -1, &message) == 1) {
    struct measure_run run;
    struct jit_result result = {0};
    if (message.bytes < sizeof run) return;
    memcpy(&run, message.data, sizeof run);
    if (run.task >= all->count) return;
    turn_to(&r, all, &run);
    measure(&r, &run, message.data + sizeof run, message.bytes - sizeof run, &result);
    channel_send(channel, MEASURE_RAN, &result, sizeof result, NULL, 0);
    if (!channel_drain(channel)) return;
  }
}
