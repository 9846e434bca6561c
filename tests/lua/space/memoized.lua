-- Memoized postprocessing (lua/bind/state/memo.h): a pool's candidates are what the postprocessors make of them in Lua.
-- Most of the Lua does not run; a postprocessor that reads something else misses the cache, and a user's always runs.
local ms = require "msched"
local te = ms.te
local tune, space, targets = ms.load "search.tune", ms.load "rules.space", ms.load "rules.targets"
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")
local CPU, GPU = "llvm -mcpu=skylake-avx512 -num-cores=4", "cuda -arch=sm_80"
local DRAWS = 300

local function product(m, n, k, params)
  local A, B = te.placeholder({m, k}, "float32", "A"), te.placeholder({k, n}, "float32", "B")
  local r = te.reduce_axis(k, "k")
  local C = te.compute({m, n}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")
  return te.func("product", params == "BA" and {B, A, C} or {A, B, C})
end

local function relu(m, n, k)
  local A, B = te.placeholder({m, k}, "float32", "A"), te.placeholder({k, n}, "float32", "B")
  local r = te.reduce_axis(k, "k")
  local C = te.compute({m, n}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")
  return te.func("relu", {A, B, te.compute({m, n}, function(i, j) return te.max(C[{i, j}], 0) end, "D")})
end

local function softmax(m, n)
  local X = te.placeholder({m, n}, "float32", "X")
  return te.func("softmax", {X, ms.ops.softmax(X)})
end

-- What the Lua makes of the job: its hash and trace; nil: it is refused.
local function in_lua(func, job, parts)
  local ok, sch =
    pcall(ms.apply, func, job.trace, {seed = job.seed, candidate = job.candidate, resample = true, repair = true})
  return ok and space.postprocess(sch, parts) and sch:hash() .. "\n" .. tostring(sch.trace) or nil
end

-- Jobs of several functions, mixed, in one pool: the same as in Lua.
local function check_same(funcs, target)
  local parts, pool, jobs = space.parts(targets.context(ms.target(target))),
    ms.pool(funcs[1], {jobs = 1, target = target}), {}
  for f, func in ipairs(funcs) do
    if f > 1 then assert(pool:add(func) == f - 1) end
    for i, job in ipairs(jobs_of(tune.open(func, ms.target(target), {}), DRAWS)) do
      job.task = f - 1
      jobs[(i - 1) * #funcs + f] = job
    end
  end
  local accepted = 0
  for i, c in ipairs((pool:replay(jobs, false))) do
    local wanted = in_lua(funcs[jobs[i].task + 1], jobs[i], parts)
    if c then accepted = accepted + 1 end
    assert((c and c.hash .. "\n" .. tostring(c.trace) or nil) == wanted, wanted)
  end
  local costs = pool:costs()
  pool:close()
  assert(costs.jobs == #jobs and costs.accepted == accepted and accepted > 0)
  return costs.memoized / (accepted * #parts.postprocs)
end

-- Most are known after a few.
assert(check_same({product(64, 96, 128), relu(64, 96, 128)}, CPU) > 0.8)
assert(check_same({softmax(32, 64)}, CPU) > 0.8)
assert(check_same({product(64, 96, 128)}, GPU) > 0.9)

-- rewrite_layout reads parameters of the function, which no query answers: of two that answer alike, each gets its own.
local function free(func)
  local script, count = tostring(func):gsub('"tirx?.noalias": True', '%0, "layout_free_buffers": [1]')
  assert(count == 1, script)
  return ms.from_script(script, "free.py")
end
assert(check_same({free(product(64, 64, 64)), free(product(64, 64, 64, "BA"))}, CPU) < 0.9)

local small = product(64, 64, 64)
local path = os.tmpname()
local function with_rules(text, target, count)
  local file <close> = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  local pool = ms.pool(small, {jobs = 1, target = target, files = {path}})
  local made, list, script_error = pool:replay(jobs_of(tune.open(small, ms.target(target), {}), count), false)
  pool:close()
  assert(not script_error, script_error)
  return made, list
end

-- A user's may keep a state: this one refuses every second candidate, and reads what was drawn.
local made, list = with_rules([[
local calls = 0
ms = require "msched"
ms.postproc {name = "second", apply = function(sch)
  calls = calls + 1
  local names = sch:block_names()
  return calls % 2 == 1 and #names > 0
end}]], CPU, 64)
for i, c in ipairs(made) do assert((c ~= false) == (i % 2 == 1), i) end
assert(#list == 1 and list[1].by == "second" and list[1].count == 32 and list[1].code == nil)

-- A shipped one with parameters of a user's space, which refuses all: the first by its Lua, the others by cache hits.
made, list = with_rules("require 'msched'.space {postprocs = {'verify_gpu_code'}, verify_gpu_code = {local_bytes = \z
                         -1}}", GPU, 64)
for i, c in ipairs(made) do assert(c == false, i) end
assert(#list == 1 and list[1].by == "verify_gpu_code" and list[1].count == 64 and list[1].code == nil,
       list[1] and list[1].by)
os.remove(path)
