-- Asks for vendors' routines in a process of their own (lua/vendor/worker.lua): a library that crashes, or whose kernel
-- spoils the device's context, costs its line alone.
local ms = msched

local apart = {}

-- ---- Lines -------------------------------------------------------------------------------------------------------

local function written(x, out)
  if type(x) == "table" then
    out[#out + 1] = "{"
    for k, v in pairs(x) do
      if type(v) ~= "userdata" and type(v) ~= "function" then
        out[#out + 1] = "["
        written(k, out)
        out[#out + 1] = "]="
        written(v, out)
        out[#out + 1] = ","
      end
    end
    out[#out + 1] = "}"
  elseif type(x) == "string" then out[#out + 1] = (string.format("%q", x):gsub("\\\n", "\\n"):gsub("\r", "\\r"))
  elseif type(x) == "number" then out[#out + 1] = string.format("%q", x)
  else out[#out + 1] = tostring(x) end
end

-- A table of numbers, strings, booleans and such tables as one line; and back.
function apart.write(t)
  local out = {}
  written(t, out)
  return table.concat(out)
end

function apart.read(line) return assert(load("return " .. line, "=line", "t", {}))() end

-- What is about to be run, by name: a vendor's, or "" for what is ours. In the process of the vendors it is said to who
-- asks.
function apart.running() end

-- The first line of what was raised, without the place in our files.
function apart.reason(why) return (tostring(why):match "[^\n]*":gsub("^%S-%.lua:%d+: ", "")) end

-- What is raised where a vendor's routine fails, and perhaps the device's context with it: the process is given up.
function apart.spoiled(name, why)
  return setmetatable({spoiled = name, why = why},
                      {__tostring = function() return string.format("%s fails: %s", name, why) end})
end

-- What a function gives in this process, where there is no other: what is spoiled is an error like any.
function apart.here(f, ...)
  local results = table.pack(pcall(f, ...))
  if not results[1] then error(type(results[2]) == "table" and tostring(results[2]) or results[2], 0) end
  return table.unpack(results, 2, results.n)
end

-- ---- Asking ------------------------------------------------------------------------------------------------------

local worker -- the process, one for all

-- Whether there can be one: where the program is.
function apart.is_there()
  worker = worker or ms.worker "lua.vendor.worker"
  return worker ~= nil
end

-- The answer to a request; or nil, whose routine ended it, nil for what is none's, and why.
local function ask(request)
  local running = ""
  if apart.is_there() and worker:say(apart.write(request)) then
    while true do
      local line, why = worker:line()
      if not line then
        worker = nil
        return nil, running ~= "" and running or nil, why
      end
      local said = apart.read(line)
      if said.answer then return said.answer end
      if said.failed then error(said.failed, 0) end
      if said.spoiled then
        worker = nil -- with the context
        return nil, said.spoiled, said.why
      end
      running = said.running
    end
  end
  worker = nil
  return nil, nil, "its process cannot be asked"
end

local MOST_ENDS = 8 -- vendors, and a process that cannot be started

-- The answer to a request that leaves out what ended the process before: `skipped` and lost (name, why) tell of each.
-- Raises where it ends by what is no vendor's.
function apart.ask(request, lost)
  request.skipped = {}
  for _ = 1, MOST_ENDS do
    local answer, whose, why = ask(request)
    if answer then return answer end
    if not whose then error(string.format("the process in which vendors' libraries run: %s", why), 0) end
    lost(whose, why)
    table.insert(request.skipped, whose)
  end
  error("the process in which vendors' libraries run ends again and again", 0)
end

return apart
