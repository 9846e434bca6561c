-- Ansor's way: no template; a task is searched for the best state, whose steps and loops can be looked at, and a log of
-- JSON lines holds every measurement, from which a state can be made again and a search goes on.
--
--   local ansor = ms.load "lua.compat.ansor"
--   local task = ansor.task(func)
--   local state = ansor.auto_schedule(task, {trials = 64, log = "gemm.json"})
--   print(state)                                  -- its loops; `ansor.sketches(task)[1]`: with placeholders for what
--                                                 is open
--   for _, step in ipairs(state:history()) do print(step) end
--   print(state:script())                         -- Lua that makes it again
--   local best = ansor.load_best(task, "gemm.json")
--
-- Source: Zheng et al., "Ansor", OSDI 2020; the interface of TVM's auto_scheduler.
local ms = msched
local lines, tune, nest = ms.load "lua.compat.lines", ms.load "search.tune", ms.load "lua.lib.nest"
local ansor = {}

-- ---- States ------------------------------------------------------------------------------------------------------

local State = {}
State.__index = State

local DRAWS = 4 -- of what is open, by which is seen what depends on it

-- A state of a task by a trace, which may have draws that are open. fields: seconds, id, status, where it was measured.
local function new_state(task, trace, fields)
  local state = setmetatable(fields or {}, State)
  state.task, state.trace, state.sch = task, trace, ms.apply(task.func, trace, {seed = 1})
  return state
end

