#!/bin/sh
# What users write may not end the program, nor run in it for ever: policies, models, functions, intrinsics.
# usage: ends.sh MSCHED ROOT
set -eu
msched=$1 gemm=$2/lua/examples/gemm.lua
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "ends.sh: $*" >&2; exit 1; }

refused() { # words of the message, command…
  words=$1
  shift
  set +e
  timeout -k 1 20 "$msched" "$@" >out 2>err </dev/null
  got=$?
  set -e
  [ $got = 1 ] || fail "$*: status $got: $(head -c 300 err)"
  grep -qF -- "$words" err || fail "$*: no \`$words\` in: $(head -c 300 err)"
  [ "$(wc -c <err)" -lt 400 ] || fail "$*: a message of $(wc -c <err) bytes"
}
policy() { # its body
  printf 'return require("msched").policy {name = "p", run = function(env)\n%s\nend}\n' "$1" >policy.lua
}
tuned() { # words, what is tuned with…
  words=$1
  shift
  refused "$words" tune "$gemm" --trials 1 --policy-timeout "${limit:-2}" --db s.db "$@" -- 16 16 16
}
ends='os.exit may not end the program here'
for status in 0 "true, true"; do
  policy "os.exit($status)" && tuned "policy \`p\` (policy.lua:2): $ends" --policy policy.lua
done
policy 'pcall(os.exit, 0) error "went on"' && tuned 'policy.lua:2): went on' --policy policy.lua
policy 'coroutine.wrap(function() os.exit(0) end)()' && tuned "$ends" --policy policy.lua
policy 'debug.sethook() while true do end' && tuned 'debug.sethook may not be called here' --policy policy.lua
policy 'local f f = function() return coroutine.wrap(f)() end f()' && tuned 'policy.lua:2): C stack overflow' --policy policy.lua
# What the hook cannot end, as in rules.
policy 'string.find(("a"):rep(3000), ("a*"):rep(30) .. "b")' && tuned 'policy.lua:2): this pattern' --policy policy.lua
policy 'table.move({}, 1, 1 << 60, 2)' && tuned 'policy.lua:2): table.move' --policy policy.lua
policy 'table.concat(setmetatable({}, {__len = function() return 1 << 60 end}))' && tuned 'a list without __len' --policy policy.lua
policy 'local s = (""):rep(1 << 60) error("of " .. #s)' && tuned 'policy.lua:2): of 0' --policy policy.lua
policy '("x"):rep(1 << 62)' && tuned 'string.rep' --policy policy.lua
# Calls that catch the error that is to end them, thousands in one another, and coroutines that are each too short for
# the hook; what a policy says, and what a model gives, run nothing of theirs.
limit=0.5
policy 'local function f() local ok = pcall(f) f() end f()' && tuned 'policy.lua:2): ran longer than 0.5 seconds' --policy policy.lua
policy 'local function f() coroutine.wrap(function() xpcall(f, type) f() end)() end f()' && tuned 'policy.lua:2): ran longer' --policy policy.lua
# What waits in the system, for a pipe, a command, or a loop of such; a command ends with all that it started.
mkfifo pipe
exec 7<>pipe
late='ran longer than 0.5 seconds'
policy 'while true do io.open("pipe"):read() end' && tuned "$late" --policy policy.lua
policy 'while true do pcall(os.execute, "sleep 4007 | sleep 4007; sleep 4007") end' && tuned "$late" --policy policy.lua
policy 'Kept = io.popen("sleep 4007") Kept:read()' && tuned "$late" --policy policy.lua
policy 'local f = io.popen("sleep 4007", "w") while true do f:write(("x"):rep(1000)) end' && tuned "$late" --policy policy.lua
exec 7>&-
! pgrep -f '^sleep 4007$' || fail "commands are left"
limit=10
policy 'local f, t = io.popen("echo of it; exit 3") t = f:read("a") t = t:sub(1, -2) .. tostring(select(3, f:close()))
f = io.popen("cat >written", "w") f:write("all") f:close() f = io.popen("true", "w") while f:write(t) do end
local ok, why = pcall(io.popen, "true", "rw") assert(not ok and why:find("#2", 1, true), why)
error(table.concat({t, io.open("written"):read("a"), tostring(os.execute()), select(2, os.execute("exit 5")), (select(3, os.execute("kill -9 $$")))}, " "))'
tuned 'policy.lua:5): of it3 all true exit 9' --policy policy.lua
printf 'return require("msched").model {name = "m", required = true, update = function() end,\npredict = function() io.popen("sleep 4007"):read() end}\n' >model.lua
limit=3
tuned "model \`m\` (model.lua:2) ran longer than 3 seconds" --policy evolutionary --model model.lua
limit=
policy 'error(setmetatable({}, {__tostring = error}))' && tuned 'policy.lua:2): raised a table' --policy policy.lua
policy 'return ("x"):rep(1 << 20)' && "$msched" tune "$gemm" --trials 1 --db s.db --policy policy.lua -- 16 16 16 >out 2>err && fail "a policy's reason"
grep -q 'x… ([0-9]* bytes more)' err && [ "$(wc -c <err)" -lt 30000 ] || fail "a policy's reason has $(wc -c <err) bytes"
printf 'return require("msched").model {name = "m", required = true, update = function() end,\npredict = function() return setmetatable({}, {__len = error, __index = error}) end}\n' >model.lua
tuned 'model `m` (model.lua:2) predicted 0 scores' --policy evolutionary --model model.lua
echo 'os.exit(0)' >top.lua
tuned "top.lua:1: $ends" --policy top.lua
tuned "top.lua:1: $ends" --model top.lua
printf 'return require("msched").model {name = "m", required = true, update = function() end,\npredict = function() os.exit(0) end}\n' >model.lua
tuned "model \`m\` (model.lua:2): model.lua:2: $ends" --policy evolutionary --model model.lua

