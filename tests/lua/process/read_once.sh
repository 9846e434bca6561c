#!/bin/sh
# Runs read_once.lua upon a copy of our files of Lua.  usage: read_once.sh MSCHED ROOT
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$2" && find lua rules search -name '*.lua' | tar cf - -T -) | (cd "$folder" && tar xf -)
MSCHED_LUA_PATH=$folder "$1" "$2/tests/lua/process/read_once.lua" "$folder"
