#!/bin/sh
# A fleet of workers that measure nothing, and what befalls it: workers killed and started again, the server killed with
# kill -9 (its log is written before it answers), networks cut and slowed, the tuner killed and started again. The store
# has what it has without any of it: nothing is lost, nothing is taken twice, the best is the same. As root each worker
# and the tuner have a network namespace of their own; else nothing is cut. Prints rates, costs, the time to detect a
# death. usage: fleet.sh MSCHED ROOT [JOBS [WORKERS [KILLS [CRASHES [CUTS [TUNERS [SEED]]]]]]]
set -eu
msched=$1 root=$2 jobs=${3:-10000} workers=${4:-12} kills=${5:-100} crashes=${6:-10} cuts=${7:-20} tuners=${8:-5} seed=${9:-1}
command -v redis-server >/dev/null || { echo "fleet: skipped: there is no redis-server"; exit 77; }
work=$(mktemp -d)
server='' tuner='' spaces='' port=$((20000 + $$ % 20000))
end() {
  # shellcheck disable=SC2046
  kill -9 $server $tuner $(cat "$work"/pid.* 2>/dev/null) 2>/dev/null || true
  for space in $spaces; do ip netns del "$space" 2>/dev/null || true; done
  rm -rf "$work"
}
trap end EXIT
trap 'exit 1' INT TERM
fail() { echo "fleet.sh: $*" >&2; exit 1; }
now() { date +%s.%N; }
export MSCHED_FLEET_LEASE=2

# ---- Networks: a bridge in the server's namespace, an end in each other's
in_space() { # number, command…: 0 is the server's; replaces its shell
  number=$1
  shift
  if [ -n "$spaces" ]; then exec ip netns exec "msfleet$$-$number" "$@"; else exec "$@"; fi
}
ip_in() { # number, words of ip
  number=$1
  shift
  ip -n "msfleet$$-$number" "$@"
}
make_networks() {
  [ "$(id -u)" = 0 ] && command -v ip >/dev/null && command -v tc >/dev/null && ip netns add "msfleet$$-0" 2>/dev/null || return 0
  spaces=msfleet$$-0
  ip_in 0 link add bridge0 type bridge || { ip netns del "$spaces"; spaces=''; return 0; }
  ip_in 0 addr add 10.77.0.1/24 dev bridge0
  ip_in 0 link set bridge0 up
  ip_in 0 link set lo up
  for n in $(seq $((workers + 1))); do
    ip netns add "msfleet$$-$n"
    spaces="$spaces msfleet$$-$n"
    ip_in 0 link add "to$n" type veth peer name up0 netns "msfleet$$-$n"
    ip_in 0 link set "to$n" master bridge0 up
    ip_in "$n" addr add "10.77.0.$((10 + n))/24" dev up0
    ip_in "$n" link set up0 up
    ip_in "$n" link set lo up
  done
}
# Late and lossy, where the kernel knows how; else 20 kbit/s, a job in half a second.
slow_down() {
  tc -n "msfleet$$-0" qdisc replace dev "to$1" root netem delay 60ms 40ms loss 3% 2>/dev/null ||
    tc -n "msfleet$$-0" qdisc replace dev "to$1" root tbf rate 20kbit burst 2kb latency 5s
}
make_networks
host=127.0.0.1
[ -z "$spaces" ] || host=10.77.0.1
url=redis://$host:$port
[ -n "$spaces" ] || cuts=0

