-- The parts of a convolution by Winograd's method, F(m x m, 3 x 3): windows of (m + 2) x (m + 2) that overlap by two
-- are transformed, multiplied by transformed weights, a matrix for each element of a window, and transformed back to m
-- x m. Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015, section 4; points 0, 1, -1, 2,
-- -2. The depth of an image is as a batch is to the transforms.
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

local function behind(list, more) return table.move(more, 1, #more, #list + 1, table.move(list, 1, #list, 1, {})) end

-- Where the extents of an image's plane are: behind those of its depth, which no tile has a part in.
local function plane_of(shape) return #shape - 1 end

-- {window, window, batch, depth…, tiles down, tiles across, channels} of an image: `tiles`, behind zeros as `before`
-- has them; its depth `depth`, with zeros around.
operators["msched.WinogradInput"] = function(n)
  local X, B, m, tiles, before = n:x(1), table_of(n, INPUT, n:type(1)), n:int "tile", n:ints "tiles", n:ints "before"
  local a, s, t, plane = m + 2, X.shape, X.type, plane_of(X.shape)
  local depth = n:ints("depth", {})
  local inside = table.move(depth, 1, #depth, 1, {})
  if #inside ~= plane - 3 or #before ~= plane - 1 then n:fail("an image of %s", common.text(s)) end
  for d = 1, 2 do inside[#inside + 1] = tiles[d] * m + 2 end
  local shape = {s[1], table.unpack(inside)}
  shape[#shape + 1] = s[2]
  local P = compute(shape, t, function(i)
    local at, within = {i[1], i[#shape]}, {}
    for d, extent in ipairs(inside) do
      at[d + 2] = before[d] > 0 and i[d + 1] - before[d] or i[d + 1]
      if before[d] > 0 then within[#within + 1] = te.ge(i[d + 1], before[d]) end
      if before[d] + s[d + 2] < extent then within[#within + 1] = te.lt(i[d + 1], before[d] + s[d + 2]) end
    end
    return #within == 0 and X[at] or te.if_then_else(te.all(table.unpack(within)), X[at], te.const(0.0, t))
  end)
  local lead = table.move(shape, 1, plane - 2, 1, {})
  local function with(...) return behind(lead, {...}) end
  local rows = reduce(with(tiles[1], tiles[2] * m + 2, a, s[2]), {a}, te.sum, function(i, r)
    local at = table.move(i, 1, #lead, 1, {})
    local down, column, k, c = table.unpack(i, #lead + 1)
    at[#at + 1], at[#at + 2], at[#at + 3] = down * m + r[1], column, c
    return P[at] * B[{k * a + r[1]}]
  end)
  return reduce({a, a, table.unpack(with(tiles[1], tiles[2], s[2]))}, {a}, te.sum, function(i, r)
    local at = table.move(i, 3, #lead + 2, 1, {})
    local down, across, c = table.unpack(i, #lead + 3)
    at[#at + 1], at[#at + 2], at[#at + 3], at[#at + 4] = down, across * m + r[1], i[1], c
    return rows[at] * B[{i[2] * a + r[1]}]
  end)
end

-- {elements of a window, depth…, in, out} of weights {out, in, depth…, 3, 3}, summed in float64 and rounded once.
operators["msched.WinogradWeights"] = function(n)
  local W, G, a = n:x(1), table_of(n, WEIGHTS, "float64"), n:int "tile" + 2
  local shape, deep = {a * a}, #W.shape - 4
  table.move(W.shape, 3, #W.shape - 2, 2, shape)
  shape[#shape + 1], shape[#shape + 2] = W.shape[2], W.shape[1]
  local U = reduce(shape, {3, 3}, te.sum, function(i, r)
    local row, column = te.floordiv(i[1], a), te.floormod(i[1], a)
    local at = table.move(i, 2, deep + 1, 3, {i[deep + 3], i[deep + 2]})
    at[#at + 1], at[#at + 2] = r[1], r[2]
    return te.cast(W[at], "float64") * G[{row * 3 + r[1]}] * G[{column * 3 + r[2]}]
  end)
  return compute(U.shape, W.type, function(i) return U[i] end)
end

-- {elements of a window, batch, depth and tiles, out}: sums over the depth of weights {elements of a window, depth, in,
-- out}. The windows of one depth are `apart` rows before those of the next.
operators["msched.WinogradProduct"] = function(n)
  local V, U, apart = n:x(1), n:x(2), n:int "apart"
  local s, w = V.shape, U.shape
  local shape = {s[1], s[2], s[3] - (w[2] - 1) * apart, w[4]}
  return reduce(shape, {w[2], w[3]}, te.sum, function(i, r)
    return V[{i[1], i[2], i[3] + r[1] * apart, r[2]}] * U[{i[1], r[1], r[2], i[4]}]
  end)
end

-- The image of products of windows {window, window, batch, depth…, tiles down, tiles across, out}, and a bias.
operators["msched.WinogradOutput"] = function(n)
  local M, bias, A, m, size = n:x(1), n:has(2) and n:x(2) or nil, table_of(n, OUTPUT, n:type(1)), n:int "tile",
    n:ints "size"
  local a, s = m + 2, M.shape
  local lead, down, across, channels = table.move(s, 3, #s - 3, 1, {}), s[#s - 2], s[#s - 1], s[#s]
  local function with(...) return behind(lead, {...}) end
  local columns = reduce({a, table.unpack(with(down, across, m, channels))}, {a}, te.sum, function(i, r)
    local at = table.move(i, 1, #lead + 3, 2, {r[1]})
    at[#at + 1] = i[#lead + 5]
    return M[at] * A[{i[#lead + 4] * a + r[1]}]
  end)
  local Y = reduce(with(down, m, across, m, channels), {a}, te.sum, function(i, r)
    local at = table.move(i, 1, #lead + 1, 2, {r[1]})
    local row, tile, column, c = table.unpack(i, #lead + 2)
    at[#at + 1], at[#at + 2], at[#at + 3] = tile, row, c
    return columns[at] * A[{column * a + r[1]}]
  end)
  return compute({s[3], channels, table.unpack(size)}, M.type, function(i)
    local at, h, w = table.move(i, 3, #size, 2, {i[1]}), i[#size + 1], i[#size + 2]
    at[#at + 1], at[#at + 2] = te.floordiv(h, m), te.floormod(h, m)
    at[#at + 1], at[#at + 2], at[#at + 3] = te.floordiv(w, m), te.floormod(w, m), i[2]
    return bias and Y[at] + bias[i[2]] or Y[at]
  end)
end

return operators
