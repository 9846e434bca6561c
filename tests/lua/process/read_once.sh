#!/bin/sh
# Runs read_once.lua upon a copy of our files of Lua.  usage: read_once.sh MSCHED ROOT
set -e
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
(cd "$2" && find lua rules search -name '*.lua' | tar cf - -T -) | (cd "$folder" && tar xf -)
MSCHED_LUA_PATH=$folder "$1" "$2/tests/lua/process/read_once.lua" "$folder"

# Files of another version, and of old ones that do not say: one message.
refused() {
  out=$(MSCHED_LUA_PATH=$folder "$msched" run ops:add -- 4 4 2>&1) && { echo "it runs with the Lua files of $1"; exit 1; }
  case $out in
    *"and the Lua files in $folder/ are of $1: install both again, or set MSCHED_LUA_PATH"*) ;;
    *) echo "of $1: $out"; exit 1 ;;
  esac
}
msched=$1
echo 'return "0.0.9"' >"$folder/lua/lib/version.lua"
refused 0.0.9
rm "$folder/lua/lib/version.lua"
refused "another version"
