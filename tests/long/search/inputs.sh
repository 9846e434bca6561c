#!/bin/sh
# Tunes the four inputs that the examples are with 64 trials each; every best must give what an untuned build gives,
# everywhere, and what the interpreter gives at samples of the outputs.  usage: inputs.sh MSCHED ROOT [TRIALS]
set -eu
msched=$1 root=$2 trials=${3:-64}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
number() { # of a field of the object in the file
  sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p" "$2"
}
for input in gemm.lua conv2d_bn_relu.lua softmax.lua gemm.py; do
  db=$work/$input.db
  "$msched" tune "$root/lua/examples/$input" --trials "$trials" --db "$db" --json >"$work/log"
  id=$(sed -n 's/.*"event":"end".*"best":"\([0-9a-f]*\)".*/\1/p;s/.*"best":"\([0-9a-f]*\)".*"event":"end".*/\1/p' "$work/log" | tail -n 1)
  "$msched" replay "$id" --db "$db" --json >"$work/replay"
  "$msched" replay "$id" --db "$db"
  awk -v a="$(number difference "$work/replay")" -v b="$(number interpreted "$work/replay")" -v n="$(number interpreted_elements "$work/replay")" \
    'BEGIN { exit !(a <= 1e-5 && b <= 1e-5 && n > 0) }' || { echo "$input: differs"; failed=1; }
  "$msched" db check --db "$db" >/dev/null || failed=1
done
[ $failed -eq 0 ] && echo "inputs: ok"
exit $failed
