#!/bin/sh
# Functions whose shapes, strides and offsets are variables: --dim and ms.specialize make them numbers wherever they
# stand; what is missing or wrong is named, with the remedy. Parameters with strides and offsets are run, replayed and
# called.
# usage: dims.sh MSCHED
set -eu
msched=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "dims.sh: $*: $(head -c 1000 out)" >&2; exit 1; }

# Variables in shapes, a stride, an offset, loops, bindings, predicates, inits, annotations, regions of a nested block,
# a let.
cat >sums.py <<'P'
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def sums(x: T.handle, y: T.handle, r: T.handle, k: T.int32):
    n = T.int64()
    m = T.int64()
    o = T.int64()
    X = T.match_buffer(x, (n, m), "float32", strides=("s", 1), elem_offset=o)
    Y = T.match_buffer(y, (n, m + 1), "float32")
    R = T.match_buffer(r, (n,), "float32")
    for i, j in T.grid(n, (m + 15) // 16 * 16):
        with T.sblock("Y"):
            vi = T.axis.spatial(n, i)
            vj = T.axis.spatial(m, j)
            T.where(j < m)
            Y[vi, vj] = X[vi, vj] + T.Cast("float32", o) * T.Cast("float32", k)
    for i in T.serial(n, annotations={"size": n}):
        with T.sblock("rows"):
            vi = T.axis.spatial(n, i)
            T.reads(Y[vi, 0:m])
            T.writes(R[vi])
            A = T.match_buffer(Y[vi, 0:m], (m,), "float32", offset_factor=1)
            for j in range(m):
                with T.sblock("R"):
                    vj = T.axis.reduce(m, j)
                    T.where(j < m - n // n)
                    with T.init():
                        R[vi] = T.Cast("float32", m)
                    R[vi] = R[vi] + A[vj]
P
all="--dim n=4 --dim m=20 --dim s=24 --dim o=3 --dim k=2"

says() { # status, words, command…
  wanted=$1 words=$2
  shift 2
  status=0
  "$msched" "$@" >out 2>&1 </dev/null || status=$?
  [ "$status" = "$wanted" ] || fail "status $status, not $wanted: $*"
  grep -qF -- "$words" out || fail "no \`$words\`: $*"
  ! grep -qE 'outside its scope|Assertion' out || fail "a variable is lost: $*"
}

# shellcheck disable=SC2086
{
  says 0 "equal to the interpreter's everywhere" run sums.py $all
  says 0 "X = T.match_buffer(x, (T.int64(4), T.int64(20)), strides=(T.int64(24), 1), elem_offset=T.int64(3))" show sums.py $all
  ! grep -q '[^a-z]k: ' out || fail "the parameter is still there"
  says 0 "T.int64(4)" lower sums.py $all --dump-after blocks
  says 0 "get_sblock" space sums.py $all
}
# Some may be left; what is missing is named, all of it, with the option.
for command in run "lower --target llvm"; do
  [ "$command" = run ] && status=0 || status=1
  # shellcheck disable=SC2086
  says $status "extent m of X, stride s of X and offset o of X are variables that no parameter gives" $command sums.py --dim n=4
  grep -qF -- "--dim m=N --dim s=N --dim o=N, or ms.specialize(func, {m = N, s = N, o = N})" out || fail "no remedy: $command"
done
says 1 "extent m of X is a variable that no parameter gives: add a parameter m: T.int64, or give its value: --dim m=N" tune sums.py --dim n=4 --dim s=24 --dim o=0 --db x.db
says 1 "give it: --dim k=N" tune sums.py --dim n=4 --dim m=4 --dim s=24 --dim o=0 --db x.db
# What cannot be.
for command in run lower show space "tune --db x.db"; do
  # shellcheck disable=SC2086
  {
    says 1 "n, m, s, o, k" $command sums.py --dim q=1
    says 1 "it must not be negative" $command sums.py --dim n=-1
    says 1 "99999999999 does not fit in int32" $command sums.py --dim k=99999999999
    says 1 "too large" $command sums.py --dim n=4 --dim m=9000000000000000000
    says 2 "--dim takes NAME=N, as n=64, not \"n\"" $command sums.py --dim n
    says 2 "--dim takes NAME=N, as n=64, not \"n=4.5\"" $command sums.py --dim n=4.5
    says 2 "--dim takes NAME=N, as n=64, not \"=4\"" $command sums.py --dim==4
    [ "$command" = run ] || [ "$command" = lower ] && status=1 || status=2
    says $status "is given twice, as 4 and as 5" $command sums.py --dim n=4 --dim n=5
  }
done
says 2 "--dim" show 0123 --dim n=4
says 1 "division by zero" run sums.py --dim n=0 --dim m=4 --dim s=4 --dim o=0 --dim k=1

# A record of a file's function is found by the same numbers.
cat >rows.py <<'P'
@T.prim_func(s_tir=True)
def rows(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n", "m"), "float32")):
    for i, j in T.grid(n, m):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.Cast("float32", m)
P
says 0 "0 steps" run rows.py --dim n=0 --dim m=4
says 0 "next:" tune rows.py --dim n=16 --dim m=32 --trials 1 --policy replay_trace --db r.db
says 0 "k.c: written" export rows.py --dim n=16 --dim m=32 -o k.c --db r.db
says 0 "differs from the unscheduled function, built: by 0" replay rows.py --dim m=32 --dim n=16 --db r.db
says 1 "no record of rows with n=16 m=33" replay rows.py --dim n=16 --dim m=33 --db r.db
says 2 "--dim is for a file's function" export best --dim n=16 -o k.c --db r.db

# Strides and offsets lay parameters out in memory that is larger than their shape: of inputs and of what is written.
cat >laid.py <<'P'
@T.prim_func(s_tir=True)
def laid(x: T.handle, y: T.handle, s: T.int32, o: T.int32):
    X = T.match_buffer(x, (8, 20), "float32", strides=(s, 1), elem_offset=o)
    Y = T.match_buffer(y, (8, 20), "int16", strides=(1, 9), elem_offset=5)
    for i, j in T.grid(8, 20):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = T.Cast("int16", X[vi, vj]) + T.int16(1)
P
says 0 "equal to the interpreter's everywhere" run laid.py
for layout in "s=24 --dim o=0" "s=20 --dim o=3" "s=0 --dim o=0"; do
  # shellcheck disable=SC2086
  {
    says 0 "equal to the interpreter's everywhere" run laid.py --dim $layout
    says 0 "next:" tune laid.py --dim $layout --trials 2 --db l.db
    says 0 "differs from the unscheduled function, built: by 0" replay laid.py --dim $layout --db l.db
    says 0 "k.h: " export laid.py --dim $layout -o k.h --db l.db
  }
  grep -qF "Y: int16[8, 20], strides 1, 9, from element 5" k.h || fail "the header: $(head -5 k.h)"
  rm l.db
done

cat >memory.lua <<'L'
local ms = require "msched"
local f = ms.specialize(ms.from_script(io.open "laid.py":read "a"), {s = 24, o = 3})
local x, y = f:params()[1], f:params()[2]
assert(x.elements == 3 + 7 * 24 + 20 and y.elements == 5 + 7 + 19 * 9 + 1, x.elements .. " " .. y.elements)
local X, Y = ms.array({x.elements}, "float32", function(p) return p end), ms.array({y.elements}, "int16", -7)
local k = ms.build(f, {reference = f})
k(X, Y)
assert(Y[5 + 2 + 3 * 9] == X[3 + 2 * 24 + 3] + 1 and Y[4] == -7 and Y[5 + 8] == -7)
assert(k:check() == 0)
for _, shape in ipairs {{8, 20}, {x.elements - 1}, {x.elements + 1}, {}} do
  for _, call in ipairs {k, function(...) return k:time(...) end, function(...) return k:prepare(...) end, function(...) return ms.interpret(f, ...) end} do
    local done, message = pcall(call, ms.array(shape), Y)
    assert(not done and tostring(message):find "X", message)
    done, message = pcall(call, X, ms.array(shape, "int16"))
    assert(not done and tostring(message):find "Y", message)
  end
end
local done, message = pcall(k, ms.array {8, 20}, Y)
assert(not done and message:find('its extents, strides and offset reach 191 elements, the array has 160: give its memory, ms.array({191}, "float32")', 1, true), message)
-- An extent that a scalar gives is no longer than the array.
local g = ms.build(ms.from_script [[
@T.prim_func(s_tir=True)
def main(x: T.handle, y: T.handle, n: T.int32):
    X = T.match_buffer(x, (n,), "float32")
    Y = T.match_buffer(y, (n * 2,), "float32")
    for i in range(n):
        with T.sblock("Y"):
            vi = T.axis.spatial(n, i)
            Y[vi * 2] = X[vi]
]])
g(ms.array {4}, ms.array {8}, 4)
for _, bad in ipairs {{4, 8, 5}, {4, 8, 1000000}, {4, 7, 4}, {4, 8, -1}, {4, 8, 3}} do
  done, message = pcall(g, ms.array {bad[1]}, ms.array {bad[2]}, bad[3])
  assert(not done and tostring(message):find "argument", message)
end
print "memory"
L
says 0 "memory" memory.lua

# Functions of files and operators are benchmarked as a suite's are, and scheduled by a trace as a file's are.
says 0 '"task":"matmul_8x8x8"' bench auto laid.py 'ops:matmul(8,8,8)' --dim s=20 --dim o=1 --trials 1 --json
says 0 '"task":"relu_8"' bench ops 'ops:relu(8)' --trials 1 --json
says 0 '"task":"transpose_4x6x8' bench ops 'ops:transpose(4x6x8,order=[3,2,1])' --trials 1 --json
says 1 "no function has a variable q; there are s, o" bench ops laid.py --dim q=1
says 2 "\`none\` is none of its codes or names" bench ops laid.py none
says 1 "\`none\`" bench ops 'suite:ops(none)'
says 1 "column 11: \`(\` is not closed" bench auto 'ops:matmul(8'
says 0 '"workload":"relu_8"' bench policies 'ops:relu(8)' --trials 1 --seeds 1 --policy random --json
says 0 '"workload":"relu_8"' bench search 'ops:relu(8)' --count 8 --trials 0 --json
says 0 "next:" tune 'ops:relu(8)' --trials 1 --db a.db
"$msched" show best --trace --db a.db >a.json
echo "[[], []]" >e.json
says 0 "def relu_8" apply 'ops:relu(8)' a.json
says 0 'T.match_buffer(x, (8, 20), strides=(20, 1), elem_offset=1)' apply laid.py e.json --dim s=20 --dim o=1
says 2 "give a function and a trace" apply 'ops:relu(8)'
says 1 "there is no operator \`none\`" apply ops:none a.json

cat >lua.lua <<'L'
local ms = require "msched"
local f = ms.from_script(io.open "rows.py":read "a":gsub("rows", "main"))
local list, text = f:symbolic()
assert(#list == 2 and list[1].name == "n" and list[1].role == "extent" and list[1].buffer == "A" and list[2].name == "m" and text:find "%-%-dim n=N")
local g = ms.specialize(f, {n = 3, m = 5})
assert(#g:symbolic() == 0 and g:params()[1].shape[2] == 5)
local a, b = ms.array({3, 5}, "float32", 2), ms.array({3, 5}, "float32")
ms.build(g, {reference = g})(a, b)
for _, x in ipairs(b:tolist()) do assert(x == 10, x) end
local half = ms.specialize(f, {m = 5})
assert(#half:symbolic() == 1 and ms.specialize(half, {n = 3}):hash() == g:hash())
for _, bad in ipairs {{n = 1.5}, {n = "4"}, {q = 1}, {1}, {n = -1}, {n = {}}} do
  local done, message = pcall(ms.specialize, f, bad)
  assert(not done and tostring(message):find "lua.lua:%d+: ", tostring(message))
end
assert(ms.specialize(f, {}):hash() == f:hash())
print "equal"
L
says 0 "equal" lua.lua
# Elements of vectors that memory has no place for, which wrote past a buffer's end, are refused; others are run. A
# function that nothing is given to is not tuned, and no store is left.
for lanes in float32x3 int8x6 int4x4 float32x4; do
  sed "s/LANES/$lanes/g" >wide.py <<'P'
# from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def wide(A: T.Buffer((4, 16), "LANES"), B: T.Buffer((4, 16), "LANES")):
    for i, j in T.grid(4, 16):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
P
  words="buffer A: no elements of ${lanes#*x} lanes of this type"
  [ $lanes = float32x4 ] && words="equal to the interpreter's everywhere"
  says 0 "$words" run wide.py
done
# Integers of less than a byte are bytes in memory, extended by their signs, one by one and in vectors.
cat >narrow.py <<'P'
# from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def narrow(A: T.Buffer((64,), "int4"), B: T.Buffer((64,), "uint4"), C: T.Buffer((64,), "int4"), D: T.Buffer((64,), "int32"), E: T.Buffer((64,), "uint4")):
    for i in T.vectorized(64):
        with T.sblock("C"):
            vi = T.axis.spatial(64, i)
            C[vi] = A[vi] + T.Cast("int4", B[vi])
    for i in range(64):
        with T.sblock("D"):
            vi = T.axis.spatial(64, i)
            D[vi] = T.Cast("int32", A[vi]) * T.Cast("int32", B[vi])
    for i in T.vectorized(64):
        with T.sblock("E"):
            vi = T.axis.spatial(64, i)
            E[vi] = B[63 - vi] * B[vi]
P
says 0 "equal to the interpreter's everywhere" run narrow.py
cat >nothing.py <<'P'
# from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def nothing():
    A = T.sblock_alloc_buffer((16,))
    for i in range(16):
        with T.sblock("A"):
            vi = T.axis.spatial(16, i)
            A[vi] = T.float32(1)
P
says 1 "\`nothing\` has no parameters" tune nothing.py --db none.db
[ ! -e none.db ] || fail "a store is left"
echo "dims: ok"
