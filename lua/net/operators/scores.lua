-- What operators of ai.onnx.ml share: rows of features, tables, and scores of classes with their labels.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
ms.load "lua.net.operators.reductions" -- for common.exponentials and common.over
local compute, reduce, wide = common.compute, common.reduce, common.wide
local scores = {}

scores.MOST = 1 << 24 -- elements of a table
function scores.table_of(n, t, list, shape)
  if #list > scores.MOST then n:fail("a table of %d elements is larger than is made", #list) end
  return n:table(ms.array(shape or {#list}, t, list))
end
function scores.number(x, t)
  if x.type == "bool" then x = te.cast(x, "int32") end
  return te.cast(wide(x), t)
end
function scores.float32(x) return scores.number(x, "float32") end
-- {rows, features}: one row where there is one dimension.
function scores.rows(n, X)
  local s = X.shape
  if #s ~= 1 and #s ~= 2 then n:fail("its input has %d dimensions, not 1 or 2", #s) end
  local shape = #s == 1 and {1, s[1]} or s
  return shape, function(r, c) return X[#s == 1 and {c} or {r, c}] end
end

function scores.logistic(x) return te.sigmoid(x) end
-- Scores {rows, classes} behind a transform by its name, the attribute's unless given.
function scores.transformed(n, Y, how)
  how = how or n:choice("post_transform", "NONE", "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
  if how == "NONE" then return Y end
  if how == "LOGISTIC" then return compute(Y.shape, Y.type, function(i) return scores.logistic(Y[i]) end) end
  local set = {[2] = true}
  if how == "SOFTMAX" then
    local e, sum = common.exponentials(Y, set)
    return compute(Y.shape, Y.type, function(i) return e[i] / sum[common.inner(set, i)] end)
  end
  -- Scores of 0 stay 0, and count for nothing.
  local _, largest = common.over(Y, set, true, common.maximum)
  local e = compute(Y.shape, Y.type, function(i)
    return te.select(te.gt(te.abs(Y[i]), 1e-7), te.exp(Y[i] - largest[common.inner(set, i)]), te.const(0.0, Y.type))
  end)
  local _, sum = common.over(e, set, true, te.sum)
  return compute(Y.shape, Y.type, function(i)
    local s = sum[common.inner(set, i)]
    return te.select(te.eq(s, 0.0), te.const(0.0, Y.type), e[i] / s)
  end)
end

-- Numbers of classes.
function scores.labels_of(n, name)
  local list = n:ints(name, {})
  if #list == 0 then n:fail("its classes are texts: %s has none", name) end
  return list
end
-- The label of each row's largest score, the first of equal ones. hits: {rows, classes}, above 0 where a class has a
-- score at all; nil: all have.
function scores.largest_label(n, Y, labels, hits)
  local T = scores.table_of(n, "int64", labels)
  local pick = te.reducer(function(x, y)
    local keeps = te.any(te.gt(x[2], y[2]), te.all(te.eq(x[2], y[2]), te.lt(x[1], y[1])))
    return {te.select(keeps, x[1], y[1]), te.select(keeps, x[2], y[2])}
  end, function() return {te.max_value "int32", te.const(-math.huge, "float32")} end, "label")
  local index = reduce({Y.shape[1]}, {Y.shape[2]}, pick, function(i, r)
    local y = Y[{i[1], r[1]}]
    return {r[1] + 0, hits and te.select(te.gt(hits[{i[1], r[1]}], 0), y, te.const(-math.huge, "float32")) or y}
  end)
  return compute({Y.shape[1]}, "int64",
                 function(i) return T[{te.maximum(te.minimum(index[i], #labels - 1), 0)}] end)
end
-- The labels and scores of two classes, by the score of one: above `edge` it is the second.
function scores.of_two(n, S, labels, edge, first, second)
  local label = compute({S.shape[1]}, "int64", function(i)
    return te.select(te.gt(S[{i[1]}], edge), te.const(labels[2], "int64"), te.const(labels[1], "int64"))
  end)
  return label, compute({S.shape[1], 2}, "float32", function(i)
    local s = S[{i[1]}]
    return te.select(te.eq(i[2], 0), first(s), second(s))
  end)
end

return scores
