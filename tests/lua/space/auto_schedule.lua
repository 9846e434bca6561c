-- ms.auto_schedule: the pattern of each block, right results, templates that other shapes take, heuristics that a call
-- or all
-- calls change, targets in words and in numbers, the template tuned; and what is refused.  usage: auto_schedule.lua
local ms = require "msched"
local te, ops = ms.te, ms.ops
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")
local V4 = "llvm -mcpu=x86-64-v4 -num-cores=2"

local function input(name, ...) return te.placeholder({...}, "float32", name) end
local function layer(size, channels, filters)
  local X, W, b = input("X", 1, size, size, channels), input("W", 3, 3, channels, filters), input("b", filters)
  return te.func("layer", {X, W, b, ops.max_pool(ops.relu(ops.bias_add(ops.conv2d(X, W, {pad = 1}), b)))})
end
local function product(m, n, k)
  local A, B = input("A", m, k), input("B", k, n)
  return te.func("product", {A, B, ops.matmul(A, B)})
end
local function refuses(pattern, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "not refused: " .. pattern)
  assert(tostring(message):find(pattern, 1, true), tostring(message))
end

-- ---- Patterns ----------------------------------------------------------------------------------------------------

local func = layer(8, 16, 32)
local sch, about = ms.auto_schedule(func, {target = V4})
local function expect(name, pattern)
  assert(about.patterns[name] == pattern, name .. " is " .. tostring(about.patterns[name]))
end
expect("pad", "location_tunable")
expect("conv2d", "complex_reduction")
expect("bias_add", "direct_compute")
expect("relu", "direct_compute")
expect("root", nil)
assert(not about.known and about.cycles > 0)

local X = input("X", 6, 40)
local _, of_softmax = ms.auto_schedule(te.func("softmax", {X, ops.softmax(X)}), {target = V4})
assert(of_softmax.patterns.maximum == "simple_reduction" and of_softmax.patterns.exponent == "location_tunable"
       and of_softmax.patterns.softmax == "direct_compute")

-- ---- What comes of it --------------------------------------------------------------------------------------------

-- Inlined, tiled, in vectors, parallel; cheaper by estimate than as it was; the same again; and it computes the same.
local function has_kind(trace, kind) return trace:json():find('"' .. kind .. '"', 1, true) ~= nil end
for _, kind in ipairs {"ComputeInline", "Reorder", "Vectorize", "Parallel"} do
  assert(has_kind(sch.trace, kind), kind)
end
local target = ms.target(V4)
local machine = ms.load("search.cost.analytical").machine(target)
local plain = ms.estimate(func, ms.schedule(func).trace, machine)
assert(about.cycles < plain / 4, string.format("%g cycles of %g", about.cycles, plain))
local small = layer(8, 4, 8)
for _, f in ipairs {small, product(33, 40, 21), te.func("softmax", {X, ops.softmax(X)})} do
  local s = ms.auto_schedule(f)
  s:build():check()
  assert(s:hash() == ms.auto_schedule(f):hash(), "the same again")
end

-- Channels that are fewer than a vector are one vector all the same.
local few = ms.auto_schedule(layer(28, 6, 6), {target = V4})
local has_tile = false
for _, name in ipairs(few:block_names()) do
  has_tile = has_tile or few:annotation(few:get_sblock(name), "msched.register_tile") ~= nil
end
assert(has_tile, few:script())

-- ---- Templates ---------------------------------------------------------------------------------------------------

local applied, space = 0, ms.load "rules.space"
local apply = space.apply
space.apply = function(...)
  applied = applied + 1
  return apply(...)
end
local function auto(f, options)
  applied = 0
  options = options or {}
  options.target = options.target or V4
  local s, known = ms.auto_schedule(f, options)
  assert(known.known == (applied == 0), "rules are applied where no template is known, and only there")
  return s, known
end
local _, first = auto(product(256, 256, 256))
local _, other = auto(product(512, 384, 640))
assert(not first.known and other.known, "another shape takes the template")
local machine_cost = ms.estimate(product(512, 384, 640), ms.schedule(product(512, 384, 640)).trace, machine)
assert(other.cycles < machine_cost / 10, "and its numbers are chosen for it")

