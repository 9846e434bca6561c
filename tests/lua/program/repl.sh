#!/bin/sh
# The interactive session on a pipe: no prompts, values shown, mistakes reported, the session going on.
# usage: repl.sh MSCHED ROOT
set -u
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
fail() { echo "repl.sh: $*" >&2; failed=1; }

says() { # what, expected status, expected output and messages; the input is read from standard input
  "$msched" >"$work/out" 2>"$work/err"
  got=$?
  [ $got -eq "$2" ] || fail "$1: status $got, not $2"
  cat "$work/err" >>"$work/out"
  printf '%s\n' "$3" | cmp -s - "$work/out" || { fail "$1:"; printf '%s\n' "$3" | diff - "$work/out" >&2; }
}
holds() { # what, words of the output; the input is read from standard input
  "$msched" >"$work/out" 2>&1 || fail "$1: status $?"
  grep -qF -- "$2" "$work/out" || { fail "$1: no \"$2\" in:"; cat "$work/out" >&2; }
}

says "expressions" 0 '2
a
nil
{1, 2, x = "y"}
{[true] = 3}' <<'L'
1 + 1
"a", nil
{1, 2, x = "y"}
-- a remark

={[true] = 3}
L
says "strings in tables, of bytes and long ones" 0 '{"\1\200abc\n", "é"}
{"'"$(printf 'x%.0s' $(seq 199))"'"… (300 bytes)}' <<'L'
{"\1\200abc\n", "é"}
{("x"):rep(300)}
L
says "chunks of several lines" 0 '6
10' <<'L'
function sum(t)
  local s = 0
  for _, x in ipairs(t) do
    s = s + x
  end
  return s
end
sum {1,
  2, 3}
local kept = 10
kept
L
says "mistakes" 1 '1
3
msched: attempt to perform arithmetic on a nil value
msched: syntax error near '"'+'"'
msched: input:2: oh
msched: told
msched: 17
msched: resulting string too large
msched: stack overflow
msched: unfinished string near '"'\"x'" <<'L'
nil + 1
x +
1
do
error "oh"
end
error {message = "told"}
error(setmetatable({}, {__tostring = function() return "17" end}))
string.rep("x", 1 << 60)
function f() return f() + 1 end f()
"x
1 + 2
L
says "an input cut short" 1 'msched: input:2: unexpected symbol near <eof>' <<'L'
for i = 1,
L
[ -z "$("$msched" 2>&1 </dev/null)" ] || fail "no input"
printf 'return 5' | "$msched" | grep -qx 5 || fail "a last line without its end"
printf 'os.exit(3)\n' | "$msched"
[ $? -eq 3 ] || fail "os.exit"
printf 'io.read()\nasked\n7\n' | "$msched" | tr '\n' ' ' | grep -qx 'asked 7 ' || fail "io.read reads on"

