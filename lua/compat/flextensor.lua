-- FlexTensor's way: an operator is registered with its arguments, its schedule space follows from its loops alone, and
-- what the search finds is a table of configs that a person can read, keep in a file, and apply later.
--
--   local flextensor = ms.load "lua.compat.flextensor"
--   local key = flextensor.task.register {op = "conv2d", args = {1, 56, 56, 64, 64, 3}}
--   local sch, buffers, configs = flextensor.schedule(key, {slevel = 4, rlevel = 2, op_trial = 64})
--   flextensor.save("conv2d.configs", configs)
--   local sch = flextensor.schedule_with_config(key, flextensor.load "conv2d.configs")
--
-- Each block that reduces has spatial loops in slevel parts and reduction loops in rlevel parts, interleaved; what can
-- be inlined is; what writes its result out moves into its tiles; the rest is made parallel and vectorized.
-- Source: Zheng et al., "FlexTensor", ASPLOS 2020, section 4 and the interface of its implementation.
local ms = msched
local lines, spaces, measure = ms.load "lua.compat.lines", ms.load "lua.compat.space", ms.load "lua.compat.measure"
local common, nearest = ms.load "rules.common", ms.load "lua.lib.nearest"
local flextensor = {task = {}}

-- ---- Tasks -------------------------------------------------------------------------------------------------------

local table_of_tasks = {}

