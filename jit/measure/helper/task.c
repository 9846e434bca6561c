/* Tasks: what each function computes is known before its candidates run, and is computed while others' are measured. */
#include "task.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- What became of a reference ---- */

static void report(const struct tasks *tasks, uint32_t i, struct channel *host) {
  const struct task *t = tasks->at[i];
  const struct measure_task_state state = {i, t->state == REFERENCE_FAILED};
  channel_send(host, MEASURE_TASK_STATE, &state, sizeof state, t->failure, strlen(t->failure));
}

static void settle(struct tasks *tasks, uint32_t i, const char *failure, struct channel *host) {
  struct task *t = tasks->at[i];
  assert(t->state == REFERENCE_RUNS || t->state == REFERENCE_WAITS);
  tasks->running -= t->state == REFERENCE_RUNS;
  t->state = failure ? REFERENCE_FAILED : REFERENCE_KNOWN;
  snprintf(t->failure, sizeof t->failure, "%s", failure ? failure : t->w.made ? t->w.made->note : "");
  if (t->w.made) t->w.made->settled = 1;
  report(tasks, i, host);
}

static void hear(struct tasks *tasks, uint32_t i, struct channel *host) {
  struct task *t = tasks->at[i];
  struct message m;
  char reason[2300], how[300];
  channel_flush(&t->reference.channel);
  channel_fill(&t->reference.channel);
  struct measure_reference *reference = &t->w.reference;
  bool answered =
      channel_take(&t->reference.channel, &m) && m.type == MEASURE_REFERENCE && m.bytes >= sizeof *reference;
  if (!answered && t->reference.channel.fd >= 0) return;
  bool unborn = !answered && child_is_unborn(&t->reference);
  if (answered) {
    memcpy(reference, m.data, sizeof *reference);
    snprintf(reason, sizeof reason, "the unscheduled function cannot be run: %.*s", (int)(m.bytes - sizeof *reference),
             (const char *)m.data + sizeof *reference);
  }
  if (unborn) snprintf(reason, sizeof reason, "%s", t->reference.note->said);
  child_end(&t->reference, how, sizeof how);
  if (unborn) {
    tasks->running--;
    t->state = REFERENCE_WAITS; /* another is started */
    if (starts_failed(&tasks->starts, reason) == START_GIVEN_UP) settle(tasks, i, reason, host);
    return;
  }
  starts_worked(&tasks->starts);
  if (!answered) snprintf(reason, sizeof reason, "the unscheduled function cannot be run: %s", how);
  settle(tasks, i, reference->tolerance >= 0 ? NULL : reason, host);
}

/* Returns the seconds that it has left. */
static double limit(struct tasks *tasks, uint32_t i, struct channel *host) {
  struct task *t = tasks->at[i];
  assert(t->state == REFERENCE_RUNS && t->reference.pid);
  double most = t->w.hello->options.reference_timeout, left = child_left(&t->reference, most);
  char reason[160];
  if (left > 0) return left;
  child_end(&t->reference, NULL, 0);
  snprintf(reason, sizeof reason,
           "the unscheduled function took more than %g s; allow more with --reference-timeout, or tune a smaller one",
           most);
  settle(tasks, i, reason, host);
  return 0;
}

/* ---- All of them ---- */

static void start(struct tasks *tasks, uint32_t i, struct channel *host) {
  struct task *t = tasks->at[i];
  assert(t->state == REFERENCE_WAITS && tasks->running < MOST_REFERENCES);
  enum start state = child_try(&t->reference, reference_main, &tasks->workloads, &tasks->starts);
  if (state == START_GIVEN_UP) settle(tasks, i, tasks->starts.why, host);
  if (state != START_DONE) return;
  t->state = REFERENCE_RUNS;
  tasks->running++;
  channel_send(&t->reference.channel, MEASURE_REFER, &i, sizeof i, NULL, 0);
}

double tasks_watch(struct tasks *tasks, struct channel *host) {
  double soonest = 3600;
  assert(tasks->running <= MOST_REFERENCES && tasks->running <= tasks->workloads.count);
  for (uint32_t i = 0; i < tasks->workloads.count; i++) {
    struct task *t = tasks->at[i];
    if (t->state == REFERENCE_WAITS && tasks->running < MOST_REFERENCES) start(tasks, i, host);
    if (t->state != REFERENCE_RUNS || t->reference.stopped) continue;
    hear(tasks, i, host);
    double left = t->state == REFERENCE_RUNS ? limit(tasks, i, host) : 0; /* 0: what became of it is seen to at once */
    soonest = left < soonest ? left : soonest;
  }
  for (uint32_t i = 0; i < tasks->workloads.count; i++)
    if (tasks->at[i]->state == REFERENCE_WAITS) soonest = fmin(soonest, starts_wait(&tasks->starts));
  return soonest;
}

void tasks_stop_references(struct tasks *tasks) {
  for (uint32_t i = 0; i < tasks->workloads.count; i++) child_stop(&tasks->at[i]->reference);
}

void tasks_continue_references(struct tasks *tasks) {
  for (uint32_t i = 0; i < tasks->workloads.count; i++) child_continue(&tasks->at[i]->reference);
}

void tasks_add(struct tasks *tasks, const struct measure_hello *hello, const struct message *m, struct channel *host) {
  ms_error err = {.instruction = -1};
  struct measure_task head = {0};
  struct task *t = calloc(1, sizeof *t);
  uint32_t i = tasks->workloads.count++;
  tasks->at = realloc(tasks->at, (i + 1) * sizeof *tasks->at);
  tasks->workloads.at = realloc(tasks->workloads.at, (i + 1) * sizeof *tasks->workloads.at);
  if (!t || !tasks->at || !tasks->workloads.at) abort();
  t->reference = child_none;
  tasks->at[i] = t;
  tasks->workloads.at[i] = &t->w;
  if (m->bytes >= sizeof head) memcpy(&head, m->data, sizeof head);
  const char *texts = (const char *)m->data + sizeof head;
  if (m->bytes < sizeof head || !workload_open(&t->w, hello, &head, texts, m->bytes - sizeof head, &err))
    settle(tasks, i, err.message, host);
}

void tasks_close(struct tasks *tasks, uint32_t task) {
  assert(task < tasks->workloads.count);
  struct task *t = tasks->at[task];
  child_end(&t->reference, NULL, 0);
  tasks->running -= t->state == REFERENCE_RUNS;
  if (t->state != REFERENCE_FAILED) workload_drop_arguments(&t->w);
  t->state = REFERENCE_FAILED;
  snprintf(t->failure, sizeof t->failure, "the task was closed");
}

void tasks_end(struct tasks *tasks) {
  for (uint32_t i = 0; i < tasks->workloads.count; i++) child_end(&tasks->at[i]->reference, NULL, 0);
}
