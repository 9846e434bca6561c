#!/bin/sh
# Each system call of the commands that change a store fails once, at each of its uses. Whatever fails, the command ends
# by itself with status 0, or 1 and a message; the store opens, checks clean, and has every record that it had before,
# but those that were to be deleted; the next run of the command succeeds.
# usage: injected_store.sh MSCHED LIBINJECT INJECT_COUNTS [first|all [SCENARIO…]]
#   first      of each call the first use
#   all        every use, and every use at once
#   SCENARIO   import merge prune delete compact repair (all of them)
set -eu
msched=$1 library=$2 counts=$3 extent=${4:-first}
[ $# -le 4 ] && set -- import merge prune delete compact repair || shift 4
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

bad=0
fail() { # what is wrong
  echo "injected_store: $scenario: $failure: $*" >&2
  tail -n 3 output | sed 's/^/  /' >&2
  bad=$((bad + 1))
}

ids() { sed -n 's/^{"record": *"\([0-9a-f]*\)".*/\1/p' "$1" | sort -u; }

# A store of 30 records, one of 30 others, one with a damaged record, and what each has.
"$msched" tune ops:matmul --trials 1 --target "native -num-cores=1" --db src.db -- 8 8 8 >output 2>&1
"$msched" "$here/../../reported/stores/many_records.lua" put base.db src.db 30 30 >output
"$msched" "$here/../../reported/stores/many_records.lua" put many.db src.db 60 60 >output
"$msched" db export many.jsonl --db many.db
"$msched" db export base.jsonl --db base.db
ids base.jsonl >base.ids
best=$("$msched" top -k 1 --json --db base.db | sed -n 's/.*"id":"\([0-9a-f]*\)".*/\1/p')
last=$("$msched" top -k 30 --json --db base.db | tail -n 1 | sed -n 's/.*"id":"\([0-9a-f]*\)".*/\1/p')
# A byte of one record is changed: a repair drops it, and rewrites the file with the others.
cat >spoil.lua <<'L'
local file = assert(io.open(arg[1], "r+b"))
local text, at = file:read "a", 0
for _ = 1, tonumber(arg[3]) do at = assert(text:find(arg[2], at + 1, true)) end
file:seek("set", at - 1)
file:write "?"
file:close()
L
nth=0
"$msched" "$here/../../reported/stores/many_records.lua" put whole.db src.db 30 30 >output
lacks_one() {
  "$msched" db check --db damaged.db >output 2>&1 || true
  [ "$(grep -c '^record' output)" = 1 ]
}
until lacks_one; do
  nth=$((nth + 1))
  cp whole.db damaged.db
  "$msched" spoil.lua damaged.db msr4 $nth
done

perform() {
  rm -rf s.db s.db-lock s.db.* state log
  if [ "$scenario" = repair ]; then
    cp damaged.db s.db
  else
    cp base.db s.db
  fi
  again
}

again() {
  status=0
  case $scenario in
  import) set -- db import many.jsonl --db s.db ;;
  merge) set -- db merge many.db --db s.db ;;
  prune) set -- db prune -k 5 --db s.db ;;
  delete) set -- db delete "$last" --db s.db ;;
  compact) set -- db compact --db s.db ;;
  repair) set -- db repair --db s.db ;;
  esac
  if [ -n "${inject:-}" ]; then
    (
      [ -z "$INJECT_FAIL" ] || export INJECT_FAIL
      INJECT_STATE="$work/state" INJECT_LOG="$work/log" exec timeout 60 env LD_PRELOAD="$library" "$msched" "$@"
    ) >output 2>&1 </dev/null || status=$?
  else
    timeout 60 "$msched" "$@" >output 2>&1 </dev/null || status=$?
  fi
}

# What must be there still.
wanted() {
  case $scenario in
  prune) echo "$best" ;;
  delete) grep -v "$last" base.ids ;;
  *) cat base.ids ;;
  esac
}

judge() {
  case $status in
  0) ;;
  1) grep -q '[a-z]' output || fail "status 1 without a message" ;;
  124) fail "it does not end" ;;
  *) fail "status $status" ;;
  esac
  if [ "$scenario" != repair ]; then
    "$msched" db check --db s.db >checked 2>&1 || fail "the store is damaged: $(tail -n 1 checked)"
    "$msched" db export all --db s.db >exported 2>&1 || fail "db export: $(tail -n 1 exported)"
    ids all >all.ids
    wanted | sort | comm -23 - all.ids >lost
    [ ! -s lost ] || fail "records are lost: $(wc -l <lost)"
  fi
  inject='' again
  [ "$status" = 0 ] || { [ "$scenario" = delete ] && grep -q "^msched db: no record" output; } || fail "the next run ends with status $status"
  "$msched" db check --db s.db >checked 2>&1 || fail "the store is damaged after the next run: $(tail -n 1 checked)"
  [ "$scenario" != repair ] || [ "$("$msched" top -k 30 --json --db s.db | wc -l)" = 29 ] || fail "a repair loses records"
}

places=0
attempt() { # call, use, errno
  INJECT_FAIL="host:$1:$2:$3" failure="$1 $2 ($3)"
  inject=yes perform
  judge
  ! grep -q '^failed' log 2>/dev/null || places=$((places + 1))
}

for scenario; do
  INJECT_FAIL='' failure='nothing fails'
  inject=yes perform
  [ "$status" = 0 ] || { fail "status $status"; exit 1; }
  "$counts" state >counted
  judge
  before=$places
  while read -r role call count error; do
    [ "$role" = host ] || continue
    if [ "$extent" = all ]; then uses=$(seq 0 "$count"); else uses=1; fi
    for use in $uses; do attempt "$call" "$use" "$error"; done
  done <counted
  echo "$scenario: $((places - before)) places of $(wc -l <counted) calls"
done
echo "injected_store: $places places where a system call fails were reached; $bad went wrong"
[ "$bad" = 0 ] && [ "$places" -gt 9 ]
