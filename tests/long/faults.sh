#!/bin/sh
# Tuning for a GPU where one of five candidates fails, on a driver of the tests' own (tests/cuda/fake): by each fault in turn,
# and by all of them in one run, TRIALS candidates each. Each run ends by itself with all its trials, as many failed as the
# driver failed, by the fault's name, and with the same best as a run without a fault; no process is left.
# usage: faults.sh MSCHED ROOT DRIVER NVRTC [TRIALS [SEED]]
set -eu
msched=$1 root=$2 trials=${5:-200} seed=${6:-1}
. "$root/tests/support/session.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "faults.sh: $*" >&2; exit 1; }
g++ --version >/dev/null 2>&1 || { echo "faults: skipped: there is no g++"; exit 77; }
export MSCHED_LIBCUDA="$3" MSCHED_NVRTC="$4" FAKE_NVRTC_FOLDER="$work" FAKE_NVRTC_KEEPS=1 FAKE_CUDA_TIMES=any=0.01 FAKE_CUDA_SKIPPED=peak

# What is drawn depends on no result: all runs see the same candidates in the same order. Gives the best, its `failed`, how many
# were `tried`.
tune() { # name, trials
  started=$(date +%s)
  (exec setsid "$msched" tune "$root/lua/examples/gemm.lua" --target "cuda -arch=sm_90" --trials "$2" --seed "$seed" --policy random \
    --db "$work/$1.db" --json -- 24 40 20) >"$work/out" 2>"$work/err" &
  pid=$!
  wait $pid || fail "$1: the run fails: $(cat "$work/err")"
  session_ended $pid 100 >"$work/left" || fail "$1: processes are left: $(tr '\n' ' ' <"$work/left")"
  grep '"event":"trial"' "$work/out" >"$work/$1"
  best=$(sed -n 's/^{"best":"\([0-9a-f]*\)".*"event":"end".*/\1/p' "$work/out")
  tried=$(wc -l <"$work/$1")
  failed=$(grep -c '"status":"failed"' "$work/$1" || true)
  over=$(grep '"status":"censored"' "$work/$1" | grep -c '"run_seconds":[1-9]' || true) # of what hangs, where a best is known
  [ $((tried - failed)) -ge "$2" ] && [ $((tried - failed)) -le $(($2 + 1)) ] || fail "$1: $((tried - failed)) of $tried were measured, not $2"
  seconds=$(($(date +%s) - started))
}

# The fastest of the first so many.
fastest_of() { # trials
  head -n "$1" "$work/none" | sed -n 's/.*"id":"\([0-9a-f]*\)".*"seconds":\([0-9.e-]*\).*/\2 \1/p' | LC_ALL=C sort -g | sed -n '1s/.* //p'
}

tune none $((trials * 3 / 2))
[ "$failed" = 0 ] || fail "without faults $failed of $tried fail"
echo "faults: none: the first $trials of $tried trials in $seconds s"

# The fifth that fails is one in which the best is not: where it is, the fault shows in its replay.
for rest in 0 1 2 3 4; do
  export FAKE_CUDA_PART="5 $rest"
  FAKE_CUDA_FAULTS="part=700" "$msched" replay "$(fastest_of "$trials")" --db "$work/none.db" >/dev/null 2>&1 && break
done

all=
faulty() { # name, what the driver does, as what that is counted
  export FAKE_CUDA_FAULTS="part=$2"
  tune "$1" "$trials"
  unset FAKE_CUDA_FAULTS
  [ "$best" = "$(fastest_of "$tried")" ] || fail "$1: the best is $best, not $(fastest_of "$tried")"
  lost=$((failed + over))
  [ $((10 * lost)) -ge "$tried" ] && [ $((10 * lost)) -le $((3 * tried)) ] || fail "$1: $lost of $tried failed"
  case $2 in
  *hang*) [ "$lost" -le "$all" ] || fail "$1: $lost failed, $all before" ;; # what is over counts as measured: fewer are tried
  *) [ "$over" = 0 ] && [ "$failed" = "${all:=$failed}" ] || fail "$1: $failed failed, $all before" ;;
  esac
  named=$(grep -cE "\"outcome\":\"($3)\".*\"status\":\"failed\"" "$work/$1" || true)
  [ "$named" = "$failed" ] || fail "$1: $named of $failed are counted by their name: $(grep -o '"outcome":"[^"]*"' "$work/$1" | sort | uniq -c | tr '\n' ' ')"
  echo "faults: $1: $failed of $tried failed, $over were over, the same best, in $seconds s"
}
faulty address 700 "illegal address"
faulty misaligned 716 "misaligned"
faulty instruction 715 "illegal instruction"
faulty resources L701 "too many resources"
faulty launch L1 "not launched"
faulty failed 719 "kernel failed"
faulty watchdog 702 "run timeout"
faulty wrong wrong2 "wrong result"
faulty nan nan2 "wrong result: NaN"
faulty past past2 "illegal address"
faulty mixed 700,716,715,L701,L1,719,702,wrong2,nan2,past2,hang "[^\"]*"
[ "$(sed -n 's/.*"outcome":"\([^"]*\)".*"status":"failed".*/\1/p' "$work/mixed" | sort -u | wc -l)" -ge $((trials < 100 ? 2 : 8)) ] || fail "mixed: few faults"
[ "$trials" -lt 100 ] || faulty hang hang "run timeout"
echo "faults: one of five candidates fails, $trials trials are measured in each run: the best is the same"
