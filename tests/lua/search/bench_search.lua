-- msched bench search: its figures for a small workload add up, also beside TVM's, and as text.
-- usage: bench_search.lua DATA
local ms = require "msched"
local cli = ms.load "lua.cli.cli"
local data = arg[1]
ms.is_terminal = function() return false end -- as commands have it

local function objects(options)
  local lines, put = {}, cli.put_json
  cli.put_json = function(line) lines[#lines + 1] = line end
  options.json, options.data = true, data
  local ok, message = pcall(ms.load "lua.bench.search", options, {"GMM"})
  cli.put_json = put
  if not ok then return nil, message end -- a table, as commands raise them
  return lines[1]
end

-- ---- Figures -----------------------------------------------------------------------------------------------------

local line = assert(objects {count = 48, trials = 2, seed = 3})
assert(line.bench == "search" and line.workload == "GMM" and line.seed == 3 and line.tvm == nil)
for _, kind in ipairs {"drawn", "mutated"} do
  local cost = line[kind]
  assert(math.abs(cost.candidate - (cost.replay + cost.postprocess + cost.hash + cost.features)) < 1e-6, kind)
  for _, stage in ipairs {"replay", "postprocess", "hash", "features", "trace", "propose"} do
    assert(cost[stage] > 0, stage)
  end
  assert(math.type(cost.refused) == "integer" and cost.refused >= 0 and cost.refused < 48)
end
assert(line.lessons == 48 - line.drawn.refused and line.update_seconds > 0)
assert(line.built == 2 and line.passes.generate > 0 and line.passes.vectorize >= 0)
assert(line.first_trial_seconds > 0 and line.build_seconds > 0 and line.running_share > 0 and line.running_share <= 1)

local short = assert(objects {count = 8, trials = 0})
assert(short.drawn and not short.built and not short.passes and not short.first_trial_seconds, "no run was asked for")

-- ---- TVM ---------------------------------------------------------------------------------------------------------

-- Stands in for TVM's Python: notes its arguments and prints a fixed answer.
local path = os.tmpname()
local function tvm_that_prints(text)
  local file <close> = assert(io.open(path, "w"))
  file:write("#!/bin/sh\n", text, "\n")
  file:close()
  assert(os.execute("chmod +x " .. path))
  return path
end
local ANSWERS = [[case "$1 $3" in */tvm_search.py\ GMM) echo noise; echo "{\"drawn\": 1500.5, \"mutated\": 2.5e+3, \"count\": $5}";; esac]]
local answering = tvm_that_prints(ANSWERS)
local beside = assert(objects {count = 32, trials = 0, tvm = answering})
assert(beside.tvm.drawn == 1500.5 and beside.tvm.mutated == 2500 and beside.tvm.count == 2)

-- Of a GPU it is asked for the same architecture; where it accepts no candidate, nothing is said of it.
local of_device = tvm_that_prints [[case "$4" in sm_80) echo "{\"mutated\": 2500.5}";; esac]]
local device = assert(objects {count = 32, trials = 0, tvm = of_device, target = "cuda -arch=sm_80"})
assert(device.drawn.candidate > 0 and device.tvm.drawn == nil and device.tvm.mutated == 2500.5)
tvm_that_prints(ANSWERS)

local printed, show = {}, print
print = function(text) printed[#printed + 1] = text end
local code = ms.load "lua.bench.search"({count = 32, trials = 1, tvm = answering, data = data}, {"GMM"})
print = show
local text = table.concat(printed, "\n")
assert(code == cli.DONE)
for _, words in ipairs {"GMM       drawn ", "1500 us by TVM", "2500 us by TVM", "model    update", "a build of 1; ",
                        "first trial after"} do
  assert(text:find(words, 1, true), words .. " is not in:\n" .. text)
end

local none, message = objects {count = 8, trials = 0, tvm = tvm_that_prints "exit 3"}
assert(none == nil and message.message:find "TVM does not answer")
os.remove(path)
print "bench_search: ok"
