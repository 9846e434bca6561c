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

enum stage { REPLAY, POSTPROCESS, HASH, TRACE, FEATURES, STAGES };

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
    struct vm_schedule **schedules;                 /* by function */
    struct vm_shared *shared;                       /* what candidates add to their sketches */
    uint64_t jobs, accepted;                        /* of all rounds */
    double seconds[STAGES];                         /* of the processor, of all rounds */
    uint64_t ticks[STAGES];                         /* of this round */
    bool refused[VM_KIND_COUNT + 1][MS_CODE_COUNT]; /* in this round, by kinds of instructions */
  } * workers;
  pthread_mutex_t lock;
  pthread_cond_t wake, done;
  uint64_t round; /* changes when there is work */
  uint32_t busy;
  bool leaving;
  /* the work */
  const struct search_job *jobs;
  const struct vm_plan **plans; /* of each job */
  struct search_candidate *out;
  uint32_t job_count;
  bool features;
  const volatile int *stop;
  atomic_bool failed; /* a script did: the rest of the round is left */
  atomic_uint next;
  /* plans that were made last, kept from round to round: most jobs are of few sketches */
  struct {
    const struct vm_steps *steps; /* the plan keeps them */
    uint32_t function;
    struct vm_plan *plan;
  } * kept;
  uint32_t kept_count, kept_capacity;
};

/* ---- One job ---- */

/* Counts what has passed since `start` as the stage's; gives the time now. */
static uint64_t charge(struct worker *w, enum stage stage, uint64_t start) {
  uint64_t now = vm_ticks();
  w->ticks[stage] += now - start;
  return now;
}

static void finish(struct worker *w, uint32_t function, struct search_candidate *out, uint64_t start) {
  const struct search_pool *pool = w->pool;
  struct vm_schedule *schedule = w->schedules[function];
  out->module_hash = tir_structural_hash(schedule->ir, TIR_NONE);
  start = charge(w, HASH, start);
  out->trace = vm_pack(w->shared, &schedule->trace, out->sketch);
  start = charge(w, TRACE, start);
  out->ok = true;
  if (pool->features)
    out->ok =
        search_features(schedule->ir, pool->functions[function].func, &out->features, &out->feature_rows, &out->err);
  if (!out->ok) snprintf(out->refused_by, sizeof out->refused_by, "features");
  charge(w, FEATURES, start);
  w->accepted += out->ok;
}

static bool is_stopped(const struct search_pool *pool) { return pool->stop && *pool->stop; }

/* Replays the job. What a refusal says costs more than the replay, and few read it: only the first of its kind that the
 * worker meets in a round is asked for its message, which the first of all is among, however jobs fall to workers. */
static bool replay(struct worker *w, uint32_t i, struct search_candidate *out) {
  const struct search_job *job = &w->pool->jobs[i];
  const struct vm_plan *plan = w->pool->plans[i];
  const struct vm_steps *steps = job->trace->steps;
  struct vm_schedule *schedule = w->schedules[job->function];
  struct vm_draws draws = {.mode = VM_REPAIR,
                           .decisions = job->resample ? NULL : job->trace,
                           .seed = job->seed,
                           .candidate = job->candidate,
                           .stop = w->pool->stop};
  out->err.brief = true;
  bool ok = vm_replay(schedule, plan, &draws, &out->err);
  out->err.brief = false;
  if (ok || is_stopped(w->pool)) return ok;
  bool named = out->err.instruction >= 0 && (uint32_t)out->err.instruction < steps->count;
  assert((unsigned)out->err.code < MS_CODE_COUNT);
  enum vm_kind kind = named ? (enum vm_kind)steps->instructions[out->err.instruction].kind : VM_KIND_COUNT;
  snprintf(out->refused_by, sizeof out->refused_by, "%s", named ? vm_kind_info(kind)->name : "replay");
  bool *met = &w->refused[kind][out->err.code];
  if (!*met) vm_replay(schedule, plan, &draws, &out->err);
  *met = true;
  return false;
}

