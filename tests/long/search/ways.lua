-- One of the older ways, and the program's own, on the function of the way's example with the same trials; their
-- kernels timed
-- in turn. Prints the ratio of their times.  usage: msched ways.lua SOURCE WAY TRIALS FOLDER
local ms = require "msched"
local source, way, trials, folder = ...
trials = math.tointeger(trials)

local ARGUMENTS = {autotvm = {"512", "512", "512"}, flextensor = {"28", "64"}, ansor = {"256", "512", "512"}}
local arguments = assert(ARGUMENTS[way], "ways are autotvm, flextensor and ansor")
arguments[#arguments + 1], arguments[#arguments + 2], arguments[#arguments + 3] = tostring(trials),
  folder .. "/" .. way .. ".log", folder .. "/" .. way .. ".db"

local real = print
function print() end
local result = assert(loadfile(source .. "/lua/examples/" .. way .. ".lua"))(table.unpack(arguments))
print = real

local sch = result.sch or result.schedule
if way == "flextensor" then
  local flextensor = ms.load "lua.compat.flextensor"
  sch = flextensor.schedule_with_config(flextensor.task.list()[1], result)
elseif way == "ansor" then
  sch = result:schedule()
end
local func = sch:workload()
local own = ms.tune(func, {trials = trials, db = folder .. "/" .. way .. ".own.db"})

local arrays = ms.arrays_for(func, 1)
local theirs, ours = sch:build(), own:build()
local times =
  ms.time_in_turn({theirs:prepare(table.unpack(arrays)), ours:prepare(table.unpack(ms.arrays_for(func, 1)))}, 3)
print(string.format("%-10s %s, %d trials: %.2f us; the program's own way: %.2f us; ratio of speeds %.3f", way,
                    func:name(), trials, times[1].seconds * 1e6, times[2].seconds * 1e6,
                    times[2].seconds / times[1].seconds))
