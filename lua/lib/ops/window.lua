-- Windows that slide over an image, as convolutions and pools have them. An image has 1, 2 or 3 spatial dimensions
-- (l; h, w; d, h, w) between its number and its channels, or after both. The sizes of a window are one number, or a
-- list of one for each spatial dimension; padding may be a list of {before, after} too.
local ms = msched
local te, common = ms.te, ms.load "lua.lib.ops.common"
local window = {}

window.SPATIAL = {{"l"}, {"h", "w"}, {"d", "h", "w"}}

-- What the layouts of so many spatial dimensions are called: channels last, channels first.
function window.layouts(rank)
  local spatial = table.concat(window.SPATIAL[rank]):upper()
  return "N" .. spatial .. "C", "NC" .. spatial
end

-- How the dimensions of an image and a filter are ordered in a layout; `first` is the first spatial one of an image.
-- `image` makes a list of a number, spatial ones and a channel; `filter` of taps, an input and an output channel.
function window.layout(what, layout, rank)
  local last, first = window.layouts(rank)
  if layout ~= last and layout ~= first then
    common.fail(what, "layout `%s`: there are %s and %s", tostring(layout), last, first)
  end
  local order = {channels_first = layout == first, first = layout == first and 3 or 2}
  function order.image(n, spatial, c)
    local list = {n, table.unpack(spatial)}
    table.insert(list, order.channels_first and 2 or #list + 1, c)
    return list
  end
  function order.filter(taps, ci, co)
    if order.channels_first then return {co, ci, table.unpack(taps)} end
    local list = {table.unpack(taps)}
    list[rank + 1], list[rank + 2] = ci, co
    return list
  end
  -- The spatial part of an image's indices or shape, and the channel; of a filter's shape the kernel and both channels.
  function order.parts(list)
    return {table.unpack(list, order.first, order.first + rank - 1)}, list[order.channels_first and 2 or rank + 2]
  end
  function order.filter_parts(list)
    if order.channels_first then return {table.unpack(list, 3)}, list[2], list[1] end
    return {table.unpack(list, 1, rank)}, list[rank + 1], list[rank + 2]
  end
  return order
end

-- {before, after} for each spatial dimension.
local function pads_of(what, pad, rank)
  local pads = {}
  if type(pad) == "table" and #pad ~= rank then
    common.fail(what, "pad has %d numbers for %d dimensions", #pad, rank)
  end
  for d = 1, rank do
    local p = type(pad) == "table" and pad[d] or pad
    if type(p) ~= "table" then p = {p, p} end
    pads[d] = {common.check_integer(what, "pad", p[1], 0), common.check_integer(what, "pad", p[2], 0)}
  end
  return pads
end

-- o: kernel, stride, pad, dilation. Gives, a list each of spatial dimensions: extents of the result; taps, axes to
-- reduce over; and `at`, where in the padded image the taps of an element of the result are.
function window.slide(what, spatial, o)
  local rank = #spatial
  local names = window.SPATIAL[rank]
  local w = {extents = {}, taps = {}, pads = pads_of(what, o.pad, rank),
             kernel = common.each(what, "kernel", o.kernel, rank, 1)}
  w.stride, w.dilation = common.each(what, "stride", o.stride, rank, 1),
    common.each(what, "dilation", o.dilation or 1, rank, 1)
  for d, extent in ipairs(spatial) do
    local reach, padded = (w.kernel[d] - 1) * w.dilation[d] + 1, extent + w.pads[d][1] + w.pads[d][2]
    if reach > padded then
      common.fail(what, "kernel %d reaches over %d elements, with dilation %d, but %s is %d, padded %d",
                  w.kernel[d], reach, w.dilation[d], names[d], extent, padded)
    end
    w.extents[d] = (padded - reach) // w.stride[d] + 1
    w.taps[d] = te.reduce_axis(w.kernel[d], "r" .. names[d])
  end
  local function times(x, factor) return factor == 1 and x or x * factor end
  function w.at(indices)
    local list = {}
    for d, index in ipairs(indices) do list[d] = times(index, w.stride[d]) + times(w.taps[d], w.dilation[d]) end
    return list
  end
  return w
end

-- The image with so much of a value around its spatial dimensions, the first of which is numbered `first`.
function window.pad(X, first, pads, value)
  local before, after = {}, {}
  for d = 1, #X.shape do
    local p = pads[d - first + 1] or {0, 0}
    before[d], after[d] = p[1], p[2]
  end
  return ms.load "lua.lib.ops.shape".pad(X, before, after, {value = value})
end

-- The names of an image's loops, its channel called so.
function window.axes(order, rank, channel) return order.image("n", window.SPATIAL[rank], channel) end

return window
