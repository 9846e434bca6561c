-- Layouts over a whole network. Convolutions and pools, and what is elementwise between them, have their images in one
-- of these: `second`, as ONNX has them, channels behind the batch; `last`, channels behind the extents, along which
-- vectors run; `blocked`, channels in parts of a vector, each behind the extents. Weights have the order in which their
-- convolutions read them. Where a value is wanted in another order, one node copies it, which fuses like others where
-- all have one layout.
local ms = msched
local infer, set = ms.load "lua.net.infer", ms.load "lua.net.common".set
local layout = {NAMES = {"auto", "last", "second", "blocked"}}
function layout.is_known(name) return set(table.concat(layout.NAMES, " "))[name] ~= nil end

local WINDOWS = set "Conv ConvInteger ConvTranspose MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool"
-- beside all that is elementwise
local FOLLOW =
  set "BatchNormalization QuantizeLinear DequantizeLinear OfSums Requantized LRN Concat Slice Pad Identity Dropout"
local WHOLE = set "ConvTranspose LRN Slice" -- whose channels are in no blocks
local WINOGRAD = set "WinogradInput WinogradOutput"

-- ---- Orders ------------------------------------------------------------------------------------------------------

-- Dimensions in memory: the channels of an image behind its extents; of weights [out, in, …] …, in, out.
local function channels_last(rank)
  local list = {1}
  for d = 3, rank do list[#list + 1] = d end
  list[#list + 1] = 2
  return list
end
local CHANNELS = {Conv = {2, 1}, ConvInteger = {2, 1}, ConvTranspose = {1, 2}} -- in and out, of weights
local function weights_last(op, rank)
  if not CHANNELS[op] then return nil end
  local list = {}
  for d = 3, rank do list[#list + 1] = d end
  return table.move(CHANNELS[op], 1, 2, #list + 1, list)
end

-- The order that a label is of a value with such extents; nil: as written. Blocks that do not divide the channels are
-- none.
local function order_of(label, shape, block)
  if label == "second" then return nil end
  if label == "last" or shape[2] % block ~= 0 then return channels_last(#shape) end
  local list = {block = block, of = 2, otherwise = channels_last(#shape)}
  for d = 1, #shape do list[d] = d end
  return list
end

local function key_of(order)
  return order and table.concat(order, "_") .. (order.block and "/" .. order.block or "") or ""
end
layout.key = key_of

-- Whether the bytes of a value in an order are those of it as written: no dimension of several elements stands before
-- one that is before it there. The part of a dimension within a block is right behind it.
local function same_bytes(shape, order)
  local last = 0
  local function add(place, extent)
    if extent ~= 1 then
      if place < last then return false end
      last = place
    end
    return true
  end
  for _, d in ipairs(order) do
    local blocked = order.block and d == order.of
    if not add(d, blocked and shape[d] // order.block or shape[d]) then return false end
  end
  return not order.block or add(order.of + 0.5, order.block)
end

-- Whether values in two orders have other bytes.
local function differ(shape, a, b)
  a, b = a and not same_bytes(shape, a) and a or nil, b and not same_bytes(shape, b) and b or nil
  return key_of(a) ~= key_of(b)
end
layout.differ = differ

-- The elements of a block, one vector of the target's: of 32 bits, whatever the type. GPUs load 16 bytes at a time.
function layout.block(target)
  local bits = not target.arch and target.vector_bits or 0
  return bits >= 64 and bits // 32 or 4
end

-- ---- What nodes take and give ------------------------------------------------------------------------------------

local function is_image(value) return value and #value.shape >= 3 end

-- "window", "follows", "winograd", or nil: its values are as written.
local function kind_of(values, node)
  local out = values[node.outputs[1]]
  if not out or #node.outputs > 1 and node.outputs[2] ~= "" then return nil end
  if WINOGRAD[node.op] then return "winograd" end
  if WINDOWS[node.op] then return is_image(out) and "window" or nil end
  return (infer.family(node) == "elementwise" or FOLLOW[node.op]) and "follows" or nil
end
layout.kind = kind_of

-- Whether channels of a node in blocks stay whole blocks in all that it reads and gives.
local function takes_blocks(values, node, block)
  local out, op = values[node.outputs[1]].shape, node.op
  if #out < 3 or WHOLE[op] or WINOGRAD[op] or out[2] % block ~= 0 then return false end
  if CHANNELS[op] then
    local groups, x, w = node.attributes.group or 1, values[node.inputs[1]].shape, values[node.inputs[2]].shape
    if groups == 1 then return true end
    if node.attributes.shuffled then return false end
    if w[2] == 1 then return w[1] == groups end
    return w[2] % block == 0 and w[1] // groups % block == 0 and x[2] % block == 0
  end
  for _, name in ipairs(node.inputs) do
    local value = name ~= "" and values[name]
    local broadcast = op ~= "Concat" and value and value.shape[2] == 1
    if value and #value.shape == #out and value.shape[2] % block ~= 0 and not broadcast then return false end
  end
  return true
end

-- The label that a node has where one is asked for: those that do not take blocks have channels last.
local function allowed(values, node, label, block)
  return label == "blocked" and not takes_blocks(values, node, block) and "last" or label
end
layout.allowed = allowed

local Chooser = {}
Chooser.__index = Chooser

-- The name of a value in an order, nil: as it is written. What has other bytes is copied once; constants, which are
-- copied ahead, in any case.
function Chooser:value_in(name, order)
  if name == "" or key_of(self.layouts[name]) == key_of(order) then return name end
  local value = self.values[name]
  if not value.constant and not differ(value.shape, self.layouts[name], order) then return name end
  local base = self.base[name] or name
  local key = base .. "\0" .. key_of(order)
  if key_of(self.layouts[base]) == key_of(order) then return base end
  if not self.copies[key] then
    local copy = string.format("%s in order %s", base, order and key_of(order) or "as written")
    self.nodes[#self.nodes + 1] = {op = "Identity", domain = "", name = "", inputs = {base}, outputs = {copy},
                                   attributes = {}, alone = self.apart}
    self.copies[key], self.layouts[copy], self.base[copy] = copy, order, base
  end
  return self.copies[key]
end

local function is_constant(values, name) return values[name].constant end

-- What of a node's inputs has the label's order, as its result has: that, and those of inputs by position.
local function followed(values, node, label, block, layouts)
  local out, orders = values[node.outputs[1]], {}
  local order = order_of(label, out.shape, block)
  for i, name in ipairs(node.inputs) do
    local value = name ~= "" and values[name]
    if value and #value.shape == #out.shape then
      local own = order_of(label, value.shape, block)
      if own and same_bytes(value.shape, own) then own = layouts and layouts[name] end
      orders[i] = own
    end
  end
  if order and same_bytes(out.shape, order) then order = nil end
  return order, orders
end

-- The order in which a node that has a kind gives what it gives, nil: as written; and those of its inputs by position.
-- layouts: of values, those whose bytes are as written in any order keep theirs.
function layout.orders(values, node, label, block, layouts)
  if kind_of(values, node) == "follows" then return followed(values, node, label, block, layouts) end
  if label == "second" then return nil, {} end
  local order, image = order_of(label, values[node.outputs[1]].shape, block),
    order_of(label, values[node.inputs[1]].shape, block)
  if node.op == "WinogradInput" then return nil, {image} end
  if node.op == "WinogradOutput" then return order, {} end
  return order, {image, weights_last(node.op, #values[node.outputs[1]].shape)}
end

-- The label of the last input that is no constant and in another order than written; nil: all are as written.
function Chooser:label_of_inputs(values, node)
  local rank, label = #values[node.outputs[1]].shape, nil
  for _, name in ipairs(node.inputs) do
    local value = name ~= "" and values[name]
    local own = value and self.layouts[name]
    if own and #value.shape == rank and not is_constant(values, name) then label = own.block and "blocked" or "last" end
  end
  return label
end

-- As layout.orders, of any node; notes its label.
function Chooser:wanted(values, node)
  local kind = kind_of(values, node)
  if node.op == "Gemm" and (node.attributes.transB or 0) ~= 0 and is_constant(values, node.inputs[2]) then
    return nil, {[2] = {2, 1}}
  end
  if not kind then return nil, {} end
  local label = self.labels[node]
  if not label then label = kind == "follows" and self:label_of_inputs(values, node) or "second" end
  label = allowed(values, node, label, self.block)
  self.used[node] = label
  return layout.orders(values, node, label, self.block, self.layouts)
end

-- A network with these nodes in such layouts, which it notes. values: what infer.static knows of them. labels: of
-- nodes; those elementwise that have none are in the order of what they take. block: layout.block of what runs it.
-- apart: copies are fused with nothing. Gives it; the labels that nodes have; and of its nodes those that they were
-- made of.
function layout.arrange(net, values, labels, block, apart)
  local chooser =
    setmetatable({values = values, layouts = {}, nodes = {}, copies = {}, base = {}, labels = labels, used = {},
                  block = block, apart = apart}, Chooser)
  local outputs, made_of = {}, {}
  for _, output in ipairs(net.outputs) do outputs[output.name] = true end
  for _, node in ipairs(net.nodes) do
    local order, orders = chooser:wanted(values, node)
    local made = {}
    made_of[made] = node
    for key, value in pairs(node) do made[key] = value end
    made.inputs = {}
    for i, name in ipairs(node.inputs) do made.inputs[i] = chooser:value_in(name, orders[i]) end
    made.outputs = table.move(node.outputs, 1, #node.outputs, 1, {})
    if order and outputs[node.outputs[1]] then -- what the network gives is as written
      local own = node.outputs[1] .. " in order " .. key_of(order)
      made.outputs[1], chooser.layouts[own] = own, order
      -- who reads it so takes this
      chooser.copies[node.outputs[1] .. "\0" .. key_of(order)], chooser.base[own] = own, node.outputs[1]
      chooser.nodes[#chooser.nodes + 1] = made
      chooser.nodes[#chooser.nodes + 1] = {op = "Identity", domain = "", name = "", inputs = {own},
                                           outputs = {node.outputs[1]}, attributes = {}, alone = chooser.apart}
    else
      chooser.nodes[#chooser.nodes + 1] = made
      chooser.layouts[node.outputs[1]] = order
    end
  end
  local result = setmetatable({}, getmetatable(net))
  for key, value in pairs(net) do result[key] = value end
  result.nodes, result.layouts = chooser.nodes, chooser.layouts
  return result, chooser.used, made_of
end

-- The labels of convolutions, pools and their like where all have one; others follow.
function layout.uniform(net, values, label, block)
  local labels = {}
  for _, node in ipairs(net.nodes) do
    local kind = kind_of(values, node)
    if kind and kind ~= "follows" then labels[node] = allowed(values, node, label, block) end
  end
  return labels
end

return layout
