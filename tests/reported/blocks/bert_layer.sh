#!/bin/sh
# A layer of BERT, 36 blocks in one function: each group gets trials, the whole is composed, measured and right, and
# Ctrl-C is answered at once. Without a measurement it is composed of estimates.
# usage: bert_layer.sh MSCHED
. "$(dirname -- "$0")/../expect.sh"
. "$here/many_blocks"

expect_status 0 "$program" tune "$here/bert_layer.lua" --no-tune --db n.db
expect_output '^bert: 36 blocks, cut into 11 groups'
expect_output '^bert: nothing was measured \('
wait=2
stopped bert_layer.lua --trials 32 --db b.db
if [ "${MSCHED_REPORTED:-}" = all ]; then
  first_trial bert_layer.lua --trials 32 --db b.db
  expect_status 0 "$program" replay bert --db b.db
  for wait in 0.2 0.5 1 2 4 8; do stopped bert_layer.lua --trials 2000 --db b.db; done
fi
