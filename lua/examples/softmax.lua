-- Softmax along rows: two reductions that share an input.
--   msched tune lua/examples/softmax.lua [-- ROWS COLUMNS]
local ms = require "msched"

local rows, columns = 256, 256
if select("#", ...) > 0 then
  local given = {...}
  rows, columns = math.tointeger(given[1]), math.tointeger(given[2] or 256)
end

local X = ms.te.placeholder({rows, columns}, "float32", "X")
return {ms.te.func(string.format("softmax_%dx%d", rows, columns), {X, ms.ops.softmax(X)})}
