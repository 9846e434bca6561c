/* The helper's own process: takes tasks, forks the children, hands out candidates, and sees to it that nothing else of
 * ours runs while a candidate is timed: builders and references are stopped in the middle of what they do. */
#define _GNU_SOURCE
#include "jit/host/process.h"
#include "task.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BUILDERS = 256, MOST_RUNNERS = 16, READY_BATCH = 8, MOST_READY = 64 };

struct helper {
  struct channel host;
  int host_process; /* readable when the host is gone, even where a copy of it holds the socket; -1: not had */
  struct measure_hello hello;
  struct tasks tasks;
  struct builder {
    struct child child;
    struct candidate *candidate; /* NULL: idle */
  } * builders;
  uint32_t builder_count;
  struct runner {
    struct child child;
    struct candidate *candidate; /* NULL: idle */
    bool gone;                   /* its device is */
    bool opened;                 /* ahead of its first candidate */
  } runners[MOST_RUNNERS];       /* one a device */
  uint32_t runner_count;
  struct child remeasure;
  struct starts builder_starts, runner_starts;
  bool over;                       /* nothing can go on: the host was told why */
  uint32_t built_last, timed_last; /* the tasks whose candidates these were */
  bool timing;                     /* a runner's turn: builders and references are stopped */
  double ready_since;
  double grace; /* that first runs have now */
  double hertz; /* the clock of the devices when the first candidate was timed; 0: not known */
};

/* A first run is cold, and the machine may be busy: before it counts as hopeless it gets some seconds more, twice as
 * many after each that came late, half as many after each that did not. */
static const double LEAST_GRACE = 5e-3, MOST_GRACE = 80e-3;

/* ---- Results ---- */

static void deliver(struct helper *h) {
  struct jit_result result;
  for (uint32_t i = 0; i < h->tasks.workloads.count; i++)
    while (queue_take(&h->tasks.at[i]->queue, &result))
      channel_send(&h->host, MEASURE_RESULT, &result, sizeof result, NULL, 0);
}

static struct task *task_of(const struct helper *h, const struct candidate *c) {
  assert(c->result.task < h->tasks.workloads.count);
  return h->tasks.at[c->result.task];
}

static void move(struct helper *h, struct candidate *c, enum state state) {
  queue_move(&task_of(h, c)->queue, c, state);
}

static void finish(struct helper *h, struct candidate *c, enum jit_outcome outcome, const char *reason) {
  c->result.outcome = outcome;
  if (reason) snprintf(c->result.reason, sizeof c->result.reason, "%.390s", reason);
  struct task *t = task_of(h, c);
  queue_finish(&t->queue, c);
  if (outcome == JIT_MEASURED && (t->best <= 0 || c->result.timing.seconds < t->best))
    t->best = c->result.timing.seconds;
}

/* The candidates of tasks that cannot be measured; those that are being built follow when they are. */
static void finish_failed_tasks(struct helper *h) {
  struct candidate *c;
  for (uint32_t i = 0; i < h->tasks.workloads.count; i++) {
    struct task *t = h->tasks.at[i];
    if (t->state != REFERENCE_FAILED) continue;
    while ((c = queue_next(&t->queue, QUEUED)) || (c = queue_next(&t->queue, READY)))
      finish(h, c, JIT_NO_REFERENCE, t->failure);
  }
}

/* ---- Whose turn it is ---- */

/* Of the tasks that can go on: how many candidates are in these states. */
struct load {
  uint32_t queued, building, ready;
};

static bool may_build(const struct task *t) { return t->queue.queued && t->queue.ready < MOST_READY; }
static bool may_run(const struct task *t) { return t->queue.ready && t->state == REFERENCE_KNOWN; }

static struct load load_of(const struct helper *h) {
  struct load load = {0};
  for (uint32_t i = 0; i < h->tasks.workloads.count; i++) {
    const struct task *t = h->tasks.at[i];
    load.queued += may_build(t) ? t->queue.queued : 0;
    load.building += t->queue.building;
    load.ready += may_run(t) ? t->queue.ready : 0;
  }
  return load;
}

