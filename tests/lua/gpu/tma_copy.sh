#!/bin/sh
# usage: tma_copy.sh PROGRAM FAKE_CUDA FAKE_NVRTC OLD_CUDA: a kernel with TMA bulk tensor copies is run by the driver of
# the tests' own, which makes tensor maps, and computes what it should, with a producer warp group too; a record of such
# a kernel is found by tuning, and replayed and exported from the store, one with clusters too; a device that launches
# no clusters refuses those alone; a driver too old for tensor maps is told by name.
set -e
program=$1 fake_cuda=$2 old_cuda=$4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export MSCHED_NVRTC="$3" FAKE_NVRTC_FOLDER="$folder"
# What is compiled is linked with the newer driver.
LD_LIBRARY_PATH=$(dirname "$fake_cuda"):${LD_LIBRARY_PATH:-}
export LD_LIBRARY_PATH

cat >"$folder/run.lua" <<'LUA'
local ms = require "msched"
local text = [[
@T.prim_func(s_tir=True)
def boxes(A: T.Buffer((50, 312), "float16"), B: T.Buffer((312, 64), "float16"), C: T.Buffer((64, 64), "float32")):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        Z = T.alloc_buffer((64, 64), scope="wgmma.accumulator")
        for t in T.thread_binding(128, thread="threadIdx.x"):
            T.wgmma_fill(Z.data, 0, 64, T.float32(0))
        for k in T.serial(5, annotations={"software_pipeline_stage": [0, 0, 2], "software_pipeline_order": [0, 1, 2], "software_pipeline_async_stages": [0], "software_pipeline_tensor_copies": 1}):
            S = T.alloc_buffer((64, 64), "float16", scope="shared.panels")
            U = T.alloc_buffer((64, 64), "float16", scope="shared.panels")
            for t in T.thread_binding(128, thread="threadIdx.x"):
                for i, v in T.grid(4, 8):
                    S[(i * 128 + t) // 8, t % 8 * 8 + v] = T.if_then_else((i * 128 + t) // 8 < 50 and k * 64 + t % 8 * 8 + v < 312, A[(i * 128 + t) // 8, k * 64 + t % 8 * 8 + v], T.float16(0))
            for t in T.thread_binding(128, thread="threadIdx.x"):
                for i, v in T.grid(4, 8):
                    U[(i * 128 + t) // 8, t % 8 * 8 + v] = T.if_then_else(k * 64 + (i * 128 + t) // 8 < 312, B[k * 64 + (i * 128 + t) // 8, t % 8 * 8 + v], T.float16(0))
            for t in T.thread_binding(128, thread="threadIdx.x"):
                for j in range(4):
                    T.wgmma_mma(Z.data, 0, 64, S.access_ptr("r", offset=j * 16), 64, U.access_ptr("r", offset=j * 1024), 64, "row_major")
        for t in T.thread_binding(128, thread="threadIdx.x"):
            T.wgmma_store(Z.data, 0, 64, C.access_ptr("w"), 64)
]]
local COPIES = '"software_pipeline_tensor_copies": 1'
local kernel = ms.build(ms.from_script(text), {target = "cuda -arch=sm_90a"})
local producer = ms.build(ms.from_script((text:gsub(COPIES, COPIES .. ', "software_pipeline_products_in_flight": 1, "software_pipeline_producer": 1'))),
                          {target = "cuda -arch=sm_90a"})
assert(kernel:resources()[1].threads == 128 and producer:resources()[1].threads == 256 and #producer:notes() == 0)
local A, B, C = ms.array({50, 312}, "float16"), ms.array({312, 64}, "float16"), ms.array({64, 64}, "float32")
for i = 0, #A - 1 do A[i] = i % 7 - 3 end
for i = 0, #B - 1 do B[i] = i % 5 - 2 end
local D = ms.array({64, 64}, "float32")
kernel:run(A, B, C)
producer:run(A, B, D)
for i = 0, 63 do
  for j = 0, 63 do
    local sum = 0
    for k = 0, 311 do
      if i < 50 then sum = sum + ((i * 312 + k) % 7 - 3) * ((k * 64 + j) % 5 - 2) end
    end
    assert(C[i * 64 + j] == sum and D[i * 64 + j] == sum, i .. ", " .. j)
  end
end
print "as it should be"
LUA

MSCHED_LIBCUDA=$fake_cuda "$program" "$folder/run.lua" | grep -q "as it should be"
if MSCHED_LIBCUDA=$old_cuda "$program" "$folder/run.lua" >"$folder/said" 2>&1; then echo "an old driver runs it"; exit 1; fi
grep -q "the driver has no cuTensorMapEncodeTiled" "$folder/said" || { cat "$folder/said"; exit 1; }

# A record of the space's, whose decisions ask for a producer warp group, and whose consumers synchronize: made again
# from the store without the rules' file.
cat >"$folder/rules.lua" <<'LUA'
local ms = require "msched"
local targets = ms.load "rules.targets"
ms.space(targets.changed(targets.cuda, {
  rules = {"multi_level_tiling_tensor_core", "inline_constant_scalars", "auto_inline", "auto_bind"},
  multi_level_tiling_tensor_core = function(target)
    local p, own = targets.cuda.multi_level_tiling_tensor_core(target), {}
    for _, g in ipairs(p.groups) do
      if g.sync:find("64x64x16", 1, true) then own[#own + 1] = targets.changed(g, {boxes = {1}, producer = {1}, store_result = false}) end
    end
    p.groups = own
    return p
  end,
}))
LUA
export MSCHED_LIBCUDA="$fake_cuda" FAKE_CUDA_SKIPPED=peak
db=$folder/producer.db
"$program" tune ops:matmul --target "cuda -arch=sm_90a" --rules "$folder/rules.lua" --policy random --trials 3 --db "$db" -- 128 64 128 dtype=float16 \
  accumulate=float32 >"$folder/said" 2>&1 || { cat "$folder/said"; exit 1; }
record=
for id in $("$program" top --db "$db" | awk '/cuda/ {print $2}'); do
  "$program" show "$id" --db "$db" | grep -q '"software_pipeline_producer": 1' && record=$id
done
[ -n "$record" ] || { echo "no record has a producer warp group"; exit 1; }
"$program" replay "$record" --db "$db" >"$folder/said" 2>&1 && grep -q "by 0, everywhere" "$folder/said" || { cat "$folder/said"; exit 1; }
"$program" export "$record" -o "$folder/record.cu" --db "$db"
grep -q "ms_named_barrier(1, " "$folder/record.cu" && grep -q "ms_tensor_copy_2d(" "$folder/record.cu" || { echo "a record's kernel has no producer warp group"; exit 1; }

# Kernels whose blocks are clusters: a device that has none refuses them by name, and tuning goes on.
sed -i 's/own\[#own + 1\] = \(.*\){boxes = {1}, producer = {1}, store_result = false})/for _, n in ipairs {2, 1} do own[#own + 1] = \1{boxes = {1}, producer = {1}, clusters = {n}}) end/' \
  "$folder/rules.lua"
grep -q "clusters = {n}" "$folder/rules.lua"
tune_clusters() {
  "$program" tune ops:matmul --target "cuda -arch=sm_90a" --rules "$folder/rules.lua" --policy random --trials 6 --db "$1" -- 256 128 128 \
    dtype=float16 accumulate=float32 >"$folder/said" 2>&1 || { cat "$folder/said"; exit 1; }
}
FAKE_CUDA_CLUSTERS=1 tune_clusters "$folder/none.db"
"$program" top -k 20 --db "$folder/none.db" >"$folder/top" 2>&1
grep -q " us " "$folder/top" || { echo "nothing but clusters is refused, and no candidate was measured"; exit 1; }
record=$(awk '/the device does not launch clusters of so many thread blocks/ {print $2; exit}' "$folder/top")
[ -n "$record" ] || { echo "a device without clusters launches them"; cat "$folder/top"; exit 1; }
"$program" replay "$record" --db "$folder/none.db" >"$folder/said" 2>&1 && grep -q "by 0, everywhere" "$folder/said" || { cat "$folder/said"; exit 1; }
"$program" export "$record" --force -o "$folder/record.cu" --db "$folder/none.db"
grep -q " __cluster_dims__(2, 1, 1) " "$folder/record.cu" && grep -q "ms_multicast_copy_2d(ms_at_" "$folder/record.cu" || { echo "a record's kernel multicasts nothing"; exit 1; }
echo "tma_copy: ok"
