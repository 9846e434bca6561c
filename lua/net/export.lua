-- A plan as a library: its kernels, one C file that calls them in order, a header, a file of the constants, and a
-- module of Python that shows how it is called.
local ms = msched
local memory, common = ms.load "lua.net.memory", ms.load "lua.net.common"
local export = {}

local files = ms.load "lua.lib.files"
local write, read, run, quoted = files.write, files.read, files.run, files.quoted

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
local function write_constants(path, list, total, sum)
  local beside = path .. ".part" -- what has the file mapped keeps what it has
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

-- ---- Kernels -----------------------------------------------------------------------------------------------------

-- Writes the object of each function, or its source, by the suffix; gives declarations, symbols by function, and the
-- most bytes that one works in.
local function write_kernels(opened, name, folder, suffix)
  local declared, symbols, most = {}, {}, 0
  for i, entry in ipairs(opened.prepared.functions) do
    local symbol = string.format("%s_kernel_%d", name, i)
    local kernel, base = opened.kernels[entry], folder .. "/" .. symbol
    kernel:export(base .. suffix, symbol)
    kernel:export(base .. ".h", symbol)
    most = math.max(most, tonumber(read(base .. ".h"):match "_WORKSPACE (%d+)u"))
    declared[i] = string.format("int32_t %s(void **args, void *workspace); /* %s */\n", symbol, entry.name)
    symbols[entry] = symbol
  end
  return table.concat(declared), symbols, most
end

-- ---- C -----------------------------------------------------------------------------------------------------------

local C_TYPES = {bool = "uint8_t", float16 = "uint16_t", bfloat16 = "uint16_t", float32 = "float", float64 = "double"}
local function c_type(t) return C_TYPES[t] or t .. "_t" end
local function c_text(text) return '"' .. text:gsub('[%c"\\?]', function(c) return string.format("\\%03o", c:byte()) end) .. '"' end

local function tensors_text(list, values)
  local lines = {}
  for i, each in ipairs(list) do
    local value = values[each.name]
    lines[i] = string.format("  {%s, %s, %d, {%s}, %du},\n", c_text(each.name), c_text(value.type), #value.shape,
                             #value.shape > 0 and table.concat(value.shape, ", ") or "0", memory.bytes(value))
  end
  return table.concat(lines) .. "  {NULL, NULL, 0, {0}, 0},\n"
end

local function comment_text(list, values, what)
  local lines = {}
  for i, each in ipairs(list) do
    local value = values[each.name]
    lines[i] = string.format(" *   %s[%d]: %s, %s%s\n", what, i - 1, (each.name:gsub("[%c\\]", "_"):gsub("%*/", "* /")), c_type(value.type), common.text(value.shape))
  end
  return table.concat(lines)
end

local function fill(text, words)
  return (text:gsub("@(%u+)@", function(word) return tostring(words[word]) end))
end

local HEADER_TEXT = [[
/* @NAME@, a network made by msched for @TARGET@.
@COMMENT@ * Row-major; floats of 16 bits as patterns. The library @LINKED@. */
#ifndef @GUARD@
#define @GUARD@

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define @NAME@_WORKSPACE @WORKSPACE@u

struct @NAME@; /* its constants, which any number of threads may share */
struct @NAME@_tensor {
  const char *name, *type;
  int rank;
  int64_t shape[32];
  size_t bytes;
};
extern const struct @NAME@_tensor @NAME@_inputs[], @NAME@_outputs[]; /* each ends with one whose name is NULL */

/* Maps the file of constants that was written beside the library. NULL: it cannot be used, and *why, unless NULL, says why. The caller
 * closes what it got. */
struct @NAME@ *@NAME@_open(const char *constants, const char **why);
void @NAME@_close(struct @NAME@ *net);

/* Runs it: inputs and outputs in the order above. workspace: @NAME@_WORKSPACE bytes aligned to 64, of this call alone; NULL: it is
 * allocated for the call. 0: done; 1: an assertion failed; 2: the machine has no AMX tiles; 3: an index of an input is out of its
 * range; 4: no memory. */
int @NAME@_run(const struct @NAME@ *net, const void *const *inputs, void *const *outputs, void *workspace);

#ifdef __cplusplus
}
#endif
#endif
]]

