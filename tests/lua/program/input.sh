#!/bin/sh
# Bad input on the command line: exit 1 (usage: 2), one message with its place, and the store as it was.
# usage: input.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
db=$work/store.db
gemm=$root/lua/examples/gemm.lua
fail() { echo "input.sh: $*" >&2; exit 1; }

refused() { # status, words of the message, command…
  status=$1 words=$2
  shift 2
  set +e
  timeout 60 "$@" >"$work/out" 2>"$work/err" </dev/null
  got=$?
  set -e
  [ "$got" = "$status" ] || fail "status $got for $status: $*: $(cat "$work/err")"
  grep -qF -- "$words" "$work/err" || fail "no \`$words\` in: $(cat "$work/err"), of: $*"
  grep -qE "stack traceback|msched/(lua|search|rules)\\." "$work/err" && fail "our own places in the message of: $*: $(cat "$work/err")"
  return 0
}

"$msched" tune "$gemm" --trials 4 --policy replay_trace --db "$db" --json -- 32 32 32 >/dev/null
"$msched" db export "$work/before" --db "$db"
id=$("$msched" top --db "$db" --json | head -n 1 | sed 's/.*"short_id":"\([0-9a-f]*\)".*/\1/')

# ---- Closed streams: no file is opened in their place
for closed in "<&-" ">&-" "2>&-" "<&- >&- 2>&-"; do
  rm -f "$work/closed.db"*
  expected=$(case $closed in *" >&-"* | ">&-") echo 1 ;; *) echo 0 ;; esac)
  got=0
  eval '"$msched" tune "$gemm" --trials 1 --policy replay_trace --db "$work/closed.db" -- 32 32 32' "$closed" >"$work/out" 2>"$work/err" || got=$?
  [ "$got" = "$expected" ] || fail "status $got with $closed: $(cat "$work/err")"
  "$msched" db check --db "$work/closed.db" | grep -qx clean || fail "the store is not clean with $closed"
done
rm -f "$work/closed.db"*

# ---- Files that never end, that nobody writes, that are larger than any: each is refused at once, not read
mkfifo "$work/pipe"
truncate -s 60G "$work/sparse"
for what in array trace; do
  printf 'local ok, why = pcall(require "msched".load_%s, arg[1])\nio.stderr:write(why)\nos.exit(ok)\n' $what >"$work/$what.lua"
done
for file in /dev/zero /dev/full "$work/pipe" "$work/sparse" "$work"; do
  case $file in
  /dev/*) what="this is a device, and no file" ;;
  */sparse) what="the most that is read" ;;
  "$work") what="Is a directory" ;;
  *) what=: ;;
  esac
  refused 1 "$what" "$msched" space "$file"
  refused 1 "$what" "$msched" apply "$root/tests/support/data/add.py" "$file"
  refused 1 "$what" "$msched" tune "$gemm" --rules "$file" --trials 1 --db "$db" -- 32 32 32
  refused 1 "$what" "$msched" "$work/array.lua" "$file"
  refused 1 "$what" "$msched" "$work/trace.lua" "$file"
done
for file in /dev/zero "$work/sparse"; do refused 1 "msched db" "$msched" db import "$file" --db "$db"; done
rm "$work/pipe" "$work/sparse"
mkfifo "$work/pipe"
cat "$work/before" >"$work/pipe" &
"$msched" db import "$work/pipe" --db "$work/piped.db" | grep -qx "4 records added" || fail "an import by a pipe loses what it looked at"
wait

refused 1 "msched export: /nonexistent/x.so: No such file or directory" "$msched" export "$id" -o /nonexistent/x.so --db "$db"

