-- Fusion: the nodes of a network in groups, each of which becomes one function of tensors. A group has at most one node
-- that is a product, a window or a reduction, but for a norm before a product on a GPU; around it is what is
-- elementwise or changes shapes only. What a group gives is read by others whole, so a value between two of its nodes
-- is never in memory.
local ms = msched
local te, common, infer, memory = ms.te, ms.load "lua.net.common", ms.load "lua.net.infer", ms.load "lua.net.memory"
local fuse = {}

local MOST_NODES, MOST_INPUTS = 16, 24 -- of a group
local MOST_COPIES = 64 -- that the nodes of a group are computed for one element, all together

-- ---- What a node is ----------------------------------------------------------------------------------------------

local set = common.set
-- Their results are the bytes of their first inputs, in other extents.
local ALIAS = set "Identity Dropout Reshape Flatten Squeeze Unsqueeze"
-- Each element of what they give is one of what they take, and each is taken once.
local BIJECTIVE = set "Identity Dropout Reshape Flatten Squeeze Unsqueeze Transpose DepthToSpace SpaceToDepth"
-- That stand in files of others:
local ELEMENTWISE = set "BatchNormalization QuantizeLinear DequantizeLinear OfSums Requantized"
local ANCHOR = set "ProductByBlocks WinogradProduct WinogradOutput" -- the same
local ALONE = set "TopK CumSum ScatterND ScatterElements NonZero Scatter"
-- Parts of recurrent networks, and which of their inputs are multiplied by what they are given.
local MULTIPLIED = {RecurrentInput = 2, RNNCell = 3, GRUCell = 3, LSTMCell = 3}
local OF_FAMILY =
  {elementwise = "elementwise", shapes = "injective", reductions = "reduction", products = "anchor", windows = "anchor"}

-- "elementwise", "injective", "reduction", "anchor", or "alone": it is fused with nothing.
local function kind_of(step)
  if #step.outputs ~= 1 or ALONE[step.node.op] or step.node.alone then return "alone" end
  if ELEMENTWISE[step.node.op] then return "elementwise" end
  if ANCHOR[step.node.op] then return "anchor" end
  if step.node.op == "Attention" and step.node.domain == "msched" then return "attention" end
  return OF_FAMILY[infer.family(step.node)] or "alone"
end

local HEAVY = {anchor = true, reduction = true, attention = true}

local function elements(state, name) return common.count(state.values[name].shape) end

local function is_alias(state, step)
  if not ALIAS[step.node.op] or #step.inputs ~= 1 or #step.outputs ~= 1 then return false end
  return not state.values[step.inputs[1]].layout and not state.values[step.outputs[1]].layout
end

-- ---- Groups ------------------------------------------------------------------------------------------------------

-- A group of one step. output: its last value; heavy: the kind of its one product, window or reduction, or nil; alone;
-- plain: every node is elementwise or a bijection, of as many elements as the group gives; checked: values whose
-- elements are looked at before it runs.
local function group_of(state, step, at)
  local kind = kind_of(step)
  local g = {steps = {step}, at = {[step] = at}, output = step.outputs[1], alone = kind == "alone",
             heavy = HEAVY[kind] and kind or nil, checked = {}, alias = is_alias(state, step)}
  g.moves = kind == "injective"
  g.plain = kind == "elementwise" or BIJECTIVE[step.node.op] == true
  for _, range in ipairs(step.ranges) do g.checked[range.input] = true end
  return g
end

