-- What proposes configs of a space: tuners by name. A tuner proposes numbers of configs that it did not propose before,
-- and is told what came of them. It depends on its seed and on results alone.
local ms = msched
local analytical = ms.load "search.cost.analytical"
local nearest = ms.load "lua.lib.nearest"
local tuners = {}

local Tuner = {}
Tuner.__index = Tuner

-- ---- What all share ----------------------------------------------------------------------------------------------

-- Numbers drawn by the seed and by how often was asked: stream k of them.
local function stream_of(t, k) return ms.stream(t.seed, t.round, k) end

-- A config by chance that was not proposed and is not among `taken`; nil: none was found in so many attempts.
local function draw(t, stream, taken)
  for _ = 1, 64 do
    local index = stream:below(#t.space)
    if not t.proposed[index] and not taken[index] then return index end
  end
  for index = 0, math.min(#t.space, 4096) - 1 do -- few are left
    if not t.proposed[index] and not taken[index] then return index end
  end
end

-- The measured, fastest first, {index, seconds}: at most so many.
local function fastest(t, most)
  table.sort(t.measured, function(a, b)
    return a.seconds ~= b.seconds and a.seconds < b.seconds or a.seconds == b.seconds and a.index < b.index
  end)
  return table.move(t.measured, 1, math.min(most, #t.measured), 1, {})
end

-- A config one step away: one knob's entity another, a near one two times of three.
local function step(t, index, stream)
  local digits = t.space:digits(index)
  local at = stream:below(#digits) + 1
  local count = #t.space.knobs[t.space.names[at]].list
  local near = digits[at] + (stream:below(2) == 0 and -1 or 1)
  digits[at] = stream:below(3) > 0 and near >= 1 and near <= count and near or stream:below(count) + 1
  return t.space:number(digits)
end

local function filled(t, stream, list, count)
  local taken = {}
  for _, index in ipairs(list) do taken[index] = true end
  while #list < count do
    local index = draw(t, stream, taken)
    if not index then break end
    list[#list + 1], taken[index] = index, true
  end
  return list
end

-- ---- Tuners ------------------------------------------------------------------------------------------------------

local propose = {}

-- All, by number.
function propose.grid(t, count)
  local list = {}
  while #list < count and t.at < #t.space do list[#list + 1], t.at = t.at, t.at + 1 end
  return list
end

function propose.random(t, count) return filled(t, stream_of(t, 1), {}, count) end

-- Parents among the fastest, two by chance, the faster more often: each digit is one's or the other's, and now and then
-- another. Source: Holland, "Adaptation in natural and artificial systems", 1975.
local ELITE, MUTATION = 32, 0.1
function propose.ga(t, count)
  local stream, parents, list, taken = stream_of(t, 2), fastest(t, ELITE), {}, {}
  local function parent()
    return t.space:digits(parents[math.min(stream:below(#parents), stream:below(#parents)) + 1].index)
  end
  for _ = 1, #parents > 1 and count * 4 or 0 do
    local child, other = parent(), parent()
    for i, name in ipairs(t.space.names) do
      if stream:unit() < 0.5 then child[i] = other[i] end
      if stream:unit() < MUTATION then child[i] = stream:below(#t.space.knobs[name].list) + 1 end
    end
    local index = t.space:number(child)
    if #list < count and not t.proposed[index] and not taken[index] then list[#list + 1], taken[index] = index, true end
  end
  return filled(t, stream, list, count)
end

-- Simulated annealing, as FlexTensor's search by heuristics: from one of those measured, drawn by exp(-(t - best) /
-- best × gamma), a step; gamma grows. Source: Zheng et al., "FlexTensor", ASPLOS 2020, section 5.1.
local STEEP = 4
function propose.annealing(t, count)
  local stream, measured, list, taken = stream_of(t, 3), fastest(t, math.huge), {}, {}
  local chances, total = {}, 0
  for i, m in ipairs(measured) do
    chances[i] = math.exp((1 - m.seconds / measured[1].seconds) * STEEP * t.round)
    total = total + chances[i]
  end
  for _ = 1, #measured > 0 and count * 4 or 0 do
    local at, from = stream:unit() * total, 1
    while from < #measured and at >= chances[from] do at, from = at - chances[from], from + 1 end
    local index = step(t, measured[from].index, stream)
    if #list < count and not t.proposed[index] and not taken[index] then list[#list + 1], taken[index] = index, true end
  end
  return filled(t, stream, list, count)
end

-- Many configs, by chance and around the fastest, are scheduled; those that estimate and model together say are fastest
-- are proposed, and one of eight by chance. The model has the more say the more results it knows, as in
-- search/policy/analytical.lua.
local FIRST, DRAWN, AROUND, PARENTS, LEARNED, CHANCE = 384, 48, 80, 4, 32, 8
function propose.model(t, count)
  local stream, parents, pool = stream_of(t, 4), fastest(t, PARENTS), {}
  local taken = {}
  local function add(index)
    if not t.proposed[index] and not taken[index] then pool[#pool + 1], taken[index] = index, true end
  end
  for i = 1, #parents > 0 and AROUND or 0 do
    local index = step(t, parents[(i - 1) % #parents + 1].index, stream)
    if i % 2 == 0 then index = step(t, index, stream) end
    add(index)
  end
  filled(t, stream, pool, #pool + (#t.measured == 0 and FIRST or DRAWN))
  local made = {}
  for _, index in ipairs(pool) do
    local c = t.make(index)
    if c then
      made[#made + 1] = {index = index, hash = c.hash, features = c.features, trace = c.trace, sketch_trace = c.trace}
    end
  end
  made = analytical.ranked(t.env.func, t.env.target, made)
  local scores, trust = t.env.model:predict(made), #t.measured / (#t.measured + LEARNED)
  for i, c in ipairs(made) do
    c.score = trust * math.log(math.max(scores[i], 1e-3))
      - (1 - trust) * (c.cost and math.log(c.cost / made[1].cost) or 1)
  end
  table.sort(made, function(a, b)
    return a.score ~= b.score and a.score > b.score or a.score == b.score and a.index < b.index
  end)
  local list = {}
  for i = 1, math.min(#made, count - count // CHANCE) do list[i] = made[i].index end
  return filled(t, stream, list, count)
end

-- ---- Entry ------------------------------------------------------------------------------------------------------

local NEEDS = {model = {features = true, model = true}}

-- A tuner of a space. make(index): the candidate of a config, {trace, hash, features}; nil: it is refused.
function tuners.new(name, configs, seed, make)
  if not propose[name] then
    local names = ms.sorted_keys(propose)
    local meant = nearest.of(tostring(name), names)
    error(string.format("%sthere is no tuner `%s`%s; known are %s", ms.where(), tostring(name),
                        meant and ", did you mean `" .. meant .. "`?" or "", table.concat(names, ", ")), 0)
  end
  return setmetatable({name = name, space = configs, seed = seed, make = make, needs = NEEDS[name] or {}, round = 0,
                       at = 0, proposed = {}, measured = {}}, Tuner)
end

-- At most so many numbers of configs that were not proposed before; none: there are no more. env: the task's
-- (search/task.lua).
function Tuner:next(count, env)
  assert(count > 0)
  self.env, self.round = env, self.round + 1
  local list = propose[self.name](self, count)
  for _, index in ipairs(list) do
    assert(not self.proposed[index] and index >= 0 and index < #self.space)
    self.proposed[index] = true
  end
  return list
end

-- What came of a config: its seconds; nil where it failed.
function Tuner:tell(index, seconds)
  if seconds then self.measured[#self.measured + 1] = {index = index, seconds = seconds} end
end

return tuners
