#!/bin/sh
# The program's words, exit statuses and JSON.  usage: cli.sh MSCHED
set -u
msched=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0

check() { # what, expected status, expected words in the output, command…
  what=$1 status=$2 words=$3
  shift 3
  output=$("$@" 2>&1)
  got=$?
  if [ $got -ne "$status" ]; then
    echo "$what: status $got, expected $status: $output"
    failed=1
  fi
  case $output in
  *"$words"*) ;;
  *)
    echo "$what: no \"$words\" in: $output"
    failed=1
    ;;
  esac
}

cp "$(dirname -- "$0")/support/data/add.py" "$dir"
look='["GetSBlock",[],["B","main"],["b0"]],["GetLoops",["b0"],[],["l1"]]'
echo "[[$look,[\"Split\",[\"l1\",2,\"None\"],[1,0],[\"l2\",\"l3\"]]],[]]" >"$dir/good.json"
echo "[[$look,[\"Split\",[\"l1\",2,3],[1,0],[\"l2\",\"l3\"]]],[]]" >"$dir/bad.json"
echo "[[$look" >"$dir/broken.json"
echo "def" >"$dir/broken.py"

[ ! -c /dev/zero ] || check "a file that never ends" 1 "this is a device, and no file" "$msched" run /dev/zero

# What cannot be written to standard output is an error, whatever the command.
if [ -c /dev/full ]; then
  store=$(dirname -- "$0")/unit/data/store_format_1.db
  cp "$store" "$dir/full.db"
  record=$("$msched" top --db "$dir/full.db" --json | head -n 1 | sed 's/.*"id":"\([0-9a-f]*\)".*/\1/')
  full() { # words of a command
    check "$*, to a full output" 1 "standard output" sh -c '"$@" >/dev/full' sh "$msched" "$@"
  }
  for each in $("$msched" help commands | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) .*/\1/p'); do
    case $each in
    apply) full apply "$dir/add.py" "$dir/good.json" ;;
    convert) full convert "$dir/good.json" ;;
    run | lower | space) full $each "$dir/add.py" ;;
    bench) full bench replay C1D --count 1 ;;
    tune) full tune "$dir/add.py" --simulate --trials 1 --policy replay_trace --db "$dir/simulated.db" ;;
    diff) full diff "$record" "$record" --db "$dir/full.db" ;;
    report) full report -o "$dir/page.html" --db "$dir/full.db" ;;
    top | show | replay) full $each $([ $each = top ] || echo "$record") --db "$dir/full.db" ;;
    export) ;; # prints nothing
    db) full db list --db "$dir/full.db" && full db check --db "$dir/full.db" && full db export --db "$dir/full.db" ;;
    doctor) full doctor ;;
    worker | fleet) ;; # need a server: lua/search/fleet.sh
    help) full help && full help split && full help --lua ;;
    *) check "a command that is not tried with a full output" 0 "$each" false ;;
    esac
  done
  check "--version to a full output" 1 "standard output" sh -c "'$msched' --version >/dev/full"
  echo 'print(1)' >"$dir/print.lua"
  check "a script to a full output" 1 "standard output" sh -c "'$msched' '$dir/print.lua' >/dev/full"
  echo 'print(1) os.exit(0)' >"$dir/exit.lua"
  check "a script that exits to a full output" 1 "standard output" sh -c "'$msched' '$dir/exit.lua' >/dev/full"
  check "the session to a full output" 1 "standard output" sh -c "echo 6 | '$msched' >/dev/full"
fi

# A file of two functions: all are meant, or the one that --task says.
{ sed 's/def main/def first/' "$dir/add.py"; echo; sed 's/def main/def second/; s/1.0/2.0/' "$dir/add.py"; } >"$dir/two.py"
check "space of two functions" 0 "-- second, sketch 1" "$msched" space "$dir/two.py"
check "space of the first of two" 0 "-- first, sketch 1" "$msched" space "$dir/two.py" --task first
check "space of the second of two" 0 "-- second, sketch 1" "$msched" space "$dir/two.py" --task 2
[ "$("$msched" space "$dir/two.py" --task second | grep -c -- "^-- first")" = 0 ] || { echo "space --task shows others"; failed=1; }
check "space of none of two" 2 "--task third: the file has first, second" "$msched" space "$dir/two.py" --task third
check "run of one of two" 0 "" "$msched" run "$dir/two.py" --task second
check "run of one by its number" 0 "" "$msched" run "$dir/two.py" --task 1
check "lower of one of two" 0 "def second" "$msched" lower "$dir/two.py" --task second

