-- A schedule at once, without measuring: blocks get what their pattern of reads and writes asks for
-- (rules/patterns.lua), and where that leaves choices, those with the lowest estimates. What came of a function's
-- structure is a template: functions of other shapes take it, and only its numbers are chosen again. With trials the
-- template is what is tuned.
local targets, space, patterns = msched.load "rules.targets", msched.load "rules.space", msched.load "rules.patterns"
local analytical = msched.load "search.cost.analytical"

local auto = {}

local KEYS = "rules:table kept:integer explored:integer filled:integer replayed:integer each:integer known:table \z
              parameters:table machine:table"
local KNOWN_KEYS = "kept:integer filled:integer replayed:integer each:integer around:integer downhill:integer"

local function check_numbers(own, of)
  for name, number in pairs(own) do
    if math.type(number) == "integer" and number < 1 then
      error(string.format("%sheuristics: `%s%s` is at least 1", msched.where(), of, name), 0)
    end
  end
end

-- The table of all calls with a call's own changes.
local function heuristics_of(given)
  local own = msched.options(given, KEYS)
  local known = msched.options(own.known, KNOWN_KEYS)
  check_numbers(own, "")
  check_numbers(known, "known.")
  local h = targets.changed(msched.heuristics, own)
  h.known = targets.changed(msched.heuristics.known, known)
  return h
end

-- ---- Rules by pattern --------------------------------------------------------------------------------------------

local function is_for(wanted, pattern)
  for _, p in ipairs(wanted) do if p == pattern then return true end end
  return false
end

local KNOWN = {root = true}
for _, name in ipairs(patterns.names) do KNOWN[name] = true end

