#!/bin/sh
# The older ways and the program's own with the same trials, one after another, each in a store of its own; then the
# best of both timed again in turn. usage: ways.sh MSCHED SOURCE [TRIALS [WAY…]]
set -eu
msched=$1 source=$2 trials=${3:-64}
shift $(($# < 3 ? $# : 3))
[ $# -gt 0 ] || set -- autotvm flextensor ansor
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for way; do "$msched" "$source/tests/long/search/ways.lua" "$source" "$way" "$trials" "$work"; done
