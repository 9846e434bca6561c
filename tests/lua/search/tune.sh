#!/bin/sh
# Tuning end to end on a small product: records kept, found again, replayed, exported, simulated alike; bad input
# refused.
# usage: tune.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/store.db
fail() { echo "tune.sh: $*" >&2; exit 1; }

"$msched" tune "$root/lua/examples/gemm.lua" --trials 8 --db "$db" --json -- 64 64 64 >"$work/tune.json"
grep -q '"event":"end"' "$work/tune.json" || fail "no end"
"$msched" db check --db "$db" | grep -qx clean || fail "db check"
id=$("$msched" top --db "$db" --json | head -n 1 | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/')
[ -n "$id" ] || fail "no best"
# every record that was printed is there
sed -n 's/.*"event":"trial".*"id":"\([0-9a-f]*\)".*/\1/p' "$work/tune.json" | while read -r each; do
  "$msched" show "$each" --db "$db" --json >/dev/null || fail "record $each is lost"
done
"$msched" replay "$id" --db "$db" --json | grep -q '"difference":0' || fail "replay differs"
"$msched" replay "$id" --db "$db" --json | grep -q '"interpreted":0,' || fail "replay differs from the interpreter"
"$msched" show "$id" --db "$db" --diff >"$work/diff"
grep -q "+ .*for .* in T.grid" "$work/diff" && grep -q "^    - " "$work/diff" || fail "no difference is shown"
loops=$(sed -n 's/^ *\([0-9]*\)  v\.l.*get_loops.*/\1/p' "$work/diff" | head -n 1)
"$msched" show "$id" --db "$db" --explain "$loops" | grep -q "used by: [0-9]" || fail "the loops of the block are used"
# candidates are compared with a function that computes of constants alone, as sums of weights are, in its run
"$msched" tune ops:quantized_conv2d --trials 1 --db "$work/constant.db" -- 1 28 28 64 64 1 x_zero_point=3 constant=true \
  >/dev/null || fail "a function that computes of constants alone"
# without tuning: nothing is measured, and what is stored can be shown and exported
"$msched" tune "$root/lua/examples/gemm.lua" --no-tune --db "$work/untuned.db" -- 64 64 64 >"$work/untuned" || fail "--no-tune"
grep -q "nothing was measured" "$work/untuned" || fail "--no-tune says: $(cat "$work/untuned")"
"$msched" top --db "$work/untuned.db" | grep -q "not measured" || fail "top does not say that it is not measured"
proposed=$("$msched" top --db "$work/untuned.db" --json | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/')
"$msched" show "$proposed" --db "$work/untuned.db" | grep -q "^record .*: unmeasured, on " || fail "show does not say that it is not measured"
"$msched" export "$proposed" -o "$work/proposed.so" --db "$work/untuned.db" || fail "a proposal is not exported"
"$msched" tune "$root/lua/examples/gemm.lua" --no-tune --trials 4 -- 8 8 8 2>"$work/err" && fail "--no-tune with --trials"
grep -q "does not go with --trials" "$work/err" || fail "--no-tune with --trials: $(cat "$work/err")"
"$msched" show "$id" --db "$db" --explain 1000 && fail "there is no instruction 1000"
"$msched" export "$id" -o "$work/gemm.so" --db "$db"
"$msched" export "$id" -o "$work/gemm.h" --db "$db"
cat >"$work/use.c" <<'C'
#include "gemm.h"
#include <stdio.h>
#include <stdlib.h>
static float a[64 * 64], b[64 * 64], c[64 * 64];
int main(void) {
  void *workspace = gemm_WORKSPACE ? aligned_alloc(64, (gemm_WORKSPACE + 63) / 64 * 64) : NULL;
  for (int i = 0; i < 64 * 64; i++) a[i] = (float)(i % 7 - 3), b[i] = (float)(i % 5 - 2);
  if (gemm_run(a, b, c, workspace)) return 1;
  for (int i = 0; i < 64; i++)
    for (int j = 0; j < 64; j++) {
      float sum = 0;
      for (int k = 0; k < 64; k++) sum += a[i * 64 + k] * b[k * 64 + j];
      if (sum != c[i * 64 + j]) return printf("%d %d: %g, not %g\n", i, j, (double)c[i * 64 + j], (double)sum), 1;
    }
  free(workspace);
  return 0;
}
C
cc -O1 -o "$work/use" "$work/use.c" "$work/gemm.so" -Wl,-rpath,"$work"
"$work/use" || fail "the exported kernel is wrong"
ldd "$work/gemm.so" | grep -vE 'statically linked|linux-vdso|libgomp|libm\.|libc\.|ld-linux' && fail "the library needs more than libc, libm and libgomp"
# simulated twice with 1 job and twice with 2: the same trials in the same order, some of them from the store (seed 1,
# as above), and the store as it was
"$msched" db export "$work/before" --db "$db"
for seed in 1 3; do
  for run in first second; do
    for jobs in 1 2; do
      "$msched" tune "$root/lua/examples/gemm.lua" --trials 96 --seed $seed --jobs $jobs --simulate --db "$db" --json -- 64 64 64 >"$work/out" || true
      sed -n '/"event":"trial"/s/"elapsed":[^,]*,//p' "$work/out" >"$work/simulated.$seed.$run.$jobs"
      [ -s "$work/simulated.$seed.$run.$jobs" ] || fail "nothing was simulated"
      cmp "$work/simulated.$seed.first.1" "$work/simulated.$seed.$run.$jobs" || fail "seed $seed, $run run, $jobs jobs: other trials"
    done
  done
done
[ "$(wc -l <"$work/simulated.3.first.1")" -ge 96 ] || fail "too few trials were simulated"
grep -q '"status":"measured"' "$work/simulated.1.first.1" || fail "none was answered from the store"
cmp -s "$work/simulated.1.first.1" "$work/simulated.3.first.1" && fail "the seed does not show in the trials"
"$msched" db export "$work/after" --db "$db"
cmp "$work/before" "$work/after" || fail "simulating changed the store"
# a user's own rule
cat >"$work/rule.lua" <<'L'
local ms = require "msched"
ms.rule {name = "note", apply = function(sch, block)
  if sch:block_name(block) == "C" then sch:annotate(block, "mine", 1) end
  return {sch}
end}
L
"$msched" space "$root/lua/examples/gemm.lua" --rules "$work/rule.lua" -- 16 16 16 | grep -q '"mine"' || fail "the rule did nothing"
# a policy from a file
printf 'local policy = require("msched").policy {name = "mine", run = function(env) print("mine runs") require("msched").load("search.policy.replay_trace").run(env) end}\nreturn policy' >"$work/policy.lua"
"$msched" tune "$root/lua/examples/gemm.lua" --policy "$work/policy.lua" --trials 1 --db "$work/policy.db" -- 16 16 16 >"$work/out" 2>"$work/err"
grep -q "mine runs" "$work/err" || fail "the policy of a file did not run"
# refusals: status, and a message
refuses() { # status, words of the message, command…
  status=$1 words=$2
  shift 2
  set +e
  "$@" >"$work/out" 2>"$work/err"
  got=$?
  set -e
  [ "$got" = "$status" ] || fail "status $got for $status: $*"
  grep -q "$words" "$work/err" || { cat "$work/err" >&2; fail "no \`$words\` in the message of: $*"; }
}
echo 'return {' >"$work/syntax.lua"
echo 'error "oh"' >"$work/raise.lua"
echo 'return 7' >"$work/none.lua"
printf 'while true do end' >"$work/loop.lua"
refuses 1 'expected' "$msched" tune "$work/syntax.lua" --db "$db"
refuses 1 'returns no policy' "$msched" tune "$root/lua/examples/gemm.lua" --policy "$work/none.lua" --db "$db"
refuses 1 'syntax.lua:' "$msched" tune "$root/lua/examples/gemm.lua" --policy "$work/syntax.lua" --db "$db"
refuses 1 'oh' "$msched" tune "$work/raise.lua" --db "$db"
refuses 1 'returns no function' "$msched" tune "$work/none.lua" --db "$db"
refuses 2 'unknown option' "$msched" tune "$root/lua/examples/gemm.lua" --nonsense
refuses 1 'not known' "$msched" tune "$root/lua/examples/gemm.lua" --target toaster --db "$db"
refuses 1 'no record' "$msched" show 00000000 --db "$db"
refuses 1 'no store' "$msched" top --db "$work/none.db"
echo 'SQLite format 3 and so on' >"$work/other.db"
refuses 1 'no store of msched' "$msched" tune "$root/lua/examples/gemm.lua" --db "$work/other.db"
refuses 1 'suffix' "$msched" export "$id" -o "$work/gemm.exe" --db "$db"
"$msched" db check --db "$db" | grep -qx clean || fail "db check after refusals"
echo "tune: ok"