local SOURCE_TEXT = [[
#define _GNU_SOURCE
#include "@HEADER@"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

@TEAM@
@DECLARED@
const struct @NAME@_tensor @NAME@_inputs[] = {
@INPUTS@};
const struct @NAME@_tensor @NAME@_outputs[] = {
@OUTPUTS@};

enum { HEADER_BYTES = @HEAD@ };
static const uint64_t constant_bytes = @BYTES@u, constant_sum = UINT64_C(@SUM@);

struct @NAME@ {
  void *mapped; /* NULL: there are no constants */
  const char *constants;
};

/* FNV-1a over words of 64 bits. */
static uint64_t sum_of(const char *bytes, uint64_t count) {
  uint64_t sum = UINT64_C(0xcbf29ce484222325);
  for (uint64_t i = 0; i < count; i += 8) {
    uint64_t word;
    memcpy(&word, bytes + i, 8);
    sum = (sum ^ word) * UINT64_C(0x100000001b3);
  }
  return sum;
}

static const char *wrong_with(const char *file, uint64_t size) {
  uint64_t bytes, sum;
  if (size < HEADER_BYTES || memcmp(file, "@MAGIC@", 16)) return "this is no file of constants";
  memcpy(&bytes, file + 16, 8), memcpy(&sum, file + 24, 8);
  if (bytes != constant_bytes || sum != constant_sum) return "these are the constants of another network";
  if (size != HEADER_BYTES + bytes || (bytes && sum_of(file + HEADER_BYTES, bytes) != sum)) return "the file of constants is damaged";
  return NULL;
}

static const char *map(struct @NAME@ *net, const char *path) {
  struct stat status;
  if (!path) return "no file of constants is named";
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is not waited for */
  if (file < 0) return "the file of constants cannot be opened";
  void *mapped = fstat(file, &status) || status.st_size <= 0 ? MAP_FAILED : mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return "the file of constants cannot be mapped";
  const char *wrong = wrong_with(mapped, (uint64_t)status.st_size);
  if (wrong) return munmap(mapped, (size_t)status.st_size), wrong;
  net->mapped = mapped, net->constants = (const char *)mapped + HEADER_BYTES;
  return NULL;
}

struct @NAME@ *@NAME@_open(const char *constants, const char **why) {
  struct @NAME@ *net = calloc(1, sizeof *net);
  const char *wrong = net ? NULL : "no memory";
  if (net && constant_bytes) wrong = map(net, constants);
  if (why) *why = wrong;
  if (wrong) free(net), net = NULL;
  return net;
}

void @NAME@_close(struct @NAME@ *net) {
  if (net && net->mapped) munmap(net->mapped, HEADER_BYTES + constant_bytes);
  free(net);
}

@CHECKS@static int run(const char *c, const void *const *x, void *const *y, char *w) {
  int status;
@CALLS@  return 0;
}

int @NAME@_run(const struct @NAME@ *net, const void *const *inputs, void *const *outputs, void *workspace) {
  char *own = workspace ? NULL : aligned_alloc(64, @NAME@_WORKSPACE);
  if (!workspace && !own) return 4;
  int status = run(net->constants, inputs, outputs, workspace ? workspace : own);
  free(own);
  return status;
}
]]

-- The threads of a shared library, in the place of OpenMP's, which kernels ask for by its names. An archive takes
-- OpenMP's.
local TEAM_TEXT = [[
void GOMP_parallel(void (*start)(void *), void *closure, unsigned count, unsigned flags);
void GOMP_parallel(void (*start)(void *), void *closure, unsigned count, unsigned flags) {
  (void)flags;
  team_parallel(start, closure, count ? count : 1);
}
int omp_get_thread_num(void);
int omp_get_thread_num(void) { return team_part(); }
int omp_get_num_threads(void);
int omp_get_num_threads(void) { return team_parts(); }
]]
local function team_text() return (ms.team_source():gsub('#include "team.h"\n', "")) .. TEAM_TEXT end

-- Indices that are looked at before a kernel runs.
local CHECK_TEXT = [[
static int holds_@TYPE@(const @CTYPE@ *at, uint64_t first, uint64_t count, uint64_t every, int64_t low, int64_t high, int64_t except) {
  for (uint64_t i = first; i < count; i += every)
    if ((at[i] < low || at[i] > high) && at[i] != except) return 0;
  return 1;
}
]]

-- Where a value is, as C has it.
local function place_text(slot, offsets)
  if slot.kind == "input" then return string.format("(void *)x[%d]", slot.index - 1) end
  if slot.kind == "output" then return string.format("y[%d]", slot.index - 1) end
  if slot.kind == "constant" then return string.format("(void *)(c + %d)", offsets[slot.name]) end
  return string.format("w + %d", slot.offset)
end

