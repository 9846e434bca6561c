-- open(run_kernels, seed): sources of a function's kernels in a folder, compiled for the CPU by RUN_KERNELS, and by
-- NVRTC where it is installed. begin(func) makes the folder, with the function; path(name) is a file in it; agree()
-- gives how many sources compute what the function does, all that was said, and the status; finish() removes the
-- folder. compile(kernel) gives NVRTC's resources, or nil where `missing` says why there are none, and for all but the
-- first of each MSCHED_NVRTC_EVERY kernels, 1 unless set.
-- check(func, target, traces, look): the schedules of these traces, of which there are several, lowered, are right on
-- the interpreter, and their sources, 1.cu and so on, on the CPU; look(i, kernel, path without .cu, function) sees each
-- before that, and may change the source. fail(count, spoil, what): none of these sources is right once spoil(path) has
-- changed it.
local KernelSources = {}
KernelSources.__index = KernelSources
local ms = require "msched"
local files = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "files.lua")

function KernelSources:path(name) return self.folder .. "/" .. name end

function KernelSources:begin(func)
  assert(os.execute("mkdir " .. self.folder))
  files.write(self:path "function.py", func:script())
end

function KernelSources:agree()
  local pipe = io.popen(string.format("'%s' %s %s %d", self.run_kernels, self:path "function.py", self.folder,
                                      self.seed))
  local said = pipe:read "a"
  local _, _, status = pipe:close()
  return math.tointeger(said:match "compiled for the CPU, (%d+) agree"), said, status
end

function KernelSources:check(func, target, traces, look)
  for i, trace in ipairs(traces) do
    local scheduled = ms.apply(func, trace):func()
    ms.check_lowered(func, scheduled, target, 1)
    local kernel, path = ms.build(scheduled, {target = target}), self:path(tostring(i))
    kernel:export(path .. ".cu")
    look(i, kernel, path, scheduled)
  end
  local agree, said = self:agree()
  assert(#traces > 1 and agree == #traces, said)
end

function KernelSources:fail(count, spoil, what)
  for i = 1, count do spoil(self:path(i .. ".cu")) end
  local agree, said = self:agree()
  assert((agree or 0) == 0, what .. " agree: " .. said)
end

function KernelSources:finish() os.execute("rm -r " .. self.folder) end

local every = math.tointeger(tonumber(os.getenv "MSCHED_NVRTC_EVERY" or 1))

function KernelSources:compile(kernel)
  self.asked = self.asked + 1
  if (self.asked - 1) % every > 0 then return nil end
  local ok, got = pcall(kernel.resources, kernel, true)
  if ok then return got end
  assert(got:find("NVRTC is missing", 1, true), got)
  self.missing = got
end

return function(run_kernels, seed)
  local folder = os.tmpname()
  os.remove(folder)
  return setmetatable({folder = folder, run_kernels = run_kernels, seed = seed, asked = 0}, KernelSources)
end
