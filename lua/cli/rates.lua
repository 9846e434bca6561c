-- Rates: what a kernel does in a second, in operations of the kind that its function has most of and in bytes, and how
-- far that is from its limit (limits.lua). All that shows rates takes its words from here.
local ms = msched
local rates = {}

local KEPT = 0.5 -- of its limit: of a kernel that reaches less, a unit is named that its function could use

-- What a function does, or one that a store has the outline of, for its rates: operations of floats or of integers,
-- whichever it has more of; their unit; the bytes that it has to move. Without a function: nothing.
function rates.work_of(func)
  if not func then return {operations = 0, unit = "", bytes = 0} end
  local w = type(func) == "table" and func or func:work()
  local floats = w.floats > 0 and w.floats >= w.integers
  return {operations = floats and w.floats or w.integers, unit = floats and "GFLOP/s" or "GOP/s",
          bytes = w.read_bytes + w.written_bytes}
end

-- Operations a second without their unit, of whole numbers with commas.
local function grouped(operations, seconds)
  local rate = operations / seconds / 1e9
  local text, count = ms.rate_text(operations, "", seconds):sub(1, -2), 1
  while rate >= 1000 and count > 0 do text, count = text:gsub("^(%d+)(%d%d%d)", "%1,%2") end
  return text
end

-- Operations a second; "" where there are none.
function rates.operations_text(work, seconds)
  return ms.rate_text(work.operations, work.unit, seconds)
end

-- Bytes a second; "" where none are moved.
function rates.bytes_text(work, seconds)
  return ms.rate_text(work.bytes or 0, "GB/s", seconds)
end

-- Both.
function rates.text(work, seconds)
  local operations, bytes = rates.operations_text(work, seconds), rates.bytes_text(work, seconds)
  return operations .. (operations ~= "" and bytes ~= "" and " " or "") .. bytes
end

-- The share of its limit that a kernel reaches. limit: {name, seconds}, those that the function takes at it; nil: it is
-- not known. A kernel that is faster shows that the machine, which was busy when the limit was measured, does as much:
-- that is all of it.
function rates.share(limit, seconds)
  return limit and ms.rate_share(limit.seconds, seconds)
end

-- "96 % of float32 vectors"; nil where the limit is not known.
function rates.share_text(limit, seconds)
  local share = rates.share(limit, seconds)
  return share and string.format("%.0f %% of %s", 100 * share, limit.name)
end

-- "31 % of the bandwidth": where operations are the limit, and the bytes take at least LEAST_SHOWN of theirs; else nil.
local LEAST_SHOWN = 0.1
function rates.bandwidth_text(limit, bandwidth, bytes, seconds)
  if not limit or limit.of == "bytes" or not bandwidth then return nil end
  local share = bytes / seconds / bandwidth
  return share >= LEAST_SHOWN and string.format("%.0f %% of the bandwidth", 100 * share) or nil
end

-- The limit itself: "236 GFLOP/s of float32 vectors", "45.3 GB/s of memory".
function rates.limit_text(work, limit)
  local text = limit.of == "bytes" and rates.bytes_text(work, limit.seconds)
    or rates.operations_text(work, limit.seconds)
  return text .. " of " .. limit.name
end

-- The message about a unit that a function could use and its kernel leaves idle: "AMX unused: 64 of 6,000 GOP/s"; nil:
-- there is none. unit: limit.unit; is_used(): whether the kernel uses it, asked only where that matters.
function rates.unused_text(work, limit, seconds, is_used)
  local unit, share = limit and limit.unit, rates.share(limit, seconds)
  if not unit or not share or share >= KEPT or is_used() then return nil end
  return string.format("%s unused: %s of %s %s", unit.name, grouped(work.operations, seconds),
                       grouped(work.operations, unit.seconds), work.unit)
end

-- Whether the best of a function, made by the trace, uses the unit: of a CPU by its assembly, of a GPU by what the
-- trace asks for.
function rates.uses(unit, func, trace, target)
  if target.arch then return ms.load "lua.bench.tensor_peak".type_of {trace} ~= nil end
  local text = ms.load "lua.cli.store.record_code".text_of(ms.apply(func, trace):func(), target.text)
  return text == nil or ms.unit_is_used(unit.unit, text) -- where it is not known, nothing is said
end

return rates
