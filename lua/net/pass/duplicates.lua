-- Nodes that compute the same of the same are one, and so are constants that are equal.
local ms = msched
local pass = {name = "duplicates", text = "computes once what two nodes compute alike, and keeps equal constants once"}

local MOST_COMPARED = 256 -- elements of an array

-- An attribute's value as text, or nil: it is not compared.
local function text_of(x)
  if ms.type(x) == "array" then
    return #x <= MOST_COMPARED and x:type() .. table.concat(x:shape(), "x") .. ":" .. x:bytes() or nil
  end
  if type(x) ~= "table" then return type(x) .. ":" .. tostring(x) end
  if x.nodes or x.unread then return nil end
  local parts = {}
  for i, y in ipairs(x) do
    parts[i] = text_of(y)
    if not parts[i] then return nil end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

local RANDOM = {RandomNormal = true, RandomUniform = true, RandomNormalLike = true, RandomUniformLike = true,
                Multinomial = true, Bernoulli = true}

local function key_of(node)
  if RANDOM[node.op] then return nil end
  local parts = {node.domain, node.op, table.concat(node.inputs, "\0"), tostring(#node.outputs)}
  for _, name in ipairs(ms.sorted_keys(node.attributes)) do
    local text = text_of(node.attributes[name])
    if not text then return nil end
    parts[#parts + 1] = name .. "=" .. text
  end
  return table.concat(parts, "\1")
end

-- Names of constants that equal others, and those others'. Only constants of one type and shape are looked at.
local function equal_constants(net)
  local of_shape, same, taken = {}, {}, {}
  for _, input in ipairs(net.inputs) do taken[input.name] = true end
  for _, name in ipairs(ms.sorted_keys(net.constants)) do
    local array = net.constants[name]
    local key = array:type() .. " " .. table.concat(array:shape(), "x")
    local list = of_shape[key] or {}
    if not taken[name] then list[#list + 1], of_shape[key] = name, list end
  end
  for _, list in pairs(of_shape) do
    local by_sum = {}
    for _, name in ipairs(#list > 1 and list or {}) do
      local array = net.constants[name]
      local sum = array:checksum()
      local first = by_sum[sum] or name
      by_sum[sum] = first
      if first ~= name and net.constants[first]:same_bytes(array) then same[name] = first end
    end
  end
  return same
end

function pass.run(net)
  local known, same, outputs, kept = {}, equal_constants(net), net:fixed_names(), {}
  for _, node in ipairs(net.nodes) do
    for i, name in ipairs(node.inputs) do node.inputs[i] = same[name] or name end
    local key, first, visible = key_of(node), nil, false
    for _, name in ipairs(node.outputs) do visible = visible or outputs[name] end
    first = key and known[key]
    local covers = first and not visible
    for i, name in ipairs(first and node.outputs or {}) do
      covers = covers and (name == "" or (first.outputs[i] or "") ~= "")
    end
    if covers then
      for i, name in ipairs(node.outputs) do if name ~= "" then same[name] = first.outputs[i] end end
    else
      if key and not first then known[key] = node end
      kept[#kept + 1] = node
    end
  end
  net.nodes = kept
end

return pass
