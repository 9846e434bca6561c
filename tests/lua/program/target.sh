#!/bin/sh
# Targets in the program: a record's target makes its code again; records of other targets, known or not, stop nothing.
# usage: target.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/store.db
gemm=$root/lua/examples/gemm.lua
fail() { echo "target.sh: $*" >&2; exit 1; }
refused() { # words of the message, command…
  words=$1
  shift
  status=0
  "$@" >/dev/null 2>"$work/err" || status=$?
  [ "$status" = 1 ] || fail "exit status $status, not 1: $*"
  grep -qF -- "$words" "$work/err" || fail "no \`$words\` in: $(cat "$work/err"), of: $*"
}

"$msched" tune "$gemm" --trials 2 --policy replay_trace --db "$db" -- 32 32 32 >/dev/null
"$msched" top --db "$db" --json >"$work/top"
id=$(head -n 1 "$work/top" | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/')
target=$(head -n 1 "$work/top" | sed 's/.*"target":"\([^"]*\)".*/\1/')

# ---- Its text makes it again
"$msched" doctor | grep -qxF "target     $target" || fail "doctor does not call this machine $target"
[ "$("$msched" top --target native --db "$db")" = "$("$msched" top --target "$target" --db "$db")" ] || fail "native is not $target"
"$msched" top --target native --db "$db" | grep -q "$id" || fail "no record of native"
"$msched" export "$id" -o "$work/kernel.s" --db "$db"
mv "$work/kernel.s" "$work/recorded.s"
"$msched" export "$id" --target native -o "$work/kernel.s" --db "$db"
cmp "$work/kernel.s" "$work/recorded.s" || fail "a record is exported as other code than what this machine gets"
cat >"$work/best.lua" <<'END'
local ms = require "msched"
local A, B = ms.te.placeholder({16, 16}, "float32", "A"), ms.te.placeholder({16, 16}, "float32", "B")
local f = ms.te.func("product", {A, B, ms.ops.matmul(A, B)})
for _, text in ipairs {"native", ms.target().text, "llvm -mcpu=rocketlake", "x86-64-v4", "x86-64-v3,+avx512vnni"} do
  local t = ms.target(text)
  local again = ms.target(t.text)
  for _, field in ipairs {"text", "cpu", "vector_bits", "vector_registers", "cores"} do
    assert(t[field] == again[field], text .. ": its " .. field .. " is another")
  end
end
local best = ms.tune(f, {trials = 1, policy = "replay_trace", db = arg[1]})
assert(best:build():target() == ms.target("native").text)
assert(ms.build(f, {target = "native"}):target() == ms.target().text)
END
"$msched" "$work/best.lua" "$work/best.db" || fail "best:build is for another target"

# ---- Other targets: exported whatever this machine is, run only where it has all
"$msched" export "$id" --target "llvm -mtriple=aarch64-linux-gnu" -o "$work/arm.s" --db "$db"
grep -q 'fmla\|fmadd' "$work/arm.s" || fail "no code for ARM64"
"$msched" export "$id" --target x86-64-v2 -o "$work/v2.s" --db "$db"
! grep -q '%ymm' "$work/v2.s" || fail "code for x86-64-v2 has wider registers"
"$msched" export "$id" --target "x86-64-v2,+xop" -o "$work/xop.s" --db "$db"
if ! "$msched" doctor | grep -q '^features.* xop'; then
  refused "this machine lacks" "$msched" replay "$id" --target "x86-64-v2,+xop" --db "$db"
  refused "this machine lacks" "$msched" tune "$gemm" --target "x86-64-v2,+xop" --trials 1 --db "$work/xop.db" -- 16 16 16
fi

# ---- A store whose records are of targets that are not known, and of one as older versions wrote it
old="llvm -mcpu=marslake -num-cores=2"
older="llvm -mcpu=rocketlake -num-cores=2 -mattr=+prfchw,-cldemote,+avx,+aes,+64bit,+avx10.1-256,+evex512,+avx512f,-xop"
for text in "$old" "$older"; do
  "$msched" db export --db "$db" | sed "s/$target/$text/" >"$work/lines"
  "$msched" db import "$work/lines" --db "$work/old.db" >/dev/null
done
"$msched" db check --db "$work/old.db" | grep -qx clean || fail "a store of old targets is not clean"
"$msched" top --db "$work/old.db" | grep -qF -- "$old" || fail "top does not show records of $old"
first() { "$msched" top --target "$1" -k 1 --db "$work/old.db" --json | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/'; }
unknown=$(first "$old") known=$(first "$older")
[ -n "$unknown" ] && [ -n "$known" ] || fail "top --target finds no record by an old text"
"$msched" show "$unknown" --db "$work/old.db" | grep -qF -- "$old" || fail "show does not name $old"
for command in "replay $unknown" "export $unknown -o $work/old.s"; do
  refused "is of \`$old\`, which is no target here" "$msched" $command --db "$work/old.db"
  refused "say which with --target" "$msched" $command --db "$work/old.db"
done
"$msched" replay "$unknown" --target native --db "$work/old.db" >/dev/null || fail "an old record is not replayed on this machine"
"$msched" export "$known" -o "$work/older.s" --db "$work/old.db" || fail "an old text of a known target is not read"
grep -q vfmadd "$work/older.s" || fail "an old text of a known target makes other code"
"$msched" tune "$gemm" --trials 2 --policy replay_trace --db "$work/old.db" -- 32 32 32 >"$work/tuned" || fail "old records stop tuning"
"$msched" top --target native --db "$work/old.db" | grep -qF -- "$target" || fail "nothing was measured here"
# ---- A GPU that is not there: its design space is opened, its traces are applied and lowered, runs are refused
export MSCHED_LIBCUDA=/nonexistent
gpu="cuda -arch=sm_80"
"$msched" space "$root/lua/examples/gemm.py" --target "$gpu" --json >"$work/space" || fail "no space for $gpu"
grep -q 'blockIdx.x.*threadIdx.x' "$work/space" || fail "nothing is bound in the space for $gpu"
for command in "tune $gemm --trials 1 --db $work/gpu.db" "run $root/lua/examples/gemm.py"; do
  refused "CUDA's driver is missing" "$msched" $command --target "$gpu"
done
refused "the suffix says the form: .cu .ptx .cubin .h .c" "$msched" export "$id" -o "$work/gpu.s" --db "$db" --target "$gpu"
"$msched" export "$id" -o "$work/gpu.cu" --db "$db" --target "$gpu" || fail "no source for $gpu"
grep -q __global__ "$work/gpu.cu" || fail "no kernel in the source for $gpu"
head -n 1 "$root/lua/bench/data/cuda/GMM_RELU.jsonl" >"$work/sketch.json"
"$msched" lower "$root/lua/bench/data/workloads/GMM_RELU.py" --target "$gpu" --trace "$work/sketch.json" \
  --dump-after all >"$work/lowered" || fail "not lowered for $gpu"
grep -q "# after barriers" "$work/lowered" && grep -q tvm_storage_sync "$work/lowered" || fail "no barriers for $gpu"
for names in unswitch:version cse:share; do # as they were called
  for name in ${names%:*} ${names#*:}; do
    "$msched" lower "$root/lua/examples/softmax.lua" --target x86-64-v3 --dump-after $name >"$work/lowered.$name" || fail "no pass $name"
  done
  cmp -s "$work/lowered.${names%:*}" "$work/lowered.${names#*:}" && [ -s "$work/lowered.${names%:*}" ] || fail "$names"
done
refused "no pass of the lowering is named \`workspace\`" "$msched" lower "$root/lua/examples/gemm.py" --target "$gpu" --dump-after workspace
refused "known are sm_70" "$msched" space "$root/lua/examples/gemm.py" --target "cuda -arch=sm_10"
echo "target: ok"
