-- What tuning shows: times, rates, what is left, a line cut to the terminal's width.  usage: msched progress.lua
local ms = require "msched"
local te = ms.te
local cli, progress = ms.load "lua.cli", ms.load "lua.progress"

assert(cli.time_text(1.4e-9) == "1.4 ns" and cli.time_text(2.5e-6) == "2.50 us" and cli.time_text(0) == "0 ns")
assert(cli.cut("abcdef", 4) == "abc…" and cli.cut("abcd", 4) == "abcd" and cli.cut("äöüß", 3) == "äö…" and cli.cut("ab", nil) == "ab")

-- Rates of integers are not of floats, and indices and conditions are not counted.
local function product(type)
  local A, B, k = te.placeholder({8, 16}, type, "A"), te.placeholder({16, 4}, type, "B"), te.reduce_axis(16, "k")
  return te.func("f", {A, B, te.compute({8, 4}, function(i, j) return te.sum(te.if_then_else(te.lt(i + k, 9), A[{i, k}], te.const(0, type)) * B[{k, j}], k) end, "C")})
end
local floats, integers = cli.work_of(product "float32"), cli.work_of(product "int32")
assert(floats[1] == 2 * 8 * 4 * 16 and floats[2] == "GFLOP/s" and integers[1] == floats[1] and integers[2] == "GOP/s")
assert(cli.rate_text(integers, 1e-6) == "1.0 GOP/s" and cli.rate_text(floats, 1e-3) == "0.001 GFLOP/s", cli.rate_text(floats, 1e-3))

-- What is left is until the trials or the seconds are over, whatever is first.
local lines = {}
print = function(text) lines[#lines + 1] = text end
local function env_of(fields)
  local env = {started = ms.clock(), done = 0, trials = 100, failures = {}, refused = {}, repeated = 0, busy = 0, retimed = 0, sketches = {}, target = ms.target "native"}
  for key, value in pairs(fields) do env[key] = value end
  return env
end
local function shown(fields, events)
  lines = {}
  local listen, env = progress.lines(product "int32", nil), env_of(fields)
  for _, event in ipairs(events) do listen {event = event, env = env} end
  return lines
end
local now = ms.clock()
local quiet = {}
for i = 1, 16 do quiet[i] = "trial" end
assert(shown({started = now - 100, done = 50, deadline = now + 20}, quiet)[1]:find "about [12]%d s left")
assert(shown({started = now - 100, done = 50, deadline = now + 2000}, quiet)[1]:find "about 1%d%d s left")
assert(shown({started = now - 100, deadline = now + 20}, quiet)[1]:find "about [12]%d s left")
assert(not shown({started = now - 100}, quiet)[1]:find "left")
-- On a pipe something is said while nothing succeeds; repeats are no failures; the most frequent failure is first.
local failing = shown({failures = {crashed = 2, ["wrong result"] = 14}, repeated = 3}, quiet)
assert(#failing == 1 and failing[1]:find("no best yet", 1, true) and failing[1]:find("failed: wrong result 14, crashed 2, repeated: 3", 1, true), failing[1])
local ended = shown({seconds = 3, done = 4, trials = 12, ended = {why = "exhausted", text = "the space gave nothing new three times in a row"}}, {"end"})
assert(ended[2] == "f: ended with 4 of 12 trials: the space gave nothing new three times in a row", ended[2])
