#!/bin/sh
# A module is used through its public header, which bears its name: no file of another module includes any other of its
# headers; LLVM, through jit/llvm/api.h alone. Prints the lines that do; exit status 1 if there are any.
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
