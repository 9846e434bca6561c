#!/bin/sh
# Networks on GPUs, without one: each FILE.onnx of a folder becomes a library for sm_80 and for sm_90a, whose kernels NVRTC
# compiles; and runs on the tests' own driver (cuda/fake), each function's result beside the interpreter's, unless it has more
# than MSCHED_LARGEST bytes, 20,000,000 unless said. tests/nets/make.py makes networks. Ends with 1 where one is not right.
# usage: nets_cuda.sh BUILD FOLDER
set -eu
build=$1 folder=$2 largest=${MSCHED_LARGEST:-20000000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=0 right=0 wrong=0
for model in "$folder"/*.onnx; do
  name=$(basename "$model" .onnx)
  for arch in sm_80 sm_90a; do
    if "$build/msched" export "$model" --target "cuda -arch=$arch" -o "$work/$name.so" --db "$work/made.db" >"$work/said" 2>&1; then
      made=$((made + 1))
      echo "$name for $arch: $(sed 's/.*; \([0-9]* functions in [0-9]* calls\).*/\1/' "$work/said")"
    else
      wrong=$((wrong + 1))
      echo "$name for $arch: FAILED: $(tail -n 3 "$work/said")"
    fi
  done
  [ "$(wc -c <"$model")" -le "$largest" ] || continue
  if MSCHED_LIBCUDA=$build/tests/libfake_cuda.so MSCHED_NVRTC=$build/tests/libfake_nvrtc.so FAKE_NVRTC_FOLDER=$work FAKE_NVRTC_KEEPS=1 \
    "$build/msched" run "$model" --target "cuda -arch=sm_90" --db "$work/run.db" >"$work/said" 2>&1; then
    right=$((right + 1))
    echo "$name here: $(grep -o 'equal to .*' "$work/said")"
  else
    wrong=$((wrong + 1))
    echo "$name here: FAILED: $(tail -n 3 "$work/said")"
  fi
done
echo "$made libraries made, $right networks right, $wrong failed"
[ "$wrong" = 0 ]
