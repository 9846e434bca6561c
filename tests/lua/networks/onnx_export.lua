-- Networks as libraries: two in one process, ten threads each with its own memory, or with networks of its own, a child
-- of a fork; what they give is what the plan gives; constants that are damaged, cut, or of another network are refused,
-- and indices out of their range.
local ms = msched
local here = arg[0]:match "^(.*)/lua/[^/]*/[^/]*$"
dofile(here .. "/support/lua/few_proposals.lua")
local onnx = dofile(here .. "/support/lua/onnx.lua")
local own = dofile(here .. "/support/lua/folder.lua")
local folder, run, put, get = own.path, own.run, own.put, own.get
local function read(m)
  put("model.onnx", onnx.model(m))
  return ms.onnx(folder .. "/model.onnx")
end
local weights = onnx.weights

-- A convolution with what is around it; and products, of which a part of the result is another shape of the first.
local one = read {opset = 17, inputs = {{"x", "float32", {1, 3, 18, 18}}}, outputs = {{"y"}},
                  constants = {w = weights({16, 3, 3, 3}, 1), b = weights({16}, 2), v = weights({8, 16, 1, 1}, 3)},
                  nodes = {{"Conv", {"x", "w", "b"}, {"c"}, {pads = {1, 1, 1, 1}}}, {"Relu", {"c"}, {"r"}},
                           {"MaxPool", {"r"}, {"p"}, {kernel_shape = {2, 2}, strides = {2, 2}}},
                           {"Conv", {"p", "v"}, {"d"}}, {"Sigmoid", {"d"}, {"y"}}}}
local two =
  read {opset = 17, inputs = {{"x", "float32", {32, 64}}}, outputs = {{"y"}}, constants = {w = weights({64, 64}, 4),
        s = {"int64", {3}, {4, 8, 64}}}, nodes = {{"MatMul", {"x", "w"}, {"m"}}, {"Tanh", {"m"}, {"t"}},
                                                  {"MatMul", {"t", "w"}, {"n"}}, {"Reshape", {"n", "s"}, {"y"}}}}

