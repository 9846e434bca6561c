-- AutoTVM's way: a template asks for knobs while it schedules, tuners propose configs of the space that the knobs span,
-- a log in lines of JSON holds what came of them, and the best of a log is applied by workload.
--
--   local autotvm = ms.load "lua.compat.autotvm"
--   autotvm.template("gemm", function(cfg, m, n, k)
--     local sch = ms.schedule(ops.func("matmul", {m, n, k}))
--     local i, j, k = sch:get_loops(sch:get_sblock "C")
--     cfg:define_split("tile_i", sch:extent(i), {policy = "power2", num_outputs = 2})
--     local i0, i1 = cfg.tile_i:apply(sch, i) …
--     return sch
--   end)
--   local task = autotvm.task("gemm", {256, 256, 256})
--   autotvm.tune(task, {tuner = "ga", trials = 64, log = "gemm.log"})
--   local sch = autotvm.apply_history_best("gemm.log"):schedule("gemm", {256, 256, 256})
--
-- Source: Chen et al., "Learning to optimize tensor programs", NeurIPS 2018; the interface of TVM's autotvm.
local ms = msched
local lines, spaces, measure = ms.load "lua.compat.lines", ms.load "lua.compat.space", ms.load "lua.compat.measure"
local nearest = ms.load "lua.lib.nearest"
local autotvm = {templates = {}}

-- ---- Templates and tasks -----------------------------------------------------------------------------------------

-- Registers a template: f(cfg, arguments…) gives a schedule, made as the config's entities say. A name's later template
-- takes the place of the earlier.
function autotvm.template(name, f)
  if type(name) ~= "string" or type(f) ~= "function" then
    error(ms.where() .. "autotvm.template takes a name and a function f(cfg, …)", 0)
  end
  autotvm.templates[name] = f
  return f
end

local Task = {}
Task.__index = Task

local function check_arguments(arguments)
  for i, x in ipairs(arguments) do
    if type(x) ~= "number" and type(x) ~= "string" and type(x) ~= "boolean" then
      error(string.format("%sargument %d of the task is a %s: numbers, strings and booleans name a workload",
                          ms.where(), i, type(x)), 0)
    end
  end
end

-- A template with its arguments: func, config_space (`#` is its size, tostring lists its knobs), and schedule(config).
-- options: target, native unless said.
function autotvm.task(name, arguments, options)
  local f = autotvm.templates[name]
  if not f then
    local meant = nearest.of(tostring(name), ms.sorted_keys(autotvm.templates))
    error(string.format("%sthere is no template `%s`%s: register it by autotvm.template", ms.where(), tostring(name),
                        meant and "; did you mean `" .. meant .. "`?" or ""), 0)
  end
  check_arguments(arguments)
  options = ms.options(options, "target:string")
  local task = setmetatable({name = name, args = arguments, template = f, target = options.target or "native"}, Task)
  local space = spaces.new()
  local cfg = space:begin()
  local sch = f(cfg, table.unpack(arguments))
  if ms.type(sch) ~= "schedule" then
    error(string.format("%stemplate `%s` gives a %s: it returns a schedule", ms.where(), name, type(sch)), 0)
  end
  task.config_space, task.func = space, sch:workload()
  task.hash = task.func:hash()
  return task
end

-- The schedule of a config, which may be refused; without one, of the first.
function Task:schedule(config)
  config = config or self.config_space:get(0)
  if config.space ~= self.config_space then
    error(ms.where() .. "the config is of another task: make it by task.config_space", 0)
  end
  config.asked = {}
  local sch = self.template(config, table.unpack(self.args))
  if sch:workload():hash() ~= self.hash then
    error(string.format("template `%s` gives another function with %s: what is computed may not depend on the config",
                        self.name, tostring(config)), 0)
  end
  return sch
end

-- What names it in a log: the template and its arguments.
function Task:workload_text() return lines.text {self.name, table.unpack(self.args)} end

-- ---- Logs --------------------------------------------------------------------------------------------------------

