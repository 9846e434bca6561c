-- The network of examples/lenet.lua against loops of plain Lua, interpreted and compiled.
-- usage: msched lenet.lua ROOT
local ms = require "msched"

local BATCH = 2
local func = assert(loadfile(arg[1] .. "/lua/examples/lenet.lua"))(BATCH)[1]

-- Weights so small that no class is certain.
local arrays = {}
for i, p in ipairs(func:params()) do
  arrays[i] = ms.array(p.shape, p.type, function(position) return ((position * 7 + i * 3) % 23 - 11) / 64 end)
end
local X, W1, b1, W2, b2, W3, b3, Y = table.unpack(arrays)

-- value(y, x, c) of an image of `size`, convolved, with the bias and ReLU, and the largest of each four.
local function layer(value, size, channels, W, bias, pad)
  local function convolved(y, x, o)
    local sum = bias[{o}]
    for p = 0, 4 do
      for q = 0, 4 do
        local r, s = y + p - pad, x + q - pad
        if r >= 0 and s >= 0 and r < size and s < size then
          for c = 0, channels - 1 do sum = sum + value(r, s, c) * W[{p, q, c, o}] end
        end
      end
    end
    return math.max(sum, 0)
  end
  local kept = {}
  return function(y, x, o)
    local key = (y * size + x) * 32 + o
    kept[key] = kept[key] or math.max(convolved(2 * y, 2 * x, o), convolved(2 * y, 2 * x + 1, o),
                                      convolved(2 * y + 1, 2 * x, o), convolved(2 * y + 1, 2 * x + 1, o))
    return kept[key]
  end
end

local function classes(n)
  local first = layer(function(y, x, c) return X[{n, y, x, c}] end, 28, 1, W1, b1, 2)
  local second = layer(first, 14, 6, W2, b2, 0)
  local powers, total = {}, 0
  for o = 0, 9 do
    local sum = b3[{o}]
    for i = 0, 399 do sum = sum + second(i // 80, i // 16 % 5, i % 16) * W3[{o, i}] end
    powers[o] = math.exp(sum)
    total = total + powers[o]
  end
  for o = 0, 9 do powers[o] = powers[o] / total end
  return powers
end

local function compare(who)
  for n = 0, BATCH - 1 do
    for o, want in pairs(classes(n)) do
      assert(want > 1e-3 and math.abs(Y[{n, o}] - want) < 1e-5,
             string.format("%s: image %d, class %d: %s, not %s", who, n, o, Y[{n, o}], want))
    end
  end
end
ms.interpret(func, table.unpack(arrays))
compare "interpreted"
Y = ms.array({BATCH, 10}, "float32")
arrays[#arrays] = Y
ms.build(func):run(table.unpack(arrays))
compare "compiled"

-- Scheduled in one call, by few estimates: blocks that compute elements in order are gone into others, and it computes
-- the same.
local few = {kept = 2, explored = 200, filled = 1000, replayed = 8, each = 1}
local sch, about = ms.auto_schedule(func, {heuristics = few})
assert(about.patterns.conv2d == "complex_reduction" and about.patterns.relu == "direct_compute"
       and about.patterns.pad == "location_tunable")
local left = " " .. table.concat(sch:block_names(), " ") .. " "
assert(not left:find " relu " and not left:find " bias_add ", left)
Y = ms.array({BATCH, 10}, "float32")
arrays[#arrays] = Y
sch:build():run(table.unpack(arrays))
compare "scheduled in one call"
print "lenet: ok"
