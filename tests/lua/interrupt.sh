#!/bin/sh
# Ctrl-C at any time: tuning stops soon, says what it keeps, leaves no process and a clean store.
# usage: interrupt.sh MSCHED ROOT
set -eu
msched=$1 root=$2
. "$root/tests/support/session.sh"
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null || true; rm -rf "$work"' EXIT
db=$work/store.db
gemm=$root/lua/examples/gemm.lua
fail() { echo "interrupt.sh: $*" >&2; exit 1; }

slowest=0
# Half a minute is for a machine that has other things to do; an idle one takes tenths of a second.
interrupted() { # seconds to wait, words of the message, command…
  seconds=$1 words=$2
  shift 2
  setsid "$@" >"$work/out" 2>"$work/err" &
  pid=$!
  sleep "$seconds"
  kill -INT $pid 2>/dev/null || fail "it ended before: $*: $(cat "$work/err")"
  start=$(date +%s%N)
  session_ended $pid 600 >"$work/left" || fail "still there: $(tr '\n' ' ' <"$work/left") of: $*"
  taken=$((($(date +%s%N) - start) / 1000000))
  [ $taken -le $slowest ] || slowest=$taken
  set +e
  wait $pid
  got=$?
  set -e
  [ $got = 1 ] || fail "status $got: $*: $(cat "$work/err")"
  grep -qF -- "$words" "$work/err" || fail "no \`$words\` in: $(cat "$work/err"), of: $*"
  pid=
}

for seconds in 0.1 0.3 0.6 1.5; do
  interrupted $seconds "interrupted" "$msched" tune "$gemm" --trials 100000 --db "$db" -- 256 256 256
  "$msched" db check --db "$db" | grep -qx clean || fail "db check"
done
interrupted 1 "of this run are kept in $db" "$msched" tune "$gemm" --trials 100000 --db "$db" --json -- 64 64 64
kept=$(sed 's/.*interrupted; \([0-9]*\) results.*/\1/' "$work/err")
[ "$kept" = "$(grep -c '"event":"trial"' "$work/out" || true)" ] || fail "it says that $kept are kept, and reported $(grep -c '"event":"trial"' "$work/out")"

echo 'while true do end' >"$work/loop.lua"
interrupted 0.3 "interrupted" "$msched" tune "$work/loop.lua" --db "$db"
interrupted 0.3 "interrupted" "$msched" "$work/loop.lua"
echo 'while true do pcall(function() while true do end end) end' >"$work/stubborn.lua"
interrupted 0.3 "interrupted" "$msched" tune "$work/stubborn.lua" --db "$db"
echo 'require "msched".rule {name = "endless", apply = function() while true do end end}' >"$work/rule.lua"
interrupted 0.5 "interrupted before anything was measured" "$msched" tune "$gemm" --rules "$work/rule.lua" --rule-timeout 100 --db "$db"
echo 'require "msched".postproc {name = "endless", apply = function() while true do end end}' >"$work/postproc.lua"
interrupted 0.7 "interrupted" "$msched" tune "$gemm" --rules "$work/postproc.lua" --rule-timeout 100 --db "$db" -- 32 32 32
printf 'require("msched").tune(loadfile(arg[1])(64, 64, 64)[1], {trials = 100000, db = arg[2]})' >"$work/tune.lua"
interrupted 1 "interrupted" "$msched" "$work/tune.lua" "$gemm" "$db"
"$msched" db check --db "$db" | grep -qx clean || fail "db check"
echo "interrupt: ok, the slowest stop took $slowest ms"
