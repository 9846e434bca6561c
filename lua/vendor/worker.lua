-- Vendors' libraries in a process of their own (lua/vendor/apart.lua starts it): what crashes there, or spoils the
-- device's context, costs that process. It reads requests, a table a line, and answers each by one; between, it names
-- what it is about to run.
local ms = msched
local apart, bench_row, beside = ms.load "lua.vendor.apart", ms.load "lua.bench.row", ms.load "lua.vendor.baseline"
local named, tools = ms.load "lua.lib.ops.named", ms.load "lua.bench.tools"

local function say(t)
  io.stdout:write(apart.write(t), "\n")
  io.stdout:flush()
end

local opened, limits = {}, nil -- for a target

local function open(target)
  if opened.text ~= target then
    local vendors, notes = ms.device_vendors(target)
    opened, limits = {text = target, target = ms.target(target), vendors = vendors, notes = notes}, nil
  end
  return opened
end

-- The vendors without those of these names.
local function without(vendors, names)
  local skipped, list = {}, {}
  for _, name in ipairs(names) do skipped[name] = true end
  for _, v in ipairs(vendors) do if not skipped[v:name()] then list[#list + 1] = v end end
  return list
end

local answers = {}

function answers.vendors(request)
  local known, list = open(request.target), {}
  for i, v in ipairs(known.vendors) do list[i] = {name = v:name(), text = tostring(v)} end
  return {vendors = list, notes = known.notes}
end

function answers.row(request)
  local known = open(request.target)
  if request.store then tools.take_intrinsics(request.store, request.record) end
  limits = limits or bench_row.limits()
  local member = request.member
  local func = member.operator and named.func(member.operator, member.words) or ms.from_script(member.script)
  local row = bench_row.measure_here(member, func, ms.read_trace(request.trace),
                                     known.target, without(known.vendors, request.skipped), limits, request.seconds)
  for _, v in ipairs(row.vendors) do v.call, v.result, v.vendor = nil, nil, nil end
  collectgarbage() -- of the device's memory, too
  return row
end

function answers.beside(request)
  local known = open(request.target)
  local best = beside.fastest_here(ms.from_script(request.script), request.origin,
                                   without(known.vendors, request.skipped), known.target)
  collectgarbage()
  return best or {}
end

apart.running = function(name) say {running = name} end
for line in io.lines() do
  local request = apart.read(line)
  local ok, answer = pcall(answers[request.ask], request)
  if ok then say {answer = answer}
  elseif type(answer) == "table" then say {spoiled = answer.spoiled, why = answer.why}
  else say {failed = tostring(answer)} end
end
