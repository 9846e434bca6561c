-- Curves as pictures in the page: axes, linear or logarithmic, with steps, dots and lines upon them.
local ms = msched
local html = ms.load "lua.report.html"
local chart = {}

local WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 250, 66, 12, 12, 38
local MOST_TICKS, MOST_POWERS = 6, 16

-- Multiples of 1, 2 or 5 × 10^n between two numbers, at most MOST_TICKS.
local function even_ticks(low, high)
  local list, step = {}, 10.0 ^ math.floor(math.log((high - low) / MOST_TICKS, 10))
  for _, s in ipairs {1, 2, 5, 10} do
    if (high - low) / (s * step) <= MOST_TICKS then
      for i = math.ceil(low / (s * step)), math.floor(high / (s * step)) do list[#list + 1] = i * s * step end
      return list
    end
  end
  return list
end

-- 1, 2 and 5 × 10^n between two numbers, or powers of ten alone where these are many.
local function powers(low, high)
  local list, first, last = {}, math.floor(math.log(low, 10)), math.ceil(math.log(high, 10))
  for power = first, last, 1 + (last - first) // MOST_POWERS do
    for _, s in ipairs(high / low > 1e3 and {1} or {1, 2, 5}) do
      local t = s * 10.0 ^ power
      if t >= low and t <= high then list[#list + 1] = t end
    end
  end
  return list
end

local function ticks_of(axis)
  local list = axis.log and powers(axis.low, axis.high) or {}
  return #list > 2 and list or even_ticks(axis.low, axis.high)
end

-- A number from low to high as a place from 0 to 1; one beyond is at the end.
local function place(x, axis)
  x = math.min(x, axis.high)
  if axis.log then return math.log(x / axis.low) / math.log(axis.high / axis.low) end
  return (x - axis.low) / (axis.high - axis.low)
end

local FARTHEST = 1e300 -- from 0; what is beyond is not drawn, as what is no number, or has no logarithm

local function has_place(x, axis) return x > -FARTHEST and x < FARTHEST and (not axis.log or x > 1 / FARTHEST) end

-- The ends of an axis that holds these numbers, up to axis.most.
local function axis_for(axis, numbers)
  local low, high = math.huge, -math.huge
  for _, x in ipairs(numbers) do low, high = math.min(low, x), math.max(high, x) end
  if low > high then low, high = 1, 2 end
  high = math.max(math.min(high, axis.most or high), low)
  if axis.log then low, high = low / 1.1, high * 1.1 elseif axis.zero then low = 0 end
  if high <= low then high = low + math.max(1, math.abs(low) / 8) end
  return {low = low, high = high, log = axis.log, label = axis.label, show = axis.show}
end

-- An axis for the page's script: its ends, and 1 where it is logarithmic.
local function axis_text(axis) return string.format("%.9g %.9g %d", axis.low, axis.high, axis.log and 1 or 0) end

-- The values of a layer for the page's script, which shows the nearest: of steps those at which they change.
local function values_of(layer)
  if layer.kind == "line" then return nil end
  local parts, last = {}, nil
  for _, p in ipairs(layer.points) do
    if layer.kind ~= "steps" or p[2] ~= last then parts[#parts + 1] = string.format("%.6g,%.6g", p[1], p[2]) end
    last = p[2]
  end
  return #parts > 0 and table.concat(parts, " ") or nil
end

local function is_scattered(layer) return layer.kind == "dots" or layer.kind == "mark" end
local function class_of(layer) return layer.class .. (is_scattered(layer) and " " .. layer.kind or "") end

-- A path of a layer: "dots" or "mark", each point a dot; "line"; or "steps", which keep their height up to the next
-- point.
local function path_of(layer, x, y)
  local parts, last = {}, nil
  for _, p in ipairs(layer.points) do
    local h = string.format("%.1f", LEFT + place(p[1], x) * (WIDTH - LEFT - RIGHT))
    local v = string.format("%.1f", HEIGHT - BOTTOM - place(p[2], y) * (HEIGHT - BOTTOM - TOP))
    if is_scattered(layer) then parts[#parts + 1] = "M" .. h .. " " .. v .. "h0"
    elseif not last then parts[1] = "M" .. h .. " " .. v
    elseif layer.kind == "steps" then parts[#parts + 1] = "H" .. h .. (v ~= last and "V" .. v or "")
    else parts[#parts + 1] = "L" .. h .. " " .. v end
    last = v
  end
  return html.element("path", {class = class_of(layer), d = table.concat(parts), ["data-points"] = values_of(layer),
                               ["data-name"] = layer.point})
end

local function draw_axes(x, y)
  local parts, bottom = {}, HEIGHT - BOTTOM
  local function text(h, v, anchor, words)
    parts[#parts + 1] = html.element("text", {x = string.format("%.1f", h), y = string.format("%.1f", v),
                                              ["text-anchor"] = anchor}, html.text(words))
  end
  for _, t in ipairs(ticks_of(y)) do
    local v = bottom - place(t, y) * (bottom - TOP)
    parts[#parts + 1] = html.element("path", {class = "grid", d = string.format("M%d %.1fH%d", LEFT, v, WIDTH - RIGHT)})
    text(LEFT - 5, v + 4, "end", y.show(t))
  end
  local free = 0
  for _, t in ipairs(ticks_of(x)) do
    local h, words = LEFT + place(t, x) * (WIDTH - LEFT - RIGHT), x.show(t)
    if h - #words * 3.5 > free then
      text(math.min(h, WIDTH - #words * 3.5), bottom + 16, "middle", words)
      free = h + #words * 3.5 + 4
    end
  end
  text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, "middle", x.label)
  parts[#parts + 1] = html.element("path", {class = "axis",
                                            d = string.format("M%d %dV%dH%d", LEFT, TOP, bottom, WIDTH - RIGHT)})
  return table.concat(parts, "\n")
end

-- A picture: title; description, what one sees there, in words; x and y, {label, show(number), log, zero, most, unit}:
-- what is above `most` is drawn at the edge, and where scripts run a value is shown with its unit, x's before it, of y
-- `s` for times; layers {kind, class, points {{x, y}…}, name, point}. Names of layers are a key below; point: what one
-- of its points is called.
function chart.draw(picture)
  local xs, ys, paths, keys = {}, {}, {}, {}
  for _, layer in ipairs(picture.layers) do
    local points = {}
    for _, p in ipairs(layer.points) do
      if has_place(p[1], picture.x) and has_place(p[2], picture.y) then
        points[#points + 1], xs[#xs + 1], ys[#ys + 1] = p, p[1], p[2]
      end
    end
    layer.points = points
  end
  local x, y = axis_for(picture.x, xs), axis_for(picture.y, ys)
  for i, layer in ipairs(picture.layers) do
    paths[i] = path_of(layer, x, y)
    if layer.name then
      local line = is_scattered(layer) and "M18 5h0" or "M0 5H36"
      local sample = html.element("svg", {viewBox = "0 0 36 10", ["aria-hidden"] = "true"},
                                  html.element("path", {class = class_of(layer), d = line}))
      keys[#keys + 1] = html.element("span", {}, sample .. " " .. html.text(layer.name))
    end
  end
  local svg = html.element("svg", {viewBox = string.format("0 0 %d %d", WIDTH, HEIGHT), role = "img",
                                   ["aria-label"] = picture.title .. ": " .. picture.description,
                                   ["data-box"] = string.format("%d %d %d %d", LEFT, WIDTH - RIGHT, TOP,
                                     HEIGHT - BOTTOM), ["data-x-axis"] = axis_text(x), ["data-y-axis"] = axis_text(y),
                                   ["data-x"] = picture.x.unit, ["data-y"] = picture.y.unit},
                           draw_axes(x, y), "\n", table.concat(paths, "\n"))
  local caption = html.element("figcaption", {}, html.text(picture.title .. " (" .. picture.y.label .. ")"),
                               #keys > 0 and html.element("div", {class = "key"}, table.concat(keys)) or "")
  return html.element("figure", {}, svg, caption)
end

return chart
