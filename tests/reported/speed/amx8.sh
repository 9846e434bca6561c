#!/bin/sh
# Products of bytes by AMX, with rules that name its intrinsic, and without a machine that has it: the schedule that
# the analytical model ranks first is tensorized, computes what the function does, as the interpreter runs it and as
# code for this CPU, and its code for Sapphire Rapids multiplies tiles. usage: amx8.sh MSCHED
. "$(dirname -- "$0")/../expect.sh"
rapids="llvm -mcpu=sapphirerapids -num-cores=2"
expect_status 0 "$program" tune "$here/amx8.lua" --rules "$here/amx_space.lua" --no-tune --target "$rapids" --db a.db -- 32 64 128
expect_status 0 "$program" show best --trace --db a.db
expect_output '"Tensorize".*"amx_16x16x64_i8"'
mv output trace.json
expect_status 0 "$program" run "$here/amx8.lua" --trace trace.json -- 32 64 128
expect_output '^scheduled, interpreted: the same results'
expect_output '^equal to the interpreter.s everywhere'
expect_status 0 "$program" lower "$here/amx8.lua" --trace trace.json --target "$rapids" -- 32 64 128
expect_output 'T\.tdpbssd\('
expect_status 0 "$program" export best --force -o amx8.s --db a.db
grep -q tdpbssd amx8.s || fail "the code for $rapids multiplies no tiles"

# The default space has it: the top-ranked by the analytical model multiplies tiles, and holds two by two accumulators.
expect_status 0 "$program" tune "$here/amx8.lua" --no-tune --target "$rapids" --db b.db -- 64 64 256
expect_status 0 "$program" show best --trace --db b.db
expect_output '"amx_16x16x64_i8"'
mv output trace.json
expect_status 0 "$program" run "$here/amx8.lua" --trace trace.json -- 64 64 256
expect_output '^scheduled, interpreted: the same results'
expect_status 0 "$program" export best --force -o held.s --db b.db
[ "$(grep -c tilestored held.s)" = 4 ] || fail "accumulators are stored $(grep -c tilestored held.s) times"
[ "$(grep -c tilezero held.s)" = 4 ] || fail "accumulators begin as zeros $(grep -c tilezero held.s) times"

# So has it where nothing is a whole tile: operands are padded.
expect_status 0 "$program" tune ops:matmul --no-tune --target "$rapids" --db c.db -- 58 40 152 dtype=int8
expect_status 0 "$program" show best --trace --db c.db
expect_output '"PadEinsum"'
expect_output '"amx_16x16x64_i8"'
mv output trace.json
expect_status 0 "$program" run ops:matmul --trace trace.json -- 58 40 152 dtype=int8
expect_output '^equal to the interpreter.s everywhere'
