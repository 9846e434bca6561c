-- Operators of each element alone: arithmetic, comparisons, logic, activations, casts.
local ms = msched
local te, common, element_types = ms.te, ms.load "lua.net.common", ms.load "lua.lib.element_types"
local operators = {}
local wide, is_float = common.wide, common.is_float

-- ---- Of one tensor -----------------------------------------------------------------------------------------------

local function map(n, f, type)
  local X = n:x(1)
  return common.compute(X.shape, type or X.type, function(i) return f(wide(X[i])) end)
end
local function unary(name, f)
  operators[name] = function(n)
    if not is_float(n:type(1)) then n:fail("its input is of %s; floats are expected", n:type(1)) end
    return map(n, function(x) return f(x, n) end)
  end
end
local function any_unary(name, f) operators[name] = function(n) return map(n, function(x) return f(x, n) end) end end

for onnx, own in pairs {Exp = "exp", Log = "log", Sqrt = "sqrt", Tanh = "tanh", Erf = "erf", Sin = "sin", Cos = "cos",
                        Tan = "tan", Sinh = "sinh", Cosh = "cosh", Asin = "asin", Acos = "acos", Atan = "atan",
                        Asinh = "asinh", Acosh = "acosh", Atanh = "atanh", Floor = "floor", Ceil = "ceil",
                        Round = "nearbyint"} do
  unary(onnx, te[own])
end
local function call(name, x, ...) return te.call(name, x.type, x, ...) end
local function softplus(x) return te.maximum(x, 0.0) + te.log1p(te.exp(-te.abs(x))) end
local function clamp(x, low, high) return te.select(te.lt(x, low), low, te.select(te.gt(x, high), high, x)) end
unary("Reciprocal", function(x) return 1.0 / x end)
unary("Sigmoid", te.sigmoid)
unary("Softplus", softplus)
unary("Softsign", function(x) return x / (te.abs(x) + 1.0) end)
unary("HardSigmoid", function(x, n) return clamp(x * n:float("alpha", 0.2) + n:float("beta", 0.5), 0.0, 1.0) end)
unary("HardSwish", function(x) return x * clamp(x * (1 / 6) + 0.5, 0.0, 1.0) end)
unary("Swish", function(x, n) return x * te.sigmoid(x * n:float("alpha", 1.0)) end)
unary("Mish", function(x) return x * te.tanh(softplus(x)) end)
unary("Elu", function(x, n) return te.select(te.lt(x, 0.0), (te.exp(x) - 1.0) * n:float("alpha", 1.0), x) end)
unary("Celu", function(x, n)
  local alpha = n:float("alpha", 1.0)
  return te.maximum(x, 0.0) + te.minimum((te.exp(x / alpha) - 1.0) * alpha, 0.0)
end)
unary("Selu", function(x, n)
  local alpha, gamma = n:float("alpha", 1.67326319217681884765625), n:float("gamma", 1.05070102214813232421875)
  return te.select(te.gt(x, 0.0), x, (te.exp(x) - 1.0) * alpha) * gamma
end)
unary("LeakyRelu", function(x, n) return te.select(te.lt(x, 0.0), x * n:float("alpha", 0.01), x) end)
unary("ThresholdedRelu", function(x, n) return te.select(te.gt(x, n:float("alpha", 1.0)), x, te.const(0.0, x.type)) end)
function common.gelu(x) return x * 0.5 * (te.erf(x * math.sqrt(0.5)) + 1.0) end
function common.fast_gelu(x)
  return x * 0.5 * (te.tanh((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)) + 1.0)
