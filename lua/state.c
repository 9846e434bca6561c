/* Lua states: made, limited, interrupted. */
#include "bind.h"
#include "bind_search.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct script { /* what a state's allocator and hook know; found through the allocator's data */
  struct script_limits limits;
  size_t used;
  double deadline; /* of the call that runs; 0: none */
};

static volatile sig_atomic_t interrupted;

void script_interrupt(void) {
  interrupted = 1;
  bind_search_interrupt();
}
bool script_interrupted(void) { return interrupted != 0; }

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *allocate(void *data, void *at, size_t old_size, size_t size) {
  struct script *s = data;
  size_t old = at ? old_size : 0;
  if (size == 0) {
    free(at);
    s->used -= old;
    return NULL;
  }
  if (s->limits.bytes && size > old && s->used - old + size > s->limits.bytes) return NULL;
  void *to = realloc(at, size);
  if (to) s->used += size - old;
  return to;
}

static struct script *script_of(lua_State *L) {
  void *data;
  lua_getallocf(L, &data);
  return data;
}

/* Raised anew each period: a pcall that swallows the error gains one period only. */
enum { HOOK_PERIOD = 10000 };

static void watch(lua_State *L, lua_Debug *unused) {
  (void)unused;
  struct script *s = script_of(L);
  if (interrupted && !s->limits.patient) luaL_error(L, "interrupted");
  if (s->deadline > 0 && now() > s->deadline)
    luaL_error(L, "this script ran longer than %f seconds; see --rule-timeout", s->limits.seconds);
}

void script_start(lua_State *L) {
  struct script *s = script_of(L);
  s->deadline = s->limits.seconds > 0 ? now() + s->limits.seconds : 0;
}
void script_stop(lua_State *L) { script_of(L)->deadline = 0; }

/* ---- What a sandboxed script sees ---- */

static int ordered_next(lua_State *L) { /* (list of keys, position) of an iterator made by ordered_pairs */
  lua_Integer i = luaL_checkinteger(L, lua_upvalueindex(3)) + 1;
  lua_pushinteger(L, i);
  lua_replace(L, lua_upvalueindex(3));
  if (lua_rawgeti(L, lua_upvalueindex(1), i) == LUA_TNIL) return 1;
  lua_pushvalue(L, -1);
  lua_gettable(L, lua_upvalueindex(2));
  return 2;
}

static int by_key(lua_State *L) {
  bool a = lua_type(L, 1) == LUA_TNUMBER, b = lua_type(L, 2) == LUA_TNUMBER;
  if (a && b)
    lua_pushboolean(L, lua_compare(L, 1, 2, LUA_OPLT));
  else if (a != b)
    lua_pushboolean(L, a);
  else
    lua_pushboolean(L, strcmp(lua_tostring(L, 1), lua_tostring(L, 2)) < 0);
  return 1;
}

/* pairs in an order that is the same in every run: numbers ascending, then strings. Other keys have no order. */
static int ordered_pairs(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_getglobal(L, "table");
  lua_getfield(L, -1, "sort");
  lua_newtable(L);
  lua_Integer count = 0;
  lua_pushnil(L);
  while (lua_next(L, 1)) {
    lua_pop(L, 1);
    int type = lua_type(L, -1);
    if (type != LUA_TNUMBER && type != LUA_TSTRING)
      return luaL_error(L, "pairs: a key of type %s has no order that is the same in every run", luaL_typename(L, -1));
    lua_pushvalue(L, -1);
    lua_rawseti(L, -3, ++count);
  }
  lua_pushvalue(L, -2);
  lua_pushvalue(L, -2);
  lua_pushcfunction(L, by_key);
  lua_call(L, 2, 0);
  lua_pushvalue(L, 1);
  lua_pushinteger(L, 0);
  lua_pushcclosure(L, ordered_next, 3);
  return 1;
}

static const char *const hidden[] = {"dofile", "loadfile", "load", "collectgarbage"};
static const char *const hidden_math[] = {"random", "randomseed"};

