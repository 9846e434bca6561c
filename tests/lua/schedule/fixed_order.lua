-- Reductions in a fixed order: candidates that pass compute what the unscheduled function computes on the interpreter,
-- bit for bit, on full-mantissa data: products, convolutions, softmax, layer normalization, drawn by chance, built by
-- LLVM for this machine, and as schedules of GPUs on the interpreter; what changes the order is refused, with block and
-- primitive; what is
-- noted on the root travels to builds; a tuned best and one of a resumed run keep it.  usage: msched fixed_order.lua
local ms = require "msched"
local te, ops = ms.te, ms.ops
local tune, fixed_order = ms.load "search.tune", ms.load "search.fixed_order"
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/measurer.lua")

local function product(m, n, k, type)
  local A, B, r = te.placeholder({m, k}, type or "float32", "A"), te.placeholder({k, n}, type or "float32", "B"),
    te.reduce_axis(k, "k")
  return te.func("product", {A, B, te.compute({m, n}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")})
end
local function operator(name, ...) return ops.func(name, {...}) end

-- The greatest of each row of what an elementary function makes: both are free of the order.
local function greatest(name)
  local A, r = te.placeholder({16, 96}, "float32", "A"), te.reduce_axis(96, "r")
  local B = te.compute({16, 96}, function(i, j) return te[name](A[{i, j}] * 8 - 4) end, "B")
  return te.func("greatest_" .. name, {A, te.compute({16}, function(i) return te.max(B[{i, r}], r) end, "C")})
end

local FUNCTIONS = {
  product(24, 40, 60), product(16, 32, 37), product(16, 24, 32, "float64"), product(16, 24, 32, "float16"),
  operator("conv2d", 1, 9, 9, 5, 8, 3), operator("softmax", {12, 50}), operator("layer_norm", {12, 60}),
  greatest "exp", greatest "tanh", greatest "sigmoid",
}

-- Arguments with all digits, and what the function makes of them on the interpreter, as bytes.
local function arrays_of(func)
  local list = ms.arrays_for(func, 1)
  for i, array in ipairs(list) do
    if array:type():find "float" then array:random(i, true) end
  end
  return list
end
local function bytes_of(array)
  local parts = {}
  for i, x in ipairs(array:tolist()) do parts[i] = string.pack("d", x) end
  return table.concat(parts)
end
local function result(func, run)
  local arrays = arrays_of(func)
  run(table.unpack(arrays))
  return bytes_of(arrays[#arrays])
end

local function drawn(func, sketch, candidate)
  local ok, sch = pcall(ms.apply, func, sketch, {resample = true, seed = 7, candidate = candidate, repair = true})
  return ok and sch or nil
end

-- Candidates of a space with its postprocessors and this one: those that pass, and messages of those that it refused.
local function candidates(func, target, most)
  local space, targets = ms.load "rules.space", ms.load "rules.targets"
  local parts = space.parts(targets.context(ms.target(target)))
  local opened, list, refused = tune.open(func, ms.target(target), {}), {}, {}
  for n = 1, 40 * most do
    if #list == most then break end
    local sketch = opened.product and opened.product:sketch(opened.product:combination(1, n))
      or opened.sketches[n % #opened.sketches + 1].trace
    local sch = sketch and drawn(func, sketch, n)
    if sch and space.postprocess(sch, parts) then
      local ok, message = pcall(fixed_order.apply, sch)
      if ok then list[#list + 1] = sch else refused[#refused + 1] = tostring(message) end
    end
  end
  return list, refused
end

local refused_by = {}
for _, func in ipairs(FUNCTIONS) do
  local wanted = result(func, function(...) ms.interpret(func, ...) end)
  local list, refused = candidates(func, "native", 24)
  assert(#list >= 8, func:name() .. ": " .. #list)
  for _, sch in ipairs(list) do
    local kernel = ms.build(sch:func(), {reference = func})
    assert(result(func, function(...) kernel:run(...) end) == wanted, func:name() .. " differs:\n" .. sch:script())
  end
  for _, message in ipairs(refused) do refused_by[message:match "%((%a+)[,)]" or "other"] = message end
  -- Of a GPU, on the interpreter.
  list = candidates(func, "cuda -arch=sm_70", 6)
  for _, sch in ipairs(list) do
    assert(result(func, function(...) ms.interpret(sch:func(), ...) end) == wanted,
           func:name() .. " for a GPU differs:\n" .. sch:script())
  end
end
assert(refused_by.rfactor and refused_by.reorder, "rfactor and order are refused")

-- ---- What is refused, and what is not -------------------------------------------------------------------------------

local func = product(24, 40, 60)
local function changed(change)
  local sch = ms.schedule(func)
  change(sch, sch:get_loops(sch:get_sblock "C"))
  return pcall(sch.check_reduction_order, sch)
end
local function refuses(words, change)
  local ok, message = changed(change)
  message = tostring(message)
  assert(not ok and message:find("`C", 1, true) and message:find(words, 1, true), words .. ": " .. message)
end
assert(changed(function() end))
assert(changed(function(sch, i, j, k) sch:reorder(k, i, j) end), "a loop over space may be anywhere")
assert(changed(function(sch, i, j, k)
  local k0, k1 = sch:split(k, {ms.rest, 7}) -- leaves a rest
  sch:reorder(k0, i, k1, j)
  sch:vectorize(j)
  sch:unroll(k1)
end))
assert(changed(function(sch, i, j, k)
  sch:parallel(sch:fuse(i, j))
  sch:decompose_reduction(sch:get_sblock "C", k)
end))
assert(changed(function(sch, i, j) sch:bind(i, "blockIdx.x") sch:bind(j, "threadIdx.x") end))
refuses("reorder", function(sch, i, j, k)
  local k0, k1 = sch:split(k, {ms.rest, 6})
  sch:reorder(k1, k0)
end)
refuses("rfactor", function(sch, i, j, k)
  local k0 = sch:split(k, {ms.rest, 6})
  sch:rfactor(k0, 2)
end)
refuses("bind", function(sch, i, j, k) sch:bind(k, "threadIdx.x") end)
refuses("blockize", function(sch, i, j, k)
  local _, k1 = sch:split(k, {ms.rest, 6})
  sch:reorder(i, j, k1)
  sch:blockize(k1)
end)
-- A maximum and a minimum are the same in any order, of zeros by their sign too.
for _, extreme in ipairs {"max", "min"} do
  local A, r = te.placeholder({8, 64}, "float32", "A"), te.reduce_axis(64, "r")
  local func = te.func(extreme, {A, te.compute({8}, function(i) return te[extreme](A[{i, r}], r) end, "C")})
  local function zeros()
    local x = {}
    for i = 1, 512 do x[i] = i % 3 == 0 and -0.0 or i % 7 == 0 and 0.0 or (extreme == "max" and -1 or 1) * i end
    for i = 1, 64 do x[i] = i % 2 == 0 and -0.0 or (extreme == "max" and -3.0 or 3.0) end
    return {ms.array({8, 64}, "float32", x), ms.array {8}}
  end
  local function run(how)
    local list = zeros()
    how(table.unpack(list))
    return bytes_of(list[2])
  end
  local wanted, forms = run(function(...) ms.interpret(func, ...) end), 0
  for _, change in ipairs {
    function() end,
    function(sch, _, k)
      local k0, k1 = sch:split(k, {ms.rest, 16})
      sch:reorder(k1, k0)
    end,
    function(sch, _, k)
      local _, k1 = sch:split(k, {ms.rest, 16})
      local rf = sch:rfactor(k1, 1)
      sch:vectorize((select(3, sch:get_loops(rf))))
    end,
    function(sch, i, k)
      sch:parallel(i)
      sch:decompose_reduction(sch:get_sblock "C", k)
    end,
    function(sch, _, k) sch:rfactor(sch:split(k, {8, ms.rest}), 1) end,
  } do
    local sch = ms.schedule(func)
    change(sch, sch:get_loops(sch:get_sblock "C"))
    fixed_order.apply(sch)
    local kernel = ms.build(sch:func(), {reference = func})
    assert(run(function(...) kernel:run(...) end) == wanted, extreme .. ": " .. sch:script())
    assert(run(function(...) ms.interpret(sch:func(), ...) end) == wanted, extreme .. ", interpreted: " .. sch:script())
    forms = forms + 1
  end
  assert(forms == 5)
  local on_gpu = ms.schedule(func)
  local i, k = on_gpu:get_loops(on_gpu:get_sblock "C")
  on_gpu:bind(i, "blockIdx.x")
  on_gpu:bind(k, "threadIdx.x")
  fixed_order.apply(on_gpu)
  assert(run(function(...) ms.interpret(on_gpu:func(), ...) end) == wanted)
end
-- Two reductions: one within the other, and the other way.
do
  local conv = operator("conv2d", 1, 9, 9, 5, 8, 3)
  local sch = ms.schedule(conv)
  local name
  for _, each in ipairs(sch:block_names()) do if sch:has_init(sch:get_sblock(each)) then name = each end end
  local loops, kinds = {sch:get_loops(sch:get_sblock(name))}, sch:loop_iter_kinds(sch:get_sblock(name))
  local reducing = {}
  for i, kind in ipairs(kinds) do if kind == "reduce" then reducing[#reducing + 1] = loops[i] end end
  assert(#reducing == 3 and pcall(sch.check_reduction_order, sch))
  sch:reorder(reducing[2], reducing[1])
  local ok, message = pcall(sch.check_reduction_order, sch)
  assert(not ok and tostring(message):find("`" .. name .. "`", 1, true) and tostring(message):find "reorder",
         tostring(message))
  assert(ms.code_of(message) == "reduction_order")
end
-- A sum that starts from what is added to it at the end elsewhere.
do
  local A, B, bias, r = te.placeholder({8, 12}, "float32", "A"), te.placeholder({12, 8}, "float32", "B"),
    te.placeholder({8}, "float32", "bias"), te.reduce_axis(12, "k")
  local C = te.compute({8, 8}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")
  local biased = te.func("biased", {A, B, bias, te.compute({8, 8}, function(i, j) return C[{i, j}] + bias[j] end, "D")})
  for _, decomposed in ipairs {false, true} do
    local sch = ms.schedule(biased)
    sch:fuse_reduction_epilogue(sch:get_sblock "C", sch:get_sblock "D")
    if decomposed then
      local block = sch:get_sblock "C"
      sch:decompose_reduction(block, (select(3, sch:get_loops(block))))
    end
    local ok, message = pcall(sch.check_reduction_order, sch)
    assert(not ok and tostring(message):find "fuse_reduction_epilogue", tostring(message))
  end
end
-- An online softmax scales what was summed before.
do
  local attention = operator("attention", 1, 2, 6, 12, 4)
  local sch = ms.schedule(attention)
  for _, name in ipairs {"scaled", "exponent", "softmax"} do sch:compute_inline(sch:get_sblock(name)) end
  assert(pcall(sch.check_reduction_order, sch))
  for _, columns in ipairs {3, 12} do
    local fused = sch:copy()
    fused:fuse_online_softmax(fused:get_sblock "maximum", fused:get_sblock "total", fused:get_sblock "attention", 2,
                              columns)
    local ok, message = pcall(fused.check_reduction_order, fused)
    assert(not ok and ms.code_of(message) == "reduction_order", tostring(message))
  end
end
-- Blocks of a row's exponentials are added apart, where there are several.
do
  local sch = ms.schedule(operator("softmax", {4, 12}))
  sch:rebase_exponential(sch:get_sblock "maximum", sch:get_sblock "total", 4, 1)
  local ok, message = pcall(sch.check_reduction_order, sch)
  assert(not ok and ms.code_of(message) == "reduction_order", tostring(message))
end
-- Of a sum that is one expression, or was inlined since, it is not known how it adds; a maximum rounds nothing.
for _, reduce in ipairs {te.sum, te.max} do
  local A, r = te.placeholder({20}, "float32", "A"), te.reduce_axis(3, "r")
  local B = te.compute({18}, function(i) return reduce(A[{i + r}], r) end, "B")
  local sch = ms.schedule(te.func("window", {A, te.compute({18}, function(i) return B[{i}] * 2 end, "D")}))
  sch:unroll_reduction(sch:get_sblock "B")
  for step = 1, 2 do
    local ok, message = pcall(sch.check_reduction_order, sch)
    assert(ok == (reduce == te.max), tostring(message))
    assert(ok or (ms.code_of(message) == "reduction_order" and tostring(message):find "block `B` reduces no more"),
           tostring(message))
    if step == 1 then sch:compute_inline(sch:get_sblock "B") end
  end
end
-- Integers may be summed in any order; so may what no reduction is.
do
  local ints = product(8, 8, 8, "int32")
  local sch = ms.schedule(ints)
  local _, _, k = sch:get_loops(sch:get_sblock "C")
  sch:rfactor(k, 2)
  assert(pcall(sch.check_reduction_order, sch))
end

-- ---- Tuned ----------------------------------------------------------------------------------------------------------

-- All that is asked for keeps the order and has the note, also in a run that goes on; records without it are not of
-- use.
local path = support.new_path()
support.run({func}, {trials = 12, policy = "random", db = path})
collectgarbage()
for _, policy in ipairs {"analytical", "evolutionary"} do
  local m, tasks = support.run({func}, {trials = 12, policy = policy, db = path, fixed_order = true})
  assert(#m.made[1] == 12)
  for _, sch in ipairs(m.made[1]) do
    assert(sch:annotation(sch:get_sblock(sch:root_block()), "msched.fixed_order") == 1)
    assert(pcall(sch.check_reduction_order, sch))
  end
  assert(tasks[1].fastest.trace:text():find "msched.fixed_order", "the best is one that keeps the order")
  collectgarbage()
end
-- Where there is no block, nothing could be noted: refused, but where nothing is rounded.
for type, expected in pairs {float32 = false, int32 = true} do
  local bare = ms.from_script(string.format([[
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(X: T.Buffer((8,), "%s"), Y: T.Buffer((8,), "%s")):
    for i in range(8):
        Y[i] = X[i] * X[i] + Y[i]
]], type, type), "bare.py")
  bare = bare.main or bare
  local ok, message = pcall(support.run, {bare}, {trials = 1, fixed_order = true})
  assert(ok == expected and (ok or message:find "T.sblock"), tostring(message))
end
support.remove_stores()
print "fixed order: ok"
