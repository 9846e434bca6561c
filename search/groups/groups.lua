-- Functions of many blocks are cut into groups, which are searched apart: no search looks at the product of all blocks'
-- spaces. A group is an anchor, a reduction that uses its inputs again and again (a product, a convolution), with the
-- elementwise blocks around it; or a chain of reductions over the same rows (softmax, a norm); or elementwise blocks
-- alone. Each is a function of its own: its parameters are the buffers that it reads of others and gives to others.
-- Equal groups are one, with several instances. Blocks that write one buffer in turn stay together.
-- A schedule of the whole is composed of one of each group (compose.lua).
local common = msched.load "rules.common"

local groups = {}

local MOST_BLOCKS, MOST_ANCHORS = 24, 4 -- of a function that is searched as a whole
local MOST_UNITS = 64 -- that a group takes: a thousand that are inlined into one would be one expression

-- ---- Units: the statements of the root ---------------------------------------------------------------------------

local function product(list)
  local all = 1
  for _, x in ipairs(list) do all = all * math.max(x, 1) end
  return all
end

-- What a unit's blocks do: anchor, reduction or elementwise; the elements of its result, which for a reduction are its
-- rows.
local function note_kind(sch, unit, block)
  local spatial, reduces = {}, false
  local extents = sch:iter_extents(block)
  for i, kind in ipairs(sch:iter_kinds(block)) do
    if kind == "spatial" then spatial[#spatial + 1] = extents[i] else reduces = true end
  end
  unit.size = math.max(unit.size, product(spatial))
  if reduces and unit.kind ~= "anchor" then unit.kind = common.needs_tiling(sch, block) and "anchor" or "reduction" end
end

local function note_uses(sch, unit, block)
  for _, r in ipairs(sch:reads(block)) do unit.reads[r.buffer] = true end
  for _, r in ipairs(sch:writes(block)) do unit.writes[r.buffer] = true end
end

-- The loop nests of a function's root, in order: {blocks, kind, size, reads, writes}; blocks in one nest are one unit.
local function units_of(func)
  local sch, units, seen, before = msched.schedule(func), {}, {}, nil
  local names = sch:block_names()
  for _, name in ipairs(names) do
    if seen[name] then return nil, string.format("two blocks are named `%s`", name) end
    seen[name] = true
  end
  local root = sch:root_block()
  if not root then return nil, "it has no root block" end
  for _, name in ipairs(names) do
    if name ~= root then
      local block = sch:get_sblock(name)
      if not before or sch:is_below_root(block) and sch:shared_loops(before, block) == 0 then
        units[#units + 1] = {blocks = {}, kind = "elementwise", size = 1, reads = {}, writes = {}, number = #units + 1}
      end
      local unit = units[#units]
      table.insert(unit.blocks, name)
      note_kind(sch, unit, block)
      note_uses(sch, unit, block)
      before = block
    end
  end
  return units
end

-- ---- Buffers that are written more than once ---------------------------------------------------------------------

local function shares(a, b)
  for buffer in pairs(a) do if b[buffer] then return true end end
  return false
end

-- Where others than the first unit that touches a buffer write it, all that touch it up to the last of these: lists of
-- units.
local function rewritten(units)
  local touching, last, lists = {}, {}, {}
  for _, u in ipairs(units) do
    for _, set in ipairs {u.reads, u.writes} do
      for buffer in pairs(set) do
        local list = touching[buffer] or {}
        touching[buffer] = list
        if list[#list] ~= u then list[#list + 1] = u end
      end
    end
    for buffer in pairs(u.writes) do last[buffer] = u.number end
  end
  for _, buffer in ipairs(msched.sorted_keys(last)) do
    local list = {}
    for _, u in ipairs(touching[buffer]) do if u.number <= last[buffer] then list[#list + 1] = u end end
    if #list > 1 then lists[#lists + 1] = list end
  end
  return lists
end

local RANK = {elementwise = 1, reduction = 2, anchor = 3}

local function add_unit(to, unit)
  for _, name in ipairs(unit.blocks) do table.insert(to.blocks, name) end
  for buffer in pairs(unit.reads) do to.reads[buffer] = true end
  for buffer in pairs(unit.writes) do to.writes[buffer] = true end
  to.size = math.max(to.size, unit.size)
  if not to.kind or RANK[unit.kind] > RANK[to.kind] then to.kind = unit.kind end
end

-- Units that write one buffer in turn are one, with those that read it between, so that the order of the writes is the
-- order within it; and with those between that go on with what its first ones did. It stands where the last of it
-- stood: what it needs is there by then, and what needs it comes after.
local function join_rewrites(units)
  local set_of, joined = {}, false -- by number of a unit, one behind it in its set; of the last, itself
  local function last(n)
    local found = n
    while set_of[found] ~= found do found = set_of[found] end
    while set_of[n] ~= found do set_of[n], n = found, set_of[n] end -- the next one asks once
    return found
  end
  for n in ipairs(units) do set_of[n] = n end
  local function join(a, b)
    a, b = last(a), last(b)
    if a ~= b then set_of[math.min(a, b)], joined = math.max(a, b), true end
  end
  for _, list in ipairs(rewritten(units)) do for _, u in ipairs(list) do join(list[1].number, u.number) end end
  while joined do
    joined = false
    for k, unit in ipairs(units) do
      for n = 1, k - 1 do
        if last(n) > k and last(n) ~= last(k) and shares(units[n].writes, unit.reads) then join(n, k) end
      end
    end
  end
  local made = {}
  for n, unit in ipairs(units) do
    local set = last(n)
    made[set] = made[set] or {blocks = {}, size = 1, reads = {}, writes = {}, number = set}
    add_unit(made[set], unit)
  end
  local list = {}
  for _, number in ipairs(msched.sorted_keys(made)) do
    list[#list + 1] = made[number]
    made[number].number = #list
  end
  return list
end

-- Which units give each unit what it reads, and which read what it gives.
local function connect(func, units)
  local writer, is_param = {}, {}
  for _, p in ipairs(func:params()) do if p.name then is_param[p.name] = true end end
  for _, u in ipairs(units) do
    u.producers, u.consumers, u.is_output = {}, {}, false
    for _, buffer in ipairs(msched.sorted_keys(u.writes)) do
      assert(not writer[buffer], "it is written by one unit")
      writer[buffer] = u.number
      u.is_output = u.is_output or is_param[buffer] or false
    end
  end
  for _, u in ipairs(units) do
    for _, buffer in ipairs(msched.sorted_keys(u.reads)) do
      local from = writer[buffer]
      assert(not from or from <= u.number, "what writes it comes first")
      if from and from ~= u.number then
        u.producers[from] = true
        units[from].consumers[u.number] = true
      end
    end
  end
  return units
end

-- ---- Groups ------------------------------------------------------------------------------------------------------

-- The work of cutting: units, and of each the group that it is in: {kind, units, core}; core: the number of the first
-- unit that others are moved to.
local Cut = {}
Cut.__index = Cut

function Cut:add(group, unit)
  if not group.units[unit.number] then group.count = group.count + 1 end
  group.units[unit.number] = true
  group.last = math.max(group.last, unit.number)
  self.of[unit.number] = group
end

function Cut:new_group(unit)
  local kind = unit.kind == "reduction" and "rows" or unit.kind
  local group = {kind = kind, units = {}, count = 0, core = unit.number, last = unit.number,
                 size = unit.size}
  self:add(group, unit)
  return group
end

-- Whether a unit may be computed where the core of the group is: all else that it reads is there by then, and the group
-- takes one more.
function Cut:may_join(unit, group)
  for from in pairs(unit.producers) do
    if self.of[from] ~= group and from > group.core then return false end
  end
  return group.count < MOST_UNITS
end

-- The group that gives the unit something, and does so last.
function Cut:latest_producer(unit)
  local latest
  for from in pairs(unit.producers) do
    local group = self.of[from]
    if not latest or group.last > latest.last then latest = group end
  end
  return latest
end

local function shares_input(self, unit, group)
  for number in pairs(group.units) do
    for buffer in pairs(self.units[number].reads) do if unit.reads[buffer] then return true end end
  end
  return false
end

-- The chain of rows that a reduction goes on with: of as many rows, whose results or inputs it reads.
function Cut:chain_of(unit)
  local found
  for number = unit.number - 1, 1, -1 do
    local group = self.of[number]
    if not found and group.kind == "rows" and group.size == unit.size
        and (unit.producers[number] or shares_input(self, unit, group)) and self:may_join(unit, group) then
      found = group
    end
  end
  return found
end

-- Elementwise groups that only this unit reads are computed with it.
function Cut:take_prologues(unit, group)
  for _, from in ipairs(msched.sorted_keys(unit.producers)) do
    local other = self.of[from]
    local own = other ~= group and other.kind == "elementwise" and group.count + other.count <= MOST_UNITS
    for number in pairs(own and other.units or {}) do
      own = own and not self.units[number].is_output
      for to in pairs(self.units[number].consumers) do own = own and (to == unit.number or self.of[to] == other) end
    end
    if own then
      for number in pairs(other.units) do self:add(group, self.units[number]) end
      self:take_prologues({number = unit.number, producers = self:inputs_of(other)}, group)
    end
  end
end

function Cut:inputs_of(group)
  local inputs = {}
  for number in pairs(group.units) do
    for from in pairs(self.units[number].producers) do if not group.units[from] then inputs[from] = true end end
  end
  return inputs
end

-- Whether an elementwise unit goes on with what a group computes.
local function fits(unit, group)
  if group.kind == "rows" then return unit.size % group.size == 0 end
  return unit.size == group.size
end

function Cut:place(unit)
  if unit.kind == "elementwise" then
    local latest = self:latest_producer(unit)
    if latest and fits(unit, latest) and self:may_join(unit, latest) then return self:add(latest, unit) end
    self:new_group(unit)
  else
    local chain = unit.kind == "reduction" and self:chain_of(unit)
    if chain then self:add(chain, unit) end
    self:take_prologues(unit, chain or self:new_group(unit))
  end
end

-- The groups of units, in order of their cores: each a list of units and their core.
local function group(units)
  local cut, list, seen = setmetatable({units = units, of = {}}, Cut), {}, {}
  for _, unit in ipairs(units) do cut:place(unit) end
  for _, unit in ipairs(units) do
    local g = cut.of[unit.number]
    if not seen[g] then
      seen[g] = {kind = g.kind, core = g.core, units = {}}
      list[#list + 1] = seen[g]
    end
    table.insert(seen[g].units, unit)
  end
  table.sort(list, function(a, b) return a.core < b.core end)
  return list
end

-- ---- Functions of groups -----------------------------------------------------------------------------------------

-- Names without the numbers that tell instances apart, each once in a group: equal groups have equal names.
local function plain_names(names)
  local taken, list = {root = true}, {}
  for i, name in ipairs(names) do
    local stem = name:gsub("_?%d+$", "")
    if stem == "" then stem = "block" end
    local plain, n = stem, 1
    while taken[plain] do
      n = n + 1
      plain = stem .. "_" .. n
    end
    taken[plain], list[i] = true, plain
  end
  return list
end

local function numbered_names(names)
  local list = {}
  for i in ipairs(names) do list[i] = "b" .. i end
  return list
end

local function blocks_of(units)
  local names = {}
  for _, unit in ipairs(units) do table.move(unit.blocks, 1, #unit.blocks, #names + 1, names) end
  return names
end

-- Functions by what is named after them, each name once.
local function unused(name, taken)
  local plain, n = name, 1
  while taken[plain] do
    n = n + 1
    plain = name .. "_" .. n
  end
  taken[plain] = true
  return plain
end

local List = {__name = "msched.groups"}
List.__index = List

function List:__tostring()
  local lines = {}
  for i, g in ipairs(self) do
    lines[i] = string.format("%s: %s, %s%s", g.name, g.kind, table.concat(g.instances[1].blocks, " "),
                             g.weight > 1 and string.format("; %d times", g.weight) or "")
  end
  return table.concat(lines, "\n")
end

-- What an error says, without the place of the call.
local function message_of(err)
  local message, place = tostring(err), msched.where()
  return message:sub(1, #place) == place and message:sub(#place + 1) or message
end

local function cut(func)
  local units, why = units_of(func)
  if units then units, why = connect(func, join_rewrites(units)) end
  if not units then return nil, why end
  local list, by_hash, taken = setmetatable({blocks = 0, anchors = 0}, List), {}, {[func:name()] = true}
  for _, g in ipairs(group(units)) do
    local names = blocks_of(g.units)
    local ok, key = pcall(func.extract, func, names, "group", numbered_names(names))
    if not ok then return nil, message_of(key) end
    local known, hash = by_hash[key:hash()], key:hash()
    if not known then
      local plain = plain_names(names)
      local anchor
      for i, name in ipairs(names) do if name == units[g.core].blocks[1] then anchor = plain[i] end end
      local name = unused(func:name() .. "_" .. anchor, taken)
      known = {name = name, anchor = anchor, kind = g.kind, blocks = plain, func = func:extract(names, name, plain),
               weight = 0, instances = {}}
      by_hash[hash], list[#list + 1] = known, known
    end
    known.weight = known.weight + 1
    table.insert(known.instances, {blocks = names, first = g.units[1].number, core = g.core})
    list.blocks, list.anchors = list.blocks + #names, list.anchors + (g.kind == "anchor" and 1 or 0)
  end
  return list
end

-- The groups of a function: a list of {name, anchor, kind, blocks, func, weight, instances}; instances: {blocks}, the
-- names there of the group's blocks. nil and why: it cannot be cut.
function groups.cut(func) return cut(func) end

-- The same where the function has more blocks or anchors than one search looks at; nil: it is searched as a whole; and
-- why, where it has more blocks and cannot be cut.
function groups.needed(func)
  local blocks = #msched.schedule(func):block_names() - 1 -- but the root
  if blocks <= MOST_ANCHORS then return nil end
  local list, why = cut(func)
  if not list then return nil, blocks > MOST_BLOCKS and why or nil end
  if #list == 1 and list[1].weight == 1 then
    return nil, blocks > MOST_BLOCKS and "all its blocks are one group" or nil
  end
  return (list.blocks > MOST_BLOCKS or list.anchors > MOST_ANCHORS) and list or nil
end

function msched.groups(func)
  if msched.type(func) ~= "function" then
    error(msched.where() .. "ms.groups takes a function, as te.func makes it", 0)
  end
  local list, why = cut(func)
  if not list then error(string.format("%s`%s` cannot be cut into groups: %s", msched.where(), func:name(), why), 0) end
  return list
end

return groups