# ---- Scripts
echo 'return {' >"$work/syntax.lua"
printf 'local x\nerror "oh"' >"$work/raise.lua"
printf 'local x\nx.y = 1' >"$work/index.lua"
echo 'error {1}' >"$work/table.lua"
echo 'return 7' >"$work/none.lua"
echo 'return {1}' >"$work/number.lua"
echo 'return {}' >"$work/empty.lua"
printf 'local te = require "msched".te\nlocal A = te.placeholder({-1}, "float32", "A")' >"$work/negative.lua"
printf 'local te = require "msched".te\nlocal A = te.placeholder({4}, "float32", "A")\nlocal B = te.compute({4}, function(i)\nreturn A[{i + 1}] end, "B")\nreturn {te.func("f", {A, B})}' >"$work/leaves.lua"
for command in tune space; do
  store=$([ $command = tune ] && echo "--db $db" || true)
  refused 1 "syntax.lua:2:" "$msched" $command "$work/syntax.lua" $store
  refused 1 "raise.lua:2: oh" "$msched" $command "$work/raise.lua" $store
  refused 1 "index.lua:2:" "$msched" $command "$work/index.lua" $store
  refused 1 "table" "$msched" $command "$work/table.lua" $store
  refused 1 "returns no function" "$msched" $command "$work/none.lua" $store
  refused 1 "result 1 is no function but a number" "$msched" $command "$work/number.lua" $store
  refused 1 "returns no function" "$msched" $command "$work/empty.lua" $store
  refused 1 "negative.lua:2: te: A: extent 1 is -1" "$msched" $command "$work/negative.lua" $store
  refused 1 "leaves.lua:4: te: B: index 1 of A can be from 1 to 4" "$msched" $command "$work/leaves.lua" $store
  refused 1 "No such file" "$msched" $command "$work/nothing.lua" $store
  refused 1 "No such file" "$msched" $command "$work/nothing.py" $store
  refused 1 "extent 2 is -3" "$msched" $command "$gemm" $store -- 4 4 -3
  refused 1 "extent 1 is missing" "$msched" $command "$gemm" $store -- x 4 4
  refused 1 "more than memory holds" "$msched" $command "$gemm" $store -- 2000000000 4 2000000000
  refused 1 "not known" "$msched" $command "$gemm" --target toaster $store
  refused 1 "not known" "$msched" $command "$gemm" --target "llvm -mcpu=abacus" $store
  refused 1 "is not a feature" "$msched" $command "$gemm" --target "llvm -mattr=+flies" $store
  refused 2 "unknown option --nonsense" "$msched" $command "$gemm" --nonsense $store
  refused 2 "unknown option -z" "$msched" $command "$gemm" -z $store
  refused 2 "one file" "$msched" $command $store
  refused 2 "--rule-timeout" "$msched" $command "$gemm" --rule-timeout 0 $store
  refused 2 "--seed" "$msched" $command "$gemm" --seed 1.5 $store
  refused 2 "--seed" "$msched" $command "$gemm" --seed x $store
done
# ---- Operators by name: one message before anything starts, which names the argument
for command in tune space run lower show; do
  refused 1 "ops:conv2d: h is 0; expected: an integer of at least 1" "$msched" $command ops:conv2d -- 1 0
  refused 1 "ops.conv2d: kernel 9 reaches over 9 elements, with dilation 1, but h is 5, padded 5" "$msched" $command ops:conv2d -- 1 5 5 4 4 9
  refused 1 "ops.conv2d: groups is 3, which does not divide the 64 channels" "$msched" $command ops:conv2d -- groups=3
  refused 1 "ops:conv2d: there is no argument \`strid\`" "$msched" $command ops:conv2d -- strid=2
  refused 1 "there is no operator \`conv9d\`; \`msched help ops\` lists them" "$msched" $command ops:conv9d
  refused 1 "there is no suite \`all\`; there are ops, subgraphs" "$msched" $command suite:all
  refused 1 "suite:ops: \`XYZ\` is none of its codes" "$msched" $command suite:ops -- XYZ
done
refused 2 "--jobs: a number from 1 to 1024" "$msched" tune "$gemm" --jobs 100000000 --db "$db"
refused 2 "--jobs: a number from 1 to 1024" "$msched" tune "$gemm" --jobs 0 --db "$db"
# What was meant: by commands, options, actions, and names of what is chosen.
meant() { # the name, status, command…
  name=$1 status=$2
  shift 2
  refused "$status" "; did you mean \`$name\`?" "$@"
}
meant tune 2 "$msched" tunee
meant --trials 2 "$msched" tune "$gemm" --trialss 3
meant list 2 "$msched" db lst --db "$db"
meant gemm 2 "$msched" bench gem
meant tune 1 "$msched" help tun
meant split 1 "$msched" help spilt
meant evolutionary 1 "$msched" tune "$gemm" --policy evolutionry --db "$db"
meant xgboost 1 "$msched" tune "$gemm" --model xgbost --db "$db"
meant gain 1 "$msched" tune "$gemm" --scheduler gian --db "$db"
meant conv2d 1 "$msched" tune ops:conv2 --db "$db"
meant gemm 1 "$msched" show gem --db "$db"
meant gemm 2 "$msched" tune "$gemm" --task gemn --db "$db"
# And files, of the names in their folder; whole names without their form, too.
mkdir "$work/near"
cp "$gemm" "$work/near/product.lua"
cp "$root/tests/support/data/add.py" "$work/near/sum.py"
echo '[[],[]]' >"$work/near/steps.json"
for command in tune space run lower show; do
  meant "$work/near/product.lua" 1 "$msched" $command "$work/near/prodct.lua"
  meant "$work/near/sum.py" 1 "$msched" $command "$work/near/sun.py"
