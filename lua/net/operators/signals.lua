-- Signals: windows and mel weights, which are constants, and Fourier transforms as products with a table of angles.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
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
  local T, shape, given = angles(n, length, t), table.move(s, 1, rank, 1, {}), math.min(extent, length)
  local real = inverse and half
  if real then given = math.min(extent, length // 2 + 1) end
  shape[axis], shape[rank] = not inverse and half and length // 2 + 1 or length, real and 1 or 2
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
  local T, shape = angles(n, length, t), {s[1], (s[2] - length) // step + 1, half and length // 2 + 1 or length, 2}
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
