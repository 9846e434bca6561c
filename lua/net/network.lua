-- Networks: graphs of operators, from ONNX's files. A network is a table to walk and to change:
--   name, producer, opsets         its name, who wrote it, the version of each domain's operators
--   inputs, outputs                lists of {name, type, shape}; what stands in a shape is an extent, or the name of
--   one
--   constants                      arrays by the name of their value
--   nodes                          a list of {op, domain, name, inputs, outputs, attributes}, in an order that can be
--                                  run
--   layouts                        of values that are not in memory as their shapes say: lists of dimensions
--                                  (common.lua)
--   narrow                         ranges of inputs whose elements are of fewer bits than the bytes they are in
--   varies                         of a network that is planned, the constants that tell nodes apart which else are
--                                  equal (Node:constant)
-- Values are strings; "" stands for one that is left out. net:check() brings the nodes into order after a change.
local ms = msched
local inline = ms.load "lua.net.inline"
local network = {}

local Network = {}
Network.__index = Network

local OLDEST, NEWEST = 7, 28 -- versions of the operators of ONNX itself, whose meaning is known
local element_types = ms.load "lua.lib.element_types".of

-- What is wrong with a network, all of it at once, one a line.
local MOST_SHOWN = 20
local function refuse(net, problems)
  local shown = table.move(problems, 1, math.min(#problems, MOST_SHOWN), 1, {})
  for i, problem in ipairs(shown) do shown[i] = ms.visible(problem) end
  if #problems > MOST_SHOWN then shown[#shown + 1] = string.format("… and %d more", #problems - MOST_SHOWN) end
  local text = #problems == 1 and shown[1]
    or string.format("%d problems:\n  %s", #problems, table.concat(shown, "\n  "))
  error(string.format("%s%s: %s", ms.where(), net.path or net.name, text), 0)
end
network.refuse = refuse

-- An array of zeros. what: it is for, as messages say.
function network.array(net, what, shape, type)
  local ok, array = pcall(ms.array, shape, type)
  if not ok then refuse(net, {string.format("%s: %s", what, (tostring(array):gsub("^[^ ]*:%d+: ", "")))}) end
  return array
end

-- A network of such tables.
function network.of(t)
  t.narrow = t.narrow or {}
  return setmetatable(t, Network)
end
function network.is(x) return getmetatable(x) == Network end

-- net:run and net:static are loaded when they are first called.
function Network:run(...) return ms.load "lua.net.run".run(self, ...) end
function Network:plan(...) return ms.load "lua.net.tune".plan(self, ...) end
function Network:static(...) return ms.load "lua.net.infer".static(self, ...) end

-- A node as messages name it: by its name, and where it has none by its first output.
function network.node_text(node)
  local operator = node.domain ~= "" and node.domain .. "." .. node.op or node.op
  if node.name ~= "" then return string.format("%s %s", operator, node.name) end
  return string.format("%s that gives %s", operator, node.outputs[1] or "nothing")
end
local node_text = network.node_text

-- The values that a node reads, those that graphs in it read from around it too.
function network.reads(node)
  local captured = inline.captured(node)
  if #captured == 0 then return node.inputs end
  return table.move(captured, 1, #captured, #node.inputs + 1, table.move(node.inputs, 1, #node.inputs, 1, {}))
end

-- ---- Whether it is whole -----------------------------------------------------------------------------------------

local function add(problems, format, ...) problems[#problems + 1] = string.format(format, ...) end

local function check_values(net, problems)
  for _, list in ipairs {"inputs", "outputs"} do
    local kind = list:sub(1, -2)
    for i, value in ipairs(net[list]) do
      if value.name == "" then add(problems, "%s %d has no name", kind, i) end
      if value.other then add(problems, "%s %s is %s: networks have tensors only", kind, value.name, value.other)
      elseif value.type and not element_types[value.type] then
        add(problems, "%s %s is of %s, which no array has", kind, value.name, value.type)
      elseif not value.type and list == "inputs" then add(problems, "input %s has no type", value.name) end
      for d, extent in ipairs(value.shape or {}) do
        if math.type(extent) == "integer" and extent < 0 then
          add(problems, "%s %s: extent %d is %d", kind, value.name, d, extent)
        end
      end
    end
  end
end

-- Who gives each value: true for inputs and constants, or the node. What is given twice is refused.
local function givers_of(net, problems)
  local givers, seen = {}, {}
  for _, input in ipairs(net.inputs) do
    if seen[input.name] then add(problems, "two inputs are named %s", input.name) end
    seen[input.name], givers[input.name] = true, true
  end
  for name in pairs(net.constants) do givers[name] = true end
  for _, node in ipairs(net.nodes) do
    for _, name in ipairs(node.outputs) do
      if name ~= "" and givers[name] then add(problems, "%s is given twice, by %s too", name, node_text(node)) end
      if name ~= "" then givers[name] = givers[name] or node end
    end
  end
  return givers
end

-- Nodes so that each comes after those that it reads from; the stack is ours, since chains are long.
local function order(net, givers, problems)
  local sorted, state = {}, {}
  local function push(stack, node)
    state[node] = "open"
    stack[#stack + 1] = {node = node, at = 0, reads = network.reads(node)}
  end
  for _, first in ipairs(net.nodes) do
    local stack = {}
    if not state[first] then push(stack, first) end
    while #stack > 0 do
      local top = stack[#stack]
      top.at = top.at + 1
      local name = top.reads[top.at]
      local giver = name ~= "" and givers[name]
      if not name then
        state[top.node], sorted[#sorted + 1], stack[#stack] = "done", top.node, nil
      elseif type(giver) == "table" and state[giver] == "open" then
        add(problems, "%s reads %s, which depends on it: a cycle", node_text(top.node), name)
        return sorted
      elseif type(giver) == "table" and not state[giver] then
        push(stack, giver)
      end
    end
  end
  return sorted
end

-- That a network is whole: every value is given once, by an input, a constant or a node; no node waits for itself.
-- Brings the nodes into an order that can be run.
function Network:check()
  local problems = {}
  check_values(self, problems)
  local givers = givers_of(self, problems)
  for _, node in ipairs(self.nodes) do
    if node.op == "" then
      add(problems, "a node has no operator: the one that gives %s", node.outputs[1] or "nothing")
    end
    for _, name in ipairs(network.reads(node)) do
      if name ~= "" and not givers[name] then
        add(problems, "%s reads %s, which nothing gives", node_text(node), name)
      end
    end
  end
  for _, output in ipairs(self.outputs) do
    if output.name ~= "" and not givers[output.name] then
      add(problems, "output %s is given by nothing", output.name)
    end
  end
  if #self.outputs == 0 then add(problems, "it has no outputs") end
  local sorted = order(self, givers, problems)
  if #problems > 0 then refuse(self, problems) end
  self.nodes = sorted
  return self
end

-- A copy to change: its nodes and lists are its own; arrays and attributes are shared, as nothing writes in them.
function Network:copy()
  local function list(t) return table.move(t, 1, #t, 1, {}) end
  local made = setmetatable({}, Network)
  for key, value in pairs(self) do made[key] = value end
  made.nodes, made.constants, made.layouts = {}, {}, {}
  for i, node in ipairs(self.nodes) do
    local copied = {}
    for key, value in pairs(node) do copied[key] = value end
    copied.inputs, copied.outputs = list(node.inputs), list(node.outputs)
    made.nodes[i] = copied
  end
  for name, array in pairs(self.constants) do made.constants[name] = array end
  for name, order in pairs(self.layouts) do made.layouts[name] = order end
  return made
end

-- ---- Walking -----------------------------------------------------------------------------------------------------

-- The node that gives a value; nil: it is an input or a constant.
function Network:giver(name)
  for _, node in ipairs(self.nodes) do
    for _, output in ipairs(node.outputs) do
      if output == name and name ~= "" then return node end
    end
  end
end

-- The nodes that read a value.
function Network:readers(name)
  local list = {}
  for _, node in ipairs(self.nodes) do
    for _, input in ipairs(network.reads(node)) do
      if input == name and list[#list] ~= node then list[#list + 1] = node end
    end
  end
  return list
end

local Links = {}
Links.__index = Links
local NONE = {}
function Links:giver(name) return self.givers[name] end
function Links:readers(name) return self.lists[name] or NONE end

function Links:add(node)
  for _, name in ipairs(node.outputs) do if name ~= "" then self.givers[name] = self.givers[name] or node end end
  for _, name in ipairs(network.reads(node)) do
    local readers = self.lists[name] or {}
    if readers[#readers] ~= node then readers[#readers + 1] = node end
    self.lists[name] = readers
  end
end

-- Before a node changes.
function Links:remove(node)
  for _, name in ipairs(node.outputs) do if self.givers[name] == node then self.givers[name] = nil end end
  for _, name in ipairs(network.reads(node)) do
    local readers = self.lists[name] or NONE
    for i = #readers, 1, -1 do if readers[i] == node then table.remove(readers, i) end end
  end
end

-- All givers and readers of values, for a pass that asks for many, which scans the nodes once: links:giver(name) and
-- links:readers(name), in no order once they change. A node that changes is removed before, and added behind.
function Network:links()
  local links = setmetatable({givers = {}, lists = {}}, Links)
  for _, node in ipairs(self.nodes) do links:add(node) end
  return links
end

local Added = {}
Added.__index = Added
local ADDED_OPSET = 17 -- what the operators of added nodes mean

-- Nodes and constants that a pass adds for what gives `of`, under names that say so: added:node(op, inputs [,
-- attributes]) goes to the end of the list `nodes`, net.nodes unless said; added:constant(shape, type, values);
-- added:along(vector, elements, rank, axis). Each gives the value's name.
-- added:gives(name): the last node gives this value.
function Network:adds(of, nodes)
  return setmetatable({net = self, of = of, nodes = nodes or self.nodes, constants = {}, count = 0}, Added)
end

-- added:take_back() undoes all of that, where `nodes` is a list of its own.

-- Puts nodes in the place of others: rewrite(node, added) is true where added.nodes has those for a node. Returns
-- whether any was.
function Network:replace_nodes(rewrite)
  local list, changed = {}, false
  for _, node in ipairs(self.nodes) do
    local added = self:adds(node.outputs[1], {})
    if rewrite(node, added) then
      table.move(added.nodes, 1, #added.nodes, #list + 1, list)
      changed = true
    else
      list[#list + 1] = node
    end
  end
  self.nodes = list
  return changed
end

local function name_added(added, what)
  added.count = added.count + 1
  return string.format("%s of %s, %d", what, added.of, added.count)
end

function Added:node(op, inputs, attributes)
  local name = name_added(self, op)
  table.insert(self.nodes, {op = op, domain = "", name = "", inputs = inputs, outputs = {name},
                            attributes = attributes or {}, opset = ADDED_OPSET})
  return name
end

function Added:gives(name) self.nodes[#self.nodes].outputs = {name} end

function Added:constant(shape, type, values)
  local name = name_added(self, "constant")
  self.net.constants[name] = ms.array(shape, type, values)
  table.insert(self.constants, name)
  return name
end

-- Nothing of what was added stays.
function Added:take_back()
  for _, name in ipairs(self.constants) do self.net.constants[name] = nil end
  for at = #self.nodes, 1, -1 do self.nodes[at] = nil end
end

-- A vector of so many elements along an axis, from 0, of so many.
function Added:along(vector, elements, rank, axis)
  local shape = {}
  for d = 1, rank do shape[d] = d - 1 == axis and elements or 1 end
  return self:node("Reshape", {vector, self:constant({rank}, "int64", shape)})
end

-- The names of values that have to stay as they are: what the network gives, and what graphs in its nodes' attributes
-- read, which see its values by their names. A set.
function Network:fixed_names()
  local names = {}
  for _, output in ipairs(self.outputs) do names[output.name] = true end
  for _, node in ipairs(self.nodes) do
    for _, name in ipairs(inline.captured(node)) do names[name] = true end
  end
  return names
end

-- How often each operator stands in it.
function Network:operators()
  local counts = {}
  for _, node in ipairs(self.nodes) do
    local name = node.domain ~= "" and node.domain .. "." .. node.op or node.op
    counts[name] = (counts[name] or 0) + 1
  end
  return counts
end

-- ---- As text -----------------------------------------------------------------------------------------------------

local function shape_text(shape)
  if not shape then return "[…]" end
  local parts = {}
  for d, extent in ipairs(shape) do parts[d] = extent == "" and "?" or tostring(extent) end
  return "[" .. table.concat(parts, ", ") .. "]"
end
network.shape_text = shape_text

local function value_text(value)
  return string.format("%s: %s%s", value.name, value.type or value.other or "?", shape_text(value.shape))
end

local MOST_LISTED = 16
local function attribute_text(x)
  if type(x) == "string" then return string.format("%q", x) end
  if type(x) ~= "table" then return tostring(x) end
  if x.nodes then return string.format("graph of %d nodes", #x.nodes) end
  if x.unread then return "?" end
  local parts = {}
  for i = 1, math.min(#x, MOST_LISTED) do parts[i] = attribute_text(x[i]) end
  if #x > MOST_LISTED then parts[#parts + 1] = "…" end
  return "[" .. table.concat(parts, ", ") .. "]"
end

local function node_line(node, layouts)
  local attributes = {}
  for _, key in ipairs(ms.sorted_keys(node.attributes)) do
    attributes[#attributes + 1] = key .. " = " .. attribute_text(node.attributes[key])
  end
  local inputs = {}
  for i, name in ipairs(node.inputs) do inputs[i] = name == "" and "_" or name end
  local outputs = {}
  for i, name in ipairs(node.outputs) do outputs[i] = name == "" and "_" or name end
  local operator = node.domain ~= "" and node.domain .. "." .. node.op or node.op
  local order = layouts[node.outputs[1]]
  return string.format("  %s = %s(%s)%s%s%s", table.concat(outputs, ", "), operator, table.concat(inputs, ", "),
                       #attributes > 0 and " {" .. table.concat(attributes, ", ") .. "}" or "",
                       order and " in order " .. ms.load "lua.net.layout".key(order) or "",
                       node.name ~= "" and "  # " .. node.name or "")
end

-- What it is, a line a value and a node.
function Network:text()
  local lines, opsets, constants, elements = {}, {}, ms.sorted_keys(self.constants), 0
  for _, domain in ipairs(ms.sorted_keys(self.opsets)) do
    opsets[#opsets + 1] = string.format("%s %d", domain == "" and "opset" or domain, self.opsets[domain])
  end
  for _, name in ipairs(constants) do elements = elements + #self.constants[name] end
  local function count(n, noun) return string.format("%d %s%s", n, noun, n == 1 and "" or "s") end
  lines[1] = string.format("network %s: %s, %s of %s, %s%s", self.name ~= "" and self.name or "without a name",
                           count(#self.nodes, "node"), count(#constants, "constant"), count(elements, "element"),
                           table.concat(opsets, ", "), self.producer ~= "" and ", by " .. self.producer or "")
  for _, value in ipairs(self.inputs) do lines[#lines + 1] = "  input " .. value_text(value) end
  for _, name in ipairs(constants) do
    local array = self.constants[name]
    lines[#lines + 1] = string.format("  constant %s: %s%s", name, array:type(), shape_text(array:shape()))
  end
  for _, node in ipairs(self.nodes) do lines[#lines + 1] = node_line(node, self.layouts) end
  for _, value in ipairs(self.outputs) do lines[#lines + 1] = "  output " .. value_text(value) end
  for i, line in ipairs(lines) do lines[i] = ms.visible(line) end -- names are others' texts, and may have lines
  return table.concat(lines, "\n")
end
Network.__tostring = Network.text

-- ---- From files --------------------------------------------------------------------------------------------------

local function check_opsets(net, functions, problems)
  for _, f in ipairs(functions) do
    local own = f.opsets[""]
    if own and (own < OLDEST or own > NEWEST) then
      add(problems, "function %s uses version %d of ONNX's operators; %d to %d are known", f.name, own, OLDEST, NEWEST)
    end
  end
  local version, own = net.opsets[""], next(net.opsets) == nil
  for _, node in ipairs(net.nodes) do own = own or node.domain == "" end
  if not version and own then add(problems, "it does not say which version of ONNX's operators it uses")
  elseif not version then net.opsets[""] = NEWEST -- of what others stand for: all are of other domains
  elseif version < OLDEST or version > NEWEST then
    add(problems, "it uses version %d of ONNX's operators; %d to %d are known", version, OLDEST, NEWEST)
  end
end

-- Extents that are given: whole shapes of inputs by name, and single ones by the name that stands in the shapes.
local function give_shapes(net, options, problems)
  local shapes, dims, inputs, extents = options.shapes or {}, options.dims or {}, {}, {}
  for _, input in ipairs(net.inputs) do
    inputs[input.name] = input
    for _, extent in ipairs(input.shape or {}) do
      if type(extent) == "string" and extent ~= "" then extents[extent] = true end
    end
    local given = shapes[input.name]
    if given and input.shape and #given ~= #input.shape then
      add(problems, "input %s has %d dimensions, and a shape of %d is given", input.name, #input.shape, #given)
    elseif given then
      for d, extent in ipairs(given) do
        local own = input.shape and input.shape[d]
        if math.type(own) == "integer" and own ~= extent then
          add(problems, "extent %d of input %s is %d, and %d is given", d, input.name, own, extent)
        end
      end
      input.shape = given
    end
    for d, extent in ipairs(input.shape or {}) do
      if dims[extent] then input.shape[d] = dims[extent] end
    end
  end
  for _, name in ipairs(ms.sorted_keys(shapes)) do
    if not inputs[name] then
      add(problems, "a shape is given for %s, which is no input%s", name,
          ms.load "lua.lib.nearest".meant(name, ms.sorted_keys(inputs)))
    end
  end
  for _, name in ipairs(ms.sorted_keys(dims)) do
    if not extents[name] then
      add(problems, "%s is given as %d, and no extent of an input has that name%s", name, dims[name],
          ms.load "lua.lib.nearest".meant(name, ms.sorted_keys(extents)))
    end
  end
end

-- Inputs that are constants of one number each, once all extents are known.
local function give_constants(net, numbers, problems)
  local kept, inputs = {}, {}
  for _, input in ipairs(net.inputs) do
    local number, open = numbers[input.name], input.shape == nil
    inputs[input.name] = true
    for _, extent in ipairs(input.shape or {}) do open = open or math.type(extent) ~= "integer" end
    if number == nil then kept[#kept + 1] = input
    elseif open then add(problems, "constant %s: its extents are not known", input.name)
    else
      local ok, array = pcall(ms.array, input.shape, input.type, number)
      if ok then net.constants[input.name] = array
      else add(problems, "constant %s: %s", input.name, (tostring(array):gsub("^[^ ]*: ", ""))) end
    end
  end
  for _, name in ipairs(ms.sorted_keys(numbers)) do
    if not inputs[name] then
      add(problems, "a constant is given for %s, which is no input%s", name,
          ms.load "lua.lib.nearest".meant(name, ms.sorted_keys(inputs)))
    end
  end
  net.inputs = kept
end

-- The extents that are still names, by name; a network without any can be run.
function Network:open_extents()
  local names = {}
  for _, input in ipairs(self.inputs) do
    for d, extent in ipairs(input.shape or {}) do
      if type(extent) == "string" then
        local name = extent ~= "" and extent or string.format("extent %d of %s", d, input.name)
        names[name] = true
      end
    end
  end
  return ms.sorted_keys(names)
end

-- Some exporters write -1 for an extent that is not known: it has no name.
local function open_unknown(values)
  for _, value in ipairs(values) do
    for d, extent in ipairs(value.shape or {}) do if extent == -1 then value.shape[d] = "" end end
  end
end

-- Nodes that quantize to fewer bits than the least type of arrays has are of an operator of their own, which no pass
-- takes for another. packed: the type of values that have it: constants, inputs and outputs.
local NARROW, NUMBERS = {[21] = "uint4", [22] = "int4"}, {uint4 = 21, int4 = 22}
local function mark_narrow(nodes, packed)
  for _, node in ipairs(nodes) do
    local is = node.op == "QuantizeLinear" and (node.domain == "" or node.domain == "com.microsoft")
    local narrow = is
      and (packed[node.inputs[3] or ""] or packed[node.outputs[1]] or NARROW[node.attributes.output_dtype])
    if narrow then
      node.op, node.domain, node.attributes.bits = "QuantizeNarrow", "msched", narrow
      node.attributes.output_dtype = nil
    end
    local like = node.op == "CastLike" and node.domain == "" and packed[node.inputs[2] or ""]
    if like then node.op, node.inputs, node.attributes.to = "Cast", {node.inputs[1]}, NUMBERS[like] end -- refused there
    for _, graph in pairs(node.attributes) do
      if type(graph) == "table" and graph.nodes then
        local own = setmetatable({}, {__index = packed})
        for _, c in ipairs(graph.initializers or {}) do own[c.name] = c.packed or false end
        mark_narrow(graph.nodes, own)
      end
    end
  end
end

-- Inputs and outputs of four bits are arrays of bytes, an element each. packed: as mark_narrow takes it. narrow: the
-- names and types of those that were.
local IN_BYTES = {uint4 = "uint8", int4 = "int8"}
local function widen_narrow(values, packed, narrow)
  for _, value in ipairs(values) do
    local bytes = IN_BYTES[value.type]
    if bytes then
      packed[value.name], narrow[value.name] = value.type, value.type
      value.type = bytes
    end
  end
end

-- Looks at elements of inputs of four bits. arrays: by name.
function network.check_narrow(net, arrays)
  for _, range in ipairs(net.narrow) do
    local wrong = arrays[range.input] and ms.load "lua.net.common".wrong_in(arrays[range.input], range)
    if wrong then refuse(net, {wrong}) end
  end
end

-- A network of a graph as read_onnx gives it.
local function of_graph(model, path)
  local graph = model.graph
  local net = network.of {path = path, name = graph.name, producer = model.producer, opsets = model.opsets, inputs = {},
                          outputs = graph.outputs, constants = {}, layouts = {}, packed = {}, narrow = {}}
  local problems, packed = {}, {}
  open_unknown(net.outputs)
  open_unknown(graph.inputs)
  net.nodes = inline.functions(graph.nodes, model.functions, problems)
  check_opsets(net, model.functions, problems)
  for i, initializer in ipairs(graph.initializers) do
    if initializer.name == "" then add(problems, "constant %d has no name", i) end
    if net.constants[initializer.name] then add(problems, "two constants are named %s", initializer.name) end
    net.constants[initializer.name], packed[initializer.name] = initializer.array, initializer.packed
    if initializer.packed then net.packed[initializer.array] = true end
  end
  local narrow = {}
  widen_narrow(graph.inputs, packed, narrow)
  widen_narrow(graph.outputs, packed, {})
  mark_narrow(net.nodes, packed)
  for _, input in ipairs(graph.inputs) do -- older files list constants among the inputs
    if not net.constants[input.name] then
      net.inputs[#net.inputs + 1] = input
      if narrow[input.name] then
        table.insert(net.narrow, ms.load "lua.net.common".narrow_range(input.name, narrow[input.name]))
      end
    end
  end
  return net, problems
end

-- ms.onnx(path [, {shapes = {x = {1, 3, 224, 224}}, dims = {batch = 1}, constants = {rate = 16000}}]): the network of a
-- file.
function network.read(path, options)
  if type(path) ~= "string" or path:find("\0", 1, true) then
    error(ms.where() .. "ms.onnx takes a path, without a zero byte", 0)
  end
  options = ms.options(options, "shapes:table dims:table constants:table")
  local where = ms.where()
  local ok, model = pcall(ms.read_onnx, path)
  if not ok then
    local message = tostring(model)
    if message:sub(1, #where) == where then message = message:sub(#where + 1) end
    error(string.format("%s%s: %s", where, path, message), 0)
  end
  local net, problems = of_graph(model, path)
  give_shapes(net, options or {}, problems)
  give_constants(net, options and options.constants or {}, problems)
  network.check_narrow(net, net.constants)
  if #problems > 0 then refuse(net, problems) end
  return net:check()
end

return network
