-- How well the analytical estimate of a target, which learns nothing, ranks what a store has of it.
local ms = msched
local analytical = ms.load "search.cost.analytical"

local estimate = {LEAST = 8} -- results of which it is said

-- What each result of the function on the target takes, measured by any version, and what it costs as estimated; of one
-- that was stopped, no more is known than that it takes longer. as_built(trace), or nil: the trace whose kernel was
-- measured, where a record's kernel was built otherwise than it is today.
function estimate.results(store, func, workload, target, as_built)
  local list, machine = {}, analytical.machine(target)
  for _, r in ipairs(machine and store:records {workload = workload, target = target.text} or {}) do
    if ms.interrupted() then break end
    local trace = (r.status == "measured" or r.status == "censored") and ms.read_trace(r.trace)
    local cost = trace and analytical.cost_of(func, as_built and as_built(trace) or trace, machine)
    if cost then list[#list + 1] = {seconds = r.seconds, cost = cost, at_least = r.status == "censored"} end
  end
  return list
end

local function sign(x) return x > 0 and 1 or x < 0 and -1 or 0 end

-- Which of two results takes longer: 1, the first; -1; 0: as long, or it is not known.
local function longer(a, b)
  local order = sign(a.seconds - b.seconds)
  if a.at_least and order <= 0 or b.at_least and order >= 0 then return 0 end
  return order
end

-- Kendall's tau-b of costs and times. Source: Kendall, "The treatment of ties in ranking problems", Biometrika 33
-- (1945).
function estimate.tau(list)
  local agree, by_cost, by_time = 0, 0, 0
  for i = 1, #list do
    for k = i + 1, #list do
      local time, cost = longer(list[i], list[k]), sign(list[i].cost - list[k].cost)
      if time ~= 0 then
        agree, by_time, by_cost = agree + time * cost, by_time + 1, by_cost + cost * cost
      end
    end
  end
  return by_cost > 0 and agree / math.sqrt(by_cost * by_time) or 0
end

-- How many times as long as the fastest the top-ranked candidate takes.
function estimate.first(list)
  local first, fastest = list[1], math.huge
  for _, r in ipairs(list) do
    if r.cost < first.cost then first = r end
    if not r.at_least then fastest = math.min(fastest, r.seconds) end
  end
  return first.seconds / fastest
end

return estimate
