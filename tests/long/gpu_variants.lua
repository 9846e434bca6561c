-- What a part of the space is worth on a device: functions tuned with it and without, the best of both timed in turn.
-- One JSON object a line, as it goes: the part, the function, the seconds of both, `ratio` above 1 where it pays,
-- `same` where the best of both is one schedule.
--   clusters     blocks in clusters of two that multicast, beside blocks alone
--   persistent   as many blocks as multiprocessors, beside a block for each tile
--   padded       sides that no tile divides, padded for tensor cores, beside CUDA cores
--   vectors      vectors that are computed and stored whole, beside the same without
-- usage: msched gpu_variants.lua PART TRIALS SEED SECONDS FOLDER [TARGET [FUNCTION…]]
--   SECONDS: of all functions; what begins later is left out, and said. FUNCTION: `ops` and words, as `matmul 64 64 64`
local ms = require "msched"
local tune, named, cli = ms.load "search.tune", ms.load "lua.lib.ops.named", ms.load "lua.cli.cli"
local files = dofile(arg[0]:match "^.*/" .. "../support/lua/files.lua")

local part, trials, seed = arg[1], math.tointeger(arg[2]), math.tointeger(arg[3])
local deadline, folder, target = ms.clock() + tonumber(arg[4]), arg[5], arg[6] or "cuda"
local TIMED = 0.5 -- seconds, of both in turn

-- What the space is changed to without the part: a file of rules.
local function of_groups(change)
  return string.format([[
    multi_level_tiling_tensor_core = function(target)
      local p = own.multi_level_tiling_tensor_core(target)
      for _, g in ipairs(p.groups) do %s end
      return p
    end,]], change)
end
local HALF = " dtype=float16 accumulate=float32"
local PARTS = {
  clusters = {of_groups "if g.clusters then g.clusters = {1} end",
              "matmul 4096 4096 4096" .. HALF, "matmul 8192 8192 8192" .. HALF, "matmul 2048 2048 2048" .. HALF,
              "conv2d 16 14 14 256 256 3 1 1 dtype=float16"},
  persistent = {of_groups "if g.blocks then g.blocks = {0} end",
                "matmul 4096 4096 4096" .. HALF, "matmul 2048 2048 2048" .. HALF},
  padded = {[[multi_level_tiling_tensor_core = function(target)
      local p = own.multi_level_tiling_tensor_core(target)
      p.pads = false
      return p
    end,]], "matmul 1000 1000 1000" .. HALF, "matmul 128 1000 2048" .. HALF, "matmul 100 4096 4096" .. HALF,
            "conv2d 16 7 7 512 512 3 1 1 dtype=float16"},
  vectors = {[[cross_thread_reduction = function(target)
      return targets.changed(own.cross_thread_reduction(target), {vectors = false})
    end,
    postprocs = without(own.postprocs, "rewrite_vector_store"),
    rules = without(own.rules, "spatial_tiling"),]],
             "gelu 4096x4096", "gelu 4096x4096 dtype=float16", "layer_norm 8192x4096", "softmax 4096x1024",
             "matmul 1024 1024 1024"},
}
local known = assert(PARTS[part], "there is no such part")

local RULES = [[
local ms, targets = require "msched", (require "msched").load "rules.targets"
local own = targets.cuda
local function without(list, name)
  local kept = {}
  for _, each in ipairs(list) do
    if (type(each) == "table" and each[1] or each) ~= name then kept[#kept + 1] = each end
  end
  return kept
end
ms.space(targets.changed(own, {%s
}))]]

local function best_of(func, rules, which)
  local store = ms.store(string.format("%s/%s-%s.db", folder, part, which))
  local task = tune.run(func, {target = target, store = store, trials = trials, seed = seed,
                               files = rules and {rules} or nil})
  if not task.fastest then error(tune.why(task), 0) end
  local sch = ms.apply(func, task.fastest.trace)
  return ms.build(sch:func(), {target = target, reference = func}), task.done, sch:hash()
end

local function measure(words)
  local list = {}
  for word in words:gmatch "%S+" do list[#list + 1] = word end
  local func, rules = named.func(table.remove(list, 1), list), string.format("%s/%s.lua", folder, part)
  files.write(rules, RULES:format(known[1]))
  local with, tried, hash = best_of(func, nil, "with")
  local without, others, other_hash = best_of(func, rules, "without")
  local arrays = ms.arrays_for(func, 1)
  ms.fill_for_timing(func, arrays, target)
  local calls = {with:prepare(table.unpack(arrays)), without:prepare(table.unpack(arrays))}
  for _, call in ipairs(calls) do call:run() end
  local times = ms.time_in_turn(calls, TIMED)
  local work = cli.work_of(func)
  cli.put_json {bench = "part", part = part, task = words, trials = tried, other_trials = others,
                seconds = times[1].seconds, other_seconds = times[2].seconds, operations = work.operations,
                bytes = work.bytes, same = hash == other_hash or nil, ratio = times[2].seconds / times[1].seconds}
end

local failed = 0
local function say(words, what)
  failed = failed + 1
  io.stderr:write("gpu_variants: ", part, ": ", words, ": ", what, "\n")
end
local chosen = #arg > 6 and table.move(arg, 7, #arg, 1, {}) or table.move(known, 2, #known, 1, {})
for _, words in ipairs(chosen) do
  if ms.clock() > deadline then say(words, "left out: the time is over")
  else
    local ok, why = pcall(measure, words)
    if ms.interrupted() then os.exit(130) end
    if not ok then say(words, type(why) == "table" and why.message or tostring(why)) end
    collectgarbage() -- of the device's memory
  end
end
os.exit(failed == 0 and 0 or 1)
