-- Policies: found by name, and run as coroutines. A policy is {name =, needs = {features =, model =}, run =
-- function(env) … end}; run asks for measurements by env:measure(candidates), which gives what came of them when they
-- are there. Where it ends before all trials are done, it may return why, in words.
local raised_text = msched.load "lua.lib.raised"
local policies = {}

local SHIPPED =
  {"analytical", "annealing", "coordinate", "evolutionary", "grid", "random", "replay_function", "replay_trace"}
local DEFAULT = "analytical"
local OLD = {draft_verify = "analytical"} -- names that scripts may still have

-- A policy's file asks for pools and measuring, so it runs with the rights of the program.
local function load_file(path)
  local chunk, message = msched.load_aside(path)
  if not chunk then error(message, 0) end
  local ok, policy = msched.interruptible(chunk)
  if not ok then error(raised_text(policy, path), 0) end
  if type(policy) ~= "table" or policy.kind ~= "policy" then
    error(path .. ": the file returns no policy; end it with `return ms.policy {…}`", 0)
  end
  return policy
end

-- Those of users by name, the last registered of a name first, and then those shipped.
local function by_name()
  local names, found = {}, {}
  local function add(name, load)
    if found[name] then return end
    found[name], names[#names + 1] = load, name
  end
  local registered = msched.registered.policy
  for i = #registered, 1, -1 do add(registered[i].name, function() return registered[i] end) end
  for _, name in ipairs(SHIPPED) do add(name, function() return msched.load("search.policy." .. name) end) end
  table.sort(names)
  return found, names
end

-- A policy by its name, a file's, or itself.
function policies.find(name)
  if type(name) == "table" and name.kind == "policy" then return name end
  name = name or DEFAULT
  if name:find "%.lua$" then return load_file(name) end
  local found, names = by_name()
  local find = found[name] or found[OLD[name]]
  if find then return find() end
  error(string.format("there is no policy `%s`; known are %s, and files, NAME.lua, that return one", name,
                      table.concat(names, ", ")), 0)
end

-- Whether it is written in one of msched's own files.
function policies.is_shipped(policy) return debug.getinfo(policy.run, "S").source:find("^=msched/") ~= nil end

-- ---- A policy that runs ----------------------------------------------------------------------------------------

local REQUEST = {} -- what env:measure yields: nothing else that is yielded is a request

local Running = {}
Running.__index = Running

-- Asks for measurements, from within a policy; gives what came of them. The list is kept here: a policy that runs
-- itself as a coroutine of its own sees what it yields, and yields it on. What it does not yield on asks nobody, and is
-- refused where nothing is asked for behind it.
local LOST, REMEDY = "asked for measurements in a coroutine of its own and did not yield on what that yielded",
                     "call env:measure outside of it, or yield on what it yields and resume it with what comes back"
function Running:ask(candidates)
  self.request = candidates
  return coroutine.yield(REQUEST)
end

-- What a policy raises by what it called: not its own fault.
local FOREIGN = {__tostring = function(e) return tostring(e.message) end}
function policies.raise_foreign(message) error(setmetatable({message = message}, FOREIGN), 0) end

-- seconds: how long it may run without asking for measurements.
function policies.start(policy, body, seconds)
  return setmetatable({policy = policy, thread = coroutine.create(body), seconds = seconds}, Running)
end

-- Where it is, or was when it failed: the innermost line of its file; else where it begins.
function Running:place()
  local own = debug.getinfo(self.policy.run, "S")
  for level = 0, math.huge do
    local at = debug.getinfo(self.thread, level, "Sl")
    if not at then return string.format("%s:%d", own.short_src, own.linedefined) end
    if at.source == own.source and at.currentline > 0 then
      return string.format("%s:%d", at.short_src, at.currentline)
    end
  end
end

-- Says what is wrong with it, and where. What it raised may have the place already.
function Running:complain(what, hint)
  local place = self:place()
  while what:sub(1, #place + 1) == place .. ":" do what = what:sub(#place + 2):gsub("^%s+", "") end
  return string.format("policy `%s` (%s): %s%s", self.policy.name, place, what, hint and "; " .. hint or "")
end

-- Goes on until it asks, for `most` seconds at most: gives the candidates; nil where it has ended, or these are over;
-- nil and a message where it failed; nil, nil and why it ended, where it said so.
function Running:resume(most, ...)
  if self.seconds == 0 then most = 0 end -- there is no limit
  local timed, alive, tag = msched.policy_within(self.seconds, most, coroutine.resume, self.thread, ...)
  if timed == nil then return nil end
  if timed == "own" then
    return nil, self:complain(string.format("ran longer than %g seconds without asking for measurements", self.seconds),
                              "make it end sooner, or allow more with --policy-timeout")
  end
  if not timed or not alive then
    local raised = not timed and alive or tag
    if type(raised) == "table" and getmetatable(raised) == FOREIGN then
      return nil, tostring(rawget(raised, "message"))
    end
    return nil, self:complain(raised_text(raised))
  end
  if coroutine.status(self.thread) == "dead" then
    if self.request then return nil, self:complain(LOST, REMEDY) end
    if tag == nil or type(tag) == "string" then return nil, nil, tag and msched.load "lua.lib.shortened"(tag) end
    return nil,
      self:complain("returned a " .. type(tag), "`run` returns nothing, or why it ended, a text: it asks for \z
                                                 measurements by env:measure(candidates)")
  end
  local candidates = self.request
  self.request = nil
  if not rawequal(tag, REQUEST) or not candidates then
    return nil, self:complain("yielded a " .. type(tag), "what yields is env:measure(candidates), and nothing else")
  end
  return candidates
end

return policies
