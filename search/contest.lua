-- The end of a run: the best few, which were measured one after another, are timed again in turn, so that what disturbs
-- the machine disturbs all alike; the fastest of them is the best.
local contest = {}

local FEW, CLOSE, SECONDS = 5, 1.15, 0.3 -- so many; within this of the best; for each

-- Those that are close to the best, as the store has them.
local function contenders_of(env)
  local list = {}
  for _, c in ipairs(env:best(FEW)) do
    local record = c.seconds <= CLOSE * env.measured[1].seconds and env.store:find_module(env.workload, env.target.text, c.hash)
    if record then list[#list + 1] = {measured = c, record = record, trace = msched.read_trace(record.trace)} end
  end
  return list
end

-- Gives how many were timed again; their records have the new times.
function contest.run(env)
  if env.simulate or env.done == 0 or env.cut or env:stopped() then return 0 end
  local list, traces, times = contenders_of(env), {}, nil
  if #list < 2 then return 0 end
  for i, c in ipairs(list) do traces[i] = c.trace end
  env.measurer:contest(env.number, traces, SECONDS)
  repeat
    env.listen {event = "wait", env = env}
    times = env.measurer:contested(0.2)
  until times ~= nil or env:stopped()
  if not times then return 0 end
  env.fastest = nil
  for i, c in ipairs(list) do
    env.store:retime(c.record.id, times[i])
    c.measured.seconds = times[i].seconds
    if not env.fastest or times[i].seconds < env.fastest.seconds then
      env.fastest = {seconds = times[i].seconds, id = c.measured.id, full_id = c.record.id, hash = c.measured.hash, trace = c.trace}
    end
  end
  return #list
end

return contest
