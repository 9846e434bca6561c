-- te: tensor expressions. A function is described by what each element of its tensors is, and becomes TVMScript.
--
--   local A, B = te.placeholder({M, K}, "float32", "A"), te.placeholder({K, N}, "float32", "B")
--   local k = te.reduce_axis(K, "k")
--   local C = te.compute({M, N}, function(i, j) return te.sum(A[{i, k}] * B[{k, j}], k) end, "C")
--   local gemm = te.func("gemm", {A, B, C})
--
-- An expression is a table with a type; numbers take the type of what they are combined with. An index starts at 0, and
-- one that can leave its tensor is refused; te.if_then_else guards an access, te.select does not, since it computes
-- both.
local ms = msched
local elements, reserved = ms.load "lua.lib.element_types", ms.load "lua.lib.reserved"
local element_types, is_float = elements.of, elements.is_float
local te = {}

local Expr, Tensor, Axis = {}, {}, {}

-- A refusal names the line of the user's script that asked.
local function fail_at(place, format, ...) error(place .. "te: " .. string.format(format, ...), 0) end
local function fail(format, ...) fail_at(ms.where(), format, ...) end

-- Of tensors and axes.
function te.is_name(name) return type(name) == "string" and name:find "^[%a_][%w_]*$" ~= nil end
local function check_name(name)
  if not te.is_name(name) then fail("`%s` is no name", tostring(name)) end
  return name
end

-- ---- Types -----------------------------------------------------------------------------------------------------

local function is_int(type) return type:find("^u?int") ~= nil end

local function check_type(type_, what)
  if not element_types[type_] then fail("%s: `%s` is no type of elements", what, tostring(type_)) end
  return type_
end

-- An expression is written as a tree: what is used twice stands there twice. Its size and depth are kept as it grows.
local MOST_PARTS, MOST_DEPTH = 1e6, 250
local function expr(node)
  local parts, depth = 1, 0
  local function add(list)
    for _, x in ipairs(list) do
      parts = parts + (rawget(x, "parts") or 1)
      depth = math.max(depth, rawget(x, "depth") or 0)
    end
  end
  add(node)
  add(node.values or {})
  node.parts, node.depth = parts, depth + 1
  if parts > MOST_PARTS or depth >= MOST_DEPTH then
    fail("the expression has %s; make a part of it a tensor of its own with te.compute",
         parts > MOST_PARTS and "more than a million parts"
           or "more than " .. MOST_DEPTH .. " operations one in another")
  end
  return setmetatable(node, Expr)
end
local function is_expr(x) return getmetatable(x) == Expr end

local function constant(value, type)
  if type == "bool" then return expr {op = "const", value = value ~= 0 and value ~= false, type = type} end
  return expr {op = "const", value = value, type = type}
end

-- An expression from what a user may write where one is expected.
local function lift(x, type)
  if is_expr(x) then return x end
  if getmetatable(x) == Axis then return x.var end
  if math.type(x) == "integer" then return constant(x, type or "int32") end
  if math.type(x) == "float" then return constant(x, type and is_float(type) and type or "float32") end
  if x == true or x == false then return constant(x, "bool") end
  if getmetatable(x) == Tensor then
    if #x.shape == 0 then return x[{}] end
    fail("tensor %s is used without indices", x.name)
  end
  fail("a %s is no expression", x == nil and "nil" or _G.type(x))
end

local function cast(x, type)
  if x.type == type then return x end
  if x.op == "const" and x.type ~= "bool" and type ~= "bool" then
    local value = is_float(type) and x.value + 0.0 or math.tointeger(x.value)
    if value then return constant(value, type) end -- 1.5 as an integer is cut where it is computed
  end
  return expr {op = "cast", type = type, x}
end

