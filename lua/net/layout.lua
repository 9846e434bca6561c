-- Layouts over a whole network: channels last where convolutions and pools are, as vectors run along them; what is
-- elementwise between them follows, and weights have the order in which their convolutions read them. Where a value is
-- wanted in another order, one node copies it, which fuses like others.
local ms = msched
local infer, set = ms.load "lua.net.infer", ms.load "lua.net.common".set
local layout = {}

local WINDOWS = set "Conv ConvInteger ConvTranspose MaxPool AveragePool LpPool GlobalAveragePool GlobalMaxPool"
-- beside all that is elementwise
local FOLLOW =
  set "BatchNormalization QuantizeLinear DequantizeLinear OfSums Requantized LRN Concat Slice Pad Identity Dropout"

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

local function key_of(order) return order and table.concat(order, "_") or "" end

-- Whether it is of more than one row or column, so that its order in memory matters.
local function same_bytes(shape, order)
  local last = 0
  for _, d in ipairs(order) do
    if shape[d] ~= 1 then
      if d < last then return false end
      last = d
    end
  end
  return true
end

local Chooser = {}
Chooser.__index = Chooser

-- The name of a value in an order, nil: as it is written. What has another is copied once.
function Chooser:value_in(name, order)
  if name == "" or key_of(self.layouts[name]) == key_of(order) then return name end
  local base = self.base[name] or name
  local key = base .. "\0" .. key_of(order)
  if key_of(self.layouts[base]) == key_of(order) then return base end
  if not self.copies[key] then
    local copy = string.format("%s in order %s", base, order and key_of(order) or "as written")
    self.nodes[#self.nodes + 1] = {op = "Identity", domain = "", name = "", inputs = {base}, outputs = {copy},
                                   attributes = {}}
    self.copies[key], self.layouts[copy], self.base[copy] = copy, order, base
  end
  return self.copies[key]
end

local function is_constant(values, name) return values[name].constant end

-- The order in which a node is to give what it gives, nil: as written; and those of its inputs by position.
function Chooser:wanted(values, node)
  local out = values[node.outputs[1]]
  if not out or #node.outputs > 1 and node.outputs[2] ~= "" then return nil, {} end
  local rank = #out.shape
  if node.op == "WinogradInput" then return nil, {channels_last(#values[node.inputs[1]].shape)} end
  if node.op == "WinogradOutput" then return channels_last(rank), {} end
  if WINDOWS[node.op] and rank >= 3 then
    local order = channels_last(rank)
    return order, {order, weights_last(node.op, rank)}
  end
  if node.op == "Gemm" and (node.attributes.transB or 0) ~= 0 and is_constant(values, node.inputs[2]) then
    return nil, {[2] = {2, 1}}
  end
  if not (infer.family(node) == "elementwise" or FOLLOW[node.op]) then return nil, {} end
  local follow, orders = false, {}
  for i, name in ipairs(node.inputs) do
    local value = name ~= "" and values[name]
    if value and self.layouts[name] and #value.shape == rank and not is_constant(values, name) then
      follow = self.layouts[name]
    end
  end
  if not follow then return nil, {} end
  for i, name in ipairs(node.inputs) do
    local value = name ~= "" and values[name]
    if value and #value.shape == rank and not same_bytes(value.shape, follow) then orders[i] = follow
    elseif value and #value.shape == rank then orders[i] = self.layouts[name] end
  end
  return follow, orders
end

-- Rewrites the nodes of a network so, and notes its layouts. values: what infer.static knows of them.
function layout.choose(net, values)
  local chooser = setmetatable({layouts = {}, nodes = {}, copies = {}, base = {}}, Chooser)
  local outputs = {}
  for _, output in ipairs(net.outputs) do outputs[output.name] = true end
  for _, node in ipairs(net.nodes) do
    local order, orders = chooser:wanted(values, node)
    local made = {}
    for key, value in pairs(node) do made[key] = value end
    made.inputs = {}
    for i, name in ipairs(node.inputs) do made.inputs[i] = chooser:value_in(name, orders[i]) end
    made.outputs = table.move(node.outputs, 1, #node.outputs, 1, {})
    if order and same_bytes(values[node.outputs[1]].shape, order) and not WINDOWS[node.op] then order = nil end
    if order and outputs[node.outputs[1]] then -- what the network gives is as written
      local own = node.outputs[1] .. " in order " .. key_of(order)
      made.outputs[1], chooser.layouts[own] = own, order
      -- who reads it so takes this
      chooser.copies[node.outputs[1] .. "\0" .. key_of(order)], chooser.base[own] = own, node.outputs[1]
      chooser.nodes[#chooser.nodes + 1] = made
      chooser.nodes[#chooser.nodes + 1] = {op = "Identity", domain = "", name = "", inputs = {own},
                                           outputs = {node.outputs[1]}, attributes = {}}
    else
      chooser.nodes[#chooser.nodes + 1] = made
      chooser.layouts[node.outputs[1]] = order
    end
  end
  net.nodes, net.layouts = chooser.nodes, chooser.layouts
  return net
end

return layout
