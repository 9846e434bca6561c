#!/bin/sh
# Rules, postprocessors and mutators from files: sandboxed, stopped in time, named when they fail; the store unharmed.
# usage: rules.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/store.db
gemm=$root/lua/examples/gemm.lua
limit=0.3 # seconds
fail() { echo "rules.sh: $*" >&2; exit 1; }

"$msched" tune "$gemm" --trials 4 --policy replay_trace --db "$db" --json -- 32 32 32 >/dev/null
"$msched" db export "$work/before" --db "$db"

# Both commands refuse the file, with exit 1, one line that holds the words, and the store as it was.
refused() { # name, words…; the file is on standard input
  file=$work/$1.lua
  cat >"$file"
  for how in space tune; do
    set +e
    if [ $how = space ]; then
      "$msched" space "$gemm" --rules "$file" --rule-timeout $limit -- 32 32 32 >"$work/out" 2>"$work/err"
    else
      "$msched" tune "$gemm" --rules "$file" --rule-timeout $limit --trials 4 --db "$db" -- 32 32 32 >"$work/out" 2>"$work/err"
    fi
    got=$?
    set -e
    [ $got = 1 ] || fail "$1, $how: status $got: $(cat "$work/err")"
    [ "$(wc -l <"$work/err")" = 1 ] || fail "$1, $how: more than one line: $(cat "$work/err")"
    for words in "$@"; do
      grep -qF -- "$words" "$work/err" || fail "$1, $how: no \`$words\` in: $(cat "$work/err")"
    done
  done
}
rule() { # name of the rule, its body
  printf 'local ms = require "msched"\nms.rule {name = "%s", apply = function(sch, block)\n%s\nreturn {sch} end}\n' "$1" "$2"
}

rule raises 'local x = nil + 1' | refused raises 'rule `raises`' 'raises.lua:2' 'raises.lua:3: attempt' 'leave it out'
rule table 'error {1}' | refused table 'rule `table`'
rule below 'sch:split(block, {2, 2})' | refused below 'rule `below`' 'below.lua:3:'
rule loops 'while true do end' | refused loops 'rule `loops`' 'loops.lua:2' 'at line 3' '0.3 seconds' '--rule-timeout'
rule swallows 'while true do pcall(function() while true do end end) end' | refused swallows 'rule `swallows`' '--rule-timeout'
rule nested 'local function f() while true do pcall(pcall, f) end end f()' | refused nested 'rule `nested`'
rule threads 'while true do coroutine.wrap(function() pcall(function() while true do end end) end)() end' | refused threads 'rule `threads`' '--rule-timeout'
rule pattern 'string.find(("a"):rep(3000), ("a*"):rep(30) .. "b")' | refused pattern 'rule `pattern`' 'this pattern'
rule empty 'local s = (""):rep(1 << 60) table.move({}, 1, 1 << 60, 2)' | refused empty 'rule `empty`' 'table.move'
limit=30
rule eats 'local t = {} for i = 1, 1e9 do t[i] = ("x"):rep(1000) .. i end' | refused eats 'rule `eats`' '256 MiB' 'keep fewer'
rule hoards 'local t = {} while true do t[#t + 1] = sch:copy() end' | refused hoards 'rule `hoards`' '256 MiB'
limit=0.3
rule clock 'os.time()' | refused clock "'os'" 'clock.lua:3:'
rule files 'io.open "/etc/passwd"' | refused files "'io'"
rule random 'math.random()' | refused random "'random'"
rule bytes 'load "x"' | refused bytes "'load'"
rule loader 'require "os"' | refused loader 'may require "msched" only'
rule final 'setmetatable({}, {__gc = print})' | refused final '__gc'
rule code 'require "msched".build(sch:func())' | refused code "'build'"
rule nothing 'do return end' | refused nothing 'rule `nothing` returned nothing'
rule items 'do return {1} end' | refused items 'item 1 is a number'
rule doubles 'local t = {} for i = 1, 64 do t[i] = sch end do return t end' | refused doubles 'rule `doubles` opens more than 4096 sketches'
echo 'while true do end' | refused top 'file `' 'top.lua' '--rule-timeout'
echo 'error "oh"' | refused loading 'loading.lua:1: oh'
echo 'ms.rule {' | refused syntax 'syntax.lua:'
echo 'require "msched".rule {name = "bare"}' | refused bare 'bare.lua:1:' '`apply` is a function'
head -c 64 "$msched" | refused binary 'binary'

