/* Tensor intrinsics defined in Lua: ms.intrinsic. */
#include "bind.h"

#include <stdlib.h>
#include <string.h>

/* The state's table, a userdata of the registry. */
struct held_intrinsics {
  struct vm_intrinsics *table;
};
static const char key = 0;

static int collect(lua_State *L) {
  struct held_intrinsics *held = lua_touserdata(L, 1);
  vm_intrinsics_free(held->table);
  held->table = NULL;
  return 0;
}

static struct vm_intrinsics *table_of(lua_State *L) {
  lua_rawgetp(L, LUA_REGISTRYINDEX, &key);
  struct held_intrinsics *held = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return held ? held->table : NULL;
}

const struct vm_intrinsics *bind_intrinsics(lua_State *L) { return table_of(L); }

bool bind_add_intrinsics(lua_State *L, const struct vm_intrinsics *from, ms_error *err) {
  assert(from && err);
  return vm_add_intrinsics(table_of(L), from, err);
}

/* The module of field `name` of the table at 1: a function, a schedule's, or that of a text. It stays on the stack. */
static const struct tir *part(lua_State *L, const char *name) {
  lua_getfield(L, 1, name);
  if (lua_type(L, -1) == LUA_TSTRING) {
    lua_getfield(L, lua_upvalueindex(1), "from_script");
    lua_insert(L, -2);
    lua_pushstring(L, name);
    lua_call(L, 2, 1);
  }
  if (luaL_testudata(L, -1, BOUND_SCHEDULE)) return bind_check_schedule(L, -1)->ir;
  if (!luaL_testudata(L, -1, BOUND_FUNCTION))
    bind_refuse(L, "ms.intrinsic: `%s` is a function, a schedule or TVMScript", name);
  return bind_check_function(L, -1)->ir;
}

/* intrinsic{name =, desc =, impl =}: defines it for the schedules of this state. */
static int intrinsic(lua_State *L) {
  luaL_checktype(L, 1, LUA_TTABLE);
  lua_settop(L, 1);
  lua_getfield(L, 1, "name");
  if (lua_type(L, -1) != LUA_TSTRING || !*lua_tostring(L, -1))
    return bind_refuse(L, "ms.intrinsic: `name` is a string");
  const char *name = lua_tostring(L, -1);
  const struct tir *description = part(L, "desc"), *implementation = part(L, "impl");
  ms_error err = {.instruction = -1};
  if (!vm_add_intrinsic(table_of(L), name, description, implementation, &err)) return bind_raise(L, &err);
  lua_pushvalue(L, 1);
  return 1;
}

/* intrinsics_text(): those of this state as a text, which measurer:add reads; "": there are none. */
static int intrinsics_text(lua_State *L) {
  char *text = vm_write_intrinsics(table_of(L), NULL);
  lua_pushstring(L, text ? text : "");
  free(text);
  return 1;
}

void bind_intrinsic(lua_State *L) {
  assert(lua_istable(L, -1));
  struct held_intrinsics *held = bind_hold(L, sizeof *held, "msched.intrinsics", collect);
  held->table = vm_intrinsics_new();
  lua_rawsetp(L, LUA_REGISTRYINDEX, &key);
  lua_pushvalue(L, -1);
  lua_pushcclosure(L, intrinsic, 1);
  lua_setfield(L, -2, "intrinsic");
  lua_pushcfunction(L, intrinsics_text);
  lua_setfield(L, -2, "intrinsics_text");
}