cat >"$work/schedule.lua" <<'L'
local ms = require "msched"
local A = te.placeholder({8, 8}, "float32", "A")
local B = te.compute({8, 8}, function(i, j) return A[{i, j}] + 1 end, "B")
local sch = ms.schedule(te.func("f", {A, B}))
local block = sch:get_sblock "B"
local i, j = sch:get_loops(block)
L
ask() { { cat "$work/schedule.lua"; printf '%s\n' "$@"; } >"$work/in"; }
ask 'A' 'block' 'i' 'ms.rest' '{i}' '{sch}'
says "our values" 0 'tensor A: float32[8, 8]
block B
loop i
ms.rest
{loop i}
{<schedule>}' <"$work/in"
says "what was meant" 1 'block root
msched: attempt to call a nil value (method '"'get_sbloc'"'); did you mean `get_sblock`?
msched: there is no option `preserve_unit_iter` here; known are loop, factors, preserve_unit_iters, disable_predication, decision; did you mean `preserve_unit_iters`?
msched: attempt to call a nil value (field '"'tunee'"'); did you mean `tune`?
msched: relu: there is no option `nam`; there are name; did you mean `name`?
msched: attempt to call a nil value (method '"'zzzzzzzz'"')
msched: number 1 is no call: kernel:prepare(arguments) gives one' <<'L'
local A = te.placeholder({4, 4}, "float32", "A")
f = te.func("f", {A, ms.ops.sum(A, 1, {name = "total"})})
sch = ms.schedule(f)
sch:get_sblock "root"
sch:get_sbloc "total"
sch:split((sch:get_loops(sch:get_sblock "total")), {2, ms.rest}, {preserve_unit_iter = true})
ms.tunee(f)
error("relu: there is no option `nam`; there are name", 0)
sch:zzzzzzzz()
ms.time_in_turn({f}, 1)
L
says "the last value, pictures, differences, questions" 0 '6
7
f
└ i × 4   80 B, registers
  └ k × 4   20 B, registers
    └ block B
      ├ with T.init()
      │ └ B[v_i] = T.float32(0.0)
      └ B[v_i] = B[v_i] + A[v_i, v_k]
              # with T.sblock("root"):
    -         for i, k in T.grid(4, 4):
    +         for i_0, i_1, k in T.grid(2, 2, 4):
                  with T.sblock("B"):
    -                 v_i, v_k = T.axis.remap("SR", [i, k])
    +                 v_i = T.axis.spatial(4, i_0 * 2 + i_1)
    +                 v_k = T.axis.reduce(4, k)
                      T.reads(A[v_i, v_k])
te.lt(a: msched.expression|number, b: msched.expression|number)  ->  msched.expression
  a < b.
nothing is named "fly"; help() says where to look' <<'L'
2 * 3
_ + 1
local A, k = te.placeholder({4, 4}, "float32", "A"), te.reduce_axis(4, "k")
sch = ms.schedule(te.func("f", {A, te.compute({4}, function(i) return te.sum(A[{i, k}], k) end, "B")}))
sch:draw()
ms.show_diff = true
i0, i1 = sch:split((sch:get_loops(sch:get_sblock "B")), {2, 2})
ms.show_diff = nil
?te.lt
?fly
L
cat >"$work/in" <<L
local A = te.placeholder({64}, "float32", "A")
f = te.func("twice", {A, ms.ops.multiply(A, 2)})
best = ms.tune(f, {trials = 1, target = "native -num-cores=1", db = "$work/session.db"})
best
{best, best.interrupted}
ms.tune(f, {trials = 1, target = "native -num-cores=1", db = "$work/quiet.db", listen = function() end}).seconds > 0
L
"$msched" <"$work/in" >"$work/out" 2>&1 || fail "tuning: $(cat "$work/out")"
[ "$(grep -c "^twice: trial 1 of 1, best .*left, failed: none\(, repeated: [0-9]*\)\{0,1\}\(, other programs ran during [0-9]*\)\{0,1\}$" "$work/out")" = 1 ] || fail "tuning shows no lines, or some where the caller listens: $(cat "$work/out")"
grep -q "^twice: .*s .*([0-9a-f]*) on llvm .*; :schedule(), :build() and :export(path) make it$" "$work/out" || fail "what tuning gives: $(cat "$work/out")"
grep -qx "{<best>}" "$work/out" || fail "what tuning gives, in a table: $(cat "$work/out")"
says "undo and redo" 1 'false
true
msched: nothing was undone that could be done again' <<'L'
local A = te.placeholder({4, 4}, "float32", "A")
sch = ms.schedule(te.func("f", {A, ms.ops.relu(A)}))
i = sch:get_loops(sch:get_sblock "relu"); sch:parallel(i); text = sch:script()
sch:undo()
sch:script() == text
sch:redo()
sch:script() == text
sch:redo()
L
says "undo and redo of inputs" 1 'taken back: i0, i1 = sch:split(i, {2, ms.rest}); sch:parallel(i0); error "oh"
2
done again: i0, i1 = sch:split(i, {2, ms.rest}); sch:parallel(i0); error "oh"
loop i0_0
taken back: sch:undo(); sch:unroll(j)
loop i1
taken back: i0, i1 = sch:split(i, {2, ms.rest}); sch:parallel(i0); error "oh"
taken back: i, j = sch:get_loops(sch:get_sblock "relu")
0
done again: i, j = sch:get_loops(sch:get_sblock "relu")
done again: i0, i1 = sch:split(i, {2, ms.rest}); sch:parallel(i0); error "oh"
4
taken back: for n = 1, 2 do (2 schedules)
4 0
done again: for n = 1, 2 do (2 schedules)
taken back: sch:if_("1 > 0", function(s) s:annotate(j, "wide", 1) error "oh" end)
loop i1
taken back: sch:assert("v >= 2", {v = v}); sch:split(i1, {v, ms.rest})
true
msched: oh
msched: input:3: oh
msched: nothing was taken back that could be done again
msched: oh
msched: there are 5 such inputs
msched: a number of inputs is expected' <<'L'
f = (function(A) return te.func("f", {A, ms.ops.relu(A)}) end)(te.placeholder({8, 8}, "float32", "A"))
sch = ms.schedule(f)
i, j = sch:get_loops(sch:get_sblock "relu")
i0, i1 = sch:split(i, {2, ms.rest}); sch:parallel(i0); error "oh"
undo()
#sch.trace
redo()
i0
sch:undo(); sch:unroll(j)
undo()
j
undo(2)
#sch.trace
redo(2)
#sch.trace
other = ms.schedule(f)
for n = 1, 2 do
  sch:annotate(j, "x" .. n, 1); other:split((other:get_loops(other:get_sblock "relu")), {2, ms.rest})
  error "oh"
