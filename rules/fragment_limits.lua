-- What tiles may be so that warps multiply them by fragments: asserted of the drawn numbers, so that a draw that
-- verify_gpu_code would refuse, or whose accumulators do not stay in registers, is not made. Each draw is held against
-- what is drawn so far, the rest at its least. The levels are those of `SSSRRSRS`: warps are the third of a spatial
-- loop, and what is inside of them is a warp's.
local common = msched.load "rules.common"

local fragment_limits = {}

local WARPS, STEPS = 3, 2 -- the first factors of a spatial loop and of one that is summed that a block's tiles have
local LEAST_BUFFERS = 2 -- where copies run ahead
local ALIGNED = 32 -- elements: padded rows lie `padding` more than a multiple of them apart

-- The product of numbers and names of draws, in one table or several.
local function product(...)
  local all = {}
  for _, list in ipairs {...} do table.move(list, 1, #list, #all + 1, all) end
  return #all > 0 and table.concat(all, " * ") or "1"
end

local function names_of(factors, first)
  local list = {}
  for i = first, #factors do list[#list + 1] = factors[i]:name() end
  return list
end

-- Elements from a row of a tile to the next.
local function apart(row, padding)
  return padding and string.format("(%s + (%d - %s) %% %d)", row, padding, row, ALIGNED) or row
end

-- Registers of a thread: accumulators, and the fragments of one step.
local function registers_of(self, group)
  local of = self.own
  local operands = string.format("%s * (%s + %s)", product({group.operands}, of.batch), product(of.m), product(of.n))
  return string.format("%s + %s", product({group.registers}, of.batch, of.m, of.n), operands)
end

local function hold_registers(self, sch, group, p)
  local registers, warps = registers_of(self, group), product(self.warps)
  sch:assert(string.format("%d * %s <= %d and %s <= %d and %s * (%s + %d) <= %d", p.warp_limits.warp, warps,
                           p.warp_limits.threads, registers, p.warp_limits.registers - group.beside, warps, registers,
                           group.beside, p.warp_limits.block_registers // p.warp_limits.warp))
end

-- Tiles of both inputs, so many stage buffers of them, and of the result on its way out, which come to lie in shared
-- memory one after the other. unless: a condition under which one stage buffer is enough; nil: there is none.
local function hold_shared(self, sch, group, p, by_columns, buffers, unless)
  local batch, m, n, k = self.tile.batch, product(self.tile.m), product(self.tile.n), product(self.tile.k)
  local b = by_columns and string.format("%s * %s", n, apart(k, group.padding))
    or string.format("%s * %s", k, apart(n, group.padding))
  local bytes = string.format("%s * (%s * %s + %s)", product({self.bytes.inputs}, batch), m, apart(k, group.padding), b)
  sch:assert(string.format("%s <= %d", bytes, p.shared_bytes))
  if buffers then sch:assert(string.format("%s or %s * %s <= %d", unless, buffers, bytes, p.shared_bytes)) end
  sch:assert(string.format("%s <= %d", product({self.bytes.output}, batch, self.tile.m, self.tile.n), p.shared_bytes))
end

-- A step is within a tap, or of whole ones: which one it is, is not computed of each place that a thread copies.
local function hold_taps(self, sch, group, run)
  if not run or run % group.multiples.k ~= 0 then return end
  local step = product(self.tile.k)
  sch:assert(string.format("%d %% (%s) == 0 or %s %% %d == 0", run, step, step, run))
end

-- Splits as tiling.split does, and holds what is drawn of the block against p.warp_limits: {threads, warp, registers,
-- block_registers}, of a block, a warp, a thread and a block, and p.shared_bytes. group: registers of a thread for a
-- fragment of accumulators and of an operand, and beside both. batch: how many loops come before rows, columns and what
-- is summed. ahead: gets what is drawn of how many steps copies run ahead, of the group's choices; its `run`, where it
-- has one, is how many neighbours along the sum are of one tap; nil: they do not.
function fragment_limits.split(sch, block, group, batch, p, by_columns, ahead)
  local reads, written = sch:reads(block), sch:writes(block)[1]
  local self = {warps = {}, bytes = {output = written.bytes}, own = {batch = {}, m = {}, n = {}},
                tile = {batch = {}, m = {group.multiples.m}, n = {group.multiples.n}, k = {group.multiples.k}}}
  for _, r in ipairs(reads) do if r.buffer ~= written.buffer then self.bytes.inputs = r.bytes end end
  local kinds = {[batch + 1] = "m", [batch + 2] = "n", [batch + 3] = "k"}
  return function(s, _, loop, count, parameters, at)
    local kind, extent = kinds[at] or "batch", s:extent(loop)
    local factors = {s:sample_perfect_tile(loop, count, parameters.max_innermost)}
    if extent ~= 1 then
      local names = names_of(factors, kind == "k" and STEPS or WARPS)
      table.move(names, 1, #names, #self.tile[kind] + 1, self.tile[kind])
      if kind ~= "k" then
        self.warps[#self.warps + 1] = names[1]
        table.move(names, 2, #names, #self.own[kind] + 1, self.own[kind])
        hold_registers(self, s, group, parameters)
      end
      if kind == "k" and ahead then
        hold_taps(self, s, group, ahead.run)
        local once = factors[1]:name() .. " <= 1"
        hold_shared(self, s, group, parameters, by_columns, LEAST_BUFFERS, once)
        ahead.steps = common.sample_equal(s, group.ahead)
        hold_shared(self, s, group, parameters, by_columns, string.format("(%s + 1)", ahead.steps:name()), once)
      else
        hold_shared(self, s, group, parameters, by_columns)
      end
    end
    return {s:split(loop, factors)}, factors
  end
end

return fragment_limits
