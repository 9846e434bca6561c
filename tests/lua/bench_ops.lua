-- Vendors' routines compute what the named operators do, each element: every operator that bench_work.lua knows, on shapes
-- in which strides, pads, dilations, groups and extents all differ. What is not installed is skipped, by name.
-- usage: msched bench_ops.lua [PATH of a oneDNN]
local ms = msched
local named, work = ms.load "lua.ops.named", ms.load "lua.bench_work"

local function refuses(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "not refused: " .. pattern)
  assert(tostring(message):find(pattern, 1, true), tostring(message))
end

local CASES = {
  {"conv1d", "2 20 6 10 3 2 1"}, {"conv1d", "1 19 4 8 5 1 2 2"}, {"conv1d", "2 16 8 12 3 1 1 1 4"},
  {"conv2d", "2 9 11 5 7 3x2 2x1 1x0"}, {"conv2d", "1 12 10 8 12 3 1 2 2"}, {"conv2d", "2 8 9 12 8 3 2 1 1 4"},
  {"conv3d", "1 5 6 7 4 6 3x2x1 1x2x1 1x1x0"}, {"depthwise_conv2d", "2 9 8 10 3 2 1"}, {"depthwise_conv2d", "1 10 12 6 3x2 1 2x1 2x1"},
  {"conv2d_transpose", "2 4 5 6 8 4 2 1"}, {"conv2d_transpose", "1 5 4 3 6 3x4 2x3 1x0 1x2"}, {"conv2d_capsule", "2 6 7 5 6 3 2 1"},
  {"matmul", "17 33 29"}, {"batch_matmul", "3 17 33 29"}, {"batch_matmul", "1 17 33 29"}, {"dense", "5 12 20"},
  {"softmax", "7x33"}, {"softmax", "2x5x16"}, {"norm", "3x8x9"}, {"norm", "4x30 axes=2"},
}

-- How far each vendor is from the unscheduled function; gives which had a routine.
local function compare(operator, line, vendors)
  local words, had = {}, {}
  for word in line:gmatch "%S+" do words[#words + 1] = word end
  local func = named.func(operator, words)
  local arrays = ms.arrays_for(func, 1)
  ms.build(func):run(table.unpack(arrays))
  local result = arrays[#arrays]
  local w = assert(work.of(operator, named.values(operator, words), arrays), operator)
  for _, v in ipairs(vendors) do
    local other = ms.array(result:shape(), "float32", -77)
    local call = v:prepare(work.into(w, other))
    if call then
      call:run()
      local difference = result:difference(other)
      assert(difference <= 1e-5, string.format("%s of %s -- %s differs by %g", v:name(), operator, line, difference))
      had[v:name()] = true
    end
  end
  return had
end

local vendors = ms.vendors(2, arg and arg[1])
local installed, used = {}, {}
for _, v in ipairs(vendors) do installed[v:name()] = true end
for _, case in ipairs(CASES) do
  local had = compare(case[1], case[2], vendors)
  for name in pairs(had) do used[name] = (used[name] or 0) + 1 end
  if installed.oneDNN then assert(had.oneDNN, "oneDNN has no routine for " .. case[1]) end
end
for name, most in pairs {OpenBLAS = 5, oneDNN = #CASES, ["oneDNN plain"] = #CASES - 4} do
  if installed[name] then assert(used[name] == most, name .. ": " .. tostring(used[name])) else print(name .. ": skipped, it is not installed") end
end

-- What no vendor's routine is known for.
local some = ms.array {2, 3}
assert(not work.of("relu", {dtype = "float32"}, {some, some}))
assert(not work.of("matmul", {dtype = "float16"}, {some, some, some}))
assert(not work.of("conv2d", {dtype = "float32", layout = "NCHW"}, {some, some, some}))

-- Calls, and what is wrong with them.
local k = ms.build(named.func("matmul", {8, 8, 8}))
local A, B, C = ms.array({8, 8}, "float32", 1), ms.array({8, 8}, "float32", 2), ms.array {8, 8}
local call = k:prepare(A, B, C)
A, B = nil, nil
collectgarbage()
call:run()
assert(C[{7, 7}] == 16)
local times = ms.time_in_turn({call, call}, 0.01)
assert(#times == 2 and times[1].seconds > 0 and times[2].low <= times[2].high and times[1].runs > 0)
refuses("from 1 to", ms.time_in_turn, {}, 1)
refuses("msched.call expected", ms.time_in_turn, {C}, 1)
refuses("arguments are expected", k.prepare, k, C)
refuses("no library of oneDNN", ms.vendors, 1, "/nonexistent/libdnnl.so")
local v = vendors[1]
if v then
  local dense = {extents = {8, 8}, strides = {8, 1}, array = C}
  refuses("that holds these extents", v.prepare, v, {op = "product", source = {extents = {9, 8}, strides = {8, 1}, array = C}, weights = dense, result = dense})
  refuses("as many strides", v.prepare, v, {op = "product", source = {extents = {8, 8}, strides = {8}, array = C}, weights = dense, result = dense})
  refuses("weights and a result", v.prepare, v, {op = "product", source = dense, result = dense})
  refuses("invalid option", v.prepare, v, {op = "fly"})
end

-- Beside a function, however it was made: the fastest routine for what it computes.
local beside = ms.load "lua.beside".vendors()
local native = ms.target "native"
if v then
  local te = ms.te
  local X, Y = te.placeholder({17, 29}, "float32", "left"), te.placeholder({29, 33}, "float32", "right")
  local k29 = te.reduce_axis(29, "k")
  local product = te.func("mine", {X, Y, te.compute({17, 33}, function(i, j) return te.sum(X[{i, k29}] * Y[{k29, j}], k29) end, "mine")})
  for _, func in ipairs {product, named.func("dense", {5, 12, 20}), named.func("batch_matmul", {3, 17, 33, 29}), named.func("softmax", {"7x33"})} do
    local best = beside(func, native)
    assert(best and best.seconds > 0 and #best.name > 0, func:name())
  end
  assert(not beside(te.func("other", {X, te.compute({17, 29}, function(i, j) return X[{i, j}] + 1 end, "more")}), native), "no routine")
  assert(not beside(product, ms.target "cuda -arch=sm_80"), "none on a device")
end
