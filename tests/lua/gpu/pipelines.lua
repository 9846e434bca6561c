-- Software pipelines in the space of GPUs: draws of an ordinary product of matrices whose copies run ahead of what uses
-- them become kernels with cp.async, from sm_80 on, in CUDA's source and in PTX (where NVRTC is installed); none asks
-- for more shared memory than its postprocessor foresaw, or than a block may have; on sm_75 there are none. All draws
-- of a convolution of 7 x 7 have room for their stage buffers.
-- usage: msched pipelines.lua
local ms = require "msched"
local tune, jobs_of = ms.load "search.tune", dofile(arg[0]:match "^.*/" .. "../jobs.lua")

local func = ms.ops.func("matmul", {"512", "512", "512"})
local path = os.tmpname()

local function drawn(target, draws)
  local opened = tune.open(func, ms.target(target), {})
  local pool = ms.pool(func, {jobs = 1, target = target})
  local made, _, script_error = pool:replay(jobs_of(opened, draws, 1), false)
  pool:close()
  assert(not script_error, script_error)
  return made
end

local function read(form, kernel)
  kernel:export(path .. form)
  local file <close> = assert(io.open(path .. form, "rb"))
  return file:read "a", os.remove(path .. form)
end

local missing -- why there is no NVRTC

-- Whether it copies so, in its source and in what NVRTC makes of that.
local function copies(kernel)
  local in_source = read(".cu", kernel):find("ms_copy_%d+%(") ~= nil
  if missing then return in_source end
  local ok, ptx = pcall(read, ".ptx", kernel)
  if not ok then
    assert(ptx:find("NVRTC is missing", 1, true), ptx)
    missing = ptx
    return in_source
  end
  assert((ptx:find("cp.async.wait_group", 1, true) ~= nil) == in_source
         and (ptx:find "cp%.async%.c[ag]%.shared%.global" ~= nil) == in_source)
  return in_source
end

local function count(target, draws)
  local pipelined, copying, most = 0, 0, ms.target(target).shared_bytes
  for _, c in ipairs(drawn(target, draws)) do
    if c then
      local sch = ms.apply(func, c.trace)
      local kernel = ms.build(sch:func(), {target = target})
      local asked, estimated = kernel:resources()[1].shared_bytes, sch:kernels()[1].shared_bytes
      assert(asked <= (estimated + 63) // 32 * 32 and estimated <= most,
             string.format("the kernel uses %d bytes, the estimate was %d", asked, estimated))
      if tostring(sch):find "software_pipeline_stage" then
        pipelined = pipelined + 1
        if copies(kernel) then copying = copying + 1 end
      else
        assert(not copies(kernel))
      end
    end
  end
  return pipelined, copying
end

-- Draws are held against stage buffers one by one, so that all of a convolution whose windows are large find room; and
-- so do those of few results whose sums are divided, of which a block has one part.
local function check_room(name, words)
  local target, list = "cuda -arch=sm_80", {}
  for word in words:gmatch "%S+" do list[#list + 1] = word end
  local func = ms.ops.func(name, list)
  local opened, jobs = tune.open(func, ms.target(target), {}), {}
  for _, s in ipairs(opened.sketches) do
    local ahead = s.trace:text():find("software_pipeline_stage", 1, true)
    for i = 1, ahead and 48 or 0 do
      jobs[#jobs + 1] = {trace = s.trace:simplified(false), seed = 7, candidate = i, resample = true}
    end
  end
  local pool = ms.pool(func, {jobs = 1, target = target})
  local made = pool:replay(jobs, false)
  pool:close()
  for i in ipairs(jobs) do assert(made[i], "a draw leaves no room for its stage buffers") end
  assert(#jobs >= 96, "there are no copies that run ahead")
end
check_room("conv2d", "1 224 224 3 64 7 2 3")
check_room("matmul", "4 4 16384")

local pipelined, copying = count("cuda -arch=sm_80", 16)
assert(pipelined >= 4 and copying >= 3, string.format("%d are pipelined, %d copy by themselves", pipelined, copying))
pipelined, copying = count("cuda -arch=sm_75", 6)
assert(pipelined == 0 and copying == 0)
os.remove(path)
if missing then print("pipelines: NVRTC skipped: " .. missing) end
print "pipelines: ok"