# Operators and suites by name, and files of Lua, wherever a file of functions is taken.
check "run of an operator" 0 "equal to the interpreter's everywhere" "$msched" run ops:conv2d -- 1 8 8 4 4 3 pad=1
check "run of an operator without arguments" 0 "the same results" "$msched" run ops:max_pool
check "lower of an operator" 0 "def softmax_8x8(" "$msched" lower ops:softmax -- 8x8
check "space of an operator" 0 "matmul_32x32x32, sketch 1" "$msched" space ops:matmul -- 32 32 32
check "show of an operator" 0 "def gelu_4x4_float16(X: T.Buffer((4, 4), \"float16\")" "$msched" show ops:gelu -- 4x4 dtype=float16
echo '[[["GetSBlock",[],["relu","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2"]],["Parallel",["l1"],[],[]]],[]]' >"$dir/relu.json"
check "apply to an operator" 0 "T.parallel(16)" sh -c "'$msched' show ops:relu -- 16x8 | '$msched' apply - '$dir/relu.json'"
check "run of an operator by a trace" 0 "scheduled, interpreted: the same" "$msched" run ops:relu --trace "$dir/relu.json" -- 16x8
check "help names them" 0 "\`ops:NAME\` and \`suite:NAME\` stand for files" "$msched" help
check "tune of an operator" 0 "relu_16x16" "$msched" tune ops:relu --trials 2 --policy replay_trace --db "$dir/ops.db" -- 16x16
for option in trials total-trials failures; do
  for number in 0 9223372036854775807; do
    check "tune with --$option $number" 2 "--$option: a number from 1 to 1000000000 is expected" "$msched" tune ops:relu --$option $number --db "$dir/ops.db" -- 16x16
  done
done
printf '\010\007\022\007pytorch\000\377' >"$dir/model.onnx"
check "tune of a damaged network" 1 "it is no ONNX model, or a damaged one" "$msched" tune "$dir/model.onnx" --db "$dir/ops.db"
for pair in trials=0 trials=-1 total=1000000001 jobs=0 seconds=0 seconds=-1 run_timeout=0; do
  echo "require 'msched'.tune(require 'msched'.ops.func('relu', {'16x16'}), {$pair, db = '$dir/ops.db'})" >"$dir/number.lua"
  check "ms.tune with $pair" 1 "number.lua:1: ms.tune: ${pair%=*} is ${pair#*=}; it is " "$msched" "$dir/number.lua"
done
check "tune of a suite" 0 "NRM_1_b1" "$msched" tune suite:ops --trials 1 --policy replay_trace --db "$dir/ops.db" -- NRM_1_b1
# With arguments of their own: several in one command, words after -- for those without.
check "tune of two operators" 0 "relu_4x4_float16" "$msched" tune 'ops:relu(16x8)' 'ops:relu(4x4,dtype=float16)' --trials 1 --policy replay_trace --db "$dir/ops.db"
check "tune of two, one with words" 0 "relu_32" sh -c "'$msched' tune 'ops:relu(16x8)' ops:relu --trials 1 --policy replay_trace --db '$dir/ops.db' -- 32 && '$msched' top --db '$dir/ops.db'"
check "tune of some of a suite" 0 "DEP_4_b1" "$msched" tune 'suite:ops(DEP_4_b1)' --no-tune --db "$dir/some.db"
check "words for none" 2 "the words after -- (9) are for nothing: each of these has arguments of its own" "$msched" tune 'ops:relu(8)' 'ops:relu()' --db "$dir/ops.db" -- 9
check "show with its own arguments" 0 "def gelu_4x4_float16(" "$msched" show 'ops:gelu(4x4,dtype=float16)'
check "show of some of a suite, its own" 0 "CBR_4_b16" "$msched" show 'suite:subgraphs(CBR,batch=16)'
check "run with its own arguments" 0 "equal to the interpreter's everywhere" "$msched" run 'ops:conv2d(1,8,8,4,4,3,pad=1)'
check "lower with its own arguments" 0 "def softmax_8x8(" "$msched" lower 'ops:softmax([8,8])'
check "space with its own arguments" 0 "matmul_32x32x32, sketch 1" "$msched" space 'ops:matmul(32, 32, 32)'
check "a record of a function" 0 "def relu_16x8(" "$msched" show 'relu_16x8' --db "$dir/ops.db"
check "replay of a function's best" 0 "differs from the unscheduled function" "$msched" replay 'ops:relu(16x8)' --db "$dir/ops.db"
check "export of a function's best" 0 "$dir/relu.so: written" "$msched" export 'ops:relu(shape=16x8)' -o "$dir/relu.so" --db "$dir/ops.db"
check "export of one without a record" 1 "ops:relu(3x5)\`: $dir/ops.db has no record of it that was measured" "$msched" export 'ops:relu(3x5)' -o "$dir/none.so" --db "$dir/ops.db"
check "report of an operator" 0 "1 task" "$msched" report 'ops:relu(16x8)' -o "$dir/relu.html" --db "$dir/ops.db"
check "report of one that is not there" 1 "has no workload \`ops:relu(3x5)\`" "$msched" report 'ops:relu(3x5)' -o "$dir/none.html" --db "$dir/ops.db"
check "help of an operator with arguments" 0 "groups       1            groups of channels" "$msched" help 'ops:conv2d(1,2)'
for command in tune show run lower space; do
  check "$command of an open parenthesis" 1 "\`ops:relu(8\`, column 9: \`(\` is not closed; a shell takes it as one word in quotes" "$msched" $command 'ops:relu(8'
  check "$command of a number that is none" 1 "column 12: h is x; expected: an integer" "$msched" $command 'ops:conv2d(h=x)'