/* The first candidate in a state, of the task that was served last, or of the next that may be. NULL: none may. */
static struct candidate *next_of(const struct helper *h, uint32_t *last, bool (*may)(const struct task *),
                                 enum state state) {
  uint32_t count = h->tasks.workloads.count;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t at = (*last + i) % count;
    if (!may(h->tasks.at[at])) continue;
    *last = at;
    return queue_next(&h->tasks.at[at]->queue, state);
  }
  return NULL;
}

/* A child that serves this task; one that was forked before the task was there is ended. */
static enum start have_child(struct helper *h, struct child *child, child_main *body, uint32_t task,
                             struct starts *starts) {
  if (child->pid && task >= child->known) child_end(child, NULL, 0);
  return child->pid ? START_DONE : child_try(child, body, &h->tasks.workloads, starts);
}

/* Tells the host why nothing can go on, and ends. */
static void give_up(struct helper *h, enum ms_code code, const char *why) {
  const uint32_t number = code;
  assert(why);
  channel_send(&h->host, MEASURE_FAILED, &number, sizeof number, why, strlen(why));
  channel_drain(&h->host);
  h->over = true;
}

/* No process could be had for a candidate, for seconds. */
static void lose_start(struct helper *h, struct candidate *c, enum jit_outcome outcome, const struct starts *starts) {
  assert(starts->given_up > 0);
  if (!starts_are_hopeless(starts)) {
    finish(h, c, outcome, starts->why);
    return;
  }
  deliver(h);
  give_up(h, MS_NO_PROCESS, starts->why);
}

/* ---- Builders ---- */

static bool is_any_builder(const struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count; i++)
    if (h->builders[i].child.pid) return true;
  return false;
}

/* Where processes are few, one that is idle makes room for another. */
static void end_idle_builder(struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count; i++) {
    struct builder *b = &h->builders[i];
    if (!b->child.pid || b->candidate) continue;
    child_end(&b->child, NULL, 0);
    return;
  }
}

/* Not while there is no process for a runner: builders end what they build, and make room for it. */
static bool may_give_work(const struct helper *h) {
  return !h->timing && !h->over && !(starts_fail(&h->runner_starts) && load_of(h).ready);
}

static bool wants_builder(const struct helper *h) {
  if (!may_give_work(h) || !load_of(h).queued) return false;
  for (uint32_t i = 0; i < h->builder_count; i++)
    if (!h->builders[i].child.pid) return true;
  return false;
}

static void give_work(struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count && may_give_work(h); i++) {
    struct builder *b = &h->builders[i];
    if (b->candidate) continue;
    struct candidate *c = next_of(h, &h->built_last, may_build, QUEUED);
    if (!c) return;
    enum start state = have_child(h, &b->child, builder_main, c->result.task, &h->builder_starts);
    if (state == START_GIVEN_UP && !is_any_builder(h)) lose_start(h, c, JIT_BUILD_FAILED, &h->builder_starts);
    if (state != START_DONE) continue;
    assert(c->state == QUEUED && !b->child.stopped);
    b->candidate = c;
    move(h, c, BUILDING);
    child_begin(&b->child);
    channel_send(&b->child.channel, MEASURE_BUILD, &c->result.task, sizeof c->result.task, c->trace, c->bytes);
  }
}

static void take_built(struct helper *h, struct builder *b, const struct message *m) {
  struct candidate *c = b->candidate;
  struct measure_built built;
  assert(c && c->state == BUILDING && b->child.pid);
  if (m->bytes < sizeof built) return;
  memcpy(&built, m->data, sizeof built);
  b->candidate = NULL;
  b->child.fresh = false;
  starts_worked(&h->builder_starts);
  c->result.build_seconds = child_seconds(&b->child);
  if (built.outcome != JIT_MEASURED) {
    finish(h, c, built.outcome, built.reason);
    return;
  }
  c->result.taken = built.taken;
  c->run = (struct measure_run){.task = c->result.task, .workspace = built.workspace, .packing = built.packing};
  memcpy(c->run.name, built.name, sizeof c->run.name);
  queue_keep_object(c, m->data + sizeof built, m->bytes - sizeof built);
  if (!load_of(h).ready) h->ready_since = measure_now();
  move(h, c, READY);
}

