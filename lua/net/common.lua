-- What the operators of networks share: the view of a node that each gets, and broadcasting, axes, and folded indices.
local ms = msched
local te, element_types = ms.te, ms.load "lua.lib.element_types"
local common = {}

local Node = {}
Node.__index = Node

-- A node as its operator sees it: inputs as tensors, attributes by type, values that must be known.
--   values    {name = {name, shape, type, array, layout}} of its inputs; known(value): its array, or nil
--   infer     takes a node that this one is made of, whose values are then known by their names
--   given     tensors by the names of values, which it reads where it would else read parameters
function common.view(node, opset, values, known, infer, given)
  common.count_tensors()
  return setmetatable({node = node, op = node.op, opset = opset, values = values, known = known, infer = infer,
                       given = given or {}, tensors = {}, used = {}, ranges = {}, tables = {}, made = 0}, Node)
end

-- Numbers that should be integers may be any floats in a file: %d shows them too.
local function filled(format, ...)
  local values = table.pack(...)
  for i = 1, values.n do
    if math.type(values[i]) == "float" then values[i] = string.format("%.14g", values[i]) end
  end
  return string.format((format:gsub("%%[dg]", "%%s")), table.unpack(values, 1, values.n))
end

function Node:fail(format, ...)
  error({refused = string.format("%s: %s", ms.load "lua.net.network".node_text(self.node), filled(format, ...))}, 0)
end

-- ---- Inputs and outputs ------------------------------------------------------------------------------------------

function Node:has(i) return (self.node.inputs[i] or "") ~= "" end
function Node:count() return #self.node.inputs end
function Node:wants(i) return (self.node.outputs[i] or "") ~= "" end

function Node:value(i)
  if not self:has(i) then self:fail("input %d is missing", i) end
  return self.values[self.node.inputs[i]]
    or self:fail("it reads %s, which nothing gives before it", self.node.inputs[i])
end
function Node:shape(i) return self:value(i).shape end
function Node:type(i) return self:value(i).type end
function Node:rank(i) return #self:shape(i) end

