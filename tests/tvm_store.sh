#!/bin/sh
# A store of ours as TVM opens it. Skipped where TVM is not installed; MSCHED_TVM names a Python that has it.
# usage: tvm_store.sh MSCHED
set -eu
msched=$1
here=$(dirname "$0")
python=${MSCHED_TVM:-${MSCHED_PEER:-python3}} # MSCHED_PEER: what it was called
"$python" -c 'import tvm.s_tir.meta_schedule' 2>/dev/null || { echo "tvm_store.sh: $python has no TVM: skipped"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/tvm/store" "$work/theirs"
"$msched" db import "$work/theirs" --db "$work/store.db" >"$work/out"
"$msched" db export --tvm "$work/ours" --db "$work/store.db" >"$work/out"
"$python" "$here/tvm_store.py" "$work/theirs" "$work/ours"
