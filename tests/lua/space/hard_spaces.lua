-- Functions whose reductions are not like those of the 19 operators: instructions that the rules would try are refused
-- for them. Their spaces open, what is drawn is postprocessed, and candidates compute what the function computes.
-- usage: msched hard_spaces.lua ROOT
local ms = require "msched"
local te, ops = ms.te, ms.ops
local tune, refusals = ms.load "search.tune", ms.load "rules.refusals"
local root, target = arg[1], ms.target "native"
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")

-- Reductions over k of A and W, by their init and update.
local function reduction(init, update)
  return ms.from_script(string.format([[
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(A: T.Buffer((64, 96), "float32"), W: T.Buffer((96, 32), "float32"), bias: T.Buffer((32,), "float32"), C: T.Buffer((64, 32), "float32")):
    for i, j, k in T.grid(64, 32, 96):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = %s
            C[vi, vj] = %s
]], init, update), "reduction")
end

local function row_reduction(combine)
  local X, k = te.placeholder({16, 2048}, "float32", "X"), te.reduce_axis(2048, "k")
  return combine(X, k)
end

local function argmax()
  return row_reduction(function(X, k)
    local I, V = te.compute({16}, function(i) return te.argmax({k, X[{i, k}]}, k) end, "am")
    return te.func("argmax", {X, I, V})
  end)
end

local function custom_reducer()
  return row_reduction(function(X, k)
    local most =
      te.reducer(function(x, y) return te.maximum(x, te.abs(y)) end, function(t) return te.const(0.0, t) end, "maxabs")
    return te.func("maxabs", {X, te.compute({16}, function(i) return most(X[{i, k}], k) end, "am")})
  end)
end

