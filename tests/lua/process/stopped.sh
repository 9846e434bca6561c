#!/bin/sh
# A process that is stopped (SIGSTOP, a frozen group) for longer than a limit loses nothing by it: neither a rule, a
# policy and a model, nor what its helper builds, runs and compares with. What does not end, ends all the same.
# usage: stopped.sh MSCHED ROOT
set -eu
msched=$1 root=$2 gemm=$2/lua/examples/gemm.lua
. "$root/tests/support/session.sh"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "stopped.sh: $*" >&2; exit 1; }

# Waits until a file has a line, 60 s at most.
wait_for() { # a pattern, file
  tries=0
  until grep -q "$1" "$2" 2>/dev/null; do
    tries=$((tries + 1))
    [ $tries -lt 1200 ] || fail "no $1 in $2: $(cat err)"
    sleep 0.05
  done
}
# Stops all of a session, for seconds.
stop() { # session, seconds
  all=$(session_left "$1")
  # shellcheck disable=SC2086 # numbers
  kill -STOP $all 2>/dev/null || true
  sleep "$2"
  # shellcheck disable=SC2086
  kill -CONT $all 2>/dev/null || true
}
begin() { # command…
  rm -f out err
  setsid "$@" >out 2>err </dev/null &
  session=$!
}
succeed() { # what
  set +e
  wait $session
  status=$?
  set -e
  [ $status = 0 ] || fail "$1: status $status: $(cat err)"
  ! grep -E 'ran longer|longer than|took more|timed? ?out' out err || fail "$1: something was late"
}

# A rule and a postprocessor that are stopped in the middle.
cat >slow.lua <<'E2'
local ms = require "msched"
local worked = {} -- long enough to be stopped in the middle, once
local function work(name)
  print(name .. " begins")
  local s = 1
  for i = 1, worked[name] and 0 or 30000000 do s = s + i end
  worked[name] = true
  return s > 0
end
ms.rule {name = "slow", apply = function(sch) work "rule" return {sch} end}
ms.postproc {name = "late", apply = function() return work "postprocessor" end}
E2
begin "$msched" tune "$gemm" --rules slow.lua --rule-timeout 2 --trials 2 --jobs 1 --db r.db -- 16 16 16
wait_for 'rule begins' err
stop $session 2.2
wait_for 'postprocessor begins' err
stop $session 2.2
succeed "a rule"

# A policy and a model that wait while they are stopped.
cat >policy.lua <<'E2'
local ms = require "msched"
return ms.policy {name = "p", run = function(env)
  io.stderr:write "policy begins\n"
  while not io.open "go" do ms.sleep(0.01) end
  env:measure(env:replay(env:draw_jobs(1)))
end}
E2
begin "$msched" tune "$gemm" --policy policy.lua --policy-timeout 2 --trials 1 --db p.db -- 16 16 16
wait_for 'policy begins' err
stop $session 2.2
: >go
succeed "a policy"
cat >model.lua <<'E2'
local ms = require "msched"
return ms.model {name = "m", required = true, update = function() end, predict = function(_, list)
  io.stderr:write "model begins\n"
  while not io.open "go" do ms.sleep(0.01) end
  local r = {}
  for i in ipairs(list) do r[i] = 0 end
  return r
end}
E2
rm go
begin "$msched" tune "$gemm" --policy evolutionary --model model.lua --rule-timeout 2 --trials 4 --db m.db -- 16 16 16
wait_for 'model begins' err
stop $session 2.2
: >go
succeed "a model"

# What the helper does, all of it stopped at several moments for longer than it may take.
begin "$msched" tune "$gemm" --trials 16 --jobs 2 --run-timeout 1 --reference-timeout 1 --json --db h.db -- 64 64 64
for _ in 1 2 3 4; do
  sleep 0.3
  stop $session 1.5
done
succeed "the helper"
[ "$(grep -c '"event":"trial"' out)" = 16 ] && ! grep '"event":"trial"' out | grep -v '"outcome":"\(measured\|censored\)"' || fail "trials: $(cat out)"

# What waits, or works, without being stopped ends in its time, in a script's own rules as well.
cat >own.lua <<'E2'
local ms = require "msched"
ms.rule_timeout(0.05)
for name, f in pairs {waits = function() while true do for _ = 1, 100 do ms.sleep(0.001) end end end, works = function() while true do end end} do
  local ok, message = pcall(ms.limited, "rule", {name = name, apply = f})
  assert(not ok and message:find("rule `" .. name .. "`", 1, true) and message:find("ran longer than 0.05 seconds", 1, true), message)
  ok, message = ms.policy_within(0.05, 60, f)
  assert(ok == "own", tostring(ok))
  ok, message = ms.policy_within(60, 0.05, f)
  assert(ok == nil, tostring(ok))
end
assert(ms.policy_within(60, 60, function() return 5 end) == true and select(2, ms.policy_within(0, 0, function() return 5 end)) == 5)
E2
timeout 60 "$msched" own.lua >out 2>err || fail "own.lua: $(cat err)"
echo "stopped: ok"