static void lose_builder(struct helper *h, struct builder *b, enum jit_outcome outcome) {
  assert(b->child.pid && (!b->candidate || b->candidate->state == BUILDING));
  char how[300], reason[380];
  bool doubtful = !b->child.fresh; /* it may owe its end to another candidate */
  bool unborn = child_is_unborn(&b->child);
  if (unborn) snprintf(reason, sizeof reason, "%.370s", b->child.note->said);
  child_end(&b->child, how, sizeof how);
  struct candidate *c = b->candidate;
  b->candidate = NULL;
  if (!c) return;
  if (unborn) {
    move(h, c, QUEUED);
    enum start state = starts_failed(&h->builder_starts, reason);
    if (state == START_GIVEN_UP && !is_any_builder(h)) lose_start(h, c, JIT_BUILD_FAILED, &h->builder_starts);
    return;
  }
  if (outcome == JIT_BUILD_FAILED && doubtful && !c->rebuilt) {
    c->rebuilt = true;
    move(h, c, QUEUED);
    return;
  }
  if (outcome == JIT_BUILD_TIMEOUT)
    snprintf(reason, sizeof reason, "building took more than %g s", h->hello.options.build_timeout);
  else
    snprintf(reason, sizeof reason, "the builder ended: %s", how);
  c->result.build_seconds = child_seconds(&b->child);
  finish(h, c, outcome, reason);
}

static void hear_builder(struct helper *h, struct builder *b) {
  struct message m;
  channel_fill(&b->child.channel);
  while (b->child.pid && channel_take(&b->child.channel, &m)) {
    struct candidate *c = b->candidate;
    if (!c) continue;
    if (m.type == MEASURE_REPLAYED && m.bytes == sizeof(uint64_t)) {
      memcpy(&c->result.module_hash, m.data, sizeof(uint64_t));
      bool is_new = queue_is_new(&task_of(h, c)->queue, c);
      channel_send(&b->child.channel, is_new ? MEASURE_GO : MEASURE_SKIP, NULL, 0, NULL, 0);
      if (!is_new) {
        move(h, c, TWIN);
        b->candidate = NULL;
      }
    } else if (m.type == MEASURE_BUILT) {
      take_built(h, b, &m);
    }
  }
  if (b->child.pid && b->child.channel.fd < 0) lose_builder(h, b, JIT_BUILD_FAILED);
}

/* ---- Runners ---- */

static void stop_others(struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count; i++)
    if (h->builders[i].candidate) child_stop(&h->builders[i].child);
  tasks_stop_references(&h->tasks);
  h->timing = true;
}

static void continue_others(struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count; i++) child_continue(&h->builders[i].child);
  tasks_continue_references(&h->tasks);
  h->timing = false;
}

static bool is_any_running(const struct helper *h) {
  for (uint32_t i = 0; i < h->runner_count; i++)
    if (h->runners[i].candidate) return true;
  return false;
}

/* false: no candidate waits for it. */
static bool run_next(struct helper *h, struct runner *r) {
  struct candidate *c = next_of(h, &h->timed_last, may_run, READY);
  if (!c) return false;
  enum start state = have_child(h, &r->child, runner_main, c->result.task, &h->runner_starts);
  if (state != START_DONE) {
    end_idle_builder(h);
    if (state == START_GIVEN_UP) lose_start(h, c, JIT_NOT_LAUNCHED, &h->runner_starts);
    return false;
  }
  assert(c->state == READY && c->object && !r->candidate);
  r->candidate = c;
  c->run.reference = task_of(h, c)->w.reference;
  c->run.best = task_of(h, c)->best;
  c->run.grace = h->grace;
  c->run.hertz = h->hertz;
  c->run.device = (uint32_t)(r - h->runners);
  move(h, c, RUNNING);
  child_begin(&r->child);
  channel_send(&r->child.channel, MEASURE_RUN, &c->run, sizeof c->run, c->object, c->object_bytes);
  return true;
}

/* A runner that has run others may owe its end to one of them: the candidate gets a fresh one. */
static bool try_again(struct helper *h, struct runner *r, struct candidate *c) {
  if (r->child.fresh || c->rerun) return false;
  c->rerun = true;
  child_end(&r->child, NULL, 0);
  move(h, c, READY);
  return true;
}

