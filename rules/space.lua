-- The design space: every rule, in order, on every block of every schedule so far; consumers before producers.
local space = {}

local common = msched.load "rules.common"
local limited, type_of = msched.limited, msched.type

local MOST_SKETCHES = 4096

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
  for i = 1, #made do
    if type_of(made[i]) ~= "schedule" then refuse(string.format("returned a list whose item %d is a %s", i, type(made[i]))) end
  end
end

-- Applies one rule to all blocks that `names` lists, last first, in every schedule that comes of it.
local function apply_rule(rule, sch, names, context)
  local results, stack = {}, {{sch, #names}}
  while #stack > 0 do
    local s, at = table.unpack(table.remove(stack))
    if at == 0 then
      results[#results + 1] = s
    elseif not common.has_block(s, names[at]) then
      stack[#stack + 1] = {s, at - 1}
    else
      local made = limited("rule", rule, s, s:get_sblock(names[at]), context)
      check_schedules(rule, made)
      for i = #made, 1, -1 do stack[#stack + 1] = {made[i], at - 1} end
      if #stack + #results > MOST_SKETCHES then
        error(string.format("rule `%s` opens more than %d sketches; give back fewer schedules", rule.name, MOST_SKETCHES), 0)
      end
    end
  end
  return results
end

-- Applies rules, each to all schedules that came of those before it. `names` are the blocks of the unscheduled function.
local function apply_rules(rules, schedules, names, context)
  for _, rule in ipairs(rules) do
    local next_schedules = {}
    for _, sch in ipairs(schedules) do
      for _, made in ipairs(apply_rule(rule, sch, names, context)) do next_schedules[#next_schedules + 1] = made end
    end
    if #next_schedules > MOST_SKETCHES then
      error(string.format("rule `%s` opens more than %d sketches; give back fewer schedules", rule.name, MOST_SKETCHES), 0)
    end
    schedules = next_schedules
  end
  return schedules
end

-- Sketches: schedules with the decisions they were made with.
function space.generate(func, context, rules, seed)
  local first = msched.schedule(func, {seed = seed or 1})
  return apply_rules(rules, {first}, block_names(first), context)
end

-- The sketches that more rules make of these.
function space.extend(func, context, rules, schedules)
  return apply_rules(rules, schedules, block_names(msched.schedule(func)), context)
end

-- Rules, postprocessors or mutators of a target by name; they are not among those that users registered.
function space.load(names)
  local list, registered = {}, msched.registered
  local users = {}
  for _, kind in ipairs {"rule", "postproc", "mutator"} do users[kind], registered[kind] = registered[kind], {} end
  for _, name in ipairs(names) do
    list[#list + 1] = type(name) == "table" and {msched.load("rules.mutate_" .. name[1]), name[2]} or msched.load("rules." .. name)
  end
  for _, kind in ipairs {"rule", "postproc", "mutator"} do registered[kind] = users[kind] end
  return list
end

-- Runs the postprocessors; false: the candidate is refused.
function space.postprocess(sch, postprocs)
  sch:enter_postproc()
  return space.check(sch, postprocs)
end

function space.check(sch, postprocs)
  for _, p in ipairs(postprocs) do if limited("postprocessor", p, sch) == false then return false, p.name end end
  return true
end

-- A trace that the mutator makes of this one, or nil.
function space.mutate(mutator, trace, stream)
  local made = limited("mutator", mutator, trace, stream)
  if made ~= nil and type_of(made) ~= "trace" then
    error(string.format("mutator `%s` returned a %s; a mutator returns a trace, or nil", mutator.name, type(made)), 0)
  end
  return made
end

return space
