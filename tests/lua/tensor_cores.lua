-- Products of matrices on tensor cores without a GPU: random draws of the space of tensor cores, those with fragments of
-- 16 x 16 x 16 before three witnesses: the interpreter runs what is lowered, the source compiled for the CPU computes the
-- same (RUN_KERNELS), NVRTC compiles it, where it is installed, to the shared memory that it asks for and no spills.
-- Those with mma, which has no form in CUDA's source yet, are refused by name.
-- usage: msched tensor_cores.lua RUN_KERNELS DRAWS SEED
local ms = require "msched"
local te = ms.te
local tune, jobs_of = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "jobs.lua")

local run_kernels, draws, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local TARGET = "cuda -arch=sm_80"
local PRODUCTS = {
  {"float16", "float32", 64, 32, 48}, {"float16", "float16", 32, 64, 64}, {"int8", "int32", 48, 32, 64},
}

local folder = os.tmpname()
os.remove(folder)

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function product(inputs, output, m, n, k)
  local A, B, r = te.placeholder({m, k}, inputs, "A"), te.placeholder({k, n}, inputs, "B"), te.reduce_axis(k, "k")
  return te.func("product", {A, B, te.compute({m, n}, function(i, j) return te.sum(te.cast(A[{i, r}], output) * te.cast(B[{r, j}], output), r) end, "C")})
end

local function drawn(func)
  local rules = folder .. "/rules.lua"
  write(rules, 'local ms = require "msched" ms.space(ms.load "rules.targets".tensor_core)')
  local opened = tune.open(func, ms.target(TARGET), {files = {rules}})
  local pool = ms.pool(func, {jobs = 1, target = TARGET, files = {rules}})
  local made, _, script_error = pool:replay(jobs_of(opened, draws, seed), false)
  pool:close()
  assert(not script_error, script_error)
  return made
end

local missing -- why there is no NVRTC

local function compile(kernel)
  local ok, got = pcall(kernel.resources, kernel, true)
  if not ok then
    assert(got:find("NVRTC is missing", 1, true), got)
    missing = got
    return
  end
  local asked = kernel:resources()
  assert(got[1].shared_bytes == asked[1].shared_bytes and got[1].spill_stores == 0, "a product spills")
end

-- Gives how many sources were written, and how many candidates with mma were refused.
local function check(func)
  local written, refused, seen = 0, 0, {}
  write(folder .. "/function.py", func:script())
  for i, c in ipairs(drawn(func)) do
    local scheduled = c and not seen[c.hash] and ms.apply(func, c.trace):func()
    local script = scheduled and scheduled:script() or ""
    if c then seen[c.hash] = true end
    if script:find "tvm_mma_sync" then
      ms.check_lowered(func, scheduled, TARGET, i)
      local kernel = ms.build(scheduled, {target = TARGET})
      written = written + 1
      kernel:export(string.format("%s/%d.cu", folder, written))
      compile(kernel)
    elseif script:find "ptx_mma" then
      ms.check_lowered(func, scheduled, TARGET, i)
      local ok, message = pcall(ms.build, scheduled, {target = TARGET})
      assert(not ok and tostring(message):find "of scope \"m16n8k8.* in a kernel has no form in CUDA", message)
      refused = refused + 1
    end
  end
  return written, refused
end

local function run_on_cpu()
  local pipe = io.popen(string.format("'%s' %s/function.py %s %d", run_kernels, folder, folder, seed))
  local said = pipe:read "a"
  pipe:close()
  return math.tointeger(said:match "compiled for the CPU, (%d+) agree"), said
end

for _, p in ipairs(PRODUCTS) do
  assert(os.execute("mkdir " .. folder))
  local written, refused = check(product(table.unpack(p)))
  local agree, said = run_on_cpu()
  assert(written > 0 and agree == written, said)
  print(string.format("%s to %s: %d by fragments, %d agree on the CPU, %s; %d by mma, refused", p[1], p[2], written, agree,
                      missing and "NVRTC skipped" or "compiled by NVRTC", refused))
  os.execute("rm -r " .. folder)
end
print(missing and "tensor_cores: NVRTC skipped: " .. missing or "tensor_cores: ok")