-- What the next shape takes is a small part of what the first took, and what it gives is as good as if it were the
-- first.
local replayed, postprocess = 0, space.postprocess
space.postprocess = function(...)
  replayed = replayed + 1
  return postprocess(...)
end
local function count(f, options, target)
  replayed = 0
  local s, of = ms.auto_schedule(f, {target = target or V4, heuristics = options})
  return replayed, s, of
end
local function alone(f)
  ms.load("search.auto_schedule").forget()
  return count(f)
end
local shapes = {{512, 384, 640}, {192, 1024, 96}, {1000, 768, 1152}}
for _, shape in ipairs(shapes) do
  local whole, _, best = alone(product(table.unpack(shape)))
  alone(product(256, 256, 256))
  local again, s, of = count(product(table.unpack(shape)))
  assert(of.known and again > 0 and again < whole / 5, string.format("%d candidates, of the first %d", again, whole))
  assert(of.cycles < 1.1 * best.cycles, string.format("%g cycles for %g", of.cycles, best.cycles))
  local third, same, of_same = count(product(table.unpack(shape)))
  assert(third == 0 and same:hash() == s:hash() and of_same.cycles == of.cycles, "the same function has its schedule")
end
local brief = {known = {around = 1, downhill = 1, replayed = 1}}
count(product(96, 512, 128), brief) -- its key is its own
local few_of_it, _, of_few = count(product(64, 512, 128), brief)
assert(of_few.known and few_of_it < count(product(64, 512, 128)) / 2, "heuristics of what is known")
local runs = support.that_runs(V4, "native")
ms.auto_schedule(product(64, 128, 64), {target = runs, trials = 1, db = support.new_path(), heuristics = {kept = 2}})
local untouched, _, of_untouched = count(product(320, 128, 256), {kept = 2}, runs)
assert(of_untouched.known and untouched > 100, "a template that was tuned, and never filled, is filled as a whole")
space.postprocess = postprocess
assert(not select(2, auto(product(256, 256, 1))).known, "a reduction of one value is another structure")
assert(not select(2, auto(product(256, 8, 256))).known, "and so are columns that are less than a vector")
ms.load("search.auto_schedule").forget()
assert(not select(2, auto(product(512, 384, 640))).known, "what is forgotten is analyzed again")

-- ---- Heuristics --------------------------------------------------------------------------------------------------

local bare = {rules = {{"parallel_vectorize_unroll", {"root"}}}}
local only = auto(product(256, 256, 256), {heuristics = bare})
assert(not has_kind(only.trace, "Reorder") and has_kind(only.trace, "Parallel"), "a call's own rules")
assert(has_kind((auto(product(256, 256, 256))).trace, "Reorder"), "are that call's alone")
local rules = ms.heuristics.rules
ms.heuristics.rules = bare.rules
assert(not has_kind((auto(product(256, 256, 256))).trace, "Reorder"), "all calls'")
ms.heuristics.rules = rules
local either = {rules = {bare.rules[1], {{"register_tile", "multi_level_tiling"}, {"complex_reduction"}}}}
assert(has_kind((auto(product(256, 256, 256), {heuristics = either})).trace, "Reorder"), "alternatives")
local parameters = {parallel_vectorize_unroll = {max_vector_extent = 64}} -- neither jobs nor unrolling
assert(not has_kind((auto(product(256, 256, 256), {heuristics = {parameters = parameters}})).trace, "Parallel"),
       "parameters of a rule")
local _, dear = auto(product(256, 256, 256), {heuristics = {machine = {multiply_adds = 0.01}}})
assert(dear.cycles > 10 * first.cycles, "numbers of the estimate")

-- ---- Targets -----------------------------------------------------------------------------------------------------

local one = {target = V4, cores = 1, vector_bits = 256}
local _, narrow = ms.auto_schedule(product(512, 512, 512), one)
local _, wide = ms.auto_schedule(product(512, 512, 512), {target = V4})
assert(narrow.target == "llvm -mcpu=x86-64-v4 -num-cores=1 -vector-bits=256", narrow.target)
assert(narrow.cycles > 2 * wide.cycles, "a quarter of the machine")

-- ---- Short types -------------------------------------------------------------------------------------------------

