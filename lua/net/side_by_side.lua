-- Which calls of a plan run side by side, each on one thread, where that takes less time than one after another on all
-- threads: chains of small kernels that run on one thread anyway, as the directions of a recurrent network.
local ms = msched
local memory, analytical = ms.load "lua.net.memory", ms.load "search.cost.analytical"

-- Cycles that the start of a parallel loop costs, and that of calls side by side; what is gained at least, in cycles
-- and as a share, since estimates are rough and two threads may share a core; how many times as long one thread takes
-- for what hardly uses others; calls of a chain that are looked at; chains that are compared, and of how many lengths;
-- cycles of a second that was measured; by how much memory may grow: a share of all, or so many bytes.
local side_by_side = {LOOP = 1000, REGION = 2000, LEAST = 6000, SHARE = 0.2, SERIAL = 1.1, AHEAD = 256, CHAINS = 64,
                      LENGTHS = 32, HERTZ = 4e9, MORE = 1 / 8, MORE_BYTES = 1 << 18}

-- ---- What calls cost ---------------------------------------------------------------------------------------------

-- A function from groups to their cycles on all threads, and on one; nil: nobody knows. built_of(g): as plan.build
-- gives it, with `trace`, the schedule, and `seconds`, where it was measured.
local function costs_of(built_of, target)
  local all, known = analytical.machine(target), {}
  local one = all and setmetatable({cores = 1, parallel = 0}, {__index = all})
  if all then all.parallel = side_by_side.LOOP end
  local function estimate(entry, built)
    local cycles = all and built.trace and analytical.cost_of(entry.func, built.trace, all)
    local alone = cycles and analytical.cost_of(entry.func, built.trace, one)
    if not alone or not (cycles > 0 and cycles < math.huge and alone < math.huge) then return false end
    local measured = (built.seconds or 0) > 0 and built.seconds * side_by_side.HERTZ or cycles
    return {all = measured, one = measured * math.max(alone / cycles, 1)}
  end
  return function(g)
    local entry = g.kernel
    if known[entry] == nil then known[entry] = estimate(entry, built_of(g) or {}) end
    return known[entry] or nil
  end
end

-- ---- What depends on what ----------------------------------------------------------------------------------------

