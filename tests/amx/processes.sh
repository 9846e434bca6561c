#!/bin/sh
# An exported kernel that multiplies AMX's tiles computes what it should in the process that loads it, in a child, in
# threads made later, several at once, and in a program that is started by it; and without where permission is refused.
# Where the machine has no AMX, a library that is preloaded computes its instructions; what they may not do ends the
# process with a message. usage: processes.sh MSCHED-AMX LIBAMX
set -eu
msched=$1 library=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "processes.sh: $*" >&2; exit 1; }
"$msched" doctor | grep -q '^AMX .*grants permission' || { echo "skipped: AMX can be computed here by nothing"; exit 77; }
# On one thread: a child of a process whose threads have run waits for them.
"$msched" tune ops:matmul --no-tune --target "native -num-cores=1" --db "$work/store.db" -- 64 64 256 dtype=int8 >/dev/null
"$msched" export best --force -o "$work/kernel.so" --db "$work/store.db" >/dev/null
"$msched" export best --force -o "$work/kernel.s" --db "$work/store.db" >/dev/null
grep -q tdpbssd "$work/kernel.s" || fail "the kernel multiplies no tiles"
cat >"$work/use.c" <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
enum { M = 64, N = 64, K = 256, THREADS = 3, ROUNDS = 20 };
static int (*kernel)(void **, void *);
static signed char a[M * K], b[K * N];
static int want[M * N];
struct call {
  int c[M * N], wrong;
  char workspace[1 << 20] __attribute__((aligned(64)));
};
static void *ask(void *data) {
  struct call *call = data;
  void *args[] = {a, b, call->c};
  for (int r = 0; r < ROUNDS && !call->wrong; r++) {
    memset(call->c, 7, sizeof call->c);
    call->wrong = kernel(args, call->workspace);
    if (!call->wrong && memcmp(call->c, want, sizeof want) != 0) call->wrong = 100;
  }
  return NULL;
}
static int child(void (*run)(void)) {
  int status = 0;
  pid_t pid = fork();
  if (!pid) run();
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
static struct call calls[THREADS];
static void run(void) { ask(&calls[0]), _exit(calls[0].wrong); }
static char **words;
static void start(void) { execl(words[0], words[0], words[1], words[2], "started", NULL), _exit(98); }
int main(int argc, char **argv) {
  void *library = argc >= 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library || !(kernel = (int (*)(void **, void *))dlsym(library, argv[2]))) return puts(dlerror()), 1;
  words = argv;
  for (int i = 0; i < M * K; i++) a[i] = (signed char)(i * 7919 % 256);
  for (int i = 0; i < K * N; i++) b[i] = (signed char)(i * 104729 % 251);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++)
      for (int k = 0; k < K; k++) want[i * N + j] += a[i * K + k] * b[k * N + j];
  int before = child(run), wrong;
  ask(&calls[0]);
  wrong = calls[0].wrong;
  if (argc > 3) return wrong;
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++) calls[t].wrong = 0, pthread_create(&threads[t], NULL, ask, &calls[t]);
  for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
  int after = child(run), other = child(start);
  printf("child %d, here %d, threads %d %d %d, child %d, program %d\n", before, wrong, calls[0].wrong, calls[1].wrong,
         calls[2].wrong, after, other);
  return before || wrong || calls[0].wrong || calls[1].wrong || calls[2].wrong || after || other;
}
C
"${CC:-cc}" -O1 -o "$work/use" "$work/use.c" -ldl -lpthread
LD_PRELOAD=$library "$work/use" "$work/kernel.so" matmul_64x64x256_int8 >"$work/said" 2>&1 || fail "$(cat "$work/said")"
AMX_REFUSED=1 LD_PRELOAD=$library "$work/use" "$work/kernel.so" matmul_64x64x256_int8 >"$work/said" 2>&1 || fail "refused: $(cat "$work/said")"
AMX_REFUSED=1 "$msched" doctor | grep -q '^AMX .*refuses permission' || fail "native has them where they are refused"

# What is not allowed is found: tiles without a configuration, and without permission.
grep -q amx_tile /proc/cpuinfo && exit 0
cat >"$work/fault.c" <<'C'
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static const char none[64];
int main(int argc, char **argv) {
  if (argc > 1) syscall(SYS_arch_prctl, 0x1023, 18);
  __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00" : : "a"(none)); /* ldtilecfg (%rax) */
  __asm__ volatile(".byte 0xc4, 0xe2, 0x7b, 0x49, 0xd8");               /* tilezero %tmm3 */
  return 0;
}
C
"${CC:-cc}" -O1 -o "$work/fault" "$work/fault.c"
LD_PRELOAD=$library "$work/fault" 2>"$work/said" && fail "tiles without permission"
grep -q 'ldtilecfg .*no permission' "$work/said" || fail "without permission: $(cat "$work/said")"
LD_PRELOAD=$library "$work/fault" asked 2>"$work/said" && fail "tiles that are not configured"
grep -q 'tilezero .*(c4 e2 7b 49 d8), tiles 3 .*no tiles are configured' "$work/said" || fail "not configured: $(cat "$work/said")"
echo "processes.sh: ok"
