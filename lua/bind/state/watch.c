/* The flag that loops in C look at: set by an interrupt, and while a call has a clock, when that runs out. */
#define _GNU_SOURCE
#include "state.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Of a state whose call has a clock: a thread sleeps until that runs out, and sets the flag. Once it is set, it wakes
 * the thread of the call, ever more often until that has ended: it may be about to wait in the system, or in a loop
 * that waits again each time. */
struct script_alarm {
  pthread_t thread, caller;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  double at; /* by script_now; INFINITY: never */
  struct script_clock *own;
  double since, processor; /* by script_now, and of the process: what the call took before has been added up */
  double asked;            /* seconds, of the last sleep */
  bool off;                /* the call has ended */
  bool wakes;
  volatile int *flag;
};

static void sleep_until(struct script_alarm *a, double at) {
  struct timespec t = {.tv_sec = (time_t)at};
  t.tv_nsec = (long)((at - (double)t.tv_sec) * 1e9);
  pthread_cond_timedwait(&a->wake, &a->lock, &t);
}

/* ---- What a call takes itself ---- */

static double process_seconds(void) { return script_clock_seconds(CLOCK_PROCESS_CPUTIME_ID); }

/* The letter of a thread's state. Source: proc(5), stat. 0: not known. */
static char state_of(const char *thread) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
  FILE *file = fopen(path, "re");
  size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  text[n] = 0;
  const char *end = strrchr(text, ')'); /* of the name, which may hold any byte */
  return end && end[1] ? end[2] : 0;
}

/* Whether a thread of this process but this one has a processor, or waits for one. */
static bool is_any_runnable(void) {
  DIR *threads = opendir("/proc/self/task");
  bool any = false;
  char own[24];
  snprintf(own, sizeof own, "%d", (int)gettid());
  for (struct dirent *entry; threads && !any && (entry = readdir(threads));)
    any = *entry->d_name != '.' && strcmp(entry->d_name, own) != 0 && state_of(entry->d_name) == 'R';
  if (threads) closedir(threads);
  return any;
}

/* Adds up what the call took since the last time. The processor time of the process counts, as long as that is less
 * than what went by: there may be none for it. Where nothing of it wants one, it waits, and that counts as well; but
 * not while it was stopped, so that this thread woke long after it should have. */
static void count_own(struct script_alarm *a, double now) {
  static const double SLACK = 0.1; /* seconds */
  double passed = now - a->since, processor = process_seconds(), worked = processor - a->processor;
  bool waits = worked < passed && !is_any_runnable();
  a->since = now, a->processor = processor;
  if (!a->own) return;
  a->own->taken += waits ? fmin(passed, a->asked + SLACK) : fmin(passed, worked);
  if (a->own->taken >= a->own->seconds) a->own->over = true;
}

static void follow(struct script_alarm *a, double at, struct script_clock *own) {
  a->at = at, a->own = own;
  a->since = script_now(), a->processor = process_seconds();
  a->asked = 0;
}

/* Seconds. What runs in Lua, or looks at the flag, has ended before it is woken. */
static const double LOOK_EVERY = 0.2, FIRST_WAKE = 0.1, SHORTEST_WAKE = 1e-4;

static void *watch(void *data) {
  struct script_alarm *a = data;
  bool known = false; /* that it must end */
  double pause = LOOK_EVERY;
  pthread_mutex_lock(&a->lock);
  while (!a->off) {
    double now = script_now();
    count_own(a, now);
    bool must = *a->flag || now >= a->at || (a->own && a->own->over); /* an interrupt sets the flag too */
    if (must && known && a->wakes) pthread_kill(a->caller, JIT_STOP_SIGNAL);
    if (must) *a->flag = 1;
    pause = !must ? LOOK_EVERY : !known ? FIRST_WAKE : fmax(0.5 * pause, SHORTEST_WAKE);
    known = must;
    a->asked = pause;
    if (!must) a->asked = fmin(a->asked, a->at - now);
    if (!must && a->own) a->asked = fmin(a->asked, fmax(a->own->seconds - a->own->taken, SHORTEST_WAKE));
    sleep_until(a, now + a->asked);
  }
  pthread_mutex_unlock(&a->lock);
  return NULL;
}

/* Signals are for the threads that work. */
static bool start_thread(struct script_alarm *a) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = !pthread_create(&a->thread, NULL, watch, a);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return started;
}

static void free_alarm(struct script_alarm *a) {
  pthread_mutex_destroy(&a->lock);
  pthread_cond_destroy(&a->wake);
  free(a);
}

struct script_alarm *script_alarm_new(double at, struct script_clock *own, volatile int *flag) {
  assert(flag);
  struct script_alarm *a = calloc(1, sizeof *a);
  if (!a) abort();
  follow(a, at, own);
  a->flag = flag, a->caller = pthread_self(), a->wakes = jit_catch_stops();
  pthread_condattr_t steady;
  pthread_condattr_init(&steady);
  pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
  pthread_mutex_init(&a->lock, NULL);
  pthread_cond_init(&a->wake, &steady);
  pthread_condattr_destroy(&steady);
  if (start_thread(a)) return a;
  free_alarm(a);
  return NULL;
}

void script_alarm_move(struct script_alarm *a, double at, struct script_clock *own) {
  pthread_mutex_lock(&a->lock);
  count_own(a, script_now()); /* for what it followed */
  follow(a, at, own);
  pthread_cond_signal(&a->wake);
  pthread_mutex_unlock(&a->lock);
}

void script_alarm_free(struct script_alarm *a) {
  if (!a) return;
  pthread_mutex_lock(&a->lock);
  a->off = true;
  pthread_cond_signal(&a->wake);
  pthread_mutex_unlock(&a->lock);
  pthread_join(a->thread, NULL);
  free_alarm(a);
}
