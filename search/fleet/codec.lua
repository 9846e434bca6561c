-- Jobs, results and what workers say of themselves, as bytes and back. What comes from Redis is a stranger's: each
-- field has bounds, a version stands in front, and what is not as it should be is a message.
-- VERSION: of the forms below; raised when one changes.
local codec = {VERSION = 3}

-- The most bytes of texts, and entries of lists.
local NAME, TEXT, TRACE, LIST = 200, 2000, 4 << 20, 16

-- A form: its mark, and its fields in order, {name, kind, most}. Kinds: text; count, an integer from 0; real, a number
-- from 0, which may be infinite; flag; texts, reals, lists of these.
local forms = {
  job = {mark = "msfj", {"name", "text", NAME}, {"kind", "text", NAME}, {"workload", "text", NAME},
         {"intrinsics", "text", NAME}, {"hash", "text", NAME}, {"reply", "text", NAME}, {"best", "real"},
         {"run_timeout", "real"}, {"reference_timeout", "real"}, {"seconds", "real"}, {"traces", "texts", TRACE}},
  result = {mark = "msfr", {"name", "text", NAME}, {"worker", "text", NAME}, {"hash", "text", NAME},
            {"outcome", "text", NAME}, {"reason", "text", TEXT}, {"slow", "text", TEXT}, {"seconds", "real"},
            {"low", "real"}, {"high", "real"}, {"runs", "count"}, {"busy", "flag"}, {"repeated", "flag"},
            {"build_seconds", "real"}, {"check_seconds", "real"}, {"time_seconds", "real"}, {"remark", "text", TEXT},
            {"device", "texts", TEXT, 64}, {"times", "reals", 0, 80}, {"limit", "text", NAME},
            {"limit_of", "text", NAME}, {"limit_seconds", "real"}},
  worker = {mark = "msfw", {"name", "text", NAME}, {"host", "text", NAME}, {"device", "text", TEXT},
            {"versions", "text", NAME}, {"slow", "text", TEXT}, {"capacity", "count"}, {"done", "count"},
            {"failed", "count"}, {"rate", "real"}, {"started", "real"}, {"seen", "real"}},
  queue = {mark = "msfq", {"device", "text", TEXT}, {"versions", "text", NAME}, {"protocol", "count"}},
}

-- ---- Writing ----------------------------------------------------------------------------------------------------

