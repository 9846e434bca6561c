-- How fast the CUDA cores of a GPU do operations of each type beside float32, by its architecture. Float32 is what is
-- measured (peak.lua); the others are these many times as fast, at most.
-- Source: CUDA C++ Programming Guide, "Arithmetic Instructions", table "Throughput of Native Arithmetic Instructions":
-- results a clock of a multiprocessor; its compute capabilities 7.x, 8.0, 8.6, 8.9 and 9.0, of which 8.7 is as 8.6.
local units = {}

-- Results a clock of a multiprocessor: of additions, products or multiply-adds; of float16 and bfloat16 two lie in a
-- register. dot: products of four bytes each, whose sum is added (dp4a).
local PER_CLOCK = {
  [70] = {float64 = 32, float32 = 64, float16 = 128, int32 = 64, dot = 64},
  [72] = {float64 = 32, float32 = 64, float16 = 128, int32 = 64, dot = 64},
  [75] = {float64 = 2, float32 = 64, float16 = 128, int32 = 64, dot = 64},
  [80] = {float64 = 32, float32 = 64, float16 = 256, bfloat16 = 128, int32 = 64, dot = 64},
  [86] = {float64 = 2, float32 = 128, float16 = 128, bfloat16 = 128, int32 = 64, dot = 64},
  [87] = {float64 = 2, float32 = 128, float16 = 128, bfloat16 = 128, int32 = 64, dot = 64},
  [89] = {float64 = 2, float32 = 128, float16 = 128, bfloat16 = 128, int32 = 64, dot = 64},
  [90] = {float64 = 64, float32 = 128, float16 = 256, bfloat16 = 256, int32 = 64, dot = 64},
}

-- What is done in another type: bytes and int16 in int32; a sum of short floats' products as these are cast, in
-- float32; bfloat16 without instructions of its own in float32. An int64 is two int32.
local IN = {int16 = "int32", int8 = "int32", ["float16 products"] = "float32", ["bfloat16 products"] = "float32",
            ["float16 products in float16"] = "float16"}
local PARTS = {int64 = {"int32", 0.5}, ["int8 products"] = {"dot", 4}}

-- The architecture whose entry holds for another: the newest that is not newer.
local function entry_of(arch)
  local newest
  for known in pairs(PER_CLOCK) do if known <= arch and (not newest or known > newest) then newest = known end end
  return PER_CLOCK[newest]
end

-- How many times as many operations of a kind (function:work) as of float32 the CUDA cores do in a second; nil: it is
-- not known. And the type that they do them in.
function units.ratio(arch, kind)
  local entry = entry_of(arch)
  if not entry then return nil end
  local part = PARTS[kind]
  local type, times = IN[kind] or part and part[1] or kind, part and part[2] or 1
  if type == "bfloat16" and not entry.bfloat16 then type = "float32" end
  if not entry[type] then return nil end
  return times * entry[type] / entry.float32, type == "dot" and "int8" or type
end

return units
