-- Kernels of the 19 operators as CUDA source, from random draws of the CUDA space, with shapes that do not divide: the
-- text is written, and NVRTC compiles it for each architecture that it knows, with the resources that the source asks
-- for and about the estimated registers; without NVRTC that is skipped, by name.
-- usage: msched cuda_source.lua DRAWS SEED
local ms = require "msched"
local tune = ms.load "search.tune"
local refuses = dofile(arg[0]:match "^.*/" .. "../refuses.lua")

local draws, seed = math.tointeger(arg[1]), math.tointeger(arg[2])
local ARCHS = {"sm_70", "sm_72", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a"} -- all that are known
local workloads = dofile(arg[0]:match "^.*/" .. "../../support/lua/workloads.lua").small
local registers = dofile(arg[0]:match "^.*/" .. "../../support/lua/estimated.lua").new()

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function path(form) return folder .. "/kernel" .. form end

local function contents(form)
  local file <close> = assert(io.open(path(form), "rb"))
  return file:read "a"
end

local function drawn(func, target)
  local opened, jobs = tune.open(func, ms.target(target), {}), {}
  local pool = ms.pool(func, {jobs = 1, target = target})
  for i = 1, draws do
    jobs[i] = {trace = opened.sketches[(i - 1) % #opened.sketches + 1].trace:simplified(false), seed = seed,
               candidate = i, resample = true}
  end
  local made, _, script_error = pool:replay(jobs, false)
  pool:close()
  assert(not script_error, script_error)
  return made
end

-- What the assembler gives a kernel: the shared memory that its source asks for, registers with which a block fits, and
-- a stack of its own arrays at most, where no register is spilled.
local spilling = 0
local function check_resources(asked, got)
  local most = math.min(255, 65536 // ((asked.threads + 31) // 32 * 32) // 8 * 8)
  assert(got.name == asked.name and got.shared_bytes == asked.shared_bytes, got.name)
  assert(got.registers > 0 and got.registers <= most and not got.serialized,
         got.name .. ": " .. got.registers .. " registers")
  if got.spill_stores + got.spill_loads > 0 then spilling = spilling + 1
  else
    assert(got.stack_bytes <= (asked.local_bytes + 15) // 16 * 16, got.name .. ": a stack of " .. got.stack_bytes)
  end
end

-- Gives whether NVRTC compiled it; `missing`: why there is none; `unknown`: architectures that it has no code for.
local missing, unknown = nil, {}
local function compiles(kernel, arch)
  local asked = kernel:resources()
  assert(asked[1].registers == nil and asked[1].threads > 0)
  local ok, got = pcall(kernel.resources, kernel, true)
  if ok then
    for i, k in ipairs(got) do
      check_resources(asked[i], k)
      registers:note(asked[i], k)
    end
    return #got == #asked
  end
  unknown[arch] = got:find("NVRTC has no code for " .. arch, 1, true) and true or nil
  assert(unknown[arch] or got:find("NVRTC is missing", 1, true), got .. "\n" .. contents ".cu")
  missing = not unknown[arch] and got or nil
end

-- Gives how many were written, and how many compiled.
local function check(func, arch)
  local count, compiled, target = 0, 0, "cuda -arch=" .. arch
  for _, c in ipairs(drawn(func, target)) do
    local ok, kernel = pcall(ms.build, c and ms.apply(func, c.trace):func() or func, {target = target})
    if ok then
      kernel:export(path ".cu")
      assert(contents(".cu"):find('extern "C" __global__ void __launch_bounds__(', 1, true))
      count, compiled = count + 1, compiled + (compiles(kernel, arch) and 1 or 0)
    else
      assert(kernel:find("required: ", 1, true), kernel) -- a refusal, with what it requires
    end
  end
  return count, compiled
end

local total, compiled, by_arch = 0, 0, {}
for i, w in ipairs(workloads) do
  local arch = ARCHS[(i - 1) % #ARCHS + 1]
  local some, of_them = check(w(), arch)
  total, compiled, by_arch[arch] = total + some, compiled + of_them, (by_arch[arch] or 0) + of_them
end
assert(total > #workloads, "cuda_source: too few draws were written")
for _, arch in ipairs(ARCHS) do
  assert(missing or unknown[arch] or by_arch[arch] > 0, "nothing is compiled for " .. arch)
end
if compiled > 0 then print(registers:check()) end

-- What says how far a loop is unrolled is a positive number of 32 bits; nothing is written of what is none.
do
  local te, k = ms.te, ms.te.reduce_axis(64, "k")
  local X = te.placeholder({32, 64}, "float32", "X")
  local sums = te.func("sums", {X, te.compute({32}, function(i) return te.sum(X[{i, k}], k) end, "Y")})
  local function pragma(value)
    local sch = ms.schedule(sums)
    local i, sum = sch:get_loops(sch:get_sblock "Y")
    sch:bind(i, "threadIdx.x")
    sch:annotate(sum, "unroll_count", value)
    ms.build(sch:func(), {target = "cuda -arch=sm_90", load = false}):export(path ".cu")
    return contents(".cu"):match "#pragma unroll[^\n]*"
  end
  assert(pragma(64) == "#pragma unroll 64")
  for _, value in ipairs {0, -1, 2.5, "8", 1 << 40} do assert(not pragma(value), tostring(value)) end
end

-- What is not written, and what cannot be run.
local kernel = ms.build(ms.ops.func("gelu", {"20x30"}), {target = "cuda -arch=sm_80"})
refuses("the suffix says the form: .cu .ptx .cubin .h .c", kernel.export, kernel, path ".o")
refuses("a kernel for a GPU is expected", ms.build(ms.ops.func("gelu", {"20x30"})).resources,
        ms.build(ms.ops.func("gelu", {"20x30"})))
if not missing then
  local function begins(form, bytes)
    kernel:export(path(form))
    assert(contents(form):find(bytes, 1, true) == 1, form)
  end
  begins(".cubin", "\127ELF")
  begins(".ptx", "//\n// Generated by NVIDIA NVVM Compiler")
  local narrow = ms.build(ms.ops.func("gelu", {"20x30"}), {target = "cuda -arch=sm_80 -registers_per_block=64"})
  refuses("registers a thread", narrow.resources, narrow, true)
  refuses("the target has 64", narrow.export, narrow, path ".cubin")
end
if #ms.devices() == 0 then
  refuses("CUDA's driver is missing", kernel.time, kernel, ms.array({20, 30}, "float32"), ms.array({20, 30}, "float32"))
end

os.execute("rm -r " .. folder)
print(string.format("cuda_source: %d written, %s", total, missing and "NVRTC skipped: " .. missing
                    or compiled .. " compiled by NVRTC, " .. spilling .. " kernels spill; no code for: "
                      .. table.concat(ms.sorted_keys(unknown), " ")))
