-- Every rule: what it makes of a small function, or refuses; what is made computes what the function computes. Rules of
-- register tiles: tile_parts.lua; postprocessors and mutators: postproc_parts.lua.
local ms = require "msched"
local targets, space = ms.load "rules.targets", ms.load "rules.space"
local te = ms.te
local support = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/parts.lua")
local CPU, GPU = support.CPU, ms.target "cuda -arch=sm_80"
local parts_of, product, sketches, check = support.parts_of, support.product, support.sketches, support.check
local has, names, extents, relu_of = support.has, support.names, support.extents, support.relu_of

local tests = {}

-- ---- Rules -----------------------------------------------------------------------------------------------------

function tests.inline_constant_scalars()
  local func = ms.from_script([[
from tvm.script import tir as T
@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    one = T.alloc_buffer((), "float32")
    with T.block("one"):
        one[()] = T.float32(1)
    for i in range(8):
        with T.block("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] + one[()]
]], "scalar.py")
  local made = sketches(func, CPU, {rules = {"inline_constant_scalars"}})
  assert(#made == 1 and not names(made[1]):find " one ")
  check(func, made[1])
end

function tests.auto_inline()
  local plain = relu_of(function(A, i, j) return A[{i, j}] + 1 end)
  local made = sketches(plain, CPU, {rules = {"auto_inline"}})
  assert(not names(made[1]):find " B ")
  check(plain, made[1])
  local turned = product(16, 16, 16)
  made = sketches(turned, CPU, {rules = {"auto_inline"}})
  assert(names(made[1]):find " C ")
  -- What may be inlined is the target's: exp stays on CPUs, and the last block goes into its producer on GPUs.
  local A = te.placeholder({4, 8}, "float32", "A")
  local r = te.reduce_axis(8, "k")
  local E = te.compute({4, 8}, function(i, j) return te.exp(A[{i, j}]) end, "E")
  local dear = te.func("dear", {A, te.compute({4}, function(i) return te.sum(E[{i, r}], r) end, "S")})
  assert(names(sketches(dear, CPU, {rules = {"auto_inline"}})[1]):find " E ")
  made = sketches(dear, GPU, {rules = {"auto_inline"}})
  assert(not names(made[1]):find " E ")
  made = sketches(plain, GPU, {rules = {"auto_inline"}})
  assert(#made[1]:block_names() == 2)
  check(plain, made[1])
  -- What takes a part of what is produced stays: its producer would compute the whole.
  local B = te.compute({4, 8}, function(i, j) return A[{i, 7 - j}] * 2 end, "B")
  local part = te.func("part", {A, te.compute({4}, function(i) return B[{i, 0}] + B[{i, 0}] end, "C")})
  local backwards = {into_consumer = false, into_producer = true, constant_tensors = true, disallowed = {}}
  assert(names(sketches(part, GPU, {rules = {"auto_inline"}, auto_inline = backwards})[1]):find " B C ")
  made = sketches(plain, GPU, {rules = {"auto_inline"}, auto_inline = backwards})
  assert(not names(made[1]):find " C ")
  check(plain, made[1])
  -- An annotation keeps a block.
  local noted = ms.schedule(plain)
  noted:annotate(noted:get_sblock "B", "meta_schedule.inline_rule", "disable")
  assert(names(sketches(noted:func(), CPU, {rules = {"auto_inline"}})[1]):find " B ")
end

function tests.add_rfactor()
  local func = product(2, 2, 512)
  local made = sketches(func, CPU, {rules = {"add_rfactor"}})
  assert(#made == 3 and names(made[2]):find " C_rf " and names(made[3]):find " C_rf ")
  for _, sch in ipairs(made) do check(func, sch) end
  assert(#sketches(product(64, 64, 4), CPU, {rules = {"add_rfactor"}}) == 1)
  -- The partial results' own iteration is their last, so that they are a vector wherever they are computed.
  local function kinds(parameters)
    local sch = sketches(func, CPU, {rules = {"add_rfactor"}, add_rfactor = parameters})[3]
    return table.concat(sch:iter_kinds(sch:get_sblock "C_rf"), " ")
  end
  local parameters = {jobs_per_core = 16, max_innermost = 64}
  assert(kinds(parameters):find "^spatial .*reduce$", kinds(parameters))
  parameters.lanes_last = true
  assert(kinds(parameters):find "reduce spatial$", kinds(parameters))
end

-- Rows of a softmax that hold what is no plain number, or the least one: NaN in the same places as two passes have it.
local LEAST, INFINITE = -3.4028234663852886e38, math.huge
local HARD = {
  function(k) return k * 0.25 - 3 end, function() return -INFINITE end, function(k) return k < 9 and -INFINITE or k end,
  function(k) return k == 5 and 0 / 0 or 1 end, function(k) return k == 6 and INFINITE or k end,
  function() return LEAST end,
  function(k) return k < 30 and LEAST or 1 end, function(k) return k % 2 == 0 and -LEAST or LEAST end,
}

local function check_softmax(func, sch)
  local X = ms.array({#HARD, 32}, "float32", function(position) return HARD[position // 32 + 1](position % 32) end)
  local want, own = ms.array({#HARD, 32}, "float32"), ms.array({#HARD, 32}, "float32")
  ms.interpret(func, X, want)
  ms.interpret(sch:func(), X, own)
  assert(own:difference(want) < 1e-6, sch.trace:text())
  local kernel = sch:build {target = "native -num-cores=1"}
  own = ms.array({#HARD, 32}, "float32")
  kernel(X, own)
  assert(own:difference(want) < 1e-6, sch.trace:text())
  return kernel
end

function tests.online_softmax()
  local normalize = ms.load "lua.lib.ops.normalize"
  local X = te.placeholder({#HARD, 32}, "float32", "X")
  local func = te.func("softmax", {X, normalize.softmax(X)})
  local any = {} -- rows of any length
  local made = sketches(func, CPU, {rules = {"online_softmax"}, online_softmax = any})
  assert(#made == 2 and names(made[1]):find " maximum exponent total ")
  assert(not names(made[2]):find " maximum " and not names(made[2]):find " exponent ")
  check_softmax(func, made[2])
  -- So are its parts: each lane of a vector has a maximum and a sum of its own. They are vectors in the code.
  local lanes = {rules = {"online_softmax", "add_rfactor"}, online_softmax = any,
                 add_rfactor = {jobs_per_core = 16, max_innermost = 16, lanes_last = true}}
  local factored, vectors = 0, 0
  for _, sch in ipairs(sketches(func, CPU, lanes)) do
    if names(sch):find " total_rf " and not names(sch):find " maximum" then
      factored = factored + 1
      local block = sch:get_sblock "total_rf"
      local loops = {sch:get_loops(block)}
      if sch:is_data_parallel(loops[3]) then
        sch:vectorize(loops[3])
        vectors = vectors + 1
      end
      sch:decompose_reduction(block, loops[2])
      local notes = table.concat(check_softmax(func, sch):notes(), "; ")
      assert(not notes:find("vectorized", 1, true), notes)
    end
  end
  assert(factored == 2 and vectors == 1)
  -- Rows that stay in a cache are left as they are; on GPUs, where exponentials are inlined before, those of any length
  -- are not.
  assert(#sketches(func, CPU, {rules = {"online_softmax"}}) == 1)
  local long = te.placeholder({2, 1 << 26}, "float32", "X")
  assert(#sketches(te.func("long", {long, normalize.softmax(long)}), CPU, {rules = {"online_softmax"}}) == 2)
  made = sketches(func, GPU, {rules = {"auto_inline", "online_softmax"}})
  assert(#made == 2 and names(made[2]) == " total softmax root " or names(made[2]) == " root total softmax ",
         names(made[2]))
  check_softmax(func, made[2])
  -- Masked rows of attention: what is scaled and masked is inlined, and is then what the maximum is of.
  local Q, K, V = te.placeholder({1, 5, 4}, "float32", "Q"), te.placeholder({1, 7, 4}, "float32", "K"),
    te.placeholder({1, 7, 3}, "float32", "V")
  local attention = te.func("attention", {Q, K, V, normalize.attention(Q, K, V, {causal = true})})
  made = sketches(attention, CPU, {rules = {"auto_inline", "online_softmax"}, online_softmax = any})
  assert(#made == 2 and not names(made[2]):find " maximum ")
  local own, want = ms.arrays_for(attention, 1), ms.arrays_for(attention, 1)
  ms.interpret(made[2]:func(), table.unpack(own))
  ms.interpret(attention, table.unpack(want))
  assert(own[4]:difference(want[4]) < 1e-6)
  -- What is no softmax is left alone: no maximum before, and exponentials that leave the function.
  local A = te.placeholder({4, 8}, "float32", "A")
  local r = te.reduce_axis(8, "k")
  local E = te.compute({4, 8}, function(i, j) return te.exp(A[{i, j}]) end, "E")
  local sum = te.compute({4}, function(i) return te.sum(E[{i, r}], r) end, "S")
  assert(#sketches(te.func("sum", {A, sum}), CPU, {rules = {"online_softmax"}, online_softmax = any}) == 1)
  assert(#sketches(te.func("kept", {A, E, sum}), CPU, {rules = {"online_softmax"}, online_softmax = any}) == 1)
  local layer = product(8, 8, 64)
  made = sketches(layer, CPU, {rules = {"online_softmax"}, online_softmax = any})
  assert(#made == 1 and made[1]:hash() == ms.schedule(layer):hash())
end

-- Rows that come from memory in one pass, all in one loop: a block's exponentials are computed from its own maximum.
function tests.rebase_exponential()
  local normalize = ms.load "lua.lib.ops.normalize"
  local X = te.placeholder({#HARD, 32}, "float32", "X")
  local func = te.func("softmax", {X, normalize.softmax(X)})
  local any = {rules = {"rebase_exponential", "nontemporal_stores", "add_rfactor", "random_compute_location"},
               rebase_exponential = {least_caches = 0, columns = {16, 8}, vectors = 1}}
  local made = sketches(func, CPU, any)
  assert(#made > 1)
  local rebased = 0
  for _, sch in ipairs(made) do
    if sch:has_block "maximum_factor" then
      rebased = rebased + 1
      local row, block = sch:get_loops(sch:get_sblock "maximum_rf_rf")
      assert(sch:child_count(row) == 6 and sch:child_count(block) == 5, sch.trace:text())
      check_softmax(func, sch)
    end
  end
  assert(rebased == 1, rebased)
  -- What fits the caches is left as it is, and so are rows that whole vectors do not divide.
  assert(#sketches(func, CPU, {rules = {"rebase_exponential"}}) == 1)
  local odd = te.placeholder({8, 31}, "float32", "X")
  any.rules = {"rebase_exponential"}
  assert(#sketches(te.func("odd", {odd, normalize.softmax(odd)}), CPU, any) == 1)
end

-- Windows that move by one element are expressions, in a function that reduces nothing; in whole, or not at all.
function tests.unroll_window()
  local A, W = te.placeholder({18, 20}, "float32", "A"), te.placeholder({3, 3}, "float32", "W")
  local function window(of, rows, columns, by, weight)
    local r, s = te.reduce_axis(rows, "r"), te.reduce_axis(columns, "s")
    return te.compute({(18 - rows) // by + 1, (20 - columns) // by + 1}, function(i, j)
      local value = of[{i * by + r, j * by + s}]
      return te.sum(weight and value * weight[{r, s}] or value, {r, s})
    end, "B")
  end
  local function made_of(...)
    return sketches(te.func("window", {...}), CPU, {rules = {"unroll_window", "auto_inline"}})
  end
  local B = window(A, 3, 3, 1)
  local made = made_of(A, te.compute({16, 18}, function(i, j) return B[{i, j}] / 9 end, "mean"))
  assert(#made == 2 and not names(made[1]):find " B " and made[1]:is_spatial_function() and names(made[2]):find " B ",
         names(made[1]))
  local own, want = ms.arrays_for(made[2]:func(), 1), ms.arrays_for(made[2]:func(), 1)
  ms.interpret(made[1]:func(), table.unpack(own))
  ms.interpret(made[2]:func(), table.unpack(want))
  assert(own[2]:difference(want[2]) == 0)
  -- Not: with steps of two; with weights, which each result reads again; of too many terms; where something else is
  -- reduced; a row's sum, which is no window; too many elements of one that is not yet there.
  assert(#made_of(A, window(A, 3, 3, 1)) == 2 and #made_of(A, window(A, 3, 3, 2)) == 1
         and #made_of(A, W, window(A, 3, 3, 1, W)) == 1)
  assert(#made_of(A, window(A, 4, 8, 1)) == 2 and #made_of(A, window(A, 11, 3, 1)) == 1)
  local k = te.reduce_axis(18, "k")
  local mean = te.compute({16}, function(i) return te.sum(B[{i, k}], k) end, "mean")
  assert(#made_of(A, mean) == 1)
  local short = te.placeholder({64, 4}, "float32", "S")
  local q = te.reduce_axis(4, "q")
  assert(#made_of(short, te.compute({64}, function(i) return te.sum(short[{i, q}], q) end, "row")) == 1)
  local function twice(rows)
    local r = te.reduce_axis(rows, "t")
    return te.compute({17 - rows, 18}, function(i, j) return te.max(B[{i + r, j}], r) end, "C")
  end
  assert(#made_of(A, twice(14)) == 2 and #made_of(A, twice(15)) == 1)
end

-- Attention on tensor cores: fused in place of what it was, with nothing of the size of rows times columns.
function tests.fuse_online_softmax_tensor_core()
  local func = ms.ops.func("attention", {1, 2, 32, 64, 32, dtype = "float16", causal = true})
  local rules = {rules = {"fuse_online_softmax_tensor_core"}}
  local made = sketches(func, GPU, rules)
  assert(#made == 5, #made)
  for _, sch in ipairs(made) do
    assert(names(sch):find " attention_o " and not names(sch):find " exponent ", names(sch))
    assert(sch:func():script():find('"mma.rows"', 1, true))
    local own, want = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
    ms.interpret(sch:func(), table.unpack(own))
    ms.interpret(func, table.unpack(want))
    assert(own[#own]:difference(want[#want]) < 0.01, sch.trace:text())
  end
  for _, other in ipairs {"cuda -arch=sm_75", "cuda -arch=sm_70"} do
    local kept = sketches(func, ms.target(other), rules)
    assert(#kept == 1 and not names(kept[1]):find " attention_o ")
  end
  local wide = ms.ops.func("attention", {1, 2, 32, 64, 32})
  assert(#sketches(wide, GPU, rules) == 1)
end

-- What is made of attention, or of one that is masked, computes what it does.
function tests.fuse_online_softmax()
  local normalize = ms.load "lua.lib.ops.normalize"
  local function attention(rows, columns, width, options, heads)
    local Q, K, V = te.placeholder({heads or 2, rows, width}, "float32", "Q"),
      te.placeholder({heads or 2, columns, width}, "float32", "K"),
      te.placeholder({heads or 2, columns, width}, "float32", "V")
    return te.func("attention", {Q, K, V, normalize.attention(Q, K, V, options)})
  end
  local rules =
    {rules = {"auto_inline", "fuse_online_softmax"}, fuse_online_softmax = {vectors = {1, 2}, columns = {8, 16}}}
  local function agree(func, sch)
    local own, want = ms.arrays_for(func, 1), ms.arrays_for(func, 1)
    ms.interpret(sch:func(), table.unpack(own))
    ms.interpret(func, table.unpack(want))
    for i = 1, #own do assert(own[i]:difference(want[i]) < 1e-5, sch.trace:text()) end
  end
  for _, case in ipairs {{32, 32, 8, {}, 5}, {32, 16, 4, {causal = true}, 5}, {19, 24, 5, {}, 2},
                         {35, 11, 3, {causal = true}, 5}, {8, 32, 8, {}, 1}} do
    local rows, columns, width, options, count = table.unpack(case)
    local func = attention(rows, columns, width, options)
    local made = sketches(func, CPU, rules)
    assert(#made == count, #made)
    for i = 2, #made do
      local kept = names(made[i])
      assert(kept:find " attention_o " and kept:find " attention_normalize " and not kept:find " exponent ", kept)
      local outer = {made[i]:get_loops(made[i]:get_sblock "attention_o")}
      assert(made[i]:loop_kind(outer[1]) == "parallel"
             and made[i]:iter_kinds(made[i]:get_sblock "attention_o")[3] == "reduce")
      agree(func, made[i])
    end
  end
  -- Rows and columns that tiles do not divide grow, in sketches more.
  local grown = {vectors = {1}, columns = {8, 16}, grown = 1, growth = 0.5}
  local growing = {rules = rules.rules, fuse_online_softmax = grown}
  for _, case in ipairs {{19, 24, 5, {}, 3, true}, {32, 11, 3, {causal = true}, 4, true}, {35, 21, 4, {}, 3, true},
                         {32, 16, 4, {}, 3}} do
    local rows, columns, width, options, count, grows = table.unpack(case)
    local func = attention(rows, columns, width, options)
    local made = sketches(func, CPU, growing)
    assert(#made == count, #made)
    for i = 2, #made do agree(func, made[i]) end
    assert((names(made[count]):find "_pad" ~= nil) == (grows == true), names(made[count]))
  end
  -- Built for this machine, as the default space has them.
  local func = attention(40, 64, 16, {causal = true})
  for _, sch in ipairs(sketches(func, ms.target "native", {rules = {"auto_inline", "fuse_online_softmax"}})) do
    agree(func, sch)
    local kernel = ms.build(sch:func(), {reference = func})
    assert(kernel:check() < 1e-5 and #kernel:notes() == 0, table.concat(kernel:notes(), "; "))
  end
  -- Copies that put rows last, and the one of the sums that puts them back, go square by square.
  local wide, squares = "llvm -mcpu=x86-64-v4 -num-cores=1", attention(64, 64, 64, {})
  for _, sch in ipairs {table.unpack(sketches(squares, ms.target(wide), {rules = {"auto_inline", "fuse_online_softmax"},
                                              fuse_online_softmax = {vectors = {4}, columns = {64}}}), 2)} do
    ms.with_folder(function(folder)
      ms.build(sch:func(), {target = wide}):export(folder .. "/squares.s")
      local file <close> = assert(io.open(folder .. "/squares.s"))
      local text = file:read "a"
      assert(not text:find "scatter" and not text:find "gather" and text:find "vscalefps" and text:find "vperm")
    end)
  end
  -- As networks have it: dimensions that are reduced stay, as 1, and batches are of 1.
  local Q, K = te.placeholder({1, 2, 32, 8}, "float32", "Q"), te.placeholder({1, 2, 8, 24}, "float32", "K")
  local one, r1, r2, r3, r4 = te.const(0, "int32"), te.reduce_axis(8, "r1"), te.reduce_axis(24, "r2"),
    te.reduce_axis(24, "r3"), te.reduce_axis(24, "r4")
  local S =
    te.compute({1, 2, 32, 24}, function(b, h, i, j) return te.sum(Q[{one, h, i, r1}] * K[{one, h, r1, j}], r1) end, "S")
  local M = te.compute({1, 2, 32, 1}, function(b, h, i, u) return te.max(S[{b, h, i, r2}], r2) end, "M")
  local E = te.compute({1, 2, 32, 24}, function(b, h, i, j) return te.exp(S[{b, h, i, j}] - M[{b, h, i, one}]) end, "E")
  local L = te.compute({1, 2, 32, 1}, function(b, h, i, u) return te.sum(E[{b, h, i, r3}], r3) end, "L")
  local N = te.compute({1, 2, 32, 24}, function(b, h, i, j) return E[{b, h, i, j}] / L[{b, h, i, one}] end, "N")
  local W = te.placeholder({1, 2, 24, 4}, "float32", "W")
  local kept = te.func("kept_dimensions",
    {Q, K, W, te.compute({1, 2, 32, 4},
                         function(b, h, i, d) return te.sum(N[{one, h, i, r4}] * W[{one, h, r4, d}], r4) end, "O")})
  local fused = sketches(kept, CPU, rules)
  assert(#fused == 3, #fused)
  for _, sch in ipairs(fused) do agree(kept, sch) end
  -- A softmax whose result leaves the function is no chain, nor is a product behind another.
  local X, V = te.placeholder({32, 32}, "float32", "X"), te.placeholder({32, 8}, "float32", "V")
  local r, P = te.reduce_axis(32, "r"), normalize.softmax(X)
  local Y = te.compute({32, 8}, function(i, j) return te.sum(P[{i, r}] * V[{r, j}], r) end, "Y")
  assert(#sketches(te.func("kept", {X, V, P, Y}), CPU, rules) == 1)
  assert(#sketches(te.func("softmax_of_input", {X, V, Y}), CPU, rules) > 1)
  local layer = product(32, 32, 32)
  assert(#sketches(layer, CPU, rules) == 1)
end

function tests.cross_thread_reduction()
  local A = te.placeholder({8, 64}, "float32", "A")
  local r = te.reduce_axis(64, "k")
  local S = te.compute({8}, function(i) return te.sum(A[{i, r}], r) end, "S")
  local func = te.func("scaled", {A, te.compute({8}, function(i) return S[{i}] * 2 end, "D")})
  local made = sketches(func, GPU, {rules = {"cross_thread_reduction"}})
  assert(#made == 2 and has(made[1], 'thread="threadIdx.x"') and has(made[1], 'scope="shared"')
         and not has(made[2], "thread"))
  for _, sch in ipairs(made) do check(func, sch) end
  -- Of what reads a result again and again, a thread may have several elements at once, where they lie side by side.
  local function rows(columns)
    local X = te.placeholder({4, columns}, "float32", "X")
    local k = te.reduce_axis(columns, "k")
    local T = te.compute({4}, function(i) return te.sum(X[{i, k}], k) end, "T")
    return te.func("rows", {X, te.compute({4, columns}, function(i, j) return X[{i, j}] * T[{i}] end, "D")})
  end
  made = sketches(rows(64), GPU, {rules = {"cross_thread_reduction"}})
  assert(#made == 3 and has(made[2], "T.vectorized(4)") and not has(made[1], "vectorized"))
  assert(#sketches(rows(63), GPU, {rules = {"cross_thread_reduction"}}) == 2)
  for _, sch in ipairs(made) do check(rows(64), sch) end
end

function tests.keep_rows()
  local X, k = te.placeholder({4, 64}, "float32", "X"), te.reduce_axis(64, "k")
  local T = te.compute({4}, function(i) return te.sum(X[{i, k}], k) end, "T")
  local func = te.func("rows", {X, te.compute({4, 64}, function(i, j) return X[{i, j}] * T[{i}] end, "D")})
  local function made_with(shared_bytes)
    return sketches(func, GPU, {rules = {"cross_thread_reduction", "keep_rows"},
                                keep_rows = {shared_bytes = shared_bytes, static_bytes = 128, vector_bytes = 16}})
  end
  local made = made_with(256) -- by two of the three, in dynamic shared memory
  assert(#made == 5 and has(made[2], 'X_shared_dyn = T.sblock_alloc_buffer((4, 64), scope="shared.dyn")')
         and has(made[2], "T.vectorized(4)") and has(made[4], "X_shared_dyn") and not has(made[5], "X_shared"))
  for _, sch in ipairs(made) do check(func, sch) end
  assert(#made_with(255) == 3)
  -- Where nothing is reduced by threads, or what is read is read once.
  assert(#sketches(func, GPU, {rules = {"keep_rows"}}) == 1)
  local once = te.func("once", {X, te.compute({4, 64}, function(i, j) return T[{i}] * te.cast(j, "float32") end, "D")})
  assert(#sketches(once, GPU, {rules = {"cross_thread_reduction", "keep_rows"}})
         == #sketches(once, GPU, {rules = {"cross_thread_reduction"}}))
end

function tests.two_pass_reduction()
  local function sums(rows, length)
    local A = te.placeholder({rows, length}, "float32", "A")
    local r = te.reduce_axis(length, "k")
    local S = te.compute({rows}, function(i) return te.sum(A[{i, r}], r) end, "S")
    return te.func("sums", {A, te.compute({rows}, function(i) return te.sqrt(S[{i}]) end, "D")})
  end
  local few, any = sums(3, 96),
    {most_results = 4, least = 64, least_blocks = 2, most_blocks = 8, thread_extents = {8, 16}}
  local made = sketches(few, GPU, {rules = {"two_pass_reduction"}, two_pass_reduction = any})
  assert(#made == 2 and has(made[1], 'thread="blockIdx.x"') and has(made[1], 'thread="threadIdx.x"')
         and not has(made[2], "thread"))
  local runs, threads = table.unpack(made[1].trace:draws())
  assert(table.concat(runs.attrs[1], " ") == "2 3 4 6 8" and table.concat(threads.attrs[1], " ") == "8 16")
  for _, sch in ipairs(made) do check(few, sch) end
  -- The rules after it: the second pass is of threads, too; what the first bound is left alone.
  made = sketches(few, GPU, {rules = {"two_pass_reduction", "cross_thread_reduction"}, two_pass_reduction = any})
  assert(#made == 4)
  for _, sch in ipairs(made) do check(few, sch) end
  -- Enough results, or not enough to sum up for each, or none in runs of one length.
  assert(#sketches(sums(5, 96), GPU, {rules = {"two_pass_reduction"}, two_pass_reduction = any}) == 1)
  assert(#sketches(sums(3, 60), GPU, {rules = {"two_pass_reduction"}, two_pass_reduction = any}) == 1)
  assert(#sketches(sums(3, 97), GPU, {rules = {"two_pass_reduction"}, two_pass_reduction = any}) == 1)
  assert(#sketches(sums(1, 16384), GPU, {rules = {"two_pass_reduction"}}) == 2
         and #sketches(sums(1, 8192), GPU, {rules = {"two_pass_reduction"}}) == 1)
end

function tests.multi_level_tiling()
  local func = product(16, 16, 16)
  local made = sketches(func, CPU, {rules = {"multi_level_tiling"}})
  assert(#made == 3)
  for _, sch in ipairs(made) do check(func, sch) end
  -- Any structure; a cache that must be; caches of inputs; loops bound.
  local p = {structure = "SRSR", max_innermost = 4, write = {need = "must", levels = {1}, scope = "global"}}
  made = sketches(func, CPU, {rules = {"multi_level_tiling"}, multi_level_tiling = p})
  assert(#made == 1 and #extents(made[1], "C") == 6 and has(made[1], "C_global"))
  p = {structure = "SSRS", max_innermost = 64, binds = {"blockIdx.x"}, read = {levels = {3}, scope = "shared"}}
  made = sketches(func, GPU, {rules = {"multi_level_tiling"}, multi_level_tiling = p})
  assert(#made == 1 and has(made[1], "A_shared") and has(made[1], "B_shared") and has(made[1], "blockIdx.x")
         and not has(made[1], "C_"))
  made = sketches(func, GPU, {rules = {"multi_level_tiling"}})
  assert(#made == 3 and has(made[2], "software_pipeline_stage") and has(made[1], "cooperative_fetch"))
  -- What draws are held against: products and sums of what is drawn, numbers as one.
  local function held(sch, pattern) return (tostring(sch.trace):gsub("v%d+", "v")):find(pattern, 1, true) ~= nil end
  assert(held(made[1], '"4 * v * v * v * v + 4 * v * v * v * v <= ') and not held(made[1], "1 * "))
  assert(held(made[2], '"3 * (4 * v * v * v * v + 4) <= 166912 or 64 * v * v * v * v + 64 <= 166912"'))
  local X, W, r = te.placeholder({66}, "float32", "X"), te.placeholder({3}, "float32", "W"), te.reduce_axis(3, "r")
  local window = te.compute({64}, function(i) return te.sum(X[i + r] * W[r], r) end, "Y")
  local windows = sketches(te.func("window", {X, W, window}), GPU, {rules = {"multi_level_tiling"}})
  assert(held(windows[1], '"4 * (v * v * v * v + v * v - 1) + 4 * v * v <= 166912"'))
  for _, sch in ipairs(made) do check(func, sch) end
  -- it copies nothing on the side
  assert(#sketches(func, ms.target "cuda -arch=sm_75", {rules = {"multi_level_tiling"}}) == 1)
  -- Few results of long sums: parts of them side by side, and a kernel that adds these.
  p = targets.cuda.multi_level_tiling(GPU)
  p.split = {most_results = 256, least = 8, parts = {2, 3, 4}}
  local function dividing(...) return {rules = {"multi_level_tiling"}, multi_level_tiling = p}, product(...) end
  local rules, long = dividing(16, 16, 32)
  made = sketches(long, GPU, rules)
  assert(#made == 6 and not has(made[3], "C_rf"))
  for i = 4, 6 do
    assert(has(made[i], "C_rf_local") and table.concat(made[i].trace:draws()[1].attrs[1], " ") == "2 4")
    assert(select(2, made[i]:func():script():gsub('thread="blockIdx.x"', "")) == 2)
    check(long, made[i])
  end
  for _, few in ipairs {{16, 17, 32}, {16, 16, 15}, {16, 16, 9}} do
    rules, long = dividing(table.unpack(few))
    assert(not has(sketches(long, GPU, rules)[#sketches(long, GPU, rules)], "C_rf"))
  end
  -- Elements that a thread can load at once depend on their bytes.
  local function lengths(type)
    for _, d in ipairs(sketches(product(16, 16, 16, type), GPU, {rules = {"multi_level_tiling"}})[1].trace:draws()) do
      if d.annotates == "meta_schedule.cooperative_fetch" then return table.concat(d.attrs[1], " ") end
    end
  end
  assert(lengths "float32" == "1 2 3 4" and lengths "float16" == "1 2 4 8" and lengths "int8" == "1 2 4 8 16")
end

function tests.multi_level_tiling_wide_vector()
  local p = {structure = "SRSRS", max_innermost = 64, vector_bits = 1024}
  local func = product(4, 128, 8)
  local made = sketches(func, CPU, {rules = {"multi_level_tiling_wide_vector"}, multi_level_tiling_wide_vector = p})
  local e = extents(made[1], "C")
  assert(#made == 1 and e[#e] == 32)
  check(func, made[1])
  e = extents(sketches(product(4, 16, 8), CPU,
                       {rules = {"multi_level_tiling_wide_vector"}, multi_level_tiling_wide_vector = p})[1], "C")
  assert(e[#e] == 16)
end

local function bytes_product(m, n, k) -- as VNNI has it: columns in groups of 16, reduced in groups of 4
  local A, B = te.placeholder({m, k}, "uint8", "A"), te.placeholder({n // 16, k // 4, 16, 4}, "int8", "B")
  local r = te.reduce_axis(k, "k")
  return te.func("bytes", {A, B, te.compute({m, n}, function(i, j)
    return te.sum(te.cast(A[{i, r}], "int32") * te.cast(B[{j // 16, r // 4, j % 16, r % 4}], "int32"), r)
  end, "C")})
end

function tests.multi_level_tiling_with_intrinsic_and_rewrite_tensorize()
  local func = bytes_product(8, 32, 16)
  local p = {structure = "SSRSRS", max_innermost = 64, intrinsics = {"dot_16x4_vnni", "wmma_sync_16x16x16_f16f16f32"}}
  local parts = parts_of(CPU, {rules = {"multi_level_tiling_with_intrinsic"}, postprocs = {"rewrite_reduction_block",
                               "rewrite_tensorize"}, multi_level_tiling_with_intrinsic = p})
  local made = space.generate(func, parts)
  assert(#made == 2 and has(made[1], "dot_16x4_vnni") and #made[2].trace:simplified(false) == 0)
  assert(space.postprocess(made[1], parts) and has(made[1], "vpdpbusd") and not has(made[1], "auto_tensorize"))
  check(func, made[1])
  assert(#space.generate(product(8, 32, 16), parts) == 1) -- floats are not what it multiplies
end

-- Products of matrices, batches of them and convolutions, by tensor cores: the result is that of the function.
function tests.multi_level_tiling_tensor_core()
  local function half(shape, name) return te.placeholder(shape, "float16", name) end
  local function times(a, b, r) return te.sum(te.cast(a, "float32") * te.cast(b, "float32"), r) end
  local function matmul(m, n, k)
    local A, B, r = half({m or 32, k or 32}, "A"), half({k or 32, n or 48}, "B"), te.reduce_axis(k or 32, "k")
    return te.func("matmul", {A, B, te.compute({m or 32, n or 48},
                                               function(i, j) return times(A[{i, r}], B[{r, j}], r) end, "C")})
  end
  local function batch_transposed()
    local A, B, r = half({2, 16, 32}, "A"), half({2, 16, 32}, "B"), te.reduce_axis(32, "k")
    return te.func("batch", {A, B, te.compute({2, 16, 16},
                                              function(b, i, j) return times(A[{b, i, r}], B[{b, j, r}], r) end, "C")})
  end
  local function conv2d(channels)
    channels = channels or 16
    local X, W = half({1, 6, 6, channels}, "X"), half({3, 3, channels, 16}, "W")
    local y, x, c = te.reduce_axis(3, "rh"), te.reduce_axis(3, "rw"), te.reduce_axis(channels, "rc")
    return te.func("conv", {X, W, te.compute({1, 4, 4, 16}, function(n, h, w, o)
      return times(X[{n, h + y, w + x, c}], W[{y, x, c, o}], {y, x, c})
    end, "C")})
  end
  local parts = space.parts(targets.context(GPU, targets.metaschedule.tensor_core))
  for _, make in ipairs {matmul, batch_transposed, conv2d} do
    local func = make()
    local made, report = space.generate(func, parts)
    assert(not next(report.refused) and #made == 4, next(report.refused)) -- and those without tensor cores
    assert(space.postprocess(made[1], parts), func:name())
    for _, what in ipairs {"tvm_load_matrix_sync", "tvm_mma_sync", "tvm_fill_fragment", "tvm_store_matrix_sync",
                           "threadIdx.y", "warp_execution"} do
      assert(has(made[1], what), what)
    end
    assert(not has(made[1], "auto_tensorize") and not has(made[1], "cooperative_fetch"))
    check(func, made[1])
  end
  assert(#space.generate(product(32, 32, 32), parts) == 3) -- floats are not what they multiply
  -- The smaller fragments, which a warp loads several of; copies run ahead.
  local func = matmul(32, 64, 32)
  local made = space.generate(func, parts)
  assert(#made == 5 and has(made[2], "software_pipeline_order") and has(made[2], "double_buffer_scope"))
  assert(space.postprocess(made[2], parts) and has(made[2], "ptx_mma") and has(made[2], "m16n8k8.matrixA"))
  check(func, made[2])
  -- Sums in parts, for each group; of several reductions the longest is divided, into parts of the one number that the
  -- map holds which makes one of all.
  local p = targets.cuda.multi_level_tiling_tensor_core(GPU)
  p.split = {most_results = 1536, least = 32, parts = {2, 4}}
  local dividing = {rules = {"multi_level_tiling_tensor_core"}, multi_level_tiling_tensor_core = p}
  for _, each in ipairs {{matmul(32, 48, 64), "C_rf[k_0", "2"}, {conv2d(64), "C_rf[rc_0", "2"}} do
    func, parts = each[1], space.parts(targets.context(GPU, targets.changed(targets.cuda, dividing)))
    made = space.generate(func, parts)
    local divided = 0
    for _, sch in ipairs(made) do
      if has(sch, "C_rf") then
        divided = divided + 1
        assert(table.concat(sch.trace:draws()[1].attrs[1], " ") == each[3])
        assert(space.postprocess(sch, parts), func:name())
        check(func, sch)
      end
    end
    assert(divided == 2 and #made == 5, #made)
  end
end

-- The same by warp groups: the second input's tiles lie as it does; copies of tiles run ahead; what a block has holds
-- all draws.
function tests.products_of_warp_groups()
  local target = msched.target "cuda -arch=sm_90a"
  local function half(shape, name) return te.placeholder(shape, "bfloat16", name) end
  local function times(a, b, r) return te.sum(te.cast(a, "float32") * te.cast(b, "float32"), r) end
  local function transposed_batch()
    local A, B, r = half({2, 64, 32}, "A"), half({2, 64, 32}, "B"), te.reduce_axis(32, "k")
    return te.func("batch", {A, B, te.compute({2, 64, 64},
                                              function(b, i, j) return times(A[{b, i, r}], B[{b, j, r}], r) end, "C")})
  end
  local function conv2d()
    local X, W = half({1, 10, 10, 16}, "X"), half({3, 3, 16, 64}, "W")
    local y, x, c = te.reduce_axis(3, "rh"), te.reduce_axis(3, "rw"), te.reduce_axis(16, "rc")
    return te.func("conv", {X, W, te.compute({1, 8, 8, 64}, function(n, h, w, o)
      return times(X[{n, h + y, w + x, c}], W[{y, x, c, o}], {y, x, c})
    end, "C")})
  end
  local parts = space.parts(targets.context(target))
  for _, case in ipairs {{transposed_batch, "col_major"}, {conv2d, "row_major"}} do
    local func = case[1]()
    local made, report = space.generate(func, parts)
    assert(not next(report.refused), next(report.refused))
    assert(space.postprocess(made[1], parts), func:name())
    for _, what in ipairs {"wgmma_fill", "wgmma_mma", "wgmma_store", case[2], "wgmma.accumulator", "shared.dyn.panels",
                           "software_pipeline_async_stages", "software_pipeline_tensor_copies",
                           "software_pipeline_producer", "buffer_dim_align"} do
      assert(has(made[1], what), what)
    end
    assert(not has(made[1], "auto_tensorize") and not has(made[1], "fetching_warps"))
    check(func, made[1])
  end
end

-- What a GPU's architecture has groups for, by the types of a product: in its own space, and where TF32 is asked for.
function tests.tensor_cores_by_architecture()
  local groups = {float16 = {float32 = {70, 80}, float16 = {70}}, int8 = {int32 = {75, 80}}, uint8 = {int32 = {}},
                  bfloat16 = {float32 = {80}}, float32 = {float32 = {}}}
  for _, name in ipairs {"70", "75", "80", "90", "90a"} do
    -- Warp groups have one for 64 rows and columns, and three ways to store what it makes.
    local arch, groups_of_warps = tonumber(name:match "%d+"), name == "90a"
    for _, case in ipairs {{"float16", "float32"}, {"float16", "float16"}, {"int8", "int32"}, {"bfloat16", "float32"},
                           {"float32", "float32"}, {"uint8", "int32"}} do
      local A, B, r = te.placeholder({64, 64}, case[1], "A"), te.placeholder({64, 64}, case[1], "B"),
        te.reduce_axis(64, "k")
      local func = te.func("product", {A, B, te.compute({64, 64}, function(i, j)
        return te.sum(te.cast(A[{i, r}], case[2]) * te.cast(B[{r, j}], case[2]), r)
      end, "C")})
      local target, expected = msched.target("cuda -arch=sm_" .. name),
        groups_of_warps and case[2] ~= "float16" and case[1] ~= "float32" and 3 or 0
      local function count(known) return #space.generate(func, space.parts(targets.context(target, known))) end
      for _, least in ipairs(groups[case[1]][case[2]]) do expected = expected + (arch >= least and 1 or 0) end
      local plain = count(targets.metaschedule.cuda)
      local rounded = case[1] == "float32" and arch >= 80 and (groups_of_warps and 4 or 1) or 0
      -- Pipelines are beside what is not for tensor cores, in both.
      local without = count(targets.changed(targets.cuda, {multi_level_tiling_tensor_core = {groups = {}}}))
      assert(plain <= without and count() == without + expected, case[1] .. " on " .. name)
      assert(count(targets.tensor_core) == without + expected + rounded, case[1] .. " rounded on " .. name)
    end
  end
end

function tests.parallel_vectorize_unroll_and_its_rewriting()
  local func = product(64, 64, 64)
  local parts =
    parts_of(CPU, {rules = {"parallel_vectorize_unroll"}, postprocs = {"rewrite_parallel_vectorize_unroll"}})
  local made = space.generate(func, parts)
  assert(has(made[1], "meta_schedule.parallel") and has(made[1], "meta_schedule.vectorize")
         and has(made[1], "meta_schedule.unroll_explicit"))
  assert(space.postprocess(made[1], parts) and has(made[1], "T.parallel") and not has(made[1], "meta_schedule."))
  check(func, made[1])
  local plain = relu_of(function(A, i, j) return A[{i, j}] + 1 end)
  made = space.generate(plain, parts)
  assert(not has(made[1], "unroll")) -- nothing reduces
  assert(space.postprocess(made[1], parts) and has(made[1], "T.vectorized(64)"))
  check(plain, made[1])
end

-- A loop that is longer than a vector is divided into such where LLVM finds none as good: of exp, and of results that
-- go around the caches. Others, and those that vectors do not divide, are left to it.
function tests.long_loops_as_vectors()
  local parts =
    parts_of(CPU, {rules = {"parallel_vectorize_unroll"}, postprocs = {"rewrite_parallel_vectorize_unroll"}})
  local function vectors(columns, note, value)
    local A, k = te.placeholder({4, columns}, "float32", "A"), te.reduce_axis(columns, "k")
    local S = te.compute({4}, function(i) return te.sum(A[{i, k}], k) end, "S")
    local func = te.func("f", {A, te.compute({4, columns}, function(i, j) return value(A[{i, j}]) + S[i] end, "B")})
    local sch = space.generate(func, parts)[1]
    local rows = sch:get_loops(sch:get_sblock "B")
    sch:compute_at(sch:get_sblock "S", rows)
    if note then sch:annotate(sch:get_sblock "B", "msched.nontemporal", note) end
    assert(space.postprocess(sch, parts))
    check(func, sch)
    return has(sch, "T.vectorized(64)")
  end
  local function same(x) return x end
  local function divided(x) return x / 3 end
  local X = te.placeholder({8}, "float32", "X")
  local values = {divides = divided, calls = te.exp, adds = function(x) return x + 3 end}
  for name, value in pairs(values) do
    local sch = ms.schedule(te.func("f", {X, te.compute({8}, function(i) return value(X[i]) end, "B")}))
    assert(sch:divides_floats(sch:get_sblock "B") == (name == "divides"), name)
    assert(sch:has_call(sch:get_sblock "B", "exp") == (name == "calls"), name)
  end
  assert(vectors(256, nil, te.exp) and vectors(256, 1, same) and vectors(256, nil, divided))
  assert(not vectors(256, nil, same) and not vectors(256, 0, same) and not vectors(200, nil, te.exp))
end

-- Of a reduction no vector is fused in which an input repeats itself, or each element does: it would be gathered.
function tests.vectors_of_reductions_do_not_repeat()
  local A, B, k = te.placeholder({8, 4}, "float32", "A"), te.placeholder({8, 6}, "float32", "B"), te.reduce_axis(8, "k")
  local func =
    te.func("outer", {A, B, te.compute({4, 6}, function(i, j) return te.sum(A[{k, i}] * B[{k, j}], k) end, "C")})
  local sch = ms.schedule(func)
  local block = sch:get_sblock "C"
  local i, j, r = sch:get_loops(block)
  sch:reorder {r, i, j}
  assert(sch:data_parallel_loops(block, 0, 64, 0).vector == 1)
  local plain = ms.schedule(te.func("plain", {B, te.compute({8, 6}, function(x, y) return B[{x, y}] + 1 end, "C")}))
  assert(plain:data_parallel_loops(plain:get_sblock "C", 0, 64, 0).vector == 2)
  local function divides(most) return plain:data_parallel_loops(plain:get_sblock "C", 0, most, 0).divides end
  assert(divides(3) and not divides(4) and not divides(6))
end

function tests.random_compute_location()
  local func = relu_of(function(A, i, j) return A[{i, j}] + 1 end)
  local made = sketches(func, CPU, {rules = {"random_compute_location"}})
  assert(made[1].trace:text():find "sample_compute_location")
  check(func, made[1])
  local reduced = product(2, 2, 512) -- of outputs too: where the partial results are computed
  made = sketches(reduced, CPU, {rules = {"add_rfactor", "random_compute_location"}})
  assert(made[2].trace:text():find "sample_compute_location")
  check(reduced, made[2])
end

function tests.auto_bind()
  local func = relu_of(function(A, i, j) return A[{i, j}] + 1 end)
  local made = sketches(func, GPU, {rules = {"auto_bind"}})
  assert(has(made[1], "blockIdx.x") and has(made[1], "threadIdx.x"))
  check(func, made[1])
  -- More than so many blocks of so many threads: each has several iterations.
  made = sketches(func, ms.target "cuda -arch=sm_80 -max_threads_per_block=32",
                  {rules = {"auto_bind"}, auto_bind = {max_blocks = 2, thread_extents = {32}}})
  assert(has(made[1], "range(8)"))
  check(func, made[1])
end

-- ---- Limits ----------------------------------------------------------------------------------------------------

-- What is shipped runs without the hook of Lua, and is stopped all the same, where it calls instructions and queries.
function tests.a_shipped_part_that_is_late_is_stopped()
  ms.rule_timeout(1e-9)
  local ok, message = pcall(sketches, product(64, 64, 64), CPU,
                            {rules = {"register_tile", "multi_level_tiling", "parallel_vectorize_unroll"}})
  ms.rule_timeout(0)
  assert(not ok and message:find "ran longer than 1e%-09 seconds, and was at line", message)
  assert(#sketches(product(64, 64, 64), CPU, {rules = {"multi_level_tiling"}}) > 0)
end

-- ---- Targets ---------------------------------------------------------------------------------------------------

function tests.a_target_is_data()
  targets.toy = {rules = {"multi_level_tiling"}, postprocs = {}, mutators = {},
                 multi_level_tiling = function(target) return {structure = "SRS", max_innermost = target.words} end}
  local parts = space.parts(targets.context {kind = "toy", words = 2})
  for seed = 1, 8 do
    local e = extents(space.generate(product(16, 16, 16), parts, seed)[1], "C")
    assert(#e == 5 and e[4] <= 2 and e[5] <= 2)
  end
  targets.toy = nil
end

support.run(tests, "parts")
