-- Transposed convolutions to few channels, of stride s, become convolutions to s * s times as many, whose results are
-- put side by side: an output meets every s-th element of the window, from its phase on, and all phases of a place read
-- the same elements of the image. Vectors hold the channels of all phases then, where they held those of one.
local common = msched.load "lua.net.common"
local pass = {name = "phases", text = "makes convolutions of transposed convolutions to few channels",
              needs_values = true}

local MOST_CHANNELS = 4 -- of the result; more fill vectors by themselves
local LEAST = 4 -- extents of the image, in taps beside the first, so that what is computed at its ends is little
local FAR = -(1 << 31) -- the end of a slice that goes backwards, before all elements

local function pair(list, otherwise)
  list = list or {otherwise, otherwise}
  return #list == 2 and list[1] == list[2] and list[1] or nil
end

-- {stride, taps = of a phase, before, inputs, outputs, size = of the result}; nil: it stays.
local function transposed(values, node)
  local a, x, w, y = node.attributes, values[node.inputs[1]], values[node.inputs[2]], values[node.outputs[1]]
  if node.domain ~= "" or node.op ~= "ConvTranspose" or (a.group or 1) ~= 1 or a.output_shape
      or (a.auto_pad or "NOTSET") ~= "NOTSET" or not x or not w or not y then
    return nil
  end
  if not w.constant or x.constant or x.type ~= "float32" or #x.shape ~= 4 or #w.shape ~= 4 then return nil end
  local stride, kernel, inputs, outputs = pair(a.strides, 1), pair {w.shape[3], w.shape[4]}, w.shape[1], w.shape[2]
  if not stride or stride < 2 or not kernel or kernel % stride ~= 0 or pair(a.dilations, 1) ~= 1
      or outputs > MOST_CHANNELS or common.count(y.shape) == 0 then
    return nil
  end
  local c = {stride = stride, taps = kernel // stride, before = {}, inputs = inputs, outputs = outputs,
             size = {y.shape[3], y.shape[4]}}
  for d = 1, 2 do
    c.before[d] = a.pads and a.pads[d] or 0
    if x.shape[d + 2] < math.max(1, LEAST * (c.taps - 1)) or c.before[d] < 0
        or c.before[d] + c.size[d] > stride * (x.shape[d + 2] + c.taps - 1) then return nil end
  end
  return c
end

local function rewrite(values, node, added)
  local c = transposed(values, node)
  if not c then return false end
  added.of = added.of .. " by phases" -- what batch normalization added has the node's name
  local s, m, phases = c.stride, c.taps, c.stride * c.stride * c.outputs
  local function list(...) return added:constant({select("#", ...)}, "int64", {...}) end
  local w = added:node("Reshape", {node.inputs[2], list(c.inputs, c.outputs, m, s, m, s)})
  w = added:node("Slice", {w, list(-1, -1), list(FAR, FAR), list(2, 4), list(-1, -1)})
  w = added:node("Transpose", {w}, {perm = {3, 5, 1, 0, 2, 4}})
  w = added:node("Reshape", {w, list(phases, c.inputs, m, m)})
  local inputs, bias = {node.inputs[1], w}, node.inputs[3] or ""
  if bias ~= "" then
    local each = {}
    for i = 1, s * s do each[i] = bias end
    inputs[3] = added:node("Concat", each, {axis = 0})
  end
  local y = added:node("Conv", inputs, {pads = {m - 1, m - 1, m - 1, m - 1}})
  y = added:node("DepthToSpace", {y}, {blocksize = s})
  added:node("Slice", {y, list(c.before[1], c.before[2]),
                       list(c.before[1] + c.size[1], c.before[2] + c.size[2]), list(2, 3)})
  added:gives(node.outputs[1])
  return true
end

pass.is_left_out = common.keeps_convolutions -- GPUs have other vectors

function pass.run(net, values)
  return net:replace_nodes(function(node, added) return rewrite(values, node, added) end)
end

return pass
