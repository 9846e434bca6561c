-- What tuning shows: times, rates, what is left, a line cut to the terminal's width.  usage: msched progress.lua
local ms = require "msched"
local te = ms.te
local cli, progress = ms.load "lua.cli.cli", ms.load "lua.cli.progress"

assert(cli.time_text(1.4e-9) == "1.4 ns" and cli.time_text(2.5e-6) == "2.50 us" and cli.time_text(0) == "0 ns")
assert(cli.cut("abcdef", 4) == "abc…" and cli.cut("abcd", 4) == "abcd" and cli.cut("äöüß", 3) == "äö…"
       and cli.cut("ab", nil) == "ab")

-- Rates of integers are not of floats, and indices and conditions are not counted.
local function product(type)
  local A, B, k = te.placeholder({8, 16}, type, "A"), te.placeholder({16, 4}, type, "B"), te.reduce_axis(16, "k")
  local C = te.compute({8, 4}, function(i, j)
    return te.sum(te.if_then_else(te.lt(i + k, 9), A[{i, k}], te.const(0, type)) * B[{k, j}], k)
  end, "C")
  return te.func("f", {A, B, C})
end
local floats, integers = cli.work_of(product "float32"), cli.work_of(product "int32")
assert(floats.operations == 2 * 8 * 4 * 16 and floats.unit == "GFLOP/s" and integers.operations == floats.operations
       and integers.unit == "GOP/s")
assert(cli.rate_text(integers, 1e-6) == "1.0 GOP/s 0.9 GB/s"
       and cli.rate_text(floats, 1e-3) == "0.001 GFLOP/s 0.0009 GB/s", cli.rate_text(floats, 1e-3))

