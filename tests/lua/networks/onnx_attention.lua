-- Attention that is spelled out: which spellings become one node, which stay parts, and that the node gives what the
-- parts give, node by node on the interpreter, also where a row of scores is negative infinity, or has NaN.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local onnx = dofile(here .. "/support/lua/onnx.lua")
local passes, pass = ms.load "lua.net.passes", ms.load "lua.net.pass.attention"

local B, H, Q, K, D, V = 2, 3, 5, 7, 4, 6
local INPUTS = {q = {B, H, Q, D}, k = {B, H, K, D}, v = {B, H, K, V}}
local INFINITY, NAN = math.huge, 0 / 0

local function list(count, f)
  local values = {}
  for i = 1, count do values[i] = f(i - 1) end
  return values
end
-- A mask of rows x columns: `low` where a query does not see a key.
local function mask(low, sees, rows, columns)
  rows, columns = rows or Q, columns or K
  return list(rows * columns, function(at) return sees(at // columns, at % columns) and 0 or low end)
end
local function causal(i, j) return j <= i end
local function shown(sees, rows, columns)
  return list((rows or Q) * (columns or K), function(at)
    return sees(at // (columns or K), at % (columns or K)) and 1 or 0
  end)
end

local CONSTANTS = {
  scale = {"float32", {}, {0.5}}, two = {"float32", {1}, {2}}, root = {"float32", {}, {math.sqrt(0.5)}},
  least = {"float32", {}, {-3.4028235e38}}, infinite = {"float32", {}, {-INFINITY}}, minus = {"float32", {}, {-1}},
  causal = {"float32", {1, 1, Q, K}, mask(-INFINITY, causal)}, low = {"float32", {Q, K}, mask(-3.4e38, causal)},
  early = {"float32", {Q, K}, mask(-1e4, causal)}, -- a score of 2e4 that is masked is larger than one of 0
  near = {"float32", {Q, K}, mask(-1e30, function(i, j) return j <= i + 2 and j >= i - 1 end)},
  odd = {"float32", {Q, K}, mask(-1e9, function(i, j) return (i + j) % 3 ~= 1 end)},
  high = {"float32", {Q, K}, mask(-100, causal)}, strange = {"float32", {Q, K}, mask(NAN, causal)},
  wide = {"float32", {4, 1, 1, 1, 1}, {1, 2, 3, 4}},
  lower = {"bool", {1, 1, Q, K}, shown(causal)}, upper = {"bool", {1, 1, Q, K}, shown(function(i, j) return j > i end)},
  some = {"bool", {Q, K}, shown(function(i, j) return i ~= 2 and j % 2 == 0 end)},
  none = {"bool", {Q, 1}, {1, 1, 0, 1, 1}}, vs = {"float32", {B, H, K, V}, list(B * H * K * V, math.sin)},
  s3 = {"int64", {3}, {B * H, Q, D}}, t3 = {"int64", {3}, {B * H, K, D}}, u3 = {"int64", {3}, {B * H, K, V}},
  p4 = {"int64", {4}, {B, H, Q, K}}, p3 = {"int64", {3}, {B * H, Q, K}}, k4 = {"int64", {4}, {B, H, D, K}},
  y4 = {"int64", {4}, {B, H, Q, V}}, one = {"int64", {1}, {2}}, many = {"int64", {5}, {B, 1, 3, K, 4}},
  all = {"int64", {4}, {B, 3, K, 4}}, three = {"int64", {5}, {1, 1, 3, 1, 1}}, size = {"int64", {2}, {Q, K}},
}

local function read(nodes, inputs, outputs, opset)
  local m = {opset = opset or 17, nodes = nodes, inputs = {}, outputs = {}, constants = CONSTANTS}
  for _, name in ipairs(ms.sorted_keys(inputs)) do
    local shape = inputs[name]
    m.inputs[#m.inputs + 1] = {name, shape.type or "float32", shape}
  end
  for i, name in ipairs(outputs or {"y"}) do m.outputs[i] = {name} end
  return onnx.read(m)
end

local function compare(want, got, what)
  local a, b = want:tolist(), got:tolist()
  assert(#a == #b and #a > 0)
  for i, x in ipairs(a) do
    local same = x == b[i] or x ~= x and b[i] ~= b[i] or math.abs(x - b[i]) <= (what.tolerance or 1e-5)
    assert(same, string.format("%s: element %d is %g, and %g in parts", what.name, i, b[i], x))
  end
end
local function drawn(net, given)
  local arrays = {}
  for i, input in ipairs(net.inputs) do
    local x = ms.array(input.shape, input.type)
    local bools = input.type == "bool" and list(#x, function(at) return at * 7 % 5 > 1 and 1 or 0 end)
    arrays[input.name] = given and given[input.name] or bools and ms.array(input.shape, "bool", bools)
      or x:random(i, true)
  end
  return arrays
end

-- Nodes of text, "Mul x two = y", an attribute behind: "Softmax s = p axis=-1".
local function nodes_of(text)
  local nodes = {}
  for op, inputs, output, rest in text:gmatch "(%w+) ([^=;]*)= (%w+)([^;]*)" do
    local node = {op, {}, {output}, {}}
    for name in inputs:gmatch "%S+" do table.insert(node[2], name) end
    for key, value in rest:gmatch "(%w+)=(%S+)" do
      local ints = {}
      for x in value:gmatch "-?%d+" do ints[#ints + 1] = math.tointeger(tonumber(x)) end
      node[4][key] = value:find "," and ints or ints[1]
    end
    nodes[#nodes + 1] = node
  end
  return nodes
end
-- The operators that are left of a text, in place of parts: "Attention{…}" with what it is of.
local function left_of(net)
  local work, ops = passes.run(net, {}), {}
  for i, node in ipairs(work.nodes) do
    local parts = {node.op}
    if node.domain == "msched" then
      for _, key in ipairs {"left", "right", "masked", "bias_last"} do
        if node.attributes[key] then parts[#parts + 1] = string.format("%s=%.3g", key, node.attributes[key]) end
      end
      if (node.inputs[4] or "") ~= "" then parts[#parts + 1] = "bias" end
      if (node.inputs[5] or "") ~= "" then parts[#parts + 1] = "seen" end
    end
    ops[i] = table.concat(parts, ":")
  end
  return table.concat(ops, " ")
end

-- ---- As it is compiled without tuning: no scores are in memory ----

local KEYS, LAST = "Transpose k = t perm=0,1,3,2; ", "Softmax a = p axis=-1; MatMul p v = y"
local SCORES = KEYS .. "MatMul q t = s; "

local function compiled_untuned()
  local db = os.tmpname()
  os.remove(db)
  for _, each in ipairs {{"Attention:right=0", "Where below b least"},
                         {"Attention:bias", "Add b m", {m = {1, 1, 1, 96}}},
                         {"Attention:bias", "Add b m", {m = {64, 96}}}} do
    CONSTANTS.below = {"bool", {64, 96}, shown(causal, 64, 96)}
    local text = SCORES .. "Mul s scale = b; " .. each[2] .. " = a; " .. LAST
    local inputs = {q = {1, 2, 64, 32}, k = {1, 2, 96, 32}, v = {1, 2, 96, 16}}
    for name, shape in pairs(each[3] or {}) do inputs[name] = shape end
    local net = read(nodes_of(text), inputs)
    assert(left_of(net) == each[1], left_of(net))
    local arrays = drawn(net)
    if arrays.m then -- of some columns, or of whole rows
      local rows = #arrays.m > 96
      for at = 0, #arrays.m - 1 do
        local hidden = at % 7 == 2
        if rows then hidden = at // 96 % 5 == 3 or at % 96 > 80 end
        if hidden then arrays.m[at] = -INFINITY end
      end
    end
    local plan = net:plan {no_tune = true, db = db}
    compare(net:run(arrays, {interpret = true}).y, plan:run(arrays).y, {name = text})
    assert(#plan.calls == 1 and plan.arena_bytes == 0)
    for _, options in ipairs {{fixed_order = true}, {target = "cuda -arch=sm_80"}} do
      assert(passes.run(net, options):operators().Softmax == 1, "sums stay in order; a GPU has more threads than rows")
    end
  end
  for _, suffix in ipairs {"", "-lock"} do os.remove(db .. suffix) end
end

if arg[1] == "untuned" then
  compiled_untuned()
  print "attention of networks, untuned, holds"
  return
end

local by_shape = pass.pays
pass.pays = function() return true end

local function spelled(want, text, options)
  options = options or {}
  local inputs = {}
  for name, shape in pairs(options.inputs or INPUTS) do inputs[name] = shape end
  for name, shape in pairs(options.more or {}) do inputs[name] = shape end
  local net = read(nodes_of(text), inputs, options.outputs, options.opset)
  local left = left_of(net)
  assert(left == want, "expected: " .. want .. "\ngot: " .. left)
  local arrays = drawn(net, options.given)
  local expected, got = net:run(arrays, {interpret = true}), net:plan({written = true}):run(arrays)
  for name, array in pairs(expected) do compare(array, got[name], {name = text, tolerance = options.tolerance}) end
end

-- ---- Scales, and keys that are transposed ----

spelled("Attention", SCORES .. "Mul s scale = a; " .. LAST)
spelled("Attention", SCORES .. "Mul scale s = a; Softmax a = p axis=3; Dropout p = d; MatMul d v = y")
spelled("Attention", SCORES .. "Div s two = a; Softmax a = p; MatMul p v = y")
spelled("Attention", SCORES .. "Softmax s = p axis=-1; MatMul p v = y")
spelled("Attention", "Mul q scale = r; " .. KEYS .. "MatMul r t = a; " .. LAST)
spelled("Attention", KEYS .. "Div t two = u; MatMul q u = a; " .. LAST)
spelled("Attention", "Mul q root = r; Mul k root = l; Transpose l = t perm=0,1,3,2; MatMul r t = a; " .. LAST)
spelled("Attention", SCORES .. "Mul s scale = a; Softmax a = p axis=3; MatMul p v = y", {opset = 11})
spelled("Transpose Attention", "Transpose k = t perm=0,2,3,1; MatMul q t = a; " .. LAST,
        {inputs = {q = {B, H, Q, D}, k = {B, K, H, D}, v = {B, H, K, V}}})
spelled("Transpose Attention", "MatMul q k = a; " .. LAST,
        {inputs = {q = {B, H, Q, D}, k = {B, H, D, K}, v = {B, H, K, V}}})
spelled("Reshape Reshape Attention", "Reshape k t3 = l; Transpose l = u perm=0,2,1; Reshape u k4 = t; \z
         Mul t scale = w; MatMul q w = a; " .. LAST)
spelled("Reshape Reshape Reshape Attention Reshape",
        "Transpose k = t perm=0,2,1; MatMul q t = s; Mul s scale = a; " .. LAST,
        {inputs = {q = {H, Q, D}, k = {H, K, D}, v = {H, K, V}}})
spelled("Reshape Reshape Reshape Attention Reshape", "Transpose k = t; MatMul q t = a; " .. LAST,
        {inputs = {q = {Q, D}, k = {K, D}, v = {K, V}}})
-- rows behind what follows them
spelled("Attention Transpose", SCORES .. "Mul s scale = a; Softmax a = p; MatMul p v = o; Transpose o = y perm=0,2,1,3")

-- ---- Heads of keys and values that queries share ----

local FEW = {q = {B, 3, Q, 4}, k = {B, 1, K, 4}, v = {B, 1, K, 4}}
local REPEATED = "Unsqueeze k one = k5; %s; Reshape k6 all = k7; Unsqueeze v one = v5; %s; Reshape v6 all = v7; \z
                  Transpose k7 = t perm=0,1,3,2; MatMul q t = a; Softmax a = p; MatMul p v7 = y"
spelled("Unsqueeze Unsqueeze Reshape Reshape Attention",
        REPEATED:format("Expand k5 many = k6", "Expand v5 many = v6"), {inputs = FEW})
spelled("Unsqueeze Unsqueeze Reshape Reshape Attention",
        REPEATED:format("Tile k5 three = k6", "Tile v5 three = v6"), {inputs = FEW})
spelled("Attention", SCORES .. "Mul s scale = a; " .. LAST, {inputs = FEW})

-- ---- Masks that are added ----

local ADDED = SCORES .. "Mul s scale = b; Add %s = a; " .. LAST
for _, shape in ipairs {{K}, {B, 1, 1, K}, {B, 1, Q, K}, {H, Q, K}, {1, H, 1, 1}} do
  spelled("Attention:bias", ADDED:format "b m", {more = {m = shape}})
end
spelled("Attention:bias", ADDED:format "m b", {more = {m = {B, H, Q, K}}})
spelled("Add Attention:bias", SCORES .. "Add s m = b; Add b n = a; " .. LAST, {more = {m = {Q, K}, n = {B, 1, Q, K}}})
for name, want in pairs {causal = "right=0", low = "right=0", near = "left=1:right=2", odd = "bias", high = "bias",
                         early = "bias", strange = "bias"} do
  spelled("Attention:" .. want, ADDED:format("b " .. name))
end
spelled("Add Attention:bias", SCORES .. "Add s causal = b; Add b m = a; " .. LAST, {more = {m = {B, 1, Q, K}}})
-- a row that sees no key, NaN, infinities
local row = list(Q * K, function(at)
  return (at // K == 1 or at % 3 == 0) and -INFINITY or at == 16 and NAN or 0
end)
spelled("Attention:bias", ADDED:format "b m", {more = {m = {Q, K}}, given = {m = ms.array({Q, K}, "float32", row)}})
spelled("Attention:right=0", ADDED:format "b causal",
        {given = {q = ms.array(INPUTS.q, "float32", list(B * H * Q * D, function(at)
  return at == 9 and NAN or at % 5 - 2
end))}})

-- ---- Masks that select ----

local CHOSEN = SCORES .. "Mul s scale = b; Where %s = a; " .. LAST
spelled("Attention:right=0", CHOSEN:format "lower b least")
spelled("Attention:right=0", CHOSEN:format "lower b infinite")
spelled("Attention:right=0", CHOSEN:format "upper least b")
spelled("Attention:right=0:masked=-1", CHOSEN:format "lower b minus")
spelled("Attention:seen", CHOSEN:format "some b infinite")
spelled("Attention:masked=-3.4e+38:seen", CHOSEN:format "some b least")
spelled("Attention:masked=-3.4e+38:seen", CHOSEN:format "none b least")
spelled("Not Attention:masked=-3.4e+38:seen", CHOSEN:format "m least b", {more = {m = {B, 1, 1, K, type = "bool"}}})
spelled("Attention:masked=2:seen", CHOSEN:format "m b two", {more = {m = {B, 1, 1, K, type = "bool"}}})
spelled("Attention:right=0:masked=-3.4e+38:bias", SCORES .. "Add s m = b; Where lower b least = a; " .. LAST,
        {more = {m = {B, 1, 1, K}}})
spelled("Attention:right=0:masked=-1:bias_last=1:bias", SCORES .. "Where lower s minus = b; Add b m = a; " .. LAST,
        {more = {m = {B, 1, 1, K}}})
-- one that is computed of constants, and is too large to be computed before the passes
do
  CONSTANTS.large = {"int64", {2}, {160, 160}}
  local text = "ConstantOfShape large = o value=1; Cast o = c to=9; Trilu c = l upper=0; Transpose k = t perm=1,0; \z
                MatMul q t = s; Where l s least = a; Softmax a = p; MatMul p v = y"
  local nodes = nodes_of(text)
  nodes[1][4].value = {"int64", {1}, {1}}
  local net = read(nodes, {q = {160, 2}, k = {160, 2}, v = {160, 2}})
  local left = left_of(net)
  assert(left:find "Attention:right=0 Reshape$", left)
  local arrays = drawn(net)
  compare(net:run(arrays).y, net:plan({written = true}):run(arrays).y, {name = text})
end

-- Reshapes around a mask, as of scores of batch * heads matrices.
spelled("Reshape Reshape Reshape Reshape Reshape Reshape Attention:bias Reshape Reshape",
        "Reshape q s3 = q3; Reshape k t3 = k3; Reshape v u3 = v3; Transpose k3 = t perm=0,2,1; MatMul q3 t = s; \z
         Reshape s p4 = b; Add b m = c; Reshape c p3 = a; Softmax a = p; MatMul p v3 = o; Reshape o y4 = y",
        {more = {m = {B, 1, Q, K}}})

-- ---- Types ----

local HALF = {q = {B, H, Q, D, type = "float16"}, k = {B, H, K, D, type = "float16"},
              v = {B, H, K, V, type = "float16"}}
spelled("Attention", SCORES .. "Cast s = c to=1; Mul c scale = a; Softmax a = b; Cast b = p to=10; MatMul p v = y",
        {inputs = HALF, tolerance = 4e-3})
spelled("Transpose MatMul Cast Softmax Cast MatMul",
        SCORES .. "Cast s = a to=11; Softmax a = b; Cast b = p to=1; MatMul p v = y")

-- ---- What stays ----

local PARTS = "Transpose MatMul Mul Softmax MatMul"
spelled(PARTS, SCORES .. "Mul s scale = a; " .. LAST, {outputs = {"y", "a"}})
spelled(PARTS, SCORES .. "Mul s scale = a; " .. LAST, {outputs = {"y", "p"}})
spelled(PARTS, SCORES .. "Mul s scale = a; " .. LAST, {outputs = {"y", "s"}})
spelled(PARTS .. " Exp", SCORES .. "Mul s scale = a; " .. LAST .. "; Exp p = z", {outputs = {"y", "z"}})
spelled("Transpose MatMul Exp Mul Softmax MatMul", SCORES .. "Exp s = z; Mul s scale = a; " .. LAST,
        {outputs = {"y", "z"}})
spelled(PARTS, SCORES .. "Mul s scale = a; Softmax a = p axis=2; MatMul p v = y")
spelled(PARTS, SCORES .. "Mul s scale = a; Softmax a = p axis=2; MatMul p v = y", {opset = 11})
spelled("Transpose MatMul Add Softmax MatMul", SCORES .. "Add s m = a; " .. LAST,
        {inputs = {q = {1, H, Q, D}, k = {1, H, K, D}, v = {B, H, K, V}}, more = {m = {B, 1, 1, K}}})
spelled("Transpose MatMul Mul Softmax MatMul", SCORES .. "Mul s wide = a; " .. LAST)
spelled("Transpose MatMul Add Mul Softmax MatMul", SCORES .. "Add s m = b; Mul b two = a; " .. LAST, {more = {m = {K}}})
spelled("Transpose MatMul Add Add Softmax MatMul", SCORES .. "Add s m = b; Add b n = a; " .. LAST,
        {more = {m = {1, 1, 1, K}, n = {1, H, Q, 1}}})
spelled("Transpose MatMul Where Where Softmax MatMul",
        SCORES .. "Where lower s least = b; Where some b least = a; " .. LAST)
spelled("Transpose MatMul Softmax MatMul", SCORES .. "Softmax s = p; MatMul p vs = y",
        {inputs = {q = INPUTS.q, k = INPUTS.k}})
spelled("Transpose MatMul Softmax MatMul", SCORES .. "Softmax s = p; MatMul v p = y",
        {inputs = {q = INPUTS.q, k = INPUTS.k, v = {B, H, V, Q}}})
spelled("Transpose MatMul Sigmoid MatMul", SCORES .. "Sigmoid s = p; MatMul p v = y")

-- ---- Where it pays ----

pass.pays = by_shape
do
  local cpu = {vector_bits = 512}
  local function pays(queries, keys, t, target, is_across)
    return by_shape({q = {shape = {queries, 64}}, k = {shape = {keys, 64}, is_across = is_across}}, t or "float32",
                    target or cpu)
  end
  assert(pays(1, 64) and pays(16, 64) and pays(1024, 1024) and pays(300, 300) and pays(1024, 77) and pays(100, 100))
  assert(not pays(2, 64) and not pays(15, 64) and not pays(24, 128) and not pays(197, 197), "vectors, tiles of keys")
  local narrow = {vector_bits = 256}
  assert(pays(8, 64, nil, narrow) and pays(8, 64, "float64") and not pays(12, 64, nil, narrow))
  assert(pays(64, 64, nil, nil, true) and not pays(1, 64, nil, nil, true), "keys that are transposed for it")
end

print "attention of networks holds"
