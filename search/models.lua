-- Cost models by name: xgboost and random (model.c), a file that one was saved to, or a user's in Lua.
local raised_text = msched.load "lua.lib.raised"
local models = {}

-- What a user's model changes is its own: the list, and its items, which are as they were for the policy.
local function copies_of(list)
  local copies = {}
  for i, item in ipairs(list) do
    local copy = setmetatable({}, getmetatable(item))
    for name, value in next, item do copy[name] = value end
    copies[i] = copy
  end
  return copies
end

-- A user's model: its calls end in time and are named in errors; what it predicts is checked. Where it is `required`,
-- an error in it ends its task; else the search goes on without.
-- seconds: what a policy may take; a model has no more, learning outside of the policy too. nil: no such limit.
local function guarded(definition, seed, seconds)
  local own = setmetatable({seed = seed}, {__index = definition})
  local function call(method, list)
    local ok, result, message = msched.limited("model", {name = definition.name, apply = definition[method]}, own, list)
    if not ok then error(message, 0) end
    return result
  end
  local function learn(samples)
    if not seconds or seconds == 0 then return call("update", samples) end
    local done, message = msched.policy_within(seconds, math.huge, call, "update", samples)
    if done ~= true then error(message, 0) end
  end
  local function refuse(format, ...)
    local at = debug.getinfo(definition.predict, "S")
    error(string.format("model `%s` (%s:%d) %s; predict returns a list of numbers, one a candidate, the higher the \z
                         better", definition.name, at.short_src, at.linedefined, string.format(format, ...)), 0)
  end
  return {
    required = definition.required,
    update = function(_, samples) learn(samples) end,
    predict = function(_, candidates)
      local scores = call("predict", copies_of(candidates))
      if type(scores) ~= "table" then refuse("predicted a %s", type(scores)) end
      local plain = {} -- no metamethod of the user's runs here
      if rawlen(scores) ~= #candidates then
        refuse("predicted %d scores for %d candidates", rawlen(scores), #candidates)
      end
      for i = 1, #candidates do
        local s = rawget(scores, i)
        plain[i] = s
        if type(s) ~= "number" or s ~= s then
          refuse("predicted %s for candidate %d", type(s) == "number" and "no number (NaN)" or "a " .. type(s), i)
        end
      end
      return plain
    end,
  }
end

local function definition_of(file)
  local chunk, message = msched.load_aside(file)
  if not chunk then error(message, 0) end
  local ok, definition = msched.interruptible(chunk)
  if not ok then error(raised_text(definition, file), 0) end
  if type(definition) ~= "table" or definition.kind ~= "model" then
    error(file .. ": the file returns no model; end it with `return ms.model {…}`", 0)
  end
  return definition
end

-- The model of a name, of a file of Lua, of a file that model:save wrote, or of what ms.model {…} gave; and, where such
-- a file cannot be used here, why: the model is then one that has learned nothing. seconds: what a user's may take, as
-- guarded has them.
function models.open(name, seed, seconds)
  if type(name) == "table" then return guarded(name, seed, seconds) end
  if name:find "%.lua$" then return guarded(definition_of(name), seed, seconds) end
  for _, definition in ipairs(msched.registered.model) do
    if definition.name == name then return guarded(definition, seed, seconds) end
  end
  if not name:find "[./]" then return msched.model(name, seed) end
  local model, why = msched.load_model(name, seed)
  return model or msched.model("xgboost", seed), why
end

return models
