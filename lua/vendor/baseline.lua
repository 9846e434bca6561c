-- What vendors' libraries take for what a function computes: timed before tuning begins (tune --vendors), and shown
-- beside the best.
local ms = msched
local named, work, apart = ms.load "lua.lib.ops.named", ms.load "lua.bench.work", ms.load "lua.vendor.apart"

local beside = {}

local SECONDS = 0.1 -- of timing, each
local PLAIN = "plain$" -- in the name of a library that leaves memory laid out as it is, and so is slower than itself

-- A function of three tensors as an operator that multiplies matrices; nil: it is none. A function that was not made of
-- an operator's name is known by its structure, in which its block's name counts: that of its result.
local function product_of(func)
  local params, shapes = func:params(), {}
  for i, p in ipairs(params) do shapes[i] = p.type == "float32" and p.shape or {} end
  local a, c = shapes[1], shapes[3]
  if #shapes ~= 3 or #a ~= #c or #a < 2 or #a > 3 then return nil end
  local rank = #a
  local m, n, k = c[rank - 1], c[rank], a[rank]
  for _, given in ipairs(rank == 2 and {{"matmul", {m, n, k}}, {"dense", {m, k, n}}}
                         or {{"batch_matmul", {a[1], m, n, k}}}) do
    local operator, te = given[1], ms.te
    local made, like = pcall(function()
      local A, B = te.placeholder(shapes[1]), te.placeholder(shapes[2])
      return te.func("like", {A, B, ms.ops[operator](A, B, {name = params[3].name})})
    end)
    if made and like:hash() == func:hash() then
      return {operator = operator, values = named.values(operator, given[2])}
    end
  end
end

-- Runs a library's call; where a device's fails, its process is given up, as the device's context may be spoiled.
local function run(v)
  if not v.call:on_device() then return v.call:run() end
  local ran, why = pcall(v.call.run, v.call)
  if not ran then error(apart.spoiled(v.name, apart.reason(why)), 0) end
end

-- The libraries' calls for what the function computes: {name, library, call, routine} each, on what kernels for the
-- target are timed on, by which they choose their ways.
local function calls_of(func, origin, vendors, target)
  local arrays = ms.arrays_for(func, 1)
  local w, list = work.of(origin.operator, origin.values, arrays), {}
  if w then ms.fill_for_timing(func, arrays, target.text) end
  for _, v in ipairs(w and vendors or {}) do
    apart.running(v:name())
    local call = not v:name():find(PLAIN)
      and v:prepare(work.into(w, ms.array(arrays[#arrays]:shape(), arrays[#arrays]:type())))
    if call and call:on_device() and call:routine() == "" then run {name = v:name(), call = call} end -- it failed
    if call then list[#list + 1] = {name = v:name(), library = tostring(v), call = call, routine = call:routine()} end
  end
  if w and w.again then w.again() end
  return list
end

-- The fastest of calls that were not run yet, {name =, seconds =, library =, routine =}: of long ones by their second
-- run, of others in turn.
local function fastest(list)
  local best, short, calls = nil, {}, {}
  local function take(v, seconds)
    if not best or seconds < best.seconds then
      best = {name = v.name, seconds = seconds, library = v.library, routine = v.routine ~= "" and v.routine or nil}
    end
  end
  for _, v in ipairs(list) do
    apart.running(v.name)
    run(v)
    local seconds = work.seconds_of_a_run(v.call)
    if seconds > SECONDS then take(v, seconds) else short[#short + 1], calls[#calls + 1] = v, v.call end
  end
  apart.running ""
  for i, t in ipairs(#calls > 0 and ms.time_in_turn(calls, SECONDS) or {}) do take(short[i], t.seconds) end
  return best
end

-- The fastest of vendors' routines for a function that is an operator's, {operator, values}.
function beside.fastest_here(func, origin, vendors, target) return fastest(calls_of(func, origin, vendors, target)) end

local function say(text) io.stderr:write("msched: ", text, "\n") end

-- Those of a device are asked in a process of their own, where there can be one: a function of (func, origin).
local function open_apart(target)
  local function lost(name, why) say(string.format("%s fails: %s", name, why)) end
  for _, note in ipairs(apart.ask({ask = "vendors", target = target.text}, lost).notes) do say(note) end
  return function(func, origin)
    local asked, best =
      pcall(apart.ask, {ask = "beside", target = target.text, script = func:script(), origin = origin}, lost)
    if ms.interrupted() then error(best, 0) end
    if not asked then say(tostring(best)) end
    return asked and best.seconds and best or nil
  end
end

-- The libraries for the target, which is of the host or of a device; those of a device that are left out are said.
-- library: the path of oneDNN's, or nil. A function of (func, origin), as fastest_here.
local function open(target, library)
  if target.arch and apart.is_there() then return open_apart(target) end
  local vendors, notes
  if target.arch then
    vendors, notes = ms.device_vendors(target.text)
  else
    vendors, notes = ms.vendors(target.cores, library), {}
  end
  for _, note in ipairs(notes) do say(note) end
  return function(func, origin) return apart.here(beside.fastest_here, func, origin, vendors, target) end
end

-- A function (func, target) that gives the fastest of the libraries' routines, {name =, seconds =, library =, routine
-- =}; nil where they have none for it. library: the path of oneDNN's, or nil. Raises what is missing.
function beside.vendors(library)
  local opened = {} -- by what they are opened for: a device, or so many cores
  return function(func, target)
    local key, origin = target.arch and target.text or target.cores, named.origin(func) or product_of(func)
    opened[key] = opened[key] or open(target, library)
    return origin and opened[key](func, origin) or nil
  end
end

return beside
