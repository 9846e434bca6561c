#!/bin/sh
# Ctrl-C at any time: tuning stops soon, says what it keeps, leaves no process and a clean store.
# Several at a time, each with a folder and a store of its own: they mostly wait.
# usage: interrupt.sh MSCHED ROOT
set -eu
msched=$1 root=$2
. "$root/tests/support/session.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gemm=$root/lua/examples/gemm.lua
fail() { echo "interrupt.sh: $*" >&2; exit 1; }

# Until the process has its handler, a signal is what the shell made of it: here, ignored.
has_handler() { # process
  case $(sed -n 's/^SigCgt:.*\(.\)$/\1/p' "/proc/$1/status" 2>/dev/null) in [2367abef]) return 0 ;; esac
  return 1
}

# Two signals that wait are one.
has_taken() { # process
  case $(sed -n 's/^ShdPnd:.*\(.\)$/\1/p' "/proc/$1/status" 2>/dev/null) in [2367abef]) return 1 ;; esac
}

# Waits until a command succeeds. Two minutes are for a machine that has other things to do; an idle one takes tenths of
# a second.
await() { # what is awaited, command…
  awaited=$1 tries=0
  shift
  until "$@"; do
    tries=$((tries + 1))
    [ $tries -le 2400 ] || fail "no $awaited: $(cat "$dir/out" "$dir/err")"
    sleep 0.05
  done
}

# One stop that arrives twice, as timeout(1) sends it, is one stop: `twice` is set where it does. `begun`, where it is
# set, is what the process prints before what is to be interrupted.
interrupted() { # seconds to wait, words of the message, command…
  seconds=$1 words=$2
  shift 2
  : >"$dir/out" 2>"$dir/err"
  setsid "$@" >"$dir/out" 2>"$dir/err" &
  pid=$!
  [ -z "$begun" ] || await "$begun" grep -q -- "$begun" "$dir/out" "$dir/err"
  sleep "$seconds"
  await handler has_handler $pid
  again=
  [ -z "$twice" ] || again=$pid
  kill -INT $pid $again 2>/dev/null || fail "it ended before: $*: $(cat "$dir/err")"
  start=$(date +%s%N)
  session_ended $pid 2400 >"$dir/left" || fail "still there: $(tr '\n' ' ' <"$dir/left") of: $*"
  echo $((($(date +%s%N) - start) / 1000000)) >>"$dir/taken"
  set +e
  wait $pid
  got=$?
  set -e
  [ $got = 1 ] || fail "status $got: $*: $(cat "$dir/err")"
  ! grep -q Assertion "$dir/err" || fail "a bug shows: $*: $(cat "$dir/err")"
  grep -qF -- "$words" "$dir/err" || fail "no \`$words\` in: $(cat "$dir/err"), of: $*"
  pid=
}
clean() { # what is interrupted before its first write has no store
  [ ! -f "$db" ] || "$msched" db check --db "$db" | grep -qx clean || fail "db check"
}

# Some calls of Lua's library look at no interrupt: the second says so, the third ends the session.
endless() {
  printf 'print(1)\nprint(table.move({}, 1, 1 << 40, 1))\n' >"$dir/lines"
  : >"$dir/out" 2>"$dir/err"
  setsid "$msched" <"$dir/lines" >"$dir/out" 2>"$dir/err" &
  pid=$!
  await "first line" grep -q 1 "$dir/out"
  await handler has_handler $pid
  for n in 1 2 3; do
    sleep 0.5
    await "interrupt $((n - 1)) taken" has_taken $pid
    kill -INT $pid || fail "it ended before interrupt $n: $(cat "$dir/err")"
  done
  set +e
  wait $pid
  got=$?
  set -e
  [ $got = 130 ] || fail "status $got of what was interrupted three times: $(cat "$dir/err")"
  grep -q "one more interrupt ends the session" "$dir/err" || fail "no warning: $(cat "$dir/err")"
  pid=
}

