-- Operators that work on each element alone, of one tensor or of several that are broadcast.
local ms = msched
local te, common = ms.te, ms.load "lua.lib.ops.common"
local ops = {}

-- f of each element, and of its indices.
function ops.map(X, f, name)
  common.check_tensor("map", "X", X)
  if type(f) ~= "function" then common.fail("map", "a function of an element is expected, not a %s", type(f)) end
  return te.compute(X.shape, function(...) return f(X(...), ...) end, name or "map")
end

local function unary(what, f, floats)
  ops[what] = function(X, name)
    common.check_tensor(what, "X", X)
    if floats then common.check_float(what, "X", X) end
    return ops.map(X, f, name or what)
  end
end
for _, name in ipairs {"exp", "log", "sqrt", "rsqrt", "erf", "tanh", "sigmoid", "floor", "ceil", "round"} do
  unary(name, te[name], true)
end
unary("abs", te.abs)
unary("negative", function(x) return -x end)
unary("relu", function(x) return te.maximum(x, 0) end)
unary("silu", function(x) return x * te.sigmoid(x) end, true)
-- Hendrycks and Gimpel, "Gaussian Error Linear Units", by erf.
unary("gelu", function(x) return x * 0.5 * (te.erf(x * math.sqrt(0.5)) + 1.0) end, true)

-- x, or x times alpha where that is below 0.
function ops.leaky_relu(X, alpha, name)
  common.check_tensor("leaky_relu", "X", X)
  common.check_float("leaky_relu", "X", X)
  return ops.map(X, function(x) return te.select(te.gt(x, 0), x, x * (alpha or 0.01)) end, name or "leaky_relu")
end

function ops.cast(X, type, name)
  common.check_tensor("cast", "X", X)
  if type ~= "bool" then common.check_type("cast", "type", type) end
  return ops.map(X, function(x) return te.cast(x, type) end, name or "cast")
end

-- ---- Of two tensors --------------------------------------------------------------------------------------------

-- The shape that two have in common, aligned at their ends: of each extent the two are equal, or one is 1 (or absent).
local function broadcast_shape(what, a, b)
  local rank, shape = math.max(#a, #b), {}
  for d = 1, rank do
    local x, y = a[d - rank + #a] or 1, b[d - rank + #b] or 1
    if x ~= y and x ~= 1 and y ~= 1 then
      common.fail(what, "shapes %s and %s differ in extents %d and %d, and neither is 1", table.concat(a, "x"),
                  table.concat(b, "x"), x, y)
    end
    shape[d] = x == 1 and y or x
  end
  return shape
end

local function binary(what, f)
  ops[what] = function(A, B, name)
    common.check_tensor(what, "A", A)
    if type(B) == "number" then return ops.map(A, function(x) return f(x, B) end, name or what) end
    common.check_tensor(what, "B", B)
    return te.compute(broadcast_shape(what, A.shape, B.shape), function(...)
      local indices = {...}
      return f(common.broadcast_element(A, indices), common.broadcast_element(B, indices))
    end, name or what)
  end
end
binary("add", function(a, b) return a + b end)
binary("subtract", function(a, b) return a - b end)
binary("multiply", function(a, b) return a * b end)
binary("divide", function(a, b) return a / b end)
binary("maximum", te.maximum)
binary("minimum", te.minimum)
binary("power", te.pow)

function ops.broadcast_to(X, shape, name)
  common.check_tensor("broadcast_to", "X", X)
  if not common.is_list(shape) then
    local given = te.is_tensor(shape) and "tensor" or type(shape) == "table" and "table that is none" or type(shape)
    common.fail("broadcast_to", "a list of extents is expected, not a %s", given)
  end
  for d, extent in ipairs(shape) do common.check_integer("broadcast_to", "extent " .. d, extent, 0) end
  local all = broadcast_shape("broadcast_to", X.shape, shape)
  for d, extent in ipairs(all) do
    if extent ~= shape[d] then
      common.fail("broadcast_to", "%s cannot become %s", table.concat(X.shape, "x"), table.concat(shape, "x"))
    end
  end
  return te.compute(shape, function(...) return common.broadcast_element(X, {...}) end, name or "broadcast")
end

-- ---- Along one dimension ---------------------------------------------------------------------------------------

-- The dimension of X that a tensor of one dimension goes along, the last unless it is given.
local function along(what, X, axis, names, ...)
  common.check_tensor(what, "X", X)
  local a, i = common.axis(what, axis or -1, #X.shape), 0
  for name in names:gmatch "%a+" do
    i = i + 1
    common.check_shape(what, name, (select(i, ...)), {X.shape[a]})
  end
  return a
end

function ops.bias_add(X, bias, name, axis)
  local a = along("bias_add", X, axis, "bias", bias)
  return ops.map(X, function(x, ...) return x + bias[{(select(a, ...))}] end, name or "bias_add")
end

function ops.scale_shift(X, scale, shift, name, axis)
  local a = along("scale_shift", X, axis, "scale shift", scale, shift)
  return ops.map(X, function(x, ...)
    local c = select(a, ...)
    return x * scale[{c}] + shift[{c}]
  end, name or "scale_shift")
end

-- Ioffe and Szegedy, "Batch Normalization", section 3.1: with the mean and variance of the training.
function ops.batch_norm(X, gamma, beta, mean, variance, options)
  local what = "batch_norm"
  local o = common.options(what, options, {axis = -1, epsilon = 1e-5, name = what})
  local a = along(what, X, o.axis, "gamma beta mean variance", gamma, beta, mean, variance)
  common.check_float(what, "X", X)
  return ops.map(X, function(x, ...)
    local c = select(a, ...)
    return (x - mean[{c}]) * (gamma[{c}] * te.rsqrt(variance[{c}] + o.epsilon)) + beta[{c}]
  end, o.name)
end

return ops
