/* The runner: loads candidates' objects, compares what they compute with the reference and times them. */
#include "helper.h"
#include "jit/measure/perturb.h"
#include "jit/measure/timing.h"

#include <assert.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

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
  const struct jit_backend *backend;
  struct jit_device *device;
  bool is_open;
  struct arena arena; /* of one task at a time: all their data may be too much */
};

/* ---- A bound on time that holds in the middle of a run: the alarm ends the process ---- */

/* The alarm goes off so many times before it does: one that comes while the process is stopped counts once, however
 * long that is. What has had little of the processor by then, as where the machine is busy, has more time. */
enum { TICKS = 8 };
static const double ENOUGH = 0.9; /* of the seconds, by the processor */
static struct {
  volatile sig_atomic_t ticks;
  bool apart;
  double limit, processor; /* seconds; of the process, when it began */
} bound;

static double processor_seconds(void) { return measure_clock(CLOCK_PROCESS_CPUTIME_ID); }

static void on_tick(int number) {
  bound.ticks++;
  if (bound.ticks < TICKS) return;
  bool busy = !bound.apart && processor_seconds() - bound.processor < ENOUGH * bound.limit;
  if (busy && bound.ticks < CHILD_MORE * TICKS) return;
  signal(number, SIG_DFL);
  raise(number);
}

static void set_alarm(double seconds) {
  struct itimerval timer = {0};
  double tick = fmin(seconds / TICKS, 1e6); /* an alarm has no more than its type */
  if (seconds > 0) {
    timer.it_value.tv_sec = (time_t)tick;
    timer.it_value.tv_usec = (suseconds_t)((tick - floor(tick)) * 1e6) + 1;
    timer.it_interval = timer.it_value;
  }
  setitimer(ITIMER_REAL, &timer, NULL);
}

static void enter(struct running *r, enum stage stage, double limit) {
  assert(stage > STAGE_IDLE && limit > 0);
  r->note->started = measure_now();
  r->note->limit = limit;
  r->note->stage = stage;
  bound.ticks = 0, bound.apart = r->backend->apart;
  bound.limit = limit, bound.processor = processor_seconds();
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
  void *workspace;
  struct jit_packed packed; /* its constants, packed ahead */
  double best, hopeless;    /* 0: none */
  double hertz;             /* as measure_run has it */
  double grace;
  struct jit_result *out;
};

static bool finish(struct jit_result *out, enum jit_outcome outcome, const char *reason) {
  out->outcome = outcome;
  if (reason) snprintf(out->reason, sizeof out->reason, "%.390s", reason);
  return false;
}

/* What became of a candidate that failed with this error. */
static bool fault(struct jit_result *out, const ms_error *err) {
  return finish(out, jit_outcome_of(err->code), err->message);
}

static bool compare(struct running *r, struct candidate *c) {
  ms_error err = {.instruction = -1};
  if (!arena_fetch(&r->arena, &err)) return fault(c->out, &err);
  if (arena_compare(&r->arena, r->reference.tolerance, &err)) return true;
  return finish(c->out, arena_has_nan(&r->arena) ? JIT_NAN : JIT_WRONG, err.message);
}

/* Seconds that a first run may take. A process that is ended costs what it takes to settle. */
static double longest_run(const struct running *r, const struct candidate *c) {
  double most = r->w->hello->options.run_timeout;
  return c->hopeless > 0 ? fmin(most, fmax(c->hopeless + c->grace, r->backend->settling)) : most;
}

/* Runs it on fresh arguments; *seconds is what that took. */
static bool run_once(struct running *r, struct candidate *c, double *seconds) {
  ms_error err = {.instruction = -1};
  if ((r->arena.checker && !device_expect(&r->arena, false, &err)) || !arena_reset(&r->arena, &err))
    return fault(c->out, &err);
  enter(r, STAGE_FIRST_RUN, longest_run(r, c));
  double before = measure_now();
  bool ok =
      r->backend->run(c->kernel, jit_packed_arguments(&c->packed, r->arena.pointers), c->workspace, false, NULL, &err);
  *seconds = measure_now() - before;
  leave(r);
  return ok || fault(c->out, &err);
}

