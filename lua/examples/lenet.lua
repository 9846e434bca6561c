-- A network in the manner of LeNet-5 (LeCun et al., 1998, section II.B): two convolutions with ReLU, each with a pool
-- after it, a dense layer, and a softmax over ten classes.
--   msched run lua/examples/lenet.lua [-- BATCH]
local ms = require "msched"
local te, ops = ms.te, ms.ops

local batch = math.tointeger(... or 1)

local function input(name, ...) return te.placeholder({...}, "float32", name) end
local X = input("X", batch, 28, 28, 1)
local W1, b1 = input("W1", 5, 5, 1, 6), input("b1", 6)
local W2, b2 = input("W2", 5, 5, 6, 16), input("b2", 16)
local W3, b3 = input("W3", 10, 400), input("b3", 10)

local function layer(image, W, bias, pad)
  return ops.max_pool(ops.relu(ops.bias_add(ops.conv2d(image, W, {pad = pad}), bias)))
end
local image = layer(layer(X, W1, b1, 2), W2, b2, 0)
local Y = ops.softmax(ops.dense(ops.reshape(image, {batch, -1}), W3, {bias = b3}))

return {te.func("lenet", {X, W1, b1, W2, b2, W3, b3, Y})}
