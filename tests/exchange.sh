#!/bin/sh
# Records that come from TVM and go there.  usage: exchange.sh MSCHED
set -eu
msched=$1
here=$(dirname "$0")
data=$here/exchange
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/store.db
fail() { echo "exchange.sh: $*" >&2; exit 1; }
workloads=$here/../lua/bench/data/workloads
gmm="$workloads/GMM.py"

import() { # status, words of the output, words of the message, arguments
  status=$1 words=$2 message=$3
  shift 3
  set +e
  timeout 60 "$msched" db import "$@" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  set -e
  [ "$got" = "$status" ] || fail "status $got for $status: db import $*: $(cat "$work/err")"
  [ -z "$words" ] || grep -qF -- "$words" "$work/out" || fail "no \`$words\` in: $(cat "$work/out"), of: db import $*"
  [ -z "$message" ] || grep -qF -- "$message" "$work/err" || fail "no \`$message\` in: $(cat "$work/err"), of: db import $*"
}

# ---- In: each is listed, shown and replayed
for name in GMM CBR SFM; do
  lines=$(wc -l <"$data/$name.records.jsonl")
  import 0 "$lines records added" "" "$data/$name.records.jsonl" --workload "$workloads/$name.py" --target x86-64-v3 --db "$db"
done
"$msched" top --db "$db" --json >"$work/top"
[ "$(wc -l <"$work/top")" = 15 ] || fail "top: $(wc -l <"$work/top") records for 15"
grep -c '"seconds":0.0001,.*"target":"llvm -mcpu=x86-64-v3' "$work/top" | grep -qx 3 || fail "the fastest of each: $(cat "$work/top")"
sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/' "$work/top" >"$work/ids"
while read -r id; do "$msched" show "$id" --db "$db" | grep -q "by TVM" || fail "show $id"; done <"$work/ids"
for id in $(sed -n '1p;$p' "$work/ids"); do
  "$msched" replay "$id" --db "$db" | grep -qE "built: by (0|[0-9.]*e-0[89]), everywhere" || fail "replay $id"
done
"$msched" db check --db "$db" | grep -qx clean || fail "db check"

# Records are found again, and not kept twice; a slower time does not replace a faster one.
sed 's/\[0.0001\]/[7.5]/' "$data/GMM.records.jsonl" >"$work/slower"
import 0 "3 records added" "" "$work/slower" --workload "$gmm" --target x86-64-v3 --db "$db"
"$msched" top --db "$db" --json | cmp - "$work/top" || fail "imported again"

# ---- Out, and in again: the same records, of functions that are all named main
"$msched" db export --tvm "$work/tvm" --db "$db" | grep -q "15 records of 3 functions written, 0 left out" || fail "export"
import 0 "15 records added" "" "$work/tvm" --db "$work/again.db"
"$msched" top --db "$work/again.db" --json | sed 's/"when":[0-9]*//' >"$work/again"
sed 's/"when":[0-9]*//' "$work/top" | cmp - "$work/again" || fail "records differ after going out and in"
"$msched" db export --tvm "$work/twice" --db "$work/again.db" >"$work/out"
diff -r "$work/tvm" "$work/twice" || fail "written differently"
grep -q '"num-cores":' "$work/tvm/database_tuning_record.json" || fail "no target in what is written"

# A file of records finds the functions beside it; messages say what is missing.
import 0 "15 records added" "" "$work/tvm/database_tuning_record.json" --db "$work/beside.db"
mkdir "$work/bare" "$work/none"
cp "$data/GMM.records.jsonl" "$work/bare/database_tuning_record.json"
import 1 "" "there is neither database_workload.json nor workload_0.py, and no --workload is given" "$work/bare" --db "$work/beside.db"
import 1 "" "the folder has neither database_tuning_record.json nor database_workload.json" "$work/none" --db "$work/beside.db"
import 0 "3 records added" "" "$work/bare" --workload "$gmm" --target x86-64-v3 --db "$work/beside.db"

