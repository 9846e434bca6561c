-- Pools over the spatial dimensions of an image, (n, spatial…, c) or with channels first (n, c, spatial…).
local ms = msched
local te, common, window = ms.te, ms.load "lua.lib.ops.common", ms.load "lua.lib.ops.window"
local ops = {}

local function pool_of(what, X, given, defaults)
  common.check_tensor(what, "X", X)
  local rank = #X.shape - 2
  if not window.SPATIAL[rank] then common.fail(what, "X has %d dimensions; an image has 3, 4 or 5", rank + 2) end
  local plain = {kernel = 2, stride = false, pad = 0, layout = (window.layouts(rank)), name = what}
  for name, value in pairs(defaults) do plain[name] = value end
  local o = common.options(what, given, plain)
  o.stride = o.stride or o.kernel
  local order = window.layout(what, o.layout, rank)
  local spatial, channels = order.parts(X.shape)
  local w = window.slide(what, spatial, o)
  for d, p in ipairs(w.pads) do
    if math.max(p[1], p[2]) >= w.kernel[d] then
      common.fail(what, "pad is %d; it is less than the kernel, %d: a window would hold nothing", math.max(p[1], p[2]),
                  w.kernel[d])
    end
  end
  return w, order, order.image(X.shape[1], w.extents, channels), spatial, o
end

-- The windows' elements reduced; type: what they are cast to.
local function reduced(P, w, order, shape, reduce, type, name)
  return te.compute(shape, function(...)
    local indices = {...}
    local at, c = order.parts(indices)
    return reduce(te.cast(P[order.image(indices[1], w.at(at), c)], type), w.taps)
  end, name, window.axes(order, #w.taps, "c"))
end

-- What lies outside of the image does not count.
function ops.max_pool(X, options)
  local w, order, shape, _, o = pool_of("max_pool", X, options, {})
  local P = window.pad(X, order.first, w.pads, te.min_value(X.type))
  return reduced(P, w, order, shape, te.max, X.type, o.name)
end

-- How many elements of the image the window of an element has in one dimension.
local function covered(place, extent, kernel, stride, pads)
  local start = place * stride - pads[1]
  return te.minimum(start + kernel, extent) - te.maximum(start, 0)
end

-- Of elements of the image alone, or with include_pad of whole windows, zeros around it counted.
function ops.avg_pool(X, options)
  local w, order, shape, spatial, o = pool_of("avg_pool", X, options, {include_pad = false})
  common.check_float("avg_pool", "X", X)
  common.check_flags("avg_pool", o, "include_pad")
  local total =
    reduced(window.pad(X, order.first, w.pads), w, order, shape, te.sum, common.sums(X.type), o.name .. "_sum")
  return te.compute(shape, function(...)
    local places, count, fixed = order.parts {...}, nil, 1
    for d, place in ipairs(places) do
      local pads = w.pads[d]
      if o.include_pad or pads[1] + pads[2] == 0 then fixed = fixed * w.kernel[d]
      else
        local inside = covered(place, spatial[d], w.kernel[d], w.stride[d], pads)
        count = count and count * inside or inside
      end
    end
    local value = total[{...}]
    return te.cast(count and value / te.cast(count * fixed, total.type) or value * (1.0 / fixed), X.type)
  end, o.name, window.axes(order, #w.taps, "c"))
end

return ops
