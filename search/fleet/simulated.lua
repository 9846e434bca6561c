-- A measurer that measures nothing, for tests of a fleet: each candidate takes so long, and its time is drawn from its
-- trace, so that every worker says the same.
local digest = msched.load "search.fleet.queue".digest

local simulated = {}
simulated.__index = simulated

local LEAST, SPREAD = 1e-4, 1e5 -- seconds of the fastest; of the slowest as many times more as this has thousands

-- seconds: that one takes; factor: of what it says, above or below 1 where it lies.
function simulated.open(seconds, factor)
  return setmetatable({seconds = seconds, factor = factor or 1, tasks = 0, queue = {}, free_at = 0}, simulated)
end

function simulated:add()
  self.tasks = self.tasks + 1
  return self.tasks - 1
end
function simulated:reference() return true, "" end
function simulated:set_best() end
function simulated:close_task() end
function simulated:close() end
function simulated:waiting() end

function simulated:time_of(trace)
  return self.factor * LEAST * (1 + tonumber(digest(trace:binary()):sub(-8), 16) % SPREAD / 1e3)
end

-- hash: of the module that the trace gives, which is not made.
function simulated:submit(task, id, trace, hash)
  self.free_at = math.max(self.free_at, msched.clock()) + self.seconds
  self.queue[#self.queue + 1] = {at = self.free_at, task = task, id = id, trace = trace, hash = hash}
end

local function timing(seconds) return {seconds = seconds, low = seconds, high = seconds, runs = 1, busy = false} end

function simulated:next(wait)
  local first = self.queue[1]
  if not first or first.at - msched.clock() > wait then
    msched.sleep(wait)
    return nil
  end
  msched.sleep(math.max(first.at - msched.clock(), 0))
  table.remove(self.queue, 1)
  local r = timing(self:time_of(first.trace))
  r.task, r.id, r.hash, r.outcome = first.task, first.id, first.hash, "measured"
  return r
end

function simulated:remeasure(_, traces) self.finalists = traces end
function simulated:remeasured()
  local list = {}
  for i, trace in ipairs(self.finalists) do list[i] = timing(self:time_of(trace)) end
  return list
end

return simulated
