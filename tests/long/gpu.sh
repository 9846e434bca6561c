#!/bin/sh
# What a machine with a GPU is for, in parts, each of which ends when its time is over; one that fails stops no other.
# The summary says what became of each, and the folder what each said.
#   check      random candidates of all operators run on the device, and are compared
#   tune       the 19 workloads with TRIALS trials each; the best of each is run again, and compared everywhere; seconds
#              a trial
#   faults     one of five candidates faults on the device, by each fault: the run ends by itself with the same best
#              (faults.sh)
#   ops        matrix products of 4096 x 4096, convolutions, softmax and norm beside cuBLAS, cuDNN and the device's
#              limits
#   memcheck racecheck synccheck   candidates under compute-sanitizer
#   ncu        the products and convolutions that `ops` has tuned, by Nsight Compute: conflicts of shared memory's banks
#              beside its accesses, the cycles in which instructions are issued, how busy memory and tensor cores are
# usage: gpu.sh MSCHED ROOT SPOIL FOLDER SECONDS CANDIDATES TRIALS SEED [PART…]
#   SECONDS  of all parts that are asked for, shared out by weights
set -eu
msched=$1 root=$2 spoil=$3 folder=$4 all_seconds=$5 candidates=$6 trials=$7 seed=$8
shift 8
known="check tune faults ops memcheck racecheck synccheck ncu"
[ $# -gt 0 ] || set -- $known
weight_of() { # part
  case $1 in
  check) echo 12 ;;
  tune) echo 30 ;;
  faults) echo 24 ;;
  ops) echo 18 ;;
  memcheck) echo 6 ;;
  *) echo 5 ;;
  esac
}
weights=0
for part in "$@"; do
  case " $known " in
  *" $part "*) weights=$((weights + $(weight_of "$part"))) ;;
  *)
    echo "gpu.sh: there is no part \`$part\`; there are $known" >&2
    exit 2
    ;;
  esac
done
mkdir -p "$folder"

# ---- The parts: each has so many `seconds`, says what it does, and gives 77 where it cannot be done

check() { "$msched" "$root/tests/lua/gpu/gpu.lua" "$candidates" "$seed" "$seconds"; }

sanitized() { # tool
  sanitizer=$(command -v compute-sanitizer) || { echo "skipped: there is no compute-sanitizer"; return 77; }
  "$sanitizer" --tool "$1" --error-exitcode 9 --target-processes all "$msched" "$root/tests/lua/gpu/gpu.lua" "$candidates" "$seed" "$seconds"
}
memcheck() { sanitized memcheck; }
racecheck() { sanitized racecheck; }
synccheck() { sanitized synccheck; }

faults() { sh "$root/tests/long/process/faults.sh" "$msched" "$root" real "$spoil" "${MSCHED_FAULTY:-200}" "$seed" "$((seconds * 3 / 4))"; }

# A quarter of the time is for the comparisons.
tune() {
  rm -f "$folder/tune.db"
  "$msched" tune "$root"/lua/bench/data/workloads/[A-Z][A-Z]*.py --target cuda --trials "$trials" --seed "$seed" --seconds $((seconds * 3 / 4)) \
    --db "$folder/tune.db" --json >"$folder/tune.json" || return 1
  grep -v '"event":"trial"' "$folder/tune.json" | grep '"event":"end"' | sed 's/^/tune: /'
  tried=$(grep -c '"event":"trial"' "$folder/tune.json")
  took=$(($(date +%s) - started))
  echo "tune: $tried trials in $took s: $(awk -v n="$tried" -v s="$took" 'BEGIN {printf "%.2f", s / (n ? n : 1)}') s a trial"
  status=0 same=0
  for task in $("$msched" db list --db "$folder/tune.db" --json | sed -n 's/.*"name":"\([^"]*\)".*/\1/p' | sort -u); do
    if "$msched" replay "$task" --db "$folder/tune.db" --json >"$folder/replayed" 2>&1; then
      off=$(sed -n 's/.*"difference":\([0-9.e+-]*\).*/\1/p' "$folder/replayed")
      echo "tune: $task: differs from the unscheduled function by ${off:-?}"
      awk -v off="${off:-1}" 'BEGIN {exit !(off <= 1e-3)}' && same=$((same + 1)) || status=1
    else
      echo "tune: $task: $(cat "$folder/replayed")"
      status=1
    fi
  done
  echo "tune: the best of $same functions compute the same"
  [ "$same" -gt 0 ] && return $status
}

