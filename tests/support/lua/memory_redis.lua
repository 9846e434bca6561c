-- What a fleet asks of Redis, in memory: for tests where there is no server. `memory.connect` takes the place of
-- msched.redis; it may lose connections after what was asked was done, and may lose all that it holds.
local ms = require "msched"
local memory = {lose_every = 0, asked = 0, commands = 0}

local data, expires, clock

function memory.flush() data, expires, clock = {}, {}, 0 end
memory.flush()

function memory.expires(key) return expires[key] end
function memory.holds(key) return data[key] ~= nil end

local function now_ms() return math.floor(ms.clock() * 1000) end
local function at(key)
  if expires[key] and expires[key] <= now_ms() then data[key], expires[key] = nil, nil end
  return data[key]
end
local function fresh(key, make)
  local x = at(key)
  if not x then
    x = make()
    data[key] = x
  end
  return x
end

-- Places in streams: "N-0", in order of N.
local function number_of(place) return tonumber(place:match "^(%d+)") end
local function new_stream() return {list = {}, groups = {}} end
local function find(stream, place)
  for i, e in ipairs(stream.list) do if e[1] == place then return e, i end end
end

local run = {}

function run.PING() return "PONG" end
function run.SELECT() return "OK" end
function run.AUTH(password)
  return password == "secret" and "OK" or {error = "WRONGPASS invalid username-password pair"}
end
function run.HSET(key, ...)
  local h, words = fresh(key, function() return {} end), {...}
  for i = 1, #words, 2 do h[words[i]] = words[i + 1] end
  return 1
