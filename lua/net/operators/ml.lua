-- Operators of ai.onnx.ml, whose inputs are rows of features: linear models, scalers, encoders; trees.lua has trees,
-- svm.lua support vectors. Those that give texts or maps are not computed.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local scores = ms.load "lua.net.operators.scores"
local operators = {}
local compute, reduce, wide = common.compute, common.reduce, common.wide
local rows, table_of, float32 = scores.rows, scores.table_of, scores.float32
local function ml(name, f) operators["ai.onnx.ml." .. name] = f end

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
ml("LinearRegressor", function(n) return scores.transformed(n, linear(n, n:int("targets", 1))) end)
ml("LinearClassifier", function(n)
  local labels = scores.labels_of(n, "classlabels_ints")
  local features = rows(n, n:x(1))[2]
  local Y = linear(n, #n:floats "coefficients" // math.max(features, 1))
  if Y.shape[2] == 1 and #labels == 2 then
    local how = n:choice("post_transform", "NONE", "NONE", "LOGISTIC")
    local S = compute({Y.shape[1]}, "float32", function(i)
      local s = Y[{i[1], te.const(0, "int32")}]
      return how == "LOGISTIC" and scores.logistic(s) or s
    end)
    return scores.of_two(n, S, labels, how == "LOGISTIC" and 0.5 or 0.0,
                  function(s) return 1.0 - s end, function(s) return s end)
  end
  if Y.shape[2] ~= #labels then n:fail("%d classes and %d scores", #labels, Y.shape[2]) end
  return scores.largest_label(n, Y, labels), scores.transformed(n, Y)
end)

return operators