# What a file of functions, a policy or a model changes is changed for itself alone: the search goes on as without.
cat >spoil.lua <<'E2'
local ms, escaped = require "msched", {}
local function attempt(name, f, ...)
  local ok, real = pcall(f, ...)
  if ok and type(real) == "table" and real ~= _G and (real.string or real.format or real.__index) then escaped[#escaped + 1] = name end
end
local metatable, info, rawset, wrap = getmetatable, debug.getinfo, rawset, coroutine.wrap
local assert, error, ipairs, pcall, setmetatable = assert, error, ipairs, pcall, setmetatable
for i = 0, 20 do
  local at = info(i, "f")
  if at and at.func then escaped[#escaped + 1] = "a frame's function" end
end
attempt("strings", metatable, "")
attempt("files", metatable, io.stdout)
attempt("tensors", metatable, ms.te.placeholder({4}, "float32", "A"))
attempt("the module", metatable, ms)
attempt("load", function() return load "return _G" () ~= _G and {string = 1} end)
attempt("dofile", function()
  local f <close> = assert(io.open("globals.lua", "w"))
  f:write "return _G"
  f:close()
  return dofile "globals.lua" ~= _G and {string = 1} or require "globals" ~= _G and {string = 1} or loadfile "globals.lua" () ~= _G and {string = 1}
end)
attempt("package", function() return package.loaded._G ~= _G and package.loaded._G end)
attempt("required", function() return require "string" ~= string and require "string" end)
attempt("coroutines", function() return coroutine.wrap(function() return require "_G" ~= _G and {string = 1} end)() end)
attempt("the loader", function() return ms.load_script "globals.lua" () ~= _G and {string = 1} end)
for name, f in pairs(debug) do
  if name ~= "traceback" and name ~= "getinfo" and name ~= "gethook" and name ~= "sethook" and pcall(f, 1, 1, 1) then escaped[#escaped + 1] = "debug." .. name end
end
for name, refused in pairs {["bad argument"] = function() setmetatable("", {}) end, __gc = function() setmetatable({}, {__gc = print}) end,
                            own = function() setmetatable(ms.te.placeholder({4}, "float32", "B"), {}) end,
                            collectgarbage = function() collectgarbage "stop" end, limits = function() ms.rule_timeout(1e9) end,
                            ["msched's own"] = function() load("return 1", "=msched/mine") end, ["not found"] = function() require "nothing.of.the.kind" end} do
  local ok = pcall(refused)
  if ok then escaped[#escaped + 1] = name end
end
if load(string.format("\27Lua%s", ("x"):rep(40))) or string.dump then escaped[#escaped + 1] = "compiled code" end
if os.setlocale "de_DE.UTF-8" or os.setlocale "C.UTF-8" then escaped[#escaped + 1] = "the locale" end
if #escaped > 0 then error("these lead out: " .. table.concat(escaped, ", "), 0) end

local gemm = select("#", ...) > 0 and loadfile(GEMM)(...)
local own = ms.policy {name = "spoils", run = function(env)
  assert(env.services == nil and env.run == nil and metatable(env) == "env" and #env:best(1) == 0)
  for _, m in ipairs(env.mutators) do m[1].apply = error end
  local list = env:replay(env:draw_jobs(4))
  for i, wrong in ipairs {{{trace = list[1].trace, hash = list[2].hash}}, {{}}, {5}} do
    assert(not pcall(env.measure, env, wrong), i)
  end
  wrap(function() env:measure {list[1]} end)() -- asks nobody
  env:measure(setmetatable({}, {__index = function(_, i) return list[i] end}))
  env:measure(list)
end}
print "printed aside"
io.write "written aside\n"
math.huge, math.type, string.format, string.rep, table.concat, table.unpack, coroutine.yield, os.time, io.open = 0
for _, t in ipairs {ms.te, ms.ops, ms.schedule_methods, ms.kernel_methods, ms.load "search.task", ms.load "search.run", ms.load "rules.space",
                    ms.load "lua.cli.cli", ms, string, table, math, io, os, coroutine, package, debug, _G} do
  for name in pairs(t) do if t ~= _G then t[name] = error end end
end
for name in pairs(_G) do if name ~= "_G" then rawset(_G, name, nil) end end
return _ENV.KIND == "policy" and own or gemm
E2
sed "s|GEMM|\"$gemm\"|; s|_ENV.KIND|\"policy\"|" spoil.lua >spoil_policy.lua
sed "s|GEMM|\"$gemm\"|; s|_ENV.KIND|\"function\"|" spoil.lua >spoil_function.lua
{ sed '/^math.huge/,$d' spoil_policy.lua | sed 's/^if #escaped/local replace = {string.format, math.type}\n&/'
  echo 'return ms.model {name = "spoils", update = function() string.format, table.sort = nil end, predict = function(_, list)
  local scores = {}
  for i in ipairs(list) do scores[i] = 0 end
  for name in pairs(_G) do _G[name] = nil end
  return scores
end}'; } >spoil_model.lua
unspoiled() { # a file of functions, options…
  functions=$1
  shift
  rm -rf u.db
  "$msched" tune "$functions" --trials 4 --seed 1 --json --db u.db "$@" -- 16 16 16 >out 2>err </dev/null || fail "$functions $*: $(head -c 400 err)"
  grep -q '"printed aside"' out && fail "$functions $*: output of the file's"
  grep -o '"event":"trial".*' out | grep -o '"hash":"[0-9a-f]*"' | sort >hashes
  [ -s hashes ] && ! grep -v '^{' out || fail "$functions $*: $(head -c 400 out)"
}
unspoiled "$gemm" --policy evolutionary && cp hashes clean
unspoiled spoil_function.lua --policy evolutionary && cmp clean hashes
grep -qx 'printed aside' err && grep -qx 'written aside' err || fail "what it prints: $(head -c 300 err)"
unspoiled "$gemm" --policy evolutionary --model spoil_model.lua
unspoiled spoil_function.lua --policy spoil_policy.lua

# Files of functions and of intrinsics, by all that read them; a finalizer, when the program ends.
echo '[[],[]]' >none.json
for command in "tune --trials 1 --db s.db" show run space lower "bench ops"; do refused "top.lua:1: $ends" $command top.lua; done
refused "top.lua:1: $ends" apply top.lua none.json
refused "top.lua:1: $ends" apply "$2/tests/support/data/add.py" none.json --intrinsics top.lua
printf 'Kept = setmetatable({}, {__gc = function() os.exit(0) end})\nerror "oh"\n' >final.lua
refused "final.lua:2: oh" final.lua
refused "final.lua:1: setmetatable: a file's tables have no __gc" show final.lua

# A script has all of Lua's library but what would break what C holds: it ends as it would without.
cat >breaks.lua <<'E2'
local ms = require "msched"
local array, stored = ms.array({4}, "float32"), debug.getregistry()
for _, refused in ipairs {{debug.setmetatable, array, {}}, {debug.setmetatable, io.stdout, stored["msched.array"]}, {debug.setupvalue, string.rep, 1, nil},
                          {debug.setuservalue, array, 5}, {load, "return 1", "=msched/mine"}} do
  assert(not pcall(table.unpack(refused)))
end
assert(not load(string.dump(print and function() end)) and load "return 5" () == 5 and load("return x", "x", "t", {x = 6}) () == 6)
assert(os.setlocale() == "C" and os.setlocale "C" and not os.setlocale "de_DE.UTF-8" and not os.setlocale("C.UTF-8", "numeric"))
assert(debug.getuservalue(array) == nil and debug.getupvalue(function() return array end, 1) == "array")
for name in pairs(stored) do
  assert(stored[name].__name == name)
  stored[name] = nil
end
assert(tostring(array) == "float32[4] {0, 0, 0, 0}")
table.sort({2, 1, 3}, function(a, b)
  assert(debug.getlocal(1, 1) == "a" and not debug.getlocal(2, 1) and not pcall(debug.setlocal, 3, 1, nil))
  return a < b
end)
assert(debug.getmetatable(array).__index and not debug.getmetatable(array).__gc and debug.getmetatable "".__index == string)
for _, meta in pairs(debug.getregistry()) do assert(not meta.__gc and not meta.__close) end
collectgarbage()
print "whole"
E2
"$msched" breaks.lua >out 2>err && grep -qx whole out || fail "breaks.lua: $(cat err)"

# What a file of intrinsics prints is no output of the command.
echo 'print "loud" io.write "written"' >loud.lua
"$msched" apply "$2/tests/support/data/add.py" none.json --intrinsics loud.lua --json >out 2>err && fail "no intrinsic in it"
! grep -v '^{' out && grep -q 'loud.lua: it defines no tensor intrinsic' out && grep -qx loud err && grep -q written err || fail "intrinsics print: $(cat out err)"

# Ctrl-C ends what runs nothing but a metamethod, or a finalizer.
interrupted() { # the text of a file, command…
  printf 'io.open("begun", "w"):close() %s\n' "$1" >endless.lua
  shift
  rm -f begun
  timeout -k 1 20 "$msched" "$@" endless.lua >out 2>err </dev/null &
  for _ in $(seq 1000); do [ -e begun ] && break; sleep 0.01; done
  sleep 0.1
  kill -INT $! # which timeout passes on
  set +e
  wait $!
  got=$?
  set -e
  [ $got = 1 ] || [ $got = 130 ] || [ $got = 124 ] || fail "$*: status $got: $(cat err)"
  grep -q interrupted err && ! grep -q 'one more interrupt' err || fail "$*: $(cat err)"
}
interrupted 'return setmetatable({}, {__len = function() while true do end end})' tune --trials 1 --db s.db
interrupted 'setmetatable({}, {__gc = function() while true do end end}) collectgarbage() while true do end'
echo 'error(setmetatable({}, {__tostring = error}))' >endless.lua
refused 'endless.lua: raised a table' show endless.lua
printf '%s\n' 'local k = setmetatable({}, {__gc = function(t) io.write("of ", t.n, "\n") error "unheard" end}) k.n = 5 k = nil collectgarbage() print "on"' >final.lua
[ "$("$msched" final.lua | tr '\n' ' ')" = "of 5 on " ] || fail "a finalizer"

# A script is the program: it may end it, but not from within a part.
status_of() { set +e; "$msched" "$1" >out 2>err; got=$?; set -e; echo $got; }
echo 'os.exit(3)' >script.lua
[ "$(status_of script.lua)" = 3 ] || fail "a script may not end"
printf 'local ms = require "msched"\nms.policy {name = "p", run = function() os.exit(0) end}\nms.tune(ms.ops.func("matmul", {16, 16, 16}), {policy = "p", db = "s.db", trials = 1})\n' >part.lua
[ "$(status_of part.lua)" = 1 ] && grep -qF "policy \`p\` (part.lua:2): $ends" err || fail "a policy of a script: $(cat err)"
echo 'print(pcall(table.concat, 5)) string.rep({})' >message.lua
[ "$(status_of message.lua)" = 1 ] && grep -q "message.lua:1: bad argument #1 to 'rep'" err && grep -q "to 'table.concat' (table" out || fail "Lua's messages: $(cat err)"
"$msched" db check --db s.db | grep -qx clean || fail "db check"
echo "ends: ok"
