-- Schedules by hand: methods, handles, traces; built, checked, timed.
local ms = require "msched"
local te = ms.te

local refuses = dofile(arg[0]:match "^.*/" .. "../refuses.lua")

local A, B = te.placeholder({40, 24}, "float32", "A"), te.placeholder({24, 56}, "float32", "B")
local r = te.reduce_axis(24, "k")
local C = te.compute({40, 56}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")
local gemm = te.func("gemm", {A, B, C})

local sch = ms.schedule(gemm, {seed = 1})
local block = sch:get_sblock "C"
local i, j, k = sch:get_loops(block)
assert(sch:extent(i) == 40 and sch:loop_iter_kind(k) == "reduce" and sch:block_name(block) == "C")
local i0, i1 = sch:split(i, {ms.rest, 8})
local tiles = {sch:sample_perfect_tile(j, 2, 16)}
assert(tiles[1]:value() * tiles[2]:value() == 56)
local j0, j1 = sch:split(j, tiles)
sch:reorder(i0, j0, k, i1, j1)
sch:parallel(i0)
sch:vectorize(j1)
sch:decompose_reduction(block, k)
local kernel = sch:build()
local difference, compared = kernel:check()
assert(difference == 0 and compared > 100)
difference, compared = kernel:check {samples = 3}
assert(difference == 0 and compared > 0 and compared <= 3)
local seconds, low, high = kernel:time(table.unpack(ms.arrays_for(gemm, 1)))
do -- behind the arguments: how long it is sampled
  local arguments = ms.arrays_for(gemm, 1)
  arguments[#arguments + 1] = 1e-4
  local _, _, _, runs = kernel:time(table.unpack(arguments))
  assert(runs >= 1)
  for _, wrong in ipairs {0, -1, "long"} do
    arguments[#arguments] = wrong
    assert(not pcall(kernel.time, kernel, table.unpack(arguments)), wrong)
  end
  assert(not pcall(kernel.time, kernel, arguments[1]), "too few")
end
assert(low <= seconds and seconds <= high)

-- Annotations hold lists and maps, drawn numbers in them too; the text of the trace is a function that does the same.
local noted = ms.schedule(gemm, {seed = 1})
local of = noted:get_sblock "C"
noted:annotate(of, "list", {1, 2, {3, "x"}})
noted:annotate(of, "map", {x = 1, deep = {er = {1.5, true}}})
noted:annotate(of, "named", {ann_val = {x = 2}})
assert(noted:annotation(of, "map").deep.er[2] == true)
assert(noted:annotation(of, "named").x == 2 and noted:annotation(of, "list")[3][2] == "x")
local repeated = ms.schedule(gemm, {seed = 1})
load(tostring(noted.trace))()(ms, repeated, {})
assert(tostring(repeated) == tostring(noted))
local tile = noted:sample_perfect_tile((noted:get_loops(of)), 2)
noted:annotate(of, "drawn", {tiles = {tile, 4}})
assert(noted:annotation(of, "drawn").tiles[1] == tile:value())
refuses("there is no option `unit`", function() noted:compute_at(of, of, {unit = true}) end)
refuses([[ is "a\000b\010c"; expected a string]], function() noted:get_sblock "a\0b\nc" end)

-- Numbers as arguments: compiled and interpreted alike.
local scale = ms.from_script [[
@T.prim_func(s_tir=True)
def main(B: T.Buffer((4,), "float32"), n: T.int32, x: T.float32, y: T.float64):
    for i in range(4):
        B[i] = T.Cast("float32", n) + x * T.Cast("float32", y)
]]
for _, run in ipairs {ms.schedule(scale):build(), function(...) ms.interpret(scale, ...) end} do
  local B = ms.array {4}
  run(B, -3, 0.5, 1.5)
  assert(B[{3}] == -2.25)
end
refuses("4 arguments are expected, not 2", ms.interpret, scale, ms.array {4}, 1)

-- The trace gives the same module again, through each of its forms.
local function gives_it_again(func, scheduled)
  for _, form in ipairs {"text", "binary", "json"} do
    local again = ms.apply(func, ms.read_trace(scheduled.trace[form](scheduled.trace)))
    assert(again:hash() == scheduled:hash(), form)
  end
end
gives_it_again(gemm, sch)
assert(sch:copy():hash() == sch:hash())

-- A copy goes on by its own: same draws from then on, same handles; what is done to one does not show in the other.
do
  local one = ms.schedule(gemm, {seed = 5})
  local block = one:get_sblock "C"
  local i, j, k = one:get_loops(block)
  one:split(i, {one:sample_perfect_tile(i, 2, 8)})
  one:undo(1)
  assert(not one:try("fuse", {i, k}))
  local before, two = one.trace:text(), one:copy()
  local drawn = {}
  for n, s in ipairs {two, one} do
    local outer, inner = s:sample_perfect_tile(s:handle(j), 2, 16)
    s:split(s:handle(j), {outer, inner})
    drawn[n] = s.trace:text() .. s:script()
    assert(n == 2 or one.trace:text() == before)
  end
  assert(drawn[1] == drawn[2])
  one:reorder(k, (one:get_loops(block)))
  assert(one:hash() ~= two:hash() and two:undo(1) == nil and two:hash() == ms.apply(gemm, two.trace):hash())
  gives_it_again(gemm, one)
  local branching = ms.schedule(gemm)
  branching:if_ "1 < 2"
  local copied, message = pcall(branching.copy, branching)
  assert(not copied and tostring(message):find("each If and For has its End", 1, true))
end

-- A number that pads a layout has the buffer's type, in a trace too.
for _, type in ipairs {"float32", "float64", "int8", "int64"} do
  local a = te.placeholder({10}, type, "a")
  local twice = te.compute({10}, function(n) return a[{n}] + a[{n}] end, "twice")
  local copied = te.func("copied", {a, te.compute({10}, function(n) return twice[{n}] end, "copied")})
  local padded = ms.schedule(copied)
  padded:transform_layout(padded:get_sblock "twice", "lambda n: (n // 4, n % 4)", 0, 1, type:find "int" and 0 or 0.0,
                          false)
  gives_it_again(copied, padded)
end

refuses("removed it", sch.split, sch, i, {2, ms.rest})
refuses("another schedule", function()
  local other = ms.schedule(gemm)
  return other:parallel(j0)
end)
refuses("there is no option", sch.compute_at, sch, block, j0, {nonsense = true})
refuses("is missing", sch.split, sch)
refuses("elements of float32 are expected", kernel, ms.array({40, 24}, "int32"), ms.array({24, 56}), ms.array({40, 56}))
refuses("3 arguments are expected", kernel, ms.array {40, 24})
refuses("not negative", ms.array, {-1})

-- A kernel that leaves its buffers does not end the session: checked, the interpreter says where; run, it is stopped.
local leaves = ms.from_script [[
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def leaves(P: T.Buffer((64,), "int64"), Q: T.Buffer((64,), "int32")):
    for i in T.parallel(64):
        Q[P[i] * T.int64(1000000000000) + T.int64(4000000000000)] = 1
]]
local faulty = ms.build(leaves)
refuses("out of bounds", function() faulty:check() end)
refuses("stopped by signal", faulty, ms.array({64}, "int64"), ms.array({64}, "int32"))
assert(kernel:check() < 1e-3)

-- Options are known by name and type, and the place is the caller's.
refuses("there is no option `trget`; known are target,", function() ms.build(leaves, {trget = "native"}) end)
refuses("option `reference`: expected msched.function, got number", ms.build, leaves, {reference = 5})
refuses("option `stack_bytes`: expected integer, got number", ms.build, leaves, {stack_bytes = 1.5})
refuses("options are a table, not a string", ms.build, leaves, "native")
refuses("a table of names", ms.build, leaves, {"native"})
refuses("there is no option `trails`", function() ms.tune(gemm, {trails = 1}) end)
refuses("option `trials`: expected integer, got string", ms.tune, gemm, {trials = "64"})
refuses("takes a function", ms.tune, {gemm})
refuses("there is no option `tol`", kernel.check, kernel, {tol = 1})
ms.build(leaves, {stack_bytes = 64.0, reference = leaves})

-- What may be refused is tried: the schedule and its trace are as they were; a mistake in the call is raised.
local tried = ms.schedule(gemm, {seed = 1})
local ti, tj, tk = tried:get_loops(tried:get_sblock "C")
local before, steps = tried:hash(), #tried.trace
assert(tried:try("parallel", tk) == false and tried:try("fuse", tj, ti) == false)
assert(tried:hash() == before and #tried.trace == steps)
local fused, outer = tried:try("fuse", ti, tj)
assert(fused == true and tried:extent(outer) == 40 * 56 and tried:loop_kind(outer) == "serial")
assert(select("#", tried:try("parallel", outer)) == 1 and tried:loop_kind(outer) == "parallel"
       and #tried.trace == steps + 2)
refuses("there is no instruction `extent`", function() tried:try("extent", outer) end)
refuses("there is no instruction `nonsense`", function() tried:try "nonsense" end)
refuses("is no longer in the module", function() tried:try("parallel", ti) end)
refuses("argument `loop` is missing", function() tried:try "parallel" end)
local inner = ms.schedule(gemm, {seed = 1})
local rows, columns = inner:get_loops(inner:get_sblock "C")
-- A quotient that is one number in a tile does not move there.
do
  local G = te.placeholder({4, 4}, "float32", "G")
  local sch =
    ms.schedule(te.func("groups", {G, te.compute({4, 64}, function(i, j) return G[{i, j // 16}] * 2.0 end, "C")}))
  local block = sch:get_sblock "C"
  local _, j = sch:get_loops(block)
  local _, j1, j2, j3 = sch:split(j, {ms.rest, 2, 4, 4})
  assert(sch:read_stride(block, 0, j3) == 0 and sch:read_stride(block, 0, j2) == 0
         and sch:read_stride(block, 0, j1) == 1)
  assert(sch:data_parallel_loops(block, 0, 16, 0).vector == 2)
end
-- Of an image alone in its batch the rows run in parallel: the loop around them has one iteration, and drives nothing.
do
  local A = te.placeholder({1, 64, 64}, "float32", "A")
  local sch =
    ms.schedule(te.func("one", {A, te.compute({1, 64, 64}, function(n, i, j) return A[{n, i, j}] * 2.0 end, "C")}))
  local block = sch:get_sblock "C"
  sch:split((sch:get_loops(block)), {1, 1}, {preserve_unit_iters = false})
  assert(sch:loop_iter_kind((sch:get_loops(block))) == "none" and sch:data_parallel_loops(block, 8, 0, 0).parallel == 3)
  local _, _, i = sch:get_loops(block)
  sch:split(i, {1, 64}, {preserve_unit_iters = false})
  assert(sch:data_parallel_loops(block, 8, 0, 0).parallel == 4
         and sch:data_parallel_loops(block, 100, 0, 0).parallel == 5)
end
-- Halves that change places lie together in pieces of 16: they are vectors, and several of a longer row; so are heads
-- side by side. Pieces that no 16 divide, those that do not begin at a multiple, and neighbours that change places are
-- not.
for _, case in ipairs {
  {64, 1, false, function(j) return te.floormod(j + 32, 64) end},
  {128, 0, true, function(j) return te.floormod(j + 64, 128) end},
  {128, 0, true, function(j) return te.floordiv(j, 64) * 64 + te.floormod(te.floormod(j, 64) + 32, 64) end},
  {128, 0, true, function(j) return te.floordiv(j, 32) end},
  {128, 0, false, function(j) return te.floormod(j + 60, 120) end},
  {128, 0, false, function(j) return te.floormod(j + 8, 128) end},
  {128, 0, false, function(j) return te.floormod(te.floordiv(j, 16), 4) end},
  {128, 0, false, function(j) return te.floormod(j * 2, 128) end},
  {128, 0, false, function(j) return te.floordiv(j, 2) * 2 + (1 - te.floormod(j, 2)) end},
} do
  local extent, vector, divides, place = table.unpack(case)
  local A = te.placeholder({4, 128}, "float32", "A")
  local sch = ms.schedule(te.func("turned", {A, te.compute({4, extent}, function(i, j)
    return A[{i, j}] + A[{i, place(j)}]
  end, "C")}))
  local found = sch:data_parallel_loops(sch:get_sblock "C", 0, 64, 0)
  assert(found.vector == vector and found.divides == divides and found.pieces == (vector > 0 or divides))
end
local found = inner:data_parallel_loops(inner:get_sblock "C", 8, 0, 0)
assert(found.parallel == 1 and found.vector == 0 and found.whole == false)
found = inner:data_parallel_loops(inner:get_sblock "C", 0, 64, 0) -- the innermost reduces
assert(found.parallel == 0 and found.vector == 0 and rows and columns)

-- Threads around a block, of the innermost loop bound to each axis.
local bound = ms.schedule(gemm, {seed = 1})
local rows_of = {bound:split((bound:get_loops(bound:get_sblock "C")), {ms.rest, 4})}
bound:bind(rows_of[1], "blockIdx.x")
assert(bound:thread_extent(bound:get_sblock "C", "threadIdx.x") == nil)
bound:bind(rows_of[2], "threadIdx.x")
assert(bound:thread_extent(bound:get_sblock "C", "threadIdx.x") == 4)
assert(bound:thread_extent(bound:get_sblock "C", "blockIdx.x") == 10)
assert(bound:thread_extent(bound:get_sblock "C", "no such axis") == nil)
do
  local sch = ms.schedule(ms.from_script [[
@T.prim_func(s_tir=True)
def main(A: T.Buffer((2, 2, 2, 2, 2, 2, 2, 2, 3), "float32")):
    for a, b, c, d, e, f, g, h, i in T.grid(2, 2, 2, 2, 2, 2, 2, 2, 3):
        with T.sblock("A"):
            va, vb, vc, vd, ve, vf, vg, vh, vi = T.axis.remap("SSSSSSSSS", [a, b, c, d, e, f, g, h, i])
            A[va, vb, vc, vd, ve, vf, vg, vh, vi] = T.float32(1)
]])
  local block, axes = sch:get_sblock "A", {}
  for axis in ("blockIdx vthread threadIdx"):gmatch "%a+" do
    for letter in ("xyz"):gmatch "." do axes[#axes + 1] = axis .. "." .. letter end
  end
  for n, loop in ipairs {sch:get_loops(block)} do sch:bind(loop, axes[n]) end
  local around = sch:threads_around(block)
  for n, axis in ipairs(axes) do assert(around[axis] == (n == 9 and 3 or 2)) end
end

-- Every argument has a parameter; a nil among loops does not end them unseen.
local plain = ms.schedule(gemm, {seed = 1})
local p, q = plain:get_loops(plain:get_sblock "C")
assert(plain:is_multiple(p, 8) and plain:is_multiple(p, 16) == false)
refuses("of must be positive, not 0", function() plain:is_multiple(p, 0) end)
refuses("argument 2 is nil", function() plain:reorder(q, nil, p) end)
refuses("argument 3 is one too many", function() plain:fuse(p, nil, q) end)
refuses("argument 2 is one too many", function() plain:unroll(p, 4) end)
-- That f refuses with these words.
local function says(words, f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok and message:find(words, 1, true), message)
end

-- Traces in files: in three forms, each read whatever the file is called; what is wrong says which file.
do
  local base = os.tmpname()
  local A = te.placeholder({16, 16}, "float32", "A")
  local func = te.func("saved", {A, ms.ops.relu(A)})
  local sch = ms.schedule(func, {seed = 4})
  local i = sch:get_loops(sch:get_sblock "relu")
  sch:split(i, {sch:sample_perfect_tile(i, 2)})
  local sizes = {}
  for _, suffix in ipairs {"json", "lua", "trace"} do
    local path = base .. "." .. suffix
    sch:save(path)
    assert(os.execute(string.format("ln '%s' '%s.other'", path, path)))
    ms.schedule(func):save(path) -- the file is replaced as a whole
    os.rename(path .. ".other", path)
    local trace = ms.load_trace(path)
    assert(ms.apply(func, trace):hash() == sch:hash() and trace:text() == sch.trace:text(), suffix)
    local file = assert(io.open(path, "rb"))
    sizes[suffix] = #file:read "a"
    file:close()
    os.remove(path)
  end
  assert(sizes.trace < sizes.json and sizes.json < sizes.lua)
  says("whose suffix is the form", sch.save, sch, base)
  says("whose suffix is the form", sch.save, sch, base .. ".txt")
  says(base .. "/no.json", sch.save, sch, base .. "/no.json")
  says(base .. ".none", ms.load_trace, base .. ".none")
  says(base .. ": ", ms.load_trace, base) -- it is empty
  if io.open("/dev/full", "w") then -- by a name that has a suffix
    os.execute(string.format("ln -s /dev/full '%s.json'", base))
    says("No space left", sch.save, sch, base .. ".json")
    os.remove(base .. ".json")
  end
  os.remove(base)
end

-- Mutations by hand: the same seed gives the same, the mutator is said, and what postprocessing did is left out.
do
  local f = ms.ops.func("matmul", {64, 64, 64})
  local sch = ms.schedule(f)
  local block = sch:get_sblock "C"
  local i, j = sch:get_loops(block)
  sch:split(i, {sch:sample_perfect_tile(i, 2)})
  sch:annotate(block, "meta_schedule.unroll_explicit", sch:sample_categorical({0, 16, 64}, {1 / 3, 1 / 3, 1 / 3}))
  local sampled = #sch.trace
  sch:enter_postproc()
  sch:vectorize(j)
  local trace, made = sch.trace, {}
  for seed = 1, 20 do
    local other, by = trace:mutate(seed)
    made[by] = other
    assert(other:binary() == trace:mutate(seed):binary() and other:binary() ~= trace:simplified():binary()
           and #other == sampled)
  end
  assert(made.tile_size and made.unroll and not made.crossover and not made.parallel)
  local other, by = trace:mutate(1, {mutator = "unroll"})
  assert(by == "unroll" and other:draws()[2].decision[1] ~= trace:draws()[2].decision[1])
  assert(trace:mutate(1, {mutator = "parallel"}) == nil and ms.schedule(f).trace:mutate() == nil)
  local crossed
  for seed = 1, 20 do crossed = crossed or trace:mutate(seed, {mutator = "crossover", other = other}) end
  assert(crossed:binary() == other:binary(), "one decision differs, and is taken")
  says("there is no mutator `tilesize`; the target has tile_size, ", trace.mutate, trace, 1, {mutator = "tilesize"})
  says("did you mean `tile_size`?", trace.mutate, trace, 1, {mutator = "tilesize"})
  says("takes a seed, an integer", trace.mutate, trace, "one")
  local long = {}
  for i = 1, 65 do long[i] = 1 end
  local draw = trace:draws()[1].index
  says("a list of 65 integers is too long; at most 64 are taken", trace.with_decision, trace, draw, long)
  says("does not take a decision of 64 numbers", trace.with_decision, trace, draw, {table.unpack(long, 1, 64)})
  says("item 2 of the list is 1.5", trace.with_decision, trace, draw, {1, 1.5})
  local box = ms.sandbox {files = {}}
  for _, number in ipairs {0, 100} do
    says("there is no mutator " .. number .. ": the sandbox has 5, numbered from 1", box.mutate, box, number, trace,
         ms.stream(1))
  end
end

-- A function that was run for one comparison is compared with by others: with those of its seed, and of another's.
do
  local function scaled(by, extent)
    local A = te.placeholder({extent or 6}, "float32", "A")
    return te.func("scaled", {A, te.compute({extent or 6}, function(i) return A[i] * by end, "B")})
  end
  local f = scaled(2)
  for _, seed in ipairs {1, 1, 2, 1} do
    ms.check_lowered(f, ms.schedule(f):func(), "llvm", seed)
    says("is expected", ms.check_lowered, f, scaled(3), "llvm", seed)
    says("another shape or type", ms.check_lowered, f, scaled(2, 7), "llvm", seed)
  end
  local function refusal(seed) return tostring(select(2, pcall(ms.check_lowered, f, scaled(3), "llvm", seed))) end
  assert(refusal(1) ~= refusal(2) and refusal(1) == refusal(1))
end

print "schedule: ok"

-- A build says what each pass of it took.
local passes = {}
for _, p in ipairs(kernel:passes()) do passes[#passes + 1] = p.pass assert(p.seconds >= 0) end
assert(table.concat(passes, " "):find "^empty offer .* strips .* emit .* scalars .* generate$")
