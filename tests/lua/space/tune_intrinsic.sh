#!/bin/sh
# Tensor intrinsics of a user's rules: found, measured, kept, and replayed where nothing else defines them.
# usage: tune_intrinsic.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rules=$root/tests/lua/space/tune_intrinsic.lua gemm=$root/lua/examples/gemm.lua db=$work/store.db
fail() { echo "tune_intrinsic.sh: $*" >&2; exit 1; }
refused() { # WHAT COMMAND…
  what=$1
  shift
  if "$@" >"$work/out" 2>&1; then fail "accepted: $*"; fi
  grep -q -e "$what" "$work/out" || fail "no \"$what\" in: $(cat "$work/out")"
}
tune() { "$msched" tune "$@" --jobs 2 --json -- 64 64 64; }
best() { "$msched" top -k 1 --db "$1" --json | sed 's/.*"id":"\([0-9a-f]*\)".*/\1/'; }

[ "$("$msched" space "$gemm" --rules "$rules" -- 64 64 64 | grep -c tensorize)" = 1 ] || fail "not one sketch"
tune "$gemm" --rules "$rules" --trials 2 --db "$db" >"$work/tuned"
[ "$(grep -c '"status":"measured"\|"status":"censored"' "$work/tuned")" = 2 ] || fail "not measured: $(cat "$work/tuned")"
id=$(best "$db")
"$msched" show "$id" --db "$db" >"$work/shown"
grep -q 'sch:tensorize(.*"tile"' "$work/shown" && grep -q "T.match_buffer" "$work/shown" || fail "not by the intrinsic"
"$msched" show "$id" --diff --db "$db" | grep -q "T.match_buffer" || fail "no difference of Tensorize"
"$msched" replay "$id" --db "$db" --json | grep -q '"difference":0' || fail "replay differs"
"$msched" export "$id" -o "$work/gemm.s" --db "$db"
[ -s "$work/gemm.s" ] || fail "nothing exported"
"$msched" db check --db "$db" | grep -qx clean || fail "db check"

# To another store, whole; without the intrinsic, each record is refused by its name.
"$msched" db export "$work/all" --db "$db"
grep -q '"intrinsics":{"tile":"' "$work/all" || fail "the export does not say which"
"$msched" db import "$work/all" --db "$work/other.db" | grep -qx "2 records added" || fail "import"
"$msched" db export "$work/again" --db "$work/other.db"
cmp "$work/all" "$work/again" || fail "another store exports otherwise"
"$msched" db compact --db "$work/other.db"
"$msched" replay "$id" --db "$work/other.db" --json | grep -q '"difference":0' || fail "replay of the import differs"
grep -v '"sections"' "$work/all" >"$work/part"
refused "the record's tensor intrinsic .tile. is neither" "$msched" db import "$work/part" --db "$work/part.db"

# The same from a file of --intrinsics: for tuning, of TVM's records, of records that come without it.
printf '%b' "$(sed -n '/"sections":/{s/^.*"sections":"\(.*\)"}$/\1/; s/\\"/"/g; p}' "$work/all")" >"$work/given.py"
{ echo 'local ms = require "msched"' && sed -n '/^-- Alone/,$p' "$rules"; } >"$work/rest.lua"
sed '/^-- Alone/,$d; s/impl:unroll(i)/impl:unroll(k)/' "$rules" >"$work/wrong.lua"
sections=$(grep -o '"intrinsics":{"tile":"[0-9a-f]*"' "$work/all" | head -n 1)
refused "there is no tensor intrinsic .tile." "$msched" space "$gemm" --rules "$work/rest.lua" -- 64 64 64
"$msched" space "$gemm" --rules "$work/rest.lua" --intrinsics "$work/given.py" -- 64 64 64 | grep -q tensorize || fail "no sketch"
tune "$gemm" --rules "$work/rest.lua" --intrinsics "$work/given.py" --trials 1 --db "$work/given.db" >"$work/tuned"
grep -q '"status":"measured"\|"status":"censored"' "$work/tuned" || fail "not measured with --intrinsics: $(cat "$work/tuned")"
"$msched" replay "$(best "$work/given.db")" --db "$work/given.db" --json | grep -q '"difference":0' || fail "replay of what was given"
"$msched" db export - --db "$work/given.db" | grep -qF "$sections" || fail "another intrinsic than that of the rules"
"$msched" db export --tvm "$work/tvm" --db "$db" | grep -q "^0 records of 1 function written, 2 left out" || fail "TVM cannot tensorize so"
"$msched" db export --tvm "$work/tvm" --db "$db" --intrinsics "$work/given.py" >"$work/out"
grep -q "^2 records of 1 function written" "$work/out" || grep -q "^1 record of 1 function written, 1 left" "$work/out" || fail "$(cat "$work/out")"
refused "there is no tensor intrinsic .tile." "$msched" db import "$work/tvm" --db "$work/tvm.db"
"$msched" db import "$work/tvm" --db "$work/tvm.db" --intrinsics "$work/given.py" | grep -q "records added" || fail "import of TVM's"
"$msched" db export - --db "$work/tvm.db" | grep -qF "$sections" || fail "not kept with TVM's records"
"$msched" replay "$(best "$work/tvm.db")" --db "$work/tvm.db" --json | grep -q '"difference":0' || fail "replay of TVM's"
refused "is neither" "$msched" db import "$work/part" --db "$work/part.db" --intrinsics "$work/wrong.lua"
"$msched" db import "$work/part" --db "$work/part.db" --intrinsics "$work/given.py" | grep -qx "2 records added" || fail "import with it"
"$msched" db export "$work/again" --db "$work/part.db"
cmp "$work/all" "$work/again" || fail "a store that was given it exports otherwise"
"$msched" show "$id" --db "$db" --intrinsics "$work/given.py" | cmp - "$work/shown" || fail "shown otherwise"
for command in show replay; do
  refused "there is an intrinsic .tile. already, which is another" "$msched" "$command" "$id" --db "$db" --intrinsics "$work/wrong.lua"
done
refused "wrong.lua: there is an intrinsic .tile. already" tune "$gemm" --intrinsics "$work/given.py" --intrinsics "$work/wrong.lua" --db "$db"

# Tuned on without the rules, from what the store has; with rules that define another of the name, not from it.
tune "$gemm" --trials 1 --db "$db" | grep -q '"known":2' || fail "the records are not known"
sed 's/impl:unroll(i)/impl:unroll(k)/; s/4, 16, 4}/4, 16, 4 }/' "$rules" >"$work/rules.lua"
tune "$gemm" --rules "$work/rules.lua" --trials 1 --db "$db" >"$work/tuned"
grep -q '"status":"measured"\|"status":"censored"' "$work/tuned" || fail "not tuned on: $(cat "$work/tuned")"
[ "$("$msched" db export - --db "$db" | grep -c '"sections"')" = 2 ] || fail "not two intrinsics of one name"
"$msched" replay "$id" --db "$db" --json | grep -q '"difference":0' || fail "the first one's replay differs"
"$msched" db check --db "$db" | grep -qx clean || fail "db check"

# A script that defines another of the name than its rules do.
cat >"$work/script.lua" <<L
local ms = require "msched"
local gemm = loadfile "$gemm"(64, 64, 64)[1]
local text = tostring(gemm)
ms.intrinsic {name = "tile", desc = text, impl = text}
ms.tune(gemm, {files = {"$rules"}, trials = 1, db = "$work/script.db"})
L
refused "there is an intrinsic .tile. already, which is another" "$msched" "$work/script.lua"
echo "intrinsics of rules: ok"
