#!/bin/sh
# --fixed-order from end to end: the best of a product, as a library and as C, computes bit for bit what plain loops
# compute on full-mantissa data; without tuning too; the store says which records keep the order.
# usage: fixed_order.sh MSCHED ROOT
set -eu
msched=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "fixed_order.sh: $*" >&2; exit 1; }

cat >main.c <<'C'
#include "f.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { M = 24, N = 40, K = 61 };
static float a[M * K], b[K * N], c[M * N], wanted[M * N];
static float number(void) {
  static uint32_t x = 1;
  x = x * 1664525u + 1013904223u;
  return (float)((int32_t)x) * 0x1p-31f;
}
int main(void) {
  void *workspace = f_WORKSPACE ? aligned_alloc(64, (f_WORKSPACE + 63) / 64 * 64) : NULL;
  for (int i = 0; i < M * K; i++) a[i] = number();
  for (int i = 0; i < K * N; i++) b[i] = number();
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      volatile float sum = 0, product;
      for (int k = 0; k < K; k++) {
        product = a[i * K + k] * b[k * N + j];
        sum = sum + product;
      }
      wanted[i * N + j] = sum;
    }
  if (f_run(a, b, c, workspace)) return 1;
  free(workspace);
  if (!memcmp(c, wanted, sizeof c)) return 0;
  puts("other bits");
  return 1;
}
C

# Exports a record under a name, and runs it beside the loops.
same_bits() { # record, store, what
  "$msched" export "$1" --name f -o f.h --db "$2" >/dev/null
  "$msched" export "$1" --name f -o libf.so --db "$2" >/dev/null
  "$msched" export "$1" --name f -o f.c --db "$2" >/dev/null
  cc -O2 -ffp-contract=off -o by_library main.c libf.so -Wl,-rpath,"$work"
  ./by_library || fail "$3: the library"
  cc -O3 -march=native -fopenmp -o by_c main.c f.c -lm
  ./by_c || fail "$3: the C source"
}

"$msched" tune ops:matmul --fixed-order --trials 8 --db ordered.db -- 24 40 61 >/dev/null
"$msched" top -k 1 --db ordered.db | grep -q "fixed order" || fail "top does not say it: $("$msched" top -k 1 --db ordered.db)"
"$msched" show best --db ordered.db --trace | grep -q "msched.fixed_order" || fail "the trace has no note"
same_bits best ordered.db tuned
"$msched" tune ops:matmul --fixed-order --no-tune --db proposal.db -- 24 40 61 >/dev/null
same_bits best proposal.db "not tuned"
# Functions too: a softmax, and logarithms, as a library, and as C that the compiler makes vectors of.
cat >softmax.c <<'C'
#include "f.h"
#include <stdio.h>
#include <stdlib.h>
enum { N = 8 * 50 };
static float a[N], b[N];
int main(void) {
  void *workspace = f_WORKSPACE ? aligned_alloc(64, (f_WORKSPACE + 63) / 64 * 64) : NULL;
  for (int i = 0; i < N; i++) a[i] = (float)(i * 37 % 211 - 105) * 0.37f;
  if (f_run(a, b, workspace)) return 1;
  free(workspace);
  return fwrite(b, sizeof *b, N, stdout) != N;
}
C
cat >logs.py <<'PY'
@T.prim_func
def logs(A: T.Buffer((8, 50), "float32"), B: T.Buffer((8, 50), "float32")):
    for i, j in T.grid(8, 50):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.log(A[vi, vj]) - T.log2(A[vi, vj] + T.float32(0.25))
PY
as_library_and_c() { # store
  for what in f.h libf.so f.c; do "$msched" export best --name f -o "$what" --db "$1" >/dev/null; done
  cc -O2 -o by_library softmax.c libf.so -Wl,-rpath,"$work"
  cc -O3 -march=native -fopenmp -o by_c softmax.c f.c -lm
  ./by_library >library.out
  ./by_c >c.out
  cmp library.out c.out || fail "$1: the C source differs from the library"
}
"$msched" tune ops:softmax --fixed-order --trials 6 --db softmax.db -- 8x50 >/dev/null
as_library_and_c softmax.db
"$msched" tune logs.py --fixed-order --no-tune --db logs.db >/dev/null
as_library_and_c logs.db

"$msched" replay best --db ordered.db --json | grep -q '"interpreted":0,' || fail "replay differs"
echo "fixed order: ok"
