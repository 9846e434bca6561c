#!/bin/sh
# Tuning for a GPU where one of five candidates fails: by each fault in turn, and by all of them in one run, TRIALS
# candidates each. Each run ends by itself with all its trials, what failed is counted by the fault's name, and the best
# is that of a run without a fault; no process is left.
#   fake     on a driver of the tests' own (tests/cuda/fake), which fails as it is told: exactly as many candidates as
#            it failed
#   real     on a device, with kernels that an NVRTC of the tests' own has spoiled (tests/cuda/fake/spoil.c): their
#            faults are the driver's. Times are real, so that the best may be another that is as fast. It begins no
#            fault after SECONDS.
#   spoiled  what is spoiled so on the tests' own driver, as far as that has the faults
# usage: faults.sh MSCHED ROOT fake DRIVER NVRTC [TRIALS [SEED]]
#        faults.sh MSCHED ROOT real SPOIL [TRIALS [SEED [SECONDS]]]
#        faults.sh MSCHED ROOT spoiled DRIVER NVRTC SPOIL [TRIALS [SEED]]
set -eu
msched=$1 root=$2 kind=$3
shift 3
. "$root/tests/support/session.sh"
work=$(mktemp -d)
pid=
trap 'kill ${pid:-} 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 143' TERM
fail() { echo "faults.sh: $*" >&2; exit 1; }
target="cuda -arch=sm_90" near=1 most_seconds=86400
if [ "$kind" = real ]; then
  target=cuda near=1.05 most_seconds=${4:-86400}
  spoil=$1
  shift
else
  g++ --version >/dev/null 2>&1 || { echo "faults: skipped: there is no g++"; exit 77; }
  export MSCHED_LIBCUDA="$1" MSCHED_NVRTC="$2" FAKE_NVRTC_FOLDER="$work" FAKE_NVRTC_KEEPS=1 FAKE_CUDA_TIMES=any=0.01 FAKE_CUDA_SKIPPED=peak
  spoil=$2
  shift 2
  [ "$kind" = fake ] || { spoil=$1; shift; }
fi
trials=${1:-200} seed=${2:-1} began=$(date +%s)
if [ "$kind" != fake ]; then
  [ -z "${MSCHED_NVRTC:-}" ] || export SPOIL_NVRTC="$MSCHED_NVRTC"
  export MSCHED_NVRTC="$spoil"
fi

# What is drawn depends on no result: all runs see the same candidates in the same order. Gives the best, its `failed`,
# how many were `tried`.
tune() { # name, trials
  started=$(date +%s)
  (exec setsid "$msched" tune "$root/lua/examples/gemm.lua" --target "$target" --trials "$2" --seed "$seed" --policy random --run-timeout 3 \
    --db "$work/$1.db" --json -- 24 40 20) >"$work/out" 2>"$work/err" &
  pid=$!
  wait $pid || fail "$1: the run fails: $(cat "$work/err")"
  session_ended $pid 100 >"$work/left" || fail "$1: processes are left: $(tr '\n' ' ' <"$work/left")"
  pid=
  grep '"event":"trial"' "$work/out" >"$work/$1"
  best=$(sed -n 's/^{"best":"\([0-9a-f]*\)".*"event":"end".*/\1/p' "$work/out")
  tried=$(wc -l <"$work/$1")
  failed=$(grep -c '"status":"failed"' "$work/$1" || true)
  over=$(grep '"status":"censored"' "$work/$1" | grep -c '"run_seconds":[1-9]' || true) # of what hangs, where a best is known
  [ $((tried - failed)) -ge "$2" ] && [ $((tried - failed)) -le $(($2 + 1)) ] || fail "$1: $((tried - failed)) of $tried were measured, not $2"
  seconds=$(($(date +%s) - started))
}

# IDs and seconds of the first so many without faults, the fastest first.
by_time() { # trials
  head -n "$1" "$work/none" | sed -n 's/.*"id":"\([0-9a-f]*\)".*"seconds":\([0-9.e-]*\).*/\2 \1/p' | LC_ALL=C sort -g
}
fastest_of() { by_time "$1" | sed -n '1s/.* //p'; }
# Whether a candidate is the fastest of so many, or as near it as times are sure.
is_best() { # ID, trials
  by_time "$2" | awk -v id="$1" -v near="$near" 'NR == 1 {least = $1} $2 == id && $1 <= near * least {found = 1} END {exit !found}'
}

