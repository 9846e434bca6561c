#!/bin/sh
# A user's ways into the design space: a rule as a function, as a table with state, from a file, for one block by its
# annotation; a space in place of the target's, by rules, by a scheduling function, by several of both; from a file and
# from a script.
# usage: own_space.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gemm=$root/lua/examples/gemm.lua
fail() { echo "own_space.sh: $*" >&2; cat "$work/out" "$work/err" >&2; exit 1; }
open() { "$msched" space "$1" --target x86-64-v3 --rules "$2" -- 32 32 32 >"$work/out" 2>"$work/err" || fail "$2: it fails"; }
refused() { # a file of rules that ends the command, with these words on standard error; on examples/gemm.lua
  "$msched" space "$gemm" --rules "$1" -- 8 8 8 >"$work/out" 2>"$work/err" && fail "$1 is not refused"
  grep -qF "$2" "$work/err" || fail "$1: no \"$2\""
}
sketches() { [ "$(grep -c '^-- ' "$work/out")" = "$1" ] || fail "$2: not $1 sketches"; }

# ---- Rules beside the target's
cat >"$work/function.lua" <<'L'
local ms = require "msched"
ms.rule(function(sch, block)
  if sch:block_name(block) == "C" then sch:annotate(block, "mine", "by a function") end
  return {sch}
end)
L
open "$gemm" "$work/function.lua"
[ "$(grep -c 'by a function' "$work/out")" = "$(grep -c '^-- ' "$work/out")" ] || fail "a rule that is a function"
default=$(grep -c '^-- ' "$work/out")
cat >"$work/state.lua" <<'L'
local ms = require "msched"
local rule = ms.rule {
  name = "counts",
  begin = function(self, context) self.seen = context.target.cores > 0 and 0 end,
  apply = function(sch, block, context, self)
    self.seen = self.seen + 1
    if sch:block_name(block) == "root" then sch:annotate(block, "calls", self.seen) end
    return {sch}
  end,
}
assert(rule.kind == "rule")
L
open "$gemm" "$work/state.lua"
grep -q '"calls", 1)' "$work/out" && grep -q "\"calls\", $default)" "$work/out" || fail "a rule with state"
echo 'require "msched".rule(function() error "oh" end)' >"$work/raises.lua"
refused "$work/raises.lua" "rule \`$work/raises.lua:1\` ($work/raises.lua:1): $work/raises.lua:1: oh"

# ---- One block's own rule, by annotation
annotated() { # the annotation's value
  sed "s/^ *with T.init/            T.sblock_attr({\"schedule_rule\": \"$1\"})\n&/" "$root/lua/examples/gemm.py" >"$work/annotated.py"
  grep -q schedule_rule "$work/annotated.py" || fail "gemm.py is another"
}
cat >"$work/own.lua" <<'L'
local ms = require "msched"
ms.rule {name = "own", only_annotated = true, apply = function(sch, block)
  local i, j = sch:get_loops(block)
  sch:reorder(j, i)
  return {sch}
end}
L
annotated own
open "$work/annotated.py" "$work/own.lua"
sketches 1 "an annotated block"
grep -q reorder "$work/out" || fail "the annotated block's rule"
grep -q sample_perfect_tile "$work/out" && fail "an annotated block gets other rules too"
"$msched" space "$root/lua/examples/gemm.py" --target x86-64-v3 -- 32 32 32 >"$work/without" 2>"$work/err" || fail "its space"
open "$root/lua/examples/gemm.py" "$work/own.lua"
sketches "$(grep -c '^-- ' "$work/without")" "a block that is not annotated"
annotated None
open "$work/annotated.py" "$work/own.lua"
sketches 1 "a block without rules"
grep -q reorder "$work/out" && fail "a block without rules gets one"
annotated multi_level_tiling
open "$work/annotated.py" "$work/own.lua"
sketches 3 "a block that asks for a rule of the target's"
annotated nowhere
open "$work/annotated.py" "$work/own.lua"
grep -q "1  nowhere  -  *a block asks for this rule by its annotation schedule_rule, and there is none" "$work/err" || fail "a rule that is not there"
# What a rule says by `at` and `wanted` holds there, too; and it is not said of one that did not want the function that
# it changed no schedule.
cat >"$work/nowhere.lua" <<'L'
local ms = require "msched"
ms.rule {name = "nowhere", at = "root", apply = function(sch, block)
  assert(sch:is_root(block))
  sch:annotate(block, "mine", 1)
  return {sch}
end}
ms.rule {name = "unwanted", wanted = function() return false end, apply = function() error "it is called" end}
L
open "$work/annotated.py" "$work/nowhere.lua"
grep -qF 'its `at` is "root", where block C is not' "$work/err" || fail "a block asks for a rule of the root"
grep -q '"mine"' "$work/out" || fail "a rule of the root is called nowhere"
grep -q "changed no schedule" "$work/err" && fail "a rule that is not wanted changed no schedule"
annotated unwanted
open "$work/annotated.py" "$work/nowhere.lua"
grep -qF 'its `wanted` is false here' "$work/err" || fail "a block asks for a rule that is not wanted"