done
check "what is constant" 0 '"layout_free_buffers": [1]' "$msched" show ops:dense --weights W
check "what is constant, lowered" 0 "def dense" "$msched" lower ops:dense --weights W
check "constants that there are not" 1 "no function has a parameter V" "$msched" space ops:dense --weights V
check "constants of what runs" 1 "has no buffer \`V\` among its parameters; it reads X, W" "$msched" run ops:dense --weights V
check "constants of a network" 2 "of a network, its file says what is constant" "$msched" tune "$(dirname "$0")/../lua/examples/digits.onnx" --weights W
check "constants of a record" 2 "is a record, which says what is constant" "$msched" replay best --weights W --db "$dir/ops.db"
check "show of a file" 0 "def gemm(A: T.Buffer((8, 12), \"float32\")" "$msched" show "$(dirname "$0")/../lua/examples/gemm.lua" -- 8 16 12
cp "$(dirname "$0")/fuzz/corpus/onnx/attributes" "$dir/net.onnx"
check "show of a network" 0 "input x: float32[7, 4]" "$msched" show "$dir/net.onnx" --dim batch=7
check "show of a network, its shape" 0 "input x: float32[9, 4]" "$msched" show "$dir/net.onnx" --shape x=9x4
check "a shape that does not fit" 1 "extent 2 of input x is 4, and 5 is given" "$msched" show "$dir/net.onnx" --shape x=9x5
check "show of a network, an input that is a constant" 0 "constant x: float32[9, 4]" "$msched" show "$dir/net.onnx" --shape x=9x4 --constant x=0.5
check "a constant whose extents are not known" 1 "constant x: its extents are not known" "$msched" show "$dir/net.onnx" --constant x=0.5
check "a constant that is none" 2 "is no number" "$msched" show "$dir/net.onnx" --constant x=y
check "a constant past all numbers" 2 "is no number" "$msched" show "$dir/net.onnx" --constant x=1e309
check "a constant of what is no network" 2 "--constant is for networks, FILE.onnx" "$msched" show ops:relu --constant x=1
check "a shape that is none" 2 "is no extent" "$msched" show "$dir/net.onnx" --shape x=9xb
check "a shape of no input" 2 "NAME=SHAPE" "$msched" show "$dir/net.onnx" --shape 9x4
check "an extent that is none" 2 "is no extent" "$msched" show "$dir/net.onnx" --dim batch=-1
check "a shape of what is no network" 2 "for networks, FILE.onnx" "$msched" show ops:relu --shape x=1
check "a network after a pass" 0 "after fusion:" "$msched" show "$dir/net.onnx" --dim batch=7 --print-after all
check "a pass that there is not" 2 "\`all\` prints after each; did you mean \`layer_norm\`?" "$msched" show "$dir/net.onnx" --dim batch=7 --print-after layernorm
check "passes of what is no network" 2 "for networks, FILE.onnx" "$msched" tune ops:relu --passes none.lua
check "passes of a network that is shown" 2 "goes with --print-after" "$msched" show "$dir/net.onnx" --passes none.lua
check "a file of passes that there is not" 1 "cannot open none.lua" "$msched" space "$dir/net.onnx" --dim batch=7 --passes none.lua
check "a trace of a network" 2 "is a network" "$msched" show "$dir/net.onnx" --trace
check "a network that is damaged" 1 "it is no ONNX model, or a damaged one" "$msched" show "$dir/model.onnx"
cp "$(dirname "$0")/support/data/net.onnx" "$dir/sum.onnx"
check "run of a network" 0 "y: float32[2, 4] {" "$msched" run "$dir/sum.onnx" --db "$dir/ops.db"
check "a network compared" 0 "equal to the interpreter's at 8 of 8 elements" "$msched" run "$dir/sum.onnx" --db "$dir/ops.db"
check "a network's outputs" 0 "y: $dir/y.npy" "$msched" run "$dir/sum.onnx" -o "$dir" --db "$dir/ops.db"
cat >"$dir/names.lua" <<'E2'
local model = dofile(arg[1]).model {opset = 17, inputs = {{"x", "float32", {4}}}, outputs = {{"a:0"}, {"a_0"}}, nodes = {{"Relu", {"x"}, {"a:0"}}, {"Neg", {"x"}, {"a_0"}}}}
assert(io.open(arg[2], "wb")):write(model):close()
E2
"$msched" "$dir/names.lua" "$(dirname "$0")/support/lua/onnx.lua" "$dir/names.onnx"
check "outputs whose names are alike" 0 "a_0: $dir/a_0_2.npy" "$msched" run "$dir/names.onnx" -o "$dir" --db "$dir/ops.db"
check "outputs without a folder" 1 "make it first" "$msched" run "$dir/names.onnx" -o "$dir/none" --db "$dir/ops.db"
check "no folder for what is made" 1 "set TMPDIR to one that can be written" env TMPDIR="$dir/none" "$msched" export "$dir/sum.onnx" -o "$dir/sum.so" --db "$dir/ops.db"
check "space of a network" 0 "sketch 1" "$msched" space "$dir/sum.onnx"
check "tune of a network" 0 "1 call of 1 function" "$msched" tune "$dir/sum.onnx" --trials 1 --db "$dir/ops.db"
check "a network for a GPU that is not here" 0 "nothing was measured" "$msched" tune "$dir/sum.onnx" --no-tune --target "cuda -arch=sm_80" --db "$dir/ops.db"
check "export of a network" 0 "1 function in 1 call; beside it $dir/sum.h, $dir/sum.weights, $dir/sum_network.py" "$msched" export "$dir/sum.onnx" -o "$dir/sum.so" --db "$dir/ops.db"
check "export of a network as what is no library" 1 "the file ends with .so, .a, .c or .tar" "$msched" export "$dir/sum.onnx" -o "$dir/sum.o" --db "$dir/ops.db"
check "a shape for the export of a record" 2 "--shape is for networks" "$msched" export 0123abcd -o "$dir/x.so" --shape x=1 --db "$dir/ops.db"
check "a network beside a function" 2 "is no network: networks are tuned together with networks alone" "$msched" tune "$dir/sum.onnx" ops:relu
check "an input of another shape" 1 "input x has extents [2, 4], and an array of [3, 4] is given" "$msched" run "$dir/sum.onnx" --input "x=$(dirname "$0")/support/data/x34.npy" --db "$dir/ops.db"
check "an input that there is not" 1 "the network has no input z" "$msched" run "$dir/sum.onnx" --input z=none.npy
check "an operator that there is not" 1 "there is no operator Nothing" "$msched" run "$(dirname "$0")/support/data/other.onnx"
check "a network's option of what is none" 2 "are for networks" "$msched" run ops:relu --input x=y -- 4
check "show of a suite" 0 "0.02569 GFLOP  ops:conv2d -- 1 56 56 64 64 1 1 0" "$msched" show suite:ops
[ "$("$msched" show suite:ops | wc -l)" = 88 ] || { echo "suite:ops has not 88 members"; failed=1; }
check "show of some of a suite" 0 "CBR_4_b16" "$msched" show suite:subgraphs -- CBR batch=16
check "show of one of a suite" 0 "def C1D_2_b1(" "$msched" show suite:ops --task C1D_2_b1
check "lower of one of a suite" 0 "def NRM_1_b16(" "$msched" lower suite:ops --task NRM_1_b16 -- NRM
check "run of several of a suite" 1 "say which with --task: NRM_1_b1, NRM_1_b16" "$msched" run suite:ops -- NRM
check "run of a file of Lua" 0 "the same results" "$msched" run "$(dirname -- "$0")/../lua/examples/gemm.lua" -- 16 16 16
check "run of the network" 0 "the same results" "$msched" run "$(dirname -- "$0")/../lua/examples/lenet.lua"
check "a trace of an operator" 2 "is no record" "$msched" show ops:relu --trace
check "a task of a record" 2 "are for FILE, ops:NAME and suite:NAME" "$msched" show 0123abcd --task 1 --db "$dir/ops.db"
check "arguments of TVMScript" 1 "takes no arguments" "$msched" run "$dir/add.py" -- 3
check "help of operators" 0 "ops:conv2d_transpose" "$msched" help ops
check "help of an operator" 0 "groups       1            groups of channels" "$msched" help ops:conv2d
check "help of a suite" 0 "ops:batch_matmul -- 16 1024 1024 1024" "$msched" help suite:ops
check "help of no operator" 1 "nothing is named" "$msched" help ops:fly
check "lower of two" 1 "say which with --task: first, second" "$msched" lower "$dir/two.py"
check "run of two" 1 "say which with --task: first, second" "$msched" run "$dir/two.py"
check "run of none of two" 1 "--task 3: $dir/two.py has first, second" "$msched" run "$dir/two.py" --task 3
check "tune of one of two" 0 "second" "$msched" tune "$dir/two.py" --task second --trials 2 --policy replay_trace --db "$dir/two.db"

