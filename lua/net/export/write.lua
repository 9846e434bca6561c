-- A plan as a library: its kernels, one C file that calls them in order, a header, a file of the constants, and a
-- module of Python that shows how it is called. What differs by where kernels run is host.lua's or cuda.lua's.
local ms = msched
local memory, text, files = ms.load "lua.net.memory", ms.load "lua.net.export.c_text", ms.load "lua.lib.files"
local fill, write, run = text.fill, files.write, files.run
local export = {}

-- ---- Constants ---------------------------------------------------------------------------------------------------

-- The arrays of constants that a plan's kernels take, packed ones as they are, in order; offsets by name or packed
-- constant; the bytes of all, and their checksum.
local function constants_of(opened)
  local prepared, placed = opened.prepared, opened.placed
  local list, offsets, total, sum = {}, {}, 0, nil
  local function add(argument)
    local packed = type(argument) == "table"
    local slot = not packed and placed.slots[argument]
    local key = packed and argument or slot.name
    if slot and slot.kind ~= "constant" or offsets[key] then return end
    local value = packed and argument or prepared.state.values[key]
    local bytes = memory.bytes(value)
    offsets[key] = total
    if bytes == 0 then return end
    list[#list + 1] = value.array
    total, sum = total + memory.padded(bytes), value.array:checksum(sum)
  end
  for _, each in ipairs(opened.calls) do
    for _, argument in ipairs(each.arguments) do add(argument) end
  end
  for _, copy in ipairs(placed.copies) do add(copy.from) end
  return list, offsets, total, sum or 0
end

local MAGIC, HEADER = "msched weights 1", 64 -- the bytes before the constants
-- Constant by constant: all of them together may take more memory than there is. What has the file mapped keeps what it
-- has.
local function write_constants(path, list, total, sum)
  local beside = path .. ".part"
  local file, message = io.open(beside, "wb")
  if not file then error(message, 0) end
  local ok = file:write((string.pack("<c16i8i8", MAGIC, total, sum) .. string.rep("\0", HEADER)):sub(1, HEADER))
  for _, array in ipairs(list) do
    local bytes = array:bytes()
    ok = ok and file:write(bytes, string.rep("\0", memory.padded(#bytes) - #bytes))
  end
  if not file:close() or not ok or not os.rename(beside, path) then
    os.remove(beside)
    error(path .. ": cannot be written", 0)
  end
end

-- ---- Python ------------------------------------------------------------------------------------------------------

local PYTHON_TEXT = [=[
"""@NAME@, a network made by msched: @NAME@.so by ctypes, on arrays of NumPy.

    import @NAME@_network
    net = @NAME@_network.Network()
    outputs = net(@ARGS@)
"""
import ctypes
import os

import numpy

INPUTS = [@INPUTS@]
OUTPUTS = [@OUTPUTS@]
_HERE = os.path.dirname(os.path.abspath(__file__))


def _array(x, name, dtype, shape):
    """x as the library reads it: in order, aligned; of another type where its values stay what they are."""
    given, wanted = numpy.asarray(x), numpy.dtype(dtype)
    if given.shape != shape:
        raise ValueError("%s has extents %s, not %s" % (name, given.shape, shape))
    if given.dtype.kind not in ("biuf" if wanted.kind == "f" else "biu"):
        raise TypeError("%s is of %s, not %s" % (name, given.dtype, wanted))
    made = numpy.require(given, wanted, ["C", "A"])
    if wanted.kind != "f" and not numpy.array_equal(made, given):
        raise ValueError("%s has values that %s has not" % (name, wanted))
    return made


class Network:
    def __init__(self, library=os.path.join(_HERE, "@LIBRARY@"), constants=os.path.join(_HERE, "@CONSTANTS@")):
        self._library, why = ctypes.CDLL(library), ctypes.c_char_p()
        self._library.@NAME@_open.restype = ctypes.c_void_p
        self._library.@NAME@_close.argtypes = [ctypes.c_void_p]
        self._net = self._library.@NAME@_open(constants.encode(), ctypes.byref(why))
        if not self._net:
            raise OSError("%s with %s: %s" % (library, constants, why.value.decode()))

    def __call__(self, *inputs):
        """The outputs, a list of arrays; inputs in the order of INPUTS. bfloat16 and floats of 8 bits are patterns, of uint16 and uint8."""
        if len(inputs) != len(INPUTS):
            raise TypeError("%d inputs are expected, not %d" % (len(INPUTS), len(inputs)))
        given = [_array(x, *of) for x, of in zip(inputs, INPUTS)]
        made = [numpy.empty(shape, dtype=t) for _, t, shape in OUTPUTS]
        pointers = [(ctypes.c_void_p * max(len(a), 1))(*[x.ctypes.data for x in a]) for a in (given, made)]
        status = self._library.@NAME@_run(ctypes.c_void_p(self._net), pointers[0], pointers[1], None)
        if status:
            raise RuntimeError("@NAME@_run gives %d%s" % (status, self._why()))
        return made

    def _why(self):
        """What a device's driver refused last; nothing of a library for the host, which asks none."""
        error = getattr(self._library, "@NAME@_error", None)
        if not error:
            return ""
        error.restype, error.argtypes = ctypes.c_char_p, [ctypes.c_void_p]
        text = error(self._net)
        return ": " + text.decode() if text else ""

    def __reduce__(self):
        raise TypeError("a network that is open is not copied, nor stored: open it again")

    def __del__(self):
        net, self._net = getattr(self, "_net", None), None
        if net:
            self._library.@NAME@_close(net)
]=]
local NUMPY = {bool = "bool", float16 = "float16", bfloat16 = "uint16", float8_e4m3fn = "uint8",
               float8_e5m2 = "uint8"}

local function python_list(list, values)
  local parts = {}
  for i, each in ipairs(list) do
    local value = values[each.name]
    parts[i] = string.format('(%s, "%s", (%s))', text.literal(each.name), NUMPY[value.type] or value.type,
                             table.concat(value.shape, ", ") .. (#value.shape == 1 and "," or ""))
  end
  return table.concat(parts, ", ")
end

local function write_python(path, net, values, names)
  local args = {}
  for i in ipairs(net.inputs) do args[i] = "x" .. i end
  write(path, fill(PYTHON_TEXT, {NAME = names.name, ARGS = table.concat(args, ", "),
                                 INPUTS = python_list(net.inputs, values), OUTPUTS = python_list(net.outputs, values),
                                 LIBRARY = names.library, CONSTANTS = names.name .. ".weights"}))
end

-- ---- All of it ---------------------------------------------------------------------------------------------------

-- What makes the library where the plan's kernels run: {LINKED = what headers say of each form, EXPORTED = what
-- the library's functions are called after its name and _, MAKEFILE; parts(opened, name, folder, form, offsets), which
-- writes the kernels to the folder and gives words for the texts; source(words); header; join(folder, words), the
-- text of one file; build(folder, form, name, words, path)}.
local function maker_of(opened)
  return ms.load(opened.on_device and "lua.net.export.cuda" or "lua.net.export.host")
end

-- A folder of the source, the constants, a Makefile and the module of Python, as one file.
local function write_archive(opened, path, name)
  ms.with_folder(function(folder)
    local inner = folder .. "/" .. name
    run("mkdir %s", inner)
    export.write(opened, inner .. "/" .. name .. ".c", true)
    write(inner .. "/Makefile", fill(maker_of(opened).MAKEFILE, {NAME = name}))
    run("tar --sort=name -C %s -cf %s %s", folder, path, name)
  end)
  return {path}
end

-- Words of the texts that say what the network is.
local function words_of(opened, name, first, form)
  local values, net = opened.prepared.state.values, opened.prepared.net
  return {NAME = name, GUARD = "MSCHED_" .. name:upper() .. "_H", HEADER = name .. ".h",
          TARGET = first and first:target() or "any machine",
          COMMENT = text.comment(net.inputs, values, "inputs") .. text.comment(net.outputs, values, "outputs"),
          TENSORS = text.lists {NAME = name, INPUTS = text.tensors(net.inputs, values),
                                OUTPUTS = text.tensors(net.outputs, values)}, LINKED = maker_of(opened).LINKED[form]}
end

-- No program could have the library's functions, sem_open of sem.so, beside those of its own libraries.
local function check_names(maker, name)
  msched.check_exported(name)
  for _, what in ipairs(maker.EXPORTED) do msched.check_exported(name .. "_" .. what) end
end

-- export.write(plan, path): writes path, which ends with .so, .a or .c, and beside it NAME.h, NAME.weights and, for a
-- .so, NAME_network.py; or .tar, a folder of source that is built elsewhere. Gives the paths of all. The plan is one
-- that plan.open gave. python: the module is written for a .c too.
function export.write(opened, path, python)
  local base, form = path:match "^(.*)%.(%w+)$"
  local maker, prepared = maker_of(opened), opened.prepared
  if not (maker.LINKED[form] or form == "tar") then
    error(path .. ": a network is exported as a library or as source: the file ends with .so, .a, .c or .tar", 0)
  end
  local file = base:match "[^/]*$"
  local name = files.identifier((file:gsub("^lib", "")))
  local prefix = base:sub(1, #base - #file)
  -- NAME.py would be hidden by NAME.so
  local paths = {path, prefix .. name .. ".h", prefix .. name .. ".weights",
                 (form == "so" or python) and prefix .. name .. "_network.py" or nil}
  if name == "" then
    error(path .. ": a name in C is of letters, digits and _: the library's functions are called by the file's", 0)
  end
  if form == "tar" then return write_archive(opened, path, name) end
  ms.with_folder(function(folder)
    check_names(maker, name)
    local first = opened.kernels[prepared.functions[1]]
    local list, offsets, total, sum = constants_of(opened)
    local words = words_of(opened, name, first, form)
    words.MAP = text.map {HEAD = HEADER, BYTES = total, SUM = string.format("0x%x", sum), MAGIC = MAGIC}
    for key, word in pairs(maker.parts(opened, name, folder, form, {of = offsets, total = total})) do
      words[key] = word
    end
    write(folder .. "/" .. name .. ".h", fill(maker.HEADER, words))
    if form == "c" then write(path, maker.source(words))
    else maker.build(folder, form, name, words, path) end
    write(paths[2], fill(maker.HEADER, words))
    write_constants(paths[3], list, total, sum)
    if paths[4] then
      write_python(paths[4], prepared.net, prepared.state.values,
                   {name = name, library = form == "so" and path:match "[^/]*$" or name .. ".so"})
    end
  end)
  return paths
end

return export
