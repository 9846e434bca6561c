/* What a file holds that was taken for text: one question for every command, so that a model of another program, an
 * archive or a library is named as such, and not by the first of its bytes that has no meaning. */
#include "format.h"

#include "lua/bind/bind.h"
#include "state.h"
#include "visible.h"

#include <stdio.h>
#include <string.h>

const char format_functions[] =
    "functions come from Lua (a file whose name ends in .lua), TVMScript, ops:NAME or suite:NAME";

/* What formats begin with; `at`: the place of the mark. */
static const struct {
  const char *mark;
  size_t length, at;
  const char *name;
} formats[] = {
    {"\x1f\x8b", 2, 0, "gzip data"},
    {"BZh", 3, 0, "bzip2 data"},
    {"\xfd\x37zXZ", 5, 0, "xz data"},
    {"\x28\xb5\x2f\xfd", 4, 0, "zstd data"},
    {"PK\3\4", 4, 0, "a ZIP archive, as PyTorch's models and NumPy's .npz are"},
    {"\x7f"
     "ELF",
     4, 0, "an ELF object, program or library"},
    {"!<arch>\n", 8, 0, "an archive of objects"},
    {"BC\xc0\xde", 4, 0, "LLVM bitcode"},
    {"\x93NUMPY", 6, 0, "an array of NumPy's"},
    {"\x80\x02", 2, 0, "a Python pickle"},
    {"\x80\x04", 2, 0, "a Python pickle"},
    {"\x89HDF", 4, 0, "HDF5 data"},
    {"TFL3", 4, 4, "a TensorFlow Lite model"},
    {"GGUF", 4, 0, "a GGUF model"},
    {"\033Lua", 4, 0, "compiled Lua; its source is read"},
    {"MSTR", 4, 0, "a trace in msched's binary form"},
    {"\xde\xc0\xef\xbe", 4, 16, "a store of records"},
    {"\xff\xfe", 2, 0, "text in UTF-16; UTF-8 is read"},
    {"\xfe\xff", 2, 0, "text in UTF-16; UTF-8 is read"},
};

/* The bytes are a character's that goes on after the end. */
static bool is_cut(const char *at, size_t left) {
  size_t whole = (unsigned char)*at >= 0xf0 ? 4 : (unsigned char)*at >= 0xe0 ? 3 : 2;
  bool cut = (unsigned char)*at >= 0xc2 && left < whole;
  for (size_t i = 1; cut && i < left; i++) cut = (at[i] & 0xc0) == 0x80;
  return cut;
}

static bool is_text(const char *bytes, size_t length) {
  uint32_t c;
  for (size_t i = 0, size; i < length; i += size) {
    size = visible_character(bytes + i, length - i, &c);
    if (!size) return is_cut(bytes + i, length - i);
    if (!c) return false;
  }
  return true;
}

/* NULL: text, which is UTF-8 without a zero byte; its last character may be cut short. Else the format in words, as
 * "gzip data", or "" where it is not known. A static string. */
static const char *format_of(const char *bytes, size_t length) {
  assert(bytes || !length);
  if (is_text(bytes, length)) return NULL;
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (length >= formats[i].at + formats[i].length &&
        !memcmp(bytes + formats[i].at, formats[i].mark, formats[i].length))
      return formats[i].name;
  return "";
}

static const char lua_expected[] = "a script in Lua is expected";

bool format_expect_text(const char *path, const char *bytes, size_t length, const char *expected, ms_error *err) {
  assert(path && expected && err);
  const char *name = format_of(bytes, length);
  if (!name) return true;
  return ms_fail(err, MS_IO, *name ? "%s: this is no text (%s); %s" : "%s: this is no text%s; %s", path, name,
                 expected);
}

/* ---- Scripts ---- */

void format_explain(lua_State *L, const char *path, const char *bytes, size_t length) {
  assert(path && lua_type(L, -1) == LUA_TSTRING);
  ms_error err = {.instruction = -1};
  if (format_expect_text(path, bytes, length, lua_expected, &err)) return;
  lua_pop(L, 1);
  lua_pushstring(L, err.message);
}

enum { START = 1 << 16 }; /* bytes of a file that are looked at */

