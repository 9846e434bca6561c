-- What a user's file of rules sees in a sandbox: libraries and modules as tables of its own, so that what it changes is
-- changed for itself alone, and metatables only of what it made: those of strings and of msched's are everyone's.
local function copy(t)
  local c = {}
  for k, v in pairs(t) do c[k] = v end
  return c
end

local function own_metatables(env)
  local own = {}
  function env.getmetatable(x)
    local meta = getmetatable(x)
    if type(meta) == "table" and not own[meta] then return false end
    return meta
  end
  function env.setmetatable(t, meta)
    if getmetatable(t) ~= nil and not own[getmetatable(t)] then error("setmetatable: a rule changes metatables of its own tables only", 2) end
    setmetatable(t, meta)
    if meta then own[meta] = true end
    return t
  end
end

local function own_module()
  local ms = copy(msched)
  ms.te, ms.ops, ms.schedule_methods, ms.registered = copy(msched.te), copy(msched.ops), copy(msched.schedule_methods), nil
  function ms.load(name)
    local loaded = msched.load(name)
    return type(loaded) == "table" and getmetatable(loaded) == nil and copy(loaded) or loaded
  end
  return ms
end

return function()
  local env = copy(_G)
  env._G = env
  for _, name in ipairs {"string", "table", "math", "utf8", "coroutine"} do env[name] = copy(_G[name]) end
  own_metatables(env)
  env.msched = own_module()
  function env.require(name) return name == "msched" and env.msched or require(name) end
  return env
end
