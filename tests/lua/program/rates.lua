-- Rates and limits: what is counted, what bounds a function where all was measured (given here), and the words for it.
-- usage: msched rates.lua
local ms = require "msched"
local te = ms.te
local rates, limits = ms.load "lua.cli.rates", ms.load "lua.bench.limits"

local function same(a, b, what)
  assert(math.abs(a - b) <= 1e-9 * math.abs(b), string.format("%s: %g, not %g", what, a, b))
end

-- ---- Counting ------------------------------------------------------------------------------------------------------

local function counted(func, operations, read, written)
  local w, name = func:work(), func:name()
  for kind, count in pairs(operations) do same(w.operations[kind] or 0, count, name .. ": " .. kind) end
  for kind, count in pairs(w.operations) do
    assert(operations[kind], string.format("%s: %g of %s", name, count, kind))
  end
  same(w.read_bytes, read, name .. ": read")
  same(w.written_bytes, written, name .. ": written")
end

local function product(of, sum, n, name)
  local A, B, k = te.placeholder({n, n}, of, "A"), te.placeholder({n, n}, of, "B"), te.reduce_axis(n, "k")
  local function wide(x) return of == sum and x or te.cast(x, sum) end
  return te.func(name or "product", {A, B,
                 te.compute({n, n}, function(i, j) return te.sum(wide(A[{i, k}]) * wide(B[{k, j}]), k) end, "C")})
end
local N = 32
for of, size in pairs {float64 = 8, float32 = 4, int64 = 8, int32 = 4, int16 = 2} do
  counted(product(of, of, N), {[of] = 2 * N ^ 3}, 2 * N * N * size, N * N * size)
end
counted(product("int8", "int32", N), {["int8 products"] = 2 * N ^ 3}, 2 * N * N, 4 * N * N)
counted(product("uint8", "int32", N), {["int8 products"] = 2 * N ^ 3}, 2 * N * N, 4 * N * N)
counted(product("int8", "int16", N), {int16 = 2 * N ^ 3}, 2 * N * N, 2 * N * N)
counted(product("float16", "float32", N), {["float16 products"] = 2 * N ^ 3}, 4 * N * N, 4 * N * N)
counted(product("float16", "float16", N), {["float16 products in float16"] = 2 * N ^ 3}, 4 * N * N, 2 * N * N)
counted(product("bfloat16", "float32", N), {["bfloat16 products"] = 2 * N ^ 3}, 4 * N * N, 4 * N * N)

local function of_one(type, count, body, name)
  local X = te.placeholder({count}, type, "X")
  return te.func(name or "of_one", {X, te.compute({count}, function(i) return body(X, i) end, "Y")})
end
counted(of_one("float32", 100, function(X, i) return te.exp(X[{i}]) / (X[{i}] + te.const(1, "float32")) end),
        {float32 = 300}, 400, 400)
counted(of_one("int8", 100, function(X, i) return te.max(X[{i}], te.const(0, "int8")) end), {int8 = 100}, 100, 100)
counted(of_one("float32", 100, function(X, i) return te.cast(X[{i}], "int32") end), {}, 400, 400)
-- Comparisons of what is loaded count; of indices, and choices, not.
counted(of_one("float32", 100, function(X, i)
  return te.if_then_else(te.lt(i * 2 + 1, 50), te.select(te.gt(X[{i}], te.const(0, "float32")), X[{i}],
                                                         te.const(0, "float32")), te.const(1, "float32"))
end), {float32 = 100}, 400, 400)
-- A square is no product of two tensors.
do
  local X, k = te.placeholder({8, 64}, "float16", "X"), te.reduce_axis(64, "k")
  local function wide(i) return te.cast(X[{i, k}], "float32") end
  counted(te.func("squares", {X, te.compute({8}, function(i) return te.sum(wide(i) * wide(i), k) end, "S")}),
          {float32 = 2 * 8 * 64}, 2 * 8 * 64, 4 * 8)
