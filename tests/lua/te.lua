-- Tensor expressions: what they become, what they refuse.
local ms = require "msched"
local te = ms.te

local function refuses(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "expected a refusal: " .. pattern)
  assert(tostring(message):find(pattern, 1, true), "another message: " .. tostring(message))
end

-- Every operator: compiled and interpreted alike.
local function agree(func, tolerance)
  return ms.build(func, {reference = func}):check {tolerance = tolerance or 0}
end

local A = te.placeholder({6, 10}, "float32", "A")
local k = te.reduce_axis(10, "k")
agree(te.func("sum", {A, (te.compute({6}, function(i) return te.sum(A[{i, k}], k) end, "S"))}))
agree(te.func("max", {A, (te.compute({6}, function(i) return te.max(A[{i, k}], k) end, "S"))}))
agree(te.func("min", {A, (te.compute({6}, function(i) return te.min(A[{i, k}], k) end, "S"))}))
agree(te.func("prod", {A, (te.compute({6}, function(i) return te.prod(A[{i, k}], k) end, "S"))}))
agree(te.func("elementwise", {A, (te.compute({6, 10}, function(i, j)
  return te.select(te.all(te.lt(i, 3), te.ge(j, 2)), A[{i, j}] * 2 - 1, te.maximum(A[{i, j}], 0) / 4)
end, "E"))}))
agree(te.func("math", {A, (te.compute({6, 10}, function(i, j) return te.exp(A[{i, j}]) + te.tanh(A[{i, j}]) + te.erf(A[{i, j}]) end, "M"))}), 1e-3)

-- Two outputs at once, and the index of the largest.
local index = te.compute({6, 10}, function(_, j) return te.cast(j, "int32") end, "index")
local where, value = te.compute({6}, function(i) return te.argmax({index[{i, k}], A[{i, k}]}, k) end, "best")
agree(te.func("argmax", {A, where, value}))

-- The same function twice is the same module.
local function gemm() return te.func("f", {A, (te.compute({6, 10}, function(i, j) return A[{i, j}] + 1 end, "B"))}) end
assert(gemm():hash() == gemm():hash())

refuses("extent 1 is 0", te.placeholder, {0, 3}, "float32", "Z")
refuses("extent 2 is -4", te.placeholder, {3, -4}, "float32", "Z")
refuses("no name", te.placeholder, {3}, "float32", "not a name")
refuses("has 2 dimensions, not 1", function() return te.compute({6}, function(i) return A[{i}] end) end)
refuses("is no parameter", te.func, "f", {(te.compute({6, 10}, function(i, j) return A[{i, j}] end, "B"))})
refuses("two parameters are named", te.func, "f", {A, A})
refuses("cast one of them", function()
  local H = te.placeholder({6, 10}, "float16", "H")
  return te.compute({6, 10}, function(i, j) return A[{i, j}] + H[{i, j}] end)
end)
print "te: ok"
