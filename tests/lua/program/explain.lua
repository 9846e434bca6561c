-- A store with one record, whose trace has a draw under an Assert, an If and a For: for explain.sh.  usage: explain.lua
-- STORE
local ms = require "msched"
local te = ms.te
local A = te.placeholder({8, 8}, "float32", "A")
local func = te.func("twice", {A, te.compute({8, 8}, function(i, j) return A[{i, j}] * 2.0 end, "B")})
local sch = ms.schedule(func, {seed = 1})
local i, j = sch:get_loops(sch:get_sblock "B")
local x, y = sch:sample_perfect_tile(i, 2)
sch:assert("x == 4", {x = x})
local i0, i1 = sch:split(i, {x, y})
sch:if_("x > 2", {x = x}, function(s) s:vectorize(j) end, function(s) s:unroll(j) end)
sch:for_(2, function(s, round)
  s:if_("r == 1", {r = round}, function(t) t:annotate(i1, "round", round) end)
end)
sch:parallel(i0)
local store = ms.store((...))
store:put {workload = store:put_workload(func), target = "llvm -mcpu=x86-64", trace = sch.trace, hash = sch:hash(),
           status = "measured", seconds = 1e-6, low = 1e-6, high = 1e-6, runs = 3}
store:close()
