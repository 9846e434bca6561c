-- Determinants and inverses by Gauss's and Jordan's elimination: a step a column, which is the same function each time.
local ms = msched
local te, common, element_types = ms.te, ms.load "lua.net.common", ms.load "lua.lib.element_types"
local operators = {}
local compute, reduce, wide = common.compute, common.reduce, common.wide

local MOST = 1024 -- rows of a matrix

-- A column: the row below that has its largest element is the pivot, changes places with the column's own, and is
-- subtracted from all others so that their elements there are 0. Inputs: {batch, rows, columns}, the column's number,
-- the determinant so far; gives both again.
operators["msched.Elimination"] = function(n)
  local A, K, D = n:x(1), n:x(2), n:x(3)
  local s, t = A.shape, A.type
  local rows, column = s[2], te.maximum(te.minimum(K[{}], s[2] - 1), 0)
  local larger = te.reducer(function(x, y)
    local keeps = te.any(te.gt(x[2], y[2]), te.all(te.eq(x[2], y[2]), te.le(x[1], y[1])))
    return {te.select(keeps, x[1], y[1]), te.select(keeps, x[2], y[2])}
  end, function() return {te.max_value "int32", te.const(-2.0, t)} end, "pivot")
  local place = reduce({s[1]}, {rows}, larger, function(i, r)
    local size = te.abs(A[{i[1], r[1], column}])
    return {r[1] + 0, te.select(te.ge(r[1], column), size, te.const(-1.0, t))}
  end)
  local function row_of(b) return te.maximum(te.minimum(place[{b}], rows - 1), 0) end
  local head = compute({s[1], s[3]}, t, function(i) return A[{i[1], row_of(i[1]), i[2]}] end)
  local function pivot(b) return head[{b, column}] end
  local made = compute(s, t, function(i)
    local own = te.eq(i[2], column)
    local from = te.select(te.eq(i[2], row_of(i[1])), column, i[2])
    local factor = A[{i[1], from, column}] / pivot(i[1])
    return te.select(own, head[{i[1], i[3]}] / pivot(i[1]), A[{i[1], from, i[3]}] - factor * head[{i[1], i[3]}])
  end)
  return made, compute(D.shape, t, function(i)
    local swapped = te.ne(row_of(i[1]), column)
    local product = D[i] * te.select(swapped, -1.0 * pivot(i[1]), pivot(i[1]))
    return te.select(te.eq(D[i], 0.0), te.const(0.0, t), product)
  end)
end
-- {batch, rows, columns} of any batch, in at least float32; with the unit matrix beside it. Of what is given back: the
-- columns behind the first rows.
operators["msched.BesideUnit"] = function(n)
  local X, unit = n:x(1), n:flag "unit"
  local rows, s = X.shape[#X.shape], X.shape
  local shape = {common.count(s, 1, #s - 2), rows, unit and 2 * rows or rows}
  return compute(shape, common.wide_type(X.type), function(i)
    local at = common.unfold(i[1], table.move(s, 1, #s - 2, 1, {}))
    at[#s - 1], at[#s] = i[2], unit and te.minimum(i[3], rows - 1) or i[3]
    if not unit then return wide(X[at]) end
    local one, none = te.const(1.0, common.wide_type(X.type)), te.const(0.0, common.wide_type(X.type))
    return te.select(te.lt(i[3], rows), wide(X[at]), te.select(te.eq(i[3] - rows, i[2]), one, none))
  end)
end

-- The names of the eliminated matrices, and of their determinants, both of one batch.
local function eliminated(n, unit)
  local s, rank = n:shape(1), n:rank(1)
  local rows = s[rank]
  if rank < 2 or s[rank - 1] ~= rows or rows < 1 or rows > MOST then
    n:fail("%s is not of square matrices of 1 to %d rows", common.text(s), MOST)
  end
  if not common.is_float(n:type(1)) then n:fail("its input is of %s; floats are expected", n:type(1)) end
  local batch = common.count(s, 1, rank - 2)
  local A = n:add("BesideUnit", {n.node.inputs[1]}, {unit = unit and 1 or 0}, 1, "msched")
  local D = n:constant(ms.array({batch}, common.wide_type(n:type(1)), 1.0))
  for k = 1, rows do
    A, D = n:add("Elimination", {A, n:constant(ms.array({}, "int32", {k - 1}), true), D}, {}, 2, "msched")
  end
  return A, D, s, rows
end
local function ints(n, list) return n:constant(ms.array({#list}, "int64", list)) end

operators.Det = function(n)
  local _, D, s = eliminated(n, false)
  local whole = n:add("Reshape", {D, ints(n, table.move(s, 1, #s - 2, 1, {}))}, {allowzero = 1})
  return n:gives {n:add("Cast", {whole}, {to = element_types.of[n:type(1)].onnx})}
end
operators["com.microsoft.Inverse"] = function(n)
  local A, _, s, rows = eliminated(n, true)
  local behind = n:add("Slice", {A, ints(n, {rows}), ints(n, {2 * rows}), ints(n, {2})},
                       {starts = {rows}, ends = {2 * rows}, axes = {2}})
  local whole = n:add("Reshape", {behind, ints(n, s)}, {allowzero = 1})
  return n:gives {n:add("Cast", {whole}, {to = element_types.of[n:type(1)].onnx})}
end

return operators
