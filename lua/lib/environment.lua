-- What a file of a command's sees (rules and passes in a sandbox; functions, policies and cost models in the program's
-- own state): libraries and modules as tables of its own, so that what it changes is changed for itself alone, and
-- metatables only of what it made: those of strings and of msched's are everyone's. In the program's state it has all
-- of Lua's library but what would lead out of its environment, or past the program's limits: see open_program.
local ms = msched
local in_sandbox = ms.build == nil
local environment = {}

-- ---- Copies ------------------------------------------------------------------------------------------------------

-- Plain tables are copied with those in them, each once; what has a metatable is an object, and stays.
local copy
local function copy_members(t, copies)
  local c = {}
  copies[t] = c
  for k, v in pairs(t) do c[k] = copy(v, copies) end
  return c
end
function copy(x, copies)
  if type(x) ~= "table" then return x end
  if copies[x] then return copies[x] end
  return getmetatable(x) == nil and copy_members(x, copies) or x
end

-- Operators are many, and most files use few: one is copied when it is asked for.
local function own_operators(copies)
  local own = {}
  copies[ms.ops] = own
  local function index(t, name)
    local value = copy(ms.ops[name], copies)
    rawset(t, name, value)
    return value
  end
  local function all(t)
    for name in pairs(ms.ops) do if rawget(t, name) == nil then index(t, name) end end
    return next, t, nil
  end
  return setmetatable(own, {__index = index, __pairs = all})
end

local function own_module(copies)
  local own_ops, own = own_operators(copies), copy_members(ms, copies)
  own.ops, own.registered = own_ops, nil
  local old = getmetatable(ms)
  if old then setmetatable(own, {__index = copy(old.__index, copies)}) end
  function own.load(name) return copy(ms.load(name), copies) end
  return own
end

-- ---- What both have ----------------------------------------------------------------------------------------------

local function own_metatables(env)
  local own = in_sandbox and {} or setmetatable({}, {__mode = "k"})
  function env.getmetatable(x)
    local meta = getmetatable(x)
    if type(meta) == "table" and not own[meta] then return false end
    return meta
  end
  function env.setmetatable(t, meta)
    if type(t) ~= "table" then error("setmetatable: a table is expected, not a " .. type(t), 2) end
    if meta ~= nil and type(meta) ~= "table" then
      error("setmetatable: a metatable is a table or nil, not a " .. type(meta), 2)
    end
    local before = getmetatable(t)
    if before ~= nil and not own[before] then
      error("setmetatable: a file changes metatables of its own tables only", 2)
    end
    if type(meta) == "table" and rawget(meta, "__gc") ~= nil then
      error("setmetatable: a file's tables have no __gc, which nothing could end", 2)
    end
    setmetatable(t, meta)
    if meta then own[meta] = true end
    return t
  end
end

local function open(copies)
  local env = {}
  copies[_G] = env
  for _, name in ipairs(ms.sorted_keys(_G)) do
    if type(_G[name]) ~= "table" then env[name] = _G[name] end
  end
  for _, name in ipairs {"string", "table", "math", "utf8", "coroutine"} do env[name] = copy(_G[name], copies) end
  env._G = env
  own_metatables(env)
  env.msched = own_module(copies)
  return env
end

-- ---- In the program's own state ----------------------------------------------------------------------------------

local function load_script(env, path)
  local chunk, message = ms.load_script(path, env)
  if not chunk then return nil, message end
  return chunk
end

local function own_loading(env)
  function env.load(chunk, name, mode, ...)
    if select("#", ...) > 0 then return load(chunk, name, mode, (...)) end
    return load(chunk, name, mode, env)
  end
  function env.loadfile(path, mode, ...)
    if select("#", ...) > 0 then return loadfile(path, mode, (...)) end
    return loadfile(path, mode, env)
  end
  function env.dofile(path)
    local chunk, message
    if path == nil then chunk, message = loadfile(nil, "t", env) else chunk, message = load_script(env, path) end
    if not chunk then error(message, 0) end
    return chunk()
  end
  env.msched.load_script = function(path, own) return load_script(own or env, path) end
  env.msched.load_aside = env.msched.load_script