static void run_job(struct worker *w, uint32_t i) {
  struct search_pool *pool = w->pool;
  assert(pool->jobs[i].function < pool->function_count);
  uint32_t function = pool->jobs[i].function;
  struct vm_schedule *schedule = w->schedules[function];
  struct search_candidate *out = &pool->out[i]; /* cleared */
  out->err.instruction = -1;
  w->jobs++;
  uint64_t start = vm_ticks();
  bool ok = replay(w, i, out);
  start = charge(w, REPLAY, start);
  if (is_stopped(pool)) out->err.code = MS_OK; /* as if it had not been begun */
  if (!ok || is_stopped(pool)) return;
  out->sketch = vm_trace_copy(&schedule->trace);
  start = charge(w, TRACE, start);
  ok = !pool->script.postprocess ||
       pool->script.postprocess(pool->script.data, w->state, schedule, out->refused_by, &out->err);
  start = charge(w, POSTPROCESS, start);
  if (ok) {
    finish(w, function, out, start);
    return;
  }
  vm_trace_free(out->sketch);
  out->sketch = NULL;
  if (out->err.code == MS_SCRIPT) atomic_store(&pool->failed, true);
}

/* Ticks run on while other programs have the processor: a stage's share of a round's ticks is its share of the round's
 * seconds. */
static void count_seconds(struct worker *w, double seconds, uint64_t ticks) {
  for (int stage = 0; stage < STAGES && ticks; stage++)
    w->seconds[stage] += seconds * (double)w->ticks[stage] / (double)ticks;
}

static void run_jobs(struct worker *w) {
  struct search_pool *pool = w->pool;
  uint64_t start = vm_ticks();
  double seconds = vm_thread_seconds();
  memset(w->refused, 0, sizeof w->refused);
  memset(w->ticks, 0, sizeof w->ticks);
  for (uint32_t i;
       (i = atomic_fetch_add(&pool->next, 1)) < pool->job_count && !atomic_load(&pool->failed) && !is_stopped(pool);)
    run_job(w, i);
  count_seconds(w, vm_thread_seconds() - seconds, vm_ticks() - start);
}

/* glibc has a thread's arena grow by some pages at a time, a system call each, and keeps what it grew to: so it grows
 * to nearly all that it may, 64 MB, at once. Memory that is not written takes no room. */
static void make_room(void) {
  enum { BLOCK = 96 << 10, BLOCKS = 600 }; /* larger ones would not be the arena's */
  void *volatile blocks[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) blocks[i] = malloc(BLOCK);
  for (int i = BLOCKS; i-- > 0;) free(blocks[i]);
}

static void *work(void *data) {
  struct worker *w = data;
  struct search_pool *pool = w->pool;
  uint64_t seen = 0;
  make_room();
  for (;;) {
    pthread_mutex_lock(&pool->lock);
    while (pool->round == seen && !pool->leaving) pthread_cond_wait(&pool->wake, &pool->lock);
    seen = pool->round;
    bool leaving = pool->leaving;
    pthread_mutex_unlock(&pool->lock);
    if (leaving) return NULL;
    run_jobs(w);
    pthread_mutex_lock(&pool->lock);
    if (--pool->busy == 0) pthread_cond_signal(&pool->done);
    pthread_mutex_unlock(&pool->lock);
  }
}

/* ---- Plans ---- */

enum { MOST_KEPT = 256 }; /* plans */

