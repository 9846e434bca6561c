/* function:extract: some loop nests of a function as a function of their own (tir/extract.c). */
#include "bind.h"

/* The list of names of blocks at `list`: strings that live with it, in memory on the top of the stack. */
static const char **names_of(lua_State *L, int list, lua_Integer count) {
  const char **names = lua_newuserdatauv(L, (size_t)count * sizeof *names, 0);
  for (lua_Integer i = 0; i < count; i++, lua_pop(L, 1)) {
    lua_rawgeti(L, list, i + 1);
    if (lua_type(L, -1) != LUA_TSTRING)
      bind_refuse(L, "item %I of argument %d is no name of a block, but a %s", (LUAI_UACINT)(i + 1), list - 1,
                  luaL_typename(L, -1));
    names[i] = lua_tostring(L, -1);
  }
  return names;
}

/* extract(blocks, name [, names]): the loop nests of the blocks of these names, in their order, as a function of this
 * name; its parameters are the buffers that it reads of others or gives to them. names: of the blocks there. */
int bind_extract(lua_State *L) {
  struct bound_function *b = bind_check_function(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  const char *name = luaL_checkstring(L, 3);
  lua_settop(L, 4);
  lua_Integer count = luaL_len(L, 2);
  luaL_argcheck(L, count > 0 && count <= UINT32_MAX, 2, "a list of names of blocks is expected");
  const char **blocks = names_of(L, 2, count), **names = lua_istable(L, 4) ? names_of(L, 4, count) : NULL;
  ms_error err = {.instruction = -1};
  struct tir *made = tir_extract(b->ir, b->func, blocks, names, (uint32_t)count, name, &err);
  if (!made) return bind_refuse(L, "%s", err.message);
  bind_push_function(L, made, 1);
  return 1;
}
