-- The loop nest of a function as nested rectangles.
local ms = msched
local html, nest = ms.load "lua.report.html", ms.load "lua.lib.nest"
local boxes = {}

local function box_of(node, target)
  if node.kind == "statement" then return html.element("div", {}, html.element("code", {}, html.text(node.name))) end
  local inner = {}
  for i, child in ipairs(node.children) do inner[i] = box_of(child, target) end
  local class, label = "nest", html.element("code", {}, html.text(node.name))
  if node.kind == "loop" then
    local place = node.bytes and target and nest.place_of(node.bytes, target)
    class = class .. " " .. node.how
    label = html.element("code", {}, html.text(string.format("%s × %s", node.name, node.extent))) .. " "
      .. html.text(node.how)
    if node.bytes then
      label = label .. string.format(' <span class="soft">%s%s</span>', html.number(node.bytes,
                                     nest.bytes_text(node.bytes)), place and ", " .. place or "")
    end
  elseif node.kind == "block" then
    class, label = class .. " block", "block " .. label
  end
  return html.element("div", {class = class}, label, table.concat(inner))
end

function boxes.page(script, target)
  local root, parts = nest.read(script), {}
  nest.measure(root)
  for i, child in ipairs(root.children) do parts[i] = box_of(child, target) end
  return table.concat(parts, "\n")
end

return boxes
