#!/bin/sh
# Differences and explanations of a record's instructions, as `show` prints them, and what it refuses.
# usage: explain.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/store.db
fail() { echo "explain.sh: $*" >&2; exit 1; }
show() { "$msched" show "$id" --db "$db" "$@"; }
prints() { # OPTIONS…; the expected output on standard input
  cat >"$work/expected"
  show "$@" >"$work/out"
  diff -u "$work/expected" "$work/out" || fail "show $* prints other lines"
}
refused() { # STATUS WHAT OPTIONS…
  status=$1 what=$2 got=0
  shift 2
  show "$@" >"$work/out" 2>"$work/err" || got=$?
  [ "$got" = "$status" ] && grep -q -e "$what" "$work/err" || fail "show $*: $got, $(cat "$work/err")"
  [ ! -s "$work/out" ] || fail "show $* prints before it refuses"
}

"$msched" "$root/tests/lua/program/explain.lua" "$db"
id=$("$msched" top --db "$db" --json | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/')

prints --diff <<'END'
  0  v.b0 = sch:get_sblock("B", "main")
  1  v.l1, v.l2 = sch:get_loops(v.b0)
  2  v.v3, v.v4 = sch:sample_perfect_tile(v.l1, 2, 16, {draw = 0, decision = {4, 2}})
  3  sch:assert("v3 == 4")
  4  v.l5, v.l6 = sch:split(v.l1, {v.v3, v.v4}, true, false)
              # with T.sblock("root"):
    -         for i, j in T.grid(8, 8):
    +         for i_0, i_1, j in T.grid(4, 2, 8):
                  with T.sblock("B"):
    -                 v_i, v_j = T.axis.remap("SS", [i, j])
    +                 v_i = T.axis.spatial(8, i_0 * 2 + i_1)
    +                 v_j = T.axis.spatial(8, j)
                      T.reads(A[v_i, v_j])
  5  sch:if_("v3 > 2")
  6  sch:vectorize(v.l2)
  7  sch:else_()
  8  sch:unroll(v.l2)
  9  sch:end_()
              # with T.sblock("root"):
    -         for i_0, i_1, j in T.grid(4, 2, 8):
    -             with T.sblock("B"):
    -                 v_i = T.axis.spatial(8, i_0 * 2 + i_1)
    -                 v_j = T.axis.spatial(8, j)
    -                 T.reads(A[v_i, v_j])
    -                 T.writes(B[v_i, v_j])
    -                 B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)
    +         for i_0, i_1 in T.grid(4, 2):
    +             for j in T.vectorized(8):
    +                 with T.sblock("B"):
    +                     v_i = T.axis.spatial(8, i_0 * 2 + i_1)
    +                     v_j = T.axis.spatial(8, j)
    +                     T.reads(A[v_i, v_j])
    +                     T.writes(B[v_i, v_j])
    +                     B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)
 10  v.v7 = sch:for_(2)
 11  sch:if_("v7 == 1")
 12  sch:annotate(v.l6, "round", v.v7)
 13  sch:end_()
 14  sch:end_()
              # with T.sblock("root"):
    -         for i_0, i_1 in T.grid(4, 2):
    -             for j in T.vectorized(8):
    -                 with T.sblock("B"):
    -                     v_i = T.axis.spatial(8, i_0 * 2 + i_1)
    -                     v_j = T.axis.spatial(8, j)
    -                     T.reads(A[v_i, v_j])
    -                     T.writes(B[v_i, v_j])
    -                     B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)
    +         for i_0 in range(4):
    +             for i_1 in T.serial(2, annotations={"round": 1}):
    +                 for j in T.vectorized(8):
    +                     with T.sblock("B"):
    +                         v_i = T.axis.spatial(8, i_0 * 2 + i_1)
    +                         v_j = T.axis.spatial(8, j)
    +                         T.reads(A[v_i, v_j])
    +                         T.writes(B[v_i, v_j])
    +                         B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)
 15  sch:parallel(v.l5)
              # with T.sblock("root"):
    -         for i_0 in range(4):
    +         for i_0 in T.parallel(4):
                  for i_1 in T.serial(2, annotations={"round": 1}):
END
prints --explain 2 <<'END'
  2  v.v3, v.v4 = sch:sample_perfect_tile(v.l1, 2, 16, {draw = 0, decision = {4, 2}})
     leaves the module as it is
     used by: 3, 4, 5; through them by: 12, 15
