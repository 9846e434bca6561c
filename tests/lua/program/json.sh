#!/bin/sh
# The objects of --json: the fields that are printed are those that the man page documents.  usage: json.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
db=$work/store.db
gemm=$root/lua/examples/gemm.lua

# The keys of the objects on standard input, one a line each, those inside other values left out.
keys() {
  awk '{
    depth = 0
    for (i = 1; i <= length($0); i++) {
      c = substr($0, i, 1)
      if (c == "\"") {
        text = ""
        for (i++; (c = substr($0, i, 1)) != "\""; i++) { text = text c; if (c == "\\") i++ }
        if (depth == 1 && substr($0, i + 1, 1) == ":") print text
      } else if (c == "{" || c == "[") depth++
      else if (c == "}" || c == "]") depth--
    }
  }' | sort -u
}
# What the page documents of an object.
fields() {
  sed 's/\\-/-/g' "$root/lua/msched.1" | awk -v object="$1" '
    /^\.SH/ { within = /JSON OBJECTS/ }
    /^\.RS/ { depth++ }
    /^\.RE/ { depth-- }
    heads && !depth { mine = $0 == ".B " object }
    heads && depth == 1 && within && mine { for (i = 2; i <= NF; i++) print $i }
    { heads = /^\.TP/ }' | sort -u
}
wrong() { echo "json.sh: $*" | tee -a "$work/wrong" >&2; } # in a file: the ends of pipes are shells of their own
agree() { # the object, fields that need not be there, the lines on standard input
  keys >"$work/keys"
  fields "$1" >"$work/fields"
  [ -s "$work/keys" ] && [ -s "$work/fields" ] || { wrong "$1: nothing is printed, or documented"; }
  for key in $(comm -23 "$work/keys" "$work/fields"); do wrong "$1: $key is not documented"; done
  for field in $(comm -13 "$work/keys" "$work/fields"); do
    case " $2 " in *" $field "*) ;; *) wrong "$1: $field is not printed" ;; esac
  done
}

"$msched" tune "$gemm" --trials 4 --total-trials 8 --seconds 600 --db "$db" --json -- 32 32 32 >"$work/tune"
for event in start candidates asked trial learned end; do
  grep "\"event\":\"$event\"" "$work/tune" | agree "tune $event" "$(case $event in start) echo best best_seconds refused_model blocks idle vendor vendor_seconds vendor_library vendor_routine part_of groups shared ;; end) echo text unused ;; esac)"
