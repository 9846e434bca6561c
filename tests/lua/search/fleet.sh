#!/bin/sh
# A fleet's processes. Servers that are no Redis, and none at all: one message each, exit status 1. Where redis-server
# is installed: two workers, one of them killed, and a tuner that is killed and goes on; a worker that measures. usage:
# fleet.sh MSCHED ROOT ANSWERING [DRIVER NVRTC]
set -u
msched=$1 root=$2 answering=$3 driver=${4:-} nvrtc=${5:-}
work=$(mktemp -d)
server='' others=''
end() {
  # shellcheck disable=SC2086
  [ -z "$server" ] || kill $server 2>/dev/null # by `timeout`, which ends it whatever becomes of this
  for pid in $others; do kill -9 $pid 2>/dev/null; done
  rm -rf "$work"
}
trap end EXIT
failed=0
fail() { echo "fleet.sh: $*" >&2; failed=1; }

one_message() { # what, pattern, command…
  what=$1 expects=$2
  shift 2
  timeout 60 "$@" >"$work/out" 2>"$work/err" </dev/null
  [ $? = 1 ] || fail "$what: the status is not 1"
  [ "$(wc -l <"$work/err")" = 1 ] || fail "$what: not one line: $(cat "$work/err")"
  grep -qE "$expects" "$work/err" || fail "$what: no \"$expects\" in: $(cat "$work/err")"
  ! grep -q "$(printf '\033')" "$work/err" || fail "$what: it has an escape of a stranger's"
}

# ---- Who is no Redis
for kind in garbage list deep number refused long tls closed silent map full; do
  "$answering" $kind >"$work/port" &
  server=$!
  until [ -s "$work/port" ]; do sleep 0.02; done
  url=redis://127.0.0.1:$(cat "$work/port")
  case $kind in
  refused) pattern='NOPERM this user' ;;
  tls) pattern='.*; it speaks TLS, which a tunnel does$' ;;
  closed) pattern='no Redis answers there: (the connection was closed|Connection reset by peer)$' ;;
  full) pattern='no Redis answers there: ERR max number of clients reached; raise its maxclients$' ;;
  silent) pattern='no Redis answers there: it does not answer in time$' ;;
  *) pattern='what answers there is no Redis, or a reply is out of bounds: ' ;;
  esac
  one_message "fleet, $kind" "^msched fleet: $url/0: $pattern" "$msched" fleet "$url"
  [ $kind != list ] || one_message "worker, $kind" "^msched worker: $url/0: $pattern" "$msched" worker "$url"
  [ $kind != list ] || one_message "tune, $kind" "^msched tune: $url/0: $pattern" "$msched" tune ops:matmul --fleet "$url" --db "$work/none.db" -- 8 8 8
  kill -9 $server
  wait $server 2>/dev/null
  server='' && rm -f "$work/port"
done
one_message "no server" "^msched fleet: redis://127.0.0.1:1/0: no Redis answers there: " "$msched" fleet redis://127.0.0.1:1
one_message "no server for tune" "^msched tune: redis://127.0.0.1:1/0: no Redis answers there: " "$msched" tune ops:relu --fleet redis://127.0.0.1:1 --db "$work/none.db" -- 8x8
[ ! -e "$work/none.db" ] || fail "a tune without a server leaves a store"
one_message "no address" "an address of Redis is expected" "$msched" worker localhost
"$msched" worker --builders 0 redis://localhost 2>&1 | grep -q 'builders must be from 1 to 64, not 0' || fail "no builders are taken"

# The guide's unit of systemd, which knows what it names where it is installed.
sed -n "/^cat >msched-worker.service/,/^UNIT$/p" "$root/lua/guide/fleet.md" | sed '1d;$d' >"$work/guide.service"
for line in '[Unit]' '[Service]' 'ExecStart=/usr/bin/msched worker redis://' 'KillMode=mixed' '[Install]'; do
  grep -qF "$line" "$work/guide.service" || fail "the guide's unit has no line $line"
done
if command -v systemd-analyze >/dev/null; then
  sed -e "s|=/usr/bin/msched |=$msched |" -e 's/^User=.*/User=root/' "$work/guide.service" >"$work/msched-worker.service"
  said=$(systemd-analyze verify --recursive-errors=no "$work/msched-worker.service" 2>&1) || fail "the guide's unit: $said"
  [ -z "$said" ] || fail "the guide's unit: $said"
fi

