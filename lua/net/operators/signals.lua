-- Signals: windows and mel weights, which are constants, and Fourier transforms as products with a table of angles.
local ms = msched
local te, common, element_types = ms.te, ms.load "lua.net.common", ms.load "lua.lib.element_types"
local operators = {}
local compute, reduce = common.compute, common.reduce

local MOST = 1 << 24 -- elements of a constant
local function whole(n, i, least)
  local x = math.tointeger(n:scalar(i)) or n:fail("input %d is %s, no whole number", i, n:scalar(i))
  if x < least or x > MOST then n:fail("input %d is %d, not in [%d, %d]", i, x, least, MOST) end
  return x
end

-- ---- Constants ---------------------------------------------------------------------------------------------------

-- f(angle): of an element whose angle goes from 0 to 2 pi.
local function window(f)
  return function(n)
    local size, t = whole(n, 1, 0), n:type_of(n:int("output_datatype", 1))
    local by, list = n:flag("periodic", 1) and size or size - 1, {}
    if not common.is_float(t) then n:fail("it gives %s; floats are expected", t) end
    for i = 0, size - 1 do list[i + 1] = by == 0 and 1.0 or f(2 * math.pi * i / by) end
    return ms.array({size}, t, list)
  end
end
operators.HannWindow = window(function(x) return 0.5 - 0.5 * math.cos(x) end)
operators.HammingWindow = window(function(x) return 25 / 46 - 21 / 46 * math.cos(x) end)
operators.BlackmanWindow = window(function(x) return 0.42 - 0.5 * math.cos(x) + 0.08 * math.cos(2 * x) end)

operators.MelWeightMatrix = function(n)
  local bins, length, rate = whole(n, 1, 1), whole(n, 2, 1), whole(n, 3, 1)
  local lowest, highest, t = n:scalar(4), n:scalar(5), n:type_of(n:int("output_datatype", 1))
  local rows = length // 2 + 1
  if rows * bins > MOST then n:fail("%d x %d weights are more than are made", rows, bins) end
  if not (lowest >= 0 and highest > lowest and highest <= rate) then
    n:fail("edges of %s and %s Hz, at a rate of %d", lowest, highest, rate)
  end
  local function mel(hertz) return 2595 * math.log(1 + hertz / 700, 10) end
  local step, points, list = (mel(highest) - mel(lowest)) / (bins + 2), {}, {}
  for k = 0, bins + 1 do
    local hertz = 700 * (10 ^ ((mel(lowest) + k * step) / 2595) - 1)
    points[k + 1] = math.max(0, math.min(math.floor((length + 1) * hertz / rate), rows - 1))
  end
  for at = 1, rows * bins do list[at] = 0.0 end
  for k = 1, bins do
    local left, middle, right = points[k], points[k + 1], points[k + 2]
    if left == middle then list[middle * bins + k] = 1.0 end
    for j = left, middle do if left < middle then list[j * bins + k] = (j - left) / (middle - left) end end
    for j = middle, right - 1 do list[j * bins + k] = (right - j) / (right - middle) end
  end
  return ms.array({rows, bins}, t, list)
end

-- ---- Fourier transforms ------------------------------------------------------------------------------------------

-- {re, im} of k turns in `length`, by a sign.
local function turn(k, length, sign)
  local angle = 2 * math.pi * (k % length) / length
  return math.cos(angle), sign * math.sin(angle)
end

-- A table of {rows * parts, columns * 2}, or * 1 where what it gives is real: sums of rows that turn by row * column.
local function turns_of(n, t, rows, columns, f, parts, real)
  local list, width = {}, real and 1 or 2
  for r = 0, rows - 1 do
    for c = 0, columns - 1 do
      local re, im = f(r, c)
      local at = r * parts * columns * width + c * width
      list[at + 1] = re
      if not real then list[at + 2] = im end
      if parts == 2 then
        at = at + columns * width
        list[at + 1] = -im
        if not real then list[at + 2] = re end
      end
    end
  end
  return n:constant(ms.array({rows * parts, columns * width}, t, list))
end

