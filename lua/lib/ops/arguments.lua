-- Arguments of operators that are named: words of a command line, or values of Lua, in their order or by their names.
local ms = msched
local common = ms.load "lua.lib.ops.common"
local arguments = {}

-- A refusal names the line of the user's script, if there is one, and the operator.
local function fail(op, format, ...) error(ms.where() .. "ops:" .. op.name .. ": " .. string.format(format, ...), 0) end

local function whole(x, least)
  x = type(x) == "string" and x:find "^-?%d+$" and math.tointeger(x) or x
  return math.type(x) == "integer" and x >= least and x or nil
end

-- Integers in a word, apart by `mark`, or in a list. nil: it is no such list.
local function integers(x, mark, least)
  local list = {}
  if type(x) == "string" then
    for part in (x .. mark):gmatch("([^" .. mark .. "]*)" .. mark) do
      local value = whole(part, least)
      if not value then return nil end
      list[#list + 1] = value
    end
  elseif type(x) == "table" then
    if not common.is_list(x) then return nil end
    for i, part in ipairs(x) do
      list[i] = whole(part, least)
      if not list[i] then return nil end
    end
  else
    list[1] = whole(x, least)
  end
  return #list > 0 and list or nil
end

-- One number, or one for each dimension.
local function sizes(x, least)
  local list = integers(x, "x", least)
  return list and #list == 1 and list[1] or list
end

local element_types = ms.load "lua.lib.element_types".of
local function type_of(x) return element_types[x] and x ~= "bool" and x or nil end

-- How arguments are read: what is expected, and the value of a word or of one of Lua's. nil: it is something else.
local KINDS = {
  extent = {"an integer of at least 1", function(x) return whole(x, 1) end},
  count = {"an integer of at least 1", function(x) return whole(x, 1) end},
  open_count = {"auto, or an integer of at least 1", function(x) return x == "auto" and x or whole(x, 1) end},
  integer = {"an integer", function(x) return whole(x, math.mininteger) end},
  sizes = {"an integer of at least 1, or one for each dimension, as 3x1", function(x) return sizes(x, 1) end},
  window = {"an integer of at least 1, or one for each dimension, as 3x1", function(x) return sizes(x, 1) end},
  pads = {"an integer of at least 0, or one for each dimension, as 1x0", function(x) return sizes(x, 0) end},
  shape = {"extents of at least 1, as 16x1024", function(x) return integers(x, "x", 1) end},
  open_shape = {"extents, of which one may be -1, as 16x-1", function(x) return integers(x, "x", -1) end},
  list = {"integers, as 1,3,2", function(x) return integers(x, ",", math.mininteger) end},
  axes = {"integers, as 2,3, or all",
          function(x) if x == "all" then return x end return integers(x, ",", math.mininteger) end},
  layout = {"a word, as NHWC", function(x) return type(x) == "string" and x or nil end},
  dtype = {"a type of elements, as float32 or int8", type_of},
  zero = {"an integer, or channels", function(x) return x == "channels" and x or whole(x, math.mininteger) end},
  products = {"float32, bfloat16, int24 or int8", function(x) return x == "int24" and x or type_of(x) end},
  nibbles = {"pairs or halves", function(x) return (x == "pairs" or x == "halves") and x or nil end},
  accumulate = {"auto, or a type of elements", function(x) return x == "auto" and x or type_of(x) end},
  scales = {"none, tensor or head", function(x) return (x == "none" or x == "tensor" or x == "head") and x or nil end},
  flag = {"true or false", function(x)
    if x == true or x == false then return x end
    return ({["true"] = true, ["false"] = false})[x]
  end},
}

-- Of each argument: how it is read, and what it means.
local MEANINGS = {
  -- of images and windows
  n = {"extent", "images of a batch"},
  d = {"extent", "depth of an image"},
  h = {"extent", "height of an image"},
  w = {"extent", "width of an image"},
  l = {"extent", "length of an image of one dimension"},
  c = {"extent", "channels"},
  ci = {"extent", "channels that go in"},
  co = {"extent", "channels that come out"},
  kernel = {"window", "extent of the window"},
  stride = {"sizes", "steps of the window"},
  pad = {"pads", "zeros around the image, at each side"},
  dilation = {"sizes", "distance of the elements of a window"},
  groups = {"extent", "groups of channels that are convolved apart"},
  output_pad = {"pads", "what the result is longer at its end"},
  capsule = {"extent", "rows and columns of a capsule's matrix"},
  layout = {"layout", "order of an image's dimensions, channels last or first"},
  include_pad = {"flag", "whether zeros around the image count"},
  -- of products
  b = {"extent", "matrices of a batch"},
  m = {"extent", "rows of the result"},
  k = {"extent", "what is summed over"},
  transpose_a = {"flag", "whether the first matrix is transposed"},
  transpose_b = {"flag", "whether the second matrix is transposed"},
  heads = {"extent", "heads of attention"},
  kv_heads = {"open_count", "heads of keys and values, each for as many of queries in a row; auto: as many as heads"},
  rows = {"extent", "queries"},
  columns = {"extent", "keys and values"},
  width = {"extent", "elements of a query, a key, a value"},
  scales = {"scales", "factors of queries, keys and values, as arguments: none, one of each tensor, or of each head"},
  causal = {"flag", "whether a query sees keys up to its own number alone"},
  -- of tensors of any shape
  shape = {"shape", "extents of what goes in"},
  first = {"shape", "extents of the first tensor"},
  second = {"shape", "extents of the second, broadcast"},
  to = {"open_shape", "extents of the result"},
  axis = {"integer", "the dimension, from 1, or from the end: -1 is the last"},
  axes = {"axes", "the dimensions, from 1, or from the end: -1 is the last"},
  order = {"list", "which dimension of the input each of the result is, from 1"},
  keepdims = {"flag", "whether what is reduced stays, with extent 1"},
  last = {"count", "how many of the last dimensions"},
  indices = {"shape", "extents of the tensor of indices, of int32"},
  before = {"pads", "zeros before each dimension"},
  after = {"pads", "zeros after each dimension"},
  dtype = {"dtype", "type of the elements that go in"},
  result = {"dtype", "type of the elements that come out"},
  weight_dtype = {"accumulate", "type of the second operand's elements; auto: dtype"},
  x_zero_point = {"integer", "the integer that stands for 0 in the first operand"},
  w_zero_point = {"zero", "the integer that stands for 0 in the second operand; channels: a tensor, one for each"},
  zero_point = {"integer", "the integer that stands for 0 in the result"},
  bits = {"count", "bits of a weight: 4 or 8"},
  scale_dtype = {"dtype", "type of the scales: float32, float16 or bfloat16"},
  products = {"products", "what the first operand is multiplied as: float32, bfloat16, or int24 or int8, to which \z
                           its groups are rounded"},
  constant = {"flag", "whether the second operand is a constant, which is packed ahead of all runs"},
  accumulate = {"accumulate", "type of the sums; auto: int32 for short integers, float32 for short floats, else dtype"},
}

-- The arguments that a line names, each with what holds without it: "n=1 h=56 …". meanings: of those that mean
-- something else than in other operators.
function arguments.declare(line, meanings)
  local list = {}
  for name, default in line:gmatch "(%S+)=(%S+)" do
    local meaning = meanings and meanings[name] or MEANINGS[name]
    local kind, doc = meaning[1], meaning[2]
    local argument =
      {name = name, default = default, kind = kind, doc = doc, expected = KINDS[kind][1], read = KINDS[kind][2]}
    assert(argument.read(default) ~= nil and not list[name], name)
    list[#list + 1], list[name] = argument, argument
  end
  return list
end

local function text_of(x)
  if type(x) ~= "table" then return tostring(x) end
  local parts = {}
  for i = 1, #x do parts[i] = type(x[i]) == "table" and "a table" or tostring(x[i]) end
  return #parts > 0 and table.concat(parts, "x") or next(x) == nil and "an empty list" or "no list"
end

-- An argument that is given: its name, where it has one, and its value; `place`: it is {name =, value =} of a word
-- (words.lua).
local function name_and_value(x, place)
  if place then return x.name, x.value end
  local name, word
  if type(x) == "string" then name, word = x:match "^([%a_][%w_]*)=(.*)$" end
  return name, word or x
end

-- The value of each argument of an operator, by its name. place(x), if there is one, is what refusals of an item of
-- `given` begin with.
function arguments.read(op, given, place)
  local values, nth, listed, now = {}, 0, 0, nil
  local function refuse(format, ...)
    if place and now then error(place(now) .. string.format(format, ...), 0) end
    fail(op, format, ...)
  end
  local function set(argument, x)
    if values[argument.name] ~= nil then refuse("%s is given twice", argument.name) end
    local value = argument.read(x)
    if value == nil then refuse("%s is %s; expected: %s", argument.name, text_of(x), argument.expected) end
    values[argument.name] = value
  end
  local function find(name)
    if op.arguments[name] then return op.arguments[name] end
    local names = {}
    for i, argument in ipairs(op.arguments) do names[i] = argument.name end
    refuse("there is no argument `%s`; there are %s%s", name, table.concat(names, ", "),
           ms.load "lua.lib.nearest".meant(name, names))
  end
  for _, x in ipairs(given) do
    local name, value = name_and_value(x, place)
    now, nth, listed = x, name and nth or nth + 1, listed + 1
    if nth > #op.arguments then refuse("it takes %d arguments; `%s` is one more", #op.arguments, text_of(value)) end
    set(name and find(name) or op.arguments[nth], value)
  end
  now = nil
  for _, name in ipairs(ms.sorted_keys(given)) do
    if type(name) == "string" then set(find(name), given[name])
    elseif math.type(name) ~= "integer" or name < 1 or name > listed then
      refuse("`%s` is no argument: number %d of the list is missing", tostring(name), listed + 1)
    end
  end
  for _, argument in ipairs(op.arguments) do
    if values[argument.name] == nil then values[argument.name] = argument.read(argument.default) end
  end
  return values
end

-- What a refusal adds where integers stand apart that may have been meant for one shape; else nothing.
function arguments.apart(op, given, place)
  if op.arguments[1].kind ~= "shape" then return "" end
  local extents = {}
  for i, x in ipairs(given) do
    local name, value = name_and_value(x, place)
    extents[i] = not name and whole(value, 1) or nil
    if not extents[i] then break end
  end
  return #extents < 2 and "" or string.format(" (a shape is one word: %s)", table.concat(extents, "x"))
end

-- What the function is called: the operator, the extents that come first, and what is not as it is without being said.
local PLAIN = {dtype = true, layout = true, weight_dtype = true} -- whose values need no name before them
function arguments.name(op, values)
  local name, leading = op.name, true
  local function word(value) return (text_of(value):gsub("-", "minus")) end
  for i, argument in ipairs(op.arguments) do
    local value = word(values[argument.name])
    leading = leading and (argument.kind == "extent" or argument.kind == "shape" or argument.kind == "window")
    if leading then name = name .. ((i == 1 or argument.kind == "shape") and "_" or "x") .. value
    elseif value ~= word(argument.read(argument.default)) then
      name = name .. "_" .. (PLAIN[argument.name] and "" or argument.name) .. value
    end
  end
  return name
end

return arguments
