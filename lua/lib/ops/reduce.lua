-- Reductions over any dimensions of a tensor, counted from 1, or from the end with -1 the last; all of them for nil.
local ms = msched
local te, common = ms.te, ms.load "lua.lib.ops.common"
local ops = {}

local NAMES = {"k", "q", "r", "s"}

-- What is left of X's shape, the axes that are reduced over, and how an element of X is found by its indices.
local function split(what, X, axes, keepdims)
  common.check_tensor(what, "X", X)
  common.check_type(what, "X's type", X.type)
  local among = common.axes(what, axes, #X.shape)
  local plan = {shape = {}, axes = {}, count = 1}
  local kept = {} -- a dimension of X's: which index of the result it has
  for d, extent in ipairs(X.shape) do
    if among[d] then
      plan.axes[#plan.axes + 1] = te.reduce_axis(extent, NAMES[#plan.axes + 1] or "k" .. d)
      plan.count = plan.count * extent
      if keepdims then plan.shape[#plan.shape + 1] = 1 end
    else
      plan.shape[#plan.shape + 1] = extent
      kept[d] = #plan.shape
    end
  end
  if #plan.axes == 0 then common.fail(what, "there is no axis to reduce over") end
  function plan.element(indices)
    local at, nth = {}, 0
    for d = 1, #X.shape do
      if among[d] then nth = nth + 1 end
      at[d] = among[d] and plan.axes[nth] or indices[kept[d]]
    end
    return X[at]
  end
  return plan
end

local function options_of(what, given)
  local o = common.options(what, given, {keepdims = false, name = what})
  common.check_flags(what, o, "keepdims")
  return o
end

local function reduction(name, reduce, type_of)
  ops[name] = function(X, axes, options)
    local o = options_of(name, options)
    local plan = split(name, X, axes, o.keepdims)
    local type = type_of(X.type)
    return te.compute(plan.shape, function(...) return reduce(te.cast(plan.element {...}, type), plan.axes) end, o.name)
  end
end
local function same(type) return type end
reduction("sum", te.sum, common.sums)
reduction("prod", te.prod, common.sums)
reduction("max", te.max, same)
reduction("min", te.min, same)

-- The sums are held in float32 for short floats; the result has X's type.
function ops.mean(X, axes, options)
  local o = options_of("mean", options)
  local plan = split("mean", X, axes, o.keepdims)
  common.check_float("mean", "X", X)
  local total = ops.sum(X, axes, {keepdims = o.keepdims, name = o.name .. "_sum"})
  return te.compute(plan.shape, function(...) return te.cast(total[{...}] * (1.0 / plan.count), X.type) end, o.name)
end

-- The Euclidean norm: the square root of the sum of squares.
function ops.norm(X, axes, options)
  local o = options_of("norm", options)
  local plan = split("norm", X, axes, o.keepdims)
  common.check_float("norm", "X", X)
  local type = common.sums(X.type)
  local total = te.compute(plan.shape, function(...)
    local x = te.cast(plan.element {...}, type)
    return te.sum(x * x, plan.axes)
  end, o.name .. "_sum")
  return te.compute(plan.shape, function(...) return te.cast(te.sqrt(total[{...}]), X.type) end, o.name)
end

-- Along one dimension, the last unless it is given: the index of the extreme element, of equal ones the first, as
-- int32; and that element.
local function extreme(name, reduce)
  ops[name] = function(X, axis, options)
    local o = options_of(name, options)
    common.check_tensor(name, "X", X)
    local plan = split(name, X, common.axis(name, axis or -1, #X.shape), o.keepdims)
    return te.compute(plan.shape, function(...) return reduce({plan.axes[1], plan.element {...}}, plan.axes) end,
                      o.name)
  end
end
extreme("argmax", te.argmax)
extreme("argmin", te.argmin)

return ops
