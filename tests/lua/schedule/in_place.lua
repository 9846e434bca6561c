-- Results in the place of inputs: which functions may, scheduled or not, and why others may not; what they compute
-- there, interpreted, compiled, as C; every candidate of a space that may.
local ms = require "msched"
local te = ms.te
local targets, space = ms.load "rules.targets", ms.load "rules.space"
local function P(name, ...) return te.placeholder({...}, "float32", name) end

local M, N, K = 20, 36, 12

-- A product with a bias and a residual.
local function product(residual_at)
  local A, B, bias, R, r = P("A", M, K), P("B", K, N), P("bias", N), P("X", M, N), te.reduce_axis(K, "r")
  local C = te.compute({M, N}, function(i, j) return te.sum(A[{i, r}] * B[{r, j}], r) end, "C")
  local D = te.compute({M, N}, function(i, j) return C[{i, j}] + bias[{j}] end, "D")
  local at = residual_at or function(i, j) return {i, j} end
  local E = te.compute({M, N}, function(i, j) return D[{i, j}] + R[at(i, j)] end, "E")
  return te.func("gemm", {A, B, bias, R, E}, {weights = {"B"}})
end
local INPUT, OUTPUT = 4, 5 -- X and E

local function arrays_of(func, seed)
  local list = {}
  for i, p in ipairs(func:params()) do list[i] = ms.array(p.shape, p.type):random(seed + i) end
  return list
end

