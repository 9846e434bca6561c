#!/bin/sh
# The program's Lua files use no global but Lua's own and `msched`: a name that is misspelt, or was renamed elsewhere,
# is one. Prints file, line and name of each other; exit status 1 if there are any.
# usage: globals.sh SOURCES
set -e
cd "$1"
compiler=$(command -v luac5.4 || command -v luac) || { echo "globals: skipped: there is no luac"; exit 77; }
known='_G|_ENV|arg|assert|collectgarbage|coroutine|debug|dofile|error|getmetatable|io|ipairs|load|loadfile|math|next|os|package|pairs|pcall|print'
known="$known|rawequal|rawget|rawlen|rawset|require|select|setmetatable|string|table|tonumber|tostring|type|utf8|warn|xpcall"
known="$known|msched|MSCHED_TARGET" # the second, a worker's
found=$(find lua rules search -name '*.lua' | sort | while read -r file; do
  "$compiler" -l -p "$file" | sed -nE "s|^.*\[([0-9]+)\].*[GS]ETTABUP.*_ENV \"([^\"]*)\".*|$file:\1: \2|p"
done | grep -vE ": ($known)$" || true)
test -z "$found" || { printf 'globals that nothing defines:\n%s\n' "$found"; exit 1; }
