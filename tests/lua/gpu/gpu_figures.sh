#!/bin/sh
# The figures that a machine with a GPU is for, without one: each step's words name members of its suite; a few members
# go all the way on the tests' own driver and libraries, beside a PyTorch of the tests' own, with which the vendors'
# times agree or not; a step that fails or does not end stops no other.
# usage: gpu_figures.sh MSCHED SOURCES DRIVER NVRTC CUBLAS CUDNN CUBLASLT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "gpu_figures: $*"; exit 1; }
g++ --version >/dev/null 2>&1 || { echo "gpu_figures: skipped: there is no g++"; exit 77; }
python3 -c 1 2>/dev/null || { echo "gpu_figures: skipped: there is no python3"; exit 77; }
export MSCHED_LIBCUDA=$3 MSCHED_NVRTC=$4 MSCHED_LIBCUBLAS=$5 MSCHED_LIBCUDNN=$6 MSCHED_LIBCUBLASLT=$7 FAKE_NVRTC_FOLDER=$work FAKE_NVRTC_KEEPS=1
FAKE_CUDA_TIMES=$(seq -f '%g=5' -s ' ' 1 1024)
export FAKE_CUDA_TIMES FAKE_CUDA_SKIPPED="peak bandwidth" FAKE_CUDA_L2=131072 FAKE_CUBLAS_TIME=10 FAKE_CUBLASLT_TIME=12 FAKE_CUDNN_TIME=10 \
  MSCHED_FIGURES_TARGET="cuda -arch=sm_90"
figures() { # seconds, steps…
  seconds=$1 status=0
  shift
  [ -n "${kept:-}" ] || rm -rf "$work/out"
  sh "$root/tests/long/gpu_figures.sh" "${program:-$msched}" "$root" "$work/out" "$seconds" 1 1 "$@" >"$work/said" 2>&1 || status=$?
}
became() { grep -q "^$1  *$2 " "$work/said" || fail "no \`$1 $2\` in: $(cat "$work/said")"; }
has() { grep -q -- "$2" "$work/out/$1" || fail "no \`$2\` in $1: $(cat "$work/out/$1")"; }

# A program that tunes nothing: the words of each suite are known, and choose so many.
cat >"$work/untuned" <<END
#!/bin/sh
[ "\$1" = bench ] || exec "$msched" "\$@"
trials=
for word in "\$@"; do
  shift
  if [ -n "\$trials" ]; then trials=; elif [ "\$word" = --trials ]; then trials=next; else set -- "\$@" "\$word"; fi
done
"$msched" tune ops:relu --no-tune --db "$work/out/figures.db" -- 8 >/dev/null
exec "$msched" "\$@"
END
chmod +x "$work/untuned"
program=$work/untuned
figures 600 products attention attention_float ops ops_half ops_16 ops_half_16 subgraphs subgraphs_half
[ $status = 1 ] || fail "nothing is measured, and that is no failure"
for step in products=12 attention=5 attention_float=5 ops=44 ops_half=44 ops_16=44 ops_half_16=44 subgraphs=12 subgraphs_half=12; do
  became "${step%=*}" "failed (1)"
  lines=$(grep -c "no record for cuda in .*--trials N tunes it" "$work/out/${step%=*}.err")
  [ "$lines" = "${step#*=}" ] || fail "${step%=*} has $lines members, and not ${step#*=}: $(head -n 3 "$work/out/${step%=*}.err")"
done
program=

# A few all the way.
export MSCHED_FIGURES_products=F16_1_b1 MSCHED_FIGURES_ops="GMM_1_b1 DEP_4_b1 NRM_1_b1" PYTHONPATH="$root/tests/cuda/fake/python" \
  MSCHED_FIGURES_clusters="matmul 128 128 64 dtype=float16 accumulate=float32" MSCHED_FIGURES_vectors="softmax 8x256"
