-- Vectors over one number are the quotients that a division gives, bit by bit, whatever the numbers: in bounds, where a
-- step would overflow or vanish, zeros of both signs, subnormal numbers, infinities, numbers that are none.
-- usage: quotients.lua FOLDER
local ms = require "msched"
local te = ms.te

local ROWS, COLUMNS = 64, 256
local shape = {ROWS, COLUMNS}
local A, B = te.placeholder(shape, "float32", "A"), te.placeholder({ROWS}, "float32", "B")
local func = te.func("divide", {A, B, te.compute(shape, function(i, j) return A[{i, j}] / B[i] end, "C")})

local function built(target, load, lanes)
  local sch = ms.schedule(func)
  local _, columns = sch:get_loops(sch:get_sblock "C")
  local _, inner = sch:split(columns, {ms.rest, lanes})
  sch:vectorize(inner)
  return ms.build(sch:func(), {target = target, load = load})
end

-- Registers of 512 bits divide by a reciprocal, and by a division what is out of bounds; narrower ones divide.
local function counts(target, lanes)
  local path = arg[1] .. "/quotients.s"
  built(target, false, lanes):export(path)
  local file <close> = assert(io.open(path))
  local text = file:read "a"
  os.remove(path)
  local function count(word) return select(2, text:gsub(word, "")) end
  return count "\tvdivps", count "\tvfn?madd"
end
local divided, fused = counts("llvm -mcpu=x86-64-v4 -num-cores=1", 16)
assert(divided > 0 and fused == 4 * divided, divided .. " divisions, " .. fused)
assert(select(2, counts("llvm -mcpu=x86-64-v3 -num-cores=1", 8)) == 0)

local plain, wide = built("native -num-cores=1", true, 8), built("native -num-cores=1", true, 16)
local stream = ms.stream(1)

-- Numbers of which bits() gives the words.
local function numbers(extents, bits)
  local parts, count = {}, 1
  for _, n in ipairs(extents) do count = count * n end
  for i = 1, count do parts[i] = string.pack("<I4", bits()) end
  return ms.array(extents, "float32", table.concat(parts))
end

local function agrees(what, numerators, divisors)
  local a, b = numbers(shape, numerators), numbers({ROWS}, divisors)
  local c, d = ms.array(shape, "float32"), ms.array(shape, "float32")
  wide:run(a, b, c)
  plain:run(a, b, d)
  assert(c:bytes() == d:bytes(), what)
end

-- Any mantissa and sign, with an exponent of 2 between two.
local function between(low, high)
  return function()
    return stream:below(2) << 31 | (127 + low + stream:below(high - low + 1)) << 23 | stream:below(1 << 23)
  end
end
local function any() return stream:below(1 << 16) << 16 | stream:below(1 << 16) end
local SPECIAL = {0, 0x80000000, 1, 0x80000001, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
                 0x21800000, 0x217fffff, 0x5d800000, 0x5d7fffff, 0x3f800000, 0x3fffffff}
local function special() return SPECIAL[1 + stream:below(#SPECIAL)] end

for round = 1, 8 do
  local what = "round " .. round
  agrees(what .. ", in bounds", between(-60, 59), between(-60, 59))
  agrees(what .. ", of one size", between(0, 0), between(0, 0))
  agrees(what .. ", at the bounds", between(-61, -59), between(58, 60))
  agrees(what .. ", small divisors", between(58, 61), between(-62, -59))
  agrees(what .. ", any", any, any)
  agrees(what .. ", special by any", special, between(-60, 59))
  agrees(what .. ", any by special", between(-60, 59), special)
  agrees(what .. ", special", special, special)
end
print "quotients: ok"
