#!/bin/sh
# How many workers one tuner of several functions keeps busy: workers that measure nothing take 0.3 s for each
# candidate. From the first that is asked for to the last result.
# usage: fleet_busy.sh MSCHED [WORKERS [FUNCTIONS [TRIALS]]]
set -eu
msched=$1 workers=${2:-24} functions=${3:-8} trials=${4:-128} each=0.3
command -v redis-server >/dev/null || { echo "fleet_busy: skipped: there is no redis-server"; exit 77; }
work=$(mktemp -d) port=$((20000 + $$ % 20000)) pids=''
# shellcheck disable=SC2086
trap 'kill -9 $pids 2>/dev/null || true; rm -rf "$work"' EXIT
redis-server --port $port --save '' --appendonly no --dir "$work" --loglevel warning >"$work/server" 2>&1 &
pids=$!
until "$msched" fleet redis://localhost:$port >"$work/fleet" 2>&1; do sleep 0.05; done
for n in $(seq "$workers"); do
  MSCHED_FLEET_SIMULATE=$each "$msched" worker redis://localhost:$port --name "w$n" >"$work/worker.$n" 2>&1 &
  pids="$pids $!"
done
until [ "$("$msched" fleet redis://localhost:$port | grep -c ' works$')" = "$workers" ]; do sleep 0.1; done
{
  echo "local list = {}"
  echo "for n = 1, $functions do list[n] = msched.ops.func('matmul', {64, 64 * n, 128}) end"
  echo "return list"
} >"$work/functions.lua"
"$msched" tune "$work/functions.lua" --policy random --trials "$trials" --fleet redis://localhost:$port --db "$work/s.db" --json >"$work/out"
sed -n 's/.*"elapsed":\([0-9.e-]*\).*"event":"\(asked\|trial\)".*/\1 \2/p' "$work/out" |
  awk -v w="$workers" -v e=$each -v f="$functions" '
    $2 == "asked" && !begun { begun = $1 }
    $2 == "trial" { n++; ended = $1 }
    END { printf "%d functions, %d candidates of %g s in %.1f s: %.1f of %d workers busy\n", f, n, e, ended - begun, n * e / (ended - begun), w }'
