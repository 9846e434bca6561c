-- Types of elements: all that Lua's files know of one. digits: binary digits of numbers that are exact, without signs
-- (of floats with the hidden one: IEEE 754-2019, table 3.5; bfloat16 is the upper half of a float32; OCP 8-bit Floating
-- Point Specification). onnx: the number of TensorProto.DataType; numpy: the code of a .npy file; c: the type of
-- exported C. low, high: least and largest. saturates: infinities that it has do not come of conversions.
local types = {
  bool = {kind = "bool", bits = 8, digits = 1, onnx = 9, numpy = "b1", c = "uint8_t"},
  float16 = {kind = "float", bits = 16, digits = 11, exponent = 5, onnx = 10, numpy = "f2", c = "uint16_t",
             low = "-65504.0", high = "65504.0"},
  bfloat16 = {kind = "float", bits = 16, digits = 8, exponent = 8, onnx = 16, c = "uint16_t",
              low = "-338953138925153547590470800371487866880.0", high = "338953138925153547590470800371487866880.0"},
  float8_e4m3fn = {kind = "float", bits = 8, digits = 4, exponent = 4, onnx = 17, c = "uint8_t", low = "-448.0",
                   high = "448.0"},
  float8_e5m2 = {kind = "float", bits = 8, digits = 3, exponent = 5, onnx = 19, c = "uint8_t", low = "-57344.0",
                 high = "57344.0", saturates = true},
  float32 = {kind = "float", bits = 32, digits = 24, exponent = 8, onnx = 1, numpy = "f4", c = "float",
             low = "-340282346638528859811704183484516925440.0", high = "340282346638528859811704183484516925440.0"},
  float64 = {kind = "float", bits = 64, digits = 53, exponent = 11, onnx = 11, numpy = "f8", c = "double",
             low = "-1.7976931348623157e308", high = "1.7976931348623157e308"},
}
local ONNX = {int8 = 3, int16 = 5, int32 = 6, int64 = 7, uint8 = 2, uint16 = 4, uint32 = 12, uint64 = 13}
for bits = 8, 64 do
  if ONNX["int" .. bits] then
    local signed, unsigned, least = "int" .. bits, "uint" .. bits, -1 << (bits - 1)
    types[signed] = {kind = "int", bits = bits, digits = bits - 1, onnx = ONNX[signed], numpy = "i" .. bits // 8,
                     c = signed .. "_t", low = ("%d"):format(least), high = ("%d"):format(~least)}
    types[unsigned] = {kind = "uint", bits = bits, digits = bits, onnx = ONNX[unsigned], numpy = "u" .. bits // 8,
                       c = unsigned .. "_t", low = "0", high = bits < 64 and ("%d"):format((1 << bits) - 1) or nil}
  end
end

local element_types = {of = types}

-- The type's name by the value of one of its fields: by("onnx")[1] is float32.
function element_types.by(field)
  local names = {}
  for name, t in pairs(types) do if t[field] then names[t[field]] = name end end
  return names
end

-- Of vectors, too: float32x4.
function element_types.is_float(name)
  local of = types[name] or name and types[name:match "^(.*)x%d+$"] or nil
  return of ~= nil and of.kind == "float"
end

-- Whether each number of the type `from` is one of the type `to`, so that a conversion there and back changes nothing.
-- Numbers alone: what a bool is when it is converted is a question of its own.
function element_types.holds(to, from)
  local wide, narrow = types[to], types[from]
  if not wide or not narrow or wide.kind == "bool" or narrow.kind == "bool" then return false end
  if narrow.kind == "float" then
    if narrow.saturates and to ~= from then return false end
    return wide.kind == "float" and wide.digits >= narrow.digits and wide.exponent >= narrow.exponent
  end
  return wide.digits >= narrow.digits and not (narrow.kind == "int" and wide.kind == "uint")
end

return element_types
