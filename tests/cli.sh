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

cat >"$dir/add.py" <<'END'
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] + T.float32(1.0)
END
look='["GetSBlock",[],["B","main"],["b0"]],["GetLoops",["b0"],[],["l1"]]'
echo "[[$look,[\"Split\",[\"l1\",2,\"None\"],[1,0],[\"l2\",\"l3\"]]],[]]" >"$dir/good.json"
echo "[[$look,[\"Split\",[\"l1\",2,3],[1,0],[\"l2\",\"l3\"]]],[]]" >"$dir/bad.json"
echo "[[$look" >"$dir/broken.json"
echo "def" >"$dir/broken.py"

check "no arguments" 0 "42" sh -c "echo 6 '*' 7 | '$msched'"
check "--help" 0 "usage: msched" "$msched" --help
check "--version" 0 "msched " "$msched" --version
check "unknown command" 2 'unknown command "fly"' "$msched" fly
check "unknown option" 2 "unknown option --fly" "$msched" apply --fly
check "no number" 2 'takes a number, not "x"' "$msched" apply --seed x "$dir/add.py" "$dir/good.json"
check "no trace" 2 "usage: msched apply" "$msched" apply "$dir/add.py"
check "help of a command" 0 "usage: msched apply" "$msched" apply --help
check "bench replay of a workload" 0 "cuda/NRM" "$msched" bench replay cuda/NRM --count 10
check "bench replay of growth" 0 "growth/GMMx16" "$msched" bench replay growth --count 2
check "bench replay of nothing" 1 "No such file" "$msched" bench replay fly --count 1
check "bench gemm" 0 '"bench":"gemm"' "$msched" bench gemm --trials 2 --json -- 32 24 40
check "bench tune" 0 "tune: 2 trials" "$msched" bench tune --trials 2 -- 32 24 40
check "bench of nothing" 2 "name a benchmark" "$msched" bench fly
check "bench of half a shape" 2 "three extents" "$msched" bench gemm -- 32 24
check "help of an instruction" 0 "sch:split(loop, {factors…}" "$msched" help Split
check "help of a query" 0 "read_stride" "$msched" help read_stride
check "help of nothing" 1 "nothing is named" "$msched" help fly
check "apply" 0 "for i_0, i_1 in T.grid(2, 4)" "$msched" apply "$dir/add.py" "$dir/good.json"
check "apply --json" 0 '{"ok":true,"script":"' "$msched" apply --json "$dir/add.py" "$dir/good.json"
check "a refusal" 1 "instruction 2, Split" "$msched" apply "$dir/add.py" "$dir/bad.json"
check "a refusal as JSON" 1 '{"ok":false,"instruction":2,"kind":"Split","code":"factors_too_small","message":"' \
  "$msched" apply --json "$dir/add.py" "$dir/bad.json"
check "a broken trace" 1 '"code":"bad_trace"' "$msched" apply --json "$dir/add.py" "$dir/broken.json"
check "a broken function" 1 '"instruction":null,"kind":null' "$msched" apply --json "$dir/broken.py" "$dir/good.json"
check "no such file" 1 "No such file" "$msched" apply "$dir/none.py" "$dir/good.json"
check "a directory" 1 "Is a directory" "$msched" apply "$dir" "$dir/good.json"
check "run" 0 "results" "$msched" run "$dir/add.py"
check "run --trace" 0 "the same results" "$msched" run "$dir/add.py" --trace "$dir/good.json"
check "bench" 0 '"workload":"GMM1024"' "$msched" bench replay --count 30 --json
check "standard input" 0 "T.grid(2, 4)" sh -c "'$msched' apply - '$dir/good.json' <'$dir/add.py'"

pairs=$("$msched" apply --json "$dir/add.py" "$dir/good.json" "$dir/add.py" "$dir/bad.json" | wc -l)
if [ "$pairs" -ne 2 ]; then
  echo "two pairs: $pairs lines"
  failed=1
fi
# Help and completion name the same options.
completion=$(dirname "$0")/../lua/completion.bash
options_of() { grep -oE -- '(^|[[ "])(--[a-z][a-z-]*|-[a-z])' | grep -oE -- '--?[a-z][a-z-]*' | sort -u | tr '\n' ' '; }
for command in apply run bench tune top show replay export db space doctor; do
  helped=$("$msched" help $command | head -n 1 | options_of)
  completed=$(sed -n "s/^  $command) options=//p" "$completion" | options_of)
  if [ "$helped" != "$completed" ]; then
    echo "$command: help names $helped, completion $completed"
    failed=1
  fi
done
exit $failed
