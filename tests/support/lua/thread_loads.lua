-- What draws of sketches for GPUs load, a thread each: dofile gives a table.
local ms = require "msched"
local here = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")
local files = dofile(here .. "files.lua")
local thread_loads = {}

-- So many draws of these sketches' traces in turn: the traces of those that differ, and how many were accepted.
function thread_loads.drawn(func, target, traces, draws, seed)
  local jobs, list, seen, accepted = {}, {}, {}, 0
  for i = 1, draws do
    jobs[i] = {trace = traces[(i - 1) % #traces + 1]:simplified(false), seed = seed, candidate = i, resample = true}
  end
  local pool = ms.pool(func, {jobs = 1, target = target})
  local made, _, script_error = pool:replay(jobs, false)
  pool:close()
  assert(not script_error, script_error)
  for _, c in ipairs(made) do
    if c then accepted = accepted + 1 end
    if c and not seen[c.hash] then list[#list + 1], seen[c.hash] = c.trace, true end
  end
  return list, accepted
end

-- How many elements a thread of an unrolled kernel loads from global memory.
function thread_loads.loaded(ptx)
  local count = 0
  for kind in ptx:gmatch "ld%.global([%w%.]*)" do count = count + (math.tointeger(kind:match "%.v(%d)") or 1) end
  return count
end

-- The PTX of a kernel, by way of a file of this name; nil, and why there is no NVRTC.
function thread_loads.ptx(kernel, path)
  local ok, message = pcall(kernel.export, kernel, path .. ".ptx")
  if not ok then
    assert(message:find("NVRTC is missing", 1, true), message)
    return nil, message
  end
  local ptx = files.read(path .. ".ptx")
  os.remove(path .. ".ptx")
  return ptx
end

return thread_loads
