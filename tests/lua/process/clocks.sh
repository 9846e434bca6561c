#!/bin/sh
# Tuning with a clock that is wrong: what was measured is kept, and read again.  usage: clocks.sh MSCHED CLOCKS ROOT
msched=$1 clocks=$2 gemm=$3/lua/examples/gemm.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for how in late early jumps back; do
  with() {
    words=$1 && shift
    # shellcheck disable=SC2086 # words of a command
    LD_PRELOAD=$clocks CLOCKS=$how "$msched" $words --db "$work/$how.db" "$@" >"$work/out" 2>&1
  }
  with tune "$gemm" --trials 2 -- 16 16 16 || { echo "FAIL: $how: tune"; cat "$work/out"; exit 1; }
  with "db check" && with top && with "db list" --since 1970-01-01 && with report -o "$work/page.html" ||
    { echo "FAIL: $how: its store"; cat "$work/out"; exit 1; }
  [ $how != late ] || with "report --follow --until-idle 1" -o "$work/follow.html" ||
    { echo "FAIL: $how: a page that follows"; cat "$work/out"; exit 1; }
  count=$("$msched" top --json --db "$work/$how.db" | grep -c '"when"')
  [ "$count" = 2 ] || { echo "FAIL: $how: $count records"; exit 1; }
done
echo "clocks: ok"
