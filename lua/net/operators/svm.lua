-- Support vectors of ai.onnx.ml. What a pair of classes says of a row is a product of kernels with coefficients; a pair
-- votes for one of them. Probabilities of classes come of those of pairs. Source: Wu, Lin and Weng, "Probability
-- Estimates for Multi-class Classification by Pairwise Coupling", JMLR 5, 2004, second approach.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local scores = ms.load "lua.net.operators.scores"
local operators = {}
local compute, reduce = common.compute, common.reduce
local function ml(name, f) operators["ai.onnx.ml." .. name] = f end

-- ---- Kernels -----------------------------------------------------------------------------------------------------

local function kernel_of(n, dot)
  local how = n:choice("kernel_type", "LINEAR", "LINEAR", "POLY", "RBF", "SIGMOID")
  local params = n:floats("kernel_params", {})
  if #params ~= 0 and #params ~= 3 then n:fail("%d kernel_params, not gamma, coef0 and degree", #params) end
  local gamma, shift, degree = params[1] or 0.0, params[2] or 0.0, params[3] or 0.0
  if how == "LINEAR" then return dot end
  return compute(dot.shape, "float32", function(i)
    local x = dot[i] * gamma
    if how == "RBF" then return te.exp(x * -1.0) end
    x = x + shift
    if how == "SIGMOID" then return te.tanh(x) end
    if degree == 2 then return x * x elseif degree == 3 then return x * x * x end
    return te.pow(x, te.const(degree, "float32"))
  end)
end

