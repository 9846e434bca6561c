#!/bin/sh
# bench ops on a GPU without one: kernels beside cuBLAS, of the tests' own.
# usage: bench_device.sh MSCHED SOURCES DRIVER NVRTC CUBLAS
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "bench_device: $*"; exit 1; }
g++ --version >/dev/null 2>&1 || { echo "bench_device: skipped: there is no g++"; exit 77; }
export MSCHED_LIBCUDA=$3 MSCHED_NVRTC=$4 MSCHED_LIBCUBLAS=$5 FAKE_NVRTC_FOLDER=$work target="cuda -arch=sm_90"
FAKE_CUDA_TIMES=$(seq -f '%g=4' -s ' ' 1 1024)
export FAKE_CUDA_TIMES FAKE_CUDA_SKIPPED=peak
"$msched" "$root/tests/lua/bench_device.lua" "$target"

ops() { "$msched" bench ops GMM_1_b1 --target "$target" --db "$work/a.db" "$@" >"$work/out" 2>"$work/err"; }
ops --trials 1 || fail "not measured: $(cat "$work/out" "$work/err")"
grep -q "^cuBLAS *cuBLAS 12.4.5$" "$work/out" || fail "it is not said which cuBLAS: $(cat "$work/out")"
grep -q "^GMM_1_b1 *4.000 ms .* GFLOP/s .*% *cuBLAS 8.000 ms 2.00$" "$work/out" || fail "no row: $(cat "$work/out")"
grep -q "^1 operators are 2.00 times as fast as the best vendor" "$work/out" || fail "no mean: $(cat "$work/out")"
FAKE_CUBLAS=wrong ops || fail "what cuBLAS does wrong is held against msched: $(cat "$work/err")"
grep -q "differs by" "$work/out" || fail "a wrong element is not noticed: $(cat "$work/out")"
! FAKE_CUBLAS=fails ops || fail "a routine that does not begin is timed"
grep -q "the library does not start its routine" "$work/err" || fail "it is not said that the routine fails: $(cat "$work/err")"
MSCHED_LIBCUBLAS=/nonexistent ops || fail "without cuBLAS nothing is measured: $(cat "$work/err")"
grep -q "cuBLAS is not found" "$work/err" && grep -q "^GMM_1_b1 *4.000 ms" "$work/out" || fail "without cuBLAS: $(cat "$work/out" "$work/err")"
! MSCHED_LIBCUDA=/nonexistent ops || fail "measured without a driver"
grep -q "CUDA's driver is missing" "$work/err" && [ "$(wc -l <"$work/err")" = 1 ] || fail "it is not said what is missing: $(cat "$work/err")"
! ops --onednn /x || fail "oneDNN on a GPU"
echo "bench_device: ok"
