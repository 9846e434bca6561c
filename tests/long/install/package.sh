#!/bin/sh
# The Debian package in a bare Debian 12: apt installs it with what it needs, a user tunes, replays and exports with it,
# C and Lua programs use it, and after it is purged nothing of it is left.
# usage: package.sh PACKAGE.deb SOURCE [FOLDER]   FOLDER is kept, and used again if it holds a root
set -eu
package=$1 source=$(CDPATH= cd -- "$2" && pwd)
say() { printf 'package: %s\n' "$*" >&2; }
fail() { say "$@"; exit 1; }
. "$source/tests/long/install/root.sh"

bare=${3:-}
if [ -z "$bare" ]; then
  bare=$(mktemp -d)
  trap 'rm -rf "$bare"' EXIT
fi
make_root "$bare" ""
inside() { run_inside "$bare" "cd /root && $1" || fail "this fails in the root: $1"; }

cp "$package" "$bare/root/msched.deb"
dpkg-deb --info "$package" | sed -n '/^ Package:/,$p' >&2
inside 'apt-get update -qq && apt-get install -y -qq --no-install-recommends ./msched.deb >install.log 2>&1 || { cat install.log; exit 1; }'

say "a user's first commands"
inside 'msched --version && msched tune /usr/share/msched/lua/examples/gemm.lua --trials 4 --db s.db -- 64 64 64 | grep next:'
inside 'msched top --db s.db && msched replay "$(msched top --json --db s.db | sed -n "s/.*\"id\":\"\([0-9a-f]*\)\".*/\1/p" | head -n 1)" --db s.db'
inside 'msched export "$(msched top --json --db s.db | sed -n "s/.*\"id\":\"\([0-9a-f]*\)\".*/\1/p" | head -n 1)" -o gemm.so --db s.db && test -s gemm.so'
inside 'echo "6 * 7" | msched | grep -x 42'
for file in share/man/man1/msched.1 share/bash-completion/completions/msched share/doc/msched/copyright share/msched/annotations/msched.lua; do
  [ -f "$bare/usr/$file" ] || fail "no /usr/$file"
done

say "programs in C and in Lua"
cp "$source/tests/install/use.c" "$source/tests/install/use.lua" "$bare/root"
inside 'apt-get install -y -qq --no-install-recommends gcc libc6-dev pkg-config lua5.4 >install.log 2>&1 || { cat install.log; exit 1; }'
inside 'gcc -o use use.c $(pkg-config --cflags --libs msched) && ./use | grep -q "^measured,"'
inside 'lua5.4 use.lua lua.db | grep -q "T.parallel(4)"'

say "purged"
inside 'apt-get purge -y -qq msched >install.log 2>&1 || { cat install.log; exit 1; }'
left=$(find "$bare/usr" "$bare/etc" "$bare/var/lib/dpkg/info" -name '*msched*')
[ -z "$left" ] || fail "this is left: $left"
say "done"
