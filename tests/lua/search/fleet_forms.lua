-- What a fleet reads: addresses of servers, their replies, and the forms of jobs and results. Whatever is none of
-- these is refused.
-- usage: msched fleet_forms.lua SOURCE
local ms = require "msched"
local fails = assert(loadfile((...) .. "/tests/support/lua/fails.lua"))()
local codec, link = ms.load "search.fleet.codec", ms.load "search.fleet.link"

-- ---- Addresses
for url, expected in pairs {
  ["redis://host"] = {"host", "6379", 0}, ["redis://10.0.0.1:7000/3"] = {"10.0.0.1", "7000", 3},
  ["redis://[::1]:7000"] = {"::1", "7000", 0},
  ["redis://user:p%40ss@host/1"] = {"host", "6379", 1, "user", "p@ss"},
  ["redis://:secret@host"] = {"host", "6379", 0, "", "secret"},
  ["redis://host?device=H100%20PCIe"] = {"host", "6379", 0},
} do
  local a = link.parse(url)
  assert(a.host == expected[1] and a.port == expected[2] and a.database == expected[3] and a.user == expected[4]
         and a.password == expected[5], url)
  assert(not a.name:find "ss" and not a.name:find "secret", a.name)
end
assert(link.parse "redis://host?device=H100%20PCIe".device == "H100 PCIe")
local secret = os.tmpname()
do
  local file <close> = assert(io.open(secret, "w"))
  file:write "tuner:secret\nmore\n"
end
local address = link.parse("redis://host?auth=" .. secret)
assert(address.user == "tuner" and address.password == "secret")
os.remove(secret)
for url, pattern in pairs {["host"] = "an address of Redis", ["redis://"] = "an address",
                           ["redis://h:x"] = "an address", ["redis://h/x"] = "an address", ["rediss://h"] = "tunnel",
                           ["redis://h?x=1"] = "nothing that an address has", ["redis://h?auth=/none"] = "/none",
                           ["redis://h\nx"] = "an address", ["redis://h x"] = "an address",
                           ["redis://h#x"] = "an address", ["redis://h%00x"] = "an address",
                           ["redis://["] = "an address", ["redis://[zz]"] = "an address", ["redis://@"] = "an address",
                           ["redis://h:65536"] = "a port from 1 to 65535", ["redis://h:0"] = "a port",
                           ["redis://h/9999999999"] = "nine digits"} do
  fails(pattern, link.parse, url)
end
-- no server at all: one message, soon
link.FIRST, link.PAUSE = 0.2, 0.001
fails("^redis://127.0.0.1:1/0: no Redis answers there: ", link.open, "redis://127.0.0.1:1")