# ---- Processes
serve() { # starts the server on what its log holds
  (in_space 0 redis-server --port $port --bind "$host" --protected-mode no --dir "$work" --save '' --appendonly yes \
    --appendfsync always --loglevel warning) >>"$work/server" 2>&1 &
  server=$!
}
wait_for_server() {
  for _ in $(seq 100); do
    (in_space 0 "$msched" fleet $url) >"$work/fleet" 2>&1 && return
    sleep 0.05
  done
  fail "the server does not start: $(tail -n 3 "$work/server")"
}
work_on() { # number, round: a worker of another name each time
  (MSCHED_FLEET_SIMULATE=$seconds in_space "$1" "$msched" worker $url --name "w$1.$2") >"$work/worker.$1" 2>&1 &
  echo $! >"$work/pid.$1"
}
end_worker() {
  pid=$(cat "$work/pid.$1")
  kill -9 "$pid" 2>/dev/null || fail "worker $1 ended by itself: $(cat "$work/worker.$1")"
  wait "$pid" 2>/dev/null || true
}
end_all() {
  for n in $(seq "$workers"); do end_worker "$n"; done
  kill -9 $server
  wait $server 2>/dev/null || true
  rm -rf "$work"/appendonlydir
}
begin_all() { # seconds that a job takes
  seconds=$1
  serve
  wait_for_server
  for n in $(seq "$workers"); do work_on "$n" 0; done
  until [ "$(live)" = "$workers" ]; do sleep 0.1; done
}
live() { (in_space 0 "$msched" fleet $url) | grep -c ' works$' || true; }
tune() { # store, output
  (in_space $((workers + 1)) "$msched" tune "$root/lua/examples/gemm.lua" --trials "$jobs" --policy random --fleet $url --db "$1" --json -- 1024 1024 1024) >>"$2" 2>"$work/err" &
  tuner=$!
}
results_of() { "$msched" db export - --db "$1" | sed -n 's/^{"record": *"\([0-9a-f]*\)".*"status":"\([a-z]*\)","seconds":\([0-9.e-]*\).*/\1 \2 \3/p' | sort; }
trials_in() { grep -c '"event":"trial"' "$1" || true; }
processor_of() { awk '{ print $14 + $15 }' "/proc/$1/stat"; } # in hundredths of a second

# ---- Without faults
begin_all 0
: >"$work/out"
before=$(processor_of $server)
(in_space $((workers + 1)) "$msched" "$root/tests/long/fleet_rate.lua" "$root" $url "$jobs") || fail "the jobs' rate"
after=$(processor_of $server)
worker=$(processor_of "$(cat "$work/pid.1")")
(in_space 0 "$msched" fleet $url --json) >"$work/fleet"
own=$(sed -n 's/.*"done":\([0-9]*\),"failed":[0-9]*,"host":"[^"]*","name":"w1\.0".*/\1/p' "$work/fleet")
awk -v s=$((after - before)) -v n="$jobs" -v w="$worker" -v d="${own:-0}" 'BEGIN {
  printf "the server: %.0f us a job; a worker: %.0f us a job\n", 1e4 * s / n, (d > 0 ? 1e4 * w / d : 0) }'
end_all

seconds=0.02
begin_all $seconds
start=$(now)
tune "$work/plain.db" "$work/out"
wait $tuner || fail "tune: $(cat "$work/err")"
echo "$(now) $start $jobs" | awk -v w="$workers" '{ printf "without faults: %d jobs of 20 ms by %d workers in %.1f s, %.0f a second\n", $3, w, $1 - $2, $3 / ($1 - $2) }'
end_all
results_of "$work/plain.db" >"$work/expected"
[ "$(grep -c ' measured ' "$work/expected")" = "$jobs" ] || fail "$(wc -l <"$work/expected") records, not $jobs"

