-- Floats of 8 bits, E4M3 and E5M2: all 256 patterns to float32, and what float32 rounds to, as the OCP 8-bit Floating
-- Point Specification and PTX's cvt.rn.satfinite say: by the interpreter, LLVM, of vectors and of one, and C text. What
-- is copied keeps its bits; arithmetic rounds and saturates; arrays, random numbers, TVMScript, limits.
-- usage: float8.lua [--no-compilers]: the C text is written, and not compiled
local ms = msched
local te = ms.te
local own = dofile(arg[0]:match "^.*/" .. "../../support/lua/folder.lua")
local folder = own.path

local nan, inf = 0 / 0, math.huge
local has_c = arg[1] ~= "--no-compilers" and os.execute "cc --version >/dev/null 2>&1"
local FORMATS = {
  float8_e4m3fn = {mantissa = 3, bias = 7, largest = 448.0, nans = {[0x7f] = true}},
  float8_e5m2 = {mantissa = 2, bias = 15, largest = 57344.0, nans = {[0x7d] = true, [0x7e] = true, [0x7f] = true},
                 infinite = 0x7c},
}

-- What a pattern stands for, by the specification's formula.
local function value_of(f, bits)
  local size, sign = bits & 0x7f, bits >= 0x80 and -1.0 or 1.0
  if f.nans[size] then return nan end
  if size == f.infinite then return sign * inf end
  local exponent, fraction = size >> f.mantissa, (size & (1 << f.mantissa) - 1) / (1 << f.mantissa)
  if exponent == 0 then return sign * fraction * 2.0 ^ (1 - f.bias) end
  return sign * (1 + fraction) * 2.0 ^ (exponent - f.bias)
end

-- The pattern nearest to a number, ties to the even one; what is beyond the largest is the largest.
local function pattern_of(f, x)
  if x ~= x then return nil end -- any NaN
  local sign, size, best, least = (x < 0 or 1 / x < 0) and 0x80 or 0, math.abs(x), nil, inf
  if size >= f.largest then size = f.largest end
  for bits = 0, 0x7f do
    local y = value_of(f, bits)
    if y == y and y ~= inf then
      local off = math.abs(y - size)
      if off < least or off == least and bits % 2 == 0 then best, least = bits, off end
    end
  end
  return sign | best
end

local function same(a, b) return a ~= a and b ~= b or a == b and 1 / a == 1 / b end

local all = {}
for bits = 0, 255 do all[bits + 1] = string.char(bits) end
all = table.concat(all)

local function converts(from, to, n)
  local X = te.placeholder({n}, from, "X")
  return te.func("converts", {X, te.compute({n}, function(i) return te.cast(X[i], to) end, "Y")})
end

