-- A dense layer with ReLU in Ansor's way: sketches with placeholders, a search, a log, the state of a line, a search
-- that goes on.
--   msched lua/examples/ansor.lua [M N K [TRIALS [LOG [STORE]]]]
local ms = require "msched"
local ansor = ms.load "lua.compat.ansor"
local te, ops = ms.te, ms.ops

local given = {...}
local M, N, K, trials = math.tointeger(given[1] or 256), math.tointeger(given[2] or 512),
  math.tointeger(given[3] or 512), math.tointeger(given[4] or 64)
local log, store = given[5] or os.tmpname(), given[6]

local X, W, bias = te.placeholder({M, K}, "float32", "X"), te.placeholder({N, K}, "float32", "W"),
  te.placeholder({N}, "float32", "bias")
local task = ansor.task(te.func("dense_relu", {X, W, bias, ops.relu(ops.dense(X, W, {bias = bias}))}))

local sketches = ansor.sketches(task)
print(#sketches .. " sketches; the second, with what is open by name:")
print(sketches[2])

local state = ansor.auto_schedule(task, {trials = trials, log = log, db = store})
print(string.format("\nbest: %.2f us, %.0f GFLOP/s", state.seconds * 1e6, task.func:flops() / state.seconds * 1e-9))
print(state)
print "\nits steps:"
for n, step in ipairs(state:history()) do print(n, step) end
print("differs from the unscheduled function by", state:build():check())

-- Later, or elsewhere: a line of the log as a state, the best of it.
print("line 1", ansor.replay(task, log, 1).status)
print(string.format("best of the log: %.2f us", ansor.load_best(task, log).seconds * 1e6))
return state