# TVM's own folder, functions as graphs of nodes: whole, by a file of it, functions alone, or for records elsewhere.
tvm=$here/tvm/store
import 0 "8 records added of 4 functions" "" "$tvm" --db "$work/tvm.db"
"$msched" top --db "$work/tvm.db" --json >"$work/listed"
[ "$(wc -l <"$work/listed")" = 8 ] || fail "top: $(wc -l <"$work/listed") records for 8"
"$msched" replay "$(sed -n '1s/.*"id":"\([0-9a-f]*\)".*/\1/p' "$work/listed")" --db "$work/tvm.db" |
  grep -qE "built: by (0|[0-9.]*e-0[6-9]), everywhere" || fail "replay of a function that was a graph"
"$msched" db check --db "$work/tvm.db" | grep -qx clean || fail "db check of TVM's folder"
import 0 "8 records added of 4 functions" "" "$tvm/database_tuning_record.json" --db "$work/tvm.db"
import 0 "8 records added of 4 functions" "" "$tvm/database_workload.json" --db "$work/tvm.db"
"$msched" top --db "$work/tvm.db" --json | cmp - "$work/listed" || fail "TVM's folder, imported again"
cp "$tvm/database_workload.json" "$work/none"
import 0 "0 records added of 4 functions" "" "$work/none" --db "$work/functions.db"
[ "$("$msched" db list --db "$work/functions.db" | wc -l)" = 4 ] || fail "functions alone"
cp "$tvm/database_tuning_record.json" "$work/elsewhere"
import 0 "8 records added" "" "$work/elsewhere" --workload "$tvm/database_workload.json" --db "$work/tvm.db"
for name in matmul softmax conv1d matmul_bias_relu; do
  echo "--workload $here/random/workloads/$name.py"
done | xargs "$msched" db import "$work/elsewhere" --db "$work/scripts.db" >"$work/out" || fail "the same by TVMScript"
same() { "$msched" top --db "$1" --json | sed 's/"when":[0-9]*//'; }
same "$work/tvm.db" >"$work/graphs"
same "$work/scripts.db" | cmp - "$work/graphs" || fail "functions as graphs and as TVMScript differ"

# The same folder, as we write it: functions as graphs, and as TVMScript beside.
"$msched" db export --tvm "$work/ours" --db "$work/tvm.db" | grep -q "8 records of 4 functions written, 0 left out" || fail "export of TVM's folder"
[ "$(wc -l <"$work/ours/database_workload.json")" = 4 ] && [ -s "$work/ours/workload_3.py" ] || fail "not every function is written"
import 0 "8 records added of 4 functions" "" "$work/ours" --db "$work/ours.db"
same "$work/ours.db" | cmp - "$work/graphs" || fail "records differ after going out as TVM's folder"
rm "$work/ours/database_workload.json"
import 0 "8 records added of 4 functions" "" "$work/ours" --db "$work/beside_ours.db"
same "$work/beside_ours.db" | cmp - "$work/graphs" || fail "records differ by the TVMScript beside"
cat >"$work/lacks.lua" <<END
local ms = require "msched"
ms.store("$work/lacks.db"):put_workload(ms.from_script [[
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 4), "float32", axis_separators=[1])):
    A[0, 0] = T.float32(1.0)
]])
END
"$msched" "$work/lacks.lua"
"$msched" db export --tvm "$work/lacks" --db "$work/lacks.db" 2>"$work/err" | grep -q "0 records of 0 functions written" || fail "not left out"
grep -q "left out: TVM's graphs of nodes have no separators" "$work/err" || fail "no reason: $(cat "$work/err")"

# A function that is spoiled takes its records with it; the others are kept.
mkdir "$work/cut"
cp "$tvm/database_tuning_record.json" "$work/cut"
for line in '["1","4JgAAAAAAAB7CiAg"]' '["1","*"]' '["1"]' '[1,2]' '["1","{\"root_index\":0,\"nodes\":[{}]}"]' '["1","' '["1",""]'; do
  { printf '%s\n' "$line" && sed 1d "$tvm/database_workload.json"; } >"$work/cut/database_workload.json"
  rm -f "$work/cut.db"
  import 1 "6 records added of 3 functions, 3 lines refused" "msched db: $work/cut/database_workload.json:1: " "$work/cut" --db "$work/cut.db"
  grep -q "database_tuning_record.json:2: workload 0, which the record is of, cannot be read" "$work/err" || fail "no reason: $(cat "$work/err")"
  "$msched" db check --db "$work/cut.db" | grep -qx clean || fail "check after: $line"
done

