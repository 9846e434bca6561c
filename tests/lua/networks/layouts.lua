-- Layouts of networks: small ones in each layout by hand, blocks of a vector among them, give what the network gives
-- node by node on the interpreter; no block's channels are found by division.  usage: msched layouts.lua
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local onnx = dofile(here .. "/support/lua/onnx.lua")
local layout = ms.load "lua.net.layout"
local path, db = os.tmpname(), os.tmpname()
os.remove(db)

local function read(m)
  local file <close> = assert(io.open(path, "wb"))
  file:write(onnx.model(m))
  file:close()
  return ms.onnx(path)
end

-- Numbers of a tensor, different everywhere, from -1 to 1; of integers, from -100 to 100.
local drawn = 0
local function some(shape, t)
  local count, values = 1, {}
  for _, extent in ipairs(shape) do count = count * extent end
  for i = 1, count do
    drawn = (drawn * 1103515245 + 12345) % 2147483648
    local x = (drawn >> 16) / 16384 - 1
    values[i] = t == "int8" and math.floor(100 * x) or t == "uint8" and math.floor(100 + 100 * x) or x
  end
  return {t or "float32", shape, values}
end

local function build(shape, nodes, constants, outputs)
  local m = {opset = 17, nodes = nodes, inputs = {{"x", "float32", shape}}, outputs = {}, constants = constants}
  for i, name in ipairs(outputs or {nodes[#nodes][3][1]}) do m.outputs[i] = {name} end
  return read(m)
end

-- A CPU whose vectors are of 8 elements, so that blocks are small, whatever this machine has.
local BLOCK = 8
layout.block = function() return BLOCK end

-- A network in each layout beside the interpreter node by node. step: what the last digit of a result may be off by.
-- Gives the texts of its functions, by layout.
local function check(what, net, step, options)
  local x = ms.array(net.inputs[1].shape, net.inputs[1].type):random(1, true)
  local want, texts = net:run({x = x}, {interpret = true}), {}
  for _, label in ipairs(layout.NAMES) do
    local how = {layout = label, written = true}
    for key, value in pairs(options or {}) do how[key] = value end
    local plan = net:plan(how)
    local got, parts = plan:run {x = x}, {}
    for name, array in pairs(want) do
      local difference, largest = array:difference(got[name]), array:difference(ms.array(array:shape(), array:type()))
      assert(largest > 0, what .. ": nothing but zeros")
      assert(difference <= (step or 1e-5 * math.max(1, largest)),
             string.format("%s, %s: %s differs by %g", what, label, name, difference))
      assert(table.concat(array:shape(), "x") == table.concat(got[name]:shape(), "x"))
    end
    for _, f in ipairs(plan.prepared.functions) do -- but those that copy, which change the order
      local copies = false
      for _, step in ipairs(f.groups[1].steps) do copies = copies or step.node.op == "Identity" end
      if not copies then parts[#parts + 1] = f.func:script() end
    end
    texts[label] = table.concat(parts, "\n")
  end
  return texts
end

-- Channels of a value in blocks are its block's and those within it: no index is divided by a block.
local function check_blocks(texts)
  assert(texts.blocked:find(", " .. BLOCK .. ")", 1, true) and texts.blocked ~= texts.last, texts.blocked)
  for _, divides in ipairs {"//", "%"} do
    local line = texts.blocked:match("[^\n]*" .. divides:gsub("%%", "%%%%") .. " " .. BLOCK .. "[^\n]*")
    assert(not line, line)
  end
end

-- ---- Convolutions, a residual, several images; an image whose channels no block divides before them ----

check_blocks(check("residual", build({2, 3, 9, 7}, {
  {"Conv", {"x", "w1", "b1"}, {"c1"}, {pads = {1, 1, 1, 1}}}, {"Relu", {"c1"}, {"r1"}},
  {"Conv", {"r1", "w2"}, {"c2"}, {pads = {1, 1, 1, 1}}}, {"Conv", {"r1", "w3"}, {"c3"}}, {"Add", {"c2", "c3"}, {"s"}},
  {"Relu", {"s"}, {"r2"}}, {"Conv", {"r2", "w4"}, {"y"}, {strides = {2, 2}, dilations = {2, 1}}},
}, {w1 = some {16, 3, 3, 3}, b1 = some {16}, w2 = some {16, 16, 3, 3}, w3 = some {16, 16, 1, 1},
    w4 = some {24, 16, 2, 3}})))

-- ---- Depthwise, groups of blocks and of less, channels that no block divides ----

check_blocks(check("depthwise", build({1, 16, 6, 7}, {
  {"Conv", {"x", "w1"}, {"c1"}, {group = 16, pads = {1, 1, 1, 1}}}, {"Clip", {"c1"}, {"k"}},
  {"Conv", {"k", "w2"}, {"c2"}}, {"Conv", {"c2", "w3"}, {"y"}, {group = 24, strides = {2, 1}}},
}, {w1 = some {16, 1, 3, 3}, w2 = some {24, 16, 1, 1}, w3 = some {24, 1, 3, 3}})))

check_blocks(check("groups", build({2, 16, 5, 5}, {
  {"Conv", {"x", "w1"}, {"c1"}, {group = 2, pads = {1, 1, 1, 1}}}, {"Relu", {"c1"}, {"r"}},
  {"Conv", {"r", "w2"}, {"y"}, {group = 4}},
}, {w1 = some {32, 8, 3, 3}, w2 = some {32, 8, 1, 1}})))

check("groups that are no blocks", build({1, 24, 5, 5}, {
  {"Conv", {"x", "w1"}, {"c1"}, {group = 2}}, {"Relu", {"c1"}, {"r"}}, {"Conv", {"r", "w2"}, {"c2"}, {group = 8}},
  {"Conv", {"c2", "w3"}, {"y"}, {group = 8}},
}, {w1 = some {16, 12, 2, 2}, w2 = some {8, 2, 1, 1}, w3 = some {16, 1, 1, 1}}))

check("channels that blocks do not divide", build({1, 5, 6, 6}, {
  {"Conv", {"x", "w1"}, {"c1"}}, {"Relu", {"c1"}, {"r1"}}, {"Conv", {"r1", "w2"}, {"c2"}}, {"Tanh", {"c2"}, {"t"}},
  {"Conv", {"t", "w3"}, {"c3"}}, {"Add", {"c3", "x"}, {"y"}},
}, {w1 = some {12, 5, 1, 1}, w2 = some {16, 12, 1, 1}, w3 = some {5, 16, 1, 1}}))

-- ---- Pools, concatenations, what is cut off and put around, broadcast over channels and over places ----

check_blocks(check("pools", build({1, 8, 8, 8}, {
  {"MaxPool", {"x"}, {"p1"}, {kernel_shape = {3, 3}, strides = {2, 2}, pads = {1, 1, 1, 1}}},
  {"AveragePool", {"x"}, {"p2"}, {kernel_shape = {2, 2}, strides = {2, 2}}},
  {"LpPool", {"x"}, {"p3"}, {kernel_shape = {2, 2}, strides = {2, 2}, p = 2}},
  {"Concat", {"p1", "p2", "p3"}, {"j"}, {axis = 1}}, {"Conv", {"j", "w"}, {"y"}},
}, {w = some {8, 24, 1, 1}})))

check("concatenations of parts of blocks", build({1, 8, 4, 4}, {
  {"Conv", {"x", "w1"}, {"c1"}}, {"Conv", {"x", "w2"}, {"c2"}}, {"Concat", {"c1", "c2", "x"}, {"j"}, {axis = 1}},
  {"Relu", {"j"}, {"r"}}, {"Concat", {"r", "r"}, {"k"}, {axis = 3}}, {"Conv", {"k", "w3"}, {"y"}},
}, {w1 = some {4, 8, 1, 1}, w2 = some {12, 8, 1, 1}, w3 = some {8, 24, 1, 1}}))

check("slices, pads, sums over channels", build({2, 16, 6, 6}, {
  {"Conv", {"x", "w1"}, {"c1"}}, {"Slice", {"c1", "from", "to", "axis"}, {"s"}},
  {"Pad", {"s", "around"}, {"p"}}, {"Conv", {"p", "w2"}, {"c2"}}, {"LRN", {"c2"}, {"l"}, {size = 3}},
  {"Conv", {"l", "w3"}, {"y"}},
}, {w1 = some {32, 16, 1, 1}, from = {"int64", {1}, {4}}, to = {"int64", {1}, {20}}, axis = {"int64", {1}, {1}},
    around = {"int64", {8}, {0, 0, 1, 0, 0, 0, 0, 2}}, w2 = some {8, 16, 2, 2}, w3 = some {8, 8, 1, 1}}))

check("scales of channels and of places", build({2, 8, 5, 6}, {
  {"Conv", {"x", "w1"}, {"c1"}}, {"GlobalAveragePool", {"c1"}, {"g"}}, {"Conv", {"g", "w2"}, {"a"}},
  {"Sigmoid", {"a"}, {"s"}}, {"Mul", {"c1", "s"}, {"m"}}, {"Add", {"m", "places"}, {"n"}},
  {"Mul", {"n", "channels"}, {"o"}}, {"Conv", {"o", "w3"}, {"c3"}}, {"GlobalMaxPool", {"c3"}, {"y"}},
}, {w1 = some {16, 8, 1, 1}, w2 = some {16, 16, 1, 1}, places = some {1, 1, 5, 6}, channels = some {16, 1, 1},
    w3 = some {16, 16, 3, 3}}))

check("a mask of places that is data", build({1, 8, 5, 5}, {
  {"Conv", {"x", "w1"}, {"c1"}}, {"Conv", {"c1", "w2"}, {"c2"}}, {"Sigmoid", {"c2"}, {"s"}},
  {"Mul", {"c1", "s"}, {"m"}}, {"Conv", {"m", "w1"}, {"y"}},
}, {w1 = some {8, 8, 1, 1}, w2 = some {1, 8, 1, 1}}))

-- ---- Transposed, of one and of three dimensions; other nodes between ----

check("transposed", build({1, 16, 4, 5}, {
  {"Conv", {"x", "w1"}, {"c1"}}, {"ConvTranspose", {"c1", "w2", "b"}, {"t"}, {strides = {2, 2}, pads = {1, 0, 0, 1}}},
  {"Relu", {"t"}, {"r"}}, {"Conv", {"r", "w3"}, {"c3"}},
  {"ConvTranspose", {"c3", "w4"}, {"y"}, {group = 2, strides = {1, 2}, dilations = {2, 1}}},
}, {w1 = some {16, 16, 1, 1}, w2 = some {16, 8, 3, 3}, b = some {8}, w3 = some {16, 8, 2, 2},
    w4 = some {16, 4, 2, 2}}))

check_blocks(check("one dimension", build({2, 8, 20}, {
  {"Conv", {"x", "w1"}, {"c1"}, {pads = {2, 2}, dilations = {2}}}, {"Relu", {"c1"}, {"r"}},
  {"MaxPool", {"r"}, {"p"}, {kernel_shape = {2}, strides = {2}}}, {"Conv", {"p", "w2"}, {"y"}},
}, {w1 = some {16, 8, 3}, w2 = some {8, 16, 1}})))

check_blocks(check("three dimensions", build({1, 8, 4, 5, 6}, {
  {"Conv", {"x", "w1"}, {"c1"}, {pads = {1, 1, 1, 1, 1, 1}}}, {"Relu", {"c1"}, {"r"}},
  {"AveragePool", {"r"}, {"y"}, {kernel_shape = {2, 2, 2}}},
}, {w1 = some {8, 8, 3, 3, 3}})))

check("shapes that change between, and two outputs", build({2, 8, 4, 4}, {
  {"Conv", {"x", "w1"}, {"c1"}}, {"Reshape", {"c1", "flat"}, {"f"}}, {"MatMul", {"f", "m"}, {"p"}},
  {"Reshape", {"p", "back"}, {"i"}}, {"Add", {"i", "c1"}, {"a"}}, {"Conv", {"a", "w2"}, {"c2"}},
  {"Transpose", {"c2"}, {"y"}, {perm = {0, 2, 3, 1}}},
}, {w1 = some {16, 8, 1, 1}, flat = {"int64", {2}, {32, 16}}, m = some {16, 16}, back = {"int64", {4}, {2, 16, 4, 4}},
    w2 = some {8, 16, 1, 1}}, {"a", "y"}))

-- ---- int8: a step of the last quantization may be off by one where what it rounds is half way ----

check("int8", build({1, 8, 6, 6}, {
  {"QuantizeLinear", {"x", "s", "z"}, {"q"}}, {"DequantizeLinear", {"q", "s", "z"}, {"d"}},
  {"DequantizeLinear", {"w1", "sw"}, {"v1"}}, {"Conv", {"d", "v1"}, {"c1"}, {pads = {1, 1, 1, 1}}},
  {"Relu", {"c1"}, {"r"}}, {"QuantizeLinear", {"r", "t", "z"}, {"q1"}}, {"DequantizeLinear", {"q1", "t", "z"}, {"d1"}},
  {"MaxPool", {"d1"}, {"p"}, {kernel_shape = {2, 2}, strides = {2, 2}}}, {"DequantizeLinear", {"w2", "sw"}, {"v2"}},
  {"Conv", {"p", "v2"}, {"c2"}}, {"Relu", {"c2"}, {"y"}},
}, {s = {"float32", {}, {0.01}}, z = {"uint8", {}, {128}}, sw = {"float32", {}, {0.01}}, t = {"float32", {}, {0.05}},
    w1 = some({16, 8, 3, 3}, "int8"), w2 = some({8, 16, 1, 1}, "int8")}), 0.5)

-- ---- Tuned by estimate alone, what is chosen by hand; names of layouts ----

do
  local net = build({1, 8, 6, 6}, {{"Conv", {"x", "w1"}, {"c"}, {pads = {1, 1, 1, 1}}}, {"Relu", {"c"}, {"r"}},
                    {"Conv", {"r", "w2"}, {"y"}}}, {w1 = some {16, 8, 3, 3}, w2 = some {8, 16, 1, 1}})
  check("proposals", net, nil, {written = false, no_tune = true, db = db})
  local orders = {last = "1_3_4_2", second = nil, blocked = "1_2_3_4/8"}
  for _, label in ipairs(layout.NAMES) do
    local values = net:plan({layout = label, written = true}).prepared.state.values
    local order = values.r.layout
    assert((order and layout.key(order)) == orders[label], label)
    assert(values.y.layout == nil, "what the network gives is as written")
  end
  local ok, message = pcall(net.plan, net, {layout = "first", written = true})
  assert(not ok and tostring(message):find("layout `first`: there are ", 1, true), message)
end

os.remove(path)
os.remove(db)
os.remove(db .. "-lock")
print "ok"