# Postprocessors run in the workers, mutators in their own state: tuning ends, in time, with their names.
stopped() { # name, words…
  file=$work/$1.lua
  cat >"$file"
  set +e
  timeout 20 "$msched" tune "$gemm" --rules "$file" --rule-timeout $limit --trials 64 --db "$work/$1.db" -- 32 32 32 >"$work/out" 2>"$work/err"
  got=$?
  set -e
  [ $got = 1 ] || fail "$1: status $got: $(cat "$work/err")"
  for words in "$@"; do
    grep -qF -- "$words" "$work/err" || fail "$1: no \`$words\` in: $(cat "$work/err")"
  done
  "$msched" db check --db "$work/$1.db" | grep -qx clean || fail "$1: db check"
}
echo 'require "msched".postproc {name = "late", apply = function(sch) while true do end end}' | stopped late 'postprocessor `late`' 'late.lua:1' '--rule-timeout'
echo 'require "msched".postproc {name = "wrong", apply = function(sch) sch:nonsense() end}' | stopped wrong 'postprocessor `wrong`' 'nonsense'
echo 'require "msched".postproc {name = "full", apply = function(sch) local t = {} while true do t[#t + 1] = {} end end}' | stopped full 'postprocessor `full`'
echo 'require "msched".mutator {name = "stuck", weight = 1e9, apply = function(trace) while true do end end}' | stopped stuck 'mutator `stuck`' '--rule-timeout'
echo 'require "msched".mutator {name = "odd", weight = 1e9, apply = function(trace) return 7 end}' | stopped odd 'mutator `odd` returned a number'

# What a good file registers is used; order and text of tables are the same in every run.
cat >"$work/good.lua" <<'L'
local ms = require "msched"
ms.rule {name = "good", apply = function(sch, block)
  local keys = {}
  for k in pairs {b = 1, a = 2, [2] = 3, [1] = 4} do keys[#keys + 1] = tostring(k) end
  if sch:block_name(block) == "C" then sch:annotate(block, "mine", table.concat(keys) .. tostring(keys) .. string.format("%s", keys)) end
  return {sch}
end}
L
"$msched" space "$gemm" --rules "$work/good.lua" -- 16 16 16 | grep -q '"mine", "12abtabletable"' || fail "the good rule"

# Closures of a script run in its own state, with its libraries, within the same limit of time.
cat >"$work/inline.lua" <<'L'
local ms = require "msched"
local gemm = loadfile(arg[1])(32, 32, 32)[1]
local seen = {rule = 0, postproc = 0, mutator = 0}
ms.rule {name = "mine", apply = function(sch, block) seen.rule = seen.rule + 1 return {sch} end}
ms.postproc {name = "mine", apply = function(sch) seen.postproc = seen.postproc + 1 return os.time() > 0 end}
local best = ms.tune(gemm, {trials = 8, batch = 4, db = arg[2], mutators = {{name = "mine", weight = 10, apply = function(t) seen.mutator = seen.mutator + 1 return t end}}})
assert(best.seconds > 0 and seen.rule > 0 and seen.postproc > 0 and seen.mutator > 0)
ms.rule {name = "endless", apply = function(sch) while true do end end}
local ok, message = pcall(ms.tune, gemm, {trials = 8, db = arg[3], rule_timeout = 0.2})
assert(not ok and tostring(message):find("rule `endless`", 1, true) and tostring(message):find("inline.lua:8", 1, true), message)
local function hook() end
debug.sethook(hook, "", 1000)
ok, message = pcall(ms.tune, gemm, {trials = 8, db = arg[3], rule_timeout = 0.2})
assert(not ok and debug.gethook() == hook, "the hook of before")
L
"$msched" "$work/inline.lua" "$gemm" "$work/inline.db" "$work/endless.db" || fail "closures"

"$msched" db export "$work/after" --db "$db"
cmp "$work/before" "$work/after" || fail "the store changed"
"$msched" db check --db "$db" | grep -qx clean || fail "db check"
echo "rules: ok"
