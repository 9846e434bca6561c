#!/bin/sh
# Ctrl-C while functions of many blocks are opened, estimated, searched and composed: at moments spread over a run, each
# command ends within seconds, says that it was interrupted where it has a store, and leaves that clean.
# usage: interrupt_blocks.sh MSCHED ROOT
set -eu
msched=$1 root=$2
. "$root/tests/support/session.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "interrupt_blocks.sh: $*" >&2; exit 1; }

MOST=10000 # milliseconds, on a machine that has much else to do; an idle one takes tenths of a second

cat >blocks.lua <<'L'
local te, kind, count = require("msched").te, ...
local X = te.placeholder({16, 16}, "float32", "X")
local t = X
for i = 1, tonumber(count) do
  local k, before = te.reduce_axis(16, "k" .. i), t
  t = te.compute({16, 16}, function(a, b)
    return kind == "products" and te.sum(before[{a, k}] * X[{k, b}], k) or before[{a, b}] * te.exp(X[{b, a}])
  end, "T" .. i)
end
return {te.func(kind, {X, t})}
L

interrupted() { # seconds to wait, command…
  seconds=$1
  shift
  setsid env --default-signal=INT "$@" >out 2>err &
  pid=$!
  sleep "$seconds"
  kill -INT $pid 2>/dev/null || { wait $pid || fail "status $? without an interrupt: $*: $(cat err)"; return 0; }
  start=$(date +%s%N)
  session_ended $pid 600 >left || fail "still there: $(cat left): $*"
  took=$((($(date +%s%N) - start) / 1000000)) status=0
  wait $pid || status=$?
  case $status in 0 | 130) ;; 1) grep -q interrupted err ;; *) false ;; esac || fail "status $status: $*: $(cat err)"
  ! grep -q Assertion err || fail "a bug shows: $*: $(cat err)"
  [ $took -lt $MOST ] || fail "it took $took ms to end, interrupted after $seconds s: $*"
  echo "$took $seconds s: $*" >>taken
  [ ! -f b.db ] || "$msched" db check --db b.db | grep -qx clean || fail "db check: $*"
}

for seconds in 0.3 1.1 3; do
  interrupted $seconds "$msched" tune blocks.lua --whole --trials 1000 --policy-timeout 60 --db b.db -- products 20
  interrupted $seconds "$msched" tune blocks.lua --trials 1000 --db b.db -- products 60
  interrupted $seconds "$msched" tune blocks.lua --trials 1000 --db b.db -- elementwise 300
  interrupted $seconds "$msched" tune blocks.lua --no-tune --whole --db b.db -- products 30
  interrupted $seconds "$msched" space blocks.lua --whole -- products 80
done
sort -n taken | awk '{ t[NR] = $1 } END { printf "interrupted %d times; median %d ms, longest %d ms, %s\n", NR, t[int((NR + 1) / 2)], t[NR], $0 }'
