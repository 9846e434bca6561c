#!/bin/sh
# Products of bytes on one core: beside their time stands what VNNI or AMX would do, where this machine has them and the
# kernel leaves them idle.
# usage: int8_dense_slower_than_float.sh MSCHED
. "$(dirname -- "$0")/../expect.sh"

expect_status 0 "$program" tune "$here/int8_dense_slower_than_float.lua" --trials 4 --target "native -num-cores=1" --db x.db
expect_output '^dense_u8s8: .*best .* [0-9.]+ GOP/s [0-9.]+ GB/s'
refuse_output 'GFLOP/s'
cp output tuned
share=$(sed -n 's/^dense_u8s8: \([0-9]*\) % of the roofline, .*, as measured$/\1/p' tuned)
[ -n "$share" ] || fail "no share of the roofline: $(tail -n 5 tuned)"
unit=$(sed -n 's/^dense_u8s8: [0-9]* % of the roofline, [0-9.]* GOP\/s of \(VNNI\|AMX\), as measured$/\1/p' tuned)
[ -n "$unit" ] || exit 0 # this machine has neither
expect_status 0 "$program" export best -o best.s --db x.db
idle=yes
grep -qE '^[[:space:]]*(\{vex\} )?(vpdp[bw]|tdpb[su])' best.s && idle=no
if [ "$idle" = yes ] && [ "$share" -lt 50 ]; then
  grep -qE "^dense_u8s8: $unit unused: [0-9.,]+ of [0-9.,]+ GOP/s\$" tuned || fail "it is not said that $unit is unused: $(tail -n 5 tuned)"
fi
if [ "$idle" = no ] && grep -q unused tuned; then fail "$unit is used: $(grep unused tuned)"; fi
