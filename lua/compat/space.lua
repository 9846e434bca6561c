-- Spaces of configs: knobs by name, each with a list of entities; a config is an entity of each, and has a number. What
-- a template asks for with define_… is recorded while the space is made, and is the config's entity once it is there.
-- Entities: a split is the extents of its parts, outermost first, msched.rest (-1 in files) for the outermost where the
-- parts need not divide; a reorder is an order of numbers, from 1; an annotate is a word for each axis; a knob is any
-- value.
local ms = msched
local nearest = ms.load "lua.lib.nearest"
local space = {}

local MOST, MOST_CONFIGS = 1 << 20, 1 << 60 -- entities of a knob; configs

-- ---- Entities ----------------------------------------------------------------------------------------------------

local Split, Reorder, Annotate, Other = {kind = "split"}, {kind = "reorder"}, {kind = "annotate"}, {kind = "knob"}
local KINDS = {split = Split, reorder = Reorder, annotate = Annotate, knob = Other}
for _, kind in pairs(KINDS) do kind.__index = kind end

-- Splits a loop: gives the new loops, outermost first.
function Split:apply(sch, loop)
  local parts = table.move(self.size, 1, #self.size, 1, {})
  if parts[1] == -1 then parts[1] = ms.rest end
  return sch:split(loop, parts)
end

-- Puts loops in the entity's order: gives them so.
function Reorder:apply(sch, loops)
  local ordered = {}
  for i, n in ipairs(self.perm) do ordered[i] = loops[n] end
  sch:reorder(ordered)
  return ordered
end

-- Unrolls, vectorizes, parallelizes loops, word by word.
function Annotate:apply(sch, loops)
  for i, word in ipairs(self.anns) do
    if word == "unroll" then
      sch:unroll(loops[i])
    elseif word == "vec" then
      sch:vectorize(loops[i])
    elseif word == "parallel" then
      sch:parallel(loops[i])
    end
  end
end

local FIELD = {split = "size", reorder = "perm", annotate = "anns", knob = "val"}

local function entity(kind, value) return setmetatable({[FIELD[kind]] = value}, KINDS[kind]) end

-- What stands for an entity in files; and as text, by which entities are compared.
function space.plain(e) return e[FIELD[e.kind]] end
function space.text(e)
  local x = space.plain(e)
  return type(x) == "table" and "[" .. table.concat(x, ", ") .. "]" or tostring(x)
end

-- ---- What the policies list ---------------------------------------------------------------------------------------

local factors = ms.divisors
local function powers(extent)
  local list, p = {}, 1
  while p <= extent do list[#list + 1], p = p, p * 2 end
  return list
end
local function both(extent)
  local seen, list = {}, {}
  for _, from in ipairs {factors(extent), powers(extent)} do
    for _, f in ipairs(from) do
      if not seen[f] then list[#list + 1], seen[f] = f, true end
    end
  end
  table.sort(list)
  return list
end
local SPLITS = {factors = factors, power2 = powers, verbose = both}

-- All splits whose inner parts are such sizes and whose product is not above the extent; those that divide are listed.
local function list_splits(extent, options, keep)
  local sizes, parts, n = SPLITS[options.policy](extent), {}, options.num_outputs
  local function extend(at, product)
    if at == 1 then
      local whole = extent % product == 0
      if whole or not options.no_tail then keep {whole and extent // product or -1, table.unpack(parts, 2, n)} end
      return
    end
    for _, size in ipairs(sizes) do
      if product * size > extent or size > options.max_factor then break end
      parts[at] = size
      extend(at - 1, product * size)
    end
  end
  extend(n, 1)
end

local function list_orders(count, keep)
  local order, used = {}, {}
  local function extend(at)
    if at > count then return keep(table.move(order, 1, count, 1, {})) end
    for i = 1, count do
      if not used[i] then
        order[at], used[i] = i, true
        extend(at + 1)
        used[i] = nil
      end
    end
  end
  extend(1)
end

-- What policies say: of the last loop whether it is vectorized, and how many before it (of all, where it is not) are
-- unrolled.
local ANNOTATIONS =
  {unroll = {plain = "all"}, try_unroll = {plain = "any"}, vec = {vectorized = "none"},
   try_vec = {plain = "none", vectorized = "none"}, try_unroll_vec = {plain = "any", vectorized = "any"}}
local function list_annotations(count, policy, keep)
  local function keep_with(last, unrolled)
    local words, inner = {}, last and count - 1 or count
    for i = 1, inner do words[i] = i > inner - unrolled and "unroll" or "none" end
    words[#words + 1] = last
    keep(words)
  end
  local function keep_all(last, how)
    local most = last and count - 1 or count
    for n = how == "all" and most or 0, how == "none" and 0 or most do keep_with(last, n) end
  end
  if policy.plain then keep_all(nil, policy.plain) end
  if policy.vectorized then keep_all("vec", policy.vectorized) end
end

-- ---- Spaces ------------------------------------------------------------------------------------------------------

local Space = {}
Space.__index = Space

-- A space without knobs. A config is made of it by `space:begin()`, which collects, or `space:get(index)`.
function space.new() return setmetatable({names = {}, knobs = {}}, Space) end

function Space.__len(s)
  local count = 1
  for _, name in ipairs(s.names) do count = count * #s.knobs[name].list end
  return count
end

function Space.__tostring(s)
  local text = {string.format("%d configs", #s)}
  for i, name in ipairs(s.names) do
    local knob = s.knobs[name]
    text[i + 1] = string.format("  %-12s %-9s %6d, %s … %s", name, knob.kind, #knob.list, space.text(knob.list[1]),
                                space.text(knob.list[#knob.list]))
  end
  return table.concat(text, "\n")
end

-- ---- Configs -----------------------------------------------------------------------------------------------------

local Config = {}
function Config.__index(c, name) return Config[name] or rawget(c, "chosen")[name] end

local function new_config(s, collecting)
  return setmetatable({space = s, chosen = {}, asked = {}, collecting = collecting}, Config)
end

-- A config that records what is asked for, and has the first entity of each knob.
function Space:begin() return new_config(self, true) end

-- Config number `index`, from 0: mixed radix, the first knob's digit the lowest.
function Space:get(index)
  if math.type(index) ~= "integer" or index < 0 or index >= #self then
    error(string.format("%sthere is no config %s: the space has %d, numbered from 0", ms.where(), index, #self), 0)
  end
  local c, rest = new_config(self), index
  for _, name in ipairs(self.names) do
    local list = self.knobs[name].list
    c.chosen[name], rest = list[rest % #list + 1], rest // #list
  end
  c.index = index
  return c
end

-- The digits of a number, a place from 1 for each knob; and the number of such digits.
function Space:digits(index)
  local digits = {}
  for i, name in ipairs(self.names) do
    local count = #self.knobs[name].list
    digits[i], index = index % count + 1, index // count
  end
  return digits
end
function Space:number(digits)
  local index = 0
  for i = #self.names, 1, -1 do index = index * #self.knobs[self.names[i]].list + digits[i] - 1 end
  return index
end

-- A config as files have it, {{name, kind, value}, …}, and the config of that. nil and why: it is none of this space.
function Config:plain()
  local list = {}
  for i, name in ipairs(self.space.names) do
    list[i] = {name, self.chosen[name].kind, space.plain(self.chosen[name])}
  end
  return list
end
function Space:read(plain)
  if type(plain) ~= "table" then return nil, "a config is a list of {name, kind, value}" end
  local digits, named = {}, {}
  for _, each in ipairs(plain) do
    local name, kind, value = each[1], each[2], each[3]
    local knob = self.knobs[name]
    if not knob or knob.kind ~= kind then return nil, string.format("the template has no %s `%s`", kind, name) end
    named[name] = knob.places[space.text(entity(kind, value))]
    if not named[name] then
      return nil, string.format("`%s` cannot be %s here", name, space.text(entity(kind, value)))
    end
  end
  for i, name in ipairs(self.names) do
    digits[i] = named[name]
    if not digits[i] then return nil, string.format("it says nothing of `%s`", name) end
  end
  return self:get(self:number(digits))
end

function Config.__tostring(c)
  local parts = {}
  for i, name in ipairs(c.space.names) do parts[i] = name .. " = " .. space.text(c.chosen[name]) end
  return string.format("config %s: %s", c.index or 0, table.concat(parts, ", "))
end

-- ---- Knobs -------------------------------------------------------------------------------------------------------

local function refuse(format, ...) error(ms.where() .. string.format(format, ...), 0) end

-- Records a knob while the space is made, and gives the config's entity.
local function define(c, kind, name, list)
  if type(name) ~= "string" or Config[name] or name == "" then
    refuse("a knob's name is a word that is no method of configs, not %s", tostring(name))
  end
  if c.asked[name] then refuse("the template asks knob `%s` twice: each has a name of its own", name) end
  c.asked[name] = true
  if c.collecting then
    local knob = {kind = kind, list = {}, places = {}}
    list(function(value)
      local e = entity(kind, value)
      if knob.places[space.text(e)] then return end
      if #knob.list == MOST then
        refuse("knob `%s` has more than %d entities: limit it by max_factor, filter or candidate", name, MOST)
      end
      knob.list[#knob.list + 1] = e
      knob.places[space.text(e)] = #knob.list
    end)
    if #knob.list == 0 then refuse("knob `%s` has no entity: nothing passes its filter and limits", name) end
    if #c.space > MOST_CONFIGS // #knob.list then
      refuse("with knob `%s` the space has more than 2^60 configs: limit it by max_factor, filter or candidate", name)
    end
    c.space.knobs[name], c.chosen[name] = knob, knob.list[1]
    table.insert(c.space.names, name)
  end
  return c.chosen[name]
    or refuse("knob `%s` is not in the space: a template asks the same knobs whatever its config", name)
end

local function known(policy, policies, name)
  if policy == "candidate" or policies[policy] then return policy end
  local names = ms.sorted_keys(policies)
  local meant = nearest.of(tostring(policy), names)
  refuse("knob `%s`: there is no policy `%s`%s; known are candidate, %s", name, tostring(policy),
         meant and ", did you mean `" .. meant .. "`?" or "", table.concat(names, ", "))
end
local function candidates(options, name)
  if type(options.candidate) ~= "table" or #options.candidate == 0 then
    refuse("knob `%s`: policy candidate takes a list, `candidate`", name)
  end
  return options.candidate
end
-- Keeps what the filter passes; it gets the entity.
local function filtered(kind, filter, keep)
  return filter and function(value) if filter(entity(kind, value)) then keep(value) end end or keep
end

-- A loop of so many iterations in num_outputs parts, 2 unless said. policy: factors, power2, verbose (both), candidate;
-- max_factor: of each inner part; no_tail: parts divide; filter(entity).
function Config:define_split(name, extent, options)
  options = ms.options(options, "policy:string num_outputs:integer max_factor:integer no_tail:boolean filter:function \z
                                 candidate:table")
  local o = {policy = known(options.policy or "factors", SPLITS, name), num_outputs = options.num_outputs or 2,
             max_factor = options.max_factor or math.huge,
             no_tail = options.no_tail or (options.policy or "factors") == "factors"}
  if math.type(extent) ~= "integer" or extent < 1 then
    refuse("knob `%s`: a split takes the loop's extent, as sch:extent(loop) gives it", name)
  end
  if o.num_outputs < 2 then refuse("knob `%s`: a split has at least 2 parts", name) end
  return define(self, "split", name, function(keep)
    keep = filtered("split", options.filter, keep)
    if o.policy ~= "candidate" then return list_splits(extent, o, keep) end
    for _, size in ipairs(candidates(options, name)) do
      local product = 1
      for i = 2, #size do product = product * size[i] end
      if size[1] == -1 and extent % product == 0 then size = {extent // product, table.unpack(size, 2)} end
      keep(size)
    end
  end)
end

-- An order of so many loops. policy: all, identity, candidate.
local ORDERS = {all = true, identity = true}
function Config:define_reorder(name, count, options)
  options = ms.options(options, "policy:string filter:function candidate:table")
  local policy = known(options.policy or "all", ORDERS, name)
  if math.type(count) ~= "integer" or count < 1 then
    refuse("knob `%s`: a reorder takes how many loops there are", name)
  end
  return define(self, "reorder", name, function(keep)
    keep = filtered("reorder", options.filter, keep)
    if policy == "candidate" then for _, perm in ipairs(candidates(options, name)) do keep(perm) end return end
    if policy == "all" then return list_orders(count, keep) end
    local perm = {}
    for i = 1, count do perm[i] = i end
    keep(perm)
  end)
end

-- Words for so many loops, outermost first: none, unroll, vec, parallel. policy: unroll, try_unroll, vec, try_vec,
-- try_unroll_vec, candidate.
function Config:define_annotate(name, count, options)
  options = ms.options(options, "policy:string filter:function candidate:table")
  local policy = known(options.policy or "try_unroll", ANNOTATIONS, name)
  if math.type(count) ~= "integer" or count < 1 then
    refuse("knob `%s`: an annotate takes how many loops there are", name)
  end
  return define(self, "annotate", name, function(keep)
    keep = filtered("annotate", options.filter, keep)
    if policy == "candidate" then for _, words in ipairs(candidates(options, name)) do keep(words) end return end
    list_annotations(count, ANNOTATIONS[policy], keep)
  end)
end

-- One of a list of values: numbers, strings or booleans.
function Config:define_knob(name, values)
  if type(values) ~= "table" or #values == 0 then refuse("knob `%s`: a knob takes a list of values", name) end
  return define(self, "knob", name, function(keep)
    for i = 1, #values do keep(values[i]) end
  end)
end

return space
