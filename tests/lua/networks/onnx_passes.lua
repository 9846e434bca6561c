-- Passes over networks: each where it fires and where it must not, with what the network computes unchanged; users'
-- passes in their sandbox, and what they leave that is wrong.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
dofile(here .. "/support/lua/few_proposals.lua")
local planned, onnx = dofile(here .. "/support/lua/planned.lua"), dofile(here .. "/support/lua/onnx.lua")
local some, build, norm = planned.some, planned.build, planned.norm
local check, groups = planned.check, planned.groups
local nodes_after = planned.nodes_after
local path, db = os.tmpname(), os.tmpname()
os.remove(db)

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
local relu = build({2, 3}, {{"MatMul", {"x", "w"}, {"m"}}, {"Relu", {"m"}, {"y"}}},
                   {w = some({3, 3}, -0.5), large = some {70, 70}})
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
                                            requantized, quantized, few_bits, int24, constants, ",
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
                        onnx.read {opset = 17, nodes = {{"Conv", {"x", "w"}, {"y"}}}, inputs = {{"x", "float32",
                              {1, 2, 5, 5}}, {"w", "float32", {2, 2, 3, 3}}}, outputs = {{"y"}}},
                        onnx.read {opset = 17, nodes = {{"Conv", {"x", "w"}, {"y"}}},
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
                        onnx.read {opset = 17, nodes = {{"ConvTranspose", {"x", "w"}, {"y"}, {strides = {2, 2}}}},
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
  groups("Identity, Conv Relu, Conv, MaxPool, Conv Identity", unit(8, 4),
         {no_tune = true, layout = "last", db = db})
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

os.remove(path)
os.remove(db)
print "passes over networks hold"
