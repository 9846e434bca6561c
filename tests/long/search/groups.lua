-- A function of many blocks, tuned as groups: when its first trial came; and its best beside the sum of its groups,
-- each the best that the run found of it, timed alone: all of them in turn, so that what disturbs the machine disturbs
-- all alike. On a machine with other things to do threads wait for one another; for a target of one core what counts is
-- the processor's time, which shows the ratio all the same.
--
-- A group that is timed again and again finds its operands in the caches, where in the whole the other groups were in
-- between. So each is timed cold too, once after each run of the whole: by how much the whole takes longer than these
-- together is not the caches' doing.
-- usage: msched groups.lua FILE TRIALS [MOST [TARGET [ARGUMENT…]]]    MOST: the ratio that is allowed (1.1); TARGET:
-- native
local ms = require "msched"
local tune, cli, whole = ms.load "search.tune", ms.load "lua.cli.cli", ms.load "search.groups.whole"
local file, trials, most, target = arg[1], math.tointeger(arg[2]), tonumber(arg[3] or 1.1),
  ms.target(arg[4] or "native").text
local SECONDS, ROUND, ROUNDS = 1, 5e-3, 41 -- that each is timed, in turn; or a round, and how many

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- The median of what rounds of calls take of the processor's time, each round some milliseconds.
local function processor_times(calls)
  local lists, counts, times = {}, {}, {}
  for i in ipairs(calls) do lists[i], counts[i] = {}, 1 end
  local function round(i)
    local before = os.clock()
    for _ = 1, counts[i] do calls[i]:run() end
    return os.clock() - before
  end
  for i in ipairs(calls) do while round(i) < ROUND do counts[i] = 2 * counts[i] end end
  for _ = 1, ROUNDS do for i in ipairs(calls) do table.insert(lists[i], round(i) / counts[i]) end end
  for i, list in ipairs(lists) do times[i] = {seconds = median(list)} end
  return times
end

-- The median of each by this clock, each call after one of the last, the whole; and that of the whole meanwhile.
local function cold_times(calls, clock)
  local lists, times = {}, {}
  for i in ipairs(calls) do lists[i] = {} end
  local function time(i)
    local before = clock()
    calls[i]:run()
    table.insert(lists[i], clock() - before)
  end
  for _ = 1, ROUNDS do
    for i = 1, #calls - 1 do
      time(#calls)
      time(i)
    end
  end
  for i, list in ipairs(lists) do times[i] = median(list) end
  return times
end

local func = cli.functions_of(file, table.move(arg, 5, #arg, 1, {}))[1]
local path, first = os.tmpname(), nil
local start = ms.clock()
local tasks = tune.all({func}, {trials = trials, target = target, db = path .. ".db", listen = function(e)
  if e.event == "trial" then first = first or ms.clock() - start end
end})
local took = ms.clock() - start
for _, suffix in ipairs {"", ".db", ".db-lock"} do os.remove(path .. suffix) end

local calls, done = {}, 0
for i, task in ipairs(tasks) do
  assert(not task.error, task.error)
  local trace = task.fastest and task.fastest.trace or whole.choice(task)
  local arrays = ms.arrays_for(task.func, 1)
  calls[i], done = ms.apply(task.func, trace):build {target = target}:prepare(table.unpack(arrays)), done + task.done
end
local one_core = ms.target(target).cores == 1
local times = one_core and processor_times(calls) or ms.time_in_turn(calls, SECONDS)
local cold = cold_times(calls, one_core and os.clock or ms.clock)
local sum, cold_sum = 0, 0
for i = 1, #tasks - 1 do
  sum, cold_sum = sum + tasks[i].weight * times[i].seconds, cold_sum + tasks[i].weight * cold[i]
end
for i = 1, #tasks - 1 do
  local task, seconds = tasks[i], times[i].seconds
  print(string.format("%-32s %4g x %10s %5.1f %%, cold %10s, %.2f times  %d trials", task.name, task.weight,
                      cli.time_text(seconds), 100 * task.weight * seconds / sum, cli.time_text(cold[i]),
                      cold[i] / seconds, task.done))
end
local whole_seconds, ratio = times[#tasks].seconds, times[#tasks].seconds / sum
print(string.format("%s: first trial after %.2f s, %d trials in %.1f s; %s, its groups alone %s: %.3f times",
                    func:name(), first, done, took, cli.time_text(whole_seconds), cli.time_text(sum), ratio))
print(string.format("%s beside its groups cold, %s: %.3f times", cli.time_text(cold[#tasks]), cli.time_text(cold_sum),
                    cold[#tasks] / cold_sum))
if ratio > most then error(string.format("%.3f times is more than %.3f", ratio, most), 0) end
