-- Tuning: opens the space, runs a policy, measures what it asks for, keeps every result in the store.
local targets, space, refusals = msched.load "rules.targets", msched.load "rules.space", msched.load "rules.refusals"
local contest, models = msched.load "search.contest", msched.load "search.models"

local tune = {}

local Env = {}
Env.__index = Env

local function count(table_, reason) table_[reason] = (table_[reason] or 0) + 1 end

-- Numbers by reason, the most frequent first.
function tune.reasons_text(numbers)
  local reasons, parts = msched.sorted_keys(numbers), {}
  table.sort(reasons, function(a, b) return numbers[a] ~= numbers[b] and numbers[a] > numbers[b] or numbers[a] == numbers[b] and a < b end)
  for i, reason in ipairs(reasons) do parts[i] = string.format("%s %d", reason, numbers[reason]) end
  return #parts > 0 and table.concat(parts, ", ") or "none"
end

-- The run ends before all trials are done; the first reason stands.
local function finish(self, why, format, ...) self.ended = self.ended or {why = why, text = string.format(format, ...)} end

function Env:stopped() return msched.interrupted() end
function Env:is_over()
  if self.deadline and msched.clock() > self.deadline then finish(self, "seconds", "its %g seconds are over", self.seconds_given) end
  return self.ended ~= nil or self:stopped()
end
function Env:remaining() return self:is_over() and 0 or self.trials - self.done end

-- A policy that makes nothing new three times in a row has seen the space.
function Env:progressed(fresh)
  self.idle = fresh > 0 and 0 or self.idle + 1
  if self.idle >= 3 and self.accepted == 0 then finish(self, "refused", "every candidate was refused")
  elseif self.idle >= 3 then finish(self, "exhausted", "the space gave nothing new three times in a row") end
  return not self:is_over()
end

-- Replays jobs; false where a candidate was refused. A candidate keeps the trace before postprocessing: what mutates.
function Env:replay(jobs)
  if #jobs == 0 then return {} end
  local made, refused, script_error = self.pool:replay(jobs, self.features)
  if script_error and not self:stopped() then error(script_error, 0) end
  refusals.merge(self.refused, refused)
  for i, c in ipairs(made) do
    if c then
      c.sketch_trace = c.trace:simplified(false)
      c.candidate = jobs[i].candidate
      if #self.postprocs > 0 then made[i] = self:postprocess(c) end
      self.accepted = self.accepted + (made[i] and 1 or 0)
    end
  end
  return made
end

-- The user's postprocessors that are closures of this state run here, after those that the pool's workers hold.
function Env:postprocess(c)
  local sch = msched.apply(self.func, c.trace)
  local ok, by, code, message = space.check(sch, self.postprocs)
  if not ok then
    refusals.add(self.refused, by, code, message)
    return false
  end
  c.trace, c.hash = sch.trace, sch:hash()
  if self.features then c.features = msched.features(sch) end
  return c
end

function Env:is_known(hash) return self.known[hash] ~= nil end

