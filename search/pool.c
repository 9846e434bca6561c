/* The pool: threads that replay jobs, each with a script and, for each function, a schedule of its own.
 *
 * Jobs are taken by number from a shared counter; what becomes of a job depends on the job alone, and is put at its
 * number: so the number of threads shows in time only. Plans are made before the threads start on them, since making
 * one interns names in the workload. */
#include "search.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct search_pool {
  struct function {
    struct tir *workload;
    tir_func func;
  } * functions; /* by number */
  uint32_t function_count;
  struct search_script script;
  const struct vm_intrinsics *intrinsics;
  uint32_t count;
  struct worker {
    struct search_pool *pool;
    pthread_t thread;
    void *state;
    struct vm_schedule **schedules; /* by function */
  } * workers;
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  uint64_t round; /* changes when there is work */
  uint32_t busy;
  bool leaving;
  /* the work */
  const struct search_job *jobs;
  struct vm_plan **plans; /* one a job; jobs of one trace's steps share theirs */
  struct search_candidate *out;
  uint32_t job_count;
  bool features;
  const volatile bool *stop;
  atomic_bool failed; /* a script did: the rest of the round is left */
  atomic_uint next;
};

/* ---- One job ---- */

static void finish(const struct search_pool *pool, uint32_t function, struct vm_schedule *schedule,
                   struct search_candidate *out) {
  out->module_hash = tir_structural_hash(schedule->ir, TIR_NONE);
  out->trace = vm_trace_copy(&schedule->trace);
  out->ok = true;
  if (pool->features)
    out->ok =
        search_features(schedule->ir, pool->functions[function].func, &out->features, &out->feature_rows, &out->err);
  if (!out->ok) snprintf(out->refused_by, sizeof out->refused_by, "features");
}

static void name_refuser(const struct search_job *job, struct search_candidate *out) {
  const struct vm_steps *steps = job->trace->steps;
  bool named = out->err.instruction >= 0 && (uint32_t)out->err.instruction < steps->count;
  enum vm_kind kind = named ? (enum vm_kind)steps->instructions[out->err.instruction].kind : 0;
  snprintf(out->refused_by, sizeof out->refused_by, "%s", named ? vm_kind_info(kind)->name : "replay");
}

static void run_job(struct worker *w, uint32_t i) {
  struct search_pool *pool = w->pool;
  const struct search_job *job = &pool->jobs[i];
  struct search_candidate *out = &pool->out[i];
  struct vm_schedule *schedule = w->schedules[job->function];
  struct vm_draws draws = {.mode = VM_REPAIR,
                           .decisions = job->draw_anew ? NULL : job->trace,
                           .seed = job->seed,
                           .candidate = job->candidate};
  memset(out, 0, sizeof *out);
  out->err.instruction = -1;
  if (!vm_replay(schedule, pool->plans[i], &draws, &out->err)) {
    name_refuser(job, out);
    return;
  }
  if (pool->script.postprocess &&
      !pool->script.postprocess(pool->script.data, w->state, schedule, out->refused_by, &out->err)) {
    if (out->err.code == MS_SCRIPT) atomic_store(&pool->failed, true);
    return;
  }
  finish(pool, job->function, schedule, out);
}

static void *work(void *data) {
  struct worker *w = data;
  struct search_pool *pool = w->pool;
  uint64_t seen = 0;
  for (;;) {
    pthread_mutex_lock(&pool->lock);
    while (pool->round == seen && !pool->leaving) pthread_cond_wait(&pool->wake, &pool->lock);
    seen = pool->round;
    bool leaving = pool->leaving;
    pthread_mutex_unlock(&pool->lock);
    if (leaving) return NULL;
    for (uint32_t i; (i = atomic_fetch_add(&pool->next, 1)) < pool->job_count && !atomic_load(&pool->failed) &&
                     !(pool->stop && *pool->stop);)
      run_job(w, i);
    pthread_mutex_lock(&pool->lock);
    if (--pool->busy == 0) pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->lock);
  }
}

/* ---- Life ---- */

static void stop_workers(struct search_pool *pool, uint32_t started) {
  pthread_mutex_lock(&pool->lock);
  pool->leaving = true;
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
  for (uint32_t i = 0; i < started; i++) pthread_join(pool->workers[i].thread, NULL);
}