end
common.softplus = softplus
unary("Gelu", function(x, n)
  return (n:text("approximate", "none") == "tanh" and common.fast_gelu or common.gelu)(x)
end)
-- Of versions before 10.
unary("Affine", function(x, n) return x * n:float("alpha", 1.0) + n:float("beta", 0.0) end)
unary("Scale", function(x, n) return x * n:float("scale", 1.0) end)
unary("ScaledTanh", function(x, n) return te.tanh(x * n:float "beta") * n:float "alpha" end)
unary("ParametricSoftplus", function(x, n) return softplus(x * n:float "beta") * n:float "alpha" end)
operators.ImageScaler = function(n)
  local X, scale, bias = n:x(1), n:float("scale", 1.0), n:floats "bias"
  if #X.shape ~= 4 or #bias ~= X.shape[2] then n:fail("a bias of %d for %s", #bias, common.text(X.shape)) end
  local B = n:table(ms.array({#bias}, "float32", bias))
  return common.compute(X.shape, X.type, function(i) return wide(X[i]) * scale + B[{i[2]}] end)
end
any_unary("Shrink", function(x, n)
  local bias, lambd = n:float("bias", 0.0), n:float("lambd", 0.5)
  if not is_float(x.type) then bias = math.tointeger(bias) or n:fail("bias %g does not fit %s", bias, x.type) end
  local y = is_float(x.type) and x or te.cast(x, "float64")
  return te.select(te.lt(y, -lambd), x + bias,
                   te.select(te.gt(y, lambd), x - bias, te.const(is_float(x.type) and 0.0 or 0, x.type)))
end)
any_unary("Relu", function(x) return te.select(te.lt(x, 0), te.const(is_float(x.type) and 0.0 or 0, x.type), x) end)
any_unary("Neg", function(x) return is_float(x.type) and x * -1.0 or -x end)
any_unary("Abs", function(x) return common.is_unsigned(x.type) and x or te.abs(x) end)
any_unary("Sign", function(x)
  local one = is_float(x.type) and 1.0 or 1
  local below = common.is_unsigned(x.type) and x or te.select(te.lt(x, 0), te.const(-one, x.type), x)
  return te.select(te.gt(x, 0), te.const(one, x.type), below)
end)
any_unary("Identity", function(x) return x end)
operators.Identity = function(n) return common.copy(n:x(1)) end
operators.Not = function(n)
  local X = n:x(1)
  return common.compute(X.shape, "bool", function(i) return te.not_(X[i]) end)
end
operators.BitwiseNot = function(n)
  local X = n:x(1)
  return common.compute(X.shape, X.type, function(i) return call("bitwise_not", X[i]) end)
end
operators.IsNaN = function(n) return map(n, function(x) return te.ne(x, x) end, "bool") end
operators.IsInf = function(n)
  if not is_float(n:type(1)) then n:fail("its input is of %s; floats are expected", n:type(1)) end
  local above, below = n:flag("detect_positive", 1), n:flag("detect_negative", 1)
  return map(n, function(x)
    local is = {}
    if above then is[1] = te.eq(x, te.const(math.huge, x.type)) end
    if below then is[#is + 1] = te.eq(x, te.const(-math.huge, x.type)) end
    return #is == 0 and te.const(false, "bool") or te.any(table.unpack(is))
  end, "bool")
end

-- ---- Casts -------------------------------------------------------------------------------------------------------

local function cast(x, t)
  if t == "bool" then return x.type == "bool" and x or te.ne(x, is_float(x.type) and 0.0 or 0) end
  if x.type == "bool" then return te.cast(te.cast(x, "int32"), t) end
  if t == "bfloat16" and x.type ~= "float32" then x = te.cast(x, "float32") end
  if t == "float16" and is_float(x.type) and x.type ~= "float32" then x = te.cast(x, "float32") end
  if common.is_half(x.type) and t ~= "float32" then x = te.cast(x, "float32") end
  return te.cast(x, t)
end
common.cast = cast

-- What is too large for a float of 8 bits is its largest number, or, where that is not asked for, NaN or infinity. Of
-- each: the least that rounds to more than the largest, whether that itself does, and what it becomes.
local BEYOND = {float8_e4m3fn = {464.0, false, 0 / 0}, float8_e5m2 = {61440.0, true, math.huge}}
local function unsaturated(x, t)
  local limit, included, becomes = table.unpack(BEYOND[t])
  local number = x.type == "float64" and x or te.cast(x, "float32") -- rounded once
  local above = included and te.ge or te.gt
  local function of(sign) return te.const(sign * becomes, t) end
  return te.select(above(number, limit), of(1), te.select(above(-number, limit), of(-1), cast(x, t)))
end
function common.to_byte(n, x, t)
  return n:flag("saturate", 1) and cast(x, t) or unsaturated(x, t)
end

local function cast_to(n, t)
  local X = n:x(1)
  local bytes = common.is_byte(t) and X.type ~= t and X.type ~= "bool"
  return common.compute(X.shape, t, function(i) return bytes and common.to_byte(n, X[i], t) or cast(X[i], t) end)
end
operators.Cast = function(n) return cast_to(n, n:type_of(n:int "to")) end
operators.CastLike = function(n) return cast_to(n, n:type(2)) end

-- The same bits as another type of as many.
operators.BitCast = function(n)
  local X, t = n:x(1), n:type_of(n:int "to")
  local own, wanted = element_types.of[X.type], element_types.of[t]
  if own.bits ~= wanted.bits then n:fail("%s has more or fewer bits than %s", t, X.type) end
  return common.compute(X.shape, t, function(i)
    if t == X.type then return X[i] end
    if t == "bool" or X.type == "bool" then return cast(X[i], t) end
    return te.call("reinterpret", t, X[i])
  end)
end

-- ---- Of several tensors, broadcast -------------------------------------------------------------------------------

local function same_types(n, first)
  for i = first or 1, n:count() do
    if n:has(i) and n:type(i) ~= n:type(first or 1) then
      n:fail("its inputs are of %s and %s", n:type(first or 1), n:type(i))
    end
  end
end

-- f of the elements of all inputs; one that is alone is copied. halves: of what halves of them give, since f has its
-- operands several times.
local function broadcast(n, f, t, halves)
  local shapes, tensors = {}, {}
  for i = 1, n:count() do shapes[i], tensors[i] = n:shape(i), n:x(i) end
  local shape = common.broadcast(n, shapes)
  return common.compute(shape, t or n:type(1), function(indices)
    local function joined(first, last)
      local x = wide(common.at(tensors[last], indices))
      if first == last then return x end
      local middle = halves and (first + last) // 2 or last - 1
      return f(joined(first, middle), middle + 1 < last and joined(middle + 1, last) or x, n)
    end
    return joined(1, #tensors)
  end)
end
local function binary(name, f, t, least, halves)
  operators[name] = function(n)
    if n:count() < (least or 2) then n:fail("it has %d inputs", n:count()) end
    if not least and n:count() ~= 2 then n:fail("it has %d inputs, not 2", n:count()) end
    same_types(n)
    return broadcast(n, f, t, halves)
  end
end

-- Integers are divided towards 0; by 0, which has no result, the dividend is kept, since the machine would stop. The
-- least by -1 wraps (tir/lower/legalize.c).
local function divide(x, y)
  if is_float(x.type) then return x / y end
  local by = te.select(te.eq(y, 0), te.const(1, y.type), y)
  if common.is_unsigned(x.type) then return x // by end
  return te.call("truncdiv", x.type, x, by)
end
local function remainder(x, y, n)
  if is_float(x.type) then
    if n:int("fmod", 0) == 0 and n.opset < 28 then n:fail("of floats it is with fmod = 1") end
    local r = call("fmod", x, y)
    if n:int("fmod", 0) == 1 then return r end
    return te.select(te.all(te.ne(r, 0.0), te.ne(te.lt(r, 0.0), te.lt(y, 0.0))), r + y, r)
  end
  local by = te.select(te.eq(y, 0), te.const(1, y.type), y)
  if common.is_unsigned(x.type) then return x % by end
  return n:int("fmod", 0) == 1 and te.call("truncmod", x.type, x, by) or x % by
end
local function larger(x, y)
  return te.select(is_float(x.type) and te.any(te.lt(x, y), te.ne(y, y)) or te.lt(x, y), y, x)
end
local function smaller(x, y)
  return te.select(is_float(x.type) and te.any(te.gt(x, y), te.ne(y, y)) or te.gt(x, y), y, x)
end

binary("Add", function(x, y) return x + y end)
binary("Sub", function(x, y) return x - y end)
binary("Mul", function(x, y) return x * y end)
binary("Div", divide)
binary("Mod", remainder)
binary("Max", larger, nil, 1, true)
binary("Min", smaller, nil, 1, true)
binary("Sum", function(x, y) return x + y end, nil, 1)
binary("PRelu", function(x, y) return te.select(te.lt(x, 0), x * y, x) end)
for onnx, own in pairs {Less = "lt", LessOrEqual = "le", Greater = "gt", GreaterOrEqual = "ge", Equal = "eq"} do
  binary(onnx, function(x, y)
    if x.type == "bool" then x, y = te.cast(x, "int32"), te.cast(y, "int32") end
    return te[own](x, y)
  end, "bool")
end
binary("And", function(x, y) return te.all(x, y) end, "bool")
binary("Or", function(x, y) return te.any(x, y) end, "bool")
binary("Xor", function(x, y) return te.ne(te.cast(x, "int32"), te.cast(y, "int32")) end, "bool")
for onnx, own in pairs {BitwiseAnd = "bitwise_and", BitwiseOr = "bitwise_or", BitwiseXor = "bitwise_xor"} do
  binary(onnx, function(x, y) return call(own, x, y) end)
end
-- A shift by as many bits as there are, or more, leaves nothing; of what has a sign, to the right, the sign.
binary("BitShift", function(x, y, n)
  local bits, direction = tonumber(x.type:match "%d+"), n:text "direction"
  if direction ~= "LEFT" and direction ~= "RIGHT" then
    n:fail("direction is `%s`, neither LEFT nor RIGHT", direction)
  end
  local beyond = common.is_unsigned(x.type) and te.ge(y, bits) or te.any(te.lt(y, 0), te.ge(y, bits))
  local by = te.select(beyond, te.const(bits - 1, y.type), y)
  if direction == "RIGHT" and not common.is_unsigned(x.type) then return call("shift_right", x, by) end
  return te.select(beyond, te.const(0, x.type), call(direction == "LEFT" and "shift_left" or "shift_right", x, by))
end)
operators.Mean = function(n)
  local sum = operators.Sum(n)
  return common.compute(sum.shape, sum.type, function(i) return wide(sum[i]) * (1 / n:count()) end)
end

operators.SwiGLU = function(n)
  local A, B, alpha = n:x(1), n:x(2), n:float("alpha", 1.0)
  same_types(n)
  if not is_float(A.type) then n:fail("its input is of %s; floats are expected", A.type) end
  if common.text(A.shape) ~= common.text(B.shape) then
    n:fail("%s beside %s", common.text(A.shape), common.text(B.shape))
  end
  return common.compute(A.shape, A.type,
                        function(i) return wide(A[i]) * te.sigmoid(wide(A[i]) * alpha) * wide(B[i]) end)
end

-- Powers by a constant that are a few operations.
local POWERS = {[0.5] = te.sqrt, [1] = function(x) return x end, [2] = function(x) return x * x end,
                [3] = function(x) return x * x * x end, [-1] = function(x) return 1.0 / x end}
operators.Pow = function(n)
  local exponent = n:value(2).array
  local power = exponent and #exponent == 1 and is_float(n:type(1)) and POWERS[exponent:tolist()[1]]
  if power and common.count(n:shape(2)) == 1 and #n:shape(2) <= #n:shape(1) then return map(n, power) end
  local X, Y = n:x(1), n:x(2)
  return common.compute(common.broadcast(n, {X.shape, Y.shape}), X.type, function(i)
    local x, y = wide(common.at(X, i)), wide(common.at(Y, i))
    if is_float(x.type) then
      local double = x.type == "float64" or y.type == "float64"
      local t = double and "float64" or "float32"
      return cast(te.pow(cast(x, t), cast(y, t)), common.wide_type(X.type))
    end

    return cast(te.pow(te.cast(x, "float64"), te.cast(y, "float64")), X.type)
  end)
end

operators.Where = function(n)
  local C, X, Y = n:x(1), n:x(2), n:x(3)
  same_types(n, 2)
  return common.compute(common.broadcast(n, {C.shape, X.shape, Y.shape}), X.type, function(i)
    if X.type == "bool" then
      return te.any(te.all(common.at(C, i), common.at(X, i)), te.all(te.not_(common.at(C, i)), common.at(Y, i)))
    end
    return te.select(common.at(C, i), common.at(X, i), common.at(Y, i))
  end)
end

-- Bounds are attributes before version 11; what is above is asked last, as ONNX has it where they cross.
operators.Clip = function(n)
  local X, bounds = n:x(1), {}
  if n.opset < 11 and not is_float(X.type) then
    n:fail("its input is of %s; floats are expected before version 11", X.type)
  end
  for i, name in ipairs {"min", "max"} do
    if n.opset >= 11 then
      if n:has(i + 1) then
        local B = n:x(i + 1)
        if common.count(B.shape) ~= 1 then n:fail("%s has %d elements, not 1", name, common.count(B.shape)) end
        bounds[i] = function() return wide(B[common.unfold(0, B.shape)]) end
      end
    elseif n:has_attribute(name) then
      local bound = n:float(name)
      bounds[i] = function() return te.const(bound, common.wide_type(X.type)) end
    end
  end
  return common.compute(X.shape, X.type, function(i)
    local x = wide(X[i])
    if bounds[1] then x = te.select(te.lt(x, bounds[1]()), bounds[1](), x) end
    if bounds[2] then x = te.select(te.gt(x, bounds[2]()), bounds[2](), x) end
    return x
  end)
end

-- Nothing is left out where nothing is trained.
operators.Dropout = function(n)
  if n:has(3) and n:scalar(3) ~= 0 and not (n:has(2) and n:scalar(2) == 0) then
    n:fail("it drops at random: training is not run")
  end
  local X = n:x(1)
  local t = n.opset < 10 and X.type or "bool"
  return common.copy(X), common.compute(X.shape, t, function() return te.const(t == "bool" and true or 1, t) end)
end

return operators