END
prints --explain 5 <<'END'
  5  sch:if_("v3 > 2")
  6  sch:vectorize(v.l2)
  7  sch:else_()
  8  sch:unroll(v.l2)
  9  sch:end_()
     takes away 7 lines, adds 8
     used by: none; through them by: none
              # with T.sblock("root"):
    -         for i_0, i_1, j in T.grid(4, 2, 8):
    -             with T.sblock("B"):
    -                 v_i = T.axis.spatial(8, i_0 * 2 + i_1)
    -                 v_j = T.axis.spatial(8, j)
    -                 T.reads(A[v_i, v_j])
    -                 T.writes(B[v_i, v_j])
    -                 B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)
    +         for i_0, i_1 in T.grid(4, 2):
    +             for j in T.vectorized(8):
    +                 with T.sblock("B"):
    +                     v_i = T.axis.spatial(8, i_0 * 2 + i_1)
    +                     v_j = T.axis.spatial(8, j)
    +                     T.reads(A[v_i, v_j])
    +                     T.writes(B[v_i, v_j])
    +                     B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)
END
prints --explain 12 <<'END'
 10  v.v7 = sch:for_(2)
 11  sch:if_("v7 == 1")
 12  sch:annotate(v.l6, "round", v.v7)
 13  sch:end_()
 14  sch:end_()
     takes away 8 lines, adds 9
     used by: none; through them by: none
              # with T.sblock("root"):
    -         for i_0, i_1 in T.grid(4, 2):
    -             for j in T.vectorized(8):
    -                 with T.sblock("B"):
    -                     v_i = T.axis.spatial(8, i_0 * 2 + i_1)
    -                     v_j = T.axis.spatial(8, j)
    -                     T.reads(A[v_i, v_j])
    -                     T.writes(B[v_i, v_j])
    -                     B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)
    +         for i_0 in range(4):
    +             for i_1 in T.serial(2, annotations={"round": 1}):
    +                 for j in T.vectorized(8):
    +                     with T.sblock("B"):
    +                         v_i = T.axis.spatial(8, i_0 * 2 + i_1)
    +                         v_j = T.axis.spatial(8, j)
    +                         T.reads(A[v_i, v_j])
    +                         T.writes(B[v_i, v_j])
    +                         B[v_i, v_j] = A[v_i, v_j] * T.float32(2.0)
END
prints --explain 4 --json <<'END'
{"changes":["-        for i, j in T.grid(8, 8):","+        for i_0, i_1, j in T.grid(4, 2, 8):","-                v_i, v_j = T.axis.remap(\"SS\", [i, j])","+                v_i = T.axis.spatial(8, i_0 * 2 + i_1)","+                v_j = T.axis.spatial(8, j)"],"first":4,"instructions":["v.l5, v.l6 = sch:split(v.l1, {v.v3, v.v4}, true, false)"],"last":4,"through_them_by":[],"used_by":[12,15]}
END

# The lines of --diff --json are its steps, in order and without a gap.
show --diff --json | sed 's/.*"first":\([0-9]*\).*"last":\([0-9]*\).*/\1 \2/' | awk '$1 != next_ { exit 1 } { next_ = $2 + 1 } END { exit next_ != 16 }' ||
  fail "the steps leave gaps"
refused 1 "there is no instruction 16: the trace has 16, from 0" --explain 16
refused 1 "there is no instruction 16" --explain 16 --json
refused 2 "takes a whole number" --explain -1
refused 2 "takes a whole number" --explain two
refused 2 "takes a value" --explain
refused 2 "goes with neither --diff nor --explain" --diff --trace
refused 2 "goes with --trace" --lua
refused 2 "one record's ID is expected" "$id"

# By hand: the same; a number that is none is refused; what was undone is not shown.
cat >"$work/hand.lua" <<'END'
local ms = require "msched"
local A = ms.te.placeholder({4}, "float32", "A")
local s = ms.schedule(ms.te.func("f", {A, ms.te.compute({4}, function(i) return A[{i}] + 1.0 end, "B")}))
s:vectorize((s:get_loops(s:get_sblock "B")))
s:explain(2)
for _, wrong in ipairs {3, -1, 1.5, "2"} do
  local ok, message = pcall(s.explain, s, wrong)
  assert(not ok and (message:find "there is no instruction" or message:find "the number of an instruction is expected"), message)
end
s:undo()
s:explain()
END
"$msched" "$work/hand.lua" >"$work/out"
diff -u - "$work/out" <<'END' || fail "a schedule explains otherwise"
  2  sch:vectorize(v.l1)
     takes away 1 line, adds 1
     used by: none; through them by: none
              # with T.sblock("root"):
    -         for i in range(4):
    +         for i in T.vectorized(4):
                  with T.sblock("B"):
  0  v.b0 = sch:get_sblock("B", "main")
     leaves the module as it is
     used by: 1; through them by: none
  1  v.l1 = sch:get_loops(v.b0)
     leaves the module as it is
     used by: none; through them by: none
END
echo "explain: ok"
