-- The end of a run: the best few of a task, which were measured one after another, are timed again in turn, so that what
-- disturbs the machine disturbs all alike; the fastest of them is the best. Where it disturbs them all the time, so that each
-- is far slower than the best was, what was measured before is what counts.
local contest = {MOST = 5, SECONDS = 0.15} -- how many are timed again at most, and how long each

local CLOSE = 1.15 -- times the best: those within it
local DISTURBED = 1.5 -- times the best, as it was measured: no machine that it has to itself is so much slower at the end

-- Those that are close to the best, as the store has them.
local function contenders_of(task)
  local list = {}
  for _, c in ipairs(task:best(contest.MOST)) do
    local record = c.seconds <= CLOSE * task.measured[1].seconds and task:record_of(c.hash)
    if record then list[#list + 1] = {measured = c, record = record, trace = msched.read_trace(record.trace)} end
  end
  return list
end

local function was_disturbed(times, best)
  for _, t in ipairs(times) do if t.seconds <= DISTURBED * best then return false end end
  return true
end

-- Gives how many were timed again; their records have the new times.
function contest.run(task)
  if task.simulate or task.done == 0 or task.run.cut or task:stopped() then return 0 end
  local services, list, traces, times = task.services, contenders_of(task), {}, nil
  if #list < 2 then return 0 end
  for i, c in ipairs(list) do traces[i] = c.trace end
  services.measurer:contest(task.number, traces, contest.SECONDS)
  repeat
    task.log("wait", task.name, {waiting = #list, retiming = true})
    times = services.measurer:contested(0.2)
    if services.tell_waiting then services:tell_waiting() end
  until times ~= nil or task:stopped()
  if not times or was_disturbed(times, task.measured[1].seconds) then return 0 end
  task.fastest = nil
  for i, c in ipairs(list) do
    services.store:retime(c.record.id, times[i])
    c.measured.seconds = times[i].seconds
    task:note_best(times[i].seconds, c.measured.id, c.record.id, c.measured.hash, c.trace)
  end
  return #list
end

return contest