# Extents of 0: run as nothing, neither scheduled nor tuned.
sed 's/8/0/g' "$dir/add.py" >"$dir/empty.py"
check "run of an extent of 0" 0 "the same results" "$msched" run "$dir/empty.py"
check "lower of an extent of 0" 0 "pass" "$msched" lower "$dir/empty.py"
check "apply to an extent of 0" 1 '"code":"nothing_to_schedule"' "$msched" apply --json "$dir/empty.py" "$dir/good.json"
check "space of an extent of 0" 0 "nothing to tune: an extent of it is 0" "$msched" space "$dir/empty.py"
check "tune of an extent of 0" 0 "nothing to tune: an extent of it is 0" "$msched" tune "$dir/empty.py" --db "$dir/empty.db"
[ ! -e "$dir/empty.db" ] || { echo "a store was made for nothing"; failed=1; }

check "no arguments" 0 "42" sh -c "echo 6 '*' 7 | '$msched'"
check "--help" 0 "usage: msched" "$msched" --help
check "--version" 0 "msched " "$msched" --version
check "unknown command" 2 'unknown command "fly"' "$msched" fly
check "unknown option" 2 "unknown option --fly" "$msched" apply --fly
check "no number" 2 '--seed takes a whole number, not "x"' "$msched" apply --seed x "$dir/add.py" "$dir/good.json"
check "no trace" 2 "usage: msched apply" "$msched" apply "$dir/add.py"
check "help of a command" 0 "usage: msched apply" "$msched" apply --help
check "help after other words" 0 "usage: msched apply" "$msched" apply "$dir/add.py" --seed 3 --help
check "bench replay of a workload" 0 "cuda/NRM" "$msched" bench replay cuda/NRM --count 10
check "bench replay of growth" 0 "growth/GMMx16" "$msched" bench replay growth --count 2
check "bench replay of nothing" 1 "No such file" "$msched" bench replay fly --count 1
unread=ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0 # the sanitizer of leaks cannot read the memory that vendors' libraries give their threads
check "bench tune" 0 "tune: 2 trials" "$msched" bench tune --trials 2 -- 32 24 40
check "bench ops" 0 "NRM_1_b1  " env $unread "$msched" bench ops NRM_1_b1 --trials 1 --db "$dir/ops.db"
check "bench ops of short floats" 0 "F16_1_b1  " env $unread "$msched" bench ops F16_1_b1 --suite products --trials 1
case $output in *F16_1_b1*GFLOP/s*GB/s*%\ of\ *) ;; *) echo "bench ops of short floats: no share of the vectors that compute them: $output" && failed=1 ;; esac
check "bench ops of a store" 0 '"task":"NRM_1_b1"' env $unread "$msched" bench ops NRM_1_b1 --db "$dir/ops.db" --json
check "bench ops of cold data" 0 " of memory" env $unread "$msched" bench ops NRM_1_b1 --db "$dir/ops.db" --cold
check "bench ops of no record" 1 "no record for" "$msched" bench ops SFM_1_b1 --db "$dir/ops.db"
check "bench ops of nothing" 2 "none of its codes" "$msched" bench ops fly
check "bench ops of a suite's word that is none's" 2 "batch=1: to which suite" "$msched" bench ops suite:ops_int8 batch=1
check "bench ops of no suite" 2 "there is no suite" "$msched" bench ops --suite fly
check "bench ops of no library" 1 "no library of oneDNN" "$msched" bench ops --onednn "$dir/fly" --trials 1
check "bench auto" 0 "NRM_1_b1   " env $unread "$msched" bench auto NRM_1_b1 --trials 1 --db "$dir/ops.db"
check "bench auto of a store" 0 '"limit":1.7' env $unread "$msched" bench auto NRM_1_b1 --db "$dir/ops.db" --json
check "bench auto by estimate" 0 '"median":' env $unread "$msched" bench auto NRM_1_b1 --no-tune --db "$dir/ops.db" --json
check "bench ablation" 0 "without register_tile " "$msched" bench ablation "ops:matmul(24,32,16)" --trials 1 --without register_tile --without group_sums --without constants
case $output in *"without group_sums"*"the same: it changes none of 1"*"without constants"*"the same: "*) ;; *) echo "bench ablation: $output" && failed=1 ;; esac
check "bench ablation of constants" 0 '"bench":"ablation total"' "$msched" bench ablation "ops:dense(24,32,16,constant=true)" --trials 1 --without constants --without rewrite_layout --json
case $output in *'"constants":'*'"rewrite_layout":'*'"changed":1'*) ;; *) echo "bench ablation of constants: $output" && failed=1 ;; esac
check "bench ablation of no rule" 1 "there is no rule, postprocessor or mutator" "$msched" bench ablation "ops:matmul(24,32,16)" --trials 1 --without fly
check "bench auto of no record" 1 "no record for" "$msched" bench auto SFM_1_b1 --db "$dir/ops.db"
check "bench lenet of nothing" 2 "takes a batch" "$msched" bench lenet fly
check "bench search" 0 "SFM       mutated" "$msched" bench search SFM --count 20 --trials 0
check "bench search of nothing" 1 "No such file" "$msched" bench search fly --count 1 --trials 0
check "bench kinds" 0 "ReverseComputeInline" "$msched" bench kinds --count 1
check "bench kinds of nothing (io)" 1 "cannot be read" "$msched" bench kinds --count 1 --cases "$dir/nothing"
check "bench of nothing" 2 "name a benchmark" "$msched" bench fly
check "bench model of an empty store" 1 "no store" "$msched" bench model --db "$dir/none.db"
check "bench gemm of no library" 1 "no library of oneDNN" "$msched" bench gemm --onednn "$dir/fly" --trials 1
check "bench of half a shape" 2 "three extents" "$msched" bench gemm -- 32 24
check "help of an instruction" 0 "sch:split(loop, {factors…}" "$msched" help Split
check "help of a query" 0 "read_stride" "$msched" help read_stride
check "help of a module" 0 ".placeholder(" "$msched" help te
check "help of a member" 0 "Registers a rule" "$msched" help ms.rule
check "help of a type" 0 ":find_module(workload: string, target: string, hash: string)" "$msched" help store
check "help of a method of a type" 0 "Removes the record" "$msched" help store:delete
check "help of nothing" 1 "nothing is named" "$msched" help fly
check "lower" 0 "B[7] = A[7] + T.float32(1.0)" \
  "$msched" lower "$dir/add.py" --trace "$dir/good.json" --target x86-64-v3