[ "$failed" = 0 ] || exit 1
command -v redis-server >/dev/null || { echo "fleet.sh: skipped: there is no redis-server, for workers in processes of their own"; exit 77; }

# ---- A server of our own
export MSCHED_FLEET_LEASE=0.5
port=$((20000 + $$ % 20000))
start() { # until a port is free
  for _ in 1 2 3 4 5; do
    timeout 800 redis-server --port $port --bind 127.0.0.1 --dir "$work" --save '' --loglevel warning >"$work/server" 2>&1 &
    server=$!
    for _ in $(seq 100); do
      "$msched" fleet redis://127.0.0.1:$port >/dev/null 2>&1 && kill -0 $server 2>/dev/null && return
      kill -0 $server 2>/dev/null || break
      sleep 0.05
    done
    port=$((port + 1))
  done
  fail "redis-server does not start: $(cat "$work/server")"
  exit 1
}
start
url=redis://127.0.0.1:$port
worker() { # name, seconds a job
  MSCHED_FLEET_SIMULATE=$2 "$msched" worker $url --name "$1" >"$work/$1" 2>&1 &
  pid=$!
  others="$others $pid"
  until grep -q "serves" "$work/$1" 2>/dev/null; do sleep 0.02; done
}
tune() { # store; takes the place of its shell
  exec "$msched" tune "$root/lua/examples/gemm.lua" --trials 60 --policy random --fleet $url --db "$1" --json -- 32 32 32
}
results_of() { "$msched" db export - --db "$1" | sed -n 's/^{"record": *"\([0-9a-f]*\)".*"status":"\([a-z]*\)","seconds":\([0-9.e-]*\).*/\1 \2 \3/p' | sort; }

# Nothing goes wrong.
worker one 0.005
worker two 0.005
(tune "$work/plain.db") >"$work/out" 2>"$work/err" || fail "tune: $(cat "$work/err")"
results_of "$work/plain.db" >"$work/expected"
[ "$(grep -c ' measured ' "$work/expected")" = 60 ] || fail "not 60 records: $(wc -l <"$work/expected")"
"$msched" fleet $url >"$work/out" || fail "fleet: $(cat "$work/out")"
grep -q ' one  *[1-9][0-9]* .* works' "$work/out" || fail "no worker is shown: $(cat "$work/out")"
"$msched" fleet $url --json | grep -q '"workers":\[{.*"name":"one"' || fail "fleet --json: $("$msched" fleet $url --json)"

# What nobody needs is forgotten, and who lives is not.
worker gone 0.005
kill -9 "$pid"
wait "$pid" 2>/dev/null
sleep 0.6 # its lease
[ "$("$msched" fleet $url --forget | sed 's/^.*: //')" = "forgot 1 worker, 0 tuners, 0 poisoned jobs" ] || fail "it is not forgotten: $("$msched" fleet $url)"
"$msched" fleet $url >"$work/out"
grep -q ' gone ' "$work/out" && fail "a dead worker is still there: $(cat "$work/out")"
grep -q ' two .* works' "$work/out" || fail "a live worker was forgotten: $(cat "$work/out")"

# A worker and the tuner are killed in the middle; the same command goes on: the records are the same. (The server
# is another: what the first has would hide what is lost.)
kill $others 2>/dev/null
for pid in $others; do wait "$pid" 2>/dev/null; done
kill $server
wait $server 2>/dev/null
others='' && start && url=redis://127.0.0.1:$port
"$msched" fleet $url --forget --json >"$work/out" || fail "fleet --forget: $(cat "$work/out")"
[ ! -s "$work/out" ] || fail "something is forgotten where nothing was: $(cat "$work/out")"
worker three 0.03
three=$pid
worker four 0.03
killed=$pid
(tune "$work/faults.db") >"$work/out" 2>"$work/err" &
tuner=$!
until [ "$(grep -c '"event":"trial"' "$work/out")" -ge 8 ]; do
  sleep 0.02
  kill -0 $tuner 2>/dev/null || break
done
kill -9 $killed $tuner
wait $killed $tuner 2>/dev/null
[ "$(grep -c '"event":"trial"' "$work/out")" -lt 60 ] || fail "the tuner was done when it was killed"
(tune "$work/faults.db") >"$work/out" 2>"$work/err" || fail "tune, again: $(cat "$work/err")"
results_of "$work/faults.db" >"$work/got"
cmp -s "$work/expected" "$work/got" || fail "the records are others: $(diff "$work/expected" "$work/got" | head -n 5)"
"$msched" fleet $url | grep -qE ' four .* [0-9]+ (s|min)  dead$' || fail "the dead worker is not shown: $("$msched" fleet $url)"

