#!/bin/sh
# Tuning for CUDA end to end without a GPU: a driver and an NVRTC of the tests' own (tests/cuda/fake) run kernels on
# this CPU. What is found wrong of a machine is one message, and nothing that was measured is lost.
# usage: cuda.sh MSCHED SOURCES DRIVER NVRTC NVML
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "cuda: $*"; exit 1; }
g++ --version >/dev/null 2>&1 || { echo "cuda: skipped: there is no g++"; exit 77; }
export MSCHED_LIBCUDA=$3 MSCHED_NVRTC=$4 MSCHED_LIBNVML=$5 FAKE_NVRTC_FOLDER=$work FAKE_NVRTC_KEEPS=1
gemm=$root/lua/examples/gemm.lua target="cuda -arch=sm_90" db=$work/gpu.db

refused() { # words of the message, command…
  words=$1
  shift
  status=0
  "$@" >"$work/out" 2>"$work/err" || status=$?
  [ "$status" = 1 ] || fail "exit status $status, not 1: $*"
  grep -qF -- "$words" "$work/err" || fail "no \`$words\` in: $(cat "$work/err"), of: $*"
  [ "$(wc -l <"$work/err")" = 1 ] || fail "more than one message: $(cat "$work/err")"
}
records() { "$msched" top --db "$db" | grep -c "cuda -arch=sm_90" || true; }

# ---- A machine with a device
# Blocks of 256 threads, which the peak is measured with, are not run, and take a millisecond; of 128, as wgmma's, take
# 20; half of that on small whole numbers, which nothing is timed on.
# Of so large a cache as an H100's the copy is of 26 million numbers, which each command draws: these have a tenth.
export FAKE_CUDA_EASY=0.5 FAKE_CUDA_L2=5242880
peak() { FAKE_CUDA_FAULTS="256=0 128=0" FAKE_CUDA_TIMES="256=1 128=20" "$msched" doctor; }
FAKE_CUDA_DEVICES="90 80" FAKE_NVML_CLOCKS="1980 2619 1" peak >"$work/doctor"
grep -q "^CUDA *driver 13.0" "$work/doctor" && grep -q "^NVRTC *13.0" "$work/doctor" || fail "no versions: $(cat "$work/doctor")"
grep -q "^clocks *0: 1.98 GHz now, its memory 2.62 GHz; slowed, for heat or power" "$work/doctor" || fail "no clocks: $(cat "$work/doctor")"
grep -q "^GPU peak *0: 70867 GFLOP/s of float32, 21.0 GB/s, at 1.98 GHz" "$work/doctor" || fail "no peak: $(cat "$work/doctor")"
grep -q "^tensor *0: 907097 GFLOP/s of float16, 907097 GFLOP/s of bfloat16, 453549 GFLOP/s of TF32, 1814194 GOP/s of int8$" "$work/doctor" ||
  fail "no peak of tensor cores: $(cat "$work/doctor")"
FAKE_CUDA_DEVICES=80 peak >"$work/other"
grep -q "^tensor *0: 1133871 GFLOP/s of float16, " "$work/other" || fail "an A100 has no wgmma: $(cat "$work/other")"
MSCHED_LIBNVML=/nonexistent peak >"$work/other"
grep -q "^clocks *not known: NVML is missing (/nonexistent" "$work/other" || fail "it is not said that NVML is missing: $(cat "$work/other")"
grep -q "^GPU peak *0: 70867 GFLOP/s of float32, 21.0 GB/s$" "$work/other" || fail "no peak without clocks: $(cat "$work/other")"
MSCHED_NVRTC=/nonexistent "$msched" doctor >"$work/other"
grep -q "^tensor *not measured: .*NVRTC is missing" "$work/other" || fail "it is not said why tensor cores have no peak: $(cat "$work/other")"
grep -q "^GPU peak *not measured: .*NVRTC is missing" "$work/other" || fail "it is not said why there is no peak: $(cat "$work/other")"
grep -q "0: Fake 90, sm_90, 132 processors, 80 GiB, L2 5 MiB, at most 1.50 GHz; 1: Fake 80, sm_80" "$work/doctor" || fail "no devices"

