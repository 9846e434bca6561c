-- Calls of a network side by side: which are chosen, on how many threads; what they give is what they give one after
-- another, bit for bit; no lane touches what another writes, in whatever order they run; libraries of all forms, hosts
-- of ten threads, a child of a fork; the whole of what runs before a look at indices; times by layer.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
dofile(here .. "/support/lua/few_proposals.lua")
local onnx = dofile(here .. "/support/lua/onnx.lua")
local own = dofile(here .. "/support/lua/folder.lua")
local folder, run, put, get = own.path, own.run, own.put, own.get
local side_by_side, memory = ms.load "lua.net.side_by_side", ms.load "lua.net.memory"
local weights = onnx.weights
local store = ms.store(folder .. "/store.db")

local function read(m)
  put("model.onnx", onnx.model(m))
  return ms.onnx(folder .. "/model.onnx")
end

-- ---- Networks ----

-- Two layers of both directions, whose products come first.
local function recurrent(length, inputs, hidden)
  local constants, nodes, x, size = {}, {}, "x", inputs
  for layer = 1, 2 do
    constants["w" .. layer] = weights({2, 4 * hidden, size}, layer)
    constants["r" .. layer] = weights({2, 4 * hidden, hidden}, 10 + layer)
    constants["s" .. layer] = {"int64", {3}, {length, 1, 2 * hidden}}
    nodes[#nodes + 1] = {"LSTM", {x, "w" .. layer, "r" .. layer}, {"y" .. layer},
                         {direction = "bidirectional", hidden_size = hidden}}
    nodes[#nodes + 1] = {"Transpose", {"y" .. layer}, {"t" .. layer}, {perm = {0, 2, 1, 3}}}
    nodes[#nodes + 1] = {"Reshape", {"t" .. layer, "s" .. layer}, {"x" .. layer}}
    x, size = "x" .. layer, 2 * hidden
  end
  nodes[#nodes + 1] = {"Tanh", {x}, {"y"}}
  return read {opset = 17, nodes = nodes, constants = constants, outputs = {{"y"}},
               inputs = {{"x", "float32", {length, 1, inputs}}}}
end

-- Branches of one value, of different lengths, each a residual whose sum takes the place of what it adds to; what one
-- gives is an output too, and one takes what only has another shape; what is looked up of indices that one computes.
local BRANCHES = 5
local function branches()
  local constants = {low = {"int64", {}, {0}}, shape = {"int64", {2}, {8, 24}}, back = {"int64", {2}, {16, 12}},
                     table = weights({40, 12}, 77), w0 = weights({12, 12}, 76)}
  local nodes = {{"MatMul", {"x", "w0"}, {"root"}}, {"Reshape", {"root", "shape"}, {"wide"}},
                 {"Gather", {"table", "i"}, {"picked"}}}
  local last = "picked"
  for k = 1, BRANCHES do
    local from = "root"
    if k == 2 then
      nodes[#nodes + 1] = {"Reshape", {"wide", "back"}, {"back2"}}
      from = "back2"
    end
    for i = 1, 2 * k do
      local w, m, s = string.format("w%d_%d", k, i), string.format("m%d_%d", k, i), string.format("s%d_%d", k, i)
      constants[w] = weights({12, 12}, 20 * k + i)
      nodes[#nodes + 1] = {"MatMul", {from, w}, {m}}
      nodes[#nodes + 1] = {"Softmax", {m}, {m .. "p"}, {axis = 1}}
      nodes[#nodes + 1] = {"MatMul", {m .. "p", w}, {m .. "q"}}
      nodes[#nodes + 1] = {"Add", {m .. "q", from}, {s}}
      from = s
    end
    nodes[#nodes + 1] = {"Add", {last, from}, {"sum" .. k}}
    last = "sum" .. k
  end
  nodes[#nodes + 1] = {"Softmax", {last}, {"y"}, {axis = 1}}
  return read {opset = 17, nodes = nodes, constants = constants, outputs = {{"y"}, {"s3_2"}},
               inputs = {{"x", "float32", {16, 12}}, {"i", "int64", {16}}}}
end

-- A sum in the place of what another branch reads before it, and a third branch.
local function overwritten()
  local constants = {w0 = weights({40, 12}, 60)}
  for k = 1, 3 do constants["w" .. k] = weights({12, 12}, 60 + k) end
  return read {opset = 17, constants = constants, outputs = {{"y"}, {"z"}},
               inputs = {{"x", "float32", {16, 12}}, {"i", "int64", {16}}},
               nodes = {{"Gather", {"w0", "i"}, {"a"}}, {"MatMul", {"a", "w1"}, {"m"}},
                        {"Softmax", {"m"}, {"p"}, {axis = 1}}, {"MatMul", {"x", "w2"}, {"n"}},
                        {"Add", {"n", "a"}, {"q"}}, {"Softmax", {"q"}, {"r"}, {axis = 1}},
                        {"MatMul", {"p", "w1"}, {"o"}}, {"Mul", {"o", "r"}, {"y"}}, {"MatMul", {"x", "w3"}, {"u"}},
                        {"Softmax", {"u"}, {"v"}, {axis = 1}}, {"MatMul", {"v", "w3"}, {"z"}}}}
end

-- ---- What is asserted of a plan ----

local function pair_of(plan)
  return function(g)
    local built = plan.built[g.kernel]
    return built and built.in_place
  end
end

-- The bytes of the arena after calls in some order: what a value was, each cell of 64 bytes holds when it is read.
local function run_on_cells(plan, order)
  local cells, slots, roots = {}, plan.placed.slots, {}
  for _, g in ipairs(plan.prepared.groups) do
    if g.alias then roots[g.outputs[1]] = g.inputs[1] end
  end
  local function root(name)
    while roots[name] and slots[roots[name]] == slots[name] do name = roots[name] end
    return name
  end
  local function each_cell(name, f)
    local slot = slots[name]
    if slot.kind ~= "arena" then return end
    for at = slot.offset // 64, (slot.offset + memory.bytes(plan.prepared.state.values[name]) - 1) // 64 do f(at) end
  end
  for _, each in ipairs(order) do
    for _, name in ipairs(each.group.inputs) do
      each_cell(name, function(at)
        assert(cells[at] == root(name), string.format("%s of %s: %s is there", name, each.group.name,
                                                      tostring(cells[at])))
      end)
    end
    for _, name in ipairs(each.group.outputs) do each_cell(name, function(at) cells[at] = root(name) end) end
  end
end

-- Lanes in the order of the plan, the last one first, and in turn.
local function check_memory(plan)
  local forward, backward, turns = {}, {}, {}
  for _, step in ipairs(plan.steps) do
    local longest = 0
    for k, lane in ipairs(step) do
      longest = math.max(longest, #lane)
      for _, each in ipairs(lane) do forward[#forward + 1] = each end
      for _, each in ipairs(step[#step + 1 - k]) do backward[#backward + 1] = each end
    end
    for i = 1, longest do
      for _, lane in ipairs(step) do turns[#turns + 1] = lane[i] end
    end
  end
  assert(#forward == #plan.calls and #backward == #forward and #turns == #forward)
  for i, each in ipairs(plan.calls) do assert(each == forward[i]) end
  for _, order in ipairs {forward, backward, turns} do run_on_cells(plan, order) end
  -- nor is what one writes beside what another reads or writes at any time
  for _, step in ipairs(plan.steps) do
    for k, lane in ipairs(step) do
      for _, other in ipairs(k < #step and table.move(step, k + 1, #step, 1, {}) or {}) do
        for _, a in ipairs(lane) do
          for _, b in ipairs(other) do
            local function apart(written, used)
              for _, p in ipairs(written) do
                for _, q in ipairs(used) do
                  local x, y = plan.placed.slots[p], plan.placed.slots[q]
                  assert(x ~= y and (x.kind ~= "arena" or y.kind ~= "arena" or x.offset + x.bytes <= y.offset
                                     or y.offset + y.bytes <= x.offset), p .. " is over " .. q)
                end
              end
            end
            apart(a.group.outputs, b.group.outputs)
            apart(a.group.outputs, b.group.inputs)
            apart(b.group.outputs, a.group.inputs)
          end
        end
      end
    end
  end
end

local function bytes_of(plan)
  local parts = {}
  for i, output in ipairs(plan.net.outputs) do parts[i] = plan.arrays[output.name]:bytes() end
  return table.concat(parts)
end

-- What it gives on its inputs one call after another, and as it runs.
local function check_results(plan, runs)
  local inputs = {}
  for _, input in ipairs(plan.net.inputs) do inputs[input.name] = plan.arrays[input.name] end
  for _, each in ipairs(plan.calls) do each.call:run() end
  local want = bytes_of(plan)
  for _ = 1, runs do
    for _, output in ipairs(plan.net.outputs) do
      plan.arrays[output.name]:assign(ms.array(plan.arrays[output.name]:shape()))
    end
    plan:run(inputs)
    assert(bytes_of(plan) == want, "side by side it gives something else")
  end
  return want
end

local function open(net, threads)
  local plan = net:plan {no_tune = true, store = store, target = "native -num-cores=" .. threads}
  plan:fill(3)
  check_memory(plan)
  local lanes, calls = 0, 0
  for _, step in ipairs(plan.steps) do
    assert(#step <= threads, "more lanes than threads")
    if #step > 1 then
      lanes = math.max(lanes, #step)
      for _, lane in ipairs(step) do calls = calls + #lane end
    end
  end
  assert(calls == plan:count_beside())
  return plan, lanes
end

-- ---- Chosen by what is gained ----

-- Both directions of each layer, and nothing on one thread; the same again.
local lstm = recurrent(24, 16, 32)
local plan1, lanes1 = open(lstm, 1)
assert(lanes1 == 0 and #plan1.steps == #plan1.calls)
local want = check_results(plan1, 1)
for _, threads in ipairs {2, 3, 8} do
  local plan, lanes = open(lstm, threads)
  assert(lanes == 2 and plan:count_beside() >= 4 * 24, "both directions side by side")
  assert(check_results(plan, 20) == want, "threads change what it gives")
  local again = open(lstm, threads)
  for i, each in ipairs(plan.calls) do assert(again.calls[i].group.name == each.group.name) end
end

-- Times by layer: of a step side by side all calls share what it takes.
do
  local plan = open(lstm, 2)
  local sum, shared = 0.0, 0
  for i, each in ipairs(plan:profile(5)) do
    sum, shared = sum + each.seconds, shared + (each.beside and 1 or 0)
    assert(each.group == plan.calls[i].group and each.seconds >= 0)
    assert(not each.beside or #plan.steps[each.beside] == 2)
  end
  assert(shared == plan:count_beside() and sum > 0)
  for _, each in ipairs(plan:profile(1, true)) do assert(not each.beside) end
end

-- What gains less than it costs stays one after another.
do
  local plan = open(recurrent(2, 4, 4), 2)
  assert(plan:count_beside() == 0)
  check_results(plan, 1)
end

-- Where any gain counts, branches run side by side, more of them than threads, and not what looks at indices before.
local net = branches()
want = check_results(open(net, 1), 1)
local kept = {}
for name, value in pairs {LEAST = 0, REGION = 0, SHARE = 0} do
  kept[name], side_by_side[name] = side_by_side[name], value
end
local counts = {}
for _, threads in ipairs {1, 2, 3, 8} do
  local plan, lanes = open(net, threads)
  assert(lanes == (threads == 1 and 0 or math.min(threads, BRANCHES)), threads .. " threads, lanes: " .. lanes)
  assert(check_results(plan, 20) == want)
  local in_place = 0
  for _, step in ipairs(plan.steps) do
    for _, lane in ipairs(step) do
      for _, each in ipairs(lane) do
        if #step > 1 then
          assert(#each.group.ranges == 0 and not each.group.alias)
          in_place = in_place + (pair_of(plan)(each.group) and 1 or 0)
        end
      end
    end
  end
  counts[threads] = in_place
end
assert(counts[1] == 0 and counts[2] > 0, "sums in the place of what they add to")

-- What writes over a value comes behind all that read it, in their lane.
for _, threads in ipairs {1, 2, 3, 8} do
  local plan, lanes = open(overwritten(), threads)
  local pairs_taken = {}
  for _, each in ipairs(plan.calls) do
    local pair = pair_of(plan)(each.group)
    pairs_taken[#pairs_taken + 1] = pair and each.group.inputs[pair.input] .. ">" .. each.group.outputs[pair.output]
  end
  assert(table.concat(pairs_taken, " "):find "a>q" and (threads == 1 or lanes > 1), table.concat(pairs_taken, " "))
  check_results(plan, 5)
end

-- Memory that would grow too much: one after another.
do
  local more, bytes = side_by_side.MORE, side_by_side.MORE_BYTES
  side_by_side.MORE, side_by_side.MORE_BYTES = 0, -1
  local plan = open(net, 2)
  assert(plan:count_beside() == 0)
  side_by_side.MORE, side_by_side.MORE_BYTES = more, bytes
end

-- ---- Libraries ----

local plan = open(net, 3)
check_results(plan, 1)
put("x", plan.arrays.x:bytes())
put("i", plan.arrays.i:bytes())
put("y", plan.arrays.y:bytes())
put("s", plan.arrays["s3_2"]:bytes())
plan:export(folder .. "/libside.so")
local header = get "side.h"
assert(tonumber(header:match "side_WORKSPACE (%d+)u") >= plan.arena_bytes + 64)
run("cc -O1 -o %s/shared -I%s %s/lua/networks/side_by_side.c -L%s -lside -lpthread", folder, folder, here, folder)
run("LD_LIBRARY_PATH=%s %s/shared %s", folder, folder, folder)
plan:export(folder .. "/side.a")
run("cc -O1 -DNO_FORK -o %s/archive -I%s %s/lua/networks/side_by_side.c %s/side.a -lgomp -lm -lpthread", folder, folder,
    here, folder)
run("OMP_NUM_THREADS=2 %s/archive %s && OMP_THREAD_LIMIT=1 %s/archive %s", folder, folder, folder, folder)
plan:export(folder .. "/side.c")
for _, flags in ipairs {"", "-fopenmp"} do
  run("cc -O1 -w -march=native -ffp-contract=off -DNO_FORK -DNEAR %s -o %s/source -I%s %s/lua/networks/side_by_side.c \z
       %s/side.c -lm -lpthread", flags, folder, folder, here, folder)
  run("%s/source %s", folder, folder)
end
assert(select(2, get("side.c"):gsub("static int step_%d+_lane_%d+", "")) >= 3)

for name, value in pairs(kept) do side_by_side[name] = value end
store:close()
run("rm -rf %s", folder)
print "calls of networks run side by side"