done
meant "$work/near/product.lua" 1 "$msched" "$work/near/pruduct.lua"
meant "$work/near/product.lua" 1 "$msched" tune "$work/near/product"
meant "$work/near/steps.json" 1 "$msched" apply "$work/near/sum.py" "$work/near/step.json"
meant "$work/near/product.lua" 1 "$msched" tune "$gemm" --rules "$work/near/product.lu" --db "$db"
meant "$work/near/product.lua" 1 "$msched" tune "$gemm" --policy "$work/near/roduct.lua" --db "$db"
meant "product.lua" 1 sh -c "cd '$work/near'; exec '$msched' tune product1.lua"
for far in near/other.lua none/product.lua near/; do
  refused 1 "" "$msched" tune "$work/$far" --db "$db"
  ! grep -q "did you mean" "$work/err" || fail "$far: $(cat "$work/err")"
done
refused 2 "unknown option -x" "$msched" tune "$gemm" -x 3
! grep -q "did you mean" "$work/err" || fail "a letter was meant: $(cat "$work/err")"
refused 2 "-k: a number of at least 1" "$msched" top -k 0 --db "$db"
refused 2 "--task 2" "$msched" tune "$gemm" --task 2 --db "$db"
refused 2 "--trials" "$msched" tune "$gemm" --trials -3 --db "$db"
refused 2 "--db takes a value" "$msched" tune "$gemm" --db
refused 1 "no policy" "$msched" tune "$gemm" --policy nonsense --db "$db" -- 8 8 8
refused 1 "model" "$msched" tune "$gemm" --model nonsense --db "$db" -- 8 8 8
refused 1 "script.lua:1: oh" sh -c "echo 'error \"oh\"' >'$work/script.lua'; '$msched' '$work/script.lua' 2>&1 | sed '/^stack traceback/,\$d' >&2; exit 1"

# ---- Functions and traces
cp "$root/tests/support/data/add.py" "$work"
head -c 150 "$work/add.py" >"$work/cut.py"
refused 1 "cut.py:" "$msched" tune "$work/cut.py" --db "$db"
refused 1 "cut.py:" "$msched" space "$work/cut.py"
refused 1 "cut.py:" "$msched" run "$work/cut.py"
look='["GetSBlock",[],["B","main"],["b0"]],["GetLoops",["b0"],[],["l1"]]'
trace() { # words of the message, the rest of the trace
  printf '%s' "$2" >"$work/t.json"
  refused 1 "$1" "$msched" apply "$work/add.py" "$work/t.json"
}
trace "t.json: instruction 0: " '[[["Teleport",[],[],[]]],[]]'
trace "t.json: instruction 0: GetSBlock" '[[["GetSBlock",[],[],["b0"]]],[]]'
trace "t.json: instruction 0: GetSBlock" '[[["GetSBlock",[],[7,"main"],["b0"]]],[]]'
trace "takes 2 attributes, and 3 are given" '[[["GetSBlock",[],["B","main","extra"],["b0"]]],[]]'
trace "instruction 2" "[[$look,[\"Split\",[],[1,0],[\"l2\"]]],[]]"
trace "instruction 2" "[[$look,[\"Parallel\",[\"b0\"],[],[]]],[]]"
trace "instruction 2" "[[$look,[\"Parallel\",[\"l9\"],[],[]]],[]]"
trace "instruction 2" "[[$look,[\"Split\",[\"l1\",0,4],[1,0],[\"l2\",\"l3\"]]],[]]"
trace "instruction 2" "[[$look,[\"Split\",[\"l1\",-1,4],[1,0],[\"l2\",\"l3\"]]],[]]"
trace "instruction 2" "[[$look,[\"Split\",[\"l1\",9223372036854775807,9223372036854775807],[1,0],[\"l2\",\"l3\"]]],[]]"
trace "instruction 2" "[[$look,[\"SamplePerfectTile\",[\"l1\"],[2,16],[\"v2\",\"v3\"]]],[[2,[3,3]]]]"
trace "instruction 2" "[[$look,[\"SamplePerfectTile\",[\"l1\"],[2,16],[\"v2\",\"v3\"]]],[[2,[-8,-1]]]]"
trace "t.json: " "[[$look"

