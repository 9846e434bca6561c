/* The flag that loops in C look at: set by an interrupt, and while a call has a clock, when that runs out. */
#include "state.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* Of a state whose call has a clock: a thread sleeps until that runs out, and sets the flag. Once it is set, it wakes
 * the thread of the call, ever more often until that has ended: it may be about to wait in the system, or in a loop
 * that waits again each time. */
struct script_alarm {
  pthread_t thread, caller;
  pthread_mutex_t lock;
  pthread_cond_t wake;
  double at; /* by script_now; INFINITY: never */
  bool off;  /* the call has ended */
  bool wakes;
  volatile int *flag;
};

static void sleep_until(struct script_alarm *a, double at) {
  struct timespec t = {.tv_sec = (time_t)at};
  t.tv_nsec = (long)((at - (double)t.tv_sec) * 1e9);
  pthread_cond_timedwait(&a->wake, &a->lock, &t);
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
    bool must = *a->flag || now >= a->at; /* an interrupt sets the flag too */
    if (must && known && a->wakes) pthread_kill(a->caller, JIT_STOP_SIGNAL);
    if (must) *a->flag = 1;
    pause = !must ? LOOK_EVERY : !known ? FIRST_WAKE : fmax(0.5 * pause, SHORTEST_WAKE);
    known = must;
    sleep_until(a, must ? now + pause : fmin(a->at, now + pause));
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

struct script_alarm *script_alarm_new(double at, volatile int *flag) {
  assert(flag);
  struct script_alarm *a = calloc(1, sizeof *a);
  if (!a) abort();
  a->at = at, a->flag = flag, a->caller = pthread_self(), a->wakes = jit_catch_stops();
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

void script_alarm_move(struct script_alarm *a, double at) {
  pthread_mutex_lock(&a->lock);
  a->at = at;
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