local function refuse_entry(i)
  error(string.format("%sheuristics: item %d of `rules` is a rule's name, or a list of names, and a list of \z
                       patterns, as {\"auto_inline\", {\"direct_compute\"}}", msched.where(), i), 0)
end

-- The rules of one item, a name or a list of names.
local function load_entry(i, names, context)
  local list = {}
  for k, name in ipairs(type(names) == "table" and names or {names}) do
    if type(name) ~= "string" then refuse_entry(i) end
    list[k] = space.rule(name, context)
  end
  if #list == 0 then refuse_entry(i) end
  return list
end

-- The rules of the heuristics, in order, each item {rules, patterns}.
local function load_rules(h, context)
  local list = {}
  for i, entry in ipairs(h.rules) do
    if type(entry) ~= "table" or type(entry[2]) ~= "table" then refuse_entry(i) end
    for _, p in ipairs(entry[2]) do
      if not KNOWN[p] then
        error(string.format("%sheuristics: there is no pattern `%s`; there are root, %s", msched.where(), tostring(p),
                            table.concat(patterns.names, ", ")), 0)
      end
    end
    list[i] = {load_entry(i, entry[1], context), entry[2]}
  end
  return list
end

-- ---- Choices by estimate -----------------------------------------------------------------------------------------

local PROBED = 4 -- proposals of a schedule that are estimated as they are

-- The estimates of the cheapest candidates of a schedule; infinite where it cannot be estimated.
local function cost_of(work, trace)
  local least = math.huge
  local ok, reading = pcall(msched.estimator, work.func, trace, work.machine)
  if not ok then return least end
  for _, c in ipairs(reading:best {seed = work.seed, budget = math.max(1,
                                   work.heuristics.explored // #work.func_blocks), most = PROBED, each = 1}) do
    local fine, cycles = pcall(msched.estimate, work.func, c.trace, work.machine)
    if fine then least = math.min(least, cycles) end
  end
  return least
end

-- The cheapest schedules, at most as many as are kept.
local function choose(work, schedules)
  local most = work.heuristics.kept
  if #schedules <= most then return schedules end
  local list = {}
  for i, sch in ipairs(schedules) do
    list[i] = {sch = sch, cost = cost_of(work, sch.trace:simplified(false)), at = i}
  end
  table.sort(list, function(a, b) return a.cost ~= b.cost and a.cost < b.cost or a.cost == b.cost and a.at < b.at end)
  local kept = {}
  for i = 1, most do kept[i] = list[i].sch end
  return kept
end

-- What rules make of the schedules at a block, where its pattern in each asks for them.
local function apply_at(work, rules, wanted, schedules, name)
  local context, made = work.parts.context, {}
  for _, sch in ipairs(schedules) do
    local found, block = pcall(sch.get_sblock, sch, name)
    local pattern = found and (patterns.of(sch, block, context.auto_inline) or name)
    local list = {sch}
    for _, rule in ipairs(pattern and is_for(wanted, pattern) and rules or {}) do
      local next_list = {}
      for _, s in ipairs(list) do
        local more = space.apply(rule, s, name, context)
        table.move(more, 1, #more, #next_list + 1, next_list)
      end
      list = next_list
    end
    table.move(list, 1, #list, #made + 1, made)
  end
  return made
end

-- The schedules of a function that its patterns ask for: rules visit its own blocks, not those that other rules make,
-- as in a space.
local function analyze(work)
  local schedules = {msched.schedule(work.func, {seed = work.seed})}
  local names = space.block_names(schedules[1])
  for _, entry in ipairs(work.rules) do
    for at = #names, 1, -1 do schedules = choose(work, apply_at(work, entry[1], entry[2], schedules, names[at])) end
  end
  return schedules
end

-- ---- Templates ---------------------------------------------------------------------------------------------------

local kept_templates = {}

-- A table's text, keys in order.
local function text_of(value)
  if type(value) ~= "table" then return tostring(value) end
  local parts = {}
  for i, k in ipairs(msched.sorted_keys(value)) do parts[i] = tostring(k) .. "=" .. text_of(value[k]) end
  return "{" .. table.concat(parts, " ") .. "}"
end

-- A template: its schedules, as traces; once it was filled, those that were the cheapest then, as they were filled; and
-- what came of each function.
local function known_template(work, key)
  local template, traces = kept_templates[key], {}
  for _, trace in ipairs(template and template.traces or {}) do
    local ok, sch = pcall(msched.apply, work.func, trace, {resample = true, seed = work.seed})
    if ok then traces[#traces + 1] = sch.trace end
  end
  if #traces == 0 then return nil end -- there is none yet, or it does not fit
  work.sketches = traces
  return template
end

local function new_template(work, key)
  local template = {traces = {}, cheapest = {}, made = {}}
  work.sketches = {}
  for i, sch in ipairs(analyze(work)) do
    template.traces[i] = sch.trace:simplified(false)
    work.sketches[i] = template.traces[i]
  end
  kept_templates[key] = template
  return template
end

function auto.forget() kept_templates = {} end

-- ---- Filling -----------------------------------------------------------------------------------------------------

-- What search/cost/analytical.lua asks of a task: here candidates are replayed one after the other, by the same
-- postprocessors.
local Filling = {}
Filling.__index = Filling
function Filling:sketch(n) return self.sketches[n % #self.sketches + 1] end
function Filling.other_choices() return {} end
function Filling:replay(jobs)
  local list = {}
  for i, job in ipairs(jobs) do
    local ok, sch = pcall(msched.apply, self.func, job.trace,
                          {seed = self.seed, candidate = job.candidate, repair = true, resample = job.resample})
    local before = ok and sch.trace
    list[i] = ok and space.postprocess(sch, self.parts)
      and {trace = sch.trace, sketch_trace = before, hash = sch:hash()} or false
  end
  return list
end

local function is_among(trace, list)
  for _, other in ipairs(list) do if #other == #trace and other:has_at(0, trace) then return true end end
  return false
end

-- Of candidates, the cheapest first, the sketches of the first few, each once, with what was decided.
local function cheapest_sketches(candidates, most)
  local list = {}
  for _, c in ipairs(candidates) do
    if #list < most and not is_among(c.sketch_trace, list) then list[#list + 1] = c.sketch_trace end
  end
  return list
end

-- The cheapest candidates of all schedules of a template, replayed, the cheapest first.
local function fill_whole(work, template)
  local h = work.heuristics
  local list = analytical.candidates(work, {budget = h.filled, most = h.replayed, each = h.each, seed = work.seed,
                                            machine = work.machine}, h.kept * 4)
  template.cheapest = cheapest_sketches(list, h.known.kept)
  return list
end

-- Those of the schedules that were the cheapest of an earlier function; what was decided there is where they begin.
local function fill_again(work, template)
  local k, all = work.heuristics.known, work.sketches
  work.sketches = {}
  for _, trace in ipairs(template.cheapest) do
    local ok, sch = pcall(msched.apply, work.func, trace, {repair = true, seed = work.seed})
    if ok then table.insert(work.sketches, sch.trace) end
  end
  local list = analytical.candidates(work, {budget = k.filled, most = k.replayed, each = k.each, seed = work.seed,
                                            machine = work.machine, placed = true, starts = work.sketches,
                                            downhill = k.downhill, around = k.around}, 0)
  work.sketches = all
  return list
end

-- The cheapest candidate of a template that is found, {trace =, cost =}; nil: all are refused. Of a function that had
-- it, the same.
local function fill(work, template)
  local name = work.func:hash() .. " " .. work.seed
  template.made[name] = template.made[name] or fill_again(work, template)[1] or fill_whole(work, template)[1]
  return template.made[name]
end

-- ---- The call ----------------------------------------------------------------------------------------------------

local function target_of(options)
  if options.cores and options.cores < 1 then error(msched.where() .. "ms.auto_schedule: `cores` is at least 1", 0) end
  local text = options.target or "native"
  if options.cores or options.vector_bits then
    text = msched.target(text).text
    if options.cores then text = text:gsub(" %-num%-cores=%d+", "") .. " -num-cores=" .. options.cores end
    if options.vector_bits then
      text = text:gsub(" %-vector%-bits=%d+", "") .. " -vector-bits=" .. options.vector_bits
    end
  end
  return msched.target(text)
end

local function prepare(func, options)
  local target = target_of(options)
  local h = heuristics_of(options.heuristics)
  local machine = analytical.machine(target)
  if not machine or machine.sms then
    error(string.format("%sms.auto_schedule estimates for CPUs; for %s use ms.tune", msched.where(), target.kind), 0)
  end
  local known = targets.changed(targets[target.kind], h.parameters)
  local parts = space.parts(targets.context(target, known))
  return setmetatable({func = func, func_blocks = msched.schedule(func):block_names(), target = target, heuristics = h,
                       machine = targets.changed(machine, h.machine), parts = parts, seed = options.seed or 1,
                       rules = load_rules(h, parts.context)}, Filling)
end

local OPTIONS = "target:string vector_bits:integer cores:integer seed:integer heuristics:table trials:integer \z
                 db:string store:msched.store listen:function"

local STARTS = "auto_schedule" -- the template, as the space that is tuned

local function tune_template(work, options)
  local function starts()
    local list = {}
    for i, trace in ipairs(work.sketches) do list[i] = msched.apply(work.func, trace, {repair = true}) end
    return list
  end
  return msched.tune(work.func,
                     {target = work.target.text, trials = options.trials, seed = options.seed, db = options.db,
                      store = options.store, listen = options.listen, spaces = {{name = STARTS, apply = starts}}})
end

-- The pattern of each block of the function as it was given.
local function patterns_of(work)
  local sch, list = msched.schedule(work.func), {}
  for _, name in ipairs(sch:block_names()) do
    list[name] = patterns.of(sch, sch:get_sblock(name), work.parts.context.auto_inline)
  end
  return list
end

-- ms.auto_schedule(func, options): a schedule; and facts of it: target; patterns, of each block; known, whether its
-- template was; cycles, as estimated; with trials best, as ms.tune gives it.
function msched.auto_schedule(func, options)
  if msched.type(func) ~= "function" then
    error(msched.where() .. "ms.auto_schedule takes a function, as te.func makes it, and options", 0)
  end
  func = msched.without_empty(func) or func
  if func:has_empty() then
    error(msched.where() .. "ms.auto_schedule: " .. msched.load "search.tune".empty_text(func), 0)
  end
  options = msched.options(options, OPTIONS)
  local work = prepare(func, options)
  local key = table.concat({work.target.text, text_of(work.heuristics),
                            patterns.structure(func, work.target, work.parts.context.auto_inline)}, "\n")
  local known = known_template(work, key)
  local template = known or new_template(work, key)
  local about = {target = work.target.text, patterns = patterns_of(work), known = known ~= nil}
  if options.trials then
    about.best = tune_template(work, options)
    return about.best:schedule(), about
  end
  local first = fill(work, template)
  if not first then
    error(string.format("%s`%s`: every candidate of its template was refused", msched.where(), func:name()), 0)
  end
  about.cycles = first.cost
  return msched.apply(func, first.trace), about
end

return auto
