#!/bin/sh
# The rock: LuaRocks builds it from a clone of this tree into a tree of its own; the program and a Lua script use it.
# usage: rock.sh SOURCE
set -eu
source=$(CDPATH= cd -- "$1" && pwd)
fail() { echo "rock.sh: $*" >&2; exit 1; }
command -v luarocks >/dev/null || fail "luarocks is not installed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset MSCHED_HELPER MSCHED_LUA_PATH
export XDG_DATA_HOME="$work/data"

git clone -q --no-hardlinks "$source" "$work/clone"
cd "$work/clone"
luarocks --lua-version 5.4 --tree "$work/tree" make lua/msched-scm-1.rockspec >"$work/log" 2>&1 || fail "$(cat "$work/log")"
cd "$work"
rm -rf clone # nothing of it is needed
LUA_CPATH="$work/tree/lib/lua/5.4/?.so" lua5.4 "$source/tests/install/use.lua" lua.db >lua.txt 2>&1 || fail "$(cat lua.txt)"
grep -q 'T.parallel(4)' lua.txt || fail "lua5.4: $(cat lua.txt)"
tree/bin/msched tune "$source/lua/examples/gemm.lua" --trials 2 --db tune.db -- 32 32 32 >tune.txt 2>&1 || fail "$(cat tune.txt)"
grep -q '^next:' tune.txt || fail "tune: $(cat tune.txt)"
LUA_CPATH="$work/tree/lib/lua/5.4/?.so" luarocks --lua-version 5.4 --tree "$work/tree" remove msched >log 2>&1 || fail "$(cat log)"
left=$(find tree -name 'msched*')
[ -z "$left" ] || fail "this is left: $left"
echo "rock: done"
