#!/bin/sh
# Records are checked again before they are replayed or exported: one that is wrong is refused and marked, one that
# failed
# is refused, one of an earlier version is measured again by tuning.  usage: recheck.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/store.db
fail() { echo "recheck.sh: $*" >&2; exit 1; }
refuses() { # words of the message, command…
  words=$1
  shift
  "$@" >"$work/out" 2>"$work/err" && fail "status 0: $*"
  grep -q "$words" "$work/err" || { cat "$work/err" >&2; fail "no \`$words\` in the message of: $*"; }
}
row() { "$msched" top --db "$db" | grep " $1" || fail "$1 is not in the list"; }

# Three records as a store of strangers may hold them: right; wrong on real numbers only (sums in float16); wrong at
# once.
cat >"$work/make.lua" <<'L'
local ms = require "msched"
local path, root = ...
local func = loadfile(root .. "/lua/examples/gemm.lua")(16, 16, 64)[1]
local store = ms.store(path)
local function put(change, seconds)
  local sch = ms.schedule(func)
  local block = sch:get_sblock "C"
  change(sch, block)
  local _, short = store:put {workload = store:put_workload(func), target = ms.target("native").text, trace = sch.trace, hash = sch:hash(),
                              status = "measured", seconds = seconds, low = seconds, high = seconds, runs = 3}
  print(short)
end
put(function(sch, block) sch:cache_write(block, 0, "global") end, 3e-3)
put(function(sch, block) sch:cache_write(block, 0, "global") sch:unsafe_set_dtype(block, 0, "float16") end, 1e-3)
put(function(sch, block) sch:cache_write(block, 0, "global") sch:unsafe_set_dtype(block, 0, "int8") end, 2e-3)
L
"$msched" "$work/make.lua" "$db" "$root" >"$work/ids"
right=$(sed -n 1p "$work/ids") coarse=$(sed -n 2p "$work/ids") wrong=$(sed -n 3p "$work/ids")

row "$coarse" | grep -q "unsafe" || fail "top does not mark what is unsafe"
row "$right" | grep -q "unsafe" && fail "top marks what is safe"
"$msched" replay "$right" --db "$db" >"$work/out" || fail "a right record is not replayed"
"$msched" export "$right" --db "$db" -o "$work/right.c" || fail "a right record is not exported"
refuses "wrong result, found on re-check: on real numbers" "$msched" replay "$coarse" --db "$db"
row "$coarse" | grep -q "failed: wrong result, found on re-check" || fail "the wrong record is not marked"
refuses "wrong result, found on re-check" "$msched" export "$wrong" --db "$db" -o "$work/wrong.c"
[ ! -e "$work/wrong.c" ] || fail "a wrong kernel was written"
row "$wrong" | grep -q "failed: wrong result" || fail "the other wrong record is not marked"
refuses "failed: wrong result.*--force" "$msched" export "$coarse" --db "$db" -o "$work/coarse.c"
"$msched" export "$coarse" --force --db "$db" -o "$work/coarse.c" || fail "--force does not export what failed"
"$msched" db check --db "$db" | grep -qx clean || fail "db check"
# where the store cannot be written, that is said
"$msched" "$work/make.lua" "$work/locked.db" "$root" >/dev/null
if [ "$(id -u)" != 0 ]; then
  chmod a-w "$work/locked.db" "$work"
  refuses "cannot be written" "$msched" replay "$coarse" --db "$work/locked.db"
  chmod u+w "$work/locked.db" "$work"
fi
# the check of a kernel made by hand
cat >"$work/check.lua" <<'L'
local ms = require "msched"
local func = loadfile(... .. "/lua/examples/gemm.lua")(16, 16, 64)[1]
local sch = ms.schedule(func)
local block = sch:get_sblock "C"
sch:cache_write(block, 0, "global")
sch:build():check()
sch:unsafe_set_dtype(block, 0, "float16")
local ok, message = pcall(function() sch:build():check() end)
assert(not ok and message:find "on real numbers", message)
L
"$msched" "$work/check.lua" "$root" || fail "kernel:check"
# a record of an earlier version: marked, replayed, and tuning starts from it but does not take its word
"$msched" db export --db "$db" | sed 's/"versions":"[^"]*"/"versions":"msched 0.0.9, LLVM 19.1.0"/; s/"seconds":0.003/"seconds":0.000000001/; s/"low":0.003/"low":0.000000001/' >"$work/old.json"
db=$work/old.db
"$msched" db import "$work/old.json" --db "$db" >/dev/null
old=$("$msched" top --db "$db" --json | head -n 1 | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/')
row "$old" | grep -q "(by msched 0.0.9, LLVM 19.1.0)" || fail "top does not mark an earlier version's"
"$msched" replay "$old" --db "$db" >"$work/out" || fail "an earlier version's right record is not replayed"
"$msched" tune "$root/lua/examples/gemm.lua" --trials 2 --policy replay_trace --db "$db" --json -- 16 16 64 >"$work/out"
grep -q '"known":0' "$work/out" || fail "an earlier version's record counts as known"
grep '"event":"end"' "$work/out" | grep -q '"best_seconds":1e-09' && fail "an earlier version's time counts"
echo "recheck: ok"
