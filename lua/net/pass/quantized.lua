-- Products and convolutions between DequantizeLinear nodes, by constant weights, become those of the quantized
-- integers: sums of 32 bits, exact, which the scales then multiply in float32. A zero point of the activations goes
-- into the bias, as what it adds is the same for each result of a channel: its product with the sum of the channel's
-- weights. Where weights have a zero point, the product takes both (lua/net/operators/products.lua). What is left
-- to compute of constants is nodes, which are folded when the network is planned.
local pass = {name = "quantized", text = "multiplies quantized integers where only their real values were multiplied",
              needs_values = true}

local BYTES = {int8 = true, uint8 = true}
local LONGEST = (1 << 31) // (2 * 255 * 128) -- sums of so many products, and what a zero point takes from them, are 32
                                             -- bits
local LEAST, MOST = {int8 = -128, uint8 = 0}, {int8 = 127, uint8 = 255}

local Rewriter = {}
Rewriter.__index = Rewriter

-- The numbers of a constant; nil: it is none.
function Rewriter:numbers(name)
  local value = self.values[name]
  return value and value.constant and value.array and value.array:tolist() or nil
end

-- What gives a value by dequantizing bytes: {bytes, scale, scales, zero, zeros, axis, constant, shape}; zero: the one
-- zero point, or nil where they differ: zeros, then. nil: none does, or blocks have scales of their own.
function Rewriter:dequantized(name)
  local node = self.links:giver(name)
  if not node or node.op ~= "DequantizeLinear" or node.domain ~= "" or (node.attributes.block_size or 0) ~= 0 then
    return nil
  end
  local bytes, scales = self.values[node.inputs[1]], self:numbers(node.inputs[2])
  if not bytes or not BYTES[bytes.type] or not scales or self.values[node.inputs[2]].type ~= "float32"
      or self.values[name].type ~= "float32" then
    return nil
  end
  local zeros = (node.inputs[3] or "") ~= "" and self:numbers(node.inputs[3]) or {0}
  if not zeros then return nil end
  local zero, differ = zeros[1] or 0, false
  for _, z in ipairs(zeros) do
    if z < LEAST[bytes.type] or z > MOST[bytes.type] then return nil end
    differ = differ or z ~= zero
  end
  local axis, rank = node.attributes.axis or 1, #bytes.shape
  return {bytes = node.inputs[1], scale = node.inputs[2], scales = #scales, zero = not differ and zero or nil,
          zeros = differ and zeros or nil, axis = axis < 0 and axis + rank or axis, constant = bytes.constant,
          shape = bytes.shape}
end