# In a script the first says so when nothing has come of it, the second ends it.
stuck() {
  printf 'io.stdout:write("1\\n"):flush()\nprint(table.move({}, 1, 1 << 40, 1))\n' >"$dir/stuck.lua"
  : >"$dir/out" 2>"$dir/err"
  setsid "$msched" "$dir/stuck.lua" >"$dir/out" 2>"$dir/err" &
  pid=$!
  await "first line" grep -q 1 "$dir/out"
  kill -INT $pid
  await "word of the first interrupt" grep -q "one more interrupt ends it at once" "$dir/err"
  kill -INT $pid 2>/dev/null || fail "the first interrupt ended it: $(cat "$dir/err")"
  got=0
  wait $pid || got=$?
  pid=
  [ $got = 130 ] && grep -q "not stopped yet" "$dir/err" || fail "status $got: $(cat "$dir/err")"
}

early_and_late() {
  twice=yes
  for seconds in 0.1 0.3 0.6 1.5; do
    interrupted $seconds "interrupted" "$msched" tune "$gemm" --policy random --trials 100000 --db "$db" -- 256 256 256
    clean
  done
}
kept() {
  begun='"event":"trial"'
  interrupted 0.5 " kept in $db" "$msched" tune "$gemm" --trials 100000 --db "$db" --json -- 64 64 64
  kept=$(sed 's/.*interrupted; \([0-9]*\) results*.*/\1/' "$dir/err")
  trials=$(grep -c '"event":"trial"' "$dir/out" || true)
  grep -q '"ended":"interrupted".*"refused":{[^}]*"ok"' "$dir/out" && fail "what was not begun is counted as refused"
  [ "$kept" = "$trials" ] || fail "it says that $kept are kept, and reported $trials"
  begun=
  printf 'require("msched").tune(loadfile(arg[1])(64, 64, 64)[1], {trials = 100000, db = arg[2]})' >"$dir/tune.lua"
  interrupted 1 "interrupted" "$msched" "$dir/tune.lua" "$gemm" "$db"
  clean
}
said() { # once there is a best: what is kept, the few best, and commands that can be typed
  : >"$dir/out" 2>"$dir/err"
  setsid "$msched" tune "$gemm" --trials 100000 --db "$db" -- 64 64 64 >"$dir/out" 2>"$dir/err" &
  pid=$!
  await best grep -q ", best " "$dir/out"
  kill -INT $pid 2>/dev/null || fail "it ended before: $(cat "$dir/err")"
  session_ended $pid 2400 >"$dir/left" || fail "still there: $(tr '\n' ' ' <"$dir/left")"
  got=0
  wait $pid || got=$?
  pid=
  [ $got = 1 ] && grep -qE "interrupted; ([0-9]+ results of this run are|1 result of this run is) kept in $db" "$dir/err" || fail "status $got: $(cat "$dir/err")"
  next=$(sed -n 's/^next:  //p' "$dir/out" | sed 's/    .*//')
  case $next in "msched show "*" --db $db") ;; *) fail "what is next: $(cat "$dir/out")" ;; esac
  eval "\"$msched\" ${next#msched }" | grep -q "^record .*: measured, " || fail "what is next cannot be typed: $next"
  clean
}
scripts() {
  echo 'while true do end' >"$dir/loop.lua"
  interrupted 0.3 "interrupted" "$msched" tune "$dir/loop.lua" --db "$db"
  interrupted 0.3 "interrupted" "$msched" "$dir/loop.lua"
  echo 'while true do pcall(function() while true do end end) end' >"$dir/stubborn.lua"
  interrupted 0.3 "interrupted" "$msched" tune "$dir/stubborn.lua" --db "$db"
  begun=begun
  echo 'print "begun" print(("a"):rep(3000):find((".-"):rep(20) .. "b"))' >"$dir/pattern.lua"
  interrupted 0.3 "pattern.lua:1: interrupted" "$msched" "$dir/pattern.lua"
  begun=
  echo 'while true do local s = ("x"):rep(1 << 28) end' >"$dir/repeated.lua"
  interrupted 0.3 "interrupted" "$msched" "$dir/repeated.lua"
  echo 'xpcall(function() while true do end end, function() while true do end end)' >"$dir/handled.lua"
  interrupted 0.3 "interrupted" "$msched" "$dir/handled.lua"
}
checks() { # what the interpreter does of a large function takes half a minute and more
  echo 'local ms = require "msched"
    local f = ms.ops.func("matmul", {1024, 1024, 1024})
    local sch = ms.schedule(f)
    sch:vectorize(select(2, sch:split(select(2, sch:get_loops(sch:get_sblock "C")), {ms.rest, 64})))
    local kernel = ... == "check" and sch:build()
    print "begun"
    if kernel then print(kernel:check {samples = 1 << 30}) end
    ms.interpret(f, table.unpack(ms.arrays_for(f, 1)))' >"$dir/check.lua"
  begun=begun
  interrupted 0.5 "check.lua:7: interrupted" "$msched" "$dir/check.lua" check
  interrupted 0.5 "check.lua:8: interrupted" "$msched" "$dir/check.lua"
}
kernels() { # machine code that runs for hours, on one thread and on all
  echo 'local ms = require "msched"
    local f = ms.from_script([==[@T.prim_func
def main(P: T.Buffer((64,), "int64"), Q: T.Buffer((64,), "int32")):
  for i in ]==] .. ... .. [==[(4):
    for j in range(T.int64(1099511627776)):
      Q[P[j % T.int64(64)]] = Q[P[j % T.int64(64)]] + T.Cast("int32", i) + 1
]==])
    local kernel = ms.build(f)
    print "begun"
    kernel(ms.array({64}, "int64"), ms.array({64}, "int32"))' >"$dir/kernel.lua"
  begun=begun
  for loop in range T.parallel; do
    interrupted 0.3 "kernel.lua:10: interrupted" "$msched" "$dir/kernel.lua" $loop
  done
}
rules() {
  begun=begun
  echo 'require "msched".rule {name = "endless", apply = function() print "begun" while true do end end}' >"$dir/rule.lua"
  interrupted 0.3 "interrupted before anything was measured" "$msched" tune "$gemm" --rules "$dir/rule.lua" --rule-timeout 100 --db "$db"
  echo 'require "msched".postproc {name = "endless", apply = function() print "begun" while true do end end}' >"$dir/postproc.lua"
  interrupted 0.3 "interrupted" "$msched" tune "$gemm" --rules "$dir/postproc.lua" --rule-timeout 100 --db "$db" -- 32 32 32
  clean
}
ways() { # the ways of other tuners: the log has nothing twice
  : >"$dir/log"
  for seconds in 1.5 2.5; do
    interrupted $seconds "interrupted" "$msched" "$root/lua/examples/autotvm.lua" 64 64 64 100000 "$dir/log" "$db"
    [ -z "$(grep -o '"index": [0-9]*' "$dir/log" | sort | uniq -d)" ] || fail "the log has a config twice"
  done
  interrupted 1.5 "interrupted" "$msched" "$root/lua/examples/ansor.lua" 64 64 64 100000 "$dir/lines" "$db"
  clean
}
in_its_folder() {
  dir=$work/$1 pid= twice= begun=
  mkdir "$dir"
  db=$dir/store.db
  trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null || true' EXIT
  "$1"
}

running=
for part in early_and_late kept said scripts checks kernels rules ways endless stuck; do
  in_its_folder $part &
  running="$running $!"
done
failed=0
for part in $running; do wait "$part" || failed=1; done
[ $failed = 0 ] || exit 1
[ "$(cat "$work"/*/taken | wc -l)" = 21 ] || fail "$(cat "$work"/*/taken | wc -l) of 21 were interrupted"
echo "interrupt: ok, the slowest stop took $(sort -n "$work"/*/taken | tail -1) ms"
