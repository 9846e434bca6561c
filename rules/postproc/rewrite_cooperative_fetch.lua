-- Shares the copies that multi-level tiling noted out among the threads of a block: each loads so many elements at
-- once, side by side with its neighbours. Where a block's last two loops are rows and columns of a tile, a warp copies
-- a few neighbours of several rows, whole lines of memory: a thread then has few rows, and its places in one of them
-- differ by constants that an instruction holds.
local NOTE = "meta_schedule.cooperative_fetch"
local WARPS = "msched.fetching_warps" -- along x, where several run an intrinsic together
local ROWS = "msched.fetching_rows" -- the last loop but one is of rows
local NEIGHBOURS = {8, 16, 32} -- threads along a row

-- How many threads run the block's loops, along x and along y: those around it, or around what writes for it; nil: none
-- are bound. Where warps run an intrinsic together, their threads are along x.
local function threads_for(sch, block, warp)
  local function threads(b) return sch:thread_extent(b, "threadIdx.x"), sch:thread_extent(b, "threadIdx.y") end
  local x, y = threads(block)
  if not x and not y then
    for _, producer in ipairs {sch:get_producers(block)} do
      x, y = threads(producer)
      if x or y then break end
    end
  end
  return x or y and warp, y
end

-- So many threads along x and y share out rows and columns; false: whole warps do not divide them.
local function share_rows(sch, rows, columns, x, y, lanes)
  for _, along in ipairs(NEIGHBOURS) do
    local across = x % along == 0 and x // along or 0
    if across > 0 and sch:is_multiple(columns, along * lanes) and sch:is_multiple(rows, across * y) then
      local times, warps, row = sch:split(rows, {msched.rest, y, across})
      local parts, neighbour, vector = sch:split(columns, {msched.rest, along, lanes})
      sch:reorder {times, parts, warps, row, neighbour, vector}
      sch:bind(warps, "threadIdx.y")
      sch:bind(sch:fuse(row, neighbour), "threadIdx.x")
      sch:vectorize(vector)
      return true
    end
  end
  return false
end

-- Asks for what it needs of threads and extents and no more: few answers are new, though both differ from candidate to
-- candidate.
local share_out = msched.memoized(function(sch, name, warp)
  local block = sch:get_sblock(name)
  local lanes = sch:annotation(block, NOTE)
  sch:unannotate(block, NOTE)
  local warps = sch:annotation(block, WARPS)
  if warps then
    sch:unannotate(block, WARPS)
    warp = warps * warp
  end
  local loops, x, y = {sch:get_loops(block)}, threads_for(sch, block, warp)
  local fused = loops[#loops]
  if sch:annotation(block, ROWS) then
    sch:unannotate(block, ROWS)
    if x and y and lanes > 1 and share_rows(sch, loops[#loops - 1], fused, x, y, lanes) then return end
    fused = sch:fuse(loops[#loops - 1], fused)
  end
  local divides -- nil: the extent is no constant
  if fused then divides = sch:is_multiple(fused, math.max(lanes, 1)) end
  if divides == nil or not x then return end
  local factors, axes = {msched.rest}, {}
  local function add(factor, axis) factors[#factors + 1], axes[#factors + 1] = factor, axis end
  if y then add(y, "threadIdx.y") end
  add(x, "threadIdx.x")
  if lanes > 1 and divides then add(lanes, "vector") end
  local parts = {sch:split(fused, factors)}
  for i = #parts, 2, -1 do
    if axes[i] == "vector" then sch:vectorize(parts[i]) else sch:bind(parts[i], axes[i]) end
  end
end)

return msched.postproc {
  name = "rewrite_cooperative_fetch",
  apply = function(sch, context)
    for _, name in ipairs(sch:blocks_with(NOTE)) do share_out(sch, name, context.target.warp) end
  end,
}
