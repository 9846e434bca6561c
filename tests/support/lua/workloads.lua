-- The 19 operators of lua/bench/data/workloads, and MetaSchedule's traces beside them, for the tests that go over
-- all.
local ms = require "msched"
local here = debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "")

local workloads = {all = {"C1D", "C2D", "C3D", "CAP", "CBR", "DEP", "DIL", "ELT", "GMM", "GMM1024", "GMM2", "GMM_RELU",
                          "GMM_ROW", "GRP", "NRM", "POOL", "SFM", "T2D", "TBG"}}

-- The same with shapes that are small and do not divide.
local CONV = "2 7 6 5 8 3 2 1"
local SMALL = {
  {"conv1d", "2 17 6 8 3 2 1"}, {"conv2d", CONV}, {"conv3d", "1 5 6 5 4 6 3 2 1"},
  {"conv2d_capsule", "1 5 5 3 4 3 2 1"}, {"conv2d_bn_relu", CONV},
  {"depthwise_conv2d", "2 9 7 6 3 2 1"}, {"conv2d", "2 9 7 4 6 3 1 1 dilation=2"}, {"batch_matmul", "2 12 20 18"},
  {"matmul", "33 26 30"},
  {"conv2d", "2 7 6 8 8 3 2 1 groups=2"}, {"norm", "3x12x20"}, {"max_pool", "2 9 9 6 3 2 1"}, {"softmax", "9x70"},
  {"conv2d_transpose", "2 5 4 4 6 4 2 1"},
  {"transpose_batch_matmul", "2 10 3 12"}, {"matmul", "33 26 30 dtype=float16"}, {"gelu", "20x30 dtype=bfloat16"},
  {"argmax", "12x70"}, {"sigmoid", "20x30"},
}

-- The function of an operator, whose arguments are words of a text.
function workloads.named(operator, text)
  local words = {}
  for word in text:gmatch "%S+" do words[#words + 1] = word end
  return ms.ops.func(operator, words)
end

-- Functions that make them.
workloads.small = {}
for i, w in ipairs(SMALL) do
  workloads.small[i] = function() return workloads.named(w[1], w[2]) end
end

local function read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a"
end

function workloads.func(name)
  local path = here .. "../../../lua/bench/data/workloads/" .. name .. ".py"
  return ms.from_script(assert(read(path), path), path)
end

-- A folder's NAME.jsonl: llvm, cuda, and both with _post.
function workloads.traces(folder, name)
  local list = {}
  for line in io.lines(string.format("%s../../../lua/bench/data/%s/%s.jsonl", here, folder, name)) do
    list[#list + 1] = ms.read_trace(line)
  end
  return list
end

-- Draws so many candidates of sketches in turn; gives those that were accepted, and adds to what was refused.
function workloads.draw(pool, sketches, draws, refused, seed)
  local jobs, accepted = {}, {}
  for i = 1, draws do
    jobs[i] = {trace = sketches[(i - 1) % #sketches + 1], seed = seed or 1, candidate = i, resample = true}
  end
  local made, dropped, script_error = pool:replay(jobs, false)
  if script_error then error(script_error, 0) end
  ms.load "rules.refusals".merge(refused, dropped)
  for _, c in ipairs(made) do if c then accepted[#accepted + 1] = c end end
  return accepted
end

-- The decisions of a trace in another of ours: both draw the same, in the same order. nil: they do not.
function workloads.with_decisions(ours, theirs)
  local own, given = ours:draws(), theirs:draws()
  if #own ~= #given then return nil end
  for i, d in ipairs(given) do
    if own[i].kind ~= d.kind or (d.kind == "SamplePerfectTile" and own[i].attrs[1] ~= d.attrs[1]) then return nil end
    if d.decision then ours = ours:with_decision(own[i].index, d.decision) end
  end
  return ours
end

return workloads