unpredicated="$(dirname -- "$0")/case/split/unpredicated_inside.case"
echo "from tvm.script import ir as I, tirx as T" >"$dir/past.py"
sed '1,/^### before/d; /^### trace/,$d' "$unpredicated" >>"$dir/past.py"
sed '1,/^### trace/d; /^### after/,$d' "$unpredicated" >"$dir/past.json"
check "lower, out of the regions, which are trusted" 0 "in T.grid(3, 4, 8):" \
  "$msched" lower "$dir/past.py" --trace "$dir/past.json" --dump-after loops
check "lower, after a pass" 0 "for i in range(8):" "$msched" lower "$dir/add.py" --dump-after blocks
check "lower, after each pass" 0 "# after flatten" "$msched" lower "$dir/add.py" --dump-after all
check "lower, after no pass (unknown_pass)" 1 "there are empty offer note_results threads place order delay stages blocks compact pad pipeline loops jam zeros unswitch partition remainders transpose dot_loops offsets halves strips promote tails unroll vectorize flatten forward lane_dots slides widen instruction tiles rounding legalize cse workspace nontemporal outline and all" \
  "$msched" lower "$dir/add.py" --dump-after fly
check "apply" 0 "for i_0, i_1 in T.grid(2, 4)" "$msched" apply "$dir/add.py" "$dir/good.json"
# B[i] = A[i] + 1 of 8, as a Lua script and as sections.
cat >"$dir/add8.lua" <<'END'
local ms, te = require "msched", require "msched".te
local A = te.placeholder({8}, "float32", "A")
local f = te.func("f", {A, te.compute({8}, function(i) return A[i] + 1.0 end, "B")})
ms.intrinsic {name = "add8", desc = f, impl = f}
END
for part in desc impl; do echo "### add8.$part" && sed 's/^def main/def f/' "$dir/add.py"; done >"$dir/add8.py"
for part in desc impl; do
  echo "### add8.$part"
  cat <<'END'
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32", offset_factor=1), B: T.Buffer((8,), "float32", offset_factor=1)):
    with T.sblock("root"):
        T.reads(A[0:8])
        T.writes(B[0:8])
        for k in T.serial(8):
            with T.sblock("B"):
                vi = T.axis.spatial(8, k)
                B[vi] = A[vi] + T.float32(1.0)