# A worker that is asked to end gives back what it holds, at once, and says so; another does it. Where the server does
# not answer, a second signal ends it.
"$msched" tune "$root/lua/examples/gemm.lua" --trials 12 --policy random --fleet $url --db "$work/drain.db" -- 40 24 24 >"$work/out" 2>&1 &
tuner=$!
kill -STOP $three
worker patient 1000
tries=0
until "$msched" fleet $url --json | grep -q '"held":[4-9]'; do # the first's leases run out
  tries=$((tries + 1))
  [ $tries -lt 200 ] || { fail "nothing is held: $("$msched" fleet $url)"; break; }
  sleep 0.05
done
kill -TERM $pid
wait $pid || fail "the status of a worker that was asked to end: $?"
grep -q '^worker patient: 0 jobs, 0 of them failed; [1-9] jobs* given back$' "$work/patient" || fail "it says: $(cat "$work/patient")"
kill -CONT $three
wait $tuner || fail "tune beside a worker that ended: $(cat "$work/out")"
worker stuck 1000
redis=$(redis-cli -p $port info server | sed -n 's/^process_id:\([0-9]*\).*/\1/p')
kill -STOP "$redis"
kill -TERM $pid
for _ in 1 2 3 4; do sleep 0.3; kill -TERM $pid 2>/dev/null; done
wait $pid
[ $? = 143 ] || fail "two signals do not end a worker: $(cat "$work/stuck")"
kill -CONT "$redis"

# One that is stopped for longer than a lease, while another takes its name: it ends as it goes on, and the other stays.
worker same 0.01
stopped=$pid
kill -STOP $stopped
MSCHED_FLEET_SIMULATE=0.01 "$msched" worker $url --name same >"$work/heir" 2>&1 &
heir=$!
others="$others $heir"
until grep -q "serves" "$work/heir" 2>/dev/null; do sleep 0.02; done
kill -CONT $stopped
wait $stopped
[ $? = 1 ] || fail "a worker that lost its name goes on: $(cat "$work/same")"
grep -q ': another worker is named same now, since this one said nothing for longer than 0.5 s$' "$work/same" || fail "it says: $(cat "$work/same")"
"$msched" fleet $url | grep -q ' same .* works$' || fail "the other is gone, too: $("$msched" fleet $url)"
kill -TERM $heir
wait $heir || fail "the other: $(cat "$work/heir")"

# A user who may not keep leases, or claim what the dead held: a worker ends by one message, as others would take what
# it works on. Each has a name of its own: one that finds as many jobs under its name as it has room for claims none.
for command in xclaim xautoclaim xpending; do
  redis-cli -p $port acl setuser lacking on '>secret' '~*' '&*' +@all "-$command" >/dev/null
  "$msched" tune "$root/lua/examples/gemm.lua" --trials 400 --policy random --fleet $url --db "$work/$command.db" -- 16 16 24 >"$work/tuner" 2>&1 &
  tuner=$!
  MSCHED_FLEET_SIMULATE=1000 one_message "a user without $command" "^msched worker: $url/0: NOPERM .*'$command'" "$msched" worker redis://lacking:secret@127.0.0.1:$port --name "no-$command"
  [ -z "$(redis-cli -p $port --raw keys "msched:*:name:no-$command")" ] || fail "a user without $command: its name is held by nobody"
  kill -9 $tuner || fail "a user without $command: the tuner ended: $(cat "$work/tuner")"
  wait $tuner 2>/dev/null
done
redis-cli -p $port acl deluser lacking >/dev/null

# A server whose memory is full, or that is another's copy: one message each. A worker that works ends by it.
worker full 0.01
redis-cli -p $port config set maxmemory 1 >/dev/null
wait $pid && fail "a worker goes on at a server that is full"
grep -q ': OOM .*; give the server more memory (maxmemory)$' "$work/full" || fail "it says: $(cat "$work/full")"
one_message "a full server" "^msched tune: $url/0: OOM .*maxmemory" "$msched" tune ops:matmul --fleet $url --db "$work/none.db" -- 8 8 8
redis-cli -p $port config set maxmemory 0 >/dev/null
redis-cli -p $port replicaof 127.0.0.1 1 >/dev/null
one_message "a copy" "^msched worker: $url/0: READONLY .*; it is a copy of another server" "$msched" worker $url --name copy
redis-cli -p $port replicaof no one >/dev/null
kill -9 $three 2>/dev/null # it may have ended by the full server, too
wait $three 2>/dev/null
others='' && worker three 0.03
three=$pid

