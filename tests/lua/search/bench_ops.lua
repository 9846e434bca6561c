-- Vendors' routines compute what the named operators do, each element: every operator that lua/bench/work.lua knows, on
-- shapes in which strides, pads, dilations, groups and extents all differ. What is not installed is skipped, by name.
-- usage: msched bench_ops.lua [PATH of a oneDNN]
local ms = msched
local named, work = ms.load "lua.lib.ops.named", ms.load "lua.bench.work"
local support = dofile(arg[0]:match "^.*/" .. "../../support/lua/vendors.lua")

local function refuses(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "not refused: " .. pattern)
  assert(tostring(message):find(pattern, 1, true), tostring(message))
end

local vendors = ms.vendors(2, arg and arg[1])
local CASES = table.move(support.others, 1, #support.others, #support.products + 1,
                         table.move(support.products, 1, #support.products, 1, {}))
local installed, used = {}, {}
for _, v in ipairs(vendors) do installed[v:name()] = true end
for _, case in ipairs(CASES) do
  for _, v in ipairs(vendors) do
    local had = support.compare(v, case[1], case[2])
    if had then used[v:name()] = (used[v:name()] or 0) + 1 end
    assert(had or v:name() ~= "oneDNN", "oneDNN has no routine for " .. case[1])
  end
end
for name, most in pairs {OpenBLAS = 6, oneDNN = #CASES, ["oneDNN plain"] = #CASES - 4} do
  if installed[name] then
    assert(used[name] == most, name .. ": " .. tostring(used[name]))
  else
    print(name .. ": skipped, it is not installed")
  end
end

-- Attention, which oneDNN's graph interface has, that of older versions in parts.
local attention = {"2 3 5 7 16", "1 2 6 6 8 causal=true", "1 2 4 4 32 dtype=bfloat16"}
for _, v in ipairs(vendors) do
  for _, line in ipairs(attention) do
    local had = support.compare(v, "attention", line, line:match "bfloat16")
    local may = line:find "bfloat16" or tostring(v):find " 3%.[0-5]%."
    assert(had == (v:name() == "oneDNN graph") or not had and may, v:name() .. " and attention " .. line)
  end
end
if not installed["oneDNN graph"] then print "oneDNN graph: skipped, it is not installed" end

-- What no vendor's routine is known for.
local some = ms.array {2, 3}
assert(not work.of("relu", {dtype = "float32"}, {some, some}))
assert(not work.of("matmul", {dtype = "float16", accumulate = "float16"}, {some, some, some}))
assert(not work.of("matmul", {dtype = "int8", weight_dtype = "auto", accumulate = "float32"}, {some, some, some}))
assert(not work.of("matmul", {dtype = "int8", weight_dtype = "bfloat16", accumulate = "auto"}, {some, some, some}))
assert(not work.of("matmul", {dtype = "float32", weight_dtype = "int8", accumulate = "auto"}, {some, some, some}))
assert(not work.of("matmul", {dtype = "int16", weight_dtype = "auto", accumulate = "auto"}, {some, some, some}))
assert(not work.of("conv2d", {dtype = "float16", accumulate = "float16"}, {some, some, some}))
assert(not work.of("softmax", {dtype = "float16", axis = -1, shape = {2, 3}}, {some, some}))

-- Short types: of oneDNN's, those that its version and the machine have.
for _, list in ipairs {support.short_products, support.short_others, support.bytes} do
  for _, case in ipairs(list) do
    for _, v in ipairs(vendors) do
      local had = support.compare(v, case[1], case[2], list == support.bytes and "int32" or nil)
      assert(not (had and v:name() == "OpenBLAS"), "OpenBLAS takes short types")
      assert(had or v:name() ~= "oneDNN" or list ~= support.bytes or not case.everywhere,
             "oneDNN has no routine for " .. case[2])
    end
  end
end
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

-- Of several the next each time, and the first again: each product is there once its call was run.
local results, products = {}, {}
for i = 1, 3 do
  results[i] = ms.array {8, 8}
  products[i] = k:prepare(ms.array({8, 8}, "float32", i), ms.array({8, 8}, "float32", 1), results[i])
end
local all = ms.alternating(products)
products[3] = nil
collectgarbage()
all:run()
all:run()
assert(results[1][{0, 0}] == 8 and results[2][{3, 4}] == 16 and results[3][{7, 7}] == 0)
assert(ms.time_in_turn({all, call}, 0.01)[1].seconds > 0 and results[3][{7, 7}] == 24)
results[1][{0, 0}], results[2][{0, 0}] = 0, 0
for _ = 1, 3 do all:run() end
assert(results[1][{0, 0}] == 8 and results[2][{0, 0}] == 16)
refuses("at least one call", ms.alternating, {})
refuses("number 2 is no call of one kernel", ms.alternating, {call, C})
refuses("number 1 is no call of one kernel", ms.alternating, {ms.in_order {call}})

refuses("from 1 to", ms.time_in_turn, {}, 1)
refuses("number 1 is no call", ms.time_in_turn, {C}, 1)
refuses("arguments are expected", k.prepare, k, C)
refuses("no library of oneDNN", ms.vendors, 1, "/nonexistent/libdnnl.so")
local v = vendors[1]
if v then
  local dense = {extents = {8, 8}, strides = {8, 1}, array = C}
  refuses("that holds these extents", v.prepare, v,
          {op = "product", source = {extents = {9, 8}, strides = {8, 1}, array = C}, weights = dense, result = dense})
  refuses("as many strides", v.prepare, v,
          {op = "product", source = {extents = {8, 8}, strides = {8}, array = C}, weights = dense, result = dense})
  refuses("weights and a result", v.prepare, v, {op = "product", source = dense, result = dense})
  refuses("invalid option", v.prepare, v, {op = "fly"})
end

-- Beside a function, however it was made: the fastest routine for what it computes.
local beside = ms.load "lua.vendor.baseline".vendors()
local native = ms.target "native"
if v then
  local te = ms.te
  local X, Y = te.placeholder({17, 29}, "float32", "left"), te.placeholder({29, 33}, "float32", "right")
  local k29 = te.reduce_axis(29, "k")
  local product =
    te.func("mine",
            {X, Y, te.compute({17, 33}, function(i, j) return te.sum(X[{i, k29}] * Y[{k29, j}], k29) end, "mine")})
  for _, func in ipairs {product, named.func("dense", {5, 12, 20}), named.func("batch_matmul", {3, 17, 33, 29}),
                         named.func("softmax", {"7x33"})} do
    local best = beside(func, native)
    assert(best and best.seconds > 0 and #best.name > 0, func:name())
  end
  assert(not beside(te.func("other", {X, te.compute({17, 29}, function(i, j) return X[{i, j}] + 1 end, "more")}),
                    native), "no routine")
end
