#include "team.h"

#include <assert.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  MOST_PARTS = 1024,
  SPINS = 4000
}; /* SPINS: some tens of microseconds, as long as kernels are apart that follow each other */

/* The loop that runs. number: it goes up by one when the fields are about to change, and is odd then, and by one when
 * they hold. A part is claimed where `claimed` becomes the number: it only goes up, so what was read of a loop that is
 * over claims nothing. */
static struct {
  uint32_t number, parts, done, busy, sleeping, workers, has_no_more;
  void (*start)(void *);
  void *closure;
  uint32_t claimed[MOST_PARTS];
} team;
static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct { uint32_t number, count; } part = {0, 1};

#define GET(field)        __atomic_load_n(&team.field, __ATOMIC_SEQ_CST)
#define SET(field, value) __atomic_store_n(&team.field, value, __ATOMIC_SEQ_CST)

int team_part(void) { return (int)part.number; }
int team_parts(void) { return (int)part.count; }

static inline void rest(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static void run_part(void (*start)(void *), void *closure, uint32_t number, uint32_t count) {
  assert(number < count);
  uint32_t number_around = part.number, count_around = part.count;
  part.number = number, part.count = count;
  start(closure);
  part.number = number_around, part.count = count_around;
}

static int claim(uint32_t i, uint32_t loop) {
  uint32_t before = GET(claimed[i]);
  while ((int32_t)(loop - before) > 0)
    if (__atomic_compare_exchange_n(&team.claimed[i], &before, loop, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 1;
  return 0;
}

/* Does the parts of the loop that no thread has, from part `first` on. */
static void take_parts(uint32_t loop, uint32_t first) {
  uint32_t count = GET(parts);
  void (*start)(void *) = GET(start);
  void *closure = GET(closure);
  if (loop % 2 || GET(number) != loop) return; /* another began meanwhile */
  for (uint32_t i = 0; i < count; i++) {
    uint32_t number = (first + i) % count;
    if (!claim(number, loop)) continue;
    run_part(start, closure, number, count);
    __atomic_fetch_add(&team.done, 1, __ATOMIC_SEQ_CST);
  }
}

static void *work(void *data) {
  uint32_t own = (uint32_t)(uintptr_t)data, seen = 0;
  for (;;) {
    uint32_t now;
    for (int spins = 0; (now = GET(number)) == seen; spins++) {
      if (spins < SPINS) {
        rest();
        continue;
      }
      __atomic_fetch_add(&team.sleeping, 1, __ATOMIC_SEQ_CST);
      syscall(SYS_futex, &team.number, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
      __atomic_fetch_sub(&team.sleeping, 1, __ATOMIC_SEQ_CST);
    }
    seen = now;
    take_parts(now, own);
  }
  return NULL;
}

static void forget_workers(void) { /* the child of a fork has none */
  SET(workers, 0), SET(sleeping, 0), SET(busy, 0), SET(has_no_more, 1);
}

/* What cannot be had is done by the others. */
static void have_workers(uint32_t wanted) {
  static int watches_forks;
  if (GET(workers) >= wanted || GET(has_no_more)) return;
  pthread_mutex_lock(&workers_lock);
  if (!watches_forks) watches_forks = 1, pthread_atfork(NULL, NULL, forget_workers);
  while (GET(workers) < wanted && !GET(has_no_more)) {
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, work, (void *)(uintptr_t)(GET(workers) + 1)))
      SET(has_no_more, 1);
    else
      __atomic_fetch_add(&team.workers, 1, __ATOMIC_SEQ_CST);
    pthread_attr_destroy(&detached);
  }
  pthread_mutex_unlock(&workers_lock);
}

static void run_alone(void (*start)(void *), void *closure, uint32_t count) {
  for (uint32_t number = 0; number < count; number++) run_part(start, closure, number, count);
}

void team_parallel(void (*start)(void *), void *closure, unsigned count) {
  assert(start && count > 0);
  int alone = count == 1 || count > MOST_PARTS || part.count > 1;
  if (alone || __atomic_exchange_n(&team.busy, 1, __ATOMIC_SEQ_CST)) {
    run_alone(start, closure, count);
    return;
  }
  have_workers(count - 1);
  uint32_t loop = GET(number) + 2;
  assert(loop % 2 == 0);
  SET(number, loop - 1);
  SET(start, start), SET(closure, closure), SET(parts, count), SET(done, 0);
  SET(number, loop);
  if (GET(sleeping)) syscall(SYS_futex, &team.number, FUTEX_WAKE_PRIVATE, (int)count - 1, NULL, NULL, 0);
  take_parts(loop, 0);
  for (int spins = 0; GET(done) < count; spins++) {
    if (spins < SPINS)
      rest();
    else
      sched_yield();
  }
  SET(busy, 0);
}