# A job of 100 MB is refused unread; the worker goes on.
stream=$(redis-cli -p $port --raw keys 'msched:*:jobs')
head -c 100000000 /dev/zero | redis-cli -p $port -x XADD "$stream" '*' n huge j >/dev/null || fail "the job is not sent"
tries=0
until "$msched" fleet $url | grep -q 'poison .*: it is out of bounds, and was not read'; do
  tries=$((tries + 1))
  [ $tries -lt 200 ] || { fail "the job is not refused: $("$msched" fleet $url)"; break; }
  sleep 0.05
done
kill -0 $three || fail "the worker ended: $(cat "$work/three")"

# A server that is emptied while a worker waits at it: it goes on, and is found again.
for _ in 1 2 3 4; do
  redis-cli -p $port flushall >/dev/null
  sleep 0.2
done
kill -0 $three || fail "the worker ended as the server was emptied: $(cat "$work/three")"
(tune "$work/emptied.db") >"$work/out" 2>"$work/err" || fail "tune at a server that was emptied: $(cat "$work/err")"

# A worker that says so many times what it takes is found out, and its results count for none. On a busy machine the
# others may have done all before it had its turn: another worker is begun then, and another function tuned.
found_out() { # factor; its name's beginning; what tunes, by the number of a try, into a store, and leaves $work/out
  for try in 1 2 3 4 5 6 7 8; do
    name=$2$try
    aside="worker $name: its results are put aside: .* times as long as it said"
    MSCHED_FLEET_FACTOR=$1
    export MSCHED_FLEET_FACTOR
    worker $name 0.005
    unset MSCHED_FLEET_FACTOR
    $3 $try "$work/$name.db" >"$work/out" 2>"$work/err" || fail "tune beside worker $name: $(cat "$work/err")"
    "$msched" fleet $url >"$work/fleet"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null
    "$msched" db export - --db "$work/$name.db" | grep "\"worker\":\"$name\"" >"$work/records"
    ! grep -q "$aside" "$work/out" || ! grep -q '"status":"measured"' "$work/records" || fail "results of worker $name count"
    ! grep -q '"status":"failed"' "$work/records" || break
  done
  [ "$(grep -c "$aside" "$work/out")" = 1 ] || fail "no worker $2 is found out: $(cat "$work/out")"
  grep -q " $name .* put aside: " "$work/fleet" || fail "worker $name is not shown: $(cat "$work/fleet")"
}

# One that says a twentieth of what it takes: two others say so, and the best is none of its own.
worker five 0.005
five=$pid
beside_liar() { "$msched" tune "$root/lua/examples/gemm.lua" --trials 30 --policy random --fleet $url --db "$2" -- $((16 + 8 * $1)) 24 24; }
found_out 0.05 liar beside_liar

# One that says twenty times what it takes is found out as it times some functions' finalists again, those of its
# results that are ready by then among what is put aside. It is one of five, so that some functions never ask it.
worker six 0.005
more=$pid
worker seven 0.005
more="$more $pid"
cat >"$work/several.lua" <<'LUA'
local list = {}
for n = 1, 6 do list[n] = msched.ops.func("matmul", {16 + 8 * n, 24, 16 + 8 * math.tointeger(...)}) end
return list
LUA
beside_slow() { "$msched" tune "$work/several.lua" --trials 12 --policy random --fleet $url --db "$2" -- "$1"; }
found_out 20 slow beside_slow
kill -9 "$five" $more
wait "$five" $more 2>/dev/null

