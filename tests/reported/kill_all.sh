#!/bin/sh
# A fork that failed left -1 as the number of a process, and kill(-1) ended every process of the user. Where processes
# cannot be started, the run ends with one line of error, and a bystander of the same user lives.
. "$(dirname -- "$0")/expect.sh"

# As a user without other processes, in a process namespace of its own where that is allowed.
if [ -z "${REPORTED_ALONE:-}" ] && [ "$(id -u)" = 0 ] && unshare --pid --fork true 2>/dev/null; then
  cd / && rm -rf "$scratch"
  REPORTED_ALONE=1 exec unshare --pid --fork sh "$here/kill_all.sh" "$program"
fi
[ "$(id -u)" = 0 ] || { echo "kill_all: only root can have a user of its own for this"; exit 77; }
user=$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 40000))
as="setpriv --reuid=$user --regid=$user --clear-groups"
chmod 755 "$scratch"

bystander=
trap '[ -z "$bystander" ] || kill "$bystander" 2>/dev/null || true; rm -rf "$scratch"' EXIT
$as sleep 1000 &
bystander=$!
sleep 0.2

few="1 2 3 4 5 6 7 8"
[ "${MSCHED_REPORTED:-}" = all ] && few="$few 9 10 11 12 13 14 15 16"
ended=0
for limit in $few; do
  folder=$scratch/$limit status=0
  mkdir "$folder"
  chown "$user" "$folder"
  # shellcheck disable=SC2086
  prlimit --nproc="$limit" timeout 60 $as env -i "$program" tune ops:matmul --trials 4 --db "$folder/n.db" \
    --target "native -num-cores=1" -- 64 64 64 >"$folder/out" 2>"$folder/err" </dev/null || status=$?
  kill -0 "$bystander" 2>/dev/null || fail "a limit of $limit processes: the bystander was killed"
  case $status in
  0) ;;
  1)
    [ "$(wc -l <"$folder/err")" = 1 ] || fail "a limit of $limit processes: not one line of error: $(cat "$folder/err")"
    grep -qE 'Resource temporarily unavailable.*ulimit -u' "$folder/err" ||
      fail "a limit of $limit processes: it does not say what to do: $(cat "$folder/err")"
    ended=$((ended + 1))
    ;;
  *) fail "a limit of $limit processes: status $status: $(tail -n 3 "$folder/err")" ;;
  esac
done
[ "$ended" -gt 0 ] || fail "no limit kept it from starting processes"
