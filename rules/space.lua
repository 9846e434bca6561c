-- The design space: every rule, in order, on every block of every schedule so far; consumers before producers. A block
-- annotated `schedule_rule` gets the rule of that name and no other; "None": no rule at all.
local space = {}

local common, factored, refusals = msched.load "rules.common", msched.load "rules.factored",
  msched.load "rules.refusals"
local targets = msched.load "rules.targets"
local limited, type_of = msched.limited, msched.type

local MOST_SKETCHES = 256 -- that are kept after a rule
local MOST_BY_BLOCK = 512 -- schedules, where only one block at a time has its choices
local MOST_OF_A_RULE = 4096 -- that one call may give back

-- Names of the blocks, the root's last: a function of loops and statements alone has none.
function space.block_names(sch)
  local names, root = {}, sch:root_block()
  for _, name in ipairs(sch:block_names()) do if name ~= root then names[#names + 1] = name end end
  names[#names + 1] = root
  return names
end

-- What is wrong with what a rule made of a schedule; nil: nothing.
local function find_wrong(rule, made, sch)
  local function wrong(...)
    return string.format("rule `%s` %s; a rule returns a list of schedules: {sch}", rule.name, string.format(...))
  end
  if type(made) ~= "table" then return wrong("returned %s", made == nil and "nothing" or "a " .. type(made)) end
  if getmetatable(made) ~= nil then return wrong("returned a table with a metatable") end
  local count, keys, at = #made, 0, {}
  if count > MOST_OF_A_RULE then return wrong("returned %d schedules, more than %d", count, MOST_OF_A_RULE) end
  for key in pairs(made) do
    if math.type(key) ~= "integer" or key < 1 or key > count then
      return wrong("returned a table with the key %s, which no list has", tostring(key))
    end
    keys = keys + 1
  end
  if keys ~= count then return wrong("returned a list with holes: %d of %d items", keys, count) end
  for i = 1, count do
    local item = made[i]
    if type_of(item) ~= "schedule" then return wrong("returned a list whose item %d is a %s", i, type(item)) end
    if not rawequal(item:workload(), sch:workload()) then
      return wrong("returned a list whose item %d is a schedule of another function", i)
    end
    if at[item] then
      return wrong("returned one schedule twice, as items %d and %d: sch:copy() makes another", at[item], i)
    end
    at[item] = i
  end
end

-- A part gave back what it must not: an error, or a reason to skip it, as one that it raises (limited.c).
local function fail_part(message)
  if not msched.skips_failing() then error(message, 0) end
  return "skipped", message
end

-- The schedules that a rule makes of one. Where an instruction in it is refused, the schedule as it was goes on.
-- rule_for(asked, name): the rule for a block of this name, which asks for one by annotation, or for none (nil); nil:
-- none is applied to it.
local function apply_rule_at(rule_for, sch, point, name, context, report)
  local found, block = pcall(sch.get_sblock, sch, name)
  local length = sch:trace_length()
  local rule = rule_for(found and sch:annotation(block, "schedule_rule") or nil, name)
  if not rule then return {sch} end
  local function drop(code, message)
    refusals.add(report.refused, rule.name, code, message)
    return {msched.apply(sch:workload(), sch:trace_at_point(point), {seed = report.seed})}
  end
  if not found then return drop(msched.code_of(block) or error(block, 0), block) end
  local ok, made, message = limited("rule", rule, sch, block, context, rule)
  if not ok then return drop(made, message) end
  local wrong = find_wrong(rule, made, sch)
  if wrong then return drop(fail_part(wrong)) end
  if #made == 0 then refusals.add(report.refused, rule.name, nil, "gave back no schedule for block " .. name) end
  if report.watched[rule] and not report.changed[rule.name] then
    local function count(trace) return #trace:simplified(false) end
    report.changed[rule.name] = #made > 1
      or made[1] and made[1]:trace_length() ~= length and count(made[1].trace) ~= count(sch:trace_at_point(point))
      or nil
  end
  return made
end

-- A rule that changed nothing leaves nothing in the trace: what it looked up is dropped.
local function apply_once(rule_for, sch, name, context, report)
  local point = sch:keep_point()
  local made = apply_rule_at(rule_for, sch, point, name, context, report)
  sch:forget_point(point)
  return made
end

-- The states that go on where a rule made these schedules of one state. By block: only one block of a state, or one
-- group of blocks, has its choices, that of the first site where it took another than the first; all other blocks have
-- their first. What is left out so is noted.
local function branches(state, made, name, report)
  local groups, list = report.groups, {}
  local group = groups and (groups[name] or name)
  for i, sch in ipairs(made) do
    local own = state.own
    if i > 1 then own = own or group end
    if i == 1 or own == group then
      list[#list + 1] = {sch = sch, own = own,
                         marks = i == 1 and state.marks or table.move(state.marks, 1, #state.marks, 1, {})}
    else
      report.left_out = true
    end
  end
  return list
end

-- Keeps states, in order. Of more than MOST_SKETCHES some, drawn by the seed, each with the same chance; by block, the
-- first MOST_BY_BLOCK: they are no space then. Source: Vitter, "Random sampling with a reservoir", ACM TOMS 1985.
local function keeper(report)
  local kept, count, stream = {}, 0, nil
  local most = report.groups and MOST_BY_BLOCK or MOST_SKETCHES
  local function keep(state)
    count = count + 1
    if count <= most then
      kept[count] = {count, state}
      return
    end
    report.thinned = true
    if report.groups then return end
    if not stream then
      report.draws = report.draws + 1
      stream = msched.stream(report.seed, 0, report.draws)
    end
    local at = stream:below(count) + 1
    if at <= most then kept[at] = {count, state} end
  end
  local function all()
    if stream then table.sort(kept, function(a, b) return a[1] < b[1] end) end
    local states = {}
    for i, k in ipairs(kept) do states[i] = k[2] end
    return states
  end
  return keep, all
end

-- Notes where a site ends in the trace of each state.
local function note_site(name, states, report)
  report.sites[#report.sites + 1] = name
  for _, s in ipairs(states) do s.marks[#report.sites] = s.sch:trace_length() end
  return states
end

-- Applies a rule to one block in every state: a site.
local function apply_to_block(rule_for, name, states, context, report)
  local keep, all = keeper(report)
  for _, state in ipairs(states) do
    if state.sch:has_block(name) then
      local made = apply_once(rule_for, state.sch, name, context, report)
      for _, s in ipairs(branches(state, made, name, report)) do keep(s) end
    else
      keep(state)
    end
  end
  return note_site(name, all(), report)
end

-- Applies a rule to all blocks that `names` lists, last first, in all states. is_asked(name): whether the rule may
-- change anything at the block; where it may not, the site is there, and the rule is not called.
local function apply_rule(rule_for, states, names, context, report, is_asked)
  for at = #names, 1, -1 do
    local asked = is_asked(names[at])
    states = asked and apply_to_block(rule_for, names[at], states, context, report)
      or note_site(names[at], states, report)
  end
  return states
end

local function always() return true end

-- Whether a rule says by `wanted` that it is for this function; not where `wanted` is refused. It is asked once.
local function is_wanted(rule, sch, context, report)
  if not rule.wanted then return true end
  if report.wanted[rule] == nil then
    local ok, wanted, message = limited("rule", {name = rule.name, apply = rule.wanted}, rule, context, sch:copy())
    if not ok then refusals.add(report.refused, rule.name, wanted, message) end
    report.wanted[rule] = ok and wanted and true or false
  end
  return report.wanted[rule]
end

-- Where a rule may change anything: everywhere, or as its `at` says at the root or at all other blocks; nowhere in a
-- function that it is not for.
local function asked_of(rule, sch, root, context, report)
  if not is_wanted(rule, sch, context, report) then return function() return false end end
  if not rule.at then return always end
  return function(name) return (name == root) == (rule.at == "root") end
end

-- First the rules that blocks ask for, then each in turn, in all states that came of those before it. sch: the function
-- as it was before any.
local function apply_rules(rules, states, sch, context, report)
  local names = space.block_names(sch)
  local by_name = {}
  for _, rule in ipairs(rules) do by_name[rule.name] = rule end
  local function custom(asked, name)
    if not asked or asked == "None" then return nil end
    local rule = by_name[asked]
    local why = not rule and report.all_rules and "there is none of the name"
      or rule and not is_wanted(rule, sch, context, report) and "its `wanted` is false here"
      or rule and not asked_of(rule, sch, names[#names], context, report)(name)
      and string.format("its `at` is %q, where block %s is not", rule.at, name)
    if not why then return rule end
    refusals.add(report.refused, asked, nil, "a block asks for this rule by its annotation schedule_rule, and " .. why)
  end
  local asks = states[1] and #states[1].sch:blocks_with("schedule_rule") > 0
  if asks then states = apply_rule(custom, states, names, context, report, always) end
  for _, rule in ipairs(rules) do
    if not rule.only_annotated then
      states = apply_rule(function(asked) return not asked and rule or nil end, states, names, context, report,
                          asked_of(rule, sch, names[#names], context, report))
    end
  end
  return states
end

-- What a walk over the rules reports besides its states: what was refused; whether there were more than are kept;
-- whether choices of a block in states where another has its own were left out; the block of each site; the names of
-- the user's rules that changed or added a schedule; what rules said by `wanted`. groups: the name of the group of each
-- block that is in one, where the walk is that of rules/factored.lua.
local function new_report(seed, groups, sites)
  return {seed = seed or 1, groups = groups, draws = 0, refused = {}, thinned = false, left_out = false,
          sites = sites or {}, watched = {}, changed = {}, wanted = {}}
end

-- Of these rules it is said whether they changed anything.
local function watch(report, rules)
  for _, rule in ipairs(rules) do report.watched[rule] = true end
  return report
end

-- Rules may keep a state of their own while a space is opened: it is reset each time.
local function begin(rules, context)
  for _, rule in ipairs(rules) do
    if rule.begin then
      local ok, _, message = limited("rule", {name = rule.name, apply = rule.begin}, rule, context)
      if not ok then error(message, 0) end
    end
  end
end

local function make(func, context, rules, states, report)
  begin(rules, context)
  return apply_rules(rules, states, msched.schedule(func), context, report), report
end

-- The states that more rules make of these, {sch, own, marks}, whose sites are these; and a report.
function space.extend(func, context, rules, states, seed, groups, sites)
  return make(func, context, rules, states, watch(new_report(seed, groups, table.move(sites, 1, #sites, 1, {})), rules))
end

-- The first states: what was scheduled before any rule is a site of no block.
local function begin_states(schedules, report)
  local states = {}
  report.sites[1] = ""
  for i, sch in ipairs(schedules) do states[i] = {sch = sch, marks = {sch:trace_length()}} end
  return states
end

-- Where shipped parts are, and how the names of their files begin.
local FOLDERS = {rule = "rules.rule.", postprocessor = "rules.postproc.", mutator = "rules.mutator.mutate_"}

-- A part by its shipped name, with the parameters that the context has for it; or one that a user made.
local function load_part(kind, part, context)
  if type(part) == "table" then return part end
  if type(part) == "function" then return {name = "a function of ms.space", apply = part} end
  local found, shipped = pcall(msched.load, FOLDERS[kind] .. part)
  if not found then error(string.format("there is no %s `%s`: %s", kind, part, shipped), 0) end
  return setmetatable({parameters = context[part] or {}}, {__index = shipped})
end

-- A shipped rule by name, with the parameters that a context has for it; and the schedules that it makes of one at a
-- block, the schedule as it was where an instruction in it is refused.
function space.rule(name, context)
  local users = msched.registered
  msched.registered = {rule = {}, postproc = {}, mutator = {}}
  local ok, rule = pcall(load_part, "rule", name, context)
  msched.registered = users
  return ok and rule or error(rule, 0)
end
function space.apply(rule, sch, name, context)
  return (apply_once(function() return rule end, sch, name, context, new_report()))
end

-- The rules, postprocessors and mutators of a context (rules/targets.lua), made ready; users' own come after them, in
-- `users` those rules alone, in `spaces` what is in the place of the target's. None is among what users registered.
function space.parts(context)
  local parts, users = {context = context, rules = {}, postprocs = {}, mutators = {}, spaces = {}, users = {}},
    msched.registered
  msched.registered = {rule = {}, postproc = {}, mutator = {}}
  for i, part in ipairs(context.rules) do parts.rules[i] = load_part("rule", part, context) end
  for i, part in ipairs(context.postprocs) do parts.postprocs[i] = load_part("postprocessor", part, context) end
  for i, entry in ipairs(context.mutators) do
    parts.mutators[i] = {load_part("mutator", entry[1], context), entry[2]}
  end
  msched.registered = users
  return parts
end

-- What a scheduling function makes: it changes the schedule that it is given, or gives back others.
local function schedules_of(described, func, context, report)
  local sch = msched.schedule(func, {seed = report.seed})
  local ok, made, message = limited("space", described, sch, context)
  if not ok then
    refusals.add(report.refused, described.name, made, message)
    return {}
  end
  if made == nil then return {sch} end
  if type_of(made) == "schedule" then return {made} end
  local wrong = find_wrong(described, made, sch)
  if wrong then error(wrong, 0) end
  return made
end

local KINDS = {"rules", "postprocs", "mutators"}

-- A context whose lists have nothing that it notes as left out.
local function without(context)
  local changes = {}
  for _, kind in ipairs(KINDS) do
    changes[kind] = {}
    for _, part in ipairs(context[kind]) do
      local name = kind == "mutators" and part[1] or part
      if not context.left_out[name] then table.insert(changes[kind], part) end
    end
  end
  return targets.changed(context, changes)
end

-- The target's context, with what a user described in place of its own.
local function described_context(context, described)
  local own = targets.context(context.target, targets.changed(context, described))
  return own.left_out and without(own) or own
end

-- The schedules that a space begins with which a user described, in place of the target's; and rules and context to go
-- on with: the target's where they are not described otherwise.
local function described_start(described, func, parts, report)
  if described.apply then return schedules_of(described, func, parts.context, report), {}, parts.context end
  local own = space.parts(described_context(parts.context, described))
  return {msched.schedule(func, {seed = report.seed})}, own.rules, own.context
end

-- The states that one walk over the rules makes, {sch, own, marks}; and a report. Where spaces were described, they are
-- united and stand in place of the target's; the user's rules go over all of them.
function space.walk(func, parts, seed, groups)
  local report = watch(new_report(seed, groups), parts.users)
  report.all_rules = true
  if #parts.spaces == 0 then
    return make(func, parts.context, parts.rules, begin_states({msched.schedule(func, {seed = report.seed})}, report),
                report)
  end
  local all = {}
  for _, described in ipairs(parts.spaces) do
    report.sites = {}
    local schedules, rules, context = described_start(described, func, parts, report)
    local made = make(func, context, rules, begin_states(schedules, report), report)
    table.move(made, 1, #made, #all + 1, all)
  end
  return make(func, parts.context, parts.users, all, report)
end

-- All choices of all states are there: one block, or group, has any, whatever it takes.
local function has_one_own(states, report)
  if report.left_out then return false end
  for _, s in ipairs(states) do if s.own and s.own ~= states[#states].own then return false end end
  return true
end

-- Opens a space: walk(groups) gives states and a report, as space.walk does. It is walked block by block, which takes
-- as many states as the blocks have choices, and again where blocks turn out to share what is drawn; where their
-- product is small, or cannot be known, once more with all of it. Gives states, report, and the space factored by block
-- (factored.lua) where it is not small: its states are then every choice once.
function space.open(walk)
  local groups, product = {}, nil
  repeat
    local states, report = walk(groups)
    if not report.thinned and has_one_own(states, report) then return states, report end
    if report.thinned then break end
    product, groups = factored.new(space.traces(states), report.sites, groups)
    if product and product:size() > MOST_SKETCHES then return states, report, product end
  until not groups
  return walk(nil)
end

-- The names of those rules that changed nothing anywhere, but for those that say so themselves.
function space.idle(rules, report)
  local names = {}
  for _, rule in ipairs(rules) do
    if not report.changed[rule.name] and report.wanted[rule] ~= false then names[#names + 1] = rule.name end
  end
  return names
end

-- States as they pass from one state of Lua to another.
function space.traces(states)
  local list = {}
  for i, s in ipairs(states) do list[i] = {trace = s.sch.trace, own = s.own, marks = s.marks} end
  return list
end

-- Sketches: schedules with the decisions they were made with; a report; and the space factored by block, where it is so
-- large that the sketches are not all.
function space.generate(func, parts, seed)
  local states, report, product = space.open(function(groups) return space.walk(func, parts, seed, groups) end)
  local schedules = {}
  for i, s in ipairs(states) do schedules[i] = s.sch end
  return schedules, report, product
end

-- Leaves one of the target's rules, postprocessors or mutators out, by its name; spaces that are described in place of
-- the target's have it neither.
function space.leave_out(parts, name)
  local own, names, found = targets.context(parts.context.target), {}, false
  for _, kind in ipairs(KINDS) do
    for _, part in ipairs(own[kind]) do names[#names + 1] = type(part) == "table" and part[1] or part end
  end
  for _, known in ipairs(names) do found = found or known == name end
  if not found then
    error(string.format("there is no rule, postprocessor or mutator `%s` to leave out; the target has %s", name,
                        table.concat(names, ", ")), 0)
  end
  parts.context = without(targets.changed(parts.context,
                                          {left_out = targets.changed(parts.context.left_out or {}, {[name] = true})}))
  for _, kind in ipairs(KINDS) do
    local kept = {}
    for _, entry in ipairs(parts[kind]) do
      local part = kind == "mutators" and entry[1] or entry
      if rawget(part, "name") or part.name ~= name then kept[#kept + 1] = entry end -- a user's may have its name
    end
    parts[kind] = kept
  end
end

-- Adds what a user registered: spaces in place of the target's, with their postprocessors and mutators if they name
-- any; rules, postprocessors and mutators after those there.
function space.add(parts, registered)
  for _, described in ipairs(registered.space) do
    table.insert(parts.spaces, described)
    local own = not described.apply and space.parts(described_context(parts.context, described))
    if own and described.postprocs then parts.postprocs = own.postprocs end
    if own and described.mutators then parts.mutators = own.mutators end
  end
  for _, r in ipairs(registered.rule) do
    table.insert(parts.rules, r)
    table.insert(parts.users, r)
  end
  for _, p in ipairs(registered.postproc) do table.insert(parts.postprocs, p) end
  for _, m in ipairs(registered.mutator) do table.insert(parts.mutators, {m, m.weight}) end
end

-- Runs the postprocessors. false: the candidate is refused, by the one of that name; and the code and message where an
-- instruction in it was refused.
function space.postprocess(sch, parts)
  sch:enter_postproc()
  return space.check(sch, parts.postprocs, parts.context)
end

function space.check(sch, postprocs, context)
  for _, p in ipairs(postprocs) do
    local ok, name, code, message = space.check_by(p, sch, context)
    if not ok then return false, name, code, message end
  end
  return true
end

-- The same by one of them.
function space.check_by(postproc, sch, context)
  local ok, verdict, message = limited("postprocessor", postproc, sch, context, postproc)
  if not ok then return false, postproc.name, verdict, message end
  if verdict == false then return false, postproc.name end
  return true
end

-- A trace that the mutator makes of this one, and of another of the population where it takes one, or nil; and the code
-- and message where an instruction in it was refused.
function space.mutate(mutator, trace, stream, other)
  local ok, made, message = limited("mutator", mutator, trace, stream, other)
  if not ok then return nil, made, message end
  if made ~= nil and type_of(made) ~= "trace" then
    return nil,
      fail_part(string.format("mutator `%s` returned a %s; a mutator returns a trace, or nil", mutator.name,
                              type(made)))
  end
  return made
end

return space
