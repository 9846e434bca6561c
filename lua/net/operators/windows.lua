-- Convolutions and pools, of any number of dimensions.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}
local compute, reduce, wide, is_float, count =
  common.compute, common.reduce, common.wide, common.is_float, common.count

local function repeated(x, times)
  local list = {}
  for d = 1, times do list[d] = x end
  return list
end

local function auto_pad_of(n)
  return n:choice("auto_pad", "NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
end

-- What a window is: {kernel, strides, dilations, before, out} a dimension. size: the image's extents behind channels.
local function window(n, size, kernel, ceil)
  local rank, auto = #size, auto_pad_of(n)
  local strides, dilations, pads = n:ints("strides", repeated(1, rank)), n:ints("dilations", repeated(1, rank)),
    n:ints("pads", repeated(0, 2 * rank))
  if #kernel ~= rank or #strides ~= rank or #dilations ~= rank or #pads ~= 2 * rank then
    n:fail("windows of %d dimensions, strides of %d, dilations of %d and %d pads for an image of %d", #kernel, #strides,
           #dilations, #pads, rank)
  end
  local w = {kernel = kernel, strides = strides, dilations = dilations, before = {}, after = {}, out = {}}
  for d = 1, rank do
    if kernel[d] < 1 or strides[d] < 1 or dilations[d] < 1 then
      n:fail("a window of %d, stride %d, dilation %d", kernel[d], strides[d], dilations[d])
    end
    local span = (kernel[d] - 1) * dilations[d] + 1
    local before, after = pads[d], pads[d + rank]
    if auto == "VALID" then before, after = 0, 0 end
    if auto == "SAME_UPPER" or auto == "SAME_LOWER" then
      local total = math.max(0, ((size[d] + strides[d] - 1) // strides[d] - 1) * strides[d] + span - size[d])
      before = auto == "SAME_UPPER" and total // 2 or (total + 1) // 2
      after = total - before
    end
    if before < 0 or after < 0 then n:fail("pads of %d and %d", before, after) end
    local room = size[d] + before + after - span
    local out = room < 0 and 0 or room // strides[d] + 1
    if ceil and room >= 0 then
      out = (room + strides[d] - 1) // strides[d] + 1
      if (out - 1) * strides[d] >= size[d] + before then out = out - 1 end -- windows begin in the image or before it
    end
    w.before[d], w.after[d], w.out[d] = before, after, out
  end
  return w
end

-- Where window `i` and its element `r` are in the image of which `before` lie outside.
local function place(w, d, i, r)
  local at = w.strides[d] == 1 and i or i * w.strides[d]
  local inner = w.dilations[d] == 1 and r or r * w.dilations[d]
  return at + inner
end

-- X with what windows ask for around it, so that every index lies in it.
local function around(X, w, otherwise)
  local shape, before, needed = {X.shape[1], X.shape[2]}, {0, 0}, false
  for d, out in ipairs(w.out) do
    local size = X.shape[d + 2]
    local span = math.max(0, out - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1
    shape[d + 2], before[d + 2] = math.max(span, size + w.before[d]), w.before[d]
    needed = needed or shape[d + 2] ~= size or w.before[d] ~= 0
  end
  if not needed then return X end
  return common.padded(X, shape, before, "constant", otherwise)
end

local function zero(t) return function() return te.const(is_float(t) and 0.0 or 0, t) end end

-- The layout of images with a dimension more, groups, before that of their channels, where these are last or in blocks.
local function grouped_layout()
  local layout = common.layout()
  if layout and layout.block then
    local list = {1, 2, 3, block = layout.block, of = 3}
    for d = 4, #layout + 1 do list[#list + 1] = d end
    return list
  end
  if not layout or layout[#layout] ~= 2 then return nil end
  local list = {1}
  for d = 4, #layout + 1 do list[#list + 1] = d end
  return table.move({2, 3}, 1, 2, #list + 1, list)
end

-- Convolutions of groups of several channels: the groups are a dimension of their own, so that every index is a sum of
-- products. shuffled: of so many parts of the channels the first of each is read first, then the second of each.
local function convolve_groups(P, W, w, groups, shuffled, element_x, element_w)
  local each, out = W.shape[2], W.shape[1] // groups
  local Y = common.with_layout(grouped_layout(), reduce, {P.shape[1], groups, out, table.unpack(w.out)},
    {common.channels(P, each), table.unpack(w.kernel)}, te.sum, function(i, r)
    local channel = i[2] * out + i[3]
    local from = common.channel_of(P, i[2], each, r[1])
    if shuffled > 1 then
      from = te.floormod(from, shuffled) * (P.shape[2] // shuffled) + te.floordiv(from, shuffled)
    end
    local at, of, image = {i[1], from}, {channel, r[1]}, {i[1], channel}
    for d in ipairs(w.kernel) do
      at[d + 2], of[d + 2], image[d + 2] = place(w, d, i[d + 3], r[d + 1]), r[d + 1], i[d + 3]
    end
    return element_x(P[at]) * element_w(W[of], image, channel)
  end)
  return compute({P.shape[1], W.shape[1], table.unpack(w.out)}, Y.type, function(i)
    local group, channel = common.part_of(Y, i[2], out)
    return Y[{i[1], group, channel, table.unpack(i, 3)}]
  end)
end

-- Sums of products of X, of which element(x) is taken, and W. Groups are parts of the channels.
local function convolve(n, X, W, element_x, element_w, pad)
  local groups, size = n:int("group", 1), table.move(X.shape, 3, #X.shape, 1, {})
  if #X.shape < 3 or #W.shape ~= #X.shape then
    n:fail("an image of %s and weights of %s", common.text(X.shape), common.text(W.shape))
  end
  if groups < 1 or W.shape[1] % groups ~= 0 or X.shape[2] ~= W.shape[2] * groups then
    n:fail("%d channels, weights of %s and %d groups do not fit", X.shape[2], common.text(W.shape), groups)
  end
  local kernel = table.move(W.shape, 3, #W.shape, 1, {})
  local given = n:ints("kernel_shape", kernel)
  if common.text(given) ~= common.text(kernel) then
    n:fail("kernel_shape is %s, and the weights are of %s", common.text(given), common.text(kernel))
  end
  local w = window(n, size, kernel)
  if groups > 1 and W.shape[2] > 1 then
    return convolve_groups(around(X, w, pad or zero(X.type)), W, w, groups, n:int("shuffled", 1), element_x, element_w)
  end
  local P, each, shape = around(X, w, pad or zero(X.type)), W.shape[2], {X.shape[1], W.shape[1], table.unpack(w.out)}
  local channels = groups == 1 and common.channels(P, each) or each
  local alone = groups == W.shape[1] and common.blocked(P) -- a channel each: blocks stay apart
  return reduce(shape, {channels, table.unpack(kernel)}, te.sum, function(i, r)
    local first = (groups == 1 or alone) and 0 or te.floordiv(i[2], W.shape[1] // groups) * each
    local at, of = {i[1], alone and i[2] or groups == 1 and r[1] or first + r[1]}, {i[2], r[1]}
    for d in ipairs(kernel) do at[d + 2], of[d + 2] = place(w, d, i[d + 2], r[d + 1]), r[d + 1] end
    return element_x(P[at]) * element_w(W[of], i, i[2])
  end)
end

local function with_bias(n, Y, k, t)
  local B = n:has(k) and n:x(k) or nil
  if B and (#B.shape ~= 1 or B.shape[1] ~= Y.shape[2]) then
    n:fail("a bias of %s for %d channels", common.text(B.shape), Y.shape[2])
  end
  if not B and Y.type == t then return Y end
  return compute(Y.shape, t, function(i) return B and Y[i] + wide(B[i[2]]) or Y[i] end)
end
-- X, W: what stands in the place of the first inputs, in their order of dimensions.
function common.convolution(n, X, W)
  if X.type ~= W.type then n:fail("an image of %s and weights of %s", X.type, W.type) end
  return with_bias(n, convolve(n, X, W, wide, wide), 3, X.type)
end
operators.Conv = function(n) return common.convolution(n, n:x(1), n:x(2)) end
operators["msched.Conv"] = operators.Conv -- of shuffled channels (pass/shuffles.lua)

-- Images whose channels stand last as those whose channels stand second, and back.
function common.channels_second(n, X)
  local s, rank = X.shape, #X.shape
  if rank < 3 then n:fail("its input has %d dimensions", rank) end
  return compute({s[1], s[rank], table.unpack(s, 2, rank - 1)}, X.type, function(i)
    return X[table.move(i, 3, rank, 2, {i[1], [rank] = i[2]})]
  end)
end
function common.channels_last(Y)
  local s, rank = Y.shape, #Y.shape
  local shape = table.move(s, 3, rank, 2, {s[1]})
  shape[rank] = s[2]
  return compute(shape, Y.type, function(i) return Y[table.move(i, 2, rank - 1, 3, {i[1], i[rank]})] end)
end

local function point(n, k, t)
  if not n:has(k) then return function() return te.const(0, t) end end
  local Z = n:x(k)
  if common.count(Z.shape) ~= 1 then n:fail("input %d has %d elements, not 1", k, common.count(Z.shape)) end
  return function() return te.cast(Z[common.unfold(0, Z.shape)], t) end
end
-- X: the image.
local function integer_convolution(n, X, xz, w, wz)
  local zx, zw = point(n, xz, "int32"), common.less(n, wz, true)
  local function less(e) return n:has(xz) and te.cast(e, "int32") - zx() or te.cast(e, "int32") end
  return convolve(n, X, n:x(w), less, zw, function() return te.cast(point(n, xz, "int32")(), X.type) end)
end
operators.ConvInteger = function(n)
  local sums = common.given_sums(n, "ConvInteger", {x = 1, weights = 2, zero = 3, weights_zero = 4}, n.node.attributes)
  return sums or integer_convolution(n, n:x(1), 3, 2, 4)
end
-- X: what stands in the place of the first input, in its order of dimensions.
function common.quantized_convolution(n, X)
  local Y = integer_convolution(n, X, 3, 4, 6)
  local function one(k) local P = n:x(k) return P[common.unfold(0, P.shape)] end
  local W, B = n:x(5), n:has(9) and n:x(9) or nil
  if common.count(n:shape(2)) ~= 1 or common.count(n:shape(7)) ~= 1 then n:fail "a scale of the image is one number" end
  return compute(Y.shape, n:type(8), function(i)
    local sum = B and Y[i] + B[i[2]] or Y[i]
    local scale = one(2) * (common.count(W.shape) == 1 and one(5) or W[i[2]]) / one(7)
    return common.saturated(n, te.nearbyint(te.cast(sum, "float32") * scale) + te.cast(one(8), "float32"), n:type(8))
  end)
end
operators.QLinearConv = function(n)
  return common.requantized_sums(n, "ConvInteger", 1, n.node.attributes) or common.quantized_convolution(n, n:x(1))
end

-- What its windows are: {kernel, strides, dilations, before, out} a dimension.
local function transposed_window(n, X, W, groups)
  local rank = #X.shape - 2
  if rank < 1 or #W.shape ~= #X.shape then
    n:fail("an image of %s and weights of %s", common.text(X.shape), common.text(W.shape))
  end
  if X.type ~= W.type then n:fail("an image of %s and weights of %s", X.type, W.type) end
  if groups < 1 or X.shape[2] % groups ~= 0 or W.shape[1] ~= X.shape[2] then
    n:fail("%d channels, weights of %s and %d groups do not fit", X.shape[2], common.text(W.shape), groups)
  end
  local kernel = table.move(W.shape, 3, #W.shape, 1, {})
  local strides, dilations = n:ints("strides", repeated(1, rank)), n:ints("dilations", repeated(1, rank))
  local pads, extra, auto = n:ints("pads", repeated(0, 2 * rank)), n:ints("output_padding", repeated(0, rank)),
    auto_pad_of(n)
  local wanted = n:has_attribute "output_shape" and n:ints "output_shape" or nil
  local counts = #strides == rank and #dilations == rank and #pads == 2 * rank and #extra == rank
    and (not wanted or #wanted == rank or #wanted == rank + 2) -- with batch and channels, as older files have it
  if not counts then n:fail("its attributes are not of %d dimensions", rank) end
  if wanted and #wanted > rank then wanted = table.move(wanted, #wanted - rank + 1, #wanted, 1, {}) end
  local out, before = {}, {}
  for d = 1, rank do
    if strides[d] < 1 or dilations[d] < 1 or extra[d] < 0 then
      n:fail("stride %d, dilation %d, output_padding %d", strides[d], dilations[d], extra[d])
    end
    local full = (X.shape[d + 2] - 1) * strides[d] + extra[d] + (kernel[d] - 1) * dilations[d] + 1
    before[d], out[d] = pads[d], full - pads[d] - pads[d + rank]
    if auto == "VALID" then before[d], out[d] = 0, full end
    local target = wanted and wanted[d] or auto:find "^SAME" and X.shape[d + 2] * strides[d]
    if target then
      local total = math.max(0, full - target)
      before[d], out[d] = auto == "SAME_UPPER" and total // 2 or (total + 1) // 2, target
    end
    if out[d] < 0 then n:fail("extent %d of the result is %d", d, out[d]) end
  end
  return {kernel = kernel, strides = strides, dilations = dilations, before = before, out = out}
end

-- The channel of the image at a reduced index, and that of the weights, of output channel c.
local function channels_of(groups, each, channels, c, r)
  if groups == 1 then return r, c end
  return te.floordiv(c, each) * channels + r, te.floormod(c, each)
end

-- Each output gathers the inputs whose windows reach it: of all elements of the window, those that meet one.
local function gathered(X, W, w, groups, shape)
  local each, channels, t = W.shape[2], X.shape[2] // groups, common.wide_type(X.type)
  return reduce(shape, {channels, table.unpack(w.kernel)}, te.sum, function(i, r)
    local from_channel, to_channel = channels_of(groups, each, channels, i[2], r[1])
    local at, of, reaches = {i[1], from_channel}, {from_channel, to_channel}, {}
    for d, stride in ipairs(w.strides) do
      local x = i[d + 2] + w.before[d] - r[d + 1] * w.dilations[d]
      local from = stride == 1 and x or te.floordiv(x, stride)
      reaches[#reaches + 1], reaches[#reaches + 2] = te.ge(x, 0), te.lt(from, X.shape[d + 2])
      if stride > 1 then reaches[#reaches + 1] = te.eq(te.floormod(x, stride), 0) end
      at[d + 2], of[d + 2] = te.maximum(te.minimum(from, X.shape[d + 2] - 1), 0), r[d + 1]
    end
    return te.select(te.all(table.unpack(reaches)), wide(X[at]) * wide(W[of]), te.const(is_float(t) and 0.0 or 0, t))
  end)
end

-- The layout of images with phases behind each extent that has them, where their channels are last.
local function phased_layout(strides)
  local layout = common.layout()
  if not layout or layout[#layout] ~= 2 then return nil end
  local list = {1}
  for _, stride in ipairs(strides) do
    for _ = 1, stride > 1 and 2 or 1 do list[#list + 1] = #list + 2 end
  end
  list[#list + 1] = 2
  return list
end

-- The same where dilations are 1: an output meets every stride-th element of the window alone, from (output + before)
-- mod stride on, its phase. The outputs of a phase are a convolution; phases are dimensions of their own, so that every
-- index of an image is a sum of products. With zeros around the image none is asked for; where the stride does not
-- divide the window, an element behind it counts as 0.
local function by_phases(X, W, w, groups, shape)
  local each, channels, t = W.shape[2], X.shape[2] // groups, common.wide_type(X.type)
  local padded, first, phased, reduced, axis = {X.shape[1], X.shape[2]}, {0, 0}, {shape[1], shape[2]}, {channels}, {}
  for d, stride in ipairs(w.strides) do
    local rounds, taps = (w.out[d] + stride - 1) // stride, (w.kernel[d] + stride - 1) // stride
    first[d + 2] = taps - 1
    padded[d + 2] = first[d + 2] + math.max(math.max(rounds, 1) + (stride - 1 + w.before[d]) // stride, X.shape[d + 2])
    phased[#phased + 1] = rounds
    if stride > 1 then phased[#phased + 1] = stride end
    if taps > 1 then reduced[#reduced + 1], axis[d] = taps, #reduced + 1 end
  end
  local P = common.padded(X, padded, first, "constant", zero(X.type))
  local Y = common.with_layout(phased_layout(w.strides), reduce, phased, reduced, te.sum, function(i, r)
    local from_channel, to_channel = channels_of(groups, each, channels, i[2], r[1])
    local at, of, inside, k = {i[1], from_channel}, {from_channel, to_channel}, {}, 3
    for d, stride in ipairs(w.strides) do
      local tap, x = axis[d] and r[axis[d]] or te.const(0, "int32"), i[k]
      local element, before = tap, w.before[d]
      k = k + 1
      if stride > 1 then
        local o = i[k] + before
        before, element, k = te.floordiv(o, stride), te.floormod(o, stride) + tap * stride, k + 1
      end
      if w.kernel[d] % stride ~= 0 then
        inside[#inside + 1] = te.lt(element, w.kernel[d])
        element = te.minimum(element, w.kernel[d] - 1)
      end
      at[d + 2], of[d + 2] = x + before - tap + first[d + 2], element
    end
    local product = wide(P[at]) * wide(W[of])
    return #inside == 0 and product
      or te.select(te.all(table.unpack(inside)), product, te.const(is_float(t) and 0.0 or 0, t))
  end)
  return compute(shape, t, function(i)
    local at = {i[1], i[2]}
    for d, stride in ipairs(w.strides) do
      at[#at + 1] = stride == 1 and i[d + 2] or te.floordiv(i[d + 2], stride)
      at[#at + 1] = stride > 1 and te.floormod(i[d + 2], stride) or nil
    end
    return Y[at]
  end)
end

-- The same where the image has one element a channel and all of the window is asked for: each output meets one element.
local function of_points(X, W, w, groups, shape)
  local each, channels = W.shape[2], X.shape[2] // groups
  return reduce(shape, {channels}, te.sum, function(i, r)
    local from_channel, to_channel = channels_of(groups, each, channels, i[2], r[1])
    local at, of = {i[1], from_channel}, {from_channel, to_channel}
    for d in ipairs(w.strides) do at[d + 2], of[d + 2] = 0, i[d + 2] + w.before[d] end
    return wide(X[at]) * wide(W[of])
  end)
end

operators.ConvTranspose = function(n)
  local X, W, groups = n:x(1), n:x(2), n:int("group", 1)
  local w = transposed_window(n, X, W, groups)
  local dense, points = true, true
  for d, dilation in ipairs(w.dilations) do
    dense = dense and dilation == 1
    points = points and dense and X.shape[d + 2] == 1 and w.before[d] >= 0 and w.before[d] + w.out[d] <= w.kernel[d]
  end
  local shape = {X.shape[1], W.shape[2] * groups, table.unpack(w.out)}
  return with_bias(n, (points and of_points or dense and by_phases or gathered)(X, W, w, groups, shape), 3, X.type)
end

-- Each channel by its own weights, of what was before and what is now.
operators.CausalConvWithState = function(n)
  local X, W, B, P = n:x(1), n:x(2), n:has(3) and n:x(3) or nil, n:has(4) and n:x(4) or nil
  local s, taps, swish = X.shape, W.shape[3], n:choice("activation", "none", "none", "silu", "swish") ~= "none"
  if #s ~= 3 or common.text(W.shape) ~= common.text {s[2], 1, taps or 0} or taps < 1 then
    n:fail("a signal of %s and weights of %s", common.text(s), common.text(W.shape))
  end
  if B and common.text(B.shape) ~= common.text {s[2]} then
    n:fail("a bias of %s for %d channels", common.text(B.shape), s[2])
  end
  if P and common.text(P.shape) ~= common.text {s[1], s[2], taps - 1} then
    n:fail("a state of %s, not of %s", common.text(P.shape), common.text {s[1], s[2], taps - 1})
  end
  for k = 2, 4 do
    if n:has(k) and n:type(k) ~= X.type then n:fail("its inputs are of %s and %s", X.type, n:type(k)) end
  end
  if not is_float(X.type) then n:fail("its input is of %s; floats are expected", X.type) end
  local whole = compute({s[1], s[2], s[3] + taps - 1}, X.type, function(i)
    local before = taps > 1 and (P and P[i] or te.const(0.0, X.type))
    local now = s[3] > 0 and X[{i[1], i[2], i[3] - (taps - 1)}]
    return before and now and te.if_then_else(te.lt(i[3], taps - 1), before, now) or before or now
  end)
  local sum = reduce(s, {taps}, te.sum, function(i, r)
    return wide(whole[{i[1], i[2], i[3] + r[1]}]) * wide(W[{i[2], te.const(0, "int32"), r[1]}])
  end)
  return compute(s, X.type, function(i)
    local y = B and sum[i] + wide(B[{i[2]}]) or sum[i]
    return swish and y / (te.exp(-1.0 * y) + 1.0) or y
  end), n:wants(2) and compute({s[1], s[2], taps - 1}, X.type, function(i) return whole[{i[1], i[2], i[3] + s[3]}] end)
    or nil
end

-- Blocks of columns summed into the image that they were cut from.
operators.Col2Im = function(n)
  local X, size, kernel = n:x(1), n:list(2), n:list(3)
  local rank, taps = #size, 1
  local strides, dilations, pads = n:ints("strides", repeated(1, rank)), n:ints("dilations", repeated(1, rank)),
    n:ints("pads", repeated(0, 2 * rank))
  if #kernel ~= rank or #strides ~= rank or #dilations ~= rank or #pads ~= 2 * rank then
    n:fail("its attributes are not of %d dimensions", rank)
  end
  local blocks, columns = {}, 1
  for d, extent in ipairs(size) do
    if extent < 1 or kernel[d] < 1 or strides[d] < 1 or dilations[d] < 1 then
      n:fail("an image of %d, blocks of %d", extent, kernel[d])
    end
    blocks[d] = math.max(0, (extent + pads[d] + pads[d + rank] - (kernel[d] - 1) * dilations[d] - 1) // strides[d] + 1)
    taps, columns = taps * kernel[d], columns * blocks[d]
  end
  if #X.shape ~= 3 or X.shape[2] % taps ~= 0 or X.shape[3] ~= columns or columns == 0 then
    n:fail("%s is not of %d columns of blocks of %d", common.text(X.shape), columns, taps)
  end
  local shape, t = {X.shape[1], X.shape[2] // taps, table.unpack(size)}, common.wide_type(X.type)
  local Y = reduce(shape, kernel, te.sum, function(i, r)
    local at, reaches, own = {}, {}, {}
    for d in ipairs(size) do
      local x = i[d + 2] + pads[d] - r[d] * dilations[d]
      local block = strides[d] == 1 and x or te.floordiv(x, strides[d])
      own[d], at[d] = r[d] + 0, te.maximum(te.minimum(block, blocks[d] - 1), 0)
      reaches[#reaches + 1], reaches[#reaches + 2] = te.ge(x, 0), te.lt(block, blocks[d])
      if strides[d] > 1 then reaches[#reaches + 1] = te.eq(te.floormod(x, strides[d]), 0) end
    end
    local x = wide(X[{i[1], i[2] * taps + common.fold(own, kernel), common.fold(at, blocks)}])
    return te.select(te.all(table.unpack(reaches)), x, te.const(is_float(t) and 0.0 or 0, t))
  end)
  return common.narrow(Y, X.type)
end

-- ---- Pools -------------------------------------------------------------------------------------------------------

local function pool_window(n, X)
  X = X or n:x(1)
  if #X.shape < 3 then n:fail("its input has %d dimensions", #X.shape) end
  local size = table.move(X.shape, 3, #X.shape, 1, {})
  local w = window(n, size, n:ints "kernel_shape", n:flag("ceil_mode", 0))
  return X, w, {X.shape[1], X.shape[2], table.unpack(w.out)}, size
end
local function windowed(P, w, shape, reducer, f)
  return reduce(shape, w.kernel, reducer, function(i, r)
    local at = {i[1], i[2]}
    for d in ipairs(w.kernel) do at[d + 2] = place(w, d, i[d + 2], r[d]) end
    return f(P, at)
  end)
end

-- Where each window has its largest element, the first of equal ones, in the whole tensor: counted along rows, or along
-- columns.
local function largest_places(n, X, w, shape, size)
  local infinity, last = common.lowest(X.type), te.const(count(X.shape) - 1, "int64")
  local pick = te.reducer(function(x, y)
    local keeps = te.any(te.gt(x[2], y[2]), te.all(te.eq(x[2], y[2]), te.lt(x[1], y[1])))
    return {te.select(keeps, x[1], y[1]), te.select(keeps, x[2], y[2])}
  end, function() return {te.max_value "int64", infinity} end, "place")
  local P = around(X, w, function() return infinity end)
  local index = reduce(shape, w.kernel, pick, function(i, r)
    local at, own = {i[1], i[2]}, {i[1], i[2]}
    for d in ipairs(w.kernel) do
      at[d + 2] = place(w, d, i[d + 2], r[d])
      own[d + 2] = at[d + 2] - w.before[d]
    end
    return {te.cast(common.fold(own, X.shape), "int64"), wide(P[at])}
  end)
  local by_column = n:int("storage_order", 0) == 1
  return compute(shape, "int64", function(i)
    local flat = te.maximum(te.minimum(index[i], last), te.const(0, "int64"))
    if not by_column then return flat end
    local at, extents = common.unfold(te.cast(flat, "int32"), X.shape), {X.shape[1], X.shape[2]}
    local own = {at[1], at[2]}
    for d = #size, 1, -1 do own[#own + 1], extents[#extents + 1] = at[d + 2], size[d] end
    return te.cast(common.fold(own, extents), "int64")
  end)
end
-- X: what is pooled in place of the first input.
function common.max_pool(n, X)
  local w, shape, size
  X, w, shape, size = pool_window(n, X)
  local P = around(X, w, function() return common.lowest(X.type) end)
  return common.narrow(windowed(P, w, shape, common.maximum, function(Q, at) return wide(Q[at]) end), X.type),
         n:wants(2) and largest_places(n, X, w, shape, size) or nil
end
operators.MaxPool = function(n) return common.max_pool(n) end

-- How many of a window's elements count along each dimension: those in the image, or those in it and what is padded.
local function counted(w, size, include, d, i)
  local low, high = include and 0 or w.before[d],
    include and w.before[d] + size[d] + w.after[d] or w.before[d] + size[d]
  if w.dilations[d] == 1 then
    local from = w.strides[d] == 1 and i or i * w.strides[d]
    return te.minimum(from + w.kernel[d], high) - te.maximum(from, low)
  end
  local sum
  for r = 0, w.kernel[d] - 1 do
    local at = i * w.strides[d] + r * w.dilations[d]
    local one = te.select(te.all(te.ge(at, low), te.lt(at, high)), te.const(1, "int32"), te.const(0, "int32"))
    sum = sum and sum + one or one
  end
  return sum
end
-- X: what is pooled in place of the first input.
function common.average_pool(n, X)
  local w, shape, size
  X, w, shape, size = pool_window(n, X)
  local include = n:flag("count_include_pad", 0)
  local Y = windowed(around(X, w, zero(X.type)), w, shape, te.sum, function(Q, at) return wide(Q[at]) end)
  return compute(shape, X.type, function(i)
    local elements
    for d in ipairs(size) do
      local here = counted(w, size, include, d, i[d + 2])
      elements = elements and elements * here or here
    end
    return Y[i] / te.cast(te.maximum(elements, 1), Y.type)
  end)
end
operators.AveragePool = function(n) return common.average_pool(n) end
operators.LpPool = function(n)
  local X, w, shape = pool_window(n)
  local p = n:int("p", 2)
  if p < 1 then n:fail("p is %d", p) end
  local Y = windowed(around(X, w, zero(X.type)), w, shape, te.sum, function(Q, at)
    local x = te.abs(wide(Q[at]))
    return p == 1 and x or p == 2 and x * x or te.pow(x, te.const(p + 0.0, x.type))
  end)
  return compute(shape, X.type, function(i)
    return p == 1 and Y[i] or p == 2 and te.sqrt(Y[i]) or te.pow(Y[i], te.const(1 / p, Y.type))
  end)
end

-- The sums of windows of integers, channel by channel; around the image are zeros.
operators["msched.SumsOfWindows"] = function(n)
  local X, w, shape = pool_window(n)
  return windowed(around(X, w, zero(X.type)), w, shape, te.sum, function(Q, at) return Q[at] end)
end

local function global(reducer, before, after)
  return function(n)
    local X, set = n:x(1), {}
    if #X.shape < 3 then n:fail("its input has %d dimensions", #X.shape) end
    for d = 3, #X.shape do set[d] = true end
    return common.narrow((common.over(X, set, true, reducer, before, after)), X.type)
  end
end
operators.GlobalAveragePool = global(te.sum, nil, function(x, k) return x / te.const(k + 0.0, x.type) end)
-- The same with ones of all places for a second input, by which elements are multiplied (pass/column_sums.lua).
operators["msched.GlobalAveragePool"] = function(n)
  local X, ones, set, places = n:x(1), n:x(2), {}, 1
  for d = 3, #X.shape do set[d], places = true, places * X.shape[d] end
  return (common.over(X, set, true, te.sum, function(x, at) return x * ones[table.move(at, 3, #at, 1, {})] end,
                      function(x) return x / te.const(places + 0.0, x.type) end))
end
operators.GlobalMaxPool = global(common.maximum)
operators.GlobalLpPool = function(n)
  local p = n:int("p", 2)
  if p < 1 then n:fail("p is %d", p) end
  return global(te.sum, function(x)
    local y = te.abs(x)
    return p == 1 and y or p == 2 and y * y or te.pow(y, te.const(p + 0.0, y.type))
  end, function(x) return p == 1 and x or p == 2 and te.sqrt(x) or te.pow(x, te.const(1 / p, x.type)) end)(n)
end

-- Elements put back where MaxPool found them, each within its own window; where several are put, the last stands there.
operators.MaxUnpool = function(n)
  local X, I, s, rank = n:x(1), n:x(2), n:shape(1), n:rank(1) - 2
  local kernel = n:ints "kernel_shape"
  local strides, pads = n:ints("strides", repeated(1, rank)), n:ints("pads", repeated(0, 2 * rank))
  if rank < 1 or #kernel ~= rank or #strides ~= rank or #pads ~= 2 * rank then
    n:fail("windows of %d dimensions, strides of %d and %d pads for an image of %d", #kernel, #strides, #pads, rank)
  end
  if common.text(I.shape) ~= common.text(s) or count(s) == 0 then
    n:fail("indices of %s for %s", common.text(I.shape), common.text(s))
  end
  local own, taps = {s[1], s[2]}, {} -- own: the extents that indices are of
  for d = 1, rank do
    if kernel[d] < 1 or strides[d] < 1 then n:fail("a window of %d, stride %d", kernel[d], strides[d]) end
    own[d + 2] = (s[d + 2] - 1) * strides[d] + kernel[d] - pads[d] - pads[d + rank]
    taps[d] = (kernel[d] + strides[d] - 1) // strides[d]
  end
  local shape = n:has(3) and n:list(3) or own
  if #shape ~= #own then n:fail("%s are put into %s", common.text(own), common.text(shape)) end
  for d, extent in ipairs(shape) do
    if extent < own[d] or extent < 1 or extent > 1 << 30 then
      n:fail("%s are put into %s", common.text(own), common.text(shape))
    end
  end
  n:check_range(2, 0, count(own) - 1)
  local none = te.const(-1, "int32")
  local from = reduce(shape, taps, te.reducer(te.maximum, function() return none end, "last"), function(i, r)
    local at, inside = {i[1], i[2]}, {}
    for d = 1, rank do
      local x = pads[d] == 0 and i[d + 2] or i[d + 2] + pads[d]
      local window = (strides[d] == 1 and x or te.floordiv(x, strides[d])) - r[d]
      at[d + 2] = te.maximum(te.minimum(window, s[d + 2] - 1), 0)
    end
    for d, extent in ipairs(shape) do
      if extent > own[d] then inside[#inside + 1] = te.lt(i[d], own[d]) end
    end
    inside[#inside + 1] = te.eq(te.cast(I[at], "int64"), te.cast(common.fold(i, own), "int64"))
    return te.select(te.all(table.unpack(inside)), te.cast(common.fold(at, s), "int32"), none)
  end)
  return compute(shape, X.type, function(i)
    local first = te.maximum(te.minimum(from[i], count(s) - 1), 0)
    return te.if_then_else(te.ge(from[i], 0), X[common.unfold(first, s)], zero(X.type)())
  end)
end

return operators
