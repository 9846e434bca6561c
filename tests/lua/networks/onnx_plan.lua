-- Plans of networks: which nodes become one function, which functions are one, where images have their channels last;
-- passes; memory that values share. What a plan gives is what the network gives node by node on the interpreter.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local onnx = dofile(here .. "/support/lua/onnx.lua")
local path, db = os.tmpname(), os.tmpname()
os.remove(db)

local function read(m)
  local file <close> = assert(io.open(path, "wb"))
  file:write(onnx.model(m))
  file:close()
  return ms.onnx(path)
end

-- Numbers of a tensor, different everywhere, from -1 to 1.
local drawn = 0
local function some(shape, least)
  local count, values = 1, {}
  for _, extent in ipairs(shape) do count = count * extent end
  for i = 1, count do
    drawn = (drawn * 1103515245 + 12345) % 2147483648
    values[i] = (least or -1) + (1 - (least or -1)) * (drawn >> 16) / 32768
  end
  return {"float32", shape, values}
end

-- A network of nodes of x: {op, inputs, outputs, attributes}; what it gives is the last value, or those that are named.
local function build(shape, nodes, constants, outputs)
  local last = nodes[#nodes][3][1]
  local m = {opset = 17, nodes = nodes, inputs = {{"x", "float32", shape}}, outputs = {}, constants = constants}
  for i, name in ipairs(outputs or {last}) do m.outputs[i] = {name} end
  return read(m)
end

-- Its plan, whose functions are as they are written, beside the interpreter node by node; the operators of its groups.
local function check(net, options)
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
local function groups(want, net, options)
  local texts, plan = check(net, options)
  local got = table.concat(texts, ", ")
  assert(got == want, "expected: " .. want .. "\ngot: " .. got)
  return plan
end

-- ---- Convolutions: weights take batch normalization; the sum of a residual goes behind the last ----

local function norm(constants, name, channels)
  for i, part in ipairs {"scale", "shift", "mean", "variance"} do
    constants[name .. part] = some({channels}, i == 4 and 0.5 or nil)
  end
  return name .. "scale", name .. "shift", name .. "mean", name .. "variance"
end
local function residual()
  local c = {w1 = some {8, 4, 3, 3}, w2 = some {8, 8, 1, 1}, w3 = some {8, 4, 1, 1}, b3 = some {8}}
  local nodes = {{"Conv", {"x", "w1"}, {"c1"}, {pads = {1, 1, 1, 1}}}, {"BatchNormalization", {"c1", norm(c, "n1", 8)},
                 {"b1"}}, {"Relu", {"b1"}, {"r1"}}, {"Conv", {"r1", "w2"}, {"c2"}}, {"BatchNormalization",
                 {"c2", norm(c, "n2", 8)}, {"b2"}}, {"Conv", {"x", "w3", "b3"}, {"c3"}}, {"BatchNormalization",
                 {"c3", norm(c, "n3", 8)}, {"s3"}}, {"Add", {"b2", "s3"}, {"sum"}}, {"Relu", {"sum"}, {"y"}}}
  return build({2, 4, 7, 6}, nodes, c)
end
local plan = groups("Identity, Conv Relu, Conv, Conv Add Relu Identity", residual())
assert(plan.prepared.state.values.r1.layout[4] == 2 and plan.prepared.state.values.y.layout == nil,
       "channels are last between, and what it gives is as written")
groups("Identity, Conv Relu, Conv, Conv Add Relu Identity", residual(), {no_tune = true, db = db})

-- Two nodes read what BatchNormalization reads: it stays.
local c = {w = some {4, 4, 1, 1}}
groups("Identity, Conv BatchNormalization Add Identity", build({1, 4, 5, 5}, {{"Conv", {"x", "w"}, {"c"}},
       {"BatchNormalization", {"c", norm(c, "n", 4)}, {"b"}}, {"Add", {"b", "c"}, {"y"}}}, c))

-- Depthwise, grouped and transposed; pools, in one layout; channels that are shuffled.
c = {w1 = some {6, 1, 3, 3}, w2 = some {6, 3, 1, 1}, shape1 = {"int64", {5}, {1, 2, 3, 6, 6}},
     shape2 = {"int64", {4}, {1, 6, 6, 6}}, w3 = some {6, 5, 2, 2}, b = some {5}}
groups("Identity, Conv Relu, Conv Clip Identity Reshape Transpose Reshape Identity, MaxPool, AveragePool, Concat, \z
        ConvTranspose Identity", build({1, 6, 6, 6}, {{"Conv", {"x", "w1"}, {"c1"}, {group = 6, pads = {1, 1, 1, 1}}},
       {"Relu", {"c1"}, {"r"}}, {"Conv", {"r", "w2"}, {"c2"}, {group = 2}}, {"Clip", {"c2"}, {"k"}},
       {"Reshape", {"k", "shape1"}, {"s1"}}, {"Transpose", {"s1"}, {"t"}, {perm = {0, 2, 1, 3, 4}}},
       {"Reshape", {"t", "shape2"}, {"s2"}},
       {"MaxPool", {"s2"}, {"p1"}, {kernel_shape = {3, 3}, strides = {2, 2}, pads = {1, 1, 1, 1}}},
       {"AveragePool", {"s2"}, {"p2"}, {kernel_shape = {2, 2}, strides = {2, 2}}},
       {"Concat", {"p1", "p2"}, {"j"}, {axis = 2}}, {"ConvTranspose", {"j", "w3", "b"}, {"y"}, {strides = {2, 2}}}}, c))

