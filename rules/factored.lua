-- A space factored by block. Where many blocks of a function may be scheduled in many ways, the sketches are the
-- product of the blocks' choices: too many to make all of them. The rules were applied with one block at a time having
-- its choices and all others their first (space.lua); what they recorded is cut into pieces, one a site: a rule on a
-- block. A sketch is a combination, the number of a choice for each block; it is made of the pieces when it is asked
-- for. A choice is known by the sites where it has other pieces than the first choices have; where it has no piece of
-- its own, the first's stays. So the combinations are traces like any other. Where two choices have different pieces
-- for a third block, their combination is refused; what does not fit together otherwise is refused when it is replayed.
local factored = {}

local Factored = {}
Factored.__index = Factored

-- ---- Pieces --------------------------------------------------------------------------------------------------------

-- Sites whose pieces use what is given in one before them, as a number that is drawn once for two blocks, are one site
-- with all between. ends: the sites after which a trace is cut.
local function join_sites(states, ends)
  for _, state in ipairs(states) do
    local starts = {} -- of the sites that are left
    for site = 1, #state.marks do
      local taken_back = state.marks[site] < (state.marks[site - 1] or 0) or state.marks[site] > #state.trace
      if taken_back then return false end -- by a rule, what others recorded
      starts[#starts + 1] = site
      while #starts > 0 and not state.trace:part(state.marks[starts[#starts] - 1] or 0, state.marks[site]) do
        starts[#starts] = nil
      end
      if #starts == 0 then return false end
      for s = starts[#starts], site - 1 do ends[s] = false end
    end
  end
  return true
end

-- The group of each block, by name, where blocks of a joined site are in one, and those of `before`; and whether these
-- are others than before.
local function groups_of(sites, ends, before)
  local groups, changed, first = {}, false, nil
  for _, name in ipairs(sites) do groups[name] = before[name] or name end
  for site, name in ipairs(sites) do
    local to, from = groups[first or name], groups[name]
    if from ~= to then
      for _, other in ipairs(sites) do if groups[other] == from then groups[other] = to end end
      changed = true
    end
    first = not ends[site] and (first or name) or nil
  end
  return groups, changed
end

-- A state's trace, cut.
local function cut(state, ends)
  local pieces, from = {}, 0
  for site, to in ipairs(state.marks) do
    if ends[site] then
      pieces[#pieces + 1] = state.trace:part(from, to):simplified(false)
      from = to
    end
  end
  return pieces
end

local function same(a, b) return #a == #b and a:has_at(0, b) end

-- A choice: its pieces by site where they differ from the first choices'.
local function choice_of(pieces, first)
  local own = {}
  for site, piece in ipairs(pieces) do if not same(piece, first[site]) then own[site] = piece end end
  return own
end

-- states: {trace =, own =, marks =} as space.lua gives them, the first with the first choice of every block; sites: the
-- block of each site; groups: what they were walked with. nil: the traces cannot be cut so; and the groups to walk
-- with, if others will do.
function factored.new(states, sites, groups)
  local ends, by_name, changed = {}, {}, nil
  for site = 1, #sites do ends[site] = true end
  if #states == 0 or not join_sites(states, ends) then return nil end
  groups, changed = groups_of(sites, ends, groups)
  if changed then return nil, groups end
  local self = setmetatable({sites = {}, blocks = {}, first = {}, listed = {}}, Factored)
  for site, name in ipairs(sites) do if ends[site] then table.insert(self.sites, groups[name]) end end
  for i, state in ipairs(states) do
    if (i == 1) ~= (not state.own) then return nil end
    local pieces = cut(state, ends)
    if i == 1 then
      self.first = pieces
    else
      local block = by_name[state.own]
      if not block then
        block = {name = state.own, choices = {{}}}
        by_name[state.own] = block
        table.insert(self.blocks, block)
      end
      table.insert(block.choices, choice_of(pieces, self.first))
      self.listed[i] = {block = state.own, choice = #block.choices}
    end
  end
  self:find_sites()
  return self
end

-- The sites that pieces stand at: {site, own, first, others}; own: the number of the block, where it has choices;
-- others: {block, choice, piece} that may stand there instead, the longest first.
function Factored:find_sites()
  local number = {}
  for b, block in ipairs(self.blocks) do number[block.name] = b end
  self.used = {}
  for site, first in ipairs(self.first) do
    local others = {}
    for b, block in ipairs(self.blocks) do
      for k, choice in ipairs(block.choices) do
        if choice[site] then others[#others + 1] = {block = b, choice = k, piece = choice[site], order = #others} end
      end
    end
    table.sort(others, function(a, b)
      if #a.piece ~= #b.piece then return #a.piece > #b.piece end
      return a.order < b.order
    end)
    if #first > 0 or #others > 0 then
      table.insert(self.used, {site = site, own = number[self.sites[site]], first = first, others = others})
    end
  end
end

-- ---- Combinations --------------------------------------------------------------------------------------------------

-- How many sketches there are, those that are refused included; an integer where it is one.
function Factored:size()
  local size = 1.0
  for _, block in ipairs(self.blocks) do size = size * #block.choices end
  return math.tointeger(size) or size
end

-- The piece that a combination has at a place of self.used; nil and why: two choices want different ones. What the
-- block of the site chose goes before what others' choices make of it.
function Factored:piece_at(place, combination)
  local own = place.own and self.blocks[place.own].choices[combination[place.own]][place.site]
  if own then return own end
  local found, by
  for b, block in ipairs(self.blocks) do
    local piece = block.choices[combination[b]][place.site]
    if piece and found and not same(piece, found) then
      return nil,
        string.format("choice %d of block %s and choice %d of block %s schedule block %s in different ways",
                      combination[by], self.blocks[by].name, combination[b], block.name, self.sites[place.site])
    end
    if piece and not found then found, by = piece, b end
  end
  return found or place.first
end

-- The sketch of a combination; nil and why: its choices do not go together.
function Factored:sketch(combination)
  local pieces = {}
  for _, place in ipairs(self.used) do
    local piece, why = self:piece_at(place, combination)
    if not piece then return nil, why end
    pieces[#pieces + 1] = piece
  end
  return msched.join_traces(pieces)
end

-- The combination of candidate n, from 0: so many in a row have every choice of every block, and which meet is drawn by
-- the seed.
function Factored:combination(seed, n)
  local combination = {}
  for b, block in ipairs(self.blocks) do
    local count = #block.choices
    combination[b] = (n + msched.stream(seed, n // count, b):below(count)) % count + 1
  end
  return combination
end

-- The combination that a trace of instructions was made of, and where each place's piece begins and ends in it, as
-- {{from, to, piece}…}; nil: it is no sketch of this space.
function Factored:combination_of(trace)
  local used, chosen, ranges = self.used, {}, {}
  local follow
  local function take(n, at, piece)
    if not trace:has_at(at, piece) then return false end
    ranges[n] = {at, at + #piece, piece}
    return follow(n + 1, at + #piece)
  end
  local function fits() -- what was not found out is the first choice
    local combination = {}
    for b in ipairs(self.blocks) do combination[b] = chosen[b] or 1 end
    for n, place in ipairs(used) do if self:piece_at(place, combination) ~= ranges[n][3] then return nil end end
    return combination
  end
  function follow(n, at)
    if n > #used then return at == #trace and fits() end
    for _, other in ipairs(used[n].others) do
      local before = chosen[other.block]
      if not before or before == other.choice then
        chosen[other.block] = other.choice
        local found = take(n, at, other.piece)
        if found then return found end
        chosen[other.block] = before
      end
    end
    return take(n, at, used[n].first)
  end
  local found = follow(1, 0)
  return found or nil, ranges
end

-- ---- Steps from one to another -------------------------------------------------------------------------------------

-- A trace of this combination, `from` one of another: the pieces that both have keep their decisions. given: what has
-- the decisions of the others, {combination_of's ranges, trace}; nil: they are open. nil: the combination is refused.
local function change(self, trace, ranges, combination, given)
  local pieces = {}
  for n, place in ipairs(self.used) do
    local piece = self:piece_at(place, combination)
    if not piece then return nil end
    if piece == ranges[n][3] then pieces[n] = trace:part(ranges[n][1], ranges[n][2])
    elseif given and piece == given[1][n][3] then pieces[n] = given[2]:part(given[1][n][1], given[1][n][2])
    else pieces[n] = piece:undecided() end
  end
  return msched.join_traces(pieces)
end

-- The combination with another choice of one block.
local function with_choice(combination, block, choice)
  local other = table.move(combination, 1, #combination, 1, {})
  other[block] = choice
  return other
end

-- The traces that have another choice of one block; all other decisions stay.
function Factored:neighbours(trace)
  local combination, ranges = self:combination_of(trace)
  local list = {}
  for b, block in ipairs(combination and self.blocks or {}) do
    for k in ipairs(block.choices) do
      if k ~= combination[b] then list[#list + 1] = change(self, trace, ranges, with_choice(combination, b, k)) end
    end
  end
  return list
end

-- Another choice of one block, by the stream; or, of two traces, the other's choice with its decisions, where they
-- differ.
function Factored:mutate(trace, stream, other)
  local combination, ranges = self:combination_of(trace)
  if not combination then return nil end
  local theirs, their_ranges
  if other and stream:below(2) == 1 then theirs, their_ranges = self:combination_of(other) end
  local differing = {}
  for b in ipairs(self.blocks) do if theirs and theirs[b] ~= combination[b] then differing[#differing + 1] = b end end
  if #differing > 0 then
    local b = differing[stream:below(#differing) + 1]
    return change(self, trace, ranges, with_choice(combination, b, theirs[b]), {their_ranges, other})
  end
  local b = stream:below(#self.blocks) + 1
  local k = stream:below(#self.blocks[b].choices - 1) + 1
  return change(self, trace, ranges, with_choice(combination, b, k >= combination[b] and k + 1 or k))
end

-- How many choices each block has: {block =, choices =}.
function Factored:counts()
  local list = {}
  for b, block in ipairs(self.blocks) do list[b] = {block = block.name, choices = #block.choices} end
  return list
end

return factored
