-- Text of C that exported networks share, whatever they run on.
local ms = msched
local memory, common = ms.load "lua.net.memory", ms.load "lua.net.common"
local element_types = ms.load "lua.lib.element_types".of
local text = {}

local function type_of(t) return element_types[t].c end

-- A string of C.
function text.literal(s)
  return '"' .. s:gsub('[%c"\\?]', function(c) return string.format("\\%03o", c:byte()) end) .. '"'
end

-- The text with @NAME@ as words.NAME has it.
function text.fill(template, words)
  return (template:gsub("@(%u+)@", function(word) return tostring(words[word]) end))
end

-- Writes a file for the linker: of a library, the functions NAME_exported can be seen, and nothing else.
function text.write_symbols(path, name, exported)
  local lines = {}
  for i, what in ipairs(exported) do lines[i] = name .. "_" .. what .. ";" end
  ms.load "lua.lib.files".write(path, "{ global: " .. table.concat(lines, " ") .. " local: *; };\n")
end

-- Inputs or outputs as elements of an array, one without a name behind them.
function text.tensors(list, values)
  local lines = {}
  for i, each in ipairs(list) do
    local value = values[each.name]
    lines[i] = string.format("  {%s, %s, %d, {%s}, %du},\n", text.literal(each.name), text.literal(value.type),
                             #value.shape, #value.shape > 0 and table.concat(value.shape, ", ") or "0",
                             memory.bytes(value))
  end
  return table.concat(lines) .. "  {NULL, NULL, 0, {0}, 0},\n"
end

-- Inputs or outputs as lines of a comment; what: what they are called there.
function text.comment(list, values, what)
  local lines = {}
  for i, each in ipairs(list) do
    local value, name = values[each.name], each.name:gsub("[%c\\]", "_"):gsub("%*/", "* /"):gsub("/%*", "/ *")
    lines[i] = string.format(" *   %s[%d]: %s, %s%s\n", what, i - 1, name, type_of(value.type),
                             common.text(value.shape))
  end
  return table.concat(lines)
end

local HEAD, TENSORS, TAIL = [[
/* @NAME@, a network made by msched for @TARGET@.
@COMMENT@ * Row-major; floats of 16 bits as patterns. The library @LINKED@. */
#ifndef @GUARD@
#define @GUARD@

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

]], [[
struct @NAME@_tensor {
  const char *name, *type;
  int rank;
  int64_t shape[32];
  size_t bytes;
};
extern const struct @NAME@_tensor @NAME@_inputs[], @NAME@_outputs[]; /* each ends with one whose name is NULL */

]], [[

#ifdef __cplusplus
}
#endif
#endif
]]

-- The template of a header: what it defines and says of the network's struct, and the functions that it declares.
function text.header(own, functions) return HEAD .. own .. TENSORS .. functions .. TAIL end

local LISTS = [[
const struct @NAME@_tensor @NAME@_inputs[] = {
@INPUTS@};
const struct @NAME@_tensor @NAME@_outputs[] = {
@OUTPUTS@};

/* Whether there is a pointer to each that has elements. */
static int all_given(const void *const *values, const struct @NAME@_tensor *tensors) {
  for (int i = 0; tensors[i].name; i++)
    if (tensors[i].bytes && (!values || !values[i])) return 0;
  return 1;
}
]]

-- The definitions of what that declares, and what asks whether pointers to them are given.
function text.lists(words) return text.fill(LISTS, words) end

local CHECK_TEXT = [[
static int holds_@TYPE@(const @CTYPE@ *at, uint64_t first, uint64_t count, uint64_t every, int64_t low, int64_t high, int64_t except) {
  for (uint64_t i = first; i < count; i += every)
    if ((at[i] < low || at[i] > high) && at[i] != except) return 0;
  return 1;
}
]]

-- How bits of floats that are not finite begin: all ones in the exponent; of E4M3 NaN alone, all ones.
local EXPONENT_BITS = {float8_e4m3fn = "0x7fu", float8_e5m2 = "0x7cu", float16 = "0x7c00u", bfloat16 = "0x7f80u",
                       float32 = "0x7f800000u", float64 = "UINT64_C(0x7ff0000000000000)"}
local FINITE_TEXT = [[
static int finite_@TYPE@(const @CTYPE@ *at, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint@BITS@_t bits;
    memcpy(&bits, at + i, sizeof bits);
    if ((bits & @EXPONENT@) == @EXPONENT@) return 0;
  }
  return 1;
}
]]

-- A line that looks whether indices are within their range, or numbers finite, before a kernel uses them. at: where the
-- value is; checked: a set that gets the function that the line calls, for text.checks.
function text.check(range, value, at, checked)
  checked[(range.finite and "finite_" or "holds_") .. value.type] = true
  if range.finite then
    return string.format("  if (!finite_%s(%s, %d)) return 3;\n", value.type, at, common.count(value.shape))
  end
  return string.format("  if (!holds_%s(%s, %d, %d, %d, %d, %d, %d)) return 3;\n", value.type, at, range.first,
                       common.count(value.shape), range.every, range.low, range.high, range.except)
end

-- The functions that such lines call.
function text.checks(checked)
  local parts = {}
  for _, name in ipairs(ms.sorted_keys(checked)) do
    local kind, t = name:match "^(%a+)_(.*)$"
    parts[#parts + 1] = text.fill(kind == "finite" and FINITE_TEXT or CHECK_TEXT,
                                  {TYPE = t, CTYPE = type_of(t), BITS = element_types[t].bits,
                                   EXPONENT = EXPONENT_BITS[t]})
  end
  return table.concat(parts)
end

-- What maps the file of constants; needs fcntl.h, string.h, sys/mman.h, sys/stat.h and unistd.h.
local MAP_TEXT = [[
enum { HEADER_BYTES = @HEAD@ };
static const uint64_t constant_bytes = @BYTES@u, constant_sum = UINT64_C(@SUM@);

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

/* Maps HEADER_BYTES + constant_bytes; gives what is wrong, or NULL. */
static const char *map_constants(const char *path, void **out) {
  struct stat status;
  if (!path) return "no file of constants is named";
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is not waited for */
  if (file < 0) return "the file of constants cannot be opened";
  void *mapped = fstat(file, &status) || status.st_size <= 0 ? MAP_FAILED : mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return "the file of constants cannot be mapped";
  const char *wrong = wrong_with(mapped, (uint64_t)status.st_size);
  if (wrong) return munmap(mapped, (size_t)status.st_size), wrong;
  *out = mapped;
  return NULL;
}
]]

-- That text; words: HEAD, the bytes before the constants; BYTES, theirs; SUM, their checksum; MAGIC.
function text.map(words) return text.fill(MAP_TEXT, words) end

return text
