#!/bin/sh
# The text of candidates as two programs write it, of this checkout and of another: equal, or what differs is printed.
# usage: emitted.sh MSCHED OTHER DRAWS SEED
set -eu
msched=$1 other=$2 draws=$3 seed=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/drawn" "$work/other" "$work/own"
script=$(dirname "$0")/emitted.lua

"$msched" "$script" draw "$work/drawn" "$draws" "$seed"
"$other" "$script" emit "$work/drawn" "$work/other"
"$msched" "$script" emit "$work/drawn" "$work/own"
differ=$(diff -rq "$work/other" "$work/own" | wc -l)
echo "$differ differ"
[ "$differ" = 0 ] || { diff -r "$work/other" "$work/own" | head -n 60; exit 1; }
