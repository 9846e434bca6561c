#!/bin/sh
# Whatever the final re-measurement says, there is one best with one time: in the table of the end, the last line,
# `next:`, the events of --json, `top`, `db list`, and the curve of the report.
# usage: qdense_best.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"
rounds=1
[ "${MSCHED_REPORTED:-}" != all ] || rounds=20

one() { # what, lines on standard input that must all be the same
  sort -u >values
  [ "$(wc -l <values)" = 1 ] || fail "$1: $(tr '\n' ' ' <values)"
}

for seed in $(seq $rounds); do
  rm -f q.db*
  expect_status 0 "$program" tune "$here/qdense.lua" --trials 12 --policy random --seed "$seed" --db q.db
  "$program" top -k 1 --db q.db >top
  "$program" db list --db q.db >list
  {
    sed -n 's/^next:.*show \([0-9a-f]*\) .*/\1/p' output
    sed -n 's/^  1  \([0-9a-f]*\) .*/\1/p' output
    sed -n 's/.*: trial .*(\([0-9a-f]*\)).*/\1/p' output | tail -n 1
    sed -n 's/^ *1  \([0-9a-f]*\) .*/\1/p' top
    sed -n 's/.* best \([0-9a-f]*\) .*/\1/p' list
  } | one "seed $seed: the best"
  [ "$(cat values)" != "" ] || fail "no best"
  time='[0-9.]* [mun]*s'
  {
    sed -n "s/^  1  [0-9a-f]*  \\($time\\)  .*/\\1/p" output
    sed -n "s/.*: trial .*best \\($time\\) .*/\\1/p" output | tail -n 1
    sed -n "s/^ *1  [0-9a-f]*  \\($time\\)  .*/\\1/p" top
    sed -n "s/.* best [0-9a-f]* \\($time\\) .*/\\1/p" list
    "$program" report -o page.html --db q.db >/dev/null
    sed -n "s/.*ends at \\($time\\).*/\\1/p" page.html
  } | one "seed $seed: its time"

  rm -f q.db*
  "$program" tune "$here/qdense.lua" --trials 12 --policy random --seed "$seed" --json --db q.db >output
  {
    grep '"event":"end"' output | grep -o '"short_id":"[0-9a-f]*"'
    "$program" top -k 1 --json --db q.db | grep -o '"short_id":"[0-9a-f]*"'
  } | one "seed $seed: the best of --json"
  {
    grep '"event":"end"' output | grep -o '"best_seconds":[0-9.e-]*' | cut -d: -f2
    grep '"event":"retimed"' output | tail -n 1 | grep -o '"best_seconds":[0-9.e-]*' | cut -d: -f2
    "$program" top -k 1 --json --db q.db | grep -o '"seconds":[0-9.e-]*' | cut -d: -f2
  } | one "seed $seed: the time of --json"
done
