-- Small networks and their plans, for tests: made, planned, run beside the interpreter node by node.
local ms = msched
local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$"
local onnx = dofile(here .. "/onnx.lua")
local planned = {}

-- Numbers of a tensor, different everywhere, from -1 to 1.
local drawn = 0
function planned.some(shape, least)
  local count, values = 1, {}
  for _, extent in ipairs(shape) do count = count * extent end
  for i = 1, count do
    drawn = (drawn * 1103515245 + 12345) % 2147483648
    values[i] = (least or -1) + (1 - (least or -1)) * (drawn >> 16) / 32768
  end
  return {"float32", shape, values}
end

-- A network of nodes of x: {op, inputs, outputs, attributes}; what it gives is the last value, or those that are named.
function planned.build(shape, nodes, constants, outputs)
  local last = nodes[#nodes][3][1]
  local m = {opset = 17, nodes = nodes, inputs = {{"x", "float32", shape}}, outputs = {}, constants = constants}
  for i, name in ipairs(outputs or {last}) do m.outputs[i] = {name} end
  return onnx.read(m)
end

-- Its plan, whose functions are as they are written, beside the interpreter node by node; the operators of its groups.
function planned.check(net, options)
  local x = ms.array(net.inputs[1].shape, net.inputs[1].type):random(1, true)
  local want = net:run({x = x}, {interpret = true})
  local plan = net:plan(options or {written = true})
  local got = plan:run {x = x}
  for _ = 1, 2 do
    for name, array in pairs(want) do
      local difference, largest = array:difference(got[name]), array:difference(ms.array(array:shape(), array:type()))
      assert(difference <= 1e-5 * math.max(1, largest), string.format("%s differs by %g", name, difference))
      assert(table.concat(array:shape(), "x") == table.concat(got[name]:shape(), "x"))
    end
    got = plan:run {x = x} -- again, in memory that has been used
  end
  local texts = {}
  for i, g in ipairs(plan.prepared.groups) do
    local ops = {}
    for k, step in ipairs(g.steps) do ops[k] = step.node.op end
    texts[i] = (g.alias and "alias " or "") .. table.concat(ops, " ")
  end
  return texts, plan
end
-- The same, where the operators are to be these; the plan.
function planned.groups(want, net, options)
  local texts, plan = planned.check(net, options)
  local got = table.concat(texts, ", ")
  assert(got == want, "expected: " .. want .. "\ngot: " .. got)
  return plan
end

-- Constants of a batch normalization, and the names of its inputs.
function planned.norm(constants, name, channels)
  for i, part in ipairs {"scale", "shift", "mean", "variance"} do
    constants[name .. part] = planned.some({channels}, i == 4 and 0.5 or nil)
  end
  return name .. "scale", name .. "shift", name .. "mean", name .. "variance"
end

-- The operators that are left of a network by all passes.
function planned.nodes_after(net)
  local ops = {}
  for i, node in ipairs(ms.load "lua.net.passes".run(net, {}).nodes) do ops[i] = node.op end
  return table.concat(ops, " ")
end

return planned
