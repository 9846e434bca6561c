-- What tests of tuning share: a measurer whose times depend on the candidate alone, stores that are removed in the end,
-- and what compares lists.
local ms = require "msched"
local tune = ms.load "search.tune"

-- What the model can learn: kernels of longer vectors and fewer stores are faster; no two take the same time.
local function time_of(sch)
  local features, total = ms.features(sch), 0
  for row = 1, #features do total = total + features(row, "vectorized_product") end
  return 1e-3 / (1 + total) + tonumber(sch:hash():sub(1, 6), 16) * 1e-13
end

-- options: time, of a schedule and its task, in place of that above; most: it breaks after so many results; hopeless:
-- ends each early.
local function measurer(options)
  options = options or {}
  local m = {funcs = {}, asked = {}, made = {}, times = {}, queue = {}, given = 0}
  function m:add(func)
    local task = #self.funcs
    self.funcs[task + 1], self.asked[task + 1], self.made[task + 1], self.times[task + 1] = func, {}, {}, {}
    return task
  end
  function m:submit(task, id, trace)
    local sch = ms.apply(self.funcs[task + 1], trace)
    local seconds = (options.time or time_of)(sch, task + 1)
    table.insert(self.asked[task + 1], sch:hash())
    table.insert(self.made[task + 1], sch)
    table.insert(self.times[task + 1], seconds)
    table.insert(self.queue, {task = task, id = id, measured = not options.hopeless, censored = options.hopeless,
                              outcome = options.hopeless and "censored" or "measured", seconds = seconds, low = seconds,
                              high = seconds, runs = 3, reason = ""})
  end
  function m:next()
    if options.most and self.given >= options.most then error("the measurer is gone", 0) end
    self.given = self.given + 1
    return table.remove(self.queue, 1)
  end
  function m:reference() return true end
  function m:set_best() end
  function m:remeasure() end
  function m:remeasured() return false end
  function m:close_task() end
  function m:close() end
  return m
end

-- A new store for each, removed in the end.
local paths = {}
local function new_path()
  local name = os.tmpname()
  paths[#paths + 1] = name
  return name .. ".db"
end
local function remove_stores()
  collectgarbage()
  for _, name in ipairs(paths) do for _, suffix in ipairs {"", ".db", ".db-lock"} do os.remove(name .. suffix) end end
end

setmetatable(paths, {__gc = remove_stores}) -- where a test fails, too

-- The target, where this CPU runs code for it, else the other: what is tuned must run.
local function that_runs(target, other) return pcall(ms.target, target, {runs = true}) and target or other end

-- Tunes functions; gives the measurer and the tasks.
local function run(functions, options)
  local m = measurer(options.measuring)
  local all = {measurer = m, batch = 16, trials = 32, db = new_path()}
  for name, value in pairs(options) do if name ~= "measuring" then all[name] = value end end
  local tasks = tune.all(functions, all)
  return m, tasks
end

local function same(a, b, what)
  assert(#a == #b, string.format("%s: %d and %d candidates", what, #a, #b))
  for i = 1, #a do assert(a[i] == b[i], string.format("%s: candidate %d", what, i)) end
end
local function joined(a, b) return table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, {})) end
local function mean(list, first, last)
  local sum = 0
  for i = first, last do sum = sum + list[i] end
  return sum / (last - first + 1)
end

return {paths = paths, time_of = time_of, measurer = measurer, new_path = new_path, remove_stores = remove_stores,
        run = run, same = same, joined = joined, mean = mean, that_runs = that_runs}
