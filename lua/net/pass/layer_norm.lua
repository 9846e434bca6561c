-- Layer normalization that is spelled out, as mean, difference, variance, quotient, scale and shift, becomes one node.
local ms = msched
local pass =
  {name = "layer_norm", text = "makes one node of a layer normalization that is spelled out", needs_values = true}

local Match = {}
Match.__index = Match

-- The node that gives a value, if it is this operator and only `readers` nodes read what it gives.
function Match:giver(name, op, readers)
  local node = self.links:giver(name)
  if not node or node.domain ~= "" or node.op ~= op or self.fixed[name] or #self.links:readers(name) ~= readers then
    return nil
  end
  return node
end

-- The only element of a constant, or nil.
function Match:number(name)
  local array = self.values[name] and self.values[name].constant and self.values[name].array
  return array and #array == 1 and array:tolist()[1] or nil
end

-- Whether a node is the mean along the last dimension, which stays.
function Match:is_mean(node, x)
  if not node or node.inputs[1] ~= x or (node.attributes.keepdims or 1) ~= 1 then return false end
  local axes = node.attributes.axes
  local given = node.inputs[2] or ""
  if given ~= "" then axes = self.values[given].array and self.values[given].array:tolist() end
  local rank = #self.values[x].shape
  return axes ~= nil and #axes == 1 and (axes[1] == -1 or axes[1] == rank - 1)
end

-- The square of a value, by either spelling.
function Match:is_square(name, of)
  local power = self:giver(name, "Pow", 1)
  if power then return power.inputs[1] == of and self:number(power.inputs[2]) == 2 end
  local product = self:giver(name, "Mul", 1)
  return product ~= nil and product.inputs[1] == of and product.inputs[2] == of
end

-- What the quotient normalizes, and its epsilon; or nil.
function Match:normalized(quotient)
  local difference, root = self.links:giver(quotient.inputs[1]), self:giver(quotient.inputs[2], "Sqrt", 1)
  if not root or not difference or difference.op ~= "Sub" or difference.domain ~= ""
      or self.fixed[difference.outputs[1]] then
    return nil
  end
  local x, centred = difference.inputs[1], difference.outputs[1]
  local sum = self:giver(root.inputs[1], "Add", 1)
  local mean = self:giver(difference.inputs[2], "ReduceMean", 1)
  if not sum or not self:is_mean(mean, x) then return nil end
  for _, reader in ipairs(self.links:readers(centred)) do
    if reader ~= quotient and not (reader.op == "Pow" or reader.op == "Mul") then return nil end
  end
  for i = 1, 2 do
    local epsilon, variance = self:number(sum.inputs[i]), self:giver(sum.inputs[3 - i], "ReduceMean", 1)
    if epsilon and variance and self:is_mean(variance, variance.inputs[1])
        and self:is_square(variance.inputs[1], centred) and #self.links:readers(centred) == 2 then
      return x, epsilon
    end
  end
end

-- The node that alone reads a value and combines it, by this operator, with a constant of the last dimension's extent;
-- and that constant.
function Match:combined(name, op, extent)
  if self.fixed[name] then return nil end
  local readers = self.links:readers(name)
  local node = #readers == 1 and readers[1]
  if not node or node.op ~= op or node.domain ~= "" then return nil end
  local other = node.inputs[1] == name and node.inputs[2] or node.inputs[1]
  local value = self.values[other]
  if other == name or not value or not value.constant or #value.shape ~= 1 or value.shape[1] ~= extent then
    return nil
  end
  return node, other
end

function pass.run(net, values)
  local match, changed = setmetatable({links = net:links(), values = values, fixed = net:fixed_names()}, Match), false
  for _, quotient in ipairs(table.move(net.nodes, 1, #net.nodes, 1, {})) do
    local x, epsilon
    if quotient.op == "Div" and quotient.domain == "" then x, epsilon = match:normalized(quotient) end
    local extent = x and values[x].shape[#values[x].shape]
    local product, gamma, sum, beta
    if x then product, gamma = match:combined(quotient.outputs[1], "Mul", extent) end
    if product then sum, beta = match:combined(product.outputs[1], "Add", extent) end
    if product and values[x].type == values[gamma].type then
      local last = sum or product -- it gives what it gave, of other inputs; what else computed it is dead
      match.links:remove(last)
      last.op, last.inputs, last.attributes, last.opset = "LayerNormalization", {x, gamma, beta},
        {axis = -1, epsilon = epsilon}, 17
      match.links:add(last)
      changed = true
    end
  end
  return changed
end

return pass
