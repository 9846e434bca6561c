-- What a sandboxed state for passes holds: those that the user's files register. Gives the functions that C calls.
local network, plain = msched.load "lua.net.network", msched.load "lua.net.plain"
local limited, registered = msched.limited, msched.registered

-- An array as a pass has it; nobody writes in one.
local Array = {}
Array.__index = {}
function Array.__index.type(a) return a.element end
function Array.__index.shape(a) return table.move(a.extents, 1, #a.extents, 1, {}) end
function Array.__index.tolist(a)
  if not a.values then
    error(string.format("an array of %d elements: a pass sees those of at most %d; " ..
                        "leave what is computed of it as nodes, which are folded", #a, plain.MOST_VALUES), 2)
  end
  return table.move(a.values, 1, #a.values, 1, {})
end
function Array.__len(a)
  local count = 1
  for _, extent in ipairs(a.extents) do count = count * extent end
  return count
end
local function array_of(t)
  return setmetatable({of = t.of, element = t.type, extents = t.shape, values = t.values}, Array)
end

local MOST_MADE = 1 << 20 -- elements of an array that a pass makes
-- ms.array(shape, type [, values]): values: a list, one number for all, or a function of the place from 0.
function msched.array(shape, t, values)
  local function refuse(format, ...) error("ms.array: " .. string.format(format, ...), 3) end
  if type(shape) ~= "table" or type(t) ~= "string" then refuse "it takes a shape, a type and values" end
  local a = setmetatable({element = t, extents = shape, values = {}}, Array)
  for d, extent in ipairs(shape) do
    if math.type(extent) ~= "integer" or extent < 0 then refuse("extent %d is no integer of at least 0", d) end
  end
  if #a > MOST_MADE then refuse("%d elements; a pass makes arrays of at most %d", #a, MOST_MADE) end
  if type(values) == "table" and #values ~= #a then refuse("%d values for %d elements", #values, #a) end
  for i = 1, #a do
    local x = 0
    if type(values) == "table" then x = values[i]
    elseif type(values) == "function" then x = values(i - 1)
    elseif values ~= nil then x = values end
    if type(x) ~= "number" and type(x) ~= "boolean" then refuse("value %d is no number", i) end
    a.values[i] = x == true and 1 or x or 0
  end
  return a
end

local worker = {environment = msched.load "lua.lib.environment".new}
local passes = {}
registered.pass = {}

-- Runs a user's file.
function worker.load(chunk, path)
  local ok, _, message = limited("file", {name = path, apply = chunk})
  if not ok then error(message, 0) end
  if #registered.pass == 0 then error(path .. ": it registers nothing: a file of passes calls ms.pass", 0) end
  for _, p in ipairs(registered.pass) do passes[#passes + 1] = {part = p, file = path} end
  registered.pass = {}
end

function worker.postprocs() return {} end

function worker.passes()
  local list = {}
  for i, p in ipairs(passes) do list[i] = {name = p.part.name, after = p.part.after, file = p.file} end
  return list
end

local function sent_back(a)
  local of = rawget(a, "of")
  return {of = of, type = rawget(a, "element"), shape = rawget(a, "extents"),
          values = not of and rawget(a, "values") or nil}
end
local function is_array(x) return getmetatable(x) == Array end

-- The network that a pass left, as it is copied out; what is wrong with it is said there. No metamethod of the pass
-- runs here, where nothing ends it: what is copied has none, and pairs asks for none.
local function left(net)
  local function field(x, name) return type(x) == "table" and rawget(x, name) or nil end
  local function table_of(x) return type(x) == "table" and x or {} end
  local back = {nodes = rawget(net, "nodes"), constants = {}}
  for name, array in pairs(table_of(rawget(net, "constants"))) do
    back.constants[name] = is_array(array) and sent_back(array) or false
  end
  local nodes = table_of(back.nodes)
  for i = 1, rawlen(nodes) do
    local attributes = table_of(field(rawget(nodes, i), "attributes"))
    for name, x in pairs(attributes) do
      if is_array(x) then rawset(attributes, name, {array = sent_back(x)}) end
    end
  end
  return back
end

-- Runs the pass of that number on a network as lua/net/plain.lua writes it.
function worker.pass(number, t)
  local values = t.values
  t.values, t.layouts = nil, {}
  local net = network.of(t)
  for name, array in pairs(net.constants) do net.constants[name] = array_of(array) end
  for name, value in pairs(values) do value.array = net.constants[name] end
  for _, node in ipairs(net.nodes) do
    for name, x in pairs(node.attributes) do
      if type(x) == "table" and x.array then node.attributes[name] = array_of(x.array) end
    end
  end
  local ok, _, message = limited("pass", passes[number].part, net, values)
  if not ok then error(message, 0) end
  local fine, back = pcall(left, net)
  if not fine then
    local p, why = passes[number], back:gsub("^msched/.-: ", "")
    error(string.format("pass `%s` of %s: what it left: %s", p.part.name, p.file, why), 0)
  end
  return back
end

return worker
