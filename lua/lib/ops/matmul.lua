-- Matrix products. Sums are held, and given, in `accumulate`: int32 for integers of 8 and 16 bits, float32 for short
-- floats, otherwise the type of the first operand.
local ms = msched
local te, common = ms.te, ms.load "lua.lib.ops.common"
local ops = {}

local AXES = {"i", "j"}

-- The last two dimensions are matrices, those before them a batch, which A and B have in common; with `group`, so many
-- matrices of A in a row have one of B.
local function product(what, A, B, options)
  local o = common.options(what, options, {transpose_a = false, transpose_b = false, group = 1,
                                           accumulate = common.sums(A.type), name = "C"})
  common.check_integer(what, "group", o.group, 1)
  common.check_flags(what, o, "transpose_a transpose_b")
  local rank = #A.shape
  if rank == 2 and o.group > 1 then common.fail(what, "group is %d, but there is no batch", o.group) end
  local m, k = A.shape[rank - 1], A.shape[rank]
  if o.transpose_a then m, k = k, m end
  local inner, n = B.shape[rank - 1], B.shape[rank]
  if o.transpose_b then inner, n = n, inner end
  if inner ~= k then common.fail(what, "A has %d elements to sum over, B %d", k, inner) end
  local shape = {table.unpack(A.shape, 1, rank - 2)}
  for d, extent in ipairs(shape) do
    local times = d == rank - 2 and o.group or 1
    if B.shape[d] * times ~= extent then
      common.fail(what, "dimension %d of A is %d, that of B %d%s", d, extent, B.shape[d],
                  times > 1 and string.format(", each for %d of A", times) or "")
    end
  end
  shape[rank - 1], shape[rank] = m, n
  local r, axes = te.reduce_axis(k, "k"), {}
  for d = 1, rank - 2 do axes[d] = rank == 3 and "b" or "b" .. d - 1 end
  table.move(AXES, 1, 2, rank - 1, axes)
  return te.compute(shape, function(...)
    local at_a, at_b = {...}, {...}
    local i, j = at_a[rank - 1], at_b[rank]
    at_a[rank - 1], at_a[rank] = o.transpose_a and r or i, o.transpose_a and i or r
    if o.group > 1 then at_b[rank - 2] = at_b[rank - 2] // o.group end
    at_b[rank - 1], at_b[rank] = o.transpose_b and j or r, o.transpose_b and r or j
    return te.sum(te.cast(A[at_a], o.accumulate) * te.cast(B[at_b], o.accumulate), r)
  end, o.name, axes)
end

-- (m, k) x (k, n) -> (m, n); transpose_a: A is (k, m); transpose_b: B is (n, k).
function ops.matmul(A, B, options)
  common.check_tensor("matmul", "A", A, 2)
  common.check_tensor("matmul", "B", B, 2)
  return product("matmul", A, B, options)
end

-- The same of each matrix of a batch, whose dimensions come first; group: so many of A in a row have one of B.
function ops.batch_matmul(A, B, options)
  common.check_tensor("batch_matmul", "A", A)
  if #A.shape < 3 then
    common.fail("batch_matmul", "A has %d dimensions; a batch of matrices has 3 or more", #A.shape)
  end
  common.check_tensor("batch_matmul", "B", B, #A.shape)
  return product("batch_matmul", A, B, options)
end

-- X of (m, ci) and weights of (co, ci), as TVM and PyTorch keep them -> (m, co); bias of (co) is added if it is given.
function ops.dense(X, W, options)
  common.check_tensor("dense", "X", X, 2)
  local o = common.options("dense", options, {bias = false, accumulate = common.sums(X.type), name = "dense"})
  common.check_shape("dense", "W", W, {false, X.shape[2]})
  local Y = product("dense", X, W, {transpose_b = true, accumulate = o.accumulate, name = o.name})
  return o.bias and ms.load "lua.lib.ops.elementwise".bias_add(Y, o.bias) or Y
end

return ops
