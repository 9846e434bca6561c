-- A task: a function that is tuned, its state, and the results of its candidates. It is the environment of its
-- policy (a user's sees no more of it than view.lua shows): func, target, seed, iteration, sketches, mutators {{part,
-- weight}…}, batch, bound, asked (whether a number of trials was), model (where the policy needs one), and the methods
-- below down to `measure`.
local space, refusals = msched.load "rules.space", msched.load "rules.refusals"
local policies, schedulers, fixed = msched.load "search.policy", msched.load "search.scheduler",
  msched.load "search.fixed"
local view = msched.load "search.view"

local Task = {NUMBERS = 20} -- bits of a candidate's number that count within its iteration; those above are the
                            -- iteration
Task.__index = Task

local MOST_IDLE = 3 -- times in a row that nothing new was asked for

local function count(table_, reason) table_[reason] = (table_[reason] or 0) + 1 end

-- What an interrupted run says of its results.
function Task.kept_text(kept, place)
  return string.format("interrupted; %s kept in %s",
                       kept == 1 and "1 result of this run is" or kept .. " results of this run are", place)
end

-- Numbers by reason, the most frequent first.
function Task.reasons_text(numbers)
  local reasons, parts = msched.sorted_keys(numbers), {}
  table.sort(reasons, function(a, b)
    return numbers[a] ~= numbers[b] and numbers[a] > numbers[b] or numbers[a] == numbers[b] and a < b
  end)
  for i, reason in ipairs(reasons) do parts[i] = string.format("%s %d", reason, numbers[reason]) end
  return #parts > 0 and table.concat(parts, ", ") or "none"
end

-- A model where the policy declared that it needs none.
local no_model =
  setmetatable({}, {__index = function() error("the policy uses a model: declare it, needs = {model = true}", 2) end})

-- func; fields: name, target, weight, trials, seed, batch, most_failures, simulate, policy, policy_timeout, run, log,
-- and what tune.open gave of its space.
function Task.new(func, fields)
  local self = setmetatable({
    func = func, iteration = 1, made = 0, done = 0, counted = 0, run_number = 1, waiting = 0, idle = 0, accepted = 0,
    submitted = 0, recorded = 0, late = 0, pending = {}, samples = {}, stored_left = 0, kept = 0, censored = 0,
    repeated = 0, busy = 0, retimed = 0, known = {}, unfinished = {}, finished = {}, measured = {}, failures = {},
    row = {failures = {}, length = 0}, wins = {}, starts = {}, stored_of = {},
    model = no_model,
    spent = {open = 0, replay = 0, policy = 0, learn = 0, wait = 0, build = 0, run = 0},
  }, Task)
  for name, value in pairs(fields) do self[name] = value end
  self.features = self.policy.needs.features or self.policy.needs.model
  self.running = policies.start(self.policy, function(env)
    env:measure_starts()
    if policies.is_shipped(env.policy) then return env.policy.run(env) end
    -- At Lua's most nested calls in C no finalizer can be called: what is garbage would keep its memory in C.
    collectgarbage()
    return env.policy.run(view.of(env))
  end, self.policy_timeout)
  return self
end

-- ---- What a policy asks for --------------------------------------------------------------------------------------

function Task:stopped() return msched.interrupted() end
function Task:is_over()
  self.run:look_at_the_clock()
  return self.ended ~= nil or self.run.ended ~= nil or self:stopped()
    or self.of_whole ~= nil and self.run:parts_are_over()
end
-- How many may be asked for: trials that are left, and those that the store has of an iteration that was cut short.
function Task:remaining()
  local left = self:trials_left()
  return left > 0 and left + self.stored_left or 0
end