/* What timing may take where the machine is not quiet, at least in seconds and in runs, how exact it is (0: as the user
 * asks), the least samples, and how often it is done again: for those that are close to the best, of which the fastest
 * are timed again at the end of all, and for the others, of which it matters little how far they are exactly. */
static const struct patience {
  double seconds, runs, tolerance;
  uint32_t least, again;
} close_ones = {0.06, 3, 0, 3, 1}, far_ones = {0.08, 2, 0.1, 2, 0};
static const double CLOSE = 1.3, QUICK = 0.25; /* times the best; seconds where there is none */

static bool time_it(struct running *r, struct candidate *c, double once) {
  double most = r->w->hello->options.run_timeout;
  bool is_close = c->best > 0 ? once < CLOSE * c->best : once < QUICK;
  struct patience patience = is_close ? close_ones : far_ones;
  struct timing_plan plan = {.tolerance = fmax(patience.tolerance, r->w->hello->options.tolerance),
                             .least = patience.least,
                             .once = once,
                             .hopeless = c->hopeless,
                             .best = c->best,
                             .hertz = c->hertz,
                             .again = patience.again,
                             .clock = r->backend->apart ? &timing_apart : NULL,
                             .limit = fmin(most, fmax(patience.seconds, patience.runs * once))};
  ms_error err = {.instruction = -1};
  struct jit_running running = {c->kernel, jit_packed_arguments(&c->packed, r->arena.timed), c->workspace, &err};
  const struct timing_subject subject = {.sample = jit_sample, .turn = jit_running_turn, .data = &running};
  struct jit_conditions conditions;
  if (r->arena.lean && !device_reset(&r->arena, true, &err)) return fault(c->out, &err);
  r->note->stage = STAGE_WAITING;
  jit_running_turn(&running, true, &conditions);
  enter(r, STAGE_TIMING, most);
  bool ok = timing_measure(&subject, &plan, &c->out->timing);
  leave(r);
  jit_running_turn(&running, false, &conditions);
  if (!ok) return *err.message ? fault(c->out, &err) : finish(c->out, JIT_CRASHED, "no memory for timing");
  if (!arena_check_guards(&r->arena, &err))
    return fault(c->out, &err); /* a later run may write where the first did not */
  c->out->outcome = c->out->timing.censored ? JIT_CENSORED : JIT_MEASURED;
  return true;
}

/* On the device, all of what it leaves. */
static bool is_fine_there(struct running *r, struct candidate *c) {
  ms_error err = {.instruction = -1};
  double tolerance = r->w->made->real_tolerance;
  if (tolerance < 0) return true;
  if (!device_expect(&r->arena, true, &err)) return fault(c->out, &err);
  enter(r, STAGE_FIRST_RUN, r->w->hello->options.run_timeout);
  bool ran = device_run(&r->arena, c->kernel, c->workspace, true, &err);
  leave(r);
  if (!ran) return fault(c->out, &err);
  if (device_compare(&r->arena, true, tolerance, NULL, &err)) return true;
  if (jit_outcome_of(err.code) != JIT_WRONG) return fault(c->out, &err);
  char reason[390];
  snprintf(reason, sizeof reason, "on real numbers, %.360s", err.message);
  return finish(c->out, r->arena.nan ? JIT_NAN : JIT_WRONG, reason);
}

/* On real numbers, which show arithmetic that is coarser than the function's. */
static bool is_fine(struct running *r, struct candidate *c) {
  if (r->arena.checker) return is_fine_there(r, c);
  const struct workload *w = r->w;
  ms_error err = {.instruction = -1};
  struct real *real = r->real;
  if (!real->asked)
    real->is_there = jit_expect(w->ir, w->f, &w->hello->target, JIT_REAL, 1, NULL, &real->expected, &err) > 0;
  real->asked = true;
  if (!real->is_there) return true;
  enter(r, STAGE_FIRST_RUN, w->hello->options.run_timeout);
  bool same = jit_kernel_agrees(&real->expected, w->ir, w->f, c->kernel, NULL, NULL, &err);
  leave(r);
  if (!same && jit_outcome_of(err.code) != JIT_WRONG) return fault(c->out, &err);
  char reason[390];
  snprintf(reason, sizeof reason, "on real numbers, %.360s", err.message);
  return same || finish(c->out, JIT_WRONG, reason);
}

