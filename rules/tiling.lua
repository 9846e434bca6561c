-- What the rules of multi-level tiling share: loops split and put in the order of a structure, bound to threads; caches
-- for what is written and read again and again; copies that run ahead of what uses them. Parameters:
--   structure            a letter a level, from outside: S spatial loops, R reductions
--   max_innermost        the largest innermost tile
--   binds                thread axes of the first levels, each fused; nil: none
--   threads              {least, most}, of a block, noted for verify_gpu_code; nil: not noted
--   limits               {vthreads, shared_bytes, local_bytes}, which draws are held against; nil: they are not
--   write                {need = "must" | "may", levels, scope}: a cache for the result, under each of the levels in
--                        turn
--   read                 {levels, scope}: caches for the inputs
--   vector_load_lengths  how many elements a thread may load at once, for the caches of inputs
--   stages               depths of software pipelines, where copies may run ahead
--   runs                 of each input in turn, and `result`: elements that are neighbours from a multiple of as many
--                        on, which vectors are held against; nil: they are not
--   widest               a thread loads as many elements at once as it may; nil: that is drawn
--   order                the numbers of the inputs, in the order in which they are copied; nil: as the block reads them
--   split                {most_results, least, parts}: reductions of so many results at most are divided (split-K) into
--                        one of these numbers of parts, of at least so many terms each; nil: none is
--   warp_tile, lanes     the lanes of a warp are a tile (warp_tile.lua), and where they lie; nil: they follow results
--   in_parts             the first loop is over parts of a sum: no block of threads has several, since what it reads of
--                        them is far apart
--   whole                the numbers of other loops that no block of threads has several iterations of: groups
-- Sources: Zheng et al., "Ansor", OSDI 2020, section 4.1; Shao et al., NeurIPS 2022; Osama et al., "Stream-K", PPoPP
-- 2023, section 3.
local common, limits = msched.load "rules.common", msched.load "rules.tile_limits"
local nest, warp_tile = msched.load "rules.register_loops", msched.load "rules.warp_tile"

local tiling = {}

