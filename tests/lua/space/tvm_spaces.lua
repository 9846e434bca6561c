-- MetaSchedule's spaces for 19 operators on two targets, against ours with its rules: as many sketches, and for each of
-- MetaSchedule's one of ours that makes the same function with its decisions, before and after postprocessing. The
-- sketches that the default rules open beyond these are listed.
-- usage: msched tvm_spaces.lua ROOT [WORKLOAD…]
local ms = require "msched"
local targets, space = ms.load "rules.targets", ms.load "rules.space"

local workloads = dofile(arg[1] .. "/tests/support/lua/workloads.lua")
local names = #arg > 1 and {table.unpack(arg, 2)} or workloads.all
-- whose spaces were recorded
local TARGETS = {llvm = "llvm -mcpu=skylake-avx512 -num-cores=16", cuda = "cuda -arch=sm_80"}

local function simplified(traces)
  local list = {}
  for i, t in ipairs(traces) do list[i] = t:simplified(true) end
  return list
end

local function replayed(func, trace)
  local ok, sch = pcall(ms.apply, func, trace)
  return ok and sch or nil, sch
end

-- The number of our sketch that makes MetaSchedule's function with its decisions, `finish` (if any) being done to ours.
local function find(func, sketches, theirs, finish)
  local want = assert(replayed(func, theirs)):hash()
  for i, ours in ipairs(sketches) do
    local decided = workloads.with_decisions(ours, theirs)
    local sch = decided and replayed(func, decided)
    if sch and (not finish or finish(sch)) and sch:hash() == want then return i end
  end
end

-- ---- Ours beyond ---------------------------------------------------------------------------------------------------

-- Draws but those of how far to parallelize and unroll, of which the default has more.
local function tile_draws(trace)
  local list = {}
  for _, d in ipairs(trace:draws()) do
    if not (d.annotates or ""):find "^meta_schedule%.[pu]" then list[#list + 1] = d end -- parallel, unroll_explicit
  end
  return list
end

-- What a sketch makes, but for how far it is to be parallel, vectorized and unrolled.
local function made_by(func, trace)
  local sch = assert(replayed(func, trace))
  local root = sch:get_sblock "root"
  for _, key in ipairs {"parallel", "vectorize", "unroll_explicit"} do
    if sch:annotation(root, "meta_schedule." .. key) then sch:unannotate(root, "meta_schedule." .. key) end
  end
  return sch
end

-- Whether a sketch of MetaSchedule's makes with our decisions what ours makes.
local function is_of_metaschedule(func, ours, wanted)
  local own, want = tile_draws(ours), made_by(func, ours):hash()
  for _, theirs in ipairs(wanted) do
    local given = tile_draws(theirs)
    local decided = #given == #own and theirs
    for i, d in ipairs(decided and own or {}) do
      local same = given[i].kind == d.kind and (d.kind ~= "SamplePerfectTile" or given[i].attrs[1] == d.attrs[1])
      if not same then decided = nil break end
      if d.decision then decided = decided:with_decision(given[i].index, d.decision) end
    end
    local sch = decided and replayed(func, decided)
    if sch and made_by(func, decided):hash() == want then return true end
  end
  return false
end

-- The default space's sketches that MetaSchedule does not have, by their blocks; tiled ones by how.
local function list_ours(name, kind, func, wanted)
  local default, _, product = space.generate(func, space.parts(targets.context(ms.target(TARGETS[kind]))))
  assert(not product)
  local only = {}
  for i, sch in ipairs(default) do
    if not is_of_metaschedule(func, sch.trace:simplified(false), wanted) then
      local blocks = {}
      for _, block_name in ipairs(sch:block_names()) do
        local block = sch:get_sblock(block_name)
        local loops = {sch:get_loops(block)}
        local structure = sch:annotation(block, "meta_schedule.tiling_structure") or
                          sch:annotation(block, "msched.register_tile")
                            and sch:extent(loops[#loops]) .. " columns in registers"
        if block_name ~= "root" then
          blocks[#blocks + 1] = block_name .. (structure and " (" .. structure .. ")" or "")
        end
      end
      only[#only + 1] = string.format("    %2d  %s", i, table.concat(blocks, ", "))
    end
  end
  print(string.format("  by default %d, of which %d are ours only%s", #default, #only, #only > 0 and ":" or ""))
  if #only > 0 then print(table.concat(only, "\n")) end
end

-- ---- As many, and each of them ------------------------------------------------------------------------------------

local function check(name, kind, func)
  local parts = space.parts(targets.context(ms.target(TARGETS[kind]), targets.metaschedule[kind]))
  local made, report = space.generate(func, parts)
  local sketches, failures = {}, {}
  for i, sch in ipairs(made) do sketches[i] = sch.trace:simplified(false) end
  local function wrong(...) failures[#failures + 1] = string.format("%s, %s: ", name, kind) .. string.format(...) end
  for key in pairs(report.refused) do wrong("a rule asks for what is refused: %s", key) end
  local wanted, posts = simplified(workloads.traces(kind, name)), simplified(workloads.traces(kind .. "_post", name))
  if #sketches ~= #wanted then wrong("%d sketches, MetaSchedule has %d", #sketches, #wanted) end
  local taken = {}
  for i, theirs in ipairs(wanted) do
    local at = find(func, sketches, theirs)
    if not at then wrong("sketch %d of MetaSchedule is none of ours", i - 1)
    elseif taken[at] then wrong("sketches %d and %d of MetaSchedule are the same of ours", taken[at] - 1, i - 1) end
    taken[at or 0] = i
  end
  for i, theirs in ipairs(posts) do
    if not find(func, sketches, theirs, function(sch) return space.postprocess(sch, parts) end) then
      wrong("sketch %d of MetaSchedule is none of ours after postprocessing", i - 1)
    end
  end
  print(string.format("%-8s %-4s %d sketches as MetaSchedule's, %d of them postprocessed", name, kind, #wanted, #posts))
  list_ours(name, kind, func, wanted)
  return failures
end

local failed = {}
for _, name in ipairs(names) do
  local func = workloads.func(name)
  for _, kind in ipairs {"llvm", "cuda"} do
    for _, f in ipairs(check(name, kind, func)) do failed[#failed + 1] = f end
  end
end
assert(#failed == 0, table.concat(failed, "\n"))
