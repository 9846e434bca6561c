-- A connection to Redis that comes back: what is asked is asked again until it was answered, so that all that a fleet
-- asks may be done twice. Errors are messages that name the server, without its password.
local link = {FIRST = 2, PAUSE = 0.05} -- seconds until a server must be there; between the first attempts
link.FIRST_ANSWER = 5 -- seconds that it has for its first answers

link.SAID = 2 -- seconds that one that was may be gone before that is said

local PATIENCE = 120 -- seconds in which one that was may be gone
local ANSWER = 20 -- seconds for a reply, beside what a command blocks
local MOST_PAUSE = 1 -- seconds between later ones
-- Refusals that pass: a server that starts, or another that takes its place.
local PASSING = {LOADING = true, BUSY = true, MASTERDOWN = true, NOREPLICAS = true,
                 UNBLOCKED = true} -- what a command waited at was deleted, or the server became another's copy
local FULL = "ERR max number of clients reached" -- so do others' connections
-- What is to be done about those that do not.
local CLUSTER = "; it is a node of a cluster, and a fleet needs a server of its own"
local REMEDY = {
  MOVED = CLUSTER, ASK = CLUSTER, CLUSTERDOWN = CLUSTER, CROSSSLOT = CLUSTER, TRYAGAIN = CLUSTER,
  READONLY = "; it is a copy of another server, which tuners and workers need",
  OOM = "; give the server more memory (maxmemory)",
  NOAUTH = "; give a password, by ?auth=FILE behind the address",
  WRONGTYPE = "; another program has a key of this name: use another database, redis://HOST/N, or delete it",
}
local TLS_ALERT = 'got "\\x15"' -- the first byte that a server of TLS answers to anything else

local misfit = msched.load "search.fleet.replies".misfit

-- ---- Addresses --------------------------------------------------------------------------------------------------

local FORM = "redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE][?auth=FILE][&device=NAME]"

local function plain(text)
  return (text:gsub("%%(%x%x)", function(digits) return string.char(tonumber(digits, 16)) end))
end

-- The first line of a file: PASSWORD, or USER:PASSWORD.
local function read_auth(path)
  local text, message = msched.read_file(path)
  if not text then error(message, 0) end
  local line = text:match "^[^\r\n]*"
  if line == "" then error(string.format("%s: its first line is no password", path), 0) end
  local user, password = line:match "^([^:]*):(.*)$"
  return user, password or line
end

local function take_query(address, query)
  for item in query:gmatch "[^&]+" do
    local key, value = item:match "^(%w+)=(.+)$"
    if key == "auth" then address.user, address.password = read_auth(plain(value))
    elseif key == "device" then address.device = plain(value)
    else error(string.format("`%s` is nothing that an address has: %s", item, FORM), 0) end
  end
end

-- What an address says: {host, port, database, user, password, device, name}; the name has no password.
function link.parse(url)
  if url:find "^rediss://" then
    error("rediss://: TLS is by a tunnel, as stunnel or ssh, with redis:// to its end here (the guide's fleet.md)", 0)
  end
  local rest, query = url:match "^redis://([^?]*)%??(.*)$"
  local user, place = (rest or ""):match "^(.*)@([^@]*)$"
  local server, database = (place or rest or ""):match "^([^/]*)/?(.*)$"
  local host, port = server:match "^%[([%x:]+)%]:?(%d*)$"
  if not host then host, port = server:match "^([^:%[%]%c%s%%#]+):?(%d*)$" end
  if not host or not database:find "^%d*$" or (server:find ":$" ~= nil) then
    error(string.format("an address of Redis is expected, %s", FORM), 0)
  end
  if tonumber(port ~= "" and port or 1) > 65535 or tonumber(port) == 0 then
    error(string.format("an address of Redis has a port from 1 to 65535, not %s", port), 0)
  end
  if #database > 9 then
    error(string.format("an address of Redis has a database of at most nine digits, not %s", database), 0)
  end
  local address = {host = host, port = port ~= "" and port or "6379", database = tonumber(database) or 0}
  if user then
    local name, password = user:match "^([^:]*):(.*)$"
    address.user, address.password = plain(name or user), password and plain(password)
  end
  local password = address.password
  take_query(address, query)
  if user and not password and address.user == nil then address.user = plain(user) end
  address.name = string.format("redis://%s:%s/%d", host:find ":" and "[" .. host .. "]" or host, address.port,
                               address.database)
  return address
end

-- ---- Commands ---------------------------------------------------------------------------------------------------

local Link = {}
Link.__index = Link

-- patience: seconds in which a server that was there may be gone. Where `tell` is set, it gets a text when it is gone
-- for some seconds, and one when it is back.
function link.open(url, patience)
  local address = type(url) == "table" and url or link.parse(url)
  local self = setmetatable({address = address, patience = patience or PATIENCE, connections = 0, has_answered = false},
                            Link)
  self:call("PING")
  return self
end

-- failed: what was raised last, so that who catches it knows that the server is at fault, and not what it worked on.
local function fail(self, format, ...)
  self.failed = string.format("%s: %s", self.address.name, string.format(format, ...))
  error(self.failed, 0)
end

-- The first refusal, and the command that was refused.
local function refusal(replies, commands)
  for i, r in ipairs(replies) do
    if type(r) == "table" and r.error then return r.error, commands[i] end
  end