# ---- Stores
refused 1 "no record" "$msched" show 00000000 --db "$db"
refused 1 "4 hexadecimal digits" "$msched" show zz --db "$db"
refused 2 "ID" "$msched" show --db "$db"
refused 1 "no store" "$msched" top --db "$work/none.db"
refused 1 "suffix" "$msched" export "$id" -o "$work/gemm.exe" --db "$db"
refused 2 "-o FILE" "$msched" export "$id" --db "$db"
refused 2 "db list" "$msched" db nonsense --db "$db"
# The whole message: what Lua puts in front of an error is no place of the user's.
says() { # the message, command…
  message=$1
  shift
  refused 1 "$message" "$@"
  [ "$(cat "$work/err")" = "$message" ] || fail "not \`$message\` but: $(cat "$work/err")"
}
says "msched db: $work/none: cannot be read: No such file or directory" "$msched" db import "$work/none" --db "$db"
says "msched db: $work: the folder has neither database_tuning_record.json nor database_workload.json" "$msched" db import "$work" --db "$db"
says "msched db: $work/none/x: cannot be written: No such file or directory" "$msched" db export "$work/none/x" --db "$db"
refused 1 "msched export: $work/none/x.h: No such file or directory" "$msched" export "$id" -o "$work/none/x.h" --db "$db"
says "msched replay: target: \`toaster\` is not known; say native, x86-64-v2, x86-64-v3, x86-64-v4 or llvm -mcpu=NAME, or of a GPU cuda -arch=sm_70 up to sm_90a; \`msched help targets\` says more" \
  "$msched" replay "$id" --target toaster --db "$db"
says "msched show: there is no instruction 999: the trace has $("$msched" show "$id" --trace --lua --db "$db" | grep -c 'sch:'), from 0" \
  "$msched" show "$id" --explain 999 --db "$db"
says "msched top: $work/none.db: there is no store; tuning makes one" "$msched" top --db "$work/none.db"
: >"$work/empty.db"
for command in top "db check" "show best"; do # in words
  says "msched ${command%% *}: $work/empty.db: there is no store: the file is empty; tuning makes one in it" "$msched" $command --db "$work/empty.db"
done
"$msched" db merge "$db" --db "$work/new/folder/a.db" >/dev/null 2>"$work/err"
[ "$(cat "$work/err")" = "msched: $work/new/folder: made this folder, for the store" ] || fail "a new folder: $(cat "$work/err")"
"$msched" db merge "$db" --db "$work/new/folder/a.db" >/dev/null 2>"$work/err"
[ ! -s "$work/err" ] || fail "a folder that was there: $(cat "$work/err")"
says "msched db: $work/empty.db/folder: cannot make this folder, for the store: Not a directory; give another --db PATH" \
  "$msched" db merge "$db" --db "$work/empty.db/folder/a.db"
for what in written replaced; do # what an export wrote, and whether something was there
  "$msched" export "$id" -o "$work/said.c" --db "$db" >"$work/out"
  grep -q "^$work/said.c: $what, [0-9.]* KiB, record $id[0-9a-f]* for llvm" "$work/out" || fail "export: not $what: $(cat "$work/out")"
done
[ ! -d /proc/self ] || says "msched tune: /proc/none.db: no store can be made there: No such file or directory" \
  "$msched" tune "$gemm" --db /proc/none.db -- 8 8 8