-- A line's {workload, target, config, seconds, status, error, at}; nil and why.
local function read_line(object, at)
  local input, config, result = object.input, object.config, object.result
  if type(input) ~= "table" or type(input.workload) ~= "table" or type(input.target) ~= "string" then
    return nil, at .. ": no input with workload and target"
  end
  if type(config) ~= "table" or type(config.entity) ~= "table" then return nil, at .. ": no config with entities" end
  if type(result) ~= "table" then return nil, at .. ": no result" end
  local why = result.seconds and ms.record_fault {seconds = result.seconds}
  if why then return nil, string.format("%s: no result: %s", at, why) end
  return {workload = lines.text(lines.list(input.workload)), target = input.target, config = config.entity,
          seconds = result.seconds, status = result.status, error = result.error, at = at}
end

-- What a log holds: a list of {workload, target, config, seconds, status, error, at}, at FILE:LINE; and messages of
-- what does not read.
function autotvm.read_log(path)
  local objects, wrong = lines.read(path)
  local list = {}
  for _, o in ipairs(objects) do
    local line, why = read_line(o.object, string.format("%s:%d", path, o.number))
    if line then list[#list + 1] = line else wrong[#wrong + 1] = why end
  end
  return list, wrong
end

-- ---- Tuning ------------------------------------------------------------------------------------------------------

local function log_line(task, target, r)
  local config = task.config_space:get(r.index)
  return {
    input = {workload = lines.list {task.name, table.unpack(task.args)}, target = target},
    config = {index = r.index, entity = lines.list(config:plain())},
    result = {seconds = r.seconds, status = r.status, error = not r.seconds and r.reason or nil},
    version = ms.versions(),
  }
end

-- The configs that a log has of a task on a target, as text.
local function logged(task, target, path)
  local seen, objects = {}, lines.read(path, true)
  for _, o in ipairs(objects) do
    local line = read_line(o.object, path)
    if line and line.target == target and line.workload == task:workload_text() then
      seen[lines.text(lines.list(line.config))] = true
    end
  end
  return seen
end

-- Tunes a task. options: tuner (grid, random, ga, model, annealing; model unless said), trials, early_stopping, seed,
-- batch, log (a file that lines are added to, of each config one), callback(results, best), and what ms.tune takes of
-- target, seconds, jobs, db, store, model. Results are kept in the store too: the same call goes on where one was
-- stopped, and measures nothing twice. Gives {index, config, seconds, id, schedule}.
function autotvm.tune(task, options)
  if getmetatable(task) ~= Task then error(ms.where() .. "autotvm.tune takes a task, as autotvm.task gives it", 0) end
  local given =
    ms.options(options, "tuner:string early_stopping:integer log:string callback:function " .. measure.OPTIONS)
  given.tuner, given.target = given.tuner or "model", given.target or task.target
  local target = ms.target(given.target).text
  local seen = given.log and logged(task, target, given.log)
  function given.each(results, best)
    for _, r in ipairs(seen and results or {}) do
      local line = log_line(task, target, r)
      local entity = lines.text(line.config.entity)
      if r.status ~= "unmeasured" and not seen[entity] then
        lines.append(given.log, line)
        seen[entity] = true
      end
    end
    if given.callback then given.callback(results, best) end
  end
  return measure.run(task.func, task.config_space, function(config) return task:schedule(config) end, given)
end

-- ---- The best of logs -----------------------------------------------------------------------------------------------

local History = {}
History.__index = History

-- The best of each workload and target of logs: the files' names. What does not read is left out, and listed in
-- `wrong`.
function autotvm.apply_history_best(...)
  local history = setmetatable({best = {}, wrong = {}}, History)
  for _, path in ipairs {...} do
    local list, wrong = autotvm.read_log(path)
    table.move(wrong, 1, #wrong, #history.wrong + 1, history.wrong)
    for _, line in ipairs(list) do
      local key = line.target .. " " .. line.workload
      local known = history.best[key]
      if line.seconds and (not known or line.seconds < known.seconds) then history.best[key] = line end
    end
  end
  return history
end

-- The best line of a task; nil: the logs have none.
function History:query(task) return self.best[ms.target(task.target).text .. " " .. task:workload_text()] end

-- The schedule of a template by the best of the logs, and the line; without one, the first config's, and nil. A config
-- that the template does not have any more is refused.
function History:schedule(name, arguments, options)
  local task = autotvm.task(name, arguments, options)
  local line = self:query(task)
  if not line then return task:schedule(), nil end
  local config, why = task.config_space:read(line.config)
  if not config then
    error(string.format("%s: its config is of another template than `%s` is now: %s", line.at, name, why), 0)
  end
  return task:schedule(config), line
end

return autotvm