-- Distinct candidates that are not known yet, at most `most`.
function Env:unmeasured(candidates, most)
  local list, seen = {}, {}
  for _, c in ipairs(candidates) do
    if c and #list < most then
      if seen[c.hash] or self.known[c.hash] then self.repeated = self.repeated + 1
      else
        seen[c.hash] = true
        list[#list + 1] = c
      end
    end
  end
  return list
end

function Env:best(most)
  table.sort(self.measured, function(a, b) return a.seconds ~= b.seconds and a.seconds < b.seconds or a.seconds == b.seconds and a.hash < b.hash end)
  return table.move(self.measured, 1, math.min(most, #self.measured), 1, {})
end

local function learn(self, c, seconds)
  if c.features then self.lessons[#self.lessons + 1] = {features = c.features, seconds = seconds} end
end

-- So many failures in a row are the space's, or the machine's: more of them would find nothing.
local function note_failure(self, r)
  local row = self.row
  count(self.failures, r.outcome)
  count(row.failures, r.outcome)
  row.length, row.last = row.length + 1, r.reason ~= "" and "; the last: " .. r.reason or ""
  if row.length >= self.most_failures and not self.simulate then
    finish(self, "failures", "%d candidates in a row failed: %s%s", row.length, tune.reasons_text(row.failures), row.last)
  end
end

-- What came of a candidate: counted, kept in the store, passed to whoever listens.
function Env:take(c, r)
  self.done = self.done + (r.measured and 1 or r.censored and 1 or 0)
  self.known[c.hash] = true
  local status = r.measured and "measured" or r.censored and "censored" or "failed"
  if status == "failed" then note_failure(self, r) else self.row = {failures = {}, length = 0} end
  if r.busy then self.busy = self.busy + 1 end
  local id, short
  if not self.simulate then
    self.kept = self.kept + 1
    id, short = self.store:put {workload = self.workload, target = self.target.text, trace = c.trace, hash = c.hash, status = status,
                                seconds = r.seconds, low = r.low, high = r.high, runs = r.runs, busy = r.busy, reason = r.reason,
                                seed = self.seed, candidate = c.candidate}
  end
  if r.measured then
    self.measured[#self.measured + 1] = {hash = c.hash, seconds = r.seconds, sketch = c.sketch_trace, candidate = c.candidate, id = short}
    if not self.fastest or r.seconds < self.fastest.seconds then
      self.fastest = {seconds = r.seconds, id = short, full_id = id, hash = c.hash, trace = c.trace}
      if self.measurer then self.measurer:set_best(self.number, r.seconds) end
    end
  end
  if r.measured or r.censored then learn(self, c, r.seconds) end
  self.listen {event = "trial", id = id, short_id = short, status = status, outcome = r.outcome, seconds = r.seconds, low = r.low, high = r.high, hash = c.hash,
               candidate = c.candidate, reason = r.reason, busy = r.busy or false, env = self}
end

local function measure_really(self, candidates)
  local by_id, waiting = {}, 0
  for _, c in ipairs(candidates) do
    self.submitted = self.submitted + 1
    by_id[self.submitted] = c
    self.measurer:submit(self.number, self.submitted, c.trace)
    waiting = waiting + 1
  end
  while waiting > 0 and not self:is_over() do
    local r = self.measurer:next(0.2)
    if r then
      waiting = waiting - 1
      if r.unmeasurable then error(select(2, self.measurer:reference(self.number)), 0) end
      self:take(by_id[r.id], r)
    else
      self.listen {event = "wait", env = self}
    end
  end
  self.cut = waiting > 0 -- the end came in the middle: the measurer is busy with what no one waits for
end

-- Answers from the store alone: what is not in it counts as failed, and is not kept.
local function measure_simulated(self, candidates)
  for _, c in ipairs(candidates) do
    local r = self.store:find_module(self.workload, self.target.text, c.hash)
    if r then self:take(c, {measured = r.status == "measured", censored = r.status == "censored", outcome = r.status, seconds = r.seconds, reason = r.reason})
    else
      self.done = self.done + 1
      self:take(c, {outcome = "not in the store", seconds = 0, reason = ""})
    end
  end
end

function Env:measure(candidates)
  self.lessons = {}
  if self.simulate then measure_simulated(self, candidates) else measure_really(self, candidates) end
  if #self.lessons > 0 and self.features then self.model:update(self.lessons) end
end

-- Whether a record's trace means here what it meant when it was measured: the intrinsics that it names are the same.
local function is_understood(store, r) return not r.has_intrinsics or pcall(store.take_intrinsics, store, r.id) end

-- What the store knows of the workload already: its modules are not measured again, its best are parents. What others
-- measured, other versions, TVM, other targets of the kind, is where the search starts.
local function resume(self)
  if self.simulate then return end
  local starts = {}
  for _, r in ipairs(self.store:records {workload = self.workload}) do
    local here = r.target == self.target.text
    if not here or r.versions ~= msched.versions() then
      if r.status == "measured" and r.target:match "^%S+" == self.target.kind and is_understood(self.store, r) then
        starts[#starts + 1] = {trace = r.trace, here = here, seconds = r.seconds, id = r.id}
      end
    else
      self.known[r.hash] = true
      self.resumed = self.resumed + 1
      if r.status == "measured" and is_understood(self.store, r) then
        local trace = msched.read_trace(r.trace)
        local short = self.store:short_id(r.key)
        self.measured[#self.measured + 1] = {hash = r.hash, seconds = r.seconds, sketch = trace:simplified(false), candidate = r.candidate, id = short}
        if not self.fastest or r.seconds < self.fastest.seconds then
          self.fastest = {seconds = r.seconds, id = short, full_id = r.id, hash = r.hash, trace = trace}
        end
      end
    end
  end
  table.sort(starts, function(a, b)
    if a.here ~= b.here then return a.here end
    if a.seconds ~= b.seconds then return a.seconds < b.seconds end
    return a.id < b.id
  end)
  self.starts = table.move(starts, 1, math.min(#starts, self.batch), 1, {})
end

-- The starts are postprocessed as candidates are, and measured here: at most half of the trials.
local function measure_starts(self)
  local jobs = {}
  for i, s in ipairs(self.starts or {}) do
    jobs[i] = {trace = msched.read_trace(s.trace):simplified(false), seed = self.seed, candidate = 0}
  end
  self:measure(self:unmeasured(self:replay(jobs), (self:remaining() + 1) // 2))
end

-- What the script registered with ms.rule and its like, then what the options hold.
local function own(kind, given)
  local list = table.move(msched.registered[kind], 1, #msched.registered[kind], 1, {})
  return table.move(given or {}, 1, #(given or {}), #list + 1, list)
end

-- Candidates are made for constant extents, and run with arguments of our own.
local function check_extents(func)
  for _, p in ipairs(func:params()) do
    if not p.shape then
      error(string.format("`%s` has a parameter that is a scalar: tuning needs extents, so write its value as a constant", func:name()), 0)
    end
    for d, extent in ipairs(p.shape) do
      if extent < 0 then
        error(string.format("`%s`: extent %d of `%s` is a variable: tuning needs extents, so give the function constant shapes", func:name(), d, p.name), 0)
      end
    end
  end
end

-- The mutators of a box and those given, with their weights; what is refused in one is counted, and changes nothing.
local function open_mutators(box, given, refused)
  local mutators = {}
  local function add(name, weight, mutate)
    mutators[#mutators + 1] = {{name = name, apply = function(trace, stream)
      local made, code, message = mutate(trace, stream)
      if code then refusals.add(refused, name, code, message) end
      return made
    end}, weight}
  end
  for i, m in ipairs(box:mutators()) do add(m[1], m[2], function(trace, stream) return box:mutate(i, trace, stream) end) end
  for _, m in ipairs(given) do add(m.name, m.weight, function(trace, stream) return space.mutate(m, trace, stream) end) end
  return mutators
end

-- Opens the space of a function on a target. Gives sketches, as schedules; mutators; postprocs, those that run in this
-- state; refused, what was (rules/refusals.lua); thinned, whether there are more sketches. The target's rules and those of
-- options.files run in a sandbox; closures (registered, or options.rules, options.postprocs, options.mutators) run here.
-- Each call has options.rule_timeout seconds.
function tune.open(func, target, options)
  check_extents(func)
  local timeout, refused = options.rule_timeout or 10, {}
  msched.rule_timeout(timeout)
  local box = msched.box {files = options.files or {}, target = target.text, timeout = timeout}
  local traces, dropped, thinned = box:sketches(func, options.seed)
  refusals.merge(refused, dropped)
  local sketches, report = {}, nil
  for i, trace in ipairs(traces) do sketches[i] = msched.apply(func, trace) end
  sketches, report = space.extend(func, targets.context(target), own("rule", options.rules), sketches, options.seed)
  refusals.merge(refused, refusals.list(report.refused))
  if #sketches == 0 then
    error(string.format("`%s`: no sketch is left of its space; refused:\n%s", func:name(), refusals.text(refused)), 0)
  end
  return {sketches = sketches, mutators = open_mutators(box, own("mutator", options.mutators), refused), postprocs = own("postproc", options.postprocs),
          refused = refused, thinned = thinned or report.thinned}
end

-- A policy by name, or from a file: it asks for pools and measuring, so it runs with the rights of the program.
local function policy_of(name)
  if name:find("%.lua$") then
    local chunk, message = loadfile(name, "t")
    if not chunk then error(message, 0) end
    local policy = chunk()
    if type(policy) ~= "table" or policy.kind ~= "policy" then error(name .. ": the file returns no policy; end it with `return ms.policy {…}`", 0) end
    return policy
  end
  if not name:find("^[%w_]+$") then error("there is no policy `" .. name .. "`", 0) end
  local ok, policy = pcall(msched.load, "search." .. name)
  if ok and type(policy) == "table" and policy.kind == "policy" then return policy end
  for _, p in ipairs(msched.registered.policy) do if p.name == name then return p end end
  error("there is no policy `" .. name .. "`; known are evolutionary, replay_trace, and files that return one", 0)
end

-- Opens what a run works with, and runs the policy.
local function search(self, policy, options)
  self.store = options.store or msched.store(options.db)
  self.path = self.store:path()
  self.workload = self.store:put_workload(self.func)
  resume(self)
  self.pool = msched.pool(self.func, {jobs = options.jobs or self.target.cores, files = options.files or {}, target = options.target or "native",
                                      timeout = options.rule_timeout or 10})
  if not self.simulate then
    self.measurer = msched.measurer {target = options.target or "native", reference_timeout = options.reference_timeout}
    self.number = self.measurer:add(self.func)
    if self.fastest then self.measurer:set_best(self.number, self.fastest.seconds) end
  end
  self.listen {event = "start", env = self}
  measure_starts(self)
  policy.run(self)
  self.retimed = contest.run(self)
end

local function close(self, options)
  if self.pool then self.pool:close() end
  if self.measurer then self.measurer:close() end
  if self.store and not options.store then self.store:close() end
end

-- tune.run(function, options): target, trials, seconds, seed, files, rules, postprocs, mutators, policy, jobs, db, store, simulate, model,
-- rule_timeout, reference_timeout, failures (in a row, that end it), listen (gets events). Gives the environment: fastest {id, seconds,
-- trace}; counts; path, of the store; ended, {why, text} where trials are left.
function tune.run(func, options)
  local target = msched.target(options.target or "native")
  local self = setmetatable({
    func = func, target = target, trials = options.trials or 64, seed = options.seed or 1, done = 0, idle = 0, submitted = 0, accepted = 0,
    next_candidate = 0, resumed = 0, kept = 0, repeated = 0, busy = 0, retimed = 0, known = {}, measured = {}, failures = {}, row = {failures = {}, length = 0}, lessons = {},
    most_failures = options.failures or 256, simulate = options.simulate, listen = options.listen or function() end, batch = options.batch or 64,
    started = msched.clock(), seconds_given = options.seconds, sketches = {},
  }, Env)
  if options.seconds then self.deadline = self.started + options.seconds end
  local policy = policy_of(options.policy or "evolutionary")
  local opened = tune.open(func, target, {
    files = options.files, rules = options.rules, postprocs = options.postprocs, mutators = options.mutators, seed = self.seed,
    rule_timeout = options.rule_timeout,
  })
  self.mutators, self.postprocs, self.refused, self.thinned = opened.mutators, opened.postprocs, opened.refused, opened.thinned
  for i, s in ipairs(opened.sketches) do self.sketches[i] = s.trace:simplified(false) end
  self.features = policy.name ~= "replay_trace"
  self.model, self.model_refused = models.open(options.model or "xgboost", self.seed)
  local ok, message = pcall(search, self, policy, options)
  close(self, options)
  if not ok and not (self.path and self:stopped()) then error(message, 0) end
  if self.done < self.trials and not self:stopped() then finish(self, "policy", "policy `%s` asked for no more", policy.name) end
  self.seconds = msched.clock() - self.started
  self.listen {event = "end", env = self}
  return self
end

-- Why nothing could be measured.
function tune.why(env)
  local parts = {"no candidate could be measured" .. (env.ended and ": " .. env.ended.text or "")}
  if next(env.failures) then parts[#parts + 1] = "failed: " .. tune.reasons_text(env.failures) end
  if next(env.refused) then parts[#parts + 1] = "refused:\n" .. refusals.text(env.refused) end
  return table.concat(parts, "\n")
end

-- What ms.tune gives: the best kernel found.
local Best = {__name = "msched.best"}
Best.__index = Best
function Best:schedule() return msched.apply(self.func, self.trace) end
function Best:build(options)
  options = options or {}
  return msched.build(self:schedule():func(), {target = options.target or self.target, reference = self.func, fast_math = options.fast_math})
end
function Best:export(path)
  local kernel = self:build()
  kernel:check_timing()
  kernel:export(path)
end

function msched.tune(func, options)
  local env = tune.run(func, options or {})
  if env:stopped() then
    error(string.format("interrupted; %d results of this run are kept in %s, and the next run goes on from there", env.kept, env.path), 2)
  end
  if not env.fastest then error(tune.why(env), 2) end
  return setmetatable({func = func, target = env.target.text, trace = env.fastest.trace, seconds = env.fastest.seconds, id = env.fastest.id}, Best)
end

return tune
