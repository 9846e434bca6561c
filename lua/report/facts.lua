-- What a store says of its tasks: a workload on a target is one, with its records in the order in which they came, runs
-- of the search, failures, the best.
local ms = msched
local cli = ms.load "lua.cli.cli"
local facts = {}

-- Records in the order in which they were measured: the store knows seconds, and within one when they came in a run of
-- the search, or the candidates' numbers.
local function in_order(records)
  table.sort(records, function(a, b)
    if a.when ~= b.when then return a.when < b.when end
    local x, y = a.search and a.search.came or math.huge, b.search and b.search.came or math.huge
    if x ~= y then return x < y end
    if a.candidate ~= b.candidate then return a.candidate < b.candidate end
    return a.id < b.id
  end)
  return records
end

local PAUSE = 600 -- seconds without a record: the search was stopped meanwhile, and they do not count

local LONGEST = 1e8 -- seconds, three years: what is said to be longer, by whoever wrote the store, is not believed

local function says_when(r)
  local s = r.search
  local function is_time(seconds) return seconds == nil or seconds >= 0 and seconds <= LONGEST end
  return s ~= nil and s.asked ~= nil and s.came ~= nil and is_time(s.asked) and s.asked <= s.came and is_time(s.came)
    and is_time(s.build_seconds) and is_time(s.run_seconds)
end

