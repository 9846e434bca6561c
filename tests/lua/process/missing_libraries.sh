#!/bin/sh
# Without LLVM what compiles is refused with one message, and the rest works, without opening it; without xgboost a
# search goes on by chance.  usage: missing_libraries.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "missing_libraries.sh: $*" >&2; exit 1; }
db=$work/store.db data=$root/lua/bench/data
"$msched" tune ops:matmul --trials 2 --db "$db" -- 16 8 4 >/dev/null

export MSCHED_LIBLLVM="$work/no/libLLVM.so"
message="LLVM is missing ($MSCHED_LIBLLVM: .*): install LLVM 19\..*package libllvm19.*MSCHED_LIBLLVM.*libLLVM"
refused() {
  status=0
  "$msched" "$@" >"$work/out" 2>"$work/err" || status=$?
  [ "$status" = 1 ] && [ "$(wc -l <"$work/err")" = 1 ] && grep -q "$message" "$work/err" ||
    fail "$*: $status, $(cat "$work/err")"
}
refused tune ops:matmul --trials 2 --db "$db" -- 8 8 4
refused export best -o "$work/kernel.o" --db "$db"
[ ! -e "$work/kernel.o" ] || fail "an object is written"
refused lower "$root/tests/support/data/add.py" --target "llvm -mtriple=aarch64-linux-gnu"
refused tune ops:matmul --no-tune --db "$db" -- 8 8 4
refused bench gemm -- 8 8 8

# The program without its files written in Lua.
for command in "tune ops:matmul" "space ops:matmul" top; do
  status=0
  # shellcheck disable=SC2086 # words of a command
  MSCHED_LUA_PATH=$work/none "$msched" $command >"$work/out" 2>"$work/err" || status=$?
  [ "$status" = 1 ] && [ "$(wc -l <"$work/err")" = 1 ] &&
    grep -q "own files are missing: cannot open $work/none/lua/lib/msched.lua: .*; install msched again, or set MSCHED_LUA_PATH" "$work/err" ||
    fail "no files: $status, $(cat "$work/err")"
done

works() { "$msched" "$@" >"$work/out" 2>"$work/err" || fail "$*: $(cat "$work/err")"; }
works --version
works --help
works show best --db "$db"
grep -q "no code: LLVM is missing" "$work/out" || fail "show says nothing of it: $(cat "$work/out")"
works doctor
grep -q "^peak  *not measured: LLVM is missing" "$work/out" || fail "doctor says: $(cat "$work/out")"
works help targets
works space ops:matmul -- 16 8 4
works lower "$root/tests/support/data/add.py"
works lower "$root/tests/support/data/add.py" --target x86-64-v3
works run "$root/tests/support/data/add.py"
grep -q "not compiled: LLVM is missing" "$work/out" "$work/err" || fail "run says: $(cat "$work/out" "$work/err")"
works bench replay --count 40
works top --db "$db"
works db list --db "$db"
works report --db "$db" -o "$work/report.html"
head -n 1 "$data/llvm/GMM.jsonl" >"$work/sketch.json"
works apply "$data/workloads/GMM.py" "$work/sketch.json"
works convert "$work/sketch.json" --to lua
works lower "$root/tests/support/data/add.py" --target "cuda -arch=sm_80"
echo "6 * 7" | "$msched" >"$work/out" 2>"$work/err" && grep -qx 42 "$work/out" || fail "a session: $(cat "$work/err")"

# A library that is another's.
MSCHED_LIBLLVM=libm.so.6 message="LLVM is missing (it has no LLVM" refused bench gemm -- 8 8 8

unset MSCHED_LIBLLVM
# A shape that stays far from its roofline, which is measured in full: near it a search ends before it asks a model.
MSCHED_PEAK_SECONDS="" MSCHED_LIBXGBOOST=$work/no/libxgboost.so "$msched" tune ops:matmul --trials 20 --db "$db" -- 61 37 29 >"$work/out" 2>"$work/err" ||
  fail "tune without xgboost: $(cat "$work/err")"
[ "$(grep -c "goes on without the model: xgboost is missing ($work/no/libxgboost.so: .*package libxgboost0" "$work/err")" = 1 ] ||
  fail "tune without xgboost says: $(cat "$work/err")"
grep -q "^next:" "$work/out" || fail "tune without xgboost ends so: $(cat "$work/out")"

# A library that is there, and has no room: the limit is named.
unset MSCHED_LIBLLVM
grep -qa __asan_init "$msched" || {
  status=0
  (ulimit -v 150000 && exec "$msched" lower "$root/tests/support/data/add.py" --target "llvm -mtriple=aarch64-linux-gnu") >"$work/out" 2>"$work/err" || status=$?
  [ "$status" = 1 ] && grep -q "^msched: .*raise the limit of address space (ulimit -v)" "$work/err" || fail "no room: $status, $(cat "$work/err")"
}
