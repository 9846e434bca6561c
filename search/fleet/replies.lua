-- What replies to the commands of a fleet are: a server is another's, and may answer anything.
local replies = {}

local function is_text(r) return type(r) == "string" end
local function is_text_or_nothing(r) return r == false or is_text(r) end
local function is_number(r) return math.type(r) == "integer" end

-- Whether it is a list whose items have this form.
local function list_of(form)
  return function(r)
    if type(r) ~= "table" or r.error then return false end
    for _, item in ipairs(r) do if not form(item) then return false end end
    return true
  end
end

-- Whether it is a list that begins with items of these forms.
local function record_of(...)
  local items = {...}
  return function(r)
    if type(r) ~= "table" then return false end
    for i, form in ipairs(items) do if not form(r[i]) then return false end end
    return true
  end
end

local function or_nothing(form)
  return function(r) return r == false or form(r) end
end

local is_list = list_of(function() return true end)
local is_streams = or_nothing(list_of(record_of(is_text, list_of(or_nothing(record_of(is_text))))))
local is_pending = list_of(record_of(is_text, is_text, is_number, is_number))

local forms = {
  PING = is_text, SELECT = is_text, AUTH = is_text, MULTI = is_text, EXEC = or_nothing(is_list),
  GET = is_text_or_nothing, HGET = is_text_or_nothing, SET = is_text_or_nothing, EVAL = is_text_or_nothing,
  STRLEN = is_number, XLEN = is_number, XADD = is_text, HGETALL = list_of(is_text),
  XREAD = is_streams, XREADGROUP = is_streams, XCLAIM = is_list, XAUTOCLAIM = record_of(is_text, is_list),
}

-- A value, or nothing, for each key.
function forms.MGET(r, command) return list_of(is_text_or_nothing)(r) and #r == #command - 1 end

-- A summary, or what of it is pending.
function forms.XPENDING(r, command) return (#command > 3 and is_pending or record_of(is_number))(r) end

-- The first of commands whose reply is neither a refusal nor of its form; nil: all are.
function replies.misfit(commands, given)
  local queued = false -- between MULTI and EXEC
  for i, command in ipairs(commands) do
    local name, r = command[1], given[i]
    local refused = type(r) == "table" and r.error ~= nil
    if name == "EXEC" then queued = false end
    local form = forms[name]
    if not refused and not (queued and r == "QUEUED") and form and not form(r, command) then return name end
    if name == "MULTI" then queued = true end
  end
end

return replies
