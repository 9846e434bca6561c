-- What changes nothing becomes the identity, and what two nodes do that one could becomes one: transposes, reshapes,
-- x * 1, x + 0, negations and casts that cancel.
local ms = msched
local match, element_types = ms.load "lua.net.match", ms.load "lua.lib.element_types"
local pass = {name = "algebra", text = "removes what changes nothing, and joins transposes, reshapes and casts",
              needs_values = true}

local function become(node, op, inputs, attributes, opset)
  node.op, node.inputs, node.attributes, node.opset = op, inputs, attributes or {}, opset
  return true
end
local function identity(node, x) return become(node, "Identity", {x}) end

-- ---- Numbers that change nothing ---------------------------------------------------------------------------------

local NEUTRAL = {Add = {0, both = true}, Sub = {0}, Mul = {1, both = true}, Div = {1}, Pow = {1}}

local function neutral(m, node)
  local with = NEUTRAL[node.op]
  for i = with and with.both and 1 or 2, with and 2 or 0 do
    local x = node.inputs[3 - i]
    if m:number(node.inputs[i]) == with[1] and m:same(x, node.outputs[1]) then return identity(node, x) end
  end
  return false
end

-- ---- What cancels ------------------------------------------------------------------------------------------------

local TWICE = {Neg = true, Not = true} -- is nothing
local ONCE = {Relu = true, Abs = true, Ceil = true, Floor = true, Round = true, Sign = true} -- is the same again

local function twice(m, node)
  local before = (TWICE[node.op] or ONCE[node.op]) and m:giver(m:source(node.inputs[1]), node.op)
  if not before then return false end
  return identity(node, TWICE[node.op] and before.inputs[1] or node.inputs[1])
end

local function cast(m, node)
  if node.op ~= "Cast" then return false end
  if m:same(node.inputs[1], node.outputs[1]) then return identity(node, node.inputs[1]) end
  local before = m:giver(m:source(node.inputs[1]), "Cast")
  local x = before and before.inputs[1]
  local from, between = x and m:type(x), m:type(node.inputs[1])
  if not x or not from or not element_types.holds(between, from) then return false end
  if m:same(x, node.outputs[1]) then return identity(node, x) end
  return false
end

local function permutation(node, rank)
  local perm = node.attributes.perm
  if not perm then
    perm = {}
    for d = 1, rank do perm[d] = rank - d end
  end
  return perm
end
local function transpose(m, node)
  local shape = m:shape(node.inputs[1])
  if node.op ~= "Transpose" or not shape then return false end
  local own, before = permutation(node, #shape), m:giver(m:source(node.inputs[1]), "Transpose")
  local x, perm, moved = node.inputs[1], own, false
  if before then
    local first = permutation(before, #shape)
    x, perm = before.inputs[1], {}
    for d, axis in ipairs(own) do perm[d] = first[axis + 1] end
  end
  for d, axis in ipairs(perm) do moved = moved or axis ~= d - 1 end
  if not moved then return identity(node, x) end
  return before ~= nil and become(node, "Transpose", {x}, {perm = perm})
end

-- ---- Other extents -----------------------------------------------------------------------------------------------

local RESHAPES = {Reshape = true, Flatten = true, Squeeze = true, Unsqueeze = true}
local RESHAPE_OPSET = 13

local function reshape(net, m, node)
  local shape = RESHAPES[node.op] and m:shape(node.outputs[1])
  if not shape then return false end
  if m:same(node.inputs[1], node.outputs[1]) then return identity(node, node.inputs[1]) end
  local before = m:giver(m:source(node.inputs[1]))
  if not before or not RESHAPES[before.op] then return false end
  local x = before.inputs[1]
  if m:same(x, node.outputs[1]) then return identity(node, x) end
  for _, extent in ipairs(shape) do if extent == 0 then return false end end -- which Reshape takes for the input's
  local name = m:fresh(node.outputs[1], "shape")
  net.constants[name] = ms.array({#shape}, "int64", shape)
  return become(node, "Reshape", {x, name}, {}, RESHAPE_OPSET)
end

function pass.run(net, values)
  local m, changed = match.of(net, values), false
  for _, node in ipairs(net.nodes) do -- in order, so that a chain is joined link by link
    if node.domain == "" and #node.outputs == 1 then
      local did = neutral(m, node) or twice(m, node) or cast(m, node) or transpose(m, node) or reshape(net, m, node)
      changed = did or changed
    end
  end
  if changed then ms.load "lua.net.pass.constants".run(net) end -- which takes identities out
  return changed
end

return pass
