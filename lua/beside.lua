-- What vendors' libraries take for what a function computes: timed before tuning begins (tune --vendors), and shown beside
-- the best.
local ms = msched
local named, work = ms.load "lua.ops.named", ms.load "lua.bench_work"

local beside = {}

local SECONDS = 0.1 -- of timing, each
local PLAIN = "plain$" -- in the name of a library that leaves memory laid out as it is, and so is slower than itself

-- A function of three tensors as an operator that multiplies matrices; nil: it is none. A function that was not made of an
-- operator's name is known by its structure, in which its block's name counts: that of its result.
local function product_of(func)
  local params, shapes = func:params(), {}
  for i, p in ipairs(params) do shapes[i] = p.type == "float32" and p.shape or {} end
  local a, c = shapes[1], shapes[3]
  if #shapes ~= 3 or #a ~= #c or #a < 2 or #a > 3 then return nil end
  local rank = #a
  local m, n, k = c[rank - 1], c[rank], a[rank]
  for _, given in ipairs(rank == 2 and {{"matmul", {m, n, k}}, {"dense", {m, k, n}}} or {{"batch_matmul", {a[1], m, n, k}}}) do
    local operator, te = given[1], ms.te
    local made, like = pcall(function()
      local A, B = te.placeholder(shapes[1]), te.placeholder(shapes[2])
      return te.func("like", {A, B, ms.ops[operator](A, B, {name = params[3].name})})
    end)
    if made and like:hash() == func:hash() then return {operator = operator, values = named.values(operator, given[2])} end
  end
end

-- The libraries' calls for what the function computes: {name, call} each, on what kernels for the target are timed on.
local function calls_of(func, vendors, target)
  local origin = named.origin(func) or product_of(func)
  local arrays = origin and ms.arrays_for(func, 1)
  local w, list = origin and work.of(origin.operator, origin.values, arrays), {}
  for _, v in ipairs(w and vendors or {}) do
    local call = not v:name():find(PLAIN) and v:prepare(work.into(w, ms.array(arrays[#arrays]:shape())))
    if call then list[#list + 1] = {name = v:name(), call = call} end
  end
  if #list > 0 then ms.fill_for_timing(func, arrays, target.text) end
  return list
end

-- The fastest of calls that were not run yet, {name =, seconds =}: of long ones by their second run, of others in turn.
local function fastest(list)
  local best, short, calls = nil, {}, {}
  local function take(v, seconds)
    if not best or seconds < best.seconds then best = {name = v.name, seconds = seconds} end
  end
  for _, v in ipairs(list) do
    v.call:run()
    local seconds = work.seconds_of_a_run(v.call)
    if seconds > SECONDS then take(v, seconds) else short[#short + 1], calls[#calls + 1] = v, v.call end
  end
  for i, t in ipairs(#calls > 0 and ms.time_in_turn(calls, SECONDS) or {}) do take(short[i], t.seconds) end
  return best
end

-- The libraries for the target, which is of the host or of a device; those of a device that are left out are said. library: the
-- path of oneDNN's, or nil.
local function open(target, library)
  if not target.arch then return ms.vendors(target.cores, library) end
  local vendors, notes = ms.device_vendors(target.text)
  for _, note in ipairs(notes) do io.stderr:write("msched: ", note, "\n") end
  return vendors
end

-- A function (func, target) that gives the fastest of the libraries' routines, {name =, seconds =}; nil where they have none
-- for it. library: the path of oneDNN's, or nil. Raises what is missing.
function beside.vendors(library)
  local opened = {} -- by what they are opened for: a device, or so many cores
  return function(func, target)
    local key = target.arch and target.text or target.cores
    opened[key] = opened[key] or open(target, library)
    return fastest(calls_of(func, opened[key], target))
  end
end

return beside