figures 600 products clusters ops vectors vendors
[ $status = 0 ] || fail "the figures fail: $(cat "$work/said" "$work"/out/*.err)"
for step in products clusters ops vectors vendors; do became $step done; done
has products.jsonl '"task":"F16_1_b1"'
has clusters.jsonl '"other_seconds":0.005,.*"part":"clusters","ratio":1,'
has vendors.jsonl '"routine": "vector_norm", "seconds": 0.01, "task": "NRM_1_b1"'
has vendors.jsonl '"routine": "conv2d, channels last", "seconds": 0.01, "task": "DEP_4_b1"'
has summary.md "^# 0: Fake 90, sm_90"
has summary.md "^## ops: 3 rows, 2.00 of the best vendor by geometric mean, least 2.00, below 0.8: 0"
has summary.md "^| GMM_1_b1 | 5 ms | cuBLAS 10 ms | 2.00 | 2 % of memory |"
has summary.md "^## Vendors by bench ops beside PyTorch: 4 rows, 0 more than 5 % slower"
# What no library of a vendor was timed for stands beside PyTorch.
grep '"GMM_1_b1"' "$work/out/ops.jsonl" | sed 's/"vendors":{.*}/"vendors":{}}/; s/"ratio":2,//; s/GMM_1_b1/ATT_1_b1/' >"$work/out/attention.jsonl"
echo '{"bench": "vendors", "task": "ATT_1_b1", "seconds": 0.004}' >>"$work/out/vendors.jsonl"
python3 "$root/tests/long/gpu_summary.py" "$work/out" >"$work/out/summary.md"
has summary.md "^| ATT_1_b1 | 5 ms | PyTorch 4 ms | 0.80 | "
has summary.md "^## Vendors by bench ops beside PyTorch: 4 rows, 0 more than 5 % slower"
rm "$work/out/attention.jsonl"
# PyTorch is a tenth faster: its routines are better than those that were timed.
kept=rows
FAKE_TORCH_TIME=9 figures 600 vendors
[ $status = 1 ] || fail "a vendor that is not timed at its best is no failure: $(cat "$work/said")"
became vendors "failed (1)"
has summary.md "4 rows, 4 more than 5 % slower"
has summary.md "^| NRM_1_b1 | cuDNN 10 ms | vector_norm 9 ms | 1.11 |"
FAKE_TORCH_TIME=9.6 figures 600 vendors
[ $status = 0 ] || fail "4 % are too many: $(cat "$work/said")"
PYTHONPATH=/nonexistent figures 20 vendors
[ $status = 0 ] && became vendors skipped || fail "no PyTorch is a failure: $(cat "$work/said")"
kept=

# What PyTorch is asked: every operator of the suites that it has, by its fastest way.
python() { FAKE_TORCH_TIME=1 python3 "$root/tests/long/gpu_vendors.py" "$work/rows" "${1:-60}" 2>"$work/err"; }
"$msched" "$root/tests/support/lua/suite_rows.lua" ops attention bert >"$work/rows"
python >"$work/times" || fail "PyTorch is asked wrong: $(cat "$work/err")"
for line in 'conv1d, channels first", "seconds": 0.001, "task": "ops:C1D_1_b1' 'conv2d, channels last", "seconds": 0.001, "task": "ops:GRP_2_b16' \
  'conv3d, channels last", "seconds": 0.001, "task": "ops:C3D_4_b1' 'conv_transpose2d, channels last", "seconds": 0.001, "task": "ops:T2D_4_b1' \
  'scaled_dot_product_attention, EFFICIENT_ATTENTION", "seconds": 0.001, "task": "attention:ATT_3_b1' 'linear", "seconds": 0.001, "task": "bert:DNS_4_b1' \
  'layer_norm", "seconds": 0.001, "task": "bert:NRM_1_b1' 'gelu", "seconds": 0.001, "task": "bert:GEL_1_b16' 'softmax", "seconds": 0.001, "task": "ops:SFM_4_b16'; do
  grep -q "$line" "$work/times" || fail "no \`$line\` in: $(tail -n 3 "$work/times")"
done
! grep -q CAP_ "$work/times" || fail "PyTorch has a convolution of matrices"
grep -q "attention:ATT_1_b1: scaled_dot_product_attention, FLASH_ATTENTION: no available kernel$" "$work/err" || fail "$(cat "$work/err")"
[ -z "$(python 0)" ] && grep -q "the time is over" "$work/err" || fail "the time is not over"

# A step that does not end is cut, with its share of the time; one that fails stops no other.
cat >"$work/stub" <<'END'
#!/bin/sh
case "$*" in
doctor*) echo '{"GPUs":"none"}' ;;
*products*) echo '{"bench":"ops","task":"one","seconds":1e-6}'; sleep 60 ;;
*) echo "refused" >&2; exit 3 ;;
esac
END
chmod +x "$work/stub"
program=$work/stub
figures 4 products attention ops_half
[ $status = 1 ] || fail "a step that is cut is no failure"
became products "cut: its time was over"
became attention "failed (3)"
became ops_half "failed (3)"
has summary.md "^| one | 1 us |"
figures 4 products fly
[ $status = 2 ] && grep -q "there is no step \`fly\`; there are products" "$work/said" || fail "a step that is none: $(cat "$work/said")"
echo "gpu_figures: ok"