end
undo()
#sch.trace .. ' ' .. #other.trace
redo() sch:annotate(j, "y", 1) redo()
sch:if_("1 > 0", function(s) s:annotate(j, "wide", 1) error "oh" end)
undo()
j
v = sch:sample_categorical({1, 2, 4}, {0.98, 0.01, 0.01}); text = sch.trace:text()
sch:assert("v >= 2", {v = v}); sch:split(i1, {v, ms.rest})
undo()
sch.trace:text() == text
undo(99)
undo(-1)
L
ask 'i0, i1 = sch:split(i, {2, ms.rest})' 'print(sch)'
holds "a schedule" 'for i_0, i_1, j in T.grid(2, 4, 8):' <"$work/in"
grep -q "$(printf '\033')" "$work/out" && fail "colour on a pipe"
ask 'sch.trace'
holds "a trace" 'v.b0 = sch:get_sblock("B", "main")' <"$work/in"
ask 'sch:split(i, {2, 4})' 'i'
holds "after a schedule" 'loop i' <"$work/in"
ask 'help(sch)'
holds "help of a schedule" 'Splits a loop by factors' <"$work/in"
grep -q ':copy()' "$work/out" || fail "help of a schedule has no method copy"
grep -q 'read_stride' "$work/out" || fail "help of a schedule has no queries"
ask 'help(sch.split)' 'help "read_stride"' 'help(sch.can_inline)'
holds "help of methods" 'factors                input: an integer or None, one or more' <"$work/in"
grep -q 'preserve_unit_iters    attribute: a boolean (true if left out)' "$work/out" || fail "help lacks a default"
grep -q 'asked of    block:block index:int loop:loop' "$work/out" || fail "help of a query"
for words in 'help()|Tab completes' 'help(ms)|.build(' 'help(te)|.placeholder(' 'help(ms.build)|fast_math' 'help(te.lt)|a < b' \
  'help "tune"|usage: msched tune' 'help(sch.trace)|:with_decision(' 'help(ms.ops)|.softmax(' 'help(sch.copy)|independent of it' \
  'help "array:tolist"|flat list' 'help(A)|tensor' 'help(3)|number' 'help "fly"|nothing is named' 'help(nil)|nil'; do
  ask "${words%%|*}"
  holds "${words%%|*}" "${words#*|}" <"$work/in"
done

