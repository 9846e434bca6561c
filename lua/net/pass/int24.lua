-- Products of few rows by packed weights, MatMulNBits, whose rows are rounded to integers of 24 bits, block by block:
-- errors stay as small as those of float32's sums, and where CPUs multiply bytes by VNNI, three products of bytes take
-- less than one of float32 and what unpacks its weights. On one core of a Zen 5, 11,008 x 4,096 weights of 4 bits, one
-- row: 0.43 ms for 0.73, at the memory's bandwidth; three rows still gain, of more the products alone count.
local ms = msched
local common = ms.load "lua.net.common"
local pass = {name = "int24", text = "rounds few rows of products by packed weights to integers of 24 bits",
              needs_values = true}

local MOST_ROWS = 3
local BYTES, PAIRS = 1, 4 | 8 -- of a target's dots: VNNI; also those that are made of pairs of int16, which take longer
local ROUNDED = 4 -- an accuracy_level that lets rows be rounded to int8

function pass.is_left_out(options)
  local target = ms.target(options.target or "native")
  return options.fixed_order or target.arch ~= nil or (target.dots or 0) & (BYTES | PAIRS) ~= BYTES
end

local function is_asked(node) return node.op == "MatMulNBits" and node.domain == "com.microsoft" end

local function is_exact(node) return (node.attributes.accuracy_level or 0) ~= ROUNDED end

function pass.run(net, values)
  local changed = false
  for at, node in ipairs(net.nodes) do
    local x, k = values[node.inputs[1]], node.attributes.K
    if is_asked(node) and is_exact(node) and not node.attributes.products and x and not x.constant and k and k > 0
        and common.count(x.shape) <= MOST_ROWS * k then
      local own = {}
      for key, value in pairs(node) do own[key] = value end
      own.attributes = {products = "int24"}
      for key, value in pairs(node.attributes) do own.attributes[key] = value end
      net.nodes[at], changed = own, true
    end
  end
  return changed
end

return pass
