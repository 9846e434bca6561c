-- Kernels of the 19 operators as CUDA source, from random draws of the CUDA space, with shapes that do not divide: the text
-- is written, and NVRTC compiles it for each architecture; without NVRTC that is skipped, by name.
-- usage: msched cuda_source.lua DRAWS SEED
local ms = require "msched"
local tune = ms.load "search.tune"
local refuses = dofile(arg[0]:match "^.*/" .. "refuses.lua")

local draws, seed = math.tointeger(arg[1]), math.tointeger(arg[2])
local ARCHS = {"sm_75", "sm_80", "sm_89", "sm_90", "sm_90a"}
local CONV = "2 7 6 5 8 3 2 1"
local WORKLOADS = {
  {"conv1d", "2 17 6 8 3 2 1"}, {"conv2d", CONV}, {"conv3d", "1 5 6 5 4 6 3 2 1"}, {"conv2d_capsule", "1 5 5 3 4 3 2 1"}, {"conv2d_bn_relu", CONV},
  {"depthwise_conv2d", "2 9 7 6 3 2 1"}, {"conv2d", "2 9 7 4 6 3 1 1 dilation=2"}, {"batch_matmul", "2 12 20 18"}, {"matmul", "33 26 30"},
  {"conv2d", "2 7 6 8 8 3 2 1 groups=2"}, {"norm", "3x12x20"}, {"max_pool", "2 9 9 6 3 2 1"}, {"softmax", "9x70"}, {"conv2d_transpose", "2 5 4 4 6 4 2 1"},
  {"transpose_batch_matmul", "2 10 3 12"}, {"matmul", "33 26 30 dtype=float16"}, {"gelu", "20x30 dtype=bfloat16"}, {"argmax", "12x70"}, {"sigmoid", "20x30"},
}

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
  for i = 1, draws do jobs[i] = {trace = opened.sketches[(i - 1) % #opened.sketches + 1].trace:simplified(false), seed = seed, candidate = i, anew = true} end
  local made, _, script_error = pool:replay(jobs, false)
  pool:close()
  assert(not script_error, script_error)
  return made
end

-- Gives whether NVRTC compiled it; `missing`: why there is none.
local missing
local function compiles(kernel)
  local ok, message = pcall(kernel.export, kernel, path ".cubin")
  if ok then return contents(".cubin"):sub(1, 4) == "\127ELF" end
  assert(message:find("NVRTC is missing", 1, true), message .. "\n" .. contents ".cu")
  missing = message
end

-- Gives how many were written, and how many compiled.
local function check(func, arch)
  local count, compiled, target = 0, 0, "cuda -arch=" .. arch
  for _, c in ipairs(drawn(func, target)) do
    local ok, kernel = pcall(ms.build, c and ms.apply(func, c.trace):func() or func, {target = target})
    if ok then
      kernel:export(path ".cu")
      assert(contents(".cu"):find('extern "C" __global__ void __launch_bounds__(', 1, true))
      count, compiled = count + 1, compiled + (compiles(kernel) and 1 or 0)
    else
      assert(kernel:find("required: ", 1, true), kernel) -- a refusal, with what it requires
    end
  end
  return count, compiled
end

local total, compiled = 0, 0
for i, w in ipairs(WORKLOADS) do
  local words = {}
  for word in w[2]:gmatch "%S+" do words[#words + 1] = word end
  local some, of_them = check(ms.ops.func(w[1], words), ARCHS[(i - 1) % #ARCHS + 1])
  total, compiled = total + some, compiled + of_them
end
assert(total > #WORKLOADS, "cuda_source: too few draws were written")

-- What is not written, and what cannot be run.
local kernel = ms.build(ms.ops.func("gelu", {"20x30"}), {target = "cuda -arch=sm_80"})
refuses("the suffix says the form: .cu .ptx .cubin", kernel.export, kernel, path ".o")
refuses("kernels for cuda -arch=sm_80 are not launched yet", kernel.time, kernel, ms.array({20, 30}, "float32"), ms.array({20, 30}, "float32"))

os.execute("rm -r " .. folder)
print(string.format("cuda_source: %d written, %s", total, missing and "NVRTC skipped: " .. missing or compiled .. " compiled by NVRTC"))