# A table that is raised, by a policy of the user's, is a failure as well.
echo 'return require("msched").policy {name = "raises", run = function() error {} end}' >"$work/raises.lua"
refused 1 "table" "$msched" tune "$gemm" --policy "$work/raises.lua" --db "$work/raises.db" -- 8 8 8
other() { # words of the message; the file $work/other.db stays as it is
  cp "$work/other.db" "$work/kept.db"
  for command in "tune $gemm --trials 1" "top" "show $id" "replay $id" "db check" "db compact" "db export" "db import $work/before"; do
    refused 1 "$1" "$msched" $command --db "$work/other.db"
  done
  cmp "$work/other.db" "$work/kept.db" || fail "another program's file was changed: $1"
}
echo 'SQLite format 3 and so on' >"$work/other.db" && other 'no store of msched'
head -c 20000 /dev/zero >"$work/other.db" && other 'no store of msched'
for bytes in 1 100 4096 5000 8191 12288; do
  head -c $bytes "$db" >"$work/other.db"
  other "$([ $bytes -lt 5000 ] && echo 'no store of msched' || echo 'cut short')"
done
refused 1 "is no file" "$msched" top --db "$work"
mkfifo "$work/fifo"
refused 1 "is no file" "$msched" top --db "$work/fifo"

# A store that may not be written. Root may write anything unless it gives that up.
bound=
[ "$(id -u)" = 0 ] && bound="setpriv --inh-caps=-dac_override,-dac_read_search --bounding-set=-dac_override,-dac_read_search"
mkdir "$work/locked" && cp "$db" "$work/locked/store.db" && chmod 0444 "$work/locked/store.db" && chmod 0555 "$work/locked"
if [ -z "$bound" ] || $bound "$msched" --version >/dev/null 2>&1; then
  refused 1 "cannot be written" $bound "$msched" tune "$gemm" --trials 1 --db "$work/locked/store.db" -- 32 32 32
  refused 1 "cannot be written" $bound "$msched" db import "$work/before" --db "$work/locked/store.db"
  refused 1 "ermission" $bound "$msched" tune "$gemm" --trials 1 --db "$work/locked/new/store.db" -- 32 32 32
  $bound "$msched" top --db "$work/locked/store.db" | grep -q "$id" || fail "a store that may not be written is not read"
  $bound "$msched" db check --db "$work/locked/store.db" | grep -qx clean || fail "check of a store that may not be written"
fi

# No room: the file may not grow. What was committed is kept, and the store is whole.
cp "$db" "$work/full.db"
blocks=$(($(wc -c <"$work/full.db") / 512))
refused 1 "the limit of files' sizes is reached" sh -c 'ulimit -f "$1" && shift && exec "$@"' sh "$blocks" "$msched" tune "$gemm" --trials 64 --db "$work/full.db" -- 48 32 32
"$msched" db check --db "$work/full.db" | grep -qx clean || fail "a full store is not clean"
"$msched" show "$id" --db "$work/full.db" >/dev/null || fail "a record is lost in a full store"
head -c 8192 /dev/zero >"$work/small8.db-lock" # a lock that is there already
for blocks in 1 8 16; do # no lock, one of LMDB's first two pages, both
  refused 1 "the limit of files' sizes is reached" sh -c 'ulimit -f "$1" && shift && exec "$@"' sh $blocks "$msched" tune "$gemm" --trials 1 --db "$work/small$blocks.db" -- 32 32 32
  refused 1 "there is no store" "$msched" top --db "$work/small$blocks.db"
  "$msched" db import "$work/before" --db "$work/small$blocks.db" >"$work/out" 2>"$work/err" || fail "a store where another could not be made: $(cat "$work/err")"
done

# What scripts may hand to a store: ids are 16 bytes, paths hold no zero byte.
for call in 's:records {workload = "abc"}|`workload` is an id of 16 bytes' 's:put {}|`workload` is an id of 16 bytes' \
  's:put {workload = ("x"):rep(16)}|`trace` is a trace' 's:export "a\0b"|without a zero byte' 'ms.store "a\0b"|without a zero byte' \
  's:get_workload "abc"|an id of 16 bytes' 's:delete "zz"|at least 4 hexadecimal digits'; do
  printf 'local ms = require "msched"\nlocal s = ms.store(arg[1])\n%s\n' "${call%|*}" | sed 's/\\0/\\0/' >"$work/hand.lua"
  "$msched" "$work/hand.lua" "$work/hand.db" >/dev/null 2>"$work/err" && fail "a store takes ${call%|*}"
  grep -qF -- "${call#*|}" "$work/err" || fail "no \`${call#*|}\` in: $(cat "$work/err")"
