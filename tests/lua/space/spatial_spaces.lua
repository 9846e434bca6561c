-- Spaces of functions that reduce nothing: elementwise ones, stencils of one and several stages, transpositions,
-- paddings, broadcasts. There are so many schedules of each, for a CPU and a GPU; what is drawn computes
-- what the function does, built for this machine and lowered for the GPU; nothing is refused; and what cannot be
-- tiled has the one schedule that it had.
-- usage: msched spatial_spaces.lua DRAWS EVERY      EVERY: one of so many that are drawn for a CPU is built, or of four
-- times as many where few are judged (support/lua/draws.lua)
local ms = require "msched"
local jobs_of = dofile(arg[0]:match "^.*/" .. "../jobs.lua")
local te, ops = ms.te, ms.ops
local tune, refusals, common, analytical = ms.load "search.tune", ms.load "rules.refusals", ms.load "rules.common",
  ms.load "search.cost.analytical"

local judged = dofile(arg[0]:match "^.*/" .. "../../support/lua/draws.lua")
local draws, every = math.tointeger(arg[1]), math.tointeger(arg[2]) * judged.number(4, 1)
-- few threads, as small shapes have them
local CPU, GPU = ms.target "native -num-cores=4", ms.target "cuda -arch=sm_80 -thread_warp_size=4"

local function input(shape, type, name) return te.placeholder(shape, type or "float32", name or "X") end

-- A function of one tensor of a shape.
local function of(shape, type, f)
  local X = input(shape, type)
  return te.func("f", {X, f(X)})
end
local function map(shape, f, type) return of(shape, type, function(X) return ops.map(X, f) end) end

-- Weighted neighbours of each element of the inside: a star, in as many dimensions as the shape has.
local function star(shape, type)
  local outer = {}
  for d, n in ipairs(shape) do outer[d] = n + 2 end
  return of(outer, type, function(X)
    return te.compute(shape, function(...)
      local at, sum = {...}, nil
      for d = 1, #at do at[d] = at[d] + 1 end
      sum = X[at] * 2
      for d = 1, #at do
        for _, step in ipairs {-1, 1} do
          local near = {table.unpack(at)}
          near[d] = near[d] + step
          sum = sum + X[near]
        end
      end
      return sum
    end, "Y")
  end)
end

-- Sums of three along the last dimension, then along the one before it: so many stages of each.
local function blurred(X, stages, combine)
  for stage = 1, 2 * stages do
    local shape, d = {table.unpack(X.shape)}, #X.shape - (stage + 1) % 2
    shape[d] = shape[d] - 2
    local from = X
    X = te.compute(shape, function(...)
      local at, sum = {...}, nil
      for step = 0, 2 do
        local near = {table.unpack(at)}
        near[d] = near[d] + step
        sum = sum and sum + from[near] or from[near]
      end
      return combine and combine(sum) or sum
    end, "S" .. stage)
  end
  return X
end

local function square(X) return te.compute({X.shape[1] - 2, X.shape[2] - 2}, function(i, j)
  local sum
  for a = 0, 2 do for b = 0, 2 do sum = sum and sum + X[{i + a, j + b}] or X[{i + a, j + b}] end end
  return sum
end, "Y") end

-- Two results that share what both are made of.
local function two_results()
  local X = input {19, 33}
  local A = te.compute({19, 33}, function(i, j) return X[{i, j}] * 2.0 end, "A")
  local B, C = ops.map(A, function(a) return a + 1.0 end, "B"), ops.map(A, function(a) return te.maximum(a, 0) end, "C")
  return te.func("f", {X, B, C})
end

-- Results beside one another: of the same arguments; one of another; of several, in place of what they were.
local function sum_and_difference(shape)
  local A, B = input(shape, nil, "A"), input(shape, nil, "B")
  return te.func("f", {A, B, ops.add(A, B, "S"), ops.subtract(A, B, "D")})
end
local function with_derivative(shape)
  local X = input(shape)
  local G = ops.map(X, function(x) return 1.0 / (1.0 + te.exp(-x)) end, "G")
  return te.func("f", {X, G, ops.map(G, function(g) return g * (1.0 - g) end, "H")})
end
local function of_rows_and_columns(shape)
  local X, b, c = input(shape), input({shape[2]}, nil, "b"), input({shape[1], 1}, nil, "c")
  return te.func("f", {X, b, c, ops.add(X, b, "P"), ops.multiply(X, b, "Q"), ops.add(X, c, "R")})
