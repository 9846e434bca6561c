/* What was meant by a name that is none, or by a file that is not there: lua/lib/nearest.lua says. */
#include "lua/bind/bind.h"
#include "lua/cli/cli.h"

#include <assert.h>
#include <string.h>

static int find_meant(lua_State *L) { /* (name, names) */
  script_push_own(L, "lua.lib.nearest");
  lua_getfield(L, -1, "meant");
  lua_pushvalue(L, 1);
  lua_pushvalue(L, 2);
  lua_call(L, 2, 1);
  return 1;
}

const char *cli_meant(const char *name, const char *const *names, int count, char out[CLI_MEANT]) {
  assert(name && (names || !count) && out);
  ms_error err = {.instruction = -1};
  lua_State *L = script_new(NULL, &err);
  *out = 0;
  if (!L) return out;
  lua_pushcfunction(L, find_meant);
  lua_pushstring(L, name);
  lua_createtable(L, count, 0);
  for (int i = 0; i < count; i++) lua_pushstring(L, names[i]), lua_rawseti(L, -2, i + 1);
  if (script_call(L, 2, 1, &err)) snprintf(out, CLI_MEANT, "%s", lua_tostring(L, -1));
  script_close(L);
  return out;
}

static int find_hint(lua_State *L) { /* (message) */
  script_push_own(L, "lua.lib.nearest");
  lua_getfield(L, -1, "hint");
  lua_pushvalue(L, 1);
  lua_call(L, 1, 1);
  return 1;
}

void cli_hint(ms_error *err) {
  assert(err);
  ms_error why = {.instruction = -1};
  lua_State *L = script_new(NULL, &why);
  if (!L) return;
  lua_pushcfunction(L, find_hint);
  lua_pushstring(L, err->message);
  if (script_call(L, 1, 1, &why)) snprintf(err->message, sizeof err->message, "%s", lua_tostring(L, -1));
  script_close(L);
}
