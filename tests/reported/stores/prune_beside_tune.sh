#!/bin/sh
# `db prune` beside a tuner, both killed at some moment: what is left is a sound store, in which nobody finds a page
# missing though the file is shorter than its header says.
# usage: prune_beside_tune.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"

tries=5
[ "${MSCHED_REPORTED:-}" != all ] || tries=25
for i in $(seq $tries); do
  "$program" tune ops:softmax --trials 300 --seed "$i" --db x.db --target "native -num-cores=1" -- 32x32 >tuner 2>&1 &
  tuner=$!
  sleep 0.6
  for _ in $(seq 600); do [ ! -e x.db ] || break; sleep 0.1; done # a busy machine takes longer to begin one
  "$program" db prune -k 5 --db x.db >pruner 2>&1 &
  pruner=$!
  sleep 0.$(printf %03d $((i * 13)))
  kill -9 $pruner $tuner 2>/dev/null || true
  wait $pruner $tuner 2>/dev/null || true
  ! grep -q "cut short\|damaged" tuner pruner || fail "try $i: $(cat tuner pruner)"
  [ ! -e x.db ] || expect_status 0 "$program" db check --db x.db
  [ ! -e x.db ] || expect_status 0 "$program" db repair --db x.db
  [ ! -e x.db ] || expect_output '^clean'
done
[ -e x.db ] || fail "no tuner made a store"