static void hide(lua_State *L, const char *table, const char *const *names, size_t count) {
  lua_getglobal(L, table);
  for (size_t i = 0; i < count; i++) {
    lua_pushnil(L);
    lua_setfield(L, -2, names[i]);
  }
  lua_pop(L, 1);
}

static const luaL_Reg safe_libraries[] = {{LUA_GNAME, luaopen_base},       {LUA_COLIBNAME, luaopen_coroutine},
                                          {LUA_TABLIBNAME, luaopen_table}, {LUA_STRLIBNAME, luaopen_string},
                                          {LUA_UTF8LIBNAME, luaopen_utf8}, {LUA_MATHLIBNAME, luaopen_math}};

static void open_sandbox(lua_State *L) {
  for (size_t i = 0; i < sizeof safe_libraries / sizeof *safe_libraries; i++) {
    luaL_requiref(L, safe_libraries[i].name, safe_libraries[i].func, 1);
    lua_pop(L, 1);
  }
  hide(L, LUA_GNAME, hidden, sizeof hidden / sizeof *hidden);
  hide(L, LUA_MATHLIBNAME, hidden_math, sizeof hidden_math / sizeof *hidden_math);
  static const char *const dump[] = {"dump"};
  hide(L, LUA_STRLIBNAME, dump, 1);
  lua_pushcfunction(L, ordered_pairs);
  lua_setglobal(L, "pairs");
  lua_pushnil(L);
  lua_setglobal(L, "next");
}

/* ---- Where our Lua files are ---- */

const char *script_root(void) {
  const char *given = getenv("MSCHED_LUA_PATH");
  if (given && *given) return given;
  return access(MSCHED_SOURCE_ROOT "/lua/te.lua", R_OK) == 0 ? MSCHED_SOURCE_ROOT : MSCHED_DATA_ROOT;
}

/* require "msched.NAME" in a sandbox and out of it: a file of ours, loaded once a state. */
static int load_own(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  luaL_argcheck(L, !strstr(name, "..") && *name != '/', 1, "a name such as \"lua.te\" is expected");
  if (luaL_getsubtable(L, LUA_REGISTRYINDEX, "msched.loaded"), lua_getfield(L, -1, name) != LUA_TNIL) return 1;
  lua_pop(L, 1);
  char file[512];
  int n = snprintf(file, sizeof file, "%s/", script_root());
  for (const char *c = name; *c && n + 6 < (int)sizeof file; c++) file[n++] = *c == '.' ? '/' : *c;
  snprintf(file + n, sizeof file - (size_t)n, ".lua");
  if (luaL_loadfilex(L, file, "t") != LUA_OK) return lua_error(L);
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  if (lua_isnil(L, -1)) lua_pop(L, 1), lua_pushboolean(L, 1);
  lua_pushvalue(L, -1);
  lua_setfield(L, -3, name);
  return 1;
}

static int sandbox_require(lua_State *L) {
  const char *name = luaL_checkstring(L, 1);
  if (!strcmp(name, "msched")) return lua_getglobal(L, "msched"), 1;
  return luaL_error(L, "require \"%s\": a rule may require \"msched\" only", name);
}

static int searched_msched(lua_State *L) { return lua_getglobal(L, "msched"), 1; }

static int open_module(lua_State *L) {
  lua_newtable(L);
  bind_functions(L);
  bind_schedules(L);
  bind_arrays(L);
  bind_kernels(L);
  if (!script_of(L)->limits.sandbox) bind_vendors(L);
  bind_searching(L, script_of(L)->limits.sandbox);
  lua_pushcfunction(L, load_own);
  lua_setfield(L, -2, "load");
  lua_setglobal(L, "msched");
  lua_pushcfunction(L, load_own);
  lua_pushliteral(L, "lua.msched"); /* adds what is written in Lua: te, ops, rules, tune */
  lua_call(L, 1, 0);
  return 0;
}

