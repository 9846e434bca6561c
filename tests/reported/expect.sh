# What the scripts of these folders share; sourced, with the program as $1. `here` is the folder of the script and its
# inputs, `scratch` one that is removed at the end, where the script starts.
set -eu
program=$1
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

fail() {
  printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2
  exit 1
}

# Runs a command whose exit status must be as given; its output is in $scratch/output.
expect_status() { # status, command…
  status=0 wanted=$1
  shift
  "$@" >output 2>&1 </dev/null || status=$?
  [ "$status" = "$wanted" ] || fail "exit status $status, not $wanted: $*: $(tail -n 5 output)"
}

expect_output() { # extended regular expression that a line of the last command's output must match
  grep -qE -- "$1" output || fail "no line matches $1: $(tail -n 5 output)"
}

refuse_output() { # extended regular expression that no line may match
  ! grep -qE -- "$1" output || fail "a line matches $1: $(grep -E -- "$1" output | head -n 1)"
}
