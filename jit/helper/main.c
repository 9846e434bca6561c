/* The helper's own process: reads the workload, forks the children, hands out candidates, and sees to it that nothing
 * else of ours runs while a candidate is timed: builders are stopped in the middle of what they do. */
#define _GNU_SOURCE
#include "queue.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../machine.h"

enum { MOST_BUILDERS = 256, READY_BATCH = 8, MOST_READY = 64 };

struct helper {
  struct channel host;
  int host_process; /* readable when the host is gone, even where a copy of it holds the socket; -1: not had */
  struct workload w;
  struct queue queue;
  struct builder {
    struct child child;
    struct candidate *task; /* NULL: idle */
    uint64_t number;        /* of the task */
  } * builders;
  uint32_t builder_count;
  struct child runner, reference, contest;
  uint64_t running;        /* number of the candidate that the runner has */
  bool is_running, timing; /* timing: the runner's turn, and builders are stopped */
  double best, ready_since;
  double grace; /* that first runs have now */
};

/* A first run is cold, and the machine may be busy: before it counts as hopeless it gets some seconds more, twice as
 * many after each that came late, half as many after each that did not. */
static const double LEAST_GRACE = 5e-3, MOST_GRACE = 80e-3;

/* ---- Results ---- */

static void deliver(struct helper *h) {
  struct jit_result result;
  while (queue_take(&h->queue, &result)) channel_send(&h->host, MEASURE_RESULT, &result, sizeof result, NULL, 0);
}

static void finish(struct helper *h, struct candidate *c, enum jit_outcome outcome, const char *reason) {
  c->result.outcome = outcome;
  if (reason) snprintf(c->result.reason, sizeof c->result.reason, "%s", reason);
  queue_finish(&h->queue, c);
  if (outcome == JIT_MEASURED && (h->best <= 0 || c->result.timing.seconds < h->best))
    h->best = c->result.timing.seconds;
}

/* ---- Builders ---- */

static void give_work(struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count && !h->timing; i++) {
    struct builder *b = &h->builders[i];
    if (b->task || h->queue.ready >= MOST_READY) continue;
    struct candidate *c = queue_next(&h->queue, QUEUED);
    if (!c) return;
    if (!b->child.pid && !child_start(&b->child, builder_main, &h->w)) {
      child_end(&b->child, NULL, 0);
      if (i + 1 == h->builder_count) finish(h, c, JIT_BUILD_FAILED, "no process for it can be had");
      continue;
    }
    b->task = c;
    queue_move(&h->queue, c, BUILDING);
    b->child.since = measure_now(), b->child.spent = 0;
    channel_send(&b->child.channel, MEASURE_BUILD, c->trace, c->bytes, NULL, 0);
  }
}

static void take_built(struct helper *h, struct builder *b, const struct message *m) {
  struct candidate *c = b->task;
  struct measure_built built;
  if (m->bytes < sizeof built) return;
  memcpy(&built, m->data, sizeof built);
  b->task = NULL;
  b->child.fresh = false;
  c->result.build_seconds = child_seconds(&b->child);
  if (built.outcome != JIT_MEASURED) {
    finish(h, c, built.outcome, built.reason);
    return;
  }
  c->run = (struct measure_run){.workspace = built.workspace};
  memcpy(c->run.name, built.name, sizeof c->run.name);
  queue_keep_object(c, m->data + sizeof built, m->bytes - sizeof built);
  if (!h->queue.ready) h->ready_since = measure_now();
  queue_move(&h->queue, c, READY);
}

static void lose_builder(struct helper *h, struct builder *b, enum jit_outcome outcome) {
  char how[300], reason[380];
  child_end(&b->child, how, sizeof how);
  struct candidate *c = b->task;
  b->task = NULL;
  if (!c) return;
  if (outcome == JIT_BUILD_FAILED && !b->child.fresh && !c->rebuilt) { /* it may owe its end to another candidate */
    c->rebuilt = true;
    queue_move(&h->queue, c, QUEUED);
    return;
  }
  if (outcome == JIT_BUILD_TIMEOUT)
    snprintf(reason, sizeof reason, "building took more than %g s", h->w.hello.options.build_timeout);
  else
    snprintf(reason, sizeof reason, "the builder ended: %s", how);
  c->result.build_seconds = child_seconds(&b->child);
  finish(h, c, outcome, reason);
}

