-- Products by constant matrices that a DequantizeLinear gives become MatMulNBits, which multiplies by the integers as
-- they are packed: of 4 bits, or of 8. Their scales are those of blocks along what is summed, of columns, or one. What
-- packs them is nodes over constants, which are computed when the network is planned.
local common = msched.load "lua.net.common"
local pass = {name = "few_bits", text = "multiplies packed integers of 4 or 8 bits where only their real values were \z
                                         multiplied", needs_values = true}

local UINT8, INT32 = 2, 6 -- ONNX's numbers of types
local LEAST_BLOCK, MOST_BLOCK = 16, 256 -- the second: of columns and tensors of one scale, which have no blocks
local MOST_ROWS = 8 -- with 8 bits: products of more rows are those of float32
local HALF = {[4] = 8, [8] = 128} -- what is added to signed integers

local Rewriter = {}
Rewriter.__index = Rewriter

function Rewriter:constant(name)
  local value = name and name ~= "" and self.values[name]
  return value and value.constant and value or nil
end

-- The node of ONNX's own that gives a value.
function Rewriter:giver(name, op)
  local node = self.links:giver(name)
  return node and node.op == op and node.domain == "" and node or nil
end

-- The matrix that the values of `name` are of: its DequantizeLinear, and whether a Transpose stands behind it.
function Rewriter:dequantized(name)
  local transpose, node = self:giver(name, "Transpose"), self:giver(name, "DequantizeLinear")
  if not transpose then return node, false end
  local perm = transpose.attributes.perm
  if perm and (perm[1] ~= 1 or perm[2] ~= 0) then return nil end
  return self:giver(transpose.inputs[1], "DequantizeLinear"), true
end

-- The block along k of scales, of which none is longer than `most`; nil: they lie otherwise.
local function block_of(node, scale, shape, k_axis, k)
  local block, axis = node.attributes.block_size or 0, node.attributes.axis or 1
  if axis < 0 then axis = axis + 2 end
  local count = common.count(scale.shape)
  if block > 0 and count > 1 then
    return axis == k_axis and #scale.shape == 2 and scale.shape[2 - k_axis] == shape[2 - k_axis] and k % block == 0
      and block or nil
  end
  if count > 1 and (axis == k_axis or #scale.shape ~= 1) then return nil end
  local whole = k & -k -- the largest power of 2 that divides it
  return whole < MOST_BLOCK and whole or MOST_BLOCK
end

-- The matrix as blocks of integers: {node, k, n, block, bits, across}; across: n is its first dimension. nil: it is
-- none.
function Rewriter:weights(name, across)
  local node, transposed = self:dequantized(name)
  if not node then return nil end
  local bytes, scale, zero = self:constant(node.inputs[1]), self:constant(node.inputs[2]), self:constant(node.inputs[3])
  local has_zero = (node.inputs[3] or "") ~= ""
  if not bytes or not scale or has_zero and not zero or bytes.type ~= "int8" and bytes.type ~= "uint8"
      or #bytes.shape ~= 2 then
    return nil
  end
  if scale.type ~= "float32" or self.values[node.outputs[1]].type ~= "float32" then return nil end
  if has_zero and (zero.type ~= bytes.type or common.text(zero.shape) ~= common.text(scale.shape)) then return nil end
  if transposed then across = not across end
  local k_axis = across and 1 or 0
  local k, n = bytes.shape[k_axis + 1], bytes.shape[2 - k_axis]
  local block = n > 0 and block_of(node, scale, bytes.shape, k_axis, k)
  if not block or block < LEAST_BLOCK or block & (block - 1) ~= 0 then return nil end
  return {node = node, k = k, n = n, block = block, bits = self.net.packed and self.net.packed[bytes.array] and 4 or 8,
          across = across, is_signed = bytes.type == "int8", zero = zero}
end

-- ---- What packs -----------------------------------------------------------------------------------------------------

function Rewriter:list(values) return self.added:constant({#values}, "int64", values) end
function Rewriter:reshape(name, shape) return self.added:node("Reshape", {name, self:list(shape)}) end

-- Integers of (rows, count) as bytes of (rows, count * bits / 8), of two in a byte the first in the lower bits.
function Rewriter:packed(name, w, rows, count)
  if w.bits == 8 then return self.added:node("Cast", {name}, {to = UINT8}) end
  if count % 2 == 1 then name = self.added:node("Pad", {name, self:list {0, 0, 0, 1}}) end
  local pairs_of, parts = self:reshape(name, {rows, (count + 1) // 2, 2}), {}
  for i = 1, 2 do
    local part = self.added:node("Slice", {pairs_of, self:list {i - 1}, self:list {i}, self:list {2}})
    parts[i] = self:reshape(part, {rows, (count + 1) // 2})
  end
  local upper = self.added:node("Mul", {parts[2], self.added:constant({}, "int32", {16})})
  return self.added:node("Cast", {self.added:node("Add", {parts[1], upper})}, {to = UINT8})
end

-- Integers as they are packed: not negative, of 32 bits.
function Rewriter:raised(name, w)
  local wide = self.added:node("Cast", {name}, {to = INT32})
  return w.is_signed and self.added:node("Add", {wide, self.added:constant({}, "int32", {HALF[w.bits]})}) or wide
end

-- A parameter of (n, blocks): as it is, of one a column, or of one.
function Rewriter:by_blocks(name, w, shape)
  local blocks = w.k // w.block
  if #shape == 2 then return w.across and name or self.added:node("Transpose", {name}, {perm = {1, 0}}) end
  local column = self:reshape(name, {common.count(shape) > 1 and w.n or 1, 1})
  return self.added:node("Expand", {column, self:list {w.n, blocks}})
end

-- Whether all zero points are what they are where none are given.
local function are_usual(w)
  if not w.zero then return w.is_signed end
  local usual = w.is_signed and 0 or HALF[w.bits]
  for _, z in ipairs(w.zero.array:tolist()) do if z ~= usual then return false end end
  return true
end

function Rewriter:zero_points(w)
  if are_usual(w) then return "" end
  local node, blocks = w.node, w.k // w.block
  local name, shape = node.inputs[3], w.zero and w.zero.shape
  if not w.zero then name, shape = self.added:constant({}, "uint8", {0}), {} end
  return self:packed(self:by_blocks(self:raised(name, w), w, shape), w, w.n, blocks)
end

function Rewriter:product(node, w)
  local integers = self:raised(w.node.inputs[1], w)
  if not w.across then integers = self.added:node("Transpose", {integers}, {perm = {1, 0}}) end
  local bytes = self:reshape(self:packed(integers, w, w.n, w.k), {w.n, w.k // w.block, w.block * w.bits // 8})
  local scales = self:by_blocks(w.node.inputs[2], w, self.values[w.node.inputs[2]].shape)
  local y = self.added:node("MatMulNBits", {node.inputs[1], bytes, scales, self:zero_points(w)},
                            {K = w.k, N = w.n, bits = w.bits, block_size = w.block})
  local added = self.nodes[#self.nodes]
  added.domain, added.opset = "com.microsoft", 1
  if (node.inputs[3] or "") ~= "" then self.added:node("Add", {y, node.inputs[3]}) end
  self.added:gives(node.outputs[1])
end

-- ---- Which products -------------------------------------------------------------------------------------------------

function Rewriter:MatMul(node) return self:weights(node.inputs[2], false) end
function Rewriter:Gemm(node)
  local a = node.attributes
  if (a.alpha or 1) ~= 1 or (a.beta or 1) ~= 1 or (a.transA or 0) ~= 0 then return nil end
  return self:weights(node.inputs[2], (a.transB or 0) ~= 0)
end

function Rewriter:rewritten(node)
  if node.domain ~= "" or #node.outputs ~= 1 or node.op ~= "MatMul" and node.op ~= "Gemm" then return false end
  local x = self.values[node.inputs[1]]
  if not x or x.type ~= "float32" or #x.shape < 2 or x.constant then return false end
  local w = self[node.op](self, node)
  if not w or w.bits == 8 and common.count(x.shape) > MOST_ROWS * w.k then return false end
  self:product(node, w)
  return true
end

function pass.run(net, values)
  local links = net:links()
  return net:replace_nodes(function(node, added)
    local r = setmetatable({net = net, links = links, values = values, added = added, nodes = added.nodes}, Rewriter)
    return r:rewritten(node)
  end)
end

return pass
