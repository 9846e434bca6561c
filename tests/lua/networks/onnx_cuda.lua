-- Networks on a GPU, on the tests' own driver: what a plan gives as one graph is what it gives on the host; as a
-- library too, from two threads and on data that stays there; what cannot be is refused by name.
-- usage: msched onnx_cuda.lua [FLAG]: a compiler's option, for what loads the driver
local ms = msched
local flag = ... or ""
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
dofile(here .. "/support/lua/few_proposals.lua")
local onnx = dofile(here .. "/support/lua/onnx.lua")
local TARGET = "cuda -arch=sm_90"
if not os.execute "g++ --version >/dev/null 2>&1" then
  print "onnx_cuda: skipped: there is no g++"
  os.exit(77)
end
local own = dofile(here .. "/support/lua/folder.lua")
local folder, run, put, get = own.path, own.run, own.put, own.get
local function refused(message, f, ...)
  local ok, said = pcall(f, ...)
  said = type(said) == "table" and said.message or tostring(said)
  assert(not ok and said:find(message, 1, true), said)
end
run("ln -s %s %s/libcuda.so.1", os.getenv "MSCHED_LIBCUDA", folder)

local weights = onnx.weights
-- Windows, a product, rows that an input chooses; an output that is another's elements, one that is an input, and one
-- that is a constant.
put("model.onnx", onnx.model {
  opset = 17, inputs = {{"x", "float32", {1, 3, 6, 6}}, {"i", "int64", {2}}},
  outputs = {{"y"}, {"rows"}, {"same"}, {"given"}, {"fixed"}},
  constants = {w = weights({4, 3, 3, 3}, 1), v = weights({36, 8}, 2), table = weights({5, 4}, 3),
               s = {"int64", {2}, {1, 36}}, half = {"float32", {1}, {0.5}}},
  nodes = {{"Conv", {"x", "w"}, {"c"}, {pads = {1, 1, 1, 1}}}, {"Relu", {"c"}, {"r"}},
           {"MaxPool", {"r"}, {"p"}, {kernel_shape = {2, 2}, strides = {2, 2}}}, {"Reshape", {"p", "s"}, {"same"}},
           {"MatMul", {"same", "v"}, {"m"}}, {"Tanh", {"m"}, {"y"}}, {"Gather", {"table", "i"}, {"rows"}},
           {"Identity", {"x"}, {"given"}}, {"Identity", {"half"}, {"fixed"}}}})
local net = ms.onnx(folder .. "/model.onnx")
local inputs = {x = ms.array({1, 3, 6, 6}):random(7, true), i = ms.array({2}, "int64", {4, 0})}
local there = net:plan {no_tune = true, target = TARGET, db = folder .. "/store.db"}
local want = net:plan({written = true}):run(inputs)
local bytes = {}
for name, array in pairs(want) do bytes[name] = array:bytes() end

local function same(outputs, what)
  for name, array in pairs(want) do
    local difference = outputs[name]:difference(array)
    assert(difference <= 1e-5, string.format("%s: %s differs by %g", what, name, difference))
  end