END
done >"$dir/update.py"
echo "[[$look,[\"Tensorize\",[\"l1\"],[\"add8\",1],[]]],[]]" >"$dir/add8.json"
check "apply --intrinsics FILE.lua" 0 "T.match_buffer(A[0:8], (8,)" \
  "$msched" apply --intrinsics "$dir/add8.lua" "$dir/add.py" "$dir/add8.json"
check "apply without the intrinsic (intrinsic_not_found)" 1 "there is no tensor intrinsic \`add8\`" \
  "$msched" apply "$dir/add.py" "$dir/add8.json"
check "apply --intrinsics of nothing" 1 "cannot open" \
  "$msched" apply --intrinsics "$dir/nothing.lua" "$dir/add.py" "$dir/add8.json"
check "apply --intrinsics FILE" 1 "bad_intrinsic" \
  "$msched" apply --json --intrinsics "$dir/add8.py" "$dir/add.py" "$dir/add8.json"
check "apply --intrinsics of what it is not" 1 "good.json: it defines no tensor intrinsic" \
  "$msched" apply --intrinsics "$dir/good.json" "$dir/add.py" "$dir/add8.json"
sed '/impl/,$d' "$dir/add8.py" >"$dir/half.py"
check "apply --intrinsics of half of one" 1 "half.py: \`add8\` lacks its description or its implementation" \
  "$msched" apply --intrinsics "$dir/half.py" "$dir/add.py" "$dir/add8.json"
head -c 300 "$dir/update.py" >"$dir/cut.py"
check "apply --intrinsics of a file cut short" 1 "cut.py" \
  "$msched" apply --intrinsics "$dir/cut.py" "$dir/add.py" "$dir/add8.json"
printf '### a\0' >"$dir/zero.py"
check "apply --intrinsics of a zero byte" 1 "zero.py: this is no text; tensor intrinsics come from" \
  "$msched" apply --intrinsics "$dir/zero.py" "$dir/add.py" "$dir/add8.json"
check "apply --intrinsics of the same twice" 0 "T.match_buffer(A[0:8], (8,)" \
  "$msched" apply --intrinsics "$dir/add8.lua" --intrinsics "$dir/add8.lua" "$dir/add.py" "$dir/add8.json"
check "apply --intrinsics of two of a name" 1 "update.py: there is an intrinsic \`add8\` already, which is another" \
  "$msched" apply --intrinsics "$dir/add8.lua" --intrinsics="$dir/update.py" "$dir/add.py" "$dir/add8.json"
