-- A matrix product in float32, C = A x B.
--   msched tune lua/examples/gemm.lua [-- M N K]
local ms = require "msched"
local te = ms.te

local M, N, K = 1024, 1024, 1024
if select("#", ...) > 0 then
  local given = {...}
  if #given ~= 3 then error("gemm.lua takes three extents: M N K") end
  M, N, K = math.tointeger(given[1]), math.tointeger(given[2]), math.tointeger(given[3])
end

local A, B = te.placeholder({M, K}, "float32", "A"), te.placeholder({K, N}, "float32", "B")
local k = te.reduce_axis(K, "k")
local C = te.compute({M, N}, function(i, j) return te.sum(A[{i, k}] * B[{k, j}], k) end, "C")

return {te.func("gemm", {A, B, C})}
