-- The schedulers with as many trials of all tasks together: by gain, the weighted sum of the seconds of what is found
-- is less than in turn. Candidates take as long as they are estimated to, within some per cent: so it is about what the
-- schedulers
-- decide, and is the same on every machine.  usage: msched schedulers.lua [TRIALS [SEEDS]]
local ms = require "msched"
local tune = ms.load "search.tune"
local suites = ms.load "lua.lib.ops.suites"
local analytical = ms.load "search.cost.analytical"
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")
local total, seeds = math.tointeger(arg[1] or 640), math.tointeger(arg[2] or 3)
local TARGET, SPREAD = "llvm -mcpu=x86-64-v4 -num-cores=2", 0.1

local functions = {}
for _, m in ipairs(suites.choose("ops", {"C1D", "GRP", "DEP", "SFM", "GMM", "batch=1"})) do
  functions[#functions + 1] = m.func()
end
assert(#functions == 20)
local machine = analytical.machine(ms.target(TARGET))
local function time_of(sch, task)
  local cycles = ms.estimate(functions[task], sch.trace, machine)
  return cycles / 4e9 * (1 + SPREAD * tonumber(sch:hash():sub(1, 6), 16) / 0x1000000)
end

local function found(scheduler, seed)
  local _, tasks = support.run(functions, {scheduler = scheduler, seed = seed, total = total, trials = total, batch = 8,
                                           policy = "evolutionary", target = TARGET, measuring = {time = time_of}})
  local sum, trials, least, most = 0, 0, math.huge, 0
  for _, t in ipairs(tasks) do
    assert(t.fastest, t.name .. " has no best")
    sum, trials, least, most = sum + t.weight * t.fastest.seconds, trials + t.done, math.min(least, t.done),
      math.max(most, t.done)
  end
  assert(trials == total, trials .. " trials")
  return sum, least, most
end

local log = 0
for seed = 1, seeds do
  local by_gain, least, most = found("gain", seed)
  local in_turn = found("round-robin", seed)
  log = log + math.log(in_turn / by_gain) / seeds
  print(string.format("seed %d: by gain %.4g ms, %d to %d trials a task; in turn %.4g ms, %.3f times as long", seed,
                      by_gain * 1e3, least, most, in_turn * 1e3, in_turn / by_gain))
end
print(string.format("round-robin takes %.3f times as long as gain, by geometric mean of %d seeds with %d trials",
                    math.exp(log), seeds, total))
assert(log > 0, "in turn is better")
support.remove_stores()
