-- Whether a device is as fast as it was: the rate of a kernel of multiply-adds, by the fastest of its runs, so that a
-- program beside it counts only where it leaves no moment. The best rate that was seen of a machine's device stays on
-- the server, for workers that start when it is hot.
local check = {EVERY = 300, AGAIN = 30, SHARE = 0.75} -- seconds between checks, and where it was slow; of the best rate

-- A function that measures the rate of what a target's code runs on.
function check.measurer(target)
  local peak, made = msched.load "lua.bench.peak", nil
  if target.kind == "cuda" then return function() return peak.device_glance(target.text, target.arch) end end
  return function()
    made = made or peak.core_call(target)
    return made.work / peak.fastest(made.call)
  end
end

-- The best rate of a device, this one among them. what: names machine and device.
function check.best(queue, what, rate)
  local key = queue:key "rates"
  local known = tonumber(queue.link:call("HGET", key, what) or "") or 0
  if not (known > 0 and known < math.huge) then known = 0 end
  if rate > known then queue.link:all {{"HSET", key, what, string.format("%.9g", rate)}} end
  return math.max(rate, known)
end

-- Why a worker is too slow to take jobs; "": it is not.
function check.slow(rate, best)
  if rate >= check.SHARE * best then return "" end
  return string.format("its measured peak is %.0f %% of the best seen: heat, another clock, or a busy machine",
                       100 * rate / best)
end

-- ---- Tuners' judgement -------------------------------------------------------------------------------------------

check.FAR = 1.5 -- times: a result that is confirmed is not so far off

function check.is_confirmed(claimed, timed) return timed < check.FAR * claimed and claimed < check.FAR * timed end

-- A tuner found that a worker's times are not so: shown by `msched fleet`.
function check.tell_liar(queue, name, why)
  queue.link:all {{"HSET", queue:key "liars", name, why}, {"EXPIRE", queue:key "liars", 7 * 86400}}
end

-- Names and why.
function check.liars(queue)
  local reply, list = queue.link:call("HGETALL", queue:key "liars"), {}
  for i = 1, #reply - 1, 2 do list[reply[i]] = reply[i + 1] end
  return list
end

return check
