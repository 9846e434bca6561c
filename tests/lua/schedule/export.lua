-- Exported names: a program compiles and links what was exported, whatever the function and its parameters are called.
local ms = require "msched"
local refuses = dofile(arg[0]:match "^.*/" .. "../refuses.lua")

local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "w"))
  file:write(text)
  file:close()
end

local function sum(name)
  return ms.from_script(([[
@T.prim_func(s_tir=True)
def NAME(int: T.Buffer((8,), "float32"), args: T.Buffer((8,), "float32"), workspace: T.Buffer((8,), "float32"), p: T.handle):
    for i in range(8):
        with T.sblock("sum"):
            v = T.axis.spatial(8, i)
            T.reads(int[v], args[v])
            T.writes(workspace[v])
            workspace[v] = int[v] + args[v]
]]):gsub("NAME", name))
end

local program = [[
#include "NAME.h"
#include "NAME.h"
int main(void) {
  float a[8], b[8], c[8] = {0};
  for (int i = 0; i < 8; i++) a[i] = (float)i, b[i] = (float)(2 * i);
  if (CALLED_WORKSPACE || CALLED_run(a, b, c, 0, 0)) return 1;
  for (int i = 0; i < 8; i++)
    if (c[i] != (float)(3 * i)) return 2;
  return 0;
}
]]
local build = "cd %s && %s -Wall -Wextra -Werror -Wno-unused-parameter -o use use.c %s -lm && LD_LIBRARY_PATH=. ./use"

-- The function's name, the file's, and what it is exported as.
for _, names in ipairs {{"sum", "kernel", "sum"}, {"main", "kernel", "kernel"}, {"exp", "my-kernel.2", "my_kernel_2"},
                        {"double", "int", "int_kernel"}, {"main", "main", "main_kernel"}} do
  local kernel = ms.schedule(sum(names[1])):build()
  local path = folder .. "/" .. names[2]
  for _, suffix in ipairs {".c", ".o", ".so", ".h"} do kernel:export(path .. suffix) end
  write("use.c", (program:gsub("NAME", names[2]):gsub("CALLED", names[3])))
  for _, suffix in ipairs {".c", ".o", ".so"} do
    assert(os.execute(build:format(folder, "cc -std=c11", "./" .. names[2] .. suffix)),
           names[1] .. " in " .. names[2] .. suffix)
  end
end

