-- Channels that are shuffled as two dimensions of them are swapped (Reshape, Transpose, Reshape) are read by the next
-- convolution in that order, and are shuffled nowhere: what stands between takes each channel by itself, and its
-- weights change their order. Results stored shuffled are scalars, one by one, where channels stand last in memory; a
-- convolution reads an element of its image for a vector of channels, wherever that element is.
local common, infer, match =
  msched.load "lua.net.common", msched.load "lua.net.infer", msched.load "lua.net.match"
local pass = {name = "shuffles", text = "has convolutions read the channels that are shuffled before them",
              needs_values = true}

pass.is_left_out = common.keeps_convolutions -- GPUs have the channels second

local POOLS = common.set "MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool"

-- A shuffle that ends with this node: {x = what it takes, groups, each}: channel i * groups + g of what it gives is
-- g * each + i of that; nil: it is none.
local function shuffle_of(m, node)
  local swapped = node.domain == "" and node.op == "Reshape" and m:inner(node.inputs[1], "Transpose")
  local parts = swapped and m:inner(swapped.inputs[1], "Reshape")
  local x = parts and parts.inputs[1]
  local shape, split, perm = x and m:shape(x), parts and m:shape(parts.outputs[1]), swapped and swapped.attributes.perm
  if not shape or #shape < 3 or not split or #split < 4 or not perm or not m:same(x, node.outputs[1])
      or m.values[x].type ~= "float32" then
    return nil
  end
  for d, axis in ipairs(perm) do
    if axis ~= (d == 2 and 2 or d == 3 and 1 or d - 1) then return nil end
  end
  if split[1] ~= shape[1] or split[2] * split[3] ~= shape[2] then return nil end
  return {x = x, groups = split[2], each = split[3]}
end

-- What a node that reads shuffled channels as its first input, and weights that are constant, is: "channels", each by
-- itself; "groups", a convolution of groups of channels, or "all", of all; nil: another.
local function kind_of(m, node)
  local x, y = m:shape(node.inputs[1]), m:shape(node.outputs[1])
  if #node.outputs ~= 1 or not x or not y then return nil end
  if node.domain == "" and POOLS[node.op] then return "channels" end
  if infer.family(node) == "elementwise" then
    for i = 2, #node.inputs do
      if node.inputs[i] ~= "" and not m:number(node.inputs[i]) then return nil end
    end
    return m:same(node.inputs[1], node.outputs[1]) and "channels" or nil
  end
  if node.domain ~= "" or node.op ~= "Conv" then return nil end
  for i = 2, #node.inputs do
    if node.inputs[i] ~= "" and not m.values[node.inputs[i]].constant then return nil end
  end
  local groups = node.attributes.group or 1
  if groups == 1 then return "all" end
  return groups < x[2] and "groups" or x[2] == y[2] and "channels" or nil
end

-- The nodes from a shuffle to the convolution that is to read it, in order, and their kinds; nil: there is none.
local function chain_of(m, name)
  local chain = {}
  repeat
    local node = m:reader(name)
    local kind = node and node.inputs[1] == name and kind_of(m, node)
    if not kind then return nil end
    chain[#chain + 1] = {node = node, kind = kind}
    name = node.outputs[1]
  until kind ~= "channels"
  return chain
end

-- The value's elements with those of an axis, from 0, of groups * each as they are before the shuffle.
local function unshuffled(added, m, name, axis, shuffle)
  local shape = m:shape(name)
  local split, perm = {}, {}
  for d = 1, #shape do
    if d == axis + 1 then table.move({shuffle.each, shuffle.groups}, 1, 2, #split + 1, split)
    else split[#split + 1] = shape[d] end
  end
  for d = 1, #split do perm[d] = d - 1 end
  perm[axis + 1], perm[axis + 2] = axis + 1, axis
  local parts = added:node("Reshape", {name, added:constant({#split}, "int64", split)})
  parts = added:node("Transpose", {parts}, {perm = perm})
  return added:node("Reshape", {parts, added:constant({#shape}, "int64", shape)})
end

-- The node of a chain in the place of that of the network.
local function rewrite(m, link, added)
  local node, made = link.node, {}
  added.of = added.of .. " in order" -- what batch normalization added has the node's name
  for key, value in pairs(node) do made[key] = value end
  made.inputs = table.move(node.inputs, 1, #node.inputs, 1, {})
  made.inputs[1] = link.x or node.inputs[1]
  local function change(i, axis)
    if (node.inputs[i] or "") ~= "" then
      made.inputs[i] = unshuffled(added, m, node.inputs[i], axis, link.shuffle)
    end
  end
  if link.kind == "all" then change(2, 1)
  elseif link.kind == "groups" then
    made.domain, made.attributes = "msched", {shuffled = link.shuffle.groups}
    for key, value in pairs(node.attributes) do made.attributes[key] = value end
  elseif node.op == "Conv" then
    change(2, 0)
    change(3, 0)
  end
  added.nodes[#added.nodes + 1] = made
  return true
end

function pass.run(net, values)
  local m, links = match.of(net, values), {}
  for _, node in ipairs(net.nodes) do
    local shuffle = shuffle_of(m, node)
    local chain = shuffle and not m.fixed[node.outputs[1]] and chain_of(m, node.outputs[1]) or {}
    for at, link in ipairs(chain) do
      link.shuffle, link.x = shuffle, at == 1 and shuffle.x or nil
      links[link.node] = link
    end
  end
  return net:replace_nodes(function(node, added)
    return links[node] ~= nil and rewrite(m, links[node], added)
  end)
end

return pass