-- {rows, vectors}: sums over the features of what is in common with each vector, a list of numbers.
local function dots(n, vectors, list, squared)
  local shape, at = scores.rows(n, n:x(1))
  if vectors < 1 or #list ~= vectors * shape[2] then
    n:fail("%d numbers for %d vectors of %d features", #list, vectors, shape[2])
  end
  local V = scores.table_of(n, "float32", list, {vectors, shape[2]})
  return reduce({shape[1], vectors}, {shape[2]}, te.sum, function(i, r)
    local x, v = scores.float32(at(i[1], r[1])), V[{i[2], r[1]}]
    return squared and (x - v) * (x - v) or x * v
  end)
end
-- The kernel of each row with each support vector.
local function kernels(n, vectors)
  return kernel_of(n, dots(n, vectors, n:floats "support_vectors", n:text("kernel_type", "LINEAR") == "RBF"))
end

-- A product with constant weights {results, inputs}, and what is added.
local function product(n, X, weights, results, added)
  local W, B = scores.table_of(n, "float32", weights, {results, X.shape[2]}), scores.table_of(n, "float32", added)
  local sum = reduce({X.shape[1], results}, {X.shape[2]}, te.sum,
                     function(i, r) return X[{i[1], r[1]}] * W[{i[2], r[1]}] end)
  return compute(sum.shape, "float32", function(i) return sum[i] + B[{i[2]}] end)
end
local function plus(X, x) return compute(X.shape, "float32", function(i) return X[i] + x end) end

-- ---- A number ----------------------------------------------------------------------------------------------------

ml("SVMRegressor", function(n)
  local vectors, list, rho = n:int("n_supports", 0), n:floats "coefficients", n:floats "rho"
  if #rho < 1 then n:fail "rho has no numbers" end
  if vectors > 0 and #list ~= vectors then n:fail("%d coefficients for %d vectors", #list, vectors) end
  local Y = vectors > 0 and product(n, kernels(n, vectors), list, 1, {rho[1]}) or plus(dots(n, 1, list), rho[1])
  if not n:flag("one_class", 0) then return Y end
  return compute(Y.shape, "float32", function(i)
    return te.select(te.gt(Y[i], 0.0), te.const(1.0, "float32"), te.const(-1.0, "float32"))
  end)
end)

-- ---- Classes -----------------------------------------------------------------------------------------------------

local MOST_CLASSES = 64

-- The pairs of classes, in order: {{first, second}}, from 1.
local function pairs_of(classes)
  local list = {}
  for a = 1, classes - 1 do
    for b = a + 1, classes do list[#list + 1] = {a, b} end
  end
  return list
end

-- {rows, pairs}: above 0 where the first class of a pair wins.
local function contests(n, classes, list)
  local own, vectors, first = n:ints "vectors_per_class", 0, {}
  if #own ~= classes then n:fail("%d numbers of vectors for %d classes", #own, classes) end
  for c, count in ipairs(own) do
    if count < 0 or count > #n:floats "coefficients" then n:fail("class %d has %d vectors", c - 1, count) end
    first[c], vectors = vectors, vectors + count
  end
  local C, rho, weights = n:floats "coefficients", n:floats "rho", {}
  if #C < (classes - 1) * vectors or #rho < #list then
    n:fail("%d coefficients and %d numbers of rho for %d classes of %d vectors", #C, #rho, classes, vectors)
  end
  for p, pair in ipairs(list) do
    local a, b = pair[1], pair[2]
    for v = 1, vectors do weights[(p - 1) * vectors + v] = 0.0 end
    for v = first[a] + 1, first[a] + own[a] do weights[(p - 1) * vectors + v] = C[(b - 2) * vectors + v] end
    for v = first[b] + 1, first[b] + own[b] do weights[(p - 1) * vectors + v] = C[(a - 1) * vectors + v] end
  end
  return product(n, kernels(n, vectors), weights, #list, table.move(rho, 1, #list, 1, {}))
end

-- The first and the second class of each pair, as tables.
local function classes_of_pairs(n, list)
  local a, b = {}, {}
  for p, pair in ipairs(list) do a[p], b[p] = pair[1] - 1, pair[2] - 1 end
  return scores.table_of(n, "int32", a), scores.table_of(n, "int32", b)
end
-- The label that most pairs vote for, the first of equal ones.
local function voted(n, S, classes, list, labels)
  local first, second = classes_of_pairs(n, list)
  local votes = reduce({S.shape[1], classes}, {#list}, te.sum, function(i, r)
    local winner = te.select(te.gt(S[{i[1], r[1]}], 0.0), first[{r[1]}], second[{r[1]}])
    return te.select(te.eq(winner, i[2]), te.const(1.0, "float32"), te.const(0.0, "float32"))
  end)
  return scores.largest_label(n, votes, labels)
end

-- {rows, classes, classes}: the probability of the first where it is one of the two.
local function pair_probabilities(n, S, classes, list)
  local A, B = n:floats "prob_a", n:floats("prob_b", {})
  if #A < #list or #B < #list then n:fail("%d and %d numbers of probabilities for %d pairs", #A, #B, #list) end
  local a, b, place = scores.table_of(n, "float32", A), scores.table_of(n, "float32", B), {}
  for k = 1, classes * classes do place[k] = 0 end
  for p, pair in ipairs(list) do
    place[(pair[1] - 1) * classes + pair[2]], place[(pair[2] - 1) * classes + pair[1]] = p - 1, p - 1
  end
  local P = scores.table_of(n, "int32", place, {classes, classes})
  return compute({S.shape[1], classes, classes}, "float32", function(i)
    local p = te.maximum(te.minimum(P[{i[2], i[3]}], #list - 1), 0)
    local x = te.sigmoid((S[{i[1], p}] * a[{p}] + b[{p}]) * -1.0)
    x = te.minimum(te.maximum(x, 1e-7), 1.0 - 1e-7)
    return te.select(te.lt(i[2], i[3]), x, 1.0 - x)
  end)
end

-- A support vector machine of classes: the labels, and what pairs give, or probabilities of pairs where it has those.
operators["msched.SVMPairs"] = function(n)
  local labels = scores.labels_of(n, "classlabels_ints")
  local list = pairs_of(#labels)
  local S = contests(n, #labels, list)
  return voted(n, S, #labels, list, labels), pair_probabilities(n, S, #labels, list)
end

-- One sweep over the classes of the iteration of section 4.2 there, and nothing where it has converged.
operators["msched.SVMSweep"] = function(n)
  local R, P = n:x(1), n:x(2)
  local many, classes = table.unpack(P.shape)
  local Q = reduce({many, classes, classes}, {classes}, te.sum, function(i, r)
    local other = te.select(te.ne(r[1], i[2]), R[{i[1], r[1], i[2]}], te.const(0.0, "float32"))
    local both = te.select(te.eq(r[1], 0), R[{i[1], i[3], i[2]}] * R[{i[1], i[2], i[3]}] * -1.0,
                           te.const(0.0, "float32"))
    return te.select(te.eq(i[2], i[3]), other * other, both)
  end)
  local slope = reduce({many, classes}, {classes}, te.sum,
                       function(i, r) return Q[{i[1], i[2], r[1]}] * P[{i[1], r[1]}] end)
  local whole = reduce({many}, {classes}, te.sum, function(i, r) return P[{i[1], r[1]}] * slope[{i[1], r[1]}] end)
  local off = reduce({many}, {classes}, common.maximum,
                     function(i, r) return te.abs(slope[{i[1], r[1]}] - whole[{i[1]}]) end)
  local p = P
  for t = 0, classes - 1 do
    local at, before, slopes, sum = te.const(t, "int32"), p, slope, whole
    -- A sum, though of one: it is kept, where what others read once would be computed again for each.
    local step = reduce({many}, {classes}, te.sum, function(i, r)
      local own = (sum[{i[1]}] - slopes[{i[1], r[1]}]) / Q[{i[1], r[1], r[1]}]
      return te.select(te.eq(r[1], t), own, te.const(0.0, "float32"))
    end)
    local function scale(i) return step[{i[1]}] + 1.0 end
    p = compute(P.shape, "float32", function(i)
      return (before[i] + te.select(te.eq(i[2], t), step[{i[1]}], te.const(0.0, "float32"))) / scale(i)
    end)
    whole = compute({many}, "float32", function(i)
      local d = step[i]
      return (sum[i] + d * (d * Q[{i[1], at, at}] + slopes[{i[1], at}] * 2.0)) / scale(i) / scale(i)
    end)
    slope = compute(P.shape, "float32", function(i)
      return (slopes[i] + step[{i[1]}] * Q[{i[1], at, i[2]}]) / scale(i)
    end)
  end
  return compute(P.shape, "float32", function(i)
    return te.select(te.lt(off[{i[1]}], 0.005 / classes), P[i], p[i])
  end)
end

operators["msched.Scores"] = function(n) return scores.transformed(n, common.copy(n:x(1))) end

local MOST_LIKELY = 16 -- classes: a sweep is unrolled
local MOST_SWEEPS = 100 -- as libsvm has it; two classes are done after one

-- Probabilities, in several nodes.
local function with_probabilities(n, labels)
  if #labels > MOST_LIKELY then n:fail("probabilities of %d classes; at most %d have them", #labels, MOST_LIKELY) end
  local attributes = {}
  for key, x in pairs(n.node.attributes) do attributes[key] = x end
  local label, pair_values = n:add("SVMPairs", {n.node.inputs[1]}, attributes, 2, "msched")
  local shape = n.values[pair_values].shape
  local values = n:constant(ms.array({shape[1], #labels}, "float32", 1 / #labels))
  for _ = 1, #labels == 2 and 2 or MOST_SWEEPS do
    values = n:add("SVMSweep", {pair_values, values}, {}, 1, "msched")
  end
  return n:gives {label, (n:add("Scores", {values}, {post_transform = n:text("post_transform", "NONE")}, 1, "msched"))}
end

-- The labels of a linear machine of classes, by onnxruntime's rule where there are two.
local function linear_label(n, Y, labels)
  local largest = scores.largest_label(n, Y, labels)
  if #labels ~= 2 or #n:floats("prob_a", {}) > 0 then return largest end
  local positive = true
  for _, c in ipairs(n:floats "coefficients") do positive = positive and c >= 0 end
  return compute(largest.shape, "int64", function(i)
    local top = te.maximum(Y[{i[1], te.const(0, "int32")}], Y[{i[1], te.const(1, "int32")}])
    local second = positive and te.ge(top, 0.5) or te.gt(top, 0.0)
    return te.select(second, te.const(labels[2], "int64"), largest[i])
  end)
end

ml("SVMClassifier", function(n)
  local labels, vectors = scores.labels_of(n, "classlabels_ints"), 0
  if #labels > MOST_CLASSES then n:fail("%d classes; at most %d are computed", #labels, MOST_CLASSES) end
  for _, count in ipairs(n:ints("vectors_per_class", {})) do vectors = vectors + count end
  if vectors == 0 then
    local Y = plus(dots(n, #labels, n:floats "coefficients"), n:floats "rho"[1] or n:fail "rho has no numbers")
    return linear_label(n, Y, labels), #labels > 1 and scores.transformed(n, Y) or Y
  end
  if #labels < 2 then n:fail("%d classes of support vectors", #labels) end
  if #n:floats("prob_a", {}) > 0 then return with_probabilities(n, labels) end
  local list = pairs_of(#labels)
  local S = contests(n, #labels, list)
  local label = voted(n, S, #labels, list, labels)
  if #labels > 2 then return label, scores.transformed(n, S) end
  local how = n:choice("post_transform", "NONE", "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
  return label, compute({S.shape[1], 2}, "float32", function(i)
    local s = S[{i[1], te.const(0, "int32")}]
    if how == "LOGISTIC" then s = scores.logistic(s) end
    return te.select(te.eq(i[2], 1), s, how == "NONE" and s * -1.0 or 1.0 - s)
  end)
end)

return operators
