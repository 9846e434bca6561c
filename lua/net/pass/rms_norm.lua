-- RMS normalization that is spelled out, as mean of squares, root, quotient and scale, becomes one node, which is one
-- function: a reduction would end a group before the quotient.
local ms = msched
local match = ms.load "lua.net.match"
local pass = {name = "rms_norm", text = "makes one node of an RMS normalization that is spelled out",
              needs_values = true}

local OPSET = 23

-- Whether a value is the square of another, read once.
local function is_square(m, name, x)
  local node = m:inner(name)
  if not node or node.inputs[1] ~= x then return false end
  return node.op == "Pow" and m:number(node.inputs[2]) == 2 or node.op == "Mul" and node.inputs[2] == x
end

local function is_mean_of_squares(m, name, x)
  local node, rank = m:inner(name, "ReduceMean"), #m:shape(x)
  if not node or (node.attributes.keepdims or 1) ~= 1 then return false end
  local axes = (node.inputs[2] or "") ~= "" and m:list(node.inputs[2]) or node.attributes.axes
  if not axes or #axes ~= 1 or axes[1] ~= -1 and axes[1] ~= rank - 1 then return false end
  return is_square(m, node.inputs[1], x)
end

-- The epsilon of a value that is the root of the mean of x's squares, or nil.
local function root_of(m, node, x)
  if not node or node.op ~= "Sqrt" then return nil end
  local mean, epsilon = m:shifted(node.inputs[1])
  return mean and is_mean_of_squares(m, mean, x) and epsilon or nil
end

-- The same of a value that is 1 by that root.
local function inverse_root_of(m, name, x)
  local node = m:inner(name)
  if not node then return nil end
  if node.op == "Reciprocal" then return root_of(m, m:inner(node.inputs[1]), x) end
  if node.op == "Div" and m:number(node.inputs[1]) == 1 then return root_of(m, m:inner(node.inputs[2]), x) end
  if node.op ~= "Pow" or m:number(node.inputs[2]) ~= -0.5 then return nil end
  local mean, epsilon = m:shifted(node.inputs[1])
  return mean and is_mean_of_squares(m, mean, x) and epsilon or nil
end

-- What a node normalizes, and its epsilon; or nil.
local function normalized(m, node)
  local a, b = node.inputs[1], node.inputs[2]
  if node.domain ~= "" or not m:is_float(node.outputs[1]) then return nil end
  local function rank(name) return #(m:shape(name) or {}) end
  if node.op == "Div" and rank(a) > 0 then
    local epsilon = root_of(m, m:inner(b), a)
    if epsilon then return a, epsilon end
  end
  for _, pair in ipairs(node.op == "Mul" and {{a, b}, {b, a}} or {}) do
    local epsilon = rank(pair[1]) > 0 and inverse_root_of(m, pair[2], pair[1])
    if epsilon then return pair[1], epsilon end
  end
end

-- The product with a constant of the last dimension's extent that alone reads a value; and that constant.
local function scaled(m, name, x)
  local node, shape = m:reader(name), m:shape(x)
  if not node or node.op ~= "Mul" or node.domain ~= "" then return nil end
  for i = 1, 2 do
    local scale = m.values[node.inputs[i]]
    local fits = scale and node.inputs[3 - i] == name and scale.constant and #scale.shape == 1
    if fits and scale.shape[1] == shape[#shape] and scale.type == m:type(x) and m:same(x, node.outputs[1]) then
      return node, node.inputs[i]
    end
  end
end

function pass.run(net, values)
  local m, changed = match.of(net, values), false
  for _, node in ipairs(net.nodes) do
    local x, epsilon = normalized(m, node)
    local last, scale
    if x then last, scale = scaled(m, node.outputs[1], x) end
    if last then
      last.op, last.inputs, last.opset, changed = "RMSNormalization", {x, scale}, OPSET, true
      last.attributes = {axis = -1, epsilon = epsilon + 0.0}
    end
  end
  return changed
end

return pass