/* Runs it on more threads than it was timed on, in memory for them, as long as there is time; *runs of these runs. */
static uint32_t run_perturbed(struct running *r, struct candidate *c, jit_entry entry, uint32_t *runs, ms_error *err) {
  const struct tir_workspace *w = &c->code->workspace;
  double start = measure_now(), limit = r->w->hello->options.run_timeout;
  size_t bytes = perturb_workspace(w, PERTURB_MOST_THREADS);
  void *more = bytes > w->bytes ? r->backend->memory->get(r->device, bytes, NULL) : NULL;
  void *workspace = more ? more : c->workspace;
  uint32_t most = more || bytes == w->bytes ? PERTURB_MOST_THREADS : w->threads, differing = 0;
  struct perturbation perturbation;
  for (size_t i = 0; i < sizeof perturbation.parts / sizeof *perturbation.parts; i++)
    perturbation.parts[i] = c->out->timing.seconds;
  enter(r, STAGE_FIRST_RUN, limit);
  for (*runs = 0; *runs < PERTURB_RUNS && measure_now() - start < limit / 8; ++*runs) {
    uint32_t threads = perturb_threads(*runs, (uint32_t)c->code->target.cores, most);
    ms_error why = {.instruction = -1};
    arena_reset(&r->arena, &why);
    int32_t status = perturb_run(&perturbation, entry, jit_packed_arguments(&c->packed, r->arena.pointers), workspace,
                                 threads, *runs);
    bool same = jit_passed(status, &why) && arena_compare(&r->arena, r->reference.tolerance, &why);
    if (!same && !differing++) *err = why;
    if (!perturbation.loops) break; /* one thread has one timing */
  }
  leave(r);
  if (more) r->backend->memory->release(r->device, more, bytes);
  return differing;
}

/* A candidate that would be the best runs again with perturbed thread timing; each time all that it writes is
 * compared. */
static bool is_steady(struct running *r, struct candidate *c) {
  ms_error err = {.instruction = -1};
  uint32_t runs, differing;
  char reason[390];
  if (!r->backend->load_perturbed) return true;
  struct jit_kernel *kernel = jit_load_on(c->code, r->device, true, &err);
  if (!kernel) return finish(c->out, JIT_BUILD_FAILED, err.message);
  differing = run_perturbed(r, c, jit_kernel_entry(kernel), &runs, &err);
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
  if (r->backend->describe) r->backend->describe(r->device, &c->out->ran_on);
  c->out->time_seconds = measure_now() - checked;
  bool best = c->out->outcome == JIT_MEASURED && (c->best <= 0 || c->out->timing.seconds <= c->best);
  if (!timed || !best) return timed;
  return (!late || (run_once(r, c, &once) && compare(r, c))) && is_fine(r, c) && is_steady(r, c);
}

/* What was there before is NaN to floats. */
static void *workspace_of(struct running *r, const struct measure_run *run, ms_error *err) {
  const struct jit_memory *memory = r->backend->memory;
  void *at = memory->get(r->device, run->workspace.bytes, err);
  if (!at) ms_fail(err, MS_DEVICE_MEMORY, "its workspace is larger than the memory a candidate may have");
  if (!at || memory->fill(r->device, at, 0xff, run->workspace.bytes, err)) return at;
  memory->release(r->device, at, run->workspace.bytes);
  return NULL;
}

static bool pack(struct running *r, struct candidate *c) {
  ms_error err = {.instruction = -1};
  if (r->arena.lean && !arena_reset(&r->arena, &err)) return fault(c->out, &err);
  enter(r, STAGE_FIRST_RUN, r->w->hello->options.run_timeout);
  bool ok = jit_pack(&c->packed, c->kernel, r->arena.pointers, false, NULL, &err);
  leave(r);
  return ok || fault(c->out, &err);
}

