-- Graphs and functions in the place of the nodes that have them: their nodes with names that are given once, whatever names the
-- network has.
local ms = msched
local inline = {}

local function is_graph(x) return type(x) == "table" and x.nodes ~= nil end

-- What a graph itself gives, by name: its inputs, initializers, and what its nodes give.
local function own_names(graph)
  local own = {}
  for _, input in ipairs(graph.inputs) do own[input.name] = true end
  for _, constant in ipairs(graph.initializers) do own[constant.name] = true end
  for _, node in ipairs(graph.nodes) do
    for _, name in ipairs(node.outputs) do own[name] = true end
  end
  return own
end

-- The values from around a node that the graphs in it read, in order; a node has none where it has no graphs.
function inline.captured(node)
  local list, seen = {}, {}
  local function walk(graph, hidden)
    local own = setmetatable(own_names(graph), {__index = hidden})
    local function read(name)
      if name ~= "" and not own[name] and not seen[name] then
        seen[name], list[#list + 1] = true, name
      end
    end
    for _, inner in ipairs(graph.nodes) do
      for _, name in ipairs(inner.inputs) do read(name) end
      for _, key in ipairs(ms.sorted_keys(inner.attributes)) do
        if is_graph(inner.attributes[key]) then walk(inner.attributes[key], own) end
      end
    end
    for _, output in ipairs(graph.outputs) do read(output.name) end
  end
  for _, key in ipairs(ms.sorted_keys(node.attributes)) do
    if is_graph(node.attributes[key]) then walk(node.attributes[key], {}) end
  end
  return list
end

local renamed_graph
-- A copy of a node whose values are called what `map` says; those that it does not know keep their names.
local function renamed(node, map)
  local copy = {op = node.op, domain = node.domain, name = node.name, opset = node.opset, inputs = {}, outputs = {}, attributes = {}}
  for i, name in ipairs(node.inputs) do copy.inputs[i] = map[name] or name end
  for i, name in ipairs(node.outputs) do copy.outputs[i] = map[name] or name end
  for key, x in pairs(node.attributes) do copy.attributes[key] = is_graph(x) and renamed_graph(x, map) or x end
  return copy
end
-- A copy of a graph: its own names stay, those from around it are called what `map` says.
function renamed_graph(graph, map)
  local inner = {}
  for name in pairs(own_names(graph)) do inner[name] = name end
  setmetatable(inner, {__index = map})
  local copy = {name = graph.name, inputs = graph.inputs, initializers = graph.initializers, known = graph.known, nodes = {}, outputs = {}}
  for i, node in ipairs(graph.nodes) do copy.nodes[i] = renamed(node, inner) end
  for i, output in ipairs(graph.outputs) do
    copy.outputs[i] = setmetatable({name = inner[output.name] or output.name}, {__index = output})
  end
  return copy
end

-- inline.graph(graph, inputs, prefix): nodes, constants {{name, array}}, names of its outputs. inputs: what is given to it, by
-- name, in order. Its own values are called prefix .. name.
function inline.graph(graph, inputs, prefix)
  local map, constants, nodes, outputs = {[""] = ""}, {}, {}, {}
  for i, input in ipairs(graph.inputs) do map[input.name] = inputs[i] end
  for i, constant in ipairs(graph.initializers) do
    if not map[constant.name] then
      map[constant.name] = prefix .. constant.name
      constants[#constants + 1] = {name = map[constant.name], array = graph.initializers[i].array}
    end
  end
  for _, node in ipairs(graph.nodes) do
    for _, name in ipairs(node.outputs) do
      if name ~= "" then map[name] = prefix .. name end
    end
  end
  for i, node in ipairs(graph.nodes) do nodes[i] = renamed(node, map) end
  for i, output in ipairs(graph.outputs) do outputs[i] = map[output.name] or output.name end
  return nodes, constants, outputs
end

return inline
