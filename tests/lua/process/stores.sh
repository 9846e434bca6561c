#!/bin/sh
# The store for people: what is listed and chosen, pinned, pruned, merged, compared.  usage: stores.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$root/tests/support/asks.sh"

# Two operators; times, days and targets that are made up.
"$msched" "$root/tests/lua/process/stores.lua" "$work/a.db" "$work/b.db"
db=$work/a.db
"$msched" "$root/tests/lua/process/stores.lua" "$db" found
"$msched" help record | grep -q '^  .seconds  *number  *the median of its runs' || fail "help record"
id() { "$msched" top --db "$db" --json "$1" | sed -nE "$2"'s/.*"id":"([0-9a-f]*)".*/\1/p'; }

"$msched" db list --db "$db" >"$work/list"
has "$work/list" '^matmul_8x8x4: 4 records; float32\[8, 4\], float32\[4, 8\], float32\[8, 8\]$'
has "$work/list" '^  llvm -mcpu=x86-64-v3 -num-cores=1, 3 records, best [0-9a-f]* 1.000 ms .*, last of 2024-05-03$'
has "$work/list" '^  llvm -mcpu=x86-64-v4 -num-cores=1, 1 record, nothing was measured, last of 2024-05-04$'
has "$work/list" '^relu_16: 1 record; float32\[16\], float32\[16\]$'
"$msched" db list --db "$db" --json | grep -q '"arguments":\["float32\[16\]","float32\[16\]"\],"operations":16,"operator":"relu","records":1,' || fail "list --json"

# What is chosen.
chosen() { expected=$1; shift; got=$("$msched" top --json --db "$db" "$@" | wc -l); [ "$got" = "$expected" ] || fail "top $* shows $got records, not $expected"; }
chosen 5
chosen 4 --operator matmul
chosen 0 --operator mat
chosen 4 --shape 8x4
chosen 1 --shape 16
chosen 1 --target "llvm -mcpu=x86-64-v4 -num-cores=1"
chosen 2 --since 2024-05-03
chosen 1 --since 2024-05-03 --target "llvm -mcpu=x86-64-v3 -num-cores=1"
chosen 2 -k 1
chosen 1 --device X86-64-v4
chosen 0 --device nothing
chosen 1 relu_16
chosen 1 'ops:relu(16)'
chosen 4 'ops:matmul(8,8,4)'
for shape in 1.5 8x '' n; do refused 2 "--shape: \`$shape\` is no shape" db prune --shape "$shape" --db "$db"; done
refused 1 'has no workload `mat`' top mat --db "$db"
refused 1 'has no workload `ops:relu(17)`' top 'ops:relu(17)' --db "$db"
refused 1 'there is no operator `none`' top 'ops:none(17)' --db "$db"
refused 2 'a day as 2026-11-30 is expected, not "yesterday"' top --since yesterday --db "$db"
refused 2 'a day as' top --since 2024-02-31 --db "$db"
refused 2 'what to do is one of backup, check, compact, delete' db fly --db "$db"

# Lists of the fastest show what their records do, which --since reads: with limits of all, of some, of none.
"$msched" db export "$work/lines" --db "$db"
for limited in '"status":"measured"' '"seconds":0.001,' 'nothing'; do
  sed -E "/$limited/"'s/"pinned":false/&,"facts":{"limit":"the \\u001b[1mmemory","limit_seconds":0.0005}/
