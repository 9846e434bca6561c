-- Proposals of the analytical model: which candidate it estimates cheaper, the best of many, the same each time; none
-- is refused when replayed.
-- usage: analytical.lua
local ms = require "msched"
local te, tune, analytical = ms.te, ms.load "search.tune", ms.load "search.cost.analytical"

local function product(m, n, k)
  local A, B = te.placeholder({m, k}, "float32", "A"), te.placeholder({k, n}, "float32", "B")
  return te.func("gemm", {A, B, ms.ops.matmul(A, B)})
end
local target = ms.target "llvm -mcpu=x86-64-v4 -num-cores=2"
local machine = analytical.machine(target)

local function sketches_of(func)
  local list = {}
  for i, s in ipairs(tune.open(func, target, {seed = 1}).sketches) do list[i] = s.trace:simplified(false) end
  return list
end

-- ---- What is cheaper: of 256 x 256 x 256 without a buffer in between, in two and three levels of tiles ------------

local function plain_of(func)
  for _, sketch in ipairs(sketches_of(func)) do
    local tiles, writes = 0, false
    for _, d in ipairs(sketch:draws()) do tiles = tiles + (d.kind == "SamplePerfectTile" and 1 or 0) end
    for _, name in ipairs(ms.apply(func, sketch):block_names()) do writes = writes or name:find "_global" end
    if tiles == 3 and not writes then return sketch, ms.estimator(func, sketch, machine) end
  end
end
local function cost_of(sketch, reading, decisions)
  for i, d in ipairs(sketch:draws()) do sketch = sketch:with_decision(d.index, decisions[i]) end
  return reading:cost(sketch)
end

local func = product(256, 256, 256)
local plain, reading = plain_of(func)
local function cost(rows, columns, reduction, jobs, unroll)
  return cost_of(plain, reading, {rows, columns, reduction, jobs or {1}, unroll or {2}})
end
local good = cost({2, 16, 1, 8}, {1, 8, 1, 32}, {4, 64})
local function dearer(what, ...)
  local other = cost(...)
  assert(other > 1.1 * good, string.format("%s: %g against %g", what, other, good))
end
dearer("one element of a vector", {2, 16, 1, 8}, {32, 8, 1, 1}, {4, 64})
dearer("one row, so that each load feeds one product", {2, 128, 1, 1}, {1, 8, 1, 32}, {4, 64})
dearer("more results than registers", {1, 4, 1, 64}, {1, 4, 1, 64}, {4, 64}, nil, {3})
dearer("two results, which do not hide the latency", {2, 64, 1, 2}, {1, 16, 1, 16}, {4, 64})
dearer("rows that are not unrolled", {2, 4, 1, 32}, {1, 8, 1, 32}, {4, 64}, nil, {0})
assert(cost({1, 32, 1, 8}, {1, 8, 1, 32}, {4, 64}, {2}) < 0.7 * cost({1, 1, 32, 8}, {1, 1, 8, 32}, {4, 64}, {2}),
       "one chunk is one thread's")

-- A constant that one sum reads is packed as its loops read it, wherever it lies; one that two sums read is not.
do
  local function of_weights(count, packed)
    local X, W, outputs = te.placeholder({1, 256}, "float32", "X"), te.placeholder({512, 256}, "float32", "W"), {}
    local columns = 512 // count
    for n = 1, count do
      local k = te.reduce_axis(256, "k")
      outputs[n] = te.compute({1, columns}, function(i, j)
        return te.sum(X[{i, k}] * W[{j + (n - 1) * columns, k}], k)
      end, "Y" .. n)
    end
    return te.func("rows", {X, W, table.unpack(outputs)}, packed and {weights = {"W"}} or nil)
  end
  local function by_columns(count, packed)
    local f = of_weights(count, packed)
    local sch = ms.schedule(f)
    for n = 1, count do
      local block = sch:get_sblock("Y" .. n)
      local _, j, r = sch:get_loops(block)
      local outer, inner = sch:split(j, {ms.rest, 64})
      sch:reorder {outer, r, inner}
      sch:vectorize(inner)
      sch:decompose_reduction(block, r)
    end
    local trace = sch.trace
    return ms.estimator(f, trace, machine):cost(trace)
  end
  assert(by_columns(1, true) < 0.7 * by_columns(1, false), "packed, its vectors lie as they are read")
  assert(by_columns(2, true) == by_columns(2, false), "what two sums read is read where it lies")
