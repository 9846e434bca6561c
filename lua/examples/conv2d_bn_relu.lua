-- A layer of ResNet-50: 56 x 56, 64 to 64 channels, 3 x 3, padding 1, with bias, batch normalization and ReLU.
--   msched tune lua/examples/conv2d_bn_relu.lua [-- SIZE CHANNELS]
local ms = require "msched"
local te, ops = ms.te, ms.ops

local size, channels = 56, 64
if select("#", ...) > 0 then
  local given = {...}
  size, channels = math.tointeger(given[1]), math.tointeger(given[2] or 64)
end

local X = te.placeholder({1, size, size, channels}, "float32", "X")
local W = te.placeholder({3, 3, channels, channels}, "float32", "W")
local bias = te.placeholder({channels}, "float32", "bias")
local scale, shift = te.placeholder({channels}, "float32", "scale"), te.placeholder({channels}, "float32", "shift")

local conv = ops.conv2d(X, W, {pad = 1})
local normal = ops.scale_shift(ops.bias_add(conv, bias), scale, shift, "batch_norm")
local Y = ops.relu(normal)

return {te.func("conv2d_bn_relu", {X, W, bias, scale, shift, Y})}
