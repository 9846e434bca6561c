#!/bin/sh
# usage: launcher.sh PROGRAM FAKE_CUDA FAKE_NVRTC [FLAGS]: exported kernels; FLAGS link what FAKE_CUDA was built with.
# A GEMM from the space for GPUs, a function of two kernels with memory between them, much shared memory and scalars,
# and a product with TMA copies by a producer warp group are exported as source, cubin, and C with its header that
# launches them: it compiles without a warning, needs the driver's API alone, and with a driver of the tests' own
# computes what it should. nvcc compiles the source, where it is installed.
set -e
program=$1 fake_cuda=$2 fake_nvrtc=$3 flags=${4-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export MSCHED_NVRTC="$fake_nvrtc" FAKE_NVRTC_FOLDER="$folder"
cd "$folder"

cat >export.lua <<'LUA'
local ms = require "msched"
local tune = ms.load "search.tune"
local TARGET = "cuda -arch=sm_80"
local function export(func, name, target)
  local kernel = ms.build(func, {target = target or TARGET})
  for _, form in ipairs {"cu", "cubin", "h", "c"} do kernel:export(name .. "." .. form) end
  return kernel
end

-- The first candidate of the space.
local function gemm()
  local func = ms.ops.func("matmul", {"33", "26", "30"})
  local pool = ms.pool(func, {jobs = 1, target = TARGET})
  local sketch = tune.open(func, ms.target(TARGET), {}).sketches[1].trace:simplified(false)
  local made = pool:replay({{trace = sketch, seed = 1, candidate = 1, resample = true}}, false)
  pool:close()
  return ms.apply(func, made[1].trace):func()
end
assert(export(gemm(), "gemm"):resources()[1].threads > 1)

local two = export(ms.from_script [[
@T.prim_func(s_tir=True)
def two(A: T.Buffer((64,), "float32"), s: T.float16, n: T.int32, b: T.bfloat16, C: T.Buffer((64,), "float32")):
    G = T.alloc_buffer((64,))
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            G[bx * 32 + tx] = A[bx * 32 + tx] * T.Cast("float32", s) + T.Cast("float32", n)
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        S = T.alloc_buffer((13000,), scope="shared")
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            S[tx * 400] = G[bx * 32 + tx]
        for tx in T.thread_binding(32, thread="threadIdx.x"):
            C[bx * 32 + tx] = S[12400 - tx * 400] - T.Cast("float32", b)
]], "two")
assert(two:resources()[2].dynamic_bytes > 48 << 10)

export(ms.from_script [[
@T.prim_func(s_tir=True)
def boxes(A: T.Buffer((128, 320), "float16"), B: T.Buffer((320, 64), "float16"), C: T.Buffer((128, 64), "float32")):
    for bx in T.thread_binding(2, thread="blockIdx.x"):
        Z = T.alloc_buffer((64, 64), scope="wgmma.accumulator")
        for t in T.thread_binding(128, thread="threadIdx.x"):
            T.wgmma_fill(Z.data, 0, 64, T.float32(0))
        for k in T.serial(5, annotations={"software_pipeline_stage": [0, 0, 2], "software_pipeline_order": [0, 1, 2], "software_pipeline_async_stages": [0], "software_pipeline_products_in_flight": 1, "software_pipeline_tensor_copies": 1, "software_pipeline_producer": 1, "software_pipeline_multicast": 2}):
            S = T.alloc_buffer((64, 64), "float16", scope="shared.panels")
            U = T.alloc_buffer((64, 64), "float16", scope="shared.panels")
            for t in T.thread_binding(128, thread="threadIdx.x"):
                for i, v in T.grid(4, 8):
                    S[(i * 128 + t) // 8, t % 8 * 8 + v] = A[bx * 64 + (i * 128 + t) // 8, k * 64 + t % 8 * 8 + v]
            for t in T.thread_binding(128, thread="threadIdx.x"):
                for i, v in T.grid(4, 8):
                    U[(i * 128 + t) // 8, t % 8 * 8 + v] = B[k * 64 + (i * 128 + t) // 8, t % 8 * 8 + v]
            for t in T.thread_binding(128, thread="threadIdx.x"):
                for j in range(4):
                    T.wgmma_mma(Z.data, 0, 64, S.access_ptr("r", offset=j * 16), 64, U.access_ptr("r", offset=j * 1024), 64, "row_major")
        for t in T.thread_binding(128, thread="threadIdx.x"):
            T.wgmma_store(Z.data, 0, 64, C.access_ptr("w", offset=bx * 4096), 64)
]], "boxes", "cuda -arch=sm_90a")
LUA
"$program" export.lua

cat >use.c <<'C'
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "boxes.h"
#include "gemm.h"
#include "gemm.h"
#include "two.h"

extern int cuInit(unsigned flags), cuDeviceGet(int *device, int ordinal);
extern int cuDevicePrimaryCtxRetain(void **context, int device), cuCtxSetCurrent(void *context);
extern int cuMemAlloc_v2(uint64_t *at, size_t bytes), cuMemFree_v2(uint64_t at);
extern int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes), cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes);

static void must(int result, const char *what) {
  if (!result) return;
  fprintf(stderr, "%s: %d\n", what, result);
  exit(1);
}

static char *image(const char *path) {
  static char bytes[1 << 20];
  FILE *file = fopen(path, "rb");
  if (!file) exit(2);
  bytes[fread(bytes, 1, sizeof bytes - 1, file)] = 0;
  fclose(file);
  return bytes;
}

static uint64_t on_device(const void *from, size_t bytes) {
  uint64_t at;
  must(cuMemAlloc_v2(&at, bytes), "memory");
  if (from) must(cuMemcpyHtoD_v2(at, from, bytes), "to the device");
  return at;
}

enum { N = 33, M = 26, K = 30 };
static float a[N * K], b[K * M], c[N * M];

static void use_gemm(void) {
  struct NAME_module module;
  for (int i = 0; i < N * K; i++) a[i] = (float)(i % 7 - 3);
  for (int i = 0; i < K * M; i++) b[i] = (float)(i % 5 - 2);
  uint64_t da = on_device(a, sizeof a), db = on_device(b, sizeof b), dc = on_device(NULL, sizeof c);
  must(NAME_load(&module, image("gemm.cubin")), "load");
  must(NAME_launch(&module, da, db, dc, 0, NULL), "launch");
  must(cuMemcpyDtoH_v2(c, dc, sizeof c), "from the device");
  must(NAME_unload(&module), "unload");
  for (int i = 0; i < N; i++)
    for (int j = 0; j < M; j++) {
      float sum = 0;
      for (int k = 0; k < K; k++) sum += a[i * K + k] * b[k * M + j];
      must(sum != c[i * M + j], "an element of the product");
    }
  must(NAME_WORKSPACE != 0, "a workspace");
  must(cuMemFree_v2(da) | cuMemFree_v2(db) | cuMemFree_v2(dc), "free");
}

static void use_two(void) {
  struct two_module module;
  float x[64], y[64];
  for (int i = 0; i < 64; i++) x[i] = (float)i;
  uint64_t dx = on_device(x, sizeof x), dy = on_device(NULL, sizeof y), between = on_device(NULL, two_WORKSPACE);
  must(two_load(&module, image("two.cubin")), "load");
  must(two_launch(&module, dx, 0x4200, -5, 0x3f80, dy, between, NULL), "launch"); /* 3.0, -5, 1.0 */
  must(cuMemcpyDtoH_v2(y, dy, sizeof y), "from the device");
  must(two_unload(&module), "unload");
  for (int i = 0; i < 64; i++) must(y[i] != 3 * x[i / 32 * 32 + 31 - i % 32] - 6, "an element");
  must(cuMemFree_v2(dx) | cuMemFree_v2(dy) | cuMemFree_v2(between), "free");
}

/* Halves are 0, 1 and 2, as a product of rows and columns has them. */
static void use_boxes(void) {
  static const uint16_t halves[] = {0, 0x3c00, 0x4000};
  static uint16_t x[128 * 320], y[320 * 64];
  static float z[128 * 64];
  struct boxes_module module;
  for (int i = 0; i < 128 * 320; i++) x[i] = halves[i % 7 % 3];
  for (int i = 0; i < 320 * 64; i++) y[i] = halves[i % 11 % 3];
  uint64_t dx = on_device(x, sizeof x), dy = on_device(y, sizeof y), dz = on_device(NULL, sizeof z);
  must(boxes_load(&module, image("boxes.cubin")), "load");
  must(boxes_launch(&module, dx, dy, dz, 0, NULL), "launch");
  must(cuMemcpyDtoH_v2(z, dz, sizeof z), "from the device");
  must(boxes_launch(&module, dx + 2, dy, dz, 0, NULL) != 1, "a launch on a tensor that TMA cannot copy");
  must(boxes_unload(&module), "unload");
  for (int i = 0; i < 128; i++)
    for (int j = 0; j < 64; j++) {
      int sum = 0;
      for (int k = 0; k < 320; k++) sum += (i * 320 + k) % 7 % 3 * ((k * 64 + j) % 11 % 3);
      must((float)sum != z[i * 64 + j], "an element of the product with TMA copies");
    }
  must(cuMemFree_v2(dx) | cuMemFree_v2(dy) | cuMemFree_v2(dz), "free");
}

/* What a caller does: a context is current. */
static void start(void) {
  int device;
  void *context;
  must(cuInit(0), "start");
  must(cuDeviceGet(&device, 0), "device");
  must(cuDevicePrimaryCtxRetain(&context, device), "context");
  must(cuCtxSetCurrent(context), "current context");
}

int main(void) {
  start();
  use_boxes();
  use_gemm();
  use_two();
  return 0;
}
C
grep -q "__launch_bounds__(256)" boxes.cu || { echo "there is no producer warp group"; exit 1; }
grep -q "ms_multicast_copy_2d(ms_at_U" boxes.cu || { echo "a cluster multicasts nothing"; exit 1; }
name=$(sed -n '1s/^.*the kernels of \([^,]*\),.*/\1/p' gemm.c)
sed -i "s/NAME/$name/g" use.c

for file in gemm two boxes; do
  ${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -pedantic -c "$file.c"
  others=$(nm -u "$file.o" | grep -v '^ *U cu' || true)
  [ -z "$others" ] || { echo "$file.c needs more than libcuda: $others"; exit 1; }
done
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror $flags use.c gemm.o two.o boxes.o "$fake_cuda" -Wl,-rpath,"$(dirname "$fake_cuda")" -o use
./use

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ -x "$nvcc" ]; then
  for file in gemm two boxes; do # as the source's head says
    words=$(sed -n 's/^ \* Compile with nvcc \(.*\), or with NVRTC.*/\1/p' "$file.cu")
    # shellcheck disable=SC2086
    "$nvcc" ${words:?} -Werror all-warnings -c "$file.cu" -o "$file.cu.o"
  done
  echo "launcher: ok, nvcc compiles the source"
else
  echo "launcher: ok, nvcc skipped: it is not installed"
fi
