#!/bin/sh
# A damaged store, as the commands meet it: never a signal; what is damaged is named, left out, deleted, repaired.
# Usage: store.sh MSCHED ROOT
set -eu
msched=$1
root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "FAIL: $*"
  exit 1
}
db=$work/store.db
cp "$root/tests/unit/data/store_format_1.db" "$db"
add=$root/tests/support/data/add.py
# Its entries get their checksums: out as lines of JSON, in again.
"$msched" db export "$work/lines" --db "$db"
rm -f "$db"
"$msched" db import "$work/lines" --db "$db" >/dev/null
"$msched" db compact --db "$db"
cp "$db" "$work/whole"
ids=$("$msched" top --db "$db" --json | sed -n 's/.*"id":"\([0-9a-f]*\)".*/\1/p')
set -- $ids
[ $# = 3 ] || fail "three records are expected: $ids"
first=$1 second=$2

# ---- Spoiled pages: an error that says what to do, or the command as it was; never a signal.
poke() { printf "\\$(printf %o "$2")" | dd of="$work/spoiled.db" bs=1 seek="$1" conv=notrunc 2>/dev/null; } # offset, byte
meets() { # command…
  status=0
  "$msched" "$@" --db "$work/spoiled.db" >"$work/out" 2>"$work/err" || status=$?
  case $status in
  0) [ -s "$work/out" ] || fail "$* says nothing: $at $byte" ;;
  1) [ -s "$work/err" ] || [ -s "$work/out" ] || fail "$* fails without a word: $at $byte" ;;
  *) fail "$*: status $status with byte $byte at $at" ;;
  esac
}
refusals=0
page=0
while [ $((page * 4096)) -lt "$(wc -c <"$work/whole")" ]; do
  for at in 0 10 12 14 16 18 40; do
    for byte in 0 255; do
      cp "$work/whole" "$work/spoiled.db"
      rm -f "$work/spoiled.db-lock"
      poke $((page * 4096 + at)) $byte
      meets db check
      refusals=$((refusals + status))
      meets top
      [ $byte = 0 ] || [ $status = 1 ] || meets show "$first"
      [ $at != 14 ] || meets tune "$add" --trials 2 --simulate --policy replay_trace --target x86-64-v3
    done
  done
  page=$((page + 1))
done
[ $refusals -gt 40 ] || fail "only $refusals of the spoiled files were refused"

# ---- A record whose bytes are damaged: named once, left out, deleted.
spoil_record() { # store, id: a byte of the record, whose id stands before its seal (4 + 8 bytes) and the mark (4)
  hex=$(printf %s "$2" | sed 's/../\\x&/g')
  LC_ALL=C grep -obUaP "$hex\\x01msr" "$1" | cut -d: -f1 | while read -r offset; do
    printf '\377' | dd of="$1" bs=1 seek=$((offset + 60)) conv=notrunc 2>/dev/null
  done
}
cp "$work/whole" "$db"
spoil_record "$db" "$first"
short=$(printf %.12s "$first")
"$msched" top --db "$db" >"$work/out" 2>"$work/err" || fail "top of a store with a damaged record"
[ "$(grep -c "damaged, and left out: record $short; " "$work/err")" = 1 ] || fail "top: $(cat "$work/err")"
grep -q "$(printf %.7s "$first")" "$work/out" && fail "top lists a damaged record"
[ "$("$msched" top --db "$db" --json 2>/dev/null | wc -l)" = 2 ] || fail "top: the others"
"$msched" db check --db "$db" >"$work/out" 2>"$work/err" && fail "check finds nothing"
grep -qx "record $first: its checksum is wrong" "$work/err" || fail "check: $(cat "$work/err")"
"$msched" show "$first" --db "$db" >"$work/out" 2>"$work/err" && fail "a damaged record is shown"
grep -q "record $short is damaged; .msched db delete $short. removes it" "$work/err" || fail "show: $(cat "$work/err")"
"$msched" db export "$work/others" --db "$db" 2>/dev/null
[ "$(grep -c '"record"' "$work/others")" = 2 ] || fail "export of the others"
"$msched" tune "$add" --trials 1 --policy replay_trace --target x86-64-v3 --db "$db" >"$work/out" 2>"$work/err" ||
  fail "tune: $(cat "$work/out" "$work/err")"
grep -q "left out: record $short" "$work/err" || fail "tune does not name it: $(cat "$work/err")"
cp "$work/whole" "$db"
spoil_record "$db" "$first"
[ "$("$msched" db delete "$short" --db "$db")" = "record $first deleted" ] || fail "delete"
[ "$("$msched" db check --db "$db")" = clean ] || fail "check after delete"
"$msched" db delete "$short" --db "$db" 2>"$work/err" && fail "deleted twice"
grep -q "no record" "$work/err" || fail "deleted twice: $(cat "$work/err")"

# ---- Repair: what is damaged is dropped, of damaged pages too what can be read is kept, the old file stays.
cp "$work/whole" "$db"
[ "$("$msched" db repair --db "$db")" = "clean: there is nothing to repair" ] || fail "repair of a sound store"
cmp "$db" "$work/whole" || fail "repair changed a sound store"
spoil_record "$db" "$second"
cp "$db" "$work/before"
"$msched" db repair --db "$db" >"$work/out" 2>"$work/err" || fail "repair: $(cat "$work/err")"
grep -q "kept 2 records, 1 workload, 0 tensor intrinsics; dropped 1 that are damaged; 0 damaged pages; the file as it was is $db.bak" "$work/out" ||
  fail "repair: $(cat "$work/out")"
