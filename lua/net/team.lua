-- The threads of an exported network, as C that stands in its library in the place of libgomp: kernels call GOMP_parallel, and ask
-- which thread they are. A loop's parts are claimed one by one, by the thread that calls and by workers that wait for the
-- next loop: where no worker has a processor, the caller does all parts itself and waits for none. A second caller at the same
-- time does its parts alone; so does the child of a fork, which has no workers.
return [[
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

enum { MOST_WORKERS = 256, SPINS = 4000 };
static const uint64_t CLOSED = UINT32_MAX;

/* The loop that is run. claim: its number, and in the low half the next part; the other fields hold while that is not CLOSED, and
 * parts are left. */
static struct {
  uint64_t claim;
  uint32_t parts, done, busy, sleeping, workers, stuck;
  void (*start)(void *);
  void *closure;
} team;
static pthread_mutex_t team_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct {
  uint32_t number, count;
} part = {0, 1};

#define GET(field) __atomic_load_n(&team.field, __ATOMIC_ACQUIRE)
#define SET(field, value) __atomic_store_n(&team.field, value, __ATOMIC_SEQ_CST)

static inline void rest(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static uint32_t *number_of_loop(void) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  return (uint32_t *)&team.claim + 1;
#else
  return (uint32_t *)&team.claim;
#endif
}

static void run_part(void (*start)(void *), void *closure, uint32_t number, uint32_t count) {
  uint32_t own = part.number, own_count = part.count;
  part.number = number, part.count = count;
  start(closure);
  part.number = own, part.count = own_count;
}

/* Does parts of the loop, as long as there are some. */
static void take_parts(void) {
  for (;;) {
    uint64_t claim = GET(claim);
    uint32_t number = (uint32_t)claim, count = GET(parts);
    void (*start)(void *) = GET(start);
    void *closure = GET(closure);
    if (number >= count) return;
    if (!__atomic_compare_exchange_n(&team.claim, &claim, claim + 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_ACQUIRE)) continue;
    run_part(start, closure, number, count); /* the claim held: so did the fields */
    __atomic_fetch_add(&team.done, 1, __ATOMIC_SEQ_CST);
  }
}

static void *work(void *unused) {
  uint32_t seen = 0;
  for (;;) {
    uint32_t spins = 0, now;
    while ((now = __atomic_load_n(number_of_loop(), __ATOMIC_ACQUIRE)) == seen) {
      if (++spins < SPINS) {
        rest();
        continue;
      }
      __atomic_fetch_add(&team.sleeping, 1, __ATOMIC_SEQ_CST);
      syscall(SYS_futex, number_of_loop(), FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
      __atomic_fetch_sub(&team.sleeping, 1, __ATOMIC_SEQ_CST);
    }
    seen = now;
    take_parts();
  }
  return unused;
}

static void forget_workers(void) { /* in the child of a fork */
  SET(workers, 0), SET(sleeping, 0), SET(busy, 0), SET(stuck, 1);
}

/* Workers that take no signals, which are the host's. */
static void have_workers(uint32_t wanted) {
  static int watched;
  if (wanted > MOST_WORKERS) wanted = MOST_WORKERS;
  if (GET(workers) >= wanted || GET(stuck)) return;
  pthread_mutex_lock(&team_lock);
  if (!watched) watched = 1, pthread_atfork(NULL, NULL, forget_workers);
  while (GET(workers) < wanted) {
    pthread_t thread;
    pthread_attr_t detached;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &detached, work, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&detached);
    if (failed) {
      SET(stuck, 1); /* the caller does what they would */
      break;
    }
    __atomic_fetch_add(&team.workers, 1, __ATOMIC_SEQ_CST);
  }
  pthread_mutex_unlock(&team_lock);
}

static void run_alone(void (*start)(void *), void *closure, uint32_t count) {
  for (uint32_t number = 0; number < count; number++) run_part(start, closure, number, count);
}

void GOMP_parallel(void (*start)(void *), void *closure, unsigned count, unsigned flags) {
  (void)flags;
  if (!count) count = 1;
  if (count == 1 || part.count > 1 || __atomic_exchange_n(&team.busy, 1, __ATOMIC_ACQUIRE)) {
    run_alone(start, closure, count);
    return;
  }
  have_workers(count - 1);
  uint64_t loop = (GET(claim) >> 32) + 1; /* no claim of before holds from here on */
  SET(claim, loop << 32 | CLOSED);
  SET(start, start), SET(closure, closure), SET(done, 0), SET(parts, count);
  SET(claim, (loop + 1) << 32);
  if (GET(sleeping)) syscall(SYS_futex, number_of_loop(), FUTEX_WAKE_PRIVATE, count - 1, NULL, NULL, 0);
  take_parts();
  for (uint32_t spins = 0; GET(done) < count; spins++) {
    if (spins < SPINS) rest();
    else sched_yield();
  }
  __atomic_store_n(&team.busy, 0, __ATOMIC_RELEASE);
}

int omp_get_thread_num(void) { return (int)part.number; }
int omp_get_num_threads(void) { return (int)part.count; }
]]
