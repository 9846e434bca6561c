#!/bin/sh
# bench ops on a GPU without one: kernels beside cuBLAS, cuBLASLt and cuDNN, of the tests' own.
# usage: bench_device.sh MSCHED SOURCES DRIVER NVRTC CUBLAS CUDNN CUBLASLT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "bench_device: $*"; exit 1; }
g++ --version >/dev/null 2>&1 || { echo "bench_device: skipped: there is no g++"; exit 77; }
export MSCHED_LIBCUDA=$3 MSCHED_NVRTC=$4 MSCHED_LIBCUBLAS=$5 MSCHED_LIBCUDNN=$6 MSCHED_LIBCUBLASLT=$7 FAKE_NVRTC_FOLDER=$work FAKE_NVRTC_KEEPS=1 target="cuda -arch=sm_90"
FAKE_CUDA_TIMES=$(seq -f '%g=5' -s ' ' 1 1024)
# What would be timed on small whole numbers took half as long.
export FAKE_CUDA_TIMES FAKE_CUDA_SKIPPED="peak bandwidth" FAKE_CUDA_L2=131072 FAKE_CUBLAS_TIME=10 FAKE_CUBLASLT_TIME=12 FAKE_CUDNN_TIME=10 FAKE_CUDA_EASY=0.5
FAKE_CUBLASLT_TIME=10 "$msched" "$root/tests/lua/gpu/bench_device.lua" "$target"

# From here on a kernel takes half a second of the device's clock: its first run, which is at the host's speed, is ended
# as hopeless only after many times that.
FAKE_CUDA_TIMES=$(seq -f '%g=500' -s ' ' 1 1024) FAKE_CUBLAS_TIME=1000 FAKE_CUBLASLT_TIME=1200 FAKE_CUDNN_TIME=1000

# AddressSanitizer says of a process with fibers, as kernels have here, that it may report too much.
ops() {
  status=0
  "$msched" bench ops "$@" --target "$target" --db "$work/a.db" >"$work/out" 2>"$work/all" || status=$?
  grep -v "WARNING: ASan doesn't fully support makecontext" "$work/all" >"$work/err" || true
  return $status
}
printed() { grep -q -- "$1" "$work/out" || fail "no \`$1\` in: $(cat "$work/out" "$work/err")"; }
said() { grep -q -- "$1" "$work/err" && [ "$(wc -l <"$work/err")" = "${2:-1}" ] || fail "not only \`$1\`: $(cat "$work/err")"; }