static void hear_builder(struct helper *h, struct builder *b) {
  struct message m;
  channel_fill(&b->child.channel);
  while (b->child.pid && channel_take(&b->child.channel, &m)) {
    if (!b->task) continue;
    if (m.type == MEASURE_REPLAYED && m.bytes == sizeof(uint64_t)) {
      memcpy(&b->task->result.module_hash, m.data, sizeof(uint64_t));
      bool is_new = queue_is_new(&h->queue, b->task);
      channel_send(&b->child.channel, is_new ? MEASURE_GO : MEASURE_SKIP, NULL, 0, NULL, 0);
      if (!is_new) {
        queue_move(&h->queue, b->task, TWIN);
        b->task = NULL;
      }
    } else if (m.type == MEASURE_BUILT) {
      take_built(h, b, &m);
    }
  }
  if (b->child.pid && b->child.channel.fd < 0) lose_builder(h, b, JIT_BUILD_FAILED);
}

/* ---- The reference ---- */

static void give_up(struct helper *h, const char *why) {
  channel_send(&h->host, MEASURE_FAILED, why, strlen(why), NULL, 0);
  channel_drain(&h->host);
}

/* Without it nothing can be compared: it ends the run. Returns the seconds that it has left. */
static double watch_reference(struct helper *h) {
  double most = h->w.hello.options.reference_timeout, left = most - child_seconds(&h->reference);
  char reason[160];
  if (left > 0) return left;
  child_end(&h->reference, NULL, 0);
  snprintf(reason, sizeof reason,
           "the unscheduled function took more than %g s; allow more with --reference-timeout, or tune a smaller one",
           most);
  give_up(h, reason);
  return -1;
}

static bool hear_reference(struct helper *h) {
  struct message m;
  char reason[2300], how[300];
  channel_fill(&h->reference.channel);
  bool answered =
      channel_take(&h->reference.channel, &m) && m.type == MEASURE_REFERENCE && m.bytes >= sizeof h->w.reference;
  if (!answered && h->reference.channel.fd >= 0) return true;
  if (answered) {
    memcpy(&h->w.reference, m.data, sizeof h->w.reference);
    snprintf(reason, sizeof reason, "the unscheduled function cannot be run: %.*s",
             (int)(m.bytes - sizeof h->w.reference), (const char *)m.data + sizeof h->w.reference);
  }
  child_end(&h->reference, how, sizeof how);
  if (!answered) snprintf(reason, sizeof reason, "the unscheduled function cannot be run: %s", how);
  if (h->w.reference.tolerance >= 0) return true;
  give_up(h, reason);
  return false;
}

/* ---- The runner ---- */

static void stop_builders(struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count; i++)
    if (h->builders[i].task) child_stop(&h->builders[i].child);
  h->timing = true;
}

static void continue_builders(struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count; i++) child_continue(&h->builders[i].child);
  h->timing = false;
}

static void run_next(struct helper *h) {
  struct candidate *c = queue_next(&h->queue, READY);
  if (!h->runner.pid && !child_start(&h->runner, runner_main, &h->w)) {
    child_end(&h->runner, NULL, 0);
    finish(h, c, JIT_CRASHED, "no process for it can be had");
    return;
  }
  h->running = queue_number(&h->queue, c);
  h->is_running = true;
  c->run.best = h->best;
  c->run.grace = h->grace;
  queue_move(&h->queue, c, RUNNING);
  h->runner.since = measure_now(), h->runner.spent = 0;
  channel_send(&h->runner.channel, MEASURE_RUN, &c->run, sizeof c->run, c->object, c->object_bytes);
}

/* A runner that has run others may owe its end to one of them: the candidate gets a fresh one. */
static bool try_again(struct helper *h, struct candidate *c) {
  if (h->runner.fresh || c->rerun) return false;
  c->rerun = true;
  child_end(&h->runner, NULL, 0);
  queue_move(&h->queue, c, READY);
  return true;
}

