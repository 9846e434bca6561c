#!/bin/sh
# The spaces of 19 operators: 200 candidates of each are drawn for both targets, BUILDS of those for this CPU built;
# then each operator is tuned with 16 trials, and no candidate fails. (Two have fewer candidates.) Without WORKLOAD, 20
# candidates of every operator that is named are compared with it too.
# usage: space.sh MSCHED ROOT BUILDS [WORKLOAD…]
set -eu
msched=$1 root=$2 builds=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ $# -gt 0 ] || "$msched" "$root/tests/lua/space/op_spaces.lua" 20
"$msched" "$root/tests/lua/space/spaces.lua" "$root" 200 "$builds" "$@"
[ $# -gt 0 ] || set -- C1D C2D C3D CAP CBR DEP DIL ELT GMM GMM1024 GMM2 GMM_RELU GMM_ROW GRP NRM POOL SFM T2D TBG
failed=
for name in "$@"; do
  "$msched" tune "$root/lua/bench/data/workloads/$name.py" --trials 16 --db "$work/$name.db" --json >"$work/tuned"
  end=$(tail -n 1 "$work/tuned")
  echo "$name: $(echo "$end" | sed 's/.*\("best_seconds":[^,]*\),.*\("ended":[^,]*\),.*\("failures":{[^}]*}\).*\("trials":[0-9]*\).*/\4 \1 \2 \3/')"
  case $end in
  *'"ended":"trials"'*'"failures":{}'* | *'"ended":"exhausted"'*'"failures":{}'*) ;;
  *) failed="$failed $name" ;;
  esac
done
[ -z "$failed" ] || { echo "space.sh: candidates failed, or trials are left:$failed" >&2; exit 1; }
