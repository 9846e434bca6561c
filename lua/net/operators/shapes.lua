-- Operators that move elements: shapes, slices, joins, gathers, pads.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}
local compute, count, fold, unfold, reshaped = common.compute, common.count, common.fold, common.unfold, common.reshaped

local function ints(list) return ms.array({#list}, "int64", list) end
local function copy_of(list) return table.move(list, 1, #list, 1, {}) end

-- ---- Elements that shapes alone decide: arrays, not tensors ---------------------------------------------------------

operators.Shape = function(n)
  local shape, list = n:shape(1), {}
  local rank = #shape
  local function place(name, otherwise)
    local at = n:int(name, otherwise)
    return math.max(0, math.min(at < 0 and at + rank or at, rank))
  end
  for d = place("start", 0) + 1, place("end", rank) do list[#list + 1] = shape[d] end
  return ints(list)
end
operators.Size = function(n) return ms.array({}, "int64", {count(n:shape(1))}) end

operators.Constant = function(n)
  local a = n.node.attributes
  if a.value then
    if ms.type(a.value) ~= "array" then n:fail "its value is no tensor" end
    return a.value
  end
  if a.value_int then return ms.array({}, "int64", {n:int "value_int"}) end
  if a.value_float then return ms.array({}, "float32", {n:float "value_float"}) end
  if a.value_ints then return ints(n:ints "value_ints") end
  if a.value_floats then return ms.array({#a.value_floats}, "float32", a.value_floats) end
  n:fail "it has no value that is a tensor of numbers"
end

local function shape_of(n, list)
  for _, extent in ipairs(list) do
    if extent < 0 then n:fail("an extent of %d", extent) end
  end
  return list
end
local MOST_ELEMENTS = 1 << 31
local function check_count(n, shape)
  local elements = 1.0
  for _, extent in ipairs(shape) do elements = elements * extent end
  if elements > MOST_ELEMENTS then n:fail("a tensor of %s is larger than is made", common.text(shape)) end
  return shape
end

operators.ConstantOfShape = function(n)
  local value = n.node.attributes.value or ms.array({1}, "float32")
  if ms.type(value) ~= "array" or #value ~= 1 then n:fail "its value is no tensor of one element" end
  return ms.array(check_count(n, shape_of(n, n:list(1))), value:type(), value[0])
end

operators.Range = function(n)
  local first, limit, step, t = n:scalar(1), n:scalar(2), n:has(3) and n:scalar(3) or 1, n:type(1)
  if step == 0 then n:fail "its step is 0" end
  local extent, list = math.max(0, math.ceil((limit - first) / step)), {}
  check_count(n, {extent})
  for i = 1, extent do list[i] = first + (i - 1) * step end
  return ms.array({extent}, t, list)
end

operators.NonZero = function(n)
  local array, shape = n:array(1), n:shape(1)
  local found, values = {}, array:tolist()
  for at, x in ipairs(values) do if x ~= 0 then found[#found + 1] = at - 1 end end
  local list, step = {}, 1
  local steps = {}
  for d = #shape, 1, -1 do steps[d], step = step, step * shape[d] end
  for d = 1, #shape do
    for _, at in ipairs(found) do list[#list + 1] = at // steps[d] % shape[d] end
  end
  return ms.array({#shape, #found}, "int64", list)
end

operators.EyeLike = function(n)
  local shape, k = n:shape(1), n:int("k", 0)
  if #shape ~= 2 then n:fail("its input has %d dimensions, not 2", #shape) end
  local t = n:has_attribute "dtype" and n:type_of(n:int "dtype") or n:type(1)
  return compute(shape, t, function(i)
    return common.cast(te.eq(i[2] - i[1], k), t)
  end)
end

-- ---- The same elements in other extents --------------------------------------------------------------------------

operators.Reshape = function(n)
  local old, shape, open = n:shape(1), copy_of(n:ints_of(2, "shape")), nil
  for d, extent in ipairs(shape) do
    if extent == 0 and n:int("allowzero", 0) == 0 then
      shape[d] = old[d] or n:fail("extent %d is 0, and its input has %d dimensions", d, #old)
    end
    if extent == -1 then
      if open then n:fail "two extents are -1" end
      open, shape[d] = d, 1
    end
  end
  shape_of(n, shape)
  if open then
    if count(shape) == 0 or count(old) % count(shape) ~= 0 then
      n:fail("%s does not fit %s", common.text(old), common.text(n:ints_of(2, "shape")))
    end
    shape[open] = count(old) // count(shape)
  end
  if count(shape) ~= count(old) then n:fail("%s does not fit %s", common.text(old), common.text(shape)) end
  return reshaped(n:x(1), shape)
end
operators.Flatten = function(n)
  local shape, axis = n:shape(1), n:int("axis", 1)
  if axis < -#shape or axis > #shape then n:fail("axis %d is not one of %d", axis, #shape) end
  if axis < 0 then axis = axis + #shape end
  return reshaped(n:x(1), {count(shape, 1, axis), count(shape, axis + 1)})
end
operators.Squeeze = function(n)
  local shape, made = n:shape(1), {}
  local given = n:has(2) and n:list(2) or n:has_attribute "axes" and n:ints "axes"
  local axes = given and n:axes(given, #shape)
  for d, extent in ipairs(shape) do
    if axes and axes[d] and extent ~= 1 then n:fail("extent %d is %d, not 1", d, extent) end
    if axes and not axes[d] or not axes and extent ~= 1 then made[#made + 1] = extent end
  end
  return reshaped(n:x(1), made)
end
operators.Unsqueeze = function(n)
  local shape, list, made = n:shape(1), n:ints_of(2, "axes"), {}
  local axes, at = n:axes(list, #shape + #list), 1
  for d = 1, #shape + #list do
    if axes[d] then made[d] = 1 else made[d], at = shape[at], at + 1 end
  end
  return reshaped(n:x(1), made)
end

operators.Transpose = function(n)
  local X, rank, default = n:x(1), n:rank(1), {}
  for d = 1, rank do default[d] = rank - d end
  local order, shape, seen = n:ints("perm", default), {}, {}
  if #order ~= rank then n:fail("perm has %d axes, its input %d", #order, rank) end
  for d, axis in ipairs(order) do
    local a = n:axis(axis, rank)
    if seen[a] then n:fail("axis %d is named twice", axis) end
    seen[a], shape[d] = true, X.shape[a]
  end
  return compute(shape, X.type, function(i)
    local at = {}
    for d, axis in ipairs(order) do at[axis % rank + 1] = i[d] end
    return X[at]
  end)
end

operators.Expand = function(n)
  local X = n:x(1)
  local shape = common.broadcast(n, {X.shape, shape_of(n, n:list(2))})
  check_count(n, shape)
  return compute(shape, X.type, function(i) return common.at(X, i) end)
end
operators.Tile = function(n)
  local X, repeats, shape = n:x(1), n:list(2), {}
  if #repeats ~= #X.shape then n:fail("it has %d repeats for %d dimensions", #repeats, #X.shape) end
  for d, extent in ipairs(X.shape) do shape[d] = extent * repeats[d] end
  check_count(n, shape_of(n, shape))
  return compute(shape, X.type, function(i)
    local at = {}
    for d, extent in ipairs(X.shape) do at[d] = extent == 1 and 0 or te.floormod(i[d], extent) end
    return X[at]
  end)
end

-- ---- Joined and cut ----------------------------------------------------------------------------------------------

operators.Concat = function(n)
  if n.many(n.node.inputs) then return n:gives {n:join(n.node.inputs, n:int("axis", n.opset < 4 and 1 or nil))} end
  local axis, tensors, shape, t = nil, {}, nil, nil
  for i = 1, n:count() do
    local s = n:shape(i)
    if not shape then
      axis, shape, t = n:axis(n:int("axis", n.opset < 4 and 1 or nil), #s), copy_of(s), n:type(i)
    else
      if #s ~= #shape then n:fail("its inputs have %d and %d dimensions", #shape, #s) end
      for d, extent in ipairs(s) do
        if d ~= axis and extent ~= shape[d] then
          n:fail("extent %d of input %d is %d, not %d", d, i, extent, shape[d])
        end
      end
      if n:type(i) ~= t then n:fail("its inputs are of %s and %s", t, n:type(i)) end
      shape[axis] = shape[axis] + s[axis]
    end
    if s[axis] > 0 then tensors[#tensors + 1] = n:x(i) end
  end
  if not shape then n:fail "it has no inputs" end
  return compute(shape, t, function(i)
    -- Halves of the list by turns, so that many inputs are a tree and not a chain.
    local function choose(first, last, from)
      if first == last then
        local at = copy_of(i)
        at[axis] = common.behind(i[axis], from)
        return tensors[first][at]
      end
      local middle, edge = (first + last) // 2, from
      for k = first, middle do edge = edge + tensors[k].shape[axis] end
      return te.if_then_else(common.below(i[axis], edge), choose(first, middle, from), choose(middle + 1, last, edge))
    end
    return choose(1, #tensors, 0)
  end)
end

operators.Split = function(n)
  local X, outputs = n:x(1), #n.node.outputs
  local axis = n:axis(n:int("axis", 0), #X.shape)
  local extent, parts = X.shape[axis], nil
  if n:has(2) then parts = n:list(2)
  elseif n:has_attribute "split" then parts = n:ints "split"
  else
    local many = n:int("num_outputs", outputs)
    if many ~= outputs then n:fail("num_outputs is %d, and it has %d", many, outputs) end
    local each = (extent + many - 1) // many
    parts = {}
    for i = 1, many do parts[i] = math.max(0, math.min(each, extent - (i - 1) * each)) end
    if n.opset < 18 and extent % many ~= 0 then n:fail("extent %d is not divided by %d", extent, many) end
  end
  local sum, results = 0, {}
  for _, part in ipairs(shape_of(n, parts)) do sum = part > extent and math.huge or sum + part end
  if sum ~= extent or #parts ~= outputs then
    n:fail("parts of %s do not make %d outputs of an extent of %d", common.text(parts), outputs, extent)
  end
  local from = 0
  for k, part in ipairs(parts) do
    local shape, first = copy_of(X.shape), from
    shape[axis] = part
    results[k] = compute(shape, X.type, function(i)
      local at = copy_of(i)
      at[axis] = i[axis] + first
      return X[at]
    end)
    from = from + part
  end
  return table.unpack(results)
end

operators.Slice = function(n)
  local X = n:x(1)
  local starts, ends, all = n:ints_of(2, "starts"), n:ints_of(3, "ends"), {}
  for d = 1, #starts do all[d] = d - 1 end
  local axes = n:has(4) and n:list(4) or n:ints("axes", all)
  local steps = n:has(5) and n:list(5) or {}
  local shape, first, by = copy_of(X.shape), {}, {}
  if #starts ~= #ends or #axes ~= #starts then
    n:fail("it has %d starts, %d ends and %d axes", #starts, #ends, #axes)
  end
  for k, axis in ipairs(axes) do
    local d, step = n:axis(axis, #X.shape), steps[k] or 1
    local extent = X.shape[d]
    if step == 0 then n:fail "a step is 0" end
    local function place(at, low, high) return math.max(low, math.min(at < 0 and at + extent or at, high)) end
    local low, high = step > 0 and 0 or -1, step > 0 and extent or extent - 1
    local from, to = place(starts[k], step > 0 and 0 or 0, high), place(ends[k], low, high)
    if step < 0 and ends[k] < -extent then to = -1 end
    shape[d] = math.max(0, step > 0 and (to - from + step - 1) // step or (from - to - step - 1) // -step)
    if extent == 0 then shape[d] = 0 end
    first[d], by[d] = from, step
  end
  return compute(shape, X.type, function(i)
    local at = copy_of(i)
    for d, from in pairs(first) do at[d] = i[d] * by[d] + from end
    return X[at]
  end)
end

operators.DynamicSlice = operators.Slice

-- ---- Padded ------------------------------------------------------------------------------------------------------

-- The first place of an axis that pads below 0 leave, and how many they do; shape: with the pads.
local function kept(extent, before, shape)
  local first, after = math.max(-before, 0), shape - before - extent
  return first, extent - first - math.max(-after, 0)
end

-- The element of X at an index that may lie outside of it, by mode; otherwise: what is there where it is not wrapped.
local function padded(X, shape, before, mode, otherwise)
  return compute(shape, X.type, function(i)
    local at, inside = {}, {}
    for d, extent in ipairs(X.shape) do
      local x = common.behind(i[d], before[d])
      if before[d] <= 0 and shape[d] - before[d] <= extent then at[d] = x
      elseif mode == "constant" then
        at[d] = x
        if before[d] > 0 then inside[#inside + 1] = te.ge(x, 0) end
        if shape[d] - before[d] > extent then inside[#inside + 1] = te.lt(x, extent) end
      elseif mode == "edge" then at[d] = te.maximum(te.minimum(x, extent - 1), 0)
      elseif mode == "wrap" then -- what is left where it is cropped
        local first, left = kept(extent, before[d], shape[d])
        at[d] = te.floormod(x - first, left) + first
      elseif extent == 1 then at[d] = 0
      else -- reflected at both edges, as often as it takes
        local period = 2 * (extent - 1)
        local y = te.floormod(x, period)
        at[d] = te.minimum(te.maximum(te.minimum(y, period - y), 0), extent - 1)
      end
    end
    if #inside == 0 then return X[at] end
    return te.if_then_else(te.all(table.unpack(inside)), X[at], otherwise())
  end)
end
common.padded = padded

operators.Pad = function(n)
  local X, mode = n:x(1), n:text("mode", "constant")
  if mode ~= "constant" and mode ~= "edge" and mode ~= "reflect" and mode ~= "wrap" then
    n:fail("mode `%s` is not known", mode)
  end
  local pads, rank = n:ints_of(2, "pads"), #X.shape
  local all = {}
  for d = 1, rank do all[d] = d - 1 end
  local axes = n:has(4) and n:list(4) or all
  if #pads ~= 2 * #axes then n:fail("it has %d pads for %d axes", #pads, #axes) end
  local before, shape = {}, copy_of(X.shape)
  for d = 1, rank do before[d] = 0 end
  for k, axis in ipairs(axes) do
    local d = n:axis(axis, rank)
    before[d], shape[d] = pads[k], shape[d] + pads[k] + pads[k + #axes]
    local left = X.shape[d]
    if mode == "wrap" then left = select(2, kept(left, before[d], shape[d])) end
    if left <= 0 and mode ~= "constant" and shape[d] > 0 then
      n:fail("nothing is there to be repeated along axis %d", axis)
    end
  end
  check_count(n, shape_of(n, shape))
  local value
  if n:has(3) then
    local V = n:x(3)
    if count(V.shape) ~= 1 then n:fail("its value has %d elements, not 1", count(V.shape)) end
    value = function() return V[unfold(0, V.shape)] end
  else
    local x = n:float("value", 0.0)
    value = function() return te.const(common.is_float(X.type) and x or math.tointeger(x) or 0, X.type) end
  end
  return padded(X, shape, before, mode, value)
end

operators.CenterCropPad = function(n)
  local X, target = n:x(1), n:list(2)
  local all = {}
  for d = 1, #X.shape do all[d] = d - 1 end
  local axes, before, shape = n:ints("axes", all), {}, copy_of(X.shape)
  if #axes ~= #target then n:fail("it has %d extents for %d axes", #target, #axes) end
  for d = 1, #X.shape do before[d] = 0 end
  for k, axis in ipairs(axes) do
    local d = n:axis(axis, #X.shape)
    local extra = target[k] - X.shape[d]
    shape[d], before[d] = target[k], extra > 0 and extra // 2 or -((-extra) // 2)
  end
  return padded(X, shape_of(n, shape), before, "constant",
                function() return te.const(common.is_float(X.type) and 0.0 or 0, X.type) end)
end

-- ---- By indices that are data ------------------------------------------------------------------------------------

operators.Gather = function(n)
  local X, I, axis = n:x(1), n:x(2), n:axis(n:int("axis", 0), n:rank(1))
  local extent, shape = X.shape[axis], {}
  n:check_range(2, -extent, extent - 1)
  for d = 1, axis - 1 do shape[d] = X.shape[d] end
  table.move(I.shape, 1, #I.shape, axis, shape)
  table.move(X.shape, axis + 1, #X.shape, axis + #I.shape, shape)
  return compute(shape, X.type, function(i)
    local at = table.move(i, 1, axis - 1, 1, {})
    at[axis] = common.index(I[table.move(i, axis, axis + #I.shape - 1, 1, {})], extent)
    return X[table.move(i, axis + #I.shape, #i, axis + 1, at)]
  end)
end

-- Of GatherElements and ScatterElements: indices I along the axis of X, an element each.
local function check_elements(n, X, I, axis)
  if #I.shape ~= #X.shape then n:fail("its inputs have %d and %d dimensions", #X.shape, #I.shape) end
  for d, extent in ipairs(I.shape) do
    if d ~= axis and extent > X.shape[d] then
      n:fail("extent %d of its indices is %d, past %d", d, extent, X.shape[d])
    end
  end
  n:check_range(2, -X.shape[axis], X.shape[axis] - 1)
end

operators.GatherElements = function(n)
  local X, I, axis = n:x(1), n:x(2), n:axis(n:int("axis", 0), n:rank(1))
  check_elements(n, X, I, axis)
  return compute(I.shape, X.type, function(i)
    local at = copy_of(i)
    at[axis] = common.index(I[i], X.shape[axis])
    return X[at]
  end)
end
operators.GatherND = function(n)
  local X, I, batch = n:x(1), n:x(2), n:int("batch_dims", 0)
  local deep = I.shape[#I.shape] or n:fail "its indices are a scalar"
  if batch < 0 or batch >= #I.shape or batch + deep > #X.shape then
    n:fail("indices of %d dimensions do not fit %d", deep, #X.shape - batch)
  end
  local shape = table.move(I.shape, 1, #I.shape - 1, 1, {})
  table.move(X.shape, batch + deep + 1, #X.shape, #I.shape, shape)
  n:check_places(2, X.shape, batch + 1)
  for d = 1, batch do
    if I.shape[d] ~= X.shape[d] then n:fail("extent %d is %d and %d", d, X.shape[d], I.shape[d]) end
  end
  return compute(shape, X.type, function(i)
    local at = table.move(i, 1, batch, 1, {})
    for k = 1, deep do
      local where = table.move(i, 1, #I.shape - 1, 1, {})
      where[#I.shape] = te.const(k - 1, "int32")
      at[batch + k] = common.index(I[where], X.shape[batch + k])
    end
    return X[table.move(i, #I.shape, #i, batch + deep + 1, at)]
  end)
end

-- Elements that updates name are changed: `hits(i, u)` says whether update u, a list of indices, is of element i. Of
-- several that replace one, the last holds.
local COMBINE = {add = "sum", mul = "prod", max = "max", min = "min"}
local function scattered(n, X, U, updates, hits, update_at)
  local how = n:text("reduction", "none")
  if how ~= "none" and not COMBINE[how] then n:fail("reduction `%s` is not known", how) end
  local extents = updates
  if count(U.shape) == 0 then return common.copy(X) end
  if how == "none" then
    local last = common.reduce(X.shape, extents, te.reducer(te.maximum, function(t) return te.const(-1, t) end, "last"),
      function(i, u)
      local vars = {}
      for k = 1, #extents do vars[k] = u[k] + 0 end
      return te.select(hits(i, vars), te.cast(fold(vars, extents) + 0, "int32"), te.const(-1, "int32"))
    end)
    return compute(X.shape, X.type, function(i)
      local at = te.minimum(te.maximum(last[i], 0), count(extents) - 1)
      return te.select(te.ge(last[i], 0), U[update_at(i, unfold(at, extents))], X[i])
    end)
  end
  local t = common.wide_type(X.type)
  local neutral = {add = common.is_float(t) and 0.0 or 0, mul = common.is_float(t) and 1.0 or 1}
  local function none() return neutral[how] and te.const(neutral[how], t)
    or common.is_float(t) and te.const(how == "max" and -math.huge or math.huge, t)
                               or (how == "max" and te.min_value or te.max_value)(t) end
  local f =
    {add = function(x, y) return x + y end, mul = function(x, y) return x * y end, max = te.maximum, min = te.minimum}
  local all = common.reduce(X.shape, extents, te.reducer(f[how], none, how), function(i, u)
    local vars = {}
    for k = 1, #extents do vars[k] = u[k] + 0 end
    return te.select(hits(i, vars), common.wide(U[update_at(i, vars)]), none())
  end)
  return compute(X.shape, X.type, function(i) return f[how](common.wide(X[i]), all[i]) end)
end

operators.ScatterElements = function(n)
  local X, I, U, axis = n:x(1), n:x(2), n:x(3), n:axis(n:int("axis", 0), n:rank(1))
  if common.text(I.shape) ~= common.text(U.shape) then
    n:fail("indices of %s and updates of %s", common.text(I.shape), common.text(U.shape))
  end
  check_elements(n, X, I, axis)
  -- Along the axis all updates are looked at; along the others the one of the element, where there is one.
  local function at(i, u)
    local where = {}
    for d, extent in ipairs(I.shape) do
      where[d] = d == axis and u[1] or extent < X.shape[d] and te.minimum(i[d], extent - 1) or i[d]
    end
    return where
  end
  return scattered(n, X, U, {I.shape[axis]}, function(i, u)
    local inside = {te.eq(common.index(I[at(i, u)], X.shape[axis]), i[axis])}
    for d, extent in ipairs(I.shape) do
      if d ~= axis and extent < X.shape[d] then inside[#inside + 1] = te.lt(i[d], extent) end
    end
    return te.all(table.unpack(inside))
  end, at)
end
operators.Scatter = operators.ScatterElements

operators.ScatterND = function(n)
  local X, I, U = n:x(1), n:x(2), n:x(3)
  local deep = I.shape[#I.shape] or n:fail "its indices are a scalar"
  if deep > #X.shape then n:fail("indices of %d dimensions do not fit %d", deep, #X.shape) end
  local updates = table.move(I.shape, 1, #I.shape - 1, 1, {})
  local expected = table.move(X.shape, deep + 1, #X.shape, #updates + 1, copy_of(updates))
  if common.text(expected) ~= common.text(U.shape) then
    n:fail("updates of %s, not %s", common.text(U.shape), common.text(expected))
  end
  n:check_places(2, X.shape, 1)
  return scattered(n, X, U, #updates == 0 and {1} or updates, function(i, u)
    local same = {}
    for k = 1, deep do
      local where = table.move(u, 1, #updates, 1, {})
      where[#updates + 1] = te.const(k - 1, "int32")
      same[k] = te.eq(common.index(I[where], X.shape[k]), i[k])
    end
    return te.all(table.unpack(same))
  end, function(i, u) return table.move(i, deep + 1, #i, #updates + 1, table.move(u, 1, #updates, 1, {})) end)
end

operators.OneHot = function(n)
  local I, V, depth = n:x(1), n:x(3), math.tointeger(n:scalar(2)) or n:fail "its depth is no integer"
  local axis, shape = n:axis(n:int("axis", -1), #I.shape + 1), copy_of(I.shape)
  table.insert(shape, axis, depth)
  return compute(shape, V.type, function(i)
    local at = copy_of(i)
    table.remove(at, axis)
    local index = common.is_float(I.type) and te.cast(I[at], "int64") or I[at]
    index = te.select(te.lt(index, 0), index + depth, index)
    return te.select(te.eq(index, te.cast(i[axis], index.type)), V[{1}], V[{0}])
  end)
end

operators.Trilu = function(n)
  local X, k, upper = n:x(1), n:has(2) and n:scalar(2) or 0, n:flag("upper", 1)
  local rank = #X.shape
  if rank < 2 then n:fail("its input has %d dimensions", rank) end
  k = math.max(-(1 << 30), math.min(k, 1 << 30))
  return compute(X.shape, X.type, function(i)
    local kept = (upper and te.ge or te.le)(i[rank] - i[rank - 1], k)
    if X.type == "bool" then return te.all(kept, X[i]) end
    return te.select(kept, X[i], te.const(common.is_float(X.type) and 0.0 or 0, X.type))
  end)
end

operators.DepthToSpace = function(n)
  local X, b = n:x(1), n:int "blocksize"
  local s = X.shape
  if #s ~= 4 or b < 1 or b > 1 << 20 or s[2] % (b * b) ~= 0 then n:fail("%s has no blocks of %d", common.text(s), b) end
  local depth, by_column = s[2] // (b * b), n:text("mode", "DCR") == "DCR"
  return compute({s[1], depth, s[3] * b, s[4] * b}, X.type, function(i)
    local block = te.floormod(i[3], b) * b + te.floormod(i[4], b)
    return X[{i[1], by_column and block * depth + i[2] or i[2] * (b * b) + block, te.floordiv(i[3], b),
              te.floordiv(i[4], b)}]
  end)
end
operators.SpaceToDepth = function(n)
  local X, b = n:x(1), n:int "blocksize"
  local s = X.shape
  if #s ~= 4 or b < 1 or b > 1 << 20 or s[3] % b ~= 0 or s[4] % b ~= 0 then
    n:fail("%s has no blocks of %d", common.text(s), b)
  end
  local by_column = n:text("mode", "DCR") == "DCR"
  return compute({s[1], s[2] * b * b, s[3] // b, s[4] // b}, X.type, function(i)
    local block = by_column and te.floordiv(i[2], s[2]) or te.floormod(i[2], b * b)
    return X[{i[1], by_column and te.floormod(i[2], s[2]) or te.floordiv(i[2], b * b), i[3] * b + te.floordiv(block, b),
              i[4] * b + te.floormod(block, b)}]
  end)
end

operators.ReverseSequence = function(n)
  local X, L, time, batch = n:x(1), n:x(2), n:int("time_axis", 0) + 1, n:int("batch_axis", 1) + 1
  if time > 2 or batch > 2 or time < 1 or batch < 1 or time == batch then
    n:fail "its axes are 0 and 1, in either order"
  end
  return compute(X.shape, X.type, function(i)
    local length, at = te.cast(te.minimum(L[i[batch]], X.shape[time]), "int32"), copy_of(i)
    at[time] = te.select(te.lt(i[time], length), te.maximum(te.minimum(length - 1 - i[time], X.shape[time] - 1), 0),
                         i[time])
    return X[at]
  end)
end

return operators