-- What a CPU multiplies short types by is what its schedule has: tiles of AMX, else dot products, as the untuned path
-- has them, whose estimate is no lower.
local function short_product(dtype, constant)
  local A, B = te.placeholder({64, 128}, dtype, "A"), te.placeholder({128, 64}, dtype, "B")
  return te.func("short", {A, B, ops.matmul(A, B)}, constant and {weights = {"B"}} or nil)
end
local analytical, untuned = ms.load "search.cost.analytical", ms.load "search.tune"
local candidates, least = analytical.candidates, nil
local function untuned_cost(f, text)
  analytical.candidates = function(...)
    local list, count = candidates(...)
    least = list[1].cost
    return list, count
  end
  untuned.run(f, {target = text, no_tune = true, store = ms.store(support.new_path())})
  analytical.candidates = candidates
  return least
end
local SHORT = {{"sapphirerapids", "int8", "T.tdpbssd"}, {"sapphirerapids", "bfloat16", "T.tdpbf16ps"},
               {"cascadelake", "int8"}, {"cooperlake", "bfloat16"}, {"haswell", "int8"}}
for _, case in ipairs(SHORT) do
  local text, f = "llvm -num-cores=1 -mcpu=" .. case[1], short_product(case[2])
  local s, of_short = ms.auto_schedule(f, {target = text})
  assert(s:script():find(case[3] or "range(", 1, true), text .. "\n" .. s:script())
  local cost = untuned_cost(f, text)
  assert(of_short.cycles <= 1.1 * cost, string.format("%s, %s: %g cycles for %g", text, case[2], of_short.cycles, cost))
  local got, want = ms.arrays_for(f, 1), ms.arrays_for(f, 1)
  ms.interpret(s:func(), table.unpack(got))
  ms.interpret(f, table.unpack(want))
  assert(got[3]:bytes() == want[3]:bytes(), text .. " computes something else")
end
local _, of_constant = ms.auto_schedule(short_product("int8", true), {target = "llvm -num-cores=1 -mcpu=cooperlake"})
local _, of_plain = ms.auto_schedule(short_product("int8"), {target = "llvm -num-cores=1 -mcpu=cooperlake"})
assert(not of_plain.known and of_constant.cycles < of_plain.cycles, "what is packed ahead is another structure")

-- ---- Tuned -------------------------------------------------------------------------------------------------------

local path = support.new_path()
local tuned, of = ms.auto_schedule(product(48, 64, 32), {trials = 2, db = path, heuristics = bare})
assert(of.best.seconds > 0 and of.best.id and tuned:hash() == of.best:schedule():hash())
assert(not has_kind(tuned.trace, "Reorder"), "what is tuned is the template, no other sketch")
tuned:build():check()

-- ---- Refused -----------------------------------------------------------------------------------------------------

refuses("takes a function", ms.auto_schedule, 3)
refuses("estimates for CPUs", ms.auto_schedule, func, {target = "cuda -arch=sm_90"})
refuses("there is no rule `fly`", ms.auto_schedule, func, {heuristics = {rules = {{"fly", {"root"}}}}})
refuses("is a rule's name, or a list of names", ms.auto_schedule, func, {heuristics = {rules = {"auto_inline"}}})
for _, entry in ipairs {{{}, {"root"}}, {{"auto_inline", 3}, {"root"}}, {7, {"root"}}, {"auto_inline", "root"}} do
  refuses("is a rule's name, or a list of names, and a list of patterns", ms.auto_schedule, func,
          {heuristics = {rules = {entry}}})
end
refuses("there is no rule `swim`", ms.auto_schedule, func,
        {heuristics = {rules = {{{"auto_inline", "swim"}, {"root"}}}}})
refuses("there is no pattern `wild`", ms.auto_schedule, func, {heuristics = {rules = {{"auto_inline", {"wild"}}}}})
refuses("`kept` is at least 1", ms.auto_schedule, func, {heuristics = {kept = 0}})
refuses("`known.around` is at least 1", ms.auto_schedule, func, {heuristics = {known = {around = 0}}})
refuses("far", ms.auto_schedule, func, {heuristics = {known = {far = 1}}})
refuses("keep", ms.auto_schedule, func, {heuristics = {keep = 1}})
refuses("vector-bits=77", ms.auto_schedule, func, {vector_bits = 77})
refuses("at least 1", ms.auto_schedule, func, {cores = 0})
print "auto_schedule: ok"
support.remove_stores()
