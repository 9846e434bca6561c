/* Parts of Lua's library by which a script could break what C holds, or pass for one of our own files.
 *
 * C trusts the metatables of userdata, their user values, the upvalues of its functions and what lies in its frames,
 * and Lua trusts compiled code and the names of chunks. A script reads and changes all else as in plain Lua. The
 * process has one locale: numbers in texts of ours have a decimal point, so that no other is set. */
#include "lua/bind/bind.h"
#include "state.h"

#include <string.h>

/* ---- In the place of library functions ---- */

void script_replace(lua_State *L, const char *table, const char *name, lua_CFunction with) {
  lua_getglobal(L, table);
  lua_getfield(L, -1, name);
  assert(lua_iscfunction(L, -1));
  lua_pushcclosure(L, with, 1);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

int script_pass_on(lua_State *L) {
  lua_CFunction own = lua_tocfunction(L, lua_upvalueindex(1));
  assert(own);
  return own(L);
}

/* ---- Chunks: text alone, and under no name of ours ---- */

/* Puts the mode "t" at the index, where a call may have fewer arguments. */
static void set_text_mode(lua_State *L, int at) {
  if (lua_gettop(L) < at) lua_settop(L, at);
  lua_pushliteral(L, "t");
  lua_replace(L, at);
}

static int load_text(lua_State *L) { /* load(chunk [, name [, mode [, environment]]]) */
  if (lua_type(L, 2) == LUA_TSTRING && !strncmp(lua_tostring(L, 2), SCRIPT_OWN, sizeof SCRIPT_OWN - 1))
    return luaL_error(L, "load: names that begin with %s are msched's own", SCRIPT_OWN);
  set_text_mode(L, 3);
  return script_pass_on(L);
}

static int load_text_file(lua_State *L) { /* loadfile([name [, mode [, environment]]]); upvalue 1 has upvalues */
  set_text_mode(L, 2);
  int given = lua_gettop(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_insert(L, 1);
  lua_call(L, given, LUA_MULTRET);
  return lua_gettop(L);
}

/* ---- Finalizers ---- */

/* As the finalizer in upvalue 1, in a thread of its own: Lua calls no hook in a finalizer, which could then not be
 * interrupted, but in the threads that it runs. */
static int finalize(lua_State *L) {
  int results;
  lua_settop(L, 1);
  lua_State *thread = lua_newthread(L);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, 1);
  lua_xmove(L, thread, 2);
  if (lua_resume(thread, L, 1, &results) <= LUA_YIELD) return 0;
  lua_xmove(thread, L, 1);
  return lua_error(L);
}

static int set_plain_metatable(lua_State *L) { /* setmetatable(table, metatable) */
  lua_settop(L, 2);
  if (lua_istable(L, 2)) {
    lua_pushliteral(L, "__gc");
    if (lua_rawget(L, 2) == LUA_TFUNCTION && lua_tocfunction(L, -1) != finalize) {
      lua_pushcclosure(L, finalize, 1);
      lua_pushliteral(L, "__gc");
      lua_insert(L, -2);
      lua_rawset(L, 2);
    }
    lua_settop(L, 2);
  }
  return script_pass_on(L);
}

/* ---- debug ---- */

/* Pushes a copy of the table at the index, counted from below, with what it holds. */
static void push_copy(lua_State *L, int table) {
  assert(table > 0 && lua_istable(L, table));
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, table);) {
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    lua_rawset(L, -4);
  }
}

static int set_metatable(lua_State *L) {
  if (lua_type(L, 1) == LUA_TUSERDATA)
    return luaL_error(L, "debug.setmetatable: a userdata's metatable is its type, and stays");
  return script_pass_on(L);
}

static int get_user_value(lua_State *L) {
  if (lua_type(L, 1) != LUA_TUSERDATA) return script_pass_on(L);
  lua_pushnil(L);
  return 1;
}

static int set_user_value(lua_State *L) {
  return luaL_error(L, "debug.setuservalue: what a userdata holds is not to be changed");
}

/* Of a function in C: a table as a copy. */
static int get_upvalue(lua_State *L) {
  bool of_c = lua_iscfunction(L, 1);
  int count = script_pass_on(L);
  if (!of_c || count < 2 || !lua_istable(L, -1)) return count;
  push_copy(L, lua_gettop(L));
  return count;
}

