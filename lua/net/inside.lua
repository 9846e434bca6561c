-- Finalists inside the network: the best of each task, which were timed alone, are timed again where the network calls
-- them, after other kernels and on other data in the caches; the best there is the one to use. Among them is what would
-- be used without tuning; and where the network as a whole is slower than without tuning, that is what is used.
local ms = msched
local plan, fixed_order = ms.load "lua.net.plan", ms.load "search.fixed_order"
-- Finalists of a function; those within so many times the best alone: other programs make a time twice as long; those
-- that are timed once more, in more rounds: the least of many noisy times is too low; the share of the first's time
-- that another takes at most where it is chosen; the share of all functions' time that one takes at least of which all
-- finalists are built; rounds, of these and of those once more; how many suffice after LATE seconds; how many are had
-- where SECONDS are not over; runs of each plan in one; seconds of each plan in a round of the whole.
local inside = {MOST = 12, CLOSE = 2, AGAIN = 3, GAIN = 0.97, SHARE = 0.01, ROUNDS = {5, 12}, FEW = 3, MOST_ROUNDS = 40,
                LATE = 10, SECONDS = 2, RUNS = 2, EACH = 0.1}

local MOST_BYTES = 2 << 30 -- of constants and values, of all plans that are open at once

-- The records of a task that count here, fastest first.
local function records_of(task, store)
  local list = {}
  for _, r in ipairs(store:records {workload = task.workload, target = task.target.text}) do
    local in_order = not task.fixed_order or fixed_order.has_note(r)
    if r.status == "measured" and r.versions == ms.versions() and in_order then list[#list + 1] = r end
  end
  return list
end

-- {record, trace} of records that are close to the first, at most `most`, the first first; and of what would be used
-- without tuning, wherever it is.
local function finalists(task, store, most)
  local list, seen, records = {}, {}, records_of(task, store)
  local untuned = task.untuned and task.untuned.hash
  for _, r in ipairs(records) do
    local is_close = #list < most and r.seconds <= inside.CLOSE * records[1].seconds
    if (is_close or r.hash == untuned) and not seen[r.hash] then
      seen[r.hash] = true
      list[#list + 1] = {record = r, trace = ms.read_trace(r.trace)}
    end
  end
  return list
end

-- Finalists of the tasks by their functions' hashes, of one that takes little of the time its best alone and what would
-- be used without tuning.
local function lists_of(tasks, store)
  local lists, all = {}, 0
  local function seconds_of(task) return task.fastest and task.weight * (task.fastest.seconds or 0) or 0 end
  for _, task in ipairs(tasks) do all = all + seconds_of(task) end
  for _, task in ipairs(tasks) do
    local most = seconds_of(task) < inside.SHARE * all and 1 or inside.MOST
    local list = task.workload and task.fastest and finalists(task, store, most) or {}
    if #list > 0 then lists[task.func:hash()] = list end
  end
  return lists
end

-- ---- In turn -----------------------------------------------------------------------------------------------------

-- A plan with the k-th finalist of each function, or its first where it has no more. made: kernels that are built.
local function plan_with(prepared, lists, k, build, made)
  local opened = plan.open(prepared, function(entry)
    local list = lists[entry.hash]
    local taken = list and (list[k] or list[1]) or entry
    made[taken] = made[taken] or build(entry, list and taken.trace)
    return made[taken]
  end)
  opened:fill(1)
  return opened
end

-- The plan with the first finalists, and as many with one more of each function, from the number `at` on, as there are,
-- and fit.
local function wave_of(prepared, lists, at, most, build, made)
  local plans = {plan_with(prepared, lists, 1, build, made)}
  local bytes = plans[1].arena_bytes + plans[1].constant_bytes
  local count = math.max(1, math.min(most - at + 1, MOST_BYTES // math.max(bytes, 1) - 1))
  for k = 1, count do plans[k + 1] = plan_with(prepared, lists, at + k - 1, build, made) end
  return plans
end

-- The seconds of each function in runs of a plan: the least of each call.
local function times_of(opened)
  local least, sums = {}, {}
  for _ = 1, inside.RUNS do
    for i, each in ipairs(opened:profile(1, true)) do least[i] = math.min(least[i] or math.huge, each.seconds) end
  end
  for i, each in ipairs(opened.calls) do
    local entry = each.group.kernel
    if entry then sums[entry.hash] = (sums[entry.hash] or 0) + least[i] end
  end
  return sums
end

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

-- Calls f(round) in rounds, at least so many where these do not take too long, until they are enough; false:
-- interrupted.
local function in_rounds(least, f)
  local start, round = ms.clock(), 0
  repeat
    round = round + 1
    f(round)
    if ms.interrupted() then return false end
    local seconds = ms.clock() - start
    local is_enough = round >= least and (round >= inside.MOST_ROUNDS or seconds > inside.SECONDS)
  until is_enough or round >= inside.FEW and seconds > inside.LATE
  return true
end

-- Times the plans in turn. Gives times[k][round] of the k-th: seconds by the functions' hashes; nil: interrupted.
local function time_in_turn(plans, rounds)
  local times = {}
  for k in ipairs(plans) do times[k] = {} end
  local done = in_rounds(rounds, function(round)
    for i = 1, #plans do
      local k = (i + round) % #plans + 1
      times[k][round] = times_of(plans[k])
    end
  end)
  return done and times or nil
end

-- The time of the k-th plan's finalist to the first's: the median of rounds, in each of which both were timed.
local function ratio_of(times, hash, k)
  local ratios = {}
  for round, first in ipairs(times[1]) do
    ratios[round] = times[k][round][hash] / math.max(first[hash], 1e-12)
  end
  return median(ratios)
end

-- Notes as `ratio` of each finalist its time to that of its function's first, in so many rounds; false: interrupted.
local function note_ratios(prepared, lists, rounds, build, made)
  local most, at = 1, 2
  for _, list in pairs(lists) do most = math.max(most, #list) end
  while at <= most do
    local plans = wave_of(prepared, lists, at, most, build, made)
    local times, count = time_in_turn(plans, rounds), #plans - 1
    if not times then return false end
    for hash, list in pairs(lists) do
      for k = at, times[1][1][hash] and math.min(#list, at + count - 1) or 0 do
        list[k].ratio = ratio_of(times, hash, k - at + 2)
      end
    end
    at, plans = at + count, nil
    collectgarbage() -- the plans' memory, before others are opened
  end
  return true
end

-- The first and the few that take least of each list.
local function kept_of(lists)
  local kept = {}
  for hash, list in pairs(lists) do
    local others = table.move(list, 2, #list, 1, {})
    table.sort(others, function(a, b)
      local x, y = a.ratio or math.huge, b.ratio or math.huge
      return x ~= y and x < y or x == y and a.record.id < b.record.id
    end)
    kept[hash] = table.move(others, 1, math.min(#others, inside.AGAIN), 2, {list[1]})
  end
  return kept
end

-- The finalist that takes least; the first where none is clearly faster.
local function best_of(list)
  local best, least = list[1], inside.GAIN
  for k = 2, #list do
    if list[k].ratio and list[k].ratio < least then best, least = list[k], list[k].ratio end
  end
  return best
end

-- ---- Chosen ------------------------------------------------------------------------------------------------------

-- The record of one of a task's finalists is before that of the others from now on: it has this many seconds.
local function take(task, store, chosen, seconds)
  local r = chosen.record
  local ratio = seconds / r.seconds
  store:retime(r.id, {seconds = seconds, low = ratio * r.low, high = ratio * r.high, runs = r.runs,
                      busy = r.busy or false})
  task.fastest = {id = store:short_id(r.key), full_id = r.id, hash = r.hash, seconds = seconds, trace = chosen.trace}
end

-- inside.choose(prepared, tasks, store, build): {compared = functions with several finalists, changed = those of which
-- another is used now}; the tasks' `fastest`, and the store's records, are those. build(entry, trace) gives a kernel.
function inside.choose(prepared, tasks, store, build)
  local lists, made, result = lists_of(tasks, store), {}, {compared = 0, changed = 0}
  for _, rounds in ipairs(inside.ROUNDS) do
    if not note_ratios(prepared, lists, rounds, build, made) then return result end
    lists = kept_of(lists)
  end
  for _, task in ipairs(tasks) do
    local list = lists[task.func:hash()]
    local best = list and best_of(list)
    result.compared = result.compared + (list and #list > 1 and 1 or 0)
    if best and best ~= list[1] then
      take(task, store, best, best.ratio * list[1].record.seconds)
      result.changed = result.changed + 1
    end
  end
  return result
end

-- ---- The whole ---------------------------------------------------------------------------------------------------

-- inside.compare(tuned, untuned): the seconds of two plans, in turn: medians of rounds, and the median of their ratios;
-- nil: interrupted.
function inside.compare(tuned, untuned)
  local times, ratios = {{}, {}}, {}
  local done = in_rounds(inside.ROUNDS[2], function(round)
    local first = (tuned:time(inside.EACH))
    times[1][round], times[2][round] = first, (untuned:time(inside.EACH))
    ratios[round] = first / math.max(times[2][round], 1e-12)
  end)
  if done then return median(times[1]), median(times[2]), median(ratios) end
end

-- inside.take_untuned(tasks, store, ratio): what would be used without tuning is used, of each task that measured it;
-- ratio: the time of the tuned network to the untuned one's. Gives of how many tasks another is used now.
function inside.take_untuned(tasks, store, ratio)
  local changed = 0
  for _, task in ipairs(tasks) do
    local untuned = task.untuned
    local record = untuned and task.fastest and task.fastest.hash ~= untuned.hash
      and store:find_module(task.workload, task.target.text, untuned.hash)
    if record and record.status == "measured" then
      take(task, store, {record = record, trace = ms.read_trace(record.trace)}, task.fastest.seconds / ratio)
      changed = changed + 1
    end
  end
  return changed
end

return inside
