#!/bin/sh
# What keeps a store small and safe: backups, records that go by rules, tables of values.  usage: store_care.sh MSCHED
# ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
. "$root/tests/support/asks.sh"

# Records of 1, 2 and 3 ms of the 1st to the 3rd of May 2024, one that failed on another target, one of another
# workload.
"$msched" "$root/tests/lua/process/stores.lua" "$work/a.db" "$work/b.db"
db=$work/a.db

# A backup has what the store has, replaces nothing, and is left by no failure.
"$msched" db backup "$work/copy.db" --db "$db" | grep -qx "$work/copy.db: a copy of the store, clean" || fail "backup"
"$msched" db export "$work/lines" --db "$db"
"$msched" db export "$work/copied" --db "$work/copy.db"
cmp -s "$work/lines" "$work/copied" || fail "the copy has other records"
refused 1 "there is a file of that name; a backup replaces none" db backup "$work/copy.db" --db "$db"
refused 1 "copy.db: there is a file" db backup "$work/copy.db" --db "$work/b.db"
cp "$work/copied" "$work/kept"
"$msched" db export "$work/copied" --db "$work/copy.db"
cmp -s "$work/kept" "$work/copied" || fail "the copy was replaced"
refused 1 "there is no store" db backup "$work/none.db" --db "$work/no.db"
refused 2 "say where to" db backup --db "$db"
refused 1 "the name of the backup is empty" db backup "" --db "$db"
refused 2 "takes one file" db backup "$work/x" "$work/y" --db "$db"
refused 1 "cannot be written" db backup "$work/none/x.db" --db "$db"
status=0
(ulimit -f 1 && exec "$msched" db backup "$work/short.db" --db "$db") 2>"$work/err" || status=$?
[ "$status" = 1 ] || fail "a full disk: $status, $(cat "$work/err")"
left=$(cd "$work" && ls -d short* none* copy.db?* 2>/dev/null | grep -v '^copy.db-lock$' || true)
[ -z "$left" ] || fail "left: $left"

# What goes: all conditions hold of it. The fastest stays, and what is pinned.
# Records are of noon, local time: so many days ago is after the noon of that day, and before the next one, at any hour.
days() { echo $((($(date +%s) - $(date -d "$1 12:00:01" +%s)) / 86400)); }
would() { # EXPECTED WORDS…: how many would be deleted
  expected=$1
  shift
  got=$("$msched" db prune --dry-run --db "$db" "$@" | sed -nE 's/^.* kept, ([0-9]+) would be deleted; nothing was$/\1/p')
  [ "$got" = "$expected" ] || fail "prune $*: $got, not $expected"
}
would 1
would 3 -k 1
would 3 --older "$(days 2024-05-04)d"
would 1 --older "$(days 2024-05-02)d"
would 0 --older 99999d
would 0 --older 200y
would 3 --within 1.5
would 2 --within 2.5
would 1 --within 10
would 1 --within 1.5 --older "$(days 2024-05-02)d"
would 1 --device V4
would 2 --device x86-64-v3
would 0 --device nothing
would 2 --within 1.5 --target "llvm -mcpu=x86-64-v3 -num-cores=1"
would 0 --within 1.5 --operator relu
would 2 --within 1.5 -k 2
"$msched" db prune --within 1.5 --dry-run --db "$db" >"$work/out"
has "$work/out" '^matmul_8x8x4 on llvm -mcpu=x86-64-v3 -num-cores=1: 2 of 3 records would be deleted$'
"$msched" db prune --within 1.5 --dry-run --json --db "$db" >"$work/out"
has "$work/out" '^{"deleted":3,"kept":2,"tasks":\[{"deleted":2,"kept":1,"target":"llvm -mcpu=x86-64-v3 -num-cores=1","task":"matmul_8x8x4"},'
"$msched" db export "$work/copied" --db "$db"
cmp -s "$work/lines" "$work/copied" || fail "a dry run changes the store"
for each in 5 d 1m -1d 1.5d 1000000d; do refused 2 "days, weeks or years are expected" db prune --older "$each" --db "$db"; done
refused 2 "at least 1 is expected" db prune --within 0.5 --db "$db"
refused 2 "at least 1 is expected" db prune --within 2 -k 0 --db "$db"
third=$("$msched" top --db "$db" --json matmul_8x8x4 | sed -nE '3s/.*"id":"([0-9a-f]*)".*/\1/p')
"$msched" db pin "$third" --db "$db" >/dev/null
would 2 --within 1.5
"$msched" db prune --within 1.5 --db "$db" >"$work/out"
has "$work/out" '^3 records kept, 2 deleted; '
"$msched" top --db "$db" >"$work/out"
has "$work/out" "3.000 ms.*pinned"
"$msched" db check --db "$db" | grep -qx clean || fail "what prune left is not clean"
"$msched" db list --db "$db" | grep -q "^matmul_8x8x4: 2 records" || fail "the summaries count others"

# Comma-separated values: as many fields a line as columns have names, whatever a text holds.
sed -E 's/"reason":"[^"]*"/"reason":"=1+2,\\"a\\"\\u001b[2J\\nb\\u202e\\u00e9"/' "$work/lines" >"$work/odd"
"$msched" db import "$work/odd" --db "$work/odd.db" >/dev/null
"$msched" db export --csv "$work/odd.csv" --db "$work/odd.db"
[ "$(wc -l <"$work/odd.csv")" = 6 ] && [ "$(grep -c "$(printf '\r')\$" "$work/odd.csv")" = 6 ] || fail "lines of: $(cat "$work/odd.csv")"
has "$work/odd.csv" '^id,workload,task,target,device,status,seconds,low,high,runs,when,versions,seed,candidate,hash,unsafe,busy,pinned,reason,worker.$'
has "$work/odd.csv" ',"matmul_8x8x4","llvm -mcpu=x86-64-v3 -num-cores=1","",measured,0.002,0.002,0.002,3,2024-05-02T'
has "$work/odd.csv" ',failed,,,,3,2024-05-04T'
grep -qF ",false,\"'=1+2,\"\"a\"\"\\x1b[2J\\x0ab\\xe2\\x80\\xaeé\"" "$work/odd.csv" || fail "texts of: $(cat "$work/odd.csv")"
"$msched" db export --csv --db "$work/odd.db" | cmp -s - "$work/odd.csv" || fail "standard output has others"
refused 2 "does not go with" db export --csv --tvm "$work/tvm" --db "$db"
