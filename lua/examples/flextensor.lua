-- A convolution in FlexTensor's way: an operator registered with its arguments, searched, its configs kept in a file
-- and applied.
--   msched lua/examples/flextensor.lua [SIZE CHANNELS [TRIALS [CONFIGS [STORE]]]]
local ms = require "msched"
local flextensor = ms.load "lua.compat.flextensor"

local given = {...}
local size, channels, trials = math.tointeger(given[1] or 28), math.tointeger(given[2] or 64),
  math.tointeger(given[3] or 64)
local path, store = given[4] or os.tmpname(), given[5]

local key = flextensor.task.register {op = "conv2d", args = {1, size, size, channels, channels, 3}}
local sch, buffers, configs =
  flextensor.schedule(key, {slevel = 4, rlevel = 2, op_trial = trials, method = "searching", db = store})
for _, b in ipairs(buffers) do print(b.name, b.type, table.concat(b.shape, " x ")) end
print(string.format("best: %.2f us, %.0f GFLOP/s", configs.seconds * 1e6,
                    flextensor.task.func(key):flops() / configs.seconds * 1e-9))
print("differs from the unscheduled function by", sch:build():check())

-- Later, or elsewhere: the same schedule from the file.
flextensor.save(path, configs)
local again = flextensor.schedule_with_config(key, flextensor.load(path))
assert(again:hash() == sch:hash())
return configs
