-- Operators that move elements and compute nothing.
local ms = msched
local te, common = ms.te, ms.load "lua.lib.ops.common"
local ops = {}

-- The tensor with its dimensions in another order: dimension d of the result is dimension order[d] of X; reversed
-- without an order.
function ops.transpose(X, order, name)
  common.check_tensor("transpose", "X", X)
  local rank, from, shape = #X.shape, {}, {}
  if order == nil then
    order = {}
    for d = 1, rank do order[d] = rank + 1 - d end
  end
  if not common.is_list(order) or #order ~= rank then
    common.fail("transpose", "the order is a list of the %d dimensions", rank)
  end
  common.axes("transpose", order, rank) -- each once
  for d, axis in ipairs(order) do
    from[d] = common.axis("transpose", axis, rank)
    shape[d] = X.shape[from[d]]
  end
  return te.compute(shape, function(...)
    local at = {}
    for d, index in ipairs {...} do at[from[d]] = index end
    return X[at]
  end, name or "transpose")
end

-- The shape with the extent that is -1 found, if there is one.
local function whole_shape(X, shape)
  local elements, known, open = 1, 1, nil
  for _, extent in ipairs(X.shape) do elements = elements * extent end
  for d, extent in ipairs(shape) do
    if extent == -1 and not open then open = d
    else known = math.min(known * common.check_integer("reshape", "extent " .. d, extent, 1), elements + 1) end
  end
  local whole = {table.unpack(shape)}
  if open then whole[open] = elements // known end
  if elements == 0 or known * (open and whole[open] or 1) ~= elements then
    common.fail("reshape", "%s has %d elements, which %s cannot hold", table.concat(X.shape, "x"), elements,
                table.concat(shape, "x"))
  end
  return whole
end

-- The smallest runs of dimensions of `from` and `to` whose products are equal: a list of {from's first, last, to's
-- first, last}. Dimensions outside a run do not mix with it, and one that stays as it is is indexed by itself.
local function runs_of(from, to)
  local runs, i, j = {}, 1, 1
  while i <= #from or j <= #to do
    local first_i, first_j, a, b = i, j, from[i] or 1, to[j] or 1
    i, j = i + 1, j + 1
    while a ~= b do
      if a < b then a, i = a * from[i], i + 1 else b, j = b * to[j], j + 1 end
    end
    runs[#runs + 1] = {first_i, math.min(i - 1, #from), first_j, math.min(j - 1, #to)}
  end
  return runs
end

-- Sets at[i] for the dimensions of X that a run has, from the indices of the result; an extent of 1 takes no part.
local function index_run(at, from, run, to, indices)
  local first_i, last_i, first_j, last_j = table.unpack(run)
  local flat = 0
  for j = first_j, last_j do
    if to[j] > 1 then flat = flat == 0 and indices[j] or flat * to[j] + indices[j] end
  end
  local rest = 1 -- the product of the extents that are still to be indexed
  for i = first_i, last_i do rest = rest * from[i] end
  for i = last_i, first_i, -1 do
    rest = rest // from[i]
    at[i] = from[i] == 1 and 0 or rest == 1 and flat or te.floormod(flat, from[i])
    if from[i] > 1 and rest > 1 then flat = te.floordiv(flat, from[i]) end
  end
end

-- The same elements in the same order, in another shape; one extent may be -1, for what is left.
function ops.reshape(X, shape, name)
  common.check_tensor("reshape", "X", X)
  if not common.is_list(shape) then common.fail("reshape", "the shape is a list of extents") end
  shape = whole_shape(X, shape)
  local runs = runs_of(X.shape, shape)
  return te.compute(shape, function(...)
    local at = {}
    for _, run in ipairs(runs) do index_run(at, X.shape, run, shape, {...}) end
    return X[at]
  end, name or "reshape")
end

-- One after another along a dimension, the last unless it is given.
function ops.concat(tensors, axis, name)
  if not common.is_list(tensors) or #tensors == 0 then common.fail("concat", "a list of tensors is expected") end
  common.check_tensor("concat", "tensor 1", tensors[1])
  local a, total = common.axis("concat", axis or -1, #tensors[1].shape), 0
  for i, X in ipairs(tensors) do
    local expected = {table.unpack(tensors[1].shape)}
    expected[a] = false
    common.check_shape("concat", "tensor " .. i, X, expected)
    if X.type ~= tensors[1].type then
      common.fail("concat", "tensor %d is of %s, not %s", i, X.type, tensors[1].type)
    end
    total = total + X.shape[a]
  end
  local shape = {table.unpack(tensors[1].shape)}
  shape[a] = total
  return te.compute(shape, function(...)
    local indices, value, start = {...}, nil, total
    for i = #tensors, 1, -1 do
      start = start - tensors[i].shape[a]
      local at = {table.unpack(indices)}
      at[a] = start == 0 and indices[a] or indices[a] - start
      local element = tensors[i][at]
      value = value and te.if_then_else(te.lt(indices[a], start + tensors[i].shape[a]), element, value) or element
    end
    return value
  end, name or "concat")
end

-- So many elements of a value (0) before and after each dimension: lists of numbers.
function ops.pad(X, before, after, options)
  common.check_tensor("pad", "X", X)
  local o = common.options("pad", options, {value = common.zero(X.type), name = "pad"})
  local rank, shape, any = #X.shape, {}, false
  before, after = common.each("pad", "before", before, rank, 0), common.each("pad", "after", after, rank, 0)
  for d, extent in ipairs(X.shape) do
    shape[d] = before[d] + extent + after[d]
    any = any or shape[d] > extent
  end
  if not any then return X end
  return te.compute(shape, function(...)
    local at, inside = {}, {}
    for d, index in ipairs {...} do
      at[d] = before[d] == 0 and index or index - before[d]
      if before[d] > 0 then inside[#inside + 1] = te.ge(index, before[d]) end
      if after[d] > 0 then inside[#inside + 1] = te.lt(index, before[d] + X.shape[d]) end
    end
    return te.if_then_else(te.all(table.unpack(inside)), X[at], o.value)
  end, o.name)
end

-- Slices of X along a dimension (the first), which a tensor of integers names: its shape stands in the place of that
-- dimension. A number that is no index of X is taken for the nearest that is.
function ops.gather(X, I, axis, name)
  common.check_tensor("gather", "X", X)
  common.check_tensor("gather", "I", I)
  if not I.type:find "^u?int" then common.fail("gather", "I is of %s; integers are expected", I.type) end
  local a = common.axis("gather", axis or 1, #X.shape)
  if X.shape[a] == 0 then common.fail("gather", "X has no slices along dimension %d", a) end
  local shape = {table.unpack(X.shape, 1, a - 1)}
  table.move(I.shape, 1, #I.shape, a, shape)
  table.move(X.shape, a + 1, #X.shape, #shape + 1, shape)
  return te.compute(shape, function(...)
    local indices = {...}
    local at = {table.unpack(indices, 1, a - 1)}
    at[a] = te.minimum(te.maximum(I[{table.unpack(indices, a, a + #I.shape - 1)}], 0), X.shape[a] - 1)
    table.move(indices, a + #I.shape, #indices, a + 1, at)
    return X[at]
  end, name or "gather")
end

return ops
