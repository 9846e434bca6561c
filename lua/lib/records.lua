-- Records that are meant by words, and their schedules; loaded by the first that asks.
local ms = msched
local records = {}

-- Lists of a workload's records by their target: {target, records}, in order of the target's text.
function records.by_target(list)
  local targets, of = {}, {}
  for _, r in ipairs(list) do
    if not of[r.target] then
      of[r.target] = {target = r.target, records = {}}
      targets[#targets + 1] = of[r.target]
    end
    table.insert(of[r.target].records, r)
  end
  table.sort(targets, function(a, b) return a.target < b.target end)
  return targets
end

local function first_unmeasured(store, task)
  for _, r in ipairs(store:records {workload = task.workload, target = task.target}) do
    if r.status == "unmeasured" then return r end
  end
end

-- The record of an ID, which may be nil; nil: it is damaged.
local function sound(store, id)
  local ok, r = pcall(store.find, store, id)
  return id and ok and r or nil
end

-- The one to use of each target that workloads have records of, {record, name, target, text}: what is pinned, else the
-- fastest that was measured, else the first that was not.
function records.best(store, workloads)
  local list = {}
  for _, w in ipairs(workloads) do
    for _, t in ipairs(store:tasks(w.id)) do
      local r = sound(store, t.pinned) or sound(store, t.best) or t.unmeasured > 0 and first_unmeasured(store, t)
      if r then
        list[#list + 1] = {record = r, name = w.name, target = t.target,
                           text = string.format("%s %s on %s", store:short_id(r.key), w.name, t.target)}
      end
    end
  end
  table.sort(list,
             function(a, b) return a.name ~= b.name and a.name < b.name or a.name == b.name and a.target < b.target end)
  return list
end

-- The one to use of workloads that a name stands for; nil and why, where that is none or several.
local function best_of(store, name, workloads)
  local list, texts = records.best(store, workloads), {}
  for i, each in ipairs(list) do texts[i] = each.text end
  if #list == 0 then return nil, string.format("`%s`: %s has no record of it that was measured", name, store:path()) end
  if #list > 1 then
    return nil, string.format("`%s` may be %d records: say which by its ID: %s", name, #list, table.concat(texts, "; "))
  end
  return list[1].record
end

-- What an error says, without the place of the call.
local function message_of(err)
  local message, place = tostring(err), ms.where()
  return message:sub(1, #place) == place and message:sub(#place + 1) or message
end

local function meant(name, workloads)
  local names = {}
  for i, w in ipairs(workloads) do names[i] = w.name end
  return ms.load "lua.lib.nearest".meant(name, names)
end

-- The workloads of a store that words name: by their name, or as an operator with its arguments, whatever they are
-- called.
function records.workloads(store, words)
  if words:find "^ops:" then
    local operators = ms.load "lua.lib.ops.words"
    return store:workloads(operators.functions(operators.read(words), {})[1])
  end
  local named = {}
  for _, w in ipairs(store:workloads()) do if w.name == words then named[#named + 1] = w end end
  return named
end

-- The record whose ID starts so, or the one to use of a task by its name, as an operator with its arguments, or of the
-- only task by `best`; a task's name goes before what IDs begin with. nil: no record has such an ID; nil and why: the
-- words cannot be one, or mean several.
local function find(store, words, find_id)
  if #words == 32 and words:find "^%x+$" then return find_id(store, words) end
  local all, named = store:workloads(), records.workloads(store, words)
  if #named > 0 or words:find "^ops:" then return best_of(store, words, named) end
  if words == "best" then return best_of(store, words, all) end
  local ok, r = pcall(find_id, store, words)
  if ok then return r end
  return nil,
    message_of(r) .. (words:find "^%x%x%x%x" and "" or string.format("; no task of %s has this name; `msched top` \z
                      lists them%s", store:path(), meant(words, all)))
end

-- A record's function, its trace and what that makes, by the intrinsics that the record was measured with.
function records.schedule_of(store, r)
  store:take_intrinsics(r.id)
  local func, trace = store:get_workload(r.workload), ms.read_trace(r.trace)
  return func, trace, ms.apply(func, trace)
end

-- ---- Methods of stores ----------------------------------------------------------------------------------------------

-- store:find(words), where find_id knows IDs alone: a record, or nil.
function records.find(store, words, find_id)
  if type(words) ~= "string" then
    error(ms.where() .. "store:find takes a record's ID, a task's name, or \"best\"", 0)
  end
  local r, message = find(store, words, find_id)
  if message then error(ms.where() .. message, 0) end
  return r
end

-- store:schedule(words): the schedule of what store:find finds.
function records.schedule(store, words)
  local r = store:find(words) or error(string.format("%sno record `%s` in %s", ms.where(), words, store:path()), 0)
  local _, _, sch = records.schedule_of(store, r)
  return sch
end

-- store:words(start): what may be meant that begins so, in order: names of tasks; of records, by as few digits as name
-- each, the one to use of each task, or from four digits on any, as many as store:ids gives.
function records.words(store, start)
  if type(start) ~= "string" then error(ms.where() .. "store:words takes the beginning of a word", 0) end
  local list, seen = {}, {}
  local function add(word)
    if seen[word] or word:sub(1, #start) ~= start then return end
    seen[word] = true
    list[#list + 1] = word
  end
  for _, w in ipairs(store:workloads()) do add(w.name) end
  if start:find "^%x%x%x%x+$" then
    for _, id in ipairs(store:ids(start)) do add(id .. start:sub(#id + 1)) end
  elseif start:find "^%x*$" then
    for _, t in ipairs(store:tasks()) do
      local id, key = t.pinned or t.best, t.pinned_key or t.best_key
      if id and id:sub(1, #start) == start then add(store:short_id(key)) end
    end
  end
  table.sort(list)
  return list
end

return records
