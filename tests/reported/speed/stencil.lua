-- A stencil of five points in float32, and an elementwise function: what bounds them is memory, whatever holds their
-- data.
--   msched tune stencil.lua --trials 2 --db s.db
local te = require "msched".te
local function stencil(n)
  local X = te.placeholder({n + 2, n + 2}, "float32", "X")
  return te.func("stencil_" .. n, {X, te.compute({n, n}, function(i, j)
    return (X[{i, j + 1}] + X[{i + 2, j + 1}] + X[{i + 1, j}] + X[{i + 1, j + 2}]) * 0.2 + X[{i + 1, j + 1}] * 0.2
  end, "Y")})
end
local A = te.placeholder({1 << 16}, "int16", "A")
return {stencil(2048), stencil(96),
        te.func("doubled", {A, te.compute({1 << 16}, function(i) return A[{i}] + A[{i}] end, "B")})}