/"seconds":0\.001,/s/"busy":false,"pinned":false/"busy":true,"pinned":true/
/"seconds":0\.002,/s/"versions":"[^"]*"/"versions":"an older\\u001b[1m one"/' "$work/lines" >"$work/changed"
  rm -f "$work"/shown.db*
  "$msched" db import "$work/changed" --db "$work/shown.db" >/dev/null
  for options in "" "-k 1" "-k 20" "--operator matmul"; do
    "$msched" top $options --db "$work/shown.db" >"$work/by_lists"
    "$msched" top $options --since 1971-01-01 --db "$work/shown.db" >"$work/by_records"
    cmp "$work/by_lists" "$work/by_records" || fail "top $options shows another list than its records"
  done
  "$msched" top --db "$work/shown.db" >>"$work/all"
done
has "$work/all" '50 % of the .x1b.1mmemory  llvm .*pinned, busy machine'
has "$work/all" 'by an older.x1b.1m one'

# What differs.
first=$(id matmul_8x8x4 1) second=$(id matmul_8x8x4 2)
"$msched" diff "$first" "$second" --db "$db" >"$work/diff"
has "$work/diff" '^- .*1.000 ms'
has "$work/diff" '^+ .*2.000 ms'
has "$work/diff" '^    - .*sch:split(v.l1, {2, 4}'
has "$work/diff" '^    + .*sch:split(v.l1, {4, 2}'
has "$work/diff" '^    + .*range(2)\|T.grid(4, 2'
"$msched" diff "$first" "$first" --db "$db" >"$work/diff"
has "$work/diff" '^module: the same$'
"$msched" diff "$first" "$second" --assembly --db "$db" >"$work/diff"
has "$work/diff" '^inner loop:'
has "$work/diff" '^  - [1-9][0-9]* instructions, [0-9]* multiply-adds, [0-9]* other arithmetic, [1-9][0-9]* loads, [0-9]* stores, [0-9]* of the stack$'
"$msched" diff "$first" "$first" --assembly --db "$db" >"$work/diff"
has "$work/diff" '^inner loop: the same$'
[ "$(sed -n 's/^  [-+] //p' "$work/diff" | sort -u | wc -l)" = 1 ] || fail "one loop has two counts: $(cat "$work/diff")"
refused 2 "two records' IDs are expected" diff "$first" --db "$db"
refused 1 "no record .0000" diff "$first" 00000000 --db "$db"

# A task's name is its best, and `best` that of a store's only task; what may be several is listed.
"$msched" show relu_16 --db "$db" --json >"$work/named" && "$msched" show "$(id relu_16 1)" --db "$db" --json | cmp -s - "$work/named" || fail "a task's name is not its best"
refused 1 '`best` may be 2 records: say which by its ID: [0-9a-f]* matmul_8x8x4 on .*; [0-9a-f]* relu_16 on' show best --db "$db"
refused 1 "is no record's id.*; no task of $db has this name" show fly --db "$db"
refused 1 "no task .*has this name" diff relu_16 fly --db "$db"
refused 1 "is no record's id" db delete relu_16 --db "$db"
"$msched" show best --db "$work/b.db" --json >"$work/named" || fail "best of the only task"
"$msched" top -k 1 --json --db "$work/b.db" | grep -q "$(sed -nE 's/.*("id":"[0-9a-f]*").*/\1/p' "$work/named")" || fail "best is another"
completed() { bash -c 'complete() { :; }; . "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _msched; echo " ${COMPREPLY[*]} "' completion "$root/lua/completion.bash" "$msched" "$@"; }
completed show --db "$db" "" >"$work/words"
for word in best relu_16 matmul_8x8x4 "$(printf %.7s "$first")"; do has "$work/words" " $word "; done
completed db pin --db "$db" matm | grep -q ' matmul_8x8x4 ' || fail "completion of a name"
completed db delete --db "$db" "" >"$work/words"
lacks "$work/words" " relu_16 "
has "$work/words" " $(printf %.7s "$first") "
completed db delete --db "$db" "$(printf %.4s "$second")" | grep -q " $(printf %.7s "$second") " || fail "completion of an ID"
[ "$("$msched" db words --db "$db" relu)" = relu_16 ] || fail "db words relu"
"$msched" db words --db "$db" --json none | grep -qx '{"words":\[\]}' || fail "db words none"
refused 2 "words takes one beginning, and not .more. besides" db words one more --db "$db"

# One of a workload on a target is pinned; it stays so when it is measured again, pruned, and in another store.
"$msched" db pin "$first" --db "$db" >/dev/null
"$msched" db pin "$second" --db "$db" >"$work/out"
has "$work/out" "record $second is pinned"
"$msched" show matmul_8x8x4 --db "$db" --json | grep -q "\"id\":\"$second\"" || fail "a name is not what is pinned"
[ "$("$msched" top --db "$db" | grep -c pinned)" = 1 ] || fail "two are pinned"
"$msched" db list --db "$db" | grep -q ", pinned $(printf %.7s "$second")" || fail "what is pinned is not listed"
"$msched" "$root/tests/lua/process/stores.lua" "$db" again
"$msched" top --db "$db" >"$work/top"
has "$work/top" "$(printf %.7s "$second").*pinned"
failed=$("$msched" top --db "$db" --json | sed -nE 's/.*"id":"([0-9a-f]*)".*"status":"failed".*/\1/p')
refused 1 "failed: wrong result" db pin "$failed" --db "$db"

# Of two stores that have a record, the later one's is kept; a pin is kept too.
refused 1 "a store is not merged into itself" db merge "$db" --db "$db"
refused 1 "there is no store" db merge "$work/none.db" --db "$work/all.db"
"$msched" db merge "$db" "$work/b.db" --db "$work/all.db" >"$work/out"
counted() { "$msched" top -k 1000000 --db "$1" --json | grep -c '"id":'; }
added=$(counted "$work/all.db") given=$(($(counted "$db") + $(counted "$work/b.db")))
grep -qx "$added records added, $((given - added)) in several stores: the later one is kept" "$work/out" || fail "what merging says: $(cat "$work/out"), $added, $given"
"$msched" db check --db "$work/all.db" | grep -qx clean || fail "the merged store is not clean"
"$msched" db merge "$work/b.db" "$db" --db "$work/turned.db" >/dev/null
for each in all turned; do
  "$msched" top --db "$work/$each.db" --json | sort >"$work/$each"
  grep -q '"seconds":0.0005' "$work/$each" || fail "$each: the later record is not kept"
  grep -q 'pinned' "$work/$each" || fail "$each: the pin is lost"
done
cmp -s "$work/all" "$work/turned" || fail "the order of stores shows: $(diff "$work/all" "$work/turned")"

# What cannot be taken is named, and keeps nothing else out.
"$msched" "$root/tests/lua/process/stores.lua" "$work/odd.db" odd
"$msched" "$root/tests/lua/process/stores.lua" "$work/odd.db" merge
refused 1 "^msched db: $work/odd.db: record [0-9a-f]*: \`low\`, 2, must not be above \`high\`, 1$" db merge "$work/odd.db" --db "$work/even.db"
has "$work/out" '^1 record added, 1 record refused$'
"$msched" db check --db "$work/even.db" | grep -qx clean || fail "what a refusal left is not clean"

"$msched" db prune -k 1 --db "$db" >"$work/out"
has "$work/out" '^3 records kept, 2 deleted'
"$msched" top --db "$db" >"$work/top"
has "$work/top" "pinned"
lacks "$work/top" "failed"
"$msched" db prune -k 1 --operator relu --db "$work/b.db" | grep -q '^0 records kept, 0 deleted' || fail "prune chooses others"
refused 2 "at least 1" db prune -k 0 --db "$db"

"$msched" "$root/tests/lua/process/stores.lua" "$work/batch.db" batch

# An import is written in batches: what is in one is seen by the lines after it.
"$msched" "$root/tests/lua/process/stores.lua" "$work/many.db" many
"$msched" db export "$work/lines" --db "$work/many.db"
lines=$(grep -c '"record"' "$work/lines")
[ "$lines" -gt 2500 ] || fail "only $lines records"
"$msched" db import "$work/lines" --db "$work/copy.db" | grep -qx "$lines records added" || fail "not all are taken"
"$msched" db check --db "$work/copy.db" | grep -qx clean || fail "the imported store is not clean"
"$msched" db export "$work/copied" --db "$work/copy.db"
cmp -s "$work/lines" "$work/copied" || fail "the import is another"
sed -n '1,2000p' "$work/lines" >"$work/cut"
echo '{"record":"x"}' >>"$work/cut"
got=0
"$msched" db import "$work/cut" --db "$work/part.db" >"$work/out" 2>&1 || got=$?
[ "$got" = 1 ] && grep -q "1999 records added, 1 line refused" "$work/out" || fail "a spoiled line: $got, $(cat "$work/out")"

# What cannot be written whole is not there, and why is said.
short() { # a file that the words after it write
  into=$1
  shift
  status=0
  (ulimit -f 1 && exec "$msched" "$@") >"$work/out" 2>"$work/err" || status=$?
  [ "$status" = 1 ] && grep -q "File too large" "$work/err" && [ ! -e "$into" ] || fail "$*: $status, $(cat "$work/err")"
}
short "$work/none" db export "$work/none" --db "$work/many.db"
short "$work/none.html" report -o "$work/none.html" --db "$work/batch.db"

# What LMDB maps of the lock file has its blocks: on a full disk a page without one would be a signal. Where there is no
# room for it, the store is read without it, and not written.
stat -c '%b %B' "$work/part.db-lock" | { read -r count size && [ $((count * size)) -ge 8192 ] || fail "the lock file has $count blocks of $size"; }
rm "$work/part.db-lock"
(ulimit -f 0 && exec "$msched" db check --db "$work/part.db") 2>"$work/err" | cat >"$work/out"
has "$work/out" '^clean$'
(ulimit -f 0 && exec "$msched" db prune --db "$work/part.db") 2>&1 | cat >"$work/out"
has "$work/out" "committed before is kept"
for kind in 'mkdir' 'mkfifo' 'ln -s part.db-lock'; do
  rm -rf "$work/part.db-lock"
  $kind "$work/part.db-lock"
  refused 1 "part.db-lock: this is no file" top --db "$work/part.db"
done

# No file that a command writes takes a store's place; what was there stays until all is written.
ln -s a.db "$work/link.db"
echo '[[],[]]' >"$work/trace.json"
sum=$(cksum <"$db")
for to in "$db" "$work/link.db" "$work/b.db"; do
  refused 1 'this is a store of records, which nothing else replaces' db export "$to" --db "$db"
  refused 1 'this is a store of records, which nothing else replaces' db export "$to" --csv --db "$db"
  refused 1 'this is a store of records, which nothing else replaces' report -o "$to" --db "$db"
  refused 1 'this is a store of records, which nothing else replaces' convert "$work/trace.json" --to lua -o "$to"
done
[ "$(cksum <"$db")" = "$sum" ] || fail "the store was changed"
"$msched" db export "$work/all.jsonl" --db "$db"
sum=$(cksum <"$work/all.jsonl")
(ulimit -f 1 && "$msched" db export "$work/all.jsonl" --db "$db") 2>"$work/err" && fail "an export longer than files may be"
has "$work/err" 'cannot be written: File too large'
[ "$(cksum <"$work/all.jsonl")" = "$sum" ] || fail "what was there is gone"
[ "$(ls "$work" | grep -c '^all.jsonl')" = 1 ] || fail "something is left beside it"
refused 1 'cannot be written: No space left' db export /dev/full --db "$db"