# What the peak is measured with, when tuning begins, is named so. The copy that measures the bandwidth is run in the
# first run of tuning; from then on it only takes its time: its 80,000 threads take this CPU a tenth of a second.
export FAKE_CUDA_SKIPPED=peak
FAKE_CUDA_TIMES="256=1" "$msched" tune "$gemm" --target "$target" --trials 6 --db "$db" -- 24 40 20 >"$work/tuned" 2>&1 || fail "not tuned: $(cat "$work/tuned")"
grep -q "% of the roofline, 2.6 GB/s of the L2 cache, as measured" "$work/tuned" || fail "the device's memory is not measured: $(cat "$work/tuned")"
export FAKE_CUDA_SKIPPED="peak bandwidth"
[ "$(records)" = 6 ] || fail "$(records) records, not 6"
# Of what tensor cores multiply, their peak; of halves that they do not, none.
cat >"$work/halves.lua" <<'EOF'
local te = require("msched").te
local A, B, r = te.placeholder({64, 64}, "float16", "A"), te.placeholder({64, 64}, "float16", "B"), te.reduce_axis(64, "k")
return {te.func("halves", {A, B, te.compute({64, 64}, function(i, j)
  return te.sum(te.cast(A[{i, r}], "float32") * te.cast(B[{r, j}], "float32"), r)
end, "C")}), te.func("sums", {A, B, te.compute({64, 64}, function(i, j) return A[{i, j}] + B[{i, j}] end, "D")})}
EOF
FAKE_CUDA_TIMES="256=1" "$msched" tune "$work/halves.lua" --target "$target" --trials 1 --db "$work/halves.db" >"$work/halves" 2>&1 || fail "halves: $(cat "$work/halves")"
grep -q "^halves: [0-9]* % of the roofline, 2.6 GB/s of the L2 cache, as measured" "$work/halves" || fail "no share of the limit: $(cat "$work/halves")"
! grep "^sums: " "$work/halves" | grep -q "tensor cores" || fail "sums of halves have a share of products' peak: $(cat "$work/halves")"
cat >"$work/limits.lua" <<'EOF'
-- What bounds functions on the device, as measured: products of halves the tensor cores, used or not; of float32 those only where a schedule
-- rounds to TF32; float32 itself CUDA cores.
local ms = msched
local te, target, limits = ms.te, ms.target(arg[1]), ms.load "lua.bench.limits".open()
local function product(of, n)
  local A, B, r = te.placeholder({n, n}, of, "A"), te.placeholder({n, n}, of, "B"), te.reduce_axis(n, "r")
  local function wide(x) return of == "float32" and x or te.cast(x, of == "int8" and "int32" or "float32") end
  return te.func("product", {A, B, te.compute({n, n}, function(i, j) return te.sum(wide(A[{i, r}]) * wide(B[{r, j}]), r) end, "C")})
end
for _, of in ipairs {"float16", "bfloat16", "int8"} do
  local limit = limits:of(product(of, 64), target)
  assert(limit.arithmetic.name == "tensor cores on " .. of and limit.unit.name == "tensor cores" and limit.memory.name == "the L2 cache", of .. ": " .. limit.arithmetic.name)
end
local plain = limits:of(product("float32", 64), target)
assert(plain.arithmetic.name == "CUDA cores" and plain.unit == nil and math.abs(plain.arithmetic.seconds - 2 * 64 ^ 3 / 70867e9) < 1e-3 * plain.arithmetic.seconds)
assert(limits:of(product("float32", 8192), target).memory.name == "memory")
EOF
FAKE_CUDA_TIMES="256=1" "$msched" "$work/limits.lua" "$target" || fail "limits of the device"
! grep -q busy "$work/tuned" || fail "a busy host is no busy device"
id=$("$msched" top --target "$target" -k 1 --db "$db" | awk '/cuda/ {print $2}')
"$msched" replay "$id" --db "$db" >"$work/replayed" && grep -q "by 0, everywhere" "$work/replayed" || fail "the best is not replayed"
grep -q ": 10.00 us .*; recorded 10.00 us" "$work/replayed" || fail "a replay is timed on other data: $(cat "$work/replayed")"
"$msched" export "$id" -o "$work/best.cu" --db "$db" || fail "the best is not exported"
"$msched" show "$id" --db "$db" >"$work/shown"
grep -q "^kernel [a-z_0-9]*: [1-9][0-9]* threads a block, .*[0-9] bytes of shared memory" "$work/shown" ||
  fail "it is not shown what a kernel takes: $(head -3 "$work/shown")"
