-- Has the threads of a block reduce together: the reductions become one loop, whose inner part is bound to threadIdx.x.
-- What is read in one place is computed there, into shared memory, by the threads of what reads it, each of which may
-- have several elements side by side, as one access has them. Rows that are longer than the shared memory of a block,
-- or too few to keep a GPU busy, may be shared out among the blocks of a cluster, which reduce together. Opens two
-- schedules: so, and as it was; or up to four.
local common = msched.load "rules.common"

-- The loop around the block that is bound to such an axis, or nil.
local function bound_loop(sch, block, axis)
  for _, l in ipairs {sch:get_loops(block)} do
    if (sch:thread(l) or ""):find(axis, 1, true) then return l end
  end
end

local function thread_loop(sch, block) return bound_loop(sch, block, "threadIdx") end
local function cluster_loop(sch, block) return bound_loop(sch, block, "clusterCtaIdx") end

-- Into how many parts a row of so many elements may be cut, so that each is a whole number of vectors; the most first.
-- Parts that fit in shared memory, if there are such. nil: a block does as well by itself.
local function parts_of(sch, block, length, lanes, p)
  local rows, fitting, all, bytes = common.lengths(sch, block), {}, {}, 0
  for _, r in ipairs(sch:reads(block)) do bytes = math.max(bytes, r.bytes) end
  local long = length * bytes > p.shared_bytes
  if not rows or length < p.least or (rows > p.most_rows and not long) then return nil end
  for _, n in ipairs(p.blocks) do
    if length % (n * lanes) == 0 then
      all[#all + 1] = n
      if length // n * bytes <= p.shared_bytes then fitting[#fitting + 1] = n end
    end
  end
  if #fitting > 0 then return fitting end
  return #all > 0 and all or nil
end

-- The loop is shared out among the blocks of a cluster; gives what each has.
local function share_out(sch, loop, blocks)
  local rank, part = sch:split(loop, {blocks, msched.rest})
  sch:bind(rank, "clusterCtaIdx.x")
  return part
end

-- The first consumer, its loops, and the number of the one that the block can be computed in: as deep as both have
-- spatial loops, and around all consumers. nil: there is none; nor do tiles, which many blocks of threads copy of one
-- row, compute a row's sum each.
local function place(sch, block)
  if #sch:writes(block) ~= 1 or #sch:consumers(block) == 0 then return nil end
  local consumers, kinds = {sch:get_consumers(block)}, common.loop_kinds(sch, block)
  if common.needs_tiling(sch, consumers[1]) or bound_loop(sch, consumers[1], "blockIdx") then return nil end
  local loops = {sch:get_loops(consumers[1])}
  local at = #loops
  for i = 2, #consumers do at = math.min(at, sch:shared_loops(consumers[1], consumers[i])) end
  for i = 1, at do
    if kinds[i] ~= "spatial" then at = i - 1 break end
  end
  if at > 0 then return consumers[1], loops, at end
end

-- How many elements of the loop a thread of the block may load and store at once, where they lie side by side; 1: no
-- more.
local function lanes_of(sch, block, loop, bytes)
  local extent, widest = sch:extent(loop), 1
  if not extent or #sch:writes(block) ~= 1 or sch:write_stride(block, 0, loop) ~= 1 then return 1 end
  for _, stride in ipairs(sch:strides(block, loop)) do
    if stride ~= 0 and stride ~= 1 then return 1 end
  end
  for _, regions in ipairs {sch:writes(block), sch:reads(block)} do
    for _, r in ipairs(regions) do widest = math.max(widest, r.bytes) end
  end
  local lanes = bytes // widest
  while lanes > 1 and extent % lanes ~= 0 do lanes = lanes // 2 end
  return math.max(1, lanes)
end

-- Computes the block where it is read, and gives the number of threads there. Where no loop is bound to them yet, the
-- innermost around the consumer is split for it, and for so many elements of a thread; and, where there are parts, a
-- number of which is drawn, for the blocks of a cluster.
local function fuse_into(sch, block, extents, consumer, loops, at, lanes, parts)
  local threads, under, innermost = thread_loop(sch, consumer), loops[at], loops[#loops]
  local extent = threads and (sch:split_factor(threads) or sch:extent(threads)) or common.sample_equal(sch, extents)
  if not threads then
    if parts then innermost = share_out(sch, innermost, common.sample_equal(sch, parts)) end
    local outer, inner, vector = sch:split(innermost, {msched.rest, extent, lanes > 1 and lanes or nil})
    sch:bind(inner, "threadIdx.x")
    if vector then sch:vectorize(vector) end
    if at == #loops then under = outer end
  end
  sch:compute_at(block, under, {preserve_unit_loops = true})
  sch:set_scope(block, 0, "shared")
  return extent
end

-- Blocks of the cluster that share out the row of what reads the block; nil: one has it all.
local function sharing(sch, consumer)
  local loop = cluster_loop(sch, consumer)
  return loop and (sch:split_factor(loop) or sch:extent(loop))
end

-- Into how many parts the block's row may be cut, and its consumer's, if it is computed there, in the loop of so many
-- elements; and how many of those are a vector then. nil: they are not cut.
local function cut(sch, block, own, lanes, p)
  local _, length = common.lengths(sch, block)
  if not length or (own and own ~= length) then return nil end
  while lanes > 1 and length % (lanes * p.blocks[1]) ~= 0 do lanes = lanes // 2 end
  return parts_of(sch, block, length, lanes, p), lanes
end

-- The schedule in which threads reduce. vectors: those of the consumer have several elements each of what it reads a
-- row of results for. clusters: blocks of a cluster share out a row. nil: there is none.
local function reduce(sch, block, p, context, vectors, clusters)
  local s = sch:copy()
  local b, extents = s:handle(block), p.thread_extents
  local consumer, loops, at = place(s, b)
  local extent, blocks
  local fuses = consumer and s:can_compute_at(b, loops[at])
  local begins = fuses and at < #loops and not thread_loop(s, consumer)
  local lanes = (vectors or clusters) and begins and lanes_of(s, consumer, loops[#loops], context.target.vector_bytes)
                or 1
  if vectors and lanes == 1 then return nil end
  local parts
  if clusters then
    if fuses and not begins then return nil end
    parts, lanes = cut(s, b, fuses and s:extent(loops[#loops]), lanes, p.clusters)
    if not parts then return nil end
  end
  if fuses then
    extent = fuse_into(s, b, extents, consumer, loops, at, lanes, parts)
    blocks = sharing(s, consumer)
  elseif parts then
    blocks = common.sample_equal(s, parts)
  end
  local fused = common.fuse_reduction(s, b)
  if blocks then fused = share_out(s, fused, blocks) end
  extent = extent or common.sample_equal(s, extents)
  local _, inner = s:split(fused, {msched.rest, extent})
  s:bind(inner, "threadIdx.x")
  return s
end

return msched.rule {
  name = "cross_thread_reduction",
  at = "blocks",
  apply = function(sch, block, context, self)
    if sch:is_root(block) or not common.is_nest(sch, block) or thread_loop(sch, block)
        or not common.needs_rfactor(sch, block, context.target.max_threads, 1) then
      return {sch}
    end
    local p = self.parameters
    local results = {reduce(sch, block, p, context, false)}
    if p.vectors then results[#results + 1] = reduce(sch, block, p, context, true) end
    if p.clusters then results[#results + 1] = reduce(sch, block, p, context, false, true) end
    results[#results + 1] = sch
    return results
  end,
}
