-- Binds the loops of a block to blocks and threads of a GPU, for auto_bind and rewrite_unbound_block.
local binding = {}

-- Numbers of the first loop bound to blocks and to threads; and how many of the outer loops can be fused: spatial, plain,
-- nothing beside them.
local function look(sch, loops)
  local block, thread, fusible
  for i, l in ipairs(loops) do
    local axis = sch:thread(l) or ""
    if axis:find("blockIdx", 1, true) then block = block or i
    elseif axis:find("threadIdx", 1, true) then thread = thread or i end
    if not fusible and (sch:loop_kind(l) ~= "serial" or sch:loop_iter_kind(l) ~= "spatial") then fusible = i - 1 end
    if not fusible and sch:child_count(l) > 1 then fusible = i end
  end
  return block, thread, fusible or #loops
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
  local bound, thread, fusible = look(sch, loops)
  if bound then return end
  local outer = fusible > 0 and sch:fuse(table.move(loops, 1, fusible, 1, {})) or sch:add_unit_loop(loops[1] or block)
  if thread then sch:bind(outer, "blockIdx.x") else bind_spatial(sch, outer, p, factor_of) end
end

return binding
