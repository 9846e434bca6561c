/* Options: a table of known fields, each of one type. */
#include "bind.h"

#include <string.h>

/* ---- What a call takes ---- */

/* One of a list "name:type name:type …". */
struct known {
  const char *name, *type;
  int name_length, type_length;
};

static bool next_known(const char **list, struct known *out) {
  *list += strspn(*list, " ");
  if (!**list) return false;
  out->name = *list;
  out->name_length = (int)strcspn(out->name, ":");
  out->type = out->name + out->name_length + 1;
  out->type_length = (int)strcspn(out->type, " ");
  *list = out->type + out->type_length;
  return true;
}

static bool is_word(const char *text, const char *word, int length) {
  return strlen(text) == (size_t)length && !strncmp(text, word, (size_t)length);
}

/* The type of the value at `at`: of ours, its class. The text lives with the type. */
static const char *type_name(lua_State *L, int at) {
  const char *name = luaL_typename(L, at);
  if (lua_type(L, at) == LUA_TUSERDATA && luaL_getmetafield(L, at, "__name") == LUA_TSTRING) {
    name = lua_tostring(L, -1);
    lua_pop(L, 1);
  }
  return name;
}

/* An integer is a number without a fraction, as for the functions of Lua. */
static bool is_of(lua_State *L, int at, const struct known *k) {
  if (is_word("any", k->type, k->type_length)) return true;
  bool integer = is_word("integer", k->type, k->type_length);
  if (!integer) return is_word(type_name(L, at), k->type, k->type_length);
  int whole = 0;
  if (lua_type(L, at) == LUA_TNUMBER) lua_tointegerx(L, at, &whole);
  return whole;
}

static void refuse_type(lua_State *L, const char *name, const char *expected, const char *got) {
  bind_refuse(L, "option `%s`: expected %s, got %s", name, expected, got);
}

static bool has_known(const char *list, const char *name) {
  struct known k;
  while (next_known(&list, &k))
    if (is_word(name, k.name, k.name_length)) return true;
  return false;
}

/* Of several the first by name, whatever the table's order. */
static const char *first_unknown(lua_State *L, int at, const char *list) {
  const char *first = NULL;
  for (lua_pushnil(L); lua_next(L, at); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING) bind_refuse(L, "options are a table of names with their values");
    const char *name = lua_tostring(L, -2);
    if (!has_known(list, name) && (!first || strcmp(name, first) < 0)) first = name;
  }
  return first;
}

static void push_names(lua_State *L, const char *list) {
  luaL_Buffer names;
  struct known k;
  luaL_buffinit(L, &names);
  for (bool first = true; next_known(&list, &k); first = false) {
    if (!first) luaL_addstring(&names, ", ");
    luaL_addlstring(&names, k.name, (size_t)k.name_length);
  }
  luaL_pushresult(&names);
}

void bind_check_options(lua_State *L, int at, const char *list) {
  assert(list && at != 0);
  if (lua_isnoneornil(L, at)) return;
  at = lua_absindex(L, at);
  if (lua_type(L, at) != LUA_TTABLE) bind_refuse(L, "options are a table, not a %s", luaL_typename(L, at));
  const char *unknown = first_unknown(L, at, list);
  if (unknown) {
    push_names(L, list);
    bind_refuse(L, "there is no option `%s`; known are %s", unknown, lua_tostring(L, -1));
  }
  for (struct known k; next_known(&list, &k); lua_pop(L, 1)) {
    lua_pushlstring(L, k.name, (size_t)k.name_length);
    const char *name = lua_tostring(L, -1);
    if (lua_getfield(L, at, name) != LUA_TNIL && !is_of(L, -1, &k)) {
      const char *got = type_name(L, -1);
      lua_pushlstring(L, k.type, (size_t)k.type_length);
      refuse_type(L, name, lua_tostring(L, -1), got);
    }
    lua_remove(L, -2);
  }
}

/* options(given, "name:type name:type …"): the options, checked; an empty table for nil. */
static int options(lua_State *L) {
  const char *list = bind_check_text(L, 2);
  bind_check_options(L, 1, list);
  if (lua_isnil(L, 1))
    lua_newtable(L);
  else
    lua_pushvalue(L, 1);
  return 1;
}

/* ---- Options of a run of tuning ---- */

