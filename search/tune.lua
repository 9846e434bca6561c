-- Tuning: opens the space, runs a policy, measures what it asks for, keeps every result in the store.
local targets, space = msched.load "rules.targets", msched.load "rules.space"

local tune = {}

local Env = {}
Env.__index = Env

-- Refusals and outcomes are counted by reason.
local function count(table_, reason, n) table_[reason] = (table_[reason] or 0) + (n or 1) end

function Env:remaining()
  if self.deadline and msched.clock() > self.deadline then return 0 end
  return self:stopped() and 0 or self.trials - self.done
end
function Env:stopped() return msched.interrupted() end

-- A policy that makes nothing new three times in a row has seen the space.
function Env:progressed(fresh)
  self.idle = fresh > 0 and 0 or self.idle + 1
  return self.idle < 3 and not self:stopped()
end

-- Replays jobs; false where a candidate was refused. A candidate keeps the trace before postprocessing: what mutates.
function Env:replay(jobs)
  if #jobs == 0 then return {} end
  local made, refused, script_error = self.pool:replay(jobs, self.features)
  if script_error and not self:stopped() then error(script_error, 0) end
  for _, reason in ipairs(msched.sorted_keys(refused)) do count(self.refused, reason, refused[reason]) end
  for i, c in ipairs(made) do
    if c then
      c.sketch_trace = c.trace:simplified(false)
      c.candidate = jobs[i].candidate
      if #self.postprocs > 0 then made[i] = self:postprocess(c) end
    end
  end
  return made
end

-- The user's postprocessors that are closures of this state run here, after those that the pool's workers hold.
function Env:postprocess(c)
  local sch = msched.apply(self.func, c.trace)
  if not space.check(sch, self.postprocs) then
    count(self.refused, "postproc")
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
      if seen[c.hash] or self.known[c.hash] then count(self.failures, "repeated")
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

-- What came of a candidate: counted, kept in the store, told to whoever listens.
function Env:take(c, r)
  self.done = self.done + (r.measured and 1 or r.censored and 1 or 0)
  self.known[c.hash] = true
  local status = r.measured and "measured" or r.censored and "censored" or "failed"
  if status == "failed" then count(self.failures, r.outcome) end
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
      if self.measurer then self.measurer:set_best(r.seconds) end
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
    self.measurer:submit(self.submitted, c.trace)
    waiting = waiting + 1
  end
  while waiting > 0 and not self:stopped() do
    local r = self.measurer:next(0.2)
    if r then
      waiting = waiting - 1
      self:take(by_id[r.id], r)
    else
      self.listen {event = "wait", env = self}
    end
  end
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

-- The sketches of a function on a target, as schedules; the mutators; the postprocessors that run in this state. The
-- target's rules and those of options.files run in a sandbox; closures (registered, or options.rules, options.postprocs,
-- options.mutators) run here. Each call has options.rule_timeout seconds.
function tune.open(func, target, options)
  local timeout = options.rule_timeout or 10
  msched.rule_timeout(timeout)
  local box = msched.box {files = options.files or {}, target = target.text, timeout = timeout}
  local sketches, mutators = {}, {}
  for i, trace in ipairs(box:sketches(func, options.seed)) do sketches[i] = msched.apply(func, trace) end
  sketches = space.extend(func, targets.context(target), own("rule", options.rules), sketches)
  for i, m in ipairs(box:mutators()) do
    mutators[i] = {{name = m[1], apply = function(trace, stream) return box:mutate(i, trace, stream) end}, m[2]}
  end
  for _, m in ipairs(own("mutator", options.mutators)) do
    mutators[#mutators + 1] = {{name = m.name, apply = function(trace, stream) return space.mutate(m, trace, stream) end}, m.weight}
  end
  return sketches, mutators, own("postproc", options.postprocs)
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

-- tune.run(function, options): target, trials, seconds, seed, files, rules, postprocs, mutators, policy, jobs, db, simulate, model, rule_timeout,
-- listen (gets events). Gives the environment: fastest {id, seconds, trace}, counts, store.
function tune.run(func, options)
  local target = msched.target(options.target or "native")
  local self = setmetatable({
    func = func, target = target, trials = options.trials or 64, seed = options.seed or 1, done = 0, idle = 0, submitted = 0,
    next_candidate = 0, resumed = 0, kept = 0, busy = 0, known = {}, measured = {}, refused = {}, failures = {}, lessons = {}, simulate = options.simulate,
    listen = options.listen or function() end, batch = options.batch or 64, started = msched.clock(),
  }, Env)
  if options.seconds then self.deadline = self.started + options.seconds end
  local policy = policy_of(options.policy or "evolutionary")
  local sketches, mutators, postprocs = tune.open(func, target, {
    files = options.files, rules = options.rules, postprocs = options.postprocs, mutators = options.mutators, seed = self.seed,
    rule_timeout = options.rule_timeout,
  })
  self.mutators, self.postprocs, self.sketches = mutators, postprocs, {}
  for i, s in ipairs(sketches) do self.sketches[i] = s.trace:simplified(false) end
  self.features = policy.name ~= "replay_trace"
  self.model = msched.model(options.model or "xgboost", self.seed)
  self.store = options.store or msched.store(options.db)
  self.workload = self.store:put_workload(func)
  resume(self)
  self.pool = msched.pool(func, {jobs = options.jobs or target.cores, files = options.files or {}, target = options.target or "native",
                                 timeout = options.rule_timeout or 10})
  if not self.simulate then
    self.measurer = msched.measurer(func, {target = options.target or "native"})
    if self.fastest then self.measurer:set_best(self.fastest.seconds) end
  end
  self.listen {event = "start", env = self}
  local ok, message = pcall(function()
    measure_starts(self)
    policy.run(self)
  end)
  if not ok and not self:stopped() then error(message, 0) end
  self.pool:close()
  if self.measurer then self.measurer:close() end
  self.seconds = msched.clock() - self.started
  self.listen {event = "end", env = self}
  return self
end

-- What ms.tune gives: the best kernel found.
local Best = {__name = "msched.best"}
Best.__index = Best
function Best:schedule() return msched.apply(self.func, self.trace) end
function Best:build(options)
  options = options or {}
  return msched.build(self:schedule():func(), {target = options.target or self.target, reference = self.func, fast_math = options.fast_math})
end
function Best:export(path) self:build():export(path) end

function msched.tune(func, options)
  local env = tune.run(func, options or {})
  if env:stopped() then
    error(string.format("interrupted; %d results of this run are kept in %s, and the next run goes on from there", env.kept, env.store:path()), 2)
  end
  if not env.fastest then error("no candidate could be measured", 2) end
  return setmetatable({func = func, target = env.target.text, trace = env.fastest.trace, seconds = env.fastest.seconds, id = env.fastest.id}, Best)
end

return tune