-- Dimensions that end together stay by themselves when a shape changes: no index is divided by what others have in all.
do
  local function reshaped(from, to, least)
    local net = build(from, {{"Exp", {"x"}, {"e"}}, {"Reshape", {"e", "to"}, {"r"}}, {"Neg", {"r"}, {"y"}}},
                      {to = {"int64", {#to}, to}})
    local _, plan = check(net)
    local divisors = {}
    for divisor in plan.prepared.functions[1].func:script():gmatch "// (%d+)" do divisors[divisor] = true end
    assert(table.concat(ms.sorted_keys(divisors), " ") == least, table.concat(ms.sorted_keys(divisors), " "))
  end
  reshaped({1, 12, 5, 7}, {1, 3, 4, 5, 7}, "")
  reshaped({3, 4, 5, 7}, {12, 5, 7}, "4")
  reshaped({2, 6, 1, 35}, {1, 12, 5, 7, 1}, "6")
  reshaped({6, 35}, {10, 21}, "35")
  reshaped({1, 1}, {1}, "")
end

-- What the network gives is read by a convolution too, which takes it with channels last.
groups("Identity, Conv, Identity, Conv Identity",
       build({1, 2, 6, 6}, {{"Conv", {"x", "w"}, {"a"}}, {"Conv", {"a", "v"}, {"y"}}},
             {w = some {4, 2, 3, 3}, v = some {2, 4, 3, 3}}, {"a", "y"}))

-- One and three dimensions.
groups("Identity, Conv Identity",
       build({2, 3, 9}, {{"Conv", {"x", "w"}, {"y"}, {strides = {2}}}}, {w = some {4, 3, 3}}))
groups("Identity, Conv Sigmoid Identity",
       build({1, 2, 4, 4, 4}, {{"Conv", {"x", "w"}, {"c"}, {pads = {1, 1, 1, 1, 1, 1}}}, {"Sigmoid", {"c"}, {"y"}}},
             {w = some {3, 2, 3, 3, 3}}))

-- ---- Products: epilogues, diamonds, what only has another shape ----

c = {w = some {16, 8}, b = some {8}, half = {"float32", {}, {0.5}}, one = {"float32", {1}, {1}},
     root = {"float32", {}, {1.4142135}}}
-- What is read twice is computed twice: a chain of maxima is cut before its function doubles too often.
do
  local nodes, constants, last = {}, {}, "x"
  for k = 1, 10 do
    nodes[k], last = {"Max", {last, "c" .. k}, {"m" .. k}}, "m" .. k
    constants["c" .. k] = {"float32", {8}, {0, k / 20, -1, 0.5, -0.5, k / 12, -2, 0.1}}
  end
  groups("Max Max Max Max, Max Max Max Max Max Max", build({4, 8}, nodes, constants))
end
plan = groups("MatMul Add Gelu", build({4, 16}, {{"MatMul", {"x", "w"}, {"m"}}, {"Add", {"m", "b"}, {"a"}}, {"Div",
                                                 {"a", "root"}, {"d"}}, {"Erf", {"d"}, {"e"}}, {"Add", {"e", "one"},
                                                 {"p"}}, {"Mul", {"a", "p"}, {"q"}}, {"Mul", {"q", "half"}, {"y"}}}, c))
assert(#plan.prepared.groups[1].inputs == 3, "constants of one element are in the function's text")
local weights = {w = some {8, 16}, b = some {8}}
plan = groups("Gemm Tanh",
              build({4, 16}, {{"Gemm", {"x", "w", "b"}, {"g"}, {transB = 1}}, {"Tanh", {"g"}, {"y"}}}, weights))
assert(plan.prepared.state.values["w in order 2_1"].array, "weights are turned before it runs")

-- Weights of few bits: whole blocks are products that take what is elementwise behind, and weights to pack; what no
-- block of whole bytes holds is computed element by element.
local function bytes(shape, count)
  local values = {}
  for i = 1, count do values[i] = (i * 37 + 11) % 256 end
  return {"uint8", shape, values}
end
c = {w = bytes({6, 2, 8}, 96), s = some({12}, 0), z = bytes({6}, 6), b = some {6}, r = some {1, 3, 6}}
for level = 0, 4, 4 do
  plan = groups("alias Reshape, ProductByBlocks Reshape Add", build({1, 3, 32}, {
    {"MatMulNBits", {"x", "w", "s", "z", "", "b"}, {"m"},
     {K = 32, N = 6, bits = 4, block_size = 16, accuracy_level = level}, domain = "com.microsoft"},
    {"Add", {"m", "r"}, {"y"}}}, c))
  assert(plan.prepared.functions[1].func:script():find "layout_free_buffers" and #plan.prepared.functions == 1)
end
groups("MatMulNBits", build({1, 3, 24}, {{"MatMulNBits", {"x", "w", "s", "z"}, {"y"},
                                          {K = 24, N = 6, bits = 4, block_size = 16}, domain = "com.microsoft"}}, c))

-- Attention: heads are split by the epilogues of the products, and equal ones are one function.
c = {q = some {12, 12}, k = some {12, 12}, v = some {12, 12}, split = {"int64", {4}, {2, 5, 3, 4}},
     joined = {"int64", {3}, {2, 5, 12}}, scale = {"float32", {}, {0.5}}}
plan = groups("MatMul Reshape Transpose, MatMul Reshape Transpose, MatMul Reshape Transpose, MatMul Mul, Softmax, \z
               MatMul Transpose, alias Reshape", build({2, 5, 12},
              {{"MatMul", {"x", "q"}, {"q1"}}, {"Reshape", {"q1", "split"}, {"q2"}}, {"Transpose", {"q2"}, {"q3"},
               {perm = {0, 2, 1, 3}}}, {"MatMul", {"x", "k"}, {"k1"}}, {"Reshape", {"k1", "split"}, {"k2"}},
               {"Transpose", {"k2"}, {"k3"}, {perm = {0, 2, 3, 1}}}, {"MatMul", {"x", "v"}, {"v1"}},
               {"Reshape", {"v1", "split"}, {"v2"}}, {"Transpose", {"v2"}, {"v3"}, {perm = {0, 2, 1, 3}}},
               {"MatMul", {"q3", "k3"}, {"s"}}, {"Mul", {"s", "scale"}, {"scaled"}},
               {"Softmax", {"scaled"}, {"p"}, {axis = -1}}, {"MatMul", {"p", "v3"}, {"o"}},
               {"Transpose", {"o"}, {"t"}, {perm = {0, 2, 1, 3}}}, {"Reshape", {"t", "joined"}, {"y"}}}, c))
assert(plan.prepared.groups[1].kernel == plan.prepared.groups[3].kernel and plan.prepared.groups[1].kernel.weight == 2,
       "equal functions are one")

-- Several outputs, of which one is read by others too; one that is an input; one that is a constant.
groups("Relu, Neg",
       build({3, 4}, {{"Relu", {"x"}, {"r"}}, {"Neg", {"r"}, {"y"}}}, {k = some {2}}, {"y", "r", "x", "k"}))

-- What no function reads, though a node names it: parts without elements, what says a type alone.
check(build({3, 4}, {{"Split", {"x", "sizes"}, {"p", "q"}, {axis = 1}}, {"Exp", {"p"}, {"e"}},
                     {"Concat", {"e", "q"}, {"y"}, {axis = 1}}}, {sizes = {"int64", {2}, {4, 0}}}))
check(build({3, 4}, {{"Slice", {"x", "from", "to", "ax"}, {"s"}}, {"Exp", {"x"}, {"e"}},
                     {"Concat", {"s", "e"}, {"y"}, {axis = 1}}},
            {from = {"int64", {1}, {4}}, to = {"int64", {1}, {9}}, ax = {"int64", {1}, {1}}}))
groups("Exp CastLike",
       build({3, 4}, {{"Neg", {"x"}, {"n"}}, {"Exp", {"x"}, {"e"}}, {"CastLike", {"e", "n"}, {"y"}}}, {}))

-- Extents of 0: there is nothing to search.
check(build({0, 4}, {{"Relu", {"x"}, {"y"}}}, {}), {no_tune = true, db = db})

-- ---- Passes ----

local function nodes_after(net)
  local ops = {}
  for i, node in ipairs(ms.load "lua.net.passes".run(net, {}).nodes) do ops[i] = node.op end
  return table.concat(ops, " ")
end
local alike = build({3, 4}, {{"Identity", {"x"}, {"i"}}, {"Exp", {"i"}, {"a"}}, {"Exp", {"x"}, {"b"}},
                             {"Log", {"x"}, {"unread"}}, {"Add", {"a", "b"}, {"y"}}}, {})
assert(nodes_after(alike) == "Exp Add", nodes_after(alike))
assert(#alike.nodes == 5, "the network itself stays")
check(alike)
local other = build({3, 4}, {{"Elu", {"x"}, {"a"}, {alpha = 0.5}}, {"Elu", {"x"}, {"b"}, {alpha = 2.0}},
                             {"Add", {"a", "b"}, {"y"}}}, {})
assert(nodes_after(other) == "Elu Elu Add", "attributes tell them apart")
check(other)

-- Layer normalization, spelled out in two spellings; where its parts are read by others it stays.
local function written_out(square, more)
  local nodes = {{"ReduceMean", {"x"}, {"m"}, {axes = {-1}}}, {"Sub", {"x", "m"}, {"d"}}, square,
                 {"ReduceMean", {"s"}, {"v"}, {axes = {1}}}, {"Add", {"v", "e"}, {"w"}}, {"Sqrt", {"w"}, {"r"}},
                 {"Div", {"d", "r"}, {"q"}}, {"Mul", {"q", "g"}, {"p"}}, {"Add", {"b", "p"}, {"y"}}, more}
  return build({3, 8}, nodes, {e = {"float32", {1}, {0.25}}, g = some {8}, b = some {8}, two = {"float32", {}, {2}}},
               {"y"})
end
for _, square in ipairs {{"Pow", {"d", "two"}, {"s"}}, {"Mul", {"d", "d"}, {"s"}}} do
  local spelled = written_out(square)
  assert(nodes_after(spelled) == "LayerNormalization", nodes_after(spelled))
  check(spelled)
end
local read_too =
  build({3, 8}, {{"ReduceMean", {"x"}, {"m"}, {axes = {1}}}, {"Sub", {"x", "m"}, {"d"}}, {"Mul", {"d", "d"}, {"s"}},
                 {"ReduceMean", {"s"}, {"v"}, {axes = {1}}}, {"Add", {"v", "e"}, {"w"}}, {"Sqrt", {"w"}, {"r"}},
                 {"Div", {"d", "r"}, {"q"}}, {"Mul", {"q", "g"}, {"y"}}, {"Neg", {"v"}, {"z"}}},
        {e = {"float32", {1}, {0.25}}, g = some {8}}, {"y", "z"})
assert(not nodes_after(read_too):find "LayerNormalization", nodes_after(read_too))
check(read_too)

-- A pattern: nodes of x, what is left of them, and that it computes the same.
local NUMBERS = {zero = {"float32", {}, {0}}, one = {"float32", {1}, {1}}, ones = {"float32", {4}, {1, 1, 1, 1}},
  two = {"float32", {}, {2}}, three = {"float32", {}, {3}}, six = {"float32", {}, {6}}, half = {"float32", {}, {0.5}},
  root = {"float32", {}, {1.41421354}}, iroot = {"float32", {}, {0.70710677}}, sixth = {"float32", {}, {1 / 6}},
  minus = {"float32", {}, {-0.5}}, cubic = {"float32", {}, {0.044715}}, pi = {"float32", {}, {0.7978845608}},
  other = {"float32", {}, {0.71}}, eps = {"float32", {}, {0.125}}, odd = {"float32", {4}, {1, 1, 1, 2}},
  g = {"float32", {4}, {0.5, 1.5, -1, 2}}, wide = {"float32", {5, 1, 1}, {1, 1, 1, 1, 1}}}
local function pattern(want, nodes, outputs, shape, constants)
  local all = setmetatable({}, {__index = NUMBERS})
  for name, c in pairs(NUMBERS) do all[name] = c end
  for name, c in pairs(constants or {}) do all[name] = c end
  local net = build(shape or {3, 4}, nodes, all, outputs)
  local work, ops = ms.load "lua.net.passes".run(net, {}), {}
  for i, node in ipairs(work.nodes) do ops[i] = node.op end
  assert(table.concat(ops, " ") == want, "expected: " .. want .. "\ngot: " .. table.concat(ops, " "))
  local x = ms.array(net.inputs[1].shape):random(1, true)
  local got = work:run({x = x}, {interpret = true})
  for name, array in pairs((net:run({x = x}, {interpret = true}))) do
    assert(array:difference(got[name]) <= 2e-6 * math.max(1, array:difference(ms.array(array:shape(), array:type()))),
           want)
  end
end
-- Nodes of text: "Mul x y = z; …".
local function nodes_of(text)
  local nodes = {}
  for op, inputs, outputs in text:gmatch "(%w+) ([^=;]*)= ([^;]+)" do
    local node = {op, {}, {}}
    for name in inputs:gmatch "%S+" do table.insert(node[2], name) end
    for name in outputs:gmatch "%S+" do table.insert(node[3], name) end
    nodes[#nodes + 1] = node
  end
  return nodes
end
for text, want in pairs {
  ["Mul x one = a; Mul ones a = b; Add b zero = c; Add zero c = d; Sub d zero = e; Div e one = f; Pow f one = g1; Exp \z
    g1 = y"] = "Exp",
  ["Neg x = a; Neg a = b; Relu b = c; Relu c = d; Exp d = y"] = "Relu Exp", ["Abs x = a; Abs a = y"] = "Abs Identity",
  ["Neg x = a; Neg a = b; Neg b = c; Exp c = y"] = "Neg Exp",
  -- not where extents grow, by another number, from the other side
  ["Mul x wide = y"] = "Mul", ["Mul x odd = y"] = "Mul", ["Sub zero x = y"] = "Sub", ["Div one x = y"] = "Div",
  ["Add x one = y"] = "Add",
  -- GELU, by erf, in other orders, by tanh in two spellings
  ["Div x root = a; Erf a = b; Add b one = c; Mul x c = d; Mul d half = y"] = "Gelu",
  ["Mul x iroot = a; Erf a = b; Add one b = c; Mul x half = d; Mul d c = y"] = "Gelu",
  ["Div x root = a; Erf a = b; Add b one = c; Mul x c = d; Div d two = y"] = "Gelu",
  ["Div x root = a; Erf a = b; Add b one = c; Mul c half = d; Mul x d = y"] = "Gelu",
  ["Pow x three = a; Mul a cubic = b; Add x b = c; Mul c pi = d; Tanh d = e; Add e one = f; Mul x half = g1; Mul g1 f \z
    = y"] = "Gelu",
  ["Mul x x = a; Mul a x = b; Mul cubic b = c; Add c x = d; Mul pi d = e; Tanh e = f; Add one f = g1; Mul x g1 = h; \z
    Mul half h = y"] = "Gelu",
  ["Mul x x = a; Mul a cubic = b; Add b one = c; Mul x c = d; Mul d pi = e; Tanh e = f; Add f one = g1; Mul x g1 = h; \z
    Mul half h = y"] = "Gelu",
  -- not by another number, where a part is read by others, of another value
  ["Mul x other = a; Erf a = b; Add b one = c; Mul x c = d; Mul d half = y"] = "Mul Erf Add Mul Mul",
  ["Mul x iroot = a; Erf a = b; Add b two = c; Mul x c = d; Mul d half = y"] = "Mul Erf Add Mul Mul",
  ["Mul x iroot = a; Erf a = b; Add b one = c; Mul x c = d; Mul d half = e; Add e b = y"] = "Mul Erf Add Mul Mul Add",
  ["Exp x = k; Mul x iroot = a; Erf a = b; Add b one = c; Mul k c = d; Mul d half = y"] = "Exp Mul Erf Add Mul Mul",
  -- SiLU and hard swish
  ["Sigmoid x = a; Mul x a = y"] = "Swish", ["Mul x two = b; Sigmoid b = a; Mul a x = y"] = "Swish",
  ["Sigmoid x = a; Mul x a = b; Add a b = y"] = "Sigmoid Mul Add",
  ["Exp x = k; Sigmoid x = a; Mul k a = y"] = "Exp Sigmoid Mul",
  ["Sigmoid x = a; Mul x a = b; Mul b two = y"] = "Swish Mul",
  ["Add x three = a; Clip a zero six = b; Mul x b = c; Div c six = y"] = "HardSwish",
  ["Add x three = a; Clip a zero six = b; Mul b sixth = c; Mul c x = y"] = "HardSwish",
  ["Add x three = a; Relu a = b; Min b six = c; Mul x c = d; Div d six = y"] = "HardSwish",
  ["Add x three = a; Max a zero = b; Min six b = c; Mul x c = d; Div d six = y"] = "HardSwish",
  ["Add x three = a; Clip a zero two = b; Mul x b = c; Div c six = y"] = "Add Clip Mul Div",
  ["Add x two = a; Clip a zero six = b; Mul x b = c; Div c six = y"] = "Add Clip Mul Div",
} do pattern(want, nodes_of(text)) end
local function hard(alpha)
  return {{"HardSigmoid", {"x"}, {"a"}, {alpha = alpha, beta = 0.5}}, {"Mul", {"a", "x"}, {"y"}}}
end
pattern("HardSwish", hard(1 / 6))
pattern("HardSigmoid Mul", hard(0.2))

-- RMS normalization: a quotient, a product with what is 1 by it, in three spellings; not along another dimension, not
-- of another value's squares, not without the scale, not where the mean is read by others.
local function rms(square, last, options)
  options = options or {}
  local nodes = {square, {"ReduceMean", {"s"}, {"m"}, {axes = {options.axis or -1}}}, {"Add", {"m", "eps"}, {"v"}}}
  for _, node in ipairs(last) do nodes[#nodes + 1] = node end
  nodes[#nodes + 1] = not options.bare and {"Mul", {"g", "q"}, {"y"}} or {"Neg", {"q"}, {"y"}}
  if options.more then nodes[#nodes + 1] = options.more end
  return nodes
end
local power, product = {"Pow", {"x", "two"}, {"s"}}, {"Mul", {"x", "x"}, {"s"}}
local by_root, by_inverse = {{"Sqrt", {"v"}, {"r"}}, {"Div", {"x", "r"}, {"q"}}},
  {{"Sqrt", {"v"}, {"r"}}, {"Reciprocal", {"r"}, {"i"}}, {"Mul", {"x", "i"}, {"q"}}}
for _, last in ipairs {by_root, by_inverse,
                       {{"Sqrt", {"v"}, {"r"}}, {"Div", {"one", "r"}, {"i"}}, {"Mul", {"i", "x"}, {"q"}}},
                       {{"Pow", {"v", "minus"}, {"i"}}, {"Mul", {"x", "i"}, {"q"}}}} do
  pattern("RMSNormalization", rms(power, last))
  pattern("RMSNormalization", rms(product, last))
end
groups("RMSNormalization", build({3, 4}, rms(power, by_root), NUMBERS))
pattern("Pow ReduceMean Add Sqrt Div Mul", rms(power, by_root, {axis = 0}), {"y"}, {4, 4})
pattern("Pow ReduceMean Add Sqrt Div Neg", rms(power, by_root, {bare = true}))
pattern("Pow ReduceMean Add Sqrt Div Mul Exp", rms(power, by_root, {more = {"Exp", {"m"}, {"z"}}}), {"y", "z"})
pattern("Exp Mul ReduceMean Add Sqrt Reciprocal Mul Mul",
        {{"Exp", {"x"}, {"k"}}, table.unpack(rms({"Mul", {"k", "k"}, {"s"}}, by_inverse))})

-- Transposes, extents, casts.
local function turned(first, second)
  return {{"Transpose", {"x"}, {"t"}, {perm = first}}, {"Transpose", {"t"}, {"u"}, {perm = second}},
          {"Exp", {"u"}, {"y"}}}
end
pattern("Exp", turned({1, 2, 0}, {2, 0, 1}), nil, {2, 3, 4})
pattern("Transpose Exp", turned({1, 2, 0}, {1, 2, 0}), nil, {2, 3, 4})
pattern("Exp", turned(nil, nil), nil, {2, 3, 4})
pattern("Exp", {{"Transpose", {"x"}, {"t"}, {perm = {1, 0, 2}}}, {"Transpose", {"t"}, {"u"}, {perm = {1, 0, 2}}},
                {"Transpose", {"u"}, {"v"}, {perm = {2, 1, 0}}}, {"Transpose", {"v"}, {"w"}},
                {"Exp", {"w"}, {"y"}}}, nil, {2, 3, 4})
pattern("Transpose Exp Identity", {{"Transpose", {"x"}, {"t"}, {perm = {1, 0}}}, {"Exp", {"t"}, {"e"}},
                                   {"Transpose", {"t"}, {"y"}, {perm = {1, 0}}}}, {"e", "y"})
local extents =
  {a = {"int64", {2}, {2, 6}}, b = {"int64", {3}, {3, 2, 2}}, c = {"int64", {2}, {3, 4}}, k = {"int64", {1}, {0}}}
pattern("Reshape Exp", {{"Reshape", {"x", "a"}, {"r"}}, {"Reshape", {"r", "b"}, {"s"}}, {"Exp", {"s"}, {"y"}}}, nil,
        nil, extents)
pattern("Exp", {{"Reshape", {"x", "a"}, {"r"}}, {"Flatten", {"r"}, {"f"}}, {"Reshape", {"f", "c"}, {"s"}},
                {"Exp", {"s"}, {"y"}}}, nil, nil, extents)
pattern("Exp", {{"Unsqueeze", {"x", "k"}, {"u"}}, {"Squeeze", {"u", "k"}, {"s"}}, {"Exp", {"s"}, {"y"}}}, nil, nil,
        extents)
pattern("Reshape Transpose Reshape", {{"Reshape", {"x", "a"}, {"r"}}, {"Transpose", {"r"}, {"t"}},
                                      {"Reshape", {"t", "c"}, {"y"}}}, nil, nil, extents)
local function casts(first, second, third)
  return {{"Cast", {"x"}, {"k"}, {to = first}}, {"Cast", {"k"}, {"l"}, {to = second}}, {third or "Exp", {"l"}, {"y"}}}
end
pattern("Exp", casts(11, 1))
pattern("Cast Cast Exp", casts(10, 1))
pattern("Cast Cast Exp", casts(6, 1))
-- a float between integers holds the narrow ones
local function integers(number)
  return {{"Cast", {"x"}, {"k"}, {to = number}}, {"Cast", {"k"}, {"l"}, {to = 1}},
          {"Cast", {"l"}, {"m"}, {to = number}}, {"Abs", {"m"}, {"y"}}}
end
pattern("Cast Abs", integers(5))
pattern("Cast Cast Cast Abs", integers(6))

-- Splits are slices where what reads them takes them in, or where they are parts; else they stay.
local parts =
  {parts = {"int64", {2}, {1, 3}}, other = {"int64", {2}, {2, 2}}, from = {"int64", {1}, {-3}}, to = {"int64", {1},
   {1000}}, ax = {"int64", {1}, {1}}, at = {"int64", {1}, {1}}, by = {"int64", {1}, {2}}, w = some {3, 2}}
pattern("Slice Slice Exp Neg Concat",
        {{"Split", {"x", "parts"}, {"p", "q"}, {axis = 1}}, {"Exp", {"p"}, {"e"}}, {"Neg", {"q"}, {"n"}},
         {"Concat", {"e", "n"}, {"y"}, {axis = 1}}}, nil, nil, parts)
pattern("Split MatMul", {{"Split", {"x", "parts"}, {"p", "q"}, {axis = -1}}, {"MatMul", {"q", "w"}, {"y"}}}, nil, nil,
        parts)
local joined = {{"Exp", {"x"}, {"e"}}, {"Concat", {"e", "x", "e"}, {"j"}, {axis = 1}}}
local function with(...) return {joined[1], joined[2], ...} end
local twelve = {s = {"int64", {3}, {4, 4, 4}}, s2 = {"int64", {2}, {6, 6}}}
pattern("Exp Neg Sub Add", with({"Split", {"j", "s"}, {"p", "q", "r"}, {axis = 1}}, {"Neg", {"p"}, {"n"}},
                                {"Sub", {"n", "q"}, {"d"}}, {"Add", {"d", "r"}, {"y"}}), nil, nil, twelve)
pattern("Exp Concat Slice Slice Add", with({"Split", {"j", "s2"}, {"p", "q"}, {axis = 1}}, {"Add", {"p", "q"}, {"y"}}),
        nil, nil, twelve)
-- a slice of the last part
pattern("Exp Slice Neg", with({"Slice", {"j", "from", "to", "ax"}, {"l"}}, {"Neg", {"l"}, {"y"}}), nil, nil, parts)
-- by steps
pattern("Exp Concat Slice Neg", with({"Slice", {"j", "from", "to", "ax", "by"}, {"l"}}, {"Neg", {"l"}, {"y"}}), nil,
        nil, parts)
-- of two parts
pattern("Exp Concat Slice Neg", with({"Slice", {"j", "at", "to", "ax"}, {"l"}}, {"Neg", {"l"}, {"y"}}), nil, nil, parts)
-- Halves of channels keep the layout of convolutions.
c = {w = some {4, 2, 1, 1}, half = {"int64", {2}, {2, 2}}, w2 = some {2, 2, 1, 1}}
groups("Identity, Conv, Slice Relu, Slice Neg, Concat Identity",
       build({1, 2, 3, 3}, {{"Conv", {"x", "w"}, {"c"}}, {"Split", {"c", "half"}, {"p", "q"}, {axis = 1}}, {"Relu",
                            {"p"}, {"r"}}, {"Neg", {"q"}, {"n"}}, {"Concat", {"r", "n"}, {"y"}, {axis = 1}}}, c))

-- Users' passes, of files and registered: what they see and leave, and what is wrong with it.
local relu =
  build({2, 3}, {{"MatMul", {"x", "w"}, {"m"}}, {"Relu", {"m"}, {"y"}}}, {w = some {3, 3}, large = some {70, 70}})
local function pass_of(text)
  local file <close> = assert(io.open(path .. ".lua", "w"))
  file:write(text)
  return {path .. ".lua"}
end
local function left_by(text, net, timeout)
  local seen, files = {}, pass_of(text)
  local work = ms.load "lua.net.passes".run(net or relu, {passes = files, timeout = timeout,
                                                          after = function(name) seen[#seen + 1] = name end})
  return work, table.concat(seen, " ")
end
local work, seen = left_by [[msched.pass {name = "mine", after = "batch_norm", apply = function(net, values)
  assert(values.m.type == "float32" and values.m.shape[2] == 3 and not values.m.constant and values.w.constant and not pcall(function() return io.open end))
  assert(#net.constants.large == 4900 and net.constants.large:shape()[1] == 70 and not pcall(net.constants.large.tolist, net.constants.large))
  assert(net:giver("y").op == "Relu" and #net:readers("m") == 1 and net:text():find "MatMul" and net:operators().Relu == 1 and #net:copy().nodes == 2)
  net.constants.two = msched.array({3}, "float32", 2)
  net.constants.w2 = msched.array({3, 3}, "float32", net.constants.w:tolist())
  net:giver("m").inputs[2] = "w2"
  net:giver("y").inputs[1] = "twice"
  table.insert(net.nodes, {op = "Mul", inputs = {"m", "two"}, outputs = {"twice"}})
end}]]
assert(seen:find("batch_norm mine layer_norm", 1, true) and #work.nodes == 3 and work.nodes[2].op == "Mul"
       and #relu.nodes == 2)
local ones = ms.array({2, 3}, "float32", 1)
local before = relu:run({x = ones}, {interpret = true}).y
assert(before:difference(ms.array({2, 3})) > 0)
for i = 0, 5 do assert(work:run({x = ones}, {interpret = true}).y[i] == 2 * before[i]) end
assert(relu:plan({written = true, passes = pass_of [[msched.pass(function(net) net:giver("y").op = "Abs" end)]]}).prepared.groups[1].steps[2].node.op == "Abs")
-- Graphs in nodes and arrays in attributes come back as they were; what graphs read is seen.
local branch = {nodes = {{"Neg", {"m"}, {"b"}}}, outputs = {{"b"}}, inputs = {}}
local branches =
  build({2, 3}, {{"Exp", {"x"}, {"m"}}, {"ConstantOfShape", {"s"}, {"k"}, {value = {"float32", {1}, {0.5}}}},
                 {"If", {"c"}, {"i"}, {then_branch = branch, else_branch = branch}}, {"Add", {"i", "k"}, {"y"}}},
        {c = {"bool", {}, {1}}, s = {"int64", {2}, {2, 3}}})
work = left_by([[msched.pass {name = "mine", apply = function(net) assert(net:fixed_names().m and net:readers("m")[1].op == "If" and net.nodes[2].attributes.value:tolist()[1] == 0.5) end}]], branches)
assert(work:run({x = ones}).y:difference(branches:run({x = ones}).y) == 0)
for text, expected in pairs {
  [ [[apply = function(net) net.nodes[1].inputs = 5 end]] ] = "what pass `bad` of " .. path
    .. ".lua left: node 1, MatMul: `inputs` is a list of names",
  [ [[apply = function(net) net.nodes[1].op = nil end]] ] = "node 1 has no operator",
  [ [[apply = function(net) net.nodes[1].op = "Nothing" end]] ] = "left: Nothing that gives m: there is no operator \z
    Nothing",
  [ [[apply = function(net) for i = 1, 60000 do net.nodes[#net.nodes + 1] = {op = "Neg", inputs = {"x"}, outputs = {"t" .. i}} end end]] ] = "nodes, where there were 2; a pass leaves at most 50000, or twice as many as there were",
  [ [[apply = function(net) net.nodes = {} end]] ] = "left: output y is given by nothing",
  [ [[apply = function(net) net.nodes = nil end]] ] = "`nodes` and `constants` are tables",
  [ [[apply = function(net) net.constants.z = 5 end]] ] = "constant z is no array",
  [ [[apply = function(net) net.constants.z = msched.array({2}, "complex64") end]] ] = "constant z: `complex64` is no \z
    type of elements",
  [ [[apply = function(net) msched.array({2}, "float32", {1}) end]] ] = "1 values for 2 elements",
  [ [[apply = function(net) net.nodes[2].op, net.nodes[2].inputs = "Transpose", {"x"} end]] ] = "the network gave y: float32[2, 3], and now gives y: float32[3, 2]",
  [ [[apply = function(net) net.nodes[1].attributes[print] = 1 end]] ] = "pass `bad` of " .. path
    .. ".lua: what it left: pairs: a key of type function",
  [ [[apply = function(net) net.nodes[1].attributes.x = net end]] ] = "node 1, MatMul: attribute x is a number, a \z
    text, a list of either, or an array",
  [ [[apply = function(net) local t = {} for i = 1, 100 do t[i] = t end net.nodes[1].attributes.x = t end]] ] = "left: it holds too many values to be copied, or a table in itself",
  [ [[apply = function(net) net.nodes[1] = setmetatable({}, {__index = function() while true do end end}) end]] ] = "left: node 1 has no operator, `op`",
  [ [[apply = function(net) setmetatable(net.nodes, {__len = function() while true do end end}) net.nodes[1].op = 5 end]] ] = "left: node 1 has no operator, `op`",
  [ [[apply = function(net) local x = net.nothing.y end]] ] = "pass `bad` (" .. path .. ".lua:1): " .. path
    .. ".lua:1: attempt to index",
  [ [[after = "nothing", apply = function() end]] ] = "pass `bad` comes after `nothing`, which is none of \z
                                            requantized, quantized, few_bits, constants, ",
  [ [[after = 5, apply = function() end]] ] = "`after` is a string",
  [ [[name = ("n"):rep(201), apply = function() end]] ] = "`name` has 201 bytes; 200 are the most",
  [ [[apply = function() end} for _ = 1, 1000 do msched.pass {name = "more", apply = print} end local x = {]] ] = "1000 have been registered, the most that there may be",
  [ [[apply = function() while true do pcall(function() while true do end end) end end]] ] = "ran longer than 0.2 seconds, and was at line 1; make it end sooner",
} do
  local seconds = expected:find "longer" and 0.2 or 10
  local ok, message = pcall(left_by, "msched.pass {name = \"bad\", " .. text .. "}", relu, seconds)
  assert(not ok and tostring(message):find(expected, 1, true), tostring(message))
end
local ok, message = pcall(left_by, "local x = 1")
assert(not ok and message:find("it registers nothing: a file of passes calls ms.pass", 1, true), message)
os.remove(path .. ".lua")
ms.pass {name = "own", apply = function(net, values) assert(values.w.array); net.nodes[2].op = "Neg" end}
assert(nodes_after(relu) == "MatMul Neg")
table.remove(ms.registered.pass)

-- ---- Memory ----

-- A chain needs two values at a time, whatever its length; Exp is read twice, so that nothing fuses.
local chain = {}
for i = 1, 8 do chain[i] = {"MatMul", {i == 1 and "x" or "v" .. i - 1, "w"}, {"v" .. i}} end
plan = select(2, check(build({16, 16}, chain, {w = some {16, 16}})))
assert(plan.arena_bytes == 2 * 16 * 16 * 4 and plan.constant_bytes == 16 * 16 * 4 and #plan.calls == 8)
assert(#plan.prepared.functions == 1 and plan.prepared.functions[1].weight == 8)

-- Steps of a recurrent layer are one function, whose loops of exponentials all run in parallel, as vectors.
for _, kind in ipairs {{"LSTM", 4}, {"GRU", 3}} do
  local weights = {w = some {1, kind[2] * 256, 8}, r = some {1, kind[2] * 256, 256}}
  local recurrent = build({4, 1, 8}, {{kind[1], {"x", "w", "r"}, {"y"}, {hidden_size = 256}}}, weights)
  plan = select(2, check(recurrent, {no_tune = true, target = "native -num-cores=2"}))
  local steps = 0
  for _, f in ipairs(plan.prepared.functions) do steps = math.max(steps, f.weight) end
  assert(#plan.prepared.functions == 3 and steps == 4, kind[1] .. ": steps are functions of their own")
end

-- ---- Finalists inside the network ----

do
  local inside, path_of_store = ms.load "lua.net.inside", os.tmpname()
  inside.SECONDS, inside.EACH = 0, 0.01 -- no more rounds than there must be, here and below
  os.remove(path_of_store)
  local prepared = ms.load "lua.net.plan".prepare(build({16, 16}, {{"MatMul", {"x", "w"}, {"y"}}}, {w = some {16, 16}}))
  local store = ms.store(path_of_store)
  local tasks = ms.load "search.tune".all({{prepared.functions[1].func, weight = 1}}, {trials = 4, store = store})
  local tuned = ms.tune(prepared.net, {trials = 1, store = store})
  assert(#tuned.calls == 1 and tuned.tasks[1].fastest.seconds > 0, "a network is tuned as a function is")
  local task, close, gain, most = tasks[1], inside.CLOSE, inside.GAIN, inside.MOST
  inside.CLOSE = 1e9
  local first = store:records({workload = task.workload, most = 1})[1]
  local function slow_first(entry, trace) -- the best alone takes a hundred times as long here
    local kernel = ms.build(entry.func)
    return {prepare = function(_, ...)
      local call = kernel:prepare(...)
      return {run = function()
        for _ = 1, trace:text() == ms.read_trace(first.trace):text() and 200 or 1 do call:run() end
      end}
    end}
  end
  local result = inside.choose(prepared, tasks, store, slow_first)
  local second = store:records({workload = task.workload, most = 1})[1]
  assert(result.compared == 1 and result.changed == 1 and second.id ~= first.id and task.fastest.full_id == second.id
         and second.seconds < first.seconds)
  inside.GAIN = 0 -- none is so much faster
  result = inside.choose(prepared, tasks, store, slow_first)
  assert(result.compared == 1 and result.changed == 0
         and store:records({workload = task.workload, most = 1})[1].id == second.id)
  inside.MOST = 1 -- there is nothing to choose
  assert(inside.choose(prepared, tasks, store, slow_first).compared == 0)
  inside.CLOSE, inside.GAIN, inside.MOST = close, gain, most
  store:close()
  for _ = 1, 2 do ms.tune(prepared.net, {trials = 1, db = path_of_store}) end -- each closes what it opened
  for _, suffix in ipairs {"", "-lock"} do os.remove(path_of_store .. suffix) end
end

-- ---- Never slower than without tuning ----

-- Times are simulated: each kernel moves a clock of its own on, by what `seconds` says of its trace.
do
  local tune, plan, path_of_store = ms.load "lua.net.tune", ms.load "lua.net.plan", os.tmpname()
  os.remove(path_of_store)
  local nodes = {{"MatMul", {"x", "w"}, {"a"}}, {"Softmax", {"a"}, {"y"}}}
  local prepared = plan.prepare(build({16, 16}, nodes, {w = some {16, 16}}))
  local store, items = ms.store(path_of_store), {}
  for i, entry in ipairs(prepared.functions) do items[i] = {entry.func, weight = 1, untuned = true} end
  assert(#items == 2)
  local tasks = ms.load "search.tune".all(items, {trials = 4, store = store})
  local function record_of(task, hash) return store:find_module(task.workload, task.target.text, hash) end
  local function first_of(task) return store:records({workload = task.workload, most = 1})[1] end
  for _, task in ipairs(tasks) do
    assert(task.done == 4 and record_of(task, task.untuned.hash).status == "measured", "one of the trials")
    local again = ms.load "search.tune".all({task.func}, {no_tune = true, db = path_of_store .. ".2"})[1]
    assert(again.fastest.hash == task.untuned.hash, "what is used without tuning")
  end
  local clock, plan_build, now, seconds = ms.clock, plan.build, 0, nil
  ms.clock = function() return now end
  plan.build = function(func, options)
    local kernel = plan_build(func, options).kernel
    return {prepare = function() return {run = function() now = now + seconds(func, kernel) end} end}
  end
  -- Trials alone: what is not tuned takes twice what the fastest takes, 1 s; the others between.
  local function set_times()
    for _, task in ipairs(tasks) do
      for i, r in ipairs(store:records {workload = task.workload}) do
        if r.status == "measured" then
          local s = r.hash == task.untuned.hash and 2 or 1 + i / 100
          store:retime(r.id, {seconds = s, low = s, high = s, runs = 1})
        end
      end
      local best = first_of(task)
      assert(best.hash ~= task.untuned.hash, "several trials could be measured")
      task.fastest = {id = store:short_id(best.key), full_id = best.id, hash = best.hash, seconds = best.seconds,
                      trace = ms.read_trace(best.trace)}
    end
  end
  local function text_of(task, hash)
    return ms.apply(task.func, ms.read_trace(record_of(task, hash).trace)):func():script()
  end
  local untuned_texts = {}
  for _, task in ipairs(tasks) do untuned_texts[text_of(task, task.untuned.hash)] = true end

  -- Inside the network what is not tuned is the fastest of the first function, not of the second.
  set_times()
  local best = tasks[1].fastest.seconds
  local chosen_text = text_of(tasks[1], tasks[1].untuned.hash)
  seconds = function(func)
    local text = func:script()
    if text == chosen_text then return 0.5 end
    return untuned_texts[text] and 3 or 1
  end
  local result = tune.settle(prepared, tasks, store)
  assert(result.compared == 2 and result.changed == 1 and not result.kept_untuned)
  assert(result.seconds < result.untuned_seconds and result.plan)
  assert(first_of(tasks[1]).hash == tasks[1].untuned.hash and tasks[1].fastest.hash == tasks[1].untuned.hash)
  assert(math.abs(tasks[1].fastest.seconds - 0.5 * best) < 1e-9, "its time alone, by the ratio inside")
  assert(first_of(tasks[2]).hash ~= tasks[2].untuned.hash)

  -- One by one the tuned are faster, and together slower: none of them is used.
  set_times()
  local inside, together = ms.load "lua.net.inside", false
  local compare = inside.compare
  function inside.compare(...)
    together = true
    return compare(...)
  end
  seconds = function(func) return untuned_texts[func:script()] and 1 or together and 3 or 0.9 end
  result = tune.settle(prepared, tasks, store)
  inside.compare = compare
  ms.clock, plan.build = clock, plan_build
  assert(result.kept_untuned == 2 and result.seconds == result.untuned_seconds)
  for _, task in ipairs(tasks) do
    assert(task.fastest.hash == task.untuned.hash and first_of(task).hash == task.untuned.hash)
  end
  local opened = prepared.net:plan {no_tune = true, store = store}
  for i, task in ipairs(opened.tasks) do assert(task.fastest.hash == tasks[i].untuned.hash, "what others take") end
  store:close()
  for _, suffix in ipairs {"", "-lock", ".2", ".2-lock"} do os.remove(path_of_store .. suffix) end
end

-- ---- Refusals ----

plan = select(2, check(build({3, 4}, {{"Relu", {"x"}, {"y"}}}, {})))
local function refuses(expected, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and tostring(message):find(expected, 1, true), tostring(message))
end
refuses("input x is not given", plan.run, plan, {})
refuses("input x is float32[3, 4], and an array of float32[4, 3] is given", plan.run, plan, {x = ms.array({4, 3})})
refuses("input x is float32[3, 4], and an array of int32[3, 4] is given", plan.run, plan,
        {x = ms.array({3, 4}, "int32")})
local table_ = read {opset = 17, nodes = {{"Gather", {"w", "x"}, {"y"}}}, inputs = {{"x", "int64", {2}}},
                     outputs = {{"y"}}, constants = {w = some {3, 2}}}
plan = table_:plan {written = true}
assert(#plan:run {x = ms.array({2}, "int64", {2, -3})}.y == 4)
refuses("index 3 of x is not in [-3, 2]", plan.run, plan, {x = ms.array({2}, "int64", {0, 3})})

-- A second normalization behind one that went into the weights stays a node.
c = {w = some {4, 3, 3, 3}}
local behind = build({1, 3, 5, 5}, {{"Conv", {"x", "w"}, {"c"}}, {"BatchNormalization", {"c", norm(c, "n", 4)}, {"b"}},
                                    {"BatchNormalization", {"b", norm(c, "m", 4)}, {"y"}}}, c)
check(behind)
assert(ms.load "lua.net.passes".run(behind, {}):operators().BatchNormalization == 1)

-- Convolutions of 3 x 3 by tiles, whatever follows; which ones are.
do
  local winograd = ms.load "lua.net.pass.winograd"
  local function chosen(inputs, outputs, extent, planes)
    return winograd.tile {batch = 1, inputs = inputs, outputs = outputs, size = {extent, extent},
                          taps = planes and 3 or 1, planes = planes or 1, depth = planes and planes + 2 or 1}
  end
  assert(chosen(64, 64, 56) == 4 and chosen(256, 256, 14) == 2, "tiles by extents and channels")
  assert(chosen(64, 64, 56, 16) == 4 and chosen(128, 128, 28, 8) == 2, "planes of images with a depth")
  assert(not chosen(512, 512, 7) and not chosen(256, 256, 14, 4), "weights are read from memory")
  assert(not chosen(3, 64, 56) and not chosen(64, 4, 56), "transforms of few channels take longer")
  assert(not chosen(64, 64, 512), "what is between takes too much memory")
  local by_cost = winograd.tile
  local function conv(attributes, shape, weights, more)
    return build(shape or {2, 3, 7, 6}, {{"Conv", {"x", "w", "bias"}, {"c"}, attributes}, table.unpack(more or {})},
                 {w = some(weights or {5, 3, 3, 3}), bias = some {(weights or {5})[1]}})
  end
  for _, m in ipairs {2, 4} do
    winograd.tile = function() return m end
    local parts = "WinogradInput, alias Reshape, MatMul, alias Reshape, WinogradOutput"
    groups("Identity, " .. parts .. " Identity", conv {pads = {0, 1, 2, 1}})
    check(conv(m == 2 and {} or {auto_pad = "SAME_UPPER"}))
    check(conv({auto_pad = m == 2 and "VALID" or "SAME_LOWER"}, {1, 3, 3, 4}))
    groups("Identity, " .. parts .. " Relu Add Identity", conv({pads = {1, 1, 1, 1}}, {1, 3, 5, 9}, {3, 3, 3, 3},
           {{"Relu", {"c"}, {"r"}}, {"Add", {"r", "x"}, {"y"}}}))
    local deep = "Identity, WinogradInput, alias Reshape, WinogradProduct, alias Reshape, WinogradOutput Identity"
    groups(deep, conv({pads = {1, 0, 1, 0, 2, 1}}, {2, 3, 3, 4, 5}, {4, 3, 2, 3, 3}))
    check(conv({auto_pad = m == 2 and "SAME_UPPER" or "SAME_LOWER"}, {1, 3, 4, 3, 5}, {3, 3, m, 3, 3}))
    check(conv({}, {1, 2, 2, 5, 3}, {3, 2, 1, 3, 3}))
  end
  do
    local parts = "WinogradInput, alias Reshape, MatMul, alias Reshape, WinogradOutput"
    local twice =
      build({1, 3, 6, 6}, {{"Conv", {"x", "w"}, {"c"}}, {"Conv", {"x", "v"}, {"d"}},
                           {"Concat", {"c", "d"}, {"y"}, {axis = 1}}}, {w = some {4, 3, 3, 3}, v = some {4, 3, 3, 3}})
    local both, inputs =
      groups("Identity, " .. parts .. ", MatMul, alias Reshape, WinogradOutput, Concat Identity", twice), 0
    for _, g in ipairs(both.prepared.groups) do
      if g.steps[1].node.op == "WinogradInput" then inputs = inputs + 1 end
    end
    assert(inputs == 1, "an image is transformed once")
  end
  local plain = conv {pads = {1, 1, 1, 1}}
  assert(nodes_after(plain) == "WinogradInput WinogradWeights Reshape MatMul Reshape WinogradOutput",
         nodes_after(plain))
  for _, net in ipairs {conv {strides = {1, 2}}, conv {dilations = {2, 2}}, conv({group = 3}, nil, {6, 1, 3, 3}),
                        conv({}, nil, {5, 3, 3, 1}), conv({}, {1, 3, 8}, {5, 3, 3}),
                        conv({strides = {2, 1, 1}}, {1, 2, 4, 5, 5}, {3, 2, 3, 3, 3}),
                        conv({}, {1, 2, 4, 5, 5}, {3, 2, 3, 3, 1}), conv({}, {1, 2, 3, 3, 3, 3}, {3, 2, 1, 1, 3, 3}),
                        conv({}, {0, 3, 7, 6}), conv({pads = {2, 0, 0, 2, 0, 0}}, {1, 2, 0, 5, 5}, {3, 2, 2, 3, 3}),
                        read {opset = 17, nodes = {{"Conv", {"x", "w"}, {"y"}}}, inputs = {{"x", "float32",
                              {1, 2, 5, 5}}, {"w", "float32", {2, 2, 3, 3}}}, outputs = {{"y"}}},
                        read {opset = 17, nodes = {{"Conv", {"x", "w"}, {"y"}}},
                              inputs = {{"x", "float64", {1, 1, 4, 4}}}, outputs = {{"y"}},
                              constants = {w = {"float64", {1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}}}}} do
    assert(nodes_after(net) == "Conv", nodes_after(net))
  end
  for _, options in ipairs {{fixed_order = true}, {target = "cuda -arch=sm_80"}} do
    assert(ms.load "lua.net.passes".run(plain, options):operators().Conv == 1,
           "sums stay in order, and GPUs have tensor cores")
  end
  winograd.tile = by_cost
end

-- Averages over many places of many channels as products with ones; others as they are.
for _, case in ipairs {{{1, 16, 5, 4}, true}, {{2, 9, 16}, true}, {{1, 7, 5, 4}}, {{1, 16, 3, 5}}} do
  local _, plan = check(build(case[1], {{"Relu", {"x"}, {"r"}}, {"GlobalAveragePool", {"r"}, {"y"}}}, {}))
  local found
  for _, g in ipairs(plan.prepared.groups) do
    for _, step in ipairs(g.steps) do found = found or step.node.domain == "msched" end
  end
  assert((found or nil) == case[2], table.concat(case[1], "x"))
end

-- Transposed convolutions to few channels as convolutions to all phases of these; which ones are.
do
  local function transposed(attributes, shape, weights, more, no_bias)
    attributes.strides = attributes.strides or {2, 2}
    local inputs = {"x", "w", not no_bias and "bias" or nil}
    return build(shape or {2, 5, 4, 6}, {{"ConvTranspose", inputs, {"c"}, attributes}, table.unpack(more or {})},
                 {w = some(weights or {5, 3, 4, 4}), bias = some {(weights or {5, 3})[2] * (attributes.group or 1)}})
  end
  groups("Identity, Conv Identity, DepthToSpace Slice Tanh",
         transposed({pads = {1, 1, 1, 1}}, {1, 5, 4, 6}, nil, {{"Tanh", {"c"}, {"y"}}}))
  check(transposed {pads = {0, 1, 2, 1}})
  check(transposed({}, nil, nil, nil, true))
  check(transposed({pads = {2, 3, 4, 1}, strides = {3, 3}, output_padding = {1, 0}}, {1, 2, 9, 8}, {2, 4, 9, 9}))
  check(transposed({strides = {2, 2}}, {1, 5, 1, 3}, {5, 1, 2, 2}))
  local plain = transposed {pads = {1, 1, 1, 1}}
  local parts = "Reshape Slice Transpose Reshape Concat Conv DepthToSpace Slice"
  assert(nodes_after(plain) == parts, nodes_after(plain))
  for _, net in ipairs {transposed {strides = {1, 1}}, transposed {strides = {2, 4}}, transposed {dilations = {2, 2}},
                        transposed({}, nil, {5, 3, 3, 3}), transposed({}, nil, {5, 3, 4, 2}),
                        transposed({}, nil, {5, 5, 4, 4}), transposed({group = 5}, nil, {5, 1, 4, 4}),
                        transposed {auto_pad = "SAME_UPPER"}, transposed {output_shape = {9, 13}},
                        transposed({output_padding = {1, 1}}, {1, 5, 4, 4}), transposed({}, {1, 5, 3, 4}),
                        transposed({strides = {2}}, {1, 5, 8}, {5, 3, 4}), transposed({}, {0, 5, 4, 4}),
                        read {opset = 17, nodes = {{"ConvTranspose", {"x", "w"}, {"y"}, {strides = {2, 2}}}},
                              inputs = {{"x", "float32", {1, 2, 5, 5}}, {"w", "float32", {2, 2, 4, 4}}},
                              outputs = {{"y"}}}} do
    assert(nodes_after(net) == "ConvTranspose", nodes_after(net))
  end
  for _, options in ipairs {{fixed_order = true}, {target = "cuda -arch=sm_80"}} do
    assert(ms.load "lua.net.passes".run(plain, options):operators().ConvTranspose == 1, "sums stay in order")
  end
end

-- Channels that are shuffled behind a convolution of groups are read so by the next one: what takes each channel by
-- itself stands before the shuffle then, its weights in that order; else they stay shuffled where they are.
do
  local function shuffled(nodes, constants, split, perm, outputs)
    local c = {w1 = some {12, 3, 1, 1}, parts = {"int64", {5}, split or {2, 4, 3, 5, 4}},
               whole = {"int64", {4}, {2, 12, 5, 4}}}
    local list = {{"Conv", {"x", "w1"}, {"c1"}, {group = 4}}, {"Reshape", {"c1", "parts"}, {"s1"}},
                  {"Transpose", {"s1"}, {"s2"}, {perm = perm or {0, 2, 1, 3, 4}}},
                  {"Reshape", {"s2", "whole"}, {"s"}}}
    for name, x in pairs(constants) do c[name] = x end
    return build({2, 12, 5, 4}, table.move(nodes, 1, #nodes, #list + 1, list), c, outputs)
  end
  local depthwise, bias = {"Conv", {"r", "w2", "b2"}, {"d"}, {group = 12, pads = {1, 1, 1, 1}}}, some {12}
  local function unit(out, groups, tail)
    local nodes = {{"Relu", {"s"}, {"r"}}, depthwise, {"MaxPool", {"d"}, {"p"}, {kernel_shape = {2, 2}}},
                   {"Conv", {"p", "w3"}, {"y"}, {group = groups, pads = {0, 0, 1, 1}}}}
    return shuffled(table.move(tail or {}, 1, #(tail or {}), #nodes + 1, nodes),
                    {w2 = some {12, 1, 3, 3}, b2 = bias, w3 = some {out, 12 // groups, 2, 2}})
  end
  -- 12 channels in groups of 4, of 3 and of 6: parts of a group of 3 are not as long as one another
  for _, groups_of in ipairs {4, 3, 2} do
    groups("Identity, Conv Relu, Conv, MaxPool, Conv Identity", unit(12, groups_of))
  end
  local all = unit(5, 1)
  groups("Identity, Conv Relu, Conv, MaxPool, Conv Identity", all)
  groups("Identity, Conv Relu, Conv, MaxPool, Conv Identity", unit(8, 4), {no_tune = true, db = db})
  local function stays(net)
    check(net)
    local ops = nodes_after(net)
    assert(ops:find "^Conv Reshape Transpose Reshape", ops)
  end
  local last, w = {"Conv", {"s", "w"}, {"y"}, {group = 4}}, {w = some {8, 3, 1, 1}}
  local direct = nodes_after(shuffled({{"Clip", {"s", "", "most"}, {"r"}}, {"Conv", {"r", "w"}, {"y"}, {group = 4}}},
                                      {w = w.w, most = {"float32", {}, {0.5}}}))
  assert(direct == "Conv Clip Conv", direct)
  stays(shuffled({last}, w, {2, 4, 3, 4, 5}, {0, 2, 1, 4, 3})) -- other dimensions are swapped too
  stays(shuffled({last}, w, {4, 2, 3, 5, 4}))
  stays(shuffled({last, {"Neg", {"s"}, {"z"}}}, w, nil, nil, {"y", "z"})) -- another reads them
  stays(shuffled({last}, w, nil, nil, {"y", "s"}))
  stays(shuffled({{"Softmax", {"s"}, {"r"}, {axis = 1}}, {"Conv", {"r", "w"}, {"y"}, {group = 4}}}, w))
  stays(shuffled({{"Add", {"s", "a"}, {"r"}}, {"Conv", {"r", "w"}, {"y"}, {group = 4}}},
                 {w = w.w, a = some {12, 1, 1}}))
  stays(shuffled({{"Conv", {"s", "w"}, {"y"}, {group = 12}}, {"Neg", {"y"}, {"z"}}}, {w = some {12, 1, 1, 1}}))
  stays(shuffled({{"Conv", {"s", "w"}, {"m"}, {group = 12}}, {"Conv", {"m", "v"}, {"y"}, {group = 4}}},
                 {w = some {24, 1, 1, 1}, v = some {8, 6, 1, 1}})) -- two channels of each
  for _, options in ipairs {{fixed_order = true}, {target = "cuda -arch=sm_80"}} do
    assert(ms.load "lua.net.passes".run(all, options):operators().Reshape == 2, "they stay")
  end
end

-- Places in the arena: those of the plain way, which looks at all slots for each; none that live together overlap.
do
  local memory = ms.load "lua.net.memory"
  local state = 7
  local function draw(n)
    state = (state * 1103515245 + 12345) & 0x7fffffff
    return (state >> 8) % n
  end
  local STEPS, values, prepared = 300, {}, {groups = {}, net = {inputs = {}, outputs = {}}}
  for at = 1, STEPS do
    local name, inputs = "v" .. at, {}
    values[name] = {shape = {16 * (1 + draw(9))}, type = "float32"}
    for k = 1, math.min(at - 1, 2) do
      inputs[k] = "v" .. (at - 1 - (draw(5) == 0 and draw(at - 1) or draw(math.min(at - 1, 3))))
    end
    prepared.groups[at] = {inputs = inputs, outputs = {name}}
  end
  prepared.state = {values = values}
  local placed, all = memory.of(prepared), {}
  for name, slot in pairs(placed.slots) do all[#all + 1] = slot end
  assert(#all == STEPS)
  table.sort(all, function(a, b)
    if a.bytes ~= b.bytes then return a.bytes > b.bytes end
    return a.first < b.first
  end)
  local total = 0
  for i, slot in ipairs(all) do
    local beside, offset = {}, 0
    for k = 1, i - 1 do
      if all[k].first <= slot.last and slot.first <= all[k].last then beside[#beside + 1] = all[k] end
    end
    table.sort(beside, function(a, b) return a.offset < b.offset end)
    for _, other in ipairs(beside) do
      if other.offset - offset >= slot.bytes then break end
      offset = math.max(offset, other.offset + other.bytes)
    end
    assert(slot.offset == offset, "a slot is elsewhere")
    total = math.max(total, offset + slot.bytes)
  end
  assert(total == placed.arena)
end

-- Where the plain way takes more than what lives at one time, other orders are tried; none that live together overlap.
do
  local values, groups = {x0 = {shape = {64}, type = "float32"}}, {{inputs = {}, outputs = {"x0"}}}
  local function add(name, extent, ...)
    values[name] = {shape = {16 * extent}, type = "float32"}
    groups[#groups + 1] = {inputs = {...}, outputs = {name}}
  end
  for i = 1, 2 do
    local x = "x" .. i - 1
    add("v" .. i, 10, x)
    add("m" .. i, 9, "v" .. i)
    add("y" .. i, 4, "m" .. i)
    add("w" .. i, 10, "y" .. i)
    add("n" .. i, 9, "w" .. i)
    add("x" .. i, 4, "n" .. i, x)
  end
  local placed = ms.load "lua.net.memory".of {groups = groups, net = {inputs = {}, outputs = {}},
                                              state = {values = values}}
  assert(placed.arena == 23 * 64, placed.arena) -- an image, and what its convolution by tiles takes and gives
  for a, slot in pairs(placed.slots) do
    for b, other in pairs(placed.slots) do
      assert(a == b or slot.last < other.first or other.last < slot.first or slot.offset + slot.bytes <= other.offset
             or other.offset + other.bytes <= slot.offset, a .. " is over " .. b)
    end
  end
end

-- Results in the place of inputs: residuals that nobody reads later; not a value that is read later, by another node or
-- by the same as another input, nor one whose elements are read elsewhere, nor what the network takes or gives.
do
  local function in_place_of(net, options)
    local _, plan = check(net, options)
    local list = {}
    for _, each in ipairs(plan.calls) do
      local g = each.group
      local built = plan.built[g.kernel]
      if built and built.in_place then
        local taken, given = g.inputs[built.in_place.input], g.outputs[built.in_place.output]
        assert(plan.placed.slots[taken] == plan.placed.slots[given])
        list[#list + 1] = taken .. ">" .. given
      end
    end
    return table.concat(list, " "), plan
  end
  local function residual(shape)
    return build({shape, 8}, {{"MatMul", {"x", "w"}, {"a"}}, {"MatMul", {"a", "w"}, {"h"}},
                              {"MatMul", {"h", "w"}, {"b"}}, {"Add", {"b", "a"}, {"c"}}, {"MatMul", {"c", "v"}, {"y"}}},
                 {w = some {8, 8}, v = some {8, 4}})
  end
  for _, options in ipairs {{written = true}, {no_tune = true, db = db}} do
    local got, plan = in_place_of(residual(6), options)
    assert(got == "a>c" and plan.arena_bytes == 2 * 6 * 8 * 4, got .. " " .. plan.arena_bytes)
    -- compared call by call with the interpreter, on what inputs were before
    local _, report = plan:run({x = plan.arrays.x}, {most_work = 1 << 20})
    assert(report.compared > 0 and report.most < 1e-5, report.most)
  end
  local first = {{"MatMul", {"x", "w"}, {"a"}}, {"MatMul", {"a", "w"}, {"h"}}, {"MatMul", {"h", "w"}, {"b"}}}
  for why, each in pairs {
    ["read later"] = {{"Add", {"b", "a"}, {"c"}}, {"MatMul", {"c", "a"}, {"y"}}},
    ["read as the product's rows too"] = {{"MatMul", {"a", "u"}, {"g"}}, {"Add", {"g", "a"}, {"c"}},
                                          {"MatMul", {"c", "b"}, {"y"}}},
    ["other elements"] = {{"Transpose", {"a"}, {"t"}, {perm = {1, 0}}}, {"Add", {"b", "t"}, {"c"}},
                          {"MatMul", {"c", "w"}, {"y"}}},
    ["the network's input"] = {{"Add", {"b", "x"}, {"c"}}, {"MatMul", {"c", "w"}, {"y"}}},
    ["the network's output"] = {{"Add", {"b", "a"}, {"y"}}},
    ["the same bytes as another input"] = {{"Reshape", {"a", "s"}, {"r"}}, {"Transpose", {"r"}, {"t"}, {perm = {1, 0}}},
                                           {"Add", {"b", "a"}, {"c"}}, {"Add", {"c", "t"}, {"d"}},
                                           {"MatMul", {"d", "w"}, {"y"}}},
    ["one group of the function may not"] = {{"Add", {"b", "a"}, {"c"}}, {"MatMul", {"c", "w"}, {"d"}},
                                             {"MatMul", {"d", "w"}, {"e"}}, {"Add", {"e", "c"}, {"f"}},
                                             {"MatMul", {"f", "c"}, {"y"}}},
  } do
    local nodes = table.move(each, 1, #each, #first + 1, table.move(first, 1, #first, 1, {}))
    local got = in_place_of(build({8, 8}, nodes, {w = some {8, 8}, u = some {8, 8}, s = {"int64", {2}, {8, 8}}}))
    assert(got == "", why .. ": " .. got)
  end
  -- a function of several results, of which the second is in place
  local got = in_place_of(build({2, 3, 3}, {{"Det", {"x"}, {"y"}}}))
  assert(got ~= "", "determinants are made row by row, in place")
  -- equal constants are one, though their names differ; those of another type, shape or sign of zero are not
  local twin = some {8, 8}
  local net = build({8, 8}, {{"MatMul", {"x", "w"}, {"a"}}, {"MatMul", {"a", "v"}, {"b"}}, {"Max", {"b", "p"}, {"c"}},
                             {"Min", {"c", "q"}, {"y"}}},
                    {w = twin, v = twin, p = {"float32", {1}, {0.0}}, q = {"float32", {1}, {-0.0}}})
  local left = ms.load "lua.net.passes".run(net, {})
  assert(left.constants.v and not left.constants.w and left.constants.p and left.constants.q)
  check(net)
end

-- What was proposed is not proposed again: a second plan opens no space, and has the same kernels; where the seed, the
-- rules or the program are others, it does.
do
  local search, folder = ms.load "search.tune", os.tmpname()
  os.remove(folder)
  local net = build({6, 8}, {{"MatMul", {"x", "w"}, {"a"}}, {"Softmax", {"a"}, {"s"}}, {"MatMul", {"s", "w"}, {"y"}}},
                    {w = some {8, 8}})
  local open, stamp, opened = search.open, ms.stamp, 0
  search.open = function(...)
    opened = opened + 1
    return open(...)
  end
  local function plan_of(options)
    options.no_tune, options.db, opened = true, folder, 0
    local _, plan = check(net, options)
    local texts = {}
    for i, task in ipairs(plan.tasks) do texts[i] = task.func:hash() .. task.fastest.trace:json() end
    table.sort(texts)
    return opened, table.concat(texts, "\n"), #plan.prepared.functions
  end
  local first, kernels, functions = plan_of {}
  assert(first == functions and functions == 2, first)
  local second, again = plan_of {}
  assert(second == 0 and again == kernels, second)
  for _, each in ipairs {{2, 2}, {2, 0}} do
    local count = plan_of {seed = each[1]}
    assert(count == each[2], string.format("seed %d: %d are opened", each[1], count))
  end
  ms.rule {name = "nothing", apply = function(sch) return {sch} end}
  assert(plan_of {seed = 2} == 2, "with rules of the user's")
  table.remove(ms.registered.rule)
  ms.stamp = function() return "another" end
  assert(plan_of {} == 2 and plan_of {} == 0)
  ms.stamp = function() end -- nothing tells programs apart
  assert(plan_of {} == 2 and plan_of {} == 2)
  ms.stamp, search.open = stamp, open
  assert(#ms.stamp() == 16 and ms.stamp() == stamp())
  local store = ms.store(folder)
  for _, task in ipairs(net:plan({no_tune = true, store = store}).tasks) do
    local record = store:find(task.fastest.full_id)
    store:put {workload = record.workload, target = record.target, trace = ms.read_trace(record.trace),
               hash = record.hash, status = "measured", seconds = 1e-6, low = 1e-6, high = 1e-6, runs = 3}
  end
  for _, task in ipairs(net:plan({no_tune = true, store = store}).tasks) do
    assert(task.fastest.seconds == 1e-6, "what was measured is taken")
  end
  store:close()
  os.remove(folder)
end

-- Indices that are drawn are of elements that there are, cast or in another shape too, whole and in parts.
for i, each in ipairs {
  {{{"Gather", {"w", "x"}, {"y"}}}, {9}},
  {{{"Identity", {"x"}, {"i"}}, {"Reshape", {"i", "s"}, {"k"}}, {"Gather", {"w", "k"}, {"y"}}}, {9}},
  {{{"GatherElements", {"w", "x"}, {"y"}, {axis = 1}}}, {3, 7}},
  {{{"GatherND", {"w", "x"}, {"y"}}}, {30, 2}},
  {{{"ScatterElements", {"w", "x", "u"}, {"y"}, {axis = 1}}}, {3, 2}},
  {{{"ScatterND", {"w", "x", "v"}, {"y"}}}, {3, 2}},
} do
  local net = read {opset = 17, nodes = each[1], inputs = {{"x", "int64", each[2]}}, outputs = {{"y"}},
                    constants = {w = some {3, 2}, u = some {3, 2}, v = some {3}, s = {"int64", {2}, {3, 3}}}}
  for seed = 1, 4 do
    local filled = net:plan {written = true}
    filled:fill(seed)
    filled:run({x = filled.arrays.x}, {most_work = 1000})
  end
  local far = ms.array(each[2], "int64", 1000 + i)
  local plan = net:plan {written = true}
  refuses("is not in [-", plan.run, plan, {x = far})
end

-- What the interpreter and a kernel may be apart follows what rounding of the arguments changes; no more.
do
  local run, gains = ms.load "lua.net.run", {}
  for i = 1, 64 do gains[i] = 1 end
  local rows = build({4, 64}, {{"LayerNormalization", {"x", "g"}, {"y"}, {axis = -1}}}, {g = {"float32", {64}, gains}})
  local plan = rows:plan {written = true}
  local g, near = plan.prepared.groups[1],
    ms.array({4, 64}, "float32", function(i) return 1000 + (i * 37 % 64) * 1e-4 end)
  plan:run({x = near}, {most_work = 1 << 20})
  local far = ms.array({4, 64}, "float32", function(i) return i * 37 % 64 end)
  for _, x in ipairs {near, far} do
    local given = {x, ms.array({64}, "float32", 1)}
    local wrong = ms.array({4, 64}, "float32", 50)
    refuses("it differs from the interpreter's by", run.compare, rows, g.func, "rows", given, {wrong}, 1 << 20,
            {compared = 0, elements = 0, most = 0})
  end
  local off = ms.array({4, 64})
  ms.interpret(g.func, far, ms.array({64}, "float32", 1), off)
  off[5] = off[5] + 1e-3
  refuses("it differs from the interpreter's by", run.compare, rows, g.func, "rows",
          {far, ms.array({64}, "float32", 1)}, {off}, 1 << 20, {compared = 0, elements = 0, most = 0})
end

-- Views of arrays.
local array = ms.array({32}, "float32", function(i) return i end)
local view = array:view({2, 4}, "float32", 64)
assert(view[{1, 3}] == 23 and #view == 8)
view[0] = 5
assert(array[16] == 5 and array:assign(ms.array({32}, "float32", 1))[16] == 1 and view[0] == 1)
refuses("a multiple of 64", array.view, array, {2}, "float32", 4)
refuses("leaves an array", array.view, array, {17}, "float32", 64)
refuses("leaves an array", array.view, array, {1}, "float32", 192)
refuses("do not take", array.assign, array, ms.array({31}))

os.remove(path)
os.remove(db)
print "plans of networks hold"
