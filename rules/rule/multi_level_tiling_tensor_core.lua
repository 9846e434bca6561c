-- Multi-level tiling for tensor cores: a sum of products of two inputs, which warps compute by an intrinsic on
-- fragments. What of the block is in both inputs, in one and the result, or in the inputs alone, becomes the four
-- iterations of a product of matrices (the copies that index by them are inlined again); tiles are loaded to shared
-- memory by all threads of a block, from there to fragments by warps. Opens what each group that fits makes, and the
-- block as it was. Parameters: those of tiling.lua; groups of intrinsics, each {inputs, output, multiples = {m, n, k},
-- scopes = {a, b, c}, fill, load_a, load_b, sync, store, by_columns, padding, read_scope, inner = {m, n}, pipeline,
-- sync_by_columns, load_b_by_columns}: types of the elements (second: of the second input's, if they are others), what
-- the extents are multiples of, storage scopes of fragments; whether tiles of the second input lie by columns; the
-- elements by which rows of tiles are padded, or the scope of swizzled tiles; how many products' rows and columns a
-- warp loads at once, where it is more than one; whether copies of tiles run ahead of the products; what multiplies and
-- loads a second input by columns that is an image, or is of groups without loads. A filter that is constant is packed
-- ahead as that matrix. Groups without loads also have
-- {sync_columns, structure, warps, ahead, registers, beside, bytes, vector_load_lengths, most_columns, boxes}:
-- products of so many warps at once, of tiles as they lie in shared memory (the second input's by columns where its own
-- rows do, the first's where its columns do); choices of how many steps copies run ahead; registers of a thread for one
-- fragment of accumulators, and beside all of them; the bytes of an input's element; how many of them a thread copies
-- at once; most_columns: of products that the group is for, nil: any; boxes: choices of whether one thread issues TMA
-- bulk tensor copies, 1, or all threads copy, 0; producer: choices of whether that thread is of a producer warp group,
-- 1, or of a consumer, 0; blocks: choices of how many persistent blocks there are, which copy the next tile while they
-- store one, where shared memory suffices; 0: a block a tile; clusters: choices of how many blocks, neighbours along m
-- or n, are a cluster and multicast tiles that they share; store_result: the intrinsic by which accumulators that are
-- the function's result go straight to it from registers, in sketches of their own; others go through what follows
-- them there, and also, in sketches of their own, by tiles of columns in shared memory; epilogue: choices of how many
-- columns; tensor_stores: whether one thread has TMA store a tile, 1, or threads do, 0. Sums of few results may be
-- divided among thread blocks (tiling.lua, split). Groups of fragments may have ahead, too: asynchronous copies then
-- bring tiles whose elements are neighbours, as many at once as may be; others go by way of registers.
-- channels_first: results that follow one another along rows of a product, as those of images with channels first, are
-- of a product with its operands the other way round, and such images are also copied with channels last
-- (channels_last.lua), in sketches of their own. few_channels: images of three channels are also copied with a fourth
-- (few_channels.lua), in sketches of their own.
-- pads: sides that no group divides are padded (products.lua): copies to shared memory fill with zeros what is beyond
-- the inputs, and what is beyond the result is not stored.
-- Source: Feng et al., "TensorIR", ASPLOS 2023, section 4.
local common, tiling = msched.load "rules.common", msched.load "rules.tiling"
local products, fragment_limits = msched.load "rules.products", msched.load "rules.fragment_limits"
local channels_last, nest = msched.load "rules.channels_last", msched.load "rules.register_loops"
local few_channels = msched.load "rules.few_channels"

-- Whether the intrinsics of a group are for what the block multiplies and adds up.
local function has_types(sch, block, group, classes)
  local reads, wanted = sch:reads(block), {group.inputs, group.second or group.inputs}
  for i, at in ipairs(classes.inputs) do if reads[at].type ~= wanted[i] then return false end end
  return sch:writes(block)[1].type == group.output
end

-- Whether there are several products, as of a convolution in groups.
local function has_matrices(sch, block, classes)
  local extents = sch:iter_extents(block)
  for _, v in ipairs(classes.batch) do if extents[v] ~= 1 then return true end end
  return false
end

-- The groups that can compute the block, each {group, padding, cuts}: what the sides of the product grow to whole
-- numbers of, nil where they are the group's already; whether results are left out. Where some of a kind are for whole
-- sides, none of that kind is for others; else those that pad least, or hardly more, are. Rows of several turned
-- products are whole: of padded ones that another product's follow, no two threads are known to store apart.
local function fitting(sch, block, p, classes)
  local sides, list, least = products.sides(sch, block, classes), {}, {}
  local whole_rows = classes.turned and has_matrices(sch, block, classes)
  for _, group in ipairs(sides and p.groups or {}) do
    local whole = products.is_whole(sides, group.multiples)
    local padding, volume
    local narrow = sides.n <= (group.most_columns or math.huge)
    if not whole and p.pads and not (whole_rows and sides.m % group.multiples.m ~= 0) then
      padding, volume = products.padding(sides, group.multiples, p.pads)
    end
    if narrow and has_types(sch, block, group, classes) and (whole or padding) then
      local kind = group.scopes.c
      volume = volume or 0
      least[kind] = math.min(least[kind] or volume, volume)
      list[#list + 1] = {group = group, padding = padding, volume = volume,
                         cuts = padding and (sides.m % padding.m ~= 0 or sides.n % padding.n ~= 0)}
    end
  end
  local few = {}
  for _, f in ipairs(list) do
    if f.volume == 0 or f.volume <= least[f.group.scopes.c] * (1 + p.pads.share) then few[#few + 1] = f end
  end
  return few
end

-- The innermost iterations of a copy are done by an intrinsic.
local function tensorize(sch, block, intrinsic)
  local outer = tiling.blockize_for(sch, block, intrinsic)
  sch:annotate(outer, "meta_schedule.auto_tensorize", intrinsic)
  return outer
end

local function last(list) return list[#list] end

local ACCUMULATORS_APART = 8 -- elements between rows of accumulators that a warp group stores

-- Results gather in fragments, under the loop of the warps, and go through shared memory, which all threads write out.
local function add_accumulator(state, copy, group, p)
  local sch = state.sch
  local out = sch:cache_write(state.block, 0, p.write.scope)
  sch:reverse_compute_at(out, last(state.tiles[p.write.levels[1]]), {preserve_unit_loops = true})
  local store = sch:cache_write(state.block, 0, group.scopes.c)
  sch:reverse_compute_at(store, last(state.tiles[3]), {preserve_unit_loops = true})
  sch:reverse_compute_inline(copy)
  local loops = {sch:get_loops(out)}
  sch:fuse(loops[#loops - 1], loops[#loops])
  tiling.note_fetch(sch, out, p, p.runs and p.runs.result)
  local stored = tensorize(sch, store, group.store)
  -- Pairs of elements that a warp stores at once meet in no bank.
  if group.warps then sch:storage_align(stored, 0, -2, 32, ACCUMULATORS_APART) end
end

-- Results gather in fragments, which a block copies under the loop of the warps: that block.
local function add_store(state, copy, group)
  local sch = state.sch
  local store = sch:cache_write(state.block, 0, group.scopes.c)
  sch:reverse_compute_at(store, last(state.tiles[3]), {preserve_unit_loops = true})
  sch:reverse_compute_inline(copy)
  return store
end

-- Results go from fragments to where they belong. nil: they do not lie there as the intrinsic stores them.
local function store_result(state, copy, group)
  local store = add_store(state, copy, group)
  return tiling.accepts(state.sch, tensorize(state.sch, store, group.store_result), group.store_result)
end

-- Results go from fragments, and through what follows them, which auto_inline brings there, to where they belong: lanes
-- store what they hold of rows together (tir/lower/gpu/lane_stores.c).
local function store_by_lanes(state, copy, group)
  state.sch:annotate(add_store(state, copy, group), "msched.lane_stores", 1)
  return true
end

-- What follows the block comes into it, as auto_inline would bring it there.
local function take_followers(sch, store)
  local followers = {sch:get_consumers(store)}
  while #followers == 1 and sch:is_spatial(followers[1]) and not common.is_kept(sch, followers[1])
      and #sch:producers(followers[1]) == 1 and sch:can_reverse_inline(followers[1]) do
    sch:reverse_compute_inline(followers[1])
    followers = {sch:get_consumers(store)}
  end
end

local THREADS, ACCESS = 128, 16 -- of a warp group; bytes that a thread copies at once

-- Results go from fragments through what follows them to a tile of so many columns as are drawn, in shared memory of
-- its own, and from there by whole rows to where they belong; then the next ones do. nil: they have other bits, or rows
-- lie otherwise.
local function store_by_tiles(state, copy, group, taken)
  local sch = state.sch
  local store = sch:cache_write(state.block, 0, group.scopes.c)
  sch:reverse_compute_inline(copy)
  take_followers(sch, store)
  local result = sch:writes(store)[1]
  if ACCESS % result.bytes ~= 0 or #sch:consumers(store) > 0 then return nil end
  local out = sch:reindex(store, 0, 1) -- by rows and columns of the product, however the result lies
  if sch:strides(out, last {sch:get_loops(out)})[2] ~= 1 then return nil end
  sch:set_scope(store, 0, group.read_scope)
  sch:reverse_compute_at(store, last(state.tiles[3]), {preserve_unit_loops = true})
  local loops = {sch:get_loops(store)}
  local row, column = loops[#loops - 1], loops[#loops]
  local columns = common.sample_equal(sch, group.epilogue)
  sch:assert(string.format("%s <= 1 and %s %% %s == 0", taken.groups_n, taken.own_n, columns:name()))
  local part, inner = sch:split(column, {msched.rest, columns})
  sch:reorder(part, row, inner)
  sch:unroll(part)
  sch:reverse_compute_at(out, part, {preserve_unit_loops = true})
  local around = #{sch:get_loops(store)} - 2 -- loops, `part` the last of them
  loops = {sch:get_loops(out)}
  local vector, own = ACCESS // result.bytes, table.move(loops, around + 1, #loops, 1, {})
  local times, thread, lanes = sch:split(sch:fuse(own), {msched.rest, THREADS, vector})
  sch:bind(thread, "threadIdx.x")
  if group.tensor_stores then
    taken.tensor_stores = common.sample_equal(sch, group.tensor_stores)
    sch:annotate(times, "tensor_store", taken.tensor_stores)
  end
  sch:vectorize(lanes)
  sch:annotate(out, "msched.epilogue_tile", columns)
  taken.tile = string.format("%d * %s * %s", result.bytes, taken.m, columns:name())
  return true
end

-- How accumulators leave registers, but by a tile of their own for all results of a block.
local STORES = {result = store_result, lanes = store_by_lanes, tiles = store_by_tiles}

-- So many blocks are a cluster: of one row of tiles, whose first input they share, or else of one column, whose second.
-- Windows of pixels are not multicast, of whichever input they are.
local function add_cluster(sch, group, producer, blocks, taken)
  local cluster = common.sample_equal(sch, group.clusters)
  local name, rows, columns = cluster:name(), taken.rows, taken.columns
  local along_m = string.format("(%s <= 1 and %s %% %s == 0)", columns, rows, name)
  local along_n, shares = string.format("%s %% %s == 0", columns, name), along_m
  if taken.windows and taken.turned then shares = along_n
  elseif not taken.windows then shares = string.format("(%s or %s)", along_n, along_m) end
  if blocks then shares = string.format("%s and %s %% %s == 0", shares, blocks:name(), name) end
  sch:assert(string.format("%s <= 1 or (1 <= %s and %s)", name, producer:name(), shares))
  return cluster
end

local MBARRIER_BYTES = 128 -- more than those of a pipeline take

-- Inputs are loaded to shared memory, where products read them. apart: the bytes of results on their way out, beside
-- which tiles of persistent blocks lie, and all tiles where TMA stores results; nil: none are there.
local function add_tiles(state, copies, group, p, taken, apart)
  local sch, loop = state.sch, last(state.tiles[4])
  tiling.add_read_caches(state, p.read.levels[1], p, group.read_scope)
  for _, side in ipairs {"a", "b"} do
    if copies[side] ~= copies.packed then sch:compute_inline(copies[side]) end
  end
  if sch:child_count(loop) ~= 3 then return end
  local boxes = group.boxes and common.sample_equal(sch, group.boxes)
  local producer = group.producer and common.sample_equal(sch, group.producer)
  if boxes and producer then sch:assert(string.format("%s <= %s", producer:name(), boxes:name())) end
  local blocks = producer and group.blocks and common.sample_equal(sch, group.blocks)
  if blocks then
    sch:assert(string.format("%s <= %d * %s and (%s <= 0 or %s + 1 <= %s and 2 <= %s)", blocks:name(),
                             group.blocks[1], producer:name(), blocks:name(), blocks:name(), taken.blocks, taken.steps))
  end
  local beside = {} -- whether results lie so
  if blocks then beside[1] = blocks:name() end
  if taken.tensor_stores then beside[#beside + 1] = taken.tensor_stores:name() end
  if apart and #beside > 0 then
    sch:assert(string.format("%s <= 0 or %s + %s <= %d", table.concat(beside, " + "), taken.tiles, apart,
                             p.shared_bytes - MBARRIER_BYTES))
  end
  local cluster = producer and group.clusters and add_cluster(sch, group, producer, blocks, taken)
  tiling.run_ahead(sch, loop, taken.ahead, true, boxes, producer, blocks, cluster)
end

-- Inputs are loaded to shared memory, and from there to fragments under the second level of reductions. Rows of tiles
-- are set padded or swizzled, so that threads which load a fragment have no bank conflicts.
local function add_fragments(state, classes, copies, group, p)
  local sch = state.sch
  local caches = tiling.add_read_caches(state, p.read.levels[1], p, group.read_scope)
  for i, side in ipairs {"a", "b"} do
    local load = sch:cache_read(state.block, classes.inputs[i] - 1, group.scopes[side])
    sch:compute_at(load, last(state.tiles[5]), {preserve_unit_loops = true})
    tensorize(sch, load, group["load_" .. side])
    if copies[side] ~= copies.packed then sch:compute_inline(copies[side]) end
    if group.padding then sch:storage_align(caches[i], 0, -2, 32, group.padding) end
  end
  return caches
end

-- Tiles of the next iteration are copied, by way of registers, while those of this one are multiplied.
local function add_pipeline(state, caches)
  local sch = state.sch
  for _, cache in ipairs(caches) do
    sch:annotate(cache, "tir.manifest_shared_memory_local_stage", 1)
    sch:annotate(cache, "double_buffer_scope", 0)
  end
  local outer, inner = last(state.tiles[4]), last(state.tiles[5])
  sch:annotate(inner, "software_pipeline_stage", {0, 0, 1})
  sch:annotate(inner, "software_pipeline_order", {0, 1, 2})
  sch:annotate(outer, "software_pipeline_stage", {0, 0, 0, 0, 0, 1, 1})
  sch:annotate(outer, "software_pipeline_order", {0, 3, 1, 4, 5, 2, 6})
end

-- What a warp does of m and n are whole numbers of what it loads at once.
local function split_for(group, batch)
  local multiples = {[batch + 1] = group.inner.m, [batch + 2] = group.inner.n}
  return function(sch, block, loop, count, p, at)
    if not multiples[at] then return tiling.split(sch, block, loop, count, p) end
    return {sch:split(loop, {sch:sample_partitioned_tile(loop, count, count - 2, multiples[at])})}
  end
end

local BESIDE_AHEAD = 2 -- stage buffers more than iterations that copies run ahead: one is read, one begun with

-- What a multiprocessor has of registers, in threads of a warp group; how many a thread can have.
local GROUP_REGISTERS, MOST_REGISTERS = 512, 240

local function product(list) return #list > 0 and table.concat(list, " * ") or "1" end

local MOST_INLINED = 4 -- producers, one of what another reads

-- What TMA brings of a copy, once what writes what it reads, such as padding, is inlined.
local function brought_by(sch, copy)
  local trial = sch:copy()
  local c = trial:handle(copy)
  for _ = 1, MOST_INLINED do
    local producer = products.producer_of(trial, c, 0)
    if not producer or common.is_kept(trial, producer) or not trial:try("compute_inline", producer) then break end
  end
  return trial:copy_tile(c)
end

-- The group, whose tiles threads copy.
local function without_copies(group)
  return setmetatable({boxes = false, producer = false, blocks = false}, {__index = group})
end

-- The group, with what TMA bulk tensor copies bring of both operands: numbers of m, n and k that tiles divide. Where
-- they bring none of one, or less than one of the group's products has, threads copy both. packs: of which, "a" or "b",
-- a constant is packed, and lies as its tiles; nil: of none.
local function with_copies(sch, block, group, copies, by_columns, a_by_columns, packs)
  if not group.boxes then return group end
  local a, b, extents = brought_by(sch, copies.a), brought_by(sch, copies.b), sch:iter_extents(block)
  local m, n, k = table.unpack(extents, #extents - 2)
  if packs == "a" then a = a_by_columns and {k, m} or {m, k} end
  if packs == "b" then b = by_columns and {n, k} or {k, n} end
  if a[1] == 0 or b[1] == 0 then return without_copies(group) end
  local function side(copy, columns) return copy[columns and 2 or 1], copy[columns and 1 or 2] end
  local rows, along_a = side(a, a_by_columns)
  local columns, along_b = side(b, not by_columns)
  local units, copied = group.multiples, {{rows}, {columns}, {along_a, along_b}}
  for d, unit in ipairs {units.m, units.n, units.k} do
    for _, run in ipairs(copied[d]) do
      if run < extents[#extents - 3 + d] and run % unit ~= 0 then return without_copies(group) end
    end
  end
  return setmetatable({copied = copied}, {__index = group})
end

-- Splits as tiling.split does, and holds draws against what a block has: registers for its accumulators and theirs at a
-- time, shared memory for tiles, those that run ahead among them, and for accumulators on their way out; and against
-- what TMA brings. taken: gets the bytes of both, the number of blocks, and of those of them that neighbour along m
-- and n, as the trace writes them.
local function split_within(group, batch, shared_bytes, taken)
  local groups, inner, outer, steps, products_beside, tiles = {}, {}, {}, {}, {},
    {[batch + 1] = tostring(group.multiples.m), [batch + 2] = tostring(group.multiples.n)}
  local function hold(sch)
    local accumulators, beside = string.format("%d * %s", group.registers, product(inner)), group.beside
    -- A producer warp group has the registers that a thread needs beside its accumulators.
    sch:assert(string.format("%s <= %d and %s * (%s + %d) <= %d", accumulators, MOST_REGISTERS - beside,
                             product(groups), accumulators, beside, GROUP_REGISTERS - (group.producer and beside or 0)))
  end
  -- Bytes of tiles of all the products of a batch that a block has.
  local function of_batch(bytes) return table.concat({bytes, table.unpack(products_beside)}, " * ") end
  -- dimension: 1 to 3, of m, n and k.
  local function hold_copies(sch, dimension, tile, all)
    for _, copied in ipairs(group.copied and group.copied[dimension] or {}) do
      if copied < all then sch:assert(string.format("%d %% (%s) == 0", copied, tile)) end
    end
  end
  return function(sch, _, loop, count, p, at)
    local extent = sch:extent(loop)
    if taken.windows and at <= batch then -- copies of pixels are of one product
      local first, second = sch:sample_perfect_tile(loop, 2, extent)
      outer[#outer + 1] = tostring(extent)
      return {sch:split(loop, {first, second, 1, 1})}
    end
    local factors = {sch:sample_perfect_tile(loop, count, p.max_innermost)}
    local rows, columns = tiles[batch + 1], tiles[batch + 2]
    if at <= batch + 2 then
      groups[#groups + 1], inner[#inner + 1] = factors[3]:name(), factors[4]:name()
      outer[#outer + 1] = factors[1]:name() .. " * " .. factors[2]:name()
      taken.blocks = product(outer)
      taken.rows, taken.columns = taken.columns, factors[2]:name()
      if at == batch + 2 then
        taken.groups_n, taken.own_n = factors[3]:name(), string.format("%d * %s", group.multiples.n, factors[4]:name())
      end
      if tiles[at] then tiles[at] = table.concat({tiles[at], factors[3]:name(), factors[4]:name()}, " * ") end
      if at <= batch and extent ~= 1 then
        table.move({factors[3]:name(), factors[4]:name()}, 1, 2, #products_beside + 1, products_beside)
      end
      hold(sch)
      local unit = ({group.multiples.m, group.multiples.n})[at - batch]
      if unit then hold_copies(sch, at - batch, tiles[at], extent * unit) end
      taken.m = of_batch(tiles[batch + 1])
      if at == batch + 2 then
        taken.accumulators = of_batch(string.format("4 * %s * (%s + %d)", tiles[batch + 1], tiles[batch + 2],
                                                    ACCUMULATORS_APART))
        sch:assert(string.format("%s <= %d", taken.accumulators, shared_bytes))
      end
    else
      hold_copies(sch, 3, group.multiples.k .. " * " .. factors[2]:name(), extent * group.multiples.k)
      local bytes = of_batch(string.format("%d * %s * (%s + %s)", group.bytes * group.multiples.k, factors[2]:name(),
                                           rows, columns))
      taken.ahead = common.sample_equal(sch, group.ahead)
      taken.tiles = string.format("(%s + %d) * %s", taken.ahead:name(), BESIDE_AHEAD, bytes)
      sch:assert(string.format("%s <= %d and (%s <= 1 or %s <= %d)", bytes, shared_bytes, factors[1]:name(),
                               taken.tiles, shared_bytes))
      steps[#steps + 1] = factors[1]:name()
      taken.steps = product(steps)
    end
    return {sch:split(loop, factors)}, factors
  end
end

-- How far apart the values of an iteration are in an input: of that among `numbers` which is the innermost of more than
-- one value.
local function innermost_stride(sch, block, numbers, input)
  local loops = {sch:get_loops(block)}
  for i = #numbers, 1, -1 do
    local l = loops[numbers[i]]
    if sch:extent(l) > 1 then return sch:strides(block, l)[input] or math.huge end
  end
  return math.huge
end

-- Rows of the first input are nearer to one another in memory than what is summed, as where it is transposed.
local function lies_transposed(sch, block, classes)
  local input = classes.inputs[1]
  return innermost_stride(sch, block, classes.m, input) < innermost_stride(sch, block, classes.k, input)
end

-- The rows of the second input, as they lie, are what is summed: of a turned product, an image's channels, as its
-- pixels follow one another by taps, too.
local function lies_by_columns(sch, block, classes)
  local input, loops = classes.inputs[2], {sch:get_loops(block)}
  if classes.turned then return innermost_stride(sch, block, classes.k, input) == 1 end
  for _, v in ipairs(classes.k) do if sch:strides(block, loops[v])[input] == 1 then return true end end
  return false
end

-- Whether a side is whole rows of some group's product.
local function fills_rows(side, groups)
  for _, group in ipairs(groups) do if side % group.multiples.m == 0 then return true end end
  return false
end

-- The classes of a block's iterations, as a product whose results follow one another along its columns: turned, with
-- the second operand first, where those do along rows else, as of images with channels first; of several
-- products only where their rows need no padding (fitting). nil: it is no product.
local function classify(sch, block, p)
  local classes = products.classify(sch, block)
  local sides = classes and p.channels_first and products.sides(sch, block, classes)
  if not sides then return classes end
  local result = #sch:reads(block) + 1
  local columns, rows = innermost_stride(sch, block, classes.n, result), innermost_stride(sch, block, classes.m, result)
  if columns <= rows or has_matrices(sch, block, classes) and not fills_rows(sides.n, p.groups) then return classes end
  return {batch = classes.batch, m = classes.n, n = classes.m, k = classes.k, turned = true,
          inputs = {classes.inputs[2], classes.inputs[1]}}
end

-- Which operand a filter is, as it may be constant: the second, of a turned product the first.
local function filter_of(classes)
  if classes.turned then return 1, "a", "b" end
  return 2, "b", "a"
end

-- Whether the filter is a constant that lies in another order than tiles of it: packed ahead, it is copied by whole
-- vectors, and nothing computes where its elements are. TMA needs no help, but where wgmma reads columns alone.
-- last: whether what is summed is innermost in tiles.
local function is_packed(sch, block, classes, last)
  local input, dimensions = classes.inputs[filter_of(classes)], 0
  local read = sch:reads(block)[input]
  for _, extent in ipairs(read.shape) do dimensions = dimensions + (extent > 1 and 1 or 0) end
  local lies_so = classes.turned and not lies_transposed(sch, block, classes)
    or not classes.turned and lies_by_columns(sch, block, classes)
  return common.constants(sch)[read.buffer] and (dimensions > 2 + #classes.batch or last ~= lies_so)
end

local function gcd(a, b)
  while b > 0 do a, b = b, a % b end
  return a
end

-- Of both operands and the `result`: how many elements are neighbours along what is innermost in a tile, from a
-- multiple of as many on; and of what number of elements others are apart. by_columns: what is summed is innermost in
-- the second's; a_by_columns: it is not in the first's.
local function runs_of(sch, block, classes, by_columns, a_by_columns)
  local inputs, runs, apart, loops = classes.inputs, {}, {}, {sch:get_loops(block)}
  local reads, read_iters = sch:reads(block), sch:read_iters(block)
  -- An iteration that no stride is known of, as a phase that chooses taps, goes by whole rows where it is not of them.
  local function row_of(number, v)
    local shape, iters = reads[number] and reads[number].shape, read_iters[number]
    local innermost = iters and iters[#shape] or 0
    return innermost > 0 and innermost ~= v and shape[#shape] or 1
  end
  local inner = {a_by_columns and classes.m or classes.k, by_columns and classes.k or classes.n, result = classes.n}
  for side, number in pairs {inputs[1], inputs[2], result = #sch:reads(block) + 1} do
    local along = inner[side][#inner[side]]
    apart[side], runs[side] = 0, 0
    for v, l in ipairs(loops) do
      local stride, extent = sch:strides(block, l)[number] or row_of(number, v), sch:extent(l)
      if extent > 1 and stride ~= 0 then
        local follows = v == along and stride == 1
        if not follows then apart[side] = gcd(apart[side], math.abs(stride)) end
        runs[side] = gcd(runs[side], follows and extent or math.abs(stride))
      end
    end
    local first = sch:strides(block, loops[along])[number]
    if first ~= 1 and sch:extent(loops[along]) > 1 then runs[side] = 1 end
  end
  return runs, apart
end

local BOX_ALIGNMENT = 16 -- bytes between rows of what TMA copies

-- Whether several iterations are summed over.
local function sums_several(sch, block, classes)
  local extents, several = sch:iter_extents(block), 0
  for _, v in ipairs(classes.k) do several = several + (extents[v] > 1 and 1 or 0) end
  return several > 1
end

-- Whether sums of a padded product end where no row of an input does: within one, as parts of a sum, or in the taps of
-- a window.
local function ends_within(sch, block, classes, p, sides, padding)
  return sides.k % padding.k ~= 0 and (p.divided or sums_several(sch, block, classes))
end

-- The group and parameters for a padded product: vectors are no longer than what a condition holds for as a whole, and
-- no TMA copy is drawn where there can be none, as of inputs whose rows lie otherwise.
local function for_padded(sch, block, group, classes, p, by_columns, a_by_columns, ends, packs)
  local runs, apart = runs_of(sch, block, classes, by_columns, a_by_columns)
  local boxes, reads = not ends, sch:reads(block)
  for i, at in ipairs(classes.inputs) do
    boxes = boxes and (packs and i == filter_of(classes) or apart[i] * reads[at].bytes % BOX_ALIGNMENT == 0)
  end
  if group.boxes and not boxes then group = without_copies(group) end
  return group, setmetatable({runs = runs}, {__index = p})
end

local WIDEST, LEAST_COPY = 16, 4 -- bytes that an asynchronous copy has, most and least

-- The parameters by which asynchronous copies bring both inputs' tiles to shared memory, as wide as they may be; nil:
-- of an input they would be of less bytes than such copies have. packed: of which, 1 or 2, a constant is packed; nil:
-- of none.
local function for_copies_ahead(sch, block, classes, p, sides, by_columns, a_by_columns, packed)
  local runs, reads = runs_of(sch, block, classes, by_columns, a_by_columns), sch:reads(block)
  if packed == 1 then runs[1] = a_by_columns and sides.m or sides.k end
  if packed == 2 then runs[2] = by_columns and sides.k or sides.n end
  for i, at in ipairs(classes.inputs) do
    if gcd(runs[i] * reads[at].bytes, WIDEST) < LEAST_COPY then return nil end
  end
  return setmetatable({runs = runs, order = classes.inputs, widest = true, by_rows = true}, {__index = p})
end

-- padding: what sides of the product grow to whole numbers of, {m, n, k}; nil: they stay. stores: the name of how
-- accumulators leave registers; nil: by way of shared memory, all together. nil: they cannot.
local function with_group(sch, block, group, classes, p, padding, stores)
  local by_columns, sync = group.by_columns, group.sync
  local either = group.sync_by_columns and (group.warps or classes.turned)
  if either and lies_by_columns(sch, block, classes) then
    by_columns, sync = true, group.sync_by_columns
    group = setmetatable({load_b = group.load_b_by_columns}, {__index = group})
  end
  local a_by_columns = group.sync_columns ~= nil and lies_transposed(sch, block, classes)
  if a_by_columns then sync = group.sync_columns .. (by_columns and "_trans" or "") end
  local alone = group.warps and group.by_columns -- wgmma of tiles by columns alone: others are transposed one by one
  local number, filter, image = filter_of(classes)
  local last_summed = by_columns or false
  if filter == "a" then last_summed = not a_by_columns end
  local packs = (alone or not group.warps) and is_packed(sch, block, classes, last_summed)
  local constant = group.boxes and common.constants(sch)[sch:reads(block)[classes.inputs[number]].buffer]
  local sides = products.sides(sch, block, classes)
  if padding then
    local ends = ends_within(sch, block, classes, p, sides, padding)
    group, p = for_padded(sch, block, group, classes, p, by_columns, a_by_columns, ends, packs or constant)
  elseif alone or classes.turned then
    p = setmetatable({runs = runs_of(sch, block, classes, by_columns, a_by_columns)}, {__index = p})
  end
  local ahead, wide = {}, nil -- of fragments
  if group.ahead and not group.warps then
    wide = for_copies_ahead(sch, block, classes, p, sides, by_columns, a_by_columns, packs and number)
    ahead.run = sums_several(sch, block, classes) and sch:iter_extents(block)[last(classes.k)] or nil
  end
  local copies = products.to_product(sch, block, classes, {by_columns = by_columns, a_by_columns = a_by_columns})
  if padding and not products.pad(sch, block, classes, copies, sides, padding) then return nil end
  -- Of a constant that TMA does not bring it brings what is packed.
  packs = packs or constant and brought_by(sch, copies[image])[1] > 0 and brought_by(sch, copies[filter])[1] == 0
  if p.runs and packs then p.runs[number] = nil end
  group = with_copies(sch, block, group, copies, by_columns, a_by_columns, packs and filter)
  if packs then
    copies.packed = copies[filter]
    common.pack_ahead(sch, copies[filter])
  end
  local product = tiling.blockize_for(sch, block, sync)
  sch:annotate(product, "meta_schedule.auto_tensorize", sync)
  sch:annotate(product, "meta_schedule.auto_tensorize_init", group.fill)
  sch:annotate(product, "warp_execution", group.warps or 1)
  if group.warps then
    -- Copies that are to run ahead are of four bytes or more.
    p = setmetatable({structure = group.structure, warps = group.warps,
                      vector_load_lengths = group.vector_load_lengths}, {__index = p})
  end
  if classes.turned then p = setmetatable({order = classes.inputs}, {__index = p}) end
  local taken = {windows = p.windows or #classes.k > 1, turned = classes.turned}
  local split = group.inner and split_for(group, #classes.batch)
    or group.warps and split_within(group, #classes.batch, p.shared_bytes, taken)
    or p.warp_limits and fragment_limits.split(sch, product, group, #classes.batch, p, by_columns, wide and ahead)
  local state = tiling.start(sch, product, p, split)
  if stores then
    if not STORES[stores](state, copies.c, group, taken) then return nil end
  else
    add_accumulator(state, copies.c, group, p)
  end
  if group.warps then
    add_tiles(state, copies, group, p, taken, not stores and taken.accumulators or taken.tile)
    return sch
  end
  local caches = add_fragments(state, classes, copies, group, wide or p)
  if group.pipeline then add_pipeline(state, caches) end
  local steps = last(state.tiles[4])
  if ahead.steps and sch:child_count(steps) == 3 then tiling.run_ahead(sch, steps, ahead.steps) end
  return sch
end

-- The schedule whose sums are divided, the parts computed by a group: straight to memory, where it can; nil: there is
-- none, or no tiles of a part are what a GPU launches.
local function with_divided(sch, block, group, p)
  local fixed = sums_several(sch, block, classify(sch, block, p))
  local other, partial = tiling.divide_sums(sch, block, p.split, group.multiples.k, p.pads, fixed)
  local classes = other and classify(other, partial, p)
  if not classes then return nil end
  p = setmetatable({divided = true}, {__index = p})
  for _, own in ipairs(fitting(other, partial, p, classes)) do
    if own.group == group then
      local stores = group.store_result and not own.cuts and "result" or nil
      return tiling.attempt(with_group, other, partial, group, classes, p, own.padding, stores)
    end
  end
end

-- How accumulators leave registers in further sketches, where something follows them, and where nothing does.
local STORES_OF = {followed = {"lanes", "tiles"}, result = {"result", "tiles"}}

-- Adds the schedules of the groups that fit.
local function add_groups(results, sch, block, p)
  local classes, followed = classify(sch, block, p), #sch:consumers(block) > 0
  for _, f in ipairs(classes and fitting(sch, block, p, classes) or {}) do
    local group, s = f.group, sch:copy()
    results[#results + 1] = with_group(s, s:handle(block), group, classes, p, f.padding)
    for _, stores in ipairs(followed and STORES_OF.followed or STORES_OF.result) do
      if group.store_result and not f.cuts and (stores ~= "tiles" or group.epilogue) then
        local o = sch:copy()
        results[#results + 1] = tiling.attempt(with_group, o, o:handle(block), group, classes, p, f.padding, stores)
      end
    end
    if not group.inner then results[#results + 1] = with_divided(sch, block, group, p) end
  end
end

return msched.rule {
  name = "multi_level_tiling_tensor_core",
  at = "blocks",
  apply = function(sch, block, _, self)
    if not common.can_tile(sch, block) then return {sch} end
    local results, p, of, b = {}, self.parameters, nest.by_products(sch, block)
    if of ~= sch then p = setmetatable({windows = true}, {__index = p}) end
    add_groups(results, of, b, p)
    local last, copied
    if p.channels_first then last, copied = channels_last.of(of, b) end
    if last then add_groups(results, last, copied, p) end
    local padded, with_more
    if p.few_channels then padded, with_more = few_channels.of(of, b) end
    if padded then add_groups(results, padded, with_more, p) end
    results[#results + 1] = sch
    return results
  end,
}
