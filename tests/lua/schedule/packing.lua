-- Constants that are packed ahead: functions cut in two, what is not cut and why, the same results on the interpreter
-- and compiled, measured, exported.
local ms = require "msched"
local te = ms.te
local function P(name, ...) return te.placeholder({...}, "float32", name) end

local function product(weights, m, n, k)
  local A, B, r = P("A", m, k), P("B", k, n), te.reduce_axis(k, "r")
  return te.func("gemm", {A, B, te.compute({m, n}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")},
                 {weights = weights})
end

local function arrays_of(func, seed)
  local list = {}
  for i, p in ipairs(func:params()) do list[i] = ms.array(p.shape, p.type):random(seed + i) end
  return list
end

-- The scheduled function computes what the other does: interpreted, compiled, called twice, and in its two parts.
local function same(func, scheduled)
  local want, got, parts = arrays_of(func, 1), arrays_of(func, 1), arrays_of(func, 1)
  ms.interpret(func, table.unpack(want))
  ms.interpret(scheduled, table.unpack(got))
  local last = #want
  assert(want[last]:bytes() == got[last]:bytes(), "interpreted")
  local kernel = ms.build(scheduled, {reference = func})
  local call = kernel:prepare(table.unpack(got))
  for _ = 1, 2 do
    got[last]:random(99)
    call:run()
    assert(want[last]:bytes() == got[last]:bytes(), "compiled")
  end
  kernel:check_real(func)
  kernel:check_timing()
  local p = scheduled:packing()
  if not p then return nil end
  local packed = {}
  local function given(list, of)
    local arrays = {}
    for i, number in ipairs(list) do
      if number < 0 and not packed[-number] then
        packed[-number] = ms.array(of:params()[i].shape, of:params()[i].type)
      end
      arrays[i] = number < 0 and packed[-number] or parts[number]
    end
    return table.unpack(arrays)
  end
  ms.build(p.pack)(given(p.of_pack, p.pack))
  ms.build(p.kernel)(given(p.of_kernel, p.kernel))
  assert(want[last]:bytes() == parts[last]:bytes(), "in two parts")
  return p
end

local function lists(p) return table.concat(p.of_kernel, " ") .. " | " .. table.concat(p.of_pack, " ") end

-- A schedule that reads B eight columns at a time, in a buffer of that layout.
local function eights(func, annotated)
  local sch = ms.schedule(func)
  local i, j, k = sch:get_loops(sch:get_sblock "C")
  local j0, j1 = sch:split(j, {ms.rest, 8})
  sch:reorder(j0, i, k, j1)
  local copy = sch:cache_read(sch:get_sblock "C", 1, "global")
  if annotated then sch:annotate(copy, "meta_schedule.layout_rewrite_preproc", true) end
  sch:transform_layout(sch:get_sblock "C", "lambda i0, i1: (i1 // 8, i0, i1 % 8)", 1, 0)
  return sch, copy, i
end

-- ---- What is cut -------------------------------------------------------------------------------------------------

local func = product({"B"}, 16, 32, 8)
assert(func:script():find('"layout_free_buffers": [1]', 1, true))
assert(func:hash() ~= product(nil, 16, 32, 8):hash(), "what is constant is part of the workload")
for _, annotated in ipairs {true, false} do
  local p = same(func, eights(func, annotated):func())
  assert(lists(p) == "1 -1 3 | 2 -1" and p.count == 1 and p.pack:name() == "gemm_pack" and p.kernel:name() == "gemm")
  assert(p.kernel:params()[2].name == "B_global" and table.concat(p.kernel:params()[2].shape, "x") == "4x8x8")
  assert(not p.kernel:script():find "layout_free_buffers")
end
assert(not same(product(nil, 16, 32, 8), eights(product(nil, 16, 32, 8)):func()), "no constant: nothing is packed")
assert(not func:packing(), "no schedule: nothing is packed")

do -- a chain of copies: what is between them is the packing's own
  local sch = eights(func)
  sch:cache_read(sch:get_sblock "C", 1, "global")
  local p = same(func, sch:func())
  assert(lists(p) == "1 -1 3 | 2 -1" and p.pack:script():find "B_global = T.sblock_alloc_buffer", p.pack:script())
end

do -- two constants, made one; one constant read packed and as it is; what is computed of constants, sums too
  local A, W, V, S = P("A", 8, 8), P("W", 8, 8), P("V", 8, 8), P("S", 8)
  local sum = te.compute({8, 8}, function(i, j) return W[{i, j}] + V[{i, j}] end, "both")
  local r = te.reduce_axis(8, "r")
  local column = te.compute({8}, function(j) return te.sum(W[{r, j}], r) end, "column")
  local out =
    te.compute({8, 8}, function(i, j) return A[{i, j}] * sum[{i, j}] + column[{j}] * W[{i, j}] + S[{j}] end, "out")
  local f = te.func("f", {A, W, V, S, out}, {weights = {"V", "W"}})
  local p = same(f, f)
  assert(p.count == 2 and lists(p) == "1 2 -1 -2 4 5 | 2 3 -1 -2", lists(p))
  p = same(f, te.func("f", {A, W, V, S, out}, {weights = {"W"}}))
  assert(lists(p) == "1 2 -1 3 4 5 | 2 -1", lists(p))
end

do -- nests that are taken out have their constants, by their own numbers
  local A, W, V, r, q = P("A", 8, 8), P("W", 8, 8), P("V", 8, 8), te.reduce_axis(8, "r"), te.reduce_axis(8, "q")
  local first = te.compute({8, 8}, function(i, j) return te.sum(A[{i, r}] * W[{r, j}], r) end, "first")
  local second = te.compute({8, 8}, function(i, j) return te.sum(first[{i, q}] * V[{q, j}], q) end, "second")
  local f = te.func("f", {V, A, W, second}, {weights = {"V", "W"}})
  assert(f:extract({"second"}, "g"):script():find('"layout_free_buffers": [1]', 1, true),
         f:extract({"second"}, "g"):script())
  local used = te.func("f", {V, A, W, second}, {weights = {"W"}})
  assert(not used:extract({"second"}, "g"):script():find "layout_free_buffers")
end

-- Ten packed buffers of one constant; of more than sixty-four, none is packed.
for _, count in ipairs {10, 66} do
  local A, r = P("A", 2, 4), te.reduce_axis(4, "r")
  local W, sum = P("W", count, 4, 8), nil
  for l = 0, count - 1 do
    local row = te.compute({4, 8}, function(i, j) return W[{l, i, j}] * 2 end, "row" .. l)
    sum = sum and te.compute({2, 8}, function(i, j) return sum[{i, j}] + row[{i, j}] end, "sum" .. l)
      or te.compute({2, 8}, function(i, j) return te.sum(A[{i, r}] * row[{r, j}], r) end, "C")
  end
  local f = te.func("many", {A, W, sum}, {weights = {"W"}})
  local p = count == 10 and same(f, f) or f:packing()
  assert(count == 10 and p.count == 10 and #p.of_kernel == 12 or count == 66 and not p, p and p.count)
end

-- ---- What is not, and why ----------------------------------------------------------------------------------------

local function not_packed(text, f, build)
  local ok, message = pcall(build and ms.build or f.packing, f)
  assert(not ok and message:find(text, 1, true), message)
end

do
  local sch = ms.schedule(func)
  sch:annotate(sch:cache_read(sch:get_sblock "C", 0, "global"), "meta_schedule.layout_rewrite_preproc", true)
  not_packed("block `A_global` of `gemm` is annotated meta_schedule.layout_rewrite_preproc, but its loop nest reads \z
              `A`, which is not constant", sch:func())
  not_packed("reads `A`, which is not constant", sch:func(), true)
  local other = product(nil, 16, 32, 8)
  local free = ms.schedule(other)
  free:annotate(free:cache_read(free:get_sblock "C", 0, "global"), "meta_schedule.layout_rewrite_preproc", true)
  assert(not same(other, free:func()), "without constants the annotation says nothing")
end

do
  local sch, copy, i = eights(func, true)
  sch:compute_at(copy, i)
  not_packed("its loop nest reads `A`, which is not constant", sch:func())
  local aligned, copied = eights(func, true)
  aligned:storage_align(copied, 0, 1, 32, 8)
  not_packed("lays its rows apart (storage_align)", aligned:func())
end

local function script(attribute, params, body)
  return ms.from_script(([[
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def f(%s):
    T.func_attr({"layout_free_buffers": %s})
%s]]):format(params, attribute, body))
end
local BUFFERS = 'W: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")'
local COPY = [[
    P = T.sblock_alloc_buffer((8,))
    for i in range(8):
        with T.sblock("pack"):
            v = T.axis.spatial(8, i)
            T.sblock_attr({"meta_schedule.layout_rewrite_preproc": True})
            P[v] = W[v]
    for i in range(8):
        with T.sblock("use"):
            v = T.axis.spatial(8, i)
            C[v] = P[v]
]]
assert(same(script("[0]", BUFFERS, COPY), script("[0]", BUFFERS, COPY)))
not_packed("attribute layout_free_buffers of `f` lists numbers of parameters that are buffers, from 0 to 1; 2 is none",
           script("[2]", BUFFERS, COPY))
not_packed("from 0 to 1; -1 is none", script("[-1]", BUFFERS, COPY))
not_packed("from 0 to 2; 2 is none", script("[0, 2]", BUFFERS .. ", n: T.int32", COPY))
not_packed("attribute layout_free_buffers is a list", script("0", BUFFERS, COPY))
not_packed("lists `C`, which the function writes: it is no constant", script("[0, 1]", BUFFERS, COPY))
not_packed("constants of `f` cannot be packed: it has parameters that are scalars",
           script("[0]", BUFFERS .. ", n: T.int32", COPY))
not_packed("its loop nest writes `P`, which others write too that are not made of constants alone",
           script("[0]", BUFFERS .. ', A: T.Buffer((8,), "float32")',
                  COPY:gsub("C%[v%] = P%[v%]", "P[v] = P[v] + A[v]\n            C[v] = P[v]")))
not_packed("is not a compact buffer of constant shape in global memory",
           script("[0]", BUFFERS, (COPY:gsub("%(8,%)%)", '(8,), scope="local")'))))

not_packed("it has statements that stand in no block, or extents and conditions that are loaded",
           script("[0]", BUFFERS .. ', N: T.Buffer((1,), "int32")', (COPY:gsub("range%(8%):\n        with \z
                  T.sblock%(\"use\"%)", "range(N[0]):\n        with T.sblock(\"use\")"))))
not_packed("buffers are used in ways that no block's regions declare",
           script("[0]", BUFFERS, COPY .. "    C[0] = W[1]\n"))
not_packed("does more than storing elements",
           script("[0]", BUFFERS, (COPY:gsub("P%[v%] = W%[v%]", "P[v] = W[v]\n            T.evaluate(0)"))))
do -- rows that constants name: what is gathered is packed, unless what names them is not constant
  local gather = [=[
    P = T.sblock_alloc_buffer((8,))
    for i in range(8):
        with T.sblock("pack"):
            v = T.axis.spatial(8, i)
            P[v] = W[N[v]]
    for i in range(8):
        with T.sblock("use"):
            v = T.axis.spatial(8, i)
            C[v] = P[v]
]=]
  local with_rows = 'W: T.Buffer((8,), "float32"), N: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")'
  local p = script("[0, 1]", with_rows, gather):packing()
  assert(p and lists(p) == "-1 3 | 1 2 -1" and not script("[0]", with_rows, gather):packing(), p and lists(p))
end

local function refused(text, ...)
  local ok, message = pcall(...)
  assert(not ok and message:find(text, 1, true), message)
end
refused("`gemm` has no buffer `W` among its parameters; it reads A, B", ms.with_weights, func, {"W"})
refused("`C` of `gemm` is written by it, and so is no constant", ms.with_weights, func, {"C"})
refused("weights are a list of names of parameters; number 1 is a boolean", ms.with_weights, func, {true})
refused("weights", te.func, "f", {P("A", 4)}, {weights = "A"})
assert(ms.with_weights(func, {"A", "B", "A"}):script():find('"layout_free_buffers": [1, 0]', 1, true))

-- ---- Exported ----------------------------------------------------------------------------------------------------

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local kernel = ms.build(eights(func):func(), {target = "x86-64-v2"})
for _, form in ipairs {"h", "c", "o", "s", "ll"} do kernel:export(folder .. "/gemm." .. form, "gemm") end
local file = assert(io.open(folder .. "/gemm.h"))
local header = file:read "a"
file:close()
for _,
    part in ipairs {"B_global: float32[4, 8, 8]", "Packed ahead: B into B_global. gemm_pack does it, once",
                    "#define gemm_pack_BYTES_B_global 1024u",
                    "static inline int32_t gemm_run(const float *A, const float *B_global, float *C, void *workspace)",
                    "static inline int32_t gemm_pack_run(const float *B, float *B_global, void *workspace)"} do
  assert(header:find(part, 1, true), header)
end
file = assert(io.open(folder .. "/main.c", "w"))
file:write [[
#include "gemm.h"
#include <stdio.h>
static float A[16 * 8], B[8 * 32], C[16 * 32], packed[gemm_pack_BYTES_B_global / sizeof(float)];
static _Alignas(64) char workspace[gemm_WORKSPACE + gemm_pack_WORKSPACE + 64];
int main(void) {
  for (int i = 0; i < 16 * 8; i++) A[i] = (float)(i % 7);
  for (int i = 0; i < 8 * 32; i++) B[i] = (float)(i % 5);
  if (gemm_pack_run(B, packed, workspace) || gemm_run(A, packed, C, workspace)) return 1;
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 32; j++) {
      float sum = 0;
      for (int k = 0; k < 8; k++) sum += A[i * 8 + k] * B[k * 32 + j];
      if (C[i * 32 + j] != sum) return 2;
    }
  puts("right");
  return 0;
}
]]
file:close()
local cc = os.getenv "CC" or "cc"
for _, form in ipairs {"c", "o"} do
  local pipe =
    assert(io.popen(("cd %s && %s -w -o main main.c gemm.%s -fopenmp -lm && ./main"):format(folder, cc, form)))
  assert(pipe:read "a" == "right\n", form)
  pipe:close()
end
assert(os.execute("rm -r " .. folder))
