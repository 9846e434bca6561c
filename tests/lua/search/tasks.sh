#!/bin/sh
# Several functions and files in one command: the tasks of one run, interrupted and gone on with; policies of a script's
# by
# name; trials of all together.  usage: tasks.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/store.db
fail() { echo "tasks.sh: $*" >&2; exit 1; }

cat >"$work/products.lua" <<'L'
local ms = require "msched"
local te = ms.te
local function product(name, n)
  local A, B, k = te.placeholder({n, n}, "float32", "A"), te.placeholder({n, n}, "float32", "B"), te.reduce_axis(n, "k")
  return te.func(name, {A, B, te.compute({n, n}, function(i, j) return te.sum(A[{i, k}] * B[{k, j}], k) end, "C")})
end
ms.policy {name = "drawing", run = function(env) env:measure(env:replay(env:draw_jobs(2))) end}
return {product("first", 16), {product("second", 24), weight = 3}, product("third", 16)}
L

# The third is the first again: two tasks of this file, and one of each other.
"$msched" tune "$work/products.lua" "$root/lua/examples/gemm.py" "$root/lua/examples/softmax.lua" --policy replay_trace --trials 2 --scheduler round-robin \
  --simulate --db "$db" --json -- 16 32 >"$work/out" 2>"$work/err" || true # nothing is in the store: it has no best
! grep -vE '^(msched tune: )?(first|second|gemm|softmax_16x32): ' "$work/err" || fail "a message of no task: $(cat "$work/err")"
[ "$(grep -c '"event":"end"' "$work/out")" = 4 ] || fail "not four tasks: $(cat "$work/out")"
grep -q '"equal":\["third"\].*"event":"start".*"task":"first".*"weight":2' "$work/out" || fail "equal functions: $(cat "$work/out")"
grep -q '"event":"start".*"task":"second".*"weight":3' "$work/out" || fail "a weight: $(cat "$work/out")"
"$msched" tune "$work/products.lua" "$root/lua/examples/softmax.lua" --task second --policy replay_trace --trials 1 --simulate --db "$db" --json >"$work/out" || true
[ "$(grep -c '"event":"end"' "$work/out")" = 1 ] || fail "--task: $(cat "$work/out")"

# Really measured, and gone on with: each task has its lines and what to type next, and the store has all.
"$msched" tune "$work/products.lua" --policy replay_trace --total-trials 6 --db "$db" >"$work/out" || fail "products: $(cat "$work/out")"
grep -q '^first = third on ' "$work/out" || fail "the first line: $(cat "$work/out")"
[ "$(grep -c '^next:  msched show' "$work/out")" = 2 ] || fail "what is next: $(cat "$work/out")"
for name in first second; do # each list of the best stands under its task's name
  sed -n "/^$name:\$/,/^next:/p" "$work/out" | grep -q '^  1  ' || fail "the best of $name is not named: $(cat "$work/out")"
done
measured=0
for trials in $(sed -n 's/^[a-z]*: trial \([0-9]*\) of 64.*/\1/p' "$work/out" | tail -n 2); do measured=$((measured + trials)); done
[ "$measured" = 6 ] || fail "$measured trials together, not 6: $(cat "$work/out")"
grep -q 'ended with [0-9]* of 64 trials: the 6 trials of all tasks together are spent' "$work/out" || fail "why it ended: $(cat "$work/out")"
"$msched" tune "$work/products.lua" --policy drawing --trials 2 --db "$db" >"$work/out" || fail "a policy by name: $(cat "$work/out")"
! grep -vE "^(first|second)[: ]|^  [0-9]  |^next:  |^  msched " "$work/out" || fail "a line of no task: $(cat "$work/out")"
grep -q '^first = third on .*, [1-6] records\{0,1\} known' "$work/out" || fail "it does not go on: $(cat "$work/out")"
"$msched" db check --db "$db" | grep -qx clean || fail "db check"

# Interrupted at any time it says so; run again, it goes on with what was kept.
set +e
timeout -s INT --preserve-status 3 "$msched" tune "$work/products.lua" --trials 100000 --db "$work/stopped.db" --json >"$work/out" 2>"$work/err"
got=$?
set -e
[ $got = 1 ] && grep -q 'interrupted' "$work/err" || fail "interrupted: status $got: $(cat "$work/err")"
"$msched" db check --db "$work/stopped.db" | grep -qx clean || fail "db check after an interrupt"
kept=$(grep -c '"event":"trial"' "$work/out" || true)
"$msched" tune "$work/products.lua" --policy replay_trace --trials 1 --db "$work/stopped.db" --json >"$work/again" || fail "it does not go on: $(cat "$work/again")"
known=0
for records in $(sed -n 's/.*"event":"start","known":\([0-9]*\),.*/\1/p' "$work/again"); do known=$((known + records)); done
[ "$known" = "$kept" ] || fail "it knows $known of $kept results"

# One that cannot be run ends alone: the others have their best, and the status says it.
cat >"$work/leaves.py" <<'P'
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def leaves(A: T.Buffer((64,), "int32"), C: T.Buffer((64,), "int32")):
    for i in range(64):
        with T.sblock("C"):
            vi = T.axis.spatial(64, i)
            C[A[vi] + 1000000] = A[vi]
P
set +e
"$msched" tune "$work/leaves.py" "$work/products.lua" --task 2 --policy replay_trace --trials 1 --db "$work/other.db" >"$work/out" 2>&1
got=$?
"$msched" tune "$work/leaves.py" "$work/products.lua" --policy replay_trace --trials 1 --db "$work/other.db" >"$work/out" 2>"$work/err"
both=$?
set -e
[ $got = 0 ] || fail "--task counts over files: $(cat "$work/out")"
[ $both = 1 ] || fail "status $both: $(cat "$work/out" "$work/err")"
grep -q 'leaves: the unscheduled function cannot be run' "$work/err" || fail "no message: $(cat "$work/err")"
[ "$(grep -c '^next:  msched show' "$work/out")" = 2 ] || fail "the others: $(cat "$work/out" "$work/err")"
echo "tasks: ok"
