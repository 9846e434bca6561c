#!/bin/sh
# Three workers that measure, each with a host's name of its own, on one core; one has a fifth of the processor's time
# (a control group's quota: needs root). Functions that take longer than such a slice: its times are several times those
# of the others, who say so as they time finalists again, and none of its results count.
# usage: fleet_slow.sh MSCHED [CORE]
set -eu
msched=$1 core=${2:-0}
skip() { echo "fleet_slow: skipped: $*"; exit 77; }
command -v redis-server >/dev/null || skip "there is no redis-server"
[ "$(id -u)" = 0 ] || skip "it needs root, for a control group and hosts' names"
work=$(mktemp -d) port=$((20000 + $$ % 20000)) pids='' group=''
for folder in /sys/fs/cgroup/cpu /sys/fs/cgroup; do
  mkdir "$folder/msched_slow.$$" 2>/dev/null || continue
  group=$folder/msched_slow.$$
  if [ -e "$group/cpu.cfs_quota_us" ]; then
    echo 5000 >"$group/cpu.cfs_period_us"
    echo 1000 >"$group/cpu.cfs_quota_us"
    break
  elif [ -e "$group/cpu.max" ]; then
    echo "1000 5000" >"$group/cpu.max"
    break
  fi
  rmdir "$group"
  group=''
done
end() {
  # shellcheck disable=SC2086
  kill $pids 2>/dev/null || true
  # shellcheck disable=SC2086
  wait $pids 2>/dev/null || true
  [ -z "$group" ] || rmdir "$group" || true
  rm -rf "$work"
}
trap end EXIT
[ -n "$group" ] || skip "no control group takes a quota of the processor"

redis-server --port $port --save '' --appendonly no --dir "$work" --loglevel warning >"$work/server" 2>&1 &
pids=$!
url=redis://localhost:$port
until "$msched" fleet $url >"$work/fleet" 2>&1; do sleep 0.05; done
for name in slow one two; do
  place=/dev/null
  [ $name != slow ] || place=$group/cgroup.procs
  # shellcheck disable=SC2016
  unshare --uts sh -c 'echo $$ >"$1"; hostname "$2"; exec taskset -c "$3" "$4" worker "$5" --name "$2"' \
    worker "$place" $name "$core" "$msched" $url >"$work/$name" 2>&1 &
  pids="$pids $!"
  until grep -q serves "$work/$name"; do sleep 0.05; done
done
cat >"$work/functions.lua" <<'LUA'
local list = {}
for n = 1, 6 do list[n] = msched.ops.func("matmul", {640 + 64 * n, 1024 - 64 * (n % 5), 1024}) end
return list
LUA
taskset -c "$core" "$msched" tune "$work/functions.lua" --trials 12 --target "native -num-cores=1" --fleet $url --db "$work/s.db" >"$work/out"
"$msched" fleet $url
"$msched" db export - --db "$work/s.db" | grep '^{"record"' >"$work/records"
for name in one two slow; do
  for status in measured failed; do
    count=$(grep "\"worker\":\"$name\"" "$work/records" | grep -c "\"status\":\"$status\"" || true)
    echo "$name: $count $status"
    [ "$name $status" != "slow measured" ] || counted=$count
  done
done
grep "worker slow: its results are put aside" "$work/out"
[ "$counted" = 0 ] || { echo "fleet_slow: $counted results of the slow worker count"; exit 1; }