# Each operator beside who has it; a limit of computing, and one of memory: the copies of 8 MiB, which take half a
# second here.
ops GMM_1_b1 DEP_4_b1 NRM_1_b1 --trials 1 || fail "not measured: $(cat "$work/out" "$work/err")"
printed "^cuBLAS *cuBLAS 12.4.5$"
printed "^cuBLASLt *cuBLASLt 12.4.5$"
printed "^cuDNN *cuDNN 9.4.5$"
printed "^GMM_1_b1 *500.000 ms 0.0084 GFLOP/s 0.00039 GB/s  *2 % of memory  *cuBLAS 1.000 s 2.00 *cuBLASLt 1.200 s 2.40$"
for name in DEP_4_b1 NRM_1_b1; do printed "^$name *500.000 ms .* cuDNN 1.000 s 2.00$"; done
# Of which library, and which of its ways: the fastest layout, engine or algorithm, with none that rounds to TF32.
printed "^ *cuBLAS 12.4.5: cublasSgemmStridedBatched$"
printed "^ *cuDNN 9.4.5: NHWC, float32 result, the best of 6 plans: engine 7 14=5$"
printed "^ *cuDNN 9.4.5: cudnnReduceTensor, algorithm 0$"
printed "^3 operators are 2.00 times as fast as the best vendor"
FAKE_CUBLASLT_TIME=900 ops GMM_1_b1 --json || fail "not by cuBLASLt: $(cat "$work/err")"
printed '"cuBLASLt":{[^}]*"library":"cuBLASLt 12.4.5",[^}]*"ratio":1.8[0-9]*,"routine":"the best of 3: algorithm 21, tile 1, stages 6, cluster 8, split-K 2, workspace 0 KiB"'
printed '"operator":"batch_matmul",.*"values":{"accumulate":"auto","b":1,.*"k":128,"m":128,"n":128,'
# One that cannot be tuned is said, and leaves the others.
cat >"$work/strange.py" <<'END'
@T.prim_func
def strange(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.block("C"):
            vi = T.axis.spatial(16, i)
            C[vi] = T.call_extern("float32", "nothing", A[vi])
END
! ops "$work/strange.py" "suite:ops(NRM_1_b1)" --trials 1 || fail "what cannot be tuned is no failure"
said "^msched bench: strange: the unscheduled function cannot be run: "
printed "^NRM_1_b1 *500.000 ms .* cuDNN 1.000 s 2.00$"
# Of short floats ours gives sums in float32, and cuDNN's are rounded, which is no difference.
ops DEP_4_b1 dtype=float16 --trials 1 || fail "no short floats: $(cat "$work/out" "$work/err")"
printed "^DEP_4_b1_float16 *500.000 ms .* cuDNN 1.000 s 2.00$"
printed "^ *cuDNN 9.4.5: NHWC, float16 result, the best of 10 plans: engine 7 14=5$"
# Attention of short floats, by a graph of products, pointwise operations and reductions; of float32 cuDNN has none.
for words in 1,2,16,24,16 2,1,16,16,16,causal=true; do
  ops "ops:attention($words,dtype=float16)" --trials 1 || fail "no attention: $(cat "$work/out" "$work/err")"
  printed "^attention_.*float16 *[0-9.]* m*s .* cuDNN 1.000 s "
  printed "^ *cuDNN 9.4.5: attention, float16 result, the best of 4 plans: engine 7 14=5$"
  ! grep -q "differs by" "$work/out" || fail "attention by cuDNN is another: $(cat "$work/out")"
done
FAKE_CUDNN=wrong ops "ops:attention(1,2,16,24,16,dtype=float16)" --trials 1 || fail "what cuDNN does wrong is held against msched"
printed "differs by"
FAKE_CUDNN=nograph ops "ops:attention(1,2,16,24,16,dtype=float16)" --trials 1 || fail "that no engine takes it is a failure: $(cat "$work/err")"
! grep -q "^attention.*cuDNN" "$work/out" || fail "a row beside no attention of cuDNN's: $(cat "$work/out")"
ops "ops:attention(1,2,16,24,16)" --trials 1 || fail "no attention of float32: $(cat "$work/out" "$work/err")"
! grep -q "^attention.*cuDNN" "$work/out" || fail "cuDNN has no attention of float32: $(cat "$work/out")"
# Without graphs that it takes, or functions of theirs, by its older interface, and that is said.
FAKE_CUDNN=nograph ops DEP_4_b1 || fail "no older interface: $(cat "$work/err")"
printed "^ *cuDNN 9.4.5: cudnnConvolutionForward, algorithm 1, NHWC, as by graphs cudnnBackendFinalize of the operation graph gives CUDNN_.*: no engine takes this graph$"
# What they compute wrong is not held against msched; one that fails is said, and leaves the rest.
FAKE_CUBLAS=wrong FAKE_CUBLASLT=wrong FAKE_CUDNN=wrong ops GMM_1_b1 DEP_4_b1 || fail "what a vendor does wrong is held against msched: $(cat "$work/err")"
[ "$(grep -o "differs by" "$work/out" | wc -l)" = 3 ] || fail "a wrong element is not noticed: $(cat "$work/out")"
! FAKE_CUBLAS=fails FAKE_CUBLASLT=fails FAKE_CUDNN=fails ops GMM_1_b1 DEP_4_b1 NRM_1_b1 || fail "a routine that does not begin is no failure"
said "^msched bench: GMM_1_b1: cuBLAS fails: .*cublasSgemmStridedBatched gives 13" 4
said "^msched bench: GMM_1_b1: cuBLASLt fails: .*cublasLtMatmul gives 13" 4
said "^msched bench: DEP_4_b1: cuDNN fails: .*cudnnConvolutionForward gives CUDNN_STATUS_EXECUTION_FAILED" 4
printed "^GMM_1_b1 *500.000 ms .* GB/s  *[0-9]* % of memory$"
# What a library does not take of what it is told is said by its name, and is a failure; that it has no algorithm is
# none.
! FAKE_CUBLASLT=layout ops GMM_1_b1 || fail "an attribute that is refused is no failure"
said "^msched bench: GMM_1_b1: cuBLASLt fails: .*cublasLtMatrixLayoutSetAttribute of BATCH_COUNT gives 16"
printed "^GMM_1_b1 *500.000 ms .* cuBLAS 1.000 s 2.00$"
FAKE_CUBLASLT=none ops GMM_1_b1 || fail "that cuBLASLt has no algorithm is a failure: $(cat "$work/err")"
printed "^GMM_1_b1 *500.000 ms .* cuBLAS 1.000 s 2.00$"
FAKE_CUDNN=none ops DEP_4_b1 || fail "that cuDNN has no algorithm is a failure: $(cat "$work/err")"
! grep -q "_b1.*cuDNN" "$work/out" || fail "a row beside an algorithm that is not there: $(cat "$work/out")"
FAKE_CUDNN=past ops DEP_4_b1 --json || fail "an algorithm that writes past its workspace ends it: $(cat "$work/err")"
printed '"bandwidth":16777216,.*"bytes":438272,.*"limit":{"name":"memory","of":"bytes",.*"ratio":4,' # that of the next

# A library that ends its process, or leaves the device's context with a fault, costs its line: the others are measured,
# and what comes after.
! FAKE_CUBLASLT=crashes FAKE_CUDNN=crashes ops GMM_1_b1 DEP_4_b1 NRM_1_b1 || fail "a library that crashes is no failure"
said "^msched bench: GMM_1_b1: cuBLASLt fails: its process ended by signal 9 (Killed)$" 2
said "^msched bench: DEP_4_b1: cuDNN fails: its process ended by signal 9 (Killed)$" 2
printed "^GMM_1_b1 *500.000 ms .* cuBLAS 1.000 s 2.00$"
printed "^DEP_4_b1 *500.000 ms .* GB/s  *[0-9]* % of memory$"
printed "^NRM_1_b1 *500.000 ms .* cuDNN 1.000 s 2.00$"
! FAKE_CUBLASLT=spoils ops GMM_1_b1 NRM_1_b1 || fail "a library that spoils the context is no failure"
said "^msched bench: GMM_1_b1: cuBLASLt fails: .*a kernel touched memory that is not there"
printed "^GMM_1_b1 *500.000 ms .* cuBLAS 1.000 s 2.00$"
printed "^NRM_1_b1 *500.000 ms .* cuDNN 1.000 s 2.00$"
FAKE_CUBLASLT=crashes "$msched" tune ops:matmul --vendors --trials 1 --target "$target" --db "$work/tuned.db" -- 16 16 16 >"$work/out" 2>"$work/err" ||
  fail "tuning ends by a vendor's crash: $(cat "$work/err")"
said "^msched: cuBLASLt fails: its process ended by signal 9 (Killed)$"
printed "200 % of the speed of cuBLAS, which takes 1.000 s"
printed "cuBLAS 12.4.5: cublasSgemmStridedBatched"

# Libraries that are not there, are another, or do not start: a line each, and the benchmark goes on without.
MSCHED_LIBCUBLAS=/nonexistent MSCHED_LIBCUBLASLT=/nonexistent MSCHED_LIBCUDNN=$5 ops NRM_1_b1 || fail "without vendors nothing is measured: $(cat "$work/err")"
said "^msched bench: cuBLAS is not found; MSCHED_LIBCUBLAS says where it is$" 3
said "^msched bench: cuBLASLt is not found; MSCHED_LIBCUBLASLT says where it is$" 3
said "^msched bench: cuDNN 0.0.0 is left out: it has no cudnnCreate$" 3
printed "^NRM_1_b1 *500.000 ms .* 0.00052 GB/s  *3 % of memory$"
FAKE_CUDNN=create FAKE_CUBLASLT=create MSCHED_LIBCUBLAS=$6 ops NRM_1_b1 || fail "vendors that do not start end it: $(cat "$work/err")"
said "^msched bench: cuDNN 9.4.5 is left out: cudnnCreate gives CUDNN_STATUS_NOT_INITIALIZED$" 3
said "^msched bench: cuBLASLt 12.4.5 is left out: cublasLtCreate gives 1$" 3
said "^msched bench: cuBLAS 0.0.0 is left out: it has no cublasCreate_v2$" 3
# cuBLASLt stands beside cuBLAS, of its version: one variable is enough.
mkdir "$work/libraries" && cp "$5" "$work/libraries/libcublas.so.12" && cp "$7" "$work/libraries/libcublasLt.so.12"
MSCHED_LIBCUBLASLT="" MSCHED_LIBCUBLAS=$work/libraries/libcublas.so.12 ops GMM_1_b1 || fail "not beside: $(cat "$work/err")"
printed "^GMM_1_b1 .*cuBLAS 1.000 s 2.00 *cuBLASLt 1.200 s 2.40$"
! MSCHED_LIBCUDA=/nonexistent ops GMM_1_b1 || fail "measured without a driver"
said "CUDA's driver is missing"
# A product of its own shape and types, tuned in a store of its own.
"$msched" bench gemm --target "$target" --trials 1 -- 16 16 16 dtype=float16 accumulate=float32 >"$work/out" || fail "no product: $(cat "$work/out")"
printed "^16x16x16 dtype=float16 accumulate=float32 *msched *500.000 ms .* 1 trials"
printed "cuBLAS *1.000 s .* msched is 2.00 times as fast, differs by [0-9.e-]*$"
! "$msched" bench gemm --target "$target" --tvm /x -- 16 16 16 2>"$work/err" || fail "TVM on a GPU"
grep -q "TVM tunes float32 on CPUs only" "$work/err" || fail "$(cat "$work/err")"
! "$msched" bench quality --target "$target" --peer /x 2>"$work/err" || fail "TVM's quality on a GPU, by the old name of the option"
grep -q "TVM is measured on CPUs only, not for cuda" "$work/err" || fail "$(cat "$work/err")"
! ops GMM_1_b1 --onednn /x || fail "oneDNN on a GPU"
! ops GMM_1_b1 --cold || fail "cold data on a GPU"
grep -q -- "--cold: of a GPU" "$work/err" || fail "cold data on a GPU: $(cat "$work/err")"
echo "bench_device: ok"
