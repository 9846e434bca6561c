-- schedule:draw(): the loop nest as a picture in text, with the bytes that one run of each loop touches.
local ms = msched
local nest = ms.load "lua.lib.nest"

local function label_of(node, target)
  if node.kind == "block" then return "block " .. node.name end
  if node.kind ~= "loop" then return node.name end
  local place = node.bytes and nest.place_of(node.bytes, target)
  return string.format("%s × %s%s%s", node.name, node.extent, node.how ~= "serial" and " " .. node.how or "",
                       node.bytes
                         and string.format("   %s%s", nest.bytes_text(node.bytes), place and ", " .. place or "") or "")
end

local function draw(list, children, before, target)
  for i, child in ipairs(children) do
    local last = i == #children
    list[#list + 1] = before .. (last and "└ " or "├ ") .. label_of(child, target)
    draw(list, child.children or {}, before .. (last and "  " or "│ "), target)
  end
end

function ms.schedule_methods.draw(sch)
  local root = nest.read(sch:script())
  nest.measure(root)
  local list = {root.name}
  draw(list, root.children, "", ms.target "native")
  return table.concat(list, "\n")
end