done
"$msched" tune "$root/tests/reported/blocks/chain.lua" --trials 2 --db "$work/chain.db" --json -- 6 >"$work/tune"
grep '"event":"cut"' "$work/tune" | agree "tune cut" ""
grep '"event":"limit"' "$work/tune" | agree "tune limit" ""
grep '"event":"start".*"part_of"' "$work/tune" | agree "tune start" "best best_seconds refused_model blocks idle vendor vendor_seconds vendor_library vendor_routine groups total deadline limit"
grep '"event":"start".*"groups"' "$work/tune" | agree "tune start" "best best_seconds refused_model blocks idle vendor vendor_seconds vendor_library vendor_routine part_of total deadline limit"
# The best few are timed again where they are close, which depends on the machine.
"$msched" tune "$gemm" --trials 12 --policy random --db "$work/again.db" --json -- 64 64 64 >"$work/tune"
! grep -q '"event":"retimed"' "$work/tune" || grep '"event":"retimed"' "$work/tune" | agree "tune retimed" ""
# What the store has of a function is said when it begins again.
"$msched" tune "$gemm" --trials 1 --db "$work/again.db" --json -- 64 64 64 | grep '"event":"start"' | keys | grep -cx 'best\|best_seconds' | grep -qx 2 || wrong "tune start: no best of the store"
"$msched" top --db "$db" --json >"$work/top"
agree top "device limit limit_seconds" <"$work/top"
id=$(head -n 1 "$work/top" | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/')
"$msched" show "$id" --db "$db" --json | agree show "kernels no_code device"
"$msched" show "$id" --diff --db "$db" --json | agree "show --diff" ""
"$msched" show ops:relu --json | agree "show ops" ""
"$msched" show suite:ops --json -- NRM | agree "show suite" ""
cp "$(dirname "$0")/../../fuzz/corpus/onnx/attributes" "$work/net.onnx"
"$msched" show "$work/net.onnx" --json | agree "show network" ""
"$msched" show "$work/net.onnx" --dim batch=7 --print-after dead --json | agree "show --print-after" ""
cp "$(dirname "$0")/../../support/data/net.onnx" "$work/sum.onnx"
"$msched" run "$work/sum.onnx" --json | agree "run network" ""
"$msched" replay "$id" --db "$db" --json | agree replay ""
"$msched" report -o "$work/page.html" --db "$db" --json | agree report ""
"$msched" report "$root/tests/support/data/net.onnx" -o "$work/page.html" --db "$db" --json | agree "report network" "untuned_seconds"
"$msched" report --follow --until-idle 1 -o "$work/page.html" --db "$db" --json | agree "report --follow" ""
"$msched" db list --db "$db" --json | agree "db list" ""
"$msched" db pin "$id" --db "$db" --json | agree "db pin" ""
"$msched" diff "$id" "$id" --db "$db" --json | agree diff "assembly counts_a counts_b"
"$msched" diff "$id" "$id" --assembly --db "$db" --json | agree diff ""
"$msched" db merge "$db" --db "$work/merged.db" --json | agree "db merge" ""
"$msched" db backup "$work/backup.db" --db "$work/merged.db" --json | agree "db backup" ""
"$msched" db prune -k 1 --dry-run --db "$work/merged.db" --json | agree "db prune" ""
"$msched" db prune -k 1 --db "$work/merged.db" --json | agree "db prune" "tasks"
"$msched" db check --db "$db" --json | agree "db check" ""
"$msched" db export --db "$db" --json >"$work/exported"
agree "db export" "intrinsic sections intrinsics device" <"$work/exported"
"$msched" db import "$work/exported" --db "$db" --json | agree "db import" ""
"$msched" db export --tvm "$work/tvm" --db "$db" --json | agree "db export --tvm" ""
"$msched" db repair --db "$db" --json | agree "db repair" "backup"
"$msched" db delete "$id" --db "$db" --json | agree "db delete" ""
"$msched" space "$gemm" --json -- 8 8 8 | agree space "block choice"
"$msched" space "$root/lua/examples/lenet.lua" --target x86-64-v3 --json | agree space ""
"$msched" doctor --json | agree doctor "clocks device_peak tensor cores_quota"
"$msched" bench replay --count 3 --json | agree "bench replay" "tvm_rate ratio"
"$msched" bench search GMM --count 20 --trials 1 --json | agree "bench search" "tvm"
unread=ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # as in cli.sh: vendors' libraries
env $unread "$msched" bench ops NRM_1_b1 --trials 1 --json >"$work/ops"
grep '"bench":"ops"' "$work/ops" | agree "bench ops" "ratio peak unused"
! grep '"bench":"ops total"' "$work/ops" >"$work/total" || agree "bench ops total" "" <"$work/total" # none without vendors
env $unread "$msched" bench gemm --trials 1 --json -- 16 16 16 | agree "bench gemm" "openblas onednn onednn_plain tvm unused"
"$msched" bench nets "$work/sum.onnx" --no-tune --seconds 0.001 --json |
  agree "bench nets" "trials onnxruntime onnxruntime_seconds onnxruntime_least_seconds ratio least_ratio onnxruntime_peak_bytes difference openvino openvino_seconds openvino_least_seconds openvino_ratio openvino_least_ratio openvino_peak_bytes openvino_difference wrong by_function"
"$msched" tune "$gemm" --trials 40 --policy replay_trace --db "$work/model.db" -- 16 16 16 >"$work/tune"
"$msched" bench model --db "$work/model.db" --json >"$work/model"
grep '"without"\|"correlation"' "$work/model" | agree "bench model" "estimate"
grep '"estimate"' "$work/model" | agree "bench model" "without features correlation recall"
"$msched" bench tune --trials 1 --json -- 16 16 16 | agree "bench tune" "tvm_seconds_per_trial ratio"
cp "$root/tests/support/data/add.py" "$work"
echo '[[],[]]' >"$work/t.json"
"$msched" apply "$work/add.py" "$work/t.json" --json | agree apply ""
"$msched" run "$work/add.py" --json | agree run "same reason no_whole no_real real_tolerance"
"$msched" run "$work/add.py" --trace "$work/t.json" --json | agree run "reason no_whole no_real"
"$msched" run "$work/none.py" --json | agree refusal ""
"$msched" bench replay --data "$work" --json | agree refusal ""
[ ! -s "$work/wrong" ] || exit 1
echo "json: ok"
