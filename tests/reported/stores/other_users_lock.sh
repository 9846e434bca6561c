#!/bin/sh
# A store that two users share, one of whom makes files for itself alone: the lock was such a file, and the message
# named the store, which the other may read and write.
# usage: other_users_lock.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"

[ "$(id -u)" = 0 ] && command -v setpriv >/dev/null || exit 77
other="setpriv --reuid=65534 --regid=65534 --clear-groups"
chmod 777 .
$other test -x "$program" || exit 77
sed 2d "$here/zero_seconds.jsonl" >good.jsonl
expect_status 0 "$program" db import good.jsonl --db s.db
chmod 666 s.db
chmod 600 s.db-lock
for command in top "db check"; do
  # shellcheck disable=SC2086
  $other "$program" $command --db s.db >output 2>&1 && fail "$command: the lock is another user's"
  expect_output "s.db-lock: the store's lock is another user's"
done
chmod 666 s.db-lock
expect_status 0 $other "$program" top --db s.db
