-- Random convolutions and products of short types, so many, or those of the suites ops_int8 and ops_bf16, made smaller;
-- and candidates drawn of those of their sketches that multiply AMX's tiles: each is built, runs, and computes what the
-- unscheduled function does. Where the machine has AMX, it is judged there; elsewhere msched-amx is the program.
-- usage: msched-amx draws.lua COUNT|suites [SEED [CANDIDATES]]
local ms = require "msched"
local folder = arg[0]:gsub("[^/]*$", "")
local draws, judge = dofile(folder .. "../support/lua/short_draws.lua"), dofile(folder .. "judge.lua")
local seed, each = tonumber(arg[2] or 1), tonumber(arg[3] or 3)
local MOST = 3e7 -- operations of a function: an instruction takes some microseconds where there is no AMX
local TYPES = {"bfloat16", "int8", "uint8"}
judge.needs_tiles()
if judge.target.tiles & 16 > 0 then TYPES[#TYPES + 1] = "float16" end
math.randomseed(seed)

local function is_small(func)
  local work = func:work()
  return work.floats + work.integers <= MOST
end

local function small_function()
  local func = draws.draw {types = TYPES}
  return is_small(func) and func or small_function()
end

-- The largest of its extents are halved until it is small.
local function smaller(member)
  local words = {table.unpack(member.words)}
  while true do
    local func, largest = ms.load "lua.lib.ops.named".func(member.operator, words, member.name), 1
    if is_small(func) then return func end
    for n, word in ipairs(words) do
      if (tonumber(word) or 0) > (tonumber(words[largest]) or 0) then largest = n end
    end
    words[largest] = tostring(tonumber(words[largest]) // 2)
  end
end

local list = {}
if arg[1] == "suites" then
  for _, suite in ipairs {"ops_int8", "ops_bf16"} do
    for _, member in ipairs(ms.load "lua.lib.ops.suites".members(suite)) do
      if member.batch == 1 then list[#list + 1] = smaller(member) end
    end
  end
end
for _ = 1, tonumber(arg[1]) or 0 do list[#list + 1] = small_function() end

local functions, judged, wrong = 0, 0, {}
for i, func in ipairs(list) do
  for n, trace in ipairs(judge.candidates(func, each, seed + i) or {}) do
    local right, message = pcall(judge.check, func, trace)
    functions, judged = functions + (n == 1 and 1 or 0), judged + 1
    if not right then
      wrong[#wrong + 1] = func:name()
      print(string.format("%s, function %d of seed %d, candidate %d: %s\n%s", func:name(), i, seed, n, message,
                          trace:text()))
    end
  end
end
assert(#wrong == 0, #wrong .. " wrong: " .. table.concat(wrong, ", "))
assert(judged > 0)
print(string.format("%d functions, %d candidates of AMX's tiles: ok", functions, judged))
