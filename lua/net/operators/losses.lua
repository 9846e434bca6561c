-- Losses, as far as they are computed and not trained.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}
local compute, wide = common.compute, common.wide

-- What the class that is wanted of each costs: -log_probability(indices) times its weight; then none, summed, or the
-- mean.
local function loss(n, X, log_probability)
  local T, W = n:x(2), n:has(3) and n:x(3) or nil
  local classes, ignored = X.shape[2], n:has_attribute "ignore_index" and n:int "ignore_index" or nil
  local reduction, shape = n:choice("reduction", "mean", "none", "mean", "sum"),
    table.move(X.shape, 3, #X.shape, 2, {X.shape[1]})
  if #X.shape < 2 then n:fail("its input has %d dimensions", #X.shape) end
  if common.text(T.shape) ~= common.text(shape) then
    n:fail("targets of %s, not of %s", common.text(T.shape), common.text(shape))
  end
  if W and (#W.shape ~= 1 or W.shape[1] ~= classes) then
    n:fail("weights of %s for %d classes", common.text(W.shape), classes)
  end
  if classes == 0 then n:fail "there are no classes" end
  n:check_range(2, 0, classes - 1, ignored)
  local t = common.wide_type(X.type)
  local function class(i) return te.cast(te.maximum(te.minimum(T[i], classes - 1), 0), "int32") end
  local function counted(i, x)
    if not ignored then return x end
    return te.select(te.eq(T[i], te.const(ignored, T.type)), te.const(0.0, t), x)
  end
  local function weight(i) return counted(i, W and wide(W[{class(i)}]) or te.const(1.0, t)) end
  local costs = compute(shape, reduction == "none" and X.type or t, function(i)
    local x = log_probability(table.move(i, 2, #i, 3, {i[1], class(i)})) * -1.0
    return counted(i, W and x * wide(W[{class(i)}]) or x)
  end)
  if reduction == "none" then return costs end
  local all, zero = {}, {}
  for d = 1, #shape do all[d], zero[d] = true, 0 end
  local _, sum = common.over(costs, all, true, te.sum)
  if reduction == "sum" then return compute({}, X.type, function() return sum[zero] end) end
  if not W and not ignored then
    return compute({}, X.type, function() return sum[zero] / te.const(common.count(shape) + 0.0, t) end)
  end
  local _, weights = common.over(compute(shape, t, weight), all, true, te.sum)
  return compute({}, X.type, function() return sum[zero] / weights[zero] end)
end

operators.NegativeLogLikelihoodLoss = function(n)
  local X = n:x(1)
  return loss(n, X, function(i) return wide(X[i]) end)
end

operators.SoftmaxCrossEntropyLoss = function(n)
  local X, set = n:x(1), {[2] = true}
  if #X.shape < 2 then n:fail("its input has %d dimensions", #X.shape) end
  local _, sum, largest = common.exponentials(X, set)
  local log_probabilities = compute(X.shape, common.wide_type(X.type), function(i)
    local own = common.inner(set, i)
    return wide(X[i]) - largest[own] - te.log(sum[own])
  end)
  local given = n:wants(2) and compute(X.shape, X.type, function(i) return log_probabilities[i] end) or nil
  return loss(n, X, function(i) return log_probabilities[i] end), given
end

return operators
