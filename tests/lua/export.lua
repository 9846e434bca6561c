-- Exported names: a program compiles and links what was exported, whatever the function and its parameters are called.
local ms = require "msched"
local refuses = dofile(arg[0]:match "^.*/" .. "refuses.lua")

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
    assert(os.execute(build:format(folder, "cc -std=c11", "./" .. names[2] .. suffix)), names[1] .. " in " .. names[2] .. suffix)
  end
end
refuses("suffix", function() ms.schedule(sum "sum"):build():export(folder .. "/kernel.cc") end)
os.execute("rm -r " .. folder)
print "export: ok"
