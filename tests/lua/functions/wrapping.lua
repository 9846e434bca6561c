-- Integers of data wrap around in their type, whatever computes them: the interpreter, LLVM, of vectors or not, and the
-- C text; whether their value is stored at once, bound to a name, divided, compared or an index.
local ms = require "msched"
local folder = os.tmpname()
os.remove(folder)
assert(os.execute("mkdir " .. folder))
local scratch <close> = setmetatable({}, {__close = function() os.execute("rm -rf " .. folder) end})

local head = [[
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(X: T.Buffer((12,), "TYPE"), Y: T.Buffer((12,), "TYPE")):
    for i in range(12):
        with T.sblock("Y"):
            v = T.axis.spatial(12, i)
]]
-- What the name `a` is bound to, or nothing, and what is stored.
local FORMS = {
  {nil, "X[v] * X[v] - X[v]"}, {"X[v] + X[v]", "a"}, {"X[v] + X[v]", "a + a"}, {"X[v] + X[v]", "T.min(a, X[v])"},
  {"X[v] * X[v]", "T.max(a, R(3))"}, {"X[v] - R(1)", "T.Select(a < X[v], R(1), R(2))"},
  {"X[v]", "T.Select(a + a < R(0), R(1), R(2))"},
  {"X[v]", "(a + a) // R(3)"}, {"X[v]", "(a * a) % R(7)"}, {"X[v]", "T.max(a + a, a)"}, {"X[v]", "T.min(a - R(9), a)"},
  {nil, "T.truncdiv(X[v] + X[v], R(3))"}, {nil, "T.min(X[v] - R(9), R(2)) + X[v]"},
  {nil, "T.Select(X[v] + R(1) > X[v], R(1), R(2))"},
  {nil, "X[(X[v] + X[v]) % R(12)]"}, {"X[v] + X[v]", "X[a % R(12)]"}, {"X[v]", "X[(a * R(3) + R(5)) % R(12)]"},
  {nil, "X[T.min(T.max(X[v] * R(5), R(0)), R(11))]"}, {nil, "(X[v] * R(2)) // R(2)"},
  {"X[v]", "(a * R(4) + R(2)) // R(4)"},
  {nil, "T.truncdiv(T.max(X[v], R(0)) * R(100), T.max(X[v], R(1)))"}, {"T.max(X[v], R(1)) + R(127)", "a % R(3)"},
  {nil, "(T.max(X[v], R(1)) + R(127)) // R(3)"}, {nil, "T.Select(T.max(X[v], R(1)) + R(127) > R(0), R(1), R(2))"},
  {nil, 'T.Cast("TYPE", T.Cast("int64", T.max(X[v], R(1)) + R(127)) // T.int64(3))'},
  {nil, 'T.Cast("TYPE", T.Cast("int64", T.Cast("uint8", v) * T.uint8(60)) // T.int64(5))'},
  {nil, 'X[T.Cast("int32", T.Cast("uint8", v) * T.uint8(60)) % 12]'},
  {nil, 'T.Cast("TYPE", T.Cast("int16", T.Cast("uint8", v) - T.uint8(1)) + T.int16(5))'},
}

local programs, wanted, compared = {}, {}, 0
local function text_of(array) return table.concat(array:tolist(), " ") end

local function check(type, form, x)
  local lines = head
  if form[1] then lines = lines .. "            a: T.let[T.TYPE] = " .. form[1] .. "\n" end
  lines = (lines .. "            Y[v] = " .. form[2] .. "\n"):gsub("R(%b())", "T.TYPE%1"):gsub("TYPE", type)
  local what = ("%s of %s, a = %s"):format(form[2], type, form[1] or "none")
  local f, expected, got = ms.from_script(lines), ms.array({12}, type), ms.array({12}, type)
  ms.interpret(f, x, expected)
  local s = ms.schedule(f)
  s:vectorize((select(2, s:split((s:get_loops(s:get_sblock "Y")), {ms.rest, 4}))))
  for kind, g in pairs {scalar = f, vector = s:func()} do
    local kernel = ms.build(g)
    kernel(x, got)
    compared = compared + 1
    assert(text_of(got) == text_of(expected),
           ("%s, %s: %s, interpreted %s"):format(what, kind, text_of(got), text_of(expected)))
    if kind == "scalar" and type == "int32" then
      local name = "f" .. #programs
      kernel:export(folder .. "/" .. name .. ".c", name)
      kernel:export(folder .. "/" .. name .. ".h", name)
      programs[#programs + 1], wanted[#wanted + 1] = name, {text_of(expected), what}
    end
  end
end

for type, bits in pairs {int8 = 8, int32 = 32, int64 = 64, uint16 = 16} do
  local signed = not type:find "^u"
  local top = signed and (1 << bits - 1) - 1 or (1 << bits) - 1
  local low = signed and -top - 1 or 0
  local x =
    ms.array({12}, type, {top, low, top - 1, low + 1, 0, 1, 2, 7, top // 2, top // 2 + 1, top // 3, signed and -1 or 5})
  for _, form in ipairs(FORMS) do check(type, form, x) end
end

-- A boolean is one bit: as bytes it is read by none.
for from, to in pairs {bool = "uint8", int8 = "bool"} do
  local stored = '            Y[v] = T.Cast("int32", T.reinterpret("%s", T.Cast("%s", X[v])))\n'
  local f = ms.from_script(head:gsub("TYPE", "int32") .. stored:format(to, from))
  local x, y = ms.array({12}, "int32"), ms.array({12}, "int32")
  for what, call in pairs {interpret = function() ms.interpret(f, x, y) end, build = function() ms.build(f) end} do
    local ok, said = pcall(call)
    assert(not ok and tostring(said):find("joins types of different size", 1, true), what .. ": " .. tostring(said))
  end
end

-- The C text of all, compiled once.
local run = [[
static void run(int (*call)(void **, void *)) {
  int top = 2147483647;
  int x[12] = {top, -top - 1, top - 1, -top, 0, 1, 2, 7, top / 2, top / 2 + 1, top / 3, -1}, y[12];
  void *args[] = {x, y};
  if (call(args, 0)) printf("failed: ");
  for (int i = 0; i < 12; i++) printf(i < 11 ? "%d " : "%d\n", y[i]);
}
]]
local compare = dofile(debug.getinfo(1, "S").source:sub(2):gsub("[^/]*$", "") .. "../../support/lua/exported_c.lua")
compared = compared + compare{folder = folder, names = programs, wanted = wanted, flags = "-O2", run = run}
print(compared .. " compared")
