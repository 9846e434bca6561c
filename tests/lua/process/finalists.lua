-- usage: msched finalists.lua STORE: two trials of a product, both timed again whatever their times, as nothing that
-- processes.sh asks for may depend on a time.
local ms = require "msched"
local te = ms.te
local path = ...

local remeasure = ms.load "search.remeasure"
remeasure.CLOSE, remeasure.DISTURBED = math.huge, math.huge
local A, B, k = te.placeholder({8, 8}, "float32", "A"), te.placeholder({8, 8}, "float32", "B"), te.reduce_axis(8, "k")
local C = te.compute({8, 8}, function(i, j) return te.sum(A[{i, k}] * B[{k, j}], k) end, "C")
local retimed = 0
ms.tune(te.func("product", {A, B, C}), {
  trials = 2, jobs = 1, target = "native -num-cores=1", db = path,
  listen = function(event) if event.event == "retimed" then retimed = retimed + 1 end end,
})
local failed, records = 0, ms.store(path):records()
for _, record in ipairs(records) do if record.status ~= "measured" then failed = failed + 1 end end
print(string.format("trial %d of 2, timed again: %d, failed: %s", #records, retimed, failed == 0 and "none" or failed))