static void take_ran(struct helper *h, const struct message *m) {
  struct candidate *c = queue_at(&h->queue, h->running);
  struct jit_result ran;
  memcpy(&ran, m->data, sizeof ran);
  ran.reason[sizeof ran.reason - 1] = 0;
  h->is_running = false;
  h->grace = fmax(LEAST_GRACE, h->grace / 2);
  if (ran.outcome == JIT_WRONG && try_again(h, c)) return;
  h->runner.fresh = false;
  c->result.timing = ran.timing;
  c->result.check_seconds = ran.check_seconds, c->result.time_seconds = ran.time_seconds;
  finish(h, c, ran.outcome, ran.reason);
  if (ran.outcome == JIT_WRONG || ran.outcome == JIT_CRASHED) child_end(&h->runner, NULL, 0);
}

/* Seconds: more than a first run may lose to other programs, however busy the machine. */
static const double LONG_WAIT = 0.5;
enum { MOST_LATE = 3 };

/* The runner's alarm, or the helper's, went off. One run that is late may have been interrupted: it is hopeless when
 * three were late, or fewer that together took longer than any interruption. */
static void take_late(struct helper *h, struct candidate *c, uint32_t stage, double limit) {
  double most = h->w.hello.options.run_timeout;
  char reason[100];
  h->grace = fmin(MOST_GRACE, h->grace * 2);
  if (stage == STAGE_FIRST_RUN && limit < most && ++c->late < MOST_LATE && c->late * limit < LONG_WAIT) {
    queue_move(&h->queue, c, READY);
    return;
  }
  c->result.check_seconds = child_seconds(&h->runner);
  if (stage == STAGE_FIRST_RUN && limit < most) {
    c->result.timing = (struct jit_timing){.seconds = limit, .low = limit, .high = limit, .runs = 1, .censored = true};
    finish(h, c, JIT_CENSORED, NULL);
    return;
  }
  snprintf(reason, sizeof reason, "running took more than %g s", most);
  finish(h, c, JIT_RUN_TIMEOUT, reason);
}

static void lose_runner(struct helper *h, bool late) {
  char how[300], reason[380];
  uint32_t stage = h->runner.note->stage;
  double limit = h->runner.note->limit;
  int status = child_end(&h->runner, how, sizeof how);
  if (!h->is_running) return;
  h->is_running = false;
  struct candidate *c = queue_at(&h->queue, h->running);
  if (late || (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)) {
    take_late(h, c, stage, limit);
  } else if (!try_again(h, c)) {
    c->result.check_seconds = child_seconds(&h->runner);
    snprintf(reason, sizeof reason, "it ended the process: %s", how);
    finish(h, c, JIT_CRASHED, reason);
  }
}

static void hear_runner(struct helper *h) {
  struct message m;
  channel_fill(&h->runner.channel);
  while (h->runner.pid && channel_take(&h->runner.channel, &m))
    if (h->is_running && m.type == MEASURE_RAN && m.bytes == sizeof(struct jit_result)) take_ran(h, &m);
  if (h->runner.pid && h->runner.channel.fd < 0) lose_runner(h, false);
}

/* ---- The contest ---- */

static const double LONGEST_CONTEST = 120; /* seconds, building included */

/* answer: empty, where there was none. */
static void end_contest(struct helper *h, const void *answer, size_t bytes) {
  channel_send(&h->host, MEASURE_CONTESTED, answer, bytes, NULL, 0);
  child_end(&h->contest, NULL, 0);
}

static void start_contest(struct helper *h, const struct message *m) {
  if (h->contest.pid) return;
  if (!child_start(&h->contest, contest_main, &h->w))
    end_contest(h, NULL, 0);
  else
    channel_send(&h->contest.channel, MEASURE_CONTEST, m->data, m->bytes, NULL, 0);
}