grep -qx "record $second: dropped: its checksum is wrong" "$work/err" || fail "repair: $(cat "$work/err")"
cmp "$db.bak" "$work/before" || fail "the backup is another"
[ "$("$msched" db check --db "$db")" = clean ] || fail "check after repair"
page=0
saved=0
while [ $((page * 4096)) -lt "$(wc -c <"$work/whole")" ]; do
  for at in 0 10 12; do # the page's number, its kind, its border
    rm -f "$db".*
    cp "$work/whole" "$work/spoiled.db"
    poke $((page * 4096 + at)) 255
    cp "$work/spoiled.db" "$db"
    "$msched" db repair --db "$db" >"$work/out" 2>"$work/err" || fail "repair with page $page spoiled at $at: $(cat "$work/err")"
    [ "$("$msched" db check --db "$db")" = clean ] || fail "check after repair with page $page spoiled at $at"
    [ "$("$msched" top --db "$db" --json | wc -l)" = 3 ] || fail "records are lost with page $page spoiled at $at: $(cat "$work/out")"
    saved=$((saved + 1))
  done
  page=$((page + 1))
done
[ $saved -gt 20 ] || fail "only $saved were repaired"
# A store that is cut short, anywhere: what is left of it is kept, and what cannot be is said.
cuts=0
pages=$(($(wc -c <"$work/whole") / 4096))
for left in 2 3 5 $((pages / 2)) $((pages - 2)) $((pages - 1)); do
  rm -f "$db" "$db".* "$db-lock"
  head -c $((left * 4096 + 100)) "$work/whole" >"$db"
  "$msched" top --db "$db" 2>"$work/err" && fail "a store cut to $left pages is read"
  grep -q "db repair" "$work/err" || fail "what to do with a store that is cut short: $(cat "$work/err")"
  status=0
  "$msched" db repair --db "$db" >"$work/out" 2>"$work/err" || status=$?
  if [ $status = 0 ]; then
    [ "$("$msched" db check --db "$db")" = clean ] || fail "check after repair of what was cut to $left pages"
    cuts=$((cuts + 1))
  else
    { [ $status = 1 ] && grep -q "nothing of a store" "$work/err"; } || fail "repair of what was cut to $left pages, status $status: $(cat "$work/err")"
  fi
done
[ $cuts -gt 1 ] || fail "only $cuts of the stores that were cut short were repaired"
# An older store, whose entries have no checksums, with either page that says where the tables are.
for page in 0 1; do
  rm -f "$db" "$db".* "$db-lock"
  cp "$root/tests/unit/data/store_format_1.db" "$work/spoiled.db"
  poke $((page * 4096)) 255
  cp "$work/spoiled.db" "$db"
  "$msched" db repair --db "$db" >"$work/out" 2>"$work/err" || fail "repair of an older store: $(cat "$work/err")"
  [ "$("$msched" db check --db "$db")" = clean ] || fail "check after repair of an older store"
  [ "$("$msched" top --db "$db" --json | wc -l)" = 3 ] || fail "repair of an older store, page $page: $(cat "$work/out")"
done
echo 'SQLite format 3 and so on' >"$work/other.db"
"$msched" db repair --db "$work/other.db" >/dev/null 2>"$work/err" && fail "repair of another program's file"
grep -q "nothing of a store\|no store of msched" "$work/err" || fail "repair of another program's file: $(cat "$work/err")"
[ "$(cat "$work/other.db")" = 'SQLite format 3 and so on' ] || fail "another program's file was changed"
[ ! -e "$work/other.db-lock" ] || fail "a lock file is left beside another program's file"
"$msched" db repair --db "$work/none.db" 2>"$work/err" && fail "repair of none"
grep -q "there is no store" "$work/err" || fail "repair of none: $(cat "$work/err")"

# ---- What is refused, or only reads, makes no store.
echo '{"a": 1}' >"$work/bad.jsonl"
while read -r command; do # in words
  # shellcheck disable=SC2086
  "$msched" $command --db "$work/new/none.db" >"$work/out" 2>&1 </dev/null && fail "not refused: $command"
  [ ! -e "$work/new" ] || fail "a store is left: $command"
done <<E
tune $root/lua/examples/gemm.lua --target toaster
tune $root/lua/examples/gemm.lua --policy none
tune $root/lua/examples/gemm.lua --rules $work/none.lua
tune $root/lua/examples/gemm.lua --model none
tune $root/lua/examples/gemm.lua --simulate --trials 1
tune $work/none.lua
tune ops:none
db import $work/none.jsonl
db import $work/bad.jsonl
db merge $work/none.db
db compact
db prune
db pin 0123
db unpin 0123
db delete 0123
db repair
top
show best
E

# ---- The file is not replaced under another process that has it open.
cp "$work/whole" "$db"
printf 'local ms = require "msched"\nlocal s = ms.store(arg[1])\nio.write("open\\n") io.flush()\nio.read()\n' >"$work/hold.lua"
mkfifo "$work/stop"
"$msched" "$work/hold.lua" "$db" <"$work/stop" >"$work/held" &
exec 3>"$work/stop"
while ! grep -q open "$work/held"; do sleep 0.05; done
"$msched" db compact --db "$db" 2>"$work/err" && fail "compact while another has it open"
grep -q "another process has the store open" "$work/err" || fail "compact: $(cat "$work/err")"
exec 3>&-
wait
"$msched" db compact --db "$db" || fail "compact"
[ "$("$msched" db check --db "$db")" = clean ] || fail "check after compact"
echo "store: ok"
