-- Images of three channels, as the first layers of networks have, as products read them: small kernels copy the image,
-- and a filter that is no constant, with a channel of zeros more. What a pixel has is then as long as asynchronous
-- copies are; as they lie, threads copy pixels element by element, each to a place that they compute. Zeros are
-- multiplied, too.
local common, products = msched.load "rules.common", msched.load "rules.products"
local nest = msched.load "rules.register_loops"
local few_channels = {}

local CHANNELS = 4 -- that a pixel then has
local LEAST_BYTES, MOST_BYTES = 4, 8 -- of them: what threads copy at once
local THREADS = 256 -- of a block that copies

-- Schedules the copy of what the block reads as a kernel: a thread stores the channels of a pixel at once, or what of
-- the filter is side by side there.
local function schedule_copy(sch, block, number, dimension)
  local copy = products.producer_of(sch, block, number - 1)
  local store = sch:cache_write(copy, 0, "local")
  local channels, loops = nest.innermost(sch, store, dimension)
  local blocks, threads = sch:split(sch:fuse(loops), {msched.rest, THREADS})
  sch:bind(blocks, "blockIdx.x")
  sch:bind(threads, "threadIdx.x")
  sch:compute_at(copy, threads, {preserve_unit_loops = true})
  nest.unroll_own(sch, copy)
  if dimension == #loops + 1 then sch:vectorize(channels) else sch:unroll(channels) end
  common.keep_kernel(sch, {copy, store})
end

-- The dimension of an input along which the iteration goes; nil: it has more.
local function dimension_of(sch, block, number, iteration)
  local found
  for d, v in ipairs(sch:read_iters(block)[number]) do
    if v == iteration then
      if found then return nil end
      found = d
    end
  end
  return found
end

-- A schedule in which the image and the filter that the block's product reads have a channel more, and the block; nil:
-- it has other channels, or several products, or they do not lie so.
function few_channels.of(sch, block)
  local classes = products.classify(sch, block)
  if not classes or #classes.batch > 0 or #classes.k < 2 or not products.sides(sch, block, classes) then return nil end
  local image, filter = table.unpack(classes.inputs)
  local last, reads = classes.k[#classes.k], sch:reads(block)
  local extents, loop = sch:iter_extents(block), ({sch:get_loops(block)})[last]
  local bytes = CHANNELS * reads[image].bytes
  if extents[last] ~= CHANNELS - 1 or bytes < LEAST_BYTES or bytes > MOST_BYTES then return nil end
  local across, along = dimension_of(sch, block, image, last), dimension_of(sch, block, filter, last)
  if across ~= #reads[image].shape or not along or sch:strides(block, loop)[image] ~= 1 then return nil end
  local s, multiples = sch:copy(), {}
  local b = s:handle(block)
  for v = 1, #extents do multiples[v] = v == last and CHANNELS or 1 end
  local constant = common.constants(s)[reads[filter].buffer]
  if not s:try("pad_einsum", b, multiples) then return nil end
  if constant then common.pack_ahead(s, products.producer_of(s, b, filter - 1))
  else schedule_copy(s, b, filter, along) end
  schedule_copy(s, b, image, across)
  return s, b
end

return few_channels