grep -q "^as measured: Fake 90; driver 13.0; at 1.50 GHz, its memory 1.00 GHz; timed at 1.50 GHz; 32 registers, 0 bytes spilled; 0 bytes of stack, [0-9]* of shared memory$" "$work/shown" ||
  fail "it is not shown what is kept of the device: $(head -3 "$work/shown")"
"$msched" top --db "$db" --json -k 1 | grep -q '"device": \?{.*"clock": \?1500000000,.*"registers": \?32' || fail "top has no device: $("$msched" top --db "$db" --json -k 1)"
"$msched" db list --db "$db" | grep -q "cuda -arch=sm_90, 6 records, .*, on Fake 90, last" || fail "no device: $("$msched" db list --db "$db")"
[ "$("$msched" top --db "$db" --json --device "fake 90" | wc -l)" = 6 ] || fail "the device's records are not chosen"
[ "$("$msched" top --db "$db" --json --device "sm_90" | wc -l)" = 0 ] || fail "a device is chosen by its target"
"$msched" report --db "$db" -o "$work/report.html" >/dev/null && grep -q "as measured: Fake 90; driver 13.0" "$work/report.html" || fail "no device in the report"
grep -q "__global__" "$work/report.html" && grep -q "<p>kernel [a-z_0-9]*: [1-9][0-9]* threads a block, 32 registers" "$work/report.html" || fail "no code in the report"
# Of records whose sources differ; those of two traces may be the same.
for other in $("$msched" top --db "$db" -k 6 | awk '/cuda/ {print $2}'); do
  "$msched" diff "$id" "$other" --assembly --db "$db" >"$work/diff" || fail "records are not compared"
  ! grep -q "^    [-+] .*\[" "$work/diff" || break
done
grep -q "^source:$" "$work/diff" && grep -q "^    [-+] .*\[" "$work/diff" &&
  [ "$(grep -c "^  [-+] kernel .* 32 registers, " "$work/diff")" = 2 ] || fail "code of GPUs is not compared: $(cat "$work/diff")"
# The roofline is the device's, in what its best multiplies; of a device that is not here, none.
FAKE_CUDA_TIMES="256=1" FAKE_CUDA_FAULTS="256=0" "$msched" report --db "$work/halves.db" --peak -o "$work/report.html" halves >/dev/null || fail "no report of a device"
grep -q "measured peak.*1133871 GFLOP/s of tensor cores on float16, 2.6 GB/s of the L2 cache, on Fake 90" "$work/report.html" &&
  grep -q "of what Fake 90 was measured to reach: 2.6 GB/s of the L2 cache" "$work/report.html" || fail "the report has no roofline of the device"
FAKE_CUDA_DEVICES=86 "$msched" report --db "$db" --peak -o "$work/report.html" >/dev/null &&
  grep -q "was not measured: Fake 90 is not found here" "$work/report.html" || fail "a device that is not here has a roofline"
"$msched" show "$id" --db "$db" --json >"$work/shown"
grep -q '"kernels": \?\[{.*"registers": \?32' "$work/shown" || fail "nor as JSON: $(cat "$work/shown")"

# ---- One schedule, and what is not done of it
nest='[["GetSBlock", [], ["C", "main"], ["b"]], ["GetLoops", ["b"], [], ["i","j","k"]]'
run() { # instructions after these, arguments…
  echo "[[${nest#[}, $1], []]" >"$work/trace.json"
  shift
  FAKE_CUDA_TIMES="40=0.25" "$msched" run "$gemm" --target "$target" --trace "$work/trace.json" "$@" -- 24 40 20 >"$work/run"
}
bind='["Bind", ["i"], ["blockIdx.x"], []], ["Bind", ["j"], ["threadIdx.x"], []]'
run "$bind" || fail "a schedule is not run"
grep -q "compiled for $target: the same results; 250.000 us \[250.000, 250.000\]" "$work/run" || fail "it is not timed by events: $(cat "$work/run")"
! grep -q "^note" "$work/run" || fail "a note on what is done: $(cat "$work/run")"
run '["Parallel", ["i"], [], []]' || fail "a schedule without threads is not run"
grep -q "^note: loop i is not parallel on a GPU, where bind makes threads" "$work/run" && grep -q "^note: loop i is not bound, nor is any loop in it: one thread" "$work/run" ||
  fail "it is not said that one thread runs it: $(cat "$work/run")"
