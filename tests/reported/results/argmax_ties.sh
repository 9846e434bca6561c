# RFactor of an arg-max that keeps which of equal elements came first is refused, with the form that may be reduced
# apart: usage: argmax_ties.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"
expect_status 1 "$program" "$here/argmax_ties.lua"
expect_output 'instruction 3, RFactor: block "am" keeps the index of that of equal elements which came first'
expect_output 'hint: let the smaller index win'