local function max_from_inf()
  return ms.from_script([[
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(X: T.Buffer((16, 2048), "float32"), V: T.Buffer((16,), "float32")):
    for i, k in T.grid(16, 2048):
        with T.sblock("V"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                V[vi] = T.float32("-inf")
            V[vi] = T.max(V[vi], X[vi, vk])
]], "max_from_inf")
end

-- In integers, so that all orders of summing are equal.
local function lenet()
  local type = "int32"
  local function input(name, ...) return te.placeholder({...}, type, name) end
  local X, W1, W2 = input("X", 1, 28, 28, 1), input("W1", 5, 5, 1, 6), input("W2", 5, 5, 6, 16)
  local F1, F2, F3 = input("F1", 400, 120), input("F2", 120, 84), input("F3", 84, 10)
  local function pool(Y, name)
    local n, h, w, c = table.unpack(Y.shape)
    local a, b = te.reduce_axis(2, "a"), te.reduce_axis(2, "b")
    return te.compute({n, h // 2, w // 2, c},
                      function(i, y, x, q) return te.max(Y[{i, y * 2 + a, x * 2 + b, q}], {a, b}) end, name)
  end
  local first = pool(ops.relu(ops.conv2d(X, W1, {pad = 2, name = "conv1"}), "relu1"), "pool1")
  local second = pool(ops.relu(ops.conv2d(first, W2, {name = "conv2"}), "relu2"), "pool2")
  local flat = te.compute({1, 400}, function(i, j)
    return second[{0, te.floordiv(j, 80), te.floormod(te.floordiv(j, 16), 5), te.floormod(j, 16)}]
  end, "flat")
  local hidden = ops.relu(ops.matmul(flat, F1, {name = "fc1"}), "relu3")
  local out = ops.matmul(ops.relu(ops.matmul(hidden, F2, {name = "fc2"}), "relu4"), F3, {name = "fc3"})
  return te.func("lenet", {X, W1, W2, F1, F2, F3, out})
end

local function convolution(size, channels)
  return assert(loadfile(root .. "/lua/examples/conv2d_bn_relu.lua"))(size, channels)[1]
end

-- name, function, the least number of sketches on any machine, how many candidates are compared
local all = {
  {"argmax", argmax(), 1, 6}, {"custom reducer", custom_reducer(), 1, 6}, {"maximum from -inf", max_from_inf(), 1, 6},
  {"sum from a bias", reduction("bias[vj]", "C[vi, vj] + A[vi, vk] * W[vk, vj]"), 4, 20},
  {"element last", reduction("T.float32(0)", "A[vi, vk] * W[vk, vj] + C[vi, vj]"), 4, 20},
  {"convolution of one channel", convolution(14, 1), 3, 16}, {"convolution of one pixel", convolution(1, 8), 3, 16},
  {"LeNet", lenet(), 8, 8},
}

for _, e in ipairs(all) do
  local name, func, least, compared = table.unpack(e)
  local opened = tune.open(func, target, {})
  assert(#opened.sketches >= least,
         string.format("%s: %d sketches\n%s", name, #opened.sketches, refusals.text(opened.refused)))
  assert(not opened.thinned and (opened.product ~= nil) == (name == "LeNet"), name)
  local workers = ms.pool(func, {jobs = target.cores, target = "native"})
  local made, dropped, script_error = workers:replay(jobs_of(opened, 100), false)
  workers:close()
  assert(not script_error, script_error)
  refusals.merge(opened.refused, dropped)
  for _, r in pairs(opened.refused) do
    assert(r.by == "disallow_dynamic_loop",
           string.format("%s: the rules should have asked first:\n%s", name, refusals.text(opened.refused)))
  end
  local checked = 0
  for _, c in ipairs(made) do
    if c and checked < compared then
      checked = checked + 1
      ms.build(ms.apply(func, c.trace):func(), {reference = func}):check()
    end
  end
  assert(checked == compared, name)
  print(string.format("%s: %d sketches, %d candidates equal to the unscheduled function", name, #opened.sketches,
                      checked))
end

-- More elements than an int32 counts: loops of int32 are fused as far as one loop holds their iterations, whatever is
-- drawn, for a CPU and a GPU.
for _, type in ipairs {"int32", "int64"} do
  local n = type == "int32" and "70000" or "T.int64(70000)"
  local large = ms.from_script(([[
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(A: T.Buffer((N, N), "int8"), B: T.Buffer((N, N), "int8")):
    for i, j in T.grid(N, N):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.int8(1)
]]):gsub("N", n), "large")
  local sch = ms.schedule(large)
  local loop = sch:get_loops(sch:get_sblock "B")
  local split, why = pcall(sch.split, sch, loop, {70000, 70000})
  assert(split == (type == "int64") and (split or why:find("past int32, the type of the loop's variable: write the \z
                                                            loop's range as T.int64(n)", 1, true)), why)
  for _, on in ipairs {"native", "cuda -arch=sm_80"} do
    local opened = tune.open(large, ms.target(on), {})
    local workers = ms.pool(large, {jobs = target.cores, target = on})
    local made, dropped, script_error = workers:replay(jobs_of(opened, 12), false)
    workers:close()
    assert(not script_error and not next(dropped), script_error or refusals.text(dropped))
    for _, c in ipairs(made) do assert(c, type .. " on " .. on) end
    assert(not next(opened.refused), refusals.text(opened.refused))
    assert(#opened.sketches > 1, "no tiles of " .. type .. " on " .. on)
  end
end

-- Questions are answered as the instructions would be, and change nothing.
local sch = ms.schedule(max_from_inf())
local block = sch:get_sblock "V"
local i, k = sch:get_loops(block)
local before = sch:hash()
assert(not sch:can_rfactor(k, 0) and sch:can_decompose_reduction(block, k) and not sch:is_data_parallel(k)
       and sch:is_data_parallel(i))
local cache = sch:cache_read(block, 0, "global")
assert(sch:can_compute_at(cache, i))
local written = ms.schedule(reduction("T.float32(0)", "C[vi, vj] + A[vi, vk] * W[vk, vj]"))
block = written:get_sblock "C"
local loops = {written:get_loops(block)}
local copy = written:cache_write(block, 0, "local")
assert(written:can_rfactor(loops[3], 0) and not written:can_rfactor(loops[1], 0)
       and not written:can_rfactor(loops[3], 9))
assert(written:can_reverse_compute_at(copy, loops[2]) and not written:can_reverse_compute_at(copy, loops[3]))
written:reorder(loops[3], loops[1], loops[2])
assert(written:can_decompose_reduction(block, loops[3]) and not written:can_decompose_reduction(block, loops[1]))
assert(ms.schedule(max_from_inf()):hash() == before)
