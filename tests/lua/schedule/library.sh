#!/bin/sh
# All pinned kernels of a store as one library, used from C by its header and its table.  usage: library.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$root/tests/support/asks.sh"
db=$work/store.db
"$msched" tune ops:matmul --no-tune --db "$db" -- 16 8 4 >/dev/null
"$msched" tune ops:relu --no-tune --db "$db" -- 32 >/dev/null
"$msched" tune "$root/tests/support/data/add.py" --no-tune --db "$db" >/dev/null
refused 1 "no record of .* is pinned; .msched db pin ID. does" export --pinned -o "$work/kernels.so" --db "$db"
for id in $("$msched" top -k 1 --json --db "$db" | sed 's/.*"id":"\([0-9a-f]*\)".*/\1/'); do "$msched" db pin "$id" --db "$db" >/dev/null; done
refused 2 "FILE ends with .so or .a" export --pinned -o "$work/kernels.o" --db "$db"
refused 2 "not an ID" export "$id" --pinned -o "$work/kernels.so" --db "$db"
refused 1 "is pinned for x86-64-v2" export --pinned --target x86-64-v2 -o "$work/kernels.so" --db "$db"

cat >"$work/use.c" <<'C'
#include "kernels.h"
#include <stdio.h>
#include <string.h>
int main(void) {
  int count = 0;
  for (const struct kernels_kernel *k = kernels_kernels; k->name; k++) printf("%s %zu %u\n", k->name, strlen(k->record), k->workspace), count++;
  static float a[16 * 4], b[4 * 8], c[16 * 8];
  for (int i = 0; i < 64; i++) a[i] = (float)(i % 5);
  for (int i = 0; i < 32; i++) b[i] = (float)(i % 3);
  void *args[] = {a, b, c};
  static char workspace[1 << 16] __attribute__((aligned(64)));
  for (const struct kernels_kernel *k = kernels_kernels; k->name; k++)
    if (!strcmp(k->name, "matmul_16x8x4") && (k->workspace > sizeof workspace || k->run(args, workspace) != 0)) return 1;
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 8; j++) {
      float sum = 0;
      for (int k = 0; k < 4; k++) sum += a[i * 4 + k] * b[k * 8 + j];
      if (sum != c[i * 8 + j]) return 2;
    }
  return count == 3 ? 0 : 3;
}
C
for form in so a; do
  "$msched" export --pinned -o "$work/lib kernels.$form" --db "$db" | grep -q "lib kernels.h: 3 kernels$" || fail "it says something else"
  rm -f "$work/lib kernels.h"
  "$msched" export --pinned --force -o "$work/libkernels.$form" --db "$db" >/dev/null
  mv "$work/libkernels.h" "$work/kernels.h"
  "${CC:-cc}" -Wall -Werror -O1 -o "$work/use" "$work/use.c" "$work/libkernels.$form" -lgomp -lm
  "$work/use" >"$work/table" || fail "$form: the kernels are wrong: $?"
  grep -q "^relu_32 32 0$" "$work/table" || fail "$form: the table is another: $(cat "$work/table")"
done

# What is written on the way does not outlive the export, whatever ends it: here a signal while a compiler is slow.
mkdir "$work/tmp" "$work/o"
cat >"$work/slow_cc" <<'SH'
#!/bin/sh
sleep 1000 &
echo $! >"$0.sleeps"
wait
SH
chmod +x "$work/slow_cc"
what_is_left() { ls -A "$work/tmp" "$work/o" | grep "^msched-\|[.]o$\|[.]part$" || true; }
stopped_by() { # SIGNAL OUTPUT WORDS…
  signal=$1 output=$2
  shift 2
  rm -f "$work/slow_cc.sleeps"
  TMPDIR=$work/tmp CC=$work/slow_cc "$msched" export "$@" -o "$output" --db "$db" >"$work/out" 2>&1 &
  pid=$! tries=0
  until [ -s "$work/slow_cc.sleeps" ] || [ $tries -gt 600 ]; do tries=$((tries + 1)) && sleep 0.05; done
  [ -n "$(what_is_left)" ] || fail "nothing was there to be removed: $*: $(cat "$work/out")"
  kill -"$signal" $pid
  ! wait $pid || fail "a signal did not end it"
  kill "$(cat "$work/slow_cc.sleeps")" 2>/dev/null || true
  [ -z "$(what_is_left)" ] || fail "SIG$signal leaves $(what_is_left)"
}
stopped_by TERM "$work/o/all.so" --pinned
stopped_by TERM "$work/o/one.so" relu_32 --name one
stopped_by PIPE "$work/o/one.so" relu_32 --name one
stopped_by USR1 "$work/o/one.so" relu_32 --name one

# Whoever starts it may ignore SIGCHLD; CC may be a command with options; a name of an option, or of a file of them, is
# one of a file.
cd "$work/o"
env --ignore-signal=CHLD CC="${CC:-cc} -O0" "$msched" export relu_32 --name one -o @one.so --db "$db" >/dev/null ||
  fail "a library is not linked"
[ -s @one.so ] || fail "no library is written"
env --ignore-signal=CHLD CC="${CC:-cc} -O0" "$msched" export --pinned -o "$work/o/all.so" --db "$db" >/dev/null ||
  fail "libraries are not linked"
without() { # COMPILER WHAT
  (export CC="$1" && refused 1 "$2" export relu_32 --name one -o two.so --db "$db")
}
without "missing -x" "there is no linker .missing -x.; install a C compiler"
without false "the linker .false. failed"
cd "$work"

# Two of a name: one must be chosen.
"$msched" tune ops:relu --no-tune --target x86-64-v2 --db "$db" -- 32 >/dev/null
for id in $("$msched" top --operator relu --json --db "$db" | sed 's/.*"id":"\([0-9a-f]*\)".*/\1/'); do "$msched" db pin "$id" --db "$db" >/dev/null; done
refused 1 "two pinned kernels are called relu_32" export --pinned -o "$work/kernels.so" --db "$db"
[ ! -e "$work/kernels.so" ] || fail "a library is written all the same"
