-- Finalists inside the network: the few best of each task, which were timed alone, are timed again where the network
-- calls them, after other kernels and on other data in the caches; the best there is the one to use.
local ms = msched
local plan, fixed_order = ms.load "lua.net.plan", ms.load "search.fixed_order"
-- Finalists of a function; those within so many times the best; the share of the first's time that another takes at
-- most where it is chosen; the share of all functions' time that one takes at least whose finalists are built; rounds,
-- and runs of each plan in one.
local inside = {MOST = 3, CLOSE = 1.15, GAIN = 0.97, SHARE = 0.01, ROUNDS = 5, RUNS = 3}

local MOST_BYTES = 2 << 30 -- of constants and values, of all plans that are open at once

-- The records of a task that are close to its best, fastest first: {record, trace} each.
local function finalists(task, store)
  local list, seen = {}, {}
  local filter = {workload = task.workload, target = task.target.text}
  for _, r in ipairs(store:records(filter)) do
    if r.status == "measured" and r.versions == ms.versions() and (not task.fixed_order or fixed_order.has_note(r)) then
      local first = list[1] and list[1].record.seconds or r.seconds
      if #list == inside.MOST or r.seconds > inside.CLOSE * first then break end
      if not seen[r.hash] then
        seen[r.hash], list[#list + 1] = true, {record = r, trace = ms.read_trace(r.trace)}
      end
    end
  end
  return list
end

-- A plan with the k-th finalist of each function, or its first where it has no more. made: kernels that are built.
local function plan_with(prepared, lists, k, build, made)
  return plan.open(prepared, function(entry)
    local list = lists[entry.hash]
    local chosen = list and (list[k] or list[1]) or entry
    made[chosen] = made[chosen] or build(entry, list and chosen.trace)
    return made[chosen]
  end)
end

-- Finalists of the tasks by their functions' hashes, of one that takes little of the time its best alone; and how many
-- there are of one at most.
local function lists_of(tasks, store)
  local lists, most, all = {}, 1, 0
  for _, task in ipairs(tasks) do all = all + (task.fastest and task.weight * (task.fastest.seconds or 0) or 0) end
  for _, task in ipairs(tasks) do
    local list = task.workload and task.fastest and finalists(task, store) or {}
    if task.fastest and task.weight * (task.fastest.seconds or 0) < inside.SHARE * all then list = {list[1]} end
    if #list > 0 then lists[task.func:hash()], most = list, math.max(most, #list) end
  end
  return lists, most
end

-- Adds the seconds of each function in runs of a plan.
local function note_times(opened, times, k)
  local sums = {}
  for _, each in ipairs(opened:profile(inside.RUNS)) do
    local entry = each.group.kernel
    if entry then sums[entry.hash] = (sums[entry.hash] or 0) + each.seconds end
  end
  for hash, seconds in pairs(sums) do
    times[hash] = times[hash] or {}
    times[hash][k] = times[hash][k] or {}
    table.insert(times[hash][k], seconds)
  end
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- The finalist that takes least there; the first where none is clearly faster.
local function best_of(list, times)
  local first, best, least = median(times[1]), 1, nil
  for k = 2, #list do
    local seconds = median(times[k])
    if seconds < inside.GAIN * first and (not least or seconds < least) then best, least = k, seconds end
  end
  return best, least and least / first or 1
end

-- Its record is before that of the one that was best alone, by as much as it is in the network.
local function take(task, store, list, chosen, ratio)
  local first, c = list[1].record, list[chosen]
  store:retime(c.record.id, {seconds = ratio * first.seconds, low = ratio * first.low, high = ratio * first.high,
                             runs = c.record.runs, busy = c.record.busy or false})
  task.fastest = {id = store:short_id(c.record.key), full_id = c.record.id, hash = c.record.hash,
                  seconds = ratio * first.seconds, trace = c.trace}
end

-- The plans that are timed in turn, at most as many as fit.
local function plans_of(prepared, lists, most, build)
  local made, plans = {}, {}
  for k = 1, most do
    plans[k] = plan_with(prepared, lists, k, build, made)
    plans[k]:fill(1)
    if #plans * (plans[1].arena_bytes + plans[1].constant_bytes) > MOST_BYTES then break end
  end
  return plans
end

-- inside.choose(prepared, tasks, store, build): {compared = functions with several finalists, changed = those of which
-- another is used now}; the tasks' `fastest`, and the store's records, are those. build(entry, trace) gives a kernel.
function inside.choose(prepared, tasks, store, build)
  local lists, most = lists_of(tasks, store)
  local result, times = {compared = 0, changed = 0}, {}
  if most == 1 then return result end
  local plans = plans_of(prepared, lists, most, build)
  for round = 1, #plans > 1 and inside.ROUNDS or 0 do
    for i = 1, #plans do
      local k = (i + round) % #plans + 1
      note_times(plans[k], times, k)
    end
    if ms.interrupted() then return result end
  end
  for _, task in ipairs(tasks) do
    local list, own = lists[task.func:hash()], times[task.func:hash()]
    while list and #list > #plans do list[#list] = nil end
    if list and own and #list > 1 then
      local chosen, ratio = best_of(list, own)
      result.compared = result.compared + 1
      if chosen > 1 then
        take(task, store, list, chosen, ratio)
        result.changed = result.changed + 1
      end
    end
  end
  return result
end

return inside
