-- Kernels exported as C text, compiled together and run once: each prints what the interpreter gave.
-- compare{folder=where NAME.c and NAME.h are, names=of the kernels, wanted={output, what it is} of each, flags=of the
-- compiler, run=C text with `static void run(int (*call)(void **, void *))`, which calls a kernel and prints a line}
-- returns how many were compared; 0: there is no C compiler.
return function(of)
  if not os.execute "cc --version >/dev/null 2>&1" then return 0 end
  local calls, includes = {}, {}
  for i, name in ipairs(of.names) do
    includes[i], calls[i] = ('#include "%s.h"\n'):format(name), ("  run(%s);\n"):format(name)
  end
  local file <close> = assert(io.open(of.folder .. "/main.c", "w"))
  file:write("#include <math.h>\n#include <stdio.h>\n", table.concat(includes), of.run, "int main(void) {\n",
             table.concat(calls), "}\n")
  file:close()
  local command = ("cd '%s' && cc -w -Wno-psabi %s -o main main.c f*.c -lm && ./main"):format(of.folder, of.flags)
  local out <close> = io.popen(command)
  for i in ipairs(of.names) do
    local line, wanted = out:read "l", of.wanted[i]
    assert(line == wanted[1], ("%s: %s, C text: %s, interpreted %s"):format(of.names[i], wanted[2], line, wanted[1]))
  end
  return #of.names
end
