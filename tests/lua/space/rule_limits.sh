#!/bin/sh
# What a user's parts may print, how long a user's model may take, and conditions in files of rules.
# usage: rule_limits.sh MSCHED ROOT
set -eu
msched=$1 gemm=$2/lua/examples/gemm.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "rule_limits.sh: $*" >&2; exit 1; }

# A flood of prints: some of it is shown, and how much was left out.
cat >flood.lua <<'E2'
local ms = require "msched"
ms.rule {name = "flood", apply = function(sch) for i = 1, 10000 do print("a line that is printed again and again", i) end return {sch} end}
ms.postproc {name = "spill", apply = function() for i = 1, 2000 do print("postprocessed", i) end return true end}
E2
"$msched" tune "$gemm" --trials 2 --jobs 2 --db f.db --rules flood.lua -- 64 64 64 >out 2>err || fail "flood: $(tail -n 2 err)"
[ "$(wc -c <err)" -lt 400000 ] || fail "$(wc -c <err) bytes were printed"
grep -q 'again and again	1$' err && grep -qE '^msched: [0-9]+ bytes more that rules printed are left out' err || fail "what was left out: $(tail -n 3 err)"
printf 'local ms = require "msched"\nms.rule {name = "few", apply = function(sch) print("few") return {sch} end}\n' >few.lua
"$msched" space "$gemm" --rules few.lua -- 64 64 64 >out 2>err
grep -q '^few$' err && ! grep -q 'left out' err || fail "few: $(head -n 3 err)"

# What files of functions, policies and models print is no output of the command: JSON stays JSON, and there is not too
# much of it.
cat >functions.lua <<'E2'
print("of the functions")
return loadfile(GEMM)(64, 64, 64)
E2
sed -i "s|GEMM|\"$gemm\"|" functions.lua
cat >loud_policy.lua <<'E2'
local ms = require "msched"
return ms.policy {name = "loud", run = function(env)
  for i = 1, 10000 do print("of the policy", i) end
  env:measure(env:replay({{sketch = 1, number = 1}}))
end}
E2
cat >loud_model.lua <<'E2'
local ms = require "msched"
return ms.model {name = "loud", update = function() for i = 1, 10000 do print("learned", i) end end, predict = function(_, list)
  print("of the model")
  local r = {}
  for i in ipairs(list) do r[i] = 0 end
  return r
end}
E2
"$msched" tune functions.lua --json --trials 2 --db p.db --policy evolutionary --model loud_model.lua >out 2>err || fail "a loud model: $(head -c 300 err)"
! grep -v '^{' out || fail "JSON and something else"
grep -q '^of the functions$' err && grep -q '^of the model$' err || fail "nothing of what was printed: $(head -c 300 err)"
"$msched" tune functions.lua --json --trials 2 --db q.db --policy loud_policy.lua >out 2>err || true
! grep -v '^{' out || fail "JSON and something else"
grep -q '^of the policy	1$' err && grep -qE '^msched: [0-9]+ bytes more that scripts printed are left out' err || fail "the policy: $(tail -c 300 err)"
[ "$(wc -c <err)" -lt 100000 ] || fail "$(wc -c <err) bytes were printed"

# What undo keeps of a schedule counts as its memory.
cat >undone.lua <<'E2'
local ms = require "msched"
ms.rule {name = "undone", apply = function(sch)
  local copy = sch:copy()
  local block, text = copy:get_sblock "C", ("x"):rep(100000)
  for _ = 1, 4000 do copy:annotate(block, "text", text) copy:undo() end
  return {sch}
end}
E2
"$msched" space "$gemm" --rules undone.lua -- 32 32 32 >out 2>err && fail "undone traces are no memory"
grep -q 'rule `undone` .* needs more than 256 MiB of memory' err || fail "undone: $(tail -n 2 err)"

