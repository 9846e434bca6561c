-- What Tab completes behind a value: its own members, those of its metatable's __index and of the tables behind that,
-- fields of our
-- values; nothing is called.  usage: msched completion.lua
ms = require "msched" -- as in the session

-- As repl.c answers: the type of one of our values, and what holds the methods of a value or of a type so called.
local function methods(x)
  local meta = debug.getmetatable(x)
  if type(x) == "string" then meta = debug.getregistry()["msched." .. x] end
  local index = meta and rawget(meta, "__index")
  if type(index) == "function" and debug.getinfo(index, "S").what == "C" then _, index = debug.getupvalue(index, 1) end
  return type(index) == "table" and index or nil
end
local host = {kind = function(x)
  local meta = type(x) ~= "string" and debug.getmetatable(x)
  local name = meta and rawget(meta, "__name")
  return type(name) == "string" and name:match "^msched%.(.*)" or nil
end, methods = methods, explain = function() end}
local repl = ms.load "lua.cli.repl.repl"(host)

local function words(text)
  local begun, list = repl.complete(text)
  return " " .. table.concat(list, " ") .. " ", begun
end
local function completes(text, start, expected)
  local list, begun = words(text)
  assert(begun == start and list == " " .. expected .. " ", text .. ": `" .. begun .. "`," .. list)
end
local function holds(text, ...)
  local list = words(text)
  for _, word in ipairs {...} do
    assert(list:find(" " .. word .. " ", 1, true), text .. ": no " .. word .. " in" .. list)
  end
end
local function lacks(text, ...)
  local list = words(text)
  for _, word in ipairs {...} do
    assert(not list:find(" " .. word .. " ", 1, true), text .. ": " .. word .. " in" .. list)
  end
end

-- What ms.tune gives: fields and methods by a dot, methods by a colon; fields that are nil now too; no metamethods.
local db = os.tmpname()
os.remove(db)
best = ms.tune(ms.ops.func("relu", {"16x16"}), {no_tune = true, db = db})
completes("best.", "", "build export func id interrupted schedule seconds target trace")
completes("print(best:", "", "build export schedule")
completes("best.se", "se", "seconds")
completes("x = best . tr", "tr", "trace")
holds("best.func:", "name", "script", "params", "hash")
holds("best.trace:", "text", "json", "draws")
lacks("best.trace:", "name", "split", "seconds")
completes("best.target:up", "up", "upper")
completes("best.seconds.", "", "")
completes("best:build {tar", "tar", "target = ")
assert(words "best.nothing.":match "^ *$" and words "best[3].":match "^ *$")

-- In tables, by number and by name; through fields of fields.
list = {{best}, ["a b"] = best, last = {best = best}}
completes("list[1][1].sec", "sec", "seconds")
completes("list['a b'].sec", "sec", "") -- such a name is not looked up
completes('list["last"].best:sch', "sch", "schedule")
completes("list.last.best.func:para", "para", "params")
completes("list[1][2].", "", "")
completes("list[0x1][1].sec", "sec", "seconds")

-- Objects of the user's: own members, those of the class and of its class; what hides its metatable; a circle ends.
local Base = {area = function() end, sides = 0}
local Class = setmetatable({grow = function() end, __secret = 1}, {__index = Base})
object = setmetatable({width = 3, ["no name"] = 1}, {__index = Class, __metatable = "hidden"})
completes("object.", "", "area grow sides width")
completes("object:", "", "area grow")
completes("object.__", "__", "__secret")
owner = setmetatable({}, {__index = {object = object}})
completes("owner.object.w", "w", "width")
local circle = {one = 1}
loop = setmetatable(circle, {__index = setmetatable({two = 2}, {__index = circle})})
completes("loop.", "", "one two")
self_made = setmetatable({three = 3}, {__index = function() error "nothing is called" end,
                                       __pairs = function() error "nothing is called" end})
completes("self_made.", "", "three")
completes("self_made.four.", "", "")

-- Values of ours, and a module whose families are loaded when the first is asked for.
sch = ms.schedule(best.func)
holds("sch.", "trace", "split", "copy")
lacks("sch:", "trace")
holds("sch.trace.", "text", "with_decision")
store = ms.store(db, {read_only = true})
holds("store:", "records", "find", "close")
record = store:records {}[1]
-- Names of tasks, and IDs, where a store is asked for a record; IDs alone where names are none.
local short = store:short_id(record.key)
completes('store:find("re', "re", 'relu_16x16"')
completes("store : schedule 'relu_16x16", "relu_16x16", "relu_16x16'")
completes('store:find("', "", 'relu_16x16"') -- what was not measured is named by four digits at least
completes('store:find("' .. short:sub(1, 4), short:sub(1, 4), short .. '"')
completes('store:pin("', "", "")
completes('store:delete("' .. short:sub(1, 5), short:sub(1, 5), short .. '"')
completes('store:delete("' .. record.id:sub(1, 20), record.id:sub(1, 20), record.id:sub(1, 20) .. '"')
completes('store:find("none', "none", "")
completes('store:records("', "", "")
completes('record:find("', "", "")
assert(#store:ids(record.id:sub(1, 4)) == 1 and #store:ids(record.id, 1) == 1 and #store:ids "0000" == 0)
for _, bad in ipairs {"", "123", "xyzw", ("0"):rep(33)} do assert(not pcall(store.ids, store, bad), bad) end
assert(not pcall(store.ids, store, "0000", 0) and not pcall(store.words, store))
closed = ms.store(db .. ".none")
closed:close()
completes('closed:find("', "", "")
holds("record.", "id", "seconds", "trace")
array = ms.array {4}
holds("array:", "shape", "tolist")
kernel = best:build()
holds("kernel:", "check", "time", "export")
text = "abc"
completes("text:re", "re", "rep reverse")
holds("ms.ops.", "conv2d", "relu", "softmax", "func", "suite")
completes("ms.ops.conv2d_t", "conv2d_t", "conv2d_transpose")
completes("unknown:get_sb", "get_sb", "get_sblock")
completes("unknown.get_sb", "get_sb", "")
groups = ms.groups(best.func)
assert(pcall(repl.complete, "groups."))
-- Whatever is typed, it completes or does not, and raises nothing.
for _, typed in ipairs {"best..", "best.[", "best[", "best[1", "best]].x.", "best[\"].x", "best[nil].", "best[1.5].",
                        "[].x.", "a.b.c:", ".", ":", "best.1.", "best['x\"]."} do
  assert(pcall(repl.complete, typed), typed)
end
store:close()
os.remove(db)
os.remove(db .. "-lock")
print "completion: ok"
