-- Functions made by chance of small layers are cut into groups; of each group candidates are drawn, as the search draws
-- them, and the whole is composed of these: it computes, interpreted and for CPUs built, what the function computes.
-- usage: msched compose.lua SEEDS COMPOSITIONS TARGET…
local ms = require "msched"
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")
local tune, groups, compose = ms.load "search.tune", ms.load "search.groups.groups", ms.load "search.groups.compose"
local te, ops = ms.te, ms.ops

local seeds, compositions = math.tointeger(arg[1]), math.tointeger(arg[2])
local DRAWS, LAYERS = 12, 12

-- ---- Functions ---------------------------------------------------------------------------------------------------

-- A function of so many layers upon what is there: each takes one or two of the tensors so far, the latest most often.
local function network(seed)
  local stream, params, made = ms.stream(seed), {}, {}
  local function param(...)
    local p = te.placeholder({...}, "float32", "P" .. #params)
    params[#params + 1] = p
    return p
  end
  local function pick() return made[math.max(1, #made - stream:below(3))] end
  local function same(shape)
    local list = {}
    for _, t in ipairs(made) do if t.shape[1] == shape[1] and t.shape[2] == shape[2] then list[#list + 1] = t end end
    return list[stream:below(#list) + 1]
  end
  local layers = {
    function(x) return ops.dense(x, param(({8, 12, 6})[stream:below(3) + 1], x.shape[2])) end,
    function(x) return ops.dense(x, param(12, x.shape[2]), {bias = param(12)}) end,
    function(x) return ops.relu(x) end,
    function(x) return ops.add(x, same(x.shape)) end,
    function(x) return ops.multiply(ops.relu(x), same(x.shape)) end,
    function(x) return ops.layer_norm(x, param(x.shape[2]), param(x.shape[2])) end,
    function(x) return ops.softmax(x) end,
    function(x) return ops.transpose(x, {2, 1}) end,
    function(x) return ops.dense(ops.transpose(x, {2, 1}), param(10, x.shape[1])) end,
  }
  made[1] = param(10, 8)
  for i = 1, LAYERS do made[i + 1] = layers[stream:below(#layers) + 1](pick()) end
  local outputs, used = {made[#made]}, {[made[#made]] = true}
  if stream:below(3) == 0 and #made > 4 and not used[made[#made - 2]] then table.insert(outputs, 1, made[#made - 2]) end
  for _, t in ipairs(outputs) do params[#params + 1] = t end
  return te.func("network" .. seed, params)
end

-- ---- Candidates --------------------------------------------------------------------------------------------------

local function candidates_of(func, target)
  local opened = tune.open(func, target, {})
  local pool, list = ms.pool(func, {jobs = 1, target = target.text}), {}
  for _, c in ipairs((pool:replay(jobs_of(opened, DRAWS), false))) do if c then list[#list + 1] = c.trace end end
  pool:close()
  assert(#list > 0, func:name())
  return list
end

local function check(func, target, stream)
  local cut = assert(groups.cut(func))
  local count, lists = 0, {}
  for _, g in ipairs(cut) do lists[g] = candidates_of(g.func, target) end
  for _ = 1, compositions do
    local chosen = {}
    local sch, why = compose.schedule(func, cut, function(g)
      chosen[g] = chosen[g] or lists[g][stream:below(#lists[g]) + 1]
      return chosen[g]
    end)
    assert(sch, why)
    assert(ms.apply(func, sch.trace):hash() == sch:hash(), "the trace gives the schedule")
    local want, got = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
    ms.interpret(func, table.unpack(want))
    ms.interpret(sch:func(), table.unpack(got))
    for i = 1, #want do
      local difference = got[i]:difference(want[i], want[i])
      assert(difference <= 1e-3, string.format("%s: parameter %d differs by %g:\n%s\n%s", func:name(), i, difference,
                                               sch:script(), sch.trace:text()))
    end
    if target.kind == "llvm" then
      ms.build(sch:func(), {target = target.text, reference = func}):check {tolerance = math.huge}
    else ms.build(sch:func(), {target = target.text, reference = func}) end
    count = count + 1
  end
  return count, #cut
end

for at = 3, #arg do
  local target, done, cut = ms.target(arg[at]), 0, 0
  for seed = 1, seeds do
    local count, found = check(network(seed), target, ms.stream(seed, at))
    done, cut = done + count, cut + found
  end
  print(string.format("%s: %d compositions of %d groups", target.text, done, cut))
end