# ?name of a method is help of it, by any value's name; ??name says where it is made, also where that is loaded when it
# is called.
for words in '?sch.split|  Splits a loop by factors' '?sch:split|  Splits a loop by factors' '?x.split|  Splits a loop by factors' '?split|  Splits a loop by factors' \
  '?A.nothing|nothing is named "A.nothing"' '?trace.mutate|trace:mutate' '?store.find|store:find(words' '?ops:conv2d|ops:conv2d' '?record|.seconds' \
  '??ms.tune|search/tune.lua:' '??sch:draw|lua/lib/draw.lua:' '??ms.load_array|lua/lib/numpy.lua:' '??te.sum|lua/lib/te.lua:' '??sch.split|in the tables' \
  '??trace:mutate|lua/lib/mutate.lua:' '?targets|-num-cores=N'; do
  ask "${words%%|*}"
  holds "${words%%|*}" "${words#*|}" <"$work/in"
done

# Every member of the module is explained, and nothing is explained that is not there.
cat >"$work/docs.lua" <<'L'
local ms = require "msched"
local docs = ms.load "lua.cli.help.docs"
local known = {}
for _, d in ipairs(docs.list) do
  known[d.owner .. "." .. d.name] = true
  local owner = ({ms = ms, te = ms.te, ops = ms.ops, schedule = ms.schedule_methods, kernel = ms.kernel_methods})[d.owner]
  if owner and not owner[d.name] then print("explained, but not there: " .. d.owner .. "." .. d.name) end
end
for owner, words in pairs(docs.others) do for word in words:gmatch "[%w_]+" do known[owner .. "." .. word] = true end end
for owner, t in pairs {ms = ms, te = ms.te, ops = ms.ops, kernel = ms.kernel_methods} do
  for k in pairs(t) do if not known[owner .. "." .. k] then print("not explained: " .. owner .. "." .. k) end end
end
L
"$msched" "$work/docs.lua" >"$work/out"
[ -s "$work/out" ] && fail "$(cat "$work/out")"

# The annotations for editors parse, declare every function and method that there is, and every class that they name.
"$msched" help --lua >"$work/annotations.lua" || fail "help --lua"
cat >"$work/annotated.lua" <<'L'
local ms = require "msched"
local file <close> = assert(io.open(arg[1]))
local text = file:read "a"
assert(load(text, "@annotations", "t"))
local variables = {["function"] = "func"}
local function declared(owner, mark, name)
  if not text:find("\nfunction " .. (variables[owner] or owner) .. mark .. name .. "(", 1, true) then print("not declared: " .. owner .. mark .. name) end
end
local others = ms.load "lua.cli.help.docs".others
for owner, t in pairs {ms = ms, te = ms.te, ops = ms.ops} do
  for name in pairs(t) do if not (" " .. (others[owner] or "") .. " "):find(" " .. name .. " ", 1, true) then declared(owner, ".", name) end end
end
local types = 0
for key, meta in pairs(debug.getregistry()) do
  local methods = type(key) == "string" and key:find "^msched%." and type(meta) == "table" and meta.__index
  if type(methods) == "function" then methods = select(2, debug.getupvalue(methods, 1)) end
  if type(methods) == "table" then
    types = types + 1
    for name in pairs(methods) do declared(key:sub(8), ":", name) end
  end
end
if types < 10 then print("only " .. types .. " types were found") end
for class in text:gmatch "%f[%w]msched%.(%l+)" do
  if not text:find("---@class msched." .. class .. "%f[%W]") then print("no class msched." .. class) end
end
for _, line in ipairs {"---@overload fun(self: msched.schedule, block: msched.handle, loop: msched.handle, options: {preserve_unit_loops?: boolean, index?: integer})",
                       "---@param factors (integer|msched.handle|lightuserdata)[]", "---@return msched.handle ...", "---@field trace msched.trace"} do
  if not text:find("\n" .. line, 1, true) then print("no line " .. line) end
end
L
"$msched" "$work/annotated.lua" "$work/annotations.lua" >"$work/out" 2>&1
[ -s "$work/out" ] && fail "$(cat "$work/out")"
[ $failed -eq 0 ] && echo "repl: ok"
exit $failed
