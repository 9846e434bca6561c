-- What tiles may be so that a GPU launches them: asserted of the drawn numbers by multi-level tiling, so that a draw
-- that verify_gpu_code would refuse is not made. Each draw is held against what is drawn so far, the rest at its least:
-- a tile that cannot be right any more is left at once.
local limits = {}

-- How many elements a region's extent grows by in each dimension as a loop advances by one, from how far its start
-- moves in all: {dimension = elements}; nil: it does not come apart.
local function growth(stride, shape)
  local unit, units = 1, {}
  for d = #shape, 1, -1 do units[d], unit = unit, unit * math.max(shape[d], 1) end
  local list, left = {}, math.abs(stride)
  for d = 1, #shape do
    if left >= units[d] and left > 0 then list[d], left = left // units[d], left % units[d] end
  end
  return left == 0 and list or nil
end

-- The regions that the block reads, not counting its result: {bytes, extents, grows = a table of dimensions for each
-- loop}. nil: one is not known.
local function reads_of(sch, block, loops)
  local list, result, reads = {}, sch:writes(block)[1].buffer, sch:reads(block)
  for _, l in ipairs(loops) do
    local strides = sch:strides(block, l)
    for i, r in ipairs(reads) do
      list[i] = list[i] or {bytes = r.bytes, extents = r.extents, grows = {}, own = r.buffer == result}
      local grows = strides[i] and growth(strides[i], r.shape)
      if not grows then return nil end
      table.insert(list[i].grows, grows)
    end
  end
  local others = {}
  for _, r in ipairs(list) do if not r.own then others[#others + 1] = r end end
  return others
end

-- What is to be asserted of a block's loops, before they are split: p, the parameters of tiling.lua; levels of the
-- kinds S and R; least: the fewest threads. nil: nothing.
function limits.new(sch, block, p, levels, kinds, loops, least)
  local self = {p = p, levels = levels, kinds = kinds, least = least, factors = {}, extents = {}, sch = sch}
  for i, l in ipairs(loops) do
    self.extents[i] = sch:extent(l)
    if not self.extents[i] then return nil end
  end
  self.reads = p.read and reads_of(sch, block, loops)
  self.result_bytes = sch:writes(block)[1].bytes
  return setmetatable(self, {__index = limits})
end

local function product(list) return #list > 0 and table.concat(list, " * ") or "1" end

-- The factors of loop `at` at the levels that `wanted` says yes to.
function limits:parts(at, wanted)
  local list = {}
  for k, factor in ipairs(self.factors[at] or {}) do
    if wanted(self.levels[self.kinds[at] == "spatial" and "S" or "R"][k]) then list[#list + 1] = factor:name() end
  end
  return list
end

-- The product of what all spatial loops drawn so far have at such levels.
function limits:spatial(wanted)
  local all = {}
  for at in ipairs(self.extents) do
    if self.kinds[at] == "spatial" then
      local list = self:parts(at, wanted)
      table.move(list, 1, #list, #all + 1, all)
    end
  end
  return product(all)
end

-- Bytes of shared memory: what is read under the loops of the level that caches are filled at, by all threads of a
-- block.
function limits:shared()
  local axes, terms = self.p.binds, {}
  local function inside(level)
    return level > self.p.read.levels[1] or axes[level] and not axes[level]:find("blockIdx", 1, true)
  end
  for _, r in ipairs(self.reads) do
    local extents = {tostring(r.bytes)}
    for d, least in ipairs(r.extents) do
      local sum = {tostring(least)}
      for at, grows in ipairs(r.grows) do
        local parts = grows[d] and self:parts(at, inside) or {}
        if #parts > 0 then sum[#sum + 1] = string.format("%d * (%s - 1)", grows[d], product(parts)) end
      end
      extents[#extents + 1] = "(" .. table.concat(sum, " + ") .. ")"
    end
    terms[#terms + 1] = product(extents)
  end
  return table.concat(terms, " + ")
end

-- Loop `at` was split by these factors, which were drawn.
function limits:drawn(at, factors)
  self.factors[at] = factors
  if self.kinds[at] == "spatial" then self:hold_threads(at) end
  if self.reads and #self.reads > 0 then
    self.sch:assert(string.format("%s <= %d", self:shared(), self.p.limits.shared_bytes))
  end
end

-- The schedule, in which so many stage buffers of each cache live at a time, if the loops that reduce at the level run
-- more than once.
function limits:hold_stage_buffers(sch, buffers, level)
  if not self.reads or #self.reads == 0 then return end
  local trips = {}
  for at in ipairs(self.extents) do
    if self.kinds[at] == "reduce" then
      table.move(self:parts(at, function(l) return l == level end), 1, 1, #trips + 1, trips)
    end
  end
  sch:assert(string.format("%s <= 1 or %d * (%s) <= %d", product(trips), buffers, self:shared(),
                           self.p.limits.shared_bytes))
end

-- Threads, virtual threads, and the bytes of a thread's part of the result, in all of its virtual threads.
function limits:hold_threads(at)
  local p, rest = self.p, 1
  for i = at + 1, #self.extents do if self.kinds[i] == "spatial" then rest = rest * self.extents[i] end end
  local function bound_to(level, axis) return (p.binds[level] or ""):find(axis, 1, true) ~= nil end
  local threads = self:spatial(function(level) return bound_to(level, "threadIdx") end)
  local virtual = self:spatial(function(level) return bound_to(level, "vthread") end)
  local own = self:spatial(function(level) return level > p.write.levels[1] or bound_to(level, "vthread") end)
  self.sch:assert(string.format("%s >= %d and %s <= %d", threads, (self.least + rest - 1) // rest, threads,
                                p.threads.most))
  self.sch:assert(string.format("%s <= %d and %d * %s <= %d", virtual, p.limits.vthreads, self.result_bytes, own,
                                p.limits.local_bytes))
end

return limits
