-- Attention that is spelled out, as a product of queries and keys, their softmax, and the product with values, becomes
-- one node, which is one function: it goes tile by tile over keys, and no scores are in memory. A scale may be at the
-- scores, the queries or the keys; masks are added or selected, of which constant ones that show each query a range of
-- keys around its place are comparisons of places; heads of keys and values may be repeated for several of queries.
-- What is between is read by nothing else.
local ms = msched
local common, match, infer = ms.load "lua.net.common", ms.load "lua.net.match", ms.load "lua.net.infer"
local pass = {name = "attention", text = "makes one node of attention that is spelled out", needs_values = true}

local LOW = -1e30 -- added to a score, or in its place, where each query sees a key: its share is 0, whatever the scores
local MOST_MASK = 1 << 24 -- elements of a constant mask that is looked at
local DEEPEST = 12 -- nodes between the products

-- ---- Shapes --------------------------------------------------------------------------------------------------------

local function equal(a, b) return common.text(a) == common.text(b) end
local function lead_of(shape) return table.move(shape, 1, #shape - 2, 1, {}) end
-- Of four dimensions: of these before the last two, with ones before them.
local function four(lead, rows, columns)
  local shape = {1, 1, rows, columns}
  for d = 1, #lead do shape[d + 2 - #lead] = lead[d] end
  return shape
end
local function keeps_matrix(from, to)
  return #from > 1 and #to > 1 and from[#from] == to[#to] and from[#from - 1] == to[#to - 1]
end

-- ---- Masks that are constant ---------------------------------------------------------------------------------------

-- The elements of a constant, which is computed where it is large; nil: it is none, or too large.
local function array_of(values, name)
  local value = values[name]
  if not value.constant or common.count(value.shape) > MOST_MASK then return nil end
  if value.array then return value.array end
  local arrays = {}
  for i, input in ipairs(value.step.inputs) do
    arrays[i] = array_of(values, input)
    if not arrays[i] then return nil end
  end
  local own
  for _, output in ipairs(value.step.outputs) do
    arrays[#arrays + 1] = ms.array(values[output].shape, values[output].type)
    if values[output] == value then own = arrays[#arrays] end
  end
  ms.build(value.step.func):run(table.unpack(arrays))
  return own
end

-- The keys that a query sees, of a list of whether it does: {left, right}, how far they are before and behind its place
-- at most, nil where they are all; nil: they are no such ranges, or a query sees none.
local function range_of(list, rows, columns)
  local left, right, sees = -math.huge, -math.huge, {}
  for at = 1, #list do
    if list[at] then
      local i, j = (at - 1) // columns % rows, (at - 1) % columns
      left, right, sees[i] = math.max(left, i - j), math.max(right, j - i), true
    end
  end
  for i = 0, rows - 1 do if not sees[i] then return nil end end
  for at = 1, #list do
    local i, j = (at - 1) // columns % rows, (at - 1) % columns
    if list[at] ~= (i - j <= left and j - i <= right) then return nil end
  end
  return {left = left < rows - 1 and left or nil, right = right < columns - 1 and right or nil}
end

local Finder = {}
Finder.__index = Finder

-- The range of a constant mask over scores of this shape, whose elements say so by `sees`; nil: it is none.
function Finder:range(name, shape, sees, key)
  local own, rows, columns = self.m:shape(name), shape[#shape - 1], shape[#shape]
  key = name .. "\0" .. key
  if self.ranges[key] == nil then
    local array = keeps_matrix(own, shape) and array_of(self.m.values, name)
    local list = array and array:tolist()
    for at = 1, list and #list or 0 do
      list[at] = sees(list[at])
      if list[at] == nil then
        list = nil
        break
      end
    end
    self.ranges[key] = list and range_of(list, rows, columns) or false
  end
  return self.ranges[key] or nil
end

local function sees_true(x) return x ~= 0 end
local function sees_false(x) return x == 0 end
local function sees_added(x)
  if x == 0 then return true end
  if x <= LOW then return false end
  return nil -- it is another number
end

-- ---- From the softmax to the product of queries and keys -----------------------------------------------------------

local function with(s, changes)
  local made = {depth = s.depth + 1}
  for key, value in pairs(s) do if key ~= "depth" then made[key] = value end end
  for key, value in pairs(changes) do made[key] = value end
  return made
end

-- What a node multiplies by a number, and the number; nil: it is no such product.
function Finder:scaled(node)
  local m = self.m
  for i = 1, 2 do
    local number = (node.op == "Mul" or node.op == "Div" and i == 1) and m:number(node.inputs[3 - i])
    local x = node.inputs[i]
    if number and m:same(x, node.outputs[1]) then return x, node.op == "Div" and 1 / number or number end
  end
end

-- The same, before that nothing else reads it: the value without its numbers, and their product.
function Finder:without_scale(name)
  local scale = 1.0
  while true do
    local node = self.m:inner(name)
    local x, number = nil, nil
    if node then x, number = self:scaled(node) end
    if not x then return name, scale end
    name, scale = x, scale * number
  end
end

-- Each gives what is found behind a node, of what was found before it; masks are met from the softmax on.
local STEPS = {}

function STEPS.MatMul(_, node, s) return with(s, {product = node}) end

function STEPS.Mul(self, node, s)
  local x, number = self:scaled(node)
  return x and self:find(x, with(s, {scale = s.scale * number, is_scaled = true}))
end
STEPS.Div = STEPS.Mul

function STEPS.Cast(self, node, s)
  local from, to = self.m:type(node.inputs[1]), self.m:type(node.outputs[1])
  return common.is_float(from) and to == common.wide_type(from) and self:find(node.inputs[1], with(s, {})) or nil
end

function STEPS.Reshape(self, node, s)
  local x = node.inputs[1]
  return keeps_matrix(self.m:shape(x), self.m:shape(node.outputs[1])) and self:find(x, with(s, {})) or nil
end
STEPS.Squeeze, STEPS.Unsqueeze, STEPS.Flatten = STEPS.Reshape, STEPS.Reshape, STEPS.Reshape

-- A mask stands where scores have this shape; what is scaled behind it would be scaled too.
function Finder:may_mask(node, s)
  local shape = self.m:shape(node.outputs[1])
  if s.is_scaled or s.shape and not equal(s.shape, shape) then return nil end
  return shape
end

function STEPS.Add(self, node, s)
  local shape = self:may_mask(node, s)
  for i = 1, shape and not s.bias_last and 2 or 0 do
    local x, bias = node.inputs[i], node.inputs[3 - i]
    if self.m:same(x, node.outputs[1]) and self.m:is_float(bias) then
      local found = self:find(x, with(s, {shape = shape, biases = {bias, table.unpack(s.biases)}}))
      if found then return found end
    end
  end
end

function STEPS.Where(self, node, s)
  local shape, m = self:may_mask(node, s), self.m
  for i = 2, shape and not s.seen and 3 or 0 do
    local x, masked = node.inputs[i], m:number(node.inputs[5 - i])
    local found = masked and m:same(x, node.outputs[1]) and
      self:find(x, with(s, {shape = shape, seen = node.inputs[1], is_hidden = i == 3, masked = masked,
                            bias_last = #s.biases > 0}))
    if found then return found end
  end
end

-- {product, scale, shape, biases, seen, is_hidden, masked, bias_last} of scores; nil: they are none.
function Finder:find(name, s)
  local node = s.depth < DEEPEST and self.m:inner(name)
  return node and STEPS[node.op] and STEPS[node.op](self, node, s) or nil
end

-- The softmax over the last dimension that a value is, which nothing else reads, cast or not.
function Finder:softmax(name)
  local node = self.m:inner(name)
  if node and node.op == "Cast" then
    local from, to = self.m:type(node.inputs[1]), self.m:type(name)
    if not common.is_float(to) or from ~= common.wide_type(to) then return nil end
    node = self.m:inner(node.inputs[1])
  end
  if not node or node.op ~= "Softmax" then return nil end
  local rank, is_one = #self.m:shape(node.inputs[1]), (node.opset or self.net.opsets[""]) >= 13
  local axis = node.attributes.axis or (is_one and -1 or 1)
  return (axis == -1 or axis == rank - 1) and node or nil
end

-- ---- Queries, keys, values -----------------------------------------------------------------------------------------

-- What is repeated for several heads of queries, by Unsqueeze, Expand or Tile, and Reshape; else the value itself.
function Finder:unrepeated(x)
  local m = self.m
  local whole = m:giver(x.name, "Reshape")
  local many = whole and m:giver(whole.inputs[1])
  if not many or many.op ~= "Expand" and many.op ~= "Tile" then return x end
  local from, to = m:shape(many.inputs[1]), m:shape(many.outputs[1])
  if #x.shape ~= 4 or #from ~= 5 or #to ~= 5 or from[3] ~= 1 then return x end
  for d = 1, 5 do if d ~= 3 and from[d] ~= to[d] then return x end end
  if not equal(x.shape, {to[1], to[2] * to[3], to[4], to[5]}) then return x end
  return {name = many.inputs[1], shape = {to[1], to[2], to[4], to[5]}}
end

-- Keys of a value that has them across: {name, shape [, perm, is_across]}, perm where they have to be transposed,
-- is_across where they were not before. Extents before the last two may change behind the transposition.
function Finder:keys(name)
  local m, shape = self.m, self.m:shape(name)
  local function swapped(perm)
    local last = #perm
    perm[last], perm[last - 1] = perm[last - 1], perm[last]
    return perm
  end
  local function ordered(rank)
    local perm = {}
    for d = 1, rank do perm[d] = d - 1 end
    return perm
  end
  local node = m:giver(name, "Reshape")
  node = node and keeps_matrix(m:shape(node.inputs[1]), shape) and m:giver(node.inputs[1], "Transpose")
    or m:giver(name, "Transpose")
  if not node then
    return {name = name, shape = swapped {table.unpack(shape)}, perm = swapped(ordered(#shape)), is_across = true}
  end
  local from = m:shape(node.inputs[1])
  local perm = swapped {table.unpack(node.attributes.perm or common.reversed(ordered(#from)))}
  local own = {}
  for d, axis in ipairs(perm) do own[d] = from[axis + 1] end
  return {name = node.inputs[1], shape = own, perm = not equal(perm, ordered(#from)) and perm or nil}
end

-- The heads of keys and values, where each is of one, or of several, heads of queries: {batch, heads}; nil: they are
-- not. lead: of scores where they are masked; products, own: where they are made, and where they are read.
local function shared(lead, products, own, k, v)
  local of_k, of_v = lead_of(k.shape), lead_of(v.shape)
  if common.count(of_k) == common.count(lead) and equal(of_v, own) and common.count(of_v) == common.count(lead) then
    return lead
  end
  if #lead ~= 2 or not equal(lead, products) or not equal(lead, own) then return nil end
  if not equal(of_k, of_v) or #of_k ~= 2 or of_k[1] ~= lead[1] then return nil end
  return of_k[2] > 0 and lead[2] % of_k[2] == 0 and of_k or nil
end

-- {q, k, v: {name, shape, perm}, lead, kv_lead, scale, …} of a product of shares and values; nil: it is no attention.
function Finder:attention(node)
  local m = self.m
  local softmax = node.op == "MatMul" and node.inputs[1] ~= node.inputs[2] and self:softmax(node.inputs[1])
  local a = softmax and self:find(softmax.inputs[1], {depth = 0, scale = 1.0, biases = {}})
  if not a then return nil end
  local q_name, q_scale = self:without_scale(a.product.inputs[1])
  local k_name, k_scale = self:without_scale(a.product.inputs[2])
  local k = self:keys(k_name)
  if not k.perm then
    local inner_scale
    k.name, inner_scale = self:without_scale(k.name)
    k_scale = k_scale * inner_scale
    k = self:unrepeated(k)
  end
  local q = {name = q_name, shape = m:shape(q_name)}
  local v = self:unrepeated {name = node.inputs[2], shape = m:shape(node.inputs[2])}
  if #q.shape < 2 or #k.shape < 2 or #v.shape < 2 then return nil end
  local t, products = m:type(q.name), lead_of(m:shape(a.product.outputs[1]))
  for _, x in ipairs {q, k, v} do
    if m:type(x.name) ~= t or x ~= q and m.values[x.name].constant then return nil end
  end
  if m:type(node.outputs[1]) ~= t or not common.is_float(t) then return nil end
  a.lead = a.shape and lead_of(a.shape) or products
  a.kv_lead = shared(a.lead, products, lead_of(m:shape(softmax.inputs[1])), k, v)
  local out = m:shape(node.outputs[1])
  if #a.lead > 2 or not a.kv_lead or not equal(lead_of(q.shape), products)
      or common.count(out) ~= common.count(a.lead) * q.shape[#q.shape - 1] * v.shape[#v.shape] then
    return nil
  end
  if common.count(q.shape) * common.count(k.shape) * common.count(v.shape) == 0 then return nil end
  a.q, a.k, a.v, a.scale = q, k, v, a.scale * q_scale * k_scale
  return a
end

-- ---- The node ------------------------------------------------------------------------------------------------------

-- Whether the sum of what is added to scores has the shape of one part, and all are of one type.
function Finder:bias_fits(a)
  local shape = {}
  a.bias_shape = shape
  for _, name in ipairs(a.biases) do
    local own = self.m:shape(name)
    local rank, both = math.max(#shape, #own), {}
    for d = 1, rank do both[d] = math.max(shape[d - rank + #shape] or 1, own[d - rank + #own] or 1) end
    if #shape > 0 and not equal(both, shape) and not equal(both, own) then return false end
    if self.m:type(name) ~= self.m:type(a.biases[1]) then return false end
    shape, a.bias_shape = both, both
  end
  return true
end

-- Masks that are ranges of places. Elsewhere scores may be negative infinity where nothing else is added to them.
function Finder:take_ranges(a)
  if a.seen then
    a.range = self:range(a.seen, a.shape, a.is_hidden and sees_false or sees_true, tostring(a.is_hidden))
    if a.range then a.seen = nil end
    if a.range and a.masked <= LOW and #a.biases == 0 then a.masked = -math.huge end
  elseif #a.biases == 1 then
    a.range = self:range(a.biases[1], a.shape, sees_added, "added")
    if a.range then a.biases, a.masked = {}, -math.huge end
  end
end

-- A value in other extents before its last two.
local function placed(added, x, lead)
  local want, name, shape = four(lead, x.shape[#x.shape - 1], x.shape[#x.shape]), x.name, x.shape
  if x.perm then name = added:node("Transpose", {name}, {perm = x.perm}) end
  if not x.perm and equal(added.m:shape(name), want) or x.perm and equal(shape, want) then return name end
  return added:node("Reshape", {name, added:constant({4}, "int64", want)})
end

local function write(added, node, a)
  local attributes, bias, seen = {scale = a.scale + 0.0}, "", a.seen or ""
  for i, name in ipairs(a.biases) do bias = i == 1 and name or added:node("Add", {bias, name}) end
  if a.seen and a.is_hidden then seen = added:node("Not", {seen}) end
  if a.range then attributes.left, attributes.right = a.range.left, a.range.right end
  if a.masked and a.masked > -math.huge then attributes.masked = a.masked + 0.0 end
  if a.bias_last then attributes.bias_last = 1 end
  local inputs = {placed(added, a.q, a.lead), placed(added, a.k, a.kv_lead), placed(added, a.v, a.kv_lead), bias, seen}
  while inputs[#inputs] == "" do inputs[#inputs] = nil end
  local name = added:node("Attention", inputs, attributes)
  added.nodes[#added.nodes].domain, added.at = "msched", #added.nodes
  local out = added.m:shape(node.outputs[1])
  if not equal(out, four(a.lead, out[#out - 1], out[#out])) then
    added:node("Reshape", {name, added:constant({#out}, "int64", out)})
  end
  added:gives(node.outputs[1])
end

-- ---- Where it pays -------------------------------------------------------------------------------------------------

local MOST_EMPTY = 8 -- of so many rows one may be empty in vectors
local SIDE = 4 -- keys that register tiles are made of
local ODD, LARGER = 256, 2 -- up to so many keys that are none of these, there are so many times as many queries
local FAR = 64 -- queries, where keys have to be transposed that were not

-- Whether it is no slower than parts, as measured on CPUs (guide, figures): for one query, whose keys are not copied
-- then, or for whole vectors of queries, or almost, where tiles of keys are whole. nil, and why not.
function pass.pays(a, t, target)
  local queries, keys = a.q.shape[#a.q.shape - 1], a.k.shape[#a.k.shape - 1]
  if a.k.is_across and queries < FAR then return nil, "keys would be transposed for few queries" end
  if queries == 1 then return true end
  local lanes = target.vector_bits // (t == "float64" and 64 or 32)
  local empty = -queries % lanes
  if queries < lanes or empty * MOST_EMPTY > queries then
    return nil, string.format("%d queries are no whole vectors of %d", queries, lanes)
  end
  if keys <= ODD and keys % SIDE ~= 0 and queries < LARGER * keys then
    return nil, string.format("%d keys are no multiple of %d", keys, SIDE)
  end
  return true
end

local RULES = {"fuse_online_softmax_tensor_core", "fuse_online_softmax_threads"} -- those of GPUs

-- Whether the rules of GPUs make one kernel of a function; the second result: whether it is few rows, so that they
-- leave it as it was too.
local function is_one_kernel(func, target)
  local context, space = ms.load "rules.targets".context(target), ms.load "rules.space"
  for _, name in ipairs(RULES) do
    local rule = space.rule(name, context)
    for _, block in ipairs(ms.schedule(func):block_names()) do
      local made = space.apply(rule, ms.schedule(func), block, context)
      if made[#made]:func():hash() ~= func:hash() then return true, made[1]:func():hash() == func:hash() end
    end
  end
  return false
end

-- The function of the node that was written.
local function function_of(added, a, t)
  local node, values = added.nodes[added.at], {}
  local function has(name, shape, type) if name then values[name] = {name = name, shape = shape, type = type} end end
  local function last_two(x) return x.shape[#x.shape - 1], x.shape[#x.shape] end
  has(node.inputs[1], four(a.lead, last_two(a.q)), t)
  has(node.inputs[2], four(a.kv_lead, last_two(a.k)), t)
  has(node.inputs[3], four(a.kv_lead, last_two(a.v)), t)
  if a.biases[1] then has(node.inputs[4], a.bias_shape, added.m:type(a.biases[1])) end
  if a.seen then has(node.inputs[5], added.m:shape(a.seen), "bool") end
  local view, y = infer.results_of({net = added.net, values = values, made = 0}, node)
  local params = {}
  for _, i in ipairs(view.used) do params[#params + 1] = view.tensors[i] end
  params[#params + 1] = y[1]
  return ms.te.func("attention", params)
end

-- Whether a GPU's kernel of the node that was written holds no scores in memory, and is not for fewer rows than keep it
-- busy, where parts have more threads. nil, and why not. known: results of is_one_kernel, by functions' hashes.
function pass.pays_there(added, a, t, target, known)
  local func = function_of(added, a, t)
  local hash = func:hash()
  known[hash] = known[hash] or {is_one_kernel(func, target)}
  local fused, has_few = table.unpack(known[hash])
  if not fused then
    return nil, string.format("no rule for %s makes one kernel of %s, %d queries by %d keys of %d and %d elements",
                              target.text, t, a.q.shape[#a.q.shape - 1], a.k.shape[#a.k.shape - 1],
                              a.q.shape[#a.q.shape], a.v.shape[#a.v.shape])
  end
  if has_few then
    return nil, string.format("it has %d rows, too few for %s without tensor cores",
                              common.count(a.lead) * a.q.shape[#a.q.shape - 1], target.text)
  end
  return true
end

-- Its sums are in another order.
function pass.is_left_out(options) return options.fixed_order end

function pass.run(net, values, _, options)
  local target = ms.target(options.target or "native")
  local is_gpu = target.arch ~= nil
  local finder = setmetatable({net = net, m = match.of(net, values), ranges = {}}, Finder)
  local known, notes = {}, {} -- notes: what stays in parts, and why
  local changed = net:replace_nodes(function(node, added)
    local a = node.domain == "" and #node.outputs == 1 and finder:attention(node)
    if not a then return false end
    local t, why = values[a.q.name].type, nil
    local pays = finder:bias_fits(a)
    if not pays then why = "its masks have no shape in common" end
    if pays and not is_gpu then pays, why = pass.pays(a, t, target) end
    if pays then
      finder:take_ranges(a)
      added.m = finder.m
      write(added, node, a)
      if is_gpu then pays, why = pass.pays_there(added, a, t, target, known) end
    end
    if not pays then
      added:take_back()
      notes[#notes + 1] = string.format("%s stays in parts: %s", node.outputs[1], why)
      return false
    end
    return true
  end)
  return changed, notes
end

return pass
