# Reorder, after Split, of a block that reads what it writes is refused, as Parallel is: usage: reorder_recurrence.sh
# PROGRAM
. "$(dirname -- "$0")/../expect.sh"
expect_status 1 "$program" "$here/reorder_recurrence.lua"
expect_output 'instruction 3, Reorder: the loops cannot be reordered: .*block `rec` reads of `A`'
expect_output 'hint: leave the loops in their order'
expect_status 0 "$program" "$here/reorder_calls.lua"
