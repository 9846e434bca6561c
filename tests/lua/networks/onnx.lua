-- Networks from ONNX's files: what they hold, raw, typed and in files of their own; walking and changing them; what is
-- refused, by name and all at once; files that are cut or damaged anywhere.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local onnx = dofile(here .. "/support/lua/onnx.lua")
local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local path = folder .. "/model.onnx"

local function put(name, bytes)
  local file <close> = assert(io.open(name, "wb"))
  file:write(bytes)
end
local function read(m, options)
  put(path, type(m) == "string" and m or onnx.model(m))
  return ms.onnx(path, options)
end
local function refuses(expected, m, options)
  local ok, message = pcall(read, m, options)
  assert(not ok, "taken: " .. expected)
  assert(tostring(message):find(expected, 1, true), "expected: " .. expected .. "\ngot: " .. tostring(message))
  assert(select(2, tostring(message):gsub("model.onnx", "")) == 1, "the file is not named once: " .. tostring(message))
end
local function same(got, want)
  assert(#got == #want, #got .. " elements, not " .. #want)
  for i, x in ipairs(want) do assert(got[i] == x, string.format("element %d is %s, not %s", i, got[i], x)) end
end

local function model(changes)
  local m =
    {opset = 17, nodes = {{"Relu", {"sum"}, {"y"}, name = "last"}, {"Add", {"x", "w"}, {"sum"}, name = "first"}},
     inputs = {{"x", "float32", {"batch", 4}}}, outputs = {{"y", "float32", {"batch", 4}}},
     constants = {w = {"float32", {4}, {1, 2, 3, 4}}}}
  for key, value in pairs(changes or {}) do m[key] = value end
  return m
end

-- ---- What a network is ----

local net = read(model())
assert(#net.nodes == 2 and net.nodes[1].op == "Add" and net.nodes[2].op == "Relu",
       "nodes are in an order that can be run")
assert(net.opsets[""] == 17 and net.producer == "tests" and net.inputs[1].shape[1] == "batch")
same(net.constants.w:tolist(), {1, 2, 3, 4})
same(net:open_extents(), {"batch"})
assert(net:giver "y" == net.nodes[2] and net:giver "x" == nil and net:readers "sum"[1] == net.nodes[2]
       and net:operators().Add == 1)
for _,
    line in ipairs {"network test: 2 nodes, 1 constant of 4 elements, opset 17, by tests", "input x: float32[batch, 4]",
                    "constant w: float32[4]", "sum = Add(x, w)  # first", "output y: float32[batch, 4]"} do
  assert(tostring(net):find(line, 1, true), tostring(net))
end
assert(read(model(), {dims = {batch = 3}}).inputs[1].shape[1] == 3)
assert(read(model(), {shapes = {x = {5, 4}}}).inputs[1].shape[1] == 5)

-- Names are others' texts: each line that shows or refuses them stays one, and holds no control character.
local loud = {nodes = {{"Relu", {"x\27[2J\nx"}, {"y\7\ny"}, name = "n\n\27[31m"}},
              inputs = {{"x\27[2J\nx", "float32", {4}}}, outputs = {{"y\7\ny"}}}
local shown = read(model(loud)):text()
assert(not shown:find "[%z\1-\9\11-\31\127]" and select(2, shown:gsub("\n", "")) == 4
       and shown:find([[y\x07\ny = Relu(x\x1b[2J\nx)  # n\n\x1b[31m]], 1, true), shown)
loud.nodes[1][2] = {"lost\n\27]0;"}
local ok, message = pcall(read, model(loud))
assert(not ok and not message:find "[%c]" and message:find([[lost\n\x1b]0;]], 1, true), message)

-- It is changed in place: a node is put between others, and check finds the order.
table.insert(net.nodes, {op = "Neg", domain = "", name = "", inputs = {"sum"}, outputs = {"less"}, attributes = {}})
net.nodes[2].inputs[1] = "less"
net:check()
assert(net.nodes[2].op == "Neg" and net.nodes[3].op == "Relu")
net.nodes[1].inputs[2] = "lost"
ok, message = pcall(net.check, net)
assert(not ok and message:find("Add first reads lost, which nothing gives", 1, true), message)

-- ---- Data: every type, raw and typed ----

local DATA =
  {float32 = {4, {1.5, -2}}, float64 = {10, {1.5, -2}}, int8 = {5, {-128, 127}}, uint8 = {5, {0, 255}},
   int16 = {5, {-32768, 1}}, uint16 = {5, {0, 65535}}, int32 = {5, {-2147483648, 7}},
   int64 = {7, {math.mininteger, (1 << 53) + 1}}, uint32 = {11, {0, 4294967295}}, uint64 = {11, {0, (1 << 53) + 1}},
   bool = {5, {0, 1}}, float16 = {5, {0x3e00, 0xc000}}, bfloat16 = {5, {0x3fc0, 0xc000}}}
for _, type in ipairs(ms.sorted_keys(DATA)) do
  local field, values = table.unpack(DATA[type])
  for _, typed in ipairs {false, field} do
    local array = read(model {constants = {w = {"float32", {4}, {1, 2, 3, 4}},
                                           c = {type, {1, 2}, values, typed or nil}}}).constants.c
    local want = type:find "float16" and {1.5, -2} or values
    assert(array:type() == type and #array:shape() == 2)
    same(array:tolist(), want)
    same(ms.array({2}, type, array:bytes()):tolist(), want)
  end
end
local attributes = read(model {nodes = {{"Add", {"x", "w"}, {"y"}, {i = 3, f = 0.5, s = "text", ints = {1, -2},
                                         floats = {1.5, 2.5}, strings = {"a", "b"}, t = {"int64", {2}, {5, 6}},
                                         g = {nodes = {{"Neg", {"x"}, {"z"}}}}}}}}).nodes[1].attributes
assert(attributes.i == 3 and attributes.f == 0.5 and attributes.s == "text" and attributes.g.nodes[1].op == "Neg")
same(attributes.ints, {1, -2})
same(attributes.floats, {1.5, 2.5})
same(attributes.strings, {"a", "b"})
same(attributes.t:tolist(), {5, 6})

-- ---- Data in files of their own ----

local function external(place) return model {constants = {w = {"float32", {4}, external = place}}} end
put(folder .. "/weights", string.rep("x", 8) .. string.pack("<ffff", 5, 6, 7, 8))
same(read(external {location = "weights", offset = 8, length = 16}).constants.w:tolist(), {5, 6, 7, 8})
assert(os.execute("mkdir " .. folder .. "/in && cp " .. folder .. "/weights " .. folder .. "/in/w && ln -s /etc/passwd "
                  .. folder .. "/leads_out"))
same(read(external {location = "in/w", offset = 8}).constants.w:tolist(), {5, 6, 7, 8})
refuses("tensor w: its external data are in `/etc/passwd`, which is no path within the model's folder",
        external {location = "/etc/passwd"})
refuses("tensor w: its external data are in `../../etc/passwd`, which is outside of the model's folder",
        external {location = "../../etc/passwd"})
refuses("which is outside of the model's folder", external {location = "leads_out"})
refuses("tensor w: weights has 24 bytes; 16 from 9 on are asked for", external {location = "weights", offset = 9})
refuses("tensor w: its extents ask for 16 bytes, and its external data have 12",
        external {location = "weights", length = 12})
refuses("the offset of its external data is `-1`, which is no number of bytes",
        external {location = "weights", offset = -1})
refuses("tensor w: its external data are in `in`, which is no file", external {location = "in"})
refuses("tensor w: its external data, none, cannot be opened", external {location = "none"})
refuses("no location says where", external {})
-- A tensor of terabytes is not asked of memory before its file is found to be short.
refuses("weights has 24 bytes", model {constants = {w = {"float32", {1 << 36}, external = {location = "weights"}}}})

-- ---- Functions of the model's own: in the place of nodes that call them ----

local scaled = {name = "Scaled", domain = "own", inputs = {"a", "b"}, outputs = {"c", "a"}, attributes = {"to"},
                defaults = {axis = 1},
                nodes = {{"Add", {"a", "b"}, {"t"}}, {"Cast", {"t"}, {"u"}, {to = {reference = "to"}}},
                         {"Softmax", {"u"}, {"c"}, {axis = {reference = "axis"}}}}, opset = 12}
local outer = {name = "Outer", domain = "own", inputs = {"t"}, outputs = {"u"},
               nodes = {{"Scaled", {"t", "t"}, {"u"}, {to = 1}, domain = "own"}}}
local function calling(functions, more)
  return model {functions = functions, outputs = {{"y"}, {"z"}}, nodes = {{"Outer", {"x"}, {"t"}, domain = "own"},
                {"Scaled", {"t", "w"}, {"y", "z"}, {to = 11, axis = more}, domain = "own", name = "here"}}}
end
net = read(calling {scaled, outer})
local ops = net:operators()
assert(#net.nodes == 7 and ops.Softmax == 2 and ops.Identity == 1 and ops.Cast == 2 and not ops["own.Scaled"],
       tostring(net))
local first, last = net:giver "t", net:giver "y"
assert(first.op == "Softmax" and first.attributes.axis == 1 and first.opset == 12 and last.name == "here")
assert(net:giver(last.inputs[1]).attributes.to == 11 and net:giver "z".inputs[1] == "t")
assert(read(calling({scaled, outer}, 0)):giver "y".attributes.axis == 0,
       "a node's own attribute goes before the function's")
refuses("two functions are named own.Scaled", calling {scaled, outer, scaled})
outer.opset = 6
refuses("function Outer uses version 6 of ONNX's operators; 7 to 28 are known", calling {scaled, outer})
outer.nodes[1][1], outer.opset = "Outer", 17
refuses("function own.Outer calls itself", calling {scaled, outer})
local tower = {}
for i = 1, 30 do
  tower[i] = {name = "F" .. i, domain = "own", inputs = {"a"}, outputs = {"c"},
              nodes = {{"F" .. i + 1, {"a"}, {"b"}, domain = "own"}, {"F" .. i + 1, {"b"}, {"c"}, domain = "own"}}}
end
refuses("its functions make more than 100000 nodes",
        model {functions = tower, nodes = {{"F1", {"x"}, {"y"}, domain = "own"}}})
for i = 1, 30 do tower[i].nodes = {{"F" .. i + 1, {"a"}, {"c"}, domain = "own"}} end
for i = 31, 100 do
  tower[i] = {name = "F" .. i, domain = "own", inputs = {"a"}, outputs = {"c"},
              nodes = {{"F" .. i + 1, {"a"}, {"c"}, domain = "own"}}}
end
refuses("is called by others more than 64 deep",
        model {functions = tower, nodes = {{"F1", {"x"}, {"y"}, domain = "own"}}})
local damaged = model()
damaged.more = onnx.text(25, onnx.text(1, "F") .. onnx.text(11, "\255\255\255"))
assert(not pcall(read, damaged))

-- ---- What is refused ----

for _, type in ipairs {"string", "complex64", "float8e4m3fnuz"} do
  refuses("tensor w: its elements are of " .. type .. ", which no array has", model {constants = {w = {type, {1}}}})
  refuses("input x is of " .. type .. ", which no array has", model {inputs = {{"x", type, {1}}}})
end
refuses("input x is a sequence: networks have tensors only", model {inputs = {{"x", "float32", {1}, kind = 4}}})
refuses("tensor w: its extents ask for 20 bytes, and its data have 16",
        model {constants = {w = {"float32", {5}, {1, 2, 3, 4}}}})
-- An extent that is -1 is not known; one that is less is none.
local open = read(onnx.model {opset = 17, nodes = {{"Relu", {"x"}, {"y"}}}, inputs = {{"x", "float32", {-1, 4}}},
                              outputs = {{"y", "float32", {-1, 4}}}})
same(open:open_extents(), {"extent 1 of x"})
local known, why = pcall(open.static, open)
assert(not known
       and why:find("input x has extents [?, 4], of which extent 1 is not known: give it by --shape x", 1, true), why)
refuses("input x: extent 1 is -2", model {inputs = {{"x", "float32", {-2, 4}}}})
refuses("tensor w: extent 1 is -1, which no tensor has", model {constants = {w = {"float32", {-1}, {}}}})
refuses("its extents ask for more than memory holds", model {constants = {w = {"float32", {1 << 62, 4}, {1}}}})
refuses("its extents ask for more than memory holds", model {constants = {w = {"float32", {1 << 40}, {1}}}})
refuses("it uses version 6 of ONNX's operators; 7 to 28 are known", model {opset = 6})
refuses("it does not say which version of ONNX's operators it uses", model {domain = "com.microsoft"})
refuses("input x has 2 dimensions, and a shape of 1 is given", model(), {shapes = {x = {5}}})
refuses("extent 2 of input x is 4, and 5 is given", model(), {shapes = {x = {1, 5}}})
refuses("a constant is given for z, which is no input", model(), {constants = {z = 5}})
refuses("a shape is given for z, which is no input", model(), {shapes = {z = {5}}})
refuses("m is given as 4, and no extent of an input has that name", model(), {dims = {m = 4}})
refuses("two inputs are named x", model {inputs = {{"x", "float32", {4}}, {"x", "float32", {4}}}})
refuses("y is given twice, by Neg that gives y too", model {nodes = {{"Relu", {"x"}, {"y"}}, {"Neg", {"x"}, {"y"}}}})
refuses("a cycle", model {nodes = {{"Add", {"x", "b"}, {"a"}}, {"Neg", {"a"}, {"b"}}, {"Neg", {"a"}, {"y"}}}})
refuses("3 problems:", model {nodes = {{"Add", {"p", "q"}, {"z"}}}})
refuses("output y is given by nothing", model {nodes = {}})
refuses("it has no outputs", model {outputs = {}})
refuses("it is no ONNX model: it has no graph", "")
refuses("it is no ONNX model, or a damaged one", "\127ELF of another kind")
assert(not pcall(ms.onnx, folder .. "/none.onnx") and not pcall(ms.onnx, folder))

-- A file larger than a model may be is refused before it is read.
assert(os.execute("truncate -s 3G " .. folder .. "/model.onnx"))
ok, message = pcall(ms.onnx, path)
assert(not ok and message:find("it has 3221225472 bytes; a model has at most 2147483647", 1, true), message)

-- A long chain, last node first, and graphs in graphs past what is read.
local nodes = {{"Neg", {"x"}, {"v1"}}}
for i = 2, 20000 do nodes[i] = {"Neg", {"v" .. i - 1}, {"v" .. i}} end
local reversed = {}
for i, n in ipairs(nodes) do reversed[#nodes + 1 - i] = n end
assert(#read(model {nodes = reversed, outputs = {{"v20000"}}}).nodes == 20000)
local function deep(graphs)
  local g = {nodes = {{"Neg", {"x"}, {"z"}}}}
  for _ = 2, graphs do g = {nodes = {{"If", {"x"}, {"z"}, {g = g}}}} end
  return model {nodes = {{"If", {"x"}, {"y"}, {g = g}}}, outputs = {{"y"}}}
end
refuses("its messages are in one another more than 100 deep", deep(40))
assert(#read(deep(30)).nodes == 1)

-- Cut anywhere it is refused, or has lost whole fields; each byte changed, it is refused or read, with one message.
local whole = onnx.model(model())
for size = 0, #whole - 1 do
  local fine, why = pcall(read, whole:sub(1, size))
  assert(fine or type(why) == "string" and #why < 2000)
end
for at = 1, #whole do
  local fine, why = pcall(read, whole:sub(1, at - 1) .. string.char(whole:byte(at) ~ 0xff) .. whole:sub(at + 1))
  assert(fine or type(why) == "string" and #why < 4000, why)
end
assert(os.execute("rm -r " .. folder))
