#!/bin/sh
# What users write may not end the program, nor run in it for ever: policies, models, functions, intrinsics.
# usage: ends.sh MSCHED ROOT
set -eu
msched=$1 gemm=$2/lua/examples/gemm.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "ends.sh: $*" >&2; exit 1; }

refused() { # words of the message, command…
  words=$1
  shift
  set +e
  timeout -k 1 20 "$msched" "$@" >out 2>err </dev/null
  got=$?
  set -e
  [ $got = 1 ] || fail "$*: status $got: $(head -c 300 err)"
  grep -qF -- "$words" err || fail "$*: no \`$words\` in: $(head -c 300 err)"
  [ "$(wc -c <err)" -lt 400 ] || fail "$*: a message of $(wc -c <err) bytes"
}
policy() { # its body
  printf 'return require("msched").policy {name = "p", run = function(env)\n%s\nend}\n' "$1" >policy.lua
}
tuned() { # words, what is tuned with…
  words=$1
  shift
  refused "$words" tune "$gemm" --trials 1 --policy-timeout 2 --db s.db "$@" -- 16 16 16
}
ends='os.exit may not end the program here'
for status in 0 "true, true"; do
  policy "os.exit($status)" && tuned "policy \`p\` (policy.lua:2): $ends" --policy policy.lua
done
policy 'pcall(os.exit, 0) error "went on"' && tuned 'policy.lua:2): went on' --policy policy.lua
policy 'coroutine.wrap(function() os.exit(0) end)()' && tuned "$ends" --policy policy.lua
policy 'debug.sethook() while true do end' && tuned 'debug.sethook may not be called here' --policy policy.lua
policy 'local f f = function() return coroutine.wrap(f)() end f()' && tuned 'policy.lua:2): C stack overflow' --policy policy.lua
# What the hook cannot end, as in rules.
policy 'string.find(("a"):rep(3000), ("a*"):rep(30) .. "b")' && tuned 'policy.lua:2): this pattern' --policy policy.lua
policy 'table.move({}, 1, 1 << 60, 2)' && tuned 'policy.lua:2): table.move' --policy policy.lua
policy 'table.concat(setmetatable({}, {__len = function() return 1 << 60 end}))' && tuned 'a list without __len' --policy policy.lua
policy 'local s = (""):rep(1 << 60) error("of " .. #s)' && tuned 'policy.lua:2): of 0' --policy policy.lua
policy '("x"):rep(1 << 62)' && tuned 'string.rep' --policy policy.lua
echo 'os.exit(0)' >top.lua
tuned "top.lua:1: $ends" --policy top.lua
tuned "top.lua:1: $ends" --model top.lua
printf 'return require("msched").model {name = "m", required = true, update = function() end,\npredict = function() os.exit(0) end}\n' >model.lua
tuned "model \`m\` (model.lua:2): model.lua:2: $ends" --policy evolutionary --model model.lua

# Files of functions and of intrinsics, by all that read them; a finalizer, when the program ends.
echo '[[],[]]' >none.json
for command in "tune --trials 1 --db s.db" show run space lower "bench ops"; do refused "top.lua:1: $ends" $command top.lua; done
refused "top.lua:1: $ends" apply top.lua none.json
refused "top.lua:1: $ends" apply "$2/tests/support/data/add.py" none.json --intrinsics top.lua
printf 'Kept = setmetatable({}, {__gc = function() os.exit(0) end})\nerror "oh"\n' >final.lua
refused "final.lua:2: oh" final.lua
refused "final.lua:2: oh" show final.lua

# A script is the program: it may end it, but not from within a part.
status_of() { set +e; "$msched" "$1" >out 2>err; got=$?; set -e; echo $got; }
echo 'os.exit(3)' >script.lua
[ "$(status_of script.lua)" = 3 ] || fail "a script may not end"
printf 'local ms = require "msched"\nms.policy {name = "p", run = function() os.exit(0) end}\nms.tune(ms.ops.func("matmul", {16, 16, 16}), {policy = "p", db = "s.db", trials = 1})\n' >part.lua
[ "$(status_of part.lua)" = 1 ] && grep -qF "policy \`p\` (part.lua:2): $ends" err || fail "a policy of a script: $(cat err)"
echo 'print(pcall(table.concat, 5)) string.rep({})' >message.lua
[ "$(status_of message.lua)" = 1 ] && grep -q "message.lua:1: bad argument #1 to 'rep'" err && grep -q "to 'table.concat' (table" out || fail "Lua's messages: $(cat err)"
"$msched" db check --db s.db | grep -qx clean || fail "db check"
echo "ends: ok"
