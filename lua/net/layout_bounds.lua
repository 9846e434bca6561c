-- What convolutions, pools and copies of images take at least in each layout, by the kind of target: in the cycles in
-- which its analytical model counts, so that bounds and estimates add up. And how far the model's estimates of layouts
-- are believed.
local ms = msched
local common, memory, analytical = ms.load "lua.net.common", ms.load "lua.net.memory",
  ms.load "search.cost.analytical"
local set = common.set
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

-- ---- GPUs --------------------------------------------------------------------------------------------------------

-- Of what an estimate has beside the kernel's start. The fastest kernels of 4 convolutions of float32 took an H100 0.5
-- to 1.1 times that, in CUDA graphs: two such estimates are a factor of 1.5 apart by one standard deviation. None was
-- timed in two layouts.
local DOUBT_OF_BODY = 1.5

KINDS.cuda = {
  is_known = function() return true end,
  copy = function(bytes, machine) -- read and written
    return machine.launch + machine.memory_latency + 2 * bytes / machine.dram_bytes_a_cycle
  end,
  ratio = function(first, other, machine) -- a kernel starts as fast in any layout
    return (machine.launch + (other - machine.launch) * DOUBT_OF_BODY) / first
  end,
  -- Bounds are the same in all layouts: estimates alone say that one loses, by more than rounding. Where no copy is
  -- saved none pays: of windows of four networks 0.87 of the cycles were the least that another was estimated to take.
  lost = 1.02,
}

-- Of pools, and of convolutions like those that were timed beside their estimates. Two depthwise ones took the H100 0.5
-- and 1.2 times as long as estimated, one on tensor cores 4.3 times: estimates of these are the same in every layout,
-- since the model does not see from which image tiles are copied. Groups and transposed convolutions were not timed.
function KINDS.cuda.is_estimated(values, node)
  local w = weights_of(values, node)
  return not w or node.op == "Conv" and w.type == "float32" and (node.attributes.group or 1) == 1
end

local MULTIPLIED = set "float16 bfloat16 int8" -- types of elements that tensor cores multiply

-- Multiply-adds of a multiprocessor in a cycle: tensor cores take bytes twice as fast as 16 bits.
local function products_of(values, node, machine)
  local w = weights_of(values, node)
  if w and machine.tensor_products > 0 and MULTIPLIED[w.type] and (node.attributes.group or 1) == 1 then
    return machine.tensor_products * (w.type == "int8" and 2 or 1)
  end
  return machine.multiply_adds * machine.warp
end

-- The same in every layout: threads run along any dimension.
function KINDS.cuda.window(values, node, _, machine)
  local w = weights_of(values, node)
  local x, y = values[node.inputs[1]], values[node.outputs[1]]
  local bytes = memory.bytes(x) + memory.bytes(y) + (w and memory.bytes(w) or 0)
  local multiplying = work_of(values, node) / (products_of(values, node, machine) * machine.sms)
  return machine.launch + math.max(multiplying, bytes / machine.dram_bytes_a_cycle)
end

-- bounds.of(target): the kind of a target, as above, and its machine, as the analytical model sees it; nil: nothing is
-- known of such a target.
function bounds.of(target)
  local kind = KINDS[target.kind]
  if not kind or not kind.is_known(target) then return nil end
  return kind, analytical.machine(target)
end

return bounds
