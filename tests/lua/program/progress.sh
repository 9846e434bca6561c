#!/bin/sh
# What tuning says: on a terminal, on a pipe, when it ends early, when nothing succeeds, and of what cannot be tuned.
# usage: progress.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gemm=$root/lua/examples/gemm.lua
fail() { echo "progress.sh: $*" >&2; exit 1; }

"$msched" "$root/tests/lua/program/progress.lua" || fail "progress.lua"

# A terminal's table is cut to its width: no line wraps, each drawing takes the one before away; then the few best.
if command -v script >/dev/null; then
  script -qec "stty cols 50 && LC_ALL=C '$msched' tune '$gemm' --trials 24 --target 'native -num-cores=1' --db '$work/tty.db' -- 32 32 32" /dev/null >"$work/tty" </dev/null
  esc=$(printf '\033')
  tr -d '\r' <"$work/tty" | sed "s/^$esc\[[0-9]*A$esc\[J//" >"$work/lines"
  [ "$(grep -c "^task  trials" "$work/lines")" -gt 1 ] || fail "no table, or it is not drawn again: $(cat "$work/tty")"
  grep -q "$esc\[5A$esc\[J" "$work/tty" || fail "what was drawn stays: $(cat "$work/tty")"
  grep -E "^(task|gemm|best so far|failed|[0-9]+ s, )" "$work/lines" | grep -v "^gemm: \|^gemm on" | while read -r line; do
    [ "$(printf %s "$line" | LC_ALL=C.UTF-8 wc -m)" -le 50 ] || fail "longer than the terminal: $line"
  done
  grep -q "^  1  [0-9a-f]*  .*100 %  built in [0-9]* ms, run in [0-9]* ms$" "$work/lines" || fail "no best: $(cat "$work/tty")"
  ! grep -q "$esc\[[0-9;]*m" "$work/tty" || fail "colours: $(cat "$work/tty")"
fi

# What to type next can be typed, a store with a space in its name included.
mkdir "$work/a store"
"$msched" tune "$gemm" --trials 24 --target 'native -num-cores=1' --db "$work/a store/g.db" -- 32 32 32 >"$work/out"
grep -q "^  2  [0-9a-f]*  .* %  built in .*\(another sketch\|, not \)" "$work/out" || fail "the few best of a pipe: $(cat "$work/out")"
grep -q "^gemm: [0-9.]* % of the roofline, [0-9.]* G[A-Z]*/s of [A-Za-z0-9 -]*, as measured$" "$work/out" || fail "of the roofline: $(cat "$work/out")"
next=$(sed -n 's/^next:  //p' "$work/out" | sed 's/    .*//')
case $next in "msched show "*" --db '$work/a store/g.db'") ;; *) fail "next: $next" ;; esac
eval "\"$msched\" ${next#msched }" >/dev/null || fail "what is next cannot be typed: $next"

# A space that has no more ends the run, which says so; so do its seconds.
cat >"$work/tiny.lua" <<'L'
local te = require "msched".te
local A = te.placeholder({2}, "float32", "A")
return {te.func("tiny", {A, te.compute({2}, function(i) return A[{i}] + 1 end, "B")})}
L
"$msched" tune "$work/tiny.lua" --trials 4000 --policy replay_trace --db "$work/tiny.db" >"$work/out"
grep -q "^tiny: ended with [0-9]* of 4000 trials: the space gave nothing new three times in a row" "$work/out" || fail "exhausted: $(cat "$work/out")"
grep -q "failed: none, repeated: [1-9]" "$work/out" || fail "repeats: $(cat "$work/out")"
"$msched" tune "$gemm" --trials 100000 --seconds 1 --policy evolutionary --db "$work/seconds.db" --json -- 64 64 64 >"$work/out" || true
grep -q '"ended":"seconds"' "$work/out" || fail "seconds: $(tail -n 1 "$work/out")"

# Candidates that all fail end the run at the limit, and the message says of what; a pipe says something before.
cp "$root/tests/lua/program/unsafe_int8.lua" "$work"
set +e
"$msched" tune "$gemm" --rules "$work/unsafe_int8.lua" --failures 24 --trials 4 --db "$work/int8.db" -- 48 32 32 >"$work/out" 2>"$work/err"
got=$?
set -e
[ $got = 1 ] || fail "int8: status $got: $(cat "$work/out" "$work/err")"
grep -q "no candidate could be measured: 24 candidates in a row failed: wrong result [0-9]*.*; the last: " "$work/err" || fail "int8: $(cat "$work/err")"
grep -q "no best yet.*failed: wrong result 16" "$work/out" || fail "int8: nothing is said before: $(cat "$work/out")"

# An unscheduled function that never ends is given up.
cat >"$work/never.py" <<'P'
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "int32"), B: T.Buffer((4,), "int32")):
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi]
            while B[vi] < 1000000:
                B[vi] = T.min(B[vi], 7)
P
set +e
timeout 120 "$msched" tune "$work/never.py" --reference-timeout 1 --trials 4 --db "$work/never.db" >"$work/out" 2>"$work/err"
got=$?
set -e
[ $got = 1 ] || fail "never: status $got: $(cat "$work/out" "$work/err")"
grep -q "the unscheduled function took more than 1 s; allow more with --reference-timeout" "$work/err" || fail "never: $(cat "$work/err")"

# Extents that are variables cannot be tuned, and the message says so.
cat >"$work/symbolic.py" <<'P'
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n, 4))
    B = T.match_buffer(b, (n, 4))
    for i, j in T.grid(n, 4):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
P
for command in "tune $work/symbolic.py --db $work/symbolic.db" "space $work/symbolic.py"; do
  "$msched" $command >"$work/out" 2>"$work/err" && fail "symbolic: it succeeds"
  grep -q 'tuning needs shapes that are numbers, but extent n of A is a variable that no parameter gives: .* --dim n=N' "$work/err" || fail "symbolic: $(cat "$work/err")"
done

# Functions tuned one after another in one script share a store.
cat >"$work/three.lua" <<'L'
local ms = require "msched"
local gemm = assert(loadfile(arg[1]))
for _, n in ipairs {16, 24, 32} do
  local best = ms.tune(gemm(n, n, n)[1], {trials = 2, policy = "replay_trace", db = arg[2]})
  assert(best.seconds > 0)
end
local ok = pcall(ms.tune, gemm(8, 8, 8)[1], {trials = 2, db = arg[2], rules = {{name = "wrong", apply = function() error "oh" end}}})
assert(not ok)
local all = ms.store(arg[2], {read_only = true}):workloads()
assert(#all == 3, #all)
L
"$msched" "$work/three.lua" "$gemm" "$work/three.db" || fail "three in one script"
echo "progress: ok"
