#!/bin/sh
# Installs to a prefix, moves it, and uses it as users do: the program, C by CMake and by pkg-config, a Lua that is not
# ours.
# usage: install.sh BUILD SOURCE
set -eu
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "install.sh: $*" >&2; exit 1; }
unset MSCHED_HELPER MSCHED_LUA_PATH MSCHED_PEAK_SECONDS MSCHED_BENCH_SECONDS
here=$work/moved
export XDG_DATA_HOME="$work/data"

cmake --install "$build" --prefix "$work/first" >"$work/install.log" || fail "$(cat "$work/install.log")"
mv "$work/first" "$here" # nothing may remember where it was
cd "$work"

# ---- the program, with its own Lua files and none of the source tree's
mkdir examples
cp "$here/share/msched/lua/examples/gemm.lua" examples/
"$here/bin/msched" tune examples/gemm.lua --trials 2 -- 32 32 32 >tune.txt || fail "tune"
grep -q '^next:' tune.txt || fail "tune: $(cat tune.txt)"
"$here/bin/msched" bench replay --count 40 --json >bench.txt || fail "bench replay: $(cat bench.txt)"
mv "$here/share/msched/lua/lib/te.lua" te.lua
"$here/bin/msched" tune examples/gemm.lua --trials 2 -- 32 32 32 2>refused.txt && fail "Lua files of the source tree are used"
grep -q moved/share/msched/lua/lib/te.lua refused.txt || fail "not said what is missing: $(cat refused.txt)"
mv te.lua "$here/share/msched/lua/lib/te.lua"
mv "$here/share/msched/lua/bench/data" bench.kept
"$here/bin/msched" bench replay --count 40 >refused.txt 2>&1 && fail "bench without its data"
grep -q 'moved/share/msched/lua/bench/data.*No such file' refused.txt || fail "not said what is missing: $(cat refused.txt)"
mv bench.kept "$here/share/msched/lua/bench/data"
for file in share/man/man1/msched.1 share/bash-completion/completions/msched share/msched/rules/space.lua \
  share/msched/search/tune.lua share/msched/annotations/msched.lua share/msched/lua/compat/ansor.lua \
  share/doc/msched/guide/tour.md share/doc/msched/LICENSE; do
  [ -f "$here/$file" ] || fail "no $file"
done
strings=$(grep -rlF "$source" "$here/lib/cmake" "$here/lib/pkgconfig" "$here/share" || true)
[ -z "$strings" ] || fail "these name the source tree: $strings"

# ---- C: shared and static, by CMake
cmake -G Ninja -S "$source/tests/install" -B cmake -DCMAKE_PREFIX_PATH="$here" >cmake.log 2>&1 || fail "$(cat cmake.log)"
cmake --build cmake >cmake.log 2>&1 || fail "$(cat cmake.log)"
uses() { # what, command: prints the scheduled function, measures it
  what=$1
  shift
  "$@" >use.txt 2>&1 || fail "$what: $(cat use.txt)"
  grep -q 'T.vectorized(16)' use.txt && grep -q '^measured,' use.txt || fail "$what: $(cat use.txt)"
}
uses "CMake, shared" ./cmake/use_msched
ldd ./cmake/use_msched | grep -q "libmsched.so" || fail "use_msched does not use the shared library"
# A program with the library inside finds the helper as a program of the same prefix, or gets a message.
uses "CMake, static" env MSCHED_HELPER="$here/libexec/msched-helper" ./cmake/use_msched_static
ldd ./cmake/use_msched_static | grep -q "libmsched.so" && fail "use_msched_static uses the shared library"

# ---- a Lua that is not ours
if command -v lua5.4 >/dev/null; then
  LUA_CPATH="$here/lib/lua/5.4/?.so" lua5.4 "$source/tests/install/use.lua" lua.db >lua.txt 2>&1 || fail "lua5.4: $(cat lua.txt)"
  grep -q 'T.parallel(4)' lua.txt && grep -q 'sch:parallel' lua.txt || fail "lua5.4: $(cat lua.txt)"
  mkdir locale
  if sh "$source/tests/support/comma_locale.sh" locale; then # numbers of Lua have a decimal comma there
    LOCPATH="$PWD/locale" LUA_CPATH="$here/lib/lua/5.4/?.so" lua5.4 -e 'assert(os.setlocale("comma", "numeric")) require "msched"' \
      >lua.txt 2>&1 && fail "lua5.4: loaded with a decimal comma"
    grep -q 'decimal point `,`; call setlocale(LC_NUMERIC, "C")' lua.txt || fail "lua5.4: $(cat lua.txt)"
  fi
  cc -std=c17 -o thread "$source/tests/install/thread.c" $(pkg-config --cflags --libs lua5.4) -lpthread
  LUA_CPATH="$here/lib/lua/5.4/?.so" ./thread >thread.txt 2>&1 || fail "a thread that ends after its Lua: $? $(cat thread.txt)"
else
  echo "install.sh: lua5.4 is not installed: the Lua module was not tried" >&2
fi

# ---- C: shared and static, by pkg-config
export PKG_CONFIG_PATH="$here/lib/pkgconfig"
[ "$(pkg-config --modversion msched)" = "$("$here/bin/msched" --version | cut -d' ' -f2)" ] || fail "versions differ"
cc -std=c17 -o shared "$source/tests/install/use.c" $(pkg-config --cflags --libs msched) -Wl,-rpath,"$here/lib"
uses "pkg-config, shared" ./shared
rm "$here"/lib/libmsched.so* # the linker prefers a shared library
cc -std=c17 -o "$here/bin/static" "$source/tests/install/use.c" $(pkg-config --static --cflags --libs msched)
uses "pkg-config, static" "$here/bin/static"
