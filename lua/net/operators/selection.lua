-- Elements that are chosen by values which must be known, and caches that are written at a place.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}
local compute = common.compute

local function ints(list) return ms.array({#list}, "int64", list) end

-- Those whose condition holds, of all elements or along an axis; which ones is a table.
operators.Compress = function(n)
  local X, shape, chosen = n:x(1), n:shape(1), {}
  local axis = n:has_attribute "axis" and n:axis(n:int "axis", #shape) or nil
  local extent, conditions = axis and shape[axis] or common.count(shape), n:list(2)
  if #conditions > extent then n:fail("%d conditions for %d elements", #conditions, extent) end
  for k, c in ipairs(conditions) do
    if c ~= 0 and c ~= false then chosen[#chosen + 1] = k - 1 end
  end
  local made = axis and table.move(shape, 1, #shape, 1, {}) or {#chosen}
  made[axis or 1] = #chosen
  if #chosen == 0 then return compute(made, X.type, function() end) end
  local T = n:table(ms.array({#chosen}, "int32", chosen))
  return compute(made, X.type, function(i)
    local at = te.maximum(te.minimum(T[{i[axis or 1]}], extent - 1), 0)
    if not axis then return X[common.unfold(at, shape)] end
    local own = table.move(i, 1, #i, 1, {})
    own[axis] = at
    return X[own]
  end)
end

-- Compares lists of numbers one by one; NaN comes last.
local function less(a, b)
  for k, x in ipairs(a) do
    local y = b[k]
    if x ~= y then
      if x ~= x then return false end
      if y ~= y then return true end
      return x < y
    end
  end
  return false
end

-- Different elements of what is known, or different slices of it along an axis: they, where each stands first, which of
-- them each is, and how often.
operators.Unique = function(n)
  local array, shape = n:array(1), n:shape(1)
  local axis = n:has_attribute "axis" and n:axis(n:int "axis", #shape) or nil
  local values, before, extent, after = array:tolist(), 1, common.count(shape), 1
  if axis then before, extent, after = common.count(shape, 1, axis - 1), shape[axis], common.count(shape, axis + 1) end
  local groups, by_key = {}, {}
  local inverse = {}
  for k = 0, extent - 1 do
    local slice = {}
    for b = 0, before - 1 do
      for a = 0, after - 1 do slice[#slice + 1] = values[(b * extent + k) * after + a + 1] end
    end
    local parts = {}
    for p, x in ipairs(slice) do
      parts[p] = x == 0 and "0" or string.format(math.type(x) == "integer" and "%d" or "%a", x)
    end
    local key = table.concat(parts, " ")
    if not by_key[key] then
      by_key[key] = {slice = slice, first = k, count = 0}
      groups[#groups + 1] = by_key[key]
    end
    by_key[key].count, inverse[k + 1] = by_key[key].count + 1, by_key[key]
  end
  if n:flag("sorted", n.node.domain == "com.microsoft" and 0 or 1) then
    table.sort(groups, function(a, b)
      if less(a.slice, b.slice) then return true end
      return not less(b.slice, a.slice) and a.first < b.first
    end)
  end
  local firsts, counts, list = {}, {}, {}
  for k, group in ipairs(groups) do
    group.place, firsts[k], counts[k] = k - 1, group.first, group.count
    for b = 0, before - 1 do
      for a = 0, after - 1 do list[(b * #groups + k - 1) * after + a + 1] = group.slice[b * after + a + 1] end
    end
  end
  for k, group in ipairs(inverse) do inverse[k] = group.place end
  local made = axis and table.move(shape, 1, #shape, 1, {}) or {#groups}
  made[axis or 1] = #groups
  return ms.array(made, n:type(1), list), ints(firsts), ints(inverse), ints(counts)
end

-- A cache with what is new from a place on that each batch has; past its end nothing is written, or it goes on at the
-- start.
operators.TensorScatter = function(n)
  local X, U, W = n:x(1), n:x(2), n:has(3) and n:x(3) or nil
  local axis, circular = n:axis(n:int("axis", -2), #X.shape),
    n:choice("mode", "linear", "linear", "circular") == "circular"
  local extent, new = X.shape[axis], U.shape[axis]
  for d, e in ipairs(X.shape) do
    if #U.shape ~= #X.shape or d ~= axis and U.shape[d] ~= e or d == axis and U.shape[d] > e then
      n:fail("%s is written to %s", common.text(U.shape), common.text(X.shape))
    end
  end
  if axis == 1 then n:fail "the first axis is that of batches" end
  if W and common.text(W.shape) ~= common.text {X.shape[1]} then
    n:fail("places of %s for a batch of %d", common.text(W.shape), X.shape[1])
  end
  if W then n:check_range(3, 0, circular and extent - 1 or extent - new) end
  if new == 0 then return common.copy(X) end
  return compute(X.shape, X.type, function(i)
    local at = table.move(i, 1, #i, 1, {})
    local from = W and te.cast(te.maximum(te.minimum(W[{i[1]}], extent), 0), "int32") or te.const(0, "int32")
    local place = i[axis] - from
    if circular then place = te.floormod(place, extent) end
    at[axis] = te.maximum(te.minimum(place, new - 1), 0)
    local is_new = te.all(te.ge(place, 0), te.lt(place, new))
    if X.type == "bool" then return te.any(te.all(is_new, U[at]), te.all(te.not_(is_new), X[i])) end
    return te.select(is_new, U[at], X[i])
  end)
end

return operators
