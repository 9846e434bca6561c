#!/bin/sh
# What may be used counts, not what there is: a process that is bound to one processor has targets of one core.
# usage: cores.sh MSCHED
set -eu
msched=$1
command -v taskset >/dev/null || { echo "cores.sh: no taskset"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "cores.sh: $*" >&2; exit 1; }

one=$(taskset -cp $$ | sed 's/.*: *\([0-9]*\).*/\1/')
total=$(getconf _NPROCESSORS_ONLN)
taskset -c "$one" "$msched" doctor >"$work/bound"
grep -q "^target .* -num-cores=1$" "$work/bound" || fail "the target: $(grep ^target "$work/bound")"
[ "$total" = 1 ] || grep -q "^cores  *1 of $total (affinity)" "$work/bound" || fail "the cores: $(grep ^cores "$work/bound")"
taskset -c "$one" "$msched" doctor --json >"$work/json"
grep -q '"cores":1,"cores_allowed":1,"cores_online":'"$total," "$work/json" ||
  grep -q '"cores":1,"cores_allowed":1,"cores_online":'"$total,\"cores_quota\"" "$work/json" || fail "as JSON: $(cat "$work/json")"
taskset -c "$one" "$msched" tune ops:matmul --trials 1 --db "$work/bound.db" -- 8 8 8 >"$work/tuned"
grep -q "^matmul_8x8x8 on llvm .* -num-cores=1:" "$work/tuned" || fail "tuning: $(head -n 1 "$work/tuned")"
# What is asked for is had.
taskset -c "$one" "$msched" tune ops:matmul --trials 1 --target "native -num-cores=2" --db "$work/bound.db" -- 8 8 8 >"$work/tuned"
grep -q "^matmul_8x8x8 on llvm .* -num-cores=2:" "$work/tuned" || fail "tuning for two: $(head -n 1 "$work/tuned")"

# What a control group lends of the memory counts, too, where one can be made: `doctor` reads no more than it may have.
group=/sys/fs/cgroup/memory/msched-$$
if [ -e /sys/fs/cgroup/memory/memory.limit_in_bytes ] && mkdir "$group" 2>/dev/null; then
  trap 'rm -rf "$work"; rmdir "$group"' EXIT
  echo $((256 << 20)) >"$group/memory.limit_in_bytes"
  (sh -c 'echo $PPID' >"$group/tasks" && exec "$msched" doctor >"$work/lent") || fail "doctor in 256 MiB: status $?"
  grep -q '^bandwidth .* GB/s' "$work/lent" || fail "the bandwidth in 256 MiB: $(cat "$work/lent")"
fi