static void measure_loaded(struct running *r, const struct measure_run *run, struct candidate *c) {
  ms_error err = {.instruction = -1};
  if (run->workspace.bytes && !(c->workspace = workspace_of(r, run, &err)))
    finish(c->out, r->backend->memory->in_place ? JIT_CRASHED : jit_outcome_of(err.code), err.message);
  else if (pack(r, c))
    check_and_time(r, c);
  jit_packed_free(&c->packed);
  r->backend->memory->release(r->device, c->workspace, run->workspace.bytes);
}

static const double FIRST =
    8; /* how much later a candidate is hopeless while there is no best: a slow one is better than none */

static void measure(struct running *r, const struct measure_run *run, const void *object, size_t bytes,
                    struct jit_result *out) {
  assert(r->w && r->backend && out->outcome == JIT_MEASURED);
  ms_error err = {.instruction = -1};
  double factor = r->w->hello->options.censor_factor, unscheduled = r->reference.seconds;
  double fastest = run->best > 0 && (unscheduled <= 0 || run->best < unscheduled) ? run->best : unscheduled;
  if (run->best <= 0) factor *= FIRST;
  struct candidate c = {.best = run->best,
                        .grace = run->grace,
                        .hertz = run->hertz,
                        .hopeless = fastest > 0 && factor > 0 ? factor * fastest : 0,
                        .out = out};
  r->note->stage = STAGE_LOADING;
  struct jit_code *code =
      jit_code_of_object(object, bytes, &r->w->hello->target, &run->workspace, &run->packing, run->name);
  struct jit_kernel *kernel = jit_load_on(code, r->device, false, &err);
  c.code = code, c.kernel = kernel;
  if (!kernel && err.code == MS_NO_PROCESS) child_give_up(r->note, err.message);
  if (kernel)
    measure_loaded(r, run, &c);
  else
    finish(out, err.code == MS_NOT_COMPILABLE ? JIT_BUILD_FAILED : jit_outcome_of(err.code), err.message);
  jit_kernel_free(kernel);
  jit_code_free(code);
}

/* ---- The process ---- */

/* The first candidate makes this process a runner, on its device, or a word before it that one will come. */
static bool open_device(struct running *r, uint32_t device, const struct jit_target *target, ms_error *err) {
  if (r->is_open) return true;
  r->backend = jit_backend_of(target);
  if (r->backend->prepare) r->backend->prepare(target);
  r->is_open = r->backend->open(target, device, &r->device, err);
  return r->is_open;
}

/* The next candidate is of this task. */
static bool turn_to(struct running *r, const struct workloads *all, const struct measure_run *run, ms_error *err) {
  const struct workload *w = all->at[run->task];
  r->reference = run->reference;
  r->real = &r->reals[run->task];
  if (r->w == w) return true;
  if (r->w) arena_close(&r->arena);
  r->w = NULL;
  if (!open_device(r, run->device, &w->hello->target, err)) return false;
  if (!arena_open(&r->arena, w, r->backend, r->device, err) ||
      (r->arena.checker && !device_expect(&r->arena, false, err))) {
    arena_close(&r->arena);
    return false;
  }
  r->w = w;
  return true;
}

void runner_main(struct channel *channel, const struct workloads *all, struct note *note) {
  struct running r = {.note = note, .reals = calloc(all->count + 1, sizeof *r.reals)};
  struct message message;
  if (!r.reals) abort();
  sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_tick, .sa_flags = SA_RESTART}, NULL);
  child_say_waiting(channel);
  while (channel_wait(channel, -1, &message) == 1) {
    struct measure_run run;
    struct jit_result result = {0};
    ms_error err = {.instruction = -1};
    if (message.type == MEASURE_OPEN && message.bytes == sizeof run.device) {
      memcpy(&run.device, message.data, sizeof run.device);
      open_device(&r, run.device, &all->at[0]->hello->target,
                  &err); /* where it cannot be, the first candidate says so */
      continue;
    }
    if (message.bytes < sizeof run) return;
    memcpy(&run, message.data, sizeof run);
    if (run.task >= all->count) return;
    if (turn_to(&r, all, &run, &err))
      measure(&r, &run, message.data + sizeof run, message.bytes - sizeof run, &result);
    else
      fault(&result, &err);
    channel_send(channel, MEASURE_RAN, &result, sizeof result, NULL, 0);
    if (!channel_drain(channel)) return;
  }
}