-- The arguments as a list: those with names, as the operators of msched have them, as NAME=VALUE.
local function list_arguments(args)
  local list = table.move(args, 1, #args, 1, lines.list {})
  for _, name in ipairs(ms.sorted_keys(args)) do
    if type(name) == "string" then list[#list + 1] = name .. "=" .. tostring(args[name]) end
  end
  return list
end

-- Registers an operator with arguments, and gives its key. op: its name; name: of the task, the arguments unless said;
-- build: f(arguments…) -> a function, ops.func of the same name unless given (`msched help ops` lists them); args: a
-- list; target: native unless said; device: its number, 0.
function flextensor.task.register(t)
  t = ms.options(t, "op:string name:string build:function args:table target:string device:integer")
  if not t.op then error(ms.where() .. "flextensor.task.register: `op` names the operator", 0) end
  local args, op = t.args or {}, t.op
  local func = not t.build and ms.ops.func(op, args) or t.build and t.build(table.unpack(args))
  if ms.type(func) ~= "function" then
    error(string.format("%s`build` of %s gives a %s: it returns a function, as te.func does", ms.where(), op,
                        type(func)), 0)
  end
  local target = ms.target(t.target)
  if target.kind ~= "llvm" then
    error(string.format("%sFlexTensor's way schedules for CPUs, not for %s: `msched tune` has a space for it",
                        ms.where(), target.text), 0)
  end
  local words, listed = {}, list_arguments(args)
  for i, x in ipairs(listed) do words[i] = tostring(x) end
  local key = string.format("%s_%s_%s(%d)", op, t.name or table.concat(words, "x"), t.target or "native", t.device or 0)
  table_of_tasks[key] = {key = key, op = op, args = listed, func = func, target = t.target or "native"}
  return key
end

-- The operators that are built by their names: a list of {name, doc}. `msched help ops:NAME` explains their arguments.
function flextensor.library()
  local list = {}
  for i, op in ipairs(ms.load "lua.lib.ops.named".list) do list[i] = {name = op.name, doc = op.doc} end
  return list
end

-- Keys of all tasks, in order.
function flextensor.task.list() return ms.sorted_keys(table_of_tasks) end

local function find(key)
  if table_of_tasks[key] then return table_of_tasks[key] end
  local meant = nearest.of(tostring(key), flextensor.task.list())
  error(string.format("%sthere is no task `%s`%s: register it by task.register", ms.where(), tostring(key),
                      meant and "; did you mean `" .. meant .. "`?" or ""), 0)
end

-- The function of a task.
function flextensor.task.func(key) return find(key).func end

-- ---- The template ------------------------------------------------------------------------------------------------

local WIDEST, MOST_INNER = 64, 64 -- elements of the vectorized part; iterations of an inner part

-- The levels of a nest, outermost first, {"S" or "R", which part}: spatial ones, then by turns; a spatial one is
-- innermost.
local function levels_of(slevel, rlevel)
  local list, s, r = {}, 0, 0
  local function add(kind, n) list[#list + 1] = {kind, n} end
  local function add_spatial() s = s + 1 add("S", s) end
  for _ = 1, math.max(1, slevel - rlevel) do if s < slevel then add_spatial() end end
  while r < rlevel do
    r = r + 1
    add("R", r)
    if s < slevel - 1 or r == rlevel and s < slevel then add_spatial() end
  end
  return list
end

-- Loops in parts, by knobs: parts[loop number][level].
local function split_all(sch, cfg, prefix, loops, level, options)
  local parts = {}
  for i, l in ipairs(loops) do
    local most = options.last == l and WIDEST or MOST_INNER
    if level == 1 then parts[i] = {l} else
      parts[i] = {cfg:define_split(prefix .. i, sch:extent(l), {num_outputs = level, filter = function(e)
        for n = 3, level do if e.size[n] > most then return false end end
        return e.size[level] <= most
      end}):apply(sch, l)}
    end
  end
  return parts
end

-- The spatial and reduction loops; the last of the spatial ones is that along which the result is contiguous.
local function loops_of(sch, block)
  local kinds, loops = common.loop_kinds(sch, block)
  local spatial, reduce, last = {}, {}, nil
  for i, l in ipairs(loops) do
    if kinds[i] == "reduce" then reduce[#reduce + 1] = l
    elseif not last and sch:write_stride(block, 0, l) == 1 and sch:extent(l) > 1 then last = l
    else spatial[#spatial + 1] = l end
  end
  spatial[#spatial + 1] = last
  return spatial, reduce, last
end

-- Tiles a reduction. Its knobs are named after its block.
local function tile(sch, cfg, block, slevel, rlevel)
  local name = sch:block_name(block)
  local spatial, reduce, last = loops_of(sch, block)
  local packed = cfg:define_knob(name .. ".pack", {false, true}).val
  local caches, written = {}, sch:writes(block)[1].buffer
  for i, read in ipairs(last and packed and sch:reads(block) or {}) do
    if read.buffer ~= written and sch:read_stride(block, i - 1, last) == 1 then
      caches[#caches + 1] = sch:cache_read(block, i - 1, "global")
    end
  end
  local parts = {S = split_all(sch, cfg, name .. ".spatial", spatial, slevel, {last = last}),
                 R = split_all(sch, cfg, name .. ".reduce", reduce, rlevel, {})}
  local order, outer, tiles, first_reduce, innermost_reduce = {}, {}, nil, nil, nil
  for _, level in ipairs(levels_of(slevel, rlevel)) do
    for _, p in ipairs(parts[level[1]]) do
      order[#order + 1] = p[level[2]]
      if level[1] == "S" and level[2] == 1 then outer[#outer + 1] = p[1] end
    end
    if level[1] == "S" and not first_reduce then tiles = order[#order] end
    if level[1] == "R" and #parts.R > 0 then
      first_reduce, innermost_reduce = first_reduce or parts.R[1][1], parts.R[#parts.R][1]
    end
  end
  sch:reorder(order)
  for _, cache in ipairs(caches) do -- where it cannot stand there, it is copied as a whole
    if sch:can_compute_at(cache, innermost_reduce) then sch:compute_at(cache, innermost_reduce, true) end
    local copied = {sch:get_loops(cache)}
    if sch:is_data_parallel(copied[#copied]) and sch:extent(copied[#copied]) <= WIDEST * 4 then
      sch:vectorize(copied[#copied])
    end
  end
  local all = #outer > 1 and sch:fuse(outer) or outer[1]
  local consumer = common.only_consumer(sch, block)
  local under = tiles == outer[#outer] and all or tiles
  if consumer and sch:can_reverse_compute_at(consumer, under) then sch:reverse_compute_at(consumer, under, true) end
  local steps = cfg:define_knob(name .. ".unroll", {0, 16, 64, 512}).val
  if steps > 0 then
    sch:annotate(all, "pragma_auto_unroll_max_step", steps)
    sch:annotate(all, "pragma_unroll_explicit", 1)
  end
  sch:parallel(all)
  local inner = last and slevel > 1 and parts.S[#parts.S][slevel]
  if inner and inner == order[#order] and sch:extent(inner) > 1 then sch:vectorize(inner) end
  if first_reduce and sch:has_init(block) then sch:decompose_reduction(block, first_reduce) end
end

-- What only moves data or computes element by element: vectors, shared out among threads.
local JOBS = 32 -- parallel iterations that are enough for any number of threads
local function spread(sch, block)
  local loops = {sch:get_loops(block)}
  local found = sch:data_parallel_loops(block, JOBS, WIDEST, 0)
  if found.whole then
    local outer, inner = sch:split(#loops > 1 and sch:fuse(loops) or loops[1], {ms.rest, WIDEST})
    sch:parallel(outer)
    sch:vectorize(inner)
    return
  end
  local vectors = found.vector
  local parallel = math.min(found.parallel, #loops - vectors)
  if vectors > 0 then
    sch:vectorize(vectors > 1 and sch:fuse(table.move(loops, #loops - vectors + 1, #loops, 1, {})) or loops[#loops])
  end
  if parallel > 0 then sch:parallel(parallel > 1 and sch:fuse(table.move(loops, 1, parallel, 1, {})) or loops[1]) end
end

-- A schedule of a function by a config, which it asks for its knobs.
local function schedule_by(func, cfg, slevel, rlevel)
  local sch = ms.schedule(func)
  local root = sch:root_block()
  for _, name in ipairs(sch:block_names()) do
    local block = name ~= root and sch:get_sblock(name)
    if block and sch:is_spatial(block) and sch:can_inline(block) then sch:compute_inline(block) end
  end
  for _, name in ipairs(sch:block_names()) do
    local block = name ~= root and sch:get_sblock(name)
    if block and not sch:is_spatial(block) and common.is_nest(sch, block) and sch:is_trivial(block) then
      tile(sch, cfg, block, slevel, rlevel)
    end
  end
  for _, name in ipairs(sch:block_names()) do
    local block = name ~= root and sch:get_sblock(name)
    if block and sch:is_spatial(block) and common.is_nest(sch, block) then spread(sch, block) end
  end
  return sch
end

local function space_of(task, slevel, rlevel)
  local space = spaces.new()
  schedule_by(task.func, space:begin(), slevel, rlevel)
  return space
end

-- ---- Searching ---------------------------------------------------------------------------------------------------

local TUNERS = {searching = "model", annealing = "annealing", random = "random", grid = "grid", ga = "ga"}

-- Searches a schedule of a task. options: slevel, 4, and rlevel, 2: parts of spatial and of reduction loops; op_trial,
-- 64: trials; op_stop: trials without gain, after which it ends; timeout: seconds, after which it ends; method:
-- searching (the model's choice among many), annealing, random, grid, ga; parallel: threads; seed, db, store, listen
-- and what else ms.tune takes. Gives the schedule, its buffers {name, type, shape}, and its configs.
function flextensor.schedule(key, options)
  local task = find(key)
  local shared = measure.OPTIONS
  for _, other in ipairs {"trials:integer ", "seconds:number ", "jobs:integer ", "target:string "} do
    shared = shared:gsub(other, "")
  end
  options = ms.options(options, "slevel:integer rlevel:integer op_trial:integer op_stop:integer timeout:number \z
                                 method:string parallel:integer " .. shared)
  local slevel, rlevel, method = options.slevel or 4, options.rlevel or 2, options.method or "searching"
  if slevel < 1 or rlevel < 1 or slevel > 6 or rlevel > 6 then
    error(ms.where() .. "slevel and rlevel are from 1 to 6", 0)
  end
  if not TUNERS[method] then
    error(string.format("%sthere is no method `%s`; known are %s", ms.where(), method,
                        table.concat(ms.sorted_keys(TUNERS), ", ")), 0)
  end
  local given =
    setmetatable({tuner = TUNERS[method], trials = options.op_trial, early_stopping = options.op_stop,
                  seconds = options.timeout, jobs = options.parallel, target = task.target}, {__index = options})
  local best = measure.run(task.func, space_of(task, slevel, rlevel), function(config)
    config.asked = {}
    return schedule_by(task.func, config, slevel, rlevel)
  end, given)
  local configs = {op = task.op, args = task.args, target = best.target, slevel = slevel, rlevel = rlevel,
                   seconds = best.seconds, knobs = lines.list(best.config:plain())}
  return best.schedule, task.func:params(), configs
end

-- The schedule of a task by configs, and its buffers. Those of another operator, of other arguments, or of another
-- space are refused.
function flextensor.schedule_with_config(key, configs)
  local task = find(key)
  local function refuse(...)
    error(string.format("%sthe configs are not of task `%s`: %s", ms.where(), key, string.format(...)), 0)
  end
  if type(configs) ~= "table" or type(configs.args) ~= "table" or not math.tointeger(configs.slevel)
      or not math.tointeger(configs.rlevel) then
    refuse "they are what flextensor.schedule gives, a table with op, args, slevel, rlevel and knobs"
  end
  if configs.op ~= task.op then refuse("they are of operator `%s`, this is `%s`", tostring(configs.op), task.op) end
  local theirs, own = lines.text(lines.list(configs.args)), lines.text(task.args)
  if theirs ~= own then refuse("they are of shape %s, this is %s", theirs, own) end
  local config, why = space_of(task, configs.slevel, configs.rlevel):read(configs.knobs)
  if not config then refuse("%s", why) end
  return schedule_by(task.func, config, configs.slevel, configs.rlevel), task.func:params()
end

-- ---- Files -------------------------------------------------------------------------------------------------------

-- Writes configs to a file: JSON, a knob a line.
function flextensor.save(path, configs)
  local rows, knobs = {}, {}
  for i, k in ipairs(configs.knobs) do knobs[i] = "    " .. lines.text(lines.list(k)) end
  for _, name in ipairs {"op", "args", "target", "slevel", "rlevel", "seconds"} do
    rows[#rows + 1] = string.format('  "%s": %s', name, lines.text(configs[name]))
  end
  rows[#rows + 1] = '  "knobs": [\n' .. table.concat(knobs, ",\n") .. "\n  ]"
  local ok, message = pcall(ms.load "lua.lib.files".write, path, "{\n" .. table.concat(rows, ",\n") .. "\n}\n")
  if not ok then error("cannot write " .. message, 0) end
end

function flextensor.load(path)
  local text, message = msched.read_file(path)
  if not text then error("cannot read " .. message, 0) end
  local configs, why = lines.value(text)
  if type(configs) ~= "table" then error(string.format("%s holds no configs: %s", path, why or "it is no table"), 0) end
  return configs
end

return flextensor