/* Its candidate goes to another device; where there is none left, nothing goes on. */
static void lose_device(struct helper *h, struct runner *r, struct candidate *c, const char *reason) {
  assert(c->state == RUNNING && !r->gone);
  child_end(&r->child, NULL, 0);
  r->gone = true;
  move(h, c, READY);
  for (uint32_t i = 0; i < h->runner_count; i++)
    if (!h->runners[i].gone) return;
  deliver(h);
  give_up(h, MS_NO_DEVICE, reason);
}

/* A process that ran what is wrong is not trusted with another. */
static bool is_sound(enum jit_outcome outcome) {
  return outcome == JIT_MEASURED || outcome == JIT_CENSORED || outcome == JIT_BUILD_FAILED;
}

static void take_ran(struct helper *h, struct runner *r, const struct message *m) {
  struct candidate *c = r->candidate;
  struct jit_result ran;
  assert(c && c->state == RUNNING && m->bytes == sizeof ran);
  memcpy(&ran, m->data, sizeof ran);
  ran.reason[sizeof ran.reason - 1] = 0;
  r->candidate = NULL;
  h->grace = fmax(LEAST_GRACE, h->grace / 2);
  bool doubtful = ran.outcome == JIT_WRONG || ran.outcome == JIT_NAN || ran.outcome == JIT_NO_DEVICE;
  if (doubtful && try_again(h, r, c)) return;
  if (ran.outcome == JIT_NO_DEVICE) {
    lose_device(h, r, c, ran.reason);
    return;
  }
  r->child.fresh = false;
  starts_worked(&h->runner_starts);
  if (h->hertz <= 0) h->hertz = ran.timing.clock;
  c->result.timing = ran.timing, c->result.ran_on = ran.ran_on;
  c->result.check_seconds = ran.check_seconds, c->result.time_seconds = ran.time_seconds;
  finish(h, c, ran.outcome, ran.reason);
  if (!is_sound(ran.outcome)) child_end(&r->child, NULL, 0);
}

/* Seconds: more than a first run may lose to other programs, however busy the machine. */
static const double LONG_WAIT = 0.5;
enum { MOST_LATE = 2 };

/* The runner's alarm, or the helper's, went off. One run that is late may have been interrupted: it is hopeless when
 * another, which was given more time, was late too, or when it took longer than any interruption. */
static void take_late(struct helper *h, const struct runner *r, struct candidate *c, uint32_t stage, double limit) {
  double most = h->hello.options.run_timeout;
  char reason[100];
  assert(c->state == RUNNING && !r->candidate && !r->child.pid);
  h->grace = fmin(MOST_GRACE, h->grace * 2);
  if (stage == STAGE_FIRST_RUN && limit < most && ++c->late < MOST_LATE && c->late * limit < LONG_WAIT) {
    move(h, c, READY);
    return;
  }
  c->result.check_seconds = child_seconds(&r->child);
  if (stage == STAGE_FIRST_RUN && limit < most) {
    c->result.timing = (struct jit_timing){.seconds = limit, .low = limit, .high = limit, .runs = 1, .censored = true};
    finish(h, c, JIT_CENSORED, NULL);
    return;
  }
  snprintf(reason, sizeof reason, "running took more than %g s", most);
  finish(h, c, JIT_RUN_TIMEOUT, reason);
}

static void lose_runner(struct helper *h, struct runner *r, bool late) {
  char how[300], reason[380];
  assert(r->child.pid && r->child.note);
  uint32_t stage = r->child.note->stage;
  double limit = r->child.note->limit;
  bool unborn = child_is_unborn(&r->child) && !late;
  if (unborn) snprintf(reason, sizeof reason, "%.370s", r->child.note->said);
  int status = child_end(&r->child, how, sizeof how);
  struct candidate *c = r->candidate;
  if (!c) return;
  r->candidate = NULL;
  if (unborn) {
    move(h, c, READY);
    end_idle_builder(h);
    if (starts_failed(&h->runner_starts, reason) == START_GIVEN_UP)
      lose_start(h, c, JIT_NOT_LAUNCHED, &h->runner_starts);
    return;
  }
  if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)) {
    take_late(h, r, c, stage, limit);
  } else if (!try_again(h, r, c)) {
    c->result.check_seconds = child_seconds(&r->child);
    snprintf(reason, sizeof reason, "it ended the process: %s", how);
    finish(h, c, JIT_CRASHED, reason);
  }
}