-- Stretches of the search of records in order, in each of which the program ran without an end: where all say when they
-- came, each starts again.
local function stretches_of(records)
  local list = {}
  for _, r in ipairs(records) do
    if not says_when(r) then return nil end
    local now = list[#list]
    if not now or r.search.came < now[#now].search.came then
      now = {}
      list[#list + 1] = now
    end
    now[#now + 1] = r
  end
  return list
end

-- The seconds of the search at which the records, in order, came.
local function seconds_of(records)
  local seconds, stretches, before = {}, stretches_of(records), 0
  for _, stretch in ipairs(stretches or {}) do
    for _, r in ipairs(stretch) do seconds[#seconds + 1] = before + r.search.came end
    before = seconds[#seconds]
  end
  local elapsed, last = 0, records[1].when
  for i, r in ipairs(stretches and {} or records) do
    elapsed = elapsed + (r.when - last <= PAUSE and r.when - last or 0)
    seconds[i], last = elapsed, r.when
  end
  return seconds
end

-- Where the time of a run went that says when its records came, in seconds: {total, waited, build, run}; nil: it does
-- not.
local function spent_of(records)
  local stretches = stretches_of(records)
  if not stretches then return nil end
  local spent = {total = 0, waited = 0, build = 0, run = 0}
  for _, stretch in ipairs(stretches) do
    local free = 0 -- from when on it does not wait
    for _, r in ipairs(stretch) do
      local s = r.search
      spent.waited, free = spent.waited + math.max(0, s.came - math.max(s.asked, free)), s.came
      spent.build, spent.run = spent.build + (s.build_seconds or 0), spent.run + (s.run_seconds or 0)
    end
    spent.total = spent.total + free
  end
  return spent
end

-- The best so far of records in order: {trial, second, seconds}, one each record that was measured or failed.
local function curve_of(records)
  local points, best, seconds = {}, nil, seconds_of(records)
  for i, r in ipairs(records) do
    if r.status == "measured" and (not best or r.seconds < best) then best = r.seconds end
    points[i] = {trial = i, second = seconds[i], best = best, seconds = r.status == "measured" and r.seconds or nil}
  end
  return points
end

-- Runs of the search: records of one seed by one version, in order of their first.
function facts.runs_of(records)
  local runs, by_key = {}, {}
  for _, r in ipairs(records) do
    local key = r.seed .. " " .. r.versions
    if not by_key[key] then
      by_key[key] = {seed = r.seed, versions = r.versions, records = {}}
      runs[#runs + 1] = by_key[key]
    end
    table.insert(by_key[key].records, r)
  end
  for _, run in ipairs(runs) do run.curve, run.spent = curve_of(run.records), spent_of(run.records) end
  return runs
end

-- What a failure's message says, whatever the numbers in it.
local function reason_of(r)
  local line = r.reason:match "^[^\n]*"
  return line ~= "" and (line:gsub("0x%x+", "#"):gsub("%d[%d.e+-]*", "#")) or "without a message"
end

-- {reason, count, example}, the most frequent first.
local function failures_of(records)
  local list, by_reason = {}, {}
  for _, r in ipairs(records) do
    if r.status == "failed" then
      local reason = reason_of(r)
      if not by_reason[reason] then
        by_reason[reason] = {reason = reason, count = 0, example = r.reason}
        list[#list + 1] = by_reason[reason]
      end
      by_reason[reason].count = by_reason[reason].count + 1
    end
  end
  table.sort(list, function(a, b)
    return a.count ~= b.count and a.count > b.count or a.count == b.count and a.reason < b.reason
  end)
  return list
end

local function best_of(records)
  local best
  for _, r in ipairs(records) do
    if r.status == "measured"
        and (not best or r.seconds < best.seconds or r.seconds == best.seconds and r.id < best.id) then
      best = r
    end
  end
  return best
end

-- known: what the store says of the task; records: all of them, or a part.
local function task_of(store, workload, known_task, records)
  local readable, func = pcall(store.get_workload, store, workload.id)
  local target, counts, total = known_task.target, {measured = 0, censored = 0, failed = 0, unmeasured = 0}, #records
  for _, r in ipairs(records) do counts[r.status] = counts[r.status] + 1 end
  if records.sampled then
    total = known_task.records
    for status in pairs(counts) do counts[status] = known_task[status] end
  end
  local known, machine = pcall(ms.target, target)
  return {
    name = workload.name, id = workload.id, target = target, machine = known and machine or nil,
    records = in_order(records), counts = counts,
    total = total, sampled = records.sampled,
    func = readable and func or nil, why = not readable and tostring(func) or nil,
    work = cli.work_of(readable and func or nil),
    runs = facts.runs_of(records), failures = failures_of(records), best = best_of(records),
  }
end

-- Records of a task, so that a page of large tasks takes bounded time and memory: of a task with more the fastest, and
-- as many of the others, evenly by their time.
local MOST_OF_TASK, MOST_OF_PAGE, LEAST_OF_TASK = 4000, 40000, 100

local function records_of(store, task, tasks)
  local most = math.max(LEAST_OF_TASK, math.min(MOST_OF_TASK, MOST_OF_PAGE // tasks))
  local filter = {workload = task.workload, target = task.target}
  if task.records > most then
    filter.first = most // 2
    filter.step = math.max(1, math.ceil((task.records - filter.first) / (most - filter.first)))
  end
  local records = store:records(filter)
  records.sampled = task.records > most
  return records
end

-- Tasks of a store by their workload's id and their target, those of the wanted workloads, or all: {task, records}.
local function tasks_by_workload(store, workloads, wanted)
  local by_workload, of_wanted, listed, chosen = {}, {}, {}, {}
  for _, w in ipairs(workloads) do listed[w.id], of_wanted[w.id] = true, wanted[w.name] ~= nil or nil end
  for _, t in ipairs(store:tasks()) do
    if not next(wanted) or of_wanted[t.workload] or not listed[t.workload] then chosen[#chosen + 1] = t end
  end
  for _, t in ipairs(chosen) do
    by_workload[t.workload] = by_workload[t.workload] or {}
    local records = records_of(store, t, #chosen)
    if #records > 0 then by_workload[t.workload][t.target] = {task = t, records = records} end
  end
  return by_workload
end

function facts.hex_of(id) return (id:gsub(".", function(c) return string.format("%02x", c:byte()) end)) end

-- Workloads that records name and the store does not list: damaged, or lost.
local function add_lost(workloads, by_workload)
  local listed = {}
  for _, w in ipairs(workloads) do listed[w.id] = true end
  for _, id in ipairs(ms.sorted_keys(by_workload)) do
    if not listed[id] then workloads[#workloads + 1] = {id = id, name = "workload " .. facts.hex_of(id):sub(1, 12)} end
  end
end

-- known: the names that there are.
local MOST_KNOWN = 20
local function refuse_name(store, name, known)
  if cli.is_there(name) then
    cli.refuse("%s has no workload `%s`; that is a file: --db reads a store, and of files a page is made of networks, \z
                FILE.onnx", store:path(), name)
  end
  table.sort(known)
  local more = #known > MOST_KNOWN and string.format(", and %d more", #known - MOST_KNOWN) or ""
  cli.refuse("%s has no workload `%s`%s; it has %s%s", store:path(), name, ms.load "lua.lib.nearest".meant(name, known),
             #known > 0 and table.concat(known, ", ", 1, math.min(#known, MOST_KNOWN)) or "none", more)
end

-- The tasks of a store, those of `names` where there are any, in order of name and target; and the workloads that have
-- no record. Raises where a name is none.
function facts.of(store, names)
  local wanted, list, bare, known = {}, {}, {}, {}
  local workloads = store:workloads()
  for i, name in ipairs(names) do
    local operator = name:find "^ops:" and ms.load "lua.lib.records".workloads(store, name)[1]
    names[i] = operator and operator.name or name
    wanted[names[i]] = true
  end
  local by_workload = tasks_by_workload(store, workloads, wanted)
  add_lost(workloads, by_workload)
  for _, w in ipairs(workloads) do
    known[#known + 1] = w.name
    if #names == 0 or wanted[w.name] ~= nil then
      wanted[w.name] = false
      local by_target = by_workload[w.id] or {}
      for _, target in ipairs(ms.sorted_keys(by_target)) do
        list[#list + 1] = task_of(store, w, by_target[target].task, by_target[target].records)
      end
      if not next(by_target) then bare[#bare + 1] = w.name end
    end
  end
  for _, name in ipairs(names) do
    if wanted[name] then refuse_name(store, name, known) end
  end
  table.sort(list, function(a, b)
    if a.name ~= b.name then return a.name < b.name end
    return a.target ~= b.target and a.target < b.target or a.target == b.target and a.id < b.id
  end)
  return list, bare
end

return facts
