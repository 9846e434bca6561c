-- A function that is cut into groups (groups.lua), as a task whose parts are the tasks of its groups. The trials that
-- are asked for are those of all of them: some are kept for the whole, the others are its parts'. When these are over,
-- the policy below composes the best of each part (compose.lua), has that measured, and tries the next best of those
-- parts that take most of the time: in the whole, caches hold what they do not hold where a part runs alone.
local compose, untuned = msched.load "search.groups.compose", msched.load "search.untuned"
local policies = msched.load "search.policy"

local whole = {PARTS_TIME = 0.85} -- of a run's seconds: after these its parts leave the rest to it

local KEPT, OF = 8, 8 -- at most so many trials are kept for the whole, and one of so many
local CHOICES = 4 -- of a part, that are tried in the whole
local FASTER = 0.995 -- of the seconds of the best so far: what is less is no accident

-- ---- Trials ------------------------------------------------------------------------------------------------------

local Budget = {}
Budget.__index = Budget

-- trials: of the whole and its parts together; nil: each has its own.
function whole.budget(trials) return setmetatable({trials = trials, parts = {}, begun = 0}, Budget) end

-- How many of `trials` are kept for the whole, less those that it has had.
function Budget:kept(trials)
  local done = self.whole and self.whole.done + self.whole.waiting + self.whole.late or 0
  return math.max(math.min(math.max(trials // OF, 1), KEPT) - done, 0)
end

-- A part is resumed for the first time: those that were not yet have their share.
function Budget:begin() self.begun = self.begun + 1 end

-- Trials that are left for one of the tasks.
function Budget:left(task)
  if not self.trials then return math.huge end
  local left = self.trials - self.whole.done - self.whole.waiting - self.whole.late
  for _, part in ipairs(self.parts) do left = left - part.done - part.waiting - part.late end
  if task == self.whole then return math.max(left, 0) end
  left = math.max(left - self:kept(self.trials), 0)
  local sharers = math.max(#self.parts - self.begun + 1, 1)
  return (left + sharers - 1) // sharers
end

-- ---- Choices of a part -------------------------------------------------------------------------------------------

-- What a part is without a measurement: the store's, or else the top-ranked candidate of the analytical model, or else
-- as it was written. And why, where that.
function whole.choice(part)
  if part.fastest then return part.fastest.trace end
  local c, why = untuned.choice(part)
  return c and c.trace or msched.schedule(part.func).trace, not c and why or nil
end

-- The fastest traces of a part; without any its choice above, which comes after those too, where none of them can be
-- composed.
local function traces_of(part)
  local list = {}
  for _, m in ipairs(part:best(CHOICES)) do
    local record = not m.trace and part:record_of(m.hash)
    if m.trace or record then list[#list + 1] = m.trace or msched.read_trace(record.trace) end
  end
  if #list == 0 then list[1] = whole.choice(part) end
  return list
end

-- Seconds of all instances of a part together; 0: not known.
local function seconds_of(part)
  local best = part:best(1)[1]
  return part.weight * (best and best.seconds or 0)
end

-- The choices of each part, the part that takes most first: {part, traces, at}.
local function choices_of(task)
  local list = {}
  for i, part in ipairs(task.parts) do
    list[i] = {part = part, traces = traces_of(part), at = 1, seconds = seconds_of(part), number = i}
  end
  table.sort(list, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds > b.seconds end
    return a.number < b.number
  end)
  return list
end

-- ---- The whole ---------------------------------------------------------------------------------------------------

-- A candidate with the choices as they are, but of one of them number `at`; nil, why, and of which part, where that
-- cannot be composed.
local function candidate(task, choices, changed, at)
  local trace_of = {}
  for _, c in ipairs(choices) do trace_of[c.part.func] = c.traces[c == changed and at or c.at] end
  local made, why, group =
    compose.schedule(task.func, task.cut, function(g) return trace_of[task.part_of_group[g].func] end)
  if not made then return nil, why, task.part_of_group[group] end
  task.made = task.made + 1
  return {trace = made.trace, sketch_trace = made.trace, hash = made:hash(),
          candidate = task.iteration << task.NUMBERS | task.made}
end

-- The first composition that can be made: where a part's trace cannot be done to the whole, its next one, and in the
-- end the part as it was written.
local function first_candidate(task, choices)
  local made, why, part = candidate(task, choices)
  for _, c in ipairs(choices) do c.traces[#c.traces + 1] = not made and msched.schedule(c.part.func).trace or nil end
  local changed = true
  while not made and changed do
    changed = false
    for _, c in ipairs(choices) do
      if c.part == part and c.at < #c.traces then
        task.log("uncomposed", task.name, {group = c.part.name, reason = why})
        c.at, changed = c.at + 1, true
        made, why, part = candidate(task, choices)
      end
    end
  end
  if not made then policies.raise_foreign("the groups' best cannot be composed: " .. why) end
  return made
end

-- One by one, what is next best of a part in place of its best: it stays where the whole is faster with it.
local function refine(env, choices, best)
  for step = 2, CHOICES do
    for _, c in ipairs(choices) do
      local made = c.traces[step] and env:remaining() > 0 and candidate(env, choices, c, step)
      if made and not env:is_known(made.hash) then
        local came = env:measure({made})[1]
        if came and came.status == "measured" and came.seconds < FASTER * best then
          best, c.at = came.seconds, step
        end
      end
    end
  end
end

whole.policy = {
  kind = "policy", name = "composed", needs = {},
  run = function(env)
    local choices = choices_of(env)
    local came = env:measure({first_candidate(env, choices)})[1]
    if came and came.seconds then refine(env, choices, came.seconds) end
    if env:remaining() > 0 then return "the choices of its groups that are worth trying were tried" end
  end,
}

-- Without tuning: the store's fastest of the whole, or else a composition of what untuned.lua gave each part.
function whole.untuned(task)
  if untuned.take_stored(task) then return end
  local ok, made = pcall(function() return first_candidate(task, choices_of(task)) end)
  if not ok then return task:fail(type(made) == "table" and made.message or tostring(made)) end
  local built, why =
    pcall(msched.build, msched.apply(task.func, made.trace):func(), {target = task.target.text, reference = task.func})
  if not built then return task:fail("the composed schedule cannot be built: " .. tostring(why)) end
  untuned.keep(task, made)
end

return whole