end
function run.HGET(key, field) return (at(key) or {})[field] or false end
function run.HGETALL(key)
  local list, h = {}, at(key) or {}
  for _, k in ipairs(ms.sorted_keys(h)) do list[#list + 1], list[#list + 2] = k, h[k] end
  return list
end
function run.HDEL(key, field)
  if at(key) then data[key][field] = nil end
  return 1
end
function run.GET(key) return at(key) or false end
function run.MGET(...)
  local list = {}
  for i, key in ipairs {...} do list[i] = at(key) or false end
  return list
end
function run.STRLEN(key) return #(at(key) or "") end
function run.SET(key, value, ...)
  local options, words = {}, {...}
  for i, w in ipairs(words) do options[w] = words[i + 1] or true end
  if options.NX and at(key) then return false end
  data[key] = value
  expires[key] = options.PX and now_ms() + options.PX or options.EX and now_ms() + 1000 * options.EX or nil
  return "OK"
end
function run.DEL(...)
  for _, key in ipairs {...} do data[key] = nil end
  return 1
end
function run.EXPIRE(key, seconds)
  if at(key) then expires[key] = now_ms() + 1000 * seconds end
  return 1
end
function run.XADD(key, ...)
  local words, stream = {...}, fresh(key, new_stream)
  local first = 1
  while words[first] ~= "*" do first = first + 1 end
  clock = clock + 1
  local place = clock .. "-0"
  stream.list[#stream.list + 1] = {place, table.move(words, first + 1, #words, 1, {})}
  return place
end
function run.XLEN(key) return #(at(key) or new_stream()).list end
function run.XRANGE(key, first, last)
  local list = {}
  for _, e in ipairs((at(key) or new_stream()).list) do
    if number_of(e[1]) >= number_of(first) and number_of(e[1]) <= number_of(last) then list[#list + 1] = e end
  end
  return list
end
function run.XDEL(key, place)
  local _, i = find(at(key) or new_stream(), place)
  if i then table.remove(data[key].list, i) end
  return i and 1 or 0
end
function run.XGROUP(what, key, group, name)
  if what == "DELCONSUMER" then
    for place, p in pairs(at(key) and data[key].groups[group].pending or {}) do
      if p.consumer == name then data[key].groups[group].pending[place] = nil end
    end
    return 0
  end
  local stream = fresh(key, new_stream)
  if stream.groups[group] then return {error = "BUSYGROUP Consumer Group name already exists"} end
  stream.groups[group] = {last = 0, pending = {}}
  return "OK"
end
local function group_of(key, group)
  local stream = at(key)
  return stream and stream.groups[group], stream
end
local NOGROUP = {error = "NOGROUP No such key or consumer group"}

local function option(words, name)
  for i, w in ipairs(words) do if w == name then return words[i + 1], i end end
end

function run.XREAD(...)
  local words = {...}
  local _, streams = option(words, "STREAMS")
  local key, after = words[streams + 1], number_of(words[streams + 2])
  local list = {}
  for _, e in ipairs((at(key) or new_stream()).list) do if number_of(e[1]) > after then list[#list + 1] = e end end
  return #list > 0 and {{key, list}} or false
end
function run.XREADGROUP(_, group, consumer, ...)
  local words, out = {...}, {}
  local most, _ = option(words, "COUNT")
  local _, streams = option(words, "STREAMS")
  local count = (#words - streams) // 2
  for i = 1, count do
    local key, list = words[streams + i], {}
    local g, stream = group_of(key, group)
    if not g then return NOGROUP end
    for _, e in ipairs(stream.list) do
      if number_of(e[1]) > g.last and #list < most then
        g.last = number_of(e[1])
        g.pending[e[1]] = {consumer = consumer, at = now_ms(), count = 1}
        list[#list + 1] = e
      end
    end
    if #list > 0 then out[#out + 1] = {key, list} end
  end
  return #out > 0 and out or false
end
function run.XPENDING(key, group, first, last, most, consumer)
  local g = group_of(key, group)
  if not g then return NOGROUP end
  local list = {}
  for place, p in pairs(g.pending) do
    local n = number_of(place)
    if not first or (first == "-" or n >= number_of(first)) and (last == "+" or n <= number_of(last))
        and (not consumer or p.consumer == consumer) then
      list[#list + 1] = {place, p.consumer, now_ms() - p.at, p.count}
    end
  end
  table.sort(list, function(a, b) return number_of(a[1]) < number_of(b[1]) end)
  if not first then return {#list} end
  return table.move(list, 1, math.min(most, #list), 1, {})
end
function run.XACK(key, group, place)
  local g = group_of(key, group)
  if g then g.pending[place] = nil end
  return 1
end
local function claim(g, stream, consumer, place, idle, counts)
  local e, p = find(stream, place), g.pending[place]
  if not e then g.pending[place] = nil end
  if not e or not p or now_ms() - p.at < idle then return nil end
  p.consumer, p.at, p.count = consumer, now_ms(), p.count + (counts and 1 or 0)
  return e, p
end
function run.XCLAIM(key, group, consumer, idle, ...)
  local g, stream = group_of(key, group)
  if not g then return NOGROUP end
  local words, list = {...}, {}
  local aged, _ = option(words, "IDLE")
  local _, just = option(words, "JUSTID")
  local retries, _ = option(words, "RETRYCOUNT")
  for _, place in ipairs(words) do
    if type(place) == "string" and place:find "^%d+%-0$" then
      local e, p = claim(g, stream, consumer, place, idle, not just)
      if e and aged then p.at = p.at - aged end
      if e and retries then p.count = retries end
      if e then list[#list + 1] = just and place or e end
    end
  end
  return list
end
function run.XAUTOCLAIM(key, group, consumer, idle, _, _, most)
  local g, stream = group_of(key, group)
  if not g then return NOGROUP end
  local list = {}
  for _, place in ipairs(ms.sorted_keys(g.pending)) do
    local e = #list < most and claim(g, stream, consumer, place, idle, true)
    if e then list[#list + 1] = e end
  end
  return {"0-0", list, {}}
end
function run.EVAL(script, count, ...)
  local words = {...}
  local keys, arguments = table.move(words, 1, count, 1, {}), table.move(words, count + 1, #words, 1, {})
  return load(script, "script", "t",
              {redis = {call = function(name, ...) return run[name](...) end}, KEYS = keys, ARGV = arguments})()
end
function run.MULTI() return "OK" end -- what is between is done at once: nobody else is here
function run.EXEC() return {} end

-- As msched.redis, and what it gives.
local Connection = {}
Connection.__index = Connection
function memory.connect() return setmetatable({open = true}, Connection) end
function Connection:is_open() return self.open end
function Connection:close() self.open = false end
local MOST, MOST_COMMANDS, MOST_WORDS = 16 << 20, 4096, 4096 -- as bind_redis.c has them
local function size_of(reply)
  if type(reply) ~= "table" then return #tostring(reply) end
  local size = 0
  for _, r in ipairs(reply) do size = size + size_of(r) end
  return size
end
function Connection:ask(_, commands)
  local replies = {}
  assert(#commands <= MOST_COMMANDS)
  memory.asked = memory.asked + 1
  for i, c in ipairs(commands) do
    memory.commands = memory.commands + 1
    assert(#c <= MOST_WORDS)
    replies[i] = assert(run[c[1]], c[1])(table.unpack(c, 2))
    if size_of(replies[i]) > MOST then
      self.open = false
      return nil, "large", "a reply of more than 16 MiB"
    end
  end
  if memory.lose_every > 0 and memory.asked % memory.lose_every == 0 then -- done, and not answered
    self.open = false
    return nil, "lost", "the connection was closed"
  end
  return replies
end

return memory
