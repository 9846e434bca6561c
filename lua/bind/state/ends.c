/* What could end the program behind its back, or free a script of its clock: os.exit and debug.sethook.
 *
 * A command's files (functions, policies, models, intrinsics) may not end it: it would stop with the status that they
 * choose, and nothing said. A script, or a session's line, is the program, and may; not while it is called as a part,
 * nor by a finalizer once it has ended. */
#include "lua/bind/bind.h"
#include "state.h"

static bool may_end(lua_State *L) {
  const struct script *s = script_of(L);
  return s->limits.is_program && !s->calls && !s->closing;
}

/* Upvalue 1: Lua's own, which has none. */
static int pass_on(lua_State *L) { return lua_tocfunction(L, lua_upvalueindex(1))(L); }

static int end_program(lua_State *L) {
  if (!may_end(L))
    return luaL_error(L, "os.exit may not end the program here: return, or raise an error, which is reported");
  return pass_on(L);
}

static int set_hook(lua_State *L) {
  if (!may_end(L))
    return luaL_error(L, "debug.sethook may not be called here: the hook is msched's, which ends what takes too long");
  return pass_on(L);
}

static void replace(lua_State *L, const char *table, const char *name, lua_CFunction with) {
  lua_getglobal(L, table);
  lua_getfield(L, -1, name);
  lua_pushcclosure(L, with, 1);
  lua_setfield(L, -2, name);
  lua_pop(L, 1);
}

void ends_open(lua_State *L) {
  replace(L, LUA_OSLIBNAME, "exit", end_program);
  replace(L, LUA_DBLIBNAME, "sethook", set_hook);
}
