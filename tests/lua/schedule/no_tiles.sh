#!/bin/sh
# A kernel that multiplies AMX's tiles where the system refuses them, as the library that is preloaded says for it: its
# entry computes the same without them, in the process, in a child, in a thread made later, and when it is called again.
# A record that is checked there, on a machine that has them, stays as it was. usage: no_tiles.sh MSCHED
set -eu
msched=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "no_tiles.sh: $*" >&2; exit 1; }
cat >"$work/refuse.c" <<'C'
#include <errno.h>
#include <stdio.h>
long syscall(long number, long a, long b, long c, long d, long e, long f);
long syscall(long number, long a, long b, long c, long d, long e, long f) {
  if (number == 158 && a == 0x1023 && b == 18) return puts("refused"), errno = EPERM, -1;
  register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result < 0 ? (errno = (int)-result, -1) : result;
}
C
# Whole numbers of one digit: sums of floats are exact too.
cat >"$work/use.c" <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kernel.h"
enum { M = 64, N = 64, K = 256 };
static int (*kernel)(void **, void *);
static int8_t a[M * K], b[K * N];
static uint16_t a_short[M * K], b_short[K * N];
static char workspace[WORKSPACE + 64] __attribute__((aligned(64)));
static int short_floats;
static uint16_t bfloat(int whole) {
  float real = (float)whole;
  uint32_t bits;
  memcpy(&bits, &real, 4);
  return (uint16_t)(bits >> 16);
}
static int ask(void) {
  static int32_t sums[M * N];
  void *args[] = {short_floats ? (void *)a_short : a, short_floats ? (void *)b_short : b, sums};
  memset(sums, 7, sizeof sums);
  memset(workspace + WORKSPACE, 9, 64);
  int status = kernel(args, workspace);
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      int want = 0;
      float real;
      for (int k = 0; k < K; k++) want += a[i * K + k] * b[k * N + j];
      memcpy(&real, &sums[i * N + j], 4);
      if (short_floats ? real != (float)want : sums[i * N + j] != want) return 3;
    }
  for (int i = 0; i < 64; i++)
    if (workspace[WORKSPACE + i] != 9) return 4;
  fflush(stdout);
  return status;
}
static void *later(void *result) { return *(int *)result = ask(), NULL; }
int main(int argc, char **argv) {
  void *library = argc == 4 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library || !(kernel = (int (*)(void **, void *))dlsym(library, argv[2]))) return puts(dlerror()), 1;
  short_floats = !strcmp(argv[3], "bfloat16");
  for (int i = 0; i < M * K; i++) a_short[i] = bfloat(a[i] = (int8_t)(i * 7 % 19 - 9));
  for (int i = 0; i < K * N; i++) b_short[i] = bfloat(b[i] = (int8_t)(i * 5 % 17 - 8));
  int own = 1, child = 1;
  pid_t pid = fork(); /* first: a child of a process whose threads have run waits for them */
  if (!pid) _exit(ask());
  waitpid(pid, &child, 0);
  int first = ask(), again = ask();
  pthread_t thread;
  pthread_create(&thread, NULL, later, &own), pthread_join(thread, NULL);
  return first || again || own || child ? 2 : 0;
}
C
"${CC:-cc}" -shared -fPIC -O1 -o "$work/refuse.so" "$work/refuse.c"
lake="llvm -mcpu=x86-64-v3 -mattr=+amx-int8,+amx-bf16 -num-cores=2"
for type in int8 bfloat16; do
  name=matmul_64x64x256_$type sums=
  [ $type = int8 ] || name=${name}_accumulatefloat32 sums=accumulate=float32
  "$msched" tune ops:matmul --no-tune --target "$lake" --db "$work/store.db" -- 64 64 256 dtype=$type $sums >/dev/null
  for form in so s h; do "$msched" export $name --force -o "$work/kernel.$form" --db "$work/store.db" >/dev/null; done
  grep -q 'tdpb[sf]' "$work/kernel.s" || fail "the kernel of $type multiplies no tiles"
  grep -q avx2 /proc/cpuinfo || continue
  "${CC:-cc}" -O1 -DWORKSPACE=${name}_WORKSPACE -I "$work" -o "$work/use" "$work/use.c" -ldl -lpthread
  LD_PRELOAD=$work/refuse.so "$work/use" "$work/kernel.so" $name $type >"$work/said" || fail "$type: status $?: $(cat "$work/said")"
  [ "$(grep -c refused "$work/said")" = 4 ] || fail "$type: it was asked $(grep -c refused "$work/said") times"
done

# Where the machine has them, `native` does not name them in a process that is refused them.
late="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" # a sanitized program has its library behind this one
if "$msched" doctor | grep -q '^AMX .*grants permission'; then
  ASAN_OPTIONS=$late LD_PRELOAD=$work/refuse.so "$msched" doctor >"$work/said" || fail "doctor: $?"
  grep -q '^AMX .*refuses permission' "$work/said" || fail "doctor says: $(grep '^AMX' "$work/said")"
  grep '^target' "$work/said" | grep -qE 'amx|sapphirerapids|graniterapids' && fail "$(grep '^target' "$work/said")"
fi

# Nothing is known of the result: the record is not marked failed.
if "$msched" replay best --db "$work/store.db" >/dev/null 2>&1; then # this machine runs it
  ASAN_OPTIONS=$late LD_PRELOAD=$work/refuse.so "$msched" replay best --db "$work/store.db" >"$work/said" 2>&1 &&
    fail "it runs without tiles"
  grep -q ARCH_REQ_XCOMP_PERM "$work/said" || fail "replay says: $(cat "$work/said")"
  "$msched" replay best --db "$work/store.db" >"$work/said" 2>&1 || fail "the record is lost: $(cat "$work/said")"
fi
