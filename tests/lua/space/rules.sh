#!/bin/sh
# Rules, postprocessors and mutators from files: sandboxed, stopped in time, named when they fail; the store unharmed.
# usage: rules.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/store.db
gemm=$root/lua/examples/gemm.lua
limit=30 # seconds; what is to end by them has fewer
brief=0.2
fail() { echo "rules.sh: $*" >&2; exit 1; }

"$msched" tune "$gemm" --trials 4 --policy replay_trace --db "$db" --json -- 32 32 32 >/dev/null
"$msched" db export "$work/before" --db "$db"

# Both commands refuse the file, with exit 1, one line that holds the words, and the store as it was. Where few draws
# are judged (support/lua/draws.lua) `tune` gets one of three files; each is read by the same call in both.
refused() { # name, words…; the file is on standard input
  file=$work/$1.lua
  cat >"$file"
  commands=space
  [ "${MSCHED_DRAWS:-}" != all ] && [ $(($(printf %s "$1" | wc -c) % 3)) != 0 ] || commands='space tune'
  for how in $commands; do
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
# What never ends has less time; a pipe makes a subshell of it.
endless() { limit=$brief; "$@"; }
rule() { # name of the rule, its body
  printf 'local ms = require "msched"\nms.rule {name = "%s", apply = function(sch, block)\n%s\nreturn {sch} end}\n' "$1" "$2"
}

# A file that registers nothing is said so: it is another kind of file, or its calls are never reached.
nothing='it registers nothing: a file of rules calls ms.rule, ms.postproc, ms.mutator, ms.space, ms.without or ms.intrinsic'
printf '' | refused blank "blank.lua: $nothing"
cat "$gemm" | refused function "function.lua: $nothing"
printf 'local ms = require "msched"\nms.policy {name = "p", run = function() end}\n' | refused policy "policy.lua: $nothing"
# all functions that a file of rules has: none runs code, starts processes, or changes what the process has
rule names 'local names = {}
  for name, value in pairs(ms) do if type(value) == "function" then names[#names + 1] = name end end
  table.sort(names)
  error(table.concat(names, " "))' | refused names ": apply code_of cpu_features device_clocks devices divisors from_script functions_of_script \
host intrinsic intrinsics_text join_traces limited load memoized model mutator options pass policy postproc rate_share \
rate_text read_trace rule run_options schedule skips_failing sorted_keys space specialize stream target time_text type \
unit_is_used unit_rate units visible where with_weights without without_empty; mend it"
rule raises 'local x = nil + 1' | refused raises 'rule `raises`' 'raises.lua:2' 'raises.lua:3: attempt' 'leave it out'
rule table 'error {1}' | refused table 'rule `table`' 'table.lua:3: an error that is a table, without a message; mend it'
rule below 'sch:split(block, {2, 2})' | refused below 'rule `below`' 'below.lua:3:'
rule loops 'while true do end' | endless refused loops 'rule `loops`' 'loops.lua:2' 'at line 3' '0.2 seconds' '--rule-timeout'
rule swallows 'while true do pcall(function() while true do end end) end' | endless refused swallows 'rule `swallows`' '--rule-timeout'
rule nested 'local function f() while true do pcall(pcall, f) end end f()' | endless refused nested 'rule `nested`'
rule threads 'while true do coroutine.wrap(function() pcall(function() while true do end end) end)() end' | endless refused threads 'rule `threads`' '--rule-timeout'
rule pattern 'string.find(("a"):rep(3000), ("a*"):rep(30) .. "b")' | refused pattern 'rule `pattern`' 'this pattern'
rule empty 'local s = (""):rep(1 << 60) table.move({}, 1, 1 << 60, 2)' | refused empty 'rule `empty`' 'table.move'
rule eats 'local t = {} for i = 1, 1e9 do t[i] = ("x"):rep(30000) .. i end' | refused eats 'rule `eats`' '256 MiB' 'keep fewer'
rule hoards 'local t = {} while true do t[#t + 1] = sch:copy() end' | refused hoards 'rule `hoards`' '256 MiB'
printf 'local ms, all = require "msched", {}\nms.rule {name = "keeps", apply = function(sch) while true do all[#all + 1] = sch:copy() end end}\n' | refused keeps 'rule `keeps`' 'keeps.lua:2' '256 MiB'
rule recurses 'local function deep(n) return deep(n + 1) + 1 end deep(1)' | refused recurses 'rule `recurses`' 'recurses.lua:3: stack overflow'
printf 'local ms = require "msched"\nlocal kept\nms.rule {name = "leaks", apply = function(sch, block)\nif kept then sch:get_loops(kept) end\nkept = block\nreturn {sch} end}\n' |
  refused leaks 'rule `leaks`' 'leaks.lua:4: argument 1 is a handle of another schedule'
rule clock 'os.time()' | refused clock "'os'" 'clock.lua:3:'
rule files 'io.open "/etc/passwd"' | refused files "'io'"
rule random 'math.random()' | refused random "'random'"
rule bytes 'load "x"' | refused bytes "'load'"
rule loader 'require "os"' | refused loader 'loader.lua:3: require "os": a rule may require "msched" only'
rule final 'setmetatable({}, {__gc = print})' | refused final '__gc'
rule code 'require "msched".build(sch:func())' | refused code "'build'"
rule nothing 'do return end' | refused nothing 'rule `nothing` returned nothing'
rule items 'do return {1} end' | refused items 'item 1 is a number'
rule twice 'do return {sch, sch:copy(), sch} end' | refused twice 'rule `twice`' 'as items 1 and 3' 'sch:copy()'
rule holes 'do return {sch, nil, sch:copy()} end' | refused holes 'rule `holes`' 'a list with holes: 2 of 3 items'
rule keyed 'do return {sch, best = sch:copy()} end' | refused keyed 'rule `keyed`' 'the key best'
rule behind 'do return setmetatable({}, {__index = function() return sch end, __len = function() return 9 end}) end' | refused behind 'rule `behind`' 'a metatable'
rule foreign 'do return {require "msched".schedule(sch:func())} end' | refused foreign 'rule `foreign`' 'item 1 is a schedule of another function'
rule doubles 'local t = {} for i = 1, 5000 do t[i] = sch end do return t end' | refused doubles 'rule `doubles` returned 5000 schedules, more than 4096'
echo 'while true do end' | endless refused top 'file `' 'top.lua' '--rule-timeout'
echo 'error "oh"' | refused loading 'loading.lua:1: oh'
echo 'ms.rule {' | refused syntax 'syntax.lua:'
echo 'require "msched".rule {name = "bare"}' | refused bare 'bare.lua:1:' '`apply` is a function'
head -c 64 "$msched" | refused binary 'binary'
rule strings 'getmetatable("").__index = {}' | refused strings 'strings.lua:3:' 'boolean'
rule types 'getmetatable(sch).__gc(sch)' | refused types 'types.lua:3:'
rule shared 'setmetatable(require "msched".te.const(1), nil)' | refused shared 'its own tables only'
rule hidden 'local f = string.dump(print)' | refused hidden "'dump'"
rule unloads 'require "msched".load("../../etc/passwd")' | refused unloads 'unloads.lua:3:'
rule absolute 'require "msched".load("/etc/passwd")' | refused absolute 'absolute.lua:3:'
rule store 'require "msched".store("x")' | refused store "'store'"
rule walks 'for k in next, _G do end' | refused walks "nil value"
rule prints 'string.format("%p", {})' | refused prints '%p'
rule closes 'local x <close> = setmetatable({}, {__close = function() while true do end end}) error "oh"' | endless refused closes '--rule-timeout'
rule renders 'error(setmetatable({}, {__tostring = function() while true do end end}))' | endless refused renders 'rule `renders`'
rule compares 'local m = {__lt = function() while true do end end} table.sort({setmetatable({}, m), setmetatable({}, m)})' | endless refused compares '--rule-timeout'
rule wraps 'local f f = function() return coroutine.wrap(f)() end f()' | refused wraps 'rule `wraps`'
rule packs 'local s = "x" while true do s = string.pack("s8s8", s, s) end' | refused packs '256 MiB'
rule replaces 'local s = (("x"):rep(1 << 16):gsub("x", ("y"):rep(1 << 16)))' | refused replaces '256 MiB'

# What one file changes of libraries and modules is changed for itself alone.
cat >"$work/vandal.lua" <<'L'
local ms = require "msched"
for _, t in ipairs {string, table, math, ms.te, ms.ops, ms.schedule_methods, ms.load "rules.common", ms.load "lua.lib.te"} do
  for k in pairs(t) do rawset(t, k, function() error "spoiled" end) end
end
setmetatable(_G, {__index = function() error "spoiled" end, __newindex = function() error "spoiled" end})
setmetatable(string, {__index = function() error "spoiled" end})
local apply = function(sch) return {sch} end
ms.rule {name = "vandal", apply = apply}
rawset(_G, "ipairs", nil) rawset(_G, "type", nil) rawset(_G, "error", nil) rawset(_G, "msched", nil)
for k in pairs(ms) do ms[k] = nil end
L
rule orderly 'assert(string.format("%d", 7) == ("7"):rep(1) and math.max(1, 2) == 2 and ms.te.const(1) and ms.load "rules.common")' >"$work/orderly.lua"
# A rule that changes nothing, as one that looks for a block of another name, is named; one that does is not.
cat >"$work/idle.lua" <<'L'
local ms = require "msched"
ms.rule {name = "misspelt", apply = function(sch, block) if sch:block_name(block) ~= "V" then return {sch} end return {sch, sch:copy()} end}
ms.rule {name = "looks", apply = function(sch, block) sch:get_loops(block) return {sch} end}
ms.rule {name = "splits", apply = function(sch, block)
  local loop = sch:get_loops(block)
  if loop then sch:split(loop, {2, ms.rest}) end
  return {sch}
end}
L
"$msched" space "$gemm" --rules "$work/idle.lua" -- 32 32 32 >"$work/out" 2>"$work/err" || fail "idle: $(cat "$work/err")"
[ "$(cat "$work/err")" = "msched space: gemm: rule \`misspelt\` changed no schedule
msched space: gemm: rule \`looks\` changed no schedule" ] || fail "idle rules, space: $(cat "$work/err")"
"$msched" tune "$gemm" --rules "$work/idle.lua" --trials 1 --db "$work/idle.db" -- 32 32 32 >"$work/out" || fail "idle rules, tune"
[ "$(grep -c "^rule .* changed no schedule" "$work/out")" = 2 ] || fail "idle rules, tune: $(cat "$work/out")"
"$msched" space "$gemm" --rules "$work/vandal.lua" --rules "$work/orderly.lua" -- 32 32 32 >"$work/out" 2>"$work/err" || fail "vandal: $(cat "$work/err")"
[ "$(grep -c "^-- " "$work/out")" = "$("$msched" space "$gemm" -- 32 32 32 | grep -c "^-- ")" ] || fail "vandal: sketches are lost"
"$msched" tune "$gemm" --rules "$work/vandal.lua" --trials 2 --db "$work/vandal.db" -- 32 32 32 >"$work/out" 2>"$work/err" || fail "vandal, tune: $(cat "$work/err")"

# Postprocessors run in the workers, mutators in their own state: tuning ends, in time, with their names.
stopped() { # name, words…
  file=$work/$1.lua
  cat >"$file"
  set +e
  timeout 20 "$msched" tune "$gemm" --rules "$file" --rule-timeout $limit --policy evolutionary --trials 64 --db "$work/$1.db" -- 32 32 32 >"$work/out" 2>"$work/err"
  got=$?
  set -e
  [ $got = 1 ] || fail "$1: status $got: $(cat "$work/err")"
  for words in "$@"; do
    grep -qF -- "$words" "$work/err" || fail "$1: no \`$words\` in: $(cat "$work/err")"
  done
  "$msched" db check --db "$work/$1.db" | grep -qx clean || fail "$1: db check"
}
echo 'require "msched".postproc {name = "late", apply = function(sch) while true do end end}' | endless stopped late 'postprocessor `late`' 'late.lua:1' '--rule-timeout'
echo 'require "msched".postproc {name = "wrong", apply = function(sch) sch:nonsense() end}' | stopped wrong 'postprocessor `wrong`' 'nonsense'
echo 'local kept require "msched".postproc {name = "keeps", apply = function(sch) if kept then sch:block_name(kept) end kept = sch:get_sblock "root" end}' | stopped keeps 'postprocessor `keeps`' 'lent for one call'
echo 'require "msched".postproc {name = "copies", apply = function(sch) sch:copy() end}' | stopped copies 'postprocessor `copies`' 'is not copied'
echo 'require "msched".postproc {name = "full", apply = function(sch) local t = {} while true do t[#t + 1] = {} end end}' | endless stopped full 'postprocessor `full`'
echo 'require "msched".mutator {name = "stuck", weight = 1e9, apply = function(trace) while true do end end}' | endless stopped stuck 'mutator `stuck`' '--rule-timeout'
echo 'require "msched".mutator {name = "odd", weight = 1e9, apply = function(trace) return 7 end}' | stopped odd 'mutator `odd` returned a number'

# With --skip-failing each of these is counted as refused, as `skipped`, and the run goes on.
skipped() { # name, what stands in the table; the file is on standard input
  cat >"$work/$1.lua"
  timeout 60 "$msched" tune "$gemm" --rules "$work/$1.lua" --skip-failing --rule-timeout $limit --policy evolutionary --trials 4 --db "$work/$1.db" --json -- 32 32 32 \
    >"$work/out" 2>"$work/err" || fail "$1, skipped: $(cat "$work/err")"
  grep -q "\"refused\":.*\"$2: skipped\":[0-9]" "$work/out" || fail "$1, skipped: $(tail -n 1 "$work/out")"
  grep -q '"ended":"trials"' "$work/out" || fail "$1, skipped: not all trials"
}
rule broken 'local x = nil + 1' | skipped broken broken
rule stuck 'while sch:block_name(block) == "C" do end' | endless skipped stuck stuck
rule greedy 'local t = {} if sch:block_name(block) == "C" then while true do t[#t + 1] = t end end' | endless skipped greedy greedy
rule silent 'if sch:block_name(block) == "C" then return end' | skipped silent silent
echo 'require "msched".postproc {name = "some", apply = function(sch) if sch:hash():sub(-1) > "7" then error "oh" end end}' | skipped some some
echo 'require "msched".mutator {name = "odd", weight = 10, apply = function(trace) return 7 end}' | skipped odd odd
"$msched" space "$gemm" --rules "$work/broken.lua" --skip-failing -- 32 32 32 >"$work/out" 2>"$work/err" || fail "broken, space: $(cat "$work/err")"
grep -qE "^ +[0-9]+  broken  skipped  rule \`broken\` .*broken.lua:3: attempt" "$work/err" || fail "broken, space: $(cat "$work/err")"
echo 'error "oh"' >"$work/loading.lua" # a file that does not load is no part to skip
"$msched" space "$gemm" --rules "$work/loading.lua" --skip-failing -- 32 32 32 >"$work/out" 2>&1 && fail "loading: skipped"

# Where an instruction is refused, what it was applied to is dropped, and counted under the name and the code: a rule's
# schedule goes on as it was before, a postprocessor's candidate and a mutator's change are gone.
fused_twice='local l = sch:get_loops(block) sch:fuse(l, l)'
rule grows "if sch:block_name(block) == 'C' then sch:annotate(block, 'mine', 1) $fused_twice end" >"$work/grows.lua"
"$msched" space "$gemm" --target x86-64-v3 --rules "$work/grows.lua" -- 32 32 32 >"$work/out" 2>"$work/err" || fail "grows: $(cat "$work/err")"
grep -q "sketch 11 of 11" "$work/out" || fail "grows: sketches are lost"
grep -q '"mine"' "$work/out" && fail "grows: half of the rule was done"
grep -q "11  grows  loop_not_nested  $work/grows.lua:3: " "$work/err" || fail "grows: $(cat "$work/err")"
cat >"$work/some.lua" <<'L'
local ms = require "msched"
local te = ms.te
local A = te.placeholder({4}, "float32", "A")
local f = te.func("f", {A, te.compute({4}, function(i) return A[{i}] + 1 end, "B")})
local function refused(sch, name)
  local l = sch:get_loops(sch:get_sblock(name))
  sch:fuse(l, l)
end
ms.postproc {name = "picky", apply = function(sch) if sch:hash():sub(-1) > "7" then refused(sch, sch:block_names()[2]) end end}
ms.mutator {name = "vain", weight = 10, apply = function() refused(ms.schedule(f), "B") end}
L
"$msched" tune "$gemm" --rules "$work/some.lua" --policy evolutionary --trials 4 --db "$work/some.db" --json -- 32 32 32 >"$work/out" || fail "some: the run ended"
grep -q '"refused":.*"picky: loop_[a-z_]*":[0-9]*,"vain: loop_not_nested":[0-9]' "$work/out" || fail "some: $(tail -n 1 "$work/out")"
grep -q '"ended":"trials"' "$work/out" || fail "some: not all trials"
# Where nothing is left, the run ends, and a table says what was refused by whom.
cat >"$work/all.lua" <<'L'
local ms = require "msched"
ms.postproc {name = "first", apply = function(sch) return sch:hash():sub(-1) > "7" end}
ms.postproc {name = "second", apply = function(sch) local l = sch:get_loops(sch:get_sblock(sch:block_names()[2])) sch:fuse(l, l) end}
L
"$msched" tune "$gemm" --rules "$work/all.lua" --trials 4 --db "$work/all.db" -- 32 32 32 >"$work/out" 2>"$work/err" && fail "all: it succeeds"
grep -q "ended with 0 of 4 trials: every candidate was refused" "$work/out" || fail "all: $(cat "$work/out")"
grep -q "no candidate could be measured: every candidate was refused" "$work/err" || fail "all: $(cat "$work/err")"
grep -qE "^ +[0-9]+  first +-$" "$work/err" || fail "all, first: $(cat "$work/err")"
grep -qE "^ +[0-9]+  second +loop_[a-z_]+ +$work/all.lua:3: instruction" "$work/err" || fail "all, second: $(cat "$work/err")"
echo 'require "msched".rule {name = "empty", apply = function() return {} end}' >"$work/empty.lua"
for command in "space $gemm" "tune $gemm --db $work/empty.db"; do
  "$msched" $command --rules "$work/empty.lua" -- 32 32 32 >"$work/out" 2>"$work/err" && fail "empty: it succeeds"
  grep -q "no sketch is left of its space; refused:" "$work/err" || fail "empty: $(cat "$work/err")"
  grep -qE "[0-9]+  empty  -     gave back no schedule" "$work/err" || fail "empty: $(cat "$work/err")"
done
# A script may know a refusal from a mistake of its own.
cat >"$work/code.lua" <<'L'
local ms = require "msched"
local gemm = loadfile(arg[1])(32, 32, 32)[1]
local sch = ms.schedule(gemm)
local l = sch:get_loops(sch:get_sblock "C")
local ok, message = pcall(sch.fuse, sch, l, l)
assert(not ok and ms.code_of(message) == "loop_not_nested" and ms.code_of "other" == nil)
ok, message = pcall(sch.split, sch, sch:get_sblock "C", {2, 2})
assert(not ok and ms.code_of(message) == nil, message)
ok, message = pcall(sch.get_sblock, sch, "D")
assert(not ok and ms.code_of(message) == "block_not_found", message)
assert(select(2, ms.limited("rule", {name = "r", apply = function() error(message, 0) end})) == "block_not_found")
L
"$msched" "$work/code.lua" "$gemm" || fail "codes"

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

# What is left out: rules, postprocessors and mutators of the target's by name, one or several, by option or in
# a file, beside rules of the user's own, and in a space that is described in place of the target's.
has_tiles() { grep -q msched.register_tile; }
"$msched" space "$gemm" -- 64 64 64 | has_tiles || fail "a space with register tiles"
! "$msched" space "$gemm" --without register_tile -- 64 64 64 | has_tiles || fail "register tiles left out"
"$msched" space "$gemm" --without tile_size --without rewrite_layout -- 64 64 64 | has_tiles || fail "others left out"
printf 'local ms = require "msched"\nms.without("tile_size", "register_tile")\n' >"$work/less.lua"
"$msched" space "$gemm" --rules "$work/good.lua" --rules "$work/less.lua" -- 64 64 64 >"$work/less"
! has_tiles <"$work/less" || fail "register tiles left out by a file"
grep -q '"mine", "12abtabletable"' "$work/less" || fail "the good rule beside what is left out"
printf 'local ms = require "msched"\nms.space {rules = {"register_tile", "multi_level_tiling"}}\n' >"$work/space.lua"
"$msched" space "$gemm" --rules "$work/space.lua" -- 64 64 64 | has_tiles || fail "a space of one's own"
! "$msched" space "$gemm" --rules "$work/space.lua" --without register_tile -- 64 64 64 | has_tiles ||
  fail "a space of one's own, less"
"$msched" tune "$gemm" --without register_tile --without tile_size --trials 2 --db "$work/less.db" -- 64 64 64 >/dev/null || fail "tuning"
! "$msched" space "$gemm" --without fly -- 64 64 64 2>"$work/err" || fail "an unknown rule is left out"
grep -q 'there is no rule, postprocessor or mutator `fly` to leave out; the target has unroll_window, ' "$work/err" ||
  fail "an unknown rule: $(cat "$work/err")"
printf 'local ms = require "msched"\nms.without(1)\n' | refused number 'ms.without takes names, not a number'

# Closures of a script run in its own state, with its libraries, within the same limit of time.
cat >"$work/inline.lua" <<'L'
local ms = require "msched"
local gemm = loadfile(arg[1])(32, 32, 32)[1]
local seen = {rule = 0, postproc = 0, mutator = 0}
ms.rule {name = "mine", apply = function(sch, block) seen.rule = seen.rule + 1 return {sch} end}
ms.postproc {name = "mine", apply = function(sch) seen.postproc = seen.postproc + 1 return os.time() > 0 end}
local best = ms.tune(gemm, {policy = "evolutionary", trials = 8, batch = 4, db = arg[2], mutators = {{name = "mine", weight = 10, apply = function(t) seen.mutator = seen.mutator + 1 return t end}}})
assert(best.seconds > 0 and seen.rule > 0 and seen.postproc > 0 and seen.mutator > 0)
assert(not ms.skips_failing())
ms.tune(gemm, {trials = 2, skip_failing = true, db = arg[2], rules = {{name = "broken", apply = function() error "oh" end}}})
ms.rule {name = "endless", apply = function(sch) while true do end end}
local ok, message = pcall(ms.without, "tile_size")
assert(not ok and message:find("ms.tune takes names as `without`", 1, true), message)
ok, message = pcall(ms.tune, gemm, {trials = 2, db = arg[3], without = {1}})
assert(not ok and tostring(message):find("item 1 of `without` is no name but a number", 1, true), message)
ok, message = pcall(ms.tune, gemm, {trials = 8, db = arg[3], rule_timeout = 0.2})
assert(not ok and tostring(message):find("rule `endless`", 1, true) and tostring(message):find("inline.lua:10", 1, true), message)
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
