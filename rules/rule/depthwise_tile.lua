-- Tiles sums over small windows whose channels stay apart (depthwise convolutions) for a GPU: a thread has rows and
-- columns of results and a vector of channels, or where columns follow one another in memory, a run of these. What its
-- results read of the image and of the filter it copies to registers first, each element once, by whole vectors along
-- channels: of 3 x 3 terms 4 x 4 results read 2.25 elements of the image each, and one by itself reads 9. All that is
-- in registers is unrolled. Opens one schedule, and the block as it was. Parameters:
--   terms         of a window, at most
--   outer         rows or columns of a thread, at most
--   vector_bytes  channels or columns of a thread that follow one another in memory
--   threads       {least, most} of a block
--   registers     of a thread, for what it reads and its results
local common = msched.load "rules.common"

local function set_of(list)
  local set = {}
  for _, v in ipairs(list) do set[v] = true end
  return set
end

-- The numbers of two reads but the result's: an image in which windows move, all sums being over such windows, and a
-- filter, which no iteration moves by windows; and the window iterations over space, as a set. nil: it is no such sum.
local function classify(sch, block, terms)
  local reads, written, kinds = sch:reads(block), sch:writes(block)[1].buffer, sch:iter_kinds(block)
  local uses, starts, inputs, count = sch:read_uses(block), sch:read_iters(block), {}, 1
  for i, r in ipairs(reads) do if r.buffer ~= written then inputs[#inputs + 1] = i end end
  if #inputs ~= 2 then return nil end
  for v, extent in ipairs(sch:iter_extents(block)) do
    if not extent then return nil end
    if kinds[v] == "reduce" then count = count * extent end
  end
  if count < 2 or count > terms then return nil end
  for k, image in ipairs(inputs) do
    local filter, plain, moving, moves, all = inputs[3 - k], set_of(starts[image]), {}, false, true
    for _, v in ipairs(uses[image]) do
      if kinds[v] == "spatial" and not plain[v] then moving[v], moves = true, true end
    end
    local used, of_filter = set_of(uses[image]), set_of(uses[filter])
    for v, kind in ipairs(kinds) do
      if kind == "reduce" and (plain[v] or not used[v]) then all = false end
      if moving[v] and of_filter[v] then all = false end
    end
    if all and moves then return {image = image, filter = filter, moving = moving, terms = count} end
  end
end

-- How many elements the region grows by, in the dimension in which the loop moves it, as the loop goes on by one; nil:
-- in none, or in several.
local function step_of(sch, block, index, loop)
  local stride, unit = sch:strides(block, loop)[index], 1
  local shape = sch:reads(block)[index].shape
  for d = #shape, 1, -1 do
    local next_unit = unit * shape[d]
    if stride and stride > 0 and stride % unit == 0 and stride < next_unit then return stride // unit, d end
    unit = next_unit
  end
end

-- How many elements of the dimension a window has, by its loops.
local function reach_of(sch, block, index, d, window)
  local reach = 1
  for _, l in ipairs(window) do
    local step, at = step_of(sch, block, index, l)
    if at == d then reach = reach + step * (sch:extent(l) - 1) end
  end
  return reach
end

-- The product of numbers and names of draws, in one table or several.
local function product(...)
  local all = {}
  for _, list in ipairs {...} do table.move(list, 1, #list, #all + 1, all) end
  return #all > 0 and table.concat(all, " * ") or "1"
end

-- Holds what is drawn against threads of a block, which the rest of the iterations may still become, and against
-- registers of a thread: a window's elements, a filter's, and results, all of so many lanes.
local function hold(sch, drawn, p, least, rest)
  local threads = product(drawn.threads)
  sch:assert(string.format("%s >= %d and %s <= %d", threads, (least + rest - 1) // rest, threads, p.threads.most))
  sch:assert(string.format("%s + %s + %s <= %d", product(drawn.window, drawn.lanes), product(drawn.filter, drawn.lanes),
                           product(drawn.results), p.registers))
end

-- Splits a loop over space into parts for blocks, threads and, unless it is neither of windows nor what follows one
-- another in memory, one thread. False: it is not known how far a window moves.
local function split(sch, block, found, l, moves, p, parts, drawn)
  local is_inner = sch:write_stride(block, 0, l) == 1
  local is_own = sch:extent(l) > 1 and (is_inner or moves)
  local step, d
  if is_own and moves then
    step, d = step_of(sch, block, found.image, l)
    if not step then return false end
  end
  local most = is_inner and math.max(1, p.vector_bytes // sch:writes(block)[1].bytes) or p.outer
  local factors = {sch:sample_perfect_tile(l, is_own and 3 or 2, is_own and most or -1)}
  if sch:extent(l) > 1 then table.insert(drawn.threads, factors[2]:name()) end
  if is_own then
    local own = factors[3]:name()
    table.insert(drawn.results, own)
    if not moves then table.insert(drawn.lanes, own) end
    if step then
      local reach = reach_of(sch, block, found.image, d, parts.window)
      table.insert(drawn.window, string.format("(%d * (%s - 1) + %d)", step, own, reach))
    end
  end
  local pieces = {sch:split(l, factors)}
  table.insert(parts.blocks, pieces[1])
  table.insert(parts.threads, pieces[2])
  table.insert(parts.own, pieces[3])
  if is_inner then parts.inner = pieces[3] end
  return true
end

-- Parts of all loops: {blocks, threads, window, own, inner = of own, where results follow one another}; nil: windows
-- move in ways that are not known.
local function split_all(sch, block, found, p)
  local kinds, loops = common.loop_kinds(sch, block)
  local parts, rest = {blocks = {}, threads = {}, window = {}, own = {}}, common.lengths(sch, block)
  local drawn = {threads = {}, window = {}, filter = {found.terms}, lanes = {}, results = {}}
  local least = rest > 2 * p.threads.least and p.threads.least or 1
  for i, l in ipairs(loops) do if kinds[i] == "reduce" then table.insert(parts.window, l) end end
  for i, l in ipairs(loops) do
    if kinds[i] == "spatial" then
      rest = rest // sch:extent(l)
      if not split(sch, block, found, l, found.moving[i], p, parts, drawn) then return nil end
      hold(sch, drawn, p, least, rest)
    end
  end
  return parts
end

-- A copy's loops below those of threads are unrolled, the last of them a vector's where it is one.
local function unroll(sch, block, under, is_vector)
  local loops = {sch:get_loops(block)}
  for i = under + 1, #loops do
    if i < #loops or not is_vector or not sch:try("vectorize", loops[i]) then sch:try("unroll", loops[i]) end
  end
end

-- Whether the read goes on by one from a result to the next: not as a window does.
local function follows(sch, block, found, index)
  for i, l in ipairs {sch:get_loops(block)} do
    if sch:write_stride(block, 0, l) == 1 and sch:extent(l) > 1 then
      return not found.moving[i] and sch:strides(block, l)[index] == 1
    end
  end
  return false
end

local function tile(sch, block, found, p)
  local vectors = {}
  for _, index in ipairs {found.image, found.filter} do vectors[index] = follows(sch, block, found, index) end
  local parts = split_all(sch, block, found, p)
  if not parts then return nil end
  local order = {}
  for _, list in ipairs {parts.blocks, parts.threads, parts.window, parts.own} do
    table.move(list, 1, #list, #order + 1, order)
  end
  sch:reorder(order)
  sch:bind(sch:fuse(parts.blocks), "blockIdx.x")
  local threads = sch:fuse(parts.threads)
  sch:bind(threads, "threadIdx.x")
  local copies = {}
  for i, index in ipairs {found.image, found.filter} do
    copies[i] = sch:cache_read(block, index - 1, "local", {block})
    sch:compute_at(copies[i], threads, {preserve_unit_loops = true})
    unroll(sch, copies[i], 2, vectors[index])
  end
  local out = sch:cache_write(block, 0, "local")
  sch:reverse_compute_at(out, threads, {preserve_unit_loops = true})
  unroll(sch, out, 2, true)
  for _, l in ipairs(parts.window) do sch:unroll(l) end
  for _, l in ipairs(parts.own) do
    if l ~= parts.inner or not sch:try("vectorize", l) then sch:try("unroll", l) end
  end
  sch:annotate(block, common.SPATIAL, 1)
  return sch
end

return msched.rule {
  name = "depthwise_tile",
  at = "blocks",
  apply = function(sch, block, _, self)
    local p = self.parameters
    local found = common.can_tile(sch, block) and classify(sch, block, p.terms)
    if not found then return {sch} end
    local s = sch:copy()
    local made = tile(s, s:handle(block), found, p)
    return made and {made, sch} or {sch}
  end,
}
