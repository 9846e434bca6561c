#!/bin/sh
# A product of bytes that is scaled in float32 is counted in operations on integers, as it has most of those, beside the
# peak of the unit for them; a unit that it leaves idle is named. What `next:` names is the record of line 1: once, and
# with MSCHED_REPORTED=all 20 times, and of the size that was reported, which the interpreter takes long for.
# usage: qdense.sh MSCHED
. "$(dirname -- "$0")/../expect.sh"

# The operations and the seconds of the best, by `top`.
best_rate() {
  expect_status 0 "$program" top -k 1 --db q.db --json
  sed -n 's/.*"bytes":\([0-9.e+]*\),.*"operations":\([0-9.e+]*\),.*"seconds":\([0-9.e-]*\),.*/\1 \2 \3/p' output
}

times=1 shape="64 128 256" bytes=57856 operations=4194304
[ "${MSCHED_REPORTED:-}" = all ] && times=20 shape="256 512 1024" bytes=919552 operations=268435456
for i in $(seq "$times"); do
  rm -f q.db q.db-lock
  expect_status 0 "$program" tune "$here/qdense.lua" --trials 8 --seed "$i" --db q.db -- $shape
  expect_output '^qdense: .*best .* us [0-9.]+ GOP/s [0-9.]+ GB/s|^qdense: .*best .* ms [0-9.]+ GOP/s [0-9.]+ GB/s'
  refuse_output 'GFLOP/s'
  expect_output '^qdense: [0-9]+ % of the roofline, [0-9.]+ G(OP|B)/s of .*, as measured$'
  line1=$(sed -n 's/^  1  \([0-9a-f]*\) .*/\1/p' output)
  next=$(sed -n 's/^next:  msched show \([0-9a-f]*\) .*/\1/p' output)
  [ -n "$line1" ] && [ "$line1" = "$next" ] || fail "line 1 has $line1, next: $next"
done
# Twice the product of the extents in operations on bytes; those of scaling are of float32. Bytes: two inputs, the
# scale, the result.
set -- $(best_rate)
[ "$1" = $bytes ] || fail "$1 bytes, not $bytes"
[ "$2" = $operations ] || fail "$2 operations, not $operations"
expect_status 0 "$program" replay qdense --db q.db
expect_output ' GOP/s '
refuse_output 'GFLOP/s'