-- C text, f.c, called by a program of its own: reads `bytes` from stdin, calls the function, writes the result.
local function by_c(kernel, input, output_bytes)
  local function write(name, text)
    local file = assert(io.open(folder .. "/" .. name, "wb"))
    file:write(text)
    file:close()
  end
  write("in", input)
  write("main.c", string.format([[
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int32_t f(void **args, void *workspace);
int main(void) {
  static char in[%d], out[%d];
  if (fread(in, 1, sizeof in, stdin) != sizeof in) return 1;
  void *args[] = {in, out};
  if (f(args, malloc(1 << 20))) return 2;
  return fwrite(out, 1, sizeof out, stdout) != sizeof out;
}
]], #input, output_bytes))
  local command = "cd %s && cc -O1 -w -Wno-psabi -o f main.c f.c -lm && ./f < in > out"
  assert(os.execute(command:format(folder)), "the C text")
  local file = assert(io.open(folder .. "/out", "rb"))
  local text = file:read "a"
  file:close()
  return text
end

-- What each way makes of the input: {what it is called, its result}.
local function ways_of(func, input_type, input, n, output_type)
  local results = {}
  local function collect(what, run)
    local X, Y = ms.array({n}, input_type, input), ms.array({n}, output_type)
    run(X, Y)
    results[#results + 1] = {what, Y}
  end
  collect("interpreted", function(X, Y) ms.interpret(func, X, Y) end)
  for _, lanes in ipairs {1, 8, 16} do
    local sch = ms.schedule(func)
    if lanes > 1 then
      local _, inner = sch:split(({sch:get_loops(sch:get_sblock "Y")})[1], {ms.rest, lanes})
      sch:vectorize(inner)
    end
    local kernel = ms.build(sch:func())
    collect("LLVM, lanes " .. lanes, function(X, Y) kernel:run(X, Y) end)
    if lanes ~= 8 then kernel:export(folder .. "/f.c", "f") end
    if has_c and lanes ~= 8 then
      local text = by_c(kernel, ms.array({n}, input_type, input):bytes(), #ms.array({n}, output_type):bytes())
      results[#results + 1] = {"C text, lanes " .. lanes, ms.array({n}, output_type, text)}
    end
  end
  return results
end

-- Numbers that rounding could get wrong: each pattern's, those halfway to the next and one float32 beside, beyond both
-- ends, zeros, NaN.
local function float32(x) return (string.unpack("<f", string.pack("<f", x))) end
local function hard_numbers(f)
  local list = {0.0, -0.0, nan, inf, -inf, 1e-30, -1e-30, 3e38, -3e38, 1e-45, 463.9, 464.0, 464.1, 480.0, 61439.0,
                61440.0, 61441.0, 65536.0}
  for bits = 0, 0x7e do
    local x, y = value_of(f, bits), value_of(f, bits + 1)
    if x == x and x ~= inf then
      local middle = y == y and y ~= inf and (x + y) / 2 or x * 1.0625
      for _, z in ipairs {x, middle, middle * (1 + 2.0 ^ -23), middle * (1 - 2.0 ^ -23)} do
        list[#list + 1], list[#list + 2] = float32(z), -float32(z)
      end
    end
  end
  while #list % 16 ~= 0 do list[#list + 1] = 1.0 end
  return list
end

for type, f in pairs(FORMATS) do
  -- All patterns to float32, and back to their own bits.
  for _, way in ipairs(ways_of(converts(type, "float32", 256), type, all, 256, "float32")) do
    for bits, x in ipairs(way[2]:tolist()) do
      assert(same(x, value_of(f, bits - 1)), string.format("%s, %s: %02x is %g", way[1], type, bits - 1, x))
    end
  end
  for _, way in ipairs(ways_of(converts(type, type, 256), type, all, 256, type)) do
    for at, x in ipairs(way[2]:tolist()) do
      assert(same(x, value_of(f, at - 1)), string.format("%s, %s: %02x is copied as %g", way[1], type, at - 1, x))
    end
  end
  -- Numbers to patterns.
  local numbers = hard_numbers(f)
  for _, from in ipairs {"float32", "float64"} do
    for _, way in ipairs(ways_of(converts(from, type, #numbers), from, numbers, #numbers, type)) do
      local bytes = way[2]:bytes()
      for at, x in ipairs(numbers) do
        local wanted, got = pattern_of(f, x), bytes:byte(at)
        assert(wanted == got or not wanted and f.nans[got & 0x7f],
               string.format("%s, %s to %s: %.9g is %02x, not %02x", way[1], from, type, x, got, wanted or 0x7f))
      end
    end
  end
  -- A float64 between two float32 is rounded once.
  local tie = f.mantissa == 3 and 1.0625 or 1.125
  local between = {tie + 2.0 ^ -40, tie - 2.0 ^ -40, tie}
  while #between < 16 do between[#between + 1] = -1.0 end
  for _, way in ipairs(ways_of(converts("float64", type, 16), "float64", between, 16, type)) do
    local got = way[2]:tolist()
    assert(got[1] > tie and got[2] == 1 and got[3] == 1, way[1] .. ": a number is rounded twice")
  end
  -- Integers saturate, too; floats of 16 bits of any pattern.
  local integers = {0, 1, -1, 17, 18, 19, -27, 448, 449, 464, 465, 1000, -1000, 1 << 24, (1 << 24) + 1, -(1 << 31)}
  for _, way in ipairs(ways_of(converts("int32", type, 16), "int32", integers, 16, type)) do
    for at, x in ipairs(integers) do
      local wanted = pattern_of(f, x + 0.0)
      if x == 0 then wanted = 0 end
      assert(way[2]:bytes():byte(at) == wanted, string.format("%s, %s: %d", way[1], type, x))
    end
  end
  for _, short in ipairs {"float16", "bfloat16"} do
    local patterns = {}
    for bits = 0, 0xffff, 7 do patterns[#patterns + 1] = string.pack("<I2", bits) end
    while #patterns % 16 ~= 0 do patterns[#patterns + 1] = "\0\0" end
    local input = table.concat(patterns)
    local values = ms.array({#patterns}, short, input):tolist()
    for _, way in ipairs(ways_of(converts(short, type, #patterns), short, input, #patterns, type)) do
      local bytes = way[2]:bytes()
      for at = 1, #values, 37 do
        local wanted, got = pattern_of(f, values[at]), bytes:byte(at)
        assert(wanted == got or not wanted and f.nans[got & 0x7f],
               string.format("%s, %s to %s: %g is %02x", way[1], short, type, values[at], got))
      end
    end
  end
  -- To bool and integers.
  for _, way in ipairs(ways_of(converts(type, "int8", 256), type, all, 256, "int8")) do
    for at, x in ipairs(way[2]:tolist()) do
      local y = value_of(f, at - 1)
      local whole = y < 0 and math.ceil(math.max(y, -1e6)) or math.floor(math.min(y, 1e6))
      local wanted = y ~= y and 0 or math.max(-128, math.min(127, whole))
      assert(x == wanted, string.format("%s, %s to int8: %02x is %d", way[1], type, at - 1, x))
    end
  end
end

-- Arithmetic is computed in float32 and rounded: as each pair of numbers says.
for type, f in pairs(FORMATS) do
  local A, B = te.placeholder({256, 16}, type, "A"), te.placeholder({256, 16}, type, "B")
  local forms = {
    {"sum", function(x, y) return x + y end}, {"product", function(x, y) return x * y end},
    {"difference", function(x, y) return x - y end}, {"quotient", function(x, y) return x / y end},
  }
  local a, b = {}, {}
  for i = 0, 255 do
    for j = 0, 15 do a[#a + 1], b[#b + 1] = string.char(i), string.char((i * 7 + j * 19) & 0xff) end
  end
  for _, form in ipairs(forms) do
    local func = te.func(form[1], {A, B, te.compute({256, 16}, function(i, j)
      return form[2](A[{i, j}], B[{i, j}])
    end, "Y")})
    local sch = ms.schedule(func)
    sch:vectorize(({sch:get_loops(sch:get_sblock "Y")})[2])
    for _, run in ipairs {function(...) ms.interpret(func, ...) end, function(...) ms.build(func):run(...) end,
                          function(...) ms.build(sch:func()):run(...) end} do
      local X, Y, Z = ms.array({256, 16}, type, table.concat(a)), ms.array({256, 16}, type, table.concat(b)),
        ms.array({256, 16}, type)
      run(X, Y, Z)
      local bytes, x, y = Z:bytes(), X:tolist(), Y:tolist()
      for i = 1, #x, 5 do
        local exact = form[2](x[i], y[i])
        local wanted = pattern_of(f, exact)
        assert(wanted == bytes:byte(i) or not wanted and f.nans[bytes:byte(i) & 0x7f],
               string.format("%s of %s: %g and %g give %02x", form[1], type, x[i], y[i], bytes:byte(i)))
      end
    end
  end
end

-- Arrays, limits, TVMScript by both names.
local array = ms.array({4}, "float8_e4m3fn", {1.3, -0.001, 1e9, nan})
local list = array:tolist()
assert(list[1] == 1.25 and list[2] == -0.001953125 and list[3] == 448 and list[4] ~= list[4])
assert(ms.array({2}, "float8_e5m2", {inf, 1e9}):bytes() == "\x7c\x7b")
assert(ms.array({3}, "e5m2_float8"):type() == "float8_e5m2")
local random = ms.array({64}, "float8_e5m2"):random(3)
for _, x in ipairs(random:tolist()) do assert(x == math.floor(x) and math.abs(x) <= 4) end
local older = ms.from_script [[
@T.prim_func(s_tir=True)
def main(X: T.Buffer((4,), "e4m3_float8"), Y: T.Buffer((4,), "float8_e5m2")):
    for i in range(4):
        with T.sblock("Y"):
            v = T.axis.spatial(4, i)
            Y[v] = T.Cast("float8_e5m2", T.max(X[v], T.float8_e4m3fn(-2.0)))
]]
local script = older:script()
assert(script:find('X: T.Buffer((4,), "float8_e4m3fn")', 1, true)
       and script:find("T.float8_e4m3fn(-2.0)", 1, true), script)
assert(ms.from_script(script):hash() == older:hash())
local X, Y = ms.array({4}, "float8_e4m3fn", {-448, 9, 0.3, 2}), ms.array({4}, "float8_e5m2")
ms.build(older):run(X, Y)
local got = Y:tolist()
assert(got[1] == -2 and got[2] == 8 and got[3] == 0.3125 and got[4] == 2)
local R = te.placeholder({8, 16}, "float8_e5m2", "R")
local k = te.reduce_axis(16, "k")
local most = te.func("most", {R, te.compute({8}, function(i) return te.max(R[{i, k}], k) end, "M")})
assert(most:script():find("T.float8_e5m2(-57344", 1, true), most:script())
local ok, why = pcall(te.cast, X, 3)
assert(not ok and why)
own.run("rm -rf %s", folder)
print "float8: ok"