-- What is left is until the trials or the seconds are over, whatever is first. All is made from events.
local lines = {}
print = function(text) lines[#lines + 1] = text end
local function start(fields)
  local e = {event = "start", task = "f", elapsed = 0, target = "llvm", trials = 100, operations = 1000, unit = "GOP/s",
             weight = 1, equal = {}, sketches = 3, known = 0, seconds = 0}
  for name, value in pairs(fields or {}) do e[name] = value end
  return e
end
local function trial(fields)
  local e = {event = "trial", task = "f", elapsed = 1, status = "measured", outcome = "measured", seconds = 1, done = 1,
             busy = false}
  for name, value in pairs(fields) do e[name] = value end
  return e
end
local function shown(events, states, of_network)
  lines = {}
  local listen = progress.lines(nil, states, of_network)
  for _, event in ipairs(events) do listen(event) end
  return lines
end
-- A quiet time: so many results without a best.
local function quiet(first, fields)
  local events = {first}
  for _ = 1, 16 do events[#events + 1] = trial(fields) end
  return shown(events)
end
-- then the best 5 are timed again, 0.15 s each
assert(quiet(start {deadline = 120}, {elapsed = 100, done = 50})[2]:find "about 21 s left")
assert(quiet(start {deadline = 2000}, {elapsed = 100, done = 50})[2]:find "about 101 s left")
assert(quiet(start {deadline = 120}, {elapsed = 100, done = 0})[2]:find "about 21 s left")
assert(not quiet(start(), {elapsed = 100, done = 0})[2]:find "left")
-- In the end the best are built and timed again, which counts; it is said where it takes long.
do
  local function left(elapsed)
    return shown {start {trials = 20},
                  trial {done = 20, elapsed = 100, best = "abc", best_seconds = 1, build_seconds = 1},
                  {event = "wait", task = "f", elapsed = 100, waiting = 4, retiming = true},
                  {event = "wait", task = "f", elapsed = 100 + elapsed, waiting = 4, retiming = true}}
  end
  assert(left(1)[2]:find "100 s, about 6 s left", lines[2])
  assert(left(61)[3]:find "161 s, the best 4 are timed again, about 0 s left", lines[3])
  local states = {}
  local listen = progress.lines(nil, states)
  for _, e in ipairs {start {trials = 20}, trial {done = 20, elapsed = 100, build_seconds = 1},
                      {event = "wait", task = "f", elapsed = 101, waiting = 4, retiming = true}} do
    listen(e)
  end
  assert(progress.time_text(states.f, 102) == "102 s, the best 4 are timed again, about 4 s left",
         progress.time_text(states.f, 102))
end
-- Of spaces that take long to open it is said how many are, not each second.
do
  local list = {}
  for i = 1, 12 do list[i] = {event = "opening", task = "f", elapsed = i, opened = 10 * i, tasks = 500} end
  shown(list)
  assert(#lines == 3 and lines[1] == "f: the spaces of 10 of 500 functions are open" and lines[3]:find " 110 of ",
         table.concat(lines, "\n"))
end
-- On a pipe something is said while nothing succeeds; repeats are no failures; the most frequent failure is first.
local failing = {start(), {event = "asked", task = "f", elapsed = 1, iteration = 1, candidates = 16, measured = 16,
                           recalled = 0, repeated = 3, seconds = 0}}
for i = 1, 16 do
  failing[#failing + 1] = trial {status = "failed", outcome = i <= 2 and "crashed" or "wrong result", done = 0}
end
shown(failing)
assert(#lines == 2 and lines[2]:find("no best yet", 1, true)
       and lines[2]:find("failed: wrong result 14, crashed 2, repeated: 3", 1, true), lines[2])
-- Lines after the first name their task too.
assert(progress.of_task("f", "one\ntwo\n\n  three\n") == "f: one\nf: two\n\nf:   three\n"
       and progress.of_task("%1", "a\nb") == "%1: a\n%1: b")
-- Where all that came was stopped, that is said.
assert(quiet(start(), {status = "censored", outcome = "censored", done = 3})[2]:find("no best yet, 16 stopped early", 1,
       true), lines[2])
assert(shown({start {sketches = 1}})[1] == "f on llvm: 1 sketch")
-- A new best is said at once, and not again; what other functions are equal, and why it ended, are said.
shown {start {equal = {"g", "h"}, known = 7}, trial {best = "abc", best_seconds = 1e-6},
       trial {best = "abc", best_seconds = 1e-6, done = 2, busy = true},
       {event = "end", task = "f", elapsed = 3, trials = 4, seconds = 3, short_id = "abc", best_seconds = 1e-6,
        failures = {}, repeated = 0, busy = 1, retimed = 3, text = "the space gave nothing new three times in a row"}}
assert(lines[1] == "f = g = h on llvm: 3 sketches, 7 records known", lines[1])
assert(lines[2] == "f: trial 1 of 100, best 1.00 us 1.0 GOP/s (abc), 1 s, about 100 s left, failed: none", lines[2])
assert(lines[3] == "f: trial 4 of 100, best 1.00 us 1.0 GOP/s (abc), 3 s, failed: none, other programs ran during 1",
       lines[3])
assert(lines[4] == "f: the best 3 were timed again, in turn")
assert(#lines == 5 and lines[5] == "f: ended with 4 of 100 trials: the space gave nothing new three times in a row",
       lines[5])
-- A function that is composed of groups, beside these alone: all of their instances together, once each has a best.
do
  local function over(task, seconds)
    return {event = "end", task = task, elapsed = 3, seconds = 3, trials = 1, failed = 0, retimed = 0, busy = 0,
            stopped = 0, repeated = 0, failures = {}, refused = {}, best = "abc", short_id = "abc",
            best_seconds = seconds, ended = "trials"}
  end
  local function composed(second)
    return table.concat(shown {start {task = "a", part_of = "w", weight = 6},
      start {task = "b", part_of = "w", weight = 2}, start {task = "o", part_of = "other", weight = 9},
      start {task = "w", groups = 2, weight = 2}, trial {task = "a", best = "abc", best_seconds = 1e-6},
      trial {task = "b", best = second and "def", best_seconds = second},
      trial {task = "o", best = "abc", best_seconds = 1}, trial {task = "w", best = "abc", best_seconds = 9e-6},
      over("w", 9e-6)}, "\n")
  end
  assert(composed(3e-6):find("w: 1.50 times as long as its groups alone, which take 6.00 us together:", 1, true),
         composed(3e-6))
  assert(not composed(nil):find "its groups alone")
end
-- Of a network each function has its share of the time of all, by how often they run; not before each has a best.
for _, second in ipairs {1e-6, false} do
  local states = {}
  shown({start {task = "a", weight = 6}, start {task = "b", weight = 2}, trial {task = "a", best = "abc",
         best_seconds = 1e-6}, trial {task = "b", best = second and "def", best_seconds = second or nil}}, states, true)
  assert(progress.share_of_time(states.a) == (second and 0.75 or nil)
         and progress.share_of_time(states.b) == (second and 0.25 or nil))
end
-- The final re-measurement changes the best of a task that is over while others go on; trials that earlier commands had
-- count, but not for the time that is left.
local retold = {}
shown({start {known = 7, counted = 6, trials = 10}, trial {best = "abc", best_seconds = 1e-6, done = 7},
       {event = "retimed", task = "f", elapsed = 2, id = "d", short_id = "def", seconds = 2e-6, best = "def",
        best_seconds = 2e-6}, {event = "wait", task = "f", elapsed = 100, waiting = 1}}, retold)
assert(lines[1] == "f on llvm: 3 sketches, 7 records known, 6 of them of the 10 trials", lines[1])
assert(lines[2]:find("trial 7 of 10, best 1.00 us 1.0 GOP/s (abc), 1 s, about 4 s left", 1, true), lines[2])
assert(lines[3]:find("trial 7 of 10, best 2.00 us 0.5 GOP/s (def)", 1, true), lines[3])
assert(retold.f.curve[1] == 2e-6)

