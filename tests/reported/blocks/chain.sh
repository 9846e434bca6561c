#!/bin/sh
# Products in a row: a trial comes within seconds, the whole is measured and right, and Ctrl-C is answered at once. 20
# of them, and with MSCHED_REPORTED=all 100.
# usage: chain.sh MSCHED
. "$(dirname -- "$0")/../expect.sh"
. "$here/many_blocks"

first_trial chain.lua --trials 2 --db c.db -- 20
[ "$(grep -c '"event":"trial"' output)" = 2 ] || fail "not 2 trials: $(grep -c '"event":"trial"' output)"
expect_status 0 "$program" replay chain --db c.db
expect_output '^differs from the unscheduled function'
expect_status 0 "$program" export chain -o chain.so --db c.db
expect_status 0 "$program" top --db c.db
expect_output '^chain: 1 record'
stopped chain.lua --db i.db -- 20
if [ "${MSCHED_REPORTED:-}" = all ]; then
  first_trial chain.lua --trials 8 --db all.db -- 100
  for wait in 0.2 0.5 1 2 4; do stopped chain.lua --db all.db --trials 1000 -- 100; done
fi