/* A script's first line may name its program, behind the mark of UTF-8: neither is Lua. */
static const char *without_first_line(const char *text, size_t *length) {
  static const char mark[] = "\xEF\xBB\xBF";
  enum { MARK = sizeof mark - 1 };
  const char *from = *length >= MARK && !memcmp(text, mark, MARK) ? text + MARK : text;
  if (from < text + *length && *from == '#') {
    const char *end = memchr(from, '\n', (size_t)(text + *length - from));
    from = end ? end : text + *length;
  }
  *length -= (size_t)(from - text);
  return from;
}

bool format_load_script(lua_State *L, const char *path) {
  ms_error err = {.instruction = -1};
  if (!path) return luaL_loadfilex(L, NULL, "t") == LUA_OK;
  if (!bind_push_file(L, path, BIND_MOST_TEXT, &err)) return lua_pushfstring(L, "cannot open %s", err.message), false;
  size_t length, start;
  const char *text = lua_tolstring(L, -1, &length), *from;
  start = length < START ? length : START;
  size_t rest = length;
  from = without_first_line(text, &rest);
  bool loaded = luaL_loadbufferx(L, from, rest, lua_pushfstring(L, "@%s", path), "t") == LUA_OK;
  lua_remove(L, -2); /* the chunk's name */
  if (!loaded) format_explain(L, path, text, start);
  lua_remove(L, -2);
  return loaded;
}

/* ---- For scripts ---- */

/* load_script(path [, environment]): the chunk, or nil and why. */
static int load_script(lua_State *L) {
  if (!lua_isnoneornil(L, 2)) luaL_checktype(L, 2, LUA_TTABLE);
  if (!format_load_script(L, bind_check_text(L, 1))) {
    lua_pushnil(L);
    lua_insert(L, -2);
    return 2;
  }
  if (!lua_istable(L, 2)) return 1;
  lua_pushvalue(L, 2);
  const char *environment = lua_setupvalue(L, -2, 1);
  assert(environment);
  (void)environment;
  return 1;
}

/* not_text(path, bytes [, expected]): nil, or a message where it is no text. */
static int not_text(lua_State *L) {
  size_t length;
  const char *path = bind_check_text(L, 1), *bytes = luaL_checklstring(L, 2, &length);
  ms_error err = {.instruction = -1};
  if (format_expect_text(path, bytes, length, bind_opt_text(L, 3, format_functions), &err)) return 0;
  lua_pushstring(L, err.message);
  return 1;
}

/* The program's own states: the globals, with a message that says what is no text. */
static int do_file(lua_State *L) {
  const char *path = bind_opt_text(L, 1, NULL);
  lua_settop(L, 1);
  if (!format_load_script(L, path)) return lua_error(L);
  lua_call(L, 0, LUA_MULTRET);
  return lua_gettop(L) - 1;
}

void bind_formats(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg functions[] = {
      {"not_text", not_text}, {"load_script", load_script}, {"print_aside", sandbox_print_aside}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
  lua_pushstring(L, format_functions);
  lua_setfield(L, -2, "function_formats");
}

static int load_file(lua_State *L) { /* upvalue: Lua's own */
  int given = lua_gettop(L);
  const char *path = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : NULL;
  ms_error err = {.instruction = -1};
  char start[START];
  size_t length = 0;
  FILE *file = path ? bind_open_file(path, &err) : NULL;
  if (path && !file) return lua_pushnil(L), lua_pushfstring(L, "cannot open %s", err.message), 2;
  if (file) length = fread(start, 1, sizeof start, file), fclose(file);
  lua_pushvalue(L, lua_upvalueindex(1));
  for (int i = 1; i <= given; i++) lua_pushvalue(L, i);
  lua_call(L, given, LUA_MULTRET);
  if (lua_isnil(L, given + 1) && path) format_explain(L, path, start, length);
  return lua_gettop(L) - given;
}

void format_open(lua_State *L) {
  lua_register(L, "dofile", do_file);
  lua_getglobal(L, "loadfile");
  lua_pushcclosure(L, load_file, 1);
  lua_setglobal(L, "loadfile");
}
