#!/bin/sh
# Each system call of the program, its helper and the helper's children fails once, at each of its uses in a run of a
# few trials. Whatever fails, the run ends by itself with status 0, or 1 and a message; nobody is signalled but children
# of who signals; what was said to be measured is in the store, which checks clean; no process is left.
#
# As root the program runs as a user without other processes, in a process namespace of its own where that is allowed: a
# program that signals everyone reaches nobody else, and a bystander of the same user tells.
# usage: injected.sh MSCHED LIBINJECT INJECT_COUNTS [first|all [SCENARIO…]]
#   first      of each call in each role the first use, and every use at once for those that start processes
#   all        every use, and every use at once
#   SCENARIO   tune export replay library (all of them)
set -eu
if [ -z "${INJECT_ALONE:-}" ]; then
  export INJECT_ALONE=1
  [ "$(id -u)" != 0 ] || ! unshare --pid --fork true 2>/dev/null || exec unshare --pid --fork --kill-child sh "$0" "$@"
fi
msched=$1 library=$2 counts=$3 extent=${4:-first}
[ $# -le 4 ] && set -- tune export replay library || shift 4
work=$(mktemp -d)
user=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 40000)) as=''
[ "$(id -u)" != 0 ] || { as="setpriv --reuid=$user --regid=$user --clear-groups"; chmod 755 "$work"; }
bystander=
trap 'rm -rf "$work"; [ -z "$bystander" ] || kill "$bystander" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
$as sleep 100000 &
bystander=$!

bad=0
fail() { # what is wrong
  echo "injected: $scenario: $failure: $*" >&2
  tail -n 3 "$run/output" | sed 's/^/  /' >&2
  bad=$((bad + 1))
}

# One run of a scenario in a folder of its own.
tune="tune ops:matmul --trials 2 --jobs 1 --json --target"
perform() {
  run=$work/run
  rm -rf "$run"
  mkdir "$run"
  [ "$scenario" = tune ] || cp "$work/base.db" "$run/s.db"
  [ -z "$as" ] || chown -R "$user:$user" "$run"
  status=0
  (
    cd "$run"
    [ -z "${INJECT_FAIL:-}" ] || export INJECT_FAIL
    export INJECT_STATE="$run/state" INJECT_LOG="$run/log" HOME="$run"
    inject="env LD_PRELOAD=$library"
    case $scenario in
    # shellcheck disable=SC2086
    tune) exec timeout 60 $as $inject "$msched" $tune "native -num-cores=1" --db new.db -- 8 8 8 ;;
    export) exec timeout 60 $as $inject "$msched" export best -o k.so --db s.db ;;
    replay) exec timeout 60 $as $inject "$msched" replay best --db s.db ;;
    library) exec timeout 60 $as $inject "$msched" $tune "native -num-cores=2" --seed 2 --db s.db -- 8 8 8 ;;
    esac
  ) >"$run/output" 2>&1 </dev/null || status=$?
}

# What was said to be measured is in the store. One that was not made to the end is none yet: the next run makes it.
check_store() { # file
  [ -f "$1" ] || return 0
  sed -n 's/.*"event":"trial".*"id":"\([0-9a-f]*\)".*/\1/p' "$run/output" | sort -u >"$run/promised"
  if [ ! -s "$run/promised" ] && [ "$status" = 1 ] && [ "$scenario" = tune ]; then
    # shellcheck disable=SC2086
    $as "$msched" $tune "native -num-cores=1" --db "$1" -- 8 8 8 >"$run/again" 2>&1 || fail "the next run fails: $(tail -n 1 "$run/again")"
  fi
  "$msched" db check --db "$1" >"$run/checked" 2>&1 || fail "the store is damaged: $(tail -n 1 "$run/checked")"
  "$msched" db export "$run/all" --db "$1" >"$run/exported" 2>&1 || fail "db export: $(tail -n 1 "$run/exported")"
  sed -n 's/^{"record": *"\([0-9a-f]*\)".*/\1/p' "$run/all" | sort -u | comm -13 - "$run/promised" >"$run/lost"
  [ ! -s "$run/lost" ] || fail "records are lost: $(cat "$run/lost")"
}

check_processes() {
  [ -n "$as" ] || return 0
  tries=0
  while left=$(pgrep -l -u "$user" | grep -v ' sleep$'); do
    tries=$((tries + 1))
    [ $tries -gt 40 ] || { sleep 0.1; continue; }
    fail "processes are left: $left"
    return 0
  done
}

judge() {
  case $status in
  0) ;;
  1) grep -q '[a-z]' "$run/output" || fail "status 1 without a message" ;;
  124) fail "it does not end" ;;
  *) fail "status $status" ;;
  esac
  ! grep -E '^kill .* (foreign|all)$' "$run/log" >"$run/foreign" 2>/dev/null || fail "it signals others: $(head -n 1 "$run/foreign")"
  kill -0 "$bystander" 2>/dev/null || { fail "the bystander was killed"; exit 1; }
  check_store "$run/new.db"
  check_store "$run/s.db"
  check_processes
}

# The store that the others begin with.
scenario=tune INJECT_FAIL='' failure='nothing fails'
perform
judge
[ "$status" = 0 ] || { fail "status $status"; exit 1; }
cp "$run/new.db" "$work/base.db"

places=0 missed=0
attempt() { # role, call, use, errno
  INJECT_FAIL="$1:$2:$3:$4"
  failure="$1 $2 $3 ($4)"
  perform
  judge
  if grep -q '^failed' "$run/log" 2>/dev/null; then places=$((places + 1)); else missed=$((missed + 1)); fi
}

# Which uses of a call, of so many.
uses() { # call, count
  if [ "$extent" = all ]; then
    seq 0 "$2"
  else
    case $1 in fork | posix_spawn | posix_spawnp | pthread_create | kill) echo 0 ;; esac
    echo 1
  fi
}

for scenario; do
  INJECT_FAIL='' failure='nothing fails'
  perform
  judge
  [ "$status" = 0 ] || { fail "status $status"; exit 1; }
  "$counts" "$run/state" >"$work/counts"
  before=$places
  while read -r role call count error; do
    for use in $(uses "$call" "$count"); do attempt "$role" "$call" "$use" "$error"; done
  done <"$work/counts"
  echo "$scenario: $((places - before)) places of $(wc -l <"$work/counts") calls"
done
echo "injected: $places places where a system call fails were reached, $missed were not; $bad went wrong"
[ "$bad" = 0 ] && [ "$places" -gt 50 ]
