-- The spaces of the peer (TVM MetaSchedule) for 19 operators on two targets, against ours with its rules: as many sketches,
-- and for each of the peer's one of ours that makes the same function with its decisions, before and after postprocessing.
-- How many sketches the default rules open is printed beside.
-- usage: msched peer_spaces.lua ROOT [WORKLOAD…]
local ms = require "msched"
local targets, space = ms.load "rules.targets", ms.load "rules.space"

local root, workloads = arg[1], {table.unpack(arg, 2)}
if #workloads == 0 then
  workloads = {"C1D", "C2D", "C3D", "CAP", "CBR", "DEP", "DIL", "ELT", "GMM", "GMM1024", "GMM2", "GMM_RELU", "GMM_ROW", "GRP", "NRM", "POOL",
               "SFM", "T2D", "TBG"}
end
local TARGETS = {llvm = "llvm -mcpu=skylake-avx512 -num-cores=16", cuda = "cuda -arch=sm_80"} -- that the peer was asked for

local function read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a"
end

-- NAME.0.json, NAME.1.json, …
local function traces_of(folder, name)
  local list = {}
  while true do
    local text = read(string.format("%s/tests/bench/%s/%s.%d.json", root, folder, name, #list))
    if not text then return list end
    list[#list + 1] = ms.read_trace(text):simplified(true)
  end
end

-- The peer's decisions in our trace: both draw the same, in the same order. nil: they do not.
local function with_decisions(ours, theirs)
  local own, given = ours:draws(), theirs:draws()
  if #own ~= #given then return nil end
  for i, d in ipairs(given) do
    if own[i].kind ~= d.kind then return nil end
    if d.decision then ours = ours:with_decision(own[i].index, d.decision) end
  end
  return ours
end

local function replayed(func, trace)
  local ok, sch = pcall(ms.apply, func, trace)
  return ok and sch or nil, sch
end

-- The number of our sketch that makes the peer's function with the peer's decisions, `finish` (if any) being done to ours.
local function find(func, sketches, theirs, finish)
  local want = assert(replayed(func, theirs)):hash()
  for i, ours in ipairs(sketches) do
    local decided = with_decisions(ours, theirs)
    local sch = decided and replayed(func, decided)
    if sch and (not finish or finish(sch)) and sch:hash() == want then return i end
  end
end

local function check(name, kind, func)
  local parts = space.parts(targets.context(ms.target(TARGETS[kind]), targets.metaschedule[kind]))
  local made, report = space.generate(func, parts)
  local sketches, failures = {}, {}
  for i, sch in ipairs(made) do sketches[i] = sch.trace:simplified(false) end
  local function wrong(...) failures[#failures + 1] = string.format("%s, %s: ", name, kind) .. string.format(...) end
  for key in pairs(report.refused) do wrong("a rule asks for what is refused: %s", key) end
  local peers, posts = traces_of(kind, name), traces_of(kind .. "_post", name)
  if #sketches ~= #peers then wrong("%d sketches, the peer has %d", #sketches, #peers) end
  local taken = {}
  for i, theirs in ipairs(peers) do
    local at = find(func, sketches, theirs)
    if not at then wrong("sketch %d of the peer is none of ours", i - 1)
    elseif taken[at] then wrong("sketches %d and %d of the peer are the same of ours", taken[at] - 1, i - 1) end
    taken[at or 0] = i
  end
  for i, theirs in ipairs(posts) do
    if not find(func, sketches, theirs, function(sch) return space.postprocess(sch, parts) end) then
      wrong("sketch %d of the peer is none of ours after postprocessing", i - 1)
    end
  end
  local default = space.generate(func, space.parts(targets.context(ms.target(TARGETS[kind]))))
  print(string.format("%-8s %-4s %d sketches as the peer's, %d of them postprocessed; by default %d", name, kind, #peers, #posts, #default))
  return failures
end

local failed = {}
for _, name in ipairs(workloads) do
  local path = root .. "/tests/bench/workloads/" .. name .. ".py"
  local func = ms.from_script(assert(read(path), path), path)
  for _, kind in ipairs {"llvm", "cuda"} do
    for _, f in ipairs(check(name, kind, func)) do failed[#failed + 1] = f end
  end
end
assert(#failed == 0, table.concat(failed, "\n"))
