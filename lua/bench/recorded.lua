-- A measurer that answers from a store what it has, and measures and records the rest: so what is measured is measured
-- once, and runs that are compared see the same times. Finalists have the times that they had.
local ms = msched

local recorded = {}
recorded.__index = recorded

-- store: of the times; target: as ms.target gives it.
function recorded.open(store, target)
  return setmetatable({store = store, target = target, inner = ms.measurer {target = target.text}, workloads = {},
                       ready = {}, pending = {}, measured = 0}, recorded)
end

function recorded:add(func)
  local number = self.inner:add(func)
  self.workloads[number], self.pending[number] = self.store:put_workload(func), {}
  return number
end

function recorded:reference(number) return self.inner:reference(number) end
function recorded:close_task(number) self.inner:close_task(number) end
function recorded:waiting() return self.inner:waiting() end
function recorded:set_best() end -- times depend on no run
function recorded:close() self.inner:close() end

local function result_of(number, id, r)
  return {task = number, id = id, hash = r.hash, outcome = r.status, measured = r.status == "measured",
          censored = r.status == "censored", seconds = r.seconds, low = r.low, high = r.high, runs = r.runs,
          busy = r.busy, reason = r.reason}
end

function recorded:submit(number, id, trace, hash)
  local r = self.store:find_module(self.workloads[number], self.target.text, hash)
  if r then
    self.ready[#self.ready + 1] = result_of(number, id, r)
    return
  end
  self.pending[number][id] = {trace = trace, hash = hash}
  self.inner:submit(number, id, trace, hash)
end

function recorded:next(wait)
  if self.ready[1] then return table.remove(self.ready, 1) end
  local r = self.inner:next(wait)
  local asked = r and not r.unmeasurable and self.pending[r.task][r.id]
  if not asked then return r end
  self.pending[r.task][r.id], self.measured = nil, self.measured + 1
  self.store:put {workload = self.workloads[r.task], target = self.target.text, trace = asked.trace, hash = asked.hash,
                  seconds = r.seconds, low = r.low, high = r.high, runs = r.runs, status = r.measured and "measured"
                  or r.censored and "censored" or "failed", busy = r.busy, reason = r.reason}
  return r
end

function recorded:remeasure(number, traces) self.finalists = {number, traces} end
function recorded:remeasured() return false end

return recorded
