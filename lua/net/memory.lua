-- Where the values of a plan are in memory: what the network takes and gives in its callers' arrays, constants in their
-- own, all others in one arena, where values that do not live at the same time share bytes.
local ms = msched
local common = ms.load "lua.net.common"
local memory = {}

local ALIGNMENT = 64
local function width(type_) return type_ == "bool" and 1 or tonumber(type_:match "%d+$") // 8 end

-- The bytes of a value's elements, and those that it takes where others follow.
function memory.bytes(value) return common.count(value.shape) * width(value.type) end
function memory.padded(bytes) return (math.max(1, bytes) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT end

-- Gives each slot of the arena an offset, the largest first, at the lowest place that none has which lives at the same
-- time; and the bytes of all. A slot lives from its first group to its last.
local function place(slots)
  local placed, total = {}, 0
  table.sort(slots, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    if a.first ~= b.first then return a.first < b.first end
    return a.number < b.number
  end)
  for _, slot in ipairs(slots) do
    local beside = {}
    for _, other in ipairs(placed) do
      if other.first <= slot.last and slot.first <= other.last then beside[#beside + 1] = other end
    end
    table.sort(beside, function(a, b) return a.offset < b.offset end)
    local offset = 0
    for _, other in ipairs(beside) do
      if other.offset - offset >= slot.bytes then break end
      offset = math.max(offset, other.offset + other.bytes)
    end
    slot.offset = offset
    placed[#placed + 1], total = slot, math.max(total, offset + slot.bytes)
  end
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

-- memory.of(prepared): {slots = {value's name = slot}, arena = bytes, copies}. A slot is {kind = "input" or "output",
-- index =}, {kind = "constant", name =} or {kind = "arena", offset =, bytes =}; values that are the same bytes have
-- one. copies: what is copied at the end, {from = value's name, index = of the output}: outputs that no group gives, or
-- that are given twice.
function memory.of(prepared)
  local slots, values, outputs, arena = {}, prepared.state.values, {}, {}
  slots_of_ends(prepared, slots)
  local copies = {}
  for i, output in ipairs(prepared.net.outputs) do
    if slots[output.name] or outputs[output.name] then copies[#copies + 1] = {from = output.name, index = i}
    else outputs[output.name] = {kind = "output", index = i} end
  end
  for name, slot in pairs(outputs) do slots[name] = slot end
  for at, g in ipairs(prepared.groups) do
    for _, name in ipairs(g.inputs) do slots[name].last = at end
    for _, name in ipairs(g.outputs) do
      if not slots[name] and g.alias then slots[name] = slots[g.inputs[1]]
      elseif not slots[name] then
        slots[name] = {kind = "arena", first = at, last = at, bytes = memory.padded(memory.bytes(values[name])), number = #arena}
        arena[#arena + 1] = slots[name]
      end
    end
  end
  return {slots = slots, arena = place(arena), copies = copies}
end

return memory
