/* A library that programs are linked with, or that is preloaded: AMX's instructions run on a machine without AMX.
 *
 *   [LD_PRELOAD=libamx.so] [AMX_REFUSED=1] [AMX_COUNTS=FILE] PROGRAM…
 *
 * The CPU refuses them (SIGILL); they are computed on tiles that each thread has, and the thread goes on behind them.
 * What the manual says to fault, and what is done without permission, is said, and ends the process. Other illegal
 * instructions go to the program's own handler. Of the system's calls it has those that concern tiles.
 *
 * AMX_REFUSED  the system refuses permission
 * AMX_COUNTS   how often each was performed, by all threads and processes together: 64-bit numbers in this file, in the
 *              order of AMX_EACH_OPERATION; and a line of them on standard error at the program's end
 *
 * Where the machine has AMX it computes nothing, and counts nothing. */
#define _GNU_SOURCE
#include "unit.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- What is counted ---- */

static uint64_t own_counts[AMX_OPERATIONS], *counts = own_counts;

static void share_counts(const char *path) {
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof own_counts)) abort();
  void *at = mmap(NULL, sizeof own_counts, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) abort();
  counts = at;
  close(file);
}

__attribute__((destructor)) static void say_counts(void) {
  if (counts == own_counts || !getenv("AMX_COUNTS")) return;
  fprintf(stderr, "AMX:");
  for (int o = 0; o < AMX_OPERATIONS; o++)
    if (counts[o]) fprintf(stderr, " %s %llu", amx_names[o], (unsigned long long)counts[o]);
  fprintf(stderr, "\n");
}

/* ---- Permission ---- */

enum { ARCH_GET_XCOMP_SUPP = 0x1021, ARCH_GET_XCOMP_PERM, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA = 18 };

static bool is_real; /* this machine has tiles */
static bool granted;
static pid_t self; /* a child of vfork, which has its parent's memory, is another */

static long ask_system(long number, long a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static long end_call(long result) {
  if (result >= 0) return result;
  errno = (int)-result;
  return -1;
}

static long request_tiles(void) {
  if (getenv("AMX_REFUSED")) return -EPERM;
  if (self == getpid()) granted = true;
  return 0;
}

/* libc's name for it; declared there with arguments that vary, which are passed alike. */
long call_system(long number, long a, long b, long c, long d, long e, long f) __asm__("syscall");
long call_system(long number, long a, long b, long c, long d, long e, long f) {
  bool asks = number == SYS_arch_prctl && a == ARCH_REQ_XCOMP_PERM && b == XFEATURE_XTILEDATA;
  if (asks && (!is_real || getenv("AMX_REFUSED"))) return end_call(request_tiles());
  long result = ask_system(number, a, b, c, d, e, f);
  if (is_real || number != SYS_arch_prctl) return end_call(result);
  if (a == ARCH_GET_XCOMP_SUPP && !result) *(uint64_t *)b |= UINT64_C(1) << XFEATURE_XTILEDATA;
  return end_call(result);
}

static void in_child(void) { self = getpid(); }

/* ---- Signals ---- */

static struct sigaction theirs; /* what the program would have of illegal instructions */
static int (*real_sigaction)(int, const struct sigaction *, struct sigaction *);
static _Thread_local struct amx_unit unit __attribute__((tls_model("initial-exec")));

static void fail(const uint8_t *code, const struct amx_instruction *what, const char *why) {
  char text[400];
  int length = snprintf(text, sizeof text, "AMX: %s at %p (", amx_names[what->operation], (const void *)code);
  for (int i = 0; i < what->length; i++)
    length += snprintf(text + length, sizeof text - (size_t)length, i ? " %02x" : "%02x", code[i]);
  length += snprintf(text + length, sizeof text - (size_t)length, "), tiles %d %d %d: %s\n", what->tile, what->left,
                     what->right, why);
  for (int t = 0; t < AMX_TILES && unit.configured && length < 360; t++)
    length += snprintf(text + length, sizeof text - (size_t)length, "%dx%d ", unit.rows[t], unit.row_bytes[t]);
  text[length++] = '\n';
  if (write(STDERR_FILENO, text, (size_t)length) < 0) _exit(2);
  abort();
}

static uint64_t register_of(const ucontext_t *context, int number) {
  static const int places[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                               REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return number < 0 ? 0 : (uint64_t)context->uc_mcontext.gregs[places[number]];
}

/* The instruction at which the thread stands; false: it is none of AMX's. */
static bool perform(ucontext_t *context) {
  const uint8_t *code = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP];
  struct amx_instruction what;
  if (!amx_decode(code, &what)) return false;
  uint64_t at = register_of(context, what.base) + (uint64_t)(int64_t)what.displacement;
  uint64_t stride = register_of(context, what.index) << what.scale;
  if (what.behind) at += (uint64_t)(code + what.length);
  if (what.narrow) at = (uint32_t)at, stride = (uint64_t)(int32_t)stride;
  if (!granted) fail(code, &what, "the process has no permission");
  const char *why = amx_perform(&unit, &what, (uint8_t *)at, (int64_t)stride);
  if (why) fail(code, &what, why);
  __atomic_fetch_add(&counts[what.operation], 1, __ATOMIC_RELAXED);
  context->uc_mcontext.gregs[REG_RIP] += what.length;
  return true;
}

/* As if we were not there. */
static void pass_on(int number, siginfo_t *info, void *context) {
  if (theirs.sa_flags & SA_SIGINFO) {
    theirs.sa_sigaction(number, info, context);
  } else if (theirs.sa_handler != SIG_DFL && theirs.sa_handler != SIG_IGN) {
    theirs.sa_handler(number);
  } else {
    real_sigaction(SIGILL, &(struct sigaction){.sa_handler = SIG_DFL}, NULL); /* it runs again, and faults again */
    if (info->si_code <= 0) raise(number);
  }
}

static void on_illegal(int number, siginfo_t *info, void *context) {
  int kept = errno;
  bool performed = info->si_code > 0 && perform(context);
  while (performed && perform(context)) {} /* a signal takes longer than what those behind it do */
  errno = kept;
  if (!performed) pass_on(number, info, context);
}

int sigaction(int number, const struct sigaction *restrict new, struct sigaction *restrict old) {
  if (!real_sigaction)
    real_sigaction = (int (*)(int, const struct sigaction *, struct sigaction *))dlsym(RTLD_NEXT, "sigaction");
  if (number != SIGILL || is_real) return real_sigaction(number, new, old);
  struct sigaction before = theirs;
  if (new) theirs = *new;
  if (old) *old = before;
  return 0;
}

/* ---- Beginning ---- */

static bool has_tiles(void) {
  unsigned a, b, c, d, low, high;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1)) return false;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low >> 17 & 3) == 3;
}

__attribute__((constructor)) static void begin(void) {
  is_real = has_tiles(), self = getpid();
  if (is_real || !amx_is_possible()) return;
  if (getenv("AMX_COUNTS")) share_counts(getenv("AMX_COUNTS"));
  sigaction(SIGSEGV, NULL, NULL); /* finds the system's */
  struct sigaction ours = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  sigemptyset(&ours.sa_mask);
  if (real_sigaction(SIGILL, &ours, &theirs) || pthread_atfork(NULL, NULL, in_child)) abort();
}