end
local function adam(n)
  return ms.from_script(([[
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def f(P: T.Buffer((N,), "float32"), G: T.Buffer((N,), "float32"), M: T.Buffer((N,), "float32"), V: T.Buffer((N,), "float32")):
    for i in range(N):
        with T.sblock("M"):
            vi = T.axis.spatial(N, i)
            M[vi] = M[vi] * T.float32(0.5) + G[vi] * T.float32(0.5)
    for i in range(N):
        with T.sblock("V"):
            vi = T.axis.spatial(N, i)
            V[vi] = V[vi] * T.float32(0.75) + G[vi] * G[vi] * T.float32(0.25)
    for i in range(N):
        with T.sblock("P"):
            vi = T.axis.spatial(N, i)
            P[vi] = P[vi] - M[vi] * T.float32(0.125) / (T.sqrt(T.fabs(V[vi])) + T.float32(1))
]]):gsub("N", n), "f")
end

-- A stage with two readers: of its rows so far apart. kept: a result itself.
local function shared_stage(kept)
  local X = input {20, 30}
  local H = te.compute({20, 28}, function(i, j) return X[{i, j}] + X[{i, j + 1}] + X[{i, j + 2}] end, "H")
  local V = te.compute({18, 28}, function(i, j) return H[{i, j}] + H[{i + 2, j}] end, "V")
  if kept then return te.func("f", {X, H, V}) end
  return te.func("f", {X, V, te.compute({16, 28}, function(i, j) return H[{i, j}] * H[{i + 4, j}] end, "W")})
end

local function outer_product()
  local a, b = input({23}, nil, "a"), input({37}, nil, "b")
  local A = te.compute({23}, function(i) return te.tanh(a[{i}]) end, "A")
  return te.func("f", {a, b, te.compute({23, 37}, function(i, j) return A[{i}] * b[{j}] end, "Y")})
end

-- Elements of a tensor at other places.
local function picked(shape, result, at)
  return of(shape, nil, function(X) return te.compute(result, function(...) return X[{at(...)}] end, "Y") end)
end

local function with_bias(shape, bias, type)
  local X, b = input(shape, type), input(bias, type, "b")
  return te.func("f", {X, b, ops.add(X, b)})
end

-- name, function, the least distinct schedules for a CPU and for a GPU
local ALL = {
  {"gelu", map({24, 48}, function(x) return x * 0.5 * (te.erf(x * 0.7) + 1.0) end), 8, 8},
  {"gelu of a long row", map({1000}, function(x) return x * 0.5 * (te.erf(x * 0.7) + 1.0) end), 8, 8},
  {"an odd number of elements", map({3, 7, 37}, function(x) return x + 1 end), 6, 6},
  {"bytes", map({40, 64}, function(x) return te.maximum(x, 0) end, "int8"), 5, 8},
  {"bfloat16", map({24, 48}, function(x) return te.maximum(x, 0) end, "bfloat16"), 6, 8},
  {"float16", map({24, 48}, function(x) return x + x end, "float16"), 6, 8},
  {"to another type", map({24, 48}, function(x) return te.cast(x, "float32") end, "int8"), 6, 8},
  {"three rows", with_bias({3, 40}, {40}), 6, 5},
  {"bias of columns", with_bias({20, 48}, {48}), 10, 10},
  {"bias of rows", with_bias({20, 48}, {20, 1}), 10, 10},
  {"bias of channels", with_bias({2, 5, 5, 12}, {12}), 8, 8},
  {"two results", two_results(), 10, 10},
  {"a sum and a difference", sum_and_difference {24, 48}, 12, 12},
  {"a derivative beside", with_derivative {24, 48}, 12, 12},
  {"three results of rows", of_rows_and_columns {20, 48}, 12, 12}, {"adam", adam(640), 12, 12},
  {"star in a row", star {200}, 6, 6}, {"star of five", star {33, 40}, 12, 12},
  {"star of seven", star {6, 7, 20}, 10, 10},
  {"star of bytes", star({33, 40}, "int8"), 8, 12}, {"star of integers", star({20, 20}, "int32"), 10, 10},
  {"blur in one stage", of({22, 50}, nil, square), 12, 12},
  {"blur in two stages", of({22, 50}, nil, function(X) return blurred(X, 1) end), 20, 20},
  {"blur in four stages", of({20, 38}, nil, function(X) return blurred(X, 2) end), 20, 20},
  {"blur with tangents", of({20, 38}, nil, function(X) return blurred(X, 1, te.tanh) end), 20, 20},
  {"blurs of images", of({2, 3, 12, 20}, nil, function(X) return blurred(X, 1) end), 20, 20},
  {"elements used by a window", of({22, 40}, nil, function(X) return square(ops.exp(X)) end), 16, 16},
  {"transposition", of({33, 40}, nil, ops.transpose), 12, 12},
  {"transposition of bytes", of({64, 40}, "int8", ops.transpose), 8, 12},
  {"transposition of three", of({5, 12, 18}, nil, function(X) return ops.transpose(X, {2, 3, 1}) end), 10, 10},
  {"padding", of({14, 30}, nil, function(X) return ops.pad(X, {1, 1}, {1, 1}) end), 10, 10},
  {"a stage of two", shared_stage(), 20, 20}, {"a stage that is a result", shared_stage(true), 16, 16},
  {"outer product", outer_product(), 16, 14},
  {"another type of stages", of({22, 30}, "float64", function(X) return blurred(X, 1) end), 20, 20},
  {"backwards", picked({21, 33}, {21, 33}, function(i, j) return 20 - i, 32 - j end), 10, 8},
  {"every other", picked({41, 66}, {20, 33}, function(i, j) return 2 * i, 2 * j end), 10, 8},
  {"diagonals", picked({40, 40}, {19, 20}, function(i, j) return i + j, j end), 10, 8},
  {"one row", of({1, 40}, nil, ops.transpose), 5, 5}, {"one column", of({40, 1}, nil, ops.transpose), 5, 5},
  {"extents of one", star {1, 1, 19}, 2, 3}, {"a small star", star {5, 3}, 8, 8},
  {"a star of nine", star {3, 4, 5, 17}, 10, 8},
  {"comparisons", map({12, 20}, function(x) return te.gt(x, 0) end), 4, 4},
  {"reshape", of({12, 40}, nil, function(X) return ops.reshape(X, {6, 2, 40}) end), 4, 4},
}

