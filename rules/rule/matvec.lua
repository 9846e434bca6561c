-- Products of a matrix by a vector, or by a few, on a GPU, which memory bounds: each element of the matrix is read
-- once, by whole vectors, straight to registers. Neighbouring threads share out a sum, and join what they have by
-- shuffles. Vectors lie along what is summed, where that lies side by side, or along results: a thread has as many
-- then. Opens one schedule, and the block as it was. Parameters:
--   rows     vectors, at most
--   along    where sums lie side by side: threads that share out one, of which a number is drawn
--   across   the same where results do
--   steps    vectors that a thread has under way, of which a number is drawn
--   results  for each vector, that a thread has at most, where sums lie side by side
--   warps    threads that share no sum, at most
--   threads  of a block, at most
local common = msched.load "rules.common"

-- The loops by what they are: {matrix, vector: numbers of reads; rows, which only the vectors have, columns, which only
-- the matrix has, batch, which both have, reduced: numbers of loops; results: a vector's}. nil: it is no such product.
local function classify(sch, block, most_rows)
  local reads, written, kinds = sch:reads(block), sch:writes(block)[1].buffer, sch:iter_kinds(block)
  local extents, uses, plain, inputs = sch:iter_extents(block), sch:read_uses(block), sch:read_iters(block), {}
  for i, r in ipairs(reads) do if r.buffer ~= written then inputs[#inputs + 1] = i end end
  if #inputs ~= 2 or not sch:has_init(block) then return nil end
  local used = {{}, {}}
  for side, index in ipairs(inputs) do
    for _, v in ipairs(uses[index]) do used[side][v] = true end
  end
  local function as(side)
    local found = {matrix = inputs[side], vector = inputs[3 - side], rows = {}, columns = {}, batch = {}, reduced = {},
                   results = 1}
    local rows = 1
    for v, kind in ipairs(kinds) do
      local own, other = used[side][v], used[3 - side][v]
      if not extents[v] or kind == "reduce" and not (own and other) then return nil end
      local list = kind == "reduce" and "reduced" or own and other and "batch" or own and "columns" or "rows"
      table.insert(found[list], v)
      if list == "rows" then rows = rows * extents[v] end
      if list == "columns" then found.results = found.results * extents[v] end
    end
    local is_once = #plain[inputs[side]] == #uses[inputs[side]] -- unlike windows, which overlap
    return is_once and rows <= most_rows and found.results > rows and #found.reduced > 0 and found or nil
  end
  local first, second = as(1), as(2)
  return first and second and (first.results >= second.results and first or second) or first or second
end

local function handles(loops, numbers)
  local list = {}
  for i, v in ipairs(numbers) do list[i] = loops[v] end
  return list
end

local function fused(sch, loops) return #loops == 1 and loops[1] or sch:fuse(loops) end

-- The largest power of two of elements that an access of so many bytes has and that divides the extent.
local function lanes_of(extent, bytes, element)
  local lanes = math.max(1, bytes // element)
  while extent % lanes ~= 0 do lanes = lanes // 2 end
  return lanes
end

-- Which loop the read goes along, element by element; nil: along none.
local function along(sch, block, loops, index)
  for v, l in ipairs(loops) do
    if sch:extent(l) > 1 and sch:strides(block, l)[index] == 1 then return v end
  end
end

-- Both orders of loops: blocks, warps or lanes, outer steps, steps, lanes or warps, and what a thread has of a step.
local BLOCK, STEP = 2, 5

-- Copies what a thread's step reads to registers, by vectors of so many bytes.
local function copy(sch, block, index, under, bytes)
  local element = sch:reads(block)[index].bytes
  local held = sch:cache_read(block, index - 1, "local", {block})
  sch:compute_at(held, under, {preserve_unit_loops = true})
  local loops = {select(STEP + 1, sch:get_loops(held))}
  local last = table.remove(loops)
  local lanes = lanes_of(sch:extent(last), bytes, element)
  if lanes < sch:extent(last) then loops[#loops + 1], last = sch:split(last, {msched.rest, lanes}) end
  if lanes > 1 then sch:vectorize(last) end
  for _, l in ipairs(loops) do sch:unroll(l) end
end

-- Those of the list that are no more than are of use, and one at least.
local function up_to(most, list)
  local few = {list[1]}
  for i = 2, #list do if list[i - 1] < most then few[i] = list[i] end end
  return few
end

-- Writes results out by the lanes side by side, from shared memory, with what is computed of each by itself. Where
-- nothing reads the results, those who have them write them.
local function write_out(sch, block, under, lanes)
  if #sch:consumers(block) == 0 then return end
  local out = sch:cache_write(block, 0, "shared")
  local consumer = common.only_consumer(sch, out)
  while consumer and not common.is_kept(sch, consumer) and sch:can_reverse_inline(consumer) do
    sch:reverse_compute_inline(consumer)
    consumer = common.only_consumer(sch, out)
  end
  sch:reverse_compute_at(out, under, {preserve_unit_loops = true})
  local _, inner = sch:split(fused(sch, {select(BLOCK + 1, sch:get_loops(out))}), {msched.rest, lanes})
  sch:bind(inner, "threadIdx.x")
end

-- The loops of columns as blocks, threads and what a thread has of each: so many, or as many as are drawn.
local function split_columns(sch, columns, lanes, own, p)
  local factors = {sch:sample_perfect_tile(columns, own and 2 or 3, own and p.warps or p.results)}
  sch:assert(string.format("%s <= %d and %s * %s <= %d", factors[2]:name(), p.warps, factors[2]:name(), lanes:name(),
                           p.threads))
  return sch:split(columns, factors)
end

-- Threads share out sums. at: the number of the loop along which the matrix lies.
local function tile(sch, block, found, loops, at, bytes, p)
  local element, is_along = sch:reads(block)[found.matrix].bytes, at == found.reduced[#found.reduced]
  local vector = lanes_of(sch:extent(loops[at]), bytes, element)
  local rows, columns = handles(loops, found.rows), fused(sch, handles(loops, found.columns))
  local sum, own, inner = fused(sch, handles(loops, found.reduced)), nil, nil
  if is_along then
    sum, inner = sch:split(sum, {msched.rest, vector})
  else
    columns, own = sch:split(columns, {msched.rest, vector})
  end
  local length = sch:extent(sum)
  local lanes = common.sample_equal(sch, up_to(length, is_along and p.along or p.across))
  local steps = common.sample_equal(sch, up_to(length // p.across[1], p.steps))
  local blocks, warps, results = split_columns(sch, columns, lanes, own, p)
  local outer, step, lane = sch:split(sum, {msched.rest, steps, lanes})
  local order = handles(loops, found.batch)
  for _, l in ipairs {blocks, warps, outer, step, lane} do order[#order + 1] = l end
  if inner then order[#order + 1] = inner end
  table.move(rows, 1, #rows, #order + 1, order)
  order[#order + 1] = own or results
  sch:reorder(order)
  sch:bind(fused(sch, table.move(order, 1, #found.batch + 1, 1, {})), "blockIdx.x")
  sch:bind(warps, "threadIdx.y")
  sch:bind(lane, "threadIdx.x")
  for _, index in ipairs {found.matrix, found.vector} do copy(sch, block, index, lane, bytes) end
  sch:unroll(step)
  for i = #found.batch + STEP + 1, #order do sch:unroll(order[i]) end
  write_out(sch, block, warps, lanes)
  return sch
end

return msched.rule {
  name = "matvec",
  at = "blocks",
  apply = function(sch, block, context, self)
    local p = self.parameters
    local found = common.can_tile(sch, block) and sch:has_reducer(block) and classify(sch, block, p.rows)
    if not found then return {sch} end
    local s = sch:copy()
    local b = s:handle(block)
    local loops = {s:get_loops(b)}
    local at = along(s, b, loops, found.matrix)
    if at ~= found.reduced[#found.reduced] and at ~= found.columns[#found.columns] then return {sch} end
    tile(s, b, found, loops, at, context.target.vector_bytes, p)
    s:annotate(b, common.SPATIAL, 1)
    return {s, sch}
  end,
}