-- Sketch n, from 0, of all: of those listed in turn; where the space is factored by block, a combination of its blocks'
-- choices; nil: they do not go together.
function Task:sketch(n)
  if not self.product then return self.sketches[n % #self.sketches + 1] end
  local sketch, why = self.product:sketch(self.product:combination(self.seed, n))
  if not sketch then refusals.add(self.refused, "combination of choices", nil, why) end
  return sketch
end

-- So many jobs that resample all decisions of the sketches, which they take in turn; fewer where combinations are
-- refused.
function Task:draw_jobs(most)
  local jobs, before = {}, (self.iteration - 1) * self.batch + self.made
  for i = 1, most do
    local sketch = self:sketch(before + i - 1)
    if sketch then jobs[#jobs + 1] = {trace = sketch, resample = true} end
  end
  return jobs
end

-- The traces that are one block's other choice away from a trace, where the space is factored by block.
function Task:other_choices(trace) return self.product and self.product:neighbours(trace) or {} end

-- The space's sketches with what another seed draws while it is opened, as traces.
function Task:open_space(seed)
  local ok, sketches = pcall(self.reopen, seed)
  if not ok then policies.raise_foreign(sketches) end
  return sketches
end

-- Replays jobs {trace =, resample =}: a list of candidates {trace, hash, features, sketch_trace}, false where one was
-- refused. sketch_trace is the trace before postprocessing: what mutates. A candidate's number, which with the seed
-- decides its draws, depends on the iteration and on how many were made in it before: not on what other runs did.
function Task:replay(jobs)
  for _, job in ipairs(jobs) do
    job.seed = job.seed or self.seed
    if not job.candidate then
      self.made = self.made + 1
      job.candidate = self.iteration << self.NUMBERS | self.made
    end
  end
  local start = msched.clock()
  local list, refused = self:reproduce(jobs)
  refusals.merge(self.refused, refused)
  local made = 0
  for _, c in ipairs(list) do made = made + (c and 1 or 0) end
  self.accepted = self.accepted + made
  self.spent.replay = self.spent.replay + msched.clock() - start
  self.log("candidates", self.name,
           {jobs = #jobs, made = made, refused = #jobs - made, seconds = msched.clock() - start})
  return list
end

-- Whether the best has this share of the limit that was measured, or of the bound where that is not known.
function Task:is_near_roofline(share) return not self.proposed and schedulers.is_near_roofline(self, share) end

function Task:is_known(hash) return self.known[hash] ~= nil end

-- Distinct candidates that were not asked for yet, at most `most`.
function Task:unmeasured(candidates, most)
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

-- The order of results: by time, equal ones as the store has them, by their records' ids.
local function is_faster(a, b)
  if a.seconds ~= b.seconds then return a.seconds < b.seconds end
  if a.full_id and b.full_id and a.full_id ~= b.full_id then return a.full_id < b.full_id end
  return a.hash < b.hash
end

local function first_of(list, most)
  table.sort(list, is_faster)
  return table.move(list, 1, math.min(most, #list), 1, {})
end

-- The fastest that were measured, {hash, seconds, sketch, candidate, id, full_id}: at most `most`.
function Task:fastest_few(most) return first_of(self.measured, most) end

-- The same, as policies see them: where candidates must not depend on times, all that were asked for, by estimate
-- (fixed.lua).
function Task:best(most) return first_of(self.proposed or self.measured, most) end

-- Has candidates measured, as many as there are trials left; those of earlier are not measured again. Gives a list of
-- what came of each: {status =, seconds =}; status is measured, censored, failed, or repeated.
function Task:measure(candidates)
  if type(candidates) ~= "table" then
    error(string.format("env:measure takes a list of candidates, as env:replay gives them, not a %s", type(candidates)),
          2)
  end
  for i, c in ipairs(candidates) do
    if type(c) ~= "table" or msched.type(c.trace) ~= "trace" or type(c.hash) ~= "string" then
      error(string.format("env:measure: item %d is no candidate, as env:replay gives them, but a %s", i, type(c)), 2)
    end
  end
  return self.running:ask(candidates)
end

-- Trials that are left of the task's and of the run's.
function Task:trials_left()
  if self:is_over() then return 0 end
  local of_budget = self.budget and self.budget:left(self) or math.huge
  return math.min(self.trials - self.done - self.late, self.run:left(self), of_budget)
end

-- ---- Candidates ---------------------------------------------------------------------------------------------------

-- As `replay`, of jobs that have their numbers; and what was refused.
function Task:reproduce(jobs)
  if #jobs == 0 then return {}, {} end
  for _, job in ipairs(jobs) do job.task = self.place end
  local made, refused, script_error = self.services.pool:replay(jobs, self.features)
  if script_error and not self:stopped() then policies.raise_foreign(script_error) end
  for i, c in ipairs(made) do
    if c then
      c.candidate = jobs[i].candidate
      if #self.postprocs > 0 then made[i] = self:postprocess(c, refused) end
    end
  end
  return made, refused
end

-- The user's postprocessors that are closures of this state run here, after those that the pool's workers hold.
function Task:postprocess(c, refused)
  local sch = msched.apply(self.func, c.trace)
  local done, ok, by, code, message = pcall(space.check, sch, self.postprocs)
  if not done then policies.raise_foreign(ok) end
  if not ok then
    refused[#refused + 1] = {by = by, code = code, example = message, count = 1}
    return false
  end
  c.trace, c.hash = sch.trace, sch:hash()
  if self.features then c.features = msched.features(sch) end
  return c
end

-- The candidate that would be used without tuning; nil: there is none.
function Task:find_untuned()
  self.untuned = self.untuned or msched.load "search.untuned".choice(self)
  return self.untuned
end

-- The starts are postprocessed as candidates are, and measured here: at most half of the trials. First is what would be
-- used without tuning, where the task begins with it.
function Task:measure_starts()
  local jobs = {}
  local untuned = self.begins_untuned and self:find_untuned()
  if untuned then jobs[1] = {trace = untuned.sketch_trace, candidate = 0} end
  for _, s in ipairs(self.starts) do jobs[#jobs + 1] = {trace = s.sketch, candidate = 0} end
  if #jobs == 0 then return end
  local made = self:replay(jobs)
  if untuned then self.untuned = made[1] or untuned end
  local list = self:unmeasured(made, (self:trials_left() + 1) // 2)
  if #list == 0 then return end
  self.is_starting = true
  self:measure(list)
end

-- What fails in the model is not the policy's.
function Task:take_model(model, refused)
  self.learner, self.refused_model = model, refused
  self.model = {predict = function(_, candidates)
    local ranking = self:is_ranked_by_others() and self.of_others or self.learner
    local ok, scores = pcall(ranking.predict, ranking, candidates)
    if ok then return scores end
    if not self:leave_model(scores) then policies.raise_foreign(scores) end
    return self.learner:predict(candidates)
  end}
end

-- Takes a model that has learned of other functions, from so many samples of so many of them: it ranks candidates until
-- the task's own model has learned.
function Task:take_transferred(model, samples, functions)
  self.of_others = model
  self.log("transferred", self.name, {samples = samples, functions = functions})
end

-- Whether what ranks candidates has learned of other functions alone.
function Task:is_ranked_by_others() return self.of_others ~= nil and not self.learner:has_learned() end

-- The model failed: the search goes on by chance. False: the user would rather stop, or has stopped.
function Task:leave_model(message)
  if (type(self.learner) == "table" and self.learner.required) or self:stopped() then return false end
  self.learner, self.of_others = msched.model("random", self.seed), nil
  self.log("model_left", self.name, {reason = message})
  return true
end

-- ---- Going on -----------------------------------------------------------------------------------------------------

-- The task ends before all trials are done; the first reason stands.
function Task:finish(why, format, ...) self.ended = self.ended or {why = why, text = string.format(format, ...)} end
function Task:fail(message)
  message = msched.load "lua.lib.shortened"(message) -- what a user's part says that it fails by has any length
  self:finish("error", "%s", message)
  self.error = self.error or message
end

-- Of candidates that are asked for in the order in which they are: those that no earlier iteration had.
local function hashes_of(self, candidates)
  local list = {}
  for i, c in ipairs(candidates) do
    if not self.answers[i] or self.answers[i].status ~= "repeated" then list[#list + 1] = c.hash end
  end
  return list
end

-- Lets the policy go on until it asks for measurements, and has them made.
function Task:step()
  local start, replaying, before = msched.clock(), self.spent.replay, self.repeated
  local candidates, message, why = self.running:resume(self.run:seconds_left(self), self.answers or self)
  local seconds = msched.clock() - start
  self.spent.policy = self.spent.policy + seconds - (self.spent.replay - replaying)
  if not candidates then
    if message and not self:is_over() then self:fail(message)
    elseif self.done < self.trials and not self:is_over() then
      self:finish("policy", "%s", why or string.format("policy `%s` asked for no more%s", self.policy.name,
                  self.idle > 0 and ", and the space gave nothing new" .. self:known_text() or ""))
    end
    self.is_done = true
    return
  end
  local fresh, stored = self:sort_out(candidates)
  self.log("asked", self.name,
           {iteration = self.iteration, hashes = hashes_of(self, candidates), candidates = #candidates,
            measured = #fresh, recalled = stored, repeated = self.repeated - before, seconds = seconds})
  self:submit(fresh)
  self:note_idle(#fresh + stored)
  if self.waiting == 0 then self:settle() end
end

-- What is asked for when the store was read already: its result costs no trial.
function Task:take_stored(c, k)
  self.unfinished[c.hash] = nil
  self:know(k)
  if self.proposed then self.done = self.done + 1
  elseif k.record.status ~= "failed" then self.stored_left = self.stored_left - 1 end
  if k.sketch then self:note_sample(c, k.record.seconds) end
  return {status = k.record.status, seconds = k.record.seconds}
end

-- The store's record of a scheduled module; equal functions share theirs.
function Task:record_of(hash)
  local own = self.services.store:find_module(self.workload, self.target.text, hash)
  if own then return own end
  for _, r in ipairs(self.shared) do
    if r.hash == hash and r.target == self.target.text and r.versions == msched.versions() then return r end
  end
end

-- Answers from the store alone: what is not in it counts as failed, and is not kept.
function Task:simulated(c)
  local r = self:record_of(c.hash)
  if r and r.status ~= "unmeasured" then
    return {measured = r.status == "measured", censored = r.status == "censored", outcome = r.status,
            seconds = r.seconds, reason = r.reason}
  end
  if not self.proposed then self.done = self.done + 1 end
  return {outcome = "not in the store", seconds = 0, reason = ""}
end

-- Gives those that are to be measured, {candidate, at}, and how many the store had a result of.
function Task:sort_out(candidates)
  local fresh, stored, left = {}, 0, self:trials_left()
  self.answers, self.best_before = {}, self.fastest and self.fastest.seconds
  for i, c in ipairs(candidates) do
    local k, is_spent = self.unfinished[c.hash], #fresh + (self.proposed and stored or 0) == left
    if k and not (self.proposed and is_spent) then
      self.answers[i], stored = self:take_stored(c, k), stored + 1
    elseif self.known[c.hash] or is_spent then
      self.answers[i] = {status = "repeated"}
    else
      self.known[c.hash] = true
      fresh[#fresh + 1] = {candidate = c, at = i, answers = self.answers}
    end
    if self.proposed and (not self.answers[i] or self.answers[i].status ~= "repeated") then
      self.answers[i] = fixed.answer(self, c)
    end
  end
  return fresh, stored
end

-- Not below 0, as facts of records are: some virtual machines' clocks go back.
function Task:since_start() return math.max(0, msched.clock() - self.run.started) end

function Task:submit(fresh)
  self.waiting, self.batch_size, self.asked_at, self.came_at = #fresh, #fresh, self:since_start(), msched.clock()
  local whole = self.stored_of[self.iteration] or 0
  for _, f in ipairs(fresh) do
    f.is_of_iteration = f.candidate.candidate >> self.NUMBERS == self.iteration
    whole = whole + (f.is_of_iteration and 1 or 0)
  end
  for _, f in ipairs(fresh) do
    self.submitted, f.whole = self.submitted + 1, f.is_of_iteration and whole or nil
    self.pending[self.submitted] = f
    if self.simulate then self:take(self.submitted, self:simulated(f.candidate))
    else self.services.measurer:submit(self.number, self.submitted, f.candidate.trace, f.candidate.hash) end
  end
end

-- How much of the space is known, and what would make it larger.
function Task:known_text()
  local known = 0
  for _ in pairs(self.known) do known = known + 1 end
  if self.unscheduled then
    return ": it has no blocks, so nothing in it can be scheduled, and it was measured as it stands; in T.sblock its \z
            statements could be"
  end
  return string.format(": %s known; rules of your own would add others",
                       known == 1 and "1 schedule of it is" or known .. " schedules of it are")
end

-- A policy that asks for nothing new again and again has seen the space.
function Task:note_idle(new)
  self.idle = new > 0 and 0 or self.idle + 1
  if self.idle < MOST_IDLE then return end
  if self.accepted == 0 then self:finish("refused", "every candidate was refused")
  else self:finish("exhausted", "the space gave nothing new three times in a row%s", self:known_text()) end
end

-- All results of an iteration are there.
function Task:settle()
  table.sort(self.samples, function(a, b) return a.hash < b.hash end) -- whatever the order in which they came
  self:learn(self.samples, false)
  self.samples = {}
  self.wins[#self.wins + 1] = self.fastest ~= nil and (not self.best_before or self.fastest.seconds < self.best_before)
  if not self.is_starting then self:end_iteration() end
  self.made, self.is_starting = 0, false
end

-- What the store has of iterations up to `last` that were cut short is known now, though the policy did not ask for it
-- again.
function Task:know_unfinished(last)
  self.stored_left = 0
  for _, hash in ipairs(msched.sorted_keys(self.unfinished)) do
    local k = self.unfinished[hash]
    if k.iteration <= last then
      self:know(k)
      self.unfinished[hash] = nil
    elseif k.record.status ~= "failed" then self.stored_left = self.stored_left + 1 end
  end
end
function Task:end_iteration()
  if not self.proposed then self:know_unfinished(self.iteration) end
  self.iteration = self.iteration + 1
end

-- ---- Results that come late ---------------------------------------------------------------------------------------

local LATE, STALLED_LATE = 1 / 8, 1 / 2 -- shares of a batch
Task.STALLED = 1 -- seconds without a result

-- Whether the policy may go on with what has come of its batch: most of it, or half where nothing has come for a while,
-- as where a worker of a fleet has died. One batch has late results at a time; a policy of a user's has all.
function Task:may_go_on()
  if self.waiting == 0 or self.late > 0 or self.proposed or self.is_starting then return false end
  if not policies.is_shipped(self.policy) then return false end
  local share = self.waiting / self.batch_size
  local is_most = share <= LATE or share <= STALLED_LATE and msched.clock() - self.came_at > Task.STALLED
  return is_most and self:trials_left() > self.waiting
end

-- Ends the batch: what has not come by now counts when it comes.
function Task:close_batch()
  for _, f in pairs(self.pending) do f.is_late, f.answers[f.at] = true, {status = "late"} end
  self.late, self.waiting = self.waiting, 0
  self:settle()
end

-- ---- Results ------------------------------------------------------------------------------------------------------

function Task:note_best(seconds, id, full_id, hash, trace)
  local new = {seconds = seconds, id = id, full_id = full_id, hash = hash, trace = trace}
  if not self.fastest or is_faster(new, self.fastest) then self.fastest = new end
end

-- Times of the store have changed: the best is the first of all again, as those who read the store see it.
function Task:choose_best()
  local first = self:fastest_few(1)[1]
  local record = first and self:record_of(first.hash)
  if record then
    self.fastest = {seconds = first.seconds, id = first.id, full_id = record.id, hash = first.hash,
                    trace = msched.read_trace(record.trace)}
  end
end

-- A record of the store (resume.lua) counts as asked for.
function Task:know(k)
  self.known[k.record.hash] = true
  if k.sketch and k.record.status == "measured" then
    self.measured[#self.measured + 1] = {hash = k.record.hash, seconds = k.record.seconds, sketch = k.sketch,
                                         candidate = k.record.candidate, id = k.id, full_id = k.record.id,
                                         worker = k.record.search and k.record.search.worker}
  end
end

function Task:note_sample(c, seconds)
  if c.features then self.samples[#self.samples + 1] = {features = c.features, seconds = seconds, hash = c.hash} end
end

function Task:learn(samples, known)
  if #samples == 0 or not self.policy.needs.model or self.proposed then return end
  local start = msched.clock()
  local ok, message = pcall(self.learner.update, self.learner, samples)
  if not ok then
    if not self:leave_model(message) and not self:stopped() then self:fail(message) end
    return
  end
  local seconds = msched.clock() - start
  self.spent.learn = self.spent.learn + seconds
  self.log("learned", self.name, {lessons = #samples, known = known, seconds = seconds})
end

-- So many failures in a row are the space's, or the machine's: more of them would find nothing.
local function note_failure(self, r)
  local row = self.row
  count(self.failures, r.outcome)
  count(row.failures, r.outcome)
  row.length, row.last = row.length + 1, r.reason ~= "" and "; the last: " .. r.reason or ""
  if row.length >= self.most_failures and not self.simulate and not self.proposed then
    self:finish("failures", "%d candidates in a row failed: %s%s", row.length, Task.reasons_text(row.failures),
                row.last)
  end
end

-- What is to be said, once, of how it became known what the function computes.
function Task:take_remark()
  local known, remark = self.services.measurer:reference(self.number)
  if not known or self.has_remark then return end
  self.has_remark = true
  if remark and remark ~= "" then self.log("remark", self.name, {text = remark}) end
end

-- A result of the measurer's. Where the function itself cannot be run, there is none of any candidate.
function Task:take_result(r)
  if not self.has_remark then self:take_remark() end
  local is_late = self.pending[r.id] and self.pending[r.id].is_late
  if r.unmeasurable then
    local _, why = self.services.measurer:reference(self.number)
    self:fail(why)
    self:come(r.id)
  else
    self:take(r.id, r)
  end
  if self.waiting == 0 and not is_late then self:settle() end
end

function Task.run_seconds(r) return (r.check_seconds or 0) + (r.time_seconds or 0) end

-- A fleet's record says how many its iteration is to have: those that a tuner that is killed has not kept are asked for
-- again (resume.lua).
local function keep(self, f, status, r)
  if self.simulate then return end
  local limit, c = r.limit or self.limit, f.candidate
  self.kept = self.kept + 1
  local search =
    {asked = self.asked_at, came = self:since_start(), build_seconds = math.max(0, r.build_seconds or 0),
     run_seconds = math.max(0, Task.run_seconds(r)), run = self.run_number, space = self.space_key, worker = r.worker,
     batch = r.worker and f.whole}
  return self.services.store:put {workload = self.workload, target = self.target.text, trace = c.trace, hash = c.hash,
    status = status, seconds = r.seconds, low = r.low, high = r.high, runs = r.runs, busy = r.busy, reason = r.reason,
    seed = self.seed, candidate = c.candidate, device = r.device, search = search,
    roofline = limit and {limit = limit.name, limit_seconds = limit.seconds}}
end

local function status_of(r) return r.measured and "measured" or r.censored and "censored" or "failed" end

-- Keeps a result in the store before it is taken, with others.
function Task:keep_early(r)
  local f = not r.unmeasurable and self.pending[r.id]
  if f then r.kept = {keep(self, f, status_of(r), r)} end
end

-- What was asked for has come: it is waited for no more.
function Task:come(number)
  local f = self.pending[number]
  local count = f.is_late and "late" or "waiting"
  self.pending[number], self[count], self.came_at = nil, self[count] - 1, msched.clock()
  return f
end

-- What came of a candidate: counted, kept in the store, reported.
function Task:take(number, r)
  local f = self:come(number)
  local c = f.candidate
  self.limit_elsewhere = r.limit or self.limit_elsewhere
  local status = status_of(r)
  if not self.proposed then f.answers[f.at] = {status = status, seconds = status ~= "failed" and r.seconds or nil} end
  self.done = self.done + ((self.proposed or status ~= "failed") and 1 or 0)
  if status == "failed" then note_failure(self, r) else self.row = {failures = {}, length = 0} end
  if r.busy then self.busy = self.busy + 1 end
  if status == "censored" then self.censored = self.censored + 1 end
  local id, short = table.unpack(r.kept or {keep(self, f, status, r)})
  if r.measured then
    self.measured[#self.measured + 1] = {hash = c.hash, seconds = r.seconds, sketch = c.sketch_trace,
                                         candidate = c.candidate, id = short, full_id = id, worker = r.worker}
    self:note_best(r.seconds, short, id, c.hash, c.trace)
    if self.fastest.hash == c.hash and not self.simulate then
      self.services.measurer:set_best(self.number, r.seconds)
    end
  end
  if status ~= "failed" then self:note_sample(c, r.seconds) end
  self:tell_trial(c, r, status, id, short)
end

function Task:tell_trial(c, r, status, id, short)
  local build, run = r.build_seconds or 0, Task.run_seconds(r)
  self.spent.build, self.spent.run = self.spent.build + build, self.spent.run + run
  self.log("trial", self.name, {
    id = id, short_id = short, status = status, outcome = r.outcome, seconds = r.seconds, low = r.low, high = r.high,
    hash = c.hash, candidate = c.candidate,
    reason = r.reason, busy = r.busy or false, build_seconds = build, run_seconds = run, done = self.done,
    best = self.fastest and self.fastest.id,
    best_seconds = self.fastest and self.fastest.seconds,
  })
end

return Task
