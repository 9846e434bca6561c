-- The end of a run: the best few of a task, which were measured one after another, are timed again in turn, so that
-- what disturbs the machine disturbs all alike; the fastest of all is the best. Those that were not timed again and
-- would now be first have to show it: they are timed again beside the best, until the best is one that was, or too many
-- were. Where the machine is disturbed all the time, so that each is far slower than the best was, what was measured
-- before is what counts.

-- How many are timed again at a time, at most, and how long each; how long after the run's end. In times of the best
-- as it was measured: those within CLOSE are timed again; one that takes DISTURBED times as long was disturbed.
local remeasure = {MOST = 5, SECONDS = 0.15, LATE = 1, CLOSE = 1.15, DISTURBED = 1.5}

local ROUNDS = 4
local WAIT, BESIDE = 0.2, 0.02 -- seconds of a look at what came; where other tasks' are looked at, too

-- A result with its record; nil: the store has none.
local function finalist(task, c)
  local record = task:record_of(c.hash)
  return record and {measured = c, record = record, trace = msched.read_trace(record.trace)}
end

-- Those that are close to the best.
local function closest(task)
  local list = {}
  for _, c in ipairs(task:fastest_few(remeasure.MOST)) do
    if c.seconds <= remeasure.CLOSE * task.measured[1].seconds then list[#list + 1] = finalist(task, c) end
  end
  return list
end

-- Those that are before the best of the ones that were timed again, and that one; none where it is the first.
local function challengers(task, timed)
  local list = {}
  for _, c in ipairs(task:fastest_few(math.huge)) do
    if timed[c.hash] then
      if #list > 0 then list[#list + 1] = finalist(task, c) end
      break
    end
    if #list < remeasure.MOST - 1 then list[#list + 1] = finalist(task, c) end
  end
  return list
end

local function was_disturbed(times, best)
  for _, t in ipairs(times) do if t.seconds <= remeasure.DISTURBED * best then return false end end
  return true
end

-- Times those of the list in turn; nil: one could not be, or an interrupt came. pause(): called between looks, where
-- other tasks' are timed meanwhile.
local function time_in_turn(task, list, pause)
  local services, traces, claims, times = task.services, {}, {}, nil
  for i, c in ipairs(list) do
    traces[i], claims[i] = c.trace,
      c.measured.worker and {worker = c.measured.worker, seconds = c.measured.seconds} or false
  end
  local asked = services.measurer:remeasure(task.number, traces, remeasure.SECONDS, claims)
  repeat
    if pause then pause() end
    task.log("wait", task.name, {waiting = #list, retiming = true})
    times = services.measurer:remeasured(pause and BESIDE or WAIT, asked)
    if services.tell_waiting then services:tell_waiting() end
  until times ~= nil or task:stopped()
  return times or nil
end

-- Their records have these times from now on.
local function take_times(task, list, times, timed)
  for i, c in ipairs(list) do
    task.services.store:retime(c.record.id, times[i])
    c.measured.seconds, c.measured.worker, timed[c.measured.hash] = times[i].seconds, times[i].worker, true
  end
  task.limit_elsewhere = times.limit or task.limit_elsewhere
  task:choose_best()
  for i, c in ipairs(list) do
    task.log("retimed", task.name, {id = c.record.id, short_id = c.measured.id, seconds = times[i].seconds,
                                    low = times[i].low, high = times[i].high, busy = times[i].busy or false,
                                    best = task.fastest.id, best_seconds = task.fastest.seconds})
  end
end

-- Of a fleet: results of workers that others do not confirm count as failed, but those that were timed again elsewhere.
-- Gives whether there were any.
local function put_aside(task, timed, again)
  local measurer, kept, found = task.services.measurer, {}, false
  local liars = measurer.distrusted and measurer:distrusted() or {}
  for _, c in ipairs(task.measured) do
    local why = c.worker and not timed[c.hash] and not again[c.hash] and liars[c.worker]
    if why then
      found = true
      task.services.store:fail(c.full_id,
                               string.format("put aside, as are all results of worker %s: %s", c.worker, why))
    else
      kept[#kept + 1] = c
    end
  end
  task.measured = kept
  return found
end

-- After all tasks: what workers measured that were found out after this task's finalists were timed counts as failed.
function remeasure.distrust(task)
  if task.simulate or not task.services.measurer or not put_aside(task, {}, {}) then return end
  local best = task.fastest and task.fastest.hash
  for _, c in ipairs(task.measured) do if c.hash == best then return end end
  task.fastest = nil
  task:choose_best()
  remeasure.run(task)
end

-- Gives how many were timed again; their records have the new times. pause: as of time_in_turn, or nil.
function remeasure.run(task, pause)
  if task.simulate or task.done == task.counted or task.run.cut then return 0 end
  -- of a fleet also one alone: others confirm it
  local timed, count, least = {}, 0, task.services.measurer.distrusted and 1 or 2
  for round = 1, ROUNDS do
    local list = round == 1 and closest(task) or challengers(task, timed)
    if #list < least or task:stopped() or task.run:is_late(remeasure.LATE) then break end
    local best = task.measured[1].seconds
    local times = time_in_turn(task, list, pause)
    local again = {}
    for _, c in ipairs(list) do again[c.measured.hash] = true end
    local is_wrong = times and put_aside(task, timed, again)
    if not times or not is_wrong and was_disturbed(times, best) then break end
    take_times(task, list, times, timed)
  end
  for _ in pairs(timed) do count = count + 1 end
  return count
end

return remeasure
