-- Files of ONNX as protocol buffers, for tests: onnx.model{…} gives the bytes of a model. No package of ONNX is needed.
--   onnx.model {opset = 17, nodes = {{"Add", {"x", "w"}, {"y"}, {axis = 1}}}, inputs = {{"x", "float32", {2, "n"}}},
--               outputs = {{"y"}}, constants = {w = {"float32", {2}, {1, 2}}}}
local onnx = {}

local TYPES =
  {float32 = 1, uint8 = 2, int8 = 3, uint16 = 4, int16 = 5, int32 = 6, int64 = 7, string = 8, bool = 9, float16 = 10,
   float64 = 11, uint32 = 12, uint64 = 13, complex64 = 14, bfloat16 = 16, float8_e4m3fn = 17,
   float8e4m3fnuz = 18, float8_e5m2 = 19, uint4 = 21, int4 = 22}
local PACKED =
  {float32 = "<f", uint8 = "<I1", int8 = "<i1", uint16 = "<I2", int16 = "<i2", int32 = "<i4", int64 = "<i8",
   bool = "<I1", float16 = "<I2", bfloat16 = "<I2", float8_e4m3fn = "<I1", float8_e5m2 = "<I1", float64 = "<d",
   uint32 = "<I4", uint64 = "<I8"}

local function varint(n)
  local bytes = {}
  repeat
    local low = n & 0x7f
    n = n >> 7
    bytes[#bytes + 1] = string.char(n ~= 0 and low | 0x80 or low)
  until n == 0
  return table.concat(bytes)
end
function onnx.number(field, n) return varint(field << 3) .. varint(n) end
function onnx.text(field, text) return varint(field << 3 | 2) .. varint(#text) .. text end
local function float(field, x) return varint(field << 3 | 5) .. string.pack("<f", x) end
local number, text = onnx.number, onnx.text

-- {type, shape, values [, typed]}: values as numbers; typed: the field of typed data in place of raw ones.
function onnx.tensor(t, name)
  local type, shape, values, typed = table.unpack(t)
  local parts = {}
  for _, extent in ipairs(shape) do parts[#parts + 1] = number(1, extent) end
  parts[#parts + 1] = number(2, TYPES[type])
  parts[#parts + 1] = text(8, name or "")
  local raw = {}
  if typed then
    for i, x in ipairs(values) do
      raw[i] = typed == 4 and string.pack("<f", x) or typed == 10 and string.pack("<d", x) or varint(x)
    end
    parts[#parts + 1] = text(typed, table.concat(raw))
  elseif t.external then
    parts[#parts + 1] = number(14, 1)
    for key, value in pairs(t.external) do parts[#parts + 1] = text(13, text(1, key) .. text(2, tostring(value))) end
  elseif values then
    if PACKED[type] then for i, x in ipairs(values) do raw[i] = string.pack(PACKED[type], x) end
    else for i = 1, #values, 2 do raw[#raw + 1] = string.char(values[i] & 15 | ((values[i + 1] or 0) & 15) << 4) end end
    parts[#parts + 1] = text(9, table.concat(raw))
  end
  return table.concat(parts)
end

local function attribute(name, x)
  if type(x) == "table" and x.reference then return text(1, name) .. text(21, x.reference) .. number(20, 2) end
  if type(x) == "string" then return text(1, name) .. text(4, x) .. number(20, 3) end
  if math.type(x) == "integer" then return text(1, name) .. number(3, x) .. number(20, 2) end
  if math.type(x) == "float" then return text(1, name) .. float(2, x) .. number(20, 1) end
  if x.nodes then return text(1, name) .. text(6, onnx.graph(x)) .. number(20, 5) end
  if type(x[1]) == "string" and TYPES[x[1]] and type(x[2]) == "table" then
    return text(1, name) .. text(5, onnx.tensor(x)) .. number(20, 4)
  end
  local parts, kind = {text(1, name)}, type(x[1]) == "string" and 8 or math.type(x[1]) == "float" and 6 or 7
  for _, y in ipairs(x) do parts[#parts + 1] = kind == 8 and text(9, y) or kind == 6 and float(7, y) or number(8, y) end
  return table.concat(parts) .. number(20, kind)
end

local function node(n)
  local parts = {}
  for _, name in ipairs(n[2]) do parts[#parts + 1] = text(1, name) end
  for _, name in ipairs(n[3]) do parts[#parts + 1] = text(2, name) end
  parts[#parts + 1] = text(4, n[1])
  if n.name then parts[#parts + 1] = text(3, n.name) end
  if n.domain then parts[#parts + 1] = text(7, n.domain) end
  local keys = {}
  for key in pairs(n[4] or {}) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do parts[#parts + 1] = text(5, attribute(key, n[4][key])) end
  return table.concat(parts)
end

local function value(v)
  if not v[2] then return text(1, v[1]) end
  local dims = {}
  for i, extent in ipairs(v[3] or {}) do
    dims[i] = text(1, type(extent) == "string" and text(2, extent) or number(1, extent))
  end
  local tensor = number(1, TYPES[v[2]]) .. (v[3] and text(2, table.concat(dims)) or "")
  return text(1, v[1]) .. text(2, text(v.kind or 1, v.kind and text(1, text(1, tensor)) or tensor))
end

function onnx.graph(g)
  local parts = {text(2, g.name or "test")}
  for _, n in ipairs(g.nodes) do parts[#parts + 1] = text(1, node(n)) end
  for _, v in ipairs(g.inputs or {}) do parts[#parts + 1] = text(11, value(v)) end
  for _, v in ipairs(g.outputs or {}) do parts[#parts + 1] = text(12, value(v)) end
  local names = {}
  for name in pairs(g.constants or {}) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do parts[#parts + 1] = text(5, onnx.tensor(g.constants[name], name)) end
  return table.concat(parts)
end

-- {name, domain, inputs, outputs, nodes, attributes = {names}, defaults = {name = value}, opset}
local function function_of(f)
  local parts = {text(1, f.name), text(10, f.domain)}
  for _, name in ipairs(f.inputs) do parts[#parts + 1] = text(4, name) end
  for _, name in ipairs(f.outputs) do parts[#parts + 1] = text(5, name) end
  for _, name in ipairs(f.attributes or {}) do parts[#parts + 1] = text(6, name) end
  for _, n in ipairs(f.nodes) do parts[#parts + 1] = text(7, node(n)) end
  for name, x in pairs(f.defaults or {}) do parts[#parts + 1] = text(11, attribute(name, x)) end
  parts[#parts + 1] = text(9, number(2, f.opset or 17))
  return table.concat(parts)
end

function onnx.model(m)
  local functions = {}
  for i, f in ipairs(m.functions or {}) do functions[i] = text(25, function_of(f)) end
  return number(1, 8) .. text(2, "tests") .. text(8, text(1, m.domain or "") .. number(2, m.opset or 17))
    .. text(7, onnx.graph(m)) .. table.concat(functions) .. (m.more or "")
end

-- The network of a model.
function onnx.read(m, options)
  local path = os.tmpname()
  local file <close> = assert(io.open(path, "wb"))
  file:write(onnx.model(m))
  file:close()
  local net = msched.onnx(path, options)
  os.remove(path)
  return net
end

-- A constant of floats with all digits.
function onnx.weights(shape, seed)
  return {"float32", shape, msched.array(shape, "float32"):random(seed, true):tolist()}
end

return onnx