local function last(list) return list[#list] end

-- Levels of each kind in the structure.
local function levels_of(structure)
  local levels = {S = {}, R = {}}
  for i = 1, #structure do table.insert(levels[structure:sub(i, i)], i) end
  return levels
end

-- The fewest threads of a block, where so many iterations are shared out among all.
local function least_threads(threads, spatial) return spatial and spatial > 2 * threads.least and threads.least or 1 end

local function note_threads(sch, block, threads, spatial)
  local least = least_threads(threads, spatial)
  sch:annotate(block, "meta_schedule.thread_extent_low_inclusive", least)
  sch:annotate(block, "meta_schedule.thread_extent_high_inclusive", threads.most)
end

-- Splits and orders the loops; gives those of each level, and what the draws are held against. split(sch, block, loop,
-- count, p, at) gives the tiles of the loop numbered `at`.
local function tile_nest(sch, block, p, split)
  local kinds, loops = common.loop_kinds(sch, block)
  local levels, tiles, spatial = levels_of(p.structure), {}, 1
  for i = 1, #p.structure do tiles[i] = {} end
  local parts_at = p.in_parts and kinds[2] == "spatial" and 1 or 0 -- the parts' loop
  local function is_whole(i)
    for _, number in ipairs(p.whole or {}) do if number == i then return true end end
    return i == parts_at
  end
  for i, l in ipairs(loops) do
    local counts = kinds[i] == "spatial" and not is_whole(i)
    if counts then spatial = spatial and sch:extent(l) and spatial * sch:extent(l) end
  end
  local held = p.limits and limits.new(sch, block, p, levels, kinds, loops, least_threads(p.threads, spatial))
  for i, l in ipairs(loops) do
    local at = kinds[i] == "spatial" and levels.S or kinds[i] == "reduce" and levels.R or {}
    local parts, factors = (#at == 1 or is_whole(i)) and {l} or {}, nil
    if #parts == 0 and #at > 1 then parts, factors = split(sch, block, l, #at, p, i) end
    if held and factors then held:drawn(i, factors) end
    for k, part in ipairs(parts) do table.insert(tiles[at[k]], part) end
  end
  if p.lanes then
    local threads = tiles[levels.S[3]]
    table.move(warp_tile.lanes(p.lanes), 1, 3, #threads + 1, threads)
  end
  local order = {}
  for _, level in ipairs(tiles) do table.move(level, 1, #level, #order + 1, order) end
  sch:reorder(order)
  for i, axis in ipairs(p.binds or {}) do
    local fused = sch:fuse(tiles[i])
    sch:bind(fused, axis)
    tiles[i] = {fused}
  end
  if p.threads then note_threads(sch, block, p.threads, spatial) end
  return tiles, held
end

-- A state is a schedule with its block and tiles, in one copy; fork gives it in another.
local function fork(state)
  local sch, tiles = state.sch:copy(), {}
  for i, level in ipairs(state.tiles) do
    tiles[i] = {}
    for k, l in ipairs(level) do tiles[i][k] = sch:handle(l) end
  end
  return {sch = sch, block = sch:handle(state.block), tiles = tiles, held = state.held}
end

-- The result is written under the last loop of each level in turn, by the block that does so already or by a new one;
-- where there may be no cache, also as it is.
local function add_write_reuse(state, write)
  local levels = state.sch:annotation(state.block, "meta_schedule.write_cache_level")
  local must = levels ~= nil or write.need == "must"
  local results = must and {} or {state}
  local consumer = not must and common.only_consumer(state.sch, state.block)
  for _, level in ipairs(levels or write.levels) do
    local under = last(state.tiles[level])
    if under then
      local s = fork(state)
      local out = consumer and s.sch:handle(consumer) or s.sch:cache_write(s.block, 0, write.scope)
      local loop = s.sch:handle(under)
      if s.sch:can_reverse_compute_at(out, loop) then
        s.sch:reverse_compute_at(out, loop, {preserve_unit_loops = true})
        results[#results + 1] = s
      end
    end
  end
  return results
end

-- How many elements of the type a thread can load at once. run: so many of each that are neighbours, or one by one.
local function loadable(lengths, bytes, vector_bytes, run)
  local list = {}
  for _, n in ipairs(lengths) do
    if n * bytes <= vector_bytes and (bytes >= 4 or n == 1 or n % 2 == 0) and (not run or run % n == 0) then
      list[#list + 1] = n
    end
  end
  if run and #list == 0 then return {1} end
  return list
end

-- What threads of a block load together: rewrite_cooperative_fetch shares it out among them. run: neighbours that lie
-- from a multiple of their number on; nil: it is not known.
function tiling.note_fetch(sch, cache, p, run)
  local lengths = loadable(p.vector_load_lengths, sch:writes(cache)[1].bytes, p.vector_bytes, run)
  if p.widest and #lengths > 0 then lengths = {math.max(table.unpack(lengths))} end
  if p.warps then sch:annotate(cache, "msched.fetching_warps", p.warps) end
  if #lengths > 0 then sch:annotate(cache, "meta_schedule.cooperative_fetch", common.sample_equal(sch, lengths)) end
end

-- Copies of the inputs, under the last loop of a level, in p.read.scope or another; gives them. One of no dimensions is
-- read as it is: a single number needs no copy.
function tiling.add_read_caches(state, level, p, scope)
  local sch, written, caches = state.sch, {}, {}
  for _, w in ipairs(sch:writes(state.block)) do written[w.buffer] = true end
  local reads = sch:reads(state.block)
  for k = 1, #(p.order or reads) do
    local i = p.order and p.order[k] or k
    local r = reads[i]
    if not written[r.buffer] and #r.shape > 0 then
      local cache = sch:cache_read(state.block, i - 1, scope or p.read.scope, {state.block})
      sch:compute_at(cache, last(state.tiles[level]), {preserve_unit_loops = true})
      if p.lanes and p.lanes.apart[i] then warp_tile.lay_apart(sch, cache, r.bytes, p.warp_tile) end
      local loops = {sch:get_loops(cache)}
      local own = table.move(loops, #loops - #r.shape + 1, #loops, 1, {})
      if p.by_rows and #own > 1 then
        sch:annotate(cache, "msched.fetching_rows", 1)
        own[#own] = nil
      end
      if #own > 1 or not p.by_rows then sch:fuse(own) end
      if p.vector_load_lengths then tiling.note_fetch(sch, cache, p, p.runs and p.runs[#caches + 1]) end
      caches[#caches + 1] = cache
    end
  end
  return caches
end

local function add_read_reuse(state, p)
  local results = {}
  for _, level in ipairs(p.read.levels) do
    local s = #p.read.levels == 1 and state or fork(state)
    tiling.add_read_caches(s, level, p)
    results[#results + 1] = s
  end
  return results
end

-- The first two of the loop's three statements are copies that run ahead of what uses them, so many stages less two.
-- in_flight: a warp-group MMA overlaps with the next iteration's. boxes: a sample, 1: one thread issues TMA bulk tensor
-- copies; 0: all threads copy. producer: a sample, 1: that thread is of a producer warp group, which does nothing else.
-- blocks: a sample, so many persistent blocks; 0: a block a tile. cluster: a sample, so many blocks are a cluster and
-- multicast what they share.
function tiling.run_ahead(sch, loop, ahead, in_flight, boxes, producer, blocks, cluster)
  sch:annotate(loop, "software_pipeline_stage", {0, 0, ahead})
  sch:annotate(loop, "software_pipeline_order", {0, 1, 2})
  sch:annotate(loop, "software_pipeline_async_stages", {0})
  if in_flight then sch:annotate(loop, "software_pipeline_products_in_flight", 1) end
  if boxes then sch:annotate(loop, "software_pipeline_tensor_copies", boxes) end
  if producer then sch:annotate(loop, "software_pipeline_producer", producer) end
  if blocks then sch:annotate(loop, "software_pipeline_blocks", blocks) end
  if cluster then sch:annotate(loop, "software_pipeline_multicast", cluster) end
end

-- The copies of two inputs run so many iterations ahead of what uses them: the loop that holds all three is pipelined.
-- One stage buffer more of each lives than that.
local function add_pipeline(state, p)
  local level = p.structure:find("R", 1, true)
  local outer = level and last(state.tiles[level])
  if not outer or state.sch:child_count(outer) ~= 3 or #p.stages == 0 then return {state} end
  local results = p.lanes and {} or {state}
  for _, stage in ipairs(p.stages) do
    local s = fork(state)
    if s.held then s.held:hold_stage_buffers(s.sch, stage - 1) end
    tiling.run_ahead(s.sch, s.sch:fuse(s.tiles[level]), stage - 2)
    results[#results + 1] = s
  end
  return results
end

local function each(states, step, ...)
  local results = {}
  for _, state in ipairs(states) do
    local made = step(state, ...)
    table.move(made, 1, #made, #results + 1, results)
  end
  return results
end

-- Splits a loop into so many tiles, by what is drawn; gives them, and the numbers.
function tiling.split(sch, _, loop, count, p, at)
  if p.lanes and (at == p.lanes.across or at == p.lanes.along) then
    return warp_tile.split(sch, loop, at, p.lanes, p.warp_tile)
  end
  local factors = {sch:sample_perfect_tile(loop, count, p.max_innermost)}
  return {sch:split(loop, factors)}, factors
end

-- The state of a block whose loops are tiled. split: as tiling.split, in its place.
function tiling.start(sch, block, p, split)
  sch:annotate(block, "meta_schedule.tiling_structure", p.structure)
  local tiles, held = tile_nest(sch, block, p, split or tiling.split)
  return {sch = sch, block = block, tiles = tiles, held = held}
end

-- All schedules that the parameters make of a block that is worth tiling.
function tiling.apply(sch, block, p, split)
  local states = {tiling.start(sch, block, p, split)}
  if p.write then states = each(states, add_write_reuse, p.write) end
  if p.read then states = each(states, add_read_reuse, p) end
  if p.stages and #p.stages > 0 then states = each(states, add_pipeline, p) end
  local results = {}
  for i, state in ipairs(states) do results[i] = state.sch end
  return results
end

-- The dimensions of a read as the block's loops walk over them, those that it sums over first; nil: they are in such an
-- order, or no loop walks over one by itself.
local function summed_first(sch, block, index, shape)
  local loops, by_kind, known = {sch:get_loops(block)}, {reduce = {}, spatial = {}}, {}
  for i, kind in ipairs(sch:loop_iter_kinds(block)) do
    local stride = sch:read_stride(block, index, loops[i])
    if not stride or not by_kind[kind] then return nil end
    if stride > 0 and sch:extent(loops[i]) > 1 then
      local d = nest.dimension_of(shape, stride)
      if not d or known[d] then return nil end
      known[d] = true
      table.insert(by_kind[kind], d)
    end
  end
  local order, sorted = {}, true
  for d, extent in ipairs(shape) do
    if extent == 1 then order[#order + 1] = d elseif not known[d] then return nil end
  end
  local ones = #order
  for _, kind in ipairs {"reduce", "spatial"} do
    for _, d in ipairs(by_kind[kind]) do
      sorted = sorted and (#order == ones or d > order[#order])
      order[#order + 1] = d
    end
  end
  return not sorted and order or nil
end

-- Packs constants that a block reads ahead: what it sums over comes first, so that tiles are copied to shared memory by
-- whole vectors, and are there as threads read them.
function tiling.pack_constants(sch, block)
  local constants = common.constants(sch)
  for i, r in ipairs(sch:reads(block)) do
    local order = constants[r.buffer] and summed_first(sch, block, i - 1, r.shape)
    if order then
      common.pack_ahead(sch, nest.laid_out(sch, block, i - 1, #r.shape, function(names)
        local list = {}
        for k, d in ipairs(order) do list[k] = names[d] end
        return list
      end))
    end
  end
end

-- What a function gives; nil where an instruction in it is refused: a part of a sum may have no tiles that a GPU
-- launches.
function tiling.attempt(make, ...)
  local done, made = pcall(make, ...)
  if done then return made end
  if not msched.code_of(made) then error(made, 0) end
end

-- How many loops are around a block's longest reduction, and into how many parts that may be divided, each of a
-- multiple of iterations, or, where `any` and none is, of any number; nil: it is not.
local function parts_of(sch, block, split, multiple, any)
  local spatial, length = common.lengths(sch, block)
  if not spatial or spatial > split.most_results or not sch:has_reducer(block) then return nil end
  local kinds, place, extent = sch:loop_iter_kinds(block), nil, 0
  for i, l in ipairs {sch:get_loops(block)} do
    if kinds[i] == "reduce" and sch:extent(l) > extent then place, extent = i - 1, sch:extent(l) end
  end
  for _, of in ipairs(any and {multiple, 1} or {multiple}) do
    local list = {}
    for _, n in ipairs(split.parts) do
      if extent % (n * of) == 0 and length // n >= split.least then list[#list + 1] = n end
    end
    if #list > 0 then return place, list end
  end
end

local ADDING_THREADS = 256 -- of a block of the kernel that adds parts

-- A thread adds the parts of a result.
local function bind_addition(sch, block)
  local kinds, loops, spatial = sch:loop_iter_kinds(block), {sch:get_loops(block)}, {}
  for i, l in ipairs(loops) do if kinds[i] == "spatial" then spatial[#spatial + 1] = l end end
  local blocks, threads = sch:split(#spatial > 1 and sch:fuse(spatial) or spatial[1], {msched.rest, ADDING_THREADS})
  sch:bind(blocks, "blockIdx.x")
  sch:bind(threads, "threadIdx.x")
end

-- A schedule whose block's reductions are divided as `split` says, a kernel of its own adding the parts; and the block
-- that computes these, to be tiled. multiple: of how many iterations each part is; nil: of any number. any: where there
-- are no such parts, they are of any number. fixed: there is one choice of how many, as for maps that hold the extents.
-- Gives nil where it is not worth it.
function tiling.divide_sums(sch, block, split, multiple, any, fixed)
  if not split then return nil end
  local place, choices = parts_of(sch, block, split, multiple or 1, any)
  if not place then return nil end
  if fixed then choices = {choices[(#choices + 1) // 2]} end
  local s = sch:copy()
  local b = s:handle(block)
  local whole = select(place + 1, s:get_loops(b))
  local part = s:split(whole, {common.sample_equal(s, choices), msched.rest})
  if not s:can_rfactor(part, 0) then return nil end
  local partial = s:rfactor(part, 0)
  local loops, at = {s:get_loops(partial)}, place
  s:reorder(table.move(loops, 1, at, 2, {loops[at + 1]}))
  bind_addition(s, b)
  return s, partial
end

-- The loops of the block that stand for those of an intrinsic's description: of each kind the innermost, in their
-- order. nil: one is missing, or is no whole number of the description's.
local function loops_for(sch, block, described)
  local kinds, loops = common.loop_kinds(sch, block)
  local at, matched = #loops, {}
  for d = #described, 1, -1 do
    while at > 0 and kinds[at] ~= described[d].kind do at = at - 1 end
    local extent = at > 0 and sch:extent(loops[at])
    if not extent or extent % described[d].extent ~= 0 then return nil end
    matched[d], at = at, at - 1
  end
  return matched, loops
end

-- Whether the intrinsic would do the block's work where it stands, once its init is taken out as
-- rewrite_reduction_block will.
function tiling.accepts(sch, block, intrinsic)
  local trial = sch:copy()
  local b = trial:handle(block)
  for _, l in ipairs(trial:has_init(b) and {trial:get_loops(b)} or {}) do
    if trial:loop_iter_kind(l) == "reduce" and trial:can_decompose_reduction(b, l) then
      trial:decompose_reduction(b, l)
      break
    end
  end
  return (pcall(trial.tensorize, trial, b, intrinsic))
end

-- Splits off what one call of an intrinsic does, and makes it a block: the block around it. nil: its loops
-- do not fit.
function tiling.blockize_for(sch, block, intrinsic)
  local described = sch:intrinsic_loops(intrinsic)
  local matched, order = loops_for(sch, block, described)
  if not matched then return nil end
  local inner = {}
  for d, at in ipairs(matched) do order[at], inner[d] = sch:split(order[at], {msched.rest, described[d].extent}) end
  local from = table.move(order, math.min(table.unpack(matched)), #order, 1, {})
  sch:reorder(table.move(inner, 1, #inner, #from + 1, from))
  return sch:blockize(inner[1])
end

return tiling