static void hear_runner(struct helper *h, struct runner *r) {
  struct message m;
  channel_flush(&r->child.channel);
  channel_fill(&r->child.channel);
  while (r->child.pid && channel_take(&r->child.channel, &m)) {
    if (m.type == MEASURE_WAITS) channel_send(&h->host, MEASURE_WAITS, m.data, m.bytes, NULL, 0);
    if (r->candidate && m.type == MEASURE_RAN && m.bytes == sizeof(struct jit_result)) take_ran(h, r, &m);
  }
  if (r->child.pid && r->child.channel.fd < 0) lose_runner(h, r, false);
}

static const double LOOK = 0.5; /* seconds from one look at a runner that waits to the next */

/* Seconds that the runner has left; its own alarm is before this one. While it waits for its device they stay as
 * many. */
static double limit_runner(struct helper *h, struct runner *r) {
  bool waits = r->child.note->stage == STAGE_WAITING;
  if (waits) child_begin(&r->child);
  double left = child_left(&r->child, 2.5 * h->hello.options.run_timeout + 1);
  if (left <= 0) lose_runner(h, r, true);
  return waits ? fmin(left, LOOK) : left;
}

/* ---- The final re-measurement ---- */

static const double LONGEST_REMEASURE = 120; /* seconds, building included */

/* answer: empty, where there was none. */
static void end_remeasure(struct helper *h, const void *answer, size_t bytes) {
  channel_send(&h->host, MEASURE_REMEASURED, answer, bytes, NULL, 0);
  child_end(&h->remeasure, NULL, 0);
}

/* Nothing else is asked for meanwhile: it may be waited for, and what is idle makes room. */
static bool have_remeasure(struct helper *h) {
  enum { TRIES = 8, FIRST_PAUSE_US = 5000 };
  ms_error err = {.instruction = -1};
  for (int tries = 0; tries < TRIES; tries++) {
    if (child_start(&h->remeasure, remeasure_main, &h->tasks.workloads, &err)) return true;
    end_idle_builder(h);
    for (uint32_t i = 0; i < h->runner_count; i++)
      if (!h->runners[i].candidate) child_end(&h->runners[i].child, NULL, 0);
    usleep(FIRST_PAUSE_US << tries);
  }
  return false;
}

static void start_remeasure(struct helper *h, const struct message *m) {
  if (h->remeasure.pid) return;
  if (!have_remeasure(h))
    end_remeasure(h, NULL, 0);
  else
    channel_send(&h->remeasure.channel, MEASURE_REMEASURE, m->data, m->bytes, NULL, 0);
}

static void hear_remeasure(struct helper *h) {
  struct message m;
  channel_flush(&h->remeasure.channel);
  channel_fill(&h->remeasure.channel);
  if (!channel_take(&h->remeasure.channel, &m)) m.type = MEASURE_READY; /* nothing came */
  if (m.type == MEASURE_WAITS)
    channel_send(&h->host, MEASURE_WAITS, m.data, m.bytes, NULL, 0);
  else if (m.type != MEASURE_READY)
    end_remeasure(h, m.data, m.type == MEASURE_REMEASURED ? m.bytes : 0);
  else if (h->remeasure.channel.fd < 0 || child_left(&h->remeasure, LONGEST_REMEASURE) <= 0)
    end_remeasure(h, NULL, 0);
}

/* ---- Turns ---- */

static const double READY_WAIT = 0.25; /* seconds that a candidate waits for others, to be run with them */

static void run_ready(struct helper *h) {
  for (uint32_t i = 0; i < h->runner_count; i++) {
    struct runner *r = &h->runners[i];
    if (!r->candidate && !r->gone && !run_next(h, r)) return;
  }
}

/* Opening a device takes a while: meanwhile the first candidates are built. */
static void open_devices(struct helper *h) {
  for (uint32_t i = 0; i < h->runner_count; i++) {
    struct runner *r = &h->runners[i];
    if (r->child.pid || r->gone || r->opened || starts_fail(&h->runner_starts)) continue;
    r->opened = true;
    if (have_child(h, &r->child, runner_main, 0, &h->runner_starts) != START_DONE) continue;
    channel_send(&r->child.channel, MEASURE_OPEN, &i, sizeof i, NULL, 0);
  }
}