# ---- With faults: spread over the jobs, in an order that the seed draws
faults=$((kills + crashes + cuts + tuners))
awk -v k="$kills" -v c="$crashes" -v n="$cuts" -v t="$tuners" -v seed="$seed" -v w="$workers" 'BEGIN {
  srand(seed)
  for (i = 0; i < k; i++) kind[m++] = "kill"
  for (i = 0; i < c; i++) kind[m++] = "crash"
  for (i = 0; i < n; i++) kind[m++] = i % 2 ? "slow" : "cut"
  for (i = 0; i < t; i++) kind[m++] = "tuner"
  for (i = m - 1; i > 0; i--) { j = int(rand() * (i + 1)); x = kind[i]; kind[i] = kind[j]; kind[j] = x }
  for (i = 0; i < m; i++) print kind[i], 1 + int(rand() * w), 0.5 + 4 * rand()
}' >"$work/faults"
begin_all $seconds
: >"$work/out"
start=$(now)
tune "$work/faults.db" "$work/out"
round=0
while read -r kind n pause; do
  round=$((round + 1))
  wanted=$((jobs * round / (faults + 1)))
  tries=0
  until [ "$(trials_in "$work/out")" -ge "$wanted" ]; do
    kill -0 $tuner 2>/dev/null || fail "the tuner ended by itself: $(cat "$work/err")"
    tries=$((tries + 1))
    [ $tries -lt 1200 ] || fail "nothing goes on after fault $round of $faults: $(in_space 0 "$msched" fleet $url)"
    sleep 0.05
  done
  case $kind in
  kill) end_worker "$n" && work_on "$n" $round ;;
  crash)
    kill -9 $server
    wait $server 2>/dev/null || true
    sleep 0.3
    serve
    ;;
  tuner)
    kill -9 $tuner
    wait $tuner 2>/dev/null || true
    tune "$work/faults.db" "$work/out"
    ;;
  cut) (ip_in 0 link set "to$n" down && sleep "$pause" && ip_in 0 link set "to$n" up) & ;;
  slow) (slow_down "$n" && sleep "$pause" && tc -n "msfleet$$-0" qdisc del dev "to$n" root) & ;;
  esac
done <"$work/faults"
wait $tuner || fail "tune, with faults: $(cat "$work/err")"
echo "$(now) $start $jobs" | awk '{ printf "with faults: %.1f s, %.0f jobs a second\n", $1 - $2, $3 / ($1 - $2) }'
results_of "$work/faults.db" >"$work/got"
sed -n 's/.*"event":"trial".*"hash":"\([0-9a-f]*\)".*/\1/p' "$work/out" | sort | uniq -d >"$work/twice"
[ ! -s "$work/twice" ] || fail "$(wc -l <"$work/twice") results were taken twice"
cmp -s "$work/expected" "$work/got" || fail "the records are others: $(diff "$work/expected" "$work/got" | head -n 10)
failed: $("$msched" db export - --db "$work/faults.db" | sed -n 's/^{"record": *"\([0-9a-f]*\)".*"status":"failed".*"reason":"\([^"]*\)".*/\1 \2/p' | head -n 5)"
(in_space 0 "$msched" fleet $url --json) >"$work/fleet"
grep -q '"poisoned":0' "$work/fleet" || fail "jobs are poison: $(cat "$work/fleet")"
grep -q '"held":0,.*"waiting":0' "$work/fleet" || fail "jobs are left: $(cat "$work/fleet")"
echo "$jobs jobs, $kills workers killed, $crashes kill -9 of the server, $cuts cuts and slow networks, $tuners tuners killed: the records are the same"
end_all

# ---- How long until a death is noticed, by the lease that users have
unset MSCHED_FLEET_LEASE
jobs=3
for try in 1 2 3; do
  serve
  wait_for_server
  seconds=1000
  work_on 1 0
  until [ "$(live)" = 1 ]; do sleep 0.05; done
  : >"$work/out"
  tune "$work/death.$try.db" "$work/out"
  until (in_space 0 "$msched" fleet $url --json) | grep -q '"held":3'; do sleep 0.05; done
  seconds=0
  work_on 2 0
  until [ "$(live)" = 2 ]; do sleep 0.05; done
  end_worker 1
  start=$(now)
  until [ "$(trials_in "$work/out")" = 3 ]; do sleep 0.02; done
  echo "$(now) $start" | awk '{ printf "a death: its jobs were done by another after %.1f s\n", $1 - $2 }'
  wait $tuner || fail "tune: $(cat "$work/err")"
  end_worker 2
  kill -9 $server
  wait $server 2>/dev/null || true
  rm -rf "$work"/appendonlydir
done
