-- BatchNormalization of constants, behind a convolution or a product of constant weights whose result it alone reads,
-- goes into the weights and the bias. What is computed of constants is left as nodes, which are folded when the network
-- is planned.
local pass =
  {name = "batch_norm", text = "puts batch normalization into the weights and the bias before it", needs_values = true}

local function constants_of(values, node, first, last)
  for i = first, last do
    local value = values[node.inputs[i] or ""] -- none: a fold made it
    if not value or not value.constant then return false end
  end
  return true
end

-- The convolution or product of constant weights whose result the node alone reads, and along which dimension of its
-- weights its channels are.
local HOLDS = {Conv = 0, ConvTranspose = 1, Gemm = 1}
local function before(links, values, node, outputs)
  local giver = links:giver(node.inputs[1])
  if not giver or giver.domain ~= "" or not HOLDS[giver.op] or outputs[node.inputs[1]]
      or #links:readers(node.inputs[1]) ~= 1 then
    return nil
  end
  local last = (giver.inputs[3] or "") ~= "" and 3 or 2
  if not constants_of(values, giver, 2, last) then return nil end
  if giver.op == "ConvTranspose" and (giver.attributes.group or 1) ~= 1 then return nil end
  if giver.op == "Gemm" and ((giver.attributes.alpha or 1) ~= 1 or (giver.attributes.beta or 1) ~= 1) then
    return nil
  end
  local axis = HOLDS[giver.op]
  if giver.op == "Gemm" and (giver.attributes.transB or 0) ~= 0 then axis = 0 end
  return giver, axis
end

local function fold(net, links, values, node, giver, axis)
  local gamma, beta, mean, variance = table.unpack(node.inputs, 2, 5)
  local t, channels = values[gamma].type, values[gamma].shape[1]
  local added = net:adds(node.outputs[1])
  local epsilon = added:constant({1}, t, {node.attributes.epsilon or 1e-5})
  local scale = added:node("Div", {gamma, added:node("Sqrt", {added:node("Add", {variance, epsilon})})})
  local rank, bias = #values[giver.inputs[2]].shape, giver.inputs[3] or ""
  local shift = bias ~= "" and added:node("Sub", {bias, mean}) or added:node("Neg", {mean})
  links:remove(node)
  links:remove(giver)
  giver.inputs[2] = added:node("Mul", {giver.inputs[2], added:along(scale, channels, rank, axis)})
  giver.inputs[3] = added:node("Add", {added:node("Mul", {shift, scale}), beta})
  giver.outputs = {node.outputs[1]}
  links:add(giver)
end

-- Whether it is one of constants of one type, of which none but the first output is read.
local function is_plain(values, node)
  if node.domain ~= "" or node.op ~= "BatchNormalization" or (node.attributes.training_mode or 0) ~= 0
      or (node.attributes.spatial or 1) == 0 then
    return false
  end
  for i = 2, #node.outputs do if node.outputs[i] ~= "" then return false end end
  if not constants_of(values, node, 2, 5) then return false end
  local types = values[node.inputs[2]].type
  if types ~= "float32" and types ~= "float64" then return false end
  for i = 3, 5 do if values[node.inputs[i]].type ~= types then return false end end
  return true
end

function pass.run(net, values)
  local outputs, nodes, links, gone = net:fixed_names(), table.move(net.nodes, 1, #net.nodes, 1, {}), net:links(), {}
  for _, node in ipairs(nodes) do
    local giver, axis = nil, nil
    if is_plain(values, node) then giver, axis = before(links, values, node, outputs) end
    if giver then
      fold(net, links, values, node, giver, axis)
      gone[node] = true
    end
  end
  if not next(gone) then return false end
  local kept = {}
  for _, node in ipairs(net.nodes) do if not gone[node] then kept[#kept + 1] = node end end
  net.nodes = kept
  return true
end

return pass
