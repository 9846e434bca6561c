-- The options of a run of tuning, from the one table of them (lua/cli/options.def): what ms.tune and the tasks of a run
-- take, and which words of commands they are.
-- standard: the numbers that hold where nothing is said, by field.
local options = {list = msched.run_options(), standard = {}}

-- What msched.options checks a value by, from a type as annotations write it.
local function checked_type(type)
  return type:find "%[%]$" and "table" or type:find "^fun%(" and "function" or type:find "|" and "any" or type
end

-- least, most: of a number; above: it is more than the least.
local function read_range(o)
  o.above, o.least = o.range:match "^>(%d+)$" ~= nil, tonumber(o.range:match "^>?=?(%d+)")
  o.most = tonumber(o.range:match "%.%.(%d+)$")
end

local known = {}
for i, o in ipairs(options.list) do
  read_range(o)
  options.standard[o.field] = tonumber(o.standard)
  o.key = o.word and o.word:match "%-%-(.*)$" -- of a command's options
  known[i] = o.field .. ":" .. checked_type(o.type)
end
options.known = table.concat(known, " ")

-- The first option whose value is out of its range, or nil: all are in theirs.
function options.out_of_range(given)
  for _, o in ipairs(options.list) do
    local x = o.least and given[o.field]
    if x and not (x >= o.least and x <= (o.most or math.huge) and not (o.above and x == o.least)) then return o, x end
  end
end

-- The options of a run that the options of a command are.
function options.of_command(words)
  local given = {}
  for _, o in ipairs(options.list) do
    if o.key then given[o.field] = words[o.key] end
  end
  return given
end

-- As annotations write the fields of a table.
function options.fields_text()
  local fields = {}
  for i, o in ipairs(options.list) do fields[i] = o.field .. "?: " .. o.type end
  return table.concat(fields, ", ")
end

return options
