-- Layouts of networks: small ones in each layout by hand, blocks of a vector among them, give what the network gives
-- node by node on the interpreter; no block's channels are found by division. Labels that cost least: beside all that
-- there are; by what a store has measured, by estimates, and where nothing is estimated.  usage: msched layouts.lua
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
dofile(here .. "/support/lua/few_proposals.lua")
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

-- ---- int8: a step of the last quantization, 0.05, times the largest weight, 1.27, where a value is half way ----

check("int8", build({1, 8, 6, 6}, {
  {"QuantizeLinear", {"x", "s", "z"}, {"q"}}, {"DequantizeLinear", {"q", "s", "z"}, {"d"}},
  {"DequantizeLinear", {"w1", "sw"}, {"v1"}}, {"Conv", {"d", "v1"}, {"c1"}, {pads = {1, 1, 1, 1}}},
  {"Relu", {"c1"}, {"r"}}, {"QuantizeLinear", {"r", "t", "z"}, {"q1"}}, {"DequantizeLinear", {"q1", "t", "z"}, {"d1"}},
  {"MaxPool", {"d1"}, {"p"}, {kernel_shape = {2, 2}, strides = {2, 2}}}, {"DequantizeLinear", {"w2", "sw"}, {"v2"}},
  {"Conv", {"p", "v2"}, {"c2"}}, {"Relu", {"c2"}, {"y"}},
}, {s = {"float32", {}, {0.01}}, z = {"uint8", {}, {128}}, sw = {"float32", {}, {0.01}}, t = {"float32", {}, {0.05}},
    w1 = some({16, 8, 3, 3}, "int8"), w2 = some({8, 16, 1, 1}, "int8")}), 0.0636)

-- ---- Tuned by estimate alone, what is chosen by hand; names of layouts ----

do
  local net = build({1, 8, 6, 6}, {{"Conv", {"x", "w1"}, {"c"}, {pads = {1, 1, 1, 1}}}, {"Relu", {"c"}, {"r"}},
                    {"Conv", {"r", "w2"}, {"y"}}}, {w1 = some {16, 8, 3, 3}, w2 = some {8, 16, 1, 1}})
  check("proposals", net, nil, {written = false, no_tune = true, db = db})
  local orders = {auto = "1_3_4_2", last = "1_3_4_2", blocked = "1_2_3_4/8"}
  for _, label in ipairs(layout.NAMES) do
    local values = net:plan({layout = label, written = true}).prepared.state.values
    local order = values.r.layout
    assert((order and layout.key(order)) == orders[label], label)
    assert(values.y.layout == nil, "what the network gives is as written")
  end
  local ok, message = pcall(net.plan, net, {layout = "first", written = true})
  assert(not ok and tostring(message):find("layout `first`: there are ", 1, true), message)
end

-- What a run spends before its search is of its seconds.
do
  local plan, search, given = ms.load "lua.net.plan", ms.load "search.tune", nil
  local prepare, all = plan.prepare, search.all
  plan.prepare = function(...)
    ms.sleep(0.2)
    return prepare(...)
  end
  search.all = function(items, options)
    given = options.seconds
    return all(items, setmetatable({trials = 1}, {__index = options}))
  end
  local net = build({1, 1, 6, 6}, {{"Conv", {"x", "w1"}, {"y"}}}, {w1 = some {16, 1, 3, 3}})
  net:plan({seconds = 4, db = db})
  plan.prepare, search.all = prepare, all
  assert(given <= 3.8 and given >= 0.4, given)
end

-- What has the same bytes in two orders is not copied: images of one channel, or of one place.
do
  local net = build({1, 1, 6, 6}, {{"Conv", {"x", "w1"}, {"c"}}, {"GlobalAveragePool", {"c"}, {"g"}},
                    {"Flatten", {"g"}, {"f"}}, {"MatMul", {"f", "m"}, {"y"}}},
                    {w1 = some {16, 1, 3, 3}, m = some {16, 4}})
  check("no copies", net)
  for _, label in ipairs(layout.NAMES) do
    for _, node in ipairs(net:plan({layout = label, written = true}).prepared.net.nodes) do
      assert(node.op ~= "Identity", label .. ": " .. node.outputs[1])
    end
  end
