-- The limit of a function on a machine, as measured there: the seconds that it takes at least, by the roofline.
-- Operations of each type are held against the fastest unit that does them, units against one another, and the bytes
-- that must be moved against the bandwidth of a buffer as large: kernels are timed again and again, so what fits a
-- cache comes from there.
-- Source: Williams et al., "Roofline", CACM 2009; Ilic et al., "Cache-aware roofline model", IEEE CAL 2014.
local ms = msched
local peak, tensor_peak, rates = ms.load "lua.bench.peak", ms.load "lua.bench.tensor_peak", ms.load "lua.cli.rates"
local device_units = ms.load "lua.bench.device_units"

local Limits = {}
Limits.__index = Limits

-- ---- Of what can be measured, {key, name, rate(), call() or nil, unit} ----------------------------------------------

-- rate(): operations or bytes a second, at a glance; call(): {call, work}, for timing it in turn with others. unit: {…}
-- where its instructions must be asked for.

local function vectors(target, type)
  return {key = type, name = type .. " vectors", rate = function() return peak.vectors(target, type) end,
          call = function() return peak.vectors_call(target, type) end}
end

local function x86_unit(target, u)
  return {key = "unit " .. u.unit, name = u.name, unit = u.unit > 0 and {name = u.name, unit = u.unit} or nil,
    rate = function()
    return peak.undisturbed(peak.cores_of(target), function(n) return ms.unit_rate(u.unit, n, target.vector_bits) end)
  end}
end

-- What code for short floats does in others, where there is nothing for them.
local WIDER = {float16 = {"float16", "float32"}, bfloat16 = {"float32"}, ["float16 products"] = {"float32"},
               ["bfloat16 products"] = {"float32"}, ["float16 products in float16"] = {"float16", "float32"},
               ["int8 products"] = {"int32"}}

local function has_float16() return ms.host().features:find("avx512fp16", 1, true) ~= nil end

