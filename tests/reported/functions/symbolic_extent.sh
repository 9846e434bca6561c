# An extent that a match_buffer binds and no parameter gives is interpreted, and named where code is asked for; with the
# parameter that the message asks for there is code: usage: symbolic_extent.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"
named='extent n of X is a variable that no parameter gives: add a parameter n: T\.int64'
"$program" run "$here/symbolic_extent.py" >output 2>&1 || true
expect_output '^interpreted: '
expect_output "$named"
printf 'local ms = require "msched"\nms.build(ms.from_script(io.open(arg[1]):read "a"), {target = arg[2]})\n' >build.lua
for target in llvm 'cuda -arch=sm_80'; do
  expect_status 1 "$program" build.lua "$here/symbolic_extent.py" "$target"
  expect_output "$named"
done
sed 's/y: T.handle)/y: T.handle, n: T.int64)/; /n = T.int64()/d' "$here/symbolic_extent.py" >given.py
expect_status 0 "$program" run given.py
refuse_output 'not compiled|differ'
