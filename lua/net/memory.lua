-- Where the values of a plan are in memory: what the network takes and gives in its callers' arrays, constants in their
-- own, all others in one arena, where values that do not live at the same time share bytes.
local ms = msched
local common = ms.load "lua.net.common"
local memory = {}

local ALIGNMENT = 64
local element_types = ms.load "lua.lib.element_types".of
local function width(type_) return element_types[type_].bits // 8 end

-- The bytes of a value's elements, and those that it takes where others follow.
function memory.bytes(value) return common.count(value.shape) * width(value.type) end
function memory.padded(bytes) return (math.max(1, bytes) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT end

-- Slots by the time that they live, in a tree over the groups: node 1 has all of them, node n's halves are 2n and 2n +
-- 1. A node has the slots that live as long as it, and not as its parent, and counts those that begin within it.
local Lives = {}
Lives.__index = Lives

local function new_lives(groups)
  local size = 1
  while size < groups + 1 do size = 2 * size end
  return setmetatable({size = size, through = {}, starts = {}, begun = {}}, Lives)
end

local function add_through(lives, slot, node, from, to)
  if slot.first > to or slot.last < from then return end
  if slot.first <= from and to <= slot.last then
    local list = lives.through[node] or {}
    list[#list + 1], lives.through[node] = slot, list
    return
  end
  local middle = (from + to) // 2
  add_through(lives, slot, 2 * node, from, middle)
  add_through(lives, slot, 2 * node + 1, middle + 1, to)
end

function Lives:add(slot)
  add_through(self, slot, 1, 0, self.size - 1)
  local list = self.begun[slot.first] or {}
  list[#list + 1], self.begun[slot.first] = slot, list
  local node = self.size + slot.first
  while node >= 1 do
    self.starts[node] = (self.starts[node] or 0) + 1
    node = node // 2
  end
end

-- Appends those that begin within some groups.
local function add_begun(lives, first, last, node, from, to, list)
  if first > to or last < from or not lives.starts[node] then return end
  if from == to then
    table.move(lives.begun[from], 1, #lives.begun[from], #list + 1, list)
    return
  end
  local middle = (from + to) // 2
  add_begun(lives, first, last, 2 * node, from, middle, list)
  add_begun(lives, first, last, 2 * node + 1, middle + 1, to, list)
end

-- Those that live when the slot's first group runs, and those that begin later while it lives.
function Lives:beside(slot)
  local list, node = {}, self.size + slot.first
  while node >= 1 do
    local through = self.through[node]
    if through then table.move(through, 1, #through, #list + 1, list) end
    node = node // 2
  end
  add_begun(self, slot.first + 1, slot.last, 1, 0, self.size - 1, list)
  return list
end

-- The lowest place where a slot fits that none has which lives at the same time.
local function lowest(slot, beside)
  table.sort(beside, function(a, b) return a.offset < b.offset end)
  local offset = 0
  for _, other in ipairs(beside) do
    if other.offset - offset >= slot.bytes then break end
    offset = math.max(offset, other.offset + other.bytes)
  end
  return offset
end

-- The highest one below `top`; nil: there is none.
local function highest(slot, beside, top)
  table.sort(beside, function(a, b) return a.offset + a.bytes > b.offset + b.bytes end)
  for _, other in ipairs(beside) do
    if top - (other.offset + other.bytes) >= slot.bytes then break end
    top = math.min(top, other.offset)
  end
  return top >= slot.bytes and top - slot.bytes or nil
end

-- Gives each slot an offset, in order: the lowest, or the highest below `top` for those that is_high has. Gives the
-- bytes of all. A slot lives from its first group to its last.
local function place_in_order(slots, groups, top, is_high)
  local lives, total = new_lives(groups), 0
  for _, slot in ipairs(slots) do
    local beside = lives:beside(slot)
    slot.offset = is_high and is_high[slot] and highest(slot, beside, top) or lowest(slot, beside)
    lives:add(slot)
    total = math.max(total, slot.offset + slot.bytes)
  end
  return total
end

-- The most bytes that live at one time.
local function most_alive(slots, groups)
  local change, now, most = {}, 0, 0
  for _, slot in ipairs(slots) do
    change[slot.first] = (change[slot.first] or 0) + slot.bytes
    change[slot.last + 1] = (change[slot.last + 1] or 0) - slot.bytes
  end
  for at = 0, groups + 1 do
    now = now + (change[at] or 0)
    most = math.max(most, now)
  end
  return most
end

-- Slots of a network whose other orders are tried, all that are placed then, and those that are moved at once.
local MOST_TRIED, TRIES, CHANGED = 256, 20000, 3

-- Gives each slot of the arena an offset, the largest first, at the lowest place that none has which lives at the same
-- time; where that takes more than what lives at one time, as the best of orders that change by chance. Gives the
-- bytes of all.
local function place(slots, groups)
  table.sort(slots, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    if a.first ~= b.first then return a.first < b.first end
    return a.number < b.number
  end)
  local total, least, state = place_in_order(slots, groups), most_alive(slots, groups), 1
  if total == least or #slots > MOST_TRIED then return total end
  local function draw() -- from 0 to below 1, of a generator of Lehmer's
    state = state * 48271 % 0x7fffffff
    return (state - 1) / 0x7fffffff
  end
  local best, key, is_high, above = {}, {}, {}, math.huge
  for i, slot in ipairs(slots) do best[i], key[slot] = slot.offset, slot.bytes + 0.0 end
  for _ = 1, TRIES // #slots do
    local order, before = table.move(slots, 1, #slots, 1, {}), {}
    for _ = 1, 1 + math.floor(draw() * CHANGED) do
      local slot = slots[1 + math.floor(draw() * #slots)]
      before[slot] = before[slot] or {key[slot], is_high[slot]}
      key[slot], is_high[slot] = slot.bytes * 8 ^ (draw() - 0.5), draw() < 0.5
    end
    table.sort(order, function(a, b)
      if key[a] ~= key[b] then return key[a] > key[b] end
      return a.number < b.number
    end)
    local bytes, over = place_in_order(order, groups, least, is_high), 0
    for _, slot in ipairs(slots) do over = over + math.max(0, slot.offset + slot.bytes - least) end
    if over <= above then above = over
    else
      for slot, each in pairs(before) do key[slot], is_high[slot] = each[1], each[2] end
    end
    if bytes < total then
      total = bytes
      for i, slot in ipairs(slots) do best[i] = slot.offset end
    end
    if total == least then break end
  end
  for i, slot in ipairs(slots) do slot.offset = best[i] end
  return total
end

local function slots_of_ends(prepared, slots)
  local values = prepared.state.values
  for i, input in ipairs(prepared.net.inputs) do slots[input.name] = {kind = "input", index = i} end
  local constants = {}
  for name, value in pairs(values) do
    if value.array and not slots[name] then constants[#constants + 1] = name end
  end
  table.sort(constants)
  for _, name in ipairs(constants) do slots[name] = {kind = "constant", name = name} end
end

-- Each group as a step of its own, in order.
function memory.one_by_one(prepared)
  local steps = {}
  for at, g in ipairs(prepared.groups) do steps[at] = {{g}} end
  return steps
end

-- Calls f(group, number of its step, its lane, its place there) for all groups of steps in order.
local function each_group(steps, f)
  for at, lanes in ipairs(steps) do
    for _, lane in ipairs(lanes) do
      for place, g in ipairs(lane) do f(g, at, lane, place) end
    end
  end
end

-- A slot is used in a lane's place: it has a lane as long as it lives there only, from place to place.
local function use(slot, at, lane, place)
  slot.last, slot.to = at, place
  if slot.lane ~= lane then slot.lane = nil end
end

-- The slots of all values, by name, and those of the arena in a list; what is copied at the end. A slot lives from the
-- first step to the last that use it.
local function slots_of(prepared, steps)
  local slots, values, outputs, arena = {}, prepared.state.values, {}, {}
  slots_of_ends(prepared, slots)
  local copies = {}
  for i, output in ipairs(prepared.net.outputs) do
    if slots[output.name] or outputs[output.name] then copies[#copies + 1] = {from = output.name, index = i}
    else outputs[output.name] = {kind = "output", index = i} end
  end
  for name, slot in pairs(outputs) do slots[name] = slot end
  each_group(steps or memory.one_by_one(prepared), function(g, at, lane, place)
    for _, name in ipairs(g.inputs) do use(slots[name], at, lane, place) end
    for _, name in ipairs(g.outputs) do
      if not slots[name] and g.alias then slots[name] = slots[g.inputs[1]]
      elseif not slots[name] then
        slots[name] = {kind = "arena", first = at, last = at, lane = lane, from = place, to = place,
                       bytes = memory.padded(memory.bytes(values[name])), number = #arena}
        arena[#arena + 1] = slots[name]
      end
    end
  end)
  return slots, arena, copies
end

-- memory.slots(prepared): the slots of all values by name, which have no place yet; what shares bytes has one.
function memory.slots(prepared) return (slots_of(prepared)) end

-- ---- In place ----------------------------------------------------------------------------------------------------

-- Whether the value that a group gives may take the bytes of one that it takes: nobody reads that later, nor the group
-- itself as another of its inputs.
local function is_last_use(slots, g, at, pair)
  local from, to = slots[g.inputs[pair.input]], slots[g.outputs[pair.output]]
  if from.kind ~= "arena" or to.kind ~= "arena" or from.bytes ~= to.bytes then return false end
  if from.last ~= at or to.first ~= at then return false end
  for i, name in ipairs(g.inputs) do if i ~= pair.input and slots[name] == from then return false end end
  return true
end

-- Slots that share bytes in place become one, which lives as long as both. pair_of(g) gives which. Gives those of the
-- arena that are left.
local function joined(slots, arena, steps, pair_of)
  local into, list = {}, {}
  each_group(steps, function(g)
    local pair = pair_of(g)
    local from, to = pair and slots[g.inputs[pair.input]], pair and slots[g.outputs[pair.output]]
    if pair then
      from = into[from] or from
      into[to], from.last, from.to = from, to.last, to.to
      if from.lane ~= to.lane then from.lane = nil end
    end
  end)
  for name, slot in pairs(slots) do slots[name] = into[slot] or slot end
  for _, slot in ipairs(arena) do if not into[slot] then list[#list + 1] = slot end end
  return list
end

-- The pair of a function that all of its groups could share bytes by, and that reads each element before it writes it;
-- nil: none. at_of: where its groups stand.
local function pair_of_function(entry, slots, at_of)
  local first = entry.groups[1]
  for output in ipairs(first.outputs) do
    for input in ipairs(first.inputs) do
      local pair, fits = {input = input, output = output, parameter = #first.inputs + output}, true
      for _, g in ipairs(entry.groups) do fits = fits and is_last_use(slots, g, at_of[g], pair) end
      if fits and entry.func:in_place(input, pair.parameter) then return pair end
    end
  end
end

local function in_place_of(g) return g.kernel and g.kernel.in_place end

-- Notes as `in_place` of functions which result takes the bytes of which input, {input =, output =, parameter =}, by
-- their numbers, and that of the result's parameter, in all of a function's groups, where the arena is no larger so.
function memory.choose_in_place(prepared)
  local slots, arena = slots_of(prepared)
  local at_of, found = {}, false
  for at, g in ipairs(prepared.groups) do at_of[g] = at end
  for _, entry in ipairs(prepared.functions) do
    entry.in_place = pair_of_function(entry, slots, at_of)
    found = found or entry.in_place ~= nil
  end
  if not found then return end
  local apart, groups = place(arena, #prepared.groups), #prepared.groups
  if place(joined(slots, arena, memory.one_by_one(prepared), in_place_of), groups) <= apart then return end
  for _, entry in ipairs(prepared.functions) do entry.in_place = nil end
end

-- ---- The whole ---------------------------------------------------------------------------------------------------

-- Slots of lanes of several calls, which run beside others: a list of {slots =, step =, length =}, and the other slots.
local function by_lane(arena, steps)
  local lists, of, others = {}, {}, {}
  each_group(steps, function(_, at, lane)
    if #steps[at] > 1 and not of[lane] then
      of[lane] = {slots = {}, step = at, length = #lane}
      lists[#lists + 1] = of[lane]
    end
  end)
  for _, slot in ipairs(arena) do
    local list = slot.lane and of[slot.lane]
    table.insert(list and list.slots or others, slot)
  end
  return lists, others
end

-- Gives each slot of the arena an offset: what lives in one lane alone, beside others, shares bytes as the lane's calls
-- follow each other, and these are one block for the step. Gives the bytes of all.
local function place_lanes(arena, steps)
  local lists, slots = by_lane(arena, steps)
  for i, list in ipairs(lists) do
    if #list.slots > 0 then
      for _, slot in ipairs(list.slots) do slot.first, slot.last = slot.from, slot.to end
      list.block = {first = list.step, last = list.step, number = #arena + i}
      list.block.bytes = place(list.slots, list.length)
      slots[#slots + 1] = list.block
    end
  end
  local bytes = place(slots, #steps)
  for _, list in ipairs(lists) do
    for _, slot in ipairs(list.slots) do slot.offset = slot.offset + list.block.offset end
  end
  return bytes
end

-- memory.of(prepared [, pair_of [, steps]]): {slots = {value's name = slot}, arena = bytes, copies}. A slot is {kind =
-- "input" or "output", index =}, {kind = "constant", name =} or {kind = "arena", offset =, bytes =}; values that are
-- the same bytes have one. copies: what is copied at the end, {from = value's name, index = of the output}: outputs
-- that no group gives, or that are given twice. pair_of(g): which result of a group is in place of which of its inputs,
-- one that memory.choose_in_place noted; nil: none is. steps: as side_by_side.choose gives them; nil: one by one.
function memory.of(prepared, pair_of, steps)
  steps = steps or memory.one_by_one(prepared)
  local slots, arena, copies = slots_of(prepared, steps)
  if pair_of then arena = joined(slots, arena, steps, pair_of) end
  return {slots = slots, arena = place_lanes(arena, steps), copies = copies}
end

return memory
