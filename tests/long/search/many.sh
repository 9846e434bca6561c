#!/bin/sh
# Twenty tasks from one command, interrupted twice and resumed: records are kept and found again, no trial is done
# twice, and
# each task of which a candidate was timed ends with a best.  usage: many.sh MSCHED [TRIALS of all together [SEED]]
set -eu
msched=$1 total=${2:-400} seed=${3:-1}
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "many.sh: $*" >&2; exit 1; }

# trials of all together: as JSON, on standard output; takes the place of its shell
tune() { exec "$msched" tune suite:ops --db "$work/store.db" --total-trials "$1" --seed "$seed" --json -- C1D GRP DEP SFM NRM batch=1; }
count() { grep -c "\"event\":\"$1\"" "$2" || true; }
starts_with() { sed -n 's/.*"event":"start","known":\([0-9]*\),.*/\1/p' "$1" | awk '{s += $1} END {print s + 0}'; }

# Interrupted after a third, twice.
done_so_far=0
for part in 1 2; do
  : >"$work/out$part"
  (tune $((total - done_so_far)) >>"$work/out$part" 2>"$work/err") &
  pid=$!
  until [ "$(count trial "$work/out$part")" -ge $((total / 3)) ]; do
    kill -0 $pid 2>/dev/null || fail "part $part ended by itself: $(cat "$work/err")"
    sleep 0.2
  done
  kill -INT $pid
  wait $pid && fail "part $part was not interrupted" || true
  pid=
  grep -q interrupted "$work/err" || fail "part $part does not say that it was: $(cat "$work/err")"
  [ "$(starts_with "$work/out$part")" = $done_so_far ] || fail "part $part knows $(starts_with "$work/out$part") of $done_so_far"
  done_so_far=$((done_so_far + $(count trial "$work/out$part")))
  "$msched" db check --db "$work/store.db" | grep -qx clean || fail "db check after part $part"
done
(tune $((total - done_so_far)) >"$work/out3" 2>"$work/err") || fail "the rest: $(cat "$work/err")"
[ "$(starts_with "$work/out3")" = $done_so_far ] || fail "the rest knows $(starts_with "$work/out3") of $done_so_far"
[ "$(count end "$work/out3")" = 20 ] || fail "$(count end "$work/out3") tasks end, not 20"
measured=$(sed -n 's/.*"event":"trial".*"outcome":"measured".*"task":"\([^"]*\)".*/\1/p' "$work"/out[123] | sort -u | wc -l)
bests=$(grep '"event":"end"' "$work/out3" | grep -c '"best_seconds"' || true)
[ "$bests" = "$measured" ] && [ "$bests" -ge 10 ] || fail "$measured tasks had a candidate that was not cut off, $bests have a best"
cat "$work"/out[123] | sed -n 's/.*"event":"trial".*"id":"\([0-9a-f]*\)".*/\1/p' | sort | uniq -d | grep . && fail "measured twice"
done_so_far=$((done_so_far + $(count trial "$work/out3")))
[ $done_so_far = "$total" ] || fail "$done_so_far trials, not $total"
echo "twenty tasks, interrupted twice: $total trials, none twice; $bests have a best"