static const struct run_option {
  const char *field, *word, *type, *range, *standard, *doc;
} run_options_table[] = {
#define OPTION(commands, name, kind, value, doc)
#define TUNING(commands, name, kind, value, field, type, range, standard, doc)                                         \
  {field, name, type, range, standard, doc},
#define FIELD(field, type, range, standard, doc) {field, NULL, type, range, standard, doc},
#include "lua/cli/options.def"
};

/* run_options(): a list of {field =, word =, type =, range =, standard =, doc =}, texts; word: nil where no command has
 * it. */
static int run_options(lua_State *L) {
  lua_newtable(L);
  for (size_t i = 0; i < sizeof run_options_table / sizeof *run_options_table; i++) {
    const struct run_option *o = &run_options_table[i];
    const char *const texts[][2] = {{"field", o->field}, {"word", o->word},         {"type", o->type},
                                    {"range", o->range}, {"standard", o->standard}, {"doc", o->doc}};
    lua_createtable(L, 0, sizeof texts / sizeof *texts);
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
      lua_pushstring(L, texts[t][1]), lua_setfield(L, -2, texts[t][0]); /* nil for NULL */
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  return 1;
}

void bind_options(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg functions[] = {{"options", options}, {"run_options", run_options}, {NULL, NULL}};
  luaL_setfuncs(L, functions, 0);
}

/* ---- Fields ---- */

int64_t bind_option_int(lua_State *L, int at, const char *name, int64_t otherwise) {
  assert(name);
  if (!lua_istable(L, at)) return otherwise;
  if (lua_getfield(L, at, name) == LUA_TNIL) return lua_pop(L, 1), otherwise;
  int exact;
  int64_t value = lua_tointegerx(L, -1, &exact);
  if (!exact) refuse_type(L, name, "integer", luaL_typename(L, -1));
  lua_pop(L, 1);
  return value;
}

bool bind_option_bool(lua_State *L, int at, const char *name, bool otherwise) {
  assert(name);
  if (!lua_istable(L, at)) return otherwise;
  bool value = lua_getfield(L, at, name) == LUA_TNIL ? otherwise : (bool)lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

bool bind_option_resample(lua_State *L, int at) {
  return bind_option_bool(L, at, "anew", bind_option_bool(L, at, "resample", false)); /* the old name goes on working */
}

/* C reads a text to its first zero byte: one within would be another path, target or name. */
static bool is_whole(lua_State *L, int at) {
  size_t length;
  return strlen(lua_tolstring(L, at, &length)) == length;
}

const char *bind_check_text(lua_State *L, int at) {
  const char *text = luaL_checkstring(L, at);
  if (!is_whole(L, at)) luaL_argerror(L, at, "a text without a zero byte is expected");
  return text;
}
const char *bind_opt_text(lua_State *L, int at, const char *otherwise) {
  return lua_isnoneornil(L, at) ? otherwise : bind_check_text(L, at);
}

lua_Integer bind_check_item(lua_State *L, lua_Integer i) {
  int is_integer;
  lua_Integer value = lua_tointegerx(L, -1, &is_integer);
  if (is_integer) return value;
  const char *text = lua_isnumber(L, -1) ? luaL_tolstring(L, -1, NULL) : luaL_typename(L, -1);
  bind_refuse(L, "item %I of the list is %s; an integer is expected", (LUAI_UACINT)i, text);
  return 0;
}

uint32_t bind_check_items(lua_State *L, int at, int64_t *out, uint32_t most) {
  luaL_checktype(L, at, LUA_TTABLE);
  at = lua_absindex(L, at);
  lua_Integer count = luaL_len(L, at);
  if (count > (lua_Integer)most)
    bind_refuse(L, "a list of %I integers is too long; at most %d are taken", (LUAI_UACINT)count, (int)most);
  for (lua_Integer i = 1; i <= count; i++) {
    lua_geti(L, at, i);
    out[i - 1] = bind_check_item(L, i);
    lua_pop(L, 1);
  }
  return count < 0 ? 0 : (uint32_t)count;
}

const char *bind_option_text(lua_State *L, int at, const char *name, const char *otherwise) {
  assert(name);
  if (!lua_istable(L, at)) return otherwise;
  const char *value = otherwise;
  if (lua_getfield(L, at, name) != LUA_TNIL) {
    if (lua_type(L, -1) != LUA_TSTRING) refuse_type(L, name, "string", luaL_typename(L, -1));
    if (!is_whole(L, -1)) bind_refuse(L, "option `%s` has a zero byte", name);
    value = lua_tostring(L, -1);
  }
  lua_pop(L, 1);
  return value;
}