end
-- Bytes are of what is touched: of a stencil each element once, of a table the rows that are looked up, of a slice the
-- slice.
do
  local X = te.placeholder({66, 66}, "float32", "X")
  local Y = te.compute({64, 64}, function(i, j)
    return X[{i, j + 1}] + X[{i + 2, j + 1}] + X[{i + 1, j}] + X[{i + 1, j + 2}]
  end, "Y")
  counted(te.func("stencil", {X, Y}),
          {float32 = 3 * 64 * 64}, 4 * 4 * 64 * 64 > 4 * 66 * 66 and 4 * 66 * 66, 4 * 64 * 64)
  local T, I = te.placeholder({10000, 16}, "float32", "T"), te.placeholder({8}, "int32", "I")
  local w = te.func("table", {T, I, ms.ops.gather(T, I, 1)}):work()
  assert(w.read_bytes == 4 * 8 * 16 + 4 * 8 and w.written_bytes == 4 * 8 * 16, w.read_bytes)
  local S = te.placeholder({1000, 1000}, "float32", "S")
  counted(te.func("slice", {S, te.compute({10, 1000}, function(i, j) return S[{i + 5, j}] end, "P")}), {},
          4 * 10 * 1000, 4 * 10 * 1000)
end
-- What a function writes before it reads it need not come from memory; what it updates, must.
local updated = ms.from_script [[
@T.prim_func(s_tir=True)
def update(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.sblock("update"):
            vi = T.axis.spatial(64, i)
            T.reads(A[vi], B[vi])
            T.writes(B[vi])
            B[vi] = B[vi] + A[vi]
]]
counted(updated, {float32 = 64}, 2 * 4 * 64, 4 * 64)
assert(product("float32", "float32", N):flops() == 2 * N ^ 3 and product("int8", "int32", N):integer_ops() == 2 * N ^ 3)
do -- loads of each parameter, as they stand in statements, indices among them
  local te = ms.te
  local X, P = te.placeholder({8}, "float32", "X"), te.placeholder({8}, "int32", "P")
  local Y = te.compute({8}, function(i)
    return X[{i}] * X[{i}] + X[{te.minimum(te.maximum(P[{i}], 0), 7)}]
  end, "Y")
  local counts = te.func("loads", {X, P, Y}):loads()
  assert(#counts == 3 and counts[1] == 3 and counts[2] == 1 and counts[3] == 0)
end

-- ---- Words ---------------------------------------------------------------------------------------------------------

local work = rates.work_of(product("float32", "float32", 100))
assert(work.unit == "GFLOP/s" and work.operations == 2e6 and work.bytes == 12e4)
assert(rates.text(work, 1e-3) == "2.0 GFLOP/s 0.1 GB/s" and rates.text(work, 0) == "", rates.text(work, 1e-3))
assert(rates.work_of(product("int8", "int32", N)).unit == "GOP/s")
-- What a function has most of: a product of bytes that is scaled is of integers.
do
  local A, B, s, k = te.placeholder({16, 64}, "int8", "A"), te.placeholder({16, 64}, "int8", "B"),
    te.placeholder({16}, "float32", "s"), te.reduce_axis(64, "k")
  local D =
    te.compute({16, 16}, function(i, j) return te.sum(te.cast(A[{i, k}], "int32") * te.cast(B[{j, k}], "int32"), k) end,
               "D")
  local scaled = rates.work_of(te.func("scaled", {A, B, s, te.compute({16, 16},
                                                  function(i, j) return te.cast(D[{i, j}], "float32") * s[j] end,
                                                  "Y")}))
  assert(scaled.unit == "GOP/s" and scaled.operations == 2 * 16 * 16 * 64)
end
local moved = rates.work_of(of_one("float32", 1000, function(X, i) return X[{i}] end))
assert(rates.text(moved, 1e-6) == "8.0 GB/s" and rates.operations_text(moved, 1e-6) == "", rates.text(moved, 1e-6))
assert(rates.text(rates.work_of(nil), 1) == "")
assert(rates.share_text({name = "memory", seconds = 1}, 2) == "50 % of memory" and rates.share_text(nil, 2) == nil)
assert(rates.share({name = "memory", seconds = 3}, 2) == 1 and rates.share({name = "memory", seconds = 0}, 2) == nil
       and rates.share({name = "x", seconds = 1 / 0}, 2) == nil)
assert(rates.limit_text(work, {name = "memory", of = "bytes", seconds = 1e-6}) == "120 GB/s of memory")
assert(rates.limit_text(work, {name = "float32 vectors", of = "operations", seconds = 1e-5})
       == "200 GFLOP/s of float32 vectors")
assert(rates.bandwidth_text({of = "operations"}, 100, 31, 1) == "31 % of the bandwidth"
       and rates.bandwidth_text({of = "operations"}, 100, 9, 1) == nil)
assert(rates.bandwidth_text({of = "bytes"}, 100, 31, 1) == nil and rates.bandwidth_text(nil, 100, 31, 1) == nil
       and rates.bandwidth_text({of = "operations"}, nil, 31, 1) == nil)
local bytes = {operations = 6e9, unit = "GOP/s", bytes = 1}
local unit = {seconds = 1e-3, name = "AMX", unit = {name = "AMX", seconds = 1e-3}}
local function unused(seconds, used) return rates.unused_text(bytes, unit, seconds, function() return used end) end
assert(unused(0.09375, false) == "AMX unused: 64.0 of 6,000 GOP/s", unused(0.09375, false))
assert(unused(0.09375, true) == nil and unused(1.5e-3, false) == nil
       and rates.unused_text(bytes, {seconds = 1e-3, name = "memory"}, 1, error) == nil)

-- A kernel that was not measured: of the units that multiply what its function does, it uses none, or one.
do
  local own, other = ms.target "native", ms.target "llvm -mtriple=aarch64-linux-gnu"
  local I, J = te.placeholder({64, 64}, "bfloat16", "I"), te.placeholder({64, 64}, "bfloat16", "J")
  local k = te.reduce_axis(64, "k")
  local K = te.compute({64, 64}, function(i, j)
    return te.sum(te.cast(I[{i, k}], "float32") * te.cast(J[{k, j}], "float32"), k)
  end, "K")
  local func = te.func("short", {I, J, K})
  local name
  for _, u in ipairs(ms.units(own.text)) do
    if u.products == "bfloat16 products" and u.unit > 0 then name = u.name end
  end
  local plain = {trace = ms.schedule(func).trace}
  local said = limits.unused_unmeasured {func = func, target = own, fastest = plain}
  assert(said == (name and name .. " unused"), tostring(said))
  assert(limits.unused_unmeasured {func = func, target = other, fastest = plain} == nil,
         "no unit of another machine's is known")
  assert(limits.unused_unmeasured {func = of_one("float32", 64, function(X, i) return X[{i}] end), target = own,
                                   fastest = plain} == nil)
  local uses = rates.uses
  rates.uses = function() return true end
  assert(limits.unused_unmeasured {func = func, target = own, fastest = plain} == nil, "a unit that is used")
  rates.uses = uses
end

-- ---- Limits, of a machine whose rates are given ---------------------------------------------------------------------

local target = ms.target "native"
local function measured(known)
  local l = limits.open()
  l.known = setmetatable({}, {__index = function(_, key)
    local what = key:sub(#target.text + 3)
    return known[what:match "^memory" or what:match "^unit" or what] or error("not given: " .. key)
  end})
  return l
end
local l = measured {float32 = 1e12, float64 = 5e11, int32 = 1e12, unit = 4e12, memory = 1e11}
local near = l:of(product("float32", "float32", 64), target)
assert(near.name == "float32 vectors" and near.of == "operations" and near.unit == nil)
same(near.seconds, 2 * 64 ^ 3 / 1e12, "computing")
local far = l:of(of_one("float32", 1 << 20, function(X, i) return X[{i}] + te.const(1, "float32") end), target)
assert(far.of == "bytes" and far.unit == nil)
same(far.seconds, 8 * 2 ^ 20 / 1e11, "moving")
-- Bandwidth is that of as many bytes, within bounds.
local function size_of(count)
  local moved = l:of(of_one("float32", count, function(X, i) return X[{i}] end), target)
  return math.tointeger(moved.memory.source.key:match "^memory of (%d+)$")
end
local far_away = math.min(math.max(1 << 26, 4 * target.l3_bytes), 1 << 30)
for count, size in pairs {[10] = 1 << 13, [1 << 28] = far_away, [1 << 17] = 1 << 20} do
  assert(size_of(count) == size, size)
end
-- Of nearly as many, which others share: 800,000 and 1,000,000 bytes.
assert(size_of(100000) >= 800000 and size_of(100000) <= 1 << 20 and size_of(125000) >= 1000000)
assert(size_of(125000) == size_of(110000))
same(far.arithmetic.seconds, 2 ^ 20 / 1e12, "what it computes")
local eights = l:of(product("int8", "int32", 256), target)
same(eights.seconds, 2 * 256 ^ 3 / (#ms.units(target.text) > 0 and 4e12 or 1e12), "products of bytes")
local halves = l:of(product("float16", "float32", 256), target)
assert(halves.name == "float32 vectors", halves.name)
assert(l:of(ms.from_script [[
@T.prim_func(s_tir=True)
def symbolic(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.sblock("B"):
            vi = T.axis.spatial(n, i)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi]
]], target) == nil, "of extents that are no constants nothing is known")
assert(l:of(product("float32", "float32", 64), ms.target "llvm -mtriple=aarch64-linux-gnu") == nil,
       "nor of a machine that is not here")

-- ---- A GPU: what is measured of float32 and of tensor cores, and types beside float32 by the architecture's table ---

do
  local units, peak = ms.load "lua.bench.device_units", ms.load "lua.bench.peak"
  -- Published peaks, in TFLOP/s and TOP/s of CUDA cores: V100, T4, A100, A40, L40, H100 SXM.
  for _, d in ipairs {
    {70, 15.7, float64 = 7.8, float16 = 31.4}, {75, 8.1, float16 = 16.2, float64 = 0.25},
    {80, 19.5, float64 = 9.7, float16 = 78, bfloat16 = 39, int32 = 19.5},
    {86, 37.4, float16 = 37.4, float64 = 0.58, int32 = 18.7},
    {89, 90.5, float16 = 90.5, bfloat16 = 90.5, float64 = 1.4},
    {90, 67, float64 = 34, float16 = 134, bfloat16 = 134, int32 = 33.5},
  } do
    for kind, published in pairs(d) do
      local ratio = type(kind) == "string" and units.ratio(d[1], kind)
      assert(not ratio or math.abs(ratio * d[2] / published - 1) < 0.03,
             string.format("sm_%d, %s: %s", d[1], kind, ratio))
    end
  end
  -- Of every architecture all kinds are known, none is past what a register of as many holds, and newer ones are as the
  -- newest.
  local kinds = {"float64", "float32", "float16", "bfloat16", "float16 products", "float16 products in float16",
                 "bfloat16 products", "int8 products", "int64", "int32", "int16", "int8"}
  for _, arch in ipairs {70, 72, 75, 80, 86, 87, 89, 90, 120} do
    for _, kind in ipairs(kinds) do
      local ratio, in_type = units.ratio(arch, kind)
      assert(ratio > 0 and ratio <= 4 and in_type, arch .. ": " .. kind)
    end
    assert(units.ratio(arch, "float32") == 1 and units.ratio(arch, "int64") * 2 == units.ratio(arch, "int32"))
    assert(units.ratio(arch, "bfloat16") >= 1
           and select(2, units.ratio(arch, "bfloat16")) == (arch < 80 and "float32" or "bfloat16"))
  end
  assert(units.ratio(61, "float32") == nil and units.ratio(90, "complex") == nil)

  local glance = peak.device_glance
  function peak.device_glance(text, arch)
    assert(text == "cuda -arch=sm_" .. arch, text)
    return 1e13
  end
  local function fastest(target, kind)
    local source, rate = limits.open():fastest(ms.target(target), kind)
    return source and source.name, rate
  end
  for target, each in pairs {
    ["cuda -arch=sm_80"] = {float32 = {"CUDA cores", 1e13}, float64 = {"CUDA cores on float64", 5e12},
                            int32 = {"CUDA cores on int32", 1e13}, int16 = {"CUDA cores on int32", 1e13},
                            float16 = {"CUDA cores on float16", 4e13}, int64 = {"CUDA cores on int32", 5e12}},
    ["cuda -arch=sm_90"] = {float64 = {"CUDA cores on float64", 5e12}, int32 = {"CUDA cores on int32", 5e12},
                            bfloat16 = {"CUDA cores on bfloat16", 2e13}},
    ["cuda -arch=sm_70"] = {["int8 products"] = {"CUDA cores on int8", 4e13},
                            ["bfloat16 products"] = {"CUDA cores on float32", 1e13},
                            bfloat16 = {"CUDA cores on float32", 1e13}},
  } do
    for kind, wanted in pairs(each) do
      local name, rate = fastest(target, kind)
      assert(name == wanted[1], string.format("%s, %s: %s", target, kind, name))
      same(rate, wanted[2], target .. ", " .. kind)
    end
  end
  peak.device_glance = glance
  assert(limits.of_device(ms.target "cuda -arch=sm_80", "float16 products")[1].name == "tensor cores on float16")
  assert(limits.of_device(ms.target "cuda -arch=sm_75", "int8 products")[1].name == "tensor cores on int8")
  assert(limits.of_device(ms.target "cuda -arch=sm_75", "bfloat16 products")[1].name == "CUDA cores on float32")
end

-- ---- Units ---------------------------------------------------------------------------------------------------------

-- Those that are here do what they are measured to do; code for a target that lacks them has none.
for _, u in ipairs(ms.units(target.text)) do
  local rate = ms.unit_rate(u.unit, 1, target.vector_bits)
  assert(rate > 1e8 and rate < 1e15, u.name .. ": " .. rate)
end
assert(not pcall(ms.unit_rate, 99, 1, 512) and not pcall(ms.unit_rate, 0, 0, 512) and not pcall(ms.unit_rate, 0, 1, 64)
       and not pcall(ms.units, "fly"))
assert(#ms.units "llvm -mtriple=aarch64-linux-gnu" == 0 and #ms.units "cuda -arch=sm_90" == 0)
for _, u in ipairs(ms.units "x86-64-v2") do assert(u.products == "int8 products" and u.unit == 0, u.name) end
assert(ms.unit_is_used(1, "\tvpdpbusd\t%zmm0, %zmm1, %zmm2\n")
       and not ms.unit_is_used(1, "\tvpmaddwd\t%zmm0, %zmm1, %zmm2\n"))
assert(ms.unit_is_used(3, "\ttdpbssd\t%tmm2, %tmm1, %tmm0\n")
       and not ms.unit_is_used(4, "\ttdpbssd\t%tmm2, %tmm1, %tmm0\n"))
assert(ms.unit_is_used(4, "tdpbf16ps") and ms.unit_is_used(2, "vdpbf16ps") and not ms.unit_is_used(2, "tdpbf16ps"))

-- A target of more cores than this machine is measured by those that are here.
do
  local peak, here = ms.load "lua.bench.peak", ms.target "native"
  local many = ms.target(here.text:gsub(" %-num%-cores=%d+", "") .. " -num-cores=4096")
  assert(many.cores == 4096 and peak.cores_of(many) == here.cores)
  assert(peak.vectors_call(many, "float32").work == peak.vectors_call(here, "float32").work)
end
print "rates: ok"
