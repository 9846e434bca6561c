-- Control flow, where what it depends on is known before anything runs: the branch that is taken, and loops as often as
-- they run, node by node.
local ms = msched
local te, common = ms.te, ms.load "lua.net.common"
local operators = {}

local function count_inputs(n, graph, inputs, what)
  if #graph.inputs ~= #inputs then n:fail("its %s takes %d values, and is given %d", what, #graph.inputs, #inputs) end
end

-- A branch that is not taken may have operators which are not known.
operators.If = function(n)
  local check = ms.load "lua.net.infer".check_operators
  if not n.known(n:value(1)) then
    local one, other = n:graph "then_branch".nodes, n:graph "else_branch".nodes
    check(table.move(other, 1, #other, #one + 1, table.move(one, 1, #one, 1, {})))
  end
  local branch = n:scalar(1) ~= 0 and "then_branch" or "else_branch"
  local graph = n:graph(branch)
  check(graph.nodes)
  count_inputs(n, graph, {}, branch)
  if #graph.outputs < #n.node.outputs then
    n:fail("its %s gives %d values, not %d", branch, #graph.outputs, #n.node.outputs)
  end
  return n:gives(n:inline(graph, {}))
end

-- A tensor that has those of its inputs one after the other along a new axis.
operators["msched.Stack"] = function(n)
  local first, tensors = n:shape(1), {}
  local axis, shape = n:axis(n:int "axis", #first + 1), table.move(first, 1, #first, 1, {})
  table.insert(shape, axis, n:count())
  for k = 1, n:count() do
    if common.text(n:shape(k)) ~= common.text(first) or n:type(k) ~= n:type(1) then
      n:fail("a step gives %s of %s, the first one %s of %s", common.text(n:shape(k)), n:type(k), common.text(first),
             n:type(1))
    end
    tensors[k] = n:x(k)
  end
  return common.compute(shape, n:type(1), function(i)
    local own = table.move(i, 1, #i, 1, {})
    table.remove(own, axis)
    return common.choose(tensors, 1, #tensors, i[axis], function(X) return X[own] end)
  end)
end

-- What the steps of a loop gave, stacked; of no steps, what the graph says that it is.
local function stacked(n, names, output, axis)
  if #names > 0 then return n:stack(names, axis) end
  local shape = {}
  for d, extent in ipairs(output.shape or n:fail("it runs no steps, and the shape of %s is not known", output.name)) do
    if math.type(extent) ~= "integer" or not output.type then
      n:fail("it runs no steps, and the shape of %s is not known", output.name)
    end
    shape[d] = extent
  end
  table.insert(shape, n:axis(axis, #shape + 1), 0)
  return n:constant(ms.array(shape, output.type))
end

operators.Loop = function(n)
  local body, most = n:graph "body", n:has(1) and n:scalar(1) or math.maxinteger
  local goes, state = not n:has(2) or n:scalar(2) ~= 0, table.move(n.node.inputs, 3, n:count(), 1, {})
  if most == math.maxinteger and not n:has(2) then n:fail "it never ends: it has neither a count nor a condition" end
  count_inputs(n, body, {"", "", table.unpack(state)}, "body")
  local carried = #state
  if #body.outputs < carried + 1 then n:fail("its body gives %d values, not %d", #body.outputs, carried + 1) end
  local lists, step = {}, 0
  for k = carried + 2, #body.outputs do lists[k] = {} end
  while goes and step < most do
    local names = n:inline(body, {n:constant(ms.array({}, "int64", {step})), n:constant(ms.array({}, "bool", {1})),
                                  table.unpack(state)})
    local condition = n:known_of(names[1])
    if not condition then
      n:fail("whether it goes on after step %d depends on data; it must be known before the network runs", step + 1)
    end
    goes, state, step = condition[0] ~= 0 and condition[0] ~= false, table.move(names, 2, carried + 1, 1, {}), step + 1
    for k, list in pairs(lists) do list[step] = names[k] end
  end
  for k = carried + 2, #body.outputs do state[k - 1] = stacked(n, lists[k], body.outputs[k], 0) end
  return n:gives(state)
end

operators.Scan = function(n)
  if n.opset < 9 then n:fail "before version 9 it is of batches, which is not computed" end
  local body, scans = n:graph "body", n:int "num_scan_inputs"
  local carried = n:count() - scans
  if scans < 1 or carried < 0 then n:fail("%d of %d inputs are scanned", scans, n:count()) end
  local state = table.move(n.node.inputs, 1, carried, 1, {})
  count_inputs(n, body, n.node.inputs, "body")
  local given = #body.outputs - carried
  if given < 0 then n:fail("its body gives %d values, not %d", #body.outputs, carried) end
  local function list_of(name, length)
    local list = n:ints(name, {})
    if #list > length then n:fail("%s has %d numbers, for %d", name, #list, length) end
    for k = #list + 1, length do list[k] = 0 end
    return list
  end
  local axes, directions = list_of("scan_input_axes", scans), list_of("scan_input_directions", scans)
  local out_axes, out_directions = list_of("scan_output_axes", given), list_of("scan_output_directions", given)
  local steps
  for k = 1, scans do
    local shape = n:shape(carried + k)
    local extent = shape[n:axis(axes[k], math.max(#shape, 1))]
    if #shape == 0 or steps and steps ~= extent then
      n:fail("input %d has %s steps, others %s", carried + k, extent or "no", steps or "some")
    end
    steps = extent
  end
  local lists = {}
  for k = 1, given do lists[k] = {} end
  for step = 1, steps do
    local inputs = table.move(state, 1, carried, 1, {})
    for k = 1, scans do
      local at = n:constant(ms.array({}, "int64", {directions[k] == 1 and steps - step or step - 1}), true)
      inputs[carried + k] = n:add("Gather", {n.node.inputs[carried + k], at}, {axis = axes[k]})
    end
    local names = n:inline(body, inputs)
    state = table.move(names, 1, carried, 1, {})
    for k, list in ipairs(lists) do list[out_directions[k] == 1 and steps + 1 - step or step] = names[carried + k] end
  end
  for k, list in ipairs(lists) do state[carried + k] = stacked(n, list, body.outputs[carried + k], out_axes[k]) end
  return n:gives(state)
end

return operators
