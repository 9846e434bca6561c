# A function without blocks: it is said once that nothing can be scheduled, and it is measured as it stands.
. "$(dirname -- "$0")/../expect.sh"

expect_status 0 "$program" space "$here/no_blocks.py"
expect_output 'sketch 1 of 1$'
expect_status 0 "$program" tune --trials 4 --db n.db "$here/no_blocks.py"
expect_output 'it has no blocks, so nothing in it can be scheduled: it is measured as it stands'
expect_output '^next:'
refuse_output 'refused|rules of your own'
[ "$(wc -l <output)" -lt 12 ] || fail "$(wc -l <output) lines"
sed 's/    for jo/    with T.sblock("only"):\n      for jo/; s/        P\[/          P[/' "$here/no_blocks.py" >only_root.py # loops in a root alone
expect_status 0 "$program" tune --trials 4 --db n.db only_root.py
expect_output '^next:'
refuse_output 'refused'
for policy in random evolutionary replay_trace; do
  expect_status 0 "$program" tune --trials 2 --policy "$policy" --db "$policy.db" "$here/no_blocks.py"
  expect_output '^next:'
done
expect_status 0 "$program" tune --no-tune --db u.db "$here/no_blocks.py"
