-- Convolutions of 3 x 3 by constant weights, of float32 and stride 1, become products by Winograd's method where these
-- take less time: windows of 6 x 6 or 4 x 4 are transformed, multiplied and transformed back. Of images with a depth
-- each plane is transformed, and products are summed over the planes. Sums are of other terms then: results are as near
-- to exact ones, but not the same, and an infinity or NaN reaches all of its tile.
local common = msched.load "lua.net.common"
local pass = {name = "winograd", text = "computes convolutions of 3 x 3 by Winograd's method where that is faster",
              needs_values = true}

-- What a convolution takes, in multiplications of a core: those that it does; a constant that is read from memory takes
-- so many, an element that goes through a cache between two functions, or through memory, so many, a product of a
-- transform, which has few terms, so many.
local CONSTANT, BETWEEN, FAR, TRANSFORM = 32, 4, 16, 1.5
local CACHED, MOST_BETWEEN = 1 << 22, 1 << 24 -- elements of transformed images and their products: what caches hold,
                                              -- and memory that a plan takes
local MUCH_BETWEEN = 1 << 23 -- more than so many only where it takes half the time: plans of large images take most of
                             -- their memory for them
local MOST_CONSTANTS = 1 << 20 -- elements of transformed weights: memory that a plan takes

local function direct_cost(c)
  local weights = 9 * c.taps * c.inputs * c.outputs
  return c.batch * c.planes * c.size[1] * c.size[2] * weights + CONSTANT * weights
end

-- The same by tiles of m x m, and how many elements are between two functions; nil: they take too much memory.
local function tiled_cost(c, m)
  local a, tiles = m + 2, c.batch * ((c.size[1] + m - 1) // m) * ((c.size[2] + m - 1) // m)
  local inputs, outputs = tiles * c.depth * c.inputs, tiles * c.planes * c.outputs
  local between, weights = a * a * (inputs + outputs), a * a * c.taps * c.inputs * c.outputs
  if between > MOST_BETWEEN or weights > MOST_CONSTANTS then return nil end
  local transforms = inputs * (a * a * m + a * a * a) + outputs * (a * a * m + a * m * m)
  return tiles * c.planes * weights + CONSTANT * weights + (between > CACHED and FAR or BETWEEN) * 2 * between
    + TRANSFORM * transforms, between
end

-- The extent of the tiles that a convolution is computed fastest by; nil: it stays as it is.
function pass.tile(c)
  local direct, least, best = direct_cost(c), math.huge, nil
  for _, m in ipairs {2, 4} do
    local cost, between = tiled_cost(c, m)
    local pays = cost and cost < (between > MUCH_BETWEEN and direct / 2 or direct)
    if pays and cost < least then least, best = cost, m end
  end
  return best
end

local function all(list, x)
  for _, y in ipairs(list or {}) do if y ~= x then return false end end
  return true
end

-- What the pass asks about a node: its channels, the extents of its result, the zeros before its image; of a depth how
-- many planes it has with zeros around, how many the result has, and how many are summed. nil: it is no such
-- convolution.
local function convolution(values, node)
  if node.domain ~= "" or node.op ~= "Conv" or (node.attributes.group or 1) ~= 1 then return nil end
  local a, x, w, y = node.attributes, values[node.inputs[1]], values[node.inputs[2]], values[node.outputs[1]]
  if not x or not w or not y or not w.constant or x.constant or x.type ~= "float32" or #w.shape ~= #x.shape then
    return nil
  end
  local rank, w_shape = #x.shape, w.shape
  if rank ~= 4 and rank ~= 5 or w_shape[rank - 1] ~= 3 or w_shape[rank] ~= 3 or not all(a.strides, 1)
      or not all(a.dilations, 1) or common.count(x.shape) == 0 or common.count(y.shape) == 0 then
    return nil
  end
  local c = {batch = x.shape[1], inputs = x.shape[2], outputs = w_shape[1], before = {},
             size = {y.shape[rank - 1], y.shape[rank]}, deep = rank == 5, taps = 1, planes = 1, depth = 1}
  local auto = a.auto_pad or "NOTSET"
  for d = 1, rank - 2 do
    local around = y.shape[d + 2] + w_shape[d + 2] - 1 - x.shape[d + 2] -- of stride 1
    c.before[d] = auto == "NOTSET" and a.pads and a.pads[d] or auto == "SAME_UPPER" and around // 2
      or auto == "SAME_LOWER" and (around + 1) // 2 or 0
  end
  if c.deep then c.taps, c.planes, c.depth = w_shape[3], y.shape[3], y.shape[3] + w_shape[3] - 1 end
  return c
end

local function rewrite(values, node, added)
  local c = convolution(values, node)
  local m = c and pass.tile(c)
  if not m then return false end
  added.of = added.of .. " by tiles" -- what batch normalization added has the node's name
  local a, tiles = m + 2, {(c.size[1] + m - 1) // m, (c.size[2] + m - 1) // m}
  local function part(op, inputs, attributes)
    attributes.tile = m
    local name = added:node(op, inputs, attributes)
    added.nodes[#added.nodes].domain = "msched"
    return name
  end
  local function reshape(name, shape) return added:node("Reshape", {name, added:constant({#shape}, "int64", shape)}) end
  local windows = part("WinogradInput", {node.inputs[1]},
                       {tiles = tiles, before = c.before, depth = c.deep and {c.depth} or nil})
  local weights = part("WinogradWeights", {node.inputs[2]}, {})
  local apart, extents, size, product = tiles[1] * tiles[2], {a, a, c.batch}, {}, nil
  if c.deep then
    product = part("WinogradProduct", {reshape(windows, {a * a, c.batch, c.depth * apart, c.inputs}), weights},
                   {apart = apart})
    extents[#extents + 1], size[1] = c.planes, c.planes
  else product = added:node("MatMul", {reshape(windows, {a * a, c.batch * apart, c.inputs}), weights}) end
  extents[#extents + 1], extents[#extents + 2], extents[#extents + 3] = tiles[1], tiles[2], c.outputs
  size[#size + 1], size[#size + 2] = c.size[1], c.size[2]
  part("WinogradOutput", {reshape(product, extents), node.inputs[3] or ""}, {size = size})
  added:gives(node.outputs[1])
  return true
end

pass.is_left_out = common.keeps_convolutions -- GPUs have tensor cores, and other caches

function pass.run(net, values)
  return net:replace_nodes(function(node, added) return rewrite(values, node, added) end)
end

return pass
