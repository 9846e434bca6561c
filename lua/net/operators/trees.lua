-- Trees of ai.onnx.ml: ensembles whose leaves are added up. Of each row and tree a node is kept, that goes to its child
-- as often as the deepest tree has levels: one loop, so that deep trees are no longer functions than shallow ones.
-- Leaves stand behind all other nodes: one that is reached stays, and nothing is read for it.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local scores = ms.load "lua.net.operators.scores"
local operators = {}
local compute, reduce = common.compute, common.reduce
local rows, table_of, MOST = scores.rows, scores.table_of, scores.MOST
local function ml(name, f) operators["ai.onnx.ml." .. name] = f end

local TESTS = {BRANCH_LEQ = te.le, BRANCH_LT = te.lt, BRANCH_GTE = te.ge, BRANCH_GT = te.gt, BRANCH_EQ = te.eq,
               BRANCH_NEQ = te.ne}
local MODES = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"}

-- The level of the deepest leaf, by walking each node once: a child that is entered and not left yet closes a cycle.
local function depth_of(n, t)
  local height, deepest = {}, 0 -- of nodes that are left; -1: entered
  for _, root in ipairs(t.roots) do
    local path = {root}
    while #path > 0 do
      local at = path[#path]
      local children = t.mode[at + 1] ~= 0 and {t.yes[at + 1], t.no[at + 1]} or {}
      local own, next_child = 0, nil
      for _, child in ipairs(children) do
        if not height[child] then next_child = next_child or child
        else own = math.max(own, height[child] + 1) end
      end
      if next_child and not height[at] then height[at] = -1 end
      for _, child in ipairs(children) do
        if height[child] == -1 or child == at then n:fail "its nodes are no trees" end
      end
      if next_child then path[#path + 1] = next_child
      else height[at], path[#path] = own, nil end
    end
    deepest = math.max(deepest, height[root])
  end
  return deepest
end

-- The places of nodes in lists in which leaves stand behind all others, from 0 on, and the place of the first leaf.
local function places_of(modes)
  local places, inner, leaf = {}, 0, 0
  for _, name in ipairs(modes) do leaf = leaf + (name == "LEAF" and 0 or 1) end
  local first = leaf
  for k, name in ipairs(modes) do
    if name == "LEAF" then places[k], leaf = leaf, leaf + 1
    else places[k], inner = inner, inner + 1 end
  end
  return places, first
end

-- The nodes of all trees as lists: {feature, value, yes, no, mode, missing, roots, depth, place, first}; the children
-- are places from 0 on, a leaf's its own. place[tree][node]: where a node stands; first: where the leaves begin.
local function trees_of(n)
  local trees, nodes, modes = n:ints "nodes_treeids", n:ints "nodes_nodeids", n:texts "nodes_modes"
  local feature, value = n:ints "nodes_featureids", n:floats "nodes_values"
  local yes, no, missing = n:ints "nodes_truenodeids", n:ints "nodes_falsenodeids",
    n:ints("nodes_missing_value_tracks_true", {})
  local t = {feature = {}, value = {}, yes = {}, no = {}, mode = {}, missing = {}, roots = {}, place = {}}
  for _, list in ipairs {nodes, modes, feature, value, yes, no} do
    if #list ~= #trees then n:fail("lists of %d and of %d nodes", #trees, #list) end
  end
  if #missing ~= 0 and #missing ~= #trees or #trees == 0 then n:fail("lists of %d and %d nodes", #trees, #missing) end
  local places
  places, t.first = places_of(modes)
  for k, tree in ipairs(trees) do
    local own = t.place[tree]
    if not own then
      own = {}
      t.place[tree], t.roots[#t.roots + 1] = own, places[k]
    end
    if own[nodes[k]] then n:fail("node %d of tree %d is there twice", nodes[k], tree) end
    own[nodes[k]] = places[k]
  end
  local known, from = {}, {} -- from: whose place a place is
  for k, name in ipairs(MODES) do known[name] = k end
  for k, place in ipairs(places) do from[place + 1] = k end
  for at, k in ipairs(from) do
    local own, leaf = t.place[trees[k]], modes[k] == "LEAF"
    if not leaf and not known[modes[k]] then n:fail("mode `%s` is not known", modes[k]) end
    t.mode[at], t.feature[at], t.value[at], t.missing[at] = leaf and 0 or known[modes[k]], feature[k], value[k],
      missing[k]
    t.yes[at], t.no[at] = leaf and at - 1 or own[yes[k]], leaf and at - 1 or own[no[k]]
    if not t.yes[at] or not t.no[at] then n:fail("node %d of tree %d has a branch to no node", nodes[k], trees[k]) end
  end
  t.depth = depth_of(n, t)
  return t
end

local function within(x, extent) return te.maximum(te.minimum(x, extent - 1), 0) end

-- {rows, trees}: the places of the leaves.
local function leaves_of(n, t)
  local shape, at = rows(n, n:x(1))
  for k, feature in ipairs(t.feature) do
    if t.mode[k] ~= 0 and (feature < 0 or feature >= shape[2]) then
      n:fail("feature %d of rows of %d", feature, shape[2])
    end
    if t.mode[k] == 0 then t.feature[k] = 0 end
  end
  local own_type = t.type or "float32"
  local feature, value = table_of(n, "int32", t.feature), table_of(n, own_type, t.value)
  local yes, no = table_of(n, "int32", t.yes), table_of(n, "int32", t.no)
  local used, mode = {}, nil
  for _, m in ipairs(t.mode) do if m ~= 0 then used[m] = true end end
  local list = ms.sorted_keys(used)
  if #list > 1 then mode = table_of(n, "int32", t.mode) end
  local tracked
  for _, flag in ipairs(t.missing) do tracked = tracked or flag ~= 0 end
  local missing = tracked and table_of(n, "int32", t.missing) or nil
  local root, here = table_of(n, "int32", t.roots)
  local function below(node)
    local k = within(node, #t.yes)
    local x = scores.number(at(here[1], within(feature[{k}], shape[2])), own_type)
    local is
    for _, m in ipairs(list) do
      local own = TESTS[MODES[m]](x, value[{k}])
      if mode then own = te.all(own, te.eq(mode[{k}], m)) end
      is = is and te.any(is, own) or own
    end
    if missing then is = te.any(is, te.all(te.ne(x, x), te.ne(missing[{k}], 0))) end
    return te.if_then_else(te.lt(node, t.first), te.select(is, yes[{k}], no[{k}]), node)
  end
  local walk = te.reducer(function(node, first) return below(te.select(te.lt(node, 0), first, node)) end,
                          function() return te.const(-1, "int32") end, "walk")
  local function first(i)
    here = i
    return root[{i[2]}]
  end
  if t.depth == 0 then return compute({shape[1], #t.roots}, "int32", first) end
  return reduce({shape[1], #t.roots}, {t.depth}, walk, first)
end

-- Trees in the order of their results, each of which has as many: {weights by places, each}. Leaves are then read once,
-- and not for each result. id, weight: of a place; all: each result needs a tree. nil: a tree has leaves of several, or
-- results have few trees.
local function by_result(t, many, id, weight, all)
  for _, key in ipairs {"feature", "value", "missing"} do t[key] = table.move(t[key], 1, #t[key], 1, {}) end
  local lists, each = {}, 0
  for c = 1, many do lists[c] = {} end
  for _, root in ipairs(t.roots) do
    local own, open, seen = nil, {root}, {}
    while #open > 0 do
      local at = table.remove(open)
      if t.mode[at + 1] == 0 then
        own = own or id(at)
        if not own or own ~= id(at) then return nil end
      else
        for _, child in ipairs {t.yes[at + 1], t.no[at + 1]} do
          if not seen[child] then seen[child], open[#open + 1] = true, child end
        end
      end
    end
    table.insert(lists[own + 1], root)
  end
  for _, list in ipairs(lists) do
    each = math.max(each, #list)
    if all and #list == 0 then return nil end
  end
  if each * many > 2 * #t.roots then return nil end
  local weights, none = {}, #t.yes -- a leaf of nothing, for results with fewer trees
  for at = 0, none - 1 do weights[at + 1] = t.mode[at + 1] == 0 and weight(at) or 0.0 end
  weights[none + 1] = 0.0
  t.feature[none + 1], t.value[none + 1], t.mode[none + 1], t.yes[none + 1], t.no[none + 1] = 0, 0.0, 0, none, none
  if #t.missing > 0 then t.missing[none + 1] = 0 end
  t.roots = {}
  for c, list in ipairs(lists) do
    for k = 1, each do t.roots[(c - 1) * each + k] = list[k] or none end
  end
  return {weights = weights, each = each}
end
-- {rows, results}: what is added up of leaves, or their average, by what by_result gave.
local function sums_by_result(n, leaf, e, t_of)
  local own = e.own
  local W = table_of(n, t_of, own.weights)
  local Y = reduce({leaf.shape[1], e.many}, {own.each}, te.sum, function(i, r)
    return W[{within(leaf[{i[1], e.many == 1 and r[1] or i[2] * own.each + r[1]}], #own.weights)}]
  end)
  return e.how == "SUM" and Y or compute(Y.shape, t_of, function(i) return Y[i] / (e.trees + 0.0) end)
end

-- What trees give together, by name: the reducer, and the weight of a leaf that has none for a result.
local AGGREGATES = {SUM = {te.sum, 0.0}, AVERAGE = {te.sum, 0.0}, MIN = {common.minimum, math.huge},
                    MAX = {common.maximum, -math.huge}}
-- {rows, results}: weight(leaf, result) of the leaves of all trees. Where none has a weight it is 0.
local function aggregated(leaf, many, how, t, weight)
  local reducer, none = table.unpack(AGGREGATES[how])
  local Y = reduce({leaf.shape[1], many}, {leaf.shape[2]}, reducer,
                   function(i, r) return weight(leaf[{i[1], r[1]}], i[2], none) end)
  if how == "SUM" then return Y end
  return compute(Y.shape, t, function(i)
    if how == "AVERAGE" then return Y[i] / (leaf.shape[2] + 0.0) end
    return te.select(te.eq(Y[i], none), te.const(0.0, t), Y[i])
  end)
end

-- An ensemble, whose leaves' weights are attributes that begin so: {t, how, list, counts, own, trees}. list, counts:
-- weights by place and result, and how many there are; own: as by_result, where there is no need of these.
local function ensemble(n, prefix, many)
  local t = trees_of(n)
  local trees, nodes, ids = n:ints(prefix .. "_treeids"), n:ints(prefix .. "_nodeids"), n:ints(prefix .. "_ids")
  local weights = n:floats(prefix .. "_weights")
  if #trees ~= #nodes or #trees ~= #ids or #trees ~= #weights then
    n:fail("lists of %d and %d weights", #trees, #weights)
  end
  local how = n:choice("aggregate_function", "SUM", "SUM", "AVERAGE", "MIN", "MAX")
  local e, list, counts, none = {t = t, how = how, many = many, trees = #t.roots}, {}, {}, AGGREGATES[how][2]
  local join = how == "MIN" and math.min or how == "MAX" and math.max or function(x, y) return x + y end
  if many > MOST // #t.yes then n:fail("%d nodes with %d weights each are more than are made", #t.yes, many) end
  for k = 1, #t.yes * many do list[k], counts[k] = none, 0 end
  local result, several = {}, {} -- of a place
  for k, tree in ipairs(trees) do
    local place = t.place[tree] and t.place[tree][nodes[k]]
    if not place or ids[k] < 0 or ids[k] >= many then
      n:fail("a weight of result %d, of node %d of tree %d", ids[k], nodes[k], tree)
    end
    local at = place * many + ids[k] + 1
    list[at], counts[at] = join(list[at], weights[k]), 1
    several[place] = several[place] or result[place] and result[place] ~= ids[k]
    result[place] = ids[k]
  end
  for k, mode in ipairs(t.mode) do
    for c = 1, mode == 0 and many or 0 do e.some = e.some or counts[(k - 1) * many + c] == 0 end
  end
  e.list, e.counts, e.nodes = list, counts, #t.yes
  if how == "SUM" or how == "AVERAGE" then
    e.own = by_result(t, many, function(at) return not several[at] and result[at] or nil end,
                      function(at) return list[at * many + result[at] + 1] end, prefix == "class")
  end
  return e
end
-- {rows, classes}: the sum of the leaves' weights; and how many of them there are, where a leaf may have none.
local function given_by(n, e, prefix)
  local leaf = leaves_of(n, e.t)
  if e.own then return sums_by_result(n, leaf, e, "float32"), nil end
  local function of_leaves(t_of, values, by)
    local T = table_of(n, t_of, values, {e.nodes, e.many})
    return aggregated(leaf, e.many, by, t_of, function(at, c) return T[{within(at, e.nodes), c}] end)
  end
  return of_leaves("float32", e.list, e.how),
    prefix == "class" and e.some and of_leaves("int32", e.counts, "SUM") or nil
end
local function with_base(n, Y, base)
  if #base == 0 then return Y end
  if #base ~= Y.shape[2] then n:fail("%d base values for %d results", #base, Y.shape[2]) end
  local B = table_of(n, "float32", base)
  return compute(Y.shape, "float32", function(i) return Y[i] + B[{i[2]}] end)
end
ml("TreeEnsembleRegressor", function(n)
  local e = ensemble(n, "target", n:int "n_targets")
  return scores.transformed(n, with_base(n, (given_by(n, e, "target")), n:floats("base_values", {})))
end)
ml("TreeEnsembleClassifier", function(n)
  local labels, distinct, positive = scores.labels_of(n, "classlabels_int64s"), {}, true
  local e = ensemble(n, "class", #labels)
  local base = n:floats("base_values", {})
  for _, id in ipairs(n:ints "class_ids") do distinct[id] = true end
  for _, weight in ipairs(n:floats "class_weights") do positive = positive and weight >= 0 end
  if #labels ~= 2 or #ms.sorted_keys(distinct) ~= 1 then
    local raw, hits = given_by(n, e, "class")
    local Y = with_base(n, raw, base)
    return scores.largest_label(n, Y, labels, #base == 0 and hits or nil), scores.transformed(n, Y)
  end
  -- Weights of one class alone: the other's score follows from its own.
  local how = n:choice("post_transform", "NONE", "NONE", "LOGISTIC")
  local id, Y = ms.sorted_keys(distinct)[1], given_by(n, e, "class")
  if #base > 2 then n:fail("%d base values for 2 results", #base) end
  local S = compute({Y.shape[1]}, "float32", function(i)
    local s = Y[{i[1], te.const(id, "int32")}]
    return #base > 0 and s + base[#base] or s
  end)
  if how == "LOGISTIC" then
    return scores.of_two(n, S, labels, positive and 0.5 or 0.0,
                         function(s) return scores.logistic(s * -1.0) end, scores.logistic)
  end
  return scores.of_two(n, S, labels, positive and 0.5 or 0.0,
                function(s) return positive and 1.0 - s or s * -1.0 end, function(s) return s end)
end)

-- ---- Trees whose leaves are a list of their own: version 5 ---------------------------------------------------------

local AGGREGATE_NAMES = {[0] = "AVERAGE", "SUM", "MIN", "MAX"}
local TRANSFORM_NAMES = {[0] = "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"}
local MEMBER = 6

local function named(n, names, attribute, otherwise)
  local number = n:int(attribute, otherwise)
  return names[number] or n:fail("%s is %d, which is not computed", attribute, number)
end
local function tensor(n, name)
  local array = n.node.attributes[name]
  if ms.type(array) ~= "array" then n:fail("attribute %s is missing, or no tensor", name) end
  return array:tolist()
end

-- The members of each node that asks whether it has a value: numbers up to a NaN.
local function members_of(n, modes)
  local list, sets, at = n:has_attribute "membership_values" and tensor(n, "membership_values") or {}, {}, 1
  for k, mode in ipairs(modes) do
    if mode == MEMBER then
      sets[k] = {}
      while list[at] and list[at] == list[at] do
        table.insert(sets[k], list[at])
        at = at + 1
      end
      if not list[at] then n:fail("node %d has no members", k - 1) end
      at = at + 1
    end
  end
  return sets
end

-- As trees_of, the leaves behind all nodes; a node of members is a node for each, one behind the other. leaves: how
-- many there are; first: the place of the first.
local function trees_of_tensors(n, leaves)
  local modes, splits, feature = tensor(n, "nodes_modes"), tensor(n, "nodes_splits"), n:ints "nodes_featureids"
  local yes, no = n:ints "nodes_truenodeids", n:ints "nodes_falsenodeids"
  local yes_ends, no_ends = n:ints "nodes_trueleafs", n:ints "nodes_falseleafs"
  local missing = n:ints("nodes_missing_value_tracks_true", {})
  for _, list in ipairs {splits, feature, yes, no, yes_ends, no_ends, #missing > 0 and missing or nil} do
    if #list ~= #modes then n:fail("lists of %d and of %d nodes", #modes, #list) end
  end
  local t = {feature = {}, value = {}, yes = {}, no = {}, mode = {}, missing = {}, roots = {}}
  local members, places, count = members_of(n, modes), {}, 0
  for k = 1, #modes do places[k - 1], count = count, count + math.max(1, #(members[k] or "")) end
  t.first = count
  local function child(k, list, is_leaf)
    local at = is_leaf[k] ~= 0 and (list[k] >= 0 and list[k] < leaves and count + list[k]) or
      is_leaf[k] == 0 and places[list[k]]
    return at or n:fail("node %d has a branch to no node", k - 1)
  end
  local function add(k, mode, value, if_yes, if_no)
    local at = #t.mode + 1
    t.feature[at], t.value[at], t.mode[at], t.missing[at] = feature[k], value, mode, missing[k] or 0
    t.yes[at], t.no[at] = if_yes, if_no
  end
  local EQUAL = 5 -- in MODES
  for k, mode in ipairs(modes) do
    local if_yes, if_no, set = child(k, yes, yes_ends), child(k, no, no_ends), members[k]
    if set then
      if #set == 0 then set = {0 / 0} end -- which nothing equals
      for m, x in ipairs(set) do add(k, EQUAL, x, if_yes, m == #set and if_no or #t.mode + 1) end
    elseif MODES[mode + 1] then add(k, mode + 1, splits[k], if_yes, if_no)
    else n:fail("mode %d is not known", mode) end
  end
  for leaf = 0, leaves - 1 do
    local at = #t.mode + 1
    t.feature[at], t.value[at], t.mode[at], t.missing[at] = 0, 0.0, 0, 0
    t.yes[at], t.no[at] = count + leaf, count + leaf
  end
  for k, root in ipairs(n:ints "tree_roots") do
    t.roots[k] = places[root] or n:fail("tree %d begins at node %d, which is not there", k - 1, root)
  end
  if #t.roots == 0 then n:fail "it has no trees" end
  t.depth = depth_of(n, t)
  return t
end

ml("TreeEnsemble", function(n)
  local weights, targets, many = tensor(n, "leaf_weights"), n:ints "leaf_targetids", n:int "n_targets"
  if #weights ~= #targets then n:fail("%d weights and %d results of leaves", #weights, #targets) end
  for k, target in ipairs(targets) do
    if target < 0 or target >= many then n:fail("leaf %d is of result %d of %d", k - 1, target, many) end
  end
  local how = named(n, AGGREGATE_NAMES, "aggregate_function", 1)
  local t = trees_of_tensors(n, #weights)
  t.type = common.wide_type(n:type(1))
  if not common.is_float(t.type) then n:fail("its input is of %s; floats are expected", t.type) end
  local e = {how = how, many = many, trees = #t.roots}
  if how == "SUM" or how == "AVERAGE" then
    e.own = by_result(t, many, function(at) return targets[at - t.first + 1] end,
                      function(at) return weights[at - t.first + 1] end)
  end
  local leaf, Y = leaves_of(n, t), nil
  if e.own then Y = sums_by_result(n, leaf, e, t.type)
  else
    local W, T = table_of(n, t.type, weights), table_of(n, "int32", targets)
    Y = aggregated(leaf, many, how, t.type, function(place, result, none)
      local at = within(place - t.first, #weights)
      return te.select(te.eq(T[{at}], result), W[{at}], te.const(none, t.type))
    end)
  end
  return common.narrow(scores.transformed(n, Y, named(n, TRANSFORM_NAMES, "post_transform", 0)), n:type(1))
end)

return operators