-- Candidates of all sketches in turn, each once; none is refused.
local function candidates(name, func, target)
  local opened = tune.open(func, target, {})
  local pool = ms.pool(func, {jobs = 1, target = target.text})
  local made, dropped, script_error = pool:replay(jobs_of(opened, draws), false)
  pool:close()
  assert(not script_error, script_error)
  local list, seen = {}, {}
  for _, c in ipairs(made) do
    if c and not seen[c.hash] then list[#list + 1], seen[c.hash] = c, true end
  end
  local text = refusals.text(opened.refused)
  assert(text == "", name .. ": the rules should have asked first:\n" .. text)
  return list, opened, refusals.text(dropped)
end

local function check(name, func, target, least, same)
  local list, opened, dropped = candidates(name, func, target)
  for line in dropped:gmatch "[^\n]+" do
    assert(line:find("disallow_dynamic_loop", 1, true), name .. ": draws were refused:\n" .. dropped)
  end
  assert(#list >= least, string.format("%s for %s: %d distinct schedules of %d draws, less than %d", name, target.kind,
                                       #list, draws, least))
  for i = 1, #list, target == CPU and every or 1 do
    local c = list[i]
    local ok, message = pcall(same, func, c)
    assert(ok, string.format("%s: %s\n%s", name, message, ms.apply(func, c.trace):func():script()))
  end
  return #list, #opened.sketches
end

local function same_on_cpu(func, c)
  local kernel = ms.build(ms.apply(func, c.trace):func(), {target = CPU.text})
  local most = ms.compare(kernel, function(...) ms.interpret(func, ...) end, 1)
  assert(most <= 1e-3, "differs by " .. most)
end
local function same_on_gpu(func, c) ms.check_lowered(func, ms.apply(func, c.trace):func(), GPU.text, 1) end

for _, e in ipairs(ALL) do
  local name, func, least, on_gpu = table.unpack(e)
  local cpu, sketches = check(name, func, CPU, least, same_on_cpu)
  local gpu, other = check(name, func, GPU, on_gpu, same_on_gpu)
  print(string.format("%-28s %2d schedules of %2d sketches for a CPU, %2d of %2d for a GPU", name, cpu, sketches, gpu,
                      other))
end

-- ---- What is no such block ---------------------------------------------------------------------------------------

-- How many schedules the rule makes of the last block of a function.
local function made_of(func, prepare)
  local space, targets = ms.load "rules.space", ms.load "rules.targets"
  local sch = ms.schedule(func)
  local names = sch:block_names()
  if prepare then prepare(sch, sch:get_sblock(names[#names])) end
  local context = targets.context(CPU)
  return #space.apply(space.rule("spatial_tiling", context), sch, names[#names], context)
end
local function loops_of(text)
  return ms.from_script("from tvm.script import tirx as T\n@T.prim_func(s_tir=True)\n" .. text, "f")
end

local plain = star {33, 40}
assert(made_of(plain) > 1)
assert(made_of(plain, function(sch, block) sch:annotate(block, common.SPATIAL, 1) end) == 1, "tiled twice")
assert(made_of(plain, function(sch, block) sch:parallel((sch:get_loops(block))) end) == 1, "a loop that has its kind")
assert(made_of(plain, function(sch, block) sch:split(sch:get_loops(block), {ms.rest, 4}) end) == 1,
       "bindings of several loops")
assert(made_of(plain, function(sch, block) sch:blockize((sch:get_loops(block))) end) == 1, "a block in a block")
assert(made_of(of({20, 40}, nil, function(X) return ops.sum(X, {2}) end)) == 1, "a reduction")
assert(made_of(map({}, function(x) return x + 1 end)) == 1, "a scalar")
assert(made_of(map({5}, function(x) return x + 1 end)) == 1, "less than a vector")
assert(made_of(loops_of [[
def f(x: T.handle, y: T.handle):
    n = T.int32()
    X = T.match_buffer(x, (n, 8))
    Y = T.match_buffer(y, (n, 8))
    for i, j in T.grid(n, 8):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] + T.float32(1)
]]) == 1, "an extent that is not known")
assert(made_of(loops_of [[
def f(X: T.Buffer((16, 32), "float32"), Y: T.Buffer((16, 32), "float32")):
    for i in range(16):
        for j in range(32):
            with T.sblock("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = X[vi, vj] + T.float32(1)
        for j in range(32):
            with T.sblock("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = Y[vi, vj] * T.float32(2)
]]) == 1, "a loop with two blocks")
assert(made_of(loops_of [[
def f(X: T.Buffer((16, 32), "float32"), Y: T.Buffer((16, 32), "float32"), Z: T.Buffer((16, 32), "float32")):
    for i, j in T.grid(16, 32):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = X[vi, vj] + T.float32(1)
            Z[vi, vj] = X[vi, vj] * T.float32(2)
]]) > 1, "two results of one block")

-- ---- What is drawn, what is estimated ----------------------------------------------------------------------------

-- Rows that roll on are among the schedules of stages that overlap by rows alone.
local function holds(func, target, word)
  for _, s in ipairs(tune.open(func, target, {}).sketches) do
    if s.trace:text():find(word, 1, true) then return true end
  end
  return false
end
local two_stages = of({22, 50}, nil, function(X) return blurred(X, 1) end)
assert(holds(two_stages, CPU, "rolling_buffer") and holds(two_stages, CPU, "compute_at"))
assert(holds(two_stages, GPU, "set_scope") and holds(plain, GPU, "cache_read"))
assert(not holds(map({24, 48}, function(x) return x + 1 end), GPU, "cache_read"))

-- Results are computed in one nest where their tiles are alike, and no tile of one needs what another tile leaves.
for _, target in ipairs {CPU, GPU} do
  assert(holds(sum_and_difference {24, 48}, target, "merge") and holds(adam(640), target, "merge"))
end
assert(holds(with_derivative {24, 48}, CPU, "merge") and not holds(with_derivative {24, 48}, GPU, "merge"))
assert(holds(of_rows_and_columns {20, 48}, CPU, "merge"))
local function results(first, second, at)
  local X = input {24, 48}
  local A = te.compute(first, function(i, j) return X[{i, j}] + 1 end, "A")
  return te.func("f", {X, A, te.compute(second, function(i, j) return A[{at(i, j)}] * 2 end, "B")})
end
assert(not holds(results({24, 48}, {12, 48}, function(i, j) return i, j end), CPU, "merge"), "other shapes")
assert(not holds(results({24, 48}, {24, 48}, function(i, j) return 23 - i, j end), CPU, "merge"),
       "what is not yet there")

-- Results of more than the caches hold may be stored around them: those that are written along their rows, and are
-- neither read again nor what is written is made of.
local NONTEMPORAL = "msched.nontemporal"
local HUGE = {1 << 16, 1 << 16}
local function in_place() return loops_of [[
def f(X: T.Buffer((65536, 65536), "float32"), Y: T.Buffer((65536, 65536), "float32")):
    for i, j in T.grid(65536, 65536):
        with T.sblock("Y"):
            vi, vj = T.axis.remap("SS", [i, j])
            Y[vi, vj] = Y[vi, vj] + X[vi, vj]
]] end
local function read_again()
  local X = input(HUGE)
  local H = te.compute(HUGE, function(i, j) return X[{i, j}] + 1 end, "H")
  return te.func("f",
                 {X, H, te.compute({HUGE[1], HUGE[2] - 1}, function(i, j) return H[{i, j}] + H[{i, j + 1}] end, "Y")})
end
assert(holds(map(HUGE, function(x) return x + 1 end), CPU, NONTEMPORAL)
       and holds(of(HUGE, nil, ops.softmax), CPU, NONTEMPORAL))
assert(not holds(map({24, 48}, function(x) return x + 1 end), CPU, NONTEMPORAL), "what stays in the cache")
assert(not holds(map(HUGE, function(x) return x + 1 end), GPU, NONTEMPORAL), "a GPU")
assert(not holds(in_place(), CPU, NONTEMPORAL), "a result that is read")
assert(not holds(of(HUGE, nil, function(X) return ops.sum(X, {2}) end), CPU, NONTEMPORAL), "a reduction")
local again = 0
for _ in tune.open(read_again(), CPU, {}).sketches[1].trace:text():gmatch(NONTEMPORAL) do again = again + 1 end
assert(again == 1, "a result that another block reads")

-- Numbers that loops are split by can be mutated.
local space = ms.load "rules.space"
for _, target in ipairs {CPU, GPU} do
  local opened = tune.open(plain, target, {})
  local mutator = space.parts((ms.load "rules.targets").context(target)).mutators[1][1]
  local trace, changed = opened.sketches[2].trace, 0
  for n = 1, 40 do
    local made = space.mutate(mutator, trace, ms.stream(n), nil)
    for i, d in ipairs(made and made:draws() or {}) do
      local same = table.concat(d.decision, " ") == table.concat(trace:draws()[i].decision, " ")
      if not same and d.kind == "SampleCategorical" then changed = changed + 1 end
    end
  end
  assert(changed > 0, target.text .. ": no factor of a split is mutated")
end

-- The model's top-ranked candidates: the unchanged schedule where tiles gain little, squares for a large transposition.
local MACHINE = ms.target "llvm -mcpu=x86-64-v4 -num-cores=2"
local function first(func)
  local sketches, jobs = {}, {}
  for i, s in ipairs(tune.open(func, MACHINE, {}).sketches) do sketches[i] = s.trace:simplified(false) end
  for i, d in ipairs(analytical.best(func, MACHINE, sketches, {budget = 2000, most = 60, each = 2})) do
    jobs[i] = {trace = d.trace, candidate = i}
  end
  local pool = ms.pool(func, {jobs = 1, target = MACHINE.text})
  local list = analytical.ranked(func, MACHINE, (pool:replay(jobs, false)))
  pool:close()
  return ms.apply(func, list[1].trace)
end
local function is_tiled(sch) return #sch:blocks_with(common.SPATIAL) > 0 end
assert(not is_tiled(first(map({1024, 1024}, function(x) return te.maximum(x, 0) end))),
       "an elementwise function is tiled without need")
assert(is_tiled(first(of({2048, 2048}, nil, ops.transpose))), "a large transposition is not tiled")

-- Rows that are unrolled together share what they read.
local function rows(together)
  local func = star {48, 64}
  local sch = ms.schedule(func)
  local i, j = sch:get_loops(sch:get_sblock "Y")
  local _, unrolled = sch:split(i, {ms.rest, 4})
  local vectors, inner = sch:split(j, {ms.rest, 16})
  sch:reorder {vectors, unrolled, inner}
  if together then sch:unroll(unrolled) end
  sch:vectorize(inner)
  return (ms.estimate(func, sch.trace, analytical.machine(MACHINE)))
end
assert(rows(true) < 0.95 * rows(false), string.format("unrolled rows cost %g, others %g", rows(true), rows(false)))
print "spatial_spaces: ok"
