-- Each file of Lua is read once: a user's in a run, ours in a process. What is replaced meanwhile does not show.
-- usage: msched read_once.lua FOLDER, the one that MSCHED_LUA_PATH names: a copy of ours
local ms = require "msched"
local te = ms.te
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")
local folder = arg[1]

local function write(path, text)
  local file = assert(io.open(path, "w"))
  assert(file:write(text))
  assert(file:close())
end
local A = te.placeholder({32, 32}, "float32", "A")
local func = te.func("twice", {A, te.compute({32, 32}, function(x, y) return A[{x, y}] * 2 end, "B")})

-- ---- A user's rules -----------------------------------------------------------------------------------------------

local RULE = [[
local ms = require "msched"
ms.rule {name = "marks", apply = function(sch, block)
  if sch:block_name(block) == "B" and not sch:annotation(block, "marked") then sch:annotate(block, "marked", %d) end
  return {sch}
end}
]]
local path = folder .. "/marks.lua"
write(path, RULE:format(1))
local replaced = 0
local m, tasks = support.run({func}, {files = {path}, policy = "replay_function", trials = 8, jobs = 2,
  listen = function(e)
  if e.event ~= "start" then return end
  write(path, RULE:format(2)) -- the space is open; the states that replay may not be
  replaced = replaced + 1
end})
local function mark(sch) return sch:annotation(sch:get_sblock "B", "marked") end
assert(replaced == 1 and #m.made[1] > 0 and not tasks[1].error)
for _, sch in ipairs(m.made[1]) do assert(mark(sch) == 1, "a state read the file again") end

-- The next run reads it; so do a box and a pool that are given its path.
m = support.run({func}, {files = {path}, policy = "replay_function", trials = 4})
for _, sch in ipairs(m.made[1]) do assert(mark(sch) == 2, "a run knows what another read") end
local kept = ms.sources {path}
write(path, "syntax error")
local ok, message = pcall(ms.sandbox, {files = {path}})
assert(not ok and message:find(path .. ":1: ", 1, true), message)
ms.sandbox {files = kept}

-- As where Lua itself reads a file: a mark of the byte order, and a first line for the shell; lines are counted with
-- it.
write(path, "\xEF\xBB\xBF#!/usr/bin/msched\nerror('here')")
ok, message = pcall(ms.sandbox, {files = {path}})
assert(not ok and message:find(path .. ":2: here", 1, true), message)
for _, none in ipairs {folder .. "/none.lua", folder} do
  ok, message = pcall(ms.sources, {none})
  assert(not ok and message:find(none, 1, true), message)
end

-- ---- Ours ---------------------------------------------------------------------------------------------------------

for _, name in ipairs {"rules/worker", "rules/space", "rules/targets", "search/tune"} do
  write(folder .. "/" .. name .. ".lua", "error 'replaced'")
end
ms.sandbox {files = {}}
support.run({func}, {files = {}, policy = "random", trials = 4, jobs = 2})
-- A file that has two names is compiled once, and is a module of each.
local by_points, by_slashes = ms.load "lua.cli.help.terms", ms.load "lua/cli/help/terms"
assert(type(by_points) == type(by_slashes) and by_points ~= by_slashes)
support.remove_stores()
print "read_once: ok"