end

-- What the cache does not hold is cheaper in blocks, and what it does is not.
local function blocked(size)
  local sketch, d = plain_of(product(size, size, size))
  local tiles = {{2, size // 16, 1, 8}, {1, size // 32, 1, 32}}
  return cost_of(sketch, d, {tiles[1], tiles[2], {1, size}, {1}, {2}}),
    cost_of(sketch, d, {{2, size // 512, 32, 8}, {1, size // 256, 8, 32}, {size // 64, 64}, {1}, {2}})
end
local whole, parts = blocked(4096)
assert(parts < 0.8 * whole, string.format("in blocks %g, without %g", parts, whole))


-- Where padding is inlined, tiles at its ends are dearer: of two tiles in a row both, of four two. Where the steps of a
-- window are unrolled, what they ask is known, and what they read again is there; vectors of it are widened once.
local function filtered(size, pad, columns, unroll, dtype)
  local D, W = te.placeholder({1, size, size, 64}, dtype or "float32", "D"),
    te.placeholder({3, 3, 64}, dtype or "float32", "W")
  local func = te.func("filter", {D, W, ms.ops.depthwise_conv2d(D, W, {pad = pad})})
  local sch = ms.schedule(func)
  if pad > 0 then sch:compute_inline(sch:get_sblock "pad") end
  local block = sch:get_sblock(sch:reduction_blocks()[1])
  local n, h, w, c, rh, rw = sch:get_loops(block)
  local w0, w1 = sch:split(w, {ms.rest, columns})
  local c0, c1 = sch:split(c, {ms.rest, 32})
  sch:reorder {n, h, c0, w0, rh, rw, w1, c1}
  sch:annotate(block, "msched.register_tile", 1)
  sch:annotate(sch:get_sblock "root", "meta_schedule.vectorize", 64)
  sch:annotate(sch:get_sblock "root", "meta_schedule.unroll_explicit", unroll or 0)
  return (ms.estimate(func, sch.trace, machine))
end
local function ends(...) return filtered(24, 1, ...) / filtered(26, 0, ...) end -- padded, to an image as large
assert(ends(12) > 1.25 * ends(6), "both ends are as cheap as what lies between them")
assert(filtered(26, 0, 12) < 1.1 * filtered(26, 0, 6), "without padding there are no ends")
assert(ends(12) < 2, "rows ask that are not divided")
assert(ends(12, 512) < 1.1, "what unrolled steps ask is not known")
assert(filtered(26, 0, 6, 512) < 0.95 * filtered(26, 0, 6), "a window is read again")
assert(filtered(26, 0, 12, 512) > 0.99 * filtered(26, 0, 12), "registers hold a window beside twice twelve results")
local halves, singles = filtered(26, 0, 6, 512, "bfloat16"), filtered(26, 0, 6, 512)
assert(halves < 1.4 * singles, "each product widens both of its factors")
assert(halves > 1.05 * singles, "nothing is widened")

-- Where LLVM sums lanes of a reduction, they are added up at the end of its loop: a loop around it does so again and
-- again.
local function dense_cost(reduction)
  local X, W = te.placeholder({128, 768}, "float32", "X"), te.placeholder({2304, 768}, "float32", "W")
  local sketch, d = plain_of(te.func("dense", {X, W, ms.ops.dense(X, W)}))
  return cost_of(sketch, d, {{1, 64, 1, 2}, {288, 1, 1, 8}, reduction, {1}, {3}})
end
assert(dense_cost {12, 64} > 1.5 * dense_cost {768, 1} and dense_cost {1, 768} < 1.1 * dense_cost {768, 1},
       "lanes are added up often")

-- Few estimates suffice where all descents but that from the least tiles end with the reduction in two.
do
  local X, W = te.placeholder({128, 768}, "float32", "X"), te.placeholder({3072, 768}, "float32", "W")
  local sketch, d = plain_of(te.func("dense", {X, W, ms.ops.dense(X, W)}))
  local best = d:best {seed = 1, budget = 1, most = 1}[1]
  assert(best.cost < 0.5 * cost_of(sketch, d, {{1, 2, 8, 8}, {24, 4, 16, 2}, {12, 64}, {1}, {3}}),
         "one descent, from the least tiles")
end

-- What a nest before it inside of the same loops has brought is there: a row that is read twice comes once.
local function centred(rows, columns, together)
  local X, k = te.placeholder({rows, columns}, "float32", "X"), te.reduce_axis(columns, "k")
  local most = te.compute({rows}, function(i) return te.sum(X[{i, k}], k) end, "most")
  local func =
    te.func("centred", {X, te.compute({rows, columns}, function(i, j) return X[{i, j}] - most[{i}] end, "Y")})
  local sch = ms.schedule(func)
  if together then sch:compute_at(sch:get_sblock "most", (sch:get_loops(sch:get_sblock "Y"))) end
  return (ms.estimate(func, sch.trace, machine))
end
assert(centred(65536, 1024, true) < 0.8 * centred(65536, 1024, false), "what was just read comes again")

-- Of padding that is inlined in the sum of a tile, the zeros are left out: fewer steps than of an image as large
-- without.
local function inlined(size, pad)
  local D, W = te.placeholder({1, size, size, 64}, "float32", "D"), te.placeholder({3, 3, 64, 32}, "float32", "W")
  local func = te.func("filter", {D, W, ms.ops.conv2d(D, W, {pad = pad})})
  local sch = ms.schedule(func)
  if pad > 0 then sch:compute_inline(sch:get_sblock "pad") end
  local b = sch:get_sblock(sch:reduction_blocks()[1])
  local n, h, w, o, rh, rw, rc = sch:get_loops(b)
  sch:reorder {n, h, rh, rw, rc, w, o}
  sch:annotate(b, "msched.register_tile", 1)
  sch:annotate(sch:get_sblock "root", "meta_schedule.vectorize", 64)
  return (ms.estimate(func, sch.trace, machine))
end
local share = inlined(7, 1) / inlined(9, 0)
assert(share > 0.75 and share < 0.95, string.format("%g of the steps, and 0.82 are inside", share))

-- And of the taps of a transposed convolution, whose places in the image are quotients: 7 of 8 are inside, in both
-- directions. Its weights are read in no time here.
local arithmetic = setmetatable({bytes_a_cycle = {1e9, 1e9, 1e9}}, {__index = machine})
for name, number in pairs(machine) do arithmetic[name] = arithmetic[name] or number end
local function transposed(inline)
  local D, W = te.placeholder({1, 4, 4, 512}, "float32", "D"), te.placeholder({4, 4, 512, 32}, "float32", "W")
  local func = te.func("spread", {D, W, ms.ops.conv2d_transpose(D, W, {stride = 2, pad = 1})})
  local sch = ms.schedule(func)
  if inline then sch:compute_inline(sch:get_sblock "pad") end
  local b = sch:get_sblock(sch:reduction_blocks()[1])
  local n, h, w, o, rh, rw, rc = sch:get_loops(b)
  local w0, w1 = sch:split(w, {ms.rest, 2})
  sch:reorder {n, h, w1, rh, rw, rc, w0, o}
  sch:annotate(b, "msched.register_tile", 1)
  sch:annotate(sch:get_sblock "root", "meta_schedule.vectorize", 64)
  return (ms.estimate(func, sch.trace, arithmetic))
end
share = transposed(true) / transposed(false)
assert(share > 0.6 and share < 0.85, string.format("%g of the steps, and 0.77 are inside", share))

-- Columns of a transposed convolution share what quotients and remainders make the same: eight read two columns of the
-- weights and five of the image, and are no slower for their loads. What iterations of two reductions within the one
-- that carries the tile read in common takes registers, too.
local function rows(order, most)
  local D, W = te.placeholder({1, 16, 16, 128}, "float32", "D"), te.placeholder({4, 4, 128, 64}, "float32", "W")
  local func = te.func("spread", {D, W, ms.ops.conv2d_transpose(D, W, {stride = 2, pad = 1})})
  local sch = ms.schedule(func)
  local b = sch:get_sblock(sch:reduction_blocks()[1])
  local at = {}
  at.n, at.h, at.w, at.o, at.rh, at.rw, at.rc = sch:get_loops(b)
  at.h, at.h1 = sch:split(at.h, {ms.rest, most})
  at.w, at.w1 = sch:split(at.w, {ms.rest, most})
  at.o, at.o1 = sch:split(at.o, {ms.rest, 256 // most})
  local list = {}
  for name in order:gmatch "%w+" do list[#list + 1] = at[name] end
  sch:reorder(list)
  sch:vectorize(at.o1)
  return (ms.estimate(func, sch.trace, arithmetic))
end
local products = 32 * 32 * 64 * 128 * 4 / (16 * machine.multiply_adds)
local eight = rows("n h h1 w o rh rc rw w1 o1", 8) / products
assert(eight < 1.35, string.format("%g times what the products take", eight))
local kept, apart = rows("n h w w1 o rc rh rw h1 o1", 16), rows("n h w w1 o rh rc rw h1 o1", 16)
assert(kept > 1.2 * apart, string.format("%g and %g", kept, apart))

-- Conditions of a padding are asked once a row of channels where these are innermost, and for each element where the
-- image's columns are; what is short is widened within such a condition too.
local function padded(channels_last)
  local shape = channels_last and {28, 28, 64} or {64, 28, 28}
  local X, h, w = te.placeholder(shape, "uint8", "X"), channels_last and 1 or 2, channels_last and 2 or 3
  local wide = {table.unpack(shape)}
  wide[h], wide[w] = 30, 30
  local Y = te.compute(wide, function(...)
    local i = {...}
    local inside = te.all(te.ge(i[h], 1), te.lt(i[h], 29), te.ge(i[w], 1), te.lt(i[w], 29))
    i[h], i[w] = i[h] - 1, i[w] - 1
    return te.if_then_else(inside, X[i], te.const(0, "uint8"))
  end, "Y")
  local func = te.func("pad", {X, Y})
  return (ms.estimate(func, ms.schedule(func).trace, machine))
end
assert(padded(true) < 0.1 * padded(false), string.format("%g and %g", padded(true), padded(false)))

-- A vector is widened once for all rows.
local function widened(type, pad, rows)
  local X, W = te.placeholder({1, 16, 16, 64}, type, "X"), te.placeholder({3, 3, 64, 64}, type, "W")
  local func =
    te.func("filter", {X, W, ms.ops.conv2d(X, W, {pad = pad, accumulate = type == "int8" and "int32" or nil})})
  local sch = ms.schedule(func)
  if pad > 0 then sch:compute_inline(sch:get_sblock "pad") end
  local b = sch:get_sblock(sch:reduction_blocks()[1])
  local n, h, w, o, rh, rw, rc = sch:get_loops(b)
  local w0, w1 = sch:split(w, {ms.rest, rows})
  sch:reorder {n, h, w0, rh, rw, rc, w1, o}
  sch:annotate(b, "msched.register_tile", 1)
  sch:vectorize(o)
  return (ms.estimate(func, sch.trace, arithmetic))
end
for _, pad in ipairs {0, 1} do
  local function ratio(rows) return widened("int8", pad, rows) / widened("float32", pad, rows) end
  assert(ratio(4) > 1.5, pad .. ": bytes are widened in no time")
  assert(ratio(4) < 0.95 * ratio(2), pad .. ": each row widens what it shares with others")
end

-- A register tile that begins with its init loads no results; where the reduction is in blocks, the note says nothing.
local function tiled(before, block)
  local func = product(256, 256, 256)
  local sch = ms.schedule(func)
  local b = sch:get_sblock(sch:reduction_blocks()[1])
  local i, j, k = sch:get_loops(b)
  local j0, j1 = sch:split(j, {ms.rest, 32})
  local k0, k1 = sch:split(k, {ms.rest, block})
  local i0, i1 = sch:split(i, {ms.rest, 8})
  sch:reorder {j0, k0, i0, k1, i1, j1}
  sch:annotate(b, "msched.register_tile", 1)
  sch:annotate(b, "msched.init_before_tiles", before)
  sch:annotate(sch:get_sblock "root", "meta_schedule.vectorize", 64)
  return (ms.estimate(func, sch.trace, machine))
end
assert(tiled(0, 256) < tiled(1, 256), "results are loaded that the init has in registers")
assert(tiled(0, 32) == tiled(1, 32), "the reduction is in blocks, and begins elsewhere")

-- No proposal is estimated to take less than its arithmetic, where loops over phases are fused with others too.
do
  local D, W = te.placeholder({1, 16, 16, 64}, "float32", "D"), te.placeholder({4, 4, 64, 64}, "float32", "W")
  local func = te.func("spread", {D, W, ms.ops.conv2d_transpose(D, W, {stride = 2, pad = 1})})
  local least = 32 * 32 * 64 * 64 * 4 / (16 * machine.multiply_adds * machine.cores)
  for i, sketch in ipairs(sketches_of(func)) do
    local best = ms.estimator(func, sketch, machine):best {seed = 1, budget = 500, most = 1}[1]
    -- padding is left out
    assert(best.cost > 0.85 * least, string.format("sketch %d: %g cycles, and products take %g", i, best.cost, least))
  end
end

-- A tile that leaves no registers for what is read is carried by one loop, and copied by several; a smaller one is not.
local function carried(rows, split)
  local func = product(7 * 6 * 8, 256, 256)
  local sch = ms.schedule(func)
  local b = sch:get_sblock(sch:reduction_blocks()[1])
  local i, j, k = sch:get_loops(b)
  local j0, j1 = sch:split(j, {ms.rest, 64})
  local i0, i1 = sch:split(i, {ms.rest, rows})
  local k0, k1 = sch:split(k, {ms.rest, split})
  sch:reorder {j0, i0, k0, k1, i1, j1}
  sch:annotate(b, "msched.register_tile", 1)
  sch:annotate(sch:get_sblock "root", "meta_schedule.vectorize", 64)
  return (ms.estimate(func, sch.trace, machine))
end
assert(carried(7, 4) > 1.3 * carried(7, 256), "two loops carry as many results as one")
assert(carried(6, 4) < 1.1 * carried(6, 256), "what leaves registers for what is read is dearer in two loops")

-- ---- Rows of several passes: what one leaves in a cache ------------------------------------------------------------

-- Elements that follow one another in a line come once, where a row is more than the first cache holds: a row's passes
-- in turn are cheaper than a pass over all rows after the other.
local function softmax(columns, together)
  local X = te.placeholder({4096, columns}, "float32", "X")
  local func = te.func("softmax", {X, ms.ops.softmax(X)})
  local sch = ms.schedule(func)
  local row = sch:get_loops(sch:get_sblock "softmax")
  sch:compute_at(sch:get_sblock "total", row)
  if together then for _, name in ipairs {"exponent", "maximum"} do sch:compute_at(sch:get_sblock(name), row) end end
  return (ms.estimate(func, sch.trace, machine))
end
for _, columns in ipairs {1024, 4096, 16384} do
  assert(softmax(columns, true) < softmax(columns, false), columns .. " columns")
end

-- Results that go around the caches are cheaper where these do not hold them, and dearer where they do.
local function around(size, value)
  local X = te.placeholder({size, size}, "float32", "X")
  local func = te.func("f", {X, te.compute({size, size}, function(i, j) return X[{i, j}] + 1 end, "Y")})
  local sch = ms.schedule(func)
  sch:annotate(sch:get_sblock "Y", "msched.nontemporal", value)
  local caches = {}
  for name, number in pairs(machine) do caches[name] = number end
  caches.cache_bytes = {48 << 10, 2 << 20, 32 << 20}
  return (ms.estimate(func, sch.trace, caches))
end
assert(around(8192, 1) < around(8192, 0) and around(512, 1) > around(512, 0))

-- ---- The best of many --------------------------------------------------------------------------------------------

local function same(x, y)
  assert(#x == #y)
  for i = 1, #x do assert(x[i].cost == y[i].cost and x[i].trace:json() == y[i].trace:json(), i) end
end

-- All are seen where there are few: the first is the least of those drawn by hand, and each is there once.
local small = product(16, 16, 16)
for _, sketch in ipairs(sketches_of(small)) do
  local d = ms.estimator(small, sketch, machine)
  local all = d:best {budget = 1000000, most = 500}
  local seen, tiles = {}, {}
  for i, c in ipairs(all) do
    assert(i == 1 or c.cost >= all[i - 1].cost, "rising")
    assert(c.cost == d:cost(c.trace), "the cost is that of the trace")
    assert(not seen[c.trace:json()], "once")
    seen[c.trace:json()], tiles[c.tile] = true, (tiles[c.tile] or 0) + 1
  end
  for candidate = 1, 100 do
    local drawn = ms.apply(small, sketch, {resample = true, seed = 2, candidate = candidate}).trace
    assert(d:cost(drawn) >= all[1].cost, "a drawn one is cheaper than the best")
  end
  local spread, counts = d:best {budget = 1000000, most = 500, each = 2}, {}
  for _, c in ipairs(spread) do
    counts[c.tile] = (counts[c.tile] or 0) + 1
    assert(counts[c.tile] <= 2, "more than two of a tile")
  end
  for tile in pairs(tiles) do assert(counts[tile], "a tile is left out") end
  -- led downhill from a few, it comes near
  local few = d:best {budget = math.max(1, d:size() // 4), most = 10, seed = 3}
  assert(few[1].cost <= 1.2 * all[1].cost, string.format("%g, and the best is %g", few[1].cost, all[1].cost))
  same(few, d:best {budget = math.max(1, d:size() // 4), most = 10, seed = 3})
end

-- ---- Every one is a candidate: of other functions too ------------------------------------------------------------

local function replays(f, least)
  local list = analytical.best(f, target, sketches_of(f), {seed = 1, budget = 2000, most = 60, each = 3})
  assert(#list >= least, #list)
  for _, c in ipairs(list) do 
    local made = ms.apply(f, c.trace, {repair = true}).trace -- where blocks are computed depends on the tiles
    for i, d in ipairs(c.trace:draws()) do
      if d.kind ~= "SampleComputeLocation" then
        assert(table.concat(d.decision, " ") == table.concat(made:draws()[i].decision, " "), "a decision does not fit")
      end
    end
  end
  same(list, analytical.best(f, target, sketches_of(f), {seed = 1, budget = 2000, most = 60, each = 3}))
end
replays(product(96, 72, 40), 60)
local X = te.placeholder({64, 48}, "float32", "X")
replays(te.func("softmax", {X, ms.ops.softmax(X)}), 4)
local D, W = te.placeholder({1, 16, 16, 32}, "float32", "D"), te.placeholder({3, 3, 32, 32}, "float32", "W")
replays(te.func("conv", {D, W, ms.ops.conv2d(D, W, {pad = 1})}), 60)

-- ---- Many at a time: as one at a time, however many threads there are ---------------------------------------------

local function many(f)
  local jobs, traces = {}, {}
  for i, sketch in ipairs(sketches_of(f)) do
    jobs[2 * i - 1] = {trace = sketch, seed = 5, budget = 300, most = 7, each = 2}
    jobs[2 * i] = {trace = sketch, resample = true, seed = 5, candidate = i, budget = 100, most = 3}
  end
  local lists = ms.proposals(f, machine, jobs, 1)
  assert(#lists == #jobs)
  for i, job in ipairs(jobs) do
    local sketch = job.resample and ms.apply(f, job.trace, {resample = true, seed = 5, candidate = job.candidate}).trace
      or job.trace
    local ok, reading = pcall(ms.estimator, f, sketch, machine)
    same(lists[i], ok and reading:best {seed = 5, budget = job.budget, most = job.most, each = job.each} or {})
    for _, c in ipairs(lists[i]) do traces[#traces + 1] = c.trace end
  end
  for threads = 2, 5, 3 do
    for i, list in ipairs(ms.proposals(f, machine, jobs, threads)) do same(list, lists[i]) end
  end
  assert(#traces > 10, #traces)
  local costs, tiles = ms.estimates(f, machine, traces, 3)
  for i, trace in ipairs(traces) do
    local ok, cost, tile = pcall(ms.estimate, f, trace, machine)
    assert(costs[i] == (ok and cost) and (not ok or tiles[i] == tile), i)
  end
  assert(#ms.proposals(f, machine, {}, 4) == 0 and #ms.estimates(f, machine, {}, 4) == 0)
end
many(product(96, 72, 40))
many(te.func("softmax", {X, ms.ops.softmax(X)}))
many(te.func("conv", {D, W, ms.ops.conv2d(D, W, {pad = 1})}))

-- ---- A clock ends what C does, too --------------------------------------------------------------------------------

for _, endless in ipairs {
  function() local _, d = plain_of(product(256, 256, 256)); return d:best {seed = 1, budget = 1 << 50, most = 10} end,
  function()
    local trace = plain_of(product(256, 256, 256))
    return ms.proposals(product(256, 256, 256), machine, {{trace = trace, budget = 1 << 50, most = 10}}, 2)
  end,
} do
  local done, message = ms.within(0.3, endless)
  assert(done == nil and not ms.interrupted(), tostring(message))
  assert(select(2, ms.within(60, function() return ms.within(0.1, endless) end)) == nil, "one in another")
  assert(select(2, ms.within(60, function() return 7 end)) == 7)
end

-- ---- What is no candidate ----------------------------------------------------------------------------------------

local function refused(words, ...)
  local ok, message = pcall(...)
  assert(not ok and tostring(message):find(words, 1, true), message)
end
refused("no candidate of the estimate's sketch", reading.cost, reading, ms.schedule(func).trace)
local choice = plain:draws()[4]
assert(choice.kind == "SampleCategorical")
refused("no candidate of the estimate's sketch", reading.cost, reading,
  ms.read_trace((plain:with_decision(choice.index, {0}):json():gsub(
  "%[" .. choice.index .. ",0%]", "[" .. choice.index .. ",99]"))))
refused("a machine's `cores` is a number", ms.estimator, func, plain, {})
refused("budget, most and each", reading.best, reading, {most = 0})
refused("has no block `C`", ms.estimator, te.func("other", {X, ms.ops.softmax(X)}), plain, machine)
print "proposals: ok"
