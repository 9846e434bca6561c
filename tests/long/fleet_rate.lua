-- What a fleet does when its jobs take no time: jobs through one tuner, and what each costs.
-- usage: msched fleet_rate.lua SOURCE URL JOBS
local ms = require "msched"
local root, url, count = ...
count = math.tointeger(count)
local func = loadfile(root .. "/lua/examples/gemm.lua")(64, 64, 64)[1]
local c = ms.load "search.fleet.coordinator".open {fleet = url, target = ms.target "native"}
local task, trace, run = c:add(func), ms.schedule(func).trace, os.time()
local started = ms.clock()
for n = 1, count do c:submit(task, n, trace, string.format("%x-%d", run, n)) end -- names of this run alone
local seen, got = {}, 0
while got < count do
  local r = c:next(0.2)
  if r then
    assert(not seen[r.id] and r.measured, r.outcome)
    seen[r.id], got = true, got + 1
  end
  assert(ms.clock() - started < 300, "results are missing")
end
local seconds = ms.clock() - started
print(string.format("%d jobs in %.1f s: %.0f a second; the tuner's processor: %.0f us a job", count, seconds,
                    count / seconds, 1e6 * os.clock() / count))
c:close()