static void hear_contest(struct helper *h) {
  struct message m;
  channel_flush(&h->contest.channel);
  channel_fill(&h->contest.channel);
  if (channel_take(&h->contest.channel, &m))
    end_contest(h, m.data, m.type == MEASURE_CONTESTED ? m.bytes : 0);
  else if (h->contest.channel.fd < 0 || child_seconds(&h->contest) > LONGEST_CONTEST)
    end_contest(h, NULL, 0);
}

/* ---- Turns ---- */

static const double READY_WAIT = 0.25; /* seconds that a candidate waits for others, to be run with them */

/* Builders and the runner take turns; a turn of the runner's lasts until nothing is ready. */
static void take_turns(struct helper *h) {
  if (h->is_running) return;
  const struct queue *q = &h->queue;
  bool due = q->ready >= READY_BATCH || (q->ready && !q->queued && !q->building) ||
             (q->ready && measure_now() - h->ready_since >= READY_WAIT);
  if (q->ready && (h->timing || due) && h->w.reference.tolerance >= 0) {
    if (!h->timing) stop_builders(h);
    run_next(h);
  } else if (h->timing) {
    continue_builders(h);
  }
  if (!h->timing) give_work(h);
}

/* Ends what takes too long; returns seconds until the next look. */
static double watch(struct helper *h) {
  const struct jit_measurer_options *o = &h->w.hello.options;
  double soonest = 3600;
  for (uint32_t i = 0; i < h->builder_count; i++) {
    struct builder *b = &h->builders[i];
    if (!b->task || b->child.stopped) continue;
    double left = o->build_timeout - child_seconds(&b->child);
    if (left <= 0) lose_builder(h, b, JIT_BUILD_TIMEOUT);
    soonest = left < soonest ? left : soonest;
  }
  if (h->is_running) { /* the runner's own alarm is before this one */
    double left = 2.5 * o->run_timeout + 1 - child_seconds(&h->runner);
    if (left <= 0) lose_runner(h, true);
    soonest = left < soonest ? left : soonest;
  } else if (h->queue.ready && h->w.reference.tolerance >= 0) {
    double left = READY_WAIT - (measure_now() - h->ready_since);
    soonest = left < soonest ? left : soonest;
  }
  if (h->contest.pid) soonest = fmin(soonest, 1);
  return soonest > 0 ? soonest : 0;
}

/* ---- The host ---- */

static void hear_host(struct helper *h) {
  struct message m;
  uint64_t id;
  channel_fill(&h->host);
  while (channel_take(&h->host, &m)) {
    if (m.type == MEASURE_BEST && m.bytes == sizeof h->best) memcpy(&h->best, m.data, sizeof h->best);
    if (m.type == MEASURE_CONTEST) start_contest(h, &m);
    if (m.type != MEASURE_CANDIDATE || m.bytes < sizeof id) continue;
    memcpy(&id, m.data, sizeof id);
    queue_add(&h->queue, id, m.data + sizeof id, m.bytes - sizeof id);
  }
}

static void poll_all(struct helper *h, double seconds) {
  struct pollfd p[MOST_BUILDERS + 5];
  nfds_t n = 0;
  p[n++] = (struct pollfd){h->host.fd, (short)(POLLIN | (channel_has_unsent(&h->host) ? POLLOUT : 0)), 0};
  p[n++] = (struct pollfd){h->host_process, POLLIN, 0};
  p[n++] = (struct pollfd){h->runner.pid ? h->runner.channel.fd : -1, POLLIN, 0};
  if (channel_has_unsent(&h->runner.channel)) p[n - 1].events |= POLLOUT;
  p[n++] = (struct pollfd){h->reference.pid ? h->reference.channel.fd : -1, POLLIN, 0};
  p[n++] = (struct pollfd){h->contest.pid ? h->contest.channel.fd : -1, POLLIN, 0};
  if (channel_has_unsent(&h->contest.channel)) p[n - 1].events |= POLLOUT;
  for (uint32_t i = 0; i < h->builder_count; i++) {
    struct child *c = &h->builders[i].child;
    p[n++] = (struct pollfd){c->pid && !c->stopped ? c->channel.fd : -1, POLLIN, 0};
    if (channel_has_unsent(&c->channel)) p[n - 1].events |= POLLOUT;
  }
  poll(p, n, (int)(seconds * 1e3) + 1);
  if (p[1].revents) channel_close(&h->host), h->host.fd = -1;
}

