-- What tiles may be so that a GPU launches them: asserted of the drawn numbers by multi-level tiling, so that a draw
-- that verify_gpu_code would refuse is not made. Each draw is held against what is drawn so far, the rest at its least:
-- a tile that cannot be right any more is left at once.
local warp_tile = msched.load "rules.warp_tile"

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

-- Where read number i stays for so many iterations of the loop and then goes on, as channels of one group do: how many,
-- and how far it goes. nil: it does not.
local function steps(sch, block, loop, i)
  local extent = sch:extent(loop)
  for every = extent // 2, 2, -1 do
    if extent % every == 0 then
      local trial = sch:copy()
      local outer, inner = trial:split(trial:handle(loop), {msched.rest, every})
      local b = trial:handle(block)
      local stride = trial:strides(b, outer)[i]
      if stride and trial:strides(b, inner)[i] == 0 then return every, stride end
    end
  end
end

-- The regions that the block reads, not counting its result: {bytes, extents, grows = a table of dimensions for each
-- loop, every = of how many iterations, apart = whether its rows are laid apart (warp_tile.lua)}. nil: one is not
-- known.
local function reads_of(sch, block, loops, lanes)
  local list, result, reads = {}, sch:writes(block)[1].buffer, sch:reads(block)
  for _, l in ipairs(loops) do
    local strides = sch:strides(block, l)
    for i, r in ipairs(reads) do
      list[i] = list[i] or {bytes = r.bytes, extents = r.extents, grows = {}, every = {}, own = r.buffer == result,
                            apart = lanes and lanes.apart[i]}
      local every, stride = 1, strides[i]
      if not stride then every, stride = steps(sch, block, l, i) end
      local grows = stride and growth(stride, r.shape)
      if not grows then return nil end
      table.insert(list[i].grows, grows)
      table.insert(list[i].every, every)
    end
  end
  local others = {}
  for _, r in ipairs(list) do if not r.own then others[#others + 1] = r end end
  return others
end

-- What is to be asserted of a block's loops, before they are split: p, the parameters of tiling.lua; levels of the
-- kinds S and R; least: the fewest threads. nil: nothing.
function limits.new(sch, block, p, levels, kinds, loops, least)
  local self = {p = p, levels = levels, kinds = kinds, least = least, factors = {}, extents = {}, known = {},
                sch = sch}
  for i, l in ipairs(loops) do
    self.extents[i] = sch:extent(l)
    if not self.extents[i] then return nil end
  end
  self.reads = p.read and reads_of(sch, block, loops, p.lanes)
  self.result_bytes = sch:writes(block)[1].bytes
  return setmetatable(self, {__index = limits})
end

-- The product of numbers and terms, as text: the numbers are one, in front.
local function product(list)
  local number, terms = 1, {}
  for _, x in ipairs(list) do
    local n = math.tointeger(tonumber(x))
    if n then number = number * n else terms[#terms + 1] = x end
  end
  if number ~= 1 or #terms == 0 then table.insert(terms, 1, tostring(number)) end
  return table.concat(terms, " * ")
end

-- The same of a sum.
local function sum_of(list)
  local number, terms = 0, {}
  for _, x in ipairs(list) do
    local n = math.tointeger(tonumber(x))
    if n then number = number + n else terms[#terms + 1] = x end
  end
  if #terms == 0 then return tostring(number) end
  if number == 0 and #terms == 1 then return terms[1] end
  local rest = number == 0 and "" or number > 0 and " + " .. number or " - " .. -number
  return "(" .. table.concat(terms, " + ") .. rest .. ")"
end

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
-- block. at_once: what is not drawn yet of the reductions is read in one iteration of that level.
function limits:shared(at_once)
  local axes, terms = self.p.binds, {}
  local function inside(level)
    return level > self.p.read.levels[1] or axes[level] and not axes[level]:find("blockIdx", 1, true)
  end
  for _, r in ipairs(self.reads) do
    local extents = {r.bytes}
    for d, least in ipairs(r.extents) do
      local sum = {least}
      for at, grows in ipairs(r.grows) do
        local parts = grows[d] and self:parts(at, inside) or {}
        if grows[d] and at_once and not self.factors[at] and self.kinds[at] == "reduce" then
          parts = {tostring(self.extents[at])}
        end
        local every = r.every[at]
        if #parts > 0 and every > 1 then
          sum[#sum + 1] = product {grows[d], string.format("((%s - 1) // %d)", product(parts), every)}
        elseif #parts > 0 then -- one less than there are
          sum[#sum + 1], sum[#sum + 2] = product {grows[d], table.unpack(parts)}, -grows[d]
        end
      end
      local extent = sum_of(sum)
      if r.apart and d == #r.extents then extent = warp_tile.row(extent, r.bytes, self.p.warp_tile) end
      extents[#extents + 1] = extent
    end
    terms[#terms + 1] = product(extents)
  end
  return table.concat(terms, " + ")
end

-- How often the loops that reduce at the outermost such level run, as far as they are drawn.
function limits:trips()
  local level, trips = self.p.structure:find("R", 1, true), {}
  for at in ipairs(self.extents) do
    if self.kinds[at] == "reduce" then
      table.move(self:parts(at, function(l) return l == level end), 1, 1, #trips + 1, trips)
    end
  end
  return product(trips)
end

-- Loop `at` was split by these factors, which were drawn.
function limits:drawn(at, factors)
  self.factors[at] = factors
  if self.kinds[at] == "spatial" then self:hold_threads(at) end
  if self.reads and #self.reads > 0 then
    local bytes = self:shared()
    self.known[#self.known + 1] = {bytes = bytes, at_once = self:shared(true), trips = self:trips()}
    self.sch:assert(string.format("%s <= %d", bytes, self.p.limits.shared_bytes))
  end
end

-- The schedule, in which so many stage buffers of each cache live at a time, if the loops that reduce at the level run
-- more than once: held of each draw, so that none is made that leaves no room for either.
function limits:hold_stage_buffers(sch, buffers)
  local most = self.p.limits.shared_bytes
  for _, k in ipairs(self.known) do
    local once = {}
    if k.trips ~= "1" then once[1] = k.trips .. " <= 1" end
    if k.at_once ~= k.bytes then once[#once + 1] = string.format("%s <= %d", k.at_once, most) end
    if #once > 0 then
      sch:assert(string.format("%d * (%s) <= %d or %s", buffers, k.bytes, most, table.concat(once, " and ")))
    end
  end
end

-- Threads, virtual threads, and the bytes of a thread's part of the result, in all of its virtual threads.
function limits:hold_threads(at)
  local p, rest = self.p, 1
  for i = at + 1, #self.extents do if self.kinds[i] == "spatial" then rest = rest * self.extents[i] end end
  local function bound_to(level, axis) return (p.binds[level] or ""):find(axis, 1, true) ~= nil end
  local threads = self:spatial(function(level) return bound_to(level, "threadIdx") end)
  local virtual = self:spatial(function(level) return bound_to(level, "vthread") end)
  local own = self:spatial(function(level) return level > p.write.levels[1] or bound_to(level, "vthread") end)
  local least = (self.least + rest - 1) // rest
  self.sch:assert((least > 1 and string.format("%s >= %d and ", threads, least) or "")
                  .. string.format("%s <= %d", threads, p.threads.most))
  self.sch:assert(string.format("%s <= %d and %s <= %d", virtual, p.limits.vthreads,
                                product {self.result_bytes, own}, p.limits.local_bytes))
end

return limits
