-- Random convolutions and products of short types, and candidates drawn of those of their sketches that multiply AMX's
-- tiles: each is built, runs, and computes what the unscheduled function does. Where the machine has AMX, it is judged
-- there; elsewhere msched-amx is the program.
-- usage: msched-amx draws.lua COUNT [SEED [CANDIDATES]]
local ms = require "msched"
local folder = arg[0]:gsub("[^/]*$", "")
local draws, judge = dofile(folder .. "../support/lua/short_draws.lua"), dofile(folder .. "judge.lua")
local count, seed, each = tonumber(arg[1]), tonumber(arg[2] or 1), tonumber(arg[3] or 3)
local MOST = 3e7 -- operations of a function: an instruction takes some microseconds where there is no AMX
local TYPES = {"bfloat16", "int8", "uint8"}
judge.needs_tiles()
if judge.target.tiles & 16 > 0 then TYPES[#TYPES + 1] = "float16" end
math.randomseed(seed)

local function small_function()
  local func = draws.draw {types = TYPES}
  local work = func:work()
  if work.floats + work.integers <= MOST then return func end
  return small_function()
end

local functions, judged, wrong = 0, 0, {}
for i = 1, count do
  local func = small_function()
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
