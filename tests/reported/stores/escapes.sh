#!/bin/sh
# Text of an import, a file or a message that holds terminal escapes, ends of lines, marks that turn the direction of
# text or bytes that are no UTF-8 is shown with all of these escaped.
# usage: escapes.sh PROGRAM
. "$(dirname -- "$0")/../expect.sh"

clean() { # what; output has none of them but ends of lines
  LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]' output && fail "$1 is shown as it is: $(cat -v output | head -n 5)"
  iconv -f utf-8 -t utf-8 output >/dev/null 2>&1 || fail "$1: no UTF-8"
}
escaped() { # what, command…: whatever its status, its output is clean
  what=$1
  shift
  timeout 60 "$@" >output 2>&1 </dev/null || true
  clean "$what"
}

expect_status 0 "$program" db import "$here/escapes.jsonl" --db e.db
escaped "a reason" "$program" top --db e.db
expect_output 'failed: \\x1b\[31mred\\x1b\[0m\\x1b\]0;title\\x07<b>bold</b>'

# In each text of a record and of the function, with what else a terminal acts on.
bad='\\u001b[2J\\u009b31m\\u007f\\u202e\\u2066\\n\\r\\b'
sed "s/\"reason\": *\"[^\"]*\"/\"reason\": \"$bad\"/; s/\"target\": *\"[^\"]*\"/\"target\": \"llvm -mcpu=x$bad\"/; s/\"versions\": *\"[^\"]*\"/\"versions\": \"1$bad\"/" \
  "$here/escapes.jsonl" >bad.jsonl
expect_status 0 "$program" db import bad.jsonl --db b.db
id=$("$program" top --db b.db --json | sed -n '1s/.*"id":"\([0-9a-f]*\)".*/\1/p')
other=$("$program" top --db b.db --json | sed -n '2s/.*"id":"\([0-9a-f]*\)".*/\1/p')
for command in "top" "top --json" "db list" "db list --json" "show $id" "show $id --json" "diff $id $other" "diff $id $other --json" "replay $id" \
  "export $id -o k.so" "db pin $id" "db delete $id$id" "db export -" "explain $id"; do
  # shellcheck disable=SC2086
  escaped "$command" "$program" $command --db b.db
done
"$program" top --db b.db >output
expect_output 'failed: \\x1b\[2J\\u009b31m\\x7f\\u202e\\u2066\\n\\r\\x08  llvm|failed: \\x1b\[2J\\u009b31m\\x7f\\u202e\\u2066\\n\\r\\x08'
expect_status 0 timeout 60 "$program" report -o b.html --db b.db
cp b.html output
clean "the report"
! grep -q '<b>bold' b.html || fail "the report holds text as HTML"

# Names of files, words of the command line, messages of scripts, names in texts.
escape=$(printf '\033[31m\302\2331m\342\200\256\377')
escaped "a file's name" "$program" top --db "none$escape.db"
escaped "an argument" "$program" "nothing$escape"
escaped "an option" "$program" top "--no$escape"
printf 'error("\\27[31mred\\u{9b}1m\\u{202e}\\255")\n' >raises.lua
escaped "a script's message" "$program" raises.lua
printf 'return {"\\27[31m"}\n' >functions.lua
escaped "what a file of functions gives" "$program" tune functions.lua --trials 1 --db t.db
printf '@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((8,), "float32")):\n    T.func_attr({"note": "x\x1b[31m\u009b31m\u202ey"})\n    for i in range(8):\n        with T.sblock("B\\x1b[31m\\u009b"):\n            v = T.axis.spatial(8, i)\n            A[v] = T.float32(1.0)\n' >block.py
printf 'return function(ms, sch, v)\n  v.b0 = sch:get_sblock("C\\27[31m", "main")\nend\n' >trace.lua
escaped "a block's name" "$program" apply block.py trace.lua
escaped "a function that is applied" "$program" apply block.py none.lua
printf 'return function(ms, sch, v)\n  v.b0 = sch:get_sblock("B\27[31m\194\155", "main")\n  sch:annotate(v.b0, "k", "\27]0;t\7\226\128\174")\nend\n' >trace.lua
for command in apply "apply --json" run space lower; do
  # shellcheck disable=SC2086
  escaped "$command" "$program" $command block.py $([ "${command% *}" != apply ] || echo trace.lua)
done
printf '\033[31m\302\233 = 1\n' >broken.py
escaped "a line of a file" "$program" run broken.py
escaped "what help is asked for" "$program" help "$(printf 'x\033[31m')"
escaped "a line of an import" "$program" db import broken.py --db i.db
