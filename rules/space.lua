-- The design space: every rule, in order, on every block of every schedule so far; consumers before producers.
local space = {}

local common, refusals = msched.load "rules.common", msched.load "rules.refusals"
local limited, type_of = msched.limited, msched.type

local MOST_SKETCHES = 256 -- that are kept after a rule
local MOST_OF_A_RULE = 4096 -- that one call may give back

-- Names of the blocks in post order: a block after those below it.
local function block_names(sch)
  local names = {}
  for _, name in ipairs(sch:block_names()) do if name ~= "root" then names[#names + 1] = name end end
  names[#names + 1] = "root"
  return names
end

local function check_schedules(rule, made)
  local function refuse(what) error(string.format("rule `%s` %s; a rule returns a list of schedules: {sch}", rule.name, what), 0) end
  if type(made) ~= "table" then refuse("returned " .. (made == nil and "nothing" or "a " .. type(made))) end
  if #made > MOST_OF_A_RULE then refuse(string.format("returned %d schedules, more than %d", #made, MOST_OF_A_RULE)) end
  for i = 1, #made do
    if type_of(made[i]) ~= "schedule" then refuse(string.format("returned a list whose item %d is a %s", i, type(made[i]))) end
  end
end

-- The schedules that a rule makes of one. Where an instruction in it is refused, the schedule as it was goes on.
local function apply_once(rule, sch, name, context, report)
  local before = sch.trace
  local function drop(code, message)
    refusals.add(report.refused, rule.name, code, message)
    return {msched.apply(sch:workload(), before, {seed = report.seed})}
  end
  local found, block = pcall(sch.get_sblock, sch, name)
  if not found then return drop(msched.code_of(block) or error(block, 0), block) end
  local ok, made, message = limited("rule", rule, sch, block, context, rule)
  if not ok then return drop(made, message) end
  check_schedules(rule, made)
  if #made == 0 then refusals.add(report.refused, rule.name, nil, "gave back no schedule for block " .. name) end
  return made
end

-- Applies a rule to one block in every schedule. Of more than MOST_SKETCHES some are kept, drawn by the seed, each with
-- the same chance. Source: Vitter, "Random sampling with a reservoir", ACM TOMS 1985.
local function apply_to_block(rule, name, schedules, context, report)
  local kept, count, stream = {}, 0, nil
  local function keep(sch)
    count = count + 1
    if count <= MOST_SKETCHES then
      kept[count] = {count, sch}
      return
    end
    if not stream then
      report.draws = report.draws + 1
      stream = msched.stream(report.seed, 0, report.draws)
    end
    local at = stream:below(count) + 1
    if at <= MOST_SKETCHES then kept[at] = {count, sch} end
  end
  for _, sch in ipairs(schedules) do
    if common.has_block(sch, name) then
      for _, made in ipairs(apply_once(rule, sch, name, context, report)) do keep(made) end
    else
      keep(sch)
    end
  end
  if stream then table.sort(kept, function(a, b) return a[1] < b[1] end) end
  report.thinned = report.thinned or stream ~= nil
  return kept
end

-- Applies rules, each to all blocks that `names` lists, last first, in all schedules that came of those before it.
local function apply_rules(rules, schedules, names, context, report)
  for _, rule in ipairs(rules) do
    for at = #names, 1, -1 do
      local kept = apply_to_block(rule, names[at], schedules, context, report)
      schedules = {}
      for i, k in ipairs(kept) do schedules[i] = k[2] end
    end
  end
  return schedules
end

local function new_report(seed) return {seed = seed or 1, draws = 0, refused = {}, thinned = false} end

-- Rules may keep a state of their own while a space is opened: it begins anew each time.
local function begin(rules, context)
  for _, rule in ipairs(rules) do
    if rule.begin then
      local ok, _, message = limited("rule", {name = rule.name, apply = rule.begin}, rule, context)
      if not ok then error(message, 0) end
    end
  end
end

-- The sketches that rules make of these schedules; and a report: what was refused, and whether there were more sketches
-- than are kept.
function space.extend(func, context, rules, schedules, seed)
  local report = new_report(seed)
  begin(rules, context)
  return apply_rules(rules, schedules, block_names(msched.schedule(func)), context, report), report
end

-- Sketches: schedules with the decisions they were made with; and a report.
function space.generate(func, parts, seed)
  return space.extend(func, parts.context, parts.rules, {msched.schedule(func, {seed = seed or 1})}, seed)
end

-- A shipped part by its name, with the parameters that the target has for it.
local function load_part(prefix, name, context)
  local part = msched.load("rules." .. prefix .. name)
  return setmetatable({parameters = context[name] or {}}, {__index = part})
end

-- The rules, postprocessors and mutators of a context (rules/targets.lua), made ready: lists of what users' own come
-- after. They are not among those that users registered.
function space.parts(context)
  local parts, users = {context = context, rules = {}, postprocs = {}, mutators = {}}, msched.registered
  msched.registered = {rule = {}, postproc = {}, mutator = {}}
  for i, name in ipairs(context.rules) do parts.rules[i] = load_part("", name, context) end
  for i, name in ipairs(context.postprocs) do parts.postprocs[i] = load_part("", name, context) end
  for i, entry in ipairs(context.mutators) do parts.mutators[i] = {load_part("mutate_", entry[1], context), entry[2]} end
  msched.registered = users
  return parts
end

-- Runs the postprocessors. false: the candidate is refused, by the one of that name; and the code and message where an
-- instruction in it was refused.
function space.postprocess(sch, parts)
  sch:enter_postproc()
  return space.check(sch, parts.postprocs, parts.context)
end

function space.check(sch, postprocs, context)
  for _, p in ipairs(postprocs) do
    local ok, verdict, message = limited("postprocessor", p, sch, context, p)
    if not ok then return false, p.name, verdict, message end
    if verdict == false then return false, p.name end
  end
  return true
end

-- A trace that the mutator makes of this one, or nil; and the code and message where an instruction in it was refused.
function space.mutate(mutator, trace, stream)
  local ok, made, message = limited("mutator", mutator, trace, stream)
  if not ok then return nil, made, message end
  if made ~= nil and type_of(made) ~= "trace" then
    error(string.format("mutator `%s` returned a %s; a mutator returns a trace, or nil", mutator.name, type(made)), 0)
  end
  return made
end

return space
