/* Thread-timing perturbation: parallel loops on plain threads of ours in libgomp's place.
 *
 * On an idle machine the threads of a loop run side by side, each as far as the others: an error that shows only where
 * one is ahead stays hidden. Here they are as many as is asked, are made in an order drawn from a seed, start at once,
 * and then each waits for a time that is drawn too, up to what a part of the loop took in the run before. A seed
 * repeats the order and the waits, not what the machine makes of them. */
#define _GNU_SOURCE
#include "perturb.h"

#include "jit/host/trap.h"
#include "measure.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* So many loops of a run get threads; those after them run their parts in turn, in an order that is drawn. */
enum { MOST_THREADS = 64, MOST_STARTED = 64 };
enum { STACK_BYTES = 8 << 20 }; /* as a program's threads have, libgomp's too */
static const double LONGEST_WAIT = 0.002;

struct perturbed_run {
  struct perturbation *perturbation;
  uint32_t threads, loops;
  uint64_t state; /* of what is drawn */
};
/* Generated code does not say for which run it calls, nor on which of the loop's threads. */
static _Thread_local struct perturbed_run *running;
static _Thread_local uint32_t number, count = 1;

static uint64_t draw(struct perturbed_run *s) { /* splitmix64 */
  uint64_t z = s->state += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

/* ---- One loop ---- */

struct part {
  struct loop *loop;
  uint32_t number, yields;
  double wait, seconds;
  pthread_t thread;
};
struct loop {
  struct trap_loop trap; /* what its parts run */
  pthread_mutex_t lock;
  pthread_cond_t start;
  bool started;
  uint32_t count;
  struct part parts[MOST_THREADS];
};

static void run_part(struct part *p) {
  uint32_t number_around = number, count_around = count;
  number = p->number, count = p->loop->count;
  double before = measure_now();
  trap_part(&p->loop->trap);
  p->seconds = measure_now() - before;
  number = number_around, count = count_around;
}

static void *run_thread(void *data) {
  struct part *p = data;
  pthread_mutex_lock(&p->loop->lock);
  while (!p->loop->started) pthread_cond_wait(&p->loop->start, &p->loop->lock);
  pthread_mutex_unlock(&p->loop->lock);
  for (uint32_t i = 0; i < p->yields; i++) sched_yield();
  struct timespec pause = {0, (long)(p->wait * 1e9)};
  if (p->wait > 0) nanosleep(&pause, NULL);
  run_part(p);
  return NULL;
}

/* The parts in an order that is drawn, each with its wait: none, some yields, or a sleep. */
static void plan(struct perturbed_run *s, struct loop *l, double longest) {
  for (uint32_t i = 0; i < l->count; i++) l->parts[i] = (struct part){.loop = l, .number = i};
  for (uint32_t i = l->count; i > 1; i--) {
    uint32_t j = (uint32_t)(draw(s) % i), moved = l->parts[i - 1].number;
    l->parts[i - 1].number = l->parts[j].number;
    l->parts[j].number = moved;
  }
  for (uint32_t i = 0; i < l->count; i++) {
    uint64_t drawn = draw(s);
    if (drawn % 4 == 1) l->parts[i].yields = (uint32_t)(drawn >> 8) % 16;
    if (drawn % 4 > 1) l->parts[i].wait = longest * (double)(drawn >> 11) * 0x1p-53;
  }
}

/* Where the machine gives no more threads, the rest of the parts is this thread's. */
static void run_at_once(struct loop *l) {
  pthread_attr_t attributes;
  uint32_t made = 0;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_mutex_init(&l->lock, NULL);
  pthread_cond_init(&l->start, NULL);
  while (made < l->count && !pthread_create(&l->parts[made].thread, &attributes, run_thread, &l->parts[made])) made++;
  pthread_mutex_lock(&l->lock);
  l->started = true;
  pthread_cond_broadcast(&l->start);
  pthread_mutex_unlock(&l->lock);
  for (uint32_t i = made; i < l->count; i++) run_part(&l->parts[i]);
  for (uint32_t i = 0; i < made; i++) pthread_join(l->parts[i].thread, NULL);
  pthread_cond_destroy(&l->start);
  pthread_mutex_destroy(&l->lock);
  pthread_attr_destroy(&attributes);
}

static double longest_part(const struct loop *l) {
  double most = 0;
  for (uint32_t i = 0; i < l->count; i++)
    if (l->parts[i].seconds > most) most = l->parts[i].seconds;
  return most;
}

void perturb_parallel(void (*body)(void *closure), void *closure, unsigned threads, unsigned flags) {
  struct perturbed_run *s = running;
  (void)threads, (void)flags;
  if (!s) { /* outside of a perturbed run: one thread does all */
    body(closure);
    return;
  }
  struct loop l = {.count = s->threads};
  double *known = s->loops < MOST_STARTED ? &s->perturbation->parts[s->loops] : NULL;
  trap_begin(&l.trap, body, closure);
  plan(s, &l, known && *known < LONGEST_WAIT ? *known : LONGEST_WAIT);
  s->loops++;
  if (known && l.count > 1) {
    run_at_once(&l);
  } else {
    for (uint32_t i = 0; i < l.count; i++) run_part(&l.parts[i]);
  }
  if (known) *known = longest_part(&l);
  trap_end(&l.trap);
}

int perturb_thread_number(void) { return (int)number; }
int perturb_thread_count(void) { return (int)count; }

/* ---- Runs ---- */

static struct perturbed_run perturbed_run_of(struct perturbation *perturbation, uint32_t threads, uint64_t seed) {
  assert(threads > 0 && sizeof perturbation->parts / sizeof *perturbation->parts == MOST_STARTED);
  return (struct perturbed_run){
      .perturbation = perturbation, .threads = threads < MOST_THREADS ? threads : MOST_THREADS, .state = seed};
}

int32_t perturb_run(struct perturbation *perturbation, jit_entry entry, void **args, void *workspace, uint32_t threads,
                    uint64_t seed) {
  struct perturbed_run s = perturbed_run_of(perturbation, threads, seed);
  running = &s;
  int32_t status = entry(args, workspace);
  running = NULL;
  perturbation->loops = s.loops;
  return status;
}

bool perturb_call(struct perturbation *perturbation, jit_entry entry, void **args, void *workspace, uint32_t threads,
                  uint64_t seed, const volatile int *stop, int32_t *status, ms_error *err) {
  struct perturbed_run s = perturbed_run_of(perturbation, threads, seed);
  running = &s;
  bool done = trap_call(entry, args, workspace, stop, status, err);
  running = NULL;
  perturbation->loops = s.loops;
  return done;
}

/* On as many threads as cores one thread may claim every iteration, which would hide a race: only the last run has it
 * so, for races of claims. */
uint32_t perturb_threads(uint32_t run, uint32_t cores, uint32_t most) {
  static const uint32_t threads[] = {2, 3, PERTURB_MOST_THREADS - 1}, others[] = {4, 4, PERTURB_MOST_THREADS};
  enum { COUNTS = sizeof threads / sizeof *threads };
  assert(cores > 0 && most > 0);
  if (run % PERTURB_RUNS == PERTURB_RUNS - 1 && cores > 1 && cores <= most) return cores;
  uint32_t count = threads[run % COUNTS] == cores ? others[run % COUNTS] : threads[run % COUNTS];
  if (count <= most) return count;
  return most == cores && most > 2 ? most - 1 : most;
}

size_t perturb_workspace(const struct tir_workspace *w, uint32_t threads) {
  size_t more = threads > w->threads ? threads - w->threads : 0;
  return w->bytes + more * w->thread_bytes;
}
