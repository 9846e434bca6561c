#!/bin/sh
# On a machine with a GPU: the figures that are open, in the order of their worth, within SECONDS of all. Each step may
# take its share of the time and what those before it left; one that fails or is cut stops no other. Rows come as JSON
# lines to FOLDER/STEP.jsonl as they are measured, messages of failures to FOLDER/STEP.err, and after each step
# FOLDER/summary.md has all so far, with the card. All is tuned into FOLDER/figures.db: a second call adds trials.
#   products          float16, bfloat16 and float32, 128 to 8192, beside cuBLAS and cuBLASLt
#   attention         five shapes in float16
#   clusters padded vectors persistent
#                     functions with the part of the space and without (gpu_variants.lua)
#   ops ops_half      the suite `ops`, batch 1, float32 and float16
#   subgraphs subgraphs_half     the same of `subgraphs`
#   vendors           PyTorch's times for all rows so far, and whether ours of the vendors' libraries agree within 5 %
#                     (gpu_vendors.py); attention, which no library is timed for, is compared with PyTorch's
#   ops_16 ops_half_16           `ops`, batch 16
#   attention_float   in float32
# usage: gpu_figures.sh MSCHED ROOT FOLDER SECONDS TRIALS SEED [STEP…]
#   MSCHED_FIGURES_TARGET: cuda, unless it says another; MSCHED_FIGURES_STEP: words in the place of a step's own
set -eu
msched=$1 root=$2 folder=$3 all_seconds=$4 trials=$5 seed=$6
shift 6
target=${MSCHED_FIGURES_TARGET:-cuda}
known="products attention clusters padded ops ops_half subgraphs vectors ops_16 ops_half_16 attention_float subgraphs_half persistent vendors"
[ $# -gt 0 ] || set -- $known
weight_of() { # step
  case $1 in
  products | ops | ops_16) echo 14 ;;
  ops_half | ops_half_16 | attention) echo 10 ;;
  clusters | subgraphs | vendors) echo 7 ;;
  padded | vectors | subgraphs_half) echo 5 ;;
  *) echo 4 ;;
  esac
}
weights=0
for step in "$@"; do
  case " $known " in
  *" $step "*) weights=$((weights + $(weight_of "$step"))) ;;
  *)
    echo "gpu_figures.sh: there is no step \`$step\`; there are $known" >&2
    exit 2
    ;;
  esac
done
mkdir -p "$folder"

words_of() { # step: a suite, and what is chosen of it
  case $1 in
  products) echo "products batch=1" ;;
  attention) echo "attention batch=1 dtype=float16" ;;
  attention_float) echo "attention batch=1" ;;
  ops) echo "ops batch=1" ;;
  ops_half) echo "ops batch=1 dtype=float16" ;;
  ops_16) echo "ops batch=16" ;;
  ops_half_16) echo "ops batch=16 dtype=float16" ;;
  subgraphs) echo "subgraphs batch=1" ;;
  subgraphs_half) echo "subgraphs batch=1 dtype=float16" ;;
  esac
}

# What `MSCHED_FIGURES_STEP` says, of this step.
asked_of() { eval "printf '%s' \"\${MSCHED_FIGURES_$1:-}\""; }

suite() { # step, seconds
  asked=$(asked_of "$1")
  words=$(words_of "$1")
  # shellcheck disable=SC2086
  timeout -k 5 "$2" "$msched" bench ops ${asked:-${words#* }} --suite "${words%% *}" --target "$target" --trials "$trials" --seed "$seed" \
    --db "$folder/figures.db" --json
}

variants() { # step, seconds
  asked=$(asked_of "$1")
  if [ -n "$asked" ]; then set -- "$1" "$2" "$target" "$asked"; else set -- "$1" "$2" "$target"; fi
  part=$1 left=$2
  shift 2
  timeout -k 5 $((left + 30)) "$msched" "$root/tests/long/gpu_variants.lua" "$part" "$trials" "$seed" "$left" "$folder" "$@"
}

vendors() { # step, seconds
  cat "$folder"/*.jsonl >"$folder/rows"
  timeout -k 5 "$2" python3 "$root/tests/long/gpu_vendors.py" "$folder/rows" "$2" || return
  cat "$folder"/*.jsonl >"$folder/rows"
  python3 "$root/tests/long/gpu_summary.py" "$folder" agree >&2
}

"$msched" doctor --json >"$folder/card.json" 2>/dev/null || { echo "gpu_figures.sh: doctor fails" >&2; exit 1; }
began=$(date +%s) sum=0 failed=0
for step in "$@"; do
  sum=$((sum + $(weight_of "$step"))) started=$(date +%s) status=0
  left=$((began + all_seconds * sum / weights - started))
  [ $left -gt 0 ] || left=1
  case $step in
  clusters | padded | vectors | persistent) run=variants ;;
  vendors) run=vendors ;;
  *) run=suite ;;
  esac
  $run "$step" $left >"$folder/$step.jsonl" 2>"$folder/$step.err" || status=$?
  case $status in
  0) became=done ;;
  77) became=skipped ;;
  124 | 137) became="cut: its time was over" ;;
  *) became="failed ($status)" ;;
  esac
  case $became in done | skipped) ;; *) failed=1 ;; esac
  printf '%-16s %-24s %4d of %4d s  %3d rows  %s\n' "$step" "$became" $(($(date +%s) - started)) $left \
    "$(grep -c '"task"' "$folder/$step.jsonl")" "$(tail -n 1 "$folder/$step.err" | cut -c 1-120)" | tee -a "$folder/steps"
  python3 "$root/tests/long/gpu_summary.py" "$folder" >"$folder/summary.md" 2>/dev/null || true
done
echo "figures: $folder/summary.md"
[ $failed = 0 ]
