# A function of many blocks: its space opens in seconds and little memory, whatever their number.
. "$(dirname -- "$0")/../expect.sh"

command -v python3 >/dev/null || exit 77
counts=500
[ "${MSCHED_REPORTED:-}" = all ] && counts="500 2000"
for count in $counts; do
  python3 "$here/gen_blocks.py" "$count"
  start=$(date +%s%N)
  (ulimit -v 1000000 && exec "$program" space g.py) >space.lua 2>errors ||
    fail "$count blocks: $(tail -n 3 errors)"
  took=$((($(date +%s%N) - start) / 1000000))
  [ "$took" -lt 20000 ] || fail "$count blocks took $took ms"
  grep -q 'sketch 1 of 1' space.lua || fail "$count blocks: no sketch"
  lines=$(wc -l <space.lua)
  [ "$lines" -lt $((6 * count)) ] || fail "$count blocks gave a trace of $lines lines: longer than the function"
done
