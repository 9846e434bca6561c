-- The spaces of the 19 operators of lua/bench/data/workloads: each opens, and candidates drawn from its sketches are
-- postprocessed and, for this machine, built. Prints what was refused, by whom and with which code. MetaSchedule's
-- sketches for both targets are drawn too, and run through our postprocessors; those for GPUs that are accepted are
-- candidates of ours.
-- usage: msched spaces.lua ROOT DRAWS BUILDS [WORKLOAD…]    DRAWS a space, of which BUILDS are built
local ms = require "msched"
local tune, refusals = ms.load "search.tune", ms.load "rules.refusals"

local workloads = dofile(arg[1] .. "/tests/support/lua/workloads.lua")
local files = dofile(arg[1] .. "/tests/support/lua/files.lua")
local draws, builds = math.tointeger(arg[2]), math.tointeger(arg[3])
local names = #arg > 3 and {table.unpack(arg, 4)} or workloads.all
local target, gpu = ms.target "native", ms.target "cuda -arch=sm_80"

-- What our rules make is refused by the postprocessors that are there to refuse, not by instructions.
local function check_refused(name, refused)
  for _, r in pairs(refused) do
    assert(r.by == "disallow_dynamic_loop", name .. ": refused by " .. r.by .. ": " .. tostring(r.code))
  end
end

local function report(name, kind, sketches, accepted, refused)
  print(string.format("%-8s %-5s %3d sketches, %d of %d draws accepted", name, kind, sketches, accepted, draws))
  local text = refusals.text(refused)
  if text ~= "" then print(text) end
  io.stdout:flush()
end

-- Opens the default space on a target and draws from it: most draws are accepted. Gives a pool, and the accepted.
local function draw_ours(name, kind, func, on)
  local opened, sketches = tune.open(func, on, {}), {}
  for i, s in ipairs(opened.sketches) do sketches[i] = s.trace:simplified(false) end
  local pool = ms.pool(func, {jobs = target.cores, target = on.text})
  local accepted = workloads.draw(pool, sketches, draws, opened.refused)
  report(name, kind, #sketches, #accepted, opened.refused)
  assert(#accepted >= draws // 2, name .. ": most draws are refused")
  return pool, accepted, opened.refused, sketches
end

-- Draws from MetaSchedule's sketches, with our postprocessors.
local function draw_metaschedule(name, kind, pool)
  local theirs, refused = workloads.traces(kind, name), {}
  assert(#theirs > 0, name .. ": no sketch of MetaSchedule's is there")
  local accepted = workloads.draw(pool, theirs, draws, refused)
  report(name, kind, #theirs, #accepted, refused)
  return accepted, refused
end

local function check_cpu(name, func)
  local pool, accepted, refused = draw_ours(name, "ours", func, target)
  check_refused(name, refused)
  local drawn, not_taken = draw_metaschedule(name, "llvm", pool)
  check_refused(name, not_taken)
  assert(#drawn >= draws // 2, name .. ": most draws of MetaSchedule's sketches are refused")
  pool:close()
  for i = 1, math.min(builds, #accepted) do
    local c = accepted[i * #accepted // math.min(builds, #accepted)]
    ms.build(ms.apply(func, c.trace):func(), {target = "native"})
  end
end

local ACROSS_GROUPS = [[
local ms, targets = require "msched", (require "msched").load "rules.targets"
ms.space(targets.changed(targets.cuda, {
  multi_level_tiling = function(target)
    return targets.changed(targets.cuda.multi_level_tiling(target), {groups = false})
  end,
}))]]

-- Sketches for GPUs in which groups of channels are no iterations of their own: MetaSchedule's tiles reach across them.
local function across_groups(func)
  local path, sketches = os.tmpname(), {}
  local rules = path .. ".lua"
  files.write(rules, ACROSS_GROUPS)
  for i, s in ipairs(tune.open(func, gpu, {files = {rules}}).sketches) do sketches[i] = s.trace:simplified(false) end
  os.remove(rules)
  os.remove(path)
  return sketches
end

-- Our postprocessors lose nothing: each of MetaSchedule's draws without them that a GPU would launch is a candidate of
-- ours.
local function check_gpu(name, func)
  local pool, _, _, sketches = draw_ours(name, "gpu", func, gpu)
  if name == "GRP" then sketches = across_groups(func) end
  local drawn, found = draw_metaschedule(name, "cuda", pool), 0
  for _, c in ipairs(drawn) do
    local theirs = c.sketch_trace:simplified(true)
    for _, ours in ipairs(sketches) do
      local decided = workloads.with_decisions(ours, theirs)
      local ok, sch = pcall(ms.apply, func, decided or ours)
      if decided and ok and sch:hash() == ms.apply(func, theirs):hash() then
        found = found + 1
        break
      end
    end
  end
  assert(found == #drawn,
         string.format("%s: %d candidates of MetaSchedule's are not among ours", name, #drawn - found))
  pool:close()
end

for _, name in ipairs(names) do
  local func = workloads.func(name)
  check_cpu(name, func)
  check_gpu(name, func)
end
