-- Graphs and functions in the place of the nodes that have them: their nodes with names that are given once, whatever
-- names the network has.
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
  local copy = {op = node.op, domain = node.domain, name = node.name, opset = node.opset, inputs = {}, outputs = {},
                attributes = {}}
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
  local copy = {name = graph.name, inputs = graph.inputs, initializers = graph.initializers, known = graph.known,
                nodes = {}, outputs = {}}
  for i, node in ipairs(graph.nodes) do copy.nodes[i] = renamed(node, inner) end
  for i, output in ipairs(graph.outputs) do
    copy.outputs[i] = setmetatable({name = inner[output.name] or output.name}, {__index = output})
  end
  return copy
end

-- inline.graph(graph, inputs, prefix): nodes, constants {{name, array}}, names of its outputs. inputs: what is given to
-- it, by name, in order. Its own values are called prefix .. name.
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

-- ---- Functions of the model's own ---------------------------------------------------------------------------------

local MOST_NODES, MOST_DEEP = 100000, 64
local function text_of(f) return f.domain ~= "" and f.domain .. "." .. f.name or f.name end

-- Attributes of a function's node, as the node has them in whose place the function stands.
local resolved_graph
local function resolved(attributes, given)
  local all = {}
  for key, x in pairs(attributes) do
    if type(x) == "table" and x.reference then all[key] = given[x.reference]
    else all[key] = is_graph(x) and resolved_graph(x, given) or x end
  end
  return all
end
function resolved_graph(graph, given)
  local nodes = {}
  for i, node in ipairs(graph.nodes) do
    nodes[i] = setmetatable({attributes = resolved(node.attributes, given)}, {__index = node})
  end
  return setmetatable({nodes = nodes}, {__index = graph})
end

-- The nodes of a function for a node.
local function body_of(f, node, opset)
  local map, given, nodes = {[""] = ""}, setmetatable({}, {__index = f.defaults}), {}
  local first = ""
  for _, name in ipairs(node.outputs) do if first == "" then first = name end end
  for key, x in pairs(node.attributes) do given[key] = x end
  for i, name in ipairs(f.inputs) do map[name] = node.inputs[i] or "" end
  for _, inner in ipairs(f.nodes) do
    for _, name in ipairs(inner.outputs) do
      if name ~= "" then map[name] = string.format("%s/%s", first, name) end
    end
  end
  local passed = {}
  for i, name in ipairs(f.outputs) do
    local own = node.outputs[i] or ""
    local is_input = false
    for _, input in ipairs(f.inputs) do is_input = is_input or input == name end
    if own ~= "" and (is_input or passed[name]) then
      nodes[#nodes + 1] = {op = "Identity", domain = "", name = "", inputs = {passed[name] or map[name]},
                           outputs = {own}, attributes = {}}
    elseif own ~= "" then map[name], passed[name] = own, own end
  end
  for _, inner in ipairs(f.nodes) do
    local copy = renamed(inner, map)
    copy.attributes = resolved(copy.attributes, given)
    copy.opset = f.opsets[""] or opset
    if node.name ~= "" then copy.name = inner.name ~= "" and node.name .. "/" .. inner.name or node.name end
    nodes[#nodes + 1] = copy
  end
  return nodes
end

-- inline.functions(nodes, functions, problems): the nodes, with those of functions in the place of nodes that call one;
-- in graphs in nodes too. functions: as read_onnx gives them.
function inline.functions(nodes, functions, problems)
  local by_name, made = {}, 0
  for _, f in ipairs(functions) do
    if by_name[text_of(f)] then problems[#problems + 1] = string.format("two functions are named %s", text_of(f)) end
    by_name[text_of(f)] = f
  end
  if #functions == 0 then return nodes end
  local function expand(list, open, deep)
    local all = {}
    for _, node in ipairs(list) do
      local f = by_name[node.domain ~= "" and node.domain .. "." .. node.op or node.op]
      for key, x in pairs(node.attributes) do
        if is_graph(x) then
          node.attributes[key] = setmetatable({nodes = expand(x.nodes, open, deep)}, {__index = x})
        end
      end
      made = made + 1
      if made > MOST_NODES then
        if made == MOST_NODES + 1 then
          problems[#problems + 1] = string.format("its functions make more than %d nodes", MOST_NODES)
        end
        return all
      elseif f and open[f] then
        problems[#problems + 1] = string.format("function %s calls itself", text_of(f))
      elseif f and deep == MOST_DEEP then
        problems[#problems + 1] = string.format("function %s is called by others more than %d deep", text_of(f),
                                                MOST_DEEP)
      elseif f then
        open[f] = true
        for _, inner in ipairs(expand(body_of(f, node, node.opset), open, deep + 1)) do all[#all + 1] = inner end
        open[f] = nil
      else all[#all + 1] = node end
    end
    return all
  end
  return expand(nodes, {}, 0)
end

return inline
