#!/bin/sh
# What measuring refuses, buffers that reach before their memory, that are too large, or more than can be counted: one
# line, no trial, a store that is whole, twice; extents with many digits keep no policy from starting.
# usage: strides.sh MSCHED
set -eu
msched=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "strides.sh: $*" >&2; exit 1; }
function() { # the arguments of A's match_buffer
  cat >f.py <<E2
from tvm.script import tir as T
@T.prim_func
def main(a: T.handle, b: T.handle):
    A = T.match_buffer(a, (8, 8), $1)
    B = T.match_buffer(b, (8, 8))
    for i, j in T.grid(8, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
E2
}
refused() { # words, command…
  words=$1
  shift
  got=0
  timeout 60 "$msched" "$@" >out 2>err </dev/null || got=$?
  [ $got = 1 ] && [ "$(wc -l <err)" = 1 ] && grep -qF -- "$words" err || fail "$*: status $got, no \`$words\` in: $(cat err)"
}
before='parameter A is read or written before its memory begins: a stride or its offset is negative'
for each in "strides=(-8, 1)|$before" "strides=(-800000, 1000000)|$before" "elem_offset=-8|$before" \
  "strides=(4611686018427387904, 1)|parameter A has more elements than can be counted" \
  "elem_offset=1000000000000|parameter A has 1000000000064 elements, more than the 268435456 that are run"; do
  function "${each%|*}"
  refused "${each#*|}" run f.py
done
for each in "strides=(-800000, 1000000)|$before" "elem_offset=1000000000000|parameter A has 1000000000064 elements"; do
  function "${each%|*}"
  refused "${each#*|}" tune f.py --trials 1 --db s.db
done
"$msched" db check --db s.db | grep -qx clean || fail "db check"
! "$msched" top --db s.db | grep -E "^ +1 " || fail "a record of what was refused"
"$msched" report -o s.html --db s.db | grep -q "0 records" || fail "report"
# A layout that goes backwards from its offset is within its memory.
function "strides=(-8, 1), elem_offset=56"
"$msched" tune f.py --trials 1 --db s.db >out 2>&1 || fail "backwards: $(cat out)"
# Divisors of 2^62 are not looked for one by one.
cat >f.py <<E2
from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((2147483648,), "int8"), B: T.Buffer((1,), "int8")):
    for i, j in T.grid(T.int64(2147483648), T.int64(2147483648)):
        with T.sblock("B"):
            vi, vj = T.axis.remap("RR", [i, j])
            with T.init():
                B[0] = T.int8(0)
            B[0] = B[0] + A[vi]
E2
refused "parameter A has 2147483648 elements" tune f.py --trials 1 --db s.db
echo "strides: ok"
