#!/bin/sh
# The limit of stencils and of elementwise functions is memory, or the cache that holds their data, in GB/s: no share of
# a peak of arithmetic is said of them; integers are counted as such.
# usage: stencil.sh MSCHED
. "$(dirname -- "$0")/../expect.sh"

expect_status 0 "$program" tune "$here/stencil.lua" --trials 2 --db s.db
for name in stencil_2048 doubled; do
  expect_output "^$name: [0-9]+ % of the roofline, [0-9.]+ GB/s of (memory|the L[123] caches?), as measured\$"
done
expect_output '^stencil_96: [0-9]+ % of the roofline, [0-9.]+ G(B|FLOP)/s of .*, as measured$' # a nearest cache may give more than is computed
expect_output '^stencil_2048: .*best .* [0-9.]+ GFLOP/s [0-9.]+ GB/s \('
expect_output '^doubled: .*best .* [0-9.]+ GOP/s [0-9.]+ GB/s \('
refuse_output '^(stencil_2048|doubled): .* vectors, as measured'
refuse_output 'unused'
expect_status 0 "$program" top --db s.db
expect_output ' GFLOP/s [0-9.]+ GB/s  [0-9]+ % of (memory|the L[123] caches?)  '
expect_output ' GOP/s [0-9.]+ GB/s  [0-9]+ % of (memory|the L[123] caches?)  '
expect_status 0 "$program" report --db s.db -o page.html
grep -q '% of \(memory\|the L[123] caches*\)<' page.html || fail "no limit in the report"