-- Those of a CPU that do a kind of operations.
local function of_cpu(target, kind)
  local list = {}
  for _, u in ipairs(ms.units(target.text)) do if u.products == kind then list[#list + 1] = x86_unit(target, u) end end
  if #list > 0 and kind == "int8 products" then return list end
  for _, type in ipairs(WIDER[kind] or {kind}) do
    if type ~= "float16" or has_float16() then list[#list + 1] = vectors(target, type) end
  end
  return list
end

local TENSOR = {["float16 products"] = "f16", ["float16 products in float16"] = "f16", ["bfloat16 products"] = "bf16",
                ["int8 products"] = "s8"}

-- CUDA cores: float32 as it is measured, other types by how many times as fast the architecture does them.
local function cuda_cores(target, plain, kind)
  local ratio, type = device_units.ratio(target.arch, kind)
  if kind ~= "float32" then
    return ratio and {key = kind .. " of CUDA cores", name = "CUDA cores on " .. type,
                      rate = function() return ratio * peak.device_glance(plain.text, target.arch) end}
  end
  return {key = kind, name = "CUDA cores", rate = function() return peak.device_glance(plain.text, target.arch) end,
          call = function() return peak.device_call(plain) end}
end

-- Those of a GPU. multiplied: what the schedules have tensor cores multiply: TF32 is not what was asked for unless they
-- do.
local function of_device(target, kind, multiplied)
  local type = TENSOR[kind] or (kind == "float32" and multiplied == "tf32" and "tf32") or nil
  local plain = ms.target("cuda -arch=" .. target.text:match "-arch=(%S+)") -- without limits that are not the device's
  if type and target.arch >= tensor_peak.least(type) then
    local function device() return peak.device_of(target.arch) end
    return {{key = type, name = "tensor cores on " .. tensor_peak.name(type), unit = {name = "tensor cores"},
             tensor_cores = tensor_peak.name(type),
             rate = function() return tensor_peak.glance(device(), plain, type) end,
             call = function() return tensor_peak.call(device(), plain, type) end}}
  end
  return {cuda_cores(target, plain, kind)}
end

local LEAST, MOST = 1 << 13, 1 << 30 -- bytes that are read for the bandwidth of so many
local FAR, FARTHER = 1 << 26, 4 -- bytes that lie in memory, and how many times the third cache they have at least
local SIZES = 2 -- of each doubling, that are read for all between

-- What holds so many bytes, by the nearest level of memory that has room for them; its bandwidth is that of reading a
-- buffer of nearly as many, not fewer: a machine may lend less of a cache than it says it has, and a power of two below
-- may lie in a nearer one. The functions of a network share a few sizes, as each takes some 0.1 s to measure; all that
-- lie far beyond the caches share one, as a gigabyte takes seconds, and is read no slower. in_turn: read beside what is
-- timed, as other programs take their share of memory, more at one time than at another.
local function memory_of_cpu(target, bytes, in_turn)
  local cores = peak.cores_of(target)
  local levels = {{"the L1 caches", target.l1_bytes * cores}, {"the L2 caches", target.l2_bytes * cores},
                  {"the L3 cache", target.l3_bytes}}
  local name, most = "memory", math.min(math.max(FAR, FARTHER * target.l3_bytes), MOST)
  for i = #levels, 1, -1 do if bytes <= levels[i][2] then name, most = table.unpack(levels[i]) end end
  local size = math.min(math.max(math.ceil(2 ^ (math.ceil(SIZES * math.log(bytes, 2)) / SIZES)), LEAST), most)
  return {key = "memory of " .. size, name = name,
          rate = function() return peak.bandwidth(target, size, bytes <= levels[2][2]) end,
          call = in_turn and function() return peak.reading_call(target, size) end or nil}
end

local function memory_of_device(target, bytes)
  local device = peak.device_of(target.arch)
  local plain = ms.target("cuda -arch=" .. target.text:match "-arch=(%S+)")
  if bytes <= device.l2_bytes and not target.text:find("-timing=cold", 1, true) then
    return {key = "the L2 cache", name = "the L2 cache",
            rate = function() return peak.device_bandwidth(plain, device.l2_bytes // 2) end}
  end
  return {key = "memory", name = "memory", rate = function() return peak.device_bandwidth(plain) end,
          call = function() return peak.device_copy_call(plain) end}
end

-- ---- Limits --------------------------------------------------------------------------------------------------------

local SHORT = 0.01 -- seconds of timing a call alone

local function rate_of_call(made)
  local times = ms.time_in_turn({made.call}, SHORT)[1]
  return made.work / peak.least(times.seconds, times.low)
end

-- The rate of what can be measured: as it is known; or again, and then the most of all times.
function Limits:rate(target, source, again)
  local key = target.text .. ": " .. source.key
  if not self.known[key] or again then
    if self.before then self.before() end
    local made = self.calls and source.call and self:call(target, source)
    self.known[key] = math.max(self.known[key] or 0, made and rate_of_call(made) or source.rate())
  end
  return self.known[key]
end

-- The call that does a source's work, made once; where calls are kept.
function Limits:call(target, source)
  local key = target.text .. ": " .. source.key
  self.calls[key] = self.calls[key] or source.call()
  return self.calls[key]
end

-- Takes a rate that was measured elsewhere, in turn with a kernel.
function Limits:take(target, source, rate) self.known[target.text .. ": " .. source.key] = rate end

-- The fastest that does a kind of operations, and its rate; nil: it is not known how fast that is.
function Limits:fastest(target, kind, multiplied, again)
  local best, most
  for _, source in ipairs(target.arch and of_device(target, kind, multiplied) or of_cpu(target, kind)) do
    local rate = self:rate(target, source, again == source.key)
    if not most or rate > most then best, most = source, rate end
  end
  return best, most
end

-- Seconds that each unit takes for what it is the fastest at, by the unit's key: {source, seconds}; the longest of
-- them; and the operations of which it is not known how fast they are done.
function Limits:arithmetic(target, operations, multiplied, again)
  local by_key, longest, unknown = {}, nil, 0
  for _, kind in ipairs(ms.sorted_keys(operations)) do
    local source, rate = self:fastest(target, kind, multiplied, again)
    if not source then unknown = unknown + operations[kind]
    else
      local of = by_key[source.key] or {source = source, seconds = 0}
      by_key[source.key], of.seconds = of, of.seconds + operations[kind] / rate
      if not longest or of.seconds > longest.seconds then longest = of end
    end
  end
  return longest, unknown
end

local function runs_here(target)
  return target.arch and #ms.devices() > 0
    or not target.arch and target.kind == "llvm" and pcall(ms.target, target.text, {runs = true})
end

-- Seconds that operations of unknown speed take at least where they are as fast as those of float32; they may be
-- faster.
function Limits:seconds_of_unknown(target, count)
  if count == 0 then return 0 end
  local _, rate = self:fastest(target, "float32")
  return rate and count / rate or math.huge
end

-- The limit of a function on a target, {seconds, name, of = "operations" or "bytes", unit, arithmetic, memory}; nil: it
-- is not known. again: a limit that was believed before: what it was measured by is measured again. traces: of the
-- space, or of the best. copies: of the data, which are timed in turn, and so is the bandwidth; nil: there is one.
-- unit: where most operations have instructions of their own, {name, seconds, unit}, whatever the limit. arithmetic
-- (nil where there is none that is known) and memory: {name, seconds, source} of either.
function Limits:of(func, target, again, traces, copies)
  local work = func:work()
  local bytes, multiplied = work.read_bytes + work.written_bytes,
    target.arch and traces and tensor_peak.type_of(traces) or nil
  if bytes == 0 or not runs_here(target) then return nil end
  local repeated = again and again[again.of == "bytes" and "memory" or "arithmetic"].source.key
  local longest, unknown = self:arithmetic(target, work.operations, multiplied, repeated)
  local source = target.arch and memory_of_device(target, bytes)
    or memory_of_cpu(target, bytes * (copies or 1), copies ~= nil)
  local memory =
    {name = source.name, source = source, seconds = bytes / self:rate(target, source, repeated == source.key)}
  local arithmetic = longest and {name = longest.source.name, source = longest.source, seconds = longest.seconds}
  local limit = arithmetic and arithmetic.seconds > memory.seconds and arithmetic or memory
  if self:seconds_of_unknown(target, unknown) > limit.seconds then return nil end
  local unit = longest and longest.source.unit
  return {seconds = limit.seconds, name = limit.name, of = limit == memory and "bytes" or "operations",
          arithmetic = arithmetic, memory = memory,
          unit = unit and {name = unit.name, unit = unit.unit, seconds = longest.seconds}}
end

-- What was measured, each once, when it is first asked for. keeps_calls: calls are kept, for timing them in turn with
-- others.
local function open(keeps_calls) return setmetatable({known = {}, calls = keeps_calls and {} or nil}, Limits) end

-- What tuning takes (search/tune.lua): limit and unused. What is measured in vain, as a device that is lost, limits
-- nothing. before(): called before each thing that is measured, where it is given.
local function for_tuning(before)
  local limits, list = open(), {}
  limits.before = before
  function list.limit(func, target, again, traces)
    local ok, limit = pcall(limits.of, limits, func, target, again, traces)
    return ok and limit or nil
  end
  function list.unused(task)
    local best, work = task.fastest, rates.work_of(task.func)
    return rates.unused_text(work, task.limit, best.seconds,
                             function() return rates.uses(task.limit.unit, task.func, best.trace, task.target) end)
  end
  return list
end

-- The message about a task whose kernel was not measured: of the units that do what its function does most of, the
-- fastest, where the kernel uses none of them; nil: it uses one, there is none, or the machine is another.
local function unused_unmeasured(task)
  local operations, most, name = task.func:work().operations, nil, nil
  for _, kind in ipairs(ms.sorted_keys(operations)) do
    if not most or operations[kind] > operations[most] then most = kind end
  end
  for _, u in ipairs(not task.target.arch and runs_here(task.target) and ms.units(task.target.text) or {}) do
    if u.products == most and u.unit > 0 then
      if rates.uses(u, task.func, task.fastest.trace, task.target) then return nil end
      name = u.name
    end
  end
  return name and name .. " unused"
end

-- The unit of a limit that a record has, of which only the name is known: {name, unit}; nil: it is no unit's.
local function unit_named(name, target)
  if target.arch then return name:find "^tensor cores" and {name = "tensor cores"} or nil end
  for _, u in ipairs(ms.units(target.text)) do
    if u.unit > 0 and u.name == name then return {name = name, unit = u.unit} end
  end
  return nil
end

return {open = open, for_tuning = for_tuning, unused_unmeasured = unused_unmeasured, of_device = of_device,
        unit_named = unit_named}