-- {count * frames, inner, outer * parts}: what is transformed, each frame weighed by a window. A place is outer * inner
-- extents; behind the end of the signal is 0. Inputs: a signal of {count, extent, parts}, a window or nothing.
operators["msched.Frames"] = function(n)
  local X, W, s = n:x(1), n:has(2) and n:x(2) or nil, n:shape(1)
  local frames, step, inner, outer = n:int "frames", n:int "step", n:int "inner", n:int "outer"
  local parts, padded = s[3], (frames - 1) * step + inner * outer > s[2]
  return compute({s[1] * frames, inner, outer * parts}, common.wide_type(X.type), function(i)
    local r = (parts == 1 and i[3] or te.floordiv(i[3], parts)) * inner + i[2]
    local at = {frames == 1 and i[1] or te.floordiv(i[1], frames),
                (frames == 1 and 0 or te.floormod(i[1], frames) * step) + r,
                parts == 1 and te.const(0, "int32") or te.floormod(i[3], parts)}
    local x = common.wide(X[at])
    if W then x = x * common.wide(W[{r}]) end
    return padded and te.if_then_else(te.lt(at[2], s[2]), x, te.const(0.0, x.type)) or x
  end)
end

-- {count, outer, inner * 2} of {count, inner, outer * 2}, complex numbers that turn by inner * outer.
operators["msched.Turned"] = function(n)
  local X, T, s = n:x(1), n:x(2), n:shape(1)
  local inner, outer = s[2], s[3] // 2
  return compute({s[1], outer, inner * 2}, X.type, function(i)
    local k, part = te.floordiv(i[3], 2), te.floormod(i[3], 2)
    local re, im = X[{i[1], k, i[2] * 2}], X[{i[1], k, i[2] * 2 + 1}]
    local c, s = T[{i[2], k * 2}], T[{i[2], k * 2 + 1}]
    return te.select(te.eq(part, 0), re * c - im * s, re * s + im * c)
  end)
end