end

-- ---- Labels that cost least, beside all labellings of small graphs ----

do
  local assign = ms.load "lua.net.assign"
  local function draw(n)
    drawn = (drawn * 1103515245 + 12345) % 2147483648
    return (drawn >> 8) % n
  end
  local function problem_of(labels)
    local problem, own = {nodes = {}, values = {}}, {}
    for _, label in ipairs(labels) do own[label] = label end
    for n = 1, 2 + draw(6) do
      local costs = {a = draw(20)}
      for k = 2, #labels do costs[labels[k]] = draw(5) > 0 and draw(20) or nil end
      problem.nodes[n] = {costs = costs}
    end
    for n in ipairs(problem.nodes) do
      local giver = draw(8) == 0 and {order = "a"} or {node = n, orders = own}
      local value = {cost = 1 + draw(12), giver = giver, readers = {}}
      for later = n + 1, #problem.nodes do
        if draw(2) == 0 then table.insert(value.readers, {node = later, orders = own}) end
      end
      if draw(4) == 0 then table.insert(value.readers, {order = "a"}) end
      problem.values[n] = value
    end
    return problem
  end
  local function least(problem, labels)
    local best, list = math.huge, {}
    local function go(n)
      if n > #problem.nodes then best = math.min(best, assign.cost(problem, list)) end
      for _, label in ipairs(n <= #problem.nodes and labels or {}) do
        list[n] = label
        if problem.nodes[n].costs[label] then go(n + 1) end
      end
    end
    go(1)
    return best
  end
  for round = 1, 300 do
    local labels = round % 2 == 0 and {"a", "b"} or {"a", "b", "c"}
    local problem, from = problem_of(labels), {}
    for n in ipairs(problem.nodes) do from[n] = "a" end
    local list, cost = assign.best(problem, labels, from)
    assert(cost == assign.cost(problem, list) and cost <= assign.cost(problem, from))
    local best = least(problem, labels)
    assert(cost >= best and (#labels > 2 or cost == best), string.format("%g, the least is %g", cost, best))
  end
end

-- ---- Layouts by cost ----

do
  local plan, untuned, search = ms.load "lua.net.plan", ms.load "search.untuned", ms.load "search.tune"
  local layouts = ms.load "lua.net.layout_costs"
  local chain = build({1, 16, 64, 64}, {
    {"Conv", {"x", "w1"}, {"c1"}}, {"Relu", {"c1"}, {"r1"}}, {"Conv", {"r1", "w2"}, {"c2"}, {pads = {1, 1, 1, 1},
    strides = {2, 2}}}, {"Relu", {"c2"}, {"r2"}}, {"Conv", {"r2", "w3"}, {"y"}},
  }, {w1 = some {16, 16, 1, 1}, w2 = some {16, 16, 3, 3}, w3 = some {16, 16, 1, 1}})
  local measured, all = untuned.measured, search.all

  -- The orders of values and the lines that say why. costs: as plan.prepare has them.
  local function orders_of(net, costs)
    local lines
    local prepared = plan.prepare(net, {costs = costs, target = "llvm -mcpu=x86-64-v3", after = function(name, _, notes)
      if name == "layout" then lines = table.concat(notes or {}, "\n") end
    end})
    local list = {}
    for _, name in ipairs {"r1", "r2"} do
      local value = prepared.state.values[name]
      list[#list + 1] = value and (value.layout and layout.key(value.layout) or "as written")
    end
    return table.concat(list, ", "), lines
  end
  -- Times of the store, of functions whose first tensor has its channels second, in blocks, or last; of the second
  -- convolution, whose window is 3 x 3, with channels second.
  local function times(second, blocked, of_window)
    untuned.measured = function(func)
      local shape, weights = func:params()[1].shape, func:params()[2].shape
      if #shape == 5 then return blocked end
      return shape[2] ~= 16 and 1e-3 or weights[4] == 3 and of_window or second
    end
  end
  local with_store = {store = {}, no_tune = true}
  untuned.proposed = function() return nil end
  search.all = function() error "nothing is to be estimated" end

  times(0.5e-3, 1e-3)
  local orders, lines = orders_of(chain, with_store)
  assert(orders == "as written, as written" and lines:find "c1: second of last %d+ %(measured%)", lines)
  times(2e-3, 0.2e-3)
  orders, lines = orders_of(chain, with_store)
  assert(orders == "1_2_3_4/8, 1_2_3_4/8", orders .. "\n" .. lines)
  times(4e-3, 4e-3, 0.97e-3) -- by less than copies take
  orders, lines = orders_of(chain, with_store)
  assert(orders == "1_3_4_2, 1_3_4_2" and lines:find "x: copied", orders .. "\n" .. lines)
  times(4e-3, 4e-3, 0.5e-3) -- by more
  orders, lines = orders_of(chain, with_store)
  assert(orders == "1_3_4_2, as written" and lines:find "c2: second of", lines)
  assert(lines:find "c1: last of" and lines:find "y: last of", lines)
  assert(lines:find "r1: copied" and lines:find "r2: copied", lines)
  assert(orders_of(chain) == "1_3_4_2, 1_3_4_2", "without costs channels are last")

  -- Where vectors are full of channels no bound pays, and nothing is estimated without tuning.
  untuned.measured = function() return nil end
  local full = build({1, 32, 33, 33}, {{"Conv", {"x", "w1"}, {"c1"}, {pads = {2, 2, 2, 2}}}, {"Relu", {"c1"}, {"r1"}},
                     {"Conv", {"r1", "w2"}, {"y"}, {pads = {2, 2, 2, 2}}}},
                     {w1 = some {32, 32, 5, 5}, w2 = some {32, 32, 5, 5}})
  orders, lines = orders_of(full, with_store)
  assert(orders == "1_3_4_2" and lines:find "c1: last of last %d+ %(bound%), second %d+ %(bound%)", lines)

  -- With time, estimates of other layouts are asked for; without, where vectors of channels are mostly empty.
  local asked = 0
  search.all = function(items)
    asked = asked + #items
    return {}
  end
  orders_of(chain, {store = {}, further = true})
  assert(asked > 0, "there is time to look")
  asked = 0
  local few = build({1, 2, 64, 64}, {{"Conv", {"x", "w1"}, {"c1"}}, {"Relu", {"c1"}, {"r1"}}, {"Conv", {"r1", "w2"},
                    {"c2"}}, {"Relu", {"c2"}, {"r2"}}, {"Conv", {"r2", "w3"}, {"y"}}},
                    {w1 = some {2, 2, 3, 3}, w2 = some {2, 2, 3, 3}, w3 = some {2, 2, 3, 3}})
  orders = orders_of(few, with_store)
  assert(asked > 0 and orders == "1_3_4_2, 1_3_4_2", "what cannot be estimated stays")
  untuned.measured, search.all = measured, all
  assert(layouts.are_known(ms.target "llvm -mcpu=x86-64-v3") and layouts.are_known(ms.target "cuda -arch=sm_80"))
  assert(not layouts.are_known {kind = "llvm", vector_bits = 32}, "a vector has several elements")
end

-- Estimated and run: the choice is the same again with the same store, and right.
do
  local net = build({1, 2, 32, 32}, {{"Conv", {"x", "w1"}, {"c1"}, {pads = {1, 1, 1, 1}}}, {"Relu", {"c1"}, {"r1"}},
                    {"Conv", {"r1", "w2"}, {"y"}, {pads = {1, 1, 1, 1}}}},
                    {w1 = some {3, 2, 3, 3}, w2 = some {2, 3, 3, 3}})
  local x = ms.array({1, 2, 32, 32}, "float32"):random(1, true)
  local want, orders = net:run({x = x}, {interpret = true}).y, {}
  for i = 1, 2 do
    local opened = net:plan {no_tune = true, db = db}
    local largest = want:difference(ms.array(want:shape(), "float32"))
    assert(want:difference(opened:run({x = x}).y) <= 1e-5 * largest)
    orders[i] = layout.key(opened.prepared.state.values.r1.layout)
  end
  assert(orders[1] == orders[2])
end

os.remove(path)
os.remove(db)
os.remove(db .. "-lock")
print "ok"