-- Activations of one scale, and constant weights of one, or one a channel, that lie along this dimension (from 0); so
-- are zero points.
function Rewriter:operands(node, channels)
  local x, w = self:dequantized(node.inputs[1]), self:dequantized(node.inputs[2])
  if not x or not w or x.scales ~= 1 or x.zeros or not w.constant then return nil end
  local axis, products = channels(#w.shape), 1
  for d, extent in ipairs(w.shape) do products = products * (d == axis + 1 and 1 or extent) end
  local longest = w.zero == 0 and LONGEST or LONGEST // 2
  if products >= longest or w.zeros and #w.zeros ~= w.scales then return nil end
  if w.scales > 1 and (w.axis ~= axis or w.scales ~= w.shape[axis + 1]) then return nil end
  return x, w
end

-- Sums of products of integers; `weights` of bytes, as `w` says. Where these have zero points, those of both are taken.
function Rewriter:sums(op, image, weights, x, w, attributes)
  local inputs = {image, weights}
  if w.zero ~= 0 then
    inputs[3] = self.added:constant({}, self.values[x.bytes].type, {x.zero})
    inputs[4] = self.added:constant(w.zeros and {#w.zeros} or {}, self.values[w.bytes].type, w.zeros or {w.zero})
  end
  return self.added:node(op, inputs, attributes)
end

-- A vector of the channels, in the place that they have in a result of so many dimensions, of which `after` come
-- behind.
function Rewriter:along(name, channels, after)
  return after == 0 and name or self.added:along(name, channels, after + 1, 0)
end

-- What becomes of sums of 32 bits: less what the zero point adds to each channel, times the scales, plus the bias.
function Rewriter:finish(node, sums, x, w, weights, options)
  local scale = self.added:node("Mul", {x.scale, w.scale})
  if w.scales > 1 then scale = self:along(scale, options.channels, options.after) end
  if x.zero ~= 0 and w.zero == 0 then
    local each =
      self.added:node("ReduceSum", {self.added:node("Cast", {weights}, {to = 6}),
                                    self.added:constant({#options.summed}, "int64", options.summed)}, {keepdims = 0})
    local shift = self.added:node("Mul", {each, self.added:constant({}, "int32", {x.zero})})
    sums = self.added:node("Sub", {sums, self:along(shift, options.channels, options.after)})
  end
  local real = self.added:node("Cast", {sums}, {to = 1})
  local bias = node.inputs[3] or ""
  local product = self.added:node("Mul", {real, scale})
  if bias ~= "" then
    self.added:node("Add", {product, options.bias and self:along(bias, options.channels, options.after) or bias})
  end
  self.added:gives(node.outputs[1])
end

local function no_padding(node)
  for _, p in ipairs(node.attributes.pads or {}) do if p ~= 0 then return false end end
  return (node.attributes.auto_pad or "NOTSET") == "NOTSET" or node.attributes.auto_pad == "VALID"
end

local SIDE = 4 -- products that CPUs add at once, along the channels

-- Channels that are added to so many, which a multiple of SIDE has at most a third more of.
local function channels_more(channels)
  local more = -channels % SIDE
  return 3 * (channels + more) <= 4 * channels and more or 0
end

-- The bytes of the image and of the weights, and the attributes of their convolution. Padding is of real zeros, which
-- stand for the zero point: where that is not 0 the image is padded before. So it is where channels are added; weights
-- have zeros there. nil: how much is padded depends on its extents.
function Rewriter:padded(node, x, w)
  local attributes, rank = {}, #w.shape
  for key, value in pairs(node.attributes) do attributes[key] = value end
  local more = (attributes.group or 1) == 1 and channels_more(w.shape[2]) or 0
  local plain, around = (attributes.auto_pad or "NOTSET") == "NOTSET", not no_padding(node)
  if around and not plain then
    if x.zero ~= 0 then return nil end
    more = 0
  end
  if w.zero ~= 0 then return x.bytes, w.bytes, attributes end
  if more == 0 and (x.zero == 0 or not around) then return x.bytes, w.bytes, attributes end
  local image, weights = {}, {}
  for d = 1, 2 * rank do image[d], weights[d] = 0, 0 end
  for d = 1, around and rank - 2 or 0 do
    image[d + 2], image[rank + d + 2] = attributes.pads[d], attributes.pads[rank - 2 + d]
    if image[d + 2] < 0 or image[rank + d + 2] < 0 then return nil end -- refused where it is computed
  end
  image[rank + 2], weights[rank + 2] = more, more
  attributes.pads = nil
  local zero = self.added:constant({}, self.values[x.bytes].type, {x.zero})
  local bytes = self.added:node("Pad", {x.bytes, self.added:constant({2 * rank}, "int64", image), zero})
  if more == 0 then return bytes, w.bytes, attributes end
  return bytes, self.added:node("Pad", {w.bytes, self.added:constant({2 * rank}, "int64", weights)}), attributes
end

function Rewriter:Conv(node)
  local x, w = self:operands(node, function() return 0 end)
  if not x or self.values[node.inputs[1]].type ~= "float32" then return false end
  local image, weights, attributes = self:padded(node, x, w)
  if not image then return false end
  local rank, summed = #w.shape, {}
  for d = 2, rank do summed[d - 1] = d - 1 end
  local sums = self:sums("ConvInteger", image, weights, x, w, attributes)
  self:finish(node, sums, x, w, w.bytes, {channels = w.shape[1], after = rank - 2, summed = summed, bias = true})
  return true
end

function Rewriter:MatMul(node)
  local x, w = self:operands(node, function(rank) return rank - 1 end)
  if not x or #w.shape ~= 2 or #x.shape < 2 then return false end
  local sums = self:sums("MatMulInteger", x.bytes, w.bytes, x, w)
  self:finish(node, sums, x, w, w.bytes, {channels = w.shape[2], after = 0, summed = {0}})
  return true
end

function Rewriter:Gemm(node)
  local a = node.attributes
  local across = (a.transB or 0) ~= 0
  if (a.alpha or 1) ~= 1 or (a.beta or 1) ~= 1 or (a.transA or 0) ~= 0 then return false end
  local x, w = self:operands(node, function() return across and 0 or 1 end)
  if not x then return false end
  local weights = across and self.added:node("Transpose", {w.bytes}, {perm = {1, 0}}) or w.bytes
  local sums = self:sums("MatMulInteger", x.bytes, weights, x, w)
  self:finish(node, sums, x, w, weights, {channels = w.shape[across and 1 or 2], after = 0, summed = {0}})
  return true
end

local KINDS = {Conv = true, MatMul = true, Gemm = true}

function pass.run(net, values)
  local links = net:links()
  return net:replace_nodes(function(node, added)
    local r = setmetatable({links = links, values = values, added = added}, Rewriter)
    return node.domain == "" and KINDS[node.op] and #node.outputs == 1 and r[node.op](r, node)
  end)
end

return pass