run '["Parallel", ["i"], [], []]' --json
grep -q '"notes": \?\["loop i is not' "$work/run" || fail "nor as JSON: $(cat "$work/run")"
printf '%s\n' 'local ms = require "msched"' 'ms.space {rules = {"inline_constant_scalars"}, postprocs = {"disallow_dynamic_loop"}, mutators = {}}' >"$work/bare.lua"
"$msched" tune "$gemm" --target "$target" --rules "$work/bare.lua" --trials 1 --db "$work/bare.db" -- 24 40 20 >"$work/out" 2>&1 || fail "a space without threads: $(cat "$work/out")"
"$msched" show best --db "$work/bare.db" | grep -q "^note: loop i is not bound, nor is any loop in it: one thread" || fail "show does not say that one thread runs it"
"$msched" export best -o "$work/bare.cu" --db "$work/bare.db" 2>&1 | grep -q "note: loop i is not bound" || fail "nor does export"
(target="cuda -arch=sm_90 -max_threads_per_block=32" && run "$bind") || fail "what a block has not is an error"
grep -q "not compiled: a block has more threads than the target allows" "$work/run" || fail "too many threads: $(cat "$work/run")"
FAKE_NVRTC_REGISTERS=2000 run "$bind" || fail "what a thread has not is an error"
grep -q "not compiled: .*2000 registers a thread, .* the target has 65536" "$work/run" || fail "too many registers: $(cat "$work/run")"

# ---- A target that names no architecture is that of the first device
FAKE_CUDA_DEVICES="86 90" "$msched" tune "$gemm" --target cuda --no-tune --db "$work/first.db" -- 32 32 32 >"$work/out" || fail "the device is not asked"
grep -q "on cuda -arch=sm_86:" "$work/out" || fail "not the first device's: $(cat "$work/out")"
FAKE_CUDA_DEVICES=90 "$msched" tune "$gemm" --target cuda --no-tune --db "$work/first.db" -- 32 32 32 >"$work/out" || fail "the device is not asked"
grep -q "on cuda -arch=sm_90a:" "$work/out" || fail "not what that device alone has: $(cat "$work/out")"
MSCHED_LIBCUDA=/nonexistent refused "no device is found here: say which GPU" "$msched" tune "$gemm" --target cuda --no-tune --db "$work/first.db" -- 32 32 32

# ---- Without measuring: proposals whose registers spill, or whose wgmma is serialized, come after those that do not
first() { # the record that a new store gets
  "$msched" tune "$gemm" --target "$target" --no-tune --db "$work/$1.db" -- 32 32 32 >"$work/out" 2>&1 || fail "--no-tune: $(cat "$work/out")"
  sed -n 's/.*msched show \([0-9a-f]*\).*/\1/p' "$work/out" | head -1
}
plain=$(first plain)
[ -n "$plain" ] && [ "$(first plain_again)" = "$plain" ] || fail "not the same twice: $plain"
[ "$(FAKE_NVRTC_SPILLS=2 first spills)" != "$plain" ] || fail "a proposal that spills is the first"
[ "$(FAKE_NVRTC_SERIALIZED=2 first waits)" != "$plain" ] || fail "a proposal with serialized wgmma is the first"
[ "$(FAKE_NVRTC_SPILLS=1000 first all_spill)" = "$plain" ] || fail "where all proposals spill, the first is not the first"

# ---- What a record's kernels take: as ptxas reports, or without NVRTC the estimate, marked as one
gemm_db=$work/plain.db
FAKE_NVRTC_REGISTERS=77 "$msched" show "$plain" --db "$gemm_db" >"$work/shown"
grep -q "^kernel gemm[a-z_0-9]*: [1-9][0-9]* threads a block, 77 registers, 0 bytes spilled, 0 of stack, [0-9]* bytes of shared memory$" "$work/shown" ||
  fail "not the assembler's registers: $(grep "^kernel" "$work/shown")"
! grep -q "not assembled\|about" "$work/shown" || fail "the estimate is shown beside the reported numbers: $(cat "$work/shown")"
MSCHED_NVRTC=/nonexistent "$msched" show "$plain" --db "$gemm_db" --json >"$work/shown"
grep -q '"no_code": \?"not assembled: .*NVRTC is missing' "$work/shown" && ! grep -q '"registers"' "$work/shown" || fail "it is not said why as JSON: $(cat "$work/shown")"
about=$(sed -n 's/.*"estimated_registers": \?\([1-9][0-9]*\).*/\1/p' "$work/shown")
MSCHED_NVRTC=/nonexistent "$msched" show "$plain" --db "$gemm_db" >"$work/shown"
grep -q "^kernel gemm[a-z_0-9]*: [1-9][0-9]* threads a block, about $about registers, [0-9]* bytes of shared memory$" "$work/shown" ||
  fail "not the estimate, $about: $(grep "^kernel" "$work/shown")"
