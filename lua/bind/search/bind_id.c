/* What methods of stores are given: the store, and ids. */
#include "bind_store.h"

#include <string.h>

struct db *bind_open_store(lua_State *L) {
  struct db *db = *(struct db **)luaL_checkudata(L, 1, BOUND_STORE);
  if (!db) bind_refuse(L, "the store is closed");
  return db;
}

void bind_push_id(lua_State *L, const db_id *id) { lua_pushlstring(L, (const char *)id->bytes, 16); }

db_id bind_check_id(lua_State *L, int at) {
  size_t length;
  const char *bytes = luaL_checklstring(L, at, &length);
  luaL_argcheck(L, length == 16, at, "an id of 16 bytes is expected");
  db_id id;
  memcpy(id.bytes, bytes, 16);
  return id;
}

db_id bind_check_id_field(lua_State *L, int at, const char *field) {
  size_t length = 0;
  lua_getfield(L, at, field);
  const char *bytes = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : "";
  if (length != 16) bind_refuse(L, "`%s` is an id of 16 bytes, as put_workload gives it", field);
  db_id id;
  memcpy(id.bytes, bytes, 16);
  lua_pop(L, 1);
  return id;
}
