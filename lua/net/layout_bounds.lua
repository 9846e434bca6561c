-- What convolutions, pools and copies of images take at least in each layout, by the kind of target: in the cycles in
-- which its analytical model counts, so that bounds and estimates add up. And how far the model's estimates of layouts
-- are believed.
local ms = msched
local common, analytical = ms.load "lua.net.common", ms.load "search.cost.analytical"
local bounds = {}

local function all_ones(list)
  for _, x in ipairs(list or {}) do if x ~= 1 then return false end end
  return true
end

-- The weights of a convolution; nil: it is a pool.
local function weights_of(values, node) return node.op:find "^Conv" and values[node.inputs[2]] or nil end

-- How often a node adds to a result.
local function work_of(values, node)
  local x, w, y, a = values[node.inputs[1]], weights_of(values, node), values[node.outputs[1]], node.attributes
  if node.op == "ConvTranspose" then return common.count(x.shape) * common.count(w.shape, 2) end
  if w then return common.count(y.shape) * common.count(w.shape, 2) end
  if not a.kernel_shape then return common.count(x.shape) end -- over all places
  local work = common.count(y.shape)
  for _, extent in ipairs(a.kernel_shape) do work = work * extent end
  return work
end

-- Each kind of target has
--   is_known(target)   whether anything is known of it
--   window(values, node, label, machine)   cycles that a convolution or pool takes at least
--   copy(bytes, machine)   cycles of a copy of so many bytes into another order
--   is_estimated(values, node)   whether estimates tell layouts of a node apart
--   ratio(first, other, machine)   how many times as long another layout counts, by estimates of both
--   lost   the ratio of estimates behind which no more are asked for, where there is no time to look at all
--   further   how many times as long a layout may take as its bound says, where there is; nil: time changes nothing
local KINDS = {}

-- ---- CPUs --------------------------------------------------------------------------------------------------------

local COPIED, BEGUN = 14, 2000 -- bytes that a core copies into another order in a cycle; cycles of a call. Of 15 copies
                               -- of 0.1 to 0.8 MB on a Zen 5, 11 were of 11 to 17 bytes a cycle, others slower

local function filled(extent, lanes) return extent / ((extent + lanes - 1) // lanes * lanes) end

local DOUBT = 1.25 -- of grouped convolutions with channels second 0.83 of the cycles of last were estimated, and they
                   -- took far longer

KINDS.llvm = {
  is_known = function(target) return (target.vector_bits or 0) >= 64 end, -- vectors hold several elements
  copy = function(bytes, machine) return (bytes / COPIED + BEGUN) / machine.cores end,
  is_estimated = function() return true end,
  ratio = function(first, other) return other / first * DOUBT end,
  lost = 1 / DOUBT,
  further = 0.8,
}

-- With channels last, or in blocks, vectors run along channels, else along rows of an image, or along all of it where
-- each element is by itself.
function KINDS.llvm.window(values, node, label, machine)
  local x, w, y = values[node.inputs[1]], weights_of(values, node), values[node.outputs[1]]
  local lanes, extent = machine.vector_bits // 32, y.shape[2]
  if label == "second" then
    local image, kernel = y, w and table.move(w.shape, 3, #w.shape, 1, {}) or node.attributes.kernel_shape
    if not kernel then image = x end
    local whole = not kernel or all_ones(kernel) and all_ones(node.attributes.strides)
    extent = whole and common.count(image.shape, 3) or image.shape[#image.shape]
  end
  local bytes = w and w.type:find "int8$" and 4 or 1 -- so many products of bytes count as one
  return work_of(values, node) / (bytes * lanes * machine.multiply_adds * filled(extent, lanes) * machine.cores)
end

-- bounds.of(target): the kind of a target, as above, and its machine, as the analytical model sees it; nil: nothing is
-- known of such a target.
function bounds.of(target)
  local kind = KINDS[target.kind]
  if not kind or not kind.is_known(target) then return nil end
  return kind, analytical.machine(target)
end

return bounds
