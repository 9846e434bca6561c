# Every command that takes a file of text names a file of another format, and says what it takes: nothing of it is read
# as text, no store is written, and a text that is damaged elsewhere keeps its own messages.
. "$(dirname -- "$0")/../expect.sh"

cat >good.py <<'END'
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            A[v] = A[v] + T.float32(1)
END
echo '[[["GetSBlock",[],["B","main"],["b0"]]],[]]' >good.json
expect_status 0 "$program" run good.py --trace good.json

printf '\010\007\022\007pytorch\000\377' >model.bin
printf '\037\213\010\000data' >packed.bin
printf '\177ELF\002\001\001\000\000' >object.bin
printf 'PK\003\004\000\000' >archive.bin
printf '\377\376d\000e\000f\000' >wide.bin
printf '# caf\351 \n' >latin.bin
cp "$(command -v ls)" program.bin
words() {
  case $1 in
  packed) echo ' \(gzip data\)' ;;
  object | program) echo ' \(an ELF object, program or library\)' ;;
  archive) echo ' \(a ZIP archive.*\)' ;;
  wide) echo ' \(text in UTF-16; UTF-8 is read\)' ;;
  *) echo '' ;;
  esac
}

refused() { # status, expected words, command; of the file $file, whose bytes are those of $name
  wanted=$1 expected=$2 command=$3
  shift 3
  expect_status "$wanted" "$program" $command
  expect_output "$file: this is no text$(words "$name"); $expected"
}
functions='functions come from Lua \(a file whose name ends in .lua\), TVMScript, ops:NAME or suite:NAME$'
networks='functions come from Lua .*, TVMScript, ops:NAME or suite:NAME, networks from ONNX \(a file whose name ends in .onnx\)$'
forms="a trace is JSON in TVM's layout, Lua text, or msched's binary form"
# Text of another format, from its first character on.
echo '{"a": 1}' >model.json
for command in "tune model.json --db none.db" "space model.json" "show model.json"; do
  expect_status 1 "$program" $command
  expect_output "model.json:1:1: expected @T.prim_func$"
  expect_output "^$networks"
done
for name in model packed object archive wide latin program; do
  for file in $name.bin $name.py; do
    cp $name.bin copy && mv copy $file
    for command in run lower; do refused 1 "$functions" "$command $file"; done
    for command in show space; do refused 1 "$networks" "$command $file"; done
    refused 1 "$networks" "tune $file --db none.db"
    refused 1 "$functions" "apply $file good.json"
  done
  [ ! -e none.db ] || fail "a store was made for $file"
  file=$name.bin
  refused 1 "$forms" "run good.py --trace $file"
  refused 1 "$forms" "lower good.py --trace $file"
  refused 1 "$forms" "apply good.py $file"
  refused 1 "$forms" "convert $file"
  for command in run lower space; do refused 1 "tensor intrinsics come from" "$command good.py --intrinsics $file"; done
  refused 1 "records come as lines of JSON" "db import $file --db none.db"
  refused 1 "$networks" "db import good.json --workload $file --db none.db"
  [ ! -e none.db ] || fail "a store was made for the import of $file"
  expect_status 2 "$program" $file
  expect_output "is a file and no command"
  for command in "top --db" "db check --db" "db merge --db other.db" "report -o page.html --db"; do
    expect_status 1 "$program" $command $file
    expect_output "$file: this file is no store of msched"
  done
  # Lua may hold bytes of any kind in its strings and comments: only what Lua refuses is looked at.
  file=$name.lua
  cp $name.bin $file
  [ $name != latin ] || echo 'x = = 1' >>$file
  for command in run lower show space; do refused 1 "a script in Lua is expected" "$command $file"; done
  refused 1 "a script in Lua is expected" "$file"
  refused 1 "a script in Lua is expected" "tune good.py --db t.db --trials 1 --rules $file"
  refused 1 "a script in Lua is expected" "tune good.py --db t.db --trials 1 --policy $file"
  refused 1 "a script in Lua is expected" "space good.py --rules $file"
  refused 1 "a script in Lua is expected" "run good.py --intrinsics $file"
  for call in "dofile '$file'" "assert(loadfile '$file')" "assert(msched.load_script '$file')"; do
    echo "$call" >input
    "$program" <input >output 2>&1 || true
    expect_output "$file: this is no text$(words $name); a script in Lua is expected"
  done
  echo "require 'msched'.from_script(io.open('$name.bin', 'rb'):read 'a', '$name.bin')" >read.lua
  expect_status 1 "$program" read.lua
  expect_output "$name.bin: this is no text$(words $name); TVMScript is expected"
done

# A character that the end of what is looked at cuts is one; a damaged line of records is refused alone.
printf '# \303\251\n' >accent.py && cat good.py >>accent.py
expect_status 0 "$program" run accent.py
expect_status 0 "$program" tune good.py --trials 1 --policy replay_trace --db good.db --json
cp output log.jsonl
file=model.bin
name=model
refused 1 "--log takes what" "report -o page.html --db good.db --log model.bin"
expect_status 0 "$program" report -o page.html --db good.db --log log.jsonl
"$program" db export lines.jsonl --db good.db
{ cat lines.jsonl && printf '{"a\000":1}\n'; } >damaged.jsonl
expect_status 1 "$program" db import damaged.jsonl --db again.db
expect_output "1 record added, 1 line refused"
file=good.db
expect_status 1 "$program" run good.db
expect_output "good.db: this is no text \(a store of records\); functions"
"$program" convert good.json --to binary -o good.trace
expect_status 1 "$program" run good.trace
expect_output "good.trace: this is no text \(a trace in msched's binary form\); functions"
printf 'x = loadfile("good.lua") assert(x() == 3 and dofile "good.lua" == 3 and not loadfile "none.lua")\n' >load.lua
echo 'return 3' >good.lua
expect_status 0 "$program" load.lua

# The words of an action of `db` that takes none are no file that it would work on.
for action in check repair compact list prune; do
  expect_status 2 "$program" db $action model.bin
  expect_output "$action takes no words, and not .model.bin. besides"
done
XDG_DATA_HOME=$scratch/nothing expect_status 1 "$program" db repair
refuse_output "Assertion"
