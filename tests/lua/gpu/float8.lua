-- Floats of 8 bits on GPUs without one, on three oracles: what patterns are, and what numbers round to, by the
-- instructions of sm_89 and later, and by integers before; copies, vectors, arithmetic, choices; kernels of draws of
-- the space of a product of such. The interpreter runs the lowered function, the source compiled for the CPU computes
-- the same (RUN_KERNELS), and NVRTC, where it is installed, compiles it; PTX has the conversions.
-- usage: float8.lua RUN_KERNELS
local ms = msched
local te, tune, jobs_of = ms.te, ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../jobs.lua")
local files = dofile(arg[0]:match "^.*/" .. "../../support/lua/files.lua")
local sources = dofile(arg[0]:match "^.*/" .. "../../support/lua/kernel_sources.lua")(arg[1], 1)
local draws = dofile(arg[0]:match "^.*/" .. "../../support/lua/draws.lua")
local TARGETS = {"cuda -arch=sm_80", "cuda -arch=sm_89", "cuda -arch=sm_90a"}

local function check(func, schedules, target, wanted)
  sources:begin(func)
  for i, scheduled in ipairs(schedules) do
    ms.check_lowered(func, scheduled, target, 1)
    local kernel = ms.build(scheduled, {target = target})
    kernel:export(sources:path(i .. ".cu"))
    local text = files.read(sources:path(i .. ".cu"))
    for what, by_ptx in pairs(wanted or {}) do
      local there = text:find(what, 1, true) ~= nil
      assert(there == (by_ptx and not target:find "sm_80"), target .. ": " .. what .. "\n" .. text)
    end
    sources:compile(kernel)
  end
  local agree, said = sources:agree()
  assert(#schedules > 0 and agree == #schedules, said)
  sources:finish()
  return #schedules
end

-- A thread a number, or a vector.
local function by_threads(func, lanes)
  local sch = ms.schedule(func)
  local block = sch:get_sblock "Y"
  local loops = {sch:get_loops(block)}
  local outer, thread, vector = sch:split(#loops > 1 and sch:fuse(table.unpack(loops)) or loops[1],
                                          {ms.rest, 32, lanes})
  sch:bind(outer, "blockIdx.x")
  sch:bind(thread, "threadIdx.x")
  sch:vectorize(vector)
  return sch:func()
end

local count = 0
for _, target in ipairs(TARGETS) do
  for _, type in ipairs {"float8_e4m3fn", "float8_e5m2"} do
    local short = type:match "e%dm%d"
    local X, F = te.placeholder({512}, type, "X"), te.placeholder({512}, "float32", "X")
    local functions = {
      {te.func("widens", {X, te.compute({512}, function(i) return te.cast(X[i], "float32") end, "Y")})},
      {te.func("rounds", {F, te.compute({512}, function(i) return te.cast(F[i] * 3.7, type) end, "Y")}),
       {["cvt.rn.satfinite." .. short .. "x2.f32"] = true}},
      {te.func("copies", {X, te.compute({512}, function(i) return X[511 - i] end, "Y")})},
      {te.func("computes", {X, te.compute({512}, function(i)
        return te.select(te.gt(X[i], 0.5), X[i] * X[511 - i] + X[i], te.maximum(X[i], X[511 - i]))
      end, "Y")})},
      {te.func("narrows", {F, te.compute({512}, function(i)
        return te.cast(te.cast(F[i], "float16"), type) + te.cast(te.cast(F[i], "int32"), type)
      end, "Y")})},
    }
    for _, f in ipairs(functions) do
      count = count + check(f[1], {by_threads(f[1], 1), by_threads(f[1], 4), by_threads(f[1], 16)}, target, f[2])
    end
    -- Draws of the space: a product of floats of 8 bits, summed in float32, by CUDA cores.
    local A, B, k = te.placeholder({32, 64}, type, "A"), te.placeholder({64, 32}, type, "B"), te.reduce_axis(64, "k")
    local product = te.func("product", {A, B, te.compute({32, 32}, function(i, j)
      return te.sum(te.cast(A[{i, k}], "float32") * te.cast(B[{k, j}], "float32"), k)
    end, "C")})
    -- And the largest of rows, which threads exchange.
    local R, r = te.placeholder({16, 512}, type, "R"), te.reduce_axis(512, "r")
    local most = te.func("most", {R, te.compute({16}, function(i) return te.max(R[{i, r}], r) end, "M")})
    for _, func in ipairs {product, most} do
      local opened = tune.open(func, ms.target(target), {})
      local pool = ms.pool(func, {jobs = 1, target = target})
      local made, _, script_error = pool:replay(jobs_of(opened, draws.number(2, 4), 3), false)
      pool:close()
      assert(not script_error, script_error)
      local list = {}
      for _, c in ipairs(made) do if c then list[#list + 1] = ms.apply(func, c.trace):func() end end
      count = count + check(func, list, target)
    end
  end
end
-- Products by tensor cores are for sm_89 and later (tensor_cores.lua has them).
local PRODUCT = [[
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16, 32), "float8_e4m3fn"), B: T.Buffer((16, 32), "float8_e4m3fn"),
         C: T.Buffer((16, 16), "float32")):
    for t in T.thread_binding(32, thread="threadIdx.x"):
        S = T.alloc_buffer((16, 32), "float8_e4m3fn", scope="shared")
        U = T.alloc_buffer((16, 32), "float8_e4m3fn", scope="shared")
        X = T.alloc_buffer((16, 32), "float8_e4m3fn", scope="mma.matrix_a")
        Y = T.alloc_buffer((16, 32), "float8_e4m3fn", scope="mma.matrix_b")
        Z = T.alloc_buffer((16, 16), "float32", scope="mma.accumulator")
        for i in range(16):
            S[i, t] = A[i, t]
            U[i, t] = B[i, t]
        T.mma_load(X.data, 0, S.access_ptr("r"), 32, "row_major", "a")
        T.mma_load(Y.data, 0, U.access_ptr("r"), 32, "col_major", "b")
        T.mma_fill(Z.data, 0, T.float32(0))
        T.mma_sync(Z.data, 0, X.data, 0, Y.data, 0, "col_major")
        T.mma_store(Z.data, 0, C.access_ptr("w"), 16)
]]
local ok, why = pcall(ms.build, ms.from_script(PRODUCT), {target = "cuda -arch=sm_80"})
assert(not ok and tostring(why):find("products of floats of 8 bits are for sm_89 and later, and the target is sm_80", 1,
                                     true), why)
ms.build(ms.from_script(PRODUCT), {target = "cuda -arch=sm_89", load = false})
print(string.format("float8: %d kernels agree; %s", count, sources.missing or "compiled by NVRTC"))
