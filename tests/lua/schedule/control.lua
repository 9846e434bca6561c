-- Assert, If, For and undo, as a script records them.
local ms = require "msched"
local te = ms.te

local A = te.placeholder({64, 48}, "float32", "A")
local B = te.compute({64, 48}, function(i, j) return A[{i, j}] * 2.0 end, "B")
local func = te.func("twice", {A, B})

local function fails(words, body)
  local ok, message = pcall(body)
  assert(not ok and message:find(words, 1, true), message or "no error")
end

local function same_in_all_forms(sch)
  for _, form in ipairs {"text", "json", "binary"} do
    local trace = ms.read_trace(sch.trace[form](sch.trace))
    assert(ms.apply(func, trace):hash() == sch:hash(), form)
    local short = trace:simplified(true)
    assert(ms.apply(func, ms.read_trace(short[form](short))):hash() == sch:hash(), form .. ", simplified")
  end
end

-- An Assert that does not hold has its numbers drawn again, and what followed them replayed.
local sch = ms.schedule(func, {seed = 3})
local i, j = sch:get_loops(sch:get_sblock "B")
local rows, columns = {sch:sample_perfect_tile(i, 2)}, {sch:sample_perfect_tile(j, 2)}
local i0, i1 = sch:split(i, rows)
sch:assert("r * c == 64", {r = rows[2], c = columns[2]})
assert(rows[2]:value() * columns[2]:value() == 64 and sch:extent(i1) == rows[2]:value())
sch:assert(function(r, c) return r:ge(c) & ~(c:eq(1)) end, rows[2], columns[2])
assert(rows[2]:value() >= columns[2]:value() and columns[2]:value() > 1)
for seed = 1, 50 do
  local again = ms.apply(func, sch.trace, {anew = true, seed = seed})
  local r, c = again:handle(rows[2]):value(), again:handle(columns[2]):value()
  assert(r * c == 64 and r >= c and c > 1)
