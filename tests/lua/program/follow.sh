#!/bin/sh
# A page that follows a run: written again while a tuner writes, whole at every moment; a tuner that is killed; a store
# that is not there yet, is replaced or cannot be read for a while; pages that cannot be written; how it ends.
# usage: follow.sh MSCHED ROOT [LIBINJECT]
set -eu
msched=$1 root=$2 library=${3:-}
work=$(mktemp -d)
follower='' tuner=''
trap 'for each in $follower $tuner; do kill -9 $each 2>/dev/null || true; done; rm -rf "$work"' EXIT
cd "$work"
fail() { echo "follow.sh: $*" >&2; cat out err >&2 2>/dev/null || true; exit 1; }
wait_for() { # seconds, what is waited for, command…
  tries=$(($1 * 10)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || fail "it does not come: $what"
    sleep 0.1
  done
}
follow() { # what the one before printed is not waited for
  rm -f out err
  "$msched" report --follow "$@" >out 2>err & follower=$!
}
ends() { # with a status, within a minute
  tries=600 got=0
  while kill -0 "$follower" 2>/dev/null && [ $tries -gt 0 ]; do tries=$((tries - 1)) && sleep 0.1; done
  [ $tries -gt 0 ] || kill -9 "$follower" 2>/dev/null || true
  wait "$follower" || got=$?
  [ $got = "$1" ] || fail "it ends with $got, not $1"
  follower=''
}
is_whole() { head -n 1 "$1" | grep -qx '<!DOCTYPE html>' && tail -n 1 "$1" | grep -qx '</html>'; }
is_like_a_report() { # a page that has ended is as any report of the store
  "$msched" report -o plain.html --db "$2" "${3:---json}" >/dev/null
  cmp -s "$1" plain.html || { diff "$1" plain.html | head -n 6 >&2; fail "$1 is not what report makes"; }
}
leaves_nothing() { # beside the page
  for file in "$1".*; do [ ! -e "$file" ] || fail "$file is left"; done
}
refused() { # status, words, options…
  status=$1 words=$2
  shift 2
  got=0
  timeout 60 "$msched" report --follow "$@" >out 2>err || got=$?
  [ $got = "$status" ] && grep -qF -- "$words" err || fail "status $got, or another message than: $words"
}
tune() { "$msched" tune "$@" --seed 1 --db s.db >tuned 2>&1; }

# What does not go together.
refused 2 "--follow does not go with --compare" --compare a.db b.db -o p.html
refused 2 "--follow does not go with --peak" --peak -o p.html --db s.db
refused 2 "say where to with -o FILE" --db s.db
refused 2 "--until-idle: a number of seconds above 0 is expected" --until-idle 0 -o p.html --db s.db
got=0
"$msched" report --until-idle 3 -o p.html --db s.db >out 2>err || got=$?
[ $got = 2 ] && grep -q -- '--until-idle goes with --follow' err || fail "--until-idle alone"

# A store that is not there yet, then a tuner that writes it: a page is whole whenever it is read, and at most one comes
# a second.
follow --json -o p.html --db s.db
wait_for 60 "a page" test -s p.html
grep -q 'There is no store yet: s.db' p.html && grep -q '<body data-follow="2" data-written="[0-9]*">' p.html && grep -q 'http-equiv="refresh"' p.html || fail "the first page"
begun=$(date +%s)
tune 'ops:matmul(32,32,32)' 'ops:relu(64x64)' --trials 12 --policy random &
tuner=$!
reads=0
while kill -0 $tuner 2>/dev/null; do
  cp p.html seen.html && is_whole seen.html || fail "a page is not whole"
  reads=$((reads + 1))
done
wait $tuner || { cat tuned; fail "the tuner fails beside it"; }
tuner=''
[ $reads -gt 3 ] || fail "nothing was read"
records=$("$msched" top -k 1000 --db s.db --json | wc -l)
wait_for 60 "the last record" sh -c "tail -n 1 out | grep -q '\"records\":$records,\"tasks\":2'"
kill -INT $follower
ends 0
elapsed=$(($(date +%s) - begun))
[ "$(wc -l <out)" -ge 3 ] && [ "$(wc -l <out)" -le $((elapsed + 4)) ] || fail "$(wc -l <out) pages in $elapsed seconds"
[ "$(grep -c '"ended":true' out)" = 1 ] && tail -n 1 out | grep -q '"ended":true,"file":"p.html","records":' || fail "the last page"
! grep -q 'data-follow=\|http-equiv="refresh"\|id="follow"' p.html || fail "a page that has ended follows"
is_like_a_report p.html s.db
leaves_nothing p.html
[ ! -s err ] || fail "something is said"

# A tuner that is killed: what it kept is shown.
"$msched" tune 'ops:softmax(64x64)' --trials 100000 --policy random --db k.db >tuned 2>&1 &
tuner=$!
follow --json -o k.html --db k.db
wait_for 120 "a record" sh -c "'$msched' top --db k.db | grep -q ' us '"
kill -9 $tuner
wait $tuner 2>/dev/null || true
tuner=''
records=$("$msched" top -k 100000 --db k.db --json | wc -l)
wait_for 60 "all that the killed one kept" sh -c "tail -n 1 out | grep -q '\"records\":$records,'"
kill -INT $follower
ends 0
is_like_a_report k.html k.db
# It ends by itself when the store rests.
follow -o k.html --until-idle 2 --db k.db
ends 0
grep -q '^k.html: follows k.db' out && grep -q '^k.html: 1 task, .* written [0-9]* time' out || fail "its last line"
is_like_a_report k.html k.db
# SIGTERM ends it as Ctrl-C does; tasks that are named alone are shown.
follow relu_64x64 -o one.html --db s.db
wait_for 60 "a page of one task" test -s one.html
kill -TERM $follower
ends 0
is_like_a_report one.html s.db relu_64x64
refused 1 "has no workload \`fly\`" fly -o p.html --db s.db

# Where the page cannot be: refused at once, and nothing is left.
refused 1 "no/p.html: No such file or directory" -o no/p.html --db s.db
mkdir folder
refused 1 "folder: this is a folder, and no file that can be replaced" -o folder --db s.db
refused 1 "/dev/full: this is a device or a pipe, and no file" -o /dev/full --db s.db
ln -s /nonexistent/page.html dangling
refused 1 "dangling" -o dangling/ --db s.db
# Its rights stay; a link stays one, and what it leads to is written.
echo old >real.html && chmod 640 real.html && ln -s real.html link.html
follow -o link.html --until-idle 1 --db s.db
ends 0
[ -L link.html ] && [ "$(stat -c %a real.html)" = 640 ] && cmp -s real.html plain.html || { is_like_a_report real.html s.db; [ -L link.html ] && [ "$(stat -c %a real.html)" = 640 ] || fail "a link, or rights"; }

# A folder that goes away for a while: said once, and the page comes when it can be written.
mkdir away
follow -o away/p.html --db s.db
wait_for 60 "a page" test -s away/p.html
mv away gone
tune 'ops:relu(8x8)' --trials 1
wait_for 60 "a message" grep -q 'away/p.html: No such file or directory; it is tried again' err
mkdir away
wait_for 60 "the page again" grep -q 'relu_8x8' away/p.html
wait_for 60 "that it is over" grep -q 'this is over' err
kill -INT $follower
ends 0
[ "$(grep -c 'tried again' err)" = 1 ] || fail "it is said more than once"
is_like_a_report away/p.html s.db
follow -o away/p.html --db s.db
wait_for 60 "its line" grep -q 'Ctrl-C ends it' out
rm -r away
kill -INT $follower
ends 1
grep -q 'away/p.html: No such file or directory' err || fail "a last page that cannot be written"

# A store that cannot be read for a while: the page that was stays, and says so; a mistake at the start is refused.
printf 'no store at all, and long enough to be read as pages\n%.0s' $(seq 400) >bad.db
refused 1 "bad.db: " -o bad.html --db bad.db
[ ! -e bad.html ] || fail "a page of no store"
cp s.db t.db
follow -o t.html --db t.db
wait_for 60 "a page" grep -q 'relu_8x8' t.html
cp bad.db t.new && mv t.new t.db
wait_for 60 "a message" grep -q 't.db: .*; it is tried again' err
wait_for 60 "it in the page" grep -q 'The store cannot be read now: ' t.html
grep -q 'relu_8x8' t.html || fail "the page that was is gone"
"$msched" db merge s.db --db u.db >/dev/null
mv u.db t.db
wait_for 60 "that it is over" grep -q 'this is over' err
# Another file in its place, as repair makes one, is read.
"$msched" tune 'ops:relu(4x4)' --no-tune --db t.db >/dev/null
wait_for 60 "the new store's task" grep -q 'relu_4x4' t.html
"$msched" db prune -k 1 --db t.db >/dev/null
rm t.db t.db-lock
wait_for 60 "that it is gone" sh -c "[ \$(grep -c 'there is no store.*tried again' err) = 1 ]"
kill -INT $follower
ends 0
grep -q 'relu_4x4' t.html && ! grep -q 'id="follow"' t.html || fail "the last page of a store that is gone"

# A full disk, always and once; a page that cannot take its place.
if [ -n "$library" ]; then
  inject() { exec env LD_PRELOAD="$library" INJECT_STATE=state INJECT_LOG=log INJECT_FAIL="$1" "$msched" report --follow -o d.html --db s.db; }
  for failing in host:write:0:ENOSPC host:rename:0:EIO; do
    rm -f state log d.html
    (inject $failing) >out 2>err && fail "a page, where $failing"
    grep -q 'd.html: \(No space left on device\|Input/output error\)' err && [ ! -e d.html ] || fail "$failing"
    leaves_nothing d.html
  done
  rm -f state log
  inject host:write:2:ENOSPC >out 2>err &
  follower=$!
  wait_for 60 "a page" test -s d.html
  tune 'ops:relu(12x4)' --trials 1
  wait_for 60 "a failure" grep -q '^failed' log
  is_whole d.html || fail "a part of a page"
  wait_for 60 "the page" grep -q 'relu_12x4' d.html
  kill -INT $follower
  ends 0
  is_like_a_report d.html s.db
  leaves_nothing d.html
fi
echo "follow: ok"
