#!/bin/sh
# What the scheduling model is worth: GEMM 1024^3 tuned for this machine by the CPU name that LLVM gives it and by ours,
# the features being the same, seed by seed, one after the other so that a busy machine hits both alike. Each line has
# both
# rates and OpenBLAS's of the same runs, in GFLOP/s.  usage: gemm_targets.sh MSCHED [SEEDS [TRIALS]]
set -eu
msched=$1 seeds=${2:-5} trials=${3:-128}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/named.lua" <<'END'
local ms = require "msched"
local host = ms.host()
local own, name = ms.target "native", "llvm -mcpu=" .. host.llvm_cpu
local list = {}
for f in host.beyond:gmatch "%S+" do list[#list + 1] = "+" .. f end
for f in host.missing:gmatch "%S+" do list[#list + 1] = "-" .. f end
print(own.text)
print(ms.target(name .. (#list > 0 and " -mattr=" .. table.concat(list, ",") or "")).text)
END
"$msched" "$work/named.lua" >"$work/targets"
ours=$(sed -n 1p "$work/targets") llvms=$(sed -n 2p "$work/targets")
echo "ours:   $ours"
echo "LLVM's: $llvms"
[ "$ours" != "$llvms" ] || { echo "they are the same: nothing to measure"; exit 0; }
rates() { # target, seed: msched's rate and OpenBLAS's
  "$msched" bench gemm --target "$1" --seed "$2" --trials "$trials" --json -- 1024 1024 1024 | awk '{
    match($0, /"seconds":[0-9.e+-]*,"shape"/); own = substr($0, RSTART + 10)
    other = match($0, /"openblas":{[^}]*}/) ? substr($0, RSTART, RLENGTH) : ""
    sub(/.*"seconds":/, "", other)
    printf "%.0f (OpenBLAS %.0f)", 2.147483648 / own, other ? 2.147483648 / other : 0 }'
}
for seed in $(seq "$seeds"); do echo "seed $seed: ours $(rates "$ours" "$seed"), LLVM's name $(rates "$llvms" "$seed")"; done
