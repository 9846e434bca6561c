#!/bin/sh
# What a store of N records costs: bytes a record, and the time and memory of each command. The store is made here, of
# records like those of a small one; one in ten is of one task. On a busy machine only ratios count.
# usage: large_store.sh MSCHED FILL_STORE ROOT RECORDS…
set -eu
msched=$(realpath "$1") fill=$(realpath "$2") root=$(realpath "$3")
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$root/tests/unit/data/store_format_2.db" like.db
echo 'print(msched.store(arg[1], {read_only = true}):find(arg[2]).id)' >find.lua
# The most that a process's own pages take while it runs, in KB, by a look each 20 ms: the rest of what is resident are
# pages of the files that it maps, which the system takes back where it needs memory.
own_of() { # the process that started it
  most=0
  while ! grep -qs '^State:.*zombie' "/proc/$1/status"; do
    child=$(cat "/proc/$1/task/$1/children" 2>/dev/null || true)
    own=$(sed -n 's/^RssAnon:[^0-9]*\([0-9]*\).*/\1/p' "/proc/${child% }/status" 2>/dev/null || true)
    [ "${own:-0}" -le "$most" ] || most=$own
    sleep 0.02
  done
  echo "$most"
}
timed() { # what, command…
  what=$1
  shift
  /usr/bin/time -f "%e s, %U + %S of processor, %M KB" "$@" >output 2>times &
  own=$(own_of $!)
  wait $! || { cat times && exit 1; }
  echo "  $what: $(tail -n 1 times), $own KB of its own"
}
for records; do
  echo "$records records"
  rm -f s.db*
  timed make "$fill" make s.db "$records" like.db
  echo "  bytes a record: $(($(stat -c %s s.db) / records))"
  timed "db compact" "$msched" db compact --db s.db
  echo "  bytes a record, compacted: $(($(stat -c %s s.db) / records))"
  echo "  $("$fill" time s.db)"
  timed "db list" "$msched" db list --db s.db
  timed "top" "$msched" top --db s.db
  timed "top of a task" "$msched" top add_1 --db s.db
  timed "find the best of a task" "$msched" find.lua s.db add_1
  timed "report of a task" "$msched" report add_1 --db s.db -o page.html
  echo "  bytes of the page: $(stat -c %s page.html)"
  timed "db check" "$msched" db check --db s.db
  timed "db export" "$msched" db export lines --db s.db
  timed "db import" "$msched" db import lines --db imported.db
  timed "db merge" "$msched" db merge s.db --db merged.db
  rm -f lines imported.db* merged.db*
  sync # what the commands above wrote is not what commits wait for
  "$fill" commit s.db bare.db 2000 | sed 's/^/  /'
  rm -f bare.db*
done
