-- Convolutions of 3 x 3 by constant weights, of float32 and stride 1, become products by Winograd's method where these
-- take less time: windows of 6 x 6 or 4 x 4 are transformed, multiplied and transformed back. Sums are of other terms
-- then: results are as near to exact ones, but not the same, and an infinity or NaN reaches all of its tile.
local common = msched.load "lua.net.common"
local pass = {name = "winograd", text = "computes convolutions of 3 x 3 by Winograd's method where that is faster",
              needs_values = true}

-- What a convolution takes, in multiplications of a core: those that it does; a constant that is read from memory takes
-- so many, an element that goes through a cache between two functions so many, a product of a transform, which has few
-- terms, so many.
local CONSTANT, BETWEEN, TRANSFORM = 32, 4, 1.5
local MOST_BETWEEN = 1 << 22 -- elements of transformed images and their products: what caches hold
local MOST_CONSTANTS = 1 << 20 -- elements of transformed weights: memory that a plan takes

local function direct_cost(c)
  return 9 * c.batch * c.size[1] * c.size[2] * c.inputs * c.outputs + CONSTANT * 9 * c.inputs * c.outputs
end

-- The same by tiles of m x m; nil: they take too much memory.
local function tiled_cost(c, m)
  local a, tiles = m + 2, c.batch * ((c.size[1] + m - 1) // m) * ((c.size[2] + m - 1) // m)
  local between = a * a * tiles * (c.inputs + c.outputs)
  if between > MOST_BETWEEN or a * a * c.inputs * c.outputs > MOST_CONSTANTS then return nil end
  local transforms = tiles * (c.inputs * (a * a * m + a * a * a) + c.outputs * (a * a * m + a * m * m))
  return a * a * tiles * c.inputs * c.outputs + CONSTANT * a * a * c.inputs * c.outputs + BETWEEN * 2 * between
    + TRANSFORM * transforms
end

-- The extent of the tiles that a convolution is computed fastest by; nil: it stays as it is.
function pass.tile(c)
  local least, best = direct_cost(c), nil
  for _, m in ipairs {2, 4} do
    local cost = tiled_cost(c, m)
    if cost and cost < least then least, best = cost, m end
  end
  return best
end

local function all(list, x)
  for _, y in ipairs(list or {}) do if y ~= x then return false end end
  return true
end

-- What the pass asks about a node: its channels, the extents of its result, and the zeros before its image; nil: it is
-- no such convolution.
local function convolution(values, node)
  if node.domain ~= "" or node.op ~= "Conv" or (node.attributes.group or 1) ~= 1 then return nil end
  local a, x, w, y = node.attributes, values[node.inputs[1]], values[node.inputs[2]], values[node.outputs[1]]
  if not x or not w or not y or not w.constant or x.constant or x.type ~= "float32" or #x.shape ~= 4
      or #w.shape ~= 4 then
    return nil
  end
  if w.shape[3] ~= 3 or w.shape[4] ~= 3 or not all(a.strides, 1) or not all(a.dilations, 1)
      or common.count(y.shape) == 0 then
    return nil
  end
  local c =
    {batch = x.shape[1], inputs = x.shape[2], outputs = w.shape[1], size = {y.shape[3], y.shape[4]}, before = {0, 0}}
  local auto = a.auto_pad or "NOTSET"
  if auto == "NOTSET" and a.pads then c.before = {a.pads[1], a.pads[2]} end
  if auto == "SAME_UPPER" or auto == "SAME_LOWER" then c.before = {1, 1} end
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
  local windows = part("WinogradInput", {node.inputs[1]}, {tiles = tiles, before = c.before})
  local weights = part("WinogradWeights", {node.inputs[2]}, {})
  local product = added:node("MatMul", {reshape(windows, {a * a, c.batch * tiles[1] * tiles[2], c.inputs}), weights})
  part("WinogradOutput", {reshape(product, {a, a, c.batch, tiles[1], tiles[2], c.outputs}), node.inputs[3] or ""},
       {size = c.size})
  added.nodes[#added.nodes].outputs = {node.outputs[1]}
  return true
end

-- Sums in the order of the convolution are asked for; GPUs have tensor cores, and other caches.
function pass.is_left_out(options)
  return options.fixed_order or msched.target(options.target or "native").arch ~= nil
end

function pass.run(net, values)
  return net:replace_nodes(function(node, added) return rewrite(values, node, added) end)
end

return pass
