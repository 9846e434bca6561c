-- Nodes that say a constant become constants; what passes a value on goes.
local ms = msched
local pass = {name = "constants", text = "takes Constant, Identity and Dropout out of the graph"}

local function is_copy(net, node, read)
  if node.domain ~= "" then return false end
  if node.op == "Identity" then return true end
  local training = node.inputs[3] or ""
  if node.op ~= "Dropout" or read[node.outputs[2] or ""] then return false end
  if training == "" then return true end
  local array = net.constants[training]
  return array ~= nil and array:tolist()[1] == 0
end

function pass.run(net)
  local same, outputs, kept, read = {}, net:fixed_names(), {}, net:fixed_names()
  for _, node in ipairs(net.nodes) do
    for _, name in ipairs(node.inputs) do read[name] = name ~= "" end
  end
  for _, node in ipairs(net.nodes) do
    local value = node.domain == "" and node.op == "Constant" and node.attributes.value
    for i, name in ipairs(node.inputs) do node.inputs[i] = same[name] or name end
    if ms.type(value) == "array" and not outputs[node.outputs[1]] then net.constants[node.outputs[1]] = value
    elseif is_copy(net, node, read) and not outputs[node.outputs[1]] then same[node.outputs[1]] = node.inputs[1]
    else kept[#kept + 1] = node end
  end
  net.nodes = kept
end

return pass
