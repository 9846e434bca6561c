-- Conditions over drawn numbers, as Assert, If and For take them: a text, a text with names for handles, or a function
-- of handles. Adds to the methods of schedules:
--   sch:assert("a * b <= 1024", {a = tile[2], b = other[2]})
--   sch:assert(function(a, b) return (a * b):le(1024) end, tile[2], other[2])
--   sch:if_(condition, {a = …}, function(sch) … end, function(sch) … end)
--   sch:for_(count, function(sch, iteration) … end)
local schedule = msched.schedule_methods

local Formula = {}
Formula.__index = Formula

local function text_of(x)
  if getmetatable(x) == Formula then return x.text end
  if math.type(x) == "integer" then return tostring(x) end
  error("a condition is made of drawn numbers and integers, not of a " .. type(x), 3)
end

local function operator(symbol)
  return function(a, b)
    return setmetatable({text = string.format("(%s %s %s)", text_of(a), symbol, text_of(b))}, Formula)
  end
end

Formula.__add, Formula.__sub, Formula.__mul = operator "+", operator "-", operator "*"
Formula.__idiv, Formula.__mod, Formula.__band, Formula.__bor = operator "//", operator "%", operator "and",
  operator "or"
Formula.__unm = function(a) return 0 - a end
Formula.__bnot = function(a) return setmetatable({text = "(not " .. a.text .. ")"}, Formula) end
for name, symbol in pairs {lt = "<", le = "<=", gt = ">", ge = ">=", eq = "==", ne = "!="} do
  Formula[name] = operator(symbol)
end

local function name_of(handle)
  if type(handle) ~= "userdata" then return text_of(handle) end
  if msched.type(handle) ~= "handle" then
    error("a condition is over numbers that were drawn, not over a " .. (msched.type(handle) or "userdata"), 0)
  end
  return handle:name()
end

local words = {["and"] = true, ["or"] = true, ["not"] = true, T = true, min = true, max = true, floordiv = true,
               floormod = true, truncdiv = true, truncmod = true}

-- The condition's text in the trace's names.
local function condition_text(condition, ...)
  if type(condition) == "function" then
    local given = table.pack(...)
    for i = 1, given.n do given[i] = setmetatable({text = name_of(given[i])}, Formula) end
    return text_of(condition(table.unpack(given, 1, given.n)))
  end
  if type(condition) ~= "string" then
    local why = type(condition) == "boolean" and ", which Lua's == and < give" or ""
    error(string.format('a condition is a text, as ("x > 2", {x = number}), or a function of numbers, not a %s%s',
                        type(condition), why), 3)
  end
  local names = ...
  if names == nil then return condition end
  if type(names) ~= "table" then error("a condition's numbers are a table by name, not a " .. type(names), 3) end
  return (condition:gsub("[%a_][%w_]*", function(word)
    if words[word] then return word end
    if names[word] == nil then error("the condition names `" .. word .. "`, which is not given", 4) end
    return name_of(names[word])
  end))
end

local plain_assert, plain_if, plain_for = schedule.assert, schedule.if_, schedule.for_

function schedule.assert(sch, condition, ...) plain_assert(sch, condition_text(condition, ...)) end

-- Names or handles may stand between the condition and the functions.
function schedule.if_(sch, condition, ...)
  local given = table.pack(...)
  local first = 1
  if type(condition) == "string" then
    if type(given[1]) == "table" then first = 2 end
    plain_if(sch, condition_text(condition, first == 2 and given[1] or nil))
  else
    while type(given[first]) == "userdata" do first = first + 1 end
    plain_if(sch, condition_text(condition, table.unpack(given, 1, first - 1)))
  end
  local holds, fails = given[first], given[first + 1]
  if not holds then return end
  holds(sch)
  if fails then
    sch:else_()
    fails(sch)
  end
  sch:end_()
end

function schedule.for_(sch, count, body)
  if body ~= nil and type(body) ~= "function" then
    error("a loop's body is a function, not a " .. (msched.type(body) or type(body)), 2)
  end
  local iteration = plain_for(sch, count)
  if not body then return iteration end
  body(sch, iteration)
  sch:end_()
end

return true