# What TVM lacks stays here.
cat >"$work/add.py" <<'END'
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1.0)
END
line() { printf '[0,[[[["GetBlock",[],["B","main"],["b0"]],["GetLoops",["b0"],[],["l1"]]%s],[%s]],%s,null,null]]\n' "$1" "$2" "$3"; }
tile=',["SamplePerfectTile",["l1"],[2,16],["v2","v3"]],["Split",["l1","v2","v3"],[1],["l4","l5"]]'
line "$tile,[\"Assert\",[],[\"v2 <= 4\"],[]]" '[2,[4,2]]' '[1]' >"$work/assert"
line "$tile" '[2,[2,4]]' '[2]' >>"$work/assert"
line "$tile" '[2,[8,1]]' '[1e10]' >>"$work/assert"
import 0 "3 records added" "" "$work/assert" --workload "$work/add.py" --db "$work/assert.db"
"$msched" top --db "$work/assert.db" | grep -q "failed: the record has no time" || fail "a failure is not listed"
"$msched" db export --tvm "$work/some" --db "$work/assert.db" | grep -q "2 records of 1 function written, 1 left out" || fail "left out"
grep -q '\[10000000000.0\]' "$work/some/database_tuning_record.json" || fail "a failure is not written as one"
online='["ComputeInline",["b0"],[],[]],["GetSBlock",[],["m","main"],["b1"]],["GetSBlock",[],["s","main"],["b2"]],["OnlineSoftmax",["b1","b2"],[],[]]'
printf '[0,[[[["GetSBlock",[],["e","main"],["b0"]],%s],[]],[1],null,null]]\n' "$online" >"$work/online"
import 0 "1 record added" "" "$work/online" --workload "$here/random/workloads/softmax.py" --db "$work/online.db"
"$msched" db export --tvm "$work/none" --db "$work/online.db" | grep -q "0 records of 1 function written, 1 left out" || fail "left out: online softmax"

# ---- A decision that does not fit is repaired, as TVM does
line "$tile" '[2,[3,4]]' '[1]' >"$work/repair"
import 0 "1 record added" "" "$work/repair" --workload "$work/add.py" --db "$work/repair.db"
"$msched" show "$("$msched" top --db "$work/repair.db" --json | sed 's/.*"id":"\([0-9a-f]*\)".*/\1/')" --trace --db "$work/repair.db" |
  grep -q '\[\[2,\[2,4\]\]\]' || fail "not repaired"