grep -q "^not assembled: .*NVRTC is missing" "$work/shown" || fail "it is not said why: $(head -3 "$work/shown")"
cat >"$work/sums.lua" <<'END'
-- A record of a thread that keeps 1024 sums, of a product of 64. usage: sums.lua STORE TARGET
local ms = require "msched"
local func, store = ms.ops.func("matmul", {"64", "64", "64"}), ms.store(arg[1])
local sch = ms.schedule(func)
local c = sch:get_sblock "C"
local i, j, k = sch:get_loops(c)
local i0, i1 = sch:split(i, {2, 32})
local j0, j1 = sch:split(j, {2, 32})
sch:reorder(i0, j0, k, i1, j1)
sch:bind(i0, "blockIdx.x")
sch:bind(j0, "threadIdx.x")
sch:reverse_compute_at(sch:cache_write(c, 0, "local"), j0)
store:put {workload = store:put_workload(func), target = arg[2], trace = sch.trace, hash = sch:hash(), status = "unmeasured", seed = 1, candidate = 1}
END
"$msched" "$work/sums.lua" "$work/sums.db" "$target"
MSCHED_NVRTC=/nonexistent "$msched" show best --db "$work/sums.db" >"$work/shown"
grep -q "^kernel [a-z_0-9]*: 2 threads a block, more in a thread than registers hold, 0 bytes of shared memory$" "$work/shown" ||
  fail "1024 sums have registers: $(grep "^kernel" "$work/shown")"

# ---- Candidates that fail: each is counted by its name, and the run ends by itself with a best
FAKE_CUDA_FAULTS="$(seq -f '%g=700' -s ' ' 2 3 1024)" "$msched" tune "$gemm" --target "$target" --trials 6 --db "$work/faults.db" \
  --seed 3 --policy evolutionary -- 32 32 32 >"$work/tuned" 2>&1 || fail "faults end the run: $(cat "$work/tuned")"
grep -q "failed: .*illegal address" "$work/tuned" || fail "no fault by its name: $(cat "$work/tuned")"

# ---- A kernel that never ends, where two devices are: its process is killed, its name counted, and the second device,
# which runs the code, goes on with the rest in a fresh one; nothing of what was measured is lost
two() { # store, arguments…
  store=$work/$1.db
  shift
  FAKE_CUDA_DEVICES="80 90" "$msched" tune "$gemm" --target "$target" --seed "$seed" --policy evolutionary --run-timeout 2 --db "$store" "$@" -- 32 32 32 >"$work/tuned" 2>&1 ||
    fail "two devices: $(cat "$work/tuned")"
}
threads_of() { # store, the record's place among its best
  "$msched" show "$("$msched" top --db "$1" | awk '/cuda/ {print $2}' | sed -n "$2p")" --db "$1" | sed -n 's/^kernel [^:]*: \([0-9]*\) threads.*/\1/p'
}
# Two that begin together, of as many threads: did one end, the other would be cut short by it.
seed=0 threads='' other=none
while [ "$threads" != "$other" ]; do
  seed=$((seed + 1))
  [ "$seed" -le 20 ] || fail "no two candidates have as many threads"
  two "hang$seed" --trials 2
  threads=$(threads_of "$store" 1) other=$(threads_of "$store" 2)
done
first=$("$msched" top --db "$store" | awk '/cuda/ {print $2; exit}')
FAKE_CUDA_FAULTS="$threads=hang" two hangs --trials 2
grep -q "failed: run timeout [1-9]" "$work/tuned" || fail "a kernel that never ends is not counted: $(cat "$work/tuned")"
"$msched" top --db "$work/hangs.db" | grep -q "$first *failed: running took more than 2 s" || fail "no record says that $first never ends"
grep -q "trial 2 of 2, best 10.00 us" "$work/tuned" || fail "a kernel that never ends ends the run: $(cat "$work/tuned")"
two hangs --trials 8 # in all
[ "$("$msched" top --target "$target" -k 100 --db "$work/hangs.db" | grep -c "10.00 us")" -ge 4 ] && "$msched" top -k 100 --db "$work/hangs.db" | grep -q "$first *failed" ||
  fail "what was measured before is lost: $("$msched" top -k 100 --db "$work/hangs.db")"

