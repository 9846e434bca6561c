-- Arrays from NumPy's files, and to them: the format .npy, versions 1 to 3, of numbers in either order of bytes and of
-- dimensions. Source: numpy/lib/format.py, "NumPy Format Description".
local ms = msched

local numpy = {}

local MAGIC = "\147NUMPY"
local MOST, MOST_HEADER = 1 << 32, 1 << 20 -- bytes of elements, and before them
local element_types = ms.load "lua.lib.element_types"
local OURS = element_types.by "numpy"

-- ---- Out ---------------------------------------------------------------------------------------------------------

local function header_of(array, code)
  local shape = array:shape()
  local text = string.format("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", code:find "1$" and "|"
                             or "<", code, table.concat(shape, ", ") .. (#shape == 1 and "," or ""))
  text = text .. (" "):rep(-(#MAGIC + 4 + #text + 1) % 64) .. "\n"
  return MAGIC .. "\1\0" .. string.pack("<I2", #text) .. text
end

-- array:save(path): writes a file that numpy.load reads.
function numpy.save(array, path)
  if type(path) ~= "string" then error(ms.where() .. "array:save takes a path", 0) end
  local known = element_types.of[array:type()].numpy
  if not known then
    error(string.format("%sNumPy has no files of %s; build with another type, or copy to one", ms.where(),
                        array:type()), 0)
  end
  local ok, why = pcall(ms.load "lua.lib.files".write, path, header_of(array, known) .. array:bytes())
  if not ok then error(ms.where() .. why, 0) end
end

-- ---- In ----------------------------------------------------------------------------------------------------------

local function read_header(text, fail)
  if text:sub(1, 6) ~= MAGIC then fail "it is no file of NumPy's: it does not begin as one" end
  local major = text:byte(7)
  if not major then fail "it is cut short" end
  if major < 1 or major > 3 then fail("its format has version %d; 1 to 3 are known", major) end
  local size = major == 1 and 2 or 4
  if #text < 8 + size then fail "it is cut short" end
  local length, from = string.unpack("<I" .. size, text, 9)
  local header = text:sub(from, from + length - 1)
  if #header < length then fail "it is cut short" end
  local order, code = header:match "'descr':%s*'([<>|=]?)(%a%d+)'"
  local fortran, extents = header:match "'fortran_order':%s*(%a+)", header:match "'shape':%s*%(([%d%s,]*)%)"
  if not code or not fortran or not extents then fail "its header is not one of numbers: a structure, or objects" end
  if not OURS[code] then fail("its elements are `%s`, which no type of arrays is", code) end
  local shape = {}
  for extent in extents:gmatch "%d+" do
    shape[#shape + 1] = math.tointeger(tonumber(extent)) or fail "an extent is no integer"
  end
  return {type = OURS[code], bytes = tonumber(code:sub(2)), big = order == ">", fortran = fortran == "True",
          shape = shape, from = from + length}
end

-- The place of each element of an array whose first dimension is dense, in the order of one whose last is.
local function transposed(values, shape)
  local list, steps, step = {}, {}, 1
  for d = 1, #shape do steps[d], step = step, step * shape[d] end
  for position = 0, #values - 1 do
    local rest, at = position, 0
    for d = #shape, 1, -1 do
      at = at + rest % shape[d] * steps[d]
      rest = rest // shape[d]
    end
    list[position + 1] = values[at + 1]
  end
  return list
end

-- ms.load_array(path): the array of a file that numpy.save wrote.
function numpy.load(path)
  local where = ms.where()
  if type(path) ~= "string" then error(where .. "ms.load_array takes a path", 0) end
  local function fail(format, ...) error(string.format("%s%s: " .. format, where, path, ...), 0) end
  local text, why = ms.read_file(path, MOST + MOST_HEADER)
  if not text then error(where .. why, 0) end
  local h, count = read_header(text, fail), 1
  for _, extent in ipairs(h.shape) do
    if extent > MOST or count * extent * h.bytes > MOST then fail "its header asks for more than can be" end
    count = count * extent
  end
  if #text - h.from + 1 < count * h.bytes then
    fail("it is cut short: %d elements of %d bytes are expected", count, h.bytes)
  end
  local bytes = text:sub(h.from, h.from + count * h.bytes - 1)
  if h.big and h.bytes > 1 then bytes = bytes:gsub(("."):rep(h.bytes), string.reverse) end
  if not h.fortran then return ms.array(h.shape, h.type, bytes) end
  local values = {}
  for i = 1, count do values[i] = bytes:sub((i - 1) * h.bytes + 1, i * h.bytes) end
  return ms.array(h.shape, h.type, table.concat(transposed(values, h.shape)))
end

return numpy