end
same(there:run(inputs), "one graph")
local compared, report = there:run(inputs, {most_work = 1000000})
same(compared, "call by call")
assert(report.compared > 0 and report.most <= 1e-5)
inputs.x:random(8, true)
want = net:plan({written = true}):run(inputs)
same(there:run(inputs), "on other data")
local seconds, runs = there:time(0.01)
assert(seconds > 0 and seconds < 1e-3 and runs >= 1, seconds) -- the driver's kernels take some 10 us
local profile, calls = there:profile(1), 0
for _, each in ipairs(profile) do calls = calls + (each.seconds > 0 and 1 or 0) end
assert(#profile == #there.calls and calls >= 3)
assert(there.sequence:bytes() >= there.constant_bytes)
inputs.i = ms.array({2}, "int64", {5, 0})
refused("index 5 of i is not in [-5, 4]", there.run, there, inputs)
inputs.i = ms.array({2}, "int64", {4, 0})

-- ---- Sequences ---------------------------------------------------------------------------------------------------

local te = ms.te
local A = te.placeholder({64}, "float32", "A")
local twice = ms.schedule(te.func("twice", {A, te.compute({64}, function(i) return A(i) * 2 end, "B")}))
twice:bind(twice:get_loops(twice:get_sblock "B"), "threadIdx.x")
local kernel, arena = ms.build(twice:func(), {target = TARGET}), ms.array({192}, "float32"):random(1)
local first, second, third = arena:view({64}, "float32", 0), arena:view({64}, "float32", 256),
  arena:view({64}, "float32", 512)
local sequence = ms.sequence {{kernel, first, second}, {second, third}, {kernel, third, second}}
sequence:send(arena)
sequence:run()
local before = first:tolist()
sequence:fetch(arena)
for i, x in ipairs(before) do
  assert(first:tolist()[i] == x and second:tolist()[i] == 4 * x and third:tolist()[i] == 2 * x)
end
assert(sequence:bytes() == 768, "views of one array are one there")
sequence:send(ms.array({3})) -- no step has it
assert(sequence:time(0.01).seconds > 0)
refused("step 2 is no table of a kernel and its arguments, or of two arrays", ms.sequence, {{kernel, first, second}, 3})
refused("step 1 has no kernel, and is no copy of one array to another", ms.sequence, {{first, second, third}})
refused("step 2 copies an array to one that is not as large", ms.sequence, {{kernel, first, second}, {first, arena}})
refused("2 arguments are expected, not 1", ms.sequence, {{kernel, first}})
refused("extent 0 is 64, not 192", ms.sequence, {{kernel, first, arena}})
refused("a sequence has no kernel", ms.sequence, {{first, second}})
refused("a sequence has from 1 to", ms.sequence, {})
refused("the limit is above 0", sequence.time, sequence, 0)
refused("kernels of the host run where their buffers are", ms.sequence,
        {{ms.build(te.func("twice", {A, te.compute({64}, function(i) return A(i) * 2 end, "B")})), first, second}})

-- ---- Candidates --------------------------------------------------------------------------------------------------

-- Two products that read one weight, as a gated recurrent cell's: the copies of both have names of their own. And one
-- that reads a number by itself, as of a zero point: that is not copied.
local function product(x, w, more)
  local k = te.reduce_axis(24, "k")
  return te.compute({16, 24}, function(i, j) return te.sum((more and x(i, k) - more() or x(i, k)) * w(k, j), k) end)
end
local X, W, zero = te.placeholder({16, 24}, "float32", "X"), te.placeholder({24, 24}, "float32", "W"),
  te.placeholder({}, "float32", "zero")
for name, func in pairs {twice = te.func("twice", {X, W, product(product(X, W), W)}),
                         less = te.func("less", {X, zero, W, product(X, W, zero)})} do
  local task = ms.load "search.tune".all({{func}}, {target = TARGET, no_tune = true, db = folder .. "/candidates.db",
                                                    listen = function() end})[1]
  assert(task.fastest, name .. ": " .. tostring(task.error or "there is no candidate"))
  local scheduled = ms.apply(func, task.fastest.trace):func()
  local text = scheduled:script()
  assert(text:find("W_shared_1", 1, true) or name == "less" and text:find("W_shared", 1, true), text)
  assert(not text:find("zero_shared", 1, true), text)
  ms.check_lowered(func, scheduled, TARGET, 1)
end

-- ---- Libraries ---------------------------------------------------------------------------------------------------

local paths = there:export(folder .. "/libnet.so")
assert(#paths == 4 and paths[2] == folder .. "/net.h" and paths[3] == folder .. "/net.weights"
       and paths[4] == folder .. "/net_network.py")
put("x", inputs.x:bytes())
bytes = {}
for name, array in pairs(there:run(inputs)) do bytes[name] = array:bytes() end
local cut = get "net.weights"
put("cut", cut:sub(1, -65))
run("%s %s -Wall -Wextra -Werror -o %s/uses -I%s %s/lua/networks/onnx_cuda.c -L%s -lnet -ldl -lpthread",
    os.getenv "CC" or "cc", flag, folder, folder, here, folder)
run("LD_LIBRARY_PATH=%s %s/uses %s >%s/said", folder, folder, folder, folder)
assert(get "said" == "opened\nthe file of constants is damaged\nno file of constants is named\nan index is out of its \z
                      range\nequal\n", get "said")
for _, output in ipairs(net.outputs) do assert(get("library." .. output.name) == bytes[output.name], output.name) end
run("mkdir %s/bare && cp %s/libnet.so %s/bare && { LD_LIBRARY_PATH=%s/bare %s/uses %s >%s/said; test $? = 1; }", folder,
    folder, folder, folder, folder, folder, folder)
assert(get "said" == "CUDA's driver is missing: libcuda.so.1 cannot be opened\n", get "said")
run("FAKE_CUDA_MEMORY=1000 LD_LIBRARY_PATH=%s %s/uses %s >%s/said; test $? = 1", folder, folder, folder, folder)
assert(get "said" == string.format("cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY; the network takes %s bytes of the device's \z
                                   memory\n", get "net.h":match "DEVICE_BYTES (%d+)u"), get "said")

-- What it asks of the driver: constants are sent once, there is one stream and one graph, and a run is that graph.
local driver = os.getenv "MSCHED_LIBCUDA"
run("mkdir %s/counted && %s %s -Wall -Wextra -Werror -fPIC -shared -o %s/counted/libcuda.so.1 \z
     %s/cuda/fake/counting.c -Wl,--no-as-needed %s -Wl,-rpath,%s -ldl", folder, os.getenv "CC" or "cc", flag, folder,
    here, driver, driver:match "^(.*)/")
run("%s %s -Wall -Wextra -Werror -o %s/calls -I%s %s/lua/networks/onnx_cuda_calls.c -L%s -lnet -ldl -lpthread",
    os.getenv "CC" or "cc", flag, folder, folder, here, folder)
local function calls(what, environment)
  run("%s LD_LIBRARY_PATH=%s/counted:%s %s/calls %s %s >%s/said", environment or "", folder, folder, folder, what,
      folder, folder)
  return get "said"
end
do
  local opened, ran = {}, {}
  for name, first, each in calls "counts":gmatch "(%S+) (%d+) (%d+)" do
    opened[name], ran[name] = math.tointeger(first), math.tointeger(each)
  end
  local kernels = #there.prepared.functions
  assert(opened.cuStreamCreate == 1 and opened.cuGraphInstantiateWithFlags == 1 and opened.cuMemAlloc_v2 == 1)
  assert(opened.cuModuleLoadData == kernels and opened.cuMemcpyHtoDAsync_v2 == 1 and opened.cuGraphLaunch == 0)
  assert(opened.bytes >= there.constant_bytes and opened.bytes < 2 * there.constant_bytes + 4096, opened.bytes)
  assert(opened.cuLaunchKernel >= 2 * kernels, "it runs once, and is captured")
  assert(ran.cuGraphLaunch == 1 and ran.cuLaunchKernel == 0 and ran.cuStreamCreate == 0 and ran.cuMemAlloc_v2 == 0)
  assert(ran.cuMemcpyHtoDAsync_v2 == 2 and ran.bytes == 3 * 6 * 6 * 4 + 2 * 8, "inputs alone are sent")
end
-- Each call that fails is named, also once a graph is there; nothing of it stays.
for _, each in ipairs {{"cuMemAlloc_v2"}, {"cuModuleLoadData"}, {"cuModuleLoadData", 2}, {"cuModuleGetFunction"},
                       {"cuStreamCreate"}, {"cuMemsetD8Async"}, {"cuMemcpyHtoDAsync_v2"}, {"cuLaunchKernel"},
                       {"cuStreamSynchronize"}, {"cuStreamBeginCapture_v2"}, {"cuLaunchKernel", 2 + #there.calls},
                       {"cuStreamEndCapture"}, {"cuGraphInstantiateWithFlags"}, {"cuDevicePrimaryCtxRetain"},
                       {"cuCtxPushCurrent_v2"}, {"cuMemcpyHtoDAsync_v2", 2, 1}, {"cuGraphLaunch", 1, 1},
                       {"cuMemcpyDtoHAsync_v2", 1, 1}, {"cuStreamSynchronize", 3, 1}} do
  local call, at, result = each[1], each[2] or 1, each[3]
  local said = calls("fails", string.format("FAIL_CALL=%s FAIL_AT=%d", call, at))
  local want = string.format("%s: %s: CUDA_ERROR_UNKNOWN\n", result or "not opened", call:gsub("_v2$", ""))
  assert(said == want, string.format("%s, the %d. time: %s", call, at, said))
end
assert(calls "closed" == "closed\n")
assert(calls("devices", "FAKE_CUDA_DEVICES='90 90'") == "two devices, ten threads\n")

-- Source, in an archive, built here without a warning.
assert(#there:export(folder .. "/net.tar") == 1)
run("mkdir %s/moved && tar -C %s/moved -xf %s/net.tar", folder, folder, folder)
run("make -s -C %s/moved/net CFLAGS='-O1 -Wall -Wextra -Werror'", folder)
run("cp %s/moved/net/net.so %s/libnet.so && LD_LIBRARY_PATH=%s %s/uses %s >%s/said", folder, folder, folder, folder,
    folder, folder)
assert(get "said":find "equal\n$", get "said")
assert(#there:export(folder .. "/net.a") == 3)
refused("ends with .so, .a, .c or .tar", there.export, there, folder .. "/net.cu")
run("rm -rf %s", folder)