local plans = ms.load "lua.net.plan"
local function export(net, name, plan)
  local x = ms.array(net.inputs[1].shape):random(7, true)
  put(name .. ".x", x:bytes())
  local y = plan:run({x = x}).y:bytes()
  local paths = plan:export(folder .. "/lib" .. name .. ".so")
  assert(#paths == 4 and paths[2] == folder .. "/" .. name .. ".h"
         and paths[4] == folder .. "/" .. name .. "_network.py")
  assert(#get(name .. ".weights") == 64 + plan.constant_bytes)
  return y
end

-- The kernel of a function that reads a constant of a product in columns of eight.
local function in_eights(entry, target)
  local sch = ms.schedule(entry.func)
  for _, name in ipairs(sch:block_names()) do
    local block = sch:get_sblock(name)
    for i, r in ipairs(name ~= sch:root_block() and sch:reads(block) or {}) do
      if r.buffer == "x2" then
        sch:cache_read(block, i - 1, "global")
        sch:transform_layout(block, "lambda i, j: (j // 8, i, j % 8)", i - 1, 0)
        break
      end
    end
  end
  return plans.build(sch:func(), {target = target})
end

local plan1 = one:plan {no_tune = true, db = folder .. "/store.db"}
local y1 = export(one, "one", plan1)
local written = two:plan {written = true}
local plan2 = plans.open(plans.prepare(two), in_eights)
local y2 = export(two, "two", plan2)

-- Constants of products are as kernels read them, in the file too, and not as they were.
local packed = 0
for _, each in ipairs(plan2.calls) do
  for _, argument in ipairs(each.arguments) do
    assert(argument ~= "w", "it is taken as it was")
    if type(argument) == "table" then packed = packed + 1 end
  end
end
assert(packed == 2 and plan2.packed_count == 2, packed)
assert(plan2.constant_bytes == 2 * written.constant_bytes, "two functions, each with a layout of its own")

local bytes = get "one.weights"
put("damaged", bytes:sub(1, -2) .. string.char(bytes:byte(-1) ~ 1))
put("cut", bytes:sub(1, -65))
run("mkfifo %s/pipe", folder) -- nobody writes to it, and nobody waits for it
run("cc -o %s/networks -I%s %s/lua/networks/networks.c -L%s -lone -ltwo -lpthread", folder, folder, here, folder)
run("LD_LIBRARY_PATH=%s %s/networks %s >%s/said", folder, folder, folder, folder)
assert(get "said" == [[
opened
these are the constants of another network
the file of constants is damaged
the file of constants is damaged
this is no file of constants
the file of constants cannot be opened
the file of constants cannot be mapped
no file of constants is named
equal
]], get "said")
assert(get "one.y" == y1 and get "two.y" == y2, "a library gives something else than its plan")

-- Nothing but the C library is needed: they give the same in a root that holds no other file, where one may be made.
run("LD_LIBRARY_PATH=%s ldd %s/networks >%s/needs", folder, folder, folder)
for name in get("needs"):gmatch "[^%s/]+%.so[%.%d]*" do
  local is_c = name:find "^lib[cm]%." or name:find "^ld%-" or name:find "^linux%-" or name:find "^libpthread%."
  assert(is_c or name == "libone.so" or name == "libtwo.so", name .. " is needed")
end
run("rm %s/one.y %s/two.y && mkdir %s/bare && cp --parents -L $(grep -o '/[^ ]*' %s/needs) %s/bare", folder, folder,
    folder, folder, folder)
run("cd %s && cp --parents networks one.* two.* damaged cut bare && mkfifo bare/pipe", folder)
local enter = os.execute("chroot / true 2>/dev/null") and "chroot"
              or os.execute "unshare -r chroot / true 2>/dev/null" and "unshare -r chroot"
if enter then
  run("LD_LIBRARY_PATH=%s %s %s/bare /networks / >%s/bare/said", folder, enter, folder, folder)
  assert(get "bare/said" == get "said" and get "bare/one.y" == y1 and get "bare/two.y" == y2)
else
  print "no root may be entered here: the library ran beside all packages"
end

-- An archive, which takes OpenMP's threads.
local paths = plan1:export(folder .. "/one.a")
assert(#paths == 3
       and select(2, pcall(plan1.export, plan1, folder .. "/one.exe")):find("ends with .so, .a, .c or .tar", 1, true))
put("main.c", '#include "one.h"\nint main(void) { return one_open(NULL, 0) != 0; }\n')
run("cc -o %s/archive %s/main.c %s/one.a -lgomp -lm -lpthread && %s/archive", folder, folder, folder, folder)

-- Source, in an archive, built here: helpers that kernels share stand once.
assert(#plan1:export(folder .. "/one.tar") == 1)
put("build.c", [[
#include "one.h"
#include <stdio.h>
int main(int argc, char **argv) {
  static float x[3 * 18 * 18], y[8 * 9 * 9];
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  struct one *net = one_open(argv[3], 0);
  if (!net || !in || !out || !fread(x, sizeof x, 1, in) || one_run(net, (const void *[]){x}, (void *[]){y}, 0)) return 1;
  one_close(net);
  return !fwrite(y, sizeof y, 1, out) || fclose(out);
}
]])
run("mkdir %s/moved && tar -C %s/moved -xf %s/one.tar", folder, folder, folder)
for _, name in ipairs {"Makefile", "one.c", "one.h", "one.weights", "one_network.py"} do
  assert(#get("moved/one/" .. name) > 0)
end
run("cc -O1 -march=native -fopenmp -std=gnu11 -I%s/moved/one -o %s/built %s/build.c %s/moved/one/one.c -lm", folder,
    folder, folder, folder)
run("%s/built %s/one.x %s/built.y %s/moved/one/one.weights", folder, folder, folder, folder)
local function floats(text) return ms.array({8, 9, 9}, "float32", text) end
assert(floats(get "built.y"):difference(floats(y1)) <= 1e-5, "built of source it gives something else")
assert(#plan1:export(folder .. "/one.c") == 3)
local join = ms.load "lua.net.export.sources".join
local helper = "MS_HELPER int h(int x) {\n  return x;\n}\n"
local joined = join {{symbol = "a", text = helper .. "static void body(void) {\n}\nvoid a(void) { body(); }\n"},
                     {symbol = "b", text = helper .. "static void body(void) {\n}\nvoid b(void) { body(); }\n"},
                     {symbol = "c", text = helper:gsub("x;", "-x;") .. "static __attribute__((noinline)) void p(int \z
                      x) {\n  h(x);\n}\nvoid c(void) { p(1); }\n"}}
assert(select(2, joined:gsub("int h%(int x%)", "")) == 1 and joined:find("a_body();", 1, true)
       and joined:find("b_body();", 1, true) and joined:find("int c_h(int x)", 1, true)
       and joined:find("void c_p(int x) {\n  c_h(x);", 1, true), joined)

-- For a CPU that has more than this one, whatever this one is, it is not opened, and says why; source not where its
-- compiler may use what the CPU has not.
local MORE = "llvm -mcpu=x86-64-v3 -mattr=+xop,+avx512fp16 -num-cores=3"
if #ms.cpu_features "native" > 0 then
  local more = two:plan {written = true, target = MORE}
  plan2:export(folder .. "/more.c")
  more:export(folder .. "/more.a")
  more:export(folder .. "/libmore.so")
  local header = get "more.h"
  assert(header:find("made by msched for " .. ms.target(MORE).text .. ".", 1, true)
         and header:find("#define more_THREADS 3 ", 1, true), header)
  put("opens.c", [[
#include "more.h"
#include <stdio.h>
int main(void) {
  const char *why = "";
  struct more *net = more_open("more.weights", &why);
  return puts(why) < 0 || net || more_open("more.weights", NULL);
}
]])
  for form, command in pairs {so = "cc -o %s/opens %s/opens.c %s/libmore.so",
                              a = "cc -o %s/opens %s/opens.c %s/more.a -lgomp -lm -lpthread",
                              c = "cc -D__XOP__ -D__AVX512FP16__ -w -o %s/opens %s/opens.c %s/more.c -lm"} do
    run("cd %s && " .. command .. " && LD_LIBRARY_PATH=%s ./opens >said", folder, folder, folder, folder, folder)
    local said = get "said"
    local by = form == "c" and "this library was compiled to use" or "code for " .. ms.target(MORE).text
    assert(said:find("^this machine has no [%w.]+, which " .. by:gsub("%p", "%%%0")), said)
  end
  for _, feature in ipairs(ms.cpu_features(MORE)) do assert(not feature.name:find "amx") end
end

-- For another machine: constants are packed here as kernels there read them; nothing is run. The source is C that this
-- machine has too.
local ARM = "llvm -mtriple=aarch64-linux-gnu"
if pcall(ms.target, ARM) then
  local arm = plans.open(plans.prepare(two, {target = ARM}), function(entry) return in_eights(entry, ARM) end, ARM)
  assert(arm.packed_count == 2)
  assert(select(2, pcall(arm.run, arm, {x = ms.array {32, 64}})):find("does not run on this machine", 1, true))
  arm:export(folder .. "/two.tar")
  run("tar -C %s/moved -xf %s/two.tar && make -s -C %s/moved/two CFLAGS=-O1", folder, folder, folder)
  put("moved.c", [[
#include "two.h"
#include <stdio.h>
int main(int argc, char **argv) {
  static float x[32 * 64], y[4 * 8 * 64];
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  struct two *net = two_open(argv[3], 0);
  if (!net || !in || !out || !fread(x, sizeof x, 1, in) || two_run(net, (const void *[]){x}, (void *[]){y}, 0)) return 1;
  return !fwrite(y, sizeof y, 1, out) || fclose(out);
}
]])
  run("cc -o %s/moved_two -I%s/moved/two %s/moved.c %s/moved/two/two.so", folder, folder, folder, folder)
  run("%s/moved_two %s/two.x %s/moved.y %s/moved/two/two.weights", folder, folder, folder, folder)
  local function products(text) return ms.array({4, 8, 64}, "float32", text) end
  assert(products(get "moved.y"):difference(products(y2)) <= 1e-5, "source for another machine gives something else")
  run("cc -dumpmachine >%s/machine", folder)
  if not get("machine"):find "^aarch64" then
    local ok, message = pcall(arm.export, arm, folder .. "/libarm.so")
    assert(not ok and message:find("the kernels are for aarch64, and the compiler makes code for ", 1, true), message)
  end
end

-- Indices are looked at before they are used.
local gather = read {opset = 17, nodes = {{"Gather", {"w", "x"}, {"y"}}}, inputs = {{"x", "int64", {2}}},
                     outputs = {{"y"}}, constants = {w = weights({3, 2}, 5)}}
gather:plan({written = true}):export(folder .. "/libpick.so")
put("pick.c", [[
#include "pick.h"
int main(int argc, char **argv) {
  float y[4];
  struct pick *net = pick_open(argv[1], 0);
  if (!net || pick_run(net, (const void *[]){(int64_t[]){2, -3}}, (void *[]){y}, 0) != 0) return 1;
  return pick_run(net, (const void *[]){(int64_t[]){0, 3}}, (void *[]){y}, 0) != 3;
}
]])
run("cc -o %s/pick -I%s %s/pick.c -L%s -lpick && LD_LIBRARY_PATH=%s %s/pick %s/pick.weights", folder, folder, folder,
    folder, folder, folder, folder)

-- So are elements of four bits, and coordinates that are not finite.
read {opset = 21, inputs = {{"q", "int4", {2}}, {"r", "float32", {1, 4}}}, outputs = {{"d"}, {"y"}},
      constants = {s = {"float32", {}, {0.5}}, X = weights({1, 1, 2, 2}, 5), b = {"int64", {1}, {0}}},
      nodes = {{"DequantizeLinear", {"q", "s"}, {"d"}}, {"RoiAlign", {"X", "r", "b"}, {"y"}, {sampling_ratio = 1}}}}
  :plan({written = true}):export(folder .. "/libheld.so")
put("held.c", [[
#include "held.h"
#include <math.h>
static float d[2], y[1];
static struct held *net;
static int asked(int a, int b, float x0, float x1) {
  return held_run(net, (const void *[]){(int8_t[]){a, b}, (float[]){x0, 0, x1, 1}}, (void *[]){d, y}, 0);
}
int main(int argc, char **argv) {
  net = held_open(argv[1], 0);
  if (!net || asked(7, -8, 0, 1) != 0 || d[0] != 3.5f || d[1] != -4) return 1;
  if (asked(8, 0, 0, 1) != 3 || asked(0, -9, 0, 1) != 3 || asked(0, 127, 0, 1) != 3) return 2;
  return asked(0, 0, NAN, 1) != 3 || asked(0, 0, 0, INFINITY) != 3 || asked(0, 0, -INFINITY, 1) != 3;
}
]])
run("cc -o %s/held -I%s %s/held.c -L%s -lheld && LD_LIBRARY_PATH=%s %s/held %s/held.weights", folder, folder, folder,
    folder, folder, folder, folder)

-- Names that would end a comment of C, or begin another in it, constants without elements, pointers that are NULL, a
-- workspace that is not aligned, and what no function of C can be called.
local NAME = "*/ x/*/\\\n/"
local odd = read {opset = 17, nodes = {{"Concat", {NAME, "none"}, {"y"}, {axis = 0}}}, outputs = {{"y"}},
                  inputs = {{NAME, "float32", {2}}}, constants = {none = {"float32", {0}, {}}}}
odd = odd:plan {written = true}
odd:export(folder .. "/libodd.so")
put("odd.c", [[
#include "odd.h"
int main(int argc, char **argv) {
  float y[2];
  struct odd *net = odd_open(argv[1], 0);
  const void *x[] = {(float[]){1, 2}}, *none[] = {NULL};
  char room[odd_WORKSPACE + 64] __attribute__((aligned(64)));
  if (odd_run(NULL, x, (void *[]){y}, 0) != 5 || odd_run(net, NULL, (void *[]){y}, 0) != 5 || odd_run(net, none, (void *[]){y}, 0) != 5) return 2;
  if (odd_run(net, x, NULL, 0) != 5 || odd_run(net, x, (void *[]){NULL}, 0) != 5 || odd_run(net, x, (void *[]){y}, room + 8) != 5) return 3;
  return !net || odd_run(net, (const void *[]){(float[]){1, 2}}, (void *[]){y}, 0) || y[0] != 1 || y[1] != 2;
}
]])
run("cc -Wall -Werror -o %s/odd -I%s %s/odd.c -L%s -lodd && LD_LIBRARY_PATH=%s %s/odd %s/odd.weights", folder, folder,
    folder, folder, folder, folder, folder)
for name, whole in pairs {int = "int", static_assert = "static_assert", size_t = "size_t", stat = "stat",
                          sem = "sem_open", mq = "mq_open", shm = "shm_open"} do
  for _, form in ipairs {"so", "a", "c", "tar"} do
    local ok, message = pcall(odd.export, odd, folder .. "/" .. name .. "." .. form)
    assert(not ok and tostring(message):find("cannot be called `" .. whole .. "`", 1, true), tostring(message))
  end
end

run("rm -rf %s", folder)
print "networks are libraries"