local write = {
  text = function(x) return string.pack("<s4", x or "") end,
  count = function(x) return string.pack("<I8", x or 0) end,
  real = function(x) return string.pack("<d", x or 0) end,
  flag = function(x) return string.pack("B", x and 1 or 0) end,
}
local function list_of(kind)
  return function(list)
    local parts = {string.pack("<I4", #(list or {}))}
    for i, x in ipairs(list or {}) do parts[i + 1] = write[kind](x) end
    return table.concat(parts)
  end
end
write.texts, write.reals = list_of "text", list_of "real"

local function encode(form, values)
  local parts = {form.mark, string.pack("<I4", codec.VERSION)}
  for _, f in ipairs(form) do parts[#parts + 1] = write[f[2]](values[f[1]]) end
  return table.concat(parts)
end

-- ---- Reading ----------------------------------------------------------------------------------------------------

local read = {}
function read.text(bytes, at, most)
  local length = string.unpack("<I4", bytes, at)
  if length > most then error(string.format("%d bytes where %d are the most", length, most), 0) end
  return string.unpack("<s4", bytes, at)
end
function read.count(bytes, at)
  local x, after = string.unpack("<I8", bytes, at)
  if x < 0 then error("a count is out of its range", 0) end
  return x, after
end
function read.real(bytes, at)
  local x, after = string.unpack("<d", bytes, at)
  if not (x >= 0) then error("a number is below 0, or none", 0) end
  return x, after
end
function read.flag(bytes, at)
  local x, after = string.unpack("B", bytes, at)
  if x > 1 then error("a flag is neither 0 nor 1", 0) end
  return x == 1, after
end
local function read_list(kind)
  return function(bytes, at, most, entries)
    local count, list = nil, {}
    count, at = string.unpack("<I4", bytes, at)
    if count > (entries or LIST) then
      error(string.format("a list of %d where %d are the most", count, entries or LIST), 0)
    end
    for i = 1, count do list[i], at = read[kind](bytes, at, most) end
    return list, at
  end
end
read.texts, read.reals = read_list "text", read_list "real"

local function decode(form, bytes)
  if #bytes < 8 or bytes:sub(1, 4) ~= form.mark then error("it does not begin as one", 0) end
  local version, at = string.unpack("<I4", bytes, 5)
  if version ~= codec.VERSION then
    error(string.format("it is of version %d, and %d is read here", version, codec.VERSION), 0)
  end
  local values = {}
  for _, f in ipairs(form) do
    local ok, x, after = pcall(read[f[2]], bytes, at, f[3], f[4])
    if not ok then error(string.format("its `%s`: %s", f[1], tostring(x):gsub("^bad argument.*%((.*)%)$", "%1")), 0) end
    values[f[1]], at = x, after
  end
  if at ~= #bytes + 1 then error(string.format("%d bytes follow it", #bytes + 1 - at), 0) end
  return values
end

for name, form in pairs(forms) do
  codec["write_" .. name] = function(values) return encode(form, values) end
  -- The values; or nil, and what is wrong.
  codec["read_" .. name] = function(bytes)
    if type(bytes) ~= "string" then return nil, "there is none" end
    local ok, values = pcall(decode, form, bytes)
    if ok then return values end
    return nil, tostring(values)
  end
end

-- ---- Results of measurers ---------------------------------------------------------------------------------------

-- What is kept of a device, as records have it.
local FACTS = {
  kernels = "integer", threads = "integer", registers = "integer", spilled_bytes = "integer", stack_bytes = "integer",
  shared_bytes = "integer", name = "string",
  driver = "integer", timing_clock = "number", raw_seconds = "number", uncaptured = "string", others = "integer",
  others_bytes = "integer", memory_left = "integer", clock = "number", memory_clock = "number", slowed = "boolean",
}

-- Names and values of a device's facts in turn.
function codec.facts_of(device)
  local list = {}
  for _, name in ipairs(msched.sorted_keys(device or {})) do
    if FACTS[name] then list[#list + 1], list[#list + 2] = name, tostring(device[name]) end
  end
  return list
end

local function fact(kind, text)
  if kind == "string" then return text end
  if kind == "boolean" then return text == "true" end
  local x = kind == "integer" and math.tointeger(tonumber(text)) or kind == "number" and tonumber(text) or nil
  return x and x >= 0 and x < math.huge and x or nil
end

-- The device that these are of; nil where there are none. What is not known is left out.
function codec.device_of(list)
  local device
  for i = 1, #list - 1, 2 do
    local kind = FACTS[list[i]]
    if kind then
      device = device or {}
      device[list[i]] = fact(kind, list[i + 1])
    end
  end
  return device
end

-- Those of candidates (jit/outcomes.def), of jobs that no worker can do, of those whose texts the server lacks, and of
-- finalists.
local OUTCOMES = {poison = true, lacking = true, retimed = true, ["not retimed"] = true}
for _, text in ipairs(msched.outcomes) do OUTCOMES[text] = true end

-- What is wrong with a result that was read; nil: nothing. hash: of the module that was sent.
function codec.fault_of(r, hash)
  if not OUTCOMES[r.outcome] then return "its outcome is none" end
  local timed = r.outcome == "measured" or r.outcome == "censored"
  if timed and r.hash ~= hash then return string.format("it is of module %s, and %s was sent", r.hash, hash) end
  return msched.record_fault {status = timed and r.outcome or "failed", seconds = r.seconds, low = r.low, high = r.high,
                              runs = r.runs, device = codec.device_of(r.device or {}),
                              search = {build_seconds = r.build_seconds, run_seconds = r.time_seconds},
                              roofline = {limit_seconds = r.limit_seconds}}
end

-- The limit of the function on the worker's device, {name, seconds, of}, as limits.lua has it; nil: it is not known, or
-- what came is none.
function codec.limit_of(r)
  local is_one = r.limit ~= "" and r.limit_seconds > 0 and r.limit_seconds < math.huge
  return is_one and {name = r.limit, seconds = r.limit_seconds, of = r.limit_of} or nil
end

return codec
