-- What only moves bytes, or takes the largest of them, between a DequantizeLinear and a QuantizeLinear of the same
-- scale and zero point, is done on the bytes: rounding gives them back, as scales are above 0. What others read of the
-- real values they get by a DequantizeLinear behind it.
local ms = msched
local match, set = ms.load "lua.net.match", ms.load "lua.net.common".set
local pass =
  {name = "requantized", text = "moves bytes, and takes the largest of them, without dequantizing", needs_values = true}

local MOVES =
  set "Identity Reshape Flatten Squeeze Unsqueeze Transpose Slice Gather DepthToSpace SpaceToDepth Expand Tile MaxPool"
local BYTES = set "int8 uint8"
local LEAST, MOST = 1e-30, 1e30 -- scales whose products and quotients with 255 are as they are rounded, and not 0 or
                                -- infinite

-- The scale and the zero point of a DequantizeLinear or QuantizeLinear of one each; nil: there are more, or none that
-- are known.
local function parameters(m, node)
  local scales, type = m:list(node.inputs[2]), m:type(node.inputs[2])
  if not scales or #scales ~= 1 or type ~= "float32" or scales[1] < LEAST or scales[1] > MOST then return nil end
  local zeros = {0}
  if (node.inputs[3] or "") ~= "" then zeros = m:list(node.inputs[3]) end
  if not zeros or #zeros ~= 1 then return nil end
  return scales[1], zeros[1]
end

-- The DequantizeLinear of bytes that gives a value.
local function dequantized(m, name)
  local node = m:giver(name, "DequantizeLinear")
  return node and BYTES[m:type(node.inputs[1])] and m:type(node.outputs[1]) == "float32" and node or nil
end

-- The first node of the chain of those that move, which ends with this value, and the DequantizeLinear before it.
local function chain_to(m, name)
  local list = {}
  local node = m:inner(name)
  while node and MOVES[node.op] do
    table.insert(list, 1, node)
    local before = dequantized(m, node.inputs[1])
    if before then return list, before end
    node = m:inner(node.inputs[1])
  end
end

-- QuantizeLinear of a chain of bytes dequantized alike: the chain is moved before the DequantizeLinear, and both go.
local function shorten(m, node)
  if node.op ~= "QuantizeLinear" or node.domain ~= "" then return false end
  local chain, before = chain_to(m, node.inputs[1])
  if not chain or m:type(before.inputs[1]) ~= m:type(node.outputs[1]) then return false end
  local scale, zero = parameters(m, before)
  local other, other_zero = parameters(m, node)
  if not scale or scale ~= other or zero ~= other_zero then return false end
  chain[1].inputs[1] = before.inputs[1]
  node.op, node.inputs, node.attributes = "Identity", {node.inputs[1]}, {}
  return true
end

function pass.run(net, values)
  local m, changed = match.of(net, values), false
  for _, node in ipairs(net.nodes) do changed = shorten(m, node) or changed end
  if changed then ms.load "lua.net.pass.constants".run(net) end -- which takes identities out
  return changed
end

return pass