static int set_upvalue(lua_State *L) {
  if (lua_iscfunction(L, 1)) return luaL_error(L, "debug.setupvalue: the upvalues of a function in C stay");
  return script_pass_on(L);
}

/* Whether the first arguments, [thread,] level, name a frame of C's. */
static bool is_frame_of_c(lua_State *L) {
  bool threaded = lua_isthread(L, 1);
  lua_State *of = threaded ? lua_tothread(L, 1) : L;
  lua_Debug at;
  if (!lua_isinteger(L, threaded + 1)) return false;
  lua_Integer level = lua_tointeger(L, threaded + 1);
  return level >= 0 && level <= INT32_MAX && lua_getstack(of, (int)level, &at) && lua_getinfo(of, "S", &at) &&
         !strcmp(at.what, "C");
}

static int get_local(lua_State *L) { return is_frame_of_c(L) ? 0 : script_pass_on(L); }

static int set_local(lua_State *L) {
  if (is_frame_of_c(L)) return luaL_error(L, "debug.setlocal: the locals of a function in C stay");
  return script_pass_on(L);
}

/* Pushes the value at the index, a metatable of msched's types as a copy without finalizer: one that is called frees
 * what its userdata still names. Whether it is such a one. */
static bool push_metatable(lua_State *L, int at) {
  at = lua_absindex(L, at);
  bool own = lua_istable(L, at);
  if (own) {
    lua_pushliteral(L, "__metatable"); /* as bind_type makes them */
    own = lua_rawget(L, at) == LUA_TSTRING && !strncmp(lua_tostring(L, -1), "msched.", 7);
    lua_pop(L, 1);
  }
  if (!own) return lua_pushvalue(L, at), false;
  push_copy(L, at);
  static const char *const hidden[] = {"__gc", "__close"};
  for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) lua_pushnil(L), lua_setfield(L, -2, hidden[i]);
  return true;
}

static int get_metatable(lua_State *L) {
  int count = script_pass_on(L);
  push_metatable(L, -1);
  return count;
}

/* Those by their names; nothing else that C keeps. */
static int get_registry(lua_State *L) {
  lua_settop(L, 0);
  lua_newtable(L);
  for (lua_pushnil(L); lua_next(L, LUA_REGISTRYINDEX); lua_settop(L, 2)) {
    if (lua_type(L, 2) != LUA_TSTRING || !push_metatable(L, 3)) continue;
    lua_pushvalue(L, 2);
    lua_insert(L, -2);
    lua_rawset(L, 1);
  }
  lua_settop(L, 1);
  return 1;
}

/* ---- os ---- */

static int set_locale(lua_State *L) {
  const char *name = luaL_optstring(L, 1, NULL);
  if (!name || !strcmp(name, "C") || !strcmp(name, "POSIX")) return script_pass_on(L);
  lua_pushnil(L); /* as where the system has no such locale */
  return 1;
}

void confine_open(lua_State *L) {
  static const struct {
    const char *table, *name;
    lua_CFunction function;
  } replaced[] = {
      {LUA_GNAME, "load", load_text},
      {LUA_GNAME, "loadfile", load_text_file},
      {LUA_GNAME, "setmetatable", set_plain_metatable},
      {LUA_OSLIBNAME, "setlocale", set_locale},
      {LUA_DBLIBNAME, "getlocal", get_local},
      {LUA_DBLIBNAME, "getmetatable", get_metatable},
      {LUA_DBLIBNAME, "getregistry", get_registry},
      {LUA_DBLIBNAME, "getupvalue", get_upvalue},
      {LUA_DBLIBNAME, "getuservalue", get_user_value},
      {LUA_DBLIBNAME, "setlocal", set_local},
      {LUA_DBLIBNAME, "setmetatable", set_metatable},
      {LUA_DBLIBNAME, "setupvalue", set_upvalue},
      {LUA_DBLIBNAME, "setuservalue", set_user_value},
  };
  for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
    script_replace(L, replaced[i].table, replaced[i].name, replaced[i].function);
}