end
local before, length = sch:hash(), #sch.trace
fails("no numbers that can be drawn satisfy", function() sch:assert("r * c == 17", {r = rows[2], c = columns[2]}) end)
fails("== 64 (instruction 5) and ", function() sch:assert("r * c == 32", {r = rows[2], c = columns[2]}) end)
fails("a text, as (\"x > 2\", {x = number}), or a function of numbers, not a boolean, which Lua's == and < give",
  function()
  sch:assert(rows[2] == 64)
end)
fails("which is not given", function() sch:assert("q > 1", {r = rows[2]}) end)
fails("follows where its end is expected", function() sch:assert("r > 1 2", {r = rows[2]}) end)
assert(sch:hash() == before and #sch.trace == length)

-- Both branches are recorded, one is done.
local function mark(loop, key) return function(s) s:annotate(loop, key, 1) end end
sch:if_("r > 1000", {r = rows[2]}, mark(i0, "large"), mark(i0, "small"))
assert(not sch:script():find "large" and sch:script():find "small")
sch:if_(function(r) return r:gt(0) end, rows[2], function(s)
  s:unroll(i1)
  s:if_("0", function(t) t:parallel(i0) end)
end)
assert(sch:script():find "T.unroll" and not sch:script():find "T.parallel")
same_in_all_forms(sch)

-- A For does its body once a round; what is in a branch that is not taken has no value.
sch:for_(3, function(s, round)
  s:annotate(j, "round", round)
  s:if_("x < 2", {x = round}, function(t) t:unannotate(j, "round") end)
end)
assert(sch:script():find '"round": 2')
local hidden
sch:unannotate(j, "round")
sch:for_(0, function(s) hidden = s:split(j, {ms.rest, 2}) end)
assert(tostring(hidden):find "gone" and sch:extent(j) == 48)
same_in_all_forms(sch)
fails("does not hold", function() sch:if_("1", function(s) s:assert("1 > 2") end) end)
sch:end_()
fails("no If or For is open", function() sch:end_() end)
fails("no If is open", function() sch:else_() end)
fails("draw before the For", function() sch:for_(2, function(s) s:sample_categorical({1, 2}, {0.5, 0.5}) end) end)
fails("an If or For is open", function() sch:undo() end)
sch:end_()

-- Undo takes an If with its End at once; handles of what was undone are refused, others stay.
local fresh = ms.schedule(func)
local x, y = fresh:get_loops(fresh:get_sblock "B")
local start = fresh:hash()
local x0, x1 = fresh:split(x, {ms.rest, 4})
fresh:if_("1", function(s) s:unroll(x1) end)
fresh:undo()
assert(not fresh:script():find "T.unroll")
fresh:undo()
assert(fresh:hash() == start and fresh:extent(x) == 64)
fails("was undone", function() fresh:unroll(x1) end)
fresh:split(x, {ms.rest, 8})
fails("was undone", function() fresh:unroll(x1) end)
fails("undo of 4 instructions: there are 3", function() fresh:undo(4) end)
assert(fresh:extent(y) == 48)

-- A point's trace is what it was there, whatever is recorded, drawn again or undone afterwards.
local pointed = ms.schedule(func)
pointed:sample_categorical({1, 2, 4}, {0.2, 0.3, 0.5})
local outer_point, before = pointed:keep_point(), pointed.trace:text()
pointed:sample_categorical({1, 2, 4}, {0.2, 0.3, 0.5})
local inner_point, later = pointed:keep_point(), pointed.trace:text()
assert(pointed:trace_length() == 2)
pointed:undo(2)
pointed:sample_categorical({7, 8}, {0.5, 0.5})
assert(pointed:trace_at_point(outer_point):text() == before and pointed:trace_at_point(inner_point):text() == later)
local third_point, third = pointed:keep_point(), pointed.trace:text()
pointed:undo()
assert(pointed:trace_at_point(third_point):text() == third and pointed:trace_at_point(outer_point):text() == before)
for _ = 1, 3 do pointed:forget_point() end
fails("keeps no such point", function() pointed:trace_at_point(outer_point) end)
fails("no point is kept", function() pointed:forget_point() end)
local redrawn = ms.schedule(func)
local number = redrawn:sample_categorical({1, 2, 4, 8}, {0.25, 0.25, 0.25, 0.25})
local drawn_point, drawn, value = redrawn:keep_point(), redrawn.trace:text(), number:value()
redrawn:assert("v != " .. value, {v = number}) -- draws it again
assert(number:value() ~= value and redrawn.trace:head(1):text() ~= drawn
       and redrawn:trace_at_point(drawn_point):text() == drawn)
redrawn:forget_point()

-- What was only looked up since a point is dropped with it, and its handles are refused; not where anything else was
-- recorded, undone or open since.
local looked = ms.schedule(func, {seed = 9})
local kept_block = looked:get_sblock "B"
local function dropped(record)
  local point, length = looked:keep_point(), looked:trace_length()
  local handle = record()
  looked:forget_point(point)
  return looked:trace_length() == length, handle
end
local is_dropped, loop = dropped(function() return (looked:get_loops(looked:get_sblock("B", "main"))) end)
assert(is_dropped and looked:block_name(kept_block) == "B")
fails("look it up again", function() looked:unroll(loop) end)
fails("nothing was undone", function() looked:redo() end)
local found = looked:get_loops(kept_block)
fails("look it up again", function() looked:unroll(loop) end)
for _, record in ipairs {
  function() looked:annotate(looked:get_sblock "B", "a", 1) end,
  function() looked:sample_categorical({1, 2}, {0.5, 0.5}) end,
  function() looked:undo() looked:get_sblock "B" return looked:get_sblock "B" end,
} do assert(not dropped(record)) end
assert(looked:extent(found) == 64)
fails("fewer calls", function() looked:redo(2) end)
looked:if_ "1"
assert(not dropped(function() looked:get_sblock "B" end))
looked:end_()
same_in_all_forms(looked)

-- Redo brings back what an undo took, whole, with its decisions, and the handles of it; not after another instruction.
local again = ms.schedule(func, {seed = 9})
local u = again:get_loops(again:get_sblock "B")
local tile = {again:sample_perfect_tile(u, 2)}
local u0, u1 = again:split(u, tile)
again:unroll(u1)
local whole, text = again:hash(), again.trace:text()
again:undo()
local before_last = again:hash()
again:undo(2)
again:redo()
assert(again:hash() == before_last and again:extent(u1) == tile[2]:value())
again:redo()
assert(again:hash() == whole and again.trace:text() == text)
fails("nothing was undone", function() again:redo() end)
again:undo(2)
fails("was undone", function() again:extent(u1) end)
local v0, v1 = again:split(u, {ms.rest, 8})
fails("other instructions came after it", function() again:redo() end)
again:undo()
fails("was undone", function() again:extent(v0) end)
fails("fewer calls of undo", function() again:redo(99) end)
again:redo(2 - 1)
assert(again:extent(v1) == 8)
again:undo()
again:redo(1)
again:undo()
fails("other instructions", function() again:undo(#again.trace) again:get_sblock "root" again:redo() end)
again:undo()
again:redo() -- the look-up
fails("other instructions", function() again:redo() end)

-- What an instruction did, and what builds on it.
local explain = ms.load "lua.lib.explain"
local steps = explain.steps(func, sch.trace)
local marks = {}
for _, step in ipairs(steps) do
  local text = step.texts[1]:match "sch:([%w_]+)"
  marks[text] = marks[text] or ""
  for _, c in ipairs(step.changes) do if c[1] ~= " " then marks[text] = marks[text] .. c[1] end end
end
assert(marks.split:find "+" and marks.split:find "-" and marks.sample_perfect_tile == "" and marks.get_loops == "")
assert(steps[#steps].last == #sch.trace - 1)
local direct, indirect = explain.dependents(sch.trace, 2, 2) -- the first tile
assert(direct[1] == 4 and #indirect > 0)

-- A trace that would give more handles than there can be is refused, and stays as it was.
local lines = {'@T.prim_func(s_tir=True)', 'def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):'}
for n = 1, 4000 do
  lines[#lines + 1] = string.format('    for i%d in range(8):\n        with T.sblock("b%d"):\n            v = \z
                                     T.axis.spatial(8, i%d)\n            B[v] = A[v]', n, n, n)
end
local wide = ms.schedule(ms.from_script(table.concat(lines, "\n")))
local root, refused = wide:get_sblock(wide:root_block()), nil
repeat
  local given, why = pcall(wide.get_child_blocks, wide, root)
  refused = not given and why
until refused or wide:trace_length() > 300
assert(refused and refused:find "a trace may give at most 1048576 handles and numbers" and wide:trace_length() == 263,
       refused)
assert(#wide.trace:text() > 0 and not pcall(wide.get_child_blocks, wide, root) and wide:get_loops(wide:get_sblock "b7"))
print "control: ok"
