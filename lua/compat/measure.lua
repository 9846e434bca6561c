-- Configs that a tuner proposes, scheduled here and measured by the tuner of search/: as candidates of a policy, so
-- that checks, store, resuming, time limits and the final re-measurement are those of any other run.
local ms = msched
local tune, tuners = ms.load "search.tune", ms.load "lua.compat.tuners"
local standard = ms.load("search.options").standard
local measure = {}

local REFUSED = 512 -- configs refused in a row, after which no other is tried

-- What measure.run takes besides its own options: as ms.tune does.
measure.OPTIONS = "target:string trials:integer seed:integer batch:integer seconds:number jobs:integer db:string \z
                   store:msched.store model:any " ..
  "measurer:table simulate:boolean run_timeout:number reference_timeout:number failures:integer listen:function"

-- The candidate of a config, as policies have them: {trace, hash, features}; nil and why: it is refused.
local function new_maker(space, schedule, wants_features)
  local made, refused = {}, {}
  return function(index)
    if made[index] or refused[index] then return made[index], refused[index] end
    local ok, sch = pcall(schedule, space:get(index))
    if not ok and not ms.code_of(sch) then error(sch, 0) end -- a mistake in the template
    if not ok then
      refused[index] = tostring(sch)
      return nil, refused[index]
    end
    made[index] = {trace = sch.trace, sketch_trace = sch.trace, hash = sch:hash(),
                   features = wants_features and ms.features(sch) or nil}
    return made[index]
  end
end

-- A batch of configs: {index, hash, status, seconds, reason} of each, in order, and the candidates that are to be
-- measured. What the store knows of a module is its result; what comes of the others, `fill` takes from the run's
-- events.
local function new_batch(env, make, indices)
  local results, fresh, seen = {}, {}, {}
  for i, index in ipairs(indices) do
    local c, why = make(index)
    local r = {index = index, status = not c and "refused" or nil, reason = why, hash = c and c.hash}
    results[i] = r
    local record = c and env:record_of(c.hash)
    if record and record.status ~= "unmeasured" then
      r.status, r.seconds, r.reason = record.status, record.status == "measured" and record.seconds or nil,
        record.reason
    end
    if c and not env:is_known(c.hash) and not seen[c.hash] then
      c.candidate = env.iteration << env.NUMBERS | i
      fresh[#fresh + 1], seen[c.hash] = c, true
    end
  end
  return results, fresh
end

local function fill(results, events)
  for _, r in ipairs(results) do
    local e = r.hash and events[r.hash]
    if e then r.status, r.seconds, r.reason = e.status, e.status == "measured" and e.seconds or nil, e.reason end
    r.status = r.status or "unmeasured" -- the run ended before
  end
end

-- Tunes a function over a space of configs. schedule(config): its schedule, which may be refused. options: those of
-- measure.OPTIONS; tuner: its name; early_stopping: trials without gain, after which it ends; each(results, best):
-- called with what came of a batch. Gives {index, config, seconds, id, schedule}.
function measure.run(func, space, schedule, options)
  local seed = options.seed or 1
  local needs_features = (options.tuner or "random") == "model"
  local make = new_maker(space, schedule, needs_features)
  local tuner = tuners.new(options.tuner or "random", space, seed, make)
  local by_hash, best, idle, refused, last = {}, nil, 0, 0, nil
  local function take(r)
    if r.hash then by_hash[r.hash] = by_hash[r.hash] or r.index end
    refused, last = r.status == "refused" and refused + 1 or 0, r.reason
    tuner:tell(r.index, r.seconds)
    idle = idle + 1
    if r.seconds and (not best or r.seconds < best.seconds) then best, idle = r, 0 end
  end
  local events, pending = {}, {}
  local function take_pending()
    fill(pending, events)
    for _, r in ipairs(pending) do take(r) end
    if #pending > 0 and options.each then options.each(pending, best) end
    pending = {}
  end
  local function run(env)
    while env:remaining() > 0 and refused < REFUSED and idle < (options.early_stopping or math.huge) do
      local indices, fresh = tuner:next(options.batch or 16, env), nil -- as many as in a run that has more trials left
      if #indices == 0 then return end
      pending, fresh = new_batch(env, make, indices)
      if #fresh > 0 then env:measure(fresh) end -- the last is not come back from
      take_pending()
    end
  end
  local given = {policy = {kind = "policy", name = tuner.name, needs = tuner.needs, run = run},
                 spaces = {{name = "configs", apply = function(sch) return {sch} end}}}
  for name in measure.OPTIONS:gmatch "(%w[%w_]*):" do given[name] = options[name] end
  given.trials = options.trials or standard.trials
  function given.listen(e)
    if e.event == "trial" then events[e.hash] = e end
    if options.listen then options.listen(e) end
  end
  local task = tune.run(func, given)
  if task:stopped() then
    error(tune.kept_text(task.kept, "the store") .. ", and the same call goes on from there", 0)
  end
  take_pending()
  for _, m in ipairs(task:best(math.huge)) do
    local index = by_hash[m.hash]
    if index then
      return {index = index, config = space:get(index), seconds = m.seconds, id = m.id,
              schedule = schedule(space:get(index)), target = task.target.text}
    end
  end
  if task.fastest then
    error(string.format("no config is as fast as record %s of the store, which is of another space: give the run a \z
                         store of its own, `db`", task.fastest.id), 0)
  end
  error(tune.why(task) .. (refused > 0 and "\nconfigs were refused, the last: " .. last or ""), 0)
end

return measure