/* Builders and runners alternate: the runners go on until no candidate is ready. Where kernels run on a device, not on
 * the host's processors, neither waits for the other. */
static void take_turns(struct helper *h) {
  const struct load load = load_of(h);
  bool apart = jit_backend_of(&h->hello.target)->apart;
  bool due = load.ready >= READY_BATCH || (load.ready && !load.queued && !load.building) ||
             (load.ready && measure_now() - h->ready_since >= READY_WAIT) || starts_fail(&h->runner_starts);
  bool later = starts_wait(&h->runner_starts) > 0 && starts_fail(&h->runner_starts);
  if (load.ready && (apart || h->timing || due) && !later) {
    if (!apart && !h->timing) stop_others(h);
    run_ready(h);
  }
  if (apart && load.building && !load.ready) open_devices(h);
  if (h->timing && !is_any_running(h) && (!load.ready || starts_fail(&h->runner_starts))) continue_others(h);
  give_work(h);
}

static bool is_lost(const struct child *c) { return c->pid && !c->stopped && c->channel.fd < 0; }

/* Whether a child's channel was closed since it was heard, as where a call of the helper's own failed: no poll tells of
 * it. */
static bool has_lost_child(const struct helper *h) {
  bool lost = is_lost(&h->remeasure);
  for (uint32_t i = 0; i < h->runner_count; i++) lost = lost || is_lost(&h->runners[i].child);
  for (uint32_t i = 0; i < h->builder_count; i++) lost = lost || is_lost(&h->builders[i].child);
  for (uint32_t i = 0; i < h->tasks.workloads.count; i++) lost = lost || is_lost(&h->tasks.at[i]->reference);
  return lost;
}

static const double NOTHING_DUE = 3600; /* seconds: no child works on anything */

/* Ends what takes too long; returns seconds until the next look. */
static double watch(struct helper *h) {
  const struct jit_measurer_options *o = &h->hello.options;
  double soonest = NOTHING_DUE;
  for (uint32_t i = 0; i < h->builder_count; i++) {
    struct builder *b = &h->builders[i];
    if (!b->candidate || b->child.stopped) continue;
    double left = child_left(&b->child, o->build_timeout);
    if (left <= 0) lose_builder(h, b, JIT_BUILD_TIMEOUT);
    soonest = left < soonest ? left : soonest;
  }
  for (uint32_t i = 0; i < h->runner_count; i++)
    if (h->runners[i].candidate) soonest = fmin(soonest, limit_runner(h, &h->runners[i]));
  bool ready = !is_any_running(h) && load_of(h).ready;
  if (ready && !starts_fail(&h->runner_starts)) soonest = fmin(soonest, READY_WAIT - (measure_now() - h->ready_since));
  if (ready) soonest = fmin(soonest, starts_wait(&h->runner_starts));
  if (wants_builder(h)) soonest = fmin(soonest, starts_wait(&h->builder_starts));
  if (h->remeasure.pid) soonest = fmin(soonest, CHILD_LOOK);
  return soonest > 0 && !has_lost_child(h) ? soonest : 0;
}

/* ---- The host ---- */

static void take_best(struct helper *h, const struct message *m) {
  struct measure_best best;
  if (m->bytes != sizeof best) return;
  memcpy(&best, m->data, sizeof best);
  if (best.task < h->tasks.workloads.count) h->tasks.at[best.task]->best = best.seconds;
}

static void take_candidate(struct helper *h, const struct message *m) {
  struct measure_candidate head;
  if (m->bytes < sizeof head) return;
  memcpy(&head, m->data, sizeof head);
  if (head.task < h->tasks.workloads.count)
    queue_add(&h->tasks.at[head.task]->queue, &head, m->data + sizeof head, m->bytes - sizeof head);
}

static void close_task(struct helper *h, const struct message *m) {
  uint32_t task;
  if (m->bytes != sizeof task) return;
  memcpy(&task, m->data, sizeof task);
  if (task < h->tasks.workloads.count) tasks_close(&h->tasks, task);
}

