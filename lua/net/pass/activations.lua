-- Activations that are spelled out become one node each: GELU by erf and by tanh, SiLU, hard swish. A group then holds
-- more of what is around them.
local ms = msched
local match = ms.load "lua.net.match"
local pass = {name = "activations", text = "makes one node of GELU, SiLU and hard swish that are spelled out",
              needs_values = true}

-- The other of two names; nil: neither is x.
local function beside(names, x)
  if #names ~= 2 then return nil end
  if names[1] == x then return names[2] end
  return names[2] == x and names[1] or nil
end

-- Whether a value is `number` times x.
local function is_multiple(m, name, number, x, t)
  local factor, names = m:factors_of(name)
  return #names == 1 and names[1] == x and m:about(factor, number, t)
end

-- Whether a value is x * x * x, or x to the power of 3, times 0.044715.
local CUBIC = 0.044715
local function is_cube(m, name, x, t)
  local factor, names = m:factors_of(name)
  if not m:about(factor, CUBIC, t) then return false end
  local power = #names == 1 and m:inner(names[1], "Pow")
  if power then return power.inputs[1] == x and m:number(power.inputs[2]) == 3 end
  return #names == 3 and names[1] == x and names[2] == x and names[3] == x
end

-- Whether a value is (x + 0.044715 x^3) times the root of 2 by pi.
local function is_inside_tanh(m, name, x, t)
  local factor, names = m:factors_of(name)
  if not m:about(factor, math.sqrt(2 / math.pi), t) then return false end
  local sum = #names == 1 and m:inner(names[1], "Add")
  if sum then
    local cube = beside(sum.inputs, x)
    return cube ~= nil and is_cube(m, cube, x, t)
  end
  local inner = beside(names, x) -- x (1 + 0.044715 x^2)
  local squared, one = m:shifted(inner or "")
  if one ~= 1 then return false end
  local number, squares = m:factors_of(squared)
  local power = #squares == 1 and m:inner(squares[1], "Pow")
  local is_power = power and power.inputs[1] == x and m:number(power.inputs[2]) == 2
  return (is_power or #squares == 2 and squares[1] == x and squares[2] == x) and m:about(number, CUBIC, t)
end

-- x (1 + erf(x / root of 2)) / 2, x (1 + tanh(…)) / 2
local function gelu(m, node, number, names, t)
  if not m:about(number, 0.5, t) then return nil end
  for _, x in ipairs(names) do
    local inner, one = m:shifted(beside(names, x) or "")
    local erf, tanh = inner and one == 1 and m:inner(inner, "Erf"), inner and one == 1 and m:inner(inner, "Tanh")
    if erf and is_multiple(m, erf.inputs[1], math.sqrt(0.5), x, t) then return x, "Gelu", {approximate = "none"}, 20 end
    if tanh and is_inside_tanh(m, tanh.inputs[1], x, t) then return x, "Gelu", {approximate = "tanh"}, 20 end
  end
end

-- x sigmoid(alpha x)
local function silu(m, node, number, names)
  if number ~= 1 then return nil end
  for _, x in ipairs(names) do
    local sigmoid = m:inner(beside(names, x) or "", "Sigmoid")
    if sigmoid then
      local alpha, inside = m:factors_of(sigmoid.inputs[1])
      if sigmoid.inputs[1] == x then return x, "Swish", {alpha = 1.0}, 24 end
      if #inside == 1 and inside[1] == x then return x, "Swish", {alpha = alpha + 0.0}, 24 end
    end
  end
end

-- The value that is held within two numbers, as Clip has them, or as the least and the most; nil: it is none.
local function clipped(m, name, low, high)
  local node = m:inner(name, "Clip")
  if node then
    local function bound(i, key)
      return (node.inputs[i] or "") ~= "" and m:number(node.inputs[i]) or node.attributes[key]
    end
    return bound(2, "min") == low and bound(3, "max") == high and node.inputs[1] or nil
  end
  local outer = m:inner(name, "Min")
  if not outer or #outer.inputs ~= 2 then return nil end
  for i = 1, 2 do
    local inner = m:number(outer.inputs[i]) == high and m:inner(outer.inputs[3 - i])
    if inner and inner.op == "Relu" and low == 0 then return inner.inputs[1] end
    for k = 1, inner and inner.op == "Max" and #inner.inputs == 2 and 2 or 0 do
      if m:number(inner.inputs[k]) == low then return inner.inputs[3 - k] end
    end
  end
end

-- x clip(x + 3, 0, 6) / 6, x hard sigmoid(x)
local function hard_swish(m, node, number, names, t)
  for _, x in ipairs(names) do
    local other = beside(names, x) or ""
    local sum, three = m:shifted(clipped(m, other, 0, 6) or "")
    if sum == x and three == 3 and m:about(number, 1 / 6, t) then return x, "HardSwish", {}, 14 end
    local sigmoid = m:inner(other, "HardSigmoid")
    local alpha, beta = sigmoid and sigmoid.attributes.alpha or 0.2, sigmoid and sigmoid.attributes.beta or 0.5
    if sigmoid and sigmoid.inputs[1] == x and number == 1 and m:about(alpha, 1 / 6, t) and beta == 0.5 then
      return x, "HardSwish", {}, 14
    end
  end
end

function pass.run(net, values)
  local m, changed = match.of(net, values), false
  for at = #net.nodes, 1, -1 do -- the whole before its parts
    local node = net.nodes[at]
    local number, names
    if m:is_float(node.outputs[1]) then number, names = m:factors(node) end
    for _, find in ipairs(number and {gelu, silu, hard_swish} or {}) do
      local x, op, attributes, opset = find(m, node, number, names, m:type(node.outputs[1]))
      if x and m:same(x, node.outputs[1]) then
        node.op, node.inputs, node.attributes, node.opset, changed = op, {x}, attributes, opset, true
        break
      end
    end
  end
  return changed
end

return pass
