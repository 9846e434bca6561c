-- The spaces of the 19 operators of bench/workloads: each opens, and candidates drawn from its sketches are postprocessed
-- and built. Prints what was refused, by whom and with which code. The peer's sketches for both targets are drawn too:
-- for llvm they run through our postprocessors; for cuda they are replayed.
-- usage: msched spaces.lua ROOT DRAWS BUILDS [WORKLOAD…]    DRAWS a space, of which BUILDS are built
local ms = require "msched"
local tune, refusals = ms.load "search.tune", ms.load "rules.refusals"

local root, draws, builds = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local workloads = {table.unpack(arg, 4)}
if #workloads == 0 then
  workloads = {"C1D", "C2D", "C3D", "CAP", "CBR", "DEP", "DIL", "ELT", "GMM", "GMM1024", "GMM2", "GMM_RELU", "GMM_ROW", "GRP", "NRM", "POOL",
               "SFM", "T2D", "TBG"}
end
local target = ms.target "native"

local function read(path)
  local file <close> = io.open(path, "rb")
  return file and file:read "a"
end

local function peer_sketches(kind, name)
  local list = {}
  while true do
    local text = read(string.format("%s/tests/bench/%s/%s.%d.json", root, kind, name, #list))
    if not text then return list end
    list[#list + 1] = ms.read_trace(text)
  end
end

-- Draws candidates from sketches in turn. Gives those that are accepted; adds what was refused.
local function draw(pool, sketches, refused)
  local jobs, accepted = {}, {}
  for i = 1, draws do jobs[i] = {trace = sketches[(i - 1) % #sketches + 1], seed = 1, candidate = i, anew = true} end
  local made, dropped, script_error = pool:replay(jobs, false)
  if script_error then error(script_error, 0) end
  refusals.merge(refused, dropped)
  for _, c in ipairs(made) do if c then accepted[#accepted + 1] = c end end
  return accepted
end

-- What our rules make is refused by the postprocessors that are there to refuse, not by instructions.
local function check_refused(name, refused)
  for _, r in pairs(refused) do assert(r.by == "disallow_dynamic_loop", name .. ": refused by " .. r.by .. ": " .. tostring(r.code)) end
end

local function report(name, kind, sketches, accepted, refused)
  print(string.format("%-8s %-5s %3d sketches, %d of %d draws accepted", name, kind, sketches, accepted, draws))
  local text = refusals.text(refused)
  if text ~= "" then print(text) end
  io.stdout:flush()
end

local function check_ours(name, func)
  local opened = tune.open(func, target, {})
  local sketches, refused = {}, opened.refused
  for i, s in ipairs(opened.sketches) do sketches[i] = s.trace:simplified(false) end
  local pool = ms.pool(func, {jobs = target.cores, target = "native"})
  local accepted = draw(pool, sketches, refused)
  report(name, "ours", #sketches, #accepted, refused)
  check_refused(name, refused)
  assert(#accepted >= draws // 2, name .. ": most draws are refused")
  local theirs, peers = peer_sketches("llvm", name), {}
  assert(#theirs > 0, name .. ": no sketch of the peer's is there")
  local by_peer = draw(pool, theirs, peers)
  report(name, "llvm", #theirs, #by_peer, peers)
  check_refused(name, peers)
  assert(#by_peer >= draws // 2, name .. ": most draws of the peer's sketches are refused")
  pool:close()
  for i = 1, math.min(builds, #accepted) do
    local c = accepted[i * #accepted // math.min(builds, #accepted)]
    ms.build(ms.apply(func, c.trace):func(), {target = "native"})
  end
end

local function check_cuda(name, func)
  local sketches, refused, accepted = peer_sketches("cuda", name), {}, 0
  for i = 1, draws do
    local ok, message = pcall(ms.apply, func, sketches[(i - 1) % #sketches + 1], {seed = 1, candidate = i, anew = true})
    if ok then accepted = accepted + 1 else refusals.add(refused, "replay", assert(ms.code_of(message), message), message) end
  end
  report(name, "cuda", #sketches, accepted, refused)
end

for _, name in ipairs(workloads) do
  local path = root .. "/tests/bench/workloads/" .. name .. ".py"
  local func = ms.from_script(assert(read(path), path), path)
  check_ours(name, func)
  check_cuda(name, func)
end
