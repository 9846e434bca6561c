#!/bin/sh
# A function called as one of C's library broke every program that it was linked with: its expf, read or free was the
# kernel. Such a function has another name in what is exported, which is said; nothing but what headers declare is
# visible of a shared library.
. "$(dirname -- "$0")/../expect.sh"
for tool in cc nm; do command -v $tool >/dev/null || { echo "expf: no $tool"; exit 77; }; done

# Visible in a shared library, but for what linkers add.
expect_symbols() { # library, symbols…
  library=$1
  shift
  nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | grep -vxE '_init|_fini|_edata|_end|__bss_start' |
    sort | tr '\n' ' ' >symbols
  [ "$(cat symbols)" = "$(printf '%s\n' "$@" | sort | tr '\n' ' ')" ] || fail "$library has the symbols $(cat symbols), not $*"
}

# Global in an object: the function alone. Hidden helpers are local.
expect_object() { # object, symbol
  nm --defined-only --extern-only "$1" | awk '{print $3}' >symbols
  [ "$(cat symbols)" = "$2" ] || fail "$1 has the symbols $(tr '\n' ' ' <symbols), not $2"
}

# As reported: a program that calls expf, with the kernel linked before libm.
expect_status 0 "$program" tune "$here/expf.lua" --trials 2 --db e.db
expect_status 0 "$program" export best -o k.so --db e.db
expect_output '^k\.so: the function is called k there, since `expf` is a name of C.s or POSIX.s library; --name'
expect_symbols k.so k
expect_status 0 "$program" export best -o k.h --db e.db
cat >use.c <<'C'
#include "k.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) {
  (void)argv;
  float a[8], b[8], at = (float)argc;
  void *workspace = k_WORKSPACE ? aligned_alloc(64, (k_WORKSPACE + 63) / 64 * 64) : NULL;
  for (int i = 0; i < 8; i++) a[i] = (float)i / 4;
  if (k_run(a, b, workspace)) return 2;
  for (int i = 0; i < 8; i++)
    if (fabs(b[i] - 2 * exp(a[i])) > 1e-4 * b[i]) return 3;
  free(workspace);
  return fabs(expf(at) - exp(at)) > 1e-5 ? 4 : printf("right\n") < 0;
}
C
expect_status 0 cc -O0 -fno-builtin use.c -o use ./k.so -lm
expect_status 0 ./use
expect_output '^right$'

# A name is asked for: it is had, or refused.
expect_status 0 "$program" export best -o k.o --name soft_exp --db e.db
expect_object k.o soft_exp
for name in expf free main double __x 1x a-b GOMP_parallel; do
  expect_status 1 "$program" export best -o no.o --name "$name" --db e.db
  expect_output 'an exported function cannot be called'
  [ ! -e no.o ] || fail "$name: a file is there"
done

# The siblings, in every form, with parallel loops, the file called otherwise and alike. What they compute calls the
# name that is theirs: it is built and right before it is exported.
names="expf read main environ omp_get_num_threads GOMP_parallel double"
[ "${MSCHED_REPORTED:-}" != all ] ||
  names="$names free malloc exp y0 index pow __libc_start_main printf errno stdin memcpy cosf class _exit pthread_create cuLaunchKernel int32_t qsort_r"
cat >forms.lua <<'LUA'
local ms, te = require "msched", require("msched").te
for name in arg[1]:gmatch "%S+" do
  local A = te.placeholder({1024, 64}, "float32", "A")
  local B = te.compute({1024, 64}, function(i, j) return te.exp(A[{i, j}]) end, "B")
  local sch = ms.schedule(te.func(name, {A, B}))
  local rows = sch:get_loops(sch:get_sblock "B")
  sch:parallel(rows)
  ms.build(sch:func(), {target = "native -num-cores=2", fast_math = false}):check()
  local kernel = ms.build(sch:func(), {target = "native -num-cores=2"})
  for i, base in ipairs {"file", name} do
    for _, form in ipairs {"o", "so", "c", "h", "ll", "s"} do
      local symbol, owner = kernel:export(arg[2] .. "/" .. i .. "/" .. base .. "." .. form)
      assert(symbol ~= name and owner, name)
      assert(i == 2 or symbol == "file", symbol)
      print(i, base, form, symbol)
    end
  end
end
LUA
for name in $names; do
  rm -rf 1 2
  mkdir 1 2
  expect_status 0 "$program" forms.lua "$name" "$scratch"
  cp output exported
  while read -r folder base form symbol; do
    file=$folder/$base.$form
    case $form in
    o) expect_object "$file" "$symbol" ;;
    so) expect_symbols "$file" "$symbol" ;;
    c | h | ll | s) grep -q "$symbol" "$file" || fail "$file does not have $symbol" ;;
    esac
    case $form in c | s)
      cp "$file" again.$form
      expect_status 0 cc -fopenmp -c again.$form -o again.o
      expect_object again.o "$symbol"
      ;;
    esac
  done <exported
done
