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

static int end_program(lua_State *L) {
  if (!may_end(L))
    return luaL_error(L, "os.exit may not end the program here: return, or raise an error, which is reported");
  return script_pass_on(L);
}

static int set_hook(lua_State *L) {
  if (!may_end(L))
    return luaL_error(L, "debug.sethook may not be called here: the hook is msched's, which ends what takes too long");
  return script_pass_on(L);
}

void ends_open(lua_State *L) {
  script_replace(L, LUA_OSLIBNAME, "exit", end_program);
  script_replace(L, LUA_DBLIBNAME, "sethook", set_hook);
}
