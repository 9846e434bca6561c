-- The parts of a convolution by Winograd's method, F(m x m, 3 x 3): windows of (m + 2) x (m + 2) that overlap by two
-- are transformed, multiplied by transformed weights, a matrix for each element of a window, and transformed back to m
-- x m. Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015, section 4; points 0, 1, -1, 2,
-- -2.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}
local compute, reduce = common.compute, common.reduce

-- By the extent of a tile: rows of a transform, of what is multiplied by them in order.
local INPUT = {
  [2] = {1, 0, -1, 0, 0, 1, 1, 0, 0, -1, 1, 0, 0, 1, 0, -1},
  [4] = {4, 0, -5, 0, 1, 0, 0, -4, -4, 1, 1, 0, 0, 4, -4, -1, 1, 0, 0, -2, -1, 2, 1, 0, 0, 2, -1, -2, 1, 0, 0, 4, 0, -5,
         0, 1},
}
local WEIGHTS = {
  [2] = {1, 0, 0, 1 / 2, 1 / 2, 1 / 2, 1 / 2, -1 / 2, 1 / 2, 0, 0, 1},
  [4] = {1 / 4, 0, 0, -1 / 6, -1 / 6, -1 / 6, -1 / 6, 1 / 6, -1 / 6, 1 / 24, 1 / 12, 1 / 6, 1 / 24, -1 / 12, 1 / 6, 0,
         0, 1},
}
local OUTPUT = {
  [2] = {1, 1, 1, 0, 0, 1, -1, -1},
  [4] = {1, 1, 1, 1, 1, 0, 0, 1, -1, 2, -2, 0, 0, 1, 1, 4, 4, 0, 0, 1, -1, 8, -8, 1},
}

local function table_of(n, lists, t)
  local list = lists[n:int "tile"] or n:fail("tiles of %d are not known", n:int "tile")
  return n:table(ms.array({#list}, t, list)) -- of one dimension: no weight to pack
end

-- {window, window, batch, tiles down, tiles across, channels} of an image: `tiles`, behind zeros as `before` has them.
operators["msched.WinogradInput"] = function(n)
  local X, B, m, tiles, before = n:x(1), table_of(n, INPUT, n:type(1)), n:int "tile", n:ints "tiles", n:ints "before"
  local a, s, t = m + 2, X.shape, X.type
  local inside = {tiles[1] * m + 2, tiles[2] * m + 2}
  local P = compute({s[1], inside[1], inside[2], s[2]}, t, function(i)
    local at, within = {i[1], i[4], i[2] - before[1], i[3] - before[2]}, {}
    for d = 1, 2 do
      if before[d] > 0 then within[#within + 1] = te.ge(i[d + 1], before[d]) end
      if before[d] + s[d + 2] < inside[d] then within[#within + 1] = te.lt(i[d + 1], before[d] + s[d + 2]) end
    end
    return #within == 0 and X[at] or te.if_then_else(te.all(table.unpack(within)), X[at], te.const(0.0, t))
  end)
  local rows = reduce({s[1], tiles[1], inside[2], a, s[2]}, {a}, te.sum, function(i, r)
    return P[{i[1], i[2] * m + r[1], i[3], i[5]}] * B[{i[4] * a + r[1]}]
  end)
  return reduce({a, a, s[1], tiles[1], tiles[2], s[2]}, {a}, te.sum, function(i, r)
    return rows[{i[3], i[4], i[5] * m + r[1], i[1], i[6]}] * B[{i[2] * a + r[1]}]
  end)
end

-- {elements of a window, in, out} of weights {out, in, 3, 3}, summed in float64 and rounded once.
operators["msched.WinogradWeights"] = function(n)
  local W, G, a = n:x(1), table_of(n, WEIGHTS, "float64"), n:int "tile" + 2
  local U = reduce({a * a, W.shape[2], W.shape[1]}, {3, 3}, te.sum, function(i, r)
    local row, column = te.floordiv(i[1], a), te.floormod(i[1], a)
    return te.cast(W[{i[3], i[2], r[1], r[2]}], "float64") * G[{row * 3 + r[1]}] * G[{column * 3 + r[2]}]
  end)
  return compute(U.shape, W.type, function(i) return U[i] end)
end

-- The image of products of windows, of extents `size`, and a bias.
operators["msched.WinogradOutput"] = function(n)
  local M, bias, A, m, size = n:x(1), n:has(2) and n:x(2) or nil, table_of(n, OUTPUT, n:type(1)), n:int "tile",
    n:ints "size"
  local a, s = m + 2, M.shape
  local columns = reduce({a, s[3], s[4], s[5], m, s[6]}, {a}, te.sum, function(i, r)
    return M[{r[1], i[1], i[2], i[3], i[4], i[6]}] * A[{i[5] * a + r[1]}]
  end)
  local Y = reduce({s[3], s[4], m, s[5], m, s[6]}, {a}, te.sum, function(i, r)
    return columns[{r[1], i[1], i[2], i[4], i[3], i[6]}] * A[{i[5] * a + r[1]}]
  end)
  return compute({s[3], s[6], size[1], size[2]}, M.type, function(i)
    local y = Y[{i[1], te.floordiv(i[3], m), te.floormod(i[3], m), te.floordiv(i[4], m), te.floormod(i[4], m), i[2]}]
    return bias and y + bias[i[2]] or y
  end)
end

return operators