# ---- A space in place of the target's
cat >"$work/space.lua" <<'L'
local ms = require "msched"
local rule = {name = "marks", apply = function(sch, block)
  if sch:block_name(block) == "C" then sch:annotate(block, "marked", 1) end
  return {sch}
end}
ms.space {rules = {rule, "multi_level_tiling"}, multi_level_tiling = {structure = "SRS", max_innermost = 8}, postprocs = {"disallow_dynamic_loop"}, mutators = {{"tile_size", 1}}}
L
open "$gemm" "$work/space.lua"
sketches 1 "a space of rules"
grep -q '"marked"' "$work/out" && grep -q '"SRS"' "$work/out" || fail "the rules and parameters of a space"
"$msched" tune "$gemm" --rules "$work/space.lua" --trials 2 --policy replay_trace --db "$work/space.db" --json -- 32 32 32 >"$work/out" 2>"$work/err" || fail "tuning in a space"
"$msched" show "$("$msched" top --db "$work/space.db" --json | head -n 1 | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/')" --trace --lua --db "$work/space.db" >"$work/out"
grep -q enter_postproc "$work/out" && ! grep -q 'T.parallel\|:parallel' "$work/out" || fail "the postprocessors of a space"
cat >"$work/scheduled.lua" <<'L'
local ms = require "msched"
ms.space(function(sch)
  local i = sch:get_loops(sch:get_sblock "C")
  sch:split(i, {sch:sample_perfect_tile(i, 2, 8)})
end)
ms.space {name = "forks", apply = function(sch)
  local other = sch:copy()
  other:parallel((other:get_loops(other:get_sblock "C")))
  return {sch, other}
end}
ms.space {rules = {"multi_level_tiling"}}
ms.rule(function(sch, block)
  if sch:block_name(block) == "C" then sch:annotate(block, "over", "all of them") end
  return {sch}
end)
L
open "$gemm" "$work/scheduled.lua"
sketches 6 "three spaces"
[ "$(grep -c 'all of them' "$work/out")" = 6 ] && grep -q parallel "$work/out" || fail "a union of spaces"
echo 'require "msched".space(function(sch) local x = nil + 1 end)' >"$work/broken.lua"
refused "$work/broken.lua" "space \`$work/broken.lua:1\` ($work/broken.lua:1): $work/broken.lua:1: attempt"
echo 'require "msched".space(function(sch) return 7 end)' >"$work/nonsense.lua"
refused "$work/nonsense.lua" "returned a number"
echo 'require "msched".space(function(sch) local l = sch:get_loops(sch:get_sblock "C") sch:fuse(l, l) end)' >"$work/refused.lua"
refused "$work/refused.lua" "loop_not_nested"
echo 'require "msched".space {rules = "multi_level_tiling"}' >"$work/list.lua"
refused "$work/list.lua" "list.lua:1: ms.space: \`rules\` is a list"
echo 'require "msched".space {rules = {"nowhere"}}' >"$work/unknown.lua"
refused "$work/unknown.lua" "there is no rule \`nowhere\`"

# A space that is shipped beside the target's.
cat >"$work/half.lua" <<'L'
local te = require "msched".te
local A, B, r = te.placeholder({32, 32}, "float16", "A"), te.placeholder({32, 32}, "float16", "B"), te.reduce_axis(32, "k")
return {te.func("half", {A, B, te.compute({32, 32}, function(i, j) return te.sum(te.cast(A[{i, r}], "float32") * te.cast(B[{r, j}], "float32"), r) end, "C")})}
L
echo 'local ms = require "msched" ms.space(ms.load "rules.targets".tensor_core)' >"$work/tensor_core.lua"
"$msched" space "$work/half.lua" --target "cuda -arch=sm_80" --rules "$work/tensor_core.lua" >"$work/out" 2>"$work/err" || fail "tensor cores"
sketches 5 "tensor cores"
grep -q wmma_sync_16x16x16_f16f16f32 "$work/out" && grep -q warp_mma_sync_16x16x16_f16f16f32 "$work/out" || fail "tensor cores: no intrinsics"

# ---- From a script, in its own state
cat >"$work/script.lua" <<'L'
local ms = require "msched"
local gemm = loadfile(arg[1])(32, 32, 32)[1]
local opened = 0
ms.space(function(sch)
  opened = opened + 1
  local i = sch:get_loops(sch:get_sblock "C")
  sch:split(i, {sch:sample_perfect_tile(i, 2, 8)})
end)
local best = ms.tune(gemm, {trials = 2, policy = "replay_trace", db = arg[2]})
assert(opened == 1 and best.seconds > 0 and best.trace:text():find "sample_perfect_tile" and not best.trace:text():find "tiling_structure")
local ok, message = pcall(ms.space, {postprocs = {}})
assert(not ok and tostring(message):find("belong in a file of --rules", 1, true), message)
L
"$msched" "$work/script.lua" "$gemm" "$work/script.db" >"$work/out" 2>"$work/err" || fail "a space of a script's"
echo "own_space: ok"
