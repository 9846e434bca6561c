#!/bin/sh
# Networks on GPUs, without one: each FILE.onnx of a folder becomes a library for sm_80 and for sm_90a, whose kernels
# NVRTC compiles; and runs on the tests' own driver (cuda/fake), each function's result beside the interpreter's, unless
# it has more than MSCHED_LARGEST bytes, 20,000,000 unless said. tests/nets/make.py makes networks. Ends with 1 where
# one is not right. usage: nets_cuda.sh BUILD FOLDER
set -eu
build=$1 folder=$2 largest=${MSCHED_LARGEST:-20000000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=0 right=0 wrong=0
judge() { # what it is of, what is shown of what it says, command…: whether the command passes
  of=$1 shown=$2
  shift 2
  if "$@" >"$work/said" 2>&1; then
    echo "$of: $(grep -o "$shown" "$work/said")"
  else
    wrong=$((wrong + 1))
    echo "$of: FAILED: $(tail -n 3 "$work/said")"
    return 1
  fi
}
on_driver() { MSCHED_LIBCUDA=$build/tests/libfake_cuda.so MSCHED_NVRTC=$build/tests/libfake_nvrtc.so FAKE_NVRTC_FOLDER=$work FAKE_NVRTC_KEEPS=1 "$@"; }
for model in "$folder"/*.onnx; do
  name=$(basename "$model" .onnx)
  for arch in sm_80 sm_90a; do
    ! judge "$name for $arch" '[0-9]* functions in [0-9]* calls' "$build/msched" export "$model" --target "cuda -arch=$arch" -o "$work/$name.so" --db "$work/made.db" ||
      made=$((made + 1))
  done
  [ "$(wc -c <"$model")" -le "$largest" ] || continue
  ! judge "$name here" 'equal to .*' on_driver "$build/msched" run "$model" --target "cuda -arch=sm_90" --db "$work/run.db" || right=$((right + 1))
done
echo "$made libraries made, $right networks right, $wrong failed"
[ "$wrong" = 0 ]
