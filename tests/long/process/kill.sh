#!/bin/sh
# Tuning is killed with SIGKILL at random moments, and goes on: every record whose id was printed is there, the store is
# clean, no process is left. In three of four rounds the first commit is waited for.
# usage: kill.sh MSCHED ROOT [ROUNDS [SEED]]
set -eu
msched=$1 root=$2 rounds=${3:-50} seed=${4:-1}
. "$root/tests/support/session.sh"
work=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null || true; rm -rf "$work"' EXIT
db=$work/store.db
fail() { echo "kill.sh: round $round of seed $seed: $*" >&2; exit 1; }
ids() { sed -n 's/.*"event":"trial".*"id":"\([0-9a-f]*\)".*/\1/p' "$@"; }
tune() { # seed, trials; takes the place of its shell
  exec setsid "$msched" tune "$root/lua/examples/gemm.lua" --trials "$2" --seed "$1" --policy "$policy" --db "$db" --json -- 32 32 32
}

: >"$work/promised"
committed=0
for round in $(seq "$rounds"); do
  policy=$([ $((round % 2)) = 0 ] && echo evolutionary || echo replay_trace)
  # shellcheck disable=SC2046 # two numbers
  set -- $(awk -v s="$((seed * 1000 + round))" 'BEGIN {srand(s); printf "%.3f %.3f\n", rand() * 0.4, rand() * 0.3}')
  : >"$work/out" # the process appends, so that nothing of it is lost
  tune "$((seed * 1000 + round))" 100000 >>"$work/out" 2>"$work/err" &
  pid=$!
  if [ $((round % 4)) != 0 ]; then # after a commit of this round, then any time
    tries=0
    until grep -q '"event":"trial"' "$work/out"; do
      tries=$((tries + 1))
      [ $tries -le 1200 ] && kill -0 $pid 2>/dev/null || fail "no trial: $(cat "$work/err")"
      sleep 0.05
    done
    sleep "$1"
  else
    sleep "$2"
  fi
  kill -0 $pid 2>/dev/null || fail "it ended by itself: $(cat "$work/err")"
  kill -9 $pid
  wait $pid 2>/dev/null && fail "it was not killed"
  session_ended $pid 100 >"$work/left" || fail "processes are left: $(tr '\n' ' ' <"$work/left")"
  pid=
  ids "$work/out" >>"$work/promised"
  [ -z "$(ids "$work/out")" ] || committed=$((committed + 1))
  [ -e "$db" ] || continue
  "$msched" db check --db "$db" >"$work/check" 2>&1 || fail "db check: $(cat "$work/check")"
  "$msched" db export "$work/all" --db "$db" || fail "db export"
  sed -n 's/^{"record": *"\([0-9a-f]*\)".*/\1/p' "$work/all" | sort -u >"$work/there"
  sort -u "$work/promised" | comm -23 - "$work/there" >"$work/lost"
  [ ! -s "$work/lost" ] || fail "records are lost: $(cat "$work/lost")"
done

# And it goes on from there.
policy=evolutionary
(tune "$seed" 4) >"$work/out" 2>"$work/err" || fail "it does not go on: $(cat "$work/err")"
known=$(sed -n 's/.*"event":"start",.*"known":\([0-9]*\).*/\1/p' "$work/out")
[ "$known" = "$(wc -l <"$work/there")" ] || fail "$known records are known, of $(wc -l <"$work/there")"
[ $((2 * committed)) -ge "$rounds" ] || fail "only $committed of $rounds were killed after a commit"
echo "kill: $rounds rounds, $committed after a commit, $(sort -u "$work/promised" | wc -l) records promised and kept"