# One that measures, alone on its device; it ends in an orderly way.
"$msched" worker $url --name real >"$work/real" 2>&1 &
real=$!
others="$others $real"
until grep -q "serves" "$work/real" 2>/dev/null; do sleep 0.02; done
one_message "a second worker of a device" "worker real times on this device" "$msched" worker $url --name second
kill -9 $three # it would answer in its place
wait $three 2>/dev/null
others=$real
"$msched" tune ops:matmul --trials 3 --fleet $url --db "$work/real.db" -- 24 24 24 >"$work/out" 2>"$work/err" || fail "tune by a worker: $(cat "$work/err")"
[ "$("$msched" top -k 9 --db "$work/real.db" | grep -c llvm)" -ge 2 ] || fail "nothing was measured: $(cat "$work/out")"
grep -q '[0-9] % of ' "$work/out" || fail "no share of the worker's limit: $(cat "$work/out")"
"$msched" top --db "$work/real.db" | grep -q '[0-9] % of ' || fail "no share in the store: $("$msched" top --db "$work/real.db")"
"$msched" db export --csv --db "$work/real.db" | grep -c ',measured,.*,"","real".$' | grep -q '^[1-9]' || fail "no worker in: $("$msched" db export --csv --db "$work/real.db")"
"$msched" replay matmul --db "$work/real.db" >"$work/out" 2>&1 || "$msched" replay best --db "$work/real.db" >"$work/out" 2>&1 || fail "replay: $(cat "$work/out")"
# Beside a worker of a GPU, the tests' own, the second of two: each has the jobs of its device, and a tuner needs none.
gpu=''
if [ -n "$driver" ] && g++ --version >/dev/null 2>&1; then
  MSCHED_LIBCUDA=$driver MSCHED_NVRTC=$nvrtc FAKE_NVRTC_FOLDER=$work FAKE_NVRTC_KEEPS=1 FAKE_CUDA_SKIPPED="peak bandwidth" FAKE_CUDA_DEVICES="80 90" "$msched" worker $url --name gpu --device 1 >"$work/gpu" 2>&1 &
  gpu=$!
  others="$others $gpu"
  until grep -q "serves cuda -arch=sm_90a on Fake 90" "$work/gpu" 2>/dev/null; do sleep 0.02; kill -0 $gpu 2>/dev/null || break; done
  "$msched" tune ops:matmul --target "cuda -arch=sm_90a" --trials 2 --fleet $url --db "$work/gpu.db" -- 32 32 32 >"$work/out" 2>&1 || fail "tune for a GPU: $(cat "$work/gpu" "$work/out")"
  "$msched" db export - --db "$work/gpu.db" | grep '"worker":"gpu"' | grep -c '"name":"Fake 90"' | grep -qx 2 || fail "not by the GPU: $(cat "$work/out")"
  export MSCHED_LIBCUDA=$driver MSCHED_NVRTC=$nvrtc FAKE_NVRTC_FOLDER=$work FAKE_CUDA_DEVICES="80 90"
  one_message "no third GPU" "^msched worker: --device 2: there is no such GPU" "$msched" worker $url --device 2
  export CUDA_VISIBLE_DEVICES=1
  one_message "the second GPU, seen as the first" "worker gpu times on this device" "$msched" worker $url --device 0
  one_message "one GPU is seen" "^msched worker: --device 1: there is no such GPU" "$msched" worker $url --device 1
  unset MSCHED_LIBCUDA MSCHED_NVRTC FAKE_NVRTC_FOLDER FAKE_CUDA_DEVICES CUDA_VISIBLE_DEVICES
  one_message "another GPU" "no worker has served cuda -arch=sm_80; served were: .*sm_90a on Fake 90" "$msched" tune ops:matmul --target "cuda -arch=sm_80" --trials 1 --fleet $url --db "$work/gpu.db" -- 32 32 32
fi

# By intrinsics of the tuner's, which travel as text.
"$msched" tune "$root/lua/examples/gemm.lua" --rules "$root/tests/lua/space/tune_intrinsic.lua" --trials 1 --fleet $url --db "$work/tile.db" -- 64 64 64 >"$work/out" 2>&1 || fail "tune by intrinsics: $(cat "$work/out")"
"$msched" db export - --db "$work/tile.db" | grep '"status":"\(measured\|censored\)"' | grep -q '"intrinsics":{"tile":' || fail "no record by an intrinsic: $(cat "$work/out")"
kill -INT $real
wait $real || fail "the worker's status: $?: $(cat "$work/real")"
grep -q '^worker real: .*; 0 jobs given back$' "$work/real" || fail "the worker says: $(cat "$work/real")"
[ -z "$gpu" ] || kill -INT $gpu
[ -z "$gpu" ] || wait $gpu || fail "the GPU's worker's status: $?: $(cat "$work/gpu")"
grep -q '^worker real: [1-9][0-9]* jobs, ' "$work/real" || fail "the worker says: $(cat "$work/real")"
others=''
"$msched" fleet $url | grep -q ' real ' && fail "it is still there: $("$msched" fleet $url)"
[ "$failed" = 0 ] && echo "fleet: all is well"
exit "$failed"