-- What the function gives on arrays of their own, and the inputs.
local function wanted(func)
  local given = arrays_of(func, 3)
  ms.interpret(func, table.unpack(given))
  return given[#given]
end

-- The scheduled function, in place, gives what the function gives; `made` has both as one parameter.
local function same(func, made, input, parallel)
  local want = wanted(func)
  assert(#made:params() == #func:params() - 1)
  local function run(with)
    local given = arrays_of(func, 3)
    table.remove(given)
    with(table.unpack(given))
    assert(given[input]:same_bytes(want), made:script())
  end
  run(function(...) ms.interpret(made, ...) end)
  local kernel = ms.build(made)
  run(function(...) kernel:run(...) end)
  if parallel then kernel:check_timing() end
end

local function in_place(func, scheduled, input, output)
  local made, why = scheduled:in_place(input, output)
  assert(made, why)
  same(func, made, input, true)
  return made
end

local function refused(text, func, input, output)
  local made, why = func:in_place(input, output)
  assert(not made and why:find(text, 1, true), made and made:script() or why)
end

-- ---- As written, and as scheduled ---------------------------------------------------------------------------------

local func = product()
do
  local made = in_place(func, func, INPUT, OUTPUT)
  assert(made:params()[4].name == "X" and made:script():find('"layout_free_buffers": [1]', 1, true), made:script())
  assert(made:hash() ~= func:hash())
end

-- Loops that do not divide, vectors, threads, the epilogue in the tile of its product.
local function tiled(f)
  local sch = ms.schedule(f)
  sch:compute_inline(sch:get_sblock "D")
  local C, E = sch:get_sblock "C", sch:get_sblock "E"
  local i, j = sch:get_loops(E)
  local i0, i1 = sch:split(i, {ms.rest, 8})
  local j0, j1 = sch:split(j, {ms.rest, 16})
  sch:reorder(i0, j0, i1, j1)
  sch:parallel(sch:fuse(i0, j0))
  sch:vectorize(j1)
  return sch, C, E
end
in_place(func, tiled(func):func(), INPUT, OUTPUT)

do -- a product that its epilogue is moved to
  local sch = ms.schedule(func)
  sch:compute_inline(sch:get_sblock "D")
  local i, j = sch:get_loops(sch:get_sblock "C")
  local i0, i1 = sch:split(i, {ms.rest, 4})
  sch:reorder(i0, j, i1)
  sch:reverse_compute_at(sch:get_sblock "E", i0)
  sch:parallel(i0)
  in_place(func, sch:func(), INPUT, OUTPUT)
end

do -- what is read, and what is written, through caches: of a tile, and of all
  local sch = tiled(func)
  local copy = sch:cache_read(sch:get_sblock "E", 0, "global")
  in_place(func, sch:func(), INPUT, OUTPUT)
  sch:compute_at(copy, (sch:get_loops(sch:get_sblock "E")))
  sch:cache_write(sch:get_sblock "E", 0, "global")
  assert(sch:func():script():find "global", sch:func():script())
  local read = nil
  for k, region in ipairs(sch:reads(sch:get_sblock "E")) do if region.buffer == "X" then read = k - 1 end end
  if read then sch:cache_read(sch:get_sblock "E", read, "global") end
  in_place(func, sch:func(), INPUT, OUTPUT)
end

-- ---- Which may not -------------------------------------------------------------------------------------------------

do
  local A, B = P("A", 8, 8), P("B", 8, 8)
  local function one(f, inputs)
    return te.func("f", {A, B, te.compute({8, 8}, f, "C")}, inputs)
  end
  local plain = one(function(i, j) return A[{i, j}] * 2 + B[{i, j}] end)
  in_place(plain, plain, 1, 3)
  in_place(plain, plain, 2, 3)
  refused("other elements", one(function(i, j) return A[{j, i}] + B[{i, j}] end), 1, 3)
  refused("other elements", one(function(i, j) return A[{i, j}] + A[{i, 7 - j}] + B[{i, j}] end), 1, 3)
  refused("other elements", one(function(i, j) return A[{i, 0}] + B[{i, j}] end), 1, 3)
  refused("the input is not read", one(function(i, j) return B[{i, j}] + 1 end), 1, 3)
  local twice = te.compute({8, 8}, function(i, j) return A[{i, j}] + 1 end, "D")
  local both = te.compute({8, 8}, function(i, j) return twice[{j, i}] + A[{i, j}] end)
  refused("in several places", te.func("f", {A, both}), 1, 2)
  local turned = te.func("f", {A, te.compute({8, 8}, function(i, j) return twice[{j, i}] end)})
  refused("not computed of the same element", turned, 1, 2)
  local r = te.reduce_axis(8, "r")
  local sum = te.func("f", {A, te.compute({8, 8}, function(i, j) return te.sum(A[{i, j}] * r, r) end)})
  refused("the output is read", sum, 1, 2)
  refused("not alike", te.func("f", {A, te.compute({8, 4}, function(i, j) return A[{i, j}] end)}), 1, 2)
  local whole = te.compute({8, 8}, function(i, j) return te.cast(A[{i, j}], "int32") end)
  refused("not alike", te.func("f", {A, whole}), 1, 2)
  assert(not pcall(plain.in_place, plain, 1, 4) and not pcall(plain.in_place, plain, 1, 1))
  -- constants keep their numbers
  local before = te.compute({8, 8}, function(i, j) return A[{i, j}] + B[{i, j}] end)
  refused("no buffers that may", te.func("f", {A, before, B}, {weights = {"B"}}), 1, 2)
end

do -- a schedule that reads elements again: what it caches is computed once for each row
  local A = P("A", 8, 8)
  local D = te.compute({8, 8}, function(i, j) return A[{i, j}] * 2 end, "D")
  local S = te.compute({8, 8}, function(i, j)
    return D[{i, j}] + te.if_then_else(te.ge(i, 1), D[{te.max(i - 1, 0), j}], te.const(0.0, "float32"))
  end, "S")
  local f = te.func("f", {A, S})
  in_place(f, f, 1, 2) -- all of D is computed before
  local sch = ms.schedule(f)
  sch:compute_at(sch:get_sblock "D", (sch:get_loops(sch:get_sblock "S")))
  refused("more than once", sch:func(), 1, 2)
end

do -- blocks that are used in other ways
  local function script(body)
    return ms.from_script([[
# from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
]] .. body)
  end
  refused("in other ways", script [[
    for i in range(8):
        with T.sblock("B"):
            v = T.axis.spatial(8, i)
            a = T.match_buffer(A[v], (1,), offset_factor=1)
            B[v] = a[0] + A[v]
]], 1, 2)
  refused("the output is read", script [[
    for i in range(8):
        with T.sblock("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v] + B[v]
]], 1, 2)
  refused("not written in one place", script [[
    for i in range(8):
        with T.sblock("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
    for i in range(8):
        with T.sblock("C"):
            v = T.axis.spatial(8, i)
            B[v] = T.float32(1)
]], 1, 2)
  refused("in several places", script [[
    for i in range(8):
        with T.sblock("B"):
            v = T.axis.spatial(8, i)
            T.where(A[0] < T.float32(1))
            B[v] = A[v]
]], 1, 2)
  refused("an element of its own", script [[
    for i, j in T.grid(8, 2):
        with T.sblock("B"):
            v, w = T.axis.remap("SS", [i, j])
            B[v] = A[v]
]], 1, 2)
  refused("more than once", script [[
    for i, j in T.grid(8, 2):
        with T.sblock("B"):
            v = T.axis.spatial(8, i)
            B[v] = A[v]
]], 1, 2)
end

-- ---- Every candidate of a space ------------------------------------------------------------------------------------

do
  local parts = space.parts(targets.context(ms.target "native"))
  local function reversed(i, j) return {M - 1 - i, j} end
  for _, each in ipairs {{product(), 0.9}, {product(reversed), 0}} do
    local f, input, output, share = each[1], INPUT, OUTPUT, each[2]
    local count, shared = 0, 0
    for s, sketch in ipairs((space.generate(f, parts))) do
      for c = 1, 3 do
        local ok, sch = pcall(ms.apply, f, sketch.trace, {seed = 5, candidate = 10 * s + c, resample = true})
        if ok and space.postprocess(sch, parts) then
          local made = sch:func():in_place(input, output)
          count, shared = count + 1, shared + (made and 1 or 0)
          if made then same(f, made, input, true) end
        end
      end
    end
    print(string.format("%d of %d candidates in place", shared, count))
    assert(count > 0 and (share == 0 and shared == 0 or shared >= share * count), shared .. " of " .. count)
  end
end

-- ---- Threads of GPUs: the interpreter's are real -------------------------------------------------------------------

do
  local A, B = P("A", 64, 48), P("B", 64, 48)
  local D = te.compute({64, 48}, function(i, j) return A[{i, j}] + B[{i, j}] end, "D")
  local f = te.func("f", {A, B, te.compute({64, 48}, function(i, j) return te.max(D[{i, j}], 0.0) end, "C")})
  local function bound(inline)
    local sch = ms.schedule(f)
    local C = sch:get_sblock "C"
    if inline then sch:compute_inline(sch:get_sblock "D") end
    local l = sch:fuse(sch:get_loops(C))
    local x, t = sch:split(l, {ms.rest, 96})
    sch:bind(x, "blockIdx.x")
    sch:bind(t, "threadIdx.x")
    if not inline then
      sch:compute_at(sch:get_sblock "D", x)
      sch:set_scope(sch:get_sblock "D", 0, "shared")
    end
    return sch:func()
  end
  local made = assert(bound(true):in_place(2, 3))
  ms.check_lowered(assert(f:in_place(2, 3)), made, "cuda -arch=sm_80", 1)
  refused("threads read the input before", bound(false), 2, 3)
end

-- ---- Exported: one pointer, which promises nothing of another ------------------------------------------------------

do
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local made = assert(tiled(func):func():in_place(INPUT, OUTPUT))
  local kernel = ms.build(made, {target = "x86-64-v2"})
  for _, form in ipairs {"c", "ll", "o"} do kernel:export(folder .. "/f." .. form, "f") end
  local function get(form)
    local file <close> = assert(io.open(folder .. "/f." .. form))
    return file:read "a"
  end
  local inner = get("c"):match "\nstatic void [%w_]+(%b())"
  local _, restricted = inner:gsub("__restrict__", "")
  assert(restricted == 4, inner)
  local _, apart = get("ll"):match("define internal void @[%w._]*(%b())"):gsub("noalias", "")
  assert(apart == 6, apart) -- four buffers, the status, the workspace
  local file <close> = assert(io.open(folder .. "/main.c", "w"))
  local want = wanted(func):tolist()
  file:write(string.format([[
#include <stdint.h>
#include <stdio.h>
int32_t f(void **args, void *workspace);
static _Alignas(64) char workspace[1 << 20];
int main(int argc, char **argv) {
  static float A[%d], B[%d], bias[%d], R[%d];
  FILE *in = fopen(argv[1], "rb");
  if (fread(A, sizeof A, 1, in) + fread(B, sizeof B, 1, in) + fread(bias, sizeof bias, 1, in) + fread(R, sizeof R, 1, in) != 4) return 1;
  if (f((void *[]){A, B, bias, R}, workspace)) return 2;
  fwrite(R, sizeof R, 1, stdout);
  return argc != 2;
}
]], M * K, K * N, N, M * N))
  file:close()
  local given, data = arrays_of(func, 3), assert(io.open(folder .. "/in", "wb"))
  for i = 1, 4 do data:write(given[i]:bytes()) end
  data:close()
  for _, form in ipairs {"c", "o"} do
    local pipe = assert(io.popen(("cd %s && %s -O2 -w -o main main.c f.%s -fopenmp -lm && ./main in"):format(
      folder, os.getenv "CC" or "cc", form)))
    assert(pipe:read "a" == wanted(func):bytes(), form)
    pipe:close()
  end
  assert(#want == M * N and os.execute("rm -r " .. folder))
end
