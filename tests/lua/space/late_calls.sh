#!/bin/sh
# Calls of rules that catch the error which is to end them, and xpcall as Lua has it.  usage: late_calls.sh MSCHED ROOT
set -eu
msched=$1 gemm=$2/lua/examples/gemm.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "late_calls.sh: $*" >&2; exit 1; }

# What catches the error that ends a late call gains nothing: a handler of errors is not called for it, and what has
# closed a coroutine, or returns at once, was late all the same.
caught() { # NAME, the statement
  printf 'local ms = require "msched"\nms.rule {name = "%s", apply = function(sch)\n  %s\n  return {sch}\nend}\n' "$1" "$2" >"$1.lua"
  status=0
  "$msched" space "$gemm" --rules "$1.lua" --rule-timeout 0.2 -- 64 64 64 >out 2>err || status=$?
  [ $status = 1 ] && grep -qE "rule .$1. \\($1.lua:2\\) ran longer than 0.2 seconds.*; make it end sooner, or allow more with --rule-timeout" err || fail "$1: status $status: $(cat err)"
}
loop="function() while true do end end"
caught handler "xpcall($loop, $loop)"
caught once "pcall($loop)"
caught closed "local c = coroutine.create(function() local x <close> = setmetatable({}, {__close = $loop}) coroutine.yield() end) coroutine.resume(c) coroutine.close(c)"
cat >handled.lua <<'E2'
local ms = require "msched"
ms.rule {name = "handled", apply = function(sch)
  local function list(...) return select("#", ...), ... end
  assert(select(2, list(xpcall(function(...) return ... end, error, 1, nil))) == true and list(xpcall(list, error, 1, nil)) == 4)
  local ok, message = xpcall(function() error({"x"}) end, function(e) return e[1] .. "y" end)
  assert(ok == false and message == "xy")
  local c = coroutine.wrap(function() return xpcall(function(a) return a, coroutine.yield(a + 1) end, print, 1) end)
  assert(c() == 2)
  local count, first, second, third = list(c "z")
  assert(count == 3 and first == true and second == 1 and third == "z")
  assert(not pcall(xpcall) and not pcall(xpcall, print, 1))
  return {sch}
end}
E2
"$msched" space "$gemm" --rules handled.lua -- 64 64 64 >out 2>err || fail "handled: $(cat err)"

# Policies and models run in the command's own state: calls of Lua's library, none long, and waiting, are late there
# too.
late_policy() { # NAME, the statement
  printf 'local ms = require "msched"\nreturn ms.policy {name = "%s", run = function(env)\n  %s\n  env:measure(env:replay({{sketch = 1, number = 1}}))\nend}\n' "$1" "$2" >"$1.lua"
  status=0
  timeout 60 "$msched" tune "$gemm" --policy "$1.lua" --policy-timeout 1 --trials 2 --db p.db -- 16 16 16 >out 2>err || status=$?
  [ $status = 1 ] && grep -qE "policy .$1. .*ran longer than 1 seconds without asking" err || fail "$1: status $status: $(cat err)"
}
late_policy repeats 'local s for i = 1, 2000 do s = ("x"):rep(1 << 26) end'
late_policy waits 'ms.sleep(1e9)'

# A place that each of many coroutines has put before the message stands there once.
printf 'local ms = require "msched"\nms.rule {name = "nested", apply = function()\n  local function f() coroutine.wrap(f)() end f()\nend}\n' >nested.lua
! "$msched" space "$gemm" --rules nested.lua -- 16 16 16 >out 2>err || fail "nested: $(cat err)"
grep -qx 'msched space: rule `nested` (nested.lua:2): nested.lua:3: C stack overflow; mend it, or leave it out' err || fail "nested: $(head -c 500 err)"

# A file that fails as it is read: of its text as a whole there is no line.
echo 'msched.rule {}' >named.lua
"$msched" space "$gemm" --rules named.lua -- 8 8 8 >/dev/null 2>err && fail "a rule without a name is taken"
grep -qF 'file `named.lua`: named.lua:1: ms.rule: `name` is a string' err || fail "named: $(head -c 500 err)"

# A message of any length is shown in part.
printf 'local ms = require "msched"\nms.rule {name = "loud", apply = function() error(("x"):rep(10000000)) end}\n' >loud.lua
! "$msched" space "$gemm" --rules loud.lua -- 16 16 16 >out 2>err || fail "loud: $(head -c 200 err)"
[ "$(wc -c <err)" -lt 3000 ] && grep -qE 'x… \([0-9]+ bytes more\); mend it, or leave it out$' err || fail "loud: $(head -c 300 err)"
printf 'local ms = require "msched"\nreturn ms.policy {name = "loud", run = function() error(("x"):rep(10000000)) end}\n' >loud.lua
! "$msched" tune "$gemm" --policy loud.lua --db q.db -- 16 16 16 >out 2>err || fail "loud: $(head -c 200 err)"
[ "$(wc -c <err)" -lt 30000 ] && grep -q 'bytes more)$' err || fail "loud: $(head -c 300 err)"
echo "late_calls: ok"
