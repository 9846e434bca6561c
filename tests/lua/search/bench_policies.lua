-- msched bench policies and bench quality: their figures follow from the seconds they name; a TVM that is faster than
-- anything is not reached; wrong options are refused before anything is tuned.
-- usage: msched bench_policies.lua DATA
local ms = require "msched"
local cli = ms.load "lua.cli.cli"
local data = arg[1]
ms.is_terminal = function() return false end -- as commands have it

-- What a benchmark prints: objects, or the lines of its text.
local function run(file, options, names)
  local lines, put, show = {}, cli.put_json, print
  cli.put_json, print = function(line) lines[#lines + 1] = line end, function(text) lines[#lines + 1] = text end
  options.data = data
  local ok, message = pcall(ms.load(file), options, names)
  cli.put_json, print = put, show
  if not ok then return nil, type(message) == "table" and message.message or tostring(message) end
  return lines
end
-- One thread does not wait for others on a machine that is busy.
local target = "native -num-cores=1"
local function is_about(x, y) return math.abs(x - y) < 1e-9 * y end

-- ---- policies ----------------------------------------------------------------------------------------------------

local lines = assert(run("lua.bench.policies", {json = true, target = target, trials = 8, seeds = 2,
                                                policy = {"random", "analytical"}}, {"GMM"}))
local row, total = lines[1], lines[2]
assert(#lines == 2 and row.workload == "GMM" and row.trials == 8 and #row.policies == 2)
for _, p in ipairs(row.policies) do
  assert(#p.seconds == 2 and p.seconds[1] > 0 and p.seconds[2] > 0)
  assert(is_about(p.mean, math.sqrt(p.seconds[1] * p.seconds[2])))
  assert(is_about(p.spread, math.max(p.seconds[1], p.seconds[2]) / math.min(p.seconds[1], p.seconds[2])))
end
assert(row.policies[1].policy == "random" and row.policies[1].ratio == 1)
assert(is_about(row.policies[2].ratio, row.policies[2].mean / row.policies[1].mean))
assert(total.rows == 1 and is_about(total.policies[2].ratio, row.policies[2].ratio)
       and total.policies[2].spread == row.policies[2].spread)

local text = table.concat(assert(run("lua.bench.policies", {target = target, trials = 8, seeds = 1,
                                                            policy = {"random", "grid"}}, {"GMM"})), "\n")
assert(text:find "GMM +grid .- times as long as random" and text:find "all of 1 +random +1%.00"
       and not text:find "spread", text)

for _, c in ipairs {{{trials = 0}, "--trials"}, {{seeds = 0}, "--seeds"}, {{policy = {"fly"}}, "fly"}} do
  local none, message = run("lua.bench.policies", c[1], {"GMM"})
  assert(not none and message:find(c[2], 1, true), message)
end

-- ---- transfer ----------------------------------------------------------------------------------------------------

-- A policy that learns nothing asks for the same with the others' records, and has the times that were recorded: it is
-- as fast with them, to the trial.
ms.policy {name = "drawing", needs = {transfer = true}, run = ms.load "search.policy".find("random").run}
local saved, best = assert(run("lua.bench.transfer",
                               {json = true, target = target, trials = 4, seeds = 2, policy = {"drawing"}}, {"GMM"})),
  nil
row, total, best = saved[1], saved[2], saved[1].best_seconds
assert(#saved == 2 and row.policy == "drawing" and row.trials == 4 and best > 0 and #row.without == 2
       and #row.with == 2)
for i = 1, 2 do assert(row.with[i] == row.without[i] and row.with[i] >= 1 and row.with[i] <= 4) end
assert(math.min(table.unpack(row.without)) <= 4 and total.runs == 2 and total.without == row.without[1] + row.without[2]
       and total.with == total.without)
assert(total.better == 0 and total.worse == 0 and is_about(total.mean_with, math.sqrt(row.with[1] * row.with[2])))
for _, c in ipairs {{{trials = 0}, "--trials"}, {{seeds = 0}, "--seeds"}, {{policy = {"fly"}}, "fly"},
                    {{policy = {"random"}}, "takes nothing"}} do
  local none, message = run("lua.bench.transfer", c[1], {"GMM"})
  assert(not none and message:find(c[2], 1, true), message)
end

-- Among records nothing is measured: two products whose times are alike, each with the other's records and without.
local kept = os.tmpname()
os.remove(kept)
local records = ms.store(kept)
for _, rows in ipairs {32, 64} do
  local func = assert(loadfile(arg[0]:match "^.*/" .. "../../../lua/examples/gemm.lua"))(rows, 32, 32)[1]
  local workload, sketch = records:put_workload(func), ms.schedule(func)
  for _, loop in ipairs {sketch:get_loops(sketch:get_sblock "C")} do
    sketch:split(loop, {sketch:sample_perfect_tile(loop, 3, 32)})
  end
  records:batch(function()
    for seed = 1, 120 do
      local sch = ms.apply(func, sketch.trace, {resample = true, seed = seed, candidate = seed})
      local features = ms.features(sch)
      local cost = 1 + features(#features, "buffer0_stride") + features(#features, "loops")
      records:put {workload = workload, target = ms.target(target).text, trace = sch.trace, hash = sch:hash(),
                   seconds = 1e-6 * cost, runs = 1}
    end
  end)
end
records:close()
local among = assert(run("lua.bench.transfer", {json = true, target = target, trials = 64, seeds = 2, recorded = true,
                                              db = kept}, {}))
assert(#among == 3 and among[3].runs == 4 and among[3].policy == "recorded")
for i = 1, 2 do
  for s = 1, 2 do assert(among[i].with[s] >= 1 and among[i].with[s] <= 64 and among[i].without[s] <= 64) end
end
assert(among[3].with <= among[3].without, among[3].with .. " " .. among[3].without)
for _, c in ipairs {{{recorded = true, db = kept}, {"GMM"}, "no policy"},
                    {{recorded = true, db = kept, target = "native -num-cores=3"}, {}, "two functions"}} do
  local none, message = run("lua.bench.transfer", c[1], c[2])
  assert(not none and message:find(c[3], 1, true), message)
end
os.remove(kept)
os.remove(kept .. "-lock")

-- ---- quality -----------------------------------------------------------------------------------------------------

-- Stands in for TVM's Python: notes its arguments and prints a fixed answer.
local path = os.tmpname()
local function tvm(seconds)
  local file <close> = assert(io.open(path, "w"))
  file:write("#!/bin/sh\n", string.format([[case "$1 $3 $5" in */tvm_quality.py\ GMM\ 3) echo "{\"seconds\": 90.0, \"best_seconds\": %s}";; esac]], seconds), "\n")
  file:close()
  assert(os.execute("chmod +x " .. path))
  return path
end
local slow = assert(run("lua.bench.quality", {json = true, target = target, trials = 3, tvm = tvm "1e+3"}, {"GMM"}))[1]
assert(slow.tvm_seconds == 1000 and slow.tvm_tuning_seconds == 90 and slow.reached_trials == 1)
assert(slow.reached_seconds > 0 and slow.reached_seconds <= slow.tuning_seconds and slow.best_seconds > 0)
local fast =
  assert(run("lua.bench.quality", {json = true, target = target, trials = 3, tvm = tvm "1e-12"}, {"GMM"}))[1]
assert(fast.reached_seconds == nil and fast.reached_trials == nil and fast.best_seconds > 0)
text = assert(run("lua.bench.quality", {target = target, trials = 3, tvm = tvm "1e-12"}, {"GMM"}))[1]
assert(text:find "^GMM +TVM " and text:find("not reached", 1, true), text)
os.remove(path)
local none, message = run("lua.bench.quality", {trials = 3}, {"GMM"})
assert(not none and message:find("--tvm PYTHON is needed", 1, true), message)
