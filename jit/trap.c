/* Signals of kernels: caught on each of their threads. */
#include "trap.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

void GOMP_parallel(void (*start)(void *), void *closure, unsigned threads, unsigned flags);

enum { STACK_BYTES = 1 << 16 }; /* of the handler: a kernel may have used up its own; frames of AMX are large */
static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { SIGNALS = sizeof signals / sizeof *signals };

static struct sigaction before[SIGNALS];
static pthread_key_t stacks;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Where a fault of this thread goes; NULL: it runs no kernel. The handler reads it, so it must not be made lazily. */
static _Thread_local sigjmp_buf *landing __attribute__((tls_model("initial-exec")));

static void on_fault(int number, siginfo_t *info, void *context) {
  sigjmp_buf *to = landing;
  (void)context;
  if (to && info->si_code > 0) { /* of this thread's own doing, not sent */
    landing = NULL;
    siglongjmp(*to, number);
  }
  for (int i = 0; i < SIGNALS; i++)
    if (signals[i] == number) sigaction(number, &before[i], NULL);
  if (info->si_code <= 0) raise(number); /* else what faulted runs again, and faults again */
}

static void drop_stack(void *at) {
  sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
  free(at);
}

static void make_key(void) {
  if (pthread_key_create(&stacks, drop_stack)) abort();
}

void trap_install(void) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER}, now;
  sigemptyset(&ours.sa_mask);
  pthread_once(&once, make_key);
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SIGNALS; i++) {
    if (sigaction(signals[i], NULL, &now) || now.sa_sigaction == on_fault) continue;
    before[i] = now;
    sigaction(signals[i], &ours, NULL);
  }
  pthread_mutex_unlock(&lock);
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

struct part {
  void (*start)(void *);
  void *closure;
  int fault; /* a signal that ended the part of a thread, or 0 */
};

static void run_part(void *data) {
  struct part *p = data;
  sigjmp_buf here, *const outer = landing;
  give_stack();
  int number = sigsetjmp(here, 0);
  if (!number) {
    landing = &here;
    p->start(p->closure);
  } else {
    __atomic_store_n(&p->fault, number, __ATOMIC_RELAXED);
  }
  landing = outer;
}

void trap_parallel(void (*start)(void *), void *closure, unsigned threads, unsigned flags) {
  if (!landing) {
    GOMP_parallel(start, closure, threads, flags);
    return;
  }
  struct part p = {start, closure, 0};
  GOMP_parallel(run_part, &p, threads, flags);
  if (p.fault) siglongjmp(*landing, p.fault);
}

bool trap_call(jit_entry entry, void **args, void *workspace, int32_t *status, ms_error *err) {
  give_stack();
  sigjmp_buf here, *const outer = landing;
  int number = sigsetjmp(here, 0);
  if (!number) {
    landing = &here;
    *status = entry(args, workspace);
  }
  landing = outer;
  return !number ||
         ms_fail(err, MS_KERNEL_FAULT, "the kernel was stopped by signal %d (%s)", number, strsignal(number));
}
