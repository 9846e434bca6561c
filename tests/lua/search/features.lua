-- Features of candidates: over random ones of all workloads, of a function of many buffers, and with loops of random
-- kinds, no column is always equal to another, but for those that are always 0. usage: features.lua ROOT
local ms = require "msched"
local te, tune = ms.te, ms.load "search.tune"
local root, DRAWS = arg[1], 4
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")

local function read(path)
  local file = io.open(path)
  local text = file and file:read "a"
  if file then file:close() end
  return text
end

local names = ms.feature_names()
local class, first, constant = {}, {}, {} -- of each column: whom it was equal to so far, its first value, whether all
                                          -- were that
for i = 1, #names do class[i], constant[i] = 1, true end

local function compare(features, row)
  local values, split, next_class = {}, {}, 0
  for i = 1, #names do
    local v = features(row, i)
    first[i] = first[i] or v
    constant[i] = constant[i] and v == first[i]
    local key = class[i] .. " " .. v
    if not split[key] then
      next_class = next_class + 1
      split[key] = next_class
    end
    values[i] = split[key]
  end
  class = values
end

local candidates = 0
local function take(features)
  candidates = candidates + 1
  for row = 1, #features do compare(features, row) end
end

-- Drawn from our space and postprocessed, as the search draws them.
local function draw(func)
  local opened = tune.open(func, ms.target "native", {})
  local pool = ms.pool(func, {jobs = 1, target = "native"})
  for _, c in ipairs(pool:replay(jobs_of(opened, DRAWS * #opened.sketches), true)) do if c then take(c.features) end end
  pool:close()
end

local function replayed(func, trace, candidate)
  local ok, sch = pcall(ms.apply, func, trace, {seed = 1, candidate = candidate, resample = true, repair = true})
  return ok and sch or nil
end

-- Replayed from MetaSchedule's sketches for GPUs, which bind threads.
local function replay(func, name)
  for text in io.lines(string.format("%s/lua/bench/data/cuda/%s.jsonl", root, name)) do
    for candidate = 1, DRAWS do
      local sch = replayed(func, ms.read_trace(text), candidate)
      if sch then take(ms.features(sch)) end
    end
  end
end

-- Some loops made vectorized, unrolled or parallel, by chance: our space does so to one loop of a nest at most.
local function mark(func, trace, candidate)
  local sch, stream = replayed(func, trace, candidate), ms.stream(1, candidate, 1)
  if not sch then return end
  for _, name in ipairs(sch:block_names()) do
    for _, loop in ipairs(name ~= "root" and {sch:get_loops(sch:get_sblock(name))} or {}) do
      local how = ({"vectorize", "unroll", "parallel"})[stream:below(6) + 1]
      if how then pcall(sch[how], sch, loop) end
    end
  end
  take(ms.features(sch))
end

-- Sums of seven inputs: over an axis, or element by element.
local function many_buffers(reduces)
  local inputs, k = {}, te.reduce_axis(24, "k")
  for i = 1, 7 do
    inputs[i] = te.placeholder(not reduces and {16, 20} or i % 3 == 2 and {16, 24} or {24, 20 * i},
                               i < 6 and "float32" or "float16", "X" .. i)
  end
  local out = te.compute({16, 20}, function(i, j)
    local sum
    for n, input in ipairs(inputs) do
      local x = te.cast(not reduces and input[{i, j}] or n % 3 == 2 and input[{i, k}] or input[{k, n * j}], "float32")
      sum = sum and sum + x or x
    end
    return reduces and te.sum(sum, k) or sum
  end, "out")
  inputs[#inputs + 1] = out
  return te.func("many", inputs)
end

local workloads = {"C1D", "C2D", "C3D", "CAP", "CBR", "DEP", "DIL", "ELT", "GMM", "GMM1024", "GMM2", "GMM_RELU",
                   "GMM_ROW", "GRP", "NRM", "POOL", "SFM", "T2D", "TBG"}
for _, name in ipairs(workloads) do
  local func = ms.from_script(read(root .. "/lua/bench/data/workloads/" .. name .. ".py"))
  draw(func)
  replay(func, name)
  local sketches = tune.open(func, ms.target "native", {}).sketches
  for candidate = 1, DRAWS do mark(func, sketches[candidate % #sketches + 1].trace, candidate) end
end
for _, reduces in ipairs {true, false} do
  local func = many_buffers(reduces)
  draw(func)
  local sketches = tune.open(func, ms.target "native", {}).sketches
  for candidate = 1, 20 * DRAWS do mark(func, sketches[candidate % #sketches + 1].trace, candidate) end
end
assert(candidates > 200, candidates)

local equal, same = {}, {}
for i = 1, #names do
  if not (constant[i] and first[i] == 0) then
    if equal[class[i]] then same[#same + 1] = names[equal[class[i]]] .. " = " .. names[i] end
    equal[class[i]] = equal[class[i]] or i
  end
end
assert(#same == 0, table.concat(same, ", "))
local zero = {}
for i = 1, #names do if constant[i] then zero[#zero + 1] = names[i] end end
print(candidates .. " candidates; always 0: " .. table.concat(zero, " "))
print "features: ok"
