-- Steps of a search: what is one step away from a trace, and all that a draw can have.
local steps = {}

-- Traces as jobs: their decisions stay, as far as they fit.
function steps.jobs(traces)
  local jobs = {}
  for i, trace in ipairs(traces) do jobs[i] = {trace = trace} end
  return jobs
end

-- ---- Choices of a draw, as trace:draws() gives it ----------------------------------------------------------------

local function product(list)
  local all = 1
  for _, x in ipairs(list) do all = all * x end
  return all
end

local MOST = 1 << 16 -- decisions of a draw that are listed

-- All decisions that a draw can have, as far as they are listed; nil: it is none of numbers.
function steps.choices(draw)
  local list = {}
  if draw.kind == "SampleCategorical" then
    for i = 1, #draw.attrs[1] do list[i] = {i - 1} end
    return list
  end
  if draw.kind ~= "SamplePerfectTile" or not draw.decision then return nil end
  local parts, count, most, extent = {}, #draw.decision, draw.attrs[2], product(draw.decision)
  local divisors = msched.divisors(extent)
  local function extend(at, rest)
    if #list == MOST then return end
    if at == count then
      parts[at] = rest
      if most < 1 or rest <= most then list[#list + 1] = {table.unpack(parts)} end
      return
    end
    for _, f in ipairs(divisors) do
      if rest % f == 0 then
        parts[at] = f
        extend(at + 1, rest // f)
      end
    end
  end
  extend(1, extent)
  return list
end

-- nil of 1.
local function least_prime(n) return msched.divisors(n)[2] end

local CHOICES = 2 -- so far from a choice others are near: what is between may fit nothing, as a vector of 3 elements

-- Decisions one step away: the choices before and after; the least prime factor of one part moved to another; of
-- places, the one before or after, the outermost loop, and the two that are none.
local function near(draw)
  local list = {}
  if draw.kind == "SampleCategorical" and draw.decision then
    local at = draw.decision[1]
    for choice = math.max(0, at - CHOICES), math.min(at + CHOICES, #draw.attrs[1] - 1) do
      if choice ~= at then list[#list + 1] = {choice} end
    end
  elseif draw.kind == "SampleComputeLocation" and draw.decision then
    local at = draw.decision[1]
    for place = -2, math.max(at + 1, 0) do
      if place ~= at and (place <= 0 or place >= at - 1) then list[#list + 1] = {place} end
    end
  elseif draw.kind == "SamplePerfectTile" and draw.decision then
    for from, factor in ipairs(draw.decision) do
      for to = 1, factor > 1 and #draw.decision or 0 do
        local p, moved = least_prime(factor), {table.unpack(draw.decision)}
        moved[from], moved[to] = factor // p, moved[to] * p
        if to ~= from and (to < #moved or draw.attrs[2] < 1 or moved[to] <= draw.attrs[2]) then
          list[#list + 1] = moved
        end
      end
    end
  end
  return list
end

-- The traces one step away: in one draw, or in what is chosen for one block.
function steps.neighbours(env, trace)
  local list = env:other_choices(trace)
  for _, d in ipairs(trace:draws()) do
    for _, decision in ipairs(near(d)) do list[#list + 1] = trace:with_decision(d.index, decision) end
  end
  return list
end

-- Those around the fastest few, as jobs.
function steps.around_best(env, few)
  local traces = {}
  for _, m in ipairs(env:best(few)) do
    for _, trace in ipairs(steps.neighbours(env, m.sketch)) do traces[#traces + 1] = trace end
  end
  return steps.jobs(traces)
end

return steps
