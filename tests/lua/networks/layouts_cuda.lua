-- Layouts of networks for GPUs by cost: by what a store has measured of both layouts; by estimates where it has
-- nothing, the same again with the same store and with another; where nothing is gained, and where estimates say
-- nothing, channels are last. On the tests' own driver they give what the interpreter gives node by node.
-- usage: msched layouts_cuda.lua
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
dofile(here .. "/support/lua/few_proposals.lua")
local onnx = dofile(here .. "/support/lua/onnx.lua")
local own = dofile(here .. "/support/lua/folder.lua")
local layout, plan, search = ms.load "lua.net.layout", ms.load "lua.net.plan", ms.load "search.tune"
local weights = onnx.weights
local TARGET = "cuda -arch=sm_90"
if not os.execute "g++ --version >/dev/null 2>&1" then
  print "layouts_cuda: skipped: there is no g++"
  os.exit(77)
end

local function stored(name) return ms.store(own.path .. "/" .. name) end

-- A plan for the GPU, and the lines that say why it has its layouts.
local function planned(net, store, label)
  local prepare, lines = plan.prepare, nil
  plan.prepare = function(given, options)
    options.after = function(name, _, notes) if name == "layout" then lines = table.concat(notes or {}, "\n") end end
    return prepare(given, options)
  end
  local opened = net:plan {no_tune = true, target = TARGET, store = store, layout = label}
  plan.prepare = prepare
  return opened, lines
end

-- The order of a value in a plan.
local function order_of(opened, name)
  local order = opened.prepared.state.values[name].layout
  return order and layout.key(order) or "as written"
end

local function check_run(net, opened)
  local x = ms.array(net.inputs[1].shape, net.inputs[1].type):random(1, true)
  local want, got = net:run({x = x}, {interpret = true}), opened:run {x = x}
  for name, array in pairs(want) do
    local largest = array:difference(ms.array(array:shape(), array:type()))
    assert(largest > 0 and array:difference(got[name]) <= 1e-5 * largest, name)
  end
end

-- Three convolutions and a pool, the elements of a type.
local function chain(type)
  local function some(shape, seed)
    local t = weights(shape, seed)
    if type == "float16" then
      for i = 1, #t[3] do t[3][i] = 0x2c00 + i % 1024 end -- bits: from 0.06 to 0.12
    end
    return {type, shape, t[3]}
  end
  return onnx.read {
    opset = 17, inputs = {{"x", type, {1, 16, 10, 10}}}, outputs = {{"y"}},
    constants = {w1 = some({16, 16, 3, 3}, 1), w2 = some({16, 16, 1, 1}, 2), w3 = some({16, 16, 3, 3}, 3)},
    nodes = {{"Conv", {"x", "w1"}, {"c1"}}, {"Relu", {"c1"}, {"r1"}}, {"Conv", {"r1", "w2"}, {"c2"}},
             {"Relu", {"c2"}, {"r2"}}, {"Conv", {"r2", "w3"}, {"c3"}}, {"GlobalAveragePool", {"c3"}, {"y"}}}}
end

-- Stores of each function of a plan that it was measured.
local function measure(opened, store, seconds)
  for _, task in ipairs(opened.tasks) do
    local record = store:find(task.fastest.full_id)
    store:put {workload = record.workload, target = record.target, trace = ms.read_trace(record.trace),
               hash = record.hash, status = "measured", seconds = seconds, low = seconds, high = seconds, runs = 3}
  end
end

-- ---- Measured ----------------------------------------------------------------------------------------------------

for _, each in ipairs {{"float32", "second"}, {"float16", "blocked"}} do
  local type, other = table.unpack(each)
  local net, store = chain(type), stored(type .. ".db")
  measure(planned(net, store, "last"), store, 20e-6)
  measure(planned(net, store, other), store, 5e-6)
  local opened, lines = planned(net, store)
  local order = other == "blocked" and "1_2_3_4/4" or "as written"
  assert(order_of(opened, "r1") == order and order_of(opened, "r2") == order, lines)
  assert(lines:find("c1: " .. other .. " of last %d+ %(measured%)"), lines)
  if type == "float32" then check_run(net, opened) end
  measure(planned(net, store, "last"), store, 1e-6)
  opened, lines = planned(net, store)
  assert(order_of(opened, "r1") == "1_3_4_2" and order_of(opened, "r2") == "1_3_4_2", lines)
  store:close()
end

-- ---- Estimated ---------------------------------------------------------------------------------------------------

-- An image of two channels with many elements: with channels second no kernel copies it before and behind. The choice
-- depends on nothing but the network and the target.
local few = onnx.read {
  opset = 17, inputs = {{"x", "float32", {1, 2, 96, 96}}}, outputs = {{"y"}},
  constants = {w1 = weights({3, 2, 3, 3}, 1), w2 = weights({2, 3, 3, 3}, 2)},
  nodes = {{"Conv", {"x", "w1"}, {"c1"}}, {"Relu", {"c1"}, {"r1"}}, {"Conv", {"r1", "w2"}, {"y"}}}}
local text
for _, name in ipairs {"few.db", "few.db", "more.db"} do
  local store = stored(name)
  local opened, lines = planned(few, store)
  assert(order_of(opened, "r1") == "as written" and lines:find "c1: second of last %d+ %(estimated%)", lines)
  assert(not text or text == lines, text)
  if not text then check_run(few, opened) end
  text = lines
  store:close()
end

-- ---- Nothing gained ----------------------------------------------------------------------------------------------

-- Whether the functions of a network are those with channels last.
local function is_last(net, costs)
  local lines
  local function texts(label)
    local prepared, list = plan.prepare(net, {target = TARGET, costs = costs, layout = label,
                                              after = function(name, _, notes)
      if name == "layout" then lines = notes and table.concat(notes, "\n") or lines end
    end}), {}
    for i, f in ipairs(prepared.functions) do list[i] = f.func:script() end
    return table.concat(list)
  end
  return texts "auto" == texts "last", lines
end

local store = stored "last.db"
local many = {w = weights({64, 64, 3, 3}, 1)}
local nodes = {}
for i = 1, 4 do nodes[i] = {"Conv", {i == 1 and "x" or "c" .. i - 1, "w"}, {"c" .. i}, {pads = {1, 1, 1, 1}}} end
local last, lines = is_last(onnx.read {opset = 17, inputs = {{"x", "float32", {1, 64, 56, 56}}}, outputs = {{"c4"}},
                                       constants = many, nodes = nodes},
                            {store = store, no_tune = true, target = TARGET})
assert(last and lines:find "c1: last of last %d+ %(estimated%), second %d+ %(estimated%)", lines)

-- Of 16-bit floats, and of channels by themselves, nothing is estimated, however much time there is.
local all = search.all
search.all = function() error "nothing is to be estimated" end
last, lines = is_last(chain "float16", {store = store, further = true, target = TARGET})
assert(last and lines:find "c1: last of last %d+ %(bound%)\n", lines)
last, lines = is_last(onnx.read {opset = 17, inputs = {{"x", "float32", {1, 8, 32, 32}}}, outputs = {{"y"}},
                                 constants = {w = weights({8, 1, 3, 3}, 1)},
                                 nodes = {{"Conv", {"x", "w"}, {"c"}, {group = 8}},
                                          {"Conv", {"c", "w"}, {"y"}, {group = 8}}}},
                      {store = store, further = true, target = TARGET})
assert(last and lines:find "c: last of last %d+ %(bound%)\n", lines)
search.all = all
store:close()
own.run("rm -rf %s", own.path)
print "ok"
