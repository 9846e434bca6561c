-- What the operators share: refusals, options, axes, the types of sums.
local ms = msched
local te, element_types = ms.te, ms.load "lua.lib.element_types"
local common = {}

-- A refusal names the line of the user's script that asked, and the operator.
function common.fail(what, format, ...) error(ms.where() .. "ops." .. what .. ": " .. string.format(format, ...), 0) end
local fail = common.fail

function common.check_tensor(what, name, x, rank)
  if not te.is_tensor(x) then fail(what, "%s is no tensor but a %s", name, type(x)) end
  if rank and #x.shape ~= rank then fail(what, "%s has %d dimensions, not %d", name, #x.shape, rank) end
end

-- Whether it is a list of which nothing is missing: a tensor, which has an element at every index, is none.
function common.is_list(x)
  if type(x) ~= "table" or te.is_tensor(x) then return false end
  local count = 0
  for _ in pairs(x) do count = count + 1 end
  for i = 1, count do if x[i] == nil then return false end end
  return true
end

-- The extents of `x` are those of a list, in which false stands for any.
function common.check_shape(what, name, x, shape)
  common.check_tensor(what, name, x, #shape)
  for d, extent in ipairs(shape) do
    if extent and x.shape[d] ~= extent then fail(what, "extent %d of %s is %d, not %d", d, name, x.shape[d], extent) end
  end
end

-- The options that were given, over the defaults; one that there is not is a mistake. `false` is a default like
-- another. `name`, where there is such a one, begins names of tensors, and `accumulate` is the type of sums.
function common.options(what, given, defaults)
  if given ~= nil and type(given) ~= "table" then fail(what, "the options are a table, not a %s", type(given)) end
  local o = {}
  for name, value in pairs(defaults) do o[name] = value end
  for _, name in ipairs(ms.sorted_keys(given or {})) do
    if defaults[name] == nil then
      fail(what, "there is no option `%s`; there are %s", tostring(name), table.concat(ms.sorted_keys(defaults), ", "))
    end
    o[name] = given[name]
  end
  if defaults.name and not te.is_name(o.name) then
    fail(what, "name is %s; letters, digits and _ are expected", tostring(o.name))
  end
  if defaults.accumulate then common.check_type(what, "accumulate", o.accumulate) end
  return o
end

-- The options of these names are true or false.
function common.check_flags(what, o, names)
  for name in names:gmatch "%S+" do
    if type(o[name]) ~= "boolean" then
      fail(what, "%s is %s; true or false is expected", name, tostring(o[name]))
    end
  end
end

-- A type of elements that are numbers.
function common.is_type(type) return type ~= "bool" and element_types.of[type] ~= nil end
function common.check_type(what, name, type)
  if not common.is_type(type) then
    fail(what, "%s is %s; a type of numbers is expected, as float32", name, tostring(type))
  end
end

local MOST = 2147483647 -- indices are of int32
function common.check_integer(what, name, value, least)
  if math.type(value) ~= "integer" or value < least then
    fail(what, "%s is %s; an integer of at least %d is expected", name, tostring(value), least)
  end
  if value > MOST then fail(what, "%s is %d; at most %d is expected", name, value, MOST) end
  return value
end

-- A number for each of `rank` dimensions: the list given, or the one number for all.
function common.each(what, name, value, rank, least)
  local list = {}
  if type(value) == "table" and #value ~= rank then
    fail(what, "%s has %d numbers for %d dimensions", name, #value, rank)
  end
  for d = 1, rank do list[d] = common.check_integer(what, name, type(value) == "table" and value[d] or value, least) end
  return list
end

-- Dimensions are counted from 1, or from the end: -1 is the last.
function common.axis(what, axis, rank)
  local a = math.type(axis) == "integer" and (axis < 0 and rank + 1 + axis or axis) or 0
  if a < 1 or a > rank then
    fail(what, "axis %s: there are dimensions 1 to %d, or -1 to -%d", tostring(axis), rank, rank)
  end
  return a
end

-- The dimensions of a list, or the one of a number, or all for nil: whether each of `rank` is among them.
function common.axes(what, axes, rank)
  local among = {}
  for d = 1, rank do among[d] = axes == nil end
  if math.type(axes) == "integer" then axes = {axes} end
  if axes ~= nil and type(axes) ~= "table" then
    fail(what, "axes are an integer or a list of integers, not a %s", type(axes))
  end
  for _, axis in ipairs(axes or {}) do
    local a = common.axis(what, axis, rank)
    if among[a] then fail(what, "axis %d is there twice", axis) end
    among[a] = true
  end
  return among
end

-- What sums of a type are held in: integers of 8 and 16 bits in int32, short floats in float32, others in themselves.
common.SUMS =
  {int8 = "int32", uint8 = "int32", int16 = "int32", uint16 = "int32", float16 = "float32", bfloat16 = "float32",
   float8_e4m3fn = "float32", float8_e5m2 = "float32"}
function common.sums(type) return common.SUMS[type] or type end

common.is_float = element_types.is_float
function common.check_float(what, name, x)
  if not common.is_float(x.type) then fail(what, "%s is of %s; floats are expected", name, x.type) end
end

-- The element of X that stands at these indices of a shape that it is broadcast to.
function common.broadcast_element(X, indices)
  local at, before = {}, #indices - #X.shape
  for d, extent in ipairs(X.shape) do at[d] = extent == 1 and 0 or indices[before + d] end
  return X[at]
end

-- Rows of `size` elements, of which the first `turned` are pairs: the halves of them beside each other, or neighbours
-- (interleaved). Of element e: the number of its pair, whether it is the first of it, and where the other is. For those
-- that are in no pair it is any pair. Halves change places by quotients, so that vectors are of neighbours.
function common.pair_of(e, size, turned, interleaved)
  local half = turned // 2
  if not interleaved then return te.floormod(e, half), te.lt(e, half), te.floormod(e + half, turned) end
  local first = te.eq(te.floormod(e, 2), 0)
  local other = te.minimum(te.maximum(te.select(first, e + 1, e - 1), 0), size - 1)
  return te.minimum(te.floordiv(e, 2), half - 1), first, other
end

-- An element of a pair, of which y is the other, turned by an angle.
function common.turn(x, y, first, cos, sin) return te.select(first, x * cos - y * sin, x * cos + y * sin) end

function common.zero(type) return te.const(common.is_float(type) and 0.0 or 0, type) end

return common