/* A host that has hung up wants nothing of what it sent before. */
static void hear_host(struct helper *h) {
  struct message m;
  for (channel_fill(&h->host); h->host.fd >= 0 && channel_take(&h->host, &m); channel_fill(&h->host)) {
    if (m.type == MEASURE_TASK) tasks_add(&h->tasks, &h->hello, &m, &h->host);
    if (m.type == MEASURE_BEST) take_best(h, &m);
    if (m.type == MEASURE_REMEASURE) start_remeasure(h, &m);
    if (m.type == MEASURE_CANDIDATE) take_candidate(h, &m);
    if (m.type == MEASURE_CLOSE) close_task(h, &m);
  }
}

enum { LOOK_US = 1000 };

static void poll_all(struct helper *h, double seconds) {
  struct pollfd p[MOST_BUILDERS + MOST_RUNNERS + MOST_REFERENCES + 3];
  nfds_t n = 0;
  p[n++] = (struct pollfd){h->host.fd, (short)(POLLIN | (channel_has_unsent(&h->host) ? POLLOUT : 0)), 0};
  p[n++] = (struct pollfd){h->host_process, POLLIN, 0};
  for (uint32_t i = 0; i < h->runner_count; i++) {
    const struct child *c = &h->runners[i].child;
    p[n++] = (struct pollfd){c->pid ? c->channel.fd : -1, POLLIN, 0};
    if (channel_has_unsent(&c->channel)) p[n - 1].events |= POLLOUT;
  }
  for (uint32_t i = 0; i < h->tasks.workloads.count; i++) {
    const struct child *c = &h->tasks.at[i]->reference;
    if (c->pid && !c->stopped) p[n++] = (struct pollfd){c->channel.fd, POLLIN, 0};
  }
  p[n++] = (struct pollfd){h->remeasure.pid ? h->remeasure.channel.fd : -1, POLLIN, 0};
  if (channel_has_unsent(&h->remeasure.channel)) p[n - 1].events |= POLLOUT;
  for (uint32_t i = 0; i < h->builder_count; i++) {
    struct child *c = &h->builders[i].child;
    p[n++] = (struct pollfd){c->pid && !c->stopped ? c->channel.fd : -1, POLLIN, 0};
    if (channel_has_unsent(&c->channel)) p[n - 1].events |= POLLOUT;
  }
  assert(n <= sizeof p / sizeof *p);
  double before = measure_now();
  int ready = poll(p, n, (int)(seconds * 1e3) + 1);
  child_note_sleep(seconds, measure_now() - before);
  if (ready < 0) { /* too many descriptors, say: all are looked at, in a moment */
    usleep(LOOK_US);
    return;
  }
  if (p[1].revents) channel_close(&h->host), h->host.fd = -1;
}

static void hear_children(struct helper *h) {
  if (h->remeasure.pid) hear_remeasure(h);
  for (uint32_t i = 0; i < h->runner_count; i++)
    if (h->runners[i].child.pid) hear_runner(h, &h->runners[i]);
  for (uint32_t i = 0; i < h->builder_count; i++)
    if (h->builders[i].child.pid && !h->builders[i].child.stopped)
      channel_flush(&h->builders[i].child.channel), hear_builder(h, &h->builders[i]);
}

static void serve(struct helper *h) {
  while (h->host.fd >= 0 && !h->over) {
    channel_flush(&h->host);
    hear_host(h); /* what came with the first message is here already: before anything is waited for */
    hear_children(h);
    double left = tasks_watch(&h->tasks, &h->host);
    finish_failed_tasks(h);
    take_turns(h);
    deliver(h);
    double pause = fmin(watch(h), left);
    if (h->host.fd >= 0) poll_all(h, pause < NOTHING_DUE ? fmin(pause, CHILD_LOOK) : pause);
  }
}

/* ---- Start and end ---- */

static bool read_hello(struct helper *h, ms_error *err) {
  struct message m;
  struct measure_hello *hello = &h->hello;
  if (channel_wait(&h->host, 60, &m) != 1 || m.type != MEASURE_HELLO) return false;
  if (m.bytes == sizeof *hello) memcpy(hello, m.data, sizeof *hello);
  if (m.bytes != sizeof *hello || hello->version != MEASURE_VERSION || hello->size != sizeof *hello)
    return ms_fail(err, MS_NO_HELPER, "the helper is of another version of msched");
  h->host_process = (int)syscall(SYS_pidfd_open, (pid_t)hello->host, 0);
  return true;
}

