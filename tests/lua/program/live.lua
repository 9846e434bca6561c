-- The live table as a terminal shows it: events are given to progress.lines, what live.lua writes is played on a screen
-- of so
-- many columns and lines, and the screen is looked at.  usage: msched live.lua
local ms = require "msched"
local progress, live = ms.load "lua.cli.progress", ms.load "lua.cli.live"

-- ---- A terminal --------------------------------------------------------------------------------------------------

-- Plays text: carriage return, line feed, ESC[nA, ESC[J.
local function new_terminal()
  local t = {lines = {""}, row = 1, writes = 0}
  function t.write(text)
    t.writes = t.writes + 1
    while text ~= "" do
      local up = text:match "^\27%[(%d+)A"
      local plain = text:match "^[^\r\n\27]+"
      if up then
        t.row, text = t.row - tonumber(up), text:sub(#up + 4)
        assert(t.row >= 1, "above the first line")
      elseif text:find "^\27%[J" then
        for i = #t.lines, t.row, -1 do t.lines[i] = nil end
        t.lines[t.row], text = "", text:sub(4)
      elseif text:sub(1, 1) == "\r" then text = text:sub(2)
      elseif text:sub(1, 1) == "\n" then
        t.row, text = t.row + 1, text:sub(2)
        t.lines[t.row] = t.lines[t.row] or ""
      else
        assert(plain, "an escape that is not known: " .. string.format("%q", text:sub(1, 8)))
        t.lines[t.row], text = plain, text:sub(#plain + 1)
      end
    end
  end
  function t.text() return table.concat(t.lines, "\n") end
  return t
end

-- ---- Events ------------------------------------------------------------------------------------------------------

local function start(name, elapsed)
  return {event = "start", task = name, elapsed = elapsed or 0, target = "llvm", trials = 64, operations = 2e6,
          unit = "GFLOP/s", weight = 2, shape = "128x64", equal = {}, sketches = 3, known = 0, seconds = 0,
          bound = 5e-6}
end
local function trial(name, done, elapsed, best, fields)
  local e = {event = "trial", task = name, elapsed = elapsed, status = "measured", outcome = "measured", seconds = best,
             done = done, busy = false, best = best and "abc" .. done, best_seconds = best, id = "id" .. done,
             build_seconds = 0.1, run_seconds = 0.2}
  for k, v in pairs(fields or {}) do e[k] = v end
  return e
end
local function finish(name)
  return {event = "end", task = name, elapsed = 9, trials = 64, seconds = 9, short_id = "abc3", best_seconds = 1e-5,
          failures = {}, repeated = 0, busy = 0, retimed = 0}
end

local function play(columns, lines, events, bars)
  local terminal, states = new_terminal(), {}
  local screen = live.new {width = function() return columns end, height = function() return lines end,
                           write = terminal.write, bars = bars or {".", ":", "-", "=", "+", "*", "#", "@"}}
  local listen = progress.lines(screen, states)
  for _, e in ipairs(events) do listen(e) end
  return terminal, states, screen
end

local function run()
  return {start "conv", start "gemm", trial("conv", 1, 1, 8e-5), trial("conv", 2, 2, 4e-5),
          trial("conv", 2, 3, 4e-5, {status = "failed", outcome = "crashed"}), trial("conv", 3, 4, 1e-5),
          {event = "wait", task = "conv", elapsed = 5, waiting = 1}}
end
local function expect(terminal, text)
  assert(terminal.text() == text, "shown:\n" .. terminal.text() .. "\nexpected:\n" .. text)
end
local function holds(terminal, text)
  assert(terminal.text():find(text, 1, true), "no `" .. text .. "` in:\n" .. terminal.text())
end

-- ---- At 80, 60, 20, 200 columns ----------------------------------------------------------------------------------

-- The lines that stay are cut nowhere; here they are longer than no screen.
expect(play(80, 24, run()), [[
conv on llvm: 3 sketches
gemm on llvm: 3 sketches
task  shape   trials      best         rate  of roof
conv  128x64    3/64  10.00 us  200 GFLOP/s     50 %
gemm  128x64    0/64         -            -        -
conv: best so far  .--@  80.00 us to 10.00 us
conv: failed: crashed 1
conv: 5 s, about 103 s left, 0.8 builds and 0.8 runs a second
]])

expect(play(60, 24, run()), [[
conv on llvm: 3 sketches
gemm on llvm: 3 sketches
task  trials      best         rate  of roof
conv    3/64  10.00 us  200 GFLOP/s     50 %
gemm    0/64         -            -        -
conv: best so far  .--@  80.00 us to 10.00 us
conv: failed: crashed 1
conv: 5 s, about 103 s left, 0.8 builds and 0.8 runs a sec…
]])
expect(play(20, 24, run()), [[
conv on llvm: 3 sketches
gemm on llvm: 3 sketches
task  trials
conv    3/64
gemm    0/64
conv: best so far …
conv: failed: cras…
conv: 5 s, about 1…
]])
local wide = play(200, 24, run())
holds(wide, "task  shape   weight  trials      best         rate  of roof  record\n")
holds(wide, "conv  128x64       2    3/64  10.00 us  200 GFLOP/s     50 %  abc3")
-- Bytes stand beside operations, where there is room.
local moving = run()
for _, e in ipairs(moving) do if e.event == "start" then e.bytes = 4e5 end end
holds(play(200, 24, moving), "task  shape   weight  trials      best         rate      moves  of roof  record\nconv  \z
                              128x64       2    3/64  10.00 us  200 GFLOP/s  40.0 GB/s     50 %  abc3")
moving[1].operations = 0
holds(play(100, 24, moving), "conv  128x64       2    3/64  10.00 us     -  40.0 GB/s     50 %")
-- Of what the machine was measured to do, where it was: the roof is lower, and the end says what it is.
local measured = run()
for _, e in ipairs(measured) do
  if e.event == "start" then e.limit = {name = "float32 vectors", of = "operations", seconds = 2e6 / 250e9} end
end
measured[#measured + 1] = finish "conv"
local reached = play(80, 24, measured)
holds(reached, "conv: 80 % of the roofline, 250 GFLOP/s of float32 vectors, as measured\n")
-- And beside a vendor's routine, where one was timed: of the tasks that have one.
local timed = run()
timed[1].vendor, timed[1].vendor_seconds = "oneDNN", 9e-6
local vendors = play(80, 24, timed)
holds(vendors, "task  shape   trials      best         rate  of roof    of vendor\n")
holds(vendors, "conv  128x64    3/64  10.00 us  200 GFLOP/s     50 %  90 % oneDNN\n"
  .. "gemm  128x64    0/64         -            -        -            -\n")
timed[#timed + 1] = finish "conv"
holds(play(60, 24, timed), "conv: 90 % of the speed of oneDNN, which takes 9.00 us\n")
-- What is drawn never wraps, whatever the columns.
for columns = 1, 120 do
  local _, states, screen = play(columns, 24, run())
  for _, line in ipairs(live.lines(screen.states, states.conv, 5, columns - 1, 24, {"▁", "█"})) do
    assert(utf8.len(line) <= math.max(columns - 1, 1), columns .. ": " .. line)
  end
end

-- ---- What stays, and what goes -----------------------------------------------------------------------------------

-- A task that ended leaves the table; its line stays above. Nothing is drawn once none is left.
local events = run()
events[#events + 1] = finish "conv"
events[#events + 1] = trial("gemm", 1, 10, 3e-6)
local ended = play(80, 24, events)
holds(ended, "conv: trial 64 of 64, best 10.00 us 200 GFLOP/s (abc3), 9 s, failed: none\ntask  shape")
assert(not ended.text():find "\nconv  128x64")
holds(ended, "\ngemm  128x64    1/64")
events[#events + 1] = finish "gemm"
local over = play(80, 24, events)
assert(over.text():find "gemm: trial 64 of 64[^\n]*\n$", over.text())

-- A low terminal shows as many rows as fit, and says how many there are besides.
local many = {}
for i = 1, 20 do many[i] = start("task" .. i) end
many[21] = trial("task1", 1, 1, 1e-5)
local low, _, screen = play(80, 10, many)
holds(low, "task4  128x64    0/64")
assert(not low.text():find "\ntask5  128")
holds(low, "\nand 16 more\n")
assert(screen.drawn <= 10, screen.drawn)

-- Lines below the table are of the task that goes on: they name it where there are, or were, several.
do
  local first_has_none =
    {start "conv", start "gemm", trial("conv", 1, 1, 8e-5), {event = "wait", task = "gemm", elapsed = 2, waiting = 1}}
  holds(play(80, 24, first_has_none), "\nconv  128x64    1/64  80.00 us")
  holds(play(80, 24, first_has_none), "\ngemm: best so far  none yet\ngemm: failed: none\ngemm: 2 s, ")
  local alone = {start "conv", trial("conv", 1, 1, 8e-5)}
  holds(play(80, 24, alone), "\nbest so far  @  80.00 us to 80.00 us\nfailed: none\n1 s, ")
  for i, e in ipairs {finish "conv", trial("gemm", 1, 3, 2e-5)} do first_has_none[4 + i] = e end
  holds(play(80, 24, first_has_none), "\ngemm: best so far  @  20.00 us to 20.00 us\ngemm: failed: none\n")
  local long = {start(("x"):rep(60)), start "gemm", trial(("x"):rep(60), 1, 1, 8e-5)}
  holds(play(80, 24, long), "\n" .. ("x"):rep(23) .. "…: best so far  @  80.00 us")
end
-- Trials without a best say what they are; so does what the store had.
do
  local events_ =
    {start "conv", trial("conv", 1, 1, nil, {status = "censored", outcome = "censored"}), trial("conv", 2, 2, nil,
     {status = "censored", outcome = "censored"}), trial("conv", 2, 3, nil, {status = "failed", outcome = "crashed"})}
  holds(play(80, 24, events_), "\nconv  128x64    2/64     -     -        -\nbest so far  none yet: 2 trials stopped \z
                                early, 1 candidate failed\nfailed: crashed 1\n")
  local failing = {start "conv", trial("conv", 0, 1, nil, {status = "failed", outcome = "crashed"})}
  holds(play(80, 24, failing), "\nbest so far  none yet: 1 candidate failed\n")
  local known = {start "conv", {event = "wait", task = "conv", elapsed = 1, waiting = 1}, trial("conv", 1, 2, nil,
                 {status = "censored", outcome = "censored", best = "abc", best_seconds = 1e-5})}
  known[1].known, known[1].best, known[1].best_seconds = 7, "abc", 1e-5
  holds(play(80, 24, {known[1], known[2]}),
        "\nconv  128x64    0/64  10.00 us  200 GFLOP/s     50 %\nbest so far  10.00 us, which the store had\n")
  holds(play(80, 24, known), "\nconv  128x64    1/64  10.00 us")
end

-- It is drawn ten times a second at most, but at once where there is a new best.
local quick = {start "f"}
for i = 1, 50 do quick[#quick + 1] = trial("f", i, 1 + i / 1000, 1e-5) end
assert(play(80, 24, quick).writes == 1 + 1, "the line of the start, and one drawing")
quick[#quick + 1] = trial("f", 51, 1.06, 0.9e-5)
assert(play(80, 24, quick).writes == 2 + 2, "and what was drawn is taken away for a new one")

-- ---- The curve ---------------------------------------------------------------------------------------------------

local BARS = {"1", "2", "3", "4", "5"}
assert(live.curve({8, 4, 2, 1, 0.5}, 10, BARS) == "12345", "by the logarithm")
assert(live.curve({false, false, 3, 3}, 10, BARS) == "  55",
       "nothing before the first; one that never changes is the best")
assert(live.curve({16, 16, 4, 4, 2, 2, 1, 1}, 4, BARS) == "1345", "several trials a column: the last of them")

-- What two traces decide differently, in words.
local te, decisions = ms.te, ms.load "lua.report.decisions"
local A, B = te.placeholder({64, 64}, "float32", "A"), te.placeholder({64, 64}, "float32", "B")
local sch = ms.schedule(te.func("product", {A, B, ms.ops.matmul(A, B)}))
local i = sch:get_loops(sch:get_sblock "C")
sch:split(i, {sch:sample_perfect_tile(i, 2, 64, {decision = {4, 16}})})
local one = sch.trace
local other = one:with_decision(one:draws()[1].index, {8, 8})
local texts = decisions.differences(one, other)
assert(#texts == 1 and texts[1] == "tile of loop 1 of block C 4 x 16, not 8 x 8", texts[1])
assert(#decisions.differences(one, one) == 0)
sch:parallel((sch:get_loops(sch:get_sblock "C")))
assert(decisions.differences(one, sch.trace) == nil, "of another sketch")
print "live: ok"