-- The steps that made it, a line each, as its script has them.
function State:history()
  local list = {}
  for line in self.trace:text():gmatch "[^\n]+" do
    if line:find "^  " then list[#list + 1] = line:sub(3) end
  end
  return list
end

-- A script that makes it again: a function of the module, a schedule and a table of handles.
function State:script() return self.trace:text() end

-- Names of the numbers that are drawn and not decided: placeholders.
function State:placeholders()
  local open, steps = {}, self:history()
  for _, d in ipairs(self.trace:draws()) do
    local results = not d.decision and steps[d.index + 1]:match "^(v%.[^=]-) = " or ""
    for name in results:gmatch "v%.(%w+)" do open[#open + 1] = name end
  end
  return open
end

-- The loops of a nest in order of text, {node, block = the first block that it is around, depth}, and its blocks.
local function list_nodes(node, list, path)
  for _, child in ipairs(node.children or {}) do
    if child.kind == "loop" or child.kind == "block" then
      list[#list + 1] = {node = child, path = path, depth = #path}
      for i, around in ipairs(child.kind == "block" and path or {}) do
        around.block, around.place, around.count = around.block or child.name, around.place or i, around.count or #path
      end
    end
    local inside = child.kind == "loop" and table.move(path, 1, #path, 1, {}) or path
    if child.kind == "loop" then inside[#inside + 1] = child end
    list_nodes(child, list, inside)
  end
  return list
end

-- What the extents of a state's loops are: a number, the name of the open number that it is, or None, where it follows
-- from open ones.
local function name_extents(state, list)
  local open = {}
  for _, name in ipairs(state:placeholders()) do open[name] = true end
  if not next(open) then return end
  local others = {}
  for i = 1, DRAWS do
    local sch = ms.apply(state.task.func, state.trace, {seed = 1 + i, resample = true})
    others[i] = list_nodes(nest.read(sch:script()), {}, {})
  end
  for i, item in ipairs(list) do
    local node, moved = item.node, false
    for _, other in ipairs(node.kind == "loop" and others or {}) do
      moved = moved or not other[i] or other[i].node.name ~= node.name or other[i].node.extent ~= node.extent
    end
    local loops = moved and node.block and {state.sch:get_loops(state.sch:get_sblock(node.block))} or {}
    local factor = #loops == node.count and state.sch:split_factor(loops[node.place]) or nil
    if moved then node.extent = ms.type(factor) == "handle" and open[factor:name()] and factor:name() or "None" end
  end
end

-- Its loops and blocks, one a line, outermost first: `for i_0 (0, 4)`; `for i_1 (0, v5)` where v5 is open.
function State:preview()
  local list, text = list_nodes(nest.read(self.sch:script()), {}, {}), {}
  name_extents(self, list)
  for _, item in ipairs(list) do
    local node = item.node
    if node.kind == "loop" then
      text[#text + 1] = string.format("%s%s %s (0, %s)", ("  "):rep(item.depth),
                                      node.how == "serial" and "for" or node.how, node.name, node.extent)
    elseif node.name ~= "root" then
      text[#text + 1] = string.format("%s%s", ("  "):rep(item.depth), node.name)
    end
  end
  return table.concat(text, "\n")
end
State.__tostring = State.preview

-- Its schedule, a copy; and its kernel. What is open has been drawn in them.
function State:schedule() return self.sch:copy() end
function State:build(options)
  return self.sch:build(ms.options(options or {target = self.task.target.text}, "target:string fast_math:boolean"))
end

-- ---- Tasks -------------------------------------------------------------------------------------------------------

local Task = {}
Task.__index = Task

-- A function to be searched for, and the target, native unless said.
function ansor.task(func, target)
  if ms.type(func) ~= "function" then
    error(ms.where() .. "ansor.task takes a function, as te.func makes it, and a target", 0)
  end
  return setmetatable({func = func, target = ms.target(target), hash = func:hash()}, Task)
end

local function check_task(task)
  if getmetatable(task) ~= Task then error(ms.where() .. "a task is what ansor.task gives", 0) end
end

-- The sketches of a task's space as states: all that is drawn is open.
function ansor.sketches(task, seed)
  check_task(task)
  local states = {}
  for i, sch in ipairs(tune.open(task.func, task.target, {seed = seed or 1}).sketches) do
    states[i] = new_state(task, sch.trace:simplified(false):undecided())
  end
  return states
end

-- ---- Logs --------------------------------------------------------------------------------------------------------

local function log_line(task, e, record)
  local trace = assert(lines.value(ms.read_trace(record.trace):json()))
  return {
    i = {task = task.func:name(), workload = task.hash, target = task.target.text, trace = trace},
    r = {status = e.status, seconds = e.seconds, low = e.low, high = e.high, runs = record.runs,
         error = e.status == "failed" and (e.reason ~= "" and e.reason or e.outcome) or nil},
    s = {hash = e.hash, seed = record.seed, candidate = e.candidate}, v = ms.versions(),
  }
end

-- A line's {trace, status, seconds, …}; nil and why: it is of another task, or none.
local function read_line(task, object)
  local i, r, s = object.i, object.r, object.s
  if type(i) ~= "table" or type(r) ~= "table" or type(s) ~= "table" or type(i.trace) ~= "table"
      or type(r.status) ~= "string" or type(s.hash) ~= "string" then
    return nil, "it is no line of such a log: i, r or s is missing"
  end
  if i.workload ~= task.hash then
    return nil,
      string.format("it is of `%s`, another function than `%s` or other extents", tostring(i.task), task.func:name())
  end
  local run = r.status == "measured" or r.status == "censored"
  local why =
    run and ms.record_fault {status = r.status, seconds = r.seconds, low = r.low, high = r.high, runs = r.runs}
  if why then return nil, why end
  local ok, trace = pcall(ms.read_trace, lines.text(i.trace))
  if not ok then return nil, "its trace does not read: " .. tostring(trace):match "[^\n]*" end
  return {trace = trace, target = i.target, status = r.status, seconds = r.seconds, low = r.low, high = r.high,
          runs = r.runs, error = r.error, hash = s.hash, seed = s.seed, candidate = s.candidate, versions = object.v}
end

-- The lines of a log that are of a task, {trace, status, seconds, error, number, …}, in order; and messages of those
-- that do not read, or are of another task: FILE:LINE: why.
function ansor.read_log(task, path)
  check_task(task)
  local objects, wrong = lines.read(path)
  local list = {}
  for _, o in ipairs(objects) do
    local line, why = read_line(task, o.object)
    if line then
      line.number = o.number
      list[#list + 1] = line
    else
      wrong[#wrong + 1] = string.format("%s:%d: %s", path, o.number, why)
    end
  end
  return list, wrong
end

-- The state of line `number` of a log, measured or failed.
function ansor.replay(task, path, number)
  check_task(task)
  for _, o in ipairs((lines.read(path))) do
    if o.number == number then
      local line, why = read_line(task, o.object)
      if not line then error(string.format("%s:%d: %s", path, number, why), 0) end
      return new_state(task, line.trace, {seconds = line.seconds, status = line.status, error = line.error})
    end
  end
  error(string.format("%s has no line %d that reads", path, number), 0)
end

-- The fastest state of a log for the task's target; nil: it has none.
function ansor.load_best(task, path)
  local best
  for _, line in ipairs((ansor.read_log(task, path))) do
    if line.status == "measured" and line.target == task.target.text and (not best or line.seconds < best.seconds) then
      best = line
    end
  end
  return best and new_state(task, best.trace, {seconds = best.seconds, status = best.status})
end

-- Puts what a log has of a task on its target, of this version, into a store, where it is not yet: gives how many
-- lines.
local function restore(task, path, store)
  local workload, count = store:put_workload(task.func), 0
  for _, line in ipairs((ansor.read_log(task, path))) do
    if line.target == task.target.text and line.versions == ms.versions()
        and not store:find_module(workload, line.target, line.hash) then
      store:put {workload = workload, target = line.target, trace = line.trace, hash = line.hash, status = line.status,
                 seconds = line.seconds or 0.0, low = line.low or 0.0, high = line.high, runs = line.runs or 0,
                 busy = false, reason = line.error or "", seed = line.seed, candidate = line.candidate}
      count = count + 1
    end
  end
  return count
end

-- ---- Searching ---------------------------------------------------------------------------------------------------

-- Searches a task. options: log (a file that lines are added to), resume (what the log has is not measured again, and
-- the search goes on from there), and what ms.tune takes of trials, seconds, seed, policy, model, jobs, db, store, …
-- Gives the best state, with seconds and id.
function ansor.auto_schedule(task, options)
  check_task(task)
  local given =
    ms.options(options, "log:string resume:boolean trials:integer seconds:number seed:integer batch:integer \z
                         policy:string model:any jobs:integer db:string " .. "store:msched.store measurer:table \z
               rule_timeout:number run_timeout:number reference_timeout:number failures:integer listen:function")
  if given.resume and not given.log then
    error(ms.where() .. "resume needs the log that the search goes on from: `log`", 0)
  end
  local store, own, listen = given.store or ms.store(given.db), not given.store, given.listen
  local all = setmetatable({store = store, target = task.target.text}, {__index = given})
  function all.listen(e)
    if e.event == "trial" and given.log then lines.append(given.log, log_line(task, e, store:find(e.id))) end
    if listen then listen(e) end
  end
  local ok, found = pcall(function()
    if given.resume then restore(task, given.log, store) end
    return (tune.run(task.func, all))
  end)
  if own then store:close() end
  if not ok then error(found, 0) end
  if found:stopped() then error("interrupted; the same call with resume goes on from there", 0) end
  if not found.fastest then error(tune.why(found), 0) end
  return new_state(task, found.fastest.trace,
                   {seconds = found.fastest.seconds, id = found.fastest.id, status = "measured"})
end

return ansor