done

# Other texts: a target, a type, a name, a path; items of lists are integers.
for call in 'ms.target "native\0 -num-cores=1"|without a zero byte' 'ms.array({2}, "float32\0x")|without a zero byte' \
  'ms.onnx "a\0b"|zero byte' 'ms.build(f, {target = "native\0x"})|option `target` has a zero byte' 'ms.load "lua.net.common\0x"|without a zero byte' \
  'ms.build(f):export "a.so\0b"|without a zero byte' 'ms.array {2, 1.5}|item 2 of the list is 1.5; an integer is expected' \
  'ms.array {{}}|item 1 of the list is table; an integer is expected' 'local a = ms.array {2} a[{0 / 0}] = 1|an integer is expected'; do
  printf 'local ms = require "msched"\nlocal f = ms.ops.func("matmul", {"8", "8", "8"})\n%s\n' "${call%|*}" >"$work/hand.lua"
  "$msched" "$work/hand.lua" >/dev/null 2>"$work/err" && fail "a script may say ${call%|*}"
  grep -qF -- "${call#*|}" "$work/err" || fail "no \`${call#*|}\` in: $(cat "$work/err")"
done

# Too few files may be open: a message says so, or there are enough.
for files in 5 6 7 8 9 10; do
  got=0
  sh -c 'ulimit -n "$1" && shift && exec "$@"' sh "$files" "$msched" report --db "$db" -o "$work/r.html" >"$work/out" 2>"$work/err" || got=$?
  [ "$got" = 0 ] || grep -q "open files" "$work/err" || fail "$files files: $(cat "$work/err")"
  ! grep -q "traceback\|are missing" "$work/err" || fail "$files files: $(cat "$work/err")"
done

# Open twice: refused in one process, shared by two.
printf 'local ms = require "msched"\nlocal a = ms.store(arg[1])\nlocal b = ms.store(arg[1])' >"$work/twice.lua"
"$msched" "$work/twice.lua" "$work/full.db" >/dev/null 2>"$work/err" && fail "a store was opened twice"
grep -q "twice.lua:3: .*open already" "$work/err" || fail "opened twice: $(cat "$work/err")"
"$msched" tune "$gemm" --trials 6 --seed 5 --db "$work/both.db" --json -- 32 32 48 >"$work/one" &
"$msched" tune "$gemm" --trials 6 --seed 9 --db "$work/both.db" --json -- 32 32 48 >"$work/two" || fail "two at once"
wait $! || fail "two at once"
"$msched" db check --db "$work/both.db" | grep -qx clean || fail "two at once: check"
sed -n 's/.*"event":"trial".*"id":"\([0-9a-f]*\)".*/\1/p' "$work/one" "$work/two" | while read -r each; do
  "$msched" show "$each" --trace --db "$work/both.db" >/dev/null || fail "two at once: record $each is lost"
done

# Imports are refused at their line; what came before it is kept.
{ head -n 1 "$work/before"; echo '{"record":"x","workload":"nonsense"}'; } >"$work/import"
refused 1 "import:2:" "$msched" db import "$work/import" --db "$work/import.db"
echo '{' >"$work/import" && refused 1 "import:1:" "$msched" db import "$work/import" --db "$work/import.db"
sed 's/sch:/sch:un/' "$work/before" >"$work/import" && refused 1 "import:2:" "$msched" db import "$work/import" --db "$work/import.db"
"$msched" db check --db "$work/import.db" | grep -qx clean || fail "check after imports"

# A file without lines is none of records; one whose records are all known is said to be so.
printf '\n \n' >"$work/blank" && : >"$work/void"
for file in "$work/blank" "$work/void" /dev/null -; do refused 1 "$file: the file is empty" "$msched" db import "$file" --db "$work/void.db"; done
head -n 1 "$work/before" >"$work/import"
"$msched" db import "$work/import" --db "$work/void.db" | grep -qx "0 records added: no line has a record that is new" || fail "a workload alone"
"$msched" db merge "$work/void.db" --db "$work/import.db" | grep -qx "0 records added: $work/void.db has none" || fail "no records merged"

"$msched" db check --db "$db" | grep -qx clean || fail "db check"
"$msched" db export "$work/after" --db "$db"
cmp "$work/before" "$work/after" || fail "the store changed"
echo "input: ok"