# So do the values of its handles, which each copy has for itself.
cat >copied.lua <<'E2'
local ms = require "msched"
ms.rule {name = "copied", apply = function(sch)
  local copies = {sch:copy()}
  local block = copies[1]:get_sblock "C"
  for _ = 1, 4000 do copies[1]:get_loops(block) end
  for i = 2, 500 do copies[i] = copies[1]:copy() end
  return {sch}
end}
E2
"$msched" space "$gemm" --rules copied.lua -- 32 32 32 >out 2>err && fail "the values of handles are no memory"
grep -q 'rule `copied` .* needs more than 256 MiB of memory' err || fail "copied: $(tail -n 2 err)"

# If, For and Assert with names and functions, as in scripts.
cat >conditions.lua <<'E2'
local ms = require "msched"
ms.rule {name = "conditions", apply = function(sch, block)
  local loops = {sch:get_loops(block)}
  if sch:is_root(block) or #loops == 0 then return {sch} end
  local v = sch:sample_categorical({1, 2, 4}, {0.25, 0.25, 0.5})
  sch:assert(function(n) return n:ge(1) end, v)
  sch:if_("n >= 2", {n = v}, function(s) s:annotate(loops[1], "many", 1) end, function(s) s:annotate(loops[1], "few", 1) end)
  return {sch}
end}
ms.postproc {name = "checks", apply = function(sch)
  local v = sch:sample_categorical({1, 2}, {0.5, 0.5})
  sch:if_(function(n) return n:lt(2) end, v, function(s) s:annotate(s:get_sblock(s:root_block()), "small", 1) end)
  return true
end}
E2
"$msched" space "$gemm" --rules conditions.lua -- 64 64 64 >out 2>err || fail "conditions: $(cat err)"
grep -qE 'sch:if_\("v[0-9]+ >= 2"\)' out && grep -q 'sch:else_()' out && grep -qE 'sch:assert\("\(?v[0-9]+ >= 1' out || fail "no condition in the traces: $(cat err)"
"$msched" tune "$gemm" --trials 2 --jobs 2 --db c.db --rules conditions.lua -- 64 64 64 >out 2>err || fail "conditions: $(cat err)"

# A model that does not end is named with the time that it had, and the search goes on without it.
cat >endless.lua <<'E2'
local ms = require "msched"
return ms.model {name = "slow", update = function() end, predict = function() while true do end end}
E2
"$msched" tune "$gemm" --trials 4 --policy evolutionary --policy-timeout 0.7 --model endless.lua --db e.db -- 64 64 64 >out 2>err || fail "endless: $(cat err)"
cat out err | grep -qE 'model .slow. \(endless.lua:2\) ran longer than 0.7 seconds.*--policy-timeout' || fail "the model is not named: $(cat out err)"
grep -q '^next:' out || fail "it did not go on: $(cat out err)"
cat >learns.lua <<'E2'
local ms = require "msched"
return ms.model {name = "learns", update = function() while true do end end, predict = function(_, list) local r = {} for i in ipairs(list) do r[i] = 0 end return r end}
E2
"$msched" tune "$gemm" --trials 4 --policy evolutionary --policy-timeout 0.7 --model learns.lua --db l.db -- 64 64 64 >out 2>err || fail "learning without end: $(cat err)"
cat out err | grep -qE 'model .learns. \(learns.lua:2\) ran longer than 0.7 seconds.*--policy-timeout' || fail "the model that learns is not named: $(cat out err)"
grep -q '^next:' out || fail "it did not go on: $(cat out err)"
sed -i 's/name = "slow"/name = "slow", required = true/' endless.lua
status=0
"$msched" tune "$gemm" --trials 4 --policy evolutionary --policy-timeout 0.7 --model endless.lua --db r.db -- 64 64 64 >out 2>err || status=$?
[ $status = 1 ] && cat out err | grep -qE 'model .slow. \(endless.lua:2\) ran longer than 0.7 seconds' || fail "required: status $status: $(cat out err)"
