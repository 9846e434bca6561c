-- A split is slices, each of which is fused with what reads it; slices of what was put together are the parts, or
-- slices of these.
local ms = msched
local infer, match = ms.load "lua.net.infer", ms.load "lua.net.match"
local pass = {name = "slices", text = "makes slices of splits, and takes slices of concatenations from the parts",
              needs_values = true}

local SLICE_OPSET = 13 -- of which starts, ends and axes are inputs

local function make_slice(net, m, node, x, axis, from, to)
  node.op, node.opset, node.attributes, node.inputs = "Slice", SLICE_OPSET, {}, {x}
  for i, each in ipairs {{"starts", from}, {"ends", to}, {"axes", axis}} do
    local name = m:fresh(node.outputs[1], each[1])
    net.constants[name], node.inputs[i + 1] = ms.array({1}, "int64", {each[2]}), name
  end
end

local function axis_of(node, rank, otherwise)
  local axis = node.attributes.axis or otherwise
  if math.type(axis) ~= "integer" or axis < -rank or axis >= rank then return nil end
  return axis < 0 and axis + rank or axis
end

-- Whether a reader of a slice takes it in: what is elementwise, or moves elements.
local FAMILIES = {elementwise = true, shapes = true}
local function is_taken(m, name)
  local reader = m:reader(name)
  return reader ~= nil and FAMILIES[infer.family(reader)] == true
end

-- The slices of a split: {name, from, to} each, and the axis; nil: it stays.
local function parts_of(m, node)
  local shape = m:shape(node.inputs[1])
  local axis = shape and axis_of(node, #shape, 0)
  if node.op ~= "Split" or node.domain ~= "" or not axis then return nil end
  local parts, from, gains = {}, 0, m:giver(node.inputs[1], "Concat") ~= nil
  for _, name in ipairs(node.outputs) do
    local own = m:shape(name)
    if not own then return nil end
    parts[#parts + 1] = {name = name, from = from, to = from + own[axis + 1]}
    from, gains = from + own[axis + 1], gains or is_taken(m, name)
  end
  return gains and parts or nil, axis
end

local function split(net, m)
  local nodes, changed = {}, false
  for _, node in ipairs(net.nodes) do
    local parts, axis = parts_of(m, node)
    if not parts then nodes[#nodes + 1] = node end
    for _, part in ipairs(parts or {}) do
      local made = {domain = "", name = node.name, outputs = {part.name}}
      make_slice(net, m, made, node.inputs[1], axis, part.from, part.to)
      nodes[#nodes + 1], changed = made, true
    end
  end
  net.nodes = nodes
  return changed
end

-- The only axis that a slice cuts, from 0, with the range there; nil: there are others, steps, or what is not known.
local function range_of(m, net, node)
  local shape, own = m:shape(node.inputs[1]), m:shape(node.outputs[1])
  local function list(i, name)
    local input = node.inputs[i] or ""
    local array = net.constants[input]
    if input == "" then return node.attributes[name] end
    return array and array:tolist() or m:list(input)
  end
  local starts, ends = list(2, "starts"), list(3, "ends")
  if not shape or not own or not starts or not ends or #starts ~= 1 or #ends ~= 1 then return nil end
  local axes, steps = list(4, "axes") or {0}, list(5, "steps") or {1}
  for i = 4, 5 do if (node.inputs[i] or "") ~= "" and not list(i) then return nil end end
  if steps[1] ~= 1 then return nil end
  local axis = axis_of({attributes = {axis = axes[1]}}, #shape)
  if not axis then return nil end
  local from, extent = starts[1], shape[axis + 1]
  from = math.max(0, math.min(from < 0 and from + extent or from, extent))
  return axis, from, from + own[axis + 1]
end

-- A slice of a concatenation along the same axis that lies in one of the parts.
local function take_part(net, m, node)
  local whole = node.op == "Slice" and node.domain == "" and m:giver(node.inputs[1], "Concat")
  if not whole or #node.outputs ~= 1 then return false end
  local axis, from, to = range_of(m, net, node)
  local shape = m:shape(node.inputs[1])
  if not axis or from >= to or axis_of(whole, #shape, 1) ~= axis then return false end
  local start = 0
  for _, name in ipairs(whole.inputs) do
    local extent = m:shape(name) and m:shape(name)[axis + 1]
    if not extent then return false end
    if from >= start and to <= start + extent then
      if from == start and to == start + extent then node.op, node.inputs, node.attributes = "Identity", {name}, {}
      else make_slice(net, m, node, name, axis, from - start, to - start) end
      return true
    end
    start = start + extent
  end
  return false
end

function pass.run(net, values)
  local m = match.of(net, values)
  local changed = split(net, m)
  for _, node in ipairs(net.nodes) do changed = take_part(net, m, node) or changed end
  if changed then ms.load "lua.net.pass.constants".run(net) end -- which takes identities out
  return changed
end

return pass
