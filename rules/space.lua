-- The design space: every rule, in order, on every block of every schedule so far; consumers before producers.
local space = {}

local common = msched.load "rules.common"

-- Names of the blocks in post order: a block after those below it.
local function block_names(sch)
  local names = {}
  for _, name in ipairs(sch:block_names()) do if name ~= "root" then names[#names + 1] = name end end
  names[#names + 1] = "root"
  return names
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
      local made = rule.apply(s, s:get_sblock(names[at]), context)
      if type(made) ~= "table" then error(string.format("rule %s returned no list of schedules", rule.name), 0) end
      for i = #made, 1, -1 do stack[#stack + 1] = {made[i], at - 1} end
    end
  end
  return results
end

-- Sketches: schedules with the decisions they were made with, their traces simplified.
function space.generate(func, context, rules, seed)
  local first = msched.schedule(func, {seed = seed or 1})
  local names, schedules = block_names(first), {first}
  for _, rule in ipairs(rules) do
    local next_schedules = {}
    for _, sch in ipairs(schedules) do
      for _, made in ipairs(apply_rule(rule, sch, names, context)) do next_schedules[#next_schedules + 1] = made end
    end
    schedules = next_schedules
  end
  return schedules
end

-- Rules, postprocessors or mutators of a target by name, then the user's own.
function space.load(names, own)
  local list = {}
  for _, name in ipairs(names) do
    list[#list + 1] = type(name) == "table" and {msched.load("rules.mutate_" .. name[1]), name[2]} or msched.load("rules." .. name)
  end
  for _, x in ipairs(own or {}) do list[#list + 1] = x end
  return list
end

-- Runs the postprocessors; false: the candidate is refused.
function space.postprocess(sch, postprocs)
  sch:enter_postproc()
  for _, p in ipairs(postprocs) do if p.apply(sch) == false then return false, p.name end end
  return true
end

return space