end

-- require finds modules in Lua, each once a file of the command's: one in C could do anything to the program.
local function own_require(env)
  local loaded = {_G = env, msched = env.msched}
  for _, name in ipairs {"string", "table", "math", "utf8", "coroutine", "os", "io", "debug"} do
    loaded[name] = env[name]
  end
  local package_ =
    {path = package.path, config = package.config, loaded = loaded, preload = {}, searchpath = package.searchpath}
  loaded.package, env.package = package_, package_
  function env.require(name)
    if type(name) ~= "string" then error("require: a module's name is expected, not a " .. type(name), 2) end
    if loaded[name] ~= nil then return loaded[name] end
    local chunk, from = package_.preload[name], ":preload:"
    if not chunk then
      local path, tried = package.searchpath(name, package_.path)
      if not path then
        error(string.format("module '%s' not found:%s\n\ta command's files take modules in Lua; a script, msched \z
                             FILE.lua, takes those in C too", name, tried), 2)
      end
      local message
      chunk, message = load_script(env, path)
      if not chunk then error(message, 0) end
      from = path
    end
    local made = chunk(name, from)
    if made ~= nil then loaded[name] = made elseif loaded[name] == nil then loaded[name] = true end
    return loaded[name], from
  end
end

-- The default files are its own; what it writes without naming a file goes to standard error, as what it prints does.
local function own_files(env)
  local own, input, output = copy(io, {}), io.stdin, io.stderr
  local function opened(what, mode, name)
    if io.type(what) then return what end
    local file, message = io.open(what, mode)
    if not file then error(string.format("io.%s: %s", name, message), 3) end
    return file
  end
  function own.input(what)
    if what ~= nil then input = opened(what, "r", "input") end
    return input
  end
  function own.output(what)
    if what ~= nil then output = opened(what, "w", "output") end
    return output
  end
  function own.read(...) return input:read(...) end
  function own.write(...) return output:write(...) end
  function own.lines(path, ...)
    if path == nil then return input:lines(...) end
    return io.lines(path, ...)
  end
  function own.close(file) return (file or output):close() end
  env.io = own
end

local COLLECTS = {collect = true, count = true, step = true, isrunning = true}

-- Not: functions and locals of frames, upvalues, the registry, metatables of all; compiled code; when the program's
-- memory is collected, and the limits that the user chose.
local function open_program(env)
  env.os, env.debug = copy(os, {}), {}
  for _, name in ipairs(ms.sorted_keys(debug)) do
    env.debug[name] = function()
      error(string.format("debug.%s may not be called here: a command's file sees its own alone", name), 2)
    end
  end
  env.debug.traceback, env.debug.sethook, env.debug.gethook = debug.traceback, debug.sethook, debug.gethook
  env.string.dump = nil
  env.print = ms.print_aside
  function env.debug.getinfo(...)
    local arguments, at = table.pack(...), type(...) == "thread" and 2 or 1
    if math.type(arguments[at]) == "integer" and at == 1 then arguments[1] = arguments[1] + 1 end
    local info = debug.getinfo(table.unpack(arguments, 1, arguments.n))
    if info then info.func = nil end
    return info
  end
  function env.collectgarbage(what, ...)
    if what ~= nil and not COLLECTS[what] then
      error(string.format("collectgarbage %q: a command's file does not choose how memory is collected",
                          tostring(what)), 2)
    end
    return collectgarbage(what, ...)
  end
  for _, name in ipairs {"rule_timeout", "skip_failing"} do
    env.msched[name] = function()
      error(string.format("ms.%s: a command's file does not choose its limits: an option does", name), 2)
    end
  end
  own_files(env)
  own_loading(env)
  own_require(env)
end

-- ---- ---------------------------------------------------------------------------------------------------------------

function environment.new()
  local env = open {}
  if in_sandbox then
    function env.require(name) return name == "msched" and env.msched or require(name) end
  else
    open_program(env)
  end
  return env
end

-- The chunk of a command's file, with an environment of its own; nil and why it is none.
function environment.load(path) return load_script(environment.new(), path) end

return environment