-- The tensor of an input, which the function made of the node then takes.
function Node:x(i)
  if not self.tensors[i] then
    local value = self:value(i)
    local tensor = self.given[value.name]
    if not tensor then
      tensor = common.placed(te.placeholder(common.in_memory(value.shape, value.layout), value.type, "x" .. i),
                             value.shape, value.layout)
    end
    self.tensors[i] = tensor
    self.used[#self.used + 1] = i
  end
  return self.tensors[i]
end

-- A tensor of elements that the operator itself knows, as tables of weights: a constant that its function takes.
function Node:table(array)
  local name = self:fresh "table"
  local T = self.given[name] or te.placeholder(array:shape(), array:type(), "table" .. #self.tables + 1)
  self.tables[#self.tables + 1] = {tensor = T, name = name, array = array}
  return T
end

-- A name for a value of the node's own; no other node has it, since names of values are given once.
function Node:fresh(what)
  self.made = self.made + 1
  local first = ""
  for _, name in ipairs(self.node.outputs) do if first == "" then first = name end end
  return string.format("%s/%s%d", first, what, self.made)
end

-- ---- Nodes that a node is made of --------------------------------------------------------------------------------

-- A value whose elements are known, whatever the network is given.
function common.constant(name, array)
  return {name = name, shape = array:shape(), type = array:type(), array = array, constant = true}
end

-- A constant of the node's own, by its name. varies: it is what tells nodes apart that else are equal.
function Node:constant(array, varies)
  local name = self:fresh "constant"
  self.values[name] = common.constant(name, array)
  self.values[name].varies = varies
  return name
end
-- The names of the first `outputs` values of a node of this operator, which stands in the place of this one. domain:
-- "msched" has operators that only others are made of.
function Node:add(op, inputs, attributes, outputs, domain)
  local names = {}
  for i = 1, outputs or 1 do names[i] = self:fresh(op:lower()) end
  self.infer {op = op, domain = domain or "", name = "", inputs = inputs, outputs = names,
              attributes = attributes or {}}
  return table.unpack(names)
end
-- The nodes of a graph; the names of its outputs, a list.
function Node:inline(graph, inputs)
  local nodes, constants, outputs = ms.load "lua.net.inline".graph(graph, inputs, self:fresh "step" .. "/")
  for _, c in ipairs(constants) do self.values[c.name] = common.constant(c.name, c.array) end
  self.infer()
  for _, node in ipairs(nodes) do self.infer(node) end
  for _, name in ipairs(outputs) do
    if not self.values[name] then self:fail("its graph gives %s, which nothing in it does", name) end
  end
  return outputs
end
-- A function takes few tensors, so that many values are joined in groups, and these again.
local MOST_JOINED = 48
local function in_groups(self, op, names, axis, domain)
  local made = {}
  for k = 1, #names, MOST_JOINED do
    made[#made + 1] = self:add(op, table.move(names, k, math.min(k + MOST_JOINED - 1, #names), 1, {}), {axis = axis}, 1,
                               domain)
  end
  return made
end
-- The name of values one after the other along an axis.
function Node:join(names, axis)
  while #names > 1 do names = in_groups(self, "Concat", names, axis) end
  return names[1]
end
-- The same along an axis of their own.
function Node:stack(names, axis) return self:join(in_groups(self, "Stack", names, axis, "msched"), axis) end
function Node.many(names) return #names > MOST_JOINED end
-- The array of a value by its name, where it is known before anything runs.
function Node:known_of(name) return self.known(self.values[name]) end
-- What an operator gives that is made of other nodes: the names of values for its outputs, in order.
function Node:gives(names) return {names = names} end

-- ---- What is known -----------------------------------------------------------------------------------------------

-- How a value would be known that comes of inputs of one element each alone: nil where it comes of others.
local function remedy(values, value)
  local seen, options, open = {}, {}, {value}
  while #open > 0 do
    local own = table.remove(open)
    if own and not seen[own] and not own.array then
      seen[own] = true
      if own.step then
        for _, name in ipairs(own.step.inputs) do open[#open + 1] = values[name] end
      elseif common.count(own.shape) ~= 1 or own.constant or #options == 4 then return nil
      else options[#options + 1] = string.format("--constant %s=NUMBER", own.name) end
    end
  end
  table.sort(options)
  return #options > 0 and table.concat(options, " ") or nil
end

-- An input whose elements must be known before anything runs: its array; its elements as a list; the only one.
function Node:array(i)
  local value = self:value(i)
  local array = self.known(value)
  if not array then
    local how = remedy(self.values, value)
    self:fail("input %d, %s, depends on data; it must be known before the network runs%s", i, value.name,
              how and ", as by " .. how or "")
  end
  return array
end
function Node:list(i) return self:array(i):tolist() end
function Node:scalar(i)
  local list = self:list(i)
  if #list ~= 1 then self:fail("input %d has %d elements, not 1", i, #list) end
  return list[1]
end
-- The same where the input is given, else an attribute of that name (older versions), else what is said.
function Node:ints_of(i, name, otherwise)
  if self:has(i) then return self:list(i) end
  return self:ints(name, otherwise)
end

local function look_at(self, i, range)
  local value = self:value(i)
  range.input, self.ranges[#self.ranges + 1] = value.name, range
  local wrong = value.array and common.wrong_in(value.array, range)
  if wrong then self:fail("%s", wrong) end
end
-- Every element of an input is an index in [low, high], or `except`: looked at where it is known, and when the network
-- runs. first, every: only elements from the first on, counted from 0, and then so many further, are.
function Node:check_range(i, low, high, except, first, every)
  look_at(self, i, {low = low, high = high, except = except or low, first = first or 0, every = every or 1})
end
-- Every element of an input of floats is a finite number, looked at as indices are.
function Node:check_finite(i)
  local most = 0x1.fffffffffffffp1023
  look_at(self, i, {finite = true, low = -most, high = most, except = most, first = 0, every = 1})
end
-- The range of an input or a constant whose elements are of a type of fewer bits than a byte.
function common.narrow_range(name, of)
  local limits = common.NARROW_LIMITS[of]
  return {input = name, narrow = of, low = limits[1], high = limits[2], except = limits[1], first = 0, every = 1}
end
-- What is wrong with an array that a range is of; nil: nothing.
function common.wrong_in(array, range)
  local bad = common.out_of_range(array, range)
  if not bad then return nil end
  if range.finite then return string.format("%s of %s is no finite number", bad, range.input) end
  return string.format("%s %s of %s is not in [%d, %d]%s", range.narrow and "element" or "index", bad, range.input,
                       range.low, range.high, range.narrow and ", as numbers of " .. range.narrow .. " are" or "")
end
-- The element of an array that is not in a range; nil: all are.
function common.out_of_range(array, range)
  local list = array:tolist()
  for at = range.first + 1, #list, range.every do
    local x = list[at]
    if not (x >= range.low and x <= range.high) and x ~= range.except then return x end
  end
end
-- An array whose elements are in ranges: those that are not are others that are.
function common.within(array, ranges)
  local list, low, high, except = array:tolist(), {}, {}, {}
  for _, range in ipairs(ranges) do
    for at = range.first + 1, #list, range.every do
      low[at], high[at] = math.max(low[at] or range.low, range.low), math.min(high[at] or range.high, range.high)
      except[at] = range.except
    end
  end
  for at, x in ipairs(list) do
    local from = low[at] and (high[at] >= 0 and math.max(low[at], 0) or low[at])
    if from and high[at] >= from and (x < low[at] or x > high[at]) and x ~= except[at] then
      list[at] = from + (x - from) // 1 % (high[at] - from + 1)
    end
  end
  return ms.array(array:shape(), array:type(), list)
end
-- The same of the last dimension, whose elements are indices in dimensions from `from` on of a shape.
function Node:check_places(i, shape, from)
  local own = self:shape(i)
  local deep = own[#own]
  for k = 1, deep do self:check_range(i, -shape[from + k - 1], shape[from + k - 1] - 1, nil, k - 1, deep) end
end

-- ---- Attributes --------------------------------------------------------------------------------------------------

local function attribute(self, name, otherwise, what, is)
  local x = self.node.attributes[name]
  if x == nil then
    if otherwise == nil then self:fail("attribute %s is missing", name) end
    return otherwise
  end
  if not is(x) then self:fail("attribute %s is no %s", name, what) end
  return x
end
local function is_list(of)
  return function(x)
    if type(x) ~= "table" then return false end
    for _, y in ipairs(x) do
      if not of(y) then return false end
    end
    return true
  end
end
local function is_int(x) return math.type(x) == "integer" end
local function is_number(x) return type(x) == "number" end
function Node:int(name, otherwise) return attribute(self, name, otherwise, "integer", is_int) end
function Node:float(name, otherwise) return attribute(self, name, otherwise, "number", is_number) end
function Node:text(name, otherwise)
  return attribute(self, name, otherwise, "text", function(x) return type(x) == "string" end)
end
function Node:ints(name, otherwise) return attribute(self, name, otherwise, "list of integers", is_list(is_int)) end
function Node:flag(name, otherwise) return self:int(name, otherwise) ~= 0 end
function Node:floats(name, otherwise) return attribute(self, name, otherwise, "list of numbers", is_list(is_number)) end
function Node:texts(name, otherwise)
  return attribute(self, name, otherwise, "list of texts", is_list(function(x) return type(x) == "string" end))
end
function Node:graph(name)
  return attribute(self, name, nil, "graph", function(x) return type(x) == "table" and x.nodes ~= nil end)
end
-- A text that is one of some.
function Node:choice(name, otherwise, ...)
  local x = self:text(name, otherwise)
  for _, y in ipairs {...} do if x == y then return x end end
  self:fail("%s is `%s`, none of %s", name, x, table.concat({...}, ", "))
end
function Node:has_attribute(name) return self.node.attributes[name] ~= nil end

local ONNX_TYPES = element_types.by "onnx"
local OTHER_TYPES = {[0] = "no type", [8] = "string", [14] = "complex64", [15] = "complex128",
                     [18] = "float8e4m3fnuz", [20] = "float8e5m2fnuz", [21] = "uint4", [22] = "int4",
                     [23] = "float4e2m1", [24] = "float8e8m0", [25] = "uint2", [26] = "int2"}
-- The type that ONNX has by number.
function Node:type_of(number)
  return ONNX_TYPES[number]
    or self:fail("elements of %s, which no array has", OTHER_TYPES[number] or "type " .. tostring(number))
end

-- ---- Axes and shapes ---------------------------------------------------------------------------------------------

-- An axis from 1, of what ONNX counts from 0, or from the end below 0.
function Node:axis(axis, rank)
  if rank == 0 then self:fail "its input is a scalar, which has no axis" end
  if not math.tointeger(axis) or axis < -rank or axis >= rank then
    self:fail("axis %d is not one of %d", axis, rank)
  end
  return (axis < 0 and axis + rank or axis) + 1
end
function Node:axes(list, rank)
  local set = {}
  for _, axis in ipairs(list) do
    local a = self:axis(axis, math.max(rank, 1)) -- of a scalar, which is reduced to itself, the only one
    if set[a] then self:fail("axis %d is named twice", axis) end
    set[a] = true
  end
  return set
end

-- The words of a text, as a set.
function common.set(text)
  local words = {}
  for word in text:gmatch "%S+" do words[word] = true end
  return words
end

function common.count(shape, first, last)
  local n = 1
  for d = first or 1, last or #shape do n = n * shape[d] end
  return n
end
function common.reversed(list)
  local made = {}
  for i = #list, 1, -1 do made[#made + 1] = list[i] end
  return made
end
function common.text(shape) return "[" .. table.concat(shape, ", ") .. "]" end

common.is_float = element_types.is_float
function common.is_half(t) return t == "float16" or t == "bfloat16" end
function common.is_byte(t) return t == "float8_e4m3fn" or t == "float8_e5m2" end
local function is_short(t) return common.is_half(t) or common.is_byte(t) end
-- The least and the greatest number of the types that networks are quantized to.
common.LIMITS = {}
for _, t in ipairs {"uint8", "int8", "uint16", "int16"} do
  local of = element_types.of[t]
  common.LIMITS[t] = {math.tointeger(of.low), math.tointeger(of.high)}
end
common.NARROW_LIMITS = {uint4 = {0, 15}, int4 = {-8, 7}} -- of bits in a byte
function common.is_unsigned(t) return t:find "^uint" ~= nil end

-- ---- Tensors -----------------------------------------------------------------------------------------------------

-- A layout is a list of dimensions: where it is {1, 3, 4, 2}, the second dimension in memory is the third of the
-- tensor. With `block`, the dimension `of`, that of channels, is in parts of so many elements, which stand last: {1, 2,
-- 3, 4, block = 16, of = 2} has five dimensions in memory. It shows nowhere in what an operator says: a tensor that has
-- a layout is indexed, and has a shape, as ONNX has it.
local Placed = {}

-- Indices that were made of a block's and that within it, and are taken apart without a division.
local parts = setmetatable({}, {__mode = "k"})
local function joined(block, outer, inner)
  local index = outer * block + inner
  parts[index] = {block, outer, inner}
  return index
end
local function apart(index, block)
  local known = type(index) == "table" and parts[index]
  if known and known[1] == block then return known[2], known[3] end
  return te.floordiv(index, block), te.floormod(index, block)
end

Placed.__index = function(t, key)
  if type(key) ~= "table" then return rawget(t.tensor, key) end
  local at, layout = {}, t.layout
  for d, of in ipairs(layout) do
    if layout.block and of == layout.of then at[d], at[#layout + 1] = apart(key[of], layout.block)
    else at[d] = key[of] end
  end
  return t.tensor[at]
end

-- Extents in memory of those that a tensor has.
function common.in_memory(shape, layout)
  if not layout then return shape end
  local extents = {}
  for d, of in ipairs(layout) do extents[d] = shape[of] end
  if layout.block then
    for d, of in ipairs(layout) do if of == layout.of then extents[d] = shape[of] // layout.block end end
    extents[#extents + 1] = layout.block
  end
  return extents
end

-- index - from, of blocks where these divide from.
function common.behind(index, from)
  if from == 0 then return index end
  local known = type(index) == "table" and parts[index]
  if not known or from % known[1] ~= 0 then return index - from end
  return joined(known[1], known[2] - from // known[1], known[3])
end

-- index < edge, of whole blocks where they divide the edge.
function common.below(index, edge)
  local known = type(index) == "table" and parts[index]
  if known and edge % known[1] == 0 then return te.lt(known[2], edge // known[1]) end
  return te.lt(index, edge)
end

-- The layout of X if it has its channels in blocks, else nil.
local function blocked(X)
  local layout = getmetatable(X) == Placed and X.layout
  return layout and layout.block and layout or nil
end
common.blocked = blocked

-- The extents of axes over channels of X: one, or two where X has these in blocks, for common.reduce, which gives the
-- index of both.
function common.channels(X, count)
  local layout = blocked(X)
  return layout and count % layout.block == 0 and {count, layout.block} or count
end

-- first * count + index, where blocks of X divide both: they stay apart.
function common.channel_of(X, first, count, index)
  local layout = blocked(X)
  if not (layout and count % layout.block == 0) then return first * count + index end
  local outer, inner = apart(index, layout.block)
  return joined(layout.block, first * (count // layout.block) + outer, inner)
end

-- The opposite: which of so many channels each an index is in, and where among these.
function common.part_of(X, index, count)
  local layout = blocked(X)
  if not (layout and count % layout.block == 0) then
    return te.floordiv(index, count), te.floormod(index, count)
  end
  local outer, inner = apart(index, layout.block)
  local blocks = count // layout.block
  return te.floordiv(outer, blocks), joined(layout.block, te.floormod(outer, blocks), inner)
end

-- A tensor whose extents are in memory, as one with the given shape; and the tensor again.
function common.placed(tensor, shape, layout)
  if not layout then return tensor end
  return setmetatable({tensor = tensor, shape = shape, layout = layout}, Placed)
end
function common.unplaced(X) return getmetatable(X) == Placed and X.tensor or X end

-- with_layout(layout, f, …): f, of which all tensors that are computed meanwhile, and have as many dimensions, get the
-- layout.
local current
function common.with_layout(layout, f, ...)
  local before = current
  current = layout
  local results = table.pack(pcall(f, ...))
  current = before
  if not results[1] then error(results[2], 0) end
  return table.unpack(results, 2, results.n)
end

function common.layout() return current end

local counter = 0 -- of a node's tensors: equal nodes make equal functions
function common.count_tensors() counter = 0 end

-- The layout of a tensor that is computed; nil: as it is written. What blocks do not divide has another one.
local function layout_for(shape)
  local layout = current and #current == #shape and current or nil
  if layout and layout.block and shape[layout.of] % layout.block ~= 0 then return layout.otherwise end
  return layout
end

-- te.compute in the current layout; f gets a list of indices.
local function computed(shape, f)
  counter = counter + 1
  local layout = layout_for(shape)
  local axes = {}
  for d = 1, #shape do axes[d] = "i" .. (layout and layout[d] or d) end
  if layout and layout.block then axes[#axes + 1] = "i" .. layout.of .. "_in" end
  local tensors = table.pack(te.compute(common.in_memory(shape, layout), function(...)
    if not layout then return f {...} end
    local indices, given = {}, {...}
    for d, of in ipairs(layout) do
      indices[of] = layout.block and of == layout.of and joined(layout.block, given[d], given[#given]) or given[d]
    end
    return f(indices)
  end, "t" .. counter, axes))
  for i = 1, tensors.n do tensors[i] = common.placed(tensors[i], shape, layout) end
  return table.unpack(tensors, 1, tensors.n)
end

-- compute(shape, type, f): f of the list of indices; where nothing is in it, f is not asked.
function common.compute(shape, t, f)
  local empty = common.count(shape) == 0
  return (computed(shape, function(indices)
    if empty then return te.const(common.is_float(t) and 0.0 or 0, t) end
    return te.cast(f(indices), t)
  end))
end

-- f of the tensor of a list that is at a place, from 0 on: halves by turns, so that many are a tree and not a chain.
function common.choose(tensors, first, last, place, f)
  if first == last then return f(tensors[first]) end
  local middle = (first + last) // 2
  return te.if_then_else(te.lt(place, middle), common.choose(tensors, first, middle, place, f),
                         common.choose(tensors, middle + 1, last, place, f))
end

-- A tensor that is reduced: f(indices, reduced) of axes with these extents; by te.sum or another reducer. An extent may
-- be what common.channels gives.
function common.reduce(shape, extents, reducer, f)
  local axes, reduced = {}, {}
  for d, extent in ipairs(extents) do
    if type(extent) == "table" then
      local outer, inner = te.reduce_axis(extent[1] // extent[2], "r" .. d),
        te.reduce_axis(extent[2], "r" .. d .. "_in")
      axes[#axes + 1], axes[#axes + 2], reduced[d] = outer, inner, joined(extent[2], outer, inner)
    else
      axes[#axes + 1] = te.reduce_axis(extent, "r" .. d)
      reduced[d] = axes[#axes]
    end
  end
  if #axes == 0 then
    axes[1] = te.reduce_axis(1, "r1")
    reduced[1] = axes[1]
  end
  return computed(shape, function(indices) return reducer(f(indices, reduced), axes) end)
end

-- The shape that all have in common, aligned at their ends.
function common.broadcast(n, shapes)
  local rank, shape = 0, {}
  for _, s in ipairs(shapes) do rank = math.max(rank, #s) end
  for d = 1, rank do
    shape[d] = 1
    for _, s in ipairs(shapes) do
      local extent = s[d - rank + #s] or 1
      if shape[d] ~= extent and extent ~= 1 then
        if shape[d] ~= 1 then n:fail("shapes %s and %s do not broadcast", common.text(shapes[1]), common.text(s)) end
        shape[d] = extent
      end
    end
  end
  return shape
end

common.at = ms.load "lua.lib.ops.common".broadcast_element

-- An index of all dimensions folded into one, and back.
function common.fold(indices, shape)
  local flat
  for d, i in ipairs(indices) do
    if flat then flat = flat * shape[d] + i else flat = i end
  end
  return flat or 0
end
function common.unfold(flat, shape)
  local indices, step = {}, 1
  for d = #shape, 1, -1 do
    if shape[d] == 1 then indices[d] = 0
    else
      indices[d] = step == 1 and flat or te.floordiv(flat, step)
      if d > 1 and common.count(shape, 1, d - 1) > 1 then indices[d] = te.floormod(indices[d], shape[d]) end
    end
    step = step * shape[d]
  end
  return indices
end

local function part(list, first, last) return table.move(list, first, last, 1, {}) end

-- Where dimensions end together: the fewest of one shape from a place on, and of another, that have as many elements.
local function ends_together(from, first, to, at)
  local a, b = from[first], to[at] or 1
  while a ~= b do
    if a < b then first = first + 1; a = a * from[first]
    else at = at + 1; b = b * to[at] end
  end
  return first, at
end

-- The indices of an element of one shape in another with as many elements, dimensions that end together by themselves.
local function reindexed(indices, shape, to)
  if common.count(to) == 0 then return common.unfold(common.fold(indices, shape), to) end
  local list, d, at = {}, 1, 1
  while d <= #to do
    local last, last_at = ends_together(to, d, shape, at)
    local flat = common.fold(part(indices, at, last_at), part(shape, at, last_at))
    table.move(common.unfold(flat, part(to, d, last)), 1, last - d + 1, d, list)
    d, at = last + 1, last_at + 1
  end
  return list
end

-- The same elements in other extents.
function common.reshaped(X, shape)
  return common.compute(shape, X.type, function(indices) return X[reindexed(indices, shape, X.shape)] end)
end
function common.copy(X) return common.compute(X.shape, X.type, function(i) return X[i] end) end
function common.narrow(Y, t) -- in the type t, which it may have already
  return Y.type == t and Y or common.compute(Y.shape, t, function(i) return Y[i] end)
end

-- An index as data have it: counted from the end below 0, and within the extent whatever it is.
function common.index(i, extent)
  i = te.select(te.lt(i, 0), i + extent, i)
  return te.cast(te.maximum(te.minimum(i, extent - 1), 0), "int32")
end

-- Passes that compute convolutions in another order than they say are left out, by the options of passes.run, where
-- that order is asked for, and for GPUs.
function common.keeps_convolutions(options)
  return options.fixed_order or ms.target(options.target or "native").arch ~= nil
end

-- Floats of 16 or 8 bits are computed with as float32.
function common.wide(x) return is_short(x.type) and te.cast(x, "float32") or x end
function common.wide_type(t) return is_short(t) and "float32" or t end

return common
