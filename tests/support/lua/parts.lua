-- What tests of rules, postprocessors and mutators make small functions and schedules by, and look at them with:
-- dofile gives a table.
local ms = require "msched"
local targets, space = ms.load "rules.targets", ms.load "rules.space"
local te = ms.te

local support = {CPU = ms.target "llvm -mcpu=skylake-avx512 -num-cores=16"}

-- Rules, postprocessors and mutators by name, with parameters in place of the target's.
function support.parts_of(target, changes)
  changes.rules, changes.postprocs, changes.mutators = changes.rules or {}, changes.postprocs or {},
    changes.mutators or {}
  return space.parts(targets.changed(targets.context(target), changes))
end

function support.product(m, n, k, type)
  local A, B = te.placeholder({m, k}, type or "float32", "A"), te.placeholder({k, n}, type or "float32", "B")
  local r = te.reduce_axis(k, "k")
  return te.func("product", {A, B, te.compute({m, n}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")})
end

-- A sum of products of elements of two arrays of these types, at places that a function of (i, j, k) gives.
function support.short_product(x, y, sum, shapes, at)
  local A, B, k = te.placeholder(shapes[1], x, "A"), te.placeholder(shapes[2], y, "B"), {}
  for n, extent in ipairs(shapes[4]) do k[n] = te.reduce_axis(extent, "k" .. n) end
  local C = te.compute(shapes[3], function(...)
    local a, b = at({...}, k)
    return te.sum(te.cast(A[a], sum) * te.cast(B[b], sum), k)
  end, "C")
  return te.func("short", {A, B, C})
end

function support.sketches(func, target, changes) return (space.generate(func, support.parts_of(target, changes))) end

-- f(A, i, j) over A, then a maximum with 0.
function support.relu_of(f)
  local A = te.placeholder({16, 32}, "float32", "A")
  local B = te.compute({16, 32}, function(i, j) return f(A, i, j) end, "B")
  return te.func("relu", {A, te.compute({16, 32}, function(i, j) return te.maximum(B[{i, j}], 0.0) end, "C")})
end

function support.has(sch, text) return tostring(sch:func()):find(text, 1, true) ~= nil end

function support.names(sch) return " " .. table.concat(sch:block_names(), " ") .. " " end

function support.extents(sch, block)
  local list = {}
  for i, l in ipairs {sch:get_loops(sch:get_sblock(block))} do list[i] = sch:extent(l) end
  return list
end

-- The function computes what it did: interpreted, as it stands.
function support.check(func, sch)
  local own, want = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
  ms.interpret(sch:func(), table.unpack(own))
  ms.interpret(func, table.unpack(want))
  for i = 1, #own do assert(own[i]:difference(want[i]) == 0, sch.trace:text()) end
end

-- Runs tests by name, and says how many passed.
function support.run(tests, what)
  local order = ms.sorted_keys(tests)
  for _, name in ipairs(order) do
    local ok, message = xpcall(tests[name], debug.traceback)
    assert(ok, name .. ": " .. tostring(message))
  end
  print(#order .. " " .. what .. ": ok")
end

return support