static void serve(struct helper *h) {
  while (h->host.fd >= 0) {
    take_turns(h);
    deliver(h);
    double wait = watch(h), left = h->reference.pid ? watch_reference(h) : wait;
    if (left < 0) return;
    poll_all(h, fmin(wait, left));
    if (h->host.fd >= 0) channel_flush(&h->host), hear_host(h);
    if (h->reference.pid && !hear_reference(h)) return;
    if (h->contest.pid) hear_contest(h);
    if (h->runner.pid) channel_flush(&h->runner.channel), hear_runner(h);
    for (uint32_t i = 0; i < h->builder_count; i++)
      if (h->builders[i].child.pid && !h->builders[i].child.stopped)
        channel_flush(&h->builders[i].child.channel), hear_builder(h, &h->builders[i]);
  }
}

/* ---- Start and end ---- */

static bool read_hello(struct helper *h, ms_error *err) {
  struct message m;
  struct measure_hello hello = {0};
  if (channel_wait(&h->host, 60, &m) != 1 || m.type != MEASURE_HELLO) return false;
  if (m.bytes >= sizeof hello) memcpy(&hello, m.data, sizeof hello);
  if (m.bytes < sizeof hello || hello.version != MEASURE_VERSION || hello.size != sizeof hello)
    return ms_fail(err, MS_NO_HELPER, "the helper is of another version of msched");
  h->host_process = (int)syscall(SYS_pidfd_open, (pid_t)hello.host, 0);
  return workload_open(&h->w, &hello, (const char *)m.data + sizeof hello, m.bytes - sizeof hello, err);
}

static void make_builders(struct helper *h) {
  cpu_set_t allowed;
  uint32_t cores = (uint32_t)h->w.hello.target.cores, wanted = h->w.hello.options.builders;
  if (!sched_getaffinity(0, sizeof allowed, &allowed) && cores > (uint32_t)CPU_COUNT(&allowed))
    cores = (uint32_t)CPU_COUNT(&allowed);
  h->builder_count = wanted ? wanted : cores;
  if (h->builder_count > MOST_BUILDERS) h->builder_count = MOST_BUILDERS;
  h->builders = calloc(h->builder_count, sizeof *h->builders);
  if (!h->builders) abort();
}

static void become_helper(struct helper *h) {
  int nothing = open("/dev/null", O_RDWR);
  dup2(nothing, STDIN_FILENO);
  dup2(nothing, STDOUT_FILENO);
  close_range(MEASURE_SOCKET + 1, ~0u, 0);
  signal(SIGPIPE, SIG_IGN);
  channel_open(&h->host, MEASURE_SOCKET);
}

static void end_children(struct helper *h) {
  for (uint32_t i = 0; i < h->builder_count; i++) child_end(&h->builders[i].child, NULL, 0);
  child_end(&h->runner, NULL, 0);
  child_end(&h->reference, NULL, 0);
  child_end(&h->contest, NULL, 0);
}

int main(void) {
  static struct helper h = {.grace = LEAST_GRACE};
  ms_error err = {.instruction = -1};
  if (fcntl(MEASURE_SOCKET, F_GETFD) < 0) {
    fputs("msched-helper is started by msched, to build and run what is measured\n", stderr);
    return 2;
  }
  h.runner.channel.fd = h.reference.channel.fd = h.contest.channel.fd = -1;
  become_helper(&h);
  if (!read_hello(&h, &err)) {
    give_up(&h, err.message);
    return 1;
  }
  jit_start_llvm(); /* once for all children; starts no thread */
  make_builders(&h);
  if (!child_start(&h.reference, reference_main, &h.w)) {
    give_up(&h, "no process for the reference can be had");
    return 1;
  }
  channel_send(&h.host, MEASURE_READY, NULL, 0, NULL, 0);
  serve(&h);
  end_children(&h);
  return 0;
}