-- Brings two operands to one type: a constant takes the other's; an integer beside a float becomes one; of two integers
-- the wider holds; two floats of different types are the writer's to cast.
local function unify(a, b, what)
  local raw_a, raw_b = not is_expr(a) and getmetatable(a) ~= Axis, not is_expr(b) and getmetatable(b) ~= Axis
  a, b = lift(a), lift(b)
  if a.type == b.type then return a, b end
  if raw_a and a.op == "const" and (is_float(b.type) or math.type(a.value) == "integer") then
    return cast(a, b.type), b
  end
  if raw_b and b.op == "const" and (is_float(a.type) or math.type(b.value) == "integer") then
    return a, cast(b, a.type)
  end
  if is_float(a.type) and is_int(b.type) then return a, cast(b, a.type) end
  if is_int(a.type) and is_float(b.type) then return cast(a, b.type), b end
  local wide = {int8 = 1, int16 = 2, int32 = 3, int64 = 4}
  if wide[a.type] and wide[b.type] then
    local type = wide[a.type] > wide[b.type] and a.type or b.type
    return cast(a, type), cast(b, type)
  end
  fail("%s: operands of types %s and %s; cast one of them", what, a.type, b.type)
end

-- Conditions have no arithmetic.
local function refuse_truths(x, text)
  if x.type == "bool" then
    fail("%s: conditions (bool) have no arithmetic: te.all, te.any and te.not_ join them, te.select(c, a, b) chooses \z
          by one, te.cast(c, \"int32\") counts it", text)
  end
end

local function binary(op, text)
  return function(a, b)
    local x, y = unify(a, b, text)
    refuse_truths(x, text)
    return expr {op = "binary", text = text, type = x.type, x, y}
  end
end

Expr.__add, Expr.__sub, Expr.__mul = binary("add", "+"), binary("sub", "-"), binary("mul", "*")
Expr.__idiv, Expr.__mod = binary("floordiv", "//"), binary("floormod", "%")
Expr.__div = function(a, b)
  local x, y = unify(a, b, "/")
  if not is_float(x.type) then fail("/ divides floats; say // for integers") end
  -- TVMScript has no division by a number that is 0; infinity says the same.
  if y.op == "const" and y.value == 0 then return Expr.__mul(x, constant(1 / y.value, y.type)) end
  return expr {op = "binary", text = "/", type = x.type, x, y}
end
Expr.__unm = function(a) return 0 - a end
Expr.__lt = function()
  fail("an expression has no value yet: te.lt, te.le, te.gt and te.ge make conditions, te.select and te.if_then_else \z
        choose by them")
end
Expr.__le = Expr.__lt
Expr.__pow = function() fail("a ^ b is no expression: te.pow(a, b) is a to the power of b") end
Expr.__index = function(_, key) if key ~= "value" and type(key) == "string" and key ~= "var" then return nil end end
for _, event in ipairs {"__add", "__sub", "__mul", "__idiv", "__mod", "__div", "__unm"} do
  Axis[event] = function(a, b) return Expr[event](is_expr(a) and a or lift(a), b) end
  Tensor[event] = Expr[event] -- of one without dimensions; another is refused
end
for _, event in ipairs {"__lt", "__le", "__pow"} do Axis[event], Tensor[event] = Expr[event], Expr[event] end

-- ---- Functions of expressions ----------------------------------------------------------------------------------

local function comparison(text)
  return function(a, b)
    local x, y = unify(a, b, text)
    return expr {op = "binary", text = text, type = "bool", x, y}
  end
end
te.lt, te.le, te.gt, te.ge = comparison("<"), comparison("<="), comparison(">"), comparison(">=")
te.eq, te.ne = comparison("=="), comparison("!=")

local function logic(text)
  return function(...)
    local all
    for _, x in ipairs {...} do
      x = lift(x)
      if x.type ~= "bool" then fail("%s joins conditions, not %s", text, x.type) end
      all = all and expr {op = "binary", text = text, type = "bool", all, x} or x
    end
    return all or fail("%s of nothing", text)
  end
end
te.all, te.any = logic("and"), logic("or")
function te.not_(x) return expr {op = "not", type = "bool", lift(x)} end

local function call(name, type, ...) return expr {op = "call", name = name, type = type, ...} end

-- Of floats: the table tir/functions.def.
for _, f in ipairs(ms.te_functions) do
  local name = f.name
  te[name] = function(x)
    x = lift(x)
    if not is_float(x.type) then fail("%s is of floats, not %s", name, x.type) end
    return call(name, x.type, x)
  end
end
function te.abs(x) x = lift(x) refuse_truths(x, "abs") return call("abs", x.type, x) end
function te.pow(a, b)
  local x, y = unify(a, b, "pow")
  if not is_float(x.type) then fail("pow is of floats, not %s", x.type) end
  return call("pow", x.type, x, y)
end
function te.maximum(a, b)
  local x, y = unify(a, b, "maximum")
  refuse_truths(x, "maximum")
  return call("max", x.type, x, y)
end
function te.minimum(a, b)
  local x, y = unify(a, b, "minimum")
  refuse_truths(x, "minimum")
  return call("min", x.type, x, y)
end
function te.floordiv(a, b) return Expr.__idiv(lift(a), b) end
function te.floormod(a, b) return Expr.__mod(lift(a), b) end
function te.cast(x, type_)
  if type(type_) ~= "string" then fail("te.cast takes a value and the name of a type, not a %s", type(type_)) end
  return cast(lift(x), check_type(type_, "te.cast"))
end
function te.const(value, type_)
  if type(value) ~= "number" and type(value) ~= "boolean" then
    fail("te.const takes a number, or true or false, not a %s", type(value))
  end
  local t = check_type(type_ or lift(value).type, "te.const")
  local whole = is_int(t) and math.tointeger(value)
  if is_int(t) and not whole or type(value) == "boolean" and t ~= "bool" then
    fail("te.const: %s is no %s", tostring(value), t)
  end
  return constant(whole or value, t)
end

-- A call of a function that TVMScript knows by name, as te.call("fmod", "float32", x, y). `reinterpret` names its type.
function te.call(name, type_, ...)
  check_name(name)
  check_type(type_, "te.call")
  local arguments = {}
  for i, x in ipairs {...} do arguments[i] = lift(x) end
  if name == "reinterpret" and #arguments ~= 1 then fail("te.call: reinterpret takes one value, not %d", #arguments) end
  return call(name, type_, table.unpack(arguments))
end

local function choice(name)
  return function(condition, a, b)
    local c = lift(condition)
    if c.type ~= "bool" then fail("%s: the condition is of type %s", name, c.type) end
    local x, y = unify(a, b, name)
    return call(name, x.type, c, x, y)
  end
end
te.if_then_else = choice("if_then_else") -- only the branch taken is computed: it may guard an access
te.select = choice("Select")             -- both are computed

-- ---- Tensors ---------------------------------------------------------------------------------------------------

-- Indices are of int32; a tensor's bytes and a loop nest's iterations are counted in int64, far below its limit.
local MOST_EXTENT, MOST_BYTES, MOST_ITERATIONS = 2147483647, 1 << 40, 2.0 ^ 60

local function check_size(shape, dtype, what)
  local bytes = element_types[dtype].bits / 8
  for _, extent in ipairs(shape) do bytes = bytes * extent end
  if bytes > MOST_BYTES then
    fail("%s: %s of %s are %.3g bytes, more than memory holds", what, table.concat(shape, " x "), dtype, bytes)
  end
end

local function check_shape(shape, what)
  if type(shape) ~= "table" or getmetatable(shape) == Tensor then fail("%s: the shape is a list of extents", what) end
  local listed, all = 0, 0
  for _ in ipairs(shape) do listed = listed + 1 end
  for _ in pairs(shape) do all = all + 1 end
  if listed ~= all then fail("%s: the shape is a list of extents; extent %d is missing", what, listed + 1) end
  for i, extent in ipairs(shape) do
    if math.type(extent) ~= "integer" or extent < 0 then
      fail("%s: extent %d is %s; it is an integer of at least 0", what, i, tostring(extent))
    end
    if extent > MOST_EXTENT then fail("%s: extent %d is %d, more than memory holds", what, i, extent) end
  end
end

local function load(tensor, indices)
  if #indices ~= #tensor.shape then fail("%s has %d dimensions, not %d", tensor.name, #tensor.shape, #indices) end
  local node = {op = "load", tensor = tensor, type = tensor.type, place = ms.where()}
  for i, x in ipairs(indices) do
    node[i] = lift(x)
    if not is_int(node[i].type) then fail("index %d of %s is of type %s", i, tensor.name, node[i].type) end
  end
  return expr(node)
end

Tensor.__index = function(t, key)
  if type(key) == "table" and not is_expr(key) and getmetatable(key) ~= Axis then return load(t, key) end
  if is_expr(key) or math.type(key) == "integer" or getmetatable(key) == Axis then return load(t, {key}) end
  return rawget(Tensor, key)
end
Tensor.__call = function(t, ...) return load(t, {...}) end
function te.is_tensor(x) return getmetatable(x) == Tensor end

local counter = 0
local function fresh(base)
  counter = counter + 1
  return base .. counter
end

function te.placeholder(shape, dtype, name)
  name = check_name(name or fresh "P")
  dtype = check_type(dtype or "float32", name)
  check_shape(shape, name)
  check_size(shape, dtype, name)
  return setmetatable({kind = "placeholder", shape = shape, type = dtype, name = name}, Tensor)
end

-- A reduction's axis: extent, or {first, last + 1}.
function te.reduce_axis(range, name)
  local low, high = 0, range
  if type(range) == "table" then low, high = range[1], range[2] end
  if math.type(low) ~= "integer" or math.type(high) ~= "integer" or high < low then
    fail("a reduction's range is of integers and does not go down, not from %s to %s", tostring(low), tostring(high))
  end
  if low < -MOST_EXTENT or high > MOST_EXTENT or high - low > MOST_EXTENT then
    fail("a reduction from %d to %d is too long", low, high)
  end
  local axis = {low = low, extent = high - low, name = check_name(name or fresh "r")}
  axis.var = expr {op = "var", name = "v_" .. axis.name, type = "int32", axis = axis}
  return setmetatable(axis, Axis)
end

local function axes_of(axes)
  if getmetatable(axes) == Axis then axes = {axes} end
  if type(axes) ~= "table" or #axes == 0 then fail("a reduction is over one axis or a list of axes") end
  for _, a in ipairs(axes) do
    if getmetatable(a) ~= Axis then fail("a reduction's axes come from te.reduce_axis") end
  end
  return axes
end

local function limit(type_, which, what)
  local known = element_types[type_ or ""]
  if not known or not known[which] then fail("%s: `%s` is no type of numbers", what, tostring(type_)) end
  return expr {op = "literal", text = known[which], type = type_}
end
function te.min_value(type_) return limit(type_, "low", "te.min_value") end
function te.max_value(type_) return limit(type_, "high", "te.max_value") end

-- A tensor is no list, and has an element at every index.
local function is_list(x)
  local meta = getmetatable(x)
  return type(x) == "table" and meta ~= Expr and meta ~= Axis and meta ~= Tensor
end

-- A reducer: combine(x, y) and identity(types…) of one value, or of lists of several.
function te.reducer(combine, identity, name)
  if name ~= nil then check_name(name) end
  if type(combine) ~= "function" or type(identity) ~= "function" then
    fail("te.reducer takes two functions: what combines values, and what a reduction begins with")
  end
  return function(values, axes)
    local many = is_list(values)
    local list = {}
    for i, v in ipairs(many and values or {values}) do list[i] = lift(v) end
    if #list == 0 then fail("te.%s reduces a value, or a list of some", name or "reduce") end
    return expr {op = "reduce", combine = combine, identity = identity, many = many, values = list,
                 axes = axes_of(axes), name = name or "reduce", type = list[1].type}
  end
end
local function reducer_of_one(combine, identity, name)
  local reduce = te.reducer(combine, identity, name)
  return function(value, axes)
    if is_list(value) then fail("te.%s reduces one value, not a list", name) end
    return reduce(value, axes)
  end
end
te.sum = reducer_of_one(Expr.__add, function(t) return constant(is_float(t) and 0.0 or 0, t) end, "sum")
te.prod = reducer_of_one(Expr.__mul, function(t) return constant(is_float(t) and 1.0 or 1, t) end, "prod")
-- As TVM's te.max and te.min: over axes, or, where values stand in their place, of those values.
local function over_or_of(over, of_two)
  return function(x, axes, ...)
    if not is_expr(axes) and type(axes) ~= "number" then return over(x, axes) end
    local result = of_two(x, axes)
    for _, y in ipairs {...} do result = of_two(result, y) end
    return result
  end
end
te.max = over_or_of(reducer_of_one(te.maximum, te.min_value, "max"), te.maximum)
te.min = over_or_of(reducer_of_one(te.minimum, te.max_value, "min"), te.minimum)

-- An element that is NaN is as the one that the reduction begins with, which is never better: max and min leave NaN
-- out.
local function arg_reducer(better, first, beyond, name)
  local reduce = te.reducer(function(x, y)
    local keep = te.any(better(x[2], y[2]), te.all(te.eq(x[2], y[2]), te.lt(x[1], y[1])))
    return {te.select(keep, x[1], y[1]), te.select(better(x[2], y[2]), x[2], y[2])}
  end, function(index, value) return {constant(-1, index), first(value)} end, name)
  return function(values, axes)
    if not is_list(values) or #values ~= 2 then
      fail("te.%s reduces a list of two: {index, value}", name)
    end
    local value = lift(values[2])
    if is_float(value.type) then values = {values[1], beyond(value, first(value.type))} end
    return reduce(values, axes)
  end
end
te.argmax = arg_reducer(te.gt, te.min_value, te.maximum, "argmax") -- te.argmax({index, value}, axes): gives both
te.argmin = arg_reducer(te.lt, te.max_value, te.minimum, "argmin")

-- Variables are the operation's own: its indices, and the axes that it reduces over.
local function check_vars(x, known, what)
  if x.op == "var" and not known[x] then
    if x.axis then fail("%s: axis %s is used, but not reduced over", what, x.axis.name) end
    fail("%s: an index of another operation is used", what)
  end
  if x.op == "reduce" then
    fail("%s: a reduction is all that its tensor is: give it a te.compute of its own, and use that", what)
  end
  for _, y in ipairs(x) do check_vars(y, known, what) end
end

-- What a function of a reducer gives: an expression for each value that is reduced.
local function values_of(reduce, what, given)
  local list = is_list(given) and given or {given}
  if #list ~= #reduce.values then
    fail("te.%s: its %s gives %d values for %d", reduce.name, what, #list, #reduce.values)
  end
  local values = {}
  for i, v in ipairs(reduce.values) do values[i] = lift(list[i], v.type) end
  return values
end

-- What a reduction over no elements gives is what one begins with.
local function is_empty(reduce)
  for _, a in ipairs(reduce.axes) do if a.extent == 0 then return true end end
  return false
end

local function identity_of(reduce)
  local types = {}
  for i, v in ipairs(reduce.values) do types[i] = v.type end
  local list = values_of(reduce, "identity", reduce.identity(table.unpack(types)))
  list.op = "identity"
  for i, v in ipairs(list) do list[i] = cast(v, types[i]) end
  return list
end

-- compute(shape, f [, name [, axes]]): f gets an index a dimension and gives an expression, or a list of them: several
-- tensors of one shape, computed together. axes: what the loops are called, in place of f's parameters.
function te.compute(shape, f, name, axes)
  name = check_name(name or fresh "T")
  check_shape(shape, name)
  if type(f) ~= "function" then fail("%s: a function of the indices is expected, not a %s", name, type(f)) end
  if axes ~= nil and not is_list(axes) then fail("%s: the axes are a list of names, not a %s", name, type(axes)) end
  local op = {name = name, shape = shape, axes = {}, outputs = {}, loads = {}}
  local vars = {}
  for i = 1, #shape do
    local given = axes and axes[i] or debug and debug.getlocal(f, i)
    op.axes[i] = {name = given and given ~= "_" and check_name(given) or "i" .. (i - 1), extent = shape[i], low = 0}
    vars[i] = expr {op = "var", name = "v_" .. op.axes[i].name, type = "int32"}
  end
  local result = f(table.unpack(vars))
  if result == nil then fail("%s: the function gives nothing", name) end
  if getmetatable(result) == nil and type(result) == "table" then
    for i, x in ipairs(result) do op.outputs[i] = lift(x) end
    if #op.outputs == 0 then fail("%s: the function gives nothing", name) end
  else
    local x = lift(result)
    if x.op == "reduce" and is_empty(x) then x = identity_of(x) end
    op.outputs = x.op == "reduce" and x.many and x.values or {x}
    if x.op == "identity" then op.outputs = x end
    if x.op == "reduce" then op.reduce = x end
  end
  local known = {}
  for _, v in ipairs(vars) do known[v] = true end
  for _, a in ipairs(op.reduce and op.reduce.axes or {}) do known[a.var] = true end
  for _, x in ipairs(op.outputs) do
    for _, y in ipairs(x == op.reduce and x.values or {x}) do check_vars(y, known, name) end
  end
  local iterations = 1.0
  for _, a in ipairs(op.axes) do iterations = iterations * a.extent end
  for _, a in ipairs(op.reduce and op.reduce.axes or {}) do iterations = iterations * a.extent end
  if iterations > MOST_ITERATIONS then fail("%s: %.3g iterations are more than can be counted", name, iterations) end
  local tensors = {}
  for i, x in ipairs(op.outputs) do
    check_size(shape, x.type, name)
    local suffix = #op.outputs > 1 and "_v" .. (i - 1) or ""
    tensors[i] = setmetatable({kind = "compute", op = op, shape = shape, type = x.type, name = name .. suffix}, Tensor)
  end
  op.tensors = tensors
  return table.unpack(tensors)
end

-- ---- TVMScript -------------------------------------------------------------------------------------------------

local function number_text(value, type)
  if type == "bool" then return value and "T.bool(True)" or "T.bool(False)" end
  if is_float(type) then
    if value ~= value then return string.format('T.%s("nan")', type) end
    if value == math.huge or value == -math.huge then
      return string.format('T.%s("%sinf")', type, value < 0 and "-" or "")
    end
    local text = string.format("%.17g", value)
    if not text:find("[.e]") then text = text .. ".0" end
    return string.format("T.%s(%s)", type, text)
  end
  return type == "int32" and tostring(value) or string.format("T.%s(%d)", type, value)
end

-- How the function that is being written calls its tensors, and the blocks of its operations.
local tensor_names, block_names = {}, {}
local function name_of(t) return tensor_names[t] end

-- The name, or as TVM makes it the first of name_1, name_2 … that is free.
local function unique(name, taken)
  local free, n = name, 0
  while taken[free] do
    n = n + 1
    free = name .. "_" .. n
  end
  taken[free] = true
  return free
end

-- The text of an expression; its loads are added to `loads`, in order.
local function text_of(x, loads)
  if x.op == "load" then loads[#loads + 1] = x end
  if x.op == "const" then return number_text(x.value, x.type) end
  if x.op == "literal" then
    return is_float(x.type) and string.format("T.%s(%s)", x.type, x.text) or x.type == "int32" and x.text
      or string.format("T.%s(%s)", x.type, x.text)
  end
  if x.op == "var" then return x.name end
  if x.op == "binary" then return "(" .. text_of(x[1], loads) .. " " .. x.text .. " " .. text_of(x[2], loads) .. ")" end
  if x.op == "not" then return "(not " .. text_of(x[1], loads) .. ")" end
  if x.name == "reinterpret" then return string.format('T.reinterpret("%s", %s)', x.type, text_of(x[1], loads)) end
  if x.op == "cast" then return string.format('T.Cast("%s", %s)', x.type, text_of(x[1], loads)) end
  if x.op == "reduce" then fail("a reduction stands alone: %s is part of a larger expression", x.name) end
  local parts = {}
  for i, y in ipairs(x) do parts[i] = text_of(y, loads) end
  if x.op == "load" then
    return #parts == 0 and name_of(x.tensor) .. "[()]"
      or string.format("%s[%s]", name_of(x.tensor), table.concat(parts, ", "))
  end
  return string.format("T.%s(%s)", x.name, table.concat(parts, ", "))
end

local function indices_text(op)
  local names = {}
  for i, a in ipairs(op.axes) do names[i] = "v_" .. a.name end
  return #names == 0 and "()" or table.concat(names, ", ")
end

local function element(t, op)
  local vars = {}
  for i, a in ipairs(op.axes) do vars[i] = expr {op = "var", name = "v_" .. a.name, type = "int32"} end
  return load(t, vars)
end

-- The block's statements: stores, or a reduction's init and update.
local function body_lines(op, put)
  local at = indices_text(op)
  op.loads = {}
  local function store(depth, t, x) put(depth, "%s[%s] = %s", name_of(t), at, text_of(x, op.loads)) end
  if not op.reduce then
    for i, x in ipairs(op.outputs) do store(3, op.tensors[i], x) end
    return
  end
  local r, types, old = op.reduce, {}, {}
  for i, x in ipairs(r.values) do types[i], old[i] = x.type, element(op.tensors[i], op) end
  local combined = r.many and r.combine(old, r.values) or r.combine(old[1], r.values[1])
  combined = values_of(r, "combine", combined)
  put(3, "with T.init():")
  for i, x in ipairs(identity_of(r)) do store(4, op.tensors[i], x) end
  if #combined == 1 then return store(3, op.tensors[1], combined[1]) end
  for i, x in ipairs(combined) do
    put(3, "v_%s: T.let[T.%s] = %s", name_of(op.tensors[i]), types[i], text_of(x, op.loads))
  end
  for i in ipairs(combined) do put(3, "%s[%s] = v_%s", name_of(op.tensors[i]), at, name_of(op.tensors[i])) end
end

local function block_lines(op, put, taken)
  local axes = {}
  for _, a in ipairs(op.axes) do axes[#axes + 1] = {axis = a, kind = "spatial"} end
  for _, a in ipairs(op.reduce and op.reduce.axes or {}) do axes[#axes + 1] = {axis = a, kind = "reduce"} end
  local names, extents, used = {}, {}, {}
  for i, a in ipairs(axes) do
    local name = a.axis.name
    while taken[name] or used[name] do name = name .. "_" end
    used[name] = true
    names[i], extents[i] = name, tostring(a.axis.extent)
  end
  local seen = {}
  for _, a in ipairs(axes) do
    if seen[a.axis.name] then fail("%s: two axes are named %s", op.name, a.axis.name) end
    seen[a.axis.name] = true
  end
  local shift = 0
  if #axes > 0 then
    put(1, "for %s in T.grid(%s):", table.concat(names, ", "), table.concat(extents, ", "))
  else
    shift = -1
  end
  local function inner(depth, ...) put(depth + shift, ...) end
  inner(2, 'with T.sblock("%s"):', block_names[op])
  for i, a in ipairs(axes) do
    local x = a.axis
    if x.low == 0 then inner(3, "v_%s = T.axis.%s(%d, %s)", x.name, a.kind, x.extent, names[i])
    else inner(3, "v_%s = T.axis.%s((%d, %d), %s + %d)", x.name, a.kind, x.low, x.low + x.extent, names[i], x.low) end
  end
  body_lines(op, inner)
end

local function visit_loads(x, visit)
  if x.op == "load" then visit(x.tensor) end
  if x.op == "reduce" then for _, v in ipairs(x.values) do visit_loads(v, visit) end end
  for _, y in ipairs(x) do visit_loads(y, visit) end
end

-- Operations that the tensors need, producers first; placeholders must be parameters.
local function operations(params)
  local order, state, is_param = {}, {}, {}
  for _, t in ipairs(params) do is_param[t] = true end
  local function add(t)
    if t.kind == "placeholder" then
      if not is_param[t] then fail("%s is read, but is no parameter of the function", t.name) end
      return
    end
    if state[t.op] then return end
    state[t.op] = true
    for _, x in ipairs(t.op.outputs) do visit_loads(x, add) end
    order[#order + 1] = t.op
  end
  for _, t in ipairs(params) do add(t) end
  return order, is_param
end

-- An index that can leave its buffer is refused here, before anything reads past it.
local function check_loads(func, order)
  local e = func:escape()
  if not e then return end
  local place = ""
  for _, op in ipairs(order) do
    if block_names[op] == e.block then
      local load_ = op.loads[e.nth]
      for _, l in ipairs(op.loads) do
        if not load_ or name_of(load_.tensor) ~= e.buffer then load_ = name_of(l.tensor) == e.buffer and l or load_ end
      end
      place = load_ and load_.place or ""
    end
  end
  fail_at(place, "%s: index %d of %s can be from %d to %d, but its extent is %d; guard the access with \z
                  te.if_then_else, or bound the index", e.block, e.dimension, e.buffer, e.low, e.high, e.extent)
end

local function tensor_text(t)
  local extents = {}
  for i, e in ipairs(t.shape) do extents[i] = tostring(e) end
  return string.format('(%s), "%s"', table.concat(extents, ", ") .. (#extents == 1 and "," or ""), t.type)
end

-- Gives every tensor and every block a name that no other has: parameters first, then what is between them. Two inputs
-- of one name are a mistake; an operator that is used twice names its tensors twice.
local function make_names(name, params, order, is_param)
  local taken, blocks, inputs, given = setmetatable({}, {__index = reserved}), {root = true}, {}, {}
  tensor_names, block_names = {}, {}
  for _, op in ipairs(order) do
    for _, a in ipairs(op.axes) do taken["v_" .. a.name] = true end
    for _, a in ipairs(op.reduce and op.reduce.axes or {}) do taken["v_" .. a.name] = true end
  end
  for _, t in ipairs(params) do
    if given[t] or (t.kind == "placeholder" and inputs[t.name]) then
      fail("%s: two parameters are named %s", name, t.name)
    end
    given[t], inputs[t.name] = true, t.kind == "placeholder" or inputs[t.name]
    tensor_names[t] = unique(t.name, taken)
    if t.op and not block_names[t.op] then block_names[t.op] = unique(t.op.name, blocks) end
  end
  for _, op in ipairs(order) do
    for _, t in ipairs(op.tensors) do if not is_param[t] then tensor_names[t] = unique(t.name, taken) end end
    block_names[op] = block_names[op] or unique(op.name, blocks)
  end
  return taken
end

-- func(name, tensors [, {weights = names}]): the function whose parameters are the tensors, in this order; weights:
-- those that are constant, and may be packed ahead.
function te.func(name, params, options)
  if reserved[check_name(name)] then fail("`%s` is a word of TVMScript, and no function's name", name) end
  options = ms.options(options, "weights:table") or {}
  if type(params) ~= "table" or #params == 0 then fail("%s: the parameters are a list of tensors", name) end
  for _, t in ipairs(params) do
    if getmetatable(t) ~= Tensor then fail("%s: a parameter is no tensor", name) end
  end
  local order, is_param = operations(params)
  local taken, lines, signature = make_names(name, params, order, is_param), {}, {}
  local function put(depth, format, ...) lines[#lines + 1] = string.rep("    ", depth) .. string.format(format, ...) end
  for i, t in ipairs(params) do signature[i] = string.format("%s: T.Buffer(%s)", name_of(t), tensor_text(t)) end
  put(0, "@T.prim_func(s_tir=True)")
  put(0, "def %s(%s):", name, table.concat(signature, ", "))
  put(1, 'T.func_attr({"tirx.noalias": True})')
  for _, op in ipairs(order) do
    for _, t in ipairs(op.tensors) do
      if not is_param[t] then put(1, "%s = T.sblock_alloc_buffer(%s)", name_of(t), tensor_text(t)) end
    end
  end
  for _, op in ipairs(order) do block_lines(op, put, taken) end
  local func = ms.from_script(table.concat(lines, "\n") .. "\n", name)
  check_loads(func, order)
  return options.weights and ms.with_weights(func, options.weights) or func
end

return te
