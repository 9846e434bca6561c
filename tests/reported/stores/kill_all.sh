#!/bin/sh
# A fork that failed left -1 as the number of a process, and kill(-1) ended every process of the user. Where processes
# cannot be started, the run ends with one line of error, and a bystander of the same user lives.
. "$(dirname -- "$0")/../expect.sh"

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

# Processes, then cores: on more, threads cannot be had either, which are no candidate's fault.
few="1:1 2:1 3:1 4:1 5:1 1:2 2:2 5:2 6:2"
[ "${MSCHED_REPORTED:-}" != all ] || few="$few 6:1 7:1 8:1 9:1 10:1 3:2 4:2 7:2 8:2 9:2 10:2 11:2 12:2 6:4 8:4 10:4 12:4"
ended=0
for each in $few; do
  limit=${each%:*} cores=${each#*:} folder=$scratch/$each status=0
  mkdir "$folder"
  chown "$user" "$folder"
  # shellcheck disable=SC2086
  prlimit --nproc="$limit" timeout 60 $as env -i "$program" tune ops:matmul --trials 4 --db "$folder/n.db" \
    --target "native -num-cores=$cores" -- 64 64 64 >"$folder/out" 2>"$folder/err" </dev/null || status=$?
  kill -0 "$bystander" 2>/dev/null || fail "a limit of $limit processes: the bystander was killed"
  case $status in
  0) ! grep -qE 'failed: (crashed|build|not)' "$folder/out" || fail "$limit processes cost candidates: $(tail -n 3 "$folder/out")" ;;
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
