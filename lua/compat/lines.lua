-- Files of JSON, one object a line: what the logs and configs of these libraries are. Numbers come back as they were
-- written, integers as integers; a list and an empty list stay lists, which is what `lines.list` is for; null is nil,
-- in a list lines.null.
local ms = msched
local lines = {null = setmetatable({}, {__name = "null"})}

local List = {__name = "list"}

-- A list that is one in JSON, though it be empty.
function lines.list(x) return setmetatable(x, List) end

-- ---- Writing -----------------------------------------------------------------------------------------------------

local ESCAPES = {['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n", ["\t"] = "\\t"}

-- A value as JSON, on one line: tables are objects, keys in order, or lists where they have items or are of lines.list.
function lines.text(x)
  if type(x) == "string" then
    return '"' .. x:gsub('[%c"\\\127]', function(c) return ESCAPES[c] or string.format("\\u%04x", c:byte()) end) .. '"'
  end
  if x == nil or x == lines.null or x ~= x or x == math.huge or x == -math.huge then return "null" end
  if math.type(x) == "float" then
    local text = string.format("%.17g", x)
    return text:find "[.e]" and text or text .. ".0"
  end
  if type(x) ~= "table" then return tostring(x) end
  local parts = {}
  if #x > 0 or getmetatable(x) == List then
    for i, y in ipairs(x) do parts[i] = lines.text(y) end
    return "[" .. table.concat(parts, ", ") .. "]"
  end
  for i, k in ipairs(ms.sorted_keys(x)) do parts[i] = lines.text(tostring(k)) .. ": " .. lines.text(x[k]) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- Adds a line to a file. What was left of a line that was cut short stands on a line of its own.
function lines.append(path, object)
  local file, message = io.open(path, "a+b")
  if not file then error("cannot write " .. message, 0) end
  local size = file:seek "end"
  local whole = true
  if size > 0 then
    file:seek("set", size - 1)
    whole = file:read(1) == "\n"
  end
  local ok, why = file:write(whole and "" or "\n", lines.text(object), "\n")
  if ok then ok, why = file:close() end
  if not ok then error(string.format("cannot write %s: %s", path, why), 0) end
end

-- ---- Reading -----------------------------------------------------------------------------------------------------

local DEEPEST = 64 -- lists and objects within one another
local PLAIN = {b = "\b", f = "\f", n = "\n", r = "\r", t = "\t"}
local WORDS = {["true"] = true, ["false"] = false}

local read_value

local function fail(s, what) error({at = s.at, what = what}, 0) end
local function skip(s) s.at = s.text:find("[^ \t\r\n]", s.at) or #s.text + 1 end
local function next_is(s, c)
  skip(s)
  if s.text:sub(s.at, s.at) ~= c then return false end
  s.at = s.at + 1
  return true
end

local function read_string(s)
  local last = s.at
  repeat
    last = s.text:find('["\\]', last) or fail(s, "a string without an end")
    local escape = s.text:sub(last, last) == "\\"
    last = last + (escape and 2 or 1)
  until not escape
  local body = s.text:sub(s.at, last - 2)
  s.at = last
  return (body:gsub("\\(.)(%x?%x?%x?%x?)", function(c, digits)
    if c ~= "u" then return (PLAIN[c] or c) .. digits end
    if #digits < 4 then fail(s, "a `\\u` without four digits") end
    return utf8.char(tonumber(digits, 16))
  end))
end

local function read_items(s, close, depth, read_item)
  if depth > DEEPEST then fail(s, "lists too deep") end
  if next_is(s, close) then return end
  repeat read_item() until not next_is(s, ",")
  if not next_is(s, close) then fail(s, string.format("`%s` or `,` expected", close)) end
end

function read_value(s, depth)
  if next_is(s, '"') then return read_string(s) end
  local x = {}
  if next_is(s, "[") then
    local n = 0
    read_items(s, "]", depth, function()
      n = n + 1
      local value = read_value(s, depth + 1)
      x[n] = value == nil and lines.null or value
    end)
    return lines.list(x)
  end
  if next_is(s, "{") then
    read_items(s, "}", depth, function()
      if not next_is(s, '"') then fail(s, "a name in quotes expected") end
      local name = read_string(s)
      if not next_is(s, ":") then fail(s, "`:` expected") end
      x[name] = read_value(s, depth + 1)
    end)
    return x
  end
  local word = s.text:match("^[%w+.-]+", s.at) or fail(s, "a value expected")
  local number = word:find "^-?%d[%deE+.-]*$" and tonumber(word)
  if not number and WORDS[word] == nil and word ~= "null" then fail(s, string.format("`%s` is no value", word)) end
  s.at = s.at + #word
  return number or WORDS[word]
end

-- The value of a text of JSON; nil and what is wrong with it.
function lines.value(text)
  local s = {text = text, at = 1}
  local ok, x = pcall(function()
    local value = read_value(s, 1)
    skip(s)
    if s.at <= #text then fail(s, "more follows the value") end
    return value
  end)
  if ok then return x end
  if type(x) ~= "table" then error(x, 0) end
  return nil, string.format("column %d: %s", x.at, x.what)
end

-- All objects of a file, in order, {number of the line, object}; and what could not be read, a list of messages that
-- begin with FILE:LINE. A file that is not there has none where `missing` is true, else that is an error.
function lines.read(path, missing)
  local file, message = io.open(path, "rb")
  if not file then
    if missing and not message:find "ermission" then return {}, {} end
    error("cannot read " .. message, 0)
  end
  local objects, wrong, number = {}, {}, 0
  for line in file:lines() do
    number = number + 1
    if line:find "%S" then
      local object, why = lines.value(line)
      if type(object) == "table" then objects[#objects + 1] = {number = number, object = object}
      else wrong[#wrong + 1] = string.format("%s:%d: %s", path, number, why or "no object") end
    end
  end
  file:close()
  return objects, wrong
end

return lines