local function calls_text(opened, offsets, symbols)
  local prepared, placed, lines, checked = opened.prepared, opened.placed, {}, {}
  local values = prepared.state.values
  local function at(argument)
    if type(argument) == "table" then return string.format("(void *)(c + %d)", offsets[argument]) end
    return place_text(placed.slots[argument], offsets)
  end
  for _, each in ipairs(opened.calls) do
    local g = each.group
    for _, range in ipairs(g.ranges) do
      local value = values[range.input]
      if placed.slots[range.input] and not value.array then
        checked[value.type] = true
        lines[#lines + 1] = string.format("  if (!holds_%s(%s, %d, %d, %d, %d, %d, %d)) return 3;\n", value.type, at(range.input), range.first, common.count(value.shape), range.every,
                                          range.low, range.high, range.except)
      end
    end
    local args = {}
    for i, argument in ipairs(each.arguments) do args[i] = at(argument) end
    if g.alias then lines[#lines + 1] = string.format("  memcpy(%s, %s, %d);\n", args[2], args[1], memory.bytes(values[g.outputs[1]]))
    else lines[#lines + 1] = string.format("  if ((status = %s((void *[]){%s}, w + %d))) return status;\n", symbols[g.kernel], table.concat(args, ", "), placed.arena) end
  end
  for _, copy in ipairs(placed.copies) do
    lines[#lines + 1] = string.format("  memcpy(y[%d], %s, %d);\n", copy.index - 1, at(copy.from), memory.bytes(values[copy.from]))
  end
  local checks = {}
  for _, t in ipairs(ms.sorted_keys(checked)) do checks[#checks + 1] = fill(CHECK_TEXT, {TYPE = t, CTYPE = c_type(t)}) end
  return table.concat(lines), table.concat(checks)
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


class Network:
    def __init__(self, library=os.path.join(_HERE, "@LIBRARY@"), constants=os.path.join(_HERE, "@CONSTANTS@")):
        self._library, why = ctypes.CDLL(library), ctypes.c_char_p()
        self._library.@NAME@_open.restype = ctypes.c_void_p
        self._library.@NAME@_close.argtypes = [ctypes.c_void_p]
        self._net = self._library.@NAME@_open(constants.encode(), ctypes.byref(why))
        if not self._net:
            raise OSError("%s: %s" % (constants, why.value.decode()))

    def __call__(self, *inputs):
        """The outputs, a list of arrays; inputs in the order of INPUTS. Floats of 16 bits are arrays of uint16."""
        if len(inputs) != len(INPUTS):
            raise TypeError("%d inputs are expected, not %d" % (len(INPUTS), len(inputs)))
        given = [numpy.asarray(x, dtype=t, order="C") for x, (_, t, _) in zip(inputs, INPUTS)]
        for x, (name, _, shape) in zip(given, INPUTS):
            if x.shape != shape:
                raise ValueError("%s has extents %s, not %s" % (name, x.shape, shape))
        made = [numpy.empty(shape, dtype=t) for _, t, shape in OUTPUTS]
        pointers = [(ctypes.c_void_p * max(len(a), 1))(*[x.ctypes.data for x in a]) for a in (given, made)]
        status = self._library.@NAME@_run(ctypes.c_void_p(self._net), pointers[0], pointers[1], None)
        if status:
            raise RuntimeError("@NAME@_run gives %d" % status)
        return made

    def __del__(self):
        if getattr(self, "_net", None):
            self._library.@NAME@_close(self._net)
]=]
local NUMPY = {bool = "bool", float16 = "float16", bfloat16 = "uint16"}

local function python_list(list, values)
  local parts = {}
  for i, each in ipairs(list) do
    local value = values[each.name]
    parts[i] = string.format('(%s, "%s", (%s))', c_text(each.name), NUMPY[value.type] or value.type, table.concat(value.shape, ", ") .. (#value.shape == 1 and "," or ""))
  end
  return table.concat(parts, ", ")
end

-- ---- Source ------------------------------------------------------------------------------------------------------

-- The kernels behind the calls, as one file of C.
local function source_text(opened, folder, symbols, words)
  local kernels = {}
  for i, entry in ipairs(opened.prepared.functions) do
    kernels[i] = {symbol = symbols[entry], text = read(folder .. "/" .. symbols[entry] .. ".c")}
  end
  return fill(SOURCE_TEXT, words) .. "\n" .. ms.load "lua.net.sources".join(kernels)
end

local MAKEFILE_TEXT = [[
# Makes @NAME@.so, which @NAME@_network.py calls, for this machine.
CC ?= cc
CFLAGS ?= -O3 -march=native

@NAME@.so: @NAME@.c @NAME@.h
	$(CC) $(CFLAGS) -std=gnu11 -fopenmp -fPIC -shared -o $@ @NAME@.c -lm
]]

-- A folder of the source, the constants, a Makefile and the module of Python, as one file.
local function write_archive(opened, path, name)
  ms.with_folder(function(folder)
    local inner = folder .. "/" .. name
    run("mkdir %s", inner)
    export.write(opened, inner .. "/" .. name .. ".c", true)
    write(inner .. "/Makefile", fill(MAKEFILE_TEXT, {NAME = name}))
    run("tar --sort=name -C %s -cf %s %s", folder, path, name)
  end)
  return {path}
end

-- ---- All of it ---------------------------------------------------------------------------------------------------

-- Makes the library of the objects in a folder and the C that calls them.
local function build_library(folder, form, name, words, path)
  local cc = os.getenv "CC" or "cc"
  write(folder .. "/" .. name .. ".c", fill(SOURCE_TEXT, words))
  run("%s -std=c11 -fPIC -O1 -c -o %s %s", cc, folder .. "/" .. name .. ".o", folder .. "/" .. name .. ".c")
  if form == "a" then return run("rm -f %s && ar rcs %s " .. quoted(folder) .. "/*.o", path, path) end
  write(folder .. "/symbols", string.format("{ global: %s_open; %s_close; %s_run; %s_inputs; %s_outputs; local: *; };\n", name, name, name, name, name))
  run("%s -shared -Wl,-z,nodelete -Wl,--version-script=%s -o %s " .. quoted(folder) .. "/*.o -lm -lpthread", cc, folder .. "/symbols", path)
end

local LINKED = {so = "has threads of its own", a = "is linked with -lgomp -lm",
                c = "is its source: cc -O3 -march=native -fopenmp, linked with -lm"}

-- export.write(plan, path): writes path, which ends with .so, .a or .c, and beside it NAME.h, NAME.weights and, for a
-- .so, NAME_network.py; or .tar, a folder of source that is built elsewhere. Gives the paths of all. The plan is one that
-- plan.open gave. python: the module is written for a .c too.
function export.write(opened, path, python)
  local base, form = path:match "^(.*)%.(%w+)$"
  if not (LINKED[form] or form == "tar") then
    error(path .. ": a network is exported as a library or as source: the file ends with .so, .a, .c or .tar", 0)
  end
  local prepared, placed = opened.prepared, opened.placed
  local values, net, file = prepared.state.values, prepared.net, base:match "[^/]*$"
  local name = files.identifier((file:gsub("^lib", "")))
  local prefix = base:sub(1, #base - #file)
  local paths = {path, prefix .. name .. ".h", prefix .. name .. ".weights", (form == "so" or python) and prefix .. name .. "_network.py" or nil} -- NAME.py would be hidden by NAME.so
  if name == "" then error(path .. ": a name in C is of letters, digits and _: the library's functions are called by the file's", 0) end
  if form == "tar" then return write_archive(opened, path, name) end
  ms.with_folder(function(folder)
    local first = opened.kernels[prepared.functions[1]]
    if first then first:export(folder .. "/name.s", name) end -- which says why no C program could have the name
    os.remove(folder .. "/name.s")
    local list, offsets, total, sum = constants_of(opened)
    local declared, symbols, most = write_kernels(opened, name, folder, form == "c" and ".c" or ".o")
    local calls, checks = calls_text(opened, offsets, symbols)
    local words = {NAME = name, GUARD = "MSCHED_" .. name:upper() .. "_H", TARGET = first and first:target() or "any machine", WORKSPACE = placed.arena + math.max(most, 64),
                   COMMENT = comment_text(net.inputs, values, "inputs") .. comment_text(net.outputs, values, "outputs"), HEADER = name .. ".h", DECLARED = declared,
                   INPUTS = tensors_text(net.inputs, values), OUTPUTS = tensors_text(net.outputs, values), HEAD = HEADER, BYTES = total, SUM = string.format("0x%x", sum),
                   MAGIC = MAGIC, CALLS = calls, CHECKS = checks, TEAM = form == "so" and team_text() or "",
                   LINKED = LINKED[form]}
    write(folder .. "/" .. name .. ".h", fill(HEADER_TEXT, words))
    if form == "c" then write(path, source_text(opened, folder, symbols, words))
    else build_library(folder, form, name, words, path) end
    write(paths[2], fill(HEADER_TEXT, words))
    write_constants(paths[3], list, total, sum)
    if paths[4] then
      local args = {}
      for i in ipairs(net.inputs) do args[i] = "x" .. i end
      write(paths[4], fill(PYTHON_TEXT, {NAME = name, ARGS = table.concat(args, ", "), INPUTS = python_list(net.inputs, values), OUTPUTS = python_list(net.outputs, values),
                                         LIBRARY = form == "so" and path:match "[^/]*$" or name .. ".so", CONSTANTS = name .. ".weights"}))
    end
  end)
  return paths
end

return export