-- ---- Replies: those of a Redis, refusals, and what is no reply to that command
local misfit = ms.load "search.fleet.replies".misfit
for _, case in ipairs {
  {{"GET", "k"}, {"x", false}, {5, {}, {"x"}}}, {{"SET", "k", "v", "NX"}, {"OK", false}, {1, {"OK"}}},
  {{"HGETALL", "k"}, {{}, {"a", "b"}}, {false, 1, "x", {1, 2}, {{}}}},
  {{"MGET", "a", "b"}, {{"x", false}}, {false, {}, {"x"}, {"x", 1}, {"x", {}}, {"x", "y", "z"}, "x"}},
  {{"STRLEN", "k"}, {0, 1 << 40}, {"0", false, {}}}, {{"XLEN", "k"}, {0}, {"0", false, {}}},
  {{"EVAL", "", 0}, {"x", false}, {1, {}}},
  {{"XREAD"}, {false, {}, {{"s", {}}}, {{"s", {{"1-1", {"r", "x"}}}}}},
   {1, "x", {1}, {{"s"}}, {{"s", 5}}, {{"s", {5}}}}},
  {{"XREADGROUP"}, {{{"s", {{"1-1", false}, false}}}}, {{{5, {}}}, {{"s", "x"}}}},
  {{"XPENDING", "s", "g"}, {{0, false, false, false}}, {false, 0, {}, {"0"}}},
  {{"XPENDING", "s", "g", "-", "+", 1}, {{}, {{"1-1", "w", 5, 1}}},
   {false, 0, {{"1-1", "w", 5}}, {{"1-1", "w", "5", "1"}}}},
  {{"XAUTOCLAIM"}, {{"0-0", {}, {}}}, {false, "x", {}, {"0-0"}, {0, {}}}}, {{"XCLAIM"}, {{}, {false}}, {false, "x", 0}},
  {{"PING"}, {"PONG"}, {false, 1, {}}}, {{"HSET", "k", "f", "v"}, {0, 1}, {}},
} do
  local command, fitting, others = table.unpack(case)
  fitting[#fitting + 1] = {error = "ERR"}
  for i, r in ipairs(fitting) do assert(not misfit({command}, {r}), command[1] .. ", which fits, " .. i) end
  for i, r in ipairs(others) do assert(misfit({command}, {r}) == command[1], command[1] .. ", another, " .. i) end
end
local transaction = {{"MULTI"}, {"MGET", "k"}, {"EXEC"}, {"MGET", "k"}}
assert(not misfit(transaction, {"OK", "QUEUED", {{"x"}}, {"x"}}))
assert(misfit(transaction, {"OK", "QUEUED", {}, "QUEUED"}) == "MGET")

-- ---- Forms
local result =
  {name = "a.b", worker = "w", hash = "b", outcome = "measured", reason = "", slow = "", seconds = 0.5, low = 0.25,
   high = math.huge, runs = 3, busy = true, repeated = false, build_seconds = 1, check_seconds = 2, time_seconds = 3,
   remark = "", device = {"name", "x", "driver", "12", "else", "1"}, times = {1.5, 2.5}, limit = "memory",
   limit_of = "bytes", limit_seconds = 0.125}
local bytes = codec.write_result(result)
local read = assert(codec.read_result(bytes))
for name, value in pairs(result) do
  assert(type(value) == "table" and table.concat(value, " ") == table.concat(read[name], " ") or value == read[name],
         name)
end
assert(codec.device_of(read.device).driver == 12 and codec.device_of(read.device).name == "x"
       and codec.device_of(read.device)["else"] == nil)
for length = 0, #bytes - 1 do assert(not codec.read_result(bytes:sub(1, length)), length) end -- cut anywhere
-- any byte: no error is raised
for i = 1, #bytes do codec.read_result(bytes:sub(1, i - 1) .. "\255" .. bytes:sub(i + 1)) end
local function refused(pattern, read_it, text)
  local values, why = read_it(text)
  assert(not values and why:find(pattern), why)
end
refused("bytes follow", codec.read_result, bytes .. "x")
refused("does not begin", codec.read_job, bytes)
refused("version 7", codec.read_result, "msfr" .. string.pack("<I4", 7) .. bytes:sub(9))
refused("are the most", codec.read_job, codec.write_job {name = ("x"):rep(201)})
refused("are the most", codec.read_job, codec.write_job {name = "x", traces = {("x"):rep((4 << 20) + 1)}})
refused("a list of 17", codec.read_job,
        codec.write_job {name = "x", traces = {"", "", "", "", "", "", "", "", "", "", "", "", "", "", "", "", ""}})
refused("below 0", codec.read_job, codec.write_job {name = "x", best = -1})
refused("below 0", codec.read_job, codec.write_job {name = "x", seconds = 0 / 0})
refused("there is none", codec.read_job, nil)
assert(not codec.fault_of(result, "b"))
for name, wrong in pairs {outcome = "so", seconds = math.huge, low = 0.75, high = 0.25, runs = 1 << 50} do
  local other = setmetatable({[name] = wrong}, {__index = result})
  assert(codec.fault_of(other, "b"), name)
end
for _, wrong in ipairs {{seconds = 0}, {seconds = 5e-324, low = 0}, {seconds = 1e300}, {high = 1e300}, {runs = 1 << 32},
                        {device = {"clock", "1e300"}}, {device = {"registers", "9000000000000000000"}},
                        {build_seconds = 1e300}, {time_seconds = 1e300}, {limit_seconds = 1e300},
                        {outcome = "crashed", seconds = 1e300}, {outcome = "crashed", low = 2, high = 1}} do
  local other = setmetatable(wrong, {__index = result})
  assert(codec.fault_of(other, "b"):find "must", wrong.outcome)
end
assert(ms.record_fault {seconds = 1} == nil and ms.record_fault {status = "failed", seconds = math.huge} == nil)
for _, wrong in ipairs {{}, {seconds = "1"}, {seconds = 1, low = true}, {seconds = 1, runs = 0.5}, {seconds = 0 / 0},
                        {seconds = 1, runs = -1}, {seconds = 1, low = 2}, {seconds = 2, high = 1}} do
  assert(ms.record_fault(wrong), wrong.seconds)
end
assert(codec.fault_of(result, "c"):find "of module b")
assert(codec.limit_of(read).name == "memory" and codec.limit_of(read).seconds == 0.125)
for limit, seconds in pairs {[""] = 0, memory = math.huge, none = 0} do
  assert(not codec.limit_of {limit = limit, limit_seconds = seconds}, limit)
end
assert(#ms.outcomes > 10)
for _, outcome in ipairs(ms.outcomes) do
  assert(not codec.fault_of(setmetatable({outcome = outcome}, {__index = result}), "b"), outcome)
end
