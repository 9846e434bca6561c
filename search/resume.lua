-- What the store knows of a task when a run begins: modules that are not measured again, the best so far, training
-- samples for the model, and records of others where the search starts.
local fixed, fixed_order = msched.load "search.fixed", msched.load "search.fixed_order"
local resume = {}

-- Whether a record's trace means here what it meant when it was measured: the intrinsics that it names are the same.
local function is_understood(store, r) return not r.has_intrinsics or pcall(store.take_intrinsics, store, r.id) end

-- A later version, or damage, may have written what does not read here.
local function trace_of(task, r)
  local ok, trace = pcall(msched.read_trace, r.trace)
  if ok then return trace end
  task.log("left_out", task.name, {record = r.id, reason = tostring(trace):match "^[^\n]*":gsub("^[^ ]*:%d+: ", "")})
end

-- The iteration that asked for a record; 0: one of another seed's, or of the starts.
local function iteration_of(task, r) return r.seed == task.seed and r.candidate >> task.NUMBERS or 0 end

-- Those of other targets of the kind, of other versions and of TVM: the fastest are measured here first; then those of
-- other functions.
local function keep_starts(task, starts)
  table.sort(starts, function(a, b)
    if a.far ~= b.far then return a.far < b.far end
    if a.here ~= b.here then return a.here end
    if a.seconds ~= b.seconds then return a.seconds < b.seconds end
    return a.id < b.id
  end)
  task.starts = table.move(starts, 1, math.min(#starts, task.batch), 1, {})
end

-- ---- The nearest shapes ----------------------------------------------------------------------------------------

local NEAREST, SEEDS = 2, 2 -- functions, and records of each

-- What a function is whatever its extents: its text without the numbers.
local function structure_of(func) return (func:script():gsub("%d+", "#")) end

local function distance(a, b)
  local sum, others = 0, b:params()
  for i, p in ipairs(a:params()) do
    for d, extent in ipairs(p.shape) do sum = sum + math.abs(math.log(extent / others[i].shape[d])) end
  end
  return sum
end

-- Functions of the store that are the task's but for their extents, the nearest first: {id, far}. Those of the run's
-- other tasks are none: their records differ between the start of a run and its continuation.
local function nearest(task, store)
  local own, list, structure = {}, {}, structure_of(task.func)
  for _, t in ipairs(task.run.tasks) do own[t.workload or ""] = true end
  for _, w in ipairs(store:workloads()) do
    local ok, func = pcall(store.get_workload, store, w.id)
    if ok and w.records > 0 and not own[w.id] and func:hash() ~= task.func:hash()
        and structure_of(func) == structure then
      list[#list + 1] = {id = w.id, far = 1 + distance(task.func, func)}
    end
  end
  table.sort(list, function(a, b) return a.far ~= b.far and a.far < b.far or a.far == b.far and a.id < b.id end)
  return table.move(list, 1, math.min(#list, NEAREST), 1, {})
end

-- The fastest of the nearest, as starts.
local function add_nearest(task, store, starts)
  for _, w in ipairs(nearest(task, store)) do
    for _, r in ipairs(store:records {workload = w.id, target = task.target.text, most = SEEDS}) do
      local trace = r.status == "measured" and is_understood(store, r) and trace_of(task, r)
      if trace then
        starts[#starts + 1] = {sketch = trace:simplified(false), far = w.far, here = true, seconds = r.seconds,
                               id = r.id}
      end
    end
  end
end

-- ---- The task's own ---------------------------------------------------------------------------------------------

-- Records of equal functions, which bear other names: as if they were the task's. A module's hash counts its function's
-- name, so it is made again; what cannot be is left alone.
function resume.shared(task, store)
  local list = {}
  for _, w in ipairs(store:workloads(task.func)) do
    for _, r in ipairs(w.id ~= task.workload and store:records {workload = w.id} or {}) do
      local function make() return msched.apply(task.func, msched.read_trace(r.trace)) end
      local ok, sch = is_understood(store, r), nil
      if ok then ok, sch = pcall(make) end
      if ok then
        r.hash = sch:hash()
        list[#list + 1] = r
      end
    end
  end
  return list
end

-- The task's own, and those it shares, but those that nothing came of yet, and where the order of reductions is fixed
-- those without the note of it; of a module that was measured under two names, its
-- own.
local function records_of(task, store)
  local list, seen = {}, {}
  local function add(r)
    local key = r.target .. " " .. r.versions .. " " .. r.hash
    local in_order = not task.fixed_order or fixed_order.has_note(r)
    if r.status ~= "unmeasured" and in_order and not seen[key] then list[#list + 1], seen[key] = r, true end
  end
  for _, r in ipairs(store:records {workload = task.workload}) do add(r) end
  for _, r in ipairs(task.shared) do add(r) end
  return list
end

-- Which run of the search the task goes on with: the last of its seed, where it was one of this policy in this space.
-- Its trials, {run, counted}; a later version's numbers are none.
local function find_run(task, own)
  local number, counted, is_other = 0, 0, false
  for _, k in ipairs(own) do
    local search = k.record.seed == task.seed and k.record.search or {}
    local run = math.tointeger(search.run) or 0
    if run > number then number, counted, is_other = run, 0, false end
    if run == number and run > 0 then
      is_other = is_other or search.space ~= task.space_key
      counted = counted + (k.trace and 1 or 0)
    end
  end
  task.run_number, task.counted = math.max(number, 1), is_other and 0 or counted
  if is_other then task.run_number = number + 1 end
end

-- Whether any task lacks trials of those that are asked for: of each, or of a function that is cut and its groups
-- together, or of all together.
local function is_any_lacking(tasks, total)
  local all, of_budget = 0, {}
  for _, t in ipairs(tasks) do
    all = all + t.counted
    if t.budget then of_budget[t.budget] = (of_budget[t.budget] or 0) + t.counted end
  end
  if total then return all < total end
  for _, t in ipairs(tasks) do
    local shared = t.budget and t.budget.trials
    if shared and of_budget[t.budget] < shared or not shared and not t.parts and t.counted < t.trials then
      return true
    end
  end
  return false
end

-- Trials are counted over all commands that go on with a run, up to the number that each asks for. A run in which no
-- task lacks any is over: what is asked for then is that many more. total: of all tasks, where it is limited.
function resume.count_trials(tasks, total)
  local lacking = is_any_lacking(tasks, total)
  for _, t in ipairs(tasks) do
    if not lacking then t.run_number, t.counted = t.run_number + (t.counted > 0 and 1 or 0), 0 end
    t.done = t.counted
  end
end

-- How many records each iteration has; how many it is to have, as those of a fleet say.
local function count_records(own)
  local count, whole = {}, {}
  for _, k in ipairs(own) do
    local n, search = k.iteration, k.record.search or {}
    count[n] = (count[n] or 0) + 1
    whole[n] = math.max(whole[n] or 0, search.batch or 0)
  end
  return count, whole
end

-- The first iteration that was cut short: the last, or the last before it whose late results were lost. One at a time
-- has late results (task.lua); others lack records as these were pruned.
local function first_unfinished(count, whole, last)
  for n = last - 1, 1, -1 do
    if (count[n] or 0) < (whole[n] or 0) then return n end
  end
  return last
end

-- Reads the records of a task. Those of iterations that may have been cut short are not yet known to the policy: it
-- asks for them again, since it finds what it found then, and has their results at once.
function resume.read(task, store)
  local starts, own, last = {}, {}, 0
  for _, r in ipairs(records_of(task, store)) do
    local here = r.target == task.target.text
    if here and r.seed == task.seed then task.first_record = math.min(task.first_record or math.huge, r.when) end
    local of_use = r.status ~= "failed" and is_understood(store, r)
    if here and r.versions == msched.versions() then
      local trace = of_use and trace_of(task, r)
      own[#own + 1] = {record = r, iteration = iteration_of(task, r), trace = trace,
                       sketch = trace and trace:simplified(false), id = of_use and store:short_id(r.key)}
      last = math.max(last, own[#own].iteration)
    elseif r.status == "measured" and r.target:match "^%S+" == task.target.kind and of_use then
      local trace = trace_of(task, r)
      if trace then
        starts[#starts + 1] = {sketch = trace:simplified(false), far = 0, here = here, seconds = r.seconds, id = r.id}
      end
    end
  end
  if task.proposed then return fixed.read(task, own) end
  if task.policy.needs.nearest and last == 0 then add_nearest(task, store, starts) end
  keep_starts(task, starts)
  table.sort(own, function(a, b)
    if a.iteration ~= b.iteration then return a.iteration < b.iteration end
    return a.record.hash < b.record.hash
  end)
  local count, whole = count_records(own)
  local first = first_unfinished(count, whole, last)
  task.stored_of = count
  task.iteration, task.recorded = math.max(first, 1), #own
  for _, k in ipairs(own) do
    if last > 0 and k.iteration >= first then
      task.unfinished[k.record.hash] = k
      if k.record.status ~= "failed" then task.stored_left = task.stored_left + 1 end
    end
    if k.trace and k.record.status == "measured" then
      task:note_best(k.record.seconds, k.id, k.record.id, k.record.hash, k.trace)
    end
  end
  find_run(task, own)
  task.finished = {}
  for _, k in ipairs(own) do
    if not task.unfinished[k.record.hash] then
      task.finished[#task.finished + 1] = k
      task:know(k)
    end
  end
end

-- Training samples of an iteration's records: replaying them gives their features.
local function samples_of(task, list)
  local jobs, samples = {}, {}
  for i, k in ipairs(list) do jobs[i] = {trace = k.sketch, seed = k.record.seed, candidate = k.record.candidate} end
  for i, c in ipairs(task:reproduce(jobs)) do
    if c and c.hash == list[i].record.hash then
      samples[#samples + 1] = {features = c.features, seconds = list[i].record.seconds, hash = c.hash}
    end
  end
  return samples
end

-- Teaches the model what the store knows, iteration by iteration: as if the run had never been stopped.
function resume.teach(task)
  if not task.policy.needs.model or task.proposed then return end
  local list = {}
  for i, k in ipairs(task.finished) do
    if k.sketch then list[#list + 1] = k end
    local following = task.finished[i + 1]
    if not following or following.iteration ~= k.iteration then
      task:learn(samples_of(task, list), true)
      list = {}
    end
  end
end

return resume
