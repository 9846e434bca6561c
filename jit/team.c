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
  LINE = 128,
  SPINS = 4000
}; /* SPINS: some tens of microseconds, as long as kernels are apart that follow each other */

/* Each on cache lines of its own: what the caller writes for a loop is read at once, and threads that run parts do not
 * write to what others wait for. */
struct part {
  uint64_t state; /* the number of the loop that it is claimed for; one more: it is done */
  char apart[LINE - sizeof(uint64_t)];
};

/* The loop that runs. number: it goes up by one when the fields are about to change, and is odd then, and by one when
 * they hold. A part is claimed where its state becomes the number: it only goes up, so what was read of a loop that is
 * over claims nothing. Source of the order: Boehm, Can seqlocks get along with programming language memory models?,
 * 2012. */
static struct {
  uint64_t number;
  void (*start)(void *);
  void *closure;
  uint32_t count;
  char behind_loop[LINE - 28];
  uint32_t busy; /* a caller has it */
  char behind_busy[LINE - 4];
  uint32_t sleeping, workers, has_no_more; /* what rarely changes */
  char behind_workers[LINE - 12];
  struct part parts[MOST_PARTS];
} team __attribute__((aligned(LINE)));
static pthread_mutex_t workers_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct { uint32_t number, count; } part = {0, 1};

#define GET(field, order)        __atomic_load_n(&team.field, __ATOMIC_##order)
#define SET(field, value, order) __atomic_store_n(&team.field, value, __ATOMIC_##order)
#define ADD(field, value)        __atomic_fetch_add(&team.field, value, __ATOMIC_SEQ_CST)

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

static int claim(uint32_t i, uint64_t loop) {
  uint64_t before = GET(parts[i].state, ACQUIRE);
  return before < loop &&
         __atomic_compare_exchange_n(&team.parts[i].state, &before, loop, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Does the parts of the loop that no thread has, from part `first` on. */
static void take_parts(uint64_t loop, uint32_t first) {
  uint32_t count = GET(count, RELAXED);
  void (*start)(void *) = GET(start, RELAXED);
  void *closure = GET(closure, RELAXED);
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  if (loop % 2 || GET(number, RELAXED) != loop) return; /* another began meanwhile */
  uint32_t i = first < count ? first : first % count;
  for (uint32_t left = count; left > 0; left--, i = i + 1 < count ? i + 1 : 0) {
    if (!claim(i, loop)) continue;
    run_part(start, closure, i, count);
    SET(parts[i].state, loop + 1, RELEASE);
  }
}

/* ---- Workers ---- */

/* Its first half is what the system compares. */
static void sleep_while(uint64_t seen) {
  ADD(sleeping, 1);
  if (GET(number, SEQ_CST) == seen) syscall(SYS_futex, &team.number, FUTEX_WAIT_PRIVATE, (uint32_t)seen, NULL, NULL, 0);
  ADD(sleeping, -1u);
}

static void wake(uint32_t count) {
  if (GET(sleeping, SEQ_CST)) syscall(SYS_futex, &team.number, FUTEX_WAKE_PRIVATE, (int)count, NULL, NULL, 0);
}

static void *work(void *data) {
  uint32_t own = (uint32_t)(uintptr_t)data;
  uint64_t seen = 0;
  for (;;) {
    uint64_t now;
    for (uint32_t spins = 0; (now = GET(number, ACQUIRE)) == seen; spins++) {
      if (spins < SPINS) {
        rest();
        continue;
      }
      sleep_while(seen);
      spins = 0;
    }
    seen = now;
    take_parts(now, own);
  }
  return NULL;
}

static void forget_workers(void) { /* the child of a fork has none */
  SET(workers, 0, SEQ_CST), SET(sleeping, 0, SEQ_CST), SET(busy, 0, SEQ_CST), SET(has_no_more, 1, SEQ_CST);
}

/* What cannot be had is done by the others. */
static void have_workers(uint32_t wanted) {
  static int watches_forks;
  if (GET(workers, ACQUIRE) >= wanted || GET(has_no_more, ACQUIRE)) return;
  pthread_mutex_lock(&workers_lock);
  if (!watches_forks) watches_forks = 1, pthread_atfork(NULL, NULL, forget_workers);
  while (GET(workers, ACQUIRE) < wanted && !GET(has_no_more, ACQUIRE)) {
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &detached, work, (void *)(uintptr_t)(GET(workers, ACQUIRE) + 1)))
      SET(has_no_more, 1, SEQ_CST);
    else
      ADD(workers, 1);
    pthread_attr_destroy(&detached);
  }
  pthread_mutex_unlock(&workers_lock);
}

/* ---- Callers ---- */

static void run_alone(void (*start)(void *), void *closure, uint32_t count) {
  for (uint32_t number = 0; number < count; number++) run_part(start, closure, number, count);
}

/* Gives the number of the loop. */
static uint64_t publish(void (*start)(void *), void *closure, uint32_t count) {
  uint64_t loop = (GET(number, RELAXED) + 2) & ~UINT64_C(1); /* a fork may have come while it was odd */
  SET(number, loop - 1, RELAXED);
  __atomic_thread_fence(__ATOMIC_RELEASE);
  SET(start, start, RELAXED), SET(closure, closure, RELAXED), SET(count, count, RELAXED);
  SET(number, loop, SEQ_CST); /* before it is asked who sleeps */
  return loop;
}

void team_parallel(void (*start)(void *), void *closure, unsigned count) {
  assert(start && count > 0);
  int alone = count == 1 || count > MOST_PARTS || part.count > 1;
  if (alone || GET(busy, RELAXED) || __atomic_exchange_n(&team.busy, 1, __ATOMIC_ACQUIRE)) {
    run_alone(start, closure, count);
    return;
  }
  have_workers(count - 1);
  uint64_t loop = publish(start, closure, count);
  wake(count - 1);
  take_parts(loop, 0);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t spins = 0; GET(parts[i].state, ACQUIRE) != loop + 1; spins++) {
      if (spins < SPINS)
        rest();
      else
        sched_yield();
    }
  SET(busy, 0, RELEASE);
}
