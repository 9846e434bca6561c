-- Attention of networks for GPUs, without one: which spellings, types and shapes become one kernel, on tensor cores and
-- without; three oracles judge their schedules, and no buffer in the device's memory has the size of the scores. What
-- stays in parts, and which reason is said.
-- usage: msched onnx_attention_cuda.lua RUN_KERNELS SEED
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
local onnx = dofile(here .. "/support/lua/onnx.lua")
local sources = dofile(here .. "/support/lua/kernel_sources.lua")(arg[1], math.tointeger(arg[2]))
local judge = dofile(here .. "/support/lua/oracles.lua")(sources)
local tune, plans, passes = ms.load "search.tune", ms.load "lua.net.plan", ms.load "lua.net.passes"
local jobs_of = dofile(here .. "/lua/jobs.lua")

local BITS = {float16 = {quarter = 0x3400, low = 0xfbff}, bfloat16 = {quarter = 0x3e80, low = 0xff7f},
              float32 = {quarter = 0.25, low = -3.4e38}}

-- A network of queries {1, heads, q, d}, keys {1, shared, k, d}, values {1, shared, k, v}. mask: "bias", which is
-- added; "seen", which selects; "causal", a constant that does. beside: heads end beside each other.
local function network(a)
  local t, heads, shared = a.type, a.heads or 2, a.shared or a.heads or 2
  local m = {opset = 17, nodes = {}, outputs = {{"y"}},
             inputs = {{"q", t, {1, heads, a.q, a.d}}, {"k", t, {1, shared, a.k, a.d}},
                       {"v", t, {1, shared, a.k, a.v}}},
             constants = {scale = {t, {}, {BITS[t].quarter}}, low = {t, {}, {BITS[t].low}}}}
  local function node(op, inputs, output, attributes)
    table.insert(m.nodes, {op, inputs, {output}, attributes or {}})
  end
  local function repeated(x, size)
    if shared == heads then return x end
    m.constants["apart"] = {"int64", {1}, {2}}
    m.constants[x .. " many"] = {"int64", {5}, {1, shared, heads // shared, a.k, size}}
    m.constants[x .. " all"] = {"int64", {4}, {1, heads, a.k, size}}
    node("Unsqueeze", {x, "apart"}, x .. " apart")
    node("Expand", {x .. " apart", x .. " many"}, x .. " expanded")
    node("Reshape", {x .. " expanded", x .. " all"}, x .. " repeated")
    return x .. " repeated"
  end
  node("Transpose", {repeated("k", a.d)}, "across", {perm = {0, 1, 3, 2}})
  node("MatMul", {"q", "across"}, "products")
  node("Mul", {"products", "scale"}, "scores")
  if a.mask == "bias" then
    table.insert(m.inputs, {"bias", t, {1, 1, 1, a.k}})
    node("Add", {"scores", "bias"}, "masked")
  elseif a.mask then
    if a.mask == "seen" then table.insert(m.inputs, {"seen", "bool", {1, 1, a.q, a.k}})
    else
      local sees = {}
      for at = 0, a.q * a.k - 1 do sees[at + 1] = at % a.k <= at // a.k and 1 or 0 end
      m.constants.seen = {"bool", {1, 1, a.q, a.k}, sees}
    end
    node("Where", {"seen", "scores", "low"}, "masked")
  end
  node("Softmax", {a.mask and "masked" or "scores"}, "shares", {axis = -1})
  node("MatMul", {"shares", repeated("v", a.v)}, a.beside and "sums" or "y")
  if a.beside then
    m.constants.beside = {"int64", {3}, {1, a.q, heads * a.v}}
    node("Transpose", {"sums"}, "turned", {perm = {0, 2, 1, 3}})
    node("Reshape", {"turned", "beside"}, "y")
  end
  return onnx.read(m)
end

-- The function that attention became, and what the pass said.
local function fused_function(net, target)
  local said
  local prepared = plans.prepare(net, {target = target, after = function(name, _, notes)
    if name == "attention" then said = notes end
  end})
  for _, entry in ipairs(prepared.functions) do
    if entry.name:find "^attention" then return entry.func, prepared end
  end
  return nil, table.concat(said or {}, "\n")
end

-- Fused schedules of a function, one of each sketch, up to so many.
local function schedules(func, target, most)
  local opened = tune.open(func, ms.target(target), {})
  local pool = ms.pool(func, {jobs = 1, target = target})
  local made, _, script_error = pool:replay(jobs_of(opened, 2 * #opened.sketches, math.tointeger(arg[2])), false)
  pool:close()
  assert(not script_error, script_error)
  local list, seen = {}, {}
  for _, c in ipairs(made) do
    local tile = c and c.trace:json():match '"FuseOnlineSoftmax",%b[]'
    assert(not c or tile, "a schedule of attention is not fused")
    if tile and not seen[tile] and #list < most then
      list[#list + 1], seen[tile] = ms.apply(func, c.trace):func(), true
    end
  end
  return list
end

local compiled = 0
local function holds(arch, most, a)
  local target = "cuda -arch=" .. arch
  local func, prepared = fused_function(network(a), target)
  local what = string.format("%s, %s %dx%dx%dx%d", arch, a.type, a.q, a.k, a.d, a.v)
  assert(func, what .. ": " .. tostring(prepared))
  assert(prepared.net:operators().Softmax == 1)
  assert(passes.run(prepared.net, {target = target}):operators().Softmax == nil, what)
  local list = schedules(func, target, most)
  assert(#list == most, string.format("%s: %d schedules", what, #list))
  for i, resources in ipairs(judge(func, list, target, 1)) do
    assert(#resources == 1, what .. ": it is several kernels")
    if resources[1].spill_stores then -- by NVRTC
      compiled = compiled + 1
      assert(resources[1].spill_stores + resources[1].spill_loads == 0, what .. ": it spills")
    end
  end
end

holds("sm_80", 2, {type = "float16", q = 32, k = 64, d = 32, v = 32, mask = "bias", beside = true})
holds("sm_80", 1, {type = "bfloat16", q = 16, k = 32, d = 64, v = 48, mask = "seen"})
holds("sm_80", 1, {type = "float16", q = 16, k = 16, d = 128, v = 128, heads = 4, shared = 2})
holds("sm_80", 1, {type = "float16", q = 1, k = 75, d = 64, v = 64, heads = 4, shared = 2, mask = "seen"})
holds("sm_80", 1, {type = "bfloat16", q = 20, k = 75, d = 32, v = 32, mask = "bias", beside = true})
holds("sm_90a", 1, {type = "bfloat16", q = 64, k = 64, d = 64, v = 64, mask = "causal", heads = 2, shared = 1})
-- Of float32 a device that has few multiprocessors is busy with a small one.
holds("sm_87", 2, {type = "float32", q = 256, k = 32, d = 32, v = 32, mask = "bias", beside = true})
holds("sm_87", 1, {type = "float32", q = 128, k = 64, d = 16, v = 24, heads = 4, shared = 2, mask = "causal"})
holds("sm_87", 1, {type = "float16", q = 128, k = 32, d = 24, v = 40, mask = "seen", heads = 4})

local function stays(want, arch, a)
  local func, said = fused_function(network(a), "cuda -arch=" .. arch)
  assert(not func and said:find("y stays in parts: " .. want, 1, true), tostring(said))
end
stays("it has 128 rows, too few for cuda -arch=sm_80 without tensor cores", "sm_80",
      {type = "float32", q = 64, k = 64, d = 32, v = 32})
stays("no rule for cuda -arch=sm_90a makes one kernel of bfloat16, 64 queries by 64 keys of 320 and 320 elements",
      "sm_90a", {type = "bfloat16", q = 64, k = 64, d = 320, v = 320})
stays("no rule for cuda -arch=sm_75 makes one kernel of float16, 1 queries by 64 keys of 64 and 64 elements",
      "sm_75", {type = "float16", q = 1, k = 64, d = 64, v = 64})
print(sources.missing and "onnx_attention_cuda: NVRTC skipped: " .. sources.missing
      or string.format("onnx_attention_cuda: ok, %d compiled by NVRTC", compiled))