static const struct vm_plan *plan_of(struct search_pool *pool, const struct search_job *job) {
  assert(job->trace && job->function < pool->function_count);
  uint32_t last = pool->kept_count;
  for (uint32_t k = last; k > 0 && last - k < MOST_KEPT; k--)
    if (pool->kept[k - 1].steps == job->trace->steps && pool->kept[k - 1].function == job->function)
      return pool->kept[k - 1].plan;
  if (last == pool->kept_capacity)
    pool->kept = tir_enlarge(pool->kept, &pool->kept_capacity, (uint64_t)last + 1, sizeof *pool->kept);
  pool->kept[last].steps = job->trace->steps;
  pool->kept[last].function = job->function;
  pool->kept[last].plan = vm_prepare_with(pool->functions[job->function].workload, job->trace, pool->intrinsics);
  return pool->kept[pool->kept_count++].plan;
}

static void keep_last(struct search_pool *pool, uint32_t most) {
  if (pool->kept_count <= most) return;
  uint32_t dropped = pool->kept_count - most;
  for (uint32_t k = 0; k < dropped; k++) vm_plan_free(pool->kept[k].plan);
  memmove(pool->kept, pool->kept + dropped, most * sizeof *pool->kept);
  pool->kept_count = most;
}

/* ---- Life ---- */

static void stop_workers(struct search_pool *pool, uint32_t started) {
  assert(!pool->busy);
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
    vm_shared_free(pool->workers[i].shared);
  }
  pthread_mutex_destroy(&pool->lock);
  pthread_cond_destroy(&pool->wake);
  pthread_cond_destroy(&pool->done);
  keep_last(pool, 0);
  free(pool->kept);
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
    w->shared = vm_shared_new();
    if (pool->script.open) w->state = pool->script.open(pool->script.data, err);
    bool ok = !pool->script.open || w->state;
    int failed = ok ? pthread_create(&w->thread, NULL, work, w) : 0;
    if (ok && !failed) {
      pool->count++;
      continue;
    }
    if (w->state) pool->script.close(pool->script.data, w->state);
    vm_shared_free(w->shared);
    w->state = NULL, w->shared = NULL;
    if (failed && pool->count) break; /* fewer workers do the same, later */
    if (failed)
      ms_fail(err, MS_NO_PROCESS,
              "could not start a thread: %s; raise the limit of processes (ulimit -u, or pids.max "
              "of its control group) or of address space (ulimit -v), or end some",
              strerror(failed));
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
  assert(tir_is_func(workload, f));
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

bool search_pool_replay(struct search_pool *pool, const struct search_job *jobs, uint32_t count, bool features,
                        struct search_candidate *out, const volatile int *stop, ms_error *err) {
  assert(jobs || !count);
  (void)err;
  if (!count) return true;
  const struct vm_plan **plans = calloc(count, sizeof *plans);
  if (!plans) abort();
  memset(out, 0, count * sizeof *out);
  pthread_mutex_lock(&pool->lock);
  pool->jobs = jobs;
  pool->job_count = count;
  pool->plans = plans;
  pool->out = out;
  pool->features = features;
  pool->stop = stop;
  for (uint32_t i = 0; i < count; i++) plans[i] = plan_of(pool, &jobs[i]);
  atomic_store(&pool->next, 0);
  atomic_store(&pool->failed, false);
  pool->busy = pool->count;
  pool->round++;
  pthread_cond_broadcast(&pool->wake);
  while (pool->busy) pthread_cond_wait(&pool->done, &pool->lock);
  keep_last(pool, MOST_KEPT);
  pthread_mutex_unlock(&pool->lock);
  free(plans);
  return true;
}

struct search_costs search_pool_costs(const struct search_pool *pool) {
  struct search_costs costs = {0};
  double *const seconds[STAGES] = {&costs.replay, &costs.postprocess, &costs.hash, &costs.trace, &costs.features};
  for (uint32_t i = 0; i < pool->count; i++) {
    const struct worker *w = &pool->workers[i];
    costs.jobs += w->jobs;
    costs.accepted += w->accepted;
    if (pool->script.memoized) costs.memoized += pool->script.memoized(w->state);
    for (int stage = 0; stage < STAGES; stage++) *seconds[stage] += w->seconds[stage];
  }
  return costs;
}
