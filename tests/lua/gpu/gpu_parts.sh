#!/bin/sh
# tests/run gpu without a GPU: each part gets its share of the time, one that fails or does not end stops no other, and
# the table says what became of each. The program is one that does as it is told.
# usage: gpu_parts.sh SOURCES
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "gpu_parts: $*"; exit 1; }
cat >"$work/msched" <<'END'
#!/bin/sh
case $1 in
*gpu.lua) echo "draws $2, seed $3, seconds $4"; [ "${STUB:-}" != hangs ] || sleep 60; exit "${STUB_STATUS:-0}" ;;
*) echo "refused" >&2; exit 1 ;;
esac
END
cat >"$work/compute-sanitizer" <<'END'
#!/bin/sh
[ "$1 $3 $5 $6" = "--tool --error-exitcode --target-processes all" ] || exit 3
shift 6
exec "$@"
END
cat >"$work/ncu" <<'END'
#!/bin/sh
case "$*" in
"--csv --target-processes all --kernel-name regex:"*" --metrics l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum,"*" bench ops "*) ;;
*) exit 3 ;;
esac
echo '"0","1","msched","host","F16_3_b1_kernel_0","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0","Command line profiler metrics","l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum","","12"'
END
chmod +x "$work/msched" "$work/compute-sanitizer" "$work/ncu"
parts() { # seconds, parts…
  seconds=$1
  shift
  status=0
  sh "$root/tests/long/gpu.sh" "$work/msched" "$root" /nonexistent "$work/out" "$seconds" 5 8 3 "$@" >"$work/said" 2>&1 || status=$?
}
became() { grep -q "^$1 *$2 .*$3" "$work/said" || fail "no \`$1 $2 $3\` in: $(cat "$work/said")"; }

# The tuner fails here at once, and what comes after it goes on; of 42 seconds check has 12 parts of 42.
parts 42 check tune
[ $status = 1 ] || fail "a part that fails is no failure: $(cat "$work/said")"
became check passed "draws 5, seed 3, seconds 12"
became tune "FAILED (1)" refused
STUB_STATUS=77 parts 9 check
[ $status = 0 ] || fail "what is skipped fails: $(cat "$work/said")"
became check skipped draws
PATH="$work:$PATH" parts 11 memcheck racecheck
became memcheck passed "seconds 6"
became racecheck passed "seconds 5"
parts 6 ncu
became ncu skipped "skipped: "
: >"$work/out/ops.db"
PATH="$work:$PATH" parts 6 ncu
became ncu passed "ncu: F16_3_b1_kernel_0: l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum 12"
[ "$(wc -l <"$work/out/ncu.csv")" -eq 3 ] || fail "not three calls of ncu: $(cat "$work/out/ncu.csv")"
STUB=hangs parts 1 check
[ $status = 1 ] || fail "a part that never ends is no failure: $(cat "$work/said")"
became check "out of time" draws
parts 9 fly
[ $status = 2 ] && grep -q "there is no part \`fly\`; there are check tune faults ops memcheck" "$work/said" || fail "a part that is none: $(cat "$work/said")"
echo "gpu_parts: ok"
