/* Variables of a function's shapes, and functions in which they are numbers; its constants, and how they are packed;
 * results in the place of inputs (tir/derive/). */
#include "bind.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DIMS = 64 };

/* symbolic(): a list of the variables of its parameters' shapes, strides and offsets that no parameter gives, {name,
 * type, role, buffer}; and the words that name them all and say what to do. */
int bind_symbolic(lua_State *L) {
  const struct bound_function *b = bind_check_function(L, 1);
  struct tir_symbol_use uses[MOST_DIMS];
  char name[100], type[24], text[1000];
  uint32_t count = tir_symbolic_variables(b->ir, b->func, uses, MOST_DIMS);
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    const struct tir_var_node *v = tir_var_at(b->ir, uses[i].var);
    tir_name_render(b->ir, v->name, name, sizeof name);
    lua_createtable(L, 0, 4);
    lua_pushstring(L, name), lua_setfield(L, -2, "name");
    lua_pushstring(L, tir_type_text(v->type, type)), lua_setfield(L, -2, "type");
    lua_pushstring(L, uses[i].role), lua_setfield(L, -2, "role");
    lua_pushstring(L, tir_buffer_name(b->ir, uses[i].buffer)), lua_setfield(L, -2, "buffer");
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
  tir_symbolic_text(b->ir, b->func, text, sizeof text);
  lua_pushstring(L, text);
  return 2;
}

static int by_name(const void *a, const void *b) {
  return strcmp(((const struct tir_dim *)a)->name, ((const struct tir_dim *)b)->name);
}

/* The pairs of the table, in order of name; the strings live in it. */
static uint32_t dims_of(lua_State *L, int table, struct tir_dim dims[MOST_DIMS]) {
  uint32_t count = 0;
  for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
    int whole = 0;
    lua_Integer value = 0;
    if (lua_type(L, -2) != LUA_TSTRING) bind_refuse(L, "values go by the names of variables, as {n = 64}");
    const char *name = lua_tostring(L, -2);
    if (lua_type(L, -1) == LUA_TNUMBER) value = lua_tointegerx(L, -1, &whole);
    if (!whole) bind_refuse(L, "the value of %s is an integer, not %s", name, luaL_tolstring(L, -1, NULL));
    if (count == MOST_DIMS) bind_refuse(L, "at most %d variables get values", MOST_DIMS);
    dims[count++] = (struct tir_dim){name, value};
  }
  qsort(dims, count, sizeof *dims, by_name);
  return count;
}

/* specialize(func, {name = integer, …}) */
static int specialize(lua_State *L) {
  const struct bound_function *b = bind_check_function(L, 1);
  struct tir_dim dims[MOST_DIMS];
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  uint32_t count = dims_of(L, 2, dims);
  ms_error err = {.instruction = -1};
  struct tir *made = tir_specialize(b->ir, b->func, dims, count, &err);
  if (!made) return bind_refuse(L, "%s", err.message);
  bind_push_function(L, made, 1);
  return 1;
}

/* without_empty(func): itself where no extent is 0; nil: nothing is left of it */
static int without_empty(lua_State *L) {
  const struct bound_function *b = bind_check_function(L, 1);
  lua_settop(L, 1);
  if (!b->ir->has_empty) return 1;
  struct tir *made = tir_without_empty(b->ir, b->func);
  if (!made) return 0;
  bind_push_function(L, made, 1);
  return 1;
}

/* ---- Constants ---- */

/* with_weights(func, names): the function in which these parameters are constant. */
static int with_weights(lua_State *L) {
  const struct bound_function *b = bind_check_function(L, 1);
  luaL_checktype(L, 2, LUA_TTABLE);
  lua_settop(L, 2);
  lua_Integer count = luaL_len(L, 2);
  const char **names = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof *names, 0);
  for (lua_Integer i = 0; i < count; i++, lua_pop(L, 1)) {
    if (lua_rawgeti(L, 2, i + 1) != LUA_TSTRING)
      bind_refuse(L, "weights are a list of names of parameters; number %I is a %s", (LUAI_UACINT)(i + 1),
                  luaL_typename(L, -1));
    names[i] = lua_tostring(L, -1); /* the table keeps it */
  }
  ms_error err = {.instruction = -1};
  struct tir *made = tir_with_constants(b->ir, b->func, names, (uint32_t)count, &err);
  if (!made) return bind_refuse(L, "%s", err.message);
  bind_push_function(L, made, b->func);
  return 1;
}

/* A list of parameters: numbers from 1 of the function's, and below 0 of the packed buffers. */
static void push_parameters(lua_State *L, const uint32_t *list, uint32_t count) {
  lua_createtable(L, (int)count, 0);
  for (uint32_t i = 0; i < count; i++) {
    lua_pushinteger(L, list[i] >= TIR_PACKED ? -(lua_Integer)(list[i] - TIR_PACKED) - 1 : (lua_Integer)list[i] + 1);
    lua_rawseti(L, -2, (lua_Integer)i + 1);
  }
}

/* packing(): nil where nothing is packed ahead; else {kernel, pack, of_kernel, of_pack, count}: two functions, and what
 * each of their parameters is: a number from 1 of this function's, or -k, the k-th packed buffer. */
int bind_packing(lua_State *L) {
  const struct bound_function *b = bind_check_function(L, 1);
  struct tir_packing cut;
  ms_error err = {.instruction = -1};
  if (!tir_split_packing(b->ir, b->func, &cut, &err)) return bind_refuse(L, "%s", err.message);
  if (!cut.count) return 0;
  struct tir *kernel = cut.kernel, *pack = cut.pack;
  cut.kernel = cut.pack = NULL; /* the functions own them */
  lua_createtable(L, 0, 5);
  bind_push_function(L, kernel, b->func), lua_setfield(L, -2, "kernel");
  bind_push_function(L, pack, b->func), lua_setfield(L, -2, "pack");
  push_parameters(L, cut.of_kernel, cut.kernel_count), lua_setfield(L, -2, "of_kernel");
  push_parameters(L, cut.of_pack, cut.pack_count), lua_setfield(L, -2, "of_pack");
  lua_pushinteger(L, cut.count), lua_setfield(L, -2, "count");
  return 1;
}

/* in_place(input, output): the function in which these parameters, by number, are one buffer; or nil, and why not. */
int bind_in_place(lua_State *L) {
  const struct bound_function *b = bind_check_function(L, 1);
  lua_Integer count = b->ir->funcs.at[b->func].params.count, in = luaL_checkinteger(L, 2),
              out = luaL_checkinteger(L, 3);
  if (in < 1 || in > count || out < 1 || out > count || in == out)
    return bind_refuse(L, "parameters %I and %I are not two of the function's %I", (LUAI_UACINT)in, (LUAI_UACINT)out,
                       (LUAI_UACINT)count);
  const char *why;
  struct tir *made = tir_in_place(b->ir, b->func, (uint32_t)in - 1, (uint32_t)out - 1, &why);
  if (made) return bind_push_function(L, made, b->func), 1;
  lua_pushnil(L);
  lua_pushstring(L, why);
  return 2;
}

void bind_specialize(lua_State *L) {
  assert(lua_istable(L, -1));
  lua_pushcfunction(L, without_empty);
  lua_setfield(L, -2, "without_empty");
  lua_pushcfunction(L, with_weights);
  lua_setfield(L, -2, "with_weights");
  lua_pushcfunction(L, specialize);
  lua_setfield(L, -2, "specialize");
}