check "run --intrinsics" 0 "the same results" \
  "$msched" run "$dir/add.py" --trace "$dir/add8.json" --intrinsics "$dir/update.py"
check "run without the intrinsic" 1 "there is no tensor intrinsic \`add8\`" "$msched" run "$dir/add.py" --trace "$dir/add8.json"
check "run --intrinsics of none, and no trace" 1 "No such file" "$msched" run "$dir/add.py" --intrinsics "$dir/none.py"
check "lower --intrinsics" 0 "+ T.float32(1.0)" \
  "$msched" lower "$dir/add.py" --trace "$dir/add8.json" --intrinsics "$dir/add8.lua"
check "lower --intrinsics of none" 1 "No such file" "$msched" lower "$dir/add.py" --intrinsics "$dir/none.py"
check "db import --intrinsics of none" 1 "No such file" \
  "$msched" db import "$dir/add8.json" --db "$dir/none.db" --intrinsics "$dir/none.py"
check "apply --json" 0 '{"ok":true,"script":"' "$msched" apply --json "$dir/add.py" "$dir/good.json"
check "convert" 0 '"Split",["l1",2,"None"],[true,false]' "$msched" convert "$dir/good.json"
check "convert --to lua" 0 "sch:split(v.l1, {2, ms.rest}, true, false)" "$msched" convert "$dir/good.json" --to lua
check "convert to nothing" 2 "there are json, lua and binary" "$msched" convert "$dir/good.json" --to fly
check "convert to what no suffix says" 2 "say which with --to" "$msched" convert "$dir/good.json" -o "$dir/fly"
check "convert nothing" 2 "give one trace" "$msched" convert
check "convert a broken trace" 1 "broken.json: " "$msched" convert "$dir/broken.json"
check "convert to nowhere" 1 "cannot be written" "$msched" convert "$dir/good.json" -o "$dir/none/x.json"
check "a refusal" 1 "instruction 2, Split" "$msched" apply "$dir/add.py" "$dir/bad.json"
check "a refusal as JSON" 1 '{"ok":false,"instruction":2,"kind":"Split","code":"factors_too_small","message":"' \
  "$msched" apply --json "$dir/add.py" "$dir/bad.json"
check "a broken trace" 1 '"code":"bad_trace"' "$msched" apply --json "$dir/add.py" "$dir/broken.json"
check "a broken function" 1 '"instruction":null,"kind":null' "$msched" apply --json "$dir/broken.py" "$dir/good.json"
check "no such file" 1 "No such file" "$msched" apply "$dir/none.py" "$dir/good.json"
check "a directory" 1 "Is a directory" "$msched" apply "$dir" "$dir/good.json"
check "run" 0 "compiled for llvm" "$msched" run "$dir/add.py"
check "run --json" 0 '"compiled":true' "$msched" run "$dir/add.py" --trace "$dir/good.json" --json
sed 's/B\[vi\] = .*/B[vi] = T.call_extern("float32", "nowhere", A[vi])/' "$dir/add.py" >"$dir/extern.py"
check "run of what nobody knows" 1 "nowhere" "$msched" run "$dir/extern.py"
check "bench ablation beside what cannot be tuned" 1 "without add_rfactor " \
  "$msched" bench ablation "$dir/extern.py" "ops:matmul(24,32,16)" --trials 1 --without add_rfactor
check "run for no target" 1 "target" "$msched" run "$dir/add.py" --target fly
check "run --trace" 0 "the same results" "$msched" run "$dir/add.py" --trace "$dir/good.json"
cat >"$dir/one.py" <<'E'
# from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(A: T.Buffer((65536,), "float32"), B: T.Buffer((65536,), "float32")):
    for i in range(65536):
        with T.sblock("B"):
            vi = T.axis.spatial(65536, i)
            B[vi] = A[vi] * T.if_then_else(vi == 40001, T.float32(4099), T.float32(1))
E
cat >"$dir/sum.py" <<'E'
# from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64, 512), "float32"), B: T.Buffer((64,), "float32")):
    for i, k in T.grid(64, 512):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
E
# The results go through float16: 4099 is none of its numbers, but all others that come of small integers are.
echo '[[["GetSBlock",[],["B","main"],["b"]],["CacheWrite",["b",[]],[0,"global"],["c"]],["UnsafeSetDType",["b"],[0,"float16"],[]]],[]]' >"$dir/short.json"
echo '[[],[]]' >"$dir/nothing.json"
check "run says how much is compared" 0 "whole outputs equal to the unscheduled build's (1 buffer, 65536 elements)" \
  "$msched" run "$dir/one.py" --steps 9999
check "run says how much is interpreted" 0 "elements of 65536" "$msched" run "$dir/one.py" --steps 9999
check "run of a kernel that is wrong at one element, which no sample meets" 1 "on small integers, " \
  "$msched" run "$dir/one.py" --trace "$dir/short.json" --steps 9999
check "the element" 1 "B[40001]: " "$msched" run "$dir/one.py" --trace "$dir/short.json" --steps 9999
check "run of no steps" 2 "from 1 on" "$msched" run "$dir/one.py" --steps 0
check "run of a sum in float16, exact on small integers" 1 "on real numbers, " \
  "$msched" run "$dir/sum.py" --trace "$dir/short.json"