static int open_state(lua_State *L) {
  if (script_of(L)->limits.sandbox) {
    open_sandbox(L);
    lua_pushcfunction(L, sandbox_require);
    lua_setglobal(L, "require");
  } else {
    luaL_openlibs(L);
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    lua_pushcfunction(L, searched_msched);
    lua_setfield(L, -2, "msched");
    lua_pop(L, 2);
  }
  return open_module(L);
}

lua_State *script_new(const struct script_limits *limits, ms_error *err) {
  struct script *s = calloc(1, sizeof *s);
  lua_State *L = s ? lua_newstate(allocate, s) : NULL;
  if (!L) {
    free(s);
    ms_fail(err, MS_SCRIPT, "no memory for a Lua state");
    return NULL;
  }
  if (limits) s->limits = *limits;
  lua_pushcfunction(L, open_state);
  if (!script_call(L, 0, 0, err)) {
    script_close(L);
    return NULL;
  }
  lua_sethook(L, watch, LUA_MASKCOUNT, HOOK_PERIOD);
  return L;
}

void script_close(lua_State *L) {
  if (!L) return;
  struct script *s = script_of(L);
  lua_close(L);
  free(s);
}

/* ---- Calls ---- */

static int with_traceback(lua_State *L) {
  const char *message = lua_tostring(L, 1);
  if (!message) message = luaL_tolstring(L, 1, NULL);
  luaL_traceback(L, L, message, 1);
  return 1;
}

bool script_call(lua_State *L, int arguments, int results, ms_error *err) {
  int function = lua_gettop(L) - arguments;
  lua_pushcfunction(L, with_traceback);
  lua_insert(L, function);
  int status = lua_pcall(L, arguments, results, function);
  lua_remove(L, function);
  if (status == LUA_OK) return true;
  const char *message = lua_tostring(L, -1);
  if (status == LUA_ERRMEM) message = "the script's memory limit is reached";
  ms_fail(err, MS_SCRIPT, "%s", message ? message : "error without a message");
  lua_pop(L, 1);
  return false;
}

bool script_run_file(lua_State *L, const char *path, int arguments, int results, ms_error *err) {
  if (luaL_loadfilex(L, strcmp(path, "-") != 0 ? path : NULL, "t") != LUA_OK) {
    ms_fail(err, MS_SCRIPT, "%s", lua_tostring(L, -1));
    lua_pop(L, 1 + arguments);
    return false;
  }
  lua_insert(L, -1 - arguments);
  return script_call(L, arguments, results, err);
}

/* ---- Small things that bindings share ---- */

int bind_raise(lua_State *L, const ms_error *err) {
  if (err->instruction >= 0) return luaL_error(L, "instruction %d: %s", err->instruction, err->message);
  return luaL_error(L, "%s", err->message);
}

int64_t bind_option_int(lua_State *L, int at, const char *name, int64_t otherwise) {
  if (!lua_istable(L, at)) return otherwise;
  if (lua_getfield(L, at, name) == LUA_TNIL) return lua_pop(L, 1), otherwise;
  int exact;
  int64_t value = lua_tointegerx(L, -1, &exact);
  if (!exact) luaL_error(L, "option `%s`: an integer is expected, not %s", name, luaL_typename(L, -1));
  lua_pop(L, 1);
  return value;
}

bool bind_option_bool(lua_State *L, int at, const char *name, bool otherwise) {
  if (!lua_istable(L, at)) return otherwise;
  bool value = lua_getfield(L, at, name) == LUA_TNIL ? otherwise : (bool)lua_toboolean(L, -1);
  lua_pop(L, 1);
  return value;
}

const char *bind_option_text(lua_State *L, int at, const char *name, const char *otherwise) {
  if (!lua_istable(L, at)) return otherwise;
  const char *value = otherwise;
  if (lua_getfield(L, at, name) != LUA_TNIL) {
    if (lua_type(L, -1) != LUA_TSTRING)
      luaL_error(L, "option `%s`: a string is expected, not %s", name, luaL_typename(L, -1));
    value = lua_tostring(L, -1);
  }
  lua_pop(L, 1);
  return value;
}