end
local function passes(text) return text and (PASSING[text:match "^%u+"] or text:find(FULL, 1, true) == 1) end

-- The keys that a command is about, of which one has another type.
local function keys_of(command)
  local name = command[1]
  if name == "EVAL" then return table.concat(command, " or ", 4, 3 + command[3]) end
  if name == "XGROUP" then return command[3] end
  for i = 2, #command - 1 do
    if command[i] == "STREAMS" then return table.concat(command, " or ", i + 1, i + (#command - i) // 2) end
  end
  return command[2]
end

-- A refusal as it is said.
local function said(text, command)
  local keys, remedy = text:find "^WRONGTYPE" and keys_of(command) or nil, REMEDY[text:match "^%u+"]
  local line = msched.visible(text:match "^[^\r\n]*")
  return (keys and msched.visible(keys) .. ": " or "") .. (remedy and line:gsub("%.$", "") .. remedy or line)
end

-- What a new connection begins with.
local function greeting(address)
  local list = {}
  if address.password then
    list[1] = address.user and address.user ~= "" and {"AUTH", address.user, address.password}
      or {"AUTH", address.password}
  end
  list[#list + 1] = {"SELECT", address.database}
  return list
end

-- Seconds that the server has for a reply.
local function time_to_answer(self)
  return self.last and 1 or self.has_answered and ANSWER or math.min(ANSWER, link.FIRST_ANSWER)
end

-- A connection; or nil, a kind and why.
local function connect(self)
  local redis, why = msched.redis(self.address.host, self.address.port, link.FIRST, self.last)
  if not redis then return nil, msched.interrupted() and "interrupted" or "lost", why end
  local commands = greeting(self.address)
  local replies, kind, message = redis:ask(time_to_answer(self), commands, self.last)
  if not replies then return nil, kind, message end
  if misfit(commands, replies) then return nil, "nonsense", "a greeting is not answered as Redis does" end
  local refused, command = refusal(replies, commands)
  if passes(refused) then
    redis:close() -- one that is full has one less, until the next attempt
    return nil, "lost", refused .. (refused:find(FULL, 1, true) and "; raise its maxclients" or "")
  end
  if refused then fail(self, "%s", said(refused, command)) end
  self.redis, self.connections = redis, self.connections + 1
  return redis
end

-- The replies; or nil, a kind and why. blocks: seconds that one may block.
local function attempt(self, commands, blocks)
  if not self:is_connected() then
    local redis, kind, why = connect(self)
    if not redis then return nil, kind, why end
  end
  local replies, kind, why = self.redis:ask(time_to_answer(self) + (self.last and 0 or blocks), commands, self.last)
  if not replies then return nil, kind, why end
  local other = misfit(commands, replies)
  if other then return nil, "nonsense", string.format("%s is not answered as Redis does", other) end
  local refused = refusal(replies, commands)
  if passes(refused) then return nil, "lost", refused end
  return replies
end

-- The replies to commands; refusals are {error =}. blocks: seconds that one may block. Raises where the server is gone
-- for too long, or answers what is no reply. large: one that is out of bounds gives false instead.
function Link:run(commands, blocks, large)
  local gone, pause, is_said = nil, link.PAUSE, false
  while true do
    local began = msched.clock()
    local replies, kind, why = attempt(self, commands, blocks or 0)
    if replies then
      self.has_answered, self.failed = true, nil
      if is_said then self.tell(self.address.name .. ": it answers again") end
      return replies
    end
    if kind == "interrupted" then error("interrupted", 0) end
    if kind == "large" and large then return false end
    if kind == "nonsense" or kind == "large" then
      fail(self, "what answers there is no Redis, or a reply is out of bounds: %s%s", msched.visible(why),
           why:find(TLS_ALERT, 1, true) and "; it speaks TLS, which a tunnel does" or "")
    end
    gone = gone or began
    if msched.clock() - gone >= (self.has_answered and self.patience or link.FIRST) then
      fail(self, "no Redis answers there: %s", msched.visible(why))
    end
    if self.tell and self.has_answered and not self.last and not is_said and msched.clock() - gone >= link.SAID then
      is_said = true
      self.tell(string.format("%s: no Redis answers there for %.0f s: %s; it is waited for, %.0f s at most",
                              self.address.name, msched.clock() - gone, msched.visible(why), self.patience))
    end
    msched.sleep(pause)
    pause = math.min(2 * pause, MOST_PAUSE)
  end
end

-- Raises what the server said as it refused a command.
function Link:raise(text, command) fail(self, "%s", said(text, command)) end

-- The reply to one; a refusal is raised.
function Link:call(...)
  local reply = self:run({{...}})[1]
  if type(reply) == "table" and reply.error then self:raise(reply.error, {...}) end
  return reply
end

-- The replies to commands, none of which may be refused.
function Link:all(commands, blocks)
  local replies = self:run(commands, blocks)
  local refused, command = refusal(replies, commands)
  if refused then self:raise(refused, command) end
  return replies
end

-- From now on nothing is waited for long, and an interrupt does not count: what is said last.
function Link:say_goodbye() self.last, self.patience = true, 1 end

function Link:is_connected() return self.redis ~= nil and self.redis:is_open() end

function Link:close()
  if self.redis then self.redis:close() end
  self.redis = nil
end

return link