-- A library that runs threads, opened, closed and opened again by a program that has none of its own: the threads'
-- library stays where they run.
local reopen = [[
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
int main(void) {
  float a[64], b[64];
  for (int round = 0; round < 10; round++) {
    void *library = dlopen("./threads.so", RTLD_NOW | RTLD_LOCAL);
    int32_t (*run)(void **, void *);
    if (!library) return 1;
    *(void **)&run = dlsym(library, "threads");
    for (int i = 0; i < 64; i++) a[i] = (float)(i + round), b[i] = 0;
    if (!run || run((void *[]){a, b}, NULL)) return 2;
    for (int i = 0; i < 64; i++)
      if (b[i] != a[i] + 1) return 3;
    if (dlclose(library)) return 4;
    usleep(1000);
  }
  return 0;
}
]]
local threads = ms.from_script [[
@T.prim_func(s_tir=True)
def threads(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in T.parallel(8):
        for j in range(8):
            B[i * 8 + j] = A[i * 8 + j] + T.float32(1)
]]
ms.schedule(threads):build {target = "native -num-cores=4"}:export(folder .. "/threads.so")
write("reopen.c", reopen)
assert(os.execute("cd " .. folder .. " && cc -std=gnu11 -Wall -Wextra -Werror -o reopen reopen.c -ldl && ./reopen"))

local function read(name)
  local file <close> = assert(io.open(folder .. "/" .. name))
  return file:read "a"
end

-- Rows of B that lie far apart are fetched ahead, and strips of rows that follow one another; a small B and a short
-- loop are not.
local te = ms.te
local function fetches(rows, depth, columns, vector, target)
  local A = te.placeholder({rows, depth}, "float32", "A")
  local B = te.placeholder({depth, columns}, "float32", "B")
  local sch = ms.schedule(te.func("product", {A, B, ms.ops.matmul(A, B)}))
  local block = sch:get_child_blocks(sch:get_sblock(sch:root_block()))
  local i, j, k = sch:get_loops(block)
  local outer, inner = sch:split(j, {ms.rest, vector})
  local tiles, tile = sch:split(i, {ms.rest, 2})
  sch:reorder {tiles, outer, k, tile, inner}
  sch:vectorize(inner)
  sch:unroll(tile)
  sch:decompose_reduction(block, k)
  assert(sch:build():check() < 1e-4)
  local text_of = target or "llvm -mcpu=x86-64-v4 -num-cores=1"
  ms.build(sch:func(), {target = text_of, load = false}):export(folder .. "/fetched.s")
  local text = read "fetched.s"
  local _, count = text:gsub(text_of:find "aarch64" and "\tprfm\t" or "\tprefetcht0\t", "")
  return count
end
for _, columns in ipairs {16, 32, 64} do
  assert(fetches(4, 256, 512, columns) >= columns // 16, "vectors of " .. columns)
end
for _, columns in ipairs {16, 32, 64} do
  assert(fetches(4, 4096, columns, columns) >= columns // 16, "rows that follow one another")
end
assert(fetches(4, 512, 32, 32) == 0, "a small matrix of such rows")
assert(fetches(4, 48, 512, 32) == 0, "a small matrix")
assert(fetches(4, 24, 2048, 32) == 0, "a short loop")
for _, columns in ipairs {32, 512} do
  assert(fetches(4, 4096, columns, 32, "llvm -mcpu=znver4 -num-cores=1") == 0, "Zen does it by itself")
end
assert(fetches(4, 256, 512, 32, "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1 -num-cores=1") > 0)

-- Of what is read row by row, several times each, the second reader fetches the next row; of one that is read once none
-- does, nor of a small array.
local function next_rows(rows, columns, again, cpu)
  local X, k = te.placeholder({rows, columns}, "float32", "X"), te.reduce_axis(columns, "k")
  local S = te.compute({rows}, function(i) return te.sum(X[{i, k}], k) end, "S")
  local sch = ms.schedule(te.func("rows", {X, te.compute({rows, columns}, function(i, j)
    return (again and X[{i, j}] or te.cast(j, "float32")) * S[i]
  end, "Y")}))
  local row, column = sch:get_loops(sch:get_sblock "Y")
  sch:compute_at(sch:get_sblock "S", row)
  local _, lanes = sch:split(column, {ms.rest, 16})
  sch:vectorize(lanes)
  assert(sch:build():check() < 1e-4)
  local text_of = string.format("llvm -mcpu=%s -num-cores=1", cpu or "x86-64-v4")
  ms.build(sch:func(), {target = text_of, load = false}):export(folder .. "/rows.s")
  local _, count = read "rows.s":gsub(string.format("\tprefetcht0\t%d%%(", columns * 4), "")
  return count
end
assert(next_rows(512, 1024, true) > 0 and next_rows(512, 1024, true, "znver5") > 0)
assert(next_rows(512, 1024, false) == 0, "read once")
assert(next_rows(16, 1024, true) == 0, "a small array")

-- A sum that reads rows again fetches the next one, too: of the schedule that the analytical model ranks first.
local function sums(rows)
  local X, k, q = te.placeholder({rows, 2048}, "float32", "X"), te.reduce_axis(2048, "k"), te.reduce_axis(2048, "q")
  local M = te.compute({rows}, function(i) return te.max(X[{i, k}], k) end, "M")
  local S = te.compute({rows}, function(i) return te.sum(te.exp(X[{i, q}] - M[{i}]), q) end, "S")
  local target = "llvm -mcpu=znver4 -num-cores=1"
  local sch = ms.auto_schedule(te.func("sums", {X, S}), {target = target})
  ms.build(sch:func(), {target = target, load = false}):export(folder .. "/sums.s")
  local text = read "sums.s"
  local _, next_row = text:gsub("\tprefetcht0\t8[12]%d%d%(", "")
  return next_row, select(2, text:gsub("\tprefetcht0\t", ""))
end
local next_row, all = sums(1024)
assert(next_row > 0 and all > next_row, "the first sum streams")
assert(sums(64) == 0, "a small array")

-- What a sum reads once is fetched ahead, on Zen too; what it reads again is not, nor is what goes from one array to
-- another.
local function streams(rows, strips, sums)
  local A = te.placeholder({rows, 512}, "float32", "A")
  local B = te.placeholder({strips, 512, 16}, "float32", "B")
  local k = te.reduce_axis(512, "k")
  local product = te.compute({strips, rows, 16}, function(s, i, j) return te.sum(A[{i, k}] * B[{s, k, j}], k) end, "C")
  local copy = te.compute({strips, 512, 16}, function(s, l, j) return A[{0, l}] * B[{s, l, j}] end, "C")
  local sch = ms.schedule(te.func("streams", {A, B, sums and product or copy}))
  local block = sch:get_sblock "C"
  local loops = {sch:get_loops(block)}
  if sums then sch:reorder {loops[4], loops[3]} end
  sch:vectorize(loops[3])
  if sums then sch:decompose_reduction(block, loops[4]) end
  assert(sch:build():check() < 1e-3)
  ms.build(sch:func(), {target = "llvm -mcpu=znver4 -num-cores=1", load = false}):export(folder .. "/streams.s")
  local _, count = read "streams.s":gsub("\tprefetcht0\t", "")
  return count
end
assert(streams(1, 256, true) > 0)
assert(streams(2, 256, true) == 0, "read again")
assert(streams(1, 100, true) == 0, "a small array")
assert(streams(1, 256, false) == 0, "no sum")

refuses("suffix", function() ms.schedule(sum "sum"):build():export(folder .. "/kernel.cc") end)
os.execute("rm -r " .. folder)
print "export: ok"
