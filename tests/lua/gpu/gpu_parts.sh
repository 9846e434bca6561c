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
chmod +x "$work/msched" "$work/compute-sanitizer"
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
STUB=hangs parts 1 check
[ $status = 1 ] || fail "a part that never ends is no failure: $(cat "$work/said")"
became check "out of time" draws
parts 9 fly
[ $status = 2 ] && grep -q "there is no part \`fly\`; there are check tune faults ops memcheck" "$work/said" || fail "a part that is none: $(cat "$work/said")"
echo "gpu_parts: ok"
