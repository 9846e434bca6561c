# shellcheck shell=sh disable=SC2154
# Shell functions of tests that ask the program: what it prints, and what it refuses. They use $msched, $work and $0.

fail() { echo "${0##*/}: $*" >&2; exit 1; }
has() { grep -qe "$2" "$1" || fail "no \"$2\" in: $(cat "$1")"; }
lacks() { ! grep -qe "$2" "$1" || fail "\"$2\" is in: $(cat "$1")"; }
refused() { # STATUS WHAT WORDS…
  status=$1 what=$2 got=0
  shift 2
  "$msched" "$@" >"$work/out" 2>"$work/err" || got=$?
  [ "$got" = "$status" ] && grep -q -e "$what" "$work/err" || fail "$*: $got, $(cat "$work/err")"
}