static void make_builders(struct helper *h) {
  struct jit_cores here;
  uint32_t cores = (uint32_t)h->hello.target.cores, wanted = h->hello.options.builders;
  jit_count_cores(&here);
  if (!cores || cores > (uint32_t)here.usable) cores = (uint32_t)here.usable;
  h->builder_count = wanted ? wanted : cores;
  if (h->builder_count > MOST_BUILDERS) h->builder_count = MOST_BUILDERS;
  h->builders = calloc(h->builder_count, sizeof *h->builders);
  if (!h->builders) abort();
  for (uint32_t i = 0; i < h->builder_count; i++) h->builders[i].child = child_none;
}

static void make_runners(struct helper *h) {
  h->runner_count = h->hello.devices < MOST_RUNNERS ? h->hello.devices : MOST_RUNNERS;
  for (uint32_t i = 0; i < h->runner_count; i++) h->runners[i].child = child_none;
}

/* Standard streams lead nowhere, but for errors: numbers below the socket's are taken, and stay so. */
static bool close_streams(ms_error *err) {
  int nothing = descriptor_open_nowhere();
  if (nothing < 0) return ms_fail(err, MS_NO_HELPER, "the helper cannot open /dev/null: %s", strerror(errno));
  bool silent = fcntl(STDERR_FILENO, F_GETFD) < 0;
  if (dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
      (silent && dup2(nothing, STDERR_FILENO) < 0))
    return ms_fail(err, MS_NO_HELPER, "the helper cannot turn its streams away: %s", strerror(errno));
  if (close_range(MEASURE_SOCKET + 1, ~0u, 0) && nothing > MEASURE_SOCKET) descriptor_close(&nothing);
  return true;
}

/* The socket gets another number, and the one that it had leads nowhere: children have theirs there, and what is opened
 * once the host has hung up must not get it. */
static bool move_socket(struct helper *h, ms_error *err) {
  int moved = fcntl(MEASURE_SOCKET, F_DUPFD_CLOEXEC, MEASURE_SOCKET + 1);
  if (moved >= 0 && dup2(STDIN_FILENO, MEASURE_SOCKET) == MEASURE_SOCKET) {
    h->host.fd = moved;
    return true;
  }
  int error = errno;
  descriptor_close(&moved);
  return ms_fail(err, MS_NO_HELPER, "the helper cannot move its socket: %s", strerror(error));
}

static bool become_helper(struct helper *h, ms_error *err) {
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN); /* a limit of files' sizes is one of memory that is shared, too: writing says it */
  h->remeasure = child_none;
  channel_open(&h->host, MEASURE_SOCKET);
  return h->host.fd >= 0 && close_streams(err) && move_socket(h, err);
}

static void end_children(struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count; i++) child_end(&h->builders[i].child, NULL, 0);
  tasks_end(&h->tasks);
  for (uint32_t i = 0; i < h->runner_count; i++) child_end(&h->runners[i].child, NULL, 0);
  child_end(&h->remeasure, NULL, 0);
}

int main(void) {
  static struct helper h = {.grace = LEAST_GRACE};
  ms_error err = {.instruction = -1};
  if (fcntl(MEASURE_SOCKET, F_GETFD) < 0) {
    fputs("msched-helper is started by msched, to build and run what is measured\n", stderr);
    return 2;
  }
  process_note_host();
  if (!become_helper(&h, &err) || !read_hello(&h, &err)) {
    give_up(&h, MS_NO_HELPER, err.message);
    return 1;
  }
  const struct jit_backend *backend = jit_backend_of(&h.hello.target);
  if (backend->open_compiler && !backend->open_compiler(&err)) { /* once for all children */
    give_up(&h, err.code, err.message);
    return 1;
  }
  make_builders(&h);
  make_runners(&h);
  channel_send(&h.host, MEASURE_READY, NULL, 0, NULL, 0);
  serve(&h);
  end_children(&h);
  return 0;
}