# Says what becomes of the part, in the words of the way: the driver's, or the spoiler's.
provoke() {
  if [ "$kind" = fake ]; then export FAKE_CUDA_FAULTS="part=$1"; else export SPOIL_FAULTS="$1"; fi
}
spare() { unset FAKE_CUDA_FAULTS SPOIL_FAULTS; }

tune none $((trials * 3 / 2))
[ "$failed" = 0 ] || fail "without faults $failed of $tried fail"
echo "faults: none: the first $trials of $tried trials in $seconds s"

# The fifth that fails is one in which the best is not: where it is, the fault shows in its replay.
if [ "$kind" = fake ]; then first_fault=700; else first_fault=wrong; fi
for rest in 0 1 2 3 4; do
  export FAKE_CUDA_PART="5 $rest" SPOIL_PART="5 $rest"
  provoke $first_fault
  "$msched" replay "$(fastest_of "$trials")" --db "$work/none.db" >"$work/replayed" 2>&1 && grep -q "by 0, everywhere" "$work/replayed" && break
done
spare

all= left=
faulty() { # name, what is provoked, as what that is counted
  if [ $(($(date +%s) - began)) -ge "$most_seconds" ]; then
    left="$left $1"
    return
  fi
  provoke "$2"
  tune "$1" "$trials"
  spare
  is_best "$best" "$tried" || fail "$1: the best is $best, not $(fastest_of "$tried")"
  lost=$((failed + over))
  [ $((10 * lost)) -ge "$tried" ] && [ $((10 * lost)) -le $((3 * tried)) ] || fail "$1: $lost of $tried failed"
  case $2 in
  *hang*) [ "$kind" = real ] || [ "$lost" -le "${all:-$lost}" ] || fail "$1: $lost failed, $all before" ;; # what is over counts as measured: fewer are tried
  *) [ "$kind" = real ] || { [ "$over" = 0 ] && [ "$failed" = "${all:=$failed}" ]; } || fail "$1: $failed failed, $all before" ;;
  esac
  named=$(grep -cE "\"outcome\":\"($3)\".*\"status\":\"failed\"" "$work/$1" || true)
  [ "$named" = "$failed" ] || fail "$1: $named of $failed are counted by their name: $(grep -o '"outcome":"[^"]*"' "$work/$1" | sort | uniq -c | tr '\n' ' ')"
  echo "faults: $1: $failed of $tried failed, $over were over, the same best, in $seconds s"
}
outcomes() { sed -n 's/.*"outcome":"\([^"]*\)".*"status":"failed".*/\1/p' "$work/$1" | sort -u | wc -l; }

case $kind in
fake)
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
  [ "$(outcomes mixed)" -ge $((trials < 100 ? 2 : 8)) ] || fail "mixed: few faults"
  [ "$trials" -lt 100 ] || faulty hang hang "run timeout"
  ;;
real) # all first, should the time be short; where drivers differ in what they call it, either name
  faulty mixed address,misaligned,instruction,resources,memory,wrong,nan,past,hang "[^\"]*"
  [ -n "$left" ] || [ "$(outcomes mixed)" -ge $((trials < 100 ? 2 : 5)) ] || fail "mixed: few faults"
  faulty address address "illegal address"
  faulty misaligned misaligned "misaligned"
  faulty wrong wrong "wrong result"
  faulty nan nan "wrong result(: NaN)?"
  faulty past past "illegal address"
  faulty memory memory "out of memory|too many resources"
  faulty resources resources "too many resources|not launched"
  faulty instruction instruction "illegal instruction|kernel failed"
  faulty hang hang "run timeout"
  ;;
spoiled)
  faulty wrong wrong "wrong result"
  faulty nan nan "wrong result(: NaN)?"
  faulty past past "illegal address"
  faulty mixed wrong,nan,past,hang "[^\"]*"
  ;;
esac
echo "faults: one of five candidates fails, $trials trials are measured in each run: the best is the same${left:+; left out, as the time is over:$left}"
