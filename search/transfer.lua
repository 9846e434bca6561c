-- What the store knows of other functions: a model of their results, of the device's family, each result by its rank
-- among those of its function, so that functions of any size and spread of times go together. It ranks the first
-- candidates of a task, whose own model learns from the task's results alone.
-- Source: Chen et al., "Learning to optimize tensor programs" (AutoTVM), NeurIPS 2018, section 4.
local transfer = {LEAST = 16} -- records that a function has at least

local FUNCTIONS, SAMPLES = 64, 2048 -- of a model, at most
local NEAR = 1.5 -- of the logarithms of intensities: what is limited by something else teaches what is wrong

-- The devices whose records go together: those of one instruction set, whatever their number of cores.
local function family_of(target)
  return string.format("%s %s", target:match "^%S+", target:match "%-mcpu=(%S+)" or target:match "%-arch=(%S+)" or "")
end

-- What decides which schedules are good: operations a byte, as a logarithm; whether elements are found by remainders.
local function character_of(func)
  local w = func:work()
  return {intensity = math.log((w.floats + w.integers + 1) / (w.read_bytes + w.written_bytes + 1), 2),
          by_remainders = func:script():find(" % ", 1, true) ~= nil}
end

local function is_alike(a, b)
  return math.abs(a.intensity - b.intensity) <= NEAR and a.by_remainders == b.by_remainders
end

local function by_records(a, b)
  if a.records ~= b.records then return a.records > b.records end
  if a.workload ~= b.workload then return a.workload < b.workload end
  return a.target < b.target
end

-- Functions for a task on targets of the family that are none of the run's and are alike, those that have most records
-- first: as store:tasks gives them, and func.
local function sources_of(task, tasks, store)
  local own, hashes, list, kept, character = {}, {}, {}, {}, character_of(task.func)
  for _, t in ipairs(tasks) do own[t.workload or ""], hashes[t.func:hash()] = true, true end
  for _, s in ipairs(store:tasks()) do
    local is_of_family = family_of(s.target) == family_of(task.target.text)
    if is_of_family and not own[s.workload] and s.measured + s.censored >= transfer.LEAST then list[#list + 1] = s end
  end
  table.sort(list, by_records)
  for _, s in ipairs(list) do
    if #kept == FUNCTIONS then break end
    local ok, func = pcall(store.get_workload, store, s.workload)
    if ok and not hashes[func:hash()] and is_alike(character_of(func), character) then
      s.func = func
      kept[#kept + 1] = s
    end
  end
  return kept
end

-- When the first of the tasks' runs had its first record: what was measured after that it did not know, and does not
-- know when it goes on; math.huge: none has any.
local function since(tasks)
  local first = math.huge
  for _, t in ipairs(tasks) do
    first = math.min(first, t.first_record or math.huge)
    for _, r in ipairs(t.simulate and t.workload
                       and t.services.store:records {workload = t.workload, target = t.target.text} or {}) do
      if r.seed == t.seed then first = math.min(first, r.when) end
    end
  end
  return first
end

local function features_of(store, func, r)
  local function make()
    if r.has_intrinsics then store:take_intrinsics(r.id) end
    return msched.features(msched.apply(func, msched.read_trace(r.trace)))
  end
  local ok, features = pcall(make) -- of a later version, or of another intrinsic: it teaches nothing
  return ok and features or nil
end

-- Samples of a source, about `most`: from its fastest record to its slowest, evenly.
local function samples_of(store, source, most, before, number)
  local list, step = {}, math.max(1, math.ceil(source.records / most))
  for _, r in ipairs(store:records {workload = source.workload, target = source.target, first = 1, step = step}) do
    if msched.interrupted() then break end
    local counts = (r.status == "measured" or r.status == "censored") and r.when <= before
    local features = counts and features_of(store, source.func, r)
    if features then list[#list + 1] = {features = features, seconds = r.seconds, task = number} end
  end
  return list
end

-- The model of a task of a run, how many samples it has, and of how many functions; nil: the store has too little.
-- known: samples that other tasks had, which are kept there.
function transfer.model(task, tasks, store, seed, known)
  local sources, before, model, samples, functions = sources_of(task, tasks, store), since(tasks),
    msched.model("xgboost", seed, true), {}, 0
  local most = math.max(transfer.LEAST, SAMPLES // math.max(#sources, 1))
  known = known or {}
  for i, source in ipairs(sources) do
    local name = string.format("%s %s %d", source.workload, source.target, most)
    local list = known[name] or samples_of(store, source, most, before, i)
    known[name] = list
    for _, sample in ipairs(list) do sample.task = i end
    if #list >= transfer.LEAST then
      functions = functions + 1
      table.move(list, 1, #list, #samples + 1, samples)
    end
  end
  if functions == 0 or msched.interrupted() then return nil end
  model:update(samples)
  return model, #samples, functions
end

local BEST = 0.25 -- of candidates: what a model of other functions ranks highest is mostly what it errs on most

-- How many of `count` candidates a batch is drawn from: the best by such a model.
function transfer.most(count, batch) return math.max(batch, math.ceil(BEST * count)) end

-- Draws a batch of a list of those, to its front.
function transfer.draw(list, batch, stream)
  for i = 1, math.min(batch, #list) do
    local k = i + stream:below(#list - i + 1)
    list[i], list[k] = list[k], list[i]
  end
end

-- Gives such a model to the tasks of a run whose policy asks for it and whose model is the program's, which has learned
-- nothing. options.transfer_from: a store to learn from, in place of the run's.
function transfer.give(tasks, services)
  local takers, options = {}, services.options
  for _, t in ipairs(tasks) do
    if t.learner and t.policy.needs.transfer and not t.parts and not t.proposed then takers[#takers + 1] = t end
  end
  if #takers == 0 or not options.transfer or (options.model or "xgboost") ~= "xgboost" then return end
  local known = {}
  for _, t in ipairs(takers) do
    local model, samples, functions = transfer.model(t, tasks, options.transfer_from or services.store,
                                                     options.seed or 1, known)
    if model then t:take_transferred(model, samples, functions) end
  end
end

return transfer
