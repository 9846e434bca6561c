#!/bin/sh
# A kernel that multiplies AMX's tiles where the system refuses them, as the library that is preloaded says for it: its
# entry returns 2 and has touched nothing, in the process, in a child, in a thread made later, and when it is asked
# again. A record that is checked there, on a machine that has them, stays as it was. usage: no_tiles.sh MSCHED
set -eu
msched=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "no_tiles.sh: $*" >&2; exit 1; }
rapids="llvm -mcpu=sapphirerapids -num-cores=2"
"$msched" tune ops:matmul --no-tune --target "$rapids" --db "$work/store.db" -- 64 64 256 dtype=int8 >/dev/null
"$msched" export best --force -o "$work/kernel.so" --db "$work/store.db" >/dev/null
"$msched" export best --force -o "$work/kernel.s" --db "$work/store.db" >/dev/null
grep -q tdpbssd "$work/kernel.s" || fail "the kernel multiplies no tiles"
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
cat >"$work/use.c" <<'C'
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int (*kernel)(void **, void *);
static char a[64 * 256], b[256 * 64], workspace[1 << 20] __attribute__((aligned(64)));
static int c[64 * 64];
static int ask(void) {
  void *args[] = {a, b, c};
  memset(c, 7, sizeof c);
  int status = kernel(args, workspace);
  for (unsigned i = 0; i < sizeof c; i++) if (((char *)c)[i] != 7) return -1;
  fflush(stdout);
  return status;
}
static void *later(void *result) { return *(int *)result = ask(), NULL; }
int main(int argc, char **argv) {
  void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library || !(kernel = (int (*)(void **, void *))dlsym(library, argv[2]))) return puts(dlerror()), 1;
  int first = ask(), again = ask(), own = 0, child = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, later, &own), pthread_join(thread, NULL);
  pid_t pid = fork();
  if (!pid) _exit(ask());
  waitpid(pid, &child, 0);
  return first == 2 && again == 2 && own == 2 && WIFEXITED(child) && WEXITSTATUS(child) == 2 ? 0 : 2;
}
C
"${CC:-cc}" -shared -fPIC -O1 -o "$work/refuse.so" "$work/refuse.c"
"${CC:-cc}" -O1 -o "$work/use" "$work/use.c" -ldl -lpthread
LD_PRELOAD=$work/refuse.so "$work/use" "$work/kernel.so" matmul_64x64x256_int8 >"$work/said" || fail "another status: $? $(cat "$work/said")"
[ "$(grep -c refused "$work/said")" = 4 ] || fail "it was asked $(grep -c refused "$work/said") times"

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
