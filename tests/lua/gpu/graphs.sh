#!/bin/sh
# How candidates are timed on a device, end to end on a driver of the tests' own: by graphs, or by launches where none
# can be captured; scaled to one clock; and by one process at a time.
# usage: graphs.sh MSCHED SOURCES DRIVER NVRTC NVML OLD_DRIVER
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "graphs: $*"; exit 1; }
g++ --version >/dev/null 2>&1 || { echo "graphs: skipped: there is no g++"; exit 77; }
export MSCHED_LIBCUDA=$3 MSCHED_NVRTC=$4 MSCHED_LIBNVML=$5 FAKE_NVRTC_FOLDER=$work FAKE_NVRTC_KEEPS=1 FAKE_CUDA_SKIPPED=peak
tune() { # store, trials, arguments…
  store=$work/$1.db trials=$2
  shift 2
  "$msched" tune "$root/lua/examples/gemm.lua" --target "cuda -arch=sm_90" --trials "$trials" --db "$store" "$@" -- 24 40 20 >"$store.out" 2>&1 ||
    fail "not tuned: $(cat "$store.out")"
}
shown() { # store: what is kept of how its records were timed
  for id in $("$msched" top -k 9 --db "$work/$1.db" | awk '/cuda/ {print $2}'); do "$msched" show "$id" --db "$work/$1.db" | grep "^as measured"; done
}
timed() { "$msched" top -k 9 --db "$work/$1.db" | awk '/cuda/ {print $3, $4}' | sort -u; }

# By a graph: nothing is said, but for the clock. The copy that measures the bandwidth is run here; from then on it only
# takes its time: its 800,000 threads take this CPU seconds.
tune graph 2
export FAKE_CUDA_SKIPPED="peak bandwidth"
[ "$(shown graph | grep -c "; timed at 1.50 GHz; ")" = 2 ] && ! shown graph | grep -q "launches\|scaled" || fail "not by a graph: $(shown graph)"

# None can be captured, is instantiated, or known to the driver: timed all the same, and said by each record.
for how in none:CAPTURE_UNSUPPORTED spoiled:CAPTURE_INVALIDATED instance:"instantiating a graph"; do
  FAKE_CUDA_CAPTURE=${how%%:*} tune "${how%%:*}" 2
  [ "$(grep -c "launches are part of its times, as no CUDA graph could be made: .*${how#*:}" "$work/${how%%:*}.db.out")" = 1 ] || fail "it is not said once: $(cat "$work/${how%%:*}.db.out")"
  [ "$(shown "${how%%:*}" | grep -c "timed by launches: .*${how#*:}")" = 2 ] || fail "it is not said of ${how%%:*}: $(shown "${how%%:*}")"
done
LD_LIBRARY_PATH=$(dirname "$3") MSCHED_LIBCUDA=$6 tune old 2 # kernels take the threads of the other
[ "$(shown old | grep -c "timed by launches: the driver has no graphs; ")" = 2 ] || fail "an old driver: $(shown old)"
[ "$(timed old)" = "10.00 us" ] && [ "$(timed none)" = "10.00 us" ] && [ "$(timed graph)" = "10.00 us" ] || fail "times differ: $(timed old), $(timed none)"

# The device slows down in the middle: what is timed later is no slower for it, and its record says what was measured.
# The one in which it slows down lies between: 10 us at one clock, 15 at the other.
# (In the end the best are timed again by another process, and slow down there.)
FAKE_CUDA_CLOCK="1980 1320 2" tune slows 6 --json
grep '"event":"trial"' "$work/slows.db.out" | sed 's/.*[^_]"\?seconds": \?\([^,}]*\).*/\1/' >"$work/seconds"
[ "$(awk '$1 > 9.99e-06 && $1 < 1.5e-05' "$work/seconds" | wc -l)" = 6 ] || fail "times are not at one clock: $(cat "$work/seconds")"
[ "$(awk '$1 < 1.001e-05' "$work/seconds" | wc -l)" -ge 5 ] || fail "times are not at one clock: $(cat "$work/seconds")"
shown slows | grep -q "timed at 1.32 GHz, in 1[0-9.]* us, scaled to the clock of the run's first" || fail "no raw time: $(shown slows)"

# Others have the device: in the same session as this one or not.
sleep 300 &
other=$!
FAKE_NVML_PROCESSES=$other tune others 1
FAKE_NVML_PROCESSES=$other:3221225472:40 tune computing 1
FAKE_NVML_PROCESSES=$other:3221225472 tune waiting 1
kill $other
shown others | grep -q "another process had the device too" || fail "other processes: $(shown others)"
grep -q "gemm: another process is on the device: times are less sure" "$work/others.db.out" || fail "it is not said: $(cat "$work/others.db.out")"
! shown others | grep -q "with .* of its memory" || fail "memory that is not known: $(shown others)"
# What they have of its memory; where they compute, times are taken again, and said to be disturbed.
for name in computing waiting; do
  shown $name | grep -q "another process had the device too; with 3.0 GiB of its memory; 80.0 GiB of its memory were left" ||
    fail "others' memory: $(shown $name)"
  grep -q "gemm: another process is on the device, with 3.0 GiB of its memory: times" "$work/$name.db.out" || fail "it is not said: $(cat "$work/$name.db.out")"
done
"$msched" top --db "$work/computing.db" | grep -q "busy machine" || fail "others compute, and nothing is said: $("$msched" top --db "$work/computing.db")"
for name in waiting others; do ! "$msched" top --db "$work/$name.db" | grep -q "busy machine" || fail "$name: disturbed"; done
! shown graph | grep -q "of its memory" || fail "memory where there is nobody else: $(shown graph)"
! shown graph | grep -q "had the device" || fail "this one counts as another"

# Two at once: what they time never overlaps, and both go on by turns.
export FAKE_CUDA_TRACE=$work/trace
tune one 6 --seed 1 &
first=$!
tune two 6 --seed 2 || fail "the second of two"
wait $first || fail "the first of two"
unset FAKE_CUDA_TRACE
[ "$(cut -d' ' -f1 "$work/trace" | sort -u | wc -l)" -ge 2 ] || fail "no two processes have timed"
sort -n -k2 "$work/trace" | awk '$2 < until && $1 != last {print "overlaps: " $0; exit 1} $3 > until {until = $3; last = $1}' || fail "two time at once"

# A device that another holds is waited for; that is said after a second, and counts against no limit.
lock=$(ls "$work"/msched-GPU-*.lock)
if command -v flock >/dev/null; then
  flock "$lock" sleep 4 &
  sleep 0.2
  tune held 1 --run-timeout 1
  grep -q "waits for the device, on which another msched times candidates ($lock)" "$work/held.db.out" || fail "it is not said: $(cat "$work/held.db.out")"
  [ "$(timed held)" = "10.00 us" ] || fail "waiting counts: $(cat "$work/held.db.out")"
  wait
fi
echo "graphs: ok"
