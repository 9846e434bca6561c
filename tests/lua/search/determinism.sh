#!/bin/sh
# --deterministic with real times: two fresh stores, 1 and 2 jobs, on an idle machine and on a busy one, the same
# candidates in the same order; a run that is stopped goes on with them; what depends on time is refused.
# usage: determinism.sh MSCHED ROOT
set -eu
msched=$1 root=$2
work=$(mktemp -d)
busy=
trap '[ -z "$busy" ] || kill $busy 2>/dev/null || true; rm -rf "$work"' EXIT
fail() { echo "determinism.sh: $*" >&2; exit 1; }

# Hashes in the order in which they were asked for, of an own store.
asked() { # name, options…
  name=$1
  shift
  "$msched" tune "$root/lua/examples/gemm.lua" --deterministic --trials 8 --db "$work/$name.db" --json "$@" -- 48 64 32 >"$work/$name.json" || fail "$name: exit status $?"
  sed -n 's/.*"event":"asked".*"hashes":\[\([^]]*\)\].*/\1/p' "$work/$name.json" | tr ',' '\n' | grep . >"$work/$name.hashes"
}

for policy in analytical annealing; do
  asked "$policy.idle" --policy $policy --jobs 1
  [ "$(wc -l <"$work/$policy.idle.hashes")" = 8 ] || fail "$policy: $(wc -l <"$work/$policy.idle.hashes") candidates"
  for _ in 1 2; do
    (while :; do :; done) &
    busy="$busy $!"
  done
  asked "$policy.busy" --policy $policy --jobs 2
  kill $busy
  wait $busy 2>/dev/null || true
  busy=
  cmp "$work/$policy.idle.hashes" "$work/$policy.busy.hashes" || fail "$policy: other candidates on a busy machine"
done

# Stopped after the first trials, and gone on with: what the store has is not measured again.
first=$work/analytical.idle
"$msched" tune "$root/lua/examples/gemm.lua" --deterministic --trials 5 --db "$work/stopped.db" --json -- 48 64 32 >"$work/stopped.json"
asked stopped
sed -n 's/.*"event":"asked".*"hashes":\[\([^]]*\)\].*/\1/p' "$work/stopped.json" | tr ',' '\n' | grep . | cmp - "$first.hashes" || fail "gone on: other candidates"
[ "$(grep -c '"event":"trial"' "$work/stopped.json")" -le 3 ] || fail "what the store had was measured again"

for option in "--seconds 5" "--policy-timeout 5" "--failures 3" --skip-failing "--scheduler gain" --no-tune; do
  # shellcheck disable=SC2086
  if "$msched" tune "$root/lua/examples/gemm.lua" --deterministic $option --db "$work/none.db" -- 8 8 8 2>"$work/err"; then fail "$option is taken"; fi
  grep -q "deterministic does not go with ${option%% *}" "$work/err" || fail "$option: $(cat "$work/err")"
done
echo "determinism: ok"
