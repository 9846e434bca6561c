-- Kernels exported as C text, compiled together and run once: each prints what the interpreter gave.
-- compare{folder=where NAME.c and NAME.h are, names=of the kernels, wanted={output, what it is} of each, flags=of the
-- compiler, compiler=cc, run=C text with `static void run(int (*call)(void **, void *))`, which calls a kernel and
-- prints a line} returns how many were compared; 0: there is no such compiler.
-- Where two lines begin to differ: the number of the word, and the words.
local function difference(line, wanted)
  local words, n = wanted:gmatch "%S+", 0
  for word in (line or "nothing"):gmatch "%S+" do
    local other = words() or "nothing"
    n = n + 1
    if word ~= other then return ("word %d is %s, interpreted %s"):format(n, word, other) end
  end
  return ("%d words of more"):format(n)
end

return function(of)
  local compiler = of.compiler or "cc"
  if not os.execute(compiler .. " --version >/dev/null 2>&1") then return 0 end
  local calls, includes = {}, {}
  for i, name in ipairs(of.names) do
    includes[i], calls[i] = ('#include "%s.h"\n'):format(name), ("  run(%s);\n"):format(name)
  end
  local file <close> = assert(io.open(of.folder .. "/main.c", "w"))
  file:write("#include <math.h>\n#include <stdio.h>\n", table.concat(includes), of.run, "int main(void) {\n",
             table.concat(calls), "}\n")
  file:close()
  local command = ("cd '%s' && %s -w -Wno-psabi %s -o main main.c %s.c -lm && ./main")
    :format(of.folder, compiler, of.flags, table.concat(of.names, ".c "))
  local out <close> = io.popen(command)
  for i in ipairs(of.names) do
    local line, wanted = out:read "l", of.wanted[i]
    if line ~= wanted[1] then
      error(("%s: %s, C text by %s: %s"):format(of.names[i], wanted[2], compiler, difference(line, wanted[1])))
    end
  end
  return #of.names
end
