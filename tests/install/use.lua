-- A script for a Lua that is not ours: a schedule by hand, printed, built and checked; a few trials.
local ms = require "msched"
local te = ms.te
assert(package.loaded.msched == ms and require "msched" == ms)

local A = te.placeholder({64, 48}, "float32", "A")
local k = te.reduce_axis(48, "k")
local B = te.compute({64}, function(i) return te.sum(A[{i, k}], k) end, "B")
local rows = te.func("rows", {A, B})
local sch = ms.schedule(rows, {seed = 1})
local i = sch:get_loops(sch:get_sblock "B")
local outer, inner = sch:split(i, {ms.rest, 16})
sch:parallel(outer)
print(sch)
print(sch.trace)
assert(sch:build():check() == 0)
assert(not pcall(sch.split, sch, outer, {1, 3})) -- a refusal is an error like any other

local best = ms.tune(rows, {trials = 2, db = arg[1]})
print(best)

-- A rule is stopped in time here too, and the program's own hook is there again afterwards.
local function hook() end
debug.sethook(hook, "", 1000)
ms.rule {name = "endless", apply = function() while true do end end}
local ok, message = pcall(ms.tune, rows, {trials = 2, db = arg[1], rule_timeout = 0.2})
assert(not ok and tostring(message):find("rule `endless`", 1, true), message)
assert(debug.gethook() == hook)
