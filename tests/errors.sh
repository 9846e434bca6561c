#!/bin/sh
# Every code of tir/errors.def is provoked by name in some test: as what a case expects, MS_CODE in a C test, or the
# word that --json prints in a script; and each has a text and a hint. Prints those that are not; exit status 1 if there
# are any.
# usage: errors.sh TESTS SOURCES
set -e
tests=$1 sources=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
  find "$tests/case" -name '*.case' -exec sed -n 's/^instruction -*[0-9]*: \([a-z0-9_]*\)$/\1/p; s/^  error \([a-z0-9_]*\): .*/\1/p' {} +
  grep -hoE '\bMS_[A-Z0-9_]+\b' "$tests"/unit/*/*.c | sed 's/^MS_//' | tr 'A-Z' 'a-z'
  grep -hoE '[a-z0-9]+(_[a-z0-9]+)*' "$tests"/*.sh
  find "$tests"/lua \( -name '*.sh' -o -name '*.lua' \) -exec grep -hoE '[a-z0-9]+(_[a-z0-9]+)*' {} +
} | sort -u > "$work/provoked"
sed -n 's/^MS_ERROR(\([A-Z0-9_]*\),.*/\1/p' "$sources/tir/errors.def" | tr 'A-Z' 'a-z' | sort > "$work/all"
test -s "$work/all"
bare=$(grep -E ', ""[,)]' "$sources/tir/errors.def" || true)
test -z "$bare" || { printf 'a text or hint is empty:\n%s\n' "$bare"; exit 1; }
missing=$(comm -23 "$work/all" "$work/provoked")
test -z "$missing" || { printf 'no test provokes:\n%s\n' "$missing"; exit 1; }
