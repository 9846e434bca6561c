-- The 19 operators of tests/bench/workloads, and the traces of the peer's beside them, for the tests that go over all.
local ms = require "msched"
local here = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")

local workloads = {all = {"C1D", "C2D", "C3D", "CAP", "CBR", "DEP", "DIL", "ELT", "GMM", "GMM1024", "GMM2", "GMM_RELU", "GMM_ROW", "GRP", "NRM",
                          "POOL", "SFM", "T2D", "TBG"}}

local function read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a"
end

function workloads.func(name)
  local path = here .. "../bench/workloads/" .. name .. ".py"
  return ms.from_script(assert(read(path), path), path)
end

-- A folder's NAME.0.json, NAME.1.json, …: llvm, cuda, and both with _post.
function workloads.traces(folder, name)
  local list = {}
  while true do
    local text = read(string.format("%s../bench/%s/%s.%d.json", here, folder, name, #list))
    if not text then return list end
    list[#list + 1] = ms.read_trace(text)
  end
end

-- Draws so many candidates of sketches in turn; gives those that were accepted, and adds to what was refused.
function workloads.draw(pool, sketches, draws, refused)
  local jobs, accepted = {}, {}
  for i = 1, draws do jobs[i] = {trace = sketches[(i - 1) % #sketches + 1], seed = 1, candidate = i, anew = true} end
  local made, dropped, script_error = pool:replay(jobs, false)
  if script_error then error(script_error, 0) end
  ms.load "rules.refusals".merge(refused, dropped)
  for _, c in ipairs(made) do if c then accepted[#accepted + 1] = c end end
  return accepted
end

return workloads
