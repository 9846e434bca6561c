-- Operators of short types, drawn by math.random: dofile gives a table.
local ms = require "msched"
local draws = {}

local TYPES = {"bfloat16", "int8", "uint8", "float16", "float32"}
local SIDES = {1, 2, 3, 5, 7, 8, 9, 10, 13, 14, 15, 16, 17, 20, 28, 30, 32, 40, 48, 50, 56, 64, 80}
local CHANNELS = {3, 8, 16, 24, 32, 48, 64, 70, 96, 128}

local function pick(list) return list[math.random(#list)] end
draws.pick = pick

-- An operator's arguments, drawn; those of one that has no such function are drawn again.
local OPERATORS = {
  function()
    local window = pick {1, 3, 3, 5}
    return "conv2d", {pick {1, 1, 2, 3, 8, 16}, pick(SIDES), pick(SIDES), pick(CHANNELS), pick(CHANNELS), window,
                      pick {1, 1, 2}, window // 2, pick {1, 1, 2}, pick {1, 1, 1, 2, 4},
                      layout = pick {"NHWC", "NHWC", "NCHW"}}
  end,
  function()
    local window = pick {1, 3}
    return "conv1d", {pick {1, 2, 16}, pick(SIDES), pick(CHANNELS), pick(CHANNELS), window, pick {1, 2}, window // 2}
  end,
  function()
    local window = pick {1, 3}
    return "conv3d", {pick {1, 2}, pick {1, 4, 8, 14, 16}, pick {7, 14, 16, 28}, pick {7, 14, 16, 20},
                      pick {16, 32, 64}, pick {16, 32, 64}, window, pick {1, 1, 2}, window // 2}
  end,
  function()
    return "conv2d_transpose", {pick {1, 2}, pick {4, 7, 8, 14, 16}, pick {4, 7, 8, 14, 16}, pick {16, 32, 64, 128},
                                pick {16, 32, 64}, pick {2, 3, 4}, pick {1, 2}, pick {0, 1}}
  end,
  function()
    return "conv2d_capsule", {1, pick {8, 14}, pick {8, 14, 16}, pick {16, 32}, pick {16, 32}, 3, pick {1, 2}, 1}
  end,
  function()
    return "batch_matmul", {pick {1, 2, 3, 12}, pick(SIDES), pick {16, 32, 64, 17, 70, 197}, pick {16, 32, 64, 17, 70},
                            transpose_a = pick {true, false}, transpose_b = pick {true, false}}
  end,
  function() return "dense", {pick(SIDES), pick {16, 64, 100, 256}, pick {16, 64, 100, 256}} end,
  function() return "depthwise_conv2d", {1, pick(SIDES), pick(SIDES), pick {16, 32, 48}, 3, 1, 1} end,
}

-- The same of bytes, with what is computed from the sums.
local QUANTIZED = {
  function()
    local window = pick {1, 3}
    return "quantized_conv2d", {pick {1, 2, 8}, pick(SIDES), pick(SIDES), pick {16, 32, 64}, pick {16, 32, 64}, window,
                                pick {1, 2}, window // 2, 1, pick {1, 1, 2}}
  end,
  function() return "quantized_dense", {pick(SIDES), pick {16, 64, 100, 256}, pick {16, 64, 100, 256}} end,
  function()
    return "quantized_batch_matmul", {pick {1, 3, 12}, pick(SIDES), pick {16, 64, 70}, pick {16, 64, 70},
                                      transpose_b = pick {true, false}}
  end,
}

-- One of them; by options: the types that are drawn from.
function draws.draw(options)
  local quantized = math.random(4) == 1
  local name, given = pick(quantized and QUANTIZED or OPERATORS)()
  if quantized then
    given.x_zero_point, given.w_zero_point = pick {0, 3}, pick {0, -2, "channels"}
  else
    given.dtype, given.constant = pick(options and options.types or TYPES), math.random(2) == 1
    if given.dtype:find "int8" and math.random(2) == 1 then given.weight_dtype = "int8" end
  end
  local made, func = pcall(ms.ops.func, name, given)
  if made then return func end
  return draws.draw(options)
end

return draws
