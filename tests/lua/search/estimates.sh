#!/bin/sh
# The analytical estimate against what an H100 took: 710 candidates of 16 operators, most of them drawn at random, 416
# of which were stopped as slow (support/data/h100.json.gz, an export of the store).
# usage: estimates.sh MSCHED SOURCES
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gzip -dc "$2/tests/support/data/h100.json.gz" >"$work/h100.json"
"$1" db import "$work/h100.json" --db "$work/h100.db" >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
"$1" "$2/tests/lua/search/estimates.lua" "$work/h100.db"