# ---- A device that disappears: what was measured stays
before=$(records)
export FAKE_CUDA_GONE=$work/gone
rm -f "$work/out"
(until grep -q "trial [0-9]* of" "$work/out" 2>/dev/null || [ -e "$work/gone" ]; do sleep 0.1; done && touch "$work/gone") &
status=0
"$msched" tune "$gemm" --target "$target" --trials 400 --db "$db" -- 24 40 20 >"$work/out" 2>"$work/err" || status=$?
touch "$work/gone"
[ "$status" = 1 ] || fail "exit status $status, not 1, where the device is gone"
grep -q "gone" "$work/err" && [ "$(wc -l <"$work/err")" = 1 ] || fail "it is not said that the device is gone: $(cat "$work/err")"
wait
[ "$(records)" -ge "$before" ] || fail "records are lost with the device"
unset FAKE_CUDA_GONE

# ---- Machines that lack something
tune() { "$msched" tune "$gemm" --target "$1" --trials 20 --db "$db" -- 24 40 20; }
before=$(records)
(FAKE_CUDA_DEVICES=80 refused "no CUDA device runs code for sm_90; there is Fake 80 (sm_80)" tune "$target")
(FAKE_CUDA_VERSION=12040 refused "the driver knows CUDA 12.4, and NVRTC is of 13.0" tune "$target")
(FAKE_CUDA_GONE=/dev/null refused "there is no device (CUDA_ERROR_NO_DEVICE)" tune "$target")
(MSCHED_NVRTC=/nonexistent refused "NVRTC is missing" tune "$target")
# A kernel is compiled for the device when it is loaded: what is only looked at needs no NVRTC.
cat >"$work/load.lua" <<'END'
local ms = require "msched"
local te = ms.te
local A = te.placeholder({64}, "float32", "A")
local sch = ms.schedule(te.func("twice", {A, te.compute({64}, function(i) return A[i] * 2 end, "B")}))
sch:bind(sch:get_loops(sch:get_sblock "B"), "threadIdx.x")
local kernel = ms.build(sch:func(), {target = "cuda -arch=sm_90", load = false})
assert(#kernel:resources() == 1)
kernel:run(table.unpack(ms.arrays_for(sch:func(), 1)))
print "ran"
END
[ "$("$msched" "$work/load.lua")" = ran ] || fail "what was not loaded when it was built does not run"
MSCHED_NVRTC=/nonexistent "$msched" "$work/load.lua" 2>"$work/err" && fail "it ran without NVRTC"
grep -q "load.lua:8: .*NVRTC is missing" "$work/err" || fail "NVRTC is needed before it is called: $(cat "$work/err")"
(FAKE_NVRTC_ARCHS="75 80" refused "NVRTC has no code for sm_90: it knows sm_ 75 80" tune "$target")
refused "target: -arch=sm_91 is not known; known are sm_70" tune "cuda -arch=sm_91"
export MSCHED_LIBCUDA=/nonexistent
refused "CUDA's driver is missing" tune "$target"
refused "CUDA's driver is missing" "$msched" replay "$id" --db "$db"
"$msched" show "$id" --db "$db" >/dev/null || fail "a record for CUDA is not shown without CUDA"
"$msched" export "$id" -o "$work/other.cu" --db "$db" 2>"$work/err" || fail "not exported: $(cat "$work/err")"
grep -q "not checked: .*CUDA's driver is missing" "$work/err" || fail "it does not say that it was not checked"
cmp -s "$work/best.cu" "$work/other.cu" || fail "the source is another without CUDA"
[ "$(records)" = "$before" ] || fail "$(records) records, not $before"

# ---- No process is left of all these runs
for environment in /proc/[0-9]*/environ; do
  process=${environment#/proc/} process=${process%/environ}
  [ "$(cat "/proc/$process/comm" 2>/dev/null)" = msched-helper ] || continue
  ! { tr '\0' '\n' <"$environment"; } 2>/dev/null | grep -qxF "FAKE_NVRTC_FOLDER=$work" || fail "process $process is left"
done
echo "cuda: ok"
