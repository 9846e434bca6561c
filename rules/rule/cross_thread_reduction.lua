-- Has the threads of a block reduce together: the reductions become one loop, whose inner part is bound to threadIdx.x.
-- What is read in one place is computed there, into shared memory, by the threads of what reads it, each of which may
-- have several elements side by side, as one access has them. Opens two schedules: so, and as it was; or three.
local common = msched.load "rules.common"

-- The loop around the block that is bound to threads, or nil.
local function thread_loop(sch, block)
  for _, l in ipairs {sch:get_loops(block)} do
    if (sch:thread(l) or ""):find("threadIdx", 1, true) then return l end
  end
end

-- The first consumer, its loops, and the number of the one that the block can be computed in: as deep as both have
-- spatial loops, and around all consumers. nil: there is none.
local function place(sch, block)
  if #sch:writes(block) ~= 1 or #sch:consumers(block) == 0 then return nil end
  local consumers, kinds = {sch:get_consumers(block)}, common.loop_kinds(sch, block)
  if common.needs_tiling(sch, consumers[1]) then return nil end
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
-- innermost around the consumer is split for it, and for so many elements of a thread.
local function fuse_into(sch, block, extents, consumer, loops, at, lanes)
  local threads, under = thread_loop(sch, consumer), loops[at]
  local extent = threads and (sch:split_factor(threads) or sch:extent(threads)) or common.sample_equal(sch, extents)
  if not threads then
    local outer, inner, vector = sch:split(loops[#loops], {msched.rest, extent, lanes > 1 and lanes or nil})
    sch:bind(inner, "threadIdx.x")
    if vector then sch:vectorize(vector) end
    if at == #loops then under = outer end
  end
  sch:compute_at(block, under, {preserve_unit_loops = true})
  sch:set_scope(block, 0, "shared")
  return extent
end

-- The schedule in which threads reduce. vectors: those of the consumer have several elements each of what it reads a
-- row of results for; nil: it has none.
local function reduce(sch, block, p, context, vectors)
  local s = sch:copy()
  local b, extents = s:handle(block), p.thread_extents
  local consumer, loops, at = place(s, b)
  local extent
  local fuses = consumer and s:can_compute_at(b, loops[at])
  local lanes = fuses and vectors and at < #loops and not thread_loop(s, consumer)
                and lanes_of(s, consumer, loops[#loops], context.target.vector_bytes) or 1
  if vectors and lanes == 1 then return nil end
  if fuses then extent = fuse_into(s, b, extents, consumer, loops, at, lanes) end
  local fused = common.fuse_reduction(s, b)
  extent = extent or common.sample_equal(s, extents)
  local _, inner = s:split(fused, {msched.rest, extent})
  s:bind(inner, "threadIdx.x")
  return s
end

return msched.rule {
  name = "cross_thread_reduction",
  apply = function(sch, block, context, self)
    if sch:is_root(block) or not common.is_nest(sch, block) or thread_loop(sch, block)
        or not common.needs_rfactor(sch, block, context.target.max_threads, 1) then
      return {sch}
    end
    local results = {reduce(sch, block, self.parameters, context, false)}
    if self.parameters.vectors then results[#results + 1] = reduce(sch, block, self.parameters, context, true) end
    results[#results + 1] = sch
    return results
  end,
}