# ---- What cannot be taken: its line, the reason, and the others are kept
spoiled() { # words of the message, the line
  { line "$tile" '[2,[4,2]]' '[1]'; printf '%s\n' "$2"; line "$tile" '[2,[2,4]]' '[2]'; } >"$work/spoiled"
  rm -f "$work/spoiled.db"
  import 1 "2 records added, 1 line refused" "msched db: $work/spoiled:2: " "$work/spoiled" --workload "$work/add.py" --db "$work/spoiled.db"
  grep -qF -- "$1" "$work/err" || fail "no \`$1\` in: $(cat "$work/err"), of: $2"
  [ "$(grep -c "^msched" "$work/err")" = 1 ] || fail "not one message: $(cat "$work/err")"
  "$msched" db check --db "$work/spoiled.db" | grep -qx clean || fail "check after: $2"
}
whole=$(line "$tile" '[2,[4,2]]' '[1]')
at=1
while [ $at -lt ${#whole} ]; do
  spoiled "spoiled:2: " "$(printf '%s' "$whole" | head -c $at)"
  at=$((at + 17))
done
spoiled "no instruction \"Fly\"" "$(line ',["Fly",["l1"],[],[]]' '' '[1]')"
spoiled "instruction 2: Split" "$(line ',["Split",["l9",2,4],[1],["l2","l3"]]' '' '[1]')"
spoiled "instruction 2, Split: the factors make 6 iterations; this loop has 8" "$(line ',["Split",["l1",2,3],[1],["l2","l3"]]' '' '[1]')"
spoiled "instruction 0, GetSBlock" "$(line "$tile" '[2,[4,2]]' '[1]' | sed 's/"B"/"C"/')"
spoiled "instruction 2: SamplePerfectTile has no decision" "$(line "$tile" '' '[1]')"
spoiled "instruction 2: SamplePerfectTile has no decision" "$(line "$tile" '[2,[4,2,1]]' '[1]')"
spoiled "above 0" "$(line "$tile" '[2,[4,2]]' '[-1]')"
spoiled "above 0" "$(line "$tile" '[2,[4,2]]' '["1"]')"
spoiled "overflow" "$(line "$tile" '[2,[4,2]]' '[1e400]')"
spoiled "too big" "$(line ',["Split",["l1",99999999999999999999,4],[1],["l2","l3"]]' '' '[1]')"
spoiled "workload 7, and only 1 given" "$(printf '%s' "$whole" | sed 's/^.0,/[7,/')"
spoiled "argument 1 has another type or shape" "$(printf '%s' "$whole" | sed 's/null]]$/[["TENSOR","float32",[8]],["TENSOR","float32",[9]]]]]/')"
spoiled "of a function of 1 arguments" "$(printf '%s' "$whole" | sed 's/null]]$/[["TENSOR","float32",[8]]]]]/')"
spoiled "maximum parsing depth" "$(head -c 100000 /dev/zero | tr '\0' '[')"
spoiled "a value is nested too deep" "$(line ",[\"Annotate\",[\"l1\",$(head -c 100 /dev/zero | tr '\0' '[')1$(head -c 100 /dev/zero | tr '\0' ']')],[\"a\"],[]]" '' '[1]')"
printf '[0,[[[[\0]]]]]\n' >"$work/zero"
import 1 "0 records added, 1 line refused" "zero:1: a byte of the line is zero" "$work/zero" --workload "$work/add.py" --db "$work/spoiled.db"

# Many are counted; a workload is needed, and one that cannot be read ends it.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25; do echo "[$i"; done >"$work/many"
import 1 "0 records added, 25 lines refused" "5 lines more refused" "$work/many" --workload "$work/add.py" --db "$work/spoiled.db"
import 1 "0 records added, 3 lines refused" "workload 0, and 0 given" "$data/GMM.records.jsonl" --db "$work/spoiled.db"
import 1 "" "none.py: No such file" "$data/GMM.records.jsonl" --workload "$work/none.py" --db "$work/spoiled.db"
import 1 "" "toaster" "$data/GMM.records.jsonl" --workload "$gmm" --target toaster --db "$work/spoiled.db"
"$msched" db check --db "$work/spoiled.db" | grep -qx clean || fail "check at the end"

# ---- Functions in the older dialect and in today's are one function, and one workload of a store
echo '[[],[]]' >"$work/empty"
for old in "$data"/old-*.py; do
  new=$here/random/workloads/${old##*/old-}
  "$msched" apply "$old" "$work/empty" >"$work/old.py"
  "$msched" apply "$new" "$work/empty" | cmp - "$work/old.py" || fail "$old is another function"
done

# ---- Traces in each form, from a file and from standard input, to a file and to standard output: the same bytes again,
# as tools/round_trips has it of every one
for trace in "$here"/../lua/bench/data/*/SFM.jsonl "$here"/../lua/bench/data/*/CBR*.jsonl; do
  head -n 1 "$trace" | "$msched" convert - >"$work/1.json"
  "$msched" convert - --to binary <"$work/1.json" >"$work/1.binary"
  "$msched" convert "$work/1.binary" -o "$work/1.lua"
  "$msched" convert "$work/1.lua" --to=binary | cmp - "$work/1.binary" || fail "$trace: from Lua text to binary"
  "$msched" convert "$work/1.json" --to lua | cmp - "$work/1.lua" || fail "$trace: from JSON to Lua text"
  "$msched" convert - --output "$work/2.json" <"$work/1.lua"
  cmp "$work/1.json" "$work/2.json" || fail "$trace: from Lua text to JSON"
done

# ---- Tuning measures what came from TVM first.
"$msched" db import "$work/assert" --workload "$work/add.py" --db "$work/tuned.db" >"$work/out"
"$msched" tune "$work/add.py" --trials 2 --policy replay_trace --db "$work/tuned.db" --json >"$work/out"
grep -c '"event":"trial"' "$work/out" | grep -qv '^0' || fail "tune: $(cat "$work/out")"
grep '"event":"trial"' "$work/out" | head -n 1 | grep -q '"candidate":0[,}]' || fail "not first: $(cat "$work/out")"
