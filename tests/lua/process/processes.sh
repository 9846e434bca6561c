#!/bin/sh
# What a run does where processes cannot be started: one that fails once is started again, and costs no candidate; where
# none can be, the run ends with one line that says what to do.
# usage: processes.sh MSCHED LIBINJECT
set -eu
program=$1 library=$2 here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "processes: $failure: $*: $(tail -n 3 out err)" >&2; exit 1; }
run() { # what fails, a command of msched…
  failure=$1
  shift
  rm -f state log s.db
  status=0
  env LD_PRELOAD="$library" INJECT_STATE=state INJECT_LOG=log INJECT_FAIL="$failure" timeout 60 "$program" "$@" >out 2>err \
    </dev/null || status=$?
  grep -q '^failed' log || fail "nothing failed"
  ! grep -E '^kill .* (foreign|all)$' log || fail "others are signalled"
}
tune() { # what fails
  run "$1" tune ops:matmul --trials 2 --jobs 1 --target "native -num-cores=1" --db s.db -- 8 8 8
}

# The reference, the builder and the runner: each is a fork of the helper.
for failing in helper:fork:1:EAGAIN helper:fork:2:EAGAIN helper:fork:3:ENOMEM helper:socketpair:2:EMFILE \
  helper:memfd_create:3:ENFILE child:prctl:1:EPERM child:dup2:3:EBADF child:setrlimit:7:EPERM; do
  tune $failing
  [ "$status" = 0 ] || fail "status $status"
  grep -q 'trial 2 of 2, best .*failed: none' out || fail "it cost a candidate"
done
# What times finalists is the fourth.
run helper:fork:4:EAGAIN "$here/finalists.lua" s.db
[ "$status" = 0 ] || fail "status $status"
grep -q 'trial 2 of 2, timed again: 2, failed: none' out || fail "it cost a candidate, or a finalist"
tune host:posix_spawn:1:EAGAIN
[ "$status" = 0 ] || fail "status $status"

# Without /dev/null, as in a bare chroot.
tune helper:open:1:ENOENT
[ "$status" = 0 ] || fail "status $status"
grep -q 'trial 2 of 2, best .*failed: none' out || fail "it cost a candidate"
# None can be started at all.
for failing in helper:fork:0:EAGAIN host:posix_spawn:0:EAGAIN; do
  tune $failing
  [ "$status" = 1 ] || fail "status $status"
  [ "$(wc -l <err)" = 1 ] || fail "not one line of error"
  grep -q 'Resource temporarily unavailable; .*ulimit -u' err || fail "it does not say what to do"
done
tune helper:memfd_create:0:EMFILE
grep -q 'Too many open files; .*ulimit -n' err || fail "it does not say what to do"
# A limit of files' sizes is one of shared memory: it costs no process, and is named.
"$program" tune ops:relu --trials 1 --db limited.db -- 32 >/dev/null
got=0
(ulimit -f 16 && exec "$program" export best -o limited.so --db limited.db) >out 2>err || got=$?
[ "$got" = 1 ] && grep -q 'ulimit -f' err || fail "a limit of files: status $got: $(cat err)"
tune host:pthread_create:0:EAGAIN
[ "$status" = 1 ] && grep -q 'could not start a thread: .*ulimit -u' err || fail "it does not say what to do"

# A script may have three quarters of the machine's memory, here of 512 MiB: more is refused, and no process is killed.
cat >machine.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
long sysconf(int name) {
  long (*next)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
  return name == _SC_PHYS_PAGES ? 512 << 8 : next(name);
}
C
cc -shared -fPIC -o machine.so machine.c
echo 'local t = {} for i = 1, tonumber(... or 600) do t[i] = ("x"):rep(1 << 20) .. i end' >large.lua
failure="a machine of 512 MiB"
for command in "large.lua 600" "show large.lua"; do
  got=0
  LD_PRELOAD=$work/machine.so timeout 60 "$program" $command >out 2>err || got=$?
  [ "$got" = 1 ] && grep -qE "not enough memory|the script's memory limit is reached" err || fail "$command: status $got"
done
LD_PRELOAD=$work/machine.so "$program" large.lua 300 || fail "less than that"
