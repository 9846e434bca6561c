-- Images with channels first, as products read them: small kernels copy the image, and a filter that is no constant, so
-- that channels come last, and what is summed over of a tap is side by side. Tiles of pixels are then copied by TMA in
-- im2col mode, or by whole vectors, whatever the length of lines; as they lie, they are copied element by element, as
-- taps begin anywhere. A thread of such a kernel loads a vector's worth of channels of a pixel and stores them at once.
-- A warp has 16 neighbouring pixels and two such vectors of each, so that loads and stores take whole sectors.
local common, products = msched.load "rules.common", msched.load "rules.products"
local nest = msched.load "rules.register_loops"
local channels_last = {}

local BYTES = 16 -- that a thread stores
local PIXELS, VECTORS, PARTS = 16, 2, 8 -- of a warp; and how many times as many pixels a block has

-- Names with that of a dimension last.
local function with_last(names, dimension)
  local order = nest.others(names, dimension)
  order[#order + 1] = names[dimension]
  return order
end

-- What copies a block's read so that the dimension comes last, scheduled as a kernel.
local function copy_with_last(sch, reader, index, dimension, rank, lanes)
  local copy = nest.laid_out(sch, reader, index, rank, function(names) return with_last(names, dimension) end)
  local channels, loops = nest.innermost(sch, copy, dimension)
  local pixels = #loops > 1 and sch:fuse(loops) or loops[1]
  local blocks, parts, pixel = sch:split(pixels, {msched.rest, PARTS, PIXELS})
  local count = sch:extent(channels) // lanes
  local vectors, vector, lane = sch:split(channels, {msched.rest, count % VECTORS == 0 and VECTORS or 1, lanes})
  sch:reorder({blocks, vectors, parts, vector, pixel, lane})
  sch:bind(sch:fuse(blocks, vectors), "blockIdx.x")
  local threads = sch:fuse(parts, vector, pixel)
  sch:bind(threads, "threadIdx.x")
  local loaded = sch:cache_read(copy, 0, "local", {copy})
  sch:compute_at(loaded, threads, {preserve_unit_loops = true})
  nest.unroll_own(sch, loaded)
  sch:vectorize(lane)
  common.keep_kernel(sch, {loaded, copy})
end

-- The dimension of a read that the block's innermost sum walks over, and that is not its last; nil: there is none, or
-- vectors do not divide it.
local function channels_of(sch, block, classes, number)
  local read = sch:reads(block)[number]
  local loops, shape = {sch:get_loops(block)}, read.shape
  local last = classes.k[#classes.k]
  local dimension = nest.dimension_of(shape, sch:strides(block, loops[last])[number] or 0)
  local innermost = #shape
  while innermost > 1 and shape[innermost] == 1 do innermost = innermost - 1 end
  local lanes = BYTES // read.bytes
  if not dimension or dimension >= innermost or sch:extent(loops[last]) % lanes ~= 0 then return nil end
  return dimension, lanes
end

-- The block that pads what a block reads there, and reads what it pads alone, dimension by dimension; nil: none does.
local function padding_of(sch, block, number)
  local producer = products.producer_of(sch, block, number - 1)
  local reads = producer and sch:reads(producer)
  if producer and #reads == 1 and sch:is_spatial(producer) and #sch:consumers(producer) == 1
      and sch:has_call(producer, "if_then_else") and #reads[1].shape == #sch:reads(block)[number].shape then
    return producer
  end
end

-- A schedule in which the image that the block's product reads has its channels last, and so has the filter, and the
-- block; nil: they have already, or vectors do not divide the channels, or what it reads is a matrix, of whose columns
-- TMA and vectors bring any part as it lies.
function channels_last.of(sch, block)
  local classes = products.classify(sch, block)
  if not classes or not products.sides(sch, block, classes) or #classes.m + #classes.k == 2 then return nil end
  local image, filter = table.unpack(classes.inputs)
  local dimension, lanes = channels_of(sch, block, classes, image)
  if not dimension then return nil end
  local s = sch:copy()
  local b = s:handle(block)
  local constant = common.constants(s)[s:reads(b)[filter].buffer]
  local own, own_lanes = channels_of(s, b, classes, filter)
  if own and not constant then copy_with_last(s, b, filter - 1, own, #s:reads(b)[filter].shape, own_lanes) end
  local padding = padding_of(s, b, image)
  local rank = #s:reads(b)[image].shape
  copy_with_last(s, padding or b, padding and 0 or image - 1, dimension, rank, lanes)
  if padding then
    local names = {}
    for d = 1, rank do names[d] = "i" .. d end
    local order = table.concat(with_last(names, dimension), ", ")
    s:transform_layout(padding, string.format("lambda %s: (%s)", table.concat(names, ", "), order), 0, 1)
  end
  return s, b
end

return channels_last