ops() {
  status=0
  for line in "products F32_3_b1 F16_3_b1 B16_3_b1" "ops C2D_3_b1 DEP_1_b1 SFM_4_b1 NRM_4_b1" "ops C2D_3_b16 C2D_4_b16 dtype=float16"; do
    suite=${line%% *} left=$((started + seconds - $(date +%s)))
    [ $left -gt 0 ] || { echo "ops: left out, as the time is over: $line"; continue; }
    # shellcheck disable=SC2086
    timeout $left "$msched" bench ops ${line#* } --suite "$suite" --target cuda --trials "$trials" --seed "$seed" --db "$folder/ops.db" || {
      [ $? != 124 ] || echo "ops: the time was over in: $line"
      status=1
    }
  done
  return $status
}

# Of the best kernels in the store; with its names, ncu has lists of all metrics: `ncu --query-metrics`.
METRICS=l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum
METRICS=$METRICS,l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum,l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum
METRICS=$METRICS,smsp__issue_active.avg.pct_of_peak_sustained_active,sm__inst_executed_pipe_tensor.sum
METRICS=$METRICS,dram__throughput.avg.pct_of_peak_sustained_elapsed,lts__throughput.avg.pct_of_peak_sustained_elapsed
METRICS=$METRICS,gpu__time_duration.sum
ncu() {
  profiler=$(command -v ncu) || { echo "skipped: there is no ncu"; return 77; }
  [ -f "$folder/ops.db" ] || { echo "skipped: the part ops has tuned nothing in $folder"; return 77; }
  status=0
  for line in "products F32_3_b1 F16_3_b1 B16_3_b1" "ops C2D_3_b1 DEP_1_b1 SFM_4_b1" "ops C2D_3_b16 C2D_4_b16 dtype=float16"; do
    left=$((started + seconds - $(date +%s)))
    [ $left -gt 0 ] || { echo "ncu: left out, as the time is over: $line"; continue; }
    # shellcheck disable=SC2086
    timeout $left "$profiler" --csv --target-processes all --kernel-name 'regex:^[A-Z0-9]+_[0-9]_b' --launch-count 6 --metrics "$METRICS" \
      "$msched" bench ops ${line#* } --suite "${line%% *}" --target cuda --db "$folder/ops.db" >"$folder/ncu.out" || status=1
    cat "$folder/ncu.out" >>"$folder/ncu.csv"
    awk -F '","' '/bank_conflicts|wavefronts|issue_active/ {sub(/"$/, "", $15); print "ncu: " $5 ": " $13 " " $15}' "$folder/ncu.out"
  done
  return $status
}

# ---- In turn, each by this script in a process group of its own

if [ -n "${GPU_PART_SECONDS:-}" ]; then
  seconds=$GPU_PART_SECONDS started=$(date +%s)
  unset GPU_PART_SECONDS
  "$1"
  exit
fi

table='' failed=0
for part in "$@"; do
  seconds=$((all_seconds * $(weight_of "$part") / weights)) started=$(date +%s) status=0
  printf '\n== gpu: %s, %d s\n' "$part" "$seconds"
  # What does not end by itself is ended a quarter later.
  GPU_PART_SECONDS=$seconds timeout -k 10 $((seconds * 5 / 4 + 1)) sh "$0" "$msched" "$root" "$spoil" "$folder" "$all_seconds" "$candidates" \
    "$trials" "$seed" "$part" >"$folder/$part.log" 2>&1 || status=$?
  case $status in
  0) became=passed ;;
  77) became=skipped ;;
  124 | 137) became="out of time" ;;
  *) became="FAILED ($status)" ;;
  esac
  case $became in passed | skipped) ;; *) failed=1 ;; esac
  tail -n 25 "$folder/$part.log"
  table="$table$(printf '%-10s %-12s %5d s  %s' "$part" "$became" $(($(date +%s) - started)) "$(tail -n 1 "$folder/$part.log" | cut -c 1-150)")
"
done
printf '\n== gpu: what became of the parts; what each said is in %s\n%s' "$folder" "$table"
[ $failed = 0 ]
