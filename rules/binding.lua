-- Binds the loops of a block to blocks and threads of a GPU, for auto_bind and rewrite_unbound_block.
local binding = {}

-- What a CPU would share out among its cores, a GPU shares out among its threads.
local FREE = {serial = true, parallel = true}

-- The last loop that is bound to an axis that begins so, and nil where there is none.
local function last_bound(sch, loops, prefix)
  local last
  for i, l in ipairs(loops) do if (sch:thread(l) or ""):find(prefix, 1, true) then last = i end end
  return last
end

-- How far loops from `first` on can be fused: spatial, free, nothing beside them.
local function last_fusible(sch, loops, first)
  for i = first, #loops do
    if not FREE[sch:loop_kind(loops[i])] or sch:loop_iter_kind(loops[i]) ~= "spatial" then return i - 1 end
    if sch:child_count(loops[i]) > 1 then return i end
  end
  return #loops
end

-- As many of them as one loop can have the iterations of.
local function fuse(sch, loops, first, last)
  local done, fused
  repeat
    done, fused = sch:try("fuse", table.move(loops, first, last, 1, {}))
    last = last - 1
  until done
  return fused
end

-- The loops below those that are bound to blocks become threads: as many iterations as there may be, the rest around
-- them.
local function bind_below(sch, loops, last_block, p, factor_of)
  local last = last_fusible(sch, loops, last_block + 1)
  if last <= last_block then return sch:bind(sch:add_unit_loop(loops[last_block + 1]), "threadIdx.x") end
  local loop = fuse(sch, loops, last_block + 1, last)
  local _, threads = sch:split(loop, {msched.rest, factor_of(math.min(sch:extent(loop) or math.huge, p.max_threads))})
  sch:bind(threads, "threadIdx.x")
end

-- Splits a loop over blocks and threads; more than so many blocks of so many threads each have several iterations.
local function bind_spatial(sch, loop, p, factor_of)
  local extent = sch:extent(loop) or math.huge
  if extent <= p.max_blocks * p.max_threads then
    local blocks, threads = sch:split(loop, {msched.rest, factor_of(math.min(extent, p.max_threads))})
    sch:bind(blocks, "blockIdx.x")
    sch:bind(threads, "threadIdx.x")
  else
    local rest, blocks, threads = sch:split(loop, {msched.rest, p.max_blocks, p.max_threads})
    sch:reorder({blocks, threads, rest})
    sch:bind(blocks, "blockIdx.x")
    sch:bind(threads, "threadIdx.x")
  end
end

-- Binds what is not bound. p: max_blocks, max_threads; factor_of(most): how many threads of at most so many.
function binding.bind(sch, block, p, factor_of)
  local loops = {sch:get_loops(block)}
  local last_block, thread = last_bound(sch, loops, "blockIdx"), last_bound(sch, loops, "threadIdx")
  if last_block then
    return not thread and loops[last_block + 1] and bind_below(sch, loops, last_block, p, factor_of)
  end
  local fusible = last_fusible(sch, loops, 1)
  local outer = fusible > 0 and fuse(sch, loops, 1, fusible) or sch:add_unit_loop(loops[1] or block)
  if thread then sch:bind(outer, "blockIdx.x") else bind_spatial(sch, outer, p, factor_of) end
end

return binding