-- The factors of a length by which its transform in two steps takes fewest operations, and how many.
local function factors(length, parts, bins)
  local least, inner, outer = math.huge, 1, length
  for k = 2, length // 2 do
    if length % k == 0 then
      local own = length // k
      local work = length * parts * own * 2 + own * 2 * k * 2 * ((bins - 1) // own + 1)
      if work < least then least, inner, outer = work, k, own end
    end
  end
  return inner, outer, least
end

local MOST_TABLE = 1 << 22 -- elements of a table that transforms at once
local STEPS = 4 -- how many times as many operations at once are worth two products

local function narrowed(n, Y, t)
  return n:type(1) == t and Y or n:add("Cast", {Y}, {to = element_types.of[n:type(1)].onnx})
end

local function numbers(n, list) return n:constant(ms.array({#list}, "int64", list)) end

-- How a signal {count, extent, parts} is transformed: p = {frames, step, length, bins, sign, scale, given}, where the
-- first `given` places of a frame are not 0. Gives the name of {count * frames, bins, 2}, or nil where it is neither
-- short nor a product of short ones.
local function spectrum(n, X, W, t, parts, p)
  local length, bins = p.length, p.bins
  local inner, outer, work = factors(length, parts, bins)
  local whole = p.given * parts * bins * (p.real and 1 or 2)
  local function frames(own_inner, own_outer)
    return n:add("Frames", {X, W}, {frames = p.frames, step = p.step, inner = own_inner, outer = own_outer}, 1,
                 "msched")
  end
  if not p.real and whole > STEPS * work and 4 * inner * outer <= MOST_TABLE then
    local F = frames(inner, outer)
    local first = turns_of(n, t, outer, outer, function(r, c) return turn(r * c, outer, p.sign) end, parts)
    local Y = n:add("MatMul", {F, first})
    local turns = turns_of(n, t, outer, inner, function(r, c) return turn(r * c, length, p.sign) end, 1)
    local Z = n:add("Turned", {Y, turns}, {}, 1, "msched")
    local rest = (bins - 1) // outer + 1
    local second = turns_of(n, t, inner, rest, function(r, c)
      local re, im = turn(r * c, inner, p.sign)
      return re * p.scale, im * p.scale
    end, 2)
    local V = n:add("MatMul", {Z, second})
    V = n:add("Reshape", {V, numbers(n, {-1, outer, rest, 2})})
    V = n:add("Reshape", {n:add("Transpose", {V}, {perm = {0, 2, 1, 3}}), numbers(n, {-1, outer * rest, 2})})
    if outer * rest == bins then return V end
    return n:add("Slice", {V, numbers(n, {0}), numbers(n, {bins}), numbers(n, {1})})
  end
  if whole > MOST_TABLE then return nil end
  local T = turns_of(n, t, p.given, bins, function(r, c)
    local re, im = turn(r * c, length, p.sign)
    -- Of a half, what is left out mirrors this: all but the first, and the middle of an even length, counts twice.
    local scale = p.real and r > 0 and 2 * r ~= length and 2 * p.scale or p.scale
    return re * scale, im * scale
  end, parts, p.real)
  return n:add("Reshape", {n:add("MatMul", {frames(1, p.given), T}), numbers(n, {-1, bins, p.real and 1 or 2})})
end

-- ---- Transforms as one sum: those of long lengths that are no products of short ones

-- cos and sin of k turns in `length`, as a table of {length, 2}.
local function angles(n, length, t)
  local list = {}
  for k = 0, length - 1 do
    list[2 * k + 1], list[2 * k + 2] = math.cos(2 * math.pi * k / length), math.sin(2 * math.pi * k / length)
  end
  return n:table(ms.array({length, 2}, t, list))
end
-- The table's row of place `x` of frequency `k`, both below its length.
local function row(x, k, length)
  if length < 46341 then return te.floormod(x * k, length) end -- whose square fits 32 bits
  return te.cast(te.floormod(te.cast(x, "int64") * te.cast(k, "int64"), length), "int32")
end
local function pair(T, at, part) return T[{at, te.const(part, "int32")}] end

-- A sum of complex products with angles that turn by `sign`; part: 0 of the real part, 1 of the other. im: nil where
-- all are real.
local function turned(T, at, part, re, im, sign)
  local c, s = pair(T, at, 0), pair(T, at, 1)
  if sign < 0 then s = s * -1.0 end
  local real, other = im and re * c - im * s or re * c, im and re * s + im * c or re * s
  return te.select(te.eq(part, 0), real, other)
end

local function checked_type(n)
  local t = n:type(1)
  if not common.is_float(t) then n:fail("its input is of %s; floats are expected", t) end
  return common.wide_type(t)
end

-- The same along an axis of a tensor of any rank, if it is made of products: a list of names, as n:gives takes it.
local function product_of(n, s, axis, p, t, shape)
  local rank = #s
  if common.count(s) == 0 or common.count(shape) == 0 then return nil end
  local order, back, extents, X = {}, {}, {}, n.node.inputs[1]
  for d = 1, rank - 1 do if d ~= axis then order[#order + 1] = d - 1 end end
  order[rank - 1], order[rank] = axis - 1, rank - 1
  for d, of in ipairs(order) do back[of + 1], extents[d] = d - 1, shape[of + 1] end
  if axis ~= rank - 1 then X = n:add("Transpose", {X}, {perm = order}) end
  X = n:add("Reshape", {X, numbers(n, {-1, s[axis], s[rank]})})
  local Y = spectrum(n, X, "", t, s[rank], p)
  if not Y then return nil end
  Y = n:add("Reshape", {Y, numbers(n, extents)})
  if axis ~= rank - 1 then Y = n:add("Transpose", {Y}, {perm = back}) end
  return n:gives {narrowed(n, Y, t)}
end

operators.DFT = function(n)
  local X, s, rank = n:x(1), n:shape(1), n:rank(1)
  local inverse, half, t = n:flag("inverse", 0), n:flag("onesided", 0), checked_type(n)
  local axis = n:axis(n.opset >= 20 and (n:has(3) and n:scalar(3) or -2) or n:int("axis", 1), rank)
  local parts, extent = s[rank], s[axis]
  if rank < 2 or axis == rank or parts ~= 1 and parts ~= 2 then
    n:fail("%s is of no numbers along axis %d: its last extent is 1, or 2 of complex ones", common.text(s), axis - 1)
  end
  local length = n:has(2) and whole(n, 2, 1) or inverse and half and 2 * (extent - 1) or extent
  if length < 1 then n:fail("a transform of length %d", length) end
  local shape, given = table.move(s, 1, rank, 1, {}), math.min(extent, length)
  local real = inverse and half
  if real then given = math.min(extent, length // 2 + 1) end
  shape[axis], shape[rank] = not inverse and half and length // 2 + 1 or length, real and 1 or 2
  local by_products = product_of(n, s, axis, {frames = 1, step = 0, length = length, bins = shape[axis],
                                              sign = inverse and 1 or -1, scale = inverse and 1 / length or 1.0,
                                              given = given, real = real}, t, shape)
  if by_products then return by_products end
  local T = angles(n, length, t)
  local sum = reduce(shape, {given}, te.sum, function(i, r)
    local at = table.move(i, 1, rank, 1, {})
    at[axis] = r[1]
    local function part(k)
      at[rank] = te.const(k, "int32")
      return common.wide(X[at])
    end
    local re, im = part(0), parts == 2 and part(1) or nil
    local angle = row(r[1], i[axis], length)
    if not real then return turned(T, angle, i[rank], re, im, inverse and 1 or -1) end
    -- Those that are left out mirror these: all but the first, and the middle of an even length, count twice.
    local once = te.eq(r[1], 0)
    if length % 2 == 0 then once = te.any(once, te.eq(r[1], length // 2)) end
    local c = re * pair(T, angle, 0)
    if im then c = c - im * pair(T, angle, 1) end
    return te.select(once, c, c * 2.0)
  end)
  if not inverse and sum.type == X.type then return sum end
  return compute(shape, X.type, function(i) return inverse and sum[i] / (length + 0.0) or sum[i] end)
end

-- Frames of a signal, each weighed by a window and transformed.
operators.STFT = function(n)
  local X, s, step, half, t = n:x(1), n:shape(1), whole(n, 2, 1), n:flag("onesided", 1), checked_type(n)
  local W = n:has(3) and n:x(3) or nil
  local parts = #s == 2 and 1 or s[3]
  if #s ~= 2 and #s ~= 3 or parts ~= 1 and parts ~= 2 then n:fail("a signal of %s", common.text(s)) end
  local length = n:has(4) and whole(n, 4, 1) or W and W.shape[1]
    or n:fail "it has neither a window nor a length of frames"
  if W and common.text(W.shape) ~= common.text {length} then
    n:fail("a window of %s for frames of %d", common.text(W.shape), length)
  end
  if half and parts == 2 then n:fail "a complex signal has no half of a spectrum that is enough" end
  if length > s[2] then n:fail("frames of %d in a signal of %d", length, s[2]) end
  local shape = {s[1], (s[2] - length) // step + 1, half and length // 2 + 1 or length, 2}
  if common.count(shape) > 0 then
    local signal = n:add("Reshape", {n.node.inputs[1], numbers(n, {s[1], s[2], parts})})
    local Y = spectrum(n, signal, n:has(3) and n.node.inputs[3] or "", t, parts,
                       {frames = shape[2], step = step, length = length, bins = shape[3], sign = -1, scale = 1.0,
                        given = length})
    if Y then return n:gives {narrowed(n, n:add("Reshape", {Y, numbers(n, shape)}), t)} end
  end
  local T = angles(n, length, t)
  local sum = reduce(shape, {length}, te.sum, function(i, r)
    local at = i[2] * step + r[1]
    local w = W and common.wide(W[{r[1]}]) or te.const(1.0, t)
    local function part(k) return common.wide(X[{i[1], at, #s == 3 and te.const(k, "int32") or nil}]) * w end
    return turned(T, row(r[1], i[3], length), i[4], part(0), parts == 2 and part(1) or nil, -1)
  end)
  if sum.type == X.type then return sum end
  return compute(shape, X.type, function(i) return sum[i] end)
end

return operators
