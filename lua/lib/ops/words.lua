-- Operators and suites as words of a command line: `ops:conv2d`, whose arguments follow `--`, or
-- `ops:conv2d(1,56,56,64,64,3)`, which has its own, so that one command takes several. Arguments are apart by commas,
-- NAME=VALUE names one, and a list stands in brackets: ops:transpose(4x6x8,order=[3,2,1]).
local ms = msched
local words = {}

local CLOSES = {["("] = ")", ["["] = "]"}

local function trimmed(text) return (text:match "^%s*(.-)%s*$") end

-- A refusal shows the word, and the column in it where it is of a place there.
local function fail(word, column, format, ...)
  error(string.format("`%s`%s: %s", word, column and ", column " .. column or "", string.format(format, ...)), 0)
end

local QUOTED = "; a shell takes it as one word in quotes: 'ops:conv2d(1,56,56,64,64,3)'"

-- The column of the bracket that closes the one at `from`; where commas of its own level are: {columns}.
local function closing(word, from)
  local open, commas = {from}, {}
  for at = from + 1, #word do
    local c = word:sub(at, at)
    if CLOSES[c] then open[#open + 1] = at
    elseif c == ")" or c == "]" then
      local opened = open[#open]
      if CLOSES[word:sub(opened, opened)] ~= c then
        fail(word, at, "`%s` closes no bracket: `%s` at column %d is open", c, word:sub(opened, opened), opened)
      end
      open[#open] = nil
      if #open == 0 then return at, commas end
    elseif c == "," and #open == 1 then commas[#commas + 1] = at end
  end
  fail(word, open[#open], "`%s` is not closed%s", word:sub(open[#open], open[#open]), QUOTED)
end

-- The items of a list in brackets, as words; nil: the text is none.
local function list_of(text)
  local inner = text:match "^%[(.*)%]$" or text:match "^%((.*)%)$"
  if not inner then return nil end
  local items = {}
  if not inner:find "%S" then return items end
  for item in (inner .. ","):gmatch "([^,]*)," do items[#items + 1] = trimmed(item) end
  return items
end

-- An argument: its value, a text or a list; its name, where it has one; the column at which it begins.
local function argument_of(word, from, to)
  local text, nth_column = word:sub(from, to), from + #word:sub(from, to):match "^%s*"
  text = trimmed(text)
  if text == "" then fail(word, from, "an argument is missing here") end
  local name, value = text:match "^([%a_][%w_]*)%s*=%s*(.*)$"
  value = value or text
  local list = list_of(value)
  if not list and value:find "%s" then
    fail(word, nth_column, "`%s` holds a blank: arguments are apart by commas", value)
  end
  return {name = name, value = list or value, column = nth_column}
end

-- `ops:NAME`, `suite:NAME`, with arguments in parentheses or without: {kind, name, word, given}; given: its arguments
-- as above, nil where it has none of its own. nil: the word is neither. Raises where it is one that cannot be read.
function words.read(word)
  local kind, rest = word:match "^(%a+):(.*)$"
  if kind ~= "ops" and kind ~= "suite" then return nil end
  local name = trimmed(rest:match "^[^(]*")
  local open = word:find("(", 1, true)
  if not open then
    if name:find "[%)%[%],]" then
      fail(word, word:find "[%)%[%],]", "`%s` has no `(` before it", name:match "[%)%[%],]")
    end
    return {kind = kind, name = name, word = word}
  end
  local close, commas = closing(word, open)
  if word:find("%S", close + 1) then fail(word, word:find("%S", close + 1), "nothing is expected after `)`") end
  local given, from = {}, open + 1
  commas[#commas + 1] = close
  if #commas > 1 or word:find "%(%s*%S.*%)" and not word:find("^%s*%)", from) then
    for i, at in ipairs(commas) do given[i], from = argument_of(word, from, at - 1), at + 1 end
  end
  return {kind = kind, name = name, word = word, given = given}
end

-- Its functions: the operator's, or those of the suite that are chosen. rest: the words after `--`, its arguments where
-- it has none of its own.
function words.functions(item, rest)
  local named, suites = ms.load "lua.lib.ops.named", ms.load "lua.lib.ops.suites"
  local place = item.given and function(x) return string.format("`%s`, column %d: ", item.word, x.column) end or nil
  local ok, made = pcall(function()
    if item.kind == "ops" then return {named.func(item.name, item.given or rest, nil, place)} end
    local list = {}
    for i, member in ipairs(suites.choose(item.name, words.texts(item) or rest)) do list[i] = member.func() end
    return list
  end)
  if ok then return made end
  local script = ms.where()
  made = tostring(made)
  if item.given and made:sub(1, #script) == script then made = made:sub(#script + 1) end -- the word is the place
  error(item.given and made:sub(2, #item.word + 1) ~= item.word and string.format("`%s`: %s", item.word, made) or made,
        0)
end

-- The arguments of its own as the words that would follow `--`; nil: it has none.
function words.texts(item)
  if not item.given then return nil end
  local list = {}
  for i, x in ipairs(item.given) do
    if type(x.value) == "table" then fail(item.word, x.column, "a list is for arguments of operators") end
    list[i] = (x.name and x.name .. "=" or "") .. x.value
  end
  return list
end

return words