-- The groups behind each, and of how many each is behind: those that read what it gives, and what gives a result in the
-- place of a value that it reads.
local function links_of(prepared, pair_of)
  local groups, slots, maker, readers, after, before = prepared.groups, memory.slots(prepared), {}, {}, {}, {}
  for at in ipairs(groups) do after[at], before[at] = {}, 0 end
  local function link(from, to) -- once: those to a group follow each other
    local list = after[from]
    if from == to or list[#list] == to then return end
    list[#list + 1], before[to] = to, before[to] + 1
  end
  for at, g in ipairs(groups) do
    local pair = pair_of(g)
    local over = pair and slots[g.inputs[pair.input]]
    for _, reader in ipairs(over and readers[over] or {}) do link(reader, at) end
    for _, name in ipairs(g.inputs) do
      if maker[name] then link(maker[name], at) end
      local list = readers[slots[name]] or {}
      list[#list + 1], readers[slots[name]] = at, list
    end
    for _, name in ipairs(g.outputs) do maker[name] = at end
  end
  return after, before
end

-- ---- Chosen ------------------------------------------------------------------------------------------------------

-- Calls that wait for nothing but those before them in the chain, behind `first`, in order: numbers of groups, and what
-- these and all before them cost. `lead`: the first of them that take one thread more than `most` times as long as all,
-- which are better left to these, and run before.
local function chain_of(self, first, most)
  local chain, left, waiting, count = {lead = {}}, {}, {first}, 0
  while #waiting > 0 and count < side_by_side.AHEAD do
    local least = 1
    for i = 2, #waiting do if waiting[i] < waiting[least] then least = i end end
    local at = table.remove(waiting, least)
    local cost = self.cost_of(at)
    if cost then
      count = count + 1
      if #chain == 0 and (cost.all == 0 or cost.one > most * cost.all) then table.insert(chain.lead, at)
      else
        local last = chain[#chain] or {all = 0.0, one = 0.0}
        chain[#chain + 1] = {at = at, all = last.all + cost.all, one = last.one + cost.one}
      end
      for _, to in ipairs(self.after[at]) do
        left[to] = (left[to] or self.before[to]) - 1
        if left[to] == 0 then waiting[#waiting + 1] = to end
      end
    end
  end
  return chain
end

-- The beginning of a chain that takes one thread so long at most; nil: its first call takes longer.
local function beginning(chain, limit)
  local low, high = 0, #chain
  while low < high do
    local middle = (low + high + 1) // 2
    if chain[middle].one <= limit then low = middle else high = middle - 1 end
  end
  return low > 0 and {chain = chain, count = low, all = chain[low].all, one = chain[low].one} or nil
end

-- Parts as lists by thread, each to the one that has least to do, the longest first; and what the longest list takes.
local function shared_out(parts, threads)
  table.sort(parts, function(a, b)
    if a.one ~= b.one then return a.one > b.one end
    return a.chain[1].at < b.chain[1].at
  end)
  local lanes, longest = {}, 0.0
  for _, part in ipairs(parts) do
    local lane
    if #lanes < threads then
      lane = {one = 0.0}
      lanes[#lanes + 1] = lane
    else
      lane = lanes[1]
      for _, other in ipairs(lanes) do if other.one < lane.one then lane = other end end
    end
    lane[#lane + 1], lane.one = part, lane.one + part.one
    longest = math.max(longest, lane.one)
  end
  return lanes, longest
end

-- Up to LENGTHS of what the chains' beginnings take, from the shortest to the longest.
local function lengths_of(chains)
  local all, list = {}, {}
  for _, chain in ipairs(chains) do for _, each in ipairs(chain) do all[#all + 1] = each.one end end
  table.sort(all)
  local count = math.min(#all, side_by_side.LENGTHS)
  for i = 1, count do list[i] = all[(i * #all + count - 1) // count] end
  return list
end

-- Beginnings of chains that take one thread so long at most, and no more than `most` times what all threads take; and
-- what these take.
local function parts_of(chains, length, most)
  local parts, all = {}, 0.0
  for _, chain in ipairs(chains) do
    local part = beginning(chain, length)
    if part and part.one <= most * part.all then parts[#parts + 1], all = part, all + part.all end
  end
  return parts, all
end

-- The chains that begin with calls that wait for nothing.
local function chains_of(self, most)
  local chains = {}
  for _, at in ipairs(self.ready) do
    local chain = #chains < side_by_side.CHAINS and chain_of(self, at, most) or {}
    if #chain > 0 then chains[#chains + 1] = chain end
  end
  return chains
end

-- Those chains, or beginnings of them, by thread, which gain most by running side by side; nil: one after another is as
-- good. First of what hardly uses more threads than one, then of all but what uses them well.
local function best_of(self)
  local best, greatest = nil, 0.0
  for _, most in ipairs {side_by_side.SERIAL, (1 - side_by_side.SHARE) * self.threads} do
    local chains = chains_of(self, most)
    for _, length in ipairs(#chains > 1 and lengths_of(chains) or {}) do
      local parts, all = parts_of(chains, length, most)
      local lanes, longest = shared_out(parts, self.threads)
      local gain = all - longest - side_by_side.REGION
      if #lanes > 1 and gain > greatest and gain >= side_by_side.LEAST and gain >= side_by_side.SHARE * all then
        best, greatest = lanes, gain
      end
    end
  end
  return best
end

-- Takes a group as done: those that waited for it alone are ready.
local function take(self, at)
  for i, each in ipairs(self.ready) do
    if each == at then table.remove(self.ready, i) break end
  end
  for _, to in ipairs(self.after[at]) do
    self.before[to] = self.before[to] - 1
    if self.before[to] == 0 then self.ready[#self.ready + 1] = to end
  end
  table.sort(self.ready)
end

-- Those groups in order, which are done then.
local function taken(self, numbers)
  local list = {}
  table.sort(numbers) -- as they stood
  for i, at in ipairs(numbers) do
    list[i] = self.groups[at]
    take(self, at)
  end
  return list
end

-- Appends what leads the lanes' chains, one after another, and the step of the lanes.
local function add_side_by_side(self, lanes, steps)
  local leads, step = {}, {}
  for _, lane in ipairs(lanes) do
    for _, part in ipairs(lane) do table.move(part.chain.lead, 1, #part.chain.lead, #leads + 1, leads) end
  end
  for _, g in ipairs(taken(self, leads)) do steps[#steps + 1] = {{g}} end
  for k, lane in ipairs(lanes) do
    local numbers = {}
    for _, part in ipairs(lane) do
      for i = 1, part.count do numbers[#numbers + 1] = part.chain[i].at end
    end
    step[k] = taken(self, numbers)
  end
  steps[#steps + 1] = step
end

-- side_by_side.choose(prepared, built_of, pair_of, target): the groups in steps, which follow each other: a step is a
-- list of lanes, which run at the same time, each a list of groups in order. built_of(g), pair_of(g): what plan.build
-- gives of a group's function, and which result of it is in place of which input.
function side_by_side.choose(prepared, built_of, pair_of, target)
  local threads = not target.arch and target.cores or 1
  if threads < 2 then return memory.one_by_one(prepared) end
  local groups, steps = prepared.groups, {}
  local slots, cost_of_kernel = memory.slots(prepared), costs_of(built_of, target)
  local self = {groups = groups, threads = threads, ready = {}}
  self.after, self.before = links_of(prepared, pair_of)
  for at in ipairs(groups) do if self.before[at] == 0 then self.ready[#self.ready + 1] = at end end
  local nothing = {all = 0.0, one = 0.0}
  function self.cost_of(at) -- nil: it stays alone, as what is copied, and what looks at indices before it runs
    local g = groups[at]
    if g.alias then return slots[g.outputs[1]] == slots[g.inputs[1]] and nothing or nil end
    return #g.ranges == 0 and cost_of_kernel(g) or nil
  end
  while #self.ready > 0 do
    local lanes = #self.ready > 1 and best_of(self) or nil
    if lanes then add_side_by_side(self, lanes, steps)
    else steps[#steps + 1] = {taken(self, {self.ready[1]})} end
  end
  return steps
end

-- side_by_side.fits(prepared, bytes, one_by_one): whether values take little more memory so than one by one, beside the
-- constants.
function side_by_side.fits(prepared, bytes, one_by_one)
  local values, seen, constants = prepared.state.values, {}, 0
  for _, g in ipairs(prepared.groups) do
    for _, name in ipairs(g.inputs) do
      if values[name].array and not seen[name] then
        seen[name], constants = true, constants + memory.padded(memory.bytes(values[name]))
      end
    end
  end
  return bytes - one_by_one <= math.max(side_by_side.MORE * (one_by_one + constants), side_by_side.MORE_BYTES)
end

return side_by_side
