# The root block is the one around all others, whatever its name: the same space opens, and is tuned.
. "$(dirname -- "$0")/../expect.sh"

sed 's/"outer"/"root"/' "$here/root_of_another_name.py" >named_root.py
sed 's/"outer"/"Y_root"/; s/"Y")/"root")/' "$here/root_of_another_name.py" >root_inside.py # a block called root that is none
for target in llvm "cuda -arch=sm_80"; do
  for file in "$here/root_of_another_name.py" root_inside.py named_root.py; do
    expect_status 0 "$program" space "$file" --target "$target"
    expect_output 'sketch 1 of [0-9]+$'
    refuse_output 'is a root'
    sed 's/"root"/"R"/g; s/"outer"/"R"/g; s/"Y_root"/"R"/g; s/"Y"/"B"/g' output >"$(basename "$file").${target%% *}"
  done
  cmp -s "root_of_another_name.py.${target%% *}" "named_root.py.${target%% *}" || fail "$target: the name of the root changes the space"
done
for file in "$here/root_of_another_name.py" root_inside.py; do
  expect_status 0 "$program" tune --trials 4 --db o.db "$file"
  refuse_output 'is a root|no candidate'
  expect_output '^next:'
done
# a function that is cut into groups, which are composed
cat >chain.lua <<'L'
local ms, count = require "msched", 12
local te = ms.te
local X = te.placeholder({16, 16}, "float32", "X")
local t = X
for i = 1, count do
  local k, before = te.reduce_axis(16, "k" .. i), t
  t = te.compute({16, 16}, function(a, b) return te.sum(before[{a, k}] * X[{k, b}], k) end, "T" .. i)
end
io.write(te.func("chain", {X, t}):script())
L
expect_status 0 "$program" chain.lua
awk '/# with T.sblock/ { print "        with T.sblock(\"outer\"):\n            T.reads()\n            T.writes()"; inside = 1; next }
     { print (inside && NF ? "    " : "") $0 }' output >chain.py
grep -q 'T.sblock("outer")' chain.py || fail "the chain has no root of another name"
expect_status 0 "$program" tune --trials 2 --db c.db chain.py
expect_output 'groups'
expect_output '^next:'
refuse_output 'is a root|no root block'
