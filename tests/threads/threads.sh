#!/bin/sh
# usage: threads.sh PROGRAM ROOT CANDIDATES RUNS WORKLOAD…: so many candidates of each workload, run by JIT with
# perturbed thread timing, so many times, and as C source under ThreadSanitizer with threads of the test's own. Exit
# status 77: there is no gcc with ThreadSanitizer.
set -e
program=$1 root=$2 candidates=$3 runs=$4
shift 4
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
echo 'int main(void) { return 0; }' >"$scratch/try.c"
gcc -fsanitize=thread -fopenmp "$scratch/try.c" -o "$scratch/try" 2>"$scratch/log" && "$scratch/try" || { cat "$scratch/log"; exit 77; }
here=$root/tests/threads failed=0 all=0
for workload; do
  "$program" "$here/draw.lua" "$root" "$candidates" "$runs" "$scratch" "$workload" >"$scratch/log" || failed=$((failed + 1))
  sed "s/^/$workload: /" "$scratch/log"
  gcc -O2 -march=native -w -c "$scratch/base_$workload.c" -o "$scratch/base.o"
  for calls in "$scratch"/*.calls.c; do
    name=$(basename "$calls" .calls.c) all=$((all + 1))
    gcc -O1 -march=native -w -fsanitize=thread -fopenmp -c "$scratch/$name.c" -o "$scratch/candidate.o"
    gcc -O1 -w -fsanitize=thread -I "$here" "$calls" "$here/compare.c" "$here/gomp.c" "$scratch/candidate.o" \
      "$scratch/base.o" -o "$scratch/program" -lm -lpthread
    if ! TSAN_OPTIONS=halt_on_error=1:exitcode=66 "$scratch/program" >"$scratch/log" 2>&1; then
      echo "$name: $(grep -m 1 -E 'WARNING|FATAL|expected' "$scratch/log" || tail -n 1 "$scratch/log")"
      failed=$((failed + 1))
    fi
  done
  rm -f "$scratch"/*.c
done
echo "$all candidates under ThreadSanitizer; $failed failures in all"
[ "$failed" = 0 ]
