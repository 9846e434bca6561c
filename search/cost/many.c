/* Proposals of many sketches, and many estimates, on several threads.
 *
 * Plans are made first, since making one interns names in the workload; then threads take jobs by number from a shared
 * counter, each with a schedule of its own, and put what comes of a job at its number. */
#include "analytical.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct many {
  const struct vm_plan **plans; /* of each job */
  struct vm_plan **made;        /* each once */
  uint32_t made_count, count;
  const struct search_machine *machine;
  const volatile int *stop;
  atomic_uint next;
  void (*perform)(const struct many *m, struct vm_schedule *into, uint32_t i);
  const struct search_proposal_job *jobs;
  struct search_proposal_list *lists;
  const struct vm_trace *const *traces;
  struct search_estimated *estimates;
};

static bool is_stopped(const struct many *m) { return m->stop && *m->stop; }

/* ---- Threads ---- */

static void *work(void *data) {
  struct many *m = data;
  struct vm_schedule *into = vm_schedule_new(NULL, 1);
  for (uint32_t i; (i = atomic_fetch_add(&m->next, 1)) < m->count && !is_stopped(m);) m->perform(m, into, i);
  vm_schedule_free(into);
  return NULL;
}

/* Threads that cannot be started are done without. */
static void perform_all(struct many *m, uint32_t threads) {
  enum { MOST_THREADS = 256 };
  pthread_t started[MOST_THREADS];
  uint32_t count = 0;
  assert(m->perform && m->count > 0);
  if (threads > m->count) threads = m->count;
  if (threads > MOST_THREADS) threads = MOST_THREADS;
  while (count + 1 < threads && !pthread_create(&started[count], NULL, work, m)) count++;
  work(m);
  for (uint32_t i = 0; i < count; i++) pthread_join(started[i], NULL);
}

/* ---- Plans ---- */

/* Most jobs are of few sketches, and stand together. */
static void plan(struct many *m, uint32_t i, struct tir *workload, const struct vm_intrinsics *intrinsics,
                 const struct vm_trace *trace) {
  enum { LOOKED = 64 };
  assert(i < m->count);
  for (uint32_t k = m->made_count; k > 0 && m->made_count - k < LOOKED && !m->plans[i]; k--)
    if (vm_plan_steps(m->made[k - 1]) == trace->steps) m->plans[i] = m->made[k - 1];
  if (!m->plans[i]) m->plans[i] = m->made[m->made_count++] = vm_prepare_with(workload, trace, intrinsics);
}

static bool begin(struct many *m) {
  m->plans = calloc(m->count + 1, sizeof *m->plans);
  m->made = calloc(m->count + 1, sizeof *m->made);
  if (!m->plans || !m->made) abort();
  return m->count > 0;
}

static void end(struct many *m) {
  assert(m->made_count <= m->count);
  for (uint32_t k = 0; k < m->made_count; k++) vm_plan_free(m->made[k]);
  free(m->plans);
  free(m->made);
}

/* ---- Proposals ---- */

static void model_one(const struct many *m, struct vm_schedule *into, uint32_t i) {
  const struct search_proposal_job *job = &m->jobs[i];
  struct vm_draws draws = {.mode = VM_REPAIR,
                           .decisions = job->resample ? NULL : job->trace,
                           .seed = job->resample ? job->seed : 1,
                           .candidate = job->resample ? job->candidate : 0,
                           .stop = m->stop};
  ms_error err = {.instruction = -1, .brief = true};
  struct search_estimator *d = model_new(into, m->plans[i], &draws, m->machine, false, &err);
  if (!d) return;
  m->lists[i].at = calloc(job->most, sizeof *m->lists[i].at);
  if (!m->lists[i].at) abort();
  m->lists[i].count = search_estimator_best(d, job->seed, job->budget, job->most, job->each, m->stop, m->lists[i].at);
  search_estimator_free(d);
}

void search_proposals(struct tir *workload, const struct vm_intrinsics *intrinsics,
                      const struct search_machine *machine, const struct search_proposal_job *jobs, uint32_t count,
                      uint32_t threads, const volatile int *stop, struct search_proposal_list *out) {
  struct many m = {.count = count, .machine = machine, .stop = stop, .perform = model_one, .jobs = jobs, .lists = out};
  for (uint32_t i = 0; i < count; i++) out[i] = (struct search_proposal_list){0};
  if (begin(&m)) {
    for (uint32_t i = 0; i < count; i++) plan(&m, i, workload, intrinsics, jobs[i].trace);
    perform_all(&m, threads);
  }
  end(&m);
}

/* ---- Estimates ---- */

static void estimate_one(const struct many *m, struct vm_schedule *into, uint32_t i) {
  struct vm_draws draws = {.mode = VM_REPAIR, .decisions = m->traces[i], .seed = 1, .stop = m->stop};
  ms_error err = {.instruction = -1, .brief = true};
  struct search_estimator *d = model_new(into, m->plans[i], &draws, m->machine, true, &err);
  if (d) m->estimates[i] = model_estimated(d);
  search_estimator_free(d);
}

void search_estimates(struct tir *workload, const struct vm_intrinsics *intrinsics,
                      const struct search_machine *machine, const struct vm_trace *const *traces, uint32_t count,
                      uint32_t threads, const volatile int *stop, struct search_estimated *out) {
  struct many m = {
      .count = count, .machine = machine, .stop = stop, .perform = estimate_one, .traces = traces, .estimates = out};
  for (uint32_t i = 0; i < count; i++) out[i] = (struct search_estimated){.cycles = -1};
  if (begin(&m)) {
    for (uint32_t i = 0; i < count; i++) plan(&m, i, workload, intrinsics, traces[i]);
    perform_all(&m, threads);
  }
  end(&m);
}