check "run says that real numbers are the same too" 0 "so they are on real numbers, within" \
  "$msched" run "$dir/sum.py" --trace "$dir/nothing.json"
check "bench" 0 '"workload":"GMM1024"' "$msched" bench replay --count 30 --json
check "standard input" 0 "T.grid(2, 4)" sh -c "'$msched' apply - '$dir/good.json' <'$dir/add.py'"

pairs=$("$msched" apply --json "$dir/add.py" "$dir/good.json" "$dir/add.py" "$dir/bad.json" | wc -l)
if [ "$pairs" -ne 2 ]; then
  echo "two pairs: $pairs lines"
  failed=1
fi
# Help, completion and the man page name the same options; the help is made of the table that the parser reads.
completed() { # the words typed, the last one to be completed
  bash -c 'complete() { :; }; . "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _msched; printf "%s\n" "${COMPREPLY[@]}"' \
    completion "$root/lua/completion.bash" "$msched" "$@" | sort -u | tr '\n' ' '
}
sorted() { grep -oE -- '--?[a-z][a-z-]*' | sort -u | tr '\n' ' '; }
documented() { # what the man page's entries of a command name
  awk -v command="$1" '
    /^\.SH/ { within = /COMMANDS/; mine = 0 }
    /^\.RS/ { depth++ }
    /^\.RE/ { depth-- }
    heads { split($0, word, " "); mine = word[2] == command; heads = 0 }
    /^\.TP/ && !depth { heads = 1 }
    within && mine' "$root/lua/msched.1" | sed 's/\\-/-/g' | grep -oE -- '(^|[ "])--?[a-z][a-z-]*' | sorted
}
root=$(dirname "$0")/..
commands=$("$msched" help commands | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
for command in $commands; do
  "$msched" help "$command" >"$dir/help"
  helped=$(sed -nE 's/^  (-[a-z], )?(--?[a-z][a-z-]*) .*/\1\2/p' "$dir/help" | sorted)
  completed=$(completed "$command" - | sorted)
  documented=$(documented "$command")
  if [ "$helped" != "$completed" ] || [ "$helped" != "$documented" ]; then
    echo "$command: help names $helped, completion $completed, the man page $documented"
    failed=1
  fi
  # Each is taken, with a value where the help has one: of all of them in a row the first unknown one is the last.
  taken=$(sed -nE 's/^  (-[a-z]), (--[a-z-]*)/  \1 x\n  \2/; /^  -/p' "$dir/help" | sed -nE 's/^  (--?[a-z][a-z-]*) NAME=N.*/\1=n=1/p; t; s/^  (--?[a-z][a-z-]*) [^ ].*/\1=1/p; s/^  (--?[a-z][a-z-]*)(  .*|$)/\1/p')
  # shellcheck disable=SC2086
  check "$command takes its options" 2 "unknown option --fly" "$msched" "$command" $taken --fly
done
completes() { # expected, words
  expected=$1
  shift
  got=$(completed "$@")
  [ "$got" = "$expected " ] || { echo "completion of $*: $got, not $expected"; failed=1; }
}
completes "replay" bench re
completes "growth" bench replay growt
completes "compact" db comp
completes "xgboost" tune --model xgb
completes "replay_trace" tune --policy replay_tr
completes "$root/lua/msched.1" export 0 -o "$root/lua/msched.1"
completes "tune" tun
completes "queries" help quer
completes "conv2d conv2d_bn_relu conv2d_capsule conv2d_transpose" tune ops : conv2d
completes "attention bert llm_decode ops ops_bf16 ops_int8 products subgraphs" tune suite :
check "help of options" 0 "  --jobs N                 workers that replay candidates (one a core)" "$msched" help tune
check "help of forms" 0 "msched bench replay [NAME… | all | growth] [--seconds N]" "$msched" help bench
check "an option of another form" 2 "unknown option --trials" "$msched" bench replay --trials 3
check "no option is meant that is of another form" 2 "unknown option --db
usage" "$msched" bench gemm --db s.db
check "an option before the form" 2 "unknown option --count" "$msched" bench --count 3 gemm
check "a whole number in another way" 0 '"replays":' "$msched" bench replay --count=1e1 --json
check "no whole number" 2 "--seed takes a whole number, not \"1.5\"" "$msched" run --seed 1.5 "$dir/add.py"
check "a number below 0" 2 "--seconds takes a number of at least 0, not \"-1\"" "$msched" tune x.lua --seconds -1
check "no number that is finite" 2 "--seconds takes a number" "$msched" tune x.lua --seconds inf
check "a number of Lua" 2 "is too large" "$msched" tune x.lua --seed 18446744073709551615
check "a flag with a value" 2 "--json takes no value" "$msched" run --json=1 "$dir/add.py"
check "no value" 2 "--seed takes a value" "$msched" run "$dir/add.py" --seed
check "an argument like an option" 1 "--json: No such file" "$msched" convert -- --json
exit $failed
