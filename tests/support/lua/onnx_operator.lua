-- Small models of one operator of ONNX each, run on the interpreter and compiled; and the tensors that they are given.
local ms = msched
local here = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")
local onnx = dofile(here .. "onnx.lua")
local read = onnx.read
local support = {}

-- The model of an operator, "Name" or "domain.Name", whose inputs are x1, x2, … and whose results y1, y2, …
function support.model(op, inputs, outputs, attributes, opset)
  local m = {opset = opset or 21, inputs = {}, outputs = {}, constants = {}}
  local reads, gives = {}, {}
  for i, t in ipairs(inputs) do
    reads[i] = t and "x" .. i or ""
    if t and t.constant then m.constants["x" .. i] = t
    elseif t then m.inputs[#m.inputs + 1] = {"x" .. i, t[1], t[2]} end
  end
  for i = 1, outputs do gives[i], m.outputs[i] = "y" .. i, {"y" .. i} end
  local domain, name = op:match "^(.*)%.([^.]*)$"
  m.nodes = {{name or op, reads, gives, attributes, domain = domain}}
  return m
end

local function same(what, got, want)
  assert(got:type() == want[1], what .. " is of " .. got:type())
  assert(table.concat(got:shape(), "x") == table.concat(want[2], "x"),
         what .. " has extents " .. table.concat(got:shape(), "x"))
  for i, x in ipairs(got:tolist()) do
    local y = want[3][i]
    assert(x == y or x ~= x and y ~= y or math.abs(x - y) <= 1e-5 * math.max(1, math.abs(y)),
           string.format("%s: element %d is %s, not %s", what, i, x, y))
  end
end

-- Runs the operator and compares what it gives: tensors are {type, shape, values}; constant = true: known before it
-- runs.
function support.check(op, inputs, outputs, attributes, opset)
  local net, arrays = read(support.model(op, inputs, #outputs, attributes, opset)), {}
  for i, t in ipairs(inputs) do
    if t and not t.constant then arrays["x" .. i] = ms.array(t[2], t[1], t[3]) end
  end
  for _, interpret in ipairs {true, false} do
    local made = net:run(arrays, {interpret = interpret})
    for i, want in ipairs(outputs) do
      same(op .. (interpret and ", interpreted" or ", compiled"), made["y" .. i], want)
    end
  end
end

-- The operator is refused, in words that hold the expected ones; given = false: an input is not given.
function support.refuses(expected, op, inputs, attributes, opset)
  local ok, message = pcall(function()
    local arrays = {}
    for i, t in ipairs(inputs) do
      if t and not t.constant and t.given ~= false then arrays["x" .. i] = ms.array(t[2], t[1], t[3]) end
    end
    return read(support.model(op, inputs, 1, attributes, opset)):run(arrays, {interpret = true})
  end)
  assert(not ok and tostring(message):find(expected, 1, true),
         op .. ": expected: " .. expected .. "\ngot: " .. tostring(message))
end

function support.f32(shape, values) return {"float32", shape, values} end
function support.i64(shape, values) return {"int64", shape, values} end
function support.known(t) t.constant = true return t end

return support