void search_pool_free(struct search_pool *pool) {
  if (!pool) return;
  stop_workers(pool, pool->count);
  for (uint32_t i = 0; i < pool->count; i++) {
    if (pool->workers[i].state) pool->script.close(pool->script.data, pool->workers[i].state);
    for (uint32_t f = 0; f < pool->function_count; f++) vm_schedule_free(pool->workers[i].schedules[f]);
    free(pool->workers[i].schedules);
  }
  pthread_mutex_destroy(&pool->lock);
  pthread_cond_destroy(&pool->wake);
  pthread_cond_destroy(&pool->done);
  for (uint32_t f = 0; f < pool->function_count; f++) tir_free(pool->functions[f].workload);
  free(pool->functions);
  free(pool->workers);
  free(pool);
}

struct search_pool *search_pool_new(const struct search_script *script, const struct vm_intrinsics *intrinsics,
                                    uint32_t workers, ms_error *err) {
  struct search_pool *pool = calloc(1, sizeof *pool);
  if (!pool) abort();
  if (script) pool->script = *script;
  pool->intrinsics = intrinsics;
  pool->workers = calloc(workers ? workers : 1, sizeof *pool->workers);
  if (!pool->workers) abort();
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pthread_cond_init(&pool->done, NULL);
  for (uint32_t i = 0; i < (workers ? workers : 1); i++) {
    struct worker *w = &pool->workers[i];
    w->pool = pool;
    if (pool->script.open) w->state = pool->script.open(pool->script.data, err);
    bool ok = !pool->script.open || w->state;
    if (ok && pthread_create(&w->thread, NULL, work, w) != 0) ok = ms_fail(err, MS_TOO_LARGE, "no thread can be had");
    if (ok) {
      pool->count++;
      continue;
    }
    if (w->state) pool->script.close(pool->script.data, w->state);
    search_pool_free(pool);
    return NULL;
  }
  return pool;
}

static void *grow(void *array, size_t count, size_t size) {
  void *at = realloc(array, count * size);
  if (!at) abort();
  return at;
}

/* Workers wait between rounds: they see the function with the next. */
uint32_t search_pool_add(struct search_pool *pool, const struct tir *workload, tir_func f) {
  uint32_t number = pool->function_count++;
  pool->functions = grow(pool->functions, pool->function_count, sizeof *pool->functions);
  pool->functions[number] = (struct function){tir_new(), f};
  tir_copy(pool->functions[number].workload, workload);
  for (uint32_t i = 0; i < pool->count; i++) {
    struct worker *w = &pool->workers[i];
    w->schedules = grow(w->schedules, pool->function_count, sizeof(struct vm_schedule *));
    w->schedules[number] = vm_schedule_new(workload, 0);
    w->schedules[number]->intrinsics = pool->intrinsics;
  }
  return number;
}

/* ---- A round ---- */

static void make_plans(struct search_pool *pool) {
  for (uint32_t i = 0; i < pool->job_count; i++) {
    pool->plans[i] = NULL;
    for (uint32_t k = i; k-- > 0 && i - k <= 64 && !pool->plans[i];)
      if (pool->jobs[k].trace->steps == pool->jobs[i].trace->steps && pool->jobs[k].function == pool->jobs[i].function)
        pool->plans[i] = pool->plans[k];
    struct tir *workload = pool->functions[pool->jobs[i].function].workload;
    if (!pool->plans[i]) pool->plans[i] = vm_prepare_with(workload, pool->jobs[i].trace, pool->intrinsics);
  }
}

static void free_plans(struct search_pool *pool) {
  for (uint32_t i = 0; i < pool->job_count; i++) {
    struct vm_plan *plan = pool->plans[i];
    for (uint32_t k = i; plan && k < pool->job_count; k++)
      if (pool->plans[k] == plan) pool->plans[k] = NULL;
    vm_plan_free(plan);
  }
}

bool search_pool_replay(struct search_pool *pool, const struct search_job *jobs, uint32_t count, bool features,
                        struct search_candidate *out, const volatile bool *stop, ms_error *err) {
  assert(jobs || !count);
  (void)err;
  if (!count) return true;
  struct vm_plan **plans = calloc(count, sizeof *plans);
  if (!plans) abort();
  memset(out, 0, count * sizeof *out);
  pthread_mutex_lock(&pool->lock);
  pool->jobs = jobs;
  pool->job_count = count;
  pool->plans = plans;
  pool->out = out;
  pool->features = features;
  pool->stop = stop;
  make_plans(pool);
  atomic_store(&pool->next, 0);
  atomic_store(&pool->failed, false);
  pool->busy = pool->count;
  pool->round++;
  pthread_cond_broadcast(&pool->wake);
  while (pool->busy) pthread_cond_wait(&pool->done, &pool->lock);
  free_plans(pool);
  pthread_mutex_unlock(&pool->lock);
  free(plans);
  return true;
}
