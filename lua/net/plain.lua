-- A network as tables of texts and numbers alone, which are copied into the sandbox of a pass and back. In it an array
-- is {of = key, type, shape, values}, the values where there are few; a graph in a node is {of = key, nodes}, one node
-- that reads what the graph reads from around it. What has a key and comes back is what was sent by that key.
local ms = msched
local inline = ms.load "lua.net.inline"
local plain = {}

plain.MOST_VALUES = 4096 -- of an array, that a pass sees

local function array_of(array, key, kept)
  kept[key] = array
  local values = #array <= plain.MOST_VALUES and array:tolist() or nil
  return {of = key, type = array:type(), shape = array:shape(), values = values}
end

-- Whether an attribute's list is of numbers or texts alone.
local function is_plain(list)
  for _, x in ipairs(list) do
    if type(x) ~= "number" and type(x) ~= "string" then return false end
  end
  return true
end

local function attributes_of(node, key, kept)
  local made = {}
  for name, x in pairs(node.attributes) do
    local own = key .. name
    if ms.type(x) == "array" then made[name] = {array = array_of(x, own, kept)}
    elseif type(x) == "table" and (x.nodes or x.unread or not is_plain(x)) then
      kept[own] = x
      local reads = x.nodes and inline.captured {attributes = {x}} or {}
      local inner = {op = "", domain = "", name = "", inputs = reads, outputs = {}, attributes = {}}
      made[name] = {of = own, nodes = x.nodes and {inner}, unread = not x.nodes, inputs = {}, initializers = {},
                    outputs = {}}
    else made[name] = x end
  end
  return made
end

-- plain.of(net, values): the tables, and what their keys stand for. values: what infer.static knows.
function plain.of(net, values)
  local kept, made = {}, {name = net.name, producer = net.producer, opsets = net.opsets, inputs = net.inputs,
                          outputs = net.outputs, constants = {}, nodes = {}, values = {}}
  for name, array in pairs(net.constants) do made.constants[name] = array_of(array, "constant " .. name, kept) end
  for i, node in ipairs(net.nodes) do
    local copy = {}
    for key, x in pairs(node) do copy[key] = x end
    copy.attributes = attributes_of(node, string.format("node %d, ", i), kept)
    made.nodes[i] = copy
  end
  for name, value in pairs(values) do
    made.values[name] = {name = name, type = value.type, shape = value.shape, constant = value.constant}
  end
  return made, kept
end

-- ---- Back --------------------------------------------------------------------------------------------------------

local function is_names(list)
  if type(list) ~= "table" then return false end
  local count = 0
  for key, name in pairs(list) do
    if math.type(key) ~= "integer" or type(name) ~= "string" then return false end
    count = count + 1
  end
  return count == #list
end

local function array_back(t, kept, what, fail)
  if type(t) ~= "table" or type(t.type) ~= "string" then
    fail("%s is no array: ms.array(shape, type, values) makes one", what)
  end
  if kept[t.of] then return kept[t.of] end
  local ok, array = pcall(ms.array, t.shape, t.type, t.values)
  if not ok then fail("%s: %s", what, tostring(array):sub(#ms.where() + 1)) end
  return array
end

local function node_back(node, what, kept, fail)
  if type(node) ~= "table" then fail("%s is no table", what) end
  if type(node.op) ~= "string" or node.op == "" then fail("%s has no operator, `op`", what) end
  for _, key in ipairs {"inputs", "outputs"} do
    if not is_names(node[key]) then fail("%s, %s: `%s` is a list of names", what, node.op, key) end
  end
  for _, key in ipairs {"attributes", "domain", "name"} do
    local want = key == "attributes" and "table" or "string"
    if node[key] ~= nil and type(node[key]) ~= want then fail("%s, %s: `%s` is a %s", what, node.op, key, want) end
  end
  node.domain, node.name, node.attributes = node.domain or "", node.name or "", node.attributes or {}
  for name, x in pairs(node.attributes) do
    local where = string.format("%s, %s: attribute %s", what, node.op, name)
    if type(x) == "table" and x.of then node.attributes[name] = kept[x.of]
    elseif type(x) == "table" and x.array then node.attributes[name] = array_back(x.array, kept, where, fail)
    elseif type(name) ~= "string" or (type(x) == "table" and (not is_plain(x) or #x == 0 and next(x) ~= nil)) then
      fail("%s is a number, a text, a list of either, or an array", where)
    end
  end
  return node
end

-- plain.back(t, kept, fail): the nodes and the constants; fail(format, …) raises what is wrong with them.
function plain.back(t, kept, fail)
  if type(t.nodes) ~= "table" or type(t.constants) ~= "table" then fail("`nodes` and `constants` are tables") end
  local nodes, constants = {}, {}
  for i, node in ipairs(t.nodes) do nodes[i] = node_back(node, "node " .. i, kept, fail) end
  for name, array in pairs(t.constants) do
    if type(name) ~= "string" then fail("constants are named by texts") end
    constants[name] = array_back(array, kept, "constant " .. name, fail)
  end
  return nodes, constants
end

return plain
