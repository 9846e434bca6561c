/* Signals of kernels: caught on each of their threads. */
#define _GNU_SOURCE
#include "trap.h"

#include "jit/team.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 1 << 16 }; /* of the handler: a kernel may have used up its own; frames of AMX are large */
static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction before[SIGNALS];
static pthread_key_t stacks;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Where a signal of this thread goes. Handlers read it, so it must not be made lazily. */
struct place {
  sigjmp_buf *landing;      /* NULL: it runs no kernel */
  const volatile int *stop; /* NULL: it is not stopped here */
};
static _Thread_local volatile struct place here __attribute__((tls_model("initial-exec")));

/* here.stop is NULL before: AddressSanitizer takes a lock before what does not return, and a stop would find it
 * taken. */
static void leave(int number) {
  sigjmp_buf *to = here.landing;
  assert(to && !here.stop);
  here.landing = NULL;
  siglongjmp(*to, number);
}

static void on_fault(int number, siginfo_t *info, void *context) {
  (void)context;
  if (here.landing && info->si_code > 0) { /* of this thread's own doing, not sent */
    here.stop = NULL;
    leave(number);
  }
  for (int i = 0; i < SIGNALS; i++)
    if (signals[i] == number) sigaction(number, &before[i], NULL);
  if (info->si_code <= 0) raise(number); /* else what faulted runs again, and faults again */
}

static void on_stop(int number) {
  const volatile int *stop = here.stop;
  if (!stop || !*stop) return;
  here.stop = NULL;
  leave(number);
}

/* ---- Threads that may be stopped, as the kernel numbers them ---- */

enum { MOST_THREADS = 4096 };
static pid_t stoppable[MOST_THREADS]; /* 0: free */
static pthread_key_t enlisted;        /* where a thread stands in it, until it ends */

/* Where there are too many, this one is not stopped. */
static void enlist(void) {
  if (pthread_getspecific(enlisted)) return;
  pid_t self = gettid();
  for (size_t i = 0; i < MOST_THREADS; i++) {
    pid_t *at = &stoppable[((size_t)self + i) % MOST_THREADS], none = 0;
    if (!__atomic_compare_exchange_n(at, &none, self, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) continue;
    if (pthread_setspecific(enlisted, at)) __atomic_store_n(at, 0, __ATOMIC_RELEASE);
    return;
  }
}
static void strike_off(void *at) { __atomic_store_n((pid_t *)at, 0, __ATOMIC_RELEASE); }

/* A process that was forked has one thread, with another number. */
static void forget_all(void) {
  memset(stoppable, 0, sizeof stoppable);
  pthread_setspecific(enlisted, NULL);
}

void jit_stop_calls(void) {
  int kept = errno;
  for (size_t i = 0; i < MOST_THREADS; i++) {
    pid_t thread = __atomic_load_n(&stoppable[i], __ATOMIC_SEQ_CST);
    if (thread) syscall(SYS_tgkill, getpid(), thread, JIT_STOP_SIGNAL);
  }
  errno = kept;
}

/* ---- Installing ---- */

static void drop_stack(void *at) {
  sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
  free(at);
}

static void make_keys(void) {
  if (pthread_key_create(&stacks, drop_stack) || pthread_key_create(&enlisted, strike_off) ||
      pthread_atfork(NULL, NULL, forget_all))
    abort();
}

/* Without SA_RESTART: what waits in the system is left. */
bool jit_catch_stops(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_ONSTACK | SA_NODEFER}, now;
  sigemptyset(&stop.sa_mask);
  pthread_mutex_lock(&lock);
  bool ours = !sigaction(JIT_STOP_SIGNAL, NULL, &now);
  if (ours && now.sa_handler != on_stop)
    ours = (now.sa_handler == SIG_DFL || now.sa_handler == SIG_IGN) && !sigaction(JIT_STOP_SIGNAL, &stop, NULL);
  pthread_mutex_unlock(&lock);
  return ours;
}

void trap_install(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER}, now;
  sigemptyset(&ours.sa_mask);
  pthread_once(&once, make_keys);
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SIGNALS; i++) {
    if (sigaction(signals[i], NULL, &now) || now.sa_sigaction == on_fault) continue;
    before[i] = now;
    sigaction(signals[i], &ours, NULL);
  }
  pthread_mutex_unlock(&lock);
  jit_catch_stops();
}

/* A stack for the handler on this thread, unless it has one. */
static void give_stack(void) {
  stack_t now;
  if (pthread_getspecific(stacks) || sigaltstack(NULL, &now) || !(now.ss_flags & SS_DISABLE)) return;
  void *at = malloc(STACK_BYTES);
  stack_t ours = {.ss_sp = at, .ss_size = STACK_BYTES};
  if (at && !sigaltstack(&ours, NULL))
    pthread_setspecific(stacks, at);
  else
    free(at);
}

/* ---- Running ---- */

/* From here on this thread is stopped; at once where that was asked before jit_stop_calls could find it. */
static void end_if_stopped(const volatile int *stop) {
  here.stop = stop;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!stop || !*stop) return;
  here.stop = NULL;
  leave(JIT_STOP_SIGNAL);
}

/* Runs body(data) where it can land. Gives the signal that ended it, or 0. */
static int run(void (*body)(void *), void *data, const volatile int *stop) {
  sigjmp_buf landing, *const outer = here.landing;
  assert(!here.stop); /* loops take it, and give it back when they end */
  give_stack();
  if (stop) enlist();
  int number = sigsetjmp(landing, 0);
  if (!number) {
    here.landing = &landing;
    end_if_stopped(stop);
    body(data);
  }
  here.stop = NULL;
  here.landing = outer;
  return number;
}

void trap_begin(struct trap_loop *loop, void (*start)(void *), void *closure) {
  *loop = (struct trap_loop){start, closure, here.stop, here.landing != NULL, 0};
  here.stop = NULL;
}

void trap_part(void *data) {
  struct trap_loop *loop = data;
  if (!loop->trapped) {
    loop->start(loop->closure);
    return;
  }
  int number = run(loop->start, loop->closure, loop->stop);
  if (number) __atomic_store_n(&loop->signal, number, __ATOMIC_RELAXED);
}

void trap_end(struct trap_loop *loop) {
  if (loop->signal) leave(loop->signal);
  end_if_stopped(loop->stop);
}

void trap_parallel(void (*start)(void *), void *closure, unsigned threads, unsigned flags) {
  (void)flags; /* libgomp's, of which generated code sets none */
  if (!here.landing) {
    team_parallel(start, closure, threads);
    return;
  }
  struct trap_loop loop;
  trap_begin(&loop, start, closure);
  team_parallel(trap_part, &loop, threads);
  trap_end(&loop);
}

bool trap_run(void (*body)(void *), void *data, const volatile int *stop, ms_error *err) {
  int number = run(body, data, stop);
  if (number == JIT_STOP_SIGNAL) return ms_fail(err, MS_RUN_STOPPED, "the run was stopped");
  return !number ||
         ms_fail(err, MS_KERNEL_FAULT, "the kernel was stopped by signal %d (%s)", number, strsignal(number));
}

struct entered {
  jit_entry entry;
  void **args, *workspace;
  int32_t *status;
};
static void enter(void *data) {
  struct entered *e = data;
  *e->status = e->entry(e->args, e->workspace);
}

bool trap_call(jit_entry entry, void **args, void *workspace, const volatile int *stop, int32_t *status,
               ms_error *err) {
  return trap_run(enter, &(struct entered){entry, args, workspace, status}, stop, err);
}
