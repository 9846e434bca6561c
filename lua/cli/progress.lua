-- What tuning shows, made from the log's events (search/log.lua): a table that is drawn again and again on a terminal
-- (live.lua), lines elsewhere, or objects.
local ms, cli = msched, msched.load "lua.cli.cli"
local rates = msched.load "lua.cli.rates"
local Task, remeasure = msched.load "search.task", msched.load "search.remeasure"

local progress = {}

-- ---- The state of a task, from its events -------------------------------------------------------------------------

local function new_state(e)
  return {best = e.best, best_seconds = e.best_seconds, stopped = 0, name = e.task,
          work = {operations = e.operations, unit = e.unit, bytes = e.bytes}, limit = e.limit, start = e, results = 0,
          said = e.elapsed, elapsed = e.elapsed, done = e.counted or 0, failures = {}, repeated = 0, busy = 0,
          built = 0, ran = 0, building = 0, curve = {}, costs = {}}
end

local function note_trial(s, e)
  s.results, s.done = s.results + 1, e.done
  s.best, s.best_seconds = e.best, e.best_seconds
  s.curve[#s.curve + 1] = e.best_seconds or false
  if (e.build_seconds or 0) > 0 then s.built, s.building = s.built + 1, s.building + e.build_seconds end
  if (e.run_seconds or 0) > 0 then s.ran = s.ran + 1 end
  if e.id then s.costs[e.id] = {build = e.build_seconds, run = e.run_seconds} end
  if e.status == "censored" then s.stopped = s.stopped + 1 end
  if e.status == "failed" then s.failures[e.outcome] = (s.failures[e.outcome] or 0) + 1 end
  if e.busy then s.busy = s.busy + 1 end
end

local function note_retimed(s, e)
  s.best, s.best_seconds = e.best, e.best_seconds
  if #s.curve > 0 then s.curve[#s.curve] = e.best_seconds end
end

local function note_end(s, e)
  s.done, s.best, s.best_seconds, s.failures, s.repeated, s.busy, s.finished = e.trials, e.short_id, e.best_seconds,
    e.failures, e.repeated, e.busy, e
  s.limit = e.limit or s.limit
end

-- What there is in the place of a best: none yet, and what the candidates are that came so far.
function progress.no_best_text(s)
  local failed, parts = 0, {}
  for _, count in pairs(s.failures) do failed = failed + count end
  if s.stopped > 0 then parts[1] = cli.count_text(s.stopped, "trial") .. " stopped early" end
  if failed > 0 then parts[#parts + 1] = cli.count_text(failed, "candidate") .. " failed" end
  return "none yet" .. (#parts > 0 and ": " .. table.concat(parts, ", ") or "")
end

-- The share that the best has of the roofline: of the limit that this machine was measured to have, where it was, or
-- else of what no machine of its kind passes.
function progress.share(s) return rates.share(s.limit, s.best_seconds) or s.start.bound / s.best_seconds end

-- Of a function that is cut: the trials that it and its groups have had, those that they have together, and how many of
-- them were had before the run; nil: each has its own.
function progress.shared_trials(s)
  if not s.start.shared then return nil end
  local done, counted = 0, 0
  for _, other in ipairs(s.family) do done, counted = done + other.done, counted + (other.start.counted or 0) end
  return done, s.start.shared, counted
end

-- The share of a group's instances in the time of all groups of its function, or of a network's function in that of
-- all, at their best; nil: it is not known yet.
function progress.share_of_time(s)
  if not (s.start.part_of or s.functions) or not s.best_seconds then return nil end
  local all = 0
  for _, other in ipairs(s.functions or s.family) do
    if s.functions or other.start.part_of then
      if not other.best_seconds then return nil end
      all = all + other.start.weight * other.best_seconds
    end
  end
  return s.start.weight * s.best_seconds / all
end

-- Of a function that is composed of its groups, the seconds that the best of all their instances take together, each
-- timed alone, which finds its operands in the caches; nil: it is none, or a group has no best.
function progress.seconds_of_groups(s)
  if not s.start.groups then return nil end
  local all = 0
  for _, other in ipairs(s.family) do
    if other.start.part_of == s.name then
      if not other.best_seconds then return nil end
      all = all + other.start.weight * other.best_seconds
    end
  end
  return all > 0 and all / s.start.weight or nil
end

-- The speed of the best as a share of the vendors' fastest routine; nil: there is none.
function progress.of_vendor(s)
  return s.start.vendor_seconds and s.best_seconds and s.start.vendor_seconds / s.best_seconds
end

-- ---- Lines ---------------------------------------------------------------------------------------------------------

-- What timing the best again takes in the end: they are built, and timed in turn.
local function retiming_seconds(s)
  local count = s.retiming or math.min(s.start.trials, remeasure.MOST)
  return count > 1 and count * (remeasure.SECONDS + s.building / math.max(s.built, 1)) or 0
end

-- What ends the task first: its trials, or the run's seconds; then the best are timed again.
local function seconds_left(s, elapsed)
  if s.retiming then return retiming_seconds(s) - (elapsed - s.retiming_since) end
  local done, trials, counted = progress.shared_trials(s)
  if not done then done, trials, counted = s.done, s.start.trials, s.start.counted or 0 end
  local left = done > counted and elapsed / (done - counted) * (trials - done) or math.huge
  return math.min(left, s.start.deadline and s.start.deadline - elapsed or math.huge) + retiming_seconds(s)
end

-- What is to be said of the time: so far, and left if that is known.
function progress.time_text(s, elapsed)
  local left = s.finished and math.huge or seconds_left(s, elapsed)
  return string.format("%.0f s%s%s", elapsed,
                       s.retiming and not s.finished and string.format(", the best %d are timed again", s.retiming)
                         or "", left < math.huge and string.format(", about %.0f s left", math.max(left, 0)) or "")
end

local function status(s, elapsed)
  local done, trials = progress.shared_trials(s)
  local parts = {done and string.format("%s: trial %d, %d of %d with %s", s.name, s.done, done, trials,
                                        s.start.part_of and "the other groups" or "its groups")
                 or string.format("%s: trial %d of %d", s.name, s.done, s.start.trials)}
  local function add(format, ...) parts[#parts + 1] = string.format(format, ...) end
  if s.best_seconds then
    add("best %s %s (%s)", cli.time_text(s.best_seconds), cli.rate_text(s.work, s.best_seconds), s.best or "-")
  elseif s.stopped > 0 then add("no best yet, %d stopped early", s.stopped)
  else add("no best yet") end
  add("%s", progress.time_text(s, elapsed))
  add("failed: %s", Task.reasons_text(s.failures))
  if s.repeated > 0 then add("repeated: %d", s.repeated) end
  if s.busy > 0 then add("other programs ran during %d", s.busy) end
  return table.concat(parts, ", ")
end

local function start_text(e)
  if e.groups then
    return string.format("%s on %s: composed of the best of %s", table.concat({e.task, table.unpack(e.equal)}, " = "),
                         e.target, cli.count_text(e.groups, "group"))
  end
  local more = {}
  if e.part_of then
    more[1] = string.format("a group of %s, which has it %s", e.part_of,
                            e.weight == 1 and "once" or string.format("%.10g times", e.weight))
  end
  if e.blocks then more[#more + 1] = cli.product_text(e.blocks) end
  if e.unscheduled then
    more[#more + 1] = "it has no blocks, so nothing in it can be scheduled: it is measured as it stands"
  end
  if e.thinned then more[#more + 1] = "of more, drawn by the seed" end
  if e.known > 0 then
    more[#more + 1] = cli.count_text(e.known, "record") .. " known" .. ((e.counted or 0) > 0
      and string.format(", %d of them of the %s", e.counted, cli.count_text(e.trials, "trial")) or "")
  end
  local names = {e.task, table.unpack(e.equal)}
  return string.format("%s on %s: %s%s", table.concat(names, " = "), e.target, cli.sketches_text(e.sketches),
                       #more > 0 and ", " .. table.concat(more, ", ") or "")
end

local function end_lines(s, e, print)
  if e.ended == "untuned" then
    local known = e.best_seconds
      and string.format(", %s %s", cli.time_text(e.best_seconds), cli.rate_text(s.work, e.best_seconds)) or ""
    print(string.format("%s: %s (%s)%s, %.1f s", s.name, e.text, e.short_id, known, e.seconds))
    if e.unused then print(string.format("%s: %s", s.name, e.unused)) end
    return
  end
  print(status(s, e.seconds))
  if s.limit and e.best_seconds then
    print(string.format("%s: %.0f %% of the roofline, %s, as measured", s.name, 100 * progress.share(s),
                        rates.limit_text(s.work, s.limit)))
  end
  if e.unused then print(string.format("%s: %s", s.name, e.unused)) end
  if s.start.vendor and e.best_seconds then
    print(string.format("%s: %.0f %% of the speed of %s, which takes %s", s.name, 100 * progress.of_vendor(s),
                        s.start.vendor, cli.time_text(s.start.vendor_seconds)))
    if s.start.vendor_routine then
      print(string.format("%s: %s: %s", s.name, s.start.vendor_library, s.start.vendor_routine))
    end
  end
  if e.retimed > 0 then print(string.format("%s: the best %d were timed again, in turn", s.name, e.retimed)) end
  local share = progress.share_of_time(s)
  if share and s.start.part_of then
    print(string.format("%s: %.0f %% of the time of %s's groups, %s", s.name, 100 * share, s.start.part_of,
                        cli.count_text(math.tointeger(s.start.weight) or 0, "instance")))
  elseif share then print(string.format("%s: %.0f %% of the network's time", s.name, 100 * share)) end
  local groups = e.best_seconds and progress.seconds_of_groups(s)
  if groups then
    print(string.format("%s: %.2f times as long as its groups alone, which take %s together: alone each finds its \z
                         operands and its code in the caches", s.name, e.best_seconds / groups, cli.time_text(groups)))
  end
  if e.text and (not s.start.shared or e.ended == "trials") then
    print(string.format("%s: ended with %d of %d trials: %s", s.name, e.trials, s.start.trials, e.text))
  end
end

-- Messages about a task: lines after the first name it too.
function progress.of_task(name, text)
  return name .. ": " .. text:gsub("\n([^\n])", "\n" .. name:gsub("%%", "%%%%") .. ": %1")
end

-- A line after so many results without a new best, or so many seconds without a line.
local QUIET, SILENT = 16, 60

-- What shows a run's events as they come: handlers by event, of {states, of tasks by name; screen; print(text); shown,
-- the best time in a task's last line; functions, the states of the network's, where it is one; families, the states of
-- a function that is cut and of its groups, by its name}.
local handlers = {}

local function warn(self, name, ...)
  if self.screen then self.screen:clear() end
  io.stdout:flush()
  io.stderr:write(ms.visible("msched tune: " .. progress.of_task(name, string.format(...)), "lines"), "\n")
end

function handlers.cut(self, e)
  self.print(string.format("%s: %s, cut into %s that are searched apart%s", e.task, cli.count_text(e.size, "block"),
                           cli.count_text(e.instances, "group"),
                           e.groups < e.instances
                             and string.format(", %d of them as others are", e.instances - e.groups) or ""))
end
function handlers.uncut(self, e)
  warn(self, e.task, "it is searched as it is, which may take long: it cannot be cut into groups: %s", e.reason)
end
function handlers.uncomposed(self, e)
  warn(self, e.task, "the best of %s is left out: %s", e.group, e.reason:match "^[^\n]*")
end

local BETWEEN_OPENINGS = 5 -- seconds

function handlers.opening(self, e)
  if self.opening_shown and e.elapsed - self.opening_shown < BETWEEN_OPENINGS then return end
  self.opening_shown = e.elapsed
  self.print(string.format("%s: the spaces of %d of %d functions are open", e.task, e.opened, e.tasks))
end

local MOST_NAMED = 3

-- Names of functions, the first few of many.
local function names_text(names)
  local text = table.concat(names, ", ", 1, math.min(#names, MOST_NAMED))
  return #names > MOST_NAMED and string.format("%s and %d others", text, #names - MOST_NAMED) or text
end

function handlers.unopened(_, e)
  cli.warn(string.format("msched tune: without %s: half of the seconds were over before %s open; give it more",
                         names_text(e.functions), #e.functions == 1 and "its space was" or "their spaces were"))
end

-- A state joins those that it is shown with: of the network, and of the function that is cut.
local function add_state(self, e)
  local s, cut = new_state(e), e.part_of or e.groups and e.task
  self.states[e.task], s.family = s, {}
  if cut then
    self.families[cut] = self.families[cut] or {}
    s.family = self.families[cut]
  end
  table.insert(s.family, s)
  if self.functions and not e.part_of then
    s.functions = self.functions
    table.insert(s.functions, s)
  end
  if self.screen then self.screen:add(s) end
end
function handlers.start(self, e)
  add_state(self, e)
  self.print(start_text(e))
  for _, name in ipairs(e.idle or {}) do
    self.print(string.format("rule `%s` changed no schedule: its `apply` gave back what it got, for every block", name))
  end
  if e.refused_model then
    self.print(string.format("%s: the search goes on without the model: %s", e.task, e.refused_model))
  end
end

function handlers.limit(self, e) self.states[e.task].limit = e.limit end
function handlers.asked(self, e) self.states[e.task].repeated = self.states[e.task].repeated + e.repeated end
function handlers.retimed(self, e) note_retimed(self.states[e.task], e) end

function handlers.left_out(self, e) warn(self, e.task, "record %s is left out: %s", e.record:sub(1, 12), e.reason) end
function handlers.remark(self, e) warn(self, e.task, "%s", e.text) end
function handlers.model_left(self, e) warn(self, e.task, "the search goes on without the model: %s", e.reason) end
function handlers.transferred(self, e)
  self.print(string.format("%s: the cost model starts from %d results of %s", e.task, e.samples,
                           e.functions == 1 and "another function" or e.functions .. " other functions"))
end
function handlers.said(self, e) self.print(string.format("%s: %s", e.task, e.text)) end

function handlers.wait(self, e)
  local s = self.states[e.task]
  s.elapsed = e.elapsed
  if e.retiming and not s.retiming then s.retiming, s.retiming_since = e.waiting, e.elapsed end
  if self.screen then
    self.screen:show(s, e.elapsed)
  elseif s.results >= QUIET or e.elapsed - s.said > SILENT
      or e.event == "trial" and s.best_seconds ~= self.shown[e.task] then
    self.shown[e.task], s.results, s.said = s.best_seconds, 0, e.elapsed
    self.print(status(s, e.elapsed))
  end
end
function handlers.trial(self, e)
  note_trial(self.states[e.task], e)
  handlers.wait(self, e)
end
handlers["end"] = function(self, e)
  local s = self.states[e.task]
  note_end(s, e)
  if self.screen then self.screen:remove(s) end
  end_lines(s, e, self.print)
end

-- What shows events, to be called with each. states: of tasks by name, which it fills. screen: what shows them on a
-- terminal (live.lua); nil: it is none. of_network: the tasks are a network's functions.
function progress.lines(screen, states, of_network)
  local self = {states = states or {}, screen = screen, shown = {}, families = {}, functions = of_network and {} or nil,
                print = screen and function(text) screen:print(text) end or cli.print}
  return function(e)
    if handlers[e.event] then handlers[e.event](self, e) end
    io.stdout:flush()
  end
end

-- ---- The end ----------------------------------------------------------------------------------------------------

local FEW, MOST_SHOWN = 3, 3 -- records shown of a task; decisions of each

-- The fastest few of a task: share of the best, what building and running took, and what they decide that the best does
-- not.
function progress.print_best(task, state)
  local list, decisions = task:fastest_few(FEW), ms.load "lua.report.decisions"
  for i, m in ipairs(list) do
    local cost, differs = state and state.costs[m.full_id], ""
    if i > 1 then
      local differences = decisions.differences(m.sketch, list[1].sketch)
      local count = differences and #differences
      differs = not differences and "  another sketch"
        or "  " .. table.concat(differences, "; ", 1, math.min(count, MOST_SHOWN))
          .. (count > MOST_SHOWN and string.format("; and %d more", count - MOST_SHOWN) or "")
    end
    cli.print(string.format("  %d  %s  %s  %3.0f %%%s%s", i, m.id or "-", cli.time_text(m.seconds),
                            100 * list[1].seconds / m.seconds,
                            cost and string.format("  built in %.0f ms, run in %.0f ms", 1e3 * cost.build,
                                                   1e3 * cost.run) or "", differs))
  end
end

-- Each event as an object, but that one waits.
function progress.json()
  return function(e)
    e.equal, e.blocks, e.idle = e.equal and cli.list(e.equal), e.blocks and cli.list(e.blocks),
      e.idle and cli.list(e.idle)
    if e.hashes then e.hashes = cli.list(e.hashes) end
    if e.functions then e.functions = cli.list(e.functions) end
    if e.event ~= "wait" then cli.put_json(e) end
  end
end

return progress
