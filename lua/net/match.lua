-- Patterns of nodes, for passes: who gives a value, who reads it, its constant elements. It is of the graph as it was
-- when it was made; nodes that a pass adds meanwhile are not in it.
local common, network = msched.load "lua.net.common", msched.load "lua.net.network"
local match = {}

local Match = {}
Match.__index = Match

-- match.of(net, values): values: what infer.static knows.
function match.of(net, values)
  local links = net:links()
  return setmetatable({net = net, values = values, givers = links.givers, reads = links.lists,
                       fixed = net:fixed_names()}, Match)
end

-- The node of one output that gives a value, where its operator is ONNX's own of that name.
function Match:giver(name, op)
  local node = self.givers[name]
  if not node or node.domain ~= "" or op and node.op ~= op or #node.outputs ~= 1 then return nil end
  return node
end
-- The same, where nobody but one node reads the value: it may go with that node.
function Match:inner(name, op)
  local node = self:giver(name, op)
  return node and not self.fixed[name] and #self.reads[name] == 1 and node or nil
end
-- The value that a chain of identities passes on.
function Match:source(name)
  local node = self:giver(name, "Identity")
  while node do
    name = node.inputs[1]
    node = self:giver(name, "Identity")
  end
  return name
end
-- The only node that reads a value that may go.
function Match:reader(name)
  local list = self.reads[name] or {}
  return not self.fixed[name] and #list == 1 and list[1] or nil
end

function Match:shape(name) return self.values[name] and self.values[name].shape end
function Match:type(name) return self.values[name] and self.values[name].type end
function Match:is_float(name)
  local t = self:type(name)
  return t ~= nil and common.is_float(t)
end

-- Whether two values have the same extents and type.
function Match:same(a, b)
  local x, y = self.values[a], self.values[b]
  return x ~= nil and y ~= nil and x.type == y.type and network.shape_text(x.shape) == network.shape_text(y.shape)
end

-- A name for a constant of a pass that the network does not have.
function Match:fresh(of, what)
  local name = string.format("%s/%s", of, what)
  while self.values[name] or self.givers[name] or self.net.constants[name] do name = name .. "_" end
  return name
end

local MOST_LISTED = 4096 -- elements of a constant that is looked at

-- The elements of a constant, where they are few; or nil.
function Match:list(name)
  local value = name ~= "" and self.values[name]
  local array = value and value.constant and value.array
  return array and #array <= MOST_LISTED and array:tolist() or nil
end
-- The number that all elements of a constant are; or nil.
function Match:number(name)
  local list = self:list(name)
  if not list or #list == 0 then return nil end
  for _, x in ipairs(list) do if x ~= list[1] then return nil end end
  return list[1]
end

-- Whether x is about y, as constants in files are rounded.
function Match:about(x, y, type)
  local share = type and common.is_half(type) and 1e-3 or 1e-5
  return x ~= nil and math.abs(x - y) <= share * math.abs(y)
end

-- A product as its factors: the number that it is multiplied by, and the names of the others; nil: it is none. A
-- quotient by a number is a product too. root: the node, whose inner products are its own.
function Match:factors(root)
  local number, names = 1.0, {}
  local function add(name, inverse)
    local x, node = self:number(name), self:inner(name)
    if x and type(x) == "number" then number = inverse and number / x or number * x
    elseif inverse then return false
    elseif node and (node.op == "Mul" or node.op == "Div" and self:number(node.inputs[2])) then
      return add(node.inputs[1]) and add(node.inputs[2], node.op == "Div")
    else names[#names + 1] = name end
    return true
  end
  if root.domain ~= "" or root.op ~= "Mul" and root.op ~= "Div" then return nil end
  if not add(root.inputs[1]) or not add(root.inputs[2], root.op == "Div") then return nil end
  return number, names
end
-- The factors of a value that is read once, or the value itself.
function Match:factors_of(name)
  local node = self:inner(name)
  if node then
    local number, names = self:factors(node)
    if number then return number, names end
  end
  return 1.0, {name}
end

-- What is added to a number, at either side: the name, the number; nil: it is no such sum, or others read it.
function Match:shifted(name)
  local node = self:inner(name, "Add")
  for i = 1, node and 2 or 0 do
    local x = self:number(node.inputs[i])
    if x then return node.inputs[3 - i], x end
  end
end

return match
