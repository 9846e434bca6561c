/* Programs of ours in processes of their own, from Lua. */
#include "bind.h"

#include <limits.h>
#include <string.h>

#define BOUND_WORKER "msched.worker"

static struct jit_worker **check_worker(lua_State *L) { return luaL_checkudata(L, 1, BOUND_WORKER); }

static int collect(lua_State *L) {
  struct jit_worker **w = check_worker(L);
  jit_worker_free(*w);
  *w = NULL;
  return 0;
}

/* worker(name): a process that runs a file of ours, as `lua.vendor.worker`; nil where the program is not beside this
 * code, as it is not where another program loaded the library */
static int new_worker(lua_State *L) {
  const char *name = bind_check_text(L, 1);
  char program[PATH_MAX], file[PATH_MAX];
  ms_error err = {.instruction = -1};
  if (!jit_find_near("msched", 0, program, sizeof program) && !jit_find_near("bin/msched", 2, program, sizeof program))
    return lua_pushnil(L), 1;
  script_path(luaL_gsub(L, name, ".", "/"), file, sizeof file - sizeof ".lua");
  strcat(file, ".lua");
  char *words[] = {program, file, NULL};
  struct jit_worker **w = lua_newuserdatauv(L, sizeof *w, 0);
  *w = NULL;
  luaL_setmetatable(L, BOUND_WORKER);
  *w = jit_worker_new(words, &err);
  return *w ? 1 : bind_raise(L, &err);
}

/* worker:say(line): false, it has ended */
static int say(lua_State *L) {
  struct jit_worker *w = *check_worker(L);
  size_t length;
  const char *text = luaL_checklstring(L, 2, &length);
  lua_pushboolean(L, w && jit_worker_say(w, text, length));
  return 1;
}

/* worker:line(): the next that it says; nil and how its process ended, which it then has */
static int line(lua_State *L) {
  struct jit_worker **w = check_worker(L);
  size_t length;
  char why[200] = "its process has ended";
  const char *text = *w ? jit_worker_line(*w, bind_stop(L), &length) : NULL;
  if (text) return lua_pushlstring(L, text, length), 1;
  bind_stop(L); /* raises where the user asked to stop */
  if (*w) jit_worker_end(*w, why, sizeof why);
  jit_worker_free(*w);
  *w = NULL;
  lua_pushnil(L);
  lua_pushstring(L, why);
  return 2;
}

void bind_workers(lua_State *L) {
  assert(lua_istable(L, -1));
  static const luaL_Reg methods[] = {{"say", say}, {"line", line}, {NULL, NULL}};
  static const luaL_Reg meta[] = {{"__gc", collect}, {NULL, NULL}};
  bind_type(L, BOUND_WORKER, methods, meta);
  lua_pushcfunction(L, new_worker);
  lua_setfield(L, -2, "worker");
}