local function inputs_of(steps)
  local made, seen, list = {}, {}, {}
  for _, step in ipairs(steps) do
    for _, name in ipairs(step.outputs) do made[name] = true end
  end
  for _, step in ipairs(steps) do
    for _, name in ipairs(step.inputs) do
      if not made[name] and not seen[name] then seen[name], list[#list + 1] = true, name end
    end
  end
  return list
end

-- Whether a group gives more bytes than it takes, of what is not constant, so that who reads it better takes these.
local function widens(state, p)
  local function bytes_of(name) return memory.bytes(state.values[name]) end
  local taken = 0
  for _, name in ipairs(inputs_of(p.steps)) do taken = taken + (state.values[name].constant and 0 or bytes_of(name)) end
  return taken < bytes_of(p.output)
end

-- Whether what p gives can be computed where g gives an element: its product, window or reduction takes none of it.
local function is_beside(p, g)
  if not g.heavy or not g.plain or p.heavy or not p.plain then return false end
  local before = {[p.output] = true}
  for _, step in ipairs(g.steps) do
    local reads = false
    for _, taken in ipairs(step.inputs) do reads = reads or before[taken] end
    if reads and HEAVY[kind_of(step)] then return false end
    if reads then for _, given in ipairs(step.outputs) do before[given] = true end end
  end
  return true
end

-- How often a step reads each of its inputs for an element, by their numbers.
local function uses_of(step)
  step.uses = step.uses or step.func:loads()
  return step.uses
end

-- How often steps are computed for an element of the last one, all together: what is read twice is computed twice, but
-- for a product, window or reduction.
local function copies_of(steps)
  local weights, total = {[steps[#steps].outputs[1]] = 1}, 0
  for at = #steps, 1, -1 do
    local step = steps[at]
    local own = HEAVY[kind_of(step)] and 1 or weights[step.outputs[1]] or 0
    total = total + own
    local uses = uses_of(step)
    for k, name in ipairs(step.inputs) do weights[name] = (weights[name] or 0) + uses[k] * own end
  end
  return total
end

-- A norm over rows that a product multiplies: a GPU normalizes as it copies tiles (rules/rule/norm_prologue.lua).
local NORMS = set "LayerNormalization RMSNormalization SimplifiedLayerNormalization"
local function is_prologue(state, p, g)
  local first = g.steps[1]
  return state.prologues and #p.steps == 1 and NORMS[p.steps[1].node.op] and infer.family(first.node) == "products"
         and first.inputs[1] == p.output
end

-- Whether what p gives may be computed inside g, which alone reads it. before: before reductions too; it is asked for
-- last, since a product's group takes in what is behind it at no cost, while a reduction computes what is before it
-- each time that it reads it.
local function may_join(state, p, g, before)
  if p.alone or g.alone or g.alias or g.checked[p.output] or #p.steps + #g.steps > MOST_NODES then return false end
  -- what is constant is computed once
  if state.values[p.output].constant ~= state.values[g.output].constant then return false end
  local whole = elements(state, p.output) == elements(state, g.output)
  if is_beside(p, g) and whole and (before or widens(state, p)) then return true end
  if g.heavy then
    if before and is_prologue(state, p, g) then return true end
    return before and g.heavy == "reduction" and not p.heavy and not p.moves and p.plain
      and g.steps[1].inputs[1] == p.output and #g.steps == 1
  end
  if p.heavy then return g.plain and whole end
  return whole or p.moves and not p.heavy and #p.steps == 1
end

local function join(p, g)
  local joined = {steps = table.move(g.steps, 1, #g.steps, #p.steps + 1, table.move(p.steps, 1, #p.steps, 1, {})),
                  at = {}, output = g.output, heavy = g.heavy or p.heavy, alone = false, alias = p.alias and g.alias,
                  plain = p.plain and g.plain, moves = p.moves or g.moves, checked = {}}
  for _, each in ipairs {p, g} do
    for step, at in pairs(each.at) do joined.at[step] = at end
    for name in pairs(each.checked) do joined.checked[name] = true end
  end
  if p.heavy then joined.plain = g.plain end
  table.sort(joined.steps, function(a, b) return joined.at[a] < joined.at[b] end)
  return joined
end

-- The groups that what p gives is computed in, all that read it: one, or several where one step widens what it takes.
local function takers_of(state, p, readers, before)
  local list = {}
  for g in pairs(readers) do
    if g == p or not may_join(state, p, g, before) then return nil end
    local joined = join(p, g)
    if #inputs_of(joined.steps) > MOST_INPUTS or copies_of(joined.steps) > MOST_COPIES then return nil end
    list[#list + 1] = g
  end
  if #list > 1 and (#p.steps > 1 or not widens(state, p)) then return nil end
  table.sort(list, function(a, b) return a.at[a.steps[1]] < b.at[b.steps[1]] end)
  return list
end

-- fuse.groups(state [, prologues]): the steps of infer.static in groups, in an order that can be run: a list of {steps,
-- inputs, outputs, alias}. prologues: norms come into the products that alone read them.
function fuse.groups(state, prologues)
  state.prologues = prologues
  local groups, maker, readers, kept = {}, {}, {}, {}
  for _, output in ipairs(state.net.outputs) do kept[output.name] = true end
  for at, step in ipairs(state.steps) do
    local g = group_of(state, step, at)
    groups[g] = true
    for _, name in ipairs(step.outputs) do maker[name] = g end
    for _, name in ipairs(step.inputs) do
      readers[name] = readers[name] or {}
      readers[name][g] = true
    end
  end
  local function merge(p, g)
    local joined = join(p, g)
    groups[p], groups[g], groups[joined] = nil, nil, true
    for _, step in ipairs(joined.steps) do
      for _, given in ipairs(step.outputs) do maker[given] = joined end
      for _, taken in ipairs(step.inputs) do
        readers[taken][p], readers[taken][g], readers[taken][joined] = nil, nil, true
      end
    end
  end
  local changed, before = true, false
  while changed or not before do
    before, changed = not changed, false
    for at = #state.steps, 1, -1 do -- the last of those that could join: its elements are still near
      local name = state.steps[at].outputs[1]
      local p = maker[name]
      local takers = p.output == name and #p.steps[#p.steps].outputs == 1 and readers[name] and not kept[name]
        and takers_of(state, p, readers[name], before) or {}
      for _, g in ipairs(takers) do
        merge(p, g)
        changed = true
      end
    end
  end
  local list = {}
  for at, step in ipairs(state.steps) do
    local g = maker[step.outputs[1]]
    if g.steps[#g.steps] == step then
      list[#list + 1] = {steps = g.steps, inputs = inputs_of(g.steps), outputs = step.outputs, alias = g.alias,
                         anchor = g.heavy == "anchor", ranges = {}}
    end
  end
  return list
end

-- Groups as text, a line each: what it gives, its operators, what it takes.
function fuse.text(groups)
  local lines = {}
  for i, g in ipairs(groups) do
    local operators = {}
    for k, step in ipairs(g.steps) do operators[k] = step.node.op end
    lines[i] = string.format("  %s = %s%s (%s)", table.concat(g.outputs, ", "), g.alias and "the bytes of " or "",
                             table.concat(operators, " "), table.concat(g.inputs, ", "))
  end
  return table.concat(lines, "\n")
end

-- ---- Functions ---------------------------------------------------------------------------------------------------

-- A constant of one element is a number in the function's text, but where it is what tells equal functions apart.
local Literal = {}
Literal.__index = function(t, key)
  return type(key) == "table" and te.const(t.value, t.type) or nil
end

local function literal_of(value)
  local array = value.array
  if not array or #array ~= 1 or value.layout or value.varies then return nil end
  local x = array:tolist()[1]
  if value.type == "bool" then x = x ~= 0 end
  if common.is_float(value.type) then x = x + 0.0 elseif value.type ~= "bool" then x = math.tointeger(x) end
  return x ~= nil and setmetatable({value = x, type = value.type, shape = value.shape}, Literal) or nil
end

-- Its operators and the extents that it gives: conv_relu_1x64x56x56.
local MOST_NAMED = 4 -- operators
local function name_of(state, group)
  local parts = {}
  for i, step in ipairs(group.steps) do
    if i > MOST_NAMED then break end
    parts[i] = step.node.op:lower():gsub("[^%w_]", "_")
  end
  parts[#parts + 1] = #group.outputs > 0 and table.concat(state.values[group.outputs[1]].shape, "x") or nil
  return table.concat(parts, "_")
end

-- Whether the group's function has a constant for an input, which it may pack ahead: a matrix or more of a product, a
-- window or a part of a recurrent network, where the group is not constant itself.
local function is_weight(state, group, value)
  local node = group.steps[1].node
  local multiplied = node.domain == "msched" and MULTIPLIED[node.op]
  return (group.anchor or multiplied and node.inputs[multiplied] == value.name) and value.constant and #value.shape > 1
    and not value.varies and not state.values[group.outputs[1]].constant
end

-- Makes the group's function: func, whose parameters are its inputs (those of them that are not numbers in its text)
-- and then its outputs; ranges, of indices that are looked at before it runs. name: what it is called, or else by its
-- operators.
function fuse.build(state, group, name)
  local made, params, inputs, weights = {}, {}, {}, {}
  for _, input in ipairs(inputs_of(group.steps)) do
    local value = state.values[input]
    made[input] = literal_of(value)
    if not made[input] then
      local tensor = te.placeholder(common.in_memory(value.shape, value.layout), value.type, "x" .. #inputs + 1)
      if is_weight(state, group, value) then weights[#weights + 1] = tensor.name end
      made[input], inputs[#inputs + 1], params[#params + 1] = common.placed(tensor, value.shape, value.layout), input,
        tensor
    end
  end
  group.ranges = {}

  for _, step in ipairs(group.steps) do
    local view, results = infer.results_of(state, step.node, made)
    table.move(view.ranges, 1, #view.ranges, #group.ranges + 1, group.ranges)
    for i, output in ipairs(step.node.outputs) do made[output] = output ~= "" and results[i] or nil end
  end
  for _, output in ipairs(group.outputs) do params[#params + 1] = common.unplaced(made[output]) end
  group.inputs, group.name = inputs, name or name_of(state, group)
  group.func = te.func(group.name, params, {weights = #weights > 0 and weights or nil})
  return group
end

return fuse
