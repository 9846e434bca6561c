#!/bin/sh
# A module is used through its public header, which bears its name: no file of another module includes any other of its
# headers; LLVM, through jit/llvm/api.h alone. Which modules it may use, README.md's table says, of C by what it
# includes and of Lua by what it loads. Prints the lines that do otherwise; exit status 1 if there are any.
# usage: doors.sh SOURCES
set -e
cd "$1"
above=$(grep -rn --include='*.[ch]' '^#include "\.\./' tir vm jit db search lua || true)
test -z "$above" || { printf 'not named from the root of the tree:\n%s\n' "$above"; exit 1; }
# LLVM is opened when it is first used: what includes its headers elsewhere would be linked with it.
llvm=$(grep -rn --include='*.[ch]' '^#include <llvm' tir vm jit db search lua | grep -v '^jit/llvm/api.h:' || true)
test -z "$llvm" || { printf 'not by jit/llvm/api.h:\n%s\n' "$llvm"; exit 1; }
inside=$(for room in tir vm jit db search lua; do
  grep -rnE --include='*.[ch]' '^#include "(\.\./)*(tir|vm|jit|db|search|lua)/.*\.h"' $room |
    grep -vE "\"$room/|\"(\.\./)*(tir/tir|vm/vm|jit/jit|db/db|search/search)\.h\"" || true
done)
test -z "$inside" || { printf 'not by the public header:\n%s\n' "$inside"; exit 1; }
upward=$(for room in tir vm jit db search rules; do
  may=$(sed -n "s,^| \`$room/\` |.*|\([^|]*\)|\$,\1,p" README.md | tr -d '`;')
  test -n "$may" || { echo "README.md's table has no row of $room/"; continue; }
  { grep -rnE --include='*.[ch]' '^#include "(tir|vm|jit|db|search|lua)/' $room || true
    grep -rnE --include='*.lua' 'load *\(? *"(search|rules|lua)\.' $room || true; } | awk -v room=$room -v may="$may" '
    BEGIN { count = split(may, names, " ") }
    { line = $0; rest = substr($0, index($0, ":"))
      while (match(rest, /(#include|load *\(?) *"[^"]*/)) {
        to = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
        sub(/.*"/, "", to); gsub(/\./, "/", to)
        allowed = index(to, room "/") == 1 || to !~ /^(tir|vm|jit|db|search|rules|lua)\//
        for (i = 1; i <= count; i++) if (index(to, names[i] "/") == 1) allowed = 1
        if (!allowed) print line
      } }'
done)
test -z "$upward" || { printf 'not in the row of its module in README.md:\n%s\n' "$upward"; exit 1; }
