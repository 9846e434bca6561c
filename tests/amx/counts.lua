-- What kernels of AMX's tiles do, a line each: of the candidates that the model ranks first, how many tiles are loaded
-- for each product, how many begin as zeros, how many are stored, and how often the unit is configured. It is
-- counted where AMX_COUNTS names a file, and the machine has no AMX.
-- usage: msched-amx counts.lua CORES CANDIDATES "OPERATOR ARGUMENTS"…
local ms = require "msched"
local judge = dofile(arg[0]:gsub("[^/]*$", "") .. "judge.lua")
local tune, analytical = ms.load "search.tune", ms.load "search.cost.analytical"
local cores, most = arg[1], tonumber(arg[2])
judge.needs_tiles()
assert(judge.counts, "AMX_COUNTS names no file")
local target = ms.target((judge.target.text:gsub("%-num%-cores=%d+", "-num-cores=" .. cores)))

-- Traces of the best candidates, replayed.
local function best_of(func)
  local sketches, jobs, list = {}, {}, {}
  for _, sketch in ipairs(tune.open(func, target, {}).sketches) do
    if tostring(sketch.trace):find("amx_1", 1, true) then sketches[#sketches + 1] = sketch.trace end
  end
  for i, best in ipairs(analytical.best(func, target, sketches, {budget = 4000, most = most})) do
    jobs[i] = {trace = best.trace, seed = 1, candidate = i}
  end
  local pool = ms.pool(func, {jobs = 1, target = target.text})
  for _, c in ipairs((pool:replay(jobs, false))) do if c then list[#list + 1] = c.trace end end
  pool:close()
  return list
end

for i = 3, #arg do
  local words = {}
  for word in arg[i]:gmatch "%S+" do words[#words + 1] = word end
  local func = ms.load "lua.lib.ops.named".func(words[1], {table.unpack(words, 2)})
  for _, trace in ipairs(best_of(func)) do
    local kernel, arrays = ms.build(ms.apply(func, trace):func(), {target = target.text}), ms.arrays_for(func, 1)
    local done, products = judge.count(function() kernel:run(table.unpack(arrays)) end), 0
    for name, n in pairs(done) do products = products + (name:find "^tdp" and n or 0) end
    local loads = done.tileloadd + done.tileloaddt1
    print(string.format("%s: %d products, %.3f loads each, %d zeros, %d stores, %d configurations", arg[i], products,
                        loads / products, done.tilezero, done.tilestored, done.ldtilecfg))
    io.stdout:flush()
  end
end
