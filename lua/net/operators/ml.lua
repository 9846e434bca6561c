-- Operators of ai.onnx.ml, whose inputs are rows of features: trees, linear models, scalers, encoders. Those that give
-- texts or maps are not computed.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
ms.load "lua.net.operators.reductions" -- for common.exponentials and common.over
local operators = {}
local compute, reduce, wide = common.compute, common.reduce, common.wide
local function ml(name, f) operators["ai.onnx.ml." .. name] = f end

local MOST = 1 << 24 -- elements of a table
local function table_of(n, t, list, shape)
  if #list > MOST then n:fail("a table of %d elements is larger than is made", #list) end
  return n:table(ms.array(shape or {#list}, t, list))
end
local function float32(x)
  if x.type == "bool" then x = te.cast(x, "int32") end
  return te.cast(wide(x), "float32")
end
-- {rows, features}: one row where there is one dimension.
local function rows(n, X)
  local s = X.shape
  if #s ~= 1 and #s ~= 2 then n:fail("its input has %d dimensions, not 1 or 2", #s) end
  local shape = #s == 1 and {1, s[1]} or s
  return shape, function(r, c) return X[#s == 1 and {c} or {r, c}] end
end

-- ---- Features ----------------------------------------------------------------------------------------------------

ml("ArrayFeatureExtractor", function(n)
  local X, I, rank = n:x(1), n:x(2), n:rank(1)
  if rank < 1 or common.count(I.shape) == 0 then
    n:fail("%d features of %s", common.count(I.shape), common.text(X.shape))
  end
  local extent, many = X.shape[rank], common.count(I.shape)
  n:check_range(2, 0, extent - 1)
  local shape = rank == 1 and {1, many} or table.move(X.shape, 1, rank - 1, 1, {[rank] = many})
  return compute(shape, X.type, function(i)
    local at = common.index(I[common.unfold(i[#i], I.shape)], extent)
    return X[rank == 1 and {at} or table.move(i, 1, rank - 1, 1, {[rank] = at})]
  end)
end)
ml("Binarizer", function(n)
  local X, threshold = n:x(1), n:float("threshold", 0.0)
  local whole = not common.is_float(X.type)
  return compute(X.shape, X.type, function(i)
    local above = te.gt(whole and float32(X[i]) or wide(X[i]), threshold)
    return te.select(above, te.const(whole and 1 or 1.0, X.type), te.const(whole and 0 or 0.0, X.type))
  end)
end)
-- A number for each feature, or one for all.
local function by_feature(n, name, list, many)
  if #list ~= 1 and #list ~= many then n:fail("%s has %d numbers for %d features", name, #list, many) end
  if #list == 1 then return function() return list[1] end end
  local T = table_of(n, "float32", list)
  return function(c) return T[{c}] end
end
ml("Scaler", function(n)
  local X, rank = n:x(1), n:rank(1)
  local many = X.shape[rank] or n:fail "its input is a scalar"
  local offset, scale = by_feature(n, "offset", n:floats("offset", {0.0}), many),
    by_feature(n, "scale", n:floats("scale", {1.0}), many)
  return compute(X.shape, "float32", function(i) return (float32(X[i]) - offset(i[rank])) * scale(i[rank]) end)
end)
ml("Imputer", function(n)
  local X, rank, float = n:x(1), n:rank(1), common.is_float(n:type(1))
  local many, list = X.shape[rank] or n:fail "its input is a scalar", nil
  if float then list = n:floats "imputed_value_floats" else list = n:ints "imputed_value_int64s" end
  if #list ~= 1 and #list ~= many then n:fail("%d numbers for %d features", #list, many) end
  local replaced = float and n:float("replaced_value_float", 0.0) or not float and n:int("replaced_value_int64", 0)
  local T = table_of(n, X.type, list)
  return compute(X.shape, X.type, function(i)
    local x = X[i]
    local is = replaced ~= replaced and te.ne(x, x) or te.eq(x, te.const(replaced, X.type))
    return te.select(is, T[{#list == 1 and 0 or i[rank]}], x)
  end)
end)
ml("Normalizer", function(n)
  local X, set, norm = n:x(1), {[n:rank(1)] = true}, n:choice("norm", "MAX", "MAX", "L1", "L2")
  if n:rank(1) < 1 then n:fail "its input is a scalar" end
  local before = norm == "MAX" and function(x) return x end or norm == "L1" and te.abs or function(x) return x * x end
  local F = compute(X.shape, "float32", function(i) return float32(X[i]) end)
  local _, sum = common.over(F, set, true, norm == "MAX" and common.maximum or te.sum, before)
  return compute(X.shape, "float32", function(i)
    local s = sum[common.inner(set, i)]
    if norm == "L2" then s = te.sqrt(s) end
    return te.select(te.eq(s, 0.0), F[i], F[i] / s)
  end)
end)
ml("OneHotEncoder", function(n)
  local X, list, rank = n:x(1), n:ints "cats_int64s", n:rank(1)
  if n:int("zeros", 1) ~= 1 then n:fail "a number that is none of its categories cannot stop a network: zeros is 0" end
  local T = table_of(n, "int64", list)
  return compute(table.move(X.shape, 1, rank, 1, {[rank + 1] = #list}), "float32", function(i)
    local same = te.eq(te.cast(wide(X[table.move(i, 1, rank, 1, {})]), "int64"), T[{i[rank + 1]}])
    return te.select(same, te.const(1.0, "float32"), te.const(0.0, "float32"))
  end)
end)
ml("FeatureVectorizer", function(n)
  local sizes, parts, from, batch = n:ints "inputdimensions", {}, 0, nil
  if #sizes ~= n:count() then n:fail("%d numbers of features for %d inputs", #sizes, n:count()) end
  for k, size in ipairs(sizes) do
    local shape, at = rows(n, n:x(k))
    if size < 1 or size > shape[2] or batch and batch ~= shape[1] then
      n:fail("%d features of %s", size, common.text(n:shape(k)))
    end
    batch, parts[k], from = shape[1], {at = at, first = from, last = from + size}, from + size
  end
  if not batch then n:fail "it has no inputs" end
  return compute({batch, from}, "float32", function(i)
    local function choose(k)
      local p = parts[k]
      local x = float32(p.at(i[1], i[2] - p.first))
      return k == #parts and x or te.if_then_else(te.lt(i[2], p.last), x, choose(k + 1))
    end
    return choose(1)
  end)
end)

-- Numbers by others: keys and values as lists, or as tensors.
ml("LabelEncoder", function(n)
  local X = n:x(1)
  local function list_of(what)
    local array = n.node.attributes[what .. "_tensor"]
    if ms.type(array) == "array" then return array:tolist(), array:type() end
    if n:has_attribute(what .. "_int64s") then return n:ints(what .. "_int64s"), "int64" end
    if n:has_attribute(what .. "_floats") then return n:floats(what .. "_floats"), "float32" end
    n:fail("its %s are no numbers", what)
  end
  local keys, own = list_of "keys"
  local values, t = list_of "values"
  if own ~= X.type then n:fail("its keys are of %s, and its input is of %s", own, X.type) end
  if #keys ~= #values or #keys == 0 then n:fail("%d keys and %d values", #keys, #values) end
  local given, otherwise = n.node.attributes.default_tensor, nil
  if ms.type(given) == "array" and #given == 1 then otherwise = given[0]
  elseif common.is_float(t) then otherwise = n:float("default_float", -0.0)
  else otherwise = n:int("default_int64", -1) end
  local K, V, none = table_of(n, own, keys), table_of(n, t, values), te.const(-1, "int32")
  local found = reduce(X.shape, {#keys}, te.reducer(te.maximum, function() return none end, "last"), function(i, r)
    local x, key = X[i], K[{r[1]}]
    local same = te.eq(x, key)
    if common.is_float(own) then same = te.any(same, te.all(te.ne(x, x), te.ne(key, key))) end
    return te.select(same, r[1] + 0, none)
  end)
  return compute(X.shape, t, function(i)
    local at = te.maximum(te.minimum(found[i], #keys - 1), 0)
    return te.select(te.ge(found[i], 0), V[{at}], te.const(otherwise, t))
  end)
end)

-- ---- Scores ------------------------------------------------------------------------------------------------------

local function logistic(x) return te.sigmoid(x) end
-- Scores {rows, classes} behind a transform by its name.
local function transformed(n, Y)
  local how = n:choice("post_transform", "NONE", "NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
  if how == "NONE" then return Y end
  if how == "LOGISTIC" then return compute(Y.shape, "float32", function(i) return logistic(Y[i]) end) end
  local set = {[2] = true}
  if how == "SOFTMAX" then
    local e, sum = common.exponentials(Y, set)
    return compute(Y.shape, "float32", function(i) return e[i] / sum[common.inner(set, i)] end)
  end
  -- Scores of 0 stay 0, and count for nothing.
  local _, largest = common.over(Y, set, true, common.maximum)
  local e = compute(Y.shape, "float32", function(i)
    return te.select(te.gt(te.abs(Y[i]), 1e-7), te.exp(Y[i] - largest[common.inner(set, i)]), te.const(0.0, "float32"))
  end)
  local _, sum = common.over(e, set, true, te.sum)
  return compute(Y.shape, "float32", function(i)
    local s = sum[common.inner(set, i)]
    return te.select(te.eq(s, 0.0), te.const(0.0, "float32"), e[i] / s)
  end)
end

-- Numbers of classes.
local function labels_of(n, name)
  local list = n:ints(name, {})
  if #list == 0 then n:fail("its classes are texts: %s has none", name) end
  return list
end
-- The label of each row's largest score, the first of equal ones. hits: {rows, classes}, above 0 where a class has a
-- score at all; nil: all have.
local function largest_label(n, Y, labels, hits)
  local T = table_of(n, "int64", labels)
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
local function of_two(n, S, labels, edge, first, second)
  local label = compute({S.shape[1]}, "int64", function(i)
    return te.select(te.gt(S[{i[1]}], edge), te.const(labels[2], "int64"), te.const(labels[1], "int64"))
  end)
  return label, compute({S.shape[1], 2}, "float32", function(i)
    local s = S[{i[1]}]
    return te.select(te.eq(i[2], 0), first(s), second(s))
  end)
end

-- ---- Linear models -----------------------------------------------------------------------------------------------

-- {rows, outputs} by coefficients, an output after the other.
local function linear(n, outputs)
  local X, C = n:x(1), n:floats "coefficients"
  local shape, at = rows(n, X)
  if outputs < 1 or #C ~= outputs * shape[2] then
    n:fail("%d coefficients for %d features and %d results", #C, shape[2], outputs)
  end
  local B = n:floats("intercepts", {})
  if #B ~= 0 and #B ~= outputs then n:fail("%d intercepts for %d results", #B, outputs) end
  local W, V = table_of(n, "float32", C, {outputs, shape[2]}), #B > 0 and table_of(n, "float32", B) or nil
  local sum = reduce({shape[1], outputs}, {shape[2]}, te.sum,
                     function(i, r) return float32(at(i[1], r[1])) * W[{i[2], r[1]}] end)
  return V and compute(sum.shape, "float32", function(i) return sum[i] + V[{i[2]}] end) or sum
end
ml("LinearRegressor", function(n) return transformed(n, linear(n, n:int("targets", 1))) end)
ml("LinearClassifier", function(n)
  local labels = labels_of(n, "classlabels_ints")
  local features = rows(n, n:x(1))[2]
  local Y = linear(n, #n:floats "coefficients" // math.max(features, 1))
  if Y.shape[2] == 1 and #labels == 2 then
    local how = n:choice("post_transform", "NONE", "NONE", "LOGISTIC")
    local S = compute({Y.shape[1]}, "float32", function(i)
      local s = Y[{i[1], te.const(0, "int32")}]
      return how == "LOGISTIC" and logistic(s) or s
    end)
    return of_two(n, S, labels, how == "LOGISTIC" and 0.5 or 0.0,
                  function(s) return 1.0 - s end, function(s) return s end)
  end
  if Y.shape[2] ~= #labels then n:fail("%d classes and %d scores", #labels, Y.shape[2]) end
  return largest_label(n, Y, labels), transformed(n, Y)
end)

-- ---- Trees -------------------------------------------------------------------------------------------------------

local TESTS = {BRANCH_LEQ = te.le, BRANCH_LT = te.lt, BRANCH_GTE = te.ge, BRANCH_GT = te.gt, BRANCH_EQ = te.eq,
               BRANCH_NEQ = te.ne}
local MODES = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"}

-- The nodes of all trees as lists: {feature, value, yes, no, mode, missing, roots, depth, place}; the children are
-- places from 0 on, a leaf's its own. place[tree][node]: where a node stands.
local function trees_of(n)
  local trees, nodes, modes = n:ints "nodes_treeids", n:ints "nodes_nodeids", n:texts "nodes_modes"
  local feature, value = n:ints "nodes_featureids", n:floats "nodes_values"
  local yes, no, missing = n:ints "nodes_truenodeids", n:ints "nodes_falsenodeids",
    n:ints("nodes_missing_value_tracks_true", {})
  local t = {feature = feature, value = value, yes = {}, no = {}, mode = {}, missing = missing, roots = {}, place = {}}
  for _, list in ipairs {nodes, modes, feature, value, yes, no} do
    if #list ~= #trees then n:fail("lists of %d and of %d nodes", #trees, #list) end
  end
  if #missing ~= 0 and #missing ~= #trees or #trees == 0 then n:fail("lists of %d and %d nodes", #trees, #missing) end
  for k, tree in ipairs(trees) do
    local own = t.place[tree]
    if not own then
      own = {}
      t.place[tree], t.roots[#t.roots + 1] = own, k - 1
    end
    if own[nodes[k]] then n:fail("node %d of tree %d is there twice", nodes[k], tree) end
    own[nodes[k]] = k - 1
  end
  local known = {}
  for k, name in ipairs(MODES) do known[name] = k end
  for k, tree in ipairs(trees) do
    local own, leaf = t.place[tree], modes[k] == "LEAF"
    if not leaf and not known[modes[k]] then n:fail("mode `%s` is not known", modes[k]) end
    t.mode[k] = leaf and 0 or known[modes[k]]
    t.yes[k], t.no[k] = leaf and k - 1 or own[yes[k]], leaf and k - 1 or own[no[k]]
    if not t.yes[k] or not t.no[k] then n:fail("node %d of tree %d has a branch to no node", nodes[k], tree) end
  end
  -- The deepest leaf; a node that comes again is a cycle.
  t.depth = 0
  local level, seen = table.move(t.roots, 1, #t.roots, 1, {}), 0
  while #level > 0 do
    local next_level = {}
    for _, at in ipairs(level) do
      if t.mode[at + 1] ~= 0 then
        next_level[#next_level + 1], next_level[#next_level + 2] = t.yes[at + 1], t.no[at + 1]
      end
    end
    seen = seen + #level
    if seen > #trees then n:fail "its nodes are no trees" end
    if #next_level > 0 then t.depth = t.depth + 1 end
    level = next_level
  end
  if t.depth > 64 then n:fail("trees of %d levels are deeper than are walked", t.depth) end
  return t
end

-- {rows, trees}: the places of the leaves.
local function leaves_of(n, t)
  local shape, at = rows(n, n:x(1))
  for k, feature in ipairs(t.feature) do
    if t.mode[k] ~= 0 and (feature < 0 or feature >= shape[2]) then
      n:fail("feature %d of rows of %d", feature, shape[2])
    end
    if t.mode[k] == 0 then t.feature[k] = 0 end
  end
  local feature, value = table_of(n, "int32", t.feature), table_of(n, "float32", t.value)
  local yes, no = table_of(n, "int32", t.yes), table_of(n, "int32", t.no)
  local used, mode = {}, nil
  for _, m in ipairs(t.mode) do if m ~= 0 then used[m] = true end end
  local list = ms.sorted_keys(used)
  if #list > 1 then mode = table_of(n, "int32", t.mode) end
  local tracked
  for _, flag in ipairs(t.missing) do tracked = tracked or flag ~= 0 end
  local missing = tracked and table_of(n, "int32", t.missing) or nil
  local root, last = table_of(n, "int32", t.roots), #t.yes - 1
  local function within(x, most) return te.maximum(te.minimum(x, most), 0) end
  local node = compute({shape[1], #t.roots}, "int32", function(i) return root[{i[2]}] end)
  for _ = 1, t.depth do
    local before = node
    node = compute(before.shape, "int32", function(i)
      local k = within(before[i], last)
      local x = float32(at(i[1], within(feature[{k}], shape[2] - 1)))
      local is
      for _, m in ipairs(list) do
        local own = TESTS[MODES[m]](x, value[{k}])
        if mode then own = te.all(own, te.eq(mode[{k}], m)) end
        is = is and te.any(is, own) or own
      end
      if missing then is = te.any(is, te.all(te.ne(x, x), te.ne(missing[{k}], 0))) end
      return te.select(is, yes[{k}], no[{k}])
    end)
  end
  return node
end

-- {rows, classes}: the sum of the leaves' weights, of attributes that begin so; and how many of them there are, where a
-- leaf may have none.
local function ensemble(n, prefix, many)
  local t = trees_of(n)
  local trees, nodes, ids = n:ints(prefix .. "_treeids"), n:ints(prefix .. "_nodeids"), n:ints(prefix .. "_ids")
  local weights = n:floats(prefix .. "_weights")
  if #trees ~= #nodes or #trees ~= #ids or #trees ~= #weights then
    n:fail("lists of %d and %d weights", #trees, #weights)
  end
  local how = n:choice("aggregate_function", "SUM", "SUM", "AVERAGE")
  local list, counts = {}, {}
  if #t.yes * many > MOST then n:fail("%d nodes with %d weights each are more than are made", #t.yes, many) end
  for k = 1, #t.yes * many do list[k], counts[k] = 0.0, 0 end
  for k, tree in ipairs(trees) do
    local place = t.place[tree] and t.place[tree][nodes[k]]
    if not place or ids[k] < 0 or ids[k] >= many then
      n:fail("a weight of result %d, of node %d of tree %d", ids[k], nodes[k], tree)
    end
    local at = place * many + ids[k] + 1
    list[at], counts[at] = list[at] + weights[k], 1
  end
  local leaf, some = leaves_of(n, t), false
  for k, mode in ipairs(t.mode) do
    for c = 1, mode == 0 and many or 0 do some = some or counts[(k - 1) * many + c] == 0 end
  end
  local function summed(T)
    return reduce({leaf.shape[1], many}, {leaf.shape[2]}, te.sum,
                  function(i, r) return T[{te.maximum(te.minimum(leaf[{i[1], r[1]}], #t.yes - 1), 0), i[2]}] end)
  end
  local sum = summed(table_of(n, "float32", list, {#t.yes, many}))
  if how == "SUM" then
    return sum, prefix == "class" and some and summed(table_of(n, "int32", counts, {#t.yes, many})) or nil
  end
  return compute(sum.shape, "float32", function(i) return sum[i] / (leaf.shape[2] + 0.0) end)
end
local function with_base(n, Y, base)
  if #base == 0 then return Y end
  if #base ~= Y.shape[2] then n:fail("%d base values for %d results", #base, Y.shape[2]) end
  local B = table_of(n, "float32", base)
  return compute(Y.shape, "float32", function(i) return Y[i] + B[{i[2]}] end)
end
ml("TreeEnsembleRegressor", function(n)
  return transformed(n, with_base(n, (ensemble(n, "target", n:int "n_targets")), n:floats("base_values", {})))
end)
ml("TreeEnsembleClassifier", function(n)
  local labels, distinct, positive = labels_of(n, "classlabels_int64s"), {}, true
  local base = n:floats("base_values", {})
  for _, id in ipairs(n:ints "class_ids") do distinct[id] = true end
  for _, weight in ipairs(n:floats "class_weights") do positive = positive and weight >= 0 end
  if #labels ~= 2 or #ms.sorted_keys(distinct) ~= 1 then
    local raw, hits = ensemble(n, "class", #labels)
    local Y = with_base(n, raw, base)
    return largest_label(n, Y, labels, #base == 0 and hits or nil), transformed(n, Y)
  end
  -- Weights of one class alone: the other's score follows from its own.
  local how = n:choice("post_transform", "NONE", "NONE", "LOGISTIC")
  local id, Y = ms.sorted_keys(distinct)[1], ensemble(n, "class", #labels)
  if #base > 2 then n:fail("%d base values for 2 results", #base) end
  local S = compute({Y.shape[1]}, "float32", function(i)
    local s = Y[{i[1], te.const(id, "int32")}]
    return #base > 0 and s + base[#base] or s
  end)
  if how == "LOGISTIC" then
    return of_two(n, S, labels, positive and 0.5 or 0.0, function(s) return logistic(s * -1.0) end, logistic)
  end
  return of_two(n, S, labels, positive and 0.5 or 0.0,
                function(s) return positive and 1.0 - s or s * -1.0 end, function(s) return s end)
end)

return operators
